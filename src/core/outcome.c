/* SPDX-License-Identifier: MIT */
/*
 * Session outcomes: return the units, judge the provider, then apply the
 * outcome to each task of the session. Retries come first, then the plan's
 * failure rules. A request that came while the session ran (cancel, skip)
 * overrides any outcome.
 */
#include "core/sched_internal.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "core/lookahead/lookahead.h"

/* How long a task waits that asks to run later without a time. */
#define SNOOZE_NS (300 * SECOND_NS)

void outcome_started(struct sched *sched, uint32_t leader)
{
    uint32_t provider = sched_shape_of(sched, leader)->provider;
    provider_accepted(&sched->providers[provider], sched->now_ns);
    dispatch_check_provider(sched, provider);
    for (uint32_t task = leader; task != ID_NONE;
         task = sched->tasks[task].next_in_session) {
        INVARIANT(sched->tasks[task].token == sched->tasks[leader].token);
        state_set(sched, task, TASK_RUNNING);
        uint32_t edge = graph_first_dependent(&sched->graph, task);
        if (edge != ID_NONE) {
            __builtin_prefetch(&sched->graph.edges[edge]);
        }
    }
}

static void park(struct sched *sched, uint32_t task, enum sched_parked reason)
{
    state_set(sched, task, TASK_PARKED);
    sched->details[task].parked = reason & 0x3;
    ready_count_out(sched, task);
    INVARIANT(!sched_has(sched, task, TASK_SATISFIED));
}

static void give_up(struct sched *sched, uint32_t task)
{
    INVARIANT(sched->tasks[task].tries > 0);
    uint32_t run = sched_run_ix(sched, task);
    switch (sched_failure_of(sched, task)->on_failure) {
    case SCHED_PARK:
        park(sched, task, SCHED_PARKED_FAILED);
        return;
    case SCHED_ASK:
        park(sched, task, SCHED_PARKED_FAILED);
        control_ask(sched, task);
        return;
    case SCHED_SKIP:
        state_set(sched, task, TASK_FAILED);
        if (sched_failure_of(sched, task)->optional) {
            deps_satisfy(sched, task);
        } else {
            deps_skip_dependents(sched, task);
        }
        ready_count_out(sched, task);
        return;
    case SCHED_ABORT:
        state_set(sched, task, TASK_FAILED);
        ready_count_out(sched, task);
        if (!sched->runs[run].cancelled) {
            control_cancel_run(sched, run, task);
        } else if (!sched_failure_of(sched, task)->optional) {
            deps_skip_dependents(sched, task);
        }
        deps_satisfy(sched, task);
        return;
    case SCHED_STOP:
        park(sched, task, SCHED_PARKED_FAILED);
        control_stop_run(sched, run, SCHED_STOPPED_FAILURE);
        return;
    }
}

/* Let a task wait until a time; `counts`: it keeps its group open. */
static void
back_off(struct sched *sched, uint32_t task, int64_t until_ns, bool counts)
{
    struct run *run = sched_run_of(sched, task);
    state_set(sched, task, TASK_WAITING);
    sched_raise(sched, task, TASK_BACKING_OFF);
    run->backing_off++;
    INVARIANT(run->backing_off <= run->counts[TASK_WAITING]);
    if (!counts) {
        ready_count_out(sched, task);
    }
    state_set_timer(sched, task, until_ns);
}

/* Handle a failure; `fatal`: a retry does not help. */
static void fail(struct sched *sched, uint32_t task, bool fatal)
{
    struct task *t = &sched->tasks[task];
    const struct sched_failure_spec *spec = sched_failure_of(sched, task);
    t->tries++;
    if (fatal || t->tries > spec->retry_max) {
        give_up(sched, task);
        return;
    }
    int64_t delay =
        duration_doubled(spec->backoff_ns, t->tries - 1, spec->backoff_ns_max);
    if (delay == 0) {
        state_ready_or_wait(sched, task);
        return;
    }
    INVARIANT(delay > 0);
    bool held = sched_has(sched, task, TASK_HELD);
    back_off(sched, task, sched->now_ns + delay, !held);
}

