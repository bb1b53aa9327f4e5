/* SPDX-License-Identifier: MIT */
/*
 * Tasks that come last. A scope is a run, or a part of it that has such tasks.
 * They start when all others of the scope, its *members*, have come to rest;
 * the members of an inner scope and its last tasks are members of the outer
 * one, too.
 *
 * A member rests if it has ended or given up, or waits behind a member that has
 * given up: an operator must act before anything more can happen. In a stopped
 * run, every member rests that is not in flight, except last tasks of inner
 * scopes that are about to run.
 *
 * A scope whose member has changed is listed, and looked at when the next pass
 * begins, inner ones first. Whether a scope rests follows from the states of
 * the tasks.
 */
#include "core/sched_internal.h"

#include "base/invariant.h"

/* Scopes of runs and others in one list: odd numbers are runs. */
static uint32_t run_number(uint32_t run)
{
    return run * 2 + 1;
}

static struct scope *by_number(struct sched *sched, uint32_t number)
{
    return number % 2 != 0 ? &sched->runs[number / 2].scope
                           : &sched->scopes[number / 2];
}

static uint32_t number_of(uint32_t run, uint32_t scope)
{
    return scope == 0 ? run_number(run) : (scope - 1) * 2;
}

static const struct scope *
scope_of(const struct sched *sched, uint32_t run, uint32_t scope)
{
    return scope == 0 ? &sched->runs[run].scope : &sched->scopes[scope - 1];
}

void scope_add(struct sched *sched,
               uint32_t run,
               const struct sched_scope_spec *spec)
{
    INVARIANT(spec->parent <= sched->scope_count);
    INVARIANT(sched->scope_count < sched->scope_capacity);
    uint32_t ix = sched->scope_count++;
    struct scope *parent = by_number(sched, number_of(run, spec->parent));
    INVARIANT(parent->run == run);
    sched->scopes[ix] = (struct scope){
        .parent = spec->parent,
        .run = run,
        .child = ID_NONE,
        .next_child = parent->child,
        .members = ID_NONE,
        .lasts = ID_NONE,
        .witness = ID_NONE,
        .depth = parent->depth + 1,
    };
    parent->child = ix;
}

/* List a scope and all around it. */
static void list_scope(struct sched *sched, uint32_t run, uint32_t scope)
{
    for (;;) {
        uint32_t number = number_of(run, scope);
        struct scope *s = by_number(sched, number);
        if (!s->due) {
            s->due = true;
            s->due_next = sched->scopes_due;
            sched->scopes_due = number;
        }
        if (scope == 0) {
            return;
        }
        scope = s->parent;
    }
}

/* Put a task at the front of a list of its scope. */
static void
link_task(struct sched *sched, uint32_t task, uint32_t scope, uint32_t *list)
{
    sched->scope_links[task] = (struct scope_link){scope, *list};
    *list = task;
}

/* List the tasks that were added before any scope or last task: they are
 * members of their runs. */
void scope_add_old(struct sched *sched)
{
    INVARIANT(sched->scope_count == 0);
    for (uint32_t task = 0; task < sched->task_count; task++) {
        struct run *run = sched_run_of(sched, task);
        INVARIANT(run->lasts == 0);
        link_task(sched, task, 0, &run->scope.members);
    }
}

void scope_add_task(struct sched *sched,
                    uint32_t task,
                    const struct sched_task_spec *spec)
{
    INVARIANT(spec->scope <= sched->scope_count);
    if (sched->scope_links == NULL) {
        INVARIANT(!spec->last);
        return;
    }
    uint32_t run = sched_run_ix(sched, task);
    struct scope *scope = by_number(sched, number_of(run, spec->scope));
    INVARIANT(scope->run == run);
    link_task(sched,
              task,
              spec->scope,
              spec->last ? &scope->lasts : &scope->members);
    if (spec->last) {
        sched->runs[run].lasts++;
    }
    if (sched->runs[run].lasts > 0) {
        list_scope(sched, run, spec->scope);
    }
}

