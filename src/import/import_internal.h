/* SPDX-License-Identifier: MIT */
/*
 * import_internal: declarations shared by the sources of import.
 *
 * (1) import_read.c reads files; import_github.c, import_beads.c and
 * import_taskmaster.c convert their JSON to issues and ties between them. (2)
 * import_repos.c finds the repository of each issue. (3) import_family.c links
 * parents and children. (4) import_link.c chooses the issues of the plan and
 * resolves their references; for GitHub, import_text.c and import_reference.c
 * find references in bodies, from which import_clean.c has removed code and
 * quotations. (5) import_cycle.c searches for cycles, import_order.c sorts by
 * priority, import_write.c writes.
 */
#ifndef IMPORT_IMPORT_INTERNAL_H
#define IMPORT_IMPORT_INTERNAL_H

#include "base/arena.h"
#include "import/import.h"

#include <jansson.h>
#include <string.h>

/* Upper bound of issue numbers. */
#define IMPORT_NUMBER_MAX INT64_C(1000000000)

/* "None", for issue indices. */
#define IMPORT_NONE UINT32_MAX

enum {
    IMPORT_ISSUES_MAX = 1000000,
    IMPORT_NEEDS_MAX = 10000000,
    IMPORT_BODY_BYTES_MAX = 1 << 20, /* GitHub's own limit is 64 KiB */
    IMPORT_NAME_BYTES_MAX = 90,      /* of an owner or a repository */
    IMPORT_KEY_BYTES_MAX = 64,       /* of an id that is not a number */
    IMPORT_LEVELS_MAX = 32,          /* of parents, as in a plan */
};

/* P0 is the most urgent. */
enum {
    IMPORT_PRIORITY_DEFAULT = 2,
    IMPORT_PRIORITY_MAX = 4,
    IMPORT_PRIORITY_UNSET = 5,
};

/* A string without a terminating NUL. */
struct import_span {
    const char *text;
    size_t len;
};

struct import_repo {
    const char *owner; /* NULL: unknown */
    const char *name;
    const char *key; /* its name in the plan */
};

/* A reference to an issue. */
struct import_reference {
    struct import_span text;  /* as written */
    struct import_span owner; /* empty: not given */
    struct import_span name;  /* empty: the same repository */
    int64_t number;           /* 0: too large, or has a key */
    const char *key;          /* an id that is not a number, or NULL */
    bool range;               /* last issue of a range */
    bool pull;                /* named as a pull request */
};

enum import_tie_kind {
    IMPORT_NEEDS,  /* depends on the other issue */
    IMPORT_BLOCKS, /* the other issue depends on this one */
    IMPORT_PARENT, /* is a sub-issue of the other issue */
    IMPORT_CHILD,  /* has the other issue as a sub-issue */
};

/* A relation that a field of an issue states. */
struct import_tie {
    enum import_tie_kind kind;
    struct import_reference reference;
    bool closed; /* the field gives the other issue as closed */
    struct import_tie *next;
};

enum import_kind {
    IMPORT_ISSUE,
    IMPORT_PULL, /* a pull request */
    IMPORT_GATE, /* of beads: waits for an external event */
};

struct import_issue {
    const char *file;
    uint32_t seq; /* reading order */
    int64_t number;
    const char *key;   /* id without a number, or NULL */
    const char *owner; /* of its repository; NULL: unknown */
    const char *name;
    uint32_t repo;
    enum import_kind kind;
    struct import_span title;
    struct import_span body;
    struct import_span milestone;
    const json_t *labels; /* an array, or NULL */
    struct import_span url;
    struct import_tie *ties;
    struct import_tie *last_tie;
    uint32_t priority; /* 0 to 4, or IMPORT_PRIORITY_UNSET */
    uint32_t urgency;  /* the same, and that of its most urgent dependent */
    bool closed;
    bool deferred;
    bool barred;  /* has an excluded label */
    bool matched; /* of the milestone, with the labels */
    bool wanted;  /* matched and open */
    bool chosen;  /* a group of the plan */
    bool closes;  /* GitHub closes it by "Closes #NUMBER" */
    bool above;   /* a group of the plan because of its sub-issues */
    bool queued;  /* its references are read or queued */
    const char *id;
    uint32_t parent; /* index, or IMPORT_NONE */
    uint32_t child_first;
    uint32_t child_count;
    uint32_t *needs; /* indices of issues, ascending */
    uint32_t need_count;
    struct strbuf dropped; /* dropped references, as written */
    struct import_body file_body;
};

struct import {
    struct import_options options;
    struct arena arena;
    json_t **roots; /* parsed JSON; issues point into it */
    uint32_t root_count;
    uint32_t root_capacity;
    struct import_issue *issues; /* sorted by repo and number once linked */
    uint32_t issue_count;
    uint32_t issue_capacity;
    struct import_repo *repos; /* sorted by name, ignoring case */
    uint32_t repo_count;
    uint32_t *children; /* issue indices, grouped by parent */
    uint32_t *order;    /* indices of the chosen issues, in output order */
    struct import_counts counts;
    struct import_errors errors;
};

typedef void (*import_reference_fn)(void *ctx,
                                    const struct import_reference *reference);

