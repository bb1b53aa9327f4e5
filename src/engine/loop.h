/* SPDX-License-Identifier: MIT */
/*
 * loop: the live world of the engine, on libuv.
 *
 * Real clock, a store whose batches are written by another thread while the
 * loop goes on serving, real sessions, a unix socket on which operators hand
 * in orders, signals. The store must have been taken.
 */
#ifndef ENGINE_LOOP_H
#define ENGINE_LOOP_H

#include "engine/engine.h"
#include "store/place.h"

struct loop_options {
    struct store *store;
    const struct store_place *place; /* of the store */
    uint64_t epoch;
    const char *shim; /* NULL: found by exec_open() */
    /* Only to carry out requests: nothing is started, nothing is adopted. */
    bool requests_only;
    struct engine_update *update; /* NULL, or see struct engine_options */
    void *ctx;
    /* Each may be NULL. An event is durable; a request given by loop_request()
     * is answered; a pass is over, or a second has passed; a signal has come.
     */
    void (*event)(void *ctx, const struct store_event *event);
    void (*answer)(void *ctx, const char *json);
    void (*pass)(void *ctx);
    void (*signal)(void *ctx, int number);
};

struct loop;

/* Load the engine from the store and set the loop up. */
MUST_USE enum err loop_open(struct loop **out,
                            const struct loop_options *options,
                            struct diag *diag);

/* Free it; sessions live on. NULL is allowed. */
void loop_close(struct loop *loop);

/* The engine, to look at and to give requests that are not stored. */
struct engine *loop_engine(struct loop *loop);

/* A request of this process; the answer comes by options->answer. */
void loop_request(struct loop *loop, const char *json);

/* Run until loop_stop(), or until the engine cannot go on: that is returned,
 * with its text in *diag. */
MUST_USE enum err loop_run(struct loop *loop, struct diag *diag);

/* Have loop_run() return as soon as nothing is being written. */
void loop_stop(struct loop *loop);

#endif /* ENGINE_LOOP_H */
