/* SPDX-License-Identifier: MIT */
/*
 * Reader of the next version of a plan: read it like any plan, then move its
 * tasks to their previous indices. The reader's own tables also name tasks by
 * index and move with them, so that fragments can be added afterwards.
 */
#include "plan/revise.h"

#include "base/invariant.h"
#include "plan/plan_internal.h"

#include <stdlib.h>
#include <string.h>

bool revise_is_update(const char *file)
{
    return strncmp(file, REVISE_MARK, strlen(REVISE_MARK)) == 0;
}

bool revise_is_removed(const struct plan *plan, uint32_t task)
{
    return plan->tasks[task].mark.line == 0;
}

/* --- moving tasks --------------------------------------------------------- */

/* Append a stand-in for a task of the previous version. */
static bool add_stand_in(struct plan *plan,
                         const struct plan_task *old,
                         struct plan_errors *errors)
{
    struct reader reader = {.plan = plan, .errors = errors};
    struct plan_private *private = plan->private;
    uint32_t ix = plan->task_count;
    struct plan_task *task = plan_new_task(&reader, (struct plan_mark){0});
    mem_free(reader.pending);
    if (task == NULL) {
        return false;
    }
    task->id = arena_strndup(&private->arena, old->id, strlen(old->id));
    task->run.shell = "exit 1"; /* never started */
    const char *title = old->words->title;
    if (title != NULL) {
        struct plan_words words = {
            .title = arena_strndup(&private->arena, title, strlen(title)),
        };
        plan_set_words(plan, task, &words);
    }
    const char *owner = plan_settle_task(plan, task, settings_none());
    struct plan_settings own = *task->settings;
    own.optional = 1;
    plan_set_settings(plan, task, &own);
    plan_set_task_attributes(plan, ix, owner, NULL, 0);
    if (strmap_add(&private->names, task->id, plan_target(ix, false)) !=
        STRMAP_NONE) {
        plan_errors_add(errors,
                        (struct plan_mark){1, 1},
                        "\"%s\" was a task and cannot become a group",
                        task->id);
        return false;
    }
    return true;
}

static uint32_t moved(const uint32_t *to, uint32_t task)
{
    return task == PLAN_NONE ? PLAN_NONE : to[task];
}

/* Move the reader's tables: ids, members of groups, the graph. */
static void move_tables(struct plan *plan, const uint32_t *to)
{
    struct plan_private *private = plan->private;
    uint32_t count = plan->task_count;
    uint32_t *next = mem_zalloc(private->next_member_capacity, sizeof(next[0]));
    for (uint32_t ix = 0; ix < count; ix++) {
        next[to[ix]] = moved(to, private->next_member[ix]);
    }
    mem_free(private->next_member);
    private->next_member = next;
    for (uint32_t ix = 0; ix < plan->group_count; ix++) {
        struct plan_group_more *more = &private->group_more[ix];
        more->first_task = moved(to, more->first_task);
        more->last_task = moved(to, more->last_task);
        more->newest_member = moved(to, more->newest_member);
    }
    for (uint32_t ix = 0; ix < private->group_need_count; ix++) {
        struct plan_need *need = &private->group_needs[ix];
        if (!plan_target_is_group(need->need)) {
            need->need = plan_target(to[plan_target_ix(need->need)], false);
        }
    }
    graph_release(&private->graph); /* plan_add() makes it again */
    for (uint32_t ix = 0; ix < count; ix++) {
        const struct plan_task *task = &plan->tasks[ix];
        strmap_remove(&private->names, task->id);
        uint32_t other =
            strmap_add(&private->names, task->id, plan_target(ix, false));
        INVARIANT(other == STRMAP_NONE);
    }
}

static void move_needs(struct plan_task *task, const uint32_t *to)
{
    for (uint32_t n = 0; n < task->need_count; n++) {
        task->needs[n] = to[task->needs[n]] * PLAN_ONS + task->ons[n];
    }
    if (task->need_count > 1) {
        qsort(task->needs,
              task->need_count,
              sizeof(task->needs[0]),
              plan_by_number);
    }
    for (uint32_t n = 0; n < task->need_count; n++) {
        task->ons[n] = (uint8_t)(task->needs[n] % PLAN_ONS);
        task->needs[n] /= PLAN_ONS;
    }
}

static void move_tasks(struct plan *plan, const uint32_t *to)
{
    struct plan_private *private = plan->private;
    struct plan_task *tasks =
        mem_zalloc(private->task_capacity, sizeof(tasks[0]));
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        struct plan_task *task = &tasks[to[ix]];
        *task = plan->tasks[ix];
        task->rework_to = moved(to, task->rework_to);
        task->guard = moved(to, task->guard);
        move_needs(task, to);
    }
    for (uint32_t ix = 0; ix < plan->repo_count; ix++) {
        plan->repos[ix].base_task = moved(to, plan->repos[ix].base_task);
    }
    mem_free(plan->tasks);
    plan->tasks = tasks;
    move_tables(plan, to);
    plan->edge_count = 0; /* the needs include them now */
    private->can_undo = false;
}

/* Move the tasks to the indices that they have in `old`. */
static bool put_in_order(struct plan *plan,
                         const struct plan *old,
                         struct plan_errors *errors)
{
    uint32_t fresh = plan->task_count;
    for (uint32_t ix = 0; ix < old->task_count; ix++) {
        if (plan_find_task(plan, old->tasks[ix].id) == PLAN_NONE &&
            !add_stand_in(plan, &old->tasks[ix], errors)) {
            return false;
        }
    }
    uint32_t *to = mem_zalloc(plan->task_count, sizeof(to[0]));
    uint32_t next = old->task_count;
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        to[ix] = plan_find_task(old, plan->tasks[ix].id);
        INVARIANT(ix < fresh || to[ix] != PLAN_NONE);
        if (to[ix] == PLAN_NONE) {
            to[ix] = next++;
        }
    }
    INVARIANT(next == plan->task_count);
    move_tasks(plan, to);
    mem_free(to);
    return true;
}

bool revise_plan(struct plan **out,
                 const struct plan *old,
                 const struct plan_source *source,
                 const struct plan_source *added,
                 uint32_t added_count,
                 struct plan_errors *errors)
{
    struct plan *plan = NULL;
    *out = NULL;
    bool good = plan_read(&plan, source, errors);
    for (uint32_t ix = 0; good && ix < added_count; ix++) {
        good = plan_add(plan, &added[ix], errors);
    }
    good = good && put_in_order(plan, old, errors);
    if (!good) {
        plan_free(plan);
        return false;
    }
    plan_learn_from(plan, old); /* the run keeps its estimates */
    *out = plan;
    return true;
}
