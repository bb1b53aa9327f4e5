/* SPDX-License-Identifier: MIT */
/* What an operator orders, and what is refused. */
#include "tests/unit/sched_fixture.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The order must be refused, and nothing may have changed. */
static void
assert_refused(struct fixture *f, enum sched_event_type type, const char *name)
{
    char *before = fixture_picture(f);
    assert_int_equal(fixture_try_order(f, type, name), ERR_CONFLICT);
    char *after = fixture_picture(f);
    assert_string_equal(after, before);
    mem_free(before);
    mem_free(after);
    sched_verify(f->sched);
}

static void a_held_task_does_not_start(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    fixture_order(&f, EVENT_HOLD, "a");
    fixture_order(&f, EVENT_HOLD, "a"); /* twice is once */
    assert_string_equal(fixture_run_pass(&f), "b");
    assert_int_equal(fixture_state(&f, "a"), TASK_READY);
    assert_true(fixture_get(&f, "a").held);
    assert_int_equal(fixture_why(&f, "a").code, WHY_HELD);
    fixture_order(&f, EVENT_RELEASE, "a");
    assert_false(fixture_get(&f, "a").held);
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_release(&f);
}

static void a_task_can_be_held_before_it_is_ready(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "a");
    fixture_order(&f, EVENT_HOLD, "b");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(f.quiet, 1); /* nothing moves by itself */
    fixture_order(&f, EVENT_RELEASE, "b");
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_release(&f);
}

static void a_running_task_is_held_for_its_next_attempt(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.failure.retry_max = 5;
    f.failure.backoff_ns = MINUTE;
    f.failure.backoff_ns_max = MINUTE;
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_order(&f, EVENT_HOLD, "a");
    assert_int_equal(fixture_state(&f, "a"), TASK_STARTING);
    fixture_end(&f, "a", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_pass(&f, MINUTE);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_why(&f, "a").code, WHY_HELD);
    fixture_order(&f, EVENT_RELEASE, "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_order(&f, EVENT_HOLD, "a");
    fixture_order(&f, EVENT_RELEASE, "a"); /* while it runs: no effect */
    fixture_done(&f, "a");
    assert_int_equal(fixture_state(&f, "a"), TASK_DONE);
    fixture_release(&f);
}

static void hold_and_release_are_refused_where_they_mean_nothing(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 3);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    fixture_task(&f, "c", "");
    assert_string_equal(fixture_run_pass(&f), "a b c");
    fixture_done(&f, "a");
    fixture_order(&f, EVENT_SKIP, "b");
    fixture_end(&f, "b", OUTCOME_DONE);
    fixture_order(&f, EVENT_CANCEL, "c");
    fixture_end(&f, "c", OUTCOME_DONE);
    (void)fixture_run_pass(&f);
    static const char *const ended[] = {"a", "b", "c"};
    for (uint32_t ix = 0; ix < 3; ix++) {
        assert_refused(&f, EVENT_HOLD, ended[ix]);
        assert_refused(&f, EVENT_RELEASE, ended[ix]);
    }
    assert_refused(&f, EVENT_REVOKE, "b");
    fixture_release(&f);
}

static void a_refused_release_reports_no_change(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "a", "");
    (void)fixture_run_pass(&f);
    assert_refused(&f, EVENT_RELEASE, "a");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_string_equal(strbuf_text(&f.changed), "");
    fixture_release(&f);
}

static void retry_ends_a_back_off_at_once(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.failure.retry_max = 2;
    f.failure.backoff_ns = MINUTE;
    f.failure.backoff_ns_max = MINUTE;
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_end(&f, "a", OUTCOME_FAILED);
    fixture_order(&f, EVENT_RETRY, "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    assert_int_equal(fixture_get(&f, "a").tries, 1); /* the budget stays */
    assert_true(sched_next_timer(f.sched) == SCHED_NEVER);
    fixture_release(&f);
}

static void retry_of_what_did_not_fail_is_refused(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "runs", "");
    fixture_task(&f, "ready", "");
    fixture_task(&f, "waits", "runs");
    fixture_task(&f, "gone", "");
    fixture_order(&f, EVENT_CANCEL, "gone");
    fixture_task(&f, "skipped", "");
    fixture_order(&f, EVENT_SKIP, "skipped");
    (void)fixture_run_pass(&f);
    static const char *const names[] = {
        "runs",
        "ready",
        "waits",
        "gone",
        "skipped",
    };
    for (uint32_t ix = 0; ix < 5; ix++) {
        assert_refused(&f, EVENT_RETRY, names[ix]);
    }
    fixture_done(&f, "runs");
    (void)fixture_run_pass(&f);
    assert_refused(&f, EVENT_RETRY, "runs");
    fixture_release(&f);
}

