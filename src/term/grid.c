/* SPDX-License-Identifier: MIT */
/*
 * Character cells. A character of two columns is a cell with its code and a
 * cell without; drawing over either blanks the other, so that no half remains.
 */
#include "term/grid.h"

#include "base/invariant.h"
#include "base/mem.h"
#include "base/plain.h"

#include <string.h>
#include <wchar.h>

enum { BLANK = ' ', UNKNOWN = '?' };

static uint32_t min(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

void grid_resize(struct grid *grid, uint32_t columns, uint32_t rows)
{
    columns = min(columns, GRID_SIDE_MAX);
    rows = min(rows, GRID_SIDE_MAX);
    size_t count = (size_t)columns * rows;
    if (columns != grid->columns || rows != grid->rows) {
        mem_free(grid->cells);
        grid->cells = mem_zalloc(count, sizeof(grid->cells[0]));
        grid->columns = columns;
        grid->rows = rows;
    }
    for (size_t ix = 0; ix < count; ix++) {
        grid->cells[ix] = (struct grid_cell){.code = BLANK, .columns = 1};
    }
}

void grid_release(struct grid *grid)
{
    mem_free(grid->cells);
    *grid = (struct grid){0};
}

struct grid_area grid_whole(const struct grid *grid)
{
    return (struct grid_area){.columns = grid->columns, .rows = grid->rows};
}

struct grid_area grid_take_rows(struct grid_area *area, uint32_t rows)
{
    struct grid_area part = *area;
    part.rows = min(rows, area->rows);
    area->row += part.rows;
    area->rows -= part.rows;
    return part;
}

struct grid_area grid_take_columns(struct grid_area *area, uint32_t columns)
{
    struct grid_area part = *area;
    part.columns = min(columns, area->columns);
    area->column += part.columns;
    area->columns -= part.columns;
    return part;
}

/* Return the code to show: itself, UNKNOWN, or 0 for none. */
static uint32_t shown_code(uint32_t code)
{
    if (code < 0x20 || (code >= 0x7f && code < 0xa0) || code > 0x10ffff) {
        return UNKNOWN;
    }
    int columns = wcwidth((wchar_t)code);
    if (columns == 0) {
        return 0;
    }
    return columns == 1 || columns == 2 ? code : UNKNOWN;
}

/* Return the columns of a code that shown_code() returned. */
static uint32_t columns_of(uint32_t code)
{
    return code == 0 ? 0 : wcwidth((wchar_t)code) == 2 ? 2 : 1;
}

uint32_t grid_code_columns(uint32_t code)
{
    return columns_of(shown_code(code));
}

/* Return the cell at a position; NULL outside the area or the grid. */
static struct grid_cell *find(struct grid *grid,
                              const struct grid_area *area,
                              uint32_t column,
                              uint32_t row)
{
    if (column >= area->columns || row >= area->rows ||
        area->column + column >= grid->columns ||
        area->row + row >= grid->rows) {
        return NULL;
    }
    size_t line = (size_t)(area->row + row) * grid->columns;
    return &grid->cells[line + area->column + column];
}

/* Prepare a cell for new content: blank the other half of a wide character. */
static void split(struct grid_cell *cell)
{
    if (cell->columns == 0) {
        cell[-1].code = BLANK;
        cell[-1].columns = 1;
    } else if (cell->columns == 2) {
        cell[1].code = BLANK;
        cell[1].columns = 1;
    }
    cell->columns = 1;
}

uint32_t grid_put_code(struct grid *grid,
                       const struct grid_area *area,
                       const struct grid_text *place,
                       uint32_t code)
{
    code = shown_code(code);
    uint32_t columns = columns_of(code);
    struct grid_cell *cell = find(grid, area, place->column, place->row);
    if (columns == 0 || cell == NULL) {
        return columns;
    }
    struct grid_cell *last =
        find(grid, area, place->column + columns - 1, place->row);
    if (last == NULL) {
        return columns;
    }
    split(cell);
    if (last != cell) {
        split(last);
        *last = (struct grid_cell){.style = (uint8_t)place->style};
    }
    *cell = (struct grid_cell){
        .code = code,
        .columns = (uint8_t)columns,
        .style = (uint8_t)place->style,
    };
    return columns;
}

/* Return the bytes of a string that fit, and their columns in *used. */
static size_t fit(const char *text, uint32_t columns, uint32_t *used)
{
    size_t bytes = 0;
    *used = 0;
    while (text[bytes] != '\0') {
        struct plain_character next = plain_decode(text + bytes);
        uint32_t wide = grid_code_columns(next.code);
        if (*used + wide > columns) {
            break;
        }
        *used += wide;
        bytes += next.bytes;
    }
    return bytes;
}

static uint32_t put_bytes(struct grid *grid,
                          const struct grid_area *area,
                          struct grid_text place,
                          size_t bytes)
{
    uint32_t begin = place.column;
    for (size_t ix = 0; ix < bytes;) {
        struct plain_character next = plain_decode(place.text + ix);
        place.column += grid_put_code(grid, area, &place, next.code);
        ix += next.bytes;
    }
    return place.column - begin;
}

uint32_t grid_put(struct grid *grid,
                  const struct grid_area *area,
                  const struct grid_text *text)
{
    static const char dots[] = "...";
    if (text->column >= area->columns) {
        return 0;
    }
    uint32_t room = min(text->columns, area->columns - text->column);
    uint32_t used;
    size_t bytes = fit(text->text, room, &used);
    if (text->text[bytes] == '\0') {
        return put_bytes(grid, area, *text, bytes);
    }
    uint32_t dot_count = min(room, (uint32_t)strlen(dots));
    bytes = fit(text->text, room - dot_count, &used);
    struct grid_text rest = *text;
    rest.column += put_bytes(grid, area, *text, bytes);
    rest.text = dots;
    return used + put_bytes(grid, area, rest, dot_count);
}

void grid_fill(struct grid *grid,
               const struct grid_area *area,
               const struct grid_text *place,
               uint32_t code)
{
    struct grid_text at = *place;
    for (uint32_t ix = 0;
         ix < place->columns && place->column + ix < area->columns;
         ix++) {
        at.column = place->column + ix;
        (void)grid_put_code(grid, area, &at, code);
    }
}

void grid_mark(struct grid *grid,
               const struct grid_area *area,
               uint32_t row,
               unsigned style)
{
    for (uint32_t ix = 0; ix < area->columns; ix++) {
        struct grid_cell *cell = find(grid, area, ix, row);
        if (cell != NULL) {
            cell->style = (uint8_t)(cell->style | style);
        }
    }
}

const struct grid_cell *
grid_at(const struct grid *grid, uint32_t column, uint32_t row)
{
    INVARIANT(column < grid->columns);
    INVARIANT(row < grid->rows);
    return &grid->cells[(size_t)row * grid->columns + column];
}

static void add_code(struct strbuf *out, uint32_t code)
{
    char bytes[4];
    size_t count = 1;
    if (code < 0x80) {
        bytes[0] = (char)code;
    } else {
        count = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        for (size_t ix = count - 1; ix > 0; ix--) {
            bytes[ix] = (char)(0x80 | (code & 0x3f));
            code >>= 6;
        }
        bytes[0] = (char)((0xf00U >> count & 0xffU) | code);
    }
    strbuf_add(out, bytes, count);
}

void grid_add_text(struct strbuf *out, const struct grid *grid)
{
    for (uint32_t row = 0; row < grid->rows; row++) {
        uint32_t blanks = 0;
        for (uint32_t column = 0; column < grid->columns; column++) {
            const struct grid_cell *cell = grid_at(grid, column, row);
            if (cell->columns == 0) {
                continue;
            }
            if (cell->code == BLANK) {
                blanks++;
                continue;
            }
            strbuf_pad(out, ' ', blanks);
            blanks = 0;
            add_code(out, cell->code);
        }
        strbuf_adds(out, "\n");
    }
}
