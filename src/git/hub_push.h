/* SPDX-License-Identifier: MIT */
/*
 * hub_push: changes of refs in a hub.
 *
 * One atomic push, in which the hub compares every ref with its expected value,
 * takes the place of a transaction. A push does not compare refs that it leaves
 * unchanged; so a caller that must not be superseded also changes a fence.
 */
#ifndef GIT_HUB_PUSH_H
#define GIT_HUB_PUSH_H

#include "git/git.h"

/*
 * Change refs by lines for `git update-ref --stdin`, all or none, in the hub
 * and then in the mirror. If the outcome of a push is unknown, it is read from
 * the hub. ERR_CONFLICT: a line does not apply, and the mirror shows why;
 * ERR_UNAVAILABLE: the hub cannot be reached, for longer than git_patience();
 * ERR_DENIED: it refuses.
 */
MUST_USE enum err
hub_push(struct git *git, const char *lines, struct diag *diag);

#endif /* GIT_HUB_PUSH_H */
