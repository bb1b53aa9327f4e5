/* SPDX-License-Identifier: MIT */
/*
 * turns: the connection of a scheduler or a worker to the table of work in
 * PostgreSQL, on libuv.
 *
 * A turn is one transaction: a JSON object goes to a function of the store, and
 * another comes back. One turn is made at a time, and the loop never waits for
 * the store. Turns follow each other after a pause, and at once after a
 * notification or turns_wake().
 */
#ifndef WORK_TURNS_H
#define WORK_TURNS_H

#include "base/diag.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct turns_options {
    uv_loop_t *uv;
    const char *address;
    const char *function; /* "worker_turn" */
    const char *brief;    /* NULL, or the function of a brief turn: after
                             notifications of requests only */
    const char *channel;  /* of notifications */
    const char *name;     /* NULL: all notifications wake; else those that name
                             it or nothing */
    int64_t pause_ns;     /* longest time between two turns, at first */
    /* Append what to say, in a brief turn or another one. */
    void (*say)(void *ctx, bool brief, struct strbuf *out);
    /* The result of a turn that began at `since_ns` of clock_boot_ns(); NULL:
     * it has failed, for the reason in *why. */
    void (*hear)(void *ctx,
                 const char *text,
                 int64_t since_ns,
                 enum err err,
                 const struct diag *why);
    void *ctx;
};

struct turns;

/* ERR_INVALID: the address is. */
MUST_USE enum err turns_open(struct turns **out,
                             const struct turns_options *options,
                             struct diag *diag);

/* Make a turn, after `in_ns` at the latest. */
void turns_wake(struct turns *turns, int64_t in_ns);

/* Set the longest time between two turns, from the end of this one on. */
void turns_set_pause(struct turns *turns, int64_t pause_ns);

/* Close it: a turn under way is not heard. Run the loop before
 * freeing it. NULL is allowed in both. */
void turns_close(struct turns *turns);
void turns_free(struct turns *turns);

#endif /* WORK_TURNS_H */
