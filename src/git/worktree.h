/* SPDX-License-Identifier: MIT */
/*
 * worktree: a checkout for a group, or for the merge queue, with a private
 * repository.
 *
 * Next to the directory PATH are PATH.lock, held by every user of the checkout;
 * during its creation, PATH.making: a checkout with that mark has never been
 * used, whatever it contains; and PATH+index, the index as sluice left it. A
 * session can make git overlook changes through its own index, so that one is
 * not used again.
 */
#ifndef GIT_WORKTREE_H
#define GIT_WORKTREE_H

#include "git/agent.h"
#include "git/private.h"

/* A checkout to create or enter. */
struct worktree {
    const char *path;
    struct private_options repo;
    bool alone;    /* do not share it */
    bool now;      /* ... and do not wait for it */
    bool pristine; /* remove ignored files, too, except `checkout->keep` */
    const struct checkout_options *checkout; /* its set-up */
};

/*
 * Wait until the checkout is free, then create or clean it; uncommitted changes
 * are discarded. With `alone` false, other users may have the checkout at the
 * same commit; then it stays unchanged. The lock is held until
 * worktree_leave().
 *
 * ERR_DENIED: an obstacle that an operator must remove.
 * ERR_BUSY: in use; or in use with another commit, for a long time.
 */
MUST_USE enum err worktree_enter(struct git *git,
                                 const struct worktree *worktree,
                                 int *lock_out,
                                 struct diag *diag);
void worktree_leave(int *lock);

/* Take the lock of a checkout; return -1 if it is in use. */
int worktree_try_lock(const char *path);

/* Return whether the directory is a checkout of the repository: one with a
 * private repository, or a worktree that an earlier version has added. */
bool worktree_is_ours(struct git *git, const char *path);

/* Return whether it is a worktree that an earlier version has added: sessions
 * there moved the branch in the user's repository. */
bool worktree_is_old(struct git *git, const char *path);

/* Remove it and what is beside it except for the lock, which the caller
 * holds. */
MUST_USE enum err
worktree_remove(struct git *git, const char *path, struct diag *diag);

/* ERR_DENIED: the branch is checked out in the user's repository or a worktree
 * of it, and *diag names the directory. */
MUST_USE enum err worktree_check_elsewhere(struct git *git,
                                           const char *branch,
                                           struct diag *diag);

#endif /* GIT_WORKTREE_H */
