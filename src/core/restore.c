/* SPDX-License-Identifier: MIT */
/*
 * Records, and restoring from them.
 *
 * A record holds the state that cannot be derived. The rest is derived from it
 * again: satisfied needs, units in use, open groups, queues. Records come from
 * a file, so they are checked before any change. A possible record that
 * contradicts others (a ready task with a need that is not done, a group that
 * no task keeps open) is corrected, and reported like any other change.
 */
#include "base/invariant.h"
#include "core/sched_internal.h"

#define IN(state) (1U << (state))
#define IN_FLIGHT (IN(TASK_STARTING) | IN(TASK_RUNNING))
#define IN_ANY (IN(TASK_STATE_COUNT) - 1)
#define IN_FINAL (IN(TASK_DONE) | IN(TASK_SKIPPED) | IN(TASK_CANCELLED))

/* The flags of a record, the flags of a task that they mean, and the states in
 * which they are valid. */
static const struct {
    uint16_t recorded;
    uint16_t kept;
    uint16_t states;
} flags[] = {
    {SCHED_RECORD_HELD, TASK_HELD, IN_ANY},
    {SCHED_RECORD_BACKING_OFF, TASK_BACKING_OFF, IN(TASK_WAITING)},
    {SCHED_RECORD_BACKGROUND, TASK_BACKGROUND, IN_FLIGHT | IN(TASK_WAITING)},
    {SCHED_RECORD_REVOKED, TASK_REVOKED, IN(TASK_DONE)},
    {SCHED_RECORD_ENDING, TASK_ENDING, IN_FLIGHT},
    {SCHED_RECORD_TO_SKIP, TASK_TO_SKIP, IN_FLIGHT},
    {SCHED_RECORD_ASKING, TASK_ASKING, IN(TASK_PARKED)},
    {SCHED_RECORD_CASCADED, TASK_CASCADED, IN(TASK_SKIPPED)},
    {SCHED_RECORD_STALE, TASK_STALE, IN_FLIGHT},
    {SCHED_RECORD_GROUP_OPEN, 0, IN_ANY},
    {SCHED_RECORD_SNOOZED, 0, IN(TASK_WAITING)},
    {SCHED_RECORD_EARLY, 0, IN(TASK_WAITING)},
    {SCHED_RECORD_UNAPPROVED, 0, IN_ANY},
    {SCHED_RECORD_FIRST, 0, IN_ANY & ~IN_FINAL},
};

/* ---- creating records ---- */

static uint32_t place_of(const struct sched *sched, uint32_t task)
{
    uint32_t place = 0;
    for (uint32_t ix = sched->tasks[task].leader; ix != task;
         ix = sched->tasks[ix].next_in_session) {
        INVARIANT(ix != ID_NONE);
        place++;
    }
    return place;
}

static uint32_t flags_of(const struct sched *sched, uint32_t task)
{
    bool flies = state_in_flight(sched, task);
    bool backs_off = sched_has(sched, task, TASK_BACKING_OFF);
    uint32_t recorded = 0;
    for (uint32_t ix = 0; ix < ARRAY_COUNT(flags); ix++) {
        if ((sched->tasks[task].flags & flags[ix].kept) != 0) {
            recorded |= flags[ix].recorded;
        }
    }
    if (!flies && !backs_off) {
        /* It is computed again when the task becomes ready. */
        recorded &= ~(uint32_t)SCHED_RECORD_BACKGROUND;
    }
    if (sched_group(sched, sched->tasks[task].group)->open) {
        recorded |= SCHED_RECORD_GROUP_OPEN;
    }
    const struct detail *detail = &sched->details[task];
    recorded |= detail->snoozed != 0 ? SCHED_RECORD_SNOOZED : 0U;
    recorded |= detail->early != 0 && backs_off ? SCHED_RECORD_EARLY : 0U;
    recorded |= detail->unapproved != 0 ? SCHED_RECORD_UNAPPROVED : 0U;
    recorded |= sched->tasks[task].first != 0 ? SCHED_RECORD_FIRST : 0U;
    recorded |= (uint32_t)sched->tasks[task].refusals
                << SCHED_RECORD_REFUSALS_SHIFT;
    if (detail->prioritised != 0) {
        recorded |= (detail->own_priority + 1U) << SCHED_RECORD_PRIORITY_SHIFT;
    }
    return recorded;
}

