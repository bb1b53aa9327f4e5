/* SPDX-License-Identifier: MIT */
/*
 * serve: `sluice serve`: a store by HTTP, on a unix socket or a TCP port.
 *
 * A process of its own, which only reads the store and hands requests to the
 * scheduler: it may die at any time, and works while no scheduler lives.
 */
#ifndef HTTP_SERVE_H
#define HTTP_SERVE_H

#include "base/diag.h"
#include "http/gate.h"
#include "store/place.h"

#include <stdbool.h>
#include <stdint.h>

struct serve_options {
    const struct store_place *place;
    /* "HOST:PORT", or "HOST:FIRST-LAST" for the first free port of a range;
     * NULL: the unix socket */
    const char *listen;
    const char
        *url; /* for clients, by address_add_url(); NULL: as it listens */
    const char *const *hosts; /* further names of this server */
    uint32_t host_count;
    enum gate_role role; /* of the link */
    bool beside; /* a run: open pages see its end before the server exits */
    /* It listens: where, and a one-time link to log in with, or NULL. */
    void (*ready)(void *ctx, const char *where, const char *link);
    /* It serves in spite of this. */
    void (*warn)(void *ctx, const char *text);
    void *ctx;
};

/* Name of the unix socket in the home directory. */
#define SERVE_SOCKET "http"

/* Serve until SIGINT or SIGTERM. */
MUST_USE enum err serve_run(const struct serve_options *options,
                            struct diag *diag);

#endif /* HTTP_SERVE_H */