/*
 * Handle a refused task. After the first refusal in a row it stays ready: its
 * provider backs off. After further ones the task backs off as well, for longer
 * than its provider, so that tasks that were not refused come first. A refusal
 * with a time concerns the provider, not the task.
 */
static void
refuse(struct sched *sched, uint32_t task, const struct sched_event *event)
{
    struct task *t = &sched->tasks[task];
    bool named = event->stop || event->retry_at_ns != SCHED_NEVER;
    if (!named && t->refusals < SCHED_RECORD_REFUSALS_MAX) {
        t->refusals++;
    }
    if (named || t->refusals < 2) {
        state_ready_again(sched, task);
        return;
    }
    const struct provider *provider =
        &sched->providers[sched_shape_of(sched, task)->provider];
    int64_t delay_ns = duration_doubled(provider->spec.backoff_ns,
                                        t->refusals - 2U,
                                        provider->spec.backoff_ns_max);
    int64_t from_ns = provider->kept.shut_until_ns > sched->now_ns
                          ? provider->kept.shut_until_ns
                          : sched->now_ns;
    INVARIANT(delay_ns > 0);
    bool late = from_ns >= SCHED_NEVER - delay_ns;
    back_off(sched, task, late ? from_ns : from_ns + delay_ns, false);
}

/* Let a task wait as it asked for, without a slot. */
static void snooze(struct sched *sched, uint32_t task, int64_t until_ns)
{
    if (until_ns <= sched->now_ns || until_ns == SCHED_NEVER) {
        until_ns = sched->now_ns + SNOOZE_NS;
    }
    sched->details[task].snoozed = 1;
    back_off(sched, task, until_ns, false);
}

/*
 * Collect in sched->list the tasks that rework from `task` repeats: `task`, and
 * of `to` and its direct and indirect dependents in the group, all done tasks.
 * Mark tasks in flight among them as stale: their input will be replaced.
 * Return the number collected.
 */
static uint32_t collect_rework(struct sched *sched, uint32_t task, uint32_t to)
{
    const struct graph *graph = &sched->graph;
    uint32_t group = sched->tasks[task].group;
    uint16_t mark = sched_new_mark(sched);
    uint32_t count = 0;
    uint32_t depth = 0;
    sched->marks[to] = mark;
    sched->stack[depth++] = to;
    while (depth > 0) {
        uint32_t from = sched->stack[--depth];
        if (from == task || sched->tasks[from].state == TASK_DONE) {
            sched->list[count++] = from;
        } else if (from != to && state_in_flight(sched, from)) {
            sched_raise(sched, from, TASK_STALE);
            control_ask_approval(sched, from);
            state_touch(sched, from);
        }
        for (uint32_t edge = graph_first_dependent(graph, from);
             edge != ID_NONE;
             edge = graph_next_dependent(graph, edge)) {
            uint32_t dependent = graph_dependent(graph, edge);
            if (sched->tasks[dependent].group == group &&
                graph_on(graph, edge) == SCHED_ON_DONE &&
                sched->marks[dependent] != mark) {
                sched->marks[dependent] = mark;
                INVARIANT(depth < sched->task_count);
                sched->stack[depth++] = dependent;
            }
        }
    }
    INVARIANT(sched->marks[task] == mark);
    return count;
}

/* Return whether it is not skipped, failed, cancelled or parked. */
static bool can_work_again(const struct sched *sched, uint32_t task)
{
    return sched->tasks[task].state == TASK_DONE ||
           state_is_pending(sched, task) || state_in_flight(sched, task);
}

