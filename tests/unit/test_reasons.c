/* SPDX-License-Identifier: MIT */
#include "view/reasons.h"

#include "base/duration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define WALL_NS (INT64_C(1772600767) * SECOND_NS) /* 05:06:07 UTC */

/* A reason of a waiting task without names. */
static struct reason reason_of(enum why_code code)
{
    return (struct reason){
        .code = code,
        .left_ns = SCHED_NEVER,
        .max = -1,
        .state = TASK_WAITING,
    };
}

static void assert_text(const struct reason *reason, const char *text)
{
    struct strbuf out = {0};
    reasons_add(&out, reason);
    assert_string_equal(strbuf_text(&out), text);
    strbuf_release(&out);
}

/* Require these commands for task a of run r, one per line. */
static void assert_commands(const struct reason *reason, const char *commands)
{
    struct strbuf out = {0};
    const struct reasons_remedy *remedy = NULL;
    while ((remedy = reasons_remedy(reason, remedy)) != NULL) {
        reasons_add_command(&out, reason, remedy, "a", "r");
        strbuf_adds(&out, "\n");
    }
    assert_string_equal(strbuf_text(&out), commands);
    strbuf_release(&out);
}

static void a_snooze_has_its_time(void **state)
{
    (void)state;
    struct reason reason = reason_of(WHY_SNOOZED);
    reason.left_ns = 12 * MINUTE_NS;
    reason.until_ns = WALL_NS + reason.left_ns;
    assert_text(&reason, "it asked to be run again at 05:18:07");
    assert_commands(&reason, "sluice retry a --run r\n");
    reason.left_ns = 2 * DAY_NS;
    reason.until_ns = WALL_NS + reason.left_ns;
    assert_text(&reason, "it asked to be run again at 2026-03-06 05:06");
}

static void an_early_task_has_its_time(void **state)
{
    (void)state;
    struct reason reason = reason_of(WHY_EARLY);
    reason.left_ns = HOUR_NS;
    reason.until_ns = WALL_NS + reason.left_ns;
    assert_text(&reason, "does not start before 06:06:07");
    assert_commands(&reason, "sluice retry a --run r\n");
    reason.until_ns = 0;
    assert_text(&reason, "does not start before a later time");
}

static void an_approval_is_asked_for(void **state)
{
    (void)state;
    struct reason reason = reason_of(WHY_APPROVAL);
    reason.state = TASK_READY;
    assert_text(&reason, "waits for your approval");
    assert_commands(&reason,
                    "sluice approve a --run r\n"
                    "sluice answer a TEXT --run r\n"
                    "sluice skip a --run r\n");
}

static void a_stopped_run_has_its_cause(void **state)
{
    (void)state;
    struct reason reason = reason_of(WHY_HALTED);
    reason.stop = SCHED_STOPPED_DEADLINE;
    assert_text(&reason, "the run is stopped: its deadline has passed");
    assert_commands(&reason, "sluice resume --run r\n");
    reason.stop = SCHED_STOPPED_FAILURE;
    assert_text(&reason, "the run is stopped: a task has failed");
    reason.task = "b";
    assert_text(&reason, "the run is stopped: b has failed");
    assert_string_equal(reasons_stop_name(SCHED_STOPPED_FAILURE), "failure");
    assert_string_equal(reasons_stop_name(SCHED_STOPPED_DEADLINE), "deadline");
    assert_null(reasons_stop_name(SCHED_NOT_STOPPED));
}

static void a_stop_names_the_commands(void **state)
{
    (void)state;
    struct strbuf out = {0};
    reasons_add_halt(&out, SCHED_STOPPED_FAILURE, "b", NULL);
    assert_string_equal(strbuf_text(&out),
                        "stopped: b has failed; 'sluice retry b' retries it, "
                        "'sluice resume' lets the run go on");
    strbuf_clear(&out);
    reasons_add_halt(&out, SCHED_STOPPED_DEADLINE, NULL, "r");
    assert_string_equal(strbuf_text(&out),
                        "stopped: its deadline has passed; 'sluice resume "
                        "--run r' lets the run go on");
    strbuf_release(&out);
}

static void a_last_task_names_the_rest(void **state)
{
    (void)state;
    struct reason reason = reason_of(WHY_REST);
    reason.task = "b";
    assert_text(&reason,
                "runs when the rest of the run has come to its end; b has "
                "not");
    reason.group = "api";
    assert_text(&reason,
                "runs when the rest of api has come to its end; b has not");
    reason.task = NULL;
    assert_text(&reason, "runs when the rest of api has come to its end");
    assert_commands(&reason, "");
}

static void needs_name_their_outcome(void **state)
{
    (void)state;
    struct reason reason = reason_of(WHY_NEEDS);
    reason.task = "b";
    assert_text(&reason, "needs b");
    reason.on = PLAN_ON_FAILED;
    assert_text(&reason, "needs that b fails");
    reason.on = PLAN_ON_ANY;
    assert_text(&reason, "needs the end of b");
}

static void a_skip_names_the_outcome(void **state)
{
    (void)state;
    struct reason reason = reason_of(WHY_ENDED);
    reason.state = TASK_SKIPPED;
    reason.task = "b";
    reason.of = TASK_DONE;
    assert_text(&reason, "because of b");
    reason.on = PLAN_ON_FAILED;
    assert_text(&reason, "it needs that b fails, and b is done");
}

static void json_has_the_moment(void **state)
{
    (void)state;
    struct reason reason = reason_of(WHY_SNOOZED);
    struct strbuf out = {0};
    reason.left_ns = MINUTE_NS;
    reason.until_ns = WALL_NS + MINUTE_NS;
    reasons_add_json(&out, &reason);
    assert_non_null(strstr(strbuf_text(&out), "\"code\": \"snoozed\""));
    assert_non_null(strstr(strbuf_text(&out), "\"left_s\": 60"));
    assert_non_null(
        strstr(strbuf_text(&out), "\"until\": \"2026-03-04T05:07:07"));
    strbuf_clear(&out);
    reason = reason_of(WHY_REST);
    reasons_add_json(&out, &reason);
    assert_non_null(strstr(strbuf_text(&out), "\"until\": null"));
    strbuf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snooze_has_its_time),
        cmocka_unit_test(an_early_task_has_its_time),
        cmocka_unit_test(an_approval_is_asked_for),
        cmocka_unit_test(a_stopped_run_has_its_cause),
        cmocka_unit_test(a_stop_names_the_commands),
        cmocka_unit_test(a_last_task_names_the_rest),
        cmocka_unit_test(needs_name_their_outcome),
        cmocka_unit_test(a_skip_names_the_outcome),
        cmocka_unit_test(json_has_the_moment),
    };
    if (setenv("TZ", "UTC0", 1) != 0) {
        return 1;
    }
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
