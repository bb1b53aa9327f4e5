/* SPDX-License-Identifier: MIT */
/*
 * Terminal output with ncurses. ncurses keeps its state in globals, so only one
 * screen can be open. Its contents are in ncurses' own buffer: the whole grid
 * is copied there, and ncurses computes what to send.
 *
 * The size is read from the terminal, not from ncurses, whose SIGWINCH handler
 * never runs: see cmd_top.c.
 */
#include "term/screen.h"

#include "base/mem.h"
#include "term/live.h"
#include "term/top.h"

#ifdef SLUICE_NCURSES

#include <curses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <unistd.h>
#include <wchar.h>

/* Macros of <term.h> that clash with names here. */
#undef columns
#undef lines

enum {
    ESCAPE_MS = 100, /* time for the rest of a key's sequence */
    COLOURS = 8,
};

struct screen {
    SCREEN *curses;
    bool colours;
    cchar_t *line; /* buffer for one row */
    uint32_t columns;
};

/* Check that the terminal can move its cursor; *diag has the reason if not. */
static enum err check_terminal(struct diag *diag)
{
    const char *term = getenv("TERM");
    int result = 0;
    if (term == NULL || term[0] == '\0') {
        return diag_set(diag,
                        ERR_UNAVAILABLE,
                        "TERM is not set; use 'sluice status' instead");
    }
    bool known = setupterm(term, STDOUT_FILENO, &result) == OK;
    char *moves = known ? tigetstr("cup") : NULL;
    bool able = moves != NULL && (intptr_t)moves != -1;
    if (known) {
        (void)del_curterm(cur_term);
    }
    if (!able) {
        return diag_set(
            diag,
            ERR_UNAVAILABLE,
            known
                ? "the terminal \"%s\" cannot move its cursor; use 'sluice "
                  "status' instead"
                : "unknown terminal \"%s\" (TERM); use 'sluice status' instead",
            term);
    }
    return ERR_OK;
}

static void start_colours(struct screen *screen)
{
    screen->colours = has_colors() && start_color() == OK;
    if (!screen->colours) {
        return;
    }
    short background =
        use_default_colors() == OK ? (short)-1 : (short)COLOR_BLACK;
    for (int ix = 1; ix < COLOURS; ix++) {
        if (init_pair((short)ix, (short)ix, background) != OK) {
            screen->colours = false;
            return;
        }
    }
}

enum err screen_open(struct screen **out, bool colours, struct diag *diag)
{
    *out = NULL;
    enum err err = check_terminal(diag);
    if (err != ERR_OK) {
        return err;
    }
    SCREEN *curses = newterm(NULL, stdout, stdin);
    if (curses == NULL) {
        return diag_set(diag,
                        ERR_UNAVAILABLE,
                        "unusable terminal; use 'sluice status' instead");
    }
    struct screen *screen = mem_zalloc(1, sizeof(*screen));
    screen->curses = curses;
    (void)set_term(curses);
    /* A failure only means that the terminal lacks a convenience. */
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)set_escdelay(ESCAPE_MS);
    (void)intrflush(stdscr, FALSE);
    (void)keypad(stdscr, TRUE);
    (void)nodelay(stdscr, TRUE);
    (void)curs_set(0);
    if (colours) {
        start_colours(screen);
    }
    *out = screen;
    return ERR_OK;
}

void screen_close(struct screen *screen)
{
    if (screen != NULL) {
        /* Without an alternate screen the picture stays: later output starts on
         * a clean line below it. */
        (void)move(LINES - 1, 0);
        (void)clrtoeol();
        (void)refresh();
        (void)curs_set(1);
        (void)endwin();
        delscreen(screen->curses);
        mem_free(screen->line);
        mem_free(screen);
    }
}

void screen_size(struct screen *screen, uint32_t *columns, uint32_t *rows)
{
    (void)screen;
    struct winsize size = live_terminal_size();
    *columns = size.ws_col;
    *rows = size.ws_row;
    if ((size.ws_col != COLS || size.ws_row != LINES) &&
        resizeterm(size.ws_row, size.ws_col) == OK) {
        (void)clearok(stdscr, TRUE); /* redraw everything */
    }
}

