/* SPDX-License-Identifier: MIT */
/*
 * lookahead_outline: a model of what is left of a run.
 */
#ifndef CORE_LOOKAHEAD_OUTLINE_H
#define CORE_LOOKAHEAD_OUTLINE_H

#include "core/lookahead/lookahead.h"
#include "core/lookahead/model.h"

/* What is wanted of a pool. */
struct lookahead_pool {
    int64_t demand; /* units of all that is left and in flight, together */
    int64_t kept;   /* of what is in flight */
    int64_t units;  /* that there are, of a scarce pool */
    uint32_t lane;  /* in a vector of units; ID_NONE: it is not scarce */
};

/* Scratch memory; starts as {0}. */
struct lookahead_outline {
    uint32_t *slot;      /* per task: its number in the model, or ID_NONE */
    int64_t *release_ns; /* per task: what is in flight ends then */
    uint32_t task_capacity;
    struct lookahead_pool *pools;
    uint32_t pool_capacity;
};

void lookahead_outline_reserve(struct lookahead_outline *outline,
                               const struct sched *sched);
void lookahead_outline_release(struct lookahead_outline *outline);

/*
 * Make the model, which has room for it. (Uses scratch memory of the
 * scheduler.) False: nothing is left, or more than LOOKAHEAD_TASKS_MAX tasks.
 */
bool lookahead_outline(struct lookahead_outline *outline,
                       struct lookahead_model *model,
                       struct sched *sched,
                       uint32_t run);

/* What is left of a session in flight, by its estimate. */
int64_t lookahead_left_ns(const struct sched *sched, uint32_t leader);

#endif /* CORE_LOOKAHEAD_OUTLINE_H */
