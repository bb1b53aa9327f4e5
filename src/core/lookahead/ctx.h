/* SPDX-License-Identifier: MIT */
/*
 * lookahead_ctx: all that thinking needs, one for all runs of a scheduler.
 */
#ifndef CORE_LOOKAHEAD_CTX_H
#define CORE_LOOKAHEAD_CTX_H

#include "core/lookahead/outline.h"
#include "core/lookahead/rollout.h"
#include "core/lookahead/search.h"

/* More tasks than that in a scheduler, and rank decides. */
enum { LOOKAHEAD_CTX_MAX = 1 << 16 };

struct lookahead_ctx {
    struct lookahead_outline outline;
    struct lookahead_model model;
    struct lookahead_search search;
    struct lookahead_rollout rollout;
    uint32_t *order; /* proposed, per task */
    uint32_t *first; /* list to begin a search with */
    uint32_t capacity;
    uint32_t run;          /* that is being thought about; ID_NONE: none is */
    uint32_t judge_budget; /* lists to run ahead with */
    bool exact;            /* what was proposed last ended as promised */
};

#endif /* CORE_LOOKAHEAD_CTX_H */
