/* SPDX-License-Identifier: MIT */
/*
 * import: a plan made of the issues of GitHub, beads or Task Master.
 *
 *     struct import *import = import_new(&options);
 *     import_read(import, &file);                for each file
 *     if (!import_plan(import, &text)) ...       import_errors() has the cause
 *     while (import_next_body(import, &ix, &body)) ...
 *     import_free(import);
 *
 * An issue becomes a group, its dependencies become the needs of that group.
 * docs/import.md describes the formats. Everything in an export is written by
 * strangers: it reaches the plan as quoted one-line titles, quoted bodies,
 * comments, and ids of few harmless characters. No command contains any of it.
 */
#ifndef IMPORT_IMPORT_H
#define IMPORT_IMPORT_H

#include "base/macros.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { IMPORT_ERRORS_MAX = 100 };

/* Where the issues come from. */
enum import_source {
    IMPORT_GITHUB,     /* gh issue list --json */
    IMPORT_BEADS,      /* .beads/issues.jsonl */
    IMPORT_TASKMASTER, /* .taskmaster/tasks/tasks.json */
};

/* Append the branch that is checked out in the clone at `path`, which is
 * relative to the plan; nothing if there is no clone. */
typedef void (*import_branch_fn)(void *ctx,
                                 const char *path,
                                 struct strbuf *out);

/* Where the clone of a repository is. */
struct import_path {
    const char *name; /* of the repository in the plan */
    const char *path; /* relative to the plan */
};

/* A plain value; what it points to is borrowed until import_free(). */
struct import_options {
    enum import_source source;
    const char *milestone;     /* only issues of this one; NULL: all */
    const char *const *labels; /* only issues that have all of these */
    uint32_t label_count;
    const char *const *excluded; /* only issues that have none of these */
    uint32_t excluded_count;
    const char *tag;    /* list of a Task Master file; NULL: master */
    const char *repo;   /* of issues that do not name theirs: NAME or
                           OWNER/NAME; NULL: the file's base name */
    const char *name;   /* of the plan; NULL: from the milestone or repo */
    const char *folder; /* which the clones are in; NULL: ".." */
    const struct import_path *paths; /* clones that are elsewhere */
    uint32_t path_count;
    const char *base;         /* branch; NULL: `branch` if there is a merge */
    import_branch_fn branch;  /* NULL: "main" */
    void *branch_ctx;         /* of `branch` */
    const char *run;          /* command that implements; NULL: a stand-in */
    const char *agent;        /* that implements, instead of `run` */
    const char *gate;         /* command that tests; NULL: no such stage */
    const char *review;       /* command that reviews; NULL: no such stage */
    const char *review_agent; /* that reviews, instead of `review` */
    const char *bodies;       /* directory for the bodies of the issues, beside
                                 the plan; NULL: they are part of the plan */
    bool merge;               /* the last stage merges */
    bool keep_parents;        /* issues that have sub-issues are work, too */
    bool ignore_unknown;      /* drop references to what is in no file */
    bool ignore_outside; /* drop those to open issues that were not chosen */
    bool ignore_pulls;   /* drop those to open pull requests */
    bool add_needed;     /* choose open issues that are needed */
    bool json;           /* write the plan as JSON */
};

/* A file to import; a plain value, borrowed for the call. */
struct import_file {
    const char *name; /* in errors */
    const char *path; /* names the repository; NULL: as `name` */
    const char *text;
    size_t len;
};

/* The body of an issue of the plan; borrowed from the import. */
struct import_body {
    const char *path; /* relative to the plan */
    const char *text; /* ends with a line break */
    size_t len;
};

/* One error. `file` and `key` are NULL when it has none; `issue`, `line`,
 * `column` 0. */
struct import_error {
    const char *file;
    const char *key; /* id of an issue that has no number */
    int64_t issue;   /* its number */
    uint32_t line;
    uint32_t column;
    char *text; /* may contain anything that an export contains */
};

/* All errors, in order of finding. */
struct import_errors {
    struct import_error *items;
    uint32_t count;
    uint32_t capacity;
    bool cut; /* there were more than IMPORT_ERRORS_MAX */
};

/* What became of the issues. */
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

/* Begin; the caller ends it with import_free(). */
struct import *import_new(const struct import_options *options);

/* Give everything back. NULL is allowed. */
void import_free(struct import *import);

/*
 * Take in an export. Its name or path may name the repository. Its faults are
 * in the errors.
 */
void import_read(struct import *import, const struct import_file *file);

/*
 * Append the plan to *out and return true; or return false, with at least one
 * error. To be called once, after all files.
 */
MUST_USE bool import_plan(struct import *import, struct strbuf *out);

/* What went wrong so far; borrowed from `import`. */
const struct import_errors *import_errors(const struct import *import);

/* After import_plan() has returned true. */
struct import_counts import_counts(const struct import *import);

/*
 * The body with the lowest index from *ix on, in *out, and *ix behind it; false
 * when there is none. After import_plan() has returned true, with `bodies`.
 */
MUST_USE bool import_next_body(const struct import *import,
                               uint32_t *ix,
                               struct import_body *out);

#endif /* IMPORT_IMPORT_H */
