/* SPDX-License-Identifier: MIT */
/*
 * private: the repository of one checkout.
 *
 * It borrows the objects of the user's repository (objects/info/alternates) and
 * has refs, configuration, hooks, index, stash and reflog of its own, so what a
 * session does to them stays inside. It is written file by file, without git,
 * and never believed: each use of the checkout starts with a new one.
 */
#ifndef GIT_PRIVATE_H
#define GIT_PRIVATE_H

#include "git/git.h"

/* What a private repository contains. */
struct private_options {
    const char *branch;  /* full ref, checked out; NULL: none */
    const char *agent;   /* full ref of the agent branch; NULL: none */
    struct git_id start; /* commit */
    bool push;           /* remotes keep their URLs to push to */
    bool own;            /* for sluice only: no refs and no hooks */
};

/* Create a git directory at `dir`, which must not exist. */
MUST_USE enum err private_make(struct git *git,
                               const char *dir,
                               const struct private_options *options,
                               struct diag *diag);

/* Return whether PATH/.git can be read: a directory with objects of its own,
 * and nothing in it leads git to write elsewhere. */
bool private_is_whole(const char *path);

/*
 * Copy the objects of a commit or tree that the checkout at `path` has and the
 * user's repository lacks. They are checked; its own configuration is not read.
 * `known` is a NULL-terminated list of commits that need not be looked at.
 * ERR_CONFLICT: objects are broken or missing.
 */
MUST_USE enum err private_import(struct git *git,
                                 const char *path,
                                 const struct git_id *id,
                                 const char *const *known,
                                 struct diag *diag);

/* Copy the index of the checkout into the git directory `dir`. ERR_NOT_FOUND:
 * it has none. */
MUST_USE enum err
private_copy_index(const char *path, const char *dir, struct diag *diag);

/* Stage all files of a checkout: `where` has its folder, and optionally git
 * directory and objects. *changed_out gets whether they differ from HEAD. */
MUST_USE enum err private_stage(struct git *git,
                                const struct git_call *where,
                                bool *changed_out,
                                struct diag *diag);

#endif /* GIT_PRIVATE_H */
