/* SPDX-License-Identifier: MIT */
/* The methods of the MCP server, in both kinds of revisions, and its tools. */
#include "mcp/server.h"

#include "base/macros.h"
#include "tests/unit/mcp_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { TEXT_BYTES_MAX = 512 << 10 };

/* A server without resources. */
static const struct server bare = {
    .name = "bare",
    .instructions = "",
    .tools = mcp_tools,
    .tool_count = ARRAY_COUNT(mcp_tools),
};

/* Require what results of the newest revision have; `ttl` < 0: it may not be
 * kept. */
static void expect_modern(const json_t *answer, int ttl)
{
    const json_t *info = mcp_at(answer, "result _meta " MCP_META("serverInfo"));
    assert_string_equal(mcp_text(answer, "result resultType"), "complete");
    assert_string_equal(mcp_text(info, "name"), "test");
    assert_string_equal(mcp_text(info, "version"), SLUICE_VERSION);
    const json_t *kept = mcp_at(answer, "result ttlMs");
    if (ttl < 0) {
        assert_null(kept);
        assert_null(mcp_at(answer, "result cacheScope"));
    } else {
        assert_true(json_is_integer(kept));
        assert_int_equal(json_integer_value(kept), ttl);
        assert_string_equal(mcp_text(answer, "result cacheScope"), "private");
    }
}

/* --- revisions ---------------------------------------------------------- */

static void initialize_agrees_on_a_known_revision(void **state)
{
    (void)state;
    static const struct {
        const char *wanted;
        const char *agreed;
    } rows[] = {
        {"2025-11-25", "2025-11-25"},
        {"2025-06-18", "2025-06-18"},
        {"2025-03-26", "2025-03-26"},
        {"2024-11-05", "2024-11-05"},
        {"2026-07-28", "2025-11-25"}, /* it knows no initialize */
        {"1999-01-01", "2025-11-25"},
        {"2025-11-2", "2025-11-25"},
        {"", "2025-11-25"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        struct strbuf params = {0};
        strbuf_addf(&params,
                    "'protocolVersion':'%s','capabilities':{},"
                    "'clientInfo':{'name':'x','version':'1'}",
                    rows[ix].wanted);
        json_t *got = mcp_ask("initialize", strbuf_text(&params));
        const json_t *result = mcp_at(got, "result");
        assert_int_equal(json_object_size(result), 4);
        assert_string_equal(mcp_text(result, "protocolVersion"),
                            rows[ix].agreed);
        assert_string_equal(mcp_text(result, "serverInfo name"), "test");
        assert_string_equal(mcp_text(result, "serverInfo version"),
                            SLUICE_VERSION);
        assert_string_equal(mcp_text(result, "instructions"), "Be brief.");
        assert_true(json_is_object(mcp_at(result, "capabilities tools")));
        assert_true(json_is_object(mcp_at(result, "capabilities resources")));
        json_decref(got);
        strbuf_release(&params);
    }
}

static void initialize_needs_a_revision(void **state)
{
    (void)state;
    mcp_expect_error(mcp_ask("initialize", ""), -32602);
    mcp_expect_error(mcp_ask("initialize", "'protocolVersion':20251125"),
                     -32602);
    mcp_expect_error(mcp_ask("initialize", "'protocolVersion':null"), -32602);
    mcp_expect_error(mcp_line("{'jsonrpc':'2.0','id':1,'method':'initialize'}"),
                     -32602);
}

static void a_server_without_resources_has_no_methods_for_them(void **state)
{
    (void)state;
    json_t *got =
        mcp_ask_server(&bare, "initialize", "'protocolVersion':'2025-11-25'");
    assert_non_null(mcp_at(got, "result capabilities tools"));
    assert_null(mcp_at(got, "result capabilities resources"));
    json_decref(got);
    got = mcp_ask_server(&bare, "server/discover", MCP_MODERN);
    assert_null(mcp_at(got, "result capabilities resources"));
    json_decref(got);
    mcp_expect_error(mcp_ask_server(&bare, "resources/list", ""), -32601);
    mcp_expect_error(mcp_ask_server(&bare, "resources/read", MCP_MODERN),
                     -32601);
    mcp_expect_error(mcp_ask_server(&bare, "resources/templates/list", ""),
                     -32601);
}

static void discover_describes_the_server(void **state)
{
    (void)state;
    json_t *got = mcp_ask("server/discover", MCP_MODERN);
    const json_t *versions = mcp_at(got, "result supportedVersions");
    assert_int_equal(json_array_size(versions), 5);
    assert_string_equal(mcp_text(versions, "0"), "2026-07-28");
    assert_string_equal(mcp_text(versions, "4"), "2024-11-05");
    assert_true(json_is_object(mcp_at(got, "result capabilities tools")));
    assert_string_equal(mcp_text(got, "result instructions"), "Be brief.");
    expect_modern(got, 3600000);
    json_decref(got);
    mcp_expect_error(mcp_ask("server/discover", ""), -32601);
}

static void another_revision_is_refused_with_those_we_know(void **state)
{
    (void)state;
    static const struct {
        const char *given;
        const char *requested;
    } rows[] = {
        {"'2025-11-25'", "2025-11-25"}, /* it has no such member */
        {"'2099-01-01'", "2099-01-01"},
        {"''", ""},
        {"5", ""},
        {"null", ""},
        {"{}", ""},
    };
    static const char *const methods[] = {"tools/list", "ping", "nothing"};
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        struct strbuf params = {0};
        strbuf_addf(&params,
                    "'_meta':{'" MCP_META("protocolVersion") "':%s," MCP_CAPABLE
                                                             "}",
                    rows[ix].given);
        json_t *got =
            mcp_ask(methods[ix % ARRAY_COUNT(methods)], strbuf_text(&params));
        assert_int_equal(json_array_size(mcp_at(got, "error data supported")),
                         5);
        assert_string_equal(mcp_text(got, "error data supported 0"),
                            "2026-07-28");
        assert_string_equal(mcp_text(got, "error data requested"),
                            rows[ix].requested);
        mcp_expect_error(got, -32022);
        strbuf_release(&params);
    }
}

