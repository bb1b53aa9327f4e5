/* SPDX-License-Identifier: MIT */
/* Refusals, circuits and batches, as the scheduler as a whole shows them. */
#include "tests/unit/sched_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct provider_spec fragile = {
    .backoff_ns = 10 * SECOND,
    .backoff_ns_max = 60 * SECOND,
    .circuit_failures = 3,
    .probe_ns = 60 * SECOND,
    .probe_ns_max = 240 * SECOND,
};

/* Report a session with an outcome for each of its tasks. */
static enum err end_each(struct fixture *f,
                         const char *name,
                         const enum sched_outcome *outcomes,
                         uint32_t count)
{
    struct sched_event event = {
        .type = EVENT_ENDED,
        .now_ns = f->now_ns,
        .task = fixture_id(f, name),
        .token = fixture_get(f, name).token,
        .retry_at_ns = SCHED_NEVER,
        .outcomes = outcomes,
        .outcome_count = count,
    };
    return sched_apply(f->sched, &event);
}

static void a_refused_task_is_ready_and_keeps_its_place(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_pass(&f, MINUTE);
    fixture_refuse(&f, "a", SCHED_NEVER);
    assert_int_equal(fixture_state(&f, "a"), TASK_READY);
    assert_int_equal(fixture_get(&f, "a").attempts, 0);
    assert_string_equal(fixture_run_pass(&f), ""); /* b has the same provider */
    assert_int_equal(fixture_why(&f, "a").code, WHY_BACKOFF);
    assert_int_equal(fixture_why(&f, "b").code, WHY_BACKOFF);
    assert_int_equal(fixture_why(&f, "b").provider.v, f.provider.v);
    assert_true(fixture_why(&f, "b").until_ns == MINUTE + 10 * SECOND);
    fixture_pass(&f, 10 * SECOND - 1);
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_pass(&f, 1);
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_release(&f);
}

/* Issue 13.16: others come first, and then only the task backs off. */
static void a_task_that_is_always_refused_lets_others_go(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    fixture_task(&f, "c", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_refuse(&f, "a", SCHED_NEVER);
    fixture_pass(&f, 10 * SECOND);
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_refuse(&f, "a", SCHED_NEVER);
    assert_true(fixture_get(&f, "a").backing_off);
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_pass(&f, 20 * SECOND);
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_accept(&f, "b");
    fixture_pass(&f, 10 * SECOND);
    assert_string_equal(fixture_run_pass(&f),
                        ""); /* a is ready, b has the slot */
    fixture_done(&f, "b");
    assert_string_equal(fixture_run_pass(&f), "c"); /* a has lost its place */
    fixture_done(&f, "c");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_refuse(&f, "a", SCHED_NEVER);
    fixture_task(&f, "d", "");
    assert_string_equal(fixture_run_pass(&f), "d"); /* the provider is open */
    fixture_done(&f, "d");
    fixture_pass(&f, 20 * SECOND - 1);
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_pass(&f, 1);
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_done(&f, "a");
    fixture_release(&f);
}

/* Issue 13.16: one that runs shows that the provider takes sessions. */
static void one_that_runs_shields_the_provider(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    fixture_task(&f, "b", "");
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "b a");
    fixture_accept(&f, "b");
    fixture_refuse(&f, "a", SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_refuse(&f, "a", SCHED_NEVER);
    fixture_task(&f, "c", "");
    assert_string_equal(fixture_run_pass(&f), "c");
    assert_true(fixture_get(&f, "a").backing_off);
    fixture_release(&f);
}

static void other_providers_are_not_slowed(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct provider_id other = sched_add_provider(f.sched, &fragile);
    fixture_cap(&f, 1);
    fixture_task(&f, "a", "");
    f.spec.provider = other;
    f.spec.estimate_ns = 0;
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_refuse(&f, "a", SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_release(&f);
}

static void nothing_is_sent_before_all_answers_are_in(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    fixture_task(&f, "c", "");
    assert_string_equal(fixture_run_pass(&f), "a b");
    fixture_refuse(&f, "a", SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_why(&f, "a").code, WHY_BACKOFF);
    assert_true(fixture_why(&f, "a").until_ns == SCHED_NEVER);
    fixture_accept(&f, "b"); /* one of them was taken: go on */
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_release(&f);
}

static void a_time_that_was_named_is_waited_for(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "a b");
    fixture_accept(&f, "b");
    fixture_refuse(&f, "a", 30 * MINUTE);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_why(&f, "a").code, WHY_USAGE);
    assert_true(fixture_why(&f, "a").until_ns == 30 * MINUTE);
    assert_true(sched_next_timer(f.sched) == 30 * MINUTE);
    fixture_done(&f, "b"); /* what runs may go on */
    fixture_pass(&f, 30 * MINUTE);
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_release(&f);
}

