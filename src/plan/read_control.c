/* SPDX-License-Identifier: MIT */
/*
 * Parts of a plan that act on the run: the sync hook, lookahead, usage
 * monitors, hooks, budgets.
 */
#include "plan/plan_internal.h"

#include "base/duration.h"

#include <stdio.h>
#include <string.h>

enum {
    EVERY_MAX = 1000000,
    SCHEDULES_MAX = 1000000,
    STEPS_MAX = 100,
    MONITORS_MAX = 100,
    RETRIES_MAX = 100,
};

void plan_read_sync(struct reader *reader, const struct node *node)
{
    static const struct field fields[] = {
        {FIELD(struct plan_sync, every, "every", fields_number),
         .min = 1,
         .max = EVERY_MAX,
         .required = true},
        {FIELD(struct plan_sync, run, "run", fields_command), .required = true},
        {FIELD(struct plan_sync, drain, "drain", fields_bool)},
    };
    static const struct schema schema = SCHEMA("\"sync\"", fields);
    (void)fields_read(reader, node, &schema, &reader->plan->sync);
}

void plan_read_lookahead(struct reader *reader, const struct node *node)
{
    static const struct field fields[] = {
        {FIELD(struct plan, schedules, "schedules", fields_number),
         .min = 1,
         .max = SCHEDULES_MAX,
         .required = true},
    };
    static const struct schema schema = SCHEMA("\"lookahead\"", fields);
    (void)fields_read(reader, node, &schema, reader->plan);
}

/* usage */

/* Read one step; false after an error. */
static bool read_step(struct reader *reader,
                      const struct node *key,
                      struct plan_usage_step *step)
{
    int64_t percent = 0;
    int64_t cap = 0;
    if (!fields_parse_key(key, &percent) || percent < 1 || percent > 100) {
        fields_expected(reader,
                        key,
                        "a step of \"steps\"",
                        "a percentage from 1 to 100, without the \"%\"");
        return false;
    }
    const struct node *value = node_value(key);
    if (!fields_parse_number(value, &cap) || cap > PLAN_UNITS_MAX) {
        fields_expected(reader,
                        value,
                        "the cap of a step",
                        "a number from 0 to 1000000");
        return false;
    }
    *step = (struct plan_usage_step){(uint32_t)percent, (uint32_t)cap};
    return true;
}

static void read_steps(const struct entry *entry)
{
    struct reader *reader = entry->reader;
    const struct node *node = entry->value;
    struct plan_usage *usage = entry->out;
    if (!fields_is_small(reader, node, "\"steps\"", STEPS_MAX, "steps")) {
        return;
    }
    ARENA_ARRAY(&reader->plan->private->arena, usage->steps, node->count);
    usage->step_count = 0; /* may be set by a misspelt key before */
    NODE_EACH_KEY(node)
    {
        struct plan_usage_step step;
        if (!read_step(reader, key, &step)) {
            continue;
        }
        const struct plan_usage_step *last = NULL;
        if (usage->step_count > 0) {
            last = &usage->steps[usage->step_count - 1];
        }
        if (last != NULL && last->percent >= step.percent) {
            REPORT(reader,
                   key,
                   "steps must ascend: %u comes after %u",
                   step.percent,
                   last->percent);
        } else if (last != NULL && last->cap < step.cap) {
            REPORT(reader,
                   node_value(key),
                   "the cap must not rise with use: %u comes after "
                   "%u",
                   step.cap,
                   last->cap);
        }
        usage->steps[usage->step_count++] = step;
    }
}

static void read_agent(const struct entry *entry)
{
    uint32_t agent = plan_resolve_agent(entry->reader, entry->value);
    *(uint32_t *)entry->out = agent;
    if (agent != PLAN_NONE &&
        !entry->reader->plan->agents[agent].adapter->meters) {
        REPORT(
            entry->reader,
            entry->value,
            "agent %s has no meters; use \"run\", a program that prints meters",
            QUOTED(entry->value));
    }
}

