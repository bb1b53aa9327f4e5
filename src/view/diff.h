/* SPDX-License-Identifier: MIT */
/*
 * diff: the changes of an issue, from the commit where its work began to the
 * tip of its branch; see docs/git.md.
 */
#ifndef VIEW_DIFF_H
#define VIEW_DIFF_H

#include "base/diag.h"
#include "base/strbuf.h"
#include "store/place.h"

#include <stdbool.h>
#include <stdint.h>

/* A changed file. Its numbers are 0 if it is binary. */
struct diff_file {
    char *path;
    char *old_path; /* of a renamed file; else NULL */
    int64_t added;
    int64_t removed;
    bool binary;
};

/* Starts as {0}. The limits of a text and a list are in git/diff.h. */
struct diff_view {
    char *run;               /* id */
    char *group;             /* id; of a task without a group, the task's */
    char *repo;              /* its name in the plan */
    char *from;              /* commits: object ids */
    char *to;                /* the same as `from` as long as it has none */
    struct diff_file *files; /* in the order of the text */
    uint32_t file_count;
    struct strbuf text; /* a unified diff; UTF-8, without NUL */
    bool truncated;     /* a file or a part of the text is missing */
};

/*
 * Read the changes of the issue that a task or group belongs to; `run`: of this
 * run; NULL: found as by target_find(). Waits for git, at most 20 seconds; for
 * any thread. ERR_NOT_FOUND: the name, the work, its branch or repository does
 * not exist; ERR_INVALID: several issues have that name; *diag says which.
 * Release *out in any case.
 */
MUST_USE enum err diff_take(struct diff_view *out,
                            const struct store_place *place,
                            const char *run,
                            const char *name,
                            struct diag *diag);
void diff_release(struct diff_view *view);

/* Append one JSON object and a newline; see sluice-diff(1). */
void diff_add_json(struct strbuf *out, const struct diff_view *view);

/* Append a line for each file, and one for all of them. */
void diff_add_stat(struct strbuf *out, const struct diff_view *view);

#endif /* VIEW_DIFF_H */
