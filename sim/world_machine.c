/* SPDX-License-Identifier: MIT */
/*
 * The machine: spawn servers, shims and attempt directories. A shim performs
 * the steps of exec/shim.c and shim_dir.c, one step per event, so that all
 * other events can happen in between:
 *
 *   forked   -> `started` exists: it exits
 *            -> the lock is held: it exits
 *   locked   -> `started` exists by now: it exits; else it creates it
 *   running  -> the session exits, by itself or because it was stopped
 *   ending   -> the record is written, and the lock is free
 *
 * Requests to a server and reports from it arrive in order.
 */
#include "sim/world_internal.h"

#include "base/invariant.h"
#include "base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Return the machine that has a path. */
static uint32_t host_of_path(const struct world *world, const char *path)
{
    uint32_t ix = 0;
    while (ix + 1 < world->host_count &&
           strncmp(path,
                   world->hosts[ix].home,
                   strlen(world->hosts[ix].home)) != 0) {
        ix++;
    }
    return ix;
}

/* Return the machine that has a spawn server. */
static uint32_t host_of(const struct world *world, uint32_t server)
{
    return world->workers[world->servers[server].worker]->host;
}

uint32_t world_machine_dir(struct world *world, const char *path)
{
    uint32_t found = strmap_find(&world->dir_map, path, strlen(path));
    if (found != STRMAP_NONE) {
        return found;
    }
    MEM_GROW(world->dirs, world->dir_count, world->dir_capacity);
    uint32_t ix = world->dir_count++;
    world->dirs[ix] = (struct world_dir){
        .path = arena_strndup(&world->arena, path, strlen(path)),
        .host = host_of_path(world, path),
        .holder = WORLD_NONE,
        .session = WORLD_NONE,
    };
    (void)strmap_add(&world->dir_map, world->dirs[ix].path, ix);
    return ix;
}

struct world_dir *world_machine_at(struct world *world, const char *path)
{
    uint32_t ix = world_machine_dir(world, path);
    return &world->dirs[ix];
}

void world_machine_drop(struct world *world, const char *path)
{
    struct world_dir *dir = world_machine_at(world, path);
    if (dir->holder == WORLD_NONE) {
        dir->started = false;
        dir->has_exit = false;
        mem_free(dir->fragment);
        dir->fragment = NULL;
    }
}

uint32_t world_machine_find(const struct world *world,
                            uint32_t host,
                            int64_t pid,
                            uint64_t ticks)
{
    for (uint32_t ix = world->shim_count; ix > 0; ix--) {
        const struct world_shim *shim = &world->shims[ix - 1];
        if (shim->pid == pid && shim->start_ticks == ticks &&
            host_of(world, shim->server) == host) {
            return shim->phase != SHIM_GONE ? ix - 1 : WORLD_NONE;
        }
    }
    return WORLD_NONE;
}

void world_machine_inspect(const struct world *world,
                           const struct world_dir *dir,
                           const char *boot_id,
                           struct attempt_found *out)
{
    const char *present = world->hosts[dir->host].boot_id;
    bool this_boot = strcmp(boot_id, present) == 0;
    *out = (struct attempt_found){.state = ATTEMPT_NEVER};
    if (dir->has_exit) {
        out->state = ATTEMPT_ENDED;
        out->exit = dir->exit;
    } else if (this_boot && dir->holder != WORLD_NONE) {
        bool live = dir->started && dir->started_pid > 0 &&
                    world_machine_find(world,
                                       dir->host,
                                       dir->started_pid,
                                       dir->started_ticks) != WORLD_NONE;
        out->state = live ? ATTEMPT_LIVE : ATTEMPT_STARTING;
        if (live) {
            out->pid = dir->started_pid;
            out->start_ticks = dir->started_ticks;
            memcpy(out->boot_id, present, sizeof(out->boot_id));
        }
    } else if (!this_boot || dir->started) {
        out->state = ATTEMPT_LOST;
        out->fenced = this_boot && dir->started_pid == 0;
    }
    out->named = dir->has_exit ||
                 (dir->started &&
                  (out->state == ATTEMPT_LIVE || out->state == ATTEMPT_LOST));
    memcpy(out->nonce, dir->nonce, sizeof(out->nonce));
}

