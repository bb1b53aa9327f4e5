/* SPDX-License-Identifier: MIT */
/* Messages of JSON-RPC to the MCP server, right and wrong, and its input and
 * output. */
#include "mcp/server.h"

#include "base/macros.h"
#include "tests/unit/mcp_fixture.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Require an error without a readable id. */
static void expect_lost(json_t *answer, int code)
{
    assert_non_null(answer);
    assert_true(json_is_null(mcp_at(answer, "id")));
    mcp_expect_error(answer, code);
}

static void ids_come_back_unchanged(void **state)
{
    (void)state;
    static const char *const ids[] = {
        "0",
        "1",
        "-1",
        "9007199254740993", /* more than a double can tell */
        "9223372036854775807",
        "-9223372036854775808",
        "\"\"",
        "\"1\"",
        "\"a b\"",
        "\"\\\"\\\\\\n\"",
        "\"\xc3\xa4\"",
        "\"a\\u0000b\"",
    };
    static const char *const methods[] = {"ping", "none", "tools/call"};
    for (size_t ix = 0; ix < ARRAY_COUNT(ids); ix++) {
        struct strbuf line = {0};
        strbuf_addf(&line,
                    "{\"id\":%s,\"jsonrpc\":\"2.0\",\"method\":\"%s\"}",
                    ids[ix],
                    methods[ix % ARRAY_COUNT(methods)]);
        json_t *got = mcp_send(strbuf_text(&line), line.len);
        char *id = json_dumps(mcp_at(got, "id"), JSON_ENCODE_ANY);
        assert_string_equal(id, ids[ix]);
        free(id);
        json_decref(got);
        strbuf_release(&line);
    }
}

static void an_id_of_another_type_is_not_a_request(void **state)
{
    (void)state;
    static const char *const ids[] =
        {"null", "true", "1.5", "1.0", "1e3", "[1]", "{}"};
    for (size_t ix = 0; ix < ARRAY_COUNT(ids); ix++) {
        struct strbuf line = {0};
        strbuf_addf(&line,
                    "{'jsonrpc':'2.0','id':%s,'method':'ping'}",
                    ids[ix]);
        expect_lost(mcp_line(strbuf_text(&line)), -32600);
        strbuf_release(&line);
    }
}

static void what_is_not_json_is_a_parse_error(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "",
        " ",
        "nonsense",
        "{",
        "}",
        "{'jsonrpc':'2.0','id':1,'method':'ping'",
        "{'jsonrpc':'2.0','id':1,'method':'ping'}}",
        "{'jsonrpc':'2.0','id':1,'method':'ping'} {}",
        "{'jsonrpc':'2.0','id':1,'method':'ping',}",
        "{'jsonrpc':'2.0','id':01,'method':'ping'}",
        "{'jsonrpc':'2.0','id':99999999999999999999,'method':'ping'}",
        "{'jsonrpc':'2.0','id':1,'method':'\xff'}",
        "{'jsonrpc':'2.0','id':1,'method':'\\ud800'}",
        "{'jsonrpc':'2.0','id':1,'method':'a\nb'}",
        "{'jsonrpc':'2.0','id':1,'method':'ping','a\\u0000b':1}",
        "\xef\xbb\xbf{'jsonrpc':'2.0','id':1,'method':'ping'}",
        /* duplicates */
        "{'jsonrpc':'2.0','id':1,'id':2,'method':'ping'}",
        "{'jsonrpc':'2.0','id':1,'method':'ping','method':'ping'}",
        "{'jsonrpc':'2.0','id':1,'method':'ping','params':{'x':1,'x':1}}",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(lines); ix++) {
        expect_lost(mcp_line(lines[ix]), -32700);
    }
    expect_lost(mcp_send("{}\0", 3), -32700);
    expect_lost(mcp_send("\0{}", 3), -32700);
}

static void deep_nesting_is_a_parse_error(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "",
        "{'jsonrpc':'2.0','id':1,'method':'ping','params':",
        "{'jsonrpc':'2.0','id':",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(heads); ix++) {
        struct strbuf line = {0};
        mcp_add_quoted(&line, heads[ix]);
        strbuf_pad(&line, '[', 10000);
        strbuf_pad(&line, ']', 10000);
        strbuf_adds(&line, heads[ix][0] != '\0' ? "}" : "");
        expect_lost(mcp_send(strbuf_text(&line), line.len), -32700);
        strbuf_release(&line);
    }
    struct strbuf line = {0};
    for (int ix = 0; ix < 10000; ix++) {
        strbuf_adds(&line, "{\"a\":");
    }
    expect_lost(mcp_send(strbuf_text(&line), line.len), -32700);
    strbuf_release(&line);
}

