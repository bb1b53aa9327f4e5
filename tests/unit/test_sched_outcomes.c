/* SPDX-License-Identifier: MIT */
/* Needs with another outcome than done. */
#include "tests/unit/sched_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void begin(struct fixture *f)
{
    fixture_init(f);
    fixture_cap(f, 4);
    f->failure.retry_max = 0;
}

/* The task "a" ends so; start it first. */
static void end_a(struct fixture *f, enum sched_outcome outcome)
{
    assert_string_equal(fixture_run_pass(f), "a");
    fixture_end(f, "a", outcome);
}

static void a_failure_starts_what_needs_it(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    fixture_task(&f, "a", "");
    fixture_task(&f, "good", "a");
    fixture_task(&f, "bad", "a:failed");
    fixture_task(&f, "both", "a:any");
    end_a(&f, OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "bad both");
    assert_int_equal(fixture_state(&f, "a"), TASK_PARKED);
    assert_int_equal(fixture_state(&f, "good"), TASK_WAITING);
    fixture_release(&f);
}

static void a_success_skips_what_needs_a_failure(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    fixture_task(&f, "a", "");
    fixture_task(&f, "good", "a");
    fixture_task(&f, "bad", "a:failed");
    fixture_task(&f, "behind", "bad");
    fixture_task(&f, "after", "bad:any");
    end_a(&f, OUTCOME_DONE);
    assert_string_equal(fixture_run_pass(&f), "good after");
    assert_int_equal(fixture_state(&f, "bad"), TASK_SKIPPED);
    assert_int_equal(fixture_state(&f, "behind"), TASK_SKIPPED);
    struct why why = fixture_why(&f, "bad");
    assert_int_equal(why.code, WHY_ENDED);
    assert_int_equal(why.task.v, fixture_id(&f, "a").v);
    fixture_release(&f);
}

static void a_question_is_no_outcome(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    fixture_task(&f, "a", "");
    fixture_task(&f, "bad", "a:failed");
    fixture_task(&f, "both", "a:any");
    end_a(&f, OUTCOME_BLOCKED);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_why(&f, "both").code, WHY_NEEDS);
    fixture_order(&f, EVENT_SKIP, "a");
    assert_string_equal(fixture_run_pass(&f), "both");
    assert_int_equal(fixture_state(&f, "bad"), TASK_SKIPPED);
    fixture_release(&f);
}

static void a_cancelled_task_has_ended(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    fixture_task(&f, "a", "");
    fixture_task(&f, "bad", "a:failed");
    fixture_task(&f, "both", "a:any");
    fixture_order(&f, EVENT_CANCEL, "a");
    assert_string_equal(fixture_run_pass(&f), "both");
    assert_int_equal(fixture_state(&f, "bad"), TASK_SKIPPED);
    fixture_release(&f);
}

static void a_retry_takes_the_failure_back(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    fixture_task(&f, "a", "");
    fixture_task(&f, "x", "");
    fixture_task(&f, "bad", "a:failed x");
    assert_string_equal(fixture_run_pass(&f), "a x");
    fixture_end(&f, "a", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_order(&f, EVENT_RETRY, "a");
    fixture_done(&f, "x");
    assert_string_equal(fixture_run_pass(&f), "a");
    assert_int_equal(fixture_state(&f, "bad"), TASK_WAITING);
    fixture_done(&f, "a");
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_state(&f, "bad"), TASK_SKIPPED);
    fixture_release(&f);
}