/* Send the group back from `task` to its rework stage, or park it. */
static void rework(struct sched *sched, uint32_t task)
{
    INVARIANT(state_in_flight(sched, task));
    struct detail *detail = &sched->details[task];
    uint32_t to = detail->rework_to;
    if (to == ID_NONE || !can_work_again(sched, to) ||
        detail->reworks >= sched_failure_of(sched, task)->rework_max) {
        park(sched, task, SCHED_PARKED_CHANGES);
        return;
    }
    detail->reworks++;
    uint32_t count = collect_rework(sched, task, to);
    for (uint32_t ix = 0; ix < count; ix++) {
        uint32_t again = sched->list[ix];
        INVARIANT(sched->tasks[again].group == sched->tasks[task].group);
        deps_revert(sched, again);
        sched_lower(sched, again, TASK_REVOKED);
        state_set(sched, again, TASK_WAITING);
        control_ask_approval(sched, again);
        deps_doubt(sched, again);
    }
    priority_refresh(sched, sched->list, count);
    if (sched->tasks[to].state == TASK_WAITING &&
        !sched_has(sched, to, TASK_BACKING_OFF)) {
        state_ready_or_wait(sched, to);
    }
    ready_count_out(sched, task);
    INVARIANT(state_is_pending(sched, task));
}

static void checkpoint(struct sched *sched, uint32_t task, bool progress)
{
    struct detail *detail = &sched->details[task];
    if (progress) {
        detail->checkpoints = 0;
        state_ready_or_wait(sched, task);
        return;
    }
    if (detail->checkpoints >= sched_failure_of(sched, task)->checkpoint_max) {
        park(sched, task, SCHED_PARKED_CHECKPOINTS);
        return;
    }
    detail->checkpoints++;
    state_ready_or_wait(sched, task);
}

static void complete(struct sched *sched, uint32_t task)
{
    uint32_t ix = sched_run_ix(sched, task);
    struct run *run = &sched->runs[ix];
    state_set(sched, task, TASK_DONE);
    deps_satisfy(sched, task);
    INVARIANT(sched_has(sched, task, TASK_SATISFIED) ==
              (sched->unmet[task] == 0));
    ready_count_out(sched, task);
    if (sched->unmet[task] > 0 || run->picky) {
        /* A need of the task may run again, and is less urgent for it. */
        priority_refresh(sched, &task, 1);
    }
    run->completions++;
    if (run->sync_every > 0 && run->completions % run->sync_every == 0) {
        run->barrier_due = true;
        control_check_run(sched, ix);
    }
}

/* Skip or cancel a task whose session has now exited, as requested. */
static void withdraw(struct sched *sched, uint32_t task)
{
    INVARIANT(sched_has(sched, task, TASK_ENDING));
    deps_withdraw(sched, task, sched_has(sched, task, TASK_TO_SKIP));
    ready_count_out(sched, task);
}

/* Return whether the outcome is not about the work: all tasks stay ready. */
static bool stands_alone(enum sched_outcome outcome)
{
    return outcome == OUTCOME_REFUSED || outcome == OUTCOME_STOPPED;
}

static bool is_failure(enum sched_outcome outcome)
{
    return outcome == OUTCOME_FAILED || outcome == OUTCOME_LOST ||
           outcome == OUTCOME_FATAL;
}

static void end_task(struct sched *sched,
                     uint32_t task,
                     enum sched_outcome outcome,
                     const struct sched_event *event)
{
    bool stale = sched_has(sched, task, TASK_STALE);
    sched_lower(sched, task, TASK_STALE);
    if (!stands_alone(outcome)) {
        sched->tasks[task].refusals = 0;
    }
    if (sched_has(sched, task, TASK_ENDING)) {
        withdraw(sched, task);
        sched_lower(sched, task, TASK_ENDING);
        sched_lower(sched, task, TASK_TO_SKIP);
        return;
    }
    if (stale && !is_failure(outcome) && !stands_alone(outcome)) {
        /* The outcome is about work that is being repeated. */
        state_ready_or_wait(sched, task);
        return;
    }
    switch (outcome) {
    case OUTCOME_DONE:
        complete(sched, task);
        return;
    case OUTCOME_FAILED:
        if (sched_failure_of(sched, task)->rework_on_failure) {
            rework(sched, task);
        } else {
            fail(sched, task, false);
        }
        return;
    case OUTCOME_LOST:
        fail(sched, task, false); /* its findings are lost too: no rework */
        return;
    case OUTCOME_FATAL:
        fail(sched, task, true);
        return;
    case OUTCOME_LATER:
        snooze(sched, task, event->retry_at_ns);
        return;
    case OUTCOME_REFUSED:
        INVARIANT(sched->tasks[task].attempts > 0);
        sched->tasks[task].attempts--;
        refuse(sched, task, event);
        return;
    case OUTCOME_STOPPED:
        INVARIANT(sched->tasks[task].attempts > 0);
        sched->tasks[task].attempts--;
        state_ready_again(sched, task);
        return;
    case OUTCOME_CHANGES:
        rework(sched, task);
        return;
    case OUTCOME_BLOCKED:
        park(sched, task, SCHED_PARKED_BLOCKED);
        return;
    case OUTCOME_CHECKPOINT:
        checkpoint(sched, task, event->progress);
        return;
    }
}

