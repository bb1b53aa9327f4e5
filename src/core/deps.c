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
 *
 * A need with another outcome than done is looked at only while its dependent
 * is pending: all of these needs, and the scope of a task that comes last,
 * count as one unsatisfied need (`waits`). What has changed is listed, and
 * worked off at the end of an input: deps_settle().
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
        for (uint32_t edge = graph_first_dependent(graph, from);
             edge != ID_NONE;
             edge = graph_next_dependent(graph, edge)) {
            uint32_t to = graph_dependent(graph, edge);
            if (graph_on(graph, edge) != SCHED_ON_DONE) {
                continue;
            }
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
            if (graph_on(graph, edge) != SCHED_ON_DONE) {
                continue;
            }
            INVARIANT(sched->unmet[to] <= sched->graph.edge_count);
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

/* Skip a pending task because of a need that ended otherwise. */
static void skip_one(struct sched *sched, uint32_t task, uint32_t cause)
{
    INVARIANT(deps_is_dead_end(sched, cause) || cause == task ||
              sched->details[cause].watched != 0);
    INVARIANT(!sched_has(sched, task, TASK_SATISFIED));
    state_drop(sched, task);
    state_set(sched, task, TASK_SKIPPED);
    sched_raise(sched, task, TASK_CASCADED);
    sched->tasks[task].cause = cause;
}

/* Skip all pending dependents of `task`, direct and indirect. */
static void skip_behind(struct sched *sched, uint32_t task, uint32_t cause)
{
    INVARIANT(deps_is_dead_end(sched, task));
    const struct graph *graph = &sched->graph;
    uint16_t mark = sched_new_mark(sched);
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
            if (sched->marks[to] == mark ||
                graph_on(graph, edge) != SCHED_ON_DONE) {
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

bool deps_has_given_up(const struct sched *sched, uint32_t task)
{
    uint8_t state = sched->tasks[task].state;
    return state == TASK_FAILED ||
           (state == TASK_PARKED &&
            sched->details[task].parked != SCHED_PARKED_BLOCKED);
}

/* Return whether a need has ended so that it will never be satisfied. */
bool deps_is_dead(const struct sched *sched, uint32_t edge)
{
    uint32_t need = graph_need(&sched->graph, edge);
    switch ((enum sched_on)graph_on(&sched->graph, edge)) {
    case SCHED_ON_DONE:
        return deps_is_dead_end(sched, need);
    case SCHED_ON_FAILED:
        return state_is_final(sched->tasks[need].state);
    case SCHED_ON_ANY:
        break;
    }
    return false;
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
        if (graph_on(graph, edge) != SCHED_ON_DONE) {
            cause = deps_is_dead(sched, edge) ? need : ID_NONE;
        } else if (!sched_has(sched, need, TASK_SATISFIED)) {
            cause = deps_find_dead_end(sched, need);
        }
    }
    return cause;
}

void deps_cut(struct sched *sched)
{
    for (uint32_t ix = 0; ix < sched->doubt_count; ix++) {
        uint32_t task = sched->doubts[ix];
        bool picky =
            sched->tasks[task].special != 0 && sched->details[task].picky != 0;
        if ((sched->unmet[task] == 0 && !picky) ||
            !state_is_pending(sched, task)) {
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
    uint16_t mark = sched_new_mark(sched);
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
                graph_on(graph, edge) == SCHED_ON_DONE &&
                !sched_has(sched, need, TASK_SATISFIED)) {
                sched->marks[need] = mark;
                INVARIANT(depth < sched->task_count);
                sched->stack[depth++] = need;
            }
        }
    }
    return ID_NONE;
}

/* Return whether a direct need of the task is dead. */
static bool is_cut_off(const struct sched *sched, uint32_t task)
{
    const struct graph *graph = &sched->graph;
    uint32_t edge = graph_first_need(graph, task);
    while (edge != ID_NONE && !deps_is_dead(sched, edge)) {
        edge = graph_next_need(graph, edge);
    }
    return edge != ID_NONE;
}

/*
 * Let skipped tasks behind those that run again wait, unless another need is
 * dead. The walk ends at tasks that stay skipped, so all seeds are needed: one
 * may be behind such a task, by a need with another outcome than done.
 */
void deps_revive(struct sched *sched, const uint32_t *seeds, uint32_t count)
{
    const struct graph *graph = &sched->graph;
    uint16_t mark = sched_new_mark(sched);
    uint32_t depth = 0;
    uint32_t revived = 0;
    for (uint32_t ix = 0; ix < count; ix++) {
        sched->marks[seeds[ix]] = mark;
        sched->stack[depth++] = seeds[ix];
    }
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
                sched->tasks[to].cause = ID_NONE;
                state_set(sched, to, TASK_WAITING);
                control_ask_approval(sched, to);
                deps_doubt(sched, to);
                sched->list[revived++] = to;
            }
            sched->marks[to] = mark;
            INVARIANT(depth < sched->task_count);
            sched->stack[depth++] = to;
        }
    }
    INVARIANT(revived <= sched->doubt_count);
    priority_refresh(sched, sched->list, revived);
}

