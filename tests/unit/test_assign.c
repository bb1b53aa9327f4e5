/* SPDX-License-Identifier: MIT */
/*
 * What orders contain: of agents, their outputs and budgets, sandboxes, merges
 * and their queues, and sessions that come last.
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
    "sluice: 1\nname: wave\nlimits: {sessions: 99, issues: none}\n"            \
    "defaults: {retry: {max: 0}}\n"

static void open_plan(struct rig *rig, const char *plan)
{
    rig_start(rig);
    rig_submit(rig, plan);
}

static void run(struct rig *rig, const char *task, const char *result)
{
    rig_begin(rig, task);
    rig_end(rig, task, 0, result);
}

static void lacks(const struct rig *rig, const char *task, const char *part)
{
    rig_lacks(&rig_order(rig, task)->text, part);
}

/* --- agents ------------------------------------------------------------- */

static const char agent_plan[] =
    HEAD "agents:\n"
         "  claude: {model: m, permissions: [Read], args: [-v], env: {K: v}}\n"
         "  codex: {price: {input: 1, cached: 0.5, output: 2}}\n"
         "  gemini: {price: {input: 1, output: 2}}\n"
         "repos: {r: {path: r, base: main}}\n"
         "groups: [{id: g, repo: r}]\n"
         "tasks:\n"
         "  - {id: a, group: g, agent: claude, budget: {usd: 3}}\n"
         "  - {id: b, agent: codex, title: t, body: own, allow_empty: true}\n"
         "  - {id: c, agent: gemini, body_file: b.md, timeout: 1h}\n"
         "  - {id: d, run: x, body_file: /b.md}\n"
         "  - {id: e, group: g, run: x, body: text, class: gate}\n";

static void a_brief_has_the_agent_and_its_price(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, agent_plan);
    rig_ordered(&rig, "a", "'model': 'm'");
    rig_ordered(&rig, "a", "'tools'");
    rig_ordered(&rig, "a", "'Read'");
    rig_ordered(&rig, "a", "'-v'");
    rig_ordered(&rig, "a", "'K=v'");
    rig_ordered(&rig, "a", "'usd_left': 3.0");
    rig_ordered(&rig, "a", "'price': null");
    rig_ordered(&rig, "a", "'writes': true");
    rig_ordered(&rig, "a", "git: r, writes, round 0");
    rig_ordered(&rig, "a", "message: g");
    rig_ordered(&rig, "b", "'cached': 0.5");
    rig_ordered(&rig, "b", "'body': 'own'");
    rig_ordered(&rig, "b", "'writes': false");
    rig_ordered(&rig, "b", "'usd_left': null");
    rig_ordered(&rig, "c", "'cached': 1.0");
    rig_ordered(&rig, "c", "'body_file': '/w/b.md'");
    rig_ordered(&rig, "d", "SLUICE_BODY=/b.md");
    rig_ordered(&rig, "e", "[body] text");
    lacks(&rig, "c", "SLUICE_DEADLINE=\n");
    rig_release(&rig);
}

/* The answer to a question is told once, and other feedback beside it. */
static void a_brief_tells_an_answer_once(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, agent_plan);
    rig_begin(&rig, "b");
    rig_end(&rig, "b", 30, "{'reason':'which?','resume':'conversation'}");
    rig_expect(&rig, "{'verb':'answer','task':'b','text':'this'}", "answered");
    rig_ordered(&rig, "b", "'answer': 'this'");
    rig_ordered(&rig, "b", "'question': 'which?'");
    rig_ordered(&rig, "b", "'feedback': null");
    rig_ordered(&rig, "b", "SLUICE_RESUME=conversation");
    rig_begin(&rig, "b");
    rig_end(&rig, "b", 30, NULL);
    rig_expect(&rig, "{'verb':'cap','max':0}", "0");
    rig_expect(&rig, "{'verb':'answer','task':'b','text':'so'}", "answered");
    rig_expect(&rig, "{'verb':'rework','task':'b','text':'more'}", "b gets");
    rig_expect(&rig, "{'verb':'cap','max':9}", "9");
    rig_ordered(&rig, "b", "'answer': 'so'");
    rig_ordered(&rig, "b", "'feedback': 'so\\nmore'");
    /* An answer whose feedback was dropped since. */
    rig_begin(&rig, "b");
    rig_end(&rig, "b", 0, NULL);
    rig_expect(&rig, "{'verb':'rerun','task':'b'}", "b runs again");
    rig_ordered(&rig, "b", "'feedback': null");
    rig_release(&rig);
}

