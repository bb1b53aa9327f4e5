/* SPDX-License-Identifier: MIT */
#include "engine/carry.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void what_a_blocked_session_lacks_is_kept(void **state)
{
    (void)state;
    char *text = NULL;
    struct attempt_result result = {0};
    struct verdict verdict = {
        .outcome = OUTCOME_BLOCKED,
        .lacks = OUTCOME_LACKS_MONEY,
    };
    carry_end(&text, &verdict, OUTCOME_BLOCKED, "spent", &result);
    assert_int_equal(carry_lack(text, "spent"), OUTCOME_LACKS_MONEY);
    verdict.lacks = OUTCOME_LACKS_START;
    carry_end(&text, &verdict, OUTCOME_BLOCKED, "no shell", &result);
    assert_int_equal(carry_lack(text, "no shell"), OUTCOME_LACKS_START);
    /* A question that happens to begin like a reason of ours. */
    verdict.lacks = OUTCOME_LACKS_ANSWER;
    carry_end(&text, &verdict, OUTCOME_BLOCKED, "budget: whose?", &result);
    assert_int_equal(carry_lack(text, "budget: whose?"), OUTCOME_LACKS_ANSWER);
    mem_free(text);
}

static void an_attempt_that_is_not_blocked_lacks_nothing(void **state)
{
    (void)state;
    char *text = NULL;
    struct attempt_result result = {0};
    struct verdict verdict = {.lacks = OUTCOME_LACKS_MONEY};
    carry_end(&text, &verdict, OUTCOME_BLOCKED, "spent", &result);
    carry_end(&text, &verdict, OUTCOME_FAILED, "exit code 1", &result);
    assert_int_equal(carry_lack(text, "exit code 1"), OUTCOME_LACKS_ANSWER);
    mem_free(text);
}

static void rows_of_earlier_versions_are_read_by_their_words(void **state)
{
    (void)state;
    static const char old[] = "{\"after\":\"blocked\"}";
    assert_int_equal(carry_lack(old, "budget: it has cost 1"),
                     OUTCOME_LACKS_MONEY);
    assert_int_equal(carry_lack(NULL, "it could not be started: no"),
                     OUTCOME_LACKS_START);
    assert_int_equal(carry_lack(old, "which one?"), OUTCOME_LACKS_ANSWER);
    assert_int_equal(carry_lack(NULL, NULL), OUTCOME_LACKS_ANSWER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_blocked_session_lacks_is_kept),
        cmocka_unit_test(an_attempt_that_is_not_blocked_lacks_nothing),
        cmocka_unit_test(rows_of_earlier_versions_are_read_by_their_words),
    };
    return cmocka_run_group_tests_name("carry", tests, NULL, NULL);
}