static void the_same_time_read_again_is_not_extended(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 3);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "a b");
    fixture_accept(&f, "a");
    fixture_accept(&f, "b");
    fixture_refuse(&f, "a", 30 * MINUTE);
    fixture_pass(&f, MINUTE);
    fixture_refuse(&f, "b", 30 * MINUTE);
    fixture_pass(&f, MINUTE);
    assert_true(sched_next_timer(f.sched) == 30 * MINUTE);
    fixture_pass(&f, 28 * MINUTE);
    assert_string_equal(fixture_run_pass(&f), "a b");
    assert_int_equal(fixture_get(&f, "a").attempts, 1);
    fixture_release(&f);
}

static void a_session_limited_after_acceptance_costs_no_try(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_accept(&f, "a");
    fixture_pass(&f, 20 * MINUTE);
    fixture_refuse(&f, "a", SCHED_NEVER);
    assert_int_equal(fixture_state(&f, "a"), TASK_READY);
    assert_int_equal(fixture_get(&f, "a").tries, 0);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_true(sched_next_timer(f.sched) == f.now_ns + 10 * SECOND);
    fixture_release(&f);
}

/* Let three tasks of a fragile provider fail; they park. */
static void open_circuit(struct fixture *f)
{
    fixture_init(f);
    f->spec.provider = sched_add_provider(f->sched, &fragile);
    fixture_cap(f, 3);
    fixture_task(f, "a", "");
    fixture_task(f, "b", "");
    fixture_task(f, "c", "");
    static const char *const more[] = {"d", "e", "g", "h"};
    for (uint32_t ix = 0; ix < 4; ix++) {
        fixture_task(f, more[ix], "");
    }
    assert_string_equal(fixture_run_pass(f), "a b c");
    fixture_end(f, "a", OUTCOME_FAILED);
    fixture_end(f, "b", OUTCOME_FAILED);
    fixture_end(f, "c", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(f), "");
    assert_int_equal(f->circuits, 1);
}

static void failures_in_a_row_open_the_circuit_with_one_notice(void **state)
{
    (void)state;
    struct fixture f;
    open_circuit(&f);
    struct why why = fixture_why(&f, "d");
    assert_int_equal(why.code, WHY_CIRCUIT);
    assert_int_equal(why.provider.v, f.spec.provider.v);
    assert_true(why.until_ns == MINUTE);
    assert_true(sched_next_timer(f.sched) == MINUTE);
    (void)fixture_run_pass(&f);
    assert_int_equal(f.circuits, 0); /* told once */
    fixture_release(&f);
}

static void one_probe_at_growing_intervals(void **state)
{
    (void)state;
    struct fixture f;
    open_circuit(&f);
    static const char *const probes[] = {"d", "e", "g", "h"};
    static const int64_t intervals[] = {1, 2, 4, 4};
    for (uint32_t ix = 0; ix < 4; ix++) {
        assert_true(sched_next_timer(f.sched) ==
                    f.now_ns + intervals[ix] * MINUTE);
        fixture_pass(&f, intervals[ix] * MINUTE);
        assert_string_equal(fixture_run_pass(&f), probes[ix]); /* one only */
        fixture_accept(&f, probes[ix]);
        assert_string_equal(fixture_run_pass(&f), "");
        fixture_end(&f, probes[ix], OUTCOME_FAILED);
        assert_string_equal(fixture_run_pass(&f), "");
        assert_int_equal(f.circuits, 0);
    }
    fixture_release(&f);
}

