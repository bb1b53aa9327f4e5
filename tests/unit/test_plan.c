/* SPDX-License-Identifier: MIT */
/*
 * What a plan becomes when it is read. What is refused, and how that is said,
 * is in tests/plans (test_plan_corpus.c).
 */
#include "plan/plan.h"

#include "base/duration.h"
#include "base/mem.h"
#include "base/strbuf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "sluice: 1\nname: test\n"

static struct plan_source source_of(const char *text)
{
    return (struct plan_source){
        .file = "plan.yaml",
        .text = text,
        .len = strlen(text),
        .processors = 6,
    };
}

/* Read a plan that must be good. */
static struct plan *read_good(const char *text)
{
    struct plan_source source = source_of(text);
    struct plan_errors errors = {0};
    struct plan *plan = NULL;
    if (!plan_read(&plan, &source, &errors)) {
        fail_msg("%u:%u: %s",
                 errors.items[0].mark.line,
                 errors.items[0].mark.column,
                 errors.items[0].text);
    }
    return plan;
}

static void add_good(struct plan *plan, const char *text)
{
    struct plan_source source = source_of(text);
    struct plan_errors errors = {0};
    if (!plan_add(plan, &source, &errors)) {
        fail_msg("%u:%u: %s",
                 errors.items[0].mark.line,
                 errors.items[0].mark.column,
                 errors.items[0].text);
    }
}

static void add_bad(struct plan *plan, const char *text)
{
    struct plan_source source = source_of(text);
    struct plan_errors errors = {0};
    assert_false(plan_add(plan, &source, &errors));
    assert_true(errors.count > 0);
    plan_errors_release(&errors);
}

/* The first error of a plan that must be bad, as LINE:COLUMN: TEXT. */
static void expect_bad(const char *text, const char *wanted)
{
    struct plan_source source = source_of(text);
    struct plan_errors errors = {0};
    struct plan *plan = NULL;
    assert_false(plan_read(&plan, &source, &errors));
    assert_null(plan);
    struct strbuf got = {0};
    strbuf_addf(&got,
                "%u:%u: %s",
                errors.items[0].mark.line,
                errors.items[0].mark.column,
                errors.items[0].text);
    assert_string_equal(strbuf_text(&got), wanted);
    strbuf_release(&got);
    plan_errors_release(&errors);
}

static const struct plan_task *task_of(const struct plan *plan, const char *id)
{
    uint32_t ix = plan_find_task(plan, id);
    if (ix == PLAN_NONE) {
        fail_msg("no task %s", id);
    }
    return &plan->tasks[ix];
}

static const struct plan_limit *limit_of(const struct plan *plan,
                                         const char *name)
{
    uint32_t ix = plan_find_limit(plan, name);
    if (ix == PLAN_NONE) {
        fail_msg("no limit %s", name);
    }
    return &plan->limits[ix];
}

/* The ids that a task needs, with spaces between. */
static void
expect_needs(const struct plan *plan, const char *id, const char *wanted)
{
    const struct plan_task *task = task_of(plan, id);
    struct strbuf got = {0};
    for (uint32_t ix = 0; ix < task->need_count; ix++) {
        assert_true(ix == 0 || task->needs[ix - 1] < task->needs[ix]);
        strbuf_addf(&got,
                    "%s%s",
                    ix > 0 ? " " : "",
                    plan->tasks[task->needs[ix]].id);
    }
    assert_string_equal(strbuf_text(&got), wanted);
    strbuf_release(&got);
}

/* A list of attributes as name=value, with spaces between. */
static void expect_attributes(const struct plan_attribute *list,
                              uint32_t count,
                              const char *wanted)
{
    struct strbuf got = {0};
    for (uint32_t ix = 0; ix < count; ix++) {
        strbuf_addf(&got,
                    "%s%s=%s",
                    ix > 0 ? " " : "",
                    list[ix].name,
                    list[ix].value);
    }
    assert_string_equal(strbuf_text(&got), wanted);
    strbuf_release(&got);
}

static void a_task_alone_has_what_is_built_in(void **state)
{
    (void)state;
    struct plan *plan = read_good(HEAD "tasks: [{id: a, run: make}]\n");
    assert_string_equal(plan->file, "plan.yaml");
    assert_string_equal(plan->name, "test");
    assert_int_equal(plan->policy, PLAN_POLICY_RANK);
    assert_int_equal(plan->goal, PLAN_GOAL_FINISH_ALL);
    assert_int_equal(plan->task_count, 1);
    const struct plan_task *task = &plan->tasks[0];
    assert_string_equal(task->run.shell, "make");
    assert_null(task->run.argv);
    assert_string_equal(plan->classes[task->class_ix].name, "implement");
    assert_int_equal(task->group, PLAN_NONE);
    assert_int_equal(task->repo, PLAN_NONE);
    assert_int_equal(task->provider, 0);
    assert_int_equal(task->rework_to, PLAN_NONE);
    assert_true(task->settings->estimate_ns == PLAN_UNSET);
    assert_true(task->settings->timeout_ns == 2 * HOUR_NS);
    assert_true(task->settings->idle_timeout_ns == 20 * MINUTE_NS);
    assert_true(task->settings->grace_ns == 10 * SECOND_NS);
    assert_true(task->settings->checkpoint_after_ns == PLAN_UNSET);
    assert_int_equal(task->settings->checkpoint_max, 3);
    assert_int_equal(task->settings->retry_max, 2);
    assert_int_equal(task->settings->priority, 5);
    assert_true(task->settings->retry_backoff_ns == 10 * SECOND_NS);
    assert_true(task->settings->retry_backoff_ns_max == 5 * MINUTE_NS);
    assert_int_equal(task->settings->on_failure, PLAN_ON_FAILURE_PARK);
    assert_false(task->settings->optional);
    assert_int_equal(task->mark.line, 3);
    assert_int_equal(task->mark.column, 14);
    expect_attributes(task->attributes,
                      task->attribute_count,
                      "class=implement");
    plan_free(plan);
}