static attr_t attributes(uint8_t style)
{
    attr_t found = A_NORMAL;
    found |= (style & GRID_BOLD) != 0 ? A_BOLD : 0;
    found |= (style & GRID_DIM) != 0 ? A_DIM : 0;
    found |= (style & GRID_REVERSE) != 0 ? A_REVERSE : 0;
    return found;
}

/* Copy one row; the second half of a wide character has no cchar_t. */
static int
fill_line(struct screen *screen, const struct grid *grid, uint32_t row)
{
    int count = 0;
    for (uint32_t column = 0; column < grid->columns; column++) {
        const struct grid_cell *cell = grid_at(grid, column, row);
        if (cell->columns == 0) {
            continue;
        }
        wchar_t text[2] = {(wchar_t)cell->code, L'\0'};
        short pair =
            screen->colours ? (short)(cell->style & GRID_COLOUR) : (short)0;
        cchar_t *place = &screen->line[count];
        if (setcchar(place, text, attributes(cell->style), pair, NULL) == OK) {
            count++;
        }
    }
    return count;
}

void screen_show(struct screen *screen, const struct grid *grid)
{
    if (grid->columns != screen->columns) {
        mem_free(screen->line);
        screen->line = mem_zalloc(grid->columns + 1, sizeof(screen->line[0]));
        screen->columns = grid->columns;
    }
    (void)erase();
    for (uint32_t row = 0; row < grid->rows; row++) {
        int count = fill_line(screen, grid, row);
        /* Fails outside a terminal that became smaller. */
        (void)mvadd_wchnstr((int)row, 0, screen->line, count);
    }
    (void)refresh();
}

int32_t screen_key(struct screen *screen)
{
    (void)screen;
    static const struct {
        int curses;
        enum top_key key;
    } keys[] = {
        {'\b', TOP_KEY_BACKSPACE},
        {'\t', TOP_KEY_TAB},
        {'\n', TOP_KEY_ENTER},
        {'\r', TOP_KEY_ENTER},
        {0x1b, TOP_KEY_ESCAPE},
        {0x7f, TOP_KEY_BACKSPACE},
        {KEY_BACKSPACE, TOP_KEY_BACKSPACE},
        {KEY_BTAB, TOP_KEY_BACK_TAB},
        {KEY_DOWN, TOP_KEY_DOWN},
        {KEY_END, TOP_KEY_END},
        {KEY_ENTER, TOP_KEY_ENTER},
        {KEY_HOME, TOP_KEY_HOME},
        {KEY_NPAGE, TOP_KEY_PAGE_DOWN},
        {KEY_PPAGE, TOP_KEY_PAGE_UP},
        {KEY_UP, TOP_KEY_UP},
    };
    int key = getch();
    if (key == ERR) {
        return SCREEN_NO_KEY;
    }
    for (size_t ix = 0; ix < sizeof(keys) / sizeof(keys[0]); ix++) {
        if (keys[ix].curses == key) {
            return (int32_t)keys[ix].key;
        }
    }
    return key >= ' ' && key < 0x7f ? key : (int32_t)TOP_KEY_OTHER;
}

#else

enum err screen_open(struct screen **out, bool colours, struct diag *diag)
{
    (void)colours;
    *out = NULL;
    return diag_set(
        diag,
        ERR_UNAVAILABLE,
        "this sluice was built without ncurses; use 'sluice status' instead");
}

void screen_close(struct screen *screen)
{
    (void)screen;
}

void screen_size(struct screen *screen, uint32_t *columns, uint32_t *rows)
{
    (void)screen;
    *columns = 0;
    *rows = 0;
}

void screen_show(struct screen *screen, const struct grid *grid)
{
    (void)screen;
    (void)grid;
}

int32_t screen_key(struct screen *screen)
{
    (void)screen;
    return SCREEN_NO_KEY;
}

#endif