/* ---- needs with other outcomes, and scopes ---- */

/* Return whether the task waits for a need with another outcome than done, or
 * for its scope. */
bool deps_has_to_wait(const struct sched *sched, uint32_t task)
{
    const struct graph *graph = &sched->graph;
    const struct detail *detail = &sched->details[task];
    if (!state_is_pending(sched, task)) {
        return false;
    }
    bool waits = detail->last != 0 && !scope_rests(sched, task);
    for (uint32_t edge = graph_first_need(graph, task);
         edge != ID_NONE && detail->picky != 0 && !waits;
         edge = graph_next_need(graph, edge)) {
        uint32_t need = graph_need(graph, edge);
        unsigned on = graph_on(graph, edge);
        bool met =
            on == SCHED_ON_DONE || deps_has_given_up(sched, need) ||
            (on == SCHED_ON_ANY && state_is_final(sched->tasks[need].state));
        waits = !met;
    }
    return waits;
}

/* Count that as an unsatisfied need. */
void deps_weigh(struct sched *sched, uint32_t task)
{
    struct detail *detail = &sched->details[task];
    bool waits = deps_has_to_wait(sched, task);
    if (waits == (detail->waits != 0)) {
        return;
    }
    INVARIANT(waits || sched->unmet[task] > 0);
    detail->waits = waits ? 1 : 0;
    sched->unmet[task] += waits ? 1U : UINT32_MAX; /* less one */
    if (detail->last != 0) {
        lend_touch(sched, task);
    }
}

/* Look at a task with such needs or a scope again. */
void deps_settle_task(struct sched *sched, uint32_t task)
{
    deps_weigh(sched, task);
    if (sched->unmet[task] > 0) {
        if (sched->tasks[task].state == TASK_READY) {
            state_unready(sched, task);
            state_set(sched, task, TASK_WAITING);
        }
    } else if (!state_is_pending(sched, task)) {
        deps_satisfy(sched, task);
    } else if (sched->tasks[task].state == TASK_WAITING &&
               !sched_has(sched, task, TASK_BACKING_OFF)) {
        state_ready_or_wait(sched, task);
    }
}

/* A task has ended, or no longer has: look at those who watch it. */
static void settle_dependents(struct sched *sched, uint32_t need)
{
    const struct graph *graph = &sched->graph;
    bool revives = false;
    for (uint32_t edge = graph_first_dependent(graph, need); edge != ID_NONE;
         edge = graph_next_dependent(graph, edge)) {
        uint32_t to = graph_dependent(graph, edge);
        if (graph_on(graph, edge) == SCHED_ON_DONE) {
            continue;
        }
        bool dead = deps_is_dead(sched, edge);
        if (!state_is_pending(sched, to)) {
            revives = revives || (!dead && sched_has(sched, to, TASK_CASCADED));
        } else if (dead) {
            deps_skip(sched, to, need);
        } else {
            deps_settle_task(sched, to);
        }
    }
    if (revives) {
        deps_revive(sched, &need, 1);
        deps_cut(sched);
    }
}

void deps_touch(struct sched *sched, uint32_t task)
{
    if (sched->details[task].touched == 0) {
        INVARIANT(sched->touched_count < sched->special_count);
        sched->details[task].touched = 1;
        sched->touched[sched->touched_count++] = task;
    }
}

void deps_settle(struct sched *sched)
{
    INVARIANT(sched->doubt_count == 0);
    while (sched->touched_count > 0) {
        uint32_t task = sched->touched[--sched->touched_count];
        struct detail *detail = &sched->details[task];
        detail->touched = 0;
        if (detail->picky != 0 || detail->last != 0) {
            deps_settle_task(sched, task);
        }
        if (detail->watched != 0) {
            settle_dependents(sched, task);
        }
    }
}