static void a_probe_that_ends_well_lets_all_go(void **state)
{
    (void)state;
    struct fixture f;
    open_circuit(&f);
    fixture_pass(&f, MINUTE);
    assert_string_equal(fixture_run_pass(&f), "d");
    fixture_done(&f, "d");
    assert_string_equal(fixture_run_pass(&f), "e g h");
    fixture_release(&f);
}

static void a_probe_that_is_cancelled_is_followed_by_another(void **state)
{
    (void)state;
    struct fixture f;
    open_circuit(&f);
    fixture_pass(&f, MINUTE);
    assert_string_equal(fixture_run_pass(&f), "d");
    fixture_accept(&f, "d");
    fixture_order(&f, EVENT_CANCEL, "d");
    fixture_end(&f, "d", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "e");
    fixture_release(&f);
}

static void a_success_in_between_keeps_the_circuit_closed(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    f.spec.provider = sched_add_provider(f.sched, &fragile);
    fixture_cap(&f, 1);
    static const char *const names[] = {"a", "b", "c", "d", "e", "g"};
    for (uint32_t ix = 0; ix < 6; ix++) {
        fixture_task(&f, names[ix], "");
    }
    for (uint32_t ix = 0; ix < 5; ix++) {
        assert_string_equal(fixture_run_pass(&f), names[ix]);
        fixture_end(&f, names[ix], ix == 2 ? OUTCOME_DONE : OUTCOME_FAILED);
    }
    assert_string_equal(fixture_run_pass(&f), "g");
    assert_int_equal(f.circuits, 0);
    fixture_release(&f);
}

static void two_circuits_give_two_notices(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 9);
    static const char *const names[] = {"a", "b", "c", "d", "e", "g"};
    for (uint32_t ix = 0; ix < 6; ix++) {
        if (ix % 3 == 0) {
            f.spec.provider = sched_add_provider(f.sched, &fragile);
        }
        fixture_task(&f, names[ix], "");
    }
    (void)fixture_run_pass(&f);
    for (uint32_t ix = 0; ix < 6; ix++) {
        fixture_end(&f, names[ix], OUTCOME_FAILED);
    }
    (void)fixture_run_pass(&f);
    assert_int_equal(f.circuits, 2);
    fixture_release(&f);
}

/* A run of cap 1 with a class that takes three tasks per session. */
static void batch_fixture(struct fixture *f)
{
    fixture_init(f);
    fixture_cap(f, 1);
    f->spec.class_id = fixture_class(f, 0, false, 3, SCHED_NEVER);
    f->spec.group = fixture_group(f, 0, 0);
}

static void a_session_takes_as_many_as_its_class_allows(void **state)
{
    (void)state;
    struct fixture f;
    batch_fixture(&f);
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    for (uint32_t ix = 0; ix < 5; ix++) {
        fixture_task(&f, names[ix], "");
    }
    assert_string_equal(fixture_run_pass(&f), "a+b+c");
    assert_int_equal(fixture_used(&f, 0), 1); /* one slot for all */
    struct sched_run run = sched_run(f.sched, f.run);
    assert_int_equal(run.sessions, 1);
    assert_int_equal(run.in_flight, 3);
    assert_true(fixture_get(&f, "a").token == fixture_get(&f, "c").token);
    fixture_accept(&f, "b"); /* any of them names the session */
    assert_int_equal(fixture_state(&f, "a"), TASK_RUNNING);
    assert_int_equal(fixture_state(&f, "c"), TASK_RUNNING);
    fixture_end(&f, "c", OUTCOME_DONE);
    assert_int_equal(fixture_state(&f, "a"), TASK_DONE);
    assert_string_equal(fixture_run_pass(&f), "d+e");
    fixture_release(&f);
}

