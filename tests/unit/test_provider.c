/* SPDX-License-Identifier: MIT */
#include "core/provider.h"

#include "tests/support/death.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Times are plain numbers here: back-off 10 to 60, probes 100 to 350. */
static struct provider make(uint32_t circuit_failures)
{
    return (struct provider){
        .spec =
            {
                .backoff_ns = 10,
                .backoff_ns_max = 60,
                .circuit_failures = circuit_failures,
                .probe_ns = 100,
                .probe_ns_max = 350,
            },
        .kept = {.shut_until_ns = INT64_MIN, .probe_at_ns = INT64_MIN},
    };
}

/* One start, refused at once, without a time. */
static void refuse_at(struct provider *provider, int64_t now_ns)
{
    provider_sent(provider, 1);
    provider_refused(provider, 1, now_ns, PROVIDER_NEVER);
}

static void assert_shut(const struct provider *provider,
                        int64_t now_ns,
                        enum provider_shut why,
                        int64_t until_ns)
{
    assert_int_equal(provider_state(provider, now_ns), why);
    assert_true(provider_wake_ns(provider, now_ns) == until_ns);
    assert_int_equal(provider_state(provider, until_ns - 1), why);
    assert_int_equal(provider_state(provider, until_ns), PROVIDER_OPEN);
}

static void a_new_one_is_open_and_waits_for_nothing(void **state)
{
    (void)state;
    struct provider provider = make(3);
    assert_int_equal(provider_state(&provider, 0), PROVIDER_OPEN);
    assert_true(provider_wake_ns(&provider, 0) == PROVIDER_NEVER);
}

static void a_batch_refused_as_a_whole_is_one_step(void **state)
{
    (void)state;
    struct provider provider = make(0);
    for (uint64_t token = 1; token <= 10; token++) {
        provider_sent(&provider, token);
    }
    for (uint64_t token = 1; token <= 10; token++) {
        provider_refused(&provider, token, 100, PROVIDER_NEVER);
    }
    assert_int_equal(provider.kept.steps, 1);
    assert_shut(&provider, 100, PROVIDER_BACKOFF, 110);
}

static void steps_double_up_to_the_ceiling(void **state)
{
    (void)state;
    struct provider provider = make(0);
    static const int64_t delays[] = {10, 20, 40, 60, 60};
    int64_t now_ns = 1000;
    for (uint32_t ix = 0; ix < 5; ix++) {
        refuse_at(&provider, now_ns);
        assert_shut(&provider, now_ns, PROVIDER_BACKOFF, now_ns + delays[ix]);
        now_ns += delays[ix];
    }
}

static void a_ceiling_below_the_first_step_holds(void **state)
{
    (void)state;
    struct provider provider = make(0);
    provider.spec.backoff_ns_max = 4;
    refuse_at(&provider, 0);
    assert_shut(&provider, 0, PROVIDER_BACKOFF, 4);
}

static void one_acceptance_resets_the_steps(void **state)
{
    (void)state;
    struct provider provider = make(0);
    refuse_at(&provider, 0);
    refuse_at(&provider, 10);
    provider_sent(&provider, 1);
    provider_sent(&provider, 2);
    provider_accepted(&provider, 0);
    provider_refused(&provider, 2, 30, PROVIDER_NEVER);
    assert_int_equal(provider_state(&provider, 30), PROVIDER_OPEN);
    provider_succeeded(&provider);
    refuse_at(&provider, 40);
    assert_shut(&provider, 40, PROVIDER_BACKOFF, 50);
}