struct sched_record sched_record(const struct sched *sched, struct task_id task)
{
    INVARIANT(task.v < sched->task_count);
    const struct task *t = &sched->tasks[task.v];
    const struct detail *detail = &sched->details[task.v];
    bool serves = sched_has_service(sched, t->group);
    bool flies = state_in_flight(sched, task.v);
    bool backs_off = sched_has(sched, task.v, TASK_BACKING_OFF);
    return (struct sched_record){
        .state = t->state,
        .flags = flags_of(sched, task.v),
        .parked = detail->parked,
        .ready_ns = t->ready_ns,
        .ready_seq = t->ready_seq >> SCHED_TASK_BITS,
        .until_ns = backs_off ? detail->until_ns : 0,
        .started_ns =
            sched->times != NULL ? sched->times[task.v].started_ns : 0,
        .service_ns = serves ? *sched_service(sched, t->group) : 0,
        .token = t->token,
        .leader = flies ? t->leader : ID_NONE,
        .place = flies ? place_of(sched, task.v) : 0,
        .attempts = t->attempts,
        .tries = t->tries,
        .reworks = detail->reworks,
        .checkpoints = detail->checkpoints,
        .cause = t->cause,
    };
}

struct sched_run_record sched_run_record(const struct sched *sched,
                                         struct run_id run)
{
    INVARIANT(run.v < sched->run_count);
    const struct run *r = &sched->runs[run.v];
    return (struct sched_run_record){
        .paused = r->paused,
        .cancelled = r->cancelled,
        .barrier = r->barrier_due || r->barrier_running,
        .completions = r->completions,
        .owed = r->owed,
        .stopped = r->stopped,
        .deadline_over = r->deadline_over,
    };
}

struct sched_provider_record sched_provider_record(const struct sched *sched,
                                                   struct provider_id provider)
{
    INVARIANT(provider.v < sched->provider_count);
    return sched->providers[provider.v].kept;
}

/* ---- checking records ---- */

static bool is_in(const struct sched_record *record, unsigned states)
{
    return (states & IN(record->state)) != 0;
}

static bool flags_fit(const struct sched_record *record)
{
    uint32_t known =
        (uint32_t)SCHED_RECORD_REFUSALS_MAX << SCHED_RECORD_REFUSALS_SHIFT |
        (uint32_t)SCHED_RECORD_PRIORITY_MASK << SCHED_RECORD_PRIORITY_SHIFT;
    for (uint32_t ix = 0; ix < ARRAY_COUNT(flags); ix++) {
        known |= flags[ix].recorded;
        if ((record->flags & flags[ix].recorded) != 0 &&
            !is_in(record, flags[ix].states)) {
            return false;
        }
    }
    bool flies = is_in(record, IN_FLIGHT);
    bool skips = (record->flags & SCHED_RECORD_TO_SKIP) != 0;
    bool background = (record->flags & SCHED_RECORD_BACKGROUND) != 0;
    bool away =
        (record->flags & (SCHED_RECORD_SNOOZED | SCHED_RECORD_EARLY)) != 0;
    uint32_t priority = record->flags >> SCHED_RECORD_PRIORITY_SHIFT &
                        SCHED_RECORD_PRIORITY_MASK;
    return (record->flags & ~known) == 0 &&
           priority <= SCHED_PRIORITY_MAX + 1 &&
           (!away || (record->flags & SCHED_RECORD_BACKING_OFF) != 0) &&
           (!skips || (record->flags & SCHED_RECORD_ENDING) != 0) &&
           (!background || flies ||
            (record->flags & SCHED_RECORD_BACKING_OFF) != 0);
}

/* Return whether a record by itself is valid, among `count`. */
static bool is_possible(const struct sched_record *record, uint32_t count)
{
    if ((unsigned)record->state >= TASK_STATE_COUNT ||
        (unsigned)record->parked > SCHED_PARKED_CHECKPOINTS ||
        !flags_fit(record)) {
        return false;
    }
    if (record->ready_ns < 0 || record->until_ns < 0 ||
        record->started_ns < 0 || record->service_ns < 0 ||
        record->service_ns > SCHED_NEVER / 2 ||
        record->ready_seq > UINT64_MAX >> (SCHED_TASK_BITS + 1)) {
        return false;
    }
    if (record->reworks > UINT16_MAX || record->checkpoints > UINT16_MAX ||
        record->attempts >> SCHED_ATTEMPT_BITS != 0 ||
        (record->cause != ID_NONE && record->cause >= count)) {
        return false;
    }
    return !is_in(record, IN_FLIGHT) ||
           (record->token != 0 && record->attempts > 0 &&
            record->leader < count);
}

