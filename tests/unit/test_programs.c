/* SPDX-License-Identifier: MIT */
/*
 * Programs of a plan other than sessions: hooks, sync hooks and meters, in the
 * middle of stops, restarts and damage; and messages that are too much.
 */
#include "base/mem.h"
#include "tests/unit/engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define HEAD                                                                   \
    "sluice: 1\nname: wave\nlimits: {sessions: 9, issues: none}\n"             \
    "defaults: {retry: {max: 0}}\n"

static void open_plan(struct rig *rig, const char *plan)
{
    rig_start(rig);
    rig_submit(rig, plan);
}

static void run(struct rig *rig, const char *task, int code)
{
    rig_begin(rig, task);
    rig_end(rig, task, code, NULL);
}

/* --- hooks -------------------------------------------------------------- */

static const char hook_plan[] =
    HEAD "hooks: {parked: {run: h, retries: 1}, done: [h, -d]}\n"
         "tasks: [{id: a, run: x}, {id: b, run: x}, {id: c, run: x}]\n";

static void a_hook_that_fails_is_given_up_and_told(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, hook_plan);
    run(&rig, "a", 30);
    assert_int_equal(engine_notification_count(rig.engine, 0), 1);
    rig_begin(&rig, ".hooks");
    rig_print(&rig, ".hooks", 1, NULL);
    rig_print(&rig, ".hooks", 1, NULL); /* repeated: of an earlier call */
    rig_wait(&rig, 2 * SECOND_NS);
    assert_int_equal(rig_orders(&rig, ".hooks"), 2);
    rig_report(&rig, ".hooks", &(struct work_report){.type = WORK_LOST});
    rig_has(&rig.events, "the program was lost");
    assert_int_equal(engine_notification_count(rig.engine, 0), 0);
    run(&rig, "b", 0);
    rig_ordered(&rig, ".hooks", "argv: h -d");
    rig_report(&rig, ".hooks", &(struct work_report){.type = WORK_UNKNOWN});
    assert_int_equal(rig_orders(&rig, ".hooks"), 4); /* assigned again */
    rig_print(&rig, ".hooks", 0, NULL);
    rig_has(&rig.log, "forget .hooks");
    assert_int_equal(engine_notification_count(rig.engine, 0), 0);
    rig_release(&rig);
}

/* A stored notification of a run that is gone, without the hook's name. */
static void a_notification_outlives_its_run(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, hook_plan);
    rig_stop(&rig);
    rig_store_setting(&rig,
                      "notice/7/1",
                      "{'number':7,'run':'gone','folder':'/w','shell':'h',"
                      "'event':{'event':1}}");
    rig_start(&rig);
    rig_ordered(&rig, ".hooks", "shell: h");
    rig_report(&rig,
               ".hooks",
               &(struct work_report){.type = WORK_REFUSED, .text = "x"});
    rig_has(&rig.events, "the program could not be started");
    uint32_t orders = rig_orders(&rig, ".hooks");
    rig_restart(&rig);
    rig_wait(&rig, HOUR_NS);
    assert_int_equal(rig_orders(&rig, ".hooks"), orders);
    rig_release(&rig);
}

static void a_stopped_hook_is_left_to_the_next_scheduler(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, hook_plan);
    run(&rig, "a", 30);
    rig_begin(&rig, ".hooks");
    engine_stop(rig.engine);
    rig_has(&rig.log, "want .hooks stop");
    rig_report(&rig,
               ".hooks",
               &(struct work_report){
                   .type = WORK_ENDED,
                   .exit = {.cause = ATTEMPT_STOPPED, .code = -1},
               });
    rig_wait(&rig, MINUTE_NS);
    assert_int_equal(rig_orders(&rig, ".hooks"), 1);
    assert_int_equal(engine_notification_count(rig.engine, 0), 0);
    rig_restart(&rig);
    assert_int_equal(rig_orders(&rig, ".hooks"), 2);
    rig_release(&rig);
}

/* What a worker writes in other bytes than UTF-8 reaches the hook, too. */
static void a_hook_gets_reasons_of_any_bytes(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, hook_plan);
    rig_report(&rig,
               "a",
               &(struct work_report){
                   .type = WORK_REFUSED,
                   .text = "no \xff file",
               });
    rig_state(&rig, "a", "parked");
    assert_int_equal(rig_orders(&rig, ".hooks"), 1);
    rig_print(&rig, ".hooks", 0, NULL);
    rig_release(&rig);
}

/* --- sync --------------------------------------------------------------- */

static const char sync_plan[] =
    HEAD "sync: {every: 1, run: sync}\n"
         "tasks: [{id: a, run: x}, {id: b, run: x}, {id: c, run: x}]\n";

/* A scheduler that stops leaves the hook to the next one. */
static void a_stopped_sync_hook_runs_again(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, sync_plan);
    run(&rig, "a", 0);
    rig_begin(&rig, ".sync");
    engine_stop(rig.engine);
    rig_report(&rig,
               ".sync",
               &(struct work_report){
                   .type = WORK_ENDED,
                   .exit = {.cause = ATTEMPT_STOPPED, .code = -1},
               });
    rig_has(&rig.log, "forget .sync 1");
    assert_int_equal(rig_orders(&rig, ".sync"), 1);
    rig_restart(&rig);
    assert_int_equal(rig_orders(&rig, ".sync"), 2);
    rig_print(&rig, ".sync", 0, "tasks: [{id: m, run: x}]");
    rig_has(&rig.events, "'task':'m'");
    rig_release(&rig);
}

