/* SPDX-License-Identifier: MIT */
/* Versions of a plan: indices that stay, and what counts as a difference. */
#include "plan/revise.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "sluice: 1\nname: test\n"
#define PIPELINES                                                              \
    "pipelines:\n  p:\n    - {stage: make, class: implement, run: make}\n"     \
    "    - {stage: test, run: test, rework: {to: make, max: 2}}\n"

static struct plan_source source_of(const char *text)
{
    return (struct plan_source){
        .file = "plan.yaml",
        .text = text,
        .len = strlen(text),
        .processors = 6,
    };
}

static struct plan *read_good(const char *text)
{
    struct plan_source source = source_of(text);
    struct plan_errors errors = {0};
    struct plan *plan = NULL;
    assert_true(plan_read(&plan, &source, &errors));
    return plan;
}

static bool add(struct plan *plan, const char *text)
{
    struct plan_source source = source_of(text);
    struct plan_errors errors = {0};
    bool good = plan_add(plan, &source, &errors);
    plan_errors_release(&errors);
    return good;
}

/* The next version; NULL: it was refused. `added` may be NULL. */
static struct plan *
revise(const struct plan *old, const char *text, const char *added)
{
    struct plan_source source = source_of(text);
    struct plan_source fragment = source_of(added != NULL ? added : "");
    struct plan_errors errors = {0};
    struct plan *plan = NULL;
    bool good = revise_plan(&plan,
                            old,
                            &source,
                            &fragment,
                            added != NULL ? 1 : 0,
                            &errors);
    assert_true(good == (plan != NULL));
    assert_true(good == (errors.count == 0));
    plan_errors_release(&errors);
    return plan;
}

static void expect_ids(const struct plan *plan, const char *wanted)
{
    struct strbuf got = {0};
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        strbuf_addf(&got,
                    "%s%s%s",
                    ix > 0 ? " " : "",
                    plan->tasks[ix].id,
                    revise_is_removed(plan, ix) ? "!" : "");
        assert_int_equal(plan_find_task(plan, plan->tasks[ix].id), ix);
    }
    assert_string_equal(strbuf_text(&got), wanted);
    strbuf_release(&got);
}

static bool needs(const struct plan *plan, const char *task, const char *need)
{
    const struct plan_task *t = &plan->tasks[plan_find_task(plan, task)];
    uint32_t wanted = plan_find_task(plan, need);
    for (uint32_t ix = 0; ix < t->need_count; ix++) {
        assert_true(ix == 0 || t->needs[ix - 1] < t->needs[ix]);
        if (t->needs[ix] == wanted) {
            return true;
        }
    }
    return false;
}

/* The lines for the differences between two plans. */
static void
expect_diff(const char *old_text, const char *new_text, const char *wanted)
{
    struct plan *old = read_good(old_text);
    struct plan *new = revise(old, new_text, NULL);
    struct strbuf got = {0};
    uint32_t count = revise_add_parts(&got, old_text, new_text) +
                     revise_add_tasks(&got, old, new);
    assert_string_equal(strbuf_text(&got), wanted);
    assert_true((count > 0) == (wanted[0] != '\0'));
    strbuf_release(&got);
    plan_free(new);
    plan_free(old);
}

static void priorities_and_the_goal_are_differences(void **state)
{
    (void)state;
#define GROUPS(keys)                                                           \
    HEAD PIPELINES "groups: [{id: g, pipeline: p" keys "}]\n"                  \
                   "tasks: [{id: a, run: x}]\n"
    expect_diff(GROUPS(""),
                GROUPS(", priority: 0"),
                "changed: task g/make: priority 5 -> 0\n"
                "changed: task g/test: priority 5 -> 0\n");
    expect_diff(GROUPS(""), GROUPS(", priority: 5"), "");
    expect_diff(GROUPS(""),
                GROUPS("") "goal: finish-many\n",
                "added: goal: \"finish-many\"\n");
    expect_diff(GROUPS("") "goal: finish-many\n",
                GROUPS("") "goal: finish-all\n",
                "changed: goal: \"finish-many\" -> \"finish-all\"\n");
#undef GROUPS
}

static void old_tasks_keep_their_indices(void **state)
{
    (void)state;
    struct plan *old = read_good(HEAD "tasks:\n"
                                      "  - {id: a, run: x}\n"
                                      "  - {id: b, run: x, needs: [a]}\n"
                                      "  - {id: c, run: x, needs: [a, b]}\n");
    struct plan *new = revise(old,
                              HEAD "tasks:\n"
                                   "  - {id: n, run: x, needs: [c]}\n"
                                   "  - {id: c, run: x, needs: [m, a]}\n"
                                   "  - {id: m, run: x}\n"
                                   "  - {id: a, run: x}\n",
                              NULL);
    expect_ids(new, "a b! c n m");
    assert_true(needs(new, "c", "a"));
    assert_true(needs(new, "c", "m"));
    assert_true(needs(new, "n", "c"));
    assert_int_equal(new->tasks[1].need_count, 0);
    struct plan *back = revise(new,
                               HEAD "tasks:\n"
                                    "  - {id: b, run: y}\n"
                                    "  - {id: a, run: x}\n",
                               NULL);
    expect_ids(back, "a b c! n! m!");
    plan_free(back);
    plan_free(new);
    plan_free(old);
}