static void only_the_same_kind_shares_a_session(void **state)
{
    (void)state;
    struct fixture f;
    batch_fixture(&f);
    fixture_task(&f, "a", "");
    f.spec.batch_key = 1; /* another repository */
    fixture_task(&f, "b", "");
    f.spec.batch_key = 0;
    fixture_task(&f, "c", "");
    assert_string_equal(fixture_run_pass(&f), "a+c");
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_release(&f);
}

static void a_batch_is_filled_best_first(void **state)
{
    (void)state;
    struct fixture f;
    batch_fixture(&f);
    static const int64_t minutes[] = {1, 5, 2, 4, 3};
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    for (uint32_t ix = 0; ix < 5; ix++) {
        f.spec.estimate_ns = minutes[ix] * MINUTE;
        fixture_task(&f, names[ix], "");
    }
    assert_string_equal(fixture_run_pass(&f), "b+d+e");
    fixture_release(&f);
}

static void one_whose_group_is_closed_rides_along_without_a_place(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(2), fixture_max(1)};
    limits[1].hold_group = true;
    fixture_run(&f, SCHED_RANK, limits, 2);
    f.spec.class_id = fixture_class(&f, 0, false, 2, SCHED_NEVER);
    f.failure.retry_max = 1;
    fixture_task(&f, "leads", "");
    fixture_task(&f, "rides", "");
    fixture_task(&f, "third", "");
    assert_string_equal(fixture_run_pass(&f), "leads+rides");
    assert_true(fixture_get(&f, "leads").group_open);
    assert_false(fixture_get(&f, "rides").group_open);
    assert_int_equal(fixture_used(&f, 1), 1);
    static const enum sched_outcome outcomes[] = {
        OUTCOME_DONE,
        OUTCOME_FAILED,
    };
    assert_int_equal(end_each(&f, "rides", outcomes, 2), ERR_OK);
    /* Now it needs a place, and comes after the one that waited longer. */
    assert_string_equal(fixture_run_pass(&f), "third+rides");
    fixture_done(&f, "third");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_used(&f, 1), 0);
    fixture_release(&f);
}

static void background_tasks_of_many_groups_share_a_session(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.spec.class_id = fixture_class(&f, 1, true, 3, SCHED_NEVER);
    static const char *const names[] = {"r1", "r2", "r3", "r4"};
    for (uint32_t ix = 0; ix < 4; ix++) {
        fixture_task(&f, names[ix], ""); /* each of its own group */
    }
    assert_string_equal(fixture_run_pass(&f), "r1+r2+r3");
    fixture_refuse(&f, "r2", SCHED_NEVER);
    fixture_pass(&f, 10 * SECOND);
    assert_string_equal(fixture_run_pass(&f), "r1+r2+r3"); /* all ready again */
    assert_int_equal(fixture_get(&f, "r3").attempts, 1);
    fixture_release(&f);
}

static void a_batch_can_end_differently_for_each(void **state)
{
    (void)state;
    struct fixture f;
    batch_fixture(&f);
    f.failure.retry_max = 1;
    f.failure.checkpoint_max = 1;
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    fixture_task(&f, "c", "");
    assert_string_equal(fixture_run_pass(&f), "a+b+c");
    static const enum sched_outcome outcomes[] = {
        OUTCOME_FAILED,
        OUTCOME_DONE,
        OUTCOME_CHECKPOINT,
    };
    assert_int_equal(end_each(&f, "b", outcomes, 3), ERR_OK);
    assert_int_equal(fixture_state(&f, "b"), TASK_DONE);
    assert_int_equal(fixture_get(&f, "a").tries, 1);
    assert_int_equal(fixture_get(&f, "c").checkpoints, 1);
    assert_string_equal(fixture_run_pass(&f), "a+c");
    fixture_release(&f);
}