/* Runs that only wait for this provider become idle. */
static void stop_provider(struct sched *sched, struct provider *provider)
{
    provider_stop(provider);
    for (uint32_t run = 0; run < sched->run_count; run++) {
        state_check_run(sched, run);
    }
}

/*
 * Return whether a refusal is due to the task, not its provider: the task was
 * refused before, and the provider accepts other tasks: one has finished
 * otherwise since, or one that started earlier still runs.
 */
static bool
is_own_refusal(struct sched *sched, uint32_t leader, struct provider *provider)
{
    const struct shape *shape = sched_shape_of(sched, leader);
    if (sched->tasks[leader].refusals == 0) {
        return false;
    }
    bool own = provider_is_trusted(provider);
    for (uint32_t ix = 0; !own && ix < sched->in_flight_count; ix++) {
        uint32_t other = sched->in_flight[ix];
        own = sched->tasks[other].state == TASK_RUNNING &&
              sched->tasks[other].token < sched->tasks[leader].token &&
              sched_shape_of(sched, other)->provider == shape->provider;
    }
    return own;
}

/* Handle the refusal of a session. */
static void judge_refusal(struct sched *sched,
                          uint32_t leader,
                          struct provider *provider,
                          const struct sched_event *event)
{
    uint64_t token = sched->tasks[leader].token;
    bool starting = sched->tasks[leader].state == TASK_STARTING;
    int64_t now_ns = event->now_ns;
    if (!event->stop && event->retry_at_ns == SCHED_NEVER &&
        is_own_refusal(sched, leader, provider)) {
        provider_ended(provider, token, now_ns);
        if (starting) {
            provider_dropped(provider, now_ns);
        }
    } else if (starting) {
        provider_refused(provider, token, now_ns, event->retry_at_ns);
    } else {
        provider_limited(provider, token, now_ns, event->retry_at_ns);
    }
    if (event->stop) {
        stop_provider(sched, provider);
    }
}

/* Update the provider's state from the outcome of a session. */
static void judge_provider(struct sched *sched,
                           uint32_t leader,
                           const struct sched_event *event)
{
    const struct task *t = &sched->tasks[leader];
    struct provider *provider =
        &sched->providers[sched_shape_of(sched, leader)->provider];
    bool starting = t->state == TASK_STARTING;
    /* A failing gate has done its work: the provider is not at fault. */
    bool gate = sched_failure_of(sched, leader)->rework_on_failure;
    bool well = false;
    bool lost = false;
    for (uint32_t ix = 0; ix < event->outcome_count; ix++) {
        enum sched_outcome outcome = event->outcomes[ix];
        bool vanished = outcome == OUTCOME_LOST || outcome == OUTCOME_STOPPED;
        lost = lost || vanished;
        bool failed = outcome == OUTCOME_FAILED || outcome == OUTCOME_FATAL;
        well = well || (!vanished && (gate || !failed));
    }
    if (event->outcomes[0] == OUTCOME_REFUSED) {
        judge_refusal(sched, leader, provider, event);
        return;
    }
    if (starting && well) {
        provider_accepted(provider, sched->now_ns);
    } else if (starting) {
        provider_dropped(provider, event->now_ns);
    }
    if (sched_has(sched, leader, TASK_ENDING) || (lost && !well)) {
        provider_ended(provider, t->token, event->now_ns);
    } else if (well) {
        provider_succeeded(provider);
    } else {
        provider_failed(provider, t->token, event->now_ns);
    }
}

