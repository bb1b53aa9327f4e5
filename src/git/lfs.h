/* SPDX-License-Identifier: MIT */
/*
 * lfs: large files of git-lfs in a checkout.
 *
 * git-lfs finds the user's large files by itself, without network: the
 * checkout's repository borrows the objects of the user's, and git-lfs looks
 * for its own next to them. The rest is here.
 */
#ifndef GIT_LFS_H
#define GIT_LFS_H

#include "git/setup.h"

/*
 * Separate the large files of a checkout from the user's, which git-lfs has
 * linked. Log a line if the checkout has pointers instead of large files,
 * because git-lfs is not set up.
 */
MUST_USE enum err lfs_enter(const struct setup *setup, struct diag *diag);

/* Copy the large files in the git directory `git_dir` to the user's repository,
 * checked. ERR_CONFLICT: one is damaged. */
MUST_USE enum err
lfs_carry(const struct setup *setup, const char *git_dir, struct diag *diag);

#endif /* GIT_LFS_H */
