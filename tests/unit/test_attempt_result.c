/* SPDX-License-Identifier: MIT */
#include "exec/attempt_result.h"

#include "base/macros.h"
#include "base/strbuf.h"
#include "exec/outcome.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)

static struct attempt_result parsed(const char *text)
{
    struct attempt_result result;
    struct diag diag = {0};
    if (attempt_parse_result(text, strlen(text), &result, &diag) != ERR_OK) {
        fail_msg("%s: %s", text, diag.text);
    }
    assert_true(result.present);
    return result;
}

static void what_a_merge_says_of_the_base_is_read(void **state)
{
    (void)state;
    struct attempt_result result =
        parsed("{\"outcome\": \"done\", \"base\": {\"verdict\": \"failed\","
               " \"commit\": \"12ab\", \"reason\": \"con\\u0007flict\"}}");
    assert_true(result.base_failed);
    assert_string_equal(result.base_commit, "12ab");
    assert_string_equal(result.base_reason, "con flict");
    attempt_result_release(&result);
    static const char *const others[] = {
        "{\"base\": {\"verdict\": \"passed\", \"commit\": 5}}",
        "{\"base\": [1]}",
        "{\"base\": null}",
        "{\"base\": \"dev\"}",
        "{}",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(others); ix++) {
        result = parsed(others[ix]);
        assert_false(result.base_failed);
        assert_null(result.base_commit);
        attempt_result_release(&result);
    }
}

static void everything_that_may_be_said_is_read(void **state)
{
    (void)state;
    struct attempt_result result = parsed(
        "{\"outcome\": \"refused\", \"reason\": \"limit\\u0007 reached\","
        " \"retry_at\": \"2030-01-31T12:00:00.25+01:00\","
        " \"usage\": {\"input_tokens\": 10, \"output_tokens\": 20,"
        " \"cached_tokens\": 30, \"usd\": 0.5, \"model\": \"x\"},"
        " \"progress\": true,"
        " \"queue\": {\"restarts\": 2, \"on\": [\"c/merge\", \"d\"]},"
        " \"tasks\": [{\"task\": \"a\", \"outcome\": \"done\"},"
        " {\"task\": \"b\", \"outcome\": \"changes\", \"reason\": \"why\"}],"
        " \"more\": [1, {}]}");
    assert_true(result.has_outcome);
    assert_int_equal(result.outcome, OUTCOME_REFUSED);
    assert_string_equal(result.reason, "limit  reached");
    assert_true(result.retry_at_ns == 1896087600 * SECOND + SECOND / 4);
    assert_true(result.has_usage);
    assert_int_equal(result.input_tokens, 10);
    assert_int_equal(result.output_tokens, 20);
    assert_int_equal(result.cached_tokens, 30);
    assert_true(result.progress);
    assert_int_equal(result.restarts, 2);
    assert_string_equal(result.on, "c/merge, d");
    assert_true(result.usd > 0.49 && result.usd < 0.51);
    assert_int_equal(result.task_count, 2);
    assert_string_equal(result.tasks[0].task, "a");
    assert_int_equal(result.tasks[0].outcome, OUTCOME_DONE);
    assert_int_equal(result.tasks[1].outcome, OUTCOME_CHANGES);
    assert_null(result.tasks[0].reason);
    assert_string_equal(result.tasks[1].reason, "why");
    attempt_result_release(&result);
    assert_null(result.tasks);
}

#define TREE "0123456789abcdef0123456789abcdef01234567"

/* Append an entry of `gates`; `more` goes behind it. */
static void add_gate(struct strbuf *out,
                     const char *tree,
                     const char *verdict,
                     int tries,
                     const char *more)
{
    strbuf_addf(out,
                "{\"tree\": \"%s\", \"commit\": \"" TREE "\", "
                "\"command\": \"make\", \"verdict\": %s, "
                "\"tries\": %d%s}, ",
                tree,
                verdict,
                tries,
                more);
}

