/* SPDX-License-Identifier: MIT */
#include "mcp/server.h"

#include "base/macros.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CODE_PARSE = -32700,
    CODE_REQUEST = -32600,
    CODE_METHOD = -32601,
    CODE_PARAMS = -32602,
    CODE_INTERNAL = -32603,
    CODE_RESOURCE = -32002, /* of older revisions */
    CODE_VERSION = -32022,
    TTL_MS = 3600 * 1000, /* of lists, which never change */
    READ_BYTES = 65536,
    TEXT_BYTES_MAX = 512 << 10, /* of an answer: larger ones are cut */
};

/* Revisions, newest first: the first is stateless, the others know
 * `initialize`. */
static const char *const versions[] = {
    "2026-07-28",
    "2025-11-25",
    "2025-06-18",
    "2025-03-26",
    "2024-11-05",
};
enum { VERSION_MODERN = 0, VERSION_LEGACY = 1 };

#define META_KEY(name) "io.modelcontextprotocol/" name

/* A request being answered. */
struct call {
    const struct server *server;
    const json_t *params; /* an object, or NULL */
    bool modern;          /* it carries its revision */
    json_t *result;       /* this, or ... */
    int code;             /* ... an error; 0: none */
    struct diag diag;
    json_t *data; /* of an error, or NULL */
};

static void
fail(struct call *call, int code, const char *text, json_t *data_take)
{
    call->code = code;
    call->data = data_take;
    (void)diag_set(&call->diag, ERR_INVALID, "%s", text);
}

static json_t *version_list(void)
{
    json_t *list = json_array();
    for (size_t ix = 0; ix < ARRAY_COUNT(versions); ix++) {
        (void)json_array_append_new(list, json_string(versions[ix]));
    }
    return list;
}

static json_t *server_info(const struct server *server)
{
    return json_pack("{s:s, s:s}",
                     "name",
                     server->name,
                     "version",
                     SLUICE_VERSION);
}

static json_t *capabilities(const struct server *server)
{
    json_t *out = json_pack("{s:{}}", "tools");
    if (server->resource_count > 0) {
        (void)json_object_set_new(out, "resources", json_object());
    }
    return out;
}

/* --- methods ------------------------------------------------------------ */

static void do_initialize(struct call *call)
{
    const char *wanted = tool_text(call->params, "protocolVersion");
    const char *agreed = versions[VERSION_LEGACY];
    if (wanted == NULL) {
        fail(call, CODE_PARAMS, "\"protocolVersion\" is missing", NULL);
        return;
    }
    for (size_t ix = VERSION_LEGACY; ix < ARRAY_COUNT(versions); ix++) {
        agreed = strcmp(versions[ix], wanted) == 0 ? versions[ix] : agreed;
    }
    call->result = json_pack("{s:s, s:o, s:o, s:s}",
                             "protocolVersion",
                             agreed,
                             "capabilities",
                             capabilities(call->server),
                             "serverInfo",
                             server_info(call->server),
                             "instructions",
                             call->server->instructions);
}

static void do_discover(struct call *call)
{
    call->result = json_pack("{s:o, s:o, s:s}",
                             "supportedVersions",
                             version_list(),
                             "capabilities",
                             capabilities(call->server),
                             "instructions",
                             call->server->instructions);
}

static void do_ping(struct call *call)
{
    call->result = json_object();
}

static void do_tools_list(struct call *call)
{
    json_t *list = json_array();
    for (uint32_t ix = 0; ix < call->server->tool_count; ix++) {
        (void)json_array_append_new(list,
                                    tool_describe(&call->server->tools[ix]));
    }
    call->result = json_pack("{s:o}", "tools", list);
}

/* Return a text as JSON, cut to a size, whatever bytes it has. */
static json_t *text_of(struct strbuf *text)
{
    bool cut = text->len > TEXT_BYTES_MAX;
    size_t len = cut ? TEXT_BYTES_MAX : text->len;
    while (cut && len > 0 && ((unsigned char)text->text[len] & 0xc0) == 0x80) {
        len--; /* not within a UTF-8 character */
    }
    utf8_repair(text->text, len);
    return json_stringn(strbuf_text(text), len);
}