bool scope_rests(const struct sched *sched, uint32_t task)
{
    INVARIANT(sched->details[task].last != 0);
    return scope_of(sched,
                    sched_run_ix(sched, task),
                    sched->scope_links[task].scope)
        ->rests;
}

/* ---- what has changed ---- */

void scope_touch(struct sched *sched, uint32_t task)
{
    uint32_t run = sched_run_ix(sched, task);
    if (sched->runs[run].lasts == 0) {
        return;
    }
    uint32_t scope = sched->scope_links[task].scope;
    if (sched->details[task].last != 0) {
        if (scope == 0) {
            return; /* a member of nothing */
        }
        scope = sched->scopes[scope - 1].parent;
    }
    list_scope(sched, run, scope);
}

void scope_touch_run(struct sched *sched, uint32_t run)
{
    if (sched->runs[run].lasts == 0) {
        return;
    }
    list_scope(sched, run, 0);
    for (uint32_t ix = 0; ix < sched->scope_count; ix++) {
        if (sched->scopes[ix].run == run) {
            list_scope(sched, run, ix + 1);
        }
    }
}

/* ---- who rests ---- */

/* Return the scope after `at` on a walk through scope `top` of a run and all
 * inside it, or ID_NONE. */
static uint32_t
next_scope(const struct sched *sched, uint32_t run, uint32_t top, uint32_t at)
{
    const struct scope *scope = scope_of(sched, run, at);
    if (scope->child != ID_NONE) {
        return scope->child + 1;
    }
    while (at != top) {
        if (scope->next_child != ID_NONE) {
            return scope->next_child + 1;
        }
        at = scope->parent;
        scope = scope_of(sched, run, at);
    }
    return ID_NONE;
}

typedef bool (*task_fn)(struct sched *sched, uint32_t task);

/* Return the first of a list of tasks for which `fn` is true, or ID_NONE. */
static uint32_t find_in(struct sched *sched, uint32_t task, task_fn fn)
{
    while (task != ID_NONE && !fn(sched, task)) {
        task = sched->scope_links[task].next;
    }
    return task;
}

/* Return the first member of a scope for which `fn` is true, or ID_NONE. */
static uint32_t
find_member(struct sched *sched, uint32_t run, uint32_t top, task_fn fn)
{
    uint32_t found = ID_NONE;
    for (uint32_t at = top; at != ID_NONE && found == ID_NONE;
         at = next_scope(sched, run, top, at)) {
        const struct scope *scope = scope_of(sched, run, at);
        found = find_in(sched, scope->members, fn);
        if (found == ID_NONE && at != top) {
            found = find_in(sched, scope->lasts, fn);
        }
    }
    return found;
}

/* Return whether a task keeps its scopes from resting, whatever others do. */
static bool is_busy(struct sched *sched, uint32_t task)
{
    bool stopped = sched_run_of(sched, task)->stopped != SCHED_NOT_STOPPED;
    bool starts = !stopped || sched->details[task].last != 0;
    switch ((enum task_state)sched->tasks[task].state) {
    case TASK_STARTING:
    case TASK_RUNNING:
        return true;
    case TASK_READY:
        return starts;
    case TASK_WAITING:
        return starts && sched_has(sched, task, TASK_BACKING_OFF);
    case TASK_PARKED:
        return !stopped && (sched_has(sched, task, TASK_ASKING) ||
                            !deps_has_given_up(sched, task));
    case TASK_DONE:
        return !stopped && sched_has(sched, task, TASK_REVOKED);
    case TASK_FAILED:
    case TASK_SKIPPED:
    case TASK_CANCELLED:
        break;
    }
    return false;
}

/* Mark a task that has given up, and push it to the stack; its place there is
 * at the start of the list, as walks pass no context. */