static void the_default_limits_come_first(void **state)
{
    (void)state;
    static const char *const names[] =
        {"sessions", "issues", "active", "merge", "review", "own", "gpu"};
    struct plan *plan = read_good(HEAD "repos: {a: {}, b: {}, c: {}}\n"
                                       "limits: {own: 5}\n"
                                       "resources: {gpu: 2}\n"
                                       "tasks: [{id: a, run: make}]\n");
    assert_int_equal(plan->limit_count, ARRAY_COUNT(names));
    for (size_t ix = 0; ix < ARRAY_COUNT(names); ix++) {
        assert_string_equal(plan->limits[ix].name, names[ix]);
    }
    assert_int_equal(plan->limits[0].max, 3);
    assert_int_equal(plan->limits[1].percent, 100);
    assert_true(plan->limits[1].hold_group);
    assert_int_equal(plan->limits[2].max, 1);
    assert_true(plan->limits[2].hold_group);
    assert_string_equal(plan->limits[2].per, "repo");
    assert_string_equal(plan->limits[3].per, "repo");
    expect_attributes(plan->limits[3].where, 1, "class=merge");
    assert_int_equal(plan->limits[4].percent, 34);
    assert_true(plan->limits[4].background);
    assert_null(plan->limits[4].per);
    expect_attributes(plan->limits[4].where, 1, "class=review");
    assert_true(plan->limits[5].kind == PLAN_LIMIT_PLAIN);
    assert_true(plan->limits[6].kind == PLAN_LIMIT_RESOURCE);
    plan_free(plan);
}

/* The window of the repo "g" of a plan, and the maximum of its merges. */
static void expect_window(const char *limits, const char *merge, int64_t window)
{
    struct strbuf text = {0};
    strbuf_addf(&text,
                HEAD "repos:\n"
                     "  g: {path: g, base: dev, gate: make}\n"
                     "  n: {path: n, base: dev}\n"
                     "limits: {%s}\n"
                     "pipelines: {p: [{stage: merge, merge: %s}]}\n"
                     "groups:\n"
                     "  - {id: a, repo: g, pipeline: p}\n"
                     "  - {id: b, repo: n, pipeline: p}\n",
                limits,
                merge);
    struct plan *plan = read_good(strbuf_text(&text));
    uint32_t ix = plan_window_of(plan, &plan->tasks[0]);
    assert_int_equal(plan_window_of(plan, &plan->tasks[1]), PLAN_NONE);
    assert_int_equal(limit_of(plan, "merge")->max, window);
    if (window == 1) {
        assert_int_equal(ix, PLAN_NONE);
    } else {
        assert_string_equal(plan->limits[ix].name, "merge queue of g");
        assert_true(plan->limits[ix].kind == PLAN_LIMIT_WINDOW);
        assert_int_equal(plan->limits[ix].max, window);
    }
    plan_free(plan);
    strbuf_release(&text);
}

static void a_gate_gives_a_merge_queue_a_window(void **state)
{
    (void)state;
    expect_window("", "true", 8);
    expect_window("", "{window: 3}", 3);
    expect_window("", "{window: 1}", 1);
    expect_window("", "{batch: 4}", 1);
    expect_window("merge: 5", "{window: 3}", 5);
    expect_window("merge: 1", "true", 1);
}

static void without_repos_sessions_are_the_processors(void **state)
{
    (void)state;
    struct plan *plan = read_good(HEAD "tasks: [{id: a, run: make}]\n");
    assert_int_equal(limit_of(plan, "sessions")->max, 6);
    plan_free(plan);
}

