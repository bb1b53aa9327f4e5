/* SPDX-License-Identifier: MIT */
/*
 * rollout: the files in which codex keeps its threads,
 * $CODEX_HOME/sessions/YEAR/MONTH/DAY/rollout-TIME-THREAD.jsonl.
 *
 * Their token_count events have the tokens of the thread and how full the
 * account's windows are; the last event of a turn has the kind of its error.
 * Neither is in what codex prints.
 */
#ifndef AGENT_ROLLOUT_H
#define AGENT_ROLLOUT_H

#include "adapter/adapter.h"

/* Take one line of a rollout. */
void rollout_take_line(struct adapter_seen *seen, const char *line, size_t len);

/*
 * Read the rollout of a thread; NULL: the newest one. False: there is none.
 * Only what the rollout knows better is changed in *seen.
 */
bool rollout_read(struct adapter_seen *seen, const char *thread);

/*
 * The time that "try again at 6:01 PM" or "... at Nov 19th, 2026 3:56 PM"
 * names, in local time (TZ) after `now`. A time of day that is past is
 * tomorrow's, unless it was within the last two minutes: codex drops the
 * seconds, so that is a minute from now. 0: the text has no time, or a date
 * that is past.
 */
int64_t rollout_parse_time(const char *text, int64_t now);

#endif /* AGENT_ROLLOUT_H */