static bool break_folder(enum store_kind kind, union store_row *row)
{
    if (kind == STORE_KIND_RUN) {
        row->run.folder = "/w\xff";
    }
    return true;
}

/* Of a damaged row; the other tasks go on. */
static void a_brief_that_is_no_text_parks_its_task(void **state)
{
    (void)state;
    for (uint32_t offers = 0; offers < 2; offers++) {
        struct rig rig = {.offers = offers > 0};
        open_plan(&rig,
                  HEAD
                  "tasks:\n"
                  "  - {id: z, run: x}\n"
                  "  - {id: a, agent: claude, prompt_file: f, needs: [z]}\n"
                  "  - {id: b, run: x, needs: [z]}\n");
        rig_stop(&rig);
        rig.filter = break_folder;
        rig_start(&rig);
        run(&rig, "z", NULL);
        rig_state(&rig, "a", "parked");
        rig_reason(&rig, "a", "its strings are not valid UTF-8");
        rig_state(&rig, "b", "starting");
        assert_int_equal(rig_order(&rig, "b")->offered, offers > 0);
        assert_int_equal(rig_orders(&rig, "a"), 0);
        rig_release(&rig);
    }
}

/* --- sandboxes ---------------------------------------------------------- */

static void paths_of_a_sandbox_are_absolute(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig,
              HEAD "tasks:\n"
                   "  - {id: a, run: x, sandbox: {write: [cache, ~/c, /d],"
                   " read: [r]}, add: {max: 3}}\n"
                   "  - {id: b, run: x, sandbox: false}\n");
    rig_ordered(&rig, "a", "write: /w/cache ~/c /d\n");
    rig_ordered(&rig, "a", "read: /w/r\n");
    lacks(&rig, "b", "write:");
    /* Tasks that it adds are confined as it is, whatever they say. */
    rig_begin(&rig, "a");
    rig_say(&rig,
            "a",
            "'verb':'add','text':'tasks: [{id: m, run: x, sandbox: false}]'",
            "1 task");
    rig_ordered(&rig, "m", "write: /w/cache ~/c /d\n");
    rig_begin(&rig, "b");
    rig_say(&rig,
            "b",
            "'verb':'add','text':'tasks: [{id: n, run: x, sandbox: true}]'",
            "1 task");
    rig_ordered(&rig, "n", "write:\n");
    rig_release(&rig);
}

/* --- outputs ------------------------------------------------------------ */

static void outputs_are_variables_as_long_as_they_fit(void **state)
{
    enum { NEEDS = 5, OUTPUTS = 8, LONG = 4000 };
    (void)state;
    struct rig rig = {0};
    struct strbuf plan = {0};
    struct strbuf result = {0};
    strbuf_adds(&plan, HEAD "tasks:\n  - {id: z, run: x, needs: [");
    for (uint32_t ix = 0; ix < NEEDS; ix++) {
        strbuf_addf(&plan, "t%u, ", ix);
    }
    strbuf_adds(&plan, "same.0, same-0]}\n");
    for (uint32_t ix = 0; ix < NEEDS; ix++) {
        strbuf_addf(&plan, "  - {id: t%u, run: x}\n", ix);
    }
    strbuf_adds(&plan, "  - {id: same.0, run: x}\n  - {id: same-0, run: x}\n");
    open_plan(&rig, strbuf_text(&plan));
    run(&rig, "same.0", "{'outputs':{'x':'first'}}");
    run(&rig, "same-0", "{'outputs':{'x':'second'}}");
    for (uint32_t ix = 0; ix < NEEDS; ix++) {
        char task[16];
        (void)snprintf(task, sizeof(task), "t%u", ix);
        strbuf_clear(&result);
        strbuf_adds(&result, "{'outputs':{");
        for (uint32_t n = 0; n < OUTPUTS; n++) {
            strbuf_addf(&result, "%s'o%u':'", n > 0 ? "," : "", n);
            strbuf_pad(&result, (char)('a' + ix), LONG);
            strbuf_adds(&result, "'");
        }
        strbuf_adds(&result, "}}");
        run(&rig, task, strbuf_text(&result));
    }
    rig_ordered(&rig, "z", "SLUICE_OUT_T0_O0=aaa");
    rig_ordered(&rig, "z", "SLUICE_OUT_T3_O7=ddd");
    lacks(&rig, "z", "SLUICE_OUT_T4_O7=");
    rig_ordered(&rig, "z", "'o7': 'eeee"); /* in the file */
    /* Of two with one name, the first counts. */
    lacks(&rig, "z", "SLUICE_OUT_SAME_0_X=second");
    strbuf_release(&plan);
    strbuf_release(&result);
    rig_release(&rig);
}

