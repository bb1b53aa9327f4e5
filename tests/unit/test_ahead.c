/* SPDX-License-Identifier: MIT */
/* Drawn courses of events: distributions, outcomes, and states in progress. */
#include "sim/ahead.h"

#include "base/macros.h"
#include "base/rng.h"
#include "plan/load.h"
#include "tests/unit/sim_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TASKS_MAX = 16, DRAWS = 400 };

/* A plan whose sessions take exactly their estimates and succeed, unless a test
 * says otherwise. */
struct fixture {
    struct sim_fixture from;
    struct plan_outlook outlooks[TASKS_MAX];
    struct sched_record records[TASKS_MAX];
    struct sched_run_record record;
    int64_t elapsed_ns[TASKS_MAX];
    struct ahead_run run;
    struct ahead_state state;
};

static void init(struct fixture *f, const char *text)
{
    *f = (struct fixture){0};
    sim_fixture_init(&f->from, text);
    const struct plan *plan = f->from.plan;
    assert_true(plan->task_count <= TASKS_MAX);
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        f->outlooks[ix] = (struct plan_outlook){
            .median_ns = plan_estimate_ns(plan, &plan->tasks[ix]),
            .sessions = UINT64_C(1) << 60, /* the estimate is certain */
        };
    }
    f->run.plan = plan;
    f->run.outlooks = f->outlooks;
    f->state.runs = &f->run;
    f->state.run_count = 1;
}

static struct ahead_end draw(const struct fixture *f, uint64_t seed)
{
    struct ahead *ahead = ahead_new(&f->state);
    struct ahead_end end;
    uint64_t work = 0;
    assert_int_equal(ahead_draw(ahead, seed, &end, &work, NULL), ERR_OK);
    assert_true(work > 0);
    ahead_free(ahead);
    return end;
}

static int compare(const void *left, const void *right)
{
    const int64_t *a = left;
    const int64_t *b = right;
    return (*a > *b) - (*a < *b);
}

/* Draw the ends of seeds 1 to DRAWS, sorted. */
static void draw_all(const struct fixture *f, int64_t *ends_ns)
{
    struct ahead *ahead = ahead_new(&f->state);
    for (uint32_t ix = 0; ix < DRAWS; ix++) {
        struct ahead_end end;
        uint64_t work = 0;
        assert_int_equal(ahead_draw(ahead, ix + 1, &end, &work, NULL), ERR_OK);
        ends_ns[ix] = end.end_ns;
    }
    ahead_free(ahead);
    qsort(ends_ns, DRAWS, sizeof(ends_ns[0]), compare);
}

static void assert_near(int64_t got_ns, double wanted_ns, double share)
{
    assert_true((double)got_ns >= wanted_ns * (1 - share));
    assert_true((double)got_ns <= wanted_ns * (1 + share));
}

/*
 * Start from a state in progress: load the plan at `now_ns`, take a pass and
 * let `change` alter the scheduler; then take its records.
 */
static void
begin(struct fixture *f,
      int64_t now_ns,
      void (*change)(struct sched *sched, int64_t now_ns, uint64_t seed),
      uint64_t seed)
{
    struct sched *sched = sched_new();
    struct load *load = load_new(sched);
    struct load_options options = {0};
    struct load_run *loaded;
    enum err err =
        load_plan(load, now_ns, f->from.plan, &options, &loaded, NULL);
    assert_int_equal(err, ERR_OK);
    struct sched_effect effect;
    for (int pass = 0; pass < 2; pass++) {
        while (sched_next_effect(sched, &effect)) {
        }
        if (pass == 0 && change != NULL) {
            change(sched, now_ns, seed);
        }
    }
    for (uint32_t ix = 0; ix < f->from.plan->task_count; ix++) {
        f->records[ix] = sched_record(sched, load_task(loaded, ix));
    }
    f->record = sched_run_record(sched, load_run_id(loaded));
    f->run.records = f->records;
    f->run.record = &f->record;
    f->run.elapsed_ns = f->elapsed_ns;
    f->state.now_ns = now_ns;
    load_free(load);
    sched_free(sched);
}

/* ---- distributions ---- */

