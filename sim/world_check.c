/* SPDX-License-Identifier: MIT */
/*
 * Invariant checks. They keep two records: the durable state, from the batches
 * that the store has accepted, and the machine's observations. Neither comes
 * from the engine.
 */
#include "sim/world_internal.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t world_check_find_run(const struct world *world, const char *id)
{
    for (uint32_t ix = 0; ix < world->run_count; ix++) {
        if (strcmp(world->runs[ix].id, id) == 0) {
            return ix;
        }
    }
    return WORLD_NONE;
}

static uint32_t find_number(const struct world *world, uint32_t number)
{
    for (uint32_t ix = 0; ix < world->run_count; ix++) {
        if (world->runs[ix].number == number) {
            return ix;
        }
    }
    return WORLD_NONE;
}

static const char *
task_name(const struct world *world, uint32_t run, uint32_t task)
{
    return world->runs[run].plan->tasks[task].id;
}

/* --- durable state ------------------------------------------------------ */

static void grow_tasks(struct world_run *run)
{
    uint32_t count = run->plan->task_count;
    run->tasks = mem_resize(run->tasks, count, sizeof(run->tasks[0]));
    for (uint32_t ix = run->task_count; ix < count; ix++) {
        run->tasks[ix] = (struct world_task){.state = "new"};
    }
    run->task_count = count;
}

static void note_run(struct world *world, const struct store_run *row)
{
    MEM_GROW(world->runs, world->run_count, world->run_capacity);
    struct world_run *run = &world->runs[world->run_count];
    *run = (struct world_run){
        .number = row->number,
        .plan_ix = WORLD_NONE,
        .id = mem_strndup(row->id, strlen(row->id)),
        .usage_cap = LIMIT_NONE,
    };
    for (uint32_t ix = 0; ix < world->plan_count; ix++) {
        if (strcmp(world->plans[ix].text, row->text) == 0) {
            run->plan_ix = ix;
            world->plans[ix].run = world->run_count;
        }
    }
    world->run_count++;
    struct plan_errors errors = {0};
    struct plan_source source = {
        .file = "plan",
        .text = row->text,
        .len = row->text_bytes,
        .processors = row->processors,
        .no_base_gates = !row->base_gates,
    };
    if (run->plan_ix == WORLD_NONE ||
        !plan_read(&run->plan, &source, &errors)) {
        world_fault(world, "run %s is not one that was submitted", run->id);
        plan_errors_release(&errors);
        return;
    }
    grow_tasks(run);
    for (uint32_t ix = 0; ix < run->plan->limit_count && ix < WORLD_LIMITS_MAX;
         ix++) {
        run->limits[ix] = run->plan->limits[ix].max;
    }
}

static void note_fragment(struct world *world, const struct store_fragment *row)
{
    uint32_t ix = find_number(world, row->run);
    struct plan_errors errors = {0};
    struct plan_source source = {
        .file = "fragment",
        .text = row->text,
        .len = row->text_bytes,
        .processors = 2,
    };
    if (ix == WORLD_NONE || !plan_add(world->runs[ix].plan, &source, &errors)) {
        world_fault(world, "a fragment that does not fit was stored");
        plan_errors_release(&errors);
        return;
    }
    grow_tasks(&world->runs[ix]);
}

static void note_limit(struct world *world, const struct store_limit *row)
{
    uint32_t ix = find_number(world, row->run);
    if (ix == WORLD_NONE) {
        world_fault(world, "a limit of no run was stored");
        return;
    }
    uint32_t limit = plan_find_limit(world->runs[ix].plan, row->name);
    if (limit < WORLD_LIMITS_MAX) {
        world->runs[ix].limits[limit] = row->max;
    }
}

/* Return whether its group has requested rework since the task was done. */
static bool was_sent_back(const struct world_run *run, uint32_t ix)
{
    uint32_t group = run->plan->tasks[ix].group;
    for (uint32_t n = 0; group != PLAN_NONE && n < run->task_count; n++) {
        if (run->plan->tasks[n].group == group &&
            run->plan->tasks[n].rework_to != PLAN_NONE &&
            run->tasks[n].sent_back_seq > run->tasks[ix].done_seq) {
            return true;
        }
    }
    return false;
}

