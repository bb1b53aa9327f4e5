/* SPDX-License-Identifier: MIT */
/*
 * settings: the settings of defaults, classes, groups, stages and tasks.
 *
 * Each level sets some of them; the nearest level wins, field by field. Each
 * field has a value for "not given" (PLAN_UNSET, PLAN_NONE, NULL).
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
    const char *owner; /* interned; see plan_intern() */
};

/* Return settings with no field given. */
struct settings settings_none(void);

/* Return the built-in defaults. */
struct settings settings_built_in(void);

/* Whether any field is given. */
bool settings_any(const struct settings *settings);

/* Fill the fields not given in *settings from `farther`. */
void settings_inherit(struct settings *settings,
                      const struct settings *farther);

/* Whether two tasks have equal settings. */
bool settings_are_same(const struct plan_settings *a,
                       const struct plan_settings *b);

/* Return the public form of settings with all fields decided. */
struct plan_settings settings_decided(const struct settings *settings);

/*
 * The number of setting keys for a struct schema: first the keys of a group,
 * then of an agent, then the budget of one task, which has another meaning in a
 * class.
 */
enum {
    SETTINGS_OF_GROUP = 17,
    SETTINGS_OF_CLASS = SETTINGS_OF_GROUP + 3,
    SETTINGS_OF_TASK = SETTINGS_OF_CLASS + 1,
};
extern const struct field settings_fields[SETTINGS_OF_TASK];

/* Readers for other tables: a struct plan_cost, an interned string, a provider
 * index, a struct plan_sandbox *. */
field_fn settings_read_cost;
field_fn settings_read_owner;
field_fn settings_read_provider;
field_fn plan_read_sandbox;

#endif /* PLAN_SETTINGS_H */
