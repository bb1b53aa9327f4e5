/* SPDX-License-Identifier: MIT */
/*
 * diff: the changes of one issue, from the commit where its work began to the
 * tip of its branch. Nothing is written to the repository.
 *
 * The answer is one JSON object in one line:
 *
 *   {"from": ID, "to": ID, "truncated": BOOL, "files": [{"path": P,
 *    "old_path": P or null, "added": N, "removed": N, "binary": BOOL}, ...],
 *    "text": T}
 *   {"error": NAME, "text": T}      NAME is that of an enum err
 *
 * A binary file has null for "added" and "removed". The text is a unified diff
 * in the order of the files; it has no NUL, and is valid UTF-8.
 */
#ifndef GIT_DIFF_H
#define GIT_DIFF_H

#include "base/strbuf.h"

#include <stdbool.h>

/* Limits of an answer. The text ends with a whole line. A larger file than
 * this counts as binary: git would need several times its size in memory. */
enum {
    DIFF_TEXT_BYTES_MAX = 1 << 20,
    DIFF_FILES_MAX = 1000,
    DIFF_FILE_MIB_MAX = 16,
};

/* The issue. All strings are borrowed. */
struct diff_options {
    const char *path;  /* of the repository, absolute */
    const char *home;  /* which has its mirror, if it has a `url` */
    const char *url;   /* of its hub; NULL: none */
    const char *run;   /* id */
    const char *entry; /* see names_add_branch() */
    const char *owner; /* see names_add_owner() */
    const char *group; /* id */
    bool begun;        /* a session of the group has started */
};

/* Append the answer and a newline. */
void diff_answer(struct strbuf *out, const struct diff_options *options);

/* Make the output of git a text as above; return whether any of it was cut off.
 * `cut`: its end is missing already. */
bool diff_clean(struct strbuf *text, bool cut);

/* Append the JSON objects, separated by commas, of the files that `git diff
 * --numstat -z` has listed. Return whether some are missing; so is the last one
 * if the list is `cut`. */
bool diff_add_files(struct strbuf *out, const struct strbuf *list, bool cut);

#endif /* GIT_DIFF_H */
