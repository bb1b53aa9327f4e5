/* SPDX-License-Identifier: MIT */
/*
 * Task graph in layers, from left to right: a task is one column after the last
 * task that it needs. Within a column, tasks are sorted by the position of
 * their needs and placed as near to them as possible; one pass from left to
 * right is enough for the chains that most plans are.
 *
 * A large graph would be illegible: only the longest tasks of the critical path
 * are drawn then, in rows, in the order of the path.
 */
#include "base/mem.h"
#include "base/xml.h"
#include "report/html.h"
#include "report/words.h"

#include <stdlib.h>
#include <string.h>

enum {
    NODES_MAX = 90,
    PATH_COLUMNS = 6,
    PATH_NODES_MAX = 6 * PATH_COLUMNS,
    PATH_ROW = 72,
    NAME_MAX = 17,
    NODE_WIDTH = 148,
    NODE_HEIGHT = 38,
    COLUMN_MIN = 168, /* distance between columns */
    COLUMN_MAX = 196,
    WIDTH = 1180, /* of the page */
    ROW = 50,
    MARGIN = 14,
};

/* A task of the graph, identified by its index. */
struct node {
    uint32_t task;
    uint32_t layer;
    bool critical;
    double wanted; /* preferred y */
    int32_t y;
};

struct graph {
    const struct report *report;
    uint32_t *at; /* for each task: its node + 1, or 0 */
    struct node *nodes;
    uint32_t count;
    uint32_t layers;
    int32_t column;
    int32_t height;
    bool whole;
};

static void add_node(struct graph *graph, uint32_t task)
{
    if (graph->at[task] == 0 && graph->count < NODES_MAX) {
        graph->nodes[graph->count++].task = task;
        graph->at[task] = graph->count;
    }
}

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
    for (uint32_t ix = 0; ix < count && graph->count < PATH_NODES_MAX; ix++) {
        add_node(graph, stats->path[order[ix]].task);
    }
    mem_free(order);
}

static void pick_tasks(struct graph *graph)
{
    const struct plan *plan = graph->report->history->plan;
    graph->whole = plan->task_count <= NODES_MAX;
    for (uint32_t ix = 0; graph->whole && ix < plan->task_count; ix++) {
        add_node(graph, ix);
    }
    if (!graph->whole) {
        pick_path(graph);
    }
}

/* --- layout ------------------------------------------------------------- */

static int compare_tasks(const void *left, const void *right)
{
    const struct node *a = left;
    const struct node *b = right;
    return (a->task > b->task) - (a->task < b->task);
}

/* Set each layer to the longest distance from a task without needs; at most one
 * round per node, because the graph has no cycle. */
static void find_layers(struct graph *graph)
{
    const struct plan *plan = graph->report->history->plan;
    bool moved = true;
    for (uint32_t round = 0; moved && round < graph->count; round++) {
        moved = false;
        for (uint32_t ix = 0; ix < graph->count; ix++) {
            struct node *node = &graph->nodes[ix];
            const struct plan_task *task = &plan->tasks[node->task];
            for (uint32_t n = 0; n < task->need_count; n++) {
                uint32_t at = graph->at[task->needs[n]];
                if (at > 0 && graph->nodes[at - 1].layer >= node->layer) {
                    node->layer = graph->nodes[at - 1].layer + 1;
                    moved = true;
                }
            }
            graph->layers =
                node->layer >= graph->layers ? node->layer + 1 : graph->layers;
        }
    }
}

static void find_wish(struct graph *graph, struct node *node)
{
    const struct plan *plan = graph->report->history->plan;
    const struct plan_task *task = &plan->tasks[node->task];
    double sum = 0;
    uint32_t count = 0;
    for (uint32_t n = 0; n < task->need_count; n++) {
        uint32_t at = graph->at[task->needs[n]];
        if (at > 0) {
            sum += graph->nodes[at - 1].y;
            count++;
        }
    }
    node->wanted = count > 0 ? sum / count : -1;
}

static int compare_wishes(const void *left, const void *right, void *ctx)
{
    const struct node *nodes = ctx;
    const struct node *a = &nodes[*(const uint32_t *)left];
    const struct node *b = &nodes[*(const uint32_t *)right];
    if (a->wanted < b->wanted || a->wanted > b->wanted) {
        return a->wanted < b->wanted ? -1 : 1;
    }
    return (a->task > b->task) - (a->task < b->task);
}

