/* SPDX-License-Identifier: MIT */
/*
 * Time, chance and faults. One queue holds all future events, by time and then
 * by creation order. No other source of events exists, so equal worlds have
 * equal histories.
 *
 * The first phase is chaos. Then the faults stop: messages in transit arrive,
 * the operator reverts earlier requests, and when the queue is empty, nothing
 * will ever happen again by itself. At that point every run must be at rest.
 */
#include "sim/world.h"

#include "base/mem.h"
#include "sim/world_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    EVENTS_MAX = 4000000, /* more means that a scheduler loops */
    GIVE_UPS_MAX = 60,
};

/* Deadline for all runs in the calm phase. */
#define CALM_NS_MAX (INT64_C(30) * 86400 * WORLD_SECOND)

void world_fault(struct world *world, const char *format, ...)
{
    if (world->report->fault.len > 0) {
        return; /* faults after the first are consequences */
    }
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    strbuf_addf(&world->report->fault,
                "at %.3f s: %s",
                (double)world->now_ns / 1e9,
                text);
    world_say(world, "FAULT: %s", text);
}

void world_say(const struct world *world, const char *format, ...)
{
    if (world->options.say == NULL) {
        return;
    }
    char text[4096];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    world->options.say(world->options.ctx, world->now_ns, text);
}

bool world_has(const struct world *world, enum world_feature feature)
{
    return (world->options.features & (uint32_t)feature) != 0;
}

bool world_strikes(struct world *world,
                   enum world_feature feature,
                   uint32_t odds)
{
    return world->chaos && world_has(world, feature) &&
           rng_below(&world->rng, odds) == 0;
}

int64_t world_delay(struct world *world, int64_t scale_ns)
{
    uint32_t kind = rng_below(&world->rng, 32);
    if (kind < 8) {
        return 0;
    }
    int64_t delay_ns = (int64_t)(rng_unit(&world->rng) * (double)scale_ns);
    return kind == 31 ? delay_ns * 50 : delay_ns;
}

static bool is_before(const struct world_event *a, const struct world_event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->seq < b->seq;
}

struct world_event *world_plan_event(struct world *world,
                                     enum world_event_type type,
                                     int64_t at_ns,
                                     uint32_t who,
                                     uint64_t value)
{
    MEM_GROW(world->events, world->event_count, world->event_capacity);
    struct world_event event = {
        .at_ns = at_ns,
        .seq = ++world->seq,
        .type = type,
        .who = who,
        .value = value,
    };
    uint32_t ix = world->event_count++;
    while (ix > 0 && is_before(&event, &world->events[(ix - 1) / 2])) {
        world->events[ix] = world->events[(ix - 1) / 2];
        ix = (ix - 1) / 2;
    }
    world->events[ix] = event;
    return &world->events[ix];
}

static struct world_event next_event(struct world *world)
{
    struct world_event first = world->events[0];
    struct world_event last = world->events[--world->event_count];
    uint32_t ix = 0;
    for (;;) {
        uint32_t child = 2 * ix + 1;
        if (child + 1 < world->event_count &&
            is_before(&world->events[child + 1], &world->events[child])) {
            child++;
        }
        if (child >= world->event_count ||
            !is_before(&world->events[child], &last)) {
            break;
        }
        world->events[ix] = world->events[child];
        ix = child;
    }
    world->events[ix] = last;
    return first;
}

static enum err on_store_write(void *ctx,
                               enum store_memory_moment moment,
                               const struct store_batch *batch)
{
    struct world *world = ctx;
    struct world_process *writer = NULL;
    for (uint32_t ix = 0; ix < world->process_count; ix++) {
        if (world->processes[ix]->batch == batch) {
            writer = world->processes[ix];
        }
    }
    bool cut = world->now_ns < world->away_ns ||
               (writer != NULL && world->now_ns < writer->cut_ns);
    if (moment == STORE_MEMORY_BEFORE &&
        (cut || world->now_ns < world->full_ns)) {
        return ERR_LIMIT;
    }
    if (world->break_next && writer != NULL && rng_below(&world->rng, 2) == 0) {
        world_say(world, "the disk of process %u fails", writer->ix);
        world->break_next = false;
        writer->broken = true;
        writer->durable = moment == STORE_MEMORY_AFTER;
        return ERR_IO;
    }
    return ERR_OK;
}

