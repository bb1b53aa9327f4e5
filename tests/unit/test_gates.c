/* SPDX-License-Identifier: MIT */
/*
 * Reports of merges: verdicts of gates, bases that cannot be merged, and the
 * windows of queues; what is kept, forgotten and restored.
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
    "sluice: 1\nname: wave\n"
    "limits: {sessions: 99, issues: none, active: {max: none}}\n"
    "defaults: {retry: {max: 0}}\n"
    "repos:\n"
    "  r: {path: r, base: main, gate: test, sync: merge}\n"
    "  s: {url: 'https://s', base: main, gate: test, base_gate: none}\n"
    "  t: {path: t}\n"
    "tasks:\n"
    "  - {id: a, repo: r, merge: true}\n"
    "  - {id: b, repo: s, merge: true}\n"
    "  - {id: c, repo: r, merge: true}\n"
    "  - {id: d, run: x, repo: r}\n"
    "  - {id: e, run: x, repo: t}\n";

/* The end of an id of git. */
#define REST "00000000000000000000000000000000000000"
#define GATE(tree, verdict)                                                    \
    "{'tree':'" tree REST "','commit':'cc" REST "','command':'test',"          \
    "'tries':1,'verdict':'" verdict "','output':'o'}"

/* Open an engine with the plan, and let the base of r pass its gate. */
static void open_plan(struct rig *rig)
{
    rig_start(rig);
    rig_submit(rig, plan);
    rig_begin(rig, "r/+base");
    rig_end(rig, "r/+base", 0, "{'gates':[" GATE("ba", "passed") "]}");
}

/* A merge ends, with these members of its result. */
static void
merge(struct rig *rig, const char *task, int code, const char *members)
{
    struct strbuf result = {0};
    strbuf_addf(&result, "{%s}", members);
    rig_begin(rig, task);
    rig_end(rig, task, code, strbuf_text(&result));
    strbuf_release(&result);
}

static void again(struct rig *rig, const char *verb, const char *task)
{
    struct strbuf request = {0};
    strbuf_addf(&request, "{'verb':'%s','task':'%s'}", verb, task);
    rig_expect(rig, strbuf_text(&request), task);
    strbuf_release(&request);
}

/* --- verdicts ----------------------------------------------------------- */

static void verdicts_are_given_to_later_merges_until_forgotten(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig);
    rig_ordered(&rig, "a", "'tree':'ba"); /* it waited for it */
    merge(&rig, "b", 1, "'gates':[" GATE("51", "failed") "]");
    merge(&rig, "a", 1, "'gates':[" GATE("a1", "failed") "]");
    rig_state(&rig, "a", "parked");
    merge(&rig, "c", 1, "'gates':[" GATE("a2", "failed") "]");
    again(&rig, "retry", "a");
    rig_lacks(&rig_order(&rig, "a")->text, "'tree':'a1");
    rig_ordered(&rig, "a", "'tree':'ba");
    merge(&rig, "a", 1, "'gates':[" GATE("a3", "failed") "]");
    again(&rig, "retry", "c"); /* forgets r3, too */
    rig_lacks(&rig_order(&rig, "c")->text, "'tree':'a3");
    merge(&rig, "c", 1, "'gates':[" GATE("a4", "failed") "]");
    rig_restart(&rig);
    again(&rig, "retry", "b"); /* another repository */
    rig_lacks(&rig_order(&rig, "b")->text, "'tree':'51");
    merge(&rig, "b", 0, "'gates':[" GATE("52", "passed") "]");
    rig_expect(&rig, "{'verb':'retry'}", "will retry its failed");
    rig_lacks(&rig_order(&rig, "a")->text, "'tree':'a4");
    rig_ordered(&rig, "a", "'tree':'ba");
    rig_lacks(&rig_order(&rig, "a")->text, "'tree':'52");
    rig_release(&rig);
}

/* After a restart, only failures that were not forgotten count. */
static void a_forgotten_failure_stays_forgotten(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig);
    merge(&rig, "a", 1, "'gates':[" GATE("01", "failed") "]");
    again(&rig, "retry", "a");
    merge(&rig, "a", 1, "'gates':[" GATE("02", "failed") "]");
    rig_restart(&rig);
    rig_expect(&rig, "{'verb':'cap','max':99}", "99");
    rig_report(&rig, "c", &(struct work_report){.type = WORK_UNKNOWN});
    rig_ordered(&rig, "c", "'tree':'02");
    rig_lacks(&rig_order(&rig, "c")->text, "'tree':'01");
    rig_release(&rig);
}

static bool rename_verdict(enum store_kind kind, union store_row *row)
{
    if (kind == STORE_KIND_GATE) {
        row->gate.verdict = "perhaps";
    }
    return true;
}

