/* SPDX-License-Identifier: MIT */
/*
 * Memory of lookahead: allocated here when a run or work is added, so that
 * searching and following allocate nothing.
 */
#include "base/invariant.h"
#include "base/mem.h"
#include "core/lookahead/ctx.h"

void lookahead_model_reserve(struct lookahead_model *model,
                             uint32_t tasks,
                             uint32_t edges,
                             uint32_t busy)
{
    if (tasks > model->capacity) {
        model->capacity = tasks;
        MEM_RESIZE(model->task, tasks);
        MEM_RESIZE(model->length_ns, tasks);
        MEM_RESIZE(model->release_ns, tasks);
        MEM_RESIZE(model->tail_ns, tasks);
        MEM_RESIZE(model->units, (size_t)tasks * LOOKAHEAD_WORDS_MAX);
        MEM_RESIZE(model->group, tasks);
        MEM_RESIZE(model->first_need, (size_t)tasks + 1);
        MEM_RESIZE(model->first_dependent, (size_t)tasks + 2);
    }
    if (edges > model->edge_capacity) {
        model->edge_capacity = edges;
        MEM_RESIZE(model->needs, edges);
        MEM_RESIZE(model->dependents, edges);
    }
    if (busy > model->busy_capacity) {
        model->busy_capacity = busy;
        MEM_RESIZE(model->busy, busy);
    }
    INVARIANT(model->count <= model->capacity);
    INVARIANT(model->busy_count <= model->busy_capacity);
}

void lookahead_model_release(struct lookahead_model *model)
{
    mem_free(model->task);
    mem_free(model->length_ns);
    mem_free(model->release_ns);
    mem_free(model->tail_ns);
    mem_free(model->units);
    mem_free(model->group);
    mem_free(model->first_need);
    mem_free(model->needs);
    mem_free(model->first_dependent);
    mem_free(model->dependents);
    mem_free(model->busy);
    *model = (struct lookahead_model){0};
}

void lookahead_sgs_reserve(struct lookahead_sgs *sgs,
                           uint32_t tasks,
                           uint32_t busy)
{
    uint32_t points = 2 * tasks + busy + 2;
    if (points > sgs->point_capacity) {
        sgs->point_capacity = points;
        MEM_RESIZE(sgs->at_ns, points);
        MEM_RESIZE(sgs->free, (size_t)points * LOOKAHEAD_WORDS_MAX);
    }
    if (tasks > sgs->capacity) {
        sgs->capacity = tasks;
        MEM_RESIZE(sgs->list, tasks);
        MEM_RESIZE(sgs->other, tasks);
        MEM_RESIZE(sgs->missing, tasks);
        MEM_RESIZE(sgs->place, tasks);
    }
    if (tasks + busy > sgs->item_capacity) {
        sgs->item_capacity = tasks + busy;
        MEM_RESIZE(sgs->key_ns, tasks + busy);
        MEM_RESIZE(sgs->running, tasks + busy);
    }
}

void lookahead_sgs_release(struct lookahead_sgs *sgs)
{
    mem_free(sgs->at_ns);
    mem_free(sgs->free);
    mem_free(sgs->key_ns);
    mem_free(sgs->list);
    mem_free(sgs->other);
    mem_free(sgs->missing);
    mem_free(sgs->running);
    mem_free(sgs->place);
    *sgs = (struct lookahead_sgs){0};
}

void lookahead_search_reserve(struct lookahead_search *search,
                              uint32_t tasks,
                              uint32_t busy)
{
    lookahead_sgs_reserve(&search->sgs, tasks, busy);
    if (tasks <= search->stride) {
        return;
    }
    search->stride = tasks;
    size_t places = (size_t)tasks * LOOKAHEAD_ELITES;
    if (places > LOOKAHEAD_PLACES) {
        places = LOOKAHEAD_PLACES;
    }
    search->place_count = (uint32_t)places;
    MEM_RESIZE(search->lists, places);
    MEM_RESIZE(search->group_ns, tasks);
    MEM_RESIZE(search->list, tasks);
    MEM_RESIZE(search->eligible, tasks);
    MEM_RESIZE(search->marks, tasks);
    MEM_RESIZE(search->start_ns, tasks);
}

void lookahead_search_release(struct lookahead_search *search)
{
    lookahead_sgs_release(&search->sgs);
    mem_free(search->lists);
    mem_free(search->group_ns);
    mem_free(search->list);
    mem_free(search->eligible);
    mem_free(search->marks);
    mem_free(search->start_ns);
    *search = (struct lookahead_search){0};
}

