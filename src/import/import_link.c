/* SPDX-License-Identifier: MIT */
/*
 * Selection of the issues of the plan, and their needs.
 *
 * A queue holds the issues whose references are read: the chosen issues, which
 * are the groups of the plan, and parents whose sub-issues are the work. An
 * issue never needs such a container, but all of its open sub-issues. The needs
 * of a container become needs of its sub-issues. References between a container
 * and its own sub-issues imply no order and are skipped.
 *
 * With --add-needed the queue grows while it is read; each issue enters once.
 */
#include "base/mem.h"
#include "base/strmap.h"
#include "import/import_internal.h"
#include "plan/suggest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_SHOWN = 5 };

/* --- selection ---------------------------------------------------------- */

static bool has_label(const struct import_issue *issue, const char *name)
{
    for (size_t at = 0; at < json_array_size(issue->labels); at++) {
        if (import_is(import_label(issue->labels, at), name)) {
            return true;
        }
    }
    return false;
}

/* Whether the label options admit the issue. */
static bool is_admitted(const struct import *import,
                        const struct import_issue *issue)
{
    for (uint32_t ix = 0; ix < import->options.label_count; ix++) {
        if (!has_label(issue, import->options.labels[ix])) {
            return false;
        }
    }
    return !issue->barred;
}

static bool is_barred(const struct import *import,
                      const struct import_issue *issue)
{
    for (uint32_t ix = 0; ix < import->options.excluded_count; ix++) {
        if (has_label(issue, import->options.excluded[ix])) {
            return true;
        }
    }
    return false;
}

/* Report that no issue has the milestone, with the existing milestones. */
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
    import_fail(
        import,
        NULL,
        "no issue has the milestone \"%s\"%s; milestones in the files: %s%s",
        wanted,
        suggest_hint(&guess),
        names.len > 0 ? strbuf_text(&names) : "no milestones",
        seen.count > NAMES_SHOWN ? " and more" : "");
    strmap_release(&seen);
    strbuf_release(&names);
}

/* Count an issue of the milestone that has the labels; return whether it is a
 * group of the plan. */
static bool count_matched(struct import *import,
                          const struct import_issue *issue)
{
    struct import_counts *counts = &import->counts;
    if (issue->kind != IMPORT_ISSUE) {
        counts->pulls++;
    } else if (issue->closed) {
        counts->closed++;
    } else if (issue->deferred) {
        counts->deferred++;
    } else if (import_is_container(import, issue)) {
        counts->parents++;
    } else {
        return true;
    }
    return false;
}

static void choose(struct import *import)
{
    const struct import_counts *counts = &import->counts;
    const char *milestone = import->options.milestone;
    uint32_t of_milestone = 0;
    uint32_t open = 0;
    for (uint32_t ix = 0; ix < import->issue_count; ix++) {
        struct import_issue *issue = &import->issues[ix];
        bool of =
            milestone == NULL || import_is_exactly(issue->milestone, milestone);
        issue->barred = is_barred(import, issue);
        issue->matched = of && is_admitted(import, issue);
        of_milestone += of ? 1 : 0;
        import->counts.others += issue->matched ? 0 : 1;
        issue->chosen = issue->matched && count_matched(import, issue);
        issue->wanted = issue->matched && issue->kind == IMPORT_ISSUE &&
                        !issue->closed && !issue->deferred;
        open += issue->wanted ? 1 : 0;
    }
    if (milestone != NULL && of_milestone == 0) {
        fail_milestone(import);
    } else if (open == 0) {
        import_fail(import,
                    NULL,
                    "no open issue selected: %u closed, %u of other milestones "
                    "or labels, %u pull requests, %u deferred",
                    counts->closed,
                    counts->others,
                    counts->pulls,
                    counts->deferred);
    }
}

/* --- needs -------------------------------------------------------------- */

/* State of linking: the queue of issues, and the issue being read. */
struct linking {
    struct import *import;
    uint32_t *queue; /* grows while it is read */
    uint32_t queue_count;
    uint32_t ix;         /* the issue being read */
    struct strmap texts; /* references and ids seen in it */
    uint32_t *needs;
    uint32_t need_count;
    uint32_t need_capacity;
    uint32_t *stack; /* issues of a container to visit */
    uint32_t total;  /* needs found so far, with duplicates */
    bool bringing;   /* add sub-issues, without a need for them */
};

/* Queue an issue and its open ancestors. */
static void enqueue(struct linking *linking, uint32_t ix)
{
    struct import *import = linking->import;
    while (ix != IMPORT_NONE && !import->issues[ix].queued) {
        if (!import->issues[ix].closed) {
            import->issues[ix].queued = true;
            linking->queue[linking->queue_count++] = ix;
        }
        ix = import->issues[ix].parent;
    }
}

