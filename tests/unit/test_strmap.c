/* SPDX-License-Identifier: MIT */
#include "base/strmap.h"

#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { KEYS = 5000 };

static void an_empty_map_has_nothing(void **state)
{
    (void)state;
    struct strmap map = {0};
    assert_int_equal(strmap_find(&map, "a", 1), STRMAP_NONE);
    strmap_remove(&map, "a");
    strmap_release(&map);
}

static void keeps_the_first_value_of_a_key(void **state)
{
    (void)state;
    struct strmap map = {0};
    assert_int_equal(strmap_add(&map, "a", 7), STRMAP_NONE);
    assert_int_equal(strmap_add(&map, "a", 8), 7);
    assert_int_equal(strmap_find(&map, "a", 1), 7);
    assert_int_equal(map.count, 1);
    strmap_release(&map);
}

static void the_length_counts_not_the_nul(void **state)
{
    (void)state;
    struct strmap map = {0};
    (void)strmap_add(&map, "", 1);
    (void)strmap_add(&map, "ab", 2);
    (void)strmap_add(&map, "abcdefghij", 3);
    assert_int_equal(strmap_find(&map, "abc", 0), 1);
    assert_int_equal(strmap_find(&map, "abc", 2), 2);
    assert_int_equal(strmap_find(&map, "abc", 3), STRMAP_NONE);
    assert_int_equal(strmap_find(&map, "a", 1), STRMAP_NONE);
    assert_int_equal(strmap_find(&map, "abcdefghijk", 10), 3);
    assert_int_equal(strmap_find(&map, "abcdefghi", 9), STRMAP_NONE);
    strmap_release(&map);
}

/* Adds and removes at random, and compares with an array of flags. */
static void agrees_with_a_model(void **state)
{
    (void)state;
    static char keys[KEYS][16];
    static uint8_t there[KEYS];
    struct strmap map = {0};
    struct rng rng;
    rng_init(&rng, 42);
    for (uint32_t ix = 0; ix < KEYS; ix++) {
        (void)snprintf(keys[ix], sizeof(keys[ix]), "task-%u", ix * 7);
    }
    uint32_t count = 0;
    for (int round = 0; round < 200000; round++) {
        uint32_t ix = rng_below(&rng, KEYS);
        if (rng_below(&rng, 2) == 0) {
            uint32_t was = strmap_add(&map, keys[ix], ix);
            assert_int_equal(was, there[ix] ? ix : STRMAP_NONE);
            count += there[ix] ? 0 : 1;
            there[ix] = 1;
        } else {
            strmap_remove(&map, keys[ix]);
            count -= there[ix] ? 1 : 0;
            there[ix] = 0;
        }
        assert_int_equal(map.count, count);
    }
    for (uint32_t ix = 0; ix < KEYS; ix++) {
        uint32_t found = strmap_find(&map, keys[ix], strlen(keys[ix]));
        assert_int_equal(found, there[ix] ? ix : STRMAP_NONE);
    }
    strmap_release(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map_has_nothing),
        cmocka_unit_test(keeps_the_first_value_of_a_key),
        cmocka_unit_test(the_length_counts_not_the_nul),
        cmocka_unit_test(agrees_with_a_model),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("strmap", tests, NULL, NULL);
}
