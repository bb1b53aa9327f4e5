/* SPDX-License-Identifier: MIT */
/*
 * ready_queue: a priority queue of startable items with equal needs.
 *
 * A 4-ary heap in one array with the keys inside, so that a step down touches
 * few cache lines. An entry is never removed from the middle: to change an
 * item, the caller gives it a new stamp and pushes it again, and an entry with
 * an old stamp is dropped when it reaches the top. When the array is full, dead
 * entries are removed, so it is bounded by the reserved capacity, which must
 * exceed the number of live items.
 *
 * Embed it; starts as {0}.
 */
#ifndef CORE_READY_QUEUE_H
#define CORE_READY_QUEUE_H

#include "base/macros.h"
#include "core/ids.h"

/* Start order: smaller first, `high` before `middle` before `low`. */
struct ready_key {
    uint64_t high;
    uint64_t middle;
    uint64_t low;
};

struct ready_entry {
    struct ready_key key;
    uint32_t item;
    uint32_t stamp;
};

/* Return the stamp of this item's live entry; 0: it has none. */
typedef uint32_t (*ready_stamp_fn)(const void *ctx, uint32_t item);

struct ready_queue {
    struct ready_entry *block;   /* the allocation */
    struct ready_entry *entries; /* inside it; siblings share cache lines */
    uint32_t count;
    uint32_t capacity;
};

static inline bool ready_key_before(const struct ready_key *a,
                                    const struct ready_key *b)
{
    if (a->high != b->high) {
        return a->high < b->high;
    }
    if (a->middle != b->middle) {
        return a->middle < b->middle;
    }
    return a->low < b->low;
}

/* Free the memory. */
void ready_queue_release(struct ready_queue *queue);

/* Reserve memory for `live` live entries and half as many dead ones. */
void ready_queue_reserve(struct ready_queue *queue, uint32_t live);

/* Add an entry. Allocates nothing; `stamp_of` identifies live entries. */
void ready_queue_push(struct ready_queue *queue,
                      struct ready_entry entry,
                      ready_stamp_fn stamp_of,
                      const void *ctx);

/* Return the key that an item has now. */
typedef struct ready_key (*ready_key_fn)(void *ctx, uint32_t item);

/* Compute the keys of all live entries again. */
void ready_queue_rekey(struct ready_queue *queue,
                       ready_stamp_fn stamp_of,
                       const void *stamp_ctx,
                       ready_key_fn key_of,
                       void *key_ctx);

/* Reserve as much as another queue has; copy another queue. */
void ready_queue_reserve_like(struct ready_queue *queue,
                              const struct ready_queue *other);
void ready_queue_copy(struct ready_queue *queue,
                      const struct ready_queue *other);

/*
 * Drop dead entries from the top; return the best live entry or NULL, borrowed
 * until the queue changes.
 */
const struct ready_entry *ready_queue_top(struct ready_queue *queue,
                                          ready_stamp_fn stamp_of,
                                          const void *ctx);

#endif /* CORE_READY_QUEUE_H */
