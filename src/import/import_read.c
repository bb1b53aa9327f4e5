/* SPDX-License-Identifier: MIT */
/*
 * Reader of input files: passes one JSON value after the other to the reader of
 * the source. Unused fields are ignored.
 *
 * Strings of an issue stay in the memory of jansson, so the roots are kept.
 * jansson rejects invalid UTF-8, and nesting beyond 2048 levels.
 */
#include "import/import_read.h"

#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

static const struct import_format *const formats[] = {
    [IMPORT_GITHUB] = &import_github,
    [IMPORT_BEADS] = &import_beads,
    [IMPORT_TASKMASTER] = &import_taskmaster,
};

const char *import_read_kind(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        return "null";
    }
    return "nothing";
}

struct import_span import_read_text(const json_t *value)
{
    return (struct import_span){
        json_is_string(value) ? json_string_value(value) : "",
        json_string_length(value),
    };
}

struct import_span import_read_first(const json_t *object,
                                     const char *const *fields)
{
    for (; *fields != NULL; fields++) {
        const json_t *value = json_object_get(object, *fields);
        if (json_is_string(value)) {
            return import_read_text(value);
        }
    }
    return import_span("");
}

/* --- the fields --------------------------------------------------------- */

bool import_read_wrong(const struct import_reading *reading,
                       const struct import_issue *issue,
                       const char *field,
                       const char *wanted,
                       const json_t *found)
{
    import_fail_issue(reading->import,
                      issue,
                      "\"%s\" must be %s, not %s",
                      field,
                      wanted,
                      import_read_kind(found));
    return false;
}

bool import_read_lacks(const struct import_reading *reading,
                       const struct import_issue *issue,
                       const char *field,
                       bool *said)
{
    if (!*said) {
        import_fail_issue(reading->import,
                          issue,
                          "missing \"%s\"%s",
                          field,
                          reading->format->remedy);
    }
    *said = true;
    return false;
}

bool import_read_string(const struct import_reading *reading,
                        const struct import_issue *issue,
                        const json_t *entry,
                        const char *field,
                        struct import_span *out)
{
    const json_t *value = json_object_get(entry, field);
    *out = import_read_text(value);
    if (value == NULL || json_is_null(value) || json_is_string(value)) {
        return true;
    }
    return import_read_wrong(reading, issue, field, "a string", value);
}

bool import_read_list(const struct import_reading *reading,
                      const struct import_issue *issue,
                      const json_t *entry,
                      const char *field,
                      const json_t **out)
{
    const json_t *value = json_object_get(entry, field);
    *out = json_is_array(value) ? value : NULL;
    if (value == NULL || json_is_null(value) || json_is_array(value)) {
        return true;
    }
    return import_read_wrong(reading, issue, field, "a list", value);
}

bool import_read_title(struct import_reading *reading,
                       const json_t *entry,
                       struct import_issue *issue)
{
    const json_t *title = json_object_get(entry, "title");
    if (title == NULL) {
        return import_read_lacks(reading, issue, "title", &reading->said_title);
    }
    if (!json_is_string(title)) {
        return import_read_wrong(reading, issue, "title", "a string", title);
    }
    issue->title = import_read_text(title);
    return true;
}

bool import_read_labels(struct import_reading *reading,
                        const json_t *entry,
                        struct import_issue *issue)
{
    const char *field = reading->format->labels;
    const json_t *labels = NULL;
    if (!import_read_list(reading, issue, entry, field, &labels)) {
        return false;
    }
    for (size_t ix = 0; ix < json_array_size(labels); ix++) {
        if (import_label(labels, ix).len == 0) {
            return import_read_wrong(
                reading,
                issue,
                field,
                "a list of strings, or of objects with \"name\"",
                json_array_get(labels, ix));
        }
    }
    issue->labels = labels;
    return true;
}

bool import_read_whole(const struct import_reading *reading,
                       struct import_span body,
                       struct import_issue *issue)
{
    issue->body = body;
    if (body.len > IMPORT_BODY_BYTES_MAX) {
        import_fail_issue(reading->import,
                          issue,
                          "\"%s\" is longer than %d bytes",
                          reading->format->body,
                          IMPORT_BODY_BYTES_MAX);
        return false;
    }
    return true;
}

