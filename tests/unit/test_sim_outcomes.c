/* SPDX-License-Identifier: MIT */
/* Simulations of needs with an outcome, last tasks, snoozes, approvals, stops
 * and the requests about them. */
#include "base/macros.h"
#include "base/strbuf.h"
#include "plan/load.h"
#include "tests/unit/sim_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void
expect_state(const struct sim_fixture *f, const char *id, enum task_state state)
{
    uint32_t task = plan_find_task(f->plan, id);
    uint32_t count = f->result->left_count + f->result->spared_count;
    for (uint32_t ix = 0; ix < count; ix++) {
        if (f->result->left[ix].task == task) {
            assert_int_equal(f->result->left[ix].state, state);
            return;
        }
    }
    assert_int_equal(state, TASK_DONE);
}

/* ---- snoozes and final failures ---- */

#define TWO_TASKS                                                              \
    "limits: {sessions: 1}\n"                                                  \
    "defaults: {retry: 0}\n"                                                   \
    "tasks:\n"                                                                 \
    "  - {id: a, run: x, estimate: 10m}\n"                                     \
    "  - {id: b, run: x, estimate: 4m}\n"

/* It has no retry to spend, and b has the slot while a waits. */
static void a_snooze_uses_no_slot_and_no_try(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, TWO_TASKS);
    sim_fixture_line(&f, "later a:3=20m");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "a",
                       (struct sim_expected){1, 0, 600, SIM_END_LATER});
    sim_fixture_expect(&f,
                       "b",
                       (struct sim_expected){1, 600, 840, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "a",
                       (struct sim_expected){2, 1800, 2400, SIM_END_LATER});
    sim_fixture_expect(&f,
                       "a",
                       (struct sim_expected){4, 5400, 6000, SIM_END_DONE});
    assert_int_equal(f.result->left_count, 0);
    sim_fixture_release(&f);
}

static void a_snooze_without_a_time_is_short(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, TWO_TASKS);
    sim_fixture_line(&f, "later a");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "a",
                       (struct sim_expected){2, 900, 1500, SIM_END_DONE});
    sim_fixture_release(&f);
}

static void a_retry_wakes_a_snoozed_task(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, TWO_TASKS);
    sim_fixture_line(&f, "later a:1=9h");
    sim_fixture_line(&f, "at 15m retry a");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "a",
                       (struct sim_expected){2, 900, 1500, SIM_END_DONE});
    sim_fixture_release(&f);
}

static void a_final_failure_is_not_retried(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f,
                     "defaults: {retry: 5}\n"
                     "tasks:\n"
                     "  - {id: a, run: x, estimate: 10m}\n"
                     "  - {id: b, run: x, estimate: 10m, on_failure: skip}\n");
    sim_fixture_line(&f, "fatal a");
    sim_fixture_line(&f, "fatal b:9");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "a",
                       (struct sim_expected){1, 0, 600, SIM_END_FATAL});
    assert_int_equal(sim_fixture_count(&f, "a"), 1);
    assert_int_equal(sim_fixture_count(&f, "b"), 1);
    expect_state(&f, "a", TASK_PARKED);
    expect_state(&f, "b", TASK_FAILED);
    sim_fixture_release(&f);
}

/* ---- outcomes of needs ---- */

#define HANDLERS                                                               \
    "defaults: {retry: 0}\n"                                                   \
    "tasks:\n"                                                                 \
    "  - {id: a, run: x, estimate: 10m}\n"                                     \
    "  - {id: mend, run: x, estimate: 5m, needs: [{task: a, on: failed}]}\n"   \
    "  - {id: after, run: x, estimate: 5m, needs: [mend]}\n"                   \
    "  - {id: always, run: x, estimate: 5m, needs: [{task: a, on: any}]}\n"    \
    "  - {id: next, run: x, estimate: 5m, needs: [a]}\n"

