/* SPDX-License-Identifier: MIT */
#include "tests/unit/sim_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void assert_issues(const struct sim_fixture *sim,
                          uint32_t count,
                          uint32_t done,
                          double mean_s,
                          double half_s)
{
    const struct issues *issues = &sim->result->issues;
    assert_int_equal(issues->count, count);
    assert_int_equal(issues->done, done);
    assert_int_equal(issues->mean_ns,
                     mean_s < 0 ? -1 : (int64_t)(mean_s * 1e9 + 0.5));
    assert_int_equal(issues->half_ns,
                     half_s < 0 ? -1 : (int64_t)(half_s * 1e9 + 0.5));
}

static void an_issue_is_complete_with_its_last_task(void **state)
{
    (void)state;
    struct sim_fixture sim;
    sim_fixture_init(
        &sim,
        "limits: {sessions: 4, issues: none}\n"
        "pipelines:\n"
        "  p:\n"
        "    - {stage: one, run: x, class: implement, estimate: 10s}\n"
        "    - {stage: two, run: x, class: gate, estimate: 20s}\n"
        "groups:\n"
        "  - {id: g, pipeline: p}\n"
        "  - {id: h, pipeline: p}\n"
        "tasks:\n"
        "  - {id: alone, run: x, estimate: 6s}\n");
    sim_fixture_run(&sim);
    assert_issues(&sim, 3, 3, 22, 30);
    sim_fixture_release(&sim);
}

static void of_two_issues_one_is_half(void **state)
{
    (void)state;
    struct sim_fixture sim;
    sim_fixture_init(&sim,
                     "limits: {sessions: 1}\n"
                     "tasks:\n"
                     "  - {id: a, run: x, estimate: 10s}\n"
                     "  - {id: b, run: x, estimate: 20s}\n");
    sim_fixture_run(&sim);
    assert_issues(&sim, 2, 2, 20, 10);
    sim_fixture_release(&sim);
}

static const char reviewed[] =
    "limits: {sessions: 2}\n"
    "tasks:\n"
    "  - {id: work, run: x, estimate: 10s}\n"
    "  - {id: late, run: x, class: review, needs: [work], estimate: 60s}\n"
    "  - {id: gate, run: x, class: review, estimate: 5s}\n"
    "  - {id: more, run: x, needs: [gate], estimate: 5s}\n";

/* A review that blocks work is an issue of its own, one that blocks nothing is
 * none; with and without the rule that defers it. */
static void background_tasks_do_not_count(void **state)
{
    (void)state;
    for (uint32_t rules = 0; rules <= SIM_RULES_ALL; rules++) {
        struct sim_fixture sim;
        sim_fixture_init(&sim, reviewed);
        sim.options.rules = rules;
        sim_fixture_run(&sim);
        assert_int_equal(sim.result->makespan_ns, 70 * SECOND_NS);
        assert_issues(&sim, 3, 3, 25.0 / 3, 10);
        sim_fixture_release(&sim);
    }
}

static void a_plan_of_background_tasks_has_no_issue(void **state)
{
    (void)state;
    struct sim_fixture sim;
    sim_fixture_init(&sim, "tasks: [{id: a, run: x, class: review}]\n");
    sim_fixture_run(&sim);
    assert_issues(&sim, 0, 0, -1, -1);
    sim_fixture_release(&sim);
}

static void an_issue_that_is_not_done_is_not_complete(void **state)
{
    (void)state;
    struct sim_fixture sim;
    sim_fixture_init(
        &sim,
        "limits: {sessions: 2}\n"
        "pipelines:\n"
        "  p:\n"
        "    - {stage: one, run: x, class: implement, estimate: 10s}\n"
        "    - {stage: two, run: x, class: gate, estimate: 20s}\n"
        "groups:\n"
        "  - {id: g, pipeline: p}\n"
        "tasks:\n"
        "  - {id: a, run: x, estimate: 4s}\n"
        "  - {id: b, run: x, estimate: 8s}\n"
        "  - {id: c, run: x, needs: [g], estimate: 8s}\n");
    sim_fixture_line(&sim, "block g/two");
    sim_fixture_run(&sim);
    assert_issues(&sim, 4, 2, 8, 12);
    sim_fixture_release(&sim);
}

static void half_may_never_be_done(void **state)
{
    (void)state;
    struct sim_fixture sim;
    sim_fixture_init(&sim,
                     "limits: {sessions: 1}\n"
                     "tasks:\n"
                     "  - {id: a, run: x, estimate: 4s}\n"
                     "  - {id: b, run: x, estimate: 8s}\n"
                     "  - {id: c, run: x, estimate: 8s, needs: [b]}\n");
    sim_fixture_line(&sim, "block b");
    sim_fixture_run(&sim);
    assert_issues(&sim, 3, 1, 4, -1);
    sim_fixture_release(&sim);
}

/* A rework moves the completion to the end of the last session. */
static void the_last_session_counts(void **state)
{
    (void)state;
    struct sim_fixture sim;
    sim_fixture_init(
        &sim,
        "limits: {sessions: 1}\n"
        "pipelines:\n"
        "  p:\n"
        "    - {stage: implement, run: x, estimate: 10s}\n"
        "    - {stage: gate, run: x, estimate: 5s, rework: {to: implement}}\n"
        "groups: [{id: g, pipeline: p}]\n");
    sim_fixture_line(&sim, "changes g/gate:1");
    sim_fixture_run(&sim);
    assert_issues(&sim, 1, 1, 30, 30);
    sim_fixture_release(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_issue_is_complete_with_its_last_task),
        cmocka_unit_test(of_two_issues_one_is_half),
        cmocka_unit_test(background_tasks_do_not_count),
        cmocka_unit_test(a_plan_of_background_tasks_has_no_issue),
        cmocka_unit_test(an_issue_that_is_not_done_is_not_complete),
        cmocka_unit_test(half_may_never_be_done),
        cmocka_unit_test(the_last_session_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
