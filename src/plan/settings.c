/* SPDX-License-Identifier: MIT */
#include "plan/settings.h"

#include "adapter/template.h"
#include "base/duration.h"
#include "plan/plan_internal.h"

#include <stdlib.h>
#include <string.h>

enum {
    TRIES_MAX = 1000,
    CHECKPOINTS_MAX = 1000,
    ADD_DEPTH_MAX = 100,
    SWITCH_UNSET = -1,
};
#define CAUSES_WANTED "a list of exit, signal, timeout, idle and lost"
#define ON_FAILURE_UNSET ((enum plan_on_failure)SWITCH_UNSET)

/* All members with their values for "not given"; except the prompt and its
 * file, of which only one is given, and members that belong to another. */
#define MEMBERS(EACH)                                                          \
    EACH(plan.estimate_ns, PLAN_UNSET)                                         \
    EACH(plan.timeout_ns, PLAN_UNSET)                                          \
    EACH(plan.idle_timeout_ns, PLAN_UNSET)                                     \
    EACH(plan.grace_ns, PLAN_UNSET)                                            \
    EACH(plan.checkpoint_after_ns, PLAN_UNSET)                                 \
    EACH(plan.retry_backoff_ns, PLAN_UNSET)                                    \
    EACH(plan.retry_backoff_ns_max, PLAN_UNSET)                                \
    EACH(plan.checkpoint_max, PLAN_NONE)                                       \
    EACH(plan.retry_max, PLAN_NONE)                                            \
    EACH(plan.retry_on, 0)                                                     \
    EACH(plan.priority, PLAN_NONE)                                             \
    EACH(provider, PLAN_NONE)                                                  \
    EACH(agent, PLAN_NONE)                                                     \
    EACH(plan.on_failure, ON_FAILURE_UNSET)                                    \
    EACH(plan.optional, SWITCH_UNSET)                                          \
    EACH(plan.allow_empty, SWITCH_UNSET)                                       \
    EACH(plan.add_max, PLAN_NONE)                                              \
    EACH(plan.add_depth, PLAN_NONE)                                            \
    EACH(plan.cost.usd, PLAN_UNSET)                                            \
    EACH(plan.cost.tokens, PLAN_UNSET)                                         \
    EACH(plan.budget.usd, PLAN_UNSET)                                          \
    EACH(plan.budget.tokens, PLAN_UNSET)                                       \
    EACH(plan.sandbox, NULL)                                                   \
    EACH(plan.worker, NULL)                                                    \
    EACH(owner, NULL)                                                          \
    EACH(plan.prepare, NULL)

struct settings settings_none(void)
{
#define UNSET(member, unset) .member = (unset),
    return (struct settings){MEMBERS(UNSET)};
}

struct settings settings_built_in(void)
{
    struct settings settings = settings_none();
    struct plan_settings *plan = &settings.plan;
    plan->timeout_ns = 120 * MINUTE_NS;
    plan->idle_timeout_ns = 20 * MINUTE_NS;
    plan->grace_ns = 10 * SECOND_NS;
    plan->retry_backoff_ns = 10 * SECOND_NS;
    plan->retry_backoff_ns_max = 5 * MINUTE_NS;
    plan->checkpoint_max = 3;
    plan->retry_max = 2;
    plan->retry_on = PLAN_CAUSES_ALL;
    plan->priority = PLAN_PRIORITY;
    plan->on_failure = PLAN_ON_FAILURE_PARK;
    plan->optional = 0;
    plan->allow_empty = 0;
    plan->add_max = 100;
    plan->add_depth = 3;
    return settings;
}

bool settings_any(const struct settings *settings)
{
#define IS_GIVEN(member, unset) settings->member != (unset) ||
    return MEMBERS(IS_GIVEN) settings->plan.prompt != NULL ||
           settings->plan.prompt_file != NULL;
}

void settings_inherit(struct settings *settings, const struct settings *farther)
{
    if (settings->plan.prepare == NULL) {
        settings->plan.prepare_once = farther->plan.prepare_once;
    }
#define INHERIT(member, unset)                                                 \
    if (settings->member == (unset)) {                                         \
        settings->member = farther->member;                                    \
    }
    MEMBERS(INHERIT)
    if (settings->plan.prompt == NULL && settings->plan.prompt_file == NULL) {
        settings->plan.prompt = farther->plan.prompt;
        settings->plan.prompt_file = farther->plan.prompt_file;
    }
}

