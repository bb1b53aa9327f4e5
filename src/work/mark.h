/* SPDX-License-Identifier: MIT */
/*
 * mark: where a session runs, as its worker knows it: a boot of a machine, and
 * a shim on it. The scheduler keeps marks in the rows of attempts, and hands
 * them back without reading them.
 */
#ifndef WORK_MARK_H
#define WORK_MARK_H

#include "store/store.h"

struct work_mark {
    int64_t pid; /* of the shim; 0: not known */
    uint64_t start_ticks;
    char boot_id[37]; /* "": of no boot, so nothing of it can run */
};

/* Copy a mark into the row of an attempt, and back. */
void mark_put(const struct work_mark *mark, struct store_attempt *row);
struct work_mark mark_get(const struct store_attempt *row);

/* Number of the shim's process, for people; 0: not known. */
int64_t mark_process(const struct work_mark *mark);

/* Whether both are of the same boot of a machine. */
bool mark_is_same_boot(const struct work_mark *a, const struct work_mark *b);

/* Whether the mark names a shim that has gone. Only where it was made. */
bool mark_is_gone(const struct work_mark *mark);

#endif /* WORK_MARK_H */
