/* SPDX-License-Identifier: MIT */
/*
 * What finishes early, among what does not delay the end. For runs that order
 * by rank.
 *
 * A run cannot end before the longest path from a ready task has been walked,
 * nor before the groups of the busiest lane (one value of a limit with `per`
 * that counts groups) have had their turns. Tasks for which either takes a
 * large part of the time that the run needs anyway are *critical*: they go
 * first, the longest first. The others can wait, and go by the least work that
 * is left in their group, so that groups finish early. How large a part makes a
 * task critical is the goal of the run.
 *
 * The time that the run needs anyway is its pending work over its cap. It is
 * rounded, so that it changes rarely: then the keys of all ready tasks are
 * looked at again. Work is counted in units of a millisecond or so.
 */
#include "core/sched_internal.h"

#include "base/invariant.h"
#include "core/lookahead/lookahead.h"

/* Of a task: the sum over all tasks times a small number fits. */
#define UNITS_MAX (UINT64_C(1) << 36)

/* With more pending tasks, all are critical. */
#define PENDING_MAX UINT32_C(65536)

/* Middle words of keys: critical tasks, then the others. */
#define KEY_RANKED ((uint64_t)INT64_MAX)
#define KEY_OTHER (UINT64_C(1) << 63)

/* Return an estimate in units of work. */
uint64_t goal_units(int64_t time_ns)
{
    uint64_t units = sched_units(time_ns);
    return units < UNITS_MAX ? units : UNITS_MAX;
}

/* ---- work ---- */

/* Return the unfinished work of a lane over what it admits at once. */
static uint64_t lane_work(const struct sched *sched, uint32_t lane)
{
    const struct pool *pool = &sched->limits.pools[lane];
    int64_t max = sched->limits.limits[pool->limit].max_now;
    if (max == LIMIT_NONE) {
        return 0;
    }
    return max > 0 ? pool->work / (uint64_t)max : pool->work;
}

void goal_touch_lane(struct sched *sched, uint32_t lane)
{
    struct pool *pool = &sched->limits.pools[lane];
    if (pool->lane_next == ID_NONE) {
        pool->lane_next = sched->lanes_due;
        sched->lanes_due = lane;
    }
}

/* Add a task to the work of its group and lane, or take it away. */
static void move_left(struct sched *sched, uint32_t task, bool more)
{
    uint32_t ix = sched->tasks[task].group;
    uint32_t lane = sched_kind(sched, sched_group(sched, ix))->lane;
    if (sched_is_solo(ix) && lane == ID_NONE) {
        return;
    }
    uint64_t units = goal_units(sched->tasks[task].estimate_ns);
    if (!sched_is_solo(ix)) {
        uint64_t *work = &sched->more[ix / 2].work;
        INVARIANT(more || *work >= units);
        *work = more ? *work + units : *work - units;
        ready_rekey_group(sched, ix);
    }
    if (lane != ID_NONE) {
        uint64_t *work = &sched->limits.pools[lane].work;
        INVARIANT(more || *work >= units);
        *work = more ? *work + units : *work - units;
        goal_touch_lane(sched, lane);
    }
}

/* Add a task to the pending work of its run, or take it away. */
static void
move_pending(struct sched *sched, struct run *run, uint32_t task, bool more)
{
    uint64_t units = goal_units(sched->tasks[task].estimate_ns);
    INVARIANT(more || run->work >= units);
    run->work = more ? run->work + units : run->work - units;
    run->goal_due = true;
}

/* A new task is waiting. */
void goal_add(struct sched *sched, uint32_t task)
{
    move_pending(sched, sched_run_of(sched, task), task, true);
    move_left(sched, task, true);
}

