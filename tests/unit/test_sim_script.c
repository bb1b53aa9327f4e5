/* SPDX-License-Identifier: MIT */
/* What a script does to a simulation: ends of sessions, orders, additions. */
#include "sim/sim.h"

#include "tests/unit/sim_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* a (10 min), then b (5 min); two slots. */
#define A_THEN_B                                                               \
    "limits: {sessions: 2}\n"                                                  \
    "tasks:\n"                                                                 \
    "  - {id: a, run: x, estimate: 10m}\n"                                     \
    "  - {id: b, run: x, estimate: 5m, needs: [a]}\n"

/* One slot; a, b and c of 10 min each, in this order. */
#define THREE_IN_A_ROW                                                         \
    "limits: {sessions: 1}\n"                                                  \
    "tasks:\n"                                                                 \
    "  - {id: a, run: x, estimate: 10m}\n"                                     \
    "  - {id: b, run: x, estimate: 10m}\n"                                     \
    "  - {id: c, run: x, estimate: 10m}\n"

/* ---- ends ---- */

/* Retries after 10 and 20 s: 0-600, 610-1210, 1230-1830, then b. */
static void failures_are_retried_with_back_off(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, A_THEN_B);
    sim_fixture_line(&f, "fail a:2");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "a",
                       (struct sim_expected){1, 0, 600, SIM_END_FAILED});
    sim_fixture_expect(&f,
                       "a",
                       (struct sim_expected){2, 610, 1210, SIM_END_FAILED});
    sim_fixture_expect(&f,
                       "a",
                       (struct sim_expected){3, 1230, 1830, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "b",
                       (struct sim_expected){1, 1830, 2130, SIM_END_DONE});
    for (uint32_t n = 1; n <= 3; n++) {
        assert_int_equal(sim_fixture_span(&f, "a", n)->attempt, n);
    }
    assert_int_equal(f.result->counts[TASK_DONE], 2);
    sim_fixture_release(&f);
}

static void after_the_last_try_it_is_parked(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, A_THEN_B);
    sim_fixture_line(&f, "fail a:3");
    sim_fixture_run(&f);
    assert_int_equal(sim_fixture_count(&f, "a"), 3);
    assert_int_equal(sim_fixture_count(&f, "b"), 0);
    sim_fixture_left(&f, "a", TASK_PARKED, WHY_PARKED);
    sim_fixture_left(&f, "b", TASK_WAITING, WHY_BLOCKED);
    assert_int_equal(f.result->left[1].why.task.v, plan_find_task(f.plan, "a"));
    assert_int_equal(f.result->left_count, 2);
    sim_fixture_release(&f);
}

static void a_failure_can_skip_what_needs_it(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(
        &f,
        "tasks:\n"
        "  - {id: a, run: x, estimate: 1m, retry: 0, on_failure: skip}\n"
        "  - {id: b, run: x, estimate: 1m, needs: [a]}\n"
        "  - {id: c, run: x, estimate: 1m, needs: [b]}\n"
        "  - {id: d, run: x, estimate: 5m}\n");
    sim_fixture_line(&f, "fail a:1");
    sim_fixture_run(&f);
    sim_fixture_left(&f, "a", TASK_FAILED, WHY_FAILED);
    sim_fixture_left(&f, "b", TASK_SKIPPED, WHY_ENDED);
    sim_fixture_left(&f, "c", TASK_SKIPPED, WHY_ENDED);
    sim_fixture_expect(&f, "d", (struct sim_expected){1, 0, 300, SIM_END_DONE});
    sim_fixture_release(&f);
}

/* d is ended in its middle, in the instant in which a fails. */
static void a_failure_can_abort_the_run(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(
        &f,
        "tasks:\n"
        "  - {id: a, run: x, estimate: 1m, retry: 0, on_failure: abort}\n"
        "  - {id: b, run: x, estimate: 1m, needs: [a]}\n"
        "  - {id: d, run: x, estimate: 5m}\n");
    sim_fixture_line(&f, "fail a:1");
    sim_fixture_run(&f);
    sim_fixture_left(&f, "b", TASK_CANCELLED, WHY_ENDED);
    sim_fixture_left(&f, "d", TASK_CANCELLED, WHY_ENDED);
    sim_fixture_expect(&f,
                       "d",
                       (struct sim_expected){1, 0, 60, SIM_END_CANCELLED});
    assert_int_equal(f.result->makespan_ns, MINUTE_NS);
    sim_fixture_release(&f);
}

