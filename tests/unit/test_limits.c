/* SPDX-License-Identifier: MIT */
#include "core/limits.h"

#include "tests/support/death.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { REPO = 1, CLASS = 2, OTHER = 3 };

static struct limit_spec plain(int64_t max)
{
    return (struct limit_spec){.max = max, .per = ID_NONE, .share = ID_NONE};
}

static uint32_t add(struct limits *limits, struct limit_spec spec)
{
    return limits_add(limits, &spec);
}

static uint32_t add_percent(struct limits *limits, uint32_t percent)
{
    struct limit_spec spec = plain(0);
    spec.percent = percent;
    spec.base = 0;
    return add(limits, spec);
}

static bool matches(const struct limits *limits,
                    uint32_t limit,
                    const struct attribute *attributes,
                    uint32_t count)
{
    uint32_t key = 0;
    return limits_match(limits, limit, attributes, count, &key);
}

static void a_number_is_the_maximum(void **state)
{
    (void)state;
    struct limits limits = {0};
    uint32_t three = add(&limits, plain(3));
    uint32_t none = add(&limits, plain(LIMIT_NONE));
    assert_int_equal(limits.limits[three].max_now, 3);
    assert_true(limits.limits[none].max_now == LIMIT_NONE);
    assert_int_equal(limits.limits[three].kind, LIMIT_PLAN);
    limits_release(&limits);
}

static void a_percentage_is_rounded_down_but_at_least_one(void **state)
{
    (void)state;
    static const struct {
        int64_t base;
        uint32_t percent;
        int64_t share;
    } cases[] = {
        {0, 34, 1},
        {1, 34, 1},
        {2, 34, 1},
        {3, 34, 1},
        {4, 34, 1},
        {5, 34, 1},
        {6, 34, 2},
        {8, 34, 2},
        {9, 34, 3},
        {100, 34, 34},
        {3, 100, 3},
        {7, 50, 3},
        {1000, 1, 10},
        {99, 1, 1},
        {199, 1, 1},
        {250, 99, 247},
        {INT64_MAX - 1, 100, INT64_MAX - 1},
    };
    struct limits limits = {0};
    uint32_t base = add(&limits, plain(1));
    uint32_t share = add_percent(&limits, 34);
    for (uint32_t ix = 0; ix < sizeof(cases) / sizeof(cases[0]); ix++) {
        limits_set_max(&limits, base, cases[ix].base, 0);
        limits_set_max(&limits, share, 0, cases[ix].percent);
        assert_true(limits.limits[share].max_now == cases[ix].share);
    }
    limits_release(&limits);
}

static void a_percentage_of_no_maximum_is_none(void **state)
{
    (void)state;
    struct limits limits = {0};
    (void)add(&limits, plain(LIMIT_NONE));
    uint32_t share = add_percent(&limits, 34);
    assert_true(limits.limits[share].max_now == LIMIT_NONE);
    limits_release(&limits);
}

static void a_percentage_moves_when_it_is_derived_anew(void **state)
{
    (void)state;
    struct limits limits = {0};
    uint32_t base = add(&limits, plain(4));
    uint32_t half = add_percent(&limits, 50);
    assert_int_equal(limits.limits[half].max_now, 2);
    limits_set_max(&limits, base, 10, 0);
    assert_int_equal(limits.limits[half].max_now, 2);
    limits_derive(&limits, half);
    assert_int_equal(limits.limits[half].max_now, 5);
    limits_set_max(&limits, half, 7, 0); /* from a share to a number */
    assert_int_equal(limits.limits[half].max_now, 7);
    limits_release(&limits);
}

static void without_where_it_applies_to_all(void **state)
{
    (void)state;
    struct limits limits = {0};
    uint32_t limit = add(&limits, plain(1));
    const struct attribute some[] = {{REPO, 7}};
    assert_true(matches(&limits, limit, NULL, 0));
    assert_true(matches(&limits, limit, some, 1));
    limits_release(&limits);
}

