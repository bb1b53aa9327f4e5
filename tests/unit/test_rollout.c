/* SPDX-License-Identifier: MIT */
#include "agent/rollout.h"

#include "base/macros.h"
#include "tests/unit/agent_fixture.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define DAY INT64_C(86400)

/* Take a capture of a rollout, a line at a time. */
static struct adapter_seen seen_of(const char *path)
{
    struct adapter_seen seen = {0};
    struct strbuf text = {0};
    assert_true(agent_fixture_read(&text, path));
    for (const char *at = strbuf_text(&text); *at != '\0';) {
        size_t len = strcspn(at, "\n");
        rollout_take_line(&seen, at, len);
        at += at[len] == '\n' ? len + 1 : len;
    }
    strbuf_release(&text);
    return seen;
}

static void a_limit_has_its_exact_time(void **state)
{
    (void)state;
    struct adapter_seen seen =
        seen_of(AGENT_FIXTURE_DATA "codex-rollout-limit.jsonl");
    assert_int_equal(seen.cause, ADAPTER_LIMIT);
    assert_int_equal(seen.retry_at, 1794852068);
    assert_int_equal(seen.meter_count, 2);
    assert_string_equal(seen.meters[0].name, "5h");
    assert_true(seen.meters[0].percent > 99 && seen.meters[0].percent < 101);
    assert_string_equal(seen.meters[1].name, "7d");
    assert_int_equal(seen.meters[1].resets_at, 1795104068);
    assert_false(seen.usage.known);
    adapter_seen_release(&seen);
}

static void tokens_survive_a_limit_midway(void **state)
{
    (void)state;
    struct adapter_seen seen =
        seen_of(AGENT_FIXTURE_DATA "codex-rollout-midlimit.jsonl");
    assert_int_equal(seen.cause, ADAPTER_LIMIT);
    assert_true(seen.usage.known && seen.usage.whole);
    assert_int_equal(seen.usage.input, 6500);
    assert_int_equal(seen.usage.cached, 5000);
    assert_int_equal(seen.usage.output, 40);
    adapter_seen_release(&seen);
}

/* codex files it under the same kind of error. */
static void an_empty_account_is_not_a_limit(void **state)
{
    (void)state;
    struct adapter_seen seen =
        seen_of(AGENT_FIXTURE_DATA "codex-rollout-quota.jsonl");
    assert_int_equal(seen.cause, ADAPTER_KEY);
    adapter_seen_release(&seen);
}

static void take(struct adapter_seen *seen, const char *line)
{
    rollout_take_line(seen, line, strlen(line));
}

static void a_limit_of_an_earlier_session_is_over(void **state)
{
    (void)state;
    struct adapter_seen seen =
        seen_of(AGENT_FIXTURE_DATA "codex-rollout-limit.jsonl");
    take(&seen,
         "{\"type\":\"event_msg\",\"payload\":{\"type\":\"task_started\"}}");
    assert_int_equal(seen.cause, ADAPTER_NONE);
    assert_int_equal(seen.retry_at, 0);
    adapter_seen_release(&seen);
}

static void the_longest_window_that_is_full_counts(void **state)
{
    (void)state;
    struct adapter_seen seen = {0};
    take(&seen,
         "{\"type\":\"event_msg\",\"payload\":{\"type\":\"token_count\","
         "\"rate_limits\":{\"primary\":{\"used_percent\":100,"
         "\"resets_at\":1794852068},\"secondary\":{\"used_percent\":101,"
         "\"window_minutes\":30,\"resets_at\":1795104068}}}}");
    assert_int_equal(seen.retry_at, 1795104068);
    assert_string_equal(seen.meters[0].name, "primary");
    assert_string_equal(seen.meters[1].name, "secondary");
    take(&seen,
         "{\"type\":\"event_msg\",\"payload\":{\"type\":\"token_count\","
         "\"rate_limits\":null}}");
    assert_int_equal(seen.retry_at, 1795104068);
    adapter_seen_release(&seen);
}

