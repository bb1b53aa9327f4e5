/* SPDX-License-Identifier: MIT */
/*
 * profile: properties of a plan's graph without limits: the longest path and
 * the possible parallelism.
 */
#ifndef SIM_PROFILE_H
#define SIM_PROFILE_H

#include "plan/plan.h"

/* Release with profile_release(). */
struct profile {
    int64_t longest_ns; /* length of the longest path */
    uint32_t *path;     /* its tasks, first to last */
    uint32_t path_count;
    uint32_t peak; /* most tasks at once if each starts as early as possible */
    int64_t work_ns; /* sum of all estimates */
};

/* Compute the profile of a plan, which has no cycle. */
struct profile profile_of(const struct plan *plan);

void profile_release(struct profile *profile);

#endif /* SIM_PROFILE_H */