static void report(struct world *world,
                   const struct world_shim *shim,
                   uint64_t id,
                   enum exec_report_type type,
                   int error)
{
    struct world_server *server = &world->servers[shim->server];
    int64_t at_ns = world->now_ns + world_delay(world, WORLD_MS);
    server->report_ns = at_ns > server->report_ns ? at_ns : server->report_ns;
    struct world_event *event = world_plan_event(world,
                                                 WORLD_REPORT,
                                                 server->report_ns,
                                                 shim->server,
                                                 0);
    event->report = (struct exec_report){
        .type = type,
        .id = id,
        .pid = shim->pid,
        .start_ticks = shim->start_ticks,
        .error = error,
    };
}

static void next_step(struct world *world, uint32_t ix, int64_t delay_ns)
{
    struct world_event *event =
        world_plan_event(world, WORLD_STEP, world->now_ns + delay_ns, ix, 0);
    world->shims[ix].step = event->seq;
    event->value = event->seq;
}

/* Return the value of a variable in the environment of a request, or NULL. */
static const char *get_env(const struct exec_request *request, const char *name)
{
    size_t len = strlen(name);
    for (uint32_t ix = 0; ix < request->env_count; ix++) {
        if (strncmp(request->env[ix], name, len) == 0 &&
            request->env[ix][len] == '=') {
            return request->env[ix] + len + 1;
        }
    }
    return NULL;
}

static char *copy_text(const char *text)
{
    return text != NULL ? mem_strndup(text, strlen(text)) : NULL;
}

/* Append the name of the variable that has the output of a task. */
static void add_output_name(struct strbuf *out, const char *task)
{
    strbuf_addf(out, "SLUICE_OUT_%s_SUM", task);
    for (size_t at = 0; at < out->len; at++) {
        unsigned char c = (unsigned char)out->text[at];
        out->text[at] = (char)(isalnum(c) != 0 ? toupper(c) : '_');
    }
}

/* Check that a session gets the outputs of the tasks that its task needs. They
 * may be of an earlier attempt: the need may have been done again since. */
static void check_outputs(struct world *world,
                          const struct exec_request *request)
{
    const char *id = get_env(request, "SLUICE_TASK");
    const char *run_id = get_env(request, "SLUICE_RUN");
    uint32_t ix = id != NULL ? world_check_find_run(world, run_id) : WORLD_NONE;
    if (ix == WORLD_NONE) {
        return;
    }
    const struct world_run *run = &world->runs[ix];
    uint32_t task = plan_find_task(run->plan, id);
    uint32_t count = task != PLAN_NONE ? run->plan->tasks[task].need_count : 0;
    for (uint32_t n = 0; n < count; n++) {
        uint32_t need = run->plan->tasks[task].needs[n];
        if (run->tasks[need].output == 0 ||
            strcmp(run->tasks[need].state, "done") != 0) {
            continue;
        }
        struct strbuf name = {0};
        add_output_name(&name, run->plan->tasks[need].id);
        const char *value = get_env(request, name.text);
        if (value == NULL ||
            strtoul(value, NULL, 10) > run->tasks[need].output) {
            world_fault(world,
                        "%s gets %s as %s, and it is %u",
                        id,
                        name.text,
                        value != NULL ? value : "nothing",
                        run->tasks[need].output);
        }
        strbuf_release(&name);
    }
}

