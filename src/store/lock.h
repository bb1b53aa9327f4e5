/* SPDX-License-Identifier: MIT */
/*
 * lock: the file that says who is the scheduler of a store.
 *
 * The lock itself is the kernel's (of the open file description, F_OFD_SETLK):
 * it ends with its process, whatever kills that, and asking about it disturbs
 * nobody. The file's contents are a record for people and for other processes,
 * of fixed size and written in place, so that it can be written when the disk
 * is full. Its format is at the top of lock.c.
 *
 * Made to be embedded; starts with lock_init().
 */
#ifndef STORE_LOCK_H
#define STORE_LOCK_H

#include "base/diag.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

struct lock {
    const char *dir; /* borrowed: that the file is in, for messages */
    int dir_fd;      /* borrowed: the same, open */
    int fd;          /* -1 while the lock is not held */
};

struct lock_record {
    struct store_owner owner; /* without age and silence */
    int64_t beat_ns;          /* CLOCK_BOOTTIME of its last sign of life */
    uint64_t writes; /* that were acknowledged to the last owner, and before */
};

void lock_init(struct lock *lock, const char *dir, int dir_fd);

/* Give the lock back, if it is held. The record stays. */
void lock_release(struct lock *lock);

/* Make the file, if it is not there. */
MUST_USE enum err lock_make(struct lock *lock, struct diag *diag);

/* Take the lock; ERR_BUSY: another one holds it. */
MUST_USE enum err lock_take(struct lock *lock, struct diag *diag);

/*
 * Who holds the lock. ERR_NOT_FOUND: nobody does, and *out is the last record
 * there is, or zeros.
 */
MUST_USE enum err
lock_read(const struct lock *lock, struct lock_record *out, struct diag *diag);

/* Write the record; the lock must be held. Nothing is synced. */
MUST_USE enum err lock_write(const struct lock *lock,
                             const struct lock_record *record,
                             struct diag *diag);

/* Whether the file whose lock is held is still there, under whatever name. */
bool lock_has_file(const struct lock *lock);

/*
 * The process, other than this one, that holds a write lock on the file at
 * `path` (a lock of fcntl(), as databases use), or 0.
 */
int64_t lock_foreign_pid(const char *path);

#endif /* STORE_LOCK_H */
