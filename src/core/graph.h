/* SPDX-License-Identifier: MIT */
/*
 * graph: dependency graph of the tasks.
 *
 * Nodes are numbered from 0; an edge means that one node (the dependent) needs
 * another. An edge has a kind, a small number for the caller. Nodes and edges
 * are only ever added, except that the newest can be removed (graph_truncate),
 * which is how a rejected fragment leaves no trace. Both directions are linked
 * lists of edges, so that an edge can be added to any node at any time for 16
 * bytes.
 *
 * Walking: for (e = graph_first_need(g, n); e != ID_NONE;
 *               e = graph_next_need(g, e)) { ... graph_need(g, e) ... }
 * A list starts with the newest edge.
 *
 * Threads: none. The caller serialises access.
 */
#ifndef CORE_GRAPH_H
#define CORE_GRAPH_H

#include "base/macros.h"
#include "core/ids.h"

#include <stddef.h>

/* An edge has its kind in the highest bits of `need`. */
enum { GRAPH_NODE_BITS = 30 };

/* One edge; public so that walking needs no call. */
struct graph_edge {
    uint32_t need; /* and the kind */
    uint32_t dependent;
    uint32_t next_need;      /* next edge of the same dependent */
    uint32_t next_dependent; /* next edge of the same need */
};

struct graph_node {
    uint32_t first_need;
    uint32_t first_dependent;
};

/* Embed it; starts as {0}. */
struct graph {
    struct graph_node *nodes;
    struct graph_edge *edges;
    uint32_t node_count;
    uint32_t node_capacity;
    uint32_t edge_count;
    uint32_t edge_capacity;
};

/* Free the memory; the graph is then empty. */
void graph_release(struct graph *graph);

/* Reserve memory so that adding up to these totals does not allocate. */
void graph_reserve(struct graph *graph, uint32_t nodes, uint32_t edges);

/* Add `count` nodes without edges. */
void graph_add_nodes(struct graph *graph, uint32_t count);

/* Add one edge: `dependent` needs `need`. Both must exist. The kind is 0, or
 * `on`, 0 to 3. */
void graph_add_need(struct graph *graph, uint32_t dependent, uint32_t need);
void graph_add_need_on(struct graph *graph,
                       uint32_t dependent,
                       uint32_t need,
                       unsigned on);

/* Remove the newest nodes and edges, down to these totals. */
void graph_truncate(struct graph *graph, uint32_t nodes, uint32_t edges);

/*
 * Search the nodes from `first` on and all their direct and indirect needs for
 * a cycle. Return NULL, or the nodes of a cycle, each needing the next and the
 * last needing the first, smallest first, and their number in *count_out; the
 * caller frees the block with mem_free().
 */
MUST_USE uint32_t *graph_find_cycle(const struct graph *graph,
                                    uint32_t first,
                                    uint32_t *count_out);

/* Memory of the graph in bytes. */
size_t graph_bytes(const struct graph *graph);

static inline uint32_t graph_first_need(const struct graph *graph,
                                        uint32_t node)
{
    return graph->nodes[node].first_need;
}

static inline uint32_t graph_next_need(const struct graph *graph, uint32_t edge)
{
    return graph->edges[edge].next_need;
}

static inline uint32_t graph_need(const struct graph *graph, uint32_t edge)
{
    return graph->edges[edge].need & ((UINT32_C(1) << GRAPH_NODE_BITS) - 1);
}

/* Return the kind of an edge. */
static inline unsigned graph_on(const struct graph *graph, uint32_t edge)
{
    return graph->edges[edge].need >> GRAPH_NODE_BITS;
}

static inline uint32_t graph_first_dependent(const struct graph *graph,
                                             uint32_t node)
{
    return graph->nodes[node].first_dependent;
}

static inline uint32_t graph_next_dependent(const struct graph *graph,
                                            uint32_t edge)
{
    return graph->edges[edge].next_dependent;
}

static inline uint32_t graph_dependent(const struct graph *graph, uint32_t edge)
{
    return graph->edges[edge].dependent;
}

#endif /* CORE_GRAPH_H */
