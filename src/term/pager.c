/* SPDX-License-Identifier: MIT */
/*
 * Scrolling text. Lines are split into rows when drawn: only visible lines are
 * processed, and a change of the terminal width costs nothing. A position is a
 * line and a row in it, so that a line longer than the screen is readable, too.
 */
#include "term/pager.h"

#include "base/invariant.h"
#include "base/mem.h"
#include "base/plain.h"

#include <string.h>

enum { TAB_COLUMNS = 8 };

void pager_open(struct pager *pager, bool follow)
{
    pager_release(pager);
    pager->follow = follow;
    pager->lines = mem_resize(NULL, 1, sizeof(pager->lines[0]));
    pager->lines[0] = 0;
    pager->line_count = 1;
}

void pager_release(struct pager *pager)
{
    strbuf_release(&pager->text);
    mem_free(pager->lines);
    *pager = (struct pager){0};
}

bool pager_is_empty(const struct pager *pager)
{
    return pager->line_count <= 1 && pager->text.len == 0;
}

/* --- input -------------------------------------------------------------- */

static void end_line(struct pager *pager)
{
    strbuf_add(&pager->text, "", 1);
    pager->lines = mem_resize(pager->lines,
                              pager->line_count + 1,
                              sizeof(pager->lines[0]));
    pager->lines[pager->line_count++] = pager->text.len;
    pager->column = 0;
}

/* Handle a carriage return without a newline: rewrite the line. */
static void restart_line(struct pager *pager)
{
    size_t begin = pager->lines[pager->line_count - 1];
    pager->text.len = begin;
    if (pager->text.text != NULL) {
        pager->text.text[begin] = '\0';
    }
    pager->column = 0;
}

static void take(struct pager *pager, const char *at, uint32_t bytes)
{
    if (*at == '\n') {
        pager->returned = false;
        end_line(pager);
        return;
    }
    if (*at == '\r') {
        pager->returned = true;
        return;
    }
    if (pager->returned) {
        pager->returned = false;
        restart_line(pager);
    }
    if (*at == '\t') {
        uint32_t wide = TAB_COLUMNS - pager->column % TAB_COLUMNS;
        strbuf_pad(&pager->text, ' ', wide);
        pager->column += wide;
        return;
    }
    strbuf_add(&pager->text, at, bytes);
    pager->column++;
}

/* Drop the first half of the text, in whole lines if possible. */
static void forget(struct pager *pager)
{
    size_t half = pager->text.len / 2;
    uint32_t gone = 0;
    while (gone + 1 < pager->line_count && pager->lines[gone] < half) {
        gone++;
    }
    size_t bytes = pager->lines[gone];
    if (bytes == 0) { /* a single line: keep its end */
        bytes = half;
    }
    memmove(pager->text.text,
            pager->text.text + bytes,
            pager->text.len - bytes + 1);
    pager->text.len -= bytes;
    pager->line_count -= gone;
    for (uint32_t ix = 0; ix < pager->line_count; ix++) {
        size_t begin = pager->lines[ix + gone];
        pager->lines[ix] = begin > bytes ? begin - bytes : 0;
    }
    bool lost = pager->at.line < gone;
    pager->at.line = lost ? 0 : pager->at.line - gone;
    pager->at.row = lost ? 0 : pager->at.row;
    pager->cut = true;
}

void pager_add(struct pager *pager, const char *bytes, size_t len)
{
    INVARIANT(pager->line_count > 0);
    struct strbuf clean = {0};
    strip_add(&pager->strip, &clean, bytes, len);
    const char *text = strbuf_text(&clean);
    for (size_t ix = 0; ix < clean.len;) {
        uint32_t next = 1;
        if (text[ix] != '\0') {
            next = plain_decode(text + ix).bytes;
            take(pager, text + ix, next);
        }
        ix += next;
        if (pager->text.len > PAGER_BYTES_MAX) {
            forget(pager);
        }
    }
    strbuf_release(&clean);
}

/* --- rows --------------------------------------------------------------- */

static const char *line_at(const struct pager *pager, uint32_t line)
{
    size_t begin = pager->lines[line];
    return begin < pager->text.len ? pager->text.text + begin : "";
}