/* An engine ignores smaller jumps of the wall clock. */
#define CLOCK_NS WORLD_SECOND

/* Check that a task does not wake up before its time: that of a snooze is of
 * the engine's clock, an earliest start of the wall clock, which may jump; if
 * it was reached before a jump, the task stays ready. */
static void check_waking(struct world *world,
                         const struct world_task *task,
                         const struct store_task *row,
                         const struct store_batch *batch)
{
    uint32_t lost = task->flags & ~row->flags;
    int64_t left_ns = 0;
    if ((lost & SCHED_RECORD_SNOOZED) != 0) {
        left_ns = task->until_ns - batch->engine_ns;
    } else if ((lost & SCHED_RECORD_EARLY) != 0) {
        int64_t wall_ns = batch->wall_ns;
        for (uint32_t ix = 0; ix < 2; ix++) {
            int64_t was_ns = world->wall_was_ns[ix];
            wall_ns = was_ns > wall_ns ? was_ns : wall_ns;
        }
        left_ns = task->until_wall_ns - wall_ns - CLOCK_NS;
    }
    if (left_ns > 0 && !task->ordered && strcmp(row->state, "cancelled") != 0 &&
        strcmp(row->state, "skipped") != 0) {
        world_fault(world,
                    "%s is %s %.3f s before its time",
                    row->id,
                    row->state,
                    (double)left_ns / 1e9);
    }
}

static void note_task(struct world *world,
                      const struct store_task *row,
                      const struct store_batch *batch)
{
    uint32_t run_ix = find_number(world, row->run);
    if (run_ix == WORLD_NONE || row->ix >= world->runs[run_ix].task_count) {
        world_fault(world, "a row of no task was stored");
        return;
    }
    struct world_run *run = &world->runs[run_ix];
    struct world_task *task = &run->tasks[row->ix];
    bool was_done = strcmp(task->state, "done") == 0;
    bool is_done = strcmp(row->state, "done") == 0;
    world_say(world,
              "%s %s: %s -> %s",
              run->id,
              row->id,
              task->state,
              row->state);
    if (was_done && !is_done && !was_sent_back(run, row->ix) && !run->reran &&
        !run->plan->tasks[row->ix].last) {
        world_fault(world,
                    "%s of %s was done and is %s",
                    row->id,
                    run->id,
                    row->state);
    }
    if (strcmp(task->state, "cancelled") == 0 &&
        strcmp(row->state, "cancelled") != 0) {
        world_fault(world, "%s was cancelled and is %s", row->id, row->state);
    }
    if (is_done && !was_done) {
        task->done_seq = ++world->seq;
        if (task->done_count == 0) {
            world_fault(world, "%s is done, and no session did it", row->id);
        }
    }
    if (row->number < task->number) {
        world_fault(world, "attempts of %s are counted anew", row->id);
    }
    check_waking(world, task, row, batch);
    task->given_up = strcmp(row->state, "cancelled") == 0 &&
                     (task->given_up || strcmp(task->state, "parked") == 0);
    task->number = row->number;
    task->flags = row->flags;
    task->parked = row->parked;
    task->until_ns = row->until_ns;
    task->until_wall_ns = row->until_ns + batch->wall_ns - batch->engine_ns;
    if ((row->flags & SCHED_RECORD_ENDING) == 0) {
        task->ending_ns = 0;
    } else if (task->ending_ns == 0) {
        task->ending_ns = world->now_ns;
    }
    size_t len = strlen(row->state);
    len = len < sizeof(task->state) ? len : sizeof(task->state) - 1;
    memcpy(task->state, row->state, len);
    task->state[len] = '\0';
}

static void note_claim(struct world *world, const struct store_attempt *row)
{
    uint32_t run = find_number(world, row->run);
    if (run == WORLD_NONE || row->token != (uint64_t)world->claim_count + 1) {
        world_fault(world,
                    "token %llu follows %u",
                    (unsigned long long)row->token,
                    world->claim_count);
        return;
    }
    MEM_GROW(world->claims, world->claim_count, world->claim_capacity);
    struct world_claim *claim = &world->claims[world->claim_count++];
    *claim = (struct world_claim){
        .run = run,
        .task = row->task,
        .number = row->number,
        .session = WORLD_NONE,
    };
    memcpy(claim->limits, world->runs[run].limits, sizeof(claim->limits));
    if (!world->override && world->runs[run].usage_cap < claim->limits[0]) {
        claim->limits[0] = world->runs[run].usage_cap;
    }
}

