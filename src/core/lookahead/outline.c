/* SPDX-License-Identifier: MIT */
/*
 * Model construction from the state of a scheduler.
 *
 * A pool is scarce if the remaining tasks together need more units than it has.
 * Other pools cannot matter, and are left out; if more pools are scarce than a
 * vector has lanes, the pools with the highest demand are used.
 *
 * The model assumes that each task of a group with group units needs those
 * units itself: the tasks of a group mostly follow one another.
 */
#include "core/lookahead/outline.h"

#include "base/duration.h"
#include "base/invariant.h"

enum { LANES_MAX = LOOKAHEAD_LANES * LOOKAHEAD_WORDS_MAX };

/* An overdue session is assumed to need 1/OVERDUE of its estimate still. */
enum { OVERDUE = 8 };

int64_t lookahead_left_ns(const struct sched *sched, uint32_t leader)
{
    int64_t length_ns = lookahead_session_ns(sched, leader);
    int64_t end_ns = duration_sum(sched->times[leader].started_ns, length_ns);
    int64_t left_ns = end_ns - sched->now_ns;
    int64_t least_ns = length_ns / OVERDUE + 1;
    return left_ns > 0 ? left_ns : least_ns;
}

/* ---- tasks ---- */

/* Return whether it can start without a request from an operator. */
static bool is_left(const struct sched *sched, uint32_t run, uint32_t task)
{
    return state_is_pending(sched, task) &&
           !sched_has(sched, task, TASK_HELD) &&
           sched_run_ix(sched, task) == run;
}

/*
 * Number the tasks so that needs come first. Tasks after a stuck task get no
 * number, nor do those that wait for another outcome than done or come last. A
 * task in flight only delays its dependents.
 */
static void number_tasks(struct lookahead_outline *outline,
                         struct lookahead_model *model,
                         struct sched *sched,
                         uint32_t run)
{
    const struct graph *graph = &sched->graph;
    for (uint32_t task = 0; task < sched->task_count; task++) {
        outline->slot[task] = ID_NONE;
        outline->release_ns[task] = 0;
        sched->tally[task] = sched->unmet[task];
    }
    for (uint32_t ix = 0; ix < sched->in_flight_count; ix++) {
        uint32_t task = sched->in_flight[ix];
        int64_t left_ns = lookahead_left_ns(sched, sched->tasks[task].leader);
        for (uint32_t edge = graph_first_dependent(graph, task);
             edge != ID_NONE;
             edge = graph_next_dependent(graph, edge)) {
            uint32_t to = graph_dependent(graph, edge);
            if (graph_on(graph, edge) != SCHED_ON_DONE) {
                continue;
            }
            if (left_ns > outline->release_ns[to]) {
                outline->release_ns[to] = left_ns;
            }
            INVARIANT(sched->tally[to] > 0);
            sched->tally[to]--;
        }
    }
    model->count = 0;
    for (uint32_t task = 0; task < sched->task_count; task++) {
        if (sched->tally[task] == 0 && is_left(sched, run, task)) {
            INVARIANT(model->count < LOOKAHEAD_TASKS_MAX);
            outline->slot[task] = model->count;
            model->task[model->count++] = task;
        }
    }
    for (uint32_t ix = 0; ix < model->count; ix++) {
        for (uint32_t edge = graph_first_dependent(graph, model->task[ix]);
             edge != ID_NONE;
             edge = graph_next_dependent(graph, edge)) {
            uint32_t to = graph_dependent(graph, edge);
            if (graph_on(graph, edge) != SCHED_ON_DONE) {
                continue;
            }
            INVARIANT(sched->tally[to] > 0);
            if (--sched->tally[to] > 0 || !is_left(sched, run, to)) {
                continue;
            }
            INVARIANT(model->count < LOOKAHEAD_TASKS_MAX);
            INVARIANT(outline->slot[to] == ID_NONE);
            outline->slot[to] = model->count;
            model->task[model->count++] = to;
        }
    }
}

/* Number the groups of the tasks. */
static void number_groups(struct lookahead_outline *outline,
                          struct lookahead_model *model,
                          const struct sched *sched)
{
    INVARIANT(sched->group_count <= outline->group_capacity);
    for (uint32_t ix = 0; ix < sched->group_count; ix++) {
        outline->group[ix] = ID_NONE;
    }
    model->group_count = 0;
    for (uint32_t ix = 0; ix < model->count; ix++) {
        uint32_t group = sched->tasks[model->task[ix]].group;
        if (sched_is_solo(group)) {
            model->group[ix] = model->group_count++;
            continue;
        }
        if (outline->group[group / 2] == ID_NONE) {
            outline->group[group / 2] = model->group_count++;
        }
        model->group[ix] = outline->group[group / 2];
    }
    INVARIANT(model->group_count <= model->count);
}

