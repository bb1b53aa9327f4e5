/* SPDX-License-Identifier: MIT */
/*
 * The frame of the scheduler: events in, effects out. state.c, deps.c,
 * outcome.c and control.c implement the events, dispatch.c the starts.
 *
 * Effects are not stored. Each kind is derived from the state on demand (a flag
 * of a task, a list linked through the tasks), so no burst can overflow a
 * buffer.
 */
#include "core/sched.h"

#include "base/invariant.h"
#include "base/mem.h"
#include "core/lookahead/lookahead.h"
#include "core/sched_internal.h"

#include <string.h>

struct sched *sched_new(void)
{
    struct sched *sched = mem_zalloc(1, sizeof(*sched));
    uint32_t *empty[] = {
        &sched->timers,
        &sched->awake,
        &sched->reserved,
        &sched->asides,
        &sched->postponed,
        &sched->group_checks,
        &sched->run_checks,
        &sched->dirty_first,
        &sched->dirty_last,
    };
    for (uint32_t ix = 0; ix < ARRAY_COUNT(empty); ix++) {
        *empty[ix] = ID_NONE;
    }
    sched->lend_first = LEND_END;
    sched->lanes_due = LEND_END;
    sched->scopes_due = LEND_END;
    uint32_t hall = limits_add_pool(&sched->limits, LIMIT_RUN_POOL, ID_NONE);
    INVARIANT(hall == POOL_OPEN);
    return sched;
}

void sched_free(struct sched *sched)
{
    if (sched == NULL) {
        return;
    }
    for (uint32_t ix = 0; ix < sched->queue_count; ix++) {
        ready_queue_release(&sched->queues[ix].block);
    }
    graph_release(&sched->graph);
    limits_release(&sched->limits);
    idmap_release(&sched->bins_by_key);
    idmap_release(&sched->shapes_by_hash);
    idmap_release(&sched->sets_by_hash);
    idmap_release(&sched->kinds_by_hash);
    void *blocks[] = {
        sched->tasks,       sched->details,     sched->unmet,
        sched->marks,       sched->stack,       sched->list,
        sched->times,       sched->doubts,      sched->groups,
        sched->bins,        sched->shapes,      sched->queues,
        sched->sets,        sched->needs,       sched->providers,
        sched->classes,     sched->runs,        sched->failures,
        sched->in_flight,   sched->queue_links, sched->guards,
        sched->more,        sched->kinds,       sched->lend_links,
        sched->scope_links, sched->touched,     sched->scopes,
    };
    for (uint32_t ix = 0; ix < ARRAY_COUNT(blocks); ix++) {
        mem_free(blocks[ix]);
    }
    lookahead_free(sched->lookahead);
    mem_free(sched);
}

/* Return when the deadline of a run stops it; SCHED_NEVER: it does not. */
static int64_t deadline_of(const struct run *run)
{
    return run->deadline_ns > 0 && !run->deadline_over ? run->deadline_ns
                                                       : SCHED_NEVER;
}

/* Return whether a run has something to stop. */
static bool is_under_way(const struct run *run)
{
    return run->counts[TASK_WAITING] + run->counts[TASK_READY] +
               run->counts[TASK_STARTING] + run->counts[TASK_RUNNING] >
           0;
}

static void fire_deadlines(struct sched *sched)
{
    for (uint32_t ix = 0; sched->has_deadlines && ix < sched->run_count; ix++) {
        struct run *run = &sched->runs[ix];
        if (deadline_of(run) <= sched->now_ns) {
            run->deadline_over = true;
            if (is_under_way(run)) {
                control_stop_run(sched, ix, SCHED_STOPPED_DEADLINE);
            }
        }
    }
}

/* Apply effects of time: back-offs expire, tasks age, providers open. */
static void fire_timers(struct sched *sched)
{
    while (sched->timers != ID_NONE &&
           sched->details[sched->timers].until_ns <= sched->now_ns) {
        uint32_t task = sched->timers;
        INVARIANT(sched_has(sched, task, TASK_TIMED));
        state_clear_timer(sched, task);
        if (sched_has(sched, task, TASK_BACKING_OFF)) {
            state_clear_backoff(sched, task);
            state_ready_or_wait(sched, task);
        } else {
            state_age(sched, task);
        }
    }
    for (uint32_t ix = 0; ix < sched->provider_count; ix++) {
        dispatch_check_provider(sched, ix);
    }
    fire_deadlines(sched);
}

