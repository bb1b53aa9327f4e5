/* SPDX-License-Identifier: MIT */
/*
 * outcome: session outcomes: their names in results, rows and reports, and
 * their exit codes. docs/attempts.md documents them for sessions.
 */
#ifndef EXEC_OUTCOME_H
#define EXEC_OUTCOME_H

#include "core/sched.h"
#include "exec/attempt.h"

#include <stdbool.h>

enum { OUTCOME_COUNT = OUTCOME_FATAL + 1 };

/* Exit codes of sessions with a meaning. All others are failures. */
enum {
    OUTCOME_EXIT_DONE = 0,
    OUTCOME_EXIT_FAILED = 1,
    OUTCOME_EXIT_CHANGES = 20,
    OUTCOME_EXIT_BLOCKED = 30,
    OUTCOME_EXIT_LATER = 40,
    OUTCOME_EXIT_FATAL = 50,
    OUTCOME_EXIT_REFUSED = 75,
};

/* "done", "failed", "refused", "changes", "blocked", "checkpoint", "lost",
 * "stopped", "later"; OUTCOME_FATAL is "failed", too. */
const char *outcome_name(enum sched_outcome outcome);

/* The reverse, without OUTCOME_FATAL; false: `name` is NULL or no outcome. */
bool outcome_read(const char *name, enum sched_outcome *out);

/* The same for a result, which cannot claim to be lost or stopped. */
bool outcome_read_said(const char *name, enum sched_outcome *out);

/* What a blocked session lacks; selects the commands that help. */
enum outcome_lack {
    OUTCOME_LACKS_ANSWER, /* an operator's answer or decision */
    OUTCOME_LACKS_MONEY,  /* its task has too little budget */
    OUTCOME_LACKS_START,  /* it could not be started */
    OUTCOME_LACKS_BASE,   /* the base fails its gate */
};

/* "answer", "budget", "start", "base"; an unknown name or NULL means an answer.
 */
const char *outcome_lack_name(enum outcome_lack lack);
enum outcome_lack outcome_read_lack(const char *name);

/* Return the outcome that an exit code alone means. */
enum sched_outcome outcome_of_code(int code);

/* Return the exit code for an outcome; a checkpoint needs its result, too. */
int outcome_code(enum sched_outcome outcome);

/* Whether this exit code of a shell means that it could not run the command,
 * which does not exist or is not executable. */
bool outcome_is_missing(int code);

/* Return the cause for an attempt row: record_cause_name(), "spawn" if the
 * attempt never began, or "lost". */
const char *outcome_cause(const struct attempt_found *found);

#endif /* EXEC_OUTCOME_H */