static void a_verdict_of_another_version_is_ignored(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig);
    rig_stop(&rig);
    rig.filter = rename_verdict;
    rig_start(&rig);
    rig_report(&rig, "c", &(struct work_report){.type = WORK_UNKNOWN});
    rig_lacks(&rig_order(&rig, "c")->text, "'tree':'ba");
    rig_release(&rig);
}

/* Only sluice-git knows verdicts and bases: a session could claim anything. */
static void other_sessions_have_no_verdicts(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig);
    merge(
        &rig,
        "d",
        0,
        "'gates':[" GATE(
            "0e",
            "passed") "],"
                      "'base':{'verdict':'failed','commit':'c1','reason':'x'}");
    rig_report(&rig, "c", &(struct work_report){.type = WORK_UNKNOWN});
    rig_lacks(&rig_order(&rig, "c")->text, "'tree':'0e");
    rig_lacks(&rig.events, "'base'");
    struct engine_bad_base base;
    assert_false(engine_bad_base(rig.engine, 0, 0, &base));
    assert_false(engine_bad_base(rig.engine, 0, PLAN_NONE, &base));
    rig_release(&rig);
}

/* Append the gates of a result: trees with these numbers. */
static void
add_gates(struct strbuf *out, uint32_t from, uint32_t count, uint32_t bytes)
{
    strbuf_adds(out, "'gates':[");
    for (uint32_t ix = 0; ix < count; ix++) {
        strbuf_addf(
            out,
            "%s{'tree':'%040u','commit':'cc" REST
            "','command':'test','tries':1,'verdict':'passed','output':'",
            ix > 0 ? "," : "",
            from + ix);
        strbuf_pad(out, 'x', bytes);
        strbuf_adds(out, "'}");
    }
    strbuf_adds(out, "]");
}

static bool unbase(enum store_kind kind, union store_row *row)
{
    static const char text[] = "sluice: 1\nname: wave\nlimits: {sessions: 9}\n"
                               "repos: {t: {path: t}}\n"
                               "tasks:\n"
                               "  - {id: m, repo: t, merge: true}\n"
                               "  - {id: d, run: x}\n";
    if (kind == STORE_KIND_FRAGMENT) {
        row->fragment.text = text;
        row->fragment.text_bytes = strlen(text);
    }
    return true;
}

/* No worker could run it. It cannot be added, and if an earlier version has let
 * it in, an operator is told. */
static void a_merge_without_git_is_refused(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig);
    rig_refuse(&rig,
               "{'verb':'add','file':'f',"
               "'text':'tasks: [{id: m, repo: t, merge: true}]'}",
               "invalid",
               "f:1:14: task 'm' merges, but its repo 't' has no 'base'");
    rig_begin(&rig, "d");
    rig_deny(&rig,
             "d",
             "'verb':'add','text':'tasks: [{id: m, repo: t, merge: true}]'",
             "invalid",
             "task 'm' merges, but its repo 't' has no 'base'");
    rig_release(&rig);
    rig_start(&rig);
    rig_submit(&rig,
               "sluice: 1\nname: wave\nlimits: {sessions: 9}\n"
               "repos: {t: {path: t, base: main}}\n"
               "tasks:\n"
               "  - {id: m, repo: t, merge: true}\n"
               "  - {id: d, run: x}\n");
    rig_begin(&rig, "m");
    rig_stop(&rig);
    rig.filter = unbase;
    rig_start(&rig);
    rig_end(&rig, "m", 1, "{'gates':[" GATE("0f", "failed") "]}");
    rig_expect(&rig, "{'verb':'retry'}", "will retry its failed");
    rig_wait(&rig, MINUTE_NS);
    rig_state(&rig, "m", "parked");
    rig_reason(&rig, "m", "it merges, but its repo has no \"base\"");
    rig_state(&rig, "d", "starting");
    rig_release(&rig);
}

static void the_last_verdicts_count_up_to_a_number_and_size(void **state)
{
    enum { ROUNDS = 65, GATES = 16, LONG = 3000 };
    (void)state;
    struct rig rig = {0};
    struct strbuf result = {0};
    open_plan(&rig);
    merge(&rig, "c", 0, "");
    for (uint32_t round = 0; round < ROUNDS; round++) {
        strbuf_clear(&result);
        add_gates(&result, 1000 + round * GATES, GATES, 0);
        merge(&rig, "a", 1, strbuf_text(&result));
        again(&rig, "retry", "a");
    }
    /* 200 verdicts, and no more, come with the order. */
    rig_ordered(&rig, "a", "02039'");
    rig_ordered(&rig, "a", "01840'");
    rig_lacks(&rig_order(&rig, "a")->text, "01839'");
    /* Nor more than 256 KiB. */
    strbuf_clear(&result);
    add_gates(&result, 5000, 100, LONG);
    merge(&rig, "a", 1, strbuf_text(&result));
    again(&rig, "retry", "a");
    rig_ordered(&rig, "a", "05099'");
    rig_ordered(&rig, "a", "05020'");
    rig_lacks(&rig_order(&rig, "a")->text, "05010'");
    strbuf_release(&result);
    rig_release(&rig);
}