static void gates_are_read_and_others_skipped(void **state)
{
    (void)state;
    struct strbuf text = {0};
    strbuf_adds(&text, "{\"gates\": [");
    add_gate(&text, TREE, "\"passed\"", 1, "");
    add_gate(&text, TREE, "\"failed\"", 2, ", \"output\": \"no\\u001b\\n\"");
    add_gate(&text, TREE, "\"flaky\"", 3, ", \"output\": 7");
    add_gate(&text, "", "\"passed\"", 1, "");
    add_gate(&text, "zz", "\"passed\"", 1, "");
    add_gate(&text, TREE, "\"good\"", 1, "");
    add_gate(&text, TREE, "7", 1, "");
    add_gate(&text, TREE, "\"passed\"", 0, "");
    strbuf_adds(&text, "7, null, {}]}");
    struct attempt_result result = parsed(strbuf_text(&text));
    strbuf_release(&text);
    assert_int_equal(result.gate_count, 3);
    assert_string_equal(result.gates[0].tree, TREE);
    assert_string_equal(result.gates[0].commit, TREE);
    assert_string_equal(result.gates[0].command, "make");
    assert_int_equal(result.gates[0].verdict, ATTEMPT_GATE_PASSED);
    assert_null(result.gates[0].output);
    assert_int_equal(result.gates[1].verdict, ATTEMPT_GATE_FAILED);
    assert_int_equal(result.gates[1].tries, 2);
    assert_string_equal(result.gates[1].output, "no \n");
    assert_int_equal(result.gates[2].verdict, ATTEMPT_GATE_FLAKY);
    attempt_result_release(&result);
    result = parsed("{\"outcome\": \"done\", \"gates\": \"x\"}");
    assert_int_equal(result.gate_count, 0);
    attempt_result_release(&result);
}

/* The ids of SHA-1 and SHA-256, and what is shorter or longer. */
static void ids_of_objects_have_40_to_64_digits(void **state)
{
    (void)state;
    static const struct {
        size_t len;
        uint32_t gates;
    } cases[] = {{39, 0}, {40, 1}, {64, 1}, {65, 0}};
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        struct strbuf id = {0};
        struct strbuf text = {0};
        strbuf_pad(&id, 'a', cases[ix].len);
        strbuf_adds(&text, "{\"gates\": [");
        add_gate(&text, strbuf_text(&id), "\"passed\"", 1, "");
        strbuf_adds(&text, "null]}");
        struct attempt_result result = parsed(strbuf_text(&text));
        assert_int_equal(result.gate_count, cases[ix].gates);
        attempt_result_release(&result);
        strbuf_release(&id);
        strbuf_release(&text);
    }
}

static void nothing_need_be_said(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}",
        " {\n} ",
        "{\"outcome\": null, \"reason\": null, \"retry_at\": null}",
        "{\"usage\": null, \"tasks\": null}",
        "{\"usage\": {}, \"tasks\": []}",
        "{\"usage\": {\"usd\": null, \"input_tokens\": null}}",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(texts); ix++) {
        struct attempt_result result = parsed(texts[ix]);
        assert_false(result.has_outcome);
        assert_null(result.reason);
        assert_int_equal(result.task_count, 0);
        assert_false(result.has_usage);
        attempt_result_release(&result);
    }
}

static void all_outcomes_are_known(void **state)
{
    (void)state;
    static const char *const outcomes[] = {"done",
                                           "failed",
                                           "refused",
                                           "changes",
                                           "blocked",
                                           "checkpoint",
                                           "later"};
    for (size_t ix = 0; ix < ARRAY_COUNT(outcomes); ix++) {
        char text[64];
        (void)
            snprintf(text, sizeof(text), "{\"outcome\":\"%s\"}", outcomes[ix]);
        struct attempt_result result = parsed(text);
        assert_string_equal(outcome_name(result.outcome), outcomes[ix]);
        attempt_result_release(&result);
    }
}

