/* SPDX-License-Identifier: MIT */
/*
 * The table walk, and the readers of simple values.
 *
 * A misspelt key that is near to a known one is read as that one: otherwise
 * the key it was meant to be would be reported as missing, and names in its
 * value as unknown.
 */
#include "plan/fields.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "plan/plan_internal.h"

#include <inttypes.h>
#include <string.h>

static uint32_t find_field(const struct schema *schema, const struct node *key)
{
    for (uint32_t ix = 0; ix < schema->count; ix++) {
        const struct field *field = &schema->fields[ix];
        if (field->len == key->count &&
            memcmp(field->name, key->text, field->len) == 0) {
            return ix;
        }
    }
    return PLAN_NONE;
}

/* Report an unknown key; return the key it was meant to be, or PLAN_NONE. */
static uint32_t report_unknown(struct reader *reader,
                               const struct schema *schema,
                               const struct node *key)
{
    struct suggest guess;
    suggest_init(&guess, key->text, key->count, &reader->suggest_budget);
    bool more = true;
    for (uint32_t ix = 0; ix < schema->count && more; ix++) {
        more = suggest_offer(&guess, schema->fields[ix].name);
    }
    plan_errors_add(reader->errors,
                    node_mark(key),
                    "unknown key %s%s",
                    QUOTED(key),
                    suggest_hint(&guess));
    return guess.best != NULL ? guess.best_ix : PLAN_NONE;
}

static void report_missing(struct reader *reader,
                           const struct node *node,
                           const struct schema *schema,
                           uint64_t seen)
{
    for (uint32_t ix = 0; ix < schema->count; ix++) {
        const struct field *field = &schema->fields[ix];
        if (!field->required || (seen >> ix & 1) != 0 ||
            fields_has_bad_key(node)) {
            continue;
        }
        plan_errors_add(reader->errors,
                        node_mark(node),
                        "missing key \"%s\": %s%s",
                        field->name,
                        field->hint != NULL ? field->hint : schema->what,
                        field->hint != NULL ? "" : " needs it");
    }
}

void fields_note_old(struct reader *reader,
                     const struct node *node,
                     const struct alias *alias)
{
    struct plan *plan = reader->plan;
    struct plan_old *old = arena_alloc(&plan->private->arena, 1, sizeof(*old));
    *old = (struct plan_old){node_mark(node), alias, plan->olds};
    plan->olds = old;
}

/* The key that this one is an old name of, or PLAN_NONE. */
static uint32_t find_old(struct reader *reader,
                         const struct schema *schema,
                         const struct node *key)
{
    const struct alias *alias = alias_find(schema->what, key->text, key->count);
    for (uint32_t ix = 0; alias != NULL && ix < schema->count; ix++) {
        if (strcmp(schema->fields[ix].name, alias->now) == 0) {
            fields_note_old(reader, key, alias);
            return ix;
        }
    }
    return PLAN_NONE;
}

/* Which key to read, after reporting what is wrong with it; or PLAN_NONE. */
static uint32_t choose_field(struct reader *reader,
                             const struct schema *schema,
                             const struct node *key,
                             uint64_t seen)
{
    if (key->kind == NODE_BAD) {
        return PLAN_NONE;
    }
    uint32_t ix = find_field(schema, key);
    if (ix == PLAN_NONE) {
        ix = find_old(reader, schema, key);
    }
    if (ix != PLAN_NONE) {
        const struct plan_old *old = reader->plan->olds;
        if ((seen >> ix & 1) != 0 && old != NULL &&
            strcmp(old->alias->now, schema->fields[ix].name) == 0) {
            plan_errors_add(reader->errors,
                            node_mark(key),
                            "\"%s\" is the old name of \"%s\": remove it",
                            old->alias->old,
                            old->alias->now);
        }
        return ix;
    }
    ix = report_unknown(reader, schema, key);
    return ix != PLAN_NONE && (seen >> ix & 1) == 0 ? ix : PLAN_NONE;
}

static bool has_required(const struct schema *schema)
{
    for (uint32_t ix = 0; ix < schema->count; ix++) {
        if (schema->fields[ix].required) {
            return true;
        }
    }
    return false;
}

bool fields_has_bad_key(const struct node *node)
{
    for (const struct node *key = node_first(node); key != NULL;
         key = node_next_key(key)) {
        if (key->kind == NODE_BAD) {
            return true;
        }
    }
    return false;
}

