/* SPDX-License-Identifier: MIT */
#include "plan/plan.h"

#include "plan/revise.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "sluice: 1\nname: p\n"

/* Two repositories, two stages of one class, a gate with rework. */
static const char text[] =
    HEAD "repos: {api: {path: a}, web: {path: b}}\n"
         "tasks:\n"
         "  - {id: api/new, repo: api, class: implement, run: x}\n"
         "  - {id: web/new, repo: web, class: implement, run: x}\n"
         "  - {id: own, repo: api, class: implement, run: x, estimate: 20m}\n"
         "  - {id: never, repo: api, class: implement, run: x, estimate: 0s}\n"
         "  - {id: other, class: review, run: x}\n"
         "groups:\n"
         "  - {id: g, repo: api, pipeline: p}\n"
         "pipelines:\n"
         "  p:\n"
         "    - {stage: implement, run: x}\n"
         "    - {stage: test, class: gate, run: x,\n"
         "       rework: {to: implement, max: 2}}\n";

static struct plan_source source_of(const char *from)
{
    return (struct plan_source){
        .file = "p",
        .text = from,
        .len = strlen(from),
        .processors = 2,
    };
}

static struct plan *read_plan(void)
{
    struct plan_source source = source_of(text);
    struct plan_errors errors = {0};
    struct plan *plan = NULL;
    if (!plan_read(&plan, &source, &errors)) {
        fail_msg("%s", errors.items[0].text);
    }
    plan_errors_release(&errors);
    return plan;
}

static const struct plan_task *find(const struct plan *plan, const char *id)
{
    uint32_t ix = plan_find_task(plan, id);
    assert_int_not_equal(ix, PLAN_NONE);
    return &plan->tasks[ix];
}

static double median_s(const struct plan *plan, const char *id)
{
    return (double)plan_outlook_of(plan, find(plan, id)).median_ns / 1e9;
}

static double mean_s(const struct plan *plan, const char *id)
{
    return (double)plan_estimate_ns(plan, find(plan, id)) / 1e9;
}

static void assert_near(double found, double wanted, double most)
{
    if (!(fabs(found - wanted) <= most)) {
        fail_msg("%.12g is not %.12g", found, wanted);
    }
}

/* Sessions of this many seconds, with this variance of the logarithm. */
static struct learned sessions(double count, double seconds, double variance)
{
    return (struct learned){
        .durations = {count, log(seconds), variance * (count - 1)},
        .ended = count,
    };
}

static void
learn(struct plan *plan, const char *level, const struct learned *learned)
{
    assert_true(plan_learn(plan, level, learned));
}

static void without_a_history(void **state)
{
    (void)state;
    struct plan *plan = read_plan();
    assert_int_equal(plan_estimate_ns(plan, find(plan, "api/new")),
                     PLAN_ESTIMATE_NS);
    assert_int_equal(plan_estimate_ns(plan, find(plan, "own")), 20 * MINUTE_NS);
    assert_int_equal(plan_estimate_ns(plan, find(plan, "never")), 0);
    struct plan_outlook outlook = plan_outlook_of(plan, find(plan, "own"));
    assert_int_equal(outlook.median_ns, 20 * MINUTE_NS);
    assert_near(outlook.sigma, 0.5, 0);
    assert_near(outlook.fails, 0.02, 0);
    assert_near(outlook.changes, 0, 0);
    assert_int_equal(outlook.sessions, 0);
    assert_near(plan_outlook_of(plan, find(plan, "g/test")).changes, 0.1, 0);
    assert_near(plan_outlook_of(plan, find(plan, "other")).changes, 0.1, 0);
    assert_int_equal(plan_expected_cost(plan, find(plan, "own")).usd, 0);
    plan_free(plan);
}

static void levels_have_names(void **state)
{
    (void)state;
    static const struct {
        const char *task;
        const char *names[PLAN_LEVELS];
    } rows[] = {
        {"g/test",
         {"[]",
          "gate",
          "[\"gate\",\"test\"]",
          "[\"gate\",\"test\",\"api\",null]"}},
        {"other",
         {"[]", "review", "[\"review\",null]", "[\"review\",null,null,null]"}},
    };
    struct plan *plan = read_plan();
    struct strbuf name = {0};
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        for (uint32_t level = 0; level < PLAN_LEVELS; level++) {
            strbuf_clear(&name);
            plan_level_name(plan,
                            find(plan, rows[ix].task),
                            (enum plan_level)level,
                            &name);
            assert_string_equal(strbuf_text(&name), rows[ix].names[level]);
        }
    }
    strbuf_release(&name);
    plan_free(plan);
}

