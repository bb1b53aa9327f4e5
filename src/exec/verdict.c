/* SPDX-License-Identifier: MIT */
#include "exec/verdict.h"

#include "base/duration.h"
#include "base/invariant.h"

#include <errno.h>
#include <string.h>

/* Whether a start that failed with this errno may succeed later. */
static bool is_passing(int error)
{
    switch (error) {
    case EAGAIN:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EDQUOT:
    case EIO:
    case ETXTBSY:
        return true;
    default:
        return false;
    }
}

struct verdict verdict_of_failed_start(int error, struct strbuf *reason)
{
    char text[128];
    strbuf_addf(reason,
                "it could not be started: %s",
                strerror_r(error, text, sizeof(text)));
    bool passing = is_passing(error);
    return (struct verdict){
        .outcome = passing ? OUTCOME_REFUSED : OUTCOME_BLOCKED,
        .cannot_tell = !passing,
        .missing = !passing,
        .lacks = passing ? OUTCOME_LACKS_ANSWER : OUTCOME_LACKS_START,
    };
}

static void add_end(struct strbuf *reason, const struct attempt_exit *end)
{
    if (end->signal != 0) {
        strbuf_addf(reason, "killed by signal %d", end->signal);
    } else {
        strbuf_addf(reason, "exit code %d", end->code);
    }
}

/* A session that reports "done" without using a token never began. */
static bool is_empty(const struct attempt_result *result)
{
    return result->has_usage && result->input_tokens == 0 &&
           result->output_tokens == 0;
}

static bool has_time(const struct attempt_result *result)
{
    return result->retry_at_ns > 0 || result->retry_after_ns > 0;
}

/* Whether the session has said explicitly how it ended. */
static bool is_finished(const struct attempt_result *result)
{
    return result->finish && result->has_outcome;
}

/* The worse of an exit code and a result. */
static enum sched_outcome worse_of(int code,
                                   const struct attempt_result *result)
{
    enum sched_outcome outcome = outcome_of_code(code);
    if (is_finished(result)) {
        return result->outcome;
    }
    if (outcome == OUTCOME_DONE && result->has_outcome) {
        return result->outcome;
    }
    if (outcome == OUTCOME_DONE && has_time(result)) {
        return OUTCOME_REFUSED; /* a limit, reported with exit code 0 */
    }
    if (outcome == OUTCOME_FAILED && result->has_outcome &&
        result->outcome != OUTCOME_DONE) {
        return result->outcome; /* the kind of failure, not a denial of it */
    }
    return outcome;
}

enum sched_outcome verdict_of_code(int code,
                                   const struct attempt_result *result)
{
    enum sched_outcome outcome = worse_of(code, result);
    return outcome == OUTCOME_FAILED && result->final ? OUTCOME_FATAL : outcome;
}

/* The session exited by itself. */
static struct verdict of_exit(const struct attempt_exit *end,
                              const struct attempt_result *result,
                              const char *result_error,
                              struct strbuf *reason)
{
    struct verdict verdict = {.outcome = verdict_of_code(end->code, result)};
    bool finished = is_finished(result);
    bool said =
        finished || (result->has_outcome && result->outcome != OUTCOME_DONE);
    if (end->signal != 0 && !finished) {
        verdict.outcome = OUTCOME_FAILED;
        verdict.cannot_tell = true;
    } else if (result_error != NULL && end->code == OUTCOME_EXIT_DONE) {
        strbuf_addf(reason, "invalid result: %s", result_error);
        verdict.outcome = OUTCOME_FAILED;
        return verdict;
    } else if (verdict.outcome == OUTCOME_DONE && is_empty(result) &&
               !finished) {
        strbuf_adds(reason, "it used no tokens: it did not start to work");
        verdict.outcome = OUTCOME_FAILED;
        return verdict;
    } else if (outcome_is_missing(end->code) && !said) {
        verdict.outcome = OUTCOME_BLOCKED;
        verdict.cannot_tell = true;
        verdict.missing = true;
    }
    verdict.lacks = result->lacks;
    verdict.retry_at_ns =
        result->retry_after_ns > 0
            ? duration_sum(end->ended_ns, result->retry_after_ns)
            : result->retry_at_ns;
    if (result->reason != NULL) {
        strbuf_adds(reason, result->reason);
    } else if (verdict.outcome == OUTCOME_LATER) {
        strbuf_adds(reason, "it asked to be run again later");
    } else if (verdict.outcome != OUTCOME_DONE) {
        add_end(reason, end);
    }
    return verdict;
}