/* Check an attempt that was recorded as finished. */
static void note_end(struct world *world, const struct store_attempt *row)
{
    if (row->token > world->claim_count) {
        world_fault(world, "an attempt that was not claimed has ended");
        return;
    }
    struct world_claim *claim = &world->claims[row->token - 1];
    unsigned long long token = row->token;
    claim->ended = true;
    world_board_end(world, row->token);
    world_say(world, "attempt %llu: %s", token, row->outcome);
    if (claim->lost) {
        if (strcmp(row->outcome, "lost") != 0) {
            world_fault(world,
                        "attempt %llu is lost and %s",
                        token,
                        row->outcome);
        }
        return;
    }
    if (claim->session == WORLD_NONE) {
        if (strcmp(row->outcome, "refused") != 0 &&
            strcmp(row->outcome, "stopped") != 0 &&
            strcmp(row->outcome, "blocked") != 0 &&
            strcmp(row->outcome, "lost") != 0) {
            world_fault(world,
                        "attempt %llu never ran and is %s",
                        token,
                        row->outcome);
        }
        return;
    }
    const struct world_session *session = &world->sessions[claim->session];
    bool done = strcmp(row->outcome, "done") == 0;
    for (uint32_t n = 0; done && n < session->task_count; n++) {
        bool alone = world_has(world, WORLD_OUTCOMES) &&
                     session->task_count == 1 && world->options.script == NULL;
        world->runs[claim->run].tasks[session->tasks[n]].output =
            alone ? row->number : 0;
    }
    if (session->live) {
        world_fault(world,
                    "attempt %llu is recorded as %s and lives",
                    token,
                    row->outcome);
    } else if (strcmp(session->outcome, row->outcome) != 0 &&
               (session->reported == NULL ||
                strcmp(session->reported, row->outcome) != 0)) {
        world_fault(world,
                    "attempt %llu is recorded as %s and was %s",
                    token,
                    row->outcome,
                    session->outcome);
    }
}

/* Whether a need has ended as it must, by its durable state. */
static bool is_met(const struct world_run *run, uint32_t need, uint32_t on)
{
    const char *state = run->tasks[need].state;
    bool done = strcmp(state, "done") == 0;
    bool skipped = strcmp(state, "skipped") == 0;
    bool failed = strcmp(state, "failed") == 0;
    bool given_up = failed || (strcmp(state, "parked") == 0 &&
                               run->tasks[need].parked != SCHED_PARKED_BLOCKED);
    switch ((enum plan_on)on) {
    case PLAN_ON_DONE:
        return done || (run->plan->tasks[need].settings->optional &&
                        (skipped || failed));
    case PLAN_ON_FAILED:
        return given_up;
    case PLAN_ON_ANY:
        return done || skipped || given_up || strcmp(state, "cancelled") == 0;
    }
    return false;
}

/* Check that the durable states satisfy all needs of a claimed task. */
static void check_claim(struct world *world, const struct store_attempt *row)
{
    uint32_t ix = find_number(world, row->run);
    const struct world_run *run = &world->runs[ix];
    const struct plan_task *task = &run->plan->tasks[row->task];
    if (strcmp(run->tasks[row->task].state, "starting") != 0) {
        world_fault(world,
                    "%s is claimed and its state is %s",
                    task->id,
                    run->tasks[row->task].state);
    }
    if (task->last) {
        world_last_check_claim(world, ix, row->task);
    }
    for (uint32_t n = 0; n < task->need_count; n++) {
        uint32_t need = task->needs[n];
        const char *state = run->tasks[need].state;
        if (!is_met(run, need, task->ons[n])) {
            world_fault(world,
                        "%s is claimed, but %s is %s",
                        task->id,
                        run->plan->tasks[need].id,
                        state);
        }
    }
}

