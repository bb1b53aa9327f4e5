/* SPDX-License-Identifier: MIT */
/*
 * Qwen Code: `qwen -o stream-json`.
 *
 * Its events have the format of claude's, but input_tokens includes the cache,
 * and they have no money. The usage of a `result` is that of the whole
 * conversation, and a failed request appears as success.
 */
#include "adapter/adapter.h"

#include <stdlib.h>
#include <string.h>

static void add_command(struct adapter_command *command,
                        const struct adapter_call *call)
{
    static const char *const words[] = {"qwen",
                                        "-o",
                                        "stream-json",
                                        "--approval-mode"};
    adapter_add_words(command, words, ARRAY_COUNT(words));
    adapter_add(command,
                call->permissions == ADAPTER_FULL ? "yolo" : "auto-edit");
    adapter_add(command, call->resume != NULL ? "--resume" : "--session-id");
    adapter_add(command, call->resume != NULL ? call->resume : call->fresh);
    if (call->mcp != NULL) {
        adapter_add_option(command,
                           "--mcp-config",
                           adapter_mcp_servers(command, call->mcp, false));
    }
    adapter_add_option(command, "-m", call->model);
    adapter_add_words(command, call->args, call->arg_count);
}

/* Detect a request that has finally failed: its error is the text of a
 * successful result, and its status is the first word of the message. */
static void check_text(struct adapter_seen *seen)
{
    static const char before[] = "[API Error: ";
    const char *text = strbuf_text(&seen->text);
    if (strncmp(text, before, strlen(before)) != 0) {
        return;
    }
    long status = strtol(text + strlen(before), NULL, 10);
    seen->succeeded = false;
    seen->status = status >= 100 && status <= 599 ? (int)status : 0;
    adapter_set_buf(&seen->error, text);
}

static void
take_event(struct adapter_seen *seen, const json_t *event, struct strbuf *line)
{
    static const struct adapter_dialect dialect = {
        .cache_included = true,
        .whole = true,
    };
    adapter_claude_take(seen, event, &dialect, line);
    if (adapter_is(event, "type", "result") && seen->succeeded) {
        check_text(seen);
    }
}

static const struct adapter_rule rules[] = {
    {.status = 401, .status_max = 403, .cause = ADAPTER_KEY},
    {.text = "check your plan and billing details", .cause = ADAPTER_KEY},
    {.text = "insufficient_quota", .cause = ADAPTER_KEY},
    {.status = 429, .cause = ADAPTER_LIMIT},
    {.status = 500, .status_max = 599, .cause = ADAPTER_LIMIT},
    {.text = "No saved session found", .cause = ADAPTER_GONE},
};

static const struct adapter_file files[] = {
    {ADAPTER_STATE, NULL, ".qwen", "projects"},
    {ADAPTER_STATE, NULL, ".qwen", "tmp"},
    {ADAPTER_LOGIN, NULL, ".qwen", "oauth_creds.json"},
    {ADAPTER_CONFIG, NULL, ".qwen", ".env"},
    {ADAPTER_CONFIG, NULL, ".qwen", "QWEN.md"},
    {ADAPTER_CONFIG, NULL, ".qwen", "agents"},
    {ADAPTER_CONFIG, NULL, ".qwen", "commands"},
    {ADAPTER_CONFIG, NULL, ".qwen", "extensions"},
    {ADAPTER_CONFIG, NULL, ".qwen", "settings.json"},
    {ADAPTER_CONFIG, NULL, ".qwen", "skills"},
    {ADAPTER_COPY, NULL, ".qwen", "installation_id"},
};

static const char *const variables[] = {
    "DASHSCOPE_*",
    "OPENAI_*",
    "QWEN_*",
};

const struct adapter adapter_qwen = {
    .name = "qwen",
    .version = "0.15",
    .edit = true,
    .rules = rules,
    .rule_count = ARRAY_COUNT(rules),
    .files = files,
    .file_count = ARRAY_COUNT(files),
    .variables = variables,
    .variable_count = ARRAY_COUNT(variables),
    .command = add_command,
    .event = take_event,
};
