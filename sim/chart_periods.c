/* SPDX-License-Identifier: MIT */
/*
 * Search for periods: one sweep over the moments at which a task becomes ready,
 * starts or ends.
 *
 * The simulator decides whether a class starved at all: it queries the limits
 * themselves. The sweep only finds the periods: a task waited while a less
 * valuable session held its capacity. It assumes so if such a session was of
 * the same class (they share their limits), or if such a session existed and no
 * lane was free.
 *
 * The value of a task is the best tier of its class and of all dependents.
 * Tiers are numbered as ranks: 0 is the best tier of the plan.
 */
#include "sim/chart_internal.h"

#include "base/mem.h"

#include <stdlib.h>

struct moment {
    int64_t time_ns;
    uint32_t class_ix;
    uint32_t rank;
    int32_t waiting; /* change of the number of waiting tasks */
    int32_t running; /* change of the number of running tasks */
    int32_t lanes;   /* change of the number of lanes taken */
};

struct moments {
    struct moment *items;
    size_t count;
};

/* The state of the sweep, between two moments. */
struct sweep {
    struct chart *chart;
    uint32_t rank_count;
    uint32_t *class_ranks;
    uint32_t *task_ranks;
    uint32_t *waiting; /* tasks, for each class and rank */
    uint32_t *running; /* tasks, for each class and rank */
    uint32_t lanes_taken;
    uint32_t *open;         /* for each class: its newest period, */
    uint32_t *open_starved; /* and starved period, or CHART_NONE */
    int64_t gap_ns;         /* smaller gaps are closed */
    uint32_t period_capacity;
};

/* Rank the classes; set rank_count to one more than the worst rank. */
static void rank_classes(struct sweep *sweep)
{
    const struct plan *plan = sweep->chart->plan;
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        uint32_t tier = plan->classes[ix].base_tier;
        uint32_t rank = 0;
        for (uint32_t n = 0; n < plan->class_count; n++) {
            rank += plan->classes[n].base_tier < tier ? 1 : 0;
        }
        sweep->class_ranks[ix] = rank;
        if (rank >= sweep->rank_count) {
            sweep->rank_count = rank + 1;
        }
    }
}

/* Propagate the best rank from dependents to needs. */
static void rank_tasks(struct sweep *sweep)
{
    const struct plan *plan = sweep->chart->plan;
    uint32_t *waiting = mem_zalloc(plan->task_count, sizeof(*waiting));
    uint32_t *queue = mem_zalloc(plan->task_count, sizeof(*queue));
    uint32_t queued = 0;
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        const struct plan_task *task = &plan->tasks[ix];
        sweep->task_ranks[ix] = sweep->class_ranks[task->class_ix];
        for (uint32_t n = 0; n < task->need_count; n++) {
            waiting[task->needs[n]]++;
        }
    }
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        if (waiting[ix] == 0) {
            queue[queued++] = ix;
        }
    }
    for (uint32_t ix = 0; ix < queued; ix++) {
        const struct plan_task *task = &plan->tasks[queue[ix]];
        uint32_t rank = sweep->task_ranks[queue[ix]];
        for (uint32_t n = 0; n < task->need_count; n++) {
            uint32_t need = task->needs[n];
            if (rank < sweep->task_ranks[need]) {
                sweep->task_ranks[need] = rank;
            }
            if (--waiting[need] == 0) {
                queue[queued++] = need;
            }
        }
    }
    mem_free(waiting);
    mem_free(queue);
}

