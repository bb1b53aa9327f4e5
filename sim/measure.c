/* SPDX-License-Identifier: MIT */
/*
 * Measurements of a simulation.
 *
 * Starved time of a class: the time in which one of its tasks was ready and
 * would have fitted without a running session of a worse tier. The measure uses
 * the default tier of a class (reviews are worse than implementation, unless
 * they block it), even if the plan turns its rules off: otherwise a plan
 * without rules would appear to starve no class.
 */
#include "base/invariant.h"
#include "base/mem.h"
#include "sim/sim_internal.h"

#include <stdlib.h>

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Return the number of different tiers by which starvation is measured. */
static uint32_t count_tiers(const struct plan *plan)
{
    uint32_t kinds = 0;
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        bool seen = false;
        for (uint32_t n = 0; n < ix; n++) {
            seen = seen ||
                   plan->classes[n].base_tier == plan->classes[ix].base_tier;
        }
        kinds += seen ? 0 : 1;
    }
    return kinds;
}

void sim_find_worth(const struct plan *plan, uint32_t *worth)
{
    uint32_t *order = issues_order(plan);
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        worth[ix] = plan->classes[plan->tasks[ix].class_ix].base_tier;
    }
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        const struct plan_task *task = &plan->tasks[order[ix]];
        for (uint32_t n = 0; n < task->need_count; n++) {
            uint32_t need = task->needs[n];
            worth[need] = smaller(worth[need], worth[order[ix]]);
        }
    }
    mem_free(order);
}

void measure_prepare(struct sim *sim)
{
    sim->worth_kinds = count_tiers(sim->plan);
    sim->worth_best = UINT32_MAX;
    for (uint32_t ix = 0; ix < sim->plan->class_count; ix++) {
        sim->worth_best =
            smaller(sim->worth_best, sim->plan->classes[ix].base_tier);
    }
    if (sim->worth_kinds > 1) {
        sim_find_worth(sim->plan, sim->worth);
    }
}

/* State of a visit to the heads of queues. */
struct visit {
    struct sim *sim;
    bool *starved; /* per class */
};

static void look_at_head(void *ctx, struct task_id head)
{
    struct visit *visit = ctx;
    struct sim *sim = visit->sim;
    uint32_t ix = load_plan_task(sim->run, head);
    uint32_t class_ix = sim->plan->tasks[ix].class_ix;
    uint32_t count = 0;
    const uint32_t *in_flight = sched_in_flight(sim->sched, &count);
    for (uint32_t n = 0; n < count && !visit->starved[class_ix]; n++) {
        struct task_id other = {in_flight[n]};
        uint32_t other_ix = load_plan_task(sim->run, other);
        visit->starved[class_ix] = sim->worth[other_ix] > sim->worth[ix] &&
                                   sched_fits_without(sim->sched, head, other);
    }
}

/* Return whether a task of a worse tier than the best is in flight. */
static bool may_starve(const struct sim *sim)
{
    uint32_t count = 0;
    const uint32_t *in_flight = sched_in_flight(sim->sched, &count);
    bool may = false;
    for (uint32_t n = 0; n < count && !may; n++) {
        struct task_id task = {in_flight[n]};
        may = sim->worth[load_plan_task(sim->run, task)] > sim->worth_best;
    }
    return may;
}

static void measure_starved(struct sim *sim, int64_t length_ns)
{
    struct sim_result *result = sim->result;
    bool *starved = mem_zalloc(result->class_count, sizeof(starved[0]));
    struct visit visit = {sim, starved};
    sched_heads(sim->sched, look_at_head, &visit);
    for (uint32_t ix = 0; ix < result->class_count; ix++) {
        result->classes[ix].starved_ns += starved[ix] ? length_ns : 0;
    }
    mem_free(starved);
}

void measure_interval(struct sim *sim, int64_t length_ns)
{
    struct sim_result *result = sim->result;
    uint32_t sessions = sim->lanes_used - sim->free_lane_count;
    int64_t cap = sched_limit_max(sim->sched, load_limit(sim->run, 0));
    int64_t slots = cap == LIMIT_NONE || cap < sessions ? sessions : cap;
    sim->slot_ns += (double)slots * (double)length_ns;
    sim->busy_ns += (double)sessions * (double)length_ns;
    if (length_ns > 0 && sim->worth_kinds > 1 && may_starve(sim)) {
        measure_starved(sim, length_ns);
    }
    for (uint32_t ix = 0; ix < result->limit_count; ix++) {
        if (sched_limit_binds(sim->sched, load_limit(sim->run, ix))) {
            result->limit_wait_ns[ix] += length_ns;
        }
    }
}

static int compare_ns(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static void measure_waits(struct sim_class *out, int64_t *waits)
{
    if (out->count == 0) {
        return;
    }
    qsort(waits, out->count, sizeof(waits[0]), compare_ns);
    double sum = 0;
    for (uint32_t ix = 0; ix < out->count; ix++) {
        sum += (double)waits[ix];
    }
    out->wait_mean_ns = (int64_t)(sum / out->count);
    /* The smallest wait that at least 99 % of the starts do not exceed. */
    uint32_t rank = (uint32_t)(((uint64_t)out->count * 99 + 99) / 100);
    out->wait_p99_ns = waits[rank - 1];
    out->wait_max_ns = waits[out->count - 1];
}

/* Measure when the issues were complete. */
static void measure_issues(struct sim *sim)
{
    struct sim_result *result = sim->result;
    bool *done = mem_zalloc(result->task_count, sizeof(done[0]));
    for (uint32_t ix = 0; ix < result->task_count; ix++) {
        done[ix] = true;
    }
    for (uint32_t ix = 0; ix < result->left_count; ix++) {
        done[result->left[ix].task] = result->left[ix].last;
    }
    result->issues = issues_of(sim->plan,
                               sim->deferred,
                               done,
                               result->spans,
                               result->span_count);
    mem_free(done);
}

void measure_finish(struct sim *sim)
{
    struct sim_result *result = sim->result;
    const struct plan *plan = sim->plan;
    for (uint32_t ix = 0; ix < result->span_count; ix++) {
        const struct sim_span *span = &result->spans[ix];
        struct sim_class *class =
            &result->classes[plan->tasks[span->task].class_ix];
        class->count++;
        class->busy_ns += span->end_ns - span->start_ns;
    }
    int64_t *waits = mem_zalloc(result->span_count, sizeof(waits[0]));
    uint32_t *next = mem_zalloc(result->class_count, sizeof(next[0]));
    for (uint32_t ix = 1; ix < result->class_count; ix++) {
        next[ix] = next[ix - 1] + result->classes[ix - 1].count;
    }
    for (uint32_t ix = 0; ix < result->span_count; ix++) {
        const struct sim_span *span = &result->spans[ix];
        uint32_t class_ix = plan->tasks[span->task].class_ix;
        waits[next[class_ix]++] = span->start_ns - span->ready_ns;
    }
    for (uint32_t ix = 0; ix < result->class_count; ix++) {
        struct sim_class *class = &result->classes[ix];
        measure_waits(class, waits + (next[ix] - class->count));
    }
    mem_free(waits);
    mem_free(next);
    /* Slots offered after the end of the last session do not count. */
    double slot_ns = sim->slot_ns_at_end;
    result->slot_use = slot_ns > 0 ? sim->busy_ns / slot_ns : 0;
    measure_issues(sim);
}
