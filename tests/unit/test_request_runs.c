/* SPDX-License-Identifier: MIT */
/*
 * Requests about runs, providers and the store, and what all requests have in
 * common: names, keys, answers.
 */
#include "base/mem.h"
#include "tests/unit/engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "sluice: 1\nname: wave\n"

static const char plan[] = HEAD "tasks:\n"
                                "  - {id: task-a, run: x, provider: max}\n"
                                "  - {id: task-b, run: x, needs: [task-a]}\n";

static const char other_plan[] = "sluice: 1\nname: other\ntasks:\n"
                                 "  - {id: task-a, run: x}\n"
                                 "  - {id: task-c, run: x}\n";

/* Open an engine with this plan. */
static void open_plan(struct rig *rig, const char *text)
{
    rig_start(rig);
    rig_submit(rig, text);
}

static void run(struct rig *rig, const char *task)
{
    rig_begin(rig, task);
    rig_end(rig, task, 0, NULL);
}

static void assert_part(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("no \"%s\" is in: %s", part, text);
    }
}

/* --- what all have in common -------------------------------------------- */

static void a_request_needs_a_verb_and_an_object(void **state)
{
    (void)state;
    struct rig rig = {0};
    struct strbuf long_verb = {0};
    open_plan(&rig, plan);
    rig_refuse(&rig, "[]", "invalid", "is not a JSON object");
    rig_refuse(&rig, "{", "invalid", "is not a JSON object");
    rig_refuse(&rig, "{}", "invalid", "the request has no verb");
    rig_refuse(&rig, "{'verb':''}", "invalid", "the request has no verb");
    rig_refuse(&rig, "{'verb':'dance'}", "invalid", "unknown request 'dance'");
    strbuf_adds(&long_verb, "{'verb':'");
    strbuf_pad(&long_verb, 'x', 1000);
    strbuf_adds(&long_verb, "'}");
    rig_refuse(&rig, strbuf_text(&long_verb), "invalid", "unknown request 'x");
    assert_true(strlen(rig.answer) < 200); /* without all of it */
    rig_expect(&rig, "{'verb':'ping'}", "alive");
    rig_lacks(&rig.events, "'ping'");
    strbuf_release(&long_verb);
    rig_release(&rig);
}

/* Who asks again with the same key gets the same answer, and no effect. */
static void a_key_is_carried_out_once(void **state)
{
    enum { MANY = 70 };
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, plan);
    rig_expect(&rig, "{'verb':'cap','max':3,'key':'k'}", "3");
    rig_expect(&rig, "{'verb':'cap','step':1,'key':'l'}", "4");
    rig_expect(&rig, "{'verb':'cap','step':1,'key':'l'}", "4");
    rig_expect(&rig, "{'verb':'cap','max':9,'key':'k'}", "3");
    rig_expect(&rig, "{'verb':'cap','step':1}", "5");
    /* Later keys replace it: then only the store knows it. */
    for (uint32_t ix = 0; ix < MANY; ix++) {
        struct strbuf text = {0};
        strbuf_addf(&text, "{'verb':'cap','max':5,'key':'n%u'}", ix);
        rig_expect(&rig, strbuf_text(&text), "5");
        strbuf_release(&text);
    }
    rig_release(&rig);
}

/* A request that was left in the store is carried out by the next scheduler,
 * and nobody waits for its answer. */
static void a_stored_request_is_carried_out(void **state)
{
    static const struct store_change change = {
        .type = STORE_COMMAND,
        .as.command =
            {
                .who = "operator",
                .verb = "ping",
                .args = "{\"verb\":\"hold\",\"task\":\"task-b\"}",
            },
    };
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, plan);
    rig_stop(&rig);
    rig_store(&rig, &change);
    strbuf_clear(&rig.events);
    rig_start(&rig);
    rig_has(&rig.events, "task-b is held");
    rig_expect(&rig, "{'verb':'release','task':'task-b'}", "is released");
    rig_restart(&rig);
    rig_refuse(&rig,
               "{'verb':'release','task':'task-b'}",
               "conflict",
               "it is not held");
    rig_release(&rig);
}

