/* SPDX-License-Identifier: MIT */
/* What a plan says about the course of a run: outcomes of needs, parts of
 * groups, tasks that come last, approval and times. */
#include "base/duration.h"
#include "base/macros.h"
#include "base/strbuf.h"
#include "plan/plan.h"
#include "plan/revise.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD                                                                   \
    "sluice: 1\nname: test\npipelines: {p: [{stage: implement, run: x}, "      \
    "{stage: gate, run: x}]}\n"

/* 2030-01-31T12:00:00Z, a Thursday */
#define NOON_NS (INT64_C(1896091200) * SECOND_NS)

static struct plan_source source_of(const char *text)
{
    return (struct plan_source){
        .file = "plan.yaml",
        .text = text,
        .len = strlen(text),
        .processors = 2,
    };
}

static struct plan *read_good(const char *text)
{
    struct plan_source source = source_of(text);
    struct plan_errors errors = {0};
    struct plan *plan = NULL;
    if (!plan_read(&plan, &source, &errors)) {
        fail_msg("%u: %s", errors.items[0].mark.line, errors.items[0].text);
    }
    return plan;
}

static void add_good(struct plan *plan, const char *text)
{
    struct plan_source source = source_of(text);
    struct plan_errors errors = {0};
    if (!plan_add(plan, &source, &errors)) {
        fail_msg("%u: %s", errors.items[0].mark.line, errors.items[0].text);
    }
}

static const struct plan_task *task_of(const struct plan *plan, const char *id)
{
    uint32_t ix = plan_find_task(plan, id);
    assert_int_not_equal(ix, PLAN_NONE);
    return &plan->tasks[ix];
}

static const struct plan_group *group_of(const struct plan *plan,
                                         const char *id)
{
    uint32_t ix = plan_find_group(plan, id);
    assert_int_not_equal(ix, PLAN_NONE);
    return &plan->groups[ix];
}

/* Check the needs of a task, by index: "b, c failed, d any". */
static void
expect_needs(const struct plan *plan, const char *id, const char *wanted)
{
    static const char *const words[] = {"", " failed", " any"};
    const struct plan_task *task = task_of(plan, id);
    struct strbuf text = {0};
    for (uint32_t ix = 0; ix < task->need_count; ix++) {
        strbuf_addf(&text,
                    "%s%s%s",
                    ix > 0 ? ", " : "",
                    plan->tasks[task->needs[ix]].id,
                    words[task->ons[ix]]);
    }
    assert_string_equal(strbuf_text(&text), wanted);
    strbuf_release(&text);
}

static void needs_have_outcomes(void **state)
{
    (void)state;
    struct plan *plan = read_good(
        HEAD "groups:\n"
             "- {id: g, pipeline: p, needs: {task: a, on: any}}\n"
             "- {id: h}\n"
             "tasks:\n"
             "- {id: a, run: x}\n"
             "- {id: b, run: x, group: h, needs: [a]}\n"
             "- {id: c, run: x, group: h, needs: [{task: a, on: done}]}\n"
             "- {id: d, run: x, needs: [{task: b, on: failed}, {task: g, on: "
             "any}, {group: h, on: any}]}\n"
             "- {id: e, run: x, needs: [{task: b, on: any}, h]}\n");
    expect_needs(plan, "g/implement", "a any");
    expect_needs(plan, "g/gate", "g/implement");
    expect_needs(plan, "c", "a");
    /* The stricter one counts. */
    expect_needs(plan, "d", "g/gate any, b failed, c any");
    expect_needs(plan, "e", "b, c");
    plan_free(plan);
}

