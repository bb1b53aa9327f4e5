/* SPDX-License-Identifier: MIT */
#include "sim/future.h"

#include "base/invariant.h"
#include "base/mem.h"

#include <stdbool.h>

static bool comes_first(const struct future *a, const struct future *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->seq < b->seq;
}

void future_push(struct futures *futures, struct future future)
{
    MEM_GROW(futures->items, futures->count, futures->capacity);
    future.seq = futures->seq++;
    uint32_t hole = futures->count++;
    while (hole > 0 && comes_first(&future, &futures->items[(hole - 1) / 2])) {
        futures->items[hole] = futures->items[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    futures->items[hole] = future;
}

struct future future_pop(struct futures *futures)
{
    INVARIANT(futures->count > 0);
    struct future *items = futures->items;
    struct future first = items[0];
    struct future last = items[--futures->count];
    uint32_t hole = 0;
    for (uint32_t child = 1; child < futures->count; child = 2 * hole + 1) {
        if (child + 1 < futures->count &&
            comes_first(&items[child + 1], &items[child])) {
            child++;
        }
        if (comes_first(&last, &items[child])) {
            break;
        }
        items[hole] = items[child];
        hole = child;
    }
    items[hole] = last;
    return first;
}

int64_t future_next_ns(const struct futures *futures, int64_t at_ns)
{
    return futures->count > 0 && futures->items[0].at_ns < at_ns
               ? futures->items[0].at_ns
               : at_ns;
}

void future_clear(struct futures *futures)
{
    futures->count = 0;
    futures->seq = 0;
}

void future_release(struct futures *futures)
{
    mem_free(futures->items);
    *futures = (struct futures){0};
}
