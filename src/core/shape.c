/* SPDX-License-Identifier: MIT */
/*
 * Shapes of tasks and kinds of groups: which pools they need. Equal ones are
 * shared, so that tasks that fit or do not fit together are in one queue.
 */
#include "base/invariant.h"
#include "base/mem.h"
#include "core/sched_internal.h"

#include <string.h>

/* Maximum pools of one task: limits of its run, its run, its provider and its
 * guard. */
enum { POOLS_MAX = SCHED_LIMITS_MAX + 3 };

/* Return the set of these needs; equal needs share a set. */
static uint32_t
intern_set(struct sched *sched, const struct pool_need *needs, uint32_t count)
{
    uint64_t hash = count;
    for (uint32_t ix = 0; ix < count; ix++) {
        hash =
            idmap_hash(hash, (uint64_t)needs[ix].pool << 32 | needs[ix].units);
    }
    uint32_t first = idmap_get(&sched->sets_by_hash, hash);
    for (uint32_t set = first; set != ID_NONE;
         set = sched->sets[set].next_same_hash) {
        const struct need_set *known = &sched->sets[set];
        if (known->count == count &&
            (count == 0 || memcmp(&sched->needs[known->first],
                                  needs,
                                  count * sizeof(needs[0])) == 0)) {
            return set;
        }
    }
    MEM_GROW(sched->sets, sched->set_count, sched->set_capacity);
    uint32_t set = sched->set_count++;
    sched->sets[set] = (struct need_set){sched->need_count, count, first};
    idmap_put(&sched->sets_by_hash, hash, set);
    for (uint32_t ix = 0; ix < count; ix++) {
        MEM_GROW(sched->needs, sched->need_count, sched->need_capacity);
        sched->needs[sched->need_count++] = needs[ix];
        sched->has_wide = sched->has_wide || needs[ix].units > 1;
    }
    INVARIANT(sched->need_count == sched->sets[set].first + count);
    return set;
}

static uint32_t
add_queue(struct sched *sched, uint32_t lane, uint32_t set, uint32_t and_set)
{
    uint32_t capacity = sched->queue_capacity;
    MEM_GROW(sched->queues, sched->queue_count, sched->queue_capacity);
    if (sched->queue_capacity != capacity) {
        MEM_RESIZE(sched->queue_links, sched->queue_capacity);
    }
    uint32_t ix = sched->queue_count++;
    sched->queues[ix] = (struct queue){
        .sets = {set, and_set},
        .lane = lane,
        .at_pool = ID_NONE,
    };
    pheap_init(&sched->queue_links[ix], 1);
    return ix;
}

/* Return the shape equal to `like`, created with its queues if new. */
static uint32_t
intern_shape(struct sched *sched, struct shape like, uint32_t lane)
{
    uint64_t hash = idmap_hash(like.class_ix, like.provider);
    hash = idmap_hash(hash, (uint64_t)like.run << 32 | like.batch_key);
    hash = idmap_hash(hash, (uint64_t)like.needs << 32 | like.group_needs);
    hash = idmap_hash(hash, like.background_needs);
    uint32_t first = idmap_get(&sched->shapes_by_hash, hash);
    for (uint32_t ix = first; ix != ID_NONE;
         ix = sched->shapes[ix].next_same_hash) {
        const struct shape *shape = &sched->shapes[ix];
        if (shape->class_ix == like.class_ix &&
            shape->provider == like.provider && shape->run == like.run &&
            shape->batch_key == like.batch_key && shape->needs == like.needs &&
            shape->group_needs == like.group_needs &&
            shape->background_needs == like.background_needs) {
            return ix;
        }
    }
    like.open_queue = add_queue(sched, lane, like.needs, ID_NONE);
    like.closed_queue = add_queue(sched, lane, like.needs, like.group_needs);
    sched->queues[like.closed_queue].end = READY_BACK;
    like.background_queue =
        like.background_needs == ID_NONE
            ? ID_NONE
            : add_queue(sched, lane, like.needs, like.background_needs);
    like.next_same_hash = first;
    like.next_of_lane = ID_NONE;
    like.bin_count = 0;
    INVARIANT(like.closed_queue == like.open_queue + 1);
    MEM_GROW(sched->shapes, sched->shape_count, sched->shape_capacity);
    uint32_t ix = sched->shape_count++;
    if (lane != ID_NONE) {
        struct pool *pool = &sched->limits.pools[lane];
        like.next_of_lane = pool->first_shape;
        pool->first_shape = ix;
    }
    sched->shapes[ix] = like;
    idmap_put(&sched->shapes_by_hash, hash, ix);
    return ix;
}

