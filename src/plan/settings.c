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
};

struct settings settings_none(void)
{
    return (struct settings){
        .estimate_ns = PLAN_UNSET,
        .timeout_ns = PLAN_UNSET,
        .idle_timeout_ns = PLAN_UNSET,
        .grace_ns = PLAN_UNSET,
        .checkpoint_after_ns = PLAN_UNSET,
        .retry_backoff_ns = PLAN_UNSET,
        .retry_backoff_ns_max = PLAN_UNSET,
        .checkpoint_max = PLAN_NONE,
        .retry_max = PLAN_NONE,
        .provider = PLAN_NONE,
        .agent = PLAN_NONE,
        .on_failure = SETTINGS_UNSET,
        .optional = SETTINGS_UNSET,
        .allow_empty = SETTINGS_UNSET,
        .add_max = PLAN_NONE,
        .add_depth = PLAN_NONE,
        .cost = PLAN_COST_UNSET,
        .budget = PLAN_COST_UNSET,
    };
}

struct settings settings_built_in(void)
{
    struct settings settings = settings_none();
    settings.timeout_ns = 120 * MINUTE_NS;
    settings.idle_timeout_ns = 20 * MINUTE_NS;
    settings.grace_ns = 10 * SECOND_NS;
    settings.retry_backoff_ns = 10 * SECOND_NS;
    settings.retry_backoff_ns_max = 5 * MINUTE_NS;
    settings.checkpoint_max = 3;
    settings.retry_max = 2;
    settings.on_failure = PLAN_ON_FAILURE_PARK;
    settings.optional = 0;
    settings.allow_empty = 0;
    settings.add_max = 100;
    settings.add_depth = 3;
    return settings;
}

bool settings_any(const struct settings *settings)
{
    return settings->estimate_ns != PLAN_UNSET ||
           settings->timeout_ns != PLAN_UNSET ||
           settings->idle_timeout_ns != PLAN_UNSET ||
           settings->grace_ns != PLAN_UNSET ||
           settings->checkpoint_after_ns != PLAN_UNSET ||
           settings->retry_backoff_ns != PLAN_UNSET ||
           settings->retry_backoff_ns_max != PLAN_UNSET ||
           settings->checkpoint_max != PLAN_NONE ||
           settings->retry_max != PLAN_NONE ||
           settings->provider != PLAN_NONE ||
           settings->on_failure != SETTINGS_UNSET ||
           settings->optional != SETTINGS_UNSET ||
           settings->allow_empty != SETTINGS_UNSET ||
           settings->add_max != PLAN_NONE || settings->add_depth != PLAN_NONE ||
           settings->cost.usd != PLAN_UNSET ||
           settings->cost.tokens != PLAN_UNSET ||
           settings->budget.usd != PLAN_UNSET ||
           settings->budget.tokens != PLAN_UNSET || settings->owner != NULL ||
           settings->prepare != NULL || settings->agent != PLAN_NONE ||
           settings->prompt != NULL || settings->prompt_file != NULL;
}

/* Take `from` into `into` where that is `unset`. */
#define INHERIT(member, unset)                                                 \
    do {                                                                       \
        if (settings->member == (unset)) {                                     \
            settings->member = farther->member;                                \
        }                                                                      \
    } while (0)

void settings_inherit(struct settings *settings, const struct settings *farther)
{
    INHERIT(estimate_ns, PLAN_UNSET);
    INHERIT(timeout_ns, PLAN_UNSET);
    INHERIT(idle_timeout_ns, PLAN_UNSET);
    INHERIT(grace_ns, PLAN_UNSET);
    INHERIT(checkpoint_after_ns, PLAN_UNSET);
    INHERIT(retry_backoff_ns, PLAN_UNSET);
    INHERIT(retry_backoff_ns_max, PLAN_UNSET);
    INHERIT(checkpoint_max, PLAN_NONE);
    INHERIT(retry_max, PLAN_NONE);
    INHERIT(provider, PLAN_NONE);
    INHERIT(agent, PLAN_NONE);
    INHERIT(on_failure, SETTINGS_UNSET);
    INHERIT(optional, SETTINGS_UNSET);
    INHERIT(allow_empty, SETTINGS_UNSET);
    INHERIT(add_max, PLAN_NONE);
    INHERIT(add_depth, PLAN_NONE);
    INHERIT(cost.usd, PLAN_UNSET);
    INHERIT(cost.tokens, PLAN_UNSET);
    INHERIT(budget.usd, PLAN_UNSET);
    INHERIT(budget.tokens, PLAN_UNSET);
    INHERIT(owner, NULL);
    INHERIT(prepare, NULL);
    if (settings->prompt == NULL && settings->prompt_file == NULL) {
        settings->prompt = farther->prompt;
        settings->prompt_file = farther->prompt_file;
    }
}