static void a_failure_can_ask_first(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(
        &f,
        "limits: {sessions: 1}\n"
        "tasks:\n"
        "  - {id: a, run: x, estimate: 1m, retry: 0, on_failure: ask}\n"
        "  - {id: b, run: x, estimate: 1m}\n");
    sim_fixture_line(&f, "fail a:1");
    sim_fixture_line(&f, "at 10m retry a");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "a",
                       (struct sim_expected){1, 0, 60, SIM_END_FAILED});
    assert_int_equal(sim_fixture_span(&f, "b", 1)->start_ns >= 10 * MINUTE_NS,
                     true);
    assert_int_equal(f.result->counts[TASK_DONE], 2);
    assert_int_equal(f.result->makespan_ns, 12 * MINUTE_NS);
    sim_fixture_release(&f);
}

#define PIPELINE                                                               \
    "limits: {sessions: 1}\n"                                                  \
    "pipelines:\n"                                                             \
    "  p:\n"                                                                   \
    "    - {stage: work, class: implement, run: x, estimate: 10m}\n"           \
    "    - {stage: gate, class: gate, run: x, estimate: 1m,\n"                 \
    "       rework: {to: work, max: 2}}\n"                                     \
    "    - {stage: review, class: review, run: x, estimate: 2m,\n"             \
    "       rework: {to: work, max: 1}}\n"                                     \
    "groups: [{id: g, pipeline: p}]\n"

/* work, gate, review, then all of it again. */
static void changes_send_the_group_back(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, PIPELINE);
    sim_fixture_line(&f, "changes g/review:1");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "g/review",
                       (struct sim_expected){1, 660, 780, SIM_END_CHANGES});
    sim_fixture_expect(&f,
                       "g/work",
                       (struct sim_expected){2, 780, 1380, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "g/gate",
                       (struct sim_expected){2, 1380, 1440, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "g/review",
                       (struct sim_expected){2, 1440, 1560, SIM_END_DONE});
    assert_int_equal(f.result->counts[TASK_DONE], 3);
    sim_fixture_release(&f);
}

static void a_failing_gate_sends_the_group_back(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, PIPELINE);
    sim_fixture_line(&f, "fail g/gate:1");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "g/gate",
                       (struct sim_expected){1, 600, 660, SIM_END_FAILED});
    sim_fixture_expect(&f,
                       "g/work",
                       (struct sim_expected){2, 660, 1260, SIM_END_DONE});
    assert_int_equal(f.result->counts[TASK_DONE], 3);
    sim_fixture_release(&f);
}

static void rework_has_an_end(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, PIPELINE);
    sim_fixture_line(&f, "changes g/review:2");
    sim_fixture_run(&f);
    assert_int_equal(sim_fixture_count(&f, "g/review"), 2);
    sim_fixture_left(&f, "g/review", TASK_PARKED, WHY_PARKED);
    assert_int_equal(f.result->left_count, 1);
    sim_fixture_release(&f);
}

static void a_checkpoint_goes_on_in_a_fresh_session(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, A_THEN_B);
    sim_fixture_line(&f, "checkpoint a:2");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "a",
                       (struct sim_expected){1, 0, 600, SIM_END_CHECKPOINT});
    sim_fixture_expect(&f,
                       "a",
                       (struct sim_expected){2, 600, 1200, SIM_END_CHECKPOINT});
    sim_fixture_expect(&f,
                       "a",
                       (struct sim_expected){3, 1200, 1800, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "b",
                       (struct sim_expected){1, 1800, 2100, SIM_END_DONE});
    sim_fixture_release(&f);
}

static void too_many_checkpoints_park(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f,
                     "tasks: [{id: a, run: x, estimate: 1m, checkpoint: "
                     "{after: 30s, max: 2}}]\n");
    sim_fixture_line(&f, "checkpoint a:9");
    sim_fixture_run(&f);
    assert_int_equal(sim_fixture_count(&f, "a"), 3);
    sim_fixture_left(&f, "a", TASK_PARKED, WHY_PARKED);
    sim_fixture_release(&f);
}