static void a_need_on_a_parent_is_all_of_it(void **state)
{
    (void)state;
    struct plan *plan =
        read_good(HEAD "groups:\n"
                       "- {id: two, parent: epic, pipeline: p, needs: [one]}\n"
                       "- {id: three, parent: epic, pipeline: p}\n"
                       "- {id: epic, needs: [before], pipeline: p}\n"
                       "- {id: one, parent: epic, pipeline: p}\n"
                       "- {id: leafs, parent: three}\n"
                       "tasks:\n"
                       "- {id: before, run: x}\n"
                       "- {id: leaf, run: x, group: leafs}\n"
                       "- {id: after, run: x, needs: [epic]}\n"
                       "- {id: some, run: x, needs: [three]}\n");
    assert_true(plan_find_group(plan, "epic") < plan_find_group(plan, "two"));
    expect_needs(plan, "epic/implement", "before");
    expect_needs(plan, "one/implement", "before");
    expect_needs(plan, "three/implement", "before");
    expect_needs(plan, "leaf", "before");
    /* It waits for another part, which waits for it. */
    expect_needs(plan, "two/implement", "one/gate");
    expect_needs(plan, "after", "epic/gate, two/gate, three/gate, leaf");
    expect_needs(plan, "some", "three/gate, leaf");
    uint32_t epic = plan_find_group(plan, "epic");
    uint32_t leafs = plan_find_group(plan, "leafs");
    assert_true(plan_is_within(plan, leafs, epic));
    assert_true(plan_is_within(plan, epic, epic));
    assert_false(plan_is_within(plan, epic, leafs));
    assert_true(plan_is_within(plan, leafs, PLAN_NONE));
    plan_free(plan);
}

static void a_part_has_labels_and_attributes_of_its_parents(void **state)
{
    (void)state;
    struct plan *plan = read_good(
        HEAD "groups:\n"
             "- {id: part, parent: epic, pipeline: p, labels: [b, a]}\n"
             "- {id: epic, labels: [c, a], attributes: {team: red}, url: "
             "'https://e/1', description: why}\n"
             "tasks:\n"
             "- {id: t, run: x, group: part, labels: [d], url: 'https://e/2'}\n"
             "- {id: u, run: x}\n");
    struct plan_labels labels = task_of(plan, "t")->labels;
    static const char *const wanted[] = {"a", "b", "c", "d"};
    assert_int_equal(labels.count, 4);
    for (uint32_t ix = 0; ix < labels.count; ix++) {
        assert_string_equal(labels.items[ix], wanted[ix]);
    }
    assert_int_equal(group_of(plan, "part")->labels.count, 3);
    assert_int_equal(task_of(plan, "part/gate")->labels.count, 3);
    assert_int_equal(group_of(plan, "epic")->labels.count, 2);
    assert_int_equal(task_of(plan, "u")->labels.count, 0);
    assert_string_equal(group_of(plan, "epic")->url, "https://e/1");
    assert_string_equal(group_of(plan, "epic")->description, "why");
    assert_string_equal(task_of(plan, "t")->words->url, "https://e/2");
    const struct plan_group *part = group_of(plan, "part");
    assert_string_equal(part->attributes[part->attribute_count - 1].value,
                        "red");
    plan_free(plan);
}

