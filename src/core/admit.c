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

/* The bits of the index of a task, and of its failure rules. */
#define TASK_MASK (SCHED_TASKS_MAX - 1)

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
    lookahead_reserve(sched);
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

/* From now on it is known when sessions started, and what groups used. */
static void reserve_times(struct sched *sched)
{
    if (sched->times == NULL) {
        sched->times =
            mem_zalloc(sched->task_capacity, sizeof(sched->times[0]));
    }
}

/* From now on shares of the background lend. */
static void reserve_lending(struct sched *sched)
{
    if (sched->lend_links == NULL) {
        MEM_RESIZE(sched->lend_links, sched->task_capacity);
        for (uint32_t task = 0; task < sched->task_count; task++) {
            sched->lend_links[task] = (struct lend_link){.next = ID_NONE};
        }
    }
}

/* From now on tasks are listed by their scopes. */
static void reserve_scopes(struct sched *sched)
{
    if (sched->scope_links == NULL) {
        MEM_RESIZE(sched->scope_links, sched->task_capacity);
        scope_add_old(sched);
    }
}

struct run_id sched_add_run(struct sched *sched,
                            const struct sched_run_spec *spec,
                            struct limit_id *first_limit_out)
{
    INVARIANT(spec->policy <= SCHED_LOOKAHEAD);
    INVARIANT(spec->limit_count <= SCHED_LIMITS_MAX);
    uint32_t ix = sched->run_count++;
    MEM_RESIZE(sched->runs, sched->run_count);
    INVARIANT(spec->goal <= SCHED_FINISH_MANY);
    sched->runs[ix] = (struct run){
        .policy = spec->policy,
        .goal = spec->goal,
        .kind = ID_NONE,
        .first_limit = sched->limits.limit_count,
        .limit_count = spec->limit_count,
        .sync_every = spec->sync_every,
        .sync_drain = spec->sync_drain,
        .deadline_ns = spec->deadline_ns,
        .scope = {.run = ix,
                  .child = ID_NONE,
                  .members = ID_NONE,
                  .lasts = ID_NONE,
                  .witness = ID_NONE},
    };
    first_limit_out->v = sched->limits.limit_count;
    for (uint32_t limit = 0; limit < spec->limit_count; limit++) {
        struct limit_spec copy = spec->limits[limit];
        INVARIANT(copy.base < spec->limit_count);
        copy.base += first_limit_out->v;
        uint32_t added = limits_add(&sched->limits, &copy);
        sched->limits.limits[added].owner = ix;
    }
    INVARIANT(sched->limits.limit_count ==
              first_limit_out->v + spec->limit_count);
    sched->runs[ix].pool = limits_add_pool(&sched->limits, LIMIT_RUN_POOL, ix);
    sched->runs[ix].late_pool =
        limits_add_pool(&sched->limits, LIMIT_RUN_POOL, ix);
    lend_add_run(sched, ix);
    if (sched->runs[ix].lends) {
        reserve_lending(sched);
    }
    if (spec->policy == SCHED_FAIR || spec->policy == SCHED_LOOKAHEAD) {
        reserve_times(sched);
    }
    if (spec->policy == SCHED_LOOKAHEAD) {
        lookahead_add_run(sched, spec->schedules);
    }
    lookahead_reserve(sched);
    control_check_run(sched, ix);
    sched->has_deadlines = sched->has_deadlines || spec->deadline_ns > 0;
    return (struct run_id){ix};
}

struct limit_id sched_add_limit(struct sched *sched,
                                struct run_id run,
                                const struct limit_spec *spec)
{
    INVARIANT(!spec->hold_group && spec->per == ID_NONE);
    INVARIANT(run.v < sched->run_count);
    INVARIANT(spec->resource && spec->percent == 0);
    INVARIANT(!spec->background);
    uint32_t limit = limits_add(&sched->limits, spec);
    sched->limits.limits[limit].owner = run.v;
    lookahead_reserve(sched);
    return (struct limit_id){limit};
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
    INVARIANT(spec->on_failure <= SCHED_STOP);
    enum { LOOK_BACK = 64 };
    for (uint32_t n = 0; n < LOOK_BACK && n < sched->failure_count; n++) {
        uint32_t ix = sched->failure_count - 1 - n;
        if (same_failure(&sched->failures[ix], spec)) {
            return ix;
        }
    }
    INVARIANT(sched->failure_count <= TASK_MASK); /* at most one for each */
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
    sched->unmet = mem_resize_lines(sched->unmet,
                                    sched->task_count,
                                    capacity,
                                    sizeof(sched->unmet[0]));
    MEM_RESIZE(sched->in_flight, capacity);
    MEM_RESIZE(sched->marks, capacity);
    MEM_RESIZE(sched->stack, capacity);
    MEM_RESIZE(sched->list, capacity);
    MEM_RESIZE(sched->doubts, capacity);
    if (sched->times != NULL) {
        MEM_RESIZE(sched->times, capacity);
    }
    if (sched->lend_links != NULL) {
        MEM_RESIZE(sched->lend_links, capacity);
    }
    if (sched->scope_links != NULL) {
        MEM_RESIZE(sched->scope_links, capacity);
    }
}

