/* SPDX-License-Identifier: MIT */
/* gc_rows: removal of finished runs from the store, for `sluice gc`. */
#ifndef CLI_GC_ROWS_H
#define CLI_GC_ROWS_H

#include "base/diag.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

/* A run and its number of rows. `id` is valid during the call. */
struct gc_rows_run {
    const char *id;
    uint32_t tasks;
    uint32_t attempts;
    uint64_t events;
};

struct gc_rows {
    const struct store_place *place;
    struct store *store; /* open for reading */
    int64_t wall_ns;     /* now */
    int64_t age_ns;      /* remove runs that finished longer ago */
    int64_t keep_ns;     /* the same for their files */
    bool dry;
    void *ctx;
    void (*removed)(void *ctx, const struct gc_rows_run *run);
    /* `failed`: the removal failed. */
    void (*kept)(void *ctx, const char *id, const char *reason, bool failed);
};

/*
 * Remove the rows of all runs that finished long enough ago, whose hooks have
 * received all events and whose files and worktrees are gone. Each request is
 * one short transaction, so that a live scheduler can work between them. After
 * an interruption, the next call continues.
 */
MUST_USE enum err gc_rows_prune(const struct gc_rows *rows, struct diag *diag);

#endif /* CLI_GC_ROWS_H */