static uint32_t
add_need(struct pool_need *needs, uint32_t count, struct pool_need need)
{
    INVARIANT(count < POOLS_MAX && need.units > 0);
    needs[count] = need;
    return count + 1;
}

static uint32_t units_of(const struct sched_task_spec *spec, uint32_t limit)
{
    for (uint32_t ix = 0; ix < spec->use_count; ix++) {
        if (spec->uses[ix].limit.v == limit) {
            return spec->uses[ix].units;
        }
    }
    return 0;
}

/* Which pools of a group. */
enum group_part { GROUP_ALL, GROUP_LANES, GROUP_ISSUES };

/* Return pools of an open group, and in *lane_out the last of its lanes. */
static uint32_t group_set(struct sched *sched,
                          uint32_t run,
                          const struct sched_group_spec *spec,
                          enum group_part part,
                          uint32_t *lane_out)
{
    struct pool_need needs[POOLS_MAX];
    uint32_t count = 0;
    const struct run *r = &sched->runs[run];
    for (uint32_t n = r->limit_count; n-- > 0;) {
        uint32_t limit = r->first_limit + n;
        uint32_t key = ID_NONE;
        if (!sched->limits.limits[limit].spec.hold_group ||
            !limits_match(&sched->limits,
                          limit,
                          spec->attributes,
                          spec->attribute_count,
                          &key)) {
            continue;
        }
        bool lane = sched->limits.limits[limit].spec.per != ID_NONE;
        struct pool_need need = {limits_pool(&sched->limits, limit, key), 1};
        if (part == GROUP_ALL || lane == (part == GROUP_LANES)) {
            count = add_need(needs, count, need);
            *lane_out = lane ? need.pool : *lane_out;
        }
    }
    return intern_set(sched, needs, count);
}

/* Return whether a limit of the run counts groups. */
static bool holds_groups(const struct sched *sched, const struct run *run)
{
    bool holds = false;
    for (uint32_t n = 0; !holds && n < run->limit_count; n++) {
        holds = sched->limits.limits[run->first_limit + n].spec.hold_group;
    }
    return holds;
}

/* Return the kind of a group, created if new. */
uint32_t shape_kind_of(struct sched *sched,
                       uint32_t run,
                       const struct sched_group_spec *spec)
{
    struct group_kind like = {.run = run, .lane = ID_NONE};
    if (sched->runs[run].kind != ID_NONE) {
        return sched->runs[run].kind;
    }
    like.needs = group_set(sched, run, spec, GROUP_ALL, &like.lane);
    uint64_t hash = idmap_hash(run, like.needs);
    uint32_t first = idmap_get(&sched->kinds_by_hash, hash);
    for (uint32_t ix = first; ix != ID_NONE;
         ix = sched->kinds[ix].next_same_hash) {
        if (sched->kinds[ix].run == run &&
            sched->kinds[ix].needs == like.needs) {
            return ix;
        }
    }
    like.lanes = group_set(sched, run, spec, GROUP_LANES, &like.lane);
    like.issues = group_set(sched, run, spec, GROUP_ISSUES, &like.lane);
    like.next_same_hash = first;
    MEM_GROW(sched->kinds, sched->kind_count, sched->kind_capacity);
    uint32_t ix = sched->kind_count++;
    sched->kinds[ix] = like;
    idmap_put(&sched->kinds_by_hash, hash, ix);
    if (!holds_groups(sched, &sched->runs[run])) {
        sched->runs[run].kind = ix;
    }
    return ix;
}