/* Issue 13.17: refusals after 0.02, 1 and 3 s, with nothing that lasts. */
static void an_acceptance_that_does_not_last_resets_nothing(void **state)
{
    (void)state;
    struct provider provider = make(0);
    refuse_at(&provider, 0);  /* until 10 */
    refuse_at(&provider, 10); /* until 30 */
    provider_sent(&provider, 1);
    provider_accepted(&provider, 31);
    refuse_at(&provider, 32); /* 40, not 10 */
    assert_shut(&provider, 32, PROVIDER_BACKOFF, 72);
    provider_limited(&provider, 1, 35, PROVIDER_NEVER);
    refuse_at(&provider, 72);
    assert_shut(&provider, 72, PROVIDER_BACKOFF, 132);
    provider_sent(&provider, 2);
    provider_accepted(&provider, 132);
    provider_succeeded(&provider); /* that one has lasted */
    assert_true(provider_is_trusted(&provider));
    refuse_at(&provider, 140);
    assert_false(provider_is_trusted(&provider));
    assert_shut(&provider, 140, PROVIDER_BACKOFF, 150);
}

static void nothing_is_sent_while_answers_are_missing(void **state)
{
    (void)state;
    struct provider provider = make(0);
    provider_sent(&provider, 1);
    provider_sent(&provider, 2);
    assert_int_equal(provider_state(&provider, 0), PROVIDER_OPEN);
    provider_refused(&provider, 1, 0, PROVIDER_NEVER);
    assert_int_equal(provider_state(&provider, 999), PROVIDER_BACKOFF);
    assert_true(provider_wake_ns(&provider, 0) == PROVIDER_NEVER);
    provider_accepted(&provider, 0);
    assert_int_equal(provider_state(&provider, 0), PROVIDER_OPEN);
}

static void an_acceptance_first_keeps_it_open(void **state)
{
    (void)state;
    struct provider provider = make(0);
    provider_sent(&provider, 1);
    provider_sent(&provider, 2);
    provider_sent(&provider, 3);
    provider_accepted(&provider, 0);
    provider_refused(&provider, 2, 0, PROVIDER_NEVER);
    assert_int_equal(provider_state(&provider, 0), PROVIDER_OPEN);
    provider_refused(&provider, 3, 0, PROVIDER_NEVER);
    assert_int_equal(provider_state(&provider, 0), PROVIDER_OPEN);
}

static void a_dropped_start_is_no_refusal(void **state)
{
    (void)state;
    struct provider provider = make(0);
    provider_sent(&provider, 1);
    provider_sent(&provider, 2);
    provider_refused(&provider, 1, 0, PROVIDER_NEVER);
    provider_dropped(&provider, 0);
    assert_int_equal(provider_state(&provider, 0), PROVIDER_OPEN);
    assert_int_equal(provider.kept.steps, 0);
}

static void a_time_that_was_named_is_waited_for(void **state)
{
    (void)state;
    struct provider provider = make(0);
    provider_sent(&provider, 1);
    provider_refused(&provider, 1, 0, 500);
    assert_shut(&provider, 0, PROVIDER_USAGE, 500);
}

static void the_latest_of_several_times_counts(void **state)
{
    (void)state;
    struct provider provider = make(0);
    provider_sent(&provider, 1);
    provider_sent(&provider, 2);
    provider_sent(&provider, 3);
    provider_refused(&provider, 1, 0, 500);
    provider_refused(&provider, 2, 0, 300);
    provider_accepted(&provider, 0); /* shut all the same */
    assert_shut(&provider, 0, PROVIDER_USAGE, 500);
}

static void a_time_in_the_past_is_a_step_of_back_off(void **state)
{
    (void)state;
    struct provider provider = make(0);
    provider_sent(&provider, 1);
    provider_refused(&provider, 1, 1000, 400);
    assert_shut(&provider, 1000, PROVIDER_BACKOFF, 1010);
}

static void limited_after_acceptance_shuts_it_too(void **state)
{
    (void)state;
    struct provider provider = make(0);
    provider_sent(&provider, 1);
    provider_accepted(&provider, 0);
    provider_limited(&provider, 1, 50, 700);
    assert_shut(&provider, 50, PROVIDER_USAGE, 700);
    provider_sent(&provider, 2);
    provider_accepted(&provider, 0);
    provider_limited(&provider, 2, 800, PROVIDER_NEVER);
    assert_shut(&provider, 800, PROVIDER_BACKOFF, 820);
}

