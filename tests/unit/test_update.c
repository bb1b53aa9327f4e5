/* SPDX-License-Identifier: MIT */
/*
 * Updates of a plan under way: what would change work that is done or in flight
 * is refused as a whole, with the tasks and reasons.
 */
#include "base/mem.h"
#include "tests/unit/engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "sluice: 1\nname: wave\nlimits: {sessions: 99, issues: none}\n"

/* Start with a new version; return the error, and what has changed. */
static enum err update(struct rig *rig,
                       const char *text,
                       struct diag *diag,
                       struct strbuf *diff)
{
    struct engine_update update = {
        .file = "plan.yaml",
        .folder = "/w",
        .text = text,
        .processors = 2,
    };
    rig_stop(rig);
    enum err err = rig_try_start(rig, &update, diag);
    strbuf_clear(diff);
    strbuf_adds(diff, strbuf_text(&update.diff));
    strbuf_release(&update.diff);
    return err;
}

/* Require that a version is refused, and that the old one goes on. */
static void
refuse(struct rig *rig, const char *text, enum err wanted, const char *part)
{
    struct diag diag = {0};
    struct strbuf diff = {0};
    enum err err = update(rig, text, &diag, &diff);
    if (err != wanted || strstr(diag.text, part) == NULL) {
        fail_msg("not \"%s\", but %s: %s", part, err_name(err), diag.text);
    }
    strbuf_release(&diff);
    rig_start(rig);
}

