/* SPDX-License-Identifier: MIT */
/*
 * Coding agents: the programs that adapter/ supports, and their configuration
 * in a plan. A built-in name needs no declaration; another name needs
 * `program`, the built-in program that it configures.
 */
#include "plan/plan_internal.h"

#include <string.h>

enum {
    WORDS_MAX = 200,
    RETRIES_MAX = 100,
    RETRIES_DEFAULT = 2, /* low: sluice itself waits better than programs do */
};

#define AGENT(member, key, reader) FIELD(struct plan_agent, member, key, reader)

/* Read a list of strings into the plan. */
static void
read_words(const struct entry *entry, const char ***out, uint32_t *count_out)
{
    struct reader *reader = entry->reader;
    const struct node *node = entry->value;
    const char *label = QUOTED_TEXT(entry->field->name);
    if (!fields_is_list(reader, node, label)) {
        return;
    }
    if (node->count > WORDS_MAX) {
        fields_expected(reader, node, label, "at most 200 strings");
        return;
    }
    struct arena *arena = &reader->plan->private->arena;
    *out = arena_alloc(arena, node->count + 1, sizeof((*out)[0]));
    *count_out = 0;
    for (const struct node *item = node_first(node); item != NULL;
         item = node_next(item)) {
        if (!node_is_scalar(item) || item->count == 0) {
            fields_expected(reader, item, label, "a list of strings");
            return;
        }
        (*out)[(*count_out)++] = arena_strndup(arena, item->text, item->count);
    }
}

static void read_args(const struct entry *entry)
{
    struct plan_agent *agent = entry->out;
    read_words(entry, &agent->args, &agent->arg_count);
}

static void read_permissions(const struct entry *entry)
{
    struct plan_agent *agent = entry->out;
    if (fields_is_word(entry->value, "full")) {
        agent->permissions = ADAPTER_FULL;
    } else if (fields_is_word(entry->value, "edit") && agent->adapter->edit) {
        agent->permissions = ADAPTER_EDIT;
    } else if (entry->value->kind == NODE_LIST && agent->adapter->tools) {
        agent->permissions = ADAPTER_TOOLS;
        read_words(entry, &agent->tools, &agent->tool_count);
    } else {
        char wanted[128];
        (void)snprintf(wanted,
                       sizeof(wanted),
                       "full%s%s (%s accepts nothing else)",
                       agent->adapter->edit ? " or edit" : "",
                       agent->adapter->tools ? " or a list of tools" : "",
                       agent->adapter->name);
        fields_wrong(entry, wanted);
    }
}

/* Read `env`, a mapping of names to values, as NAME=value. */
static void read_env(const struct entry *entry)
{
    struct reader *reader = entry->reader;
    const struct node *node = entry->value;
    struct plan_agent *agent = entry->out;
    if (!fields_is_small(reader, node, "\"env\"", WORDS_MAX, "variables")) {
        return;
    }
    struct arena *arena = &reader->plan->private->arena;
    agent->env = arena_alloc(arena, node->count + 1, sizeof(agent->env[0]));
    agent->env_count = 0;
    NODE_EACH_KEY(node)
    {
        const struct node *value = node_value(key);
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

static void read_dollars(const struct entry *entry)
{
    if (entry->value->kind != NODE_PLAIN ||
        !plan_parse_usd(entry->value->text, entry->out)) {
        fields_wrong(entry, "dollars per million tokens, such as 1.25");
    }
}

static void read_price(const struct entry *entry)
{
    static const struct field fields[] = {
        {AGENT(price_input, "input", read_dollars), .required = true},
        {AGENT(price_cached, "cached", read_dollars)},
        {AGENT(price_output, "output", read_dollars), .required = true},
    };
    static const struct schema schema = SCHEMA("\"price\"", fields);
    struct plan_agent *agent = entry->out;
    if (fields_read(entry->reader, entry->value, &schema, agent) &&
        agent->price_cached == PLAN_UNSET) {
        agent->price_cached = agent->price_input;
    }
}

/* find_program() has read it before the other keys. */
static void skip_program(const struct entry *entry)
{
    (void)entry;
}

/* Append an agent of a program, with the default options. */
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
        .mcp = true,
        .price_input = PLAN_UNSET,
        .price_cached = PLAN_UNSET,
        .price_output = PLAN_UNSET,
        .provider =
            plan_add_provider(plan, adapter->name, strlen(adapter->name)),
    };
    (void)strmap_add(&private->agent_names, plan->agents[ix].name, ix);
    return ix;
}

