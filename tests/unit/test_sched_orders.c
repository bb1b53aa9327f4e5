/* SPDX-License-Identifier: MIT */
/* Snoozes, start times, approval, stops, priorities and reruns. */
#include "tests/unit/sched_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void begin(struct fixture *f, int64_t cap)
{
    fixture_init(f);
    fixture_cap(f, cap);
    f->failure.retry_max = 0;
}

static void a_snooze_costs_no_slot_and_no_try(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 1);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_snooze(&f, "a", 10 * MINUTE);
    assert_string_equal(fixture_run_pass(&f), "b");
    assert_int_equal(f.quiet, 0);
    struct why why = fixture_why(&f, "a");
    assert_int_equal(why.code, WHY_SNOOZED);
    assert_int_equal(why.until_ns, 10 * MINUTE);
    assert_int_equal(sched_next_timer(f.sched), 10 * MINUTE);
    fixture_done(&f, "b");
    fixture_pass(&f, 10 * MINUTE - 1);
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_pass(&f, 1);
    assert_string_equal(fixture_run_pass(&f), "a");
    assert_int_equal(fixture_get(&f, "a").tries, 0);
    assert_int_equal(fixture_get(&f, "a").attempts, 2);
    fixture_release(&f);
}

static void a_snooze_without_a_time_is_short(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 1);
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_snooze(&f, "a", SCHED_NEVER);
    (void)fixture_run_pass(&f);
    assert_int_equal(sched_next_timer(f.sched), 5 * MINUTE);
    fixture_order(&f, EVENT_RETRY, "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_snooze(&f, "a", 0); /* in the past */
    (void)fixture_run_pass(&f);
    assert_int_equal(sched_next_timer(f.sched), 5 * MINUTE);
    fixture_release(&f);
}

static void a_snooze_lets_others_of_its_lane_go(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {
        fixture_max(4),
        fixture_per(1, FIXTURE_REPO),
    };
    limits[1].hold_group = true;
    fixture_run(&f, SCHED_RANK, limits, 2);
    f.spec.group = fixture_group(&f, FIXTURE_REPO, 7);
    fixture_task(&f, "a", "");
    f.spec.group = fixture_group(&f, FIXTURE_REPO, 7);
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_snooze(&f, "a", MINUTE);
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_release(&f);
}

static void a_task_waits_for_its_time(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 4);
    fixture_task(&f, "need", "");
    f.spec.not_before_ns = 10 * MINUTE;
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "need");
    fixture_task(&f, "c", "");
    assert_string_equal(fixture_run_pass(&f), "need");
    assert_int_equal(fixture_why(&f, "a").code, WHY_EARLY);
    assert_int_equal(fixture_why(&f, "b").code, WHY_NEEDS);
    fixture_order(&f, EVENT_RETRY, "c"); /* now */
    assert_string_equal(fixture_run_pass(&f), "c");
    fixture_pass(&f, 10 * MINUTE);
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_done(&f, "need");
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_release(&f);
}

static void times_follow_the_wall_clock(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 4);
    fixture_task(&f, "need", "");
    f.spec.not_before_ns = 10 * MINUTE;
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "need");
    f.spec.not_before_ns = 0;
    assert_string_equal(fixture_run_pass(&f), "need");
    sched_move_times(f.sched, f.run, -4 * MINUTE, true); /* set forward */
    assert_int_equal(sched_next_timer(f.sched), 6 * MINUTE);
    sched_move_times(f.sched, f.run, 14 * MINUTE, true); /* set back */
    sched_verify(f.sched);
    assert_int_equal(sched_next_timer(f.sched), 20 * MINUTE);
    fixture_done(&f, "need");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_why(&f, "b").until_ns, 20 * MINUTE);
    sched_move_times(f.sched, f.run, -60 * MINUTE, true);
    fixture_pass(&f, MINUTE);
    assert_string_equal(fixture_run_pass(&f), "a b");
    fixture_release(&f);
}

