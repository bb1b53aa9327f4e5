/* SPDX-License-Identifier: MIT */
/* Groups of the plan as a tree: parents have lower indices than their parts. */
#include "base/invariant.h"
#include "base/mem.h"
#include "view/stats_internal.h"

#include <string.h>

void stats_sum_groups(struct stats *stats)
{
    const struct run_history *history = stats->history;
    const struct plan *plan = history->plan;
    stats->wholes = mem_zalloc(plan->group_count, sizeof(stats->wholes[0]));
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        if (plan->tasks[ix].group != PLAN_NONE) {
            struct stats_whole *whole = &stats->wholes[plan->tasks[ix].group];
            whole->tasks++;
            whole->done += history->tasks[ix].state == TASK_DONE ? 1 : 0;
        }
    }
    for (uint32_t ix = plan->group_count; ix-- > 0;) {
        uint32_t parent = plan->groups[ix].parent;
        if (parent != PLAN_NONE) {
            INVARIANT(parent < ix);
            stats->wholes[parent].tasks += stats->wholes[ix].tasks;
            stats->wholes[parent].done += stats->wholes[ix].done;
            stats->wholes[parent].has_parts = true;
        }
    }
}

uint32_t stats_depth(const struct plan *plan, uint32_t group)
{
    uint32_t depth = 0;
    while (plan->groups[group].parent != PLAN_NONE) {
        group = plan->groups[group].parent;
        depth++;
    }
    return depth;
}

uint32_t *stats_tree(const struct stats *stats, uint32_t *count_out)
{
    const struct plan *plan = stats->history->plan;
    uint32_t count = plan->group_count;
    uint32_t *out = mem_zalloc(count, sizeof(out[0]));
    uint32_t *next = mem_zalloc(count, sizeof(next[0])); /* sibling */
    /* First part of each group, then the first group without a parent. */
    uint32_t *first = mem_zalloc(count + 1, sizeof(first[0]));
    memset(first, 0xff, (count + 1) * sizeof(first[0]));
    for (uint32_t ix = count; ix-- > 0;) {
        uint32_t parent = plan->groups[ix].parent;
        if (parent == PLAN_NONE && !stats->wholes[ix].has_parts) {
            continue;
        }
        uint32_t list = parent != PLAN_NONE ? parent : count;
        next[ix] = first[list];
        first[list] = ix;
    }
    *count_out = 0;
    uint32_t at = first[count];
    while (at != PLAN_NONE) {
        out[(*count_out)++] = at;
        if (first[at] != PLAN_NONE) {
            at = first[at];
            continue;
        }
        while (at != PLAN_NONE && next[at] == PLAN_NONE) {
            at = plan->groups[at].parent;
        }
        at = at != PLAN_NONE ? next[at] : PLAN_NONE;
    }
    mem_free(next);
    mem_free(first);
    return out;
}
