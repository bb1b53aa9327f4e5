/* SPDX-License-Identifier: MIT */
/* Tasks of the `tasks` list, and code shared with the tasks of pipelines. */
#include "plan/plan_internal.h"

#include "base/duration.h"
#include "base/invariant.h"

#include <string.h>

/* Duration after which an agent's session is renewed. */
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
    uint32_t merge; /* most branches per session; 0: no merge */
    const char *title;
    const char *body;
    const char *body_file;
    const char *url;
    const char *description;
    struct plan_labels labels;
    struct plan_time not_before;
    bool approve;
    struct settings settings;
};

/* Only groups have parents. */
static void refuse_parent(const struct entry *entry)
{
    REPORT(entry->reader,
           entry->value,
           "a task cannot have \"parent\": name a group in \"group\"");
}

#define TASK(key, reader) FIELD(struct raw_task, key, #key, reader)

static const struct field task_fields[] = {
    {TASK(id, fields_node), .required = true},
    {TASK(run, fields_node)},
    {TASK(needs, fields_node)},
    {TASK(class, fields_node)},
    {TASK(repo, fields_node)},
    {TASK(group, fields_node)},
    {TASK(title, fields_line), .max = PLAN_LINE_BYTES_MAX},
    {TASK(body, fields_text), .max = PLAN_TEXT_BYTES_MAX},
    {TASK(body_file, fields_line), .max = PLAN_PATH_BYTES_MAX},
    {TASK(uses, fields_node)},
    {TASK(attributes, fields_node)},
    {TASK(rework, fields_node)},
    {TASK(merge, plan_read_merge)},
    {TASK(approve, fields_bool)},
    {TASK(not_before, plan_read_time)},
    {TASK(labels, plan_read_labels)},
    {TASK(url, plan_read_url), .max = PLAN_LINE_BYTES_MAX},
    {TASK(description, fields_text), .max = PLAN_TEXT_BYTES_MAX},
    {FIELD(struct raw_task, id, "parent", refuse_parent)},
};

static const struct schema task_schema = SCHEMA_WITH_SETTINGS("a task",
                                                              task_fields,
                                                              struct raw_task,
                                                              SETTINGS_OF_TASK);

static const struct plan_words no_words = {0};

void plan_set_words(struct plan *plan,
                    struct plan_task *task,
                    const struct plan_words *words)
{
    bool any = words->title != NULL || words->body != NULL ||
               words->body_file != NULL || words->url != NULL ||
               words->description != NULL;
    if (any) {
        struct plan_words *copy =
            arena_alloc(&plan->private->arena, 1, sizeof(*copy));
        *copy = *words;
        task->words = copy;
    } else {
        task->words = &no_words;
    }
}

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
        .words = &no_words,
        .group = PLAN_NONE,
        .repo = PLAN_NONE,
        .agent = PLAN_NONE,
        .rework_to = PLAN_NONE,
        .guard = PLAN_NONE,
        .scope = PLAN_NONE,
        .mark = mark,
    };
    plan->task_count++;
    return &plan->tasks[ix];
}

bool plan_check_id(struct reader *reader, const struct node *id)
{
    if (id != NULL) {
        (void)fields_check_id(reader, id, "id", true);
    }
    bool usable = id != NULL && node_is_scalar(id) && id->count > 0;
    reader->names_incomplete = reader->names_incomplete || !usable;
    return usable;
}

void plan_read_items(struct reader *reader,
                     const struct node *node,
                     const char *label,
                     void (*read)(struct reader *, const struct node *))
{
    if (!fields_is_list(reader, node, label)) {
        reader->names_incomplete = true;
        return;
    }
    for (const struct node *item = node_first(node);
         item != NULL && !reader->too_many;
         item = node_next(item)) {
        read(reader, item);
    }
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

/* Fill agent settings that neither the task nor its class gives. */
static void settle_agent(const struct plan *plan,
                         struct plan_task *task,
                         struct settings *own)
{
    if (own->provider == PLAN_NONE) {
        own->provider = plan->agents[task->agent].provider;
    }
    /* An agent is nearer than the defaults, and farther than all else. */
    if (own->plan.sandbox == plan->private->defaults.plan.sandbox &&
        plan->agents[task->agent].sandbox != NULL) {
        own->plan.sandbox = plan->agents[task->agent].sandbox;
    }
    /* A new session can only continue committed work. */
    if (own->plan.checkpoint_after_ns == PLAN_UNSET &&
        plan_has_role(plan, task, PLAN_ROLE_IMPLEMENT)) {
        own->plan.checkpoint_after_ns = AGENT_CHECKPOINT_NS;
    }
}

void plan_set_settings(struct plan *plan,
                       struct plan_task *task,
                       const struct plan_settings *settings)
{
    struct plan_private *private = plan->private;
    uint32_t kept = private->kept_count < PLAN_KEPT_SETTINGS
                        ? private->kept_count
                        : PLAN_KEPT_SETTINGS;
    for (uint32_t ix = 0; ix < kept; ix++) {
        if (settings_are_same(private->kept_settings[ix], settings)) {
            task->settings = private->kept_settings[ix];
            return;
        }
    }
    struct plan_settings *copy = arena_alloc(&private->arena, 1, sizeof(*copy));
    *copy = *settings;
    private->kept_settings[private->kept_count++ % PLAN_KEPT_SETTINGS] = copy;
    task->settings = copy;
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
    } else {
        own.plan.prompt = NULL;
        own.plan.prompt_file = NULL;
    }
    struct plan_settings decided = settings_decided(&own);
    plan_set_settings(plan, task, &decided);
    task->provider = own.provider != PLAN_NONE ? own.provider : 0;
    return owner != NULL ? owner : own.owner;
}