uint16_t sched_new_mark(struct sched *sched)
{
    if (++sched->mark == 0) {
        /* All marks are used: start again. */
        memset(sched->marks, 0, sched->task_count * sizeof(sched->marks[0]));
        sched->mark = 1;
    }
    return sched->mark;
}

/* Begin a new input: advance the time and the order of becoming ready. */
void sched_arrive(struct sched *sched, int64_t now_ns)
{
    INVARIANT(now_ns >= sched->now_ns);
    sched->now_ns = now_ns;
    sched->event_seq++;
    sched->in_pass = false;
}

void sched_advance(struct sched *sched, int64_t now_ns)
{
    sched_arrive(sched, now_ns);
    fire_timers(sched);
}

/* Return whether the objects that the event names exist. */
static bool is_addressed(const struct sched *sched,
                         const struct sched_event *event)
{
    switch (event->type) {
    case EVENT_TICK:
    case EVENT_LIMIT:
    case EVENT_AHEAD:
    case EVENT_DRAIN:
    case EVENT_FILL:
    case EVENT_OPEN:
        return true;
    case EVENT_REOPEN:
        return event->provider.v < sched->provider_count;
    case EVENT_PAUSE:
    case EVENT_RESUME:
    case EVENT_BARRIER_DONE:
    case EVENT_CANCEL_RUN:
    case EVENT_RETRY_RUN:
        return event->run.v < sched->run_count;
    case EVENT_STARTED:
    case EVENT_HOLD:
    case EVENT_RELEASE:
    case EVENT_RETRY:
    case EVENT_SKIP:
    case EVENT_CANCEL:
    case EVENT_REVOKE:
    case EVENT_APPROVE:
    case EVENT_RERUN:
    case EVENT_PRIORITY:
    case EVENT_FIRST:
        return event->task.v < sched->task_count;
    case EVENT_ENDED:
        return event->task.v < sched->task_count && event->outcome_count > 0;
    }
    return false;
}

/* Apply an event at its time. */
static enum err apply(struct sched *sched, const struct sched_event *event)
{
    if (!is_addressed(sched, event)) {
        return ERR_INVALID;
    }
    if (event->type == EVENT_TICK) {
        return ERR_OK;
    }
    if (event->type != EVENT_STARTED && event->type != EVENT_ENDED) {
        return control_apply(sched, event);
    }
    const struct task *task = &sched->tasks[event->task.v];
    if (!state_in_flight(sched, event->task.v) || task->token != event->token) {
        return ERR_CONFLICT;
    }
    if (event->type == EVENT_ENDED) {
        return outcome_apply(sched, event);
    }
    if (task->state != TASK_STARTING) {
        return ERR_CONFLICT;
    }
    outcome_started(sched, task->leader);
    return ERR_OK;
}

static void settle_shares(struct sched *sched)
{
    if (sched->lend_due || sched->lend_first != LEND_END) {
        lend_settle(sched);
    }
}

enum err sched_apply(struct sched *sched, const struct sched_event *event)
{
    sched_advance(sched, event->now_ns);
    enum err err = apply(sched, event);
    deps_settle(sched);
    dispatch_check_guards(sched);
    settle_shares(sched);
    return err;
}

static bool next_end(struct sched *sched, struct sched_effect *out)
{
    while (sched->ends > 0) {
        INVARIANT(sched->end_from < sched->in_flight_count);
        uint32_t task = sched->in_flight[sched->end_from++];
        if (sched_has(sched, task, TASK_END_DUE)) {
            sched_lower(sched, task, TASK_END_DUE);
            INVARIANT(sched->tasks[task].leader == task);
            INVARIANT(sched_has(sched, task, TASK_ENDING));
            sched->ends--;
            out->type = EFFECT_END;
            out->task.v = task;
            out->token = sched->tasks[task].token;
            return true;
        }
    }
    return false;
}

/* Close groups that no task keeps open; return whether any was closed. */
static bool close_groups(struct sched *sched)
{
    bool closed = false;
    while (sched->group_checks != ID_NONE) {
        closed = dispatch_close_group(sched) != ID_NONE || closed;
    }
    return closed;
}

static bool next_start(struct sched *sched, struct sched_effect *out)
{
    uint32_t leader = dispatch_start(sched);
    while (leader == ID_NONE) {
        /* A start may have shut its provider, so that waiting tasks keep
         * their groups open no more: their units may let another task start. */
        if (!close_groups(sched)) {
            return false;
        }
        leader = dispatch_start(sched);
    }
    INVARIANT(sched->tasks[leader].token == sched->last_token);
    out->type = EFFECT_START;
    out->task.v = leader;
    out->token = sched->tasks[leader].token;
    out->provider.v = sched_shape_of(sched, leader)->provider;
    out->run.v = sched_shape_of(sched, leader)->run;
    return true;
}