/* Return the key of a position in a session. */
static uint64_t place_key(uint32_t leader, uint32_t place)
{
    return (uint64_t)leader << 32 | place;
}

/* Return whether a task in flight is consistent with its session's leader. */
static bool fits_leader(const struct sched_addition *addition, uint32_t ix)
{
    const struct sched_record *record = &addition->records[ix];
    const struct sched_record *leader = &addition->records[record->leader];
    const struct sched_task_spec *spec = &addition->tasks[ix];
    const struct sched_task_spec *first = &addition->tasks[record->leader];
    return leader->leader == record->leader && leader->place == 0 &&
           leader->state == record->state && leader->token == record->token &&
           spec->class_id.v == first->class_id.v &&
           spec->provider.v == first->provider.v;
}

/*
 * Map the positions of the tasks in flight, and the tokens of their sessions.
 * Return the first task that has the position or token of another, or is not
 * consistent with its session's leader, or ID_NONE.
 */
static uint32_t map_sessions(const struct sched_addition *addition,
                             struct idmap *places,
                             struct idmap *tokens)
{
    for (uint32_t ix = 0; ix < addition->task_count; ix++) {
        const struct sched_record *record = &addition->records[ix];
        if (!is_in(record, IN_FLIGHT)) {
            continue;
        }
        uint64_t place = place_key(record->leader, record->place);
        if (!fits_leader(addition, ix) || idmap_get(places, place) != ID_NONE) {
            return ix;
        }
        idmap_put(places, place, ix);
        if (record->leader == ix) {
            if (idmap_get(tokens, record->token) != ID_NONE) {
                return ix;
            }
            idmap_put(tokens, record->token, ix);
        }
    }
    return ID_NONE;
}

/* Return the first task in flight after a gap in its session, or ID_NONE. */
static uint32_t find_gap(const struct sched_addition *addition,
                         const struct idmap *places)
{
    for (uint32_t ix = 0; ix < addition->task_count; ix++) {
        const struct sched_record *record = &addition->records[ix];
        if (is_in(record, IN_FLIGHT) && record->place > 0 &&
            idmap_get(places, place_key(record->leader, record->place - 1)) ==
                ID_NONE) {
            return ix;
        }
    }
    return ID_NONE;
}

/* Return the first task with an invalid record, or ID_NONE. */
uint32_t restore_find_bad(const struct sched_addition *addition)
{
    for (uint32_t ix = 0; ix < addition->task_count; ix++) {
        if (!is_possible(&addition->records[ix], addition->task_count)) {
            return ix;
        }
    }
    struct idmap places = {0};
    struct idmap tokens = {0};
    uint32_t bad = map_sessions(addition, &places, &tokens);
    if (bad == ID_NONE) {
        bad = find_gap(addition, &places);
    }
    idmap_release(&places);
    idmap_release(&tokens);
    return bad;
}

/* ---- restoring ---- */

void sched_restore(struct sched *sched, int64_t now_ns, uint64_t last_token)
{
    INVARIANT(last_token >= sched->last_token);
    INVARIANT(sched->task_count == 0 && now_ns >= sched->now_ns);
    sched->now_ns = now_ns;
    sched->last_token = last_token;
}

void sched_restore_run(struct sched *sched,
                       struct run_id run,
                       const struct sched_run_record *record)
{
    INVARIANT(run.v < sched->run_count);
    struct run *r = &sched->runs[run.v];
    INVARIANT(r->sessions == 0 && r->asking == 0);
    r->paused = record->paused;
    r->cancelled = record->cancelled;
    /* The process that ran the hook is gone. */
    r->barrier_due = record->barrier && r->sync_every > 0;
    r->completions = record->completions;
    r->owed = record->owed;
    r->stopped = record->stopped;
    r->deadline_over = record->deadline_over;
    control_check_run(sched, run.v);
}

