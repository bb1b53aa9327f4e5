/* SPDX-License-Identifier: MIT */
/*
 * task_graph: a picture of tasks and their needs, as SVG. The report and the
 * live page draw it.
 *
 *   task_graph_init(), task_graph_add() for each task, task_graph_lay(), then
 *   task_graph_open(), edges and boxes, task_graph_close(); release it.
 *
 * Classes of the style sheet: "e" is an edge, "t" a task, "soft" a note.
 */
#ifndef REPORT_TASK_GRAPH_H
#define REPORT_TASK_GRAPH_H

#include "base/strbuf.h"
#include "plan/plan.h"

/* A task of the graph, identified by its index. */
struct task_graph_node {
    uint32_t task;
    uint32_t layer; /* column */
    int32_t y;
    double wanted; /* preferred y */
};

/* An open struct; see task_graph_init(). */
struct task_graph {
    const struct plan *plan;
    uint32_t *at; /* for each task: its node + 1, or 0 */
    struct task_graph_node *nodes;
    uint32_t count;
    uint32_t capacity;
    uint32_t layers;
    int32_t column; /* distance between columns */
    int32_t height;
};

/* Prepare a graph of at most `capacity` tasks. */
void task_graph_init(struct task_graph *graph,
                     const struct plan *plan,
                     uint32_t capacity);
void task_graph_release(struct task_graph *graph);

/* Add a task, once; false: the graph is full. */
bool task_graph_add(struct task_graph *graph, uint32_t task);

/* Return for each task of a plan whether it is at most so many needs away from
 * a task, in either direction; the caller frees it. */
bool *task_graph_near(const struct plan *plan, uint32_t task, uint32_t steps);

/* Place the tasks in layers, from left to right: a task is one column after the
 * last task that it needs. */
void task_graph_lay(struct task_graph *graph);

/* The same in rows of `columns` tasks, in this order. */
void task_graph_lay_rows(struct task_graph *graph,
                         const uint32_t *tasks,
                         uint32_t count,
                         uint32_t columns);

/* Return the node of a task, or NULL. */
const struct task_graph_node *task_graph_find(const struct task_graph *graph,
                                              uint32_t task);

/* Append the start and the end of the picture. */
void task_graph_open(struct strbuf *out,
                     const struct task_graph *graph,
                     const char *label);
void task_graph_close(struct strbuf *out);

/* Append all needs as edges; one edge. */
void task_graph_add_needs(struct strbuf *out, const struct task_graph *graph);
void task_graph_add_edge(struct strbuf *out,
                         const struct task_graph *graph,
                         const struct task_graph_node *from,
                         const struct task_graph_node *to,
                         const char *class_name);

/* How a task is drawn. */
struct task_graph_look {
    const char *class_name; /* of the style sheet, beside "t" */
    const char *mark;       /* class of the mark at its left */
    const char *state;      /* in a word, for the tooltip */
    const char *note;       /* second line; trusted */
    const char *href;       /* an escaped address, or NULL */
};

/* Append a task. */
void task_graph_add_task(struct strbuf *out,
                         const struct task_graph *graph,
                         const struct task_graph_node *node,
                         const struct task_graph_look *look);

#endif /* REPORT_TASK_GRAPH_H */
