/* SPDX-License-Identifier: MIT */
/*
 * Shares that lend. A limit of background work that is a percentage of another
 * limit also gets what foreground work could never use: its maximum is the
 * base's less that number, if this is more than the percentage.
 *
 * What foreground work could use at once is bounded without looking at times.
 * A task is *left* if it is in the foreground, not finished, and not stuck. A
 * task is *stuck* if an operator must act before it can start: it is parked or
 * held, is a dead end, comes last and waits for that, or needs that a stuck
 * task is done. A group is left while one of
 * its tasks is; it then uses at most its width. Groups in one lane (one value
 * of a limit with `per` that counts groups) use together at most the lane's
 * maximum times the largest width. The bound is the sum over lanes and over
 * groups without a lane.
 *
 * The width of a group is the number of chains that cover its tasks: each task
 * continues the chain of one of its needs, or begins one. No two tasks of a
 * chain run at once.
 *
 * Changes are listed, and worked off at the end of an input: lend_settle().
 */
#include "core/sched_internal.h"

#include "base/invariant.h"

void lend_add_run(struct sched *sched, uint32_t run)
{
    struct run *r = &sched->runs[run];
    for (uint32_t n = 0; n < r->limit_count; n++) {
        uint32_t ix = r->first_limit + n;
        struct limit *limit = &sched->limits.limits[ix];
        if (limit->spec.background) {
            r->lends = true;
            limit->foreground = 0; /* it has no tasks yet */
            limits_derive(&sched->limits, ix);
        }
    }
}

static bool is_lending(const struct sched *sched, uint32_t task)
{
    return sched->runs[sched_run_ix(sched, task)].lends;
}

/* ---- the bound ---- */

/* Compute what the groups left in a lane could use at once. */
static int64_t part_of(const struct sched *sched, const struct pool *pool)
{
    int64_t max = sched->limits.limits[pool->limit].max_now;
    INVARIANT(max >= 0 && pool->left >= 0);
    if (pool->left == 0 || max > pool->left / pool->widest) {
        return pool->left;
    }
    return max * pool->widest;
}

/* Compute it again, and with it the bound of the run. */
static void refresh_lane(struct sched *sched, uint32_t lane)
{
    struct pool *pool = &sched->limits.pools[lane];
    struct run *run = &sched->runs[sched->limits.limits[pool->limit].owner];
    int64_t part = part_of(sched, pool);
    if (part != pool->part) {
        run->foreground += part - pool->part;
        pool->part = part;
        run->lend_due = true;
        sched->lend_due = true;
    }
    INVARIANT(run->foreground >= 0);
}

/* Groups of this kind begin or cease to be left, with this sum of widths. */
static void change_left(struct sched *sched, uint32_t kind, int64_t width)
{
    const struct group_kind *k = &sched->kinds[kind];
    if (k->lane != ID_NONE) {
        sched->limits.pools[k->lane].left += width;
        refresh_lane(sched, k->lane);
        return;
    }
    struct run *run = &sched->runs[k->run];
    run->foreground += width;
    run->lend_due = true;
    sched->lend_due = true;
    INVARIANT(run->foreground >= 0);
}

void lend_change_limit(struct sched *sched, uint32_t limit)
{
    const struct limit *l = &sched->limits.limits[limit];
    INVARIANT(l->kind == LIMIT_PLAN);
    for (uint32_t pool = l->first_pool;
         pool != ID_NONE && l->spec.hold_group && l->spec.per != ID_NONE;
         pool = sched->limits.pools[pool].next_of_limit) {
        refresh_lane(sched, pool);
        goal_touch_lane(sched, pool);
    }
}

/* ---- widths ---- */

static uint32_t width_of(const struct sched *sched, uint32_t group)
{
    return sched_is_solo(group) ? 1 : sched->more[group / 2].width;
}

/* Note the width of a group, which grew, in its lane. */
static void widen(struct sched *sched, uint32_t group)
{
    uint32_t lane = sched_kind(sched, sched_group(sched, group))->lane;
    uint32_t width = width_of(sched, group);
    if (lane != ID_NONE && width > sched->limits.pools[lane].widest) {
        sched->limits.pools[lane].widest = width;
        refresh_lane(sched, lane);
    }
}