static void do_tools_call(struct call *call)
{
    const struct server *server = call->server;
    const char *name = tool_text(call->params, "name");
    json_t *args = json_object_get(call->params, "arguments");
    const struct tool *tool = NULL;
    for (uint32_t ix = 0; name != NULL && ix < server->tool_count; ix++) {
        tool = strcmp(server->tools[ix].name, name) == 0 ? &server->tools[ix]
                                                         : tool;
    }
    if (tool == NULL) {
        fail(call, CODE_PARAMS, "unknown tool", NULL);
        return;
    }
    struct strbuf out = {0};
    struct diag diag = {0};
    enum err err = tool_call(tool, args, &out, &diag);
    if (err != ERR_OK) {
        strbuf_clear(&out);
        strbuf_addf(&out, "error: %s", diag.text);
    }
    json_t *content =
        json_pack("[{s:s, s:o}]", "type", "text", "text", text_of(&out));
    call->result =
        json_pack("{s:o, s:b}", "content", content, "isError", err != ERR_OK);
    strbuf_release(&out);
}

static bool is_template(const struct server_resource *resource)
{
    return strchr(resource->uri, '{') != NULL;
}

static void list_resources(struct call *call, bool templates)
{
    json_t *list = json_array();
    for (uint32_t ix = 0; ix < call->server->resource_count; ix++) {
        const struct server_resource *resource = &call->server->resources[ix];
        if (is_template(resource) == templates) {
            json_t *item = json_pack("{s:s, s:s, s:s, s:s}",
                                     templates ? "uriTemplate" : "uri",
                                     resource->uri,
                                     "name",
                                     resource->name,
                                     "description",
                                     resource->text,
                                     "mimeType",
                                     "text/plain");
            (void)json_array_append_new(list, item);
        }
    }
    call->result =
        json_pack("{s:o}", templates ? "resourceTemplates" : "resources", list);
}

static void do_resources_list(struct call *call)
{
    list_resources(call, false);
}

static void do_templates_list(struct call *call)
{
    list_resources(call, true);
}

/* Decode one character of a URI; return how many bytes it took. */
static size_t decode(const char *at, char *out)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *high =
        at[0] == '%' && at[1] != '\0' ? strchr(digits, at[1]) : NULL;
    const char *low =
        high != NULL && at[2] != '\0' ? strchr(digits, at[2]) : NULL;
    if (low == NULL) {
        *out = at[0];
        return 1;
    }
    *out = (char)((high - digits) % 16 * 16 + (low - digits) % 16);
    return 3;
}

/* Whether a URI fits a resource; *id gets the part of a template. */
static bool
fits(const struct server_resource *resource, const char *uri, struct strbuf *id)
{
    const char *open = strchr(resource->uri, '{');
    const char *close = strchr(resource->uri, '}');
    if (open == NULL || close == NULL) {
        return strcmp(resource->uri, uri) == 0;
    }
    size_t head = (size_t)(open - resource->uri);
    size_t tail = strlen(close + 1);
    size_t len = strlen(uri);
    if (len <= head + tail || strncmp(uri, resource->uri, head) != 0 ||
        strcmp(uri + len - tail, close + 1) != 0) {
        return false;
    }
    const char *end = uri + len - tail;
    for (const char *at = uri + head; at < end;) {
        char byte;
        at += decode(at, &byte);
        if (byte != '\0') {
            strbuf_add(id, &byte, 1);
        }
    }
    return true;
}

static void do_resources_read(struct call *call)
{
    const char *uri = tool_text(call->params, "uri");
    const struct server_resource *found = NULL;
    struct strbuf id = {0};
    struct strbuf out = {0};
    struct diag diag = {0};
    if (uri == NULL) {
        fail(call, CODE_PARAMS, "\"uri\" is missing", NULL);
        return;
    }
    for (uint32_t ix = 0; ix < call->server->resource_count; ix++) {
        if (found == NULL && fits(&call->server->resources[ix], uri, &id)) {
            found = &call->server->resources[ix];
        }
    }
    enum err err = found != NULL
                       ? found->read(strbuf_text(&id), &out, &diag)
                       : diag_set(&diag, ERR_NOT_FOUND, "unknown resource");
    if (err == ERR_OK) {
        json_t *contents = json_pack("[{s:s, s:s, s:o}]",
                                     "uri",
                                     uri,
                                     "mimeType",
                                     "text/plain",
                                     "text",
                                     text_of(&out));
        call->result = json_pack("{s:o}", "contents", contents);
    } else {
        fail(call,
             err != ERR_NOT_FOUND ? CODE_INTERNAL
             : call->modern       ? CODE_PARAMS
                                  : CODE_RESOURCE,
             diag.text,
             json_pack("{s:s}", "uri", uri));
    }
    strbuf_release(&id);
    strbuf_release(&out);
}

/* --- requests ----------------------------------------------------------- */