static void retry_of_a_run_takes_up_all_that_failed(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 9);
    fixture_task(&f, "elsewhere", "");
    fixture_cap(&f, 9);
    f.failure.on_failure = SCHED_SKIP;
    fixture_task(&f, "fails", "");
    f.failure.on_failure = SCHED_ASK;
    fixture_task(&f, "asks", "");
    f.failure = (struct sched_failure_spec){0};
    fixture_task(&f, "parks", "");
    fixture_task(&f, "done", "");
    fixture_task(&f, "behind", "fails");
    (void)fixture_run_pass(&f);
    fixture_end(&f, "elsewhere", OUTCOME_FAILED);
    fixture_end(&f, "fails", OUTCOME_FAILED);
    fixture_end(&f, "asks", OUTCOME_FAILED);
    fixture_end(&f, "parks", OUTCOME_FAILED);
    fixture_done(&f, "done");
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_order_run(&f, EVENT_RETRY_RUN);
    assert_string_equal(fixture_run_pass(&f), "fails asks parks");
    assert_int_equal(fixture_state(&f, "behind"), TASK_WAITING);
    assert_int_equal(fixture_state(&f, "elsewhere"), TASK_PARKED);
    assert_int_equal(fixture_state(&f, "done"), TASK_DONE);
    fixture_release(&f);
}

static void skip_and_cancel_take_all_that_need_it_with_them(void **state)
{
    (void)state;
    static const enum sched_event_type types[] = {EVENT_SKIP, EVENT_CANCEL};
    static const enum task_state states[] = {TASK_SKIPPED, TASK_CANCELLED};
    for (uint32_t ix = 0; ix < 2; ix++) {
        struct fixture f;
        fixture_init(&f);
        fixture_cap(&f, 1);
        fixture_task(&f, "other", "");
        fixture_task(&f, "a", "");
        fixture_task(&f, "b", "a");
        fixture_task(&f, "c", "b other");
        fixture_order(&f, types[ix], "a");
        assert_int_equal(fixture_state(&f, "a"), states[ix]);
        assert_int_equal(fixture_state(&f, "b"), TASK_SKIPPED);
        assert_int_equal(fixture_state(&f, "c"), TASK_SKIPPED);
        assert_int_equal(fixture_why(&f, "c").code, WHY_ENDED);
        assert_int_equal(fixture_why(&f, "c").task.v, fixture_id(&f, "a").v);
        assert_string_equal(fixture_run_pass(&f), "other");
        assert_refused(&f, EVENT_SKIP, "a");
        assert_refused(&f, EVENT_CANCEL, "a");
        assert_refused(&f, EVENT_SKIP, "c");
        fixture_release(&f);
    }
}

