/* SPDX-License-Identifier: MIT */
#include "tests/property/model.h"

static bool in_flight(const struct model_task *task)
{
    return task->state == TASK_STARTING || task->state == TASK_RUNNING;
}

static bool is_final(const struct model_task *task)
{
    return task->state == TASK_DONE || task->state == TASK_SKIPPED ||
           task->state == TASK_CANCELLED;
}

static bool is_pending(const struct model_task *task)
{
    return task->state == TASK_WAITING || task->state == TASK_READY;
}

/* Done, or optional and given up. */
static bool is_complete(const struct model_task *task)
{
    if (task->state == TASK_DONE) {
        return !task->revoked;
    }
    return task->failure.optional && !task->cascaded &&
           (task->state == TASK_SKIPPED || task->state == TASK_FAILED);
}

static bool all_satisfied(const struct model *model, uint32_t task)
{
    for (uint32_t ix = 0; ix < model->need_count; ix++) {
        if (model->needs[ix].dependent == task &&
            !model->tasks[model->needs[ix].need].satisfied) {
            return false;
        }
    }
    return true;
}

/* The same for all tasks at once: which ones lack a need. */
static void find_lacking(const struct model *model, bool *lacks)
{
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        lacks[ix] = false;
    }
    for (uint32_t ix = 0; ix < model->need_count; ix++) {
        if (!model->tasks[model->needs[ix].need].satisfied) {
            lacks[model->needs[ix].dependent] = true;
        }
    }
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Take over tier and rank of a task that needs it; whether that changed it. */
static bool inherit(struct model *model, uint32_t task, uint32_t from)
{
    const struct model_task *d = &model->tasks[from];
    struct model_task *t = &model->tasks[task];
    const struct sched_class_spec *spec = &model->classes[d->class_ix];
    if (is_final(d)) {
        return false;
    }
    int64_t rank_ns = d->rank_ns + t->estimate_ns;
    uint32_t blocked_tier = smaller(t->blocked_tier, d->blocked_tier);
    if (!spec->defer) {
        blocked_tier = smaller(blocked_tier, spec->tier);
    }
    bool changed = rank_ns > t->rank_ns || d->tier < t->tier ||
                   blocked_tier != t->blocked_tier;
    t->rank_ns = rank_ns > t->rank_ns ? rank_ns : t->rank_ns;
    t->tier = smaller(t->tier, d->tier);
    t->blocked_tier = blocked_tier;
    return changed;
}

/* A complete task is satisfied unless it lacks a need: whether it was. */
static bool unsatisfy(struct model *model, struct sched_need need)
{
    struct model_task *dependent = &model->tasks[need.dependent];
    bool changed = dependent->satisfied && !model->tasks[need.need].satisfied;
    dependent->satisfied = dependent->satisfied && !changed;
    return changed;
}

/*
 * Work out who is satisfied, and tier and rank, until nothing changes. Most
 * needs were declared before their dependents: the former goes forward, the
 * latter back, and few rounds are enough.
 */
static void model_look(struct model *model)
{
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        struct model_task *t = &model->tasks[ix];
        t->satisfied = is_complete(t);
        t->rank_ns = t->estimate_ns;
        t->tier = model->classes[t->class_ix].tier;
        t->blocked_tier = 255;
    }
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t ix = 0; ix < model->need_count; ix++) {
            changed = unsatisfy(model, model->needs[ix]) || changed;
        }
        for (uint32_t ix = model->need_count; ix-- > 0;) {
            struct sched_need need = model->needs[ix];
            changed = inherit(model, need.need, need.dependent) || changed;
        }
    }
}

static bool blocks_nothing(const struct model *model,
                           const struct model_task *t)
{
    const struct sched_class_spec *spec = &model->classes[t->class_ix];
    return spec->defer && t->tier >= spec->tier && t->blocked_tier > spec->tier;
}

static void become_ready(struct model *model, uint32_t task)
{
    struct model_task *t = &model->tasks[task];
    t->state = TASK_READY;
    t->ready_ns = model->now_ns;
    t->ready_seq = model->event_seq << 24 | task;
}

/* After every event: who became ready, who stopped being it. */
static void settle(struct model *model)
{
    model_look(model);
    bool lacks[MODEL_TASKS];
    find_lacking(model, lacks);
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        struct model_task *t = &model->tasks[ix];
        if (t->state == TASK_READY && lacks[ix]) {
            t->state = TASK_WAITING;
        } else if (t->state == TASK_WAITING && !t->backing_off && !lacks[ix]) {
            become_ready(model, ix);
        }
        if (t->state == TASK_READY && !t->held) {
            t->background = blocks_nothing(model, t);
        }
    }
}

