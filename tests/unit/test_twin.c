/* SPDX-License-Identifier: MIT */
/* Repos of a plan with one path, by the plan alone. */
#include "plan/twin.h"

#include "base/strbuf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct plan *read_repos(const char *repos, bool old_rules)
{
    struct strbuf text = {0};
    strbuf_addf(&text,
                "sluice: 1\nname: x\nrepos:\n%stasks: [{id: a, run: x}]\n",
                repos);
    struct plan_source source = {
        .file = "plan.yaml",
        .text = text.text,
        .len = text.len,
        .processors = 1,
        .old_rules = old_rules,
    };
    struct plan_errors errors = {0};
    struct plan *plan = NULL;
    assert_true(plan_read(&plan, &source, &errors));
    strbuf_release(&text);
    return plan;
}

static void a_path_has_one_form(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        const char *wanted;
    } rows[] = {
        {"api", "/p/api"},
        {"./api//", "/p/api"},
        {"x/../api/.", "/p/api"},
        {"../q", "/q"},
        {"../../../q", "/q"},
        {"..", ""},
        {"/a/./b", "/a/b"},
        {"//a", "/a"},
        {"...", "/p/..."},
        {"..a", "/p/..a"},
    };
    for (size_t ix = 0; ix < sizeof(rows) / sizeof(rows[0]); ix++) {
        struct strbuf text = {0};
        twin_add_path(&text, "/p", rows[ix].path);
        assert_string_equal(strbuf_text(&text), rows[ix].wanted);
        strbuf_release(&text);
    }
}

#define REPOS                                                                  \
    "  a: {path: api, base: dev}\n"                                            \
    "  b: {path: ./api/, base: main}\n"                                        \
    "  c: {path: /p/api, base: dev}\n"                                         \
    "  d: {path: api}\n"                                                       \
    "  e: {path: web, base: dev}\n"                                            \
    "  f: {}\n"

static void repos_with_one_path_are_twins(void **state)
{
    (void)state;
    struct plan *plan = read_repos(REPOS, false);
    assert_int_equal(twin_find(plan, "/p", 0), 1);
    assert_int_equal(twin_find(plan, "/p", 1), 0);
    assert_int_equal(twin_find(plan, "/p", 2), 0);
    assert_int_equal(twin_find(plan, "/p", 3), PLAN_NONE); /* no git */
    assert_int_equal(twin_find(plan, "/p", 4), PLAN_NONE);
    assert_int_equal(twin_find(plan, "/p", 5), PLAN_NONE);
    assert_int_equal(twin_find(plan, "/other", 2), PLAN_NONE);
    assert_string_equal(twin_name(plan, "/p", 2), "c");
    assert_null(twin_name(plan, "/p", 4));
    plan_free(plan);
}

static void old_runs_have_no_twins(void **state)
{
    (void)state;
    struct plan *plan = read_repos(REPOS, true);
    for (uint32_t ix = 0; ix < plan->repo_count; ix++) {
        assert_int_equal(twin_find(plan, "/p", ix), PLAN_NONE);
    }
    plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_has_one_form),
        cmocka_unit_test(repos_with_one_path_are_twins),
        cmocka_unit_test(old_runs_have_no_twins),
    };
    return cmocka_run_group_tests_name("twin", tests, NULL, NULL);
}