/* Require one source of meters; an agent's apply to its own provider. */
static void check_source(struct reader *reader,
                         const struct node *node,
                         struct plan_usage *usage)
{
    bool runs = fields_has_bad_key(node) || node_find_key(node, "run") != NULL;
    bool asks = node_find_key(node, "agent") != NULL;
    if (asks && runs) {
        REPORT(reader, node, "\"run\" and \"agent\" exclude each other");
    } else if (node->kind == NODE_MAPPING && !runs && !asks) {
        REPORT(reader,
               node,
               "missing key \"run\" or \"agent\": \"usage\" needs one of them");
    }
    if (usage->agent != PLAN_NONE && usage->provider == PLAN_NONE) {
        usage->provider = reader->plan->agents[usage->agent].provider;
    }
}

/* Add the limit that a provider's monitor lowers; without one, the cap. */
static uint32_t
add_usage_limit(struct reader *reader, const struct node *node, uint32_t ix)
{
    struct plan *plan = reader->plan;
    const char *provider = plan->providers[ix].name;
    char name[PLAN_ID_BYTES_MAX + 16];
    int len = snprintf(name, sizeof(name), "usage of %s", provider);
    if (plan_find_limit(plan, name) != PLAN_NONE) {
        REPORT(reader,
               node,
               "provider %s already has a usage monitor",
               QUOTED_TEXT(provider));
        return 0;
    }
    struct plan_limit limit = {
        .name = plan_intern(plan, name, (size_t)len),
        .max = PLAN_UNLIMITED,
        .kind = PLAN_LIMIT_USAGE,
        .where = plan_where(plan, "provider", provider),
        .where_count = 1,
        .mark = node_mark(node),
    };
    return plan_add_limit(plan, limit);
}

static void read_usage(struct reader *reader, const struct node *node)
{
#define USAGE(member, key, reader) FIELD(struct plan_usage, member, key, reader)
    static const struct field fields[] = {
        {USAGE(run, "run", fields_command)},
        {USAGE(agent, "agent", read_agent)},
        {USAGE(provider, "provider", settings_read_provider)},
        {USAGE(every_ns, "every", fields_duration), .min = 1},
        {USAGE(timeout_ns, "timeout", fields_duration), .min = 1},
        {USAGE(margin_ns, "margin", fields_duration)},
        {USAGE(probe_ns, "probe", fields_duration), .min = 1},
        {USAGE(probe_ns_max, "max_probe", fields_duration), .min = 1},
        {FIELD_OF_ALL("steps", read_steps)},
    };
    static const struct schema schema = SCHEMA("\"usage\"", fields);
    struct plan *plan = reader->plan;
    struct plan_usage *usage = &plan->usages[plan->usage_count++];
    *usage = (struct plan_usage){
        .agent = PLAN_NONE,
        .provider = PLAN_NONE,
        .every_ns = 5 * MINUTE_NS,
        .timeout_ns = MINUTE_NS,
        .margin_ns = MINUTE_NS,
        .probe_ns = 5 * MINUTE_NS,
        .probe_ns_max = 30 * MINUTE_NS,
    };
    (void)fields_read(reader, node, &schema, usage);
    check_source(reader, node, usage);
    if (usage->probe_ns_max < usage->probe_ns) {
        usage->probe_ns_max = usage->probe_ns;
    }
    if (usage->provider != PLAN_NONE) {
        usage->limit = add_usage_limit(reader, node, usage->provider);
    }
}

void plan_read_usages(struct reader *reader, const struct node *node)
{
    struct plan *plan = reader->plan;
    bool list = node->kind == NODE_LIST;
    if (list && node->count > MONITORS_MAX) {
        fields_expected(reader, node, "\"usage\"", "at most 100 monitors");
        return;
    }
    ARENA_ARRAY(&plan->private->arena, plan->usages, list ? node->count : 1);
    if (!list) {
        read_usage(reader, node);
        return;
    }
    for (const struct node *item = node_first(node); item != NULL;
         item = node_next(item)) {
        if (item->kind != NODE_BAD) {
            read_usage(reader, item);
        }
    }
}

void plan_check_usages(struct reader *reader, const struct node *node)
{
    const struct plan *plan = reader->plan;
    for (uint32_t ix = 0; ix < plan->usage_count; ix++) {
        uint32_t provider = plan->usages[ix].provider;
        bool known = provider == PLAN_NONE ||
                     provider < plan->private->declared_providers;
        for (uint32_t task = 0; task < plan->task_count && !known; task++) {
            known = plan->tasks[task].provider == provider;
        }
        if (!known) {
            REPORT(reader,
                   node,
                   "usage of provider %s: no task has this provider, "
                   "so it would have no effect",
                   QUOTED_TEXT(plan->providers[provider].name));
        }
    }
}

