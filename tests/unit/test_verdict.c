/* SPDX-License-Identifier: MIT */
#include "exec/verdict.h"

#include "base/macros.h"
#include "exec/outcome.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct row {
    enum attempt_cause cause;
    int code;
    int signal;
    const char *said; /* outcome of the result, or NULL */
    enum sched_outcome wanted;
    bool cannot_tell;
    bool missing;
};

static void check(const struct row *row)
{
    struct attempt_found found = {
        .state = ATTEMPT_ENDED,
        .exit = {.cause = row->cause, .code = row->code, .signal = row->signal},
    };
    struct attempt_result result = {.present = row->said != NULL};
    result.has_outcome = outcome_read_said(row->said, &result.outcome);
    struct strbuf reason = {0};
    struct verdict verdict = verdict_of(&found, &result, NULL, &reason);
    if (verdict.outcome != row->wanted ||
        verdict.cannot_tell != row->cannot_tell ||
        verdict.missing != row->missing) {
        fail_msg("cause %d, code %d, says %s: %s",
                 row->cause,
                 row->code,
                 row->said != NULL ? row->said : "nothing",
                 outcome_name(verdict.outcome));
    }
    /* Whoever did not do well is told why. */
    assert_int_equal(reason.len > 0, verdict.outcome != OUTCOME_DONE);
    strbuf_release(&reason);
}

static void the_worse_of_code_and_result_counts(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {ATTEMPT_EXIT, 0, 0, NULL, OUTCOME_DONE, false, false},
        {ATTEMPT_EXIT, 0, 0, "done", OUTCOME_DONE, false, false},
        {ATTEMPT_EXIT, 0, 0, "changes", OUTCOME_CHANGES, false, false},
        {ATTEMPT_EXIT, 0, 0, "refused", OUTCOME_REFUSED, false, false},
        {ATTEMPT_EXIT, 0, 0, "checkpoint", OUTCOME_CHECKPOINT, false, false},
        {ATTEMPT_EXIT, 1, 0, NULL, OUTCOME_FAILED, false, false},
        {ATTEMPT_EXIT, 1, 0, "done", OUTCOME_FAILED, false, false},
        {ATTEMPT_EXIT, 1, 0, "blocked", OUTCOME_BLOCKED, false, false},
        {ATTEMPT_EXIT, 20, 0, NULL, OUTCOME_CHANGES, false, false},
        {ATTEMPT_EXIT, 20, 0, "done", OUTCOME_CHANGES, false, false},
        {ATTEMPT_EXIT, 30, 0, "refused", OUTCOME_BLOCKED, false, false},
        {ATTEMPT_EXIT, 0, 0, "later", OUTCOME_LATER, false, false},
        {ATTEMPT_EXIT, 1, 0, "later", OUTCOME_LATER, false, false},
        {ATTEMPT_EXIT, 40, 0, NULL, OUTCOME_LATER, false, false},
        {ATTEMPT_EXIT, 40, 0, "done", OUTCOME_LATER, false, false},
        {ATTEMPT_EXIT, 50, 0, NULL, OUTCOME_FATAL, false, false},
        {ATTEMPT_EXIT, 50, 0, "later", OUTCOME_FATAL, false, false},
        {ATTEMPT_EXIT, 75, 0, "done", OUTCOME_REFUSED, false, false},
        {ATTEMPT_EXIT, 127, 0, NULL, OUTCOME_BLOCKED, true, true},
        {ATTEMPT_EXIT, 126, 0, "done", OUTCOME_BLOCKED, true, true},
        {ATTEMPT_EXIT, 127, 0, "failed", OUTCOME_FAILED, false, false},
        {ATTEMPT_EXIT, -1, 9, "done", OUTCOME_FAILED, true, false},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        check(&rows[ix]);
    }
}