/* A hook fails by itself while its scheduler stops: also then. */
static void a_sync_hook_that_fails_in_a_stop_runs_again(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, sync_plan);
    run(&rig, "a", 0);
    engine_stop(rig.engine);
    rig_print(&rig, ".sync", 1, NULL);
    rig_has(&rig.log, "forget .sync 1");
    rig_release(&rig);
}

/* --- meters ------------------------------------------------------------- */

static void meters_of_an_agent_get_its_environment(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig,
              HEAD "agents: {claude: {env: {HOME_OF: me}}}\n"
                   "usage: {agent: claude, steps: {80: 0}}\n"
                   "tasks: [{id: a, agent: claude}]\n");
    rig_ordered(&rig, ".usage", "HOME_OF=me");
    rig_ordered(&rig, ".usage", "argv: --meters claude");
    rig_release(&rig);
}

/* The known end of a pause holds, whatever the next readings are; a time that
 * does not fit is none. */
static void a_pause_with_an_end_needs_no_reading(void **state)
{
    (void)state;
    struct rig rig = {0};
    struct strbuf meters = {0};
    open_plan(&rig,
              HEAD "usage: {run: m, steps: {80: 0}, every: 1m}\n"
                   "tasks: [{id: a, run: x}]\n");
    strbuf_addf(&meters,
                "[{'name':'m','percent':90,'resets_at':%lld}]",
                (long long)(RIG_WALL_NS / SECOND_NS) + 3600);
    rig_print(&rig, ".usage", 0, strbuf_text(&meters));
    assert_int_equal(engine_usage(rig.engine, 0, 0).cap, 0);
    uint32_t readings = rig_orders(&rig, ".usage");
    rig_restart(&rig);
    assert_int_equal(rig_orders(&rig, ".usage"), readings);
    rig_wait(&rig, 59 * MINUTE_NS);
    assert_int_equal(rig_orders(&rig, ".usage"), readings);
    assert_int_equal(rig_orders(&rig, "a"), 0);
    rig_wait(&rig, 3 * MINUTE_NS);
    assert_int_equal(rig_orders(&rig, ".usage"), readings + 1);
    rig_print(&rig, ".usage", 1, NULL); /* the pause ends without a reading */
    assert_int_equal(rig_orders(&rig, "a"), 1);
    strbuf_release(&meters);
    rig_release(&rig);
}

/* --- messages ----------------------------------------------------------- */

static void a_session_gets_only_so_many_messages(void **state)
{
    enum { LONG = (16 << 10) + 1 };
    (void)state;
    struct rig rig = {0};
    struct strbuf request = {0};
    open_plan(&rig, HEAD "tasks: [{id: a, run: x}, {id: b, run: x}]\n");
    rig_begin(&rig, "a");
    strbuf_adds(&request, "{'verb':'tell','task':'a','text':'");
    strbuf_pad(&request, 'x', LONG);
    strbuf_adds(&request, "'}");
    rig_refuse(&rig, strbuf_text(&request), "limit", "longer than 16 KiB");
    for (uint32_t ix = 0; ix < 100; ix++) {
        rig_expect(&rig, "{'verb':'tell','task':'a','text':'hi'}", "is told");
    }
    rig_refuse(&rig,
               "{'verb':'tell','task':'a','text':'hi'}",
               "limit",
               "too many messages");
    rig_expect(&rig, "{'verb':'tell','task':'b','text':'hi'}", "is told");
    strbuf_release(&request);
    rig_release(&rig);
}

/* Two messages in one batch, and one after it began to be written. */
static void messages_wait_for_their_batches(void **state)
{
    static const char first[] =
        "{\"verb\":\"tell\",\"task\":\"a\",\"text\":\"first\"}";
    static const char second[] =
        "{\"verb\":\"tell\",\"task\":\"a\",\"text\":\"second\"}";
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, HEAD "tasks: [{id: a, run: x}, {id: b, run: x}]\n");
    rig_begin(&rig, "a");
    rig_begin(&rig, "b");
    engine_request(rig.engine, ++rig.last_request, "operator", first);
    engine_pass(rig.engine);
    assert_non_null(rig.batch);
    engine_request(rig.engine,
                   rig.last_request,
                   "operator",
                   "{\"verb\":\"tell\",\"task\":\"b\",\"text\":\"other\"}");
    engine_request(rig.engine, rig.last_request, "operator", second);
    rig_lacks(&rig.log, "tell");
    rig_settle(&rig);
    rig_has(&rig.log, "tell a first\nsecond\n");
    rig_has(&rig.log, "tell b other\n");
    rig_lacks(&rig.log, "tell a first\n\n"); /* not before the second */
    rig_release(&rig);
}

static void a_failed_task_gets_no_message(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig,
              HEAD "tasks:\n"
                   "  - {id: a, run: x, on_failure: skip}\n"
                   "  - {id: b, run: x}\n");
    run(&rig, "a", 1);
    rig_refuse(&rig,
               "{'verb':'tell','task':'a','text':'hi'}",
               "conflict",
               "a is not running, it is failed");
    rig_release(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hook_that_fails_is_given_up_and_told),
        cmocka_unit_test(a_notification_outlives_its_run),
        cmocka_unit_test(a_stopped_hook_is_left_to_the_next_scheduler),
        cmocka_unit_test(a_hook_gets_reasons_of_any_bytes),
        cmocka_unit_test(a_stopped_sync_hook_runs_again),
        cmocka_unit_test(a_sync_hook_that_fails_in_a_stop_runs_again),
        cmocka_unit_test(meters_of_an_agent_get_its_environment),
        cmocka_unit_test(a_pause_with_an_end_needs_no_reading),
        cmocka_unit_test(a_session_gets_only_so_many_messages),
        cmocka_unit_test(messages_wait_for_their_batches),
        cmocka_unit_test(a_failed_task_gets_no_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
