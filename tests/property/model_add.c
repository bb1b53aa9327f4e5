/* SPDX-License-Identifier: MIT */
/* Adding to the model: what is needed of which limit, and what is refused. */
#include "tests/property/model.h"

#include <string.h>

void model_add_provider(struct model *model, const struct provider_spec *spec)
{
    model->providers[model->provider_count++] = (struct provider){
        .spec = *spec,
        .kept = {.shut_until_ns = INT64_MIN, .probe_at_ns = INT64_MIN},
    };
}

void model_add_class(struct model *model, const struct sched_class_spec *spec)
{
    model->classes[model->class_count++] = *spec;
}

void model_add_run(struct model *model, const struct sched_run_spec *spec)
{
    uint32_t run = model->run_count++;
    uint32_t first = model->limit_count;
    model->runs[run] = (struct model_run){
        .policy = spec->policy,
        .goal = spec->goal,
        .first_limit = first,
        .sync_every = spec->sync_every,
        .sync_drain = spec->sync_drain,
        .deadline_ns = spec->deadline_ns,
    };
    for (uint32_t ix = 0; ix < spec->limit_count; ix++) {
        struct model_limit *limit = &model->limits[model->limit_count++];
        *limit = (struct model_limit){.spec = spec->limits[ix], .run = run};
        limit->spec.base += first;
        for (uint32_t n = 0; n < limit->spec.where_count; n++) {
            limit->where[n] = limit->spec.where[n];
        }
    }
}

static uint32_t
value_of(const struct attribute *attributes, uint32_t count, uint32_t name)
{
    for (uint32_t ix = 0; ix < count; ix++) {
        if (attributes[ix].name == name) {
            return attributes[ix].value;
        }
    }
    return ID_NONE;
}

/* The pools that limits of one kind ask for, with these attributes. */
static uint32_t pools_of(const struct model *model,
                         uint32_t run,
                         bool hold_group,
                         const struct sched_task_spec *task,
                         struct model_pool *pools)
{
    uint32_t count = 0;
    bool defer = !hold_group && model->classes[task->class_id.v].defer;
    for (uint32_t ix = 0; ix < model->limit_count; ix++) {
        const struct model_limit *limit = &model->limits[ix];
        uint32_t units = 0;
        for (uint32_t n = 0; n < task->use_count; n++) {
            units = task->uses[n].limit.v == ix ? task->uses[n].units : units;
        }
        if (limit->run != run || limit->spec.hold_group != hold_group ||
            (limit->spec.resource && units == 0)) {
            continue;
        }
        bool match = true;
        for (uint32_t n = 0; n < limit->spec.where_count; n++) {
            match = match &&
                    value_of(task->attributes,
                             task->attribute_count,
                             limit->where[n].name) == limit->where[n].value;
        }
        uint32_t key = ID_NONE;
        if (limit->spec.per != ID_NONE) {
            key = value_of(task->attributes,
                           task->attribute_count,
                           limit->spec.per);
            match = match && key != ID_NONE;
        }
        if (match) {
            uint32_t share = limit->spec.share;
            pools[count++] = (struct model_pool){
                .limit = ix,
                .share = share != ID_NONE ? 1000 + share : ix,
                .key = key,
                .units = hold_group || units == 0 ? 1 : units,
                .background = defer && limit->spec.background ? 1 : 0,
            };
        }
    }
    return count;
}

static uint32_t
add_group(struct model *model, uint32_t run, const struct sched_task_spec *like)
{
    uint32_t ix = model->group_count++;
    model->groups[ix] = (struct model_group){.run = run};
    model->groups[ix].pool_count =
        pools_of(model, run, true, like, model->groups[ix].pools);
    return ix;
}

static bool same_pools(const struct model_pool *a,
                       uint32_t a_count,
                       const struct model_pool *b,
                       uint32_t b_count)
{
    return a_count == b_count && memcmp(a, b, a_count * sizeof(a[0])) == 0;
}

/* Whether two tasks have equal needs in every respect. */
static bool same_shape(const struct model *model,
                       const struct model_task *a,
                       const struct model_task *b)
{
    const struct model_group *group_a = &model->groups[a->group];
    const struct model_group *group_b = &model->groups[b->group];
    return a->run == b->run && a->class_ix == b->class_ix &&
           a->provider == b->provider && a->batch_key == b->batch_key &&
           a->guard == b->guard && a->last == b->last &&
           same_pools(a->pools, a->pool_count, b->pools, b->pool_count) &&
           same_pools(group_a->pools,
                      group_a->pool_count,
                      group_b->pools,
                      group_b->pool_count);
}

