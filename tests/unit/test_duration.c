/* SPDX-License-Identifier: MIT */
#include "base/duration.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static enum err read_text(const char *text, int64_t *out)
{
    return duration_read(text, strlen(text), out);
}

static void reads_every_unit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ns;
    } cases[] = {
        {"250ms", SECOND_NS / 4},
        {"90s", 90 * SECOND_NS},
        {"30m", 30 * MINUTE_NS},
        {"2h", 2 * HOUR_NS},
        {"3d", 3 * DAY_NS},
        {"0s", 0},
        {"007m", 7 * MINUTE_NS},
        {"1h30m", 90 * MINUTE_NS},
        {"1d2h3m4s5ms",
         DAY_NS + 2 * HOUR_NS + 3 * MINUTE_NS + 4 * SECOND_NS + 5000000},
        {"1h0m0s", HOUR_NS},
        {"90m30s", 90 * MINUTE_NS + 30 * SECOND_NS},
        {"365d", DURATION_MAX_NS},
        {"8760h", DURATION_MAX_NS},
        {"31536000000ms", DURATION_MAX_NS},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        int64_t got = -1;
        assert_int_equal(read_text(cases[ix].text, &got), ERR_OK);
        assert_int_equal(got, cases[ix].ns);
    }
}

static void reads_up_to_four_decimals(void **state)
{
    (void)state;
    int64_t got = -1;
    assert_int_equal(read_text("1.5h", &got), ERR_OK);
    assert_int_equal(got, 90 * MINUTE_NS);
    assert_int_equal(read_text("0.25s", &got), ERR_OK);
    assert_int_equal(got, SECOND_NS / 4);
    assert_int_equal(read_text("0.0001s", &got), ERR_OK);
    assert_int_equal(got, 100000);
    assert_int_equal(read_text("0.5d12h", &got), ERR_OK);
    assert_int_equal(got, DAY_NS);
    assert_int_equal(read_text("0.00001s", &got), ERR_INVALID);
}

static void refuses_what_is_no_duration(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",     "10",   "m",    "10 m",  "10m ", " 10m",   "10x",
        "10M",  "-10m", "+10m", "1.h",   ".5h",  "1.5",    "1..5h",
        "1h1h", "1m1h", "1s1m", "1ms1s", "1hm",  "1h 30m", "0x10s",
        "1e3s", "1us",  "1min", "10m;",  "1,5h",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        int64_t got = 42;
        assert_int_equal(read_text(cases[ix], &got), ERR_INVALID);
        assert_int_equal(got, 42);
    }
}

static void refuses_what_is_too_long(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "366d",
        "365d1ms",
        "8761h",
        "999999999999999999999999d",
        "99999999999999999999999999999999999ms",
        "364d25h",
        "365.1d",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        int64_t got = 42;
        assert_int_equal(read_text(cases[ix], &got), ERR_LIMIT);
        assert_int_equal(got, 42);
    }
}

static void what_is_wrong_is_not_called_too_long(void **state)
{
    (void)state;
    int64_t got = 42;
    assert_int_equal(read_text("999d1x", &got), ERR_INVALID);
    assert_int_equal(read_text("999d1d", &got), ERR_INVALID);
    assert_int_equal(got, 42);
}

static void reads_no_further_than_told(void **state)
{
    (void)state;
    int64_t got = 0;
    assert_int_equal(duration_read("10m30s", 3, &got), ERR_OK);
    assert_int_equal(got, 10 * MINUTE_NS);
    assert_int_equal(duration_read("10m", 2, &got), ERR_INVALID);
    assert_int_equal(duration_read("10ms", 3, &got), ERR_OK);
    assert_int_equal(got, 10 * MINUTE_NS);
}

static void writes_for_people(void **state)
{
    (void)state;
    static const struct {
        int64_t ns;
        const char *text;
    } cases[] = {
        {0, "0s"},
        {45 * SECOND_NS, "45s"},
        {59 * SECOND_NS, "59s"},
        {60 * SECOND_NS, "1m"},
        {26 * MINUTE_NS, "26m"},
        {16 * MINUTE_NS + 30 * SECOND_NS, "16m 30s"},
        {5 * MINUTE_NS + 7 * SECOND_NS, "5m 07s"},
        {65 * MINUTE_NS, "1h 05m"},
        {98 * MINUTE_NS + 59 * SECOND_NS, "1h 38m"},
        {47 * HOUR_NS + 59 * MINUTE_NS, "47h 59m"},
        {48 * HOUR_NS, "2d 0h"},
        {51 * HOUR_NS, "2d 3h"},
        {365 * DAY_NS, "365d 0h"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        struct strbuf out = {0};
        duration_add(&out, cases[ix].ns);
        assert_string_equal(strbuf_text(&out), cases[ix].text);
        strbuf_release(&out);
    }
}

static void rounds_to_the_second(void **state)
{
    (void)state;
    struct strbuf out = {0};
    duration_add(&out, SECOND_NS / 2 - 1);
    strbuf_adds(&out, " ");
    duration_add(&out, SECOND_NS / 2);
    strbuf_adds(&out, " ");
    duration_add(&out, MINUTE_NS - 1);
    assert_string_equal(strbuf_text(&out), "0s 1s 1m");
    strbuf_release(&out);
}

static void doubles_up_to_a_ceiling(void **state)
{
    (void)state;
    assert_true(duration_doubled(3, 0, 100) == 3);
    assert_true(duration_doubled(3, 4, 100) == 48);
    assert_true(duration_doubled(3, 6, 100) == 100);
    assert_true(duration_doubled(3, UINT32_MAX, INT64_MAX) == INT64_MAX);
    assert_true(duration_doubled(5, 0, 4) == 4);
    assert_true(duration_doubled(0, UINT32_MAX, 100) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_unit),
        cmocka_unit_test(reads_up_to_four_decimals),
        cmocka_unit_test(refuses_what_is_no_duration),
        cmocka_unit_test(refuses_what_is_too_long),
        cmocka_unit_test(what_is_wrong_is_not_called_too_long),
        cmocka_unit_test(reads_no_further_than_told),
        cmocka_unit_test(writes_for_people),
        cmocka_unit_test(doubles_up_to_a_ceiling),
        cmocka_unit_test(rounds_to_the_second),
    };
    return cmocka_run_group_tests_name("duration", tests, NULL, NULL);
}
