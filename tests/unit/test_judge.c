/* SPDX-License-Identifier: MIT */
#include "agent/judge.h"

#include "base/macros.h"
#include "tests/unit/agent_fixture.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What was seen of a session that succeeded with this last message. */
static struct adapter_seen finished(const char *text)
{
    struct adapter_seen seen = {.finished = true, .succeeded = true};
    adapter_set_buf(&seen.text, text);
    return seen;
}

/* Require an outcome and a part of its reason for a last message. */
static void
expect(enum brief_kind kind, const char *text, enum sched_outcome outcome)
{
    struct brief brief = agent_fixture_brief("gemini", kind);
    struct adapter_seen seen = finished(text);
    struct judgement judgement = agent_fixture_judge(&brief, &seen, 0, "");
    if (judgement.outcome != outcome) {
        fail_msg("%s: %s, not %s",
                 text,
                 outcome_name(judgement.outcome),
                 outcome_name(outcome));
    }
    judge_release(&judgement);
    adapter_seen_release(&seen);
}

static void work_is_done_unless_the_answer_objects(void **state)
{
    (void)state;
    expect(BRIEF_WORK, "", OUTCOME_DONE);
    expect(BRIEF_WORK, "All done.", OUTCOME_DONE);
    expect(BRIEF_WORK, "```json\n{\"outcome\":\"done\"}\n```", OUTCOME_DONE);
    expect(BRIEF_WORK, "{\"outcome\":\"blocked\"}", OUTCOME_BLOCKED);
    expect(BRIEF_WORK, "{\"outcome\":\"impossible\"}", OUTCOME_FAILED);
    expect(BRIEF_WORK, "{\"outcome\":7}", OUTCOME_DONE);
}

static void a_review_needs_a_verdict(void **state)
{
    (void)state;
    expect(BRIEF_REVIEW, "", OUTCOME_FAILED);
    expect(BRIEF_REVIEW, "I approve.", OUTCOME_FAILED);
    expect(BRIEF_REVIEW, "{\"verdict\":\"approve\"}", OUTCOME_DONE);
    expect(BRIEF_REVIEW, "{\"verdict\":\"changes\"}", OUTCOME_CHANGES);
    expect(BRIEF_REVIEW, "{\"verdict\":\"Approve\"}", OUTCOME_FAILED);
    expect(BRIEF_REVIEW, "{\"verdict\":[\"approve\"]}", OUTCOME_FAILED);
    expect(BRIEF_REVIEW, "[{\"verdict\":\"approve\"}]", OUTCOME_FAILED);
    expect(BRIEF_REVIEW,
           "{\"verdict\":\"approve\",\"verdict\":\"changes\"}",
           OUTCOME_FAILED);
}

static void the_last_block_of_json_is_the_answer(void **state)
{
    (void)state;
    expect(BRIEF_REVIEW,
           "First I thought:\n```json\n{\"verdict\":\"approve\"}\n```\nBut:\n"
           "```json\n{\"verdict\":\"changes\",\"feedback\":\"x\"}\n```\n",
           OUTCOME_CHANGES);
    expect(BRIEF_REVIEW,
           "```json\n{\"verdict\":\"changes\",\"feedback\":"
           "\"write ```json\\n{}\\n``` there\"}\n```\n",
           OUTCOME_CHANGES);
    expect(BRIEF_REVIEW, "```json\n{\"verdict\":\"approve\"}", OUTCOME_DONE);
    expect(BRIEF_REVIEW,
           "```json\n{\"verdict\":\"approve\"}\n```\n```json\nno\n```",
           OUTCOME_DONE);
    /* Only so many blocks are tried. */
    expect(BRIEF_REVIEW,
           "```json\n{\"verdict\":\"approve\"}\n```\n"
           "```json ```json ```json ```json ```json ```json ```json ```json",
           OUTCOME_FAILED);
}

