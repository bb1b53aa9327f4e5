/* SPDX-License-Identifier: MIT */
/*
 * The faults that the simulator asks for.
 */
#include "sim/store/memory.h"

#include "tests/contract/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct plan {
    enum store_memory_moment moment;
    enum err err;
    uint32_t asked;
};

static enum err
strike(void *ctx, enum store_memory_moment moment, const struct store_batch *b)
{
    struct plan *plan = ctx;
    assert_non_null(b);
    plan->asked++;
    return moment == plan->moment ? plan->err : ERR_OK;
}

static void a_full_disk_writes_nothing_and_can_be_tried_again(void **state)
{
    struct fixture *fixture = *state;
    uint64_t epoch = 0;
    struct store *store = fixture_take(fixture, &epoch);
    struct plan plan = {.moment = STORE_MEMORY_BEFORE, .err = ERR_LIMIT};
    store_memory_set_fault(fixture->db, strike, &plan);
    assert_int_equal(fixture_write_one(store, epoch, fixture_run(1, "wave")),
                     ERR_LIMIT);
    assert_int_equal(plan.asked, 1);
    assert_int_equal(fixture_info(store).last_run, 0);
    store_memory_set_fault(fixture->db, NULL, NULL);
    assert_int_equal(fixture_write_one(store, epoch, fixture_run(1, "wave")),
                     ERR_OK);
    assert_int_equal(fixture_info(store).last_run, 1);
    store_close(store);
}

static void a_failed_disk_has_written_all_or_nothing(void **state)
{
    struct fixture *fixture = *state;
    for (uint32_t after = 0; after < 2; after++) {
        uint64_t epoch = 0;
        struct store *store = fixture_take(fixture, &epoch);
        struct plan plan = {
            .moment = after == 0 ? STORE_MEMORY_BEFORE : STORE_MEMORY_AFTER,
            .err = ERR_IO,
        };
        store_memory_set_fault(fixture->db, strike, &plan);
        assert_int_equal(
            fixture_write_one(store, epoch, fixture_run(1, "wave")),
            ERR_IO);
        assert_int_equal(fixture_info(store).last_run, after);
        /* This process cannot write any more; the next one can. */
        store_memory_set_fault(fixture->db, NULL, NULL);
        assert_int_equal(fixture_write_one(store, epoch, fixture_order("cap")),
                         ERR_IO);
        store_close(store);
    }
    uint64_t epoch = 0;
    struct store *store = fixture_take(fixture, &epoch);
    assert_int_equal(epoch, 3);
    assert_int_equal(fixture_write_one(store, epoch, fixture_order("cap")),
                     ERR_OK);
    store_close(store);
}

static void a_write_that_does_not_fit_asks_for_no_fault(void **state)
{
    struct fixture *fixture = *state;
    uint64_t epoch = 0;
    struct store *store = fixture_take(fixture, &epoch);
    struct plan plan = {.moment = STORE_MEMORY_AFTER, .err = ERR_IO};
    store_memory_set_fault(fixture->db, strike, &plan);
    assert_int_equal(fixture_write_one(store, epoch, fixture_end(5)),
                     ERR_CONFLICT);
    assert_int_equal(plan.asked, 0);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_full_disk_writes_nothing_and_can_be_tried_again,
            fixture_set_up_memory,
            fixture_tear_down),
        cmocka_unit_test_setup_teardown(
            a_failed_disk_has_written_all_or_nothing,
            fixture_set_up_memory,
            fixture_tear_down),
        cmocka_unit_test_setup_teardown(
            a_write_that_does_not_fit_asks_for_no_fault,
            fixture_set_up_memory,
            fixture_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
