/* SPDX-License-Identifier: MIT */
/* Cells: clipping, wide characters, nothing that a terminal would obey. */
#include "term/grid.h"

#include "term/pager.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_text(const struct grid *grid, const char *wanted)
{
    struct strbuf out = {0};
    grid_add_text(&out, grid);
    assert_string_equal(strbuf_text(&out), wanted);
    strbuf_release(&out);
}

static uint32_t put(struct grid *grid,
                    const struct grid_area *area,
                    uint32_t row,
                    uint32_t column,
                    const char *text)
{
    return grid_put(grid,
                    area,
                    &(struct grid_text){
                        .row = row,
                        .column = column,
                        .columns = UINT32_MAX,
                        .text = text,
                    });
}

static void puts_a_text_and_says_its_columns(void **state)
{
    (void)state;
    struct grid grid = {0};
    grid_resize(&grid, 8, 2);
    struct grid_area all = grid_whole(&grid);
    assert_int_equal(put(&grid, &all, 1, 2, "abc"), 3);
    assert_text(&grid, "\n  abc\n");
    grid_release(&grid);
}

static void cuts_what_is_too_long(void **state)
{
    (void)state;
    struct grid grid = {0};
    grid_resize(&grid, 8, 3);
    struct grid_area all = grid_whole(&grid);
    assert_int_equal(put(&grid, &all, 0, 0, "12345678"), 8);
    assert_int_equal(put(&grid, &all, 1, 0, "123456789"), 8);
    assert_int_equal(put(&grid, &all, 2, 6, "123"), 2);
    assert_text(&grid, "12345678\n12345...\n      ..\n");
    grid_release(&grid);
}

static void draws_nothing_outside_of_an_area(void **state)
{
    (void)state;
    struct grid grid = {0};
    grid_resize(&grid, 6, 3);
    struct grid_area rest = grid_whole(&grid);
    struct grid_area top = grid_take_rows(&rest, 1);
    struct grid_area left = grid_take_columns(&rest, 3);
    struct grid_area far = {.column = 5, .row = 2, .columns = 9, .rows = 9};
    (void)put(&grid, &top, 1, 0, "no");
    (void)put(&grid, &left, 0, 3, "no");
    (void)put(&grid, &left, 1, 1, "yes");
    (void)put(&grid, &far, 0, 0, "x");
    (void)put(&grid, &far, 1, 0, "no");
    (void)put(&grid, &far, 0, UINT32_MAX, "no");
    assert_text(&grid, "\n\n ..  x\n");
    grid_mark(&grid, &far, 0, GRID_BOLD);
    grid_mark(&grid, &far, 7, GRID_BOLD);
    assert_int_equal(grid_at(&grid, 5, 2)->style, GRID_BOLD);
    assert_int_equal(grid_at(&grid, 4, 2)->style, GRID_PLAIN);
    grid_release(&grid);
}

static void wide_characters_take_two_cells(void **state)
{
    (void)state;
    struct grid grid = {0};
    grid_resize(&grid, 5, 3);
    struct grid_area all = grid_whole(&grid);
    assert_int_equal(put(&grid, &all, 0, 0, "\u6f22\u5b57"), 4);
    assert_int_equal(grid_at(&grid, 0, 0)->columns, 2);
    assert_int_equal(grid_at(&grid, 1, 0)->columns, 0);
    /* One that would stick out is left out, and the text cut before it. */
    assert_int_equal(put(&grid, &all, 1, 0, "\u6f22\u5b57\u6f22"), 5);
    struct grid_text edge = {.row = 2, .column = 4};
    assert_int_equal(grid_put_code(&grid, &all, &edge, 0x6f22), 2);
    assert_text(&grid, "\u6f22\u5b57\n\u6f22...\n\n");
    grid_release(&grid);
}

static void half_of_a_wide_character_is_never_left(void **state)
{
    (void)state;
    struct grid grid = {0};
    grid_resize(&grid, 6, 2);
    struct grid_area all = grid_whole(&grid);
    (void)put(&grid, &all, 0, 0, "\u6f22\u5b57\u6f22");
    (void)put(&grid, &all, 0, 1, "x");
    (void)put(&grid, &all, 0, 4, "y");
    (void)put(&grid, &all, 1, 0, "\u6f22\u5b57");
    (void)put(&grid, &all, 1, 1, "\u5b57");
    assert_text(&grid, " x\u5b57y\n \u5b57\n");
    grid_release(&grid);
}

static void no_control_character_gets_into_a_cell(void **state)
{
    (void)state;
    struct grid grid = {0};
    grid_resize(&grid, 20, 6);
    struct grid_area all = grid_whole(&grid);
    (void)put(&grid, &all, 0, 0, "\x1b[31mred\a\b\t\r\n");
    (void)put(&grid,
              &all,
              1,
              0,
              "\xc2\x9b"
              "2J\x7f");
    (void)put(&grid,
              &all,
              2,
              0,
              "a\xe2\x80\xae"
              "b\u200b"
              "c\u0301\xe2\x80\xac");
    (void)put(&grid, &all, 3, 0, "\xff\xfe\xc3(\xe2\x82");
    (void)put(&grid, &all, 4, 0, "\xf7\xbf\xbf\xbf\xed\xa0\x80");
    for (uint32_t code = 0; code < 0x120; code++) {
        struct grid_text place = {.row = 5};
        (void)grid_put_code(&grid, &all, &place, code);
        uint32_t got = grid_at(&grid, 0, 5)->code;
        assert_true(got >= 0x20 && (got < 0x7f || got >= 0xa0));
    }
    assert_text(&grid,
                "?[31mred?????\n"
                "?2J?\n"
                "abc\n"
                "\u00ff\u00fe\u00c3(\u00e2?\n"
                "??\n"
                "\u011f\n");
    grid_release(&grid);
}

