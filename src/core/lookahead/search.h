/* SPDX-License-Identifier: MIT */
/*
 * lookahead_search: search for the shortest schedule, within a budget of
 * candidate schedules.
 *
 * 1. Sample lists: at each place draw an eligible task, the more likely the
 *    more urgent it is (regret-based biased random sampling, Drexl 1991), and
 *    turn the list into a schedule by the serial or the parallel scheme,
 *    alternately.
 * 2. Justify every schedule while that shortens it.
 * 3. Keep the best lists (elites). From then on cross two of them (Hartmann
 *    1998: a part of one, a part of the other, the rest of the first) and
 *    mutate the child a little; if it is better than the worst elite, it
 *    replaces that. When no child is kept for long, sample all but the best
 *    again.
 *    Lists of equal length: the one whose groups finish earlier.
 * 4. If the model is not exact, a callback with the exact rules judges the
 *    elites again, and all further children.
 *
 * The search stops when the budget is spent, or when a schedule reaches the
 * lower bound. Random numbers come from the seed: equal models and seeds give
 * equal lists.
 *
 * Use: lookahead_search_begin(), then lookahead_search_step() while it returns
 * true. The best list so far is available after each step.
 */
#ifndef CORE_LOOKAHEAD_SEARCH_H
#define CORE_LOOKAHEAD_SEARCH_H

#include "base/rng.h"
#include "core/lookahead/sgs.h"

/* Maximum number of elites; schedules of the budget per elite. */
enum { LOOKAHEAD_ELITES = 80, LOOKAHEAD_ELITE_BUDGET = 50 };

/* Tasks in the lists of all elites at most; long lists have fewer elites. */
enum { LOOKAHEAD_PLACES = LOOKAHEAD_ELITES * 512 };

struct lookahead_elite {
    int64_t end_ns;
    int64_t sum_ns; /* of the ends of all groups, in 1,024 ns */
};

struct lookahead_search_spec {
    uint64_t seed;
    uint32_t budget;       /* schedules */
    const uint32_t *first; /* initial list; NULL: by rank */
    bool greedy;           /* no task waits for another that does not fit yet */
    bool many; /* groups finish early in the mean; schedules may be longer
                  than the shortest by 1/LOOKAHEAD_SLACK */
};

enum { LOOKAHEAD_SLACK = 20 };

/* Return how a run would finish by a list. */
typedef struct lookahead_elite (*lookahead_judge_fn)(void *ctx,
                                                     const uint32_t *list);

/* Starts as {0}. */
struct lookahead_search {
    struct lookahead_sgs sgs;
    struct rng rng;
    uint32_t *lists; /* one for each elite */
    uint32_t stride; /* tasks at most */
    uint32_t place_count;
    struct lookahead_elite elites[LOOKAHEAD_ELITES];
    uint32_t elite_count;
    uint32_t elite_max;
    uint32_t best;     /* index of an elite */
    uint32_t spent;    /* schedules */
    uint32_t budget;   /* schedules */
    uint32_t samples;  /* drawn so far */
    uint32_t idle;     /* children in a row that were not kept */
    uint32_t judged;   /* lists judged by the callback */
    uint32_t improved; /* schedules spent when the best one was found */
    int64_t shortest_ns;
    bool greedy;
    bool many;
    /* Scratch. */
    int64_t *group_ns;
    uint32_t *list;
    uint32_t *eligible;
    uint32_t *marks;
    int64_t *start_ns;
};

void lookahead_search_reserve(struct lookahead_search *search,
                              uint32_t tasks,
                              uint32_t busy);
void lookahead_search_release(struct lookahead_search *search);

/* Begin a search in a model, which is borrowed until the next begin. */
void lookahead_search_begin(struct lookahead_search *search,
                            const struct lookahead_model *model,
                            const struct lookahead_search_spec *spec);

/* Try this list, too. */
void lookahead_search_offer(struct lookahead_search *search,
                            const uint32_t *list);

/* Allow this many schedules in all. */
void lookahead_search_extend(struct lookahead_search *search, uint32_t budget);

/* Try one more list; return false if the search is finished. */
bool lookahead_search_step(struct lookahead_search *search);

/*
 * Judge one more list: first each elite, then children. Return false when
 * `budget` lists have been judged since the search began.
 */
bool lookahead_search_judge(struct lookahead_search *search,
                            uint32_t budget,
                            lookahead_judge_fn judge,
                            void *ctx);

/* Return the best list so far and the length of its schedule. */
const uint32_t *lookahead_search_list(const struct lookahead_search *search,
                                      int64_t *end_ns_out);

#endif /* CORE_LOOKAHEAD_SEARCH_H */
