/* SPDX-License-Identifier: MIT */
/*
 * Reader for tasks of Task Master: tasks.json, which is {"tasks": [...]}, or
 * has such an object for each tag: {"master": {"tasks": [...]}, ...}.
 *
 * A task is one issue, and its subtasks are a list in the body: one session
 * does the whole task. A dependency on the subtask "3.2" is therefore a
 * dependency on task 3, and a task inherits the dependencies of its unfinished
 * subtasks on other tasks. Within a task, the list gives the order of subtasks.
 */
#include "import/import_read.h"
#include "plan/suggest.h"

#include "base/macros.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAMES_SHOWN = 10, ID_BYTES_MAX = 32 };

/* --- ids ---------------------------------------------------------------- */

/* Return the id of a task as a string; empty if the value is invalid. Numbers
 * such as 3.2 are ids of subtasks. */
static struct import_span id_of(const json_t *value, char buf[ID_BYTES_MAX])
{
    int len = 0;
    if (json_is_string(value)) {
        return import_read_text(value);
    }
    if (json_is_integer(value)) {
        len = snprintf(buf,
                       ID_BYTES_MAX,
                       "%" JSON_INTEGER_FORMAT,
                       json_integer_value(value));
    } else if (json_is_real(value)) {
        len = snprintf(buf, ID_BYTES_MAX, "%g", json_real_value(value));
    }
    bool fits = len > 0 && len < ID_BYTES_MAX;
    return (struct import_span){buf, fits ? (size_t)len : 0};
}

/* Return the task id of an id that may name a subtask. */
static struct import_span task_of(struct import_span id)
{
    const char *dot = id.len == 0 ? NULL : memchr(id.text, '.', id.len);
    return dot == NULL ? id
                       : (struct import_span){id.text, (size_t)(dot - id.text)};
}