static void who_was_ended_has_said_nothing(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {ATTEMPT_TIMEOUT, -1, 15, "done", OUTCOME_FAILED, false, false},
        {ATTEMPT_IDLE, -1, 15, "done", OUTCOME_FAILED, false, false},
        {ATTEMPT_CANCELLED, 0, 0, "done", OUTCOME_STOPPED, false, false},
        {ATTEMPT_STOPPED, 0, 0, "done", OUTCOME_STOPPED, false, false},
        {ATTEMPT_PREPARE, 1, 0, NULL, OUTCOME_FAILED, true, false},
        {ATTEMPT_PREPARE, 75, 0, NULL, OUTCOME_REFUSED, false, false},
        {ATTEMPT_PREPARE, 127, 0, NULL, OUTCOME_BLOCKED, true, true},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        check(&rows[ix]);
    }
}

static void a_lost_session_blames_nobody(void **state)
{
    (void)state;
    struct attempt_found found = {.state = ATTEMPT_LOST};
    struct attempt_result result = {0};
    struct strbuf reason = {0};
    assert_int_equal(verdict_of(&found, &result, NULL, &reason).outcome,
                     OUTCOME_LOST);
    assert_true(reason.len > 0);
    strbuf_release(&reason);
}

static void what_is_wrong_with_a_result_counts_only_for_success(void **state)
{
    (void)state;
    struct attempt_found found = {.state = ATTEMPT_ENDED};
    struct attempt_result result = {0};
    struct strbuf reason = {0};
    assert_int_equal(verdict_of(&found, &result, "line 1", &reason).outcome,
                     OUTCOME_FAILED);
    assert_string_equal(strbuf_text(&reason), "invalid result: line 1");
    strbuf_clear(&reason);
    found.exit.code = OUTCOME_EXIT_REFUSED;
    assert_int_equal(verdict_of(&found, &result, "line 1", &reason).outcome,
                     OUTCOME_REFUSED);
    strbuf_release(&reason);
}

static void who_used_no_tokens_did_not_work(void **state)
{
    (void)state;
    struct attempt_found found = {.state = ATTEMPT_ENDED};
    struct attempt_result result = {.has_usage = true};
    struct strbuf reason = {0};
    assert_int_equal(verdict_of(&found, &result, NULL, &reason).outcome,
                     OUTCOME_FAILED);
    result.output_tokens = 1;
    assert_int_equal(verdict_of(&found, &result, NULL, &reason).outcome,
                     OUTCOME_DONE);
    strbuf_release(&reason);
}

static void a_time_to_retry_at_is_a_refusal(void **state)
{
    (void)state;
    struct attempt_found found = {.state = ATTEMPT_ENDED};
    struct attempt_result result = {.retry_at_ns = 5};
    struct strbuf reason = {0};
    struct verdict verdict = verdict_of(&found, &result, NULL, &reason);
    assert_int_equal(verdict.outcome, OUTCOME_REFUSED);
    assert_int_equal(verdict.retry_at_ns, 5);
    strbuf_release(&reason);
}

static void a_delay_counts_from_the_end_of_the_session(void **state)
{
    (void)state;
    struct attempt_found found = {
        .state = ATTEMPT_ENDED,
        .exit = {.code = OUTCOME_EXIT_LATER, .ended_ns = 1000},
    };
    struct attempt_result result = {.retry_after_ns = 5};
    struct strbuf reason = {0};
    struct verdict verdict = verdict_of(&found, &result, NULL, &reason);
    assert_int_equal(verdict.outcome, OUTCOME_LATER);
    assert_int_equal(verdict.retry_at_ns, 1005);
    assert_string_equal(strbuf_text(&reason), "it asked to be run again later");
    strbuf_clear(&reason);
    /* With exit code 0 and no outcome it is a limit, as with a time. */
    found.exit.code = OUTCOME_EXIT_DONE;
    verdict = verdict_of(&found, &result, NULL, &reason);
    assert_int_equal(verdict.outcome, OUTCOME_REFUSED);
    assert_int_equal(verdict.retry_at_ns, 1005);
    strbuf_release(&reason);
}

