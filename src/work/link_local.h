/* SPDX-License-Identifier: MIT */
/*
 * link_local: a worker in the scheduler's own process, on its event loop.
 * Orders are direct calls of the worker, and so are its reports.
 */
#ifndef WORK_LINK_LOCAL_H
#define WORK_LINK_LOCAL_H

#include "store/place.h"
#include "work/worker.h"

#include <sys/resource.h>
#include <uv.h>

struct link_local_options {
    uv_loop_t *uv;                   /* all polls of it belong to the link */
    const struct store_place *place; /* of the store */
    const char *shim;    /* path of sluice-shim; NULL: found by exec_open() */
    struct rlimit files; /* open files that sessions may have; zero: as we */
    work_report_fn report;
    /* The spawn server has died, and there cannot be another one. */
    void (*failed)(void *ctx, enum err err, const char *text);
    void *ctx; /* of both */
};

struct link_local;

/* Create the worker. Until link_local_serve() it only looks at, and ends, what
 * runs. */
MUST_USE enum err link_local_open(struct link_local **out,
                                  const struct link_local_options *options,
                                  struct diag *diag);

/* Start the spawn server. */
MUST_USE enum err link_local_serve(struct link_local *link, struct diag *diag);

struct worker *link_local_worker(struct link_local *link);

/* Close its handles: the event loop must run once more before it is freed. NULL
 * is allowed in both. Sessions live on. */
void link_local_close(struct link_local *link);
void link_local_free(struct link_local *link);

#endif /* WORK_LINK_LOCAL_H */
