/* SPDX-License-Identifier: MIT */
/*
 * Parents and children, and needs that the other issue states.
 *
 * A child names its parent, or the parent names the child, or both; of several
 * parents the first counts. Children are kept in one array, grouped by parent.
 * A parent that has sub-issues is a container: its sub-issues are the work.
 *
 * Every walk upwards takes at most IMPORT_LEVELS_MAX steps; deeper nesting is
 * rejected here.
 */
#include "base/mem.h"
#include "import/import_internal.h"

/* Add the need of `other` for `issue`, which `issue` states. */
static void add_need(struct import *import,
                     const struct import_issue *issue,
                     struct import_issue *other)
{
    const struct import_repo *repo = &import->repos[issue->repo];
    import_add_tie(import, other, IMPORT_NEEDS)->reference =
        (struct import_reference){
            .text = import_span(issue->id),
            .owner = import_span(repo->owner),
            .name = import_span(repo->name),
            .number = issue->number,
            .key = issue->key,
        };
}

static void set_parent(struct import *import,
                       struct import_issue *child,
                       const struct import_issue *parent)
{
    if (child->parent == IMPORT_NONE && child != parent) {
        child->parent = (uint32_t)(parent - import->issues);
    }
}

static void follow_ties(struct import *import, struct import_issue *issue)
{
    for (const struct import_tie *tie = issue->ties; tie != NULL;
         tie = tie->next) {
        if (tie->kind == IMPORT_NEEDS) {
            continue;
        }
        bool known = false;
        bool many = false;
        struct import_issue *other =
            import_resolve(import, issue, &tie->reference, &known, &many);
        if (other == NULL) {
            continue;
        }
        if (tie->kind == IMPORT_PARENT) {
            set_parent(import, issue, other);
        } else if (tie->kind == IMPORT_CHILD) {
            set_parent(import, other, issue);
        } else if (!issue->closed && !other->closed) {
            add_need(import, issue, other);
        }
    }
}

/* Report a cycle of parents and break it. `seen` marks the issues of each walk
 * upwards; it starts as 0. */
static void check_walk(struct import *import, uint32_t *seen, uint32_t start)
{
    uint32_t ix = start;
    while (ix != IMPORT_NONE && seen[ix] == 0) {
        seen[ix] = start + 1;
        ix = import->issues[ix].parent;
    }
    if (ix != IMPORT_NONE && seen[ix] == start + 1) {
        import_fail_issue(
            import,
            &import->issues[ix],
            "sub-issue of itself: remove one parent of %s or of its parents",
            import->issues[ix].id);
        import->issues[ix].parent = IMPORT_NONE;
    }
}

/* Report issues that are nested too deep. Requires that no cycles exist and
 * that `levels` are 0. */
static void check_levels(struct import *import, uint32_t *levels)
{
    for (uint32_t start = 0; start < import->issue_count; start++) {
        uint32_t climbed = 0;
        uint32_t ix = start;
        while (ix != IMPORT_NONE && levels[ix] == 0 &&
               climbed <= IMPORT_LEVELS_MAX) {
            climbed++;
            ix = import->issues[ix].parent;
        }
        levels[start] = climbed + (ix == IMPORT_NONE ? 0 : levels[ix]);
        if (levels[start] > IMPORT_LEVELS_MAX) {
            import_fail_issue(import,
                              &import->issues[start],
                              "more than %d levels of parents",
                              IMPORT_LEVELS_MAX);
            return;
        }
    }
}

static void list_children(struct import *import)
{
    uint32_t total = 0;
    ARENA_ARRAY(&import->arena,
                import->children,
                (size_t)import->issue_count + 1);
    for (uint32_t ix = 0; ix < import->issue_count; ix++) {
        if (import->issues[ix].parent != IMPORT_NONE) {
            import->issues[import->issues[ix].parent].child_count++;
        }
    }
    for (uint32_t ix = 0; ix < import->issue_count; ix++) {
        struct import_issue *issue = &import->issues[ix];
        issue->child_first = total;
        total += issue->child_count;
        issue->child_count = 0;
    }
    for (uint32_t ix = 0; ix < import->issue_count; ix++) {
        if (import->issues[ix].parent != IMPORT_NONE) {
            struct import_issue *parent =
                &import->issues[import->issues[ix].parent];
            import->children[parent->child_first + parent->child_count++] = ix;
        }
    }
}

void import_link_family(struct import *import)
{
    uint32_t count = import->issue_count;
    uint32_t *marks = mem_zalloc(count, sizeof(marks[0]));
    for (uint32_t ix = 0; ix < count; ix++) {
        import->issues[ix].parent = IMPORT_NONE;
    }
    for (uint32_t ix = 0; ix < count; ix++) {
        follow_ties(import, &import->issues[ix]);
    }
    for (uint32_t ix = 0; ix < count; ix++) {
        check_walk(import, marks, ix);
    }
    mem_free(marks);
    marks = mem_zalloc(count, sizeof(marks[0]));
    check_levels(import, marks);
    mem_free(marks);
    list_children(import);
}

bool import_is_container(const struct import *import,
                         const struct import_issue *issue)
{
    return issue->child_count > 0 && !import->options.keep_parents;
}

bool import_is_below(const struct import *import, uint32_t ix, uint32_t top)
{
    while (ix != IMPORT_NONE && ix != top) {
        ix = import->issues[ix].parent;
    }
    return ix == top;
}
