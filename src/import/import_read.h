/* SPDX-License-Identifier: MIT */
/*
 * import_read: shared by the readers of import, one for each source.
 *
 * A reader takes one JSON value of a file, and adds its issues by
 * import_read_add(). Its functions report a fault with the file and the issue
 * and return false; the issue is then left out.
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
    const char *file;
    struct import_span owner; /* of issues that do not name their repository */
    struct import_span name;
    uint32_t entry;  /* number of the entry, from 1 */
    bool said_title; /* an error that all entries share is reported once */
    bool said_body;
    bool said_milestone;
    bool said_repo;
};

typedef void (*import_entry_fn)(struct import_reading *reading,
                                const json_t *entry);

/* Call `take` for each entry of a list, or for the one that is no list. */
void import_read_each(struct import_reading *reading,
                      const json_t *root,
                      import_entry_fn take);

/* Add the issue, whose file and texts are set. */
void import_read_add(struct import_reading *reading,
                     struct import_issue *issue);

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
                       const char *remedy,
                       bool *said);

/* Set the title, which is required. */
bool import_read_title(struct import_reading *reading,
                       const json_t *entry,
                       struct import_issue *issue,
                       const char *remedy);

/* Set the labels, a list of texts or of objects with a name. */
bool import_read_labels(const struct import_reading *reading,
                        const json_t *entry,
                        const char *field,
                        struct import_issue *issue);

/* Set the body, a text that the reader has made; false when it is too long. */
bool import_read_body(const struct import_reading *reading,
                      const char *field,
                      struct import_span body,
                      struct import_issue *issue);

/* Append a section to a body: a heading (or NULL) and a text field of the
 * entry. False when the field is no text. */
bool import_read_section(const struct import_reading *reading,
                         const struct import_issue *issue,
                         const json_t *entry,
                         const char *field,
                         const char *heading,
                         struct strbuf *out);

/* The repository that the file is of, as for issues that name none. */
bool import_read_home(struct import_reading *reading,
                      struct import_issue *issue);

/* Set the number or the key of an issue to what its id says; false when it
 * will not do as an id. Also for references, by the same rules. */
bool import_read_id(struct import *import,
                    struct import_span id,
                    int64_t *number,
                    const char **key);

/* The readers. */
void import_read_github(struct import_reading *reading, json_t *root);
void import_read_beads(struct import_reading *reading, json_t *root);
void import_read_taskmaster(struct import_reading *reading, json_t *root);

#endif /* IMPORT_IMPORT_READ_H */
