/* SPDX-License-Identifier: MIT */
/* Who starts: everything that is ready is sorted and tried, again and again. */
#include "tests/property/model.h"

#include <string.h>

static bool in_flight(const struct model_task *task)
{
    return task->state == TASK_STARTING || task->state == TASK_RUNNING;
}

static bool is_aged(const struct model *model, const struct model_task *t)
{
    int64_t max_wait_ns = model->classes[t->class_ix].max_wait_ns;
    return max_wait_ns != SCHED_NEVER &&
           model->now_ns - t->ready_ns >= max_wait_ns;
}

int64_t model_max(const struct model *model, uint32_t limit)
{
    const struct limit_spec *spec = &model->limits[limit].spec;
    if (spec->percent == 0) {
        return spec->max;
    }
    int64_t base = model->limits[spec->base].spec.max;
    if (base == LIMIT_NONE) {
        return LIMIT_NONE;
    }
    int64_t max = base * spec->percent / 100;
    return max > 0 ? max : 1;
}

static bool same_counter(const struct model_pool *a, const struct model_pool *b)
{
    return a->share == b->share && a->key == b->key;
}

static int64_t units_in(const struct model_pool *pools,
                        uint32_t count,
                        const struct model_pool *pool)
{
    int64_t units = 0;
    for (uint32_t ix = 0; ix < count; ix++) {
        units += same_counter(&pools[ix], pool) ? pools[ix].units : 0;
    }
    return units;
}

int64_t model_used(const struct model *model, const struct model_pool *pool)
{
    int64_t used = 0;
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        const struct model_task *t = &model->tasks[ix];
        if (in_flight(t) && t->leader == ix) {
            used += units_in(t->pools, t->pool_count, pool);
        }
    }
    for (uint32_t ix = 0; ix < model->group_count; ix++) {
        const struct model_group *g = &model->groups[ix];
        if (g->open) {
            used += units_in(g->pools, g->pool_count, pool);
        }
    }
    return used;
}

/* Whether there were any to close. */
static bool close_groups(struct model *model)
{
    bool busy[MODEL_GROUPS] = {false};
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        const struct model_task *t = &model->tasks[ix];
        const struct provider *e = &model->providers[t->provider];
        bool ready = t->state == TASK_READY &&
                     provider_state(e, model->now_ns) == PROVIDER_OPEN;
        if (!t->background &&
            (in_flight(t) ||
             ((ready || (t->backing_off && t->refusals == 0)) && !t->held))) {
            busy[t->group] = true;
        }
    }
    bool closed = false;
    for (uint32_t group = 0; group < model->group_count; group++) {
        closed = closed || (model->groups[group].open && !busy[group]);
        model->groups[group].open = model->groups[group].open && busy[group];
    }
    return closed;
}

/* A first-come run and a class that is a queue have no ranks: their tasks go
 * before others'. */
static int64_t rank_of(const struct model *model, const struct model_task *t)
{
    return model->runs[t->run].policy == SCHED_FIFO ||
                   model->classes[t->class_ix].queue
               ? INT64_MAX
               : t->rank_ns;
}

/* Negative: a goes first. The rules one after the other. */
static int compare(const struct model *model,
                   const struct model_task *a,
                   const struct model_task *b)
{
    bool aged_a = is_aged(model, a);
    bool aged_b = is_aged(model, b);
    if (aged_a != aged_b) {
        return aged_a ? -1 : 1;
    }
    if (!aged_a) {
        if (a->background != b->background) {
            return a->background ? 1 : -1;
        }
        if (a->tier != b->tier) {
            return a->tier < b->tier ? -1 : 1;
        }
        bool open_a = a->background || model->groups[a->group].open;
        bool open_b = b->background || model->groups[b->group].open;
        if (open_a != open_b) {
            return open_a ? -1 : 1;
        }
        int64_t service_a = model->runs[a->run].policy == SCHED_FAIR
                                ? model->groups[a->group].service_ns
                                : 0;
        int64_t service_b = model->runs[b->run].policy == SCHED_FAIR
                                ? model->groups[b->group].service_ns
                                : 0;
        if (service_a != service_b) {
            return service_a < service_b ? -1 : 1;
        }
        int64_t rank_a = rank_of(model, a);
        int64_t rank_b = rank_of(model, b);
        if (rank_a != rank_b) {
            return rank_a > rank_b ? -1 : 1;
        }
    }
    return a->ready_seq < b->ready_seq ? -1 : 1;
}