static void feedback_reaches_the_next_session(void **state)
{
    (void)state;
    struct brief brief = agent_fixture_brief("claude", BRIEF_REVIEW);
    struct adapter_seen seen = finished("");
    seen.answer = json_pack("{ss,ss}",
                            "verdict",
                            "changes",
                            "feedback",
                            "line 3 lacks a check");
    struct judgement judgement = agent_fixture_judge(&brief, &seen, 0, "");
    assert_int_equal(judgement.outcome, OUTCOME_CHANGES);
    assert_string_equal(strbuf_text(&judgement.feedback),
                        "line 3 lacks a check");
    judge_release(&judgement);
    adapter_seen_release(&seen);
}

/* Not the part before the NUL (13.13). */
static void a_verdict_with_a_nul_is_none(void **state)
{
    (void)state;
    struct brief brief = agent_fixture_brief("claude", BRIEF_REVIEW);
    struct adapter_seen seen = finished("");
    seen.answer = json_loads("{\"verdict\":\"approve\\u0000 nothing\"}",
                             JSON_ALLOW_NUL,
                             NULL);
    assert_non_null(seen.answer);
    struct judgement judgement = agent_fixture_judge(&brief, &seen, 0, "");
    assert_int_equal(judgement.outcome, OUTCOME_FAILED);
    judge_release(&judgement);
    adapter_seen_release(&seen);
}

static void a_batch_judges_each_task_once(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum sched_outcome a;
        enum sched_outcome b;
    } cases[] = {
        {"{\"tasks\":[{\"task\":\"a\",\"verdict\":\"approve\"},"
         "{\"task\":\"b\",\"verdict\":\"changes\"}]}",
         OUTCOME_DONE,
         OUTCOME_CHANGES},
        {"{\"tasks\":[{\"task\":\"b\",\"verdict\":\"approve\"}]}",
         OUTCOME_FAILED,
         OUTCOME_DONE},
        {"{\"tasks\":[{\"task\":\"a\",\"verdict\":\"approve\"},"
         "{\"task\":\"a\",\"verdict\":\"approve\"},"
         "{\"task\":\"a\",\"verdict\":\"approve\"},"
         "{\"task\":\"b\",\"verdict\":\"approve\"}]}",
         OUTCOME_FAILED,
         OUTCOME_DONE},
        {"{\"tasks\":{\"a\":\"approve\"}}", OUTCOME_FAILED, OUTCOME_FAILED},
        {"", OUTCOME_FAILED, OUTCOME_FAILED},
    };
    struct brief brief = agent_fixture_brief("gemini", BRIEF_BATCH);
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        struct adapter_seen seen = finished(cases[ix].text);
        struct judgement judgement = agent_fixture_judge(&brief, &seen, 0, "");
        assert_int_equal(judgement.outcome, OUTCOME_DONE);
        assert_int_equal(judgement.task_count, 2);
        assert_int_equal(judgement.tasks[0].outcome, cases[ix].a);
        assert_int_equal(judgement.tasks[1].outcome, cases[ix].b);
        judge_release(&judgement);
        adapter_seen_release(&seen);
    }
}

static enum sched_outcome outcome_of(const struct adapter_seen *seen,
                                     struct runner_end end,
                                     bool committed)
{
    struct brief brief = agent_fixture_brief("claude", BRIEF_WORK);
    struct judgement judgement = judge_session(&(struct judge_input){
        .brief = &brief,
        .seen = seen,
        .end = &end,
        .errors = "",
        .committed = committed,
    });
    enum sched_outcome outcome = judgement.outcome;
    judge_release(&judgement);
    return outcome;
}

/* A session that hangs, stalls or is slow is silent: either it goes on, or it
 * is stopped from outside. */
