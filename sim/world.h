/* SPDX-License-Identifier: MIT */
/*
 * world: the whole engine under virtual time, with seeded faults.
 *
 * The engine is real (engine/engine.h); clock, store and machine are simulated.
 * Schedulers die at any call they make, a second scheduler takes the store
 * while the first survives, disks are full or fail, spawn servers, shims and
 * the machine die, clocks jump, an operator sends requests. The machine keeps
 * its own log of sessions that really ran; all checks use that log and the
 * durable state, not the engine's own view.
 *
 * Checked at all times:
 *  - an attempt runs at most once, and not after it was recorded as finished;
 *  - a task has at most one live session, and none before its needs have ended
 *    as it needs them; what needs a failure runs only after one;
 *  - a task that comes last runs when all others of its scope are at rest, and
 *    again if they were not at rest afterwards;
 *  - a snoozed task, or one with an earliest start, does not start before its
 *    time, unless an operator says so;
 *  - a session gets the outputs of the tasks that its task needs;
 *  - limits hold, with their values when the youngest session was claimed;
 *  - nothing is started, stopped or answered before it is durable;
 *  - the recorded outcome of an attempt is the outcome that the machine saw;
 *  - done tasks stay done, except for rework, reruns and last tasks;
 *  - a superseded scheduler writes nothing;
 *  - a session of a worker that is declared lost is not alive, nor does it
 *    begin, and its result does not count.
 * Then the faults stop, and every run must finish.
 *
 * A world is a seed, a number of tasks and a mask of features; equal values
 * give equal histories.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "base/duration.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

enum world_feature {
    /* Plans and operators. */
    WORLD_GROUPS = 1 << 0,   /* groups, pipelines, rework */
    WORLD_LIMITS = 1 << 1,   /* per repository, resources, low caps */
    WORLD_CLASSES = 1 << 2,  /* batches, deferred and aging classes */
    WORLD_ENDINGS = 1 << 3,  /* sessions that do not succeed */
    WORLD_POLICY = 1 << 4,   /* on_failure other than park, optional tasks */
    WORLD_SYNC = 1 << 5,     /* hooks that add work */
    WORLD_RUNS = 1 << 6,     /* several runs in one store */
    WORLD_REQUESTS = 1 << 7, /* all kinds of requests */
    WORLD_DRAIN = 1 << 8,    /* schedulers that drain or stop */
    /* Faults. */
    WORLD_CRASH = 1 << 9,   /* of the scheduler, at any call */
    WORLD_ZOMBIE = 1 << 10, /* superseded schedulers that survive */
    WORLD_FULL = 1 << 11,   /* the disk of the store is full for a while */
    WORLD_BROKEN = 1 << 12, /* the disk of the store fails */
    WORLD_SERVER = 1 << 13, /* the spawn server dies, or fails to fork */
    WORLD_KILL = 1 << 14,   /* of shims */
    WORLD_REBOOT = 1 << 15, /* of the machine */
    WORLD_CLOCK = 1 << 16,  /* the wall clock jumps, the machine sleeps */
    WORLD_STALL = 1 << 17,  /* the scheduler is stopped for a while */
    WORLD_FILES = 1 << 18,  /* files of attempts are unusable */
    /* Plans again. */
    WORLD_HOOKS = 1 << 19,    /* hooks that get events */
    WORLD_USAGE = 1 << 20,    /* meters that rise and fall */
    WORLD_MONEY = 1 << 21,    /* budgets */
    WORLD_OUTCOMES = 1 << 22, /* outcomes of needs, last tasks, runs that stop,
                                 final failures, outputs */
    WORLD_TIMES = 1 << 23, /* snoozes, earliest starts, deadlines, approvals */
    /* Sessions run on several machines, with leases. Workers die, restart,
     * stall, drain, have a full disk or another protocol; machines reboot;
     * workers, schedulers or all are cut off from the database. */
    WORLD_MACHINES = 1 << 24,
    WORLD_ALL = (1 << 24) - 1, /* WORLD_MACHINES has its own seeds */
};

/* A scripted session. Starts as "done after a minute". */
struct world_scripted {
    int64_t takes_ns;
    int code;           /* exit code */
    const char *result; /* content of its result; NULL: none */
};

/* A scripted act: a request, or, without one, kill -9. */
struct world_act {
    int64_t at_ns; /* from the start */
    const char *request;
};

/*
 * A fixed scenario instead of chance: one plan, and the course of its sessions.
 * Times are wall clock; the world begins at WORLD_WALL_NS. Functions that are
 * NULL are not called.
 */
struct world_script {
    const char *plan;
    const struct world_act *acts;
    uint32_t act_count;
    void *ctx;
    void (*session)(void *ctx,
                    int64_t wall_ns,
                    const char *task,
                    struct world_scripted *out);
    /* Print the meters; false: their program fails. */
    bool (*meters)(void *ctx, int64_t wall_ns, struct strbuf *out);
    /* A hook has received an event. */
    void (*told)(void *ctx, int64_t wall_ns, const char *event);
};

/* A day in 2026. */
#define WORLD_WALL_NS (1790000000 * SECOND_NS)

typedef void (*world_say_fn)(void *ctx, int64_t now_ns, const char *text);

struct world_options {
    uint64_t seed;
    uint32_t tasks;                    /* in each plan, approximately */
    uint32_t features;                 /* of enum world_feature */
    const struct world_script *script; /* NULL: by chance */
    /* Receives a line for every event at once, because the world may crash; or
     * NULL. */
    world_say_fn say;
    void *ctx;
};

/* Result. Starts as {0}; release with world_report_release(). */
struct world_report {
    struct strbuf fault;  /* the first fault; empty: none */
    struct strbuf states; /* "RUN TASK STATE" for each task, at the end */
    uint32_t schedulers;  /* total started */
    uint32_t sessions;    /* that really ran */
    uint32_t requests;    /* that were answered */
    uint64_t events;
    int64_t virtual_ns;
};

/* Run one world; false: it has a fault, which *out describes. */
bool world_run(const struct world_options *options, struct world_report *out);

void world_report_release(struct world_report *report);

#endif /* SIM_WORLD_H */