static void where_must_match_in_all_its_parts(void **state)
{
    (void)state;
    struct limits limits = {0};
    struct attribute where[] = {{CLASS, 5}, {OTHER, 6}};
    struct limit_spec spec = plain(1);
    spec.where = where;
    spec.where_count = 2;
    uint32_t limit = add(&limits, spec);
    where[0].value = 99; /* the limit has its own copy */
    const struct attribute both[] = {{OTHER, 6}, {REPO, 1}, {CLASS, 5}};
    const struct attribute one[] = {{CLASS, 5}};
    const struct attribute wrong[] = {{CLASS, 5}, {OTHER, 7}};
    assert_true(matches(&limits, limit, both, 3));
    assert_false(matches(&limits, limit, one, 1));
    assert_false(matches(&limits, limit, wrong, 2));
    assert_false(matches(&limits, limit, NULL, 0));
    limits_release(&limits);
}

static void per_applies_only_to_those_with_the_attribute(void **state)
{
    (void)state;
    struct limits limits = {0};
    struct limit_spec spec = plain(1);
    spec.per = REPO;
    uint32_t limit = add(&limits, spec);
    const struct attribute in_repo[] = {{CLASS, 5}, {REPO, 7}};
    uint32_t key = 0;
    assert_true(limits_match(&limits, limit, in_repo, 2, &key));
    assert_int_equal(key, 7);
    assert_false(limits_match(&limits, limit, in_repo, 1, &key));
    uint32_t all = add(&limits, plain(1));
    assert_true(limits_match(&limits, all, in_repo, 2, &key));
    assert_int_equal(key, ID_NONE);
    limits_release(&limits);
}

static void there_is_one_pool_for_each_value(void **state)
{
    (void)state;
    struct limits limits = {0};
    struct limit_spec spec = plain(2);
    spec.per = REPO;
    uint32_t limit = add(&limits, spec);
    uint32_t a = limits_pool(&limits, limit, 1);
    uint32_t b = limits_pool(&limits, limit, 2);
    assert_int_not_equal(a, b);
    assert_int_equal(limits_pool(&limits, limit, 1), a);
    limits.counters[limits.pools[a].counter].used = 2;
    assert_int_equal(limits_free(&limits, a), 0);
    assert_int_equal(limits_free(&limits, b), 2);
    limits_release(&limits);
}

static void many_pools_and_limits_keep_their_places(void **state)
{
    (void)state;
    struct limits limits = {0};
    enum { LIMITS = 40, VALUES = 30 };
    static uint32_t pools[LIMITS][VALUES];
    for (uint32_t ix = 0; ix < LIMITS; ix++) {
        struct limit_spec spec = plain(ix);
        spec.per = REPO;
        assert_int_equal(add(&limits, spec), ix);
        for (uint32_t value = 0; value < VALUES; value++) {
            pools[ix][value] = limits_pool(&limits, ix, value);
        }
    }
    for (uint32_t ix = 0; ix < LIMITS; ix++) {
        uint32_t seen = 0;
        for (uint32_t value = 0; value < VALUES; value++) {
            assert_int_equal(limits_pool(&limits, ix, value), pools[ix][value]);
            assert_int_equal(limits_free(&limits, pools[ix][value]), ix);
        }
        for (uint32_t pool = limits.limits[ix].first_pool; pool != ID_NONE;
             pool = limits.pools[pool].next_of_limit) {
            assert_int_equal(limits.pools[pool].limit, ix);
            seen++;
        }
        assert_int_equal(seen, VALUES);
    }
    limits_release(&limits);
}

static void limits_of_equal_share_count_together(void **state)
{
    (void)state;
    struct limits limits = {0};
    struct limit_spec spec = plain(3);
    spec.per = REPO;
    spec.share = 9;
    uint32_t a = add(&limits, spec);
    spec.max = 1;
    uint32_t b = add(&limits, spec);
    spec.share = ID_NONE;
    uint32_t own = add(&limits, spec);
    uint32_t pool_a = limits_pool(&limits, a, 4);
    uint32_t pool_b = limits_pool(&limits, b, 4);
    uint32_t pool_own = limits_pool(&limits, own, 4);
    uint32_t elsewhere = limits_pool(&limits, b, 5);
    uint32_t counter = limits.pools[pool_a].counter;
    assert_int_equal(limits.pools[pool_b].counter, counter);
    assert_int_not_equal(limits.pools[pool_own].counter, counter);
    assert_int_not_equal(limits.pools[elsewhere].counter, counter);
    limits.counters[counter].used = 2;
    assert_int_equal(limits_free(&limits, pool_a), 1);
    assert_int_equal(limits_free(&limits, pool_b), -1); /* more than it has */
    assert_int_equal(limits_free(&limits, pool_own), 1);
    limits_release(&limits);
}