/* Drop a reference, with a note in the plan. */
static void drop(struct linking *linking, const char *text)
{
    struct import *import = linking->import;
    struct import_issue *issue = &import->issues[linking->ix];
    strbuf_addf(&issue->dropped,
                "%s%s",
                issue->dropped.len > 0 ? ", " : "",
                text);
    import->counts.dropped++;
}

/* Handle a reference to an issue in no file. */
static void on_unknown(struct linking *linking,
                       const struct import_reference *reference,
                       const char *text,
                       bool has_repo)
{
    struct import *import = linking->import;
    bool github = import->options.source == IMPORT_GITHUB;
    if (import->options.ignore_unknown ||
        (reference->pull && import->options.ignore_pulls)) {
        drop(linking, text);
        return;
    }
    const char *cause =
        !has_repo ? "no file has issues of that repository: add its export"
        : !github ? "the export has no such issue: remove the dependency"
        : reference->pull
            ? "no file has that pull request: add the output of gh pr list "
              "--state all --limit 10000 --json number,title,body,state,url"
            : "the export of that repository has no such issue: export with "
              "--state all --limit 10000, and if it is a pull request, add "
              "the output of gh pr list";
    import_fail_issue(import,
                      &import->issues[linking->ix],
                      "depends on %s, but %s; or use %s",
                      text,
                      cause,
                      reference->pull ? "--ignore-pulls" : "--ignore-unknown");
}

/* Append the description of an issue outside of the plan: "an issue of
 * milestone M which is open and not selected". */
static void add_standing(const struct import_issue *target, struct strbuf *out)
{
    if (target->kind != IMPORT_ISSUE) {
        strbuf_addf(out,
                    "a %s which is open",
                    target->kind == IMPORT_PULL ? "pull request" : "gate");
        return;
    }
    strbuf_adds(out, "an issue");
    if (target->milestone.len > 0) {
        strbuf_adds(out, " of milestone \"");
        import_add_line(out, target->milestone, 200);
        strbuf_adds(out, "\"");
    }
    strbuf_addf(out,
                " which is %s and not selected",
                target->deferred ? "deferred" : "open");
}

/* Handle a reference to an open issue outside of the plan; `via` is the
 * container that it belongs to, or NULL. */
static void on_outside(struct linking *linking,
                       const char *text,
                       struct import_issue *target,
                       const struct import_issue *via)
{
    struct import *import = linking->import;
    bool addable = target->kind == IMPORT_ISSUE && !target->barred;
    if (import->options.add_needed && addable) {
        target->chosen = true;
        import->counts.deferred -= target->matched ? 1 : 0;
        import->counts.others -= target->matched ? 0 : 1;
        enqueue(linking, (uint32_t)(target - import->issues));
        return;
    }
    bool pull = target->kind != IMPORT_ISSUE;
    if (import->options.ignore_outside ||
        (pull && import->options.ignore_pulls)) {
        drop(linking, via == NULL ? text : target->id);
        return;
    }
    struct strbuf what = {0};
    if (via != NULL) {
        strbuf_addf(&what, ", whose sub-issue is %s, ", target->id);
    } else if (strcmp(text, target->id) != 0) {
        strbuf_addf(&what, " (%s), ", target->id);
    } else {
        strbuf_adds(&what, ", ");
    }
    add_standing(target, &what);
    const char *remedy = target->kind == IMPORT_PULL   ? "merge or close it"
                         : target->kind == IMPORT_GATE ? "close it"
                                                       : "finish it";
    import_fail_issue(import,
                      &import->issues[linking->ix],
                      "depends on %s%s: %s first, %suse %s",
                      text,
                      strbuf_text(&what),
                      remedy,
                      addable ? "add it with --add-needed, or " : "or ",
                      pull ? "--ignore-pulls" : "--ignore-outside");
    strbuf_release(&what);
}

/* Whether more needs were found than a plan can have; report it once. */
static bool is_full(struct linking *linking)
{
    if (linking->total == IMPORT_NEEDS_MAX) {
        import_fail(linking->import,
                    NULL,
                    "more than %d needs",
                    IMPORT_NEEDS_MAX);
        linking->total++;
    }
    return linking->total > IMPORT_NEEDS_MAX;
}

static void add_need(struct linking *linking, uint32_t ix)
{
    if (is_full(linking)) {
        return;
    }
    linking->total++;
    MEM_GROW(linking->needs, linking->need_count, linking->need_capacity);
    linking->needs[linking->need_count++] = ix;
}

