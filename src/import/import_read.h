/* SPDX-License-Identifier: MIT */
/*
 * import_read: declarations shared by the readers of all sources.
 *
 * A source is a table: its words for messages, and the functions that set the
 * members of an issue, called in order. They report an error with the file and
 * the issue and return false; the issue is then skipped.
 *
 * Memory: strings of an issue stay in the memory of jansson, or are in the
 * arena of the import.
 */
#ifndef IMPORT_IMPORT_READ_H
#define IMPORT_IMPORT_READ_H

#include "import/import_internal.h"

/* State of reading one file. */
struct import_reading {
    struct import *import;
    const struct import_format *format;
    const char *file;
    struct import_span owner; /* for issues that do not name theirs */
    struct import_span name;
    uint32_t entry;  /* number of the entry, from 1 */
    bool said_title; /* report an error that all entries share once */
    bool said_body;
    bool said_milestone;
    bool said_repo;
};

/* Set some members of an issue from its entry. */
typedef bool import_set_fn(struct import_reading *reading,
                           const json_t *entry,
                           struct import_issue *issue);

/* A section of a body. */
struct import_section {
    const char *field;   /* a string; NULL after the last section */
    const char *heading; /* NULL: none */
};

/* A source; a const table. */
struct import_format {
    const char *origin;                    /* of its JSON: "gh prints" */
    const char *entry;                     /* "an issue object" */
    const char *remedy;                    /* for a missing field */
    const char *labels;                    /* field */
    const struct import_section *sections; /* for import_read_body() */
    const char *body; /* the field to name if a body is too long */
    /* Append the rest of a body, after its sections; NULL: nothing. */
    bool (*add_rest)(const struct import_reading *reading,
                     const struct import_issue *issue,
                     const json_t *entry,
                     struct strbuf *out);
    /* Return the list of entries, or a single one; NULL after an error. */
    const json_t *(*find)(const struct import_reading *reading, json_t *root);
    import_set_fn *sets[12]; /* called in this order; NULL after the last */
};
extern const struct import_format import_github;
extern const struct import_format import_beads;
extern const struct import_format import_taskmaster;

/* Return the kind of a value, for messages: "a list". */
const char *import_read_kind(const json_t *value);

/* Return the span of a string; empty for any other value. */
struct import_span import_read_text(const json_t *value);

/* Return the first of these fields that is a non-empty string, or an empty
 * span. */
struct import_span import_read_first(const json_t *object,
                                     const char *const *fields);

/* Report a field of the wrong kind; return false. */
bool import_read_wrong(const struct import_reading *reading,
                       const struct import_issue *issue,
                       const char *field,
                       const char *wanted,
                       const json_t *found);

/* Report a missing field, once for each file; return false. */
bool import_read_lacks(const struct import_reading *reading,
                       const struct import_issue *issue,
                       const char *field,
                       bool *said);

/* Read a field that is a string (a list), absent or null; *out is then empty
 * (NULL). Report any other value and return false. */
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

/* Set the title, which is required; the labels, a list of strings or of objects
 * with a name; the body, from the sections of the format. */
import_set_fn import_read_title;
import_set_fn import_read_labels;
import_set_fn import_read_body;

/* Set the body; false if it is too long. */
bool import_read_whole(const struct import_reading *reading,
                       struct import_span body,
                       struct import_issue *issue);

/* Set the default repository of the file, for issues that name none. */
import_set_fn import_read_home;

/* Set the number or the key of an issue from its id; false if the id is
 * invalid. References use the same rules. */
bool import_read_id(struct import *import,
                    struct import_span id,
                    int64_t *number,
                    const char **key);

#endif /* IMPORT_IMPORT_READ_H */
