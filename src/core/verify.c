/* SPDX-License-Identifier: MIT */
/*
 * Consistency checks. All other data of the scheduler follow from the states of
 * the tasks; they are recomputed here the slow way and compared.
 */
#include "base/invariant.h"
#include "base/mem.h"
#include "core/sched_internal.h"

static bool is_held(const struct sched *sched, uint32_t task)
{
    return sched_has(sched, task, TASK_HELD);
}

/* Return whether the state of a task keeps its group open. */
static bool counts(const struct sched *sched, uint32_t task)
{
    bool takes = dispatch_admits(sched, task);
    if (sched_has(sched, task, TASK_BACKGROUND)) {
        return false;
    }
    return state_in_flight(sched, task) ||
           (sched_has(sched, task, TASK_QUEUED) && takes) ||
           (sched_has(sched, task, TASK_BACKING_OFF) &&
            !sched_is_away(sched, task) && !is_held(sched, task));
}

/* Check flags against the state, and unsatisfied needs against the graph. */
static void verify_task(const struct sched *sched, uint32_t task)
{
    const struct task *t = &sched->tasks[task];
    bool ready = t->state == TASK_READY;
    INVARIANT(sched_has(sched, task, TASK_QUEUED) ==
              (ready && !is_held(sched, task)));
    INVARIANT(!sched_has(sched, task, TASK_BACKING_OFF) ||
              t->state == TASK_WAITING);
    INVARIANT(!sched_has(sched, task, TASK_ENDING) ||
              state_in_flight(sched, task));
    INVARIANT(!sched_has(sched, task, TASK_TIMED) || ready ||
              sched_has(sched, task, TASK_BACKING_OFF));
    INVARIANT(!sched_has(sched, task, TASK_ASKING) || t->state == TASK_PARKED);
    uint32_t unmet = 0;
    const struct graph *graph = &sched->graph;
    for (uint32_t edge = graph_first_need(graph, task); edge != ID_NONE;
         edge = graph_next_need(graph, edge)) {
        uint32_t need = graph_need(graph, edge);
        bool done = graph_on(graph, edge) == SCHED_ON_DONE;
        unmet += done && !sched_has(sched, need, TASK_SATISFIED) ? 1 : 0;
    }
    bool waits = sched->details[task].waits != 0;
    INVARIANT(waits == deps_has_to_wait(sched, task));
    unmet += waits ? 1 : 0;
    INVARIANT(unmet == sched->unmet[task]);
    INVARIANT(!ready || unmet == 0);
    INVARIANT(sched_has(sched, task, TASK_SATISFIED) ==
              (deps_is_complete(sched, task) && unmet == 0));
    INVARIANT(t->state != TASK_WAITING || unmet > 0 ||
              sched_has(sched, task, TASK_BACKING_OFF));
    if (sched_has(sched, task, TASK_QUEUED)) {
        INVARIANT(sched_has(sched, task, TASK_BACKGROUND) ==
                  ready_is_background(sched, task));
    }
    INVARIANT(sched_has(sched, task, TASK_COUNTED) == counts(sched, task));
    if (state_in_flight(sched, task)) {
        INVARIANT(sched->in_flight[t->flight_ix] == task);
    }
}

static void
add_set(const struct sched *sched, uint32_t set, int64_t *used_by_counter)
{
    const struct need_set *needs = &sched->sets[set];
    for (uint32_t ix = 0; ix < needs->count; ix++) {
        struct pool_need need = sched->needs[needs->first + ix];
        used_by_counter[sched->limits.pools[need.pool].counter] += need.units;
    }
}

static void add_open(const struct sched *sched,
                     const struct group *group,
                     int64_t *used_by_counter)
{
    if (group->open) {
        add_set(sched, sched_kind(sched, group)->lanes, used_by_counter);
    }
    if (group->working) {
        add_set(sched, sched_kind(sched, group)->issues, used_by_counter);
    }
}

