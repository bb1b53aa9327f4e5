/* SPDX-License-Identifier: MIT */
/*
 * link_local: worker in the scheduler's process, on its event loop. Orders and
 * reports are direct calls.
 */
#ifndef WORK_LINK_LOCAL_H
#define WORK_LINK_LOCAL_H

#include "store/place.h"
#include "work/worker.h"

#include <sys/resource.h>
#include <uv.h>

struct link_local_options {
    uv_loop_t *uv;
    const struct store_place *place; /* of the store */
    const char *shim; /* path of sluice-shim; NULL: exec_open() searches */
    struct key_secret secret;
    struct rlimit files; /* open-file limit of sessions; zero: same as ours */
    work_report_fn report;
    /* The spawn server has died and cannot be replaced. */
    void (*failed)(void *ctx, enum err err, const char *text);
    void *ctx; /* of both */
};

struct link_local;

/* Create a worker that only inspects and stops, until link_local_serve(). */
MUST_USE enum err link_local_open(struct link_local **out,
                                  const struct link_local_options *options,
                                  struct diag *diag);

/* Start the spawn server. */
MUST_USE enum err link_local_serve(struct link_local *link, struct diag *diag);

struct worker *link_local_worker(struct link_local *link);

/* Close the handles: run the event loop once more before freeing it. NULL is
 * allowed in both. Sessions keep running. */
void link_local_close(struct link_local *link);
void link_local_free(struct link_local *link);

#endif /* WORK_LINK_LOCAL_H */