/* hooks */

/* Number of events in the table below. */
enum { HOOK_KINDS = 17 };

struct raw_hooks {
    struct plan_hook hooks[HOOK_KINDS];
};

static void read_hook(const struct entry *entry)
{
    static const struct field fields[] = {
        {FIELD(struct plan_hook, run, "run", fields_command), .required = true},
        {FIELD(struct plan_hook, timeout_ns, "timeout", fields_duration),
         .min = 1},
        {FIELD(struct plan_hook, retries, "retries", fields_number),
         .max = RETRIES_MAX},
    };
    static const struct schema schema = SCHEMA("a hook", fields);
    struct plan_hook *hook = entry->out;
    *hook = (struct plan_hook){
        .event = entry->field->name,
        .timeout_ns = 30 * SECOND_NS,
        .retries = 3,
    };
    if (entry->value->kind == NODE_MAPPING) {
        (void)fields_read(entry->reader, entry->value, &schema, hook);
    } else {
        struct entry run = *entry; /* so that errors name the event */
        run.out = &hook->run;
        fields_command(&run);
    }
}

void plan_read_hooks(struct reader *reader, const struct node *node)
{
#define HOOK(ix, name)                                                         \
    {                                                                          \
        FIELD(struct raw_hooks, hooks[ix], name, read_hook)                    \
    }
    static const struct field fields[] = {
        HOOK(0, "add-refused"),
        HOOK(1, "approval"),
        HOOK(2, "asked"),
        HOOK(3, "barrier-failed"),
        HOOK(4, "base-failed"),
        HOOK(5, "budget-reached"),
        HOOK(6, "circuit-open"),
        HOOK(7, "done"),
        HOOK(8, "failed"),
        HOOK(9, "parked"),
        HOOK(10, "provider-stopped"),
        HOOK(11, "run-finished"),
        HOOK(12, "run-stopped"),
        HOOK(13, "run-waiting"),
        HOOK(14, "usage-failed"),
        HOOK(15, "usage-paused"),
        HOOK(16, "usage-resumed"),
    };
    _Static_assert(ARRAY_COUNT(fields) == HOOK_KINDS, "one for each kind");
    static const struct schema schema = SCHEMA("\"hooks\"", fields);
    struct plan *plan = reader->plan;
    struct raw_hooks raw = {0};
    (void)fields_read(reader, node, &schema, &raw);
    plan->hooks =
        arena_alloc(&plan->private->arena, HOOK_KINDS, sizeof(plan->hooks[0]));
    for (size_t ix = 0; ix < HOOK_KINDS; ix++) {
        if (raw.hooks[ix].run.shell != NULL || raw.hooks[ix].run.argv != NULL) {
            plan->hooks[plan->hook_count++] = raw.hooks[ix];
        }
    }
}

/* budgets */

void plan_read_budget(struct reader *reader, const struct node *node)
{
    static const struct field field = {.name = "budget"};
    settings_read_cost(
        &(struct entry){reader, &field, node, &reader->plan->budget});
}

static void add_budget(struct plan *plan,
                       enum plan_limit_kind kind,
                       const char *class_name,
                       int64_t max)
{
    if (max == PLAN_UNSET) {
        return;
    }
    char name[PLAN_ID_BYTES_MAX + 32];
    int len = snprintf(name,
                       sizeof(name),
                       "%s budget%s%s",
                       kind == PLAN_LIMIT_BUDGET_USD ? "usd" : "tokens",
                       class_name != NULL ? " of " : "",
                       class_name != NULL ? class_name : "");
    struct plan_limit limit = {
        .name = plan_intern(plan, name, (size_t)len),
        .max = max,
        .kind = kind,
    };
    if (class_name != NULL) {
        limit.where = plan_where(plan, "class", class_name);
        limit.where_count = 1;
    }
    (void)plan_add_limit(plan, limit);
}

void plan_add_budgets(struct plan *plan)
{
    add_budget(plan, PLAN_LIMIT_BUDGET_USD, NULL, plan->budget.usd);
    add_budget(plan, PLAN_LIMIT_BUDGET_TOKENS, NULL, plan->budget.tokens);
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        const struct plan_class *class = &plan->classes[ix];
        add_budget(plan, PLAN_LIMIT_BUDGET_USD, class->name, class->budget.usd);
        add_budget(plan,
                   PLAN_LIMIT_BUDGET_TOKENS,
                   class->name,
                   class->budget.tokens);
    }
}

