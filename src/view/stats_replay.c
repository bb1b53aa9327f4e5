/* SPDX-License-Identifier: MIT */
/*
 * Statistics over time, from one sweep over all events in order. The state is
 * constant between two events, so each interval is added to every sum that
 * applies.
 *
 * The store does not record why a task waited. The sweep leads a scheduler with
 * the same plan through the recorded states (core/retrace.h) and asks it. Ready
 * tasks of one kind share a reason and are counted, not examined one by one: an
 * interval costs as much as the number of kinds with a ready task.
 *
 * Slots are in use from the claim of a session to its end by the shim's clock;
 * limits, as in the core, until the scheduler has seen it exit.
 */
#include "view/stats_internal.h"

#include "base/invariant.h"
#include "base/mem.h"
#include "core/retrace.h"
#include "plan/load.h"

#include <stdlib.h>
#include <string.h>

enum moment_kind { MOMENT_EVENT, MOMENT_CLAIM, MOMENT_END };

struct moment {
    int64_t at_ns;
    enum moment_kind kind;
    uint32_t ix; /* index of the event or session */
};

/* Bucket in which a task is counted. */
enum bucket {
    BUCKET_NONE,
    BUCKET_NEEDS,
    BUCKET_BACKOFF,
    BUCKET_PERSON,
    BUCKET_HELD,
    BUCKET_READY,
    BUCKET_FLIGHT,
    BUCKETS,
};

struct replay_task {
    enum bucket bucket;
    bool seen;
    uint32_t kind; /* in BUCKET_READY: list that it is in */
    uint32_t next;
    uint32_t before;
};

/* Ready tasks with the same reason and worth. */
struct replay_kind {
    uint32_t first; /* task; PLAN_NONE: empty */
    uint32_t count;
    uint32_t active_at;
};

struct replay {
    struct stats *stats;
    const struct run_history *history;
    const struct plan *plan;
    struct sched *sched;
    struct load *load;
    struct load_run *run;
    struct retrace retrace;
    struct replay_task *tasks;
    struct replay_kind *kinds;
    uint32_t *active; /* kinds with a ready task */
    uint32_t active_count;
    uint32_t (*counts)[BUCKETS]; /* per class */
    uint32_t totals[BUCKETS];
    uint32_t *worth;    /* per task: tier for measuring starvation */
    uint32_t worths;    /* largest worth plus one */
    bool *refused;      /* per provider: its last answer was a refusal */
    bool *starved;      /* per class */
    int64_t *max;       /* per limit, as set; -1: the plan's percentage */
    int64_t *spent;     /* per limit, if it is a budget */
    int64_t *usage_max; /* per usage monitor */
    bool override;      /* usage monitors are overridden */
    int64_t cap;        /* effective maximum of limit 0 */
    uint32_t sessions;  /* in flight, by attempt rows */
};

/* --- buckets ------------------------------------------------------------ */

static struct sched_task core_task(const struct replay *replay, uint32_t ix)
{
    return sched_task(replay->sched, load_task(replay->run, ix));
}

static enum bucket bucket_of(const struct replay *replay, uint32_t ix)
{
    struct sched_task task = core_task(replay, ix);
    if (!replay->tasks[ix].seen) {
        return BUCKET_NONE;
    }
    switch (task.state) {
    case TASK_WAITING:
        return task.unmet > 0 || task.last ? BUCKET_NEEDS : BUCKET_BACKOFF;
    case TASK_READY:
        return task.held && task.unapproved ? BUCKET_PERSON
               : task.held                  ? BUCKET_HELD
                                            : BUCKET_READY;
    case TASK_STARTING:
    case TASK_RUNNING:
        return BUCKET_FLIGHT;
    case TASK_FAILED:
    case TASK_PARKED:
        return BUCKET_PERSON;
    case TASK_DONE:
    case TASK_SKIPPED:
    case TASK_CANCELLED:
        return BUCKET_NONE;
    }
    return BUCKET_NONE;
}

