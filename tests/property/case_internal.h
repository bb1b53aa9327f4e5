/* SPDX-License-Identifier: MIT */
/*
 * A case while it runs: what case_plan.c, which draws its plan, and case.c,
 * which draws what happens then, share.
 */
#ifndef TESTS_PROPERTY_CASE_INTERNAL_H
#define TESTS_PROPERTY_CASE_INTERNAL_H

#include "base/rng.h"
#include "tests/property/case.h"
#include "tests/property/ledger.h"

#define SECOND INT64_C(1000000000)

/* The limits of a run; some have a number or a percentage of the first. */
enum {
    LIMIT_SESSIONS,
    LIMIT_ISSUES,
    LIMIT_ACTIVE,
    LIMIT_MERGE,
    LIMIT_REVIEW,
    LIMIT_TOOLS,
    LIMIT_OWNER,
    LIMIT_BACKGROUND,
    LIMIT_GROUPS,
    LIMITS_PER_RUN,
};

struct world {
    struct case_recipe recipe;
    struct rng rng;
    struct model *model;
    struct sched *sched;
    struct sched *twin; /* the same again, to see that effects are equal */
    struct ledger *ledger;
    int64_t now_ns;
    uint32_t first_limit[MODEL_RUNS]; /* index in the scheduler */
    bool was_quiet[MODEL_RUNS];
    uint32_t group_count;          /* declared groups in the scheduler */
    uint32_t groups[MODEL_GROUPS]; /* theirs in the model */
    bool alike;   /* most tasks are of one kind: long queues, and batches */
    bool mixed;   /* work is added to all runs, not to the last one */
    bool calm;    /* no more chaos: all sessions end well */
    bool verbose; /* say at once what happens: the end may be a crash */
    struct strbuf log; /* what happened, for a person */
};

static inline bool has(const struct world *w, enum case_feature feature)
{
    return (w->recipe.features & (unsigned)feature) != 0;
}

static inline uint32_t below(struct world *w, uint32_t bound)
{
    return rng_below(&w->rng, bound);
}

static inline bool chance(struct world *w, uint32_t percent)
{
    return below(w, 100) < percent;
}

/* Say what is wrong, and all that happened before; end the process. */
_Noreturn void case_complain(const struct world *w, const char *what);

/* Draw what a case has from the beginning, for all schedulers and the model. */
void case_draw_providers(struct world *w);
void case_draw_classes(struct world *w);
void case_draw_run(struct world *w);

/* Draw and add up to `count` tasks; a plan that makes no sense is refused. */
void case_draw_addition(struct world *w, uint32_t run, uint32_t count);

#endif /* TESTS_PROPERTY_CASE_INTERNAL_H */