static void note_setting(struct world *world, const struct store_setting *row)
{
    static const char usage[] = "usage/";
    world_notify_stored(world, row);
    if (strcmp(row->name, "override") == 0) {
        world->override = row->value != NULL;
    } else if (strncmp(row->name, usage, strlen(usage)) == 0) {
        const char *cap = strstr(row->value, "\"cap\":");
        uint32_t ix =
            find_number(world,
                        (uint32_t)strtoul(row->name + strlen(usage), NULL, 10));
        if (cap != NULL && ix != WORLD_NONE) {
            world->runs[ix].usage_cap = strtoll(cap + 6, NULL, 10);
        }
    }
}

static void note(struct world *world,
                 const struct store_change *change,
                 const struct store_batch *batch)
{
    switch (change->type) {
    case STORE_RUN_NEW:
        note_run(world, &change->as.run);
        break;
    case STORE_RUN_SET: {
        uint32_t ix = find_number(world, change->as.run.number);
        if (world->runs[ix].finished && !change->as.run.finished) {
            world_fault(world, "a finished run goes on");
        }
        world->runs[ix].finished = change->as.run.finished;
        world->runs[ix].cancelled = change->as.run.cancelled;
        world->runs[ix].stopped = change->as.run.stopped;
        break;
    }
    case STORE_FRAGMENT:
        note_fragment(world, &change->as.fragment);
        break;
    case STORE_LIMIT_SET:
        note_limit(world, &change->as.limit);
        break;
    case STORE_TASK_SET:
        note_task(world, &change->as.task, batch);
        break;
    case STORE_CLAIM:
        note_claim(world, &change->as.attempt);
        break;
    case STORE_ATTEMPT_SET:
        if (strcmp(change->as.attempt.state, "ended") == 0) {
            note_end(world, &change->as.attempt);
        }
        break;
    case STORE_EVENT:
        world->event_number++;
        world_notify_event(world, &change->as.event);
        break;
    case STORE_SETTING:
        note_setting(world, &change->as.setting);
        break;
    case STORE_PROVIDER:
    case STORE_GATE:
    case STORE_COMMAND:
    case STORE_PRUNE: /* of runs that are no longer checked */
        break;
    }
}

void world_check_applied(struct world *world, struct world_process *process)
{
    const struct store_batch *batch = process->batch;
    if (process->superseded) {
        world_fault(world, "a superseded scheduler has written");
    }
    process->event_number = world->event_number;
    for (uint32_t ix = 0; ix < batch->count && world->report->fault.len == 0;
         ix++) {
        note(world, &batch->changes[ix], batch);
    }
    for (uint32_t ix = 0; ix < batch->count && world->report->fault.len == 0;
         ix++) {
        if (batch->changes[ix].type == STORE_CLAIM) {
            check_claim(world, &batch->changes[ix].as.attempt);
        }
    }
    world->wall_was_ns[1] = world->wall_was_ns[0];
    world->wall_was_ns[0] = 0;
}

void world_check_claimed(struct world *world,
                         const struct exec_request *request)
{
    if (request->id >> 63 == 0 && request->id > world->claim_count) {
        world_fault(world,
                    "attempt %llu is started before its claim is durable",
                    (unsigned long long)request->id);
    }
}

/* --- the machine's observations ----------------------------------------- */

/* Live sessions, and the youngest of them. */
struct count {
    uint32_t count;
    int64_t units;
    uint64_t youngest;
};

static void
add_to(struct count *count, const struct world_session *session, uint32_t units)
{
    count->count++;
    count->units += units;
    if (session->token > count->youngest) {
        count->youngest = session->token;
    }
}

static uint32_t units_of(const struct plan_task *task, uint32_t limit)
{
    for (uint32_t n = 0; n < task->use_count; n++) {
        if (task->uses[n].limit == limit) {
            return task->uses[n].units;
        }
    }
    return 0;
}

static void hold_to(struct world *world,
                    const struct count *count,
                    uint32_t limit,
                    const char *name)
{
    if (count->count == 0 || limit >= WORLD_LIMITS_MAX) {
        return;
    }
    int64_t max = world->claims[count->youngest - 1].limits[limit];
    if (count->units > max) {
        world_fault(world,
                    "%lld units of %s are in use, and there are %lld",
                    (long long)count->units,
                    name,
                    (long long)max);
    }
}

