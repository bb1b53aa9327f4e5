/* SPDX-License-Identifier: MIT */
/*
 * Dispatcher: decides which tasks start.
 *
 * Queues wait at pools. A pool is awake while it has waiters, free units and no
 * reservation; awake pools are in a heap by their best waiter, so the root of
 * that heap leads to the best task that might fit. The dispatcher examines it
 * against all pools it needs:
 *
 * - All have units: the task starts.
 * - A pool has no units: the queue moves there and is not examined until that
 *   pool has units.
 * - Exactly one pool has some units, but too few: they are reserved for this
 *   task, and the queue waits there. Later tasks may take them only if this
 *   does not delay it: see backfill.c. Those that may not are set aside.
 * - Several pools have too few: the queue is set aside. Only a task that has
 *   waited for too long reserves units of one pool while it waits for another
 *   (saves_up). A task that needs more than the maximum of a limit, because the
 *   limit was lowered, is set aside as well.
 *
 * In a lookahead run, a task that fits may have to wait for another task of the
 * schedule; it reserves nothing meanwhile: see lookahead/lookahead.h.
 *
 * Each step starts a task or removes a queue or a pool from consideration, so a
 * scan terminates. Each start may change the order and the free units, so the
 * scan for the next start repeats the reservations.
 */
#include "core/sched_internal.h"

#include "base/invariant.h"
#include "core/lookahead/lookahead.h"

/* So many queues are looked at that may not pass a reservation. */
enum { BACKFILL_LOOK = 128 };

static bool queue_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct sched *sched = ctx;
    const struct queue *one = &sched->queues[a];
    const struct queue *other = &sched->queues[b];
    if (one->top.high == other->top.high && one->urgency != other->urgency) {
        return one->urgency < other->urgency;
    }
    return ready_key_before(&one->top, &other->top);
}

static bool pool_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct sched *sched = ctx;
    const struct pool *pools = sched->limits.pools;
    return queue_before(sched, pools[a].waiting, pools[b].waiting);
}

static struct pheap_forest pool_forest(const struct sched *sched)
{
    return (struct pheap_forest){sched->limits.pool_links,
                                 sizeof(struct pheap_link),
                                 pool_before,
                                 sched};
}

static struct pheap_forest queue_forest(const struct sched *sched)
{
    return (struct pheap_forest){sched->queue_links,
                                 sizeof(struct pheap_link),
                                 queue_before,
                                 sched};
}

static void sleep_pool(struct sched *sched, uint32_t pool)
{
    struct pool *r = &sched->limits.pools[pool];
    if (r->awake) {
        INVARIANT(r->waiting != ID_NONE);
        struct pheap_forest forest = pool_forest(sched);
        sched->awake = pheap_remove(&forest, sched->awake, pool);
        r->awake = false;
    }
}

/* Wake a pool if its waiting queues could find units, or put it to sleep. */
static void wake_pool(struct sched *sched, uint32_t pool)
{
    struct pool *r = &sched->limits.pools[pool];
    if (r->waiting == ID_NONE) {
        INVARIANT(!r->awake);
    } else if (limits_is_shut(&sched->limits, pool) ||
               limits_free(&sched->limits, pool) <= 0) {
        sleep_pool(sched, pool);
    } else if (!r->awake) {
        struct pheap_forest forest = pool_forest(sched);
        sched->awake = pheap_add(&forest, sched->awake, pool);
        r->awake = true;
    }
}

/* Wake the pools of a counter whose units changed. */
static void wake_counter(struct sched *sched, const struct counter *counter)
{
    for (uint32_t pool = counter->first_pool; pool != ID_NONE;
         pool = sched->limits.pools[pool].next_of_counter) {
        if (sched->limits.pools[pool].waiting != ID_NONE) {
            wake_pool(sched, pool);
        }
    }
}

void dispatch_wait(struct sched *sched, uint32_t queue, uint32_t pool)
{
    struct queue *q = &sched->queues[queue];
    INVARIANT(q->at_pool == ID_NONE);
    INVARIANT(!q->aside);
    q->at_pool = pool;
    struct pool *r = &sched->limits.pools[pool];
    if (r->waiting == ID_NONE) {
        sched->limits.limits[r->limit].waiting++;
    }
    struct pheap_forest forest = queue_forest(sched);
    if (r->waiting != ID_NONE && queue_before(sched, r->waiting, queue)) {
        /* The best waiter is unchanged, and so is the pool's position. */
        INVARIANT(sched->limits.limits[r->limit].waiting > 0);
        r->waiting = pheap_add(&forest, r->waiting, queue);
        return;
    }
    INVARIANT(r->waiting != queue);
    sleep_pool(sched, pool);
    r->waiting = pheap_add(&forest, r->waiting, queue);
    wake_pool(sched, pool);
}

