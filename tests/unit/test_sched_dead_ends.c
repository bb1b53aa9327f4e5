/* SPDX-License-Identifier: MIT */
/* A pending task behind a dead end is skipped, whenever it comes to be so. */
#include "tests/unit/sched_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void what_ran_then_is_skipped_when_it_comes_back(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 3);
    uint32_t group = fixture_group(&f, 0, 0);
    f.spec.group = group;
    struct task_id code = fixture_task(&f, "code", "");
    f.spec.rework_to = code.v;
    f.failure.rework_max = 2;
    fixture_task(&f, "gate", "code");
    f.spec.group = ID_NONE;
    f.spec.rework_to = ID_NONE;
    f.failure = (struct sched_failure_spec){.retry_max = 3};
    fixture_task(&f, "other", "code");
    fixture_task(&f, "last", "other");
    assert_string_equal(fixture_run_pass(&f), "code");
    fixture_done(&f, "code");
    (void)fixture_run_pass(&f);
    fixture_end(&f, "gate", OUTCOME_CHANGES); /* code is done again */
    assert_string_equal(fixture_run_pass(&f), "code");
    fixture_order(&f, EVENT_CANCEL, "code");
    fixture_end(&f, "code", OUTCOME_STOPPED);
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_state(&f, "code"), TASK_CANCELLED);
    assert_int_equal(fixture_state(&f, "last"), TASK_SKIPPED);
    fixture_end(&f, "other", OUTCOME_FAILED); /* has tries left */
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_state(&f, "other"), TASK_SKIPPED);
    assert_int_equal(f.quiet, 1);
    fixture_release(&f);
}

static void what_is_revived_elsewhere_stays_cut_off(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "a", "");
    f.failure.optional = true;
    fixture_task(&f, "b", "a");
    f.failure.optional = false;
    fixture_task(&f, "c", "");
    fixture_task(&f, "d", "b c");
    fixture_order(&f, EVENT_HOLD, "a");
    fixture_order(&f, EVENT_SKIP, "b"); /* met, but a is not done */
    assert_string_equal(fixture_run_pass(&f), "c");
    fixture_end(&f, "c", OUTCOME_BLOCKED);
    fixture_order(&f, EVENT_CANCEL, "a");
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_state(&f, "d"), TASK_SKIPPED);
    fixture_order(&f, EVENT_RETRY, "c");
    assert_string_equal(fixture_run_pass(&f), "c");
    assert_int_equal(fixture_state(&f, "d"), TASK_SKIPPED);
    fixture_release(&f);
}

static void what_is_tried_again_behind_one_is_skipped(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_end(&f, "b", OUTCOME_BLOCKED);
    fixture_order(&f, EVENT_REVOKE, "a");
    fixture_order(&f, EVENT_RETRY, "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_order(&f, EVENT_CANCEL, "a");
    fixture_end(&f, "a", OUTCOME_STOPPED);
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_state(&f, "b"), TASK_PARKED);
    fixture_order(&f, EVENT_RETRY, "b");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_state(&f, "b"), TASK_SKIPPED);
    fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_ran_then_is_skipped_when_it_comes_back),
        cmocka_unit_test(what_is_revived_elsewhere_stays_cut_off),
        cmocka_unit_test(what_is_tried_again_behind_one_is_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
