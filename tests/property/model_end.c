/* SPDX-License-Identifier: MIT */
/* How a session ends: what that means for its tasks and its provider. */
#include "tests/property/model.h"

static void park(struct model_task *task, enum sched_parked why)
{
    model_put(task, TASK_PARKED);
    task->parked = why;
}

static void give_up(struct model *model, uint32_t task)
{
    struct model_task *t = &model->tasks[task];
    switch (t->failure.on_failure) {
    case SCHED_PARK:
        park(t, SCHED_PARKED_FAILED);
        return;
    case SCHED_ASK:
        park(t, SCHED_PARKED_FAILED);
        t->asking = true;
        return;
    case SCHED_STOP:
        park(t, SCHED_PARKED_FAILED);
        model_stop(model, t->run, SCHED_STOPPED_FAILURE);
        return;
    case SCHED_SKIP:
        model_put(t, TASK_FAILED);
        return;
    case SCHED_ABORT:
        model_put(t, TASK_FAILED);
        if (!model->runs[t->run].cancelled) {
            model_cancel_run(model, t->run, false);
        }
        return;
    }
}

static void fail(struct model *model, uint32_t task, bool fatal)
{
    struct model_task *t = &model->tasks[task];
    t->tries++;
    if (fatal || t->tries > t->failure.retry_max) {
        give_up(model, task);
        return;
    }
    t->state = TASK_WAITING;
    int64_t delay = t->failure.backoff_ns;
    for (uint32_t ix = 1; ix < t->tries; ix++) {
        delay *= 2;
    }
    if (delay > t->failure.backoff_ns_max) {
        delay = t->failure.backoff_ns_max;
    }
    if (delay > 0) {
        t->backing_off = true;
        t->until_ns = model->now_ns + delay;
    }
}

/* Whether b needs a, directly or not, through tasks of one group. */
static bool reaches(const struct model *model, uint32_t a, uint32_t b)
{
    bool seen[MODEL_TASKS] = {false};
    seen[b] = true;
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t ix = 0; ix < model->need_count; ix++) {
            uint32_t need = model->needs[ix].need;
            if (seen[model->needs[ix].dependent] && !seen[need] &&
                model->needs[ix].on == SCHED_ON_DONE &&
                model->tasks[need].group == model->tasks[b].group) {
                seen[need] = true;
                changed = true;
            }
        }
    }
    return seen[a];
}

static void rework(struct model *model, uint32_t task)
{
    struct model_task *t = &model->tasks[task];
    if (t->rework_to == ID_NONE || t->reworks >= t->failure.rework_max ||
        model->tasks[t->rework_to].state >= TASK_FAILED) {
        park(t, SCHED_PARKED_CHANGES);
        return;
    }
    t->reworks++;
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        struct model_task *again = &model->tasks[ix];
        if (again->group != t->group || !reaches(model, t->rework_to, ix)) {
            continue;
        }
        if (ix == task || again->state == TASK_DONE) {
            again->state = TASK_WAITING;
            again->revoked = false;
            model_disapprove(again);
        } else if (ix != t->rework_to && model_in_flight(again)) {
            again->stale = true;
            model_disapprove(again);
        }
    }
    model_revive(model);
}

static void complete(struct model *model, uint32_t task)
{
    struct model_run *run = &model->runs[model->tasks[task].run];
    model_put(&model->tasks[task], TASK_DONE);
    run->completions++;
    if (run->sync_every > 0 && run->completions % run->sync_every == 0) {
        run->barrier_due = true;
    }
}

static bool is_failure(enum sched_outcome outcome)
{
    return outcome == OUTCOME_FAILED || outcome == OUTCOME_LOST ||
           outcome == OUTCOME_FATAL;
}

