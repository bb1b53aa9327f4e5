/* SPDX-License-Identifier: MIT */
/*
 * snapshot: what an engine holds at one moment, with the reason of each task.
 *
 * The reasons are those of the core, asked once for all tasks. The engine of a
 * scheduler is asked as it is, between two passes. That of a reader
 * (client_look) has taken no pass yet, so nobody waits at a limit and nothing
 * is reserved in it: here it takes one, as the scheduler would, and what that
 * turn starts is shown as ready and startable. So both give the same reasons.
 *
 * Tasks are named as in the engine: index of the run, index in its plan.
 */
#ifndef VIEW_SNAPSHOT_H
#define VIEW_SNAPSHOT_H

#include "engine/engine.h"
#include "view/reasons.h"

struct snapshot;

/*
 * Look at the engine. `is_reader`: nobody schedules by it, and a pass of its
 * core is taken for good. The snapshot borrows the engine.
 */
struct snapshot *snapshot_new(struct engine *engine, bool is_reader);

/* Free it. NULL is allowed. */
void snapshot_free(struct snapshot *snapshot);

/* Tasks of a run in a state, as snapshot_state() says. */
uint32_t snapshot_count(const struct snapshot *snapshot,
                        uint32_t run,
                        enum task_state state);

/* Units of a limit of the run's plan that were in use. */
int64_t
snapshot_used(const struct snapshot *snapshot, uint32_t run, uint32_t limit);

/* State of a task; what would start now is ready. */
enum task_state
snapshot_state(const struct snapshot *snapshot, uint32_t run, uint32_t task);

/* Why it does not run. The names are borrowed from the engine. */
struct reason
snapshot_reason(const struct snapshot *snapshot, uint32_t run, uint32_t task);

/* Whether a person must act on the task itself before anything happens. */
bool snapshot_needs_person(const struct snapshot *snapshot,
                           uint32_t run,
                           uint32_t task);

/* The task that the reason names; false: it names none. */
bool snapshot_cause(const struct snapshot *snapshot,
                    uint32_t run,
                    uint32_t task,
                    uint32_t *run_out,
                    uint32_t *task_out);

/*
 * How long the run will still take, by estimates: the longest path left, or
 * all work left divided by the cap, whichever is more. What waits for a
 * person does not count. SCHED_NEVER: it cannot go on (the cap is 0).
 */
int64_t snapshot_left_ns(const struct snapshot *snapshot,
                         uint32_t run,
                         int64_t wall_ns);

#endif /* VIEW_SNAPSHOT_H */