static void a_new_session_takes_its_median_half_of_the_time(void **state)
{
    (void)state;
    assert_near(ahead_remaining_ns(MINUTE_NS, 0.5, 0, 0.5),
                (double)MINUTE_NS,
                1e-9);
    /* 90 % of a standard normal number are below 1.2816. */
    assert_near(ahead_remaining_ns(MINUTE_NS, 0.5, 0, 0.9),
                (double)MINUTE_NS * exp(0.5 * 1.2815515655446004),
                1e-9);
    assert_int_equal(ahead_remaining_ns(MINUTE_NS, 0, 0, 0.9), MINUTE_NS);
    assert_int_equal(ahead_remaining_ns(0, 0.5, 0, 0.9), 0);
}

/* The remaining time of a session that has reached its median: the length of
 * the longer half, at the same shares. */
static void the_remaining_time_is_conditional(void **state)
{
    (void)state;
    for (int step = 0; step < 10; step++) {
        double unit = 0.05 + 0.1 * step;
        int64_t whole_ns =
            ahead_remaining_ns(MINUTE_NS, 0.7, 0, 0.5 + unit / 2);
        int64_t rest_ns = ahead_remaining_ns(MINUTE_NS, 0.7, MINUTE_NS, unit);
        assert_near(rest_ns + MINUTE_NS, (double)whole_ns, 1e-6);
    }
    assert_int_equal(ahead_remaining_ns(MINUTE_NS, 0, 20 * SECOND_NS, 0.3),
                     40 * SECOND_NS);
    assert_int_equal(ahead_remaining_ns(MINUTE_NS, 0, 2 * MINUTE_NS, 0.3), 0);
}

/* A session that has lasted far too long may still last: the longer so far, the
 * longer from now on. */
static void the_remaining_time_far_out_is_positive(void **state)
{
    (void)state;
    int64_t last_ns = 0;
    for (int64_t elapsed_ns = MINUTE_NS; elapsed_ns < 365 * DAY_NS;
         elapsed_ns *= 4) {
        int64_t rest_ns = ahead_remaining_ns(SECOND_NS, 0.2, elapsed_ns, 0.5);
        assert_true(rest_ns > last_ns);
        assert_true(rest_ns < elapsed_ns);
        last_ns = rest_ns;
    }
}

static void drawn_lengths_are_log_normal(void **state)
{
    (void)state;
    struct fixture f;
    int64_t ends_ns[DRAWS];
    init(&f, "tasks:\n  - {id: a, run: x, estimate: 10m}\n");
    f.outlooks[0].sigma = 0.5;
    draw_all(&f, ends_ns);
    assert_near(ends_ns[DRAWS / 2], 600e9, 0.08);
    assert_near(ends_ns[DRAWS * 9 / 10], 600e9 * exp(0.5 * 1.28155), 0.1);
    assert_near(ends_ns[DRAWS / 10], 600e9 * exp(-0.5 * 1.28155), 0.1);
    sim_fixture_release(&f.from);
}

/* With independent errors the sum of many lengths is nearly certain; an error
 * of the estimate itself stays. */
static void
an_uncertain_estimate_is_wrong_for_all_tasks_of_a_class(void **state)
{
    (void)state;
    struct fixture f;
    int64_t ends_ns[DRAWS];
    init(&f,
         "limits: {sessions: 1}\n"
         "tasks:\n"
         "  - {id: a, run: x, estimate: 10m}\n"
         "  - {id: b, run: x, estimate: 10m}\n"
         "  - {id: c, run: x, estimate: 10m}\n"
         "  - {id: d, run: x, estimate: 10m}\n");
    draw_all(&f, ends_ns);
    assert_near(ends_ns[0], 2400e9, 1e-6);
    assert_near(ends_ns[DRAWS - 1], 2400e9, 1e-6);
    for (uint32_t ix = 0; ix < 4; ix++) {
        f.outlooks[ix].sessions = 0;
    }
    draw_all(&f, ends_ns);
    assert_near(ends_ns[DRAWS * 9 / 10], 2400e9 * exp(0.5 * 1.28155), 0.1);
    sim_fixture_release(&f.from);
}

