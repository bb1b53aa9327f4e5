/* SPDX-License-Identifier: MIT */
/*
 * Coding agents: the programs that adapter/ knows, and how a plan configures
 * them. A built-in name needs no declaration; another name needs `program`,
 * which says what it is a configuration of.
 */
#include "plan/plan_internal.h"

#include <string.h>

enum {
    WORDS_MAX = 200,
    RETRIES_MAX = 100,
    RETRIES_DEFAULT = 2, /* sluice waits better than the programs do */
};

struct raw_agent {
    struct plan_agent agent;
    const struct node *program;
    const struct node *permissions;
    const struct node *args;
    const struct node *env;
    const struct node *provider;
};

/* Read a list of strings into the plan; false after an error. */
static bool read_words(struct reader *reader,
                       const struct node *node,
                       const char *label,
                       const char ***out,
                       uint32_t *count_out)
{
    if (!fields_is_list(reader, node, label)) {
        return false;
    }
    if (node->count > WORDS_MAX) {
        fields_expected(reader, node, label, "at most 200 strings");
        return false;
    }
    struct arena *arena = &reader->plan->private->arena;
    *out = arena_alloc(arena, node->count + 1, sizeof((*out)[0]));
    for (const struct node *item = node_first(node); item != NULL;
         item = node_next(item)) {
        if (!node_is_scalar(item) || item->count == 0) {
            fields_expected(reader, item, label, "a list of strings");
            return false;
        }
        (*out)[(*count_out)++] = arena_strndup(arena, item->text, item->count);
    }
    return true;
}

static void read_permissions(struct reader *reader,
                             const struct node *node,
                             struct plan_agent *agent)
{
    if (fields_is_word(node, "full")) {
        agent->permissions = ADAPTER_FULL;
    } else if (fields_is_word(node, "edit") && agent->adapter->edit) {
        agent->permissions = ADAPTER_EDIT;
    } else if (node->kind == NODE_LIST && agent->adapter->tools) {
        agent->permissions = ADAPTER_TOOLS;
        (void)read_words(reader,
                         node,
                         "\"permissions\"",
                         &agent->tools,
                         &agent->tool_count);
    } else {
        char wanted[128];
        (void)snprintf(wanted,
                       sizeof(wanted),
                       "full%s%s (%s accepts nothing else)",
                       agent->adapter->edit ? " or edit" : "",
                       agent->adapter->tools ? " or a list of tools" : "",
                       agent->adapter->name);
        fields_expected(reader, node, "\"permissions\"", wanted);
    }
}

/* Read `env`, a mapping of names to values, as NAME=value. */
static void read_env(struct reader *reader,
                     const struct node *node,
                     struct plan_agent *agent)
{
    if (!fields_is_mapping(reader, node, "\"env\"")) {
        return;
    }
    if (node->count > WORDS_MAX) {
        fields_expected(reader, node, "\"env\"", "at most 200 variables");
        return;
    }
    struct arena *arena = &reader->plan->private->arena;
    agent->env = arena_alloc(arena, node->count + 1, sizeof(agent->env[0]));
    for (const struct node *key = node_first(node); key != NULL;
         key = node_next_key(key)) {
        const struct node *value = node_value(key);
        if (key->kind == NODE_BAD) {
            continue;
        }
        bool named = key->count > 0 && strchr(key->text, '=') == NULL &&
                     strncmp(key->text, "SLUICE_", strlen("SLUICE_")) != 0;
        if (!named || !node_is_scalar(value)) {
            fields_expected(reader,
                            named ? value : key,
                            "\"env\"",
                            "a mapping of variables, none of them SLUICE_..., "
                            "to strings");
            continue;
        }
        size_t bytes = key->count + value->count + 2;
        char *text = arena_alloc(arena, bytes, 1);
        (void)snprintf(text, bytes, "%s=%s", key->text, value->text);
        agent->env[agent->env_count++] = text;
    }
}

static void read_dollars(struct reader *reader,
                         const struct field *field,
                         const struct node *value,
                         void *target)
{
    int64_t *out = (void *)((char *)target + field->offset);
    if (value->kind != NODE_PLAIN || !plan_parse_usd(value->text, out)) {
        fields_expected(reader,
                        value,
                        QUOTED_TEXT(field->name),
                        "dollars per million tokens, such as 1.25");
    }
}

