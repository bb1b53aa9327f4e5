/* SPDX-License-Identifier: MIT */
#include "base/diag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void sets_the_text_and_returns_the_reason(void **state)
{
    (void)state;
    struct diag diag = {0};
    enum err err = diag_set(&diag, ERR_IO, "open %s: %d", "a.yaml", 13);
    assert_int_equal(err, ERR_IO);
    assert_string_equal(diag.text, "open a.yaml: 13");
}

static void accepts_that_nobody_listens(void **state)
{
    (void)state;
    assert_int_equal(diag_set(NULL, ERR_BUSY, "%s", "unread"), ERR_BUSY);
}

static void the_last_text_wins_as_a_whole(void **state)
{
    (void)state;
    struct diag diag = {0};
    (void)diag_set(&diag, ERR_IO, "a long first text");
    (void)diag_set(&diag, ERR_LIMIT, "short");
    assert_string_equal(diag.text, "short");
}

static void cuts_what_is_too_long(void **state)
{
    (void)state;
    char text[DIAG_BYTES + 100];
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    struct diag diag = {0};
    assert_int_equal(diag_set(&diag, ERR_INVALID, "%s", text), ERR_INVALID);
    assert_int_equal(strlen(diag.text), DIAG_BYTES - 1);
    assert_memory_equal(diag.text, text, DIAG_BYTES - 1);
}

static void keeps_what_just_fits(void **state)
{
    (void)state;
    char text[DIAG_BYTES];
    memset(text, 'y', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    struct diag diag = {0};
    (void)diag_set(&diag, ERR_INVALID, "%s", text);
    assert_string_equal(diag.text, text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_the_text_and_returns_the_reason),
        cmocka_unit_test(accepts_that_nobody_listens),
        cmocka_unit_test(the_last_text_wins_as_a_whole),
        cmocka_unit_test(cuts_what_is_too_long),
        cmocka_unit_test(keeps_what_just_fits),
    };
    return cmocka_run_group_tests_name("diag", tests, NULL, NULL);
}
