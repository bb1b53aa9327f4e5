/* SPDX-License-Identifier: MIT */
/* Limits that count issues: open groups, but none that wait for a queue. */
#include "tests/unit/sched_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { CAP, ISSUES, ACTIVE, LIMITS };

struct issues {
    struct fixture f;
    struct class_id merge;
};

/* A run with so many issues at once, and one open group per repo. */
static void issues_run(struct issues *i, int64_t max)
{
    fixture_init(&i->f);
    struct limit_spec limits[LIMITS] = {
        fixture_max(9),
        fixture_max(max),
        fixture_per(1, FIXTURE_REPO),
    };
    limits[ISSUES].hold_group = true;
    limits[ACTIVE].hold_group = true;
    fixture_run(&i->f, SCHED_FIFO, limits, LIMITS);
    struct sched_class_spec merge = {
        .batch = 1,
        .queue = true,
        .max_wait_ns = SCHED_NEVER,
    };
    i->merge = sched_add_class(i->f.sched, &merge);
    i->f.failure.rework_max = 3;
}

/* An issue of a repo: a task, and a merge that may send it back. */
static void
add_issue(struct issues *i, uint32_t repo, const char *work, const char *merge)
{
    struct fixture *f = &i->f;
    f->spec.group = fixture_group(f, FIXTURE_REPO, repo);
    f->spec.class_id = f->work;
    f->spec.rework_to = ID_NONE;
    struct task_id task = fixture_task(f, work, "");
    f->spec.class_id = i->merge;
    f->spec.rework_to = task.v;
    fixture_task(f, merge, work);
}

static void an_issue_that_is_merged_does_not_count(void **state)
{
    (void)state;
    struct issues i;
    issues_run(&i, 1);
    add_issue(&i, 1, "a", "ma");
    add_issue(&i, 2, "b", "mb");
    assert_string_equal(fixture_run_pass(&i.f), "a");
    assert_int_equal(fixture_used(&i.f, ISSUES), 1);
    fixture_done(&i.f, "a");
    assert_string_equal(fixture_run_pass(&i.f), "ma b");
    assert_int_equal(fixture_used(&i.f, ISSUES), 1);
    assert_int_equal(fixture_used(&i.f, ACTIVE), 2);
    assert_true(fixture_get(&i.f, "a").group_open);
    fixture_release(&i.f);
}

static void an_issue_that_waits_for_its_merge_does_not_count(void **state)
{
    (void)state;
    struct issues i;
    issues_run(&i, 1);
    add_issue(&i, 1, "a", "ma");
    add_issue(&i, 2, "b", "mb");
    assert_string_equal(fixture_run_pass(&i.f), "a");
    fixture_set_limit(&i.f, CAP, 1, 0);
    fixture_done(&i.f, "a");
    assert_string_equal(fixture_run_pass(&i.f), "ma");
    fixture_set_limit(&i.f, CAP, 0, 0);
    fixture_end(&i.f, "ma", OUTCOME_STOPPED); /* ready again */
    assert_string_equal(fixture_run_pass(&i.f), "");
    assert_true(fixture_get(&i.f, "ma").group_open);
    assert_int_equal(fixture_used(&i.f, ISSUES), 0);
    assert_int_equal(fixture_used(&i.f, ACTIVE), 1);
    fixture_release(&i.f);
}

static void its_lane_stays_taken(void **state)
{
    (void)state;
    struct issues i;
    issues_run(&i, 9);
    add_issue(&i, 1, "a", "ma");
    add_issue(&i, 1, "b", "mb");
    assert_string_equal(fixture_run_pass(&i.f), "a");
    fixture_done(&i.f, "a");
    assert_string_equal(fixture_run_pass(&i.f), "ma");
    fixture_done(&i.f, "ma");
    assert_string_equal(fixture_run_pass(&i.f), "b");
    fixture_release(&i.f);
}

static void a_merge_opens_its_group_without_a_unit(void **state)
{
    (void)state;
    struct issues i;
    issues_run(&i, 1);
    add_issue(&i, 1, "a", "ma");
    add_issue(&i, 2, "b", "mb");
    assert_string_equal(fixture_run_pass(&i.f), "a");
    fixture_order(&i.f, EVENT_HOLD, "ma");
    fixture_done(&i.f, "a");
    assert_string_equal(fixture_run_pass(&i.f), "b"); /* the first one closed */
    assert_false(fixture_get(&i.f, "a").group_open);
    fixture_order(&i.f, EVENT_RELEASE, "ma");
    assert_string_equal(fixture_run_pass(&i.f), "ma");
    assert_int_equal(fixture_used(&i.f, ISSUES), 1);
    assert_int_equal(fixture_used(&i.f, ACTIVE), 2);
    fixture_release(&i.f);
}