static void a_name_is_looked_for_in_the_runs_that_are_meant(void **state)
{
    (void)state;
    struct rig rig = {0};
    rig_start(&rig);
    rig_refuse(&rig, "{'verb':'pause'}", "not-found", "no unfinished run");
    rig_submit(&rig, plan);
    rig_submit(&rig, other_plan);
    rig_refuse(&rig,
               "{'verb':'pause'}",
               "invalid",
               "several runs are unfinished (wave, other)");
    rig_refuse(&rig,
               "{'verb':'hold','task':'task-a'}",
               "invalid",
               "several runs have a task 'task-a'");
    rig_refuse(&rig,
               "{'verb':'hold','task':'task-d','run':'wave'}",
               "not-found",
               "no task 'task-d' in run wave");
    rig_refuse(&rig,
               "{'verb':'hold','task':'task-a','run':'waves'}",
               "not-found",
               "no unfinished run 'waves'");
    rig_expect(&rig, "{'verb':'hold','task':'task-b','run':'wave'}", "is held");
    rig_expect(&rig, "{'verb':'hold','task':'task-c'}", "task-c is held");
    rig_expect(&rig, "{'verb':'cancel','run':'other'}", "is cancelled");
    run(&rig, "task-a");
    rig_release(&rig);
}

static void a_finished_run_gets_no_requests(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, plan);
    rig_submit(&rig, other_plan);
    run(&rig, "task-c");
    rig_expect(&rig,
               "{'verb':'cancel','task':'task-a','run':'other'}",
               "is cancelled");
    rig_report(&rig,
               "task-a",
               &(struct work_report){
                   .type = WORK_ENDED,
                   .exit = {.cause = ATTEMPT_CANCELLED, .code = -1},
               });
    rig_refuse(&rig,
               "{'verb':'pause','run':'other'}",
               "not-found",
               "no unfinished run 'other'");
    rig_refuse(&rig,
               "{'verb':'hold','task':'task-c','run':'other'}",
               "not-found",
               "no unfinished run 'other'");
    rig_expect(&rig, "{'verb':'pause'}", "run wave is paused");
    rig_release(&rig);
}

/* --- runs --------------------------------------------------------------- */

static void a_submission_needs_all_of_its_parts(void **state)
{
    static const char *const incomplete[] = {
        "{'verb':'submit'}",
        "{'verb':'submit','file':'f'}",
        "{'verb':'submit','file':'f','folder':'/'}",
        "{'verb':'submit','file':'f','folder':'/','text':'x'}",
        "{'verb':'add'}",
        "{'verb':'add','file':'f'}",
    };
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, plan);
    for (size_t ix = 0; ix < ARRAY_COUNT(incomplete); ix++) {
        rig_refuse(&rig, incomplete[ix], "invalid", "incomplete request");
    }
    rig_release(&rig);
}

static void a_plan_is_submitted_resumed_and_finished(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, plan);
    assert_part(rig_offer(&rig, plan, ""), "run wave is resumed");
    rig_begin(&rig, "task-a");
    rig_end(&rig, "task-a", 30, NULL);
    strbuf_clear(&rig.events);
    /* Who resumes a run that waits for an operator is told so. */
    assert_part(rig_offer(&rig, plan, ""), "run wave is resumed");
    rig_has(&rig.events, "waiting");
    rig_expect(&rig, "{'verb':'skip','task':'task-a'}", "is skipped");
    assert_part(rig_offer(&rig, plan, ""), "run wave has finished");
    assert_part(rig.answer, "\"finished\":true");
    assert_part(rig_offer(&rig, plan, ",'new':true,'worker':'here'"), "wave-2");
    assert_part(rig_offer(&rig, plan, ",'new':true"), "wave-3");
    rig_release(&rig);
}