static void link_tasks(const struct lookahead_outline *outline,
                       struct lookahead_model *model,
                       const struct sched *sched)
{
    const struct graph *graph = &sched->graph;
    uint32_t edges = 0;
    for (uint32_t ix = 0; ix < model->count; ix++) {
        uint32_t task = model->task[ix];
        int64_t until_ns = sched->details[task].until_ns - sched->now_ns;
        model->length_ns[ix] = sched->tasks[task].estimate_ns + 1;
        model->release_ns[ix] = outline->release_ns[task];
        if (sched->tasks[task].estimate_ns > 0) {
            model->length_ns[ix]--;
        }
        if (sched_has(sched, task, TASK_BACKING_OFF) &&
            until_ns > model->release_ns[ix]) {
            model->release_ns[ix] = until_ns;
        }
        model->first_need[ix] = edges;
        for (uint32_t edge = graph_first_need(graph, task); edge != ID_NONE;
             edge = graph_next_need(graph, edge)) {
            uint32_t slot = outline->slot[graph_need(graph, edge)];
            if (slot != ID_NONE) {
                INVARIANT(edges < model->edge_capacity);
                INVARIANT(slot < ix);
                model->needs[edges++] = slot;
            }
        }
    }
    model->first_need[model->count] = edges;
}

/* ---- scarce pools ---- */

/* Called for each pool that a task needs, including its group's. */
typedef void (*pool_fn)(struct lookahead_outline *outline,
                        const struct sched *sched,
                        struct pool_need need,
                        void *ctx);

static void each_pool(struct lookahead_outline *outline,
                      const struct sched *sched,
                      uint32_t task,
                      pool_fn fn,
                      void *ctx)
{
    const struct shape *shape = sched_shape_of(sched, task);
    bool flies = state_in_flight(sched, task);
    bool background = flies ? sched_has(sched, task, TASK_BACKGROUND)
                            : ready_is_background(sched, task);
    uint32_t sets[] = {
        shape->needs,
        background ? shape->background_needs : shape->group_needs,
    };
    for (uint32_t part = 0; part < 2 && sets[part] != ID_NONE; part++) {
        const struct need_set *set = &sched->sets[sets[part]];
        for (uint32_t ix = 0; ix < set->count; ix++) {
            struct pool_need need = sched->needs[set->first + ix];
            uint32_t limit = sched->limits.pools[need.pool].limit;
            if (sched->limits.limits[limit].kind == LIMIT_PLAN &&
                sched->limits.limits[limit].max_now != LIMIT_NONE) {
                fn(outline, sched, need, ctx);
            }
        }
    }
}

static void add_demand(struct lookahead_outline *outline,
                       const struct sched *sched,
                       struct pool_need need,
                       void *ctx)
{
    const bool *flies = ctx;
    struct lookahead_pool *pool = &outline->pools[need.pool];
    (void)sched;
    pool->demand += need.units;
    if (*flies) {
        pool->kept += need.units;
    }
}

/* Return whether a task in flight is the leader of a session of the run. */
static bool is_session(const struct sched *sched, uint32_t run, uint32_t task)
{
    return sched->tasks[task].leader == task &&
           sched_run_ix(sched, task) == run;
}

/* Return the units of a pool for the run, without the use by other runs. */
static int64_t units_for(const struct lookahead_outline *outline,
                         const struct sched *sched,
                         uint32_t pool)
{
    const struct lookahead_pool *r = &outline->pools[pool];
    uint32_t limit = sched->limits.pools[pool].limit;
    int64_t max = sched->limits.limits[limit].max_now;
    int64_t units = limits_free(&sched->limits, pool) + r->kept;
    units = units > max ? max : units;
    units = units < r->kept ? r->kept : units;
    return units > 0 ? units : 1;
}

/* Return the pool with the highest relative demand that has no lane yet. */
static uint32_t find_scarce(const struct lookahead_outline *outline,
                            const struct sched *sched)
{
    uint32_t scarce = ID_NONE;
    double most = 1;
    for (uint32_t ix = 0; ix < sched->limits.pool_count; ix++) {
        const struct lookahead_pool *pool = &outline->pools[ix];
        if (pool->lane != ID_NONE || pool->demand == 0) {
            continue;
        }
        double share =
            (double)pool->demand / (double)units_for(outline, sched, ix);
        if (share > most) {
            most = share;
            scarce = ix;
        }
    }
    return scarce;
}