static void equal_seeds_give_equal_ends(void **state)
{
    (void)state;
    struct fixture f;
    init(&f,
         "limits: {sessions: 2}\n"
         "tasks:\n"
         "  - {id: a, run: x, estimate: 10m}\n"
         "  - {id: b, run: x, estimate: 10m}\n"
         "  - {id: c, run: x, needs: [a], estimate: 10m}\n");
    f.run.outlooks = NULL; /* of the plan */
    struct ahead_end first = draw(&f, 7);
    struct ahead_end second = draw(&f, 7);
    assert_int_equal(first.end_ns, second.end_ns);
    assert_int_equal(first.sessions, second.sessions);
    assert_int_not_equal(first.end_ns, draw(&f, 8).end_ns);
    sim_fixture_release(&f.from);
}

/* ---- outcomes ---- */

static void failures_follow_the_rules_of_the_plan(void **state)
{
    (void)state;
    struct fixture f;
    init(&f,
         "tasks:\n"
         "  - {id: a, run: x, estimate: 10m, retry: {max: 2, backoff: 1m}}\n"
         "  - {id: b, run: x, estimate: 10m, needs: [a]}\n");
    f.outlooks[0].fails = 1;
    struct ahead_end end = draw(&f, 1);
    assert_int_equal(end.sessions, 4);
    assert_near(end.end_ns, (double)(43 * MINUTE_NS), 1e-6);
    assert_int_equal(end.parked, 1); /* the last attempt counts as done */
    assert_int_equal(end.left, 0);
    sim_fixture_release(&f.from);
    init(&f,
         "defaults: {retry: 0, on_failure: skip}\n"
         "tasks:\n"
         "  - {id: a, run: x, estimate: 10m}\n"
         "  - {id: b, run: x, estimate: 10m, needs: [a]}\n");
    f.outlooks[0].fails = 1;
    end = draw(&f, 1);
    assert_int_equal(end.sessions, 1);
    assert_int_equal(end.parked, 0);
    assert_int_equal(end.left, 1); /* b is skipped */
    sim_fixture_release(&f.from);
}

static void changes_send_the_group_back(void **state)
{
    (void)state;
    struct fixture f;
    init(&f,
         "pipelines:\n"
         "  p:\n"
         "    - {stage: work, class: implement, run: x, estimate: 10m}\n"
         "    - {stage: gate, class: gate, run: x, estimate: 1m,\n"
         "       rework: {to: work, max: 2}}\n"
         "groups:\n"
         "  - {id: g, pipeline: p}\n");
    struct ahead_end end = draw(&f, 1);
    assert_int_equal(end.sessions, 2);
    assert_near(end.end_ns, (double)(11 * MINUTE_NS), 1e-6);
    assert_int_equal(end.left, 0);
    f.outlooks[1].changes = 1;
    end = draw(&f, 1);
    assert_int_equal(end.sessions, 6);
    assert_near(end.end_ns, (double)(33 * MINUTE_NS), 1e-6);
    assert_int_equal(end.parked, 1);
    assert_int_equal(end.left, 0);
    f.outlooks[1].changes = 0.5;
    uint32_t sessions = 0;
    for (uint64_t seed = 1; seed <= DRAWS; seed++) {
        sessions += draw(&f, seed).sessions;
    }
    /* 2, 4 or 6, with 1/2, 1/4 and 1/4: 3.5 in the mean. */
    assert_near(sessions, 3.5 * DRAWS, 0.1);
    sim_fixture_release(&f.from);
}

/* Three merges of one repository at once: the first fails after 10 minutes, so
 * the others restart, and the first is tried again behind them. */
static void a_failing_merge_restarts_the_queue(void **state)
{
    (void)state;
    struct fixture f;
    init(&f,
         "limits: {sessions: 3, active: 3}\n"
         "repos: {r: {path: r, base: main, gate: x, base_gate: none}}\n"
         "defaults: {retry: {max: 1, backoff: 0s}}\n"
         "tasks:\n"
         "  - {id: a, repo: r, merge: true, estimate: 10m}\n"
         "  - {id: b, repo: r, merge: true, estimate: 10m}\n"
         "  - {id: c, repo: r, merge: true, estimate: 30m}\n");
    struct ahead_end end = draw(&f, 1);
    assert_int_equal(end.sessions, 3);
    assert_near(end.end_ns, (double)(30 * MINUTE_NS), 1e-6);
    f.outlooks[0].fails = 1;
    end = draw(&f, 1);
    assert_int_equal(end.sessions, 4);
    assert_int_equal(end.parked, 1);
    assert_near(end.end_ns, (double)(40 * MINUTE_NS), 1e-6);
    sim_fixture_release(&f.from);
}

