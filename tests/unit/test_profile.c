/* SPDX-License-Identifier: MIT */
#include "sim/profile.h"

#include "base/duration.h"
#include "base/strbuf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct plan *read_plan(const char *tasks)
{
    struct strbuf text = {0};
    strbuf_addf(&text, "sluice: 1\nname: test\ntasks:\n%s", tasks);
    struct plan_source source = {
        .file = "plan.yaml",
        .text = text.text,
        .len = text.len,
        .processors = 4,
    };
    struct plan_errors errors = {0};
    struct plan *plan = NULL;
    if (!plan_read(&plan, &source, &errors)) {
        fail_msg("%u: %s", errors.items[0].mark.line, errors.items[0].text);
    }
    strbuf_release(&text);
    return plan;
}

/* The path as its ids with spaces between. */
static void assert_path(const struct plan *plan,
                        const struct profile *profile,
                        const char *wanted)
{
    struct strbuf path = {0};
    for (uint32_t ix = 0; ix < profile->path_count; ix++) {
        strbuf_addf(&path,
                    "%s%s",
                    ix > 0 ? " " : "",
                    plan->tasks[profile->path[ix]].id);
    }
    assert_string_equal(strbuf_text(&path), wanted);
    strbuf_release(&path);
}

static void one_task_is_its_own_path(void **state)
{
    (void)state;
    struct plan *plan = read_plan("  - {id: a, run: x, estimate: 7m}\n");
    struct profile profile = profile_of(plan);
    assert_int_equal(profile.longest_ns, 7 * MINUTE_NS);
    assert_int_equal(profile.work_ns, 7 * MINUTE_NS);
    assert_int_equal(profile.peak, 1);
    assert_path(plan, &profile, "a");
    profile_release(&profile);
    assert_null(profile.path);
    plan_free(plan);
}

static void the_longest_path_is_by_time_not_by_tasks(void **state)
{
    (void)state;
    struct plan *plan =
        read_plan("  - {id: end, run: x, estimate: 1m, needs: [c, long]}\n"
                  "  - {id: a, run: x, estimate: 2m}\n"
                  "  - {id: b, run: x, estimate: 2m, needs: [a]}\n"
                  "  - {id: c, run: x, estimate: 2m, needs: [b]}\n"
                  "  - {id: long, run: x, estimate: 20m, needs: [a]}\n");
    struct profile profile = profile_of(plan);
    assert_int_equal(profile.longest_ns, 23 * MINUTE_NS);
    assert_int_equal(profile.work_ns, 27 * MINUTE_NS);
    assert_int_equal(profile.peak, 2);
    assert_path(plan, &profile, "a long end");
    profile_release(&profile);
    plan_free(plan);
}

static void without_an_estimate_it_is_ten_minutes(void **state)
{
    (void)state;
    struct plan *plan = read_plan("  - {id: a, run: x}\n"
                                  "  - {id: b, run: x, needs: [a]}\n");
    struct profile profile = profile_of(plan);
    assert_int_equal(profile.longest_ns, 20 * MINUTE_NS);
    profile_release(&profile);
    plan_free(plan);
}

/* a 0-10, b 10-20: the end of one and the start of the next do not overlap. */
static void touching_tasks_do_not_overlap(void **state)
{
    (void)state;
    struct plan *plan =
        read_plan("  - {id: a, run: x, estimate: 10m}\n"
                  "  - {id: b, run: x, estimate: 10m, needs: [a]}\n"
                  "  - {id: c, run: x, estimate: 10m, needs: [b]}\n");
    struct profile profile = profile_of(plan);
    assert_int_equal(profile.peak, 1);
    profile_release(&profile);
    plan_free(plan);
}

/* a 0-5, then b and c 5-15, d 0-6: three at once from 5 to 6. */
static void the_peak_counts_what_runs_at_once(void **state)
{
    (void)state;
    struct plan *plan =
        read_plan("  - {id: a, run: x, estimate: 5m}\n"
                  "  - {id: b, run: x, estimate: 10m, needs: [a]}\n"
                  "  - {id: c, run: x, estimate: 10m, needs: [a]}\n"
                  "  - {id: d, run: x, estimate: 6m}\n");
    struct profile profile = profile_of(plan);
    assert_int_equal(profile.peak, 3);
    profile_release(&profile);
    plan_free(plan);
}

static void tasks_of_no_length_still_count_as_one(void **state)
{
    (void)state;
    struct plan *plan =
        read_plan("  - {id: a, run: x, estimate: 0s}\n"
                  "  - {id: b, run: x, estimate: 0s, needs: [a]}\n");
    struct profile profile = profile_of(plan);
    assert_int_equal(profile.longest_ns, 0);
    assert_int_equal(profile.work_ns, 0);
    assert_int_equal(profile.peak, 1);
    profile_release(&profile);
    plan_free(plan);
}

static void a_fan_peaks_with_all_of_it(void **state)
{
    (void)state;
    struct strbuf tasks = {0};
    strbuf_adds(&tasks, "  - {id: root, run: x, estimate: 1m}\n");
    for (int ix = 0; ix < 200; ix++) {
        strbuf_addf(&tasks,
                    "  - {id: t%d, run: x, estimate: %dm, needs: [root]}\n",
                    ix,
                    1 + ix % 7);
    }
    struct plan *plan = read_plan(strbuf_text(&tasks));
    struct profile profile = profile_of(plan);
    assert_int_equal(profile.peak, 200);
    assert_int_equal(profile.longest_ns, 8 * MINUTE_NS);
    assert_path(plan, &profile, "root t6");
    profile_release(&profile);
    plan_free(plan);
    strbuf_release(&tasks);
}

static void a_long_chain_is_no_trouble(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    struct strbuf tasks = {0};
    strbuf_adds(&tasks, "  - {id: t0, run: x, estimate: 1m}\n");
    for (int ix = 1; ix < COUNT; ix++) {
        strbuf_addf(&tasks,
                    "  - {id: t%d, run: x, estimate: 1m, needs: [t%d]}\n",
                    ix,
                    ix - 1);
    }
    struct plan *plan = read_plan(strbuf_text(&tasks));
    struct profile profile = profile_of(plan);
    assert_int_equal(profile.path_count, COUNT);
    assert_int_equal(profile.path[0], 0);
    assert_int_equal(profile.path[COUNT - 1], COUNT - 1);
    assert_int_equal(profile.longest_ns, COUNT * MINUTE_NS);
    assert_int_equal(profile.peak, 1);
    profile_release(&profile);
    plan_free(plan);
    strbuf_release(&tasks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_task_is_its_own_path),
        cmocka_unit_test(the_longest_path_is_by_time_not_by_tasks),
        cmocka_unit_test(without_an_estimate_it_is_ten_minutes),
        cmocka_unit_test(touching_tasks_do_not_overlap),
        cmocka_unit_test(the_peak_counts_what_runs_at_once),
        cmocka_unit_test(tasks_of_no_length_still_count_as_one),
        cmocka_unit_test(a_fan_peaks_with_all_of_it),
        cmocka_unit_test(a_long_chain_is_no_trouble),
    };
    return cmocka_run_group_tests_name("profile", tests, NULL, NULL);
}
