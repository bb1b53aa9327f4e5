/* SPDX-License-Identifier: MIT */
/*
 * Siblings of the front queue start at entry 4k + 1. With three unused entries
 * before the first one they start at a multiple of 128 bytes, so that a step
 * down touches two neighbouring cache lines and never three. In the back queue
 * addresses fall: its siblings end before entry 4k, so its first entry must be
 * at a multiple of 128 bytes, that is the capacity is one more than a multiple
 * of four, less the unused ones.
 *
 * A heap is walked by its first entry and a step of 1 or -1.
 */
#include "core/ready_queue.h"

#include "base/invariant.h"
#include "base/mem.h"

#include <string.h>

enum { FANOUT = 4 };

/* Entries up to about here are cached anyway and need no prefetch. */
enum { CACHED = 4096 };

/* One of the two queues, for the length of a call. */
struct heap {
    struct ready_entry *first;
    ptrdiff_t step;
    uint32_t *count;
};

static struct heap heap_of(struct ready_queue *queue, enum ready_end end)
{
    return (struct heap){
        .first = ready_queue_at(queue, end, 0),
        .step = end == READY_FRONT ? 1 : -1,
        .count = &queue->count[end],
    };
}

static struct ready_entry *at(const struct heap *heap, uint32_t ix)
{
    return heap->first + heap->step * (ptrdiff_t)ix;
}

void ready_queue_release(struct ready_queue *queue)
{
    mem_free(queue->block);
    *queue = (struct ready_queue){0};
}

/* Copy both queues to the ends of another block. */
static void copy_ends(struct ready_entry *to,
                      uint32_t capacity,
                      const struct ready_queue *from)
{
    uint32_t front = from->count[READY_FRONT];
    uint32_t back = from->count[READY_BACK];
    INVARIANT(front <= capacity && back <= capacity - front);
    if (front > 0) {
        memcpy(to + READY_UNUSED,
               from->block + READY_UNUSED,
               front * sizeof(to[0]));
    }
    if (back > 0) {
        memcpy(to + READY_UNUSED + capacity - back,
               from->block + READY_UNUSED + from->capacity - back,
               back * sizeof(to[0]));
    }
}

/* Replace the block by a larger one. */
static void enlarge(struct ready_queue *queue, uint32_t capacity)
{
    INVARIANT(capacity > queue->capacity);
    capacity += (FANOUT + 2 - capacity % FANOUT) % FANOUT;
    INVARIANT((capacity + READY_UNUSED) % FANOUT == 1);
    struct ready_entry *block =
        mem_resize_lines(NULL,
                         0,
                         (size_t)capacity + READY_UNUSED,
                         sizeof(block[0]));
    copy_ends(block, capacity, queue);
    mem_free(queue->block);
    queue->block = block;
    queue->capacity = capacity;
}

void ready_queue_reserve(struct ready_queue *queue, uint32_t live)
{
    INVARIANT(live < UINT32_MAX / 2);
    uint32_t wanted = live + live / 8 + 2;
    uint32_t grown = queue->capacity + queue->capacity / 2;
    if (wanted > queue->capacity) {
        enlarge(queue, wanted > grown ? wanted : grown);
    }
}

void ready_queue_reserve_like(struct ready_queue *queue,
                              const struct ready_queue *other)
{
    if (other->capacity > queue->capacity) {
        queue->count[READY_FRONT] = 0;
        queue->count[READY_BACK] = 0;
        enlarge(queue, other->capacity);
    }
}

void ready_queue_copy(struct ready_queue *queue,
                      const struct ready_queue *other)
{
    copy_ends(queue->block, queue->capacity, other);
    queue->count[READY_FRONT] = other->count[READY_FRONT];
    queue->count[READY_BACK] = other->count[READY_BACK];
}

/* Move a hole at `hole` up until the entry fits, and put it there. */
static void
sift_up(const struct heap *heap, uint32_t hole, struct ready_entry entry)
{
    while (hole > 0) {
        uint32_t parent = (hole - 1) / FANOUT;
        if (!ready_key_before(&entry.key, &at(heap, parent)->key)) {
            break;
        }
        *at(heap, hole) = *at(heap, parent);
        hole = parent;
    }
    *at(heap, hole) = entry;
}