static void what_is_blocked_is_parked_at_once(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, A_THEN_B);
    sim_fixture_line(&f, "block a");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "a",
                       (struct sim_expected){1, 0, 600, SIM_END_BLOCKED});
    assert_int_equal(sim_fixture_count(&f, "a"), 1);
    sim_fixture_left(&f, "a", TASK_PARKED, WHY_PARKED);
    sim_fixture_left(&f, "b", TASK_WAITING, WHY_BLOCKED);
    sim_fixture_release(&f);
}

/* Refused at 0, after 30 s and after 60 s more; no try is spent. */
static void refusals_back_off_and_cost_no_try(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f,
                     "providers: {cloud: {backoff: 30s, max_backoff: 10m}}\n"
                     "limits: {sessions: 4}\n"
                     "tasks:\n"
                     "  - {id: a, run: x, estimate: 10m, provider: cloud}\n"
                     "  - {id: b, run: x, estimate: 10m}\n");
    sim_fixture_line(&f, "refuse cloud:2");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "a",
                       /* 30 s, 1 min, and 30 s of its own */
                       (struct sim_expected){1, 120, 720, SIM_END_DONE});
    sim_fixture_expect(&f, "b", (struct sim_expected){1, 0, 600, SIM_END_DONE});
    assert_int_equal(sim_fixture_span(&f, "a", 1)->attempt, 1);
    assert_int_equal(f.result->refusals, 2);
    assert_int_equal(f.result->session_count, 2);
    sim_fixture_release(&f);
}

/* Four refusals in one pass are one step of back-off. */
static void refusals_of_one_pass_are_one_step(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f,
                     "providers: {local: {backoff: 30s, max_backoff: 10m}}\n"
                     "limits: {sessions: 4}\n"
                     "tasks:\n"
                     "  - {id: a, run: x, estimate: 1m}\n"
                     "  - {id: b, run: x, estimate: 1m}\n"
                     "  - {id: c, run: x, estimate: 1m}\n"
                     "  - {id: d, run: x, estimate: 1m}\n");
    sim_fixture_line(&f, "refuse local:4");
    sim_fixture_run(&f);
    for (int ix = 0; ix < 4; ix++) {
        const char name[] = {(char)('a' + ix), '\0'};
        sim_fixture_expect(&f,
                           name,
                           (struct sim_expected){1, 30, 90, SIM_END_DONE});
    }
    assert_int_equal(f.result->refusals, 4);
    sim_fixture_release(&f);
}

static void unknown_names_of_ends_are_refused(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, A_THEN_B);
    sim_fixture_line(&f, "fail z:1");
    sim_fixture_refused(&f, "the plan has no task \"z\"");
    sim_fixture_release(&f);
    sim_fixture_init(&f, A_THEN_B);
    sim_fixture_line(&f, "refuse cloud:1");
    sim_fixture_refused(&f, "the plan has no provider \"cloud\"");
    sim_fixture_release(&f);
}

/* ---- orders ---- */

