/* SPDX-License-Identifier: MIT */
#include "base/jsonw.h"

#include "base/duration.h"
#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

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
        struct jsonw json = {.out = &out};
        jsonw_duration(&json, NULL, cases[ix].ns);
        assert_string_equal(strbuf_text(&out), cases[ix].text);
        assert_int_equal(out.len, strlen(cases[ix].text));
        strbuf_release(&out);
    }
}

static void the_writer_puts_the_punctuation(void **state)
{
    (void)state;
    struct strbuf out = {0};
    struct jsonw json = {.out = &out};
    jsonw_object(&json, NULL);
    jsonw_text(&json, "task", "a\"b");
    jsonw_text(&json, "reason", NULL);
    jsonw_int(&json, "least", INT64_MIN);
    jsonw_bool(&json, "ok", true);
    jsonw_null(&json, "nothing");
    jsonw_object(&json, "empty");
    jsonw_object_end(&json);
    jsonw_array(&json, "list");
    jsonw_int(&json, NULL, 1);
    jsonw_text(&json, NULL, ":");
    jsonw_array(&json, NULL);
    jsonw_array_end(&json);
    jsonw_object(&json, NULL);
    jsonw_number(&json, "usd", 10, 0.25);
    jsonw_object_end(&json);
    jsonw_array_end(&json);
    jsonw_duration(&json, "seconds", SECOND_NS / 4);
    jsonw_moment(&json, "time", 90 * SECOND_NS);
    jsonw_raw(&json, "answer", "{\"a\":1}");
    jsonw_name(&json, "last");
    jsonw_string(&out, "{");
    jsonw_object_end(&json);
    assert_string_equal(strbuf_text(&out),
                        "{\"task\":\"a\\\"b\",\"reason\":null,"
                        "\"least\":-9223372036854775808,\"ok\":true,"
                        "\"nothing\":null,\"empty\":{},"
                        "\"list\":[1,\":\",[],{\"usd\":0.25}],"
                        "\"seconds\":0.25,"
                        "\"time\":\"1970-01-01T00:01:30.000Z\","
                        "\"answer\":{\"a\":1},\"last\":\"{\"}");
    strbuf_release(&out);
}

static void for_people_there_are_spaces_and_lines(void **state)
{
    (void)state;
    struct strbuf out = {0};
    struct jsonw json = {.out = &out, .spaced = true};
    jsonw_object(&json, NULL);
    jsonw_int(&json, "a", 1);
    jsonw_int(&json, "b", 2);
    jsonw_line(&json, 1);
    jsonw_array(&json, "c");
    for (int ix = 0; ix < 2; ix++) {
        jsonw_line(&json, 2);
        jsonw_object(&json, NULL);
        jsonw_int(&json, "d", ix);
        jsonw_object_end(&json);
    }
    jsonw_array_end(&json);
    jsonw_int(&json, "e", 3);
    jsonw_object_end(&json);
    assert_string_equal(strbuf_text(&out),
                        "{\"a\": 1, \"b\": 2,\n \"c\": [\n  {\"d\": 0},"
                        "\n  {\"d\": 1}], \"e\": 3}");
    strbuf_release(&out);
}

/* A text of one line after another: each object begins anew. */
static void a_line_break_before_begins_anew(void **state)
{
    (void)state;
    struct strbuf out = {0};
    for (int ix = 0; ix < 2; ix++) {
        struct jsonw json = {.out = &out};
        jsonw_object(&json, NULL);
        jsonw_object_end(&json);
        strbuf_adds(&out, "\n");
    }
    assert_string_equal(strbuf_text(&out), "{}\n{}\n");
    strbuf_release(&out);
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
        cmocka_unit_test(the_writer_puts_the_punctuation),
        cmocka_unit_test(for_people_there_are_spaces_and_lines),
        cmocka_unit_test(a_line_break_before_begins_anew),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