static void find_lanes(struct lookahead_outline *outline,
                       struct lookahead_model *model,
                       const struct sched *sched)
{
    uint32_t lanes = 0;
    for (uint32_t ix = 0; ix < LOOKAHEAD_WORDS_MAX; ix++) {
        model->pool[ix] = 0;
    }
    while (lanes < LANES_MAX) {
        uint32_t ix = find_scarce(outline, sched);
        if (ix == ID_NONE) {
            break;
        }
        struct lookahead_pool *pool = &outline->pools[ix];
        pool->units = units_for(outline, sched, ix);
        INVARIANT(pool->units > 0 && pool->units < pool->demand);
        pool->lane = lanes++;
        int64_t units = pool->units < LOOKAHEAD_UNITS_MAX ? pool->units
                                                          : LOOKAHEAD_UNITS_MAX;
        model->pool[pool->lane / LOOKAHEAD_LANES] |=
            (uint64_t)units << pool->lane % LOOKAHEAD_LANES * 16;
    }
    model->words = lanes > LOOKAHEAD_LANES
                       ? (lanes + LOOKAHEAD_LANES - 1) / LOOKAHEAD_LANES
                       : 1;
}

/* Add the units of one pool to a vector, scaled to fit its lane. */
static void add_units(struct lookahead_outline *outline,
                      const struct sched *sched,
                      struct pool_need need,
                      void *ctx)
{
    uint64_t *units = ctx;
    const struct lookahead_pool *pool = &outline->pools[need.pool];
    (void)sched;
    if (pool->lane == ID_NONE) {
        return;
    }
    int64_t wanted = need.units < pool->units ? need.units : pool->units;
    if (pool->units > LOOKAHEAD_UNITS_MAX) {
        wanted = (int64_t)((double)wanted / (double)pool->units *
                           LOOKAHEAD_UNITS_MAX);
    }
    INVARIANT(wanted >= 0 && wanted <= LOOKAHEAD_UNITS_MAX);
    units[pool->lane / LOOKAHEAD_LANES] += (uint64_t)wanted
                                           << pool->lane % LOOKAHEAD_LANES * 16;
    INVARIANT((units[pool->lane / LOOKAHEAD_LANES] & LOOKAHEAD_GUARDS) == 0);
}

static void list_busy(struct lookahead_outline *outline,
                      struct lookahead_model *model,
                      const struct sched *sched,
                      uint32_t run)
{
    model->busy_count = 0;
    for (uint32_t ix = 0; ix < sched->in_flight_count; ix++) {
        uint32_t task = sched->in_flight[ix];
        if (!is_session(sched, run, task)) {
            continue;
        }
        INVARIANT(model->busy_count < model->busy_capacity);
        struct lookahead_busy *busy = &model->busy[model->busy_count++];
        *busy = (struct lookahead_busy){
            .until_ns = lookahead_left_ns(sched, task),
        };
        INVARIANT(busy->until_ns > 0);
        each_pool(outline, sched, task, add_units, busy->units);
    }
}

static void list_units(struct lookahead_outline *outline,
                       struct lookahead_model *model,
                       const struct sched *sched)
{
    for (uint32_t ix = 0; ix < model->count; ix++) {
        uint64_t units[LOOKAHEAD_WORDS_MAX] = {0};
        each_pool(outline, sched, model->task[ix], add_units, units);
        for (uint32_t word = 0; word < model->words; word++) {
            model->units[(size_t)ix * model->words + word] = units[word];
        }
    }
}

bool lookahead_outline(struct lookahead_outline *outline,
                       struct lookahead_model *model,
                       struct sched *sched,
                       uint32_t run)
{
    number_tasks(outline, model, sched, run);
    if (model->count == 0) {
        return false;
    }
    number_groups(outline, model, sched);
    link_tasks(outline, model, sched);
    for (uint32_t ix = 0; ix < sched->limits.pool_count; ix++) {
        outline->pools[ix] = (struct lookahead_pool){.lane = ID_NONE};
    }
    bool flies = true;
    for (uint32_t ix = 0; ix < sched->in_flight_count; ix++) {
        if (is_session(sched, run, sched->in_flight[ix])) {
            each_pool(outline, sched, sched->in_flight[ix], add_demand, &flies);
        }
    }
    flies = false;
    for (uint32_t ix = 0; ix < model->count; ix++) {
        each_pool(outline, sched, model->task[ix], add_demand, &flies);
    }
    find_lanes(outline, model, sched);
    list_busy(outline, model, sched, run);
    list_units(outline, model, sched);
    lookahead_model_finish(model);
    return true;
}
