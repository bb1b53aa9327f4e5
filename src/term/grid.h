/* SPDX-License-Identifier: MIT */
/*
 * grid: a picture of character cells, drawn in memory.
 *
 * What is drawn knows nothing about terminals: a back end copies the cells to
 * a screen, a test reads them as text. Drawing outside of an area, or of the
 * grid, draws nothing there. Only characters that the locale can print get
 * into a cell, so that nothing drawn here can move a cursor: others become
 * question marks, those without a width of their own are left out.
 */
#ifndef TERM_GRID_H
#define TERM_GRID_H

#include "base/strbuf.h"

#include <stdint.h>

/* Columns, and rows, at most; a larger grid is cut to it. */
enum { GRID_SIDE_MAX = 2000 };

/* A style is one colour and any of the rest. */
enum grid_style {
    GRID_PLAIN = 0,
    GRID_RED = 1,
    GRID_GREEN = 2,
    GRID_YELLOW = 3,
    GRID_BLUE = 4,
    GRID_CYAN = 6,
    GRID_COLOUR = 7, /* mask */
    GRID_BOLD = 8,
    GRID_DIM = 16,
    GRID_REVERSE = 32,
};

struct grid_cell {
    uint32_t code;   /* Unicode */
    uint8_t columns; /* 1; 2: it takes the next cell, too; 0: it is that one */
    uint8_t style;
};

/* Starts as {0}. */
struct grid {
    struct grid_cell *cells; /* row by row */
    uint32_t columns;
    uint32_t rows;
};

/* A part of a grid; positions in it count from its corner. A plain value. */
struct grid_area {
    uint32_t column;
    uint32_t row;
    uint32_t columns;
    uint32_t rows;
};

/* A text to be drawn. A plain value. */
struct grid_text {
    uint32_t row; /* in the area */
    uint32_t column;
    uint32_t columns; /* at most; what is longer ends with "..." */
    unsigned style;
    const char *text; /* UTF-8 */
};

/* Make it so large, and blank. */
void grid_resize(struct grid *grid, uint32_t columns, uint32_t rows);
void grid_release(struct grid *grid);

/* All of it. */
struct grid_area grid_whole(const struct grid *grid);

/* The first rows of an area, which is left without them. */
struct grid_area grid_take_rows(struct grid_area *area, uint32_t rows);

/* The first columns of an area, which is left without them. */
struct grid_area grid_take_columns(struct grid_area *area, uint32_t columns);

/* Draw a text; the columns that it took. */
uint32_t grid_put(struct grid *grid,
                  const struct grid_area *area,
                  const struct grid_text *text);

/*
 * Draw one character; the columns that it took, 0 when it has no width. One
 * that does not fit into its row is not drawn.
 */
uint32_t grid_put_code(struct grid *grid,
                       const struct grid_area *area,
                       const struct grid_text *place,
                       uint32_t code);

/* Columns that grid_put_code() would take. */
uint32_t grid_code_columns(uint32_t code);

/* Fill `place->columns` columns with one character of width 1. */
void grid_fill(struct grid *grid,
               const struct grid_area *area,
               const struct grid_text *place,
               uint32_t code);

/* Add to the style of a whole row of an area. */
void grid_mark(struct grid *grid,
               const struct grid_area *area,
               uint32_t row,
               unsigned style);

/* A cell that is in the grid. */
const struct grid_cell *
grid_at(const struct grid *grid, uint32_t column, uint32_t row);

/* Append all rows as lines of text, without blanks at their ends. */
void grid_add_text(struct strbuf *out, const struct grid *grid);

#endif /* TERM_GRID_H */