static uint32_t sort_ready(const struct model *model, uint32_t *sorted)
{
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        if (model->tasks[ix].state != TASK_READY || model->tasks[ix].held) {
            continue;
        }
        uint32_t at = count++;
        while (at > 0 && compare(model,
                                 &model->tasks[ix],
                                 &model->tasks[sorted[at - 1]]) < 0) {
            sorted[at] = sorted[at - 1];
            at--;
        }
        sorted[at] = ix;
    }
    return count;
}

static bool run_is_shut(const struct model *model, uint32_t run)
{
    const struct model_run *r = &model->runs[run];
    if (model->draining || r->paused ||
        (r->sync_drain && (r->barrier_due || r->barrier_running))) {
        return true;
    }
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        if (model->tasks[ix].run == run && model->tasks[ix].asking) {
            return true;
        }
    }
    return false;
}

struct reservations {
    struct model_pool pools[MODEL_TASKS * 4];
    uint32_t count;
};

static bool is_reserved(const struct reservations *kept,
                        const struct model_pool *pool)
{
    return units_in(kept->pools, kept->count, pool) > 0;
}

/* How many of these pools lack units; they are added to *lacking. */
static uint32_t lacking_of(const struct model *model,
                           const struct reservations *kept,
                           const struct model_pool *pools,
                           uint32_t count,
                           struct reservations *lacking)
{
    uint32_t lack = 0;
    for (uint32_t ix = 0; ix < count; ix++) {
        int64_t max = model_max(model, pools[ix].limit);
        int64_t free = max - model_used(model, &pools[ix]);
        bool none = free <= 0 || is_reserved(kept, &pools[ix]);
        if (none || free < pools[ix].units) {
            lacking->pools[lacking->count++] = pools[ix];
            /* One that has none at all, or never as many, counts as many:
             * there is nothing to reserve. */
            lack += none || max < pools[ix].units ? MODEL_TASKS : 1;
        }
    }
    return lack;
}

static bool opens_group(const struct model *model, const struct model_task *t)
{
    return !t->background && !model->groups[t->group].open;
}

/* Keep what is free of the pools that a task lacks, unless one never fits. */
static void keep_for(const struct model *model,
                     const struct reservations *lacking,
                     struct reservations *kept)
{
    for (uint32_t ix = 0; ix < lacking->count; ix++) {
        const struct model_pool *pool = &lacking->pools[ix];
        if (model_max(model, pool->limit) < pool->units) {
            return;
        }
    }
    for (uint32_t ix = 0; ix < lacking->count; ix++) {
        const struct model_pool *pool = &lacking->pools[ix];
        int64_t free = model_max(model, pool->limit) - model_used(model, pool);
        if (free > 0 && !is_reserved(kept, pool)) {
            kept->pools[kept->count++] = *pool;
        }
    }
}

/* Whether it fits; if not, keep for it what it alone waits for. */
static bool
fits(const struct model *model, uint32_t task, struct reservations *kept)
{
    const struct model_task *t = &model->tasks[task];
    bool shut = run_is_shut(model, t->run) ||
                provider_state(&model->providers[t->provider], model->now_ns) !=
                    PROVIDER_OPEN;
    struct reservations lacking;
    lacking.count = 0; /* not all of it is cleared: that would be the cost */
    uint32_t lack = lacking_of(model, kept, t->pools, t->pool_count, &lacking);
    if (opens_group(model, t)) {
        const struct model_group *g = &model->groups[t->group];
        lack += lacking_of(model, kept, g->pools, g->pool_count, &lacking);
    }
    /* One that has waited for too long keeps all that it can. */
    if (!shut && (lack == 1 || is_aged(model, t))) {
        keep_for(model, &lacking, kept);
    }
    return !shut && lack == 0;
}

