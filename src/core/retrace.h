/* SPDX-License-Identifier: MIT */
/*
 * retrace: follow what another scheduler has decided, to ask for reasons.
 *
 * Tasks are put into the states that were recorded, in the recorded order, and
 * nothing is decided. Units in use, open groups and ready tasks follow by the
 * code that a deciding scheduler has, and so do the reasons.
 *
 * A scheduler that retraces gives no effects: sched_next_effect() must not be
 * called. Limits and pauses come as events by sched_apply(). A record that no
 * scheduler can have made does no harm.
 */
#ifndef CORE_RETRACE_H
#define CORE_RETRACE_H

#include "core/why.h"

/* Called for a task whose reason may have become another one. */
typedef void (*retrace_fn)(void *ctx, struct task_id task);

/* A plain value. */
struct retrace {
    struct sched *sched;
    retrace_fn changed;
    void *ctx;
};

/* Begin: no task of the scheduler is there yet. */
void retrace_begin(const struct retrace *retrace);

/*
 * A task came to a state. `leads`: it is the first of a session that starts.
 * Then call retrace_settle() before reasons are asked for.
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

/* All that happened at this moment is there: close idle groups. */
void retrace_settle(const struct retrace *retrace);

/*
 * Ready tasks of equal kind have equal reasons. Kinds are numbers below
 * retrace_kind_count(); the task must be ready and not held.
 */
uint32_t retrace_kind_count(const struct sched *sched);
uint32_t retrace_kind(const struct sched *sched, struct task_id task);

/* Whether a task in flight is the first of its session. */
bool retrace_leads(const struct sched *sched, struct task_id task);

#endif /* CORE_RETRACE_H */