void dispatch_leave(struct sched *sched, uint32_t queue)
{
    struct queue *q = &sched->queues[queue];
    INVARIANT(q->at_pool != ID_NONE);
    uint32_t pool = q->at_pool;
    struct pool *r = &sched->limits.pools[pool];
    struct pheap_forest forest = queue_forest(sched);
    q->at_pool = ID_NONE;
    if (r->waiting != queue) {
        INVARIANT(r->waiting != ID_NONE);
        r->waiting = pheap_remove(&forest, r->waiting, queue);
        return;
    }
    sleep_pool(sched, pool);
    r->waiting = pheap_remove(&forest, r->waiting, queue);
    if (r->waiting == ID_NONE) {
        INVARIANT(sched->limits.limits[r->limit].waiting > 0);
        sched->limits.limits[r->limit].waiting--;
    }
    wake_pool(sched, pool);
}

/* A task that fits has units: anything else is a bug. */
static void expect_free(const struct sched *sched, uint32_t set)
{
    const struct need_set *needs = &sched->sets[set];
    for (uint32_t ix = 0; ix < needs->count; ix++) {
        struct pool_need need = sched->needs[needs->first + ix];
        INVARIANT(limits_free(&sched->limits, need.pool) >= need.units);
    }
}

/* Take the units of a set, free or not, or return them. */
static void move_units(struct sched *sched, uint32_t set, int64_t sign)
{
    const struct need_set *needs = &sched->sets[set];
    for (uint32_t ix = 0; ix < needs->count; ix++) {
        struct pool_need need = sched->needs[needs->first + ix];
        struct counter *counter =
            &sched->limits.counters[sched->limits.pools[need.pool].counter];
        counter->used += sign * need.units;
        INVARIANT(counter->used >= 0);
        wake_counter(sched, counter);
    }
}

void dispatch_occupy(struct sched *sched, uint32_t set)
{
    move_units(sched, set, 1);
}

void dispatch_give(struct sched *sched, uint32_t set)
{
    move_units(sched, set, -1);
}

/* Take the units of a session, free or not, or return them: a leader stays in
 * the background as when it started. */
static void move_session(struct sched *sched, uint32_t leader, int64_t sign)
{
    const struct shape *shape = sched_shape_of(sched, leader);
    move_units(sched, shape->needs, sign);
    if (sched_has(sched, leader, TASK_BACKGROUND) &&
        shape->background_needs != ID_NONE) {
        move_units(sched, shape->background_needs, sign);
    }
}

void dispatch_occupy_session(struct sched *sched, uint32_t leader)
{
    move_session(sched, leader, 1);
}

void dispatch_give_session(struct sched *sched, uint32_t leader)
{
    move_session(sched, leader, -1);
}

/* The maximum of a limit changed: wake its pools or put them to sleep. */
void dispatch_wake_limit(struct sched *sched, uint32_t limit)
{
    for (uint32_t pool = sched->limits.limits[limit].first_pool;
         pool != ID_NONE;
         pool = sched->limits.pools[pool].next_of_limit) {
        INVARIANT(sched->limits.pools[pool].limit == limit);
        wake_pool(sched, pool);
    }
}

void dispatch_set_open(struct sched *sched, uint32_t pool, bool open)
{
    uint32_t limit = sched->limits.pools[pool].limit;
    INVARIANT(sched->limits.limits[limit].kind != LIMIT_PLAN);
    int64_t max = open ? LIMIT_NONE : 0;
    if (sched->limits.limits[limit].spec.max != max) {
        limits_set_max(&sched->limits, limit, max, 0);
        dispatch_wake_limit(sched, limit);
    }
    INVARIANT((limits_free(&sched->limits, pool) > 0) == open);
}

bool dispatch_takes(const struct sched *sched, uint32_t provider)
{
    const struct limits *limits = &sched->limits;
    uint32_t pool = sched->providers[provider].pool;
    return limits->limits[limits->pools[pool].limit].spec.max > 0;
}

