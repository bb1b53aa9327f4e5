/* SPDX-License-Identifier: MIT */
/*
 * Mapping reader and the readers of simple values.
 *
 * A misspelt key that resembles a known key is read as that key: otherwise the
 * known key would be reported as missing, and names in its value as unknown.
 */
#include "plan/fields.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "plan/plan_internal.h"

#include <inttypes.h>
#include <string.h>

static uint32_t key_count(const struct schema *schema)
{
    return schema->count + schema->setting_count;
}

/* Return a key of the mapping; its own keys precede the settings. */
static const struct field *field_at(const struct schema *schema, uint32_t ix)
{
    return ix < schema->count ? &schema->fields[ix]
                              : &settings_fields[ix - schema->count];
}

static uint32_t find_field(const struct schema *schema, const struct node *key)
{
    for (uint32_t ix = 0; ix < key_count(schema); ix++) {
        const struct field *field = field_at(schema, ix);
        if (field->len == key->count &&
            memcmp(field->name, key->text, field->len) == 0) {
            return ix;
        }
    }
    return PLAN_NONE;
}

/* Report an unknown key; return the key it resembles, or PLAN_NONE. */
static uint32_t report_unknown(struct reader *reader,
                               const struct schema *schema,
                               const struct node *key)
{
    struct suggest guess = plan_guess(reader, key);
    SUGGEST_ALL(&guess, schema->fields, schema->count, name);
    SUGGEST_ALL(&guess, settings_fields, schema->setting_count, name);
    plan_report_unknown(reader, key, "key", &guess);
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
        REPORT(reader,
               node,
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

/* Return the key that replaces this deprecated name, or PLAN_NONE. */
static uint32_t find_old(struct reader *reader,
                         const struct schema *schema,
                         const struct node *key)
{
    const struct alias *alias = alias_find(schema->what, key->text, key->count);
    for (uint32_t ix = 0; alias != NULL && ix < key_count(schema); ix++) {
        if (strcmp(field_at(schema, ix)->name, alias->now) == 0) {
            fields_note_old(reader, key, alias);
            return ix;
        }
    }
    return PLAN_NONE;
}

/* Choose the key to read, after reporting errors; or return PLAN_NONE. */
static uint32_t choose_field(struct reader *reader,
                             const struct schema *schema,
                             const struct node *key,
                             uint64_t seen)
{
    uint32_t ix = find_field(schema, key);
    if (ix == PLAN_NONE) {
        ix = find_old(reader, schema, key);
    }
    if (ix != PLAN_NONE) {
        const struct plan_old *old = reader->plan->olds;
        if ((seen >> ix & 1) != 0 && old != NULL &&
            strcmp(old->alias->now, field_at(schema, ix)->name) == 0) {
            REPORT(reader,
                   key,
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
    INVARIANT(key_count(schema) <= 64);
    if (fields_is_empty(node) && !has_required(schema)) {
        return true;
    }
    if (!fields_is_mapping(reader, node, schema->what)) {
        return false;
    }
    uint64_t seen = 0;
    NODE_EACH_KEY(node)
    {
        uint32_t ix = choose_field(reader, schema, key, seen);
        if (ix != PLAN_NONE) {
            const struct field *field = field_at(schema, ix);
            size_t base = ix < schema->count ? 0 : schema->settings;
            struct entry entry = {
                .reader = reader,
                .field = field,
                .value = node_value(key),
                .out = (char *)target + base + field->offset,
            };
            INVARIANT(ix < 64);
            seen |= UINT64_C(1) << ix;
            field->read(&entry);
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
    REPORT(reader,
           value,
           "%s %s %s%s",
           label,
           fields_is_empty(value) ? "is empty: it must be" : "must be",
           wanted,
           value->kind == NODE_QUOTED && no_text ? ", without quotes" : "");
}

void fields_wrong(const struct entry *entry, const char *wanted)
{
    const char *label = QUOTED_TEXT(entry->field->name);
    fields_expected(entry->reader, entry->value, label, wanted);
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

bool fields_is_text(struct reader *reader,
                    const struct node *node,
                    const char *label,
                    const char *wanted)
{
    if (node_is_scalar(node) && !fields_is_empty(node)) {
        return true;
    }
    fields_expected(reader, node, label, wanted);
    return false;
}

bool fields_is_small(struct reader *reader,
                     const struct node *node,
                     const char *label,
                     uint32_t max,
                     const char *what)
{
    if (!fields_is_mapping(reader, node, label) || node->count <= max) {
        return node->kind == NODE_MAPPING;
    }
    char wanted[64];
    (void)snprintf(wanted, sizeof(wanted), "at most %u %s", max, what);
    fields_expected(reader, node, label, wanted);
    return false;
}

bool fields_is_word(const struct node *value, const char *word)
{
    return fields_is_bare(value) && strcmp(value->text, word) == 0;
}

uint32_t fields_find_word(const struct node *value,
                          const char *const *words,
                          uint32_t count)
{
    uint32_t ix = 0;
    while (ix < count &&
           !(node_is_scalar(value) && strcmp(value->text, words[ix]) == 0)) {
        ix++;
    }
    return ix;
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

/* Parse digits as a number up to 10^12; NULL if `text` starts with none. */
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

/* Parse a number as YAML and JSON write it: digits, no leading zeros. */
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

/* Return the error in an id, or NULL. */
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
    if (!fields_is_text(reader, node, QUOTED_TEXT(what), "a string")) {
        return NULL;
    }
    const char *fault = "it is empty";
    if (node->count > 0) {
        fault = id_fault(node->text, node->count, slash);
    }
    if (fault != NULL) {
        REPORT(reader, node, "invalid %s %s: %s", what, QUOTED(node), fault);
        return NULL;
    }
    return node->text;
}

const char *fields_check_line(struct reader *reader,
                              const struct node *node,
                              const char *label,
                              size_t max)
{
    if (!fields_is_text(reader, node, label, "a string")) {
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

void fields_node(const struct entry *entry)
{
    *(const struct node **)entry->out = entry->value;
}

void fields_bool(const struct entry *entry)
{
    bool *out = entry->out;
    if (fields_is_word(entry->value, "true")) {
        *out = true;
    } else if (fields_is_word(entry->value, "false")) {
        *out = false;
    } else {
        fields_wrong(entry, "true or false");
    }
}

void fields_number(const struct entry *entry)
{
    const struct field *field = entry->field;
    int64_t number = 0;
    if (!fields_parse_number(entry->value, &number) || number < field->min ||
        number > field->max) {
        char wanted[96];
        int len = snprintf(wanted,
                           sizeof(wanted),
                           "a number from %" PRId64 " to %" PRId64,
                           field->min,
                           field->max);
        fields_wrong(entry, len > 0 ? wanted : "a number");
        return;
    }
    *(uint32_t *)entry->out = (uint32_t)number;
}

/* Read a duration; return the error (`wanted`: not a duration), or NULL. */
static const char *read_duration(const struct node *value,
                                 int64_t min,
                                 const char *wanted,
                                 int64_t *out)
{
    int64_t ns = 0;
    if (fields_parse_duration(value, &ns)) {
        wanted = ns < min               ? "more than 0"
                 : ns > DURATION_MAX_NS ? "at most 365d"
                                        : NULL;
    }
    *out = wanted == NULL ? ns : *out;
    return wanted;
}

void fields_duration(const struct entry *entry)
{
    const char *fault = read_duration(entry->value,
                                      entry->field->min,
                                      "a duration such as 90s, 30m or 2h",
                                      entry->out);
    if (fault != NULL) {
        fields_wrong(entry, fault);
    }
}

void fields_duration_or_none(const struct entry *entry)
{
    const char *fault = NULL;
    if (fields_is_word(entry->value, "none")) {
        *(int64_t *)entry->out = PLAN_UNLIMITED;
    } else {
        fault = read_duration(entry->value,
                              entry->field->min,
                              "a duration such as 90s, 30m or 2h, or none",
                              entry->out);
    }
    if (fault != NULL) {
        fields_wrong(entry, fault);
    }
}

/* Copy the string of a scalar into the plan. */
static const char *kept(struct reader *reader, const struct node *value)
{
    return arena_strndup(&reader->plan->private->arena,
                         value->text,
                         value->count);
}

static void keep_text(const struct entry *entry)
{
    *(const char **)entry->out = kept(entry->reader, entry->value);
}

void fields_line(const struct entry *entry)
{
    if (fields_check_line(entry->reader,
                          entry->value,
                          QUOTED_TEXT(entry->field->name),
                          (size_t)entry->field->max)) {
        keep_text(entry);
    }
}

void fields_text(const struct entry *entry)
{
    const struct node *value = entry->value;
    if (!node_is_scalar(value) || fields_is_empty(value)) {
        fields_wrong(entry, "a string");
    } else if (value->count > (size_t)entry->field->max) {
        fields_wrong(entry, "a string of at most 1 MiB");
    } else {
        keep_text(entry);
    }
}

/* Check that the value is a shell command; otherwise report it. */
static bool check_shell(const struct entry *entry, const char *wanted)
{
    const struct node *value = entry->value;
    if (!node_is_scalar(value) || fields_is_empty(value)) {
        fields_wrong(entry, wanted);
        return false;
    }
    if (value->text[strspn(value->text, " \t\r\n")] == '\0') {
        fields_wrong(entry, "a non-empty command");
        return false;
    }
    return true;
}

void fields_shell(const struct entry *entry)
{
    if (check_shell(entry, "a shell command")) {
        keep_text(entry);
    }
}

/* Read a list of arguments; NULL after an error. */
static const char **read_argv(const struct entry *entry)
{
    const struct node *value = entry->value;
    struct reader *reader = entry->reader;
    const struct node *first = node_first(value);
    if (first == NULL || (node_is_scalar(first) && first->count == 0)) {
        fields_wrong(entry, "a list that starts with a program");
        return NULL;
    }
    const char **argv = arena_alloc(&reader->plan->private->arena,
                                    value->count + 1,
                                    sizeof(argv[0]));
    uint32_t count = 0;
    for (const struct node *item = first; item != NULL;
         item = node_next(item)) {
        if (!fields_is_text(reader, item, "an argument", "a string")) {
            return NULL;
        }
        argv[count++] = kept(reader, item);
    }
    return argv;
}

void fields_command(const struct entry *entry)
{
    struct plan_command *out = entry->out;
    if (entry->value->kind == NODE_LIST) {
        *out = (struct plan_command){.argv = read_argv(entry)};
    } else if (check_shell(entry, "a shell command or a list of arguments")) {
        *out =
            (struct plan_command){.shell = kept(entry->reader, entry->value)};
    }
}