static void the_newest_revision_needs_capabilities(void **state)
{
    (void)state;
    static const char version[] =
        "'_meta':{'" MCP_META("protocolVersion") "':'2026-07-28'";
    static const char *const rest[] = {
        "}",
        ",'" MCP_META("clientCapabilities") "':null}",
        ",'" MCP_META("clientCapabilities") "':[]}",
        ",'clientCapabilities':{}}",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rest); ix++) {
        struct strbuf params = {0};
        strbuf_addf(&params, "%s%s", version, rest[ix]);
        json_t *got = mcp_ask("tools/list", strbuf_text(&params));
        assert_non_null(strstr(mcp_text(got, "error message"),
                               MCP_META("clientCapabilities")));
        mcp_expect_error(got, -32602);
        strbuf_release(&params);
    }
}

static void a_request_without_a_revision_is_of_an_older_one(void **state)
{
    (void)state;
    static const char *const params[] = {
        "",
        "'_meta':{}",
        "'_meta':{'progressToken':1}",
        "'_meta':null",
        "'_meta':[]",
        "'cursor':'x'",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(params); ix++) {
        json_t *got = mcp_ask("tools/list", params[ix]);
        assert_int_equal(json_object_size(mcp_at(got, "result")), 1);
        json_decref(got);
    }
}

/* --- methods ------------------------------------------------------------ */

static void ping_is_of_older_revisions(void **state)
{
    (void)state;
    json_t *got = mcp_ask("ping", "");
    assert_int_equal(json_object_size(mcp_at(got, "result")), 0);
    json_decref(got);
    got = mcp_line("{'jsonrpc':'2.0','id':1,'method':'ping'}");
    assert_non_null(mcp_at(got, "result"));
    json_decref(got);
    mcp_expect_error(mcp_ask("ping", MCP_MODERN), -32601);
    mcp_expect_error(
        mcp_ask("initialize", "'protocolVersion':'2025-11-25'," MCP_MODERN),
        -32601);
}

static void other_methods_are_unknown(void **state)
{
    (void)state;
    static const char *const methods[] = {"",
                                          "Ping",
                                          "tools",
                                          "tools/lis",
                                          "tools/list/",
                                          "prompts/list",
                                          "logging/setLevel",
                                          "notifications/cancelled"};
    for (size_t ix = 0; ix < ARRAY_COUNT(methods); ix++) {
        mcp_expect_error(mcp_ask(methods[ix], ""), -32601);
        mcp_expect_error(mcp_ask(methods[ix], MCP_MODERN), -32601);
    }
}

