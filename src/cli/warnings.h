/* SPDX-License-Identifier: MIT */
/*
 * warnings: likely problems of a valid plan, and its parts that are missing on
 * this machine. The lists are unsorted.
 */
#ifndef CLI_WARNINGS_H
#define CLI_WARNINGS_H

#include "plan/plan.h"

/*
 * Find old key names, stages that review by running an agent's program
 * directly, which exits with 0 whatever the result, and repositories whose
 * merge results nothing tests, and repos with one path and one base.
 * Relative paths begin at `folder`. `probe`: also find agent
 * programs that are not in PATH, have an untested version, or lack a feature.
 */
struct plan_errors
warnings_find(const struct plan *plan, const char *folder, bool probe);

/*
 * Check the repositories of a plan in `folder`, an absolute path: each must be
 * a directory and, if it has a base, a git repository with this branch, and
 * have one path: see warnings_find_twins(). If the plan confines sessions,
 * try whether that works on this machine.
 */
struct plan_errors warnings_find_faults(const struct plan *plan,
                                        const char *folder);

/* Find repos with different paths that are one git repository: names of their
 * branches would collide (plan/twin.h). `folder` is as above. */
struct plan_errors warnings_find_twins(const struct plan *plan,
                                       const char *folder);

/* Append a warning. */
void warnings_add(struct plan_errors *list,
                  struct plan_mark mark,
                  const char *format,
                  ...) PRINTF_LIKE(3, 4);

#endif /* CLI_WARNINGS_H */
