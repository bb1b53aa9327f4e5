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
    uint32_t *first; /* initial list of a search */
    uint32_t capacity;
    uint32_t run;          /* the run being searched; ID_NONE: none */
    uint32_t judge_budget; /* maximum number of judged lists */
    bool exact;            /* the last proposal finished as predicted */
};

#endif /* CORE_LOOKAHEAD_CTX_H */
