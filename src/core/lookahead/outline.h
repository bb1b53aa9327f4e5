/* SPDX-License-Identifier: MIT */
/*
 * lookahead_outline: construction of a model of a run's remaining work.
 */
#ifndef CORE_LOOKAHEAD_OUTLINE_H
#define CORE_LOOKAHEAD_OUTLINE_H

#include "core/lookahead/lookahead.h"
#include "core/lookahead/model.h"

/* Demand for a pool. */
struct lookahead_pool {
    int64_t demand; /* units of all remaining tasks and sessions in flight */
    int64_t kept;   /* units of the sessions in flight */
    int64_t units;  /* total units, of a scarce pool */
    uint32_t lane;  /* in a vector of units; ID_NONE: not scarce */
};

/* Scratch memory; starts as {0}. */
struct lookahead_outline {
    uint32_t *slot;      /* per task: its number in the model, or ID_NONE */
    int64_t *release_ns; /* per task: when its needs in flight finish */
    uint32_t task_capacity;
    uint32_t *group; /* per declared group: its number in the model */
    uint32_t group_capacity;
    struct lookahead_pool *pools;
    uint32_t pool_capacity;
};

void lookahead_outline_reserve(struct lookahead_outline *outline,
                               const struct sched *sched);
void lookahead_outline_release(struct lookahead_outline *outline);

/*
 * Build the model, whose memory is reserved. (Uses scratch memory of the
 * scheduler.) False: no task is left, or more than LOOKAHEAD_TASKS_MAX.
 */
bool lookahead_outline(struct lookahead_outline *outline,
                       struct lookahead_model *model,
                       struct sched *sched,
                       uint32_t run);

/* Return the estimated remaining time of a session in flight. */
int64_t lookahead_left_ns(const struct sched *sched, uint32_t leader);

#endif /* CORE_LOOKAHEAD_OUTLINE_H */
