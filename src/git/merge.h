/* SPDX-License-Identifier: MIT */
/*
 * merge: the merge queue of one repository, for one session.
 *
 * Merge the branches of one or more groups into the agent branch. The merge
 * needs no checkout; a gate tests the result in one. The agent branch moves
 * last, by compare-and-swap.
 *
 * Several sessions may merge into one agent branch at the same time: see
 * merge_queue.c.
 */
#ifndef GIT_MERGE_H
#define GIT_MERGE_H

#include "git/agent.h"

struct merge_options {
    struct agent_options agent;
    const char *worktree;      /* the queue's first one, absolute path */
    const char *dir;           /* attempt directory of this session */
    const char *const *before; /* those of the sessions before it, in order */
    size_t before_count;
    const char *gate;    /* shell command, or NULL */
    uint32_t gate_retry; /* how often it runs again after a failure */
    const char *repair;  /* shell command for conflicts, or NULL */
    bool sync;           /* merge new commits of `base` first */
    const struct agent_member *members; /* oldest first */
    size_t member_count;
};

/* Merge the members; return the exit code of this process. Details go to
 * $SLUICE_RESULT. */
int merge_run(const struct merge_options *options);

#endif /* GIT_MERGE_H */
