/* SPDX-License-Identifier: MIT */
/*
 * drive: one session of a coding agent, from its brief to its result.
 *
 * Reads `brief` and, in a repository, `ranges` from the attempt directory;
 * writes `prompt`, `schema`, `events.jsonl` and `result` there. A readable
 * line for each event goes to standard output, which is the attempt's log.
 */
#ifndef AGENT_DRIVE_H
#define AGENT_DRIVE_H

#include "agent/confine.h"

/* Run it in the working directory, its program confined by the prefix; return
 * the exit code of this process. */
int drive_session(const char *dir, const struct confine_prefix *prefix);

#endif /* AGENT_DRIVE_H */