static bool has_subtask(const json_t *task, struct import_span id)
{
    const json_t *subtasks = json_object_get(task, "subtasks");
    for (size_t ix = 0; ix < json_array_size(subtasks); ix++) {
        char buf[ID_BYTES_MAX];
        const json_t *subtask = json_array_get(subtasks, ix);
        struct import_span own = id_of(json_object_get(subtask, "id"), buf);
        if (own.len > 0 && import_compare(own, id) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_done(const json_t *task)
{
    struct import_span status =
        import_read_text(json_object_get(task, "status"));
    return import_is(status, "done") || import_is(status, "completed") ||
           import_is(status, "cancelled");
}

/* --- the fields --------------------------------------------------------- */

static bool set_id(struct import_reading *reading,
                   const json_t *entry,
                   struct import_issue *issue)
{
    char buf[ID_BYTES_MAX];
    struct import_span id = id_of(json_object_get(entry, "id"), buf);
    if (task_of(id).len != id.len ||
        !import_read_id(reading->import, id, &issue->number, &issue->key)) {
        import_fail(reading->import,
                    reading->file,
                    "entry %u: \"id\" must be an integer, or a string of "
                    "letters, digits, \"_\" and \"-\"",
                    reading->entry);
        return false;
    }
    return true;
}

static bool set_state(struct import_reading *reading,
                      const json_t *entry,
                      struct import_issue *issue)
{
    static const char *const open[] =
        {"", "pending", "in-progress", "review", "blocked", "deferred"};
    const json_t *status = json_object_get(entry, "status");
    struct import_span said = import_read_text(status);
    bool known = status == NULL || json_is_string(status);
    issue->closed = is_done(entry);
    issue->deferred = import_is(said, "deferred");
    bool listed =
        issue->closed || import_is_one_of(said, open, ARRAY_COUNT(open));
    if (!known || !listed) {
        import_fail_issue(reading->import,
                          issue,
                          "\"status\" must be pending, in-progress, review, "
                          "blocked, deferred, done or cancelled");
        return false;
    }
    return true;
}

static bool set_priority(struct import_reading *reading,
                         const json_t *entry,
                         struct import_issue *issue)
{
    static const char *const words[] = {"critical", "high", "medium", "low"};
    const json_t *value = json_object_get(entry, "priority");
    issue->priority = IMPORT_PRIORITY_UNSET;
    if (value == NULL || json_is_null(value)) {
        return true;
    }
    for (uint32_t ix = 0; ix < ARRAY_COUNT(words); ix++) {
        if (import_is(import_read_text(value), words[ix])) {
            issue->priority = ix;
            return true;
        }
    }
    import_fail_issue(reading->import,
                      issue,
                      "\"priority\" must be critical, high, medium or low");
    return false;
}

/* --- the body ----------------------------------------------------------- */

/* Append a string as lines of a list item. */
static void add_indented(struct strbuf *out, struct import_span text)
{
    struct import_span line;
    while (import_next_line(&text, &line)) {
        strbuf_adds(out, line.len > 0 ? "\n  " : "\n");
        strbuf_add(out, line.text, line.len);
    }
}

/* Append a subtask as a list item: a box, id and title, then its strings. */
static bool add_subtask(const struct import_reading *reading,
                        const struct import_issue *issue,
                        const json_t *subtask,
                        struct strbuf *out)
{
    static const char *const texts[] = {
        "description",
        "details",
        "testStrategy",
        "acceptanceCriteria",
    };
    char buf[ID_BYTES_MAX];
    struct import_span id = id_of(json_object_get(subtask, "id"), buf);
    struct import_span title =
        import_read_text(json_object_get(subtask, "title"));
    if (id.len == 0 || title.len == 0) {
        return import_read_wrong(reading,
                                 issue,
                                 "subtasks",
                                 "a list of objects with \"id\" and \"title\"",
                                 subtask);
    }
    strbuf_addf(out, "\n- [%c] ", is_done(subtask) ? 'x' : ' ');
    strbuf_add(out, id.text, id.len);
    strbuf_adds(out, ". ");
    strbuf_add(out, title.text, title.len);
    for (size_t ix = 0; ix < ARRAY_COUNT(texts); ix++) {
        const json_t *text = json_object_get(subtask, texts[ix]);
        if (json_string_length(text) > 0) {
            strbuf_adds(out, "\n");
            add_indented(out, import_read_text(text));
        }
    }
    return true;
}

static bool add_subtasks(const struct import_reading *reading,
                         const struct import_issue *issue,
                         const json_t *entry,
                         struct strbuf *out)
{
    const json_t *list = NULL;
    if (!import_read_list(reading, issue, entry, "subtasks", &list)) {
        return false;
    }
    for (size_t ix = 0; ix < json_array_size(list); ix++) {
        if (ix == 0) {
            strbuf_adds(out, out->len > 0 ? "\n\n" : "");
            strbuf_adds(out, "## Subtasks\n");
        }
        if (!add_subtask(reading, issue, json_array_get(list, ix), out)) {
            return false;
        }
    }
    return true;
}

/* --- dependencies ------------------------------------------------------- */

/* Add the tie of one dependency of the task or of its subtask. */
static bool add_dependency(const struct import_reading *reading,
                           const json_t *task,
                           bool of_subtask,
                           const json_t *value,
                           struct import_issue *issue)
{
    char buf[ID_BYTES_MAX];
    struct import_span id = id_of(value, buf);
    struct import_span other = task_of(id);
    bool sibling = of_subtask && other.len == id.len && has_subtask(task, id);
    struct import_reference reference = {0};
    if (sibling) {
        return true;
    }
    if (!import_read_id(reading->import,
                        other,
                        &reference.number,
                        &reference.key)) {
        return import_read_wrong(reading,
                                 issue,
                                 "dependencies",
                                 "a list of task ids",
                                 value);
    }
    bool own = reference.number == issue->number &&
               import_compare_keys(reference.key, issue->key) == 0;
    if (own && (of_subtask || other.len < id.len)) {
        return true; /* order of its own subtasks */
    }
    struct strbuf text = {0};
    strbuf_adds(&text, reference.number > 0 ? "#" : "");
    strbuf_add(&text, id.text, id.len);
    reference.text = import_take(reading->import, &text);
    import_add_tie(reading->import, issue, IMPORT_NEEDS)->reference = reference;
    return true;
}

static bool add_dependencies(const struct import_reading *reading,
                             const json_t *task,
                             const json_t *holder,
                             struct import_issue *issue)
{
    const json_t *list = NULL;
    if (!import_read_list(reading, issue, holder, "dependencies", &list)) {
        return false;
    }
    for (size_t ix = 0; ix < json_array_size(list); ix++) {
        if (!add_dependency(reading,
                            task,
                            holder != task,
                            json_array_get(list, ix),
                            issue)) {
            return false;
        }
    }
    return true;
}

static bool set_dependencies(struct import_reading *reading,
                             const json_t *entry,
                             struct import_issue *issue)
{
    const json_t *subtasks = json_object_get(entry, "subtasks");
    bool good = add_dependencies(reading, entry, entry, issue);
    for (size_t ix = 0; good && ix < json_array_size(subtasks); ix++) {
        const json_t *subtask = json_array_get(subtasks, ix);
        good = is_done(subtask) ||
               add_dependencies(reading, entry, subtask, issue);
    }
    return good;
}

/* --- entries ------------------------------------------------------------ */

/* Whether a member of the file is a tagged task list. */
static bool is_tag(const json_t *value)
{
    return json_is_array(json_object_get(value, "tasks"));
}

/* Report that no list has the requested tag, with the existing tags. */
static void fail_tag(const struct import_reading *reading, json_t *root)
{
    const char *wanted = reading->import->options.tag;
    uint32_t budget = SUGGEST_BUDGET;
    uint32_t count = 0;
    const char *name = NULL;
    json_t *value = NULL;
    struct suggest guess;
    struct strbuf names = {0};
    suggest_init(&guess,
                 wanted != NULL ? wanted : "",
                 wanted != NULL ? strlen(wanted) : 0,
                 &budget);
    json_object_foreach(root, name, value)
    {
        if (is_tag(value)) {
            (void)suggest_offer(&guess, name);
            if (++count <= NAMES_SHOWN) {
                strbuf_addf(&names, "%s\"%s\"", count > 1 ? ", " : "", name);
            }
        }
    }
    strbuf_adds(&names, count > NAMES_SHOWN ? " and more" : "");
    if (count == 0) {
        import_fail(reading->import,
                    reading->file,
                    wanted == NULL ? "missing list \"tasks\""
                                   : "the file has no tags: omit --tag");
    } else if (wanted == NULL) {
        import_fail(
            reading->import,
            reading->file,
            "several tags and no \"master\": select one with --tag; tags: %s",
            strbuf_text(&names));
    } else {
        import_fail(reading->import,
                    reading->file,
                    "no tag \"%s\"%s; tags: %s",
                    wanted,
                    suggest_hint(&guess),
                    strbuf_text(&names));
    }
    strbuf_release(&names);
}

/* Return the list of tasks to read, or NULL after an error. */
static const json_t *find_tasks(const struct import_reading *reading,
                                json_t *root)
{
    const char *wanted = reading->import->options.tag;
    bool plain = json_is_array(root) || is_tag(root);
    if (plain && (wanted == NULL || strcmp(wanted, "master") == 0)) {
        return json_is_array(root) ? root : json_object_get(root, "tasks");
    }
    const json_t *chosen =
        json_object_get(root, wanted != NULL ? wanted : "master");
    const char *name = NULL;
    json_t *value = NULL;
    uint32_t count = 0;
    const json_t *only = NULL;
    json_object_foreach(root, name, value)
    {
        if (!plain && is_tag(value)) {
            count++;
            only = value;
        }
    }
    if (!plain && is_tag(chosen)) {
        return json_object_get(chosen, "tasks");
    }
    if (wanted == NULL && count == 1) {
        return json_object_get(only, "tasks");
    }
    fail_tag(reading, root);
    return NULL;
}

static const struct import_section sections[] = {
    {"description", NULL},
    {"details", "Details"},
    {"testStrategy", "Test strategy"},
    {NULL, NULL},
};

const struct import_format import_taskmaster = {
    .origin = "Task Master writes",
    .entry = "a task object",
    .remedy = "",
    .labels = "tags",
    .sections = sections,
    .body = "details",
    .add_rest = add_subtasks,
    .find = find_tasks,
    .sets = {set_id,
             import_read_title,
             import_read_body,
             import_read_labels,
             set_state,
             set_priority,
             import_read_home,
             set_dependencies},
};