/* Refuse one start after the other until it is only tried; the time then. */
static int64_t exhaust(struct provider *provider)
{
    int64_t now_ns = 0;
    for (uint32_t ix = 0; ix < PROVIDER_PATIENCE; ix++) {
        refuse_at(provider, now_ns);
        now_ns = provider->kept.shut_until_ns;
    }
    return now_ns;
}

static void a_time_that_is_named_again_changes_nothing(void **state)
{
    (void)state;
    struct provider provider = make(0);
    for (uint64_t token = 1; token <= 3; token++) {
        provider_sent(&provider, token);
        provider_accepted(&provider, 0);
    }
    provider_limited(&provider, 1, 50, 700);
    provider_limited(&provider, 2, 60, 710); /* "in 650 ns", once more */
    provider_limited(&provider, 3, 300, 950);
    assert_shut(&provider, 300, PROVIDER_USAGE, 700);
}

static void who_refuses_again_and_again_is_tried_with_one(void **state)
{
    (void)state;
    struct provider provider = make(0);
    int64_t now_ns = exhaust(&provider);
    assert_int_equal(provider_state(&provider, now_ns), PROVIDER_OPEN);
    provider_sent(&provider, 7);
    assert_int_equal(provider_state(&provider, now_ns), PROVIDER_BACKOFF);
    assert_true(provider_wake_ns(&provider, now_ns) == PROVIDER_NEVER);
    provider_refused(&provider, 7, now_ns, PROVIDER_NEVER);
    assert_shut(&provider, now_ns, PROVIDER_BACKOFF, now_ns + 60);
}

static void who_refuses_again_and_again_is_told_of_once(void **state)
{
    (void)state;
    struct provider provider = make(0);
    int64_t now_ns = 0;
    uint32_t notices = 0;
    for (uint32_t ix = 0; ix < 1000; ix++) {
        refuse_at(&provider, now_ns);
        notices += provider.notice ? 1 : 0;
        provider.notice = false;
        now_ns = provider.kept.shut_until_ns;
    }
    assert_int_equal(notices, 1);
}

static void others_follow_one_that_was_tried_after_a_while(void **state)
{
    (void)state;
    struct provider provider = make(0);
    int64_t now_ns = exhaust(&provider);
    provider_sent(&provider, 7);
    provider_accepted(&provider, now_ns);
    assert_shut(&provider, now_ns, PROVIDER_BACKOFF, now_ns + 60);
    provider = make(0);
    provider.spec.backoff_ns = PROVIDER_CONFIRM_NS;
    provider.spec.backoff_ns_max = 2 * PROVIDER_CONFIRM_NS;
    now_ns = exhaust(&provider);
    provider_sent(&provider, 7);
    provider_accepted(&provider, now_ns);
    assert_shut(&provider,
                now_ns,
                PROVIDER_BACKOFF,
                now_ns + PROVIDER_CONFIRM_NS);
}

static void others_follow_one_that_was_tried_and_ended_well(void **state)
{
    (void)state;
    struct provider provider = make(0);
    int64_t now_ns = exhaust(&provider);
    provider_sent(&provider, 7);
    provider_accepted(&provider, now_ns);
    provider_succeeded(&provider);
    assert_int_equal(provider_state(&provider, now_ns), PROVIDER_OPEN);
    refuse_at(&provider, now_ns);
    assert_shut(&provider, now_ns, PROVIDER_BACKOFF, now_ns + 10);
}

static void one_that_was_tried_and_limited_goes_on_from_there(void **state)
{
    (void)state;
    struct provider provider = make(0);
    int64_t now_ns = exhaust(&provider);
    provider_sent(&provider, 7);
    provider_accepted(&provider, now_ns);
    provider_limited(&provider, 7, now_ns + 5, PROVIDER_NEVER);
    assert_true(provider.kept.steps == PROVIDER_PATIENCE + 1);
    provider.kept.shut_until_ns = now_ns + 5; /* the time has come */
    provider_sent(&provider, 8);
    assert_int_equal(provider_state(&provider, now_ns + 5), PROVIDER_BACKOFF);
}

