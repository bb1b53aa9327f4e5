/* SPDX-License-Identifier: MIT */
#include "core/lookahead/search.h"

#include "base/invariant.h"

#include <string.h>

/* Restart the search after this many children in a row that were not kept. */
enum { PATIENCE = 150 };

/* Minimum number of lists kept. */
enum { ELITES_MIN = 8 };

/* Draw from at most this many tasks, to bound the cost. */
enum { DRAWN = 64 };

/* One in this many pairs of neighbours in a child is swapped. */
enum { MUTATION = 20 };

/* ---- lists ---- */

/* Urgency of a task: the length of the work after it, or including it. */
static int64_t
urgency(const struct lookahead_search *search, uint32_t task, bool own)
{
    const struct lookahead_model *model = search->sgs.model;
    return own ? model->tail_ns[task]
               : model->tail_ns[task] - model->length_ns[task];
}

/* Move some random eligible tasks, at most DRAWN, to the front. */
static uint32_t shuffle(struct lookahead_search *search, uint32_t count)
{
    if (count <= DRAWN) {
        return count;
    }
    for (uint32_t ix = 0; ix < DRAWN; ix++) {
        uint32_t other = ix + rng_below(&search->rng, count - ix);
        uint32_t task = search->eligible[ix];
        search->eligible[ix] = search->eligible[other];
        search->eligible[other] = task;
    }
    return DRAWN;
}

/* Draw one of the eligible tasks, urgent ones more likely. */
static uint32_t draw(struct lookahead_search *search, uint32_t count, bool own)
{
    INVARIANT(count > 0);
    enum { STEPS = 32 };
    int64_t least = INT64_MAX;
    int64_t most = 0;
    for (uint32_t ix = 0; ix < count; ix++) {
        int64_t value = urgency(search, search->eligible[ix], own);
        least = value < least ? value : least;
        most = value > most ? value : most;
    }
    int64_t step = (most - least) / STEPS + 1;
    uint64_t sum = 0;
    uint32_t drawn = 0;
    for (uint32_t ix = 0; ix < count; ix++) {
        int64_t value = urgency(search, search->eligible[ix], own);
        uint64_t weight = (uint64_t)((value - least) / step) + 1;
        weight *= weight;
        sum += weight;
        /* Weighted reservoir sampling. */
        if (rng_next(&search->rng) % sum < weight) {
            drawn = ix;
        }
    }
    return drawn;
}

static void sample(struct lookahead_search *search)
{
    const struct lookahead_model *model = search->sgs.model;
    bool own = search->samples / 2 % 2 == 0;
    uint32_t eligible = 0;
    for (uint32_t ix = 0; ix < model->count; ix++) {
        search->marks[ix] = model->first_need[ix + 1] - model->first_need[ix];
        if (search->marks[ix] == 0) {
            search->eligible[eligible++] = ix;
        }
    }
    for (uint32_t place = 0; place < model->count; place++) {
        uint32_t ix = draw(search, shuffle(search, eligible), own);
        uint32_t task = search->eligible[ix];
        search->list[place] = task;
        search->eligible[ix] = search->eligible[--eligible];
        for (uint32_t edge = model->first_dependent[task];
             edge < model->first_dependent[task + 1];
             edge++) {
            uint32_t dependent = model->dependents[edge];
            INVARIANT(search->marks[dependent] > 0);
            if (--search->marks[dependent] == 0) {
                search->eligible[eligible++] = dependent;
            }
        }
    }
    INVARIANT(eligible == 0);
}

static uint32_t *list_of(const struct lookahead_search *search, uint32_t elite)
{
    return &search->lists[(size_t)elite * search->sgs.model->count];
}

static bool is_better(const struct lookahead_search *search,
                      struct lookahead_elite a,
                      struct lookahead_elite b)
{
    if (search->many) {
        int64_t most_ns =
            search->shortest_ns + search->shortest_ns / LOOKAHEAD_SLACK;
        if (a.end_ns <= most_ns && b.end_ns <= most_ns) {
            return a.sum_ns != b.sum_ns ? a.sum_ns < b.sum_ns
                                        : a.end_ns < b.end_ns;
        }
    }
    return a.end_ns != b.end_ns ? a.end_ns < b.end_ns : a.sum_ns < b.sum_ns;
}

/* Return the worst elite. */
static uint32_t find_worst(const struct lookahead_search *search)
{
    uint32_t worst = 0;
    for (uint32_t ix = 1; ix < search->elite_count; ix++) {
        if (is_better(search, search->elites[worst], search->elites[ix])) {
            worst = ix;
        }
    }
    return worst;
}

/* Return the better of two random elites. */
static uint32_t choose(struct lookahead_search *search)
{
    uint32_t a = rng_below(&search->rng, search->elite_count);
    uint32_t b = rng_below(&search->rng, search->elite_count);
    return is_better(search, search->elites[a], search->elites[b]) ? a : b;
}