enum err world_machine_request(struct world *world,
                               uint32_t server_ix,
                               const struct exec_request *request)
{
    check_outputs(world, request);
    struct world_server *server = &world->servers[server_ix];
    const char *number = get_env(request, "SLUICE_ATTEMPT");
    MEM_GROW(world->requests, world->request_count, world->request_capacity);
    uint32_t ix = world->request_count++;
    world->requests[ix] = (struct world_request){
        .id = request->id,
        .dir = world_machine_dir(world, request->dir),
        .server = server_ix,
        .run = copy_text(get_env(request, "SLUICE_RUN")),
        .task = copy_text(get_env(request, "SLUICE_TASK")),
        .program = get_env(request, "SLUICE_METERS") != NULL  ? WORLD_METERS
                   : get_env(request, "SLUICE_EVENT") != NULL ? WORLD_HOOK
                                                              : WORLD_SYNC_HOOK,
        .number = number != NULL ? (uint32_t)strtoul(number, NULL, 10) : 0,
        .timeout_ns = request->timeout_ns,
        .idle_ns = request->idle_ns,
        .checkpoint_ns = request->checkpoint_ns,
        .prepare = request->prepare != NULL,
    };
    (void)snprintf(world->requests[ix].lease,
                   sizeof(world->requests[ix].lease),
                   "%s",
                   request->lease != NULL ? request->lease : "");
    (void)snprintf(world->requests[ix].nonce,
                   sizeof(world->requests[ix].nonce),
                   "%s",
                   request->nonce != NULL ? request->nonce : "");
    int64_t at_ns = world->now_ns + world_delay(world, WORLD_MS);
    if (world_strikes(world, WORLD_SERVER, 12)) {
        at_ns += rng_below(&world->rng, 20) * WORLD_SECOND;
    }
    server->request_ns =
        at_ns > server->request_ns ? at_ns : server->request_ns;
    (void)world_plan_event(world, WORLD_REQUEST, server->request_ns, ix, 0);
    return ERR_OK;
}

void world_machine_serve(struct world *world, uint32_t ix)
{
    const struct world_request *request = &world->requests[ix];
    struct world_server *server = &world->servers[request->server];
    /* Requests that the client had not sent when it died are lost. */
    if (!server->alive || (server->orphan && rng_below(&world->rng, 4) == 0)) {
        world_say(world,
                  "request %llu is lost",
                  (unsigned long long)request->id);
        return;
    }
    struct world_shim shim = {
        .pid = ++world->hosts[host_of(world, request->server)].next_pid,
        .start_ticks = (uint64_t)(world->now_ns / (10 * WORLD_MS)) + 1,
        .request = ix,
        .server = request->server,
        .session = WORLD_NONE,
    };
    if (world_strikes(world, WORLD_SERVER, 20)) {
        world_say(world, "no fork for %llu", (unsigned long long)request->id);
        report(world, &shim, request->id, EXEC_FAILED, EAGAIN);
        return;
    }
    MEM_GROW(world->shims, world->shim_count, world->shim_capacity);
    world->shims[world->shim_count++] = shim;
    report(world, &shim, request->id, EXEC_STARTED, 0);
    int64_t delay_ns = world_delay(world, WORLD_MS);
    if (world_strikes(world, WORLD_SERVER, 12)) {
        delay_ns += rng_below(&world->rng, 20) * WORLD_SECOND;
    }
    next_step(world, world->shim_count - 1, delay_ns);
}

/* Remove a shim, and notify its waiters. */
static void vanish(struct world *world, uint32_t ix)
{
    struct world_shim *shim = &world->shims[ix];
    const struct world_request *request = &world->requests[shim->request];
    struct world_dir *dir = &world->dirs[request->dir];
    shim->phase = SHIM_GONE;
    if (dir->holder == ix) {
        dir->holder = WORLD_NONE;
    }
    if (world->servers[shim->server].alive) {
        report(world, shim, request->id, EXEC_ENDED, 0);
    }
    for (uint32_t n = 0; n < world->worker_count; n++) {
        if (world->workers[n]->alive && world->workers[n]->host == dir->host) {
            /* Only its watchers react: see world_worker_gone(). */
            (void)world_plan_event(world,
                                   WORLD_GONE,
                                   world->now_ns + world_delay(world, WORLD_MS),
                                   n,
                                   ix);
        }
    }
}

