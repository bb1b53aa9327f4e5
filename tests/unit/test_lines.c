/* SPDX-License-Identifier: MIT */
#include "view/lines.h"

#include "base/plain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* 2026-03-04 05:06:07.089 UTC. */
#define WALL_NS INT64_C(1772600767089000000)

static struct store_event event_of(const char *kind, const char *data)
{
    return (struct store_event){
        .number = 17,
        .wall_ns = WALL_NS,
        .run = 1,
        .task = 0,
        .kind = kind,
        .data = data,
    };
}

/* Require this line, without its new line. */
static void assert_line(const char *kind, const char *data, const char *line)
{
    struct strbuf out = {0};
    struct store_event event = event_of(kind, data);
    assert_true(lines_add(&out, &event));
    assert_true(out.len > 0 && out.text[out.len - 1] == '\n');
    out.text[out.len - 1] = '\0';
    assert_string_equal(strbuf_text(&out), line);
    strbuf_release(&out);
}

static void assert_no_line(const char *kind, const char *data)
{
    struct strbuf out = {0};
    struct store_event event = event_of(kind, data);
    assert_false(lines_add(&out, &event));
    assert_int_equal(out.len, 0);
    strbuf_release(&out);
}

static void a_start_names_the_attempt_if_it_is_not_the_first(void **state)
{
    (void)state;
    assert_line("task",
                "{\"task\":\"a/x\",\"from\":\"ready\",\"to\":\"starting\","
                "\"attempt\":1}",
                "05:06:07 start      a/x");
    assert_line("task",
                "{\"task\":\"a/x\",\"from\":\"ready\",\"to\":\"starting\","
                "\"attempt\":2}",
                "05:06:07 start      a/x (attempt 2)");
}

static void steps_that_follow_from_others_have_no_line(void **state)
{
    (void)state;
    assert_no_line("task", "{\"task\":\"a\",\"to\":\"waiting\"}");
    assert_no_line("task", "{\"task\":\"a\",\"to\":\"ready\"}");
    assert_no_line("task", "{\"task\":\"a\",\"to\":\"running\",\"attempt\":1}");
    assert_no_line("task", "{\"task\":\"a\",\"to\":\"done\",\"attempt\":1}");
    assert_no_line("scheduler", "{\"epoch\":1,\"found\":0}");
    assert_no_line("order", "{\"verb\":\"submit\",\"answer\":{\"ok\":true}}");
}

static void an_end_tells_how_long_it_took_and_why(void **state)
{
    (void)state;
    assert_line("attempt",
                "{\"task\":\"a\",\"attempt\":1,\"outcome\":\"done\","
                "\"cause\":\"exit\",\"code\":0,\"seconds\":250,"
                "\"reason\":\"fine\"}",
                "05:06:07 done       a after 4m 10s");
    assert_line("attempt",
                "{\"task\":\"a\",\"attempt\":3,\"outcome\":\"failed\","
                "\"seconds\":12.4,\"reason\":\"exit code 3\"}",
                "05:06:07 failed     a (attempt 3) after 12s: exit code 3");
    assert_line("attempt",
                "{\"task\":\"a\",\"attempt\":1,\"outcome\":\"refused\","
                "\"seconds\":0,\"reason\":\"later\"}",
                "05:06:07 refused    a: later");
}

static void a_task_that_rode_along_is_told_when_done(void **state)
{
    (void)state;
    assert_line("task",
                "{\"task\":\"r2\",\"from\":\"running\",\"to\":\"done\"}",
                "05:06:07 done       r2");
}

static void what_needs_a_person_has_its_reason(void **state)
{
    (void)state;
    assert_line("task",
                "{\"task\":\"a\",\"to\":\"parked\",\"attempt\":1,"
                "\"reason\":\"no key\"}",
                "05:06:07 parked     a: no key");
    assert_line("task",
                "{\"task\":\"a\",\"to\":\"failed\",\"attempt\":1,"
                "\"reason\":\"exit code 1\"}",
                "05:06:07 failed     a, no retries left: exit code 1");
    assert_line("task",
                "{\"task\":\"a\",\"to\":\"ready\",\"waits\":\"approval\"}",
                "05:06:07 approval   a waits for it: sluice approve a");
    assert_line("task",
                "{\"task\":\"a\",\"to\":\"skipped\"}",
                "05:06:07 skipped    a");
}