static void a_batch_that_went_well_in_part_is_no_failure(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct provider_spec spec = fragile;
    spec.circuit_failures = 1;
    f.spec.provider = sched_add_provider(f.sched, &spec);
    fixture_cap(&f, 1);
    f.spec.class_id = fixture_class(&f, 0, false, 2, SCHED_NEVER);
    f.spec.group = fixture_group(&f, 0, 0);
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    for (uint32_t ix = 0; ix < 5; ix++) {
        fixture_task(&f, names[ix], "");
    }
    assert_string_equal(fixture_run_pass(&f), "a+b");
    static const enum sched_outcome mixed[] = {OUTCOME_FAILED, OUTCOME_DONE};
    assert_int_equal(end_each(&f, "a", mixed, 2), ERR_OK);
    assert_string_equal(fixture_run_pass(&f), "c+d");
    static const enum sched_outcome bad[] = {OUTCOME_FAILED, OUTCOME_FAILED};
    assert_int_equal(end_each(&f, "c", bad, 2), ERR_OK);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(f.circuits, 1);
    fixture_release(&f);
}

static void
a_start_that_fails_at_once_ends_the_waiting_for_answers(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    fixture_task(&f, "c", "");
    assert_string_equal(fixture_run_pass(&f), "a b");
    fixture_refuse(&f, "a", SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_end(&f, "b", OUTCOME_FAILED); /* never accepted, not refused */
    assert_string_equal(fixture_run_pass(&f), "a c");
    fixture_release(&f);
}

static void a_provider_that_is_down_for_days_costs_few_starts(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct provider_spec spec = fragile;
    spec.probe_ns_max = 60 * MINUTE;
    f.spec.provider = sched_add_provider(f.sched, &spec);
    fixture_cap(&f, 10);
    f.failure.retry_max = 1000000;
    (void)fixture_tasks(&f, 50);
    uint32_t starts = 0;
    uint32_t notices = 0;
    while (f.now_ns < INT64_C(6) * 24 * 60 * MINUTE) {
        (void)fixture_run_pass(&f);
        notices += f.circuits;
        uint32_t count = 0;
        (void)sched_in_flight(f.sched, &count);
        starts += count;
        for (; count > 0; (void)sched_in_flight(f.sched, &count)) {
            struct task_id task = {sched_in_flight(f.sched, &count)[0]};
            fixture_end_id(&f, task, OUTCOME_FAILED);
        }
        int64_t next_ns = sched_next_timer(f.sched);
        assert_true(next_ns != SCHED_NEVER);
        fixture_pass(&f, next_ns > f.now_ns ? next_ns - f.now_ns : 0);
    }
    assert_true(starts < 200);
    assert_true(starts > 100); /* it does probe */
    assert_int_equal(notices, 1);
    fixture_release(&f);
}

static void a_batch_prefers_the_better_task_to_the_open_group(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    struct class_id batched = fixture_class(&f, 2, false, 2, SCHED_NEVER);
    f.spec.class_id = batched;
    f.spec.group = fixture_group(&f, 0, 0);
    fixture_task(&f, "leads", "");
    fixture_task(&f, "same", ""); /* of the group that will be open */
    f.spec.group = ID_NONE;
    fixture_task(&f, "better", "");
    f.spec.class_id = f.work;
    fixture_task(&f, "urgent", "leads");
    f.spec.class_id = f.review;
    fixture_task(&f, "soon", "better");
    assert_string_equal(fixture_run_pass(&f), "leads+better");
    fixture_done(&f, "leads");
    assert_string_equal(fixture_run_pass(&f), "urgent");
    fixture_done(&f, "urgent");
    assert_string_equal(fixture_run_pass(&f), "soon");
    fixture_release(&f);

    /* Equal otherwise: the open group. */
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.spec.class_id = fixture_class(&f, 0, false, 2, SCHED_NEVER);
    f.spec.group = fixture_group(&f, 0, 0);
    f.spec.estimate_ns = 9 * MINUTE;
    fixture_task(&f, "leads", "");
    f.spec.estimate_ns = 0;
    fixture_task(&f, "same", "");
    f.spec.group = ID_NONE;
    f.spec.estimate_ns = MINUTE;
    fixture_task(&f, "other", "");
    assert_string_equal(fixture_run_pass(&f), "leads+same");
    fixture_release(&f);
}

static void a_group_that_waits_for_its_provider_blocks_nobody(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(2), fixture_max(1)};
    limits[1].hold_group = true;
    fixture_run(&f, SCHED_RANK, limits, 2);
    struct provider_spec other = {
        .backoff_ns = SECOND,
        .backoff_ns_max = SECOND,
        .probe_ns = SECOND,
        .probe_ns_max = SECOND,
    };
    struct provider_id first = f.spec.provider;
    f.spec.provider = sched_add_provider(f.sched, &other);
    fixture_task(&f, "limited", "");
    f.spec.provider = first;
    fixture_task(&f, "free", "");
    assert_string_equal(fixture_run_pass(&f), "limited");
    fixture_refuse(&f, "limited", 30 * MINUTE);
    /* Its place is free for others until its provider is back. */
    assert_string_equal(fixture_run_pass(&f), "free");
    fixture_pass(&f, 30 * MINUTE);
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_done(&f, "free");
    assert_string_equal(fixture_run_pass(&f), "limited");
    fixture_release(&f);
}

