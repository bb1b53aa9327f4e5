/* SPDX-License-Identifier: MIT */
/*
 * memory: a store without a disk, for tests and for the simulator.
 *
 * It implements the contract of store.h. Several stores can be opened on one
 * database, like several processes; they die and fail on demand. One thread.
 */
#ifndef SIM_STORE_MEMORY_H
#define SIM_STORE_MEMORY_H

#include "store/store.h"

struct store_memory_db;

/* Time of a fault. */
enum store_memory_moment {
    STORE_MEMORY_BEFORE, /* nothing was applied */
    STORE_MEMORY_AFTER,  /* everything was applied, not reported yet */
};

/*
 * Called at each moment of each write that would succeed; a result other than
 * ERR_OK is the result of the write. ERR_LIMIT means that nothing was written,
 * so it is for STORE_MEMORY_BEFORE only. After any other error the store, like
 * a process with a failed disk, cannot write any more.
 */
typedef enum err (*store_memory_fault_fn)(void *ctx,
                                          enum store_memory_moment moment,
                                          const struct store_batch *batch);

/* Create an empty database, which no scheduler has taken yet. */
struct store_memory_db *store_memory_db_new(void);

/* Free it; all stores on it must have been closed. NULL is allowed. */
void store_memory_db_free(struct store_memory_db *db);

/* Open a store on the database; close it with store_close(). */
struct store *store_memory_open(struct store_memory_db *db,
                                enum store_mode mode);

/* Release the lock of the scheduler, as if it had died. It may itself survive,
 * and notice at its next write after another scheduler has taken the store. */
void store_memory_release_lock(struct store_memory_db *db);

/* Inject faults from now on; fn NULL: none. */
void store_memory_set_fault(struct store_memory_db *db,
                            store_memory_fault_fn fn,
                            void *ctx);

#endif /* SIM_STORE_MEMORY_H */