static void another_plan_of_that_name_is_refused(void **state)
{
    static const char changed[] =
        HEAD "tasks: [{id: task-a, run: y}, {id: task-b, run: x}]\n";
    static const char broken[] = HEAD "tasks: [{id: task-a}, {id: task-a}]\n";
    static const char git[] = HEAD "repos: {r: {path: r}}\n"
                                   "tasks: [{id: m, repo: r, merge: true}]\n";
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, plan);
    assert_part(rig_offer(&rig, changed, ""), "use --update to change the run");
    assert_part(rig_offer(&rig, broken, ""), "plan.yaml:3:");
    assert_part(rig_offer(&rig, git, ",'new':true"), "has no \\\"base\\\"");
    assert_part(rig_offer(&rig, plan, ",'not_before_ns':1900000000000000000"),
                "leave --at out");
    run(&rig, "task-a");
    run(&rig, "task-b");
    assert_part(rig_offer(&rig, changed, ""), "run \\\"wave\\\" has finished");
    assert_int_equal(engine_run_count(rig.engine), 1);
    rig_release(&rig);
}

static void a_run_can_begin_later(void **state)
{
    enum { HOUR = 3600 };
    (void)state;
    struct rig rig = {0};
    struct strbuf at = {0};
    strbuf_addf(&at,
                ",'not_before_ns':%lld",
                (long long)(RIG_WALL_NS + HOUR * SECOND_NS));
    rig_start(&rig);
    assert_part(rig_offer(&rig, plan, strbuf_text(&at)), "is submitted");
    assert_part(rig_offer(&rig, plan, strbuf_text(&at)), "is resumed");
    rig_wait(&rig, (HOUR - 1) * SECOND_NS);
    assert_int_equal(rig_orders(&rig, "task-a"), 0);
    rig_restart(&rig);
    rig_wait(&rig, 2 * SECOND_NS);
    assert_int_equal(rig_orders(&rig, "task-a"), 1);
    strbuf_release(&at);
    rig_release(&rig);
}

/* --- fragments ---------------------------------------------------------- */

static void a_fragment_is_added_once_per_key(void **state)
{
    static const char add[] =
        "{'verb':'add','file':'f.yaml','text':'tasks: [{id: m, run: x}]',"
        "'fragment_key':'k'}";
    (void)state;
    struct rig rig = {0};
    struct strbuf text = {0};
    open_plan(&rig, plan);
    rig_expect(&rig, add, "1 task added to run wave");
    rig_expect(&rig, add, "nothing added to run wave");
    rig_expect(&rig,
               "{'verb':'add','file':'f','text':'tasks: []'}",
               "0 tasks added");
    rig_refuse(&rig,
               "{'verb':'add','file':'f','text':'tasks: []',"
               "'fragment_key':'k'}",
               "conflict",
               "another fragment with the key 'k'");
    rig_refuse(&rig,
               "{'verb':'add','file':'f','text':'','fragment_key':''}",
               "invalid",
               "1 to 200 bytes");
    strbuf_adds(&text, "{'verb':'add','file':'f','text':'','fragment_key':'");
    strbuf_pad(&text, 'k', 201);
    strbuf_adds(&text, "'}");
    rig_refuse(&rig, strbuf_text(&text), "invalid", "1 to 200 bytes");
    rig_refuse(&rig,
               "{'verb':'add','file':'f','text':'','run':'z'}",
               "not-found",
               "no unfinished run 'z'");
    rig_refuse(&rig,
               "{'verb':'add','file':'f','text':'tasks: [{id: m, run: x}]'}",
               "invalid",
               "f:1:");
    rig_restart(&rig);
    rig_expect(&rig, add, "nothing added to run wave");
    strbuf_release(&text);
    rig_release(&rig);
}

/* Names that sluice gives to texts of its own are not believed. */
static void a_fragment_cannot_pass_as_another_text(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, plan);
    rig_expect(&rig,
               "{'verb':'add','file':'added by task-a',"
               "'text':'tasks: [{id: m, run: x}]'}",
               "1 task added");
    rig_expect(&rig,
               "{'verb':'add','file':'update: f.yaml',"
               "'text':'tasks: [{id: n, run: x}]'}",
               "1 task added");
    rig_restart(&rig);
    rig_state(&rig, "n", "ready");
    rig_state(&rig, "task-b", "waiting"); /* still in the plan */
    rig_release(&rig);
}

/* --- providers and the scheduler ---------------------------------------- */

