/* SPDX-License-Identifier: MIT */
/*
 * lookahead_model: the remaining work of a run, reduced for the search.
 *
 * It has the tasks that have not started, with their lengths and needs; the
 * units each uses of scarce pools; the units that sessions in flight use, and
 * until when. Times count from now. Each task has a higher number than its
 * needs.
 *
 * Units of up to four scarce pools share one word, 15 bits and a guard bit
 * each, so that one subtraction compares them all.
 *
 * It omits rules that schedules seldom depend on (tiers, deferral, batches,
 * which task keeps a group open): a schedule of the model is a proposal, which
 * the scheduler's own code judges (rollout.c).
 *
 * Public, so that tests can create one by hand; starts as {0}.
 */
#ifndef CORE_LOOKAHEAD_MODEL_H
#define CORE_LOOKAHEAD_MODEL_H

#include "core/ids.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LOOKAHEAD_LANES = 4,     /* pools in a word */
    LOOKAHEAD_WORDS_MAX = 4, /* words of a vector of units */
    LOOKAHEAD_UNITS_MAX = 32767,
    LOOKAHEAD_TASKS_MAX = 2048 /* larger runs have no model: see lookahead.c */
};

/* The guard bit of each lane. */
#define LOOKAHEAD_GUARDS UINT64_C(0x8000800080008000)

/* Units in use from now until a time. */
struct lookahead_busy {
    int64_t until_ns;
    uint64_t units[LOOKAHEAD_WORDS_MAX];
};

struct lookahead_model {
    uint32_t count;
    uint32_t words;                     /* used words of each vector */
    uint64_t pool[LOOKAHEAD_WORDS_MAX]; /* total units */

    uint32_t *task;       /* index in the scheduler */
    int64_t *length_ns;   /* at least 1 */
    int64_t *release_ns;  /* earliest start: after needs in flight and
                             back-off */
    int64_t *tail_ns;     /* longest path from its start to the end */
    uint64_t *units;      /* `words` per task */
    uint32_t *group;      /* of each task; numbered from 0 */
    uint32_t *first_need; /* count + 1; into `needs` */
    uint32_t *needs;
    uint32_t *first_dependent; /* count + 1; into `dependents` */
    uint32_t *dependents;
    struct lookahead_busy *busy;
    uint32_t busy_count;

    uint32_t group_count;
    uint64_t least[LOOKAHEAD_WORDS_MAX]; /* units that every task uses */
    int64_t bound_ns;                    /* no schedule is shorter */
    uint32_t capacity;
    uint32_t edge_capacity;
    uint32_t busy_capacity;
};

/* Reserve memory for these numbers of tasks, needs and sessions in flight. */
void lookahead_model_reserve(struct lookahead_model *model,
                             uint32_t tasks,
                             uint32_t edges,
                             uint32_t busy);

/* Free the memory. */
void lookahead_model_release(struct lookahead_model *model);

/*
 * Compute the dependents, the tails, the least units and the bound from tasks,
 * lengths, releases, units and needs.
 */
void lookahead_model_finish(struct lookahead_model *model);

/* Return whether these units are free. */
static inline bool lookahead_fits(const struct lookahead_model *model,
                                  const uint64_t *free,
                                  const uint64_t *units)
{
    uint64_t left = LOOKAHEAD_GUARDS;
    for (uint32_t ix = 0; ix < model->words; ix++) {
        left &= (free[ix] | LOOKAHEAD_GUARDS) - units[ix];
    }
    return left == LOOKAHEAD_GUARDS;
}

#endif /* CORE_LOOKAHEAD_MODEL_H */
