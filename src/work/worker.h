/* SPDX-License-Identifier: MIT */
/*
 * worker: runs what a scheduler orders, on the machine where it is.
 *
 * A worker looks into attempt directories, has shims start sessions, adopts
 * what an earlier worker has started, fences what must not start any more, and
 * kills what a dead shim has left. It decides nothing: it reports what it
 * finds, and the scheduler draws the conclusions.
 *
 * It keeps nothing that could not be found again: directories are the truth.
 * So it may die at any instruction. A scheduler that asks the next worker for
 * the same work gets the same report, and work that is ordered twice runs once.
 *
 * Nothing here blocks. A report may come from within any call. After the end of
 * some work is reported (ENDED, REFUSED, LOST, UNKNOWN) the worker has
 * forgotten it. The strings of options are copied; the table
 * and the place are borrowed.
 */
#ifndef WORK_WORKER_H
#define WORK_WORKER_H

#include "store/place.h"
#include "work/machine.h"
#include "work/order.h"
#include "work/report.h"

struct worker_options {
    const struct work_machine *machine;
    void *ctx;                       /* of the machine */
    const struct store_place *place; /* of the store */
    const char *git;                 /* path of sluice-git */
    const char *agent;               /* path of sluice-agent */
    const char *boot_id;             /* present one */
    work_report_fn report;
    void *link; /* of the reports */
};

struct worker;

/* Create a worker without work; end it with worker_free(). */
struct worker *worker_new(const struct worker_options *options);

/* Free it; sessions are not touched. NULL is allowed. */
void worker_free(struct worker *worker);

/*
 * Start what is ordered; a program that has been started before is taken over
 * instead. With a `want` other than WORK_RUN: see that it never starts.
 */
void worker_assign(struct worker *worker, const struct work_order *order);

/*
 * Find out what became of work that was assigned before, by whomever: take it
 * over, or report its end. `mark` is the last one that was reported, or that
 * of the worker when it was assigned. `begun`: it was reported as started.
 */
void worker_ask(struct worker *worker,
                const struct work_id *id,
                const struct work_mark *mark,
                bool begun,
                enum work_want want);

/* End some work, now or as soon as it has started. Nothing if it is not
 * known here: then its end was reported. */
void worker_want(struct worker *worker, uint64_t token, enum work_want want);

/* The end of a program's call is recorded: remove its directory. */
void worker_forget(struct worker *worker, const struct work_id *id);

/* The spawn server reports; a shim that is watched has ended; there is another
 * spawn server in place of one that died. */
void worker_reported(struct worker *worker, const struct exec_report *report);
void worker_gone(struct worker *worker, uint64_t token);
void worker_respawn(struct worker *worker);

/* When to call worker_tick(), on the machine's clock; INT64_MAX: not. */
int64_t worker_next_ns(const struct worker *worker);
void worker_tick(struct worker *worker);

/* The mark of work that is assigned to it now. */
struct work_mark worker_mark(const struct worker *worker);

#endif /* WORK_WORKER_H */