static void a_task_in_flight_is_told_to_end_once(void **state)
{
    (void)state;
    static const enum sched_event_type types[] = {EVENT_SKIP, EVENT_CANCEL};
    static const enum task_state states[] = {TASK_SKIPPED, TASK_CANCELLED};
    for (uint32_t ix = 0; ix < 2; ix++) {
        struct fixture f;
        fixture_init(&f);
        fixture_cap(&f, 1);
        fixture_task(&f, "a", "");
        fixture_task(&f, "behind", "a");
        fixture_task(&f, "next", "");
        assert_string_equal(fixture_run_pass(&f), "a");
        fixture_accept(&f, "a");
        fixture_order(&f, types[ix], "a");
        assert_int_equal(fixture_state(&f, "a"), TASK_RUNNING);
        assert_string_equal(fixture_run_pass(&f),
                            ""); /* its slot is not free */
        assert_string_equal(strbuf_text(&f.ended), "a");
        assert_refused(&f, EVENT_SKIP, "a");
        assert_refused(&f, EVENT_CANCEL, "a");
        assert_string_equal(fixture_run_pass(&f), "");
        assert_string_equal(strbuf_text(&f.ended), ""); /* told once */
        fixture_end(&f, "a", OUTCOME_DONE);             /* the order wins */
        assert_int_equal(fixture_state(&f, "a"), states[ix]);
        assert_int_equal(fixture_state(&f, "behind"), TASK_SKIPPED);
        assert_string_equal(fixture_run_pass(&f), "next");
        fixture_release(&f);
    }
}

static void a_session_that_ended_first_is_not_told_to_end(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_order(&f, EVENT_CANCEL, "a");
    fixture_end(&f, "a", OUTCOME_REFUSED); /* in the same pass */
    assert_string_equal(fixture_run_pass(&f), "");
    assert_string_equal(strbuf_text(&f.ended), "");
    assert_int_equal(fixture_state(&f, "a"), TASK_CANCELLED);
    fixture_release(&f);
}

static void an_optional_task_skipped_in_flight_releases_others(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.failure.optional = true;
    fixture_task(&f, "lint", "");
    f.failure.optional = false;
    fixture_task(&f, "merge", "lint");
    assert_string_equal(fixture_run_pass(&f), "lint");
    fixture_order(&f, EVENT_SKIP, "lint");
    fixture_end(&f, "lint", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "merge");
    assert_int_equal(fixture_state(&f, "lint"), TASK_SKIPPED);
    fixture_release(&f);

    /* Cancelled is not skipped. */
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.failure.optional = true;
    fixture_task(&f, "lint", "");
    fixture_task(&f, "merge", "lint");
    assert_string_equal(fixture_run_pass(&f), "lint");
    fixture_order(&f, EVENT_CANCEL, "lint");
    fixture_end(&f, "lint", OUTCOME_DONE);
    assert_int_equal(fixture_state(&f, "merge"), TASK_SKIPPED);
    fixture_release(&f);
}

static void failed_and_parked_leave_by_skip_and_cancel(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 4);
    fixture_task(&f, "p1", "");
    fixture_task(&f, "p2", "");
    f.failure.on_failure = SCHED_SKIP;
    fixture_task(&f, "f1", "");
    fixture_task(&f, "f2", "");
    (void)fixture_run_pass(&f);
    static const char *const names[] = {"p1", "p2", "f1", "f2"};
    for (uint32_t ix = 0; ix < 4; ix++) {
        fixture_end(&f, names[ix], OUTCOME_FAILED);
        fixture_order(&f, ix % 2 == 0 ? EVENT_SKIP : EVENT_CANCEL, names[ix]);
        assert_int_equal(fixture_state(&f, names[ix]),
                         ix % 2 == 0 ? TASK_SKIPPED : TASK_CANCELLED);
    }
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_release(&f);
}

/* Order the end of one task of a batch after the other. */
static void a_batch_ends_when_all_of_it_is_to_end(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.spec.class_id = fixture_class(&f, 0, false, 3, SCHED_NEVER);
    f.spec.group = fixture_group(&f, 0, 0);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    fixture_task(&f, "c", "");
    assert_string_equal(fixture_run_pass(&f), "a+b+c");
    fixture_order(&f, EVENT_CANCEL, "b");
    fixture_order(&f, EVENT_SKIP, "c");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_string_equal(strbuf_text(&f.ended), ""); /* a still works */
    fixture_order(&f, EVENT_CANCEL, "a");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_string_equal(strbuf_text(&f.ended), "a");
    fixture_end(&f, "b", OUTCOME_DONE); /* any of its tasks names it */
    assert_int_equal(fixture_state(&f, "a"), TASK_CANCELLED);
    assert_int_equal(fixture_state(&f, "b"), TASK_CANCELLED);
    assert_int_equal(fixture_state(&f, "c"), TASK_SKIPPED);
    fixture_release(&f);
}