/* Allocate what only some schedulers need, with all tasks added. */
static void reserve_side(struct sched *sched,
                         const struct sched_addition *addition)
{
    bool timed = sched->has_wide;
    for (uint32_t ix = 0;
         addition->records != NULL && !timed && ix < addition->task_count;
         ix++) {
        timed = addition->records[ix].started_ns > 0 ||
                addition->records[ix].service_ns > 0;
    }
    if (timed) {
        reserve_times(sched);
    }
    INVARIANT(sched->touched_count <= sched->special_count);
    if (sched->special_count > 0) {
        MEM_RESIZE(sched->touched, sched->special_count);
    }
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
        MEM_RESIZE(sched->more, sched->group_capacity);
    }
    INVARIANT(sched->group_count + more <= sched->group_capacity);
}

/* Return a closed group whose pools follow from its attributes. */
static struct group new_group(struct sched *sched,
                              uint32_t run,
                              const struct sched_group_spec *spec)
{
    uint32_t kind = shape_kind_of(sched, run, spec);
    const uint32_t mask = (UINT32_C(1) << SCHED_KIND_BITS) - 1;
    INVARIANT(kind < mask);
    return (struct group){.kind = kind & mask, .check_next = ID_NONE};
}

/* Return the bin of a declared group for a shape, created if new. */
static uint32_t bin_for(struct sched *sched, uint32_t group, uint32_t shape)
{
    INVARIANT(!sched_is_solo(group));
    struct group_more *g = &sched->more[group / 2];
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

/* Return whether two tasks of an addition, in groups of one kind, have the same
 * shape for sure: most tasks are like the one before. */
static bool is_alike(const struct sched_task_spec *a,
                     const struct sched_task_spec *b)
{
    return a->class_id.v == b->class_id.v && a->provider.v == b->provider.v &&
           a->batch_key == b->batch_key && a->guard == b->guard &&
           a->attributes == b->attributes &&
           a->attribute_count == b->attribute_count && a->uses == b->uses &&
           a->use_count == b->use_count && a->last == b->last;
}

/* Its detail says more about a task. */
static void make_special(struct sched *sched, uint32_t task)
{
    if (sched->tasks[task].special == 0) {
        sched->tasks[task].special = 1;
        sched->special_count++;
    }
}

/* Add a task; `before` was added just before it, or is NULL. */
static void add_task(struct sched *sched,
                     uint32_t run,
                     const struct sched_task_spec *spec,
                     const struct sched_task_spec *before)
{
    INVARIANT(spec->class_id.v < sched->class_count);
    INVARIANT(spec->provider.v < sched->provider_count);
    INVARIANT(sched->task_count < sched->task_capacity);
    INVARIANT(spec->estimate_ns >= 0 && spec->priority <= SCHED_PRIORITY_MAX);
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
        .failure = intern_failure(sched, &spec->failure) & TASK_MASK,
        .cause = ID_NONE,
    };
    if (solo) {
        struct sched_group_spec own = {spec->attributes, spec->attribute_count};
        sched->tasks[ix].solo.group = new_group(sched, run, &own);
    }
    uint32_t kind = sched_group(sched, group)->kind;
    INVARIANT(sched->kinds[kind].run == run);
    INVARIANT(spec->guard != ix + 1);
    uint32_t shape;
    if (before != NULL && is_alike(before, spec) &&
        sched_group(sched, sched->tasks[ix - 1].group)->kind == kind) {
        shape = sched_bin_shape(sched, sched_bin_of(sched, ix - 1));
    } else {
        shape = shape_for(sched, spec, &sched->kinds[kind]);
    }
    if (solo) {
        sched->tasks[ix].solo.shape = shape;
        sched->shapes[shape].bin_count++;
    } else {
        sched->tasks[ix].member.bin = bin_for(sched, group, shape);
    }
    sched->details[ix] = (struct detail){
        .rework_to = spec->rework_to,
        .blocked_tier = TIER_NONE,
        .own_priority = spec->priority & 0xF,
        .last = spec->last,
        .approve = spec->approve,
        .unapproved = spec->approve,
        .early = spec->not_before_ns > 0,
        .until_ns = spec->not_before_ns,
    };
    if (spec->last || spec->not_before_ns > 0) {
        make_special(sched, ix);
    }
    if (spec->approve) {
        sched_raise(sched, ix, TASK_HELD);
    }
    sched->unmet[ix] = 0;
    if (sched->times != NULL) {
        sched->times[ix] = (struct task_times){0};
    }
    if (sched->lend_links != NULL) {
        sched->lend_links[ix] = (struct lend_link){.next = ID_NONE};
    }
    sched->runs[run].counts[TASK_WAITING]++;
    if (sched_has_goal(&sched->runs[run])) {
        goal_add(sched, ix);
    }
    scope_add_task(sched, ix, spec);
}