/* Prefetch the children of four siblings: one group of them is read next. */
static void fetch_children(const struct heap *heap, uint32_t first)
{
    for (uint32_t n = 0; n < FANOUT; n++) {
        uint32_t child = (first + n) * FANOUT + 1;
        if (child < *heap->count) {
            __builtin_prefetch(at(heap, child));
            __builtin_prefetch(at(heap, child + FANOUT / 2));
        }
    }
}

/* Move a hole at `hole` down until the entry fits, and put it there. */
static void
sift_down(const struct heap *heap, uint32_t hole, struct ready_entry entry)
{
    uint32_t count = *heap->count;
    INVARIANT(hole < count);
    for (;;) {
        uint32_t first = hole * FANOUT + 1;
        if (first >= count) {
            break;
        }
        uint32_t end = first + FANOUT;
        if (end > count) {
            end = count;
        }
        if (first > CACHED) {
            fetch_children(heap, first);
        }
        uint32_t best = first;
        for (uint32_t child = first + 1; child < end; child++) {
            bool before =
                ready_key_before(&at(heap, child)->key, &at(heap, best)->key);
            best = before ? child : best;
        }
        if (!ready_key_before(&at(heap, best)->key, &entry.key)) {
            break;
        }
        *at(heap, hole) = *at(heap, best);
        hole = best;
    }
    *at(heap, hole) = entry;
}

/* Keep only live entries. */
static void
compact(const struct heap *heap, ready_stamp_fn stamp_of, const void *ctx)
{
    uint32_t kept = 0;
    for (uint32_t ix = 0; ix < *heap->count; ix++) {
        struct ready_entry entry = *at(heap, ix);
        if (stamp_of(ctx, entry.item) == entry.stamp) {
            *at(heap, kept++) = entry;
        }
    }
    *heap->count = kept;
}

/* Make a heap of the entries. */
static void order(const struct heap *heap)
{
    for (uint32_t ix = (*heap->count + FANOUT - 2) / FANOUT; ix-- > 0;) {
        sift_down(heap, ix, *at(heap, ix));
    }
    INVARIANT(*heap->count < 2 ||
              !ready_key_before(&at(heap, 1)->key, &at(heap, 0)->key));
}

void ready_queue_rekey(struct ready_queue *queue,
                       enum ready_end end,
                       ready_stamp_fn stamp_of,
                       const void *stamp_ctx,
                       ready_key_fn key_of,
                       void *key_ctx)
{
    if (queue->count[end] == 0) {
        return;
    }
    struct heap heap = heap_of(queue, end);
    compact(&heap, stamp_of, stamp_ctx);
    for (uint32_t ix = 0; ix < *heap.count; ix++) {
        at(&heap, ix)->key = key_of(key_ctx, at(&heap, ix)->item);
    }
    order(&heap);
}

static bool is_full(const struct ready_queue *queue)
{
    return queue->count[READY_FRONT] + queue->count[READY_BACK] ==
           queue->capacity;
}

void ready_queue_push(struct ready_queue *queue,
                      enum ready_end end,
                      struct ready_entry entry,
                      ready_stamp_fn stamp_of,
                      const void *ctx)
{
    INVARIANT(entry.stamp != 0);
    if (is_full(queue)) {
        for (uint32_t ix = 0; ix < READY_ENDS; ix++) {
            struct heap heap = heap_of(queue, ix);
            compact(&heap, stamp_of, ctx);
            order(&heap);
        }
    }
    INVARIANT(!is_full(queue));
    struct heap heap = heap_of(queue, end);
    sift_up(&heap, (*heap.count)++, entry);
}

const struct ready_entry *ready_queue_top(struct ready_queue *queue,
                                          enum ready_end end,
                                          ready_stamp_fn stamp_of,
                                          const void *ctx)
{
    if (queue->count[end] == 0) {
        return NULL;
    }
    struct heap heap = heap_of(queue, end);
    while (*heap.count > 0) {
        struct ready_entry *top = heap.first;
        if (stamp_of(ctx, top->item) == top->stamp) {
            return top;
        }
        struct ready_entry last = *at(&heap, --*heap.count);
        if (*heap.count > 0) {
            sift_down(&heap, 0, last);
        }
    }
    return NULL;
}

size_t ready_queue_bytes(const struct ready_queue *queue)
{
    return queue->block == NULL ? 0
                                : ((size_t)queue->capacity + READY_UNUSED) *
                                      sizeof(queue->block[0]);
}
