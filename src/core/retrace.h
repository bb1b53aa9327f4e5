/* SPDX-License-Identifier: MIT */
/*
 * retrace: replay of another scheduler's decisions, to query reasons.
 *
 * Tasks are put into their recorded states, in the recorded order; nothing is
 * decided. Units in use, open groups and ready tasks follow by the code of a
 * deciding scheduler, and so do the reasons.
 *
 * A retracing scheduler has no effects: do not call sched_next_effect(). Limits
 * and pauses come as events by sched_apply(). An impossible record does no
 * harm.
 */
#ifndef CORE_RETRACE_H
#define CORE_RETRACE_H

#include "core/why.h"

/* Called for a task whose reason may have changed. */
typedef void (*retrace_fn)(void *ctx, struct task_id task);

/* A plain value. */
struct retrace {
    struct sched *sched;
    retrace_fn changed;
    void *ctx;
};

/* Begin: no task of the scheduler is added yet. */
void retrace_begin(const struct retrace *retrace);

/*
 * Put a task into a state. `leads`: it is the leader of a session that starts.
 * Call retrace_settle() before querying reasons.
 */
void retrace_task(const struct retrace *retrace,
                  int64_t now_ns,
                  struct task_id task,
                  enum task_state state,
                  bool leads);

/* An operator holds a task, or releases it. */
void retrace_hold(const struct retrace *retrace,
                  struct task_id task,
                  bool held);

/* Close idle groups, after all changes of one moment. */
void retrace_settle(const struct retrace *retrace);

/*
 * Return the kind of a task, below retrace_kind_count(): ready tasks of equal
 * kind have equal reasons. The task must be ready and not held.
 */
uint32_t retrace_kind_count(const struct sched *sched);
uint32_t retrace_kind(const struct sched *sched, struct task_id task);

/* Return whether a task in flight is the leader of its session. */
bool retrace_leads(const struct sched *sched, struct task_id task);

#endif /* CORE_RETRACE_H */
