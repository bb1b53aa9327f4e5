/* SPDX-License-Identifier: MIT */
/* preview: the expected course of a plan, for `sluice run -n`. */
#ifndef CLI_PREVIEW_H
#define CLI_PREVIEW_H

#include "plan/plan.h"

#include <stdbool.h>

/*
 * Print which tasks would start at once, the order of all starts, and the
 * expected duration, from the estimates. Return the exit code: CLI_NOT_ALL_DONE
 * if the plan would not finish.
 */
int preview_print(struct plan *plan, bool json);

#endif /* CLI_PREVIEW_H */