static void tools_are_listed_in_both_revisions(void **state)
{
    (void)state;
    json_t *old = mcp_ask("tools/list", "");
    json_t *new = mcp_ask("tools/list", MCP_MODERN);
    assert_int_equal(json_object_size(mcp_at(old, "result")), 1);
    assert_int_equal(json_array_size(mcp_at(old, "result tools")), 2);
    assert_true(
        json_equal(mcp_at(old, "result tools"), mcp_at(new, "result tools")));
    expect_modern(new, 3600000);
    json_decref(old);
    json_decref(new);
}

static void a_tool_is_described_by_its_parameters(void **state)
{
    (void)state;
    json_t *echo = tool_describe(&mcp_tools[0]);
    json_t *say = tool_describe(&mcp_tools[1]);
    assert_string_equal(mcp_text(echo, "name"), "echo");
    assert_string_equal(mcp_text(echo, "description"), "Repeat it.");
    const json_t *schema = mcp_at(echo, "inputSchema");
    assert_string_equal(mcp_text(schema, "type"), "object");
    assert_true(json_is_false(mcp_at(schema, "additionalProperties")));
    assert_int_equal(json_array_size(mcp_at(schema, "required")), 1);
    assert_string_equal(mcp_text(schema, "required 0"), "text");
    const json_t *params = mcp_at(schema, "properties");
    assert_int_equal(json_object_size(params), 5);
    assert_string_equal(mcp_text(params, "text type"), "string");
    assert_string_equal(mcp_text(params, "text description"), "what to say");
    assert_null(mcp_at(params, "text enum"));
    assert_int_equal(json_array_size(mcp_at(params, "word enum")), 3);
    assert_string_equal(mcp_text(params, "word enum 2"), "three");
    assert_null(mcp_at(params, "word description"));
    assert_string_equal(mcp_text(params, "count type"), "integer");
    assert_string_equal(mcp_text(params, "list type"), "array");
    assert_string_equal(mcp_text(params, "list items type"), "string");
    assert_string_equal(mcp_text(params, "object type"), "object");
    assert_true(json_is_false(mcp_at(echo, "annotations readOnlyHint")));
    assert_true(json_is_true(mcp_at(say, "annotations readOnlyHint")));
    assert_true(json_is_false(mcp_at(say, "annotations destructiveHint")));
    assert_null(mcp_at(say, "inputSchema required"));
    assert_true(json_is_object(mcp_at(say, "inputSchema properties")));
    json_decref(echo);
    json_decref(say);
}

static void resources_are_listed_apart_from_templates(void **state)
{
    (void)state;
    json_t *got = mcp_ask("resources/list", "");
    assert_int_equal(json_object_size(mcp_at(got, "result")), 1);
    assert_int_equal(json_array_size(mcp_at(got, "result resources")), 1);
    const json_t *item = mcp_at(got, "result resources 0");
    assert_string_equal(mcp_text(item, "uri"), "test://plain");
    assert_string_equal(mcp_text(item, "name"), "plain");
    assert_string_equal(mcp_text(item, "description"), "A plain one");
    assert_string_equal(mcp_text(item, "mimeType"), "text/plain");
    json_decref(got);
    got = mcp_ask("resources/templates/list", MCP_MODERN);
    assert_int_equal(json_array_size(mcp_at(got, "result resourceTemplates")),
                     2);
    assert_string_equal(mcp_text(got, "result resourceTemplates 0 uriTemplate"),
                        "test://item/{id}/log");
    assert_null(mcp_at(got, "result resourceTemplates 0 uri"));
    expect_modern(got, 3600000);
    json_decref(got);
}

static void a_resource_is_read_by_its_uri(void **state)
{
    (void)state;
    json_t *got = mcp_ask("resources/read", "'uri':'test://plain'");
    assert_int_equal(json_object_size(mcp_at(got, "result")), 1);
    assert_int_equal(json_array_size(mcp_at(got, "result contents")), 1);
    const json_t *item = mcp_at(got, "result contents 0");
    assert_string_equal(mcp_text(item, "uri"), "test://plain");
    assert_string_equal(mcp_text(item, "mimeType"), "text/plain");
    assert_string_equal(mcp_text(item, "text"), "plain ");
    json_decref(got);
    got = mcp_ask("resources/read", "'uri':'test://plain'," MCP_MODERN);
    expect_modern(got, 0); /* it may change at any time */
    json_decref(got);
}

