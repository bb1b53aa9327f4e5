/* SPDX-License-Identifier: MIT */
/*
 * result: the result of an attempt, in $SLUICE_RESULT and as the exit code. See
 * docs/attempts.md.
 */
#ifndef GIT_RESULT_H
#define GIT_RESULT_H

#include "base/diag.h"
#include "exec/outcome.h"

#include <stdbool.h>

/* Return the exit code for an error before any work: blocked if an operator
 * must act, refused if it may succeed later. */
int result_code(enum err err);

/* Write the result of the whole attempt to the file of $SLUICE_RESULT. Keep the
 * values that the session wrote (tokens used). */
void result_say(int code, const char *reason);

/* The same for an attempt that did not start: if an operator must act, the
 * result marks it as not startable. */
void result_refuse(int code, const char *reason);

/* Record that the session has made progress since the last checkpoint. */
void result_say_progress(void);

/* Write the result of one task of a batch. False: the write failed. */
MUST_USE bool result_say_task(const char *task, int code, const char *reason);

#endif /* GIT_RESULT_H */
