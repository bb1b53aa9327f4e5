/* SPDX-License-Identifier: MIT */
/*
 * profile: what a plan's graph alone says, before any limit: the longest path
 * and how many tasks could run at once.
 */
#ifndef SIM_PROFILE_H
#define SIM_PROFILE_H

#include "plan/plan.h"

/* Release with profile_release(). */
struct profile {
    int64_t longest_ns; /* length of the longest path */
    uint32_t *path;     /* its tasks, first to last */
    uint32_t path_count;
    uint32_t peak;   /* most tasks at once when each starts at once */
    int64_t work_ns; /* sum of all estimates */
};

/* Look at a plan, which has no cycle. */
struct profile profile_of(const struct plan *plan);

/* Give the memory back. */
void profile_release(struct profile *profile);

#endif /* SIM_PROFILE_H */