static bool next_notice(struct sched *sched, struct sched_effect *out)
{
    for (uint32_t ix = 0; sched->notices && ix < sched->provider_count; ix++) {
        if (sched->providers[ix].notice) {
            sched->providers[ix].notice = false;
            out->type = EFFECT_CIRCUIT;
            out->provider.v = ix;
            return true;
        }
    }
    sched->notices = false;
    return false;
}

static bool next_change(struct sched *sched, struct sched_effect *out)
{
    uint32_t task = sched->dirty_first;
    if (task == ID_NONE) {
        return false;
    }
    INVARIANT(sched_has(sched, task, TASK_DIRTY));
    sched->dirty_first = sched->tasks[task].dirty_next;
    sched_lower(sched, task, TASK_DIRTY);
    out->type = EFFECT_TASK;
    out->task.v = task;
    out->run.v = sched_run_ix(sched, task);
    return true;
}

static uint32_t in_flight_of(const struct run *run)
{
    return run->counts[TASK_STARTING] + run->counts[TASK_RUNNING];
}

/*
 * Return whether all ready tasks wait for stopped providers or parked guards.
 * Called only if nothing is in flight, so the walk over all tasks is rare.
 */
static bool is_stopped(const struct sched *sched, uint32_t run)
{
    bool any = sched->guard_count > 0;
    for (uint32_t ix = 0; ix < sched->provider_count; ix++) {
        any = any || sched->providers[ix].kept.stopped;
    }
    for (uint32_t task = 0; any && task < sched->task_count; task++) {
        if (sched_run_ix(sched, task) == run &&
            sched->tasks[task].state == TASK_READY &&
            !sched_has(sched, task, TASK_HELD)) {
            uint32_t provider = sched_shape_of(sched, task)->provider;
            any = sched->providers[provider].kept.stopped ||
                  dispatch_is_closed(sched, task);
        }
    }
    return any;
}

static bool is_quiet(struct sched *sched, uint32_t ix)
{
    const struct run *run = &sched->runs[ix];
    if (in_flight_of(run) > 0 || run->barrier_running) {
        return false;
    }
    if (sched->draining) {
        return true; /* nothing starts after the tasks in flight */
    }
    bool shut = run->paused || run->asking > 0; /* until an operator acts */
    INVARIANT(!run->barrier_due);               /* else it would be running */
    if (run->stopped != SCHED_NOT_STOPPED) {
        return !scope_is_busy(sched, ix, shut);
    }
    return run->backing_off == 0 &&
           (shut || run->counts[TASK_READY] == run->held_ready ||
            is_stopped(sched, ix));
}

/* Return whether the sync hook of a run must start now. */
static bool owes_barrier(const struct sched *sched, const struct run *run)
{
    return run->barrier_due && !run->barrier_running && !sched->draining &&
           (!run->sync_drain || in_flight_of(run) == 0);
}

static bool next_of_runs(struct sched *sched, struct sched_effect *out)
{
    while (sched->run_checks != ID_NONE) {
        uint32_t ix = sched->run_checks;
        struct run *run = &sched->runs[ix];
        INVARIANT(run->checking);
        out->run.v = ix;
        if (run->stop_due) {
            run->stop_due = false;
            out->type = EFFECT_STOPPED;
            return true;
        }
        if (owes_barrier(sched, run)) {
            INVARIANT(run->sync_every > 0);
            run->barrier_due = false;
            run->barrier_running = true;
            out->type = EFFECT_BARRIER;
            return true;
        }
        sched->run_checks = run->check_next;
        run->checking = false;
        INVARIANT(!run->quiet);
        if (is_quiet(sched, ix)) {
            run->quiet = true;
            out->type = EFFECT_RUN;
            return true;
        }
    }
    return false;
}

bool sched_next_effect(struct sched *sched, struct sched_effect *out)
{
    *out = (struct sched_effect){
        .task = {ID_NONE},
        .run = {ID_NONE},
        .provider = {ID_NONE},
    };
    if (!sched->in_pass) {
        sched->in_pass = true;
        if (sched->restoring) {
            restore_finish(sched);
        }
        scope_settle(sched);
        dispatch_check_guards(sched);
        (void)close_groups(sched);
        settle_shares(sched);
        goal_settle(sched);
    }
    return next_end(sched, out) || next_start(sched, out) ||
           next_notice(sched, out) || next_change(sched, out) ||
           next_of_runs(sched, out);
}