static void a_session_that_was_stopped_has_no_answer(void **state)
{
    (void)state;
    struct adapter_seen silent = {0};
    struct adapter_seen good = finished("{\"outcome\":\"done\"}");
    struct runner_end end = {.code = 143, .stop = RUNNER_TERMINATED};
    assert_int_equal(outcome_of(&silent, end, false), OUTCOME_FAILED);
    assert_int_equal(outcome_of(&good, end, false), OUTCOME_FAILED);
    end.stop = RUNNER_CHECKPOINT;
    assert_int_equal(outcome_of(&silent, end, false), OUTCOME_CHECKPOINT);
    assert_int_equal(outcome_of(&good, end, false), OUTCOME_CHECKPOINT);
    adapter_seen_release(&good);
}

static void a_message_makes_a_checkpoint_of_an_answer(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        enum runner_stop stop;
        bool unheard;
        enum sched_outcome wanted;
    } rows[] = {
        {"{\"outcome\":\"done\"}", RUNNER_RAN, false, OUTCOME_DONE},
        {"{\"outcome\":\"done\"}", RUNNER_RAN, true, OUTCOME_CHECKPOINT},
        {"{\"outcome\":\"blocked\"}", RUNNER_RAN, true, OUTCOME_CHECKPOINT},
        {"{\"outcome\":\"lost\"}", RUNNER_RAN, true, OUTCOME_FAILED},
        {"{\"outcome\":\"done\"}", RUNNER_MESSAGE, true, OUTCOME_CHECKPOINT},
        {"{\"outcome\":\"done\"}", RUNNER_TERMINATED, true, OUTCOME_FAILED},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        struct adapter_seen seen = finished(rows[ix].answer);
        struct runner_end end = {.stop = rows[ix].stop};
        struct brief brief = agent_fixture_brief("claude", BRIEF_WORK);
        struct judgement judgement = judge_session(&(struct judge_input){
            .brief = &brief,
            .seen = &seen,
            .end = &end,
            .errors = "",
            .unheard = rows[ix].unheard,
        });
        assert_int_equal(judgement.outcome, rows[ix].wanted);
        assert_int_equal(judgement.progress,
                         rows[ix].wanted == OUTCOME_CHECKPOINT);
        judge_release(&judgement);
        adapter_seen_release(&seen);
    }
}

static void success_counts_only_if_the_program_exited_by_itself(void **state)
{
    (void)state;
    struct adapter_seen silent = {0};
    struct adapter_seen good = finished("");
    struct runner_end end = {.code = 0};
    assert_int_equal(outcome_of(&good, end, false), OUTCOME_DONE);
    assert_int_equal(outcome_of(&silent, end, false), OUTCOME_FAILED);
    end.code = 3;
    assert_int_equal(outcome_of(&good, end, false), OUTCOME_DONE);
    end = (struct runner_end){.code = -1, .signal = SIGKILL};
    assert_int_equal(outcome_of(&good, end, false), OUTCOME_FAILED);
    adapter_seen_release(&good);
}

static void denied_tools_block_work_without_a_commit(void **state)
{
    (void)state;
    struct adapter_seen seen = finished("{\"outcome\":\"done\"}");
    struct runner_end end = {.code = 0};
    strbuf_pad(&seen.denials, 'x', 999);
    strbuf_adds(&seen.denials, "\xe2\x80\x99 end");
    assert_int_equal(outcome_of(&seen, end, false), OUTCOME_BLOCKED);
    assert_int_equal(outcome_of(&seen, end, true), OUTCOME_DONE);

    struct brief brief = agent_fixture_brief("claude", BRIEF_WORK);
    struct judgement judgement = agent_fixture_judge(&brief, &seen, 0, "");
    assert_int_equal(judgement.reason.len, strlen("denied: ") + 999);
    judge_release(&judgement);
    brief.writes = false;
    judgement = agent_fixture_judge(&brief, &seen, 0, "");
    assert_int_equal(judgement.outcome, OUTCOME_DONE);
    judge_release(&judgement);
    adapter_seen_release(&seen);
}