/* Let a batch have at least its refused and its unanswered starts. */
static void fit_batch(struct provider *provider)
{
    if (provider->kept.sent < provider->kept.refused + provider->pending) {
        provider->kept.sent = provider->kept.refused + provider->pending;
    }
}

void sched_restore_provider(struct sched *sched,
                            struct provider_id provider,
                            const struct sched_provider_record *record)
{
    INVARIANT(provider.v < sched->provider_count);
    struct provider *e = &sched->providers[provider.v];
    e->kept = *record;
    if (record->sent > SCHED_TASKS_MAX || record->refused > record->sent) {
        e->kept.sent = 0;
        e->kept.refused = 0;
        e->kept.accepted = false;
    }
    fit_batch(e);
    /* The settings may have changed since the record. */
    e->kept.circuit_open = record->circuit_open && e->spec.circuit_failures > 0;
    sched->restoring = true;
    dispatch_check_provider(sched, provider.v);
}

/* Restore what an operator or the plan says about the start of a task. */
static void restore_rules(struct sched *sched,
                          uint32_t task,
                          const struct sched_record *record)
{
    struct detail *detail = &sched->details[task];
    uint32_t priority = record->flags >> SCHED_RECORD_PRIORITY_SHIFT &
                        SCHED_RECORD_PRIORITY_MASK;
    if (priority > 0) {
        detail->own_priority = (priority - 1) & 0xF;
        detail->prioritised = 1;
    }
    sched->tasks[task].first = (record->flags & SCHED_RECORD_FIRST) != 0;
    detail->snoozed = (record->flags & SCHED_RECORD_SNOOZED) != 0;
    detail->unapproved = (record->flags & SCHED_RECORD_UNAPPROVED) != 0;
    if (detail->unapproved == 0 && (record->flags & SCHED_RECORD_HELD) == 0) {
        sched_lower(sched, task, TASK_HELD);
    } else if (detail->unapproved != 0 && detail->approve == 0) {
        /* The plan no longer asks for it. */
        detail->unapproved = 0;
        sched_lower(sched, task, TASK_HELD);
    }
    bool backs_off = (record->flags & SCHED_RECORD_BACKING_OFF) != 0;
    if (backs_off || record->ready_seq > 0) {
        detail->early = (record->flags & SCHED_RECORD_EARLY) != 0;
        detail->until_ns = record->until_ns;
    } /* else it was never ready, and its time may still come */
}

/* Restore the task's own fields. */
static void restore_task(struct sched *sched,
                         uint32_t task,
                         uint32_t first,
                         const struct sched_record *record)
{
    INVARIANT(record->state <= TASK_CANCELLED);
    struct task *t = &sched->tasks[task];
    struct detail *detail = &sched->details[task];
    t->ready_ns = record->ready_ns;
    t->ready_seq = record->ready_seq << SCHED_TASK_BITS | task;
    INVARIANT(t->ready_seq >> SCHED_TASK_BITS == record->ready_seq);
    t->token = record->token;
    t->attempts = record->attempts & ((1U << SCHED_ATTEMPT_BITS) - 1);
    for (uint32_t ix = 0; ix < ARRAY_COUNT(flags); ix++) {
        if ((record->flags & flags[ix].recorded) != 0) {
            t->flags |= flags[ix].kept;
        }
    }
    restore_rules(sched, task, record);
    if (sched->times != NULL) {
        sched->times[task].started_ns = record->started_ns;
    }
    detail->parked = record->parked & 0x3;
    t->refusals = (uint8_t)(record->flags >> SCHED_RECORD_REFUSALS_SHIFT);
    t->tries = record->tries;
    detail->reworks = (uint16_t)record->reworks;
    detail->checkpoints = (uint16_t)record->checkpoints;
    t->cause = record->cause == ID_NONE ? ID_NONE : first + record->cause;
    INVARIANT(t->cause == ID_NONE || t->cause < sched->task_count);
    state_restore(sched, task, record->state);
    if (record->ready_seq > sched->event_seq) {
        sched->event_seq = record->ready_seq;
    }
    if (record->token > sched->last_token) {
        sched->last_token = record->token;
    }
}