/* Set the tasks of a session: one, or all tasks of its batch file. */
static void set_tasks(struct world *world,
                      struct world_session *session,
                      const struct world_request *request)
{
    const struct plan *plan = world->runs[session->run].plan;
    const char *batch = world->dirs[request->dir].batch;
    const char *text = batch != NULL ? batch : request->task;
    session->tasks = mem_zalloc(strlen(text) + 1, sizeof(session->tasks[0]));
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");
        char *id = mem_strndup(text, len);
        uint32_t task = plan_find_task(plan, id);
        if (task == PLAN_NONE) {
            world_fault(world, "a session is for no task: %s", id);
        } else {
            session->tasks[session->task_count++] = task;
        }
        mem_free(id);
        text += len + (text[len] == '\n' ? 1 : 0);
    }
}

/* Return the ending of a session or program by the script; store its result. */
static enum world_ending scripted_ending(struct world *world,
                                         const struct world_request *request,
                                         struct world_dir *dir,
                                         int64_t *duration_ns_out)
{
    const struct world_script *script = world->options.script;
    int64_t wall_ns = world->now_ns + world->wall_ns;
    struct world_scripted how = {.takes_ns = 60 * WORLD_SECOND};
    if (request->task == NULL) {
        how.takes_ns = 2 * WORLD_SECOND;
    } else if (script->session != NULL) {
        script->session(script->ctx, wall_ns, request->task, &how);
    }
    mem_free(dir->result);
    dir->result = copy_text(how.result);
    *duration_ns_out = how.takes_ns;
    return how.code == 0    ? WORLD_END_DONE
           : how.code == 75 ? WORLD_END_REFUSED
                            : WORLD_END_FAILED;
}

/* Write the output of a program that succeeds. */
static void end_program(struct world *world,
                        const struct world_request *request,
                        struct world_dir *dir)
{
    const struct world_script *script = world->options.script;
    mem_free(dir->fragment);
    dir->fragment = NULL;
    if (request->program == WORLD_METERS) {
        dir->fragment = world_plan_meters(world);
    } else if (request->program == WORLD_HOOK) {
        world_notify_told(world, dir->path);
        if (script != NULL && script->told != NULL) {
            script->told(script->ctx,
                         world->now_ns + world->wall_ns,
                         dir->event);
        }
    } else {
        uint32_t run = world_check_find_run(world, request->run);
        dir->fragment = world_plan_fragment(world, &world->runs[run]);
    }
}

/* Start the command, after `started` was created. */
static void begin_session(struct world *world, uint32_t ix)
{
    struct world_shim *shim = &world->shims[ix];
    const struct world_request *request = &world->requests[shim->request];
    struct world_dir *dir = &world->dirs[request->dir];
    MEM_GROW(world->sessions, world->session_count, world->session_capacity);
    struct world_session *session = &world->sessions[world->session_count];
    shim->session = world->session_count++;
    *session = (struct world_session){
        .token = request->id,
        .dir = request->dir,
        .run = WORLD_NONE,
        .number = request->number,
        .live = true,
    };
    int64_t duration_ns;
    if (world->options.script != NULL) {
        session->ending = scripted_ending(world, request, dir, &duration_ns);
    } else {
        session->ending =
            world_plan_ending(world,
                              request->run,
                              request->task != NULL ? request->task : dir->path,
                              request->number,
                              &duration_ns);
    }
    dir->executions++;
    dir->session = shim->session;
    if (request->task == NULL && request->program == WORLD_HOOK) {
        world_notify_begun(world, dir->path);
    }
    if (request->task != NULL) {
        world->report->sessions++;
        session->run = world_check_find_run(world, request->run);
        if (session->run == WORLD_NONE) {
            world_fault(world, "a session of no run: %s", request->run);
            return;
        }
        set_tasks(world, session, request);
        world_check_run(world, session);
    }
    if (world_has(world, WORLD_MACHINES)) {
        duration_ns *= 3; /* often longer than a lease */
    }
    if (session->ending == WORLD_END_HANGS) {
        duration_ns = request->timeout_ns;
    } else if (session->ending == WORLD_END_IDLE) {
        duration_ns = request->idle_ns < request->timeout_ns
                          ? request->idle_ns
                          : request->timeout_ns;
    } else if (session->ending == WORLD_END_CHECKPOINT &&
               request->checkpoint_ns != EXEC_NEVER) {
        duration_ns = request->checkpoint_ns + WORLD_SECOND;
    } else if (session->ending == WORLD_END_SPAWN_AGAIN ||
               session->ending == WORLD_END_SPAWN_NEVER) {
        duration_ns = 0;
    }
    next_step(world, ix, shim->told ? WORLD_SECOND : duration_ns);
    if (request->lease[0] != '\0') {
        (void)world_plan_event(world, WORLD_LEASE, world->now_ns + 1, ix, 0);
    }
}

