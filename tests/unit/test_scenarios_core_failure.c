/* SPDX-License-Identifier: MIT */
/*
 * The failures to survive that are the core's, one test each, under the
 * numbers of the list of scenarios: set-up, event, required outcome. Here:
 * back-off, failure, graph and load.
 */
#include "tests/unit/sched_fixture.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void scenario_51_ten_refusals_are_one_step_of_back_off(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 10);
    static const char *const names[] =
        {"a", "b", "c", "d", "e", "g", "h", "i", "j", "k"};
    for (uint32_t ix = 0; ix < 10; ix++) {
        fixture_task(&f, names[ix], "");
    }
    assert_string_equal(fixture_run_pass(&f), "a b c d e g h i j k");
    for (uint32_t ix = 0; ix < 10; ix++) {
        fixture_refuse(&f, names[ix], SCHED_NEVER);
    }
    assert_string_equal(fixture_run_pass(&f), "");
    assert_true(sched_next_timer(f.sched) == f.now_ns + 10 * SECOND);
    fixture_pass(&f, 10 * SECOND);
    assert_string_equal(fixture_run_pass(&f), "a b c d e g h i j k");
    for (uint32_t ix = 0; ix < 10; ix++) { /* the second step: twice that */
        fixture_refuse(&f, names[ix], SCHED_NEVER);
    }
    int64_t until_ns;
    assert_int_equal(sched_provider_state(f.sched, f.provider, &until_ns),
                     PROVIDER_BACKOFF);
    assert_true(until_ns == f.now_ns + 20 * SECOND);
    fixture_pass(&f, 20 * SECOND);
    assert_string_equal(fixture_run_pass(&f), "a b c d e g h i j");

    /* One that runs shows that it is open; those refused again wait. */
    fixture_accept(&f, "a");
    for (uint32_t ix = 1; ix < 9; ix++) {
        fixture_refuse(&f, names[ix], SCHED_NEVER);
    }
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(sched_provider_state(f.sched, f.provider, &until_ns),
                     PROVIDER_OPEN);
    fixture_pass(&f, 10 * SECOND);
    assert_string_equal(fixture_run_pass(&f), "k");
    fixture_pass(&f, 10 * SECOND);
    assert_string_equal(fixture_run_pass(&f), "b c d e g h i j");
    fixture_release(&f);
}

static void scenario_52_a_refused_start_costs_no_try(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "a", ""); /* no retry at all */
    for (uint32_t round = 0; round < 5; round++) {
        assert_string_equal(fixture_run_pass(&f), "a");
        fixture_refuse(&f, "a", SCHED_NEVER);
        struct sched_task a = fixture_get(&f, "a");
        assert_int_equal(a.state, round == 0 ? TASK_READY : TASK_WAITING);
        assert_int_equal(a.attempts, 0);
        assert_int_equal(a.tries, 0);
        /* The first time it keeps its place, too. */
        assert_true(round > 0 || a.ready_ns == 0);
        assert_int_equal(fixture_used(&f, 0), 0);
        fixture_pass(&f, 2 * MINUTE);
    }
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_accept(&f, "a");
    assert_int_equal(fixture_get(&f, "a").attempts, 1);
    fixture_done(&f, "a");
    assert_int_equal(fixture_state(&f, "a"), TASK_DONE);
    fixture_release(&f);
}

static void scenario_54_the_budget_follows_the_task(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.failure.retry_max = 2;
    f.failure.checkpoint_max = 9;
    fixture_task(&f, "a", "");
    uint64_t token = 0;
    static const enum sched_outcome outcomes[] = {
        OUTCOME_FAILED,
        OUTCOME_REFUSED,
        OUTCOME_CHECKPOINT,
        OUTCOME_FAILED,
        OUTCOME_REFUSED,
        OUTCOME_FAILED,
    };
    for (uint32_t ix = 0; ix < 6; ix++) {
        assert_string_equal(fixture_run_pass(&f), "a");
        assert_true(fixture_get(&f, "a").token > token); /* a new session */
        token = fixture_get(&f, "a").token;
        fixture_end(&f, "a", outcomes[ix]);
        fixture_pass(&f, 10 * MINUTE);
    }
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_state(&f, "a"), TASK_PARKED);
    assert_int_equal(fixture_get(&f, "a").tries, 3);
    assert_int_equal(fixture_get(&f, "a").attempts, 4);
    fixture_release(&f);
}