/* Let a task continue a chain of its group, or begin one. */
static void join_chain(struct sched *sched, uint32_t task)
{
    const struct graph *graph = &sched->graph;
    uint32_t group = sched->tasks[task].group;
    uint32_t before = ID_NONE;
    for (uint32_t edge = graph_first_need(graph, task);
         edge != ID_NONE && !sched_is_solo(group);
         edge = graph_next_need(graph, edge)) {
        uint32_t need = graph_need(graph, edge);
        if (need < task && need < before && sched->tasks[need].group == group &&
            sched->details[need].continued == 0) {
            before = need;
        }
    }
    if (before != ID_NONE) {
        sched->details[before].continued = 1;
        return;
    }
    if (!sched_is_solo(group)) {
        struct group_more *more = &sched->more[group / 2];
        more->width++;
        if (more->left > 0) {
            change_left(sched, sched_group(sched, group)->kind, 1);
        }
    }
    widen(sched, group);
}

/* Forget the chains of a run: its needs have changed. */
static void forget_chains(struct sched *sched, uint32_t run)
{
    for (uint32_t ix = 0; ix < sched->group_count; ix++) {
        const struct group *group = &sched->groups[ix];
        struct group_more *more = &sched->more[ix];
        if (sched_kind(sched, group)->run != run) {
            continue;
        }
        if (more->left > 0) {
            change_left(sched, group->kind, -(int64_t)more->width);
        }
        more->width = 0;
    }
    for (uint32_t task = 0; task < sched->task_count; task++) {
        if (sched_run_ix(sched, task) == run) {
            sched->details[task].continued = 0;
        }
    }
}

/*
 * Measure the groups of a run after an addition of the tasks from `first` and
 * the edges from `edges`. With `forward`, no old task has gained a need.
 */
void lend_measure(struct sched *sched,
                  uint32_t run,
                  uint32_t first,
                  uint32_t edges,
                  bool forward)
{
    if (!sched->runs[run].lends) {
        return;
    }
    for (uint32_t edge = edges; edge < sched->graph.edge_count; edge++) {
        uint32_t dependent = graph_dependent(&sched->graph, edge);
        if (graph_on(&sched->graph, edge) == SCHED_ON_DONE &&
            sched->details[graph_need(&sched->graph, edge)].stuck != 0) {
            sched->lend_links[dependent].stuck_needs++;
            lend_touch(sched, dependent);
        }
    }
    if (!forward && first > 0) {
        forget_chains(sched, run);
    }
    for (uint32_t task = forward ? first : 0; task < sched->task_count;
         task++) {
        if (sched_run_ix(sched, task) == run) {
            join_chain(sched, task);
        }
    }
    for (uint32_t task = first; task < sched->task_count; task++) {
        lend_touch(sched, task);
    }
}

/* ---- tasks that are left or stuck ---- */

void lend_touch(struct sched *sched, uint32_t task)
{
    if (sched->lend_links != NULL && is_lending(sched, task) &&
        sched->lend_links[task].next == ID_NONE) {
        sched->lend_links[task].next = sched->lend_first;
        sched->lend_first = task;
    }
}

static bool is_stuck(const struct sched *sched, uint32_t task)
{
    if (state_is_pending(sched, task)) {
        const struct detail *detail = &sched->details[task];
        return sched_has(sched, task, TASK_HELD) ||
               sched->lend_links[task].stuck_needs > 0 ||
               (detail->last != 0 && detail->waits != 0);
    }
    return sched->tasks[task].state == TASK_PARKED ||
           deps_is_dead_end(sched, task);
}

static bool is_left(const struct sched *sched, uint32_t task)
{
    return (state_in_flight(sched, task) ||
            (state_is_pending(sched, task) && !is_stuck(sched, task))) &&
           !ready_is_background(sched, task);
}

/* A task is left now, or no more: so may be its group. */
static void set_left(struct sched *sched, uint32_t task, bool left)
{
    uint32_t ix = sched->tasks[task].group;
    uint32_t others = 0; /* of its group that are left */
    sched->details[task].left = left ? 1 : 0;
    if (!sched_is_solo(ix)) {
        uint32_t *count = &sched->more[ix / 2].left;
        INVARIANT(left || *count > 0);
        others = left ? *count : *count - 1;
        *count = left ? others + 1 : others;
    }
    if (others == 0) {
        int64_t width = width_of(sched, ix);
        change_left(sched, sched_group(sched, ix)->kind, left ? width : -width);
    }
}

/* Look at a task again. Its dependents follow if it is stuck now, or no more.
 */