static void
one_cancelled_in_a_batch_leaves_the_others_their_result(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.spec.class_id = fixture_class(&f, 0, false, 3, SCHED_NEVER);
    f.spec.group = fixture_group(&f, 0, 0);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "a+b");
    fixture_order(&f, EVENT_CANCEL, "a");
    fixture_end(&f, "a", OUTCOME_DONE);
    assert_int_equal(fixture_state(&f, "a"), TASK_CANCELLED);
    assert_int_equal(fixture_state(&f, "b"), TASK_DONE);
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_release(&f);
}

static void a_paused_run_lets_others_go_on(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "a", "");
    fixture_cap(&f, 1);
    fixture_task(&f, "b", "");
    fixture_order_run(&f, EVENT_PAUSE); /* the second one */
    fixture_order_run(&f, EVENT_PAUSE);
    assert_string_equal(fixture_run_pass(&f), "a");
    assert_true(sched_run(f.sched, f.run).paused);
    assert_int_equal(fixture_why(&f, "b").code, WHY_PAUSED);
    fixture_order_run(&f, EVENT_RESUME);
    assert_string_equal(fixture_run_pass(&f), "b");
    assert_false(sched_run(f.sched, f.run).paused);
    fixture_release(&f);
}

static void a_cancelled_run_ends_everything(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    f.failure.retry_max = 1;
    f.failure.backoff_ns = MINUTE;
    f.failure.backoff_ns_max = MINUTE;
    fixture_task(&f, "runs", "");
    fixture_task(&f, "backs", "");
    fixture_task(&f, "ready", "");
    fixture_task(&f, "held", "");
    fixture_task(&f, "waits", "runs");
    fixture_order(&f, EVENT_HOLD, "held");
    assert_string_equal(fixture_run_pass(&f), "runs backs");
    fixture_end(&f, "backs", OUTCOME_FAILED);
    fixture_order(&f, EVENT_HOLD, "ready");
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_order(&f, EVENT_RELEASE, "ready");
    fixture_order_run(&f, EVENT_CANCEL_RUN);
    fixture_order_run(&f, EVENT_CANCEL_RUN); /* twice is once */
    assert_string_equal(fixture_run_pass(&f), "");
    assert_string_equal(strbuf_text(&f.ended), "runs");
    static const char *const names[] = {"backs", "ready", "held", "waits"};
    for (uint32_t ix = 0; ix < 4; ix++) {
        assert_int_equal(fixture_state(&f, names[ix]), TASK_CANCELLED);
    }
    fixture_end(&f, "runs", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_state(&f, "runs"), TASK_CANCELLED);
    assert_int_equal(f.quiet, 1);
    assert_true(sched_run(f.sched, f.run).cancelled);
    assert_true(sched_next_timer(f.sched) == SCHED_NEVER);
    fixture_release(&f);
}

static void stale_and_double_reports_change_nothing(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.failure.retry_max = 3;
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    uint64_t first = fixture_get(&f, "a").token;
    fixture_accept(&f, "a");
    struct sched_event again = {
        .type = EVENT_STARTED,
        .now_ns = f.now_ns,
        .task = fixture_id(&f, "a"),
        .token = first,
    };
    assert_int_equal(sched_apply(f.sched, &again), ERR_CONFLICT);
    fixture_end(&f, "a", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "a");
    char *before = fixture_picture(&f);
    assert_int_equal(sched_apply(f.sched, &again), ERR_CONFLICT);
    assert_int_equal(fixture_try_end(&f, "a", first, OUTCOME_DONE),
                     ERR_CONFLICT);
    assert_int_equal(fixture_try_end(&f, "b", 0, OUTCOME_DONE), ERR_CONFLICT);
    char *after = fixture_picture(&f);
    assert_string_equal(after, before);
    mem_free(before);
    mem_free(after);
    fixture_done(&f, "a");
    assert_int_equal(
        fixture_try_end(&f, "a", fixture_get(&f, "a").token, OUTCOME_FAILED),
        ERR_CONFLICT); /* the first end wins */
    assert_int_equal(fixture_state(&f, "a"), TASK_DONE);
    fixture_release(&f);
}

