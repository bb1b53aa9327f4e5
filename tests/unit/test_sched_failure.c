/* SPDX-License-Identifier: MIT */
/* What happens when an attempt does not end well. */
#include "tests/unit/sched_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* End the session of this task, and require what starts then. */
static void end_then(struct fixture *f,
                     const char *name,
                     enum sched_outcome outcome,
                     const char *started)
{
    fixture_end(f, name, outcome);
    assert_string_equal(fixture_run_pass(f), started);
}

/* A pipeline in one group: "code" then "test" then "review", which sends
 * back to "code" at most `rework_max` times. */
static void add_pipeline(struct fixture *f, uint32_t rework_max)
{
    f->spec.group = fixture_group(f, 0, 0);
    struct task_id code = fixture_task(f, "code", "");
    fixture_task(f, "test", "code");
    f->spec.rework_to = code.v;
    f->failure.rework_max = rework_max;
    fixture_task(f, "review", "test");
    f->spec.rework_to = ID_NONE;
    f->failure.rework_max = 0;
    f->spec.group = ID_NONE;
}

static void a_failed_task_is_tried_again_after_its_back_off(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.failure.retry_max = 5;
    f.failure.backoff_ns = 10 * SECOND;
    f.failure.backoff_ns_max = 35 * SECOND;
    fixture_task(&f, "a", "");
    static const int64_t delays[] = {10, 20, 35, 35, 35};
    assert_string_equal(fixture_run_pass(&f), "a");
    for (uint32_t ix = 0; ix < 5; ix++) {
        end_then(&f, "a", OUTCOME_FAILED, "");
        assert_int_equal(fixture_state(&f, "a"), TASK_WAITING);
        assert_true(fixture_get(&f, "a").backing_off);
        assert_int_equal(fixture_get(&f, "a").tries, ix + 1);
        int64_t until_ns = f.now_ns + delays[ix] * SECOND;
        assert_true(sched_next_timer(f.sched) == until_ns);
        assert_int_equal(fixture_why(&f, "a").code, WHY_BACKOFF);
        assert_true(fixture_why(&f, "a").until_ns == until_ns);
        fixture_pass(&f, delays[ix] * SECOND - 1);
        assert_string_equal(fixture_run_pass(&f), "");
        fixture_pass(&f, 1);
        assert_string_equal(fixture_run_pass(&f), "a");
    }
    end_then(&f, "a", OUTCOME_FAILED, "");
    assert_int_equal(fixture_state(&f, "a"), TASK_PARKED);
    assert_true(sched_next_timer(f.sched) == SCHED_NEVER);
    assert_int_equal(f.quiet, 1);
    fixture_release(&f);
}

static void a_first_delay_above_the_ceiling_is_cut(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.failure.retry_max = 1;
    f.failure.backoff_ns = 10 * SECOND;
    f.failure.backoff_ns_max = 4 * SECOND;
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_end(&f, "a", OUTCOME_FAILED);
    assert_true(sched_next_timer(f.sched) == 4 * SECOND);
    fixture_release(&f);
}

static void without_back_off_it_is_ready_at_once(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.failure.retry_max = 1;
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    end_then(&f, "a", OUTCOME_FAILED, "a");
    assert_int_equal(fixture_get(&f, "a").attempts, 2);
    end_then(&f, "a", OUTCOME_FAILED, "");
    fixture_release(&f);
}

static void several_back_offs_end_in_their_order(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 9);
    f.failure.retry_max = 1;
    static const char *const names[] = {"c", "a", "b", "b2"};
    static const int64_t delays[] = {30, 10, 20, 20};
    for (uint32_t ix = 0; ix < 4; ix++) {
        f.failure.backoff_ns = delays[ix] * SECOND;
        f.failure.backoff_ns_max = MINUTE;
        fixture_task(&f, names[ix], "");
    }
    assert_string_equal(fixture_run_pass(&f), "c a b b2");
    for (uint32_t ix = 0; ix < 4; ix++) {
        fixture_end(&f, names[ix], OUTCOME_FAILED);
    }
    static const char *const waves[] = {"a", "b b2", "c"};
    for (uint32_t ix = 0; ix < 3; ix++) {
        assert_true(sched_next_timer(f.sched) == 10 * SECOND * (ix + 1));
        fixture_pass(&f, 10 * SECOND);
        assert_string_equal(fixture_run_pass(&f), waves[ix]);
    }
    fixture_release(&f);
}