static void times_may_be_written_in_several_ways(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t seconds;
    } times[] = {
        {"0", 0},
        {"1893456000", 1893456000},
        {"1893456000.0", 1893456000},
        {"\"1970-01-01T00:00:00Z\"", 0},
        {"\"2000-02-29 23:59:60z\"", 951868800},
        {"\"2000-03-01T00:00:00Z\"", 951868800},
        {"\"2024-12-31T23:00:00-01:00\"", 1735689600},
        {"\"2100-03-01T00:00:00Z\"", 4107542400},
        {"\"2030-01-01T05:30:00.000000000000+05:30\"", 1893456000},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(times); ix++) {
        char text[128];
        (void)
            snprintf(text, sizeof(text), "{\"retry_at\": %s}", times[ix].text);
        struct attempt_result result = parsed(text);
        assert_true(result.retry_at_ns == times[ix].seconds * SECOND);
        attempt_result_release(&result);
    }
}

/* Results that are refused. */
static const char *const wrong[] = {
    "",
    " ",
    "nonsense",
    "[]",
    "\"done\"",
    "{",
    "{\"outcome\": \"done\"",
    "{\"outcome\": \"done\"} {}",
    "{\"outcome\": \"done\", \"outcome\": \"failed\"}",
    "{\"outcome\": \"finished\"}",
    "{\"outcome\": \"Done\"}",
    "{\"outcome\": \"\"}",
    "{\"outcome\": 1}",
    "{\"outcome\": [\"done\"]}",
    "{\"outcome\": \"do\\u0000ne\"}",
    "{\"reason\": 5}",
    "{\"reason\": \"\xff\xfe\"}",
    "{\"reason\": \"\xed\xa0\x80\"}",
    "{\"retry_at\": -1}",
    "{\"retry_at\": 1e300}",
    "{\"retry_at\": 9999999999}",
    "{\"retry_at\": true}",
    "{\"retry_at\": \"\"}",
    "{\"retry_at\": \"soon\"}",
    "{\"retry_at\": \"1893456000\"}",
    "{\"retry_at\": \"2030-01-31\"}",
    "{\"retry_at\": \"2030-01-31T12:00:00\"}",
    "{\"retry_at\": \"2030-13-31T12:00:00Z\"}",
    "{\"retry_at\": \"2030-00-31T12:00:00Z\"}",
    "{\"retry_at\": \"2030-01-32T12:00:00Z\"}",
    "{\"retry_at\": \"2030-01-31T24:00:00Z\"}",
    "{\"retry_at\": \"2030-01-31T12:60:00Z\"}",
    "{\"retry_at\": \"2030-01-31T12:00:61Z\"}",
    "{\"retry_at\": \"2030-01-31T12:00:00Zz\"}",
    "{\"retry_at\": \"2030-01-31T12:00:00+25:00\"}",
    "{\"retry_at\": \"2030-01-31T12:00:00+01:60\"}",
    "{\"retry_at\": \"2030-01-31T12:00:00+0100\"}",
    "{\"retry_at\": \"1969-12-31T23:59:59Z\"}",
    "{\"retry_at\": \"9999-12-31T23:59:59Z\"}",
    "{\"retry_after\": 0}",
    "{\"retry_after\": -1}",
    "{\"retry_after\": 1e300}",
    "{\"retry_after\": 31536001}",
    "{\"retry_after\": \"366d\"}",
    "{\"retry_after\": \"0s\"}",
    "{\"retry_after\": \"soon\"}",
    "{\"retry_after\": true}",
    "{\"retry_at\": 5, \"retry_after\": 5}",
    "{\"final\": \"yes\"}",
    "{\"finish\": \"true\"}",
    "{\"finish\": 1}",
    "{\"finish\": []}",
    "{\"outcome\": \"done\", \"finish\": \"done\"}",
    "{\"outputs\": []}",
    "{\"outputs\": {\"a\": \"x\", \"a\": \"y\"}}",
    "{\"outputs\": {\"a\": \"x\\u0000\"}}",
    ("{\"tasks\": [{\"task\": \"a\", \"outcome\": \"done\","
     " \"outputs\": {\"\": \"x\"}}]}"),
    "{\"usage\": 3}",
    "{\"usage\": []}",
    "{\"usage\": {\"input_tokens\": -1}}",
    "{\"usage\": {\"input_tokens\": 1.5}}",
    "{\"usage\": {\"output_tokens\": \"9\"}}",
    "{\"usage\": {\"output_tokens\": 9223372036854775808}}",
    "{\"usage\": {\"output_tokens\": 1000000000000001}}",
    "{\"usage\": {\"usd\": -0.01}}",
    "{\"usage\": {\"usd\": 1e999}}",
    "{\"usage\": {\"usd\": 1e10}}",
    "{\"usage\": {\"usd\": \"1\"}}",
    "{\"tasks\": {}}",
    "{\"tasks\": [1]}",
    "{\"tasks\": [{}]}",
    "{\"tasks\": [{\"task\": \"a\"}]}",
    "{\"tasks\": [{\"outcome\": \"done\"}]}",
    "{\"tasks\": [{\"task\": \"\", \"outcome\": \"done\"}]}",
    "{\"tasks\": [{\"task\": 1, \"outcome\": \"done\"}]}",
    "{\"tasks\": [{\"task\": \"a\", \"outcome\": \"no\"}]}",
    "{\"tasks\": [{\"task\": \"a\", \"outcome\": \"done\", \"reason\": 1}]}",
};

