/* SPDX-License-Identifier: MIT */
/*
 * Propagation of completion to dependents.
 *
 * A task is *complete* when it is done and not revoked, or when it is optional
 * and has failed or was itself skipped. A complete task whose own needs are all
 * satisfied is *satisfied*: each of its dependents then has one unsatisfied
 * need less. When a task stops being complete (rework, revoke), this is
 * reverted, also through dependents that have started. So a task never starts
 * while an indirect need is undone, even if the task in between ran before that
 * need was reverted.
 */
#include "core/sched_internal.h"

#include "base/invariant.h"

bool deps_is_complete(const struct sched *sched, uint32_t task)
{
    const struct task *t = &sched->tasks[task];
    if (t->state == TASK_DONE) {
        return (t->flags & TASK_REVOKED) == 0;
    }
    return (t->state == TASK_SKIPPED || t->state == TASK_FAILED) &&
           (t->flags & TASK_CASCADED) == 0 &&
           sched_failure_of(sched, task)->optional;
}

void deps_satisfy(struct sched *sched, uint32_t task)
{
    const struct graph *graph = &sched->graph;
    uint32_t depth = 0;
    sched->stack[depth++] = task;
    while (depth > 0) {
        uint32_t from = sched->stack[--depth];
        if (sched_has(sched, from, TASK_SATISFIED) || sched->unmet[from] > 0 ||
            !deps_is_complete(sched, from)) {
            continue;
        }
        sched_raise(sched, from, TASK_SATISFIED);
        sched_fetch_dependents(sched, from);
        for (uint32_t edge = graph_first_dependent(graph, from);
             edge != ID_NONE;
             edge = graph_next_dependent(graph, edge)) {
            uint32_t to = graph_dependent(graph, edge);
            INVARIANT(sched->unmet[to] > 0);
            if (--sched->unmet[to] > 0) {
                continue;
            }
            if (sched->tasks[to].state != TASK_WAITING) {
                INVARIANT(depth < sched->task_count);
                sched->stack[depth++] = to;
            } else if (!sched_has(sched, to, TASK_BACKING_OFF)) {
                state_ready_or_wait(sched, to);
            }
        }
    }
}

void deps_revert(struct sched *sched, uint32_t task)
{
    const struct graph *graph = &sched->graph;
    uint32_t depth = 0;
    sched->stack[depth++] = task;
    while (depth > 0) {
        uint32_t from = sched->stack[--depth];
        if (!sched_has(sched, from, TASK_SATISFIED)) {
            continue;
        }
        sched_lower(sched, from, TASK_SATISFIED);
        for (uint32_t edge = graph_first_dependent(graph, from);
             edge != ID_NONE;
             edge = graph_next_dependent(graph, edge)) {
            uint32_t to = graph_dependent(graph, edge);
            INVARIANT(sched->unmet[to] < sched->graph.edge_count);
            if (sched->unmet[to]++ > 0) {
                continue;
            }
            if (sched->tasks[to].state == TASK_READY) {
                state_unready(sched, to);
                state_set(sched, to, TASK_WAITING);
            } else {
                INVARIANT(depth < sched->task_count);
                sched->stack[depth++] = to;
            }
        }
    }
}

/* Skip a pending task because of a dead end. */
static void skip_one(struct sched *sched, uint32_t task, uint32_t cause)
{
    INVARIANT(deps_is_dead_end(sched, cause) || cause == task);
    INVARIANT(!sched_has(sched, task, TASK_SATISFIED));
    state_drop(sched, task);
    state_set(sched, task, TASK_SKIPPED);
    sched_raise(sched, task, TASK_CASCADED);
    sched->details[task].cause = cause;
}

/* Skip all pending dependents of `task`, direct and indirect. */
static void skip_behind(struct sched *sched, uint32_t task, uint32_t cause)
{
    INVARIANT(deps_is_dead_end(sched, task));
    const struct graph *graph = &sched->graph;
    uint32_t mark = sched_new_mark(sched);
    uint32_t depth = 0;
    uint32_t ended = 0;
    sched->list[ended++] = task;
    sched->marks[task] = mark;
    sched->stack[depth++] = task;
    while (depth > 0) {
        uint32_t from = sched->stack[--depth];
        for (uint32_t edge = graph_first_dependent(graph, from);
             edge != ID_NONE;
             edge = graph_next_dependent(graph, edge)) {
            uint32_t to = graph_dependent(graph, edge);
            if (sched->marks[to] == mark) {
                continue;
            }
            sched->marks[to] = mark;
            if (state_is_pending(sched, to)) {
                skip_one(sched, to, cause);
                sched->list[ended++] = to;
            }
            /* Continue through started and finished tasks, too. */
            sched->stack[depth++] = to;
        }
    }
    INVARIANT(ended <= sched->task_count);
    priority_refresh(sched, sched->list, ended);
}

void deps_skip_dependents(struct sched *sched, uint32_t task)
{
    skip_behind(sched, task, task);
}

