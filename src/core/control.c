/* SPDX-License-Identifier: MIT */
/*
 * Operator requests. A request that the state forbids is rejected with
 * ERR_CONFLICT and changes nothing. A task in flight is only marked: it changes
 * state when its session exits, and returns its units then.
 */
#include "core/sched_internal.h"

#include "base/invariant.h"
#include "core/lookahead/lookahead.h"

void control_check_run(struct sched *sched, uint32_t run)
{
    INVARIANT(run < sched->run_count);
    const struct run *r = &sched->runs[run];
    bool barrier = r->sync_drain && (r->barrier_due || r->barrier_running);
    bool open = !sched->draining && !r->paused && !barrier && r->asking == 0;
    dispatch_set_open(sched, r->pool, open && r->stopped == SCHED_NOT_STOPPED);
    dispatch_set_open(sched, r->late_pool, open);
    state_check_run(sched, run);
}

/* Start nothing more in a run, until an operator resumes it. */
void control_stop_run(struct sched *sched, uint32_t run, enum sched_stop why)
{
    INVARIANT(why != SCHED_NOT_STOPPED);
    struct run *r = &sched->runs[run];
    if (r->stopped == SCHED_NOT_STOPPED) {
        r->stopped = why;
        r->stop_due = true;
        ready_recount_run(sched, run);
        scope_touch_run(sched, run);
        control_check_run(sched, run);
    }
}

/* Let a stopped run go on. */
static void unstop(struct sched *sched, uint32_t run)
{
    struct run *r = &sched->runs[run];
    if (r->stopped != SCHED_NOT_STOPPED) {
        r->stopped = SCHED_NOT_STOPPED;
        r->stop_due = false;
        ready_recount_run(sched, run);
        scope_touch_run(sched, run);
        control_check_run(sched, run);
    }
}

/* An operator deals with the failures of a run: it was stopped because of one.
 */
static void unstop_failed(struct sched *sched, uint32_t run)
{
    if (sched->runs[run].stopped == SCHED_STOPPED_FAILURE) {
        unstop(sched, run);
    }
}

/* Let a task that needs approval wait for it when it is to start anew. */
void control_ask_approval(struct sched *sched, uint32_t task)
{
    struct detail *detail = &sched->details[task];
    if (detail->approve == 0) {
        return;
    }
    INVARIANT(sched->tasks[task].state == TASK_WAITING ||
              state_in_flight(sched, task));
    detail->unapproved = 1;
    sched_raise(sched, task, TASK_HELD);
    if (state_is_pending(sched, task)) {
        ready_count_out(sched, task);
    }
    lend_touch(sched, task);
    state_touch(sched, task);
}

void control_ask(struct sched *sched, uint32_t task)
{
    struct run *run = sched_run_of(sched, task);
    INVARIANT(sched->tasks[task].state == TASK_PARKED);
    INVARIANT(run->asking < run->counts[TASK_PARKED]);
    sched_raise(sched, task, TASK_ASKING);
    if (run->asking == 0 || task < run->asked) {
        run->asked = task;
    }
    run->asking++;
    control_check_run(sched, sched_run_ix(sched, task));
}

/* No operator decision about this task is needed any more. */
static void stop_asking(struct sched *sched, uint32_t task)
{
    if (!sched_has(sched, task, TASK_ASKING)) {
        return;
    }
    uint32_t ix = sched_run_ix(sched, task);
    struct run *run = &sched->runs[ix];
    sched_lower(sched, task, TASK_ASKING);
    INVARIANT(run->asking > 0 && run->asked <= task);
    run->asking--;
    while (run->asking > 0 && (!sched_has(sched, run->asked, TASK_ASKING) ||
                               sched_run_ix(sched, run->asked) != ix)) {
        run->asked++;
        INVARIANT(run->asked < sched->task_count);
    }
    control_check_run(sched, ix);
}

void control_end_session(struct sched *sched, uint32_t leader)
{
    for (uint32_t task = leader; task != ID_NONE;
         task = sched->tasks[task].next_in_session) {
        if (!sched_has(sched, task, TASK_ENDING)) {
            return;
        }
    }
    INVARIANT(!sched_has(sched, leader, TASK_END_DUE));
    sched_raise(sched, leader, TASK_END_DUE);
    sched->ends++;
    INVARIANT(sched->ends <= sched->in_flight_count);
    sched->end_from = 0;
}

