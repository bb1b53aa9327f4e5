/* SPDX-License-Identifier: MIT */
/*
 * Tasks: those of the `tasks` list, and what they have in common with those
 * that pipelines make.
 */
#include "plan/plan_internal.h"

#include "base/duration.h"
#include "base/invariant.h"

#include <string.h>

/* How long the session of an agent goes on before it is renewed. */
#define AGENT_CHECKPOINT_NS (30 * MINUTE_NS)

struct raw_task {
    const struct node *id;
    const struct node *class;
    const struct node *group;
    const struct node *repo;
    const struct node *run;
    const struct node *needs;
    const struct node *uses;
    const struct node *attributes;
    const struct node *rework;
    uint32_t merge; /* branches at once; 0: it does not merge */
    const char *title;
    const char *body;
    const char *body_file;
    struct settings settings;
};

static const struct field task_fields[] = {
    {FIELD_AT(struct raw_task, id, "id"),
     .read = fields_node,
     .required = true},
    {FIELD_AT(struct raw_task, run, "run"), .read = fields_node},
    {FIELD_AT(struct raw_task, needs, "needs"), .read = fields_node},
    {FIELD_AT(struct raw_task, class, "class"), .read = fields_node},
    {FIELD_AT(struct raw_task, repo, "repo"), .read = fields_node},
    {FIELD_AT(struct raw_task, group, "group"), .read = fields_node},
    {FIELD_AT(struct raw_task, title, "title"),
     .read = fields_line,
     .max = PLAN_LINE_BYTES_MAX},
    {FIELD_AT(struct raw_task, body, "body"),
     .read = fields_text,
     .max = PLAN_TEXT_BYTES_MAX},
    {FIELD_AT(struct raw_task, body_file, "body_file"),
     .read = fields_line,
     .max = PLAN_PATH_BYTES_MAX},
    {FIELD_AT(struct raw_task, uses, "uses"), .read = fields_node},
    {FIELD_AT(struct raw_task, attributes, "attributes"), .read = fields_node},
    {FIELD_AT(struct raw_task, rework, "rework"), .read = fields_node},
    {FIELD_AT(struct raw_task, merge, "merge"), .read = plan_read_merge},
    SETTINGS_FIELDS(struct raw_task, settings),
    SETTINGS_AGENT_FIELDS(struct raw_task, settings),
    {SETTINGS_AT(struct raw_task, settings, budget, "budget"),
     .read = settings_read_cost},
};

static const struct schema task_schema = SCHEMA("a task", task_fields);

struct plan_task *plan_new_task(struct reader *reader, struct plan_mark mark)
{
    struct plan *plan = reader->plan;
    struct plan_private *private = plan->private;
    uint32_t ix = plan->task_count;
    if (ix >= PLAN_TASKS_MAX) {
        if (!reader->too_many) {
            plan_errors_add(reader->errors,
                            mark,
                            "more than %d tasks",
                            PLAN_TASKS_MAX);
        }
        reader->too_many = true;
        reader->names_incomplete = true;
        return NULL;
    }
    uint32_t fresh = ix - reader->before.tasks;
    MEM_GROW(plan->tasks, ix, private->task_capacity);
    MEM_GROW(private->next_member, ix, private->next_member_capacity);
    MEM_GROW(reader->pending, fresh, reader->pending_capacity);
    private->next_member[ix] = PLAN_NONE;
    reader->pending[fresh] = (struct plan_pending){0};
    plan->tasks[ix] = (struct plan_task){
        .group = PLAN_NONE,
        .repo = PLAN_NONE,
        .agent = PLAN_NONE,
        .rework_to = PLAN_NONE,
        .mark = mark,
    };
    plan->task_count++;
    return &plan->tasks[ix];
}