static void check_limits(struct world *world,
                         const struct world_session *session)
{
    const struct world_run *run = &world->runs[session->run];
    const struct plan_task *task = &run->plan->tasks[session->tasks[0]];
    uint32_t gpu = plan_find_limit(run->plan, "gpu");
    uint32_t per_repo = plan_find_limit(run->plan, "perrepo");
    const char *repo =
        task->repo != PLAN_NONE ? run->plan->repos[task->repo].name : NULL;
    struct count sessions = {0};
    struct count gpus = {0};
    struct count in_repo = {0};
    for (uint32_t ix = 0; ix < world->session_count; ix++) {
        const struct world_session *other = &world->sessions[ix];
        if (!other->live || other->run == WORLD_NONE) {
            continue;
        }
        const struct plan *plan = world->runs[other->run].plan;
        const struct plan_task *first = &plan->tasks[other->tasks[0]];
        if (other->run == session->run) {
            add_to(&sessions, other, 1);
            if (units_of(first, gpu) > 0) {
                add_to(&gpus, other, units_of(first, gpu));
            }
        }
        /* Repositories of equal name are the same repository in all plans. */
        if (repo != NULL && first->repo != PLAN_NONE &&
            strcmp(plan->repos[first->repo].name, repo) == 0) {
            add_to(&in_repo, other, 1);
        }
    }
    hold_to(world, &sessions, 0, "sessions");
    hold_to(world, &gpus, gpu, "gpu");
    if (per_repo != PLAN_NONE) {
        hold_to(world, &in_repo, per_repo, "a repository");
    }
}

static void check_needs(struct world *world,
                        const struct world_session *session,
                        uint32_t task)
{
    const struct world_run *run = &world->runs[session->run];
    const struct plan_task *t = &run->plan->tasks[task];
    for (uint32_t n = 0; n < t->need_count; n++) {
        uint32_t need = t->needs[n];
        /* A need claimed later is rework, which may start at any time. */
        if (run->tasks[need].live > 0 &&
            run->tasks[need].live_token < session->token) {
            world_fault(world,
                        "%s runs while %s is being done",
                        t->id,
                        task_name(world, session->run, need));
        }
        if (run->tasks[need].done_count == 0 && t->ons[n] == PLAN_ON_DONE &&
            !run->plan->tasks[need].settings->optional) {
            world_fault(world,
                        "%s runs before %s is done",
                        t->id,
                        task_name(world, session->run, need));
        }
    }
}

/* Check that a session begins no earlier than the one before asked for. Clocks
 * that jump, and a machine that is off, are not accounted for. */
static void check_later(struct world *world,
                        const struct world_session *session,
                        struct world_task *task)
{
    if (!world_has(world, WORLD_CLOCK) && !world_has(world, WORLD_REBOOT) &&
        !task->ordered && world->now_ns < task->later_ns) {
        world_fault(world,
                    "attempt %llu begins %.3f s too early",
                    (unsigned long long)session->token,
                    (double)(task->later_ns - world->now_ns) / 1e9);
    }
    task->later_ns = 0;
}

void world_check_run(struct world *world, struct world_session *session)
{
    uint32_t ix = (uint32_t)(session - world->sessions);
    unsigned long long token = session->token;
    if (session->token > world->claim_count) {
        world_fault(world, "attempt %llu runs and was not claimed", token);
        return;
    }
    struct world_claim *claim = &world->claims[session->token - 1];
    if (world->dirs[session->dir].executions > 1 ||
        claim->session != WORLD_NONE) {
        world_fault(world, "attempt %llu runs a second time", token);
        return;
    }
    if (claim->ended || claim->lost) {
        world_fault(world, "attempt %llu runs after it was over", token);
        return;
    }
    if (session->task_count == 0 || claim->run != session->run ||
        claim->task != session->tasks[0] || claim->number != session->number) {
        world_fault(world, "attempt %llu is not what was claimed", token);
        return;
    }
    claim->session = ix;
    world_say(world,
              "attempt %llu of %s runs",
              token,
              task_name(world, session->run, session->tasks[0]));
    for (uint32_t n = 0; n < session->task_count; n++) {
        struct world_task *task =
            &world->runs[session->run].tasks[session->tasks[n]];
        if (task->live++ > 0) {
            world_fault(world,
                        "%s has two sessions",
                        task_name(world, session->run, session->tasks[n]));
        }
        task->live_token = session->token;
        check_later(world, session, task);
        check_needs(world, session, session->tasks[n]);
    }
    check_limits(world, session);
}

