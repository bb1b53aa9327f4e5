/* SPDX-License-Identifier: MIT */
/*
 * Internal interface between the picture of `sluice top` and its panels.
 */
#ifndef TERM_TOP_DRAW_INTERNAL_H
#define TERM_TOP_DRAW_INTERNAL_H

#include "term/top.h"

/* Picture being drawn. */
struct top_canvas {
    struct grid *grid;
    struct top *top;
    const struct model *model;
    bool unicode;
};

/* Draw a string into some columns of a row; return the next column. */
uint32_t top_draw_put(struct top_canvas *canvas,
                      const struct grid_area *area,
                      struct grid_text text);

/* The same for consecutive cells of a row: draw a cell, and advance past it and
 * a blank. */
void top_draw_cell(struct top_canvas *canvas,
                   const struct grid_area *area,
                   struct grid_text *cell,
                   const char *text);

/* Draw a string up to the end of the row; return the next column. */
uint32_t top_draw_add(struct top_canvas *canvas,
                      const struct grid_area *area,
                      struct grid_text text);

/* The same in the first row of an area. */
uint32_t top_draw_line(struct top_canvas *canvas,
                       const struct grid_area *row,
                       uint32_t column,
                       unsigned style,
                       const char *text);

static inline uint32_t top_draw_min(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static inline uint32_t top_draw_max(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Draw a bar that is partly full. */
void top_draw_bar(struct top_canvas *canvas,
                  const struct grid_area *area,
                  struct grid_text place,
                  double part);

/* Draw the title of a panel and remove its row from the area. */
void top_draw_title(struct top_canvas *canvas,
                    struct grid_area *area,
                    const char *title,
                    bool focus);

/* Mark the selected row; `focus`: keys move here. */
void top_draw_mark(struct top_canvas *canvas,
                   const struct grid_area *area,
                   uint32_t row,
                   bool focus);

/* Append "2 in flight, cap 3"; "5 of 17 done, 4 ready". */
void top_draw_cap(struct strbuf *out, const struct model_run *run);
void top_draw_counts(struct strbuf *out, const struct model_run *run);

/* "PAUSED  " and the like, or "". */
const char *top_draw_flag(const struct model_run *run);

/* Number of limits per row. */
uint32_t top_draw_limits_in_row(uint32_t columns);

/* The colour of a task. */
unsigned top_draw_style(const struct model_task *task);

/* Whether a task is finished, so that its duration is shown. */
bool top_draw_is_ended(const struct model_task *task);

/* Draw a line of the issue list. */
void top_draw_issue(struct top_canvas *canvas,
                    const struct grid_area *area,
                    uint32_t row,
                    const struct model_issue *issue);

/* The panels. */
void top_draw_runs(struct top_canvas *canvas, struct grid_area area);
void top_draw_slots(struct top_canvas *canvas, struct grid_area area);
void top_draw_tasks(struct top_canvas *canvas, struct grid_area area);
void top_draw_limits(struct top_canvas *canvas, struct grid_area area);
void top_draw_usage(struct top_canvas *canvas, struct grid_area area);
void top_draw_events(struct top_canvas *canvas, struct grid_area area);

#endif /* TERM_TOP_DRAW_INTERNAL_H */