/* Six tasks of 10 min, cap 3: 5m -> 1, 25m -> 0, 40m -> 3. */
static void no_start_exceeds_a_cap_that_moves(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f,
                     "limits: {sessions: 3}\n"
                     "tasks:\n"
                     "  - {id: a, run: x, estimate: 10m}\n"
                     "  - {id: b, run: x, estimate: 11m}\n"
                     "  - {id: c, run: x, estimate: 12m}\n"
                     "  - {id: d, run: x, estimate: 10m}\n"
                     "  - {id: e, run: x, estimate: 10m}\n"
                     "  - {id: f, run: x, estimate: 10m}\n"
                     "  - {id: g, run: x, estimate: 10m}\n"
                     "  - {id: h, run: x, estimate: 10m}\n");
    sim_fixture_line(&f, "at 5m cap 1");
    sim_fixture_line(&f, "at 25m cap 0");
    sim_fixture_line(&f, "at 40m cap 3");
    sim_fixture_run(&f);
    /* At 10 and 11 min others still run; only at 12 there is room. */
    sim_fixture_expect(&f,
                       "d",
                       (struct sim_expected){1, 720, 1320, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "e",
                       (struct sim_expected){1, 1320, 1920, SIM_END_DONE});
    /* The cap is 0 when e ends; all three slots fill at 40 min. */
    sim_fixture_expect(&f,
                       "f",
                       (struct sim_expected){1, 2400, 3000, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "g",
                       (struct sim_expected){1, 2400, 3000, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "h",
                       (struct sim_expected){1, 2400, 3000, SIM_END_DONE});
    /* Nothing that ran was ended. */
    sim_fixture_expect(&f, "a", (struct sim_expected){1, 0, 600, SIM_END_DONE});
    sim_fixture_expect(&f, "b", (struct sim_expected){1, 0, 660, SIM_END_DONE});
    sim_fixture_expect(&f, "c", (struct sim_expected){1, 0, 720, SIM_END_DONE});
    sim_fixture_release(&f);
}

/* gpu goes from 1 to 50 % of 4 sessions, then to none. */
static void a_limit_can_be_set_to_a_share_and_to_none(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(
        &f,
        "limits: {sessions: 4, work: {max: 1, where: {class: work}}}\n"
        "classes: {work: {}}\n"
        "tasks:\n"
        "  - {id: a, class: work, run: x, estimate: 10m}\n"
        "  - {id: b, class: work, run: x, estimate: 10m}\n"
        "  - {id: c, class: work, run: x, estimate: 10m}\n"
        "  - {id: d, class: work, run: x, estimate: 10m}\n");
    sim_fixture_line(&f, "at 4m limit work 50%");
    sim_fixture_line(&f, "at 6m limit work none");
    sim_fixture_run(&f);
    sim_fixture_expect(&f, "a", (struct sim_expected){1, 0, 600, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "b",
                       (struct sim_expected){1, 240, 840, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "c",
                       (struct sim_expected){1, 360, 960, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "d",
                       (struct sim_expected){1, 360, 960, SIM_END_DONE});
    sim_fixture_release(&f);
}

static void a_share_moves_with_the_cap(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(
        &f,
        "limits: {sessions: 2, work: {max: 50%, where: {class: work}}}\n"
        "classes: {work: {}}\n"
        "tasks:\n"
        "  - {id: a, class: work, run: x, estimate: 10m}\n"
        "  - {id: b, class: work, run: x, estimate: 10m}\n"
        "  - {id: c, class: work, run: x, estimate: 10m}\n");
    sim_fixture_line(&f, "at 3m cap 6");
    sim_fixture_run(&f);
    sim_fixture_expect(&f, "a", (struct sim_expected){1, 0, 600, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "b",
                       (struct sim_expected){1, 180, 780, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "c",
                       (struct sim_expected){1, 180, 780, SIM_END_DONE});
    sim_fixture_release(&f);
}

static void a_held_task_lets_others_pass(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, THREE_IN_A_ROW);
    sim_fixture_line(&f, "at 1m hold b");
    sim_fixture_line(&f, "at 25m release b");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "c",
                       (struct sim_expected){1, 600, 1200, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "b",
                       (struct sim_expected){1, 1500, 2100, SIM_END_DONE});
    sim_fixture_release(&f);
}

static void a_task_that_stays_held_is_left(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, THREE_IN_A_ROW);
    sim_fixture_line(&f, "at 1m hold b");
    sim_fixture_run(&f);
    sim_fixture_left(&f, "b", TASK_READY, WHY_HELD);
    assert_int_equal(f.result->left_count, 1);
    sim_fixture_release(&f);
}

static void a_parked_task_can_be_tried_again(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, A_THEN_B);
    sim_fixture_line(&f, "block a");
    sim_fixture_line(&f, "at 30m retry a");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "a",
                       (struct sim_expected){2, 1800, 2400, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "b",
                       (struct sim_expected){1, 2400, 2700, SIM_END_DONE});
    assert_int_equal(f.result->left_count, 0);
    sim_fixture_release(&f);
}

static void a_whole_run_can_be_tried_again(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f,
                     "limits: {sessions: 2}\n"
                     "tasks:\n"
                     "  - {id: a, run: x, estimate: 10m}\n"
                     "  - {id: b, run: x, estimate: 10m}\n");
    sim_fixture_line(&f, "block a");
    sim_fixture_line(&f, "block b");
    sim_fixture_line(&f, "at 20m retry run");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "a",
                       (struct sim_expected){2, 1200, 1800, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "b",
                       (struct sim_expected){2, 1200, 1800, SIM_END_DONE});
    sim_fixture_release(&f);
}

static void a_skipped_task_skips_what_needs_it(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, A_THEN_B);
    sim_fixture_line(&f, "at 3m skip a");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "a",
                       (struct sim_expected){1, 0, 180, SIM_END_CANCELLED});
    sim_fixture_left(&f, "a", TASK_SKIPPED, WHY_ENDED);
    sim_fixture_left(&f, "b", TASK_SKIPPED, WHY_ENDED);
    sim_fixture_release(&f);
}

/* The slot of a is free at 1 min, and b has its own 10 min from then on. */
static void a_cancelled_session_frees_its_slot(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, THREE_IN_A_ROW);
    sim_fixture_line(&f, "at 1m cancel a");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "a",
                       (struct sim_expected){1, 0, 60, SIM_END_CANCELLED});
    sim_fixture_expect(&f,
                       "b",
                       (struct sim_expected){1, 60, 660, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "c",
                       (struct sim_expected){1, 660, 1260, SIM_END_DONE});
    sim_fixture_left(&f, "a", TASK_CANCELLED, WHY_ENDED);
    assert_int_equal(f.result->left_count, 1);
    sim_fixture_release(&f);
}