/* --- faults ------------------------------------------------------------- */

static void take_over(struct world *world)
{
    if (world->current == WORLD_NONE || world->now_ns < world->away_ns) {
        return;
    }
    world_say(world, "process %u is superseded", world->current);
    world->processes[world->current]->superseded = true;
    world->current = WORLD_NONE;
    store_memory_release_lock(world->db);
    world_process_boot(world, NULL);
}

/* Return a worker that runs: of the scheduler, or of a machine; or NULL. */
static struct world_worker *draw_worker(struct world *world)
{
    uint32_t host =
        world->host_count > 1 ? rng_below(&world->rng, world->host_count) : 0;
    uint32_t ix = world->hosts[host].worker;
    if (host == 0 && world->current != WORLD_NONE) {
        ix = world->processes[world->current]->worker;
    }
    return ix != WORLD_NONE && world->workers[ix]->alive ? world->workers[ix]
                                                         : NULL;
}

static void kill_server(struct world *world)
{
    const struct world_worker *worker = draw_worker(world);
    if (worker == NULL) {
        return;
    }
    world->servers[worker->server].alive = false;
    world_say(world, "the server of worker %u dies", worker->ix);
    (void)world_plan_event(world,
                           WORLD_RESPAWN,
                           world->now_ns + world_delay(world, 50 * WORLD_MS),
                           worker->ix,
                           0);
}

static void kill_shim(struct world *world)
{
    for (uint32_t n = 0; n < 4 && world->shim_count > 0; n++) {
        uint32_t recent = world->shim_count < 8 ? world->shim_count : 8;
        uint32_t shim = world->shim_count - 1 - rng_below(&world->rng, recent);
        world_machine_kill(world, shim);
    }
}

static void reboot(struct world *world)
{
    world_say(world, "the machine reboots");
    for (uint32_t ix = 0; ix < world->process_count; ix++) {
        world_process_bury(world->processes[ix]);
    }
    world_machine_reboot(world, 0);
    world_hosts_boot(world, 0);
    world->hosts[0].boot_ns = -world->now_ns;
    world->wall_ns += rng_below(&world->rng, 300) * WORLD_SECOND;
}

static void shift_clocks(struct world *world)
{
    int64_t hour_ns = 3600 * WORLD_SECOND;
    int64_t was_ns = world->now_ns + world->wall_ns;
    if (was_ns > world->wall_was_ns[0]) {
        world->wall_was_ns[0] = was_ns;
    }
    switch (rng_below(&world->rng, 9)) {
    case 0:
        world->wall_ns += hour_ns * 10 * 365 * 24;
        break;
    case 1:
    case 2:
        world->wall_ns += hour_ns;
        break;
    case 3:
    case 4:
    case 5:
        world->wall_ns -= hour_ns;
        break;
    case 6: /* no real clock does this */
        world->hosts[0].boot_ns -= 10 * WORLD_SECOND;
        break;
    default:
        world_say(world, "the machine sleeps");
        world->hosts[0].boot_ns += 8 * hour_ns;
        world->wall_ns += 8 * hour_ns;
        for (uint32_t ix = 0; ix < world->process_count; ix++) {
            if (world->processes[ix]->alive) {
                (void)world_plan_event(world, WORLD_PASS, world->now_ns, ix, 0);
            }
        }
        break;
    }
}

static void leave(struct world *world)
{
    if (world->current == WORLD_NONE) {
        return;
    }
    struct world_process *process = world->processes[world->current];
    if (rng_below(&world->rng, 3) == 0) {
        world_process_stop(process);
    } else {
        world_process_request(process,
                              ++world->last_request,
                              "{\"verb\":\"drain\"}");
    }
}

