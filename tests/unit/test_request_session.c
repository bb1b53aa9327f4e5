/* SPDX-License-Identifier: MIT */
/*
 * Requests of sessions: who may ask what, and which results are accepted before
 * they are written.
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

static const char plan[] =
    "sluice: 1\n"
    "name: wave\n"
    "limits: {sessions: 9, issues: none}\n"
    "classes: {audit: {batch: 3}}\n"
    "groups: [{id: g}]\n"
    "tasks:\n"
    "  - {id: a, run: x, add: {max: 2, depth: 1}}\n"
    "  - {id: b, group: g, run: x}\n"
    "  - {id: b-review, group: g, class: review, run: x, needs: [b],\n"
    "     rework: {to: b}}\n"
    "  - {id: e, run: x, needs: [c]}\n"
    "  - {id: c, class: audit, run: y}\n"
    "  - {id: d, class: audit, run: y}\n";

static void open_plan(struct rig *rig)
{
    rig_start(rig);
    rig_submit(rig, plan);
}

struct denial {
    const char *members;
    const char *part;
};

static void deny_all(struct rig *rig,
                     const char *task,
                     const struct denial *denials,
                     size_t count)
{
    for (size_t ix = 0; ix < count; ix++) {
        rig_deny(rig, task, denials[ix].members, "invalid", denials[ix].part);
    }
}

/* --- keys --------------------------------------------------------------- */

/* Send a request to the door of sessions. */
static const char *knock(struct rig *rig, const char *json)
{
    mem_set_text(&rig->answer, NULL);
    engine_session_request(rig->engine, ++rig->last_request, "door", json);
    rig_settle(rig);
    return rig->answer != NULL ? rig->answer : "";
}

static void assert_part(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("no \"%s\" is in: %s", part, text);
    }
}

static void only_the_key_of_a_live_session_opens_the_door(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig);
    assert_part(knock(&rig, "{\"verb\":\"ping\"}"), "has no valid key");
    assert_part(knock(&rig, "{\"verb\":\"ping\",\"session\":1}"),
                "has no valid key");
    assert_part(knock(&rig, "{\"verb\":\"ping\",\"session\":\"x\"}"),
                "has no valid key");
    assert_part(knock(&rig, "[]"), "not a JSON object");
    assert_part(knock(&rig,
                      "{\"verb\":\"ping\",\"session\":"
                      "\"99-0123456789abcdef0123456789abcdef\"}"),
                "of no session in flight");
    assert_part(knock(&rig,
                      "{\"verb\":\"ping\",\"session\":"
                      "\"1-0123456789abcdef0123456789abcdef\"}"),
                "of no session in flight");
    rig_begin(&rig, "a");
    rig_say(&rig, "a", "'verb':'note','text':'hello'", "noted");
    rig_end(&rig, "a", 0, NULL);
    rig_deny(&rig,
             "a",
             "'verb':'note','text':'hello'",
             "denied",
             "or its session has exited");
    rig_release(&rig);
}

static void without_a_secret_no_key_is_right(void **state)
{
    (void)state;
    struct rig rig = {.keyless = true};
    open_plan(&rig);
    rig_begin(&rig, "a");
    rig_deny(&rig, "a", "'verb':'note','text':'x'", "denied", "it is wrong");
    rig_release(&rig);
}

static void a_session_acts_for_itself_only(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig);
    rig_begin(&rig, "a");
    rig_deny(&rig, "a", "'verb':'cap','max':1", "denied", "is for operators");
    rig_deny(&rig,
             "a",
             "'verb':'note','text':'x','run':'other'",
             "denied",
             "cannot act on run 'other'");
    rig_say(&rig, "a", "'verb':'note','text':'x','run':'wave'", "noted");
    rig_release(&rig);
}

/* Refusals of all kinds are logged, but not without end. */
static void refusals_are_logged_up_to_a_rate(void **state)
{
    enum { MANY = 120, AT_ONCE = 50 };
    (void)state;
    struct rig rig = {0};
    open_plan(&rig);
    rig_begin(&rig, "a");
    for (uint32_t ix = 0; ix < MANY; ix++) {
        if (ix % 3 == 0) {
            (void)knock(&rig, "{\"verb\":\"pong\"}");
        } else if (ix % 3 == 1) {
            (void)knock(&rig, "[]");
        } else {
            rig_deny(&rig, "a", "'verb':'cap'", "denied", "is for operators");
        }
    }
    uint32_t count = 0;
    const char *at = strbuf_text(&rig.events);
    while ((at = strstr(at, "order {")) != NULL) {
        count++;
        at++;
    }
    assert_in_range(count, AT_ONCE, AT_ONCE + 1); /* 1: the submission */
    strbuf_clear(&rig.events);
    rig_wait(&rig, 3 * SECOND_NS);
    (void)knock(&rig, "{\"verb\":\"pong\"}");
    rig_has(&rig.events, "pong");
    rig_wait(&rig, HOUR_NS);
    strbuf_clear(&rig.events);
    (void)knock(&rig, "{\"verb\":\"pong\"}");
    rig_has(&rig.events, "pong");
    rig_release(&rig);
}

