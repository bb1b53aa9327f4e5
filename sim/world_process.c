/* SPDX-License-Identifier: MIT */
/*
 * Schedulers, and the table of functions through which their engines see the
 * world.
 *
 * A scheduler can die in any of these functions, before or after what the
 * function does. The engine's frames are still on the stack then, so it is
 * only marked: from there on nothing that it calls has an effect, and it is
 * buried when the call into it returns.
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

/* Whether the process is dead, perhaps only now. */
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

static int64_t on_now(void *ctx)
{
    struct world_process *process = ctx;
    (void)dies(process, DEATH_ODDS_CLOCK);
    return process->world->now_ns + process->world->boot_ns;
}

static int64_t on_wall(void *ctx)
{
    struct world_process *process = ctx;
    (void)dies(process, DEATH_ODDS_CLOCK);
    return process->world->now_ns + process->world->wall_ns;
}

/* Nothing of this may come from a scheduler that knows that it has failed. */
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

static enum err
on_start(void *ctx, const struct exec_request *request, struct diag *diag)
{
    struct world_process *process = ctx;
    (void)diag;
    if (dies(process, DEATH_ODDS)) {
        return ERR_OK;
    }
    check_able(process, "starts a session");
    world_check_claimed(process->world, request);
    world_say(process->world,
              "process %u starts %llx in %s",
              process->ix,
              (unsigned long long)request->id,
              request->dir);
    enum err err =
        world_machine_request(process->world, process->server, request);
    (void)dies(process, DEATH_ODDS);
    return err;
}

/* An order to end must be durable before it is carried out. */
static void check_end(struct world_process *process, uint32_t shim)
{
    struct world *world = process->world;
    uint64_t token = world->requests[world->shims[shim].request].id;
    if (token > world->claim_count) {
        return;
    }
    const struct world_claim *claim = &world->claims[token - 1];
    const struct world_task *task = &world->runs[claim->run].tasks[claim->task];
    if (!claim->ended && (task->flags & SCHED_RECORD_ENDING) == 0) {
        world_fault(world,
                    "attempt %llu is ended, but no order says so",
                    (unsigned long long)token);
    }
}

static enum err on_end(void *ctx,
                       int64_t pid,
                       uint64_t start_ticks,
                       uint64_t id,
                       enum exec_end how)
{
    struct world_process *process = ctx;
    struct world *world = process->world;
    if (dies(process, DEATH_ODDS)) {
        return ERR_OK;
    }
    if (world_strikes(world, WORLD_FILES, 30)) {
        return ERR_IO;
    }
    check_able(process, "ends a session");
    uint32_t shim = world_machine_find(world, pid, start_ticks);
    world_say(world,
              "process %u ends shim %lld%s",
              process->ix,
              (long long)pid,
              shim == WORLD_NONE ? ", which is gone" : "");
    if (shim != WORLD_NONE) {
        if (world->requests[world->shims[shim].request].id != id) {
            world_fault(world,
                        "an order about request %llu goes to shim %lld, "
                        "which has another",
                        (unsigned long long)id,
                        (long long)pid);
        }
        if (how == EXEC_CANCEL) {
            check_end(process, shim);
        }
        (void)world_plan_event(world,
                               WORLD_SIGNAL,
                               world->now_ns + world_delay(world, WORLD_MS),
                               shim,
                               (uint64_t)how);
    }
    (void)dies(process, DEATH_ODDS);
    return shim != WORLD_NONE ? ERR_OK : ERR_NOT_FOUND;
}

