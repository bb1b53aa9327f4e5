/* SPDX-License-Identifier: MIT */
/*
 * result: the result of an attempt, in $SLUICE_RESULT and as the exit code. See
 * docs/attempts.md.
 */
#ifndef GIT_RESULT_H
#define GIT_RESULT_H

#include "base/diag.h"
#include "exec/outcome.h"
#include "git/gate_memory.h"

#include <stdbool.h>
#include <stdint.h>

/* Return the exit code for an error before any work: blocked if an operator
 * must act, refused if it may succeed later. */
int result_code(enum err err);

/* Write the result of the whole attempt to the file of $SLUICE_RESULT. Keep the
 * values that the session wrote (tokens used). */
void result_say(int code, const char *reason);

/* The same for an attempt that did not start: if an operator must act, the
 * result marks it as not startable. */
void result_refuse(int code, const char *reason);

/* The same for a base that fails its gate. */
void result_blame_base(const char *reason);

/* Record the attempt to merge a commit of the base into the agent branch. */
void result_say_base(bool merged, const char *commit, const char *reason);

/* Write a string that the next attempt of the task gets as its feedback. */
void result_say_feedback(const char *text);

/* Record that the session has made progress since the last checkpoint. */
void result_say_progress(void);

/* Give a sign of life to the shim, which stops idle sessions. */
void result_touch_progress(void);

/* Write the verdicts of the gates that this merge ran, with its command. */
void result_say_gates(const struct gate_memory *memory, const char *command);
/* Record how a merge went through its queue: how often it was restarted, and
 * the tasks that it was built on in the end, one per line. */
void result_say_queue(uint32_t restarts, const char *on);

/* Write the result of one task of a batch. False: the write failed. */
MUST_USE bool result_say_task(const char *task, int code, const char *reason);

#endif /* GIT_RESULT_H */