/* A key of any size is not stored for a session. */
static void a_long_key_of_a_session_is_not_stored(void **state)
{
    (void)state;
    struct rig rig = {0};
    struct strbuf text = {0};
    open_plan(&rig);
    rig_begin(&rig, "a");
    strbuf_adds(&text,
                "'verb':'add','text':'tasks: [{id: m, run: x}]','key':'");
    strbuf_pad(&text, 'k', 65);
    strbuf_adds(&text, "'");
    rig_say(&rig, "a", strbuf_text(&text), "1 task added");
    rig_restart(&rig);
    rig_state(&rig, "m", "starting");
    rig_say(&rig,
            "a",
            "'verb':'add','text':'tasks: [{id: n, run: x}]','key':'k'",
            "1 task added");
    strbuf_release(&text);
    rig_release(&rig);
}

/* --- reading and adding ------------------------------------------------- */

static void a_question_needs_a_world_that_answers(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig);
    rig_begin(&rig, "a");
    rig_deny(&rig, "a", "'verb':'why'", "unavailable", "not available here");
    rig.looks = true;
    rig_restart(&rig);
    rig_begin(&rig, "a");
    rig_say(&rig, "a", "'verb':'why','task':'b','filter':'f'", "why of b by f");
    rig.look = ERR_NOT_FOUND;
    rig_deny(&rig, "a", "'verb':'plan'", "not-found", "no look");
    rig_release(&rig);
}

static void a_session_adds_tasks_within_its_quota(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig);
    rig_begin(&rig, "a");
    rig_deny(&rig, "a", "'verb':'add'", "invalid", "fragment is missing");
    rig_say(&rig, "a", "'verb':'add','text':'tasks: []'", "0 tasks added");
    rig_deny(&rig,
             "a",
             "'verb':'add','text':'tasks: [{id: m, run: x}, {id: n, run: x},"
             " {id: o, run: x}]'",
             "limit",
             "a session may add at most 2");
    rig_say(&rig,
            "a",
            "'verb':'add','fragment_key':'k',"
            "'text':'tasks: [{id: m, run: x, add: {max: 9, depth: 9}}]'",
            "1 task added");
    rig_say(&rig,
            "a",
            "'verb':'add','fragment_key':'k',"
            "'text':'tasks: [{id: m, run: x, add: {max: 9, depth: 9}}]'",
            "nothing added");
    rig_deny(&rig,
             "a",
             "'verb':'add','text':'tasks: [{id: n, run: x}, {id: o, run: x}]'",
             "limit",
             "it adds 2 tasks to 1 that sessions of a have added");
    rig_begin(&rig, "m");
    rig_deny(&rig,
             "m",
             "'verb':'add','text':'tasks: [{id: n, run: x}]'",
             "limit",
             "only 1 levels deep");
    rig_say(&rig,
            "a",
            "'verb':'add','text':'needs: {e: [m]}'",
            "0 tasks added");
    rig_restart(&rig);
    rig_deny(&rig,
             "m",
             "'verb':'add','text':'tasks: [{id: n, run: x}]'",
             "limit",
             "only 1 levels deep");
    rig_release(&rig);
}

static void notes_are_logged_up_to_a_number(void **state)
{
    enum { MANY = 1002 };
    (void)state;
    struct rig rig = {0};
    struct strbuf text = {0};
    open_plan(&rig);
    rig_begin(&rig, "a");
    rig_deny(&rig, "a", "'verb':'note'", "invalid", "the note is empty");
    rig_deny(&rig, "a", "'verb':'note','text':' '", "invalid", "is empty");
    strbuf_adds(&text, "'verb':'note','text':'");
    strbuf_pad(&text, 'x', 1001);
    strbuf_adds(&text, "'");
    rig_deny(&rig, "a", strbuf_text(&text), "limit", "at most 1000 bytes");
    for (uint32_t ix = 0; ix < MANY; ix++) {
        char note[64];
        (void)snprintf(note, sizeof(note), "'verb':'note','text':'<%u>'", ix);
        rig_say(&rig, "a", note, "noted");
    }
    rig_say(&rig, "a", "'verb':'note','text':'<1001>'", "noted");
    rig_has(&rig.events, "<999>");
    rig_lacks(&rig.events, "<1000>");
    strbuf_release(&text);
    rig_release(&rig);
}