/* Mark a task in flight; stop the session if all its tasks are marked. */
static void end_in_flight(struct sched *sched, uint32_t task, bool skip)
{
    INVARIANT(state_in_flight(sched, task));
    INVARIANT(!sched_has(sched, task, TASK_ENDING));
    sched_raise(sched, task, TASK_ENDING);
    if (skip) {
        sched_raise(sched, task, TASK_TO_SKIP);
    }
    state_touch(sched, task);
    control_end_session(sched, sched->tasks[task].leader);
}

/* Return whether a task is to run in the end of a run that is cancelled. */
static bool comes_last(const struct sched *sched, uint32_t task)
{
    return sched->details[task].last != 0 &&
           sched->tasks[task].state != TASK_PARKED;
}

void control_cancel_run(struct sched *sched, uint32_t run, uint32_t cause)
{
    bool again = sched->runs[run].cancelled;
    uint32_t count = 0;
    for (uint32_t task = 0; task < sched->task_count; task++) {
        if (sched_run_ix(sched, task) != run) {
            continue;
        }
        if (!again && comes_last(sched, task)) {
            deps_doubt(sched, task); /* it may need one that is cancelled */
            continue;
        }
        bool parked = sched->tasks[task].state == TASK_PARKED;
        if (state_in_flight(sched, task)) {
            if (!sched_has(sched, task, TASK_ENDING)) {
                end_in_flight(sched, task, false);
                sched->tasks[task].cause = cause;
            }
        } else if (parked || state_is_pending(sched, task)) {
            if (parked) {
                stop_asking(sched, task);
            } else {
                state_drop(sched, task);
            }
            state_set(sched, task, TASK_CANCELLED);
            sched->tasks[task].cause = cause;
            sched->list[count++] = task;
        }
    }
    struct run *r = &sched->runs[run];
    bool lasts = !again && r->lasts > 0;
    if (lasts) {
        priority_refresh(sched, sched->list, count);
    }
    INVARIANT(lasts || r->counts[TASK_WAITING] == 0);
    INVARIANT(lasts || r->counts[TASK_READY] == 0);
    INVARIANT(r->counts[TASK_PARKED] == 0);
    r->cancelled = true;
    r->barrier_due = false;
    control_check_run(sched, run);
    deps_cut(sched);
}

/* Skip or cancel a task that has no final state. */
static enum err withdraw(struct sched *sched, uint32_t task, bool skip)
{
    if (state_in_flight(sched, task)) {
        if (sched_has(sched, task, TASK_ENDING)) {
            return ERR_CONFLICT;
        }
        end_in_flight(sched, task, skip);
        return ERR_OK;
    }
    if (state_is_final(sched->tasks[task].state)) {
        return ERR_CONFLICT;
    }
    if (state_is_pending(sched, task)) {
        state_drop(sched, task);
    }
    stop_asking(sched, task);
    deps_withdraw(sched, task, skip);
    return ERR_OK;
}

static enum err retry(struct sched *sched, uint32_t task)
{
    struct task *t = &sched->tasks[task];
    bool revoked = sched_has(sched, task, TASK_REVOKED);
    if (sched_has(sched, task, TASK_BACKING_OFF)) {
        state_clear_backoff(sched, task);
        sched->tasks[task].refusals = 0;
        if (sched->unmet[task] == 0) {
            sched->details[task].early = 0;
        }
        state_ready_or_wait(sched, task);
        return ERR_OK;
    }
    if (t->state != TASK_FAILED && t->state != TASK_PARKED && !revoked) {
        return ERR_CONFLICT;
    }
    stop_asking(sched, task);
    unstop_failed(sched, sched_run_ix(sched, task));
    sched_lower(sched, task, TASK_REVOKED);
    struct detail *detail = &sched->details[task];
    sched->tasks[task].tries = 0;
    detail->reworks = 0;
    detail->checkpoints = 0;
    sched->tasks[task].cause = ID_NONE;
    deps_revert(sched, task);
    state_ready_or_wait(sched, task);
    priority_refresh(sched, &task, 1);
    deps_doubt(sched, task);
    deps_revive(sched, &task, 1);
    deps_cut(sched);
    INVARIANT(state_is_pending(sched, task) ||
              sched_has(sched, task, TASK_CASCADED));
    INVARIANT(!sched_has(sched, task, TASK_SATISFIED));
    return ERR_OK;
}