static void times_of_other_tasks_and_runs_stay(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 4);
    f.spec.not_before_ns = 10 * MINUTE;
    fixture_task(&f, "a", "");
    f.spec.not_before_ns = 0;
    f.spec.last = true;
    fixture_task(&f, "z", ""); /* it has no time */
    f.spec.last = false;
    struct run_id first = f.run;
    fixture_deadline_run(&f, 30 * MINUTE);
    f.spec.not_before_ns = 20 * MINUTE;
    fixture_task(&f, "b", "");
    f.spec.not_before_ns = 0;
    (void)fixture_run_pass(&f);
    sched_move_times(f.sched, f.run, 5 * MINUTE, false);
    assert_int_equal(sched_run(f.sched, f.run).deadline_ns, 30 * MINUTE);
    assert_int_equal(fixture_why(&f, "a").until_ns, 10 * MINUTE);
    assert_int_equal(fixture_why(&f, "b").until_ns, 25 * MINUTE);
    sched_move_times(f.sched, f.run, 5 * MINUTE, true);
    assert_int_equal(sched_run(f.sched, f.run).deadline_ns, 35 * MINUTE);
    sched_move_times(f.sched, first, -MINUTE, true);
    assert_int_equal(sched_run(f.sched, first).deadline_ns, 0); /* none */
    assert_int_equal(fixture_why(&f, "a").until_ns, 9 * MINUTE);
    assert_int_equal(fixture_why(&f, "b").until_ns, 30 * MINUTE);
    sched_verify(f.sched);
    fixture_release(&f);
}

static void times_are_not_moved_out_of_reach(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_deadline_run(&f, 30 * MINUTE);
    f.spec.not_before_ns = SCHED_NEVER - 2 * MINUTE;
    fixture_task(&f, "a", "");
    (void)fixture_run_pass(&f);
    sched_move_times(f.sched, f.run, MINUTE, true);
    assert_int_equal(fixture_why(&f, "a").until_ns, SCHED_NEVER - MINUTE);
    sched_move_times(f.sched, f.run, 2 * MINUTE, true);
    assert_int_equal(fixture_why(&f, "a").until_ns, SCHED_NEVER - 1);
    sched_move_times(f.sched, f.run, -33 * MINUTE, true);
    assert_int_equal(sched_run(f.sched, f.run).deadline_ns, 1); /* 0: none */
    (void)fixture_run_pass(&f);
    fixture_pass(&f, MINUTE);
    (void)fixture_run_pass(&f);
    assert_int_equal(sched_run(f.sched, f.run).stopped, SCHED_STOPPED_DEADLINE);
    fixture_release(&f);
}

/* A retry ends its back-off, but not the time that it has to wait for. */
static void a_retry_does_not_forget_the_time_of_a_task_that_waits(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 4);
    fixture_task(&f, "need", "");
    f.spec.not_before_ns = 10 * MINUTE;
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "need");
    struct sched_rejection rejection;
    assert_int_equal(fixture_try_need(&f, "a", "need", &rejection), ERR_OK);
    fixture_order(&f, EVENT_RETRY, "a");
    assert_int_equal(fixture_why(&f, "a").code, WHY_NEEDS);
    fixture_done(&f, "need");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_why(&f, "a").code, WHY_EARLY);
    assert_int_equal(fixture_why(&f, "a").until_ns, 10 * MINUTE);
    fixture_order(&f, EVENT_RETRY, "a"); /* now it does */
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_release(&f);
}

static void a_snoozed_task_opens_no_group_when_it_is_released(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(9), fixture_max(1)};
    limits[1].hold_group = true;
    fixture_run(&f, SCHED_FIFO, limits, 2);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_snooze(&f, "a", 10 * MINUTE);
    fixture_order(&f, EVENT_HOLD, "a");
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_order(&f, EVENT_RELEASE, "a");
    (void)fixture_run_pass(&f);
    assert_false(fixture_get(&f, "a").group_open);
    assert_int_equal(fixture_used(&f, 1), 1);
    fixture_release(&f);
}

