/* SPDX-License-Identifier: MIT */
/*
 * rollout: reader of the files in which codex keeps its threads,
 * $CODEX_HOME/sessions/YEAR/MONTH/DAY/rollout-TIME-THREAD.jsonl.
 *
 * Their token_count events have the tokens of the thread and the usage of the
 * account's windows; the last event of a turn has the kind of its error. The
 * output of codex has neither.
 */
#ifndef AGENT_ROLLOUT_H
#define AGENT_ROLLOUT_H

#include "adapter/adapter.h"

/* Process one line of a rollout. */
void rollout_take_line(struct adapter_seen *seen, const char *line, size_t len);

/* Read the rollout of a thread; NULL: the newest rollout. False: none exists.
 * Only values that are more exact in the rollout change in *seen. */
bool rollout_read(struct adapter_seen *seen, const char *thread);

/*
 * Parse the time in "try again at 6:01 PM" or "... at Nov 19th, 2026 3:56 PM",
 * in local time (TZ) after `now`. A past time of day is tomorrow's, unless it
 * was within the last two minutes: codex drops the seconds, so that is a minute
 * from now. 0: no time, or a past date.
 */
int64_t rollout_parse_time(const char *text, int64_t now);

#endif /* AGENT_ROLLOUT_H */