void dispatch_check_provider(struct sched *sched, uint32_t provider)
{
    const struct provider *e = &sched->providers[provider];
    bool open = provider_state(e, sched->now_ns) == PROVIDER_OPEN;
    if (open != dispatch_takes(sched, provider)) {
        dispatch_set_open(sched, e->pool, open);
        ready_recount_provider(sched, provider);
    }
    INVARIANT(dispatch_takes(sched, provider) == open);
}

static bool is_parked(const struct sched *sched, const struct guard *guard)
{
    return sched->tasks[guard->task].state == TASK_PARKED;
}

/* Return whether the guard of a task, if it has one, is parked. */
bool dispatch_is_closed(const struct sched *sched, uint32_t task)
{
    uint32_t guard = sched_shape_of(sched, task)->guard;
    return guard != ID_NONE && is_parked(sched, &sched->guards[guard]);
}

/* Return whether provider and guard of a task let it start, and its run is not
 * stopped. */
bool dispatch_admits(const struct sched *sched, uint32_t task)
{
    const struct shape *shape = sched_shape_of(sched, task);
    return dispatch_takes(sched, shape->provider) &&
           !dispatch_is_closed(sched, task) &&
           (sched->runs[shape->run].stopped == SCHED_NOT_STOPPED ||
            sched->details[task].last != 0);
}

void dispatch_check_guards(struct sched *sched)
{
    if (!sched->guards_due) {
        return;
    }
    sched->guards_due = false;
    for (uint32_t ix = 0; ix < sched->guard_count; ix++) {
        const struct guard *guard = &sched->guards[ix];
        dispatch_set_open(sched, guard->pool, !is_parked(sched, guard));
        ready_recount_guard(sched, ix);
    }
}

/*
 * Report a ready task of a group that closes, so that the store gets a newer
 * record than the records with an open group. Without a ready task, the group
 * closes because another task changed, which is reported anyway.
 */
static void touch_ready(struct sched *sched, uint32_t group)
{
    uint32_t bin = group * 2;
    while (bin != ID_NONE) {
        for (uint32_t side = 0; side < BIN_SIDES; side++) {
            uint32_t best = sched_best_of(sched, bin * BIN_SIDES + side);
            if (best != ID_NONE) {
                state_touch(sched, best);
                return;
            }
        }
        bin = sched_next_bin(sched, bin);
    }
}

/*
 * Close a group that no task keeps open and return it, or ID_NONE. A group that
 * only waits for its merge returns the units of its issues.
 */
uint32_t dispatch_close_group(struct sched *sched)
{
    while (sched->group_checks != ID_NONE) {
        uint32_t ix = sched->group_checks;
        struct group *group = sched_group(sched, ix);
        INVARIANT(group->checking);
        sched->group_checks = group->check_next;
        group->checking = false;
        uint32_t busy = sched_busy(sched, ix);
        if (group->working && busy == sched_queued(sched, ix)) {
            group->working = false;
            dispatch_give(sched, sched_kind(sched, group)->issues);
        }
        INVARIANT(group->open);
        if (busy == 0) {
            group->open = false;
            dispatch_give(sched, sched_kind(sched, group)->lanes);
            touch_ready(sched, ix);
            ready_rekey_group(sched, ix);
            return ix;
        }
    }
    return ID_NONE;
}

/* Put the queues of a list back. */
static void put_back(struct sched *sched, uint32_t *list)
{
    while (*list != ID_NONE) {
        uint32_t queue = *list;
        INVARIANT(sched->queues[queue].aside);
        *list = sched->queues[queue].aside_next;
        sched->queues[queue].aside = false;
        ready_requeue(sched, queue);
    }
}

/* Clear reservations, holds and queues set aside: a start may change them. */
static void begin_scan(struct sched *sched)
{
    while (sched->reserved != ID_NONE) {
        struct counter *counter = &sched->limits.counters[sched->reserved];
        INVARIANT(counter->reserved_for != ID_NONE);
        sched->reserved = counter->next_reserved;
        counter->reserved_for = ID_NONE;
        wake_counter(sched, counter);
    }
    sched->refused = 0;
    if (sched->postponed != ID_NONE || sched->asides != ID_NONE) {
        put_back(sched, &sched->postponed);
        put_back(sched, &sched->asides);
    }
    lookahead_look_again(sched);
}

/* Result of an examination. */
struct finding {
    uint32_t pool;    /* lacks units; ID_NONE: none does */
    bool empty;       /* it has no units left */
    bool kept;        /* it has, but they are reserved */
    uint32_t lacking; /* pools that lack units; 1: that pool can be reserved */
    uint32_t units;   /* that it needs of it */
};