static void scenario_56_there_is_no_fourth_try_after_three(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.failure.retry_max = 2;
    f.failure.on_failure = SCHED_SKIP;
    fixture_task(&f, "a", "");
    uint64_t first_token = 0;
    for (uint32_t ix = 0; ix < 3; ix++) {
        assert_string_equal(fixture_run_pass(&f), "a");
        first_token = ix == 0 ? fixture_get(&f, "a").token : first_token;
        fixture_end(&f, "a", OUTCOME_FAILED);
    }
    assert_int_equal(fixture_state(&f, "a"), TASK_FAILED);
    assert_string_equal(fixture_run_pass(&f), "");

    /* Whoever else reports about it, or has time pass, changes nothing. */
    uint64_t token = fixture_get(&f, "a").token;
    char *before = fixture_picture(&f);
    for (uint32_t ix = 0; ix < 2; ix++) {
        uint64_t old = ix == 0 ? token : first_token;
        assert_int_equal(fixture_try_end(&f, "a", old, OUTCOME_FAILED),
                         ERR_CONFLICT);
        assert_int_equal(fixture_try_end(&f, "a", old, OUTCOME_REFUSED),
                         ERR_CONFLICT);
        assert_int_equal(fixture_try_end(&f, "a", old, OUTCOME_DONE),
                         ERR_CONFLICT);
    }
    fixture_pass(&f, 600 * MINUTE);
    assert_string_equal(fixture_run_pass(&f), "");
    char *after = fixture_picture(&f);
    assert_string_equal(after, before);
    mem_free(before);
    mem_free(after);
    fixture_release(&f);
}

static void scenario_61_the_third_waits_for_the_budget(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(8), fixture_max(10)};
    limits[1].resource = true;
    fixture_run(&f, SCHED_RANK, limits, 2);
    struct sched_use four = {f.limits[1], 4};
    f.spec.uses = &four;
    f.spec.use_count = 1;
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    fixture_task(&f, "c", "");
    assert_string_equal(fixture_run_pass(&f), "a b");
    assert_int_equal(fixture_used(&f, 1), 8);
    struct why why = fixture_why(&f, "c");
    assert_int_equal(why.code, WHY_LIMIT);
    assert_int_equal(why.limit.v, f.limits[1].v);
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "c");
    fixture_release(&f);
}

/* A task that fails, two behind it, one beside it; cap 1. */
static void
fail_one(struct fixture *f, enum sched_on_failure on_failure, uint32_t retries)
{
    fixture_init(f);
    fixture_cap(f, 1);
    f->spec.estimate_ns = 9 * MINUTE;
    f->failure.on_failure = on_failure;
    f->failure.retry_max = retries;
    fixture_task(f, "bad", "");
    f->failure = (struct sched_failure_spec){0};
    f->spec.estimate_ns = MINUTE;
    fixture_task(f, "next", "bad");
    fixture_task(f, "last", "next");
    fixture_task(f, "beside", "");
    assert_string_equal(fixture_run_pass(f), "bad");
    fixture_end(f, "bad", OUTCOME_FAILED);
}

static void scenario_62_dependents_behave_as_declared(void **state)
{
    (void)state;
    struct fixture f;
    fail_one(&f, SCHED_ABORT, 0);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_state(&f, "bad"), TASK_FAILED);
    assert_int_equal(fixture_state(&f, "next"), TASK_CANCELLED);
    assert_int_equal(fixture_state(&f, "last"), TASK_CANCELLED);
    assert_int_equal(fixture_state(&f, "beside"), TASK_CANCELLED);
    fixture_release(&f);

    fail_one(&f, SCHED_PARK, 1); /* retry first */
    assert_string_equal(fixture_run_pass(&f), "bad");
    fixture_done(&f, "bad");
    assert_string_equal(fixture_run_pass(&f), "next");
    fixture_release(&f);

    fail_one(&f, SCHED_SKIP, 0);
    assert_string_equal(fixture_run_pass(&f), "beside");
    assert_int_equal(fixture_state(&f, "bad"), TASK_FAILED);
    assert_int_equal(fixture_state(&f, "next"), TASK_SKIPPED);
    assert_int_equal(fixture_state(&f, "last"), TASK_SKIPPED);
    fixture_release(&f);

    fail_one(&f, SCHED_PARK, 0);
    assert_string_equal(fixture_run_pass(&f), "beside");
    fixture_done(&f, "beside");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_state(&f, "bad"), TASK_PARKED);
    assert_int_equal(fixture_state(&f, "next"), TASK_WAITING);
    fixture_release(&f);

    fail_one(&f, SCHED_ASK, 0);
    assert_string_equal(fixture_run_pass(&f), ""); /* not even beside */
    assert_int_equal(fixture_why(&f, "beside").code, WHY_ASKED);
    fixture_order(&f, EVENT_SKIP, "bad");
    assert_string_equal(fixture_run_pass(&f), "beside");
    assert_int_equal(fixture_state(&f, "next"), TASK_SKIPPED);
    fixture_release(&f);
}