struct verdict verdict_of(const struct attempt_found *found,
                          const struct attempt_result *result,
                          const char *result_error,
                          struct strbuf *reason)
{
    const struct attempt_exit *end = &found->exit;
    if (found->state == ATTEMPT_LOST) {
        strbuf_adds(reason, "lost: its machine or its shim died");
        return (struct verdict){.outcome = OUTCOME_LOST};
    }
    INVARIANT(found->state == ATTEMPT_ENDED);
    switch (end->cause) {
    case ATTEMPT_EXIT:
        return of_exit(end, result, result_error, reason);
    case ATTEMPT_TIMEOUT:
        strbuf_adds(reason, "stopped by its timeout");
        return (struct verdict){.outcome = OUTCOME_FAILED};
    case ATTEMPT_IDLE:
        strbuf_adds(reason, "stopped by its idle timeout: no sign of life");
        return (struct verdict){.outcome = OUTCOME_FAILED};
    case ATTEMPT_CANCELLED:
        strbuf_adds(reason, "stopped by an operator");
        return (struct verdict){.outcome = OUTCOME_STOPPED};
    case ATTEMPT_STOPPED:
        strbuf_adds(reason, "stopped: sluice was shut down");
        return (struct verdict){.outcome = OUTCOME_STOPPED};
    case ATTEMPT_SPAWN:
        return verdict_of_failed_start(end->error, reason);
    case ATTEMPT_PREPARE:
        strbuf_adds(reason, "its prepare command failed: ");
        add_end(reason, end);
        return (struct verdict){
            .outcome = end->code == OUTCOME_EXIT_REFUSED ? OUTCOME_REFUSED
                       : outcome_is_missing(end->code)   ? OUTCOME_BLOCKED
                                                         : OUTCOME_FAILED,
            .cannot_tell = end->code != OUTCOME_EXIT_REFUSED,
            .missing = outcome_is_missing(end->code),
        };
    case ATTEMPT_LEASE:
        strbuf_adds(reason,
                    "lost: its worker could not reach the store for longer "
                    "than its lease");
        return (struct verdict){.outcome = OUTCOME_LOST};
    }
    return (struct verdict){.outcome = OUTCOME_FAILED};
}

enum sched_outcome verdict_of_task(const struct verdict *verdict,
                                   const struct attempt_result *result,
                                   const char *task,
                                   const char **reason_out,
                                   const char **feedback_out)
{
    enum sched_outcome outcome = verdict->outcome;
    bool listed = false;
    for (uint32_t ix = 0; ix < result->task_count; ix++) {
        const struct attempt_task_result *said = &result->tasks[ix];
        if (strcmp(said->task, task) == 0) {
            listed = true;
            enum sched_outcome named = said->outcome;
            if (named == OUTCOME_REFUSED && verdict->outcome == OUTCOME_DONE) {
                named = OUTCOME_FAILED; /* only whole sessions are refused */
            }
            /* A session that failed as a whole completed none of its tasks. */
            if (named != OUTCOME_REFUSED &&
                (verdict->outcome == OUTCOME_DONE || named != OUTCOME_DONE)) {
                outcome = named == OUTCOME_FAILED && said->final ? OUTCOME_FATAL
                                                                 : named;
                *reason_out = said->reason != NULL || named == OUTCOME_DONE
                                  ? said->reason
                                  : "reported by its session without a reason";
                *feedback_out = said->feedback;
            }
        }
    }
    if ((result->task_count > 0 || verdict->batch) && !listed &&
        outcome == OUTCOME_DONE) {
        *reason_out = "its session gave no verdict on it";
        outcome = OUTCOME_FAILED;
    }
    return outcome;
}