static void park_lets_the_rest_go_on(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    fixture_task(&f, "a", "");
    fixture_task(&f, "behind", "a");
    f.spec.estimate_ns = 0;
    fixture_task(&f, "b", "");
    fixture_task(&f, "c", "");
    assert_string_equal(fixture_run_pass(&f), "a b");
    end_then(&f, "a", OUTCOME_FAILED, "c");
    assert_int_equal(fixture_state(&f, "a"), TASK_PARKED);
    assert_int_equal(fixture_state(&f, "behind"), TASK_WAITING);
    assert_int_equal(fixture_why(&f, "a").code, WHY_PARKED);
    assert_int_equal(fixture_why(&f, "behind").code, WHY_BLOCKED);
    fixture_done(&f, "b c");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(f.quiet, 1);
    fixture_order(&f, EVENT_RETRY, "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    assert_int_equal(fixture_get(&f, "a").tries, 0); /* a new budget */
    end_then(&f, "a", OUTCOME_DONE, "behind");
    fixture_release(&f);
}

static void blocked_parks_whatever_the_rule(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.failure.retry_max = 9;
    f.failure.on_failure = SCHED_ABORT;
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    end_then(&f, "a", OUTCOME_BLOCKED, "");
    assert_int_equal(fixture_state(&f, "a"), TASK_PARKED);
    assert_false(sched_run(f.sched, f.run).cancelled);
    fixture_release(&f);
}

static void abort_cancels_the_whole_run(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 3);
    fixture_task(&f, "done", "");
    fixture_task(&f, "parked", "");
    f.failure.on_failure = SCHED_ABORT;
    fixture_task(&f, "bad", "");
    f.failure = (struct sched_failure_spec){0};
    fixture_task(&f, "waits", "bad");
    assert_string_equal(fixture_run_pass(&f), "bad done parked");
    fixture_done(&f, "done");
    f.failure.retry_max = 1;
    f.failure.backoff_ns = MINUTE;
    f.failure.backoff_ns_max = MINUTE;
    fixture_task(&f, "backs", "");
    fixture_task(&f, "ready", "");
    fixture_task(&f, "ready2", "");
    end_then(&f, "parked", OUTCOME_BLOCKED, "backs ready");
    end_then(&f, "backs", OUTCOME_FAILED, "ready2");

    fixture_end(&f, "bad", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_true(sched_run(f.sched, f.run).cancelled);
    assert_non_null(strstr(strbuf_text(&f.ended), "ready2"));
    assert_int_equal(f.ended.len, strlen("ready ready2")); /* any order */
    assert_int_equal(fixture_state(&f, "done"), TASK_DONE);
    assert_int_equal(fixture_state(&f, "bad"), TASK_FAILED);
    assert_int_equal(fixture_state(&f, "parked"), TASK_CANCELLED);
    assert_int_equal(fixture_state(&f, "waits"), TASK_CANCELLED);
    assert_int_equal(fixture_state(&f, "backs"), TASK_CANCELLED);
    assert_int_equal(fixture_why(&f, "waits").task.v, fixture_id(&f, "bad").v);
    assert_int_equal(f.quiet, 0); /* two sessions have yet to end */
    fixture_done(&f, "ready ready2");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_state(&f, "ready"), TASK_CANCELLED);
    assert_int_equal(fixture_why(&f, "ready").task.v, fixture_id(&f, "bad").v);
    assert_int_equal(f.quiet, 1);
    fixture_release(&f);
}

static void abort_leaves_other_runs_alone(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 3);
    fixture_task(&f, "other", "");
    fixture_task(&f, "other2", "other");
    fixture_cap(&f, 3);
    f.failure.on_failure = SCHED_ABORT;
    fixture_task(&f, "bad", "");
    (void)fixture_run_pass(&f);
    end_then(&f, "bad", OUTCOME_FAILED, "");
    assert_false(sched_run(f.sched, (struct run_id){0}).cancelled);
    end_then(&f, "other", OUTCOME_DONE, "other2");
    fixture_release(&f);
}

static void skip_skips_all_that_need_it(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    f.failure.on_failure = SCHED_SKIP;
    fixture_task(&f, "a", "");
    f.failure = (struct sched_failure_spec){0};
    fixture_task(&f, "b", "a");
    fixture_task(&f, "c", "b");
    fixture_task(&f, "x", "");
    fixture_task(&f, "d", "c x b");
    fixture_task(&f, "y", "x");
    assert_string_equal(fixture_run_pass(&f), "a x");
    end_then(&f, "a", OUTCOME_FAILED, "");
    assert_int_equal(fixture_state(&f, "a"), TASK_FAILED);
    assert_int_equal(fixture_why(&f, "a").code, WHY_FAILED);
    static const char *const skipped[] = {"b", "c", "d"};
    for (uint32_t ix = 0; ix < 3; ix++) {
        assert_int_equal(fixture_state(&f, skipped[ix]), TASK_SKIPPED);
        assert_int_equal(fixture_why(&f, skipped[ix]).task.v,
                         fixture_id(&f, "a").v);
    }
    end_then(&f, "x", OUTCOME_DONE, "y");
    fixture_release(&f);
}