/* Return the bytes of the row that starts at `text`. */
static size_t row_bytes(const char *text, uint32_t columns)
{
    size_t bytes = 0;
    uint32_t used = 0;
    while (text[bytes] != '\0') {
        struct plain_character next = plain_decode(text + bytes);
        used += grid_code_columns(next.code);
        if (used > columns && bytes > 0) {
            break;
        }
        bytes += next.bytes;
    }
    return bytes;
}

/* Return the rows of a line; an empty line has one. */
static uint32_t rows_of(const struct pager *pager, uint32_t line)
{
    const char *text = line_at(pager, line);
    uint32_t rows = 0;
    do {
        text += row_bytes(text, pager->columns);
        rows++;
    } while (*text != '\0');
    return rows;
}

/* Return the lines to show: the last counts only if it is not empty. */
static uint32_t shown_lines(const struct pager *pager)
{
    uint32_t last = pager->line_count - 1;
    bool empty = *line_at(pager, last) == '\0';
    return empty && last > 0 ? last : pager->line_count;
}

/* Return the first row if the last row is at the bottom. */
static struct pager_place bottom(const struct pager *pager)
{
    struct pager_place at = {.line = shown_lines(pager)};
    uint32_t room = pager->rows;
    while (at.line > 0 && room > 0) {
        at.line--;
        uint32_t rows = rows_of(pager, at.line);
        if (rows >= room) {
            at.row = rows - room;
            return at;
        }
        room -= rows;
    }
    return at;
}

static bool is_before(struct pager_place a, struct pager_place b)
{
    return a.line < b.line || (a.line == b.line && a.row < b.row);
}

/* Return a valid position after the text or the width has changed. */
static struct pager_place settle(const struct pager *pager)
{
    struct pager_place end = bottom(pager);
    if (pager->follow || !is_before(pager->at, end)) {
        return end;
    }
    struct pager_place at = pager->at;
    uint32_t rows = rows_of(pager, at.line);
    at.row = at.row < rows ? at.row : rows - 1;
    return at;
}

static void move_up(const struct pager *pager, struct pager_place *at)
{
    if (at->row > 0) {
        at->row--;
    } else if (at->line > 0) {
        at->line--;
        at->row = rows_of(pager, at->line) - 1;
    }
}

static void move_down(const struct pager *pager, struct pager_place *at)
{
    if (at->row + 1 < rows_of(pager, at->line)) {
        at->row++;
    } else if (at->line + 1 < pager->line_count) {
        at->line++;
        at->row = 0;
    }
}

void pager_move(struct pager *pager, int64_t rows)
{
    struct pager_place end = bottom(pager);
    struct pager_place at = settle(pager);
    for (; rows < 0; rows++) {
        move_up(pager, &at);
    }
    for (; rows > 0 && is_before(at, end); rows--) {
        move_down(pager, &at);
    }
    pager->at = at;
    pager->follow = !is_before(at, end);
}

void pager_home(struct pager *pager)
{
    pager->at = (struct pager_place){0};
    pager->follow = !is_before(pager->at, bottom(pager));
}

void pager_end(struct pager *pager)
{
    pager->follow = true;
}

/* --- drawing ------------------------------------------------------------ */

/* One row of a line. */
static void draw_row(struct grid *grid,
                     const struct grid_area *area,
                     uint32_t row,
                     const char *text,
                     size_t bytes)
{
    struct grid_text place = {.row = row};
    for (size_t ix = 0; ix < bytes;) {
        struct plain_character next = plain_decode(text + ix);
        place.column += grid_put_code(grid, area, &place, next.code);
        ix += next.bytes;
    }
}

void pager_draw(struct pager *pager,
                struct grid *grid,
                const struct grid_area *area)
{
    INVARIANT(pager->line_count > 0);
    pager->columns = area->columns > 0 ? area->columns : 1;
    pager->rows = area->rows;
    struct pager_place at = settle(pager);
    pager->at = at;
    uint32_t row = 0;
    for (uint32_t line = at.line; line < pager->line_count && row < area->rows;
         line++) {
        const char *text = line_at(pager, line);
        uint32_t skip = line == at.line ? at.row : 0;
        do {
            size_t bytes = row_bytes(text, pager->columns);
            if (skip > 0) {
                skip--;
            } else if (row < area->rows) {
                draw_row(grid, area, row++, text, bytes);
            }
            text += bytes;
        } while (*text != '\0' && row < area->rows);
    }
}