void plan_bound_task(struct plan *plan, uint32_t task, uint32_t adder)
{
    const struct plan_settings *most = plan->tasks[adder].settings;
    struct plan_settings own = *plan->tasks[task].settings;
    if (own.add_max > most->add_max) {
        own.add_max = most->add_max;
    }
    if (own.add_depth > most->add_depth) {
        own.add_depth = most->add_depth;
    }
    if (most->sandbox != NULL && most->sandbox->on) {
        own.sandbox = most->sandbox;
    }
    plan_set_settings(plan, &plan->tasks[task], &own);
}

/* Return the group that a task names, or PLAN_NONE after an error. */
static uint32_t find_group(struct reader *reader, const struct node *name)
{
    const struct plan *plan = reader->plan;
    if (!fields_is_text(reader, name, "\"group\"", "the id of a group")) {
        return PLAN_NONE;
    }
    uint32_t target = plan_lookup(&plan->private->names, name);
    if (target != STRMAP_NONE && plan_target_is_group(target)) {
        return plan_target_ix(target);
    }
    if (target != STRMAP_NONE) {
        REPORT(reader, name, "%s is a task, not a group", QUOTED(name));
    } else if (!reader->names_incomplete) {
        struct suggest guess = plan_guess(reader, name);
        SUGGEST_ALL(&guess, plan->groups, plan->group_count, id);
        plan_report_unknown(reader, name, "group", &guess);
    }
    return PLAN_NONE;
}

/* Set group, repo and class of a task. */
static void place_task(struct reader *reader,
                       struct plan_task *task,
                       const struct raw_task *raw)
{
    const struct plan *plan = reader->plan;
    if (reader->last) {
        task->group = reader->last_group;
    } else if (raw->group != NULL) {
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
    struct plan_named named = {
        .class = raw->class,
        .name = raw->id,
        .merge = raw->merge > 0,
        .agent = raw->settings.agent != PLAN_NONE,
    };
    task->class_ix = plan_class_of(reader, &named);
}

/* Set settings, attributes and uses of a task after place_task(). */
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
        task->labels = plan_join_labels(plan,
                                        task->labels,
                                        plan->groups[task->group].labels);
    }
    const char *owner = plan_settle_task(plan, task, own);
    if (reader->last) {
        plan_make_last(plan, task);
    }
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

/* Copy the members that need no checks. */
static void copy_texts(struct plan *plan,
                       struct plan_task *task,
                       const struct raw_task *raw)
{
    struct plan_words words = {
        .title = raw->title,
        .body = raw->body,
        .body_file = raw->body_file,
        .url = raw->url,
        .description = raw->description,
    };
    plan_set_words(plan, task, &words);
    task->labels = raw->labels;
    task->not_before = raw->not_before;
    task->approve = raw->approve;
}

void plan_check_last(struct reader *reader,
                     const struct node *node,
                     const char *what)
{
    static const char *const keys[] = {"group",
                                       "on_failure",
                                       "optional",
                                       "rework"};
    for (size_t ix = 0; ix < ARRAY_COUNT(keys); ix++) {
        const struct node *key = node_find_key(node, keys[ix]);
        if (key != NULL && (ix > 0 || reader->last)) {
            REPORT(reader,
                   key,
                   "%s cannot have \"%s\": %s",
                   what,
                   keys[ix],
                   ix == 0 ? "it belongs to the list that it is in"
                           : "its outcome changes nothing");
        }
    }
}

void plan_make_last(struct plan *plan, struct plan_task *task)
{
    struct plan_settings own = *task->settings;
    own.on_failure = PLAN_ON_FAILURE_SKIP;
    own.optional = 1;
    plan_set_settings(plan, task, &own);
    task->last = true;
    if (task->group != PLAN_NONE) {
        plan->groups[task->group].has_last = true;
    }
}

static void read_task(struct reader *reader, const struct node *node)
{
    struct plan *plan = reader->plan;
    struct raw_task raw = {.settings = settings_none()};
    (void)fields_read(reader, node, &task_schema, &raw);
    if (!plan_check_id(reader, raw.id)) {
        return;
    }
    struct plan_task *task = plan_new_task(reader, node_mark(raw.id));
    if (task == NULL) {
        return;
    }
    uint32_t ix = plan->task_count - 1;
    task->id =
        arena_strndup(&plan->private->arena, raw.id->text, raw.id->count);
    copy_texts(plan, task, &raw);
    if (reader->last) {
        plan_check_last(reader, node, "a task of \"finally\"");
    }
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
    task->run = plan_read_run(reader, &place, &task->agent);
    plan_set_merge_batch(plan, task->class_ix, raw.merge);
    equip_task(reader, ix, &raw);
    struct plan_pending *pending = &reader->pending[ix - reader->before.tasks];
    pending->needs = raw.needs;
    if (raw.rework != NULL && !reader->last) {
        uint32_t max = 0;
        plan_read_rework(reader, raw.rework, &pending->rework_to, &max);
        INVARIANT(max <= UINT16_MAX);
        task->rework_max = (uint16_t)max;
    }
}

void plan_read_tasks(struct reader *reader, const struct node *node)
{
    plan_read_items(reader, node, "\"tasks\"", read_task);
}

void plan_read_last(struct reader *reader,
                    const struct node *node,
                    uint32_t group)
{
    reader->last = true;
    reader->last_group = group;
    plan_read_items(reader, node, "\"finally\"", read_task);
    reader->last = false;
}
