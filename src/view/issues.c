/* SPDX-License-Identifier: MIT */
/*
 * The issue list in three steps: an issue for each group with tasks or parts
 * and each single task, in plan order; then parts and totals of parents, from
 * the leaves up; then the order of the list, parts below their parent.
 */
#include "view/issues.h"

#include "base/invariant.h"
#include "base/mem.h"
#include "view/labels.h"

#include <string.h>

/* The list being made. Arrays are indexed by issue, in plan order. */
struct making {
    const struct glance *glance;
    const struct plan *plan;
    uint32_t run;
    struct model_issue *issues;
    uint32_t count;
    uint32_t *parents; /* PLAN_NONE: none */
    uint32_t *groups;  /* issue of each group of the plan, or PLAN_NONE */
    uint32_t *tasks;   /* issue of each task, or PLAN_NONE */
};

static uint32_t *make_list(uint32_t count)
{
    uint32_t *list = mem_zalloc(count, sizeof(*list));
    memset(list, 0xff, count * sizeof(*list));
    return list;
}

/* --- issues ------------------------------------------------------------- */

/* Add an issue; `group`: the group, or PLAN_NONE. */
static uint32_t add_issue(struct making *making, const char *id, uint32_t group)
{
    making->issues[making->count] = (struct model_issue){
        .id = id,
        .group = group != PLAN_NONE,
        .index = group,
        .part = MODEL_ENDED,
        .whole = MODEL_ENDED,
    };
    return making->count++;
}

/* Return the issue of a group; add it and the parents that have none. */
static uint32_t issue_of_group(struct making *making, uint32_t group)
{
    const struct plan *plan = making->plan;
    uint32_t below = PLAN_NONE;
    uint32_t found = PLAN_NONE;
    for (uint32_t at = group; at != PLAN_NONE; at = plan->groups[at].parent) {
        bool known = making->groups[at] != PLAN_NONE;
        if (!known) {
            making->groups[at] = add_issue(making, plan->groups[at].id, at);
        }
        if (below != PLAN_NONE) {
            making->parents[below] = making->groups[at];
            making->issues[making->groups[at]].has_parts = true;
        }
        below = making->groups[at];
        found = found != PLAN_NONE ? found : below;
        if (known) {
            break;
        }
    }
    return found;
}

/* Add the issues of all selected tasks, and count their tasks. */
static void add_issues(struct making *making)
{
    const struct plan *plan = making->plan;
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        const struct plan_task *task = &plan->tasks[ix];
        enum model_part part = model_part_of(making->glance, making->run, ix);
        if (!labels_match(&making->glance->labels, task) ||
            (task->group == PLAN_NONE && part == MODEL_FLIGHT)) {
            continue;
        }
        making->tasks[ix] = task->group != PLAN_NONE
                                ? issue_of_group(making, task->group)
                                : add_issue(making, task->id, PLAN_NONE);
        struct model_issue *issue = &making->issues[making->tasks[ix]];
        issue->count++;
        issue->total++;
        enum task_state state =
            snapshot_state(making->glance->snapshot, making->run, ix);
        issue->done += state == TASK_DONE ? 1 : 0;
    }
}

/* Add tasks to their issues. The current stage is the first task of the issue's
 * first part; of a finished issue, the last task. */
static void add_stages(struct making *making, uint32_t *stages)
{
    uint32_t places = 0;
    for (uint32_t ix = 0; ix < making->count; ix++) {
        making->issues[ix].first = places;
        places += making->issues[ix].count;
        making->issues[ix].count = 0;
    }
    for (uint32_t ix = 0; ix < making->plan->task_count; ix++) {
        if (making->tasks[ix] == PLAN_NONE) {
            continue;
        }
        struct model_issue *issue = &making->issues[making->tasks[ix]];
        enum model_part part = model_part_of(making->glance, making->run, ix);
        if (part < issue->part || issue->part == MODEL_ENDED) {
            issue->part = part;
            issue->current = issue->count;
        }
        issue->whole = issue->part;
        stages[issue->first + issue->count++] = ix;
    }
}

/* --- the tree ----------------------------------------------------------- */

/* Add the totals of parts to their parents, which have lower indices. */
static void sum_parts(struct making *making)
{
    for (uint32_t ix = making->plan->group_count; ix-- > 0;) {
        uint32_t at = making->groups[ix];
        uint32_t up = at != PLAN_NONE ? making->parents[at] : PLAN_NONE;
        if (up == PLAN_NONE) {
            continue;
        }
        const struct model_issue *part = &making->issues[at];
        struct model_issue *issue = &making->issues[up];
        INVARIANT(issue->index < ix);
        issue->done += part->done;
        issue->total += part->total;
        issue->whole = part->whole < issue->whole ? part->whole : issue->whole;
    }
}

/* Copy the issues to `out`, by part, in plan order within a part; those below a
 * parent follow it, in the same order. */
static void sort_issues(const struct making *making, struct model_issue *out)
{
    uint32_t *next = make_list(making->count);      /* sibling */
    uint32_t *first = make_list(making->count + 1); /* part; last: the roots */
    for (uint32_t part = MODEL_COUNT; part-- > 0;) {
        for (uint32_t ix = making->count; ix-- > 0;) {
            uint32_t up = making->parents[ix];
            uint32_t list = up != PLAN_NONE ? up : making->count;
            if (making->issues[ix].whole == (enum model_part)part) {
                next[ix] = first[list];
                first[list] = ix;
            }
        }
    }
    uint32_t count = 0;
    uint32_t depth = 0;
    uint32_t at = first[making->count];
    while (at != PLAN_NONE) {
        out[count] = making->issues[at];
        out[count++].depth = depth;
        if (first[at] != PLAN_NONE) {
            at = first[at];
            depth++;
            continue;
        }
        while (at != PLAN_NONE && next[at] == PLAN_NONE) {
            at = making->parents[at];
            depth -= at != PLAN_NONE ? 1 : 0;
        }
        at = at != PLAN_NONE ? next[at] : PLAN_NONE;
    }
    INVARIANT(count == making->count);
    mem_free(next);
    mem_free(first);
}

void issues_fill(struct model *model, const struct glance *glance)
{
    const struct plan *plan = engine_plan(glance->view.engine, model->shown);
    if (plan->group_count == 0) {
        return;
    }
    uint32_t most = plan->task_count + plan->group_count;
    struct making making = {
        .glance = glance,
        .plan = plan,
        .run = model->shown,
        .issues = mem_zalloc(most, sizeof(struct model_issue)),
        .parents = make_list(most),
        .groups = make_list(plan->group_count),
        .tasks = make_list(plan->task_count),
    };
    add_issues(&making);
    model->stages = mem_zalloc(plan->task_count, sizeof(model->stages[0]));
    add_stages(&making, model->stages);
    sum_parts(&making);
    model->issues = mem_zalloc(making.count, sizeof(model->issues[0]));
    model->issue_count = making.count;
    sort_issues(&making, model->issues);
    for (uint32_t ix = 0; ix < making.count; ix++) {
        const struct model_issue *issue = &making.issues[ix];
        model->issue_counts[issue->part] += issue->count > 0 ? 1 : 0;
    }
    mem_free(making.issues);
    mem_free(making.parents);
    mem_free(making.groups);
    mem_free(making.tasks);
}