static void a_priority_has_bounds(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 4);
    fixture_task(&f, "a", "");
    struct sched_event event = {
        .type = EVENT_PRIORITY,
        .task = fixture_id(&f, "a"),
        .max = -1,
    };
    assert_int_equal(sched_apply(f.sched, &event), ERR_INVALID);
    event.max = SCHED_PRIORITY_MAX + 1;
    assert_int_equal(sched_apply(f.sched, &event), ERR_INVALID);
    assert_int_equal(fixture_get(&f, "a").priority, 0);
    event.max = SCHED_PRIORITY_MAX;
    assert_int_equal(sched_apply(f.sched, &event), ERR_OK);
    assert_int_equal(fixture_get(&f, "a").priority, SCHED_PRIORITY_MAX);
    fixture_release(&f);
}

/* Both runs ask, in turns; the tasks of one do not answer for the other. */
static void each_run_waits_for_its_own_answers(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 9);
    f.failure.on_failure = SCHED_ASK;
    struct run_id first = f.run;
    fixture_task(&f, "a", "");
    fixture_cap(&f, 9);
    fixture_task(&f, "b", "");
    f.run = first;
    fixture_task(&f, "c", "");
    fixture_task(&f, "d", "c:any");
    assert_string_equal(fixture_run_pass(&f), "c a b");
    fixture_end(&f, "a", OUTCOME_FAILED);
    fixture_end(&f, "b", OUTCOME_FAILED);
    fixture_end(&f, "c", OUTCOME_FAILED);
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_why(&f, "d").code, WHY_ASKED);
    assert_int_equal(fixture_why(&f, "d").task.v, fixture_id(&f, "a").v);
    fixture_order(&f, EVENT_SKIP, "a");
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_why(&f, "d").task.v, fixture_id(&f, "c").v);
    fixture_order(&f, EVENT_SKIP, "c");
    assert_string_equal(fixture_run_pass(&f), "d");
    fixture_release(&f);
}

/* Results in doubt that need others in doubt, by two ways. */
static void no_dead_end_is_found_among_results_in_doubt(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 9);
    static const char *const names[] = {"z", "p", "q", "x", "t"};
    static const char *const needs[] = {"", "z", "z", "p q", "x"};
    for (uint32_t ix = 0; ix < 5; ix++) {
        fixture_task(&f, names[ix], needs[ix]);
    }
    (void)fixture_run_pass(&f);
    fixture_done(&f, "z");
    assert_string_equal(fixture_run_pass(&f), "p q");
    fixture_done(&f, "p q");
    (void)fixture_run_pass(&f);
    fixture_done(&f, "x");
    assert_string_equal(fixture_run_pass(&f), "t");
    fixture_end(&f, "t", OUTCOME_BLOCKED);
    for (uint32_t ix = 0; ix < 4; ix++) {
        fixture_order(&f, EVENT_REVOKE, names[ix]);
    }
    fixture_order(&f, EVENT_RETRY, "t");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_state(&f, "t"), TASK_WAITING);
    assert_int_equal(fixture_why(&f, "t").code, WHY_BLOCKED);
    for (uint32_t ix = 0; ix < 4; ix++) {
        fixture_order(&f, EVENT_RELEASE, names[ix]);
    }
    assert_string_equal(fixture_run_pass(&f), "t");
    fixture_release(&f);
}

/* x has run because w failed: that is no dead end of t, which needs x. */
static void no_dead_end_is_found_behind_a_need_that_was_to_fail(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 9);
    f.failure.on_failure = SCHED_SKIP;
    fixture_task(&f, "w", "");
    fixture_task(&f, "x", "w:failed");
    fixture_task(&f, "t", "x");
    assert_string_equal(fixture_run_pass(&f), "w");
    fixture_end(&f, "w", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "x");
    fixture_done(&f, "x");
    assert_string_equal(fixture_run_pass(&f), "t");
    fixture_end(&f, "t", OUTCOME_BLOCKED);
    fixture_order(&f, EVENT_REVOKE, "x");
    fixture_order(&f, EVENT_RETRY, "t");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_state(&f, "t"), TASK_WAITING);
    fixture_order(&f, EVENT_RELEASE, "x");
    assert_string_equal(fixture_run_pass(&f), "t");
    fixture_release(&f);
}