static void tasks_of_finally_come_last(void **state)
{
    (void)state;
    struct plan *plan = read_good(
        "sluice: 1\nname: test\ndefaults: {on_failure: abort}\npipelines:\n"
        "  q:\n"
        "  - {stage: implement, run: x}\n"
        "  - {stage: clean, class: gate, run: x, finally: true}\n"
        "  - {stage: gate, run: x}\n"
        "  - {stage: tidy, class: gate, run: x, finally: true}\n"
        "groups:\n"
        "- {id: epic, finally: [{id: epic-end, run: x}]}\n"
        "- {id: g, pipeline: q, parent: epic}\n"
        "- {id: h, parent: epic}\n"
        "tasks:\n"
        "- {id: t, run: x, group: h}\n"
        "- {id: after, run: x, needs: [g, {task: epic-end, on: any}]}\n"
        "finally: [{id: end, run: x, needs: [{task: after, on: failed}]}]\n");
    uint32_t epic = plan_find_group(plan, "epic");
    uint32_t g = plan_find_group(plan, "g");
    expect_needs(plan, "g/gate", "g/implement");
    expect_needs(plan, "g/clean", "");
    expect_needs(plan, "g/tidy", "g/clean any");
    expect_needs(plan, "after", "epic-end any, g/gate");
    expect_needs(plan, "end", "after failed");
    assert_int_equal(task_of(plan, "g/gate")->scope, g);
    assert_int_equal(task_of(plan, "g/clean")->scope, g);
    assert_int_equal(task_of(plan, "t")->scope, epic);
    assert_int_equal(task_of(plan, "epic-end")->scope, epic);
    assert_int_equal(task_of(plan, "end")->scope, PLAN_NONE);
    assert_int_equal(task_of(plan, "after")->scope, PLAN_NONE);
    assert_true(group_of(plan, "g")->has_last);
    assert_false(group_of(plan, "h")->has_last);
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        const struct plan_task *task = &plan->tasks[ix];
        assert_int_equal(task->settings->on_failure,
                         task->last ? PLAN_ON_FAILURE_SKIP
                                    : PLAN_ON_FAILURE_ABORT);
        assert_int_equal(task->settings->optional, task->last ? 1 : 0);
    }
    plan_free(plan);
}

/* What starts only after a failure is skipped when all goes well. */
static void a_group_is_done_without_its_remedies(void **state)
{
    (void)state;
    struct plan *plan = read_good(
        "sluice: 1\nname: test\ngroups: [{id: g}]\n"
        "tasks:\n"
        "- {id: a, run: x, group: g}\n"
        "- {id: fix, run: x, group: g, needs: [{task: a, on: failed}]}\n"
        "- {id: check, run: x, group: g, needs: [a, fix]}\n"
        "- {id: b, run: x, group: g, needs: [{task: a, on: any}]}\n"
        "- {id: after, run: x, needs: [g]}\n"
        "- {id: always, run: x, needs: [{group: g, on: any}]}\n");
    expect_needs(plan, "after", "a, b");
    expect_needs(plan, "always", "check any, b any");
    plan_free(plan);
}

static void a_part_of_a_fragment_has_the_needs_of_its_parent(void **state)
{
    (void)state;
    struct plan *plan =
        read_good(HEAD "groups:\n"
                       "- {id: epic, needs: [{task: before, on: any}]}\n"
                       "- {id: part, parent: epic, pipeline: p}\n"
                       "tasks: [{id: before, run: x}, {id: other, run: x}]\n");
    for (int round = 0; round < 2; round++) {
        add_good(plan,
                 "groups:\n"
                 "- {id: more, parent: epic, pipeline: p, needs: [other]}\n"
                 "- {id: inner, parent: more, pipeline: p}\n"
                 "needs: {other: [{task: before, on: failed}]}\n");
        expect_needs(plan, "more/implement", "before any, other");
        expect_needs(plan, "inner/implement", "before any, other");
        expect_needs(plan, "other", "before failed");
        assert_int_equal(plan->edge_count, 1);
        assert_int_equal(plan->edges[0].on, PLAN_ON_FAILED);
        if (round == 0) {
            plan_undo_add(plan);
            expect_needs(plan, "other", "");
        }
    }
    /* What the plan says already is no news. */
    add_good(plan, "needs: {other: [{task: before, on: any}]}\n");
    assert_int_equal(plan->edge_count, 0);
    expect_needs(plan, "other", "before failed");
    plan_free(plan);
}