static void groups_move_with_their_stages(void **state)
{
    (void)state;
    struct plan *old =
        read_good(HEAD PIPELINES "groups:\n  - {id: g, pipeline: p}\n"
                                 "  - {id: h, pipeline: p}\n");
    struct plan *new =
        revise(old,
               HEAD PIPELINES "groups:\n  - {id: i, pipeline: p}\n"
                              "  - {id: h, pipeline: p, needs: [i]}\n",
               NULL);
    expect_ids(new, "g/make! g/test! h/make h/test i/make i/test");
    assert_true(needs(new, "h/make", "i/test"));
    assert_true(needs(new, "h/test", "h/make"));
    assert_int_equal(new->tasks[3].rework_to, 2);
    assert_true(add(new, "tasks: [{id: t, run: x, needs: [h, g/make]}]"));
    assert_true(needs(new, "t", "h/test"));
    plan_undo_add(new);
    assert_false(add(new, "needs: {i/make: [h]}")); /* a cycle */
    assert_true(add(new, "tasks: [{id: t, run: x, needs: [i]}]"));
    expect_ids(new, "g/make! g/test! h/make h/test i/make i/test t");
    plan_free(new);
    plan_free(old);
}

static void fragments_stay(void **state)
{
    (void)state;
    static const char fragment[] =
        "tasks: [{id: f, run: x, needs: [a]}]\nneeds: {b: [f]}\n";
    struct plan *old = read_good(HEAD "tasks:\n  - {id: a, run: x}\n"
                                      "  - {id: b, run: x}\n");
    assert_true(add(old, fragment));
    struct plan *new = revise(old,
                              HEAD "tasks:\n  - {id: c, run: x}\n"
                                   "  - {id: b, run: x}\n"
                                   "  - {id: a, run: y}\n",
                              fragment);
    expect_ids(new, "a b f c");
    assert_true(needs(new, "b", "f"));
    assert_true(needs(new, "f", "a"));
    assert_int_equal(revise_compare(old, new, 0), REVISE_COMMAND);
    assert_int_equal(revise_compare(old, new, 1), 0);
    assert_int_equal(revise_compare(old, new, 2), 0);
    /* What it needs is gone, or it is there already. */
    assert_null(revise(old, HEAD "tasks:\n  - {id: b, run: x}\n", fragment));
    assert_null(revise(old,
                       HEAD "tasks:\n  - {id: a, run: x}\n"
                            "  - {id: b, run: x}\n  - {id: f, run: x}\n",
                       fragment));
    plan_free(new);
    plan_free(old);
}

static void a_task_does_not_become_a_group(void **state)
{
    (void)state;
    struct plan *old = read_good(HEAD "tasks:\n  - {id: a, run: x}\n");
    assert_null(revise(old,
                       HEAD PIPELINES "groups:\n  - {id: a, pipeline: p}\n",
                       NULL));
    plan_free(old);
}

static void differences_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *task;
        uint32_t wanted;
    } cases[] = {
        {"{run: x, id: a, timeout: 60m}", 0},
        {"{id: a, run: y, timeout: 1h}", REVISE_COMMAND},
        {"{id: a, run: [x], timeout: 1h}", REVISE_COMMAND},
        {"{id: a, run: x, timeout: 1h, prepare: p}", REVISE_COMMAND},
        {"{id: a, run: x, timeout: 1h, prepare: {run: p}}", REVISE_COMMAND},
        {"{id: a, run: x, timeout: 2h}", REVISE_SETTINGS},
        {"{id: a, run: x, timeout: 1h, estimate: 5m}", REVISE_SETTINGS},
        {"{id: a, run: x, timeout: 1h, optional: true}", REVISE_SETTINGS},
        {"{id: a, run: x, timeout: 1h, needs: [b]}", REVISE_NEEDS},
        {"{id: a, run: x, timeout: 1h, title: t}", REVISE_TEXT},
        {"{id: a, run: x, timeout: 1h, class: review}", REVISE_PLACE},
        {"{id: a, run: x, timeout: 1h, owner: me}", REVISE_PLACE},
    };
    struct plan *old = read_good(HEAD "tasks:\n"
                                      "  - {id: a, run: x, timeout: 1h}\n"
                                      "  - {id: b, run: x}\n");
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        struct strbuf text = {0};
        strbuf_addf(&text,
                    HEAD "tasks:\n  - {id: b, run: x}\n  - %s\n",
                    cases[ix].task);
        struct plan *new = revise(old, strbuf_text(&text), NULL);
        struct strbuf lines = {0};
        assert_int_equal(revise_compare(old, new, 0), cases[ix].wanted);
        assert_int_equal(revise_add_tasks(&lines, old, new),
                         cases[ix].wanted != 0 ? 1 : 0);
        strbuf_release(&lines);
        strbuf_release(&text);
        plan_free(new);
    }
    plan_free(old);
}

static void order_of_keys_is_no_difference(void **state)
{
    (void)state;
    struct strbuf out = {0};
    assert_int_equal(
        revise_add_parts(&out,
                         "limits: {a: {max: 1, per: repo}, b: 2}\npolicy: fifo",
                         "policy: 'fifo' # same\nlimits:\n  b: 2\n"
                         "  a: {per: repo, max: 1}\ntasks: [x]\n"),
        0);
    assert_int_equal(out.len, 0);
    assert_int_equal(revise_add_parts(&out,
                                      "limits: {a: 1, b: 2, c: {max: 1}}",
                                      "limits: {a: 1, b: 3, d: 4}\n"
                                      "policy: rank\n"),
                     4);
    assert_string_equal(strbuf_text(&out),
                        "changed: limits.b: \"2\" -> \"3\"\n"
                        "removed: limits.c\n"
                        "added: limits.d: \"4\"\n"
                        "added: policy: \"rank\"\n");
    strbuf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_tasks_keep_their_indices),
        cmocka_unit_test(priorities_and_the_goal_are_differences),
        cmocka_unit_test(groups_move_with_their_stages),
        cmocka_unit_test(fragments_stay),
        cmocka_unit_test(a_task_does_not_become_a_group),
        cmocka_unit_test(differences_are_told_apart),
        cmocka_unit_test(order_of_keys_is_no_difference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
