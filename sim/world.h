/* SPDX-License-Identifier: MIT */
/*
 * world: the whole engine under virtual time, in a world with seeded faults.
 *
 * The engine is the real one (engine/engine.h); clock, store and machine are
 * not. Schedulers die at any call they make, a second one takes the store
 * while the first lives on, disks are full or fail, spawn servers, shims and
 * the machine die, clocks jump, an operator gives requests. The machine keeps a
 * log of its own of what really ran, and everything is judged by that log and
 * by what was made durable, not by what the engine says.
 *
 * Held at all times:
 *  - an attempt runs at most once, and not after it was recorded as over;
 *  - a task has at most one live session, and none before what it needs is
 *    done;
 *  - limits hold, as they were when the youngest session was claimed;
 *  - nothing is started, ended or answered before it is durable;
 *  - the recorded outcome of an attempt is the one that the machine saw;
 *  - what is done stays done, unless rework says otherwise;
 *  - a superseded scheduler writes nothing.
 * Then the faults stop, and every run must come to its end.
 *
 * A world is a seed, a number of tasks and a mask of features; equal ones give
 * equal histories.
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
    WORLD_ENDINGS = 1 << 3,  /* sessions that do not end well */
    WORLD_POLICY = 1 << 4,   /* on_failure other than park, optional tasks */
    WORLD_SYNC = 1 << 5,     /* hooks that add work */
    WORLD_RUNS = 1 << 6,     /* several runs in one store */
    WORLD_REQUESTS = 1 << 7, /* all kinds of requests */
    WORLD_DRAIN = 1 << 8,    /* schedulers that are told to end */
    /* Faults. */
    WORLD_CRASH = 1 << 9,   /* of the scheduler, at any call */
    WORLD_ZOMBIE = 1 << 10, /* superseded schedulers that live on */
    WORLD_FULL = 1 << 11,   /* the disk of the store is full for a while */
    WORLD_BROKEN = 1 << 12, /* the disk of the store fails */
    WORLD_SERVER = 1 << 13, /* the spawn server dies, or cannot fork */
    WORLD_KILL = 1 << 14,   /* of shims */
    WORLD_REBOOT = 1 << 15, /* of the machine */
    WORLD_CLOCK = 1 << 16,  /* the wall clock jumps, the machine sleeps */
    WORLD_STALL = 1 << 17,  /* the scheduler is stopped for a while */
    WORLD_FILES = 1 << 18,  /* the files of attempts cannot be used */
    /* Plans again. */
    WORLD_HOOKS = 1 << 19, /* hooks that are told of events */
    WORLD_USAGE = 1 << 20, /* meters that rise and fall */
    WORLD_MONEY = 1 << 21, /* budgets */
    /* The worker is a process of its own, which dies, comes back, and is cut
     * off from its scheduler. */
    WORLD_WORKERS = 1 << 22,
    WORLD_ALL = (1 << 22) - 1, /* but WORLD_WORKERS, which has its own seeds */
};

/* How a scripted session goes. Starts as "done after a minute". */
struct world_scripted {
    int64_t takes_ns;
    int code;           /* exit code */
    const char *result; /* what it writes into its result; NULL: nothing */
};

/* What is done at a time: a request, or, without one, kill -9. */
struct world_act {
    int64_t at_ns; /* after the beginning */
    const char *request;
};

/*
 * Instead of chance: one plan, and how everything goes. Times are wall clock;
 * the world begins at WORLD_WALL_NS. Functions that are NULL are not called.
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
    /* What meters print; false: their program fails. */
    bool (*meters)(void *ctx, int64_t wall_ns, struct strbuf *out);
    /* A hook has been told of an event. */
    void (*told)(void *ctx, int64_t wall_ns, const char *event);
};

/* Some day in 2026. */
#define WORLD_WALL_NS (1790000000 * SECOND_NS)

typedef void (*world_say_fn)(void *ctx, int64_t now_ns, const char *text);

struct world_options {
    uint64_t seed;
    uint32_t tasks;                    /* in each plan, about */
    uint32_t features;                 /* of enum world_feature */
    const struct world_script *script; /* NULL: by chance */
    /* Told of everything as it happens, because the end may be a crash; NULL:
     * nobody is. */
    world_say_fn say;
    void *ctx;
};

/* What came of it. Starts as {0}; give it back with world_report_release(). */
struct world_report {
    struct strbuf fault;  /* what is wrong, empty: nothing */
    struct strbuf states; /* "RUN TASK STATE" for each task in the end */
    uint32_t schedulers;  /* started in all */
    uint32_t sessions;    /* that really ran */
    uint32_t requests;    /* that were answered */
    uint64_t events;
    int64_t virtual_ns;
};

/* Live through one world; false: something is wrong, and *out says what. */
bool world_run(const struct world_options *options, struct world_report *out);

/* Give the texts back. */
void world_report_release(struct world_report *report);

#endif /* SIM_WORLD_H */