static void naming_a_default_limit_changes_only_what_is_given(void **state)
{
    (void)state;
    struct plan *plan = read_good(HEAD "limits:\n"
                                       "  sessions: 0\n"
                                       "  issues: none\n"
                                       "  active: {max: 2}\n"
                                       "  merge: {where: {class: gate}}\n"
                                       "  review: 2\n"
                                       "tasks: [{id: a, run: make}]\n");
    assert_int_equal(limit_of(plan, "sessions")->max, 0);
    assert_true(limit_of(plan, "issues")->max == PLAN_UNLIMITED);
    assert_int_equal(limit_of(plan, "issues")->percent, 0);
    assert_int_equal(limit_of(plan, "active")->max, 2);
    assert_string_equal(limit_of(plan, "active")->per, "repo");
    assert_int_equal(limit_of(plan, "merge")->max, 1);
    expect_attributes(limit_of(plan, "merge")->where, 1, "class=gate");
    assert_int_equal(limit_of(plan, "review")->max, 2);
    assert_int_equal(limit_of(plan, "review")->percent, 0);
    assert_int_equal(limit_of(plan, "review")->where_count, 1);
    assert_true(limit_of(plan, "review")->background);
    plan_free(plan);
}

static void classes_merge_over_the_built_in_ones(void **state)
{
    (void)state;
    struct plan *plan =
        read_good(HEAD "classes:\n"
                       "  review: {tier: 0, batch: {max: 4, marginal: 25%}}\n"
                       "  docs: {tier: 3, max_wait: 2h, defer: true}\n"
                       "tasks: [{id: a, class: other, run: make}]\n");
    const struct plan_class *review = &plan->classes[3];
    assert_string_equal(review->name, "review");
    assert_int_equal(review->tier, 0);
    assert_int_equal(review->base_tier, 1);
    assert_true(review->defer);
    assert_true(review->declared);
    assert_true(review->max_wait_ns == HOUR_NS);
    assert_int_equal(review->batch, 4);
    assert_int_equal(review->batch_marginal, 25);
    const struct plan_class *docs = &plan->classes[4];
    assert_int_equal(docs->tier, 3);
    assert_int_equal(docs->base_tier, 3);
    assert_int_equal(docs->batch, 1);
    assert_int_equal(docs->batch_marginal, 50);
    assert_string_equal(plan->classes[2].name, "merge");
    assert_int_equal(plan->classes[2].batch_marginal, 5);
    assert_true(docs->max_wait_ns == 2 * HOUR_NS);
    assert_string_equal(plan->classes[5].name, "other");
    assert_false(plan->classes[5].declared);
    plan_free(plan);
}

static void a_pipeline_makes_a_chain_of_tasks(void **state)
{
    (void)state;
    struct plan *plan = read_good(
        HEAD "repos: {api: {owner: ann}}\n"
             "pipelines:\n"
             "  issue:\n"
             "    - {stage: implement, run: ./do}\n"
             "    - {stage: gate, run: [make, test], rework: {to: implement}}\n"
             "    - {stage: extra, run: x, title: More, class: gate}\n"
             "    - {stage: land, merge: true}\n"
             "groups:\n"
             "  - {id: g, repo: api, pipeline: issue, title: The issue,\n"
             "     attributes: {team: red}, estimates: {gate: 5m}}\n"
             "  - {id: h, repo: api, pipeline: issue, needs: g}\n");
    assert_int_equal(plan->task_count, 8);
    assert_int_equal(plan->groups[0].task_count, 4);
    assert_string_equal(plan->groups[0].title, "The issue");
    expect_needs(plan, "g/implement", "");
    expect_needs(plan, "g/gate", "g/implement");
    expect_needs(plan, "g/land", "g/extra");
    expect_needs(plan, "h/implement", "g/land");
    const struct plan_task *gate = task_of(plan, "g/gate");
    assert_string_equal(gate->run.argv[1], "test");
    assert_null(gate->run.argv[2]);
    assert_null(gate->run.shell);
    assert_true(gate->settings->estimate_ns == 5 * MINUTE_NS);
    assert_int_equal(gate->rework_to, plan_find_task(plan, "g/implement"));
    assert_int_equal(gate->rework_max, 2);
    assert_string_equal(plan->classes[gate->class_ix].name, "gate");
    const struct plan_task *land = task_of(plan, "h/land");
    assert_true(land->merge);
    assert_string_equal(plan->classes[land->class_ix].name, "merge");
    assert_string_equal(task_of(plan, "h/extra")->words->title, "More");
    expect_attributes(gate->attributes,
                      gate->attribute_count,
                      "class=gate group=g owner=ann repo=api stage=gate "
                      "team=red");
    expect_attributes(plan->groups[0].attributes,
                      plan->groups[0].attribute_count,
                      "group=g owner=ann repo=api team=red");
    plan_free(plan);
}

static void paths_of_a_checkout_are_normalised(void **state)
{
    (void)state;
    struct plan *plan = read_good(
        HEAD "repos:\n"
             "  api: {path: x, base: b, keep: [./a//b/, c], copy: [.env/],\n"
             "        remote: keep, fetch: true}\n"
             "  web: {path: x, base: b, remote: read}\n"
             "tasks: [{id: a, repo: api, run: x}]\n");
    const struct plan_repo *repo = &plan->repos[0];
    assert_int_equal(repo->keep.count, 2);
    assert_string_equal(repo->keep.items[0], "a/b");
    assert_string_equal(repo->keep.items[1], "c");
    assert_int_equal(repo->copy.count, 1);
    assert_string_equal(repo->copy.items[0], ".env");
    assert_true(repo->remote_keep);
    assert_true(repo->fetch);
    assert_int_equal(plan->repos[1].keep.count, 0);
    assert_false(plan->repos[1].remote_keep);
    assert_false(plan->repos[1].fetch);
    plan_free(plan);
}

