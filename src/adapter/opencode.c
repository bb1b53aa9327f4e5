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

static void add_command(struct adapter_command *command,
                        const struct adapter_call *call)
{
    adapter_add(command, "opencode");
    adapter_add(command, "run");
    adapter_add(command, "--format");
    adapter_add(command, "json");
    adapter_add(command, "--auto");
    if (call->model != NULL) {
        adapter_add(command, "-m");
        adapter_add(command, call->model);
    }
    if (call->resume != NULL) {
        adapter_add(command, "--session");
        adapter_add(command, call->resume);
    }
    for (uint32_t ix = 0; ix < call->arg_count; ix++) {
        adapter_add(command, call->args[ix]);
    }
}

static void take_step(struct adapter_seen *seen, const json_t *part)
{
    const json_t *tokens = json_object_get(part, "tokens");
    const json_t *cache = json_object_get(tokens, "cache");
    const json_t *cost = json_object_get(part, "cost");
    struct adapter_usage *usage = &seen->usage;
    int64_t cached = adapter_int(cache, "read");
    usage->input +=
        adapter_int(tokens, "input") + cached + adapter_int(cache, "write");
    usage->cached += cached;
    usage->output +=
        adapter_int(tokens, "output") + adapter_int(tokens, "reasoning");
    usage->known = usage->known || json_is_object(tokens);
    if (json_is_number(cost)) {
        usage->usd += adapter_number(part, "cost");
        usage->usd_known = true;
    }
    seen->finished = true;
    seen->succeeded = adapter_is(part, "reason", "stop");
}

/* A number in a header; 0: it is not there. */
static int64_t header(const json_t *headers, const char *name)
{
    const char *text = adapter_text(headers, name);
    char *end = NULL;
    long long number = strtoll(text, &end, 10);
    return end != text && number > 0 && number < (1LL << 40) ? number : 0;
}

static void
take_error(struct adapter_seen *seen, const json_t *event, struct strbuf *line)
{
    const json_t *error = json_object_get(event, "error");
    const json_t *data = json_object_get(error, "data");
    const json_t *headers = json_object_get(data, "responseHeaders");
    int64_t reset = header(headers, "anthropic-ratelimit-unified-reset");
    if (reset == 0 && header(headers, "x-codex-primary-used-percent") >= 100) {
        reset = header(headers, "x-codex-primary-reset-at");
    }
    if (header(headers, "x-codex-secondary-used-percent") >= 100) {
        reset = header(headers, "x-codex-secondary-reset-at");
    }
    adapter_set_buf(&seen->error, adapter_text(data, "message"));
    if (strstr(adapter_text(data, "responseBody"), "insufficient_quota") !=
        NULL) {
        seen->cause = ADAPTER_KEY;
    }
    if (seen->error.len == 0) {
        adapter_set_buf(&seen->error, adapter_text(error, "name"));
    }
    seen->status = (int)adapter_int(data, "statusCode");
    seen->retry_at = reset;
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
    if (session[0] != '\0' && seen->conversation == NULL) {
        adapter_set(&seen->conversation, session);
    }
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

const struct adapter adapter_opencode = {
    .name = "opencode",
    .version = "1.18",
    .money = true,
    .rules = rules,
    .rule_count = ARRAY_COUNT(rules),
    .command = add_command,
    .event = take_event,
};
