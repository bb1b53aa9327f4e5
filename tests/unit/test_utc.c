/* SPDX-License-Identifier: MIT */
#include "base/utc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void what_was_written_is_read_again(void **state)
{
    (void)state;
    static const int64_t times_ns[] = {
        0,
        1772600767089 * MS_NS,
        951868799999 * MS_NS, /* the end of 29 February 2000 */
        UTC_SECONDS_MAX * SECOND_NS,
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(times_ns); ix++) {
        struct strbuf out = {0};
        int64_t ns = -1;
        assert_true(utc_add(&out, times_ns[ix]));
        assert_true(utc_read(strbuf_text(&out), &ns));
        assert_true(ns == times_ns[ix]);
        strbuf_release(&out);
    }
}

static void it_is_written_to_the_millisecond(void **state)
{
    (void)state;
    struct strbuf out = {0};
    assert_true(utc_add(&out, 1772600767089999999));
    assert_string_equal(strbuf_text(&out), "2026-03-04T05:06:07.089Z");
    strbuf_clear(&out);
    assert_false(utc_add(&out, -1));
    assert_int_equal(out.len, 0);
    strbuf_release(&out);
}

static void what_is_no_time_is_not_read(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "2026",
        "2026-03-04",
        "2026-13-04T05:06:07Z",
        "2026-03-04T25:06:07Z",
        "2026-03-04T05:06:07",
        "1969-12-31T23:59:59Z",
        "2300-01-01T00:00:00Z",
        "2026-03-04T05:06:07Z or so",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(texts); ix++) {
        int64_t ns = 7;
        assert_false(utc_read(texts[ix], &ns));
        assert_int_equal(ns, 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read_again),
        cmocka_unit_test(it_is_written_to_the_millisecond),
        cmocka_unit_test(what_is_no_time_is_not_read),
    };
    return cmocka_run_group_tests_name("utc", tests, NULL, NULL);
}