enum era { ERA_BOTH, ERA_LEGACY, ERA_MODERN };

static const struct method {
    const char *name;
    enum era era;
    bool cached; /* its result may be kept by clients */
    bool resources;
    void (*run)(struct call *call);
} methods[] = {
    {"initialize", ERA_LEGACY, false, false, do_initialize},
    {"ping", ERA_LEGACY, false, false, do_ping},
    {"resources/list", ERA_BOTH, true, true, do_resources_list},
    {"resources/read", ERA_BOTH, false, true, do_resources_read},
    {"resources/templates/list", ERA_BOTH, true, true, do_templates_list},
    {"server/discover", ERA_MODERN, true, false, do_discover},
    {"tools/call", ERA_BOTH, false, false, do_tools_call},
    {"tools/list", ERA_BOTH, true, false, do_tools_list},
};

static const struct method *find_method(const struct call *call,
                                        const char *name)
{
    for (size_t ix = 0; ix < ARRAY_COUNT(methods); ix++) {
        const struct method *method = &methods[ix];
        bool known = method->era == ERA_BOTH ||
                     (method->era == ERA_MODERN) == call->modern;
        if (known && strcmp(method->name, name) == 0 &&
            (!method->resources || call->server->resource_count > 0)) {
            return method;
        }
    }
    return NULL;
}

/* Check the revision that a request carries; false: it fails. */
static bool check_version(struct call *call)
{
    const json_t *meta = json_object_get(call->params, "_meta");
    const json_t *version = json_object_get(meta, META_KEY("protocolVersion"));
    if (version == NULL) {
        return true;
    }
    const char *wanted = json_string_value(version);
    call->modern = true;
    if (wanted == NULL || strcmp(wanted, versions[VERSION_MODERN]) != 0) {
        json_t *data = json_pack("{s:o, s:s}",
                                 "supported",
                                 version_list(),
                                 "requested",
                                 wanted != NULL ? wanted : "");
        fail(call, CODE_VERSION, "unsupported protocol version", data);
        return false;
    }
    if (!json_is_object(
            json_object_get(meta, META_KEY("clientCapabilities")))) {
        fail(call,
             CODE_PARAMS,
             "\"_meta\" needs " META_KEY("clientCapabilities"),
             NULL);
        return false;
    }
    return true;
}

/* Add what results of the newest revision have. */
static void complete(const struct call *call, const struct method *method)
{
    if (!call->modern || call->result == NULL) {
        return;
    }
    (void)json_object_set_new(call->result,
                              "resultType",
                              json_string("complete"));
    json_t *meta = json_object();
    (void)json_object_set_new(meta,
                              META_KEY("serverInfo"),
                              server_info(call->server));
    (void)json_object_set_new(call->result, "_meta", meta);
    bool reads = method->cached || method->run == do_resources_read;
    if (reads) {
        (void)json_object_set_new(call->result,
                                  "ttlMs",
                                  json_integer(method->cached ? TTL_MS : 0));
        (void)json_object_set_new(call->result,
                                  "cacheScope",
                                  json_string("private"));
    }
}

static void run_method(struct call *call, const char *name)
{
    if (!check_version(call)) {
        return;
    }
    const struct method *method = find_method(call, name);
    if (method == NULL) {
        fail(call, CODE_METHOD, "method not found", NULL);
        return;
    }
    method->run(call);
    complete(call, method);
}

/* Append the answer to a request; `id_take` may be NULL: it was not readable.
 */
static void add_answer(struct call *call, json_t *id_take, struct strbuf *out)
{
    json_t *answer = json_pack("{s:s, s:o}",
                               "jsonrpc",
                               "2.0",
                               "id",
                               id_take != NULL ? id_take : json_null());
    if (call->code == 0) {
        (void)json_object_set_new(answer, "result", call->result);
    } else {
        json_t *error = json_pack("{s:i, s:s}",
                                  "code",
                                  call->code,
                                  "message",
                                  call->diag.text);
        if (call->data != NULL) {
            (void)json_object_set_new(error, "data", call->data);
        }
        (void)json_object_set_new(answer, "error", error);
    }
    char *text = json_dumps(answer, JSON_COMPACT);
    strbuf_addf(out, "%s\n", text != NULL ? text : "{}");
    free(text);
    json_decref(answer);
}

static bool is_id(const json_t *id)
{
    return json_is_string(id) || json_is_integer(id);
}