static void what_is_no_event_changes_nothing(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "",
        "x",
        "[]",
        "{\"type\":\"event_msg\"}",
        "{\"type\":\"event_msg\",\"payload\":7}",
        "{\"type\":\"response_item\",\"payload\":{\"type\":\"token_count\","
        "\"info\":{\"total_token_usage\":{\"input_tokens\":1}}}}",
        "{\"type\":\"event_msg\",\"payload\":{\"type\":\"token_count\","
        "\"rate_limits\":{\"primary\":{\"used_percent\":1e300,"
        "\"window_minutes\":1e300,\"resets_at\":1e300}}}}",
    };
    struct adapter_seen seen = {0};
    for (size_t ix = 0; ix < ARRAY_COUNT(lines); ix++) {
        take(&seen, lines[ix]);
    }
    assert_false(seen.usage.known);
    assert_int_equal(seen.meter_count, 0);
    assert_int_equal(seen.retry_at, 0);
    adapter_seen_release(&seen);
}

/* Require the time that a text names in a zone. */
static void
expect_time(const char *zone, const char *text, int64_t now, int64_t time)
{
    assert_int_equal(setenv("TZ", zone, 1), 0);
    int64_t result = rollout_parse_time(text, now);
    if (result != time) {
        fail_msg("%s in %s: %lld, not %lld",
                 text,
                 zone,
                 (long long)result,
                 (long long)time);
    }
}

static void a_time_of_day_is_the_next_one(void **state)
{
    (void)state;
    const int64_t now = AGENT_FIXTURE_NOW; /* 16:00 UTC */
    const int64_t midnight = now - 16 * INT64_C(3600);
    expect_time("UTC", "or try again at 6:01 PM.", now, midnight + 64860);
    expect_time("UTC", "try again at 4:43 AM.", now, midnight + DAY + 16980);
    expect_time("UTC", "try again at 12:00 AM", now, midnight + DAY);
    expect_time("UTC", "try again at 12:30 PM", now, midnight + DAY + 45000);
    expect_time("UTC", "try again at 4:01 PM", now, now + 60);
    /* The seconds are not shown: this is now, not tomorrow. */
    expect_time("UTC", "try again at 4:00 PM", now, now + 60);
    expect_time("UTC", "try again at 3:59 PM", now, now + 60);
    expect_time("UTC", "try again at 3:58 PM", now, now - 120 + DAY);
}

static void a_time_is_local(void **state)
{
    (void)state;
    const int64_t now = AGENT_FIXTURE_NOW; /* 16:00 UTC */
    expect_time("XST-5:30", "try again at 10:00 PM", now, now + 1800);
    expect_time("XST8", "try again at 6:01 PM", now, now + 36060);
    expect_time("XST8",
                "try again at Nov 19th, 2026 3:56 PM",
                now,
                now + 3 * DAY - 240 + INT64_C(8) * 3600);
    /* Summer time ends in the night: tomorrow at noon is 25 hours away. */
    expect_time("CET-1CEST,M3.5.0,M10.5.0/3",
                "try again at 11:50 AM",
                INT64_C(1792836000), /* 2026-10-24 12:00 CEST */
                INT64_C(1792836000) + 25 * INT64_C(3600) - 600);
}

static void a_date_counts_if_it_is_to_come(void **state)
{
    (void)state;
    const int64_t now = AGENT_FIXTURE_NOW;
    const int64_t midnight = now - 16 * INT64_C(3600);
    expect_time("UTC",
                "try again at Nov 19th, 2026 3:56 PM.",
                now,
                midnight + 3 * DAY + 57360);
    expect_time("UTC", "try again at Dec 1st, 2026 1:00 AM", now, 1796086800);
    expect_time("UTC", "try again at Jan 2nd, 2027 1:00 AM", now, 1798851600);
    expect_time("UTC", "try again at Nov 15th, 2026 3:56 PM.", now, 0);
    expect_time("UTC", "try again at Nov 19th, 9999 3:56 PM.", now, 0);
}

static void a_text_without_a_time_has_none(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "try again at ",
        "try again later",
        "try again at 6 PM",
        "try again at 13:00 PM",
        "try again at 0:10 AM",
        "try again at 6:61 PM",
        "try again at 6:01",
        "try again at 6:01 XM",
        "try again at -6:01 PM",
        "try again at 99999999999999999999:01 PM",
        "try again at Nov 32nd, 2026 3:56 PM",
        "try again at Nov 19th 3:56 PM",
        "try again at Foo 19th, 2026 3:56 PM",
        "try again at Nov 19th, 2026",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(texts); ix++) {
        expect_time("UTC", texts[ix], AGENT_FIXTURE_NOW, 0);
    }
}