/* A session that vanished spends a try and is no fault of the provider. */
static void a_lost_session_is_tried_again(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    f.spec.provider = sched_add_provider(f.sched, &fragile);
    fixture_cap(&f, 1);
    f.failure.retry_max = 3;
    fixture_task(&f, "a", "");
    for (uint32_t tries = 1; tries <= 3; tries++) {
        assert_string_equal(fixture_run_pass(&f), "a");
        if (tries % 2 == 0) {
            fixture_accept(&f, "a");
        }
        fixture_end(&f, "a", OUTCOME_LOST);
        assert_int_equal(fixture_get(&f, "a").tries, tries);
    }
    struct sched_provider_record record =
        sched_provider_record(f.sched, f.spec.provider);
    assert_int_equal(record.failures, 0);
    assert_false(record.circuit_open);
    assert_int_equal(record.steps, 0);
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_end(&f, "a", OUTCOME_LOST);
    (void)fixture_run_pass(&f);
    assert_int_equal(f.circuits, 0);
    assert_int_equal(fixture_get(&f, "a").parked, SCHED_PARKED_FAILED);
    fixture_release(&f);
}

/* Ended by order, before and after it was accepted. */
static void a_stopped_session_costs_nothing(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    f.spec.provider = sched_add_provider(f.sched, &fragile);
    struct limit_spec cap = fixture_max(1);
    fixture_run(&f, SCHED_FAIR, &cap, 1);
    fixture_task(&f, "a", "");
    for (uint32_t n = 0; n < 5; n++) {
        assert_string_equal(fixture_run_pass(&f), "a");
        if (n % 2 == 0) {
            fixture_accept(&f, "a");
        }
        fixture_pass(&f, MINUTE);
        fixture_end(&f, "a", OUTCOME_STOPPED);
        assert_int_equal(fixture_state(&f, "a"), TASK_READY);
        assert_int_equal(fixture_get(&f, "a").attempts, 0);
        assert_int_equal(fixture_get(&f, "a").tries, 0);
    }
    struct sched_record record = sched_record(f.sched, fixture_id(&f, "a"));
    assert_int_equal(record.ready_ns, 0); /* it keeps its place */
    assert_int_equal(record.service_ns, 0);
    struct sched_provider_record provider =
        sched_provider_record(f.sched, f.spec.provider);
    assert_int_equal(provider.failures, 0);
    assert_int_equal(provider.steps, 0);
    fixture_release(&f);
}

static void a_stop_is_of_the_whole_session(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    f.spec.class_id = fixture_class(&f, 0, false, 2, SCHED_NEVER);
    fixture_cap(&f, 1);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "a+b");
    const enum sched_outcome mixed[] = {OUTCOME_DONE, OUTCOME_STOPPED};
    assert_int_equal(end_each(&f, "a", mixed, 2), ERR_INVALID);
    fixture_order(&f, EVENT_CANCEL, "b");
    fixture_end(&f, "a", OUTCOME_STOPPED);
    assert_int_equal(fixture_state(&f, "a"), TASK_READY);
    assert_int_equal(fixture_state(&f, "b"), TASK_CANCELLED);
    fixture_release(&f);
}

