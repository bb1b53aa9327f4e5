/* SPDX-License-Identifier: MIT */
#include "sim/issues.h"

#include "base/invariant.h"
#include "base/mem.h"
#include "sim/sim.h"

#include <stdlib.h>

uint32_t *issues_order(const struct plan *plan)
{
    uint32_t count = plan->task_count;
    uint32_t *waiting = mem_zalloc(count, sizeof(waiting[0]));
    uint32_t *order = mem_zalloc(count, sizeof(order[0]));
    for (uint32_t ix = 0; ix < count; ix++) {
        const struct plan_task *task = &plan->tasks[ix];
        for (uint32_t n = 0; n < task->need_count; n++) {
            waiting[task->needs[n]]++;
        }
    }
    uint32_t placed = 0;
    for (uint32_t ix = 0; ix < count; ix++) {
        if (waiting[ix] == 0) {
            order[placed++] = ix;
        }
    }
    for (uint32_t ix = 0; ix < placed; ix++) {
        const struct plan_task *task = &plan->tasks[order[ix]];
        for (uint32_t n = 0; n < task->need_count; n++) {
            if (--waiting[task->needs[n]] == 0) {
                order[placed++] = task->needs[n];
            }
        }
    }
    INVARIANT(placed == count); /* a plan has no cycle */
    mem_free(waiting);
    return order;
}

bool *issues_deferred(const struct plan *plan, bool *deferred, uint32_t count)
{
    deferred = mem_resize(deferred, plan->class_count, sizeof(deferred[0]));
    for (uint32_t ix = count; ix < plan->class_count; ix++) {
        deferred[ix] = plan->classes[ix].defer;
    }
    return deferred;
}

/* Find the tasks that only a failure starts: they need one, or need such a
 * task. `order` is of issues_order(). */
static bool *find_fallbacks(const struct plan *plan, const uint32_t *order)
{
    bool *fallback = mem_zalloc(plan->task_count, sizeof(fallback[0]));
    for (uint32_t n = plan->task_count; n > 0; n--) {
        uint32_t ix = order[n - 1];
        const struct plan_task *task = &plan->tasks[ix];
        for (uint32_t k = 0; k < task->need_count; k++) {
            fallback[ix] =
                fallback[ix] || task->ons[k] == PLAN_ON_FAILED ||
                (task->ons[k] == PLAN_ON_DONE && fallback[task->needs[k]]);
        }
    }
    return fallback;
}

/* Find the tasks that count; as ready_is_background() of the core, but by the
 * whole plan and by the tiers that starvation is measured by. */
static bool *find_foreground(const struct plan *plan, const bool *deferred)
{
    uint32_t *order = issues_order(plan);
    bool *fallback = find_fallbacks(plan, order);
    uint32_t *blocked = mem_zalloc(plan->task_count, sizeof(blocked[0]));
    bool *foreground = mem_zalloc(plan->task_count, sizeof(foreground[0]));
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        blocked[ix] = UINT32_MAX;
    }
    for (uint32_t n = 0; n < plan->task_count; n++) {
        uint32_t ix = order[n];
        const struct plan_task *task = &plan->tasks[ix];
        uint32_t tier = plan->classes[task->class_ix].base_tier;
        bool late = deferred[task->class_ix];
        foreground[ix] = !task->base_gate && !task->last && !fallback[ix] &&
                         (!late || blocked[ix] <= tier);
        uint32_t best = !late && tier < blocked[ix] ? tier : blocked[ix];
        for (uint32_t k = 0; k < task->need_count; k++) {
            uint32_t need = task->needs[k];
            blocked[need] = best < blocked[need] ? best : blocked[need];
        }
    }
    mem_free(order);
    mem_free(fallback);
    mem_free(blocked);
    return foreground;
}

static int compare_ns(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* Sum up the ends of issues: -1 for an issue that is not complete. */
static struct issues sum_up(int64_t *ends, uint32_t count)
{
    struct issues issues = {.count = count, .mean_ns = -1, .half_ns = -1};
    double sum = 0;
    for (uint32_t ix = 0; ix < count; ix++) {
        if (ends[ix] >= 0) {
            sum += (double)ends[ix];
            ends[issues.done++] = ends[ix];
        }
    }
    if (issues.done == 0) {
        return issues;
    }
    issues.mean_ns = (int64_t)(sum / issues.done);
    qsort(ends, issues.done, sizeof(ends[0]), compare_ns);
    uint32_t half = (count + 1) / 2;
    issues.half_ns = issues.done >= half ? ends[half - 1] : -1;
    return issues;
}

struct issues issues_of(const struct plan *plan,
                        const bool *deferred,
                        const bool *done,
                        const struct sim_span *spans,
                        uint32_t span_count)
{
    uint32_t slots = plan->group_count + plan->task_count;
    bool *foreground = find_foreground(plan, deferred);
    bool *counts = mem_zalloc(slots, sizeof(counts[0]));
    int64_t *ends = mem_zalloc(slots, sizeof(ends[0]));
    for (uint32_t ix = 0; ix < span_count; ix++) {
        uint32_t task = spans[ix].task;
        uint32_t group = plan->tasks[task].group;
        uint32_t issue = group != PLAN_NONE ? group : plan->group_count + task;
        if (foreground[task] && spans[ix].end == SIM_END_DONE &&
            spans[ix].end_ns > ends[issue]) {
            ends[issue] = spans[ix].end_ns;
        }
    }
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        uint32_t group = plan->tasks[ix].group;
        uint32_t issue = group != PLAN_NONE ? group : plan->group_count + ix;
        counts[issue] = counts[issue] || foreground[ix];
        ends[issue] = foreground[ix] && !done[ix] ? -1 : ends[issue];
    }
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < slots; ix++) {
        if (counts[ix]) {
            ends[count++] = ends[ix];
        }
    }
    struct issues issues = sum_up(ends, count);
    mem_free(foreground);
    mem_free(counts);
    mem_free(ends);
    return issues;
}
