/* SPDX-License-Identifier: MIT */
/*
 * Schedulers, and the table of functions that connect their engines to the
 * world. A scheduler has a worker in its process, for all work or, if sessions
 * run on other machines, for programs only; then it has a roster, as in
 * engine/loop.c.
 *
 * A scheduler can die in any of these functions, before or after the function's
 * effect. The engine's frames are still on the stack then, so it is only
 * marked: from then on its calls have no effect, and it is removed when the
 * call into it returns.
 */
#include "sim/world_internal.h"

#include "base/invariant.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum {
    DEATH_ODDS = 160,        /* of dying, per call, before and after it */
    DEATH_ODDS_CLOCK = 3000, /* the clock is read very often */
    STREAK_MAX = 5,          /* deaths in a row without a commit */
};

/* Return whether the process is dead, possibly since this call. */
static bool dies(struct world_process *process, uint32_t odds)
{
    struct world *world = process->world;
    if (!process->died && world->streak < STREAK_MAX &&
        world_strikes(world, WORLD_CRASH, odds)) {
        world_say(world, "process %u dies", process->ix);
        process->died = true;
    }
    return process->died;
}

bool world_process_dies(struct world_process *process)
{
    return dies(process, DEATH_ODDS);
}

static int64_t on_now(void *ctx)
{
    struct world_process *process = ctx;
    (void)dies(process, DEATH_ODDS_CLOCK);
    return world_hosts_clock(process->world, 0);
}

static int64_t on_wall(void *ctx)
{
    struct world_process *process = ctx;
    (void)dies(process, DEATH_ODDS_CLOCK);
    return process->world->now_ns + process->world->wall_ns;
}

/* Check that a scheduler that knows that it has failed does not call this. */
static void check_able(const struct world_process *process, const char *what)
{
    if (process->failed) {
        world_fault(process->world,
                    "process %u has failed, and %s",
                    process->ix,
                    what);
    }
}

static void on_write(void *ctx, const struct store_batch *batch)
{
    struct world_process *process = ctx;
    struct world *world = process->world;
    if (dies(process, DEATH_ODDS)) {
        return;
    }
    check_able(process, "writes");
    INVARIANT(process->batch == NULL);
    process->batch = batch;
    process->applied = false;
    (void)world_plan_event(world,
                           WORLD_APPLY,
                           world->now_ns + world_delay(world, 3 * WORLD_MS),
                           process->ix,
                           0);
    (void)dies(process, DEATH_ODDS);
}

/* Return the worker in the same process: direct calls. */
static struct worker *own_worker(const struct world_process *process)
{
    return process->world->workers[process->worker]->worker;
}

static void
on_offer(void *ctx, const struct work_order *order, struct strbuf *out)
{
    struct world_process *process = ctx;
    if (process->roster != NULL && !dies(process, DEATH_ODDS)) {
        roster_offer(process->roster, order, out);
    }
}

static void on_assign(void *ctx, const struct work_order *order)
{
    struct world_process *process = ctx;
    if (dies(process, DEATH_ODDS)) {
        return;
    }
    check_able(process, "assigns work");
    if (!process->elsewhere || work_is_program(&order->id)) {
        worker_assign(own_worker(process), order);
    } else if (process->roster != NULL) {
        roster_assign(process->roster, order);
    }
    (void)dies(process, DEATH_ODDS);
}

static void on_want(void *ctx, uint64_t token, enum work_want want)
{
    struct world_process *process = ctx;
    if (dies(process, DEATH_ODDS)) {
        return;
    }
    check_able(process, "ends a session");
    if (process->roster != NULL) {
        roster_want(process->roster, token, want); /* ignores programs */
    }
    worker_want(own_worker(process), token, want);
}

static void on_tell(void *ctx, uint64_t token, const char *text)
{
    struct world_process *process = ctx;
    if (dies(process, DEATH_ODDS)) {
        return;
    }
    check_able(process, "tells a session");
    if (!process->elsewhere) {
        worker_tell(own_worker(process), token, text);
    } else if (process->roster != NULL) {
        roster_tell(process->roster, token, text);
    }
}