static void retry_revives_what_was_skipped_because_of_it(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 3);
    f.failure.on_failure = SCHED_SKIP;
    fixture_task(&f, "a", "");
    fixture_task(&f, "a2", "");
    f.failure = (struct sched_failure_spec){0};
    fixture_task(&f, "b", "a");
    fixture_task(&f, "c", "b");
    fixture_task(&f, "both", "a a2");
    fixture_task(&f, "after", "both");
    fixture_task(&f, "mine", "a");
    fixture_order(&f, EVENT_SKIP, "mine"); /* by an order, not by a cause */
    assert_string_equal(fixture_run_pass(&f), "a a2");
    fixture_end(&f, "a", OUTCOME_FAILED);
    fixture_end(&f, "a2", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_order(&f, EVENT_RETRY, "a");
    assert_int_equal(fixture_state(&f, "b"), TASK_WAITING);
    assert_int_equal(fixture_state(&f, "c"), TASK_WAITING);
    assert_int_equal(fixture_state(&f, "both"), TASK_SKIPPED); /* a2 failed */
    assert_int_equal(fixture_state(&f, "after"), TASK_SKIPPED);
    assert_int_equal(fixture_state(&f, "mine"), TASK_SKIPPED);
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_order(&f, EVENT_RETRY, "a2");
    assert_int_equal(fixture_state(&f, "both"), TASK_WAITING);
    assert_int_equal(fixture_state(&f, "after"), TASK_WAITING);
    assert_string_equal(fixture_run_pass(&f), "a2");
    end_then(&f, "a", OUTCOME_DONE, "b");
    end_then(&f, "a2", OUTCOME_DONE, "both");
    fixture_release(&f);
}

static void ask_pauses_the_run_until_someone_decides(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 3);
    f.failure.on_failure = SCHED_ASK;
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    f.failure = (struct sched_failure_spec){0};
    fixture_task(&f, "c", "");
    fixture_task(&f, "d", "");
    fixture_task(&f, "e", "");
    assert_string_equal(fixture_run_pass(&f), "a b c");
    end_then(&f, "a", OUTCOME_FAILED, "");
    assert_int_equal(fixture_state(&f, "a"), TASK_PARKED);
    assert_true(fixture_get(&f, "a").asking);
    struct why why = fixture_why(&f, "d");
    assert_int_equal(why.code, WHY_ASKED);
    assert_int_equal(why.task.v, fixture_id(&f, "a").v);
    end_then(&f, "b", OUTCOME_FAILED, "");
    end_then(&f, "c", OUTCOME_DONE, ""); /* what runs may end */
    fixture_order(&f, EVENT_RETRY, "a");
    assert_false(fixture_get(&f, "a").asking);
    assert_string_equal(fixture_run_pass(&f), ""); /* b is still in question */
    assert_int_equal(fixture_why(&f, "d").task.v, fixture_id(&f, "b").v);
    fixture_order(&f, EVENT_CANCEL, "b");
    assert_string_equal(fixture_run_pass(&f), "d e a");
    fixture_release(&f);
}

static void cancelling_the_run_answers_the_question(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.failure.on_failure = SCHED_ASK;
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    end_then(&f, "a", OUTCOME_FAILED, "");
    fixture_order_run(&f, EVENT_CANCEL_RUN);
    assert_int_equal(fixture_state(&f, "a"), TASK_CANCELLED);
    assert_false(fixture_get(&f, "a").asking);
    /* A cancelled run takes no more work. */
    struct sched_addition addition = {
        .run = f.run,
        .tasks = &f.spec,
        .task_count = 1,
    };
    struct sched_rejection rejection;
    assert_int_equal(sched_add(f.sched, f.now_ns, &addition, &rejection),
                     ERR_CONFLICT);
    assert_int_equal(rejection.code, REJECTION_CANCELLED);
    sched_rejection_release(&rejection);
    fixture_release(&f);
}

static void an_optional_task_releases_when_it_fails(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.failure.on_failure = SCHED_SKIP;
    f.failure.optional = true;
    fixture_task(&f, "lint", "");
    f.failure = (struct sched_failure_spec){0};
    fixture_task(&f, "merge", "lint");
    assert_string_equal(fixture_run_pass(&f), "lint");
    end_then(&f, "lint", OUTCOME_FAILED, "merge");
    assert_int_equal(fixture_state(&f, "lint"), TASK_FAILED);
    fixture_release(&f);
}

