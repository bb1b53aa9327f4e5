/* SPDX-License-Identifier: MIT */
#include "store/columns.h"

#include "base/invariant.h"
#include "base/macros.h"

#include <string.h>

/* A column that has the name of its member. */
#define COLUMN(struct_, member, type_, fixed_)                                 \
    {                                                                          \
        .name = #member, .type = (type_), .fixed = (fixed_),                   \
        .offset = offsetof(struct struct_, member),                            \
        .size = sizeof(((struct struct_ *)NULL)->member),                      \
    }

static const struct column run_columns[] = {
    COLUMN(store_run, number, COLUMN_U32, true),
    COLUMN(store_run, id, COLUMN_TEXT, true),
    COLUMN(store_run, name, COLUMN_TEXT, true),
    COLUMN(store_run, file, COLUMN_TEXT, true),
    COLUMN(store_run, folder, COLUMN_TEXT, true),
    COLUMN(store_run, processors, COLUMN_U32, true),
    COLUMN(store_run, created_ns, COLUMN_I64, true),
    COLUMN(store_run, finished, COLUMN_BOOL, false),
    COLUMN(store_run, paused, COLUMN_BOOL, false),
    COLUMN(store_run, cancelled, COLUMN_BOOL, false),
    COLUMN(store_run, barrier, COLUMN_U32, false),
    COLUMN(store_run, completions, COLUMN_U32, false),
};

static const struct column fragment_columns[] = {
    COLUMN(store_fragment, run, COLUMN_U32, true),
    COLUMN(store_fragment, number, COLUMN_U32, true),
    COLUMN(store_fragment, file, COLUMN_TEXT, true),
    COLUMN(store_fragment, text, COLUMN_BYTES, true),
};

static const struct column limit_columns[] = {
    COLUMN(store_limit, run, COLUMN_U32, true),
    COLUMN(store_limit, name, COLUMN_TEXT, true),
    COLUMN(store_limit, max, COLUMN_I64, false),
    COLUMN(store_limit, percent, COLUMN_U32, false),
};

static const struct column provider_columns[] = {
    COLUMN(store_provider, name, COLUMN_TEXT, true),
    COLUMN(store_provider, steps, COLUMN_U32, false),
    COLUMN(store_provider, steps_kept, COLUMN_U32, false),
    COLUMN(store_provider, confirming, COLUMN_BOOL, false),
    COLUMN(store_provider, shut_until_ns, COLUMN_I64, false),
    COLUMN(store_provider, usage, COLUMN_BOOL, false),
    COLUMN(store_provider, failures, COLUMN_U32, false),
    COLUMN(store_provider, circuit_open, COLUMN_BOOL, false),
    COLUMN(store_provider, probe_token, COLUMN_U64, false),
    COLUMN(store_provider, probe_steps, COLUMN_U32, false),
    COLUMN(store_provider, probe_at_ns, COLUMN_I64, false),
    COLUMN(store_provider, stopped, COLUMN_BOOL, false),
    COLUMN(store_provider, reason, COLUMN_TEXT_OR_NULL, false),
};

static const struct column setting_columns[] = {
    COLUMN(store_setting, name, COLUMN_TEXT, true),
    COLUMN(store_setting, value, COLUMN_TEXT_OR_NULL, false),
};

