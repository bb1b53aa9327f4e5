/* SPDX-License-Identifier: MIT */
/*
 * store: the only truth that processes share.
 *
 * A store holds runs (with the text of their plans), the state of every task,
 * attempts, the requests of operators and a numbered log of events. It has one
 * writer: the process that took the scheduler's lock. Everybody else reads.
 *
 * Writing:
 *  1. store_take() makes this process the scheduler and returns its epoch,
 *     which is greater than every one before.
 *  2. store_read() gives everything that is needed to go on.
 *  3. store_write() applies one batch of changes: all of it, durably, or
 *     nothing. It fails with ERR_CONFLICT once another process has taken the
 *     store since: whatever this one still believes, it cannot be written.
 *  4. store_close() gives the lock back.
 *
 * Reading: store_read() sees one state of the store, as it was between two
 * batches. Readers never keep the writer waiting, and it never waits for them.
 *
 * Threads: one call at a time per store; calls may come from different
 * threads, if the caller orders them.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/diag.h"
#include "base/strbuf.h"
#include "store/batch.h"

#include <stdbool.h>
#include <stdint.h>

/* Who holds, or wants to hold, the scheduler's lock. A plain value; its age and
 * silence are worked out by store_owner(). */
struct store_owner {
    int64_t pid;
    uint64_t start_ticks; /* when that process began, in ticks since boot */
    char host[65];
    char boot_id[37];   /* of the machine's present boot */
    int64_t age_ns;     /* of that process; -1: not known */
    int64_t silent_ns;  /* since its last sign of life; -1: not known */
    uint64_t epoch;     /* 0: not known */
    uint64_t commits;   /* batches that it has written, as of that sign */
    uint64_t commit_ns; /* time that this took in all */
    char trouble[128];  /* why it cannot write at present; "": it can */
};

enum store_mode {
    STORE_READ,  /* the store must be there; nothing is ever written */
    STORE_WRITE, /* make it if it is not there, and bring its schema up to date
                    (in store_take()) */
};

/*
 * Which rows store_read() gives. Rows that it does not give are not read: the
 * cost of a query does not grow with the tasks, attempts and texts of runs that
 * it leaves out.
 */
struct store_query {
    bool finished;    /* runs that have finished, too */
    const char *run;  /* only the run of this id, finished or not */
    const char *task; /* only tasks of this id */
    bool ended;       /* attempts that have ended, too */
    bool answered;    /* requests that were answered, too */
    const char *key;  /* only the request of this key, answered or not */
    bool others;      /* runs: those that it leaves out; set by store_read() */
};

/* Which events store_events() gives. */
struct store_range {
    uint32_t run;   /* those of this run and of no run; 0: of all runs */
    uint64_t after; /* only those with greater numbers */
    uint32_t max;   /* at most so many, the first ones; 0: all */
};

/*
 * One call for each row, in this order: ids of the runs that the query leaves
 * out; runs by number; fragments by run and number, of which 0 is the plan;
 * limits;
 * providers; settings by name; tasks by run and index; attempts by token;
 * requests by number. Texts are borrowed for the call. A function that is NULL
 * is not called; one that fails ends the reading with its error.
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
    enum err (*command)(void *ctx, const struct store_command *command);
};

/* What is known about the store as a whole. */
struct store_info {
    char id[33];         /* made up with the store; no two have the same */
    uint64_t epoch;      /* of the last scheduler */
    int64_t engine_ns;   /* as of the last batch */
    int64_t wall_ns;     /* as of the last batch */
    uint64_t writes;     /* transactions so far: changes with each */
    uint64_t last_token; /* greatest one ever given out */
    uint64_t last_event;
    uint64_t last_sum; /* of that event */
    uint64_t last_command;
    uint64_t last_run;
};

typedef enum err (*store_event_fn)(void *ctx, const struct store_event *event);

/* Called for each fault that store_verify() finds; `text` says what and where.
 */
