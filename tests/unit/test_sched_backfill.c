/* SPDX-License-Identifier: MIT */
/* Who may pass a task that waits for many units. */
#include "tests/unit/sched_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Add a task that takes `units` sessions for so many minutes. Each has a class
 * of its own: of tasks of one queue only the best is looked at. */
static void add(struct fixture *f,
                const char *name,
                uint32_t units,
                int64_t minutes,
                int64_t max_wait_ns)
{
    struct sched_use use = {f->limits[0], units};
    f->spec.uses = &use;
    f->spec.use_count = 1;
    f->spec.class_id = fixture_class(f, 0, false, 1, max_wait_ns);
    f->spec.estimate_ns = minutes * MINUTE;
    fixture_task(f, name, "");
    f->spec.uses = NULL;
    f->spec.use_count = 0;
}

/* First come, first served: the order is that of declaration. */
static void backfill_run(struct fixture *f, int64_t cap)
{
    fixture_init(f);
    struct limit_spec limit = fixture_max(cap);
    fixture_run(f, SCHED_FIFO, &limit, 1);
}

static void what_ends_in_time_may_pass(void **state)
{
    (void)state;
    struct fixture f;
    backfill_run(&f, 4);
    add(&f, "runs", 1, 10, SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "runs");
    fixture_pass(&f, 2 * MINUTE);
    add(&f, "wide", 4, 60, SCHED_NEVER);
    add(&f, "late", 1, 9, SCHED_NEVER);
    add(&f, "equal", 1, 8, SCHED_NEVER);
    add(&f, "short", 1, 1, SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "equal short");
    fixture_done(&f, "short equal runs");
    assert_string_equal(fixture_run_pass(&f), "wide");
    fixture_release(&f);
}

static void what_fits_beside_it_may_pass(void **state)
{
    (void)state;
    struct fixture f;
    backfill_run(&f, 6);
    add(&f, "runs", 3, 10, SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "runs");
    add(&f, "wide", 4, 60, SCHED_NEVER);
    add(&f, "three", 3, 60, SCHED_NEVER); /* two are left over then */
    add(&f, "two", 2, 60, SCHED_NEVER);
    add(&f, "one", 1, 60, SCHED_NEVER); /* none is left over any more */
    assert_string_equal(fixture_run_pass(&f), "two");
    fixture_done(&f, "runs");
    assert_string_equal(fixture_run_pass(&f), "wide");
    fixture_release(&f);
}

static void the_first_ends_that_suffice_count(void **state)
{
    (void)state;
    struct fixture f;
    backfill_run(&f, 5);
    add(&f, "a", 1, 5, SCHED_NEVER);
    add(&f, "b", 1, 20, SCHED_NEVER);
    add(&f, "c", 1, 5, SCHED_NEVER);
    add(&f, "d", 1, 3, SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "a b c d");
    add(&f, "wide", 3, 60, SCHED_NEVER); /* at 5 min, with one left over */
    add(&f, "six", 1, 6, SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "six");
    fixture_done(&f, "d");
    add(&f, "five", 1, 5, SCHED_NEVER);
    add(&f, "seven", 1, 7, SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "five"); /* none is left over */
    fixture_release(&f);
}

static void an_overdue_session_ends_now(void **state)
{
    (void)state;
    struct fixture f;
    backfill_run(&f, 3);
    add(&f, "runs", 1, 1, SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "runs");
    fixture_pass(&f, 5 * MINUTE);
    add(&f, "wide", 3, 60, SCHED_NEVER);
    add(&f, "short", 1, 1, SCHED_NEVER);
    add(&f, "nothing", 1, 0, SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "nothing");
    fixture_release(&f);
}

