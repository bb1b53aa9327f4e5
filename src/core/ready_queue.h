/* SPDX-License-Identifier: MIT */
/*
 * ready_queue: two priority queues of startable items, in one block of memory.
 *
 * An item is in at most one of the two. So they share their memory: one grows
 * from the start of the block, the other from its end.
 *
 * Each is a 4-ary heap with the keys inside, so that a step down touches few
 * cache lines. An entry is never removed from the middle: to change an item,
 * the caller gives it a new stamp and pushes it again, and an entry with an old
 * stamp is dropped when it reaches the top. When the block is full, dead
 * entries are removed, so it is bounded by the reserved capacity, which must
 * exceed the number of live items.
 *
 * Embed it; starts as {0}.
 */
#ifndef CORE_READY_QUEUE_H
#define CORE_READY_QUEUE_H

#include "base/macros.h"
#include "core/ids.h"

#include <stddef.h>

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

/* The two queues of a block. */
enum ready_end { READY_FRONT, READY_BACK, READY_ENDS };

struct ready_queue {
    struct ready_entry *block; /* the allocation */
    uint32_t count[READY_ENDS];
    uint32_t capacity; /* of both together */
};

/* Entries before the first of the front queue: see ready_queue.c. */
enum { READY_UNUSED = 3 };

/* Return an entry of one queue; entry 0 is its top. */
static inline struct ready_entry *
ready_queue_at(const struct ready_queue *queue, enum ready_end end, uint32_t ix)
{
    return end == READY_FRONT
               ? queue->block + READY_UNUSED + ix
               : queue->block + READY_UNUSED + queue->capacity - 1 - ix;
}

/* Without branches: which of two entries of a heap comes first is open, so the
 * CPU would guess wrong half of the time. */
static inline bool ready_key_before(const struct ready_key *a,
                                    const struct ready_key *b)
{
    unsigned high_less = a->high < b->high;
    unsigned high_same = a->high == b->high;
    unsigned middle_less = a->middle < b->middle;
    unsigned middle_same = a->middle == b->middle;
    unsigned low_less = a->low < b->low;
    return (high_less |
            (high_same & (middle_less | (middle_same & low_less)))) != 0;
}

/* Free the memory. */
void ready_queue_release(struct ready_queue *queue);

/* Reserve memory for `live` live entries and an eighth as many dead ones. */
void ready_queue_reserve(struct ready_queue *queue, uint32_t live);

/* Add an entry. Allocates nothing; `stamp_of` identifies live entries. */
void ready_queue_push(struct ready_queue *queue,
                      enum ready_end end,
                      struct ready_entry entry,
                      ready_stamp_fn stamp_of,
                      const void *ctx);

/* Return the key that an item has now. */
typedef struct ready_key (*ready_key_fn)(void *ctx, uint32_t item);

/* Compute the keys of all live entries of one queue again. */
void ready_queue_rekey(struct ready_queue *queue,
                       enum ready_end end,
                       ready_stamp_fn stamp_of,
                       const void *stamp_ctx,
                       ready_key_fn key_of,
                       void *key_ctx);

/* Reserve as much as another block has; copy both queues of another block. */
void ready_queue_reserve_like(struct ready_queue *queue,
                              const struct ready_queue *other);
void ready_queue_copy(struct ready_queue *queue,
                      const struct ready_queue *other);

/*
 * Drop dead entries from the top; return the best live entry or NULL, borrowed
 * until the block changes.
 */
const struct ready_entry *ready_queue_top(struct ready_queue *queue,
                                          enum ready_end end,
                                          ready_stamp_fn stamp_of,
                                          const void *ctx);

/* Memory in bytes. */
size_t ready_queue_bytes(const struct ready_queue *queue);

#endif /* CORE_READY_QUEUE_H */