static void a_named_time_is_forgotten_by_order(void **state)
{
    (void)state;
    struct provider provider = make(0);
    provider_sent(&provider, 1);
    provider_refused(&provider, 1, 0, 5000);
    assert_int_equal(provider_state(&provider, 100), PROVIDER_USAGE);
    provider_open(&provider, 100);
    assert_int_equal(provider_state(&provider, 100), PROVIDER_OPEN);
    refuse_at(&provider, 100); /* a back-off is nobody's word */
    provider_open(&provider, 100);
    assert_int_equal(provider_state(&provider, 100), PROVIDER_BACKOFF);
}

static void ten_sessions_limited_together_are_one_step(void **state)
{
    (void)state;
    struct provider provider = make(0);
    for (uint64_t token = 1; token <= 10; token++) {
        provider_sent(&provider, token);
        provider_accepted(&provider, 0);
    }
    for (uint64_t token = 1; token <= 10; token++) {
        provider_limited(&provider, token, 100, PROVIDER_NEVER);
    }
    assert_int_equal(provider.kept.steps, 1);
    assert_shut(&provider, 100, PROVIDER_BACKOFF, 110);
}

static void an_acceptance_not_confirmed_does_not_reset(void **state)
{
    (void)state;
    struct provider provider = make(0);
    refuse_at(&provider, 0);
    refuse_at(&provider, 10); /* two steps: 10, 20 */
    provider_sent(&provider, 1);
    provider_accepted(&provider, 0);
    provider_limited(&provider, 1, 30, PROVIDER_NEVER);
    assert_shut(&provider, 30, PROVIDER_BACKOFF, 70); /* the third: 40 */
}

static void a_failure_confirms_an_acceptance(void **state)
{
    (void)state;
    struct provider provider = make(0);
    refuse_at(&provider, 0);
    provider_sent(&provider, 1);
    provider_accepted(&provider, 0);
    provider_failed(&provider, 1, 20);
    provider_sent(&provider, 2);
    provider_accepted(&provider, 0);
    provider_limited(&provider, 2, 30, PROVIDER_NEVER);
    assert_shut(&provider, 30, PROVIDER_BACKOFF, 40);
}

/* Fail `count` sessions at once. */
static void fail_some(struct provider *provider, uint32_t count, int64_t now_ns)
{
    for (uint32_t ix = 0; ix < count; ix++) {
        provider_sent(provider, 100 + ix);
        provider_accepted(provider, 0);
        provider_failed(provider, 100 + ix, now_ns);
    }
}

static void failures_in_a_row_open_the_circuit_with_a_notice(void **state)
{
    (void)state;
    struct provider provider = make(3);
    fail_some(&provider, 2, 0);
    assert_int_equal(provider_state(&provider, 0), PROVIDER_OPEN);
    provider_succeeded(&provider);
    fail_some(&provider, 2, 0);
    assert_int_equal(provider_state(&provider, 0), PROVIDER_OPEN);
    assert_false(provider.notice);
    fail_some(&provider, 1, 0);
    assert_true(provider.notice);
    assert_shut(&provider, 0, PROVIDER_CIRCUIT, 100);
    assert_true(provider_wake_ns(&provider, 100) == PROVIDER_NEVER);
}

static void without_a_circuit_failures_change_nothing(void **state)
{
    (void)state;
    struct provider provider = make(0);
    fail_some(&provider, 100, 0);
    assert_int_equal(provider_state(&provider, 0), PROVIDER_OPEN);
    assert_false(provider.notice);
}

