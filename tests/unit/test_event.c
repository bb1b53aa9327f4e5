/* SPDX-License-Identifier: MIT */
/*
 * The bytes of each kind of event, as stores have them and as other programs
 * read them. A line of `golden` never changes; members may be added.
 */
#include "store/event.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct golden {
    const char *kind;
    const char *data;
    const char *hook; /* or NULL */
    struct event event;
};

static const struct golden golden[] = {
    {
        "task",
        "{\"task\":\"a/x\",\"from\":\"ready\",\"to\":\"starting\","
        "\"attempt\":2}",
        NULL,
        {.kind = EVENT_KIND_TASK,
         .as.task = {"a/x", TASK_READY, TASK_STARTING, 2, NULL, false, NULL}},
    },
    {
        "task",
        "{\"task\":\"a\",\"to\":\"parked\",\"reason\":\"say \\\"yes\\\"\"}",
        "parked",
        {.kind = EVENT_KIND_TASK,
         .as.task = {"a",
                     TASK_STATE_COUNT,
                     TASK_PARKED,
                     0,
                     "say \"yes\"",
                     false,
                     NULL}},
    },
    {
        "task",
        "{\"task\":\"a\",\"from\":\"running\",\"to\":\"done\",\"attempt\":1}",
        "done",
        {.kind = EVENT_KIND_TASK,
         .as.task = {"a", TASK_RUNNING, TASK_DONE, 1, NULL, false, NULL}},
    },
    {
        "task",
        "{\"task\":\"a\",\"from\":\"waiting\",\"to\":\"ready\","
        "\"waits\":\"approval\"}",
        "approval",
        {.kind = EVENT_KIND_TASK,
         .as.task =
             {"a", TASK_WAITING, TASK_READY, 0, NULL, false, "approval"}},
    },
    {
        "attempt",
        "{\"task\":\"a\",\"attempt\":1,\"token\":7,\"outcome\":\"done\","
        "\"cause\":\"exit\",\"code\":0,\"seconds\":1.5}",
        NULL,
        {.kind = EVENT_KIND_ATTEMPT,
         .as.attempt = {"a",
                        1,
                        7,
                        "done",
                        "exit",
                        0,
                        0,
                        INT64_C(1500000000),
                        NULL,
                        0,
                        NULL,
                        0,
                        false}},
    },
    {
        "attempt",
        "{\"task\":\"a\",\"attempt\":3,\"token\":9,\"outcome\":\"failed\","
        "\"cause\":\"exit\",\"signal\":9,\"seconds\":0,"
        "\"reason\":\"ended by signal 9\"}",
        NULL,
        {.kind = EVENT_KIND_ATTEMPT,
         .as.attempt = {"a",
                        3,
                        9,
                        "failed",
                        "exit",
                        -1,
                        9,
                        0,
                        "ended by signal 9",
                        0,
                        NULL,
                        0,
                        false}},
    },
    {
        "attempt",
        "{\"task\":\"a\",\"attempt\":4,\"token\":10,\"outcome\":\"later\","
        "\"cause\":\"exit\",\"code\":40,\"seconds\":0,"
        "\"reason\":\"waits for CI\","
        "\"retry_at\":\"2030-01-31T12:00:00.000Z\"}",
        NULL,
        {.kind = EVENT_KIND_ATTEMPT,
         .as.attempt = {"a",
                        4,
                        10,
                        "later",
                        "exit",
                        40,
                        0,
                        0,
                        "waits for CI",
                        0,
                        NULL,
                        INT64_C(1896091200) * 1000000000,
                        false}},
    },
    {
        "attempt",
        "{\"task\":\"a\",\"attempt\":5,\"token\":11,\"outcome\":\"failed\","
        "\"cause\":\"exit\",\"code\":50,\"seconds\":0,\"final\":true}",
        NULL,
        {.kind = EVENT_KIND_ATTEMPT,
         .as.attempt =
             {"a", 5, 11, "failed", "exit", 50, 0, 0, NULL, 0, NULL, 0, true}},
    },
    {
        "member",
        "{\"task\":\"b\",\"leader\":\"a\",\"token\":7,"
        "\"outcome\":\"changes\",\"reason\":null}",
        NULL,
        {.kind = EVENT_KIND_MEMBER,
         .as.member = {"b", "a", 7, "changes", NULL}},
    },
    {
        "run",
        "{\"to\":\"submitted\",\"id\":\"wave-3\",\"tasks\":0}",
        NULL,
        {.kind = EVENT_KIND_RUN,
         .as.run = {.to = EVENT_WORD_SUBMITTED, .id = "wave-3", .tasks = 0}},
    },
    {
        "run",
        "{\"to\":\"waiting\",\"done\":2,\"parked\":1}",
        "run-waiting",
        {.kind = EVENT_KIND_RUN,
         .as.run = {.to = EVENT_WORD_WAITING,
                    .tasks = -1,
                    .counts = {[TASK_DONE] = 2, [TASK_PARKED] = 1}}},
    },
    {
        "run",
        "{\"to\":\"stopped\",\"done\":2,\"parked\":1,"
        "\"reason\":\"b has failed\"}",
        "run-stopped",
        {.kind = EVENT_KIND_RUN,
         .as.run = {.to = EVENT_WORD_STOPPED,
                    .tasks = -1,
                    .counts = {[TASK_DONE] = 2, [TASK_PARKED] = 1},
                    .reason = "b has failed"}},
    },
    {
        "run",
        "{\"to\":\"finished\",\"done\":1}",
        "run-finished",
        {.kind = EVENT_KIND_RUN,
         .as.run = {.to = EVENT_WORD_FINISHED,
                    .tasks = -1,
                    .counts = {[TASK_DONE] = 1}}},
    },
    {
        "added",
        "{\"tasks\":2,\"by\":\"a\"}",
        NULL,
        {.kind = EVENT_KIND_ADDED, .as.added = {2, "a"}},
    },
    {
        "add-refused",
        "{\"task\":\"a\",\"attempt\":1,\"reason\":\"too many\"}",
        "add-refused",
        {.kind = EVENT_KIND_ADD_REFUSED,
         .as.add_refused = {"a", 1, "too many"}},
    },
    {
        "note",
        "{\"task\":\"a\",\"attempt\":2,\"text\":\"half done\"}",
        NULL,
        {.kind = EVENT_KIND_NOTE, .as.note = {"a", 2, "half done"}},
    },
    {
        "updated",
        "{\"changed\":1,\"added\":0,\"removed\":3}",
        NULL,
        {.kind = EVENT_KIND_UPDATED, .as.updated = {1, 0, 3}},
    },
    {
        "sync",
        "{\"result\":\"done\"}",
        NULL,
        {.kind = EVENT_KIND_SYNC, .as.sync = {EVENT_WORD_DONE, NULL}},
    },
    {
        "sync",
        "{\"result\":\"failed\",\"reason\":\"exit code 1\"}",
        "barrier-failed",
        {.kind = EVENT_KIND_SYNC,
         .as.sync = {EVENT_WORD_FAILED, "exit code 1"}},
    },
    {
        "hook",
        "{\"hook\":\"done\",\"of\":12,\"result\":\"failed\","
        "\"reason\":\"exit code 1\"}",
        NULL,
        {.kind = EVENT_KIND_HOOK,
         .as.hook = {"done", 12, EVENT_WORD_FAILED, "exit code 1"}},
    },
    {
        "budget",
        "{\"to\":\"reached\",\"budget\":\"usd\"}",
        "budget-reached",
        {.kind = EVENT_KIND_BUDGET, .as.budget = {EVENT_WORD_REACHED, "usd"}},
    },
    {
        "usage",
        "{\"to\":\"paused\",\"provider\":\"p\",\"cap\":0,\"meter\":\"5h\","
        "\"percent\":97.5,\"until\":\"1970-01-02T00:00:00.250Z\"}",
        "usage-paused",
        {.kind = EVENT_KIND_USAGE,
         .as.usage = {.to = EVENT_WORD_PAUSED,
                      .provider = "p",
                      .cap = 0,
                      .meter = "5h",
                      .percent = 97.5,
                      .until_ns = INT64_C(86400250000000)}},
    },
    {
        "usage",
        "{\"to\":\"resumed\",\"provider\":\"p\",\"by\":\"session\"}",
        "usage-resumed",
        {.kind = EVENT_KIND_USAGE,
         .as.usage = {.to = EVENT_WORD_RESUMED,
                      .provider = "p",
                      .cap = -1,
                      .percent = -1,
                      .by = "session"}},
    },
    {
        "usage",
        "{\"to\":\"failed\",\"reason\":\"no such file\"}",
        "usage-failed",
        {.kind = EVENT_KIND_USAGE,
         .as.usage = {.to = EVENT_WORD_FAILED,
                      .cap = -1,
                      .percent = -1,
                      .reason = "no such file"}},
    },
    {
        "usage",
        "{\"to\":\"capped\",\"cap\":2,\"meter\":\"5h\",\"percent\":0}",
        NULL,
        {.kind = EVENT_KIND_USAGE,
         .as.usage = {.to = EVENT_WORD_CAPPED, .cap = 2, .meter = "5h"}},
    },
    {
        "provider",
        "{\"to\":\"stopped\",\"provider\":\"p\",\"reason\":\"bad key\"}",
        "provider-stopped",
        {.kind = EVENT_KIND_PROVIDER,
         .as.provider = {EVENT_WORD_STOPPED, "p", "bad key"}},
    },
    {
        "provider",
        "{\"to\":\"resumed\",\"provider\":\"p\"}",
        NULL,
        {.kind = EVENT_KIND_PROVIDER,
         .as.provider = {EVENT_WORD_RESUMED, "p", NULL}},
    },
    {
        "circuit",
        "{\"executor\":\"local:gate\"}",
        "circuit-open",
        {.kind = EVENT_KIND_CIRCUIT, .as.circuit = {"local:gate"}},
    },
    {
        "order",
        "{\"verb\":\"drain\",\"by\":\"me\",\"answer\":{\"ok\":true,"
        "\"text\":\"x\"}}",
        NULL,
        {.kind = EVENT_KIND_REQUEST,
         .as.request = {"drain", "me", "{\"ok\":true,\"text\":\"x\"}"}},
    },
    {
        "scheduler",
        "{\"epoch\":4,\"found\":2,\"adopted\":1}",
        NULL,
        {.kind = EVENT_KIND_SCHEDULER, .as.scheduler = {4, 2, 1}},
    },
    {
        "base",
        "{\"to\":\"failed\",\"repo\":\"api\",\"base\":\"dev\","
        "\"commit\":\"12ab\",\"reason\":\"x\"}",
        "base-failed",
        {.kind = EVENT_KIND_BASE,
         .as.base = {EVENT_WORD_FAILED, "api", "dev", "12ab", "x"}},
    },
    {
        "base",
        "{\"to\":\"done\",\"repo\":\"api\",\"base\":\"dev\","
        "\"commit\":\"34cd\"}",
        NULL,
        {.kind = EVENT_KIND_BASE,
         .as.base = {EVENT_WORD_DONE, "api", "dev", "34cd", NULL}},
    },
};

