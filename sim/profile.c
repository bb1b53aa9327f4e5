/* SPDX-License-Identifier: MIT */
#include "sim/profile.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "plan/load.h"

#include <stdlib.h>

/* Return the tasks in topological order, needs first. */
static uint32_t *topological_order(const struct plan *plan)
{
    uint32_t count = plan->task_count;
    uint32_t *first = mem_zalloc((size_t)count + 1, sizeof(first[0]));
    uint32_t *unmet = mem_zalloc(count, sizeof(unmet[0]));
    for (uint32_t ix = 0; ix < count; ix++) {
        const struct plan_task *task = &plan->tasks[ix];
        unmet[ix] = task->need_count;
        for (uint32_t n = 0; n < task->need_count; n++) {
            first[task->needs[n] + 1]++;
        }
    }
    for (uint32_t ix = 0; ix < count; ix++) {
        first[ix + 1] += first[ix];
    }
    uint32_t *next = mem_zalloc(count, sizeof(next[0]));
    uint32_t *dependents = mem_zalloc(first[count], sizeof(dependents[0]));
    for (uint32_t ix = 0; ix < count; ix++) {
        const struct plan_task *task = &plan->tasks[ix];
        for (uint32_t n = 0; n < task->need_count; n++) {
            uint32_t need = task->needs[n];
            dependents[first[need] + next[need]++] = ix;
        }
    }
    uint32_t *order = mem_zalloc(count, sizeof(order[0]));
    uint32_t placed = 0;
    for (uint32_t ix = 0; ix < count; ix++) {
        if (unmet[ix] == 0) {
            order[placed++] = ix;
        }
    }
    for (uint32_t ix = 0; ix < placed; ix++) {
        for (uint32_t n = first[order[ix]]; n < first[order[ix] + 1]; n++) {
            if (--unmet[dependents[n]] == 0) {
                order[placed++] = dependents[n];
            }
        }
    }
    INVARIANT(placed == count);
    mem_free(first);
    mem_free(unmet);
    mem_free(next);
    mem_free(dependents);
    return order;
}

/* Start (+1) or end (-1) of a task; at one instant, ends come first. */
struct edge {
    int64_t at_ns;
    int32_t step;
};

static int compare_edges(const void *a, const void *b)
{
    const struct edge *left = a;
    const struct edge *right = b;
    if (left->at_ns != right->at_ns) {
        return left->at_ns < right->at_ns ? -1 : 1;
    }
    return (left->step > right->step) - (left->step < right->step);
}

static uint32_t find_peak(const struct plan *plan, const int64_t *end_ns)
{
    struct edge *edges =
        mem_zalloc((size_t)plan->task_count * 2, sizeof(edges[0]));
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        int64_t estimate_ns = plan_estimate_ns(plan, &plan->tasks[ix]);
        if (estimate_ns > 0) {
            edges[count++] = (struct edge){end_ns[ix] - estimate_ns, 1};
            edges[count++] = (struct edge){end_ns[ix], -1};
        }
    }
    qsort(edges, count, sizeof(edges[0]), compare_edges);
    int64_t running = 0;
    int64_t peak = plan->task_count > 0 ? 1 : 0;
    for (uint32_t ix = 0; ix < count; ix++) {
        running += edges[ix].step;
        peak = running > peak ? running : peak;
    }
    mem_free(edges);
    return (uint32_t)peak;
}

/* Walk back from the task that ends last, along the needs that delayed it. */
static void
trace_path(struct profile *profile, const struct plan *plan, const int64_t *end)
{
    uint32_t at = 0;
    for (uint32_t ix = 1; ix < plan->task_count; ix++) {
        at = end[ix] > end[at] ? ix : at;
    }
    profile->longest_ns = end[at];
    profile->path = mem_zalloc(plan->task_count, sizeof(profile->path[0]));
    for (;;) {
        profile->path[profile->path_count++] = at;
        const struct plan_task *task = &plan->tasks[at];
        if (task->need_count == 0) {
            break;
        }
        uint32_t latest = task->needs[0];
        for (uint32_t n = 1; n < task->need_count; n++) {
            uint32_t need = task->needs[n];
            latest = end[need] > end[latest] ? need : latest;
        }
        at = latest;
    }
    for (uint32_t ix = 0; ix < profile->path_count / 2; ix++) {
        uint32_t other = profile->path_count - 1 - ix;
        uint32_t task = profile->path[ix];
        profile->path[ix] = profile->path[other];
        profile->path[other] = task;
    }
}

struct profile profile_of(const struct plan *plan)
{
    struct profile profile = {0};
    uint32_t *order = topological_order(plan);
    int64_t *end_ns = mem_zalloc(plan->task_count, sizeof(end_ns[0]));
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        const struct plan_task *task = &plan->tasks[order[ix]];
        int64_t start_ns = 0;
        for (uint32_t n = 0; n < task->need_count; n++) {
            int64_t need_ns = end_ns[task->needs[n]];
            start_ns = need_ns > start_ns ? need_ns : start_ns;
        }
        end_ns[order[ix]] =
            duration_sum(start_ns, plan_estimate_ns(plan, task));
        profile.work_ns =
            duration_sum(profile.work_ns, plan_estimate_ns(plan, task));
    }
    profile.peak = find_peak(plan, end_ns);
    trace_path(&profile, plan, end_ns);
    mem_free(order);
    mem_free(end_ns);
    return profile;
}

void profile_release(struct profile *profile)
{
    mem_free(profile->path);
    *profile = (struct profile){0};
}