/* Write a rollout with a token count and a time of change. */
static void write_rollout(const char *path, int tokens, time_t changed)
{
    struct strbuf text = {0};
    const struct timespec times[] = {{.tv_sec = changed}, {.tv_sec = changed}};
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    strbuf_addf(&text,
                "{\"type\":\"event_msg\",\"payload\":{\"type\":\"token_count\","
                "\"info\":{\"total_token_usage\":{\"input_tokens\":%d}}}}\n",
                tokens);
    assert_int_equal(fwrite(text.text, 1, text.len, file), text.len);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    strbuf_release(&text);
}

/* Tokens of a thread's rollout, or of the newest one; -1: there is none. */
static int64_t tokens_of(const char *thread)
{
    struct adapter_seen seen = {0};
    bool found = rollout_read(&seen, thread);
    int64_t tokens = found ? seen.usage.input : -1;
    adapter_seen_release(&seen);
    return tokens;
}

static void the_newest_rollout_of_a_thread_is_read(void **state)
{
    (void)state;
    static const char *const folders[] = {
        "s/sessions",
        "s/sessions/2026",
        "s/sessions/2026/09",
        "s/sessions/2026/09/30",
        "s/sessions/2026/10",
        "s/sessions/2026/10/01",
        "s/sessions/2026/10/02",
        "s/sessions/2026/10/02/rollout-folder-one",
    };
    char root[] = "/tmp/test-rollout.XXXXXX";
    assert_non_null(mkdtemp(root));
    assert_int_equal(chdir(root), 0);
    assert_int_equal(mkdir("s", 0700), 0);
    assert_int_equal(setenv("CODEX_HOME", "s", 1), 0);
    assert_int_equal(tokens_of(NULL), -1);
    for (size_t ix = 0; ix < ARRAY_COUNT(folders); ix++) {
        assert_int_equal(mkdir(folders[ix], 0700), 0);
    }
    assert_int_equal(tokens_of(NULL), -1);
    write_rollout("s/sessions/2026/09/30/rollout-a-one.jsonl", 1, 900);
    write_rollout("s/sessions/2026/10/01/rollout-b-two.jsonl", 2, 500);
    write_rollout("s/sessions/2026/10/01/rollout-c-two.jsonl", 3, 400);
    write_rollout("s/sessions/2026/10/01/other-d-one.jsonl", 4, 999);
    assert_int_equal(tokens_of(NULL), 2);
    assert_int_equal(tokens_of("one"), 1);
    assert_int_equal(tokens_of("two"), 2);
    assert_int_equal(tokens_of("three"), -1);
    assert_int_equal(unsetenv("CODEX_HOME"), 0);
    assert_int_equal(unlink("s/sessions/2026/09/30/rollout-a-one.jsonl"), 0);
    assert_int_equal(unlink("s/sessions/2026/10/01/rollout-b-two.jsonl"), 0);
    assert_int_equal(unlink("s/sessions/2026/10/01/rollout-c-two.jsonl"), 0);
    assert_int_equal(unlink("s/sessions/2026/10/01/other-d-one.jsonl"), 0);
    for (size_t ix = ARRAY_COUNT(folders); ix > 0; ix--) {
        assert_int_equal(rmdir(folders[ix - 1]), 0);
    }
    assert_int_equal(rmdir("s"), 0);
    assert_int_equal(rmdir(root), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_has_its_exact_time),
        cmocka_unit_test(tokens_survive_a_limit_midway),
        cmocka_unit_test(an_empty_account_is_not_a_limit),
        cmocka_unit_test(a_limit_of_an_earlier_session_is_over),
        cmocka_unit_test(the_longest_window_that_is_full_counts),
        cmocka_unit_test(what_is_no_event_changes_nothing),
        cmocka_unit_test(a_time_of_day_is_the_next_one),
        cmocka_unit_test(a_time_is_local),
        cmocka_unit_test(a_date_counts_if_it_is_to_come),
        cmocka_unit_test(a_text_without_a_time_has_none),
        cmocka_unit_test(the_newest_rollout_of_a_thread_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
