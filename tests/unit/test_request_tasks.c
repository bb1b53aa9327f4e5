/* SPDX-License-Identifier: MIT */
/*
 * Requests about tasks and groups in states that are rare: which task of a
 * group gets an answer or a message, and what a refusal advises.
 */
#include "base/mem.h"
#include "tests/unit/engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

/* Begin and end a session. */
static void run(struct rig *rig, const char *task, int code)
{
    rig_begin(rig, task);
    rig_end(rig, task, code, NULL);
}

/* --- groups ------------------------------------------------------------- */

static const char group_plan[] =
    HEAD "groups: [{id: g}, {id: h}]\n"
         "tasks:\n"
         "  - {id: a, group: g, run: x, on_failure: skip}\n"
         "  - {id: b, group: g, run: x, on_failure: skip}\n"
         "  - {id: c, group: g, run: x}\n"
         "  - {id: d, group: h, run: x, approve: true}\n"
         "  - {id: e, group: h, run: x, approve: true}\n"
         "  - {id: f, run: x, needs: [d]}\n";

static void an_answer_for_a_group_goes_to_who_asks(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, group_plan);
    rig_refuse(&rig,
               "{'verb':'answer','task':'g','text':'yes'}",
               "conflict",
               "cannot answer g: no task of it is parked");
    run(&rig, "a", 1);
    run(&rig, "b", 1);
    rig_state(&rig, "a", "failed");
    /* The first failed task, if none is parked. */
    rig_expect(&rig,
               "{'verb':'answer','task':'g','text':'yes'}",
               "a is answered");
    rig_ordered(&rig, "a", "[feedback] yes");
    run(&rig, "a", 1);
    run(&rig, "c", 30);
    rig_state(&rig, "c", "parked");
    rig_expect(&rig,
               "{'verb':'answer','task':'g','text':'no'}",
               "c is answered");
    rig_ordered(&rig, "c", "[feedback] no");
    rig_state(&rig, "b", "failed");
    rig_release(&rig);
}

static void an_answer_can_be_an_approval(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, group_plan);
    rig_refuse(&rig, "{'verb':'answer','task':'h'}", "invalid", "empty answer");
    rig_refuse(&rig,
               "{'verb':'answer','task':'z','text':'yes'}",
               "not-found",
               "no task 'z'");
    rig_expect(&rig,
               "{'verb':'answer','task':'h','text':'go'}",
               "d is approved");
    rig_ordered(&rig, "d", "[feedback] go");
    rig_expect(&rig,
               "{'verb':'approve','task':'h','text':'go on'}",
               "e is approved");
    rig_ordered(&rig, "e", "[feedback] go on");
    rig_refuse(&rig,
               "{'verb':'approve','task':'h','text':'once more'}",
               "conflict",
               "waits for approval");
    rig_refuse(&rig,
               "{'verb':'approve','task':'h'}",
               "conflict",
               "no task of it allows this");
    rig_refuse(&rig,
               "{'verb':'approve','task':'z'}",
               "not-found",
               "no task 'z'");
    rig_refuse(&rig,
               "{'verb':'approve','task':'a','text':'yes'}",
               "conflict",
               "its plan has no 'approve: true'");
    rig_release(&rig);
}

static void an_approval_of_a_group_is_for_all_of_it(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, group_plan);
    rig_expect(&rig, "{'verb':'approve','task':'h'}", "(2 tasks)");
    rig_state(&rig, "d", "starting");
    rig_state(&rig, "e", "starting");
    rig_release(&rig);
}

static void failed_tasks_of_a_group_are_retried_or_skipped(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, group_plan);
    run(&rig, "a", 1);
    run(&rig, "b", 1);
    rig_expect(&rig, "{'verb':'retry','task':'g'}", "(2 tasks)");
    rig_state(&rig, "a", "starting");
    rig_begin(&rig, "c");
    rig_expect(&rig, "{'verb':'skip','task':'h'}", "h is skipped (2 tasks)");
    rig_state(&rig, "d", "skipped");
    rig_refuse(&rig, "{'verb':'skip','task':'h'}", "conflict", "cannot skip h");
    rig_release(&rig);
}

