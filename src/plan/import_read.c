/* SPDX-License-Identifier: MIT */
/*
 * From JSON to issues. Understood are the shapes of `gh issue list`, `gh
 * search issues` and of GitHub's REST interface, which differ in how they name
 * the repository and the state. Fields that nobody needs are not looked at.
 *
 * The texts of an issue stay where jansson has put them; the roots are kept
 * for that. jansson refuses what is not UTF-8, and nesting beyond 2048 levels.
 */
#include "base/mem.h"
#include "plan/import_internal.h"

#include <inttypes.h>
#include <string.h>

#define FIELDS "number,title,body,labels,milestone,state,url"

/* One file while it is being read. */
struct reading {
    struct import *import;
    const char *file;
    struct import_span owner; /* of issues that do not name their repository */
    struct import_span name;
    uint32_t entry;  /* number of the entry, from 1 */
    bool said_title; /* an error that all entries share is told once */
    bool said_body;
    bool said_milestone;
};

static const char *kind_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a text";
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

static struct import_span text_of(const json_t *value)
{
    return (struct import_span){json_string_value(value),
                                json_string_length(value)};
}

/* --- the repository ----------------------------------------------------- */

/* The owner and name at the end of an address: .../OWNER/NAME[/issues/N]. */
static bool split_address(struct import_span address,
                          struct import_span *owner,
                          struct import_span *name)
{
    const char *end = address.text + address.len;
    const char *host = memmem(address.text, address.len, "//", 2);
    const char *at =
        host == NULL ? NULL : memchr(host + 2, '/', (size_t)(end - host - 2));
    if (at == NULL) {
        return false;
    }
    at += strncmp(host, "//api.", 6) == 0 && strncmp(at, "/repos/", 7) == 0 ? 7
          : strncmp(at, "/api/v3/repos/", 14) == 0                          ? 14
                                                                            : 1;
    const char *slash = memchr(at, '/', (size_t)(end - at));
    if (slash == NULL) {
        return false;
    }
    const char *tail = memchr(slash + 1, '/', (size_t)(end - slash - 1));
    tail = tail == NULL ? end : tail;
    struct import_span both = {at, (size_t)(tail - at)};
    return import_split(both, owner, name);
}

/* The text of the first of these fields that has one. */
static struct import_span first_text(const json_t *object,
                                     const char *const *fields)
{
    for (; *fields != NULL; fields++) {
        const json_t *value = json_object_get(object, *fields);
        if (json_is_string(value)) {
            return text_of(value);
        }
    }
    return import_span("");
}

/* Owner and name out of a "repository" field; false when it has none. */
static bool read_repository(const json_t *value,
                            struct import_span *owner,
                            struct import_span *name)
{
    static const char *const full[] = {"nameWithOwner", "full_name", NULL};
    if (json_is_string(value)) {
        struct import_span text = text_of(value);
        return import_split(text, owner, name) ||
               split_address(text, owner, name);
    }
    if (!json_is_object(value)) {
        return false;
    }
    struct import_span text = first_text(value, full);
    if (text.len > 0) {
        return import_split(text, owner, name);
    }
    const json_t *part = json_object_get(value, "name");
    const json_t *login = json_object_get(value, "owner");
    login = json_is_object(login) ? json_object_get(login, "login") : login;
    *name = json_is_string(part) ? text_of(part) : (struct import_span){0};
    *owner = json_is_string(login) ? text_of(login) : (struct import_span){0};
    return import_is_name(*name) && (owner->len == 0 || import_is_name(*owner));
}

static const char *kept(struct import *import, struct import_span text)
{
    return arena_strndup(&import->arena, text.text, text.len);
}

/* Find out which repository the issue is of; false after an error. */
static bool set_repository(const struct reading *reading,
                           const json_t *entry,
                           struct import_issue *issue)
{
    static const char *const addresses[] = {
        "url",
        "html_url",
        "repository_url",
        NULL,
    };
    struct import_span owner = {0};
    struct import_span name = {0};
    const json_t *said = json_object_get(entry, "repository");
    bool known = false;
    if (said != NULL && !json_is_null(said)) {
        known = read_repository(said, &owner, &name);
        if (!known) {
            import_fail(reading->import,
                        reading->file,
                        issue->number,
                        "\"repository\" must be \"OWNER/NAME\", or an object "
                        "with \"nameWithOwner\"");
            return false;
        }
    }
    known = known || split_address(first_text(entry, addresses), &owner, &name);
    if (!known && reading->name.len > 0) {
        owner = reading->owner;
        name = reading->name;
        known = true;
    }
    if (!known) {
        import_fail(reading->import,
                    reading->file,
                    issue->number,
                    "which repository is it of? Add \"url\" to the fields of "
                    "the export, name the file after the repository, or use "
                    "--repo OWNER/NAME");
        return false;
    }
    issue->owner = owner.len > 0 ? kept(reading->import, owner) : NULL;
    issue->name = kept(reading->import, name);
    return true;
}

