/* SPDX-License-Identifier: MIT */
/*
 * Machines: boots, clocks, lease files, worker processes, and their faults. The
 * first machine has the schedulers; the others exist with WORLD_MACHINES only,
 * and have a worker process each, which a supervisor starts again when it has
 * exited.
 *
 * The clock of a machine is at most 1 % faster or slower than the clock of the
 * database, and no machine stands still: under this condition the leases
 * promise that a lost worker has no live session.
 */
#include "sim/world_internal.h"

#include "base/mem.h"
#include "work/wire.h"

#include <stdio.h>
#include <string.h>

enum { PPM_MAX = 10000, MILLION = 1000000 };

int64_t world_hosts_clock(const struct world *world, uint32_t ix)
{
    const struct world_host *host = &world->hosts[ix];
    return world->now_ns + world->now_ns / MILLION * host->ppm + host->boot_ns;
}

int64_t
world_hosts_span(const struct world *world, uint32_t host, int64_t clock_ns)
{
    int64_t ppm = world->hosts[host].ppm;
    return ppm == 0 ? clock_ns : clock_ns / (MILLION + ppm) * MILLION + MILLION;
}

static struct world_lease *
find_lease(const struct world *world, uint32_t ix, const char *path)
{
    const struct world_host *host = &world->hosts[ix];
    for (uint32_t n = 0; n < host->lease_count; n++) {
        if (strcmp(host->leases[n].path, path) == 0) {
            return &host->leases[n];
        }
    }
    return NULL;
}

int64_t world_hosts_lease(const struct world *world,
                          uint32_t host,
                          const char *path,
                          int64_t *grace_out_ns)
{
    const struct world_lease *lease = find_lease(world, host, path);
    *grace_out_ns = lease != NULL ? lease->grace_ns : 0;
    return lease != NULL ? lease->until_ns - world_hosts_clock(world, host) : 0;
}

bool world_hosts_is_full(const struct world *world, uint32_t host)
{
    return world->now_ns < world->hosts[host].full_ns;
}

bool world_hosts_set_lease(struct world *world,
                           uint32_t ix,
                           const struct world_lease *lease)
{
    struct world_host *host = &world->hosts[ix];
    struct world_lease *old = find_lease(world, ix, lease->path);
    if (old == NULL && world_hosts_is_full(world, ix)) {
        return false;
    }
    if (old == NULL) {
        MEM_GROW(host->leases, host->lease_count, host->lease_capacity);
        old = &host->leases[host->lease_count++];
    }
    *old = *lease;
    return true;
}

void world_hosts_boot(struct world *world, uint32_t ix)
{
    struct world_host *host = &world->hosts[ix];
    (void)snprintf(host->boot_id,
                   sizeof(host->boot_id),
                   "%08x-0000-4000-8000-000000000000",
                   world->boots++);
    host->next_pid = 1; /* pids are reused */
}

void world_hosts_hire(struct world *world, uint32_t ix)
{
    struct world_host *host = &world->hosts[ix];
    if (host->worker != WORLD_NONE && world->workers[host->worker]->alive) {
        return;
    }
    char name[4];
    uint32_t as = ix;
    if (world_strikes(world, WORLD_MACHINES, 24)) {
        as = 1 + rng_below(&world->rng, world->host_count - 1);
    }
    (void)snprintf(name, sizeof(name), "w%u", as % 10);
    bool odd = world_strikes(world, WORLD_MACHINES, 12);
    host->worker =
        world_worker_hire(world, ix, name, odd ? WIRE_PROTO + 1 : WIRE_PROTO);
}

void world_hosts_begin(struct world *world)
{
    world->host_count = 1;
    world->hosts[0] = (struct world_host){
        .home = "/s",
        .boot_ns = 1000 * WORLD_SECOND,
        .worker = WORLD_NONE,
    };
    world_hosts_boot(world, 0);
    if (!world_has(world, WORLD_MACHINES)) {
        return;
    }
    world_board_begin(world);
    world->lease_ns = (4 + rng_below(&world->rng, 20)) * WORLD_SECOND;
    world->host_count += 2 + rng_below(&world->rng, WORLD_HOSTS_MAX - 2);
    for (uint32_t ix = 1; ix < world->host_count; ix++) {
        struct world_host *host = &world->hosts[ix];
        *host = (struct world_host){
            .boot_ns = rng_below(&world->rng, MILLION) * WORLD_SECOND,
            .ppm = (int64_t)rng_below(&world->rng, 2 * PPM_MAX + 1) - PPM_MAX,
            .slots = 1 + rng_below(&world->rng, 3),
            .worker = WORLD_NONE,
        };
        (void)snprintf(host->home, sizeof(host->home), "/%u", ix % 10);
        world_hosts_boot(world, ix);
        (void)world_plan_event(world,
                               WORLD_HIRE,
                               world_delay(world, WORLD_SECOND),
                               ix,
                               0);
    }
}

