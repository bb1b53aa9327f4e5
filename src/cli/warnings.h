/* SPDX-License-Identifier: MIT */
/*
 * warnings: what is likely to go wrong with a plan that has no errors, and what
 * of it is missing on this machine. The lists are in no particular order.
 */
#ifndef CLI_WARNINGS_H
#define CLI_WARNINGS_H

#include "plan/plan.h"

/*
 * Old names of keys; a stage that reviews by running an agent's program itself,
 * which exits with 0 whatever the result. `probe`: also ask for the agents'
 * programs: those that are not in PATH, have an untested version, or lack
 * something.
 */
struct plan_errors warnings_find(const struct plan *plan, bool probe);

/*
 * Look for the repositories of a plan whose file is in `folder`, an absolute
 * path: each path must be a directory, and with a base a git repository that
 * has this branch.
 */
struct plan_errors warnings_find_faults(const struct plan *plan,
                                        const char *folder);

/* Append one. */
void warnings_add(struct plan_errors *list,
                  struct plan_mark mark,
                  const char *format,
                  ...) PRINTF_LIKE(3, 4);

#endif /* CLI_WARNINGS_H */