static struct store_event row_of(const struct golden *from)
{
    return (struct store_event){
        .number = 17,
        .wall_ns = INT64_C(1772600767089000000),
        .run = 1,
        .task = 0,
        .kind = from->kind,
        .data = from->data,
    };
}

static void each_kind_is_written_as_it_always_was(void **state)
{
    (void)state;
    bool seen[EVENT_KIND_COUNT] = {0};
    for (size_t ix = 0; ix < ARRAY_COUNT(golden); ix++) {
        struct strbuf out = {0};
        event_write(&out, &golden[ix].event);
        assert_string_equal(strbuf_text(&out), golden[ix].data);
        assert_string_equal(event_kind_name(golden[ix].event.kind),
                            golden[ix].kind);
        seen[golden[ix].event.kind] = true;
        strbuf_release(&out);
    }
    for (unsigned ix = EVENT_KIND_UNKNOWN + 1; ix < EVENT_KIND_COUNT; ix++) {
        assert_true(seen[ix]);
    }
}

static void what_was_written_is_read_again(void **state)
{
    (void)state;
    struct event event = {0};
    for (size_t ix = 0; ix < ARRAY_COUNT(golden); ix++) {
        struct store_event row = row_of(&golden[ix]);
        struct strbuf out = {0};
        event_read(&event, &row);
        assert_int_equal(event.kind, golden[ix].event.kind);
        event_write(&out, &event);
        assert_string_equal(strbuf_text(&out), golden[ix].data);
        strbuf_release(&out);
    }
    event_release(&event);
}

