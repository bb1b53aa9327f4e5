/* SPDX-License-Identifier: MIT */
/*
 * disk: what a plan needs on this machine, and what of it is missing.
 */
#ifndef CLI_DISK_H
#define CLI_DISK_H

#include "cli/warnings.h"

/*
 * Look for the repositories of a plan whose file is in `folder`, an absolute
 * path: each path must be a directory, and with a base a git repository that
 * has this branch. What is wrong comes back as a list, which the caller
 * releases.
 */
struct warnings disk_find(const struct plan *plan, const char *folder);

#endif /* CLI_DISK_H */