static void
scenario_63_a_blocked_chain_passes_through_a_running_task(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 3);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "a");
    fixture_task(&f, "c", "b");
    (void)fixture_run_pass(&f);
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_order(&f, EVENT_REVOKE, "a"); /* blocked, while b runs */
    fixture_done(&f, "b");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_state(&f, "b"), TASK_DONE);
    assert_int_equal(fixture_state(&f, "c"), TASK_WAITING);
    struct why why = fixture_why(&f, "c");
    assert_int_equal(why.code, WHY_BLOCKED);
    assert_int_equal(why.task.v, fixture_id(&f, "a").v);

    /* When it is cancelled for good, so is the chain behind a running one. */
    fixture_order(&f, EVENT_RETRY, "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_order(&f, EVENT_CANCEL, "a");
    fixture_end(&f, "a", OUTCOME_DONE);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_state(&f, "c"), TASK_SKIPPED);
    fixture_release(&f);
}

static void scenario_64_added_behind_every_kind_of_task(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 9);
    fixture_task(&f, "finished", "");
    fixture_task(&f, "running", "");
    fixture_task(&f, "parks", "");
    f.failure.on_failure = SCHED_SKIP;
    fixture_task(&f, "fails", "");
    f.failure = (struct sched_failure_spec){0};
    assert_string_equal(fixture_run_pass(&f), "finished running parks fails");
    fixture_done(&f, "finished");
    fixture_accept(&f, "running");
    fixture_end(&f, "parks", OUTCOME_FAILED);
    fixture_end(&f, "fails", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "");

    fixture_task(&f, "w", "finished");
    fixture_task(&f, "x", "finished running");
    fixture_task(&f, "y", "parks");
    fixture_task(&f, "z", "fails");
    assert_int_equal(fixture_state(&f, "w"), TASK_READY);
    assert_int_equal(fixture_state(&f, "x"), TASK_WAITING);
    assert_int_equal(fixture_state(&f, "y"), TASK_WAITING);
    assert_int_equal(fixture_state(&f, "z"), TASK_SKIPPED);
    assert_string_equal(fixture_run_pass(&f), "w");

    /* An unknown task, and a cycle: refused, and nothing has changed. */
    char *before = fixture_picture(&f);
    struct sched_need unknown = {
        .dependent = sched_task_count(f.sched),
        .need = 999,
    };
    struct sched_addition addition = {
        .run = f.run,
        .tasks = &f.spec,
        .task_count = 1,
        .needs = &unknown,
        .need_count = 1,
    };
    struct sched_rejection rejection;
    assert_int_equal(sched_add(f.sched, f.now_ns, &addition, &rejection),
                     ERR_INVALID);
    assert_int_equal(rejection.code, REJECTION_UNKNOWN);
    assert_int_equal(fixture_try_need(&f, "x", "x", &rejection), ERR_INVALID);
    assert_int_equal(rejection.code, REJECTION_CYCLE);
    assert_int_equal(rejection.cycle_count, 1);
    assert_int_equal(rejection.cycle[0], fixture_id(&f, "x").v);
    sched_rejection_release(&rejection);
    assert_string_equal(fixture_run_pass(&f), "");
    char *after = fixture_picture(&f);
    assert_string_equal(after, before);
    mem_free(before);
    mem_free(after);
    fixture_done(&f, "running");
    assert_string_equal(fixture_run_pass(&f), "x");
    fixture_release(&f);
}

static void scenario_69_found_empty_holds_what_has_not_started(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "empty", "");
    fixture_task(&f, "first", "empty");
    fixture_task(&f, "second", "empty");
    assert_string_equal(fixture_run_pass(&f), "empty");
    fixture_done(&f, "empty");
    assert_string_equal(fixture_run_pass(&f), "first");

    fixture_order(&f, EVENT_REVOKE, "empty");
    assert_int_equal(fixture_state(&f, "first"), TASK_STARTING); /* goes on */
    assert_int_equal(fixture_state(&f, "second"), TASK_WAITING);
    fixture_done(&f, "first");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_why(&f, "second").code, WHY_BLOCKED);
    assert_int_equal(fixture_why(&f, "second").task.v,
                     fixture_id(&f, "empty").v);
    fixture_order(&f, EVENT_RETRY, "empty"); /* done again, properly */
    assert_string_equal(fixture_run_pass(&f), "empty");
    fixture_done(&f, "empty");
    assert_string_equal(fixture_run_pass(&f), "second");
    fixture_release(&f);
}

