/* SPDX-License-Identifier: MIT */
/*
 * opencode: `opencode run --format json`.
 *
 * Each step ends with `step_finish`, which has its tokens and its cost; the
 * session has succeeded when the last step ends with the reason "stop". Errors
 * carry the HTTP status and the headers of the provider, which may name the
 * time at which a limit resets.
 */
#include "adapter/adapter.h"

#include <stdlib.h>
#include <string.h>

enum { WAIT_MIN = 60 };              /* seconds */
#define TIME_MAX INT64_C(9000000000) /* seconds since 1970 */

/* Configuration that is merged with that of its files. */
#define MCP_VARIABLE "OPENCODE_CONFIG_CONTENT"

/* Add sluice's MCP server to its configuration. */
static void add_mcp(struct adapter_command *command,
                    const struct adapter_call *call)
{
    json_t *root = call->mcp != NULL ? json_pack("{s:{s:{s:s, s:[s,s]}}}",
                                                 "mcp",
                                                 "sluice",
                                                 "type",
                                                 "local",
                                                 "command",
                                                 call->mcp,
                                                 "mcp")
                                     : NULL;
    char *text = root != NULL ? json_dumps(root, JSON_COMPACT) : NULL;
    if (text != NULL) {
        adapter_add_env(command, MCP_VARIABLE, text);
    }
    free(text);
    json_decref(root);
}

static void add_command(struct adapter_command *command,
                        const struct adapter_call *call)
{
    static const char *const words[] = {"opencode",
                                        "run",
                                        "--format",
                                        "json",
                                        "--auto"};
    adapter_add_words(command, words, ARRAY_COUNT(words));
    add_mcp(command, call);
    adapter_add_option(command, "-m", call->model);
    adapter_add_option(command, "--session", call->resume);
    adapter_add_words(command, call->args, call->arg_count);
}

static void take_step(struct adapter_seen *seen, const json_t *part)
{
    const json_t *tokens = json_object_get(part, "tokens");
    const json_t *cache = json_object_get(tokens, "cache");
    struct adapter_usage *usage = &seen->usage;
    int64_t cached = adapter_int(cache, "read");
    double usd = 0;
    usage->input = adapter_sum(usage->input, adapter_int(tokens, "input"));
    usage->input = adapter_sum(usage->input, cached);
    usage->input = adapter_sum(usage->input, adapter_int(cache, "write"));
    usage->cached = adapter_sum(usage->cached, cached);
    usage->output = adapter_sum(usage->output, adapter_int(tokens, "output"));
    usage->output =
        adapter_sum(usage->output, adapter_int(tokens, "reasoning"));
    usage->known = usage->known || json_is_object(tokens);
    if (adapter_usd(part, "cost", &usd)) {
        usage->usd += usd;
        usage->usd_known = true;
    }
    seen->finished = true;
    seen->succeeded = adapter_is(part, "reason", "stop");
    if (seen->succeeded) {
        seen->cause = ADAPTER_NONE; /* an earlier error was overcome */
        seen->retry_at = 0;
    }
}

/* Return the number in a header; 0: none. */
static int64_t header(const json_t *headers, const char *name)
{
    const char *text = adapter_text(headers, name);
    char *end = NULL;
    long long number = strtoll(text, &end, 10);
    return end != text && number > 0 && number < TIME_MAX ? number : 0;
}

/*
 * Return the time at which a limit resets, from the headers of Anthropic, of
 * OpenAI's subscriptions, or retry-after, which counts from the event. A short
 * retry-after is for the program's own retries, and not a reset.
 */
