/* SPDX-License-Identifier: MIT */
#include "tests/unit/mcp_fixture.h"

#include "base/macros.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

uint32_t mcp_calls;
const char *mcp_said = "";
size_t mcp_said_len;
enum err mcp_said_err;

/* --- what the server offers --------------------------------------------- */

static enum err run_echo(const struct tool *tool,
                         const json_t *args,
                         struct strbuf *out,
                         struct diag *diag)
{
    (void)tool;
    (void)diag;
    char *text = json_dumps(args, JSON_COMPACT | JSON_SORT_KEYS);
    mcp_calls++;
    strbuf_adds(out, text != NULL ? text : "");
    free(text);
    return ERR_OK;
}

static enum err run_say(const struct tool *tool,
                        const json_t *args,
                        struct strbuf *out,
                        struct diag *diag)
{
    (void)tool;
    (void)args;
    mcp_calls++;
    strbuf_add(out, mcp_said, mcp_said_len);
    return mcp_said_err == ERR_OK
               ? ERR_OK
               : diag_set(diag, mcp_said_err, "%s", mcp_said);
}

static const struct tool_param echo_params[] = {
    {"text", TOOL_STRING, true, "what to say", NULL, NULL},
    {"word", TOOL_STRING, false, NULL, "one|two|three", NULL},
    {"count", TOOL_INTEGER, false, NULL, NULL, NULL},
    {"list",
     TOOL_LIST,
     false,
     NULL,
     NULL,
     "{\"items\": {\"type\": \"string\"}}"},
    {"object", TOOL_OBJECT, false, NULL, NULL, NULL},
};

const struct tool mcp_tools[2] = {
    {.name = "echo",
     .text = "Repeat it.",
     .params = echo_params,
     .param_count = ARRAY_COUNT(echo_params),
     .run = run_echo},
    {.name = "say", .text = "Say it.", .reads = true, .run = run_say},
};

static enum err
read_plain(const char *id, struct strbuf *out, struct diag *diag)
{
    (void)diag;
    strbuf_addf(out, "plain %s", id);
    return ERR_OK;
}

static enum err read_item(const char *id, struct strbuf *out, struct diag *diag)
{
    strbuf_adds(out, id);
    return strcmp(id, "gone") == 0 ? diag_set(diag, ERR_NOT_FOUND, "it is gone")
                                   : ERR_OK;
}

static const struct server_resource resources[] = {
    {"test://plain", "plain", "A plain one", read_plain},
    {"test://item/{id}/log", "log", "A log", read_item},
    {"test://last/{id}", "last", "The rest", read_item},
};

const struct server mcp_server = {
    .name = "test",
    .instructions = "Be brief.",
    .tools = mcp_tools,
    .tool_count = ARRAY_COUNT(mcp_tools),
    .resources = resources,
    .resource_count = ARRAY_COUNT(resources),
};

/* --- asking ------------------------------------------------------------- */

void mcp_add_quoted(struct strbuf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        strbuf_add(out, *text == '\'' ? "\"" : text, 1);
    }
}

json_t *mcp_check(const char *text, size_t len)
{
    assert_true(len > 1 && text[len - 1] == '\n');
    assert_null(memchr(text, '\n', len - 1));
    assert_true(utf8_is_valid(text, len));
    json_t *answer = json_loadb(text,
                                len - 1,
                                JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL,
                                NULL);
    assert_true(json_is_object(answer));
    assert_int_equal(json_object_size(answer), 3);
    assert_string_equal(mcp_text(answer, "jsonrpc"), "2.0");
    assert_non_null(mcp_at(answer, "id"));
    if (mcp_at(answer, "error") == NULL) {
        assert_true(json_is_object(mcp_at(answer, "result")));
    } else {
        assert_true(json_is_integer(mcp_at(answer, "error code")));
        assert_true(mcp_text(answer, "error message")[0] != '\0');
    }
    return answer;
}

static json_t *
send_server(const struct server *server, const char *bytes, size_t len)
{
    struct strbuf out = {0};
    json_t *answer = NULL;
    /* Without a final NUL, so that ASan sees a byte too many. */
    char *line = mem_zalloc(len > 0 ? len : 1, 1);
    memcpy(line, bytes, len);
    server_answer(server, line, len, &out);
    if (out.len > 0) {
        answer = mcp_check(strbuf_text(&out), out.len);
    }
    mem_free(line);
    strbuf_release(&out);
    return answer;
}

json_t *mcp_send(const char *bytes, size_t len)
{
    return send_server(&mcp_server, bytes, len);
}

json_t *mcp_line(const char *line)
{
    struct strbuf text = {0};
    mcp_add_quoted(&text, line);
    json_t *answer = mcp_send(strbuf_text(&text), text.len);
    strbuf_release(&text);
    return answer;
}

json_t *mcp_ask_server(const struct server *server,
                       const char *method,
                       const char *params)
{
    struct strbuf line = {0};
    strbuf_adds(&line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"");
    strbuf_addf(&line, "%s\",\"params\":{", method);
    mcp_add_quoted(&line, params);
    strbuf_adds(&line, "}}");
    json_t *answer = send_server(server, strbuf_text(&line), line.len);
    strbuf_release(&line);
    assert_non_null(answer);
    assert_int_equal(json_integer_value(mcp_at(answer, "id")), 1);
    return answer;
}

json_t *mcp_ask(const char *method, const char *params)
{
    return mcp_ask_server(&mcp_server, method, params);
}

const json_t *mcp_at(const json_t *json, const char *path)
{
    while (*path != '\0' && json != NULL) {
        char name[80];
        size_t len = strcspn(path, " ");
        assert_true(len < sizeof(name));
        memcpy(name, path, len);
        name[len] = '\0';
        json = json_is_array(json)
                   ? json_array_get(json, strtoul(name, NULL, 10))
                   : json_object_get(json, name);
        path += len + (path[len] == ' ' ? 1 : 0);
    }
    return json;
}

const char *mcp_text(const json_t *json, const char *path)
{
    const char *text = json_string_value(mcp_at(json, path));
    if (text == NULL) {
        fail_msg("there is no text at %s", path);
    }
    return text;
}

int mcp_code(const json_t *answer)
{
    return (int)json_integer_value(mcp_at(answer, "error code"));
}

void mcp_expect_error(json_t *answer, int code)
{
    assert_non_null(answer);
    assert_int_equal(mcp_code(answer), code);
    assert_null(mcp_at(answer, "result"));
    json_decref(answer);
}
