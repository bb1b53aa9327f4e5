/* SPDX-License-Identifier: MIT */
/*
 * grid: a picture of character cells in memory.
 *
 * Drawing is independent of terminals: a back end copies the cells to a screen,
 * a test reads them as text. Drawing is clipped to the area and the grid. Cells
 * hold only characters that the locale can print, so that no content can move
 * the cursor: other characters become question marks, characters without width
 * are omitted.
 */
#ifndef TERM_GRID_H
#define TERM_GRID_H

#include "base/strbuf.h"

#include <stdint.h>

/* Maximum columns and rows; a larger grid is cut. */
enum { GRID_SIDE_MAX = 2000 };

/* A style is one colour, and any of the other flags. */
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
    uint8_t columns; /* 1; 2: wide, extends to the next cell; 0: that cell */
    uint8_t style;
};

/* Starts as {0}. */
struct grid {
    struct grid_cell *cells; /* row by row */
    uint32_t columns;
    uint32_t rows;
};

/* A part of a grid; positions are relative to its corner. A plain value. */
struct grid_area {
    uint32_t column;
    uint32_t row;
    uint32_t columns;
    uint32_t rows;
};

/* A string to draw. A plain value. */
struct grid_text {
    uint32_t row; /* in the area */
    uint32_t column;
    uint32_t columns; /* maximum; a longer string is cut with "..." */
    unsigned style;
    const char *text; /* UTF-8 */
};

/* Set the size and blank all cells. */
void grid_resize(struct grid *grid, uint32_t columns, uint32_t rows);
void grid_release(struct grid *grid);

/* The area of the whole grid. */
struct grid_area grid_whole(const struct grid *grid);

/* Split off and return the first rows of an area. */
struct grid_area grid_take_rows(struct grid_area *area, uint32_t rows);

/* Split off and return the first columns of an area. */
struct grid_area grid_take_columns(struct grid_area *area, uint32_t columns);

/* Draw a string; return the columns used. */
uint32_t grid_put(struct grid *grid,
                  const struct grid_area *area,
                  const struct grid_text *text);

/*
 * Draw one character; return the columns used, 0 if it has no width. A
 * character that does not fit into its row is not drawn.
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

/* Return a cell, which must be in the grid. */
const struct grid_cell *
grid_at(const struct grid *grid, uint32_t column, uint32_t row);

/* Append all rows as lines, without trailing blanks. */
void grid_add_text(struct strbuf *out, const struct grid *grid);

#endif /* TERM_GRID_H */