static void members_are_read_into_their_places(void **state)
{
    (void)state;
    struct event event = {0};
    struct store_event row = {
        .kind = "usage",
        .data = "{\"new\":{\"to\":\"x\"},\"to\":\"paused\",\"cap\":3,"
                "\"until\":\"1970-01-01T00:00:01Z\",\"provider\":\"p\\n\"}",
    };
    event_read(&event, &row);
    assert_int_equal(event.as.usage.to, EVENT_WORD_PAUSED);
    assert_int_equal(event.as.usage.cap, 3);
    assert_true(event.as.usage.until_ns == INT64_C(1000000000));
    assert_string_equal(event.as.usage.provider, "p\n");
    assert_null(event.as.usage.meter);
    assert_true(event.as.usage.percent < 0);
    event_release(&event);
}

static void what_makes_no_sense_is_absent(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "[]",
        "nonsense",
        "{\"to\":7,\"task\":null,\"attempt\":\"x\",\"reason\":",
        "{\"to\":\"dreaming\",\"reason\":[\"x\"]}",
    };
    struct event event = {0};
    for (size_t ix = 0; ix < ARRAY_COUNT(texts); ix++) {
        struct store_event row = {.kind = "task", .data = texts[ix]};
        event_read(&event, &row);
        assert_int_equal(event.kind, EVENT_KIND_TASK);
        assert_int_equal(event.as.task.to, TASK_STATE_COUNT);
        assert_int_equal(event.as.task.attempt, 0);
        assert_null(event.as.task.task);
        assert_null(event.as.task.reason);
    }
    struct store_event unknown = {.kind = "eclipse", .data = "{\"to\":\"x\"}"};
    event_read(&event, &unknown);
    assert_int_equal(event.kind, EVENT_KIND_UNKNOWN);
    assert_null(event_hook(&event));
    event_release(&event);
}