/* --- messages ----------------------------------------------------------- */

static void a_message_for_a_group_needs_one_listener(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, group_plan);
    rig_refuse(&rig,
               "{'verb':'tell','task':'g','text':'hi'}",
               "conflict",
               "several tasks of g are running");
    rig_refuse(&rig,
               "{'verb':'tell','task':'h','text':'hi'}",
               "conflict",
               "no task of h is running");
    rig_refuse(&rig,
               "{'verb':'tell','task':'z','text':'hi'}",
               "not-found",
               "no task 'z'");
    rig_expect(&rig, "{'verb':'skip','task':'e'}", "e is skipped");
    rig_refuse(&rig,
               "{'verb':'tell','task':'e','text':'hi'}",
               "conflict",
               "it is skipped");
    run(&rig, "a", 0);
    rig_begin(&rig, "b");
    run(&rig, "c", 0);
    rig_expect(&rig, "{'verb':'tell','task':'g','text':'hi'}", "b is told");
    rig_has(&rig.log, "tell b hi\n");
    rig_refuse(&rig, "{'verb':'tell','task':'b'}", "invalid", "empty message");
    rig_end(&rig, "b", 0, NULL);
    rig_refuse(&rig,
               "{'verb':'tell','task':'b','text':'hi'}",
               "conflict",
               "b is not running, it is done");
    rig_refuse(&rig,
               "{'verb':'tell','task':'d','text':'hi'}",
               "conflict",
               "d is not running, it is ready: wait until it runs");
    rig_expect(&rig, "{'verb':'approve','task':'d'}", "d is approved");
    rig_begin(&rig, "d");
    rig_expect(&rig, "{'verb':'cancel'}", "run wave is cancelled");
    rig_refuse(&rig,
               "{'verb':'tell','task':'f','text':'hi'}",
               "conflict",
               "it is cancelled");
    rig_release(&rig);
}

static void a_message_before_the_start_is_in_the_order(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, HEAD "tasks: [{id: a, run: x}]\n");
    rig_expect(&rig, "{'verb':'tell','task':'a','text':'hi'}", "a is told");
    rig_lacks(&rig.log, "tell a"); /* it does not run yet */
    rig_begin(&rig, "a");
    rig_has(&rig.log, "tell a hi\n");
    strbuf_clear(&rig.log);
    rig_restart(&rig);
    rig_lacks(&rig.log, "tell a");
    rig_begin(&rig, "a"); /* the worker reports it to the next scheduler */
    rig_has(&rig.log, "tell a hi\n");
    rig_end(&rig, "a", 30, NULL);
    rig_refuse(&rig,
               "{'verb':'tell','task':'a','text':'hi'}",
               "conflict",
               "use sluice answer a TEXT");
    rig_release(&rig);
}

/* A message whose session exits before the batch is written reaches nobody; the
 * next session gets it. */
static void a_message_survives_its_session(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig,
              HEAD "tasks: [{id: a, run: x, retry: {max: 1, backoff: 1s}}]\n");
    rig_begin(&rig, "a");
    engine_request(rig.engine,
                   ++rig.last_request,
                   "operator",
                   "{\"verb\":\"tell\",\"task\":\"a\",\"text\":\"hi\"}");
    engine_pass(rig.engine); /* the batch is being written */
    struct work_report report = {
        .type = WORK_ENDED,
        .exit = {.cause = ATTEMPT_EXIT, .code = 1},
    };
    rig_report(&rig, "a", &report);
    rig_lacks(&rig.log, "tell a");
    rig_wait(&rig, 2 * SECOND_NS);
    rig_ordered(&rig, "a", "[messages] hi");
    rig_release(&rig);
}

/* --- hints -------------------------------------------------------------- */

