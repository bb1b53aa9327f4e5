/* SPDX-License-Identifier: MIT */
/* Who starts: everything that is ready is sorted and tried, again and again. */
#include "tests/property/model.h"

static bool same_counter(const struct model_pool *a, const struct model_pool *b)
{
    return a->share == b->share && a->key == b->key;
}

/* A task in the background takes more: see struct model_pool. */
static bool takes(const struct model_task *task, const struct model_pool *pool)
{
    return pool->background == 0 || task->background;
}

/* An issue: open groups that wait for a queue are none. */
static bool counts_issues(const struct model *model,
                          const struct model_pool *pool)
{
    return model->limits[pool->limit].spec.per == ID_NONE;
}

/* Units that the session of a leader has of what the pool counts. */
static int64_t units_of(const struct model_task *leader,
                        const struct model_pool *pool)
{
    int64_t units = 0;
    for (uint32_t ix = 0; ix < leader->pool_count; ix++) {
        const struct model_pool *own = &leader->pools[ix];
        units += same_counter(own, pool) && takes(leader, own) ? own->units : 0;
    }
    return units;
}

int64_t model_used(const struct model *model, const struct model_pool *pool)
{
    int64_t used = 0;
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        const struct model_task *t = &model->tasks[ix];
        if (model_in_flight(t) && t->leader == ix) {
            used += units_of(t, pool);
        }
    }
    for (uint32_t ix = 0; ix < model->group_count; ix++) {
        const struct model_group *g = &model->groups[ix];
        for (uint32_t n = 0; g->open && n < g->pool_count; n++) {
            if (same_counter(&g->pools[n], pool) &&
                (g->counted || !counts_issues(model, &g->pools[n]))) {
                used += g->pools[n].units;
            }
        }
    }
    return used;
}

/* Whether its run is stopped, and it is not to run in the end. */
static bool is_halted(const struct model *model, const struct model_task *t)
{
    return model->runs[t->run].stopped != SCHED_NOT_STOPPED && !t->last;
}

static bool keeps_open(const struct model *model, const struct model_task *t)
{
    const struct provider *e = &model->providers[t->provider];
    bool backs_off =
        t->backing_off && t->refusals == 0 && !t->snoozed && !t->early;
    bool ready = t->state == TASK_READY && !is_halted(model, t) &&
                 !model_is_closed(model, t) &&
                 provider_state(e, model->now_ns) == PROVIDER_OPEN;
    return !t->background &&
           (model_in_flight(t) || ((ready || backs_off) && !t->held));
}

/* Open groups that are worked on count as issues, free units or not. */
static void count_issues(struct model *model)
{
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        const struct model_task *t = &model->tasks[ix];
        struct model_group *g = &model->groups[t->group];
        if (g->open && !model->classes[t->class_ix].queue &&
            keeps_open(model, t)) {
            g->counted = true;
        }
    }
}

/* Whether there were any to close, or that are no issues any more. */
static bool close_groups(struct model *model)
{
    bool busy[MODEL_GROUPS] = {false};
    bool worked_on[MODEL_GROUPS] = {false};
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        const struct model_task *t = &model->tasks[ix];
        if (keeps_open(model, t)) {
            busy[t->group] = true;
            worked_on[t->group] =
                worked_on[t->group] || !model->classes[t->class_ix].queue;
        }
    }
    bool closed = false;
    for (uint32_t ix = 0; ix < model->group_count; ix++) {
        struct model_group *g = &model->groups[ix];
        bool open = g->open && busy[ix];
        bool counted = open && worked_on[ix];
        closed = closed || g->open != open || (g->counted && !counted);
        g->open = open;
        g->counted = counted;
    }
    return closed;
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

/* ---- what is kept for whom ---- */

/* Units that are kept for a task until there are enough. */
struct reservation {
    struct model_pool pool;
    bool strict;      /* nobody may take any meanwhile */
    int64_t until_ns; /* when there will be enough, */
    int64_t spare;    /* and how many more then */
};

struct reservations {
    struct reservation all[MODEL_TASKS * 4];
    uint32_t count;
};

static const struct reservation *reserved(const struct reservations *kept,
                                          const struct model_pool *pool)
{
    for (uint32_t ix = 0; ix < kept->count; ix++) {
        if (same_counter(&kept->all[ix].pool, pool)) {
            return &kept->all[ix];
        }
    }
    return NULL;
}

