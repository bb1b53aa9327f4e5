/* SPDX-License-Identifier: MIT */
/*
 * files: creating, copying and removing the files of checkouts.
 */
#ifndef GIT_FILES_H
#define GIT_FILES_H

#include "base/diag.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <sys/types.h>

/* Return whether something exists at the path, links not followed. */
bool files_exist(const char *path);

/* Return whether it is a directory and not a link. */
bool files_is_dir(const char *path);

/* Create a directory unless it exists. ERR_DENIED: it is a link, which would
 * lead out of the store. */
MUST_USE enum err files_make_dir(const char *path, struct diag *diag);

/* Create the directories above a path. */
MUST_USE enum err files_make_above(const char *path, struct diag *diag);

/* Remove a file or a directory tree, even one that its owner may not write;
 * links are not followed. It need not exist. */
MUST_USE enum err files_remove(const char *path, struct diag *diag);

/* Write a new file; nothing must exist there. */
MUST_USE enum err
files_write(const char *path, const struct strbuf *text, struct diag *diag);

/*
 * Copy a regular file with its time of modification and `mode`; nothing must
 * exist at `to`. ERR_NOT_FOUND: `from` is no regular file.
 */
MUST_USE enum err
files_copy(const char *from, const char *to, mode_t mode, struct diag *diag);

#endif /* GIT_FILES_H */
