/* SPDX-License-Identifier: MIT */
#include "exec/outcome.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The words are in stores and results, and other programs read them. */
static void the_words_stay_as_they_are(void **state)
{
    (void)state;
    static const char *const words[OUTCOME_COUNT] = {
        [OUTCOME_DONE] = "done",
        [OUTCOME_FAILED] = "failed",
        [OUTCOME_REFUSED] = "refused",
        [OUTCOME_CHANGES] = "changes",
        [OUTCOME_BLOCKED] = "blocked",
        [OUTCOME_CHECKPOINT] = "checkpoint",
        [OUTCOME_LOST] = "lost",
        [OUTCOME_STOPPED] = "stopped",
        [OUTCOME_LATER] = "later",
        [OUTCOME_FATAL] = "failed",
    };
    for (unsigned ix = 0; ix < OUTCOME_COUNT; ix++) {
        enum sched_outcome read = OUTCOME_DONE;
        assert_string_equal(outcome_name(ix), words[ix]);
        assert_true(outcome_read(words[ix], &read));
        assert_int_equal(read, ix == OUTCOME_FATAL ? OUTCOME_FAILED : ix);
    }
}

static void what_is_no_outcome_is_not_read(void **state)
{
    (void)state;
    enum sched_outcome out = OUTCOME_CHANGES;
    assert_false(outcome_read(NULL, &out));
    assert_false(outcome_read("", &out));
    assert_false(outcome_read("Done", &out));
    assert_false(outcome_read("running", &out));
    assert_false(outcome_read_said(NULL, &out));
    assert_int_equal(out, OUTCOME_CHANGES);
}

static void a_result_says_neither_lost_nor_stopped(void **state)
{
    (void)state;
    for (unsigned ix = 0; ix < OUTCOME_COUNT; ix++) {
        enum sched_outcome out = OUTCOME_DONE;
        bool is_said = ix != OUTCOME_LOST && ix != OUTCOME_STOPPED;
        unsigned read = ix == OUTCOME_FATAL ? OUTCOME_FAILED : ix;
        assert_int_equal(outcome_read_said(outcome_name(ix), &out), is_said);
        assert_int_equal(out, is_said ? read : OUTCOME_DONE);
    }
}

static void exit_codes_mean_what_they_are_documented_to(void **state)
{
    (void)state;
    for (int code = 0; code < 256; code++) {
        enum sched_outcome wanted = code == 0    ? OUTCOME_DONE
                                    : code == 20 ? OUTCOME_CHANGES
                                    : code == 30 ? OUTCOME_BLOCKED
                                    : code == 40 ? OUTCOME_LATER
                                    : code == 50 ? OUTCOME_FATAL
                                    : code == 75 ? OUTCOME_REFUSED
                                                 : OUTCOME_FAILED;
        assert_int_equal(outcome_of_code(code), wanted);
        assert_int_equal(outcome_is_missing(code), code == 126 || code == 127);
    }
    assert_int_equal(outcome_of_code(-1), OUTCOME_FAILED);
    assert_int_equal(outcome_code(OUTCOME_DONE), 0);
    assert_int_equal(outcome_code(OUTCOME_FAILED), 1);
    assert_int_equal(outcome_code(OUTCOME_REFUSED), 75);
    assert_int_equal(outcome_code(OUTCOME_CHANGES), 20);
    assert_int_equal(outcome_code(OUTCOME_BLOCKED), 30);
    assert_int_equal(outcome_code(OUTCOME_CHECKPOINT), 0);
    assert_int_equal(outcome_code(OUTCOME_LATER), 40);
    assert_int_equal(outcome_code(OUTCOME_FATAL), 50);
}

static void what_is_lacking_has_a_word(void **state)
{
    (void)state;
    static const char *const words[] = {"answer", "budget", "start"};
    for (unsigned ix = 0; ix < ARRAY_COUNT(words); ix++) {
        assert_string_equal(outcome_lack_name(ix), words[ix]);
        assert_int_equal(outcome_read_lack(words[ix]), ix);
    }
    assert_int_equal(outcome_read_lack(NULL), OUTCOME_LACKS_ANSWER);
    assert_int_equal(outcome_read_lack("love"), OUTCOME_LACKS_ANSWER);
}

static void a_cause_is_known_of_every_end(void **state)
{
    (void)state;
    struct attempt_found found = {.state = ATTEMPT_ENDED};
    found.exit.cause = ATTEMPT_TIMEOUT;
    assert_string_equal(outcome_cause(&found), "timeout");
    found.exit.cause = ATTEMPT_EXIT;
    assert_string_equal(outcome_cause(&found), "exit");
    found.state = ATTEMPT_NEVER;
    assert_string_equal(outcome_cause(&found), "spawn");
    found.state = ATTEMPT_LOST;
    assert_string_equal(outcome_cause(&found), "lost");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_words_stay_as_they_are),
        cmocka_unit_test(what_is_no_outcome_is_not_read),
        cmocka_unit_test(a_result_says_neither_lost_nor_stopped),
        cmocka_unit_test(exit_codes_mean_what_they_are_documented_to),
        cmocka_unit_test(what_is_lacking_has_a_word),
        cmocka_unit_test(a_cause_is_known_of_every_end),
    };
    return cmocka_run_group_tests_name("outcome", tests, NULL, NULL);
}
