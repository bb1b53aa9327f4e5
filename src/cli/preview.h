/* SPDX-License-Identifier: MIT */
/*
 * preview: what `sluice run` would do with a plan, for its option -n.
 */
#ifndef CLI_PREVIEW_H
#define CLI_PREVIEW_H

#include "plan/plan.h"

#include <stdbool.h>

/*
 * Print what would start at once, in which order everything would start, and
 * how long it would take, by the estimates. Returns the exit code:
 * CLI_NOT_ALL_DONE when the plan would not come to its end.
 */
int preview_print(struct plan *plan, bool json);

#endif /* CLI_PREVIEW_H */
