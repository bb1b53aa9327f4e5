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
    dispatch_set_open(sched,
                      r->pool,
                      !sched->draining && !r->paused && !barrier &&
                          r->asking == 0);
    state_check_run(sched, run);
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

void control_cancel_run(struct sched *sched, uint32_t run, uint32_t cause)
{
    for (uint32_t task = 0; task < sched->task_count; task++) {
        if (sched_run_ix(sched, task) != run) {
            continue;
        }
        bool parked = sched->tasks[task].state == TASK_PARKED;
        if (state_in_flight(sched, task)) {
            if (!sched_has(sched, task, TASK_ENDING)) {
                end_in_flight(sched, task, false);
                sched->details[task].cause = cause;
            }
        } else if (parked || state_is_pending(sched, task)) {
            if (parked) {
                stop_asking(sched, task);
            } else {
                state_drop(sched, task);
            }
            state_set(sched, task, TASK_CANCELLED);
            sched->details[task].cause = cause;
        }
    }
    INVARIANT(sched->runs[run].counts[TASK_WAITING] == 0);
    INVARIANT(sched->runs[run].counts[TASK_READY] == 0);
    INVARIANT(sched->runs[run].counts[TASK_PARKED] == 0);
    sched->runs[run].cancelled = true;
    sched->runs[run].barrier_due = false;
    control_check_run(sched, run);
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
        sched->details[task].refusals = 0;
        state_ready_or_wait(sched, task);
        return ERR_OK;
    }
    if (t->state != TASK_FAILED && t->state != TASK_PARKED && !revoked) {
        return ERR_CONFLICT;
    }
    stop_asking(sched, task);
    sched_lower(sched, task, TASK_REVOKED);
    struct detail *detail = &sched->details[task];
    detail->tries = 0;
    detail->reworks = 0;
    detail->checkpoints = 0;
    detail->cause = ID_NONE;
    deps_revert(sched, task);
    state_ready_or_wait(sched, task);
    priority_refresh(sched, &task, 1);
    deps_doubt(sched, task);
    deps_revive(sched, task);
    deps_cut(sched);
    INVARIANT(state_is_pending(sched, task) ||
              sched_has(sched, task, TASK_CASCADED));
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
        state_touch(sched, task);
        return ERR_OK;
    }
    if (!sched_has(sched, task, TASK_HELD)) {
        return ERR_CONFLICT;
    }
    state_touch(sched, task);
    sched_lower(sched, task, TASK_HELD);
    if (sched->tasks[task].state == TASK_READY) {
        INVARIANT(sched_run_of(sched, task)->held_ready > 0);
        sched_run_of(sched, task)->held_ready--;
        ready_enqueue(sched, task);
    } else if (sched_has(sched, task, TASK_BACKING_OFF) &&
               !sched_is_refused(sched, task) &&
               !sched_has(sched, task, TASK_BACKGROUND)) {
        ready_count_in(sched, task);
    }
    state_check_run(sched, sched_run_ix(sched, task));
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
    dispatch_wake_limit(sched, limit);
    for (uint32_t ix = 0; ix < limits->limit_count; ix++) {
        const struct limit_spec *spec = &limits->limits[ix].spec;
        if (spec->percent > 0 && spec->base == limit) {
            limits_derive(limits, ix);
            dispatch_wake_limit(sched, ix);
        }
    }
    return ERR_OK;
}

static enum err retry_run(struct sched *sched, uint32_t run)
{
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
        return ERR_INVALID;
    case EVENT_LIMIT:
        return set_limit(sched, event);
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