/* It was approved, skipped with its need, and comes back with it. */
static void what_comes_back_is_to_be_approved_again(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 1);
    f.failure.on_failure = SCHED_SKIP;
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "b");
    f.spec.approve = true;
    fixture_task(&f, "c", "b");
    f.spec.approve = false;
    fixture_task(&f, "other", "");
    fixture_done(&f, "b");
    assert_string_equal(fixture_run_pass(&f), "other");
    fixture_order(&f, EVENT_APPROVE, "c");
    fixture_order(&f, EVENT_REVOKE, "b");
    fixture_order(&f, EVENT_RETRY, "b");
    fixture_done(&f, "other");
    assert_string_equal(fixture_run_pass(&f), "b");
    assert_false(fixture_get(&f, "c").unapproved);
    fixture_end(&f, "b", OUTCOME_FAILED);
    assert_int_equal(fixture_state(&f, "c"), TASK_SKIPPED);
    fixture_order(&f, EVENT_RETRY, "b");
    assert_string_equal(fixture_run_pass(&f), "b");
    assert_int_equal(fixture_state(&f, "c"), TASK_WAITING);
    assert_true(fixture_get(&f, "c").unapproved);
    fixture_release(&f);
}

/* While the check ran, what the work needs has become a dead end. */
static void rework_behind_a_dead_end_is_skipped(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 4);
    f.failure.rework_max = 2;
    f.failure.on_failure = SCHED_SKIP;
    fixture_task(&f, "need", "");
    f.spec.group = fixture_group(&f, 0, 0);
    struct task_id work = fixture_task(&f, "work", "need");
    f.spec.rework_to = work.v;
    fixture_task(&f, "check", "work");
    (void)fixture_run_pass(&f);
    fixture_done(&f, "need");
    (void)fixture_run_pass(&f);
    fixture_done(&f, "work");
    assert_string_equal(fixture_run_pass(&f), "check");
    fixture_order(&f, EVENT_REVOKE, "need");
    fixture_order(&f, EVENT_RETRY, "need");
    assert_string_equal(fixture_run_pass(&f), "need");
    fixture_end(&f, "need", OUTCOME_FAILED);
    fixture_end(&f, "check", OUTCOME_CHANGES);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_state(&f, "work"), TASK_SKIPPED);
    assert_int_equal(fixture_state(&f, "check"), TASK_SKIPPED);
    assert_int_equal(fixture_why(&f, "work").task.v, fixture_id(&f, "need").v);
    fixture_release(&f);
}

static void rework_is_to_be_approved_again(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 4);
    f.failure.rework_max = 2;
    f.spec.group = fixture_group(&f, 0, 0);
    f.spec.approve = true;
    struct task_id work = fixture_task(&f, "work", "");
    f.spec.approve = false;
    f.spec.rework_to = work.v;
    fixture_task(&f, "check", "work");
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_order(&f, EVENT_APPROVE, "work");
    assert_string_equal(fixture_run_pass(&f), "work");
    fixture_done(&f, "work");
    assert_string_equal(fixture_run_pass(&f), "check");
    fixture_end(&f, "check", OUTCOME_CHANGES);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_why(&f, "work").code, WHY_APPROVAL);
    fixture_order(&f, EVENT_APPROVE, "work");
    assert_string_equal(fixture_run_pass(&f), "work");
    fixture_release(&f);
}

