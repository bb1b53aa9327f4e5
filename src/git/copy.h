/* SPDX-License-Identifier: MIT */
/*
 * copy: copies of a user's files in a checkout.
 *
 * Both trees may be hostile. No symbolic link is followed in either; a link is
 * copied as a link, and only if it stays inside the tree. Anything but files,
 * directories and links is left out, and so is ".git".
 */
#ifndef GIT_COPY_H
#define GIT_COPY_H

#include "base/arena.h"
#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* A file, directory or link to copy. */
struct copy_entry {
    const char *path; /* relative to the tree */
    struct stat status;
    bool omit; /* do not copy it; a caller may set it */
};

/* A path and all below it, a directory before its content. */
struct copy_list {
    struct copy_entry *entries;
    uint32_t count;
    uint32_t capacity;
    struct arena arena;
};

/*
 * List `path` in the tree `from`, and log what cannot be copied. ERR_NOT_FOUND:
 * it does not exist; ERR_DENIED: it cannot be copied at all; both with a
 * reason.
 */
MUST_USE enum err copy_list_path(struct copy_list *list,
                                 const char *from,
                                 const char *path,
                                 struct diag *diag);
void copy_list_release(struct copy_list *list);

/*
 * Copy the entries from one tree to another, unless they are there with the
 * same size, time and mode. `temp` is a path on the file system of `to`; a file
 * appears complete or not at all. With `mirror`, remove what is below the first
 * entry in `to` and not in the list. ERR_DENIED: a directory above the first
 * entry is none.
 */
struct copy_trees {
    const char *from;
    const char *to;
    const char *temp;
    bool mirror;
};
MUST_USE enum err copy_entries(const struct copy_trees *trees,
                               const struct copy_list *list,
                               struct diag *diag);

/* Copy the file `name` of a directory to the new file `to`; follow no links.
 * ERR_NOT_FOUND: it is no plain file. */
MUST_USE enum err copy_one_file(const char *dir,
                                const char *name,
                                const char *to,
                                struct diag *diag);

/* Open the directory `path` below `root`, where no component may be a link;
 * with `create`, missing directories are created. -1 with errno on failure. */
int copy_open_dir(const char *root, const char *path, bool create);

/* Remove a file or tree; follow no links. */
MUST_USE enum err copy_remove(const char *path, struct diag *diag);

#endif /* GIT_COPY_H */