static void an_optional_task_releases_when_it_is_skipped(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "before", "");
    f.failure.optional = true;
    fixture_task(&f, "lint", "before");
    f.failure = (struct sched_failure_spec){0};
    fixture_task(&f, "merge", "lint");
    assert_string_equal(fixture_run_pass(&f), "before");
    fixture_order(&f, EVENT_SKIP, "lint");
    assert_string_equal(fixture_run_pass(&f), "");
    /* Not before what it needs itself is done. */
    assert_int_equal(fixture_state(&f, "merge"), TASK_WAITING);
    end_then(&f, "before", OUTCOME_DONE, "merge");
    fixture_release(&f);
}

static void an_optional_task_cut_off_releases_nothing(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.failure.on_failure = SCHED_SKIP;
    fixture_task(&f, "bad", "");
    f.failure.optional = true;
    fixture_task(&f, "lint", "bad");
    f.failure = (struct sched_failure_spec){0};
    fixture_task(&f, "merge", "lint");
    assert_string_equal(fixture_run_pass(&f), "bad");
    end_then(&f, "bad", OUTCOME_FAILED, "");
    assert_int_equal(fixture_state(&f, "lint"), TASK_SKIPPED);
    assert_int_equal(fixture_state(&f, "merge"), TASK_SKIPPED);
    fixture_release(&f);
}

static void
a_failed_optional_task_that_is_tried_again_takes_it_back(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 0);
    f.failure.on_failure = SCHED_SKIP;
    f.failure.optional = true;
    fixture_task(&f, "lint", "");
    f.failure = (struct sched_failure_spec){0};
    fixture_task(&f, "merge", "lint");
    fixture_set_limit(&f, 0, 1, 0);
    assert_string_equal(fixture_run_pass(&f), "lint");
    fixture_end(&f, "lint", OUTCOME_FAILED);
    assert_int_equal(fixture_state(&f, "merge"), TASK_READY);
    fixture_order(&f, EVENT_RETRY, "lint");
    assert_int_equal(fixture_state(&f, "merge"), TASK_WAITING);
    assert_string_equal(fixture_run_pass(&f), "lint");
    end_then(&f, "lint", OUTCOME_DONE, "merge");
    fixture_release(&f);
}

static void abort_of_an_optional_task_still_aborts(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.failure.on_failure = SCHED_ABORT;
    f.failure.optional = true;
    fixture_task(&f, "a", "");
    f.failure = (struct sched_failure_spec){0};
    fixture_task(&f, "b", "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    end_then(&f, "a", OUTCOME_FAILED, "");
    assert_int_equal(fixture_state(&f, "b"), TASK_CANCELLED);
    fixture_release(&f);
}

static void changes_requested_send_the_group_back(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    add_pipeline(&f, 2);
    fixture_task(&f, "merge", "review");
    assert_string_equal(fixture_run_pass(&f), "code");
    for (uint32_t round = 1; round <= 2; round++) {
        end_then(&f, "code", OUTCOME_DONE, "test");
        end_then(&f, "test", OUTCOME_DONE, "review");
        fixture_end(&f, "review", OUTCOME_CHANGES);
        assert_int_equal(fixture_state(&f, "test"), TASK_WAITING);
        assert_int_equal(fixture_state(&f, "review"), TASK_WAITING);
        assert_int_equal(fixture_get(&f, "review").reworks, round);
        assert_string_equal(fixture_run_pass(&f), "code");
    }
    end_then(&f, "code", OUTCOME_DONE, "test");
    end_then(&f, "test", OUTCOME_DONE, "review");
    end_then(&f, "review", OUTCOME_CHANGES, ""); /* a third time: parked */
    assert_int_equal(fixture_state(&f, "review"), TASK_PARKED);
    assert_int_equal(fixture_state(&f, "code"), TASK_DONE);
    assert_int_equal(fixture_state(&f, "merge"), TASK_WAITING);
    fixture_order(&f, EVENT_RETRY, "review");
    assert_string_equal(fixture_run_pass(&f), "review");
    assert_int_equal(fixture_get(&f, "review").reworks, 0);
    end_then(&f, "review", OUTCOME_DONE, "merge");
    fixture_release(&f);
}

static void rework_does_all_again_that_needs_what_is_redone(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 4);
    f.spec.group = fixture_group(&f, 0, 0);
    struct task_id code = fixture_task(&f, "code", "");
    fixture_task(&f, "docs", "");
    fixture_task(&f, "unit", "code");
    fixture_task(&f, "other", "code"); /* behind code, not before review */
    f.spec.rework_to = code.v;
    f.failure.rework_max = 1;
    fixture_task(&f, "review", "unit docs code");
    f.spec.rework_to = ID_NONE;
    assert_string_equal(fixture_run_pass(&f), "code docs");
    fixture_done(&f, "code docs");
    assert_string_equal(fixture_run_pass(&f), "unit other");
    fixture_done(&f, "unit other");
    assert_string_equal(fixture_run_pass(&f), "review");
    fixture_end(&f, "review", OUTCOME_CHANGES);
    assert_int_equal(fixture_state(&f, "docs"), TASK_DONE);
    assert_int_equal(fixture_state(&f, "other"), TASK_WAITING);
    assert_int_equal(fixture_state(&f, "unit"), TASK_WAITING);
    assert_string_equal(fixture_run_pass(&f), "code");
    end_then(&f, "code", OUTCOME_DONE, "unit other");
    end_then(&f, "unit", OUTCOME_DONE, "review");
    fixture_release(&f);
}