/* Append tasks of `from` that are not in the list yet, up to place `until`. */
static uint32_t append(struct lookahead_search *search,
                       const uint32_t *from,
                       uint32_t place,
                       uint32_t until)
{
    for (uint32_t ix = 0; place < until; ix++) {
        INVARIANT(ix < search->sgs.model->count);
        if (search->marks[from[ix]] == 0) {
            search->marks[from[ix]] = 1;
            search->list[place++] = from[ix];
        }
    }
    return place;
}

/* Return whether a task directly needs another task. */
static bool
needs(const struct lookahead_model *model, uint32_t task, uint32_t other)
{
    for (uint32_t edge = model->first_need[task];
         edge < model->first_need[task + 1];
         edge++) {
        if (model->needs[edge] == other) {
            return true;
        }
    }
    return false;
}

/* Swap some neighbours that are independent. */
static void disturb(struct lookahead_search *search)
{
    const struct lookahead_model *model = search->sgs.model;
    for (uint32_t ix = 0; ix + 1 < model->count; ix++) {
        uint32_t task = search->list[ix];
        uint32_t next = search->list[ix + 1];
        if (rng_below(&search->rng, MUTATION) == 0 &&
            !needs(model, next, task)) {
            search->list[ix] = next;
            search->list[ix + 1] = task;
        }
    }
}

/* Cross two lists: needs precede in the child as in both parents. */
static void cross(struct lookahead_search *search)
{
    uint32_t count = search->sgs.model->count;
    const uint32_t *mother = list_of(search, choose(search));
    const uint32_t *father = list_of(search, choose(search));
    uint32_t from = rng_below(&search->rng, count);
    uint32_t until = from + rng_below(&search->rng, count - from) + 1;
    memset(search->marks, 0, count * sizeof(search->marks[0]));
    uint32_t place = append(search, mother, 0, from);
    place = append(search, father, place, until);
    place = append(search, mother, place, count);
    INVARIANT(place == count);
    disturb(search);
}

/* ---- schedules ---- */

/* Justify while that shortens the schedule; return its length. */
static int64_t improve(struct lookahead_search *search, int64_t end_ns)
{
    for (;;) {
        int64_t before_ns = end_ns;
        end_ns = lookahead_sgs_justify(&search->sgs, search->start_ns, end_ns);
        search->spent += 2;
        INVARIANT(end_ns <= before_ns);
        if (end_ns == before_ns || search->spent >= search->budget) {
            return end_ns;
        }
    }
}

/* Store the list of the current schedule as an elite. */
static void
put(struct lookahead_search *search, uint32_t elite, struct lookahead_elite as)
{
    INVARIANT(elite < search->elite_max);
    lookahead_sgs_list(&search->sgs, search->start_ns, list_of(search, elite));
    search->elites[elite] = as;
    if (is_better(search, as, search->elites[search->best])) {
        search->best = elite;
        search->improved = search->spent;
    }
}

/* Return the sum of the times at which the groups finish. */
static int64_t sum_groups(const struct lookahead_search *search)
{
    enum { UNIT = 1024 };
    const struct lookahead_model *model = search->sgs.model;
    int64_t *ends_ns = search->group_ns;
    for (uint32_t ix = 0; ix < model->group_count; ix++) {
        ends_ns[ix] = 0;
    }
    int64_t sum = 0;
    for (uint32_t ix = 0; ix < model->count; ix++) {
        int64_t end_ns = (search->start_ns[ix] + model->length_ns[ix]) / UNIT;
        int64_t *last_ns = &ends_ns[model->group[ix]];
        sum += end_ns > *last_ns ? end_ns - *last_ns : 0;
        *last_ns = end_ns > *last_ns ? end_ns : *last_ns;
    }
    return sum;
}

static void
note_shortest(struct lookahead_search *search, int64_t end_ns, bool first)
{
    if (first || end_ns < search->shortest_ns) {
        search->shortest_ns = end_ns;
    }
}

/* Keep the current schedule if it is new and good enough; return whether. */
static bool keep(struct lookahead_search *search, int64_t end_ns)
{
    INVARIANT(search->elite_count <= search->elite_max);
    INVARIANT(end_ns >= 0);
    struct lookahead_elite new = {
        .end_ns = end_ns,
        .sum_ns = sum_groups(search),
    };
    note_shortest(search, end_ns, false);
    for (uint32_t ix = 0; ix < search->elite_count; ix++) {
        if (search->elites[ix].end_ns == new.end_ns &&
            search->elites[ix].sum_ns == new.sum_ns) {
            return false;
        }
    }
    if (search->elite_count < search->elite_max) {
        put(search, search->elite_count++, new);
        return true;
    }
    uint32_t worst = find_worst(search);
    if (!is_better(search, new, search->elites[worst])) {
        return false;
    }
    put(search, worst, new);
    return true;
}

/* Keep only the best elite: the others are sampled again. */
static void begin_anew(struct lookahead_search *search)
{
    INVARIANT(search->best < search->elite_count);
    uint32_t *first = list_of(search, 0);
    const uint32_t *best = list_of(search, search->best);
    memmove(first, best, search->sgs.model->count * sizeof(first[0]));
    search->elites[0] = search->elites[search->best];
    search->best = 0;
    search->elite_count = 1;
    search->idle = 0;
}

