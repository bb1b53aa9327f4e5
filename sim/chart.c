/* SPDX-License-Identifier: MIT */
/*
 * Construction of bars: spans sorted by lane and start, which puts the tasks of
 * one batch next to each other. For the periods see chart_periods.c.
 */
#include "sim/chart.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "base/macros.h"
#include "base/mem.h"
#include "sim/chart_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* End of the axis of a chart of zero length. */
#define EMPTY_END_NS MINUTE_NS

static uint32_t class_of(const struct chart *chart, uint32_t span)
{
    uint32_t task = chart->result->spans[span].task;
    INVARIANT(task < chart->plan->task_count);
    return chart->plan->tasks[task].class_ix;
}

static int compare_u32(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static int compare_i64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Order by lane, start, then position in the result. */
static int compare_bars(const void *left, const void *right)
{
    const struct chart_bar *a = left;
    const struct chart_bar *b = right;
    int order = compare_u32(a->lane, b->lane);
    if (order == 0) {
        order = compare_i64(a->start_ns, b->start_ns);
    }
    return order != 0 ? order : compare_u32(a->span, b->span);
}

static void fill_bars(struct chart *chart)
{
    const struct sim_result *result = chart->result;
    chart->bars = mem_zalloc(result->span_count, sizeof(*chart->bars));
    for (uint32_t ix = 0; ix < result->span_count; ix++) {
        const struct sim_span *span = &result->spans[ix];
        uint32_t class_ix = class_of(chart, ix);
        chart->bars[ix] = (struct chart_bar){
            .start_ns = span->start_ns,
            .end_ns = span->end_ns,
            .lane = span->lane,
            .class_ix = class_ix,
            .span = ix,
            .task_count = 1,
        };
        chart->class_spans[class_ix]++;
        chart->end_ns =
            span->end_ns > chart->end_ns ? span->end_ns : chart->end_ns;
        if (span->lane >= chart->lane_count) {
            chart->lane_count = span->lane + 1;
        }
    }
    chart->bar_count = result->span_count;
    if (chart->bar_count > 1) {
        qsort(chart->bars,
              chart->bar_count,
              sizeof(*chart->bars),
              compare_bars);
    }
}

static bool is_same_session(const struct chart *chart,
                            const struct chart_bar *a,
                            const struct chart_bar *b)
{
    const struct sim_span *spans = chart->result->spans;
    return a->lane == b->lane && a->start_ns == b->start_ns &&
           spans[a->span].session == spans[b->span].session;
}

/* Join the tasks of each batch into one bar. */
static void join_batches(struct chart *chart)
{
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < chart->bar_count; ix++) {
        const struct chart_bar *bar = &chart->bars[ix];
        struct chart_bar *last = count > 0 ? &chart->bars[count - 1] : NULL;
        if (last != NULL && is_same_session(chart, last, bar)) {
            last->task_count++;
            continue;
        }
        chart->bars[count++] = *bar;
    }
    chart->bar_count = count;
}

void chart_init(struct chart *chart,
                const struct plan *plan,
                const struct sim_result *result)
{
    *chart = (struct chart){
        .plan = plan,
        .result = result,
        .end_ns = result->makespan_ns,
        .lane_count = result->lane_count,
        .class_spans =
            mem_zalloc(plan->class_count, sizeof(*chart->class_spans)),
    };
    fill_bars(chart);
    join_batches(chart);
    if (chart->end_ns <= 0) {
        chart->end_ns = EMPTY_END_NS;
    }
    chart_find_periods(chart);
}

void chart_release(struct chart *chart)
{
    mem_free(chart->bars);
    mem_free(chart->periods);
    mem_free(chart->class_spans);
    *chart = (struct chart){0};
}