/* A task has left a state for another. */
void goal_note(struct sched *sched,
               struct run *run,
               uint32_t task,
               enum task_state before)
{
    enum task_state now = sched->tasks[task].state;
    bool was_pending = before <= TASK_READY;
    bool was_left = before <= TASK_RUNNING;
    if (was_pending != (now <= TASK_READY)) {
        move_pending(sched, run, task, !was_pending);
    }
    if (was_left != (now <= TASK_RUNNING)) {
        move_left(sched, task, !was_left);
    }
}

/* ---- keys ---- */

static bool is_critical(const struct run *run, int64_t length_ns)
{
    return sched_units(length_ns) >= run->theta;
}

/* Return the middle word of the key of a task, by its own path. */
uint64_t goal_key(const struct sched *sched, uint32_t task)
{
    const struct task *t = &sched->tasks[task];
    if (is_critical(&sched->runs[sched_run_ix(sched, task)], t->rank_ns)) {
        return KEY_RANKED - (uint64_t)t->rank_ns;
    }
    uint64_t work = sched_is_solo(t->group) ? goal_units(t->estimate_ns)
                                            : sched->more[t->group / 2].work;
    INVARIANT(work < KEY_OTHER);
    return KEY_OTHER | work;
}

/*
 * Return the same by the lane of the task as well: all tasks of a queue have
 * the same lane, so this matters between queues only.
 */
uint64_t goal_urgency(const struct sched *sched, uint32_t task, uint64_t key)
{
    const struct group *group = sched_group(sched, sched->tasks[task].group);
    const struct group_kind *kind = sched_kind(sched, group);
    const struct run *run = &sched->runs[kind->run];
    INVARIANT(kind->lane != ID_NONE);
    if (!sched_has_goal(run) || sched_has(sched, task, TASK_AGED) ||
        sched_class_of(sched, task)->queue ||
        lookahead_place(sched, task) != ID_NONE) {
        return key;
    }
    uint64_t units = lane_work(sched, kind->lane);
    uint64_t most = KEY_RANKED >> SCHED_UNIT_SHIFT;
    int64_t lane_ns =
        (int64_t)((units < most ? units : most) << SCHED_UNIT_SHIFT);
    if (!is_critical(run, lane_ns) || lane_ns < sched->tasks[task].rank_ns) {
        return key;
    }
    return KEY_RANKED - (uint64_t)lane_ns;
}

/* ---- the threshold ---- */

/* Keep three significant bits. */
static uint64_t rounded(uint64_t value)
{
    enum { BITS = 64, KEPT = 3 };
    if (value >> KEPT == 0) {
        return value;
    }
    int shift = BITS - KEPT - __builtin_clzll(value);
    return value >> shift << shift;
}

static uint64_t theta_of(const struct sched *sched, const struct run *run)
{
    uint32_t pending = run->counts[TASK_WAITING] + run->counts[TASK_READY];
    if (run->limit_count == 0 || pending > PENDING_MAX) {
        return 0;
    }
    int64_t cap = sched->limits.limits[run->first_limit].max_now;
    if (cap == LIMIT_NONE || cap == 0) {
        return 0;
    }
    uint64_t least = run->work / (uint64_t)cap;
    return rounded(run->goal == SCHED_FINISH_MANY ? least * 4 / 5 : least / 4);
}

/* Compute the thresholds and the urgencies that may have changed. */
void goal_settle(struct sched *sched)
{
    for (uint32_t ix = 0; ix < sched->run_count; ix++) {
        struct run *run = &sched->runs[ix];
        if (!run->goal_due) {
            continue;
        }
        run->goal_due = false;
        uint64_t theta = theta_of(sched, run);
        if (theta != run->theta) {
            uint64_t before = run->theta;
            run->theta = theta;
            ready_rekey_run(sched, ix, before);
        }
    }
    while (sched->lanes_due != LEND_END) {
        uint32_t lane = sched->lanes_due;
        sched->lanes_due = sched->limits.pools[lane].lane_next;
        sched->limits.pools[lane].lane_next = ID_NONE;
        ready_requeue_lane(sched, lane);
    }
}