static void what_runs_on_replaced_work_is_done_again(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 4);
    f.spec.group = fixture_group(&f, 0, 0);
    struct task_id code = fixture_task(&f, "code", "");
    f.spec.rework_to = code.v;
    f.failure.rework_max = 1;
    fixture_task(&f, "review", "code");
    f.spec.rework_to = ID_NONE;
    fixture_task(&f, "gate", "code");
    fixture_task(&f, "merge", "review gate");
    assert_string_equal(fixture_run_pass(&f), "code");
    end_then(&f, "code", OUTCOME_DONE, "review gate");
    /* The gate still runs on the first version when changes are wanted. */
    end_then(&f, "review", OUTCOME_CHANGES, "code");
    end_then(&f, "gate", OUTCOME_DONE, "");
    assert_int_equal(fixture_state(&f, "gate"), TASK_WAITING);
    end_then(&f, "code", OUTCOME_DONE, "review gate");
    end_then(&f, "review", OUTCOME_DONE, "");
    end_then(&f, "gate", OUTCOME_DONE, "merge");
    fixture_release(&f);
}

static void a_task_wider_than_its_limit_keeps_nothing_from_others(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 3);
    struct sched_use use = {{f.first_limit.v}, 3};
    f.spec.uses = &use;
    f.spec.use_count = 1;
    fixture_task(&f, "wide", "");
    f.spec.use_count = 0;
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    fixture_set_limit(&f, 0, 2, 0);
    assert_string_equal(fixture_run_pass(&f), "a b");
    fixture_release(&f);
}

static void a_failing_gate_sends_back_too(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.spec.group = fixture_group(&f, 0, 0);
    struct task_id code = fixture_task(&f, "code", "");
    f.spec.rework_to = code.v;
    f.failure.rework_max = 1;
    f.failure.rework_on_failure = true;
    f.failure.retry_max = 9; /* does not matter: the code is wrong */
    fixture_task(&f, "gate", "code");
    assert_string_equal(fixture_run_pass(&f), "code");
    end_then(&f, "code", OUTCOME_DONE, "gate");
    end_then(&f, "gate", OUTCOME_FAILED, "code");
    assert_int_equal(fixture_get(&f, "gate").tries, 0);
    end_then(&f, "code", OUTCOME_DONE, "gate");
    end_then(&f, "gate", OUTCOME_FAILED, "");
    assert_int_equal(fixture_state(&f, "gate"), TASK_PARKED);
    fixture_release(&f);
}

static void changes_without_a_way_back_park(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.failure.rework_max = 9;
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    end_then(&f, "a", OUTCOME_CHANGES, "");
    assert_int_equal(fixture_state(&f, "a"), TASK_PARKED);
    fixture_release(&f);
}

/* The stage to go back to was given up while the review ran. */
static void rework_to_a_task_that_was_given_up_parks(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    add_pipeline(&f, 9);
    assert_string_equal(fixture_run_pass(&f), "code");
    end_then(&f, "code", OUTCOME_DONE, "test");
    end_then(&f, "test", OUTCOME_DONE, "review");
    fixture_order(&f, EVENT_REVOKE, "code");
    fixture_order(&f, EVENT_RETRY, "code");
    fixture_order(&f, EVENT_CANCEL, "code");
    assert_int_equal(fixture_state(&f, "code"), TASK_CANCELLED);
    end_then(&f, "review", OUTCOME_CHANGES, "");
    assert_int_equal(fixture_state(&f, "review"), TASK_PARKED);
    fixture_release(&f);
}