/* Check units in use against the sessions in flight and the open groups. */
static void verify_counters(const struct sched *sched)
{
    int64_t *used = mem_zalloc(sched->limits.counter_count, sizeof(used[0]));
    for (uint32_t ix = 0; ix < sched->in_flight_count; ix++) {
        uint32_t task = sched->in_flight[ix];
        if (sched->tasks[task].leader == task) {
            const struct shape *shape = sched_shape_of(sched, task);
            add_set(sched, shape->needs, used);
            if (sched_has(sched, task, TASK_BACKGROUND) &&
                shape->background_needs != ID_NONE) {
                add_set(sched, shape->background_needs, used);
            }
        }
    }
    for (uint32_t ix = 0; ix < sched->group_count; ix++) {
        add_open(sched, &sched->groups[ix], used);
    }
    for (uint32_t ix = 0; ix < sched->task_count; ix++) {
        if (sched_is_solo(sched->tasks[ix].group)) {
            add_open(sched, &sched->tasks[ix].solo.group, used);
        }
    }
    for (uint32_t ix = 0; ix < sched->limits.counter_count; ix++) {
        INVARIANT(used[ix] == sched->limits.counters[ix].used);
    }
    mem_free(used);
}

/* A side of a bin has an entry in a queue if and only if it has tasks. */
static void verify_bin(const struct bin *bin)
{
    for (uint32_t side = 0; side < BIN_SIDES; side++) {
        bool has_entry = bin->stamp[side] % 2 != 0;
        INVARIANT(has_entry == (bin->root[side] != ID_NONE));
    }
}

static void verify_group(const struct sched *sched,
                         uint32_t ix,
                         uint32_t busy,
                         uint32_t queued)
{
    const struct group *group = sched_group(sched, ix);
    INVARIANT(busy == sched_busy(sched, ix));
    INVARIANT(queued == sched_queued(sched, ix));
    INVARIANT(!group->open || busy > 0 || group->checking);
    INVARIANT(!group->working || group->open);
    INVARIANT(group->checking ||
              group->working == (group->open && busy > queued));
}

static void verify_groups(const struct sched *sched)
{
    uint32_t *busy = mem_zalloc(sched->group_count, sizeof(busy[0]));
    uint32_t *queued = mem_zalloc(sched->group_count, sizeof(queued[0]));
    for (uint32_t task = 0; task < sched->task_count; task++) {
        const struct task *t = &sched->tasks[task];
        uint32_t counted = sched_has(sched, task, TASK_COUNTED) ? 1 : 0;
        uint32_t merges = sched_class_of(sched, task)->queue ? counted : 0;
        if (sched_is_solo(t->group)) {
            verify_group(sched, t->group, counted, merges);
            INVARIANT(t->solo.stamp % 2 ==
                      (sched_has(sched, task, TASK_QUEUED) ? 1 : 0));
        } else {
            busy[t->group / 2] += counted;
            queued[t->group / 2] += merges;
        }
    }
    for (uint32_t ix = 0; ix < sched->group_count; ix++) {
        verify_group(sched, ix * 2, busy[ix], queued[ix]);
        verify_bin(&sched->more[ix].bin);
    }
    mem_free(busy);
    mem_free(queued);
}

static void verify_run(const struct sched *sched, uint32_t run)
{
    struct run seen = {0};
    for (uint32_t task = 0; task < sched->task_count; task++) {
        const struct task *t = &sched->tasks[task];
        if (sched_run_ix(sched, task) != run) {
            continue;
        }
        seen.counts[t->state]++;
        bool ready = t->state == TASK_READY;
        bool flies = state_in_flight(sched, task);
        seen.held_ready += ready && is_held(sched, task) ? 1 : 0;
        seen.backing_off += sched_has(sched, task, TASK_BACKING_OFF) ? 1 : 0;
        if (sched_has(sched, task, TASK_ASKING) && seen.asking++ == 0) {
            seen.asked = task;
        }
        seen.sessions += flies && t->leader == task ? 1 : 0;
    }
    const struct run *kept = &sched->runs[run];
    for (uint32_t state = 0; state < TASK_STATE_COUNT; state++) {
        INVARIANT(seen.counts[state] == kept->counts[state]);
    }
    INVARIANT(seen.held_ready == kept->held_ready);
    INVARIANT(seen.backing_off == kept->backing_off);
    INVARIANT(seen.asking == kept->asking);
    INVARIANT(seen.asking == 0 || seen.asked == kept->asked);
    INVARIANT(seen.sessions == kept->sessions);
}

/* A guard's pool is closed if and only if the guard is parked. */
static void verify_guards(const struct sched *sched)
{
    INVARIANT(!sched->guards_due);
    for (uint32_t ix = 0; ix < sched->guard_count; ix++) {
        const struct guard *guard = &sched->guards[ix];
        bool open = limits_free(&sched->limits, guard->pool) > 0;
        INVARIANT(open != (sched->tasks[guard->task].state == TASK_PARKED));
    }
}

