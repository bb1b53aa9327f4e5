/* SPDX-License-Identifier: MIT */
/*
 * Gemini CLI: `gemini -o stream-json`.
 *
 * A session ends with an event `result`; its `status` decides, because a
 * truncated stream exits with 0. Otherwise the exit code is the HTTP status
 * modulo 256, or 41 (authentication), 42 (input, such as an unknown
 * conversation) and 55 (directory not trusted). The events have no money and no
 * time at which a limit resets, and answers have no schema.
 */
#include "adapter/adapter.h"

#include <string.h>

static void add_command(struct adapter_command *command,
                        const struct adapter_call *call)
{
    static const char *const words[] = {"gemini",
                                        "-o",
                                        "stream-json",
                                        "--skip-trust",
                                        "--approval-mode"};
    adapter_add_words(command, words, ARRAY_COUNT(words));
    adapter_add(command,
                call->permissions == ADAPTER_FULL ? "yolo" : "auto_edit");
    adapter_add(command, call->resume != NULL ? "--resume" : "--session-id");
    adapter_add(command, call->resume != NULL ? call->resume : call->fresh);
    if (call->mcp != NULL) {
        /* It takes servers from files only: of the user, or of the workspace.
         * And it hides variables whose names look secret from them. */
        command->file = ".gemini/settings.json";
        command->file_text = adapter_mcp_servers(command, call->mcp, true);
        /* --skip-trust comes too late for the settings of a workspace. */
        command->file_variable = "GEMINI_CLI_TRUST_WORKSPACE";
    }
    adapter_add_option(command, "-m", call->model);
    adapter_add_words(command, call->args, call->arg_count);
}

/* Collect the answer, which comes in pieces until the next tool call. */
static void take_message(struct adapter_seen *seen,
                         const json_t *event,
                         struct strbuf *line)
{
    const char *text = adapter_text(event, "content");
    if (!adapter_is(event, "role", "assistant")) {
        return;
    }
    if (json_is_true(json_object_get(event, "delta"))) {
        strbuf_adds(&seen->text, text);
    } else {
        adapter_set_buf(&seen->text, text);
    }
    adapter_describe(line, "", text);
}

static void
take_result(struct adapter_seen *seen, const json_t *event, struct strbuf *line)
{
    const json_t *stats = json_object_get(event, "stats");
    const json_t *error = json_object_get(event, "error");
    seen->usage = (struct adapter_usage){
        .input = adapter_int(stats, "input_tokens"),
        .cached = adapter_int(stats, "cached"),
        .output = adapter_int(stats, "output_tokens"),
        .known = json_is_object(stats),
    };
    seen->finished = true;
    seen->succeeded = adapter_is(event, "status", "success");
    if (json_is_object(error)) {
        adapter_set_buf(&seen->error, adapter_text(error, "message"));
    }
    if (seen->succeeded) {
        strbuf_adds(line, "finished");
    } else {
        adapter_describe(line, "failed: ", strbuf_text(&seen->error));
    }
}

static void
take_event(struct adapter_seen *seen, const json_t *event, struct strbuf *line)
{
    const char *type = adapter_text(event, "type");
    if (strcmp(type, "init") == 0) {
        adapter_set_conversation(seen, adapter_text(event, "session_id"));
        adapter_describe(line, "model ", adapter_text(event, "model"));
    } else if (strcmp(type, "message") == 0) {
        seen->finished = false;
        take_message(seen, event, line);
    } else if (strcmp(type, "tool_use") == 0) {
        char *input =
            json_dumps(json_object_get(event, "parameters"), JSON_COMPACT);
        seen->finished = false;
        strbuf_clear(&seen->text);
        adapter_describe(line, "> ", adapter_text(event, "tool_name"));
        adapter_describe(line, " ", input != NULL ? input : "");
        free(input);
    } else if (strcmp(type, "tool_result") == 0) {
        adapter_describe(line,
                         adapter_is(event, "status", "success") ? "< "
                                                                : "< error: ",
                         adapter_text(event, "output"));
    } else if (strcmp(type, "error") == 0) {
        adapter_set_buf(&seen->error, adapter_text(event, "message"));
        adapter_describe(line, "error: ", adapter_text(event, "message"));
    } else if (strcmp(type, "result") == 0) {
        take_result(seen, event, line);
    }
}

static const struct adapter_rule rules[] = {
    {.text = "exhausted your daily quota", .cause = ADAPTER_LIMIT},
    {.text = "API key not valid", .cause = ADAPTER_KEY},
    {.text = "credits are depleted", .cause = ADAPTER_KEY},
    {.text = "API_KEY_INVALID", .cause = ADAPTER_KEY},
    {.code = 41, .cause = ADAPTER_KEY},
    {.code = 55, .cause = ADAPTER_KEY},
    {.code = 42, .cause = ADAPTER_GONE},
    {.code = 144, .cause = ADAPTER_KEY},   /* 400 */
    {.code = 145, .cause = ADAPTER_KEY},   /* 401 */
    {.code = 147, .cause = ADAPTER_KEY},   /* 403 */
    {.code = 173, .cause = ADAPTER_LIMIT}, /* 429 */
    {.code = 244, .cause = ADAPTER_LIMIT}, /* 500 */
    {.code = 247, .cause = ADAPTER_LIMIT}, /* 503 */
    {.text = "overloaded", .cause = ADAPTER_LIMIT},
};

static const struct adapter_file files[] = {
    {ADAPTER_STATE, NULL, ".gemini", "tmp"},
    {ADAPTER_LOGIN, NULL, ".gemini", "google_accounts.json"},
    {ADAPTER_LOGIN, NULL, ".gemini", "oauth_creds.json"},
    {ADAPTER_LOGIN, NULL, ".gemini", "projects.json"},
    {ADAPTER_CONFIG, NULL, ".gemini", ".env"},
    {ADAPTER_CONFIG, NULL, ".gemini", "GEMINI.md"},
    {ADAPTER_CONFIG, NULL, ".gemini", "commands"},
    {ADAPTER_CONFIG, NULL, ".gemini", "extensions"},
    {ADAPTER_CONFIG, NULL, ".gemini", "policies"},
    {ADAPTER_CONFIG, NULL, ".gemini", "settings.json"},
    {ADAPTER_CONFIG, NULL, ".gemini", "trustedFolders.json"},
    {ADAPTER_COPY, NULL, ".gemini", "installation_id"},
};

static const char *const variables[] = {
    "GEMINI_*",
    "GOOGLE_*",
};

const struct adapter adapter_gemini = {
    .name = "gemini",
    .version = "0.61",
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