/* --- faults ------------------------------------------------------------- */

/* Draw a time, often shorter and often longer than a lease. */
static int64_t draw_ns(struct world *world)
{
    return (int64_t)(rng_unit(&world->rng) * 2.5 * (double)world->lease_ns);
}

static void reboot(struct world *world, uint32_t ix)
{
    struct world_host *host = &world->hosts[ix];
    world_say(world, "machine %u reboots", ix);
    if (host->worker != WORLD_NONE) {
        world_worker_end(world->workers[host->worker]);
    }
    world_machine_reboot(world, ix);
    world_hosts_boot(world, ix);
    host->boot_ns -= world_hosts_clock(world, ix);
}

/* Have a worker drain: an operator wants it, or its process gets a signal. */
static void drain(struct world *world, struct world_worker *worker)
{
    world_say(world, "worker %s is to drain", worker->name);
    if (rng_below(&world->rng, 2) == 0) {
        world_board_drain(world, worker->name);
    } else {
        crew_drain(worker->crew);
        world_worker_after(worker);
    }
}

/* A fault of a machine, or of its worker, which may be NULL. */
static void
strike_host(struct world *world, uint32_t ix, struct world_worker *worker)
{
    struct world_host *host = &world->hosts[ix];
    switch (rng_below(&world->rng, 7)) {
    case 0:
        if (worker != NULL && world_has(world, WORLD_CRASH)) {
            world_worker_end(worker);
        }
        break;
    case 1:
        if (world_has(world, WORLD_REBOOT)) {
            reboot(world, ix);
        }
        break;
    case 2:
        if (worker != NULL && world_has(world, WORLD_STALL)) {
            world_say(world, "worker %u stands still", worker->ix);
            worker->stalled_ns = world->now_ns + draw_ns(world);
        }
        break;
    case 3:
        if (world_has(world, WORLD_FILES)) {
            world_say(world, "machine %u has no space", ix);
            host->full_ns = world->now_ns + draw_ns(world);
        }
        break;
    case 4:
        if (worker != NULL && world_has(world, WORLD_DRAIN)) {
            drain(world, worker);
        }
        break;
    default:
        world_say(world, "machine %u is cut off", ix);
        host->cut_ns = world->now_ns + draw_ns(world);
        break;
    }
}

void world_hosts_strike(struct world *world)
{
    uint32_t ix = 1 + rng_below(&world->rng, world->host_count - 1);
    const struct world_host *host = &world->hosts[ix];
    struct world_worker *worker =
        host->worker != WORLD_NONE && world->workers[host->worker]->alive
            ? world->workers[host->worker]
            : NULL;
    uint32_t kind = rng_below(&world->rng, 8);
    if (kind == 0) {
        world_say(world, "the database is away");
        world->away_ns = world->now_ns + draw_ns(world);
    } else if (kind == 1 && world->current != WORLD_NONE) {
        world_say(world, "process %u is cut off", world->current);
        world->processes[world->current]->cut_ns =
            world->now_ns + draw_ns(world);
    } else {
        strike_host(world, ix, worker);
    }
}

void world_hosts_calm(struct world *world)
{
    world->away_ns = 0;
    for (uint32_t ix = 0; ix < world->process_count; ix++) {
        world->processes[ix]->cut_ns = 0;
    }
    for (uint32_t ix = 1; ix < world->host_count; ix++) {
        struct world_host *host = &world->hosts[ix];
        char name[4];
        host->cut_ns = 0;
        host->full_ns = 0;
        (void)snprintf(name, sizeof(name), "w%u", ix % 10);
        if (host->worker == WORLD_NONE) {
            continue;
        }
        struct world_worker *worker = world->workers[host->worker];
        if (worker->alive &&
            (worker->proto != WIRE_PROTO || strcmp(worker->name, name) != 0)) {
            world_worker_end(worker); /* the right one replaces it */
        }
    }
}

void world_hosts_release(struct world *world)
{
    for (uint32_t ix = 0; ix < world->host_count; ix++) {
        mem_free(world->hosts[ix].leases);
    }
}
