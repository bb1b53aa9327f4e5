/* SPDX-License-Identifier: MIT */
/*
 * fields: mappings with known keys, read by a table.
 *
 * A table has one row per key: its name, the function that reads its value and
 * where the result goes. So unknown keys, missing keys and values of the wrong
 * kind are found and reported the same way everywhere.
 *
 * A reader of a value gets the whole row and the place for the result. When
 * the value is wrong it reports that and leaves the place alone. It says
 * nothing about a node that is NODE_BAD.
 */
#ifndef PLAN_FIELDS_H
#define PLAN_FIELDS_H

#include "base/macros.h"
#include "plan/alias.h"
#include "plan/node.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reader;
struct field;

/* A value that is being read, and where its result goes: target + offset. */
struct entry {
    struct reader *reader;
    const struct field *field;
    const struct node *value;
    void *out;
};

typedef void field_fn(const struct entry *entry);

/* One key; a plain value in a const table. */
struct field {
    const char *name;
    size_t len; /* of the name */
    field_fn *read;
    size_t offset;
    int64_t min; /* of a number or duration */
    int64_t max; /* of a number, or bytes of a text */
    bool required;
    const char *hint; /* what to do when it is missing, or NULL */
};

#define FIELD(type, member, key, reader)                                       \
    .name = (key), .len = sizeof(key) - 1, .offset = offsetof(type, member),   \
    .read = (reader)

/* A key whose reader gets the whole target. */
#define FIELD_OF_ALL(key, reader)                                              \
    .name = (key), .len = sizeof(key) - 1, .read = (reader)

/*
 * A mapping: what it is called, and its keys (at most 64): those of its own,
 * and the first ones of the table of settings, whose target is a part of it.
 */
struct schema {
    const char *what; /* "a task" */
    const struct field *fields;
    uint32_t count;
    uint32_t setting_count;
    size_t settings; /* offset of the struct settings */
};

#define SCHEMA(name, table)                                                    \
    {                                                                          \
        .what = (name), .fields = (table), .count = ARRAY_COUNT(table)         \
    }
#define SCHEMA_WITH_SETTINGS(name, table, type, settings_of)                   \
    {                                                                          \
        .what = (name), .fields = (table), .count = ARRAY_COUNT(table),        \
        .setting_count = (settings_of), .settings = offsetof(type, settings)   \
    }

/*
 * Read a mapping. False when it is not one, which is then reported. A misspelt
 * key is reported and then read as what it was meant to be. Nothing at all is
 * taken for an empty mapping if no key is required.
 */
bool fields_read(struct reader *reader,
                 const struct node *node,
                 const struct schema *schema,
                 void *target);

/* Whether the node is a mapping (a list, a scalar that is not left out);
 * otherwise report `label` must be. */
bool fields_is_mapping(struct reader *reader,
                       const struct node *node,
                       const char *label);
bool fields_is_list(struct reader *reader,
                    const struct node *node,
                    const char *label);
bool fields_is_text(struct reader *reader,
                    const struct node *node,
                    const char *label,
                    const char *wanted);

/* Whether the node is a mapping of at most `max` of `what`; otherwise report
 * that. */
bool fields_is_small(struct reader *reader,
                     const struct node *node,
                     const char *label,
                     uint32_t max,
                     const char *what);

/* Report that the value of `label` must be `wanted`, unless it is NODE_BAD. */
void fields_expected(struct reader *reader,
                     const struct node *value,
                     const char *label,
                     const char *wanted);

/* The same for a key of a table. */
void fields_wrong(const struct entry *entry, const char *wanted);

/* Note that the node is an old name. */
void fields_note_old(struct reader *reader,
                     const struct node *node,
                     const struct alias *alias);

/* Whether the value is left out: nothing, null or ~. */
bool fields_is_empty(const struct node *value);

/* Whether a key of the mapping could not be read. */
bool fields_has_bad_key(const struct node *node);

/*
 * Parsers of a scalar's text. True and *out on success; they report nothing.
 * A number is plain decimal digits without quotes. A duration is one or more
 * numbers with units, largest first; one that is too long is given as
 * DURATION_MAX_NS + 1. A percentage is 1% to 100%.
 */
MUST_USE bool fields_parse_number(const struct node *value, int64_t *out);
MUST_USE bool fields_parse_duration(const struct node *value, int64_t *out);
MUST_USE bool fields_parse_percent(const struct node *value, uint32_t *out);

/* Whether the scalar has no quotes; or is a string of JSON which JSON cannot
 * write without: neither a number nor true, false, null. */
bool fields_is_bare(const struct node *value);

/* As fields_parse_number(), for a key: in JSON, keys are always quoted. */
MUST_USE bool fields_parse_key(const struct node *key, int64_t *out);

/* Whether the bare scalar is this word. */
bool fields_is_word(const struct node *value, const char *word);

/* Which of the words the scalar is, quoted or not; `count` if none. */
uint32_t fields_find_word(const struct node *value,
                          const char *const *words,
                          uint32_t count);

/*
 * A name or id that follows the rules for ids; NULL after an error. The text
 * belongs to the node. `what` is "id", "class" ...; slash: "/" is allowed.
 */
const char *fields_check_id(struct reader *reader,
                            const struct node *node,
                            const char *what,
                            bool slash);

/*
 * The text of a scalar on one line without tabs, not empty, of at most `max`
 * bytes; NULL after an error. The text belongs to the node.
 */
const char *fields_check_line(struct reader *reader,
                              const struct node *node,
                              const char *label,
                              size_t max);

/* Readers for tables; the comment says what they write. */
field_fn fields_node;     /* const struct node *: the node itself, for later */
field_fn fields_bool;     /* bool */
field_fn fields_number;   /* uint32_t from min to max */
field_fn fields_duration; /* int64_t of nanoseconds, at least min */
field_fn fields_duration_or_none; /* the same, or PLAN_UNLIMITED for `none` */

/* const char *, kept in the plan: one line of at most max bytes, a text of at
 * most max bytes on any number of lines, a text for the shell. */
field_fn fields_line;
field_fn fields_text;
field_fn fields_shell;

/* struct plan_command: a text for the shell or a list of texts */
field_fn fields_command;

#endif /* PLAN_FIELDS_H */