/* It runs again already, or backs off: rework waits for it. */
static void rework_to_a_task_that_works_again_waits_for_it(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    f.failure.retry_max = 3;
    f.failure.backoff_ns = MINUTE;
    f.failure.backoff_ns_max = MINUTE;
    add_pipeline(&f, 9);
    assert_string_equal(fixture_run_pass(&f), "code");
    end_then(&f, "code", OUTCOME_DONE, "test");
    end_then(&f, "test", OUTCOME_DONE, "review");
    fixture_order(&f, EVENT_REVOKE, "code");
    fixture_order(&f, EVENT_RETRY, "code");
    assert_string_equal(fixture_run_pass(&f), "code");
    end_then(&f, "code", OUTCOME_FAILED, ""); /* backs off */
    end_then(&f, "review", OUTCOME_CHANGES, "");
    assert_true(fixture_get(&f, "code").backing_off);
    assert_int_equal(fixture_state(&f, "review"), TASK_WAITING);
    assert_int_equal(fixture_state(&f, "test"), TASK_WAITING);
    fixture_pass(&f, MINUTE);
    assert_string_equal(fixture_run_pass(&f), "code");
    end_then(&f, "code", OUTCOME_DONE, "test");
    end_then(&f, "test", OUTCOME_DONE, "review");
    fixture_release(&f);
}

/* A task behind the review's group that ran meanwhile passes nothing on. */
static void rework_takes_back_through_a_task_that_has_started(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 3);
    add_pipeline(&f, 1);
    fixture_task(&f, "user", "code"); /* outside the group */
    fixture_task(&f, "after", "user");
    assert_string_equal(fixture_run_pass(&f), "code");
    end_then(&f, "code", OUTCOME_DONE, "test user");
    end_then(&f, "test", OUTCOME_DONE, "review");
    end_then(&f, "review", OUTCOME_CHANGES, "code");
    end_then(&f, "user", OUTCOME_DONE, ""); /* on the old code */
    assert_int_equal(fixture_state(&f, "after"), TASK_WAITING);
    end_then(&f, "code", OUTCOME_DONE, "test after");
    fixture_release(&f);
}

static void a_checkpoint_goes_on_in_a_fresh_session(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.failure.checkpoint_max = 2;
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    end_then(&f, "a", OUTCOME_CHECKPOINT, "a");
    end_then(&f, "a", OUTCOME_CHECKPOINT, "a");
    assert_int_equal(fixture_get(&f, "a").checkpoints, 2);
    assert_int_equal(fixture_get(&f, "a").attempts, 3);
    assert_int_equal(fixture_get(&f, "a").tries, 0);
    end_then(&f, "a", OUTCOME_CHECKPOINT, "");
    assert_int_equal(fixture_state(&f, "a"), TASK_PARKED);
    fixture_order(&f, EVENT_RETRY, "a");
    assert_int_equal(fixture_get(&f, "a").checkpoints, 0);
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_release(&f);
}

static void a_result_in_doubt_holds_those_who_have_not_started(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "a");
    fixture_task(&f, "c", "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    end_then(&f, "a", OUTCOME_DONE, "b");
    fixture_order(&f, EVENT_REVOKE, "a");
    assert_true(fixture_get(&f, "a").revoked);
    assert_int_equal(fixture_state(&f, "a"), TASK_DONE);
    assert_int_equal(fixture_state(&f, "c"), TASK_WAITING);
    assert_int_equal(fixture_try_order(&f, EVENT_REVOKE, "a"), ERR_CONFLICT);
    end_then(&f, "b", OUTCOME_DONE, "");
    fixture_order(&f, EVENT_RELEASE, "a"); /* it was right after all */
    assert_false(fixture_get(&f, "a").revoked);
    assert_string_equal(fixture_run_pass(&f), "c");
    assert_int_equal(fixture_try_order(&f, EVENT_REVOKE, "c"), ERR_CONFLICT);
    fixture_release(&f);
}

static void a_revoked_task_can_be_done_again(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "root", "");
    fixture_task(&f, "a", "root");
    fixture_task(&f, "b", "a");
    assert_string_equal(fixture_run_pass(&f), "root");
    end_then(&f, "root", OUTCOME_DONE, "a");
    fixture_end(&f, "a", OUTCOME_DONE);
    fixture_order(&f, EVENT_REVOKE, "root"); /* through a, to b */
    assert_int_equal(fixture_state(&f, "b"), TASK_WAITING);
    fixture_order(&f, EVENT_REVOKE, "a");
    fixture_order(&f, EVENT_RETRY, "a");
    assert_string_equal(fixture_run_pass(&f), ""); /* root is in doubt */
    assert_int_equal(fixture_state(&f, "a"), TASK_WAITING);
    assert_int_equal(fixture_why(&f, "a").task.v, fixture_id(&f, "root").v);
    fixture_order(&f, EVENT_RETRY, "root");
    assert_string_equal(fixture_run_pass(&f), "root");
    end_then(&f, "root", OUTCOME_DONE, "a");
    end_then(&f, "a", OUTCOME_DONE, "b");
    fixture_release(&f);
}