/* Require that a version is accepted, with this part of the differences. */
static void accept(struct rig *rig, const char *text, const char *part)
{
    struct diag diag = {0};
    struct strbuf diff = {0};
    if (update(rig, text, &diag, &diff) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
    rig_has(&diff, part);
    strbuf_release(&diff);
}

/* Open an engine with this plan, in which `a` is done. */
static void begin(struct rig *rig, const char *text)
{
    rig_start(rig);
    rig_submit(rig, text);
    rig_begin(rig, "a");
    rig_end(rig, "a", 0, NULL);
}

static const char plan[] =
    HEAD "repos: {r: {path: r, base: main}, s: {path: s, base: main}}\n"
         "groups: [{id: g, repo: r}]\n"
         "tasks:\n"
         "  - {id: a, group: g, run: x, allow_empty: true}\n"
         "  - {id: b, run: x, needs: [a]}\n"
         "  - {id: c, run: x, needs: [b]}\n";

static void a_version_of_no_run_is_refused(void **state)
{
    (void)state;
    struct rig rig = {0};
    struct diag diag = {0};
    begin(&rig, plan);
    refuse(&rig, "sluice: 1\nname: wave\n", ERR_INVALID, "plan.yaml:");
    refuse(&rig,
           "sluice: 1\nname: wove\ntasks: [{id: a, run: x}]\n",
           ERR_NOT_FOUND,
           "no unfinished run \"wove\" to update");
    struct engine_update elsewhere = {
        .file = "plan.yaml",
        .folder = "/v",
        .text = plan,
        .processors = 2,
    };
    rig_stop(&rig);
    assert_int_equal(rig_try_start(&rig, &elsewhere, &diag), ERR_CONFLICT);
    assert_non_null(strstr(diag.text, "belongs to a plan in /w"));
    strbuf_release(&elsewhere.diff);
    rig_start(&rig);
    rig_state(&rig, "b", "starting");
    rig_release(&rig);
}

static void a_version_that_cannot_run_is_refused(void **state)
{
    static const char bad[] =
        HEAD "repos: {r: {path: r, base: main}, s: {path: s, base: main},"
             " t: {path: t}}\n"
             "groups: [{id: g, repo: r}]\n"
             "tasks:\n"
             "  - {id: a, group: g, run: x, allow_empty: true}\n"
             "  - {id: m, repo: t, merge: true}\n";
    (void)state;
    struct rig rig = {0};
    begin(&rig, plan);
    refuse(&rig,
           bad,
           ERR_INVALID,
           "plan.yaml:8:10: task \"m\" merges, but its repo \"t\" has no");
    rig_release(&rig);
}

static void the_same_version_changes_nothing(void **state)
{
    (void)state;
    struct rig rig = {0};
    begin(&rig, plan);
    strbuf_clear(&rig.events);
    accept(&rig, plan, "");
    rig_lacks(&rig.events, "updated");
    rig_state(&rig, "b", "starting");
    rig_expect(&rig, "{'verb':'cancel','task':'c'}", "is cancelled");
    accept(&rig, plan, "");
    rig_state(&rig, "c", "cancelled");
    rig_release(&rig);
}

/* A fragment that was added names a task that the version does not have. */
static void a_version_must_fit_what_was_added(void **state)
{
    static const char shorter[] =
        HEAD "repos: {r: {path: r, base: main}, s: {path: s, base: main}}\n"
             "groups: [{id: g, repo: r}]\n"
             "tasks:\n"
             "  - {id: a, group: g, run: x, allow_empty: true}\n"
             "  - {id: m, run: x, needs: [a]}\n";
    (void)state;
    struct rig rig = {0};
    begin(&rig, plan);
    rig_expect(&rig,
               "{'verb':'add','file':'f','text':'tasks: [{id: m, run: x}]'}",
               "1 task");
    refuse(&rig, shorter, ERR_INVALID, "\"m\"");
    rig_release(&rig);
}

static void work_that_is_done_keeps_its_place(void **state)
{
#define TASKS(first)                                                           \
    "tasks:\n" first "  - {id: b, run: x, needs: [a]}\n"                       \
    "  - {id: c, run: x, needs: [b]}\n"
#define REPOS(path, base)                                                      \
    "repos: {r: {path: " path ", base: " base "}, s: {path: s, base: main}}\n"
#define A "  - {id: a, group: g, run: x, allow_empty: true}\n"
    static const struct {
        const char *text;
        const char *part;
    } versions[] = {
        {HEAD REPOS("r", "main") "groups: [{id: g, repo: s}]\n" TASKS(A),
         "a is done: its class, group, repo, provider"},
        {HEAD REPOS("q", "main") "groups: [{id: g, repo: r}]\n" TASKS(A),
         "a is done: path, url and base of its repo cannot change"},
        {HEAD REPOS("r", "dev") "groups: [{id: g, repo: r}]\n" TASKS(A),
         "a is done: path, url and base of its repo cannot change"},
        {HEAD REPOS("s", "main") "groups: [{id: g, repo: r}]\n" TASKS(A),
         "a is done: path, url and base of its repo cannot change"},
        {HEAD "repos: {r: {url: 'https://r', base: main},"
              " s: {path: s, base: main}}\n"
              "groups: [{id: g, repo: r}]\n" TASKS(A),
         "a is done: path, url and base of its repo cannot change"},
        {HEAD "repos: {r: {path: r, base: main}, s: {path: r, base: main}}\n"
              "groups: [{id: g, repo: r}]\n" TASKS(A),
         "a is done: another repo with the path of its repo"},
        {HEAD REPOS("r", "main") "groups: [{id: g, repo: r}]\n" TASKS(
             "  - {id: a, group: g, run: y, allow_empty: true}\n"),
         "a is done: its command cannot change"},
        {HEAD REPOS("r", "main") "groups: [{id: g, repo: r}]\n" TASKS(
             "  - {id: a, group: g, run: x, title: t, allow_empty: true}\n"),
         "a is done: its title and body cannot change"},
        {HEAD REPOS("r", "main") "groups: [{id: g, repo: r}]\n" TASKS(
             "  - {id: z, run: x}\n"
             "  - {id: a, group: g, run: x, needs: [z], allow_empty: true}\n"),
         "a is done: its needs cannot change"},
        {HEAD REPOS("r", "main") "tasks:\n"
                                 "  - {id: b, run: x}\n"
                                 "  - {id: c, run: x, needs: [b]}\n",
         "a is done: cannot be removed"},
    };
    (void)state;
    struct rig rig = {0};
    begin(&rig, plan);
    for (size_t ix = 0; ix < ARRAY_COUNT(versions); ix++) {
        refuse(&rig, versions[ix].text, ERR_CONFLICT, versions[ix].part);
    }
    accept(&rig,
           HEAD REPOS("r", "main") "groups: [{id: g, repo: r}]\n" TASKS(
               A "  - {id: d, run: x}\n"),
           "task d");
    rig_state(&rig, "d", "starting");
    rig_release(&rig);
}

/* The stages of groups share commands, which may change for the others. */
static void stages_that_are_done_stay_as_they_were(void **state)
{
    static const char stages[] = HEAD
        "repos: {r: {path: r}, s: {path: s}}\n"
        "pipelines: {p: [{stage: implement, run: x}, {stage: gate, run: y}]}\n"
        "groups: [{id: g, repo: r, pipeline: p}, {id: h, pipeline: p}]\n"
        "tasks: [{id: a, run: x}]\n";
    static const char later[] =
        HEAD "repos: {r: {path: r}, s: {path: s}}\n"
             "classes: {other: {}}\n"
             "pipelines: {p: [{stage: implement, class: other, run: z},"
             " {stage: gate, run: y}]}\n"
             "groups: [{id: g, repo: r, pipeline: p}, {id: h, pipeline: p}]\n"
             "tasks: [{id: a, run: x}]\n";
    static const char moved[] = HEAD
        "repos: {r: {path: r}, s: {path: s}}\n"
        "pipelines: {p: [{stage: implement, run: x}, {stage: gate, run: y}]}\n"
        "groups: [{id: g, repo: s, pipeline: p}, {id: h, pipeline: p}]\n"
        "tasks: [{id: a, run: x}]\n";
    static const char unplaced[] = HEAD
        "repos: {r: {path: r}, s: {path: s}}\n"
        "pipelines: {p: [{stage: implement, run: x}, {stage: gate, run: y}]}\n"
        "groups: [{id: g, pipeline: p}, {id: h, repo: r, pipeline: p}]\n"
        "tasks: [{id: a, run: x}]\n";
    (void)state;
    struct rig rig = {0};
    begin(&rig, stages);
    rig_begin(&rig, "g/implement");
    refuse(&rig, later, ERR_CONFLICT, "g/implement is starting: its class");
    rig_end(&rig, "g/implement", 0, NULL);
    rig_begin(&rig, "h/implement");
    rig_end(&rig, "h/implement", 0, NULL);
    refuse(&rig, moved, ERR_CONFLICT, "g/implement is done: its class");
    refuse(&rig, unplaced, ERR_CONFLICT, "h/implement is done: its class");
    accept(&rig, later, "kept: task g/implement, which is done");
    rig_release(&rig);
}

static void as_many_refusals_as_fit_are_listed(void **state)
{
    enum { MANY = 13 };
    (void)state;
    struct rig rig = {0};
    struct strbuf text = {0};
    struct diag diag = {0};
    struct strbuf diff = {0};
    strbuf_adds(&text, HEAD "tasks:\n");
    for (uint32_t ix = 0; ix < MANY; ix++) {
        strbuf_addf(&text, "  - {id: t%u, run: x}\n", ix);
    }
    rig_start(&rig);
    rig_submit(&rig, strbuf_text(&text));
    assert_int_equal(
        update(&rig, HEAD "tasks: [{id: other, run: x}]\n", &diag, &diff),
        ERR_CONFLICT);
    assert_non_null(strstr(diag.text, "t9 is starting: cannot be removed"));
    assert_null(strstr(diag.text, "t10"));
    assert_non_null(strstr(diag.text, "\n  ..."));
    strbuf_release(&text);
    strbuf_release(&diff);
    rig_release(&rig);
}

/* --- what changes ------------------------------------------------------- */

/* A limit that an operator has set must stay in the plan. */
static void an_operators_limit_stays_in_the_plan(void **state)
{
    static const char limited[] =
        "sluice: 1\nname: wave\nlimits: {sessions: 9, big: {max: 3}}\n"
        "tasks: [{id: a, run: x}, {id: b, run: x}]\n";
    (void)state;
    struct rig rig = {0};
    begin(&rig, limited);
    rig_expect(&rig, "{'verb':'limit','limit':'big','max':'1'}", "1");
    refuse(&rig,
           HEAD "tasks: [{id: a, run: x}, {id: b, run: x}]\n",
           ERR_CONFLICT,
           "limit \"big\" of run \"wave\" was set by an operator");
    rig_release(&rig);
}

static void a_cancelled_run_is_not_updated(void **state)
{
    static const char finals[] =
        HEAD "tasks: [{id: a, run: x}, {id: b, run: x}]\n"
             "finally: [{id: z, run: x}]\n";
    static const char more[] =
        HEAD "tasks: [{id: a, run: x}, {id: b, run: x}, {id: c, run: x}]\n"
             "finally: [{id: z, run: x}]\n";
    (void)state;
    struct rig rig = {0};
    begin(&rig, finals);
    rig_expect(&rig, "{'verb':'cancel'}", "is cancelled");
    refuse(&rig, more, ERR_CONFLICT, "run \"wave\" was cancelled: use --new");
    accept(&rig, finals, "");
    rig_release(&rig);
}

#define DEADLINE(deadline, b)                                                  \
    HEAD deadline "usage: {run: m, steps: {90: 0}}\n"                          \
                  "tasks:\n"                                                   \
                  "  - {id: a, run: x}\n"                                      \
                  "  - {id: b, run: x" b "}\n"                                 \
                  "  - {id: c, run: x, needs: [b]}\n"

/* It counts from the update on, before and after the run was stopped by it. */
static void a_deadline_can_be_moved(void **state)
{
    static const char early[] = DEADLINE("deadline: 1h\n", ", approve: true");
    static const char late[] = DEADLINE("deadline: 2h\n", ", approve: true");
    static const char never[] = DEADLINE("", "");
    (void)state;
    struct rig rig = {0};
    rig_start(&rig);
    rig_submit(&rig, early);
    rig_print(&rig, ".usage", 0, "[{'name':'m','percent':1}]");
    rig_begin(&rig, "a");
    rig_end(&rig, "a", 0, NULL);
    accept(&rig, late, "deadline");
    rig_wait(&rig, HOUR_NS + MINUTE_NS);
    rig_lacks(&rig.events, "its deadline has passed");
    rig_wait(&rig, HOUR_NS);
    rig_has(&rig.events, "its deadline has passed");
    accept(&rig, never, "deadline");
    rig_state(&rig, "b", "starting");
    rig_begin(&rig, "b");
    rig_end(&rig, "b", 0, NULL);
    rig_state(&rig, "c", "starting");
    rig_release(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_version_of_no_run_is_refused),
        cmocka_unit_test(a_version_that_cannot_run_is_refused),
        cmocka_unit_test(the_same_version_changes_nothing),
        cmocka_unit_test(a_version_must_fit_what_was_added),
        cmocka_unit_test(work_that_is_done_keeps_its_place),
        cmocka_unit_test(stages_that_are_done_stay_as_they_were),
        cmocka_unit_test(as_many_refusals_as_fit_are_listed),
        cmocka_unit_test(an_operators_limit_stays_in_the_plan),
        cmocka_unit_test(a_cancelled_run_is_not_updated),
        cmocka_unit_test(a_deadline_can_be_moved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
