/* SPDX-License-Identifier: MIT */
/*
 * sweep: removal of the worktrees and branches of a finished run from one
 * repository, each only with positive evidence that it is no longer needed.
 */
#ifndef GIT_SWEEP_H
#define GIT_SWEEP_H

#include "git/agent.h"

/* Report the fate of a worktree or branch; reason NULL: it was removed. */
typedef void (*sweep_fn)(void *ctx, const char *what, const char *reason);

struct sweep {
    const char *repo_path; /* absolute */
    const char *url;       /* instead of the path; or NULL */
    const char *store;     /* absolute, without links */
    const char *run;
    const char *repo;  /* its name in the plan */
    const char *entry; /* see names_add_branch() */
    const char *owner; /* see names.h */
    const char *base;
    bool dry; /* only report */
    sweep_fn tell;
    void *ctx;
};

/*
 * Remove a worktree if git knows it, it is not locked, not in use, has no
 * uncommitted changes, and its checked-out commit is merged; a group's branch
 * if it is merged into the agent branch; the agent branch if it is merged into
 * the base. Never force. An error: the repository is unusable.
 */
MUST_USE enum err sweep_run(const struct sweep *sweep, struct diag *diag);

/*
 * Remove the checkouts of a group that has landed: its commits are in the agent
 * branch, its files are committed, and nobody works there. Others stay, and
 * `sluice gc` says why.
 */
void sweep_landed(struct agent *agent, const char *path);

#endif /* GIT_SWEEP_H */