static void a_task_that_fails_behind_a_revoked_one_waits(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    f.failure.retry_max = 3;
    f.failure.checkpoint_max = 3;
    f.failure.backoff_ns = MINUTE;
    f.failure.backoff_ns_max = MINUTE;
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "a");
    fixture_task(&f, "c", "a");
    fixture_task(&f, "d", "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    end_then(&f, "a", OUTCOME_DONE, "b c");
    fixture_order(&f, EVENT_REVOKE, "a");
    end_then(&f, "b", OUTCOME_FAILED, "");
    end_then(&f, "c", OUTCOME_CHECKPOINT, "");
    fixture_pass(&f, MINUTE); /* the back-off ends: still not ready */
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_state(&f, "b"), TASK_WAITING);
    assert_false(fixture_get(&f, "b").backing_off);
    assert_int_equal(fixture_state(&f, "c"), TASK_WAITING);
    fixture_order(&f, EVENT_RELEASE, "a");
    assert_string_equal(fixture_run_pass(&f), "b c");
    fixture_refuse(&f, "c", SCHED_NEVER);
    fixture_accept(&f, "b");
    fixture_order(&f, EVENT_REVOKE, "a");
    fixture_refuse(&f, "b", SCHED_NEVER); /* refused, and not ready again */
    assert_int_equal(fixture_state(&f, "b"), TASK_WAITING);
    assert_int_equal(fixture_get(&f, "b").attempts, 1);
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_release(&f);
}

static void a_back_off_ends_before_what_it_needs_is_met_again(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.failure.retry_max = 3;
    f.failure.backoff_ns = MINUTE;
    f.failure.backoff_ns_max = MINUTE;
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    end_then(&f, "a", OUTCOME_DONE, "b");
    end_then(&f, "b", OUTCOME_FAILED, "");
    fixture_order(&f, EVENT_REVOKE, "a");
    fixture_order(&f, EVENT_RELEASE, "a"); /* met, but b still backs off */
    assert_true(fixture_get(&f, "b").backing_off);
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_pass(&f, MINUTE);
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_release(&f);
}

static void rework_to_a_task_that_runs_waits_for_its_end(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    add_pipeline(&f, 9);
    assert_string_equal(fixture_run_pass(&f), "code");
    end_then(&f, "code", OUTCOME_DONE, "test");
    end_then(&f, "test", OUTCOME_DONE, "review");
    fixture_order(&f, EVENT_REVOKE, "code");
    fixture_order(&f, EVENT_RETRY, "code");
    assert_string_equal(fixture_run_pass(&f), "code");
    end_then(&f, "review", OUTCOME_CHANGES, "");
    assert_int_equal(fixture_state(&f, "code"), TASK_STARTING); /* goes on */
    assert_int_equal(fixture_get(&f, "review").reworks, 1);
    end_then(&f, "code", OUTCOME_DONE, "test");
    end_then(&f, "test", OUTCOME_DONE, "review");
    fixture_release(&f);
}

static void rework_leaves_what_is_needed_from_outside_alone(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    fixture_task(&f, "outside", "");
    f.spec.group = fixture_group(&f, 0, 0);
    struct task_id code = fixture_task(&f, "code", "outside");
    f.spec.rework_to = code.v;
    f.failure.rework_max = 1;
    fixture_task(&f, "review", "code outside");
    assert_string_equal(fixture_run_pass(&f), "outside");
    end_then(&f, "outside", OUTCOME_DONE, "code");
    end_then(&f, "code", OUTCOME_DONE, "review");
    end_then(&f, "review", OUTCOME_CHANGES, "code");
    assert_int_equal(fixture_state(&f, "outside"), TASK_DONE);
    fixture_release(&f);
}

/* Behind `bad`: one that needs something else as well, which is given up. */
static void a_task_cut_off_otherwise_is_not_revived(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 3);
    f.failure.on_failure = SCHED_SKIP;
    fixture_task(&f, "bad", "");
    f.failure.optional = true;
    fixture_task(&f, "lint", "");
    f.failure = (struct sched_failure_spec){0};
    fixture_task(&f, "gone", "");
    fixture_task(&f, "left", "");
    fixture_task(&f, "x", "bad gone");
    fixture_task(&f, "y", "bad left");
    fixture_task(&f, "z", "bad lint");
    fixture_task(&f, "z1", "z");
    fixture_task(&f, "z2", "z z1"); /* two ways to the same task */
    (void)fixture_run_pass(&f);
    fixture_end(&f, "lint", OUTCOME_FAILED);
    fixture_end(&f, "bad", OUTCOME_FAILED);
    fixture_order(&f, EVENT_CANCEL, "gone");
    fixture_end(&f, "gone", OUTCOME_DONE);
    fixture_order(&f, EVENT_SKIP, "left");
    (void)fixture_run_pass(&f);
    fixture_order(&f, EVENT_RETRY, "bad");
    assert_int_equal(fixture_state(&f, "x"), TASK_SKIPPED);
    assert_int_equal(fixture_state(&f, "y"), TASK_SKIPPED);
    assert_int_equal(fixture_state(&f, "z"), TASK_WAITING);
    assert_int_equal(fixture_state(&f, "z1"), TASK_WAITING);
    assert_int_equal(fixture_state(&f, "z2"), TASK_WAITING);
    assert_string_equal(fixture_run_pass(&f), "bad");
    end_then(&f, "bad", OUTCOME_DONE, "z");
    fixture_release(&f);
}