/* --- bases -------------------------------------------------------------- */

#define BASE(verdict, commit)                                                  \
    "'base':{'verdict':'" verdict "','commit':'" commit "','reason':'why'}"

static uint32_t count_events(const struct rig *rig, const char *part)
{
    uint32_t count = 0;
    const char *at = strbuf_text(&rig->events);
    while ((at = strstr(at, part)) != NULL) {
        count++;
        at++;
    }
    return count;
}

static void a_bad_base_is_told_once_until_it_is_merged(void **state)
{
    (void)state;
    struct rig rig = {0};
    struct engine_bad_base base;
    open_plan(&rig);
    merge(&rig, "b", 1, BASE("failed", "s1"));
    merge(&rig, "a", 1, BASE("failed", "r1"));
    merge(&rig, "c", 1, BASE("failed", "r1")); /* known */
    assert_int_equal(count_events(&rig, "\nbase {"), 2);
    rig_restart(&rig);
    assert_true(engine_bad_base(rig.engine, 0, 0, &base));
    assert_string_equal(base.commit, "r1");
    assert_true(engine_bad_base(rig.engine, 0, 1, &base));
    assert_string_equal(base.commit, "s1");
    assert_string_equal(base.reason, "why");
    again(&rig, "retry", "a");
    merge(&rig, "a", 1, BASE("failed", "r2")); /* a newer commit */
    assert_int_equal(count_events(&rig, "\nbase {"), 3);
    again(&rig, "retry", "b");
    merge(&rig, "b", 1, BASE("passed", "s2"));
    assert_false(engine_bad_base(rig.engine, 0, 1, &base));
    rig_restart(&rig);
    assert_false(engine_bad_base(rig.engine, 0, 1, &base));
    assert_true(engine_bad_base(rig.engine, 0, 0, &base));
    assert_string_equal(base.commit, "r2");
    again(&rig, "retry", "a");
    merge(&rig, "a", 0, BASE("passed", "r3"));
    assert_false(engine_bad_base(rig.engine, 0, 0, &base));
    assert_int_equal(count_events(&rig, "\nbase {"), 5);
    rig_release(&rig);
}

/* --- queues ------------------------------------------------------------- */

static void a_window_halves_with_each_failure_of_its_queue(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig);
    const struct plan *read = engine_plan(rig.engine, 0);
    uint32_t r = plan_find_limit(read, "merge queue of r");
    uint32_t s = plan_find_limit(read, "merge queue of s");
    struct limit_id of_r = load_limit(engine_loaded(rig.engine, 0), r);
    assert_int_equal(sched_limit_max(engine_sched(rig.engine), of_r), 8);
    merge(&rig, "b", 20, "'reason':'x'");
    merge(&rig, "a", 20, "'reason':'x'");
    assert_int_equal(sched_limit_max(engine_sched(rig.engine), of_r), 4);
    merge(&rig, "c", 20, "'reason':'x'");
    assert_int_equal(sched_limit_max(engine_sched(rig.engine), of_r), 2);
    rig_restart(&rig);
    of_r = load_limit(engine_loaded(rig.engine, 0), r);
    struct limit_id of_s = load_limit(engine_loaded(rig.engine, 0), s);
    assert_int_equal(sched_limit_max(engine_sched(rig.engine), of_r), 2);
    assert_int_equal(sched_limit_max(engine_sched(rig.engine), of_s), 4);
    again(&rig, "retry", "a");
    merge(&rig, "a", 0, "");
    assert_int_equal(sched_limit_max(engine_sched(rig.engine), of_r), 3);
    rig_release(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_are_given_to_later_merges_until_forgotten),
        cmocka_unit_test(a_forgotten_failure_stays_forgotten),
        cmocka_unit_test(a_verdict_of_another_version_is_ignored),
        cmocka_unit_test(other_sessions_have_no_verdicts),
        cmocka_unit_test(a_merge_without_git_is_refused),
        cmocka_unit_test(the_last_verdicts_count_up_to_a_number_and_size),
        cmocka_unit_test(a_bad_base_is_told_once_until_it_is_merged),
        cmocka_unit_test(a_window_halves_with_each_failure_of_its_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
