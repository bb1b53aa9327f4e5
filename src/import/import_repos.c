/* SPDX-License-Identifier: MIT */
/*
 * Repositories of issues and of references.
 *
 * The result does not depend on the order of the files. Repositories with a
 * known owner come first; an issue that only knows the name of its repository
 * belongs to the repository of that name, if exactly one exists. Then issues
 * are sorted by repository and number, so that lookups can use bisection.
 */
#include "base/mem.h"
#include "base/strmap.h"
#include "import/import_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *left, const void *right)
{
    const struct import_issue *a = left;
    const struct import_issue *b = right;
    int order = import_compare(import_span(a->name), import_span(b->name));
    if (order == 0 && (a->owner == NULL) != (b->owner == NULL)) {
        order = a->owner == NULL ? 1 : -1;
    }
    if (order == 0 && a->owner != NULL) {
        order = import_compare(import_span(a->owner), import_span(b->owner));
    }
    return order != 0 ? order : a->seq < b->seq ? -1 : 1;
}

static bool is_same(const char *a, const char *b)
{
    return import_is(import_span(a), b);
}

/*
 * Return the repository of an issue. All issues that sort before it must have
 * theirs; the repositories of its name are then the last in the array.
 */
static uint32_t place_issue(struct import *import,
                            const struct import_issue *issue)
{
    const struct import_repo *last = &import->repos[import->repo_count];
    uint32_t count = 0; /* repositories of that name, at most two */
    while (count < 2 && import->repo_count > count &&
           is_same(last[-1 - (int)count].name, issue->name)) {
        count++;
    }
    last -= count > 0 ? 1 : 0;
    if (issue->owner == NULL && count > 1) {
        import_fail_issue(
            import,
            issue,
            "ambiguous repository, %s/%s or %s/%s: add \"url\" to the fields "
            "of the export, or use --repo OWNER/NAME",
            last[-1].owner,
            last[-1].name,
            last->owner,
            last->name);
        return import->repo_count - 1;
    }
    if (count > 0 &&
        (issue->owner == NULL ||
         (last->owner != NULL && is_same(last->owner, issue->owner)))) {
        return import->repo_count - 1;
    }
    import->repos[import->repo_count] = (struct import_repo){
        .owner = issue->owner,
        .name = issue->name,
    };
    return import->repo_count++;
}

/* Append a name in the form valid in ids: ".github" becomes "github". */
static void add_key(struct strbuf *out, const char *name)
{
    char before = '.';
    size_t begin = out->len;
    for (const char *at = name; *at != '\0'; at++) {
        bool joint = *at == '.' || *at == '_' || *at == '-';
        bool skipped =
            joint && (out->len == begin || (*at == '.' && before == '.'));
        if (!skipped) {
            strbuf_add(out, at, 1);
        }
        before = *at;
    }
}

/*
 * Set the names for the plan: the name alone if it is unique, otherwise with
 * the owner before it. A number makes remaining duplicates unique.
 */
static void set_keys(struct import *import)
{
    struct strmap seen = {0};
    struct strbuf key = {0};
    for (uint32_t ix = 0; ix < import->repo_count; ix++) {
        struct import_repo *repo = &import->repos[ix];
        bool shared =
            (ix > 0 && is_same(repo->name, repo[-1].name)) ||
            (ix + 1 < import->repo_count && is_same(repo->name, repo[1].name));
        strbuf_clear(&key);
        if (shared && repo->owner != NULL) {
            add_key(&key, repo->owner);
            strbuf_adds(&key, "/");
        }
        add_key(&key, repo->name);
        size_t len = key.len;
        for (uint32_t more = 2;
             strmap_find(&seen, key.text, key.len) != STRMAP_NONE;
             more++) {
            key.len = len;
            strbuf_addf(&key, "-%u", more);
        }
        repo->key = arena_strndup(&import->arena, key.text, key.len);
        (void)strmap_add(&seen, repo->key, ix);
    }
    strbuf_release(&key);
    strmap_release(&seen);
}

/* Compare two issues of one repository. */
static int
compare_ids(int64_t a, const char *a_key, int64_t b, const char *b_key)
{
    return a != b ? (a < b ? -1 : 1) : import_compare_keys(a_key, b_key);
}

static int by_number(const void *left, const void *right)
{
    const struct import_issue *a = left;
    const struct import_issue *b = right;
    if (a->repo != b->repo) {
        return a->repo < b->repo ? -1 : 1;
    }
    int order = compare_ids(a->number, a->key, b->number, b->key);
    return order != 0 ? order : a->seq < b->seq ? -1 : 1;
}