/* Add a need for an issue, or for all open descendants of a container. */
static void need_target(struct linking *linking,
                        const char *text,
                        struct import_issue *target)
{
    struct import *import = linking->import;
    uint32_t depth = 0;
    linking->stack[depth++] = (uint32_t)(target - import->issues);
    while (depth > 0 && !import->errors.cut && !is_full(linking)) {
        uint32_t ix = linking->stack[--depth];
        struct import_issue *issue = &import->issues[ix];
        bool shut =
            issue->deferred || issue->barred || issue->kind != IMPORT_ISSUE;
        if (issue->closed || ix == linking->ix || (linking->bringing && shut)) {
            continue;
        }
        if (import_is_container(import, issue)) {
            enqueue(linking, ix);
            for (uint32_t at = issue->child_count; at > 0; at--) {
                linking->stack[depth++] =
                    import->children[issue->child_first + at - 1];
            }
            continue;
        }
        if (!issue->chosen) {
            on_outside(linking, text, issue, issue == target ? NULL : target);
        }
        if (issue->chosen) {
            add_need(linking, ix);
        }
    }
}

/* Whether the reference links a container and its own parts. */
static bool is_structure(const struct linking *linking, uint32_t target)
{
    const struct import *import = linking->import;
    return (import_is_container(import, &import->issues[target]) &&
            import_is_below(import, linking->ix, target)) ||
           (import_is_container(import, &import->issues[linking->ix]) &&
            import_is_below(import, target, linking->ix));
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
        import_fail_issue(
            import,
            issue,
            "depends on a range of issues up to %s: name each issue",
            text);
        return;
    }
    if (strmap_add(&linking->texts, text, 0) != STRMAP_NONE) {
        return;
    }
    bool many = false;
    bool known = false;
    struct import_issue *target =
        import_resolve(import, issue, reference, &known, &many);
    if (many) {
        import_fail_issue(import,
                          issue,
                          "depends on %s, but several repositories have that "
                          "name: write OWNER/NAME#NUMBER",
                          text);
        return;
    }
    if (target == NULL) {
        on_unknown(linking, reference, text, known);
        return;
    }
    if (target == issue) {
        import_fail_issue(import, issue, "depends on itself (%s)", text);
        return;
    }
    bool again = strcmp(target->id, text) != 0 &&
                 strmap_add(&linking->texts, target->id, 0) != STRMAP_NONE;
    if (!again && !is_structure(linking, (uint32_t)(target - import->issues))) {
        need_target(linking, text, target);
    }
}

/* Follow the relations that fields of an issue state. Relations to closed
 * issues are satisfied, even if the issue is in no file; a sub-issue must be in
 * a file. */
static void follow_ties(struct linking *linking)
{
    struct import *import = linking->import;
    struct import_issue *issue = &import->issues[linking->ix];
    for (const struct import_tie *tie = issue->ties; tie != NULL;
         tie = tie->next) {
        bool known = false;
        bool many = false;
        bool lost =
            tie->kind == IMPORT_CHILD &&
            import_resolve(import, issue, &tie->reference, &known, &many) ==
                NULL;
        if (!tie->closed && (lost || tie->kind == IMPORT_NEEDS)) {
            on_reference(linking, &tie->reference);
        }
    }
    /* A parent needs its sub-issues, or adds them to the plan. */
    linking->bringing = !issue->chosen;
    bool takes = issue->chosen || (issue->wanted && import->options.add_needed);
    for (uint32_t ix = 0; takes && ix < issue->child_count; ix++) {
        struct import_issue *child =
            &import->issues[import->children[issue->child_first + ix]];
        need_target(linking, child->id, child);
    }
    linking->bringing = false;
}

static int by_value(const void *left, const void *right)
{
    const uint32_t *a = left;
    const uint32_t *b = right;
    return *a == *b ? 0 : *a < *b ? -1 : 1;
}

/* Sort needs and remove duplicates; return the new count. */
static uint32_t sort_needs(uint32_t *needs, uint32_t count)
{
    uint32_t kept = 0;
    if (count > 0) {
        qsort(needs, count, sizeof(needs[0]), by_value);
    }
    for (uint32_t ix = 0; ix < count; ix++) {
        if (ix == 0 || needs[ix] != needs[ix - 1]) {
            needs[kept++] = needs[ix];
        }
    }
    return kept;
}

/* Store the needs that were found in the issue. */
static void keep_needs(struct linking *linking)
{
    struct import *import = linking->import;
    struct import_issue *issue = &import->issues[linking->ix];
    uint32_t count = sort_needs(linking->needs, linking->need_count);
    issue->need_count = count;
    if (count > 0) {
        issue->needs =
            arena_alloc(&import->arena, count, sizeof(issue->needs[0]));
        memcpy(issue->needs, linking->needs, count * sizeof(issue->needs[0]));
    }
}

/* Whether an issue needs another issue below the same parent, which then waits
 * for all needs of the parent. */
