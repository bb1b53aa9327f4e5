/* SPDX-License-Identifier: MIT */
#include "core/pheap.h"

#include "base/rng.h"
#include "tests/support/death.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { ITEMS = 64, ROUNDS = 20000 };

struct heaps {
    struct pheap_link links[ITEMS];
    uint32_t keys[ITEMS];
    struct pheap_forest forest;
};

static bool key_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct heaps *heaps = ctx;
    return heaps->keys[a] != heaps->keys[b] ? heaps->keys[a] < heaps->keys[b]
                                            : a < b;
}

static void heaps_init(struct heaps *heaps)
{
    *heaps = (struct heaps){0};
    pheap_init(heaps->links, ITEMS);
    heaps->forest = (struct pheap_forest){
        heaps->links,
        sizeof(heaps->links[0]),
        key_before,
        heaps,
    };
}

static uint32_t add(struct heaps *heaps, uint32_t root, uint32_t item)
{
    return pheap_add(&heaps->forest, root, item);
}

static uint32_t take(struct heaps *heaps, uint32_t root, uint32_t item)
{
    return pheap_remove(&heaps->forest, root, item);
}

static void assert_unlinked(const struct heaps *heaps, uint32_t item)
{
    assert_int_equal(heaps->links[item].child, ID_NONE);
    assert_int_equal(heaps->links[item].next, ID_NONE);
    assert_int_equal(heaps->links[item].prev, ID_NONE);
}

static void a_new_item_is_in_no_heap(void **state)
{
    (void)state;
    struct heaps heaps;
    heaps_init(&heaps);
    for (uint32_t item = 0; item < ITEMS; item++) {
        assert_unlinked(&heaps, item);
    }
}

static void a_heap_of_one_is_empty_after_its_removal(void **state)
{
    (void)state;
    struct heaps heaps;
    heaps_init(&heaps);
    uint32_t root = add(&heaps, ID_NONE, 5);
    assert_int_equal(root, 5);
    root = take(&heaps, root, 5);
    assert_int_equal(root, ID_NONE);
    assert_unlinked(&heaps, 5);
}

static void items_come_out_in_order(void **state)
{
    (void)state;
    struct heaps heaps;
    heaps_init(&heaps);
    uint32_t root = ID_NONE;
    for (uint32_t item = 0; item < ITEMS; item++) {
        heaps.keys[item] = (item * 29) % ITEMS;
        root = add(&heaps, root, item);
    }
    for (uint32_t key = 0; key < ITEMS; key++) {
        assert_int_equal(heaps.keys[root], key);
        uint32_t best = root;
        root = take(&heaps, root, best);
        assert_unlinked(&heaps, best);
    }
    assert_int_equal(root, ID_NONE);
}

static void any_item_can_be_removed(void **state)
{
    (void)state;
    /* 0 to 6 in order; after the first removal the heap has several levels. */
    for (uint32_t gone = 1; gone < 7; gone++) {
        struct heaps heaps;
        heaps_init(&heaps);
        uint32_t root = ID_NONE;
        for (uint32_t item = 0; item < 7; item++) {
            heaps.keys[item] = item;
            root = add(&heaps, root, item);
        }
        root = take(&heaps, root, 0);
        root = take(&heaps, root, gone);
        assert_unlinked(&heaps, gone);
        for (uint32_t item = 1; item < 7; item++) {
            if (item != gone) {
                assert_int_equal(root, item);
                root = take(&heaps, root, item);
            }
        }
        assert_int_equal(root, ID_NONE);
    }
}

static void a_removed_item_can_come_back_elsewhere(void **state)
{
    (void)state;
    struct heaps heaps;
    heaps_init(&heaps);
    uint32_t first = add(&heaps, add(&heaps, ID_NONE, 1), 2);
    uint32_t second = add(&heaps, ID_NONE, 3);
    first = take(&heaps, first, 2);
    heaps.keys[2] = 1; /* behind 3 */
    second = add(&heaps, second, 2);
    assert_int_equal(first, 1);
    assert_int_equal(second, 3);
    assert_int_equal(take(&heaps, first, 1), ID_NONE);
    assert_int_equal(take(&heaps, second, 3), 2);
}

/* Which heap each item is in, and the best of one, by looking at all. */
static uint32_t
best_of(const struct heaps *heaps, const uint32_t *where, uint32_t heap)
{
    uint32_t best = ID_NONE;
    for (uint32_t item = 0; item < ITEMS; item++) {
        if (where[item] == heap &&
            (best == ID_NONE || key_before(heaps, item, best))) {
            best = item;
        }
    }
    return best;
}

static void random_heaps_agree_with_looking_at_all(void **state)
{
    (void)state;
    enum { HEAPS = 3 };
    struct heaps heaps;
    heaps_init(&heaps);
    struct rng rng;
    rng_init(&rng, 11);
    uint32_t roots[HEAPS] = {ID_NONE, ID_NONE, ID_NONE};
    uint32_t where[ITEMS];
    for (uint32_t item = 0; item < ITEMS; item++) {
        where[item] = ID_NONE;
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t item = rng_below(&rng, ITEMS);
        uint32_t heap = where[item];
        if (heap == ID_NONE) {
            heap = rng_below(&rng, HEAPS);
            heaps.keys[item] = rng_below(&rng, 20);
            where[item] = heap;
            roots[heap] = add(&heaps, roots[heap], item);
        } else {
            item = rng_below(&rng, 2) == 0 ? roots[heap] : item;
            where[item] = ID_NONE;
            roots[heap] = take(&heaps, roots[heap], item);
            assert_unlinked(&heaps, item);
        }
        assert_int_equal(roots[heap], best_of(&heaps, where, heap));
    }
}

static void remove_from_empty(void *ctx)
{
    struct heaps *heaps = ctx;
    (void)take(heaps, ID_NONE, 1);
}

static void remove_stranger(void *ctx)
{
    struct heaps *heaps = ctx;
    (void)take(heaps, 1, 2);
}

/* Item 3 is a child of 1, which is no root. */
static void remove_by_a_child(void *ctx)
{
    struct heaps *heaps = ctx;
    (void)take(heaps, 1, 3);
}

static void misuse_stops_the_program(void **state)
{
    (void)state;
    struct heaps heaps;
    heaps_init(&heaps);
    (void)add(&heaps, ID_NONE, 1);
    death_expect(remove_from_empty, &heaps, "root != ID_NONE");
    death_expect(remove_stranger, &heaps, "prev != ID_NONE");
    heaps.keys[0] = 0;
    heaps.keys[1] = 1;
    heaps.keys[3] = 3;
    uint32_t root = add(&heaps, 1, 3);
    root = add(&heaps, root, 0);
    assert_int_equal(root, 0);
    death_expect(remove_by_a_child,
                 &heaps,
                 "at(forest, root)->prev == ID_NONE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_item_is_in_no_heap),
        cmocka_unit_test(a_heap_of_one_is_empty_after_its_removal),
        cmocka_unit_test(items_come_out_in_order),
        cmocka_unit_test(any_item_can_be_removed),
        cmocka_unit_test(a_removed_item_can_come_back_elsewhere),
        cmocka_unit_test(random_heaps_agree_with_looking_at_all),
        cmocka_unit_test(misuse_stops_the_program),
    };
    return cmocka_run_group_tests_name("pheap", tests, NULL, NULL);
}
