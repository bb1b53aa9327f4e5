/* SPDX-License-Identifier: MIT */
/*
 * mark: location of a session, as its worker knows it: a boot of a machine, and
 * a shim on it. The scheduler stores marks in attempt rows, and returns them
 * without reading them, but for the name of the worker, which it shows.
 */
#ifndef WORK_MARK_H
#define WORK_MARK_H

#include "store/store.h"

struct work_mark {
    int64_t pid; /* of the shim; 0: unknown */
    uint64_t start_ticks;
    char boot_id[37]; /* "": no boot, so it cannot be running */
    char worker[65];  /* its name; "": the scheduler's own */
};

/* Copy a mark into an attempt row, and back. */
void mark_put(const struct work_mark *mark, struct store_attempt *row);
struct work_mark mark_get(const struct store_attempt *row);

/* The mark of work that some worker will have: the same for all schedulers. */
struct work_mark mark_elsewhere(void);

/* Return the pid of the shim, for messages; 0: unknown. */
int64_t mark_process(const struct work_mark *mark);

/* Whether both are from the same boot of a machine. */
bool mark_is_same_boot(const struct work_mark *a, const struct work_mark *b);

/* Whether the mark names a shim that is gone. For marks of this machine
 * only. */
bool mark_is_gone(const struct work_mark *mark);

#endif /* WORK_MARK_H */
