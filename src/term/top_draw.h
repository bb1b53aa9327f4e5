/* SPDX-License-Identifier: MIT */
/*
 * top_draw: the picture of `sluice top`, drawn into a grid.
 *
 * The same model, state and options give the same cells. The cost is that of
 * the rows in sight, however many tasks there are.
 */
#ifndef TERM_TOP_DRAW_H
#define TERM_TOP_DRAW_H

#include "term/grid.h"
#include "term/top.h"

/* The smallest terminal that shows more than that it is too small. */
enum { TOP_DRAW_COLUMNS_MIN = 30, TOP_DRAW_ROWS_MIN = 8 };

/*
 * Draw into the whole grid, which is blank. `unicode`: lines and bars may be
 * other than ASCII. What scrolls is remembered in *top.
 */
void top_draw(struct grid *grid,
              struct top *top,
              const struct model *model,
              bool unicode);

#endif /* TERM_TOP_DRAW_H */
