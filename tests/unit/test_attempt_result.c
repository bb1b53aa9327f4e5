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

static void everything_that_may_be_said_is_read(void **state)
{
    (void)state;
    struct attempt_result result = parsed(
        "{\"outcome\": \"refused\", \"reason\": \"limit\\u0007 reached\","
        " \"retry_at\": \"2030-01-31T12:00:00.25+01:00\","
        " \"usage\": {\"input_tokens\": 10, \"output_tokens\": 20,"
        " \"usd\": 0.5, \"model\": \"x\"},"
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
    static const char *const outcomes[] =
        {"done", "failed", "refused", "changes", "blocked", "checkpoint"};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_that_may_be_said_is_read),
        cmocka_unit_test(nothing_need_be_said),
        cmocka_unit_test(all_outcomes_are_known),
        cmocka_unit_test(times_may_be_written_in_several_ways),
        cmocka_unit_test(whatever_is_wrong_is_refused_with_a_text),
        cmocka_unit_test(nesting_and_size_have_limits),
        cmocka_unit_test(a_long_reason_is_cut_between_characters),
        cmocka_unit_test(the_file_must_be_a_plain_one),
    };
    return cmocka_run_group_tests_name("attempt_result", tests, NULL, NULL);
}