static enum err
on_watch(void *ctx, uint64_t token, int64_t pid, uint64_t start_ticks)
{
    struct world_process *process = ctx;
    struct world *world = process->world;
    if (dies(process, DEATH_ODDS)) {
        return ERR_UNAVAILABLE;
    }
    uint32_t shim = world_machine_find(world, pid, start_ticks);
    if (shim == WORLD_NONE) {
        return ERR_NOT_FOUND;
    }
    if (world_strikes(world, WORLD_FILES, 30)) {
        return ERR_UNAVAILABLE;
    }
    WORLD_GROW(process->watched_shims,
               process->watched_shim_count,
               process->watched_shim_capacity);
    process->watched_shims[process->watched_shim_count++] =
        (struct world_watch){
            .shim = shim,
            .token = token,
        };
    return ERR_OK;
}

static enum err on_inspect(void *ctx,
                           const char *dir,
                           const char *boot_id,
                           struct attempt_found *out,
                           struct diag *diag)
{
    struct world_process *process = ctx;
    struct world *world = process->world;
    *out = (struct attempt_found){0};
    if (dies(process, DEATH_ODDS) || world_strikes(world, WORLD_FILES, 30)) {
        return diag_set(diag, ERR_IO, "open %s: too many files", dir);
    }
    world_machine_inspect(world, world_machine_at(world, dir), boot_id, out);
    world_say(world,
              "process %u finds %s in state %d",
              process->ix,
              dir,
              (int)out->state);
    return ERR_OK;
}

/* No directory is ever of another attempt here. */
static enum err on_set_aside(void *ctx, const char *path, struct diag *diag)
{
    struct world_process *process = ctx;
    world_fault(process->world, "%s is taken for a foreign one", path);
    return diag_set(diag, ERR_IO, "rename %s: failed", path);
}

static enum err on_fence(void *ctx,
                         const char *path,
                         const char *nonce,
                         bool *fenced_out,
                         struct diag *diag)
{
    struct world_process *process = ctx;
    struct world *world = process->world;
    *fenced_out = false;
    if (dies(process, DEATH_ODDS) || world_strikes(world, WORLD_FILES, 30)) {
        return diag_set(diag, ERR_IO, "fence %s: no space", path);
    }
    struct world_dir *dir = world_machine_at(world, path);
    if (!dir->started && dir->holder == WORLD_NONE) {
        dir->started = true;
        dir->started_pid = 0;
        dir->started_ticks = 0;
        (void)snprintf(dir->nonce, sizeof(dir->nonce), "%s", nonce);
        dir->touched_ns = world->now_ns;
        *fenced_out = true;
        world_say(world, "process %u fences %s", process->ix, path);
    }
    (void)dies(process, DEATH_ODDS);
    return ERR_OK;
}

static bool on_has_strays(void *ctx, const char *path)
{
    struct world_process *process = ctx;
    const struct world *world = process->world;
    if (dies(process, DEATH_ODDS)) {
        return false;
    }
    uint32_t session = world_machine_at(process->world, path)->session;
    return session != WORLD_NONE && world->sessions[session].live;
}

static void on_kill_strays(void *ctx, const char *dir)
{
    struct world_process *process = ctx;
    if (dies(process, DEATH_ODDS)) {
        return;
    }
    world_machine_kill_strays(process->world,
                              world_machine_dir(process->world, dir));
    (void)dies(process, DEATH_ODDS);
}

static enum err on_result(void *ctx,
                          const char *path,
                          struct attempt_result *out,
                          struct diag *diag)
{
    struct world_process *process = ctx;
    struct world *world = process->world;
    *out = (struct attempt_result){0};
    if (dies(process, DEATH_ODDS)) {
        return ERR_OK;
    }
    if (world_strikes(world, WORLD_FILES, 30)) {
        return diag_set(diag, ERR_UNAVAILABLE, "result: too many files");
    }
    const char *text = world_machine_at(world, path)->result;
    return text != NULL ? attempt_parse_result(text, strlen(text), out, diag)
                        : ERR_OK;
}

static void
on_log_tail(void *ctx, const char *dir, size_t bytes, struct strbuf *out)
{
    struct world_process *process = ctx;
    (void)dies(process, DEATH_ODDS);
    (void)bytes;
    strbuf_addf(out, "the log in %s\n", dir);
}

