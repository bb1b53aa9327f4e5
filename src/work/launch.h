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
#include "work/machine.h"
#include "work/order.h"

/* The worker's additions to an order. All of it is borrowed. */
struct launch {
    const struct work_machine *machine;
    void *ctx; /* of the machine */
    const struct store_place *place;
    const char *git;   /* path of sluice-git */
    const char *agent; /* path of sluice-agent */
};

/*
 * Write the files of the order into `dir`, and start it. ERR_IO: a file could
 * not be written. Other errors: it can never be started.
 */
MUST_USE enum err launch_start(const struct launch *launch,
                               const struct work_order *order,
                               const char *dir,
                               struct diag *diag);

/* launch_git.c: wrap the request in sluice-git, or make it a merge. */
void launch_wrap_git(const struct launch *launch,
                     const struct work_order *order,
                     struct arena *arena,
                     struct exec_request *request);

#endif /* WORK_LAUNCH_H */
