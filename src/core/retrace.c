/* SPDX-License-Identifier: MIT */
/*
 * A task leaves its state for TASK_WAITING, which every state allows, and
 * enters the next state as from a record. A task that is not added yet is
 * skipped because of another task: so it satisfies nothing and waits for
 * nothing. A cancelled task is represented in the same way, because a scheduler
 * never leaves that state but a damaged record might. A waiting task is backing
 * off without a time limit: the record shows when it becomes ready.
 */
#include "core/retrace.h"

#include "base/invariant.h"
#include "core/sched_internal.h"

enum { KIND_CLOSED, KIND_OPEN, KIND_BACKGROUND, KIND_SIDES };

static void tell(const struct retrace *retrace, uint32_t task)
{
    retrace->changed(retrace->ctx, (struct task_id){task});
}

/* Let a task wait until the next record. It keeps its group open if all its
 * needs are satisfied: it is about to be ready, or backs off. */
static void wait(struct sched *sched, uint32_t task)
{
    sched_raise(sched, task, TASK_BACKING_OFF);
    if (sched->unmet[task] == 0 && !sched_has(sched, task, TASK_HELD) &&
        !ready_is_background(sched, task)) {
        ready_count_in(sched, task);
    } else {
        ready_count_out(sched, task);
    }
}

/* Report the dependents of a task, after updating the waiting ones. */
static void tell_dependents(const struct retrace *retrace, uint32_t task)
{
    struct sched *sched = retrace->sched;
    const struct graph *graph = &sched->graph;
    for (uint32_t edge = graph_first_dependent(graph, task); edge != ID_NONE;
         edge = graph_next_dependent(graph, edge)) {
        uint32_t dependent = graph_dependent(graph, edge);
        if (sched->tasks[dependent].state == TASK_WAITING) {
            wait(sched, dependent);
        }
        tell(retrace, dependent);
    }
}

/* A group has opened or closed: its ready tasks need other pools. */
static void tell_group(const struct retrace *retrace, uint32_t group)
{
    struct sched *sched = retrace->sched;
    uint32_t bin = group * 2;
    while (bin != ID_NONE) {
        uint32_t root = sched_best_of(sched, bin * BIN_SIDES + BIN_NORMAL);
        uint32_t count = root != ID_NONE ? ready_list_heap(sched, root) : 0;
        for (uint32_t ix = 0; ix < count; ix++) {
            tell(retrace, sched->list[ix]);
        }
        bin = sched_next_bin(sched, bin);
    }
}

/* Return the units of a session that exited. */
static void leave_session(struct sched *sched, uint32_t task)
{
    const struct shape *shape = sched_shape_of(sched, task);
    if (sched->tasks[task].leader == task) {
        INVARIANT(sched->runs[shape->run].sessions > 0);
        sched->runs[shape->run].sessions--;
        dispatch_give_session(sched, task);
    }
    ready_count_out(sched, task);
}

/* Move a task to TASK_WAITING, where nothing counts it. */
static void leave(struct sched *sched, uint32_t task)
{
    switch ((enum task_state)sched->tasks[task].state) {
    case TASK_WAITING:
        if (sched_has(sched, task, TASK_TIMED)) {
            state_clear_backoff(sched, task); /* until its not_before */
        }
        sched_lower(sched, task, TASK_BACKING_OFF);
        ready_count_out(sched, task);
        return;
    case TASK_READY:
        state_unready(sched, task);
        break;
    case TASK_STARTING:
    case TASK_RUNNING:
        leave_session(sched, task);
        break;
    case TASK_DONE:
    case TASK_FAILED:
    case TASK_PARKED:
    case TASK_SKIPPED:
        sched_lower(sched, task, TASK_CASCADED);
        break;
    case TASK_CANCELLED:
        INVARIANT(false); /* it is final, and enter() knows no such state */
        break;
    }
    state_set(sched, task, TASK_WAITING);
}

/* Add a task to a session: a leader takes units and opens its group. */
static void
enter_session(const struct retrace *retrace, uint32_t task, bool leads)
{
    struct sched *sched = retrace->sched;
    const struct shape *shape = sched_shape_of(sched, task);
    struct task *t = &sched->tasks[task];
    bool background = ready_is_background(sched, task);
    bool open = sched_group(sched, t->group)->open;
    t->token = ++sched->last_token;
    t->leader = leads ? task : ID_NONE;
    t->next_in_session = ID_NONE;
    if (background || (!leads && !open)) {
        sched_raise(sched, task, TASK_BACKGROUND);
    } else {
        sched_lower(sched, task, TASK_BACKGROUND);
    }
    if (leads) {
        dispatch_occupy_session(sched, task);
        sched->runs[shape->run].sessions++;
    }
    if (sched_has(sched, task, TASK_BACKGROUND)) {
        return;
    }
    ready_count_in(sched, task);
    if (!open) {
        dispatch_open_group(sched, t->group);
        tell_group(retrace, t->group);
    }
}