static void a_cancelled_run_ends_at_once(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, THREE_IN_A_ROW);
    sim_fixture_line(&f, "at 12m cancel run");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "b",
                       (struct sim_expected){1, 600, 720, SIM_END_CANCELLED});
    assert_int_equal(sim_fixture_count(&f, "c"), 0);
    assert_int_equal(f.result->counts[TASK_DONE], 1);
    assert_int_equal(f.result->counts[TASK_CANCELLED], 2);
    assert_int_equal(f.result->makespan_ns, 12 * MINUTE_NS);
    sim_fixture_release(&f);
}

/* b runs when the result of a is put in doubt; c must wait for a again. */
static void a_revoked_result_holds_what_needs_it(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f,
                     "limits: {sessions: 1}\n"
                     "tasks:\n"
                     "  - {id: a, run: x, estimate: 10m}\n"
                     "  - {id: b, run: x, estimate: 10m, needs: [a]}\n"
                     "  - {id: c, run: x, estimate: 10m, needs: [a, b]}\n");
    sim_fixture_line(&f, "at 15m revoke a");
    sim_fixture_line(&f, "at 30m retry a");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "b",
                       (struct sim_expected){1, 600, 1200, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "a",
                       (struct sim_expected){2, 1800, 2400, SIM_END_DONE});
    assert_true(sim_fixture_span(&f, "c", 1)->start_ns >= 2400 * SECOND_NS);
    assert_int_equal(f.result->counts[TASK_DONE], 3);
    sim_fixture_release(&f);
}

static void a_revoked_result_can_be_accepted(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f,
                     "limits: {sessions: 1}\n"
                     "tasks:\n"
                     "  - {id: a, run: x, estimate: 10m}\n"
                     "  - {id: b, run: x, estimate: 10m, needs: [a]}\n"
                     "  - {id: c, run: x, estimate: 10m, needs: [a, b]}\n");
    sim_fixture_line(&f, "at 15m revoke a");
    sim_fixture_line(&f, "at 30m release a");
    sim_fixture_run(&f);
    assert_int_equal(sim_fixture_count(&f, "a"), 1);
    sim_fixture_expect(&f,
                       "c",
                       (struct sim_expected){1, 1800, 2400, SIM_END_DONE});
    sim_fixture_release(&f);
}

