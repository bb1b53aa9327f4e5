/* SPDX-License-Identifier: MIT */
/*
 * merge: the merge queue of one repository, for one session of it.
 *
 * The branches of one or more groups are merged into the agent branch. The
 * result is made without a checkout, tested in one if there is a gate, and
 * only then the agent branch is moved, by compare-and-swap.
 */
#ifndef GIT_MERGE_H
#define GIT_MERGE_H

#include "git/agent.h"

struct merge_options {
    struct agent_options agent;
    const char *worktree; /* of the queue, absolute path */
    const char *gate;     /* shell command, or NULL */
    const char *repair;   /* shell command for conflicts, or NULL */
    bool sync;            /* take in what `base` has got meanwhile */
    const struct agent_member *members; /* oldest first */
    size_t member_count;
};

/* Merge them; the exit code of this process. Says more in $SLUICE_RESULT. */
int merge_run(const struct merge_options *options);

#endif /* GIT_MERGE_H */