/* Remove a task from its kind. */
static void leave_kind(struct replay *replay, uint32_t ix)
{
    const struct replay_task *task = &replay->tasks[ix];
    struct replay_kind *kind = &replay->kinds[task->kind];
    if (task->next != PLAN_NONE) {
        replay->tasks[task->next].before = task->before;
    }
    if (task->before != PLAN_NONE) {
        replay->tasks[task->before].next = task->next;
    } else {
        kind->first = task->next;
    }
    if (--kind->count == 0) {
        uint32_t last = replay->active[--replay->active_count];
        replay->active[kind->active_at] = last;
        replay->kinds[last].active_at = kind->active_at;
    }
}

/* Add a task to its current kind. */
static void join_kind(struct replay *replay, uint32_t ix)
{
    struct replay_task *task = &replay->tasks[ix];
    task->kind = retrace_kind(replay->sched, load_task(replay->run, ix)) *
                     replay->worths +
                 replay->worth[ix];
    struct replay_kind *kind = &replay->kinds[task->kind];
    task->before = PLAN_NONE;
    task->next = kind->count > 0 ? kind->first : PLAN_NONE;
    if (task->next != PLAN_NONE) {
        replay->tasks[task->next].before = ix;
    }
    kind->first = ix;
    if (kind->count++ == 0) {
        kind->active_at = replay->active_count;
        replay->active[replay->active_count++] = task->kind;
    }
}

/* Move a task to the bucket of its state. */
static void recount(void *ctx, struct task_id id)
{
    struct replay *replay = ctx;
    uint32_t ix = load_plan_task(replay->run, id);
    struct replay_task *task = &replay->tasks[ix];
    uint32_t *counts = replay->counts[replay->plan->tasks[ix].class_ix];
    if (task->bucket == BUCKET_READY) {
        leave_kind(replay, ix);
    }
    counts[task->bucket]--;
    replay->totals[task->bucket]--;
    task->bucket = bucket_of(replay, ix);
    counts[task->bucket]++;
    replay->totals[task->bucket]++;
    if (task->bucket == BUCKET_READY) {
        join_kind(replay, ix);
    }
}

/* --- applying events ---------------------------------------------------- */

static void apply(struct replay *replay, const struct sched_event *event)
{
    /* A request that the state forbids changes nothing, as in the run. */
    (void)!sched_apply(replay->sched, event);
}

/* Set a limit from requests, spent budget and usage monitors. */
static void set_limit(struct replay *replay, uint32_t ix, int64_t at_ns)
{
    const struct plan *plan = replay->plan;
    const struct plan_limit *limit = &plan->limits[ix];
    struct sched_event event = {
        .type = EVENT_LIMIT,
        .now_ns = at_ns,
        .limit = load_limit(replay->run, ix),
        .max = replay->max[ix] >= 0 ? replay->max[ix] : 0,
        .percent = replay->max[ix] < 0 ? limit->percent : 0,
    };
    if (limit->kind == PLAN_LIMIT_COST) {
        event.max = LIMIT_NONE; /* the log does not record when it applied */
    } else if (event.max != LIMIT_NONE) {
        event.max -=
            replay->spent[ix] < event.max ? replay->spent[ix] : event.max;
    }
    apply(replay, &event);
    event.max = sched_limit_max(replay->sched, event.limit);
    event.percent = 0;
    for (uint32_t n = 0; !replay->override && n < plan->usage_count; n++) {
        if (plan->usages[n].limit == ix && replay->usage_max[n] < event.max) {
            event.max = replay->usage_max[n];
            apply(replay, &event);
        }
    }
}

/* Record the cap if it has changed. */
static void note_cap(struct replay *replay, int64_t at_ns)
{
    struct stats *stats = replay->stats;
    int64_t cap = sched_limit_max(replay->sched, load_limit(replay->run, 0));
    if (stats->cap_count > 0 && cap == replay->cap) {
        return;
    }
    replay->cap = cap;
    if (stats->cap_count % 16 == 0) {
        stats->caps = mem_resize(stats->caps,
                                 (size_t)stats->cap_count + 16,
                                 sizeof(stats->caps[0]));
    }
    stats->caps[stats->cap_count++] = (struct stats_cap){at_ns, cap};
}

static void set_limits(struct replay *replay, int64_t at_ns)
{
    for (uint32_t ix = 0; ix < replay->plan->limit_count; ix++) {
        set_limit(replay, ix, at_ns);
    }
    note_cap(replay, at_ns);
}