/* Add the time at which a session asks to be run again: a moment, or a time
 * from now. */
static void add_later(struct world *world,
                      const struct world_session *session,
                      struct strbuf *text)
{
    int64_t wall_s = (world->now_ns + world->wall_ns) / WORLD_SECOND;
    uint32_t after_s = 1 + rng_below(&world->rng, 120);
    if (rng_below(&world->rng, 2) == 0) {
        strbuf_addf(text, "\"retry_at\":%lld", (long long)wall_s + after_s);
    } else {
        strbuf_addf(text, "\"retry_after\":\"%us\"", after_s);
    }
    /* A moment is a whole second, which may have begun. */
    for (uint32_t n = 0; n < session->task_count; n++) {
        world->runs[session->run].tasks[session->tasks[n]].later_ns =
            world->now_ns + (after_s - 1) * WORLD_SECOND;
    }
}

/* Write the result of the session. */
static void write_result(struct world *world,
                         const struct world_session *session,
                         struct world_dir *dir)
{
    struct strbuf text = {0};
    switch (session->ending) {
    case WORLD_END_REFUSED_UNTIL:
        strbuf_addf(
            &text,
            "{\"outcome\":\"refused\",\"retry_at\":%lld",
            (long long)((world->now_ns + world->wall_ns) / WORLD_SECOND) +
                rng_below(&world->rng, 60));
        break;
    case WORLD_END_CHECKPOINT:
        strbuf_adds(&text, "{\"outcome\":\"checkpoint\"");
        break;
    case WORLD_END_INVALID:
        strbuf_adds(&text, "{\"outcome\":\"splendid\"");
        break;
    case WORLD_END_EMPTY:
        strbuf_adds(&text,
                    "{\"usage\":{\"input_tokens\":0,\"output_tokens\":0}");
        break;
    case WORLD_END_DONE:
        strbuf_adds(&text, "{\"usage\":{\"input_tokens\":7}");
        if (session->task_count == 1 && world_has(world, WORLD_OUTCOMES)) {
            strbuf_addf(&text,
                        ",\"outputs\":{\"sum\":\"%u\"}",
                        session->number);
        }
        break;
    case WORLD_END_LATER_AT:
        strbuf_adds(&text, "{\"outcome\":\"later\",");
        add_later(world, session, &text);
        break;
    case WORLD_END_FINAL:
        strbuf_adds(&text, "{\"outcome\":\"failed\",\"final\":true");
        break;
    case WORLD_END_FAILED:
    case WORLD_END_CHANGES:
    case WORLD_END_BLOCKED:
    case WORLD_END_REFUSED:
    case WORLD_END_SIGNAL:
    case WORLD_END_HANGS:
    case WORLD_END_IDLE:
    case WORLD_END_SPAWN_AGAIN:
    case WORLD_END_SPAWN_NEVER:
    case WORLD_END_PREPARE:
    case WORLD_END_LATER:
    case WORLD_END_FATAL:
        return;
    }
    if (session->ending == WORLD_END_DONE && session->task_count > 1) {
        const struct plan *plan = world->runs[session->run].plan;
        strbuf_adds(&text, ",\"tasks\":[");
        for (uint32_t n = 0; n < session->task_count; n++) {
            strbuf_addf(&text,
                        "%s{\"task\":\"%s\",\"outcome\":\"%s\"}",
                        n > 0 ? "," : "",
                        plan->tasks[session->tasks[n]].id,
                        n > 0 ? world_plan_rider(world, session, n) : "done");
        }
        strbuf_adds(&text, "]");
    }
    strbuf_adds(&text, "}");
    mem_free(dir->result);
    dir->result = mem_strndup(text.text, text.len);
    strbuf_release(&text);
}