static void probes_go_one_by_one_at_growing_intervals(void **state)
{
    (void)state;
    struct provider provider = make(1);
    static const int64_t delays[] = {100, 200, 350, 350};
    fail_some(&provider, 1, 0);
    provider.notice = false;
    int64_t now_ns = 0;
    for (uint32_t ix = 0; ix < 4; ix++) {
        assert_shut(&provider, now_ns, PROVIDER_CIRCUIT, now_ns + delays[ix]);
        now_ns += delays[ix];
        provider_sent(&provider, 7);
        /* One is under way: shut, and time alone does not change it. */
        assert_int_equal(provider_state(&provider, now_ns + 9999),
                         PROVIDER_CIRCUIT);
        assert_true(provider_wake_ns(&provider, now_ns) == PROVIDER_NEVER);
        provider_accepted(&provider, 0);
        provider_failed(&provider, 7, now_ns);
    }
    assert_false(provider.notice); /* it was open all the time */
}

static void a_probe_that_ends_well_closes_the_circuit(void **state)
{
    (void)state;
    struct provider provider = make(2);
    fail_some(&provider, 2, 0);
    provider_sent(&provider, 7);
    provider_accepted(&provider, 0);
    provider_succeeded(&provider);
    assert_int_equal(provider_state(&provider, 0), PROVIDER_OPEN);
    fail_some(&provider, 1, 0); /* counted from the start again */
    assert_int_equal(provider_state(&provider, 0), PROVIDER_OPEN);
    fail_some(&provider, 1, 0); /* and so are the intervals */
    assert_shut(&provider, 0, PROVIDER_CIRCUIT, 100);
}

static void an_older_session_does_not_speak_for_the_probe(void **state)
{
    (void)state;
    struct provider provider = make(1);
    fail_some(&provider, 1, 0);
    provider_sent(&provider, 7);
    provider_failed(&provider, 5, 50); /* was sent before it opened */
    assert_true(provider.kept.probe_token == 7);
    provider_ended(&provider, 5, 60);
    assert_true(provider.kept.probe_token == 7);
    assert_int_equal(provider_state(&provider, 9999), PROVIDER_CIRCUIT);
}

static void a_probe_that_was_cancelled_may_be_followed_at_once(void **state)
{
    (void)state;
    struct provider provider = make(1);
    fail_some(&provider, 1, 0);
    provider_sent(&provider, 7);
    provider_accepted(&provider, 0);
    provider_ended(&provider, 7, 150);
    assert_int_equal(provider_state(&provider, 150), PROVIDER_OPEN);
    provider_sent(&provider, 8);
    assert_int_equal(provider_state(&provider, 150), PROVIDER_CIRCUIT);
}

static void a_probe_that_is_refused_backs_off_and_is_sent_again(void **state)
{
    (void)state;
    struct provider provider = make(1);
    fail_some(&provider, 1, 0);
    provider_sent(&provider, 7);
    provider_refused(&provider, 7, 150, PROVIDER_NEVER);
    assert_shut(&provider, 150, PROVIDER_BACKOFF, 160);
    assert_true(provider.kept.circuit_open);
}

static void answer_nothing(void *ctx)
{
    provider_accepted(ctx, 0);
}

static void probe_twice(void *ctx)
{
    provider_sent(ctx, 1);
    provider_sent(ctx, 2);
}

static void send_without_token(void *ctx)
{
    provider_sent(ctx, 0);
}

static void refuse_what_was_not_sent(void *ctx)
{
    provider_refused(ctx, 1, 0, PROVIDER_NEVER);
}

static void misuse_stops_the_program(void **state)
{
    (void)state;
    struct provider provider = make(1);
    death_expect(answer_nothing, &provider, "pending > 0");
    death_expect(send_without_token, &provider, "token != 0");
    death_expect(refuse_what_was_not_sent,
                 &provider,
                 "refused < provider->kept.sent");
    fail_some(&provider, 1, 0);
    death_expect(probe_twice, &provider, "probe_token == 0");
}

