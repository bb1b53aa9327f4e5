/* SPDX-License-Identifier: MIT */
/*
 * sandbox_view: what of this machine a confined session sees.
 *
 *   writable     its working directory, its attempt directory (without the
 *                records of the shim), the plan's `write`, and the state of its
 *                agent
 *   read-only    the system, the object directories that its repository
 *                borrows, the plan's `read`, the program of its agent
 *   empty        the home directory, /tmp, /var/tmp, /run
 *
 * The store, the home directory and the repositories of the plan never show
 * through a directory that contains them: name them to see them.
 */
#ifndef EXEC_SANDBOX_VIEW_H
#define EXEC_SANDBOX_VIEW_H

#include "base/diag.h"
#include "exec/sandbox.h"

/* The path of the first program in the sandbox. */
#define SANDBOX_INIT "/run/sluice-sandbox"

/* A request. Strings are borrowed. */
struct sandbox_view {
    const char *attempt; /* attempt directory, or NULL */
    const char *folder;  /* working directory without links, or NULL */
    const char *program; /* name in PATH of an agent's program, or NULL */
    bool network;
    struct sandbox_words cover;  /* directories to keep out of sight */
    struct sandbox_words write;  /* must exist */
    struct sandbox_words read;   /* must exist */
    struct sandbox_words state;  /* directories; created if missing */
    struct sandbox_words login;  /* writable files, if they exist */
    struct sandbox_words config; /* read-only, if they exist */
    struct sandbox_words copy;   /* files; a private copy, if they exist */
    struct sandbox_words env;    /* names of variables */
};

/*
 * Add all mounts. Some paths come from variables that sluice sets: SLUICE_BODY,
 * SLUICE_DOOR (its directory), SLUICE_PROGRAM,
 * SLUICE_OBJECTS (the git object directory to borrow from), SLUICE_REPO_NAME,
 * SLUICE_GIT_NAME and SLUICE_GIT_EMAIL (for commits).
 * Opens files of `copy`, which the caller's next program
 * inherits. ERR_NOT_FOUND: a path does not exist; ERR_INVALID: the request
 * cannot be confined; ERR_IO.
 */
MUST_USE enum err sandbox_view_add(struct sandbox *sandbox,
                                   const struct sandbox_view *view,
                                   struct diag *diag);

/* Find a program in the absolute directories of PATH; false if none. */
bool sandbox_find_program(const char *name, char *out, size_t size);

#endif /* EXEC_SANDBOX_VIEW_H */