static void a_new_version_keeps_outcomes_and_parents(void **state)
{
    (void)state;
    static const char old_text[] =
        HEAD "groups: [{id: g, pipeline: p}]\n"
             "tasks:\n"
             "- {id: a, run: x}\n"
             "- {id: b, run: x, needs: [{task: a, on: any}, g]}\n";
    static const char new_text[] =
        HEAD "groups:\n"
             "- {id: epic, needs: [a]}\n"
             "- {id: g, pipeline: p, parent: epic, labels: [x]}\n"
             "tasks:\n"
             "- {id: b, run: x, approve: true, needs: [{task: g/gate, on: "
             "failed}, {task: a, on: any}]}\n"
             "- {id: a, run: x, not_before: 22:00}\n";
    struct plan *old = read_good(old_text);
    struct plan_source source = source_of(new_text);
    struct plan_errors errors = {0};
    struct plan *new = NULL;
    assert_true(revise_plan(&new, old, &source, NULL, 0, &errors));
    expect_needs(new, "b", "g/gate failed, a any");
    expect_needs(new, "g/implement", "a");
    assert_int_equal(revise_compare(old, new, plan_find_task(new, "a")),
                     REVISE_START);
    assert_int_equal(revise_compare(old, new, plan_find_task(new, "b")),
                     REVISE_START | REVISE_NEEDS);
    assert_int_equal(revise_compare(old, new, plan_find_task(new, "g/gate")),
                     REVISE_ISSUE);
    /* The tasks have moved, and with them what the parent needs. */
    add_good(new, "groups: [{id: h, parent: epic, pipeline: p}]\n");
    expect_needs(new, "h/implement", "a");
    plan_free(new);
    plan_free(old);
}

static void differences_are_named(void **state)
{
    (void)state;
    static const char old_text[] = "sluice: 1\nname: test\n"
                                   "tasks: [{id: a, run: x}, {id: b, run: x}]";
    static const char new_text[] =
        "sluice: 1\nname: test\nnot_before: 22:00\ndeadline: 6h\n"
        "tasks: [{id: a, run: x, approve: true, labels: [l], retry: {on: "
        "[lost]}}]\n"
        "finally: [{id: b, run: x}]";
    struct plan *old = read_good(old_text);
    struct plan_source source = source_of(new_text);
    struct plan_errors errors = {0};
    struct plan *new = NULL;
    assert_true(revise_plan(&new, old, &source, NULL, 0, &errors));
    struct strbuf out = {0};
    assert_int_equal(revise_add_parts(&out, old_text, new_text), 2);
    assert_int_equal(revise_add_tasks(&out, old, new), 2);
    assert_string_equal(
        strbuf_text(&out),
        "added: not_before: \"22:00\"\n"
        "added: deadline: \"6h\"\n"
        "changed: task a: retry, approve or not_before, labels, url, "
        "description or parent\n"
        "changed: task b: on_failure, optional, class, repo, provider, uses, "
        "rework, attributes or finally\n");
    strbuf_release(&out);
    plan_free(new);
    plan_free(old);
}