/* Return whether the pool ever has as many units. */
static bool has_units(const struct sched *sched, struct pool_need need)
{
    uint32_t limit = sched->limits.pools[need.pool].limit;
    return sched->limits.limits[limit].ahead_now >= need.units;
}

static struct finding
examine(const struct sched *sched, uint32_t queue, uint32_t head)
{
    const struct queue *q = &sched->queues[queue];
    struct finding finding = {.pool = ID_NONE};
    bool reserved = sched->reserved != ID_NONE;
    for (uint32_t part = 0; part < 2 && q->sets[part] != ID_NONE; part++) {
        const struct need_set *set = &sched->sets[q->sets[part]];
        for (uint32_t ix = 0; ix < set->count; ix++) {
            struct pool_need need = sched->needs[set->first + ix];
            int64_t free = limits_free(&sched->limits, need.pool);
            bool kept = reserved &&
                        limits_reserved(&sched->limits, need.pool) != ID_NONE &&
                        !backfill_admits(sched, head, need);
            if (free <= 0 || kept) {
                return (struct finding){need.pool, true, free > 0, 1, 0};
            }
            if (free < need.units) {
                /* Waiting does not help if the maximum is too small. */
                finding.pool = need.pool;
                finding.units = need.units;
                finding.lacking += has_units(sched, need) ? 1 : 2;
            }
        }
    }
    return finding;
}

/* A group takes the units of a set, free or not. */
static void hold(struct sched *sched, uint32_t group, uint32_t needs)
{
    const struct need_set *set = &sched->sets[needs];
    if (set->count > 0) {
        dispatch_occupy(sched, needs);
    }
    for (uint32_t ix = 0; ix < set->count; ix++) {
        sched->limits.pools[sched->needs[set->first + ix].pool].holder = group;
    }
}

/* An open group has a task that counts as work on its issue. */
void dispatch_work_on(struct sched *sched, uint32_t group)
{
    struct group *g = sched_group(sched, group);
    INVARIANT(g->open && !g->working);
    g->working = true;
    hold(sched, group, sched_kind(sched, g)->issues);
}

void dispatch_open_group(struct sched *sched, uint32_t group)
{
    struct group *g = sched_group(sched, group);
    INVARIANT(!g->open && !g->working);
    g->open = true;
    hold(sched, group, sched_kind(sched, g)->lanes);
    if (sched_busy(sched, group) > sched_queued(sched, group)) {
        dispatch_work_on(sched, group);
    }
    ready_rekey_group(sched, group);
}

/* Open the group of a starting task if it is closed and the task needs it. */
static void open_for(struct sched *sched, uint32_t task)
{
    uint32_t ix = sched->tasks[task].group;
    const struct group *group = sched_group(sched, ix);
    if (!group->open && !sched_has(sched, task, TASK_BACKGROUND)) {
        expect_free(sched, sched_shape_of(sched, task)->group_needs);
        dispatch_open_group(sched, ix);
    }
}

/* Start a task, which is not queued any more, as part of the session of
 * `leader`. */
static void set_starting(struct sched *sched, uint32_t task, uint32_t leader)
{
    struct task *t = &sched->tasks[task];
    state_clear_timer(sched, task);
    INVARIANT(t->token < sched->last_token);
    INVARIANT(task == leader || sched->tasks[leader].state == TASK_STARTING);
    t->token = sched->last_token;
    t->leader = leader;
    t->next_in_session = ID_NONE;
    t->attempts++;
    state_set(sched, task, TASK_STARTING);
    if (sched->lookahead != NULL || sched->has_wide) {
        sched->times[task].started_ns = sched->now_ns;
    }
    if (sched_run_of(sched, task)->policy == SCHED_FAIR) {
        /* Charge the estimate now; the end of the session corrects it. */
        sched->times[task].started_ns = sched->now_ns;
        *sched_service(sched, t->group) += t->estimate_ns;
        ready_rekey_group(sched, t->group);
    }
}

/*
 * Fill the session with more tasks of this shape, best first; return how many
 * it has. They take no units: the session has them. They do not open their
 * groups, so a task of a closed group takes no group units.
 */
