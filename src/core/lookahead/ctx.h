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

/* Lists that a search begins with: the old order, that of rank, of fifo. */
enum lookahead_seed { SEED_OLD, SEED_RANK, SEED_FIFO, LOOKAHEAD_SEEDS };

struct lookahead_seed_list {
    uint32_t *list;
    bool usable; /* each task comes after its needs */
};

struct lookahead_ctx {
    struct lookahead_outline outline;
    struct lookahead_model model;
    struct lookahead_search search;
    struct lookahead_rollout rollout;
    uint32_t *order; /* proposed, per task */
    struct lookahead_seed_list seeds[LOOKAHEAD_SEEDS];
    uint32_t capacity;
    uint32_t run;          /* the run being searched; ID_NONE: none */
    uint64_t token;        /* the last start before the model was built */
    uint32_t judge_budget; /* maximum number of judged lists */
    uint32_t judged_well;  /* lists judged when one was followed last */
    bool exact;            /* the last proposal finished as predicted */
};

#endif /* CORE_LOOKAHEAD_CTX_H */
