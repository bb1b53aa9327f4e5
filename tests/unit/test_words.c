/* SPDX-License-Identifier: MIT */
#include "report/words.h"

#include "base/duration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

static void assert_time(int64_t ns, const char *wanted)
{
    struct strbuf out = {0};
    words_add_time(&out, ns);
    assert_string_equal(strbuf_text(&out), wanted);
    strbuf_release(&out);
}

static void times_have_two_units_at_most(void **state)
{
    (void)state;
    assert_time(0, "0");
    assert_time(1, "<1 ms");
    assert_time(MS_NS, "1 ms");
    assert_time(999 * MS_NS, "999 ms");
    assert_time(999 * MS_NS + 600000, "1.0 s");
    assert_time(59 * SECOND_NS + 900 * MS_NS, "59.9 s");
    assert_time(60 * SECOND_NS - 1, "1 min");
    assert_time(61 * SECOND_NS, "1 min 1 s");
    assert_time(HOUR_NS - MS_NS, "1 h");
    assert_time(HOUR_NS + 95 * SECOND_NS, "1 h 2 min");
    assert_time(24 * HOUR_NS - SECOND_NS, "1 d");
    assert_time(49 * HOUR_NS, "2 d 1 h");
    assert_time(-1500 * MS_NS, "-1.5 s");
    assert_time(INT64_MIN, "-106752 d");
}

static void assert_number(int64_t number, const char *wanted)
{
    struct strbuf out = {0};
    words_add_number(&out, number);
    assert_string_equal(strbuf_text(&out), wanted);
    strbuf_release(&out);
}

static void numbers_are_grouped(void **state)
{
    (void)state;
    assert_number(0, "0");
    assert_number(999, "999");
    assert_number(1000, "1\u202f000");
    assert_number(1234567, "1\u202f234\u202f567");
    assert_number(-999, "-999");
    assert_number(-1000, "-1\u202f000");
}

static void moments_are_local(void **state)
{
    (void)state;
    int64_t wall_ns = INT64_C(1772600767089) * MS_NS;
    struct strbuf out = {0};
    words_add_moment(&out, wall_ns);
    assert_string_equal(strbuf_text(&out), "2026-03-04 06:06:07 +0100");
    strbuf_release(&out);
}

static void everything_has_words(void **state)
{
    (void)state;
    for (enum stats_reason ix = 0; ix < STATS_REASONS; ix++) {
        assert_non_null(words_reason(ix));
        assert_non_null(stats_reason_name(ix));
    }
    for (enum stats_idle ix = 0; ix < STATS_IDLES; ix++) {
        assert_non_null(words_idle(ix));
        assert_non_null(stats_idle_name(ix));
    }
    for (enum stats_step ix = 0; ix < STATS_STEPS; ix++) {
        assert_non_null(words_step(ix));
        assert_non_null(stats_step_name(ix));
    }
    for (enum run_history_outcome ix = 0; ix < HISTORY_OUTCOMES; ix++) {
        assert_non_null(words_outcome(ix));
    }
}

int main(void)
{
    if (setenv("TZ", "CET-1", 1) != 0) {
        return 1;
    }
    tzset();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_have_two_units_at_most),
        cmocka_unit_test(numbers_are_grouped),
        cmocka_unit_test(moments_are_local),
        cmocka_unit_test(everything_has_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