static void only_levels_of_the_plan_are_taken(void **state)
{
    (void)state;
    static const char *const foreign[] = {
        "nobody",
        "[\"nobody\",\"test\"]",
        "[\"gate\",\"test\",\"elsewhere\",null]",
        "[1]",
        "[\"gate\"",
        "[[]]",
    };
    struct plan *plan = read_plan();
    struct learned learned = sessions(10, 5, 0.25);
    for (size_t ix = 0; ix < ARRAY_COUNT(foreign); ix++) {
        if (plan_learn(plan, foreign[ix], &learned)) {
            fail_msg("%s is taken", foreign[ix]);
        }
    }
    assert_near(mean_s(plan, "g/test"), 600, 0);
    learn(plan, "[\"gate\",\"never seen\",null,\"nobody\"]", &learned);
    assert_near(mean_s(plan, "g/test"), 600, 0);
    plan_free(plan);
}

static void a_class_is_known(void **state)
{
    (void)state;
    struct plan *plan = read_plan();
    struct learned learned = sessions(100, 60, 0.25);
    learn(plan, "implement", &learned);
    assert_near(median_s(plan, "api/new"), 60, 1e-6);
    assert_near(mean_s(plan, "api/new"), 60 * exp(0.125), 1e-6);
    assert_near(plan_outlook_of(plan, find(plan, "web/new")).sigma, 0.5, 1e-9);
    assert_int_equal(plan_outlook_of(plan, find(plan, "web/new")).sessions,
                     100);
    assert_near(mean_s(plan, "g/test"), 600, 0);
    assert_near(mean_s(plan, "own"), 1200, 0);
    /* What is learned later replaces it. */
    learned = sessions(100, 30, 0.25);
    learn(plan, "implement", &learned);
    assert_near(median_s(plan, "api/new"), 30, 1e-6);
    plan_free(plan);
}

/* A class that never ran is like the others; one that has run is not. */
static void the_store_says_something_about_new_classes(void **state)
{
    (void)state;
    struct plan *plan = read_plan();
    struct learned all = sessions(100, 60, 4);
    struct learned gates = sessions(5, 2, 0.25);
    learn(plan, "[]", &all);
    learn(plan, "gate", &gates);
    assert_near(median_s(plan, "api/new"), 60, 1e-6);
    assert_near(plan_outlook_of(plan, find(plan, "other")).sigma, 1.5, 0.01);
    assert_true(median_s(plan, "g/test") > 2);
    assert_true(median_s(plan, "g/test") < 2.4);
    plan_free(plan);
}

static void few_sessions_are_drawn_to_their_class(void **state)
{
    (void)state;
    struct plan *plan = read_plan();
    struct learned class = sessions(60, 60, 0.75);
    struct learned one = sessions(1, 600, 0);
    struct learned many = sessions(50, 600, 0.25);
    learn(plan, "implement", &class);
    learn(plan, "[\"implement\",null,\"api\",null]", &one);
    learn(plan, "[\"implement\",null,\"web\",null]", &many);
    /* One of them is between both; many are not. */
    assert_true(median_s(plan, "api/new") > 200);
    assert_true(median_s(plan, "api/new") < 400);
    assert_true(median_s(plan, "web/new") > 550);
    assert_true(median_s(plan, "web/new") < 600);
    assert_int_equal(plan_outlook_of(plan, find(plan, "web/new")).sessions, 50);
    /* Other stages of the class have only the class. */
    assert_near(median_s(plan, "g/implement"), 60, 1e-6);
    learn(plan, "[\"implement\",\"implement\"]", &many);
    assert_true(median_s(plan, "g/implement") > 500);
    /* Where the kinds are alike, a few sessions change little. */
    class = sessions(60, 60, 0.25);
    struct learned few = sessions(4, 90, 0.25);
    learn(plan, "implement", &class);
    learn(plan, "[\"implement\",null,\"api\",null]", &few);
    assert_true(median_s(plan, "api/new") < 70);
    plan_free(plan);
}

static void own_estimates_are_corrected(void **state)
{
    (void)state;
    struct plan *plan = read_plan();
    struct learned learned = sessions(100, 60, 0.25);
    learned.ratios = (struct learned_sums){1, log(2), 0};
    learn(plan, "[]", &learned);
    /* One session at twice its estimate: less than twice. */
    assert_true(median_s(plan, "own") > 1.2 * 1200);
    assert_true(median_s(plan, "own") < 1.6 * 1200);
    learned.ratios = (struct learned_sums){100, log(2), 0.09 * 99};
    learn(plan, "[]", &learned);
    learn(plan, "implement", &learned);
    assert_near(median_s(plan, "own"), 2400, 30);
    assert_near(plan_outlook_of(plan, find(plan, "own")).sigma, 0.3, 0.03);
    assert_true(mean_s(plan, "own") > median_s(plan, "own"));
    assert_int_equal(plan_outlook_of(plan, find(plan, "own")).sessions, 100);
    assert_int_equal(plan_estimate_ns(plan, find(plan, "never")), 0);
    /* However absurd, it is a duration. */
    learned.ratios = (struct learned_sums){100, 30, 0};
    learn(plan, "implement", &learned);
    assert_int_equal(plan_estimate_ns(plan, find(plan, "own")),
                     DURATION_MAX_NS);
    learned.ratios.mean = -30;
    learn(plan, "implement", &learned);
    learn(plan, "[]", &learned);
    assert_true(plan_estimate_ns(plan, find(plan, "own")) >= 1);
    plan_free(plan);
}