/* When the session of a leader is expected to end: now, if it is overdue. */
static int64_t end_of(const struct model *model, uint32_t leader)
{
    const struct model_task *t = &model->tasks[leader];
    int64_t longest_ns = 0;
    int64_t sum_ns = 0;
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        const struct model_task *other = &model->tasks[ix];
        if (model_in_flight(other) && other->leader == leader) {
            sum_ns += other->estimate_ns;
            longest_ns = other->estimate_ns > longest_ns ? other->estimate_ns
                                                         : longest_ns;
        }
    }
    int64_t marginal = model->classes[t->class_ix].marginal;
    int64_t end_ns =
        t->started_ns + longest_ns + (sum_ns - longest_ns) / 100 * marginal;
    return end_ns > model->now_ns ? end_ns : model->now_ns;
}

/* Units that tasks may have of a limit in all, and those they may take now. */
static int64_t most_of(const struct model *model, uint32_t limit)
{
    int64_t max = model_max(model, limit);
    return max == LIMIT_NONE ? max : max + model->limits[limit].ahead;
}

static int64_t free_of(const struct model *model, const struct model_pool *pool)
{
    return most_of(model, pool->limit) - model_used(model, pool);
}

/* Free units at a time, if sessions end as expected. */
static int64_t
free_at(const struct model *model, const struct model_pool *pool, int64_t at_ns)
{
    int64_t free = free_of(model, pool);
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        const struct model_task *t = &model->tasks[ix];
        if (model_in_flight(t) && t->leader == ix &&
            end_of(model, ix) <= at_ns) {
            free += units_of(t, pool);
        }
    }
    return free;
}

static struct reservation reserve(const struct model *model,
                                  const struct model_task *t,
                                  const struct model_pool *pool)
{
    struct reservation made = {.pool = *pool, .strict = true};
    if (model_is_aged(model, t)) {
        return made;
    }
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        if (!model_in_flight(&model->tasks[ix]) ||
            model->tasks[ix].leader != ix) {
            continue;
        }
        int64_t end_ns = end_of(model, ix);
        int64_t spare = free_at(model, pool, end_ns) - pool->units;
        if (spare >= 0 && (made.strict || end_ns < made.until_ns)) {
            made.strict = false;
            made.until_ns = end_ns;
            made.spare = spare;
        }
    }
    return made;
}

/* Whether a task may take units that are kept for another. */
static bool may_pass(const struct model *model,
                     const struct model_task *t,
                     const struct model_pool *pool,
                     const struct reservation *kept)
{
    return !kept->strict && (model->now_ns + t->estimate_ns <= kept->until_ns ||
                             pool->units <= kept->spare);
}

/* What a task needs and cannot have now. */
struct shortage {
    struct model_pool pools[MODEL_POOLS * 2];
    uint32_t count;
    uint32_t lack; /* 1: that one can be reserved */
};

static void look_at(const struct model *model,
                    const struct reservations *kept,
                    const struct model_task *t,
                    const struct model_pool *pool,
                    struct shortage *short_of)
{
    int64_t max = most_of(model, pool->limit);
    int64_t free = free_of(model, pool);
    const struct reservation *other = reserved(kept, pool);
    bool none = free <= 0;
    if (other != NULL) {
        none = free < pool->units || !may_pass(model, t, pool, other);
    }
    if (none || free < pool->units) {
        short_of->pools[short_of->count++] = *pool;
        /* One that has none at all, or never as many, counts as many:
         * there is nothing to reserve. */
        short_of->lack += none || max < pool->units ? MODEL_TASKS : 1;
    }
}

static bool opens_group(const struct model *model, const struct model_task *t)
{
    return !t->background && !model->groups[t->group].open;
}