static uint32_t fill_batch(struct sched *sched, uint32_t leader)
{
    const struct shape *shape = sched_shape_of(sched, leader);
    uint32_t last = leader;
    uint32_t n = 1;
    for (; n < sched->classes[shape->class_ix].batch; n++) {
        uint32_t next = ready_head_of_shape(sched, shape);
        if (next == ID_NONE) {
            return n;
        }
        INVARIANT(sched_shape_of(sched, next) == shape);
        ready_dequeue(sched, next);
        set_starting(sched, next, leader);
        if (!sched_group(sched, sched->tasks[next].group)->open) {
            sched_raise(sched, next, TASK_BACKGROUND);
            ready_count_out(sched, next);
        }
        sched->tasks[last].next_in_session = next;
        last = next;
    }
    return n;
}

/*
 * Return how many foreground tasks start for each task of the background while
 * both are ready: by the smallest share of its limits.
 */
static uint32_t turns_for(const struct sched *sched, uint32_t leader)
{
    enum { SHARE = 34, WHOLE = 100 };
    uint32_t least = WHOLE + 1;
    const struct need_set *set =
        &sched->sets[sched_shape_of(sched, leader)->background_needs];
    for (uint32_t ix = 0; ix < set->count; ix++) {
        uint32_t pool = sched->needs[set->first + ix].pool;
        uint32_t limit = sched->limits.pools[pool].limit;
        uint32_t percent = sched->limits.limits[limit].spec.percent;
        least = percent > 0 && percent < least ? percent : least;
    }
    uint32_t share = least > WHOLE ? SHARE : least;
    return (WHOLE + share - 1) / share - 1;
}

/* A session of `count` tasks starts: see is_postponed(). */
static void take_turns(struct sched *sched, uint32_t leader, uint32_t count)
{
    struct run *run = sched_run_of(sched, leader);
    if (sched_has(sched, leader, TASK_BACKGROUND)) {
        INVARIANT(sched_class_of(sched, leader)->defer);
        if (sched->tasks[leader].first != 0) {
            return; /* an operator wanted it */
        }
        run->owed = count * turns_for(sched, leader);
    } else {
        run->owed -= run->owed < count ? run->owed : count;
    }
}

static void start(struct sched *sched, uint32_t leader)
{
    const struct shape *shape = sched_shape_of(sched, leader);
    sched->last_token++;
    ready_dequeue(sched, leader); /* before its group opens and moves it */
    open_for(sched, leader);
    expect_free(sched, shape->needs);
    dispatch_occupy_session(sched, leader);
    set_starting(sched, leader, leader);
    uint32_t count = fill_batch(sched, leader);
    take_turns(sched, leader, count);
    sched->runs[shape->run].sessions++;
    INVARIANT(sched->runs[shape->run].sessions <= sched->in_flight_count);
    provider_sent(&sched->providers[shape->provider], sched->last_token);
    dispatch_check_provider(sched, shape->provider);
}

/*
 * Reserve the free units of a pool for a task until the next scan: strictly if
 * it has waited for too long.
 */
static void
reserve(struct sched *sched, uint32_t pool, uint32_t units, uint32_t task)
{
    uint32_t ix = sched->limits.pools[pool].counter;
    struct counter *counter = &sched->limits.counters[ix];
    INVARIANT(counter->reserved_for == ID_NONE);
    INVARIANT(limits_free(&sched->limits, pool) > 0);
    counter->reserved_for = task;
    counter->next_reserved = sched->reserved;
    sched->reserved = ix;
    counter->strict = true;
    if (!sched_has(sched, task, TASK_AGED)) {
        backfill_plan(sched, pool, units);
    }
    wake_counter(sched, counter);
}

/* Let nothing more pass in this scan. */
static void shut_reserved(struct sched *sched)
{
    for (uint32_t ix = sched->reserved; ix != ID_NONE;
         ix = sched->limits.counters[ix].next_reserved) {
        struct counter *counter = &sched->limits.counters[ix];
        counter->strict = true;
        wake_counter(sched, counter);
    }
}

static void set_aside(struct sched *sched, uint32_t queue)
{
    INVARIANT(sched->queues[queue].at_pool == ID_NONE &&
              !sched->queues[queue].aside);
    sched->queues[queue].aside = true;
    sched->queues[queue].aside_next = sched->asides;
    sched->asides = queue;
}

/* Return the n-th pool that a queue needs; false: it needs fewer. */
static bool need_at(const struct sched *sched,
                    uint32_t queue,
                    uint32_t n,
                    struct pool_need *out)
{
    const uint32_t *sets = sched->queues[queue].sets;
    for (uint32_t part = 0; part < 2 && sets[part] != ID_NONE; part++) {
        const struct need_set *set = &sched->sets[sets[part]];
        if (n < set->count) {
            *out = sched->needs[set->first + n];
            return true;
        }
        n -= set->count;
    }
    return false;
}