uint32_t chart_lane_first(const struct chart *chart, uint32_t lane)
{
    uint32_t low = 0;
    uint32_t high = chart->bar_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (chart->bars[middle].lane < lane) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Return the start of a cell. Exact, and without overflow for any time. */
static int64_t cell_start(uint32_t cell, int64_t end_ns, uint32_t cell_count)
{
    return end_ns / cell_count * cell + end_ns % cell_count * cell / cell_count;
}

uint32_t chart_cell_of(int64_t time_ns, int64_t end_ns, uint32_t cell_count)
{
    INVARIANT(cell_count > 0);
    if (time_ns <= 0) {
        return 0;
    }
    if (time_ns >= end_ns) {
        return cell_count - 1;
    }
    double share = (double)time_ns / (double)end_ns;
    uint32_t cell = (uint32_t)(share * cell_count);
    cell = cell < cell_count ? cell : cell_count - 1;
    while (cell > 0 && cell_start(cell, end_ns, cell_count) > time_ns) {
        cell--;
    }
    while (cell + 1 < cell_count &&
           cell_start(cell + 1, end_ns, cell_count) <= time_ns) {
        cell++;
    }
    return cell;
}

static int64_t overlap_ns(const struct chart_bar *bar, int64_t from, int64_t to)
{
    int64_t start = bar->start_ns > from ? bar->start_ns : from;
    int64_t end = bar->end_ns < to ? bar->end_ns : to;
    return end > start ? end - start : 0;
}

void chart_cells(const struct chart *chart,
                 uint32_t lane,
                 int64_t end_ns,
                 uint32_t *cells,
                 uint32_t cell_count)
{
    INVARIANT(cell_count > 0);
    for (uint32_t cell = 0; cell < cell_count; cell++) {
        cells[cell] = CHART_NONE;
    }
    uint32_t behind = chart_lane_first(chart, lane + 1);
    for (uint32_t ix = chart_lane_first(chart, lane); ix < behind; ix++) {
        const struct chart_bar *bar = &chart->bars[ix];
        uint32_t first = chart_cell_of(bar->start_ns, end_ns, cell_count);
        uint32_t last = chart_cell_of(bar->end_ns, end_ns, cell_count);
        for (uint32_t cell = first; cell <= last; cell++) {
            int64_t from = cell_start(cell, end_ns, cell_count);
            int64_t to = cell_start(cell + 1, end_ns, cell_count);
            bool is_short = bar->end_ns - bar->start_ns < to - from;
            /* A long bar needs half of a cell: it has other cells. */
            int64_t best = is_short ? -1 : (to - from - 1) / 2;
            if (cells[cell] != CHART_NONE) {
                best = overlap_ns(&chart->bars[cells[cell]], from, to);
            }
            if (overlap_ns(bar, from, to) > best) {
                cells[cell] = ix;
            }
        }
    }
}

int64_t chart_tick_ns(int64_t least_ns)
{
    static const int64_t steps[] = {
        SECOND_NS,
        2 * SECOND_NS,
        5 * SECOND_NS,
        10 * SECOND_NS,
        15 * SECOND_NS,
        30 * SECOND_NS,
        MINUTE_NS,
        2 * MINUTE_NS,
        5 * MINUTE_NS,
        10 * MINUTE_NS,
        15 * MINUTE_NS,
        30 * MINUTE_NS,
        HOUR_NS,
        2 * HOUR_NS,
        3 * HOUR_NS,
        6 * HOUR_NS,
        12 * HOUR_NS,
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(steps); ix++) {
        if (steps[ix] >= least_ns) {
            return steps[ix];
        }
    }
    int64_t step = DAY_NS;
    while (step < least_ns && step < INT64_MAX / 2) {
        step *= 2;
    }
    return step;
}

/* Format of a duration, with two units at most. */
struct time_form {
    const char *units[4]; /* days, hours, minutes, seconds */
    const char *part;     /* separator */
    const char *empty;    /* zero duration */
    int64_t day_s_min;    /* least duration that uses days */
};

/* Round to the second, then drop the units after the first two. */
static void add_time(struct strbuf *out, int64_t ns, struct time_form form)
{
    static const int64_t sizes_s[] = {86400, 3600, 60, 1};
    int64_t rest_s = ns / SECOND_NS + (ns % SECOND_NS >= SECOND_NS / 2);
    if (rest_s <= 0) {
        strbuf_adds(out, form.empty);
        return;
    }
    size_t unit = rest_s >= form.day_s_min ? 0 : 1;
    while (rest_s < sizes_s[unit]) {
        unit++;
    }
    int64_t whole = rest_s / sizes_s[unit];
    strbuf_addf(out, "%lld%s", (long long)whole, form.units[unit]);
    rest_s %= sizes_s[unit];
    if (unit < 3 && rest_s >= sizes_s[unit + 1]) {
        strbuf_addf(out,
                    "%s%lld%s",
                    form.part,
                    (long long)(rest_s / sizes_s[unit + 1]),
                    form.units[unit + 1]);
    }
}

void chart_add_time(struct strbuf *out, int64_t time_ns)
{
    add_time(out,
             time_ns,
             (struct time_form){{"d", "h", "m", "s"}, "", "0", 86400});
}

void chart_add_duration(struct strbuf *out, int64_t duration_ns)
{
    add_time(out,
             duration_ns,
             (struct time_form){{" d", " h", " min", " s"},
                                " ",
                                "0 s",
                                INT64_C(2) * 86400});
}

const struct plan_task *chart_bar_task(const struct chart *chart,
                                       const struct chart_bar *bar)
{
    return &chart->plan->tasks[chart->result->spans[bar->span].task];
}

bool chart_add_name(struct strbuf *out,
                    const struct chart *chart,
                    const struct chart_bar *bar,
                    size_t room)
{
    const struct plan_task *task = chart_bar_task(chart, bar);
    const char *names[2] = {task->id, NULL};
    if (task->group != PLAN_NONE && task->stage != NULL) {
        names[1] = chart->plan->groups[task->group].id;
    }
    char others[16] = "";
    if (bar->task_count > 1) {
        snprintf(others, sizeof(others), "+%u", bar->task_count - 1);
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(names) && names[ix] != NULL; ix++) {
        if (strlen(names[ix]) + strlen(others) <= room) {
            strbuf_adds(out, names[ix]);
            strbuf_adds(out, others);
            return true;
        }
    }
    return false;
}

bool chart_is_bad(enum sim_end end)
{
    switch (end) {
    case SIM_END_DONE:
    case SIM_END_CHECKPOINT:
    case SIM_END_LATER:
    case SIM_END_RUNNING:
        return false;
    case SIM_END_FAILED:
    case SIM_END_FATAL:
    case SIM_END_CHANGES:
    case SIM_END_BLOCKED:
    case SIM_END_CANCELLED:
    case SIM_END_REFUSED:
        return true;
    }
    return false;
}

int64_t chart_starved_ns(const struct chart *chart, uint32_t class_ix)
{
    const struct sim_result *result = chart->result;
    return class_ix < result->class_count ? result->classes[class_ix].starved_ns
                                          : 0;
}