static void place_layer(struct graph *graph, uint32_t layer, uint32_t *order)
{
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < graph->count; ix++) {
        if (graph->nodes[ix].layer == layer) {
            find_wish(graph, &graph->nodes[ix]);
            order[count++] = ix;
        }
    }
    qsort_r(order, count, sizeof(order[0]), compare_wishes, graph->nodes);
    /* In later layers, tasks without a need come after the others. */
    int32_t next = MARGIN;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t ix = 0; ix < count; ix++) {
            struct node *node = &graph->nodes[order[ix]];
            bool is_free = node->wanted < 0;
            if (is_free != (pass == 1)) {
                continue;
            }
            int32_t wanted = (int32_t)node->wanted;
            node->y = wanted > next ? wanted : next;
            next = node->y + ROW;
        }
    }
    graph->height = next > graph->height ? next : graph->height;
}

/* Spread the columns over the page width, if they stay far enough apart. */
static int32_t column_of(const struct graph *graph)
{
    int32_t count = graph->layers > 1 ? (int32_t)graph->layers - 1 : 1;
    int32_t column = (WIDTH - 2 * MARGIN - NODE_WIDTH) / count;
    column = column < COLUMN_MAX ? column : COLUMN_MAX;
    return column > COLUMN_MIN ? column : COLUMN_MIN;
}

/* Place the tasks of the path in rows, each where it first ran. */
static void lay_rows(struct graph *graph)
{
    const struct stats *stats = graph->report->stats;
    bool *placed = mem_zalloc(graph->count, sizeof(placed[0]));
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < stats->path_count; ix++) {
        uint32_t at = graph->at[stats->path[ix].task];
        if (stats->path[ix].step != STATS_STEP_WORK || at == 0 ||
            placed[at - 1]) {
            continue;
        }
        struct node *node = &graph->nodes[at - 1];
        placed[at - 1] = true;
        node->layer = count % PATH_COLUMNS;
        node->y = MARGIN + (int32_t)(count / PATH_COLUMNS) * PATH_ROW;
        count++;
        graph->height = node->y + ROW;
    }
    graph->layers = count < PATH_COLUMNS ? count : PATH_COLUMNS;
    graph->column = column_of(graph);
    mem_free(placed);
}

static void lay_out(struct graph *graph)
{
    qsort(graph->nodes, graph->count, sizeof(graph->nodes[0]), compare_tasks);
    for (uint32_t ix = 0; ix < graph->count; ix++) {
        graph->at[graph->nodes[ix].task] = ix + 1;
    }
    const struct stats *stats = graph->report->stats;
    for (uint32_t ix = 0; ix < stats->path_count; ix++) {
        uint32_t at = graph->at[stats->path[ix].task];
        if (at > 0 && stats->path[ix].step == STATS_STEP_WORK) {
            graph->nodes[at - 1].critical = true;
        }
    }
    if (!graph->whole) {
        lay_rows(graph);
        return;
    }
    find_layers(graph);
    uint32_t *order = mem_zalloc(graph->count, sizeof(order[0]));
    graph->column = column_of(graph);
    for (uint32_t layer = 0; layer < graph->layers; layer++) {
        place_layer(graph, layer, order);
    }
    mem_free(order);
}

/* --- drawing ------------------------------------------------------------ */

static int32_t x_of(const struct graph *graph, const struct node *node)
{
    return MARGIN + (int32_t)node->layer * graph->column;
}

static void add_edge(struct strbuf *out,
                     const struct graph *graph,
                     const struct node *from,
                     const struct node *to,
                     const char *class_name)
{
    int32_t x1 = x_of(graph, from) + NODE_WIDTH;
    int32_t x2 = x_of(graph, to);
    int32_t y1 = from->y + NODE_HEIGHT / 2;
    int32_t y2 = to->y + NODE_HEIGHT / 2;
    int32_t bend = x2 > x1 ? (x2 - x1) / 2 : 24;
    int32_t arc = 0;
    if (from->layer >= to->layer) { /* backwards, in an arc above both */
        bool down = to->y > from->y;
        x1 = x_of(graph, from) + NODE_WIDTH / 2;
        x2 = x_of(graph, to) + NODE_WIDTH / 2;
        y1 = from->y + (down ? NODE_HEIGHT : 0);
        y2 = to->y + (down || to->y == from->y ? 0 : NODE_HEIGHT);
        arc = down ? 8 : -10;
        bend = 0;
    }
    strbuf_addf(out,
                "<path class=\"%s\" d=\"M%d %dC%d %d %d %d %d %d\"/>\n",
                class_name,
                x1,
                y1,
                x1 + bend,
                y1 + arc,
                x2 - bend,
                y2 - (y1 == y2 ? -arc : arc),
                x2,
                y2);
}