/*
 * Let a wide task that has waited for too long reserve the free units of every
 * limit it lacks, to bound its wait. It precedes all other tasks, so it cannot
 * wait for a task that reserves units it needs.
 */
static bool saves_up(struct sched *sched, uint32_t queue, uint32_t head)
{
    struct pool_need need;
    bool wide = false;
    bool can_fit = true;
    if (!sched_has(sched, head, TASK_AGED)) {
        return false;
    }
    for (uint32_t n = 0; need_at(sched, queue, n, &need); n++) {
        wide = wide || need.units > 1;
        can_fit = can_fit && has_units(sched, need);
    }
    for (uint32_t n = 0; wide && can_fit && need_at(sched, queue, n, &need);
         n++) {
        int64_t free = limits_free(&sched->limits, need.pool);
        if (free > 0 && free < need.units &&
            limits_reserved(&sched->limits, need.pool) == ID_NONE) {
            reserve(sched, need.pool, need.units, head);
        }
    }
    return wide;
}

void dispatch_rouse(struct sched *sched, uint32_t queue)
{
    uint32_t pool = sched->queues[queue].at_pool;
    if (pool != ID_NONE && pool != POOL_OPEN) {
        dispatch_leave(sched, queue);
        dispatch_wait(sched, queue, POOL_OPEN);
    }
}

/*
 * Background tasks that have waited for too long take turns with foreground
 * tasks: after a session of n of them, the run starts a multiple of n
 * foreground tasks before the next one goes first. Until then they are
 * postponed: they come after all foreground tasks.
 */
static bool is_postponed(const struct sched *sched, uint32_t head)
{
    const unsigned both = TASK_AGED | TASK_BACKGROUND;
    return (sched->tasks[head].flags & both) == both &&
           sched->tasks[head].first == 0 &&
           sched->runs[sched_run_ix(sched, head)].owed > 0;
}

static void postpone(struct sched *sched, uint32_t queue)
{
    dispatch_leave(sched, queue);
    sched->queues[queue].aside = true;
    sched->queues[queue].aside_next = sched->postponed;
    sched->postponed = queue;
}

/*
 * Return the queue to examine next, or ID_NONE. When it is the turn of the
 * background, the postponed queues come first.
 */
static uint32_t next_queue(struct sched *sched, bool *turn, uint32_t *head_out)
{
    for (;;) {
        uint32_t queue = ID_NONE;
        uint32_t head = ID_NONE;
        if (sched->awake != ID_NONE) {
            queue = sched->limits.pools[sched->awake].waiting;
            INVARIANT(sched->queues[queue].at_pool == sched->awake);
            head = ready_head(sched, queue);
            INVARIANT(head != ID_NONE);
        }
        if (!*turn && head != ID_NONE && is_postponed(sched, head)) {
            postpone(sched, queue);
            continue;
        }
        if (sched->postponed != ID_NONE &&
            (head == ID_NONE || (sched_has(sched, head, TASK_BACKGROUND) &&
                                 !sched_has(sched, head, TASK_AGED)))) {
            *turn = true;
            put_back(sched, &sched->postponed);
            continue;
        }
        *head_out = head;
        return queue;
    }
}

uint32_t dispatch_start(struct sched *sched)
{
    begin_scan(sched);
    bool turn = false;
    uint32_t queue;
    uint32_t head;
    while ((queue = next_queue(sched, &turn, &head)) != ID_NONE) {
        struct finding finding = examine(sched, queue, head);
        uint32_t first = lookahead_held_for(sched, head);
        if (finding.pool == ID_NONE && first == ID_NONE) {
            start(sched, head);
            return head;
        }
        dispatch_leave(sched, queue);
        if (first != ID_NONE && !finding.empty) {
            lookahead_hold(sched, queue, first);
            continue;
        }
        if (saves_up(sched, queue, head) || finding.kept ||
            (!finding.empty && finding.lacking > 1)) {
            set_aside(sched, queue);
            if (finding.kept && ++sched->refused == BACKFILL_LOOK) {
                shut_reserved(sched);
            }
            continue;
        }
        INVARIANT(finding.pool != ID_NONE && finding.lacking == 1);
        dispatch_wait(sched, queue, finding.pool);
        if (!finding.empty) {
            reserve(sched, finding.pool, finding.units, head);
        }
    }
    return ID_NONE;
}