static void nothing_passes_one_that_has_aged(void **state)
{
    (void)state;
    struct fixture f;
    backfill_run(&f, 4);
    add(&f, "runs", 1, 100, SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "runs");
    add(&f, "wide", 4, 60, 10 * MINUTE);
    fixture_pass(&f, 9 * MINUTE);
    add(&f, "a", 1, 1, SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_pass(&f, MINUTE);
    add(&f, "b", 1, 1, SCHED_NEVER);
    add(&f, "nothing", 1, 0, SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_done(&f, "runs a");
    assert_string_equal(fixture_run_pass(&f), "wide");
    fixture_release(&f);
}

static void of_equal_tasks_only_the_best_is_looked_at(void **state)
{
    (void)state;
    struct fixture f;
    backfill_run(&f, 4);
    add(&f, "runs", 1, 10, SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "runs");
    add(&f, "wide", 4, 60, SCHED_NEVER);
    f.spec.class_id = f.work;
    f.spec.estimate_ns = 11 * MINUTE;
    fixture_task(&f, "long", "");
    f.spec.estimate_ns = MINUTE;
    fixture_task(&f, "short", ""); /* behind it */
    f.spec.class_id = f.review;
    fixture_task(&f, "other", "");
    assert_string_equal(fixture_run_pass(&f), "other");
    struct why why = fixture_why(&f, "short");
    assert_int_equal(why.code, WHY_RESERVED);
    assert_int_equal(why.limit.v, f.limits[0].v);
    fixture_order(&f, EVENT_HOLD, "long");
    assert_string_equal(fixture_run_pass(&f), "short");
    fixture_release(&f);
}

static void a_batch_is_expected_to_last_longer(void **state)
{
    (void)state;
    struct fixture f;
    backfill_run(&f, 4);
    struct sched_class_spec spec = {
        .batch = 3,
        .marginal = 50,
        .max_wait_ns = SCHED_NEVER,
    };
    f.spec.class_id = sched_add_class(f.sched, &spec);
    static const int64_t minutes[] = {4, 10, 6};
    static const char *const names[] = {"a", "b", "c"};
    for (uint32_t ix = 0; ix < 3; ix++) {
        f.spec.estimate_ns = minutes[ix] * MINUTE;
        fixture_task(&f, names[ix], "");
    }
    assert_string_equal(fixture_run_pass(&f), "a+b+c"); /* for 15 minutes */
    add(&f, "wide", 4, 60, SCHED_NEVER);
    add(&f, "late", 1, 16, SCHED_NEVER);
    add(&f, "equal", 1, 15, SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "equal");
    fixture_release(&f);
}

static void other_limits_are_not_reserved(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(9), fixture_max(3)};
    limits[1].resource = true;
    fixture_run(&f, SCHED_FIFO, limits, 2);
    f.limits[0] = f.limits[1];
    add(&f, "runs", 1, 10, SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "runs");
    add(&f, "wide", 3, 60, SCHED_NEVER);
    add(&f, "late", 2, 60, SCHED_NEVER);
    add(&f, "short", 1, 10, SCHED_NEVER);
    f.spec.class_id = f.work;
    f.spec.estimate_ns = 60 * MINUTE;
    fixture_task(&f, "free", "");
    assert_string_equal(fixture_run_pass(&f), "short free");
    fixture_release(&f);
}

static void units_that_are_only_free_later_are_not_enough(void **state)
{
    (void)state;
    struct fixture f;
    backfill_run(&f, 4);
    add(&f, "runs", 3, 10, SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "runs");
    add(&f, "wide", 2, 60, SCHED_NEVER);
    add(&f, "two", 2, 1, SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "");
    add(&f, "one", 1, 60, SCHED_NEVER); /* two are left over */
    assert_string_equal(fixture_run_pass(&f), "one");
    fixture_release(&f);
}

static void nobody_knows_when_a_group_closes(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec shared = fixture_per(3, FIXTURE_REPO);
    shared.share = 1;
    shared.hold_group = true;
    fixture_run(&f, SCHED_FIFO, &shared, 1); /* counts groups */
    static const char *const names[] = {"g1", "g2"};
    for (uint32_t ix = 0; ix < 2; ix++) {
        f.spec.group = fixture_group(&f, FIXTURE_REPO, 7);
        fixture_task(&f, names[ix], "");
    }
    f.spec.group = ID_NONE;
    assert_string_equal(fixture_run_pass(&f), "g1 g2");
    shared.hold_group = false;
    fixture_run(&f, SCHED_FIFO, &shared, 1); /* counts sessions, the same */
    f.limits[0] = f.first_limit;
    fixture_attribute(&f, FIXTURE_REPO, 7);
    add(&f, "wide", 2, 60, SCHED_NEVER);
    add(&f, "short", 1, 0, SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_done(&f, "g1");
    assert_string_equal(fixture_run_pass(&f), "wide");
    fixture_release(&f);
}

/* Whether a short task starts behind so many of other queues that may not. */
static bool passes_behind(uint32_t count)
{
    struct fixture f;
    backfill_run(&f, 4);
    add(&f, "runs", 1, 10, SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "runs");
    add(&f, "wide", 4, 60, SCHED_NEVER);
    f.spec.estimate_ns = 11 * MINUTE;
    for (uint32_t ix = 0; ix < count; ix++) {
        f.spec.batch_key = ix;
        (void)fixture_tasks(&f, 1);
    }
    f.spec.batch_key = count;
    f.spec.estimate_ns = MINUTE;
    struct task_id task = fixture_tasks(&f, 1);
    (void)fixture_run_pass(&f);
    bool passes = sched_task(f.sched, task).state == TASK_STARTING;
    fixture_release(&f);
    return passes;
}

static void after_many_refusals_nothing_passes(void **state)
{
    (void)state;
    assert_true(passes_behind(1));
    assert_true(passes_behind(100));
    assert_false(passes_behind(128));
    assert_false(passes_behind(500));
}

/* A stream of narrow tasks, and one that is wide: how long it waits. */
static void a_wide_task_waits_no_longer_for_a_stream(void **state)
{
    (void)state;
    struct fixture f;
    backfill_run(&f, 4);
    add(&f, "x1", 1, 10, SCHED_NEVER);
    add(&f, "x2", 1, 10, SCHED_NEVER);
    add(&f, "x3", 1, 10, SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "x1 x2 x3");
    add(&f, "wide", 4, 10, SCHED_NEVER);
    static const char *const names[] = {"s0", "s1", "s2", "s3", "s4"};
    for (uint32_t ix = 0; ix < 5; ix++) {
        add(&f, names[ix], 1, 2, SCHED_NEVER);
        assert_string_equal(fixture_run_pass(&f), names[ix]);
        fixture_pass(&f, 2 * MINUTE);
        fixture_done(&f, names[ix]);
    }
    add(&f, "s5", 1, 2, SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_done(&f, "x1 x2 x3");
    assert_string_equal(fixture_run_pass(&f), "wide");
    fixture_release(&f);
}

static void what_is_reserved_for_a_task_fits_it(void **state)
{
    (void)state;
    struct fixture f;
    backfill_run(&f, 2);
    add(&f, "runs", 1, 10, SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "runs");
    add(&f, "wide", 2, 10, SCHED_NEVER);
    add(&f, "late", 1, 60, SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_why(&f, "late").code, WHY_RESERVED);
    assert_true(sched_fits_without(f.sched,
                                   fixture_id(&f, "wide"),
                                   fixture_id(&f, "runs")));
    assert_false(sched_fits_without(f.sched,
                                    fixture_id(&f, "late"),
                                    fixture_id(&f, "runs")));
    fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_ends_in_time_may_pass),
        cmocka_unit_test(what_is_reserved_for_a_task_fits_it),
        cmocka_unit_test(what_fits_beside_it_may_pass),
        cmocka_unit_test(the_first_ends_that_suffice_count),
        cmocka_unit_test(an_overdue_session_ends_now),
        cmocka_unit_test(nothing_passes_one_that_has_aged),
        cmocka_unit_test(of_equal_tasks_only_the_best_is_looked_at),
        cmocka_unit_test(a_batch_is_expected_to_last_longer),
        cmocka_unit_test(other_limits_are_not_reserved),
        cmocka_unit_test(units_that_are_only_free_later_are_not_enough),
        cmocka_unit_test(nobody_knows_when_a_group_closes),
        cmocka_unit_test(after_many_refusals_nothing_passes),
        cmocka_unit_test(a_wide_task_waits_no_longer_for_a_stream),
    };
    return cmocka_run_group_tests_name("sched: backfill", tests, NULL, NULL);
}
