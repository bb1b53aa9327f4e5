/* SPDX-License-Identifier: MIT */
#include "tests/property/model.h"

bool model_is_background(const struct model *model,
                         const struct model_task *task)
{
    const struct sched_class_spec *spec = &model->classes[task->class_ix];
    return spec->defer && task->tier >= spec->tier &&
           task->blocked_tier > spec->tier;
}

/* Ready, or the first time until when it may not be. */
static void become_ready(struct model *model, uint32_t task)
{
    struct model_task *t = &model->tasks[task];
    if (t->not_before_ns > model->now_ns) {
        t->backing_off = true;
        t->early = true;
        t->until_ns = t->not_before_ns;
        return;
    }
    t->not_before_ns = 0;
    t->state = TASK_READY;
    t->ready_ns = model->now_ns;
    t->ready_seq = model->event_seq << 24 | task;
}

void model_settle(struct model *model)
{
    model_look(model);
    bool lacks[MODEL_TASKS];
    model_find_lacking(model, lacks);
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        struct model_task *t = &model->tasks[ix];
        if (t->state == TASK_READY && lacks[ix]) {
            t->state = TASK_WAITING;
        } else if (t->state == TASK_WAITING && !t->backing_off && !lacks[ix]) {
            become_ready(model, ix);
        }
        if (t->state == TASK_READY && !t->held) {
            t->background = model_is_background(model, t);
        }
    }
}

bool model_is_over(const struct model *model, uint32_t run)
{
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        const struct model_task *t = &model->tasks[ix];
        if (t->run == run && (model_is_pending(t) || model_in_flight(t))) {
            return false;
        }
    }
    return true;
}

static void wake(struct model_task *task)
{
    task->backing_off = false;
    task->snoozed = false;
    task->early = false;
}

static void advance(struct model *model, int64_t now_ns)
{
    model->now_ns = now_ns;
    model->event_seq++;
    bool changed = false;
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        struct model_task *t = &model->tasks[ix];
        if (t->backing_off && t->until_ns <= now_ns) {
            wake(t);
            changed = true;
        }
    }
    if (changed) {
        model_settle(model);
    }
    for (uint32_t ix = 0; ix < model->run_count; ix++) {
        struct model_run *run = &model->runs[ix];
        if (run->deadline_ns != 0 && run->deadline_ns <= now_ns) {
            run->deadline_ns = 0;
            if (!model_is_over(model, ix)) {
                model_stop(model, ix, SCHED_STOPPED_DEADLINE);
            }
        }
    }
}

void model_stop(struct model *model, uint32_t run, enum sched_stop why)
{
    struct model_run *r = &model->runs[run];
    if (r->stopped == SCHED_NOT_STOPPED) {
        r->stopped = why;
        r->stop_due = true;
    }
}

/* Something is tried again that may have stopped the run. */
static void go_on(struct model *model, uint32_t run)
{
    struct model_run *r = &model->runs[run];
    if (r->stopped == SCHED_STOPPED_FAILURE) {
        r->stopped = SCHED_NOT_STOPPED;
        r->stop_due = false;
    }
}

/* Skip everything pending behind a task, through what has started too. */
static void end_flight(struct model *model, uint32_t task, bool skip)
{
    struct model_task *t = &model->tasks[task];
    t->ending = true;
    t->to_skip = skip;
    bool all = true;
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        const struct model_task *other = &model->tasks[ix];
        if (model_in_flight(other) && other->leader == t->leader) {
            all = all && other->ending;
        }
    }
    model->tasks[t->leader].end_due = all;
}

void model_cancel_run(struct model *model, uint32_t run, bool all)
{
    model->runs[run].cancelled = true;
    model->runs[run].barrier_due = false;
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        struct model_task *t = &model->tasks[ix];
        bool runs = model_is_pending(t) || model_in_flight(t);
        if (t->run != run || (t->last && runs && !all)) {
            continue;
        }
        if (model_in_flight(t)) {
            if (!t->ending) {
                end_flight(model, ix, false);
            }
        } else if (model_is_pending(t) || t->state == TASK_PARKED) {
            model_put(t, TASK_CANCELLED);
        }
    }
    model_cut(model);
}

