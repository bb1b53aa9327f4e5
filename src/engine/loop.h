/* SPDX-License-Identifier: MIT */
/*
 * loop: the live world of the engine, on libuv.
 *
 * Real clock, real sessions, signals, the control socket, and a store whose
 * batches another thread writes while the loop keeps serving. The store must
 * have been taken.
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
    /* Apply requests only: start nothing, adopt nothing. */
    bool requests_only;
    /* See struct engine_options; each may be NULL. */
    struct engine_update *update;
    struct plan *offered_take;
    struct plan_source offered_source;
    void *ctx;
    /* Each may be NULL. An event is durable; a request given by loop_request()
     * is answered; a pass is done, or a second has passed; a signal came. */
    void (*event)(void *ctx, const struct store_event *event);
    void (*answer)(void *ctx, const char *json);
    void (*pass)(void *ctx);
    void (*signal)(void *ctx, int number);
    /* Answer a question. NULL: nobody can ask. */
    enum err (*look)(struct engine *engine,
                     const struct store_place *place,
                     const struct engine_look *look,
                     struct strbuf *out,
                     struct diag *diag);
};

struct loop;

/* Load the engine from the store and set up the loop. */
MUST_USE enum err loop_open(struct loop **out,
                            const struct loop_options *options,
                            struct diag *diag);

/* Free it; sessions keep running. NULL is allowed. */
void loop_close(struct loop *loop);

/* The engine, to read and to give requests that are not stored. */
struct engine *loop_engine(struct loop *loop);

/* A request of this process; the answer comes by options->answer. */
void loop_request(struct loop *loop, const char *json);

/* Run until loop_stop(), or until the engine fails: return its error, with the
 * message in *diag. */
MUST_USE enum err loop_run(struct loop *loop, struct diag *diag);

/* Make loop_run() return as soon as no write is in progress. */
void loop_stop(struct loop *loop);

#endif /* ENGINE_LOOP_H */
