/* SPDX-License-Identifier: MIT */
/*
 * Groups and the tasks of their pipelines: one per stage, each needing the task
 * before it. These needs go into the graph at once; needs.c resolves the needs
 * of the group itself.
 */
#include "plan/plan_internal.h"

#include "base/invariant.h"

#include <string.h>

enum { ISSUE_MAX = 1000000000 }; /* number of an issue */

struct raw_group {
    const struct node *id;
    const struct node *repo;
    const struct node *pipeline;
    const struct node *needs;
    const struct node *attributes;
    const struct node *estimates;
    const struct node *parent;
    const struct node *finally;
    const char *title;
    const char *body;
    const char *body_file;
    const char *url;
    const char *description;
    struct plan_labels labels;
    struct plan_time not_before;
    uint32_t closes;
    struct settings settings;
};

#define GROUP(key, reader) FIELD(struct raw_group, key, #key, reader)

static const struct field group_fields[] = {
    {GROUP(id, fields_node), .required = true},
    {GROUP(repo, fields_node)},
    {GROUP(pipeline, fields_node)},
    {GROUP(needs, fields_node)},
    {GROUP(title, fields_line), .max = PLAN_LINE_BYTES_MAX},
    {GROUP(body, fields_text), .max = PLAN_TEXT_BYTES_MAX},
    {GROUP(body_file, fields_line), .max = PLAN_PATH_BYTES_MAX},
    {GROUP(closes, fields_number), .min = 1, .max = ISSUE_MAX},
    {GROUP(attributes, fields_node)},
    {GROUP(estimates, fields_node)},
    {GROUP(parent, fields_node)},
    {GROUP(finally, fields_node)},
    {GROUP(not_before, plan_read_time)},
    {GROUP(labels, plan_read_labels)},
    {GROUP(url, plan_read_url), .max = PLAN_LINE_BYTES_MAX},
    {GROUP(description, fields_text), .max = PLAN_TEXT_BYTES_MAX},
};

static const struct schema group_schema =
    SCHEMA_WITH_SETTINGS("a group",
                         group_fields,
                         struct raw_group,
                         SETTINGS_OF_GROUP);

/* Return the pipeline of a group, or NULL; set *bad if it is unknown. */
static struct plan_pipeline *
find_pipeline(struct reader *reader, const struct node *name, bool *bad)
{
    struct plan_private *private = reader->plan->private;
    *bad = false;
    if (name == NULL) {
        return NULL;
    }
    *bad = true;
    if (!fields_is_text(reader,
                        name,
                        "\"pipeline\"",
                        "the name of a pipeline")) {
        return NULL;
    }
    uint32_t ix = plan_lookup(&private->pipeline_names, name);
    if (ix != STRMAP_NONE) {
        *bad = private->pipelines[ix].bad;
        return &private->pipelines[ix];
    }
    if (!reader->names_incomplete) {
        struct suggest guess = plan_guess(reader, name);
        SUGGEST_ALL(&guess, private->pipelines, private->pipeline_count, name);
        plan_report_unknown(reader, name, "pipeline", &guess);
    }
    return NULL;
}

/* Read `estimates` into one entry per stage. */
static void read_estimates(struct reader *reader,
                           const struct node *node,
                           const struct plan_pipeline *pipeline,
                           int64_t *estimates)
{
    if (!fields_is_small(reader,
                         node,
                         "\"estimates\"",
                         PLAN_STAGES_MAX,
                         "stages")) {
        return;
    }
    NODE_EACH_KEY(node)
    {
        uint32_t ix = plan_find_stage(pipeline, key->text);
        if (ix != PLAN_NONE) {
            struct field field = {.name = key->text};
            fields_duration(&(
                struct entry){reader, &field, node_value(key), &estimates[ix]});
        } else if (!pipeline->bad) {
            struct suggest guess = plan_guess(reader, key);
            SUGGEST_ALL(&guess, pipeline->stages, pipeline->stage_count, name);
            REPORT(reader,
                   key,
                   "pipeline %s has no stage %s%s",
                   QUOTED_TEXT(pipeline->name),
                   QUOTED(key),
                   suggest_hint(&guess));
        }
    }
}

/* Return GROUP/STAGE, stored in the plan. */
static const char *
joined_id(struct plan *plan, const char *group, const char *stage)
{
    size_t bytes = strlen(group) + strlen(stage) + 2;
    char *id = arena_alloc(&plan->private->arena, bytes, 1);
    char *end = stpcpy(id, group);
    *end++ = '/';
    end = stpcpy(end, stage);
    INVARIANT(end == id + bytes - 1);
    return id;
}