bool settings_are_same(const struct plan_settings *a,
                       const struct plan_settings *b)
{
    const struct settings one = {.plan = *a};
    const struct settings two = {.plan = *b};
#define IS_SAME(member, unset) one.member == two.member &&
    return MEMBERS(IS_SAME) a->prompt == b->prompt &&
           a->prompt_file == b->prompt_file &&
           a->prepare_once == b->prepare_once;
}

struct plan_settings settings_decided(const struct settings *settings)
{
    struct plan_settings plan = settings->plan;
    /* A back-off of a near level can exceed the maximum of a farther level. */
    if (plan.retry_backoff_ns_max < plan.retry_backoff_ns) {
        plan.retry_backoff_ns_max = plan.retry_backoff_ns;
    }
    if (plan.sandbox != NULL && !plan.sandbox->on) {
        plan.sandbox = NULL;
    }
    return plan;
}

static void read_checkpoint(const struct entry *entry)
{
    static const struct field fields[] = {
        {FIELD(struct plan_settings,
               checkpoint_after_ns,
               "after",
               fields_duration),
         .min = 1},
        {FIELD(struct plan_settings, checkpoint_max, "max", fields_number),
         .min = 1,
         .max = CHECKPOINTS_MAX},
    };
    static const struct schema schema = SCHEMA("\"checkpoint\"", fields);
    struct plan_settings *settings = entry->out;
    if (fields_is_word(entry->value, "none")) {
        settings->checkpoint_after_ns = PLAN_UNLIMITED;
    } else if (entry->value->kind != NODE_MAPPING) {
        fields_wrong(entry, "a mapping with after and max, or none");
    } else {
        (void)fields_read(entry->reader, entry->value, &schema, settings);
    }
}

/* Read a list of causes of failures as a set. */
static void read_causes(const struct entry *entry)
{
    static const char *const names[] = {"exit",
                                        "signal",
                                        "timeout",
                                        "idle",
                                        "lost"};
    uint32_t set = 0;
    if (entry->value->kind != NODE_LIST || entry->value->count == 0) {
        fields_wrong(entry, CAUSES_WANTED);
        return;
    }
    for (const struct node *item = node_first(entry->value); item != NULL;
         item = node_next(item)) {
        uint32_t ix = fields_find_word(item, names, ARRAY_COUNT(names));
        if (ix < ARRAY_COUNT(names)) {
            set |= UINT32_C(1) << ix;
        } else if (node_is_scalar(item)) {
            REPORT(entry->reader,
                   item,
                   "unknown cause %s: \"on\" must be " CAUSES_WANTED,
                   QUOTED(item));
        } else {
            fields_expected(entry->reader, item, "\"on\"", CAUSES_WANTED);
        }
    }
    if (set != 0) {
        *(uint32_t *)entry->out = set;
    }
}

static void read_retry(const struct entry *entry)
{
    static const struct field fields[] = {
        {FIELD(struct plan_settings, retry_max, "max", fields_number),
         .max = TRIES_MAX},
        {FIELD(struct plan_settings,
               retry_backoff_ns,
               "backoff",
               fields_duration)},
        {FIELD(struct plan_settings,
               retry_backoff_ns_max,
               "max_backoff",
               fields_duration)},
        {FIELD(struct plan_settings, retry_on, "on", read_causes)},
    };
    static const struct schema schema = SCHEMA("\"retry\"", fields);
    struct plan_settings *settings = entry->out;
    int64_t number = 0;
    if (fields_parse_number(entry->value, &number) && number <= TRIES_MAX) {
        settings->retry_max = (uint32_t)number;
    } else if (entry->value->kind == NODE_MAPPING) {
        (void)fields_read(entry->reader, entry->value, &schema, settings);
        if (settings->retry_backoff_ns != PLAN_UNSET &&
            settings->retry_backoff_ns_max != PLAN_UNSET &&
            settings->retry_backoff_ns_max < settings->retry_backoff_ns) {
            REPORT(entry->reader,
                   entry->value,
                   "\"max_backoff\" is less than \"backoff\"");
        }
    } else {
        fields_wrong(entry,
                     "a number from 0 to 1000, or a mapping with max, backoff, "
                     "max_backoff and on");
    }
}