static void a_paused_run_starts_nothing(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, THREE_IN_A_ROW);
    sim_fixture_line(&f, "at 5m pause");
    sim_fixture_line(&f, "at 33m resume");
    sim_fixture_run(&f);
    sim_fixture_expect(&f, "a", (struct sim_expected){1, 0, 600, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "b",
                       (struct sim_expected){1, 1980, 2580, SIM_END_DONE});
    sim_fixture_release(&f);
    sim_fixture_init(&f, THREE_IN_A_ROW);
    sim_fixture_line(&f, "at 5m pause");
    sim_fixture_run(&f);
    sim_fixture_left(&f, "b", TASK_READY, WHY_PAUSED);
    sim_fixture_left(&f, "c", TASK_READY, WHY_PAUSED);
    sim_fixture_release(&f);
}

/* What is ordered for time 0 is in force before anything starts. */
static void orders_of_time_zero_come_first(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, THREE_IN_A_ROW);
    sim_fixture_line(&f, "at 0s hold a");
    sim_fixture_run(&f);
    sim_fixture_expect(&f, "b", (struct sim_expected){1, 0, 600, SIM_END_DONE});
    sim_fixture_left(&f, "a", TASK_READY, WHY_HELD);
    sim_fixture_release(&f);
}

/* At 10 min a ends, and in the same instant the cap is lowered to 0: orders
 * of an instant are in force before its starts. */
static void orders_of_an_instant_come_before_its_starts(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, THREE_IN_A_ROW);
    sim_fixture_line(&f, "at 10m cap 0");
    sim_fixture_line(&f, "at 10m hold b");
    sim_fixture_line(&f, "at 20m cap 1");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "c",
                       (struct sim_expected){1, 1200, 1800, SIM_END_DONE});
    sim_fixture_release(&f);
}

static void orders_that_cannot_be_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *text;
    } cases[] = {
        {"at 1m hold z", "at 1m: the plan has no task or group \"z\""},
        {"at 1m rerun z", "at 1m: the plan has no task \"z\""},
        {"at 1m limit z 1", "at 1m: the plan has no limit \"z\""},
        {"at 1m retry b", "at 1m: request rejected: \"b\" is waiting"},
        {"at 1m retry a", "at 1m: request rejected: \"a\" is running"},
        {"at 1m revoke a", "at 1m: request rejected: \"a\" is running"},
        {"at 11m cancel a", "at 11m: request rejected: \"a\" is done"},
        {"at 11m skip a", "at 11m: request rejected: \"a\" is done"},
        {"at 1m release b", "at 1m: request rejected: \"b\" is waiting"},
        {"at 1m limit sessions 50%",
         "at 1m: request rejected: \"sessions\" is not a limit that can be set "
         "to this"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        struct sim_fixture f;
        sim_fixture_init(&f, A_THEN_B);
        sim_fixture_line(&f, cases[ix].line);
        sim_fixture_refused(&f, cases[ix].text);
        sim_fixture_release(&f);
    }
}

/* ---- barriers ---- */

#define BARRIER(drain)                                                         \
    "limits: {sessions: 3}\n"                                                  \
    "sync: {every: 2, run: ./rescan.sh, drain: " drain "}\n"                   \
    "tasks:\n"                                                                 \
    "  - {id: a, run: x, estimate: 4m}\n"                                      \
    "  - {id: b, run: x, estimate: 4m}\n"                                      \
    "  - {id: c, run: x, estimate: 9m}\n"                                      \
    "  - {id: d, run: x, estimate: 1m}\n"

/* Two are done at 4 min; c runs to 9, and only then d starts. */
static void a_barrier_that_drains_waits_for_all(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, BARRIER("true"));
    sim_fixture_run(&f);
    sim_fixture_expect(&f, "c", (struct sim_expected){1, 0, 540, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "d",
                       (struct sim_expected){1, 540, 600, SIM_END_DONE});
    assert_int_equal(f.result->counts[TASK_DONE], 4);
    sim_fixture_release(&f);
}

static void a_barrier_without_drain_stops_nothing(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, BARRIER("false"));
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "d",
                       (struct sim_expected){1, 240, 300, SIM_END_DONE});
    sim_fixture_release(&f);
}

/* ---- additions ---- */