static void read_price(struct reader *reader,
                       const struct field *field,
                       const struct node *value,
                       void *target)
{
    static const struct field fields[] = {
        {FIELD_AT(struct raw_agent, agent.price_input, "input"),
         .read = read_dollars,
         .required = true},
        {FIELD_AT(struct raw_agent, agent.price_cached, "cached"),
         .read = read_dollars},
        {FIELD_AT(struct raw_agent, agent.price_output, "output"),
         .read = read_dollars,
         .required = true},
    };
    static const struct schema schema = SCHEMA("\"price\"", fields);
    struct plan_agent *agent = &((struct raw_agent *)target)->agent;
    (void)field;
    if (fields_is_mapping(reader, value, "\"price\"") &&
        fields_read(reader, value, &schema, target) &&
        agent->price_cached == PLAN_UNSET) {
        agent->price_cached = agent->price_input;
    }
}

/* Append an agent of a program, with what holds where the plan is silent. */
static uint32_t add_agent(struct plan *plan,
                          const char *name,
                          size_t len,
                          const struct adapter *adapter)
{
    struct plan_private *private = plan->private;
    MEM_GROW(plan->agents, plan->agent_count, private->agent_capacity);
    uint32_t ix = plan->agent_count++;
    plan->agents[ix] = (struct plan_agent){
        .name = plan_intern(plan, name, len),
        .adapter = adapter,
        .retries = RETRIES_DEFAULT,
        .price_input = PLAN_UNSET,
        .price_cached = PLAN_UNSET,
        .price_output = PLAN_UNSET,
        .provider =
            plan_add_provider(plan, adapter->name, strlen(adapter->name)),
    };
    (void)strmap_add(&private->agent_names, plan->agents[ix].name, ix);
    return ix;
}

/* Report a name that is no program that sluice knows. */
static void
report_unknown(struct reader *reader, const struct node *name, const char *what)
{
    const struct plan *plan = reader->plan;
    struct suggest guess;
    suggest_init(&guess, name->text, name->count, &reader->suggest_budget);
    bool more = true;
    for (uint32_t ix = 0; ix < plan->agent_count && more; ix++) {
        more = suggest_offer(&guess, plan->agents[ix].name);
    }
    for (uint32_t ix = 0; adapter_at(ix) != NULL && more; ix++) {
        more = suggest_offer(&guess, adapter_at(ix)->name);
    }
    plan_errors_add(reader->errors,
                    node_mark(name),
                    "unknown %s %s%s; built in are claude, codex, gemini, "
                    "opencode and qwen",
                    what,
                    QUOTED(name),
                    suggest_hint(&guess));
}

/* The program that a declared agent is; NULL after an error. */
static const struct adapter *find_program(struct reader *reader,
                                          const struct node *key,
                                          const struct node *program)
{
    const struct node *name = program != NULL ? program : key;
    if (!node_is_scalar(name)) {
        fields_expected(reader, name, "\"program\"", "the name of a program");
        return NULL;
    }
    const struct adapter *adapter = adapter_find(name->text);
    if (adapter == NULL && program != NULL) {
        report_unknown(reader, program, "program");
    } else if (adapter == NULL) {
        plan_errors_add(reader->errors,
                        node_mark(key),
                        "agent %s is not built in: add \"program\", one of "
                        "claude, codex, gemini, opencode and qwen",
                        QUOTED(key));
    }
    return adapter;
}

static void read_agent(struct reader *reader, const struct node *key)
{
    static const struct field fields[] = {
        {FIELD_AT(struct raw_agent, args, "args"), .read = fields_node},
        {FIELD_AT(struct raw_agent, env, "env"), .read = fields_node},
        {FIELD_AT(struct raw_agent, agent.retries, "max_retries"),
         .read = fields_number,
         .max = RETRIES_MAX},
        {FIELD_AT(struct raw_agent, agent.model, "model"),
         .read = fields_line,
         .max = PLAN_ID_BYTES_MAX},
        {FIELD_AT(struct raw_agent, permissions, "permissions"),
         .read = fields_node},
        {FIELD_AT(struct raw_agent, agent, "price"), .read = read_price},
        {FIELD_AT(struct raw_agent, program, "program"), .read = fields_node},
        {FIELD_AT(struct raw_agent, provider, "provider"), .read = fields_node},
    };
    static const struct schema schema = SCHEMA("an agent", fields);
    struct plan *plan = reader->plan;
    const struct node *value = node_value(key);
    const struct node *program = NULL;
    for (const struct node *at = node_first(value);
         value->kind == NODE_MAPPING && at != NULL;
         at = node_next_key(at)) {
        if (at->kind != NODE_BAD && strcmp(at->text, "program") == 0) {
            program = node_value(at);
        }
    }
    const struct adapter *adapter = find_program(reader, key, program);
    if (adapter == NULL) {
        reader->names_incomplete = true;
        return;
    }
    uint32_t ix = add_agent(plan, key->text, key->count, adapter);
    struct raw_agent raw = {.agent = plan->agents[ix]};
    raw.agent.mark = node_mark(key);
    (void)fields_read(reader, value, &schema, &raw);
    if (raw.permissions != NULL) {
        read_permissions(reader, raw.permissions, &raw.agent);
    }
    if (raw.args != NULL) {
        (void)read_words(reader,
                         raw.args,
                         "\"args\"",
                         &raw.agent.args,
                         &raw.agent.arg_count);
    }
    if (raw.env != NULL) {
        read_env(reader, raw.env, &raw.agent);
    }
    if (raw.provider != NULL) {
        uint32_t provider = plan_resolve_provider(reader, raw.provider);
        raw.agent.provider =
            provider != PLAN_NONE ? provider : raw.agent.provider;
    }
    plan->agents[ix] = raw.agent;
}

