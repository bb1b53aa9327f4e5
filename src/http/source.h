/* SPDX-License-Identifier: MIT */
/*
 * source: the state of a store and its newest events, shared by all clients of
 * a server.
 *
 * A refresh reads the store again only if it was written to, at most four times
 * a second, and so seldom that reading takes at most a fifth of one processor.
 */
#ifndef HTTP_SOURCE_H
#define HTTP_SOURCE_H

#include "view/top_look.h"

enum { SOURCE_EVENTS = 1000 };

/* An event as a line of JSON, without a newline. */
struct source_event {
    uint64_t number;
    char *json;
};

struct source;

struct source *source_new(const struct store_place *place);
void source_free(struct source *source);

/* Refresh, if it is due; return whether anything has changed. */
bool source_refresh(struct source *source);

/* Make a refresh due. */
void source_soon(struct source *source);

/* The place of the store. */
const struct store_place *source_place(const struct source *source);

/* The state; NULL with the reason: the store cannot be read. */
const struct glance *source_glance(struct source *source, struct diag *diag);

/* The model of a run, NULL: the first unfinished one; with its time now. */
const struct model *source_model(struct source *source, const char *run);

/* Number of the last event, and of the first one that is kept; 0: none. */
uint64_t source_last(const struct source *source);
uint64_t source_first(const struct source *source);

/* Identity of the store, which changes if another one takes its place. */
const char *source_id(const struct source *source);

/* Return a kept event, or NULL. */
const struct source_event *source_event(const struct source *source,
                                        uint64_t number);

/* How events are written. */
enum source_form {
    SOURCE_LIST,   /* JSON objects with commas between them */
    SOURCE_STREAM, /* server-sent events */
};

/* Append one event as a server-sent event. */
void source_add_event(struct strbuf *out, uint64_t number, const char *json);

/*
 * Append events with numbers after `after`, at most `max`; *last_out is the
 * number of the last one. Reads the store.
 */
MUST_USE enum err source_add_events(struct source *source,
                                    struct strbuf *out,
                                    enum source_form form,
                                    uint64_t after,
                                    uint32_t max,
                                    uint64_t *last_out,
                                    struct diag *diag);

#endif /* HTTP_SOURCE_H */
