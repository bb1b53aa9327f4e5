/* SPDX-License-Identifier: MIT */
/*
 * Tasks that come last: they run when all others of their scope are at rest,
 * and again if one of those ran afterwards. One that is in flight when the
 * others are at rest again is not repeated.
 */
#include "sim/world_internal.h"

#include <string.h>

static bool is_state(const struct world_task *task, const char *state)
{
    return strcmp(task->state, state) == 0;
}

/* Whether `task` belongs to the scope of `last`, and is not last in it. */
static bool is_member(const struct plan *plan, uint32_t last, uint32_t task)
{
    const struct plan_task *of = &plan->tasks[last];
    const struct plan_task *t = &plan->tasks[task];
    if (t->last && t->scope == of->scope) {
        return false;
    }
    return of->scope == PLAN_NONE ||
           (t->group != PLAN_NONE && plan_is_within(plan, t->group, of->scope));
}

/* Whether a task will act by itself, by its durable state. In a stopped run,
 * one that comes last in its own scope does, and what is in flight. */
static bool is_active(const struct world_run *run, uint32_t ix)
{
    const struct world_task *task = &run->tasks[ix];
    bool stopped = run->stopped != SCHED_NOT_STOPPED;
    bool halted = stopped && !run->plan->tasks[ix].last;
    if (is_state(task, "starting") || is_state(task, "running")) {
        return true;
    }
    if (is_state(task, "waiting")) {
        return (task->flags & SCHED_RECORD_BACKING_OFF) != 0 && !halted;
    }
    if (is_state(task, "parked")) {
        return task->parked == SCHED_PARKED_BLOCKED && !stopped;
    }
    return is_state(task, "ready") && !halted;
}

void world_last_check_claim(struct world *world, uint32_t run_ix, uint32_t last)
{
    const struct world_run *run = &world->runs[run_ix];
    const struct plan *plan = run->plan;
    for (uint32_t ix = 0; ix < run->task_count; ix++) {
        if (is_member(plan, last, ix) && is_active(run, ix)) {
            world_fault(world,
                        "%s comes last, but %s is %s",
                        plan->tasks[last].id,
                        plan->tasks[ix].id,
                        run->tasks[ix].state);
        }
    }
}

bool world_last_aborts(const struct world_run *run)
{
    for (uint32_t ix = 0; ix < run->plan->task_count; ix++) {
        if (run->plan->tasks[ix].settings->on_failure ==
            PLAN_ON_FAILURE_ABORT) {
            return true;
        }
    }
    return false;
}

/* Check that a task was not withdrawn without a reason. */
static void
check_withdrawn(struct world *world, const struct world_run *run, uint32_t last)
{
    const struct world_task *task = &run->tasks[last];
    const struct plan_task *of = &run->plan->tasks[last];
    uint32_t cancels = run->cancels + (world_last_aborts(run) ? 1 : 0);
    bool skipped = is_state(task, "skipped") && of->need_count == 0;
    bool cancelled =
        is_state(task, "cancelled") && cancels < 2 && !task->given_up;
    if (!task->ordered && (skipped || cancelled)) {
        world_fault(world,
                    "%s comes last, and is %s for no reason",
                    of->id,
                    task->state);
    }
}

void world_last_check_end(struct world *world, const struct world_run *run)
{
    for (uint32_t last = 0; last < run->task_count; last++) {
        if (!run->plan->tasks[last].last) {
            continue;
        }
        check_withdrawn(world, run, last);
        for (uint32_t ix = 0; ix < run->task_count; ix++) {
            if (is_state(&run->tasks[last], "done") &&
                is_member(run->plan, last, ix) &&
                run->tasks[ix].ended_seq > run->tasks[last].ended_seq) {
                world_fault(world,
                            "%s comes last, and ended before %s",
                            run->plan->tasks[last].id,
                            run->plan->tasks[ix].id);
            }
        }
    }
}
