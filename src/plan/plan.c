/* SPDX-License-Identifier: MIT */
/*
 * Reader of plans and fragments.
 *
 * The same code reads both, into the same arrays: a fragment only starts after
 * the existing entries (struct plan_counts). Undoing a fragment is therefore
 * truncating everything to the previous counts.
 */
#include "plan/plan.h"

#include "base/invariant.h"
#include "plan/plan_internal.h"

#include <string.h>

/* The parts of a file, in the order of the documentation. */
struct raw_plan {
    const struct node *sluice;
    const struct node *name;
    const struct node *repos;
    const struct node *limits;
    const struct node *classes;
    const struct node *defaults;
    const struct node *policy;
    const struct node *goal;
    const struct node *lookahead;
    const struct node *providers;
    const struct node *agents;
    const struct node *pipelines;
    const struct node *groups;
    const struct node *tasks;
    const struct node *resources;
    const struct node *sync;
    const struct node *usage;
    const struct node *budget;
    const struct node *hooks;
    const struct node *finally;
    const struct node *not_before;
    const struct node *deadline;
    const struct node *needs; /* fragments only */
};

static void refuse_in_fragment(const struct entry *entry)
{
    REPORT(entry->reader,
           entry->value,
           "\"%s\" is not allowed in a fragment: only groups, tasks, "
           "finally, needs, pipelines and resources are",
           entry->field->name);
}

static void refuse_in_plan(const struct entry *entry)
{
    REPORT(entry->reader,
           entry->value,
           "\"%s\" is only allowed in a fragment: move it to the task or group",
           entry->field->name);
}

#define PART(key) FIELD(struct raw_plan, key, #key, fields_node)

static const struct field plan_fields[] = {
    {PART(sluice),
     .required = true,
     .hint = "start the plan with \"sluice: 1\""},
    {PART(name), .required = true},
    {PART(agents)},
    {PART(budget)},
    {PART(classes)},
    {PART(deadline)},
    {PART(defaults)},
    {PART(finally)},
    {PART(goal)},
    {PART(groups)},
    {PART(hooks)},
    {PART(limits)},
    {PART(lookahead)},
    {PART(not_before)},
    {PART(pipelines)},
    {PART(policy)},
    {PART(providers)},
    {PART(repos)},
    {PART(resources)},
    {PART(sync)},
    {PART(tasks)},
    {PART(usage)},
    {FIELD(struct raw_plan, needs, "needs", refuse_in_plan)},
};

#define NO_PART(key) FIELD(struct raw_plan, key, #key, refuse_in_fragment)

static const struct field fragment_fields[] = {
    {PART(finally)},      {PART(groups)},       {PART(needs)},
    {PART(pipelines)},    {PART(resources)},    {PART(sluice)},
    {PART(tasks)},        {NO_PART(agents)},    {NO_PART(budget)},
    {NO_PART(classes)},   {NO_PART(deadline)},  {NO_PART(defaults)},
    {NO_PART(goal)},      {NO_PART(hooks)},     {NO_PART(limits)},
    {NO_PART(lookahead)}, {NO_PART(name)},      {NO_PART(not_before)},
    {NO_PART(policy)},    {NO_PART(providers)}, {NO_PART(repos)},
    {NO_PART(sync)},      {NO_PART(usage)},
};

static const struct schema defaults_schema = {
    .what = "\"defaults\"",
    .setting_count = SETTINGS_OF_TASK,
};
static const struct schema plan_schema = SCHEMA("the plan", plan_fields);
static const struct schema fragment_schema =
    SCHEMA("the fragment", fragment_fields);

const char *plan_intern(struct plan *plan, const char *text, size_t len)
{
    struct plan_private *private = plan->private;
    uint32_t ix = strmap_find(&private->text_names, text, len);
    if (ix != STRMAP_NONE) {
        return private->texts[ix];
    }
    MEM_GROW(private->texts, private->text_count, private->text_capacity);
    ix = private->text_count++;
    private->texts[ix] = arena_strndup(&private->arena, text, len);
    (void)strmap_add(&private->text_names, private->texts[ix], ix);
    return private->texts[ix];
}