static void other_json_is_not_a_request(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "5",
        "'ping'",
        "true",
        "null",
        "[]",
        "[1,2]",
        "[{'jsonrpc':'2.0','id':1,'method':'ping'}]", /* a batch */
        "{}",
        "{'jsonrpc':'2.0'}",
        "{'method':5}",
        "{'jsonrpc':'2.0','method':['ping']}",
        "{'jsonrpc':'2.0','method':'ping\\u0000'}",
        "{'jsonrpc':'2.0','params':{}}",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(lines); ix++) {
        expect_lost(mcp_line(lines[ix]), -32600);
    }
}

/* With an id that is readable, the answer has it. */
static void a_request_that_is_incomplete_keeps_its_id(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int code;
    } rows[] = {
        {"{'jsonrpc':'2.0','id':7}", -32600},
        {"{'jsonrpc':'2.0','id':7,'method':5}", -32600},
        {"{'jsonrpc':'2.0','id':7,'method':null}", -32600},
        {"{'jsonrpc':'2.0','id':7,'method':'ping\\u0000x'}", -32600},
        {"{'jsonrpc':'2.0\\u0000','id':7,'method':'ping'}", -32600},
        {"{'id':7,'method':'ping'}", -32600},
        {"{'jsonrpc':'1.0','id':7,'method':'ping'}", -32600},
        {"{'jsonrpc':2.0,'id':7,'method':'ping'}", -32600},
        {"{'jsonrpc':'2.0','id':7,'method':'ping','params':[]}", -32602},
        {"{'jsonrpc':'2.0','id':7,'method':'ping','params':'x'}", -32602},
        {"{'jsonrpc':'2.0','id':7,'method':'ping','params':5}", -32602},
        {"{'jsonrpc':'2.0','id':7,'method':'none','params':null}", -32602},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        json_t *got = mcp_line(rows[ix].line);
        assert_int_equal(json_integer_value(mcp_at(got, "id")), 7);
        mcp_expect_error(got, rows[ix].code);
    }
}

static void notifications_and_answers_are_not_answered(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "{'jsonrpc':'2.0','method':'notifications/initialized'}",
        ("{'jsonrpc':'2.0','method':'notifications/cancelled',"
         "'params':{'requestId':1,'reason':'x'}}"),
        "{'jsonrpc':'2.0','method':'notifications/unknown','params':5}",
        "{'jsonrpc':'2.0','method':'none'}",
        "{'jsonrpc':'2.0','method':'ping'}",
        "{'jsonrpc':'2.0','method':'tools/call','params':{'name':'say'}}",
        "{'jsonrpc':'2.0','method':'tools/list','params':{" MCP_MODERN "}}",
        "{'method':'notifications/initialized'}",
        "{'jsonrpc':'2.0','id':1,'result':{}}",
        "{'jsonrpc':'2.0','id':'x','result':null}",
        "{'jsonrpc':'2.0','id':1,'error':{'code':-32601,'message':'no'}}",
        "{'jsonrpc':'2.0','id':null,'error':{'code':-32700,'message':'no'}}",
        "{'jsonrpc':'2.0','error':{'code':-32700,'message':'no'}}",
    };
    mcp_calls = 0;
    for (size_t ix = 0; ix < ARRAY_COUNT(lines); ix++) {
        if (mcp_line(lines[ix]) != NULL) {
            fail_msg("%s was answered", lines[ix]);
        }
    }
    assert_int_equal(mcp_calls, 0);
    /* With a method, it is a request, whatever else it has. */
    json_t *got =
        mcp_line("{'jsonrpc':'2.0','id':1,'method':'ping','result':1}");
    assert_non_null(mcp_at(got, "result"));
    json_decref(got);
}

/* --- input and output --------------------------------------------------- */

/* Serve in another process; return its error. */
static enum err serve_fds(int input, int output)
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        bool good = signal(SIGPIPE, SIG_IGN) != SIG_ERR &&
                    dup2(input, STDIN_FILENO) >= 0 &&
                    dup2(output, STDOUT_FILENO) >= 0;
        _exit(good ? (int)server_run(&mcp_server, NULL) : 99);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return (enum err)WEXITSTATUS(status);
}

/* Serve this input, and append the output. */
static void serve(const struct strbuf *input, struct strbuf *out)
{
    char bytes[4096];
    ssize_t len;
    int from = memfd_create("input", MFD_CLOEXEC);
    int to = memfd_create("output", MFD_CLOEXEC);
    assert_true(from >= 0 && to >= 0);
    assert_int_equal(write(from, input->text, input->len), input->len);
    assert_int_equal(lseek(from, 0, SEEK_SET), 0);
    assert_int_equal(serve_fds(from, to), ERR_OK);
    assert_int_equal(lseek(to, 0, SEEK_SET), 0);
    while ((len = read(to, bytes, sizeof(bytes))) > 0) {
        strbuf_add(out, bytes, (size_t)len);
    }
    assert_int_equal(close(from), 0);
    assert_int_equal(close(to), 0);
}

