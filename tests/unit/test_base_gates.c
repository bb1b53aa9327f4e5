/* SPDX-License-Identifier: MIT */
#include "plan/plan.h"

#include "plan/revise.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "sluice: 1\nname: p\n"
#define API "  api: {path: a, base: dev, gate: make test, owner: me}\n"

static struct plan_source source_of(const char *text)
{
    return (struct plan_source){
        .file = "p",
        .text = text,
        .len = strlen(text),
        .processors = 2,
    };
}

static struct plan *read_from(const struct plan_source *source)
{
    struct plan_errors errors = {0};
    struct plan *plan = NULL;
    bool good = plan_read(&plan, source, &errors);
    if (!good) {
        fail_msg("%s", errors.items[0].text);
    }
    plan_errors_release(&errors);
    return plan;
}

static struct plan *read_plan(const char *text)
{
    struct plan_source source = source_of(text);
    return read_from(&source);
}

static void add(struct plan *plan, const char *text)
{
    struct plan_source source = source_of(text);
    struct plan_errors errors = {0};
    if (!plan_add(plan, &source, &errors)) {
        fail_msg("%s", errors.items[0].text);
    }
    plan_errors_release(&errors);
}

static const struct plan_task *find(const struct plan *plan, const char *id)
{
    uint32_t ix = plan_find_task(plan, id);
    assert_int_not_equal(ix, PLAN_NONE);
    return &plan->tasks[ix];
}

/* Whether a task needs the gate of api, and nothing else. */
static bool needs_base(const struct plan *plan, const char *id)
{
    const struct plan_task *task = find(plan, id);
    return task->need_count == 1 &&
           task->needs[0] == plan_find_task(plan, "api/+base");
}

static void merges_need_it_and_all_tasks_are_guarded(void **state)
{
    (void)state;
    struct plan *plan = read_plan(
        HEAD "repos:\n" API "classes: {gate: {estimate: 7m, retry: 4}}\n"
             "defaults: {prepare: make, on_failure: skip}\n"
             "tasks:\n"
             "  - {id: a, repo: api, run: x}\n"
             "  - {id: m, repo: api, merge: true}\n"
             "  - {id: n, repo: api, merge: true}\n"
             "  - {id: other, run: x}\n");
    assert_int_equal(plan->task_count, 5);
    uint32_t base = plan_find_task(plan, "api/+base");
    const struct plan_task *task = find(plan, "api/+base");
    assert_true(task->base_gate && !task->merge);
    assert_int_equal(plan->repos[0].base_task, base);
    assert_string_equal(plan->classes[task->class_ix].name, "gate");
    assert_true(plan_estimate_ns(plan, task) == 420 * SECOND_NS);
    assert_int_equal(task->settings->retry_max, 4);
    assert_int_equal(task->settings->on_failure, PLAN_ON_FAILURE_PARK);
    assert_int_equal(task->settings->optional, 1);
    assert_null(task->settings->prepare);
    assert_int_equal(task->attribute_count, 1); /* no repo, no owner */
    assert_string_equal(task->attributes[0].name, "class");
    assert_int_equal(task->repo, 0);
    assert_int_equal(task->need_count, 0);
    assert_int_equal(task->guard, PLAN_NONE);
    assert_true(needs_base(plan, "m") && needs_base(plan, "n"));
    assert_int_equal(find(plan, "a")->need_count, 0);
    assert_int_equal(find(plan, "a")->guard, base);
    assert_int_equal(find(plan, "m")->guard, base);
    assert_int_equal(find(plan, "other")->guard, PLAN_NONE);
    plan_free(plan);
}

static void only_gated_merges_have_one(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "repos:\n  api: {path: a, base: dev}\n"
        "tasks: [{id: m, repo: api, merge: true}]\n",
        "repos:\n  api: {path: a, base: dev, gate: x, base_gate: none}\n"
        "tasks: [{id: m, repo: api, merge: true}]\n",
        "repos:\n" API "tasks: [{id: m, repo: api, run: x}]\n",
        "repos:\n  api: {base: dev, gate: x}\n"
        "tasks: [{id: m, repo: api, merge: true}]\n",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(texts); ix++) {
        char text[400] = HEAD;
        strncat(text, texts[ix], sizeof(text) - strlen(text) - 1);
        struct plan *plan = read_plan(text);
        assert_int_equal(plan->task_count, 1);
        assert_int_equal(plan->tasks[0].guard, PLAN_NONE);
        assert_int_equal(plan->repos[0].base_task, PLAN_NONE);
        plan_free(plan);
    }
}