/* A session occupies its pools, and its provider may owe an answer. */
static void restore_session(struct sched *sched, uint32_t leader)
{
    INVARIANT(state_in_flight(sched, leader) &&
              sched->tasks[leader].leader == leader);
    const struct shape *shape = sched_shape_of(sched, leader);
    struct provider *provider = &sched->providers[shape->provider];
    dispatch_occupy_session(sched, leader);
    sched->runs[shape->run].sessions++;
    if (sched->tasks[leader].state == TASK_STARTING) {
        provider->pending++;
        fit_batch(provider);
    }
    /* The request to stop it may not have been carried out. */
    control_end_session(sched, leader);
}

/* Link the tasks in flight to sessions. */
static void restore_sessions(struct sched *sched,
                             const struct sched_addition *addition,
                             uint32_t first)
{
    struct idmap places = {0};
    struct idmap tokens = {0};
    uint32_t bad = map_sessions(addition, &places, &tokens);
    INVARIANT(bad == ID_NONE);
    for (uint32_t ix = 0; ix < addition->task_count; ix++) {
        const struct sched_record *record = &addition->records[ix];
        if (is_in(record, IN_FLIGHT)) {
            struct task *t = &sched->tasks[first + ix];
            uint32_t next =
                idmap_get(&places,
                          place_key(record->leader, record->place + 1));
            t->leader = first + record->leader;
            t->next_in_session = next == ID_NONE ? ID_NONE : first + next;
            INVARIANT(t->token == sched->tasks[t->leader].token);
        }
    }
    for (uint32_t ix = 0; ix < addition->task_count; ix++) {
        const struct sched_record *record = &addition->records[ix];
        if (is_in(record, IN_FLIGHT) && record->leader == ix) {
            restore_session(sched, first + ix);
        }
    }
    idmap_release(&places);
    idmap_release(&tokens);
}

/* Count a task for its group, its run and the timers. */
static void restore_counts(struct sched *sched, uint32_t task)
{
    bool background = sched_has(sched, task, TASK_BACKGROUND);
    if (state_in_flight(sched, task) && !background) {
        ready_count_in(sched, task);
    }
    if (sched_has(sched, task, TASK_BACKING_OFF)) {
        sched_run_of(sched, task)->backing_off++;
        state_set_timer(sched, task, sched->details[task].until_ns);
        if (!background && !sched_has(sched, task, TASK_HELD) &&
            !sched_is_away(sched, task)) {
            ready_count_in(sched, task);
        }
    }
    if (sched_has(sched, task, TASK_ASKING)) {
        control_ask(sched, task);
    }
}

/* Open the groups that the newest record of each shows as open. */
static void restore_groups(struct sched *sched,
                           const struct sched_record *records,
                           uint32_t first)
{
    struct idmap newest = {0};
    for (uint32_t task = first; task < sched->task_count; task++) {
        uint32_t group = sched->tasks[task].group;
        uint32_t known = idmap_get(&newest, group);
        INVARIANT(known == ID_NONE || sched->tasks[known].group == group);
        if (known == ID_NONE ||
            records[task - first].version > records[known - first].version) {
            idmap_put(&newest, group, task);
        }
    }
    for (uint32_t task = first; task < sched->task_count; task++) {
        const struct sched_record *record = &records[task - first];
        uint32_t ix = sched->tasks[task].group;
        const struct group *group = sched_group(sched, ix);
        bool open = sched_has(sched, task, TASK_COUNTED) &&
                    state_in_flight(sched, task);
        if (idmap_get(&newest, ix) == task) {
            bool serves = sched_has_service(sched, ix);
            INVARIANT(serves || record->service_ns == 0);
            if (serves) {
                *sched_service(sched, ix) = record->service_ns;
            }
            open = open || (record->flags & SCHED_RECORD_GROUP_OPEN) != 0;
        }
        if (open && !group->open) {
            dispatch_open_group(sched, ix);
        }
    }
    idmap_release(&newest);
}

/* Compute tier and rank of unfinished tasks; final tasks do not matter. */
static void restore_order(struct sched *sched, uint32_t first)
{
    uint32_t count = 0;
    for (uint32_t task = first; task < sched->task_count; task++) {
        if (!state_is_final(sched->tasks[task].state)) {
            sched->list[count++] = task;
        }
    }
    priority_refresh(sched, sched->list, count);
}

