/* SPDX-License-Identifier: MIT */
#include "view/snapshot.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"

#include <string.h>

struct snapshot_task {
    enum task_state state;
    struct why why;
};

struct snapshot_run {
    uint32_t counts[TASK_STATE_COUNT];
    struct snapshot_pending pending;
    int64_t *used; /* per limit of the plan */
};

/* A group, identified by any of its tasks. */
struct snapshot_group {
    uint32_t run;
    uint32_t group; /* in the plan; PLAN_NONE: unknown */
};

struct snapshot {
    struct engine *engine;
    struct snapshot_run *runs;
    uint32_t run_count;
    struct snapshot_task *tasks; /* by core index */
    uint32_t task_count;
    struct snapshot_group *groups; /* by core index */
    uint32_t group_count;
};

static bool is_in_flight(enum task_state state)
{
    return state == TASK_STARTING || state == TASK_RUNNING;
}

static void take_states(struct snapshot *snapshot)
{
    const struct sched *sched = engine_sched(snapshot->engine);
    for (uint32_t ix = 0; ix < snapshot->task_count; ix++) {
        snapshot->tasks[ix].state =
            sched_task(sched, (struct task_id){ix}).state;
    }
}

static void take_limits(struct snapshot *snapshot)
{
    const struct sched *sched = engine_sched(snapshot->engine);
    for (uint32_t ix = 0; ix < snapshot->run_count; ix++) {
        struct engine_run_view run = engine_run(snapshot->engine, ix);
        int64_t *used = mem_zalloc(run.plan->limit_count, sizeof(used[0]));
        for (uint32_t n = 0; n < run.plan->limit_count; n++) {
            used[n] = sched_limit_used(sched, load_limit(run.loaded, n));
        }
        snapshot->runs[ix].used = used;
    }
}

/* Find the groups of the plan; the core has only numbers. */
static void take_groups(struct snapshot *snapshot)
{
    const struct sched *sched = engine_sched(snapshot->engine);
    for (uint32_t ix = 0; ix < snapshot->group_count; ix++) {
        snapshot->groups[ix].group = PLAN_NONE;
    }
    for (uint32_t ix = 0; ix < snapshot->run_count; ix++) {
        struct engine_run_view run = engine_run(snapshot->engine, ix);
        for (uint32_t n = 0; n < run.plan->task_count; n++) {
            struct task_id task = load_task(run.loaded, n);
            uint32_t group = sched_task(sched, task).group.v;
            if (group != ID_NONE && run.plan->tasks[n].group != PLAN_NONE) {
                snapshot->groups[group] = (struct snapshot_group){
                    .run = ix,
                    .group = run.plan->tasks[n].group,
                };
            }
        }
    }
}

/* Lookahead effort, as in the scheduler: some hundredths of a second. */
enum { EFFORT = 500000 };

/* Take the pass that the scheduler would take now, without its effects. */
static void take_pass(struct engine *engine)
{
    struct sched *sched = engine_sched(engine);
    struct sched_event tick = {
        .type = EVENT_TICK,
        .now_ns = engine_time_ns(engine),
    };
    enum err err = sched_apply(sched, &tick);
    INVARIANT(err == ERR_OK);
    (void)sched_plan(sched, EFFORT);
    struct sched_effect effect;
    while (sched_next_effect(sched, &effect)) {
        /* Started tasks are recognised by their state. */
    }
}

static void on_why(void *ctx, struct task_id task, const struct why *why)
{
    struct snapshot *snapshot = ctx;
    struct snapshot_task *t = &snapshot->tasks[task.v];
    struct sched_task now = sched_task(engine_sched(snapshot->engine), task);
    t->why = *why;
    if (is_in_flight(now.state) && !is_in_flight(t->state)) {
        t->state = TASK_READY;
        t->why.code = WHY_STARTABLE;
    } else {
        t->state = now.state;
    }
    struct snapshot_run *run = &snapshot->runs[now.run.v];
    run->counts[t->state]++;
    run->pending.snoozed += now.snoozed ? 1 : 0;
    run->pending.early += now.early ? 1 : 0;
    run->pending.unapproved += now.unapproved && t->state == TASK_READY ? 1 : 0;
}

struct snapshot *snapshot_new(struct engine *engine, bool is_reader)
{
    struct sched *sched = engine_sched(engine);
    struct snapshot *snapshot = mem_zalloc(1, sizeof(*snapshot));
    *snapshot = (struct snapshot){
        .engine = engine,
        .run_count = engine_run_count(engine),
        .task_count = sched_task_count(sched),
        .group_count = sched_group_count(sched),
    };
    snapshot->runs = mem_zalloc(snapshot->run_count, sizeof(snapshot->runs[0]));
    snapshot->tasks =
        mem_zalloc(snapshot->task_count, sizeof(snapshot->tasks[0]));
    snapshot->groups =
        mem_zalloc(snapshot->group_count, sizeof(snapshot->groups[0]));
    take_states(snapshot);
    take_limits(snapshot);
    take_groups(snapshot);
    if (is_reader) {
        take_pass(engine);
    }
    why_all(sched, on_why, snapshot);
    return snapshot;
}

