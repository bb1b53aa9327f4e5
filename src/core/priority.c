/* SPDX-License-Identifier: MIT */
/*
 * Tier and rank of a task, derived from its dependents. When a task is added or
 * finishes, they are recomputed for all tasks that may be affected: the named
 * tasks and all their unfinished needs. That set is collected first and then
 * processed from the dependents down (a task after all its affected
 * dependents), so that each is computed once.
 *
 * sched->stack holds the set, sched->tally the number of affected dependents
 * that are still to be computed. A task without any is in a list through the
 * tally, and processed in its turn.
 */
#include "core/sched_internal.h"

#include "base/invariant.h"

struct order {
    int64_t rank_ns;
    uint8_t tier;
    uint8_t blocked_tier;
    uint8_t priority;
};

static uint8_t better(uint8_t a, uint8_t b)
{
    return a < b ? a : b;
}

/* Return the tier passed on to the needs: without its own if deferred. */
static uint8_t blocked_tier_of(const struct sched *sched, uint32_t task)
{
    const struct sched_class_spec *spec = sched_class_of(sched, task);
    uint8_t below = sched->details[task].blocked_tier;
    return spec->defer ? below : better(below, (uint8_t)spec->tier);
}

/* Compute tier, priority and rank; `fresh`: no dependent of the task is
 * finished. */
static struct order
compute(const struct sched *sched, uint32_t task, bool fresh)
{
    const struct graph *graph = &sched->graph;
    int64_t estimate_ns = sched->tasks[task].estimate_ns;
    uint8_t tier = (uint8_t)sched_class_of(sched, task)->tier;
    struct order order = {
        .tier = tier,
        .blocked_tier = TIER_NONE,
        .priority = sched->details[task].own_priority,
    };
    for (uint32_t edge = graph_first_dependent(graph, task); edge != ID_NONE;
         edge = graph_next_dependent(graph, edge)) {
        uint32_t ix = graph_dependent(graph, edge);
        const struct task *dependent = &sched->tasks[ix];
        if (!fresh && state_is_final(dependent->state)) {
            continue;
        }
        if (dependent->rank_ns > order.rank_ns) {
            order.rank_ns = dependent->rank_ns;
        }
        order.tier = better(order.tier, dependent->tier);
        order.priority = better(order.priority, dependent->priority);
        if (sched->has_deferred) {
            uint8_t blocked_tier = blocked_tier_of(sched, ix);
            order.blocked_tier = better(order.blocked_tier, blocked_tier);
        }
    }
    order.rank_ns = order.rank_ns > SCHED_NEVER - estimate_ns
                        ? SCHED_NEVER
                        : order.rank_ns + estimate_ns;
    INVARIANT(order.rank_ns >= estimate_ns);
    INVARIANT(order.tier <= tier);
    return order;
}

static void update(struct sched *sched, uint32_t task, bool fresh)
{
    struct order order = compute(sched, task, fresh);
    struct task *t = &sched->tasks[task];
    if (order.rank_ns == t->rank_ns && order.tier == t->tier &&
        order.priority == t->priority &&
        order.blocked_tier == sched->details[task].blocked_tier) {
        return;
    }
    bool queued = sched_has(sched, task, TASK_QUEUED);
    if (queued) {
        ready_dequeue(sched, task);
    }
    t->rank_ns = order.rank_ns;
    t->tier = order.tier;
    t->priority = order.priority & 0xFU;
    sched->details[task].blocked_tier = order.blocked_tier;
    if (sched_class_of(sched, task)->defer) {
        lend_touch(sched, task); /* it may be in the background now */
    }
    if (queued) {
        ready_enqueue(sched, task);
    }
}

/* Add a task to the set, unless it is in it or finished. */
static uint32_t collect(struct sched *sched, uint32_t task, uint32_t count)
{
    if (sched->marks[task] == sched->mark ||
        state_is_final(sched->tasks[task].state)) {
        return count;
    }
    sched->marks[task] = sched->mark;
    INVARIANT(count < sched->task_count);
    sched->stack[count] = task;
    return count + 1;
}