/* ---- states in progress ---- */

static void sessions_in_flight_take_the_rest_of_their_time(void **state)
{
    (void)state;
    struct fixture f;
    init(&f,
         "limits: {sessions: 1}\n"
         "tasks:\n"
         "  - {id: a, run: x, estimate: 10m}\n"
         "  - {id: b, run: x, estimate: 5m, needs: [a]}\n");
    begin(&f, 100 * SECOND_NS, NULL, 0);
    assert_int_equal(f.records[0].state, TASK_STARTING);
    f.elapsed_ns[0] = 4 * MINUTE_NS;
    struct ahead_end end = draw(&f, 1);
    assert_near(end.end_ns, (double)(11 * MINUTE_NS), 1e-6);
    assert_int_equal(end.sessions, 2);
    assert_int_equal(end.left, 0);
    f.elapsed_ns[0] = HOUR_NS; /* overdue: it ends at once */
    assert_near(draw(&f, 1).end_ns, (double)(5 * MINUTE_NS), 1e-6);
    sim_fixture_release(&f.from);
}

/* Hold task 1, and let task 0 ask a question. */
static void hold_and_park(struct sched *sched, int64_t now_ns, uint64_t seed)
{
    (void)seed;
    const enum sched_outcome blocked = OUTCOME_BLOCKED;
    struct task_id first = {0};
    struct sched_event end = {
        .type = EVENT_ENDED,
        .now_ns = now_ns,
        .task = first,
        .token = sched_task(sched, first).token,
        .outcomes = &blocked,
        .outcome_count = 1,
        .retry_at_ns = SCHED_NEVER,
    };
    struct sched_event hold = {
        .type = EVENT_HOLD,
        .now_ns = now_ns,
        .task = {1},
    };
    assert_int_equal(sched_apply(sched, &hold), ERR_OK);
    assert_int_equal(sched_apply(sched, &end), ERR_OK);
}

static void parked_and_held_tasks_are_left(void **state)
{
    (void)state;
    struct fixture f;
    init(&f,
         "limits: {sessions: 1}\n"
         "tasks:\n"
         "  - {id: a, run: x, estimate: 10m}\n"
         "  - {id: b, run: x, estimate: 5m}\n"
         "  - {id: c, run: x, estimate: 5m, needs: [a]}\n"
         "  - {id: d, run: x, estimate: 7m}\n");
    begin(&f, 100 * SECOND_NS, hold_and_park, 0);
    assert_int_equal(f.records[0].state, TASK_PARKED);
    struct ahead_end end = draw(&f, 1);
    assert_int_equal(end.left, 3);
    assert_int_equal(end.sessions, 1);
    assert_near(end.end_ns, (double)(7 * MINUTE_NS), 1e-6);
    sim_fixture_release(&f.from);
}

static void limits_change_at_their_time(void **state)
{
    (void)state;
    struct fixture f;
    init(&f,
         "limits: {sessions: 2}\n"
         "tasks:\n"
         "  - {id: a, run: x, estimate: 10m}\n"
         "  - {id: b, run: x, estimate: 10m}\n"
         "  - {id: c, run: x, estimate: 10m}\n");
    const struct ahead_limit limits[] = {
        {.limit = 0, .max = 0},
        {.limit = 0, .at_ns = HOUR_NS, .max = 3},
    };
    f.run.limits = limits;
    f.run.limit_count = 1;
    struct ahead_end end = draw(&f, 1);
    assert_int_equal(end.left, 3);
    assert_int_equal(end.end_ns, 0);
    f.run.limit_count = 2;
    end = draw(&f, 1);
    assert_int_equal(end.left, 0);
    assert_near(end.end_ns, (double)(70 * MINUTE_NS), 1e-6);
    sim_fixture_release(&f.from);
}

/* ---- any state ---- */