static void read_add(const struct entry *entry)
{
    static const struct field fields[] = {
        {FIELD(struct plan_settings, add_max, "max", fields_number),
         .max = PLAN_UNITS_MAX},
        {FIELD(struct plan_settings, add_depth, "depth", fields_number),
         .max = ADD_DEPTH_MAX},
    };
    static const struct schema schema = SCHEMA("\"add\"", fields);
    if (entry->value->kind != NODE_MAPPING) {
        fields_wrong(entry, "a mapping with max and depth");
        return;
    }
    (void)fields_read(entry->reader, entry->value, &schema, entry->out);
}

/*
 * Parse a number that may have a fraction and, with `suffix`, a suffix k, M or
 * G, in units of 1 / scale; false if invalid or above `max` units.
 */
static bool parse_amount(const char *text,
                         double scale,
                         bool suffix,
                         int64_t max,
                         int64_t *out)
{
    char *end;
    double number = strtod(text, &end) * scale;
    if (*text < '0' || *text > '9' ||
        end != text + strspn(text, "0123456789.")) {
        return false; /* reject 1e3 and 0x10 */
    }
    if (suffix && *end != '\0') {
        number *= *end == 'k' ? 1e3 : *end == 'M' ? 1e6 : 1e9;
        end += strchr("kMG", *end) != NULL ? 1 : 0;
    }
    if (*end != '\0' || number > (double)max) {
        return false;
    }
    *out = (int64_t)(number + 0.5);
    return true;
}

bool plan_parse_usd(const char *text, int64_t *out)
{
    return parse_amount(text, PLAN_USD, false, PLAN_USD_MAX, out);
}

bool plan_parse_tokens(const char *text, int64_t *out)
{
    return parse_amount(text, 1, true, PLAN_TOKENS_MAX, out);
}

static void read_usd(const struct entry *entry)
{
    if (entry->value->kind != NODE_PLAIN ||
        !plan_parse_usd(entry->value->text, entry->out)) {
        fields_wrong(entry,
                     "a number of dollars up to 100000, such as 20 or 0.5");
    }
}

static void read_tokens(const struct entry *entry)
{
    if (!fields_is_bare(entry->value) ||
        !plan_parse_tokens(entry->value->text, entry->out)) {
        fields_wrong(entry, "a number up to 1G, such as 200000, 500k or 1.5M");
    }
}

void settings_read_cost(const struct entry *entry)
{
    static const struct field fields[] = {
        {FIELD(struct plan_cost, usd, "usd", read_usd)},
        {FIELD(struct plan_cost, tokens, "tokens", read_tokens)},
    };
    struct schema schema = SCHEMA(entry->field->name, fields);
    if (entry->value->kind != NODE_MAPPING) {
        fields_wrong(entry, "a mapping with usd, tokens or both");
        return;
    }
    (void)fields_read(entry->reader, entry->value, &schema, entry->out);
}

static void read_on_failure(const struct entry *entry)
{
    static const char *const names[] = {
        [PLAN_ON_FAILURE_PARK] = "park",
        [PLAN_ON_FAILURE_ABORT] = "abort",
        [PLAN_ON_FAILURE_SKIP] = "skip",
        [PLAN_ON_FAILURE_ASK] = "ask",
        [PLAN_ON_FAILURE_STOP] = "stop",
    };
    uint32_t ix = fields_find_word(entry->value, names, ARRAY_COUNT(names));
    if (ix == ARRAY_COUNT(names)) {
        fields_wrong(entry, "park, skip, ask, stop or abort");
        return;
    }
    *(enum plan_on_failure *)entry->out = (enum plan_on_failure)ix;
}

/* Read a bool that may be SWITCH_UNSET. */
static void read_switch(const struct entry *entry)
{
    int *out = entry->out;
    if (fields_is_word(entry->value, "true")) {
        *out = 1;
    } else if (fields_is_word(entry->value, "false")) {
        *out = 0;
    } else {
        fields_wrong(entry, "true or false");
    }
}

