/* SPDX-License-Identifier: MIT */
/*
 * worker: runs the orders of a scheduler on its machine.
 *
 * A worker inspects attempt directories, has shims start sessions, adopts the
 * sessions of an earlier worker, fences attempts that must no longer start, and
 * kills the processes of a dead shim. It decides nothing: it reports its
 * findings, and the scheduler draws the conclusions.
 *
 * All its state can be found again: the directories are authoritative. So it
 * may die at any instruction. A scheduler that asks the next worker for the
 * same work gets the same report, and work that is ordered twice runs once.
 *
 * Nothing here blocks. A report may come from within any call. After a final
 * report (ENDED, REFUSED, LOST, UNKNOWN) the worker has forgotten the work. The
 * strings of options are copied; the table and the place are borrowed.
 */
#ifndef WORK_WORKER_H
#define WORK_WORKER_H

#include "store/place.h"
#include "work/key.h"
#include "work/machine.h"
#include "work/order.h"
#include "work/report.h"

struct worker_options {
    const struct work_machine *machine;
    void *ctx;                       /* of the machine */
    const struct store_place *place; /* of the store */
    const char *git;                 /* path of sluice-git */
    const char *agent;               /* path of sluice-agent */
    const char *sandbox;             /* path of sluice-sandbox */
    const char *program;             /* path of sluice */
    struct key_secret secret;        /* of the keys of sessions */
    const char *boot_id;             /* current boot */
    work_report_fn report;
    void *link; /* of the reports */
};

struct worker;

/* Create a worker without work; free it with worker_free(). */
struct worker *worker_new(const struct worker_options *options);

/* Free it; sessions keep running. NULL is allowed. */
void worker_free(struct worker *worker);

/* Have what is started from now on depend on the lease in this file. */
void worker_set_lease(struct worker *worker, const char *path);

/*
 * Start the ordered work; adopt a program that was started before. With a
 * `want` other than WORK_RUN: ensure that it never starts.
 */
void worker_assign(struct worker *worker, const struct work_order *order);

/*
 * Determine the state of work that any worker was assigned before: adopt it, or
 * report its final state. `mark` is the last reported mark, or the mark of the
 * worker when it was assigned. `begun`: it was reported as started.
 */
void worker_ask(struct worker *worker,
                const struct work_id *id,
                const struct work_mark *mark,
                bool begun,
                enum work_want want);

/* Stop some work, now or as soon as it has started. Do nothing if it is unknown
 * here: then its final state was reported. */
void worker_want(struct worker *worker, uint64_t token, enum work_want want);

/*
 * Replace the file `messages` of a session with this text, now or as soon as it
 * has started, and again after a failure. Do nothing if it is unknown here.
 */
void worker_tell(struct worker *worker, uint64_t token, const char *text);

/* The end of a session is recorded. If it left nothing, its directory may now
 * become that of another. */
void worker_recorded(struct worker *worker, uint64_t token);

/* The exit of a program call is recorded: remove its directory. */
void worker_forget(struct worker *worker, const struct work_id *id);

/* The spawn server reports; a watched shim has exited; another spawn server has
 * replaced a dead one. */
void worker_reported(struct worker *worker, const struct exec_report *report);
void worker_gone(struct worker *worker, uint64_t token);
void worker_respawn(struct worker *worker);

/* Return when to call worker_tick(), in machine time; INT64_MAX: never. */
int64_t worker_next_ns(const struct worker *worker);
void worker_tick(struct worker *worker);

/* Return the mark of work that is assigned now. */
struct work_mark worker_mark(const struct worker *worker);

#endif /* WORK_WORKER_H */