static void enter(const struct retrace *retrace,
                  uint32_t task,
                  enum task_state state,
                  bool leads)
{
    struct sched *sched = retrace->sched;
    if (state == TASK_CANCELLED) {
        sched_raise(sched, task, TASK_CASCADED);
        state = TASK_SKIPPED;
    }
    if (state == TASK_WAITING) {
        wait(sched, task);
    } else {
        state_restore(sched, task, state);
    }
    if (state == TASK_READY) {
        sched->tasks[task].ready_ns = sched->now_ns;
        sched->tasks[task].ready_seq =
            sched->event_seq << SCHED_TASK_BITS | task;
        state_join_ready(sched, task);
    } else if (state_in_flight(sched, task)) {
        enter_session(retrace, task, leads);
    }
}

void retrace_begin(const struct retrace *retrace)
{
    struct sched *sched = retrace->sched;
    for (uint32_t task = 0; task < sched->task_count; task++) {
        leave(sched, task);
        enter(retrace, task, TASK_CANCELLED, false);
    }
}

void retrace_task(const struct retrace *retrace,
                  int64_t now_ns,
                  struct task_id task,
                  enum task_state state,
                  bool leads)
{
    struct sched *sched = retrace->sched;
    INVARIANT(task.v < sched->task_count);
    INVARIANT((unsigned)state < TASK_STATE_COUNT);
    sched_advance(sched, now_ns);
    enum task_state before = sched->tasks[task.v].state;
    if (before == TASK_STARTING && state == TASK_RUNNING) {
        state_set(sched, task.v, TASK_RUNNING);
    } else if (before != state || leads) {
        leave(sched, task.v);
        enter(retrace, task.v, state, leads);
    }
    bool met = deps_is_complete(sched, task.v);
    bool released = sched_has(sched, task.v, TASK_SATISFIED);
    if (met && !released) {
        deps_satisfy(sched, task.v);
    } else if (!met && released) {
        deps_revert(sched, task.v);
    }
    if (sched_has(sched, task.v, TASK_SATISFIED) != released) {
        tell_dependents(retrace, task.v);
    }
    tell(retrace, task.v);
}

void retrace_hold(const struct retrace *retrace, struct task_id task, bool held)
{
    struct sched *sched = retrace->sched;
    INVARIANT(task.v < sched->task_count);
    if (sched_has(sched, task.v, TASK_HELD) == held) {
        return;
    }
    bool ready = sched->tasks[task.v].state == TASK_READY;
    if (ready) {
        state_unready(sched, task.v);
    }
    if (held) {
        sched_raise(sched, task.v, TASK_HELD);
    } else {
        sched_lower(sched, task.v, TASK_HELD);
    }
    lend_touch(sched, task.v);
    if (ready) {
        state_join_ready(sched, task.v);
    } else if (sched->tasks[task.v].state == TASK_WAITING) {
        wait(sched, task.v);
    }
    tell(retrace, task.v);
}

void retrace_settle(const struct retrace *retrace)
{
    uint32_t group = dispatch_close_group(retrace->sched);
    while (group != ID_NONE) {
        tell_group(retrace, group);
        group = dispatch_close_group(retrace->sched);
    }
    lend_settle(retrace->sched);
}

uint32_t retrace_kind_count(const struct sched *sched)
{
    return sched->shape_count * KIND_SIDES;
}

uint32_t retrace_kind(const struct sched *sched, struct task_id task)
{
    INVARIANT(task.v < sched->task_count);
    INVARIANT(sched_has(sched, task.v, TASK_QUEUED));
    const struct task *t = &sched->tasks[task.v];
    uint32_t side =
        sched_group(sched, t->group)->open ? KIND_OPEN : KIND_CLOSED;
    if (sched_has(sched, task.v, TASK_BACKGROUND)) {
        side = KIND_BACKGROUND;
    }
    uint32_t bin = sched_bin_of(sched, task.v);
    return sched_bin_shape(sched, bin) * KIND_SIDES + side;
}

bool retrace_leads(const struct sched *sched, struct task_id task)
{
    INVARIANT(task.v < sched->task_count);
    return state_in_flight(sched, task.v) &&
           sched->tasks[task.v].leader == task.v;
}