/* a is done when n comes behind it: n is ready at once. */
static void added_behind_what_is_done_it_starts_at_once(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, A_THEN_B);
    sim_fixture_add(&f,
                    "12m",
                    "tasks: [{id: n, run: x, estimate: 2m, needs: [a]}]\n");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "n",
                       (struct sim_expected){1, 720, 840, SIM_END_DONE});
    assert_int_equal(sim_fixture_span(&f, "n", 1)->ready_ns, 12 * MINUTE_NS);
    assert_int_equal(f.result->task_count, 3);
    assert_int_equal(f.result->counts[TASK_DONE], 3);
    sim_fixture_release(&f);
}

static void added_behind_what_runs_it_waits_for_it(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, A_THEN_B);
    sim_fixture_add(&f,
                    "4m",
                    "tasks: [{id: n, run: x, estimate: 2m, needs: [a]}]\n");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "n",
                       (struct sim_expected){1, 600, 720, SIM_END_DONE});
    sim_fixture_release(&f);
}

static void added_behind_what_waits_it_waits_too(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, A_THEN_B);
    sim_fixture_add(&f,
                    "4m",
                    "tasks: [{id: n, run: x, estimate: 2m, needs: [b]}]\n");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "n",
                       (struct sim_expected){1, 900, 1020, SIM_END_DONE});
    sim_fixture_release(&f);
}

/* a is parked: n waits for a person. a failed for good: n is skipped. */
static void added_behind_what_failed_it_does_not_start(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, A_THEN_B);
    sim_fixture_line(&f, "block a");
    sim_fixture_add(&f, "12m", "tasks: [{id: n, run: x, needs: [a]}]\n");
    sim_fixture_run(&f);
    assert_int_equal(sim_fixture_count(&f, "n"), 0);
    sim_fixture_left(&f, "n", TASK_WAITING, WHY_BLOCKED);
    sim_fixture_release(&f);

    sim_fixture_init(&f,
                     "tasks: [{id: a, run: x, estimate: 10m, retry: 0, "
                     "on_failure: skip}]\n");
    sim_fixture_line(&f, "fail a:1");
    sim_fixture_add(&f, "12m", "tasks: [{id: n, run: x, needs: [a]}]\n");
    sim_fixture_run(&f);
    assert_int_equal(sim_fixture_count(&f, "n"), 0);
    sim_fixture_left(&f, "n", TASK_SKIPPED, WHY_ENDED);
    sim_fixture_release(&f);
}

/* In front of b, which still waits: b starts later. */
static void what_waits_can_come_to_need_what_is_added(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, A_THEN_B);
    sim_fixture_add(&f,
                    "4m",
                    "tasks: [{id: n, run: x, estimate: 20m}]\n"
                    "needs: {b: [n]}\n");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "n",
                       (struct sim_expected){1, 240, 1440, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "b",
                       (struct sim_expected){1, 1440, 1740, SIM_END_DONE});
    sim_fixture_release(&f);
}

static void a_run_that_had_ended_goes_on(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, A_THEN_B);
    sim_fixture_add(&f, "1h", "tasks: [{id: n, run: x, estimate: 2m}]\n");
    sim_fixture_add(&f,
                    "2h",
                    "resources: {gpu: 1}\n"
                    "groups: [{id: g}]\n"
                    "tasks:\n"
                    "  - {id: o, run: x, estimate: 2m, group: g,\n"
                    "     uses: {gpu: 1}, class: new, needs: [n]}\n"
                    "  - {id: p, run: x, estimate: 2m, group: g,\n"
                    "     uses: {gpu: 1}, class: new, needs: [n]}\n");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "n",
                       (struct sim_expected){1, 3600, 3720, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "o",
                       (struct sim_expected){1, 7200, 7320, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "p",
                       (struct sim_expected){1, 7320, 7440, SIM_END_DONE});
    assert_int_equal(sim_fixture_class(&f, "new")->count, 2);
    assert_int_equal(sim_fixture_class(&f, "new")->wait_max_ns, 2 * MINUTE_NS);
    assert_int_equal(f.result->makespan_ns, 7440 * SECOND_NS);
    sim_fixture_release(&f);
}