static void move_task(struct replay *replay,
                      const struct run_history_event *event)
{
    uint32_t ix = event->task;
    replay->tasks[ix].seen = true;
    if (event->to == TASK_RUNNING) {
        replay->refused[core_task(replay, ix).provider.v] = false;
    }
    retrace_task(&replay->retrace,
                 event->at_ns,
                 load_task(replay->run, ix),
                 event->to,
                 event->session != HISTORY_NONE);
}

/* Charge the cost of a session to its budgets. */
static void end_session(struct replay *replay,
                        const struct run_history_session *session,
                        int64_t at_ns)
{
    const struct plan *plan = replay->plan;
    const struct plan_task *task = &plan->tasks[session->task];
    for (uint32_t ix = 0; ix < plan->limit_count; ix++) {
        const struct plan_limit *limit = &plan->limits[ix];
        if (!plan_is_budget(limit) ||
            plan_budget_units(plan, limit, task) == 0) {
            continue;
        }
        if (limit->kind == PLAN_LIMIT_BUDGET_USD) {
            stats_add(&replay->spent[ix],
                      1,
                      (int64_t)(session->usd * PLAN_USD + 0.5));
        } else {
            stats_add(&replay->spent[ix], 1, session->input_tokens);
            stats_add(&replay->spent[ix], 1, session->output_tokens);
        }
        set_limit(replay, ix, at_ns);
    }
    /* Only a later start takes a refusal back. */
    if (session->outcome == HISTORY_REFUSED) {
        replay->refused[core_task(replay, session->task).provider.v] = true;
    }
}

static void take_event(struct replay *replay,
                       const struct run_history_event *event)
{
    const struct run_history *history = replay->history;
    struct sched_event order = {
        .type = event->kind == HISTORY_PAUSE ? EVENT_PAUSE : EVENT_RESUME,
        .now_ns = event->at_ns,
        .run = load_run_id(replay->run),
    };
    switch (event->kind) {
    case HISTORY_TASK:
        move_task(replay, event);
        break;
    case HISTORY_END:
        if (event->session != HISTORY_NONE) {
            end_session(replay,
                        &history->sessions[event->session],
                        event->at_ns);
        }
        break;
    case HISTORY_LIMIT:
        replay->max[event->part] = event->max;
        set_limits(replay, event->at_ns);
        break;
    case HISTORY_USAGE:
        replay->usage_max[event->part] = event->max;
        set_limits(replay, event->at_ns);
        break;
    case HISTORY_OVERRIDE:
        replay->override = event->max != 0;
        set_limits(replay, event->at_ns);
        break;
    case HISTORY_PAUSE:
    case HISTORY_RESUME:
        apply(replay, &order);
        break;
    case HISTORY_HOLD:
    case HISTORY_RELEASE:
        retrace_hold(&replay->retrace,
                     load_task(replay->run, event->task),
                     event->kind == HISTORY_HOLD);
        break;
    }
}

/* --- adding up intervals ------------------------------------------------ */

/* Convert a reason of the core to a reason of the report. */
static enum stats_reason
reason_of(const struct replay *replay, uint32_t task, const struct why *why)
{
    if (why->code == WHY_PAUSED) {
        return STATS_PAUSED;
    }
    if (why->code == WHY_HALTED) {
        return STATS_PERSON;
    }
    if (why->code == WHY_DEFERRED) {
        return STATS_DEFERRED;
    }
    if (why->limit.v != ID_NONE) {
        return load_plan_limit(replay->run, why->limit) == 0 ? STATS_SLOT
                                                             : STATS_LIMIT;
    }
    return replay->refused[core_task(replay, task).provider.v] ? STATS_PROVIDER
                                                               : STATS_OTHER;
}

/* Whether a task of lower value holds the capacity that this task needs. */
static bool is_starved(const struct replay *replay, uint32_t task)
{
    struct task_id id = load_task(replay->run, task);
    uint32_t count = 0;
    const uint32_t *in_flight = sched_in_flight(replay->sched, &count);
    for (uint32_t n = 0; n < count; n++) {
        struct task_id other = {in_flight[n]};
        uint32_t other_ix = load_plan_task(replay->run, other);
        if (replay->worth[other_ix] > replay->worth[task] &&
            retrace_leads(replay->sched, other) &&
            sched_fits_without(replay->sched, id, other)) {
            return true;
        }
    }
    return false;
}

