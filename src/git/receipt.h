/* SPDX-License-Identifier: MIT */
/*
 * receipt: the trailers of a merge commit, which say how it was made, and their
 * check against the commits of an agent branch.
 */
#ifndef GIT_RECEIPT_H
#define GIT_RECEIPT_H

#include "git/git.h"

#include <stdint.h>

/* The value of Sluice-Gate without a gate. */
#define RECEIPT_NO_GATE "none"

/* Append one trailer, "\n" included. The value becomes one line. */
void receipt_add(struct strbuf *out, const char *name, const char *value);

/* Append a text as one line, as in a trailer: control characters and runs of
 * white space become a space. */
void receipt_add_line(struct strbuf *out, const char *text);

/* Append the value of the first trailer of that name in a commit message; false
 * if it has none. Trailers are the lines of its last paragraph. */
bool receipt_find(struct strbuf *out, const char *message, const char *name);

/* Return whether any trailer of that name has the value, as one line. */
bool receipt_has(const char *message, const char *name, const char *value);

/* One commit. Strings are borrowed for the call. */
struct receipt_commit {
    const char *commit;
    const char *tree;
    const char *message;
};
typedef void (*receipt_fn)(void *ctx, const struct receipt_commit *commit);

/*
 * Call `fn` for each first-parent commit of an agent branch since its start,
 * newest first: commits that `base` does not contain, and those down to the
 * oldest one with a receipt of the run, since `base` may contain all of them by
 * now.
 */
MUST_USE enum err receipt_walk(struct git *git,
                               const char *tip,
                               const char *base,
                               const char *run,
                               receipt_fn fn,
                               void *ctx,
                               struct diag *diag);

#endif /* GIT_RECEIPT_H */
