/* SPDX-License-Identifier: MIT */
/*
 * sweep: remove the worktrees and branches of a finished run from one
 * repository, each only with positive evidence that nobody needs it.
 */
#ifndef GIT_SWEEP_H
#define GIT_SWEEP_H

#include "git/git.h"

/* What became of a worktree or branch; reason NULL: it was removed. */
typedef void (*sweep_fn)(void *ctx, const char *what, const char *reason);

struct sweep {
    const char *repo_path; /* absolute */
    const char *store;     /* absolute, without links */
    const char *run;
    const char *repo;  /* its name in the plan */
    const char *owner; /* see names.h */
    const char *base;
    bool dry; /* only tell what would be done */
    sweep_fn tell;
    void *ctx;
};

/*
 * A worktree goes when git knows it, it is not locked, nobody uses it, nothing
 * in it is uncommitted, and what it has checked out is merged; a group's branch
 * when it is merged into the agent branch; the agent branch when it is merged
 * into the base. Nothing is forced. An error: the repository cannot be used.
 */
MUST_USE enum err sweep_run(const struct sweep *sweep, struct diag *diag);

#endif /* GIT_SWEEP_H */
