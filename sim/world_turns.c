/* SPDX-License-Identifier: MIT */
/*
 * Turns of schedulers and workers at the board, as work/turns.c makes them: one
 * at a time, at least each second, at once after a notification.
 *
 * A turn is sent, happens, and its result is heard; faults come in between. A
 * turn can be lost, or only its result; it can happen after its sender has
 * given it up, and made the next one, or has died.
 *
 * When the faults are over and nothing is going on, no turns are made: else the
 * world would never come to rest.
 */
#include "sim/world_internal.h"

#include "base/invariant.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* As in work/turns.c. */
#define PAUSE_NS WORLD_SECOND
#define RETRY_NS (500 * WORLD_MS)

/* Return the client; NULL: it is gone, or makes no turns. */
static struct world_client *
find_client(const struct world *world, bool scheduler, uint32_t who)
{
    if (scheduler) {
        struct world_process *process = world->processes[who];
        return process->alive && process->roster != NULL && !process->failed
                   ? &process->client
                   : NULL;
    }
    struct world_worker *worker = world->workers[who];
    return worker->alive && worker->crew != NULL ? &worker->client : NULL;
}

/* Return until when the client is stopped. */
static int64_t
stalled_ns(const struct world *world, bool scheduler, uint32_t who)
{
    return scheduler ? world->processes[who]->stalled_ns
                     : world->workers[who]->stalled_ns;
}

/* Whether the client cannot reach the database. */
static bool is_cut(const struct world *world, bool scheduler, uint32_t who)
{
    int64_t cut_ns = scheduler ? world->processes[who]->cut_ns
                               : world->hosts[world->workers[who]->host].cut_ns;
    return world->now_ns < cut_ns || world->now_ns < world->away_ns;
}

static void
plan_turn(struct world *world, bool scheduler, uint32_t who, int64_t in_ns)
{
    struct world_client *client = find_client(world, scheduler, who);
    int64_t at_ns = world->now_ns + in_ns + 1;
    if (client != NULL && at_ns < client->next_ns) {
        client->next_ns = at_ns;
        (void)
            world_plan_event(world, WORLD_TURN, at_ns, who, scheduler ? 1 : 0);
    }
}

/* Plan a turn because of news. */
static void
hasten(struct world *world, bool scheduler, uint32_t who, int64_t in_ns)
{
    struct world_client *client = find_client(world, scheduler, who);
    if (client != NULL) {
        client->wanted = true;
        if (!client->busy && !client->failed) {
            plan_turn(world, scheduler, who, in_ns);
        }
    }
}

void world_turns_wake(struct world *world, bool scheduler, uint32_t who)
{
    hasten(world, scheduler, who, 0);
}

void world_turns_notify(struct world *world, bool scheduler)
{
    uint32_t count = scheduler ? world->process_count : world->worker_count;
    for (uint32_t who = 0; who < count; who++) {
        if (find_client(world, scheduler, who) != NULL &&
            !is_cut(world, scheduler, who) &&
            !world_strikes(world, WORLD_MACHINES, 8)) {
            hasten(world, scheduler, who, world_delay(world, WORLD_MS));
        }
    }
}

/* Say what is to be said; false: the client has died. */
static bool
say(struct world *world, const struct world_turn *turn, struct strbuf *out)
{
    if (!turn->scheduler) {
        crew_say(world->workers[turn->who]->crew, out);
        return true;
    }
    struct world_process *process = world->processes[turn->who];
    if (!world_process_dies(process)) {
        roster_say(process->roster, out);
    }
    if (process->died) {
        world_process_bury(process);
    }
    return process->alive;
}

/* Send a turn, and decide what becomes of it. */
static void
send_turn(struct world *world, uint32_t ix, struct world_client *client)
{
    struct world_turn *turn = &world->turns[ix];
    int64_t commit_ns = world_delay(world, 2 * WORLD_MS) + 1;
    client->busy = true;
    client->wanted = false;
    client->turn = ix;
    if (world_strikes(world, WORLD_MACHINES, 20)) {
        switch (rng_below(&world->rng, 4)) {
        case 0:
            turn->lost = true;
            break;
        case 1:
            turn->unheard = true;
            break;
        case 2: /* the database is slow */
            commit_ns += rng_below(&world->rng, 10000) * WORLD_MS;
            break;
        default: { /* and the client does not wait */
            int64_t given_up_ns = rng_below(&world->rng, 5000) * WORLD_MS;
            turn->unheard = true;
            (void)world_plan_event(world,
                                   WORLD_HEARD,
                                   world->now_ns + given_up_ns,
                                   ix,
                                   0);
            commit_ns = given_up_ns + rng_below(&world->rng, 15000) * WORLD_MS;
            break;
        }
        }
    }
    (void)
        world_plan_event(world, WORLD_COMMIT, world->now_ns + commit_ns, ix, 0);
}