static void scenario_72_one_failure_keeps_the_results_of_others(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 9);
    fixture_task(&f, "a", "");
    f.failure.on_failure = SCHED_ABORT;
    fixture_task(&f, "bad", "");
    f.failure = (struct sched_failure_spec){0};
    fixture_task(&f, "c", "");
    fixture_task(&f, "d", "");
    assert_string_equal(fixture_run_pass(&f), "a bad c d");
    fixture_done(&f, "a");
    fixture_end(&f, "bad", OUTCOME_FAILED); /* even if it ends the run */
    fixture_end(&f, "c", OUTCOME_DONE);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_state(&f, "a"), TASK_DONE);
    assert_int_equal(fixture_state(&f, "bad"), TASK_FAILED);
    assert_int_equal(fixture_state(&f, "c"), TASK_CANCELLED);
    assert_string_equal(strbuf_text(&f.changed), "a bad c d");
    assert_string_equal(strbuf_text(&f.ended), "d"); /* has yet to end */
    fixture_end(&f, "d", OUTCOME_DONE);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(f.quiet, 1);
    fixture_release(&f);

    /* In one session, each of its tasks has an outcome of its own. */
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.spec.class_id = fixture_class(&f, 0, false, 3, SCHED_NEVER);
    f.spec.group = fixture_group(&f, 0, 0);
    fixture_task(&f, "a", "");
    fixture_task(&f, "bad", "");
    fixture_task(&f, "c", "");
    assert_string_equal(fixture_run_pass(&f), "a+bad+c");
    static const enum sched_outcome outcomes[] = {
        OUTCOME_DONE,
        OUTCOME_FAILED,
        OUTCOME_DONE,
    };
    struct sched_event event = {
        .type = EVENT_ENDED,
        .now_ns = f.now_ns,
        .task = fixture_id(&f, "c"),
        .token = fixture_get(&f, "c").token,
        .outcomes = outcomes,
        .outcome_count = 3,
    };
    assert_int_equal(sched_apply(f.sched, &event), ERR_OK);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_state(&f, "a"), TASK_DONE);
    assert_int_equal(fixture_state(&f, "bad"), TASK_PARKED);
    assert_int_equal(fixture_state(&f, "c"), TASK_DONE);
    fixture_release(&f);
}

static void scenario_88_a_burst_of_100000_completions_loses_none(void **state)
{
    (void)state;
    enum { BURST = 100000 };
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, LIMIT_NONE);
    struct task_id first = fixture_tasks(&f, BURST);
    struct sched_need *needs = mem_zalloc(BURST, sizeof(needs[0]));
    for (uint32_t ix = 0; ix < BURST; ix++) {
        needs[ix] =
            (struct sched_need){.dependent = BURST, .need = first.v + ix};
    }
    struct sched_addition addition = {
        .run = f.run,
        .tasks = &f.spec,
        .task_count = 1,
        .needs = needs,
        .need_count = BURST,
    };
    struct sched_rejection rejection;
    assert_int_equal(sched_add(f.sched, 0, &addition, &rejection), ERR_OK);
    mem_free(needs);
    (void)fixture_run_pass(&f);
    assert_int_equal(sched_run(f.sched, f.run).in_flight, BURST);

    for (uint32_t ix = 0; ix < BURST; ix++) {
        fixture_end_id(&f, (struct task_id){first.v + ix}, OUTCOME_DONE);
    }
    bool *reported = mem_zalloc(BURST + 1, sizeof(reported[0]));
    uint32_t reports = 0;
    uint32_t starts = 0;
    struct sched_effect effect;
    while (sched_next_effect(f.sched, &effect)) {
        if (effect.type == EFFECT_TASK) {
            assert_false(reported[effect.task.v]);
            reported[effect.task.v] = true;
            reports++;
        } else if (effect.type == EFFECT_START) {
            assert_int_equal(effect.task.v, BURST); /* the one behind all */
            starts++;
        }
    }
    mem_free(reported);
    sched_verify(f.sched);
    assert_int_equal(reports, BURST + 1);
    assert_int_equal(starts, 1);
    struct sched_run run = sched_run(f.sched, f.run);
    assert_int_equal(run.counts[TASK_DONE], BURST);
    assert_int_equal(run.completions, BURST);
    assert_int_equal(fixture_used(&f, 0), 1);
    fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scenario_51_ten_refusals_are_one_step_of_back_off),
        cmocka_unit_test(scenario_52_a_refused_start_costs_no_try),
        cmocka_unit_test(scenario_54_the_budget_follows_the_task),
        cmocka_unit_test(scenario_56_there_is_no_fourth_try_after_three),
        cmocka_unit_test(scenario_61_the_third_waits_for_the_budget),
        cmocka_unit_test(scenario_62_dependents_behave_as_declared),
        cmocka_unit_test(
            scenario_63_a_blocked_chain_passes_through_a_running_task),
        cmocka_unit_test(scenario_64_added_behind_every_kind_of_task),
        cmocka_unit_test(scenario_69_found_empty_holds_what_has_not_started),
        cmocka_unit_test(scenario_72_one_failure_keeps_the_results_of_others),
        cmocka_unit_test(scenario_88_a_burst_of_100000_completions_loses_none),
    };
    return cmocka_run_group_tests_name("scenarios of the core: failure",
                                       tests,
                                       NULL,
                                       NULL);
}
