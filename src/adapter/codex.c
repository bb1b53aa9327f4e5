/* SPDX-License-Identifier: MIT */
/*
 * OpenAI Codex: `codex exec --json`.
 *
 * A session ends with `turn.completed` or `turn.failed`. Usage is that of the
 * whole thread, so a resumed session reports the earlier tokens again, and it
 * does not include money. The time at which a limit resets is exact only in the
 * rollout file of the thread (agent/rollout.h); the message has it as a local
 * time without a zone.
 *
 * Its sandbox keeps .git read-only. In a worktree both the git directory and
 * the common directory must be writable for a commit.
 */
#include "adapter/adapter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Append a TOML string, for -c. */
static void add_toml(struct strbuf *out, const char *text)
{
    strbuf_adds(out, "\"");
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\') {
            strbuf_adds(out, "\\");
        }
        strbuf_add(out, at, 1);
    }
    strbuf_adds(out, "\"");
}

static void add_sandbox(struct adapter_command *command,
                        const struct adapter_call *call)
{
    if (call->permissions == ADAPTER_FULL) {
        adapter_add(command, "--dangerously-bypass-approvals-and-sandbox");
        return;
    }
    adapter_add_option(command, "-s", "workspace-write");
    if (call->git_dir == NULL || call->common_dir == NULL) {
        return;
    }
    struct strbuf text = {0};
    strbuf_adds(&text, "sandbox_workspace_write.writable_roots=[");
    add_toml(&text, call->git_dir);
    strbuf_adds(&text, ",");
    add_toml(&text, call->common_dir);
    strbuf_adds(&text, "]");
    adapter_add_option(command, "-c", strbuf_text(&text));
    strbuf_release(&text);
}

/* Add sluice's MCP server. A server gets no variable that is not named; strings
 * of JSON are strings of TOML. */
static void add_mcp(struct adapter_command *command,
                    const struct adapter_call *call)
{
    json_t *path = call->mcp != NULL ? json_string(call->mcp) : NULL;
    char *quoted = path != NULL ? json_dumps(path, JSON_ENCODE_ANY) : NULL;
    json_decref(path);
    if (quoted == NULL) {
        return;
    }
    struct strbuf text = {0};
    strbuf_addf(&text,
                "mcp_servers.sluice={command=%s,args=[\"mcp\"],env_vars=[",
                quoted);
    for (size_t ix = 0; adapter_mcp_variables[ix] != NULL; ix++) {
        strbuf_addf(&text,
                    "%s\"%s\"",
                    ix > 0 ? "," : "",
                    adapter_mcp_variables[ix]);
    }
    strbuf_adds(&text, "]}");
    adapter_add_option(command, "-c", strbuf_text(&text));
    strbuf_release(&text);
    free(quoted);
}

static void add_command(struct adapter_command *command,
                        const struct adapter_call *call)
{
    static const char *const words[] = {"codex",
                                        "exec",
                                        "--json",
                                        "--skip-git-repo-check"};
    adapter_add_words(command, words, ARRAY_COUNT(words));
    adapter_add_option(command, "--output-schema", call->schema_file);
    add_sandbox(command, call);
    add_mcp(command, call);
    adapter_add_option(command, "-m", call->model);
    adapter_add_words(command, call->args, call->arg_count);
    adapter_add_option(command, "resume", call->resume);
    adapter_add(command, "-");
}

static void
take_item(struct adapter_seen *seen, const json_t *event, struct strbuf *line)
{
    const json_t *item = json_object_get(event, "item");
    const char *kind = adapter_text(item, "type");
    bool started = adapter_is(event, "type", "item.started");
    seen->finished = false;
    if (strcmp(kind, "agent_message") == 0) {
        adapter_set_buf(&seen->text, adapter_text(item, "text"));
        adapter_describe(line, "", adapter_text(item, "text"));
    } else if (strcmp(kind, "command_execution") == 0 && started) {
        adapter_describe(line, "> ", adapter_text(item, "command"));
    } else if (strcmp(kind, "command_execution") == 0) {
        strbuf_addf(line,
                    "< exit code %lld: ",
                    (long long)adapter_int(item, "exit_code"));
        adapter_describe(line, "", adapter_text(item, "aggregated_output"));
    } else if (strcmp(kind, "error") == 0) {
        adapter_describe(line, "warning: ", adapter_text(item, "message"));
    } else if (!started) {
        adapter_describe(line, "", kind);
    }
}