static bool mark_blocker(struct sched *sched, uint32_t task)
{
    if (sched->tasks[task].state == TASK_PARKED) {
        INVARIANT(deps_has_given_up(sched, task));
        sched->marks[task] = sched->mark;
        sched->stack[sched->list[0]++] = task;
    }
    return false;
}

/* Mark all tasks behind members of the scope that have given up. */
static void mark_stuck(struct sched *sched, uint32_t run, uint32_t top)
{
    const struct graph *graph = &sched->graph;
    uint16_t mark = sched_new_mark(sched);
    sched->list[0] = 0;
    (void)find_member(sched, run, top, mark_blocker);
    uint32_t depth = sched->list[0];
    while (depth > 0) {
        uint32_t from = sched->stack[--depth];
        bool waits = sched->tasks[from].state == TASK_WAITING;
        for (uint32_t edge = graph_first_dependent(graph, from);
             edge != ID_NONE;
             edge = graph_next_dependent(graph, edge)) {
            uint32_t to = graph_dependent(graph, edge);
            bool blocks = graph_on(graph, edge) == SCHED_ON_DONE || waits;
            if (blocks && sched->marks[to] != mark) {
                sched->marks[to] = mark;
                INVARIANT(depth < sched->task_count);
                sched->stack[depth++] = to;
            }
        }
    }
}

/* Return whether a task waits, but not behind one that has given up. A last
 * task that waits for its scope does not count: the members of that do. */
static bool is_expected(struct sched *sched, uint32_t task)
{
    const struct detail *detail = &sched->details[task];
    return sched->tasks[task].state == TASK_WAITING &&
           sched->marks[task] != sched->mark &&
           (detail->last == 0 || scope_rests(sched, task));
}

/* Count the tasks of a run that are in flight, ready or backing off, without
 * its own last ones. */
static uint32_t count_busy(struct sched *sched, uint32_t ix)
{
    const struct run *run = &sched->runs[ix];
    uint32_t count = run->counts[TASK_STARTING] + run->counts[TASK_RUNNING] +
                     run->counts[TASK_READY] + run->backing_off;
    if (run->stopped != SCHED_NOT_STOPPED) {
        return 0; /* few are: look at each */
    }
    for (uint32_t task = run->scope.lasts; task != ID_NONE;
         task = sched->scope_links[task].next) {
        bool parked = sched->tasks[task].state == TASK_PARKED;
        bool done = sched->tasks[task].state == TASK_DONE;
        count -= !parked && !done && is_busy(sched, task) ? 1 : 0;
    }
    return count;
}

/* Return whether all members of a scope that has last tasks have come to rest.
 */
static bool has_come_to_rest(struct sched *sched, uint32_t run, uint32_t ix)
{
    struct scope *scope = by_number(sched, number_of(run, ix));
    if (scope->lasts == ID_NONE) {
        return false;
    }
    if (scope->witness != ID_NONE && is_busy(sched, scope->witness)) {
        return false;
    }
    if (ix == 0 && count_busy(sched, run) > 0) {
        return false;
    }
    scope->witness = find_member(sched, run, ix, is_busy);
    if (scope->witness != ID_NONE) {
        return false;
    }
    if (sched->runs[run].stopped != SCHED_NOT_STOPPED) {
        return true;
    }
    mark_stuck(sched, run, ix);
    return find_member(sched, run, ix, is_expected) == ID_NONE;
}

/* ---- what follows ---- */

/* Let the last tasks of a scope that rests again run again. */
static void repeat(struct sched *sched, const struct scope *scope)
{
    for (uint32_t task = scope->lasts; task != ID_NONE;
         task = sched->scope_links[task].next) {
        uint8_t state = sched->tasks[task].state;
        if (state == TASK_DONE || state == TASK_FAILED ||
            state == TASK_PARKED || sched_has(sched, task, TASK_CASCADED)) {
            control_reset(sched, task);
            priority_refresh(sched, &task, 1);
            deps_revive(sched, &task, 1);
        }
    }
    deps_cut(sched);
}