bool plan_enter_id(struct reader *reader,
                   const char *id,
                   uint32_t target,
                   struct plan_mark mark)
{
    const struct plan *plan = reader->plan;
    uint32_t other = strmap_add(&plan->private->names, id, target);
    if (other == STRMAP_NONE) {
        return true;
    }
    uint32_t ix = plan_target_ix(other);
    bool group = plan_target_is_group(other);
    if (ix < (group ? reader->before.groups : reader->before.tasks)) {
        plan_errors_add(reader->errors,
                        mark,
                        "duplicate id %s (already in the plan)",
                        QUOTED_TEXT(id));
        return false;
    }
    struct plan_mark first =
        group ? plan->groups[ix].mark : plan->tasks[ix].mark;
    plan_errors_add(reader->errors,
                    mark,
                    "duplicate id %s (first at %u:%u)",
                    QUOTED_TEXT(id),
                    first.line,
                    first.column);
    return false;
}

void plan_join_group(struct plan *plan, uint32_t task_ix)
{
    uint32_t group_ix = plan->tasks[task_ix].group;
    INVARIANT(group_ix < plan->group_count);
    struct plan_private *private = plan->private;
    struct plan_group_more *more = &private->group_more[group_ix];
    private->next_member[task_ix] = more->newest_member;
    more->newest_member = task_ix;
    plan->groups[group_ix].task_count++;
}

/* What an agent's session has where neither the task nor its class says. */
static void settle_agent(const struct plan *plan,
                         struct plan_task *task,
                         struct settings *own)
{
    task->prompt = own->prompt;
    task->prompt_file = own->prompt_file;
    if (own->provider == PLAN_NONE) {
        own->provider = plan->agents[task->agent].provider;
    }
    /* Only what was committed can be continued. */
    if (own->checkpoint_after_ns == PLAN_UNSET &&
        plan_has_role(plan, task, PLAN_ROLE_IMPLEMENT)) {
        own->checkpoint_after_ns = AGENT_CHECKPOINT_NS;
    }
}

const char *
plan_settle_task(struct plan *plan, struct plan_task *task, struct settings own)
{
    const char *owner = own.owner;
    if (owner == NULL && task->repo != PLAN_NONE) {
        owner = plan->repos[task->repo].owner;
    }
    settings_inherit(&own, &plan->private->class_settings[task->class_ix]);
    if (task->agent != PLAN_NONE) {
        settle_agent(plan, task, &own);
    }
    task->settings = settings_decided(&own);
    task->provider = own.provider != PLAN_NONE ? own.provider : 0;
    task->prepare = own.prepare;
    return owner != NULL ? owner : own.owner;
}

/* The group that a task names, or PLAN_NONE after an error. */
static uint32_t find_group(struct reader *reader, const struct node *name)
{
    const struct plan *plan = reader->plan;
    if (!node_is_scalar(name) || fields_is_empty(name)) {
        fields_expected(reader, name, "\"group\"", "the id of a group");
        return PLAN_NONE;
    }
    uint32_t target =
        strmap_find(&plan->private->names, name->text, name->count);
    if (target != STRMAP_NONE && plan_target_is_group(target)) {
        return plan_target_ix(target);
    }
    if (target != STRMAP_NONE) {
        plan_errors_add(reader->errors,
                        node_mark(name),
                        "%s is a task, not a group",
                        QUOTED(name));
    } else if (!reader->names_incomplete) {
        struct suggest guess;
        suggest_init(&guess, name->text, name->count, &reader->suggest_budget);
        bool more = true;
        for (uint32_t ix = 0; ix < plan->group_count && more; ix++) {
            more = suggest_offer(&guess, plan->groups[ix].id);
        }
        plan_errors_add(reader->errors,
                        node_mark(name),
                        "unknown group %s%s",
                        QUOTED(name),
                        suggest_hint(&guess));
    }
    return PLAN_NONE;
}

static uint32_t class_of(struct reader *reader, const struct raw_task *raw)
{
    uint32_t ix = PLAN_NONE;
    if (raw->class != NULL) {
        ix = plan_resolve_class(reader, raw->class);
    } else if (raw->merge > 0) {
        ix = strmap_find(&reader->plan->private->class_names,
                         "merge",
                         strlen("merge"));
    }
    return ix != PLAN_NONE ? ix : 0;
}

