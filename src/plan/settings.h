/* SPDX-License-Identifier: MIT */
/*
 * settings: what can be set in defaults, classes, groups, stages and tasks.
 *
 * Each place gives some of them; the nearest place wins, field by field. A
 * field that is not given has a value of its own for that (PLAN_UNSET,
 * PLAN_NONE, SETTINGS_UNSET, NULL).
 */
#ifndef PLAN_SETTINGS_H
#define PLAN_SETTINGS_H

#include "plan/fields.h"
#include "plan/plan.h"

#include <stdbool.h>
#include <stdint.h>

enum { SETTINGS_UNSET = -1 };

/* A plain value; starts as settings_none(). */
struct settings {
    int64_t estimate_ns;
    int64_t timeout_ns;
    int64_t idle_timeout_ns;
    int64_t grace_ns;
    int64_t checkpoint_after_ns;
    int64_t retry_backoff_ns;
    int64_t retry_backoff_ns_max;
    uint32_t checkpoint_max;
    uint32_t retry_max;
    uint32_t provider;
    uint32_t agent;
    int on_failure;  /* enum plan_on_failure, or SETTINGS_UNSET */
    int optional;    /* 0, 1 or SETTINGS_UNSET */
    int allow_empty; /* 0, 1 or SETTINGS_UNSET */
    uint32_t add_max;
    uint32_t add_depth;
    struct plan_cost cost;
    struct plan_cost budget;
    const char *owner; /* kept once; see plan_intern() */
    const char *prepare;
    const char *prompt;
    const char *prompt_file;
};

/* Nothing given. */
struct settings settings_none(void);

/* What holds where the plan says nothing. */
struct settings settings_built_in(void);

/* Whether anything is given. */
bool settings_any(const struct settings *settings);

/* Take from `farther` what is not given in *settings. */
void settings_inherit(struct settings *settings,
                      const struct settings *farther);

/* The public form of settings in which everything was decided. */
struct plan_settings settings_decided(const struct settings *settings);

/* Readers of the keys; their target is a struct settings. */
void settings_read_checkpoint(struct reader *reader,
                              const struct field *field,
                              const struct node *value,
                              void *target);
void settings_read_add(struct reader *reader,
                       const struct field *field,
                       const struct node *value,
                       void *target);
/* The target is a struct plan_cost. */
void settings_read_cost(struct reader *reader,
                        const struct field *field,
                        const struct node *value,
                        void *target);
void settings_read_on_failure(struct reader *reader,
                              const struct field *field,
                              const struct node *value,
                              void *target);
void settings_read_switch(struct reader *reader,
                          const struct field *field,
                          const struct node *value,
                          void *target);
void settings_read_owner(struct reader *reader,
                         const struct field *field,
                         const struct node *value,
                         void *target);
void settings_read_provider(struct reader *reader,
                            const struct field *field,
                            const struct node *value,
                            void *target);
void settings_read_agent(struct reader *reader,
                         const struct field *field,
                         const struct node *value,
                         void *target);
void settings_read_prompt(struct reader *reader,
                          const struct field *field,
                          const struct node *value,
                          void *target);
void settings_read_retry(struct reader *reader,
                         const struct field *field,
                         const struct node *value,
                         void *target);

/* The keys of settings, for the table of a mapping that has `member`. */
#define SETTINGS_AT(type, member, field, key)                                  \
    .name = (key), .len = sizeof(key) - 1,                                     \
    .offset = offsetof(type, member) + offsetof(struct settings, field)
#define SETTINGS_FIELDS(type, member)                                          \
    {SETTINGS_AT(type, member, retry_max, "retry"),                            \
     .read = settings_read_retry,                                              \
     .base = offsetof(type, member)},                                          \
        {SETTINGS_AT(type, member, timeout_ns, "timeout"),                     \
         .read = fields_duration,                                              \
         .min = 1},                                                            \
        {SETTINGS_AT(type, member, idle_timeout_ns, "idle_timeout"),           \
         .read = fields_duration,                                              \
         .min = 1},                                                            \
        {SETTINGS_AT(type, member, grace_ns, "grace"),                         \
         .read = fields_duration},                                             \
        {SETTINGS_AT(type, member, estimate_ns, "estimate"),                   \
         .read = fields_duration},                                             \
        {SETTINGS_AT(type, member, checkpoint_max, "checkpoint"),              \
         .read = settings_read_checkpoint,                                     \
         .base = offsetof(type, member)},                                      \
        {SETTINGS_AT(type, member, on_failure, "on_failure"),                  \
         .read = settings_read_on_failure},                                    \
        {SETTINGS_AT(type, member, optional, "optional"),                      \
         .read = settings_read_switch},                                        \
        {SETTINGS_AT(type, member, allow_empty, "allow_empty"),                \
         .read = settings_read_switch},                                        \
        {SETTINGS_AT(type, member, add_max, "add"),                            \
         .read = settings_read_add,                                            \
         .base = offsetof(type, member)},                                      \
        {SETTINGS_AT(type, member, cost, "cost"), .read = settings_read_cost}, \
        {SETTINGS_AT(type, member, provider, "provider"),                      \
         .read = settings_read_provider},                                      \
        {SETTINGS_AT(type, member, owner, "owner"),                            \
         .read = settings_read_owner},                                         \
    {                                                                          \
        SETTINGS_AT(type, member, prepare, "prepare"), .read = fields_shell    \
    }

/* The keys of an agent, for tables of what can be a session. */
#define SETTINGS_AGENT_FIELDS(type, member)                                    \
    {SETTINGS_AT(type, member, agent, "agent"), .read = settings_read_agent},  \
        {SETTINGS_AT(type, member, prompt, "prompt"),                          \
         .read = settings_read_prompt,                                         \
         .max = PLAN_TEXT_BYTES_MAX},                                          \
    {                                                                          \
        SETTINGS_AT(type, member, prompt_file, "prompt_file"),                 \
            .read = fields_line, .max = PLAN_PATH_BYTES_MAX                    \
    }

#endif /* PLAN_SETTINGS_H */