static void an_event_about_nothing_is_invalid(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "a", "");
    (void)fixture_run_pass(&f);
    char *before = fixture_picture(&f);
    for (int type = EVENT_STARTED; type <= EVENT_REVOKE; type++) {
        static const enum sched_outcome outcome = OUTCOME_DONE;
        struct sched_event event = {
            .type = (enum sched_event_type)type,
            .now_ns = f.now_ns,
            .task = {99},
            .run = {99},
            .limit = {9999},
            .outcomes = &outcome,
            .outcome_count = 1,
        };
        assert_int_equal(sched_apply(f.sched, &event), ERR_INVALID);
    }
    struct sched_event unknown = {
        .type = (enum sched_event_type)(EVENT_FIRST + 1),
        .now_ns = f.now_ns,
    };
    assert_int_equal(sched_apply(f.sched, &unknown), ERR_INVALID);
    char *after = fixture_picture(&f);
    assert_string_equal(after, before);
    mem_free(before);
    mem_free(after);
    fixture_release(&f);
}

static void outcomes_must_fit_the_session(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.spec.class_id = fixture_class(&f, 0, false, 2, SCHED_NEVER);
    f.spec.group = fixture_group(&f, 0, 0);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "a+b");
    static const enum sched_outcome outcomes[] = {
        OUTCOME_DONE,
        OUTCOME_REFUSED,
        OUTCOME_DONE,
    };
    struct sched_event event = {
        .type = EVENT_ENDED,
        .now_ns = f.now_ns,
        .task = fixture_id(&f, "a"),
        .token = fixture_get(&f, "a").token,
        .outcomes = outcomes,
    };
    static const uint32_t wrong[] = {0, 2, 3}; /* 2: one is a rejection */
    for (uint32_t ix = 0; ix < 3; ix++) {
        event.outcome_count = wrong[ix];
        assert_int_equal(sched_apply(f.sched, &event), ERR_INVALID);
        assert_int_equal(fixture_state(&f, "a"), TASK_STARTING);
        assert_int_equal(fixture_used(&f, 0), 1);
    }
    sched_verify(f.sched);
    fixture_release(&f);
}

static void a_barrier_without_drain_stops_nobody(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_sync_run(&f, 2, false);
    static const char *const names[] = {"a", "b", "c", "d", "e", "g"};
    for (uint32_t ix = 0; ix < 6; ix++) {
        fixture_task(&f, names[ix], "");
    }
    assert_string_equal(fixture_run_pass(&f), "a b c");
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "d");
    assert_int_equal(f.barriers, 0);
    fixture_done(&f, "b");
    assert_string_equal(fixture_run_pass(&f),
                        "e"); /* free slots are not idle */
    assert_int_equal(f.barriers, 1);
    assert_true(sched_run(f.sched, f.run).barrier);
    fixture_done(&f, "c d"); /* the next one is due while this one runs */
    assert_string_equal(fixture_run_pass(&f), "g");
    assert_int_equal(f.barriers, 0);
    fixture_order_run(&f, EVENT_BARRIER_DONE);
    (void)fixture_run_pass(&f);
    assert_int_equal(f.barriers, 1);
    fixture_done(&f, "e");
    fixture_order_run(&f, EVENT_BARRIER_DONE);
    fixture_done(&f, "g");
    (void)fixture_run_pass(&f);
    assert_int_equal(f.barriers, 1);
    assert_int_equal(f.quiet, 0); /* the hook is under way */
    fixture_order_run(&f, EVENT_BARRIER_DONE);
    (void)fixture_run_pass(&f);
    assert_int_equal(f.quiet, 1);
    assert_false(sched_run(f.sched, f.run).barrier);
    fixture_release(&f);
}