static void a_later_time_may_be_a_duration(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ns;
    } times[] = {
        {"0.5", SECOND / 2},
        {"90", 90 * SECOND},
        {"\"10m\"", 600 * SECOND},
        {"\"1h30m\"", 5400 * SECOND},
        {"null", 0},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(times); ix++) {
        char text[128];
        (void)snprintf(text,
                       sizeof(text),
                       "{\"outcome\": \"later\", \"retry_after\": %s}",
                       times[ix].text);
        struct attempt_result result = parsed(text);
        assert_int_equal(result.outcome, OUTCOME_LATER);
        assert_true(result.retry_after_ns == times[ix].ns);
        attempt_result_release(&result);
    }
}

static void a_result_may_be_explicit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool finish;
    } rows[] = {
        {"{\"outcome\": \"done\", \"finish\": true}", true},
        {"{\"finish\": true}", true},
        {"{\"outcome\": \"done\", \"finish\": false}", false},
        {"{\"outcome\": \"done\", \"finish\": null}", false},
        {"{\"outcome\": \"done\"}", false},
        {"{\"tasks\": [{\"task\": \"a\", \"outcome\": \"done\","
         " \"finish\": true}]}",
         false},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        struct attempt_result result = parsed(rows[ix].text);
        assert_int_equal(result.finish, rows[ix].finish);
        attempt_result_release(&result);
    }
}

static void outputs_are_strings_by_name(void **state)
{
    (void)state;
    struct attempt_result result =
        parsed("{\"outcome\": \"done\", \"outputs\":"
               " {\"url\": \"https://x/\\u00e4\", \"a_1\": \"b\\u001b\"},"
               " \"tasks\": [{\"task\": \"t\", \"outcome\": \"failed\","
               " \"final\": true, \"outputs\": {\"n\": \"1\\n2\"}}]}");
    assert_string_equal(result.outputs,
                        "{\"a_1\":\"b \",\"url\":\"https://x/ä\"}");
    assert_string_equal(result.tasks[0].outputs, "{\"n\":\"1\\n2\"}");
    assert_true(result.tasks[0].final);
    assert_false(result.final);
    attempt_result_release(&result);
    result = parsed("{\"outputs\": {}, \"final\": true}");
    assert_null(result.outputs);
    assert_true(result.final);
    attempt_result_release(&result);
}

/* A result with `count` outputs of `len` bytes each, the first one `name`. */
static void
add_outputs(struct strbuf *out, const char *name, size_t count, size_t len)
{
    strbuf_clear(out);
    strbuf_adds(out, "{\"outputs\": {");
    for (size_t ix = 0; ix < count; ix++) {
        strbuf_addf(out, ix == 0 ? "\"%s\": \"" : ", \"%s%zu\": \"", name, ix);
        for (size_t n = 0; n < len; n++) {
            strbuf_adds(out, "x");
        }
        strbuf_adds(out, "\"");
    }
    strbuf_adds(out, "}}");
}