/* The markup at the beginning of a line. */
struct import_shape {
    size_t start; /* offset of the content after the markup */
    int32_t indent;
    bool bullet;
    bool ticked; /* the bullet has a ticked box */
    bool heading;
};

/* Add an error about a file, or about none (NULL). `file` is borrowed until
 * import_free(). */
void import_fail(struct import *import,
                 const char *file,
                 const char *format,
                 ...) PRINTF_LIKE(3, 4);

/* The same about an issue: with its file, and its number or key. */
void import_fail_issue(struct import *import,
                       const struct import_issue *issue,
                       const char *format,
                       ...) PRINTF_LIKE(3, 4);

/* The same, with a position in the file. */
void import_fail_at(struct import *import,
                    const struct import_error *where,
                    const char *format,
                    ...) PRINTF_LIKE(3, 4);

/*
 * Append the string as one line that is valid in a plan: white space becomes
 * single spaces, and characters special to YAML or a terminal are removed. At
 * most `max` bytes are appended.
 */
void import_add_line(struct strbuf *out, struct import_span text, size_t max);

/* The same, keeping line breaks and tabs, except leading or trailing ones. */
void import_add_lines(struct strbuf *out, struct import_span text);

/* Like strcmp(), ignoring the case of ASCII letters. */
int import_compare(struct import_span a, struct import_span b);

/* Whether the span equals this word (one of these), by import_compare(). */
bool import_is(struct import_span text, const char *word);
bool import_is_one_of(struct import_span text,
                      const char *const *words,
                      size_t count);

/* The same byte by byte. */
static inline bool import_is_exactly(struct import_span text, const char *word)
{
    return strlen(word) == text.len && memcmp(text.text, word, text.len) == 0;
}

static inline struct import_span import_between(const char *from,
                                                const char *to)
{
    return (struct import_span){from, (size_t)(to - from)};
}

static inline bool import_is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static inline bool import_is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

/* Cut the next line off *rest; false if nothing is left. */
bool import_next_line(struct import_span *rest, struct import_span *line);

/* Like strcmp(), comparing runs of digits as numbers; NULL is "". */
int import_compare_keys(const char *a, const char *b);

/* Return the span of a string; an empty one for NULL. */
struct import_span import_span(const char *text);

/* Copy a string until import_free(); import_take() also releases `text`. */
struct import_span import_keep(struct import *import, struct import_span text);
struct import_span import_take(struct import *import, struct strbuf *text);

/* Whether `name` is valid as the name of an owner or a repository. */
bool import_is_name(struct import_span name);

/* Whether `key` is valid as the id of an issue. */
bool import_is_key(struct import_span key);

/* Split OWNER/NAME or NAME; false if it is neither. */
bool import_split(struct import_span text,
                  struct import_span *owner,
                  struct import_span *name);

/* Return the name of a label of the list, or an empty span. */
struct import_span import_label(const json_t *labels, size_t ix);

/* Append a tie to an issue. Borrowed until import_free(). */
struct import_tie *import_add_tie(struct import *import,
                                  struct import_issue *issue,
                                  enum import_tie_kind kind);

/*
 * Append the body, blanking all but the author's own statements: code,
 * quotations, comments and strikethrough go. Lines stay lines. Code becomes
 * IMPORT_HIDDEN, the rest spaces.
 */
void import_clean(struct strbuf *out, struct import_span body);

/* Replaces a byte of code: neither blank nor part of a word. */
enum { IMPORT_HIDDEN = 0x01 };

/* Parse the markup at the beginning of a line. */
struct import_shape import_shape(struct import_span line);

/* Find all references in a body to issues that its issue depends on. */
void import_scan(struct import_span body, import_reference_fn found, void *ctx);

/* Set the repository and id of each issue, and sort the issues. */
void import_find_repos(struct import *import);

/*
 * Return the issue that a reference in `from` means, or NULL. *known: issues of
 * that repository exist. *many: several repositories have that name.
 */
struct import_issue *import_resolve(const struct import *import,
                                    const struct import_issue *from,
                                    const struct import_reference *reference,
                                    bool *known,
                                    bool *many);

/* Link parents and children, and add the needs that other issues state. Parents
 * that form a cycle, or are nested too deep, are errors. */
void import_link_family(struct import *import);

/* Whether sub-issues are the work of this issue, not the issue itself. */
bool import_is_container(const struct import *import,
                         const struct import_issue *issue);

/* Whether `ix` is `top` or a descendant of it. */
bool import_is_below(const struct import *import, uint32_t ix, uint32_t top);

/*
 * Find repositories, choose the issues and find the needs of each. False after
 * an error.
 */
MUST_USE bool import_link(struct import *import);

/* Report each cycle among the chosen issues as an error. */
void import_find_cycles(struct import *import);

/* Return the priority that a label gives, or IMPORT_PRIORITY_UNSET. */
uint32_t import_label_priority(struct import_span label);

/* Set import->order: by urgency, then by repository and number. Requires that
 * no cycles exist. */
void import_set_order(struct import *import);

/* Append the plan. */
void import_write(struct import *import, struct strbuf *out);

#endif /* IMPORT_IMPORT_INTERNAL_H */