/* A share is a number of its own: share 0 is not limit 0. */
static void a_share_is_not_taken_for_a_limit(void **state)
{
    (void)state;
    struct limits limits = {0};
    uint32_t first = add(&limits, plain(3));
    struct limit_spec spec = plain(3);
    spec.share = first;
    uint32_t shared = add(&limits, spec);
    uint32_t pool = limits_pool(&limits, first, ID_NONE);
    uint32_t other = limits_pool(&limits, shared, ID_NONE);
    assert_int_not_equal(limits.pools[pool].counter,
                         limits.pools[other].counter);
    limits_release(&limits);
}

static void an_added_pool_is_open(void **state)
{
    (void)state;
    struct limits limits = {0};
    uint32_t pool = limits_add_pool(&limits, LIMIT_PROVIDER_POOL, 12);
    uint32_t limit = limits.pools[pool].limit;
    assert_int_equal(limits.limits[limit].kind, LIMIT_PROVIDER_POOL);
    assert_int_equal(limits.limits[limit].owner, 12);
    assert_true(limits_free(&limits, pool) > 0);
    assert_int_equal(limits_reserved(&limits, pool), ID_NONE);
    limits_set_max(&limits, limit, 0, 0);
    assert_int_equal(limits_free(&limits, pool), 0);
    limits.counters[limits.pools[pool].counter].reserved_for = 77;
    assert_int_equal(limits_reserved(&limits, pool), 77);
    limits_release(&limits);
}

static void bytes_grow_with_the_pools_and_go_with_the_release(void **state)
{
    (void)state;
    struct limits limits = {0};
    assert_int_equal(limits_bytes(&limits), 0);
    uint32_t limit = add(&limits, plain(1));
    size_t before = limits_bytes(&limits);
    for (uint32_t value = 0; value < 100; value++) {
        (void)limits_pool(&limits, limit, value);
    }
    assert_true(limits_bytes(&limits) > before);
    limits_release(&limits);
    assert_int_equal(limits_bytes(&limits), 0);
}

static void pool_of_nothing(void *ctx)
{
    (void)limits_pool(ctx, 5, ID_NONE);
}

static void more_than_all(void *ctx)
{
    limits_set_max(ctx, 0, 0, 101);
}

static void less_than_nothing(void *ctx)
{
    limits_set_max(ctx, 0, -1, 0);
}

static void percent_of_itself(void *ctx)
{
    limits_set_max(ctx, 0, 0, 50);
}

static void misuse_stops_the_program(void **state)
{
    (void)state;
    struct limits limits = {0};
    (void)add(&limits, plain(1));
    death_expect(pool_of_nothing, &limits, "limit < limits->limit_count");
    death_expect(more_than_all, &limits, "percent <= 100");
    death_expect(less_than_nothing, &limits, "max >= 0");
    death_expect(percent_of_itself, &limits, "base != limit");
    limits_release(&limits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_is_the_maximum),
        cmocka_unit_test(a_percentage_is_rounded_down_but_at_least_one),
        cmocka_unit_test(a_percentage_of_no_maximum_is_none),
        cmocka_unit_test(a_percentage_moves_when_it_is_derived_anew),
        cmocka_unit_test(without_where_it_applies_to_all),
        cmocka_unit_test(where_must_match_in_all_its_parts),
        cmocka_unit_test(per_applies_only_to_those_with_the_attribute),
        cmocka_unit_test(there_is_one_pool_for_each_value),
        cmocka_unit_test(many_pools_and_limits_keep_their_places),
        cmocka_unit_test(limits_of_equal_share_count_together),
        cmocka_unit_test(a_share_is_not_taken_for_a_limit),
        cmocka_unit_test(an_added_pool_is_open),
        cmocka_unit_test(bytes_grow_with_the_pools_and_go_with_the_release),
        cmocka_unit_test(misuse_stops_the_program),
    };
    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