/* It runs on what is being replaced: the next time, it is asked for again. */
static void what_is_stale_is_to_be_approved_again(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 4);
    f.failure.rework_max = 2;
    f.spec.group = fixture_group(&f, 0, 0);
    struct task_id work = fixture_task(&f, "work", "");
    f.spec.approve = true;
    fixture_task(&f, "slow", "work");
    f.spec.approve = false;
    f.spec.rework_to = work.v;
    fixture_task(&f, "check", "work");
    assert_string_equal(fixture_run_pass(&f), "work");
    fixture_done(&f, "work");
    assert_string_equal(fixture_run_pass(&f), "check");
    fixture_order(&f, EVENT_APPROVE, "slow");
    assert_string_equal(fixture_run_pass(&f), "slow");
    fixture_end(&f, "check", OUTCOME_CHANGES);
    assert_string_equal(fixture_run_pass(&f), "work");
    fixture_done(&f, "slow");
    fixture_done(&f, "work");
    assert_string_equal(fixture_run_pass(&f), "check");
    assert_int_equal(fixture_why(&f, "slow").code, WHY_APPROVAL);
    fixture_order(&f, EVENT_APPROVE, "slow");
    assert_string_equal(fixture_run_pass(&f), "slow");
    fixture_release(&f);
}

/* Its session still runs, so its group keeps its place. */
static void a_stale_session_keeps_its_group_open(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(4), fixture_max(1)};
    limits[1].hold_group = true;
    fixture_run(&f, SCHED_FIFO, limits, 2);
    f.failure.rework_max = 2;
    f.spec.group = fixture_group(&f, 0, 0);
    f.spec.approve = true;
    struct task_id work = fixture_task(&f, "work", "");
    fixture_task(&f, "slow", "work");
    f.spec.approve = false;
    f.spec.rework_to = work.v;
    fixture_task(&f, "check", "work");
    f.spec.rework_to = ID_NONE;
    fixture_order(&f, EVENT_APPROVE, "work");
    assert_string_equal(fixture_run_pass(&f), "work");
    fixture_done(&f, "work");
    fixture_order(&f, EVENT_APPROVE, "slow");
    assert_string_equal(fixture_run_pass(&f), "slow check");
    f.spec.group = fixture_group(&f, 0, 0);
    fixture_task(&f, "other", "");
    fixture_end(&f, "check", OUTCOME_CHANGES);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_why(&f, "other").code, WHY_LIMIT);
    fixture_done(&f, "slow");
    assert_string_equal(fixture_run_pass(&f), "other");
    fixture_release(&f);
}

static void approval_is_waited_for(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 4);
    fixture_task(&f, "a", "");
    f.spec.approve = true;
    fixture_task(&f, "b", "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    assert_int_equal(fixture_try_order(&f, EVENT_APPROVE, "b"), ERR_CONFLICT);
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(f.quiet, 1);
    assert_int_equal(fixture_why(&f, "b").code, WHY_APPROVAL);
    assert_int_equal(fixture_try_order(&f, EVENT_RELEASE, "b"), ERR_CONFLICT);
    fixture_order(&f, EVENT_HOLD, "b");
    fixture_order(&f, EVENT_APPROVE, "b");
    assert_string_equal(fixture_run_pass(&f), "b");
    assert_int_equal(fixture_try_order(&f, EVENT_APPROVE, "b"), ERR_CONFLICT);
    fixture_end(&f, "b", OUTCOME_FAILED);
    fixture_order(&f, EVENT_RETRY, "b");
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_done(&f, "b");
    fixture_order(&f, EVENT_RERUN, "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_why(&f, "b").code, WHY_APPROVAL);
    fixture_release(&f);
}

static void a_fatal_failure_is_not_retried(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 1);
    f.failure.retry_max = 5;
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_end(&f, "a", OUTCOME_FATAL);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_state(&f, "a"), TASK_PARKED);
    assert_int_equal(fixture_get(&f, "a").tries, 1);
    fixture_release(&f);
}

static void a_failure_stops_the_run_gently(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 2);
    f.failure.on_failure = SCHED_STOP;
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    fixture_task(&f, "c", "");
    assert_string_equal(fixture_run_pass(&f), "a b");
    fixture_end(&f, "a", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(f.stops, 1);
    assert_int_equal(f.quiet, 0);
    assert_int_equal(fixture_state(&f, "b"), TASK_STARTING);
    assert_int_equal(fixture_why(&f, "c").code, WHY_HALTED);
    assert_int_equal(fixture_why(&f, "c").task.v, fixture_id(&f, "a").v);
    fixture_done(&f, "b");
    (void)fixture_run_pass(&f);
    assert_int_equal(f.quiet, 1);
    fixture_order(&f, EVENT_RETRY, "a");
    assert_string_equal(fixture_run_pass(&f), "c a");
    fixture_release(&f);
}