static void tasks_keep_their_own_rules_of_failure(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 9);
    /* Each differs from the one before in one thing only. */
    f.failure.retry_max = 1;
    f.failure.backoff_ns = 10 * SECOND;
    f.failure.backoff_ns_max = 20 * SECOND;
    fixture_task(&f, "a", "");
    f.failure.backoff_ns_max = 5 * SECOND;
    fixture_task(&f, "b", "");
    f.failure.rework_on_failure = true;
    fixture_task(&f, "c", "");
    f.failure.rework_on_failure = false;
    f.failure.on_failure = SCHED_SKIP;
    f.failure.retry_max = 0;
    fixture_task(&f, "d", "");
    (void)fixture_run_pass(&f);
    static const char *const names[] = {"a", "b", "c", "d"};
    for (uint32_t ix = 0; ix < 4; ix++) {
        fixture_end(&f, names[ix], OUTCOME_FAILED);
    }
    (void)fixture_run_pass(&f);
    assert_true(fixture_why(&f, "a").until_ns == 10 * SECOND);
    assert_true(fixture_why(&f, "b").until_ns == 5 * SECOND);
    assert_int_equal(fixture_state(&f, "c"), TASK_PARKED);
    assert_int_equal(fixture_state(&f, "d"), TASK_FAILED);
    fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_task_is_tried_again_after_its_back_off),
        cmocka_unit_test(a_first_delay_above_the_ceiling_is_cut),
        cmocka_unit_test(without_back_off_it_is_ready_at_once),
        cmocka_unit_test(several_back_offs_end_in_their_order),
        cmocka_unit_test(park_lets_the_rest_go_on),
        cmocka_unit_test(blocked_parks_whatever_the_rule),
        cmocka_unit_test(abort_cancels_the_whole_run),
        cmocka_unit_test(abort_leaves_other_runs_alone),
        cmocka_unit_test(skip_skips_all_that_need_it),
        cmocka_unit_test(retry_revives_what_was_skipped_because_of_it),
        cmocka_unit_test(ask_pauses_the_run_until_someone_decides),
        cmocka_unit_test(cancelling_the_run_answers_the_question),
        cmocka_unit_test(an_optional_task_releases_when_it_fails),
        cmocka_unit_test(an_optional_task_releases_when_it_is_skipped),
        cmocka_unit_test(an_optional_task_cut_off_releases_nothing),
        cmocka_unit_test(
            a_failed_optional_task_that_is_tried_again_takes_it_back),
        cmocka_unit_test(abort_of_an_optional_task_still_aborts),
        cmocka_unit_test(changes_requested_send_the_group_back),
        cmocka_unit_test(rework_does_all_again_that_needs_what_is_redone),
        cmocka_unit_test(what_runs_on_replaced_work_is_done_again),
        cmocka_unit_test(a_task_wider_than_its_limit_keeps_nothing_from_others),
        cmocka_unit_test(a_failing_gate_sends_back_too),
        cmocka_unit_test(changes_without_a_way_back_park),
        cmocka_unit_test(rework_to_a_task_that_was_given_up_parks),
        cmocka_unit_test(rework_to_a_task_that_works_again_waits_for_it),
        cmocka_unit_test(rework_takes_back_through_a_task_that_has_started),
        cmocka_unit_test(a_checkpoint_goes_on_in_a_fresh_session),
        cmocka_unit_test(a_result_in_doubt_holds_those_who_have_not_started),
        cmocka_unit_test(a_revoked_task_can_be_done_again),
        cmocka_unit_test(a_task_that_fails_behind_a_revoked_one_waits),
        cmocka_unit_test(a_back_off_ends_before_what_it_needs_is_met_again),
        cmocka_unit_test(rework_to_a_task_that_runs_waits_for_its_end),
        cmocka_unit_test(rework_leaves_what_is_needed_from_outside_alone),
        cmocka_unit_test(a_task_cut_off_otherwise_is_not_revived),
        cmocka_unit_test(tasks_keep_their_own_rules_of_failure),
    };
    return cmocka_run_group_tests_name("sched: failure", tests, NULL, NULL);
}