static void only_a_failure_of_its_own_is_final(void **state)
{
    (void)state;
    static const struct {
        struct attempt_exit exit;
        bool has_outcome;
        enum sched_outcome said;
        enum sched_outcome wanted;
    } rows[] = {
        {{.code = 1}, false, OUTCOME_DONE, OUTCOME_FATAL},
        {{.code = 1}, true, OUTCOME_FAILED, OUTCOME_FATAL},
        {{.code = 0}, true, OUTCOME_FAILED, OUTCOME_FATAL},
        {{.code = 0}, true, OUTCOME_DONE, OUTCOME_DONE},
        {{.code = 0}, true, OUTCOME_BLOCKED, OUTCOME_BLOCKED},
        {{.code = -1, .signal = 9}, true, OUTCOME_FAILED, OUTCOME_FAILED},
        {{.code = -1, .cause = ATTEMPT_TIMEOUT},
         true,
         OUTCOME_FAILED,
         OUTCOME_FAILED},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        struct attempt_found found = {
            .state = ATTEMPT_ENDED,
            .exit = rows[ix].exit,
        };
        struct attempt_result result = {
            .final = true,
            .has_outcome = rows[ix].has_outcome,
            .outcome = rows[ix].said,
        };
        struct strbuf reason = {0};
        assert_int_equal(verdict_of(&found, &result, NULL, &reason).outcome,
                         rows[ix].wanted);
        strbuf_release(&reason);
    }
}

/* A session that has finished explicitly. */
struct finish_row {
    struct attempt_exit exit;
    const char *said;
    bool final;
    enum sched_outcome wanted;
};

static void check_finish(const struct finish_row *row)
{
    struct attempt_found found = {.state = ATTEMPT_ENDED, .exit = row->exit};
    struct attempt_result result = {
        .present = true,
        .finish = true,
        .final = row->final,
        .has_usage = true, /* without a token */
    };
    result.has_outcome = outcome_read_said(row->said, &result.outcome);
    struct strbuf reason = {0};
    struct verdict verdict = verdict_of(&found, &result, NULL, &reason);
    if (verdict.outcome != row->wanted || verdict.cannot_tell ||
        verdict.missing) {
        fail_msg("code %d, signal %d, finishes with %s: %s",
                 row->exit.code,
                 row->exit.signal,
                 row->said,
                 outcome_name(verdict.outcome));
    }
    assert_int_equal(reason.len > 0, verdict.outcome != OUTCOME_DONE);
    strbuf_release(&reason);
}

static void who_has_finished_is_believed(void **state)
{
    (void)state;
    static const struct finish_row rows[] = {
        {{.code = 0}, "done", false, OUTCOME_DONE},
        {{.code = 1}, "done", false, OUTCOME_DONE},
        {{.code = 20}, "done", false, OUTCOME_DONE},
        {{.code = 50}, "done", false, OUTCOME_DONE},
        {{.code = 75}, "done", false, OUTCOME_DONE},
        {{.code = 126}, "done", false, OUTCOME_DONE},
        {{.code = 127}, "done", false, OUTCOME_DONE},
        {{.code = -1, .signal = 9}, "done", false, OUTCOME_DONE},
        {{.code = 0}, "failed", false, OUTCOME_FAILED},
        {{.code = 127}, "failed", false, OUTCOME_FAILED},
        {{.code = 0}, "changes", false, OUTCOME_CHANGES},
        {{.code = 1}, "changes", false, OUTCOME_CHANGES},
        {{.code = 75}, "changes", false, OUTCOME_CHANGES},
        {{.code = -1, .signal = 15}, "changes", false, OUTCOME_CHANGES},
        {{.code = 127}, "blocked", false, OUTCOME_BLOCKED},
        {{.code = 50}, "later", false, OUTCOME_LATER},
        {{.code = 30}, "checkpoint", false, OUTCOME_CHECKPOINT},
        {{.code = 30}, "refused", false, OUTCOME_REFUSED},
        {{.code = 0}, "failed", true, OUTCOME_FATAL},
        {{.code = 1}, "failed", true, OUTCOME_FATAL},
        {{.code = -1, .signal = 9}, "failed", true, OUTCOME_FATAL},
        {{.code = 1}, "done", true, OUTCOME_DONE},
        {{.code = 1}, "blocked", true, OUTCOME_BLOCKED},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        check_finish(&rows[ix]);
    }
}