static void read_version(struct reader *reader, const struct node *node)
{
    int64_t version = 0;
    if (!fields_parse_number(node, &version) || version != 1) {
        fields_expected(reader,
                        node,
                        "\"sluice\"",
                        "1, the version of the plan format");
    }
}

static void read_policy(struct reader *reader, const struct node *node)
{
    static const char *const names[] = {
        [PLAN_POLICY_RANK] = "rank",
        [PLAN_POLICY_FAIR] = "fair",
        [PLAN_POLICY_FIFO] = "fifo",
        [PLAN_POLICY_LOOKAHEAD] = "lookahead",
    };
    uint32_t ix = fields_find_word(node, names, ARRAY_COUNT(names));
    if (ix < ARRAY_COUNT(names)) {
        reader->plan->policy = (enum plan_policy)ix;
    } else {
        fields_expected(reader,
                        node,
                        "\"policy\"",
                        "rank, fair, fifo or lookahead");
    }
}

static void read_goal(struct reader *reader, const struct node *node)
{
    static const char *const names[] = {
        [PLAN_GOAL_FINISH_ALL] = "finish-all",
        [PLAN_GOAL_FINISH_MANY] = "finish-many",
    };
    uint32_t ix = fields_find_word(node, names, ARRAY_COUNT(names));
    if (ix < ARRAY_COUNT(names)) {
        reader->plan->goal = (enum plan_goal)ix;
    } else {
        fields_expected(reader, node, "\"goal\"", "finish-all or finish-many");
    }
}

static void read_defaults(struct reader *reader, const struct node *node)
{
    struct plan_private *private = reader->plan->private;
    struct settings own = settings_none();
    if (!fields_is_mapping(reader, node, "\"defaults\"")) {
        return;
    }
    (void)fields_read(reader, node, &defaults_schema, &own);
    settings_inherit(&own, &private->defaults);
    private->defaults = own;
}

typedef void (*part_fn)(struct reader *reader, const struct node *node);

static void
read_part(struct reader *reader, const struct node *node, part_fn read)
{
    if (node != NULL && node->kind != NODE_BAD) {
        read(reader, node);
    } else if (node != NULL) {
        reader->names_incomplete = true;
    }
}

static void read_finally(struct reader *reader, const struct node *node)
{
    plan_read_last(reader, node, PLAN_NONE);
}

/* Read when the run may start and when it is stopped. */
static void read_times(struct reader *reader, const struct raw_plan *raw)
{
    static const struct field start = {.name = "not_before"};
    static const struct field end = {.name = "deadline"};
    struct plan *plan = reader->plan;
    if (raw->not_before != NULL) {
        plan_read_time(&(
            struct entry){reader, &start, raw->not_before, &plan->not_before});
    }
    if (raw->deadline != NULL) {
        plan_read_deadline(
            &(struct entry){reader, &end, raw->deadline, &plan->deadline});
    }
}

/* Read the parts that a plan and a fragment have in common. */
static void read_common(struct reader *reader, const struct raw_plan *raw)
{
    read_part(reader, raw->sluice, read_version);
    read_part(reader, raw->resources, plan_read_resources);
    read_part(reader, raw->pipelines, plan_read_pipelines);
    read_part(reader, raw->groups, plan_read_groups);
    read_part(reader, raw->tasks, plan_read_tasks);
    read_part(reader, raw->finally, read_finally);
    plan_set_scopes(reader);
    plan_add_base_gates(reader);
}