static void what_needs_a_failure_is_spared(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, HANDLERS);
    sim_fixture_run(&f);
    assert_int_equal(f.result->left_count, 0);
    assert_int_equal(f.result->spared_count, 2);
    expect_state(&f, "mend", TASK_SKIPPED);
    expect_state(&f, "after", TASK_SKIPPED);
    assert_int_equal(f.result->left[0].why.task.v, plan_find_task(f.plan, "a"));
    sim_fixture_expect(&f,
                       "always",
                       (struct sim_expected){1, 600, 900, SIM_END_DONE});
    /* a, always and next: the others are no issues that could be complete. */
    assert_int_equal(f.result->issues.count, 3);
    assert_int_equal(f.result->issues.done, 3);
    sim_fixture_release(&f);
}

static void what_needs_a_failure_runs_after_one(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, HANDLERS);
    sim_fixture_line(&f, "fail a");
    sim_fixture_run(&f);
    assert_int_equal(f.result->spared_count, 0);
    assert_int_equal(f.result->left_count, 2);
    sim_fixture_left(&f, "a", TASK_PARKED, WHY_PARKED);
    sim_fixture_left(&f, "next", TASK_WAITING, WHY_BLOCKED);
    sim_fixture_expect(&f,
                       "mend",
                       (struct sim_expected){1, 600, 900, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "after",
                       (struct sim_expected){1, 900, 1200, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "always",
                       (struct sim_expected){1, 600, 900, SIM_END_DONE});
    sim_fixture_release(&f);
}

/* ---- last tasks ---- */

#define LAST                                                                   \
    "defaults: {retry: 0}\n"                                                   \
    "groups:\n"                                                                \
    "  - id: g\n"                                                              \
    "    finally: [{id: tidy, run: x, estimate: 1m}]\n"                        \
    "tasks:\n"                                                                 \
    "  - {id: a, run: x, estimate: 10m, group: g}\n"                           \
    "  - {id: b, run: x, estimate: 10m, group: g, needs: [a]}\n"               \
    "  - {id: c, run: x, estimate: 30m}\n"                                     \
    "finally:\n"                                                               \
    "  - {id: tell, run: x, estimate: 2m}\n"                                   \
    "  - {id: mend, run: x, estimate: 3m, needs: [{task: a, on: failed}]}\n"

static void last_tasks_come_after_their_scope(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, LAST);
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "tidy",
                       (struct sim_expected){1, 1200, 1260, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "tell",
                       (struct sim_expected){1, 1800, 1920, SIM_END_DONE});
    assert_int_equal(f.result->last_count, 3);
    assert_int_equal(f.result->last_done, 2);
    assert_int_equal(f.result->spared_count, 1);
    assert_int_equal(f.result->left_count, 0);
    /* The group and c: last tasks are no issues. */
    assert_int_equal(f.result->issues.count, 2);
    sim_fixture_release(&f);
}

static void last_tasks_come_after_failures(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, LAST);
    sim_fixture_line(&f, "fail a");
    sim_fixture_line(&f, "fail tell:9");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "tidy",
                       (struct sim_expected){1, 600, 660, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "mend",
                       (struct sim_expected){1, 1800, 1980, SIM_END_DONE});
    assert_int_equal(f.result->last_done, 2);
    for (uint32_t ix = 0; ix < f.result->left_count; ix++) {
        const struct sim_left *left = &f.result->left[ix];
        bool is_last = left->task == plan_find_task(f.plan, "tell");
        assert_int_equal(left->last, is_last);
    }
    expect_state(&f, "tell", TASK_FAILED);
    sim_fixture_release(&f);
}

static void last_tasks_come_after_a_cancelled_run(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, LAST);
    sim_fixture_line(&f, "at 5m cancel run");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "tidy",
                       (struct sim_expected){1, 300, 360, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "tell",
                       (struct sim_expected){1, 360, 480, SIM_END_DONE});
    assert_true(f.result->cancelled);
    expect_state(&f, "b", TASK_CANCELLED);
    sim_fixture_release(&f);
}

static void last_tasks_come_after_a_cancelled_group(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, LAST);
    sim_fixture_line(&f, "at 5m cancel g");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "tidy",
                       (struct sim_expected){1, 300, 360, SIM_END_DONE});
    expect_state(&f, "a", TASK_CANCELLED);
    expect_state(&f, "b", TASK_CANCELLED);
    assert_false(f.result->cancelled);
    sim_fixture_release(&f);
}

