/* SPDX-License-Identifier: MIT */
/*
 * Bars come from sorting the spans by lane and start: tasks of one batch are
 * neighbours then. Periods come from one sweep over the moments at which
 * anything becomes ready, starts or ends.
 *
 * Whether a class starved at all is the simulator's word (it knows the limits
 * that a waiting task would have met); the sweep only finds the places. It
 * sees starvation when every lane works and one of them for a worse tier.
 */
#include "sim/chart.h"

#include "base/invariant.h"
#include "base/macros.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_NS INT64_C(1000000000)
#define MINUTE_NS (60 * SECOND_NS)
#define HOUR_NS (60 * MINUTE_NS)
#define DAY_NS (24 * HOUR_NS)

/* End of the axis of a chart in which no time passes. */
#define EMPTY_END_NS MINUTE_NS

struct moment {
    int64_t time_ns;
    uint32_t class_ix;
    int32_t waiting; /* change of the number of waiting tasks */
    int32_t running; /* change of the number of running sessions */
};

/* The state of the sweep, between two moments. */
struct sweep {
    struct chart *chart;
    uint32_t *waiting; /* tasks, for each class */
    uint32_t *running; /* sessions, for each class */
    uint32_t running_count;
    uint32_t *open;         /* for each class: its newest period of either */
    uint32_t *open_starved; /* kind, or CHART_NONE */
    int64_t gap_ns;         /* smaller ones are not seen */
    uint32_t period_capacity;
};

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

/* By lane, start, then order in the result. */
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

/* One bar for all tasks of a batch. */
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

static int compare_moments(const void *left, const void *right)
{
    const struct moment *a = left;
    const struct moment *b = right;
    return compare_i64(a->time_ns, b->time_ns);
}

/* All moments, sorted by time. The caller frees them. */
static struct moment *collect_moments(const struct chart *chart,
                                      size_t *count_out)
{
    const struct sim_result *result = chart->result;
    size_t capacity =
        2 * ((size_t)result->span_count + (size_t)chart->bar_count);
    struct moment *moments = mem_zalloc(capacity, sizeof(*moments));
    size_t count = 0;
    for (uint32_t ix = 0; ix < result->span_count; ix++) {
        const struct sim_span *span = &result->spans[ix];
        uint32_t class_ix = class_of(chart, ix);
        if (span->start_ns > span->ready_ns) {
            moments[count++] = (struct moment){span->ready_ns, class_ix, 1, 0};
            moments[count++] = (struct moment){span->start_ns, class_ix, -1, 0};
        }
    }
    for (uint32_t ix = 0; ix < chart->bar_count; ix++) {
        const struct chart_bar *bar = &chart->bars[ix];
        if (bar->end_ns > bar->start_ns) {
            moments[count++] =
                (struct moment){bar->start_ns, bar->class_ix, 0, 1};
            moments[count++] =
                (struct moment){bar->end_ns, bar->class_ix, 0, -1};
        }
    }
    if (count > 1) {
        qsort(moments, count, sizeof(*moments), compare_moments);
    }
    *count_out = count;
    return moments;
}

static struct chart_period *add_period(struct sweep *sweep)
{
    struct chart *chart = sweep->chart;
    if (chart->period_count == sweep->period_capacity) {
        sweep->period_capacity = 2 * sweep->period_capacity + 16;
        chart->periods = mem_resize(chart->periods,
                                    sweep->period_capacity,
                                    sizeof(*chart->periods));
    }
    return &chart->periods[chart->period_count++];
}

/* `now` is a period, or part of one, that comes after all others. */
static void extend_period(struct sweep *sweep, struct chart_period now)
{
    uint32_t *open = now.starved ? sweep->open_starved : sweep->open;
    uint32_t last = open[now.class_ix];
    if (last != CHART_NONE) {
        struct chart_period *before = &sweep->chart->periods[last];
        if (now.start_ns - before->end_ns <= sweep->gap_ns) {
            before->end_ns = now.end_ns;
            return;
        }
    }
    open[now.class_ix] = sweep->chart->period_count;
    *add_period(sweep) = now;
}

/* Worst tier among the sessions that run. */
static uint32_t worst_tier(const struct sweep *sweep)
{
    const struct plan *plan = sweep->chart->plan;
    uint32_t worst = 0;
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        uint32_t tier = plan->classes[ix].base_tier;
        if (sweep->running[ix] > 0 && tier > worst) {
            worst = tier;
        }
    }
    return worst;
}

