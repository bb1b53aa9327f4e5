/* SPDX-License-Identifier: MIT */
/*
 * Estimates: the expected length, outcome and cost of a task's sessions, from
 * the plan and from the history of a store.
 *
 * The history has four levels: all sessions, those of the class, those of the
 * class and stage, and those with the same repository and agent as well. Each
 * is shrunk towards the one above it: with n sessions its own mean counts
 * n / (n + k), where k is the variance among its sessions over the variance
 * between the kinds of the level above. docs/estimates.md describes it.
 *
 * Durations are log-normal, so that all means are of logarithms.
 */
#include "plan/plan_internal.h"

#include "base/invariant.h"

#include <math.h>
#include <string.h>

/* Without a history: how often sessions fail or ask for changes. */
static const double fails_default = 0.02;
static const double changes_default = 0.1;

/* The number of sessions that a prior counts for: the default variance, a rate
 * of the level above, and the plan's own estimate. */
static const double variance_prior = 4;
static const double rate_prior = 10;
static const double own_prior = 1;

/* Bounds of k, where the variances do not say. */
static const double shrink_min = 0.1;
static const double shrink_max = 8;

/* The variance that the mean of a duration is computed with at most: a few
 * outliers must not multiply the estimates of the scheduler. */
static const double mean_variance_max = 1;
static const double variance_min = 0.0025;
static const double variance_max = 2.25;

void plan_level_name(const struct plan *plan,
                     const struct plan_task *task,
                     enum plan_level level,
                     struct strbuf *out)
{
    const char *parts[] = {
        plan->classes[task->class_ix].name,
        task->stage,
        task->repo != PLAN_NONE ? plan->repos[task->repo].name : NULL,
        task->agent != PLAN_NONE ? plan->agents[task->agent].name : NULL,
    };
    static const size_t counts[PLAN_LEVELS] = {
        [PLAN_LEVEL_STORE] = 0,
        [PLAN_LEVEL_STAGE] = 2,
        [PLAN_LEVEL_KIND] = ARRAY_COUNT(parts),
    };
    INVARIANT(level < PLAN_LEVELS);
    if (level == PLAN_LEVEL_CLASS) {
        strbuf_adds(out, parts[0]);
        return;
    }
    struct jsonw json = {.out = out};
    jsonw_array(&json, NULL);
    for (size_t ix = 0; ix < counts[level]; ix++) {
        jsonw_text(&json, NULL, parts[ix]);
    }
    jsonw_array_end(&json);
}

static bool is_class(const struct plan *plan, const char *name)
{
    return strmap_find(&plan->private->class_names, name, strlen(name)) !=
           STRMAP_NONE;
}

/* Whether tasks of the plan can be of this level. */
static bool is_of_plan(const struct plan *plan, const char *name)
{
    if (name[0] != '[') {
        return is_class(plan, name);
    }
    json_t *parts = json_loads(name, 0, NULL);
    const char *class = json_string_value(json_array_get(parts, 0));
    const char *repo = json_string_value(json_array_get(parts, 2));
    bool known =
        json_array_size(parts) == 0 || (class != NULL && is_class(plan, class));
    known = known && parts != NULL &&
            (repo == NULL ||
             strmap_find(&plan->private->repo_names, repo, strlen(repo)) !=
                 STRMAP_NONE);
    json_decref(parts);
    return known;
}

static int64_t at_most(double value, int64_t max)
{
    return value < (double)max ? (int64_t)(value + 0.5) : max;
}

bool plan_learn(struct plan *plan,
                const char *name,
                const struct learned *learned)
{
    struct plan_private *private = plan->private;
    if (!is_of_plan(plan, name)) {
        return false;
    }
    uint32_t ix = strmap_find(&private->level_names, name, strlen(name));
    if (ix == STRMAP_NONE) {
        MEM_GROW(private->levels,
                 private->level_count,
                 private->level_capacity);
        ix = private->level_count++;
        private->levels[ix].name = mem_strdup(name);
        (void)strmap_add(&private->level_names, private->levels[ix].name, ix);
    }
    private->levels[ix].learned = *learned;
    uint32_t class_ix = strmap_find(&private->class_names, name, strlen(name));
    if (class_ix != STRMAP_NONE && learned->paid > 0) {
        plan->classes[class_ix].expected = (struct plan_cost){
            .usd = at_most(learned->usd * PLAN_USD, PLAN_USD_MAX),
            .tokens = at_most(learned->tokens, PLAN_TOKENS_MAX),
        };
    }
    return true;
}

void plan_learn_from(struct plan *plan, const struct plan *other)
{
    const struct plan_private *private = other->private;
    for (uint32_t ix = 0; ix < private->level_count; ix++) {
        (void)plan_learn(plan,
                         private->levels[ix].name,
                         &private->levels[ix].learned);
    }
}

void plan_forget(struct plan *plan)
{
    struct plan_private *private = plan->private;
    for (uint32_t ix = 0; ix < private->level_count; ix++) {
        mem_free(private->levels[ix].name);
    }
    mem_free(private->levels);
    strmap_release(&private->level_names);
}

/* The levels of a task, the widest first; NULL: nothing is known. */
struct levels {
    const struct learned *items[PLAN_LEVELS];
};