static void last_tasks_run_again_after_more_work(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, LAST);
    sim_fixture_line(&f, "at 1h rerun a");
    sim_fixture_run(&f);
    assert_int_equal(sim_fixture_count(&f, "b"), 2);
    assert_int_equal(sim_fixture_count(&f, "c"), 1);
    sim_fixture_expect(&f,
                       "tidy",
                       (struct sim_expected){2, 4800, 4860, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "tell",
                       (struct sim_expected){2, 4860, 4980, SIM_END_DONE});
    assert_int_equal(f.result->left_count, 0);
    sim_fixture_release(&f);
}

/* ---- approvals ---- */

#define APPROVED                                                               \
    "tasks:\n"                                                                 \
    "  - {id: a, run: x, estimate: 10m}\n"                                     \
    "  - {id: b, run: x, estimate: 10m, needs: [a], approve: true}\n"

static void approvals_are_given_at_once(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, APPROVED);
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "b",
                       (struct sim_expected){1, 600, 1200, SIM_END_DONE});
    sim_fixture_release(&f);
    sim_fixture_init(&f, "tasks: [{id: a, run: x, approve: true}]\n");
    sim_fixture_run(&f);
    sim_fixture_expect(&f, "a", (struct sim_expected){1, 0, 600, SIM_END_DONE});
    sim_fixture_release(&f);
}

static void a_script_gives_approvals(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, APPROVED);
    sim_fixture_line(&f, "at 30m approve b");
    sim_fixture_line(&f, "at 1h rerun b");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "b",
                       (struct sim_expected){1, 1800, 2400, SIM_END_DONE});
    sim_fixture_left(&f, "b", TASK_READY, WHY_APPROVAL);
    sim_fixture_release(&f);
}

static void approvals_that_nobody_waits_for_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *text;
    } cases[] = {
        {"at 5m approve b", "at 5m: request rejected: \"b\" is waiting"},
        {"at 5m approve a", "at 5m: request rejected: \"a\" is running"},
        {"at 15m approve a", "at 15m: request rejected: \"a\" is done"},
        {"at 15m release b", "at 15m: request rejected: \"b\" is running"},
        {"at 15m rerun b", "at 15m: request rejected: \"b\" is running"},
        {"at 15m first a", "at 15m: request rejected: \"a\" is done"},
        {"at 15m priority a 1", "at 15m: request rejected: \"a\" is done"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        struct sim_fixture f;
        sim_fixture_init(&f, APPROVED);
        sim_fixture_line(&f, cases[ix].line);
        sim_fixture_refused(&f, cases[ix].text);
        sim_fixture_release(&f);
    }
}

/* ---- stops and times ---- */

static void a_failure_can_stop_the_run(void **state)
{
    (void)state;
    static const char text[] =
        "limits: {sessions: 2}\n"
        "defaults: {retry: 0}\n"
        "tasks:\n"
        "  - {id: a, run: x, estimate: 10m, on_failure: stop}\n"
        "  - {id: b, run: x, estimate: 15m}\n"
        "  - {id: c, run: x, estimate: 10m}\n"
        "finally: [{id: d, run: x, estimate: 1m}]\n";
    struct sim_fixture f;
    sim_fixture_init(&f, text);
    sim_fixture_line(&f, "fail a");
    sim_fixture_run(&f);
    assert_int_equal(f.result->stopped, SCHED_STOPPED_FAILURE);
    assert_int_equal(f.result->stop_task, plan_find_task(f.plan, "a"));
    assert_int_equal(f.result->stopped_ns, 10 * MINUTE_NS);
    sim_fixture_left(&f, "c", TASK_READY, WHY_HALTED);
    sim_fixture_expect(&f, "b", (struct sim_expected){1, 0, 900, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "d",
                       (struct sim_expected){1, 900, 960, SIM_END_DONE});
    sim_fixture_release(&f);
    sim_fixture_init(&f, text);
    sim_fixture_line(&f, "fail a");
    sim_fixture_line(&f, "at 30m retry a");
    sim_fixture_run(&f);
    assert_int_equal(f.result->stopped, SCHED_NOT_STOPPED);
    assert_int_equal(f.result->left_count, 0);
    assert_int_equal(sim_fixture_count(&f, "d"), 2);
    sim_fixture_release(&f);
}

static void a_deadline_stops_the_run(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f,
                     "deadline: 15m\n"
                     "limits: {sessions: 1}\n"
                     "tasks:\n"
                     "  - {id: a, run: x, estimate: 10m}\n"
                     "  - {id: b, run: x, estimate: 10m}\n"
                     "  - {id: c, run: x, estimate: 10m}\n");
    sim_fixture_run(&f);
    assert_int_equal(f.result->stopped, SCHED_STOPPED_DEADLINE);
    assert_int_equal(f.result->stop_task, PLAN_NONE);
    assert_int_equal(f.result->stopped_ns, 15 * MINUTE_NS);
    assert_int_equal(f.result->makespan_ns, 20 * MINUTE_NS);
    sim_fixture_left(&f, "c", TASK_READY, WHY_HALTED);
    sim_fixture_release(&f);
}