static void a_provider_is_resumed_by_its_name(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, plan);
    rig_refuse(&rig,
               "{'verb':'resume','provider':'mox'}",
               "not-found",
               "uses a provider 'mox'");
    rig_begin(&rig, "task-a");
    rig_end(&rig,
            "task-a",
            75,
            "{'outcome':'refused','stop':true,'reason':'no money'}");
    assert_string_equal(engine_stop_reason(rig.engine, (struct provider_id){0}),
                        "no money");
    rig_restart(&rig);
    assert_string_equal(engine_stop_reason(rig.engine, (struct provider_id){0}),
                        "no money");
    rig_expect(&rig, "{'verb':'resume','provider':'max'}", "is used again");
    assert_null(engine_stop_reason(rig.engine, (struct provider_id){0}));
    rig_state(&rig, "task-a", "starting");
    rig_expect(&rig, "{'verb':'resume'}", "run wave is resumed");
    rig_release(&rig);
}

static void a_drained_scheduler_starts_nothing(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, plan);
    rig_begin(&rig, "task-a");
    rig_expect(&rig, "{'verb':'drain'}", "sessions still running: 1");
    rig_end(&rig, "task-a", 0, NULL);
    assert_true(engine_is_draining(rig.engine));
    assert_int_equal(rig_orders(&rig, "task-b"), 0);
    engine_drain(rig.engine, false);
    rig_settle(&rig);
    assert_int_equal(rig_orders(&rig, "task-b"), 1);
    rig_release(&rig);
}

static void only_runs_that_are_not_loaded_are_pruned(void **state)
{
    static const char *const wrong[] = {
        "{'verb':'prune'}",
        "{'verb':'prune','part':'all','number':1,'first':0,'last':1}",
        "{'verb':'prune','part':'run','first':0,'last':1}",
        "{'verb':'prune','part':'run','number':2147483648,'first':0,'last':1}",
        "{'verb':'prune','part':'run','number':1,'last':1}",
        "{'verb':'prune','part':'run','number':1,'first':2,'last':1}",
    };
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, plan);
    run(&rig, "task-a");
    run(&rig, "task-b");
    for (size_t ix = 0; ix < ARRAY_COUNT(wrong); ix++) {
        rig_refuse(&rig, wrong[ix], "invalid", "needs part, number, first");
    }
    rig_refuse(&rig,
               "{'verb':'prune','part':'tasks','number':1,'first':0,"
               "'last':4294967295}",
               "invalid",
               "needs part, number, first");
    rig_refuse(&rig,
               "{'verb':'prune','part':'run','number':1,'first':0,'last':0}",
               "conflict",
               "still has run 'wave' in memory");
    rig_restart(&rig);
    rig_expect(&rig,
               "{'verb':'prune','part':'events','number':1,'first':0,"
               "'last':99}",
               "events of run number 1 removed");
    rig_expect(&rig,
               "{'verb':'prune','part':'tasks','number':1,'first':0,'last':1}",
               "tasks of run number 1 removed");
    rig_expect(&rig,
               "{'verb':'prune','part':'run','number':1,'first':0,'last':0}",
               "run number 1 removed");
    assert_part(rig_offer(&rig, plan, ""), "wave-2"); /* its id is used */
    rig_restart(&rig);
    assert_part(rig_offer(&rig, plan, ",'new':true"), "wave-3");
    rig_release(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_needs_a_verb_and_an_object),
        cmocka_unit_test(a_key_is_carried_out_once),
        cmocka_unit_test(a_stored_request_is_carried_out),
        cmocka_unit_test(a_name_is_looked_for_in_the_runs_that_are_meant),
        cmocka_unit_test(a_finished_run_gets_no_requests),
        cmocka_unit_test(a_submission_needs_all_of_its_parts),
        cmocka_unit_test(a_plan_is_submitted_resumed_and_finished),
        cmocka_unit_test(another_plan_of_that_name_is_refused),
        cmocka_unit_test(a_run_can_begin_later),
        cmocka_unit_test(a_fragment_is_added_once_per_key),
        cmocka_unit_test(a_fragment_cannot_pass_as_another_text),
        cmocka_unit_test(a_provider_is_resumed_by_its_name),
        cmocka_unit_test(a_drained_scheduler_starts_nothing),
        cmocka_unit_test(only_runs_that_are_not_loaded_are_pruned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
