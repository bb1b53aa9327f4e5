/* SPDX-License-Identifier: MIT */
/*
 * found: what is in a checkout after a session or a person has worked there.
 * The private repository is only read; see private.h.
 */
#ifndef GIT_FOUND_H
#define GIT_FOUND_H

#include "git/setup.h"

/* The commits in a checkout. */
struct found {
    struct git_id tip;       /* HEAD if it continues the branch, else the
                                branch; "": none */
    struct git_id branch;    /* "": it is gone */
    struct git_id head;      /* "": none */
    struct strbuf head_name; /* full ref, or "HEAD" */
};

/* Read them; the branch began at `start`. ERR_CONFLICT: the repository of the
 * checkout was removed, replaced or damaged. */
MUST_USE enum err found_read(struct found *found,
                             const struct setup *where,
                             const char *branch,
                             const struct git_id *start,
                             struct diag *diag);
void found_release(struct found *found);

/* Return the number of files with uncommitted changes; *list gets git's list
 * of them. */
size_t found_count_changes(const struct setup *where, struct strbuf *list);

/*
 * Take a snapshot of all files that git does not ignore: *tree_out gets their
 * tree, "" if it equals that of `tip`. With a message, *commit_out gets a
 * commit of it on top of `tip`. All objects stay in the checkout.
 */
MUST_USE enum err found_snapshot(const struct setup *where,
                                 const struct git_id *tip,
                                 const char *message,
                                 struct git_id *tree_out,
                                 struct git_id *commit_out,
                                 struct diag *diag);

/* Append a line for each thing that a session has done to its repository and
 * that is not taken: branches, tags, a stash, remotes, hooks. */
void found_tell(const struct setup *where,
                const char *branch,
                struct strbuf *out);

#endif /* GIT_FOUND_H */