static void a_conversation_that_is_gone_is_started_again_once(void **state)
{
    (void)state;
    struct brief brief = agent_fixture_brief("qwen", BRIEF_WORK);
    struct adapter_seen seen = {0};
    const char *errors = "No saved session found with title \"x\".\n";
    brief.call.resume = "x";
    struct judgement judgement = agent_fixture_judge(&brief, &seen, 1, errors);
    assert_int_equal(judgement.outcome, OUTCOME_FAILED);
    assert_true(judgement.again);
    judge_release(&judgement);
    brief.call.resume = NULL;
    judgement = agent_fixture_judge(&brief, &seen, 1, errors);
    assert_false(judgement.again);
    judge_release(&judgement);
}

/* Require a reason for what the program wrote to standard error. */
static void expect_reason(const char *errors, const char *reason)
{
    struct brief brief = agent_fixture_brief("codex", BRIEF_WORK);
    struct adapter_seen seen = {0};
    struct judgement judgement = agent_fixture_judge(&brief, &seen, 1, errors);
    assert_int_equal(judgement.outcome, OUTCOME_FAILED);
    assert_string_equal(strbuf_text(&judgement.reason), reason);
    judge_release(&judgement);
}

static void a_failure_has_a_reason(void **state)
{
    (void)state;
    expect_reason("", "codex exited with code 1 without finishing its session");
    expect_reason("one\ntwo\n\n", "codex: two");
    expect_reason("note\nError: bad\n\nStack backtrace:\n   0: <unknown>\n",
                  "codex: Error: bad");
    expect_reason("\x1b[91m\x1b[1mError: \x1b[0mno \xff such\n",
                  "codex: Error: no ? such");
}

static void a_limit_may_name_its_time_in_the_text(void **state)
{
    (void)state;
    struct brief brief = agent_fixture_brief("codex", BRIEF_WORK);
    struct adapter_seen seen = {.finished = true};
    adapter_set_buf(&seen.error,
                    "You\xe2\x80\x99ve hit your usage limit. Upgrade to Pro or "
                    "try again at 6:01 PM.");
    struct judgement judgement = agent_fixture_judge(&brief, &seen, 1, "");
    assert_int_equal(judgement.outcome, OUTCOME_REFUSED);
    assert_int_equal(judgement.retry_at, 1794852060);
    assert_false(judgement.stop);
    judge_release(&judgement);
    seen.retry_at = 1794852068; /* the rollout knows better */
    judgement = agent_fixture_judge(&brief, &seen, 1, "");
    assert_int_equal(judgement.retry_at, 1794852068);
    judge_release(&judgement);
    adapter_seen_release(&seen);
}

/* --- sessions that finish explicitly ------------------------------------ */

/* Judge a session of codex that was refused by a limit, but has finished
 * before. Without `finish`, it has not. */
static struct judgement judge_finished(enum brief_kind kind,
                                       const char *finish,
                                       struct runner_end end,
                                       bool unheard)
{
    struct attempt_result result = {0};
    struct diag diag = {0};
    struct brief brief = agent_fixture_brief("codex", kind);
    struct adapter_seen seen = {.finished = true, .retry_at = 1794852068};
    adapter_set_buf(&seen.error, "You\xe2\x80\x99ve hit your usage limit.");
    adapter_set_buf(&seen.denials, "Bash");
    if (finish != NULL &&
        attempt_parse_result(finish, strlen(finish), &result, &diag) !=
            ERR_OK) {
        fail_msg("%s: %s", finish, diag.text);
    }
    struct judgement judgement = judge_session(&(struct judge_input){
        .brief = &brief,
        .seen = &seen,
        .end = &end,
        .errors = "Error: bad\n",
        .unheard = unheard,
        .finish = finish != NULL ? &result : NULL,
        .now = AGENT_FIXTURE_NOW,
    });
    attempt_result_release(&result);
    adapter_seen_release(&seen);
    return judgement;
}