/* Append a request for a ping, without a newline. */
static void add_ping(struct strbuf *out, int id)
{
    strbuf_addf(out, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"ping\"}", id);
}

/* Require the next line of an output; return what follows it. */
static const char *expect_next(const char *output, int id, int code)
{
    size_t len = strcspn(output, "\n") + 1;
    json_t *got = mcp_check(output, len);
    assert_int_equal(json_integer_value(mcp_at(got, "id")), id);
    assert_int_equal(mcp_code(got), code);
    json_decref(got);
    return output + len;
}

static void lines_are_answered_in_their_order(void **state)
{
    (void)state;
    struct strbuf input = {0};
    struct strbuf output = {0};
    add_ping(&input, 1);
    strbuf_adds(&input, "\n\n \t\r\n");
    add_ping(&input, 2);
    strbuf_adds(&input, "\r\n");
    strbuf_add(&input, "\0{}\n", 4);
    strbuf_adds(&input, "{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\nnonsense\n");
    add_ping(&input, 3); /* the last one needs no newline */
    serve(&input, &output);
    const char *rest = expect_next(strbuf_text(&output), 1, 0);
    rest = expect_next(rest, 2, 0);
    rest = expect_next(rest, 0, -32700);
    rest = expect_next(rest, 0, -32700);
    rest = expect_next(rest, 3, 0);
    assert_string_equal(rest, "");
    strbuf_clear(&input);
    strbuf_adds(&input, "\n");
    strbuf_clear(&output);
    serve(&input, &output);
    assert_int_equal(output.len, 0);
    strbuf_release(&input);
    strbuf_release(&output);
}

static void a_line_that_is_too_long_is_refused(void **state)
{
    (void)state;
    struct strbuf input = {0};
    struct strbuf output = {0};
    add_ping(&input, 1);
    strbuf_pad(&input, ' ', SERVER_LINE_BYTES_MAX - input.len);
    strbuf_adds(&input, "\n");
    size_t end = input.len + SERVER_LINE_BYTES_MAX + 1;
    add_ping(&input, 2);
    strbuf_pad(&input, ' ', end - input.len);
    strbuf_adds(&input, "\n");
    add_ping(&input, 3);
    strbuf_adds(&input, "\n");
    strbuf_pad(&input, '[', SERVER_LINE_BYTES_MAX + 1);
    serve(&input, &output);
    const char *rest = expect_next(strbuf_text(&output), 1, 0);
    rest = expect_next(rest, 0, -32600);
    rest = expect_next(rest, 3, 0);
    rest = expect_next(rest, 0, -32600);
    assert_string_equal(rest, "");
    strbuf_release(&input);
    strbuf_release(&output);
}

/* A client that is gone is the end; other errors are errors. */
static void a_client_that_is_gone_is_the_end(void **state)
{
    (void)state;
    struct strbuf input = {0};
    int fds[2];
    int gone[2];
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(pipe(gone), 0);
    assert_int_equal(close(gone[0]), 0);
    add_ping(&input, 1);
    strbuf_adds(&input, "\n");
    assert_int_equal(write(fds[1], input.text, input.len), input.len);
    /* It must not wait for more: the pipe stays open. */
    assert_int_equal(serve_fds(fds[0], gone[1]), ERR_OK);
    assert_int_equal(serve_fds(fds[1], gone[1]), ERR_IO);
    assert_int_equal(close(fds[0]), 0);
    assert_int_equal(close(fds[1]), 0);
    assert_int_equal(close(gone[1]), 0);
    strbuf_release(&input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_come_back_unchanged),
        cmocka_unit_test(an_id_of_another_type_is_not_a_request),
        cmocka_unit_test(what_is_not_json_is_a_parse_error),
        cmocka_unit_test(deep_nesting_is_a_parse_error),
        cmocka_unit_test(other_json_is_not_a_request),
        cmocka_unit_test(a_request_that_is_incomplete_keeps_its_id),
        cmocka_unit_test(notifications_and_answers_are_not_answered),
        cmocka_unit_test(lines_are_answered_in_their_order),
        cmocka_unit_test(a_line_that_is_too_long_is_refused),
        cmocka_unit_test(a_client_that_is_gone_is_the_end),
    };
    return cmocka_run_group_tests_name("mcp_rpc", tests, NULL, NULL);
}
