/* SPDX-License-Identifier: MIT */
/*
 * lookahead_ctx: state of the search, shared by all runs of a scheduler.
 */
#ifndef CORE_LOOKAHEAD_CTX_H
#define CORE_LOOKAHEAD_CTX_H

#include "core/lookahead/outline.h"
#include "core/lookahead/rollout.h"
#include "core/lookahead/search.h"

/* With more tasks in a scheduler than this, rank decides. */
enum { LOOKAHEAD_CTX_MAX = 1 << 16 };

struct lookahead_ctx {
    struct lookahead_outline outline;
    struct lookahead_model model;
    struct lookahead_search search;
    struct lookahead_rollout rollout;
    uint32_t *order; /* proposed, per task */
    uint32_t *first; /* list to begin a search with */
    uint32_t capacity;
    uint32_t run;          /* the run being planned; ID_NONE: none */
    uint32_t judge_budget; /* lists to run ahead with */
    bool exact;            /* what was proposed last ended as promised */
};

#endif /* CORE_LOOKAHEAD_CTX_H */
