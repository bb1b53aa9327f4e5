/* SPDX-License-Identifier: MIT */
/*
 * Admission of work. It creates or reserves everything that later passes need:
 * the pools of a task, its shape with its queues, an element in every array. An
 * addition is checked completely before any irreversible change; only the edges
 * are added earlier, and graph_truncate() removes them again.
 */
#include "base/invariant.h"
#include "base/mem.h"
#include "core/lookahead/lookahead.h"
#include "core/sched_internal.h"

#include <string.h>

/* Maximum pools of one task: limits of its run, its run and its provider. */
enum { POOLS_MAX = SCHED_LIMITS_MAX + 2 };

struct provider_id sched_add_provider(struct sched *sched,
                                      const struct provider_spec *spec)
{
    INVARIANT(spec->backoff_ns > 0);
    INVARIANT(spec->circuit_failures == 0 || spec->probe_ns > 0);
    uint32_t ix = sched->provider_count++;
    MEM_RESIZE(sched->providers, sched->provider_count);
    sched->providers[ix] = (struct provider){
        .spec = *spec,
        .pool = limits_add_pool(&sched->limits, LIMIT_PROVIDER_POOL, ix),
        .kept = {.shut_until_ns = INT64_MIN, .probe_at_ns = INT64_MIN},
    };
    return (struct provider_id){ix};
}

struct class_id sched_add_class(struct sched *sched,
                                const struct sched_class_spec *spec)
{
    INVARIANT(spec->max_wait_ns >= 0);
    INVARIANT(spec->tier <= SCHED_TIER_MAX && spec->batch > 0);
    uint32_t ix = sched->class_count++;
    MEM_RESIZE(sched->classes, sched->class_count);
    sched->classes[ix] = *spec;
    if (spec->defer && !sched->has_deferred) {
        /* From now on deferral depends on which task blocks which. */
        sched->has_deferred = true;
        priority_of_new(sched, 0, sched->graph.edge_count, false);
    }
    return (struct class_id){ix};
}

struct run_id sched_add_run(struct sched *sched,
                            const struct sched_run_spec *spec,
                            struct limit_id *first_limit_out)
{
    INVARIANT(spec->policy <= SCHED_LOOKAHEAD);
    INVARIANT(spec->limit_count <= SCHED_LIMITS_MAX);
    uint32_t ix = sched->run_count++;
    MEM_RESIZE(sched->runs, sched->run_count);
    sched->runs[ix] = (struct run){
        .policy = spec->policy,
        .first_limit = sched->limits.limit_count,
        .limit_count = spec->limit_count,
        .sync_every = spec->sync_every,
        .sync_drain = spec->sync_drain,
    };
    first_limit_out->v = sched->limits.limit_count;
    for (uint32_t limit = 0; limit < spec->limit_count; limit++) {
        struct limit_spec copy = spec->limits[limit];
        INVARIANT(copy.base < spec->limit_count);
        copy.base += first_limit_out->v;
        (void)limits_add(&sched->limits, &copy);
    }
    INVARIANT(sched->limits.limit_count ==
              first_limit_out->v + spec->limit_count);
    sched->runs[ix].pool = limits_add_pool(&sched->limits, LIMIT_RUN_POOL, ix);
    if (spec->policy == SCHED_LOOKAHEAD) {
        lookahead_add_run(sched, spec->schedules);
    }
    control_check_run(sched, ix);
    return (struct run_id){ix};
}

struct limit_id sched_add_limit(struct sched *sched,
                                struct run_id run,
                                const struct limit_spec *spec)
{
    INVARIANT(!spec->hold_group && spec->per == ID_NONE);
    INVARIANT(run.v < sched->run_count);
    INVARIANT(spec->resource && spec->percent == 0);
    return (struct limit_id){limits_add(&sched->limits, spec)};
}

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
    }
    INVARIANT(sched->need_count == sched->sets[set].first + count);
    return set;
}

