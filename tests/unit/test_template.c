/* SPDX-License-Identifier: MIT */
#include "adapter/template.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const values[TEMPLATE_COUNT] = {
    [TEMPLATE_BODY] = "a {{title}} \\{{ body",
    [TEMPLATE_ID] = "api-1",
    [TEMPLATE_TITLE] = "Title",
};

/* Require an expansion, and that it used `name` and nothing else. */
static void expect(const char *text, const char *expansion, uint32_t name)
{
    struct strbuf out = {0};
    bool used[TEMPLATE_COUNT];
    template_expand(&out, text, values, used);
    assert_string_equal(strbuf_text(&out), expansion);
    for (uint32_t ix = 0; ix < TEMPLATE_COUNT; ix++) {
        assert_int_equal(used[ix], ix == name);
    }
    strbuf_release(&out);
}

static void names_are_replaced(void **state)
{
    (void)state;
    expect("{{id}}", "api-1", TEMPLATE_ID);
    expect("<{{ id }}>", "<api-1>", TEMPLATE_ID);
    expect("{{id}}{{\tid}}", "api-1api-1", TEMPLATE_ID);
    expect("no value: {{answer}}.", "no value: .", TEMPLATE_ANSWER);
}

static void values_are_not_expanded_again(void **state)
{
    (void)state;
    expect("{{body}}", "a {{title}} \\{{ body", TEMPLATE_BODY);
}

static void everything_else_stays(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "{",
        "{{",
        "}}",
        "{{id",
        "{{id}",
        "{ {id}}",
        "{{}}",
        "{{unknown}}",
        "{{ID}}",
        "{{i d}}",
        "{{{id}}",
        "\\",
        "a\\b \\{ x",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(texts); ix++) {
        expect(texts[ix], texts[ix], TEMPLATE_COUNT);
    }
}

static void a_backslash_keeps_braces(void **state)
{
    (void)state;
    expect("\\{{id}}", "{{id}}", TEMPLATE_COUNT);
    expect("\\{{id}} {{id}}", "{{id}} api-1", TEMPLATE_ID);
    expect("\\{{", "{{", TEMPLATE_COUNT);
}

static void unknown_names_are_found(void **state)
{
    (void)state;
    char bad[64] = "";
    assert_true(template_check("{{id}} {{ title }} \\{{x}}", bad, sizeof(bad)));
    assert_false(template_check("{{id}} {{ titel }}", bad, sizeof(bad)));
    assert_string_equal(bad, "titel");
    assert_false(template_check("{{}}", bad, sizeof(bad)));
    assert_string_equal(bad, "");
}

/* As long as it is, its time grows with its length and no faster. */
static void a_long_text_is_no_trouble(void **state)
{
    (void)state;
    struct strbuf text = {0};
    struct strbuf out = {0};
    bool used[TEMPLATE_COUNT];
    for (int ix = 0; ix < 400000; ix++) {
        strbuf_adds(&text, "\\{{");
    }
    strbuf_adds(&text, "}}");
    template_expand(&out, strbuf_text(&text), values, used);
    assert_int_equal(out.len, 400000 * 2 + 2);
    strbuf_release(&text);
    strbuf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_replaced),
        cmocka_unit_test(values_are_not_expanded_again),
        cmocka_unit_test(everything_else_stays),
        cmocka_unit_test(a_backslash_keeps_braces),
        cmocka_unit_test(unknown_names_are_found),
        cmocka_unit_test(a_long_text_is_no_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