static void what_is_wrong_with_an_output_is_named(void **state)
{
    (void)state;
    char long_name[66];
    memset(long_name, 'n', sizeof(long_name) - 1);
    long_name[65] = '\0';
    static const char name[] =
        "is not a name: use letters, digits and _, first a letter, at most 64";
    const struct {
        const char *name;
        size_t count;
        size_t len;
        const char *wanted; /* its end; NULL: it is good */
    } rows[] = {
        {"a", 32, 1024, NULL},
        {"a", 8, 4096, NULL},
        {long_name + 1, 1, 1, NULL},
        {"Z9_", 1, 0, NULL},
        {long_name, 1, 1, name},
        {"x-y", 1, 1, name},
        {"1x", 1, 1, name},
        {"_x", 1, 1, name},
        {"", 1, 1, name},
        {"\u00fc", 1, 1, name},
        {"log",
         1,
         4097,
         "outputs: log is longer than 4 KiB: write long results to a file, and "
         "output its name"},
        {"a", 33, 1, "outputs: there are more than 32"},
        {"a", 9, 4096, "outputs: they are longer than 32 KiB together"},
    };
    struct strbuf text = {0};
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        struct attempt_result result;
        struct diag diag = {0};
        add_outputs(&text, rows[ix].name, rows[ix].count, rows[ix].len);
        enum err err =
            attempt_parse_result(text.text, text.len, &result, &diag);
        assert_int_equal(err, rows[ix].wanted == NULL ? ERR_OK : ERR_INVALID);
        if (rows[ix].wanted != NULL &&
            strstr(diag.text, rows[ix].wanted) == NULL) {
            fail_msg("%s: %s", rows[ix].name, diag.text);
        }
        attempt_result_release(&result);
    }
    struct attempt_result result;
    struct diag diag = {0};
    const char number[] = "{\"outputs\": {\"n\": 5}}";
    assert_int_equal(
        attempt_parse_result(number, strlen(number), &result, &diag),
        ERR_INVALID);
    assert_string_equal(diag.text, "result: outputs: n must be a string");
    strbuf_release(&text);
}

static void whatever_is_wrong_is_refused_with_a_text(void **state)
{
    (void)state;
    for (size_t ix = 0; ix < ARRAY_COUNT(wrong); ix++) {
        struct attempt_result result;
        struct diag diag = {0};
        enum err err =
            attempt_parse_result(wrong[ix], strlen(wrong[ix]), &result, &diag);
        if (err != ERR_INVALID || diag.text[0] == '\0') {
            fail_msg("accepted: %s", wrong[ix]);
        }
        assert_false(result.present);
        assert_null(result.tasks);
        assert_false(result.has_outcome);
    }
}

static void nesting_and_size_have_limits(void **state)
{
    (void)state;
    struct attempt_result result;
    struct strbuf text = {0};
    strbuf_adds(&text, "{\"x\":");
    strbuf_pad(&text, '[', 500000);
    assert_int_equal(attempt_parse_result(text.text, text.len, &result, NULL),
                     ERR_INVALID);
    strbuf_clear(&text);
    strbuf_adds(&text, "{\"reason\":\"");
    strbuf_pad(&text, 'x', 1 << 20);
    strbuf_adds(&text, "\"}");
    assert_int_equal(attempt_parse_result(text.text, text.len, &result, NULL),
                     ERR_INVALID);
    strbuf_release(&text);
}

static void a_long_reason_is_cut_between_characters(void **state)
{
    (void)state;
    struct attempt_result result;
    struct strbuf text = {0};
    strbuf_adds(&text, "{\"reason\":\"x");
    for (int ix = 0; ix < 3000; ix++) {
        strbuf_adds(&text, "\xc3\xa4");
    }
    strbuf_adds(&text, "\"}");
    assert_int_equal(attempt_parse_result(text.text, text.len, &result, NULL),
                     ERR_OK);
    assert_int_equal(strlen(result.reason), 4095);
    assert_string_equal(result.reason + 4093, "\xc3\xa4");
    attempt_result_release(&result);
    strbuf_release(&text);
}