/* Draw a kind of fault, and inject it if this world has that kind. */
static void strike(struct world *world)
{
    static const enum world_feature kinds[] = {
        WORLD_CRASH,
        WORLD_ZOMBIE,
        WORLD_FULL,
        WORLD_BROKEN,
        WORLD_SERVER,
        WORLD_KILL,
        WORLD_KILL,
        WORLD_REBOOT,
        WORLD_CLOCK,
        WORLD_STALL,
        WORLD_DRAIN,
    };
    uint32_t kind = kinds[rng_below(&world->rng, (uint32_t)ARRAY_COUNT(kinds))];
    if ((world->options.features & kind) == 0) {
        return;
    }
    if (kind == WORLD_CRASH && world->current != WORLD_NONE) {
        world_process_bury(world->processes[world->current]);
    } else if (kind == WORLD_ZOMBIE) {
        take_over(world);
    } else if (kind == WORLD_FULL) {
        world->full_ns = world->now_ns + world_delay(world, 20 * WORLD_SECOND);
    } else if (kind == WORLD_BROKEN) {
        world->break_next = true;
    } else if (kind == WORLD_SERVER) {
        kill_server(world);
    } else if (kind == WORLD_KILL) {
        kill_shim(world);
    } else if (kind == WORLD_REBOOT && rng_below(&world->rng, 3) == 0) {
        reboot(world);
    } else if (kind == WORLD_CLOCK) {
        shift_clocks(world);
    } else if (kind == WORLD_STALL && world->current != WORLD_NONE) {
        world->processes[world->current]->stalled_ns =
            world->now_ns + world_delay(world, 60 * WORLD_SECOND);
    } else if (kind == WORLD_DRAIN && rng_below(&world->rng, 2) == 0) {
        leave(world);
    }
}

/* --- event loop --------------------------------------------------------- */

/* Postpone an event of a stopped process until it continues. */
static bool is_later(struct world *world,
                     int64_t stalled_ns,
                     const struct world_event *event)
{
    if (stalled_ns <= world->now_ns) {
        return false;
    }
    struct world_event *later = world_plan_event(world,
                                                 event->type,
                                                 stalled_ns,
                                                 event->who,
                                                 event->value);
    later->report = event->report;
    return true;
}

/* Deliver an event to a scheduler; to a stopped scheduler later. */
static void deliver(struct world *world, const struct world_event *event)
{
    struct world_process *process = world->processes[event->who];
    if (!process->alive || is_later(world, process->stalled_ns, event)) {
        return;
    }
    if (event->type == WORLD_PASS) {
        world_process_pass(process);
    } else if (event->type == WORLD_APPLY) {
        world_process_apply(process);
    } else if (event->type == WORLD_WRITTEN) {
        world_process_written(process);
    } else {
        world_process_bury(process);
    }
}

/* The same for a worker, which stops together with its process. */
static void deliver_work(struct world *world, const struct world_event *event)
{
    bool reports = event->type == WORLD_REPORT;
    uint32_t ix = reports ? world->servers[event->who].worker : event->who;
    struct world_worker *worker = world->workers[ix];
    int64_t stalled_ns = worker->process != NULL ? worker->process->stalled_ns
                                                 : worker->stalled_ns;
    if (!worker->alive || (reports && !world->servers[event->who].alive) ||
        is_later(world, stalled_ns, event)) {
        return;
    }
    if (reports) {
        world_worker_report(worker, &event->report);
    } else if (event->type == WORLD_GONE) {
        world_worker_gone(worker, (uint32_t)event->value);
    } else if (event->type == WORLD_RESPAWN) {
        world_worker_respawn(worker);
    } else {
        world_worker_look(worker);
    }
}

static void
plan_more(struct world *world, enum world_event_type type, int64_t scale_ns)
{
    if (world->chaos) {
        int64_t delay_ns =
            1 + (int64_t)(rng_unit(&world->rng) * (double)scale_ns);
        (void)world_plan_event(world, type, world->now_ns + delay_ns, 0, 0);
    }
}

static void act(struct world *world, const struct world_act *act)
{
    if (world->current == WORLD_NONE) {
        world_fault(world, "there is no scheduler to act on");
    } else if (act->request != NULL) {
        world_process_request(world->processes[world->current],
                              ++world->last_request,
                              act->request);
    } else {
        world_process_bury(world->processes[world->current]);
    }
}