int64_t sched_next_timer(const struct sched *sched)
{
    int64_t at_ns = SCHED_NEVER;
    if (sched->timers != ID_NONE) {
        at_ns = sched->details[sched->timers].until_ns;
    }
    for (uint32_t ix = 0; ix < sched->provider_count; ix++) {
        int64_t wake_ns =
            provider_wake_ns(&sched->providers[ix], sched->now_ns);
        if (wake_ns < at_ns) {
            at_ns = wake_ns;
        }
    }
    for (uint32_t ix = 0; sched->has_deadlines && ix < sched->run_count; ix++) {
        const struct run *run = &sched->runs[ix];
        if (deadline_of(run) < at_ns && is_under_way(run)) {
            at_ns = deadline_of(run);
        }
    }
    int64_t plan_ns = lookahead_timer(sched);
    return plan_ns < at_ns ? plan_ns : at_ns;
}

struct task_id sched_session_next(const struct sched *sched,
                                  struct task_id task)
{
    INVARIANT(task.v < sched->task_count);
    return (struct task_id){sched->tasks[task.v].next_in_session};
}

struct sched_task sched_task(const struct sched *sched, struct task_id task)
{
    INVARIANT(task.v < sched->task_count);
    const struct task *t = &sched->tasks[task.v];
    const struct detail *detail = &sched->details[task.v];
    const struct shape *shape = sched_shape_of(sched, task.v);
    return (struct sched_task){
        .state = t->state,
        .run = {shape->run},
        .group = {sched_is_solo(t->group) ? ID_NONE : t->group / 2},
        .class_id = {shape->class_ix},
        .provider = {shape->provider},
        .tier = t->tier,
        .rank_ns = t->rank_ns,
        .estimate_ns = t->estimate_ns,
        .ready_ns = t->ready_ns,
        .token = t->token,
        .attempts = t->attempts,
        .tries = t->tries,
        .reworks = detail->reworks,
        .checkpoints = detail->checkpoints,
        .unmet = sched->unmet[task.v],
        .held = sched_has(sched, task.v, TASK_HELD),
        .revoked = sched_has(sched, task.v, TASK_REVOKED),
        .backing_off = sched_has(sched, task.v, TASK_BACKING_OFF),
        .background = ready_is_background(sched, task.v),
        .aged = sched_has(sched, task.v, TASK_AGED),
        .group_open = sched_group(sched, t->group)->open,
        .asking = sched_has(sched, task.v, TASK_ASKING),
        .snoozed = detail->snoozed,
        .early =
            detail->early != 0 && sched_has(sched, task.v, TASK_BACKING_OFF),
        .unapproved = detail->unapproved,
        .first = t->first,
        .last = detail->last,
        .priority = detail->own_priority,
        .parked = detail->parked,
    };
}

enum provider_shut sched_provider_state(const struct sched *sched,
                                        struct provider_id provider,
                                        int64_t *until_ns_out)
{
    INVARIANT(provider.v < sched->provider_count);
    const struct provider *e = &sched->providers[provider.v];
    *until_ns_out = provider_wake_ns(e, sched->now_ns);
    return provider_state(e, sched->now_ns);
}

struct sched_run sched_run(const struct sched *sched, struct run_id run)
{
    INVARIANT(run.v < sched->run_count);
    const struct run *r = &sched->runs[run.v];
    struct sched_run view = {
        .in_flight = in_flight_of(r),
        .sessions = r->sessions,
        .completions = r->completions,
        .paused = r->paused,
        .cancelled = r->cancelled,
        .barrier = r->barrier_due || r->barrier_running,
        .quiet = r->quiet,
        .stopped = r->stopped,
        .deadline_ns = r->deadline_over ? 0 : r->deadline_ns,
    };
    for (uint32_t ix = 0; ix < TASK_STATE_COUNT; ix++) {
        view.counts[ix] = r->counts[ix];
    }
    return view;
}

const char *sched_state_name(enum task_state state)
{
    static const char *const names[] = {
        [TASK_WAITING] = "waiting",
        [TASK_READY] = "ready",
        [TASK_STARTING] = "starting",
        [TASK_RUNNING] = "running",
        [TASK_DONE] = "done",
        [TASK_FAILED] = "failed",
        [TASK_PARKED] = "parked",
        [TASK_SKIPPED] = "skipped",
        [TASK_CANCELLED] = "cancelled",
    };
    INVARIANT(state < ARRAY_COUNT(names));
    return names[state];
}

uint32_t sched_scope_count(const struct sched *sched)
{
    return sched->scope_count;
}

