/* SPDX-License-Identifier: MIT */
/*
 * settings: what can be set in defaults, classes, groups, stages and tasks.
 *
 * Each place gives some of them; the nearest place wins, field by field. A
 * field that is not given has a value of its own for that (PLAN_UNSET,
 * PLAN_NONE, NULL).
 */
#ifndef PLAN_SETTINGS_H
#define PLAN_SETTINGS_H

#include "plan/fields.h"
#include "plan/plan.h"

#include <stdbool.h>
#include <stdint.h>

/* A plain value; starts as settings_none(). */
struct settings {
    struct plan_settings plan;
    uint32_t provider;
    uint32_t agent;
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

/*
 * The keys of settings, for a struct schema: those of a group, then those of
 * an agent, then the budget of one task, which means something else in a
 * class.
 */
enum {
    SETTINGS_OF_GROUP = 14,
    SETTINGS_OF_CLASS = SETTINGS_OF_GROUP + 3,
    SETTINGS_OF_TASK = SETTINGS_OF_CLASS + 1,
};
extern const struct field settings_fields[SETTINGS_OF_TASK];

/* Readers for other tables, of a struct plan_cost, a text kept once and the
 * index of a provider. */
field_fn settings_read_cost;
field_fn settings_read_owner;
field_fn settings_read_provider;

#endif /* PLAN_SETTINGS_H */