static struct shortage shortage_of(const struct model *model,
                                   const struct reservations *kept,
                                   const struct model_task *t)
{
    struct shortage short_of;
    short_of.count = 0; /* not all of it is cleared: that would be the cost */
    short_of.lack = 0;
    for (uint32_t ix = 0; ix < t->pool_count; ix++) {
        if (takes(t, &t->pools[ix])) {
            look_at(model, kept, t, &t->pools[ix], &short_of);
        }
    }
    const struct model_group *g = &model->groups[t->group];
    bool queue = model->classes[t->class_ix].queue;
    for (uint32_t ix = 0; opens_group(model, t) && ix < g->pool_count; ix++) {
        if (!queue || !counts_issues(model, &g->pools[ix])) {
            look_at(model, kept, t, &g->pools[ix], &short_of);
        }
    }
    return short_of;
}

/* Keep what is free of the pools that a task lacks, unless one never fits. */
static void keep_for(const struct model *model,
                     const struct model_task *t,
                     const struct shortage *short_of,
                     struct reservations *kept)
{
    for (uint32_t ix = 0; ix < short_of->count; ix++) {
        const struct model_pool *pool = &short_of->pools[ix];
        if (most_of(model, pool->limit) < pool->units) {
            return;
        }
    }
    for (uint32_t ix = 0; ix < short_of->count; ix++) {
        const struct model_pool *pool = &short_of->pools[ix];
        int64_t free = free_of(model, pool);
        if (free > 0 && reserved(kept, pool) == NULL) {
            kept->all[kept->count++] = reserve(model, t, pool);
        }
    }
}

static bool is_shut(const struct model *model, const struct model_task *t)
{
    return run_is_shut(model, t->run) || is_halted(model, t) ||
           model_is_closed(model, t) ||
           provider_state(&model->providers[t->provider], model->now_ns) !=
               PROVIDER_OPEN;
}

/* Whether it fits; if not, keep for it what it alone waits for. */
static bool
fits(const struct model *model, uint32_t task, struct reservations *kept)
{
    const struct model_task *t = &model->tasks[task];
    if (is_shut(model, t)) {
        return false;
    }
    struct shortage short_of = shortage_of(model, kept, t);
    /* One that has waited for too long keeps all that it can. */
    if (short_of.lack == 1 || model_is_aged(model, t)) {
        keep_for(model, t, &short_of, kept);
    }
    return short_of.lack == 0;
}

/* ---- starting ---- */

/* Whether anybody will ask when it started: for turns by service, or to know
 * when a task that needs several units can have them. */
static bool keeps_times(const struct model *model, const struct model_task *t)
{
    enum sched_policy policy = model->runs[t->run].policy;
    bool kept = policy == SCHED_FAIR || policy == SCHED_LOOKAHEAD;
    for (uint32_t ix = 0; !kept && ix < model->task_count; ix++) {
        const struct model_task *other = &model->tasks[ix];
        for (uint32_t n = 0; n < other->pool_count; n++) {
            kept = kept || other->pools[n].units > 1;
        }
    }
    return kept;
}

static void set_starting(struct model *model,
                         uint32_t task,
                         uint32_t leader,
                         uint32_t place)
{
    struct model_task *t = &model->tasks[task];
    t->state = TASK_STARTING;
    t->not_before_ns = 0;
    t->leader = leader;
    t->token = model->last_token;
    /* Followers need no start time: it tells their place instead. */
    int64_t now_ns = keeps_times(model, t) ? model->now_ns : 0;
    t->started_ns = place == 0 ? now_ns : place;
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
    uint32_t count = 1;
    while (count < model->classes[t->class_ix].batch) {
        uint32_t sorted[MODEL_TASKS];
        if (model_sort(model, t->shape, sorted) == 0) {
            break;
        }
        struct model_task *next = &model->tasks[sorted[0]];
        set_starting(model, sorted[0], leader, count++);
        /* It rides along: its group, if closed, stays closed. */
        if (opens_group(model, next)) {
            next->background = true;
        }
        strbuf_addf(log, " %u", sorted[0]);
    }
    strbuf_adds(log, "\n");
    provider_sent(&model->providers[t->provider], model->last_token);
    model_take_turn(model, leader, count);
    count_issues(model);
}

/* ---- what must hold, whatever the rules are ---- */

/* Whether a session has units of a share that lends, that is a percentage. */
static bool is_share(const struct model *model, const struct model_pool *pool)
{
    const struct limit_spec *spec = &model->limits[pool->limit].spec;
    return spec->background && spec->percent > 0;
}