static void a_draining_barrier_waits_until_nothing_is_in_flight(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_sync_run(&f, 1, true);
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    for (uint32_t ix = 0; ix < 5; ix++) {
        fixture_task(&f, names[ix], "");
    }
    assert_string_equal(fixture_run_pass(&f), "a b c");
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(f.barriers, 0);
    assert_true(sched_run(f.sched, f.run).barrier);
    assert_int_equal(fixture_why(&f, "d").code, WHY_BARRIER);
    fixture_done(&f, "b c");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(f.barriers, 1);
    assert_string_equal(fixture_run_pass(&f), ""); /* until the hook is done */
    fixture_order_run(&f, EVENT_BARRIER_DONE);
    assert_string_equal(fixture_run_pass(&f), "d e");
    struct sched_event event = {
        .type = EVENT_BARRIER_DONE,
        .now_ns = f.now_ns,
        .run = f.run,
    };
    assert_int_equal(sched_apply(f.sched, &event), ERR_CONFLICT);
    fixture_release(&f);
}

static void a_run_says_once_that_nothing_more_happens(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    (void)fixture_run_pass(&f);
    assert_int_equal(f.quiet, 1); /* without tasks, it is */
    (void)fixture_run_pass(&f);
    assert_int_equal(f.quiet, 0);
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    assert_int_equal(f.quiet, 0);
    fixture_done(&f, "a");
    (void)fixture_run_pass(&f);
    assert_int_equal(f.quiet, 1);
    fixture_pass(&f, MINUTE);
    (void)fixture_run_pass(&f);
    assert_int_equal(f.quiet, 0);
    fixture_release(&f);
}

static void changes_are_reported_once_per_pass(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "a");
    (void)fixture_run_pass(&f);
    assert_string_equal(strbuf_text(&f.changed), "a b");
    fixture_accept(&f, "a");
    fixture_done(&f, "a"); /* running, done: one report */
    assert_string_equal(fixture_run_pass(&f), "b");
    assert_string_equal(strbuf_text(&f.changed), "a b");
    (void)fixture_run_pass(&f);
    assert_string_equal(strbuf_text(&f.changed), "");
    fixture_release(&f);
}

static void freeing_nothing_is_fine(void **state)
{
    (void)state;
    sched_free(NULL);
    struct sched *sched = sched_new();
    struct sched_effect effect;
    assert_false(sched_next_effect(sched, &effect));
    assert_true(sched_next_timer(sched) == SCHED_NEVER);
    assert_int_equal(sched_task_count(sched), 0);
    assert_true(sched_bytes(sched) > 0);
    sched_verify(sched);
    sched_free(sched);
}

static void a_pause_and_a_barrier_do_not_undo_each_other(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_sync_run(&f, 1, true);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_done(&f, "a");
    (void)fixture_run_pass(&f);
    assert_int_equal(f.barriers, 1);
    fixture_order_run(&f, EVENT_PAUSE);
    fixture_order_run(&f, EVENT_RESUME);
    assert_string_equal(fixture_run_pass(&f), ""); /* the hook is under way */
    fixture_order_run(&f, EVENT_PAUSE);
    fixture_order_run(&f, EVENT_BARRIER_DONE);
    assert_string_equal(fixture_run_pass(&f), ""); /* it is paused */
    fixture_order_run(&f, EVENT_RESUME);
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_release(&f);
}

static void a_second_barrier_waits_for_the_first(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_sync_run(&f, 1, false);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    (void)fixture_run_pass(&f);
    fixture_done(&f, "a");
    (void)fixture_run_pass(&f);
    assert_int_equal(f.barriers, 1);
    fixture_done(&f, "b");
    (void)fixture_run_pass(&f);
    assert_int_equal(f.barriers, 0);
    assert_int_equal(f.quiet, 0);
    fixture_order_run(&f, EVENT_BARRIER_DONE);
    (void)fixture_run_pass(&f);
    assert_int_equal(f.barriers, 1);
    assert_int_equal(f.quiet, 0);
    fixture_order_run(&f, EVENT_BARRIER_DONE);
    (void)fixture_run_pass(&f);
    assert_int_equal(f.quiet, 1);
    fixture_release(&f);
}

