/* SPDX-License-Identifier: MIT */
/*
 * Reasons. A ready task was left because of a pool: the same pools are checked
 * here, in the same order, as by the dispatcher. A waiting task is explained by
 * its needs; in a chain of needs, a task that is stuck matters most.
 */
#include "core/why.h"

#include "base/invariant.h"
#include "core/lookahead/lookahead.h"
#include "core/sched_internal.h"

static struct why plain(enum why_code code)
{
    return (struct why){
        .code = code,
        .task = {ID_NONE},
        .group = {ID_NONE},
        .limit = {ID_NONE},
        .provider = {ID_NONE},
        .until_ns = SCHED_NEVER,
    };
}

static struct why because_of(enum why_code code, uint32_t task)
{
    struct why why = plain(code);
    why.task.v = task;
    return why;
}

/* Return whether a pending task waits for this need. */
static bool is_open(const struct sched *sched, uint32_t edge)
{
    uint32_t need = graph_need(&sched->graph, edge);
    switch ((enum sched_on)graph_on(&sched->graph, edge)) {
    case SCHED_ON_DONE:
        return !sched_has(sched, need, TASK_SATISFIED);
    case SCHED_ON_FAILED:
        return !deps_has_given_up(sched, need);
    case SCHED_ON_ANY:
        return !deps_has_given_up(sched, need) &&
               !state_is_final(sched->tasks[need].state);
    }
    return false;
}

/* Return whether an unsatisfied task stays so until an operator acts. */
static bool is_stuck(const struct sched *sched, uint32_t task)
{
    switch ((enum task_state)sched->tasks[task].state) {
    case TASK_FAILED:
    case TASK_PARKED:
    case TASK_SKIPPED:
    case TASK_CANCELLED:
        return !deps_is_complete(sched, task);
    case TASK_DONE:
        return sched_has(sched, task, TASK_REVOKED);
    case TASK_WAITING:
    case TASK_READY:
    case TASK_STARTING:
    case TASK_RUNNING:
        return false;
    }
    return false;
}

/* The smaller index; ID_NONE is larger than any. */
static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/*
 * Return the smallest stuck task among all direct and indirect needs of this
 * task, or ID_NONE. Reuses results of earlier walks with the same mark, which
 * are in sched->tally.
 */
static uint32_t blocker_of(struct sched *sched, uint32_t task, uint16_t mark)
{
    const struct graph *graph = &sched->graph;
    uint32_t *edges = sched->doubts; /* per place on the stack, the edge */
    uint32_t depth = 0;
    INVARIANT(sched->doubt_count == 0); /* so its memory is free */
    if (sched->marks[task] != mark) {
        sched->marks[task] = mark;
        sched->tally[task] = ID_NONE;
        edges[depth] = graph_first_need(graph, task);
        sched->stack[depth++] = task;
    }
    while (depth > 0) {
        uint32_t from = sched->stack[depth - 1];
        uint32_t edge = edges[depth - 1];
        if (edge == ID_NONE) {
            depth--;
            continue;
        }
        uint32_t need = graph_need(graph, edge);
        bool done = graph_on(graph, edge) == SCHED_ON_DONE;
        bool open = is_open(sched, edge);
        bool stuck = open && done && is_stuck(sched, need);
        if (open && !stuck && sched->marks[need] != mark) {
            /* Walk the need first, then this edge again. */
            sched->marks[need] = mark;
            sched->tally[need] = ID_NONE;
            edges[depth] = graph_first_need(graph, need);
            sched->stack[depth++] = need;
            continue;
        }
        uint32_t found = stuck ? need : sched->tally[need];
        if (open) {
            sched->tally[from] = smaller(sched->tally[from], found);
        }
        edges[depth - 1] = graph_next_need(graph, edge);
    }
    return sched->tally[task];
}

/* Return the blocker, or the smallest unsatisfied need. */
static struct why why_waiting(struct sched *sched, uint32_t task, uint16_t mark)
{
    const struct graph *graph = &sched->graph;
    uint32_t blocker = blocker_of(sched, task, mark);
    if (blocker != ID_NONE) {
        return because_of(WHY_BLOCKED, blocker);
    }
    uint32_t first = ID_NONE;
    for (uint32_t edge = graph_first_need(graph, task); edge != ID_NONE;
         edge = graph_next_need(graph, edge)) {
        if (is_open(sched, edge)) {
            first = smaller(first, graph_need(graph, edge));
        }
    }
    if (first == ID_NONE) {
        INVARIANT(sched->details[task].last != 0);
        return because_of(WHY_REST, scope_find_busy(sched, task));
    }
    return because_of(WHY_NEEDS, first);
}