static void runs_orders_and_hooks_have_lines(void **state)
{
    (void)state;
    assert_line("run",
                "{\"to\":\"submitted\",\"id\":\"wave\",\"tasks\":1}",
                "05:06:07 run        wave: 1 task");
    assert_line("run",
                "{\"to\":\"finished\",\"done\":3,\"skipped\":1}",
                "05:06:07 finished   run finished: 3 done, 1 skipped");
    assert_line("run",
                "{\"to\":\"waiting\",\"parked\":2,\"waiting\":4}",
                "05:06:07 waiting    needs attention: 2 parked, 4 waiting");
    assert_line("run",
                "{\"to\":\"stopped\",\"parked\":1,\"waiting\":4,"
                "\"reason\":\"b has failed\"}",
                "05:06:07 stopped    nothing more starts: b has failed");
    assert_line("order",
                "{\"verb\":\"cap\",\"by\":\"eve\",\"answer\":{\"ok\":true,"
                "\"text\":\"cap of run wave: 1\"}}",
                "05:06:07 request    cap by eve: cap of run wave: 1");
    assert_line("order",
                "{\"verb\":\"skip\",\"by\":\"eve\",\"answer\":{\"ok\":false,"
                "\"text\":\"it is done\"}}",
                "05:06:07 request    skip by eve: refused: it is done");
    assert_line("sync",
                "{\"result\":\"failed\",\"reason\":\"exit code 1\"}",
                "05:06:07 sync       the hook failed: exit code 1");
    assert_line(
        "scheduler",
        "{\"epoch\":2,\"found\":1,\"adopted\":0}",
        "05:06:07 scheduler  resumed: 1 session in flight before, 0 adopted");
    assert_line("added", "{\"tasks\":2}", "05:06:07 added      2 tasks");
    assert_line("circuit",
                "{\"executor\":\"local\"}",
                "05:06:07 circuit    provider local failed or refused too "
                "often: one attempt at a time");
    assert_line("added",
                "{\"tasks\":2,\"by\":\"scan\"}",
                "05:06:07 added      2 tasks by scan");
    assert_line("add-refused",
                "{\"task\":\"scan\",\"attempt\":1,\"reason\":\"a cycle\"}",
                "05:06:07 refused    what scan adds: a cycle");
    assert_line("hook",
                "{\"hook\":\"parked\",\"of\":7,\"result\":\"failed\","
                "\"reason\":\"exit code 1\"}",
                "05:06:07 hook       parked was not delivered: exit code 1");
    assert_line("budget",
                "{\"to\":\"reached\",\"budget\":\"usd budget\"}",
                "05:06:07 budget     no more sessions start: the usd budget is "
                "reached");
    assert_line("usage",
                "{\"to\":\"capped\",\"cap\":2,\"meter\":\"5h\",\"percent\":63}",
                "05:06:07 usage      capped at 2, meter 5h at 63 %");
    assert_line("usage",
                "{\"to\":\"paused\",\"provider\":\"p\",\"until\":"
                "\"2026-03-04T06:00:00.250Z\"}",
                "05:06:07 usage      provider p paused until "
                "2026-03-04T06:00:00.250Z");
    assert_line("usage",
                "{\"to\":\"failed\",\"reason\":\"exit code 1\"}",
                "05:06:07 usage      cannot be read: exit code 1");
}

/* Events come from a file. */
static void nonsense_has_no_line(void **state)
{
    (void)state;
    assert_no_line("task", "");
    assert_no_line("task", "[]");
    assert_no_line("task", "{}");
    assert_no_line("task", "{\"task\":1,\"to\":2}");
    assert_no_line("attempt", "{}");
    assert_no_line("run", "{\"to\":\"x\"}");
    assert_no_line("weather", "{\"task\":\"a\"}");
}

static void a_reason_cannot_leave_its_line(void **state)
{
    (void)state;
    assert_line("task",
                "{\"task\":\"a\",\"to\":\"parked\",\"reason\":"
                "\"no\\u001b[31m key\\r\\n12:00:00  done \\u0007 b\\n\"}",
                "05:06:07 parked     a: no key 12:00:00 done b");
}

