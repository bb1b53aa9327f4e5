/* SPDX-License-Identifier: MIT */
/*
 * Within a column, tasks are sorted by the position of their needs and placed
 * as near to them as possible; one pass from left to right is enough for the
 * chains that most plans are.
 */
#include "report/task_graph.h"

#include "base/invariant.h"
#include "base/mem.h"
#include "base/xml.h"

#include <stdlib.h>
#include <string.h>

enum {
    PATH_ROW = 72,
    NAME_MAX = 17,
    NODE_WIDTH = 148,
    NODE_HEIGHT = 38,
    COLUMN_MIN = 168,
    COLUMN_MAX = 196,
    WIDTH = 1180, /* of the page */
    ROW = 50,
    MARGIN = 14,
};

void task_graph_init(struct task_graph *graph,
                     const struct plan *plan,
                     uint32_t capacity)
{
    *graph = (struct task_graph){
        .plan = plan,
        .at = mem_zalloc(plan->task_count, sizeof(graph->at[0])),
        .nodes = mem_zalloc(capacity, sizeof(graph->nodes[0])),
        .capacity = capacity,
    };
}

void task_graph_release(struct task_graph *graph)
{
    mem_free(graph->at);
    mem_free(graph->nodes);
    *graph = (struct task_graph){0};
}

bool task_graph_add(struct task_graph *graph, uint32_t task)
{
    INVARIANT(task < graph->plan->task_count);
    if (graph->at[task] == 0 && graph->count < graph->capacity) {
        graph->nodes[graph->count++].task = task;
        graph->at[task] = graph->count;
    }
    return graph->at[task] > 0;
}

/* Mark the neighbours of all marked tasks. */
static void widen(const struct plan *plan, const bool *from, bool *to)
{
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        const struct plan_task *task = &plan->tasks[ix];
        for (uint32_t n = 0; n < task->need_count; n++) {
            to[ix] = to[ix] || from[task->needs[n]];
            to[task->needs[n]] = to[task->needs[n]] || from[ix];
        }
    }
}

bool *task_graph_near(const struct plan *plan, uint32_t task, uint32_t steps)
{
    uint32_t count = plan->task_count;
    bool *near = mem_zalloc(count, sizeof(near[0]));
    bool *before = mem_zalloc(count, sizeof(before[0]));
    INVARIANT(task < count);
    near[task] = true;
    for (uint32_t step = 0; step < steps; step++) {
        memcpy(before, near, count * sizeof(near[0]));
        widen(plan, before, near);
    }
    mem_free(before);
    return near;
}

const struct task_graph_node *task_graph_find(const struct task_graph *graph,
                                              uint32_t task)
{
    return graph->at[task] > 0 ? &graph->nodes[graph->at[task] - 1] : NULL;
}

/* --- layout ------------------------------------------------------------- */

static int compare_tasks(const void *left, const void *right)
{
    const struct task_graph_node *a = left;
    const struct task_graph_node *b = right;
    return (a->task > b->task) - (a->task < b->task);
}

/* Set each layer to the longest distance from a task without needs; at most one
 * round per node, because the graph has no cycle. */