/* --- results ------------------------------------------------------------ */

static void a_result_is_checked_before_it_is_written(void **state)
{
    static const struct denial denials[] = {
        {"'verb':'finish'", "the result is missing"},
        {"'verb':'finish','result':3", "the result is missing"},
        {"'verb':'finish','result':[]", "must be an object"},
        {"'verb':'finish','result':{}", "the outcome is missing"},
        {"'verb':'finish','result':{'outcome':'refused'}", "is for providers"},
        {"'verb':'finish','result':{'outcome':'changes'}",
         "needs a stage with 'rework', and a has none"},
        {"'verb':'finish','result':{'outcome':'blocked'}",
         "'blocked' needs a reason: the question"},
        {"'verb':'finish','result':{'outcome':'blocked','reason':' '}",
         "needs a reason"},
        {"'verb':'finish','result':{'outcome':'blocked','feedback':' '}",
         "needs a reason"},
        {"'verb':'finish','result':{'outcome':'done',"
         "'tasks':[{'task':'a','outcome':'done'}]}",
         "is for a batch; this session has one task"},
    };
    (void)state;
    struct rig rig = {0};
    open_plan(&rig);
    rig_begin(&rig, "a");
    deny_all(&rig, "a", denials, ARRAY_COUNT(denials));
    rig_say(&rig,
            "a",
            "'verb':'finish','result':{'outcome':'blocked','feedback':'why?'}",
            "the result is valid: blocked");
    rig_begin(&rig, "b");
    rig_end(&rig, "b", 0, NULL);
    rig_begin(&rig, "b-review");
    rig_deny(&rig,
             "b-review",
             "'verb':'finish','result':{'outcome':'changes'}",
             "invalid",
             "'changes' needs a reason: what to change");
    rig_say(&rig,
            "b-review",
            "'verb':'finish','result':{'outcome':'changes','reason':'tests'}",
            "the result is valid: changes");
    rig_release(&rig);
}

static void a_batch_needs_a_verdict_on_each_task(void **state)
{
    static const struct denial denials[] = {
        {"'verb':'finish','result':{}", "must name task 'c'"},
        {"'verb':'finish','result':{'outcome':'done'}", "names it 0 times"},
        {"'verb':'finish','result':{'outcome':'changes','reason':'x'}",
         "give 'tasks'"},
        {"'verb':'finish','result':{'tasks':[{'task':'c','outcome':'done'}]}",
         "must name task 'd'"},
        {"'verb':'finish','result':{'tasks':[{'task':'c','outcome':'done'},"
         "{'task':'c','outcome':'done'},{'task':'d','outcome':'done'}]}",
         "names it 2 times"},
        {"'verb':'finish','result':{'tasks':[{'task':'c','outcome':'done'},"
         "{'task':'z','outcome':'done'},{'task':'d','outcome':'done'}]}",
         "names 3 tasks, but the batch has 2"},
        {"'verb':'finish','result':{'outcome':'failed',"
         "'tasks':[{'task':'c','outcome':'done'}]}",
         "must name task 'd'"},
        {"'verb':'finish','result':{'tasks':[{'task':'c','outcome':'blocked'},"
         "{'task':'d','outcome':'done'}]}",
         "needs a reason"},
    };
    (void)state;
    struct rig rig = {0};
    open_plan(&rig);
    rig_begin(&rig, "c");
    rig_ordered(&rig, "c", "[batch] c\nd\n");
    deny_all(&rig, "c", denials, ARRAY_COUNT(denials));
    rig_say(&rig,
            "c",
            "'verb':'finish','result':{'tasks':[{'task':'c','outcome':'done'},"
            "{'task':'d','outcome':'failed'}]}",
            "the result is valid: done");
    rig_say(&rig,
            "c",
            "'verb':'finish','result':{'outcome':'failed'}",
            "the result is valid: failed");
    rig_release(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_key_of_a_live_session_opens_the_door),
        cmocka_unit_test(without_a_secret_no_key_is_right),
        cmocka_unit_test(a_session_acts_for_itself_only),
        cmocka_unit_test(refusals_are_logged_up_to_a_rate),
        cmocka_unit_test(a_long_key_of_a_session_is_not_stored),
        cmocka_unit_test(a_question_needs_a_world_that_answers),
        cmocka_unit_test(a_session_adds_tasks_within_its_quota),
        cmocka_unit_test(notes_are_logged_up_to_a_number),
        cmocka_unit_test(a_result_is_checked_before_it_is_written),
        cmocka_unit_test(a_batch_needs_a_verdict_on_each_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
