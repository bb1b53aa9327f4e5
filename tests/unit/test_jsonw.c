/* SPDX-License-Identifier: MIT */
#include "base/jsonw.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define SECOND_NS INT64_C(1000000000)

static void writes_plain_text_in_quotes(void **state)
{
    (void)state;
    struct strbuf out = {0};
    jsonw_string(&out, "a/b#5 c");
    assert_string_equal(strbuf_text(&out), "\"a/b#5 c\"");
    strbuf_clear(&out);
    jsonw_string(&out, "");
    assert_string_equal(strbuf_text(&out), "\"\"");
    strbuf_release(&out);
}

static void nothing_is_null(void **state)
{
    (void)state;
    struct strbuf out = {0};
    jsonw_string(&out, NULL);
    assert_string_equal(strbuf_text(&out), "null");
    strbuf_release(&out);
}

static void escapes_quotes_and_backslashes(void **state)
{
    (void)state;
    struct strbuf out = {0};
    jsonw_string(&out, "say \"\\\"");
    assert_string_equal(strbuf_text(&out), "\"say \\\"\\\\\\\"\"");
    strbuf_release(&out);
}

static void escapes_control_characters(void **state)
{
    (void)state;
    struct strbuf out = {0};
    jsonw_string(&out, "a\nb\tc\x1b[0m\x01");
    assert_string_equal(strbuf_text(&out),
                        "\"a\\u000ab\\u0009c\\u001b[0m\\u0001\"");
    strbuf_release(&out);
}

/* Half a character, a surrogate, a byte of Latin-1 (13.13). */
static void what_is_not_utf8_becomes_question_marks(void **state)
{
    (void)state;
    struct strbuf out = {0};
    jsonw_string(&out, "a\xe2\x82\n\xed\xa0\x80 \xfc\xf0\x9f\x98");
    assert_string_equal(strbuf_text(&out), "\"a??\\u000a??? ????\"");
    strbuf_release(&out);
}

static void leaves_utf8_alone(void **state)
{
    (void)state;
    struct strbuf out = {0};
    jsonw_string(&out, "Grüße \xf0\x9f\x98\x80\x7f");
    assert_string_equal(strbuf_text(&out), "\"Grüße \xf0\x9f\x98\x80\x7f\"");
    strbuf_release(&out);
}

/* Between the quotes there is no byte that JSON forbids there. */
static void no_byte_gets_through_that_json_forbids(void **state)
{
    (void)state;
    for (int byte = 1; byte < 256; byte++) {
        char text[] = {'x', (char)byte, 'y', '\0'};
        struct strbuf out = {0};
        jsonw_string(&out, text);
        size_t end = out.len - 1;
        assert_int_equal(out.text[0], '"');
        assert_int_equal(out.text[end], '"');
        for (size_t ix = 1; ix < end; ix++) {
            assert_true((unsigned char)out.text[ix] >= 0x20);
            if (out.text[ix] == '\\') {
                ix++;
                assert_non_null(strchr("u\"\\", out.text[ix]));
            } else {
                assert_true(out.text[ix] != '"');
            }
        }
        strbuf_release(&out);
    }
}

static void writes_seconds_without_useless_zeros(void **state)
{
    (void)state;
    static const struct {
        int64_t ns;
        const char *text;
    } cases[] = {
        {0, "0"},
        {90 * SECOND_NS, "90"},
        {100 * SECOND_NS, "100"},
        {SECOND_NS / 4, "0.25"},
        {10 * SECOND_NS + 500000000, "10.5"},
        {1, "0.000000001"},
        {SECOND_NS - 1, "0.999999999"},
        {1000, "0.000001"},
        {-SECOND_NS, "-1"},
        {-SECOND_NS / 2, "-0.5"},
        {INT64_MAX, "9223372036.854775807"},
        {INT64_MIN, "-9223372036.854775808"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        struct strbuf out = {0};
        jsonw_seconds(&out, cases[ix].ns);
        assert_string_equal(strbuf_text(&out), cases[ix].text);
        assert_int_equal(out.len, strlen(cases[ix].text));
        strbuf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_plain_text_in_quotes),
        cmocka_unit_test(nothing_is_null),
        cmocka_unit_test(escapes_quotes_and_backslashes),
        cmocka_unit_test(escapes_control_characters),
        cmocka_unit_test(leaves_utf8_alone),
        cmocka_unit_test(what_is_not_utf8_becomes_question_marks),
        cmocka_unit_test(no_byte_gets_through_that_json_forbids),
        cmocka_unit_test(writes_seconds_without_useless_zeros),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