void lookahead_outline_reserve(struct lookahead_outline *outline,
                               const struct sched *sched)
{
    uint32_t tasks = sched->task_capacity + 1;
    if (tasks > outline->task_capacity) {
        outline->task_capacity = tasks;
        MEM_RESIZE(outline->slot, tasks);
        MEM_RESIZE(outline->release_ns, tasks);
    }
    uint32_t groups = sched->group_capacity + 1;
    if (groups > outline->group_capacity) {
        outline->group_capacity = groups;
        MEM_RESIZE(outline->group, groups);
    }
    uint32_t pools = sched->limits.pool_capacity + 1;
    if (pools > outline->pool_capacity) {
        outline->pool_capacity = pools;
        MEM_RESIZE(outline->pools, pools);
    }
}

void lookahead_outline_release(struct lookahead_outline *outline)
{
    mem_free(outline->slot);
    mem_free(outline->release_ns);
    mem_free(outline->group);
    mem_free(outline->pools);
    *outline = (struct lookahead_outline){0};
}

static void reserve_queues(struct sched *own, const struct sched *real)
{
    if (real->queue_capacity > own->queue_capacity) {
        MEM_RESIZE(own->queues, real->queue_capacity);
    }
    for (uint32_t ix = 0; ix < real->queue_count; ix++) {
        if (ix >= own->queue_count) {
            own->queues[ix].block = (struct ready_queue){0};
        }
        ready_queue_reserve_like(&own->queues[ix].block,
                                 &real->queues[ix].block);
    }
}

void lookahead_rollout_reserve(struct lookahead_rollout *rollout,
                               const struct sched *real)
{
    struct sched *own = &rollout->sched;
    INVARIANT(own->queue_count <= real->queue_count);
    reserve_queues(own, real);
#define PART(array, count, capacity)                                           \
    MEM_RESIZE(own->array, (size_t)real->capacity + 1);
    ROLLOUT_COPIED(PART)
#undef PART
#define PART(array)                                                            \
    if (real->array != NULL) {                                                 \
        MEM_RESIZE(own->array, (size_t)real->task_capacity + 1);               \
    }
    ROLLOUT_OPTIONAL(PART)
#undef PART
#define PART(array) MEM_RESIZE(own->array, (size_t)real->task_capacity + 1);
    ROLLOUT_SCRATCH(PART)
#undef PART
    own->queue_capacity = real->queue_capacity;
    own->queue_count = real->queue_count;
    uint32_t tasks = real->task_capacity + 1;
    struct lookahead *look = &rollout->lookahead;
    MEM_RESIZE(look->place, tasks);
    MEM_RESIZE(look->start_ns, tasks);
    MEM_RESIZE(look->plans, real->lookahead->plan_count);
    MEM_RESIZE(rollout->started, tasks);
    MEM_RESIZE(rollout->start_ns, tasks);
    MEM_RESIZE(rollout->endings, tasks);
    MEM_RESIZE(rollout->sequence, tasks);
    rollout->capacity = tasks;
    rollout->group_capacity = real->group_capacity + 1;
    MEM_RESIZE(rollout->group_end_ns, rollout->group_capacity);
}

void lookahead_rollout_release(struct lookahead_rollout *rollout)
{
    struct sched *own = &rollout->sched;
    for (uint32_t ix = 0; ix < own->queue_count; ix++) {
        ready_queue_release(&own->queues[ix].block);
    }
    mem_free(own->queues);
#define PART(array, count, capacity) mem_free(own->array);
    ROLLOUT_COPIED(PART)
#undef PART
#define PART(array) mem_free(own->array);
    ROLLOUT_OPTIONAL(PART)
    ROLLOUT_SCRATCH(PART)
#undef PART
    mem_free(rollout->lookahead.place);
    mem_free(rollout->lookahead.start_ns);
    mem_free(rollout->lookahead.plans);
    mem_free(rollout->started);
    mem_free(rollout->start_ns);
    mem_free(rollout->endings);
    mem_free(rollout->sequence);
    mem_free(rollout->group_end_ns);
    *rollout = (struct lookahead_rollout){0};
}

size_t lookahead_rollout_bytes(const struct lookahead_rollout *rollout)
{
    const struct sched *own = &rollout->sched;
    size_t bytes =
        rollout->capacity * (3 * sizeof(uint32_t) + 2 * sizeof(int64_t) +
                             sizeof(rollout->endings[0])) +
        rollout->group_capacity * sizeof(int64_t);
#define PART(array, count, capacity)                                           \
    bytes += ((size_t)own->capacity + 1) * sizeof(own->array[0]);
    ROLLOUT_COPIED(PART)
#undef PART
#define PART(array)                                                            \
    bytes += own->array != NULL ? rollout->capacity * sizeof(own->array[0]) : 0;
    ROLLOUT_OPTIONAL(PART)
#undef PART
    for (uint32_t ix = 0; ix < own->queue_count; ix++) {
        bytes += ready_queue_bytes(&own->queues[ix].block);
    }
    return bytes;
}