/* The first time in a row it keeps its place, then it backs off, too. */
static void
refuse(struct model *model, uint32_t task, const struct sched_event *event)
{
    struct model_task *t = &model->tasks[task];
    const struct provider *provider = &model->providers[t->provider];
    bool named = event->stop || event->retry_at_ns != SCHED_NEVER;
    t->refusals += named ? 0 : 1;
    t->state = model_lacks(model, task) ? TASK_WAITING : TASK_READY;
    if (named || t->refusals < 2) {
        return;
    }
    int64_t delay = provider->spec.backoff_ns;
    for (uint32_t ix = 2; ix < t->refusals; ix++) {
        delay = delay * 2 < provider->spec.backoff_ns_max
                    ? delay * 2
                    : provider->spec.backoff_ns_max;
    }
    int64_t from_ns = provider->kept.shut_until_ns > model->now_ns
                          ? provider->kept.shut_until_ns
                          : model->now_ns;
    t->state = TASK_WAITING;
    t->backing_off = true;
    t->until_ns = from_ns + delay;
}

/* It wants to be run again, at a time or in five minutes. */
static void snooze(struct model *model, uint32_t task, int64_t retry_at_ns)
{
    struct model_task *t = &model->tasks[task];
    bool known = retry_at_ns != SCHED_NEVER && retry_at_ns > model->now_ns;
    t->state = TASK_WAITING;
    t->backing_off = true;
    t->snoozed = true;
    t->until_ns = known ? retry_at_ns : model->now_ns + 300 * SECOND_NS;
}

/* Whether it goes on in a fresh session. */
static void reach_checkpoint(struct model_task *t, bool progress)
{
    if (!progress && t->checkpoints >= t->failure.checkpoint_max) {
        park(t, SCHED_PARKED_CHECKPOINTS);
        return;
    }
    t->checkpoints = progress ? 0 : t->checkpoints + 1;
    t->state = TASK_WAITING;
}

static void end_task(struct model *model,
                     uint32_t task,
                     enum sched_outcome outcome,
                     const struct sched_event *event)
{
    struct model_task *t = &model->tasks[task];
    if (outcome != OUTCOME_REFUSED && outcome != OUTCOME_STOPPED) {
        t->refusals = 0;
    }
    bool stale = t->stale;
    t->stale = false;
    if (t->ending) {
        t->ending = false;
        model_put(t, t->to_skip ? TASK_SKIPPED : TASK_CANCELLED);
        return;
    }
    if (stale && !is_failure(outcome) && outcome != OUTCOME_REFUSED &&
        outcome != OUTCOME_STOPPED) {
        t->state = TASK_WAITING;
        return;
    }
    switch (outcome) {
    case OUTCOME_DONE:
        complete(model, task);
        return;
    case OUTCOME_FAILED:
        if (t->failure.rework_on_failure) {
            rework(model, task);
        } else {
            fail(model, task, false);
        }
        return;
    case OUTCOME_LOST:
    case OUTCOME_FATAL:
        fail(model, task, outcome == OUTCOME_FATAL);
        return;
    case OUTCOME_REFUSED:
        refuse(model, task, event);
        return;
    case OUTCOME_STOPPED:
        /* Keeps its place: ready since when it was, if it still is. */
        t->state = model_lacks(model, task) ? TASK_WAITING : TASK_READY;
        return;
    case OUTCOME_CHANGES:
        rework(model, task);
        return;
    case OUTCOME_BLOCKED:
        park(t, SCHED_PARKED_BLOCKED);
        return;
    case OUTCOME_CHECKPOINT:
        reach_checkpoint(t, event->progress);
        return;
    case OUTCOME_LATER:
        snooze(model, task, event->retry_at_ns);
        return;
    }
}

/* Whether it was refused before, and its provider takes others. */
static bool is_own_refusal(const struct model *model, uint32_t leader)
{
    const struct model_task *t = &model->tasks[leader];
    bool own = provider_is_trusted(&model->providers[t->provider]);
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        const struct model_task *other = &model->tasks[ix];
        own =
            own || (other->state == TASK_RUNNING &&
                    other->provider == t->provider && other->token < t->token);
    }
    return own && t->refusals > 0;
}

