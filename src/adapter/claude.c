/* SPDX-License-Identifier: MIT */
/*
 * Claude Code: `claude -p --output-format stream-json`.
 *
 * A session ends with an event `result`, whose `subtype` is "success" even for
 * a limit: `is_error` decides. Its usage is that of this invocation, and
 * input_tokens excludes the cache. A killed session has no `result`; then the
 * usage is the sum over `assistant` events, each message counted once. Only
 * rate_limit_event has the time at which a limit resets, and only for
 * subscriptions.
 */
#include "adapter/adapter.h"

#include <stdio.h>
#include <string.h>

static void add_permissions(struct adapter_command *command,
                            const struct adapter_call *call)
{
    if (call->permissions == ADAPTER_FULL) {
        adapter_add_option(command, "--permission-mode", "bypassPermissions");
        return;
    }
    adapter_add_option(command, "--permission-mode", "acceptEdits");
    if (call->permissions == ADAPTER_EDIT || call->tool_count > 0 ||
        call->mcp != NULL) {
        adapter_add(command, "--allowedTools");
    }
    if (call->mcp != NULL) {
        adapter_add(command, "mcp__sluice"); /* all tools of the server */
    }
    if (call->permissions == ADAPTER_EDIT) {
        adapter_add(command, "Bash(git add:*)");
        adapter_add(command, "Bash(git commit:*)");
    }
    adapter_add_words(command, call->tools, call->tool_count);
}