static uint32_t add_queue(struct sched *sched, uint32_t set, uint32_t and_set)
{
    uint32_t capacity = sched->queue_capacity;
    MEM_GROW(sched->queues, sched->queue_count, sched->queue_capacity);
    if (sched->queue_capacity != capacity) {
        MEM_RESIZE(sched->queue_links, sched->queue_capacity);
    }
    uint32_t ix = sched->queue_count++;
    sched->queues[ix] = (struct queue){
        .sets = {set, and_set},
        .at_pool = ID_NONE,
    };
    pheap_init(&sched->queue_links[ix], 1);
    return ix;
}

/* Return the shape equal to `like`, created with its queues if new. */
static uint32_t intern_shape(struct sched *sched, struct shape like)
{
    uint64_t hash = idmap_hash(like.class_ix, like.provider);
    hash = idmap_hash(hash, (uint64_t)like.run << 32 | like.batch_key);
    hash = idmap_hash(hash, (uint64_t)like.needs << 32 | like.group_needs);
    uint32_t first = idmap_get(&sched->shapes_by_hash, hash);
    for (uint32_t ix = first; ix != ID_NONE;
         ix = sched->shapes[ix].next_same_hash) {
        const struct shape *shape = &sched->shapes[ix];
        if (shape->class_ix == like.class_ix &&
            shape->provider == like.provider && shape->run == like.run &&
            shape->batch_key == like.batch_key && shape->needs == like.needs &&
            shape->group_needs == like.group_needs) {
            return ix;
        }
    }
    like.open_queue = add_queue(sched, like.needs, ID_NONE);
    like.closed_queue = add_queue(sched, like.needs, like.group_needs);
    like.next_same_hash = first;
    like.bin_count = 0;
    INVARIANT(like.closed_queue == like.open_queue + 1);
    MEM_GROW(sched->shapes, sched->shape_count, sched->shape_capacity);
    uint32_t ix = sched->shape_count++;
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

/* Return the pools of an open group. */
static uint32_t group_set(struct sched *sched,
                          uint32_t run,
                          const struct attribute *attributes,
                          uint32_t count)
{
    struct pool_need needs[POOLS_MAX];
    uint32_t need_count = 0;
    const struct run *r = &sched->runs[run];
    for (uint32_t n = r->limit_count; n-- > 0;) {
        uint32_t limit = r->first_limit + n;
        uint32_t key = ID_NONE;
        if (sched->limits.limits[limit].spec.hold_group &&
            limits_match(&sched->limits, limit, attributes, count, &key)) {
            struct pool_need need = {
                limits_pool(&sched->limits, limit, key),
                1,
            };
            need_count = add_need(needs, need_count, need);
        }
    }
    return intern_set(sched, needs, need_count);
}

/*
 * Return the pools of an attempt. The pools of its run and its provider come
 * first, because a closed pool rules out most tasks; then the limits from last
 * to first, because most tasks share the first ones (the cap): a queue should
 * wait at the most specific pool that lacks units.
 */
static uint32_t
task_set(struct sched *sched, uint32_t run, const struct sched_task_spec *spec)
{
    struct pool_need needs[POOLS_MAX];
    uint32_t count = 0;
    const struct run *r = &sched->runs[run];
    struct pool_need run_pool = {r->pool, 1};
    struct pool_need provider_pool = {sched->providers[spec->provider.v].pool,
                                      1};
    count = add_need(needs, count, run_pool);
    count = add_need(needs, count, provider_pool);
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
    for (uint32_t n = r->limit_count; n-- > 0;) {
        uint32_t limit = r->first_limit + n;
        uint32_t key = ID_NONE;
        const struct limit_spec *l = &sched->limits.limits[limit].spec;
        if (!l->hold_group && !l->resource &&
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
    return intern_set(sched, needs, count);
}

static bool same_failure(const struct sched_failure_spec *a,
                         const struct sched_failure_spec *b)
{
    return a->retry_max == b->retry_max && a->backoff_ns == b->backoff_ns &&
           a->backoff_ns_max == b->backoff_ns_max &&
           a->checkpoint_max == b->checkpoint_max &&
           a->rework_max == b->rework_max && a->on_failure == b->on_failure &&
           a->optional == b->optional &&
           a->rework_on_failure == b->rework_on_failure;
}

/* Plans have few different failure rules: search the newest first. */
static uint32_t intern_failure(struct sched *sched,
                               const struct sched_failure_spec *spec)
{
    INVARIANT(spec->backoff_ns >= 0);
    INVARIANT(spec->on_failure <= SCHED_ASK);
    enum { LOOK_BACK = 64 };
    for (uint32_t n = 0; n < LOOK_BACK && n < sched->failure_count; n++) {
        uint32_t ix = sched->failure_count - 1 - n;
        if (same_failure(&sched->failures[ix], spec)) {
            return ix;
        }
    }
    MEM_GROW(sched->failures, sched->failure_count, sched->failure_capacity);
    sched->failures[sched->failure_count] = *spec;
    return sched->failure_count++;
}

/* Enlarge every array with one element per task. */
static void reserve_tasks(struct sched *sched, uint32_t total)
{
    if (total <= sched->task_capacity) {
        return;
    }
    uint32_t grown = sched->task_capacity + sched->task_capacity / 2;
    uint32_t capacity = total > grown ? total : grown;
    INVARIANT(total <= SCHED_TASKS_MAX);
    sched->task_capacity = capacity;
    sched->tasks = mem_resize_lines(sched->tasks,
                                    sched->task_count,
                                    capacity,
                                    sizeof(struct task));
    MEM_RESIZE(sched->details, capacity);
    MEM_RESIZE(sched->bin_links, capacity);
    MEM_RESIZE(sched->timer_links, capacity);
    MEM_RESIZE(sched->unmet, capacity);
    MEM_RESIZE(sched->in_flight, capacity);
    MEM_RESIZE(sched->marks, capacity);
    MEM_RESIZE(sched->stack, capacity);
    MEM_RESIZE(sched->list, capacity);
    MEM_RESIZE(sched->tally, capacity);
    MEM_RESIZE(sched->doubts, capacity);
}

static void reserve_groups(struct sched *sched, uint32_t more)
{
    uint32_t total = sched->group_count + more;
    if (total > sched->group_capacity) {
        uint32_t grown = sched->group_capacity + sched->group_capacity / 2;
        sched->group_capacity = total > grown ? total : grown;
        sched->groups = mem_resize_lines(sched->groups,
                                         sched->group_count,
                                         sched->group_capacity,
                                         sizeof(struct group));
    }
    INVARIANT(sched->group_count + more <= sched->group_capacity);
}

/* Return a closed group whose pools follow from its attributes. */
static struct group new_group(struct sched *sched,
                              uint32_t run,
                              const struct attribute *attributes,
                              uint32_t count)
{
    return (struct group){
        .run = run,
        .needs = group_set(sched, run, attributes, count),
        .check_next = ID_NONE,
        .bin = {.next_of_group = ID_NONE, .root = {ID_NONE, ID_NONE}},
    };
}

/* Return the bin of a group for a shape, created if new. */
static uint32_t bin_for(struct sched *sched, uint32_t group, uint32_t shape)
{
    struct group *g = sched_group(sched, group);
    if (g->has_bin && g->bin.shape == shape) {
        return group * 2;
    }
    uint64_t key = (uint64_t)group << 32 | shape;
    uint32_t known = idmap_get(&sched->bins_by_key, key);
    if (known != ID_NONE) {
        INVARIANT(sched_bin(sched, known)->group == group);
        return known;
    }
    sched->shapes[shape].bin_count++;
    struct bin bin = {
        .group = group,
        .shape = shape,
        .next_of_group = g->bin.next_of_group,
        .root = {ID_NONE, ID_NONE},
    };
    if (!g->has_bin) {
        g->has_bin = true;
        g->bin = bin;
        return group * 2;
    }
    INVARIANT(g->bin.group == group);
    MEM_GROW(sched->bins, sched->bin_count, sched->bin_capacity);
    uint32_t ix = sched->bin_count++ * 2 + 1;
    sched->bins[ix / 2] = bin;
    g->bin.next_of_group = ix;
    idmap_put(&sched->bins_by_key, key, ix);
    return ix;
}

static void
add_task(struct sched *sched, uint32_t run, const struct sched_task_spec *spec)
{
    INVARIANT(spec->class_id.v < sched->class_count);
    INVARIANT(spec->provider.v < sched->provider_count);
    INVARIANT(sched->task_count < sched->task_capacity);
    INVARIANT(spec->estimate_ns >= 0);
    uint32_t ix = sched->task_count++;
    bool solo = spec->group == ID_NONE;
    uint32_t group = solo ? ix * 2 + 1 : spec->group * 2;
    sched->tasks[ix] = (struct task){
        .rank_ns = -1,
        .estimate_ns = spec->estimate_ns,
        .group = group,
        .leader = ix,
        .next_in_session = ID_NONE,
        .state = TASK_WAITING,
    };
    if (solo) {
        sched->tasks[ix].own =
            new_group(sched, run, spec->attributes, spec->attribute_count);
    }
    INVARIANT(sched_group(sched, group)->run == run);
    struct shape like = {
        .class_ix = spec->class_id.v,
        .provider = spec->provider.v,
        .run = run,
        .batch_key = spec->batch_key,
        .needs = task_set(sched, run, spec),
        .group_needs = sched_group(sched, group)->needs,
    };
    sched->tasks[ix].bin = bin_for(sched, group, intern_shape(sched, like));
    sched->details[ix] = (struct detail){
        .failure = intern_failure(sched, &spec->failure),
        .rework_to = spec->rework_to,
        .cause = ID_NONE,
        .blocked_tier = TIER_NONE,
    };
    sched->unmet[ix] = 0;
    sched->runs[run].counts[TASK_WAITING]++;
}

/* Make room in each queue for an entry per bin of its shape. */
static void reserve_queues(struct sched *sched)
{
    for (uint32_t ix = 0; ix < sched->shape_count; ix++) {
        const struct shape *shape = &sched->shapes[ix];
        uint32_t sides = sched->classes[shape->class_ix].defer ? 2 : 1;
        ready_queue_reserve(&sched->queues[shape->open_queue].heap,
                            shape->bin_count * sides);
        ready_queue_reserve(&sched->queues[shape->closed_queue].heap,
                            shape->bin_count);
    }
}

static enum err reject(struct sched_rejection *rejection,
                       enum sched_rejection_code code,
                       uint32_t task)
{
    static const enum err errors[] = {
        [REJECTION_CYCLE] = ERR_INVALID,
        [REJECTION_UNKNOWN] = ERR_INVALID,
        [REJECTION_OTHER_RUN] = ERR_INVALID,
        [REJECTION_REWORK] = ERR_INVALID,
        [REJECTION_STARTED] = ERR_CONFLICT,
        [REJECTION_ENDED] = ERR_CONFLICT,
        [REJECTION_CANCELLED] = ERR_CONFLICT,
        [REJECTION_TOO_MANY] = ERR_LIMIT,
        [REJECTION_RECORD] = ERR_CORRUPT,
    };
    INVARIANT(code < ARRAY_COUNT(errors) && errors[code] != ERR_OK);
    rejection->code = code;
    rejection->task.v = task;
    return errors[code];
}

/* Check that an old task belongs to this run and, if asked, may gain a need. */
static enum err check_old(const struct sched *sched,
                          uint32_t run,
                          uint32_t task,
                          bool gains_need,
                          struct sched_rejection *rejection)
{
    if (sched_run_ix(sched, task) != run) {
        return reject(rejection, REJECTION_OTHER_RUN, task);
    }
    if (gains_need && state_in_flight(sched, task)) {
        return reject(rejection, REJECTION_STARTED, task);
    }
    if (gains_need && !state_is_pending(sched, task)) {
        return reject(rejection, REJECTION_ENDED, task);
    }
    return ERR_OK;
}

/* Check that each named group exists and belongs to this run. */
static enum err check_groups(const struct sched *sched,
                             const struct sched_addition *addition,
                             struct sched_rejection *rejection)
{
    for (uint32_t ix = 0; ix < addition->task_count; ix++) {
        uint32_t group = addition->tasks[ix].group;
        INVARIANT(group == ID_NONE ||
                  group < sched->group_count + addition->group_count);
        if (group < sched->group_count &&
            sched->groups[group].run != addition->run.v) {
            return reject(rejection,
                          REJECTION_OTHER_RUN,
                          sched->task_count + ix);
        }
    }
    return ERR_OK;
}

static enum err check_needs(const struct sched *sched,
                            const struct sched_addition *addition,
                            struct sched_rejection *rejection)
{
    uint32_t total = sched->task_count + addition->task_count;
    for (uint32_t ix = 0; ix < addition->need_count; ix++) {
        struct sched_need need = addition->needs[ix];
        if (need.dependent >= total || need.need >= total) {
            return reject(rejection, REJECTION_UNKNOWN, need.dependent);
        }
        enum err err = ERR_OK;
        if (need.need < sched->task_count) {
            err =
                check_old(sched, addition->run.v, need.need, false, rejection);
        }
        if (err == ERR_OK && need.dependent < sched->task_count) {
            err = check_old(sched,
                            addition->run.v,
                            need.dependent,
                            true,
                            rejection);
        }
        if (err != ERR_OK) {
            return err;
        }
    }
    return ERR_OK;
}

static uint32_t group_of_new(const struct sched_addition *addition,
                             uint32_t first,
                             uint32_t task)
{
    uint32_t group = addition->tasks[task - first].group;
    return group == ID_NONE ? task * 2 + 1 : group * 2;
}

/* Return whether new task `task` needs its rework_to through its own group. */
static bool reaches(struct sched *sched,
                    const struct sched_addition *addition,
                    uint32_t first,
                    uint32_t task)
{
    const struct graph *graph = &sched->graph;
    uint32_t to = addition->tasks[task - first].rework_to;
    uint32_t group = group_of_new(addition, first, task);
    uint32_t mark = sched_new_mark(sched);
    uint32_t depth = 0;
    sched->stack[depth++] = task;
    while (depth > 0) {
        uint32_t from = sched->stack[--depth];
        if (from == to) {
            return true;
        }
        for (uint32_t edge = graph_first_need(graph, from); edge != ID_NONE;
             edge = graph_next_need(graph, edge)) {
            uint32_t need = graph_need(graph, edge);
            uint32_t of = need < first ? sched->tasks[need].group
                                       : group_of_new(addition, first, need);
            if (of == group && sched->marks[need] != mark) {
                sched->marks[need] = mark;
                INVARIANT(depth < sched->graph.node_count);
                sched->stack[depth++] = need;
            }
        }
    }
    return false;
}

/*
 * Add the edges to the graph. Edges of one need become neighbours, because they
 * are walked together each time it is done.
 */
static void add_edges(struct sched *sched,
                      const struct sched_addition *addition)
{
    uint32_t nodes = sched->graph.node_count;
    uint32_t count = addition->need_count;
    if (count < nodes / 4) {
        /* Sorting would not pay off. */
        for (uint32_t ix = 0; ix < count; ix++) {
            struct sched_need need = addition->needs[ix];
            graph_add_need(&sched->graph, need.dependent, need.need);
        }
        return;
    }
    uint32_t *next = mem_zalloc((size_t)nodes + 1, sizeof(next[0]));
    uint32_t *order = mem_zalloc(count, sizeof(order[0]));
    for (uint32_t ix = 0; ix < count; ix++) {
        next[addition->needs[ix].need + 1]++;
    }
    for (uint32_t ix = 0; ix < nodes; ix++) {
        next[ix + 1] += next[ix];
    }
    INVARIANT(next[nodes] == count);
    for (uint32_t ix = 0; ix < count; ix++) {
        order[next[addition->needs[ix].need]++] = ix;
    }
    for (uint32_t ix = 0; ix < count; ix++) {
        struct sched_need need = addition->needs[order[ix]];
        graph_add_need(&sched->graph, need.dependent, need.need);
    }
    mem_free(next);
    mem_free(order);
}

/*
 * Return whether every dependent is new and comes after its need: then no cycle
 * is possible, and the declaration order is a topological order.
 */
static bool is_forward(const struct sched_addition *addition, uint32_t first)
{
    bool forward = true;
    for (uint32_t ix = 0; forward && ix < addition->need_count; ix++) {
        struct sched_need need = addition->needs[ix];
        forward = need.need < need.dependent && need.dependent >= first;
    }
    return forward;
}

/* Check, with the edges added, for cycles and that rework_to is a need. */
static enum err check_graph(struct sched *sched,
                            const struct sched_addition *addition,
                            struct sched_rejection *rejection)
{
    uint32_t first = sched->task_count;
    if (!is_forward(addition, first)) {
        /* An old task may gain a need, so search the old tasks as well. */
        rejection->cycle =
            graph_find_cycle(&sched->graph, 0, &rejection->cycle_count);
    }
    if (rejection->cycle != NULL) {
        return reject(rejection, REJECTION_CYCLE, rejection->cycle[0]);
    }
    for (uint32_t ix = 0; ix < addition->task_count; ix++) {
        const struct sched_task_spec *spec = &addition->tasks[ix];
        uint32_t task = first + ix;
        if (spec->rework_to != ID_NONE &&
            (spec->group == ID_NONE || spec->rework_to == task ||
             !reaches(sched, addition, first, task))) {
            return reject(rejection, REJECTION_REWORK, task);
        }
    }
    return ERR_OK;
}

/* Count unsatisfied needs of tasks that gained some, and make tasks ready. */
static void settle_new(struct sched *sched, uint32_t first, uint32_t edges)
{
    for (uint32_t edge = edges; edge < sched->graph.edge_count; edge++) {
        uint32_t need = graph_need(&sched->graph, edge);
        uint32_t dependent = graph_dependent(&sched->graph, edge);
        if (sched_has(sched, need, TASK_SATISFIED)) {
            continue;
        }
        if (sched->unmet[dependent]++ == 0 &&
            sched->tasks[dependent].state == TASK_READY) {
            state_unready(sched, dependent);
            state_set(sched, dependent, TASK_WAITING);
        }
    }
    for (uint32_t task = first; task < sched->task_count; task++) {
        state_touch(sched, task);
        INVARIANT(sched->tasks[task].state == TASK_WAITING);
        if (sched->unmet[task] == 0) {
            state_ready_or_wait(sched, task);
        }
    }
    /* Skip tasks that were added after a dead end. */
    for (uint32_t edge = edges; edge < sched->graph.edge_count; edge++) {
        uint32_t need = graph_need(&sched->graph, edge);
        uint32_t dependent = graph_dependent(&sched->graph, edge);
        if (state_is_pending(sched, need) ||
            sched_has(sched, need, TASK_SATISFIED) ||
            !state_is_pending(sched, dependent)) {
            continue;
        }
        uint32_t cause = deps_find_dead_end(sched, need);
        if (cause != ID_NONE) {
            INVARIANT(sched->unmet[dependent] > 0);
            deps_skip(sched, dependent, cause);
        }
    }
}

static void add_checked(struct sched *sched,
                        const struct sched_addition *addition,
                        uint32_t first,
                        uint32_t edges)
{
    uint32_t run = addition->run.v;
    reserve_groups(sched, addition->group_count);
    for (uint32_t ix = 0; ix < addition->group_count; ix++) {
        const struct sched_group_spec *spec = &addition->groups[ix];
        sched->groups[sched->group_count++] =
            new_group(sched, run, spec->attributes, spec->attribute_count);
    }
    for (uint32_t ix = 0; ix < addition->task_count; ix++) {
        add_task(sched, run, &addition->tasks[ix]);
    }
    INVARIANT(sched->task_count == first + addition->task_count);
    INVARIANT(sched->graph.node_count == sched->task_count);
    reserve_queues(sched);
    lookahead_reserve(sched);
    priority_of_new(sched, first, edges, is_forward(addition, first));
    if (addition->records != NULL) {
        restore_tasks(sched, addition, first, edges);
    } else {
        settle_new(sched, first, edges);
    }
    lookahead_upset(sched, run);
    state_check_run(sched, run);
}

/* Check the records, and that such tasks need only one another. */
static enum err check_records(const struct sched *sched,
                              const struct sched_addition *addition,
                              struct sched_rejection *rejection)
{
    for (uint32_t ix = 0; ix < addition->need_count; ix++) {
        struct sched_need need = addition->needs[ix];
        if (need.dependent < sched->task_count ||
            need.need < sched->task_count) {
            return reject(rejection, REJECTION_UNKNOWN, need.dependent);
        }
    }
    uint32_t bad = restore_find_bad(addition);
    if (bad == ID_NONE) {
        return ERR_OK;
    }
    return reject(rejection, REJECTION_RECORD, sched->task_count + bad);
}

/* Check the addition against the run, as far as possible without the graph. */
static enum err check(const struct sched *sched,
                      const struct sched_addition *addition,
                      struct sched_rejection *rejection)
{
    bool goes_on = addition->records != NULL;
    if (addition->task_count > SCHED_TASKS_MAX - sched->task_count) {
        return reject(rejection, REJECTION_TOO_MANY, ID_NONE);
    }
    if (sched->runs[addition->run.v].cancelled && !goes_on) {
        return reject(rejection, REJECTION_CANCELLED, ID_NONE);
    }
    enum err err = check_groups(sched, addition, rejection);
    if (err == ERR_OK) {
        err = check_needs(sched, addition, rejection);
    }
    if (err == ERR_OK && goes_on) {
        err = check_records(sched, addition, rejection);
    }
    return err;
}

enum err sched_add(struct sched *sched,
                   int64_t now_ns,
                   const struct sched_addition *addition,
                   struct sched_rejection *rejection)
{
    *rejection = (struct sched_rejection){.task = {ID_NONE}};
    INVARIANT(addition->run.v < sched->run_count);
    if (addition->records != NULL) {
        sched_arrive(sched, now_ns); /* restore all tasks first */
    } else {
        sched_advance(sched, now_ns);
    }
    uint32_t first = sched->task_count;
    uint32_t edges = sched->graph.edge_count;
    INVARIANT(sched->graph.node_count == first);
    enum err err = check(sched, addition, rejection);
    if (err != ERR_OK) {
        return err;
    }
    uint32_t total = first + addition->task_count;
    reserve_tasks(sched, total);
    for (uint32_t ix = first; ix < total; ix++) {
        sched->marks[ix] = 0;
    }
    graph_reserve(&sched->graph,
                  sched->task_capacity,
                  edges + addition->need_count);
    graph_add_nodes(&sched->graph, addition->task_count);
    add_edges(sched, addition);
    INVARIANT(sched->graph.edge_count == edges + addition->need_count);
    err = check_graph(sched, addition, rejection);
    if (err != ERR_OK) {
        graph_truncate(&sched->graph, first, edges);
        return err;
    }
    INVARIANT(rejection->code == REJECTION_NONE);
    add_checked(sched, addition, first, edges);
    return ERR_OK;
}

void sched_rejection_release(struct sched_rejection *rejection)
{
    mem_free(rejection->cycle);
    *rejection = (struct sched_rejection){.task = {ID_NONE}};
}

size_t sched_bytes(const struct sched *sched)
{
    size_t bytes =
        sizeof(*sched) + graph_bytes(&sched->graph) +
        limits_bytes(&sched->limits) + idmap_bytes(&sched->bins_by_key) +
        idmap_bytes(&sched->shapes_by_hash) + idmap_bytes(&sched->sets_by_hash);
    bytes += sched->task_capacity *
             (sizeof(struct task) + sizeof(struct detail) +
              2 * sizeof(struct pheap_link) + 7 * sizeof(uint32_t));
    bytes += sched->group_capacity * sizeof(struct group);
    bytes += sched->bin_capacity * sizeof(struct bin);
    bytes += sched->shape_capacity * sizeof(struct shape);
    bytes += sched->queue_capacity *
             (sizeof(struct queue) + sizeof(struct pheap_link));
    bytes += sched->set_capacity * sizeof(struct need_set);
    bytes += sched->need_capacity * sizeof(struct pool_need);
    bytes += sched->failure_capacity * sizeof(sched->failures[0]);
    for (uint32_t ix = 0; ix < sched->queue_count; ix++) {
        bytes += sched->queues[ix].heap.capacity * sizeof(struct ready_entry);
    }
    return bytes + lookahead_bytes(sched->lookahead);
}