/* Return the first task that stopped its run by giving up, or ID_NONE. */
static uint32_t find_stopper(const struct sched *sched, uint32_t run)
{
    uint32_t task = 0;
    if (sched->runs[run].stopped != SCHED_STOPPED_FAILURE) {
        return ID_NONE;
    }
    while (task < sched->task_count &&
           (sched->tasks[task].state != TASK_PARKED ||
            sched_failure_of(sched, task)->on_failure != SCHED_STOP ||
            sched_run_ix(sched, task) != run)) {
        task++;
    }
    return task < sched->task_count ? task : ID_NONE;
}

/* Return why a pool of a run is closed. */
static struct why
why_run(const struct sched *sched, uint32_t run, uint32_t pool)
{
    const struct run *r = &sched->runs[run];
    if (sched->draining) {
        return plain(WHY_DRAINING);
    }
    if (r->paused) {
        return plain(WHY_PAUSED);
    }
    if (r->stopped != SCHED_NOT_STOPPED && pool == r->pool && r->asking == 0) {
        return because_of(WHY_HALTED, find_stopper(sched, run));
    }
    return r->asking > 0 ? because_of(WHY_ASKED, r->asked) : plain(WHY_BARRIER);
}

static struct why why_provider(const struct sched *sched, uint32_t ix)
{
    const struct provider *provider = &sched->providers[ix];
    static const enum why_code codes[] = {
        [PROVIDER_OPEN] = WHY_BACKOFF,
        [PROVIDER_BACKOFF] = WHY_BACKOFF,
        [PROVIDER_USAGE] = WHY_USAGE,
        [PROVIDER_CIRCUIT] = WHY_CIRCUIT,
        [PROVIDER_STOPPED] = WHY_STOPPED,
    };
    struct why why = plain(codes[provider_state(provider, sched->now_ns)]);
    why.provider.v = ix;
    why.until_ns = provider_wake_ns(provider, sched->now_ns);
    return why;
}

static bool
uses_counter(const struct sched *sched, uint32_t task, uint32_t counter)
{
    const struct shape *shape = sched_shape_of(sched, task);
    uint32_t sets[] = {shape->needs, shape->background_needs};
    bool background = sched_has(sched, task, TASK_BACKGROUND);
    for (uint32_t part = 0; part < (background ? 2 : 1); part++) {
        if (sets[part] == ID_NONE) {
            return false; /* it is only in another's session */
        }
        const struct need_set *set = &sched->sets[sets[part]];
        for (uint32_t n = 0; n < set->count; n++) {
            uint32_t pool = sched->needs[set->first + n].pool;
            if (sched->limits.pools[pool].counter == counter) {
                return true;
            }
        }
    }
    return false;
}

/* Return the leader of the session that has used this counter longest, or
 * ID_NONE. */
static uint32_t holder_of(const struct sched *sched, uint32_t counter)
{
    uint32_t holder = ID_NONE;
    for (uint32_t ix = 0; ix < sched->in_flight_count; ix++) {
        uint32_t task = sched->in_flight[ix];
        bool older = holder == ID_NONE ||
                     sched->tasks[task].token < sched->tasks[holder].token;
        if (older && sched->tasks[task].leader == task &&
            uses_counter(sched, task, counter)) {
            holder = task;
        }
    }
    return holder;
}

/* Return an open group, of any run, that uses this counter, or ID_NONE. */
static uint32_t open_holder(const struct sched *sched, uint32_t counter)
{
    const struct limits *limits = &sched->limits;
    uint32_t pool = limits->counters[counter].first_pool;
    while (pool != ID_NONE) {
        uint32_t holder = limits->pools[pool].holder;
        if (holder != ID_NONE && sched_group(sched, holder)->open) {
            return holder;
        }
        pool = limits->pools[pool].next_of_counter;
    }
    return ID_NONE;
}

