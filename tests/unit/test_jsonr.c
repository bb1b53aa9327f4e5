/* SPDX-License-Identifier: MIT */
#include "base/jsonr.h"

#include "base/jsonw.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *const sample =
    "{\"task\":\"a/b\",\"n\":-12,\"s\":0.25,\"list\":[1,{\"n\":9},\"]}\"],"
    "\"answer\":{\"ok\":true,\"text\":\"x\"},\"last\":null}";

static void finds_members_by_name(void **state)
{
    (void)state;
    struct jsonr object = jsonr_of(sample);
    assert_true(jsonr_is(jsonr_get(object, "task"), "a/b"));
    assert_false(jsonr_is(jsonr_get(object, "task"), "a/"));
    assert_false(jsonr_is(jsonr_get(object, "task"), "a/bc"));
    assert_int_equal(jsonr_int(jsonr_get(object, "n")), -12);
    assert_true(jsonr_number(jsonr_get(object, "s")) == 0.25);
    assert_int_equal(jsonr_get(object, "last").len, strlen("null"));
    struct jsonr answer = jsonr_get(object, "answer");
    assert_true(jsonr_is(jsonr_get(answer, "text"), "x"));
    assert_int_equal(jsonr_get(object, "text").len, 0); /* it is deeper */
    assert_int_equal(jsonr_get(object, "absent").len, 0);
}

static void goes_over_all_members(void **state)
{
    (void)state;
    struct strbuf names = {0};
    struct jsonr_member member;
    size_t cursor = 0;
    while (jsonr_next(jsonr_of(sample), &cursor, &member)) {
        assert_true(jsonr_add_text(&names, member.name));
        strbuf_adds(&names, " ");
    }
    assert_string_equal(strbuf_text(&names), "task n s list answer last ");
    cursor = 0;
    assert_false(jsonr_next(jsonr_of("{}"), &cursor, &member));
    strbuf_release(&names);
}

/* Whatever is written as a string is read as the same text. */
static void reads_what_jsonw_writes(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "plain",
        "say \"no\" \\ and \\\\",
        "line\nbreak\ttab\x1b[0m\x01",
        "Gr\xc3\xbc\xc3\x9f",
        "}],{",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(texts); ix++) {
        struct strbuf json = {0};
        struct strbuf text = {0};
        strbuf_adds(&json, "{\"a\":");
        jsonw_string(&json, texts[ix]);
        strbuf_adds(&json, ",\"b\":7}");
        struct jsonr object = jsonr_of(strbuf_text(&json));
        assert_true(jsonr_add_text(&text, jsonr_get(object, "a")));
        assert_string_equal(strbuf_text(&text), texts[ix]);
        assert_int_equal(jsonr_int(jsonr_get(object, "b")), 7);
        strbuf_release(&json);
        strbuf_release(&text);
    }
}

static void reads_the_escapes_of_others(void **state)
{
    (void)state;
    struct strbuf text = {0};
    struct jsonr value = jsonr_of("\"\\n\\t\\/\\\"\\u0041\\u00fc\\u12\"");
    assert_true(jsonr_add_text(&text, value));
    assert_string_equal(strbuf_text(&text), "\n\t/\"A?u12");
    assert_false(jsonr_add_text(&text, jsonr_of("12")));
    assert_false(jsonr_add_text(&text, jsonr_of("\"")));
    strbuf_release(&text);
}

static void a_number_is_a_number_as_a_whole(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "\"7\"", "7x", "true", "null", "{}"};
    for (size_t ix = 0; ix < ARRAY_COUNT(bad); ix++) {
        assert_int_equal(jsonr_int(jsonr_of(bad[ix])), 0);
        assert_true(jsonr_number(jsonr_of(bad[ix])) == 0);
    }
    assert_int_equal(jsonr_int(jsonr_of("9223372036854775807")), INT64_MAX);
}

/* Every text that begins as the sample does, and every one that has lost a
 * byte, is read without a step outside: the sanitizer watches. */
static void damaged_text_does_no_harm(void **state)
{
    (void)state;
    size_t len = strlen(sample);
    for (size_t ix = 0; ix < len; ix++) {
        for (int whole = 0; whole < 2; whole++) {
            char *text = mem_strndup(sample, whole ? len : ix);
            if (whole) {
                memmove(text + ix, text + ix + 1, len - ix);
            }
            struct strbuf out = {0};
            struct jsonr_member member;
            size_t cursor = 0;
            uint32_t count = 0;
            while (jsonr_next(jsonr_of(text), &cursor, &member)) {
                (void)jsonr_add_text(&out, member.value);
                (void)jsonr_number(member.value);
                count++;
            }
            assert_true(count <= 6);
            strbuf_release(&out);
            mem_free(text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_members_by_name),
        cmocka_unit_test(goes_over_all_members),
        cmocka_unit_test(reads_what_jsonw_writes),
        cmocka_unit_test(reads_the_escapes_of_others),
        cmocka_unit_test(a_number_is_a_number_as_a_whole),
        cmocka_unit_test(damaged_text_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
