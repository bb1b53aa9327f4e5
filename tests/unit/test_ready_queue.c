/* SPDX-License-Identifier: MIT */
#include "core/ready_queue.h"

#include "base/rng.h"
#include "tests/support/death.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { ITEMS = 50, ROUNDS = 20000 };

struct owner {
    uint32_t stamps[ITEMS]; /* 0: not in the queue */
    struct ready_key keys[ITEMS];
    struct ready_queue queue;
    enum ready_end end;
};

static uint32_t stamp_of(const void *ctx, uint32_t item)
{
    const struct owner *owner = ctx;
    return owner->stamps[item];
}

static void push(struct owner *owner, uint32_t item, struct ready_key key)
{
    owner->stamps[item]++;
    owner->keys[item] = key;
    struct ready_entry entry = {key, item, owner->stamps[item]};
    ready_queue_push(&owner->queue, owner->end, entry, stamp_of, owner);
}

/* The item at the top, or ID_NONE. */
static uint32_t top(struct owner *owner)
{
    const struct ready_entry *entry =
        ready_queue_top(&owner->queue, owner->end, stamp_of, owner);
    return entry != NULL ? entry->item : ID_NONE;
}

static void an_empty_queue_has_no_top(void **state)
{
    (void)state;
    struct owner owner = {0};
    assert_int_equal(top(&owner), ID_NONE);
    ready_queue_reserve(&owner.queue, 4);
    assert_int_equal(top(&owner), ID_NONE);
    ready_queue_release(&owner.queue);
    ready_queue_release(&owner.queue);
}

static void keys_are_compared_high_middle_low(void **state)
{
    (void)state;
    const struct ready_key ordered[] = {
        {0, 0, 0},
        {0, 0, 1},
        {0, 1, 0},
        {0, UINT64_MAX, UINT64_MAX},
        {1, 0, 0},
        {UINT64_MAX, 0, 0},
    };
    for (uint32_t a = 0; a < ARRAY_COUNT(ordered); a++) {
        for (uint32_t b = 0; b < ARRAY_COUNT(ordered); b++) {
            assert_int_equal(ready_key_before(&ordered[a], &ordered[b]), a < b);
        }
    }
}

static void the_best_is_on_top_whatever_came_first(void **state)
{
    (void)state;
    struct owner owner = {0};
    ready_queue_reserve(&owner.queue, ITEMS);
    for (uint32_t item = 0; item < ITEMS; item++) {
        push(&owner, item, (struct ready_key){0, (item * 17) % ITEMS, 0});
    }
    for (uint32_t place = 0; place < ITEMS; place++) {
        uint32_t item = top(&owner);
        assert_int_equal(owner.keys[item].middle, place);
        assert_int_equal(top(&owner), item); /* looking takes nothing out */
        owner.stamps[item] = 0;
    }
    assert_int_equal(top(&owner), ID_NONE);
    assert_int_equal(owner.queue.count[READY_FRONT], 0);
    ready_queue_release(&owner.queue);
}

static void an_old_stamp_is_dropped_when_it_surfaces(void **state)
{
    (void)state;
    struct owner owner = {0};
    ready_queue_reserve(&owner.queue, 3);
    push(&owner, 1, (struct ready_key){1, 0, 0});
    push(&owner, 2, (struct ready_key){2, 0, 0});
    push(&owner, 1, (struct ready_key){3, 0, 0}); /* worse than before */
    assert_int_equal(owner.queue.count[READY_FRONT], 3);
    assert_int_equal(top(&owner), 2);
    assert_int_equal(owner.queue.count[READY_FRONT], 2);
    owner.stamps[2] = 0;
    assert_int_equal(top(&owner), 1);
    ready_queue_release(&owner.queue);
}

static void the_dead_are_thrown_out_when_it_is_full(void **state)
{
    (void)state;
    struct owner owner = {0};
    ready_queue_reserve(&owner.queue, 10);
    uint32_t capacity = owner.queue.capacity;
    for (uint32_t item = 0; item < 10; item++) {
        push(&owner, item, (struct ready_key){0, item, 0});
    }
    for (uint32_t round = 0; round < 1000; round++) {
        /* Its entry goes to the end: the old ones in front die. */
        push(&owner, round % 10, (struct ready_key){0, 10 + round, 0});
        assert_true(owner.queue.count[READY_FRONT] <= capacity);
        assert_int_equal(top(&owner), (round + 1) % 10);
    }
    assert_int_equal(owner.queue.capacity, capacity);
    ready_queue_release(&owner.queue);
}

static void reserving_less_changes_nothing(void **state)
{
    (void)state;
    struct owner owner = {0};
    ready_queue_reserve(&owner.queue, 100);
    uint32_t capacity = owner.queue.capacity;
    assert_true(capacity > 100);
    push(&owner, 3, (struct ready_key){0, 0, 3});
    ready_queue_reserve(&owner.queue, 10);
    assert_int_equal(owner.queue.capacity, capacity);
    assert_int_equal(top(&owner), 3);
    ready_queue_release(&owner.queue);
}