static void a_session_that_has_finished_is_believed(void **state)
{
    (void)state;
    static const char done[] = "{\"outcome\":\"done\",\"reason\":\"all\"}";
    static const struct runner_end ends[] = {
        {.code = 0},
        {.code = 1},
        {.code = -1, .signal = SIGKILL},
        {.code = 143, .stop = RUNNER_FINISHED},
        {.code = 143, .stop = RUNNER_CHECKPOINT},
        {.code = 143, .stop = RUNNER_MESSAGE},
    };
    static const enum brief_kind kinds[] = {BRIEF_WORK, BRIEF_REVIEW};
    for (size_t ix = 0; ix < ARRAY_COUNT(ends); ix++) {
        for (size_t kind = 0; kind < ARRAY_COUNT(kinds); kind++) {
            struct judgement judgement =
                judge_finished(kinds[kind], done, ends[ix], false);
            assert_int_equal(judgement.outcome, OUTCOME_DONE);
            assert_string_equal(strbuf_text(&judgement.reason), "all");
            assert_int_equal(judgement.retry_at, 0);
            assert_false(judgement.stop || judgement.again || judgement.final);
            assert_int_equal(judgement.task_count, 0);
            assert_null(judgement.outputs);
            judge_release(&judgement);
        }
    }
    /* The same session without it. */
    struct judgement judgement =
        judge_finished(BRIEF_WORK, NULL, ends[1], false);
    assert_int_equal(judgement.outcome, OUTCOME_REFUSED);
    assert_int_equal(judgement.retry_at, 1794852068);
    judge_release(&judgement);
    judgement = judge_finished(BRIEF_WORK, NULL, ends[3], false);
    assert_int_not_equal(judgement.outcome, OUTCOME_DONE);
    judge_release(&judgement);
}

static void a_session_stopped_by_another_process_has_not_finished(void **state)
{
    (void)state;
    struct runner_end end = {.code = 143, .stop = RUNNER_TERMINATED};
    struct judgement judgement =
        judge_finished(BRIEF_WORK, "{\"outcome\":\"done\"}", end, false);
    assert_int_equal(judgement.outcome, OUTCOME_FAILED);
    assert_string_equal(strbuf_text(&judgement.reason),
                        "the session was stopped by another process");
    judge_release(&judgement);
}

/* What a session says, and what is kept of it. */
static const struct {
    const char *finish;
    enum sched_outcome outcome;
    const char *reason; /* or NULL, as the others */
    const char *feedback;
    const char *outputs;
    int64_t retry_at;
    bool final;
} kept[] = {
    {.finish = "{\"outcome\":\"changes\",\"feedback\":\"line 3\"}",
     .outcome = OUTCOME_CHANGES,
     .feedback = "line 3"},
    {.finish = "{\"outcome\":\"changes\",\"reason\":\"r\",\"feedback\":\"f\"}",
     .outcome = OUTCOME_CHANGES,
     .reason = "r",
     .feedback = "f"},
    {.finish = "{\"outcome\":\"changes\",\"reason\":\"line 3\"}",
     .outcome = OUTCOME_CHANGES,
     .reason = "line 3"},
    {.finish = "{\"outcome\":\"blocked\",\"reason\":\"which?\"}",
     .outcome = OUTCOME_BLOCKED,
     .reason = "which?"},
    {.finish = "{\"outcome\":\"later\",\"retry_after\":\"10m\"}",
     .outcome = OUTCOME_LATER,
     .retry_at = AGENT_FIXTURE_NOW + 600},
    {.finish = "{\"outcome\":\"later\",\"retry_after\":0.5}",
     .outcome = OUTCOME_LATER,
     .retry_at = AGENT_FIXTURE_NOW},
    {.finish = "{\"outcome\":\"later\",\"retry_at\":1794850000.75}",
     .outcome = OUTCOME_LATER,
     .retry_at = 1794850000},
    {.finish = "{\"outcome\":\"later\"}", .outcome = OUTCOME_LATER},
    {.finish = "{\"outcome\":\"checkpoint\"}", .outcome = OUTCOME_CHECKPOINT},
    {.finish = "{\"outcome\":\"failed\",\"reason\":\"no\",\"final\":true}",
     .outcome = OUTCOME_FAILED,
     .reason = "no",
     .final = true},
    {.finish = "{\"outcome\":\"done\",\"outputs\":{\"url\":\"x\",\"a\":\"\"}}",
     .outcome = OUTCOME_DONE,
     .outputs = "{\"a\":\"\",\"url\":\"x\"}"},
    {.finish = "{\"outputs\":{\"a\":\"b\"}}",
     .outcome = OUTCOME_DONE,
     .outputs = "{\"a\":\"b\"}"},
};

