/* SPDX-License-Identifier: MIT */
/* What a plan says about the order of tasks: priorities, the goal, shares. */
#include "base/macros.h"
#include "plan/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "sluice: 1\nname: test\n"

static struct plan *read_plan(const char *text, struct plan_errors *errors)
{
    struct plan_source source = {
        .file = "plan.yaml",
        .text = text,
        .len = strlen(text),
        .processors = 2,
    };
    struct plan *plan = NULL;
    bool good = plan_read(&plan, &source, errors);
    assert_true(good == (plan != NULL));
    return plan;
}

static struct plan *read_good(const char *text)
{
    struct plan_errors errors = {0};
    struct plan *plan = read_plan(text, &errors);
    assert_non_null(plan);
    return plan;
}

/* The plan has exactly this error. */
static void expect_bad(const char *text, const char *wanted)
{
    struct plan_errors errors = {0};
    assert_null(read_plan(text, &errors));
    assert_int_equal(errors.count, 1);
    assert_string_equal(errors.items[0].text, wanted);
    plan_errors_release(&errors);
}

static const struct plan_limit *limit_of(const struct plan *plan,
                                         const char *name)
{
    return &plan->limits[plan_find_limit(plan, name)];
}

static const struct plan_task *task_of(const struct plan *plan, const char *id)
{
    return &plan->tasks[plan_find_task(plan, id)];
}

static void a_limit_counts_sessions_groups_or_background(void **state)
{
    (void)state;
    struct plan *plan = read_good(HEAD "limits:\n"
                                       "  review: {count: sessions}\n"
                                       "  a: {max: 1, count: background}\n"
                                       "  b: {max: 1, count: groups}\n"
                                       "  c: 1\n"
                                       "tasks: [{id: a, run: make}]\n");
    assert_false(limit_of(plan, "review")->background);
    assert_false(limit_of(plan, "review")->hold_group);
    assert_int_equal(limit_of(plan, "review")->percent, 34);
    assert_true(limit_of(plan, "a")->background);
    assert_false(limit_of(plan, "a")->hold_group);
    assert_false(limit_of(plan, "b")->background);
    assert_true(limit_of(plan, "b")->hold_group);
    assert_false(limit_of(plan, "c")->background);
    plan_free(plan);
}

/* A share of background sessions can grow up to the cap; others cannot. */
static void a_task_may_use_what_a_share_can_lend(void **state)
{
    (void)state;
    struct plan *plan =
        read_good(HEAD "limits: {sessions: 4, b: {max: 25%, count: background},"
                       " n: {max: 25%}}\n"
                       "tasks: [{id: a, run: make, uses: {b: 4}}]\n");
    assert_int_equal(plan->tasks[0].uses[0].units, 4);
    plan_free(plan);
    expect_bad(HEAD "limits: {sessions: 4, b: {max: 25%, count: background}}\n"
                    "tasks: [{id: a, run: make, uses: {b: 5}}]\n",
               "task \"a\" uses 5 of \"b\", which has only 4, and could "
               "never start");
}

static void expect_issues(struct plan *plan, int64_t max, uint32_t percent)
{
    assert_int_equal(limit_of(plan, "issues")->percent, percent);
    if (percent == 0) {
        assert_true(limit_of(plan, "issues")->max == max);
    }
    assert_true(limit_of(plan, "issues")->hold_group);
}

/* Groups cannot take turns if only some of them may be open. */
static void fair_has_no_limit_of_open_groups(void **state)
{
    (void)state;
    struct plan *plan =
        read_good(HEAD "policy: fair\ntasks: [{id: a, run: x}]\n");
    expect_issues(plan, PLAN_UNLIMITED, 0);
    plan_set_policy(plan, PLAN_POLICY_RANK);
    assert_int_equal(plan->policy, PLAN_POLICY_RANK);
    expect_issues(plan, 0, 100);
    plan_set_policy(plan, PLAN_POLICY_FAIR);
    expect_issues(plan, PLAN_UNLIMITED, 0);
    plan_free(plan);
    plan = read_good(HEAD "policy: fair\nlimits: {issues: 2}\n"
                          "tasks: [{id: a, run: x}]\n");
    expect_issues(plan, 2, 0);
    plan_set_policy(plan, PLAN_POLICY_FIFO);
    expect_issues(plan, 2, 0);
    plan_free(plan);
}

static void the_nearest_priority_counts(void **state)
{
    (void)state;
    struct plan *plan =
        read_good(HEAD "goal: finish-many\n"
                       "defaults: {priority: 6}\n"
                       "classes: {docs: {priority: 7}}\n"
                       "pipelines:\n"
                       "  p: [{stage: implement, run: x},\n"
                       "      {stage: gate, run: x, priority: 0}]\n"
                       "groups:\n"
                       "  - {id: g, pipeline: p, priority: 3}\n"
                       "  - {id: h, priority: 9}\n"
                       "tasks:\n"
                       "  - {id: a, run: x}\n"
                       "  - {id: b, run: x, class: docs}\n"
                       "  - {id: c, run: x, group: h, class: docs}\n"
                       "  - {id: d, run: x, group: h, priority: 1}\n");
    static const struct {
        const char *id;
        uint32_t priority;
    } wanted[] = {
        {"g/implement", 3},
        {"g/gate", 0},
        {"a", 6},
        {"b", 7},
        {"c", 9},
        {"d", 1},
    };
    assert_int_equal(plan->goal, PLAN_GOAL_FINISH_MANY);
    for (size_t ix = 0; ix < ARRAY_COUNT(wanted); ix++) {
        assert_int_equal(task_of(plan, wanted[ix].id)->settings->priority,
                         wanted[ix].priority);
    }
    plan_free(plan);
}

static void a_base_gate_is_most_urgent(void **state)
{
    (void)state;
    struct plan *plan =
        read_good(HEAD "repos: {api: {path: a, base: dev, gate: make}}\n"
                       "defaults: {priority: 8}\n"
                       "tasks: [{id: m, repo: api, merge: true}]\n");
    assert_int_equal(task_of(plan, "m")->settings->priority, 8);
    assert_int_equal(task_of(plan, "api/+base")->settings->priority, 0);
    plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_counts_sessions_groups_or_background),
        cmocka_unit_test(a_task_may_use_what_a_share_can_lend),
        cmocka_unit_test(fair_has_no_limit_of_open_groups),
        cmocka_unit_test(the_nearest_priority_counts),
        cmocka_unit_test(a_base_gate_is_most_urgent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