static void rework_counts_at_once(void **state)
{
    (void)state;
    struct issues i;
    issues_run(&i, 1);
    add_issue(&i, 1, "a", "ma");
    add_issue(&i, 2, "b", "mb");
    add_issue(&i, 3, "c", "mc");
    assert_string_equal(fixture_run_pass(&i.f), "a");
    fixture_done(&i.f, "a");
    assert_string_equal(fixture_run_pass(&i.f), "ma b");
    fixture_end(&i.f, "ma", OUTCOME_CHANGES);
    assert_string_equal(fixture_run_pass(&i.f), "a"); /* beyond the limit */
    assert_int_equal(fixture_used(&i.f, ISSUES), 2);
    fixture_done(&i.f, "b");
    assert_string_equal(fixture_run_pass(&i.f), "mb"); /* not c */
    assert_int_equal(fixture_used(&i.f, ISSUES), 1);
    fixture_done(&i.f, "a");
    assert_string_equal(fixture_run_pass(&i.f), "ma c");
    fixture_release(&i.f);
}

static void other_work_beside_a_merge_counts(void **state)
{
    (void)state;
    struct issues i;
    issues_run(&i, 1);
    add_issue(&i, 1, "a", "ma");
    i.f.spec.class_id = i.f.work;
    i.f.spec.rework_to = ID_NONE;
    fixture_task(&i.f, "docs", "a");
    add_issue(&i, 2, "b", "mb");
    assert_string_equal(fixture_run_pass(&i.f), "a");
    fixture_done(&i.f, "a");
    assert_string_equal(fixture_run_pass(&i.f), "ma docs");
    assert_int_equal(fixture_used(&i.f, ISSUES), 1);
    fixture_done(&i.f, "docs");
    assert_string_equal(fixture_run_pass(&i.f), "b");
    fixture_release(&i.f);
}

/* Only what a session and its group really use becomes free with it. */
static void what_would_fit_without_another(void **state)
{
    (void)state;
    struct issues i;
    issues_run(&i, 1);
    struct fixture *f = &i.f;
    add_issue(&i, 1, "a", "ma");
    add_issue(&i, 2, "b", "mb");
    add_issue(&i, 2, "c", "mc");
    assert_string_equal(fixture_run_pass(f), "a");
    assert_true(
        sched_fits_without(f->sched, fixture_id(f, "b"), fixture_id(f, "a")));
    fixture_done(f, "a");
    assert_string_equal(fixture_run_pass(f), "ma b");
    /* The merge holds the lane of its repo, but no issue. */
    assert_false(
        sched_fits_without(f->sched, fixture_id(f, "c"), fixture_id(f, "ma")));
    assert_true(
        sched_fits_without(f->sched, fixture_id(f, "c"), fixture_id(f, "b")));
    fixture_release(f);
}

/* The other one is in the background: its group stays open without it. */
static void a_group_does_not_close_with_its_background(void **state)
{
    (void)state;
    struct issues i;
    issues_run(&i, 1);
    struct fixture *f = &i.f;
    add_issue(&i, 1, "a", "ma");
    f->spec.rework_to = ID_NONE;
    f->spec.class_id = fixture_class(f, 1, true, 1, SCHED_NEVER);
    fixture_task(f, "check", "");
    add_issue(&i, 1, "b", "mb");
    assert_string_equal(fixture_run_pass(f), "a check");
    assert_true(fixture_get(f, "check").background);
    assert_false(sched_fits_without(f->sched,
                                    fixture_id(f, "b"),
                                    fixture_id(f, "check")));
    assert_true(
        sched_fits_without(f->sched, fixture_id(f, "b"), fixture_id(f, "a")));
    fixture_release(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_issue_that_is_merged_does_not_count),
        cmocka_unit_test(an_issue_that_waits_for_its_merge_does_not_count),
        cmocka_unit_test(its_lane_stays_taken),
        cmocka_unit_test(a_merge_opens_its_group_without_a_unit),
        cmocka_unit_test(rework_counts_at_once),
        cmocka_unit_test(what_would_fit_without_another),
        cmocka_unit_test(a_group_does_not_close_with_its_background),
        cmocka_unit_test(other_work_beside_a_merge_counts),
    };
    return cmocka_run_group_tests_name("sched: issues", tests, NULL, NULL);
}