static void random_pushes_agree_with_looking_at_all(void **state)
{
    (void)state;
    struct owner owner = {0};
    ready_queue_reserve(&owner.queue, ITEMS);
    struct rng rng;
    rng_init(&rng, 5);
    uint32_t stamp = 0; /* stamps grow over all items: none comes twice */
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t item = rng_below(&rng, ITEMS);
        if (rng_below(&rng, 4) == 0) {
            owner.stamps[item] = 0;
        } else {
            owner.stamps[item] = stamp++;
            struct ready_key key = {
                rng_below(&rng, 4),
                rng_below(&rng, 4),
                stamp,
            };
            push(&owner, item, key);
        }
        uint32_t best = ID_NONE;
        for (uint32_t ix = 0; ix < ITEMS; ix++) {
            if (owner.stamps[ix] != 0 &&
                (best == ID_NONE ||
                 ready_key_before(&owner.keys[ix], &owner.keys[best]))) {
                best = ix;
            }
        }
        assert_int_equal(top(&owner), best);
    }
    ready_queue_release(&owner.queue);
}

/* Return the best item of one end, the slow way, or ID_NONE. */
static uint32_t best_of(const struct owner *owner,
                        const enum ready_end *ends,
                        enum ready_end end)
{
    uint32_t best = ID_NONE;
    for (uint32_t ix = 0; ix < ITEMS; ix++) {
        if (owner->stamps[ix] != 0 && ends[ix] == end &&
            (best == ID_NONE ||
             ready_key_before(&owner->keys[ix], &owner->keys[best]))) {
            best = ix;
        }
    }
    return best;
}

static void two_queues_share_a_block(void **state)
{
    (void)state;
    struct owner owner = {0};
    enum ready_end ends[ITEMS] = {READY_FRONT};
    struct rng rng;
    rng_init(&rng, 6);
    ready_queue_reserve(&owner.queue, ITEMS / 2);
    uint32_t capacity = owner.queue.capacity;
    uint32_t stamp = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t item = rng_below(&rng, ITEMS);
        owner.stamps[item] = ++stamp;
        owner.end = rng_below(&rng, 2) == 0 ? READY_FRONT : READY_BACK;
        ends[item] = owner.end;
        if (round == ROUNDS / 4) {
            ready_queue_reserve(&owner.queue, ITEMS); /* both ends stay */
            assert_true(owner.queue.capacity > capacity);
        }
        if (round < ROUNDS / 4) { /* half as many fit so far */
            owner.stamps[(item + ITEMS / 2) % ITEMS] = 0;
        }
        struct ready_key key = {rng_below(&rng, 4), rng_below(&rng, 4), stamp};
        push(&owner, item, key);
        for (uint32_t end = 0; end < READY_ENDS; end++) {
            owner.end = end;
            assert_int_equal(top(&owner), best_of(&owner, ends, end));
        }
    }
    struct ready_queue copy = {0};
    ready_queue_reserve_like(&copy, &owner.queue);
    ready_queue_copy(&copy, &owner.queue);
    for (uint32_t end = 0; end < READY_ENDS; end++) {
        uint32_t first = ready_queue_at(&copy, end, 0)->item;
        assert_int_equal(copy.count[end], owner.queue.count[end]);
        assert_int_equal(first, best_of(&owner, ends, end));
    }
    ready_queue_release(&copy);
    ready_queue_release(&owner.queue);
}

static void push_one_more(void *ctx)
{
    push(ctx, 20, (struct ready_key){0, 0, 0});
}

static void more_living_than_reserved_is_a_bug(void **state)
{
    (void)state;
    struct owner owner = {0};
    ready_queue_reserve(&owner.queue, 2);
    for (uint32_t item = 0; item < owner.queue.capacity; item++) {
        push(&owner, item, (struct ready_key){0, 0, item});
    }
    death_expect(push_one_more, &owner, "!is_full(queue)");
    ready_queue_release(&owner.queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_queue_has_no_top),
        cmocka_unit_test(keys_are_compared_high_middle_low),
        cmocka_unit_test(the_best_is_on_top_whatever_came_first),
        cmocka_unit_test(an_old_stamp_is_dropped_when_it_surfaces),
        cmocka_unit_test(the_dead_are_thrown_out_when_it_is_full),
        cmocka_unit_test(reserving_less_changes_nothing),
        cmocka_unit_test(random_pushes_agree_with_looking_at_all),
        cmocka_unit_test(two_queues_share_a_block),
        cmocka_unit_test(more_living_than_reserved_is_a_bug),
    };
    return cmocka_run_group_tests_name("ready_queue", tests, NULL, NULL);
}
