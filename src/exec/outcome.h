/* SPDX-License-Identifier: MIT */
/*
 * outcome: how sessions end, for everybody: the words that results, rows and
 * reports have for it, and the exit codes. docs/attempts.md tells sessions.
 */
#ifndef EXEC_OUTCOME_H
#define EXEC_OUTCOME_H

#include "core/sched.h"
#include "exec/attempt.h"

#include <stdbool.h>

enum { OUTCOME_COUNT = OUTCOME_STOPPED + 1 };

/* Exit codes of sessions that mean something. Every other one is a failure. */
enum {
    OUTCOME_EXIT_DONE = 0,
    OUTCOME_EXIT_FAILED = 1,
    OUTCOME_EXIT_CHANGES = 20,
    OUTCOME_EXIT_BLOCKED = 30,
    OUTCOME_EXIT_REFUSED = 75,
};

/* "done", "failed", "refused", "changes", "blocked", "checkpoint", "lost",
 * "stopped". */
const char *outcome_name(enum sched_outcome outcome);

/* The reverse; false: `name` is NULL or no outcome. */
bool outcome_read(const char *name, enum sched_outcome *out);

/* The same for a result, which cannot say that its session is lost or was
 * stopped. */
bool outcome_read_said(const char *name, enum sched_outcome *out);

/* What a blocked session lacks, by which the commands that help are chosen. */
enum outcome_lack {
    OUTCOME_LACKS_ANSWER, /* a person who answers, or decides */
    OUTCOME_LACKS_MONEY,  /* the budget of its task does not suffice */
    OUTCOME_LACKS_START,  /* it could not even be started */
};

/* "answer", "budget", "start"; an unknown name, or NULL, is an answer. */
const char *outcome_lack_name(enum outcome_lack lack);
enum outcome_lack outcome_read_lack(const char *name);

/* What an exit code means by itself. */
enum sched_outcome outcome_of_code(int code);

/* The exit code of a session that ends so; a checkpoint is said by its
 * result. */
int outcome_code(enum sched_outcome outcome);

/* Whether a shell says with this exit code that it could not run the command:
 * it is not there, or cannot be executed. */
bool outcome_is_missing(int code);

/* The cause of an end in a row: record_cause_name(), "spawn" of one that never
 * began, or "lost". */
const char *outcome_cause(const struct attempt_found *found);

#endif /* EXEC_OUTCOME_H */
