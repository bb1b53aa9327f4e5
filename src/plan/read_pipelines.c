/* SPDX-License-Identifier: MIT */
/*
 * Pipelines, stored as written, with names resolved: each group that names one
 * creates a task for each stage (read_groups.c).
 */
#include "plan/plan_internal.h"

#include <string.h>

enum {
    REWORK_MAX = 1000,
    REWORK_DEFAULT = 2, /* rounds, when only `to` is given */
};

struct raw_rework {
    const struct node *to;
    uint32_t max;
};

struct raw_stage {
    const struct node *name;
    const struct node *class;
    const struct node *run;
    const struct node *uses;
    const struct node *rework;
    uint32_t merge; /* most branches per session; 0: not a merge stage */
    bool last;
    bool approve;
    struct plan_time not_before;
    const char *title;
    struct settings settings;
};

void plan_read_rework(struct reader *reader,
                      const struct node *node,
                      const struct node **to_out,
                      uint32_t *max_out)
{
    static const struct field fields[] = {
        {FIELD(struct raw_rework, to, "to", fields_node), .required = true},
        {FIELD(struct raw_rework, max, "max", fields_number),
         .min = 1,
         .max = REWORK_MAX},
    };
    static const struct schema schema = SCHEMA("\"rework\"", fields);
    struct raw_rework raw = {.max = REWORK_DEFAULT};
    (void)fields_read(reader, node, &schema, &raw);
    if (raw.to != NULL && !node_is_scalar(raw.to)) {
        fields_expected(reader, raw.to, "\"to\"", "a name");
        raw.to = NULL;
    }
    *to_out = raw.to;
    *max_out = raw.max;
}

struct raw_merge {
    uint32_t batch;
    uint32_t window; /* 0: not given */
};

static uint32_t read_merge_fields(const struct entry *entry)
{
    static const struct field fields[] = {
        {FIELD(struct raw_merge, batch, "batch", fields_number),
         .min = 1,
         .max = MERGE_BATCH_MAX},
        {FIELD(struct raw_merge, window, "window", fields_number),
         .min = 1,
         .max = MERGE_WINDOW_MAX},
    };
    static const struct schema schema = SCHEMA("\"merge\"", fields);
    struct plan_private *private = entry->reader->plan->private;
    struct raw_merge raw = {.batch = 1};
    (void)fields_read(entry->reader, entry->value, &schema, &raw);
    if (raw.batch > 1 && raw.window > 1) {
        REPORT(entry->reader,
               entry->value,
               "\"batch\" and \"window\" exclude each other: a batch is one "
               "session that merges several branches, a window is several "
               "sessions");
    }
    if (raw.window > private->merge_window) {
        private->merge_window = raw.window;
    }
    return raw.batch;
}

void plan_read_merge(const struct entry *entry)
{
    uint32_t *out = entry->out;
    if (entry->value->kind == NODE_MAPPING) {
        *out = read_merge_fields(entry);
    } else if (fields_is_word(entry->value, "true")) {
        *out = 1;
    } else if (!fields_is_word(entry->value, "false")) {
        fields_wrong(entry, "true, false, {window: N} or {batch: N}");
    }
}

void plan_set_merge_batch(struct plan *plan, uint32_t class_ix, uint32_t batch)
{
    if (batch > plan->classes[class_ix].batch) {
        plan->classes[class_ix].batch = batch;
    }
}

/* Stages run in sequence; a user who gives `needs` expects otherwise. */
static void refuse_needs(const struct entry *entry)
{
    REPORT(entry->reader,
           entry->value,
           "a stage cannot have \"needs\": it needs the previous "
           "stage; move \"needs\" to the group");
}

#define STAGE(key, reader) FIELD(struct raw_stage, key, #key, reader)

static const struct field stage_fields[] = {
    {FIELD(struct raw_stage, name, "stage", fields_node), .required = true},
    {STAGE(class, fields_node)},
    {STAGE(run, fields_node)},
    {STAGE(merge, plan_read_merge)},
    {STAGE(uses, fields_node)},
    {STAGE(rework, fields_node)},
    {STAGE(title, fields_line), .max = PLAN_LINE_BYTES_MAX},
    {STAGE(approve, fields_bool)},
    {STAGE(not_before, plan_read_time)},
    {FIELD(struct raw_stage, last, "finally", fields_bool)},
    {FIELD(struct raw_stage, name, "needs", refuse_needs)},
};

static const struct schema stage_schema =
    SCHEMA_WITH_SETTINGS("a stage",
                         stage_fields,
                         struct raw_stage,
                         SETTINGS_OF_TASK);