static struct levels levels_of(const struct plan *plan,
                               const struct plan_task *task)
{
    const struct plan_private *private = plan->private;
    struct levels levels = {{NULL}};
    struct strbuf name = {0};
    for (uint32_t n = 0; n<PLAN_LEVELS &&private->level_count> 0; n++) {
        strbuf_clear(&name);
        plan_level_name(plan, task, (enum plan_level)n, &name);
        uint32_t ix = strmap_find(&private->level_names, name.text, name.len);
        if (ix != STRMAP_NONE) {
            levels.items[n] = &private->levels[ix].learned;
        }
    }
    strbuf_release(&name);
    return levels;
}

/* What is believed about a logarithm, by the levels so far. */
struct belief {
    bool known;
    double mean;
    double variance;
    double weight; /* of the last level that had any; 0: none had */
    double most;   /* the largest one */
};

/* Refine it by the next level. */
static void refine(struct belief *belief,
                   enum plan_level level,
                   const struct learned_sums *sums)
{
    double weight = sums->weight;
    if (weight <= 0) {
        return;
    }
    /* The level above may have a larger variance only because its kinds
     * differ. */
    double prior = fmin(belief->variance, LEARNED_VARIANCE);
    double variance = (sums->square + variance_prior * prior) /
                      (fmax(weight - 1, 0) + variance_prior);
    if (!belief->known) {
        belief->mean = sums->mean;
    } else {
        double between = belief->variance - variance;
        double k = level == PLAN_LEVEL_STORE ? own_prior
                   : between > 0 ? fmin(variance / between, shrink_max)
                                 : shrink_max;
        k = fmax(k, shrink_min);
        belief->mean = (weight * sums->mean + k * belief->mean) / (weight + k);
    }
    belief->known = true;
    belief->variance = variance;
    belief->weight = weight;
    belief->most = fmax(belief->most, weight);
}

static struct belief believe(const struct levels *levels, bool own)
{
    struct belief belief = {.known = own, .variance = LEARNED_VARIANCE};
    for (uint32_t n = 0; n < PLAN_LEVELS; n++) {
        const struct learned *level = levels->items[n];
        if (level != NULL) {
            refine(&belief,
                   (enum plan_level)n,
                   own ? &level->ratios : &level->durations);
        }
    }
    belief.variance = fmax(variance_min, fmin(belief.variance, variance_max));
    return belief;
}

/* The duration of a task's sessions. */
struct length {
    int64_t median_ns;
    int64_t mean_ns;
    double variance;
    double weight; /* of the history; 0: none */
};

static int64_t duration(double ns)
{
    int64_t whole_ns = at_most(ns, DURATION_MAX_NS);
    return whole_ns > 1 ? whole_ns : 1;
}

static struct length length_of(const struct plan_task *task,
                               const struct levels *levels)
{
    int64_t own_ns = task->settings->estimate_ns;
    bool own = own_ns != PLAN_UNSET;
    struct belief belief = believe(levels, own);
    if (belief.weight <= 0 || own_ns == 0) {
        int64_t given_ns = own ? own_ns : PLAN_ESTIMATE_NS;
        return (struct length){given_ns, given_ns, LEARNED_VARIANCE, 0};
    }
    /* With few sessions the plan's own estimate is as good a mean. */
    double share = own ? belief.most / (belief.most + own_prior) : 1;
    double variance = fmin(belief.variance, mean_variance_max);
    double median_ns = (own ? (double)own_ns : 1e9) * exp(belief.mean);
    return (struct length){
        .median_ns = duration(median_ns),
        .mean_ns = duration(median_ns * exp(share * variance / 2)),
        .variance = belief.variance,
        .weight = belief.weight,
    };
}

int64_t plan_estimate_ns(const struct plan *plan, const struct plan_task *task)
{
    struct levels levels = levels_of(plan, task);
    return length_of(task, &levels).mean_ns;
}

/* Whether sessions of the task test or judge the work of others. */
static bool can_ask_for_changes(const struct plan *plan,
                                const struct plan_task *task)
{
    bool gated = task->merge && task->repo != PLAN_NONE &&
                 plan->repos[task->repo].gate != NULL;
    return gated || plan_has_role(plan, task, PLAN_ROLE_GATE) ||
           plan_is_review(plan, task);
}

static double rate_of(double before, double count, double ended)
{
    return (count + rate_prior * before) / (ended + rate_prior);
}

struct plan_outlook plan_outlook_of(const struct plan *plan,
                                    const struct plan_task *task)
{
    struct levels levels = levels_of(plan, task);
    struct length length = length_of(task, &levels);
    struct plan_outlook outlook = {
        .median_ns = length.median_ns,
        .sigma = sqrt(length.variance),
        .fails = fails_default,
        .changes = can_ask_for_changes(plan, task) ? changes_default : 0,
        .sessions = (uint64_t)ceil(length.weight),
    };
    for (uint32_t n = PLAN_LEVEL_CLASS; n < PLAN_LEVELS; n++) {
        const struct learned *level = levels.items[n];
        if (level != NULL) {
            outlook.fails = rate_of(outlook.fails, level->failed, level->ended);
            outlook.changes =
                rate_of(outlook.changes, level->changes, level->ended);
        }
    }
    return outlook;
}

/* Return the first value that is given, or 0. */
static int64_t first_given(int64_t first, int64_t second)
{
    if (first != PLAN_UNSET) {
        return first;
    }
    return second != PLAN_UNSET ? second : 0;
}

struct plan_cost plan_expected_cost(const struct plan *plan,
                                    const struct plan_task *task)
{
    const struct plan_cost *own = &task->settings->cost;
    const struct plan_cost *known = &plan->classes[task->class_ix].expected;
    return (struct plan_cost){
        .usd = first_given(own->usd, known->usd),
        .tokens = first_given(own->tokens, known->tokens),
    };
}
