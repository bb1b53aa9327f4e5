/* SPDX-License-Identifier: MIT */
/*
 * The files of tests/plans: those in good/ must be read, those in bad/ must be
 * refused with exactly the errors of the .expected file beside them. The same
 * for fragments, which are added to base.plan of their folder.
 */
#include "base/macros.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "plan/plan.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifndef TEST_DATA_DIR
#define TEST_DATA_DIR "tests/plans"
#endif

/* In the year 2026: dates before it are in the past. */
#define NOW_NS INT64_C(1780000000000000000)

typedef void (*file_fn)(const char *folder, const char *name, void *ctx);

/* The bytes of a file below TEST_DATA_DIR. */
static struct strbuf slurp(const char *folder, const char *name)
{
    struct strbuf path = {0};
    struct strbuf text = {0};
    strbuf_addf(&path, "%s/%s/%s", TEST_DATA_DIR, folder, name);
    FILE *file = fopen(strbuf_text(&path), "rb");
    if (file == NULL) {
        fail_msg("cannot open %s", strbuf_text(&path));
        return text;
    }
    char piece[4096];
    size_t len = 0;
    while ((len = fread(piece, 1, sizeof(piece), file)) > 0) {
        strbuf_add(&text, piece, len);
    }
    assert_int_equal(fclose(file), 0);
    strbuf_release(&path);
    return text;
}

static bool is_yaml(const char *name)
{
    size_t len = strlen(name);
    return len > 5 && strcmp(name + len - 5, ".yaml") == 0;
}

/* Call fn for each .yaml file of the folder, in order; return how many. */
static int for_each_file(const char *folder, file_fn fn, void *ctx)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/%s", TEST_DATA_DIR, folder);
    struct dirent **entries = NULL;
    int count = scandir(strbuf_text(&path), &entries, NULL, alphasort);
    assert_true(count > 0);
    int files = 0;
    for (int ix = 0; ix < count; ix++) {
        if (is_yaml(entries[ix]->d_name)) {
            fn(folder, entries[ix]->d_name, ctx);
            files++;
        }
        free(entries[ix]);
    }
    free(entries);
    strbuf_release(&path);
    return files;
}

/* The errors as the command line would print them. */
static struct strbuf
printed(const char *folder, const char *name, const struct plan_errors *errors)
{
    struct strbuf out = {0};
    for (uint32_t ix = 0; ix < errors->count; ix++) {
        const struct plan_error *error = &errors->items[ix];
        strbuf_addf(&out,
                    "%s/%s:%u:%u: %s\n",
                    folder,
                    name,
                    error->mark.line,
                    error->mark.column,
                    error->text);
    }
    if (errors->cut) {
        strbuf_addf(&out, "%s/%s: there are more errors\n", folder, name);
    }
    return out;
}

/* Compare the errors with the .expected file, and give them back. */
static void
expect_errors(const char *folder, const char *name, struct plan_errors *errors)
{
    struct strbuf expected_name = {0};
    strbuf_add(&expected_name, name, strlen(name) - strlen("yaml"));
    strbuf_adds(&expected_name, "expected");
    struct strbuf wanted = slurp(folder, strbuf_text(&expected_name));
    struct strbuf got = printed(folder, name, errors);
    assert_true(errors->count > 0);
    assert_string_equal(strbuf_text(&got), strbuf_text(&wanted));
    strbuf_release(&expected_name);
    strbuf_release(&wanted);
    strbuf_release(&got);
    plan_errors_release(errors);
}

static struct plan_source source_of(const char *name, const struct strbuf *text)
{
    return (struct plan_source){
        .file = name,
        .text = strbuf_text(text),
        .len = text->len,
        .processors = 4,
    };
}

static void check_good(const char *folder, const char *name, void *ctx)
{
    (void)ctx;
    struct strbuf text = slurp(folder, name);
    struct plan_source source = source_of(name, &text);
    struct plan_errors errors = {0};
    struct plan *plan = NULL;
    if (!plan_read(&plan, &source, &errors)) {
        struct strbuf got = printed(folder, name, &errors);
        fail_msg("%s", strbuf_text(&got));
    }
    assert_string_equal(plan->file, name);
    plan_free(plan);
    strbuf_release(&text);
}

static void check_bad(const char *folder, const char *name, void *ctx)
{
    (void)ctx;
    struct strbuf text = slurp(folder, name);
    struct plan_source source = source_of(name, &text);
    struct plan_errors errors = {0};
    struct plan *plan = NULL;
    if (plan_read(&plan, &source, &errors)) {
        assert_true(plan_find_past(plan, NOW_NS, &errors));
        plan_free(plan);
    } else {
        assert_null(plan);
    }
    expect_errors(folder, name, &errors);
    strbuf_release(&text);
}

static struct plan *read_base(const char *folder)
{
    struct strbuf text = slurp(folder, "base.plan");
    struct plan_source source = source_of("base.plan", &text);
    struct plan_errors errors = {0};
    struct plan *plan = NULL;
    assert_true(plan_read(&plan, &source, &errors));
    strbuf_release(&text);
    return plan;
}

static void check_bad_fragment(const char *folder, const char *name, void *ctx)
{
    struct plan *plan = ctx;
    struct strbuf text = slurp(folder, name);
    struct plan_source source = source_of(name, &text);
    struct plan_errors errors = {0};
    uint32_t tasks = plan->task_count;
    assert_false(plan_add(plan, &source, &errors));
    assert_int_equal(plan->task_count, tasks);
    assert_int_equal(plan->edge_count, 0);
    expect_errors(folder, name, &errors);
    strbuf_release(&text);
}

/* Each is added, taken back and added to the same plan again, then undone. */
static void check_good_fragment(const char *folder, const char *name, void *ctx)
{
    struct plan *plan = ctx;
    struct strbuf text = slurp(folder, name);
    struct plan_source source = source_of(name, &text);
    struct plan_errors errors = {0};
    uint32_t tasks = plan->task_count;
    for (int round = 0; round < 3; round++) {
        if (!plan_add(plan, &source, &errors)) {
            struct strbuf got = printed(folder, name, &errors);
            fail_msg("%s", strbuf_text(&got));
        }
        plan_undo_add(plan);
        assert_int_equal(plan->task_count, tasks);
    }
    strbuf_release(&text);
}

static void good_plans_are_read(void **state)
{
    (void)state;
    assert_true(for_each_file("good", check_good, NULL) >= 10);
}

static void bad_plans_are_refused_as_expected(void **state)
{
    (void)state;
    assert_true(for_each_file("bad", check_bad, NULL) >= 80);
}

static void good_fragments_are_added_and_taken_back(void **state)
{
    (void)state;
    struct plan *plan = read_base("good-fragments");
    assert_true(for_each_file("good-fragments", check_good_fragment, plan) >=
                5);
    plan_free(plan);
}

static void bad_fragments_are_refused_as_expected(void **state)
{
    (void)state;
    struct plan *plan = read_base("bad-fragments");
    assert_true(for_each_file("bad-fragments", check_bad_fragment, plan) >= 15);
    plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_plans_are_read),
        cmocka_unit_test(bad_plans_are_refused_as_expected),
        cmocka_unit_test(good_fragments_are_added_and_taken_back),
        cmocka_unit_test(bad_fragments_are_refused_as_expected),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("plan_corpus", tests, NULL, NULL);
}