/* Find the satisfied needs, and the tasks that become ready by them. */
static void restore_needs(struct sched *sched,
                          uint32_t run,
                          const struct sched_record *records,
                          uint32_t first,
                          uint32_t edges)
{
    for (uint32_t edge = edges; edge < sched->graph.edge_count; edge++) {
        INVARIANT(graph_need(&sched->graph, edge) >= first);
        INVARIANT(graph_dependent(&sched->graph, edge) >= first);
        if (graph_on(&sched->graph, edge) == SCHED_ON_DONE) {
            sched->unmet[graph_dependent(&sched->graph, edge)]++;
        }
    }
    for (uint32_t task = first; task < sched->task_count; task++) {
        deps_satisfy(sched, task);
    }
    for (uint32_t task = first; task < sched->task_count; task++) {
        if (sched->details[task].picky != 0) {
            deps_weigh(sched, task);
        }
    }
    scope_restore(sched, run);
    for (uint32_t task = first; task < sched->task_count; task++) {
        bool free = sched->unmet[task] == 0;
        bool was_ready = records[task - first].state == TASK_READY;
        if (was_ready && free) {
            state_join_ready(sched, task);
        } else if (was_ready) {
            state_set(sched, task, TASK_WAITING);
        } else if (free && sched->tasks[task].state == TASK_WAITING &&
                   !sched_has(sched, task, TASK_BACKING_OFF)) {
            state_ready_or_wait(sched, task);
        }
    }
}

void restore_tasks(struct sched *sched,
                   const struct sched_addition *addition,
                   uint32_t first,
                   uint32_t edges)
{
    INVARIANT(sched->task_count == first + addition->task_count);
    const struct sched_record *records = addition->records;
    sched->restoring = true;
    for (uint32_t task = first; task < sched->task_count; task++) {
        restore_task(sched, task, first, &records[task - first]);
    }
    sched->event_seq++; /* tasks that become ready now come after all of them */
    INVARIANT(sched->event_seq < UINT64_MAX >> SCHED_TASK_BITS);
    restore_order(sched, first);
    restore_sessions(sched, addition, first);
    for (uint32_t task = first; task < sched->task_count; task++) {
        restore_counts(sched, task);
    }
    restore_groups(sched, records, first);
    restore_needs(sched, addition->run.v, records, first, edges);
    for (uint32_t task = first; task < sched->task_count; task++) {
        ready_check_group(sched, sched->tasks[task].group);
    }
}

void sched_restore_cut(struct sched *sched, struct run_id run)
{
    INVARIANT(run.v < sched->run_count);
    for (uint32_t task = 0; task < sched->task_count; task++) {
        if (sched_run_ix(sched, task) == run.v && sched->unmet[task] > 0 &&
            state_is_pending(sched, task)) {
            deps_doubt(sched, task);
        }
    }
    deps_cut(sched);
    INVARIANT(sched->doubt_count == 0);
}

/* Return whether a session with this token is in flight at the provider. */
static bool
has_session(const struct sched *sched, uint32_t provider, uint64_t token)
{
    for (uint32_t ix = 0; ix < sched->in_flight_count; ix++) {
        uint32_t task = sched->in_flight[ix];
        if (sched->tasks[task].token == token &&
            sched_shape_of(sched, task)->provider == provider) {
            return true;
        }
    }
    return false;
}

/*
 * Before the first pass, with everything restored: no provider may wait for
 * answers of sessions that do not exist.
 */
void restore_finish(struct sched *sched)
{
    INVARIANT(sched->restoring && sched->in_pass);
    sched->restoring = false;
    for (uint32_t ix = 0; ix < sched->provider_count; ix++) {
        struct provider *provider = &sched->providers[ix];
        INVARIANT(provider->pending + provider->kept.refused <=
                      provider->kept.sent ||
                  provider->pending == 0);
        if (provider->pending == 0) {
            provider->kept.sent = 0;
            provider->kept.refused = 0;
            provider->kept.accepted = false;
        }
        if (provider->kept.probe_token != 0 &&
            !has_session(sched, ix, provider->kept.probe_token)) {
            provider_ended(provider, provider->kept.probe_token, sched->now_ns);
        }
        dispatch_check_provider(sched, ix);
    }
}
