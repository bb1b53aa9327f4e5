/* SPDX-License-Identifier: MIT */
/*
 * pheap: pairing heaps of indices, without memory of their own.
 *
 * A forest is the links of all items, at equal distances, and their order. A
 * heap is the index of its root (ID_NONE when empty), kept by the caller; any
 * number of heaps share a forest, and an item is in at most one of them. Adding
 * costs O(1), removing any item O(log n) amortised; nothing allocates.
 *
 * An item's position in the order must not change while it is in a heap: remove
 * it, change it, add it again.
 */
#ifndef CORE_PHEAP_H
#define CORE_PHEAP_H

#include "core/ids.h"

#include <stddef.h>

/* Links of one item; all ID_NONE if it is in no heap or alone in one. */
struct pheap_link {
    uint32_t child; /* first child */
    uint32_t next;  /* next sibling */
    uint32_t prev;  /* previous sibling, or the parent of a first child */
};

/* Return whether a comes before b; a total order. */
typedef bool (*pheap_before_fn)(const void *ctx, uint32_t a, uint32_t b);

/* A plain value, created for each use from the owner's arrays. */
struct pheap_forest {
    struct pheap_link *links; /* of item 0 */
    size_t stride;            /* bytes from the links of an item to the next */
    pheap_before_fn before;
    const void *ctx;
};

/* Prepare `count` items of `links`, in no heap. */
void pheap_init(struct pheap_link *links, uint32_t count);

/* Add the item to the heap with this root; return the new root. */
uint32_t
pheap_add(const struct pheap_forest *forest, uint32_t root, uint32_t item);

/* Remove the item from the heap with this root; return the new root. */
uint32_t
pheap_remove(const struct pheap_forest *forest, uint32_t root, uint32_t item);

#endif /* CORE_PHEAP_H */