static void what_it_finishes_with_is_kept(void **state)
{
    (void)state;
    char words[] = "the key is missing";
    struct attempt_found found = {
        .state = ATTEMPT_ENDED,
        .exit = {.code = 1, .ended_ns = 1000},
    };
    struct attempt_result result = {
        .finish = true,
        .has_outcome = true,
        .outcome = OUTCOME_LATER,
        .retry_after_ns = 5,
    };
    struct strbuf reason = {0};
    struct verdict verdict = verdict_of(&found, &result, NULL, &reason);
    assert_int_equal(verdict.retry_at_ns, 1005);
    assert_string_equal(strbuf_text(&reason), "it asked to be run again later");
    strbuf_clear(&reason);
    result = (struct attempt_result){
        .finish = true,
        .has_outcome = true,
        .outcome = OUTCOME_BLOCKED,
        .reason = words,
        .lacks = OUTCOME_LACKS_MONEY,
    };
    verdict = verdict_of(&found, &result, NULL, &reason);
    assert_int_equal(verdict.lacks, OUTCOME_LACKS_MONEY);
    assert_string_equal(strbuf_text(&reason), words);
    strbuf_release(&reason);
}

static void to_finish_without_an_outcome_has_no_effect(void **state)
{
    (void)state;
    static const struct {
        struct attempt_exit exit;
        bool has_usage;
    } rows[] = {
        {{.code = 0}, false},
        {{.code = 0}, true}, /* without a token: a failure */
        {{.code = 1}, false},
        {{.code = 20}, false},
        {{.code = 127}, false},
        {{.code = -1, .signal = 9}, false},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        struct attempt_found found = {
            .state = ATTEMPT_ENDED,
            .exit = rows[ix].exit,
        };
        struct attempt_result result = {.has_usage = rows[ix].has_usage};
        struct strbuf reason = {0};
        struct strbuf other_reason = {0};
        struct verdict verdict = verdict_of(&found, &result, NULL, &reason);
        result.finish = true;
        struct verdict other = verdict_of(&found, &result, NULL, &other_reason);
        assert_int_equal(other.outcome, verdict.outcome);
        assert_int_equal(other.cannot_tell, verdict.cannot_tell);
        assert_int_equal(other.missing, verdict.missing);
        assert_string_equal(strbuf_text(&other_reason), strbuf_text(&reason));
        strbuf_release(&reason);
        strbuf_release(&other_reason);
    }
}

static void who_was_ended_has_not_finished(void **state)
{
    (void)state;
    static const struct {
        struct attempt_found found;
        enum sched_outcome wanted;
    } rows[] = {
        {{.state = ATTEMPT_ENDED, .exit = {.cause = ATTEMPT_TIMEOUT}},
         OUTCOME_FAILED},
        {{.state = ATTEMPT_ENDED, .exit = {.cause = ATTEMPT_IDLE}},
         OUTCOME_FAILED},
        {{.state = ATTEMPT_ENDED, .exit = {.cause = ATTEMPT_CANCELLED}},
         OUTCOME_STOPPED},
        {{.state = ATTEMPT_ENDED, .exit = {.cause = ATTEMPT_STOPPED}},
         OUTCOME_STOPPED},
        {{.state = ATTEMPT_ENDED,
          .exit = {.cause = ATTEMPT_PREPARE, .code = 1}},
         OUTCOME_FAILED},
        {{.state = ATTEMPT_LOST}, OUTCOME_LOST},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        struct attempt_result result = {
            .finish = true,
            .has_outcome = true,
            .outcome = OUTCOME_DONE,
        };
        struct strbuf reason = {0};
        assert_int_equal(
            verdict_of(&rows[ix].found, &result, NULL, &reason).outcome,
            rows[ix].wanted);
        assert_true(reason.len > 0);
        strbuf_release(&reason);
    }
}