static void once_belongs_to_its_prepare_command(void **state)
{
    (void)state;
    struct plan *plan = read_good(
        HEAD "defaults: {prepare: {run: d, once: true}}\n"
             "classes: {gate: {prepare: c}}\n"
             "tasks:\n"
             "  - {id: a, run: x}\n"
             "  - {id: b, run: x, prepare: b}\n"
             "  - {id: c, run: x, class: gate}\n"
             "  - {id: d, run: x, class: gate, prepare: {run: d, once: true}}\n"
             "  - {id: e, run: x, prepare: {run: e, once: false}}\n");
    static const struct {
        const char *id;
        const char *prepare;
        bool once;
    } cases[] = {
        {"a", "d", true},
        {"b", "b", false},
        {"c", "c", false},
        {"d", "d", true},
        {"e", "e", false},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        const struct plan_task *task = task_of(plan, cases[ix].id);
        assert_string_equal(task->settings->prepare, cases[ix].prepare);
        assert_true(task->settings->prepare_once == cases[ix].once);
    }
    plan_free(plan);
}

/* The class of a task, by its name. */
static const char *class_of(const struct plan *plan, const char *id)
{
    return plan->classes[task_of(plan, id)->class_ix].name;
}

#define TESTING                                                                \
    HEAD "classes: {docs: {tier: 2}, lint: {tier: 3}}\n"                       \
         "pipelines:\n"                                                        \
         "  p:\n"                                                              \
         "    - {stage: implement, run: x}\n"                                  \
         "    - {stage: build, run: x}\n"                                      \
         "    - {stage: check, run: x}\n"                                      \
         "    - {stage: docs, run: x}\n"                                       \
         "    - {stage: lint, run: x}\n"                                       \
         "    - {stage: test, run: x, class: review}\n"                        \
         "    - {stage: verify, agent: claude, class: implement}\n"            \
         "groups: [{id: g, pipeline: p}]\n"                                    \
         "tasks:\n"                                                            \
         "  - {id: test, run: x}\n"                                            \
         "  - {id: gate, run: x}\n"                                            \
         "  - {id: build, agent: claude}\n"                                    \
         "  - {id: verify, run: x, class: docs}\n"                             \
         "  - {id: review, run: x}\n"                                          \
         "  - {id: other, run: x}\n"

static void the_name_of_a_test_is_a_gate(void **state)
{
    (void)state;
    struct plan *plan = read_good(TESTING);
    assert_string_equal(class_of(plan, "g/build"), "gate");
    assert_string_equal(class_of(plan, "g/check"), "gate");
    assert_string_equal(class_of(plan, "g/docs"), "docs");
    assert_string_equal(class_of(plan, "g/lint"), "lint");
    assert_string_equal(class_of(plan, "g/test"), "review");
    assert_string_equal(class_of(plan, "g/verify"), "implement");
    assert_string_equal(class_of(plan, "test"), "gate");
    assert_string_equal(class_of(plan, "gate"), "gate");
    assert_string_equal(class_of(plan, "build"), "implement");
    assert_string_equal(class_of(plan, "verify"), "docs");
    assert_string_equal(class_of(plan, "review"), "implement");
    assert_string_equal(class_of(plan, "other"), "implement");
    plan_free(plan);
}

static void a_run_keeps_the_rules_of_its_plan(void **state)
{
    (void)state;
    static const char text[] =
        HEAD "pipelines: {p: [{stage: reviw, run: x}, {stage: test, run: x}]}\n"
             "groups: [{id: g, pipeline: p}]\n"
             "tasks: [{id: build, run: x}]\n";
    static const char more[] = "pipelines: {q: [{stage: ship, run: x}]}\n"
                               "groups: [{id: h, pipeline: q}]\n";
    struct plan_source source = {
        .file = "plan.yaml",
        .text = text,
        .len = strlen(text),
        .processors = 6,
        .old_rules = true,
    };
    struct plan_source added = source;
    struct plan_errors errors = {0};
    struct plan *plan = NULL;
    added.text = more;
    added.len = strlen(more);
    assert_true(plan_read(&plan, &source, &errors));
    assert_true(plan_add(plan, &added, &errors));
    assert_string_equal(class_of(plan, "g/reviw"), "implement");
    assert_string_equal(class_of(plan, "g/test"), "implement");
    assert_string_equal(class_of(plan, "h/ship"), "implement");
    assert_string_equal(class_of(plan, "build"), "implement");
    plan_free(plan);
}