static void a_deadline_stops_the_run_once(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_deadline_run(&f, MINUTE);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    assert_int_equal(sched_next_timer(f.sched), MINUTE);
    fixture_pass(&f, MINUTE);
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(f.stops, 1);
    assert_int_equal(sched_run(f.sched, f.run).stopped, SCHED_STOPPED_DEADLINE);
    assert_int_equal(fixture_try_order(&f, EVENT_RETRY, "b"), ERR_CONFLICT);
    fixture_order_run(&f, EVENT_RESUME);
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_pass(&f, MINUTE);
    (void)fixture_run_pass(&f);
    assert_int_equal(f.stops, 0);
    fixture_release(&f);
}

static void a_deadline_after_the_end_stops_nothing(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_deadline_run(&f, MINUTE);
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_done(&f, "a");
    (void)fixture_run_pass(&f);
    assert_int_equal(sched_next_timer(f.sched), SCHED_NEVER);
    fixture_pass(&f, 2 * MINUTE);
    (void)fixture_run_pass(&f);
    assert_int_equal(f.stops, 0);
    assert_int_equal(sched_run(f.sched, f.run).stopped, SCHED_NOT_STOPPED);
    fixture_release(&f);
}

static void set_priority(struct fixture *f, const char *name, int64_t priority)
{
    struct sched_event event = {
        .type = EVENT_PRIORITY,
        .now_ns = f->now_ns,
        .task = fixture_id(f, name),
        .max = priority,
    };
    assert_int_equal(sched_apply(f->sched, &event), ERR_OK);
}

static void a_priority_changes_the_order(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 1);
    f.spec.priority = 5;
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    fixture_task(&f, "need", "");
    fixture_task(&f, "c", "need");
    set_priority(&f, "b", 4);
    set_priority(&f, "c", 0);
    assert_string_equal(fixture_run_pass(&f), "need");
    fixture_done(&f, "need");
    assert_string_equal(fixture_run_pass(&f), "c");
    fixture_done(&f, "c");
    assert_string_equal(fixture_run_pass(&f), "b");
    assert_int_equal(fixture_get(&f, "b").priority, 4);
    fixture_release(&f);
}

static void the_first_goes_before_better_tiers(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 1);
    fixture_task(&f, "a", "");
    f.spec.class_id = f.review;
    fixture_task(&f, "r", "");
    fixture_task(&f, "s", "");
    fixture_order(&f, EVENT_FIRST, "s");
    assert_string_equal(fixture_run_pass(&f), "s");
    fixture_done(&f, "s");
    assert_int_equal(fixture_try_order(&f, EVENT_FIRST, "s"), ERR_CONFLICT);
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_release(&f);
}

static void a_rerun_repeats_what_depends_on_it(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 4);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "a");
    fixture_task(&f, "c", "b");
    fixture_task(&f, "d", "b");
    fixture_task(&f, "x", "");
    assert_int_equal(fixture_try_order(&f, EVENT_RERUN, "a"), ERR_CONFLICT);
    assert_string_equal(fixture_run_pass(&f), "a x");
    fixture_done(&f, "a x");
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_done(&f, "b");
    assert_string_equal(fixture_run_pass(&f), "c d");
    fixture_end(&f, "c", OUTCOME_FAILED);
    fixture_order(&f, EVENT_RERUN, "a"); /* "d" is in flight */
    assert_string_equal(fixture_run_pass(&f), "a");
    assert_int_equal(fixture_state(&f, "c"), TASK_WAITING);
    assert_int_equal(fixture_state(&f, "x"), TASK_DONE);
    fixture_done(&f, "d a");
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_done(&f, "b");
    assert_string_equal(fixture_run_pass(&f), "c d");
    fixture_release(&f);
}

