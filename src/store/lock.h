/* SPDX-License-Identifier: MIT */
/*
 * lock: the lock file of a store's scheduler.
 *
 * The lock itself is the kernel's (of the open file description, F_OFD_SETLK):
 * the kernel releases it when the process dies, however that happens, and
 * querying it disturbs no process. The file's contents are a record for users
 * and for other processes, of fixed size and written in place, so that it can
 * be written when the disk is full. Its format is at the top of lock.c.
 *
 * Meant to be embedded; starts with lock_init().
 */
#ifndef STORE_LOCK_H
#define STORE_LOCK_H

#include "base/diag.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

struct lock {
    const char *dir; /* borrowed: directory of the file, for messages */
    int dir_fd;      /* borrowed: the same, open */
    int fd;          /* -1 while the lock is not held */
};

struct lock_record {
    struct store_owner owner; /* without age and silence */
    int64_t beat_ns;          /* CLOCK_BOOTTIME of its last heartbeat */
    uint64_t writes;          /* acknowledged so far, to all owners */
};

void lock_init(struct lock *lock, const char *dir, int dir_fd);

/* Release the lock, if it is held. The record stays. */
void lock_release(struct lock *lock);

/* Create the file, if it does not exist. */
MUST_USE enum err lock_make(struct lock *lock, struct diag *diag);

/* Take the lock; ERR_BUSY: another process holds it. */
MUST_USE enum err lock_take(struct lock *lock, struct diag *diag);

/*
 * Read the owner of the lock. ERR_NOT_FOUND: the lock is free, and *out is the
 * last record, or zeros.
 */
MUST_USE enum err
lock_read(const struct lock *lock, struct lock_record *out, struct diag *diag);

/* Write the record; the lock must be held. Nothing is synced. */
MUST_USE enum err lock_write(const struct lock *lock,
                             const struct lock_record *record,
                             struct diag *diag);

/* Whether the file whose lock is held still exists, under any name. */
bool lock_has_file(const struct lock *lock);

/*
 * The process, other than this one, that holds a write lock on the file at
 * `path` (a lock of fcntl(), as databases use), or 0.
 */
int64_t lock_foreign_pid(const char *path);

#endif /* STORE_LOCK_H */
