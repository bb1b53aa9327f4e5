/* SPDX-License-Identifier: MIT */
/*
 * store: the only state that processes share.
 *
 * A store holds runs (with the text of their plans), the state of every task,
 * attempts, operators' requests and a numbered event log. It has one writer:
 * the process that took the scheduler's lock. All others read.
 *
 * Writing: 1. store_take() makes this process the scheduler and returns its
 * epoch,
 *     which is greater than all earlier epochs.
 * 2. store_read() returns all data needed to resume. 3. store_write() applies
 * one batch of changes: all of it, durably, or
 *     nothing. It fails with ERR_CONFLICT once another process has taken
 *     the store: a former scheduler cannot write, whatever its state.
 * 4. store_close() releases the lock.
 *
 * Reading: store_read() sees one state of the store, between two batches.
 * Readers and the writer never wait for each other.
 *
 * Threads: one call at a time per store; calls may come from different threads,
 * if the caller orders them.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/diag.h"
#include "base/strbuf.h"
#include "store/batch.h"

#include <stdbool.h>
#include <stdint.h>

/* The process that holds, or wants to hold, the scheduler's lock. A plain
 * value; store_owner() computes its age and silence. */
struct store_owner {
    int64_t pid;
    uint64_t start_ticks; /* start of that process, in ticks since boot */
    char host[65];
    char boot_id[37];   /* of the machine's current boot */
    int64_t age_ns;     /* of that process; -1: unknown */
    int64_t silent_ns;  /* since its last heartbeat; -1: unknown */
    uint64_t epoch;     /* 0: unknown */
    uint64_t commits;   /* batches that it has written, as of that heartbeat */
    uint64_t commit_ns; /* total time of these commits */
    char trouble[128];  /* why it cannot write now; "": it can */
};

enum store_mode {
    STORE_READ,  /* the store must exist; nothing is ever written */
    STORE_WRITE, /* create it if it does not exist, and upgrade its schema
                    (in store_take()) */
};

/*
 * The rows that store_read() returns. Other rows are not read: the cost of a
 * query does not grow with the tasks, attempts and texts of runs that it leaves
 * out.
 */
struct store_query {
    bool finished;    /* finished runs, too */
    const char *run;  /* only the run with this id, finished or not */
    const char *task; /* only tasks with this id */
    bool ended;       /* attempts that have ended, too */
    bool answered;    /* answered requests, too */
    const char *key;  /* only the request with this key, answered or not */
    const char *repo; /* gates of this repository, of all runs */
    uint32_t gates;   /* without `repo`: the last so many gates of all runs;
                         0: those of the runs above */
    bool others;      /* runs: the complement; set by store_read() */
};

/* The events that store_events() returns. */
struct store_range {
    uint32_t run;   /* events of this run and of no run; 0: of all runs */
    uint64_t after; /* only events with greater numbers */
    uint32_t max;   /* at most the first so many; 0: all */
};

/*
 * One call for each row, in this order: ids of the runs that the query leaves
 * out; runs by number; fragments by run and number, of which 0 is the plan;
 * limits; providers; settings by name; tasks by run and index; attempts by
 * token; gates by token and place; requests by number. Strings are borrowed for
 * the call. A NULL function is not called; a function that fails stops the
 * reading with its error.
 */
struct store_visitor {
    enum err (*other)(void *ctx, const char *id);
    enum err (*run)(void *ctx, const struct store_run *run);
    enum err (*fragment)(void *ctx, const struct store_fragment *fragment);
    enum err (*limit)(void *ctx, const struct store_limit *limit);
    enum err (*provider)(void *ctx, const struct store_provider *provider);
    enum err (*setting)(void *ctx, const struct store_setting *setting);
    enum err (*task)(void *ctx, const struct store_task *task);
    enum err (*attempt)(void *ctx, const struct store_attempt *attempt);
    enum err (*gate)(void *ctx, const struct store_gate *gate);
    enum err (*command)(void *ctx, const struct store_command *command);
};

/* Data about the store as a whole. */
struct store_info {
    char id[33];         /* random, created with the store: unique */
    uint64_t epoch;      /* of the last scheduler */
    int64_t engine_ns;   /* as of the last batch */
    int64_t wall_ns;     /* as of the last batch */
    uint64_t writes;     /* transactions so far: changes with each */
    uint64_t last_token; /* greatest token ever assigned */
    uint64_t last_event;
    uint64_t last_sum; /* of that event */
    uint64_t last_command;
    uint64_t last_run;
};

typedef enum err (*store_event_fn)(void *ctx, const struct store_event *event);

/* Called for each fault that store_verify() finds; `text` describes it. */
typedef void (*store_fault_fn)(void *ctx, const char *text);

struct store;

/*
 * Open the store at `address`: a directory, or postgresql://... With
 * STORE_READ it must exist (ERR_NOT_FOUND). Damage, a newer schema or a
 * database that is not a store fails with ERR_CORRUPT or ERR_UNAVAILABLE and a
 * message with the remedy; nothing is written then.
 */