/* Make room in each queue for an entry per bin of its shape. The open and the
 * closed queue have one block: a bin has its entry in one of them. */
static void reserve_queues(struct sched *sched)
{
    for (uint32_t ix = 0; ix < sched->shape_count; ix++) {
        const struct shape *shape = &sched->shapes[ix];
        uint32_t queues[] = {
            shape->open_queue,
            shape->closed_queue,
            shape->background_queue,
        };
        for (uint32_t n = 0; n < ARRAY_COUNT(queues); n++) {
            if (queues[n] != ID_NONE) {
                ready_queue_reserve(sched_block(sched, queues[n]),
                                    shape->bin_count);
            }
        }
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
        [REJECTION_LAST] = ERR_INVALID,
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

/* What is known of an addition when it has been read once: a large one is not
 * in the cache. */
struct survey {
    bool lasts;   /* a task comes last */
    bool reworks; /* a task has a rework_to */
    bool picky;   /* a need wants another outcome than done */
    bool forward; /* every dependent is new and comes after its need: then no
                     cycle is possible, and the declaration order is a
                     topological order */
};

/* Check that each named group exists and belongs to this run. */
static enum err check_groups(const struct sched *sched,
                             const struct sched_addition *addition,
                             struct survey *survey,
                             struct sched_rejection *rejection)
{
    for (uint32_t ix = 0; ix < addition->task_count; ix++) {
        const struct sched_task_spec *spec = &addition->tasks[ix];
        uint32_t group = spec->group;
        survey->lasts = survey->lasts || spec->last;
        survey->reworks = survey->reworks || spec->rework_to != ID_NONE;
        INVARIANT(group == ID_NONE ||
                  group < sched->group_count + addition->group_count);
        if (group < sched->group_count &&
            sched_kind(sched, &sched->groups[group])->run != addition->run.v) {
            return reject(rejection,
                          REJECTION_OTHER_RUN,
                          sched->task_count + ix);
        }
    }
    return ERR_OK;
}

static enum err check_needs(const struct sched *sched,
                            const struct sched_addition *addition,
                            struct survey *survey,
                            struct sched_rejection *rejection)
{
    uint32_t first = sched->task_count;
    uint32_t total = first + addition->task_count;
    survey->forward = true;
    for (uint32_t ix = 0; ix < addition->need_count; ix++) {
        struct sched_need need = addition->needs[ix];
        survey->picky = survey->picky || need.on != SCHED_ON_DONE;
        survey->forward = survey->forward && need.need < need.dependent &&
                          need.dependent >= first;
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
    uint16_t mark = sched_new_mark(sched);
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

static void add_edge(struct sched *sched, const struct sched_need *need)
{
    INVARIANT(need->on <= SCHED_ON_ANY);
    graph_add_need_on(&sched->graph, need->dependent, need->need, need->on);
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
            add_edge(sched, &addition->needs[ix]);
        }
        return;
    }
    /* The dependents of each need, with the kind of the edge below. */
    enum { KIND_BITS = 2, AHEAD = 16 };
    uint32_t *next =
        mem_resize_lines(NULL, 0, (size_t)nodes + 1, sizeof(next[0]));
    uint32_t *sorted = mem_resize_lines(NULL, 0, count, sizeof(sorted[0]));
    memset(next, 0, ((size_t)nodes + 1) * sizeof(next[0]));
    for (uint32_t ix = 0; ix < count; ix++) {
        next[addition->needs[ix].need + 1]++;
    }
    for (uint32_t ix = 0; ix < nodes; ix++) {
        next[ix + 1] += next[ix];
    }
    INVARIANT(next[nodes] == count);
    for (uint32_t ix = 0; ix < count; ix++) {
        const struct sched_need *need = &addition->needs[ix];
        sorted[next[need->need]++] =
            need->dependent << KIND_BITS | (uint32_t)need->on;
    }
    uint32_t ix = 0;
    for (uint32_t need = 0; need < nodes; need++) {
        for (; ix < next[need]; ix++) {
            uint32_t later = ix + AHEAD < count ? ix + AHEAD : ix;
            __builtin_prefetch(&sched->graph.nodes[sorted[later] >> KIND_BITS],
                               1);
            struct sched_need edge = {
                .dependent = sorted[ix] >> KIND_BITS,
                .need = need,
                .on = sorted[ix] % (1U << KIND_BITS),
            };
            add_edge(sched, &edge);
        }
    }
    mem_free(next);
    mem_free(sorted);
}

/* The place of a task among the scopes. */
struct position {
    uint32_t scope;
    bool last;
};

static struct position position_of(const struct sched *sched,
                                   const struct sched_addition *addition,
                                   uint32_t task)
{
    if (task < sched->task_count) {
        uint32_t scope =
            sched->scope_links != NULL ? sched->scope_links[task].scope : 0;
        return (struct position){scope, sched->details[task].last != 0};
    }
    const struct sched_task_spec *spec =
        &addition->tasks[task - sched->task_count];
    return (struct position){spec->scope, spec->last};
}

/* Return the parent of a scope, old or new, that is not the run. */
static uint32_t parent_of(const struct sched *sched,
                          const struct sched_addition *addition,
                          uint32_t scope)
{
    INVARIANT(scope > 0);
    return scope <= sched->scope_count
               ? sched->scopes[scope - 1].parent
               : addition->scopes[scope - 1 - sched->scope_count].parent;
}

/* Return whether a task does not need one that comes after it: the last of a
 * scope that it is in. */
static bool is_in_order(const struct sched *sched,
                        const struct sched_addition *addition,
                        const struct sched_need *need)
{
    struct position to = position_of(sched, addition, need->need);
    struct position from = position_of(sched, addition, need->dependent);
    if (!to.last) {
        return true;
    }
    uint32_t scope = from.scope;
    if (from.last && scope == to.scope) {
        return true;
    }
    while (scope > 0 && scope != to.scope) {
        scope = parent_of(sched, addition, scope);
    }
    return scope != to.scope;
}

/* Check, with the edges added, for cycles and that rework_to is a need. */
static enum err check_graph(struct sched *sched,
                            const struct sched_addition *addition,
                            const struct survey *survey,
                            struct sched_rejection *rejection)
{
    uint32_t first = sched->task_count;
    if (!survey->forward) {
        /* An old task may gain a need, so search the old tasks as well. */
        rejection->cycle =
            graph_find_cycle(&sched->graph, 0, &rejection->cycle_count);
    }
    if (rejection->cycle != NULL) {
        return reject(rejection, REJECTION_CYCLE, rejection->cycle[0]);
    }
    bool lasts = survey->lasts || sched->runs[addition->run.v].lasts > 0;
    for (uint32_t ix = 0; lasts && ix < addition->need_count; ix++) {
        if (!is_in_order(sched, addition, &addition->needs[ix])) {
            return reject(rejection,
                          REJECTION_LAST,
                          addition->needs[ix].dependent);
        }
    }
    for (uint32_t ix = 0; survey->reworks && ix < addition->task_count; ix++) {
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
        if (graph_on(&sched->graph, edge) != SCHED_ON_DONE) {
            deps_touch(sched, need); /* looked at in the end */
            continue;
        }
        if (sched_has(sched, need, TASK_SATISFIED)) {
            continue;
        }
        if (sched->unmet[dependent]++ == 0 && dependent < first &&
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
        } else if (sched->tasks[task].special != 0) {
            deps_touch(sched, task);
        }
    }
    /* Skip tasks that were added after a dead end. */
    for (uint32_t edge = edges; edge < sched->graph.edge_count; edge++) {
        uint32_t need = graph_need(&sched->graph, edge);
        uint32_t dependent = graph_dependent(&sched->graph, edge);
        if (graph_on(&sched->graph, edge) != SCHED_ON_DONE ||
            state_is_pending(sched, need) ||
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

/* Remember who needs an outcome other than done. */
static void note_need(struct sched *sched, const struct sched_need *need)
{
    if (need->on != SCHED_ON_DONE) {
        sched_run_of(sched, need->need)->picky = true;
        sched->details[need->dependent].picky = 1;
        sched->details[need->need].watched = 1;
        make_special(sched, need->dependent);
        make_special(sched, need->need);
    }
}

static void add_checked(struct sched *sched,
                        const struct sched_addition *addition,
                        const struct survey *survey,
                        uint32_t edges)
{
    uint32_t run = addition->run.v;
    uint32_t first = sched->task_count;
    reserve_groups(sched, addition->group_count);
    for (uint32_t ix = 0; ix < addition->group_count; ix++) {
        uint32_t group = sched->group_count++;
        sched->groups[group] = new_group(sched, run, &addition->groups[ix]);
        sched->more[group] = (struct group_more){
            .bin = {.next_of_group = ID_NONE, .root = {ID_NONE, ID_NONE}},
        };
    }
    if (addition->scope_count > 0 || survey->lasts) {
        reserve_scopes(sched);
    }
    for (uint32_t ix = 0; ix < addition->scope_count; ix++) {
        MEM_GROW(sched->scopes, sched->scope_count, sched->scope_capacity);
        scope_add(sched, run, &addition->scopes[ix]);
    }
    for (uint32_t ix = 0; ix < addition->task_count; ix++) {
        const struct sched_task_spec *spec = &addition->tasks[ix];
        add_task(sched, run, spec, ix > 0 ? spec - 1 : NULL);
    }
    for (uint32_t ix = 0; survey->picky && ix < addition->need_count; ix++) {
        note_need(sched, &addition->needs[ix]);
    }
    INVARIANT(sched->task_count == first + addition->task_count);
    INVARIANT(sched->graph.node_count == sched->task_count);
    reserve_queues(sched);
    reserve_side(sched, addition);
    lookahead_reserve(sched);
    priority_of_new(sched, first, edges, survey->forward);
    lend_measure(sched, run, first, edges, survey->forward);
    if (addition->records != NULL) {
        restore_tasks(sched, addition, first, edges);
    } else {
        settle_new(sched, first, edges);
    }
    deps_settle(sched);
    dispatch_check_guards(sched);
    lend_settle(sched);
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
                      struct survey *survey,
                      struct sched_rejection *rejection)
{
    bool goes_on = addition->records != NULL;
    if (addition->task_count > SCHED_TASKS_MAX - sched->task_count) {
        return reject(rejection, REJECTION_TOO_MANY, ID_NONE);
    }
    if (sched->runs[addition->run.v].cancelled && !goes_on) {
        return reject(rejection, REJECTION_CANCELLED, ID_NONE);
    }
    enum err err = check_groups(sched, addition, survey, rejection);
    if (err == ERR_OK) {
        err = check_needs(sched, addition, survey, rejection);
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
    struct survey survey = {0};
    enum err err = check(sched, addition, &survey, rejection);
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
    err = check_graph(sched, addition, &survey, rejection);
    if (err != ERR_OK) {
        graph_truncate(&sched->graph, first, edges);
        return err;
    }
    INVARIANT(rejection->code == REJECTION_NONE);
    add_checked(sched, addition, &survey, edges);
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
        idmap_bytes(&sched->shapes_by_hash) +
        idmap_bytes(&sched->sets_by_hash) + idmap_bytes(&sched->kinds_by_hash);
    bytes +=
        sched->task_capacity * (sizeof(struct task) + sizeof(struct detail) +
                                5 * sizeof(uint32_t) + sizeof(uint16_t));
    bytes += sched->times != NULL
                 ? sched->task_capacity * sizeof(sched->times[0])
                 : 0;
    bytes += sched->lend_links != NULL
                 ? sched->task_capacity * sizeof(sched->lend_links[0])
                 : 0;
    bytes += sched->scope_links != NULL
                 ? sched->task_capacity * sizeof(sched->scope_links[0])
                 : 0;
    bytes += sched->special_count * sizeof(sched->touched[0]);
    bytes += sched->group_capacity *
             (sizeof(struct group) + sizeof(struct group_more));
    bytes += sched->kind_capacity * sizeof(struct group_kind);
    bytes += sched->scope_capacity * sizeof(struct scope);
    bytes += sched->bin_capacity * sizeof(struct bin);
    bytes += sched->shape_capacity * sizeof(struct shape);
    bytes += sched->queue_capacity *
             (sizeof(struct queue) + sizeof(struct pheap_link));
    bytes += sched->set_capacity * sizeof(struct need_set);
    bytes += sched->need_capacity * sizeof(struct pool_need);
    bytes += sched->failure_capacity * sizeof(sched->failures[0]);
    bytes += sched->guard_count * sizeof(sched->guards[0]);
    for (uint32_t ix = 0; ix < sched->queue_count; ix++) {
        bytes += ready_queue_bytes(&sched->queues[ix].block);
    }
    return bytes + lookahead_bytes(sched->lookahead);
}