/*
 * Justify a schedule that leaves no slot idle, and schedule its list in the
 * same way again, because justification leaves some idle.
 */
static int64_t improve_greedily(struct lookahead_search *search, int64_t end_ns)
{
    (void)lookahead_sgs_justify(&search->sgs, search->start_ns, end_ns);
    lookahead_sgs_list(&search->sgs, search->start_ns, search->list);
    search->spent += 3;
    return lookahead_sgs_parallel(&search->sgs, search->list, search->start_ns);
}

static void look_at(struct lookahead_search *search, bool parallel)
{
    int64_t end_ns;
    if (parallel || search->greedy) {
        end_ns = lookahead_sgs_parallel(&search->sgs,
                                        search->list,
                                        search->start_ns);
    } else {
        end_ns =
            lookahead_sgs_serial(&search->sgs, search->list, search->start_ns);
    }
    search->spent++;
    bool kept = false;
    if (search->greedy || search->many) {
        kept = keep(search, end_ns);
    }
    end_ns = search->greedy ? improve_greedily(search, end_ns)
                            : improve(search, end_ns);
    kept = keep(search, end_ns) || kept;
    search->idle = kept ? 0 : search->idle + 1;
}

/* Keep as many lists as the budget and the memory allow. */
static void bound_elites(struct lookahead_search *search)
{
    uint32_t elites = search->budget / LOOKAHEAD_ELITE_BUDGET;
    uint32_t room = search->place_count / search->sgs.model->count;
    elites = elites > ELITES_MIN ? elites : ELITES_MIN;
    elites = elites < room ? elites : room;
    search->elite_max = elites < LOOKAHEAD_ELITES ? elites : LOOKAHEAD_ELITES;
    INVARIANT(search->elite_max >= ELITES_MIN);
}

void lookahead_search_begin(struct lookahead_search *search,
                            const struct lookahead_model *model,
                            const struct lookahead_search_spec *spec)
{
    INVARIANT(model->count > 0 && model->count <= search->stride);
    search->sgs.model = model;
    rng_init(&search->rng, spec->seed);
    search->elite_count = 0;
    search->budget = spec->budget;
    bound_elites(search);
    search->best = 0;
    search->spent = 0;
    search->samples = 0;
    search->idle = 0;
    search->judged = 0;
    search->improved = 0;
    search->shortest_ns = INT64_MAX;
    search->greedy = spec->greedy;
    search->many = spec->many;
    if (spec->first != NULL) {
        memcpy(search->list,
               spec->first,
               model->count * sizeof(search->list[0]));
    } else {
        /* By rank: longest path to the end first. */
        for (uint32_t ix = 0; ix < model->count; ix++) {
            search->start_ns[ix] = -model->tail_ns[ix];
            search->list[ix] = ix;
        }
        lookahead_sgs_sort(&search->sgs, search->start_ns, search->list);
    }
    look_at(search, false);
    INVARIANT(search->elite_count > 0);
}

void lookahead_search_offer(struct lookahead_search *search,
                            const uint32_t *list)
{
    uint32_t count = search->sgs.model->count;
    memcpy(search->list, list, count * sizeof(list[0]));
    look_at(search, false);
}

void lookahead_search_extend(struct lookahead_search *search, uint32_t budget)
{
    INVARIANT(budget >= search->budget);
    search->budget = budget;
    bound_elites(search);
}

bool lookahead_search_judge(struct lookahead_search *search,
                            uint32_t budget,
                            lookahead_judge_fn judge,
                            void *ctx)
{
    if (search->judged >= budget) {
        return false;
    }
    uint32_t ix = search->judged++;
    if (ix < search->elite_count) {
        /* One per call; until it is judged, its end_ns is too low. */
        search->elites[ix] = judge(ctx, list_of(search, ix));
        note_shortest(search, search->elites[ix].end_ns, ix == 0);
        return true;
    }
    cross(search);
    uint32_t worst = find_worst(search);
    struct lookahead_elite child = judge(ctx, search->list);
    note_shortest(search, child.end_ns, false);
    if (is_better(search, child, search->elites[worst])) {
        memcpy(list_of(search, worst),
               search->list,
               search->sgs.model->count * sizeof(search->list[0]));
        search->elites[worst] = child;
    }
    return true;
}

bool lookahead_search_step(struct lookahead_search *search)
{
    int64_t best_ns = search->elites[search->best].end_ns;
    if (search->spent >= search->budget ||
        (best_ns <= search->sgs.model->bound_ns && !search->many)) {
        return false;
    }
    if (search->idle > PATIENCE) {
        begin_anew(search);
    }
    bool sampling = search->elite_count < search->elite_max;
    if (sampling && search->idle < PATIENCE / 2) {
        sample(search);
        search->samples++;
        look_at(search, search->samples % 2 == 0);
    } else {
        cross(search);
        look_at(search, false);
    }
    return true;
}

const uint32_t *lookahead_search_list(const struct lookahead_search *search,
                                      int64_t *end_ns_out)
{
    INVARIANT(search->best < search->elite_count);
    *end_ns_out = search->elites[search->best].end_ns;
    return list_of(search, search->best);
}