static void a_time_is_parsed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum plan_time_kind kind; /* PLAN_TIME_NONE: it is wrong */
        int64_t seconds;
    } cases[] = {
        {"22:00", PLAN_TIME_CLOCK, 79200},
        {"7:05", PLAN_TIME_CLOCK, 25500},
        {"23:59:59", PLAN_TIME_CLOCK, 86399},
        {"0:00", PLAN_TIME_CLOCK, 0},
        {"2030-01-31", PLAN_TIME_DATE, 1896051600},          /* UTC-1 */
        {"2030-01-31 12:00", PLAN_TIME_DATE, 1896094800},    /* local */
        {"2030-01-31T12:00:30", PLAN_TIME_DATE, 1896094830}, /* local */
        {"2030-01-31T12:00:00Z", PLAN_TIME_DATE, 1896091200},
        {"2030-01-31T12:00:00+02:00", PLAN_TIME_DATE, 1896084000},
        {"2032-02-29", PLAN_TIME_DATE, 1961629200},
        {"24:00", PLAN_TIME_NONE, 0},
        {"22:60", PLAN_TIME_NONE, 0},
        {"22:0", PLAN_TIME_NONE, 0},
        {"22", PLAN_TIME_NONE, 0},
        {"22:00 ", PLAN_TIME_NONE, 0},
        {"-1:00", PLAN_TIME_NONE, 0},
        {"2030-02-29", PLAN_TIME_NONE, 0},
        {"2030-13-01", PLAN_TIME_NONE, 0},
        {"2030-1-01", PLAN_TIME_NONE, 0},
        {"2030-01-31 25:00", PLAN_TIME_NONE, 0},
        {"2030-01-31T12:00:00Y", PLAN_TIME_NONE, 0},
        {"1970-01-01", PLAN_TIME_NONE, 0},
        {"9999-01-01", PLAN_TIME_NONE, 0},
        {"", PLAN_TIME_NONE, 0},
    };
    assert_int_equal(setenv("TZ", "XYZ+1", 1), 0);
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        struct plan_time time = {PLAN_TIME_NONE, 0};
        bool good = plan_parse_time(cases[ix].text, &time);
        if (good != (cases[ix].kind != PLAN_TIME_NONE) ||
            time.kind != cases[ix].kind ||
            time.value != cases[ix].seconds * SECOND_NS) {
            fail_msg("%s: %d %lld",
                     cases[ix].text,
                     (int)time.kind,
                     (long long)(time.value / SECOND_NS));
        }
    }
    assert_int_equal(setenv("TZ", "UTC0", 1), 0);
}

static void a_time_of_day_is_the_next_one(void **state)
{
    (void)state;
    struct plan_time noon = {PLAN_TIME_CLOCK, 12 * HOUR_NS};
    struct plan_time later = {PLAN_TIME_CLOCK, 22 * HOUR_NS};
    struct plan_time after = {PLAN_TIME_AFTER, 6 * HOUR_NS};
    struct plan_time none = {PLAN_TIME_NONE, 0};
    assert_int_equal(setenv("TZ", "UTC0", 1), 0);
    assert_int_equal(plan_time_ns(noon, NOON_NS), NOON_NS);
    assert_int_equal(plan_time_ns(noon, NOON_NS + 1), NOON_NS + 24 * HOUR_NS);
    assert_int_equal(plan_time_ns(later, NOON_NS), NOON_NS + 10 * HOUR_NS);
    assert_int_equal(plan_time_ns(after, NOON_NS), NOON_NS + 6 * HOUR_NS);
    assert_int_equal(plan_time_ns(none, NOON_NS), INT64_MIN);
    /* An hour that the clocks skip: 2030-03-31 in Berlin. */
    assert_int_equal(setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1), 0);
    struct plan_time skipped = {PLAN_TIME_CLOCK, 2 * HOUR_NS + 30 * MINUTE_NS};
    int64_t night_ns = INT64_C(1901134800) * SECOND_NS; /* 22:00 on the 30th */
    int64_t at_ns = plan_time_ns(skipped, night_ns);
    assert_true(at_ns >= night_ns && at_ns <= night_ns + 5 * HOUR_NS);
    assert_int_equal(setenv("TZ", "UTC0", 1), 0);
}

static void a_task_starts_at_its_latest_time(void **state)
{
    (void)state;
    assert_int_equal(setenv("TZ", "UTC0", 1), 0);
    struct plan *plan = read_good(
        HEAD
        "not_before: 13:00\ndeadline: 6h\n"
        "groups:\n"
        "- {id: part, parent: epic, pipeline: p, not_before: 14:00}\n"
        "- {id: epic, not_before: 2030-01-31 15:00}\n"
        "tasks:\n"
        "- {id: a, run: x, not_before: 12:30}\n"
        "- {id: b, run: x, not_before: 16:00, group: part}\n"
        "finally: [{id: c, run: x}, {id: d, run: x, not_before: 17:00}]\n");
#define START(id) plan_start_ns(plan, task_of(plan, id), NOON_NS)
    assert_int_equal(START("a"), NOON_NS + HOUR_NS);
    assert_int_equal(START("part/gate"), NOON_NS + 3 * HOUR_NS);
    assert_int_equal(START("b"), NOON_NS + 4 * HOUR_NS);
    assert_int_equal(START("c"), INT64_MIN);
    assert_int_equal(START("d"), NOON_NS + 5 * HOUR_NS);
    assert_int_equal(plan_deadline_ns(plan, NOON_NS, INT64_MIN),
                     NOON_NS + 7 * HOUR_NS);
    assert_int_equal(plan_deadline_ns(plan, NOON_NS, NOON_NS + 2 * HOUR_NS),
                     NOON_NS + 8 * HOUR_NS);
    plan_free(plan);
}

