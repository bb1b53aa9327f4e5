/* SPDX-License-Identifier: MIT */
/*
 * Budgets of runs, classes and tasks as the engine derives them, and limits of
 * the store with the slots of workers.
 */
#include "tests/unit/engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "sluice: 1\nname: wave\n"

static void open_plan(struct rig *rig, const char *plan)
{
    rig_start(rig);
    rig_submit(rig, plan);
}

/* --- budgets ------------------------------------------------------------ */

static void a_session_gets_the_tightest_budget(void **state)
{
    static const char plan[] =
        HEAD "limits: {sessions: 9, issues: none}\n"
             "budget: {usd: 10}\n"
             "classes: {audit: {budget: {usd: 2}}, gate: {budget: {usd: 1}}}\n"
             "defaults: {retry: {max: 0}, cost: {usd: 0.1}}\n"
             "tasks:\n"
             "  - {id: a, run: x, budget: {usd: 4}}\n"
             "  - {id: b, run: x, budget: {usd: 40}}\n"
             "  - {id: c, class: audit, run: x}\n"
             "  - {id: d, run: x}\n";
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, plan);
    assert_int_equal(engine_usd_left(rig.engine, 0, 0), 4 * PLAN_USD);
    assert_int_equal(engine_usd_left(rig.engine, 0, 1), 10 * PLAN_USD);
    assert_int_equal(engine_usd_left(rig.engine, 0, 2), 2 * PLAN_USD);
    rig_expect(&rig, "{'verb':'budget','task':'d','usd':1}", "is set");
    rig_expect(&rig, "{'verb':'budget','task':'a','usd':5}", "is set");
    rig_expect(&rig, "{'verb':'budget','task':'d','usd':3}", "is set");
    assert_int_equal(engine_usd_left(rig.engine, 0, 3), 3 * PLAN_USD);
    assert_int_equal(engine_usd_left(rig.engine, 0, 0), 5 * PLAN_USD);
    rig_begin(&rig, "d");
    rig_end(&rig,
            "d",
            0,
            "{'usage':{'input_tokens':1,'output_tokens':1,'usd':7}}");
    assert_int_equal(engine_usd_left(rig.engine, 0, 3), 0); /* not less */
    assert_int_equal(engine_usd_left(rig.engine, 0, 0), 3 * PLAN_USD);
    rig_restart(&rig);
    assert_int_equal(engine_usd_left(rig.engine, 0, 0), 3 * PLAN_USD);
    rig_release(&rig);
}

static void without_a_budget_a_session_may_spend(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, HEAD "tasks: [{id: a, run: x}]\n");
    assert_int_equal(engine_usd_left(rig.engine, 0, 0), PLAN_UNSET);
    rig_release(&rig);
}

/* Of a class whose cost is not known, one session runs at a time, until one has
 * reported; an agent that was killed has reported nothing. */
static void an_unknown_cost_is_found_out_first(void **state)
{
    static const char plan[] =
        HEAD "limits: {sessions: 9, issues: none}\n"
             "budget: {tokens: 1000, usd: 100}\n"
             "classes: {audit: {budget: {tokens: 500}}, other: {}}\n"
             "defaults: {retry: {max: 0}}\n"
             "tasks:\n"
             "  - {id: a, agent: claude, class: audit}\n"
             "  - {id: b, agent: claude, class: audit}\n"
             "  - {id: c, agent: claude, class: audit}\n"
             "  - {id: d, agent: claude, class: audit}\n"
             "  - {id: e, agent: claude, class: other}\n";
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, plan);
    rig_state(&rig, "a", "starting");
    rig_state(&rig, "b", "ready");
    rig_state(&rig, "e", "starting"); /* another class */
    rig_begin(&rig, "a");
    rig_end(&rig, "a", 1, NULL); /* without a cost */
    rig_state(&rig, "b", "starting");
    rig_state(&rig, "c", "ready");
    rig_begin(&rig, "b");
    rig_end(&rig, "b", 0, "{'usage':{'input_tokens':200,'output_tokens':1}}");
    rig_state(&rig, "c", "starting"); /* the rest suffices for one */
    rig_state(&rig, "d", "ready");
    rig_release(&rig);
}

