/* SPDX-License-Identifier: MIT */
/*
 * Workers, and the tables of functions that connect them to the machine. A
 * worker is in the process of its scheduler, and dies with it; or it is a
 * separate process with a crew, as work/crew_loop.c has it, which dies alone.
 *
 * It can die in any of these functions, before or after the function's effect.
 * Its frames are still on the stack then, so it is only marked: from then on
 * its calls have no effect, and it is removed when the call into it returns.
 */
#include "sim/world_internal.h"

#include "base/invariant.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum { DEATH_ODDS = 160 }; /* per call, before and after it */

/* Return whether the worker is dead, possibly since this call. */
static bool dies(struct world_worker *worker)
{
    if (worker->process != NULL) {
        return world_process_dies(worker->process);
    }
    if (!worker->died &&
        world_strikes(worker->world, WORLD_CRASH, DEATH_ODDS)) {
        world_say(worker->world, "worker %u dies", worker->ix);
        worker->died = true;
    }
    return worker->died;
}

static int64_t on_now(void *ctx)
{
    const struct world_worker *worker = ctx;
    return world_hosts_clock(worker->world, worker->host);
}

/* Whether a file cannot be used now; or, to write, has no space. */
static bool fails(struct world_worker *worker, bool writes)
{
    return dies(worker) || world_strikes(worker->world, WORLD_FILES, 30) ||
           (writes && world_hosts_is_full(worker->world, worker->host));
}

static enum err
on_start(void *ctx, const struct exec_request *request, struct diag *diag)
{
    struct world_worker *worker = ctx;
    (void)diag;
    if (dies(worker)) {
        return ERR_OK;
    }
    world_check_claimed(worker->world, request);
    world_say(worker->world,
              "worker %u starts %llx in %s",
              worker->ix,
              (unsigned long long)request->id,
              request->dir);
    enum err err =
        world_machine_request(worker->world, worker->server, request);
    (void)dies(worker);
    return err;
}