static void assert_json(const char *kind,
                        const char *data,
                        const char *run,
                        const char *line)
{
    struct strbuf out = {0};
    struct store_event event = event_of(kind, data);
    lines_add_json(&out, &event, run);
    assert_string_equal(strbuf_text(&out), line);
    strbuf_release(&out);
}

static void json_has_the_members_of_the_event(void **state)
{
    (void)state;
    assert_json("attempt",
                "{\"task\":\"a\",\"seconds\":0.25,\"answer\":{\"ok\":true}}",
                "wave",
                "{\"event\":17,\"time\":\"2026-03-04T05:06:07.089Z\","
                "\"run\":\"wave\",\"kind\":\"attempt\",\"task\":\"a\","
                "\"seconds\":0.25,\"answer\":{\"ok\":true}}\n");
}

static void json_is_one_line_whatever_the_event_holds(void **state)
{
    (void)state;
    assert_json("x",
                "not JSON\n",
                NULL,
                "{\"event\":17,\"time\":\"2026-03-04T05:06:07.089Z\","
                "\"run\":null,\"kind\":\"x\"}\n");
    assert_json("x",
                "{\"kind\":\"y\",\"run\":3,\"a\":\"1\\n2\"}",
                NULL,
                "{\"event\":17,\"time\":\"2026-03-04T05:06:07.089Z\","
                "\"run\":null,\"kind\":\"x\",\"a\":\"1\\n2\"}\n");
}

static void assert_cut(const char *text, uint32_t columns, const char *wanted)
{
    struct strbuf out = {0};
    plain_add_cut(&out, text, columns);
    assert_string_equal(strbuf_text(&out), wanted);
    assert_true(plain_columns(strbuf_text(&out)) <= columns);
    strbuf_release(&out);
}

static void a_cut_keeps_characters_whole(void **state)
{
    (void)state;
    assert_cut("abcdef", 6, "abcdef");
    assert_cut("abcdef", 5, "ab...");
    assert_cut("abcdef", 2, "..");
    assert_cut("abcdef", 0, "");
    assert_cut("\u00e4\u00f6\u00fc\u00df", 4, "\u00e4\u00f6\u00fc\u00df");
    assert_cut("\u00e4\u00f6\u00fc\u00df\u00e9", 4, "\u00e4...");
    assert_cut("\xc3", 1, "\xc3"); /* half a character */
    assert_cut("", 3, "");
}

static void only_another_day_has_a_date(void **state)
{
    (void)state;
    /* 05:06:07 is 5 h 6 min behind midnight. */
    int64_t since_midnight_ns = INT64_C(18367089) * 1000000;
    struct strbuf out = {0};
    assert_false(lines_add_date(&out, WALL_NS, WALL_NS));
    assert_false(lines_add_date(&out, WALL_NS, WALL_NS - since_midnight_ns));
    assert_int_equal(out.len, 0);
    assert_true(lines_add_date(&out, WALL_NS, WALL_NS + DAY_NS));
    assert_true(lines_add_date(&out, WALL_NS, WALL_NS - DAY_NS));
    assert_true(lines_add_date(&out, WALL_NS - since_midnight_ns - 1, WALL_NS));
    assert_true(lines_add_date(&out, WALL_NS - 365 * DAY_NS, WALL_NS));
    assert_string_equal(strbuf_text(&out),
                        "2026-03-04 2026-03-04 2026-03-03 2025-03-04 ");
    strbuf_release(&out);
}

int main(void)
{
    if (setenv("TZ", "UTC0", 1) != 0) {
        return 1;
    }
    tzset();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_start_names_the_attempt_if_it_is_not_the_first),
        cmocka_unit_test(steps_that_follow_from_others_have_no_line),
        cmocka_unit_test(an_end_tells_how_long_it_took_and_why),
        cmocka_unit_test(a_task_that_rode_along_is_told_when_done),
        cmocka_unit_test(what_needs_a_person_has_its_reason),
        cmocka_unit_test(runs_orders_and_hooks_have_lines),
        cmocka_unit_test(nonsense_has_no_line),
        cmocka_unit_test(a_reason_cannot_leave_its_line),
        cmocka_unit_test(json_has_the_members_of_the_event),
        cmocka_unit_test(json_is_one_line_whatever_the_event_holds),
        cmocka_unit_test(a_cut_keeps_characters_whole),
        cmocka_unit_test(only_another_day_has_a_date),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