typedef void (*store_fault_fn)(void *ctx, const char *text);

struct store;

/*
 * Open the store at `address`: a directory, or one day postgresql://... With
 * STORE_READ it must be there (ERR_NOT_FOUND). Damage, a newer schema or
 * something that is not a store is refused with ERR_CORRUPT or
 * ERR_UNAVAILABLE and a text that says what to do; nothing is written then.
 */
MUST_USE enum err store_open(struct store **out,
                             const char *address,
                             enum store_mode mode,
                             struct diag *diag);

/* Close it; the scheduler's lock, if held, is given back. NULL is allowed. */
void store_close(struct store *store);

/*
 * Who holds the scheduler's lock now. ERR_NOT_FOUND: nobody does (*out is
 * then the last one who did, if that is known, else zeros).
 */
MUST_USE enum err
store_owner(struct store *store, struct store_owner *out, struct diag *diag);

/*
 * Become the scheduler: take the lock, bring the schema up to date, begin a
 * new epoch. ERR_BUSY: someone else is the scheduler, and *diag names it; the
 * call may be repeated. A store that has been taken is not taken again: after
 * ERR_CONFLICT, close it and open another. ERR_CORRUPT: damage, or writes that
 * were acknowledged are missing.
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
 * Apply a batch, durably. One without changes is a sign of life: it shows that
 * the scheduler lives, and what troubles it, costs no disk space and no commit,
 * and works on a full disk. ERR_CONFLICT: this process is no longer the
 * scheduler, or a change does not fit what is stored (an attempt of that token
 * is there already, or has ended): nothing was written. ERR_LIMIT: the disk is
 * full; nothing was written, and the same batch may be tried again. ERR_BUSY:
 * a foreign program keeps the database locked, and *diag names it; the same
 * holds. ERR_IO: the disk failed, and what it holds is not known: the process
 * must stop, and every further write fails in the same way.
 */
MUST_USE enum err store_write(struct store *store,
                              const struct store_batch *batch,
                              struct diag *diag);

/* The events of a range, by number. Those of runs that were removed
 * (STORE_PRUNE) are missing. */
MUST_USE enum err store_events(struct store *store,
                               const struct store_range *range,
                               store_event_fn fn,
                               void *ctx,
                               struct diag *diag);

/*
 * Look at everything: structure, checksums of the log of events, and whether
 * the state of each task is the one its last event says. Slow. Succeeds when
 * it could look, whether or not there were faults.
 */
MUST_USE enum err store_verify(struct store *store,
                               store_fault_fn fn,
                               void *ctx,
                               struct diag *diag);

/* --- requests ----------------------------------------------------------- */

/* A name for a request, by which it is found in the store; random. */
struct store_key {
    char text[33];
};

/* Create a key, and append the request, a JSON object, with it. */
MUST_USE enum err store_add_key(struct strbuf *out,
                                struct store_key *key_out,
                                const char *json,
                                struct diag *diag);

/*
 * Have the scheduler carry out a request that has the key (engine/request.h),
 * and wait for the answer, which the caller frees. It is stored under the key,
 * together with its answer and with what follows from it. ERR_NOT_FOUND: it was
 * not carried out, and never will be: there is no scheduler that listens.
 * ERR_TIMEOUT: no answer within `timeout_ms`; it may yet be carried out.
 * ERR_UNAVAILABLE: the scheduler cannot be reached (too many open files).
 * ERR_IO: what became of it is not known.
 */
MUST_USE enum err store_ask(struct store *store,
                            const struct store_key *key,
                            const char *json,
                            int timeout_ms,
                            char **answer_out,
                            struct diag *diag);

/* Whether a scheduler answers: ERR_OK, or as store_ask(). */
MUST_USE enum err
store_ping(struct store *store, int timeout_ms, struct diag *diag);

#endif /* STORE_STORE_H */