static void only_dates_of_the_plan_are_in_the_past(void **state)
{
    (void)state;
    struct plan *plan =
        read_good(HEAD "not_before: 13:00\ndeadline: 6h\n"
                       "groups: [{id: g, pipeline: p}]\n"
                       "tasks:\n"
                       "- {id: a, run: x, not_before: 2030-01-31T12:00:00Z}\n"
                       "- {id: b, run: x, not_before: 2030-01-30}\n");
    add_good(plan, "tasks: [{id: c, run: x, not_before: 2001-01-01}]\n");
    struct plan_errors errors = {0};
    assert_false(plan_find_past(plan, NOON_NS - 48 * HOUR_NS, &errors));
    assert_true(plan_find_past(plan, NOON_NS, &errors));
    assert_int_equal(errors.count, 1);
    assert_int_equal(errors.items[0].mark.line, 9);
    assert_string_equal(errors.items[0].text,
                        "not_before 2030-01-30 is in the past: leave it out to "
                        "start at once");
    plan_errors_release(&errors);
    plan_free(plan);
}

static void some_failures_are_retried(void **state)
{
    (void)state;
    struct plan *plan = read_good(
        "sluice: 1\nname: test\ndefaults: {retry: {on: [timeout]}}\n"
        "tasks:\n"
        "- {id: a, run: x}\n"
        "- {id: b, run: x, retry: {on: [exit, signal, idle, exit]}}\n"
        "- {id: c, run: x, retry: 3, on_failure: stop, approve: true}\n");
    assert_int_equal(task_of(plan, "a")->settings->retry_on,
                     PLAN_CAUSE_TIMEOUT);
    assert_int_equal(task_of(plan, "b")->settings->retry_on,
                     PLAN_CAUSE_EXIT | PLAN_CAUSE_SIGNAL | PLAN_CAUSE_IDLE);
    assert_int_equal(task_of(plan, "c")->settings->on_failure,
                     PLAN_ON_FAILURE_STOP);
    assert_true(task_of(plan, "c")->approve);
    assert_false(task_of(plan, "a")->approve);
    plan_free(plan);
    plan = read_good("sluice: 1\nname: test\ntasks: [{id: a, run: x}]\n");
    assert_int_equal(task_of(plan, "a")->settings->retry_on, PLAN_CAUSES_ALL);
    plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(needs_have_outcomes),
        cmocka_unit_test(a_need_on_a_parent_is_all_of_it),
        cmocka_unit_test(a_part_has_labels_and_attributes_of_its_parents),
        cmocka_unit_test(tasks_of_finally_come_last),
        cmocka_unit_test(a_group_is_done_without_its_remedies),
        cmocka_unit_test(a_part_of_a_fragment_has_the_needs_of_its_parent),
        cmocka_unit_test(a_new_version_keeps_outcomes_and_parents),
        cmocka_unit_test(differences_are_named),
        cmocka_unit_test(a_time_is_parsed),
        cmocka_unit_test(a_time_of_day_is_the_next_one),
        cmocka_unit_test(a_task_starts_at_its_latest_time),
        cmocka_unit_test(only_dates_of_the_plan_are_in_the_past),
        cmocka_unit_test(some_failures_are_retried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