static void the_nearest_setting_wins(void **state)
{
    (void)state;
    struct plan *plan = read_good(
        HEAD "defaults: {timeout: 1h, retry: {max: 9, backoff: 1s},\n"
             "           checkpoint: {after: 7m}, prepare: d, owner: d}\n"
             "classes:\n"
             "  gate: {timeout: 2h, retry: {max: 8}, prepare: c, owner: c}\n"
             "pipelines:\n"
             "  p: [{stage: gate, run: x, timeout: 4h},\n"
             "      {stage: plain, class: implement, run: x}]\n"
             "groups:\n"
             "  - {id: g, pipeline: p, timeout: 3h, prepare: g}\n"
             "  - {id: h, timeout: 3h, checkpoint: {max: 1}, owner: h}\n"
             "tasks:\n"
             "  - {id: a, group: h, class: gate, run: x, timeout: 5h}\n"
             "  - {id: b, group: h, run: x, retry: 0}\n");
    const struct plan_task *gate = task_of(plan, "g/gate");
    assert_true(gate->settings->timeout_ns == 4 * HOUR_NS);
    assert_int_equal(gate->settings->retry_max, 8);
    assert_true(gate->settings->retry_backoff_ns == SECOND_NS);
    assert_string_equal(gate->settings->prepare, "g");
    const struct plan_task *plain = task_of(plan, "g/plain");
    assert_true(plain->settings->timeout_ns == 3 * HOUR_NS);
    assert_int_equal(plain->settings->retry_max, 9);
    const struct plan_task *a = task_of(plan, "a");
    assert_true(a->settings->timeout_ns == 5 * HOUR_NS);
    assert_string_equal(a->settings->prepare, "c");
    const struct plan_task *b = task_of(plan, "b");
    assert_true(b->settings->timeout_ns == 3 * HOUR_NS);
    assert_true(b->settings->checkpoint_after_ns == 7 * MINUTE_NS);
    assert_int_equal(b->settings->checkpoint_max, 1);
    assert_int_equal(b->settings->retry_max, 0);
    expect_attributes(b->attributes,
                      b->attribute_count,
                      "class=implement group=h owner=h");
    expect_attributes(gate->attributes,
                      gate->attribute_count,
                      "class=gate group=g owner=c stage=gate");
    plan_free(plan);
}

static void a_sandbox_is_inherited_as_a_whole(void **state)
{
    (void)state;
    struct plan *plan = read_good(
        "sluice: 1\nname: n\n"
        "defaults: {sandbox: {network: false, read: [lib], env: [A]}}\n"
        "agents:\n"
        "  claude: {sandbox: {write: [~/.cache]}}\n"
        "classes:\n"
        "  gate: {sandbox: true}\n"
        "tasks:\n"
        "  - {id: defaults, run: x}\n"
        "  - {id: class, run: x, class: gate}\n"
        "  - {id: off, run: x, class: gate, sandbox: false}\n"
        "  - {id: agent, agent: claude}\n"
        "  - {id: agent-of-class, agent: claude, class: gate}\n"
        "  - {id: plain-agent, agent: codex}\n"
        "  - {id: own, agent: claude, sandbox: {read: [a, /b]}}\n");
    static const struct {
        bool on;
        bool network;
        const char *read;
        const char *write;
    } wanted[] = {
        {true, false, "lib", NULL},
        {true, true, NULL, NULL},
        {.on = false},
        {true, true, NULL, "~/.cache"},
        {true, true, NULL, NULL},
        {true, false, "lib", NULL},
        {true, true, "a", NULL},
    };
    assert_int_equal(plan->task_count, ARRAY_COUNT(wanted));
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        const struct plan_sandbox *sandbox = plan->tasks[ix].settings->sandbox;
        assert_int_equal(sandbox != NULL, wanted[ix].on);
        if (sandbox != NULL) {
            assert_int_equal(sandbox->network, wanted[ix].network);
            assert_int_equal(sandbox->read[0] != NULL, wanted[ix].read != NULL);
            assert_int_equal(sandbox->write[0] != NULL,
                             wanted[ix].write != NULL);
            if (wanted[ix].read != NULL) {
                assert_string_equal(sandbox->read[0], wanted[ix].read);
            }
            if (wanted[ix].write != NULL) {
                assert_string_equal(sandbox->write[0], wanted[ix].write);
            }
        }
    }
    assert_true(plan_same_sandbox(plan->tasks[0].settings->sandbox,
                                  plan->tasks[5].settings->sandbox));
    assert_false(plan_same_sandbox(plan->tasks[0].settings->sandbox,
                                   plan->tasks[6].settings->sandbox));
    assert_false(plan_same_sandbox(plan->tasks[0].settings->sandbox,
                                   plan->tasks[2].settings->sandbox));
    plan_free(plan);
}

static void a_backoff_above_an_inherited_bound_raises_it(void **state)
{
    (void)state;
    struct plan *plan =
        read_good(HEAD "tasks: [{id: a, run: x, retry: {backoff: 10m}}]\n");
    assert_true(plan->tasks[0].settings->retry_backoff_ns_max ==
                10 * MINUTE_NS);
    plan_free(plan);
}

