/* SPDX-License-Identifier: MIT */
#include "core/ready_queue.h"

#include "base/invariant.h"
#include "base/mem.h"

#include <string.h>

/*
 * Siblings start at entry 4k + 1. With three unused entries before the first
 * one they start at a multiple of 128 bytes, so that a step down touches two
 * neighbouring cache lines and never three.
 */
enum { FANOUT = 4, UNUSED = 3 };

/* Entries up to about here are cached anyway and need no prefetch. */
enum { CACHED = 4096 };

void ready_queue_release(struct ready_queue *queue)
{
    mem_free(queue->block);
    *queue = (struct ready_queue){0};
}

/* Enlarge the array; the first `kept` entries stay. */
static void enlarge(struct ready_queue *queue, uint32_t kept, uint32_t capacity)
{
    INVARIANT(capacity > queue->capacity);
    uint32_t used = queue->block != NULL ? kept + UNUSED : 0;
    queue->block = mem_resize_lines(queue->block,
                                    used,
                                    (size_t)capacity + UNUSED,
                                    sizeof(queue->block[0]));
    queue->entries = queue->block + UNUSED;
    queue->capacity = capacity;
}

void ready_queue_reserve(struct ready_queue *queue, uint32_t live)
{
    INVARIANT(live < UINT32_MAX / 2);
    uint32_t wanted = live + live / 2 + 2;
    uint32_t grown = queue->capacity + queue->capacity / 2;
    if (wanted > queue->capacity) {
        enlarge(queue, queue->count, wanted > grown ? wanted : grown);
    }
}

void ready_queue_reserve_like(struct ready_queue *queue,
                              const struct ready_queue *other)
{
    if (other->capacity > queue->capacity) {
        enlarge(queue, 0, other->capacity);
    }
}

void ready_queue_copy(struct ready_queue *queue,
                      const struct ready_queue *other)
{
    INVARIANT(queue->capacity >= other->count);
    queue->count = other->count;
    if (other->count > 0) {
        memcpy(queue->entries,
               other->entries,
               other->count * sizeof(other->entries[0]));
    }
}

/* Move a hole at `hole` up until the entry fits, and put it there. */
static void
sift_up(struct ready_queue *queue, uint32_t hole, struct ready_entry entry)
{
    while (hole > 0) {
        uint32_t parent = (hole - 1) / FANOUT;
        if (!ready_key_before(&entry.key, &queue->entries[parent].key)) {
            break;
        }
        queue->entries[hole] = queue->entries[parent];
        hole = parent;
    }
    queue->entries[hole] = entry;
}

/* Prefetch the children of four siblings: one group of them is read next. */
static void fetch_children(const struct ready_queue *queue, uint32_t first)
{
    for (uint32_t n = 0; n < FANOUT; n++) {
        uint32_t child = (first + n) * FANOUT + 1;
        if (child < queue->count) {
            __builtin_prefetch(&queue->entries[child]);
            __builtin_prefetch(&queue->entries[child + FANOUT / 2]);
        }
    }
}

/* Move a hole at `hole` down until the entry fits, and put it there. */
static void
sift_down(struct ready_queue *queue, uint32_t hole, struct ready_entry entry)
{
    INVARIANT(hole < queue->count);
    struct ready_entry *entries = queue->entries;
    for (;;) {
        uint32_t first = hole * FANOUT + 1;
        if (first >= queue->count) {
            break;
        }
        uint32_t end = first + FANOUT;
        if (end > queue->count) {
            end = queue->count;
        }
        if (first > CACHED) {
            fetch_children(queue, first);
        }
        uint32_t best = first;
        for (uint32_t child = first + 1; child < end; child++) {
            if (ready_key_before(&entries[child].key, &entries[best].key)) {
                best = child;
            }
        }
        if (!ready_key_before(&entries[best].key, &entry.key)) {
            break;
        }
        entries[hole] = entries[best];
        hole = best;
    }
    entries[hole] = entry;
}

/* Keep only live entries. */
static void
compact(struct ready_queue *queue, ready_stamp_fn stamp_of, const void *ctx)
{
    uint32_t kept = 0;
    for (uint32_t ix = 0; ix < queue->count; ix++) {
        struct ready_entry entry = queue->entries[ix];
        if (stamp_of(ctx, entry.item) == entry.stamp) {
            queue->entries[kept++] = entry;
        }
    }
    queue->count = kept;
}

/* Make a heap of the entries. */
static void order(struct ready_queue *queue)
{
    for (uint32_t ix = (queue->count + FANOUT - 2) / FANOUT; ix-- > 0;) {
        sift_down(queue, ix, queue->entries[ix]);
    }
    INVARIANT(queue->count < 2 || !ready_key_before(&queue->entries[1].key,
                                                    &queue->entries[0].key));
}

void ready_queue_rekey(struct ready_queue *queue,
                       ready_stamp_fn stamp_of,
                       const void *stamp_ctx,
                       ready_key_fn key_of,
                       void *key_ctx)
{
    compact(queue, stamp_of, stamp_ctx);
    for (uint32_t ix = 0; ix < queue->count; ix++) {
        queue->entries[ix].key = key_of(key_ctx, queue->entries[ix].item);
    }
    order(queue);
}

void ready_queue_push(struct ready_queue *queue,
                      struct ready_entry entry,
                      ready_stamp_fn stamp_of,
                      const void *ctx)
{
    INVARIANT(entry.stamp != 0);
    if (queue->count == queue->capacity) {
        compact(queue, stamp_of, ctx);
        order(queue);
    }
    INVARIANT(queue->count < queue->capacity);
    sift_up(queue, queue->count++, entry);
}

const struct ready_entry *ready_queue_top(struct ready_queue *queue,
                                          ready_stamp_fn stamp_of,
                                          const void *ctx)
{
    while (queue->count > 0) {
        struct ready_entry *top = &queue->entries[0];
        if (stamp_of(ctx, top->item) == top->stamp) {
            return top;
        }
        struct ready_entry last = queue->entries[--queue->count];
        if (queue->count > 0) {
            sift_down(queue, 0, last);
        }
    }
    return NULL;
}