static void
add_kind(struct replay *replay, const struct replay_kind *kind, int64_t ns)
{
    struct stats *stats = replay->stats;
    uint32_t task = kind->first;
    uint32_t class_ix = replay->plan->tasks[task].class_ix;
    struct why why = why_limited(replay->sched, load_task(replay->run, task));
    enum stats_reason reason = reason_of(replay, task, &why);
    stats_add(&stats->classes[class_ix].waits_ns[reason], kind->count, ns);
    if (reason == STATS_LIMIT) {
        uint32_t limit = load_plan_limit(replay->run, why.limit);
        stats_add(&stats->limit_waits_ns[limit], kind->count, ns);
    }
    if (why.limit.v != ID_NONE && replay->worth[task] + 1 < replay->worths &&
        !replay->starved[class_ix]) {
        replay->starved[class_ix] = is_starved(replay, task);
    }
}

static void add_waits(struct replay *replay, int64_t length_ns)
{
    static const enum stats_reason reasons[BUCKET_READY] = {
        [BUCKET_NEEDS] = STATS_NEEDS,
        [BUCKET_BACKOFF] = STATS_BACKOFF,
        [BUCKET_PERSON] = STATS_PERSON,
        [BUCKET_HELD] = STATS_HELD,
    };
    struct stats *stats = replay->stats;
    uint32_t class_count = replay->plan->class_count;
    memset(replay->starved, 0, class_count * sizeof(replay->starved[0]));
    for (uint32_t ix = 0; ix < replay->active_count; ix++) {
        add_kind(replay, &replay->kinds[replay->active[ix]], length_ns);
    }
    for (uint32_t ix = 0; ix < class_count; ix++) {
        struct stats_class *class = &stats->classes[ix];
        class->starved_ns += replay->starved[ix] ? length_ns : 0;
        for (enum bucket n = BUCKET_NEEDS; n < BUCKET_READY; n++) {
            stats_add(&class->waits_ns[reasons[n]],
                      replay->counts[ix][n],
                      length_ns);
        }
    }
}

static void add_slots(struct replay *replay, int64_t length_ns)
{
    struct stats *stats = replay->stats;
    int64_t used = replay->sessions;
    int64_t cap = replay->cap == LIMIT_NONE ? used : replay->cap;
    enum stats_idle idle = STATS_IDLE_REST;
    if (replay->active_count > 0) {
        idle = STATS_IDLE_KEPT;
    } else if (used > 0 || replay->totals[BUCKET_FLIGHT] > 0 ||
               replay->totals[BUCKET_BACKOFF] > 0) {
        idle = STATS_IDLE_NONE;
    }
    stats_add(&stats->working_ns, used, length_ns);
    stats_add(&stats->offered_ns, cap, length_ns);
    stats_add(&stats->over_ns, used > cap ? used - cap : 0, length_ns);
    stats_add(&stats->idle_ns[idle], used < cap ? cap - used : 0, length_ns);
}

/* --- the sweep ---------------------------------------------------------- */

static int compare_moments(const void *left, const void *right)
{
    const struct moment *a = left;
    const struct moment *b = right;
    if (a->at_ns != b->at_ns) {
        return a->at_ns < b->at_ns ? -1 : 1;
    }
    if (a->kind != b->kind) {
        return a->kind < b->kind ? -1 : 1;
    }
    return (a->ix > b->ix) - (a->ix < b->ix);
}

/* List all moments in order. The caller frees them. */
static struct moment *collect_moments(const struct run_history *history,
                                      uint32_t *count_out)
{
    uint32_t count = history->event_count + 2 * history->session_count;
    struct moment *moments = mem_zalloc(count, sizeof(moments[0]));
    uint32_t at = 0;
    for (uint32_t ix = 0; ix < history->event_count; ix++) {
        moments[at++] = (struct moment){
            history->events[ix].at_ns,
            MOMENT_EVENT,
            ix,
        };
    }
    for (uint32_t ix = 0; ix < history->session_count; ix++) {
        const struct run_history_session *session = &history->sessions[ix];
        moments[at++] = (struct moment){session->claimed_ns, MOMENT_CLAIM, ix};
        moments[at++] = (struct moment){session->ended_ns, MOMENT_END, ix};
    }
    INVARIANT(at == count);
    if (count > 1) {
        qsort(moments, count, sizeof(moments[0]), compare_moments);
    }
    *count_out = count;
    return moments;
}

