/* SPDX-License-Identifier: MIT */
/*
 * Reader for issues of GitHub, in the formats of `gh issue list`, `gh pr list`,
 * `gh search issues` and the REST API, which differ in the fields for
 * repository and state. Relations are lists, or objects with a list "nodes".
 */
#include "import/import_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FIELDS "number,title,body,labels,milestone,state,url"
#define REMEDY ": export with --json " FIELDS

/* --- the repository ----------------------------------------------------- */

/* Split the owner and name from an address: .../OWNER/NAME[/issues/N]. */
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

/* Read owner and name from a "repository" field; false if it has none. */
static bool read_repository(const json_t *value,
                            struct import_span *owner,
                            struct import_span *name)
{
    static const char *const full[] = {"nameWithOwner", "full_name", NULL};
    if (json_is_string(value)) {
        struct import_span text = import_read_text(value);
        return import_split(text, owner, name) ||
               split_address(text, owner, name);
    }
    if (!json_is_object(value)) {
        return false;
    }
    struct import_span text = import_read_first(value, full);
    if (text.len > 0) {
        return import_split(text, owner, name);
    }
    const json_t *part = json_object_get(value, "name");
    const json_t *login = json_object_get(value, "owner");
    login = json_is_object(login) ? json_object_get(login, "login") : login;
    *name = import_read_text(part);
    *owner = import_read_text(login);
    return import_is_name(*name) && (owner->len == 0 || import_is_name(*owner));
}

static const char *const addresses[] = {
    "url",
    "html_url",
    "repository_url",
    NULL,
};

/* Set the repository of the issue; false after an error. */
static bool set_repository(struct import_reading *reading,
                           const json_t *entry,
                           struct import_issue *issue)
{
    struct import_span owner = {0};
    struct import_span name = {0};
    const json_t *said = json_object_get(entry, "repository");
    bool known = false;
    if (said != NULL && !json_is_null(said)) {
        known = read_repository(said, &owner, &name);
        if (!known) {
            import_fail_issue(reading->import,
                              issue,
                              "\"repository\" must be \"OWNER/NAME\", or an "
                              "object with \"nameWithOwner\"");
            return false;
        }
    }
    known = known ||
            split_address(import_read_first(entry, addresses), &owner, &name);
    if (!known && reading->name.len > 0) {
        owner = reading->owner;
        name = reading->name;
        known = true;
    }
    if (!known) {
        import_fail_issue(
            reading->import,
            issue,
            "unknown repository: add \"url\" to the fields of the export, name "
            "the file after the repository, or use --repo OWNER/NAME");
        return false;
    }
    if (owner.len > 0) {
        issue->owner = import_keep(reading->import, owner).text;
    }
    issue->name = import_keep(reading->import, name).text;
    return true;
}

/* --- the fields --------------------------------------------------------- */

static bool set_body(struct import_reading *reading,
                     const json_t *entry,
                     struct import_issue *issue)
{
    struct import_span body;
    if (json_object_get(entry, "body") == NULL) {
        return import_read_lacks(reading, issue, "body", &reading->said_body);
    }
    return import_read_string(reading, issue, entry, "body", &body) &&
           import_read_whole(reading, body, issue);
}

static bool set_milestone(struct import_reading *reading,
                          const json_t *entry,
                          struct import_issue *issue)
{
    const json_t *value = json_object_get(entry, "milestone");
    if (value == NULL && reading->import->options.milestone != NULL &&
        issue->kind == IMPORT_ISSUE) {
        return import_read_lacks(reading,
                                 issue,
                                 "milestone",
                                 &reading->said_milestone);
    }
    if (value == NULL || json_is_null(value)) {
        return true;
    }
    const json_t *title =
        json_is_object(value) ? json_object_get(value, "title") : value;
    if (!json_is_string(title)) {
        return import_read_wrong(reading,
                                 issue,
                                 "milestone",
                                 "null, a string, or an object with \"title\"",
                                 value);
    }
    issue->milestone = import_read_text(title);
    return true;
}