static void
add_task(struct model *model, uint32_t run, const struct sched_task_spec *spec)
{
    uint32_t group = spec->group;
    if (group == ID_NONE) {
        group = add_group(model, run, spec);
    }
    struct model_task *t = &model->tasks[model->task_count];
    *t = (struct model_task){
        .state = TASK_WAITING,
        .run = run,
        .group = group,
        .class_ix = spec->class_id.v,
        .provider = spec->provider.v,
        .batch_key = spec->batch_key,
        .rework_to = spec->rework_to,
        .guard = spec->guard,
        .priority = spec->priority,
        .scope = spec->scope,
        .last = spec->last,
        .approve = spec->approve,
        .not_before_ns = spec->not_before_ns,
        .failure = spec->failure,
        .estimate_ns = spec->estimate_ns,
        .leader = model->task_count,
    };
    model_disapprove(t);
    t->pool_count = pools_of(model, run, false, spec, t->pools);
    /* The first task of its kind gives the shape its number. */
    t->shape = 0;
    while (t->shape < model->task_count &&
           !same_shape(model, t, &model->tasks[t->shape])) {
        t->shape++;
    }
    model->task_count++;
}

/*
 * Whether there is a way from a task back to itself: tasks whose needs have
 * all gone go, until none goes; what stays is on such a way or behind one.
 */
static bool
has_cycle(const struct sched_need *needs, uint32_t count, uint32_t tasks)
{
    bool gone[MODEL_TASKS * 2] = {false};
    uint32_t left = tasks;
    for (uint32_t before = tasks + 1; left < before;) {
        bool stays[MODEL_TASKS * 2] = {false};
        for (uint32_t ix = 0; ix < count; ix++) {
            if (!gone[needs[ix].need]) {
                stays[needs[ix].dependent] = true;
            }
        }
        before = left;
        left = 0;
        for (uint32_t ix = 0; ix < tasks; ix++) {
            gone[ix] = !stays[ix];
            left += stays[ix] ? 1 : 0;
        }
    }
    return left > 0;
}

static enum err check(const struct model *model,
                      const struct sched_addition *addition)
{
    struct sched_need all[MODEL_NEEDS * 2];
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < model->need_count; ix++) {
        all[count++] = model->needs[ix];
    }
    for (uint32_t ix = 0; ix < addition->need_count; ix++) {
        struct sched_need need = addition->needs[ix];
        uint32_t total = model->task_count + addition->task_count;
        if (need.need >= total || need.dependent >= total) {
            return ERR_INVALID;
        }
        if ((need.need < model->task_count &&
             model->tasks[need.need].run != addition->run.v) ||
            (need.dependent < model->task_count &&
             model->tasks[need.dependent].run != addition->run.v)) {
            return ERR_INVALID;
        }
        if (need.dependent < model->task_count &&
            !model_is_pending(&model->tasks[need.dependent])) {
            return ERR_CONFLICT;
        }
        if (model_needs_last(model, addition, need)) {
            return ERR_INVALID;
        }
        all[count++] = need;
    }
    uint32_t total = model->task_count + addition->task_count;
    return has_cycle(all, count, total) ? ERR_INVALID : ERR_OK;
}

enum err model_add(struct model *model,
                   int64_t now_ns,
                   const struct sched_addition *addition)
{
    /* Time first: what it brings comes before what is added. */
    struct sched_event tick = {.type = EVENT_TICK, .now_ns = now_ns};
    enum err err = model_apply(model, &tick);
    if (err == ERR_OK) {
        err = model->runs[addition->run.v].cancelled ? ERR_CONFLICT
                                                     : check(model, addition);
    }
    if (err != ERR_OK) {
        return err;
    }
    for (uint32_t ix = 0; ix < addition->group_count; ix++) {
        struct sched_task_spec like = {
            .attributes = addition->groups[ix].attributes,
            .attribute_count = addition->groups[ix].attribute_count,
        };
        (void)add_group(model, addition->run.v, &like);
    }
    for (uint32_t ix = 0; ix < addition->scope_count; ix++) {
        model->scopes[model->scope_count++] = (struct model_scope){
            .run = addition->run.v,
            .parent = addition->scopes[ix].parent,
        };
    }
    for (uint32_t ix = 0; ix < addition->task_count; ix++) {
        add_task(model, addition->run.v, &addition->tasks[ix]);
    }
    for (uint32_t ix = 0; ix < addition->need_count; ix++) {
        model->needs[model->need_count++] = addition->needs[ix];
    }
    model_measure(model);
    /* What is added behind a dead end is skipped at once. */
    model_cut(model);
    /* The same input, not another one. */
    model->event_seq--;
    return model_apply(model, &tick);
}