static void find_layers(struct task_graph *graph)
{
    const struct plan *plan = graph->plan;
    bool moved = true;
    for (uint32_t round = 0; moved && round < graph->count; round++) {
        moved = false;
        for (uint32_t ix = 0; ix < graph->count; ix++) {
            struct task_graph_node *node = &graph->nodes[ix];
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

static void find_wish(struct task_graph *graph, struct task_graph_node *node)
{
    const struct plan *plan = graph->plan;
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
    const struct task_graph_node *nodes = ctx;
    const struct task_graph_node *a = &nodes[*(const uint32_t *)left];
    const struct task_graph_node *b = &nodes[*(const uint32_t *)right];
    if (a->wanted < b->wanted || a->wanted > b->wanted) {
        return a->wanted < b->wanted ? -1 : 1;
    }
    return (a->task > b->task) - (a->task < b->task);
}

static void
place_layer(struct task_graph *graph, uint32_t layer, uint32_t *order)
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
            struct task_graph_node *node = &graph->nodes[order[ix]];
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
static int32_t column_of(const struct task_graph *graph)
{
    int32_t count = graph->layers > 1 ? (int32_t)graph->layers - 1 : 1;
    int32_t column = (WIDTH - 2 * MARGIN - NODE_WIDTH) / count;
    column = column < COLUMN_MAX ? column : COLUMN_MAX;
    return column > COLUMN_MIN ? column : COLUMN_MIN;
}

static void sort(struct task_graph *graph)
{
    qsort(graph->nodes, graph->count, sizeof(graph->nodes[0]), compare_tasks);
    for (uint32_t ix = 0; ix < graph->count; ix++) {
        graph->at[graph->nodes[ix].task] = ix + 1;
    }
}

void task_graph_lay(struct task_graph *graph)
{
    sort(graph);
    find_layers(graph);
    uint32_t *order = mem_zalloc(graph->count, sizeof(order[0]));
    graph->column = column_of(graph);
    for (uint32_t layer = 0; layer < graph->layers; layer++) {
        place_layer(graph, layer, order);
    }
    mem_free(order);
}

void task_graph_lay_rows(struct task_graph *graph,
                         const uint32_t *tasks,
                         uint32_t count,
                         uint32_t columns)
{
    INVARIANT(columns > 0);
    bool *placed = mem_zalloc(graph->count, sizeof(placed[0]));
    uint32_t done = 0;
    sort(graph);
    for (uint32_t ix = 0; ix < count; ix++) {
        uint32_t at = graph->at[tasks[ix]];
        if (at == 0 || placed[at - 1]) {
            continue;
        }
        struct task_graph_node *node = &graph->nodes[at - 1];
        placed[at - 1] = true;
        node->layer = done % columns;
        node->y = MARGIN + (int32_t)(done / columns) * PATH_ROW;
        done++;
        graph->height = node->y + ROW;
    }
    graph->layers = done < columns ? done : columns;
    graph->column = column_of(graph);
    mem_free(placed);
}

/* --- drawing ------------------------------------------------------------ */

static int32_t x_of(const struct task_graph *graph,
                    const struct task_graph_node *node)
{
    return MARGIN + (int32_t)node->layer * graph->column;
}

void task_graph_add_edge(struct strbuf *out,
                         const struct task_graph *graph,
                         const struct task_graph_node *from,
                         const struct task_graph_node *to,
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

void task_graph_add_needs(struct strbuf *out, const struct task_graph *graph)
{
    for (uint32_t ix = 0; ix < graph->count; ix++) {
        const struct task_graph_node *node = &graph->nodes[ix];
        const struct plan_task *task = &graph->plan->tasks[node->task];
        for (uint32_t n = 0; n < task->need_count; n++) {
            const struct task_graph_node *need =
                task_graph_find(graph, task->needs[n]);
            if (need != NULL) {
                task_graph_add_edge(out, graph, need, node, "e");
            }
        }
    }
}

static void add_name(struct strbuf *out, const char *id)
{
    char name[NAME_MAX + 1];
    bool cut = strlen(id) > NAME_MAX;
    size_t len = cut ? NAME_MAX - 1 : strlen(id);
    memcpy(name, id, len);
    name[len] = '\0';
    xml_add(out, name);
    strbuf_adds(out, cut ? "…" : "");
}

void task_graph_add_task(struct strbuf *out,
                         const struct task_graph *graph,
                         const struct task_graph_node *node,
                         const struct task_graph_look *look)
{
    const struct plan_task *task = &graph->plan->tasks[node->task];
    int32_t x = x_of(graph, node);
    if (look->href != NULL) {
        strbuf_addf(out, "<a href=\"%s\">", look->href);
    }
    strbuf_addf(out, "<g class=\"t%s\"><title>", look->class_name);
    xml_add(out, task->id);
    strbuf_addf(out,
                ", %s</title><rect x=\"%d\" y=\"%d\" width=\"%d\" "
                "height=\"%d\" rx=\"5\"/><rect class=\"%s\" x=\"%d\" y=\"%d\" "
                "width=\"5\" height=\"%d\" rx=\"2\"/><text x=\"%d\" y=\"%d\">",
                look->state,
                x,
                node->y,
                NODE_WIDTH,
                NODE_HEIGHT,
                look->mark,
                x + 5,
                node->y + 6,
                NODE_HEIGHT - 12,
                x + 17,
                node->y + 16);
    add_name(out, task->id);
    strbuf_addf(
        out,
        "</text><text class=\"soft\" x=\"%d\" y=\"%d\">%s</text></g>%s\n",
        x + 17,
        node->y + 30,
        look->note,
        look->href != NULL ? "</a>" : "");
}

void task_graph_open(struct strbuf *out,
                     const struct task_graph *graph,
                     const char *label)
{
    int32_t layers = graph->layers > 1 ? (int32_t)graph->layers - 1 : 0;
    int32_t width = 2 * MARGIN + layers * graph->column + NODE_WIDTH;
    int32_t height = graph->height + MARGIN - (ROW - NODE_HEIGHT);
    strbuf_addf(out,
                "<div class=\"scroll\" tabindex=\"0\" role=\"group\" "
                "aria-label=\"Graph of tasks\"><svg class=\"graph\" "
                "role=\"group\" aria-label=\"%s\" width=\"%d\" height=\"%d\" "
                "viewBox=\"0 0 %d %d\">\n",
                label,
                width,
                height,
                width,
                height);
}

void task_graph_close(struct strbuf *out)
{
    strbuf_adds(out, "</svg></div>");
}