static bool needs_below(const struct import *import, uint32_t ix, uint32_t top)
{
    const struct import_issue *issue = &import->issues[ix];
    for (uint32_t at = 0; at < issue->need_count; at++) {
        if (import_is_below(import, issue->needs[at], top)) {
            return true;
        }
    }
    return false;
}

/* Collect the needs of an issue and of its open ancestors. */
static void add_inherited(struct linking *linking, uint32_t ix)
{
    struct import *import = linking->import;
    linking->ix = ix;
    linking->need_count = 0;
    for (uint32_t up = ix; up != IMPORT_NONE; up = import->issues[up].parent) {
        const struct import_issue *from = &import->issues[up];
        if (from->closed || (up != ix && needs_below(import, ix, up))) {
            continue;
        }
        for (uint32_t at = 0; at < from->need_count; at++) {
            if (up == ix || !import_is_below(import, from->needs[at], up)) {
                add_need(linking, from->needs[at]);
            }
        }
    }
}

/* Copy the needs of parents to the issues that have no sub-issues. */
static void inherit_needs(struct linking *linking)
{
    struct import *import = linking->import;
    for (uint32_t at = 0; at < linking->queue_count; at++) {
        struct import_issue *issue = &import->issues[linking->queue[at]];
        if (issue->chosen && issue->parent != IMPORT_NONE &&
            issue->child_count == 0) {
            add_inherited(linking, linking->queue[at]);
            keep_needs(linking);
        }
    }
}

/* Report parents whose sub-issues are all left out: their work is lost. */
static void check_parents(struct import *import)
{
    for (uint32_t ix = 0; ix < import->issue_count; ix++) {
        const struct import_issue *issue = &import->issues[ix];
        uint32_t open = 0;
        bool taken = false;
        for (uint32_t at = 0; at < issue->child_count; at++) {
            const struct import_issue *child =
                &import->issues[import->children[issue->child_first + at]];
            bool work = child->kind == IMPORT_ISSUE && !child->closed &&
                        !child->deferred && !child->barred;
            open += work ? 1 : 0;
            taken = taken || child->chosen || (work && child->child_count > 0);
        }
        if (issue->wanted && import_is_container(import, issue) && open > 0 &&
            !taken && !import->options.ignore_outside) {
            import_fail_issue(import,
                              issue,
                              "selected without its sub-issues: add them with "
                              "--add-needed, or use --ignore-outside");
        }
    }
}

static void find_needs(struct import *import)
{
    struct linking linking = {
        .import = import,
        .queue = mem_zalloc(import->issue_count, sizeof(linking.queue[0])),
        .stack = mem_zalloc((size_t)import->issue_count + 1,
                            sizeof(linking.stack[0])),
    };
    for (uint32_t ix = 0; ix < import->issue_count; ix++) {
        if (import->issues[ix].chosen || import->issues[ix].wanted) {
            enqueue(&linking, ix);
        }
    }
    for (uint32_t at = 0; at < linking.queue_count; at++) {
        linking.ix = linking.queue[at];
        linking.need_count = 0;
        strmap_release(&linking.texts);
        if (import->options.source == IMPORT_GITHUB) {
            import_scan(import->issues[linking.ix].body,
                        on_reference,
                        &linking);
        }
        follow_ties(&linking);
        keep_needs(&linking);
    }
    inherit_needs(&linking);
    strmap_release(&linking.texts);
    mem_free(linking.needs);
    mem_free(linking.queue);
    mem_free(linking.stack);
}

/* Count the issues of the plan, their needs, and their repositories. */
static void count_chosen(struct import *import)
{
    uint32_t last = UINT32_MAX;
    for (uint32_t ix = 0; ix < import->issue_count; ix++) {
        const struct import_issue *issue = &import->issues[ix];
        import->counts.issues += issue->chosen ? 1 : 0;
        import->counts.needs += issue->chosen ? issue->need_count : 0;
        if (issue->chosen && issue->repo != last) {
            import->counts.repos++;
            last = issue->repo;
        }
    }
    if (import->counts.issues == 0 && import->errors.count == 0) {
        import_fail(import,
                    NULL,
                    "all open issues are parents without open sub-issues: use "
                    "--keep-parents");
    }
}

/* Report a path for an unknown repository as a typing error. */
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
                        "--path: no issue belongs to a repository \"%s\"%s",
                        name,
                        suggest_hint(&guess));
        }
    }
}

bool import_link(struct import *import)
{
    if (import->issue_count == 0) {
        import_fail(import, NULL, "no issues in the files");
        return false;
    }
    import_find_repos(import);
    if (import->errors.count == 0) {
        import_link_family(import);
    }
    if (import->errors.count == 0) {
        check_paths(import);
        choose(import);
    }
    if (import->errors.count == 0) {
        find_needs(import);
        check_parents(import);
        count_chosen(import);
    }
    return import->errors.count == 0;
}
