/* SPDX-License-Identifier: MIT */
/*
 * import_internal: shared by the sources of import.
 *
 * (1) import_read.c reads files; import_github.c, import_beads.c and
 * import_taskmaster.c turn their JSON into issues and ties between them.
 * (2) import_repos.c finds the repository of each issue. (3) import_family.c
 * links parents and children. (4) import_link.c chooses the issues of the plan
 * and resolves their references; for GitHub, import_text.c and
 * import_reference.c find those that are in bodies, from which import_clean.c
 * has removed code and quotations. (5) import_cycle.c looks for cycles,
 * import_order.c sorts by priority, import_write.c writes.
 */
#ifndef IMPORT_IMPORT_INTERNAL_H
#define IMPORT_IMPORT_INTERNAL_H

#include "base/arena.h"
#include "import/import.h"

#include <jansson.h>
#include <string.h>

/* Above all numbers of issues. */
#define IMPORT_NUMBER_MAX INT64_C(1000000000)

/* "None", for indices of issues. */
#define IMPORT_NONE UINT32_MAX

enum {
    IMPORT_ISSUES_MAX = 1000000,
    IMPORT_NEEDS_MAX = 10000000,
    IMPORT_BODY_BYTES_MAX = 1 << 20, /* GitHub's own limit is 64 KiB */
    IMPORT_NAME_BYTES_MAX = 90,      /* of an owner or a repository */
    IMPORT_KEY_BYTES_MAX = 64,       /* of an id that is no number */
    IMPORT_LEVELS_MAX = 64,          /* of parents above an issue */
};

/* P0 is the most urgent. */
enum {
    IMPORT_PRIORITY_DEFAULT = 2,
    IMPORT_PRIORITY_MAX = 4,
    IMPORT_PRIORITY_UNSET = 5,
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

/* A reference to an issue. */
struct import_reference {
    struct import_span text;  /* as written */
    struct import_span owner; /* empty: not said */
    struct import_span name;  /* empty: the same repository */
    int64_t number;           /* 0: too large, or there is a key */
    const char *key;          /* an id that is no number, or NULL */
    bool range;               /* the end of a range */
    bool pull;                /* it is said to be a pull request */
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
    bool closed; /* the field says that the other issue is closed */
    struct import_tie *next;
};

enum import_kind {
    IMPORT_ISSUE,
    IMPORT_PULL, /* a pull request */
    IMPORT_GATE, /* of beads: waits for something outside */
};

struct import_issue {
    const char *file;
    uint32_t seq; /* order of reading */
    int64_t number;
    const char *key;   /* id, when there is no number; else NULL */
    const char *owner; /* of its repository; NULL: not known */
    const char *name;
    uint32_t repo;
    enum import_kind kind;
    struct import_span title;
    struct import_span body;
    struct import_span milestone;
    const json_t *labels; /* an array, or NULL */
    struct import_tie *ties;
    struct import_tie *last_tie;
    uint32_t priority; /* 0 to 4, or IMPORT_PRIORITY_UNSET */
    bool closed;
    bool deferred;
    bool barred;  /* has an excluded label */
    bool matched; /* of the milestone, and with the labels */
    bool wanted;  /* and open */
    bool chosen;  /* a group of the plan */
    bool queued;  /* its references are read, or will be */
    const char *id;
    uint32_t parent; /* index, or IMPORT_NONE */
    uint32_t child_first;
    uint32_t child_count;
    uint32_t *needs; /* indices of issues, ascending */
    uint32_t need_count;
    struct strbuf dropped; /* references left out, as written */
    struct import_body file_body;
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
    uint32_t *children; /* indices of issues, those of one parent together */
    uint32_t *order;    /* indices of the chosen issues, as they are written */
    struct import_counts counts;
    struct import_errors errors;
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

/* The same with line breaks and tabs kept, and blank ends removed. */
void import_add_lines(struct strbuf *out, struct import_span text);

/* As strcmp(), without regard to the case of ASCII letters. */
int import_compare(struct import_span a, struct import_span b);

/* Whether the text is this word (one of these), by import_compare(). */
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

/* Cut the next line off a text; false at its end. */
bool import_next_line(struct import_span *rest, struct import_span *line);

/* As strcmp(), with runs of digits compared as numbers; NULL is "". */
int import_compare_keys(const char *a, const char *b);

/* The span of a text that ends with NUL; of NULL, an empty one. */
struct import_span import_span(const char *text);

/* A copy of the text, until import_free(); import_take() also releases it. */
struct import_span import_keep(struct import *import, struct import_span text);
struct import_span import_take(struct import *import, struct strbuf *text);

/* Whether `name` will do as the name of an owner or of a repository. */
bool import_is_name(struct import_span name);

/* Whether `key` will do as the id of an issue. */
bool import_is_key(struct import_span key);

/* Split OWNER/NAME or NAME; false when it is neither. */
bool import_split(struct import_span text,
                  struct import_span *owner,
                  struct import_span *name);

/* The name of a label of the list, or an empty span. */
struct import_span import_label(const json_t *labels, size_t ix);

/* Add a tie of an issue, at the end. Borrowed until import_free(). */
struct import_tie *import_add_tie(struct import *import,
                                  struct import_issue *issue,
                                  enum import_tie_kind kind);

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

/* Give each issue its repository and id, and sort the issues. */
void import_find_repos(struct import *import);

/*
 * The issue that a reference of `from` means, or NULL. *known: there are
 * issues of that repository. *many: several repositories have that name.
 */
struct import_issue *import_resolve(const struct import *import,
                                    const struct import_issue *from,
                                    const struct import_reference *reference,
                                    bool *known,
                                    bool *many);

/* Link parents and children, and add the needs that others state. Parents that
 * form a cycle, or are nested too deep, are errors. */
void import_link_family(struct import *import);

/* Whether sub-issues are the work of this issue, and not itself. */
bool import_is_container(const struct import *import,
                         const struct import_issue *issue);

/* Whether `ix` is `top`, or below it. */
bool import_is_below(const struct import *import, uint32_t ix, uint32_t top);

/*
 * Give each issue its repository, choose, and find the needs of each. False
 * after an error.
 */
MUST_USE bool import_link(struct import *import);

/* Look for cycles among the chosen issues; each is an error. */
void import_find_cycles(struct import *import);

/* The priority that a label stands for, or IMPORT_PRIORITY_UNSET. */
uint32_t import_label_priority(struct import_span label);

/* Set import->order: by priority, then by repository and number. There are no
 * cycles. */
void import_set_order(struct import *import);

/* Append the plan. */
void import_write(struct import *import, struct strbuf *out);

#endif /* IMPORT_IMPORT_INTERNAL_H */