/* Return the exit status of a session that exited, or that its shim stopped. */
static struct attempt_exit exit_of(enum world_ending ending)
{
    struct attempt_exit exit = {.cause = ATTEMPT_EXIT, .code = 0};
    switch (ending) {
    case WORLD_END_DONE:
    case WORLD_END_REFUSED_UNTIL:
    case WORLD_END_CHECKPOINT:
    case WORLD_END_INVALID:
    case WORLD_END_EMPTY:
    case WORLD_END_LATER_AT:
        break;
    case WORLD_END_LATER:
        exit.code = 40;
        break;
    case WORLD_END_FATAL:
        exit.code = 50;
        break;
    case WORLD_END_FAILED:
    case WORLD_END_FINAL:
        exit.code = 1;
        break;
    case WORLD_END_CHANGES:
        exit.code = 20;
        break;
    case WORLD_END_BLOCKED:
        exit.code = 30;
        break;
    case WORLD_END_REFUSED:
        exit.code = 75;
        break;
    case WORLD_END_SIGNAL:
        exit.code = -1;
        exit.signal = 11;
        break;
    case WORLD_END_HANGS:
        exit = (struct attempt_exit){.cause = ATTEMPT_TIMEOUT, .code = -1};
        break;
    case WORLD_END_IDLE:
        exit = (struct attempt_exit){.cause = ATTEMPT_IDLE, .code = -1};
        break;
    case WORLD_END_SPAWN_AGAIN:
    case WORLD_END_SPAWN_NEVER:
        exit = (struct attempt_exit){
            .cause = ATTEMPT_SPAWN,
            .code = -1,
            .error = ending == WORLD_END_SPAWN_AGAIN ? EAGAIN : ENOENT,
        };
        break;
    case WORLD_END_PREPARE:
        exit = (struct attempt_exit){.cause = ATTEMPT_PREPARE, .code = 1};
        break;
    }
    return exit;
}

/* End the session; the next step writes its record. */
static void end_session(struct world *world, uint32_t ix)
{
    struct world_shim *shim = &world->shims[ix];
    struct world_session *session = &world->sessions[shim->session];
    struct world_dir *dir = &world->dirs[session->dir];
    if (shim->told) {
        shim->exit = (struct attempt_exit){
            .cause = shim->unleased           ? ATTEMPT_LEASE
                     : shim->how == EXEC_STOP ? ATTEMPT_STOPPED
                                              : ATTEMPT_CANCELLED,
            .code = -1,
            .signal = 15,
        };
    } else {
        world_check_untold(world, session);
        shim->exit = exit_of(session->ending);
        if (world->options.script == NULL) {
            write_result(world, session, dir);
        }
        if (world->requests[shim->request].task == NULL &&
            shim->exit.cause == ATTEMPT_EXIT && shim->exit.code == 0) {
            end_program(world, &world->requests[shim->request], dir);
        }
    }
    dir->touched_ns = world->now_ns;
    shim->phase = SHIM_ENDING;
    next_step(world, ix, world_delay(world, WORLD_MS));
}