static void outcomes_have_rates(void **state)
{
    (void)state;
    struct plan *plan = read_plan();
    struct learned learned = sessions(100, 60, 0.25);
    learned.changes = 30;
    learned.failed = 10;
    learn(plan, "gate", &learned);
    struct plan_outlook gate = plan_outlook_of(plan, find(plan, "g/test"));
    assert_near(gate.changes, 0.3, 0.02);
    assert_near(gate.fails, 0.1, 0.01);
    struct plan_outlook other = plan_outlook_of(plan, find(plan, "api/new"));
    assert_near(other.changes, 0, 0);
    assert_near(other.fails, 0.02, 0);
    /* The gate of this repository is better than most. */
    learned = sessions(100, 60, 0.25);
    learn(plan, "[\"gate\",\"test\",\"api\",null]", &learned);
    gate = plan_outlook_of(plan, find(plan, "g/test"));
    assert_near(gate.changes, 0.03, 0.01);
    /* A store where everything fails says nothing about a class. */
    learned.failed = 100;
    learn(plan, "[]", &learned);
    assert_near(plan_outlook_of(plan, find(plan, "api/new")).fails, 0.02, 0);
    plan_free(plan);
}

static void costs_are_those_of_the_class(void **state)
{
    (void)state;
    struct plan *plan = read_plan();
    struct learned learned = {.paid = 4, .usd = 0.75, .tokens = 1234};
    learn(plan, "implement", &learned);
    struct plan_cost cost = plan_expected_cost(plan, find(plan, "own"));
    assert_int_equal(cost.usd, 7500);
    assert_int_equal(cost.tokens, 1234);
    learned.usd = 1e9;
    learned.tokens = 1e11;
    learn(plan, "implement", &learned);
    cost = plan_expected_cost(plan, find(plan, "own"));
    assert_int_equal(cost.usd, PLAN_USD_MAX);
    assert_int_equal(cost.tokens, PLAN_TOKENS_MAX);
    assert_near(mean_s(plan, "api/new"), 600, 0);
    plan_free(plan);
}

static void an_update_keeps_the_estimates(void **state)
{
    (void)state;
    struct plan *plan = read_plan();
    struct learned learned = sessions(100, 60, 0.25);
    learned.paid = 1;
    learned.usd = 2;
    learn(plan, "implement", &learned);
    struct strbuf more = {0};
    strbuf_addf(&more, "%s# more\n", text);
    struct plan_source source = source_of(strbuf_text(&more));
    struct plan_errors errors = {0};
    struct plan *revised = NULL;
    assert_true(revise_plan(&revised, plan, &source, NULL, 0, &errors));
    assert_near(median_s(revised, "api/new"), 60, 1e-6);
    assert_int_equal(plan_expected_cost(revised, find(plan, "own")).usd,
                     2 * PLAN_USD);
    plan_errors_release(&errors);
    strbuf_release(&more);
    plan_free(plan);
    plan_free(revised);
}

static void a_fragment_is_estimated_too(void **state)
{
    (void)state;
    struct plan *plan = read_plan();
    struct learned learned = sessions(100, 60, 0.25);
    learn(plan, "[\"implement\",null,\"web\",null]", &learned);
    struct plan_source source =
        source_of("tasks: [{id: late, repo: web, class: implement, run: x}]\n");
    struct plan_errors errors = {0};
    assert_true(plan_add(plan, &source, &errors));
    assert_near(median_s(plan, "late"), 60, 1e-6);
    plan_undo_add(plan);
    assert_near(median_s(plan, "web/new"), 60, 1e-6);
    plan_errors_release(&errors);
    plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_history),
        cmocka_unit_test(levels_have_names),
        cmocka_unit_test(only_levels_of_the_plan_are_taken),
        cmocka_unit_test(a_class_is_known),
        cmocka_unit_test(the_store_says_something_about_new_classes),
        cmocka_unit_test(few_sessions_are_drawn_to_their_class),
        cmocka_unit_test(own_estimates_are_corrected),
        cmocka_unit_test(outcomes_have_rates),
        cmocka_unit_test(costs_are_those_of_the_class),
        cmocka_unit_test(an_update_keeps_the_estimates),
        cmocka_unit_test(a_fragment_is_estimated_too),
    };
    return cmocka_run_group_tests_name("estimate", tests, NULL, NULL);
}