static void expect_text(const char *text, const char *wanted)
{
    assert_string_equal(text != NULL ? text : "", wanted != NULL ? wanted : "");
}

static void the_words_of_who_has_finished_are_kept(void **state)
{
    (void)state;
    struct runner_end end = {.code = 1};
    for (size_t ix = 0; ix < ARRAY_COUNT(kept); ix++) {
        struct judgement judgement =
            judge_finished(BRIEF_REVIEW, kept[ix].finish, end, false);
        assert_int_equal(judgement.outcome, kept[ix].outcome);
        expect_text(judgement.reason.text, kept[ix].reason);
        expect_text(judgement.feedback.text, kept[ix].feedback);
        expect_text(judgement.outputs, kept[ix].outputs);
        assert_int_equal(judgement.retry_at, kept[ix].retry_at);
        assert_int_equal(judgement.final, kept[ix].final);
        assert_int_equal(judgement.lacks, OUTCOME_LACKS_ANSWER);
        judge_release(&judgement);
        assert_null(judgement.outputs);
    }
}

static void a_batch_that_has_finished_names_its_tasks(void **state)
{
    (void)state;
    struct runner_end end = {.code = 1};
    struct judgement judgement = judge_finished(
        BRIEF_BATCH,
        "{\"outcome\":\"done\",\"tasks\":["
        "{\"task\":\"b\",\"outcome\":\"changes\",\"reason\":\"r\","
        "\"feedback\":\"f\"},"
        "{\"task\":\"c\",\"outcome\":\"done\"},"
        "{\"task\":\"a\",\"outcome\":\"failed\",\"reason\":\"bad\","
        "\"final\":true,\"outputs\":{\"n\":\"1\"}}]}",
        end,
        false);
    assert_int_equal(judgement.outcome, OUTCOME_DONE);
    assert_int_equal(judgement.task_count, 2);
    assert_int_equal(judgement.tasks[0].outcome, OUTCOME_FAILED);
    assert_string_equal(judgement.tasks[0].reason, "bad");
    assert_true(judgement.tasks[0].final);
    assert_string_equal(judgement.tasks[0].outputs, "{\"n\":\"1\"}");
    assert_false(judgement.tasks[1].final);
    assert_null(judgement.tasks[1].outputs);
    assert_int_equal(judgement.tasks[1].outcome, OUTCOME_CHANGES);
    assert_string_equal(judgement.tasks[1].reason, "f");
    judge_release(&judgement);
    /* A task that is not named has failed. */
    judgement =
        judge_finished(BRIEF_BATCH,
                       "{\"tasks\":[{\"task\":\"b\",\"outcome\":\"done\"}]}",
                       end,
                       false);
    assert_int_equal(judgement.outcome, OUTCOME_DONE);
    assert_int_equal(judgement.task_count, 2);
    assert_int_equal(judgement.tasks[0].outcome, OUTCOME_FAILED);
    assert_string_equal(judgement.tasks[0].reason,
                        "no verdict was given on it");
    assert_int_equal(judgement.tasks[1].outcome, OUTCOME_DONE);
    assert_string_equal(judgement.tasks[1].reason, "");
    judge_release(&judgement);
    /* Without any, it is the verdict on all of them. */
    judgement = judge_finished(BRIEF_BATCH,
                               "{\"outcome\":\"failed\",\"reason\":\"no\"}",
                               end,
                               false);
    assert_int_equal(judgement.outcome, OUTCOME_FAILED);
    assert_int_equal(judgement.task_count, 0);
    judge_release(&judgement);
    /* What is no batch has no such verdicts. */
    judgement = judge_finished(
        BRIEF_WORK,
        "{\"outcome\":\"done\",\"tasks\":[{\"task\":\"a\",\"outcome\":"
        "\"failed\"}]}",
        end,
        false);
    assert_int_equal(judgement.outcome, OUTCOME_DONE);
    assert_int_equal(judgement.task_count, 0);
    judge_release(&judgement);
}

