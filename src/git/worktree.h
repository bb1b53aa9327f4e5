/* SPDX-License-Identifier: MIT */
/*
 * worktree: a checkout of its own for a group, or for the merge queue.
 *
 * Beside the folder PATH stand PATH.lock, which whoever uses the worktree
 * holds, and, while it is being made, PATH.making: a worktree with that mark
 * was never handed to anyone, whatever is in it.
 */
#ifndef GIT_WORKTREE_H
#define GIT_WORKTREE_H

#include "git/git.h"

/* What shall be checked out where. */
struct worktree {
    const char *path;
    const char *branch;  /* full ref, which is set to `start`; NULL: none */
    struct git_id start; /* commit */
    bool alone;          /* nobody else may use it meanwhile */
};

/*
 * Wait until the worktree is free, then bring it to a clean checkout: made,
 * repaired and cleaned as needed; what was not committed is discarded. With
 * `alone` false it may be in use by others who have the same commit; then it
 * is used as it is. The lock is held until worktree_leave().
 *
 * ERR_DENIED: something stands in the way that a person must look at.
 * ERR_BUSY: others use it with another commit.
 */
MUST_USE enum err worktree_enter(struct git *git,
                                 const struct worktree *worktree,
                                 int *lock_out,
                                 struct diag *diag);
void worktree_leave(int *lock);

/* Remove the locks that killed processes have left in git's folder of it. The
 * caller has the worktree alone. */
void worktree_unlock(struct git *git, const char *path);

/* Take the lock of a worktree if nobody has it; -1: someone has. */
int worktree_try_lock(const char *path);

/* What a folder is. */
enum worktree_kind {
    WORKTREE_WHOLE,   /* a worktree of the repository */
    WORKTREE_LOCKED,  /* ... that git was told to leave alone */
    WORKTREE_FOREIGN, /* none, or a damaged one */
};
enum worktree_kind worktree_look(struct git *git, const char *path);

/* Remove it as git does, by no means by force. The lock is held. */
MUST_USE enum err
worktree_remove(struct git *git, const char *path, struct diag *diag);

/* ERR_DENIED: the branch is checked out in another worktree than this one, and
 * *diag says in which. */
MUST_USE enum err worktree_check_elsewhere(struct git *git,
                                           const struct worktree *worktree,
                                           struct diag *diag);

#endif /* GIT_WORKTREE_H */
