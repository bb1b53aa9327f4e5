/* SPDX-License-Identifier: MIT */
/*
 * top_look: the state of the store for `sluice top` and `sluice serve`, kept up
 * to date.
 *
 * A poll checks whether the store was written to, and reads new events; only a
 * load reads everything again. The store stays open between polls; a poll
 * notices a store that was moved, removed or replaced.
 *
 * Threads: one at a time. A state that top_look_detach() has returned is
 * independent of it.
 */
#ifndef VIEW_TOP_LOOK_H
#define VIEW_TOP_LOOK_H

#include "view/model.h"

struct top_look;

struct top_look_options {
    const struct store_place *place;
    const char *only;     /* the run to show; NULL: any */
    struct labels labels; /* whose names must outlive it */
    bool times;           /* read how long tasks ran */
    bool forecast;        /* forecast the ends of runs while loading, else
                             top_look_forecast() gives them */
    /* Called for each new event, or NULL. Of a store that was not polled
     * before, and after a long pause, the newest events are new. */
    void (*event)(void *ctx, const struct store_event *event);
    /* Called before the first event of a store, also of one that takes the
     * place of another, or NULL: numbers of events and runs begin again. */
    void (*other)(void *ctx);
    void *ctx;
};

/* What a poll has found. */
struct top_look_news {
    bool owner;    /* the scheduler, or its state */
    bool events;   /* new events */
    bool outdated; /* the store was written to since the last load */
    bool aged;     /* the last load is some time ago: times have passed, and
                      sessions may have died */
};

/* The scheduler, and the newest lines of the event log. */
struct top_look_scene {
    char *scheduler;   /* its state in words, without its age */
    bool owned;        /* a scheduler holds the lock ... */
    const char *state; /* ... in a word: see client_state_name() */
    bool well;         /* it is alive and healthy */
    bool draining;
    struct model_event *lines; /* oldest first */
    uint32_t line_count;
};

/* Create it, without reading the store. */
struct top_look *top_look_new(const struct top_look_options *options);

/* Free it. NULL is allowed. */
void top_look_free(struct top_look *look);

/* Look for news. On error the model is unchanged except for `trouble`. */
MUST_USE enum err top_look_poll(struct top_look *look,
                                struct top_look_news *out,
                                struct diag *diag);

/* Read everything again, after a poll. The same on error. */
MUST_USE enum err top_look_load(struct top_look *look, struct diag *diag);

/* Poll, and load if it is necessary. */
MUST_USE enum err top_look_again(struct top_look *look, struct diag *diag);

/* Show another of the known runs; NULL: the first unfinished one. */
void top_look_show(struct top_look *look, const char *run);

/* Return the identity of the store, as of the last poll; "": unknown. */
const char *top_look_id(const struct top_look *look);

/* Return the model with the current time; borrowed until the next call. */
const struct model *top_look_model(struct top_look *look);

/* Return the loaded state, which the caller releases, and keep none. There must
 * be one. */
struct glance top_look_detach(struct top_look *look);

/* Take back a state that is not used any more: the next load is faster. */
void top_look_recycle(struct top_look *look, struct glance *glance_take);

/* Give later states a forecast. */
void top_look_forecast(struct top_look *look, struct eta *eta_take);

/* Copy the scene; the caller releases it. */
struct top_look_scene top_look_scene(const struct top_look *look);
void top_look_scene_release(struct top_look_scene *scene);

#endif /* VIEW_TOP_LOOK_H */
