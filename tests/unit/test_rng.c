/* SPDX-License-Identifier: MIT */
#include "base/rng.h"

#include "tests/support/death.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void gives_the_published_sequence_of_splitmix64(void **state)
{
    (void)state;
    static const uint64_t expected[] = {
        UINT64_C(6457827717110365317),
        UINT64_C(3203168211198807973),
        UINT64_C(9817491932198370423),
        UINT64_C(4593380528125082431),
        UINT64_C(16408922859458223821),
    };
    struct rng rng;
    rng_init(&rng, 1234567);
    for (size_t ix = 0; ix < sizeof(expected) / sizeof(expected[0]); ix++) {
        assert_true(rng_next(&rng) == expected[ix]);
    }
}

static void equal_seeds_give_equal_sequences(void **state)
{
    (void)state;
    struct rng a;
    struct rng b;
    rng_init(&a, 42);
    rng_init(&b, 42);
    for (int ix = 0; ix < 1000; ix++) {
        assert_true(rng_next(&a) == rng_next(&b));
    }
}

static void neighbouring_seeds_give_other_sequences(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct rng a;
        struct rng b;
        rng_init(&a, seed);
        rng_init(&b, seed + 1);
        assert_true(rng_next(&a) != rng_next(&b));
    }
}

static void a_copy_goes_its_own_way(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 7);
    struct rng copy = rng;
    uint64_t first = rng_next(&rng);
    (void)rng_next(&rng);
    assert_true(rng_next(&copy) == first);
}

static void below_stays_below_and_reaches_all(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 1);
    uint32_t counts[10] = {0};
    for (int ix = 0; ix < 10000; ix++) {
        uint32_t value = rng_below(&rng, 10);
        assert_true(value < 10);
        counts[value]++;
    }
    for (int ix = 0; ix < 10; ix++) {
        assert_in_range(counts[ix], 800, 1200);
    }
}

static void below_knows_the_smallest_and_the_largest_bound(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 1);
    uint32_t largest = 0;
    for (int ix = 0; ix < 1000; ix++) {
        assert_int_equal(rng_below(&rng, 1), 0);
        uint32_t value = rng_below(&rng, UINT32_MAX);
        assert_true(value < UINT32_MAX);
        largest = value > largest ? value : largest;
    }
    assert_true(largest > UINT32_MAX / 100 * 98);
}

static void draw_below_zero(void *ctx)
{
    struct rng rng;
    rng_init(&rng, 1);
    *(uint32_t *)ctx = rng_below(&rng, 0);
}

static void below_nothing_is_a_bug(void **state)
{
    (void)state;
    uint32_t value = 0;
    death_expect(draw_below_zero, &value, "bound > 0");
}

static void unit_is_from_zero_to_below_one(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 3);
    double sum = 0;
    for (int ix = 0; ix < 10000; ix++) {
        double value = rng_unit(&rng);
        assert_true(value >= 0 && value < 1);
        sum += value;
    }
    assert_true(sum > 4900 && sum < 5100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_the_published_sequence_of_splitmix64),
        cmocka_unit_test(equal_seeds_give_equal_sequences),
        cmocka_unit_test(neighbouring_seeds_give_other_sequences),
        cmocka_unit_test(a_copy_goes_its_own_way),
        cmocka_unit_test(below_stays_below_and_reaches_all),
        cmocka_unit_test(below_knows_the_smallest_and_the_largest_bound),
        cmocka_unit_test(below_nothing_is_a_bug),
        cmocka_unit_test(unit_is_from_zero_to_below_one),
    };
    return cmocka_run_group_tests_name("rng", tests, NULL, NULL);
}
