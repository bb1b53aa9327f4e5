/* SPDX-License-Identifier: MIT */
/*
 * The usual two passes: after a removal, the remaining children are linked in
 * pairs from the left, and then the pairs from the right. Both passes are
 * loops; the pairs form a list linked through `next`, newest first, which is
 * the order of the second pass.
 */
#include "core/pheap.h"

#include "base/invariant.h"

void pheap_init(struct pheap_link *links, uint32_t count)
{
    for (uint32_t ix = 0; ix < count; ix++) {
        links[ix] = (struct pheap_link){ID_NONE, ID_NONE, ID_NONE};
    }
}

/* Return the links of an item. */
static struct pheap_link *at(const struct pheap_forest *forest, uint32_t item)
{
    void *first = forest->links;
    void *place = (char *)first + forest->stride * item;
    return place;
}

/* Join two roots; the later in order becomes a child of the other. */
static uint32_t join(const struct pheap_forest *forest, uint32_t a, uint32_t b)
{
    if (a == ID_NONE || b == ID_NONE) {
        return a == ID_NONE ? b : a;
    }
    INVARIANT(a != b);
    if (forest->before(forest->ctx, b, a)) {
        uint32_t swapped = a;
        a = b;
        b = swapped;
    }
    struct pheap_link *parent = at(forest, a);
    struct pheap_link *child = at(forest, b);
    child->prev = a;
    child->next = parent->child;
    if (parent->child != ID_NONE) {
        at(forest, parent->child)->prev = b;
    }
    *parent = (struct pheap_link){b, ID_NONE, ID_NONE};
    return a;
}

uint32_t
pheap_add(const struct pheap_forest *forest, uint32_t root, uint32_t item)
{
    *at(forest, item) = (struct pheap_link){ID_NONE, ID_NONE, ID_NONE};
    return join(forest, root, item);
}

/* Merge a list of siblings into one heap; return its root. */
static uint32_t merge_siblings(const struct pheap_forest *forest,
                               uint32_t first)
{
    uint32_t pairs = ID_NONE;
    while (first != ID_NONE) {
        uint32_t second = at(forest, first)->next;
        INVARIANT(second == ID_NONE || at(forest, second)->prev == first);
        uint32_t rest = second != ID_NONE ? at(forest, second)->next : ID_NONE;
        uint32_t pair = join(forest, first, second);
        at(forest, pair)->next = pairs;
        pairs = pair;
        first = rest;
    }
    uint32_t root = ID_NONE;
    while (pairs != ID_NONE) {
        uint32_t rest = at(forest, pairs)->next;
        root = join(forest, root, pairs);
        pairs = rest;
    }
    if (root != ID_NONE) {
        at(forest, root)->next = ID_NONE;
        at(forest, root)->prev = ID_NONE;
    }
    return root;
}

uint32_t
pheap_remove(const struct pheap_forest *forest, uint32_t root, uint32_t item)
{
    INVARIANT(root != ID_NONE);
    uint32_t children = merge_siblings(forest, at(forest, item)->child);
    if (item != root) {
        uint32_t prev = at(forest, item)->prev;
        INVARIANT(prev != ID_NONE);
        INVARIANT(at(forest, root)->prev == ID_NONE);
        if (at(forest, prev)->child == item) {
            at(forest, prev)->child = at(forest, item)->next;
        } else {
            INVARIANT(at(forest, prev)->next == item);
            at(forest, prev)->next = at(forest, item)->next;
        }
        if (at(forest, item)->next != ID_NONE) {
            INVARIANT(at(forest, at(forest, item)->next)->prev == item);
            at(forest, at(forest, item)->next)->prev = prev;
        }
        children = join(forest, root, children);
    }
    *at(forest, item) = (struct pheap_link){ID_NONE, ID_NONE, ID_NONE};
    return children;
}