/* A background review that backs off keeps no place for its group. */
static void holding_a_background_task_that_backs_off(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(1), fixture_max(1)};
    limits[1].hold_group = true;
    fixture_run(&f, SCHED_RANK, limits, 2);
    f.spec.class_id = fixture_class(&f, 1, true, 1, SCHED_NEVER);
    f.failure.retry_max = 1;
    f.failure.backoff_ns = MINUTE;
    f.failure.backoff_ns_max = MINUTE;
    fixture_task(&f, "back", "");
    assert_string_equal(fixture_run_pass(&f), "back");
    fixture_end(&f, "back", OUTCOME_FAILED);
    fixture_order(&f, EVENT_HOLD, "back");
    fixture_order(&f, EVENT_RELEASE, "back");
    f.spec.class_id = f.work;
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_done(&f, "a");
    fixture_pass(&f, MINUTE);
    assert_string_equal(fixture_run_pass(&f), "back");
    fixture_release(&f);
}

static void holding_again_and_again_closes_the_group_once(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec active = fixture_max(1);
    active.hold_group = true;
    fixture_run(&f, SCHED_RANK, &active, 1);
    f.failure.retry_max = 1;
    f.failure.backoff_ns = MINUTE;
    f.failure.backoff_ns_max = MINUTE;
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_end(&f, "a", OUTCOME_FAILED);
    for (uint32_t ix = 0; ix < 3; ix++) {
        fixture_order(&f, EVENT_HOLD, "a");
        fixture_order(&f, EVENT_RELEASE, "a");
    }
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_used(&f, 0), 1); /* it never stopped */
    fixture_order(&f, EVENT_HOLD, "a");
    fixture_order(&f, EVENT_RELEASE, "a");
    fixture_order(&f, EVENT_HOLD, "a");
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_used(&f, 0), 0);
    fixture_release(&f);
}

static void nothing_starts_while_draining(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_order_run(&f, EVENT_DRAIN);
    fixture_order_run(&f, EVENT_DRAIN);
    fixture_cap(&f, 1); /* a run that comes later is held up too */
    fixture_task(&f, "c", "");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(f.quiet, 1); /* in the second run nothing is in flight */
    assert_int_equal(fixture_why(&f, "b").code, WHY_DRAINING);
    assert_int_equal(fixture_why(&f, "c").code, WHY_DRAINING);
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(f.quiet, 1);
    fixture_order_run(&f, EVENT_FILL);
    assert_string_equal(fixture_run_pass(&f), "b c");
    fixture_release(&f);
}

static void a_run_that_backs_off_is_quiet_while_draining(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.failure.retry_max = 1;
    f.failure.backoff_ns = MINUTE;
    f.failure.backoff_ns_max = MINUTE;
    fixture_task(&f, "a", "");
    (void)fixture_run_pass(&f);
    fixture_end(&f, "a", OUTCOME_FAILED);
    (void)fixture_run_pass(&f);
    assert_int_equal(f.quiet, 0);
    fixture_order_run(&f, EVENT_DRAIN);
    (void)fixture_run_pass(&f);
    assert_int_equal(f.quiet, 1);
    fixture_pass(&f, MINUTE);
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_order_run(&f, EVENT_PAUSE);
    fixture_order_run(&f, EVENT_FILL); /* does not undo the pause */
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_why(&f, "a").code, WHY_PAUSED);
    fixture_release(&f);
}

static void a_sync_hook_waits_for_the_end_of_draining(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_sync_run(&f, 1, false);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "a");
    (void)fixture_run_pass(&f);
    fixture_order_run(&f, EVENT_DRAIN);
    fixture_done(&f, "a");
    (void)fixture_run_pass(&f);
    assert_int_equal(f.barriers, 0);
    assert_int_equal(f.quiet, 1);
    assert_true(sched_run_record(f.sched, f.run).barrier);
    fixture_order_run(&f, EVENT_FILL);
    assert_string_equal(fixture_run_pass(&f), "b");
    assert_int_equal(f.barriers, 1);
    /* One that is under way is something that happens. */
    fixture_order_run(&f, EVENT_DRAIN);
    fixture_order(&f, EVENT_CANCEL, "b");
    (void)fixture_run_pass(&f);
    fixture_done(&f, "b");
    (void)fixture_run_pass(&f);
    assert_int_equal(f.quiet, 0);
    fixture_order_run(&f, EVENT_BARRIER_DONE);
    (void)fixture_run_pass(&f);
    assert_int_equal(f.quiet, 1);
    fixture_release(&f);
}

