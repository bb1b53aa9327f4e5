/* SPDX-License-Identifier: MIT */
#include "http/ansi.h"

#include "base/macros.h"
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BAD "\xef\xbf\xbd" /* U+FFFD */

/* A line, and its HTML. */
struct row {
    const char *text;
    const char *html;
};

/* Append a line as a copy without a byte too many, for the sanitizer. */
static void
add(struct strbuf *out, struct ansi *ansi, const char *text, size_t len)
{
    char *copy = malloc(len > 0 ? len : 1);
    assert_non_null(copy);
    memcpy(copy, text, len);
    ansi_add(out, ansi, copy, len);
    free(copy);
}

static void expect(const char *text, size_t len, const char *html)
{
    struct strbuf out = {0};
    struct ansi ansi = {0};
    add(&out, &ansi, text, len);
    assert_string_equal(strbuf_text(&out), html);
    assert_true(utf8_is_valid(strbuf_text(&out), out.len));
    strbuf_release(&out);
}

static void expect_all(const struct row *rows, size_t count)
{
    for (size_t ix = 0; ix < count; ix++) {
        expect(rows[ix].text, strlen(rows[ix].text), rows[ix].html);
    }
}

static void styles_become_classes(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"", ""},
        {"plain", "plain"},
        {"\x1b[31mred", "<span class=\"a2 \">red</span>"},
        {"\x1b[30ma", "<span class=\"a1 \">a</span>"},
        {"\x1b[37ma", "<span class=\"a8 \">a</span>"},
        {"\x1b[90ma", "<span class=\"a9 \">a</span>"},
        {"\x1b[97ma", "<span class=\"a16 \">a</span>"},
        {"\x1b[1mbold", "<span class=\"ab \">bold</span>"},
        {"\x1b[2mfaint", "<span class=\"af\">faint</span>"},
        {"\x1b[1;2;32ma", "<span class=\"a3 ab af\">a</span>"},
        {"\x1b[31ma\x1b[mb", "<span class=\"a2 \">a</span>b"},
        {"\x1b[31ma\x1b[0mb", "<span class=\"a2 \">a</span>b"},
        {"\x1b[31;1ma\x1b[39mb",
         "<span class=\"a2 ab \">a</span><span class=\"ab \">b</span>"},
        {"\x1b[1;2ma\x1b[22mb", "<span class=\"ab af\">a</span>b"},
        {"\x1b[31m\x1b[32ma", "<span class=\"a3 \">a</span>"},
        {"\x1b[31;;1ma", "<span class=\"ab \">a</span>"}, /* none is 0 */
        {"\x1b[0031ma", "<span class=\"a2 \">a</span>"},
        {"\x1b[31m", ""},
    };
    expect_all(rows, ARRAY_COUNT(rows));
}

static void other_styles_are_ignored(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"\x1b[38;5;196ma", "a"},
        {"\x1b[48;5;1ma", "a"},
        {"\x1b[38;2;1;31;1ma", "a"},
        {"\x1b[38:5:1ma", "a"},
        {"\x1b[58;5;1ma", "a"}, /* colour of an underline */
        {"\x1b[4:1;4:2ma", "a"},
        {"\x1b[31;38;5;1ma", "<span class=\"a2 \">a</span>"},
        {"\x1b[4;7;41;100ma", "a"},
        {"\x1b[29;38ma", "a"},
        {"\x1b[89;98ma", "a"},
        {"\x1b[99999999999999999999931ma", "a"},
        /* Not styles, though they end in an m. */
        {"\x1b[31ma\x1b[>4;2mb",
         "<span class=\"a2 \">a</span><span class=\"a2 \">b</span>"},
        {"\x1b[?1ma", "a"},
        {"\x1b[1 ma", "a"},
    };
    expect_all(rows, ARRAY_COUNT(rows));
}

static void other_sequences_are_dropped(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"a\x1b[2Kb", "ab"},
        {"a\x1b[1;1Hb\x1b[?25lc", "abc"},
        {"a\x1b]0;title\x07"
         "b",
         "ab"},
        {"\x1b]8;;http://x.example\x1b\\a\x1b]8;;\x1b\\b", "ab"},
        {"a\x1bP1;2|data\x1b\\b", "ab"},
        {"a\x1b_data\x1b\\b\x1b^data\x07"
         "c\x1bXd\x1b\\d",
         "abcd"},
        {"a\x1b(Bb\x1b)0c\x1b#8d", "abcd"}, /* character sets */
        {"a\x1b"
         "7b\x1b"
         "8c\x1b=d\x1b>e\x1b"
         "Mf",
         "abcdef"},
    };
    expect_all(rows, ARRAY_COUNT(rows));
}

