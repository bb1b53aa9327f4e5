/* SPDX-License-Identifier: MIT */
/*
 * ready_queue: what may start, best first, among those with equal needs.
 *
 * A binary heap's wider cousin in one array: four children per node, keys
 * inside, so that the way down touches few cache lines. An entry is never
 * removed from the middle: whoever changes an item gives it a new stamp and
 * pushes it again, and an entry with an old stamp is dropped when it surfaces.
 * When the array is full the dead entries are thrown out, so it is bounded by
 * the reserved capacity; that must exceed the number of live items.
 *
 * Made to be embedded; starts as {0}.
 */
#ifndef CORE_READY_QUEUE_H
#define CORE_READY_QUEUE_H

#include "base/macros.h"
#include "core/ids.h"

/* The order of starting: smaller first, `high` before `middle` before `low`. */
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

/* The stamp an entry of this item must have to be alive; 0: none can be. */
typedef uint32_t (*ready_stamp_fn)(const void *ctx, uint32_t item);

struct ready_queue {
    struct ready_entry *block;   /* what was allocated */
    struct ready_entry *entries; /* inside it, so that siblings share lines */
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

/* Give the memory back. */
void ready_queue_release(struct ready_queue *queue);

/* Make room for `live` live entries and half as many dead ones. */
void ready_queue_reserve(struct ready_queue *queue, uint32_t live);

/* Add an entry. Allocates nothing; `stamp_of` tells the living. */
void ready_queue_push(struct ready_queue *queue,
                      struct ready_entry entry,
                      ready_stamp_fn stamp_of,
                      const void *ctx);

/* Make the same room as another queue has; be a copy of it. */
void ready_queue_reserve_like(struct ready_queue *queue,
                              const struct ready_queue *other);
void ready_queue_copy(struct ready_queue *queue,
                      const struct ready_queue *other);

/*
 * Drop dead entries from the top; return the best living one, or NULL when
 * there is none. Borrowed until the queue changes.
 */
const struct ready_entry *ready_queue_top(struct ready_queue *queue,
                                          ready_stamp_fn stamp_of,
                                          const void *ctx);

#endif /* CORE_READY_QUEUE_H */