uint32_t sched_task_count(const struct sched *sched)
{
    return sched->task_count;
}

uint32_t sched_group_count(const struct sched *sched)
{
    return sched->group_count;
}

const uint32_t *sched_in_flight(const struct sched *sched, uint32_t *count_out)
{
    *count_out = sched->in_flight_count;
    return sched->in_flight;
}

int64_t sched_limit_max(const struct sched *sched, struct limit_id limit)
{
    INVARIANT(limit.v < sched->limits.limit_count);
    return sched->limits.limits[limit.v].max_now;
}

int64_t sched_limit_used(const struct sched *sched, struct limit_id limit)
{
    INVARIANT(limit.v < sched->limits.limit_count);
    const struct limits *limits = &sched->limits;
    int64_t used = 0;
    for (uint32_t pool = limits->limits[limit.v].first_pool; pool != ID_NONE;
         pool = limits->pools[pool].next_of_limit) {
        used += limits->counters[limits->pools[pool].counter].used;
    }
    return used;
}

bool sched_limit_binds(const struct sched *sched, struct limit_id limit)
{
    INVARIANT(limit.v < sched->limits.limit_count);
    return sched->limits.limits[limit.v].waiting > 0;
}

/* Return the units of a counter in these sets, up to ID_NONE. */
static int64_t
units_in(const struct sched *sched, const uint32_t sets[], uint32_t counter)
{
    int64_t units = 0;
    for (uint32_t part = 0; sets[part] != ID_NONE; part++) {
        const struct need_set *set = &sched->sets[sets[part]];
        for (uint32_t ix = 0; ix < set->count; ix++) {
            struct pool_need need = sched->needs[set->first + ix];
            if (sched->limits.pools[need.pool].counter == counter) {
                units += need.units;
            }
        }
    }
    return units;
}

/* Return whether a set of a task fits if the units of `freed` are returned. */
static bool fits_with(const struct sched *sched,
                      uint32_t task,
                      uint32_t set,
                      const uint32_t freed[])
{
    const struct need_set *needs = &sched->sets[set];
    for (uint32_t ix = 0; ix < needs->count; ix++) {
        struct pool_need need = sched->needs[needs->first + ix];
        int64_t free = limits_free(&sched->limits, need.pool);
        uint32_t counter = sched->limits.pools[need.pool].counter;
        uint32_t kept = limits_reserved(&sched->limits, need.pool);
        if ((kept != ID_NONE && kept != task) ||
            (free < need.units &&
             free + units_in(sched, freed, counter) < need.units)) {
            return false;
        }
    }
    return true;
}

bool sched_fits_without(const struct sched *sched,
                        struct task_id task,
                        struct task_id other)
{
    INVARIANT(task.v < sched->task_count && other.v < sched->task_count);
    const struct shape *shape = sched_shape_of(sched, task.v);
    const struct group *group = sched_group(sched, sched->tasks[task.v].group);
    const struct group *others =
        sched_group(sched, sched->tasks[other.v].group);
    /* The other's group closes if no other task keeps it open. */
    bool closes = others->open &&
                  sched_busy(sched, sched->tasks[other.v].group) == 1 &&
                  sched_has(sched, other.v, TASK_COUNTED);
    uint32_t freed[5];
    uint32_t count = 0;
    freed[count++] = sched_shape_of(sched, other.v)->needs;
    if (sched_has(sched, other.v, TASK_BACKGROUND)) {
        freed[count++] = sched_shape_of(sched, other.v)->background_needs;
    } else if (closes) {
        freed[count++] = sched_kind(sched, others)->lanes;
        freed[count++] =
            others->working ? sched_kind(sched, others)->issues : ID_NONE;
    }
    freed[count] = ID_NONE;
    if (!fits_with(sched, task.v, shape->needs, freed)) {
        return false;
    }
    if (sched_has(sched, task.v, TASK_BACKGROUND)) {
        return fits_with(sched, task.v, shape->background_needs, freed);
    }
    return group->open || fits_with(sched, task.v, shape->group_needs, freed);
}

void sched_heads(const struct sched *sched, sched_head_fn fn, void *ctx)
{
    for (uint32_t ix = 0; ix < sched->queue_count; ix++) {
        const struct queue *queue = &sched->queues[ix];
        if (queue->at_pool == ID_NONE && !queue->aside) {
            continue;
        }
        /* The top entry is live after each pass. */
        uint32_t best = sched_best_of(sched, sched_entry(sched, ix, 0)->item);
        fn(ctx, (struct task_id){best});
    }
}