/* Set the ids of all issues: REPO#NUMBER, or REPO#KEY. */
static void set_ids(struct import *import)
{
    struct strbuf id = {0};
    for (uint32_t ix = 0; ix < import->issue_count; ix++) {
        struct import_issue *issue = &import->issues[ix];
        const struct import_issue *before = ix > 0 ? issue - 1 : NULL;
        strbuf_clear(&id);
        strbuf_addf(&id, "%s#", import->repos[issue->repo].key);
        if (issue->key != NULL) {
            strbuf_adds(&id, issue->key);
        } else {
            strbuf_addf(&id, "%" PRId64, issue->number);
        }
        issue->id = arena_strndup(&import->arena, id.text, id.len);
        if (before != NULL && strcmp(before->id, issue->id) == 0) {
            import_fail_issue(import,
                              issue,
                              "duplicate issue %s, first in %s",
                              issue->id,
                              before->file);
        }
    }
    strbuf_release(&id);
}

void import_find_repos(struct import *import)
{
    size_t bytes = sizeof(import->issues[0]);
    qsort(import->issues, import->issue_count, bytes, by_name);
    ARENA_ARRAY(&import->arena, import->repos, (size_t)import->issue_count + 1);
    for (uint32_t ix = 0; ix < import->issue_count; ix++) {
        import->issues[ix].repo = place_issue(import, &import->issues[ix]);
    }
    set_keys(import);
    qsort(import->issues, import->issue_count, bytes, by_number);
    set_ids(import);
}

/* --- references --------------------------------------------------------- */

/* Return the first repository not before this name and owner. */
static uint32_t first_repo(const struct import *import,
                           struct import_span name,
                           struct import_span owner)
{
    uint32_t low = 0;
    uint32_t high = import->repo_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct import_repo *repo = &import->repos[middle];
        int order = import_compare(import_span(repo->name), name);
        if (order == 0) {
            order = import_compare(import_span(repo->owner), owner);
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool
has_name(const struct import *import, uint32_t ix, struct import_span name)
{
    return ix < import->repo_count &&
           import_compare(import_span(import->repos[ix].name), name) == 0;
}

/*
 * Return the repository that a reference means: UINT32_MAX for none; set *many
 * if several match. Without an owner, the owner of the issue is preferred. A
 * repository whose owner is unknown is the only one of its name.
 */
static uint32_t find_repo(const struct import *import,
                          const struct import_reference *reference,
                          uint32_t own,
                          bool *many)
{
    struct import_span name = reference->name;
    struct import_span owner = reference->owner;
    if (owner.len == 0) {
        owner = import_span(import->repos[own].owner);
    }
    uint32_t at = first_repo(import, name, owner);
    if (has_name(import, at, name) && owner.len > 0 &&
        import_compare(import_span(import->repos[at].owner), owner) == 0) {
        return at;
    }
    at = first_repo(import, name, (struct import_span){0});
    if (!has_name(import, at, name)) {
        return UINT32_MAX;
    }
    if (import->repos[at].owner != NULL && reference->owner.len > 0) {
        return UINT32_MAX;
    }
    *many = has_name(import, at + 1, name);
    return at;
}

static struct import_issue *find_issue(const struct import *import,
                                       uint32_t repo,
                                       const struct import_reference *wanted)
{
    uint32_t low = 0;
    uint32_t high = import->issue_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct import_issue *issue = &import->issues[middle];
        if (issue->repo < repo ||
            (issue->repo == repo && compare_ids(issue->number,
                                                issue->key,
                                                wanted->number,
                                                wanted->key) < 0)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == import->issue_count || import->issues[low].repo != repo ||
        compare_ids(import->issues[low].number,
                    import->issues[low].key,
                    wanted->number,
                    wanted->key) != 0) {
        return NULL;
    }
    return &import->issues[low];
}

struct import_issue *import_resolve(const struct import *import,
                                    const struct import_issue *from,
                                    const struct import_reference *reference,
                                    bool *known,
                                    bool *many)
{
    uint32_t repo = from->repo;
    *many = false;
    if (reference->name.len > 0) {
        repo = find_repo(import, reference, from->repo, many);
    }
    *known = repo != UINT32_MAX;
    if (!*known || *many) {
        return NULL;
    }
    struct import_issue *found = find_issue(import, repo, reference);
    /* Ids of beads have a prefix of their own and need no repository. */
    for (uint32_t ix = 0; found == NULL && reference->key != NULL &&
                          reference->name.len == 0 && ix < import->repo_count;
         ix++) {
        found = find_issue(import, ix, reference);
    }
    return found;
}