static void unterminated_sequences_take_no_text(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"a\x1b", "a"},
        {"a\x1b[", "a"},
        {"a\x1b[31", "a"},
        {"a\x1b[31;", "a"},
        {"a\x1b(", "a"},
        {"a\x1b]0;title", "a"},
        {"a\x1b]0;title\x1b", "a"},
        /* Another sequence begins before the end. */
        {"\x1b[3\x1b[31ma", "<span class=\"a2 \">a</span>"},
        {"\x1b]0;title\x1b[31ma", "<span class=\"a2 \">a</span>"},
        {"\x1b\x1b[31ma", "<span class=\"a2 \">a</span>"},
        /* A character is not torn. */
        {"\x1b[3\xc3\xa4", "\xc3\xa4"},
        {"\x1b\xc3\xa4", "\xc3\xa4"},
    };
    expect_all(rows, ARRAY_COUNT(rows));
}

static void nothing_becomes_markup(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"},
        {"\x1b[31m</span><b>\x1b[0m\"'&",
         "<span class=\"a2 \">&lt;/span&gt;&lt;b&gt;</span>&quot;&#39;&amp;"},
        {"<\x1b[0mb>", "&lt;b&gt;"},
        {"\x1b[31\"><b>m", "&gt;m"}, /* "b" is its end */
        {"\x1b]0;<b>\x07<i>", "&lt;i&gt;"},
    };
    expect_all(rows, ARRAY_COUNT(rows));
}

static void control_characters_are_replaced(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"10 %\r20 %\r", "10 % 20 % "},
        {"a\tb", "a       b"},
        {"\t", "        "},
        {"12345678\tb", "12345678        b"},
        {"a\bb\x07", "a" BAD "b" BAD},
        {"a\x7f", "a" BAD},
        {"\xc2\x9b"
         "31ma",
         BAD BAD "31ma"}, /* CSI in one character */
    };
    expect_all(rows, ARRAY_COUNT(rows));
    expect("a\0b", 3, "a b");
    expect("\0", 1, " ");
    expect("a\x1b\0b", 4, "a b");
    expect("a\x1b[3\0b", 6, "a b");
}

static void invalid_and_turning_characters_are_replaced(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"\xff", BAD},
        {"a\xc3", "a" BAD},
        {"\xc0\xaf", BAD BAD},
        {"\xed\xa0\x80", BAD BAD BAD},
        /* Right-to-left override, an isolate, and marks. */
        {"a\xe2\x80\xaez\xe2\x80\xac", "a" BAD "z" BAD},
        {"\xe2\x81\xa6z\xe2\x81\xa9", BAD "z" BAD},
        {"\xe2\x80\x8f\xd8\x9c", BAD BAD},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
         "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
    };
    expect_all(rows, ARRAY_COUNT(rows));
}

static void the_style_lasts_until_a_later_line(void **state)
{
    (void)state;
    struct strbuf out = {0};
    struct ansi ansi = {0};
    static const char *const lines[] = {"\x1b[1;31ma", "b", "", "c\x1b[md"};
    for (size_t ix = 0; ix < ARRAY_COUNT(lines); ix++) {
        add(&out, &ansi, lines[ix], strlen(lines[ix]));
        strbuf_adds(&out, "\n");
    }
    assert_string_equal(strbuf_text(&out),
                        "<span class=\"a2 ab \">a</span>\n"
                        "<span class=\"a2 ab \">b</span>\n"
                        "\n"
                        "<span class=\"a2 ab \">c</span>d\n");
    assert_int_equal(ansi.colour, 0);
    assert_false(ansi.bold || ansi.faint);
    strbuf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(styles_become_classes),
        cmocka_unit_test(other_styles_are_ignored),
        cmocka_unit_test(other_sequences_are_dropped),
        cmocka_unit_test(unterminated_sequences_take_no_text),
        cmocka_unit_test(nothing_becomes_markup),
        cmocka_unit_test(control_characters_are_replaced),
        cmocka_unit_test(invalid_and_turning_characters_are_replaced),
        cmocka_unit_test(the_style_lasts_until_a_later_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
