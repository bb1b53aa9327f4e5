/* SPDX-License-Identifier: MIT */
/*
 * chart: what the text and the SVG chart of a simulation have in common.
 *
 * A chart turns the spans of a result into bars (one per session, in the lane
 * it ran in) and into the periods in which tasks of a class were waiting or
 * starved. It borrows the plan and the result, which must outlive it.
 */
#ifndef SIM_CHART_H
#define SIM_CHART_H

#include "base/strbuf.h"
#include "sim/sim.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "No bar", in a row of cells. */
#define CHART_NONE UINT32_MAX

enum {
    CHART_COLOURS = 8, /* of classes; more classes share colours */
    /* Periods of one class that lie closer than this part of the chart are
       one: nobody could see the gap. */
    CHART_PERIOD_PARTS = 2000,
};

/* A session in its lane. */
struct chart_bar {
    int64_t start_ns;
    int64_t end_ns;
    uint32_t lane;
    uint32_t class_ix;
    uint32_t span;       /* the first one of it, index in the result */
    uint32_t task_count; /* more than one: a batch */
};

/* Tasks of a class were ready and did not run. */
struct chart_period {
    int64_t start_ns;
    int64_t end_ns;
    uint32_t class_ix;
    bool starved; /* a session that is worth less held what they needed */
};

/* An open struct; see chart_init(). */
struct chart {
    const struct plan *plan;
    const struct sim_result *result;
    int64_t end_ns; /* when the last bar ends; never 0 */
    uint32_t lane_count;
    struct chart_bar *bars; /* by lane, then start */
    uint32_t bar_count;
    struct chart_period *periods; /* by class; its starved ones come last */
    uint32_t period_count;
    uint32_t *class_spans; /* for each class of the plan: how many spans */
};

/* Prepare a chart, and give its memory back. */
void chart_init(struct chart *chart,
                const struct plan *plan,
                const struct sim_result *result);
void chart_release(struct chart *chart);

/* Index of the first bar of that lane or of one behind it. */
uint32_t chart_lane_first(const struct chart *chart, uint32_t lane);

/*
 * Cut the time from 0 to `end_ns` into `cell_count` equal cells and write to
 * `cells` which bar of the lane has most of each, or CHART_NONE. A bar that is
 * shorter than a cell is seen if there is no longer one in its cell.
 */
void chart_cells(const struct chart *chart,
                 uint32_t lane,
                 int64_t end_ns,
                 uint32_t *cells,
                 uint32_t cell_count);

/* The cell (see above) in which a time lies; the last one for later times. */
uint32_t chart_cell_of(int64_t time_ns, int64_t end_ns, uint32_t cell_count);

/* A round distance of ticks: at least `least_ns`, and more than 0. */
int64_t chart_tick_ns(int64_t least_ns);

/* Append a time for an axis, without spaces: "0", "45s", "10m", "1h30m". */
void chart_add_time(struct strbuf *out, int64_t time_ns);

/* Append a duration for a sentence: "26 min", "1 h 38 min". */
void chart_add_duration(struct strbuf *out, int64_t duration_ns);

/* The task that a bar is named after: the first of its session. */
const struct plan_task *chart_bar_task(const struct chart *chart,
                                       const struct chart_bar *bar);

/*
 * Append the name of a bar if it takes at most `room` characters: the id of
 * its task, else of the group of that (the stage is mostly seen from the
 * class). A batch has the number of its other tasks behind it. Returns false,
 * with nothing appended, when there is no such name.
 */
bool chart_add_name(struct strbuf *out,
                    const struct chart *chart,
                    const struct chart_bar *bar,
                    size_t room);

/* Whether a session ended otherwise than it should. */
bool chart_is_bad(enum sim_end end);

/* Time in which tasks of that class were starved, as simulated. */
int64_t chart_starved_ns(const struct chart *chart, uint32_t class_ix);

#endif /* SIM_CHART_H */