static bool same_pools(const struct model_pool *a,
                       uint32_t a_count,
                       const struct model_pool *b,
                       uint32_t b_count)
{
    return a_count == b_count && memcmp(a, b, a_count * sizeof(a[0])) == 0;
}

static bool may_share(const struct model *model,
                      const struct model_task *a,
                      const struct model_task *b)
{
    const struct model_group *group_a = &model->groups[a->group];
    const struct model_group *group_b = &model->groups[b->group];
    return a->run == b->run && a->class_ix == b->class_ix &&
           a->provider == b->provider && a->batch_key == b->batch_key &&
           same_pools(a->pools, a->pool_count, b->pools, b->pool_count) &&
           same_pools(group_a->pools,
                      group_a->pool_count,
                      group_b->pools,
                      group_b->pool_count);
}

static void set_starting(struct model *model,
                         uint32_t task,
                         uint32_t leader,
                         uint32_t place)
{
    struct model_task *t = &model->tasks[task];
    t->state = TASK_STARTING;
    t->leader = leader;
    t->token = model->last_token;
    /* Followers need no start time: it tells their place instead. */
    t->started_ns = place == 0 ? model->now_ns : place;
    model->groups[t->group].service_ns += t->estimate_ns;
}

static void start(struct model *model, uint32_t leader, struct strbuf *log)
{
    struct model_task *t = &model->tasks[leader];
    model->last_token++;
    model->groups[t->group].open =
        model->groups[t->group].open || !t->background;
    set_starting(model, leader, leader, 0);
    strbuf_addf(log, "start %llu:", (unsigned long long)model->last_token);
    strbuf_addf(log, " %u", leader);
    for (uint32_t n = 1; n < model->classes[t->class_ix].batch; n++) {
        uint32_t sorted[MODEL_TASKS];
        uint32_t count = sort_ready(model, sorted);
        uint32_t ix = 0;
        while (ix < count && !may_share(model, t, &model->tasks[sorted[ix]])) {
            ix++;
        }
        if (ix == count) {
            break;
        }
        set_starting(model, sorted[ix], leader, n);
        /* It rides along: its group, if closed, stays closed. */
        if (opens_group(model, &model->tasks[sorted[ix]])) {
            model->tasks[sorted[ix]].background = true;
        }
        strbuf_addf(log, " %u", sorted[ix]);
    }
    strbuf_adds(log, "\n");
    provider_sent(&model->providers[t->provider], model->last_token);
}

static bool start_one(struct model *model, struct strbuf *log)
{
    uint32_t sorted[MODEL_TASKS];
    uint32_t count = sort_ready(model, sorted);
    struct reservations kept;
    kept.count = 0;
    for (uint32_t ix = 0; ix < count; ix++) {
        if (fits(model, sorted[ix], &kept)) {
            start(model, sorted[ix], log);
            return true;
        }
    }
    return false;
}

void model_take_pass(struct model *model, struct model_pass *pass)
{
    *pass = (struct model_pass){.starts = {0}};
    (void)close_groups(model);
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        pass->ends[ix] = model->tasks[ix].end_due;
        model->tasks[ix].end_due = false;
    }
    while (start_one(model, &pass->starts) || close_groups(model)) {
    }
    for (uint32_t ix = 0; ix < model->provider_count; ix++) {
        pass->circuits[ix] = model->providers[ix].notice;
        model->providers[ix].notice = false;
    }
    for (uint32_t ix = 0; ix < model->run_count; ix++) {
        struct model_run *run = &model->runs[ix];
        bool flying = false;
        for (uint32_t task = 0; task < model->task_count; task++) {
            flying = flying || (model->tasks[task].run == ix &&
                                in_flight(&model->tasks[task]));
        }
        pass->barriers[ix] = run->barrier_due && !run->barrier_running &&
                             !model->draining && (!run->sync_drain || !flying);
        if (pass->barriers[ix]) {
            run->barrier_due = false;
            run->barrier_running = true;
        }
    }
}