static void begin(struct world *world, const struct world_event *event)
{
    bool scheduler = event->value == 1;
    struct world_client *client = find_client(world, scheduler, event->who);
    if (client == NULL || event->at_ns != client->next_ns) {
        return;
    }
    client->next_ns = SCHED_NEVER;
    int64_t stop_ns = stalled_ns(world, scheduler, event->who);
    if (stop_ns > world->now_ns) {
        plan_turn(world, scheduler, event->who, stop_ns - world->now_ns);
        return;
    }
    if (client->busy) {
        client->wanted = true;
        return;
    }
    uint32_t host = scheduler ? 0 : world->workers[event->who]->host;
    struct world_turn turn = {
        .scheduler = scheduler,
        .who = event->who,
        .since_ns = world_hosts_clock(world, host),
    };
    struct strbuf said = {0};
    if (!say(world, &turn, &said)) {
        strbuf_release(&said);
        return;
    }
    turn.said = said.text;
    MEM_GROW(world->turns, world->turn_count, world->turn_capacity);
    world->turns[world->turn_count++] = turn;
    send_turn(world, world->turn_count - 1, client);
}

static void commit(struct world *world, uint32_t ix)
{
    struct world_turn turn = world->turns[ix];
    world->turns[ix].said = NULL;
    bool cut = turn.lost || is_cut(world, turn.scheduler, turn.who);
    if (!cut) {
        world->turns[ix].quiet = world_board_is_quiet(world);
        world->turns[ix].result =
            world_board_turn(world, turn.scheduler, turn.said);
    }
    mem_free(turn.said);
    /* Nobody learns at once that nothing comes back. */
    int64_t delay_ns = world_delay(world, 2 * WORLD_MS) + 1;
    if (cut || turn.unheard) {
        delay_ns += rng_below(&world->rng, 4000) * WORLD_MS;
    }
    (void)world_plan_event(world, WORLD_HEARD, world->now_ns + delay_ns, ix, 0);
}

/* Whether the client needs no turn until something happens. */
static bool may_rest(struct world *world, const struct world_turn *turn)
{
    if (world->chaos) {
        return false;
    }
    if (turn->scheduler) {
        const struct world_process *process = world->processes[turn->who];
        return turn->quiet && engine_session_count(process->engine) == 0 &&
               !roster_has_news(process->roster);
    }
    static const char good[] = "{\"state\":\"ok\"";
    const struct world_worker *worker = world->workers[turn->who];
    return strncmp(turn->result, good, strlen(good)) == 0 &&
           crew_count(worker->crew) == 0 && !crew_has_news(worker->crew) &&
           world_board_rest(world, worker->name);
}

static void hear(struct world *world, const struct world_event *event)
{
    struct world_turn turn = world->turns[event->who];
    struct world_client *client = find_client(world, turn.scheduler, turn.who);
    if (client == NULL || !client->busy || client->turn != event->who) {
        free(turn.result);
        world->turns[event->who].result = NULL;
        return; /* nobody waits for it */
    }
    int64_t stop_ns = stalled_ns(world, turn.scheduler, turn.who);
    if (stop_ns > world->now_ns) {
        (void)world_plan_event(world, WORLD_HEARD, stop_ns, event->who, 0);
        return;
    }
    world->turns[event->who].result = NULL;
    client->busy = false;
    client->failed = turn.unheard || turn.result == NULL ||
                     is_cut(world, turn.scheduler, turn.who);
    const char *text = client->failed ? NULL : turn.result;
    if (turn.scheduler) {
        world_process_hear(world->processes[turn.who], text);
    } else {
        world_worker_hear(world->workers[turn.who], text, turn.since_ns);
    }
    if (find_client(world, turn.scheduler, turn.who) == client) {
        if (client->failed) {
            plan_turn(world, turn.scheduler, turn.who, RETRY_NS);
        } else if (client->wanted || !may_rest(world, &turn)) {
            int64_t pause_ns = world->chaos ? PAUSE_NS : world->lease_ns / 4;
            plan_turn(world,
                      turn.scheduler,
                      turn.who,
                      client->wanted ? 0 : pause_ns);
        }
    }
    free(turn.result);
}

void world_turns_event(struct world *world, const struct world_event *event)
{
    if (event->type == WORLD_TURN) {
        begin(world, event);
    } else if (event->type == WORLD_COMMIT) {
        commit(world, event->who);
    } else {
        hear(world, event);
    }
}

void world_turns_release(struct world *world)
{
    for (uint32_t ix = 0; ix < world->turn_count; ix++) {
        mem_free(world->turns[ix].said);
        free(world->turns[ix].result);
    }
    mem_free(world->turns);
}