static void the_id_in_a_uri_is_decoded(void **state)
{
    (void)state;
    static const struct {
        const char *uri;
        const char *id;
    } rows[] = {
        {"test://item/a/log", "a"},
        {"test://item/a/b/c/log", "a/b/c"},
        {"test://item/a%2Fb%2fc/log", "a/b/c"},
        {"test://item/a%20b%25c/log", "a b%c"},
        {"test://item/%C3%a4/log", "\xc3\xa4"},
        {"test://item/\xc3\xa4/log", "\xc3\xa4"},
        {"test://item/100%/log", "100%"},
        {"test://item/%zz%4g%/log", "%zz%4g%"},
        {"test://item/%%41/log", "%A"},
        {"test://item/%2541/log", "%41"}, /* once only */
        {"test://item/a%00b/log", "ab"},
        {"test://item//log/log", "/log"},
        {"test://item/{id}/log", "{id}"},
        {"test://last/x%", "x%"},
        {"test://last/x%4", "x%4"},
        {"test://last/%78/log", "x/log"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        struct strbuf params = {0};
        strbuf_addf(&params, "'uri':'%s'", rows[ix].uri);
        json_t *got = mcp_ask("resources/read", strbuf_text(&params));
        assert_string_equal(mcp_text(got, "result contents 0 uri"),
                            rows[ix].uri);
        assert_string_equal(mcp_text(got, "result contents 0 text"),
                            rows[ix].id);
        json_decref(got);
        strbuf_release(&params);
    }
}

static void an_unknown_resource_is_named_in_the_error(void **state)
{
    (void)state;
    static const struct {
        const char *uri;
        const char *message;
    } rows[] = {
        {"test://other", "unknown resource"},
        {"", "unknown resource"},
        {"test://plain/", "unknown resource"},
        {"test://Plain", "unknown resource"},
        {"test://item//log", "unknown resource"}, /* the id is empty */
        {"test://item/log", "unknown resource"},
        {"test://item/a/lo", "unknown resource"},
        {"test://last/", "unknown resource"},
        {"test://item/gone/log", "it is gone"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        for (int modern = 0; modern < 2; modern++) {
            struct strbuf params = {0};
            strbuf_addf(&params,
                        "'uri':'%s'%s",
                        rows[ix].uri,
                        modern ? "," MCP_MODERN : "");
            json_t *got = mcp_ask("resources/read", strbuf_text(&params));
            assert_string_equal(mcp_text(got, "error data uri"), rows[ix].uri);
            assert_string_equal(mcp_text(got, "error message"),
                                rows[ix].message);
            mcp_expect_error(got, modern ? -32602 : -32002);
            strbuf_release(&params);
        }
    }
    mcp_expect_error(mcp_ask("resources/read", ""), -32602);
    mcp_expect_error(mcp_ask("resources/read", "'uri':7"), -32602);
    mcp_expect_error(mcp_ask("resources/read", "'uri':'test://plain\\u0000'"),
                     -32602);
}

/* --- tools -------------------------------------------------------------- */

/* Call the tool "echo" with these members of `arguments`. */
static json_t *echo(const char *arguments)
{
    struct strbuf params = {0};
    strbuf_addf(&params, "'name':'echo','arguments':{%s}", arguments);
    json_t *got = mcp_ask("tools/call", strbuf_text(&params));
    strbuf_release(&params);
    return got;
}

/* Require a result of a tool, and release the answer. */
static void expect_text(json_t *answer, bool error, const char *text)
{
    assert_int_equal(json_array_size(mcp_at(answer, "result content")), 1);
    assert_string_equal(mcp_text(answer, "result content 0 type"), "text");
    assert_string_equal(mcp_text(answer, "result content 0 text"), text);
    assert_true(json_is_boolean(mcp_at(answer, "result isError")));
    assert_int_equal(json_is_true(mcp_at(answer, "result isError")), error);
    json_decref(answer);
}

static void a_tool_gets_its_arguments(void **state)
{
    (void)state;
    json_t *got = echo("'text':'a\\n\\u00e4','word':'two','count':-3,"
                       "'list':['x',{}],'object':{'a':null}");
    assert_int_equal(json_object_size(mcp_at(got, "result")), 2);
    expect_text(got,
                false,
                "{\"count\":-3,\"list\":[\"x\",{}],\"object\":{\"a\":null},"
                "\"text\":\"a\\n\xc3\xa4\",\"word\":\"two\"}");
    /* An argument that is not required may be null. */
    expect_text(echo("'text':'','word':null,'list':null"),
                false,
                "{\"list\":null,\"text\":\"\",\"word\":null}");
    got = mcp_ask("tools/call",
                  "'name':'echo','arguments':{'text':'x'}," MCP_MODERN);
    expect_modern(got, -1);
    expect_text(got, false, "{\"text\":\"x\"}");
}

static void wrong_arguments_are_an_error_of_the_tool(void **state)
{
    (void)state;
    static const struct {
        const char *arguments;
        const char *message;
    } rows[] = {
        {"", "\"text\" is missing"},
        {"'word':'one'", "\"text\" is missing"},
        {"'text':null", "\"text\" is missing"},
        {"'text':5", "\"text\" must be of type string"},
        {"'text':['x']", "\"text\" must be of type string"},
        {"'text':'x','count':'5'", "\"count\" must be of type integer"},
        {"'text':'x','count':1.5", "\"count\" must be of type integer"},
        {"'text':'x','count':true", "\"count\" must be of type integer"},
        {"'text':'x','list':{}", "\"list\" must be of type array"},
        {"'text':'x','object':[]", "\"object\" must be of type object"},
        {"'text':'x','word':'four'", "\"word\" must be one of one|two|three"},
        {"'text':'x','word':''", "\"word\" must be one of one|two|three"},
        {"'text':'x','word':'tw'", "\"word\" must be one of one|two|three"},
        {"'text':'x','word':'twoo'", "\"word\" must be one of one|two|three"},
        {"'text':'x','word':'one|two'",
         "\"word\" must be one of one|two|three"},
        {"'text':'a\\u0000b'", "\"text\" contains a NUL"},
        {"'text':'x','word':'one\\u0000'", "\"word\" contains a NUL"},
        {"'text':'x','Text':'y'", "unknown argument \"Text\""},
        {"'text':'x','':1", "unknown argument \"\""},
    };
    mcp_calls = 0;
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        struct strbuf wanted = {0};
        strbuf_addf(&wanted, "error: echo: %s", rows[ix].message);
        expect_text(echo(rows[ix].arguments), true, strbuf_text(&wanted));
        strbuf_release(&wanted);
    }
    assert_int_equal(mcp_calls, 0);
}

static void arguments_must_be_an_object(void **state)
{
    (void)state;
    static const char *const others[] = {"[]", "'text'", "5", "null", "true"};
    mcp_calls = 0;
    for (size_t ix = 0; ix < ARRAY_COUNT(others); ix++) {
        struct strbuf params = {0};
        strbuf_addf(&params, "'name':'say','arguments':%s", others[ix]);
        expect_text(mcp_ask("tools/call", strbuf_text(&params)),
                    true,
                    "error: say: the arguments must be an object");
        strbuf_release(&params);
    }
    assert_int_equal(mcp_calls, 0);
    mcp_said = "x";
    mcp_said_len = 1;
    expect_text(mcp_ask("tools/call", "'name':'say'"), false, "x");
    expect_text(mcp_ask("tools/call", "'name':'say','arguments':{}"),
                false,
                "x");
    assert_int_equal(mcp_calls, 2);
}

static void an_unknown_tool_is_an_error_of_the_request(void **state)
{
    (void)state;
    static const char *const params[] = {
        "",
        "'name':''",
        "'name':'Echo'",
        "'name':'ech'",
        "'name':'echoo'",
        "'name':'echo\\u0000'",
        "'name':7",
        "'name':null",
        "'name':['echo']",
        "'arguments':{'text':'x'}",
    };
    mcp_calls = 0;
    for (size_t ix = 0; ix < ARRAY_COUNT(params); ix++) {
        mcp_expect_error(mcp_ask("tools/call", params[ix]), -32602);
    }
    mcp_expect_error(mcp_ask("tools/call", "'name':'none'," MCP_MODERN),
                     -32602);
    assert_int_equal(mcp_calls, 0);
}

/* Have the tool "say" these bytes, and return the answer. */
static json_t *say(const char *bytes, size_t len, enum err err)
{
    mcp_said = bytes;
    mcp_said_len = len;
    mcp_said_err = err;
    json_t *got = mcp_ask("tools/call", "'name':'say'");
    mcp_said_err = ERR_OK;
    return got;
}

static void a_tool_that_fails_has_a_result(void **state)
{
    (void)state;
    /* What it mcp_said before is dropped. */
    expect_text(say("no", 2, ERR_CONFLICT), true, "error: no");
    expect_text(say("no", 2, ERR_OK), false, "no");
    expect_text(say("\xff no", 4, ERR_IO), true, "error: ? no");
    expect_text(say("a\nb\"", 4, ERR_IO), true, "error: a\nb\"");
}

static void bytes_that_are_not_utf8_do_not_break_an_answer(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "\xff",
        "good \xc3",
        "\xed\xa0\x80",     /* a surrogate */
        "\xc0\x80",         /* overlong */
        "\xf4\x90\x80\x80", /* beyond the last character */
        "\x80 begins within a character",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(texts); ix++) {
        json_t *got = say(texts[ix], strlen(texts[ix]), ERR_OK);
        assert_true(mcp_text(got, "result content 0 text")[0] != '\0');
        assert_true(json_is_false(mcp_at(got, "result isError")));
        json_decref(got);
    }
    /* A URI may name such an id. */
    json_t *got = mcp_ask("resources/read", "'uri':'test://item/%ff%fe/log'");
    assert_string_equal(mcp_text(got, "result contents 0 uri"),
                        "test://item/%ff%fe/log");
    json_decref(got);
    got = say("a\0b\x1b", 4, ERR_OK);
    assert_int_equal(json_string_length(mcp_at(got, "result content 0 text")),
                     4);
    json_decref(got);
}