static void tasks_start_at_their_times(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f,
                     "tasks:\n"
                     "  - {id: a, run: x, estimate: 10m, not_before: "
                     "\"2030-01-31T22:00:00Z\"}\n"
                     "  - {id: b, run: x, estimate: 10m}\n");
    struct plan_time start;
    assert_true(plan_parse_time("2030-01-31T21:15:00Z", &start));
    f.options.start_ns = plan_time_ns(start, 0);
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "a",
                       (struct sim_expected){1, 2700, 3300, SIM_END_DONE});
    sim_fixture_expect(&f, "b", (struct sim_expected){1, 0, 600, SIM_END_DONE});
    sim_fixture_release(&f);
}

/* ---- order and groups ---- */

static void requests_change_the_order(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f,
                     "limits: {sessions: 1}\n"
                     "classes: {slow: {tier: 2, defer: true}}\n"
                     "tasks:\n"
                     "  - {id: a, run: x, estimate: 10m}\n"
                     "  - {id: b, run: x, estimate: 10m}\n"
                     "  - {id: c, run: x, estimate: 10m}\n"
                     "  - {id: d, run: x, estimate: 10m, class: slow}\n");
    sim_fixture_line(&f, "at 5m priority c 0");
    sim_fixture_line(&f, "at 6m first d");
    sim_fixture_run(&f);
    static const char *const order[] = {"a", "d", "c", "b"};
    for (uint32_t ix = 0; ix < ARRAY_COUNT(order); ix++) {
        double start_s = 600.0 * ix;
        sim_fixture_expect(&f,
                           order[ix],
                           (struct sim_expected){
                               1,
                               start_s,
                               start_s + 600,
                               SIM_END_DONE,
                           });
    }
    sim_fixture_release(&f);
}

#define EPIC                                                                   \
    "limits: {sessions: 1}\n"                                                  \
    "groups:\n"                                                                \
    "  - {id: epic}\n"                                                         \
    "  - {id: part, parent: epic}\n"                                           \
    "tasks:\n"                                                                 \
    "  - {id: a, run: x, estimate: 10m, group: epic}\n"                        \
    "  - {id: b, run: x, estimate: 10m, group: part}\n"                        \
    "  - {id: c, run: x, estimate: 10m, group: part, needs: [b]}\n"            \
    "  - {id: d, run: x, estimate: 10m}\n"

static void requests_reach_all_of_a_group(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, EPIC);
    sim_fixture_line(&f, "at 5m cancel epic");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "d",
                       (struct sim_expected){1, 300, 900, SIM_END_DONE});
    expect_state(&f, "a", TASK_CANCELLED);
    expect_state(&f, "b", TASK_CANCELLED);
    expect_state(&f, "c", TASK_CANCELLED);
    sim_fixture_release(&f);
    sim_fixture_init(&f, EPIC);
    sim_fixture_line(&f, "at 0s hold part");
    sim_fixture_line(&f, "at 1h release part");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "b",
                       (struct sim_expected){1, 3600, 4200, SIM_END_DONE});
    sim_fixture_release(&f);
    sim_fixture_init(&f, EPIC);
    sim_fixture_line(&f, "at 1m release part");
    sim_fixture_refused(&f,
                        "at 1m: request rejected: \"part\" is not a group with "
                        "a task that allows this");
    sim_fixture_release(&f);
}