/* Append a section; false after an error. */
static bool add_section(const struct import_reading *reading,
                        const struct import_issue *issue,
                        const json_t *entry,
                        const struct import_section *section,
                        struct strbuf *out)
{
    struct import_span text;
    if (!import_read_string(reading, issue, entry, section->field, &text)) {
        return false;
    }
    if (text.len > 0) {
        strbuf_adds(out, out->len > 0 ? "\n\n" : "");
        if (section->heading != NULL) {
            strbuf_addf(out, "## %s\n\n", section->heading);
        }
        strbuf_add(out, text.text, text.len);
    }
    return true;
}

bool import_read_body(struct import_reading *reading,
                      const json_t *entry,
                      struct import_issue *issue)
{
    const struct import_format *format = reading->format;
    struct strbuf body = {0};
    bool good = true;
    for (const struct import_section *section = format->sections;
         good && section->field != NULL;
         section++) {
        good = add_section(reading, issue, entry, section, &body);
    }
    good = good && (format->add_rest == NULL ||
                    format->add_rest(reading, issue, entry, &body));
    struct import_span text = import_take(reading->import, &body);
    return good && import_read_whole(reading, text, issue);
}

bool import_read_id(struct import *import,
                    struct import_span id,
                    int64_t *number,
                    const char **key)
{
    int64_t sum = 0;
    bool digits = id.len > 0 && id.text[0] != '0';
    for (size_t ix = 0; digits && ix < id.len; ix++) {
        digits = id.text[ix] >= '0' && id.text[ix] <= '9';
        sum = sum * 10 + (id.text[ix] - '0');
        digits = digits && sum <= IMPORT_NUMBER_MAX;
    }
    *number = digits ? sum : 0;
    *key = digits ? NULL : arena_strndup(&import->arena, id.text, id.len);
    return digits || import_is_key(id);
}

/* --- entries ------------------------------------------------------------ */

/* Add the issue of an entry. */
static void add_issue(struct import *import, struct import_issue *issue)
{
    if (import->issue_count == IMPORT_ISSUES_MAX) {
        import_fail_issue(import,
                          issue,
                          "more than %d issues",
                          IMPORT_ISSUES_MAX);
        return;
    }
    MEM_GROW(import->issues, import->issue_count, import->issue_capacity);
    issue->seq = import->issue_count;
    import->issues[import->issue_count++] = *issue;
}

static void read_entry(struct import_reading *reading, const json_t *entry)
{
    import_set_fn *const *set = reading->format->sets;
    struct import_issue issue = {
        .file = reading->file,
        .priority = IMPORT_PRIORITY_UNSET,
        .milestone = import_span(""),
    };
    reading->entry++;
    if (!json_is_object(entry)) {
        import_fail(reading->import,
                    reading->file,
                    "entry %u: expected %s, not %s",
                    reading->entry,
                    reading->format->entry,
                    import_read_kind(entry));
        return;
    }
    while (*set != NULL && (*set)(reading, entry, &issue)) {
        set++;
    }
    if (*set == NULL) {
        add_issue(reading->import, &issue);
    }
}

/* Read each entry of a list, or the single entry. */
static void read_root(struct import_reading *reading, json_t *root)
{
    struct import *import = reading->import;
    const json_t *list = root;
    if (import->root_count == import->root_capacity) {
        import->root_capacity += 8 + import->root_capacity;
        import->roots =
            mem_resize(import->roots, import->root_capacity, sizeof(void *));
    }
    import->roots[import->root_count++] = root;
    if (reading->format->find != NULL) {
        list = reading->format->find(reading, root);
    }
    size_t count = json_is_array(list) ? json_array_size(list) : 1;
    for (size_t ix = 0; list != NULL && ix < count && !import->errors.cut;
         ix++) {
        read_entry(reading,
                   json_is_array(list) ? json_array_get(list, ix) : list);
    }
}

/* --- files -------------------------------------------------------------- */

/* Cut the last component off a path; empty if none is left. */
static struct import_span take_component(struct import_span *path)
{
    while (path->len > 0 && path->text[path->len - 1] == '/') {
        path->len--;
    }
    size_t end = path->len;
    while (path->len > 0 && path->text[path->len - 1] != '/') {
        path->len--;
    }
    return (struct import_span){path->text + path->len, end - path->len};
}

/* Cut a suffix off a name, if it has it. */
static void cut_ending(struct import_span *name, const char *ending)
{
    size_t len = strlen(ending);
    if (name->len > len &&
        memcmp(name->text + name->len - len, ending, len) == 0) {
        name->len -= len;
    }
}