/* Sessions in the background stay below their share, or what is left over. */
static bool keeps_share(const struct model *model, uint32_t leader)
{
    const struct model_task *t = &model->tasks[leader];
    for (uint32_t ix = 0; t->background && ix < t->pool_count; ix++) {
        const struct model_pool *pool = &t->pools[ix];
        const struct limit_spec *spec = &model->limits[pool->limit].spec;
        int64_t cap = model->limits[spec->base].spec.max;
        if (!is_share(model, pool) || cap == LIMIT_NONE) {
            continue;
        }
        int64_t share = cap * spec->percent / 100;
        int64_t left = cap - model->runs[t->run].width;
        share = share > 0 ? share : 1;
        if (model_used(model, pool) > (share > left ? share : left)) {
            return false;
        }
    }
    return true;
}

/* Units of a pool that sessions in the foreground have. */
static int64_t foreground_of(const struct model *model,
                             const struct model_pool *pool)
{
    int64_t units = 0;
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        const struct model_task *t = &model->tasks[ix];
        if (model_in_flight(t) && t->leader == ix && !t->background) {
            units += units_of(t, pool);
        }
    }
    return units;
}

/*
 * Whether a task in the background waits for nothing but its share although
 * the foreground cannot use all the sessions that are free.
 */
static bool is_idle_for(const struct model *model,
                        const struct reservations *kept,
                        const struct model_task *t)
{
    struct shortage short_of = shortage_of(model, kept, t);
    const struct model_pool *share = &short_of.pools[0];
    if (is_shut(model, t) || !t->background || short_of.count != 1 ||
        !is_share(model, share) || share->units > 1 ||
        reserved(kept, share) != NULL) {
        return false;
    }
    uint32_t base = model->limits[share->limit].spec.base;
    struct model_pool sessions = {.limit = base, .share = base, .key = ID_NONE};
    int64_t cap = model_max(model, base);
    int64_t used = model_used(model, &sessions);
    int64_t foreground = foreground_of(model, &sessions);
    int64_t left = model->runs[t->run].width - foreground;
    /* The foreground may have units of it, and a session several. */
    bool alone = model_used(model, share) <= used - foreground;
    return alone && cap != LIMIT_NONE && cap - used > (left > 0 ? left : 0);
}

/* ---- a pass ---- */

static bool start_one(struct model *model, struct model_pass *pass)
{
    model_count(model);
    uint32_t sorted[MODEL_TASKS];
    uint32_t count = model_sort(model, ID_NONE, sorted);
    struct reservations kept;
    kept.count = 0;
    for (uint32_t ix = 0; ix < count; ix++) {
        if (fits(model, sorted[ix], &kept)) {
            start(model, sorted[ix], &pass->starts);
            if (!keeps_share(model, sorted[ix])) {
                pass->broken = "the background takes more than its share";
            }
            return true;
        }
        if (is_idle_for(model, &kept, &model->tasks[sorted[ix]])) {
            pass->broken = "a session is idle that only the background can use";
        }
    }
    return false;
}

void model_take_pass(struct model *model, struct model_pass *pass)
{
    *pass = (struct model_pass){.starts = {0}};
    model_rest(model);
    (void)close_groups(model);
    model_set_goals(model);
    for (uint32_t ix = 0; ix < model->task_count; ix++) {
        pass->ends[ix] = model->tasks[ix].end_due;
        model->tasks[ix].end_due = false;
    }
    while (start_one(model, pass) || close_groups(model)) {
    }
    for (uint32_t ix = 0; ix < model->provider_count; ix++) {
        pass->circuits[ix] = model->providers[ix].notice;
        model->providers[ix].notice = false;
    }
    for (uint32_t ix = 0; ix < model->run_count; ix++) {
        struct model_run *run = &model->runs[ix];
        pass->stopped[ix] = run->stop_due;
        run->stop_due = false;
        bool flying = false;
        for (uint32_t task = 0; task < model->task_count; task++) {
            flying = flying || (model->tasks[task].run == ix &&
                                model_in_flight(&model->tasks[task]));
        }
        pass->barriers[ix] = run->barrier_due && !run->barrier_running &&
                             !model->draining && (!run->sync_drain || !flying);
        if (pass->barriers[ix]) {
            run->barrier_due = false;
            run->barrier_running = true;
        }
    }
}