void settings_read_owner(const struct entry *entry)
{
    const struct node *value = entry->value;
    if (fields_check_line(entry->reader,
                          value,
                          "\"owner\"",
                          PLAN_ID_BYTES_MAX)) {
        *(const char **)entry->out =
            plan_intern(entry->reader->plan, value->text, value->count);
    }
}

static void read_agent(const struct entry *entry)
{
    uint32_t agent = plan_resolve_agent(entry->reader, entry->value);
    if (agent != PLAN_NONE) {
        *(uint32_t *)entry->out = agent;
    }
}

static void read_prompt(const struct entry *entry)
{
    char bad[64];
    fields_text(entry);
    if (node_is_scalar(entry->value) &&
        !template_check(entry->value->text, bad, sizeof(bad))) {
        REPORT(entry->reader,
               entry->value,
               "\"prompt\" has an unknown placeholder {{%s}}; known: %s",
               bad,
               template_names);
    }
}

/* A label of workers. */
static void read_worker(const struct entry *entry)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const char *text = entry->value->text;
    if (!node_is_scalar(entry->value) || text[0] == '\0' ||
        strlen(text) > PLAN_LABEL_BYTES_MAX ||
        text[strspn(text, letters)] != '\0') {
        fields_wrong(entry,
                     "the name or a label of workers: letters, digits, \".\", "
                     "\"_\" and \"-\"");
        return;
    }
    *(const char **)entry->out =
        plan_intern(entry->reader->plan, text, strlen(text));
}

static void read_where(const struct entry *entry)
{
    struct place {
        const char *worker;
    };
    static const struct field fields[] = {
        {FIELD(struct place, worker, "worker", read_worker)},
    };
    struct schema schema = SCHEMA("where", fields);
    struct place place = {0};
    if (entry->value->kind != NODE_MAPPING) {
        fields_wrong(entry, "a mapping with worker, such as {worker: gpu}");
        return;
    }
    (void)fields_read(entry->reader, entry->value, &schema, &place);
    *(const char **)entry->out = place.worker;
}

void settings_read_provider(const struct entry *entry)
{
    uint32_t provider = plan_resolve_provider(entry->reader, entry->value);
    if (provider != PLAN_NONE) {
        *(uint32_t *)entry->out = provider;
    }
}

#define SETTING(member, key, reader) FIELD(struct settings, member, key, reader)

const struct field settings_fields[] = {
    {FIELD_OF_ALL("retry", read_retry)},
    {SETTING(plan.timeout_ns, "timeout", fields_duration), .min = 1},
    {SETTING(plan.idle_timeout_ns, "idle_timeout", fields_duration), .min = 1},
    {SETTING(plan.grace_ns, "grace", fields_duration)},
    {SETTING(plan.estimate_ns, "estimate", fields_duration)},
    {SETTING(plan.priority, "priority", fields_number),
     .max = PLAN_PRIORITY_MAX},
    {FIELD_OF_ALL("checkpoint", read_checkpoint)},
    {SETTING(plan.on_failure, "on_failure", read_on_failure)},
    {SETTING(plan.optional, "optional", read_switch)},
    {SETTING(plan.allow_empty, "allow_empty", read_switch)},
    {FIELD_OF_ALL("add", read_add)},
    {SETTING(plan.cost, "cost", settings_read_cost)},
    {SETTING(provider, "provider", settings_read_provider)},
    {SETTING(owner, "owner", settings_read_owner)},
    {FIELD_OF_ALL("prepare", plan_read_prepare)},
    {SETTING(plan.sandbox, "sandbox", plan_read_sandbox)},
    {SETTING(plan.worker, "where", read_where)},
    /* of an agent */
    {SETTING(agent, "agent", read_agent)},
    {SETTING(plan.prompt, "prompt", read_prompt), .max = PLAN_TEXT_BYTES_MAX},
    {SETTING(plan.prompt_file, "prompt_file", fields_line),
     .max = PLAN_PATH_BYTES_MAX},
    /* of a task */
    {SETTING(plan.budget, "budget", settings_read_cost)},
};
_Static_assert(ARRAY_COUNT(settings_fields) == SETTINGS_OF_TASK, "one each");
