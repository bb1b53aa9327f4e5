/* SPDX-License-Identifier: MIT */
/*
 * worktree: a private checkout for a group, or for the merge queue.
 *
 * Next to the directory PATH are PATH.lock, held by every user of the worktree,
 * and, during its creation, PATH.making: a worktree with that mark has never
 * been used, whatever it contains.
 */
#ifndef GIT_WORKTREE_H
#define GIT_WORKTREE_H

#include "git/git.h"

/* A checkout to create or enter. */
struct worktree {
    const char *path;
    const char *branch;  /* full ref, which is set to `start`; NULL: none */
    struct git_id start; /* commit */
    bool alone;          /* do not share it */
};

/*
 * Wait until the worktree is free, then create, repair and clean it as needed;
 * uncommitted changes are discarded. With `alone` false, other users may have
 * the worktree at the same commit; then it stays unchanged. The lock is held
 * until worktree_leave().
 *
 * ERR_DENIED: an obstacle that an operator must remove.
 * ERR_BUSY: in use with another commit.
 */
MUST_USE enum err worktree_enter(struct git *git,
                                 const struct worktree *worktree,
                                 int *lock_out,
                                 struct diag *diag);
void worktree_leave(int *lock);

/* Remove the locks that killed processes have left in git's directory for it.
 * The caller has the worktree alone. */
void worktree_unlock(struct git *git, const char *path);

/* Take the lock of a worktree; return -1 if it is in use. */
int worktree_try_lock(const char *path);

/* Classification of a directory. */
enum worktree_kind {
    WORKTREE_WHOLE,   /* a worktree of the repository */
    WORKTREE_LOCKED,  /* ... locked with `git worktree lock` */
    WORKTREE_FOREIGN, /* no worktree, or damaged */
};
enum worktree_kind worktree_look(struct git *git, const char *path);

/* Remove it with git, never by force. The caller holds the lock. */
MUST_USE enum err
worktree_remove(struct git *git, const char *path, struct diag *diag);

/* ERR_DENIED: the branch is checked out in another worktree, and *diag names
 * that worktree. */
MUST_USE enum err worktree_check_elsewhere(struct git *git,
                                           const struct worktree *worktree,
                                           struct diag *diag);

#endif /* GIT_WORKTREE_H */