/* Return the outcome of a session, by the documentation and not by the code. */
static const char *outcome_of(const struct world_shim *shim,
                              const struct world_session *session)
{
    if (shim->exit.cause == ATTEMPT_CANCELLED ||
        shim->exit.cause == ATTEMPT_STOPPED) {
        return "stopped";
    }
    if (shim->exit.cause == ATTEMPT_LEASE) {
        return "lost";
    }
    switch (session->ending) {
    case WORLD_END_DONE:
        return "done";
    case WORLD_END_CHANGES:
        return "changes";
    case WORLD_END_BLOCKED:
    case WORLD_END_SPAWN_NEVER:
        return "blocked";
    case WORLD_END_REFUSED:
    case WORLD_END_REFUSED_UNTIL:
    case WORLD_END_SPAWN_AGAIN:
        return "refused";
    case WORLD_END_CHECKPOINT:
        return "checkpoint";
    case WORLD_END_LATER:
    case WORLD_END_LATER_AT:
        return "later";
    case WORLD_END_FAILED:
    case WORLD_END_SIGNAL:
    case WORLD_END_HANGS:
    case WORLD_END_IDLE:
    case WORLD_END_INVALID:
    case WORLD_END_EMPTY:
    case WORLD_END_PREPARE:
    case WORLD_END_FATAL:
    case WORLD_END_FINAL:
        break;
    }
    return "failed";
}

/* Record that no process of the session is left. */
static void end_witness(struct world *world,
                        struct world_session *session,
                        const char *outcome)
{
    session->live = false;
    session->stray = false;
    session->outcome = outcome;
    if (session->run != WORLD_NONE) {
        world_check_ended(world, session);
    }
}

static void write_record(struct world *world, uint32_t ix)
{
    struct world_shim *shim = &world->shims[ix];
    struct world_session *session = &world->sessions[shim->session];
    struct world_dir *dir = &world->dirs[session->dir];
    shim->exit.begun_ns = 1;
    shim->exit.ended_ns = world->now_ns + world->wall_ns;
    dir->has_exit = true;
    dir->exit = shim->exit;
    dir->touched_ns = world->now_ns;
    end_witness(world, session, outcome_of(shim, session));
    vanish(world, ix);
}

/* Take the directory, or exit. */
static void claim_dir(struct world *world, uint32_t ix)
{
    struct world_shim *shim = &world->shims[ix];
    struct world_dir *dir = &world->dirs[world->requests[shim->request].dir];
    if (shim->phase == SHIM_FORKED) {
        if (dir->started || dir->holder != WORLD_NONE) {
            vanish(world, ix);
            return;
        }
        dir->holder = ix;
        shim->phase = SHIM_LOCKED;
        next_step(world, ix, world_delay(world, WORLD_MS / 8));
        return;
    }
    if (dir->started || world_strikes(world, WORLD_FILES, 40) ||
        world_hosts_is_full(world, dir->host)) {
        vanish(world, ix); /* or its files do not fit */
        return;
    }
    dir->started = true;
    dir->started_pid = shim->pid;
    dir->started_ticks = shim->start_ticks;
    memcpy(dir->nonce,
           world->requests[shim->request].nonce,
           sizeof(dir->nonce));
    dir->touched_ns = world->now_ns;
    int64_t grace_ns;
    const char *lease = world->requests[shim->request].lease;
    if (lease[0] != '\0' &&
        world_hosts_lease(world, dir->host, lease, &grace_ns) <= 0) {
        world_say(world, "shim %lld has no lease", (long long)shim->pid);
        dir->has_exit = true;
        dir->exit = (struct attempt_exit){.cause = ATTEMPT_LEASE, .code = -1};
        vanish(world, ix);
        return;
    }
    shim->phase = SHIM_RUNNING;
    begin_session(world, ix);
}

void world_machine_step(struct world *world, uint32_t ix)
{
    switch (world->shims[ix].phase) {
    case SHIM_FORKED:
    case SHIM_LOCKED:
        claim_dir(world, ix);
        break;
    case SHIM_RUNNING:
        end_session(world, ix);
        break;
    case SHIM_ENDING:
        write_record(world, ix);
        break;
    case SHIM_GONE:
        break;
    }
}

