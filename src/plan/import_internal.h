/* SPDX-License-Identifier: MIT */
/*
 * import_internal: what the sources of import share and no one else may see.
 *
 * (1) import_read.c turns JSON into issues. (2) import_link.c finds out which
 * repository each is of, chooses those of the wave, and asks import_text.c,
 * for each of them, what its body refers to; import_clean.c has taken out of
 * the body what is not said by its author. (3) import_write.c writes.
 */
#ifndef PLAN_IMPORT_INTERNAL_H
#define PLAN_IMPORT_INTERNAL_H

#include "base/arena.h"
#include "plan/import.h"

#include <jansson.h>

/* Above all numbers of issues. */
#define IMPORT_NUMBER_MAX INT64_C(1000000000)

enum {
    IMPORT_ISSUES_MAX = 1000000,
    IMPORT_BODY_BYTES_MAX = 1 << 20, /* GitHub's own limit is 64 KiB */
    IMPORT_NAME_BYTES_MAX = 90,      /* of an owner or a repository */
};

/* A piece of text, with no NUL at its end. */
struct import_span {
    const char *text;
    size_t len;
};

struct import_repo {
    const char *owner; /* NULL: not known */
    const char *name;
    const char *key; /* its name in the plan */
};

struct import_issue {
    const char *file;
    uint32_t seq; /* order of reading */
    int64_t number;
    const char *owner; /* of its repository; NULL: not known */
    const char *name;
    uint32_t repo;
    struct import_span title;
    struct import_span body;
    struct import_span milestone;
    const json_t *labels; /* an array, or NULL */
    bool closed;
    bool pull;
    bool chosen;
    const char *id;
    uint32_t *needs; /* indices of issues, ascending */
    uint32_t need_count;
    struct strbuf dropped; /* references left out, as written */
};

struct import {
    struct import_options options;
    struct arena arena;
    json_t **roots; /* what was read; issues point into it */
    uint32_t root_count;
    uint32_t root_capacity;
    struct import_issue *issues; /* sorted by repo and number once linked */
    uint32_t issue_count;
    uint32_t issue_capacity;
    struct import_repo *repos; /* sorted by name, without regard to case */
    uint32_t repo_count;
    struct import_counts counts;
    struct import_errors errors;
};

/* A reference to an issue in a body. */
struct import_reference {
    struct import_span text;  /* as written */
    struct import_span owner; /* empty: not said */
    struct import_span name;  /* empty: the same repository */
    int64_t number;           /* 0: too large */
    bool range;               /* the end of a range */
    bool pull;                /* it is said to be a pull request */
};

typedef void (*import_reference_fn)(void *ctx,
                                    const struct import_reference *reference);

/* What a line begins with. */
struct import_shape {
    size_t start; /* of what stands behind all that */
    int32_t indent;
    bool bullet;
    bool ticked; /* the bullet has a box that is ticked */
    bool heading;
};

/* Add an error. `file` is borrowed until import_free(), or NULL. */
void import_fail(struct import *import,
                 const char *file,
                 int64_t issue,
                 const char *format,
                 ...) PRINTF_LIKE(4, 5);

/* The same, with a place in the file. */
void import_fail_at(struct import *import,
                    const struct import_error *where,
                    const char *format,
                    ...) PRINTF_LIKE(3, 4);

/*
 * The text in one line that can stand in a plan: white space is single spaces,
 * and nothing is left that YAML or a terminal would act on. At most `max`
 * bytes are appended.
 */
void import_add_line(struct strbuf *out, struct import_span text, size_t max);

/* As strcmp(), without regard to the case of ASCII letters. */
int import_compare(struct import_span a, struct import_span b);

/* The span of a text that ends with NUL; of NULL, an empty one. */
struct import_span import_span(const char *text);

/* Whether `name` will do as the name of an owner or of a repository. */
bool import_is_name(struct import_span name);

/* Split OWNER/NAME or NAME; false when it is neither. */
bool import_split(struct import_span text,
                  struct import_span *owner,
                  struct import_span *name);

/* The name of a label of the list, or an empty span. */
struct import_span import_label(const json_t *labels, size_t ix);

/*
 * Append the body with everything blanked that is not its author's own
 * statement: code, quotations, comments, what is struck through. Lines stay
 * lines. Code becomes IMPORT_HIDDEN, the rest spaces.
 */
void import_clean(struct strbuf *out, struct import_span body);

/* Stands for a byte of code: neither blank nor part of anything. */
enum { IMPORT_HIDDEN = 0x01 };

/* Look at the beginning of a line. */
struct import_shape import_shape(struct import_span line);

/* Find all references on which a body says that its issue depends. */
void import_scan(struct import_span body, import_reference_fn found, void *ctx);

/*
 * Give each issue its repository, choose, and find what each needs. False
 * after an error.
 */
MUST_USE bool import_link(struct import *import);

/* Look for cycles among the chosen issues; each is an error. */
void import_find_cycles(struct import *import);

/* Append the plan. */
void import_write(const struct import *import, struct strbuf *out);

#endif /* PLAN_IMPORT_INTERNAL_H */