/* Create the task of one stage of a group; false if the plan is full. */
static bool add_stage_task(struct reader *reader,
                           uint32_t group_ix,
                           struct plan_pipeline *pipeline,
                           uint32_t stage_ix,
                           int64_t estimate_ns)
{
    struct plan *plan = reader->plan;
    const struct plan_group *group = &plan->groups[group_ix];
    const struct plan_group_more *more = &plan->private->group_more[group_ix];
    struct plan_stage *stage = &pipeline->stages[stage_ix];
    struct plan_task *task = plan_new_task(reader, group->mark);
    if (task == NULL) {
        return false;
    }
    uint32_t ix = plan->task_count - 1;
    task->id = joined_id(plan, group->id, stage->name);
    plan_set_words(plan, task, &(struct plan_words){.title = stage->title});
    task->stage = stage->name;
    task->class_ix = stage->class_ix;
    task->group = group_ix;
    task->repo = group->repo;
    task->run = stage->run;
    task->agent = stage->agent;
    task->merge = stage->merge;
    task->approve = stage->approve;
    task->not_before = stage->not_before;
    task->labels = group->labels;
    task->uses = stage->uses;
    task->use_count = stage->use_count;
    INVARIANT(stage->rework_max <= UINT16_MAX);
    task->rework_max =
        (uint16_t)(stage->rework_to != PLAN_NONE ? stage->rework_max : 0);
    if (stage->rework_to != PLAN_NONE) {
        task->rework_to = ix - stage_ix + stage->rework_to;
    }
    struct settings own = stage->settings;
    if (estimate_ns != PLAN_UNSET) {
        own.plan.estimate_ns = estimate_ns;
    }
    if (more->settings != NULL) {
        settings_inherit(&own, more->settings);
    }
    const char *owner = plan_settle_task(plan, task, own);
    if (stage->last) {
        plan_make_last(plan, task);
    }
    plan_set_task_attributes(plan, ix, owner, NULL, 0);
    plan_join_group(plan, ix);
    (void)plan_enter_id(reader, task->id, plan_target(ix, false), task->mark);
    return true;
}

/* Check the stage as used by a group, where the pipeline alone cannot. */
static void check_stage(struct reader *reader,
                        const struct plan_group *group,
                        const struct plan_pipeline *pipeline,
                        struct plan_stage *stage)
{
    const struct plan *plan = reader->plan;
    const struct plan_task *task = &plan->tasks[plan->task_count - 1];
    if (task->merge && task->repo == PLAN_NONE && !reader->repo_missing) {
        plan_errors_add(reader->errors,
                        group->mark,
                        "group %s has no \"repo\", but stage %s of its "
                        "pipeline merges",
                        QUOTED_TEXT(group->id),
                        QUOTED_TEXT(stage->name));
    }
    if (strlen(task->id) > PLAN_ID_BYTES_MAX) {
        plan_errors_add(
            reader->errors,
            group->mark,
            "id %s is too long: at most 200 bytes including the stage",
            QUOTED_TEXT(task->id));
    }
    if (!stage->uses_reported && stage->use_count > 0) {
        char subject[2 * sizeof(struct quoted) + 32];
        int len = snprintf(subject,
                           sizeof(subject),
                           "stage %s of %s",
                           QUOTED_TEXT(stage->name),
                           QUOTED_TEXT(pipeline->name));
        INVARIANT(len > 0);
        stage->uses_reported =
            !plan_check_uses(reader, task, stage->uses_node, subject);
    }
}

static void expand(struct reader *reader,
                   uint32_t group_ix,
                   struct plan_pipeline *pipeline,
                   const struct node *estimates_node)
{
    struct plan *plan = reader->plan;
    struct plan_private *private = plan->private;
    int64_t estimates[PLAN_STAGES_MAX];
    for (uint32_t ix = 0; ix < pipeline->stage_count; ix++) {
        estimates[ix] = PLAN_UNSET;
    }
    if (estimates_node != NULL) {
        read_estimates(reader, estimates_node, pipeline, estimates);
    }
    uint32_t first = plan->task_count;
    for (uint32_t ix = 0; ix < pipeline->stage_count; ix++) {
        if (!add_stage_task(reader, group_ix, pipeline, ix, estimates[ix])) {
            return;
        }
        check_stage(reader,
                    &plan->groups[group_ix],
                    pipeline,
                    &pipeline->stages[ix]);
    }
    struct plan_group_more *more = &private->group_more[group_ix];
    uint32_t before = PLAN_NONE; /* the stage before that comes last, too */
    for (uint32_t ix = first; ix < plan->task_count; ix++) {
        if (!plan->tasks[ix].last) {
            more->first_task =
                more->first_task == PLAN_NONE ? ix : more->first_task;
            more->last_task = ix;
            continue;
        }
        if (before != PLAN_NONE) {
            plan_add_need(reader, ix, before, PLAN_ON_ANY);
        }
        before = ix;
    }
}