void world_check_ended(struct world *world, struct world_session *session)
{
    struct world_run *run = &world->runs[session->run];
    bool done = strcmp(session->outcome, "done") == 0;
    for (uint32_t n = 0; n < session->task_count; n++) {
        struct world_task *task = &run->tasks[session->tasks[n]];
        task->live--;
        task->ended_seq = ++world->seq;
        if (done && (n == 0 || strcmp(world_plan_rider(world, session, n),
                                      "done") == 0)) {
            task->done_count++;
        } else {
            task->sent_back_seq = ++world->seq;
        }
    }
}

void world_check_lost(struct world *world, uint64_t token)
{
    struct world_claim *claim = &world->claims[token - 1];
    claim->lost = true;
    if (claim->session == WORLD_NONE) {
        return;
    }
    struct world_session *session = &world->sessions[claim->session];
    if (session->live && session->stray) {
        /* Its shim is dead, and its worker was not able to act: nobody on its
         * machine can stop it. That is outside of the promise. */
        session->live = false;
        session->stray = false;
        session->outcome = "lost";
        world_check_ended(world, session);
    } else if (session->live) {
        world_fault(world,
                    "attempt %llu is lost and lives",
                    (unsigned long long)token);
    }
}

void world_check_untold(struct world *world,
                        const struct world_session *session)
{
    /* Long enough for every report, write and signal to have arrived. */
    int64_t since_ns = world->now_ns - 100 * WORLD_SECOND;
    if (world->chaos || session->run == WORLD_NONE ||
        world->calm_ns > since_ns) {
        return;
    }
    for (uint32_t n = 0; n < session->task_count; n++) {
        int64_t ending_ns =
            world->runs[session->run].tasks[session->tasks[n]].ending_ns;
        if (ending_ns == 0 || ending_ns > since_ns) {
            return;
        }
    }
    world_fault(world,
                "attempt %llu was to be ended, and nobody did",
                (unsigned long long)session->token);
}

/* --- at rest ------------------------------------------------------------ */

/* Return whether any run awaits a decision: its open groups keep their units,
 * which other runs may wait for. */
static bool is_asking(const struct engine *engine)
{
    const struct sched *sched = engine_sched(engine);
    for (uint32_t task = 0; task < sched_task_count(sched); task++) {
        if (sched_task(sched, (struct task_id){task}).asking) {
            return true;
        }
    }
    return false;
}

/* Check that this run has a reason to make no progress by itself. */
static void
check_run_rest(struct world *world, const struct engine *engine, uint32_t ix)
{
    struct engine_run_view run = engine_run(engine, ix);
    const struct sched *sched = engine_sched(engine);
    bool asking = is_asking(engine);
    if (run.sched.barrier && !asking) {
        world_fault(world, "the sync hook of %s never ends", run.id);
    }
    for (uint32_t n = 0; n < run.plan->task_count; n++) {
        struct sched_task task = sched_task(sched, load_task(run.loaded, n));
        const char *reason = engine_reason(engine, ix, n);
        /* It waits for an operator, or for a time of day. */
        bool waits = task.unapproved || task.early ||
                     (!task.last && run.sched.stopped != SCHED_NOT_STOPPED);
        bool stuck = task.state == TASK_STARTING ||
                     task.state == TASK_RUNNING ||
                     (task.backing_off && !waits) ||
                     (task.state == TASK_READY && !asking && !waits) ||
                     (task.state == TASK_WAITING && task.unmet == 0 &&
                      !task.last && !waits) ||
                     (task.state == TASK_PARKED && reason == NULL);
        if (stuck) {
            world_fault(world,
                        "%s of %s stays %s (%s)",
                        run.plan->tasks[n].id,
                        run.id,
                        sched_state_name(task.state),
                        reason != NULL ? reason : "no reason");
        }
    }
    for (uint32_t n = 0; n < run.plan->limit_count; n++) {
        int64_t used = sched_limit_used(sched, load_limit(run.loaded, n));
        if (used != 0 && (!run.plan->limits[n].hold_group || !asking)) {
            world_fault(world,
                        "%lld units of %s of %s are in use for nothing",
                        (long long)used,
                        run.plan->limits[n].name,
                        run.id);
        }
    }
}