static void durations_have_units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ns;
    } cases[] = {
        {"250ms", INT64_C(250000000)},
        {"90s", 90 * SECOND_NS},
        {"1.5h", 90 * MINUTE_NS},
        {"1h30m", 90 * MINUTE_NS},
        {"\"2d\"", 48 * HOUR_NS},
        {"365d", INT64_C(365) * 24 * HOUR_NS},
        {"0.0001s", 100000},
        {"1d2h3m4s5ms", 26 * HOUR_NS + 3 * MINUTE_NS + 4 * SECOND_NS + 5000000},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        struct strbuf text = {0};
        strbuf_addf(&text,
                    HEAD "tasks: [{id: a, run: x, timeout: %s}]\n",
                    cases[ix].text);
        struct plan *plan = read_good(strbuf_text(&text));
        assert_true(plan->tasks[0].settings->timeout_ns == cases[ix].ns);
        plan_free(plan);
        strbuf_release(&text);
    }
}

static void a_group_of_tasks_stands_for_its_last_ones(void **state)
{
    (void)state;
    struct plan *plan =
        read_good(HEAD "groups: [{id: g, needs: [before]}]\n"
                       "tasks:\n"
                       "  - {id: before, run: x}\n"
                       "  - {id: one, group: g, run: x}\n"
                       "  - {id: two, group: g, run: x, needs: [one]}\n"
                       "  - {id: three, group: g, run: x, needs: one}\n"
                       "  - {id: after, run: x, needs: [g, two, before]}\n");
    expect_needs(plan, "one", "before");
    expect_needs(plan, "two", "one");
    expect_needs(plan, "after", "before two three");
    plan_free(plan);
}

static void uses_are_sorted_by_limit(void **state)
{
    (void)state;
    struct plan *plan = read_good(
        HEAD
        "resources: {gpu: 2, port: 9}\n"
        "tasks: [{id: a, run: x, uses: {port: 3, gpu: 2, sessions: 2}}]\n");
    const struct plan_task *task = &plan->tasks[0];
    assert_int_equal(task->use_count, 3);
    assert_int_equal(task->uses[0].limit, plan_find_limit(plan, "sessions"));
    assert_int_equal(task->uses[1].limit, plan_find_limit(plan, "gpu"));
    assert_int_equal(task->uses[2].units, 3);
    plan_free(plan);
}

static void equal_attribute_values_are_equal_pointers(void **state)
{
    (void)state;
    struct plan *plan = read_good(
        HEAD "repos: {api: {}}\n"
             "limits:\n"
             "  x: {max: 1, where: {team: red, class: docs, repo: api,\n"
             "                      provider: p, owner: ann, group: g}}\n"
             "groups: [{id: g, repo: api, owner: ann}]\n"
             "tasks:\n"
             "  - {id: a, group: g, class: docs, provider: p, run: x,\n"
             "     attributes: {team: red}, uses: {x: 1}}\n");
    const struct plan_limit *limit = limit_of(plan, "x");
    const struct plan_task *task = &plan->tasks[0];
    assert_int_equal(limit->where_count, 6);
    uint32_t same = 0;
    for (uint32_t ix = 0; ix < limit->where_count; ix++) {
        for (uint32_t at = 0; at < task->attribute_count; at++) {
            same += limit->where[ix].name == task->attributes[at].name &&
                            limit->where[ix].value == task->attributes[at].value
                        ? 1
                        : 0;
        }
    }
    assert_int_equal(same, 6);
    plan_free(plan);
}

static void sync_usage_and_hooks_are_kept(void **state)
{
    (void)state;
    struct plan *plan =
        read_good(HEAD "policy: fifo\n"
                       "sync: {every: 10, run: ./rescan.sh, drain: true}\n"
                       "usage: {run: [./m, -j], steps: {60: 2, 70: 1, 80: 0}}\n"
                       "hooks: {parked: ./n, asked: [./a]}\n"
                       "tasks: [{id: a, run: x}]\n");
    assert_int_equal(plan->policy, PLAN_POLICY_FIFO);
    assert_int_equal(plan->sync.every, 10);
    assert_true(plan->sync.drain);
    assert_string_equal(plan->sync.run.shell, "./rescan.sh");
    assert_string_equal(plan->usages[0].run.argv[1], "-j");
    assert_true(plan->usages[0].every_ns == 5 * MINUTE_NS);
    assert_int_equal(plan->usages[0].step_count, 3);
    assert_int_equal(plan->usages[0].steps[1].percent, 70);
    assert_int_equal(plan->usages[0].steps[2].cap, 0);
    assert_int_equal(plan->hook_count, 2);
    assert_string_equal(plan->hooks[0].event, "asked");
    assert_string_equal(plan->hooks[1].event, "parked");
    plan_free(plan);
}

/* Fragments */

#define BASE                                                                   \
    HEAD "repos: {api: {}}\n"                                                  \
         "pipelines:\n"                                                        \
         "  p: [{stage: one, class: implement, run: x},\n"                     \
         "      {stage: two, class: gate, run: x}]\n"                          \
         "groups: [{id: g, pipeline: p}, {id: loose}]\n"                       \
         "tasks:\n"                                                            \
         "  - {id: a, run: x}\n"                                               \
         "  - {id: b, run: x, needs: a}\n"                                     \
         "  - {id: m, group: loose, run: x}\n"