static void on_ask(void *ctx,
                   const struct work_id *id,
                   const struct work_mark *mark,
                   bool begun,
                   enum work_want want)
{
    struct world_process *process = ctx;
    if (dies(process, DEATH_ODDS)) {
        return;
    }
    if (!process->elsewhere || work_is_program(id)) {
        worker_ask(own_worker(process), id, mark, begun, want);
    } else if (process->roster != NULL) {
        roster_ask(process->roster, id, begun, want);
    }
}

static void on_recorded(void *ctx, uint64_t token)
{
    struct world_process *process = ctx;
    worker_recorded(own_worker(process), token);
}

static void on_forget(void *ctx, const struct work_id *id)
{
    struct world_process *process = ctx;
    if (dies(process, DEATH_ODDS)) {
        return;
    }
    worker_forget(own_worker(process), id);
    (void)dies(process, DEATH_ODDS);
}

static void on_answer(void *ctx, uint64_t request, const char *json)
{
    struct world_process *process = ctx;
    struct world *world = process->world;
    if (dies(process, DEATH_ODDS)) {
        return;
    }
    check_able(process, "answers");
    if (!process->publishing) {
        world_fault(world, "an answer comes before its batch: %s", json);
    }
    world_say(world, "request %llu: %s", (unsigned long long)request, json);
    world->report->requests++;
    (void)dies(process, DEATH_ODDS);
}

static void on_event(void *ctx, const struct store_event *event)
{
    struct world_process *process = ctx;
    struct world *world = process->world;
    if (dies(process, DEATH_ODDS)) {
        return;
    }
    if (!process->publishing) {
        world_fault(world, "an event is told before its batch");
    }
    if (event->number != ++process->event_number) {
        world_fault(world,
                    "event %llu is told as number %llu",
                    (unsigned long long)process->event_number,
                    (unsigned long long)event->number);
    }
}

static const struct engine_world table = {
    .now_ns = on_now,
    .wall_ns = on_wall,
    .write = on_write,
    .offer = on_offer,
    .assign = on_assign,
    .want = on_want,
    .tell = on_tell,
    .ask = on_ask,
    .recorded = on_recorded,
    .forget = on_forget,
    .answer = on_answer,
    .event = on_event,
};

/* Apply the pending batch. */
static void apply(struct world_process *process)
{
    struct world *world = process->world;
    process->applied = true;
    process->apply_diag = (struct diag){0};
    process->apply_err =
        store_write(process->store, process->batch, &process->apply_diag);
    if (process->apply_err == ERR_OK || process->durable) {
        process->commits++;
        world->streak = 0;
        world_check_applied(world, process);
        world_board_assign(world, strbuf_text(&process->batch->orders));
    }
}

void world_process_bury(struct world_process *process)
{
    struct world *world = process->world;
    if (!process->alive) {
        return;
    }
    if (process->batch != NULL && !process->applied &&
        rng_below(&world->rng, 2) == 0) {
        apply(process); /* it became durable unnoticed */
    }
    world_say(world, "process %u is gone", process->ix);
    process->alive = false;
    engine_free(process->engine);
    store_close(process->store);
    roster_free(process->roster);
    process->engine = NULL;
    process->store = NULL;
    process->roster = NULL;
    process->batch = NULL;
    world_worker_end(world->workers[process->worker]);
    if (process->commits == 0) {
        world->streak++;
    }
    if (world->current == process->ix) {
        world->current = WORLD_NONE;
        (void)world_plan_event(world,
                               WORLD_BOOT,
                               world->now_ns + world_delay(world, WORLD_SECOND),
                               0,
                               0);
    }
}

