/* SPDX-License-Identifier: MIT */
/*
 * sandbox: the file system that a confined session sees, and the arguments of
 * bwrap (bubblewrap) that create it.
 *
 * Pure: nothing here does I/O; sandbox_view.c looks at this machine. Everything
 * that is not mounted does not exist for the session. Mounts are made in the
 * order of their paths, so that a mount inside another one comes after it.
 *
 * Memory: a struct sandbox owns its strings. Starts as {0}.
 */
#ifndef EXEC_SANDBOX_H
#define EXEC_SANDBOX_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

/* What a path is in the sandbox. Of two for one path, the later kind wins. */
enum sandbox_kind {
    SANDBOX_COVER, /* an empty directory, where a mount would show the path */
    SANDBOX_EMPTY, /* an empty directory */
    SANDBOX_BLANK, /* an empty file */
    SANDBOX_LINK,  /* a symbolic link */
    SANDBOX_COPY,  /* a file with the content of a descriptor */
    SANDBOX_READ,  /* as on the machine, read-only */
    SANDBOX_WRITE, /* as on the machine */
};

struct sandbox_mount {
    enum sandbox_kind kind;
    const char *path;   /* absolute, normalised */
    const char *target; /* of SANDBOX_LINK; of SANDBOX_READ: the file to show,
                           or NULL: the path itself */
    int fd;             /* of SANDBOX_COPY */
};

struct sandbox {
    struct arena arena;
    struct sandbox_mount *mounts; /* sorted by path */
    uint32_t count;
    uint32_t capacity;
};

void sandbox_release(struct sandbox *sandbox);

/* Add a mount; copies the strings. */
void sandbox_add(struct sandbox *sandbox, const struct sandbox_mount *mount);

/* Return the mount that decides what `path` shows, or NULL: nothing. */
const struct sandbox_mount *sandbox_over(const struct sandbox *sandbox,
                                         const char *path);

/* Whether the path shows the file of the machine. */
bool sandbox_shows(const struct sandbox *sandbox, const char *path);

/* Whether `path` is `dir` or inside it. Both must be normalised. */
bool sandbox_is_inside(const char *path, const char *dir);

/* A list of words with a final NULL. Starts as {0}. */
struct sandbox_words {
    const char **items;
    uint32_t count;
    uint32_t capacity;
};
void sandbox_add_word(struct sandbox_words *words, const char *word);
void sandbox_release_words(struct sandbox_words *words);

/* Append the arguments for bwrap. Words are borrowed from *sandbox and from
 * `folder`, the working directory. `root`: the user is root. */
void sandbox_add_arguments(struct sandbox *sandbox,
                           struct sandbox_words *out,
                           const char *folder,
                           bool network,
                           bool root);

/*
 * Whether a variable, as NAME=value, reaches the session: a variable of
 * sluice's, a few that every program needs, and those in `names`, where a
 * final '*' stands for any characters.
 */
bool sandbox_keeps(const char *item, const char *const *names, uint32_t count);

#endif /* EXEC_SANDBOX_H */
