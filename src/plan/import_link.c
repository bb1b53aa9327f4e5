/* SPDX-License-Identifier: MIT */
/*
 * Which repository an issue is of, which issues make the wave, and what each
 * of them needs.
 *
 * Nothing depends on the order of the files. Repositories whose owner is known
 * come first; an issue that only knows the name of its repository belongs to
 * the one of that name, if there is one and no second. Then issues are sorted
 * by repository and number, and found by bisection from there on.
 */
#include "base/mem.h"
#include "base/strmap.h"
#include "plan/import_internal.h"
#include "plan/suggest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_SHOWN = 5 };

/* --- repositories ------------------------------------------------------- */

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
    return import_compare(import_span(a), import_span(b)) == 0;
}

/*
 * The repository of an issue, given that all issues that sort before it have
 * theirs. The repos of its name are the last ones.
 */
static uint32_t place_issue(struct import *import,
                            const struct import_issue *issue)
{
    const struct import_repo *last = &import->repos[import->repo_count];
    uint32_t count = 0; /* of that name, up to two */
    while (count < 2 && import->repo_count > count &&
           is_same(last[-1 - (int)count].name, issue->name)) {
        count++;
    }
    last -= count > 0 ? 1 : 0;
    if (issue->owner == NULL && count > 1) {
        import_fail(import,
                    issue->file,
                    issue->number,
                    "is its repository %s/%s or %s/%s? Add \"url\" to the "
                    "fields of the export, or use --repo OWNER/NAME",
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

/* Append a name as an id may have it: ".github" is "github". */
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
 * Names for the plan: the name alone when it is the only one of it, otherwise
 * with the owner in front. A number is added to what is still not unique.
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

static int by_number(const void *left, const void *right)
{
    const struct import_issue *a = left;
    const struct import_issue *b = right;
    if (a->repo != b->repo) {
        return a->repo < b->repo ? -1 : 1;
    }
    if (a->number != b->number) {
        return a->number < b->number ? -1 : 1;
    }
    return a->seq < b->seq ? -1 : 1;
}

static void sort_issues(struct import *import)
{
    size_t bytes = sizeof(import->issues[0]);
    qsort(import->issues, import->issue_count, bytes, by_name);
    import->repos = arena_alloc(&import->arena,
                                (size_t)import->issue_count + 1,
                                sizeof(import->repos[0]));
    for (uint32_t ix = 0; ix < import->issue_count; ix++) {
        import->issues[ix].repo = place_issue(import, &import->issues[ix]);
    }
    set_keys(import);
    qsort(import->issues, import->issue_count, bytes, by_number);
    struct strbuf id = {0};
    for (uint32_t ix = 0; ix < import->issue_count; ix++) {
        struct import_issue *issue = &import->issues[ix];
        const struct import_issue *before = ix > 0 ? issue - 1 : NULL;
        strbuf_clear(&id);
        strbuf_addf(&id,
                    "%s#%" PRId64,
                    import->repos[issue->repo].key,
                    issue->number);
        issue->id = arena_strndup(&import->arena, id.text, id.len);
        if (before != NULL && before->repo == issue->repo &&
            before->number == issue->number) {
            import_fail(import,
                        issue->file,
                        issue->number,
                        "%s was there before, in %s",
                        issue->id,
                        before->file);
        }
    }
    strbuf_release(&id);
}

/* --- the wave ----------------------------------------------------------- */

static bool is_equal(struct import_span a, const char *b)
{
    return a.len == strlen(b) && memcmp(a.text, b, a.len) == 0;
}

static bool has_labels(const struct import *import,
                       const struct import_issue *issue)
{
    for (uint32_t ix = 0; ix < import->options.label_count; ix++) {
        bool has = false;
        for (size_t at = 0; at < json_array_size(issue->labels); at++) {
            struct import_span label = import_label(issue->labels, at);
            has = has ||
                  import_compare(label,
                                 import_span(import->options.labels[ix])) == 0;
        }
        if (!has) {
            return false;
        }
    }
    return true;
}

/* No issue is of the milestone: which ones are there? */
static void fail_milestone(struct import *import)
{
    const char *wanted = import->options.milestone;
    uint32_t budget = SUGGEST_BUDGET;
    struct suggest guess;
    struct strbuf names = {0};
    struct strmap seen = {0};
    suggest_init(&guess, wanted, strlen(wanted), &budget);
    for (uint32_t ix = 0; ix < import->issue_count; ix++) {
        struct import_span span = import->issues[ix].milestone;
        const char *name = arena_strndup(&import->arena, span.text, span.len);
        if (*name == '\0' || strmap_add(&seen, name, ix) != STRMAP_NONE) {
            continue;
        }
        (void)suggest_offer(&guess, name);
        if (seen.count <= NAMES_SHOWN) {
            strbuf_addf(&names, "%s\"%s\"", names.len > 0 ? ", " : "", name);
        }
    }
    import_fail(import,
                NULL,
                0,
                "no issue is of the milestone \"%s\"%s; the files have %s%s",
                wanted,
                suggest_hint(&guess),
                names.len > 0 ? strbuf_text(&names) : "no milestones",
                seen.count > NAMES_SHOWN ? " and more" : "");
    strmap_release(&seen);
    strbuf_release(&names);
}

static void choose(struct import *import)
{
    const char *milestone = import->options.milestone;
    uint32_t of_milestone = 0;
    uint32_t chosen = 0;
    for (uint32_t ix = 0; ix < import->issue_count; ix++) {
        struct import_issue *issue = &import->issues[ix];
        bool of = milestone == NULL || is_equal(issue->milestone, milestone);
        bool wanted = of && has_labels(import, issue);
        of_milestone += of ? 1 : 0;
        issue->chosen = wanted && !issue->closed && !issue->pull;
        chosen += issue->chosen ? 1 : 0;
        import->counts.others += wanted ? 0 : 1;
        import->counts.pulls += wanted && issue->pull ? 1 : 0;
        import->counts.closed +=
            wanted && issue->closed && !issue->pull ? 1 : 0;
    }
    if (milestone != NULL && of_milestone == 0) {
        fail_milestone(import);
    } else if (chosen == 0) {
        import_fail(import,
                    NULL,
                    0,
                    "there is no open issue to make a plan of: %u closed, %u "
                    "of other milestones or labels, %u pull requests",
                    import->counts.closed,
                    import->counts.others,
                    import->counts.pulls);
    }
}

/* --- needs -------------------------------------------------------------- */

/* The issues whose bodies are read, and the one that is being read. */
struct linking {
    struct import *import;
    uint32_t *queue; /* chosen issues; grows while they are read */
    uint32_t queue_count;
    uint32_t ix;         /* the issue */
    struct strmap texts; /* references seen in it, as written */
    uint32_t *needs;
    uint32_t need_count;
    uint32_t need_capacity;
};

/* The first repository that is not before this name and owner. */
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
 * The repository that a reference means: UINT32_MAX for none, *many when there
 * are several. Without an owner, that of the issue's own is preferred. A
 * repository whose owner is not known is the only one of its name.
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

static struct import_issue *
find_issue(const struct import *import, uint32_t repo, int64_t number)
{
    uint32_t low = 0;
    uint32_t high = import->issue_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct import_issue *issue = &import->issues[middle];
        if (issue->repo < repo ||
            (issue->repo == repo && issue->number < number)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == import->issue_count || import->issues[low].repo != repo ||
        import->issues[low].number != number) {
        return NULL;
    }
    return &import->issues[low];
}

/* A reference to what is in no file. */
static void on_unknown(struct linking *linking, const char *text, bool has_repo)
{
    struct import *import = linking->import;
    struct import_issue *issue = &import->issues[linking->ix];
    if (import->options.ignore_unknown) {
        strbuf_addf(&issue->dropped,
                    "%s%s",
                    issue->dropped.len > 0 ? ", " : "",
                    text);
        import->counts.dropped++;
        return;
    }
    import_fail(import,
                issue->file,
                issue->number,
                "it depends on %s, and %s; or use --ignore-unknown",
                text,
                has_repo ? "the export of that repository has no such issue: "
                           "export with --state all --limit 10000"
                         : "no file has issues of that repository: add its "
                           "export");
}

/* A reference to an open issue that is not of the wave. */
static void on_outside(struct linking *linking,
                       const char *text,
                       struct import_issue *target)
{
    struct import *import = linking->import;
    struct import_issue *issue = &import->issues[linking->ix];
    if (import->options.add_needed && !target->pull) {
        target->chosen = true;
        linking->queue[linking->queue_count++] =
            (uint32_t)(target - import->issues);
        return;
    }
    if (import->options.ignore_outside) {
        strbuf_addf(&issue->dropped,
                    "%s%s",
                    issue->dropped.len > 0 ? ", " : "",
                    text);
        import->counts.dropped++;
        return;
    }
    struct strbuf milestone = {0};
    if (target->milestone.len > 0) {
        strbuf_adds(&milestone, " of milestone \"");
        import_add_line(&milestone, target->milestone, 200);
        strbuf_adds(&milestone, "\"");
    }
    import_fail(import,
                issue->file,
                issue->number,
                "it depends on %s (%s), %s%s which is open and not chosen: "
                "finish it first, %suse --ignore-outside",
                text,
                target->id,
                target->pull ? "a pull request" : "an issue",
                strbuf_text(&milestone),
                target->pull ? "or " : "take it in with --add-needed, or ");
    strbuf_release(&milestone);
}

static void add_need(struct linking *linking, uint32_t ix)
{
    if (linking->need_count == linking->need_capacity) {
        uint32_t old = linking->need_capacity;
        linking->need_capacity = old == 0 ? 16 : old * 2;
        linking->needs = mem_resize(linking->needs,
                                    linking->need_capacity,
                                    sizeof(linking->needs[0]));
    }
    linking->needs[linking->need_count++] = ix;
}

static void on_reference(void *ctx, const struct import_reference *reference)
{
    struct linking *linking = ctx;
    struct import *import = linking->import;
    const struct import_issue *issue = &import->issues[linking->ix];
    const char *text = arena_strndup(&import->arena,
                                     reference->text.text,
                                     reference->text.len);
    if (reference->range) {
        import_fail(import,
                    issue->file,
                    issue->number,
                    "it depends on a range of issues up to %s: name each one",
                    text);
        return;
    }
    if (strmap_add(&linking->texts, text, 0) != STRMAP_NONE) {
        return;
    }
    bool many = false;
    uint32_t repo = issue->repo;
    if (reference->name.len > 0) {
        repo = find_repo(import, reference, issue->repo, &many);
    }
    if (many) {
        import_fail(import,
                    issue->file,
                    issue->number,
                    "it depends on %s, and there are several repositories of "
                    "that name: write OWNER/NAME#NUMBER",
                    text);
        return;
    }
    struct import_issue *target =
        repo == UINT32_MAX ? NULL : find_issue(import, repo, reference->number);
    if (target == NULL) {
        on_unknown(linking, text, repo != UINT32_MAX);
        return;
    }
    if (target == issue) {
        import_fail(import,
                    issue->file,
                    issue->number,
                    "it depends on itself (%s)",
                    text);
        return;
    }
    if (target->closed) {
        return;
    }
    if (!target->chosen) {
        on_outside(linking, text, target);
    }
    if (target->chosen) {
        add_need(linking, (uint32_t)(target - import->issues));
    }
}

static int by_value(const void *left, const void *right)
{
    const uint32_t *a = left;
    const uint32_t *b = right;
    return *a == *b ? 0 : *a < *b ? -1 : 1;
}

/* Sort what was found, without duplicates, into the issue. */
static void keep_needs(struct linking *linking)
{
    struct import *import = linking->import;
    struct import_issue *issue = &import->issues[linking->ix];
    if (linking->need_count == 0) {
        return;
    }
    qsort(linking->needs,
          linking->need_count,
          sizeof(linking->needs[0]),
          by_value);
    issue->needs = arena_alloc(&import->arena,
                               linking->need_count,
                               sizeof(issue->needs[0]));
    for (uint32_t ix = 0; ix < linking->need_count; ix++) {
        if (ix == 0 || linking->needs[ix] != linking->needs[ix - 1]) {
            issue->needs[issue->need_count++] = linking->needs[ix];
        }
    }
    import->counts.needs += issue->need_count;
}

static void find_needs(struct import *import)
{
    struct linking linking = {
        .import = import,
        .queue = mem_zalloc(import->issue_count, sizeof(linking.queue[0])),
    };
    for (uint32_t ix = 0; ix < import->issue_count; ix++) {
        if (import->issues[ix].chosen) {
            linking.queue[linking.queue_count++] = ix;
        }
    }
    uint32_t given = linking.queue_count;
    for (uint32_t at = 0; at < linking.queue_count; at++) {
        linking.ix = linking.queue[at];
        linking.need_count = 0;
        strmap_release(&linking.texts);
        import_scan(import->issues[linking.ix].body, on_reference, &linking);
        keep_needs(&linking);
    }
    import->counts.issues = linking.queue_count;
    import->counts.others -= linking.queue_count - given;
    strmap_release(&linking.texts);
    mem_free(linking.needs);
    mem_free(linking.queue);
}

static uint32_t count_repos(const struct import *import)
{
    uint32_t count = 0;
    uint32_t last = UINT32_MAX;
    for (uint32_t ix = 0; ix < import->issue_count; ix++) {
        const struct import_issue *issue = &import->issues[ix];
        if (issue->chosen && issue->repo != last) {
            count++;
            last = issue->repo;
        }
    }
    return count;
}

/* A path for a repository that is not there is a slip. */
static void check_paths(struct import *import)
{
    for (uint32_t ix = 0; ix < import->options.path_count; ix++) {
        const char *name = import->options.paths[ix].name;
        uint32_t budget = SUGGEST_BUDGET;
        struct suggest guess;
        bool found = false;
        suggest_init(&guess, name, strlen(name), &budget);
        for (uint32_t at = 0; at < import->repo_count; at++) {
            found = found || strcmp(import->repos[at].key, name) == 0;
            (void)suggest_offer(&guess, import->repos[at].key);
        }
        if (!found) {
            import_fail(import,
                        NULL,
                        0,
                        "--path: no issue is of a repository \"%s\"%s",
                        name,
                        suggest_hint(&guess));
        }
    }
}

bool import_link(struct import *import)
{
    if (import->issue_count == 0) {
        import_fail(import, NULL, 0, "there are no issues in the files");
        return false;
    }
    sort_issues(import);
    if (import->errors.count == 0) {
        check_paths(import);
        choose(import);
    }
    if (import->errors.count == 0) {
        find_needs(import);
        import->counts.repos = count_repos(import);
    }
    return import->errors.count == 0;
}