/* --- the fields --------------------------------------------------------- */

/* An error about a field that the whole export lacks, once for each file. */
static bool
lacks(struct reading *reading, int64_t issue, const char *field, bool *said)
{
    if (!*said) {
        import_fail(reading->import,
                    reading->file,
                    issue,
                    "there is no \"%s\": export with --json " FIELDS,
                    field);
    }
    *said = true;
    return false;
}

static bool wrong(const struct reading *reading,
                  int64_t issue,
                  const char *field,
                  const char *wanted,
                  const json_t *found)
{
    import_fail(reading->import,
                reading->file,
                issue,
                "\"%s\" must be %s, not %s",
                field,
                wanted,
                kind_of(found));
    return false;
}

static bool set_texts(struct reading *reading,
                      const json_t *entry,
                      struct import_issue *issue)
{
    const json_t *title = json_object_get(entry, "title");
    const json_t *body = json_object_get(entry, "body");
    if (title == NULL) {
        return lacks(reading, issue->number, "title", &reading->said_title);
    }
    if (!json_is_string(title)) {
        return wrong(reading, issue->number, "title", "a text", title);
    }
    if (body == NULL) {
        return lacks(reading, issue->number, "body", &reading->said_body);
    }
    if (!json_is_string(body) && !json_is_null(body)) {
        return wrong(reading, issue->number, "body", "a text", body);
    }
    issue->title = text_of(title);
    issue->body = json_is_string(body) ? text_of(body) : import_span("");
    if (issue->body.len > IMPORT_BODY_BYTES_MAX) {
        import_fail(reading->import,
                    reading->file,
                    issue->number,
                    "\"body\" is longer than %d bytes",
                    IMPORT_BODY_BYTES_MAX);
        return false;
    }
    return true;
}

static bool set_milestone(struct reading *reading,
                          const json_t *entry,
                          struct import_issue *issue)
{
    const json_t *value = json_object_get(entry, "milestone");
    issue->milestone = import_span("");
    if (value == NULL && reading->import->options.milestone != NULL) {
        return lacks(reading,
                     issue->number,
                     "milestone",
                     &reading->said_milestone);
    }
    if (value == NULL || json_is_null(value)) {
        return true;
    }
    const json_t *title =
        json_is_object(value) ? json_object_get(value, "title") : value;
    if (!json_is_string(title)) {
        return wrong(reading,
                     issue->number,
                     "milestone",
                     "null, a text, or an object with \"title\"",
                     value);
    }
    issue->milestone = text_of(title);
    return true;
}

static bool set_labels(const struct reading *reading,
                       const json_t *entry,
                       struct import_issue *issue)
{
    const json_t *labels = json_object_get(entry, "labels");
    if (labels == NULL || json_is_null(labels)) {
        return true;
    }
    if (!json_is_array(labels)) {
        return wrong(reading, issue->number, "labels", "a list", labels);
    }
    for (size_t ix = 0; ix < json_array_size(labels); ix++) {
        if (import_label(labels, ix).len == 0) {
            return wrong(reading,
                         issue->number,
                         "labels",
                         "a list of texts, or of objects with \"name\"",
                         json_array_get(labels, ix));
        }
    }
    issue->labels = labels;
    return true;
}

static bool set_state(const struct reading *reading,
                      const json_t *entry,
                      struct import_issue *issue)
{
    const json_t *state = json_object_get(entry, "state");
    const json_t *pull = json_object_get(entry, "isPullRequest");
    const json_t *link = json_object_get(entry, "pull_request");
    issue->closed = json_is_true(json_object_get(entry, "closed"));
    issue->pull = json_is_true(pull) || json_is_object(link);
    if (state == NULL || json_is_null(state)) {
        return true;
    }
    struct import_span text =
        json_is_string(state) ? text_of(state) : (struct import_span){0};
    bool merged = import_compare(text, import_span("merged")) == 0;
    if (merged || import_compare(text, import_span("closed")) == 0) {
        issue->closed = true;
    } else if (import_compare(text, import_span("open")) != 0) {
        import_fail(reading->import,
                    reading->file,
                    issue->number,
                    "\"state\" must be \"OPEN\" or \"CLOSED\"");
        return false;
    }
    return true;
}

/* --- entries ------------------------------------------------------------ */