void world_check_rest(struct world *world)
{
    if (world->report->fault.len > 0) {
        return;
    }
    if (world->current == WORLD_NONE) {
        world_fault(world, "there is no scheduler");
        return;
    }
    const struct engine *engine = world->processes[world->current]->engine;
    if (!engine_is_settled(engine) || engine_session_count(engine) > 0) {
        world_fault(world,
                    "the engine waits for %u sessions that will never end",
                    engine_session_count(engine));
    }
    for (uint32_t ix = 0; ix < world->session_count; ix++) {
        /* A hook has no row: after its scheduler died, it is not tracked. */
        if (world->sessions[ix].live && world->sessions[ix].run != WORLD_NONE) {
            world_fault(world,
                        "attempt %llu lives and nobody knows",
                        (unsigned long long)world->sessions[ix].token);
        }
    }
    for (uint32_t ix = 0; ix < engine_run_count(engine); ix++) {
        check_run_rest(world, engine, ix);
    }
    world_notify_check_rest(world);
}

static void on_store_fault(void *ctx, const char *text)
{
    world_fault(ctx, "the store: %s", text);
}

/* Check that another scheduler would read the same states. */
static void check_reader(struct world *world)
{
    struct store *store = store_memory_open(world->db, STORE_READ);
    struct engine *reader = engine_new(&(struct engine_options){
        .wall_ns = world->now_ns + world->wall_ns,
    });
    struct store_query all = {.finished = true};
    struct diag diag = {0};
    if (store_verify(store, on_store_fault, world, &diag) != ERR_OK ||
        engine_load(reader, store, &all, &diag) != ERR_OK) {
        world_fault(world, "the store cannot be read: %s", diag.text);
    }
    for (uint32_t ix = 0; ix < engine_run_count(reader); ix++) {
        struct engine_run_view view = engine_run(reader, ix);
        const struct world_run *run = &world->runs[ix];
        for (uint32_t n = 0; n < run->task_count; n++) {
            struct sched_task task =
                sched_task(engine_sched(reader), load_task(view.loaded, n));
            const char *state = sched_state_name(task.state);
            if (strcmp(state, run->tasks[n].state) != 0) {
                world_fault(world,
                            "%s is stored as %s and read as %s",
                            run->plan->tasks[n].id,
                            run->tasks[n].state,
                            state);
            }
            strbuf_addf(&world->report->states,
                        "%s %s %s\n",
                        run->id,
                        run->plan->tasks[n].id,
                        state);
        }
    }
    engine_free(reader);
    store_close(store);
}

void world_check_end(struct world *world)
{
    for (uint32_t ix = 0; ix < world->plan_count; ix++) {
        if (world->plans[ix].run == WORLD_NONE) {
            world_fault(world, "plan %u never came in", ix);
        }
    }
    for (uint32_t ix = 0; ix < world->claim_count; ix++) {
        if (!world->claims[ix].ended) {
            world_fault(world, "attempt %u has no recorded end", ix + 1);
        }
    }
    for (uint32_t ix = 0; ix < world->run_count; ix++) {
        const struct world_run *run = &world->runs[ix];
        for (uint32_t n = 0; n < run->task_count; n++) {
            const char *state = run->tasks[n].state;
            bool optional = run->plan->tasks[n].settings->optional;
            /* A cancelled run permits no retry, and an optional task needs
             * none. */
            bool final =
                strcmp(state, "done") == 0 || strcmp(state, "skipped") == 0 ||
                strcmp(state, "cancelled") == 0 ||
                ((run->cancelled || optional) && strcmp(state, "failed") == 0);
            if (!final) {
                world_fault(world,
                            "%s of %s is %s in the end",
                            run->plan->tasks[n].id,
                            run->id,
                            state);
            }
        }
        if (!run->finished) {
            world_fault(world, "run %s has not finished", run->id);
        }
        world_last_check_end(world, run);
    }
    check_reader(world);
}

void world_check_release(struct world *world)
{
    for (uint32_t ix = 0; ix < world->run_count; ix++) {
        plan_free(world->runs[ix].plan);
        mem_free(world->runs[ix].tasks);
        mem_free(world->runs[ix].id);
    }
    mem_free(world->runs);
    mem_free(world->claims);
}
