/* SPDX-License-Identifier: MIT */
/*
 * import: a plan made of issues that were exported from GitHub.
 *
 *     struct import *import = import_new(&options);
 *     import_read(import, file, text, len);      for each file
 *     if (!import_plan(import, &text)) ...       import_errors() tells why
 *     import_free(import);
 *
 * An issue becomes a group, what its body says it depends on becomes its
 * needs. docs/import.md tells what is understood. Everything in an export is
 * written by strangers: it reaches the plan as quoted one-line titles, as
 * comments and as ids of few harmless characters, and no command contains any
 * of it.
 */
#ifndef PLAN_IMPORT_H
#define PLAN_IMPORT_H

#include "base/macros.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { IMPORT_ERRORS_MAX = 100 };

/* Where the clone of a repository is. */
struct import_path {
    const char *name; /* of the repository in the plan */
    const char *path; /* relative to the plan */
};

/* A plain value; what it points to is borrowed until import_free(). */
struct import_options {
    const char *milestone;     /* only issues of this one; NULL: all */
    const char *const *labels; /* only issues that have all of these */
    uint32_t label_count;
    const char *repo;   /* of issues that do not name theirs: NAME or
                           OWNER/NAME; NULL: the file's base name */
    const char *name;   /* of the plan; NULL: from the milestone or repo */
    const char *folder; /* which the clones are in; NULL: ".." */
    const struct import_path *paths; /* clones that are elsewhere */
    uint32_t path_count;
    const char *base;    /* branch; NULL: not said */
    const char *run;     /* command that implements; NULL: a stand-in */
    const char *gate;    /* command that tests; NULL: no such stage */
    const char *review;  /* command that reviews; NULL: no such stage */
    bool merge;          /* the last stage merges */
    bool ignore_unknown; /* drop references to what is in no file */
    bool ignore_outside; /* drop those to open issues that were not chosen */
    bool add_needed;     /* choose them instead */
    bool json;           /* write the plan as JSON */
};

/* One error. `file` is NULL when it is of none; `issue`, `line`, `column` 0. */
struct import_error {
    const char *file;
    int64_t issue;
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
    uint32_t closed;  /* left out: closed */
    uint32_t others;  /* left out: not of the milestone, or without label */
    uint32_t pulls;   /* left out: pull requests */
    uint32_t dropped; /* references left out by options */
};

struct import;

/* Begin; the caller ends it with import_free(). */
struct import *import_new(const struct import_options *options);

/* Give everything back. NULL is allowed. */
void import_free(struct import *import);

/*
 * Take in an export: lists of issues, or issues, as JSON, one after the other.
 * `file` is its name in errors, and may name the repository. What is wrong
 * with it is in the errors.
 */
void import_read(struct import *import,
                 const char *file,
                 const char *text,
                 size_t len);

/*
 * Append the plan to *out and return true; or return false, with at least one
 * error. To be called once, after all files.
 */
MUST_USE bool import_plan(struct import *import, struct strbuf *out);

/* What went wrong so far; borrowed from `import`. */
const struct import_errors *import_errors(const struct import *import);

/* After import_plan() has returned true. */
struct import_counts import_counts(const struct import *import);

#endif /* PLAN_IMPORT_H */