/* Whether an address is of a pull request. */
static bool is_pull_address(struct import_span address)
{
    return address.len > 0 &&
           memmem(address.text, address.len, "/pull/", 6) != NULL;
}

static bool set_state(struct import_reading *reading,
                      const json_t *entry,
                      struct import_issue *issue)
{
    const json_t *state = json_object_get(entry, "state");
    const json_t *pull = json_object_get(entry, "isPullRequest");
    const json_t *link = json_object_get(entry, "pull_request");
    issue->closed = json_is_true(json_object_get(entry, "closed"));
    if (json_is_true(pull) || json_is_object(link) ||
        is_pull_address(import_read_first(entry, addresses))) {
        issue->kind = IMPORT_PULL;
    }
    if (state == NULL || json_is_null(state)) {
        return true;
    }
    struct import_span text = import_read_text(state);
    bool merged = import_is(text, "merged");
    if (merged || import_is(text, "closed")) {
        issue->closed = true;
    } else if (!import_is(text, "open")) {
        import_fail_issue(reading->import,
                          issue,
                          "\"state\" must be \"OPEN\" or \"CLOSED\"");
        return false;
    }
    return true;
}

/* --- relations ---------------------------------------------------------- */

/* Return a valid issue number; 0 if the value is not one. */
static int64_t number_of(const json_t *value)
{
    int64_t number = json_is_integer(value) ? json_integer_value(value) : 0;
    return number > IMPORT_NUMBER_MAX ? 0 : number;
}

/* Append OWNER/NAME#NUMBER, or #NUMBER in the same repository. */
static void set_text(struct import *import,
                     const struct import_issue *issue,
                     struct import_reference *reference)
{
    struct strbuf text = {0};
    bool same = import_is(reference->name, issue->name) &&
                import_is(reference->owner, issue->owner);
    if (reference->name.len > 0 && !same) {
        strbuf_add(&text, reference->owner.text, reference->owner.len);
        strbuf_adds(&text, reference->owner.len > 0 ? "/" : "");
        strbuf_add(&text, reference->name.text, reference->name.len);
    }
    strbuf_addf(&text, "#%" PRId64, reference->number);
    reference->text = import_take(import, &text);
}

/* Add a tie for a relation; false after an error. */
static bool add_relation(const struct import_reading *reading,
                         struct import_issue *issue,
                         const char *field,
                         enum import_tie_kind kind,
                         const json_t *node)
{
    int64_t number = number_of(json_object_get(node, "number"));
    if (number < 1) {
        import_fail_issue(reading->import,
                          issue,
                          "\"%s\" must name issues, each by its \"number\"",
                          field);
        return false;
    }
    struct import_tie *tie = import_add_tie(reading->import, issue, kind);
    struct import_reference *reference = &tie->reference;
    struct import_span address = import_read_first(node, addresses);
    struct import_span state = import_read_text(json_object_get(node, "state"));
    const json_t *repository = json_object_get(node, "repository");
    reference->number = number;
    reference->pull = is_pull_address(address);
    tie->closed = import_is(state, "closed") || import_is(state, "merged");
    if (!read_repository(repository, &reference->owner, &reference->name) &&
        !split_address(address, &reference->owner, &reference->name)) {
        reference->owner = (struct import_span){0};
        reference->name = (struct import_span){0};
    }
    set_text(reading->import, issue, reference);
    return true;
}

/* Read a list of issues; false after an error. */
static bool add_relations(const struct import_reading *reading,
                          struct import_issue *issue,
                          const json_t *entry,
                          const char *field,
                          enum import_tie_kind kind)
{
    const json_t *value = json_object_get(entry, field);
    const json_t *list =
        json_is_object(value) ? json_object_get(value, "nodes") : value;
    const json_t *total = json_object_get(value, "totalCount");
    if (value == NULL || json_is_null(value)) {
        return true;
    }
    if (!json_is_array(list)) {
        return import_read_wrong(reading,
                                 issue,
                                 field,
                                 "a list of issues",
                                 value);
    }
    for (size_t ix = 0; ix < json_array_size(list); ix++) {
        if (!add_relation(reading,
                          issue,
                          field,
                          kind,
                          json_array_get(list, ix))) {
            return false;
        }
    }
    if (kind == IMPORT_NEEDS && json_is_integer(total) &&
        json_integer_value(total) > (json_int_t)json_array_size(list) &&
        !reading->import->options.ignore_unknown) {
        import_fail_issue(reading->import,
                          issue,
                          "\"%s\" has %zu of %lld issues: name the others in "
                          "the body (Depends on #N), or use --ignore-unknown",
                          field,
                          json_array_size(list),
                          (long long)json_integer_value(total));
        return false;
    }
    return true;
}

