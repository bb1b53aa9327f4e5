/* SPDX-License-Identifier: MIT */
/*
 * submodule: the submodules of a checkout.
 *
 * A submodule is a small repository in the checkout that borrows the objects of
 * the user's own copy, which is never changed. Only what the user's copy lacks
 * is fetched, once for all checkouts of a run.
 */
#ifndef GIT_SUBMODULE_H
#define GIT_SUBMODULE_H

#include "git/setup.h"

/*
 * Check out the commits of all submodules, recursively. A submodule that the
 * user has not initialised is left empty, unless it is new in this run.
 * ERR_DENIED: a submodule cannot be had, and *diag names it.
 */
MUST_USE enum err submodule_enter(const struct setup *setup, struct diag *diag);

/* Log which submodules have commits of the session: they are not kept. */
void submodule_tell(const struct setup *setup);

/* Remove the fetched submodules next to the checkouts in `folder`. */
void submodule_forget(const char *folder);

#endif /* GIT_SUBMODULE_H */