static int64_t reset_of(const json_t *event, const json_t *headers)
{
    int64_t wait = header(headers, "retry-after");
    int64_t now = adapter_int(event, "timestamp") / 1000;
    int64_t reset = header(headers, "anthropic-ratelimit-unified-reset");
    if (reset == 0 && header(headers, "x-codex-primary-used-percent") >= 100) {
        reset = header(headers, "x-codex-primary-reset-at");
    }
    if (header(headers, "x-codex-secondary-used-percent") >= 100 &&
        header(headers, "x-codex-secondary-reset-at") > reset) {
        reset = header(headers, "x-codex-secondary-reset-at");
    }
    if (reset == 0 && wait >= WAIT_MIN && now > 0 && now < TIME_MAX - wait) {
        reset = now + wait;
    }
    return reset;
}

static void
take_error(struct adapter_seen *seen, const json_t *event, struct strbuf *line)
{
    const json_t *error = json_object_get(event, "error");
    const json_t *data = json_object_get(error, "data");
    const char *message = adapter_text(data, "message");
    const char *body = adapter_text(data, "responseBody");
    adapter_set_buf(&seen->error,
                    message[0] != '\0' ? message : adapter_text(error, "name"));
    seen->cause =
        strstr(body, "insufficient_quota") != NULL ? ADAPTER_KEY : ADAPTER_NONE;
    seen->status = adapter_status(data, "statusCode");
    seen->retry_at = reset_of(event, json_object_get(data, "responseHeaders"));
    seen->finished = true;
    seen->succeeded = false;
    adapter_describe(line, "error: ", strbuf_text(&seen->error));
}

static void
take_event(struct adapter_seen *seen, const json_t *event, struct strbuf *line)
{
    const char *type = adapter_text(event, "type");
    const char *session = adapter_text(event, "sessionID");
    const json_t *part = json_object_get(event, "part");
    adapter_set_conversation(seen, session);
    if (strcmp(type, "step_start") == 0) {
        seen->finished = false;
    } else if (strcmp(type, "text") == 0) {
        adapter_set_buf(&seen->text, adapter_text(part, "text"));
        adapter_describe(line, "", adapter_text(part, "text"));
    } else if (strcmp(type, "tool_use") == 0) {
        const json_t *state = json_object_get(part, "state");
        adapter_describe(line, "> ", adapter_text(part, "tool"));
        adapter_describe(line, " ", adapter_text(state, "title"));
        adapter_describe(line, ": ", adapter_text(state, "status"));
    } else if (strcmp(type, "step_finish") == 0) {
        take_step(seen, part);
        if (seen->succeeded) {
            strbuf_adds(line, "finished");
        }
    } else if (strcmp(type, "error") == 0) {
        take_error(seen, event, line);
    }
}

static const struct adapter_rule rules[] = {
    {.status = 401, .status_max = 403, .cause = ADAPTER_KEY},
    {.status = 429, .cause = ADAPTER_LIMIT},
    {.status = 500, .status_max = 599, .cause = ADAPTER_LIMIT},
    {.text = "Session not found", .cause = ADAPTER_GONE},
};

static const struct adapter_file files[] = {
    {ADAPTER_STATE, "XDG_DATA_HOME", ".local/share", "opencode"},
    {ADAPTER_CONFIG, "XDG_DATA_HOME", ".local/share", "opencode/bin"},
    {ADAPTER_CONFIG, "XDG_CONFIG_HOME", ".config", "opencode"},
    {ADAPTER_CONFIG, NULL, ".opencode", "bin"},
    {ADAPTER_STATE, "XDG_STATE_HOME", ".local/state", "opencode"},
};

static const char *const variables[] = {
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "OPENAI_*",
    "OPENCODE_*",
    "OPENROUTER_API_KEY",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
};

const struct adapter adapter_opencode = {
    .name = "opencode",
    .version = "1.18",
    .money = true,
    .rules = rules,
    .rule_count = ARRAY_COUNT(rules),
    .files = files,
    .file_count = ARRAY_COUNT(files),
    .variables = variables,
    .variable_count = ARRAY_COUNT(variables),
    .mcp_variable = MCP_VARIABLE,
    .command = add_command,
    .event = take_event,
};