static void a_lost_gate_is_not_blamed(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.spec.group = fixture_group(&f, 0, 0);
    struct task_id code = fixture_task(&f, "code", "");
    f.spec.rework_to = code.v;
    f.failure.rework_on_failure = true;
    f.failure.rework_max = 5;
    f.failure.retry_max = 1;
    fixture_task(&f, "gate", "code");
    (void)fixture_run_pass(&f);
    fixture_done(&f, "code");
    assert_string_equal(fixture_run_pass(&f), "gate");
    fixture_end(&f, "gate", OUTCOME_LOST);
    assert_string_equal(fixture_run_pass(&f), "gate");
    assert_int_equal(fixture_get(&f, "gate").reworks, 0);
    assert_int_equal(fixture_get(&f, "gate").tries, 1);
    assert_int_equal(fixture_state(&f, "code"), TASK_DONE);
    fixture_release(&f);
}

static void a_lost_probe_is_followed_by_another(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    f.spec.provider = sched_add_provider(f.sched, &fragile);
    fixture_cap(&f, 1);
    f.failure.retry_max = 9;
    fixture_task(&f, "a", "");
    for (uint32_t n = 0; n < 3; n++) {
        assert_string_equal(fixture_run_pass(&f), "a");
        fixture_end(&f, "a", OUTCOME_FAILED);
    }
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_pass(&f, 60 * SECOND);
    assert_string_equal(fixture_run_pass(&f), "a"); /* the probe */
    fixture_accept(&f, "a");
    fixture_end(&f, "a", OUTCOME_LOST);
    assert_string_equal(fixture_run_pass(&f),
                        "a"); /* at once: it said nothing */
    struct sched_provider_record record =
        sched_provider_record(f.sched, f.spec.provider);
    assert_int_equal(record.failures, 3);
    assert_int_equal(record.probe_token, fixture_get(&f, "a").token);
    fixture_release(&f);
}

/* Part of the session has a result, so its provider did well. */
static void a_batch_that_was_lost_in_part_ended_well(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    f.spec.provider = sched_add_provider(f.sched, &fragile);
    f.spec.class_id = fixture_class(&f, 0, false, 2, SCHED_NEVER);
    fixture_cap(&f, 1);
    f.failure.retry_max = 9;
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    const enum sched_outcome failed[] = {OUTCOME_FAILED, OUTCOME_LOST};
    const enum sched_outcome done[] = {OUTCOME_LOST, OUTCOME_DONE};
    assert_string_equal(fixture_run_pass(&f), "a+b");
    fixture_end(&f, "a", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "a+b");
    assert_int_equal(end_each(&f, "a", failed, 2), ERR_OK);
    struct sched_provider_record record =
        sched_provider_record(f.sched, f.spec.provider);
    assert_int_equal(record.failures, 1); /* nor better nor worse */
    assert_string_equal(fixture_run_pass(&f), "a+b");
    assert_int_equal(end_each(&f, "a", done, 2), ERR_OK);
    record = sched_provider_record(f.sched, f.spec.provider);
    assert_int_equal(record.failures, 0);
    assert_int_equal(fixture_state(&f, "b"), TASK_DONE);
    assert_int_equal(fixture_get(&f, "a").tries, 3);
    fixture_release(&f);
}

/*
 * A probe shuts its provider for the others: what is ready there keeps no
 * place, and who gets it starts in the same pass.
 */
static void a_start_that_shuts_its_provider_makes_room(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(9), fixture_max(2)};
    limits[1].hold_group = true;
    struct provider_id probed = sched_add_provider(f.sched, &fragile);
    fixture_run(&f, SCHED_FIFO, limits, 2);
    f.failure.retry_max = 9;
    f.spec.provider = probed;
    fixture_task(&f, "a", "");
    f.spec.group = fixture_group(&f, 0, 0);
    fixture_task(&f, "b", "");
    fixture_task(&f, "c", "b");
    f.spec.group = ID_NONE;
    f.spec.provider = f.provider;
    fixture_task(&f, "other", "");
    assert_string_equal(fixture_run_pass(&f), "a b");
    fixture_accept(&f, "b");
    for (uint32_t n = 0; n < 2; n++) {
        fixture_end(&f, "a", OUTCOME_FAILED);
        assert_string_equal(fixture_run_pass(&f), "a");
    }
    fixture_end(&f, "a", OUTCOME_FAILED); /* the circuit opens */
    assert_string_equal(fixture_run_pass(&f), "other");
    fixture_pass(&f, 60 * SECOND);
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_done(&f, "other");
    assert_string_equal(fixture_run_pass(&f), "a"); /* the probe */
    fixture_release(&f);
}