static void take_completed(struct adapter_seen *seen, const json_t *event)
{
    const json_t *usage = json_object_get(event, "usage");
    seen->usage = (struct adapter_usage){
        .input = adapter_int(usage, "input_tokens"),
        .cached = adapter_int(usage, "cached_input_tokens"),
        .output = adapter_int(usage, "output_tokens"),
        .known = json_is_object(usage),
        .whole = true,
    };
    seen->finished = true;
    seen->succeeded = true;
    strbuf_clear(&seen->error);
}

/* An error that codex tries to overcome is not yet an error of the session. */
static void
take_error(struct adapter_seen *seen, const json_t *event, struct strbuf *line)
{
    static const char again[] = "Reconnecting...";
    const char *message = adapter_text(event, "message");
    if (strncmp(message, again, strlen(again)) != 0) {
        adapter_set_buf(&seen->error, message);
    }
    adapter_describe(line, "error: ", message);
}

static void
take_event(struct adapter_seen *seen, const json_t *event, struct strbuf *line)
{
    const char *type = adapter_text(event, "type");
    if (strcmp(type, "thread.started") == 0) {
        adapter_set_conversation(seen, adapter_text(event, "thread_id"));
    } else if (strncmp(type, "item.", strlen("item.")) == 0) {
        take_item(seen, event, line);
    } else if (strcmp(type, "turn.started") == 0) {
        seen->finished = false;
    } else if (strcmp(type, "error") == 0) {
        take_error(seen, event, line);
    } else if (strcmp(type, "turn.completed") == 0) {
        take_completed(seen, event);
        strbuf_adds(line, "finished");
    } else if (strcmp(type, "turn.failed") == 0) {
        const json_t *error = json_object_get(event, "error");
        adapter_set_buf(&seen->error, adapter_text(error, "message"));
        seen->finished = true;
        seen->succeeded = false;
        adapter_describe(line, "failed: ", strbuf_text(&seen->error));
    }
}

static const struct adapter_rule rules[] = {
    {.text = "hit your usage limit", .cause = ADAPTER_LIMIT},
    {.text = "Quota exceeded", .cause = ADAPTER_KEY},
    {.text = "401 Unauthorized", .cause = ADAPTER_KEY},
    {.text = "403 Forbidden", .cause = ADAPTER_KEY},
    {.text = "Not logged in", .cause = ADAPTER_KEY},
    {.text = "no rollout found", .cause = ADAPTER_GONE},
    {.text = "429 Too Many Requests", .cause = ADAPTER_LIMIT},
    {.text = "503 Service Unavailable", .cause = ADAPTER_LIMIT},
    {.text = "high demand", .cause = ADAPTER_LIMIT},
    {.text = "stream disconnected", .cause = ADAPTER_LIMIT},
};

static const struct adapter_file files[] = {
    {ADAPTER_STATE, "CODEX_HOME", ".codex", "sessions"},
    {ADAPTER_LOGIN, "CODEX_HOME", ".codex", "auth.json"},
    {ADAPTER_CONFIG, "CODEX_HOME", ".codex", "AGENTS.md"},
    {ADAPTER_CONFIG, "CODEX_HOME", ".codex", "config.toml"},
    {ADAPTER_CONFIG, "CODEX_HOME", ".codex", "packages"},
    {ADAPTER_CONFIG, "CODEX_HOME", ".codex", "prompts"},
    {ADAPTER_CONFIG, "CODEX_HOME", ".codex", "rules"},
    {ADAPTER_CONFIG, "CODEX_HOME", ".codex", "skills"},
    {ADAPTER_COPY, "CODEX_HOME", ".codex", "installation_id"},
    {ADAPTER_COPY, "CODEX_HOME", ".codex", "version.json"},
};

static const char *const variables[] = {
    "CODEX_*",
    "OPENAI_*",
};

const struct adapter adapter_codex = {
    .name = "codex",
    .version = "0.166",
    .schema = true,
    .edit = true,
    .meters = true,
    .rules = rules,
    .rule_count = ARRAY_COUNT(rules),
    .files = files,
    .file_count = ARRAY_COUNT(files),
    .variables = variables,
    .variable_count = ARRAY_COUNT(variables),
    .command = add_command,
    .event = take_event,
};
