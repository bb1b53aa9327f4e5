/* SPDX-License-Identifier: MIT */
/*
 * crew_loop: a worker as a process of its own, on libuv: its crew, its spawn
 * server, its connection to the store, and the door for its sessions.
 */
#ifndef WORK_CREW_LOOP_H
#define WORK_CREW_LOOP_H

#include "base/diag.h"
#include "store/place.h"

#include <stdbool.h>
#include <stdint.h>

struct crew_loop_options {
    const struct store_place *place; /* of the store */
    const char *name;
    const char *labels; /* separated by commas, without the name; or "" */
    uint32_t slots;
    int64_t proto; /* WIRE_PROTO */
    /* A descriptor whose end of file means to drain; -1: none. */
    int parent_fd;
    /* Something for people to know; a second has passed, or less. */
    void (*say)(void *ctx, const char *text);
    void (*tick)(void *ctx);
    void *ctx;
};

/*
 * Run until it has drained (SIGTERM, SIGINT, an operator's request; a second
 * signal stops the sessions, a third one leaves them running). ERR_BUSY:
 * another process uses the home. ERR_CONFLICT: another process has become this
 * worker. ERR_DENIED: the store refuses its role.
 */
MUST_USE enum err crew_loop_run(const struct crew_loop_options *options,
                                struct diag *diag);

#endif /* WORK_CREW_LOOP_H */