void snapshot_free(struct snapshot *snapshot)
{
    if (snapshot == NULL) {
        return;
    }
    for (uint32_t ix = 0; ix < snapshot->run_count; ix++) {
        mem_free(snapshot->runs[ix].used);
    }
    mem_free(snapshot->runs);
    mem_free(snapshot->tasks);
    mem_free(snapshot->groups);
    mem_free(snapshot);
}

uint32_t snapshot_count(const struct snapshot *snapshot,
                        uint32_t run,
                        enum task_state state)
{
    INVARIANT(run < snapshot->run_count);
    return snapshot->runs[run].counts[state];
}

struct snapshot_pending snapshot_pending(const struct snapshot *snapshot,
                                         uint32_t run)
{
    INVARIANT(run < snapshot->run_count);
    return snapshot->runs[run].pending;
}

uint32_t snapshot_stopper(const struct snapshot *snapshot, uint32_t run)
{
    struct engine_run_view view = engine_run(snapshot->engine, run);
    for (uint32_t ix = 0; ix < view.plan->task_count; ix++) {
        if (view.sched.stopped == SCHED_STOPPED_FAILURE &&
            view.plan->tasks[ix].settings->on_failure == PLAN_ON_FAILURE_STOP &&
            snapshot_state(snapshot, run, ix) == TASK_PARKED) {
            return ix;
        }
    }
    return PLAN_NONE;
}

int64_t
snapshot_used(const struct snapshot *snapshot, uint32_t run, uint32_t limit)
{
    INVARIANT(run < snapshot->run_count);
    return snapshot->runs[run].used[limit];
}

static struct task_id
core_task(const struct snapshot *snapshot, uint32_t run, uint32_t task)
{
    return load_task(engine_loaded(snapshot->engine, run), task);
}

static const struct snapshot_task *
find_task(const struct snapshot *snapshot, uint32_t run, uint32_t task)
{
    struct task_id id = core_task(snapshot, run, task);
    INVARIANT(id.v < snapshot->task_count);
    return &snapshot->tasks[id.v];
}

enum task_state
snapshot_state(const struct snapshot *snapshot, uint32_t run, uint32_t task)
{
    return find_task(snapshot, run, task)->state;
}

/* Return the run and plan index of a task of the core. */
static void locate(const struct snapshot *snapshot,
                   struct task_id id,
                   uint32_t *run_out,
                   uint32_t *task_out)
{
    const struct sched *sched = engine_sched(snapshot->engine);
    *run_out = sched_task(sched, id).run.v;
    *task_out = load_plan_task(engine_loaded(snapshot->engine, *run_out), id);
    INVARIANT(*task_out != PLAN_NONE);
}

bool snapshot_cause(const struct snapshot *snapshot,
                    uint32_t run,
                    uint32_t task,
                    uint32_t *run_out,
                    uint32_t *task_out)
{
    const struct why *why = &find_task(snapshot, run, task)->why;
    if (why->task.v == ID_NONE) {
        return false;
    }
    locate(snapshot, why->task, run_out, task_out);
    return true;
}

/* Fill in the names of the task, its group and its run. */
static void name_holder(const struct snapshot *snapshot,
                        uint32_t run,
                        const struct why *why,
                        struct reason *reason)
{
    uint32_t other = run;
    if (why->task.v != ID_NONE) {
        uint32_t task;
        locate(snapshot, why->task, &other, &task);
        reason->task = engine_plan(snapshot->engine, other)->tasks[task].id;
    }
    if (why->group.v != ID_NONE) {
        const struct snapshot_group *group = &snapshot->groups[why->group.v];
        struct engine_run_view view = engine_run(snapshot->engine, group->run);
        if (group->group != PLAN_NONE) {
            other = group->run;
            reason->group = view.plan->groups[group->group].id;
        }
    }
    if (other != run) {
        reason->run = engine_run(snapshot->engine, other).id;
    }
}

/* Fill in how the task needs the one that the reason names to end, and the
 * group that a task of `finally` comes after. */
