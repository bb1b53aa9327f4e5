/* SPDX-License-Identifier: MIT */
/* gc_rows: the part of `sluice gc` that removes finished runs from the store.
 */
#ifndef CLI_GC_ROWS_H
#define CLI_GC_ROWS_H

#include "base/diag.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

/* A run, and what the store has of it. `id` is borrowed for the call. */
struct gc_rows_run {
    const char *id;
    uint32_t tasks;
    uint32_t attempts;
    uint64_t events;
};

struct gc_rows {
    const struct store_place *place;
    struct store *store; /* open to be read */
    int64_t wall_ns;     /* now */
    int64_t age_ns;      /* runs that ended longer ago go */
    int64_t keep_ns;     /* the same for their files */
    bool dry;
    void *ctx;
    void (*removed)(void *ctx, const struct gc_rows_run *run);
    /* `failed`: it should have gone and did not. */
    void (*kept)(void *ctx, const char *id, const char *reason, bool failed);
};

/*
 * Remove the rows of all runs that finished long enough ago, whose hooks know
 * of all their events and whose files and worktrees are gone. It is done by
 * requests, each one short transaction, so a scheduler that is alive goes on
 * between them. When it ends half-way, the next call goes on.
 */
MUST_USE enum err gc_rows_prune(const struct gc_rows *rows, struct diag *diag);

#endif /* CLI_GC_ROWS_H */