/* Check that a request to stop is durable before it takes effect. */
static void check_end(struct world_worker *worker, uint32_t shim)
{
    struct world *world = worker->world;
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

static enum err
on_end(void *ctx, const struct work_mark *mark, uint64_t id, enum exec_end how)
{
    struct world_worker *worker = ctx;
    struct world *world = worker->world;
    if (dies(worker)) {
        return ERR_OK;
    }
    if (world_strikes(world, WORLD_FILES, 30)) {
        return ERR_IO;
    }
    uint32_t shim =
        world_machine_find(world, worker->host, mark->pid, mark->start_ticks);
    world_say(world,
              "worker %u ends shim %lld%s",
              worker->ix,
              (long long)mark->pid,
              shim == WORLD_NONE ? ", which is gone" : "");
    if (shim != WORLD_NONE) {
        if (world->requests[world->shims[shim].request].id != id) {
            world_fault(world,
                        "an order about request %llu goes to shim %lld, "
                        "which has another",
                        (unsigned long long)id,
                        (long long)mark->pid);
        }
        if (how == EXEC_CANCEL) {
            check_end(worker, shim);
        }
        (void)world_plan_event(world,
                               WORLD_SIGNAL,
                               world->now_ns + world_delay(world, WORLD_MS),
                               shim,
                               (uint64_t)how);
    }
    (void)dies(worker);
    return shim != WORLD_NONE ? ERR_OK : ERR_NOT_FOUND;
}

static enum err
on_watch(void *ctx, const struct work_mark *mark, uint64_t token)
{
    struct world_worker *worker = ctx;
    struct world *world = worker->world;
    if (dies(worker)) {
        return ERR_UNAVAILABLE;
    }
    uint32_t shim =
        world_machine_find(world, worker->host, mark->pid, mark->start_ticks);
    if (shim == WORLD_NONE) {
        return ERR_NOT_FOUND;
    }
    if (world_strikes(world, WORLD_FILES, 30)) {
        return ERR_UNAVAILABLE;
    }
    MEM_GROW(worker->watched_shims,
             worker->watched_shim_count,
             worker->watched_shim_capacity);
    worker->watched_shims[worker->watched_shim_count++] = (struct world_watch){
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
    struct world_worker *worker = ctx;
    struct world *world = worker->world;
    *out = (struct attempt_found){0};
    if (fails(worker, false)) {
        return diag_set(diag, ERR_IO, "open %s: too many files", dir);
    }
    world_machine_inspect(world, world_machine_at(world, dir), boot_id, out);
    world_say(world,
              "worker %u finds %s in state %d",
              worker->ix,
              dir,
              (int)out->state);
    return ERR_OK;
}

/* Here a directory never belongs to another attempt. */
static enum err on_set_aside(void *ctx, const char *path, struct diag *diag)
{
    struct world_worker *worker = ctx;
    world_fault(worker->world, "%s is taken for a foreign one", path);
    return diag_set(diag, ERR_IO, "rename %s: failed", path);
}

static enum err on_fence(void *ctx,
                         const char *path,
                         const char *nonce,
                         bool *fenced_out,
                         struct diag *diag)
{
    struct world_worker *worker = ctx;
    struct world *world = worker->world;
    *fenced_out = false;
    if (fails(worker, true)) {
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
        world_say(world, "worker %u fences %s", worker->ix, path);
    }
    (void)dies(worker);
    return ERR_OK;
}

static bool on_has_strays(void *ctx, const char *path)
{
    struct world_worker *worker = ctx;
    const struct world *world = worker->world;
    if (dies(worker)) {
        return false;
    }
    uint32_t session = world_machine_at(worker->world, path)->session;
    return session != WORLD_NONE && world->sessions[session].live;
}

static void on_kill_strays(void *ctx, const char *dir)
{
    struct world_worker *worker = ctx;
    if (dies(worker)) {
        return;
    }
    world_machine_kill_strays(worker->world,
                              world_machine_dir(worker->world, dir));
    (void)dies(worker);
}

static enum err on_result(void *ctx,
                          const char *path,
                          struct attempt_result *out,
                          struct diag *diag)
{
    struct world_worker *worker = ctx;
    struct world *world = worker->world;
    *out = (struct attempt_result){0};
    if (dies(worker)) {
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
    struct world_worker *worker = ctx;
    (void)dies(worker);
    (void)bytes;
    strbuf_addf(out, "the log in %s\n", dir);
}

static enum err on_put(void *ctx,
                       const char *path,
                       const char *name,
                       const struct strbuf *text,
                       struct diag *diag)
{
    struct world_worker *worker = ctx;
    struct world *world = worker->world;
    if (fails(worker, true)) {
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
    (void)dies(worker);
    return ERR_OK;
}

static enum err on_get(void *ctx,
                       const char *path,
                       const char *name,
                       struct strbuf *out,
                       struct diag *diag)
{
    struct world_worker *worker = ctx;
    struct world *world = worker->world;
    if (fails(worker, false)) {
        return diag_set(diag, ERR_IO, "read %s/%s: failed", path, name);
    }
    const char *text = world_machine_at(world, path)->fragment;
    strbuf_adds(out, text != NULL ? text : "");
    return ERR_OK;
}

static void on_drop(void *ctx, const char *path)
{
    struct world_worker *worker = ctx;
    if (!dies(worker)) {
        world_machine_drop(worker->world, path);
    }
    (void)dies(worker);
}

static const struct work_machine table = {
    .now_ns = on_now,
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
};

/* --- the crew ----------------------------------------------------------- */

static void
on_lease(void *ctx, uint64_t generation, int64_t until_ns, int64_t grace_ns)
{
    struct world_worker *worker = ctx;
    struct world_lease lease = {.until_ns = until_ns, .grace_ns = grace_ns};
    (void)snprintf(lease.path,
                   sizeof(lease.path),
                   "%s/lease-%s-%llu",
                   worker->place.home,
                   worker->name,
                   (unsigned long long)generation);
    if (!world_hosts_set_lease(worker->world, worker->host, &lease)) {
        world_say(worker->world, "worker %u has no lease file", worker->ix);
    }
    if (generation != worker->generation) {
        worker->generation = generation;
        worker_set_lease(worker->worker, lease.path);
    }
}

static void on_say(void *ctx, const char *text)
{
    const struct world_worker *worker = ctx;
    world_say(worker->world, "worker %u: %s", worker->ix, text);
}

static void on_answer(void *ctx, uint64_t request, const char *json)
{
    const struct world_worker *worker = ctx;
    (void)json;
    world_fault(worker->world,
                "an answer to no request: %llu",
                (unsigned long long)request);
}

static bool on_has_space(void *ctx)
{
    const struct world_worker *worker = ctx;
    return !world_hosts_is_full(worker->world, worker->host);
}

static bool on_exists(void *ctx, const char *path)
{
    const struct world_worker *worker = ctx;
    return strncmp(path, worker->place.home, strlen(worker->place.home)) != 0 ||
           strmap_find(&worker->world->dir_map, path, strlen(path)) !=
               STRMAP_NONE;
}

static bool on_make_dir(void *ctx, const char *path)
{
    struct world_worker *worker = ctx;
    (void)path;
    return !fails(worker, true);
}

static bool
on_read(void *ctx, const char *path, const char *name, struct strbuf *out)
{
    struct world_worker *worker = ctx;
    (void)name;
    if (fails(worker, false)) {
        return false;
    }
    const char *text = world_machine_at(worker->world, path)->result;
    strbuf_adds(out, text != NULL ? text : "");
    return text != NULL;
}

static struct crew *new_crew(struct world_worker *worker)
{
    const struct world_host *host = &worker->world->hosts[worker->host];
    char labels[16];
    char instance[16];
    (void)snprintf(labels, sizeof(labels), "%s,any", worker->name);
    (void)snprintf(instance, sizeof(instance), "%u", worker->ix);
    return crew_new(&(struct crew_options){
        .name = worker->name,
        .labels = labels,
        .slots = host->slots,
        .home = host->home,
        .home_id = host->home,
        .host = host->home,
        .boot_id = host->boot_id,
        .proto = worker->proto,
        .instance = instance,
        .now_ns = on_now,
        .lease = on_lease,
        .say = on_say,
        .answer = on_answer,
        .has_space = on_has_space,
        .exists = on_exists,
        .make_dir = on_make_dir,
        .read = on_read,
        .ctx = worker,
    });
}

void world_worker_hear(struct world_worker *worker,
                       const char *text,
                       int64_t since_ns)
{
    struct diag diag = {0};
    enum err err = ERR_OK;
    if (!dies(worker)) {
        err = crew_hear(worker->crew, text, since_ns, &diag);
    }
    if (err != ERR_OK) {
        world_say(worker->world, "worker %u leaves: %s", worker->ix, diag.text);
    }
    if (worker->died || err != ERR_OK || crew_is_over(worker->crew)) {
        world_worker_end(worker);
    } else {
        world_worker_look(worker);
    }
}

/* --- life cycle --------------------------------------------------------- */

static void on_report(void *ctx, const struct work_report *report)
{
    struct world_worker *worker = ctx;
    if (worker->process == NULL) {
        if (!worker->died) {
            crew_reported(worker->crew, report);
        }
    } else if (!worker->process->died) {
        engine_reported(worker->process->engine, report);
    }
}

static uint32_t open_server(struct world *world, uint32_t worker)
{
    MEM_GROW(world->servers, world->server_count, world->server_capacity);
    world->servers[world->server_count] = (struct world_server){
        .worker = worker,
        .alive = true,
    };
    return world->server_count++;
}

/* Start a worker on a machine. */
static struct world_worker *
begin(struct world *world, uint32_t host, struct world_process *process)
{
    struct world_worker *worker = mem_zalloc(1, sizeof(*worker));
    char *home = world->hosts[host].home;
    world->workers = mem_grown(world->workers,
                               world->worker_count,
                               &world->worker_capacity,
                               sizeof(void *));
    worker->world = world;
    worker->ix = world->worker_count;
    worker->host = host;
    worker->process = process;
    worker->alive = true;
    worker->wake_ns = SCHED_NEVER;
    worker->client.next_ns = SCHED_NEVER;
    world->workers[world->worker_count++] = worker;
    worker->server = open_server(world, worker->ix);
    worker->place = (struct store_place){home, home, home, home};
    worker->worker = worker_new(&(struct worker_options){
        .machine = &table,
        .ctx = worker,
        .place = &worker->place,
        .git = "sluice-git",
        .agent = "sluice-agent",
        .sandbox = "sluice-sandbox",
        .program = "sluice",
        .boot_id = world->hosts[host].boot_id,
        .report = on_report,
        .link = worker,
    });
    world_say(world, "worker %u begins on machine %u", worker->ix, host);
    return worker;
}

uint32_t world_worker_begin(struct world *world, struct world_process *process)
{
    return begin(world, 0, process)->ix;
}

uint32_t world_worker_hire(struct world *world,
                           uint32_t host,
                           const char *name,
                           int64_t proto)
{
    struct world_worker *worker = begin(world, host, NULL);
    (void)snprintf(worker->name, sizeof(worker->name), "%s", name);
    worker->proto = proto;
    worker->crew = new_crew(worker);
    crew_set_worker(worker->crew, worker->worker);
    world_turns_wake(world, false, worker->ix);
    return worker->ix;
}

struct work_mark world_worker_mark(const struct world *world, uint32_t ix)
{
    return worker_mark(world->workers[ix]->worker);
}

void world_worker_end(struct world_worker *worker)
{
    if (!worker->alive) {
        return;
    }
    struct world *world = worker->world;
    worker->alive = false;
    world->servers[worker->server].orphan = true;
    if (worker->process == NULL) {
        world_say(world, "worker %u is gone", worker->ix);
        (void)world_plan_event(world,
                               WORLD_HIRE,
                               world->now_ns +
                                   world_delay(world, 3 * WORLD_SECOND) + 1,
                               worker->host,
                               0);
    }
}

int64_t world_worker_wait_ns(const struct world_worker *worker)
{
    int64_t next_ns = worker_next_ns(worker->worker);
    if (next_ns == SCHED_NEVER) {
        return SCHED_NEVER;
    }
    int64_t wait_ns = next_ns - world_hosts_clock(worker->world, worker->host);
    return wait_ns > 0 ? world_hosts_span(worker->world, worker->host, wait_ns)
                       : 0;
}

void world_worker_after(struct world_worker *worker)
{
    struct world *world = worker->world;
    if (worker->process != NULL) {
        world_process_after(worker->process);
        return;
    }
    if (!worker->died) {
        crew_tick(worker->crew);
    }
    if (worker->died) {
        world_worker_end(worker);
        return;
    }
    if (crew_has_news(worker->crew)) {
        world_turns_wake(world, false, worker->ix);
    }
    int64_t wait_ns = world_worker_wait_ns(worker);
    int64_t at_ns = world->now_ns + wait_ns + 1;
    if (wait_ns != SCHED_NEVER && at_ns < worker->wake_ns) {
        worker->wake_ns = at_ns;
        (void)world_plan_event(world, WORLD_LOOK, at_ns, worker->ix, 0);
    }
}

void world_worker_look(struct world_worker *worker)
{
    worker->wake_ns = SCHED_NEVER;
    worker_tick(worker->worker);
    world_worker_after(worker);
}

void world_worker_report(struct world_worker *worker,
                         const struct exec_report *report)
{
    world_say(worker->world,
              "worker %u hears %d of %llx",
              worker->ix,
              (int)report->type,
              (unsigned long long)report->id);
    worker_reported(worker->worker, report);
    world_worker_after(worker);
}

void world_worker_gone(struct world_worker *worker, uint32_t shim)
{
    for (uint32_t ix = worker->watched_shim_count; ix > 0; ix--) {
        if (worker->watched_shims[ix - 1].shim != shim) {
            continue;
        }
        uint64_t token = worker->watched_shims[ix - 1].token;
        worker->watched_shims[ix - 1] =
            worker->watched_shims[--worker->watched_shim_count];
        worker_gone(worker->worker, token);
        world_worker_after(worker);
        if (!worker->alive) {
            return;
        }
    }
}

void world_worker_respawn(struct world_worker *worker)
{
    worker->server = open_server(worker->world, worker->ix);
    world_say(worker->world, "worker %u has a new server", worker->ix);
    worker_respawn(worker->worker);
    world_worker_after(worker);
}

void world_worker_free(struct world_worker *worker)
{
    crew_free(worker->crew);
    worker_free(worker->worker);
    mem_free(worker->watched_shims);
    mem_free(worker);
}