static void look_at(struct sched *sched, uint32_t number)
{
    struct scope *scope = by_number(sched, number);
    uint32_t ix = number % 2 != 0 ? 0 : number / 2 + 1;
    bool rests = has_come_to_rest(sched, scope->run, ix);
    bool again = scope->known && rests;
    if (rests == scope->rests) {
        scope->known = true;
        return;
    }
    scope->rests = rests;
    scope->known = true;
    if (again) {
        repeat(sched, scope);
    }
    for (uint32_t task = scope->lasts; task != ID_NONE;
         task = sched->scope_links[task].next) {
        deps_settle_task(sched, task);
    }
    deps_settle(sched);
}

void scope_settle(struct sched *sched)
{
    while (sched->scopes_due != LEND_END) {
        uint32_t deepest = 0;
        for (uint32_t ix = sched->scopes_due; ix != LEND_END;
             ix = by_number(sched, ix)->due_next) {
            const struct scope *scope = by_number(sched, ix);
            deepest = scope->depth > deepest ? scope->depth : deepest;
        }
        uint32_t listed = sched->scopes_due;
        uint32_t now = LEND_END;
        sched->scopes_due = LEND_END;
        while (listed != LEND_END) {
            struct scope *scope = by_number(sched, listed);
            uint32_t *list =
                scope->depth == deepest ? &now : &sched->scopes_due;
            uint32_t next = scope->due_next;
            scope->due_next = *list;
            *list = listed;
            listed = next;
        }
        while (now != LEND_END) {
            struct scope *scope = by_number(sched, now);
            uint32_t next = scope->due_next;
            scope->due = false;
            look_at(sched, now);
            now = next;
        }
    }
}

/* Find out which scopes of a restored run rest. */
void scope_restore(struct sched *sched, uint32_t run)
{
    if (sched->runs[run].lasts == 0) {
        return;
    }
    for (uint32_t ix = sched->scope_count + 1; ix-- > 0;) {
        if (scope_of(sched, run, ix)->run != run) {
            continue;
        }
        struct scope *scope = by_number(sched, number_of(run, ix));
        scope->rests = has_come_to_rest(sched, run, ix);
        scope->known = true;
        for (uint32_t task = scope->lasts; task != ID_NONE;
             task = sched->scope_links[task].next) {
            deps_weigh(sched, task);
        }
    }
}

/* Return whether a last task will start by itself. */
static bool is_startable(struct sched *sched, uint32_t task)
{
    uint32_t provider = sched_shape_of(sched, task)->provider;
    return sched->tasks[task].state == TASK_READY &&
           !sched_has(sched, task, TASK_HELD) &&
           !sched->providers[provider].kept.stopped &&
           !dispatch_is_closed(sched, task);
}

static bool is_backing_off(struct sched *sched, uint32_t task)
{
    return sched_has(sched, task, TASK_BACKING_OFF);
}

/* Return whether a last task of a stopped run will start by itself, now (unless
 * the run is shut) or later. */
bool scope_is_busy(struct sched *sched, uint32_t run, bool shut)
{
    uint32_t found = ID_NONE;
    for (uint32_t at = 0; at != ID_NONE && found == ID_NONE;
         at = next_scope(sched, run, 0, at)) {
        uint32_t lasts = scope_of(sched, run, at)->lasts;
        found = find_in(sched, lasts, is_backing_off);
        if (found == ID_NONE && !shut) {
            found = find_in(sched, lasts, is_startable);
        }
    }
    return found != ID_NONE;
}

uint32_t scope_find_busy(struct sched *sched, uint32_t task)
{
    INVARIANT(sched->details[task].last != 0);
    return find_member(sched,
                       sched_run_ix(sched, task),
                       sched->scope_links[task].scope,
                       is_busy);
}
