/* SPDX-License-Identifier: MIT */
#include "core/idmap.h"

#include "tests/support/death.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MANY = 20000 };

/* Keys that are far apart and close together. */
static uint64_t key_of(uint32_t ix)
{
    return ix % 2 == 0 ? ix : UINT64_MAX - (uint64_t)ix * 4096;
}

static void an_empty_map_knows_no_key(void **state)
{
    (void)state;
    struct idmap map = {0};
    assert_int_equal(idmap_get(&map, 0), ID_NONE);
    assert_int_equal(idmap_get(&map, UINT64_MAX), ID_NONE);
    assert_int_equal(idmap_bytes(&map), 0);
    idmap_release(&map);
}

static void a_key_has_the_value_that_was_put(void **state)
{
    (void)state;
    struct idmap map = {0};
    idmap_put(&map, 0, 7);
    idmap_put(&map, UINT64_MAX, 0);
    assert_int_equal(idmap_get(&map, 0), 7);
    assert_int_equal(idmap_get(&map, UINT64_MAX), 0);
    assert_int_equal(idmap_get(&map, 1), ID_NONE);
    assert_int_equal(map.count, 2);
    idmap_release(&map);
}

static void putting_again_replaces_the_value(void **state)
{
    (void)state;
    struct idmap map = {0};
    idmap_put(&map, 42, 1);
    idmap_put(&map, 42, 2);
    assert_int_equal(idmap_get(&map, 42), 2);
    assert_int_equal(map.count, 1);
    idmap_release(&map);
}

static void many_keys_survive_growing(void **state)
{
    (void)state;
    struct idmap map = {0};
    for (uint32_t ix = 0; ix < MANY; ix++) {
        assert_int_equal(idmap_get(&map, key_of(ix)), ID_NONE);
        idmap_put(&map, key_of(ix), ix);
    }
    assert_int_equal(map.count, MANY);
    for (uint32_t ix = 0; ix < MANY; ix++) {
        assert_int_equal(idmap_get(&map, key_of(ix)), ix);
    }
    assert_int_equal(idmap_get(&map, UINT64_C(1) << 40), ID_NONE);
    /* A power of two, never more than three quarters full. */
    assert_int_equal(map.slot_count & (map.slot_count - 1), 0);
    assert_true(map.count * UINT64_C(4) <= map.slot_count * UINT64_C(3));
    assert_int_equal(idmap_bytes(&map),
                     map.slot_count * sizeof(struct idmap_slot));
    idmap_release(&map);
}

static void a_released_map_is_empty(void **state)
{
    (void)state;
    struct idmap map = {0};
    idmap_put(&map, 3, 4);
    idmap_release(&map);
    assert_int_equal(idmap_get(&map, 3), ID_NONE);
    assert_int_equal(idmap_bytes(&map), 0);
    idmap_put(&map, 3, 5);
    assert_int_equal(idmap_get(&map, 3), 5);
    idmap_release(&map);
    idmap_release(&map);
}

static void the_hash_depends_on_every_step_and_their_order(void **state)
{
    (void)state;
    uint64_t one_two = idmap_hash(idmap_hash(0, 1), 2);
    assert_true(one_two == idmap_hash(idmap_hash(0, 1), 2));
    assert_true(one_two != idmap_hash(idmap_hash(0, 2), 1));
    assert_true(one_two != idmap_hash(0, 2));
    for (uint32_t bit = 0; bit < 64; bit++) {
        assert_true(idmap_hash(0, UINT64_C(1) << bit) != idmap_hash(0, 0));
    }
}

static void put_none(void *ctx)
{
    idmap_put(ctx, 1, ID_NONE);
}

static void none_is_no_value(void **state)
{
    (void)state;
    struct idmap map = {0};
    death_expect(put_none, &map, "value != ID_NONE");
    idmap_release(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map_knows_no_key),
        cmocka_unit_test(a_key_has_the_value_that_was_put),
        cmocka_unit_test(putting_again_replaces_the_value),
        cmocka_unit_test(many_keys_survive_growing),
        cmocka_unit_test(a_released_map_is_empty),
        cmocka_unit_test(the_hash_depends_on_every_step_and_their_order),
        cmocka_unit_test(none_is_no_value),
    };
    return cmocka_run_group_tests_name("idmap", tests, NULL, NULL);
}