static const char hint_plan[] =
    HEAD "tasks:\n"
         "  - {id: a, run: x, on_failure: skip}\n"
         "  - {id: b, run: x}\n"
         "  - {id: c, run: x, needs: [b]}\n"
         "  - {id: d, run: x, approve: true}\n"
         "  - {id: e, run: x, approve: true, needs: [c]}\n";

static void a_refusal_says_what_helps(void **state)
{
    static const struct {
        const char *request;
        const char *part;
    } refusals[] = {
        {"{'verb':'rerun','task':'a'}", "it is failed; use 'sluice retry'"},
        {"{'verb':'rerun','task':'b'}", "wait until it is done, or cancel it"},
        {"{'verb':'rerun','task':'c'}", "and will run anyway"},
        {"{'verb':'release','task':'d'}", "use 'sluice approve d'"},
        {"{'verb':'release','task':'c'}", "it is not held"},
        {"{'verb':'retry','task':'d'}", "it is waiting for approval"},
        {"{'verb':'approve','task':'e'}", "its needs are not met"},
        {"{'verb':'rework','task':'b','text':'go'}", "use 'sluice tell'"},
    };
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, hint_plan);
    run(&rig, "a", 1);
    rig_begin(&rig, "b");
    for (size_t ix = 0; ix < ARRAY_COUNT(refusals); ix++) {
        rig_refuse(&rig, refusals[ix].request, "conflict", refusals[ix].part);
    }
    rig_expect(&rig, "{'verb':'hold','task':'d'}", "before 'sluice approve d'");
    rig_expect(&rig, "{'verb':'approve','task':'d'}", "d is approved");
    rig_refuse(&rig,
               "{'verb':'approve','task':'d'}",
               "conflict",
               "it is starting");
    rig_expect(&rig, "{'verb':'skip','task':'c'}", "c is skipped");
    rig_refuse(&rig, "{'verb':'rerun','task':'c'}", "conflict", "for good");
    rig_refuse(&rig,
               "{'verb':'first','task':'c'}",
               "conflict",
               "cannot promote c: it is skipped");
    rig_refuse(&rig,
               "{'verb':'hold','task':'c'}",
               "conflict",
               "cannot hold c: it is skipped");
    rig_refuse(&rig,
               "{'verb':'rework','task':'c','text':'go'}",
               "conflict",
               "cannot rework c: it is skipped");
    rig_release(&rig);
}

static void a_done_task_of_a_cancelled_run_stays_done(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, hint_plan);
    rig_refuse(&rig,
               "{'verb':'cancel','run':'x'}",
               "not-found",
               "no unfinished run 'x'");
    run(&rig, "b", 0);
    rig_begin(&rig, "a"); /* keeps the run unfinished */
    rig_expect(&rig, "{'verb':'cancel'}", "run wave is cancelled");
    rig_refuse(&rig,
               "{'verb':'rerun','task':'b'}",
               "conflict",
               "start another one with 'sluice run --new'");
    rig_refuse(&rig,
               "{'verb':'rework','task':'b','text':'go'}",
               "conflict",
               "in a run that is cancelled");
    rig_refuse(&rig,
               "{'verb':'rework','task':'d','text':'go'}",
               "conflict",
               "it is cancelled for good");
    rig_release(&rig);
}

/* --- texts and numbers -------------------------------------------------- */

static void a_priority_is_a_number_from_0_to_9(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, hint_plan);
    rig_refuse(&rig,
               "{'verb':'priority','task':'c'}",
               "invalid",
               "from 0, the most urgent, to 9");
    rig_refuse(&rig,
               "{'verb':'priority','task':'c','priority':10}",
               "invalid",
               "from 0, the most urgent, to 9");
    rig_expect(&rig,
               "{'verb':'priority','task':'c','priority':9}",
               "c has priority 9");
    rig_refuse(&rig, "{'verb':'first'}", "invalid", "'first' needs a task");
    rig_refuse(&rig, "{'verb':'first','task':'z'}", "not-found", "no task 'z'");
    rig_refuse(&rig, "{'verb':'rerun','task':'z'}", "not-found", "no task 'z'");
    rig_release(&rig);
}