/* Return the best task that waits at a pool. */
static uint32_t first_at(const struct sched *sched, uint32_t pool)
{
    uint32_t queue = sched->limits.pools[pool].waiting;
    if (queue == ID_NONE) {
        return ID_NONE;
    }
    return sched_best_of(sched, sched_entry(sched, queue, 0)->item);
}

/* Return why a limit lacks units, without the user of the units. */
static struct why
why_limit(const struct sched *sched, uint32_t task, uint32_t pool)
{
    const struct pool *r = &sched->limits.pools[pool];
    const struct limit *limit = &sched->limits.limits[r->limit];
    struct why why = plain(WHY_LIMIT);
    why.limit.v = r->limit;
    uint32_t kept = limits_reserved(&sched->limits, pool);
    if (kept != ID_NONE && kept != task) {
        why.code = WHY_RESERVED;
        why.task.v = kept;
    } else if (limit->spec.budget) {
        why.code = WHY_BUDGET;
    } else if (sched_has(sched, task, TASK_BACKGROUND) &&
               !sched_has(sched, task, TASK_AGED)) {
        why.code = WHY_DEFERRED;
    }
    return why;
}

/* Add the task or group that uses the units of a limit, or comes first. */
static struct why name_holder(const struct sched *sched,
                              uint32_t task,
                              uint32_t pool,
                              struct why why)
{
    const struct pool *r = &sched->limits.pools[pool];
    const struct limit *limit = &sched->limits.limits[r->limit];
    if (why.code != WHY_LIMIT) {
        return why;
    }
    uint32_t first = first_at(sched, pool);
    if (first != ID_NONE && first != task &&
        limits_free(&sched->limits, pool) <= 0) {
        why.code = WHY_BEHIND;
        why.task.v = first;
        return why;
    }
    uint32_t group =
        limit->spec.hold_group ? open_holder(sched, r->counter) : ID_NONE;
    if (group != ID_NONE) {
        if (sched_is_solo(group)) {
            why.task.v = group / 2;
            return why;
        }
        why.group.v = group / 2;
    }
    why.task.v = holder_of(sched, r->counter);
    return why;
}

/* Return why a pool lacks units. */
static struct why
why_pool(const struct sched *sched, uint32_t task, uint32_t pool)
{
    const struct limit *limit =
        &sched->limits.limits[sched->limits.pools[pool].limit];
    switch (limit->kind) {
    case LIMIT_PLAN:
        return why_limit(sched, task, pool);
    case LIMIT_RUN_POOL:
        return why_run(sched, limit->owner, pool);
    case LIMIT_PROVIDER_POOL:
        return why_provider(sched, limit->owner);
    case LIMIT_GUARD_POOL:
        return because_of(WHY_BLOCKED, sched->guards[limit->owner].task);
    case LIMIT_LOOKAHEAD_POOL:
        INVARIANT(false); /* no task needs it */
        break;
    }
    return plain(WHY_STARTABLE);
}

/*
 * Return the first pool that keeps a ready task from starting, or ID_NONE.
 * `passes`: it may take reserved units that the best of its queue may not.
 */
static uint32_t
find_lacking(const struct sched *sched, uint32_t task, bool passes)
{
    const struct shape *shape = sched_shape_of(sched, task);
    const struct group *group = sched_group(sched, sched->tasks[task].group);
    bool background = sched_has(sched, task, TASK_BACKGROUND);
    bool open = group->open && !background;
    uint32_t sets[] = {
        shape->needs,
        background ? shape->background_needs : shape->group_needs,
    };
    for (uint32_t part = 0; part < (open ? 1 : 2); part++) {
        const struct need_set *set = &sched->sets[sets[part]];
        for (uint32_t ix = 0; ix < set->count; ix++) {
            struct pool_need need = sched->needs[set->first + ix];
            uint32_t kept = limits_reserved(&sched->limits, need.pool);
            if (limits_free(&sched->limits, need.pool) < need.units ||
                (kept != ID_NONE && kept != task &&
                 (!passes || !backfill_admits(sched, task, need)))) {
                return need.pool;
            }
        }
    }
    return ID_NONE;
}

/* The same, for a task that need not be the best of its queue. */
static uint32_t pool_lacking(const struct sched *sched, uint32_t task)
{
    uint32_t pool = find_lacking(sched, task, true);
    return pool != ID_NONE ? pool : find_lacking(sched, task, false);
}

