/* SPDX-License-Identifier: MIT */
/*
 * answer: the `result` file of an agent's session, as in docs/attempts.md.
 */
#ifndef AGENT_ANSWER_H
#define AGENT_ANSWER_H

#include "agent/judge.h"

/* Return the usage of a session, in dollars if known: as reported by the
 * program, or by the plan's price. */
struct adapter_usage answer_price(struct adapter_usage used,
                                  const struct brief_price *price);

/* Write the result. `resume`: for the next session, or NULL. */
MUST_USE enum err answer_write(const char *dir,
                               const struct brief *brief,
                               const struct judgement *judgement,
                               const struct adapter_usage *usage,
                               const char *resume,
                               struct diag *diag);

/* Write the usage of a session so far, in case it is killed: a result with the
 * outcome "failed". */
MUST_USE enum err answer_write_usage(const char *dir,
                                     const struct adapter_usage *usage,
                                     struct diag *diag);

#endif /* AGENT_ANSWER_H */
