/* SPDX-License-Identifier: MIT */
#include "engine/carry.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { TOKEN = 7 };

/* An attempt ends, with `resume` in its result. */
static void end(char **text,
                const struct verdict *verdict,
                enum sched_outcome outcome,
                const char *reason,
                const char *resume)
{
    char *copy = resume != NULL ? mem_strdup(resume) : NULL;
    struct attempt_result result = {.resume = copy};
    carry_end(text,
              &(struct carry_ended){
                  .token = TOKEN,
                  .verdict = verdict,
                  .outcome = outcome,
                  .reason = reason,
                  .result = &result,
              });
    mem_free(copy);
}

static void what_a_blocked_session_lacks_is_kept(void **state)
{
    (void)state;
    char *text = NULL;
    struct verdict verdict = {
        .outcome = OUTCOME_BLOCKED,
        .lacks = OUTCOME_LACKS_MONEY,
    };
    end(&text, &verdict, OUTCOME_BLOCKED, "spent", NULL);
    assert_int_equal(carry_lack(text, "spent"), OUTCOME_LACKS_MONEY);
    verdict.lacks = OUTCOME_LACKS_START;
    end(&text, &verdict, OUTCOME_BLOCKED, "no shell", NULL);
    assert_int_equal(carry_lack(text, "no shell"), OUTCOME_LACKS_START);
    /* A question that happens to begin like a reason of ours. */
    verdict.lacks = OUTCOME_LACKS_ANSWER;
    end(&text, &verdict, OUTCOME_BLOCKED, "budget: whose?", NULL);
    assert_int_equal(carry_lack(text, "budget: whose?"), OUTCOME_LACKS_ANSWER);
    mem_free(text);
}

static void a_question_is_that_of_a_blocked_session(void **state)
{
    (void)state;
    char *text = NULL;
    struct verdict verdict = {.outcome = OUTCOME_BLOCKED};
    end(&text, &verdict, OUTCOME_BLOCKED, "which?", "id");
    struct carry carry = carry_read(text);
    assert_string_equal(carry.question, "which?");
    assert_string_equal(carry.resume, "id");
    carry_release(&carry);
    end(&text, &verdict, OUTCOME_FAILED, "no", "id");
    carry = carry_read(text);
    assert_null(carry.question);
    assert_null(carry.resume); /* it may be the cause */
    carry_release(&carry);
    end(&text, &verdict, OUTCOME_DONE, NULL, "id");
    carry = carry_read(text);
    assert_string_equal(carry.resume, "id");
    carry_release(&carry);
    mem_free(text);
}

/* What the next attempt is told, and the conversation that it continues. */
static void each_outcome_is_told_to_the_next_attempt(void **state)
{
    (void)state;
    static const struct {
        enum sched_outcome outcome;
        const char *resume; /* in the result */
        const char *after;
        const char *then; /* the conversation of the next attempt */
    } cases[] = {
        {OUTCOME_BLOCKED, "new", "blocked", "new"},
        {OUTCOME_BLOCKED, NULL, "blocked", NULL},
        {OUTCOME_CHANGES, "new", "done", "new"},
        {OUTCOME_CHECKPOINT, "new", "checkpoint", "new"},
        {OUTCOME_LOST, "new", "failed", NULL},
        {OUTCOME_FAILED, "new", "failed", NULL},
        {OUTCOME_REFUSED, NULL, "refused", "old"}, /* it did not begin */
        {OUTCOME_REFUSED, "new", "refused", "new"},
        {OUTCOME_LATER, NULL, "later", "old"},
        {OUTCOME_LATER, "new", "later", "new"},
    };
    struct verdict verdict = {0};
    for (size_t ix = 0; ix < sizeof(cases) / sizeof(cases[0]); ix++) {
        char *text = NULL;
        end(&text, &verdict, OUTCOME_BLOCKED, "which?", "old");
        end(&text, &verdict, cases[ix].outcome, "it said so", cases[ix].resume);
        struct carry carry = carry_read(text);
        assert_string_equal(carry.after, cases[ix].after);
        assert_string_equal(carry.reason, "it said so");
        if (cases[ix].then != NULL) {
            assert_string_equal(carry.resume, cases[ix].then);
        } else {
            assert_null(carry.resume);
        }
        carry_release(&carry);
        assert_null(carry.after);
        mem_free(text);
    }
}

static void work_sent_back_by_an_operator_is_a_round_of_its_own(void **state)
{
    (void)state;
    char *text = NULL;
    struct verdict verdict = {0};
    carry_send_back(&text);
    struct carry carry = carry_read(text);
    assert_string_equal(carry.after, "changes");
    assert_int_equal(carry.since, 0);
    carry_release(&carry);
    end(&text, &verdict, OUTCOME_DONE, NULL, NULL);
    assert_null(text); /* nothing to pass on */

    carry_send_back_since(&text, 5);
    carry_send_back_since(&text, 9);
    end(&text, &verdict, OUTCOME_FAILED, "no", "id");
    end(&text, &verdict, OUTCOME_DONE, NULL, NULL);
    carry_send_back(&text);
    carry = carry_read(text);
    assert_string_equal(carry.after, "changes");
    assert_null(carry.resume);
    assert_null(carry.reason);
    assert_int_equal(carry.since, 9);
    carry_release(&carry);
    mem_free(text);
}