static void a_start_that_may_succeed_later_is_refused(void **state)
{
    (void)state;
    struct strbuf reason = {0};
    struct verdict verdict = verdict_of_failed_start(EAGAIN, &reason);
    assert_int_equal(verdict.outcome, OUTCOME_REFUSED);
    assert_false(verdict.missing);
    assert_false(verdict.cannot_tell);
    verdict = verdict_of_failed_start(ENOENT, &reason);
    assert_int_equal(verdict.outcome, OUTCOME_BLOCKED);
    assert_true(verdict.missing);
    assert_true(verdict.cannot_tell);
    strbuf_release(&reason);
}

static void who_lists_no_tasks_speaks_for_its_own(void **state)
{
    (void)state;
    struct attempt_result result = {.present = true};
    struct verdict verdict = {.outcome = OUTCOME_DONE};
    const char *reason = NULL;
    const char *feedback = NULL;
    assert_int_equal(
        verdict_of_task(&verdict, &result, "a", &reason, &feedback),
        OUTCOME_DONE);
    assert_null(reason);
    verdict.batch = true; /* one outcome for several tasks is none */
    assert_int_equal(
        verdict_of_task(&verdict, &result, "a", &reason, &feedback),
        OUTCOME_FAILED);
    assert_non_null(reason);
}

static void each_task_of_a_batch_has_its_own(void **state)
{
    (void)state;
    char a[] = "a";
    char b[] = "b";
    char words[] = "words";
    struct attempt_task_result tasks[] = {
        {.task = a, .outcome = OUTCOME_CHANGES, .feedback = words},
        {.task = b, .outcome = OUTCOME_REFUSED},
    };
    struct attempt_result result = {.tasks = tasks, .task_count = 2};
    struct verdict verdict = {.outcome = OUTCOME_DONE, .batch = true};
    const char *reason = NULL;
    const char *feedback = NULL;
    assert_int_equal(
        verdict_of_task(&verdict, &result, "a", &reason, &feedback),
        OUTCOME_CHANGES);
    assert_non_null(reason);
    assert_ptr_equal(feedback, words);
    /* One task alone cannot be refused: that is the session's to say. It must
     * not pass, either. */
    assert_int_equal(
        verdict_of_task(&verdict, &result, "b", &reason, &feedback),
        OUTCOME_FAILED);
    assert_int_equal(
        verdict_of_task(&verdict, &result, "c", &reason, &feedback),
        OUTCOME_FAILED);
    tasks[0].outcome = OUTCOME_FAILED;
    tasks[0].final = true;
    assert_int_equal(
        verdict_of_task(&verdict, &result, "a", &reason, &feedback),
        OUTCOME_FATAL);
    /* A session that failed as a whole did none of them well. */
    verdict.outcome = OUTCOME_LOST;
    tasks[0].outcome = OUTCOME_DONE;
    assert_int_equal(
        verdict_of_task(&verdict, &result, "a", &reason, &feedback),
        OUTCOME_LOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_worse_of_code_and_result_counts),
        cmocka_unit_test(who_was_ended_has_said_nothing),
        cmocka_unit_test(a_lost_session_blames_nobody),
        cmocka_unit_test(what_is_wrong_with_a_result_counts_only_for_success),
        cmocka_unit_test(who_used_no_tokens_did_not_work),
        cmocka_unit_test(a_time_to_retry_at_is_a_refusal),
        cmocka_unit_test(a_delay_counts_from_the_end_of_the_session),
        cmocka_unit_test(only_a_failure_of_its_own_is_final),
        cmocka_unit_test(who_has_finished_is_believed),
        cmocka_unit_test(what_it_finishes_with_is_kept),
        cmocka_unit_test(to_finish_without_an_outcome_has_no_effect),
        cmocka_unit_test(who_was_ended_has_not_finished),
        cmocka_unit_test(a_start_that_may_succeed_later_is_refused),
        cmocka_unit_test(who_lists_no_tasks_speaks_for_its_own),
        cmocka_unit_test(each_task_of_a_batch_has_its_own),
    };
    return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
