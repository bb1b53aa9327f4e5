/* SPDX-License-Identifier: MIT */
/* What git prints about changes, as the answer of sluice-git. */
#include "git/diff.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void a_text_is_valid_and_ends_with_a_line(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        bool cut;
        const char *text;
    } cases[] = {
        {"", 0, false, ""},
        {"", 0, true, ""},
        {"+a\n+b", 5, false, "+a\n+b"}, /* all of it */
        {"+a\n+b", 5, true, "+a\n"},
        {"+a\n", 3, true, "+a\n"},
        {"+ab", 3, true, ""},
        {"+a\0b\0\0\n", 7, false, "+ab\n"},
        {"\0\0", 2, false, ""},
        {"+\xe9\xff\n", 4, false, "+\?\?\n"},
        {"+\xc3\xa9\033[m\r\n", 8, false, "+\xc3\xa9\033[m\r\n"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        struct strbuf text = {0};
        strbuf_add(&text, cases[ix].bytes, cases[ix].len);
        assert_int_equal(diff_clean(&text, cases[ix].cut), cases[ix].cut);
        assert_string_equal(strbuf_text(&text), cases[ix].text);
        assert_int_equal(text.len, strlen(cases[ix].text));
        strbuf_release(&text);
    }
}

static void a_long_text_is_cut_after_a_line(void **state)
{
    (void)state;
    for (size_t more = 0; more < 3; more++) {
        struct strbuf text = {0};
        strbuf_pad(&text, 'x', DIFF_TEXT_BYTES_MAX - 2);
        strbuf_adds(&text, "\n");
        strbuf_pad(&text, 'y', more);
        assert_int_equal(diff_clean(&text, false), more == 2);
        assert_int_equal(text.len,
                         DIFF_TEXT_BYTES_MAX - 1 + (more == 1 ? 1 : 0));
        strbuf_release(&text);
    }
}

/* A literal with NUL bytes as a list. */
static struct strbuf list_of(const char *bytes, size_t len)
{
    struct strbuf list = {0};
    strbuf_add(&list, bytes, len);
    return list;
}

static void files_are_listed(void **state)
{
    (void)state;
    static const char bytes[] =
        "1\t2\ta b\0-\t-\tpicture\0003\t0\t\0old\tname\0"
        "new\nname\0000\t0\t-dash\0";
    struct strbuf list = list_of(bytes, sizeof(bytes) - 1);
    struct strbuf out = {0};
    assert_false(diff_add_files(&out, &list, false));
    assert_string_equal(
        strbuf_text(&out),
        "{\"path\":\"a b\",\"old_path\":null,\"added\":1,\"removed\":2,"
        "\"binary\":false},"
        "{\"path\":\"picture\",\"old_path\":null,\"added\":null,"
        "\"removed\":null,\"binary\":true},"
        "{\"path\":\"new\\u000aname\",\"old_path\":\"old\\u0009name\","
        "\"added\":3,"
        "\"removed\":0,\"binary\":false},"
        "{\"path\":\"-dash\",\"old_path\":null,\"added\":0,\"removed\":0,"
        "\"binary\":false}");
    strbuf_release(&out);

    /* Of any part of it, only whole files are listed. */
    for (size_t len = 0; len < list.len; len++) {
        struct strbuf part = list_of(bytes, len);
        assert_true(diff_add_files(&out, &part, true));
        assert_true(out.len == 0 || out.text[out.len - 1] == '}');
        assert_null(strstr(strbuf_text(&out), "-dash"));
        strbuf_clear(&out);
        strbuf_release(&part);
    }
    strbuf_release(&out);
    strbuf_release(&list);
}

static void a_list_has_a_limit(void **state)
{
    (void)state;
    for (uint32_t count = DIFF_FILES_MAX - 1; count <= DIFF_FILES_MAX + 1;
         count++) {
        struct strbuf list = {0};
        struct strbuf out = {0};
        for (uint32_t ix = 0; ix < count; ix++) {
            strbuf_add(&list, "1\t0\tx", sizeof("1\t0\tx"));
        }
        assert_int_equal(diff_add_files(&out, &list, false),
                         count > DIFF_FILES_MAX);
        uint32_t found = 0;
        for (size_t ix = 0; ix < out.len; ix++) {
            found += out.text[ix] == '{' ? 1 : 0;
        }
        assert_int_equal(found,
                         count < DIFF_FILES_MAX ? count : DIFF_FILES_MAX);
        strbuf_release(&list);
        strbuf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_valid_and_ends_with_a_line),
        cmocka_unit_test(a_long_text_is_cut_after_a_line),
        cmocka_unit_test(files_are_listed),
        cmocka_unit_test(a_list_has_a_limit),
    };
    return cmocka_run_group_tests_name("git_diff", tests, NULL, NULL);
}
