/* SPDX-License-Identifier: MIT */
/*
 * answer: the file `result` of an agent's session, as docs/attempts.md has it.
 */
#ifndef AGENT_ANSWER_H
#define AGENT_ANSWER_H

#include "agent/judge.h"

/* What a session has used, in dollars if that is known: as the program says,
 * or by the plan's price. */
struct adapter_usage answer_price(struct adapter_usage used,
                                  const struct brief_price *price);

/* Write it. `resume`: for the next session, or NULL. */
MUST_USE enum err answer_write(const char *dir,
                               const struct brief *brief,
                               const struct judgement *judgement,
                               const struct adapter_usage *usage,
                               const char *resume,
                               struct diag *diag);

/*
 * Write what a session has used so far, in case it is killed: a result that
 * says "failed".
 */
MUST_USE enum err answer_write_usage(const char *dir,
                                     const struct adapter_usage *usage,
                                     struct diag *diag);

#endif /* AGENT_ANSWER_H */