static void advance(struct model *model, int64_t now_ns)
{
    model->now_ns = now_ns;
    model->event_seq++;
    bool changed = false;
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        struct model_task *t = &model->tasks[ix];
        if (t->backing_off && t->until_ns <= now_ns) {
            t->backing_off = false;
            changed = true;
        }
    }
    if (changed) {
        settle(model);
    }
}

/* Skip everything pending behind a task, through what has started too. */
static void skip_behind(struct model *model, uint32_t task)
{
    bool seen[MODEL_TASKS] = {false};
    seen[task] = true;
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t ix = 0; ix < model->need_count; ix++) {
            struct sched_need need = model->needs[ix];
            if (seen[need.need] && !seen[need.dependent]) {
                seen[need.dependent] = true;
                changed = true;
            }
        }
    }
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        struct model_task *t = &model->tasks[ix];
        if (ix != task && seen[ix] && is_pending(t)) {
            t->state = TASK_SKIPPED;
            t->cascaded = true;
            t->backing_off = false;
        }
    }
}

static void put(struct model *model, uint32_t task, enum task_state state)
{
    model->tasks[task].state = state;
    model->tasks[task].backing_off = false;
    model->tasks[task].asking = false;
    bool lets_pass =
        model->tasks[task].failure.optional && state != TASK_CANCELLED;
    if ((state == TASK_SKIPPED || state == TASK_CANCELLED ||
         state == TASK_FAILED) &&
        !lets_pass) {
        skip_behind(model, task);
    }
}

static void end_flight(struct model *model, uint32_t task, bool skip)
{
    struct model_task *t = &model->tasks[task];
    t->ending = true;
    t->to_skip = skip;
    bool all = true;
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        const struct model_task *other = &model->tasks[ix];
        if (in_flight(other) && other->leader == t->leader) {
            all = all && other->ending;
        }
    }
    model->tasks[t->leader].end_due = all;
}

static void cancel_run(struct model *model, uint32_t run)
{
    model->runs[run].cancelled = true;
    model->runs[run].barrier_due = false;
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        struct model_task *t = &model->tasks[ix];
        if (t->run != run) {
            continue;
        }
        if (in_flight(t)) {
            if (!t->ending) {
                end_flight(model, ix, false);
            }
        } else if (is_pending(t) || t->state == TASK_PARKED) {
            t->state = TASK_CANCELLED;
            t->backing_off = false;
            t->asking = false;
        }
    }
}

static void give_up(struct model *model, uint32_t task)
{
    struct model_task *t = &model->tasks[task];
    switch (t->failure.on_failure) {
    case SCHED_PARK:
        t->state = TASK_PARKED;
        return;
    case SCHED_ASK:
        t->state = TASK_PARKED;
        t->asking = true;
        return;
    case SCHED_SKIP:
        put(model, task, TASK_FAILED);
        return;
    case SCHED_ABORT:
        t->state = TASK_FAILED;
        cancel_run(model, t->run);
        return;
    }
}

static void fail(struct model *model, uint32_t task)
{
    struct model_task *t = &model->tasks[task];
    t->tries++;
    if (t->tries > t->failure.retry_max) {
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
        t->state = TASK_PARKED;
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
        } else if (ix != t->rework_to && in_flight(again)) {
            again->stale = true;
        }
    }
}

static void complete(struct model *model, uint32_t task)
{
    struct model_run *run = &model->runs[model->tasks[task].run];
    model->tasks[task].state = TASK_DONE;
    run->completions++;
    if (run->sync_every > 0 && run->completions % run->sync_every == 0) {
        run->barrier_due = true;
    }
}

static bool is_failure(enum sched_outcome outcome)
{
    return outcome == OUTCOME_FAILED || outcome == OUTCOME_LOST;
}

