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
#include "store/place.h"

#include <stdint.h>

struct serve_options {
    const struct store_place *place;
    const char *listen;       /* "HOST:PORT"; NULL: the unix socket */
    const char *const *hosts; /* further names of this server */
    uint32_t host_count;
    /* It listens: where, and a one-time link to log in with, or NULL. */
    void (*ready)(void *ctx, const char *where, const char *link);
    void *ctx;
};

/* Name of the unix socket in the home directory. */
#define SERVE_SOCKET "http"

/* Serve until SIGINT or SIGTERM. */
MUST_USE enum err serve_run(const struct serve_options *options,
                            struct diag *diag);

#endif /* HTTP_SERVE_H */