/* --- sessions that come last -------------------------------------------- */

static void a_last_session_gets_the_outcome_of_its_scope(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig,
              HEAD "finally: [{id: z, run: x}]\n"
                   "tasks:\n"
                   "  - {id: a, run: x, on_failure: skip}\n"
                   "  - {id: b, run: x, on_failure: skip}\n"
                   "  - {id: c, run: x, needs: [a]}\n");
    rig_begin(&rig, "a");
    rig_end(&rig, "a", 1, NULL);
    rig_begin(&rig, "b");
    rig_end(&rig, "b", 1, NULL);
    rig_ordered(&rig, "z", "SLUICE_OUTCOME=failed");
    rig_ordered(&rig, "z", "SLUICE_FAILED=a\nb\n");
    rig_release(&rig);
}

/* More names of failed tasks than an environment takes are left out. */
static void too_many_failed_tasks_are_left_out(void **state)
{
    enum { MANY = 400 };
    (void)state;
    struct rig rig = {0};
    struct strbuf plan = {0};
    strbuf_adds(&plan, HEAD "finally: [{id: z, run: x}]\ntasks:\n");
    for (uint32_t ix = 0; ix < MANY; ix++) {
        strbuf_addf(&plan, "  - {id: t%u-", ix);
        strbuf_pad(&plan, 'x', 190);
        strbuf_adds(&plan, ", run: x, on_failure: skip}\n");
    }
    open_plan(&rig, strbuf_text(&plan));
    rig_expect(&rig, "{'verb':'cap','max':1000}", "1000");
    for (uint32_t ix = 0; ix < MANY; ix++) {
        rig_begin(&rig, rig.orders[ix].task);
        rig_end(&rig, rig.orders[ix].task, 1, NULL);
    }
    const char *failed =
        strstr(strbuf_text(&rig_order(&rig, "z")->text), "SLUICE_FAILED=");
    assert_non_null(failed);
    assert_in_range(strcspn(failed, "["), 60 << 10, 66 << 10);
    strbuf_release(&plan);
    rig_release(&rig);
}

/* --- merges ------------------------------------------------------------- */

static const char merge_plan[] =
    "sluice: 1\nname: wave\n"
    "limits: {sessions: 99, issues: none, active: {max: none}}\n"
    "repos:\n"
    "  r: {path: r, base: main, gate: test, base_gate: none}\n"
    "  s: {path: s, base: main, gate: test, base_gate: none}\n"
    "agents: {claude: {provider: max}}\n"
    "pipelines:\n"
    "  p: [{stage: implement, agent: claude}, {stage: merge, merge: true}]\n"
    "  q: [{stage: implement, run: x}, {stage: merge, merge: true}]\n"
    "groups:\n"
    "  - {id: g, repo: r, pipeline: p}\n"
    "  - {id: h, repo: r, pipeline: q}\n"
    "  - {id: i, repo: s, pipeline: q}\n"
    "tasks:\n"
    "  - {id: m, repo: s, merge: true}\n";

static void a_merge_knows_who_worked_and_who_is_before_it(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, merge_plan);
    assert_non_null(strstr(rig_offer(&rig, merge_plan, ",'new':true"), "wave"));
    rig_begin(&rig, "m");
    rig_ordered(&rig, "m", "member: m of m by nobody");
    run(&rig, "h/implement", NULL);
    rig_ordered(&rig, "h/merge", "member: h/merge of h by nobody");
    run(&rig, "g/implement", NULL);
    rig_ordered(&rig, "g/merge", "by claude, provider max");
    run(&rig, "i/implement", NULL);
    rig_ordered(&rig, "i/merge", "git: s, merge");
    rig_release(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_brief_has_the_agent_and_its_price),
        cmocka_unit_test(a_brief_tells_an_answer_once),
        cmocka_unit_test(a_brief_that_is_no_text_parks_its_task),
        cmocka_unit_test(paths_of_a_sandbox_are_absolute),
        cmocka_unit_test(outputs_are_variables_as_long_as_they_fit),
        cmocka_unit_test(a_last_session_gets_the_outcome_of_its_scope),
        cmocka_unit_test(too_many_failed_tasks_are_left_out),
        cmocka_unit_test(a_merge_knows_who_worked_and_who_is_before_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