static void a_long_text_is_cut_at_a_character(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        const char *character; /* repeated so often: */
        size_t count;
        size_t wanted; /* bytes */
    } rows[] = {
        {"", "x", TEXT_BYTES_MAX - 1, TEXT_BYTES_MAX - 1},
        {"", "x", TEXT_BYTES_MAX, TEXT_BYTES_MAX},
        {"", "x", TEXT_BYTES_MAX + 1, TEXT_BYTES_MAX},
        {"", "x", (size_t)4 * TEXT_BYTES_MAX, TEXT_BYTES_MAX},
        {"", "\xc3\xa4", TEXT_BYTES_MAX / 2, TEXT_BYTES_MAX},
        {"", "\xc3\xa4", TEXT_BYTES_MAX, TEXT_BYTES_MAX},
        {"x", "\xc3\xa4", TEXT_BYTES_MAX, TEXT_BYTES_MAX - 1},
        {"x", "\xf0\x9f\x98\x80", TEXT_BYTES_MAX, TEXT_BYTES_MAX - 3},
        {"xx", "\xf0\x9f\x98\x80", TEXT_BYTES_MAX, TEXT_BYTES_MAX - 2},
        {"xxx", "\xf0\x9f\x98\x80", TEXT_BYTES_MAX, TEXT_BYTES_MAX - 1},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        struct strbuf text = {0};
        strbuf_adds(&text, rows[ix].head);
        for (size_t n = 0; n < rows[ix].count; n++) {
            strbuf_adds(&text, rows[ix].character);
        }
        json_t *got = say(strbuf_text(&text), text.len, ERR_OK);
        const json_t *json = mcp_at(got, "result content 0 text");
        assert_int_equal(json_string_length(json), rows[ix].wanted);
        assert_memory_equal(json_string_value(json),
                            strbuf_text(&text),
                            rows[ix].wanted);
        json_decref(got);
        strbuf_release(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(initialize_agrees_on_a_known_revision),
        cmocka_unit_test(initialize_needs_a_revision),
        cmocka_unit_test(a_server_without_resources_has_no_methods_for_them),
        cmocka_unit_test(discover_describes_the_server),
        cmocka_unit_test(another_revision_is_refused_with_those_we_know),
        cmocka_unit_test(the_newest_revision_needs_capabilities),
        cmocka_unit_test(a_request_without_a_revision_is_of_an_older_one),
        cmocka_unit_test(ping_is_of_older_revisions),
        cmocka_unit_test(other_methods_are_unknown),
        cmocka_unit_test(tools_are_listed_in_both_revisions),
        cmocka_unit_test(a_tool_is_described_by_its_parameters),
        cmocka_unit_test(resources_are_listed_apart_from_templates),
        cmocka_unit_test(a_resource_is_read_by_its_uri),
        cmocka_unit_test(the_id_in_a_uri_is_decoded),
        cmocka_unit_test(an_unknown_resource_is_named_in_the_error),
        cmocka_unit_test(a_tool_gets_its_arguments),
        cmocka_unit_test(wrong_arguments_are_an_error_of_the_tool),
        cmocka_unit_test(arguments_must_be_an_object),
        cmocka_unit_test(an_unknown_tool_is_an_error_of_the_request),
        cmocka_unit_test(a_tool_that_fails_has_a_result),
        cmocka_unit_test(bytes_that_are_not_utf8_do_not_break_an_answer),
        cmocka_unit_test(a_long_text_is_cut_at_a_character),
    };
    return cmocka_run_group_tests_name("mcp", tests, NULL, NULL);
}
