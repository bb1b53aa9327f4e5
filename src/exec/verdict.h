/* SPDX-License-Identifier: MIT */
/*
 * verdict: what the end of a session means for its tasks.
 *
 * A session answers by its exit code; its result file may say more. When both
 * speak, the worse one counts: a result that says "done" does not make a
 * crash a success, and exit code 0 does not make a refusal one. A command that
 * cannot be run (exit code 126 or 127, or no start at all) is blocked: trying
 * it again does not help. Pure.
 */
#ifndef EXEC_VERDICT_H
#define EXEC_VERDICT_H

#include "base/strbuf.h"
#include "core/sched.h"
#include "exec/attempt.h"
#include "exec/attempt_result.h"

struct verdict {
    enum sched_outcome outcome;
    int64_t retry_at_ns; /* of a refusal, wall clock; 0: no time was given */
    bool cannot_tell;    /* killed, or not run at all: no verdict on the work
                            of others, whatever the outcome */
    bool batch;          /* of several tasks: it must name each that is done */
    enum outcome_lack lacks; /* of OUTCOME_BLOCKED */
    bool missing; /* its command cannot be run: the end of its log says why */
};

/*
 * The outcome of a session that has ended by itself with this exit code, and
 * says this. A result that was not valid is one that is absent: the caller
 * knows that it counts as a failure.
 */
enum sched_outcome verdict_of_code(int code,
                                   const struct attempt_result *result);

/*
 * Judge a session whose end is known (ATTEMPT_ENDED) or that is lost. Appends
 * the reason in words to *reason, nothing when all went well. `result_error`
 * is the text of what is wrong with its result file, or NULL.
 */
struct verdict verdict_of(const struct attempt_found *found,
                          const struct attempt_result *result,
                          const char *result_error,
                          struct strbuf *reason);

/* Judge a start that came to nothing: `error` is an errno. */
struct verdict verdict_of_failed_start(int error, struct strbuf *reason);

/* The outcome of one task of a session of several, by its id: what the result
 * says about it, or that of the session. One that the result does not name is
 * not done but has failed. Its reason and its feedback, if any, in the last
 * two. */
enum sched_outcome verdict_of_task(const struct verdict *verdict,
                                   const struct attempt_result *result,
                                   const char *task,
                                   const char **reason_out,
                                   const char **feedback_out);

#endif /* EXEC_VERDICT_H */