static void run_sweep(struct replay *replay)
{
    const struct run_history *history = replay->history;
    uint32_t count;
    struct moment *moments = collect_moments(history, &count);
    int64_t before_ns = 0;
    for (uint32_t ix = 0; ix <= count; ix++) {
        int64_t now_ns = ix < count && moments[ix].at_ns < history->end_ns
                             ? moments[ix].at_ns
                             : history->end_ns;
        if (now_ns > before_ns) {
            retrace_settle(&replay->retrace);
            add_slots(replay, now_ns - before_ns);
            add_waits(replay, now_ns - before_ns);
            before_ns = now_ns;
        }
        if (ix == count) {
            break;
        }
        if (moments[ix].kind == MOMENT_EVENT) {
            take_event(replay, &history->events[moments[ix].ix]);
        } else {
            replay->sessions +=
                moments[ix].kind == MOMENT_CLAIM ? 1 : UINT32_MAX;
        }
    }
    mem_free(moments);
}

static void release(struct replay *replay)
{
    load_free(replay->load);
    sched_free(replay->sched);
    mem_free(replay->tasks);
    mem_free(replay->kinds);
    mem_free(replay->active);
    mem_free(replay->counts);
    mem_free(replay->worth);
    mem_free(replay->refused);
    mem_free(replay->starved);
    mem_free(replay->max);
    mem_free(replay->spent);
    mem_free(replay->usage_max);
}

/* Initialise the counts by kind, provider and worth. */
static void prepare(struct replay *replay)
{
    const struct plan *plan = replay->plan;
    sim_find_worth(plan, replay->worth);
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        uint32_t worth = replay->worth[ix];
        replay->worths = worth < replay->worths ? replay->worths : worth + 1;
        replay->counts[plan->tasks[ix].class_ix][BUCKET_NONE]++;
    }
    replay->totals[BUCKET_NONE] = plan->task_count;
    size_t kinds = (size_t)retrace_kind_count(replay->sched) * replay->worths;
    replay->kinds = mem_zalloc(kinds, sizeof(replay->kinds[0]));
    replay->active = mem_zalloc(plan->task_count, sizeof(uint32_t));
    replay->refused =
        mem_zalloc(load_provider_count(replay->load), sizeof(bool));
    for (uint32_t ix = 0; ix < plan->limit_count; ix++) {
        replay->max[ix] =
            plan->limits[ix].percent > 0 ? -1 : plan->limits[ix].max;
    }
    for (uint32_t ix = 0; ix < plan->usage_count; ix++) {
        replay->usage_max[ix] = PLAN_UNLIMITED;
    }
    retrace_begin(&replay->retrace);
    set_limits(replay, 0);
}

void stats_replay(struct stats *stats)
{
    const struct plan *plan = stats->history->plan;
    struct replay replay = {
        .stats = stats,
        .history = stats->history,
        .plan = plan,
        .sched = sched_new(),
        .tasks = mem_zalloc(plan->task_count, sizeof(replay.tasks[0])),
        .counts = mem_zalloc(plan->class_count, sizeof(replay.counts[0])),
        .worth = mem_zalloc(plan->task_count, sizeof(uint32_t)),
        .starved = mem_zalloc(plan->class_count, sizeof(bool)),
        .max = mem_zalloc(plan->limit_count, sizeof(int64_t)),
        .spent = mem_zalloc(plan->limit_count, sizeof(int64_t)),
        .usage_max = mem_zalloc(plan->usage_count, sizeof(int64_t)),
    };
    struct diag ignored = {0};
    replay.retrace = (struct retrace){replay.sched, recount, &replay};
    replay.load = load_new(replay.sched);
    enum err err = load_plan(replay.load, 0, plan, NULL, &replay.run, &ignored);
    INVARIANT(err == ERR_OK); /* the plan loaded at submission */
    prepare(&replay);
    run_sweep(&replay);
    release(&replay);
}