/* Whether a key, perhaps one reported as an error, may replace `run`. */
static bool may_have_run(const struct node *node)
{
    for (const struct node *key = node_first(node); key != NULL;
         key = node_next_key(key)) {
        if (key->kind == NODE_BAD || strcmp(key->text, "agent") == 0 ||
            (strcmp(key->text, "merge") == 0 &&
             !fields_is_word(node_value(key), "false"))) {
            return true;
        }
    }
    return false;
}

struct plan_command plan_read_run(struct reader *reader,
                                  const struct plan_place *place,
                                  uint32_t *agent_out)
{
    static const struct field field = {.name = "run"};
    struct plan_command command = {0};
    uint32_t own = place->settings->agent;
    uint32_t class_agent =
        reader->plan->private->class_settings[place->class_ix].agent;
    *agent_out = PLAN_NONE;
    plan_check_text(reader,
                    place->node,
                    "prompt",
                    place->settings->plan.prompt,
                    place->settings->plan.prompt_file);
    if (place->run != NULL && place->merge) {
        REPORT(reader,
               place->run,
               "\"run\" and \"merge: true\" exclude each other");
    } else if (own != PLAN_NONE && (place->run != NULL || place->merge)) {
        REPORT(reader,
               place->node,
               "\"agent\" and \"%s\" exclude each other",
               place->merge ? "merge: true" : "run");
    } else if (place->run != NULL) {
        fields_command(&(struct entry){reader, &field, place->run, &command});
    } else if (!place->merge && own != PLAN_NONE) {
        *agent_out = own;
    } else if (!place->merge && class_agent != PLAN_NONE) {
        *agent_out = class_agent;
    } else if (!place->merge && !may_have_run(place->node)) {
        REPORT(reader,
               place->node,
               "missing key \"run\": %s needs it, \"agent\" or \"merge: true\"",
               place->what);
    }
    return command;
}

uint32_t plan_find_stage(const struct plan_pipeline *pipeline, const char *name)
{
    for (uint32_t ix = 0; ix < pipeline->stage_count; ix++) {
        if (strcmp(pipeline->stages[ix].name, name) == 0) {
            return ix;
        }
    }
    return PLAN_NONE;
}

static void read_stage_rework(struct reader *reader,
                              const struct node *node,
                              struct plan_pipeline *pipeline,
                              struct plan_stage *stage)
{
    const struct node *to = NULL;
    plan_read_rework(reader, node, &to, &stage->rework_max);
    if (to == NULL) {
        return;
    }
    stage->rework_to = plan_find_stage(pipeline, to->text);
    if (stage->rework_to != PLAN_NONE &&
        pipeline->stages[stage->rework_to].last) {
        REPORT(reader,
               to,
               "%s is a stage with \"finally: true\": no stage needs it",
               QUOTED(to));
        stage->rework_to = PLAN_NONE;
        return;
    }
    if (stage->rework_to != PLAN_NONE || pipeline->bad) {
        return;
    }
    struct suggest guess = plan_guess(reader, to);
    SUGGEST_ALL(&guess, pipeline->stages, pipeline->stage_count, name);
    REPORT(reader,
           to,
           "%s is not an earlier stage%s",
           QUOTED(to),
           suggest_hint(&guess));
}

/* Send a conflict back to the last implement stage, if any, which can resolve
 * it. */
static void default_rework(const struct reader *reader,
                           const struct plan_pipeline *pipeline,
                           struct plan_stage *stage)
{
    const struct plan_class *classes = reader->plan->classes;
    for (uint32_t ix = pipeline->stage_count; ix > 0; ix--) {
        const struct plan_stage *before = &pipeline->stages[ix - 1];
        if (classes[before->class_ix].role == PLAN_ROLE_IMPLEMENT &&
            !before->last) {
            stage->rework_to = ix - 1;
            stage->rework_max = REWORK_DEFAULT;
            return;
        }
    }
}

/* Return the name of the stage; a duplicate is an error. Set *good_out to the
 * node unless the name is wrong. */
static const char *stage_name(struct reader *reader,
                              const struct node *node,
                              const struct plan_pipeline *pipeline,
                              const struct node **good_out)
{
    if (node == NULL || !node_is_scalar(node) || node->count == 0) {
        if (node != NULL) {
            (void)fields_check_id(reader, node, "stage", false);
        }
        return NULL;
    }
    uint32_t other = plan_find_stage(pipeline, node->text);
    if (other != PLAN_NONE) {
        REPORT(reader,
               node,
               "duplicate stage %s (first at %u:%u)",
               QUOTED(node),
               pipeline->stages[other].mark.line,
               pipeline->stages[other].mark.column);
    } else if (fields_check_id(reader, node, "stage", false) != NULL) {
        *good_out = node;
    }
    return plan_intern(reader->plan, node->text, node->count);
}