static void hooks_are_told_of_what_they_are_for(void **state)
{
    (void)state;
    for (size_t ix = 0; ix < ARRAY_COUNT(golden); ix++) {
        const char *hook = event_hook(&golden[ix].event);
        if (golden[ix].hook == NULL) {
            assert_null(hook);
        } else {
            assert_non_null(hook);
            assert_string_equal(hook, golden[ix].hook);
        }
    }
    struct event asked = {
        .kind = EVENT_KIND_TASK,
        .as.task = {.to = TASK_PARKED, .asks = true},
    };
    assert_string_equal(event_hook(&asked), "asked");
}

static void others_get_it_with_number_time_run_and_kind(void **state)
{
    (void)state;
    struct strbuf out = {0};
    struct store_event row = {
        .number = 17,
        .wall_ns = INT64_C(1772600767089000000),
        .kind = "hook",
        .data = "{\"hook\":\"done\",\"of\":12,\"time\":\"never\"}",
    };
    event_add_json(&out, &row, NULL, NULL);
    assert_string_equal(strbuf_text(&out),
                        "{\"event\":17,\"time\":\"2026-03-04T05:06:07.089Z\","
                        "\"run\":null,\"kind\":\"hook\",\"hook\":\"done\","
                        "\"of\":12}");
    strbuf_clear(&out);
    event_add_json(&out, &row, "r", "asked");
    assert_string_equal(strbuf_text(&out),
                        "{\"event\":17,\"hook\":\"asked\","
                        "\"time\":\"2026-03-04T05:06:07.089Z\","
                        "\"run\":\"r\",\"kind\":\"hook\",\"of\":12}");
    strbuf_release(&out);
}

static void requests_are_known_by_their_verbs(void **state)
{
    (void)state;
    struct event event = {0};
    struct store_event row = {
        .kind = "order",
        .data = "{\"verb\":\"drain\",\"answer\":{\"ok\":true,\"max\":5}}",
    };
    event_read(&event, &row);
    assert_true(event_is_request(&event, "drain"));
    assert_false(event_is_request(&event, "cap"));
    assert_true(jsonr_bool(jsonr_get(event_answer(&event), "ok")));
    assert_int_equal(jsonr_int(jsonr_get(event_answer(&event), "max")), 5);
    row.data = "{}";
    event_read(&event, &row);
    assert_false(event_is_request(&event, "drain"));
    assert_false(jsonr_bool(jsonr_get(event_answer(&event), "ok")));
    event_release(&event);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_is_written_as_it_always_was),
        cmocka_unit_test(what_was_written_is_read_again),
        cmocka_unit_test(members_are_read_into_their_places),
        cmocka_unit_test(what_makes_no_sense_is_absent),
        cmocka_unit_test(hooks_are_told_of_what_they_are_for),
        cmocka_unit_test(others_get_it_with_number_time_run_and_kind),
        cmocka_unit_test(requests_are_known_by_their_verbs),
    };
    return cmocka_run_group_tests_name("event", tests, NULL, NULL);
}