void lookahead_add_run(struct sched *sched, uint32_t schedules)
{
    uint32_t run = sched->run_count - 1;
    struct lookahead *look = sched->lookahead;
    if (look == NULL) {
        look = mem_zalloc(1, sizeof(*look));
        look->ctx = mem_zalloc(1, sizeof(*look->ctx));
        look->ctx->run = ID_NONE;
        look->wake_ns = SCHED_NEVER;
        sched->lookahead = look;
    }
    MEM_RESIZE(look->plans, (size_t)run + 1);
    INVARIANT(look->plan_count <= run);
    while (look->plan_count <= run) {
        look->plans[look->plan_count++] =
            (struct lookahead_plan){.pool = ID_NONE};
    }
    look->plans[run] = (struct lookahead_plan){
        .pool = limits_add_pool(&sched->limits, LIMIT_LOOKAHEAD_POOL, run),
        .schedules = schedules,
        .awaited = ID_NONE,
        .scratch = true,
        .orders = true,
        .holds = true,
    };
    INVARIANT(look->plan_count == sched->run_count);
}

static void reserve_plans(struct sched *sched)
{
    struct lookahead *look = sched->lookahead;
    for (uint32_t run = 0; run < look->plan_count; run++) {
        struct lookahead_plan *plan = &look->plans[run];
        INVARIANT(plan->count <= plan->capacity);
        uint32_t tasks = 0;
        for (uint32_t state = 0; state < TASK_STATE_COUNT; state++) {
            tasks += sched->runs[run].counts[state];
        }
        if (plan->pool != ID_NONE && tasks > plan->capacity) {
            plan->capacity = tasks;
            MEM_RESIZE(plan->order, tasks);
            MEM_RESIZE(plan->draft, tasks);
        }
    }
}

void lookahead_reserve(struct sched *sched)
{
    struct lookahead *look = sched->lookahead;
    if (look == NULL) {
        return;
    }
    if (sched->task_capacity + 1 > look->capacity) {
        uint32_t old = look->capacity;
        look->capacity = sched->task_capacity + 1;
        MEM_RESIZE(look->place, look->capacity);
        MEM_RESIZE(look->start_ns, look->capacity);
        for (uint32_t ix = old; ix < look->capacity; ix++) {
            look->place[ix] = ID_NONE;
            look->start_ns[ix] = SCHED_NEVER;
        }
    }
    INVARIANT(look->capacity > sched->task_count);
    reserve_plans(sched);
    if (sched->task_count > LOOKAHEAD_CTX_MAX) {
        return;
    }
    struct lookahead_ctx *ctx = look->ctx;
    uint32_t tasks = sched->task_capacity < LOOKAHEAD_TASKS_MAX
                         ? sched->task_capacity + 1
                         : LOOKAHEAD_TASKS_MAX;
    lookahead_outline_reserve(&ctx->outline, sched);
    lookahead_model_reserve(&ctx->model,
                            tasks,
                            sched->graph.edge_capacity + 1,
                            sched->task_capacity + 1);
    lookahead_search_reserve(&ctx->search, tasks, sched->task_capacity + 1);
    lookahead_rollout_reserve(&ctx->rollout, sched);
    if (tasks > ctx->capacity) {
        ctx->capacity = tasks;
        MEM_RESIZE(ctx->order, tasks);
        for (uint32_t ix = 0; ix < LOOKAHEAD_SEEDS; ix++) {
            MEM_RESIZE(ctx->seeds[ix].list, tasks);
        }
    }
    INVARIANT(ctx->rollout.capacity > sched->task_count);
}

void lookahead_free(struct lookahead *look)
{
    if (look == NULL) {
        return;
    }
    struct lookahead_ctx *ctx = look->ctx;
    lookahead_outline_release(&ctx->outline);
    lookahead_model_release(&ctx->model);
    lookahead_search_release(&ctx->search);
    lookahead_rollout_release(&ctx->rollout);
    mem_free(ctx->order);
    for (uint32_t ix = 0; ix < LOOKAHEAD_SEEDS; ix++) {
        mem_free(ctx->seeds[ix].list);
    }
    mem_free(ctx);
    for (uint32_t run = 0; run < look->plan_count; run++) {
        mem_free(look->plans[run].order);
        mem_free(look->plans[run].draft);
    }
    mem_free(look->plans);
    mem_free(look->place);
    mem_free(look->start_ns);
    mem_free(look);
}

size_t lookahead_bytes(const struct lookahead *look)
{
    if (look == NULL) {
        return 0;
    }
    return sizeof(*look) + sizeof(*look->ctx) +
           look->capacity * (3 * sizeof(uint32_t) + sizeof(int64_t)) +
           lookahead_rollout_bytes(&look->ctx->rollout);
}