bool fields_read(struct reader *reader,
                 const struct node *node,
                 const struct schema *schema,
                 void *target)
{
    INVARIANT(schema->count <= 64);
    if (fields_is_empty(node) && !has_required(schema)) {
        return true;
    }
    if (!fields_is_mapping(reader, node, schema->what)) {
        return false;
    }
    uint64_t seen = 0;
    for (const struct node *key = node_first(node); key != NULL;
         key = node_next_key(key)) {
        uint32_t ix = choose_field(reader, schema, key, seen);
        if (ix != PLAN_NONE) {
            const struct field *field = &schema->fields[ix];
            seen |= UINT64_C(1) << ix;
            field->read(reader, field, node_value(key), target);
        }
    }
    report_missing(reader, node, schema, seen);
    return true;
}

bool fields_is_empty(const struct node *value)
{
    return value->kind == NODE_PLAIN &&
           (value->count == 0 || strcmp(value->text, "~") == 0 ||
            strcmp(value->text, "null") == 0);
}

void fields_expected(struct reader *reader,
                     const struct node *value,
                     const char *label,
                     const char *wanted)
{
    if (value->kind == NODE_BAD) {
        return;
    }
    bool no_text = strncmp(wanted, "a number", strlen("a number")) == 0 ||
                   strncmp(wanted, "true", strlen("true")) == 0;
    plan_errors_add(reader->errors,
                    node_mark(value),
                    "%s %s %s%s",
                    label,
                    fields_is_empty(value) ? "is empty: it must be" : "must be",
                    wanted,
                    value->kind == NODE_QUOTED && no_text ? ", without quotes"
                                                          : "");
}

/* The same for a key of a table. */
static void expected(struct reader *reader,
                     const struct node *value,
                     const struct field *field,
                     const char *wanted)
{
    fields_expected(reader, value, QUOTED_TEXT(field->name), wanted);
}

bool fields_is_mapping(struct reader *reader,
                       const struct node *node,
                       const char *label)
{
    if (node->kind == NODE_MAPPING) {
        return true;
    }
    fields_expected(reader, node, label, "a mapping (KEY: VALUE ...)");
    return false;
}

bool fields_is_list(struct reader *reader,
                    const struct node *node,
                    const char *label)
{
    if (node->kind == NODE_LIST) {
        return true;
    }
    fields_expected(reader, node, label, "a list");
    return false;
}

bool fields_is_word(const struct node *value, const char *word)
{
    return fields_is_bare(value) && strcmp(value->text, word) == 0;
}

bool fields_is_bare(const struct node *value)
{
    if (value->kind != NODE_QUOTED || !value->json) {
        return value->kind == NODE_PLAIN;
    }
    return value->text[strspn(value->text, "0123456789+-.eE")] != '\0' &&
           strcmp(value->text, "true") != 0 &&
           strcmp(value->text, "false") != 0 &&
           strcmp(value->text, "null") != 0;
}

/* Digits from `text` on, as a number up to 10^12; NULL if there are none. */
static const char *digits(const char *text, int64_t *out)
{
    int64_t sum = 0;
    const char *at = text;
    while (*at >= '0' && *at <= '9') {
        sum = sum * 10 + (*at - '0');
        if (sum > INT64_C(1000000000000)) {
            return NULL;
        }
        at++;
    }
    *out = sum;
    return at > text ? at : NULL;
}

/* A number as YAML and JSON write it: digits, no zeros before it. */
static bool parse_number(const struct node *value, int64_t *out)
{
    if (value->text[0] == '0' && value->count > 1) {
        return false;
    }
    int64_t number = 0;
    const char *end = digits(value->text, &number);
    if (end == NULL || *end != '\0') {
        return false;
    }
    *out = number;
    return true;
}

bool fields_parse_number(const struct node *value, int64_t *out)
{
    return value->kind == NODE_PLAIN && parse_number(value, out);
}

bool fields_parse_key(const struct node *key, int64_t *out)
{
    return (key->kind == NODE_PLAIN || key->json) && parse_number(key, out);
}

bool fields_parse_duration(const struct node *value, int64_t *out)
{
    if (!node_is_scalar(value)) {
        return false;
    }
    enum err err = duration_read(value->text, value->count, out);
    if (err == ERR_LIMIT) {
        *out = DURATION_MAX_NS + 1;
    }
    return err != ERR_INVALID;
}

bool fields_parse_percent(const struct node *value, uint32_t *out)
{
    if (!node_is_scalar(value) || value->text[0] == '0') {
        return false;
    }
    int64_t number = 0;
    const char *end = digits(value->text, &number);
    if (end == NULL || strcmp(end, "%") != 0 || number < 1 || number > 100) {
        return false;
    }
    *out = (uint32_t)number;
    return true;
}

