/* SPDX-License-Identifier: MIT */
/*
 * fetch: the newest base, from its remote.
 *
 * The fetched commit is kept in a ref of sluice. The user's branches,
 * remote-tracking branches, tags and FETCH_HEAD stay as they are.
 */
#ifndef GIT_FETCH_H
#define GIT_FETCH_H

#include "git/git.h"

/*
 * Fetch the branch `base` into `ref`: from its upstream; or, if it names a
 * remote-tracking branch, from there; or the branch of the same name from
 * origin or the only remote. ERR_INVALID: there is no such remote or branch;
 * ERR_UNAVAILABLE: the remote cannot be reached now.
 */
MUST_USE enum err fetch_base(struct git *git,
                             const char *base,
                             const char *ref,
                             struct diag *diag);

#endif /* GIT_FETCH_H */