/* A cost of nearly nothing limits nothing. */
static void a_tiny_cost_is_no_limit(void **state)
{
    static const char plan[] =
        HEAD "limits: {sessions: 9, issues: none}\n"
             "budget: {usd: 100000}\n"
             "tasks: [{id: a, run: x}, {id: b, run: x}, {id: c, run: x}]\n";
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, plan);
    rig_state(&rig, "b", "ready");
    rig_begin(&rig, "a");
    rig_end(&rig,
            "a",
            0,
            "{'usage':{'input_tokens':1,'output_tokens':1,'usd':1e-12}}");
    rig_state(&rig, "b", "starting");
    rig_state(&rig, "c", "starting");
    rig_release(&rig);
}

/* --- workers and limits of the store ------------------------------------ */

static const char worker_plan[] =
    HEAD "limits: {sessions: 9, issues: none}\n"
         "tasks:\n"
         "  - {id: a, run: x, where: {worker: any}}\n"
         "  - {id: b, run: x, where: {worker: gpu}}\n"
         "  - {id: c, run: x, where: {worker: any}}\n";

static void sessions_wait_for_workers_with_their_label(void **state)
{
    static const struct engine_worker workers[] = {
        {.labels = "one,any", .slots = 1},
        {.labels = "two,any,gpu", .slots = 2},
    };
    (void)state;
    struct rig rig = {0};
    rig_start(&rig);
    assert_int_equal(engine_worker_slots(rig.engine), LIMIT_NONE);
    engine_workers(rig.engine, NULL, 0);
    assert_int_equal(engine_worker_slots(rig.engine), 0);
    rig_submit(&rig, worker_plan);
    assert_int_equal(rig.order_count, 0);
    engine_workers(rig.engine, workers, 1);
    rig_settle(&rig);
    rig_state(&rig, "a", "starting");
    rig_state(&rig, "b", "ready");
    rig_state(&rig, "c", "ready"); /* there is one slot */
    engine_workers(rig.engine, workers, 2);
    rig_settle(&rig);
    rig_state(&rig, "b", "starting");
    rig_state(&rig, "c", "starting");
    assert_int_equal(engine_worker_slots(rig.engine), 3);
    rig_release(&rig);
}

/* The smaller one of slots and a limit of the store counts. */
static void slots_and_a_limit_of_the_store_both_count(void **state)
{
    static const struct engine_worker few[] = {{.labels = "any", .slots = 1}};
    static const struct engine_worker many[] = {{.labels = "any", .slots = 9}};
    (void)state;
    struct rig rig = {0};
    rig_start(&rig);
    rig_expect(&rig,
               "{'verb':'limit','store':true,'limit':'sessions','max':'2'}",
               "2");
    engine_workers(rig.engine, few, 1);
    rig_submit(&rig,
               HEAD "limits: {sessions: 9, issues: none}\n"
                    "tasks: [{id: a, run: x}, {id: b, run: x},"
                    " {id: c, run: x}]\n");
    rig_state(&rig, "a", "starting");
    rig_state(&rig, "b", "ready");
    engine_workers(rig.engine, many, 1);
    rig_settle(&rig);
    rig_state(&rig, "b", "starting");
    rig_state(&rig, "c", "ready");
    rig_release(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_gets_the_tightest_budget),
        cmocka_unit_test(without_a_budget_a_session_may_spend),
        cmocka_unit_test(an_unknown_cost_is_found_out_first),
        cmocka_unit_test(a_tiny_cost_is_no_limit),
        cmocka_unit_test(sessions_wait_for_workers_with_their_label),
        cmocka_unit_test(slots_and_a_limit_of_the_store_both_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
