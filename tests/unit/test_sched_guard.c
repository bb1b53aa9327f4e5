/* SPDX-License-Identifier: MIT */
#include "tests/unit/sched_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Add a guard, which goes first, and let the next tasks have it. */
static void add_guard(struct fixture *f)
{
    f->spec.estimate_ns = 9 * MINUTE;
    struct task_id guard = fixture_task(f, "guard", "");
    f->spec.estimate_ns = MINUTE;
    f->spec.guard = guard.v + 1;
}

static void set_up(struct fixture *f, int64_t cap)
{
    fixture_init(f);
    fixture_cap(f, cap);
    add_guard(f);
}

static void a_guard_stops_nothing_unless_it_is_parked(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, 3);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "a");
    assert_string_equal(fixture_run_pass(&f), "guard a");
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_done(&f, "guard b");
    (void)fixture_run_pass(&f);
    assert_int_equal(f.quiet, 1);
    fixture_release(&f);
}

static void while_it_is_parked_running_tasks_go_on_and_none_starts(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, 3);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "a");
    f.spec.guard = 0;
    fixture_task(&f, "free", "");
    assert_string_equal(fixture_run_pass(&f), "guard a free");
    fixture_end(&f, "guard", OUTCOME_BLOCKED);
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_state(&f, "b"), TASK_READY);
    struct why why = fixture_why(&f, "b");
    assert_int_equal(why.code, WHY_BLOCKED);
    assert_int_equal(why.task.v, fixture_id(&f, "guard").v);
    assert_int_equal(f.quiet, 0); /* free runs */
    fixture_done(&f, "free");
    (void)fixture_run_pass(&f);
    assert_int_equal(f.quiet, 1);
    fixture_order(&f, EVENT_RETRY, "guard");
    assert_string_equal(fixture_run_pass(&f), "guard b");
    fixture_release(&f);
}

static void a_guard_that_is_skipped_lets_them_start(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, 1);
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "guard");
    fixture_end(&f, "guard", OUTCOME_BLOCKED);
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_order(&f, EVENT_SKIP, "guard");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_release(&f);
}

static void a_task_added_behind_a_parked_guard_waits(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, 1);
    (void)fixture_run_pass(&f);
    fixture_end(&f, "guard", OUTCOME_BLOCKED);
    (void)fixture_run_pass(&f);
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(f.quiet, 1);
    fixture_order(&f, EVENT_RETRY, "guard");
    assert_string_equal(fixture_run_pass(&f), "guard");
    fixture_release(&f);
}

/* Groups of a closed guard must not keep the units of open groups. */
static void a_closed_group_gives_its_units_back(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(3), fixture_max(1)};
    limits[1].hold_group = true;
    fixture_run(&f, SCHED_RANK, limits, 2);
    f.spec.group = fixture_group(&f, 0, 0);
    add_guard(&f);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "a");
    f.spec.guard = 0;
    f.spec.group = fixture_group(&f, 0, 0);
    fixture_task(&f, "free", "");
    assert_string_equal(fixture_run_pass(&f), "guard a");
    fixture_end(&f, "guard", OUTCOME_BLOCKED);
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_used(&f, 1), 1); /* a runs */
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "free");
    fixture_order(&f, EVENT_RETRY, "guard");
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_done(&f, "free");
    assert_string_equal(fixture_run_pass(&f), "guard b");
    fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_guard_stops_nothing_unless_it_is_parked),
        cmocka_unit_test(
            while_it_is_parked_running_tasks_go_on_and_none_starts),
        cmocka_unit_test(a_guard_that_is_skipped_lets_them_start),
        cmocka_unit_test(a_task_added_behind_a_parked_guard_waits),
        cmocka_unit_test(a_closed_group_gives_its_units_back),
    };
    return cmocka_run_group_tests_name("sched_guard", tests, NULL, NULL);
}