/* Let a finished or parked task run again, as if it never had. */
void control_reset(struct sched *sched, uint32_t task)
{
    struct detail *detail = &sched->details[task];
    INVARIANT(!state_in_flight(sched, task));
    stop_asking(sched, task);
    deps_revert(sched, task);
    sched_lower(sched, task, TASK_REVOKED);
    sched_lower(sched, task, TASK_CASCADED);
    sched->tasks[task].tries = 0;
    detail->reworks = 0;
    detail->checkpoints = 0;
    sched->tasks[task].cause = ID_NONE;
    state_set(sched, task, TASK_WAITING);
    control_ask_approval(sched, task);
    deps_doubt(sched, task);
}

/*
 * Collect in sched->list a task and its direct and indirect dependents that
 * have come to an end, except withdrawn ones; mark those in flight as stale.
 * Return the number collected.
 */
static uint32_t collect_rerun(struct sched *sched, uint32_t task)
{
    const struct graph *graph = &sched->graph;
    uint16_t mark = sched_new_mark(sched);
    uint32_t count = 0;
    uint32_t depth = 0;
    sched->marks[task] = mark;
    sched->stack[depth++] = task;
    while (depth > 0) {
        uint32_t from = sched->stack[--depth];
        uint8_t state = sched->tasks[from].state;
        if (state == TASK_DONE || state == TASK_FAILED ||
            state == TASK_PARKED) {
            sched->list[count++] = from;
        } else if (state_in_flight(sched, from)) {
            sched_raise(sched, from, TASK_STALE);
            control_ask_approval(sched, from);
            state_touch(sched, from);
        }
        for (uint32_t edge = graph_first_dependent(graph, from);
             edge != ID_NONE;
             edge = graph_next_dependent(graph, edge)) {
            uint32_t dependent = graph_dependent(graph, edge);
            if (sched->marks[dependent] != mark) {
                sched->marks[dependent] = mark;
                INVARIANT(depth < sched->task_count);
                sched->stack[depth++] = dependent;
            }
        }
    }
    return count;
}

/* Repeat a task that is done, with all that depends on it. */
static enum err rerun(struct sched *sched, uint32_t task)
{
    uint32_t run = sched_run_ix(sched, task);
    if (sched->tasks[task].state != TASK_DONE || sched->runs[run].cancelled) {
        return ERR_CONFLICT;
    }
    unstop_failed(sched, run);
    uint32_t count = collect_rerun(sched, task);
    INVARIANT(count > 0 && sched->list[0] == task);
    for (uint32_t ix = 0; ix < count; ix++) {
        uint32_t again = sched->list[ix];
        control_reset(sched, again);
    }
    priority_refresh(sched, sched->list, count);
    INVARIANT(sched->doubt_count >= count);
    for (uint32_t ix = 0; ix < sched->doubt_count; ix++) {
        uint32_t again = sched->doubts[ix];
        INVARIANT(sched->tasks[again].state == TASK_WAITING);
        if (sched->unmet[again] == 0) {
            state_ready_or_wait(sched, again);
        }
    }
    deps_revive(sched, sched->doubts, sched->doubt_count);
    deps_cut(sched);
    INVARIANT(!sched_has(sched, task, TASK_SATISFIED));
    return ERR_OK;
}

static enum err hold(struct sched *sched, uint32_t task)
{
    if (state_is_final(sched->tasks[task].state)) {
        return ERR_CONFLICT;
    }
    if (sched_has(sched, task, TASK_HELD)) {
        return ERR_OK;
    }
    if (sched->tasks[task].state == TASK_READY) {
        ready_dequeue(sched, task);
        sched_run_of(sched, task)->held_ready++;
    }
    INVARIANT(sched_run_of(sched, task)->held_ready <=
              sched_run_of(sched, task)->counts[TASK_READY]);
    if (state_is_pending(sched, task)) {
        ready_count_out(sched, task);
    }
    INVARIANT(!sched_has(sched, task, TASK_QUEUED));
    sched_raise(sched, task, TASK_HELD);
    lend_touch(sched, task);
    state_touch(sched, task);
    state_check_run(sched, sched_run_ix(sched, task));
    return ERR_OK;
}