/* It cannot go on, and exits. Check that this has a cause in this world. */
static void fail(struct world_process *process, enum err err, const char *text)
{
    bool expected = (err == ERR_CONFLICT && process->superseded) ||
                    (err == ERR_IO && process->broken);
    if (!expected) {
        world_fault(process->world,
                    "process %u cannot go on: %s (%s)",
                    process->ix,
                    text,
                    err_name(err));
    }
    world_say(process->world, "process %u gives up: %s", process->ix, text);
    process->failed = true;
    (void)world_plan_event(process->world,
                           WORLD_EXIT,
                           process->world->now_ns +
                               world_delay(process->world, WORLD_MS),
                           process->ix,
                           0);
}

static void wake(struct world_process *process, int64_t at_ns)
{
    if (process->wake_ns > at_ns) {
        process->wake_ns = at_ns;
        (void)
            world_plan_event(process->world, WORLD_PASS, at_ns, process->ix, 0);
    }
}

/* Call after each call into an engine, or into a worker in its process. */
void world_process_after(struct world_process *process)
{
    struct world *world = process->world;
    if (process->died) {
        world_process_bury(process);
        return;
    }
    const char *text;
    enum err err = engine_failed(process->engine, &text);
    if (err != ERR_OK && !process->failed) {
        fail(process, err, text);
    }
    if (process->failed) {
        return;
    }
    if (process->roster != NULL && roster_has_news(process->roster)) {
        world_turns_wake(world, true, process->ix);
    }
    if (process->leaving && engine_is_settled(process->engine) &&
        (process->visitor || engine_session_count(process->engine) == 0)) {
        world_process_bury(process);
        return;
    }
    int64_t wait_ns = engine_wait_ns(process->engine);
    int64_t look_ns = world_worker_wait_ns(world->workers[process->worker]);
    wait_ns = look_ns < wait_ns ? look_ns : wait_ns;
    if (process->died) {
        world_process_bury(process);
    } else if (wait_ns != SCHED_NEVER) {
        wake(process,
             world->now_ns + wait_ns + world_delay(world, WORLD_MS / 4) + 1);
    }
}

/* --- workers on other machines ------------------------------------------ */

static int64_t on_roster_now(void *ctx)
{
    const struct world_process *process = ctx;
    return world_hosts_clock(process->world, 0);
}

static void on_roster_report(void *ctx, const struct work_report *report)
{
    struct world_process *process = ctx;
    if (!world_process_dies(process)) {
        world_say(process->world,
                  "process %u hears %d of %llx",
                  process->ix,
                  (int)report->type,
                  (unsigned long long)report->token);
        engine_reported(process->engine, report);
    }
}

static void
on_workers(void *ctx, const struct roster_worker *workers, uint32_t count)
{
    struct world_process *process = ctx;
    struct engine_worker list[WORLD_HOSTS_MAX];
    INVARIANT(count <= WORLD_HOSTS_MAX);
    for (uint32_t ix = 0; ix < count; ix++) {
        list[ix].labels = workers[ix].labels;
        list[ix].slots = workers[ix].slots;
    }
    if (!process->died) {
        engine_workers(process->engine, list, count);
    }
}

static void on_request(void *ctx, const struct roster_request *request)
{
    const struct world_process *process = ctx;
    world_fault(process->world, "a request of nobody: %s", request->json);
}

static void open_roster(struct world_process *process)
{
    process->roster = roster_new(&(struct roster_options){
        .epoch = process->epoch,
        .now_ns = on_roster_now,
        .report = on_roster_report,
        .workers = on_workers,
        .request = on_request,
        .ctx = process,
    });
    engine_workers(process->engine, NULL, 0);
    world_turns_wake(process->world, true, process->ix);
}

void world_process_hear(struct world_process *process, const char *text)
{
    struct diag diag = {0};
    enum err err = ERR_OK;
    if (!world_process_dies(process)) {
        err = roster_hear(process->roster, text, &diag);
    }
    if (err != ERR_OK && !process->died) {
        fail(process, err, diag.text);
    }
    world_process_after(process);
}

/* --- life cycle --------------------------------------------------------- */

/* The mark of attempts that a worker will have, as in engine/loop.c. */
static const struct work_mark elsewhere = {.boot_id = "elsewhere"};