/*
 * Replace the estimates charged at the start by the actual time, in equal parts
 * among the tasks of the session.
 */
static void charge(struct sched *sched, uint32_t leader, int64_t used_ns)
{
    for (uint32_t task = leader; task != ID_NONE;
         task = sched->tasks[task].next_in_session) {
        uint32_t ix = sched->tasks[task].group;
        int64_t *service_ns = sched_service(sched, ix);
        *service_ns += used_ns - sched->tasks[task].estimate_ns;
        if (*service_ns < 0) {
            /* Its record had less service than its sessions were charged. */
            *service_ns = 0;
        }
        ready_rekey_group(sched, ix);
    }
}

/* Check for one outcome, or one per task without REFUSED and STOPPED. */
static bool fits_session(const struct sched_event *event, uint32_t count)
{
    if (event->outcome_count == 1) {
        return true;
    }
    bool fits = event->outcome_count == count;
    for (uint32_t ix = 0; fits && ix < count; ix++) {
        fits = !stands_alone(event->outcomes[ix]);
    }
    return fits;
}

/* Apply the outcomes of the failed tasks of a session, or of the others. */
static void end_tasks(struct sched *sched,
                      uint32_t leader,
                      const struct sched_event *event,
                      bool failed)
{
    bool alone = event->outcome_count == 1;
    uint32_t ix = 0;
    for (uint32_t task = leader; task != ID_NONE; ix++) {
        uint32_t next = sched->tasks[task].next_in_session;
        INVARIANT(alone || ix < event->outcome_count);
        enum sched_outcome outcome = event->outcomes[alone ? 0 : ix];
        if (is_failure(outcome) == failed) {
            end_task(sched, task, outcome, event);
            INVARIANT(!state_in_flight(sched, task));
            INVARIANT(!sched_has(sched, task, TASK_ENDING) &&
                      !sched_has(sched, task, TASK_STALE));
            if (sched->doubt_count == 0) {
                deps_doubt(sched, task); /* else rework listed it */
            }
            deps_cut(sched);
            INVARIANT(sched->doubt_count == 0);
        }
        task = next;
    }
}

/* Return whether all tasks of the session are done. */
static bool all_well(const struct sched_event *event)
{
    bool well = true;
    for (uint32_t ix = 0; well && ix < event->outcome_count; ix++) {
        well = event->outcomes[ix] == OUTCOME_DONE;
    }
    return well;
}

enum err outcome_apply(struct sched *sched, const struct sched_event *event)
{
    uint32_t leader = sched->tasks[event->task.v].leader;
    uint32_t count = 0;
    for (uint32_t task = leader; task != ID_NONE;
         task = sched->tasks[task].next_in_session) {
        sched_fetch_dependents(sched, task, true); /* needed in the end */
        count++;
    }
    if (!fits_session(event, count)) {
        return ERR_INVALID;
    }
    INVARIANT(count > 0);
    const struct shape *shape = sched_shape_of(sched, leader);
    judge_provider(sched, leader, event);
    dispatch_check_provider(sched, shape->provider);
    sched->notices = sched->notices || sched->providers[shape->provider].notice;
    dispatch_give_session(sched, leader);
    INVARIANT(sched->runs[shape->run].sessions > 0);
    sched->runs[shape->run].sessions--;
    if (sched->runs[shape->run].policy == SCHED_FAIR) {
        bool unused = stands_alone(event->outcomes[0]);
        int64_t used_ns = sched->now_ns - sched->times[leader].started_ns;
        charge(sched, leader, unused ? 0 : used_ns / (int64_t)count);
    }
    if (sched_has(sched, leader, TASK_END_DUE)) {
        sched_lower(sched, leader, TASK_END_DUE);
        INVARIANT(sched->ends > 0);
        sched->ends--;
    }
    sched->end_from = 0; /* the list of tasks in flight changes */
    if (all_well(event)) {
        lookahead_note_end(sched, leader);
    } else {
        lookahead_upset(sched, shape->run);
    }
    /* Failures last: they may cancel the run, but not finished tasks. */
    end_tasks(sched, leader, event, false);
    end_tasks(sched, leader, event, true);
    return ERR_OK;
}
