/* SPDX-License-Identifier: MIT */
/*
 * import: converter from GitHub, beads or Task Master issues to a plan.
 *
 *     struct import *import = import_new(&options);
 *     import_read(import, &file);                for each file
 *     if (!import_plan(import, &text)) ...       import_errors() has the cause
 *     while (import_next_body(import, &ix, &body)) ...
 *     import_free(import);
 *
 * An issue becomes a group, its dependencies become the needs of that group.
 * docs/import.md describes the formats. Exports are untrusted: their content
 * reaches the plan only as quoted one-line titles, quoted bodies, comments, and
 * ids of few harmless characters. No command contains any of it.
 */
#ifndef IMPORT_IMPORT_H
#define IMPORT_IMPORT_H

#include "base/macros.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { IMPORT_ERRORS_MAX = 100 };

/* Origin of the issues. */
enum import_source {
    IMPORT_GITHUB,     /* gh issue list --json */
    IMPORT_BEADS,      /* .beads/issues.jsonl */
    IMPORT_TASKMASTER, /* .taskmaster/tasks/tasks.json */
};

/* Append the branch that is checked out in the clone at `path`, which is
 * relative to the plan; append nothing if no clone exists there. */
typedef void (*import_branch_fn)(void *ctx,
                                 const char *path,
                                 struct strbuf *out);

/* Location of the clone of a repository. */
struct import_path {
    const char *name; /* of the repository in the plan */
    const char *path; /* relative to the plan */
};

/* A plain value; its pointers are borrowed until import_free(). */
struct import_options {
    enum import_source source;
    const char *milestone;     /* only issues of this milestone; NULL: all */
    const char *const *labels; /* only issues with all of these labels */
    uint32_t label_count;
    const char *const *excluded; /* only issues with none of these */
    uint32_t excluded_count;
    const char *tag;  /* task list in a Task Master file; NULL: master */
    const char *repo; /* for issues that do not name theirs: NAME or OWNER/NAME;
                         NULL: the file's base name */
    const char *name; /* of the plan; NULL: milestone or repo */
    const char *folder;              /* directory of the clones; NULL: ".." */
    const struct import_path *paths; /* clones outside of it */
    uint32_t path_count;
    const char *base;        /* branch; NULL: `branch` if merging */
    import_branch_fn branch; /* NULL: "main" */
    void *branch_ctx;        /* for `branch` */
    const char *run;         /* command that implements; NULL: a stub */
    const char *agent;       /* agent that implements, instead of `run` */
    const char *gate;   /* command that tests, or "none"; NULL: not given */
    const char *review; /* command that reviews; NULL: no stage */
    const char *review_agent; /* agent that reviews, not `review` */
    const char *bodies;  /* directory for issue bodies, relative to the plan;
                            NULL: bodies are in the plan */
    bool merge;          /* the last stage merges */
    bool keep_parents;   /* issues with sub-issues are work, too */
    bool ignore_unknown; /* drop references to issues in no file */
    bool ignore_outside; /* drop references to open issues not chosen */
    bool ignore_pulls;   /* drop references to open pull requests */
    bool add_needed;     /* choose open issues that others need */
    bool json;           /* write the plan as JSON */
};

/* A file to import; a plain value, borrowed for the call. */
struct import_file {
    const char *name; /* in errors */
    const char *path; /* gives the repository name; NULL: as `name` */
    const char *text;
    size_t len;
};

/* The body of an issue of the plan; borrowed from the import. */
struct import_body {
    const char *path; /* relative to the plan */
    const char *text; /* with a final line break */
    size_t len;
};

/* One error. `file` and `key` may be NULL; `issue`, `line` and `column` may be
 * 0. */
struct import_error {
    const char *file;
    const char *key; /* id of an issue without a number */
    int64_t issue;   /* its number */
    uint32_t line;
    uint32_t column;
    char *text; /* untrusted: may contain anything from an export */
};

/* All errors, in the order of detection. */
struct import_errors {
    struct import_error *items;
    uint32_t count;
    uint32_t capacity;
    bool cut; /* errors beyond IMPORT_ERRORS_MAX were dropped */
};

/* Number of issues in the plan, and left out of it by reason. */
struct import_counts {
    uint32_t issues; /* in the plan */
    uint32_t repos;
    uint32_t needs;
    uint32_t closed;   /* left out: closed */
    uint32_t others;   /* left out: not of the milestone, or without label */
    uint32_t pulls;    /* left out: pull requests, and gates of beads */
    uint32_t parents;  /* left out: their sub-issues are the work */
    uint32_t deferred; /* left out: deferred */
    uint32_t dropped;  /* references left out by options */
};

struct import;

/* Create an import; the caller frees it with import_free(). */
struct import *import_new(const struct import_options *options);

/* Free the import. NULL is allowed. */
void import_free(struct import *import);

/*
 * Read an export. Its name or path may give the repository. Errors are added to
 * import_errors().
 */
void import_read(struct import *import, const struct import_file *file);

/*
 * Append the plan to *out and return true; on failure return false, with at
 * least one error. Call it once, after all files.
 */
MUST_USE bool import_plan(struct import *import, struct strbuf *out);

/* Return all errors so far; borrowed from `import`. */
const struct import_errors *import_errors(const struct import *import);

/* Valid after import_plan() has returned true. */
struct import_counts import_counts(const struct import *import);

/*
 * Find the next body with an index of at least *ix, store it in *out and
 * advance *ix past it; false if none is left. Valid after import_plan() has
 * returned true, with `bodies`.
 */
MUST_USE bool import_next_body(const struct import *import,
                               uint32_t *ix,
                               struct import_body *out);

#endif /* IMPORT_IMPORT_H */
