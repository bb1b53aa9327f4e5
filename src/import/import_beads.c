/* SPDX-License-Identifier: MIT */
/*
 * Reader for issues of beads (bd), one object per line: .beads/issues.jsonl, or
 * the output of `bd export` and `bd list --json`.
 *
 * A dependency is listed in the waiting issue, or in the child. Dependency
 * types that block work become needs, "parent-child" names the parent, and all
 * other types are links without an effect. An id with a dot, such as bd-a1b2.3,
 * belongs to a child. bd omits zeros, so an issue without a priority has the
 * most urgent one.
 */
#include "import/import_read.h"

#include <string.h>

/* Set the id. Skip records other than issues. */
static bool set_id(struct import_reading *reading,
                   const json_t *entry,
                   struct import_issue *issue)
{
    const json_t *id = json_object_get(entry, "id");
    struct import_span type = import_read_text(json_object_get(entry, "_type"));
    if (type.len > 0 && !import_is(type, "issue")) {
        return false;
    }
    if (!json_is_string(id) || !import_read_id(reading->import,
                                               import_read_text(id),
                                               &issue->number,
                                               &issue->key)) {
        import_fail(reading->import,
                    reading->file,
                    "entry %u: \"id\" must be a string of 1 to %d letters, "
                    "digits, \".\", \"_\" and \"-\", as in bd-a1b2",
                    reading->entry,
                    IMPORT_KEY_BYTES_MAX);
        return false;
    }
    return true;
}

/* Set the state. Statuses that a project has added count as open. */
static bool set_state(struct import_reading *reading,
                      const json_t *entry,
                      struct import_issue *issue)
{
    static const char *const closed[] = {"closed", "tombstone"};
    static const char *const deferred[] = {"deferred", "pinned"};
    /* Types of bd's internal records; they are not work, and no issue waits for
     * them. */
    static const char *const records[] =
        {"agent", "event", "message", "rig", "role", "slot"};
    const json_t *status = json_object_get(entry, "status");
    const json_t *type = json_object_get(entry, "issue_type");
    if (status != NULL && !json_is_string(status)) {
        return import_read_wrong(reading, issue, "status", "a string", status);
    }
    if (type != NULL && !json_is_string(type)) {
        return import_read_wrong(reading,
                                 issue,
                                 "issue_type",
                                 "a string",
                                 type);
    }
    struct import_span said = import_read_text(status);
    struct import_span kind = import_read_text(type);
    issue->closed = import_is_one_of(said, closed, ARRAY_COUNT(closed)) ||
                    import_is_one_of(kind, records, ARRAY_COUNT(records));
    issue->deferred = import_is_one_of(said, deferred, ARRAY_COUNT(deferred)) ||
                      json_is_true(json_object_get(entry, "is_template"));
    if (import_is(kind, "gate")) {
        issue->kind = IMPORT_GATE;
    }
    return true;
}

static bool set_priority(struct import_reading *reading,
                         const json_t *entry,
                         struct import_issue *issue)
{
    const json_t *value = json_object_get(entry, "priority");
    json_int_t priority = value == NULL ? 0 : json_integer_value(value);
    if ((value != NULL && !json_is_integer(value)) || priority < 0 ||
        priority > IMPORT_PRIORITY_MAX) {
        import_fail_issue(reading->import,
                          issue,
                          "\"priority\" must be an integer from 0 to %d",
                          IMPORT_PRIORITY_MAX);
        return false;
    }
    issue->priority = (uint32_t)priority;
    return true;
}

/* Set a reference to the issue of that id; false if the id is invalid. An id of
 * another project ("external:PROJECT:CAPABILITY") is in no file. */
static bool set_reference(struct import *import,
                          struct import_span id,
                          struct import_reference *reference)
{
    reference->text = id;
    if (id.len > 9 && memcmp(id.text, "external:", 9) == 0) {
        reference->name = id;
        return true;
    }
    return import_read_id(import, id, &reference->number, &reference->key);
}

/* Add the tie of one dependency; false after an error. */
static bool add_dependency(const struct import_reading *reading,
                           struct import_issue *issue,
                           const json_t *dependency)
{
    static const char *const ids[] = {"depends_on_id", "id", NULL};
    static const char *const types[] = {"type",
                                        "dep_type",
                                        "dependency_type",
                                        NULL};
    static const char *const needs[] = {"",
                                        "blocks",
                                        "conditional-blocks",
                                        "waits-for"};
    struct import_span type = import_read_first(dependency, types);
    bool parent = import_is(type, "parent-child");
    if (json_is_object(dependency) && !parent &&
        !import_is_one_of(type, needs, ARRAY_COUNT(needs))) {
        return true;
    }
    struct import_reference reference = {0};
    if (!set_reference(reading->import,
                       import_read_first(dependency, ids),
                       &reference)) {
        return import_read_wrong(reading,
                                 issue,
                                 "dependencies",
                                 "a list of objects with \"depends_on_id\", "
                                 "the id of an issue",
                                 dependency);
    }
    import_add_tie(reading->import,
                   issue,
                   parent ? IMPORT_PARENT : IMPORT_NEEDS)
        ->reference = reference;
    return true;
}

static bool set_dependencies(struct import_reading *reading,
                             const json_t *entry,
                             struct import_issue *issue)
{
    const json_t *list = NULL;
    bool parent = false;
    if (!import_read_list(reading, issue, entry, "dependencies", &list)) {
        return false;
    }
    for (size_t ix = 0; ix < json_array_size(list); ix++) {
        if (!add_dependency(reading, issue, json_array_get(list, ix))) {
            return false;
        }
        parent = parent || (issue->last_tie != NULL &&
                            issue->last_tie->kind == IMPORT_PARENT);
    }
    const char *dot = issue->key == NULL ? NULL : strrchr(issue->key, '.');
    if (!parent && dot != NULL && dot > issue->key) {
        struct import_span id = {issue->key, (size_t)(dot - issue->key)};
        struct import_reference *reference =
            &import_add_tie(reading->import, issue, IMPORT_PARENT)->reference;
        (void)set_reference(reading->import, id, reference);
    }
    return true;
}

/* An issue of another tracker, if it is an address. */
static bool set_url(struct import_reading *reading,
                    const json_t *entry,
                    struct import_issue *issue)
{
    (void)reading;
    issue->url = import_read_text(json_object_get(entry, "external_ref"));
    return true;
}

static const struct import_section sections[] = {
    {"description", NULL},
    {"design", "Design"},
    {"acceptance_criteria", "Acceptance criteria"},
    {"notes", "Notes"},
    {NULL, NULL},
};

const struct import_format import_beads = {
    .origin = "bd writes",
    .entry = "an issue object",
    .remedy = "",
    .labels = "labels",
    .sections = sections,
    .body = "description",
    .sets = {set_id,
             import_read_title,
             import_read_body,
             import_read_labels,
             set_state,
             set_priority,
             import_read_home,
             set_dependencies,
             set_url},
};