static void happen(struct world *world, const struct world_event *event)
{
    switch (event->type) {
    case WORLD_PASS:
    case WORLD_APPLY:
    case WORLD_WRITTEN:
    case WORLD_EXIT:
        deliver(world, event);
        break;
    case WORLD_REPORT:
    case WORLD_GONE:
    case WORLD_RESPAWN:
    case WORLD_LOOK:
        deliver_work(world, event);
        break;
    case WORLD_HIRE:
        world_hosts_hire(world, event->who);
        break;
    case WORLD_LEASE:
        world_machine_lease(world, event->who);
        break;
    case WORLD_TURN:
    case WORLD_COMMIT:
    case WORLD_HEARD:
        world_turns_event(world, event);
        break;
    case WORLD_REQUEST:
        world_machine_serve(world, event->who);
        break;
    case WORLD_STEP:
        if (world->shims[event->who].step == event->value) {
            world_machine_step(world, event->who);
        }
        break;
    case WORLD_SIGNAL:
        world_machine_signal(world, event->who, (enum exec_end)event->value);
        break;
    case WORLD_BOOT:
        world_process_boot(world, NULL);
        break;
    case WORLD_SUBMIT:
        world_operator_submit(world, event->who);
        break;
    case WORLD_OPERATOR:
        if (world->chaos) {
            world_operator_act(world);
            plan_more(world, WORLD_OPERATOR, 20 * WORLD_SECOND);
        }
        break;
    case WORLD_FAULT:
        if (world->chaos) {
            strike(world);
            if (world_has(world, WORLD_MACHINES)) {
                world_hosts_strike(world);
            }
            plan_more(world, WORLD_FAULT, 16 * WORLD_SECOND);
        }
        break;
    case WORLD_ACT:
        act(world, &world->options.script->acts[event->who]);
        break;
    }
}

/* Return whether a wake-up is obsolete: its process is gone, or no longer wants
 * it. It may be far ahead, for a clock that was wrong. */
static bool is_void(const struct world *world, const struct world_event *event)
{
    const struct world_process *process = world->processes[event->who];
    return !process->alive || process->wake_ns == SCHED_NEVER;
}

/* Process events until that time; SCHED_NEVER: until none is left. */
static void go_on(struct world *world, int64_t until_ns)
{
    while (world->event_count > 0 && world->events[0].at_ns <= until_ns &&
           world->report->fault.len == 0) {
        struct world_event event = next_event(world);
        if (event.type == WORLD_PASS && is_void(world, &event)) {
            continue;
        }
        world->now_ns = event.at_ns;
        happen(world, &event);
        world->report->events++;
        if (world->report->events > EVENTS_MAX) {
            world_fault(world, "events do not end");
        }
        if (!world->chaos && world->now_ns > CALM_NS_MAX) {
            world_fault(world, "the runs do not come to an end");
        }
    }
}

static void begin(struct world *world)
{
    rng_init(&world->rng, world->options.seed);
    world->db = store_memory_db_new();
    store_memory_set_fault(world->db, on_store_write, world);
    world->wall_ns = WORLD_WALL_NS;
    world->chaos = true;
    world->current = WORLD_NONE;
    world_hosts_begin(world);
    world->plan_count = 1;
    if (world_has(world, WORLD_RUNS)) {
        world->plan_count += rng_below(&world->rng, WORLD_PLANS_MAX);
    }
    (void)world_plan_event(world, WORLD_BOOT, 0, 0, 0);
    int64_t at_ns = 1;
    for (uint32_t ix = 0; ix < world->plan_count; ix++) {
        world->plans[ix].text = world_plan_text(world, ix);
        world->plans[ix].run = WORLD_NONE;
        world_say(world, "plan %u:\n%s", ix, world->plans[ix].text);
        (void)world_plan_event(world, WORLD_SUBMIT, at_ns, ix, 0);
        at_ns += rng_below(&world->rng, 60) * WORLD_SECOND;
    }
    plan_more(world, WORLD_OPERATOR, 20 * WORLD_SECOND);
    plan_more(world, WORLD_FAULT, 16 * WORLD_SECOND);
}

/* Process events until none is left. While a run waits for another run, its
 * meters are polled forever: six hours are enough then, if no session has begun
 * in the last of them. */