static void name_need(const struct snapshot *snapshot,
                      uint32_t run,
                      uint32_t task,
                      struct reason *reason)
{
    const struct plan *plan = engine_plan(snapshot->engine, run);
    const struct plan_task *t = &plan->tasks[task];
    uint32_t other_run;
    uint32_t other;
    if (reason->code == WHY_REST && t->scope != PLAN_NONE) {
        reason->group = plan->groups[t->scope].id;
    }
    if ((reason->code != WHY_NEEDS && reason->code != WHY_ENDED) ||
        !snapshot_cause(snapshot, run, task, &other_run, &other) ||
        other_run != run) {
        return;
    }
    reason->of = snapshot_state(snapshot, run, other);
    for (uint32_t ix = 0; ix < t->need_count; ix++) {
        if (t->needs[ix] == other) {
            reason->on = (enum plan_on)t->ons[ix];
        }
    }
}

/* If a usage monitor has set the limit to 0, report the monitor instead of the
 * limit, and the time left. */
static void name_usage(const struct engine *engine,
                       uint32_t run,
                       uint32_t limit,
                       struct reason *reason)
{
    const struct plan *plan = engine_plan(engine, run);
    if (reason->max != 0 || engine_is_overridden(engine) ||
        engine_limit_set(engine, run, limit) == 0) {
        return;
    }
    for (uint32_t ix = 0; ix < plan->usage_count; ix++) {
        struct engine_usage_view usage = engine_usage(engine, run, ix);
        if (usage.limit == limit && usage.cap == 0) {
            reason->code = WHY_USAGE;
            reason->provider = usage.provider;
            reason->unread = usage.read_ns == 0;
            reason->stopped = reason->unread ? usage.error : NULL;
            reason->left_ns = usage.until_ns > 0
                                  ? usage.next_ns - engine_wall_ns(engine)
                                  : SCHED_NEVER;
        }
    }
}

/* Note whether a limit of the store is what its workers offer. */
static void name_workers(const struct engine *engine,
                         const struct load_run *loaded,
                         struct limit_id limit,
                         struct reason *reason)
{
    for (uint32_t ix = 0; ix < load_label_count(loaded); ix++) {
        const char *label;
        if (load_label(loaded, ix, &label).v == limit.v) {
            reason->limit_slots = true;
            reason->limit_label = label;
        }
    }
    if (strcmp(reason->limit, "sessions") == 0 &&
        reason->max == engine_worker_slots(engine)) {
        reason->limit_slots = true;
    }
}

static void name_limit(const struct engine *engine,
                       uint32_t run,
                       const struct why *why,
                       struct reason *reason)
{
    if (why->limit.v == ID_NONE) {
        return;
    }
    const struct load_run *loaded = engine_loaded(engine, run);
    reason->max = sched_limit_max(engine_sched(engine), why->limit);
    uint32_t limit = load_plan_limit(loaded, why->limit);
    if (limit == PLAN_NONE) {
        reason->limit = load_store_limit_name(loaded, why->limit);
        reason->limit_store = true;
        INVARIANT(reason->limit != NULL);
        name_workers(engine, loaded, why->limit, reason);
        return;
    }
    const struct plan_limit *of = &engine_plan(engine, run)->limits[limit];
    reason->limit = of->name;
    reason->limit_usd = of->kind == PLAN_LIMIT_BUDGET_USD;
    reason->limit_unpriced = of->kind == PLAN_LIMIT_COST;
    reason->limit_class =
        plan_is_paid(of) && of->where_count > 0 ? of->where[0].value : NULL;
    name_usage(engine, run, limit, reason);
}

struct reason
snapshot_reason(const struct snapshot *snapshot, uint32_t run, uint32_t task)
{
    struct engine *engine = snapshot->engine;
    const struct sched *sched = engine_sched(engine);
    const struct snapshot_task *t = find_task(snapshot, run, task);
    const struct why *why = &t->why;
    struct sched_task now = sched_task(sched, core_task(snapshot, run, task));
    struct reason reason = {
        .code = why->code,
        .left_ns = SCHED_NEVER,
        .max = -1,
        .parked = why->parked,
        .state = t->state,
        .revoked = now.revoked,
        .held = now.held && !now.unapproved &&
                (t->state == TASK_WAITING || t->state == TASK_READY),
        .stop = sched_run(sched, (struct run_id){run}).stopped,
    };
    if (why->code == WHY_PARKED) {
        enum outcome_lack lack = engine_lack(engine, run, task);
        reason.broke = lack == OUTCOME_LACKS_MONEY;
        reason.unready =
            why->parked == SCHED_PARKED_BLOCKED && lack == OUTCOME_LACKS_START;
        reason.base = engine_plan(engine, run)->tasks[task].base_gate;
        reason.bad_base = reason.base && lack == OUTCOME_LACKS_BASE;
    }
    name_holder(snapshot, run, why, &reason);
    name_need(snapshot, run, task, &reason);
    name_limit(engine, run, why, &reason);
    if (why->provider.v != ID_NONE) {
        reason.provider =
            load_provider_name(engine_loader(engine), why->provider);
        reason.stopped = engine_stop_reason(engine, why->provider);
    }
    if (why->until_ns != SCHED_NEVER) {
        int64_t left_ns = why->until_ns - engine_time_ns(engine);
        reason.left_ns = left_ns > 0 ? left_ns : 0;
        bool dated = why->code == WHY_SNOOZED || why->code == WHY_EARLY;
        reason.until_ns =
            dated ? duration_sum(engine_wall_ns(engine), reason.left_ns) : 0;
    }
    return reason;
}

