/* SPDX-License-Identifier: MIT */
/*
 * snapshot: the state of an engine at one moment, with the reason of each task.
 *
 * The core computes the reasons, once for all tasks. A scheduler's engine is
 * read unchanged, between two passes. A reader's engine (client_look) has not
 * taken a pass, so no task waits at a limit and no capacity is reserved: the
 * snapshot takes one as the scheduler would, and shows the tasks that it starts
 * as ready and startable. So both give the same reasons.
 *
 * Tasks are named as in the engine: index of the run, index in its plan.
 */
#ifndef VIEW_SNAPSHOT_H
#define VIEW_SNAPSHOT_H

#include "engine/engine.h"
#include "view/reasons.h"

struct snapshot;

/*
 * Take a snapshot. `is_reader`: no scheduler uses the engine, so a pass of its
 * core is taken and not undone. The snapshot borrows the engine.
 */
struct snapshot *snapshot_new(struct engine *engine, bool is_reader);

/* Free it. NULL is allowed. */
void snapshot_free(struct snapshot *snapshot);

/* Number of tasks of a run in a state, by snapshot_state(). */
uint32_t snapshot_count(const struct snapshot *snapshot,
                        uint32_t run,
                        enum task_state state);

/* Tasks of a run that wait for a time or for approval. */
struct snapshot_pending {
    uint32_t snoozed;
    uint32_t early;      /* before their `not_before` */
    uint32_t unapproved; /* ready, and not approved */
};
struct snapshot_pending snapshot_pending(const struct snapshot *snapshot,
                                         uint32_t run);

/* Return the task whose failure has stopped a stopped run; PLAN_NONE: none, or
 * it is not known any more. */
uint32_t snapshot_stopper(const struct snapshot *snapshot, uint32_t run);

/* Units of a limit of the run's plan in use. */
int64_t
snapshot_used(const struct snapshot *snapshot, uint32_t run, uint32_t limit);

/* State of a task; a task that would start now is ready. */
enum task_state
snapshot_state(const struct snapshot *snapshot, uint32_t run, uint32_t task);

/* Why a task is not running. The names are borrowed from the engine. */
struct reason
snapshot_reason(const struct snapshot *snapshot, uint32_t run, uint32_t task);

/* Whether the task itself needs an operator: it is parked, failed or revoked,
 * or waits for approval. */
bool snapshot_needs_person(const struct snapshot *snapshot,
                           uint32_t run,
                           uint32_t task);

/* Get the task that the reason names; false if it names none. */
bool snapshot_cause(const struct snapshot *snapshot,
                    uint32_t run,
                    uint32_t task,
                    uint32_t *run_out,
                    uint32_t *task_out);

/*
 * Estimate the remaining time of the run: the longest path left, or all work
 * left divided by the cap, whichever is more. Tasks that need an operator do
 * not count. SCHED_NEVER: the cap is 0.
 */
int64_t snapshot_left_ns(const struct snapshot *snapshot,
                         uint32_t run,
                         int64_t wall_ns);

#endif /* VIEW_SNAPSHOT_H */
