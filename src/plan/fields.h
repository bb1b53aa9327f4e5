/* SPDX-License-Identifier: MIT */
/*
 * fields: table-driven reader for mappings with known keys.
 *
 * A table has one row per key: its name, the function that reads its value, and
 * the offset of the result. Unknown keys, missing keys and values of the wrong
 * kind are therefore detected and reported in one place.
 *
 * The function of a row gets the whole row and the target. It reports an
 * invalid value and leaves the target unchanged. It reports nothing for a node
 * that is NODE_BAD.
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

/* The value being read; its result is stored at target + offset. */
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
    size_t len; /* length of the name */
    field_fn *read;
    size_t offset;
    int64_t min; /* smallest number or duration */
    int64_t max; /* largest number, or most bytes of a string */
    bool required;
    const char *hint; /* remedy to print if the key is missing, or NULL */
};

#define FIELD(type, member, key, reader)                                       \
    .name = (key), .len = sizeof(key) - 1, .offset = offsetof(type, member),   \
    .read = (reader)

/* A key whose reader gets the whole target. */
#define FIELD_OF_ALL(key, reader)                                              \
    .name = (key), .len = sizeof(key) - 1, .read = (reader)

/*
 * A mapping: its name in messages and its keys (at most 64): its own, then the
 * first rows of the settings table, whose target is a part of it.
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
 * Read a mapping. Report a node that is not a mapping and return false. Report
 * a misspelt key, then read it as the key it resembles. An empty node is read
 * as an empty mapping if no key is required.
 */
bool fields_read(struct reader *reader,
                 const struct node *node,
                 const struct schema *schema,
                 void *target);

/* Check that the node is a mapping (a list, a non-empty scalar); otherwise
 * report that `label` must be one. */
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

/* Check that the node is a mapping with at most `max` entries; otherwise report
 * it, with `what` as the name of the entries. */
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

/* Record that the node uses a deprecated name. */
void fields_note_old(struct reader *reader,
                     const struct node *node,
                     const struct alias *alias);

/* Whether the value is empty: nothing, null or ~. */
bool fields_is_empty(const struct node *value);

/* Whether the mapping has a key that is NODE_BAD. */
bool fields_has_bad_key(const struct node *node);

/*
 * Parse a scalar. Return true and set *out on success; report nothing. A number
 * is plain decimal digits without quotes. A duration is one or more numbers
 * with units, largest first; a duration above the maximum gives DURATION_MAX_NS
 * + 1. A percentage is 1% to 100%.
 */
MUST_USE bool fields_parse_number(const struct node *value, int64_t *out);
MUST_USE bool fields_parse_duration(const struct node *value, int64_t *out);
MUST_USE bool fields_parse_percent(const struct node *value, uint32_t *out);

/* Whether the scalar is unquoted, or a JSON string that JSON must quote:
 * neither a number nor true, false, null. */
bool fields_is_bare(const struct node *value);

/* As fields_parse_number(), for a key: in JSON, keys are always quoted. */
MUST_USE bool fields_parse_key(const struct node *key, int64_t *out);

/* Whether the bare scalar is this word. */
bool fields_is_word(const struct node *value, const char *word);

/* Return which word the scalar is, quoted or not; `count` if none. */
uint32_t fields_find_word(const struct node *value,
                          const char *const *words,
                          uint32_t count);

/*
 * Check a name or id and return its string, which belongs to the node; NULL
 * after an error. `what` is "id", "class" ...; slash: "/" is allowed.
 */
const char *fields_check_id(struct reader *reader,
                            const struct node *node,
                            const char *what,
                            bool slash);

/*
 * Check that a scalar is one non-empty line without tabs, of at most `max`
 * bytes. Return its string, which belongs to the node; NULL after an error.
 */
const char *fields_check_line(struct reader *reader,
                              const struct node *node,
                              const char *label,
                              size_t max);

/* Readers for tables, with the type of their target. */
field_fn fields_node;     /* const struct node *: the node, to read later */
field_fn fields_bool;     /* bool */
field_fn fields_number;   /* uint32_t from min to max */
field_fn fields_duration; /* int64_t of nanoseconds, at least min */
field_fn fields_duration_or_none; /* the same, or PLAN_UNLIMITED for `none` */

/* const char *, copied into the plan: one line of at most max bytes, any number
 * of lines of at most max bytes in all, a shell command. */
field_fn fields_line;
field_fn fields_text;
field_fn fields_shell;

/* struct plan_command: a shell command or a list of arguments */
field_fn fields_command;

#endif /* PLAN_FIELDS_H */
