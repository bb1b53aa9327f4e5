/* SPDX-License-Identifier: MIT */
/*
 * queue: the place of a merge in the queue of its repository, while it is in
 * flight. The order comes from the store; what the merge is built on, and how
 * often, from its attempt directory, if that is on this machine.
 */
#ifndef VIEW_QUEUE_H
#define VIEW_QUEUE_H

#include "base/jsonw.h"
#include "view/glance.h"

/* A plain value; strings are borrowed. */
struct queue_view {
    uint32_t place; /* 1: next to land; 0: it is in no queue, or alone in it */
    uint32_t count; /* of merges in the queue */
    const char *on; /* task that it is built on, or NULL: the agent branch */
    uint32_t restarts; /* how often it was restarted */
};

struct queue_view queue_of(const struct glance *glance,
                           const struct engine_session_view *session);

/* Append ", 2 of 3 in the merge queue, on top of a/merge, restarted once", or
 * nothing. */
void queue_add(struct strbuf *out, const struct queue_view *queue);

/* Append `"queue": {...}`, or nothing. */
void queue_add_json(struct jsonw *json, const struct queue_view *queue);

/* Append ", restarted N times", or nothing. */
void queue_add_restarts(struct strbuf *out, uint32_t restarts);

#endif /* VIEW_QUEUE_H */
