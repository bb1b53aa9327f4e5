/* SPDX-License-Identifier: MIT */
/*
 * chart: data common to the text and the SVG chart of a simulation.
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
    /* Periods of one class with a gap smaller than this part of the chart are
     * joined: the gap would not be visible. */
    CHART_PERIOD_PARTS = 2000,
};

/* A session in its lane. */
struct chart_bar {
    int64_t start_ns;
    int64_t end_ns;
    uint32_t lane;
    uint32_t class_ix;
    uint32_t span;       /* its first span, index in the result */
    uint32_t task_count; /* more than one: a batch */
};

/* A period in which tasks of a class were ready and did not run. */
struct chart_period {
    int64_t start_ns;
    int64_t end_ns;
    uint32_t class_ix;
    bool starved; /* a less valuable session held their capacity */
};

/* An open struct; see chart_init(). */
struct chart {
    const struct plan *plan;
    const struct sim_result *result;
    int64_t end_ns; /* end of the last bar; never 0 */
    uint32_t lane_count;
    struct chart_bar *bars; /* by lane, then start */
    uint32_t bar_count;
    struct chart_period *periods; /* by class; starved periods last */
    uint32_t period_count;
    uint32_t *class_spans; /* number of spans of each class of the plan */
};

/* Prepare a chart; free its memory. */
void chart_init(struct chart *chart,
                const struct plan *plan,
                const struct sim_result *result);
void chart_release(struct chart *chart);

/* Return the index of the first bar of that lane or a later lane. */
uint32_t chart_lane_first(const struct chart *chart, uint32_t lane);

/*
 * Divide the time from 0 to `end_ns` into `cell_count` equal cells and write to
 * `cells` which bar of the lane fills most of each, or CHART_NONE. A bar
 * shorter than a cell shows if its cell has no longer bar.
 */
void chart_cells(const struct chart *chart,
                 uint32_t lane,
                 int64_t end_ns,
                 uint32_t *cells,
                 uint32_t cell_count);

/* Return the cell (see above) of a time; the last cell for later times. */
uint32_t chart_cell_of(int64_t time_ns, int64_t end_ns, uint32_t cell_count);

/* Return a round distance of ticks: at least `least_ns`, and more than 0. */
int64_t chart_tick_ns(int64_t least_ns);

/* Append a time for an axis, without spaces: "0", "45s", "10m", "1h30m". */
void chart_add_time(struct strbuf *out, int64_t time_ns);

/* Append a duration for a sentence: "26 min", "1 h 38 min". */
void chart_add_duration(struct strbuf *out, int64_t duration_ns);

/* Return the task that a bar is named after: the first of its session. */
const struct plan_task *chart_bar_task(const struct chart *chart,
                                       const struct chart_bar *bar);

/*
 * Append the name of a bar if it takes at most `room` characters: the id of its
 * task, else of its group (the class mostly shows the stage). A batch adds the
 * number of its other tasks. Return false, with nothing appended, if no name
 * fits.
 */
bool chart_add_name(struct strbuf *out,
                    const struct chart *chart,
                    const struct chart_bar *bar,
                    size_t room);

/* Return whether a session did not succeed. */
bool chart_is_bad(enum sim_end end);

/* Return the simulated time in which tasks of that class were starved. */
int64_t chart_starved_ns(const struct chart *chart, uint32_t class_ix);

#endif /* SIM_CHART_H */