/* Take a message apart; return its method, or NULL after an error. */
static const char *take_message(struct call *call, const json_t *message)
{
    const json_t *params = json_object_get(message, "params");
    const char *version = tool_text(message, "jsonrpc");
    const char *method = tool_text(message, "method");
    if (version == NULL || strcmp(version, "2.0") != 0 || method == NULL) {
        fail(call, CODE_REQUEST, "not a request of JSON-RPC 2.0", NULL);
        return NULL;
    }
    if (params != NULL && !json_is_object(params)) {
        fail(call, CODE_PARAMS, "\"params\" must be an object", NULL);
        return NULL;
    }
    call->params = params;
    return method;
}

void server_answer(const struct server *server,
                   const char *line,
                   size_t len,
                   struct strbuf *out)
{
    struct call call = {.server = server};
    size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY;
    json_t *message = json_loadb(line, len, flags, NULL);
    json_t *id = json_object_get(message, "id");
    bool named = json_object_get(message, "method") != NULL;
    bool answers = !named && (json_object_get(message, "result") != NULL ||
                              json_object_get(message, "error") != NULL);
    if (message == NULL) {
        fail(&call, CODE_PARSE, "not JSON", NULL);
        add_answer(&call, NULL, out);
    } else if (answers) {
        /* An answer to a request we never make, or to an error of ours. */
    } else if (!json_is_object(message) || (id != NULL && !is_id(id)) ||
               (id == NULL && tool_text(message, "method") == NULL)) {
        fail(&call, CODE_REQUEST, "not a request of JSON-RPC 2.0", NULL);
        add_answer(&call, NULL, out);
    } else if (id != NULL) {
        const char *method = take_message(&call, message);
        if (method != NULL) {
            run_method(&call, method);
        }
        add_answer(&call, json_incref(id), out);
    } /* else: a notification */
    json_decref(message);
}

/* --- input and output --------------------------------------------------- */

static bool write_all(const struct strbuf *text)
{
    const char *at = strbuf_text(text);
    size_t left = text->len;
    while (left > 0) {
        ssize_t len = write(STDOUT_FILENO, at, left);
        if (len < 0 && errno != EINTR) {
            return false;
        }
        at += len > 0 ? len : 0;
        left -= len > 0 ? (size_t)len : 0;
    }
    return true;
}

/* What was read and not yet answered. */
struct input {
    struct strbuf line;
    bool skipping; /* the rest of a line that is too long */
};

static bool answer_line(const struct server *server, struct input *input)
{
    struct strbuf out = {0};
    const char *text = strbuf_text(&input->line);
    if (input->skipping) {
        struct call call = {.server = server};
        fail(&call, CODE_REQUEST, "the request is longer than 4 MiB", NULL);
        add_answer(&call, NULL, &out);
    } else if (strspn(text, " \t\r") < input->line.len) {
        server_answer(server, text, input->line.len, &out);
    }
    input->skipping = false;
    strbuf_clear(&input->line);
    bool written = write_all(&out);
    strbuf_release(&out);
    return written;
}

/* Answer the lines that are complete; false: the client is gone. */
static bool take(const struct server *server,
                 struct input *input,
                 const char *at,
                 size_t len)
{
    bool open = true;
    while (len > 0 && open) {
        const char *newline = memchr(at, '\n', len);
        size_t part = newline != NULL ? (size_t)(newline - at) : len;
        if (input->line.len + part > SERVER_LINE_BYTES_MAX) {
            input->skipping = true;
            strbuf_release(&input->line);
        }
        if (!input->skipping) {
            strbuf_add(&input->line, at, part);
        }
        if (newline != NULL) {
            open = answer_line(server, input);
            part++;
        }
        at += part;
        len -= part;
    }
    return open;
}

enum err server_run(const struct server *server, struct diag *diag)
{
    char bytes[READ_BYTES];
    struct input input = {0};
    ssize_t len = 1;
    bool open = true;
    while (open && len != 0) {
        len = read(STDIN_FILENO, bytes, sizeof(bytes));
        if (len < 0 && errno != EINTR) {
            break;
        }
        open = len <= 0 || take(server, &input, bytes, (size_t)len);
    }
    if (len == 0 && open && (input.line.len > 0 || input.skipping)) {
        open = answer_line(server, &input); /* without a final newline */
    }
    enum err err = ERR_OK;
    if (len < 0 || (!open && errno != EPIPE)) {
        err = diag_set(diag,
                       ERR_IO,
                       "%s: %s",
                       len < 0 ? "standard input" : "standard output",
                       strerror(errno));
    }
    strbuf_release(&input.line);
    return err;
}
