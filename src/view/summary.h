/* SPDX-License-Identifier: MIT */
/*
 * summary: the result of a run, for the user: the done tasks, and for each
 * other task the reason and the commands that help.
 */
#ifndef VIEW_SUMMARY_H
#define VIEW_SUMMARY_H

#include "base/strbuf.h"
#include "engine/engine.h"

/* Append it. The engine may be a reader's, or between two passes. */
void summary_add(struct strbuf *out, struct engine *engine, uint32_t run);

/*
 * Whether every task is done, except tasks that an operator has skipped,
 * optional tasks that failed, and tasks of `finally`.
 */
bool summary_is_done(struct engine *engine, uint32_t run);

/* Return the outcome of a run, without its tasks of `finally`: "done",
 * "failed", "cancelled" or "stopped"; NULL while it goes on by itself. */
const char *summary_outcome(struct engine *engine, uint32_t run);

#endif /* VIEW_SUMMARY_H */