/* Fill group, repo and class of a task. */
static void place_task(struct reader *reader,
                       struct plan_task *task,
                       const struct raw_task *raw)
{
    const struct plan *plan = reader->plan;
    if (raw->group != NULL) {
        task->group = find_group(reader, raw->group);
    }
    if (raw->repo != NULL) {
        task->repo = plan_resolve_repo(reader, raw->repo);
    } else if (task->group != PLAN_NONE) {
        task->repo = plan->groups[task->group].repo;
    }
    if (raw->merge > 0 && raw->repo == NULL && task->repo == PLAN_NONE &&
        !reader->repo_missing) {
        plan_errors_add(reader->errors,
                        task->mark,
                        "task %s merges but has no \"repo\"",
                        QUOTED_TEXT(task->id));
    }
    task->class_ix = class_of(reader, raw);
}

/* Fill settings, attributes and uses of a task that has its place. */
static void
equip_task(struct reader *reader, uint32_t ix, const struct raw_task *raw)
{
    struct plan *plan = reader->plan;
    struct plan_task *task = &plan->tasks[ix];
    struct settings own = raw->settings;
    if (task->group != PLAN_NONE) {
        const struct plan_group_more *more =
            &plan->private->group_more[task->group];
        if (more->settings != NULL) {
            settings_inherit(&own, more->settings);
        }
        plan_join_group(plan, ix);
    }
    const char *owner = plan_settle_task(plan, task, own);
    struct plan_attribute *free_ones = NULL;
    uint32_t free_count = 0;
    if (raw->attributes != NULL) {
        plan_read_attributes(reader, raw->attributes, &free_ones, &free_count);
    }
    plan_set_task_attributes(plan, ix, owner, free_ones, free_count);
    if (raw->uses != NULL) {
        char subject[sizeof(struct quoted) + 16];
        int len = snprintf(subject,
                           sizeof(subject),
                           "task %s",
                           QUOTED_TEXT(task->id));
        INVARIANT(len > 0);
        plan_read_uses(reader, raw->uses, &task->uses, &task->use_count);
        (void)plan_check_uses(reader, task, raw->uses, subject);
    }
}

static void read_task(struct reader *reader, const struct node *node)
{
    struct plan *plan = reader->plan;
    struct raw_task raw = {.settings = settings_none()};
    if (!fields_read(reader, node, &task_schema, &raw) || raw.id == NULL ||
        !node_is_scalar(raw.id) || raw.id->count == 0) {
        if (raw.id != NULL) {
            (void)fields_check_id(reader, raw.id, "id", true);
        }
        reader->names_incomplete = true;
        return;
    }
    (void)fields_check_id(reader, raw.id, "id", true);
    struct plan_task *task = plan_new_task(reader, node_mark(raw.id));
    if (task == NULL) {
        return;
    }
    uint32_t ix = plan->task_count - 1;
    task->id =
        arena_strndup(&plan->private->arena, raw.id->text, raw.id->count);
    task->title = raw.title;
    task->body = raw.body;
    task->body_file = raw.body_file;
    plan_check_text(reader, node, "body", raw.body, raw.body_file);
    task->merge = raw.merge > 0;
    (void)plan_enter_id(reader, task->id, plan_target(ix, false), task->mark);
    place_task(reader, task, &raw);
    struct plan_place place = {
        .node = node,
        .run = raw.run,
        .settings = &raw.settings,
        .class_ix = task->class_ix,
        .merge = task->merge,
        .what = "a task",
    };
    struct plan_command run = plan_read_run(reader, &place, &task->agent);
    task->shell = run.shell;
    task->argv = run.argv;
    plan_set_merge_batch(plan, task->class_ix, raw.merge);
    equip_task(reader, ix, &raw);
    struct plan_pending *pending = &reader->pending[ix - reader->before.tasks];
    pending->needs = raw.needs;
    if (raw.rework != NULL) {
        plan_read_rework(reader,
                         raw.rework,
                         &pending->rework_to,
                         &task->rework_max);
    }
}

void plan_read_tasks(struct reader *reader, const struct node *node)
{
    if (!fields_is_list(reader, node, "\"tasks\"")) {
        reader->names_incomplete = true;
        return;
    }
    for (const struct node *item = node_first(node);
         item != NULL && !reader->too_many;
         item = node_next(item)) {
        read_task(reader, item);
    }
}
