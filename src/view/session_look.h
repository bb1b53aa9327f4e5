/* SPDX-License-Identifier: MIT */
/*
 * session_look: answers to the questions of a session: its task, the plan, why
 * a task waits, the log of a task. As text, for agents and for shells.
 *
 * A session sees its own run only. The scheduler answers between two passes, so
 * every answer is bounded in size.
 */
#ifndef VIEW_SESSION_LOOK_H
#define VIEW_SESSION_LOOK_H

#include "engine/engine.h"
#include "store/place.h"

/* Append the answer. ERR_NOT_FOUND: no such task; ERR_INVALID: no such
 * question. */
MUST_USE enum err session_look(struct engine *engine,
                               const struct store_place *place,
                               const struct engine_look *look,
                               struct strbuf *out,
                               struct diag *diag);

#endif /* VIEW_SESSION_LOOK_H */
