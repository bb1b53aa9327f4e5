/* SPDX-License-Identifier: MIT */
#include "cli/qr.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { SIDE = 29 /* version 1, with its margin */ };

static const char begin[] = "\x1b[38;5;16;48;5;231m";
static const char end[] = "\x1b[0m\n";

/* Read lines of half blocks back; the number of rows of modules. */
static int read_code(const char *text, char out[SIDE + 1][SIDE])
{
    static const struct {
        const char *text;
        const char *modules; /* upper, lower */
    } blocks[] = {
        {" ", ".."},
        {"\xe2\x96\x84", ".#"},
        {"\xe2\x96\x80", "#."},
        {"\xe2\x96\x88", "##"},
    };
    int row = 0;
    for (; *text != '\0'; row += 2) {
        assert_true(row <= SIDE);
        assert_int_equal(strncmp(text, begin, strlen(begin)), 0);
        text += strlen(begin);
        for (int column = 0; column < SIDE; column++) {
            size_t ix = 0;
            while (strncmp(text, blocks[ix].text, strlen(blocks[ix].text)) !=
                   0) {
                ix++;
                assert_true(ix < ARRAY_COUNT(blocks));
            }
            text += strlen(blocks[ix].text);
            out[row][column] = blocks[ix].modules[0];
            out[row + 1][column] = blocks[ix].modules[1];
        }
        assert_int_equal(strncmp(text, end, strlen(end)), 0);
        text += strlen(end);
    }
    return row;
}

/* Where scanners look: the margin, three of the corners, and the lines between
 * them. tests/scenario/serve-run decodes a code. */
static void a_code_has_what_scanners_look_for(void **state)
{
    (void)state;
    static const char *const corner[] = {
        "#######.",
        "#.....#.",
        "#.###.#.",
        "#.###.#.",
        "#.###.#.",
        "#.....#.",
        "#######.",
        "........",
    };
    struct strbuf text = {0};
    char modules[SIDE + 1][SIDE];
    const int last = SIDE - 4 - 1; /* of the code */
    int same = 0;
    assert_true(qr_add(&text, "sluice", SIDE));
    assert_int_equal(read_code(strbuf_text(&text), modules), SIDE + 1);
    for (int row = 0; row <= SIDE; row++) {
        for (int column = 0; column < SIDE; column++) {
            bool inside =
                row >= 4 && row <= last && column >= 4 && column <= last;
            assert_true(inside || modules[row][column] == '.');
        }
    }
    for (int row = 0; row < 8; row++) {
        for (int column = 0; column < 8; column++) {
            char module = corner[row][column];
            assert_int_equal(modules[4 + row][4 + column], module);
            assert_int_equal(modules[4 + row][last - column], module);
            assert_int_equal(modules[last - row][4 + column], module);
            same += modules[last - row][last - column] == module ? 1 : 0;
        }
    }
    assert_true(same < 64);
    for (int at = 8; at < 13; at++) {
        char module = at % 2 == 0 ? '#' : '.';
        assert_int_equal(modules[4 + 6][4 + at], module);
        assert_int_equal(modules[4 + at][4 + 6], module);
    }
    strbuf_release(&text);
}

static void a_code_that_does_not_fit_is_left_out(void **state)
{
    (void)state;
    struct strbuf text = {0};
    char *large = test_calloc(1, 4001);
    memset(large, 'x', 4000);
    assert_false(qr_add(&text, "sluice", SIDE - 1));
    assert_false(qr_add(&text, "sluice", 0));
    assert_false(qr_add(&text, large, UINT32_MAX));
    assert_false(qr_add(&text, "", 80));
    assert_int_equal(text.len, 0);
    test_free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_code_has_what_scanners_look_for),
        cmocka_unit_test(a_code_that_does_not_fit_is_left_out),
    };
    return cmocka_run_group_tests_name("qr", tests, NULL, NULL);
}