/* Skip or cancel a task itself, not because of a need. */
void deps_withdraw(struct sched *sched, uint32_t task, bool skip)
{
    state_set(sched, task, skip ? TASK_SKIPPED : TASK_CANCELLED);
    if (skip && sched_failure_of(sched, task)->optional) {
        deps_satisfy(sched, task);
        priority_refresh(sched, &task, 1);
    } else {
        deps_revert(sched, task);
        deps_skip_dependents(sched, task);
        INVARIANT(!sched_has(sched, task, TASK_SATISFIED));
    }
}

void deps_skip(struct sched *sched, uint32_t task, uint32_t cause)
{
    skip_one(sched, task, cause);
    skip_behind(sched, task, cause);
}

/* Return whether the task is finished and will not satisfy its dependents. */
bool deps_is_dead_end(const struct sched *sched, uint32_t task)
{
    uint8_t state = sched->tasks[task].state;
    return (state == TASK_SKIPPED || state == TASK_CANCELLED ||
            state == TASK_FAILED) &&
           !deps_is_complete(sched, task);
}

/*
 * A pending task that needs a dead end is always skipped. Most are skipped when
 * the need becomes a dead end. A task that was in flight then, or was skipped
 * and is revived, may become pending later. Such tasks are listed while an
 * event is applied, and deps_cut() skips them afterwards.
 */
void deps_doubt(struct sched *sched, uint32_t task)
{
    INVARIANT(sched->doubt_count < sched->task_capacity);
    sched->doubts[sched->doubt_count++] = task;
}

/* Return a dead end among its needs, direct or through finished tasks. */
static uint32_t find_cause(struct sched *sched, uint32_t task)
{
    const struct graph *graph = &sched->graph;
    uint32_t cause = ID_NONE;
    for (uint32_t edge = graph_first_need(graph, task);
         edge != ID_NONE && cause == ID_NONE;
         edge = graph_next_need(graph, edge)) {
        uint32_t need = graph_need(graph, edge);
        if (!sched_has(sched, need, TASK_SATISFIED)) {
            cause = deps_find_dead_end(sched, need);
        }
    }
    return cause;
}

void deps_cut(struct sched *sched)
{
    for (uint32_t ix = 0; ix < sched->doubt_count; ix++) {
        uint32_t task = sched->doubts[ix];
        if (sched->unmet[task] == 0 || !state_is_pending(sched, task)) {
            continue;
        }
        uint32_t cause = find_cause(sched, task);
        if (cause != ID_NONE) {
            deps_skip(sched, task, cause);
            INVARIANT(sched_has(sched, task, TASK_CASCADED));
        }
    }
    sched->doubt_count = 0;
}

uint32_t deps_find_dead_end(struct sched *sched, uint32_t task)
{
    const struct graph *graph = &sched->graph;
    uint32_t mark = sched_new_mark(sched);
    uint32_t depth = 0;
    sched->stack[depth++] = task;
    while (depth > 0) {
        uint32_t from = sched->stack[--depth];
        if (deps_is_dead_end(sched, from)) {
            return from;
        }
        if (state_is_pending(sched, from)) {
            continue; /* it would have been skipped itself */
        }
        for (uint32_t edge = graph_first_need(graph, from); edge != ID_NONE;
             edge = graph_next_need(graph, edge)) {
            uint32_t need = graph_need(graph, edge);
            if (sched->marks[need] != mark &&
                !sched_has(sched, need, TASK_SATISFIED)) {
                sched->marks[need] = mark;
                INVARIANT(depth < sched->task_count);
                sched->stack[depth++] = need;
            }
        }
    }
    return ID_NONE;
}

/* Return whether a direct need of the task is a dead end. */
static bool is_cut_off(const struct sched *sched, uint32_t task)
{
    const struct graph *graph = &sched->graph;
    uint32_t edge = graph_first_need(graph, task);
    while (edge != ID_NONE &&
           !deps_is_dead_end(sched, graph_need(graph, edge))) {
        edge = graph_next_need(graph, edge);
    }
    return edge != ID_NONE;
}

void deps_revive(struct sched *sched, uint32_t task)
{
    const struct graph *graph = &sched->graph;
    uint32_t mark = sched_new_mark(sched);
    uint32_t depth = 0;
    uint32_t revived = 0;
    sched->stack[depth++] = task;
    while (depth > 0) {
        uint32_t from = sched->stack[--depth];
        for (uint32_t edge = graph_first_dependent(graph, from);
             edge != ID_NONE;
             edge = graph_next_dependent(graph, edge)) {
            uint32_t to = graph_dependent(graph, edge);
            if (sched->marks[to] == mark) {
                continue;
            }
            if (sched_has(sched, to, TASK_CASCADED)) {
                if (is_cut_off(sched, to)) {
                    continue;
                }
                INVARIANT(sched->tasks[to].state == TASK_SKIPPED);
                sched_lower(sched, to, TASK_CASCADED);
                sched->details[to].cause = ID_NONE;
                state_set(sched, to, TASK_WAITING);
                deps_doubt(sched, to);
                sched->list[revived++] = to;
            }
            sched->marks[to] = mark;
            sched->stack[depth++] = to;
        }
    }
    INVARIANT(revived <= sched->doubt_count);
    priority_refresh(sched, sched->list, revived);
}