static uint32_t collect_needs(struct sched *sched, uint32_t of, uint32_t count)
{
    for (uint32_t edge = graph_first_need(&sched->graph, of); edge != ID_NONE;
         edge = graph_next_need(&sched->graph, edge)) {
        count = collect(sched, graph_need(&sched->graph, edge), count);
    }
    return count;
}

/* The tasks to be processed, linked by the tally. */
struct line {
    uint32_t first;
    uint32_t last;
};

/* Add a task at the end. */
static void stand_in(struct sched *sched, struct line *line, uint32_t task)
{
    INVARIANT(sched->tally[task] == 0);
    if (line->first == ID_NONE) {
        line->first = task;
    } else {
        sched->tally[line->last] = task;
    }
    sched->tally[task] = ID_NONE;
    line->last = task;
}

/* Process the set of `count` tasks in sched->stack. */
static void work_off(struct sched *sched, uint32_t count)
{
    const struct graph *graph = &sched->graph;
    struct line line = {ID_NONE, ID_NONE};
    for (uint32_t ix = 0; ix < count; ix++) {
        sched->tally[sched->stack[ix]] = 0;
    }
    for (uint32_t ix = 0; ix < count; ix++) {
        for (uint32_t edge = graph_first_need(graph, sched->stack[ix]);
             edge != ID_NONE;
             edge = graph_next_need(graph, edge)) {
            sched->tally[graph_need(graph, edge)]++;
        }
    }
    for (uint32_t ix = 0; ix < count; ix++) {
        if (sched->tally[sched->stack[ix]] == 0) {
            stand_in(sched, &line, sched->stack[ix]);
        }
    }
    uint32_t processed = 0;
    for (uint32_t task = line.first; task != ID_NONE;
         task = sched->tally[task]) {
        processed++;
        update(sched, task, false);
        for (uint32_t edge = graph_first_need(graph, task); edge != ID_NONE;
             edge = graph_next_need(graph, edge)) {
            uint32_t need = graph_need(graph, edge);
            if (sched->marks[need] == sched->mark &&
                --sched->tally[need] == 0) {
                stand_in(sched, &line, need);
            }
        }
    }
    INVARIANT(processed == count);
}

/*
 * Compute tier and rank after an addition of the tasks from `first` and the
 * edges from `edges_before`. With `forward`, no new task needs a later one.
 */
void priority_of_new(struct sched *sched,
                     uint32_t first,
                     uint32_t edges_before,
                     bool forward)
{
    INVARIANT(first <= sched->task_count);
    INVARIANT(edges_before <= sched->graph.edge_count);
    enum { AHEAD = 16 };
    (void)sched_new_mark(sched);
    uint32_t count = 0;
    for (uint32_t ix = sched->task_count; ix-- > first;) {
        if (forward) {
            if (ix >= first + AHEAD) {
                sched_fetch_dependents(sched, ix - AHEAD, false);
            }
            update(sched, ix, true);
        } else {
            count = collect(sched, ix, count);
        }
    }
    uint32_t old = count;
    for (uint32_t edge = edges_before; edge < sched->graph.edge_count; edge++) {
        uint32_t need = graph_need(&sched->graph, edge);
        if (need < first) {
            count = collect(sched, need, count);
        }
    }
    for (uint32_t ix = old; ix < count; ix++) {
        count = collect_needs(sched, sched->stack[ix], count);
    }
    work_off(sched, count);
}

void priority_refresh(struct sched *sched,
                      const uint32_t *seeds,
                      uint32_t count)
{
    (void)sched_new_mark(sched);
    uint32_t affected = 0;
    for (uint32_t ix = 0; ix < count; ix++) {
        INVARIANT(seeds[ix] < sched->task_count);
        affected = collect(sched, seeds[ix], affected);
        affected = collect_needs(sched, seeds[ix], affected);
    }
    for (uint32_t ix = 0; ix < affected; ix++) {
        affected = collect_needs(sched, sched->stack[ix], affected);
    }
    work_off(sched, affected);
}
