/* SPDX-License-Identifier: MIT */
/*
 * Who comes last: a scope, and when all of it has come to rest.
 *
 * The last tasks of a scope wait for its members: its other tasks, and all
 * tasks of the scopes in it. A scope is 1 + its index, the run itself 0.
 */
#include "tests/property/model.h"

bool model_has_rested(const struct model *model, const struct model_task *task)
{
    return task->scope == 0 ? model->runs[task->run].rested
                            : model->scopes[task->scope - 1].rested;
}

/* Whether a task in `inner`, maybe a last one of that, is a member of
 * `scope`. */
static bool is_member(const struct model *model,
                      const struct sched_addition *addition,
                      uint32_t inner,
                      bool last,
                      uint32_t scope)
{
    if (inner == scope) {
        return !last;
    }
    while (inner != 0 && inner != scope) {
        inner = inner <= model->scope_count
                    ? model->scopes[inner - 1].parent
                    : addition->scopes[inner - 1 - model->scope_count].parent;
    }
    return inner == scope;
}

bool model_needs_last(const struct model *model,
                      const struct sched_addition *addition,
                      struct sched_need need)
{
    uint32_t of[] = {need.dependent, need.need};
    uint32_t scope[2];
    bool last[2];
    for (uint32_t ix = 0; ix < 2; ix++) {
        if (of[ix] < model->task_count) {
            scope[ix] = model->tasks[of[ix]].scope;
            last[ix] = model->tasks[of[ix]].last;
        } else {
            const struct sched_task_spec *spec =
                &addition->tasks[of[ix] - model->task_count];
            scope[ix] = spec->scope;
            last[ix] = spec->last;
        }
    }
    return last[1] && is_member(model, addition, scope[0], last[0], scope[1]);
}

static bool is_blocker(const struct model_task *t)
{
    return t->state == TASK_PARKED && t->parked != SCHED_PARKED_BLOCKED &&
           !t->asking;
}

/* Which tasks are behind a blocker among the members, over whatever tasks. */
static void
find_behind(const struct model *model, const bool *member, bool *behind)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t ix = 0; ix < model->need_count; ix++) {
            struct sched_need need = model->needs[ix];
            const struct model_task *n = &model->tasks[need.need];
            bool passes = need.on == SCHED_ON_DONE || n->state == TASK_WAITING;
            bool blocks =
                is_blocker(n) && member[need.need] && need.on == SCHED_ON_DONE;
            if (!behind[need.dependent] &&
                (blocks || (behind[need.need] && passes))) {
                behind[need.dependent] = true;
                changed = true;
            }
        }
    }
}

/* Whether a member has not come to rest. */
static bool
is_busy(const struct model *model, const struct model_task *t, bool behind)
{
    if (model->runs[t->run].stopped != SCHED_NOT_STOPPED) {
        return model_in_flight(t) ||
               (t->last && (t->state == TASK_READY || t->backing_off));
    }
    switch (t->state) {
    case TASK_WAITING:
        /* The last tasks of a scope within wait for its members. */
        return t->backing_off ||
               !(behind || (t->last && !model_has_rested(model, t)));
    case TASK_READY:
    case TASK_STARTING:
    case TASK_RUNNING:
        return true;
    case TASK_DONE:
        return t->revoked;
    case TASK_PARKED:
        return !is_blocker(t);
    case TASK_FAILED:
    case TASK_SKIPPED:
    case TASK_CANCELLED:
        return false;
    }
    return true;
}

static bool rests(const struct model *model, uint32_t run, uint32_t scope)
{
    bool member[MODEL_TASKS];
    bool behind[MODEL_TASKS] = {false};
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        const struct model_task *t = &model->tasks[ix];
        member[ix] =
            t->run == run && is_member(model, NULL, t->scope, t->last, scope);
    }
    find_behind(model, member, behind);
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        if (member[ix] && is_busy(model, &model->tasks[ix], behind[ix])) {
            return false;
        }
    }
    return true;
}

/* Let the last tasks of a scope wait, or begin: anew, if they are over; whether
 * that changed anything. */
static bool look_at(struct model *model, uint32_t run, uint32_t scope)
{
    bool *rested = scope == 0 ? &model->runs[run].rested
                              : &model->scopes[scope - 1].rested;
    bool now = rests(model, run, scope);
    if (now == *rested) {
        return false;
    }
    *rested = now;
    for (uint32_t ix = 0; now && ix < model->task_count; ix++) {
        struct model_task *t = &model->tasks[ix];
        if (t->last && t->run == run && t->scope == scope &&
            (t->state == TASK_DONE || t->state == TASK_FAILED ||
             t->state == TASK_PARKED || t->cascaded)) {
            t->cascaded = false;
            model_restart(t);
        }
    }
    model_revive(model);
    model_cut(model);
    model_settle(model);
    return true;
}

/* One look at all scopes, inner ones first; whether anything changed. */
static bool look_once(struct model *model)
{
    bool changed = false;
    bool with_last[MODEL_SCOPES + 1][MODEL_RUNS] = {{false}};
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        const struct model_task *t = &model->tasks[ix];
        with_last[t->scope][t->run] = with_last[t->scope][t->run] || t->last;
    }
    /* A scope has a greater number than the one that it is in. */
    for (uint32_t scope = model->scope_count; scope > 0; scope--) {
        uint32_t run = model->scopes[scope - 1].run;
        if (with_last[scope][run]) {
            changed = look_at(model, run, scope) || changed;
        }
    }
    for (uint32_t run = 0; run < model->run_count; run++) {
        if (with_last[0][run]) {
            changed = look_at(model, run, 0) || changed;
        }
    }
    return changed;
}

void model_rest(struct model *model)
{
    /* What begins anew may bring back tasks of a scope that had come to rest.
     * Not for ever: then it is not over any more. */
    while (look_once(model)) {
    }
}
