/* SPDX-License-Identifier: MIT */
/*
 * summary: how a run ended, for people: what was done, and for all that was
 * not the reason and the commands that help.
 */
#ifndef CLI_SUMMARY_H
#define CLI_SUMMARY_H

#include "base/strbuf.h"
#include "engine/engine.h"

/* Append it. The engine may be one that only looks, or one between turns. */
void summary_add(struct strbuf *out, struct engine *engine, uint32_t run);

/*
 * 0: everything is done, but for tasks that an operator has skipped and
 * optional ones that failed. 1: something else failed, was parked or cancelled,
 * or is left.
 */
int summary_exit_code(struct engine *engine, uint32_t run);

#endif /* CLI_SUMMARY_H */
