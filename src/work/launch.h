/* SPDX-License-Identifier: MIT */
/*
 * launch: conversion of an order to a request for the spawn server.
 *
 * Values reach a session as environment variables and files, never as part of a
 * shell command line.
 */
#ifndef WORK_LAUNCH_H
#define WORK_LAUNCH_H

#include "base/arena.h"
#include "store/place.h"
#include "work/key.h"
#include "work/machine.h"
#include "work/order.h"

/* The worker's additions to an order. All of it is borrowed. */
struct launch {
    const struct work_machine *machine;
    void *ctx; /* of the machine */
    const struct store_place *place;
    const char *git;     /* path of sluice-git */
    const char *agent;   /* path of sluice-agent */
    const char *sandbox; /* path of sluice-sandbox */
    const char *program; /* path of sluice */
    struct key_secret secret;
    const char *lease; /* path of the file of its lease; NULL: it has none */
};

/* The words before a command that confine it; `count` is 0: it is not
 * confined. */
struct launch_prefix {
    const char **items;
    uint32_t count;
};

/*
 * Write the files of the order into `dir`, and start it. `spare`: a directory
 * that may become `dir`, or NULL. ERR_IO: a file could
 * not be written. Other errors: it can never be started.
 */
MUST_USE enum err launch_start(const struct launch *launch,
                               const struct work_order *order,
                               const char *dir,
                               const char *spare,
                               struct diag *diag);

/* launch_sandbox.c: the words that confine the commands of an order; and a
 * shell command line that runs another one confined, NULL if it is NULL. */
struct launch_prefix launch_prefix_of(const struct launch *launch,
                                      const struct work_order *order,
                                      const char *dir,
                                      struct arena *arena);
const char *launch_confine(const struct launch_prefix *prefix,
                           const char *shell,
                           struct arena *arena);

/* launch_git.c: wrap the request in sluice-git, or make it a merge. */
void launch_wrap_git(const struct launch *launch,
                     const struct work_order *order,
                     const struct launch_prefix *prefix,
                     struct arena *arena,
                     struct exec_request *request);

#endif /* WORK_LAUNCH_H */
