/* SPDX-License-Identifier: MIT */
/*
 * lookahead_search: the order that ends a run soonest, looked for under a
 * budget of schedules.
 *
 * 1. Lists are sampled: at each place a task that could come next is drawn,
 *    the more likely the less time its latest end leaves it (regret-based
 *    biased random sampling, Drexl 1991), and turned into schedules by the
 *    serial and the parallel scheme in turn.
 * 2. Every schedule is justified as long as that shortens it.
 * 3. The best lists are kept. From then on two of them are crossed (Hartmann
 *    1998: a part of one, a part of the other, the rest of the first) and the
 *    child is disturbed a little; if it is better than the worst that is kept,
 *    it takes its place. When nothing new comes any more, all but the best are
 *    sampled anew.
 *
 * 4. Where the model is not all there is, the lists that are kept are judged
 *    again by someone who knows better, and so are the children from then on.
 *
 * It ends when the budget is spent, or when a schedule is as short as any can
 * be. Chance comes from the seed: equal models and seeds give equal lists.
 *
 * 1. lookahead_search_begin(); 2. lookahead_search_step() while it returns
 * true; 3. what is best so far is there after each step.
 */
#ifndef CORE_LOOKAHEAD_SEARCH_H
#define CORE_LOOKAHEAD_SEARCH_H

#include "base/rng.h"
#include "core/lookahead/sgs.h"

/* Lists that are kept at most: one for so many schedules of the budget. */
enum { LOOKAHEAD_ELITES = 80, LOOKAHEAD_ELITE_BUDGET = 50 };

struct lookahead_elite {
    int64_t end_ns;
    int64_t sum_ns; /* of all starts: decides between equal ends */
};

/* When a run would end by a list; SCHED_NEVER: it cannot be said. */
typedef int64_t (*lookahead_judge_fn)(void *ctx, const uint32_t *list);

/* Starts as {0}. */
struct lookahead_search {
    struct lookahead_sgs sgs;
    struct rng rng;
    uint32_t *lists; /* one of `stride` places for each elite */
    uint32_t stride;
    struct lookahead_elite elites[LOOKAHEAD_ELITES];
    uint32_t elite_count;
    uint32_t elite_max;
    uint32_t best;    /* elite */
    uint32_t spent;   /* schedules */
    uint32_t budget;  /* schedules */
    uint32_t samples; /* drawn so far */
    uint32_t idle;    /* children in a row that were not kept */
    uint32_t judged;  /* lists that someone else has judged */
    /* Scratch. */
    uint32_t *list;
    uint32_t *eligible;
    uint32_t *marks;
    int64_t *start_ns;
};

void lookahead_search_reserve(struct lookahead_search *search,
                              uint32_t tasks,
                              uint32_t busy);
void lookahead_search_release(struct lookahead_search *search);

/*
 * Begin a search in a model, which is borrowed until the next begin. `first`
 * is a list to begin with (the plan there was), or NULL.
 */
void lookahead_search_begin(struct lookahead_search *search,
                            const struct lookahead_model *model,
                            uint64_t seed,
                            uint32_t budget,
                            const uint32_t *first);

/* Look at one more list; false when the search is over. */
bool lookahead_search_step(struct lookahead_search *search);

/*
 * Judge what is kept again, and one more list of that kind: in the order of
 * calls, first what is kept, then children. False when `budget` lists have
 * been judged since the search began.
 */
bool lookahead_search_judge(struct lookahead_search *search,
                            uint32_t budget,
                            lookahead_judge_fn judge,
                            void *ctx);

/* The best list so far and when its schedule ends. */
const uint32_t *lookahead_search_list(const struct lookahead_search *search,
                                      int64_t *end_ns_out);

#endif /* CORE_LOOKAHEAD_SEARCH_H */
