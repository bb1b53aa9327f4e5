/* SPDX-License-Identifier: MIT */
/*
 * request: the requests that an operator can send to the scheduler, as JSON
 * objects.
 *
 *   {"verb": "submit", "file": F, "folder": D, "text": T, "processors": N,
 *    "new": true|false}   with "not_before_ns": T it starts nothing before;
 *                         "worker": "..." has the files of the plan
 *   {"verb": "add", "file": F, "text": T, "run": R}   a fragment; with
 *    "fragment_key": K only if the run has none of that key yet
 *   {"verb": "cap", "max": N}             or "step": 1 | -1; with "run": R
 *   {"verb": "limit", "limit": NAME, "max": "N"|"P%"|"none", "run": R}
 *   {"verb": "limit", "limit": NAME, "max": "N"|"none"|"default", "store":
 * true} for all runs together: "sessions", or those of provider NAME
 *   {"verb": "budget", "usd": X, "tokens": N, "run": R}   one or both; with
 *    "class": C that of a class, with "task": T that of a task
 *   {"verb": "usage", "override": true|false}
 *   {"verb": "pause"|"resume", "run": R}
 *   {"verb": "resume", "provider": P}     that was stopped
 *   {"verb": "hold"|"release"|"retry"|"skip"|"cancel", "task": T, "run": R}
 *   {"verb": "priority", "task": T, "priority": N, "run": R}
 *    in these, T may also be a group: all tasks of it and of its parts
 *   {"verb": "first"|"rerun", "task": T, "run": R}
 *   {"verb": "retry"|"cancel", "run": R}  the whole run
 *   {"verb": "answer", "task": T, "text": X, "run": R}
 *   {"verb": "rework", "task": T, "text": X, "run": R}   T may be a group: the
 *    stage to which its pipeline sends work back
 *   {"verb": "tell", "task": T, "text": X, "run": R}   to a running session
 *   {"verb": "approve", "task": T, "text": X, "run": R}   "text" is optional
 *   {"verb": "drain"}
 *   {"verb": "prune", "number": N, "part": "events"|"tasks"|"run", "first": A,
 *    "last": B}   rows of a finished run; see struct store_prune
 *   {"verb": "show", "command": "status", "run": R, "labels": [L...]}   what
 *    the command prints; it changes nothing, and is not stored
 *   {"verb": "ping"}
 *
 * "run" is optional if only one run is unfinished, or if only one has a task of
 * that id. Answers: {"ok": true, "text": X, ...} or {"ok": false, "error":
 * NAME, "text": X}, where NAME is that of an enum err.
 */
#ifndef ENGINE_REQUEST_H
#define ENGINE_REQUEST_H

#include "base/strbuf.h"

/* Longest key of a fragment, in bytes. */
enum { REQUEST_KEY_BYTES_MAX = 200 };

#endif /* ENGINE_REQUEST_H */
