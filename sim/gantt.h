/* SPDX-License-Identifier: MIT */
/*
 * gantt: the timeline of a simulation as text, for a terminal or a file.
 *
 * It has one row per slot with the sessions that ran in it, then the starved
 * periods of each class, and on request one row per task: how long it waited
 * and when it ran. No line exceeds the requested width. Strings from the plan
 * are printed as ASCII; other bytes become question marks, so that no escape
 * sequence passes.
 */
#ifndef SIM_GANTT_H
#define SIM_GANTT_H

#include "base/strbuf.h"
#include "sim/sim.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    GANTT_WIDTH = 80,
    GANTT_WIDTH_MIN = 40,
    GANTT_WIDTH_MAX = 1000,
    GANTT_ROWS = 40,
};

/* A plain value; {0} is a plain ASCII chart of 80 columns. */
struct gantt_options {
    uint32_t width;    /* columns; 0: GANTT_WIDTH; clamped to the bounds */
    uint32_t rows_max; /* of slots, and of tasks; 0: GANTT_ROWS */
    bool colour;       /* ANSI, 256 colours */
    bool unicode;      /* the terminal shows UTF-8 */
    bool by_task;      /* also one row per task */
};

/* Append the chart of a result of this plan, with a final newline. */
void gantt_text(struct strbuf *out,
                const struct plan *plan,
                const struct sim_result *result,
                const struct gantt_options *options);

#endif /* SIM_GANTT_H */