static const struct column task_columns[] = {
    {
        .name = "key",
        .type = COLUMN_TASK,
        .fixed = true,
        .offset = offsetof(struct store_task, run),
        .size = 2 * sizeof(uint32_t),
    },
    COLUMN(store_task, id, COLUMN_TEXT, false),
    COLUMN(store_task, state, COLUMN_TEXT, false),
    COLUMN(store_task, flags, COLUMN_U32, false),
    COLUMN(store_task, parked, COLUMN_U32, false),
    COLUMN(store_task, ready_ns, COLUMN_I64, false),
    COLUMN(store_task, ready_seq, COLUMN_U64, false),
    COLUMN(store_task, until_ns, COLUMN_I64, false),
    COLUMN(store_task, started_ns, COLUMN_I64, false),
    COLUMN(store_task, service_ns, COLUMN_I64, false),
    COLUMN(store_task, version, COLUMN_U64, false),
    COLUMN(store_task, token, COLUMN_U64, false),
    COLUMN(store_task, leader, COLUMN_U32_OR_NULL, false),
    COLUMN(store_task, place, COLUMN_U32, false),
    COLUMN(store_task, attempts, COLUMN_U32, false),
    COLUMN(store_task, number, COLUMN_U32, false),
    COLUMN(store_task, tries, COLUMN_U32, false),
    COLUMN(store_task, reworks, COLUMN_U32, false),
    COLUMN(store_task, checkpoints, COLUMN_U32, false),
    COLUMN(store_task, cause, COLUMN_U32_OR_NULL, false),
    COLUMN(store_task, reason, COLUMN_TEXT_OR_NULL, false),
    COLUMN(store_task, feedback, COLUMN_TEXT_OR_NULL, false),
    COLUMN(store_task, carry, COLUMN_TEXT_OR_NULL, false),
    COLUMN(store_task, usd, COLUMN_DOUBLE, false),
    COLUMN(store_task, tokens, COLUMN_I64, false),
};

static const struct column attempt_columns[] = {
    COLUMN(store_attempt, token, COLUMN_U64, true),
    COLUMN(store_attempt, run, COLUMN_U32, true),
    COLUMN(store_attempt, task, COLUMN_U32, true),
    COLUMN(store_attempt, number, COLUMN_U32, true),
    COLUMN(store_attempt, task_count, COLUMN_U32, true),
    COLUMN(store_attempt, slot, COLUMN_U32, true),
    COLUMN(store_attempt, state, COLUMN_TEXT, false),
    COLUMN(store_attempt, epoch, COLUMN_U64, true),
    COLUMN(store_attempt, boot_id, COLUMN_CHARS, true),
    COLUMN(store_attempt, nonce, COLUMN_CHARS, true),
    COLUMN(store_attempt, pid, COLUMN_I64, false),
    COLUMN(store_attempt, start_ticks, COLUMN_U64, false),
    COLUMN(store_attempt, claimed_ns, COLUMN_I64, true),
    COLUMN(store_attempt, begun_ns, COLUMN_I64, false),
    COLUMN(store_attempt, ended_ns, COLUMN_I64, false),
    COLUMN(store_attempt, outcome, COLUMN_TEXT_OR_NULL, false),
    COLUMN(store_attempt, cause, COLUMN_TEXT_OR_NULL, false),
    COLUMN(store_attempt, reason, COLUMN_TEXT_OR_NULL, false),
    COLUMN(store_attempt, code, COLUMN_I32, false),
    COLUMN(store_attempt, signal, COLUMN_I32, false),
    COLUMN(store_attempt, input_tokens, COLUMN_I64, false),
    COLUMN(store_attempt, cached_tokens, COLUMN_I64, false),
    COLUMN(store_attempt, output_tokens, COLUMN_I64, false),
    COLUMN(store_attempt, usd, COLUMN_DOUBLE, false),
};

static const struct column event_columns[] = {
    COLUMN(store_event, number, COLUMN_U64, true),
    COLUMN(store_event, wall_ns, COLUMN_I64, true),
    COLUMN(store_event, run, COLUMN_U32_OR_NULL, true),
    COLUMN(store_event, task, COLUMN_U32_OR_NULL, true),
    COLUMN(store_event, kind, COLUMN_TEXT, true),
    COLUMN(store_event, data, COLUMN_TEXT, true),
    COLUMN(store_event, sum, COLUMN_U64, true),
};

static const struct column command_columns[] = {
    COLUMN(store_command, number, COLUMN_U64, true),
    COLUMN(store_command, wall_ns, COLUMN_I64, true),
    COLUMN(store_command, who, COLUMN_TEXT, true),
    COLUMN(store_command, verb, COLUMN_TEXT, true),
    COLUMN(store_command, args, COLUMN_TEXT, true),
    COLUMN(store_command, key, COLUMN_TEXT_OR_NULL, true),
    COLUMN(store_command, answer, COLUMN_TEXT_OR_NULL, false),
};

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
