/* SPDX-License-Identifier: MIT */
/* gc_git: the part of `sluice gc` that looks after repositories. */
#ifndef CLI_GC_GIT_H
#define CLI_GC_GIT_H

#include "git/sweep.h"
#include "store/place.h"

/*
 * Sweep all repositories of a finished run (see git/sweep.h). `tell` is called
 * for each worktree and branch; with the path of a repository and a reason for
 * one that cannot be used. The run's folder below worktrees/ goes when nothing
 * is kept, so that as long as it is there, there is something to look at.
 */
MUST_USE enum err gc_git_sweep(const struct store_place *place,
                               const char *run,
                               bool dry,
                               sweep_fn tell,
                               void *ctx,
                               struct diag *diag);

#endif /* CLI_GC_GIT_H */