static void sizes_are_bounded(void **state)
{
    (void)state;
    struct grid grid = {0};
    grid_resize(&grid, UINT32_MAX, 3);
    assert_int_equal(grid.columns, GRID_SIDE_MAX);
    grid_resize(&grid, 0, 0);
    struct grid_area all = grid_whole(&grid);
    assert_int_equal(put(&grid, &all, 0, 0, "x"), 0);
    grid_fill(&grid, &all, &(struct grid_text){.columns = 9}, '#');
    assert_text(&grid, "");
    grid_resize(&grid, 3, 1);
    all = grid_whole(&grid);
    grid_fill(&grid, &all, &(struct grid_text){.columns = 9}, '#');
    assert_text(&grid, "###\n");
    grid_release(&grid);
}

/* --- the pager ---------------------------------------------------------- */

static void add(struct pager *pager, const char *text)
{
    pager_add(pager, text, strlen(text));
}

static void assert_page(struct pager *pager,
                        uint32_t columns,
                        uint32_t rows,
                        const char *wanted)
{
    struct grid grid = {0};
    grid_resize(&grid, columns, rows);
    struct grid_area all = grid_whole(&grid);
    pager_draw(pager, &grid, &all);
    assert_text(&grid, wanted);
    grid_release(&grid);
}

static void pager_follows_the_end(void **state)
{
    (void)state;
    struct pager pager = {0};
    pager_open(&pager, true);
    assert_true(pager_is_empty(&pager));
    assert_page(&pager, 5, 2, "\n\n");
    add(&pager, "one\ntw");
    assert_page(&pager, 5, 2, "one\ntw\n");
    add(&pager, "o\nthree\n");
    assert_false(pager_is_empty(&pager));
    assert_page(&pager, 5, 2, "two\nthree\n");
    pager_move(&pager, -1);
    assert_false(pager.follow);
    add(&pager, "four\n");
    assert_page(&pager, 5, 2, "one\ntwo\n");
    pager_move(&pager, 99);
    assert_true(pager.follow);
    assert_page(&pager, 5, 2, "three\nfour\n");
    pager_home(&pager);
    assert_page(&pager, 5, 2, "one\ntwo\n");
    pager_end(&pager);
    assert_page(&pager, 5, 2, "three\nfour\n");
    pager_release(&pager);
}

static void pager_wraps_lines_that_are_too_long(void **state)
{
    (void)state;
    struct pager pager = {0};
    pager_open(&pager, true);
    add(&pager, "0123456789abc\nx\n");
    assert_page(&pager, 5, 3, "56789\nabc\nx\n");
    pager_move(&pager, -1);
    assert_page(&pager, 5, 3, "01234\n56789\nabc\n");
    pager_move(&pager, -1);
    assert_page(&pager, 5, 3, "01234\n56789\nabc\n");
    assert_page(&pager, 20, 3, "0123456789abc\nx\n\n");
    assert_page(&pager, 1, 2, "0\n1\n");
    assert_page(&pager, 0, 0, "");
    pager_release(&pager);
}

static void pager_shows_what_a_terminal_would(void **state)
{
    (void)state;
    struct pager pager = {0};
    pager_open(&pager, false);
    add(&pager, "a\tb\r\n10 %\r20 %\r");
    add(&pager, "30 %\n\x1b[31mred\x1b[0m\x1b]0;title\a!\n");
    assert_page(&pager, 20, 4, "a       b\n30 %\nred!\n\n");
    pager_release(&pager);
}

static void pager_forgets_the_beginning_of_long_texts(void **state)
{
    (void)state;
    struct pager pager = {0};
    struct strbuf line = {0};
    pager_open(&pager, true);
    strbuf_pad(&line, 'x', 1023);
    strbuf_adds(&line, "\n");
    for (uint32_t ix = 0; ix < 10000; ix++) {
        pager_add(&pager, line.text, line.len);
    }
    assert_true(pager.cut);
    assert_true(pager.text.len <= PAGER_BYTES_MAX);
    assert_true(pager.text.len >= PAGER_BYTES_MAX / 2 - 2048);
    assert_page(&pager, 3, 2, "xxx\nxxx\n");
    pager_open(&pager, true);
    assert_false(pager.cut);
    strbuf_clear(&line);
    strbuf_pad(&line, 'y', PAGER_BYTES_MAX + 1000);
    pager_add(&pager, line.text, line.len);
    assert_true(pager.cut);
    assert_true(pager.text.len <= PAGER_BYTES_MAX);
    assert_page(&pager, 4, 1, "yyyy\n");
    pager_release(&pager);
    strbuf_release(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(puts_a_text_and_says_its_columns),
        cmocka_unit_test(cuts_what_is_too_long),
        cmocka_unit_test(draws_nothing_outside_of_an_area),
        cmocka_unit_test(wide_characters_take_two_cells),
        cmocka_unit_test(half_of_a_wide_character_is_never_left),
        cmocka_unit_test(no_control_character_gets_into_a_cell),
        cmocka_unit_test(sizes_are_bounded),
        cmocka_unit_test(pager_follows_the_end),
        cmocka_unit_test(pager_wraps_lines_that_are_too_long),
        cmocka_unit_test(pager_shows_what_a_terminal_would),
        cmocka_unit_test(pager_forgets_the_beginning_of_long_texts),
    };
    if (setlocale(LC_ALL, "C.UTF-8") == NULL) {
        return EXIT_FAILURE;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
