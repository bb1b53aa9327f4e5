/* SPDX-License-Identifier: MIT */
#include "base/strip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Whole, and cut into pieces at every place, it must give `wanted`. */
static void expect(const char *text, size_t len, const char *wanted)
{
    for (size_t cut = 0; cut <= len; cut++) {
        struct strip strip = {0};
        struct strbuf out = {0};
        strip_add(&strip, &out, text, cut);
        strip_add(&strip, &out, text + cut, len - cut);
        strip_end(&strip, &out);
        assert_string_equal(strbuf_text(&out), wanted);
        strbuf_release(&out);
    }
}

static void expect_text(const char *text, const char *wanted)
{
    expect(text, strlen(text), wanted);
}

static void text_stays_as_it_is(void **state)
{
    (void)state;
    expect_text("", "");
    expect_text("a line\n\tand another\r\n", "a line\n\tand another\r\n");
    expect_text("\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80",
                "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
}

static void colours_and_cursor_movements_go(void **state)
{
    (void)state;
    expect_text("\x1b[1;31mred\x1b[0m", "red");
    expect_text("a\x1b[2J\x1b[Hb", "ab");
    expect_text("a\xc2\x9b"
                "31mb",
                "ab"); /* the one-character form */
    expect_text("a\x1b(Bb\x1b=c\x1b#8d", "abcd");
}

static void titles_links_and_clipboards_go(void **state)
{
    (void)state;
    expect_text("a\x1b]0;title\x07"
                "b",
                "ab");
    expect_text("a\x1b]52;c;c2VjcmV0\x1b\\b", "ab");
    expect_text("\x1b]8;;http://x\x1b\\here\x1b]8;;\x1b\\", "here");
    expect_text("a\xc2\x9d"
                "0;title\xc2\x9c"
                "b",
                "ab");
    expect_text("a\x1bPq#0\x1b\\b\x1b_x\x1b\\c\x1b^y\x1b\\d\x1bXz\x1b\\e",
                "abcde");
}

static void control_characters_go(void **state)
{
    (void)state;
    expect("a\0b\x07\x08\x0b\x0c\x0e\x7f"
           "c",
           10,
           "abc");
    expect_text("a\xc2\x85"
                "b",
                "ab");
}

static void what_turns_the_direction_goes(void **state)
{
    (void)state;
    /* U+202E and U+2066; not as text, so that this file can be read. */
    static const char text[] =
        {'a', '\xe2', '\x80', '\xae', 'b', '\xe2', '\x81', '\xa6', 'c'};
    expect(text, sizeof(text), "abc");
}

static void an_unfinished_sequence_hides_at_most_its_line(void **state)
{
    (void)state;
    expect_text("a\x1b]0;never ended\nb\n", "a\nb\n");
    expect_text("a\x1b[12\nb", "a\nb");
    expect_text("a\x1b\nb", "a\nb");
    expect_text("a\x1b[1\x1b[2Kb", "ab");
    expect_text("a\x1b[1\xc3\xa4", "a\xc3\xa4");
}

static void bytes_that_are_not_utf8_become_question_marks(void **state)
{
    (void)state;
    expect_text("a\xff"
                "b",
                "a?b");
    expect_text("a\xc3"
                "b",
                "a?b");
    expect_text("\xc0\xaf", "??");        /* a slash, written longer */
    expect_text("\xe0\x80\xaf", "?");     /* the same */
    expect_text("\xed\xa0\x80", "?");     /* half of a pair */
    expect_text("\xf4\x90\x80\x80", "?"); /* beyond the last one */
    expect_text("end \xe2\x82", "end ?");
    expect_text("\x9b"
                "31m",
                "?31m");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_stays_as_it_is),
        cmocka_unit_test(colours_and_cursor_movements_go),
        cmocka_unit_test(titles_links_and_clipboards_go),
        cmocka_unit_test(control_characters_go),
        cmocka_unit_test(what_turns_the_direction_goes),
        cmocka_unit_test(an_unfinished_sequence_hides_at_most_its_line),
        cmocka_unit_test(bytes_that_are_not_utf8_become_question_marks),
    };
    return cmocka_run_group_tests_name("strip", tests, NULL, NULL);
}
