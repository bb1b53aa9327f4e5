/* SPDX-License-Identifier: MIT */
/*
 * Edges are pushed to the front of both lists, so removing the newest edge pops
 * both fronts: graph_truncate relies on that order.
 *
 * The cycle search is a depth-first walk with its own stack (user graphs are
 * deep), colouring nodes: a need that is still on the stack closes a cycle, and
 * the stack from there on is that cycle.
 */
#include "core/graph.h"

#include "base/invariant.h"
#include "base/mem.h"

#include <string.h>

enum colour { WHITE, GREY, BLACK };

/* A node on the path, and its next edge. */
struct frame {
    uint32_t node;
    uint32_t edge;
};

void graph_release(struct graph *graph)
{
    mem_free(graph->nodes);
    mem_free(graph->edges);
    *graph = (struct graph){0};
}

void graph_reserve(struct graph *graph, uint32_t nodes, uint32_t edges)
{
    if (nodes > graph->node_capacity) {
        INVARIANT(graph->node_count <= graph->node_capacity);
        graph->nodes = mem_resize_lines(graph->nodes,
                                        graph->node_count,
                                        nodes,
                                        sizeof(graph->nodes[0]));
        graph->node_capacity = nodes;
    }
    if (edges > graph->edge_capacity) {
        INVARIANT(graph->edge_count <= graph->edge_capacity);
        uint32_t half_more = graph->edge_capacity + graph->edge_capacity / 2;
        graph->edge_capacity = edges > half_more ? edges : half_more;
        MEM_RESIZE(graph->edges, graph->edge_capacity);
    }
}

void graph_add_nodes(struct graph *graph, uint32_t count)
{
    INVARIANT(count < (UINT32_C(1) << GRAPH_NODE_BITS) - graph->node_count);
    uint32_t total = graph->node_count + count;
    graph_reserve(graph, total, 0);
    INVARIANT(total <= graph->node_capacity);
    for (uint32_t ix = graph->node_count; ix < total; ix++) {
        graph->nodes[ix] = (struct graph_node){ID_NONE, ID_NONE};
    }
    graph->node_count = total;
}

void graph_add_need(struct graph *graph, uint32_t dependent, uint32_t need)
{
    graph_add_need_on(graph, dependent, need, 0);
}

void graph_add_need_on(struct graph *graph,
                       uint32_t dependent,
                       uint32_t need,
                       unsigned on)
{
    INVARIANT(dependent < graph->node_count && need < graph->node_count);
    INVARIANT(on < 1U << (32 - GRAPH_NODE_BITS));
    MEM_GROW(graph->edges, graph->edge_count, graph->edge_capacity);
    INVARIANT(graph->edge_count < graph->edge_capacity);
    uint32_t edge = graph->edge_count++;
    graph->edges[edge] = (struct graph_edge){
        .need = need | (uint32_t)on << GRAPH_NODE_BITS,
        .dependent = dependent,
        .next_need = graph->nodes[dependent].first_need,
        .next_dependent = graph->nodes[need].first_dependent,
    };
    INVARIANT(graph->edges[edge].next_need == ID_NONE ||
              graph->edges[edge].next_need < edge);
    INVARIANT(graph->edges[edge].next_dependent == ID_NONE ||
              graph->edges[edge].next_dependent < edge);
    graph->nodes[dependent].first_need = edge;
    graph->nodes[need].first_dependent = edge;
}

void graph_truncate(struct graph *graph, uint32_t nodes, uint32_t edges)
{
    INVARIANT(nodes <= graph->node_count && edges <= graph->edge_count);
    while (graph->edge_count > edges) {
        struct graph_edge edge = graph->edges[--graph->edge_count];
        uint32_t need = graph_need(graph, graph->edge_count);
        INVARIANT(graph->nodes[edge.dependent].first_need == ID_NONE ||
                  graph->nodes[edge.dependent].first_need <= graph->edge_count);
        INVARIANT(graph->nodes[need].first_dependent == graph->edge_count);
        graph->nodes[edge.dependent].first_need = edge.next_need;
        graph->nodes[need].first_dependent = edge.next_dependent;
    }
    graph->node_count = nodes;
}

/* Copy the stack from `node` on, rotated so that the smallest comes first. */
static uint32_t *cycle_of(const struct frame *stack,
                          uint32_t depth,
                          uint32_t node,
                          uint32_t *count_out)
{
    uint32_t start = depth - 1;
    while (stack[start].node != node) {
        INVARIANT(start > 0);
        start--;
    }
    uint32_t count = depth - start;
    uint32_t smallest = 0;
    for (uint32_t ix = 1; ix < count; ix++) {
        if (stack[start + ix].node < stack[start + smallest].node) {
            smallest = ix;
        }
    }
    uint32_t *cycle = mem_zalloc(count, sizeof(cycle[0]));
    for (uint32_t ix = 0; ix < count; ix++) {
        cycle[ix] = stack[start + (smallest + ix) % count].node;
    }
    *count_out = count;
    return cycle;
}

/* Walk all needs of `root`; return the first cycle found, or NULL. */
static uint32_t *walk_from(const struct graph *graph,
                           uint32_t root,
                           uint8_t *colours,
                           struct frame *stack,
                           uint32_t *count_out)
{
    uint32_t depth = 0;
    stack[depth++] = (struct frame){root, graph_first_need(graph, root)};
    colours[root] = GREY;
    while (depth > 0) {
        struct frame *top = &stack[depth - 1];
        if (top->edge == ID_NONE) {
            colours[top->node] = BLACK;
            depth--;
            continue;
        }
        uint32_t need = graph_need(graph, top->edge);
        top->edge = graph_next_need(graph, top->edge);
        if (colours[need] == GREY) {
            return cycle_of(stack, depth, need, count_out);
        }
        if (colours[need] == WHITE) {
            colours[need] = GREY;
            INVARIANT(depth < graph->node_count);
            stack[depth++] =
                (struct frame){need, graph_first_need(graph, need)};
        }
    }
    return NULL;
}

uint32_t *
graph_find_cycle(const struct graph *graph, uint32_t first, uint32_t *count_out)
{
    *count_out = 0;
    uint8_t *colours = mem_zalloc(graph->node_count, sizeof(colours[0]));
    struct frame *stack = mem_zalloc(graph->node_count, sizeof(stack[0]));
    uint32_t *cycle = NULL;
    for (uint32_t ix = first; ix < graph->node_count && cycle == NULL; ix++) {
        if (colours[ix] == WHITE) {
            cycle = walk_from(graph, ix, colours, stack, count_out);
        }
    }
    mem_free(stack);
    mem_free(colours);
    return cycle;
}

size_t graph_bytes(const struct graph *graph)
{
    return graph->node_capacity * sizeof(graph->nodes[0]) +
           graph->edge_capacity * sizeof(graph->edges[0]);
}