/* Report a name that is not a supported program. */
static void
report_unknown(struct reader *reader, const struct node *name, const char *what)
{
    const struct plan *plan = reader->plan;
    struct suggest guess = plan_guess(reader, name);
    SUGGEST_ALL(&guess, plan->agents, plan->agent_count, name);
    for (uint32_t ix = 0; adapter_at(ix) != NULL; ix++) {
        (void)suggest_offer(&guess, adapter_at(ix)->name);
    }
    REPORT(reader,
           name,
           "unknown %s %s%s; built in are claude, codex, gemini, "
           "opencode and qwen",
           what,
           QUOTED(name),
           suggest_hint(&guess));
}

/* Return the program of a declared agent; NULL after an error. */
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
        REPORT(reader,
               key,
               "agent %s is not built in: add \"program\", one of "
               "claude, codex, gemini, opencode and qwen",
               QUOTED(key));
    }
    return adapter;
}

static void read_agent(struct reader *reader, const struct node *key)
{
    static const struct field fields[] = {
        {FIELD_OF_ALL("args", read_args)},
        {FIELD_OF_ALL("env", read_env)},
        {AGENT(retries, "max_retries", fields_number), .max = RETRIES_MAX},
        {AGENT(mcp, "mcp", fields_bool)},
        {AGENT(model, "model", fields_line), .max = PLAN_ID_BYTES_MAX},
        {FIELD_OF_ALL("permissions", read_permissions)},
        {FIELD_OF_ALL("price", read_price)},
        {FIELD_OF_ALL("program", skip_program)},
        {AGENT(provider, "provider", settings_read_provider)},
        {AGENT(sandbox, "sandbox", plan_read_sandbox)},
    };
    static const struct schema schema = SCHEMA("an agent", fields);
    struct plan *plan = reader->plan;
    const struct node *value = node_value(key);
    const struct node *program = node_find_key(value, "program");
    const struct adapter *adapter =
        find_program(reader, key, program != NULL ? node_value(program) : NULL);
    if (adapter == NULL) {
        reader->names_incomplete = true;
        return;
    }
    uint32_t ix = add_agent(plan, key->text, key->count, adapter);
    struct plan_agent agent = plan->agents[ix];
    agent.mark = node_mark(key);
    (void)fields_read(reader, value, &schema, &agent);
    plan->agents[ix] = agent;
}

void plan_read_agents(struct reader *reader, const struct node *node)
{
    if (!fields_is_mapping(reader, node, "\"agents\"")) {
        return;
    }
    NODE_EACH_KEY(node)
    {
        if (fields_check_id(reader, key, "agent", false) != NULL) {
            read_agent(reader, key);
        }
    }
}

uint32_t plan_resolve_agent(struct reader *reader, const struct node *name)
{
    struct plan *plan = reader->plan;
    if (!fields_is_text(reader, name, "\"agent\"", "the name of an agent")) {
        return PLAN_NONE;
    }
    uint32_t ix = plan_lookup(&plan->private->agent_names, name);
    if (ix != PLAN_NONE) {
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
        REPORT(reader,
               node,
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
           task->settings->budget.usd != PLAN_UNSET;
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
            task->settings->cost.usd == PLAN_UNSET && has_budget(plan, task)) {
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
