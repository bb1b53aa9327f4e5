/* SPDX-License-Identifier: MIT */
/*
 * verdict: the outcome of a session for its tasks.
 *
 * A session reports by its exit code; its result file may add to it. If both
 * exist, the worse counts: a result "done" does not make a crash a success, and
 * exit code 0 does not make a refusal one. With `finish` in it, the result
 * alone counts: the session has said explicitly how it ended. A command that
 * cannot run (exit code 126 or 127, or a failed start) is blocked: a retry does
 * not help. A failure with `final` in its result is OUTCOME_FATAL. Pure.
 */
#ifndef EXEC_VERDICT_H
#define EXEC_VERDICT_H

#include "base/strbuf.h"
#include "core/sched.h"
#include "exec/attempt.h"
#include "exec/attempt_result.h"

struct verdict {
    enum sched_outcome outcome;
    int64_t retry_at_ns; /* of a refusal or snooze, wall clock; 0: no time was
                            given */
    bool cannot_tell;    /* killed, or never ran: implies nothing about the work
                            of others, whatever the outcome */
    bool batch;          /* of several tasks: it must name each finished task */
    enum outcome_lack lacks; /* of OUTCOME_BLOCKED */
    bool missing; /* its command cannot run: its log tail has the reason */
};

/*
 * Return the outcome of a session that exited by itself with this exit code and
 * result. An invalid result counts as absent; the caller makes it a failure.
 */
enum sched_outcome verdict_of_code(int code,
                                   const struct attempt_result *result);

/*
 * Judge a session that has exited (ATTEMPT_ENDED) or is lost. Append the reason
 * to *reason, nothing on success. `result_error` describes the error in its
 * result file, or is NULL.
 */
struct verdict verdict_of(const struct attempt_found *found,
                          const struct attempt_result *result,
                          const char *result_error,
                          struct strbuf *reason);

/* Judge a failed start: `error` is an errno. */
struct verdict verdict_of_failed_start(int error, struct strbuf *reason);

/* Return the outcome of one task of a batch, by its id: from the result, or
 * that of the session. A task that the result does not name has failed, not
 * succeeded. Its reason and feedback, if any, are in the last two. */
enum sched_outcome verdict_of_task(const struct verdict *verdict,
                                   const struct attempt_result *result,
                                   const char *task,
                                   const char **reason_out,
                                   const char **feedback_out);

#endif /* EXEC_VERDICT_H */