static int compare_moments(const void *left, const void *right)
{
    const struct moment *a = left;
    const struct moment *b = right;
    return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

/* Add `change` at `from_ns` and its reversal at `to_ns`. */
static void add_moments(struct moments *moments,
                        struct moment change,
                        int64_t from_ns,
                        int64_t to_ns)
{
    if (to_ns <= from_ns) {
        return;
    }
    change.time_ns = from_ns;
    moments->items[moments->count++] = change;
    change.time_ns = to_ns;
    change.waiting = -change.waiting;
    change.running = -change.running;
    change.lanes = -change.lanes;
    moments->items[moments->count++] = change;
}

/* Return all moments, sorted by time. The caller frees the items. */
static struct moments collect_moments(const struct sweep *sweep)
{
    const struct chart *chart = sweep->chart;
    const struct sim_result *result = chart->result;
    size_t capacity =
        4 * (size_t)result->span_count + 2 * (size_t)chart->bar_count;
    struct moments moments = {mem_zalloc(capacity, sizeof(struct moment)), 0};
    for (uint32_t ix = 0; ix < result->span_count; ix++) {
        const struct sim_span *span = &result->spans[ix];
        struct moment change = {
            .class_ix = chart->plan->tasks[span->task].class_ix,
            .rank = sweep->task_ranks[span->task],
            .waiting = 1,
        };
        add_moments(&moments, change, span->ready_ns, span->start_ns);
        change.waiting = 0;
        change.running = 1;
        add_moments(&moments, change, span->start_ns, span->end_ns);
    }
    for (uint32_t ix = 0; ix < chart->bar_count; ix++) {
        const struct chart_bar *bar = &chart->bars[ix];
        struct moment change = {.class_ix = bar->class_ix, .lanes = 1};
        add_moments(&moments, change, bar->start_ns, bar->end_ns);
    }
    if (moments.count > 1) {
        qsort(moments.items,
              moments.count,
              sizeof(struct moment),
              compare_moments);
    }
    return moments;
}

static struct chart_period *add_period(struct sweep *sweep)
{
    struct chart *chart = sweep->chart;
    MEM_GROW(chart->periods, chart->period_count, sweep->period_capacity);
    return &chart->periods[chart->period_count++];
}

/* Add `now`, a period or a part of a period that is later than all others. */
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

/* Return the best waiting rank of a class; rank_count if none. */
static uint32_t best_waiting(const struct sweep *sweep, uint32_t class_ix)
{
    const uint32_t *waiting =
        sweep->waiting + (size_t)class_ix * sweep->rank_count;
    uint32_t rank = 0;
    while (rank < sweep->rank_count && waiting[rank] == 0) {
        rank++;
    }
    return rank;
}

/* Return whether a class runs a task that is worse than this rank. */
static bool
runs_worse(const struct sweep *sweep, uint32_t class_ix, uint32_t rank)
{
    const uint32_t *running =
        sweep->running + (size_t)class_ix * sweep->rank_count;
    for (uint32_t worse = rank + 1; worse < sweep->rank_count; worse++) {
        if (running[worse] > 0) {
            return true;
        }
    }
    return false;
}

/* See the top. The class has a waiting task of that rank. */
static bool
is_starved(const struct sweep *sweep, uint32_t class_ix, uint32_t rank)
{
    const struct chart *chart = sweep->chart;
    if (chart_starved_ns(chart, class_ix) <= 0) {
        return false;
    }
    if (runs_worse(sweep, class_ix, rank)) {
        return true;
    }
    if (sweep->lanes_taken < chart->lane_count) {
        return false;
    }
    for (uint32_t ix = 0; ix < chart->plan->class_count; ix++) {
        if (runs_worse(sweep, ix, rank)) {
            return true;
        }
    }
    return false;
}

/* Record waiting and starved classes between two moments. */
static void sweep_between(struct sweep *sweep, int64_t from_ns, int64_t to_ns)
{
    for (uint32_t ix = 0; ix < sweep->chart->plan->class_count; ix++) {
        uint32_t rank = best_waiting(sweep, ix);
        if (rank == sweep->rank_count) {
            continue;
        }
        struct chart_period now = {from_ns, to_ns, ix, false};
        extend_period(sweep, now);
        if (is_starved(sweep, ix, rank)) {
            now.starved = true;
            extend_period(sweep, now);
        }
    }
}

static void run_sweep(struct sweep *sweep)
{
    struct moments moments = collect_moments(sweep);
    int64_t before_ns = 0;
    for (size_t ix = 0; ix < moments.count; ix++) {
        const struct moment *now = &moments.items[ix];
        if (now->time_ns > before_ns) {
            sweep_between(sweep, before_ns, now->time_ns);
        }
        before_ns = now->time_ns;
        size_t at = (size_t)now->class_ix * sweep->rank_count + now->rank;
        sweep->waiting[at] += (uint32_t)now->waiting;
        sweep->running[at] += (uint32_t)now->running;
        sweep->lanes_taken += (uint32_t)now->lanes;
    }
    mem_free(moments.items);
}

static int compare_periods(const void *left, const void *right)
{
    const struct chart_period *a = left;
    const struct chart_period *b = right;
    if (a->class_ix != b->class_ix) {
        return a->class_ix < b->class_ix ? -1 : 1;
    }
    if (a->starved != b->starved) {
        return a->starved ? 1 : -1;
    }
    return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static void release_sweep(struct sweep *sweep)
{
    mem_free(sweep->class_ranks);
    mem_free(sweep->task_ranks);
    mem_free(sweep->waiting);
    mem_free(sweep->running);
    mem_free(sweep->open);
    mem_free(sweep->open_starved);
}

void chart_find_periods(struct chart *chart)
{
    const struct plan *plan = chart->plan;
    size_t classes = plan->class_count;
    struct sweep sweep = {
        .chart = chart,
        .class_ranks = mem_zalloc(classes, sizeof(uint32_t)),
        .task_ranks = mem_zalloc(plan->task_count, sizeof(uint32_t)),
        .open = mem_zalloc(classes, sizeof(uint32_t)),
        .open_starved = mem_zalloc(classes, sizeof(uint32_t)),
        .gap_ns = chart->end_ns / CHART_PERIOD_PARTS,
    };
    rank_classes(&sweep);
    rank_tasks(&sweep);
    size_t cells = classes * sweep.rank_count;
    sweep.waiting = mem_zalloc(cells, sizeof(uint32_t));
    sweep.running = mem_zalloc(cells, sizeof(uint32_t));
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        sweep.open[ix] = CHART_NONE;
        sweep.open_starved[ix] = CHART_NONE;
    }
    run_sweep(&sweep);
    release_sweep(&sweep);
    if (chart->period_count > 1) {
        qsort(chart->periods,
              chart->period_count,
              sizeof(*chart->periods),
              compare_periods);
    }
}