static void read_plan(struct reader *reader,
                      const struct node *root,
                      const struct plan_source *source)
{
    static const struct field name_field = {
        .name = "name",
        .max = PLAN_ID_BYTES_MAX,
    };
    struct plan *plan = reader->plan;
    struct raw_plan raw = {0};
    if (!fields_read(reader, root, &plan_schema, &raw)) {
        return;
    }
    if (raw.name != NULL) {
        fields_line(
            &(struct entry){reader, &name_field, raw.name, &plan->name});
    }
    read_times(reader, &raw);
    read_part(reader, raw.policy, read_policy);
    read_part(reader, raw.goal, read_goal);
    plan->schedules = PLAN_SCHEDULES;
    read_part(reader, raw.lookahead, plan_read_lookahead);
    read_part(reader, raw.repos, plan_read_repos);
    read_part(reader, raw.providers, plan_read_providers);
    read_part(reader, raw.agents, plan_read_agents);
    read_part(reader, raw.defaults, read_defaults);
    read_part(reader, raw.classes, plan_read_classes);
    plan_settle_classes(plan);
    plan_read_limits(reader, raw.limits, source->processors);
    read_part(reader, raw.usage, plan_read_usages);
    read_part(reader, raw.budget, plan_read_budget);
    plan_add_budgets(plan);
    read_common(reader, &raw);
    plan_add_windows(plan);
    plan_add_costs(plan);
    read_part(reader, raw.sync, plan_read_sync);
    read_part(reader, raw.hooks, plan_read_hooks);
    if (raw.limits != NULL && !reader->names_incomplete) {
        plan_check_limits(reader, raw.limits);
    }
    if (raw.usage != NULL && !reader->names_incomplete) {
        plan_check_usages(reader, raw.usage);
    }
    plan_check_costs(reader);
    plan_check_agents(reader);
    plan_resolve_needs(reader, NULL);
    if (plan->task_count == 0 && reader->errors->count == 0) {
        REPORT(reader,
               root,
               "the plan has no tasks: it needs \"tasks\" or "
               "\"groups\" with a pipeline");
    }
}

static void read_fragment(struct reader *reader, const struct node *root)
{
    struct raw_plan raw = {0};
    if (!fields_read(reader, root, &fragment_schema, &raw)) {
        return;
    }
    read_common(reader, &raw);
    plan_add_costs(reader->plan);
    plan_check_costs(reader);
    plan_check_agents(reader);
    plan_resolve_needs(reader, raw.needs);
}

static void reader_release(struct reader *reader)
{
    struct plan_private *private = reader->plan->private;
    for (uint32_t ix = reader->before.pipelines; ix < private->pipeline_count;
         ix++) {
        struct plan_pipeline *pipeline = &private->pipelines[ix];
        for (uint32_t at = 0; at < pipeline->stage_count; at++) {
            pipeline->stages[at].uses_node = NULL;
        }
    }
    mem_free(reader->pending);
    mem_free(reader->pending_groups);
    mem_free(reader->needs);
}

static struct plan *new_plan(const char *file)
{
    struct plan *plan = mem_zalloc(1, sizeof(*plan));
    plan->private = mem_zalloc(1, sizeof(*plan->private));
    plan->private->defaults = settings_built_in();
    plan->budget = PLAN_COST_UNSET;
    plan->file = arena_strndup(&plan->private->arena, file, strlen(file));
    plan_intern_own_names(plan);
    plan_add_built_ins(plan);
    return plan;
}

/* Read the source as a plan or fragment, as the reader requires. */
static void read_source(struct reader *reader, const struct plan_source *source)
{
    struct plan_errors *errors = reader->errors;
    struct node_tree tree = {0};
    INVARIANT(errors->count == 0);
    reader->suggest_budget = SUGGEST_BUDGET;
    if (node_tree_read(&tree, source->text, source->len, errors)) {
        if (tree.count > 0 && reader->fragment) {
            read_fragment(reader, tree.nodes);
        } else if (tree.count > 0) {
            read_plan(reader, tree.nodes, source);
        } else if (!reader->fragment) {
            plan_errors_add(errors,
                            (struct plan_mark){1, 1},
                            "the file is empty: a plan needs \"sluice: 1\", "
                            "\"name\" and \"tasks\" or \"groups\"");
        }
    }
    node_tree_release(&tree);
    reader_release(reader);
    plan_errors_finish(errors);
}