/* Only queues with entries wait; usable pools with waiters are awake. */
static void verify_queues(const struct sched *sched)
{
    uint32_t waiting = 0;
    for (uint32_t ix = 0; ix < sched->bin_count; ix++) {
        verify_bin(&sched->bins[ix]);
    }
    for (uint32_t ix = 0; ix < sched->queue_count; ix++) {
        const struct queue *queue = &sched->queues[ix];
        INVARIANT(queue->at_pool == ID_NONE || sched_entries(sched, ix) > 0);
        INVARIANT(queue->at_pool == ID_NONE || !queue->aside);
    }
    for (uint32_t ix = 0; ix < sched->limits.pool_count; ix++) {
        const struct pool *pool = &sched->limits.pools[ix];
        bool usable = !limits_is_shut(&sched->limits, ix) &&
                      limits_free(&sched->limits, ix) > 0;
        INVARIANT(pool->awake == (usable && pool->waiting != ID_NONE));
        waiting += pool->waiting != ID_NONE ? 1 : 0;
    }
    for (uint32_t ix = 0; ix < sched->limits.limit_count; ix++) {
        waiting -= sched->limits.limits[ix].waiting;
    }
    INVARIANT(waiting == 0);
}

/* No pending task comes after a dead end: it could never start. */
static void verify_dead_ends(const struct sched *sched)
{
    const struct graph *graph = &sched->graph;
    bool *dead = mem_zalloc(sched->task_count, sizeof(dead[0]));
    for (uint32_t task = 0; task < sched->task_count; task++) {
        dead[task] = deps_is_dead_end(sched, task);
    }
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t edge = 0; edge < graph->edge_count; edge++) {
            uint32_t to = graph_dependent(graph, edge);
            if (graph_on(graph, edge) != SCHED_ON_DONE) {
                INVARIANT(!state_is_pending(sched, to) ||
                          !deps_is_dead(sched, edge));
            } else if (dead[graph_need(graph, edge)] && !dead[to]) {
                INVARIANT(!state_is_pending(sched, to));
                dead[to] = true;
                changed = true;
            }
        }
    }
    mem_free(dead);
}

/* Check the work of runs, groups and lanes against their tasks. */
static void verify_work(const struct sched *sched)
{
    const struct limits *limits = &sched->limits;
    uint64_t *pending = mem_zalloc(sched->run_count, sizeof(pending[0]));
    uint64_t *groups = mem_zalloc(sched->group_count, sizeof(groups[0]));
    uint64_t *lanes = mem_zalloc(limits->pool_count, sizeof(lanes[0]));
    for (uint32_t task = 0; task < sched->task_count; task++) {
        const struct task *t = &sched->tasks[task];
        uint32_t lane = sched_kind(sched, sched_group(sched, t->group))->lane;
        bool counts = sched_has_goal(&sched->runs[sched_run_ix(sched, task)]);
        uint64_t units = counts ? goal_units(t->estimate_ns) : 0;
        if (state_is_pending(sched, task)) {
            pending[sched_run_ix(sched, task)] += units;
        }
        if (!sched_is_solo(t->group) && t->state <= TASK_RUNNING) {
            groups[t->group / 2] += units;
        }
        if (lane != ID_NONE && t->state <= TASK_RUNNING) {
            lanes[lane] += units;
        }
    }
    for (uint32_t ix = 0; ix < sched->run_count; ix++) {
        INVARIANT(pending[ix] == sched->runs[ix].work);
    }
    for (uint32_t ix = 0; ix < sched->group_count; ix++) {
        INVARIANT(groups[ix] == sched->more[ix].work);
    }
    for (uint32_t ix = 0; ix < limits->pool_count; ix++) {
        INVARIANT(lanes[ix] == limits->pools[ix].work);
    }
    mem_free(pending);
    mem_free(groups);
    mem_free(lanes);
}

void sched_verify(const struct sched *sched)
{
    verify_dead_ends(sched);
    uint32_t in_flight = 0;
    for (uint32_t task = 0; task < sched->task_count; task++) {
        verify_task(sched, task);
        in_flight += state_in_flight(sched, task) ? 1 : 0;
    }
    INVARIANT(in_flight == sched->in_flight_count);
    for (uint32_t run = 0; run < sched->run_count; run++) {
        verify_run(sched, run);
    }
    verify_counters(sched);
    verify_groups(sched);
    verify_guards(sched);
    verify_queues(sched);
    lend_verify(sched);
    verify_work(sched);
}
