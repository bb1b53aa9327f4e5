/* SPDX-License-Identifier: MIT */
/*
 * Qwen Code: `qwen -o stream-json`.
 *
 * Its events have the shape of claude's, but input_tokens includes the cache,
 * and there is no money in them. The usage of a `result` is that of the whole
 * conversation.
 */
#include "adapter/adapter.h"

static void add_command(struct adapter_command *command,
                        const struct adapter_call *call)
{
    adapter_add(command, "qwen");
    adapter_add(command, "-o");
    adapter_add(command, "stream-json");
    adapter_add(command, "--approval-mode");
    adapter_add(command,
                call->permissions == ADAPTER_FULL ? "yolo" : "auto-edit");
    adapter_add(command, call->resume != NULL ? "--resume" : "--session-id");
    adapter_add(command, call->resume != NULL ? call->resume : call->fresh);
    if (call->model != NULL) {
        adapter_add(command, "-m");
        adapter_add(command, call->model);
    }
    for (uint32_t ix = 0; ix < call->arg_count; ix++) {
        adapter_add(command, call->args[ix]);
    }
}

/* Claude's reader adds the cache to the input, where it is already. */
static void
take_event(struct adapter_seen *seen, const json_t *event, struct strbuf *line)
{
    struct adapter_usage before = seen->usage;
    adapter_claude_event(seen, event, line);
    struct adapter_usage *usage = &seen->usage;
    bool total = adapter_is(event, "type", "result");
    if (usage->input != before.input || usage->cached != before.cached) {
        usage->input -= total ? usage->cached : usage->cached - before.cached;
    }
    usage->usd_known = false;
    usage->whole = usage->whole || total;
}

static const struct adapter_rule rules[] = {
    {.status = 401, .status_max = 403, .cause = ADAPTER_KEY},
    {.text = "401", .cause = ADAPTER_KEY},
    {.text = "insufficient_quota", .cause = ADAPTER_KEY},
    {.status = 429, .cause = ADAPTER_LIMIT},
    {.status = 500, .status_max = 599, .cause = ADAPTER_LIMIT},
    {.text = "429", .cause = ADAPTER_LIMIT},
    {.text = "503", .cause = ADAPTER_LIMIT},
    {.text = "500", .cause = ADAPTER_LIMIT},
    {.text = "No saved session found", .cause = ADAPTER_GONE},
};

const struct adapter adapter_qwen = {
    .name = "qwen",
    .version = "0.15",
    .edit = true,
    .rules = rules,
    .rule_count = ARRAY_COUNT(rules),
    .command = add_command,
    .event = take_event,
};