static void what_has_started_is_not_taken_back(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    fixture_task(&f, "a", "");
    fixture_task(&f, "bad", "a:failed");
    fixture_task(&f, "behind", "bad");
    end_a(&f, OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "bad");
    fixture_order(&f, EVENT_RETRY, "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_done(&f, "bad a");
    assert_string_equal(fixture_run_pass(&f), "behind");
    fixture_release(&f);
}

static void a_rerun_revives_what_was_skipped(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    fixture_task(&f, "a", "");
    fixture_task(&f, "bad", "a:failed");
    fixture_task(&f, "behind", "bad");
    end_a(&f, OUTCOME_DONE);
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_state(&f, "behind"), TASK_SKIPPED);
    fixture_order(&f, EVENT_RERUN, "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    assert_int_equal(fixture_state(&f, "bad"), TASK_WAITING);
    assert_int_equal(fixture_state(&f, "behind"), TASK_WAITING);
    fixture_end(&f, "a", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "bad");
    fixture_release(&f);
}

/* "b" stays skipped because of "x", but "c" runs again all the same. */
static void a_rerun_revives_what_is_behind_what_stays_skipped(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    f.failure.on_failure = SCHED_SKIP;
    fixture_task(&f, "a", "");
    fixture_task(&f, "x", "");
    fixture_task(&f, "b", "a x");
    fixture_task(&f, "c", "b:any");
    fixture_task(&f, "d", "c");
    assert_string_equal(fixture_run_pass(&f), "a x");
    fixture_done(&f, "a");
    fixture_end(&f, "x", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "c");
    fixture_end(&f, "c", OUTCOME_FAILED);
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_state(&f, "d"), TASK_SKIPPED);
    fixture_order(&f, EVENT_RERUN, "a");
    assert_int_equal(fixture_state(&f, "b"), TASK_SKIPPED);
    assert_int_equal(fixture_state(&f, "d"), TASK_WAITING);
    assert_string_equal(fixture_run_pass(&f), "c a");
    fixture_done(&f, "a c");
    assert_string_equal(fixture_run_pass(&f), "d");
    fixture_release(&f);
}

static void an_optional_task_that_fails_has_failed(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    f.failure.on_failure = SCHED_SKIP;
    f.failure.optional = true;
    fixture_task(&f, "a", "");
    fixture_task(&f, "good", "a");
    fixture_task(&f, "bad", "a:failed");
    end_a(&f, OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "good bad");
    fixture_release(&f);
}

static void a_need_on_what_has_ended_already(void **state)
{
    (void)state;
    struct fixture f;
    struct sched_rejection rejection;
    begin(&f);
    fixture_task(&f, "a", "");
    fixture_task(&f, "x", "");
    fixture_task(&f, "old", "x");
    assert_string_equal(fixture_run_pass(&f), "x a");
    fixture_end(&f, "a", OUTCOME_FAILED);
    fixture_task(&f, "bad", "a:failed");
    fixture_done(&f, "x");
    fixture_task(&f, "never", "x:failed");
    assert_int_equal(fixture_try_need(&f, "old", "a:failed", &rejection),
                     ERR_OK);
    assert_string_equal(fixture_run_pass(&f), "bad old");
    assert_int_equal(fixture_state(&f, "never"), TASK_SKIPPED);
    fixture_release(&f);
}

static void needs_of_all_kinds_form_cycles(void **state)
{
    (void)state;
    struct fixture f;
    struct sched_rejection rejection;
    begin(&f);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "a:failed");
    assert_int_equal(fixture_try_need(&f, "a", "b:any", &rejection),
                     ERR_INVALID);
    assert_int_equal(rejection.code, REJECTION_CYCLE);
    sched_rejection_release(&rejection);
    fixture_release(&f);
}

static void each_state_has_its_name(void **state)
{
    (void)state;
    static const char *const names[] = {
        "waiting",
        "ready",
        "starting",
        "running",
        "done",
        "failed",
        "parked",
        "skipped",
        "cancelled",
    };
    static const enum task_state states[] = {
        TASK_WAITING,
        TASK_READY,
        TASK_STARTING,
        TASK_RUNNING,
        TASK_DONE,
        TASK_FAILED,
        TASK_PARKED,
        TASK_SKIPPED,
        TASK_CANCELLED,
    };
    for (uint32_t ix = 0; ix < TASK_STATE_COUNT; ix++) {
        assert_string_equal(sched_state_name(states[ix]), names[ix]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_state_has_its_name),
        cmocka_unit_test(a_failure_starts_what_needs_it),
        cmocka_unit_test(a_success_skips_what_needs_a_failure),
        cmocka_unit_test(a_question_is_no_outcome),
        cmocka_unit_test(a_cancelled_task_has_ended),
        cmocka_unit_test(a_retry_takes_the_failure_back),
        cmocka_unit_test(what_has_started_is_not_taken_back),
        cmocka_unit_test(a_rerun_revives_what_was_skipped),
        cmocka_unit_test(a_rerun_revives_what_is_behind_what_stays_skipped),
        cmocka_unit_test(an_optional_task_that_fails_has_failed),
        cmocka_unit_test(a_need_on_what_has_ended_already),
        cmocka_unit_test(needs_of_all_kinds_form_cycles),
    };
    return cmocka_run_group_tests_name("sched_outcomes", tests, NULL, NULL);
}