static void add_command(struct adapter_command *command,
                        const struct adapter_call *call)
{
    static const char *const words[] = {"claude",
                                        "-p",
                                        "--output-format",
                                        "stream-json",
                                        "--verbose"};
    char text[32];
    adapter_add_words(command, words, ARRAY_COUNT(words));
    adapter_add_option(command, "--json-schema", call->schema);
    adapter_add(command, call->resume != NULL ? "--resume" : "--session-id");
    adapter_add(command, call->resume != NULL ? call->resume : call->fresh);
    add_permissions(command, call);
    if (call->mcp != NULL) {
        adapter_add_option(command,
                           "--mcp-config",
                           adapter_mcp_servers(command, call->mcp, false));
    }
    adapter_add_option(command, "--model", call->model);
    if (call->usd_left >= 0) {
        (void)snprintf(text, sizeof(text), "%.4f", call->usd_left);
        adapter_add_option(command, "--max-budget-usd", text);
    }
    adapter_add_words(command, call->args, call->arg_count);
    (void)snprintf(text, sizeof(text), "%u", call->retries);
    adapter_add_env(command, "CLAUDE_CODE_MAX_RETRIES", text);
    adapter_add_env(command, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    /*
     * Otherwise each @/path in the body of an issue adds that file, from any
     * directory, to the conversation without a permission check. The cost: a
     * CLAUDE.md below the working directory is not read automatically.
     */
    adapter_add_env(command, "CLAUDE_CODE_DISABLE_ATTACHMENTS", "1");
}

/* Return the tokens of a message or a result, with the cache in the input. */
static struct adapter_usage usage_of(const json_t *usage,
                                     const struct adapter_dialect *dialect)
{
    int64_t cached = adapter_int(usage, "cache_read_input_tokens");
    int64_t written = adapter_int(usage, "cache_creation_input_tokens");
    int64_t input = adapter_int(usage, "input_tokens");
    if (!dialect->cache_included) {
        input = adapter_sum(input, adapter_sum(cached, written));
    }
    return (struct adapter_usage){
        .input = input,
        .cached = cached < input ? cached : input,
        .output = adapter_int(usage, "output_tokens"),
        .known = json_is_object(usage),
    };
}

/* Count the usage of a message, which may come in several events. False: the
 * program has made the message up, to report an error. */
static bool count_message(struct adapter_seen *seen,
                          const json_t *message,
                          const struct adapter_dialect *dialect)
{
    struct adapter_usage usage =
        usage_of(json_object_get(message, "usage"), dialect);
    const char *id = adapter_text(message, "id");
    if (!usage.known || usage.input + usage.output == 0) {
        return false;
    }
    if (json_object_get(seen->counted, id) != NULL) {
        return true;
    }
    if (seen->counted == NULL) {
        seen->counted = json_object();
    }
    (void)json_object_set_new(seen->counted, id, json_true());
    seen->usage.known = true;
    seen->usage.input = adapter_sum(seen->usage.input, usage.input);
    seen->usage.cached = adapter_sum(seen->usage.cached, usage.cached);
    seen->usage.output = adapter_sum(seen->usage.output, usage.output);
    return true;
}

/* Describe one block of a message: a text, a tool call, its result. */
static void describe_block(struct adapter_seen *seen,
                           const json_t *block,
                           struct strbuf *line)
{
    if (adapter_is(block, "type", "text")) {
        adapter_set_buf(&seen->text, adapter_text(block, "text"));
        adapter_describe(line, "", adapter_text(block, "text"));
    } else if (adapter_is(block, "type", "tool_use")) {
        char *input = json_dumps(json_object_get(block, "input"), JSON_COMPACT);
        adapter_describe(line, "> ", adapter_text(block, "name"));
        adapter_describe(line, " ", input != NULL ? input : "");
        free(input);
    } else if (adapter_is(block, "type", "tool_result")) {
        const json_t *content = json_object_get(block, "content");
        const char *text = json_string_value(content);
        if (text == NULL) {
            text = adapter_text(json_array_get(content, 0), "text");
        }
        adapter_describe(line,
                         json_is_true(json_object_get(block, "is_error"))
                             ? "< error: "
                             : "< ",
                         text);
    }
}

static void take_message(struct adapter_seen *seen,
                         const json_t *event,
                         const struct adapter_dialect *dialect,
                         struct strbuf *line)
{
    const json_t *message = json_object_get(event, "message");
    const json_t *content = json_object_get(message, "content");
    size_t ix;
    json_t *block;
    seen->finished = false;
    json_array_foreach(content, ix, block)
    {
        if (line->len > 0) {
            strbuf_adds(line, "\n");
        }
        describe_block(seen, block, line);
    }
    if (adapter_is(event, "type", "assistant")) {
        if (count_message(seen, message, dialect)) {
            seen->cause = ADAPTER_NONE; /* an earlier limit was overcome */
        }
        if (adapter_is(event, "error", "billing_error")) {
            seen->cause = ADAPTER_KEY;
        }
    }
}

static void
take_limit(struct adapter_seen *seen, const json_t *event, struct strbuf *line)
{
    const json_t *info = json_object_get(event, "rate_limit_info");
    const char *window = adapter_text(info, "rateLimitType");
    int64_t resets_at = adapter_time(info, "resetsAt");
    double percent = 100 * adapter_number(info, "utilization");
    if (adapter_is(info, "status", "rejected")) {
        seen->cause = ADAPTER_LIMIT;
        seen->retry_at = resets_at;
        percent = 100;
        adapter_describe(line, "limit reached: ", window);
    } else if (percent > 0) {
        adapter_describe(line, "limit ", window);
        strbuf_addf(line, " at %.0f %%", percent);
    }
    if (percent > 0) {
        adapter_set_meter(seen, window, percent, resets_at);
    }
}

static void take_denials(struct adapter_seen *seen, const json_t *denials)
{
    size_t ix;
    json_t *denial;
    json_array_foreach(denials, ix, denial)
    {
        const json_t *input = json_object_get(denial, "tool_input");
        const char *command = adapter_text(input, "command");
        if (command[0] == '\0') {
            command = adapter_text(input, "file_path");
        }
        adapter_describe(&seen->denials,
                         seen->denials.len > 0 ? "; " : "",
                         adapter_text(denial, "tool_name"));
        adapter_describe(&seen->denials, " ", command);
    }
}

/* Store tokens and money of a result. If it reports no tokens, as after a
 * limit, the sum over the messages stays. */
static void take_total(struct adapter_seen *seen,
                       const json_t *event,
                       const struct adapter_dialect *dialect)
{
    struct adapter_usage total =
        usage_of(json_object_get(event, "usage"), dialect);
    if (total.known && total.input + total.output > 0) {
        total.whole = dialect->whole;
        seen->usage = total;
    }
    seen->usage.known = seen->usage.known || total.known;
    seen->usage.usd_known =
        adapter_usd(event, "total_cost_usd", &seen->usage.usd);
}

/* Return the error, from the first member that has it. */
static const char *error_of(const json_t *event)
{
    const json_t *errors = json_object_get(event, "errors");
    const char *text = adapter_text(event, "result");
    if (text[0] == '\0') {
        const char *first = json_string_value(json_array_get(errors, 0));
        text = first != NULL ? first : "";
    }
    if (text[0] == '\0') {
        text = adapter_text(json_object_get(event, "error"), "message");
    }
    return text[0] != '\0' ? text : adapter_text(event, "subtype");
}

static void take_result(struct adapter_seen *seen,
                        const json_t *event,
                        const struct adapter_dialect *dialect,
                        struct strbuf *line)
{
    seen->finished = true;
    seen->succeeded = json_is_false(json_object_get(event, "is_error")) &&
                      adapter_is(event, "subtype", "success");
    take_total(seen, event, dialect);
    strbuf_clear(&seen->denials);
    take_denials(seen, json_object_get(event, "permission_denials"));
    json_t *answer = json_object_get(event, "structured_output");
    json_decref(seen->answer);
    seen->answer = json_is_object(answer) ? json_incref(answer) : NULL;
    seen->status = adapter_status(event, "api_error_status");
    if (seen->succeeded) {
        seen->cause = ADAPTER_NONE; /* an earlier limit was overcome */
        seen->retry_at = 0;
        adapter_set_buf(&seen->text, adapter_text(event, "result"));
        strbuf_adds(line, "finished");
        return;
    }
    if (adapter_is(event, "subtype", "error_max_budget_usd")) {
        seen->cause = ADAPTER_SPENT;
    }
    adapter_set_buf(&seen->error, error_of(event));
    adapter_describe(line, "failed: ", strbuf_text(&seen->error));
}

static void
take_system(struct adapter_seen *seen, const json_t *event, struct strbuf *line)
{
    if (adapter_is(event, "subtype", "init")) {
        adapter_set_conversation(seen, adapter_text(event, "session_id"));
        adapter_describe(line, "model ", adapter_text(event, "model"));
    } else if (adapter_is(event, "subtype", "api_retry")) {
        strbuf_addf(line,
                    "request failed with status %lld, retry %lld of %lld",
                    (long long)adapter_int(event, "error_status"),
                    (long long)adapter_int(event, "attempt"),
                    (long long)adapter_int(event, "max_retries"));
    }
}

void adapter_claude_take(struct adapter_seen *seen,
                         const json_t *event,
                         const struct adapter_dialect *dialect,
                         struct strbuf *line)
{
    const char *session = adapter_text(event, "session_id");
    if (adapter_is(event, "type", "system")) {
        take_system(seen, event, line);
    } else if (seen->conversation != NULL && session[0] != '\0' &&
               strcmp(session, seen->conversation) != 0) {
        return; /* an event of another session */
    } else if (adapter_is(event, "type", "assistant") ||
               adapter_is(event, "type", "user")) {
        take_message(seen, event, dialect, line);
    } else if (adapter_is(event, "type", "rate_limit_event")) {
        take_limit(seen, event, line);
    } else if (adapter_is(event, "type", "result")) {
        take_result(seen, event, dialect, line);
    }
}

static void
take_event(struct adapter_seen *seen, const json_t *event, struct strbuf *line)
{
    static const struct adapter_dialect dialect = {0};
    adapter_claude_take(seen, event, &dialect, line);
}

static const struct adapter_rule rules[] = {
    {.status = 401, .status_max = 403, .cause = ADAPTER_KEY},
    {.text = "Credit balance is too low", .cause = ADAPTER_KEY},
    {.text = "Invalid API key", .cause = ADAPTER_KEY},
    {.text = "Please run /login", .cause = ADAPTER_KEY},
    {.status = 429, .cause = ADAPTER_LIMIT},
    {.status = 500, .status_max = 599, .cause = ADAPTER_LIMIT},
    {.text = "No conversation found", .cause = ADAPTER_GONE},
};

static const struct adapter_file files[] = {
    {ADAPTER_STATE, "CLAUDE_CONFIG_DIR", ".claude", "projects"},
    {ADAPTER_LOGIN, "CLAUDE_CONFIG_DIR", ".claude", ".credentials.json"},
    {ADAPTER_CONFIG, "CLAUDE_CONFIG_DIR", ".claude", "CLAUDE.md"},
    {ADAPTER_CONFIG, "CLAUDE_CONFIG_DIR", ".claude", "agents"},
    {ADAPTER_CONFIG, "CLAUDE_CONFIG_DIR", ".claude", "commands"},
    {ADAPTER_CONFIG, "CLAUDE_CONFIG_DIR", ".claude", "hooks"},
    {ADAPTER_CONFIG, "CLAUDE_CONFIG_DIR", ".claude", "local"},
    {ADAPTER_CONFIG, "CLAUDE_CONFIG_DIR", ".claude", "output-styles"},
    {ADAPTER_CONFIG, "CLAUDE_CONFIG_DIR", ".claude", "plugins"},
    {ADAPTER_CONFIG, "CLAUDE_CONFIG_DIR", ".claude", "rules"},
    {ADAPTER_CONFIG, "CLAUDE_CONFIG_DIR", ".claude", "settings.json"},
    {ADAPTER_CONFIG, "CLAUDE_CONFIG_DIR", ".claude", "skills"},
    {ADAPTER_COPY, "CLAUDE_CONFIG_DIR", ".", ".claude.json"},
};

static const char *const variables[] = {
    "ANTHROPIC_*",
    "CLAUDE_*",
};

const struct adapter adapter_claude = {
    .name = "claude",
    .version = "2.1",
    .money = true,
    .schema = true,
    .tools = true,
    .edit = true,
    .meters = true,
    .root_variable = "IS_SANDBOX",
    .rules = rules,
    .rule_count = ARRAY_COUNT(rules),
    .files = files,
    .file_count = ARRAY_COUNT(files),
    .variables = variables,
    .variable_count = ARRAY_COUNT(variables),
    .command = add_command,
    .event = take_event,
};