/* Return the guard of a task, created if new, or ID_NONE. */
static uint32_t guard_of(struct sched *sched,
                         const struct sched_task_spec *spec)
{
    if (spec->guard == 0) {
        return ID_NONE;
    }
    uint32_t task = spec->guard - 1;
    uint32_t ix = 0;
    while (ix < sched->guard_count && sched->guards[ix].task != task) {
        ix++;
    }
    if (ix == sched->guard_count) {
        MEM_EXTEND(sched->guards, ix);
        sched->guards[ix] = (struct guard){
            .task = task,
            .pool = limits_add_pool(&sched->limits, LIMIT_GUARD_POOL, ix),
        };
        sched->guard_count++;
        sched->guards_due = true; /* it may be parked already */
    }
    return ix;
}

/* Add the limits that match a task: those of the background, or the others. */
static uint32_t add_limits(struct sched *sched,
                           const struct run *run,
                           const struct sched_task_spec *spec,
                           bool background,
                           struct pool_need *needs,
                           uint32_t count)
{
    bool defers = sched->classes[spec->class_id.v].defer;
    for (uint32_t n = run->limit_count; n-- > 0;) {
        uint32_t limit = run->first_limit + n;
        uint32_t key = ID_NONE;
        const struct limit_spec *l = &sched->limits.limits[limit].spec;
        bool behind = l->background && defers;
        if (!l->hold_group && !l->resource && behind == background &&
            limits_match(&sched->limits,
                         limit,
                         spec->attributes,
                         spec->attribute_count,
                         &key)) {
            uint32_t units = units_of(spec, limit);
            struct pool_need need = {
                limits_pool(&sched->limits, limit, key),
                units > 0 ? units : 1,
            };
            count = add_need(needs, count, need);
        }
    }
    return count;
}

/*
 * Return the pools of an attempt. The pools of its run, its provider and its
 * guard come first, because a closed pool rules out most tasks; then the limits
 * from last to first, because most tasks share the first ones (the cap): a
 * queue should wait at the most specific pool that lacks units.
 */
static uint32_t task_set(struct sched *sched,
                         uint32_t run,
                         uint32_t guard,
                         const struct sched_task_spec *spec)
{
    struct pool_need needs[POOLS_MAX];
    uint32_t count = 0;
    const struct run *r = &sched->runs[run];
    struct pool_need run_pool = {spec->last ? r->late_pool : r->pool, 1};
    struct pool_need provider_pool = {sched->providers[spec->provider.v].pool,
                                      1};
    count = add_need(needs, count, run_pool);
    count = add_need(needs, count, provider_pool);
    if (guard != ID_NONE) {
        struct pool_need guard_pool = {sched->guards[guard].pool, 1};
        count = add_need(needs, count, guard_pool);
    }
    for (uint32_t ix = 0; ix < spec->use_count; ix++) {
        uint32_t limit = spec->uses[ix].limit.v;
        INVARIANT(limit < sched->limits.limit_count);
        if (sched->limits.limits[limit].spec.resource) {
            struct pool_need need = {
                limits_pool(&sched->limits, limit, ID_NONE),
                spec->uses[ix].units,
            };
            count = add_need(needs, count, need);
        }
    }
    count = add_limits(sched, r, spec, false, needs, count);
    return intern_set(sched, needs, count);
}

/* Return the pools of an attempt in the background, besides those above. */
static uint32_t background_set(struct sched *sched,
                               uint32_t run,
                               const struct sched_task_spec *spec)
{
    struct pool_need needs[POOLS_MAX];
    if (!sched->classes[spec->class_id.v].defer) {
        return ID_NONE;
    }
    uint32_t count = add_limits(sched, &sched->runs[run], spec, true, needs, 0);
    return intern_set(sched, needs, count);
}

/* Return the shape of a task whose group has this kind, created if new. */
uint32_t shape_for(struct sched *sched,
                   const struct sched_task_spec *spec,
                   const struct group_kind *kind)
{
    uint32_t guard = guard_of(sched, spec);
    struct shape like = {
        .class_ix = spec->class_id.v,
        .provider = spec->provider.v,
        .run = kind->run,
        .batch_key = spec->batch_key,
        .needs = task_set(sched, kind->run, guard, spec),
        .guard = guard,
        .group_needs =
            sched->classes[spec->class_id.v].queue ? kind->lanes : kind->needs,
        .background_needs = background_set(sched, kind->run, spec),
    };
    return intern_shape(sched, like, kind->lane);
}