static enum err retry(struct model *model, uint32_t task)
{
    struct model_task *t = &model->tasks[task];
    if (t->backing_off) {
        /* Its time counts on while it lacks something else. */
        bool lifted = t->early && !model_lacks(model, task);
        t->not_before_ns = lifted ? 0 : t->not_before_ns;
        wake(t);
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
    go_on(model, t->run);
    model_revive(model);
    model_cut(model);
    return ERR_OK;
}

/* Run a task that is done once more, and all behind it. */
static enum err rerun(struct model *model, uint32_t task)
{
    if (model->tasks[task].state != TASK_DONE ||
        model->runs[model->tasks[task].run].cancelled) {
        return ERR_CONFLICT;
    }
    bool again[MODEL_TASKS] = {false};
    again[task] = true;
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t ix = 0; ix < model->need_count; ix++) {
            struct sched_need need = model->needs[ix];
            if (again[need.need] && !again[need.dependent]) {
                again[need.dependent] = true;
                changed = true;
            }
        }
    }
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        struct model_task *t = &model->tasks[ix];
        if (again[ix] && model_in_flight(t)) {
            t->stale = true;
            model_disapprove(t);
        } else if (again[ix] &&
                   (t->state == TASK_DONE || t->state == TASK_FAILED ||
                    t->state == TASK_PARKED)) {
            model_restart(t);
        }
    }
    go_on(model, model->tasks[task].run);
    model_revive(model);
    model_cut(model);
    return ERR_OK;
}

static enum err withdraw(struct model *model, uint32_t task, bool skip)
{
    struct model_task *t = &model->tasks[task];
    if (model_is_final(t) || (model_in_flight(t) && t->ending)) {
        return ERR_CONFLICT;
    }
    if (model_in_flight(t)) {
        end_flight(model, task, skip);
    } else {
        model_put(t, skip ? TASK_SKIPPED : TASK_CANCELLED);
        model_cut(model);
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
    if (!t->held || t->unapproved) {
        return ERR_CONFLICT;
    }
    t->held = false;
    return ERR_OK;
}

static enum err approve_task(struct model_task *t)
{
    if (t->state != TASK_READY || !t->unapproved) {
        return ERR_CONFLICT;
    }
    t->unapproved = false;
    t->held = false;
    return ERR_OK;
}

/* Its own priority, or before all others. */
static enum err prefer_task(struct model_task *t,
                            const struct sched_event *event)
{
    if (model_is_final(t)) {
        return ERR_CONFLICT;
    }
    t->first = t->first || event->type == EVENT_FIRST;
    t->priority = event->type == EVENT_FIRST ? 0 : (uint32_t)event->max;
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
        if (model_is_final(t)) {
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
    case EVENT_APPROVE:
        return approve_task(t);
    case EVENT_RERUN:
        return rerun(model, task);
    case EVENT_PRIORITY:
    case EVENT_FIRST:
        return prefer_task(t, event);
    case EVENT_TICK:
    case EVENT_STARTED:
    case EVENT_ENDED:
    case EVENT_LIMIT:
    case EVENT_AHEAD:
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
        if (event->type == EVENT_RESUME) {
            run->stopped = SCHED_NOT_STOPPED;
            run->stop_due = false;
        }
    } else if (event->type == EVENT_CANCEL_RUN) {
        model_cancel_run(model, event->run.v, run->cancelled);
    } else if (event->type == EVENT_BARRIER_DONE) {
        if (!run->barrier_running) {
            return ERR_CONFLICT;
        }
        run->barrier_running = false;
    } else {
        go_on(model, event->run.v);
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
    if (!model_in_flight(t) || t->token != event->token) {
        return ERR_CONFLICT;
    }
    if (event->type == EVENT_ENDED) {
        return model_end_session(model, event);
    }
    if (t->state != TASK_STARTING) {
        return ERR_CONFLICT;
    }
    provider_accepted(&model->providers[t->provider], event->now_ns);
    uint32_t leader = t->leader;
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        struct model_task *other = &model->tasks[ix];
        if (model_in_flight(other) && other->leader == leader) {
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
    case EVENT_AHEAD:
        model->limits[event->limit.v].ahead = event->ahead;
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
    case EVENT_APPROVE:
    case EVENT_RERUN:
    case EVENT_PRIORITY:
    case EVENT_FIRST:
        err = order_task(model, event);
        break;
    }
    model_settle(model);
    return err;
}

bool model_is_closed(const struct model *model, const struct model_task *task)
{
    return task->guard != 0 &&
           model->tasks[task->guard - 1].state == TASK_PARKED;
}

/* Whether a task will start, or be ready, without anybody's doing. */
static bool
will_move(const struct model *model, const struct model_task *t, bool shut)
{
    if (model->runs[t->run].stopped != SCHED_NOT_STOPPED && !t->last) {
        return false;
    }
    return (t->backing_off && !model->draining) ||
           (t->state == TASK_READY && !t->held && !shut &&
            !model_is_closed(model, t) &&
            !model->providers[t->provider].kept.stopped);
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
            (model_in_flight(t) || will_move(model, t, shut))) {
            return false;
        }
    }
    return true;
}