/* The first time in a row it keeps its place, then it backs off, too. */
static void
refuse(struct model *model, uint32_t task, const struct sched_event *event)
{
    struct model_task *t = &model->tasks[task];
    const struct provider *provider = &model->providers[t->provider];
    bool named = event->stop || event->retry_at_ns != SCHED_NEVER;
    t->refusals += named ? 0 : 1;
    t->state = all_satisfied(model, task) ? TASK_READY : TASK_WAITING;
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
        put(model, task, t->to_skip ? TASK_SKIPPED : TASK_CANCELLED);
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
            fail(model, task);
        }
        return;
    case OUTCOME_LOST:
        fail(model, task);
        return;
    case OUTCOME_REFUSED:
        refuse(model, task, event);
        return;
    case OUTCOME_STOPPED:
        /* Keeps its place: ready since when it was, if it still is. */
        t->state = all_satisfied(model, task) ? TASK_READY : TASK_WAITING;
        return;
    case OUTCOME_CHANGES:
        rework(model, task);
        return;
    case OUTCOME_BLOCKED:
        t->state = TASK_PARKED;
        return;
    case OUTCOME_CHECKPOINT:
        if (event->progress) {
            t->checkpoints = 0;
            t->state = TASK_WAITING;
        } else if (t->checkpoints >= t->failure.checkpoint_max) {
            t->state = TASK_PARKED;
        } else {
            t->checkpoints++;
            t->state = TASK_WAITING;
        }
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
            well = well || outcome != OUTCOME_FAILED ||
                   t->failure.rework_on_failure;
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
            if (ix != leader && in_flight(t) && t->leader == leader &&
                t->token == model->tasks[leader].token &&
                (uint32_t)t->started_ns == seq) {
                members[count++] = ix;
            }
        }
    }
    return count;
}

static enum err end_session(struct model *model,
                            const struct sched_event *event)
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

/* Whether a need of the task has ended without being met. */
static bool is_cut_off(const struct model *model, uint32_t task)
{
    for (uint32_t ix = 0; ix < model->need_count; ix++) {
        const struct model_task *need = &model->tasks[model->needs[ix].need];
        if (model->needs[ix].dependent == task && !is_complete(need) &&
            (need->state == TASK_SKIPPED || need->state == TASK_CANCELLED ||
             need->state == TASK_FAILED)) {
            return true;
        }
    }
    return false;
}

/* Bring back what was skipped behind a task that is tried again. */
static void revive_behind(struct model *model, uint32_t task)
{
    bool reached[MODEL_TASKS] = {false};
    reached[task] = true;
    for (uint32_t round = 0; round <= model->task_count; round++) {
        for (uint32_t ix = 0; ix < model->need_count; ix++) {
            uint32_t to = model->needs[ix].dependent;
            struct model_task *t = &model->tasks[to];
            if (!reached[model->needs[ix].need]) {
                continue;
            }
            if (t->cascaded) {
                if (is_cut_off(model, to)) {
                    continue;
                }
                t->cascaded = false;
                t->state = TASK_WAITING;
            }
            reached[to] = true;
        }
    }
}

static enum err retry(struct model *model, uint32_t task)
{
    struct model_task *t = &model->tasks[task];
    if (t->backing_off) {
        t->backing_off = false;
        t->refusals = 0;
        return ERR_OK;
    }
    if (t->state != TASK_FAILED && t->state != TASK_PARKED && !t->revoked) {
        return ERR_CONFLICT;
    }
    t->asking = false;
    t->revoked = false;
    t->tries = 0;
    t->reworks = 0;
    t->checkpoints = 0;
    t->state = TASK_WAITING;
    revive_behind(model, task);
    model_cut(model);
    return ERR_OK;
}

static enum err withdraw(struct model *model, uint32_t task, bool skip)
{
    struct model_task *t = &model->tasks[task];
    if (is_final(t) || (in_flight(t) && t->ending)) {
        return ERR_CONFLICT;
    }
    if (in_flight(t)) {
        end_flight(model, task, skip);
    } else {
        put(model, task, skip ? TASK_SKIPPED : TASK_CANCELLED);
    }
    return ERR_OK;
}

static enum err release_task(struct model *model, uint32_t task)
{
    struct model_task *t = &model->tasks[task];
    if (t->revoked) {
        t->revoked = false;
        return ERR_OK;
    }
    if (!t->held) {
        return ERR_CONFLICT;
    }
    t->held = false;
    return ERR_OK;
}

static enum err set_limit(struct model *model, const struct sched_event *event)
{
    /* The test numbers the limits of the model from 0. */
    struct limit_spec *spec = &model->limits[event->limit.v].spec;
    spec->max = event->max;
    spec->percent = event->percent;
    return ERR_OK;
}

