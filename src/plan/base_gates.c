/* SPDX-License-Identifier: MIT */
/*
 * Base gates: built-in tasks "REPO/+base", one for each repository whose merges
 * are gated. The task runs the gate on the base, and every merge needs it.
 * While it is parked, the tasks of its repository do not start (`guard`). The
 * first merge task of a repository creates it, in the plan or in a fragment;
 * tasks from earlier sources are not guarded.
 *
 * It has no attributes but its class and provider: limits per repository or
 * owner must not make the first sessions wait for it.
 */
#include "plan/plan_internal.h"

#include "base/strbuf.h"

#include <string.h>

/* Whether the base of a repository is to be gated. */
static bool is_gated(const struct plan *plan, uint32_t repo)
{
    return repo != PLAN_NONE && !plan->private->no_base_gates &&
           plan_is_git(&plan->repos[repo]) && plan->repos[repo].gate != NULL &&
           !plan->repos[repo].no_base_gate;
}

static const char *join(struct plan *plan, const char *a, const char *b)
{
    struct strbuf text = {0};
    strbuf_adds(&text, a);
    strbuf_adds(&text, b);
    const char *copy =
        arena_strndup(&plan->private->arena, strbuf_text(&text), text.len);
    strbuf_release(&text);
    return copy;
}

static void add_task(struct reader *reader, uint32_t repo)
{
    struct plan *plan = reader->plan;
    uint32_t ix = plan->task_count;
    struct plan_task *task = plan_new_task(reader, plan->repos[repo].mark);
    if (task == NULL) {
        return;
    }
    task->id = join(plan, plan->repos[repo].name, "/+base");
    struct plan_words words = {
        .title = join(plan, "gate of the base ", plan->repos[repo].base),
    };
    plan_set_words(plan, task, &words);
    task->base_gate = true;
    task->class_ix =
        strmap_find(&plan->private->class_names, "gate", strlen("gate"));
    (void)plan_settle_task(plan, task, settings_none());
    struct plan_settings own = *task->settings;
    own.on_failure = PLAN_ON_FAILURE_PARK;
    own.prepare = NULL; /* as for the gate of a merge */
    own.optional = 1;   /* after a skip, merges go on */
    own.priority = 0;   /* starts first: see class_of() of load.c */
    plan_set_settings(plan, task, &own);
    plan_set_task_attributes(plan, ix, NULL, NULL, 0);
    task->repo = repo;
    (void)plan_enter_id(reader, task->id, plan_target(ix, false), task->mark);
    plan->repos[repo].base_task = ix;
}

/* Let a merge need the base gate of its repository, created if new. */
static void guard_merge(struct reader *reader, uint32_t merge)
{
    struct plan *plan = reader->plan;
    struct plan_repo *repo = &plan->repos[plan->tasks[merge].repo];
    if (repo->base_task == PLAN_NONE) {
        add_task(reader, plan->tasks[merge].repo);
    }
    if (repo->base_task == PLAN_NONE) {
        return; /* too many tasks */
    }
    plan_add_need(reader, merge, repo->base_task, PLAN_ON_DONE);
}

void plan_add_base_gates(struct reader *reader)
{
    struct plan *plan = reader->plan;
    uint32_t end = plan->task_count;
    for (uint32_t ix = reader->before.tasks; ix < end; ix++) {
        if (plan->tasks[ix].merge && is_gated(plan, plan->tasks[ix].repo)) {
            guard_merge(reader, ix);
        }
    }
    for (uint32_t ix = reader->before.tasks; ix < end; ix++) {
        struct plan_task *task = &plan->tasks[ix];
        if (task->repo != PLAN_NONE) {
            task->guard = plan->repos[task->repo].base_task;
        }
    }
}

void plan_cut_base_gates(struct plan *plan, uint32_t count)
{
    for (uint32_t ix = 0; ix < plan->repo_count; ix++) {
        uint32_t task = plan->repos[ix].base_task;
        plan->repos[ix].base_task = task < count ? task : PLAN_NONE;
    }
}