/* Append a group with that id, without attributes. */
static uint32_t
add_group(struct reader *reader, const struct node *id, uint32_t repo)
{
    struct plan *plan = reader->plan;
    struct plan_private *private = plan->private;
    uint32_t ix = plan->group_count;
    uint32_t fresh = ix - reader->before.groups;
    MEM_GROW(plan->groups, ix, private->group_capacity);
    MEM_GROW(private->group_more, ix, private->group_more_capacity);
    MEM_GROW(reader->pending_groups, fresh, reader->pending_groups_capacity);
    /* If a limit names the group, use that interned copy of its id. */
    uint32_t text = strmap_find(&private->text_names, id->text, id->count);
    plan->groups[ix] = (struct plan_group){
        .id = text != STRMAP_NONE
                  ? private->texts[text]
                  : arena_strndup(&private->arena, id->text, id->count),
        .repo = repo,
        .parent = PLAN_NONE,
        .mark = node_mark(id),
    };
    private->group_more[ix] = (struct plan_group_more){
        .first_task = PLAN_NONE,
        .last_task = PLAN_NONE,
        .newest_member = PLAN_NONE,
    };
    reader->pending_groups[fresh] = (struct plan_pending){0};
    plan->group_count++;
    return ix;
}

/* Copy the settings of a group into the plan; NULL if none is given. */
static const struct settings *keep_settings(struct plan *plan,
                                            const struct settings *settings)
{
    if (!settings_any(settings)) {
        return NULL;
    }
    struct settings *kept =
        arena_alloc(&plan->private->arena, 1, sizeof(*kept));
    *kept = *settings;
    return kept;
}

/* Set the members that only describe the group, and its parent. */
static void describe(struct reader *reader,
                     uint32_t ix,
                     const struct node *node,
                     const struct raw_group *raw)
{
    struct plan *plan = reader->plan;
    struct plan_group *group = &plan->groups[ix];
    group->title = raw->title;
    group->body = raw->body;
    group->body_file = raw->body_file;
    group->closes = raw->closes;
    group->url = raw->url;
    group->description = raw->description;
    group->labels = raw->labels;
    group->not_before = raw->not_before;
    plan_check_text(reader, node, "body", raw->body, raw->body_file);
    if (raw->parent != NULL) {
        group->parent = plan_find_parent(reader, node, raw->parent);
    }
    if (group->parent != PLAN_NONE) {
        group->labels = plan_join_labels(plan,
                                         group->labels,
                                         plan->groups[group->parent].labels);
    }
}

static void read_group(struct reader *reader, const struct node *node)
{
    struct plan *plan = reader->plan;
    struct raw_group raw = {.settings = settings_none()};
    (void)fields_read(reader, node, &group_schema, &raw);
    if (!plan_check_id(reader, raw.id)) {
        return;
    }
    uint32_t repo = PLAN_NONE;
    if (raw.repo != NULL) {
        repo = plan_resolve_repo(reader, raw.repo);
    }
    uint32_t ix = add_group(reader, raw.id, repo);
    struct plan_group_more *more = &plan->private->group_more[ix];
    describe(reader, ix, node, &raw);
    reader->pending_groups[ix - reader->before.groups].needs = raw.needs;
    bool entered = plan_enter_id(reader,
                                 plan->groups[ix].id,
                                 plan_target(ix, true),
                                 node_mark(raw.id));
    if (raw.attributes != NULL) {
        plan_read_attributes(reader,
                             raw.attributes,
                             &more->free_ones,
                             &more->free_count);
    }
    plan_inherit_attributes(reader, ix);
    more->settings = keep_settings(plan, &raw.settings);
    const char *owner = raw.settings.owner;
    if (owner == NULL && repo != PLAN_NONE) {
        owner = plan->repos[repo].owner;
    }
    if (owner == NULL) {
        owner = plan->private->defaults.owner;
    }
    plan_set_group_attributes(plan, ix, owner);
    struct plan_pipeline *pipeline =
        find_pipeline(reader, raw.pipeline, &more->bad);
    more->bad = more->bad || !entered;
    if (pipeline != NULL && entered) {
        expand(reader, ix, pipeline, raw.estimates);
    } else if (raw.estimates != NULL && !more->bad) {
        REPORT(reader,
               raw.estimates,
               "\"estimates\" are per stage: the group needs a "
               "\"pipeline\"");
    }
    if (raw.finally != NULL) {
        plan_read_last(reader, raw.finally, ix);
    }
}

void plan_read_groups(struct reader *reader, const struct node *node)
{
    plan_read_nested(reader, node, read_group);
}