void world_process_boot(struct world *world, const char *request)
{
    if (world->current != WORLD_NONE) {
        return;
    }
    if (world->now_ns < world->away_ns) {
        if (request == NULL) {
            (void)world_plan_event(world, WORLD_BOOT, world->away_ns, 0, 0);
        }
        return;
    }
    struct world_process *process = mem_zalloc(1, sizeof(*process));
    world->processes = mem_grown(world->processes,
                                 world->process_count,
                                 &world->process_capacity,
                                 sizeof(void *));
    process->world = world;
    process->ix = world->process_count;
    process->alive = true;
    process->wake_ns = SCHED_NEVER;
    world->processes[world->process_count++] = process;
    world->report->schedulers++;
    process->client.next_ns = SCHED_NEVER;
    process->elsewhere = world_has(world, WORLD_MACHINES);
    process->worker = world_worker_begin(world, process);
    process->store = store_memory_open(world->db, STORE_WRITE);
    struct store_owner owner = {.pid = ++world->hosts[0].next_pid};
    struct diag diag = {0};
    if (store_take(process->store, &owner, &process->epoch, &diag) != ERR_OK) {
        world_fault(world, "the store cannot be taken: %s", diag.text);
        return;
    }
    world->current = process->ix;
    world->epoch = process->epoch;
    process->engine = engine_new(&(struct engine_options){
        .seed = process->ix,
        .world = &table,
        .ctx = process,
        .mark = process->elsewhere ? elsewhere
                                   : world_worker_mark(world, process->worker),
        .epoch = process->epoch,
    });
    world_say(world,
              "process %u begins epoch %llu",
              process->ix,
              (unsigned long long)process->epoch);
    enum err err = engine_load(process->engine, process->store, NULL, &diag);
    if (err != ERR_OK) {
        world_fault(world, "the store cannot be loaded: %s", diag.text);
        return;
    }
    if (process->died) {
        world_process_bury(process);
        return;
    }
    sched_verify(engine_sched(process->engine));
    if (request != NULL) {
        process->visitor = true;
        process->leaving = true;
        engine_drain(process->engine, true);
        world_process_request(process, ++world->last_request, request);
    } else {
        if (process->elsewhere) {
            open_roster(process);
        }
        engine_recover(process->engine);
        world_process_after(process);
    }
}

void world_process_pass(struct world_process *process)
{
    process->wake_ns = SCHED_NEVER;
    if (process->failed) {
        return;
    }
    worker_tick(own_worker(process));
    engine_pass(process->engine);
    if (!process->died && rng_below(&process->world->rng, 8) == 0) {
        sched_verify(engine_sched(process->engine));
    }
    world_process_after(process);
}

void world_process_apply(struct world_process *process)
{
    struct world *world = process->world;
    if (process->batch == NULL || process->applied) {
        return;
    }
    apply(process);
    (void)world_plan_event(world,
                           WORLD_WRITTEN,
                           world->now_ns + world_delay(world, WORLD_MS),
                           process->ix,
                           0);
}

void world_process_written(struct world_process *process)
{
    INVARIANT(process->applied);
    process->batch = NULL;
    process->publishing = process->apply_err == ERR_OK;
    if (process->publishing && process->roster != NULL) {
        roster_written(process->roster);
    }
    engine_written(process->engine,
                   process->apply_err,
                   process->apply_diag.text);
    process->publishing = false;
    world_process_after(process);
}

void world_process_request(struct world_process *process,
                           uint64_t request,
                           const char *json)
{
    world_say(process->world,
              "request %llu to process %u: %s",
              (unsigned long long)request,
              process->ix,
              json);
    engine_request(process->engine, request, "operator", json);
    if (strstr(json, "\"drain\"") != NULL) {
        process->leaving = true;
    }
    world_process_after(process);
}

void world_process_stop(struct world_process *process)
{
    world_say(process->world, "process %u is told to stop", process->ix);
    process->leaving = true;
    engine_stop(process->engine);
    world_process_after(process);
}