static void judge_provider(struct model *model,
                           uint32_t leader,
                           const struct sched_event *event)
{
    const struct model_task *t = &model->tasks[leader];
    struct provider *provider = &model->providers[t->provider];
    bool starting = t->state == TASK_STARTING;
    bool well = false;
    bool lost = false;
    for (uint32_t ix = 0; ix < event->outcome_count; ix++) {
        enum sched_outcome outcome = event->outcomes[ix];
        bool gone = outcome == OUTCOME_LOST || outcome == OUTCOME_STOPPED;
        lost = lost || gone;
        if (!gone) {
            bool bad = outcome == OUTCOME_FAILED || outcome == OUTCOME_FATAL;
            well = well || !bad || t->failure.rework_on_failure;
        }
    }
    int64_t now_ns = event->now_ns;
    if (event->outcomes[0] == OUTCOME_REFUSED) {
        if (!event->stop && event->retry_at_ns == SCHED_NEVER &&
            is_own_refusal(model, leader)) {
            provider_ended(provider, t->token, now_ns);
            if (starting) {
                provider_dropped(provider, now_ns);
            }
        } else if (starting) {
            provider_refused(provider, t->token, now_ns, event->retry_at_ns);
        } else {
            provider_limited(provider, t->token, now_ns, event->retry_at_ns);
        }
        if (event->stop) {
            provider_stop(provider);
        }
        return;
    }
    if (starting && well) {
        provider_accepted(provider, now_ns);
    } else if (starting) {
        provider_dropped(provider, now_ns);
    }
    if (t->ending || (lost && !well)) {
        provider_ended(provider, t->token, now_ns);
    } else if (well) {
        provider_succeeded(provider);
    } else {
        provider_failed(provider, t->token, now_ns);
    }
}

/* The tasks of a session, in the order in which they were taken. */
static uint32_t
session_of(const struct model *model, uint32_t leader, uint32_t *members)
{
    uint32_t count = 0;
    members[count++] = leader;
    for (uint32_t seq = 1; seq == count; seq++) {
        for (uint32_t ix = 0; ix < model->task_count; ix++) {
            const struct model_task *t = &model->tasks[ix];
            if (ix != leader && model_in_flight(t) && t->leader == leader &&
                t->token == model->tasks[leader].token &&
                (uint32_t)t->started_ns == seq) {
                members[count++] = ix;
            }
        }
    }
    return count;
}

enum err model_end_session(struct model *model, const struct sched_event *event)
{
    uint32_t members[MODEL_TASKS];
    uint32_t leader = model->tasks[event->task.v].leader;
    uint32_t count = session_of(model, leader, members);
    bool alone = event->outcome_count == 1;
    if (!alone && event->outcome_count != count) {
        return ERR_INVALID;
    }
    for (uint32_t ix = 0; !alone && ix < count; ix++) {
        if (event->outcomes[ix] == OUTCOME_REFUSED ||
            event->outcomes[ix] == OUTCOME_STOPPED) {
            return ERR_INVALID;
        }
    }
    judge_provider(model, leader, event);
    model->tasks[leader].end_due = false;
    bool unused = event->outcomes[0] == OUTCOME_REFUSED ||
                  event->outcomes[0] == OUTCOME_STOPPED;
    int64_t used_ns = unused
                          ? 0
                          : (event->now_ns - model->tasks[leader].started_ns) /
                                (int64_t)count;
    for (uint32_t ix = 0; ix < count; ix++) {
        const struct model_task *t = &model->tasks[members[ix]];
        model->groups[t->group].service_ns += used_ns - t->estimate_ns;
    }
    /* What failed comes last: it may cancel the run, not what is done. */
    for (uint32_t n = 0; n < 2 * count; n++) {
        uint32_t ix = n % count;
        enum sched_outcome outcome = event->outcomes[alone ? 0 : ix];
        if (is_failure(outcome) == (n >= count)) {
            end_task(model, members[ix], outcome, event);
            model_cut(model);
            model_look(model);
        }
    }
    model->tasks[leader].end_due = false;
    return ERR_OK;
}