/* ---- cost ---- */

/* Take a pass; return how many sessions it starts. */
static uint32_t pass(struct sched *sched, int64_t now_ns)
{
    struct sched_event tick = {.type = EVENT_TICK, .now_ns = now_ns};
    assert_int_equal(sched_apply(sched, &tick), ERR_OK);
    uint32_t count = 0;
    struct sched_effect effect;
    while (sched_next_effect(sched, &effect)) {
        count += effect.type == EFFECT_START ? 1 : 0;
    }
    return count;
}

/* 10,000 tasks that snooze until one time: until then there is no timer, no
 * effect and no slot in use; then all start in one pass. */
static void snoozed_tasks_cost_nothing_until_their_time(void **state)
{
    (void)state;
    enum { COUNT = 10000 };
    struct strbuf text = {0};
    strbuf_addf(&text, "limits: {sessions: %d}\ntasks:\n", COUNT);
    for (uint32_t ix = 0; ix < COUNT; ix++) {
        strbuf_addf(&text, "  - {id: t%u, run: x}\n", ix);
    }
    struct sim_fixture f;
    sim_fixture_init(&f, text.text);
    strbuf_release(&text);
    struct sched *sched = sched_new();
    struct load *load = load_new(sched);
    struct load_run *run = NULL;
    struct load_options options = {.not_before_ns = INT64_MIN};
    assert_int_equal(load_plan(load, 0, f.plan, &options, &run, NULL), ERR_OK);
    assert_int_equal(pass(sched, 0), COUNT);
    static const enum sched_outcome later = OUTCOME_LATER;
    for (uint32_t ix = 0; ix < COUNT; ix++) {
        struct task_id task = load_task(run, ix);
        struct sched_event event = {
            .type = EVENT_ENDED,
            .now_ns = SECOND_NS,
            .task = task,
            .token = sched_task(sched, task).token,
            .outcomes = &later,
            .outcome_count = 1,
            .retry_at_ns = DAY_NS,
        };
        assert_int_equal(sched_apply(sched, &event), ERR_OK);
    }
    assert_int_equal(pass(sched, SECOND_NS), 0);
    assert_int_equal(sched_next_timer(sched), DAY_NS);
    assert_int_equal(sched_limit_used(sched, load_limit(run, 0)), 0);
    assert_int_equal(pass(sched, DAY_NS - 1), 0);
    assert_int_equal(sched_next_timer(sched), DAY_NS);
    assert_int_equal(pass(sched, DAY_NS), COUNT);
    assert_int_equal(sched_task(sched, load_task(run, 0)).tries, 0);
    load_free(load);
    sched_free(sched);
    sim_fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snooze_uses_no_slot_and_no_try),
        cmocka_unit_test(a_snooze_without_a_time_is_short),
        cmocka_unit_test(a_retry_wakes_a_snoozed_task),
        cmocka_unit_test(a_final_failure_is_not_retried),
        cmocka_unit_test(what_needs_a_failure_is_spared),
        cmocka_unit_test(what_needs_a_failure_runs_after_one),
        cmocka_unit_test(last_tasks_come_after_their_scope),
        cmocka_unit_test(last_tasks_come_after_failures),
        cmocka_unit_test(last_tasks_come_after_a_cancelled_run),
        cmocka_unit_test(last_tasks_come_after_a_cancelled_group),
        cmocka_unit_test(last_tasks_run_again_after_more_work),
        cmocka_unit_test(approvals_are_given_at_once),
        cmocka_unit_test(a_script_gives_approvals),
        cmocka_unit_test(approvals_that_nobody_waits_for_are_refused),
        cmocka_unit_test(a_failure_can_stop_the_run),
        cmocka_unit_test(a_deadline_stops_the_run),
        cmocka_unit_test(tasks_start_at_their_times),
        cmocka_unit_test(requests_change_the_order),
        cmocka_unit_test(requests_reach_all_of_a_group),
        cmocka_unit_test(snoozed_tasks_cost_nothing_until_their_time),
    };
    return cmocka_run_group_tests_name("sim_outcomes", tests, NULL, NULL);
}
