/* SPDX-License-Identifier: MIT */
/*
 * source: the state of a store and its newest events, shared by all clients of
 * a server.
 *
 * A thread of its own polls the store six times a second, and reads it again
 * when it was written to, so seldom that reading takes a thirtieth of one
 * processor. The loop takes what the thread has read with source_take(), and
 * shows it until the next call: all other functions are for the loop, and none
 * of them waits for the thread or for the disk, unless it says so.
 */
#ifndef HTTP_SOURCE_H
#define HTTP_SOURCE_H

#include "http/desk.h"
#include "view/top_look.h"

enum { SOURCE_EVENTS = 1000 };

/* An event as a line of JSON, without a newline, and what the page needs of
 * it. */
struct source_event {
    uint64_t number;
    char *json;
    uint32_t run; /* number of its run; STORE_NONE: none */
    uint32_t task;
    int64_t wall_ns;
    bool asks;       /* the task needs an operator since */
    bool ended;      /* a session of the task has ended ... */
    bool bad;        /* ... without success */
    int64_t took_ns; /* ... after this time */
};

struct source;

/*
 * Read the store and begin to follow it. A store that cannot be read is no
 * error. Forecasts are made by the desk. To end: source_stop(), desk_close(),
 * source_close(); the thread sends work to the desk, whose work uses the
 * source.
 */
MUST_USE enum err source_open(struct source **out,
                              const struct store_place *place,
                              struct desk *desk,
                              struct diag *diag);

/* Stop following it: the thread has ended. NULL is allowed. */
void source_stop(struct source *source);

/* Stop following it, wait for a forecast, and free it. NULL is allowed. */
void source_close(struct source *source);

/* A descriptor that is readable when source_take() has something to take. */
int source_fd(const struct source *source);

/* Take what the thread has read; return whether anything has changed. */
bool source_take(struct source *source);

/* Read the store again soon: somebody waits for it. */
void source_soon(struct source *source);

/* Wait until the store was read again, for a second or two at most: the effect
 * of what was just written can be seen then. From any thread but the loop. */
void source_settle(struct source *source);

/* A number that changes with the state, its events and its scheduler. */
uint64_t source_version(const struct source *source);

/* The place of the store. */
const struct store_place *source_place(const struct source *source);

/* The state; NULL with the reason: the store cannot be read. */
const struct glance *source_glance(struct source *source, struct diag *diag);

/* The model of a run, NULL: the first unfinished one; with its time now.
 * Borrowed until source_take(). */
const struct model *source_model(struct source *source, const char *run);

/* The scheduler and the lines of the event log. */
const struct top_look_scene *source_scene(const struct source *source);

/* What a text is made of: it is kept until that changes. */
enum source_of { SOURCE_OF_STATE, SOURCE_OF_SCENE, SOURCE_OF_BOTH };

/* Return the text that was kept under a key, or an empty one to fill in. The
 * pointer is valid until the next call. */
struct strbuf *source_text(struct source *source,
                           enum source_of of,
                           const char *key,
                           bool *known_out);

/* Number of the last event, and of the first one that is kept; 0: none. */
uint64_t source_last(const struct source *source);
uint64_t source_first(const struct source *source);

/* Identity of the store, which changes if another one takes its place. */
const char *source_id(const struct source *source);

/* Return a kept event, or NULL. */
const struct source_event *source_event(const struct source *source,
                                        uint64_t number);

/* Return since when a task needs an operator, by the wall clock; 0: longer than
 * the events that are kept. */
int64_t
source_asks_ns(const struct source *source, uint32_t run, uint32_t task);

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
