/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as lines of an MCP client, for a server whose tools do nothing but
 * check what they get. An answer must be one line of JSON-RPC with the id of
 * its request; a notification has none. The same bytes are what a tool returns.
 */
#include "base/invariant.h"
#include "base/macros.h"
#include "base/utf8.h"
#include "mcp/server.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    FLAGS = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL,
    LONG_BYTES = (512 << 10) - 2, /* a few bytes more are cut */
    LONG_BYTES_MAX = 1000,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *all; /* the whole input */
static size_t all_len;
static bool was_long; /* once for each input, as it takes long */

/* --- tools and resources ------------------------------------------------ */

static bool is_clean(const char *text, const json_t *value)
{
    return text != NULL && strlen(text) == json_string_length(value);
}

static enum err run_check(const struct tool *tool,
                          const json_t *args,
                          struct strbuf *out,
                          struct diag *diag)
{
    const char *text = tool_text(args, "text");
    const char *word = tool_text(args, "word");
    const json_t *count = json_object_get(args, "count");
    const json_t *list = json_object_get(args, "list");
    const json_t *object = json_object_get(args, "object");
    INVARIANT(is_clean(text, json_object_get(args, "text")));
    INVARIANT(word == NULL || strcmp(word, "a") == 0 ||
              strcmp(word, "bc") == 0);
    INVARIANT(count == NULL || json_is_null(count) || json_is_integer(count));
    INVARIANT(list == NULL || json_is_null(list) || json_is_array(list));
    INVARIANT(object == NULL || json_is_null(object) || json_is_object(object));
    INVARIANT(json_object_size(args) <= tool->param_count);
    strbuf_adds(out, text);
    return word == NULL ? ERR_OK : diag_set(diag, ERR_CONFLICT, "%s", text);
}

static enum err run_say(const struct tool *tool,
                        const json_t *args,
                        struct strbuf *out,
                        struct diag *diag)
{
    (void)tool;
    (void)args;
    (void)diag;
    strbuf_add(out, all, all_len);
    return ERR_OK;
}

static enum err run_say_long(const struct tool *tool,
                             const json_t *args,
                             struct strbuf *out,
                             struct diag *diag)
{
    (void)tool;
    (void)args;
    if (was_long) {
        return diag_set(diag, ERR_LIMIT, "once is enough");
    }
    was_long = true;
    strbuf_pad(out, 'x', LONG_BYTES);
    strbuf_add(out, all, all_len < LONG_BYTES_MAX ? all_len : LONG_BYTES_MAX);
    return ERR_OK;
}

static const struct tool_param check_params[] = {
    {"text", TOOL_STRING, true, "a text", NULL, NULL},
    {"word", TOOL_STRING, false, NULL, "a|bc", NULL},
    {"count", TOOL_INTEGER, false, NULL, NULL, NULL},
    {"list", TOOL_LIST, false, NULL, NULL, "{\"items\": {}}"},
    {"object", TOOL_OBJECT, false, NULL, NULL, NULL},
};

static const struct tool tools[] = {
    {.name = "check",
     .text = "Check it.",
     .params = check_params,
     .param_count = ARRAY_COUNT(check_params),
     .run = run_check},
    {.name = "say", .text = "Say it.", .reads = true, .run = run_say},
    {.name = "long", .text = "Say more.", .reads = true, .run = run_say_long},
};

static enum err read_id(const char *id, struct strbuf *out, struct diag *diag)
{
    strbuf_adds(out, id);
    return id[0] == 'x' ? diag_set(diag, ERR_NOT_FOUND, "%s", id) : ERR_OK;
}

static const struct server_resource resources[] = {
    {"a://b", "b", "One", read_id},
    {"a://c/{id}/log", "log", "Some", read_id},
    {"a://d/{id}", "d", "Others", read_id},
};

static const struct server server = {
    .name = "fuzz",
    .instructions = "None.",
    .tools = tools,
    .tool_count = ARRAY_COUNT(tools),
    .resources = resources,
    .resource_count = ARRAY_COUNT(resources),
};

/* --- answers ------------------------------------------------------------ */

static bool is_id(const json_t *id)
{
    return json_is_string(id) || json_is_integer(id);
}

static bool is_container(const json_t *json)
{
    return json_is_object(json) || json_is_array(json);
}

static void check_answer(const char *text, size_t len, const json_t *request)
{
    INVARIANT(len > 1 && text[len - 1] == '\n');
    INVARIANT(memchr(text, '\n', len - 1) == NULL);
    INVARIANT(memchr(text, '\0', len) == NULL);
    INVARIANT(utf8_is_valid(text, len));
    json_t *answer = json_loadb(text, len - 1, FLAGS, NULL);
    const char *version = tool_text(answer, "jsonrpc");
    INVARIANT(version != NULL && strcmp(version, "2.0") == 0);
    const json_t *id = json_object_get(answer, "id");
    const json_t *asked = json_object_get(request, "id");
    INVARIANT(is_id(asked) ? json_equal(id, asked) : json_is_null(id));
    const json_t *result = json_object_get(answer, "result");
    const json_t *error = json_object_get(answer, "error");
    INVARIANT(json_object_size(answer) == 3);
    INVARIANT((result != NULL) != (error != NULL));
    INVARIANT(result == NULL || json_is_object(result));
    if (error != NULL) {
        json_int_t code = json_integer_value(json_object_get(error, "code"));
        INVARIANT(code <= -32000 && code >= -32768);
        INVARIANT(tool_text(error, "message") != NULL);
        INVARIANT(request != NULL || code == -32700);
        INVARIANT(!is_container(request) || code != -32700);
    }
    json_decref(answer);
}

/* Answer one line, twice: nothing may be remembered. */
static void check_line(const char *line, size_t len)
{
    struct strbuf out = {0};
    struct strbuf again = {0};
    json_t *request = json_loadb(line, len, FLAGS | JSON_DECODE_ANY, NULL);
    bool named = tool_text(request, "method") != NULL;
    bool was = was_long;
    server_answer(&server, line, len, &out);
    if (out.len > 0) {
        check_answer(strbuf_text(&out), out.len, request);
    }
    INVARIANT(out.len > 0 || json_is_object(request));
    if (named) {
        INVARIANT((out.len > 0) == (json_object_get(request, "id") != NULL));
    }
    if (was == was_long) {
        server_answer(&server, line, len, &again);
        INVARIANT(strcmp(strbuf_text(&out), strbuf_text(&again)) == 0);
    }
    json_decref(request);
    strbuf_release(&out);
    strbuf_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    all = (const char *)data;
    all_len = size;
    was_long = false;
    const char *at = all;
    const char *end = all + size;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((newline != NULL ? newline : end) - at);
        /* A copy, so that ASan sees a byte too many. */
        char *line = malloc(len > 0 ? len : 1);
        INVARIANT(line != NULL);
        memcpy(line, at, len);
        check_line(line, len);
        free(line);
        at += len + 1;
    }
    return 0;
}