static void an_attempt_that_is_not_blocked_lacks_nothing(void **state)
{
    (void)state;
    char *text = NULL;
    struct verdict verdict = {.lacks = OUTCOME_LACKS_MONEY};
    end(&text, &verdict, OUTCOME_BLOCKED, "spent", NULL);
    end(&text, &verdict, OUTCOME_FAILED, "exit code 1", NULL);
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

static void check_messages(const char *text, uint32_t count, uint32_t heard)
{
    struct carry carry = carry_read(text);
    assert_int_equal(carry.message_count, count);
    assert_int_equal(carry.heard, heard);
    carry_release(&carry);
}

static void messages_stay_until_the_task_is_done(void **state)
{
    (void)state;
    char *text = NULL;
    struct verdict verdict = {0};
    assert_int_equal(carry_tell(&text, TOKEN - 1, "use \"tabs\""), ERR_OK);
    assert_int_equal(carry_tell(&text, TOKEN, "and\nspaces"), ERR_OK);
    struct carry carry = carry_read(text);
    uint64_t token = 0;
    assert_string_equal(carry.after, "first");
    assert_string_equal(carry_message(&carry, 0, &token), "use \"tabs\"");
    assert_int_equal(token, TOKEN - 1);
    assert_string_equal(carry_message(&carry, 1, NULL), "and\nspaces");
    carry_release(&carry);
    end(&text, &verdict, OUTCOME_FAILED, "exit code 1", NULL);
    check_messages(text, 2, 0);
    end(&text, &verdict, OUTCOME_DONE, NULL, "talk");
    check_messages(text, 0, 0);
    assert_int_equal(carry_tell(&text, TOKEN, "again"), ERR_OK);
    end(&text, &verdict, OUTCOME_DONE, NULL, NULL);
    assert_null(text);
}

static void a_conversation_has_heard_what_came_before_it(void **state)
{
    (void)state;
    char *text = NULL;
    struct verdict verdict = {0};
    assert_int_equal(carry_tell(&text, TOKEN - 1, "before"), ERR_OK);
    assert_int_equal(carry_tell(&text, TOKEN, "during"), ERR_OK);
    end(&text, &verdict, OUTCOME_CHECKPOINT, NULL, "talk");
    check_messages(text, 2, 1);
    end(&text, &verdict, OUTCOME_REFUSED, "limit", NULL);
    check_messages(text, 2, 1);
    end(&text, &verdict, OUTCOME_LATER, "not yet", NULL);
    check_messages(text, 2, 1);
    /* The conversation is dropped: a new one has heard nothing. */
    end(&text, &verdict, OUTCOME_FATAL, "exit code 50", "talk");
    check_messages(text, 2, 0);
    struct carry carry = carry_read(text);
    assert_null(carry.resume);
    assert_string_equal(carry.after, "failed");
    carry_release(&carry);
    mem_free(text);
}

static void messages_have_limits(void **state)
{
    (void)state;
    char *text = NULL;
    for (int ix = 0; ix < CARRY_MESSAGES_MAX; ix++) {
        assert_int_equal(carry_tell(&text, TOKEN, "x"), ERR_OK);
    }
    assert_int_equal(carry_tell(&text, TOKEN, "x"), ERR_LIMIT);
    check_messages(text, CARRY_MESSAGES_MAX, 0);
    mem_free(text);
    text = NULL;
    char *large = mem_zalloc(CARRY_MESSAGES_BYTES_MAX, 1);
    memset(large, 'x', CARRY_MESSAGES_BYTES_MAX - 1);
    assert_int_equal(carry_tell(&text, TOKEN, large), ERR_OK);
    assert_int_equal(carry_tell(&text, TOKEN, "x"), ERR_OK);
    assert_int_equal(carry_tell(&text, TOKEN, "x"), ERR_LIMIT);
    mem_free(large);
    mem_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_blocked_session_lacks_is_kept),
        cmocka_unit_test(a_question_is_that_of_a_blocked_session),
        cmocka_unit_test(an_attempt_that_is_not_blocked_lacks_nothing),
        cmocka_unit_test(each_outcome_is_told_to_the_next_attempt),
        cmocka_unit_test(work_sent_back_by_an_operator_is_a_round_of_its_own),
        cmocka_unit_test(rows_of_earlier_versions_are_read_by_their_words),
        cmocka_unit_test(messages_stay_until_the_task_is_done),
        cmocka_unit_test(a_conversation_has_heard_what_came_before_it),
        cmocka_unit_test(messages_have_limits),
    };
    return cmocka_run_group_tests_name("carry", tests, NULL, NULL);
}
