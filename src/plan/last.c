/* SPDX-License-Identifier: MIT */
/*
 * Cycles through tasks that come last.
 *
 * Such a task waits for all others of its scope: the run, or a group with its
 * parts. They are not its needs, and so the search for cycles has a graph of
 * its own, with one more node per scope, its end: the last tasks need the end,
 * and the end needs the other tasks and the ends of the scopes inside.
 */
#include "plan/plan_internal.h"

#include "base/strbuf.h"

#include <string.h>

/* Return the node of the end of a scope. */
static uint32_t end_of(const struct plan *plan, uint32_t scope)
{
    return plan->task_count + (scope == PLAN_NONE ? 0 : 1 + scope);
}

/* Return the scope around a group. */
static uint32_t scope_around(const struct plan *plan, uint32_t group)
{
    do {
        group = plan->groups[group].parent;
    } while (group != PLAN_NONE && !plan->groups[group].has_last);
    return group;
}

static void build(const struct plan *plan, struct graph *graph)
{
    const struct graph *needs = &plan->private->graph;
    graph_add_nodes(graph, plan->task_count + 1 + plan->group_count);
    for (uint32_t edge = 0; edge < needs->edge_count; edge++) {
        graph_add_need(graph,
                       graph_dependent(needs, edge),
                       graph_need(needs, edge));
    }
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        const struct plan_task *task = &plan->tasks[ix];
        uint32_t end = end_of(plan, task->scope);
        if (!task->last) {
            graph_add_need(graph, end, ix);
            continue;
        }
        graph_add_need(graph, ix, end);
        if (task->scope != PLAN_NONE) {
            uint32_t around = scope_around(plan, task->scope);
            graph_add_need(graph, end_of(plan, around), ix);
        }
    }
}

/* Return the position of a need on a task of the cycle that comes last. */
static struct plan_mark
mark_of(const struct reader *reader, const uint32_t *cycle, uint32_t count)
{
    const struct plan *plan = reader->plan;
    for (uint32_t ix = 0; ix < reader->need_count; ix++) {
        for (uint32_t at = 0; at < count; at++) {
            if (cycle[at] < plan->task_count && plan->tasks[cycle[at]].last &&
                reader->needs[ix].need == plan_target(cycle[at], false)) {
                return reader->needs[ix].mark;
            }
        }
    }
    return plan->tasks[cycle[0]].mark;
}

void plan_check_last_cycles(struct reader *reader)
{
    const struct plan *plan = reader->plan;
    struct graph graph = {0};
    build(plan, &graph);
    uint32_t count = 0;
    uint32_t *cycle = graph_find_cycle(&graph, 0, &count);
    graph_release(&graph);
    if (cycle == NULL) {
        return;
    }
    struct strbuf text = {0};
    for (uint32_t ix = 0; ix <= count; ix++) {
        uint32_t node = cycle[ix % count];
        if (node < plan->task_count) {
            const char *id = QUOTED_TEXT(plan->tasks[node].id);
            strbuf_adds(&text, text.len > 0 ? " -> " : "");
            strbuf_add(&text, id + 1, strlen(id) - 2);
        }
    }
    plan_errors_add(reader->errors,
                    mark_of(reader, cycle, count),
                    "needs form a cycle through \"finally\": %s",
                    strbuf_text(&text));
    strbuf_release(&text);
    mem_free(cycle);
}
