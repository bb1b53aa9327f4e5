/* SPDX-License-Identifier: MIT */
/* The settings of a store: settings.yaml. */
#include "plan/site.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static bool
read_text(struct site *out, const char *text, struct plan_errors *errors)
{
    return site_read(out, text, strlen(text), errors);
}

static void reads_limits_in_their_order(void **state)
{
    (void)state;
    struct site site;
    struct plan_errors errors = {0};
    assert_true(read_text(&site,
                          "limits:\n  sessions: 4\n  claude: none\n  b: 0\n",
                          &errors));
    assert_int_equal(site.limit_count, 3);
    assert_string_equal(site.limits[0].name, "sessions");
    assert_int_equal(site.limits[0].max, 4);
    assert_string_equal(site.limits[1].name, "claude");
    assert_true(site.limits[1].max == PLAN_UNLIMITED);
    assert_int_equal(site.limits[2].max, 0);
    site_release(&site);
    plan_errors_release(&errors);
}

static void an_empty_file_limits_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "# nothing\n", "limits:\n", "{}"};
    for (size_t ix = 0; ix < ARRAY_COUNT(texts); ix++) {
        struct site site;
        struct plan_errors errors = {0};
        assert_true(read_text(&site, texts[ix], &errors));
        assert_int_equal(site.limit_count, 0);
        site_release(&site);
        plan_errors_release(&errors);
    }
}

static void errors_have_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *error;
    } cases[] = {
        {"limit: {sessions: 4}\n",
         "1:1: unknown key \"limit\" (did you mean \"limits\"?)"},
        {"limits: [sessions]\n",
         "1:9: \"limits\" must be a mapping (KEY: VALUE ...)"},
        {"limits: {sessions: four}\n",
         "1:20: \"sessions\" must be a number from 0 to 1000000, or none"},
        {"limits:\n  sessions: 50%\n",
         "2:13: \"sessions\" must be a number from 0 to 1000000, or none"},
        {"limits: {claude: 1000001}\n",
         "1:18: \"claude\" must be a number from 0 to 1000000, or none"},
        {"limits: {claude: }\n",
         "1:18: \"claude\" is empty: it must be a number from 0 to 1000000, or "
         "none"},
        {"limits: {\"a b\": 1}\n",
         "1:10: invalid limit \"a b\": use letters, digits and . _ # : / -"},
        {"limits: {a: 1, a: 2}\n", "1:16: duplicate key \"a\" (first at 1:10)"},
        {"limits: {a: &x 1}\n",
         "1:13: anchor \"&x\" is not allowed: write it out"},
        {"limits: {a: 1\n",
         "2:1: missing \",\" or closing \"}\" (while parsing a flow mapping at "
         "1:9)"},
        {"- a\n", "1:1: the settings must be a mapping (KEY: VALUE ...)"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        struct site site;
        struct plan_errors errors = {0};
        assert_false(read_text(&site, cases[ix].text, &errors));
        assert_int_equal(site.limit_count, 0);
        assert_int_equal(errors.count, 1);
        char text[512];
        (void)snprintf(text,
                       sizeof(text),
                       "%u:%u: %s",
                       errors.items[0].mark.line,
                       errors.items[0].mark.column,
                       errors.items[0].text);
        assert_string_equal(text, cases[ix].error);
        plan_errors_release(&errors);
    }
}

static void maxima_are_numbers_or_none(void **state)
{
    (void)state;
    int64_t max;
    assert_true(site_parse_max("0", &max));
    assert_int_equal(max, 0);
    assert_true(site_parse_max("1000000", &max));
    assert_int_equal(max, 1000000);
    assert_true(site_parse_max("none", &max));
    assert_true(max == PLAN_UNLIMITED);
    static const char *const bad[] =
        {"", "-1", "1000001", "1.5", "4 ", "x", "None", "99999999999999999999"};
    for (size_t ix = 0; ix < ARRAY_COUNT(bad); ix++) {
        assert_false(site_parse_max(bad[ix], &max));
    }
}

static void percentages_are_parts(void **state)
{
    (void)state;
    uint32_t percent;
    assert_true(site_parse_percent("1%", &percent));
    assert_int_equal(percent, 1);
    assert_true(site_parse_percent("100%", &percent));
    assert_int_equal(percent, 100);
    static const char *const bad[] = {"", "%", "0%", "101%", "5", "5 %", "-5%"};
    for (size_t ix = 0; ix < ARRAY_COUNT(bad); ix++) {
        assert_false(site_parse_percent(bad[ix], &percent));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_limits_in_their_order),
        cmocka_unit_test(an_empty_file_limits_nothing),
        cmocka_unit_test(errors_have_their_place),
        cmocka_unit_test(maxima_are_numbers_or_none),
        cmocka_unit_test(percentages_are_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
