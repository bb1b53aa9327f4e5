/* SPDX-License-Identifier: MIT */
/*
 * warnings: what is likely to go wrong with a plan that has no errors.
 *
 * Old names of keys; a stage that reviews by running an agent's program itself,
 * which exits with 0 whatever the result; agents whose programs are not in
 * PATH, have an untested version, or lack something.
 */
#ifndef CLI_WARNINGS_H
#define CLI_WARNINGS_H

#include "plan/plan.h"

struct warning {
    struct plan_mark mark; /* line 0: the whole plan */
    char *text;
};

struct warnings {
    struct warning *list; /* in no particular order */
    uint32_t count;
};

/* Look for them; `probe`: also ask the programs for their versions. */
struct warnings warnings_find(const struct plan *plan, bool probe);

/* Append one. */
void warnings_add(struct warnings *warnings,
                  struct plan_mark mark,
                  const char *format,
                  ...) PRINTF_LIKE(3, 4);
void warnings_release(struct warnings *warnings);

#endif /* CLI_WARNINGS_H */