bool snapshot_needs_person(const struct snapshot *snapshot,
                           uint32_t run,
                           uint32_t task)
{
    const struct snapshot_task *t = find_task(snapshot, run, task);
    struct sched_task now = sched_task(engine_sched(snapshot->engine),
                                       core_task(snapshot, run, task));
    bool optional =
        engine_plan(snapshot->engine, run)->tasks[task].settings->optional;
    return t->state == TASK_PARKED || (t->state == TASK_FAILED && !optional) ||
           now.revoked || (now.unapproved && t->state == TASK_READY);
}

/* Whether a task will run, as far as is known. */
static bool is_to_come(const struct snapshot_task *task)
{
    bool waits = task->state == TASK_WAITING || task->state == TASK_READY;
    enum why_code code = task->why.code;
    return is_in_flight(task->state) ||
           (waits && code != WHY_BLOCKED && code != WHY_HELD &&
            code != WHY_STOPPED && code != WHY_APPROVAL && code != WHY_HALTED);
}

/* Remaining time of a task: longest path and own work. */
struct left {
    int64_t path_ns;
    int64_t work_ns;
};

static struct left left_of(const struct snapshot *snapshot,
                           const struct sched_task *task,
                           uint32_t ix,
                           int64_t wall_ns)
{
    struct engine_session_view session;
    struct left left = {task->rank_ns, task->estimate_ns};
    if (!is_in_flight(task->state) ||
        !engine_find_session(snapshot->engine, task->token, &session)) {
        return left;
    }
    if (session.begun_ns > 0 && session.begun_ns < wall_ns) {
        int64_t gone_ns = wall_ns - session.begun_ns;
        gone_ns = gone_ns < task->estimate_ns ? gone_ns : task->estimate_ns;
        left.path_ns -= gone_ns;
        left.work_ns -= gone_ns;
    }
    if (session.task != ix) {
        left.work_ns = 0; /* it shares the slot of another task */
    }
    return left;
}

/* How long a task is snoozed or early from now on. */
static int64_t pause_ns(const struct snapshot *snapshot, struct task_id id)
{
    const struct why *why = &snapshot->tasks[id.v].why;
    if ((why->code != WHY_SNOOZED && why->code != WHY_EARLY) ||
        why->until_ns == SCHED_NEVER) {
        return 0;
    }
    int64_t left_ns = why->until_ns - engine_time_ns(snapshot->engine);
    return left_ns > 0 ? left_ns : 0;
}

int64_t
snapshot_left_ns(const struct snapshot *snapshot, uint32_t run, int64_t wall_ns)
{
    struct engine_run_view view = engine_run(snapshot->engine, run);
    const struct sched *sched = engine_sched(snapshot->engine);
    int64_t cap = sched_limit_max(sched, load_limit(view.loaded, 0));
    int64_t path_ns = 0;
    double work_ns = 0;
    for (uint32_t ix = 0; ix < view.plan->task_count; ix++) {
        struct task_id id = load_task(view.loaded, ix);
        struct sched_task task = sched_task(sched, id);
        bool stopped = view.sched.stopped != SCHED_NOT_STOPPED && !task.last &&
                       !is_in_flight(snapshot->tasks[id.v].state);
        if (is_to_come(&snapshot->tasks[id.v]) && !stopped) {
            task.state = snapshot->tasks[id.v].state;
            struct left left = left_of(snapshot, &task, ix, wall_ns);
            left.path_ns = duration_sum(left.path_ns, pause_ns(snapshot, id));
            path_ns = left.path_ns > path_ns ? left.path_ns : path_ns;
            work_ns += (double)left.work_ns;
        }
    }
    if (cap == 0 && work_ns > 0) {
        return SCHED_NEVER;
    }
    double share_ns = cap == LIMIT_NONE || cap == 0 ? 0 : work_ns / (double)cap;
    return share_ns > (double)path_ns ? (int64_t)share_ns : path_ns;
}