static void settle_task(struct sched *sched, uint32_t task)
{
    struct detail *detail = &sched->details[task];
    bool stuck = is_stuck(sched, task);
    bool left = is_left(sched, task);
    if (left != (detail->left != 0)) {
        set_left(sched, task, left);
    }
    if (stuck == (detail->stuck != 0)) {
        return;
    }
    detail->stuck = stuck ? 1 : 0;
    const struct graph *graph = &sched->graph;
    for (uint32_t edge = graph_first_dependent(graph, task); edge != ID_NONE;
         edge = graph_next_dependent(graph, edge)) {
        uint32_t to = graph_dependent(graph, edge);
        if (graph_on(graph, edge) != SCHED_ON_DONE) {
            continue;
        }
        uint32_t *stuck_needs = &sched->lend_links[to].stuck_needs;
        INVARIANT(stuck || *stuck_needs > 0);
        *stuck_needs += stuck ? 1U : UINT32_MAX; /* less one */
        lend_touch(sched, to);
    }
}

/* Set the maxima of the shares of a run. */
static void settle_run(struct sched *sched, uint32_t run)
{
    struct run *r = &sched->runs[run];
    for (uint32_t n = 0; n < r->limit_count; n++) {
        uint32_t ix = r->first_limit + n;
        struct limit *limit = &sched->limits.limits[ix];
        if (limit->spec.background) {
            int64_t before = limit->max_now;
            limit->foreground = r->foreground;
            limits_derive(&sched->limits, ix);
            if (limit->max_now != before) {
                dispatch_wake_limit(sched, ix);
            }
        }
    }
    r->lend_due = false;
}

void lend_settle(struct sched *sched)
{
    while (sched->lend_first != LEND_END) {
        uint32_t task = sched->lend_first;
        sched->lend_first = sched->lend_links[task].next;
        sched->lend_links[task].next = ID_NONE;
        settle_task(sched, task);
    }
    for (uint32_t run = 0; sched->lend_due && run < sched->run_count; run++) {
        if (sched->runs[run].lend_due) {
            settle_run(sched, run);
        }
    }
    sched->lend_due = false;
}

/* ---- checks ---- */

/* Check the lanes of a run, and return what their groups could use. */
static int64_t verify_lanes(const struct sched *sched, uint32_t run)
{
    int64_t sum = 0;
    for (uint32_t ix = 0; ix < sched->limits.pool_count; ix++) {
        const struct pool *pool = &sched->limits.pools[ix];
        const struct limit *limit = &sched->limits.limits[pool->limit];
        if (limit->kind == LIMIT_PLAN && limit->owner == run) {
            INVARIANT(pool->part == part_of(sched, pool));
            sum += pool->part;
        }
    }
    return sum;
}

void lend_verify(const struct sched *sched)
{
    INVARIANT(sched->lend_first == LEND_END);
    for (uint32_t task = 0; task < sched->task_count; task++) {
        if (!is_lending(sched, task)) {
            continue;
        }
        uint32_t stuck = 0;
        const struct graph *graph = &sched->graph;
        for (uint32_t edge = graph_first_need(graph, task); edge != ID_NONE;
             edge = graph_next_need(graph, edge)) {
            if (graph_on(graph, edge) == SCHED_ON_DONE) {
                stuck += sched->details[graph_need(graph, edge)].stuck;
            }
        }
        INVARIANT(stuck == sched->lend_links[task].stuck_needs);
        INVARIANT(is_stuck(sched, task) == (sched->details[task].stuck != 0));
        INVARIANT(is_left(sched, task) == (sched->details[task].left != 0));
    }
    for (uint32_t run = 0; run < sched->run_count; run++) {
        const struct run *r = &sched->runs[run];
        INVARIANT(!r->lend_due);
        int64_t sum = verify_lanes(sched, run);
        for (uint32_t ix = 0; r->lends && ix < sched->group_count; ix++) {
            const struct group_kind *kind =
                sched_kind(sched, &sched->groups[ix]);
            if (kind->run == run && kind->lane == ID_NONE &&
                sched->more[ix].left > 0) {
                sum += sched->more[ix].width;
            }
        }
        for (uint32_t task = 0; r->lends && task < sched->task_count; task++) {
            const struct task *t = &sched->tasks[task];
            if (!sched_is_solo(t->group)) {
                continue;
            }
            const struct group_kind *kind = sched_kind(sched, &t->solo.group);
            if (kind->run == run && kind->lane == ID_NONE) {
                sum += sched->details[task].left;
            }
        }
        INVARIANT(sum == r->foreground);
    }
}