MUST_USE enum err store_open(struct store **out,
                             const char *address,
                             enum store_mode mode,
                             struct diag *diag);

/* Whether workers on other machines can use a store of this kind of address;
 * else the scheduler runs all sessions itself. */
bool store_has_workers(const char *address);

/* Close it, and release the scheduler's lock if held. NULL is allowed. */
void store_close(struct store *store);

/*
 * Return the holder of the scheduler's lock. ERR_NOT_FOUND: the lock is free
 * (*out is then the last holder, if known, else zeros).
 */
MUST_USE enum err
store_owner(struct store *store, struct store_owner *out, struct diag *diag);

/*
 * Become the scheduler: take the lock, upgrade the schema, begin a new epoch.
 * ERR_BUSY: another process is the scheduler, and *diag names it; the call may
 * be repeated. A store can be taken once: after ERR_CONFLICT, close it and open
 * another. ERR_CORRUPT: damage, or acknowledged writes are missing.
 */
MUST_USE enum err store_take(struct store *store,
                             const struct store_owner *self,
                             uint64_t *epoch_out,
                             struct diag *diag);

/* Read one consistent state; see struct store_visitor. */
MUST_USE enum err store_read(struct store *store,
                             const struct store_query *query,
                             const struct store_visitor *visitor,
                             void *ctx,
                             struct store_info *info_out,
                             struct diag *diag);

/*
 * A hint whether the store has changed, much cheaper than reading: two equal
 * marks, of which the first is settled, mean that no batch was written between
 * them. Another `place` means that another database is at the address now.
 */
struct store_mark {
    uint64_t place[2];
    uint64_t state[4];
    bool settled; /* a later change will have another mark */
};

/* Take a mark. ERR_NOT_FOUND: the database has vanished. */
MUST_USE enum err
store_mark(struct store *store, struct store_mark *out, struct diag *diag);

/*
 * Apply a batch, durably. A batch without changes is a heartbeat: it shows that
 * the scheduler lives, and its trouble, costs no disk space and no commit, and
 * works on a full disk. ERR_CONFLICT: this process is no longer the scheduler,
 * or a change contradicts the store (an attempt of that token exists already,
 * or has ended): nothing was written. ERR_LIMIT: the disk is full; nothing was
 * written, and the same batch may be tried again. ERR_BUSY: a foreign program
 * keeps the database locked, and *diag names it; otherwise as ERR_LIMIT.
 * ERR_IO: the disk failed, and its contents are unknown: the process must stop,
 * and every further write fails in the same way.
 */
MUST_USE enum err store_write(struct store *store,
                              const struct store_batch *batch,
                              struct diag *diag);

/* Read the events of a range, by number. Events of removed runs (STORE_PRUNE)
 * are missing. */
MUST_USE enum err store_events(struct store *store,
                               const struct store_range *range,
                               store_event_fn fn,
                               void *ctx,
                               struct diag *diag);

/*
 * Check everything: structure, checksums of the event log, and whether the
 * state of each task matches its last event. Slow. Succeeds when all checks
 * could run, with or without faults.
 */
MUST_USE enum err store_verify(struct store *store,
                               store_fault_fn fn,
                               void *ctx,
                               struct diag *diag);

/* --- requests ----------------------------------------------------------- */

/* A random name for a request, by which it is found in the store. */
struct store_key {
    char text[33];
};

/* Create a key, and append the request, a JSON object, with it. */
MUST_USE enum err store_add_key(struct strbuf *out,
                                struct store_key *key_out,
                                const char *json,
                                struct diag *diag);

/* The same with a key that exists. */
void store_put_key(struct strbuf *out,
                   const struct store_key *key,
                   const char *json);

/*
 * Send a request that has the key (engine/request.h) to the scheduler and wait
 * for the answer, which the caller frees. It is stored under the key, together
 * with its answer and its effects. ERR_NOT_FOUND: it was not applied, and never
 * will be: no scheduler listens. ERR_TIMEOUT: no answer within `timeout_ms`; it
 * may still be applied. ERR_UNAVAILABLE: the scheduler cannot be reached (too
 * many open files). ERR_IO: its fate is unknown.
 */
MUST_USE enum err store_ask(struct store *store,
                            const struct store_key *key,
                            const char *json,
                            int timeout_ms,
                            char **answer_out,
                            struct diag *diag);

/* Ask a question that changes nothing, and therefore needs no key. */
MUST_USE enum err store_look(struct store *store,
                             const char *json,
                             int timeout_ms,
                             char **answer_out,
                             struct diag *diag);

/* Whether a scheduler answers: ERR_OK, or as store_ask(). */
MUST_USE enum err
store_ping(struct store *store, int timeout_ms, struct diag *diag);

#endif /* STORE_STORE_H */
