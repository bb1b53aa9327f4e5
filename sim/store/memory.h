/* SPDX-License-Identifier: MIT */
/*
 * memory: a store without a disk, for tests and for the simulator.
 *
 * It keeps the contract of store.h. Several stores can be opened on one
 * database, as several processes would; they die and fail when they are told
 * to. One thread.
 */
#ifndef SIM_STORE_MEMORY_H
#define SIM_STORE_MEMORY_H

#include "store/store.h"

struct store_memory_db;

/* When a fault can strike. */
enum store_memory_moment {
    STORE_MEMORY_BEFORE, /* nothing was applied */
    STORE_MEMORY_AFTER,  /* everything was applied, nobody knows it yet */
};

/*
 * Asked at each moment of each write that would succeed; what it returns, if
 * not ERR_OK, is the answer to the write. ERR_LIMIT means that nothing was
 * written, so it is for STORE_MEMORY_BEFORE only. After any other error the
 * store, as a process in front of a failed disk, cannot write any more.
 */
typedef enum err (*store_memory_fault_fn)(void *ctx,
                                          enum store_memory_moment moment,
                                          const struct store_batch *batch);

/* An empty database, which no scheduler has taken yet. */
struct store_memory_db *store_memory_db_new(void);

/* End it; all stores on it must have been closed. NULL is allowed. */
void store_memory_db_free(struct store_memory_db *db);

/* Open a store on the database; ended by store_close(). */
struct store *store_memory_open(struct store_memory_db *db,
                                enum store_mode mode);

/*
 * The scheduler has died, as far as the others can tell: its lock is free. It
 * may itself live on, and find out at its next write after another has taken
 * the store.
 */
void store_memory_release_lock(struct store_memory_db *db);

/* Have faults from now on; fn NULL: none. */
void store_memory_set_fault(struct store_memory_db *db,
                            store_memory_fault_fn fn,
                            void *ctx);

#endif /* SIM_STORE_MEMORY_H */
