/* SPDX-License-Identifier: MIT */
/*
 * lookahead_mind: all that thinking needs, one for all runs of a scheduler.
 */
#ifndef CORE_LOOKAHEAD_MIND_H
#define CORE_LOOKAHEAD_MIND_H

#include "core/lookahead_ghost.h"
#include "core/lookahead_outline.h"
#include "core/lookahead_search.h"

/* More tasks than that in a scheduler, and rank decides. */
enum { LOOKAHEAD_MIND_MAX = 1 << 16 };

struct lookahead_mind {
    struct lookahead_outline outline;
    struct lookahead_model model;
    struct lookahead_search search;
    struct lookahead_ghost ghost;
    uint32_t *order; /* proposed, per task */
    uint32_t *first; /* list to begin a search with */
    uint32_t capacity;
    uint32_t run;          /* that is being thought about; ID_NONE: none is */
    uint32_t judge_budget; /* lists to run ahead with */
    bool exact;            /* what was proposed last ended as promised */
};

#endif /* CORE_LOOKAHEAD_MIND_H */