bool plan_read(struct plan **out,
               const struct plan_source *source,
               struct plan_errors *errors)
{
    struct reader reader = {
        .plan = new_plan(source->file),
        .errors = errors,
        .old_rules = source->old_rules,
    };
    reader.plan->private->no_base_gates = source->no_base_gates;
    read_source(&reader, source);
    *out = NULL;
    if (errors->count > 0) {
        plan_free(reader.plan);
        return false;
    }
    *out = reader.plan;
    (*out)->old_rules = source->old_rules;
    graph_release(&reader.plan->private->graph); /* see make_graph() */
    return true;
}

/* Make the graph again, which few plans need once they are read. */
static void make_graph(struct plan *plan)
{
    struct graph *graph = &plan->private->graph;
    uint32_t edges = 0;
    if (graph->node_count == plan->task_count) {
        return;
    }
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        edges += plan->tasks[ix].need_count;
    }
    graph_release(graph);
    graph_reserve(graph, plan->task_count, edges);
    graph_add_nodes(graph, plan->task_count);
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        const struct plan_task *task = &plan->tasks[ix];
        for (uint32_t n = 0; n < task->need_count; n++) {
            graph_add_need_on(graph, ix, task->needs[n], task->ons[n]);
        }
    }
}

static struct plan_counts count_all(const struct plan *plan)
{
    const struct plan_private *private = plan->private;
    return (struct plan_counts){
        .limits = plan->limit_count,
        .classes = plan->class_count,
        .providers = plan->provider_count,
        .agents = plan->agent_count,
        .pipelines = private->pipeline_count,
        .groups = plan->group_count,
        .tasks = plan->task_count,
        .texts = private->text_count,
        .nodes = private->graph.node_count,
        .edges = private->graph.edge_count,
        .group_needs = private->group_need_count,
        .mark = arena_mark(&private->arena),
    };
}

/* Remove an id, unless it belongs to an earlier task or group. */
static void leave_id(struct plan *plan, const char *id, uint32_t target)
{
    struct strmap *names = &plan->private->names;
    if (strmap_find(names, id, strlen(id)) == target) {
        strmap_remove(names, id);
    }
}

static void cut_tasks(struct plan *plan, uint32_t count)
{
    struct plan_private *private = plan->private;
    while (plan->task_count > count) {
        uint32_t ix = --plan->task_count;
        const struct plan_task *task = &plan->tasks[ix];
        leave_id(plan, task->id, plan_target(ix, false));
        if (task->group != PLAN_NONE) {
            struct plan_group_more *more = &private->group_more[task->group];
            INVARIANT(more->newest_member == ix);
            more->newest_member = private->next_member[ix];
            plan->groups[task->group].task_count--;
        }
    }
}

/* Truncate everything to earlier counts; names first, then their memory. */
static void cut_to(struct plan *plan, const struct plan_counts *before)
{
    struct plan_private *private = plan->private;
    cut_tasks(plan, before->tasks);
    plan_cut_base_gates(plan, before->tasks);
    while (plan->group_count > before->groups) {
        uint32_t ix = --plan->group_count;
        leave_id(plan, plan->groups[ix].id, plan_target(ix, true));
    }
#define CUT(names, list, count, to)                                            \
    while ((count) > (to)) {                                                   \
        strmap_remove(&private->names, (list)[--(count)].name);                \
    }
    CUT(limit_names, plan->limits, plan->limit_count, before->limits)
    CUT(class_names, plan->classes, plan->class_count, before->classes)
    CUT(provider_names,
        plan->providers,
        plan->provider_count,
        before->providers)
    CUT(agent_names, plan->agents, plan->agent_count, before->agents)
    CUT(pipeline_names,
        private->pipelines,
        private->pipeline_count,
        before->pipelines)
    while (private->text_count > before->texts) {
        strmap_remove(&private->text_names,
                      private->texts[--private->text_count]);
    }
    while (private->old_needs_count > 0) {
        struct plan_old_needs old =
            private->old_needs[--private->old_needs_count];
        plan->tasks[old.task].needs = old.needs;
        plan->tasks[old.task].ons = old.ons;
        plan->tasks[old.task].need_count = old.need_count;
    }
    plan->edge_count = 0;
    private->group_need_count = before->group_needs;
    graph_truncate(&private->graph, before->nodes, before->edges);
    arena_rewind(&private->arena, before->mark);
    private->kept_count = 0; /* they may have been newer */
}