void world_machine_signal(struct world *world, uint32_t ix, enum exec_end how)
{
    struct world_shim *shim = &world->shims[ix];
    if (shim->told || how == EXEC_CHECKPOINT || shim->phase >= SHIM_ENDING) {
        return;
    }
    shim->told = true; /* before it runs, the signal stays pending */
    shim->how = how;
    if (shim->phase == SHIM_RUNNING) {
        /* Some sessions use all of their grace. */
        bool slow = world_strikes(world, WORLD_MACHINES, 4);
        next_step(world,
                  ix,
                  world_delay(world, (slow ? 40 : 1) * WORLD_SECOND));
    }
}

void world_machine_lease(struct world *world, uint32_t ix)
{
    struct world_shim *shim = &world->shims[ix];
    if (shim->phase != SHIM_RUNNING) {
        return;
    }
    int64_t grace_ns;
    uint32_t host = host_of(world, shim->server);
    int64_t left_ns = world_hosts_lease(world,
                                        host,
                                        world->requests[shim->request].lease,
                                        &grace_ns);
    if (left_ns > 0) {
        (void)world_plan_event(world,
                               WORLD_LEASE,
                               world->now_ns +
                                   world_hosts_span(world, host, left_ns),
                               ix,
                               0);
        return;
    }
    world_say(world, "the lease of shim %lld ends", (long long)shim->pid);
    shim->unleased = !shim->told;
    shim->told = true;
    next_step(world,
              ix,
              (int64_t)(rng_unit(&world->rng) *
                        (double)world_hosts_span(world, host, grace_ns)));
}

void world_machine_kill(struct world *world, uint32_t ix)
{
    struct world_shim *shim = &world->shims[ix];
    if (shim->phase == SHIM_GONE) {
        return;
    }
    if (shim->phase == SHIM_RUNNING && rng_below(&world->rng, 2) == 0) {
        world->sessions[shim->session].stray = true; /* it survives */
    } else if (shim->phase >= SHIM_RUNNING) {
        end_witness(world, &world->sessions[shim->session], "lost");
    }
    world_say(world, "shim %lld is killed", (long long)shim->pid);
    vanish(world, ix);
}

void world_machine_kill_strays(struct world *world, uint32_t ix)
{
    uint32_t session = world->dirs[ix].session;
    if (session != WORLD_NONE && world->sessions[session].stray) {
        end_witness(world, &world->sessions[session], "lost");
    }
}

/* Lose files that were not synced before a power failure. */
static void lose_files(struct world *world, struct world_dir *dir)
{
    if (world->now_ns - dir->touched_ns > 30 * WORLD_SECOND) {
        return;
    }
    if (dir->has_exit && rng_below(&world->rng, 2) == 0) {
        dir->has_exit = false;
        if (dir->session != WORLD_NONE) {
            struct world_session *session = &world->sessions[dir->session];
            session->reported =
                world_has(world, WORLD_MACHINES) ? session->outcome : NULL;
            session->outcome = "lost";
        }
    }
    if (!dir->has_exit && rng_below(&world->rng, 2) == 0) {
        dir->started = false;
    }
}

void world_machine_reboot(struct world *world, uint32_t host)
{
    for (uint32_t ix = 0; ix < world->shim_count; ix++) {
        if (host_of(world, world->shims[ix].server) == host) {
            world->shims[ix].phase = SHIM_GONE;
        }
    }
    for (uint32_t ix = 0; ix < world->server_count; ix++) {
        if (host_of(world, ix) == host) {
            world->servers[ix].alive = false;
        }
    }
    for (uint32_t ix = 0; ix < world->session_count; ix++) {
        struct world_session *session = &world->sessions[ix];
        if (session->live && world->dirs[session->dir].host == host) {
            end_witness(world, session, "lost");
        }
    }
    for (uint32_t ix = 0; ix < world->dir_count; ix++) {
        if (world->dirs[ix].host == host) {
            world->dirs[ix].holder = WORLD_NONE;
            lose_files(world, &world->dirs[ix]);
        }
    }
}