static void a_message_is_heard_before_a_session_finishes(void **state)
{
    (void)state;
    static const struct {
        enum brief_kind kind;
        const char *finish;
        enum sched_outcome wanted;
    } rows[] = {
        {BRIEF_WORK,
         "{\"outcome\":\"done\",\"outputs\":{\"a\":\"b\"}}",
         OUTCOME_CHECKPOINT},
        {BRIEF_WORK, "{\"outcome\":\"changes\"}", OUTCOME_CHECKPOINT},
        {BRIEF_WORK, "{\"outcome\":\"blocked\"}", OUTCOME_CHECKPOINT},
        {BRIEF_BATCH,
         "{\"tasks\":[{\"task\":\"a\",\"outcome\":\"done\"},"
         "{\"task\":\"b\",\"outcome\":\"done\"}]}",
         OUTCOME_CHECKPOINT},
        {BRIEF_WORK, "{\"outcome\":\"failed\"}", OUTCOME_FAILED},
        {BRIEF_WORK, "{\"outcome\":\"later\"}", OUTCOME_LATER},
    };
    struct runner_end end = {.code = 0};
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        struct judgement judgement =
            judge_finished(rows[ix].kind, rows[ix].finish, end, true);
        bool checkpoint = rows[ix].wanted == OUTCOME_CHECKPOINT;
        assert_int_equal(judgement.outcome, rows[ix].wanted);
        assert_int_equal(judgement.progress, checkpoint);
        assert_string_equal(strbuf_text(&judgement.reason),
                            checkpoint ? "an operator has a message" : "");
        assert_null(judgement.outputs);
        assert_int_equal(judgement.task_count, 0);
        judge_release(&judgement);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_done_unless_the_answer_objects),
        cmocka_unit_test(a_review_needs_a_verdict),
        cmocka_unit_test(the_last_block_of_json_is_the_answer),
        cmocka_unit_test(feedback_reaches_the_next_session),
        cmocka_unit_test(a_verdict_with_a_nul_is_none),
        cmocka_unit_test(a_batch_judges_each_task_once),
        cmocka_unit_test(a_session_that_was_stopped_has_no_answer),
        cmocka_unit_test(a_message_makes_a_checkpoint_of_an_answer),
        cmocka_unit_test(success_counts_only_if_the_program_exited_by_itself),
        cmocka_unit_test(denied_tools_block_work_without_a_commit),
        cmocka_unit_test(a_conversation_that_is_gone_is_started_again_once),
        cmocka_unit_test(a_failure_has_a_reason),
        cmocka_unit_test(a_limit_may_name_its_time_in_the_text),
        cmocka_unit_test(a_session_that_has_finished_is_believed),
        cmocka_unit_test(a_session_stopped_by_another_process_has_not_finished),
        cmocka_unit_test(the_words_of_who_has_finished_are_kept),
        cmocka_unit_test(a_batch_that_has_finished_names_its_tasks),
        cmocka_unit_test(a_message_is_heard_before_a_session_finishes),
    };
    if (setenv("TZ", "UTC", 1) != 0) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
