/* SPDX-License-Identifier: MIT */
/*
 * Task graph of the report, with the critical path.
 *
 * A large graph would be illegible: only the longest tasks of the critical path
 * are drawn then, in rows, in the order of the path.
 */
#include "base/mem.h"
#include "report/html.h"
#include "report/task_graph.h"
#include "report/words.h"

#include <stdlib.h>

enum {
    NODES_MAX = 90,
    PATH_COLUMNS = 6,
    PATH_NODES_MAX = 6 * PATH_COLUMNS,
};

struct graph {
    const struct report *report;
    struct task_graph tasks;
    bool *critical; /* for each task of the plan */
    bool whole;
};

/* --- selection ---------------------------------------------------------- */

static int compare_work(const void *left, const void *right, void *ctx)
{
    const struct stats_segment *path = ctx;
    const struct stats_segment *a = &path[*(const uint32_t *)left];
    const struct stats_segment *b = &path[*(const uint32_t *)right];
    int64_t a_ns = a->end_ns - a->start_ns;
    int64_t b_ns = b->end_ns - b->start_ns;
    if (a_ns != b_ns) {
        return a_ns > b_ns ? -1 : 1;
    }
    return (a > b) - (a < b);
}

static void pick_path(struct graph *graph)
{
    const struct stats *stats = graph->report->stats;
    uint32_t *order = mem_zalloc(stats->path_count, sizeof(order[0]));
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < stats->path_count; ix++) {
        if (stats->path[ix].step == STATS_STEP_WORK) {
            order[count++] = ix;
        }
    }
    if (count > 1) {
        qsort_r(order, count, sizeof(order[0]), compare_work, stats->path);
    }
    for (uint32_t ix = 0; ix < count && graph->tasks.count < PATH_NODES_MAX;
         ix++) {
        (void)task_graph_add(&graph->tasks, stats->path[order[ix]].task);
    }
    mem_free(order);
}

static void pick_tasks(struct graph *graph)
{
    const struct plan *plan = graph->report->history->plan;
    graph->whole = plan->task_count <= NODES_MAX;
    for (uint32_t ix = 0; graph->whole && ix < plan->task_count; ix++) {
        (void)task_graph_add(&graph->tasks, ix);
    }
    if (!graph->whole) {
        pick_path(graph);
    }
}

/* Place the tasks; those of the path in rows, each where it first ran. */
static void lay_out(struct graph *graph)
{
    const struct stats *stats = graph->report->stats;
    uint32_t *path = mem_zalloc(stats->path_count, sizeof(path[0]));
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < stats->path_count; ix++) {
        if (stats->path[ix].step == STATS_STEP_WORK) {
            graph->critical[stats->path[ix].task] = true;
            path[count++] = stats->path[ix].task;
        }
    }
    if (graph->whole) {
        task_graph_lay(&graph->tasks);
    } else {
        task_graph_lay_rows(&graph->tasks, path, count, PATH_COLUMNS);
    }
    mem_free(path);
}

/* --- drawing ------------------------------------------------------------ */

/* Draw the path over the needs: solid for a need, dashed for other links. */
static void add_path(struct strbuf *out, const struct graph *graph)
{
    const struct stats *stats = graph->report->stats;
    const struct task_graph_node *before = NULL;
    bool gap = false;
    for (uint32_t ix = 0; ix < stats->path_count; ix++) {
        const struct stats_segment *segment = &stats->path[ix];
        if (segment->step != STATS_STEP_WORK) {
            continue;
        }
        const struct task_graph_node *at =
            task_graph_find(&graph->tasks, segment->task);
        if (at == NULL) {
            gap = true;
            continue;
        }
        if (before != NULL && before != at) {
            bool is_need = !gap && segment->link == STATS_LINK_NEED;
            task_graph_add_edge(out,
                                &graph->tasks,
                                before,
                                at,
                                is_need ? "e crit" : "e crit dash");
        }
        before = at;
        gap = false;
    }
}

static void add_task(struct strbuf *out,
                     const struct graph *graph,
                     const struct task_graph_node *node)
{
    const struct report *report = graph->report;
    const struct run_history *history = report->history;
    const struct plan_task *task = &history->plan->tasks[node->task];
    const struct stats_sum *sum = &report->stats->tasks[node->task].sum;
    enum task_state state = history->tasks[node->task].state;
    bool is_bad = state == TASK_PARKED || state == TASK_FAILED ||
                  state == TASK_CANCELLED || state == TASK_SKIPPED;
    struct strbuf class_name = {0};
    struct strbuf note = {0};
    strbuf_addf(&class_name,
                "%s%s",
                graph->critical[node->task] ? " crit" : "",
                is_bad ? " off" : "");
    if (sum->sessions > 0) {
        words_add_time(&note, sum->working_ns);
        if (sum->sessions > 1) {
            strbuf_addf(&note, " in %u sessions", sum->sessions);
        }
    } else {
        strbuf_adds(&note, sched_state_name(state));
    }
    struct html_colour mark = html_colour(task->class_ix);
    struct task_graph_look look = {
        .class_name = strbuf_text(&class_name),
        .mark = mark.name,
        .state = sched_state_name(state),
        .note = strbuf_text(&note),
    };
    task_graph_add_task(out, &graph->tasks, node, &look);
    strbuf_release(&class_name);
    strbuf_release(&note);
}

static void draw(struct strbuf *out, const struct graph *graph)
{
    strbuf_adds(out, "<figure>");
    task_graph_open(out,
                    &graph->tasks,
                    "Graph of tasks with the critical path");
    if (graph->whole) {
        task_graph_add_needs(out, &graph->tasks);
    }
    add_path(out, graph);
    for (uint32_t ix = 0; ix < graph->tasks.count; ix++) {
        add_task(out, graph, &graph->tasks.nodes[ix]);
    }
    task_graph_close(out);
    strbuf_adds(out, "<figcaption>");
    strbuf_adds(
        out,
        graph->whole
            ? "All tasks and their needs. "
            : "The longest tasks of the path, in its order, row by row. ");
    strbuf_adds(out,
                "The critical path is thick: solid where a task waited for a "
                "need, dashed where it waited for a slot, a retry or "
                "rework.</figcaption></figure>\n");
}

void html_graph(struct strbuf *out, const struct report *report)
{
    const struct plan *plan = report->history->plan;
    struct graph graph = {
        .report = report,
        .critical = mem_zalloc(plan->task_count, sizeof(graph.critical[0])),
    };
    task_graph_init(&graph.tasks, plan, NODES_MAX);
    pick_tasks(&graph);
    if (graph.tasks.count > 0) {
        lay_out(&graph);
        draw(out, &graph);
    }
    task_graph_release(&graph.tasks);
    mem_free(graph.critical);
}