/* What is stored of it says "open": the newer record must not. */
static void a_group_that_closes_over_ready_tasks_is_reported(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 9);
    f.spec.group = fixture_group(&f, 0, 0);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "a");
    fixture_task(&f, "c", "a");
    f.spec.group = ID_NONE;
    fixture_task(&f, "other", "");
    assert_string_equal(fixture_run_pass(&f), "a other");
    fixture_accept(&f, "a");
    fixture_accept(&f, "other");
    fixture_set_limit(&f, 0, 1, 0);
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_true(fixture_get(&f, "b").group_open);
    fixture_refuse(&f, "other", SCHED_NEVER); /* the provider backs off */
    assert_string_equal(fixture_run_pass(&f), "");
    assert_false(fixture_get(&f, "b").group_open);
    assert_string_equal(strbuf_text(&f.changed), "other b");
    assert_int_equal(sched_record(f.sched, fixture_id(&f, "b")).flags, 0);
    fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_task_is_ready_and_keeps_its_place),
        cmocka_unit_test(a_task_that_is_always_refused_lets_others_go),
        cmocka_unit_test(one_that_runs_shields_the_provider),
        cmocka_unit_test(other_providers_are_not_slowed),
        cmocka_unit_test(nothing_is_sent_before_all_answers_are_in),
        cmocka_unit_test(a_time_that_was_named_is_waited_for),
        cmocka_unit_test(the_same_time_read_again_is_not_extended),
        cmocka_unit_test(a_session_limited_after_acceptance_costs_no_try),
        cmocka_unit_test(failures_in_a_row_open_the_circuit_with_one_notice),
        cmocka_unit_test(one_probe_at_growing_intervals),
        cmocka_unit_test(a_probe_that_ends_well_lets_all_go),
        cmocka_unit_test(a_probe_that_is_cancelled_is_followed_by_another),
        cmocka_unit_test(a_success_in_between_keeps_the_circuit_closed),
        cmocka_unit_test(two_circuits_give_two_notices),
        cmocka_unit_test(a_session_takes_as_many_as_its_class_allows),
        cmocka_unit_test(only_the_same_kind_shares_a_session),
        cmocka_unit_test(a_batch_is_filled_best_first),
        cmocka_unit_test(one_whose_group_is_closed_rides_along_without_a_place),
        cmocka_unit_test(background_tasks_of_many_groups_share_a_session),
        cmocka_unit_test(a_batch_can_end_differently_for_each),
        cmocka_unit_test(a_batch_that_went_well_in_part_is_no_failure),
        cmocka_unit_test(
            a_start_that_fails_at_once_ends_the_waiting_for_answers),
        cmocka_unit_test(a_group_that_waits_for_its_provider_blocks_nobody),
        cmocka_unit_test(a_provider_that_is_down_for_days_costs_few_starts),
        cmocka_unit_test(a_batch_prefers_the_better_task_to_the_open_group),
        cmocka_unit_test(a_lost_session_is_tried_again),
        cmocka_unit_test(a_stopped_session_costs_nothing),
        cmocka_unit_test(a_stop_is_of_the_whole_session),
        cmocka_unit_test(a_lost_gate_is_not_blamed),
        cmocka_unit_test(a_lost_probe_is_followed_by_another),
        cmocka_unit_test(a_batch_that_was_lost_in_part_ended_well),
        cmocka_unit_test(a_start_that_shuts_its_provider_makes_room),
        cmocka_unit_test(a_group_that_closes_over_ready_tasks_is_reported),
    };
    return cmocka_run_group_tests_name("sched: executors", tests, NULL, NULL);
}