/* Write DIR/result. */
static void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(close(fd), 0);
}

static void the_file_must_be_a_plain_one(void **state)
{
    (void)state;
    struct attempt_result result;
    char dir[] = "/tmp/sluice-res-XXXXXX";
    char path[64];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/result", dir);
    assert_int_equal(attempt_read_result(dir, &result, NULL), ERR_OK);
    assert_false(result.present);
    put(path, "{\"outcome\":\"done\"}");
    assert_int_equal(attempt_read_result(dir, &result, NULL), ERR_OK);
    assert_true(result.present);
    attempt_result_release(&result);
    put(path, "{");
    assert_int_equal(attempt_read_result(dir, &result, NULL), ERR_INVALID);
    assert_int_equal(truncate(path, (1 << 20) + 1), 0);
    assert_int_equal(attempt_read_result(dir, &result, NULL), ERR_INVALID);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0); /* must not hang */
    assert_int_equal(attempt_read_result(dir, &result, NULL), ERR_INVALID);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(attempt_read_result(dir, &result, NULL), ERR_INVALID);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_equal(attempt_read_result(dir, &result, NULL), ERR_INVALID);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
    /* Nor is a session that removed its own folder an error of ours. */
    assert_int_equal(attempt_read_result(dir, &result, NULL), ERR_OK);
    assert_false(result.present);
}

/* Whose fault it is decides whether the session's work is kept. */
static void a_fault_of_the_machine_is_not_one_of_the_file(void **state)
{
    (void)state;
    struct attempt_result result;
    struct diag diag = {0};
    assert_int_equal(attempt_read_result("/dev/null", &result, &diag),
                     ERR_INVALID);
    assert_string_equal(diag.text, "result: Not a directory");
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = {0, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    enum err err = attempt_read_result("/tmp", &result, &diag);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(err, ERR_UNAVAILABLE);
    assert_string_equal(diag.text, "result: Too many open files");
}

/* Tasks before it in the queue are left out when there is no room for them. */
static void the_queue_of_a_merge_has_a_limit(void **state)
{
    (void)state;
    enum { ROOM = 4095 };
    for (size_t len = ROOM; len <= ROOM + 1; len++) {
        struct strbuf text = {0};
        strbuf_adds(&text, "{\"queue\": {\"on\": [\"");
        strbuf_pad(&text, 'x', len);
        strbuf_adds(&text, "\"]}}");
        struct attempt_result result = parsed(strbuf_text(&text));
        assert_int_equal(result.on != NULL, len == ROOM);
        attempt_result_release(&result);
        strbuf_release(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_that_may_be_said_is_read),
        cmocka_unit_test(gates_are_read_and_others_skipped),
        cmocka_unit_test(what_a_merge_says_of_the_base_is_read),
        cmocka_unit_test(ids_of_objects_have_40_to_64_digits),
        cmocka_unit_test(nothing_need_be_said),
        cmocka_unit_test(a_fault_of_the_machine_is_not_one_of_the_file),
        cmocka_unit_test(the_queue_of_a_merge_has_a_limit),
        cmocka_unit_test(all_outcomes_are_known),
        cmocka_unit_test(times_may_be_written_in_several_ways),
        cmocka_unit_test(a_later_time_may_be_a_duration),
        cmocka_unit_test(a_result_may_be_explicit),
        cmocka_unit_test(outputs_are_strings_by_name),
        cmocka_unit_test(what_is_wrong_with_an_output_is_named),
        cmocka_unit_test(whatever_is_wrong_is_refused_with_a_text),
        cmocka_unit_test(nesting_and_size_have_limits),
        cmocka_unit_test(a_long_reason_is_cut_between_characters),
        cmocka_unit_test(the_file_must_be_a_plain_one),
    };
    return cmocka_run_group_tests_name("attempt_result", tests, NULL, NULL);
}
