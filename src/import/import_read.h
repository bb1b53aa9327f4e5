/* SPDX-License-Identifier: MIT */
/*
 * import_read: shared by the readers of import, one for each source.
 *
 * A source is a table: how it calls things, and the functions that set the
 * members of an issue, one after the other. These report a fault with the file
 * and the issue and return false; the issue is then left out.
 *
 * Memory: texts of an issue stay where jansson has put them, or are in the
 * arena of the import.
 */
#ifndef IMPORT_IMPORT_READ_H
#define IMPORT_IMPORT_READ_H

#include "import/import_internal.h"

/* One file while it is being read. */
struct import_reading {
    struct import *import;
    const struct import_format *format;
    const char *file;
    struct import_span owner; /* of issues that do not name their repository */
    struct import_span name;
    uint32_t entry;  /* number of the entry, from 1 */
    bool said_title; /* an error that all entries share is reported once */
    bool said_body;
    bool said_milestone;
    bool said_repo;
};

/* Set some members of an issue to what its entry says. */
typedef bool import_set_fn(struct import_reading *reading,
                           const json_t *entry,
                           struct import_issue *issue);

/* A section of a body. */
struct import_section {
    const char *field;   /* a text; NULL behind the last one */
    const char *heading; /* NULL: none */
};

/* A source; a const table. */
struct import_format {
    const char *origin;                    /* of its JSON: "gh prints" */
    const char *entry;                     /* "an issue object" */
    const char *remedy;                    /* for a field that is missing */
    const char *labels;                    /* field */
    const struct import_section *sections; /* of import_read_body() */
    const char *body; /* the field that a body which is too long is blamed on */
    /* Append the rest of a body, behind its sections; NULL: nothing. */
    bool (*add_rest)(const struct import_reading *reading,
                     const struct import_issue *issue,
                     const json_t *entry,
                     struct strbuf *out);
    /* The list of entries, or the only one; NULL after an error. */
    const json_t *(*find)(const struct import_reading *reading, json_t *root);
    import_set_fn *sets[10]; /* in this order; NULL behind the last one */
};
extern const struct import_format import_github;
extern const struct import_format import_beads;
extern const struct import_format import_taskmaster;

/* The kind of a value, for messages: "a list". */
const char *import_read_kind(const json_t *value);

/* The text of a string; empty for anything else. */
struct import_span import_read_text(const json_t *value);

/* The text of the first of these fields that has one, or an empty span. */
struct import_span import_read_first(const json_t *object,
                                     const char *const *fields);

/* Report a field of the wrong kind; false. */
bool import_read_wrong(const struct import_reading *reading,
                       const struct import_issue *issue,
                       const char *field,
                       const char *wanted,
                       const json_t *found);

/* Report a field that is missing, once for each file; false. */
bool import_read_lacks(const struct import_reading *reading,
                       const struct import_issue *issue,
                       const char *field,
                       bool *said);

/* Find a field that is a text (a list), or left out or null; *out is then
 * empty (NULL). False when it is something else. */
bool import_read_string(const struct import_reading *reading,
                        const struct import_issue *issue,
                        const json_t *entry,
                        const char *field,
                        struct import_span *out);
bool import_read_list(const struct import_reading *reading,
                      const struct import_issue *issue,
                      const json_t *entry,
                      const char *field,
                      const json_t **out);

/* Set the title, which is required; the labels, a list of texts or of objects
 * with a name; the body, by the sections of the format. */
import_set_fn import_read_title;
import_set_fn import_read_labels;
import_set_fn import_read_body;

/* Set the body to a text; false when it is too long. */
bool import_read_whole(const struct import_reading *reading,
                       struct import_span body,
                       struct import_issue *issue);

/* The repository that the file is of, as for issues that name none. */
import_set_fn import_read_home;

/* Set the number or the key of an issue to what its id says; false when it
 * will not do as an id. Also for references, by the same rules. */
bool import_read_id(struct import *import,
                    struct import_span id,
                    int64_t *number,
                    const char **key);

#endif /* IMPORT_IMPORT_READ_H */
