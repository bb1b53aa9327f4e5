/* SPDX-License-Identifier: MIT */
#include "base/invariant.h"

#include "tests/support/death.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void break_it(void *ctx)
{
    INVARIANT(ctx == NULL);
}

static void a_true_condition_costs_nothing(void **state)
{
    (void)state;
    break_it(NULL);
}

static void a_false_one_stops_with_place_and_condition(void **state)
{
    (void)state;
    int any = 0;
    death_expect(break_it, &any, "sluice: bug at tests/unit/test_invariant.c:");
    death_expect(break_it, &any, ": assertion failed: ctx == NULL\n");
}

static void fail_at_length(void *ctx)
{
    invariant_failed("file.c", 12, ctx);
}

static void a_long_condition_is_cut(void **state)
{
    (void)state;
    char text[2000];
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    death_expect(fail_at_length, text, "file.c:12: assertion failed: xxxx");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_true_condition_costs_nothing),
        cmocka_unit_test(a_false_one_stops_with_place_and_condition),
        cmocka_unit_test(a_long_condition_is_cut),
    };
    return cmocka_run_group_tests_name("invariant", tests, NULL, NULL);
}