void plan_add_costs(struct plan *plan)
{
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        const struct plan_class *class = &plan->classes[ix];
        const struct plan_cost *both[] = {&plan->budget, &class->budget};
        char name[PLAN_ID_BYTES_MAX + 32];
        int len = snprintf(name, sizeof(name), "cost of %s", class->name);
        bool paid = false;
        for (size_t n = 0; n < ARRAY_COUNT(both); n++) {
            paid = paid || both[n]->usd != PLAN_UNSET ||
                   both[n]->tokens != PLAN_UNSET;
        }
        if (paid && plan_find_limit(plan, name) == PLAN_NONE) {
            (void)plan_add_limit(
                plan,
                (struct plan_limit){
                    .name = plan_intern(plan, name, (size_t)len),
                    .max = PLAN_UNLIMITED,
                    .kind = PLAN_LIMIT_COST,
                    .where = plan_where(plan, "class", class->name),
                    .where_count = 1,
                });
        }
    }
}

/* Check that each budget of a task covers its declared cost. */
static void check_cost(struct reader *reader,
                       const struct plan_task *task,
                       const char *what,
                       int64_t cost,
                       int64_t budget)
{
    if (cost != PLAN_UNSET && budget != PLAN_UNSET && cost > budget) {
        plan_errors_add(reader->errors,
                        task->mark,
                        "task %s costs more %s than %s and could never start",
                        QUOTED_TEXT(task->id),
                        what,
                        "its budget has");
    }
}

void plan_check_costs(struct reader *reader)
{
    const struct plan *plan = reader->plan;
    for (uint32_t ix = reader->before.tasks; ix < plan->task_count; ix++) {
        const struct plan_task *task = &plan->tasks[ix];
        const struct plan_cost *cost = &task->settings->cost;
        const struct plan_cost *budgets[] = {
            &plan->budget,
            &plan->classes[task->class_ix].budget,
            &task->settings->budget,
        };
        for (size_t n = 0; task->id != NULL && n < ARRAY_COUNT(budgets); n++) {
            check_cost(reader, task, "USD", cost->usd, budgets[n]->usd);
            check_cost(reader,
                       task,
                       "tokens",
                       cost->tokens,
                       budgets[n]->tokens);
        }
    }
}

/* Whether a cost is unknown although a budget depends on it. A session of an
 * agent is never free: a history of 0 means that none reported its cost. */
static bool
is_unknown(bool agent, int64_t budget, int64_t own, int64_t expected)
{
    return budget != PLAN_UNSET && own == PLAN_UNSET &&
           (expected == PLAN_UNSET || (agent && expected == 0));
}

bool plan_is_cost_unknown(const struct plan *plan, const struct plan_task *task)
{
    const struct plan_class *class = &plan->classes[task->class_ix];
    const struct plan_cost *budgets[] = {&plan->budget, &class->budget};
    const struct plan_cost *own = &task->settings->cost;
    const struct plan_cost *expected = &class->expected;
    bool agent = task->agent != PLAN_NONE;
    bool unknown = false;
    for (size_t n = 0; n < ARRAY_COUNT(budgets) && !task->merge; n++) {
        unknown = unknown ||
                  is_unknown(agent, budgets[n]->usd, own->usd, expected->usd) ||
                  is_unknown(agent,
                             budgets[n]->tokens,
                             own->tokens,
                             expected->tokens);
    }
    return unknown;
}

uint32_t plan_budget_units(const struct plan *plan,
                           const struct plan_limit *limit,
                           const struct plan_task *task)
{
    bool usd = limit->kind == PLAN_LIMIT_BUDGET_USD;
    if (!plan_is_paid(limit)) {
        return 0;
    }
    const char *name = plan->classes[task->class_ix].name;
    if (limit->where_count > 0 && limit->where[0].value != name) {
        return 0;
    }
    if (limit->kind == PLAN_LIMIT_COST) {
        return plan_is_cost_unknown(plan, task) ? 1 : 0;
    }
    struct plan_cost cost = plan_expected_cost(plan, task);
    int64_t units = usd ? cost.usd : cost.tokens;
    /* Even without a known cost, a task needs a budget that is not used up. */
    return units > 0 ? (uint32_t)units : 1;
}