static void add_needs(struct strbuf *out, const struct graph *graph)
{
    const struct plan *plan = graph->report->history->plan;
    for (uint32_t ix = 0; ix < graph->count; ix++) {
        const struct plan_task *task = &plan->tasks[graph->nodes[ix].task];
        for (uint32_t n = 0; n < task->need_count; n++) {
            uint32_t at = graph->at[task->needs[n]];
            if (at > 0) {
                add_edge(out,
                         graph,
                         &graph->nodes[at - 1],
                         &graph->nodes[ix],
                         "e");
            }
        }
    }
}

/* Draw the path over the needs: solid for a need, dashed for other links. */
static void add_path(struct strbuf *out, const struct graph *graph)
{
    const struct stats *stats = graph->report->stats;
    uint32_t before = 0; /* node + 1 */
    bool gap = false;
    for (uint32_t ix = 0; ix < stats->path_count; ix++) {
        const struct stats_segment *segment = &stats->path[ix];
        if (segment->step != STATS_STEP_WORK) {
            continue;
        }
        uint32_t at = graph->at[segment->task];
        if (at == 0) {
            gap = true;
            continue;
        }
        if (before > 0 && before != at) {
            bool is_need = !gap && segment->link == STATS_LINK_NEED;
            add_edge(out,
                     graph,
                     &graph->nodes[before - 1],
                     &graph->nodes[at - 1],
                     is_need ? "e crit" : "e crit dash");
        }
        before = at;
        gap = false;
    }
}

static void
add_task(struct strbuf *out, const struct graph *graph, const struct node *node)
{
    const struct report *report = graph->report;
    const struct run_history *history = report->history;
    const struct plan_task *task = &history->plan->tasks[node->task];
    const struct stats_sum *sum = &report->stats->tasks[node->task].sum;
    enum task_state state = history->tasks[node->task].state;
    bool is_bad = state == TASK_PARKED || state == TASK_FAILED ||
                  state == TASK_CANCELLED || state == TASK_SKIPPED;
    int32_t x = x_of(graph, node);
    strbuf_addf(out,
                "<g class=\"t%s%s\"><title>",
                node->critical ? " crit" : "",
                is_bad ? " off" : "");
    xml_add(out, task->id);
    strbuf_addf(out, ", %s", sched_state_name(state));
    strbuf_addf(out,
                "</title><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
                "rx=\"5\"/><rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"5\" "
                "height=\"%d\" rx=\"2\"/><text x=\"%d\" y=\"%d\">",
                x,
                node->y,
                NODE_WIDTH,
                NODE_HEIGHT,
                html_colour(task->class_ix).name,
                x + 5,
                node->y + 6,
                NODE_HEIGHT - 12,
                x + 17,
                node->y + 16);
    char name[NAME_MAX + 1];
    bool cut = strlen(task->id) > NAME_MAX;
    size_t len = cut ? NAME_MAX - 1 : strlen(task->id);
    memcpy(name, task->id, len);
    name[len] = '\0';
    xml_add(out, name);
    strbuf_addf(out,
                "%s</text><text class=\"soft\" x=\"%d\" y=\"%d\">",
                cut ? "…" : "",
                x + 17,
                node->y + 30);
    if (sum->sessions > 0) {
        words_add_time(out, sum->working_ns);
        if (sum->sessions > 1) {
            strbuf_addf(out, " in %u sessions", sum->sessions);
        }
    } else {
        strbuf_adds(out, sched_state_name(state));
    }
    strbuf_adds(out, "</text></g>\n");
}

static void draw(struct strbuf *out, const struct graph *graph)
{
    int32_t width =
        2 * MARGIN + (int32_t)(graph->layers - 1) * graph->column + NODE_WIDTH;
    int32_t height = graph->height + MARGIN - (ROW - NODE_HEIGHT);
    strbuf_addf(out,
                "<figure><div class=\"scroll\" tabindex=\"0\" role=\"group\" "
                "aria-label=\"Graph of tasks\"><svg class=\"graph\" "
                "role=\"img\" aria-label=\"Graph of tasks with the critical "
                "path\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n",
                width,
                height,
                width,
                height);
    if (graph->whole) {
        add_needs(out, graph);
    }
    add_path(out, graph);
    for (uint32_t ix = 0; ix < graph->count; ix++) {
        add_task(out, graph, &graph->nodes[ix]);
    }
    strbuf_adds(out, "</svg></div><figcaption>");
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
        .at = mem_zalloc(plan->task_count, sizeof(graph.at[0])),
        .nodes = mem_zalloc(NODES_MAX, sizeof(graph.nodes[0])),
    };
    pick_tasks(&graph);
    if (graph.count > 0) {
        lay_out(&graph);
        draw(out, &graph);
    }
    mem_free(graph.at);
    mem_free(graph.nodes);
}