static void a_fragment_adds_behind_what_is_there(void **state)
{
    (void)state;
    struct plan *plan = read_good(BASE);
    uint32_t before = plan->task_count;
    add_good(
        plan,
        "sluice: 1\n"
        "resources: {gpu: 1}\n"
        "pipelines: {q: [{stage: x, class: gate, run: x, uses: {gpu: 1}}]}\n"
        "groups: [{id: h, pipeline: p, needs: g},\n"
        "         {id: i, pipeline: q, needs: [h]}]\n"
        "tasks: [{id: n, run: x, needs: [loose, b], class: fresh,\n"
        "         provider: codex}]\n");
    assert_int_equal(plan->task_count, before + 4);
    assert_int_equal(plan_find_task(plan, "h/one"), before);
    assert_int_equal(plan_find_task(plan, "n"), before + 3);
    expect_needs(plan, "h/one", "g/two");
    expect_needs(plan, "i/x", "h/two");
    expect_needs(plan, "n", "b m");
    assert_int_equal(plan->edge_count, 0);
    assert_string_equal(plan->providers[task_of(plan, "n")->provider].name,
                        "codex");
    plan_free(plan);
}

static void edges_to_old_tasks_are_listed(void **state)
{
    (void)state;
    struct plan *plan = read_good(BASE);
    add_good(plan,
             "tasks: [{id: n, run: x}]\n"
             "needs: {b: [n, a], g: [n], loose: b, n: []}\n");
    expect_needs(plan, "b", "a n");
    expect_needs(plan, "g/one", "n");
    expect_needs(plan, "m", "b");
    assert_int_equal(plan->edge_count, 3);
    for (uint32_t ix = 0; ix < plan->edge_count; ix++) {
        const char *id = plan->tasks[plan->edges[ix].dependent].id;
        const char *need = plan->tasks[plan->edges[ix].need].id;
        assert_string_equal(need, strcmp(id, "m") == 0 ? "b" : "n");
    }
    plan_undo_add(plan);
    expect_needs(plan, "b", "a");
    expect_needs(plan, "g/one", "");
    expect_needs(plan, "m", "");
    assert_int_equal(plan->edge_count, 0);
    plan_free(plan);
}

static void the_edges_are_those_of_the_last_fragment(void **state)
{
    (void)state;
    struct plan *plan = read_good(BASE);
    add_good(plan, "needs: {a: g}\n");
    assert_int_equal(plan->edge_count, 1);
    add_good(plan, "needs: {a: [g], m: [a]}\n");
    assert_int_equal(plan->edge_count, 1);
    assert_string_equal(plan->tasks[plan->edges[0].dependent].id, "m");
    add_bad(plan, "needs: {g: [m]}\n");
    expect_needs(plan, "a", "g/two");
    expect_needs(plan, "m", "a");
    plan_free(plan);
}

static void a_refused_fragment_leaves_no_trace(void **state)
{
    (void)state;
    struct plan *plan = read_good(BASE);
    struct plan before = *plan;
    for (int round = 0; round < 20; round++) {
        add_bad(plan,
                "resources: {gpu: 1}\n"
                "pipelines: {q: [{stage: s, class: gate, run: x}]}\n"
                "groups: [{id: h, pipeline: q, attributes: {team: red}}]\n"
                "tasks: [{id: n, run: x, group: loose, class: fresh,\n"
                "         provider: codex, needs: [h]},\n"
                "        {id: o, run: x, needs: [nothing]}]\n"
                "needs: {a: n}\n");
        assert_int_equal(plan->limit_count, before.limit_count);
        assert_int_equal(plan->class_count, before.class_count);
        assert_int_equal(plan->provider_count, before.provider_count);
        assert_int_equal(plan->group_count, before.group_count);
        assert_int_equal(plan->task_count, before.task_count);
        assert_int_equal(plan->groups[1].task_count, 1);
        assert_int_equal(plan_find_task(plan, "n"), PLAN_NONE);
        assert_int_equal(plan_find_limit(plan, "gpu"), PLAN_NONE);
    }
    expect_needs(plan, "a", "");
    add_good(plan,
             "resources: {gpu: 1}\n"
             "pipelines: {q: [{stage: s, class: gate, run: x}]}\n"
             "groups: [{id: h, pipeline: q}]\n"
             "tasks: [{id: n, run: x, class: fresh, needs: [h, loose]}]\n");
    expect_needs(plan, "n", "m h/s");
    plan_free(plan);
}

static void an_undone_fragment_can_be_added_again(void **state)
{
    (void)state;
    struct plan *plan = read_good(BASE);
    for (int round = 0; round < 5; round++) {
        add_good(plan,
                 "tasks: [{id: n, run: x, group: loose, needs: [g],\n"
                 "         class: fresh, provider: codex}]\n"
                 "needs: {m: n}\n");
        expect_needs(plan, "m", "n");
        assert_int_equal(plan->groups[1].task_count, 2);
        if (round < 4) {
            plan_undo_add(plan);
            assert_int_equal(plan->groups[1].task_count, 1);
        }
    }
    add_good(plan, "tasks: [{id: z, run: x, needs: loose}]\n");
    expect_needs(plan, "z", "m");
    plan_free(plan);
}