/* Whatever it was shut for, an operator has dealt with it. */
static void a_resumed_provider_begins_anew(void **state)
{
    (void)state;
    struct provider provider = make(2);
    provider_failed(&provider, 1, 0);
    provider_resume(&provider, 0);
    provider_failed(&provider, 2, 0); /* the first one, again */
    assert_int_equal(provider_state(&provider, 0), PROVIDER_OPEN);
    provider_failed(&provider, 3, 0);
    assert_int_equal(provider_state(&provider, 0), PROVIDER_CIRCUIT);
    provider_stop(&provider);
    provider_resume(&provider, 0);
    assert_int_equal(provider_state(&provider, 0), PROVIDER_OPEN);
    provider_failed(&provider, 4, 0);
    provider_failed(&provider, 5, 0);
    assert_shut(&provider, 0, PROVIDER_CIRCUIT, 100); /* the first interval */
    provider_resume(&provider, 0);
    refuse_at(&provider, 0);
    refuse_at(&provider, 0);
    provider_resume(&provider, 5);
    assert_int_equal(provider_state(&provider, 5), PROVIDER_OPEN);
    refuse_at(&provider, 5);
    assert_shut(&provider, 5, PROVIDER_BACKOFF, 15); /* the first step */
    provider_sent(&provider, 6);
    provider_refused(&provider, 6, 15, 90);
    provider_resume(&provider, 16);
    assert_int_equal(provider_state(&provider, 16), PROVIDER_OPEN);
    assert_false(provider.kept.usage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_one_is_open_and_waits_for_nothing),
        cmocka_unit_test(a_batch_refused_as_a_whole_is_one_step),
        cmocka_unit_test(steps_double_up_to_the_ceiling),
        cmocka_unit_test(a_ceiling_below_the_first_step_holds),
        cmocka_unit_test(one_acceptance_resets_the_steps),
        cmocka_unit_test(an_acceptance_that_does_not_last_resets_nothing),
        cmocka_unit_test(nothing_is_sent_while_answers_are_missing),
        cmocka_unit_test(an_acceptance_first_keeps_it_open),
        cmocka_unit_test(a_dropped_start_is_no_refusal),
        cmocka_unit_test(a_time_that_was_named_is_waited_for),
        cmocka_unit_test(the_latest_of_several_times_counts),
        cmocka_unit_test(a_time_in_the_past_is_a_step_of_back_off),
        cmocka_unit_test(limited_after_acceptance_shuts_it_too),
        cmocka_unit_test(a_time_that_is_named_again_changes_nothing),
        cmocka_unit_test(who_refuses_again_and_again_is_tried_with_one),
        cmocka_unit_test(who_refuses_again_and_again_is_told_of_once),
        cmocka_unit_test(others_follow_one_that_was_tried_after_a_while),
        cmocka_unit_test(others_follow_one_that_was_tried_and_ended_well),
        cmocka_unit_test(one_that_was_tried_and_limited_goes_on_from_there),
        cmocka_unit_test(a_named_time_is_forgotten_by_order),
        cmocka_unit_test(ten_sessions_limited_together_are_one_step),
        cmocka_unit_test(an_acceptance_not_confirmed_does_not_reset),
        cmocka_unit_test(a_failure_confirms_an_acceptance),
        cmocka_unit_test(failures_in_a_row_open_the_circuit_with_a_notice),
        cmocka_unit_test(without_a_circuit_failures_change_nothing),
        cmocka_unit_test(probes_go_one_by_one_at_growing_intervals),
        cmocka_unit_test(a_probe_that_ends_well_closes_the_circuit),
        cmocka_unit_test(an_older_session_does_not_speak_for_the_probe),
        cmocka_unit_test(a_probe_that_was_cancelled_may_be_followed_at_once),
        cmocka_unit_test(a_probe_that_is_refused_backs_off_and_is_sent_again),
        cmocka_unit_test(a_resumed_provider_begins_anew),
        cmocka_unit_test(misuse_stops_the_program),
    };
    return cmocka_run_group_tests_name("executor", tests, NULL, NULL);
}
