/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void every_row_of_the_table_is_complete(void **state)
{
    (void)state;
    for (int ix = 0; ix < ERR_COUNT; ix++) {
        enum err err = (enum err)ix;
        assert_true(strlen(err_name(err)) > 0);
        assert_true(strlen(err_text(err)) > 0);
        assert_in_range(err_exit_code(err), 0, 3);
    }
}

static void names_are_unique_and_fit_json_and_logs(void **state)
{
    (void)state;
    for (int a = 0; a < ERR_COUNT; a++) {
        const char *name = err_name((enum err)a);
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz-"),
                         strlen(name));
        for (int b = 0; b < a; b++) {
            assert_string_not_equal(name, err_name((enum err)b));
        }
    }
}

static void only_ok_is_zero_and_exits_with_zero(void **state)
{
    (void)state;
    assert_int_equal(ERR_OK, 0);
    for (int ix = 0; ix < ERR_COUNT; ix++) {
        assert_int_equal(err_exit_code((enum err)ix) == 0, ix == ERR_OK);
    }
}

static void rows_belong_to_their_reasons(void **state)
{
    (void)state;
    assert_string_equal(err_name(ERR_OK), "ok");
    assert_string_equal(err_name(ERR_NOT_FOUND), "not-found");
    assert_string_equal(err_text(ERR_LIMIT), "a limit is exceeded");
    assert_int_equal(err_exit_code(ERR_DENIED), 3);
    assert_string_equal(err_name(ERR_CORRUPT), "corrupt");
}

static void a_name_leads_back_to_its_reason(void **state)
{
    (void)state;
    for (int ix = 0; ix < ERR_COUNT; ix++) {
        enum err err = (enum err)ix;
        assert_int_equal(err_from_name(err_name(err)), err);
    }
}

static void an_unknown_name_is_an_error_nevertheless(void **state)
{
    (void)state;
    assert_int_equal(err_from_name(""), ERR_IO);
    assert_int_equal(err_from_name("Conflict"), ERR_IO);
    assert_int_equal(err_from_name("conflict "), ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_table_is_complete),
        cmocka_unit_test(names_are_unique_and_fit_json_and_logs),
        cmocka_unit_test(only_ok_is_zero_and_exits_with_zero),
        cmocka_unit_test(rows_belong_to_their_reasons),
        cmocka_unit_test(a_name_leads_back_to_its_reason),
        cmocka_unit_test(an_unknown_name_is_an_error_nevertheless),
    };
    return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