static enum err order_task(struct model *model, const struct sched_event *event)
{
    uint32_t task = event->task.v;
    struct model_task *t = &model->tasks[task];
    switch (event->type) {
    case EVENT_HOLD:
        if (is_final(t)) {
            return ERR_CONFLICT;
        }
        t->held = true;
        return ERR_OK;
    case EVENT_RELEASE:
        return release_task(model, task);
    case EVENT_RETRY:
        return retry(model, task);
    case EVENT_SKIP:
        return withdraw(model, task, true);
    case EVENT_CANCEL:
        return withdraw(model, task, false);
    case EVENT_REVOKE:
        if (t->state != TASK_DONE || t->revoked) {
            return ERR_CONFLICT;
        }
        t->revoked = true;
        return ERR_OK;
    case EVENT_TICK:
    case EVENT_STARTED:
    case EVENT_ENDED:
    case EVENT_LIMIT:
    case EVENT_PAUSE:
    case EVENT_RESUME:
    case EVENT_BARRIER_DONE:
    case EVENT_CANCEL_RUN:
    case EVENT_RETRY_RUN:
    case EVENT_DRAIN:
    case EVENT_FILL:
    case EVENT_OPEN:
    case EVENT_REOPEN:
        break;
    }
    return ERR_INVALID;
}

static enum err order_run(struct model *model, const struct sched_event *event)
{
    struct model_run *run = &model->runs[event->run.v];
    if (event->type == EVENT_PAUSE || event->type == EVENT_RESUME) {
        run->paused = event->type == EVENT_PAUSE;
    } else if (event->type == EVENT_CANCEL_RUN) {
        cancel_run(model, event->run.v);
    } else if (event->type == EVENT_BARRIER_DONE) {
        if (!run->barrier_running) {
            return ERR_CONFLICT;
        }
        run->barrier_running = false;
    } else {
        for (uint32_t ix = 0; ix < model->task_count; ix++) {
            const struct model_task *t = &model->tasks[ix];
            if (t->run == event->run.v &&
                (t->state == TASK_FAILED || t->state == TASK_PARKED)) {
                (void)!retry(model, ix);
            }
        }
    }
    return ERR_OK;
}

static enum err report(struct model *model, const struct sched_event *event)
{
    const struct model_task *t = &model->tasks[event->task.v];
    if (!in_flight(t) || t->token != event->token) {
        return ERR_CONFLICT;
    }
    if (event->type == EVENT_ENDED) {
        return end_session(model, event);
    }
    if (t->state != TASK_STARTING) {
        return ERR_CONFLICT;
    }
    provider_accepted(&model->providers[t->provider], event->now_ns);
    uint32_t leader = t->leader;
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        struct model_task *other = &model->tasks[ix];
        if (in_flight(other) && other->leader == leader) {
            other->state = TASK_RUNNING;
        }
    }
    return ERR_OK;
}

enum err model_apply(struct model *model, const struct sched_event *event)
{
    advance(model, event->now_ns);
    enum err err = ERR_OK;
    switch (event->type) {
    case EVENT_TICK:
        break;
    case EVENT_STARTED:
    case EVENT_ENDED:
        err = report(model, event);
        break;
    case EVENT_LIMIT:
        err = set_limit(model, event);
        break;
    case EVENT_DRAIN:
    case EVENT_FILL:
        model->draining = event->type == EVENT_DRAIN;
        break;
    case EVENT_OPEN:
        for (uint32_t ix = 0; ix < model->provider_count; ix++) {
            provider_open(&model->providers[ix], event->now_ns);
        }
        break;
    case EVENT_REOPEN:
        provider_resume(&model->providers[event->provider.v], event->now_ns);
        break;
    case EVENT_PAUSE:
    case EVENT_RESUME:
    case EVENT_BARRIER_DONE:
    case EVENT_CANCEL_RUN:
    case EVENT_RETRY_RUN:
        err = order_run(model, event);
        break;
    case EVENT_HOLD:
    case EVENT_RELEASE:
    case EVENT_RETRY:
    case EVENT_SKIP:
    case EVENT_CANCEL:
    case EVENT_REVOKE:
        err = order_task(model, event);
        break;
    }
    settle(model);
    return err;
}

bool model_is_quiet(const struct model *model, uint32_t run)
{
    const struct model_run *r = &model->runs[run];
    if (r->barrier_running || (r->barrier_due && !model->draining)) {
        return false;
    }
    bool shut = r->paused || model->draining;
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        const struct model_task *t = &model->tasks[ix];
        shut = shut || (t->run == run && t->asking);
    }
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        const struct model_task *t = &model->tasks[ix];
        if (t->run == run &&
            (in_flight(t) || (t->backing_off && !model->draining) ||
             (t->state == TASK_READY && !t->held && !shut &&
              !model->providers[t->provider].kept.stopped))) {
            return false;
        }
    }
    return true;
}