bool plan_add(struct plan *plan,
              const struct plan_source *source,
              struct plan_errors *errors)
{
    make_graph(plan);
    struct reader reader = {
        .plan = plan,
        .errors = errors,
        .before = count_all(plan),
        .fragment = true,
        .old_rules = source->old_rules,
    };
    plan->private->can_undo = false;
    plan->private->old_needs_count = 0;
    plan->edge_count = 0;
    read_source(&reader, source);
    if (errors->count > 0) {
        cut_to(plan, &reader.before);
        return false;
    }
    plan->private->before = reader.before;
    plan->private->can_undo = true;
    return true;
}

bool plan_has_added(const struct plan *plan)
{
    const struct plan_private *private = plan->private;
    const struct plan_counts *before = &private->before;
    return plan->task_count > before->tasks ||
           plan->group_count > before->groups ||
           plan->limit_count > before->limits ||
           private->pipeline_count > before->pipelines || plan->edge_count > 0;
}

void plan_undo_add(struct plan *plan)
{
    INVARIANT(plan->private->can_undo);
    cut_to(plan, &plan->private->before);
    plan->private->can_undo = false;
}

void plan_free(struct plan *plan)
{
    if (plan == NULL) {
        return;
    }
    struct plan_private *private = plan->private;
    plan_forget(plan);
    strmap_release(&private->names);
    strmap_release(&private->repo_names);
    strmap_release(&private->limit_names);
    strmap_release(&private->class_names);
    strmap_release(&private->provider_names);
    strmap_release(&private->agent_names);
    strmap_release(&private->pipeline_names);
    strmap_release(&private->text_names);
    strmap_release(&private->free_names);
    mem_free(private->texts);
    mem_free(private->class_settings);
    mem_free(private->pipelines);
    mem_free(private->group_more);
    mem_free(private->next_member);
    mem_free(private->old_needs);
    mem_free(private->times);
    mem_free(private->group_needs);
    graph_release(&private->graph);
    arena_release(&private->arena);
    mem_free(private);
    mem_free(plan->repos);
    mem_free(plan->limits);
    mem_free(plan->classes);
    mem_free(plan->providers);
    mem_free(plan->agents);
    mem_free(plan->groups);
    mem_free(plan->tasks);
    mem_free(plan->edges);
    mem_free(plan);
}

static uint32_t find_target(const struct plan *plan, const char *id, bool group)
{
    uint32_t target = strmap_find(&plan->private->names, id, strlen(id));
    bool found = target != STRMAP_NONE && plan_target_is_group(target) == group;
    return found ? plan_target_ix(target) : PLAN_NONE;
}

uint32_t plan_find_task(const struct plan *plan, const char *id)
{
    return find_target(plan, id, false);
}

uint32_t plan_find_group(const struct plan *plan, const char *id)
{
    return find_target(plan, id, true);
}

struct plan_issue plan_issue_of(const struct plan *plan,
                                const struct plan_task *task)
{
    const struct plan_group *group =
        task->group != PLAN_NONE ? &plan->groups[task->group] : NULL;
    bool own = group == NULL || task->words->body != NULL ||
               task->words->body_file != NULL;
    return (struct plan_issue){
        .id = group != NULL ? group->id : task->id,
        .title = group != NULL ? group->title : task->words->title,
        .body = own ? task->words->body : group->body,
        .body_file = own ? task->words->body_file : group->body_file,
    };
}

uint32_t plan_find_limit(const struct plan *plan, const char *name)
{
    return strmap_find(&plan->private->limit_names, name, strlen(name));
}