/* Add the parent that the REST API names by its address. */
static void add_parent_address(struct import *import,
                               struct import_issue *issue,
                               struct import_span address)
{
    struct import_span owner;
    struct import_span name;
    const char *slash =
        address.len == 0 ? NULL : memrchr(address.text, '/', address.len);
    if (slash == NULL || !split_address(address, &owner, &name)) {
        return;
    }
    size_t len = (size_t)(address.text + address.len - slash - 1);
    int64_t number = 0;
    const char *key = NULL;
    if (!import_read_id(import,
                        (struct import_span){slash + 1, len},
                        &number,
                        &key) ||
        number == 0) {
        return;
    }
    struct import_tie *tie = import_add_tie(import, issue, IMPORT_PARENT);
    tie->reference.owner = owner;
    tie->reference.name = name;
    tie->reference.number = number;
    set_text(import, issue, &tie->reference);
}

static bool set_relations(struct import_reading *reading,
                          const json_t *entry,
                          struct import_issue *issue)
{
    static const char *const parent_addresses[] = {"parent_issue_url", NULL};
    const json_t *parent = json_object_get(entry, "parent");
    add_parent_address(reading->import,
                       issue,
                       import_read_first(entry, parent_addresses));
    if (parent != NULL && !json_is_null(parent) &&
        !add_relation(reading, issue, "parent", IMPORT_PARENT, parent)) {
        return false;
    }
    return add_relations(reading, issue, entry, "blockedBy", IMPORT_NEEDS) &&
           add_relations(reading, issue, entry, "blocking", IMPORT_BLOCKS) &&
           add_relations(reading, issue, entry, "subIssues", IMPORT_CHILD);
}

/* --- entries ------------------------------------------------------------ */

static bool set_number(struct import_reading *reading,
                       const json_t *entry,
                       struct import_issue *issue)
{
    const json_t *number = json_object_get(entry, "number");
    issue->number = number_of(number);
    if (number == NULL) {
        import_fail(reading->import,
                    reading->file,
                    "entry %u: missing \"number\"" REMEDY,
                    reading->entry);
    } else if (issue->number < 1) {
        import_fail(
            reading->import,
            reading->file,
            "entry %u: \"number\" must be an integer from 1 to %" PRId64,
            reading->entry,
            IMPORT_NUMBER_MAX);
    }
    issue->closes = issue->number >= 1;
    return issue->closes;
}

static bool set_priority(struct import_reading *reading,
                         const json_t *entry,
                         struct import_issue *issue)
{
    (void)reading;
    (void)entry;
    for (size_t ix = 0; ix < json_array_size(issue->labels); ix++) {
        uint32_t priority =
            import_label_priority(import_label(issue->labels, ix));
        if (priority < issue->priority) {
            issue->priority = priority;
        }
    }
    return true;
}

/* The address for people: the REST API has its own in "url". */
static bool set_url(struct import_reading *reading,
                    const json_t *entry,
                    struct import_issue *issue)
{
    static const char *const fields[] = {"html_url", "url", NULL};
    (void)reading;
    issue->url = import_read_first(entry, fields);
    return true;
}

const struct import_format import_github = {
    .origin = "gh prints",
    .entry = "an issue object",
    .remedy = REMEDY,
    .labels = "labels",
    .body = "body",
    .sets = {set_number,
             import_read_title,
             set_body,
             set_state,
             set_milestone,
             import_read_labels,
             set_repository,
             set_relations,
             set_priority,
             set_url},
};