static void a_plan_of_an_earlier_version_has_none(void **state)
{
    (void)state;
    struct plan_source source = source_of(
        HEAD "repos:\n" API "tasks: [{id: m, repo: api, merge: true}]\n");
    source.no_base_gates = true;
    struct plan *plan = read_from(&source);
    add(plan, "tasks: [{id: n, repo: api, merge: true}]\n");
    assert_int_equal(plan->task_count, 2);
    assert_int_equal(plan->tasks[1].need_count, 0);
    plan_free(plan);
}

static void a_fragment_with_the_first_merge_adds_it_once(void **state)
{
    (void)state;
    struct plan *plan =
        read_plan(HEAD "repos:\n" API "tasks: [{id: a, repo: api, run: x}]\n");
    static const char more[] = "tasks:\n"
                               "  - {id: m, repo: api, merge: true}\n"
                               "  - {id: b, repo: api, run: x}\n";
    for (int ix = 0; ix < 2; ix++) { /* the first one is undone */
        assert_int_equal(plan->task_count, 1);
        assert_int_equal(plan->repos[0].base_task, PLAN_NONE);
        add(plan, more);
        assert_int_equal(plan->task_count, 4);
        assert_int_equal(plan->repos[0].base_task, 3);
        assert_true(needs_base(plan, "m"));
        if (ix == 0) {
            plan_undo_add(plan);
        }
    }
    assert_int_equal(find(plan, "a")->guard, PLAN_NONE); /* it was there */
    assert_int_equal(find(plan, "b")->guard, 3);
    add(plan, "tasks: [{id: n, repo: api, merge: true}]\n");
    assert_int_equal(plan->task_count, 5);
    assert_true(needs_base(plan, "n"));
    assert_int_equal(find(plan, "n")->guard, 3);
    plan_free(plan);
}

static void a_new_version_keeps_its_place_or_removes_it(void **state)
{
    (void)state;
    struct plan *old = read_plan(
        HEAD "repos:\n" API "tasks: [{id: m, repo: api, merge: true}]\n");
    struct plan_source sources[] = {
        source_of(HEAD "repos:\n" API "tasks:\n"
                       "  - {id: n, repo: api, merge: true}\n"
                       "  - {id: m, repo: api, merge: true}\n"),
        source_of(HEAD "repos:\n"
                       "  api: {path: a, base: dev, gate: x, base_gate: none}\n"
                       "tasks: [{id: m, repo: api, merge: true}]\n"),
    };
    struct plan_errors errors = {0};
    struct plan *new;
    assert_true(revise_plan(&new, old, &sources[0], NULL, 0, &errors));
    assert_int_equal(plan_find_task(new, "api/+base"), 1);
    assert_int_equal(new->repos[0].base_task, 1);
    assert_int_equal(find(new, "n")->guard, 1);
    assert_true(needs_base(new, "n") && needs_base(new, "m"));
    assert_int_equal(revise_compare(old, new, 1), 0);
    plan_free(new);
    assert_true(revise_plan(&new, old, &sources[1], NULL, 0, &errors));
    assert_true(revise_is_removed(new, 1));
    assert_int_equal(new->tasks[0].guard, PLAN_NONE);
    assert_int_equal(new->tasks[0].need_count, 0);
    plan_free(new);
    plan_free(old);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_need_it_and_all_tasks_are_guarded),
        cmocka_unit_test(only_gated_merges_have_one),
        cmocka_unit_test(a_plan_of_an_earlier_version_has_none),
        cmocka_unit_test(a_fragment_with_the_first_merge_adds_it_once),
        cmocka_unit_test(a_new_version_keeps_its_place_or_removes_it),
    };
    return cmocka_run_group_tests_name("base_gates", tests, NULL, NULL);
}