static void a_rerun_brings_back_what_was_skipped_with_it(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 4);
    fixture_task(&f, "a", "");
    f.failure.on_failure = SCHED_SKIP;
    fixture_task(&f, "b", "a");
    fixture_task(&f, "c", "b");
    (void)fixture_run_pass(&f);
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_end(&f, "b", OUTCOME_FAILED);
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_state(&f, "c"), TASK_SKIPPED);
    fixture_order(&f, EVENT_RERUN, "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    assert_int_equal(fixture_state(&f, "c"), TASK_WAITING);
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_done(&f, "b");
    assert_string_equal(fixture_run_pass(&f), "c");
    fixture_release(&f);
}

/* What needs a review is done, and does not make it urgent; then it is not. */
static void a_retry_makes_what_it_needs_urgent(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 4);
    f.spec.class_id = f.review;
    fixture_task(&f, "review", "");
    f.spec.class_id = f.work;
    fixture_task(&f, "work", "review");
    (void)fixture_run_pass(&f);
    fixture_done(&f, "review");
    (void)fixture_run_pass(&f);
    fixture_done(&f, "work");
    fixture_order(&f, EVENT_REVOKE, "review");
    fixture_order(&f, EVENT_RETRY, "review");
    assert_int_equal(fixture_get(&f, "review").tier, 1);
    fixture_order(&f, EVENT_REVOKE, "work");
    fixture_order(&f, EVENT_RETRY, "work");
    assert_int_equal(fixture_get(&f, "review").tier, 0);
    fixture_release(&f);
}

/* The task that stopped it is skipped: nothing is left to be retried. */
static void a_retry_of_the_run_lets_it_go_on(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 1);
    f.failure.on_failure = SCHED_STOP;
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_end(&f, "a", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_order(&f, EVENT_SKIP, "a");
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_order_run(&f, EVENT_RETRY_RUN);
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snooze_costs_no_slot_and_no_try),
        cmocka_unit_test(a_snooze_without_a_time_is_short),
        cmocka_unit_test(a_snooze_lets_others_of_its_lane_go),
        cmocka_unit_test(a_task_waits_for_its_time),
        cmocka_unit_test(times_follow_the_wall_clock),
        cmocka_unit_test(times_of_other_tasks_and_runs_stay),
        cmocka_unit_test(times_are_not_moved_out_of_reach),
        cmocka_unit_test(a_retry_does_not_forget_the_time_of_a_task_that_waits),
        cmocka_unit_test(a_snoozed_task_opens_no_group_when_it_is_released),
        cmocka_unit_test(a_priority_has_bounds),
        cmocka_unit_test(each_run_waits_for_its_own_answers),
        cmocka_unit_test(no_dead_end_is_found_among_results_in_doubt),
        cmocka_unit_test(no_dead_end_is_found_behind_a_need_that_was_to_fail),
        cmocka_unit_test(what_comes_back_is_to_be_approved_again),
        cmocka_unit_test(rework_behind_a_dead_end_is_skipped),
        cmocka_unit_test(rework_is_to_be_approved_again),
        cmocka_unit_test(a_stale_session_keeps_its_group_open),
        cmocka_unit_test(what_is_stale_is_to_be_approved_again),
        cmocka_unit_test(approval_is_waited_for),
        cmocka_unit_test(a_fatal_failure_is_not_retried),
        cmocka_unit_test(a_failure_stops_the_run_gently),
        cmocka_unit_test(a_deadline_stops_the_run_once),
        cmocka_unit_test(a_deadline_after_the_end_stops_nothing),
        cmocka_unit_test(a_priority_changes_the_order),
        cmocka_unit_test(the_first_goes_before_better_tiers),
        cmocka_unit_test(a_rerun_repeats_what_depends_on_it),
        cmocka_unit_test(a_rerun_brings_back_what_was_skipped_with_it),
        cmocka_unit_test(a_retry_makes_what_it_needs_urgent),
        cmocka_unit_test(a_retry_of_the_run_lets_it_go_on),
    };
    return cmocka_run_group_tests_name("sched_orders", tests, NULL, NULL);
}