/* Apply a random event; most do not fit the state, and are rejected. */
static void disturb(struct sched *sched, struct rng *rng, int64_t now_ns)
{
    static const enum sched_event_type types[] = {
        EVENT_ENDED,
        EVENT_ENDED,
        EVENT_ENDED,
        EVENT_ENDED,
        EVENT_STARTED,
        EVENT_PAUSE,
        EVENT_RESUME,
        EVENT_HOLD,
        EVENT_RELEASE,
        EVENT_CANCEL,
        EVENT_SKIP,
        EVENT_RETRY,
        EVENT_REVOKE,
    };
    struct task_id task = {rng_below(rng, sched_task_count(sched))};
    enum sched_outcome outcome =
        (enum sched_outcome)rng_below(rng, OUTCOME_STOPPED + 1);
    if (rng_below(rng, 2) == 0) {
        outcome = OUTCOME_DONE;
    }
    struct sched_event event = {
        .type = types[rng_below(rng, ARRAY_COUNT(types))],
        .now_ns = now_ns,
        .task = task,
        .token = sched_task(sched, task).token,
        .outcomes = &outcome,
        .outcome_count = 1,
        .retry_at_ns = SCHED_NEVER,
    };
    enum err err = sched_apply(sched, &event);
    assert_true(err == ERR_OK || err == ERR_CONFLICT);
}

static void disturb_often(struct sched *sched, int64_t now_ns, uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, seed);
    for (uint32_t count = rng_below(&rng, 60); count > 0; count--) {
        struct sched_effect effect;
        disturb(sched, &rng, now_ns);
        while (sched_next_effect(sched, &effect)) {
        }
    }
}

static void any_state_can_be_run_ahead(void **state)
{
    (void)state;
    for (uint64_t state_seed = 1; state_seed <= 300; state_seed++) {
        struct fixture f;
        init(&f,
             "limits: {sessions: 4, active: 3}\n"
             "repos: {r: {path: r, base: main, gate: x, base_gate: none}}\n"
             "defaults: {retry: {max: 1, backoff: 1m}}\n"
             "classes: {review: {batch: {max: 3}}}\n"
             "pipelines:\n"
             "  p:\n"
             "    - {stage: work, class: implement, run: x}\n"
             "    - {stage: gate, class: gate, run: x,\n"
             "       rework: {to: work, max: 2}}\n"
             "    - {stage: merge, merge: true}\n"
             "groups:\n"
             "  - {id: g, repo: r, pipeline: p}\n"
             "  - {id: h, repo: r, pipeline: p}\n"
             "  - {id: i, repo: r, pipeline: p}\n"
             "tasks:\n"
             "  - {id: u, class: review, run: x}\n"
             "  - {id: v, class: review, run: x}\n"
             "  - {id: w, class: review, run: x, needs: [g]}\n");
        f.run.outlooks = NULL;
        begin(&f, 100 * SECOND_NS, disturb_often, state_seed);
        for (uint64_t seed = 1; seed <= 3; seed++) {
            struct ahead_end end = draw(&f, seed);
            assert_true(end.left <= f.from.plan->task_count);
            assert_true(end.end_ns >= 0);
        }
        sim_fixture_release(&f.from);
    }
}

static void impossible_records_are_reported(void **state)
{
    (void)state;
    struct fixture f;
    init(&f, "tasks:\n  - {id: a, run: x, estimate: 10m}\n");
    begin(&f, 100 * SECOND_NS, NULL, 0);
    f.records[0].token = 0; /* in flight, without a session */
    struct ahead *ahead = ahead_new(&f.state);
    struct ahead_end end;
    uint64_t work = 0;
    struct diag diag = {0};
    assert_int_equal(ahead_draw(ahead, 1, &end, &work, &diag), ERR_CORRUPT);
    ahead_free(ahead);
    sim_fixture_release(&f.from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_session_takes_its_median_half_of_the_time),
        cmocka_unit_test(the_remaining_time_is_conditional),
        cmocka_unit_test(the_remaining_time_far_out_is_positive),
        cmocka_unit_test(drawn_lengths_are_log_normal),
        cmocka_unit_test(
            an_uncertain_estimate_is_wrong_for_all_tasks_of_a_class),
        cmocka_unit_test(equal_seeds_give_equal_ends),
        cmocka_unit_test(failures_follow_the_rules_of_the_plan),
        cmocka_unit_test(changes_send_the_group_back),
        cmocka_unit_test(a_failing_merge_restarts_the_queue),
        cmocka_unit_test(sessions_in_flight_take_the_rest_of_their_time),
        cmocka_unit_test(parked_and_held_tasks_are_left),
        cmocka_unit_test(limits_change_at_their_time),
        cmocka_unit_test(any_state_can_be_run_ahead),
        cmocka_unit_test(impossible_records_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
