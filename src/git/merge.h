/* SPDX-License-Identifier: MIT */
/*
 * merge: the merge queue of one repository, for one session.
 *
 * Merge the branches of one or more groups into the agent branch. The merge
 * needs no checkout; a gate tests the result in one. The agent branch moves
 * last, by compare-and-swap.
 */
#ifndef GIT_MERGE_H
#define GIT_MERGE_H

#include "git/agent.h"

struct merge_options {
    struct agent_options agent;
    const char *worktree; /* the queue's own, absolute path */
    const char *gate;     /* shell command, or NULL */
    const char *repair;   /* shell command for conflicts, or NULL */
    bool sync;            /* merge new commits of `base` first */
    const struct agent_member *members; /* oldest first */
    size_t member_count;
};

/* Merge the members; return the exit code of this process. Details go to
 * $SLUICE_RESULT. */
int merge_run(const struct merge_options *options);

#endif /* GIT_MERGE_H */