static enum err unhold(struct sched *sched, uint32_t task)
{
    if (sched_has(sched, task, TASK_REVOKED)) {
        INVARIANT(sched->tasks[task].state == TASK_DONE);
        sched_lower(sched, task, TASK_REVOKED);
        deps_satisfy(sched, task);
        scope_touch(sched, task);
        state_touch(sched, task);
        return ERR_OK;
    }
    if (!sched_has(sched, task, TASK_HELD) ||
        sched->details[task].unapproved != 0) {
        return ERR_CONFLICT;
    }
    state_touch(sched, task);
    sched_lower(sched, task, TASK_HELD);
    lend_touch(sched, task);
    if (sched->tasks[task].state == TASK_READY) {
        INVARIANT(sched_run_of(sched, task)->held_ready > 0);
        sched_run_of(sched, task)->held_ready--;
        ready_enqueue(sched, task);
    } else if (sched_has(sched, task, TASK_BACKING_OFF) &&
               !sched_is_away(sched, task) &&
               !sched_has(sched, task, TASK_BACKGROUND)) {
        ready_count_in(sched, task);
    }
    state_check_run(sched, sched_run_ix(sched, task));
    return ERR_OK;
}

static enum err approve(struct sched *sched, uint32_t task)
{
    if (sched->tasks[task].state != TASK_READY ||
        sched->details[task].unapproved == 0) {
        return ERR_CONFLICT;
    }
    sched->details[task].unapproved = 0;
    return unhold(sched, task);
}

/* Set the priority of a task; `first`: let it go before all others. */
static enum err
prioritise(struct sched *sched, uint32_t task, int64_t priority, bool first)
{
    if (priority < 0 || priority > SCHED_PRIORITY_MAX) {
        return ERR_INVALID;
    }
    if (state_is_final(sched->tasks[task].state)) {
        return ERR_CONFLICT;
    }
    sched->details[task].own_priority = (uint64_t)priority & 0xF;
    sched->details[task].prioritised = 1;
    if (first && sched->tasks[task].first == 0) {
        bool queued = sched_has(sched, task, TASK_QUEUED);
        if (queued) {
            ready_dequeue(sched, task);
        }
        sched->tasks[task].first = 1;
        if (sched->tasks[task].state == TASK_READY) {
            state_clear_timer(sched, task);
            sched_raise(sched, task, TASK_AGED);
        }
        if (queued) {
            ready_enqueue(sched, task);
        }
    }
    priority_refresh(sched, &task, 1);
    state_touch(sched, task);
    return ERR_OK;
}

static enum err revoke(struct sched *sched, uint32_t task)
{
    if (sched->tasks[task].state != TASK_DONE ||
        sched_has(sched, task, TASK_REVOKED)) {
        return ERR_CONFLICT;
    }
    sched_raise(sched, task, TASK_REVOKED);
    deps_revert(sched, task);
    INVARIANT(!sched_has(sched, task, TASK_SATISFIED));
    scope_touch(sched, task);
    state_touch(sched, task);
    state_check_run(sched, sched_run_ix(sched, task));
    return ERR_OK;
}

static enum err set_limit(struct sched *sched, const struct sched_event *event)
{
    struct limits *limits = &sched->limits;
    uint32_t limit = event->limit.v;
    if (limit >= limits->limit_count || event->max < 0 ||
        event->percent > 100 || limits->limits[limit].kind != LIMIT_PLAN ||
        (event->percent > 0 && limits->limits[limit].spec.base == limit)) {
        return ERR_INVALID;
    }
    limits_set_max(limits, limit, event->max, event->percent);
    sched->runs[limits->limits[limit].owner].goal_due = true;
    dispatch_wake_limit(sched, limit);
    lend_change_limit(sched, limit);
    for (uint32_t ix = 0; ix < limits->limit_count; ix++) {
        const struct limit_spec *spec = &limits->limits[ix].spec;
        if (spec->percent > 0 && spec->base == limit) {
            limits_derive(limits, ix);
            dispatch_wake_limit(sched, ix);
            lend_change_limit(sched, ix);
        }
    }
    return ERR_OK;
}