static void a_text_for_rework_is_neither_empty_nor_huge(void **state)
{
    enum { TOO_LONG = (64 << 10) + 1 };
    (void)state;
    struct rig rig = {0};
    struct strbuf request = {0};
    open_plan(&rig, hint_plan);
    rig_refuse(&rig, "{'verb':'rework','task':'c'}", "invalid", "empty text");
    rig_refuse(&rig,
               "{'verb':'rework','task':'c','text':' \\n'}",
               "invalid",
               "empty text");
    strbuf_adds(&request, "{'verb':'rework','task':'c','text':'");
    strbuf_pad(&request, 'x', TOO_LONG);
    strbuf_adds(&request, "'}");
    rig_refuse(&rig, strbuf_text(&request), "limit", "more than 65536");
    rig_refuse(&rig,
               "{'verb':'rework','task':'z','text':'go'}",
               "not-found",
               "no task 'z'");
    strbuf_release(&request);
    rig_release(&rig);
}

/* All texts for a task that waits are kept, up to a limit. */
static void feedback_is_added_until_it_is_too_much(void **state)
{
    enum { LONG = 60 << 10, FIT = 4 };
    (void)state;
    struct rig rig = {0};
    struct strbuf request = {0};
    open_plan(&rig, hint_plan);
    strbuf_adds(&request, "{'verb':'rework','task':'c','text':'");
    strbuf_pad(&request, 'x', LONG);
    strbuf_adds(&request, "'}");
    for (uint32_t ix = 0; ix < FIT; ix++) {
        rig_expect(&rig, strbuf_text(&request), "c gets the text when it");
    }
    rig_refuse(&rig, strbuf_text(&request), "limit", "too much feedback");
    rig_expect(&rig,
               "{'verb':'rework','task':'c','text':'the last word'}",
               "c gets the text when it starts");
    rig_restart(&rig);
    run(&rig, "b", 0);
    rig_ordered(&rig, "c", "x\nthe last word");
    strbuf_release(&request);
    rig_release(&rig);
}

static void rework_of_a_group_with_parts_needs_one_of_them(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig,
              HEAD "groups: [{id: g}, {id: h, parent: g}]\n"
                   "tasks:\n"
                   "  - {id: a, group: g, run: x}\n"
                   "  - {id: b, group: h, run: x}\n");
    rig_refuse(&rig,
               "{'verb':'rework','task':'g','text':'go'}",
               "conflict",
               "g has several parts: name one, such as g or h");
    run(&rig, "b", 30);
    rig_expect(&rig,
               "{'verb':'rework','task':'h','text':'go'}",
               "b will be retried with the text");
    rig_ordered(&rig, "b", "[feedback] go");
    run(&rig, "b", 0);
    rig_expect(&rig,
               "{'verb':'rework','task':'b','text':'once more'}",
               "b works on it again");
    rig_ordered(&rig, "b", "[feedback] once more");
    rig_release(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_for_a_group_goes_to_who_asks),
        cmocka_unit_test(an_answer_can_be_an_approval),
        cmocka_unit_test(an_approval_of_a_group_is_for_all_of_it),
        cmocka_unit_test(failed_tasks_of_a_group_are_retried_or_skipped),
        cmocka_unit_test(a_message_for_a_group_needs_one_listener),
        cmocka_unit_test(a_message_before_the_start_is_in_the_order),
        cmocka_unit_test(a_message_survives_its_session),
        cmocka_unit_test(a_refusal_says_what_helps),
        cmocka_unit_test(a_done_task_of_a_cancelled_run_stays_done),
        cmocka_unit_test(a_priority_is_a_number_from_0_to_9),
        cmocka_unit_test(a_text_for_rework_is_neither_empty_nor_huge),
        cmocka_unit_test(feedback_is_added_until_it_is_too_much),
        cmocka_unit_test(rework_of_a_group_with_parts_needs_one_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