/* It is done again because of that, and a record must say so. */
static void what_rework_overtakes_is_reported(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 3);
    f.spec.group = fixture_group(&f, 0, 0);
    struct task_id code = fixture_task(&f, "code", "");
    fixture_task(&f, "docs", "code");
    f.spec.rework_to = code.v;
    f.failure.rework_max = 1;
    fixture_task(&f, "check", "code");
    (void)fixture_run_pass(&f);
    fixture_done(&f, "code");
    assert_string_equal(fixture_run_pass(&f), "docs check");
    fixture_end(&f, "check", OUTCOME_CHANGES);
    assert_string_equal(fixture_run_pass(&f), "code");
    assert_string_equal(strbuf_text(&f.changed), "docs code check");
    assert_true((sched_record(f.sched, fixture_id(&f, "docs")).flags &
                 SCHED_RECORD_STALE) != 0);
    /* Ended by an order, it is not stale any more. */
    fixture_order(&f, EVENT_CANCEL, "docs");
    fixture_done(&f, "docs");
    (void)fixture_run_pass(&f);
    assert_int_equal(sched_record(f.sched, fixture_id(&f, "docs")).flags &
                         ~(unsigned)SCHED_RECORD_GROUP_OPEN,
                     0);
    fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_held_task_does_not_start),
        cmocka_unit_test(a_task_can_be_held_before_it_is_ready),
        cmocka_unit_test(a_running_task_is_held_for_its_next_attempt),
        cmocka_unit_test(hold_and_release_are_refused_where_they_mean_nothing),
        cmocka_unit_test(a_refused_release_reports_no_change),
        cmocka_unit_test(retry_ends_a_back_off_at_once),
        cmocka_unit_test(retry_of_what_did_not_fail_is_refused),
        cmocka_unit_test(retry_of_a_run_takes_up_all_that_failed),
        cmocka_unit_test(skip_and_cancel_take_all_that_need_it_with_them),
        cmocka_unit_test(a_task_in_flight_is_told_to_end_once),
        cmocka_unit_test(a_session_that_ended_first_is_not_told_to_end),
        cmocka_unit_test(an_optional_task_skipped_in_flight_releases_others),
        cmocka_unit_test(failed_and_parked_leave_by_skip_and_cancel),
        cmocka_unit_test(a_batch_ends_when_all_of_it_is_to_end),
        cmocka_unit_test(
            one_cancelled_in_a_batch_leaves_the_others_their_result),
        cmocka_unit_test(a_paused_run_lets_others_go_on),
        cmocka_unit_test(a_cancelled_run_ends_everything),
        cmocka_unit_test(stale_and_double_reports_change_nothing),
        cmocka_unit_test(an_event_about_nothing_is_invalid),
        cmocka_unit_test(outcomes_must_fit_the_session),
        cmocka_unit_test(a_barrier_without_drain_stops_nobody),
        cmocka_unit_test(a_draining_barrier_waits_until_nothing_is_in_flight),
        cmocka_unit_test(a_run_says_once_that_nothing_more_happens),
        cmocka_unit_test(changes_are_reported_once_per_pass),
        cmocka_unit_test(freeing_nothing_is_fine),
        cmocka_unit_test(a_pause_and_a_barrier_do_not_undo_each_other),
        cmocka_unit_test(a_second_barrier_waits_for_the_first),
        cmocka_unit_test(holding_a_background_task_that_backs_off),
        cmocka_unit_test(holding_again_and_again_closes_the_group_once),
        cmocka_unit_test(nothing_starts_while_draining),
        cmocka_unit_test(a_run_that_backs_off_is_quiet_while_draining),
        cmocka_unit_test(a_sync_hook_waits_for_the_end_of_draining),
        cmocka_unit_test(what_rework_overtakes_is_reported),
    };
    return cmocka_run_group_tests_name("sched: orders", tests, NULL, NULL);
}
