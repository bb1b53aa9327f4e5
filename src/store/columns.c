/* SPDX-License-Identifier: MIT */
#include "store/columns.h"

#include "base/invariant.h"
#include "base/macros.h"

#include <string.h>

/* A column of the struct ROW, with the name of its member. */
#define COLUMN(type_, member, fixed_)                                          \
    {                                                                          \
        .name = #member,                                                       \
        .type = COLUMN_##type_,                                                \
        .fixed = (fixed_),                                                     \
        .offset = offsetof(struct ROW, member),                                \
        .size = sizeof(((struct ROW *)NULL)->member),                          \
    },
#define COLUMN_CHARS(bytes) COLUMN_CHARS
#define FIXED(type, member) COLUMN(type, member, true)
#define SET(type, member) COLUMN(type, member, false)

#define ROW store_run
static const struct column run_columns[] = {STORE_RUN_COLUMNS(FIXED, SET)};
#undef ROW
#define ROW store_fragment
static const struct column fragment_columns[] = {
    STORE_FRAGMENT_COLUMNS(FIXED, SET)};
#undef ROW
#define ROW store_limit
static const struct column limit_columns[] = {STORE_LIMIT_COLUMNS(FIXED, SET)};
#undef ROW
#define ROW store_provider
static const struct column provider_columns[] = {
    STORE_PROVIDER_COLUMNS(FIXED, SET)};
#undef ROW
#define ROW store_setting
static const struct column setting_columns[] = {
    STORE_SETTING_COLUMNS(FIXED, SET)};
#undef ROW
#define ROW store_task
static const struct column task_columns[] = {
    {
        .name = "key",
        .type = COLUMN_TASK,
        .fixed = true,
        .offset = offsetof(struct ROW, run),
        .size = 2 * sizeof(uint32_t),
    },
    STORE_TASK_COLUMNS(FIXED, SET)};
#undef ROW
#define ROW store_attempt
static const struct column attempt_columns[] = {
    STORE_ATTEMPT_COLUMNS(FIXED, SET)};
#undef ROW
#define ROW store_gate
static const struct column gate_columns[] = {STORE_GATE_COLUMNS(FIXED, SET)};
#undef ROW
#define ROW store_event
static const struct column event_columns[] = {STORE_EVENT_COLUMNS(FIXED, SET)};
#undef ROW
#define ROW store_command
static const struct column command_columns[] = {
    STORE_COMMAND_COLUMNS(FIXED, SET)};
#undef ROW

#define TABLE(name_, columns_, order_)                                         \
    {                                                                          \
        .name = (name_), .columns = (columns_),                                \
        .count = ARRAY_COUNT(columns_), .order = (order_),                     \
    }

static const struct column_table tables[] = {
    [STORE_KIND_RUN] = TABLE("run", run_columns, "number"),
    [STORE_KIND_FRAGMENT] = TABLE("fragment", fragment_columns, "run, number"),
    [STORE_KIND_LIMIT] = TABLE("run_limit", limit_columns, "run, name"),
    [STORE_KIND_PROVIDER] = TABLE("executor", provider_columns, "name"),
    [STORE_KIND_SETTING] = TABLE("setting", setting_columns, "name"),
    [STORE_KIND_TASK] = TABLE("task", task_columns, "key"),
    [STORE_KIND_ATTEMPT] = TABLE("attempt", attempt_columns, "token"),
    [STORE_KIND_GATE] = TABLE("gate", gate_columns, "token, place"),
    [STORE_KIND_COMMAND] = TABLE("command", command_columns, "number"),
    [STORE_KIND_EVENT] = TABLE("event", event_columns, "number"),
};

_Static_assert(ARRAY_COUNT(tables) == STORE_KINDS, "a table for each kind");

const struct column_table *columns_of(enum store_kind kind)
{
    INVARIANT(kind < STORE_KINDS);
    return &tables[kind];
}

enum store_kind columns_kind(enum store_change_type type)
{
    static const enum store_kind kinds[] = {
        [STORE_RUN_NEW] = STORE_KIND_RUN,
        [STORE_RUN_SET] = STORE_KIND_RUN,
        [STORE_FRAGMENT] = STORE_KIND_FRAGMENT,
        [STORE_LIMIT_SET] = STORE_KIND_LIMIT,
        [STORE_PROVIDER] = STORE_KIND_PROVIDER,
        [STORE_SETTING] = STORE_KIND_SETTING,
        [STORE_TASK_SET] = STORE_KIND_TASK,
        [STORE_CLAIM] = STORE_KIND_ATTEMPT,
        [STORE_ATTEMPT_SET] = STORE_KIND_ATTEMPT,
        [STORE_GATE] = STORE_KIND_GATE,
        [STORE_EVENT] = STORE_KIND_EVENT,
        [STORE_COMMAND] = STORE_KIND_COMMAND,
    };
    INVARIANT((size_t)type < ARRAY_COUNT(kinds));
    INVARIANT(type != STORE_PRUNE && kinds[type] < STORE_KINDS);
    return kinds[type];
}

bool columns_is_update(const struct store_change *change)
{
    return change->type == STORE_RUN_SET || change->type == STORE_ATTEMPT_SET ||
           (change->type == STORE_COMMAND && change->as.command.number > 0);
}

void columns_each_text(const struct column_table *table,
                       union store_row *row,
                       columns_text_fn fn,
                       void *ctx)
{
    for (uint32_t ix = 0; ix < table->count; ix++) {
        const struct column *column = &table->columns[ix];
        if (column->type != COLUMN_TEXT &&
            column->type != COLUMN_TEXT_OR_NULL) {
            continue;
        }
        const char *text;
        char *at = (char *)row + column->offset;
        INVARIANT(column->offset + sizeof(text) <= sizeof(*row));
        memcpy(&text, at, sizeof(text));
        INVARIANT(text != NULL || column->type == COLUMN_TEXT_OR_NULL);
        if (text != NULL) {
            text = fn(ctx, text);
            INVARIANT(text != NULL);
            memcpy(at, &text, sizeof(text));
        }
    }
}