struct plan_settings settings_decided(const struct settings *settings)
{
    /* A back-off set at one place can be above a bound from farther away. */
    int64_t backoff_ns_max = settings->retry_backoff_ns_max;
    if (backoff_ns_max < settings->retry_backoff_ns) {
        backoff_ns_max = settings->retry_backoff_ns;
    }
    return (struct plan_settings){
        .estimate_ns = settings->estimate_ns,
        .timeout_ns = settings->timeout_ns,
        .idle_timeout_ns = settings->idle_timeout_ns,
        .grace_ns = settings->grace_ns,
        .checkpoint_after_ns = settings->checkpoint_after_ns,
        .checkpoint_max = settings->checkpoint_max,
        .retry_max = settings->retry_max,
        .retry_backoff_ns = settings->retry_backoff_ns,
        .retry_backoff_ns_max = backoff_ns_max,
        .on_failure = (enum plan_on_failure)settings->on_failure,
        .optional = settings->optional == 1,
        .allow_empty = settings->allow_empty == 1,
        .add_max = settings->add_max,
        .add_depth = settings->add_depth,
        .cost = settings->cost,
        .budget = settings->budget,
    };
}

void settings_read_checkpoint(struct reader *reader,
                              const struct field *field,
                              const struct node *value,
                              void *target)
{
    static const struct field fields[] = {
        {FIELD_AT(struct settings, checkpoint_after_ns, "after"),
         .read = fields_duration,
         .min = 1},
        {FIELD_AT(struct settings, checkpoint_max, "max"),
         .read = fields_number,
         .min = 1,
         .max = CHECKPOINTS_MAX},
    };
    static const struct schema schema = SCHEMA("\"checkpoint\"", fields);
    if (fields_is_word(value, "none")) {
        struct settings *settings = (void *)((char *)target + field->base);
        settings->checkpoint_after_ns = PLAN_UNLIMITED;
        return;
    }
    if (value->kind != NODE_MAPPING) {
        fields_expected(reader,
                        value,
                        "\"checkpoint\"",
                        "a mapping with after and max, or none");
        return;
    }
    (void)fields_read(reader, value, &schema, (char *)target + field->base);
}

void settings_read_retry(struct reader *reader,
                         const struct field *field,
                         const struct node *value,
                         void *target)
{
    static const struct field fields[] = {
        {FIELD_AT(struct settings, retry_max, "max"),
         .read = fields_number,
         .max = TRIES_MAX},
        {FIELD_AT(struct settings, retry_backoff_ns, "backoff"),
         .read = fields_duration},
        {FIELD_AT(struct settings, retry_backoff_ns_max, "max_backoff"),
         .read = fields_duration},
    };
    static const struct schema schema = SCHEMA("\"retry\"", fields);
    struct settings *settings = (void *)((char *)target + field->base);
    int64_t number = 0;
    if (fields_parse_number(value, &number) && number <= TRIES_MAX) {
        settings->retry_max = (uint32_t)number;
    } else if (value->kind == NODE_MAPPING) {
        struct settings own = settings_none();
        (void)fields_read(reader, value, &schema, &own);
        if (own.retry_backoff_ns != PLAN_UNSET &&
            own.retry_backoff_ns_max != PLAN_UNSET &&
            own.retry_backoff_ns_max < own.retry_backoff_ns) {
            plan_errors_add(reader->errors,
                            node_mark(value),
                            "\"max_backoff\" is less than \"backoff\"");
        }
        settings_inherit(&own, settings);
        *settings = own;
    } else {
        fields_expected(reader,
                        value,
                        "\"retry\"",
                        "a number from 0 to 1000, or a mapping with max, "
                        "backoff and max_backoff");
    }
}

void settings_read_add(struct reader *reader,
                       const struct field *field,
                       const struct node *value,
                       void *target)
{
    static const struct field fields[] = {
        {FIELD_AT(struct settings, add_max, "max"),
         .read = fields_number,
         .max = PLAN_UNITS_MAX},
        {FIELD_AT(struct settings, add_depth, "depth"),
         .read = fields_number,
         .max = ADD_DEPTH_MAX},
    };
    static const struct schema schema = SCHEMA("\"add\"", fields);
    if (value->kind != NODE_MAPPING) {
        fields_expected(reader,
                        value,
                        "\"add\"",
                        "a mapping with max and depth");
        return;
    }
    (void)fields_read(reader, value, &schema, (char *)target + field->base);
}