static enum err on_put(void *ctx,
                       const char *path,
                       const char *name,
                       const struct strbuf *text,
                       struct diag *diag)
{
    struct world_process *process = ctx;
    struct world *world = process->world;
    if (dies(process, DEATH_ODDS) || world_strikes(world, WORLD_FILES, 30)) {
        return diag_set(diag, ERR_IO, "write %s/%s: no space", path, name);
    }
    struct world_dir *dir = world_machine_at(world, path);
    if (strcmp(name, "batch") == 0) {
        mem_free(dir->batch);
        dir->batch = mem_strndup(strbuf_text(text), text->len);
    } else if (strcmp(name, "event") == 0) {
        mem_free(dir->event);
        dir->event = mem_strndup(strbuf_text(text), text->len);
    }
    (void)dies(process, DEATH_ODDS);
    return ERR_OK;
}

static enum err on_get(void *ctx,
                       const char *path,
                       const char *name,
                       struct strbuf *out,
                       struct diag *diag)
{
    struct world_process *process = ctx;
    struct world *world = process->world;
    if (dies(process, DEATH_ODDS) || world_strikes(world, WORLD_FILES, 30)) {
        return diag_set(diag, ERR_IO, "read %s/%s: failed", path, name);
    }
    const char *text = world_machine_at(world, path)->fragment;
    strbuf_adds(out, text != NULL ? text : "");
    return ERR_OK;
}

static void on_drop(void *ctx, const char *path)
{
    struct world_process *process = ctx;
    if (!dies(process, DEATH_ODDS)) {
        world_machine_drop(process->world, path);
    }
    (void)dies(process, DEATH_ODDS);
}

static void on_answer(void *ctx, uint64_t order, const char *json)
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
    world_say(world, "order %llu: %s", (unsigned long long)order, json);
    world->report->orders++;
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
    .start = on_start,
    .end = on_end,
    .watch = on_watch,
    .inspect = on_inspect,
    .set_aside = on_set_aside,
    .fence = on_fence,
    .has_strays = on_has_strays,
    .kill_strays = on_kill_strays,
    .result = on_result,
    .log_tail = on_log_tail,
    .put = on_put,
    .get = on_get,
    .drop = on_drop,
    .answer = on_answer,
    .event = on_event,
};

/* Apply the batch that is on its way. */
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
        apply(process); /* it got that far, and nobody knows */
    }
    world_say(world, "process %u is gone", process->ix);
    process->alive = false;
    engine_free(process->engine);
    store_close(process->store);
    process->engine = NULL;
    process->store = NULL;
    process->batch = NULL;
    world->servers[process->server].orphan = true;
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

/* Whether an error of the engine has a cause in this world. */
static void check_failure(struct world_process *process, enum err err)
{
    const char *text;
    (void)engine_failed(process->engine, &text);
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
}

static void wake(struct world_process *process, int64_t at_ns)
{
    if (process->wake_ns > at_ns) {
        process->wake_ns = at_ns;
        (void)
            world_plan_event(process->world, WORLD_TURN, at_ns, process->ix, 0);
    }
}

/* After each call into an engine. */
static void after(struct world_process *process)
{
    struct world *world = process->world;
    if (process->died) {
        world_process_bury(process);
        return;
    }
    const char *text;
    enum err err = engine_failed(process->engine, &text);
    if (err != ERR_OK && !process->failed) {
        check_failure(process, err);
        process->failed = true;
        (void)world_plan_event(world,
                               WORLD_EXIT,
                               world->now_ns + world_delay(world, WORLD_MS),
                               process->ix,
                               0);
    }
    if (err != ERR_OK) {
        return;
    }
    if (process->leaving && engine_is_settled(process->engine) &&
        (process->visitor || engine_session_count(process->engine) == 0)) {
        world_process_bury(process);
        return;
    }
    int64_t wait_ns = engine_wait_ns(process->engine);
    if (process->died) {
        world_process_bury(process);
    } else if (wait_ns != SCHED_NEVER) {
        wake(process,
             world->now_ns + wait_ns + world_delay(world, WORLD_MS / 4) + 1);
    }
}