static void rest(struct world *world)
{
    const int64_t hour_ns = INT64_C(3600) * WORLD_SECOND;
    if (!world_has(world, WORLD_USAGE)) {
        go_on(world, SCHED_NEVER);
        return;
    }
    int64_t until_ns = world->now_ns + 5 * hour_ns;
    uint32_t begun;
    go_on(world, until_ns);
    do {
        begun = world->report->sessions;
        until_ns += hour_ns;
        go_on(world, until_ns);
    } while (world->report->sessions != begun && world->report->fault.len == 0);
}

/* Run the phase without faults. */
static void calm(struct world *world)
{
    world->chaos = false;
    world->calm_ns = world->now_ns;
    world->full_ns = 0;
    world->break_next = false;
    world_say(world, "calm");
    world_hosts_calm(world);
    rest(world);
    if (world->report->fault.len == 0) {
        world_operator_calm(world);
        rest(world);
        world_check_rest(world);
    }
    uint32_t rounds = 0;
    while (world->report->fault.len == 0 && world_operator_give_up(world)) {
        rest(world);
        world_check_rest(world);
        if (++rounds > GIVE_UPS_MAX) {
            world_fault(world, "the operator gives up for nothing");
        }
    }
    if (world->report->fault.len == 0) {
        world_check_end(world);
    }
}

static void release(struct world *world)
{
    world->current = WORLD_NONE;
    for (uint32_t ix = 0; ix < world->process_count; ix++) {
        struct world_process *process = world->processes[ix];
        if (process->alive) {
            engine_free(process->engine);
            store_close(process->store);
            roster_free(process->roster);
        }
        mem_free(process);
    }
    for (uint32_t ix = 0; ix < world->worker_count; ix++) {
        world_worker_free(world->workers[ix]);
    }
    world_turns_release(world);
    world_board_release(world);
    world_hosts_release(world);
    for (uint32_t ix = 0; ix < world->request_count; ix++) {
        mem_free(world->requests[ix].run);
        mem_free(world->requests[ix].task);
    }
    for (uint32_t ix = 0; ix < world->dir_count; ix++) {
        mem_free(world->dirs[ix].result);
        mem_free(world->dirs[ix].batch);
        mem_free(world->dirs[ix].fragment);
        mem_free(world->dirs[ix].event);
    }
    for (uint32_t ix = 0; ix < world->session_count; ix++) {
        mem_free(world->sessions[ix].tasks);
    }
    for (uint32_t ix = 0; ix < world->plan_count; ix++) {
        mem_free(world->plans[ix].text);
    }
    world_check_release(world);
    mem_free(world->processes);
    mem_free(world->workers);
    mem_free(world->requests);
    mem_free(world->sessions);
    mem_free(world->servers);
    mem_free(world->events);
    mem_free(world->shims);
    mem_free(world->notifications);
    mem_free(world->dirs);
    strmap_release(&world->dir_map);
    arena_release(&world->arena);
    store_memory_db_free(world->db);
}

/* Follow the script, without chance and faults. */
static void follow_script(struct world *world)
{
    const struct world_script *script = world->options.script;
    world->chaos = false;
    for (uint32_t ix = 0; ix < script->act_count; ix++) {
        (void)world_plan_event(world, WORLD_ACT, script->acts[ix].at_ns, ix, 0);
    }
    go_on(world, SCHED_NEVER);
    if (world->report->fault.len == 0) {
        world_check_rest(world);
        world_check_end(world);
    }
}

bool world_run(const struct world_options *options, struct world_report *out)
{
    struct world world = {.options = *options, .report = out};
    begin(&world);
    if (options->script != NULL) {
        follow_script(&world);
        out->virtual_ns = world.now_ns;
        release(&world);
        return out->fault.len == 0;
    }
    int64_t chaos_ns = (30 + rng_below(&world.rng, 300)) * WORLD_SECOND;
    go_on(&world, chaos_ns);
    if (out->fault.len == 0) {
        calm(&world);
    }
    out->virtual_ns = world.now_ns;
    release(&world);
    return out->fault.len == 0;
}

void world_report_release(struct world_report *report)
{
    strbuf_release(&report->fault);
    strbuf_release(&report->states);
}