struct why why_limited(const struct sched *sched, struct task_id task)
{
    INVARIANT(sched->tasks[task.v].state == TASK_READY);
    uint32_t pool = pool_lacking(sched, task.v);
    return pool != ID_NONE ? why_pool(sched, task.v, pool)
                           : plain(WHY_STARTABLE);
}

static struct why why_ready(const struct sched *sched, uint32_t task)
{
    uint32_t pool = pool_lacking(sched, task);
    if (pool != ID_NONE) {
        return name_holder(sched, task, pool, why_pool(sched, task, pool));
    }
    uint32_t first = lookahead_held_for(sched, task);
    if (first == ID_NONE) {
        return plain(WHY_STARTABLE);
    }
    struct why why = because_of(WHY_PLANNED, first);
    why.until_ns = sched->lookahead->start_ns[first];
    return why;
}

/* Return why one task is not running; walks with equal marks share results. */
static struct why
why_marked(struct sched *sched, struct task_id task, uint16_t mark)
{
    struct why why = plain(WHY_PARKED);
    switch ((enum task_state)sched->tasks[task.v].state) {
    case TASK_DONE:
    case TASK_SKIPPED:
    case TASK_CANCELLED:
        return because_of(WHY_ENDED, sched->tasks[task.v].cause);
    case TASK_STARTING:
    case TASK_RUNNING:
        return plain(WHY_RUNNING);
    case TASK_FAILED:
        return plain(WHY_FAILED);
    case TASK_PARKED:
        why.parked = sched->details[task.v].parked;
        return why;
    case TASK_WAITING:
        if (sched->unmet[task.v] > 0) {
            return why_waiting(sched, task.v, mark);
        }
        why.code = sched->details[task.v].snoozed != 0 ? WHY_SNOOZED
                   : sched->details[task.v].early != 0 ? WHY_EARLY
                                                       : WHY_BACKOFF;
        why.until_ns = sched->details[task.v].until_ns;
        return why;
    case TASK_READY:
        if (sched->details[task.v].unapproved != 0) {
            return plain(WHY_APPROVAL);
        }
        return sched_has(sched, task.v, TASK_HELD) ? plain(WHY_HELD)
                                                   : why_ready(sched, task.v);
    }
    return plain(WHY_STARTABLE);
}

struct why why_task(struct sched *sched, struct task_id task)
{
    INVARIANT(task.v < sched->task_count);
    return why_marked(sched, task, sched_new_mark(sched));
}

void why_all(struct sched *sched, why_fn fn, void *ctx)
{
    uint16_t mark = sched_new_mark(sched);
    for (uint32_t ix = 0; ix < sched->task_count; ix++) {
        struct task_id task = {ix};
        struct why why = why_marked(sched, task, mark);
        fn(ctx, task, &why);
    }
}

const char *why_code_name(enum why_code code)
{
    static const char *const names[] = {
        [WHY_ENDED] = "ended",         [WHY_RUNNING] = "running",
        [WHY_NEEDS] = "needs",         [WHY_BLOCKED] = "blocked",
        [WHY_FAILED] = "failed",       [WHY_PARKED] = "parked",
        [WHY_HELD] = "held",           [WHY_BACKOFF] = "backoff",
        [WHY_USAGE] = "usage",         [WHY_CIRCUIT] = "circuit",
        [WHY_PAUSED] = "paused",       [WHY_ASKED] = "asked",
        [WHY_BARRIER] = "barrier",     [WHY_DRAINING] = "draining",
        [WHY_LIMIT] = "limit",         [WHY_RESERVED] = "reserved",
        [WHY_BUDGET] = "budget",       [WHY_BEHIND] = "behind",
        [WHY_DEFERRED] = "deferred",   [WHY_PLANNED] = "planned",
        [WHY_STARTABLE] = "startable", [WHY_STOPPED] = "stopped",
        [WHY_SNOOZED] = "snoozed",     [WHY_EARLY] = "early",
        [WHY_APPROVAL] = "approval",   [WHY_HALTED] = "halted",
        [WHY_REST] = "rest",
    };
    INVARIANT(code < ARRAY_COUNT(names));
    return names[code];
}
