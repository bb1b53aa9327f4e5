/* SPDX-License-Identifier: MIT */
/*
 * lookahead_rollout: a copy of the scheduler that runs ahead of the real one.
 *
 * It runs the scheduler's own code on copies of the mutable state (constant
 * state is shared), with sessions that take as long as estimated and succeed.
 * So all rules apply to a proposal, as in the simulator.
 */
#ifndef CORE_LOOKAHEAD_ROLLOUT_H
#define CORE_LOOKAHEAD_ROLLOUT_H

#include "core/lookahead/lookahead.h"

/* Mutable state: array, its length, its capacity. */
#define ROLLOUT_COPIED(PART)                                                   \
    PART(tasks, task_count, task_capacity)                                     \
    PART(details, task_count, task_capacity)                                   \
    PART(unmet, task_count, task_capacity)                                     \
    PART(in_flight, in_flight_count, task_capacity)                            \
    PART(marks, task_count, task_capacity)                                     \
    PART(groups, group_count, group_capacity)                                  \
    PART(more, group_count, group_capacity)                                    \
    PART(bins, bin_count, bin_capacity)                                        \
    PART(queue_links, queue_count, queue_capacity)                             \
    PART(providers, provider_count, provider_count)                            \
    PART(runs, run_count, run_count)                                           \
    PART(scopes, scope_count, scope_capacity)                                  \
    PART(limits.limits, limits.limit_count, limits.limit_capacity)             \
    PART(limits.counters, limits.counter_count, limits.counter_capacity)       \
    PART(limits.pools, limits.pool_count, limits.pool_capacity)                \
    PART(limits.pool_links, limits.pool_count, limits.pool_capacity)

/* Mutable state that may be NULL: array per task. */
#define ROLLOUT_OPTIONAL(PART)                                                 \
    PART(times)                                                                \
    PART(lend_links)

/* Scratch memory, written before it is read. */
#define ROLLOUT_SCRATCH(PART)                                                  \
    PART(stack)                                                                \
    PART(list)                                                                 \
    PART(doubts)

/* An expected exit of a session. */
struct lookahead_ending {
    int64_t at_ns;
    uint64_t token;
    uint32_t task;
};

/* Starts as {0}. */
struct lookahead_rollout {
    struct sched sched;
    struct lookahead lookahead;
    int64_t real_ns;                  /* when it began */
    struct lookahead_ending *endings; /* heap */
    uint32_t ending_count;
    uint32_t *started;  /* in this pass */
    int64_t *start_ns;  /* per task: when it started; SCHED_NEVER: it did not */
    uint32_t *sequence; /* tasks of the run in the order of their starts */
    uint32_t sequence_count;
    int64_t *group_end_ns; /* per declared group: when a task of it finished */
    uint32_t group_capacity;
    uint32_t capacity;
};

/* Reserve memory for the state of `real`. */
void lookahead_rollout_reserve(struct lookahead_rollout *rollout,
                               const struct sched *real);
void lookahead_rollout_release(struct lookahead_rollout *rollout);
size_t lookahead_rollout_bytes(const struct lookahead_rollout *rollout);

/*
 * Run ahead from the state of `real`, with this order for the run. Return how
 * the run finishes; rollout->start_ns then has the start of each task, and
 * rollout->sequence the tasks of the run that started.
 */
struct lookahead_finish lookahead_rollout_run(struct lookahead_rollout *rollout,
                                              const struct sched *real,
                                              uint32_t run,
                                              struct lookahead_order order);

#endif /* CORE_LOOKAHEAD_ROLLOUT_H */