void plan_read_agents(struct reader *reader, const struct node *node)
{
    if (!fields_is_mapping(reader, node, "\"agents\"")) {
        return;
    }
    for (const struct node *key = node_first(node); key != NULL;
         key = node_next_key(key)) {
        if (key->kind != NODE_BAD &&
            fields_check_id(reader, key, "agent", false) != NULL) {
            read_agent(reader, key);
        }
    }
}

uint32_t plan_resolve_agent(struct reader *reader, const struct node *name)
{
    struct plan *plan = reader->plan;
    if (!node_is_scalar(name) || fields_is_empty(name)) {
        fields_expected(reader, name, "\"agent\"", "the name of an agent");
        return PLAN_NONE;
    }
    uint32_t ix =
        strmap_find(&plan->private->agent_names, name->text, name->count);
    if (ix != STRMAP_NONE) {
        return ix;
    }
    const struct adapter *adapter = adapter_find(name->text);
    if (adapter == NULL) {
        if (!reader->names_incomplete) {
            report_unknown(reader, name, "agent");
        }
        return PLAN_NONE;
    }
    return add_agent(plan, name->text, name->count, adapter);
}

void plan_check_text(struct reader *reader,
                     const struct node *node,
                     const char *name,
                     const char *text,
                     const char *file)
{
    if (text != NULL && file != NULL) {
        plan_errors_add(reader->errors,
                        node_mark(node),
                        "\"%s\" and \"%s_file\" exclude each other",
                        name,
                        name);
    }
}

/* Whether a budget in money covers the task. */
static bool has_budget(const struct plan *plan, const struct plan_task *task)
{
    return plan->budget.usd != PLAN_UNSET ||
           plan->classes[task->class_ix].budget.usd != PLAN_UNSET ||
           task->settings.budget.usd != PLAN_UNSET;
}

void plan_check_agents(struct reader *reader)
{
    const struct plan *plan = reader->plan;
    uint32_t reported = PLAN_NONE;
    for (uint32_t ix = reader->before.tasks; ix < plan->task_count; ix++) {
        const struct plan_task *task = &plan->tasks[ix];
        if (task->agent == PLAN_NONE || task->agent == reported) {
            continue;
        }
        const struct plan_agent *agent = &plan->agents[task->agent];
        if (plan->classes[task->class_ix].batch > 1 &&
            !plan_is_review(plan, task)) {
            plan_errors_add(
                reader->errors,
                task->mark,
                "class %s batches its tasks, but agents can only batch "
                "reviews: remove \"batch\", or give the task another class",
                QUOTED_TEXT(plan->classes[task->class_ix].name));
            reported = task->agent;
            continue;
        }
        if (!agent->adapter->money && agent->price_input == PLAN_UNSET &&
            task->settings.cost.usd == PLAN_UNSET && has_budget(plan, task)) {
            plan_errors_add(reader->errors,
                            task->mark,
                            "agent %s does not report its cost, so a budget in "
                            "usd would have no effect: give the agent a "
                            "\"price\", or its sessions a \"cost\"",
                            QUOTED_TEXT(agent->name));
            reported = task->agent;
        }
    }
}

bool plan_is_review(const struct plan *plan, const struct plan_task *task)
{
    return plan_has_role(plan, task, PLAN_ROLE_REVIEW) ||
           (task->rework_to != PLAN_NONE &&
            !plan_has_role(plan, task, PLAN_ROLE_IMPLEMENT));
}
