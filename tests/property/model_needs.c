/* SPDX-License-Identifier: MIT */
/* What a task means for those that need it: let them go, or cut them off. */
#include "tests/property/model.h"

bool model_is_complete(const struct model_task *task)
{
    if (task->state == TASK_DONE) {
        return !task->revoked;
    }
    return task->failure.optional && !task->cascaded &&
           (task->state == TASK_SKIPPED || task->state == TASK_FAILED);
}

static bool has_given_up(const struct model_task *task)
{
    return task->state == TASK_FAILED ||
           (task->state == TASK_PARKED && task->parked != SCHED_PARKED_BLOCKED);
}

bool model_is_open(const struct model *model, struct sched_need need)
{
    const struct model_task *n = &model->tasks[need.need];
    switch (need.on) {
    case SCHED_ON_DONE:
        return !n->satisfied;
    case SCHED_ON_FAILED:
        return !has_given_up(n);
    case SCHED_ON_ANY:
        return !has_given_up(n) && !model_is_final(n);
    }
    return true;
}

/* Whether it will never be met, by those who are dead ends. */
static bool
is_dead(const struct model *model, struct sched_need need, const bool *dead)
{
    return (need.on == SCHED_ON_DONE && dead[need.need]) ||
           (need.on == SCHED_ON_FAILED &&
            model_is_final(&model->tasks[need.need]));
}

void model_find_lacking(const struct model *model, bool *lacks)
{
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        const struct model_task *t = &model->tasks[ix];
        lacks[ix] = t->last && !model_has_rested(model, t);
    }
    for (uint32_t ix = 0; ix < model->need_count; ix++) {
        if (model_is_open(model, model->needs[ix])) {
            lacks[model->needs[ix].dependent] = true;
        }
    }
}

bool model_lacks(const struct model *model, uint32_t task)
{
    bool lacks[MODEL_TASKS];
    model_find_lacking(model, lacks);
    return lacks[task];
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Take over tier, priority and rank of a task that needs it; whether that
 * changed it. */
static bool inherit(struct model *model, uint32_t task, uint32_t from)
{
    const struct model_task *d = &model->tasks[from];
    struct model_task *t = &model->tasks[task];
    const struct sched_class_spec *spec = &model->classes[d->class_ix];
    if (model_is_final(d)) {
        return false;
    }
    int64_t rank_ns = d->rank_ns + t->estimate_ns;
    uint32_t blocked_tier = smaller(t->blocked_tier, d->blocked_tier);
    if (!spec->defer) {
        blocked_tier = smaller(blocked_tier, spec->tier);
    }
    bool changed = rank_ns > t->rank_ns || d->tier < t->tier ||
                   d->urgency < t->urgency || blocked_tier != t->blocked_tier;
    t->rank_ns = rank_ns > t->rank_ns ? rank_ns : t->rank_ns;
    t->tier = smaller(t->tier, d->tier);
    t->urgency = smaller(t->urgency, d->urgency);
    t->blocked_tier = blocked_tier;
    return changed;
}

/* A complete task is satisfied unless it lacks a need: whether it was. */
static bool unsatisfy(struct model *model, struct sched_need need)
{
    struct model_task *dependent = &model->tasks[need.dependent];
    bool changed = need.on == SCHED_ON_DONE && dependent->satisfied &&
                   !model->tasks[need.need].satisfied;
    dependent->satisfied = dependent->satisfied && !changed;
    return changed;
}

/*
 * Work out who is satisfied, and tier and rank, until nothing changes. Most
 * needs were declared before their dependents: the former goes forward, the
 * latter back, and few rounds are enough.
 */
void model_look(struct model *model)
{
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        struct model_task *t = &model->tasks[ix];
        t->satisfied = model_is_complete(t);
        t->rank_ns = t->estimate_ns;
        t->tier = model->classes[t->class_ix].tier;
        t->blocked_tier = 255;
        t->urgency = t->priority;
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

void model_find_dead(const struct model *model, bool *dead)
{
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        const struct model_task *t = &model->tasks[ix];
        bool bad = t->state == TASK_SKIPPED || t->state == TASK_CANCELLED ||
                   t->state == TASK_FAILED;
        dead[ix] = bad && !model_is_complete(t);
    }
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t ix = 0; ix < model->need_count; ix++) {
            struct sched_need need = model->needs[ix];
            if (need.on == SCHED_ON_DONE && dead[need.need] &&
                !dead[need.dependent] &&
                !model_is_pending(&model->tasks[need.dependent])) {
                dead[need.dependent] = true;
                changed = true;
            }
        }
    }
}

void model_put(struct model_task *task, enum task_state state)
{
    task->state = state;
    task->backing_off = false;
    task->snoozed = false;
    task->early = false;
    task->asking = false;
    task->first = task->first && !model_is_final(task);
}

void model_cut(struct model *model)
{
    bool dead[MODEL_TASKS];
    bool changed = true;
    while (changed) {
        changed = false;
        model_find_dead(model, dead);
        for (uint32_t ix = 0; ix < model->need_count; ix++) {
            struct model_task *t = &model->tasks[model->needs[ix].dependent];
            if (model_is_pending(t) && is_dead(model, model->needs[ix], dead)) {
                model_put(t, TASK_SKIPPED);
                t->cascaded = true;
                changed = true;
            }
        }
    }
}

void model_revive(struct model *model)
{
    bool changed = true;
    while (changed) {
        changed = false;
        bool dead[MODEL_TASKS];
        bool stays[MODEL_TASKS] = {false};
        model_find_dead(model, dead);
        for (uint32_t ix = 0; ix < model->need_count; ix++) {
            struct sched_need need = model->needs[ix];
            if (is_dead(model, need, dead)) {
                stays[need.dependent] = true;
            }
        }
        for (uint32_t ix = 0; ix < model->task_count; ix++) {
            struct model_task *t = &model->tasks[ix];
            if (t->cascaded && !stays[ix]) {
                t->cascaded = false;
                t->state = TASK_WAITING;
                model_disapprove(t);
                changed = true;
            }
        }
    }
}

void model_disapprove(struct model_task *task)
{
    if (task->approve) {
        task->unapproved = true;
        task->held = true;
    }
}

void model_restart(struct model_task *task)
{
    model_put(task, TASK_WAITING);
    task->revoked = false;
    task->tries = 0;
    task->reworks = 0;
    task->checkpoints = 0;
    model_disapprove(task);
}