/*
 * Return the repository name that the path of a file implies. beads and Task
 * Master keep their file in the clone, at NAME/.beads/issues.jsonl and
 * NAME/.taskmaster/tasks/tasks.json (or NAME/tasks/tasks.json); any other file
 * is named after the repository.
 */
static struct import_span name_of_path(enum import_source source,
                                       struct import_span path)
{
    struct import_span base = take_component(&path);
    struct import_span rest = path;
    struct import_span folder = take_component(&rest);
    if (source == IMPORT_BEADS && import_is_exactly(folder, ".beads")) {
        return take_component(&rest);
    }
    if (source == IMPORT_TASKMASTER && import_is_exactly(base, "tasks.json") &&
        import_is_exactly(folder, "tasks")) {
        struct import_span above = take_component(&rest);
        return import_is_exactly(above, ".taskmaster") ? take_component(&rest)
                                                       : above;
    }
    cut_ending(&base, ".json");
    cut_ending(&base, ".jsonl");
    return base;
}

/* Set the repository for issues of this file that do not name theirs. */
static void set_default(struct import_reading *reading, const char *path)
{
    const struct import_options *options = &reading->import->options;
    if (options->repo != NULL) {
        if (!import_split(import_span(options->repo),
                          &reading->owner,
                          &reading->name)) {
            reading->name = (struct import_span){0};
            import_fail(reading->import,
                        NULL,
                        "--repo must be NAME or OWNER/NAME, not \"%s\"",
                        options->repo);
        }
        return;
    }
    struct import_span name = name_of_path(
        options->source,
        import_span(
            arena_strndup(&reading->import->arena, path, strlen(path))));
    reading->name = import_is_name(name) ? name : (struct import_span){0};
}

bool import_read_home(struct import_reading *reading,
                      const json_t *entry,
                      struct import_issue *issue)
{
    (void)entry;
    if (reading->name.len == 0) {
        if (!reading->said_repo && reading->import->options.repo == NULL) {
            import_fail(reading->import,
                        reading->file,
                        "unknown repository: use --repo NAME");
        }
        reading->said_repo = true;
        return false;
    }
    if (reading->owner.len > 0) {
        issue->owner = import_keep(reading->import, reading->owner).text;
    }
    issue->name = import_keep(reading->import, reading->name).text;
    return true;
}

/* Advance the position `where` of `from` to `to`. */
static void
advance(struct import_error *where, const char *from, const char *to)
{
    for (; from < to; from++) {
        where->column++;
        if (*from == '\n') {
            where->line++;
            where->column = 1;
        }
    }
}

/* Read the values of the file one by one. */
static void
read_values(struct import_reading *reading, const char *at, const char *end)
{
    const size_t flags =
        JSON_ALLOW_NUL | JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES;
    struct import_error where = {.file = reading->file, .line = 1, .column = 1};
    bool any = false;
    for (;;) {
        const char *from = at;
        while (at < end &&
               (import_is_blank(*at) || *at == '\n' || *at == '\r')) {
            at++;
        }
        advance(&where, from, at);
        if (at == end) {
            break;
        }
        json_error_t error = {0};
        json_t *root = json_loadb(at, (size_t)(end - at), flags, &error);
        if (root == NULL) {
            uint32_t line = error.line > 0 ? (uint32_t)error.line : 1;
            uint32_t column = error.column > 0 ? (uint32_t)error.column : 1;
            where.column = line == 1 ? where.column + column - 1 : column;
            where.line += line - 1;
            import_fail_at(reading->import,
                           &where,
                           "invalid JSON (expected what %s): %s",
                           reading->format->origin,
                           error.text);
            return;
        }
        any = true;
        read_root(reading, root);
        from = at;
        at += error.position > 0 ? (size_t)error.position : 1;
        advance(&where, from, at);
    }
    if (!any) {
        import_fail(reading->import, reading->file, "empty file");
    }
}

void import_read(struct import *import, const struct import_file *file)
{
    const char *text = file->text;
    size_t len = file->len;
    struct import_reading reading = {
        .import = import,
        .format = formats[import->options.source],
        .file = arena_strndup(&import->arena, file->name, strlen(file->name)),
    };
    set_default(&reading, file->path != NULL ? file->path : file->name);
    if (len >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 ||
                     memcmp(text, "\xfe\xff", 2) == 0)) {
        import_fail(import,
                    reading.file,
                    "UTF-16 is not supported: save the file as UTF-8");
        return;
    }
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        len -= 3;
    }
    read_values(&reading, text, text + len);
}