/* The number of an issue; 0 after an error. */
static int64_t read_number(const struct reading *reading, const json_t *entry)
{
    const json_t *number = json_object_get(entry, "number");
    if (!json_is_object(entry)) {
        import_fail(reading->import,
                    reading->file,
                    0,
                    "entry %u: expected an issue, an object, not %s",
                    reading->entry,
                    kind_of(entry));
        return 0;
    }
    if (number == NULL) {
        import_fail(
            reading->import,
            reading->file,
            0,
            "entry %u: there is no \"number\": export with --json " FIELDS,
            reading->entry);
        return 0;
    }
    int64_t value = json_is_integer(number) ? json_integer_value(number) : 0;
    if (value < 1 || value > IMPORT_NUMBER_MAX) {
        import_fail(reading->import,
                    reading->file,
                    0,
                    "entry %u: \"number\" must be a whole number from 1 to "
                    "%" PRId64,
                    reading->entry,
                    IMPORT_NUMBER_MAX);
        return 0;
    }
    return value;
}

static void read_entry(struct reading *reading, const json_t *entry)
{
    struct import *import = reading->import;
    reading->entry++;
    struct import_issue issue = {
        .file = reading->file,
        .number = read_number(reading, entry),
        .seq = import->issue_count,
    };
    if (issue.number == 0 || !set_texts(reading, entry, &issue) ||
        !set_milestone(reading, entry, &issue) ||
        !set_labels(reading, entry, &issue) ||
        !set_state(reading, entry, &issue) ||
        !set_repository(reading, entry, &issue)) {
        return;
    }
    if (import->issue_count == IMPORT_ISSUES_MAX) {
        import_fail(import,
                    reading->file,
                    issue.number,
                    "more than %d issues",
                    IMPORT_ISSUES_MAX);
        return;
    }
    if (import->issue_count == import->issue_capacity) {
        uint32_t old = import->issue_capacity;
        import->issue_capacity = old == 0 ? 64 : old * 2;
        import->issues = mem_resize(import->issues,
                                    import->issue_capacity,
                                    sizeof(import->issues[0]));
    }
    import->issues[import->issue_count++] = issue;
}

static void read_root(struct reading *reading, json_t *root)
{
    struct import *import = reading->import;
    if (import->root_count == import->root_capacity) {
        uint32_t old = import->root_capacity;
        import->root_capacity = old == 0 ? 8 : old * 2;
        import->roots =
            mem_resize(import->roots, import->root_capacity, sizeof(void *));
    }
    import->roots[import->root_count++] = root;
    if (!json_is_array(root)) {
        read_entry(reading, root);
        return;
    }
    for (size_t ix = 0; ix < json_array_size(root); ix++) {
        if (import->errors.cut) {
            return;
        }
        read_entry(reading, json_array_get(root, ix));
    }
}

/* --- files -------------------------------------------------------------- */

/* What issues of this file are of that do not say it themselves. */
static void set_default(struct reading *reading)
{
    const char *option = reading->import->options.repo;
    if (option != NULL) {
        if (!import_split(import_span(option),
                          &reading->owner,
                          &reading->name)) {
            reading->name = (struct import_span){0};
            import_fail(reading->import,
                        NULL,
                        0,
                        "--repo must be NAME or OWNER/NAME, not \"%s\"",
                        option);
        }
        return;
    }
    const char *slash = strrchr(reading->file, '/');
    struct import_span base =
        import_span(slash == NULL ? reading->file : slash + 1);
    if (base.len > 5 && strcmp(base.text + base.len - 5, ".json") == 0) {
        base.len -= 5;
    }
    reading->name = import_is_name(base) ? base : (struct import_span){0};
}

/* Count the lines of what was read; `where` is the place of `from`. */
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

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/* Read the values of the file one by one. */
static void
read_values(struct reading *reading, const char *at, const char *end)
{
    const size_t flags =
        JSON_ALLOW_NUL | JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES;
    struct import_error where = {.file = reading->file, .line = 1, .column = 1};
    bool any = false;
    for (;;) {
        const char *from = at;
        while (at < end && is_space(*at)) {
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
                           "not JSON as gh prints it: %s",
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
        import_fail(reading->import,
                    reading->file,
                    0,
                    "there is nothing in it");
    }
}

void import_read(struct import *import,
                 const char *file,
                 const char *text,
                 size_t len)
{
    struct reading reading = {
        .import = import,
        .file = arena_strndup(&import->arena, file, strlen(file)),
    };
    set_default(&reading);
    if (len >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 ||
                     memcmp(text, "\xfe\xff", 2) == 0)) {
        import_fail(import, reading.file, 0, "it is UTF-16: save it as UTF-8");
        return;
    }
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        len -= 3;
    }
    read_values(&reading, text, text + len);
}