/* What is wrong with an id, or NULL. */
static const char *id_fault(const char *text, size_t len, bool slash)
{
    if (len > PLAN_ID_BYTES_MAX) {
        return "at most 200 bytes are allowed";
    }
    char before = '/';
    for (size_t ix = 0; ix < len; ix++) {
        char byte = text[ix];
        bool plain = (byte >= 'a' && byte <= 'z') ||
                     (byte >= '0' && byte <= '9') ||
                     (byte >= 'A' && byte <= 'Z');
        if (!plain && ix == 0) {
            return "it must start with a letter or digit";
        }
        if (!plain && (byte == '\0' || strchr("._#:/-", byte) == NULL)) {
            return "use letters, digits and . _ # : / -";
        }
        if (byte == '.' && (before == '.' || before == '/')) {
            return "it must not contain \"..\" or \"/.\"";
        }
        if (byte == '/' && before == '/') {
            return "it must not contain \"//\"";
        }
        if (byte == '/' && !slash) {
            return "it must not contain \"/\"";
        }
        before = byte;
    }
    return before == '/' ? "it must not end in \"/\"" : NULL;
}

const char *fields_check_id(struct reader *reader,
                            const struct node *node,
                            const char *what,
                            bool slash)
{
    if (!node_is_scalar(node) || fields_is_empty(node)) {
        fields_expected(reader, node, QUOTED_TEXT(what), "a string");
        return NULL;
    }
    const char *fault = "it is empty";
    if (node->count > 0) {
        fault = id_fault(node->text, node->count, slash);
    }
    if (fault != NULL) {
        plan_errors_add(reader->errors,
                        node_mark(node),
                        "invalid %s %s: %s",
                        what,
                        QUOTED(node),
                        fault);
        return NULL;
    }
    return node->text;
}

const char *fields_check_line(struct reader *reader,
                              const struct node *node,
                              const char *label,
                              size_t max)
{
    if (!node_is_scalar(node) || fields_is_empty(node)) {
        fields_expected(reader, node, label, "a string");
        return NULL;
    }
    char wanted[64];
    int len = 0;
    if (node->text[strspn(node->text, " \t\r\n")] == '\0') {
        len = snprintf(wanted, sizeof(wanted), "a non-empty string");
    } else if (strpbrk(node->text, "\t\r\n") != NULL) {
        len = snprintf(wanted, sizeof(wanted), "on one line, without tabs");
    } else if (node->count > max) {
        len = snprintf(wanted, sizeof(wanted), "at most %zu bytes long", max);
    }
    if (len > 0) {
        fields_expected(reader, node, label, wanted);
        return NULL;
    }
    return node->text;
}

static void *at_offset(void *target, const struct field *field)
{
    return (char *)target + field->offset;
}

void fields_node(struct reader *reader,
                 const struct field *field,
                 const struct node *value,
                 void *target)
{
    (void)reader;
    const struct node **out = at_offset(target, field);
    *out = value;
}

void fields_bool(struct reader *reader,
                 const struct field *field,
                 const struct node *value,
                 void *target)
{
    bool *out = at_offset(target, field);
    if (fields_is_word(value, "true")) {
        *out = true;
    } else if (fields_is_word(value, "false")) {
        *out = false;
    } else {
        expected(reader, value, field, "true or false");
    }
}

void fields_number(struct reader *reader,
                   const struct field *field,
                   const struct node *value,
                   void *target)
{
    int64_t number = 0;
    if (!fields_parse_number(value, &number) || number < field->min ||
        number > field->max) {
        char wanted[96];
        int len = snprintf(wanted,
                           sizeof(wanted),
                           "a number from %" PRId64 " to %" PRId64,
                           field->min,
                           field->max);
        expected(reader, value, field, len > 0 ? wanted : "a number");
        return;
    }
    uint32_t *out = at_offset(target, field);
    *out = (uint32_t)number;
}

/* Report what is wrong with a duration, if anything. */
static bool check_duration(struct reader *reader,
                           const struct node *value,
                           const char *label,
                           int64_t min,
                           const char *wanted)
{
    int64_t ns = 0;
    if (fields_parse_duration(value, &ns)) {
        wanted = ns < min               ? "more than 0"
                 : ns > DURATION_MAX_NS ? "at most 365d"
                                        : NULL;
    }
    if (wanted != NULL) {
        fields_expected(reader, value, label, wanted);
    }
    return wanted == NULL;
}

