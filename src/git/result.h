/* SPDX-License-Identifier: MIT */
/*
 * result: what this program says about an attempt, in $SLUICE_RESULT and by
 * its exit code. See docs/attempts.md.
 */
#ifndef GIT_RESULT_H
#define GIT_RESULT_H

#include "base/diag.h"
#include "exec/outcome.h"

#include <stdbool.h>

/* Exit code for an error before anything was done: blocked when a person must
 * look, refused when it may succeed later. */
int result_code(enum err err);

/*
 * Say what became of the attempt as a whole, beside what the session has said
 * (tokens used), in the file of $SLUICE_RESULT.
 */
void result_say(int code, const char *reason);

/* The same when it could not begin: when a person must look, the reason says
 * that it could not be started. */
void result_refuse(int code, const char *reason);

/* Say that the session has made progress since the last checkpoint. */
void result_say_progress(void);

/* The same for one task of a batch. False: it could not be written. */
MUST_USE bool result_say_task(const char *task, int code, const char *reason);

#endif /* GIT_RESULT_H */