/*
 * A number that may have a fraction and, with `suffix`, end in k, M or G, in
 * units of 1 / scale; false: it is none, or more than `max` units.
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
        return false; /* neither 1e3 nor 0x10 */
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

static void read_usd(struct reader *reader,
                     const struct field *field,
                     const struct node *value,
                     void *target)
{
    int64_t *out = (void *)((char *)target + field->offset);
    if (value->kind != NODE_PLAIN || !plan_parse_usd(value->text, out)) {
        fields_expected(reader,
                        value,
                        "\"usd\"",
                        "a number of dollars up to 100000, such as 20 or 0.5");
    }
}

static void read_tokens(struct reader *reader,
                        const struct field *field,
                        const struct node *value,
                        void *target)
{
    int64_t *out = (void *)((char *)target + field->offset);
    if (!fields_is_bare(value) || !plan_parse_tokens(value->text, out)) {
        fields_expected(reader,
                        value,
                        "\"tokens\"",
                        "a number up to 1G, such as 200000, 500k or 1.5M");
    }
}

void settings_read_cost(struct reader *reader,
                        const struct field *field,
                        const struct node *value,
                        void *target)
{
    static const struct field fields[] = {
        {FIELD_AT(struct plan_cost, usd, "usd"), .read = read_usd},
        {FIELD_AT(struct plan_cost, tokens, "tokens"), .read = read_tokens},
    };
    if (value->kind != NODE_MAPPING) {
        fields_expected(reader,
                        value,
                        QUOTED_TEXT(field->name),
                        "a mapping with usd, tokens or both");
        return;
    }
    struct schema schema = SCHEMA(field->name, fields);
    (void)fields_read(reader, value, &schema, (char *)target + field->offset);
}

void settings_read_on_failure(struct reader *reader,
                              const struct field *field,
                              const struct node *value,
                              void *target)
{
    static const char *const names[] = {
        [PLAN_ON_FAILURE_PARK] = "park",
        [PLAN_ON_FAILURE_ABORT] = "abort",
        [PLAN_ON_FAILURE_SKIP] = "skip",
        [PLAN_ON_FAILURE_ASK] = "ask",
    };
    int *out = (void *)((char *)target + field->offset);
    for (int ix = 0; ix < (int)ARRAY_COUNT(names); ix++) {
        if (node_is_scalar(value) && strcmp(value->text, names[ix]) == 0) {
            *out = ix;
            return;
        }
    }
    fields_expected(reader,
                    value,
                    "\"on_failure\"",
                    "park, skip, ask or abort");
}

void settings_read_switch(struct reader *reader,
                          const struct field *field,
                          const struct node *value,
                          void *target)
{
    int *out = (void *)((char *)target + field->offset);
    if (fields_is_word(value, "true")) {
        *out = 1;
    } else if (fields_is_word(value, "false")) {
        *out = 0;
    } else {
        fields_expected(reader,
                        value,
                        QUOTED_TEXT(field->name),
                        "true or false");
    }
}

void settings_read_owner(struct reader *reader,
                         const struct field *field,
                         const struct node *value,
                         void *target)
{
    const char **out = (void *)((char *)target + field->offset);
    if (fields_check_line(reader, value, "\"owner\"", PLAN_ID_BYTES_MAX)) {
        *out = plan_intern(reader->plan, value->text, value->count);
    }
}

void settings_read_agent(struct reader *reader,
                         const struct field *field,
                         const struct node *value,
                         void *target)
{
    uint32_t *out = (void *)((char *)target + field->offset);
    uint32_t agent = plan_resolve_agent(reader, value);
    if (agent != PLAN_NONE) {
        *out = agent;
    }
}

void settings_read_prompt(struct reader *reader,
                          const struct field *field,
                          const struct node *value,
                          void *target)
{
    char bad[64];
    fields_text(reader, field, value, target);
    if (node_is_scalar(value) &&
        !template_check(value->text, bad, sizeof(bad))) {
        plan_errors_add(
            reader->errors,
            node_mark(value),
            "\"prompt\" has an unknown placeholder {{%s}}; known: %s",
            bad,
            template_names);
    }
}

void settings_read_provider(struct reader *reader,
                            const struct field *field,
                            const struct node *value,
                            void *target)
{
    uint32_t *out = (void *)((char *)target + field->offset);
    uint32_t provider = plan_resolve_provider(reader, value);
    if (provider != PLAN_NONE) {
        *out = provider;
    }
}