static uint32_t open_server(struct world *world, uint32_t process)
{
    WORLD_GROW(world->servers, world->server_count, world->server_capacity);
    world->servers[world->server_count] = (struct world_server){
        .process = process,
        .alive = true,
    };
    return world->server_count++;
}

void world_process_boot(struct world *world, const char *order)
{
    if (world->current != WORLD_NONE) {
        return;
    }
    struct world_process *process = mem_zalloc(1, sizeof(*process));
    world->processes = world_grow(world->processes,
                                  world->process_count,
                                  &world->process_capacity,
                                  sizeof(void *));
    process->world = world;
    process->ix = world->process_count;
    process->alive = true;
    process->wake_ns = SCHED_NEVER;
    world->processes[world->process_count++] = process;
    world->report->schedulers++;
    process->server = open_server(world, process->ix);
    process->store = store_memory_open(world->db, STORE_WRITE);
    struct store_owner owner = {.pid = ++world->next_pid};
    struct diag diag = {0};
    if (store_take(process->store, &owner, &process->epoch, &diag) != ERR_OK) {
        world_fault(world, "the store cannot be taken: %s", diag.text);
        return;
    }
    world->current = process->ix;
    process->engine = engine_new(&(struct engine_options){
        .seed = process->ix,
        .world = &table,
        .ctx = process,
        .store = "/s",
        .boot_id = world->boot_id,
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
    if (order != NULL) {
        process->visitor = true;
        process->leaving = true;
        engine_drain(process->engine, true);
        world_process_order(process, ++world->last_order, order);
    } else {
        engine_recover(process->engine);
        after(process);
    }
}

void world_process_turn(struct world_process *process)
{
    process->wake_ns = SCHED_NEVER;
    engine_turn(process->engine);
    if (!process->died && rng_below(&process->world->rng, 8) == 0) {
        sched_verify(engine_sched(process->engine));
    }
    after(process);
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
    engine_written(process->engine,
                   process->apply_err,
                   process->apply_diag.text);
    process->publishing = false;
    after(process);
}

void world_process_report(struct world_process *process,
                          const struct exec_report *report)
{
    world_say(process->world,
              "process %u hears %d of %llx",
              process->ix,
              (int)report->type,
              (unsigned long long)report->id);
    engine_reported(process->engine, report);
    after(process);
}

void world_process_gone(struct world_process *process, uint32_t shim)
{
    for (uint32_t ix = process->watched_shim_count; ix > 0; ix--) {
        if (process->watched_shims[ix - 1].shim != shim) {
            continue;
        }
        uint64_t token = process->watched_shims[ix - 1].token;
        process->watched_shims[ix - 1] =
            process->watched_shims[--process->watched_shim_count];
        engine_gone(process->engine, token);
        after(process);
        if (!process->alive) {
            return;
        }
    }
}

void world_process_respawn(struct world_process *process)
{
    process->server = open_server(process->world, process->ix);
    world_say(process->world, "process %u has a new server", process->ix);
    engine_respawn(process->engine);
    after(process);
}

void world_process_order(struct world_process *process,
                         uint64_t order,
                         const char *json)
{
    world_say(process->world,
              "order %llu to process %u: %s",
              (unsigned long long)order,
              process->ix,
              json);
    engine_order(process->engine, order, "operator", json);
    if (strstr(json, "\"drain\"") != NULL) {
        process->leaving = true;
    }
    after(process);
}

void world_process_stop(struct world_process *process)
{
    world_say(process->world, "process %u is told to stop", process->ix);
    process->leaving = true;
    engine_stop(process->engine);
    after(process);
}