/* Size */

static void many_tasks_are_read(void **state)
{
    (void)state;
    struct strbuf text = {0};
    strbuf_adds(&text, HEAD "tasks:\n");
    for (int ix = 0; ix < 20000; ix++) {
        strbuf_addf(&text,
                    "  - {id: t%d, run: make, needs: [%s%d]}\n",
                    ix,
                    ix > 0 ? "t" : "u",
                    ix > 0 ? ix / 2 : 0);
    }
    strbuf_adds(&text, "  - {id: u0, run: make}\n");
    struct plan *plan = read_good(strbuf_text(&text));
    assert_int_equal(plan->task_count, 20001);
    expect_needs(plan, "t19999", "t9999");
    expect_needs(plan, "t0", "u0");
    plan_free(plan);
    strbuf_release(&text);
}

static void too_many_tasks_are_refused(void **state)
{
    (void)state;
    struct strbuf text = {0};
    strbuf_adds(&text, HEAD "pipelines:\n  p:\n");
    for (int ix = 0; ix < 100; ix++) {
        strbuf_addf(&text, "    - {stage: s%d, class: gate, run: make}\n", ix);
    }
    strbuf_adds(&text, "groups:\n");
    for (int ix = 0; ix < 20001; ix++) {
        strbuf_addf(&text, "  - {id: g%d, pipeline: p}\n", ix);
    }
    expect_bad(strbuf_text(&text), "20106:10: more than 2000000 tasks");
    strbuf_release(&text);
}

static void too_many_needs_are_refused(void **state)
{
    (void)state;
    struct strbuf text = {0};
    strbuf_adds(&text, HEAD "groups: [{id: g}, {id: h, needs: g}]\ntasks:\n");
    for (int ix = 0; ix < 5000; ix++) {
        strbuf_addf(&text, "  - {id: g%d, run: x, group: g}\n", ix);
        strbuf_addf(&text, "  - {id: h%d, run: x, group: h}\n", ix);
    }
    expect_bad(strbuf_text(&text),
               "3:34: more than 20000000 needs, counting each task of a group");
    strbuf_release(&text);
}

static void many_errors_stay_cheap(void **state)
{
    (void)state;
    struct strbuf text = {0};
    strbuf_adds(&text, HEAD "tasks:\n");
    for (int ix = 0; ix < 20000; ix++) {
        strbuf_addf(&text, "  - {id: t%d, run: x, needs: [u%d]}\n", ix, ix);
    }
    struct plan_source source = source_of(strbuf_text(&text));
    struct plan_errors errors = {0};
    struct plan *plan = NULL;
    assert_false(plan_read(&plan, &source, &errors));
    assert_int_equal(errors.count, PLAN_ERRORS_MAX);
    assert_true(errors.cut);
    for (uint32_t ix = 1; ix < errors.count; ix++) {
        assert_true(errors.items[ix - 1].mark.line <=
                    errors.items[ix].mark.line);
    }
    plan_errors_release(&errors);
    strbuf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_alone_has_what_is_built_in),
        cmocka_unit_test(the_default_limits_come_first),
        cmocka_unit_test(a_gate_gives_a_merge_queue_a_window),
        cmocka_unit_test(without_repos_sessions_are_the_processors),
        cmocka_unit_test(naming_a_default_limit_changes_only_what_is_given),
        cmocka_unit_test(classes_merge_over_the_built_in_ones),
        cmocka_unit_test(a_pipeline_makes_a_chain_of_tasks),
        cmocka_unit_test(once_belongs_to_its_prepare_command),
        cmocka_unit_test(paths_of_a_checkout_are_normalised),
        cmocka_unit_test(the_name_of_a_test_is_a_gate),
        cmocka_unit_test(a_run_keeps_the_rules_of_its_plan),
        cmocka_unit_test(the_nearest_setting_wins),
        cmocka_unit_test(a_sandbox_is_inherited_as_a_whole),
        cmocka_unit_test(a_backoff_above_an_inherited_bound_raises_it),
        cmocka_unit_test(durations_have_units),
        cmocka_unit_test(a_group_of_tasks_stands_for_its_last_ones),
        cmocka_unit_test(uses_are_sorted_by_limit),
        cmocka_unit_test(equal_attribute_values_are_equal_pointers),
        cmocka_unit_test(sync_usage_and_hooks_are_kept),
        cmocka_unit_test(a_fragment_adds_behind_what_is_there),
        cmocka_unit_test(edges_to_old_tasks_are_listed),
        cmocka_unit_test(the_edges_are_those_of_the_last_fragment),
        cmocka_unit_test(a_refused_fragment_leaves_no_trace),
        cmocka_unit_test(an_undone_fragment_can_be_added_again),
        cmocka_unit_test(many_tasks_are_read),
        cmocka_unit_test(too_many_tasks_are_refused),
        cmocka_unit_test(too_many_needs_are_refused),
        cmocka_unit_test(many_errors_stay_cheap),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