static void read_stage(struct reader *reader,
                       const struct node *node,
                       struct plan_pipeline *pipeline)
{
    struct raw_stage raw = {.settings = settings_none()};
    if (!fields_read(reader, node, &stage_schema, &raw)) {
        pipeline->bad = true;
        return;
    }
    struct plan_named named = {
        .class = raw.class,
        .stage = true,
        .merge = raw.merge > 0,
        .agent = raw.settings.agent != PLAN_NONE,
    };
    const char *name = stage_name(reader, raw.name, pipeline, &named.name);
    struct plan_place place = {
        .node = node,
        .run = raw.run,
        .settings = &raw.settings,
        .class_ix = plan_class_of(reader, &named),
        .merge = raw.merge > 0,
        .what = "a stage",
    };
    struct plan_stage stage = {
        .name = name,
        .title = raw.title,
        .class_ix = place.class_ix,
        .merge = place.merge,
        .last = raw.last,
        .approve = raw.approve,
        .not_before = raw.not_before,
        .rework_to = PLAN_NONE,
        .settings = raw.settings,
        .mark = node_mark(raw.name != NULL ? raw.name : node),
    };
    stage.run = plan_read_run(reader, &place, &stage.agent);
    if (stage.name == NULL) {
        pipeline->bad = true;
        return;
    }
    stage.uses_node = raw.uses;
    if (raw.uses != NULL) {
        plan_read_uses(reader, raw.uses, &stage.uses, &stage.use_count);
    }
    if (stage.last) {
        plan_check_last(reader, node, "a stage with \"finally: true\"");
    } else if (raw.rework != NULL) {
        read_stage_rework(reader, raw.rework, pipeline, &stage);
    } else if (stage.merge) {
        default_rework(reader, pipeline, &stage);
    }
    plan_set_merge_batch(reader->plan, stage.class_ix, raw.merge);
    pipeline->stages[pipeline->stage_count++] = stage;
}

/* Check that a stage runs before those that come last. */
static void check_first(struct reader *reader,
                        const struct plan_pipeline *pipeline)
{
    uint32_t last = 0;
    while (last < pipeline->stage_count && pipeline->stages[last].last) {
        last++;
    }
    if (last > 0 && last == pipeline->stage_count && !pipeline->bad) {
        plan_errors_add(reader->errors,
                        pipeline->mark,
                        "pipeline %s has no stage without \"finally: true\"",
                        QUOTED_TEXT(pipeline->name));
    }
}

static void read_pipeline(struct reader *reader, const struct node *key)
{
    struct plan *plan = reader->plan;
    struct plan_private *private = plan->private;
    const struct node *node = node_value(key);
    (void)fields_check_id(reader, key, "pipeline", true);
    struct plan_pipeline pipeline = {
        .name = plan_intern(plan, key->text, key->count),
        .mark = node_mark(key),
    };
    if (node->kind != NODE_LIST || node->count == 0 ||
        node->count > PLAN_STAGES_MAX) {
        fields_expected(reader, node, QUOTED(key), "a list of 1 to 100 stages");
        pipeline.bad = true;
    } else {
        ARENA_ARRAY(&private->arena, pipeline.stages, node->count);
        for (const struct node *stage = node_first(node); stage != NULL;
             stage = node_next(stage)) {
            read_stage(reader, stage, &pipeline);
        }
        check_first(reader, &pipeline);
    }
    MEM_GROW(private->pipelines,
             private->pipeline_count,
             private->pipeline_capacity);
    (void)strmap_add(&private->pipeline_names,
                     pipeline.name,
                     private->pipeline_count);
    private->pipelines[private->pipeline_count++] = pipeline;
}

void plan_read_pipelines(struct reader *reader, const struct node *node)
{
    if (!fields_is_mapping(reader, node, "\"pipelines\"")) {
        reader->names_incomplete = true;
        return;
    }
    const struct strmap *names = &reader->plan->private->pipeline_names;
    NODE_EACH_KEY(node)
    {
        if (plan_lookup(names, key) != PLAN_NONE) {
            REPORT(reader, key, "duplicate pipeline %s", QUOTED(key));
            continue;
        }
        read_pipeline(reader, key);
    }
}