/* Note who waits and starves between two moments. */
static void sweep_between(struct sweep *sweep, int64_t from_ns, int64_t to_ns)
{
    const struct chart *chart = sweep->chart;
    bool full = sweep->running_count >= chart->lane_count;
    uint32_t worst = worst_tier(sweep);
    for (uint32_t ix = 0; ix < chart->plan->class_count; ix++) {
        if (sweep->waiting[ix] == 0) {
            continue;
        }
        struct chart_period now = {from_ns, to_ns, ix, false};
        extend_period(sweep, now);
        if (full && worst > chart->plan->classes[ix].base_tier &&
            chart_starved_ns(chart, ix) > 0) {
            now.starved = true;
            extend_period(sweep, now);
        }
    }
}

static int compare_periods(const void *left, const void *right)
{
    const struct chart_period *a = left;
    const struct chart_period *b = right;
    int order = compare_u32(a->class_ix, b->class_ix);
    if (order == 0) {
        order = (int)a->starved - (int)b->starved;
    }
    return order != 0 ? order : compare_i64(a->start_ns, b->start_ns);
}

static void run_sweep(struct sweep *sweep)
{
    size_t count;
    struct moment *moments = collect_moments(sweep->chart, &count);
    for (size_t ix = 0; ix < count; ix++) {
        const struct moment *now = &moments[ix];
        if (ix > 0 && now->time_ns > moments[ix - 1].time_ns) {
            sweep_between(sweep, moments[ix - 1].time_ns, now->time_ns);
        }
        sweep->waiting[now->class_ix] += (uint32_t)now->waiting;
        sweep->running[now->class_ix] += (uint32_t)now->running;
        sweep->running_count += (uint32_t)now->running;
    }
    mem_free(moments);
}

static void find_periods(struct chart *chart)
{
    uint32_t class_count = chart->plan->class_count;
    uint32_t *counts = mem_zalloc((size_t)class_count * 4, sizeof(*counts));
    struct sweep sweep = {
        .chart = chart,
        .waiting = counts,
        .running = counts + class_count,
        .open = counts + 2 * (size_t)class_count,
        .open_starved = counts + 3 * (size_t)class_count,
        .gap_ns = chart->end_ns / CHART_PERIOD_PARTS,
    };
    for (uint32_t ix = 0; ix < class_count; ix++) {
        sweep.open[ix] = CHART_NONE;
        sweep.open_starved[ix] = CHART_NONE;
    }
    run_sweep(&sweep);
    mem_free(counts);
    if (chart->period_count > 1) {
        qsort(chart->periods,
              chart->period_count,
              sizeof(*chart->periods),
              compare_periods);
    }
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
    find_periods(chart);
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

/* When a cell begins. Exact, and without overflow for any time. */
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
            /* A long bar needs half of a cell: it has others. */
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

/* How to write a length of time: two units of these, "day" to "second". */
struct time_form {
    const char *units[4];
    const char *part;  /* between the two */
    const char *empty; /* no time at all */
};

static void add_time(struct strbuf *out, int64_t ns, struct time_form form)
{
    static const int64_t sizes[] = {DAY_NS, HOUR_NS, MINUTE_NS, SECOND_NS};
    size_t unit = 0;
    while (unit < 3 && ns < sizes[unit] - sizes[unit + 1] / 2) {
        unit++;
    }
    size_t second = unit < 3 ? unit + 1 : unit;
    int64_t rest = ns / sizes[second];
    if (ns % sizes[second] >= (sizes[second] + 1) / 2) {
        rest++;
    }
    int64_t ratio = sizes[unit] / sizes[second];
    if (rest <= 0) {
        strbuf_adds(out, form.empty);
        return;
    }
    strbuf_addf(out, "%lld%s", (long long)(rest / ratio), form.units[unit]);
    if (rest % ratio > 0) {
        strbuf_addf(out,
                    "%s%lld%s",
                    form.part,
                    (long long)(rest % ratio),
                    form.units[second]);
    }
}

void chart_add_time(struct strbuf *out, int64_t time_ns)
{
    add_time(out, time_ns, (struct time_form){{"d", "h", "m", "s"}, "", "0"});
}

void chart_add_duration(struct strbuf *out, int64_t duration_ns)
{
    add_time(out,
             duration_ns,
             (struct time_form){{" d", " h", " min", " s"}, " ", "0 s"});
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
    case SIM_END_RUNNING:
        return false;
    case SIM_END_FAILED:
    case SIM_END_CHANGES:
    case SIM_END_BLOCKED:
    case SIM_END_CANCELLED:
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
