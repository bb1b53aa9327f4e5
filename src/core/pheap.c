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
    struct pheap_link *links = forest->links;
    links[b].prev = a;
    links[b].next = links[a].child;
    if (links[a].child != ID_NONE) {
        links[links[a].child].prev = b;
    }
    links[a].child = b;
    links[a].next = ID_NONE;
    links[a].prev = ID_NONE;
    return a;
}

uint32_t
pheap_add(const struct pheap_forest *forest, uint32_t root, uint32_t item)
{
    forest->links[item] = (struct pheap_link){ID_NONE, ID_NONE, ID_NONE};
    return join(forest, root, item);
}

/* Merge a list of siblings into one heap; return its root. */
static uint32_t merge_siblings(const struct pheap_forest *forest,
                               uint32_t first)
{
    struct pheap_link *links = forest->links;
    uint32_t pairs = ID_NONE;
    while (first != ID_NONE) {
        uint32_t second = links[first].next;
        INVARIANT(second == ID_NONE || links[second].prev == first);
        uint32_t rest = second != ID_NONE ? links[second].next : ID_NONE;
        uint32_t pair = join(forest, first, second);
        links[pair].next = pairs;
        pairs = pair;
        first = rest;
    }
    uint32_t root = ID_NONE;
    while (pairs != ID_NONE) {
        uint32_t rest = links[pairs].next;
        root = join(forest, root, pairs);
        pairs = rest;
    }
    if (root != ID_NONE) {
        links[root].next = ID_NONE;
        links[root].prev = ID_NONE;
    }
    return root;
}

uint32_t
pheap_remove(const struct pheap_forest *forest, uint32_t root, uint32_t item)
{
    INVARIANT(root != ID_NONE);
    struct pheap_link *links = forest->links;
    uint32_t children = merge_siblings(forest, links[item].child);
    if (item != root) {
        uint32_t prev = links[item].prev;
        INVARIANT(prev != ID_NONE);
        INVARIANT(links[root].prev == ID_NONE);
        if (links[prev].child == item) {
            links[prev].child = links[item].next;
        } else {
            INVARIANT(links[prev].next == item);
            links[prev].next = links[item].next;
        }
        if (links[item].next != ID_NONE) {
            INVARIANT(links[links[item].next].prev == item);
            links[links[item].next].prev = prev;
        }
        children = join(forest, root, children);
    }
    links[item] = (struct pheap_link){ID_NONE, ID_NONE, ID_NONE};
    return children;
}