void fields_check_duration(struct reader *reader,
                           const struct node *value,
                           const char *label,
                           int64_t min,
                           int64_t *out)
{
    const char *wanted = "a duration such as 90s, 30m or 2h";
    if (check_duration(reader, value, label, min, wanted)) {
        bool parsed = fields_parse_duration(value, out);
        INVARIANT(parsed);
    }
}

void fields_duration(struct reader *reader,
                     const struct field *field,
                     const struct node *value,
                     void *target)
{
    int64_t *out = at_offset(target, field);
    int64_t ns = 0;
    if (fields_parse_duration(value, &ns) && ns >= field->min &&
        ns <= DURATION_MAX_NS) {
        *out = ns;
        return;
    }
    fields_check_duration(reader,
                          value,
                          QUOTED_TEXT(field->name),
                          field->min,
                          out);
}

void fields_duration_or_none(struct reader *reader,
                             const struct field *field,
                             const struct node *value,
                             void *target)
{
    const char *label = QUOTED_TEXT(field->name);
    const char *wanted = "a duration such as 90s, 30m or 2h, or none";
    int64_t *out = at_offset(target, field);
    if (fields_is_word(value, "none")) {
        *out = PLAN_UNLIMITED;
    } else if (check_duration(reader, value, label, field->min, wanted)) {
        fields_duration(reader, field, value, target);
    }
}

/* A copy of the scalar's text that lives as long as the plan. */
static const char *kept(struct reader *reader, const struct node *value)
{
    return arena_strndup(&reader->plan->private->arena,
                         value->text,
                         value->count);
}

void fields_line(struct reader *reader,
                 const struct field *field,
                 const struct node *value,
                 void *target)
{
    size_t max = (size_t)field->max;
    if (fields_check_line(reader, value, QUOTED_TEXT(field->name), max)) {
        const char **out = at_offset(target, field);
        *out = kept(reader, value);
    }
}

void fields_text(struct reader *reader,
                 const struct field *field,
                 const struct node *value,
                 void *target)
{
    if (!node_is_scalar(value) || fields_is_empty(value)) {
        expected(reader, value, field, "a string");
    } else if (value->count > (size_t)field->max) {
        expected(reader, value, field, "a string of at most 1 MiB");
    } else {
        const char **out = at_offset(target, field);
        *out = kept(reader, value);
    }
}

/* Whether it is a command for the shell; report it if not. */
static bool check_shell(struct reader *reader,
                        const struct field *field,
                        const struct node *value,
                        const char *wanted)
{
    if (!node_is_scalar(value) || fields_is_empty(value)) {
        expected(reader, value, field, wanted);
        return false;
    }
    if (value->text[strspn(value->text, " \t\r\n")] == '\0') {
        expected(reader, value, field, "a non-empty command");
        return false;
    }
    return true;
}

void fields_shell(struct reader *reader,
                  const struct field *field,
                  const struct node *value,
                  void *target)
{
    if (check_shell(reader, field, value, "a shell command")) {
        const char **out = at_offset(target, field);
        *out = kept(reader, value);
    }
}

/* Read a list of arguments; NULL after an error. */
static const char **read_argv(struct reader *reader,
                              const struct field *field,
                              const struct node *value)
{
    const struct node *first = node_first(value);
    if (first == NULL || (node_is_scalar(first) && first->count == 0)) {
        expected(reader, value, field, "a list that starts with a program");
        return NULL;
    }
    const char **argv = arena_alloc(&reader->plan->private->arena,
                                    value->count + 1,
                                    sizeof(argv[0]));
    uint32_t count = 0;
    for (const struct node *item = first; item != NULL;
         item = node_next(item)) {
        if (!node_is_scalar(item) || fields_is_empty(item)) {
            fields_expected(reader, item, "an argument", "a string");
            return NULL;
        }
        argv[count++] = kept(reader, item);
    }
    return argv;
}

void fields_command(struct reader *reader,
                    const struct field *field,
                    const struct node *value,
                    void *target)
{
    struct plan_command *out = at_offset(target, field);
    if (value->kind == NODE_LIST) {
        *out = (struct plan_command){.argv = read_argv(reader, field, value)};
        return;
    }
    const char *wanted = "a shell command or a list of arguments";
    if (check_shell(reader, field, value, wanted)) {
        *out = (struct plan_command){.shell = kept(reader, value)};
    }
}