static enum err set_ahead(struct sched *sched, const struct sched_event *event)
{
    uint32_t limit = event->limit.v;
    if (limit >= sched->limits.limit_count ||
        sched->limits.limits[limit].kind != LIMIT_PLAN) {
        return ERR_INVALID;
    }
    limits_set_ahead(&sched->limits, limit, event->ahead);
    dispatch_wake_limit(sched, limit);
    return ERR_OK;
}

static enum err retry_run(struct sched *sched, uint32_t run)
{
    unstop_failed(sched, run);
    for (uint32_t task = 0; task < sched->task_count; task++) {
        uint8_t state = sched->tasks[task].state;
        if (sched_run_ix(sched, task) == run &&
            (state == TASK_FAILED || state == TASK_PARKED)) {
            enum err err = retry(sched, task);
            INVARIANT(err == ERR_OK);
        }
    }
    return ERR_OK;
}

static enum err pause_run(struct sched *sched, uint32_t run, bool paused)
{
    sched->runs[run].paused = paused;
    if (!paused) {
        unstop(sched, run);
    }
    control_check_run(sched, run);
    return ERR_OK;
}

/* Stop starting tasks in all runs, or resume. */
static enum err drain(struct sched *sched, bool draining)
{
    sched->draining = draining;
    for (uint32_t run = 0; run < sched->run_count; run++) {
        control_check_run(sched, run);
    }
    return ERR_OK;
}

static enum err open_providers(struct sched *sched)
{
    for (uint32_t ix = 0; ix < sched->provider_count; ix++) {
        provider_open(&sched->providers[ix], sched->now_ns);
        dispatch_check_provider(sched, ix);
    }
    return ERR_OK;
}

static enum err reopen_provider(struct sched *sched, uint32_t ix)
{
    provider_resume(&sched->providers[ix], sched->now_ns);
    dispatch_check_provider(sched, ix);
    for (uint32_t run = 0; run < sched->run_count; run++) {
        state_check_run(sched, run);
    }
    return ERR_OK;
}

static enum err end_barrier(struct sched *sched, uint32_t run)
{
    if (!sched->runs[run].barrier_running) {
        return ERR_CONFLICT;
    }
    INVARIANT(sched->runs[run].sync_every > 0);
    sched->runs[run].barrier_running = false;
    control_check_run(sched, run);
    return ERR_OK;
}

enum err control_apply(struct sched *sched, const struct sched_event *event)
{
    if (event->type != EVENT_BARRIER_DONE) {
        lookahead_upset_all(sched);
    }
    switch (event->type) {
    case EVENT_TICK:
    case EVENT_STARTED:
    case EVENT_ENDED:
        INVARIANT(false); /* no operator sends these */
        break;
    case EVENT_LIMIT:
        return set_limit(sched, event);
    case EVENT_AHEAD:
        return set_ahead(sched, event);
    case EVENT_PAUSE:
        return pause_run(sched, event->run.v, true);
    case EVENT_RESUME:
        return pause_run(sched, event->run.v, false);
    case EVENT_BARRIER_DONE:
        return end_barrier(sched, event->run.v);
    case EVENT_CANCEL_RUN:
        control_cancel_run(sched, event->run.v, ID_NONE);
        return ERR_OK;
    case EVENT_RETRY_RUN:
        return retry_run(sched, event->run.v);
    case EVENT_HOLD:
        return hold(sched, event->task.v);
    case EVENT_RELEASE:
        return unhold(sched, event->task.v);
    case EVENT_RETRY:
        return retry(sched, event->task.v);
    case EVENT_SKIP:
        return withdraw(sched, event->task.v, true);
    case EVENT_CANCEL:
        return withdraw(sched, event->task.v, false);
    case EVENT_REVOKE:
        return revoke(sched, event->task.v);
    case EVENT_APPROVE:
        return approve(sched, event->task.v);
    case EVENT_RERUN:
        return rerun(sched, event->task.v);
    case EVENT_PRIORITY:
        return prioritise(sched, event->task.v, event->max, false);
    case EVENT_FIRST:
        return prioritise(sched, event->task.v, 0, true);
    case EVENT_DRAIN:
        return drain(sched, true);
    case EVENT_FILL:
        return drain(sched, false);
    case EVENT_OPEN:
        return open_providers(sched);
    case EVENT_REOPEN:
        return reopen_provider(sched, event->provider.v);
    }
    return ERR_INVALID;
}