/* The file is named, with line and column, and the reason of the core. */
static void additions_that_cannot_be_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *time;
        const char *text;
        const char *wanted;
    } cases[] = {
        {"4m",
         "tasks: [{id: n}]\n",
         "at 4m: more.yaml:1:9: missing key \"run\": a task needs it, "
         "\"agent\" or \"merge: true\""},
        {"4m",
         "tasks: [{id: a, run: x}]\n",
         "at 4m: more.yaml:1:14: duplicate id \"a\" (already in the plan)"},
        {"4m",
         "tasks: [{id: n, run: x}]\nneeds: {a: [n]}\n",
         "at 4m: task \"a\" is already running and cannot get new needs: let a "
         "new task need both"},
        {"11m",
         "tasks: [{id: n, run: x}]\nneeds: {a: [n]}\n",
         "at 11m: task \"a\" has already finished and cannot get new needs"},
        {"4m",
         "tasks: [{id: n, run: x, needs: [b]}]\nneeds: {b: [n]}\n",
         "at 4m: more.yaml:1:33: needs form a cycle: b -> n -> b"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        struct sim_fixture f;
        sim_fixture_init(&f, A_THEN_B);
        sim_fixture_add(&f, cases[ix].time, cases[ix].text);
        sim_fixture_refused(&f, cases[ix].wanted);
        /* The plan is as it was. */
        assert_int_equal(f.plan->task_count, 2);
        assert_int_equal(plan_find_task(f.plan, "n"), PLAN_NONE);
        assert_int_equal(f.plan->tasks[0].need_count, 0);
        assert_int_equal(f.plan->tasks[1].need_count, 1);
        sim_fixture_release(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_are_retried_with_back_off),
        cmocka_unit_test(after_the_last_try_it_is_parked),
        cmocka_unit_test(a_failure_can_skip_what_needs_it),
        cmocka_unit_test(a_failure_can_abort_the_run),
        cmocka_unit_test(a_failure_can_ask_first),
        cmocka_unit_test(changes_send_the_group_back),
        cmocka_unit_test(a_failing_gate_sends_the_group_back),
        cmocka_unit_test(rework_has_an_end),
        cmocka_unit_test(a_checkpoint_goes_on_in_a_fresh_session),
        cmocka_unit_test(too_many_checkpoints_park),
        cmocka_unit_test(what_is_blocked_is_parked_at_once),
        cmocka_unit_test(refusals_back_off_and_cost_no_try),
        cmocka_unit_test(refusals_of_one_pass_are_one_step),
        cmocka_unit_test(unknown_names_of_ends_are_refused),
        cmocka_unit_test(no_start_exceeds_a_cap_that_moves),
        cmocka_unit_test(a_limit_can_be_set_to_a_share_and_to_none),
        cmocka_unit_test(a_share_moves_with_the_cap),
        cmocka_unit_test(a_held_task_lets_others_pass),
        cmocka_unit_test(a_task_that_stays_held_is_left),
        cmocka_unit_test(a_parked_task_can_be_tried_again),
        cmocka_unit_test(a_whole_run_can_be_tried_again),
        cmocka_unit_test(a_skipped_task_skips_what_needs_it),
        cmocka_unit_test(a_cancelled_session_frees_its_slot),
        cmocka_unit_test(a_cancelled_run_ends_at_once),
        cmocka_unit_test(a_revoked_result_holds_what_needs_it),
        cmocka_unit_test(a_revoked_result_can_be_accepted),
        cmocka_unit_test(a_paused_run_starts_nothing),
        cmocka_unit_test(orders_of_time_zero_come_first),
        cmocka_unit_test(orders_of_an_instant_come_before_its_starts),
        cmocka_unit_test(orders_that_cannot_be_are_refused),
        cmocka_unit_test(a_barrier_that_drains_waits_for_all),
        cmocka_unit_test(a_barrier_without_drain_stops_nothing),
        cmocka_unit_test(added_behind_what_is_done_it_starts_at_once),
        cmocka_unit_test(added_behind_what_runs_it_waits_for_it),
        cmocka_unit_test(added_behind_what_waits_it_waits_too),
        cmocka_unit_test(added_behind_what_failed_it_does_not_start),
        cmocka_unit_test(what_waits_can_come_to_need_what_is_added),
        cmocka_unit_test(a_run_that_had_ended_goes_on),
        cmocka_unit_test(additions_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests_name("sim_script", tests, NULL, NULL);
}
