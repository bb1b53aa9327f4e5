/* SPDX-License-Identifier: MIT */
/*
 * Loading a store that is damaged, or has rows that are rare: an impossible row
 * is named, and others do no harm.
 */
#include "base/mem.h"
#include "tests/unit/engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char plan[] = "sluice: 1\n"
                           "name: wave\n"
                           "limits: {sessions: 2, big: {max: 3}}\n"
                           "usage: {run: meters}\n"
                           "tasks:\n"
                           "  - {id: a, run: x, provider: max}\n"
                           "  - {id: b, run: x, needs: [a]}\n"
                           "  - {id: c, run: x}\n";

/* Stop a scheduler in the middle of a run that has rows of all kinds. */
static void leave_store(struct rig *rig)
{
    static const struct store_change request = {
        .type = STORE_COMMAND,
        .as.command =
            {
                .who = "operator",
                .verb = "hold",
                .args = "{\"verb\":\"hold\",\"task\":\"b\"}",
            },
    };
    rig_start(rig);
    rig_submit(rig, plan);
    rig_print(rig, ".usage", 0, "[{'name':'m','percent':10}]");
    rig_begin(rig, "a");
    rig_end(rig, "a", 75, NULL); /* the provider has a row */
    rig_wait(rig, MINUTE_NS);
    rig_begin(rig, "a");
    rig_wait(rig, SECOND_NS);
    rig_expect(rig, "{'verb':'limit','limit':'big','max':'1'}", "1");
    rig_expect(rig,
               "{'verb':'add','file':'f','text':'tasks: [{id: d, run: x}]'}",
               "1 task");
    rig_stop(rig);
    rig_store(rig, &request);
}

typedef bool (*filter_fn)(enum store_kind kind, union store_row *row);

/* Require that loading fails; without the damage it does not. */
static void expect_damage(filter_fn filter, enum err wanted, const char *part)
{
    struct rig rig = {0};
    struct diag diag = {0};
    leave_store(&rig);
    rig.filter = filter;
    enum err err = rig_try_start(&rig, NULL, &diag);
    if (err != wanted || strstr(diag.text, part) == NULL) {
        fail_msg("not \"%s\", but %s: %s", part, err_name(err), diag.text);
    }
    rig.filter = NULL;
    rig_start(&rig);
    rig_state(&rig, "a", "running");
    rig_release(&rig);
}

/* --- damage ------------------------------------------------------------- */

static bool stop_oddly(enum store_kind kind, union store_row *row)
{
    row->run.stopped = kind == STORE_KIND_RUN ? 99 : row->run.stopped;
    return true;
}

static bool break_plan(enum store_kind kind, union store_row *row)
{
    if (kind == STORE_KIND_FRAGMENT && row->fragment.number == 0) {
        row->fragment.text_bytes = 5;
    }
    return true;
}

static bool break_fragment(enum store_kind kind, union store_row *row)
{
    if (kind == STORE_KIND_FRAGMENT && row->fragment.number == 1) {
        row->fragment.text_bytes = 5;
    }
    return true;
}

/* A fragment looks like a later version of the plan. */
static bool fake_version(enum store_kind kind, union store_row *row)
{
    if (kind == STORE_KIND_FRAGMENT && row->fragment.number == 1) {
        row->fragment.file = "update: plan.yaml";
    }
    return true;
}

static bool drop_plan(enum store_kind kind, union store_row *row)
{
    return kind != STORE_KIND_FRAGMENT || row->fragment.number > 0;
}

static void a_run_without_its_texts_is_named(void **state)
{
    (void)state;
    expect_damage(stop_oddly,
                  ERR_CORRUPT,
                  "run \"wave\" is stopped for an unknown reason, 99");
    expect_damage(break_plan,
                  ERR_CORRUPT,
                  "cannot parse the stored plan of run \"wave\": plan.yaml:1");
    expect_damage(break_fragment,
                  ERR_CORRUPT,
                  "cannot parse the stored fragment 1 of run \"wave\": f:1");
    expect_damage(fake_version,
                  ERR_CORRUPT,
                  "cannot parse the stored fragment 1 of run \"wave\": plan");
    expect_damage(drop_plan, ERR_CORRUPT, "\"wave\" has no text of its plan");
}

/* Rows of a run without its texts, from this kind on. */
#define KEEP_FROM(name, first)                                                 \
    static bool name(enum store_kind kind, union store_row *row)               \
    {                                                                          \
        (void)row;                                                             \
        return kind == STORE_KIND_RUN || kind >= (first);                      \
    }
KEEP_FROM(keep_limit, STORE_KIND_LIMIT)
KEEP_FROM(keep_provider, STORE_KIND_PROVIDER)
KEEP_FROM(keep_setting, STORE_KIND_SETTING)
KEEP_FROM(keep_task, STORE_KIND_TASK)
KEEP_FROM(keep_attempt, STORE_KIND_ATTEMPT)
KEEP_FROM(keep_command, STORE_KIND_COMMAND)
KEEP_FROM(keep_nothing, STORE_KIND_EVENT) /* which is not read */

/* Whichever row is the first that needs the plan. */
static void a_missing_plan_is_noticed_with_any_row(void **state)
{
    static const filter_fn filters[] = {
        keep_limit,
        keep_provider,
        keep_setting,
        keep_task,
        keep_attempt,
        keep_command,
        keep_nothing,
    };
    (void)state;
    for (size_t ix = 0; ix < ARRAY_COUNT(filters); ix++) {
        expect_damage(filters[ix],
                      ERR_CORRUPT,
                      "run \"wave\" has no text of its plan");
    }
}

static bool rename_limit(enum store_kind kind, union store_row *row)
{
    if (kind == STORE_KIND_LIMIT) {
        row->limit.name = "bigger";
    }
    return true;
}

static bool lower_limit(enum store_kind kind, union store_row *row)
{
    if (kind == STORE_KIND_LIMIT) {
        row->limit.max = -1;
    }
    return true;
}

static bool drop_first_task(enum store_kind kind, union store_row *row)
{
    return kind != STORE_KIND_TASK || row->task.ix > 0;
}

static bool drop_last_task(enum store_kind kind, union store_row *row)
{
    return kind != STORE_KIND_TASK || row->task.ix < 3;
}

static bool drop_fragment(enum store_kind kind, union store_row *row)
{
    return kind != STORE_KIND_FRAGMENT || row->fragment.number == 0;
}

static bool rename_task(enum store_kind kind, union store_row *row)
{
    if (kind == STORE_KIND_TASK && row->task.ix == 1) {
        row->task.id = "z";
    }
    return true;
}

static bool mislead_task(enum store_kind kind, union store_row *row)
{
    if (kind == STORE_KIND_TASK && row->task.ix == 0) {
        row->task.leader = 2;
    }
    return true;
}

static bool move_attempt(enum store_kind kind, union store_row *row)
{
    if (kind == STORE_KIND_ATTEMPT) {
        row->attempt.task = 4;
    }
    return true;
}

static void a_row_that_contradicts_its_plan_is_named(void **state)
{
    (void)state;
    expect_damage(rename_limit,
                  ERR_CORRUPT,
                  "run \"wave\" has no limit \"bigger\", but the store sets");
    expect_damage(lower_limit,
                  ERR_CORRUPT,
                  "run \"wave\": cannot set limit \"big\" to -1");
    expect_damage(drop_first_task,
                  ERR_CORRUPT,
                  "task 1 (\"b\") of run \"wave\" contradicts its plan");
    expect_damage(rename_task,
                  ERR_CORRUPT,
                  "task 1 (\"z\") of run \"wave\" contradicts its plan");
    expect_damage(drop_fragment,
                  ERR_CORRUPT,
                  "task 3 (\"d\") of run \"wave\" contradicts its plan");
    expect_damage(drop_last_task,
                  ERR_CORRUPT,
                  "run \"wave\" has 4 tasks, but 3 rows of tasks");
    expect_damage(mislead_task, ERR_CORRUPT, "cannot restore run \"wave\"");
    expect_damage(move_attempt,
                  ERR_CORRUPT,
                  "attempt 2 belongs to an unknown task");
}

/* --- rows that do no harm ----------------------------------------------- */

static bool drop_run(enum store_kind kind, union store_row *row)
{
    (void)row;
    return kind != STORE_KIND_RUN;
}

static void rows_of_no_run_are_ignored(void **state)
{
    (void)state;
    struct rig rig = {0};
    leave_store(&rig);
    rig.filter = drop_run;
    rig_start(&rig);
    assert_int_equal(engine_run_count(rig.engine), 0);
    assert_int_equal(engine_session_count(rig.engine), 0);
    rig_release(&rig);
}

static bool answer_command(enum store_kind kind, union store_row *row)
{
    if (kind == STORE_KIND_COMMAND) {
        row->command.answer = "{}";
    }
    return true;
}

static void an_answered_request_is_not_carried_out(void **state)
{
    (void)state;
    struct rig rig = {0};
    leave_store(&rig);
    rig.filter = answer_command;
    strbuf_clear(&rig.events);
    rig_start(&rig);
    rig_lacks(&rig.events, "b is held");
    rig.filter = NULL;
    rig_restart(&rig);
    rig_has(&rig.events, "b is held");
    strbuf_clear(&rig.events);
    rig_restart(&rig);
    rig_lacks(&rig.events, "b is held");
    rig_release(&rig);
}

/* A request that adds tasks can be the first thing that a scheduler does. */
static void a_stored_request_can_add_tasks(void **state)
{
    static const struct store_change request = {
        .type = STORE_COMMAND,
        .as.command =
            {
                .who = "operator",
                .verb = "add",
                .args = "{\"verb\":\"add\",\"file\":\"g\","
                        "\"text\":\"tasks: [{id: e, run: x}]\"}",
            },
    };
    (void)state;
    struct rig rig = {0};
    leave_store(&rig);
    rig_store(&rig, &request);
    rig_start(&rig);
    rig_has(&rig.events, "'task':'e'");
    rig_restart(&rig);
    rig_state(&rig, "e", "ready");
    rig_release(&rig);
}

static bool age_state(enum store_kind kind, union store_row *row)
{
    if (kind == STORE_KIND_TASK && row->task.ix == 2) {
        row->task.state = "meditating";
    }
    return true;
}

static void a_state_of_another_version_needs_an_operator(void **state)
{
    (void)state;
    struct rig rig = {0};
    leave_store(&rig);
    rig.filter = age_state;
    rig_start(&rig);
    rig_state(&rig, "c", "parked");
    rig_reason(&rig, "c", "unknown state \"meditating\" in the store");
    rig_has(&rig.events, "meditating");
    rig_expect(&rig, "{'verb':'retry','task':'c'}", "c will be retried");
    rig_release(&rig);
}

/* Settings that this version does not know, of runs, parts and values that are
 * none. */
static void odd_settings_are_ignored(void **state)
{
    static const char *const settings[][2] = {
        {"odd", "1"},
        {"usage", "1"},
        {"usage/0/0", "{'cap':0,'read_ns':1}"},
        {"usage/9999999999/0", "{'cap':0,'read_ns':1}"},
        {"usage/77/0", "{'cap':0,'read_ns':1}"},
        {"usage/1", "{'cap':0,'read_ns':1}"},
        {"usage/1/7", "{'cap':0,'read_ns':1}"},
        {"budget/1/99", "{'usd':1,'tokens':1}"},
        {"window/1/99", "1"},
        {"window/1/0", "0"},
        {"window/1/1", "1"}, /* it is no queue */
        {"base/1/0", "{'repo':'r'}"},
        {"base/1/1", "{'commit':'c'}"},
        {"limit/max", "many"},
        {"limit-file/max", "many"},
        {"notice/1/1", "{}"},
        {"notice/1/2", "{'event':{'event':3}}"},
        {"notice/1/3", "{'number':1,'event':{}}"},
        {"history/implement", "[]"},
        {"history/review", "{'count':0}"},
        {"history/gate", "{'count':1,'seconds':-1}"},
        {"history/merge", "{'count':1,'usd':-1}"},
        {"history/other", "{'count':1,'tokens':-1}"},
        {"expected/1", "[[],[1],['implement',3]]"},
    };
    (void)state;
    struct rig rig = {0};
    leave_store(&rig);
    for (size_t ix = 0; ix < ARRAY_COUNT(settings); ix++) {
        rig_store_setting(&rig, settings[ix][0], settings[ix][1]);
    }
    rig_start(&rig);
    assert_int_equal(engine_limit_set(rig.engine, 0, 0), 2);
    assert_int_equal(engine_usage(rig.engine, 0, 0).cap, LIMIT_NONE);
    assert_int_equal(engine_ceiling_count(rig.engine), 0);
    assert_int_equal(engine_notification_count(rig.engine, 0), 0);
    assert_int_equal(plan_estimate_ns(engine_plan(rig.engine, 0),
                                      &engine_plan(rig.engine, 0)->tasks[0]),
                     10 * MINUTE_NS);
    rig_state(&rig, "c", "starting");
    rig_release(&rig);
}

/* What was expected of a run of an earlier version, if it is possible. */
static void means_of_an_earlier_version_are_taken(void **state)
{
    static const char expected[] =
        "{'review':[-1,0,0],'gate':[1,-1,0],'merge':[1,0,-1],"
        "'implement':[60000000000,0,100]}";
    (void)state;
    struct rig rig = {0};
    leave_store(&rig);
    rig_store_setting(&rig, "expected/1", expected);
    rig_start(&rig);
    const struct plan *read = engine_plan(rig.engine, 0);
    assert_int_equal(plan_estimate_ns(read, &read->tasks[0]), MINUTE_NS);
    rig_release(&rig);
}

/* A monitor's stored state that is only partly valid. */
static void half_a_reading_is_no_reading(void **state)
{
    (void)state;
    struct rig rig = {0};
    leave_store(&rig);
    rig_store_setting(&rig,
                      "usage/1/0",
                      "{'meters':[{'percent':12}],'governs':7,'cap':-3,"
                      "'read_ns':5,'until_ns':'x'}");
    rig_start(&rig);
    assert_string_equal(engine_usage_meter(rig.engine, 0, 0, 0).name, "?");
    struct engine_usage_view usage = engine_usage(rig.engine, 0, 0);
    assert_int_equal(usage.governs, 0);
    assert_int_equal(usage.cap, LIMIT_NONE);
    rig_stop(&rig);
    rig_store_setting(&rig, "usage/1/0", "{'meters':[],'read_ns':5}");
    rig_start(&rig);
    assert_int_equal(engine_usage(rig.engine, 0, 0).cap, 0); /* not yet known */
    assert_int_equal(engine_usage(rig.engine, 0, 0).meter_count, 0);
    rig_release(&rig);
}

static void a_stopped_provider_that_no_plan_has_does_no_harm(void **state)
{
    static const struct store_change change = {
        .type = STORE_PROVIDER,
        .as.provider =
            {
                .name = "gone",
                .stopped = true,
                .reason = "no money",
            },
    };
    (void)state;
    struct rig rig = {0};
    leave_store(&rig);
    rig_store(&rig, &change);
    rig_start(&rig);
    rig_refuse(&rig,
               "{'verb':'resume','provider':'gone'}",
               "not-found",
               "no unfinished run uses a provider 'gone'");
    rig_submit(&rig,
               "sluice: 1\nname: other\n"
               "tasks: [{id: z, run: x, provider: gone}]\n");
    rig_state(&rig, "z", "ready");
    rig_release(&rig);
}

/* --- attempts in flight ------------------------------------------------- */

static const char batch_plan[] = "sluice: 1\n"
                                 "name: wave\n"
                                 "classes: {audit: {batch: 2}}\n"
                                 "defaults: {retry: {max: 1, backoff: 1s}}\n"
                                 "tasks:\n"
                                 "  - {id: a, class: audit, run: x}\n"
                                 "  - {id: b, class: audit, run: x}\n";

static bool drop_attempt(enum store_kind kind, union store_row *row)
{
    (void)row;
    return kind != STORE_KIND_ATTEMPT;
}

static bool end_attempt(enum store_kind kind, union store_row *row)
{
    if (kind == STORE_KIND_ATTEMPT) {
        row->attempt.state = "ended";
    }
    return true;
}

/* Its session is ended, and its tasks are retried, once each. */
static void a_batch_without_its_attempt_is_lost(void **state)
{
    static const filter_fn filters[] = {drop_attempt, end_attempt};
    (void)state;
    for (size_t ix = 0; ix < ARRAY_COUNT(filters); ix++) {
        struct rig rig = {0};
        rig_start(&rig);
        rig_submit(&rig, batch_plan);
        rig_begin(&rig, "a");
        rig_stop(&rig);
        rig.filter = filters[ix];
        strbuf_clear(&rig.log);
        rig_start(&rig);
        rig_has(&rig.log, "ask a 1, end\n");
        rig.filter = NULL;
        rig_wait(&rig, 2 * SECOND_NS);
        rig_ordered(&rig, "a", "[batch] a\nb\n");
        assert_int_equal(rig_orders(&rig, "a"), 2);
        rig_end(&rig,
                "a",
                0,
                "{'tasks':[{'task':'a','outcome':'done'},"
                "{'task':'b','outcome':'done'}]}");
        rig_state(&rig, "b", "done");
        rig_release(&rig);
    }
}

static bool swap_token(enum store_kind kind, union store_row *row)
{
    if (kind == STORE_KIND_TASK && row->task.token == 2) {
        row->task.token = 1;
    }
    return true;
}

/* The session of an attempt that is not its task's is ended, and recorded. */
static void an_attempt_of_another_token_is_ended(void **state)
{
    (void)state;
    struct rig rig = {0};
    rig_start(&rig);
    rig_submit(&rig,
               "sluice: 1\nname: wave\n"
               "tasks: [{id: a, run: x, retry: {max: 3, backoff: 1s}}]\n");
    rig_begin(&rig, "a");
    rig_end(&rig, "a", 1, NULL);
    rig_wait(&rig, 2 * SECOND_NS);
    rig_begin(&rig, "a");
    rig_stop(&rig);
    rig.filter = swap_token;
    strbuf_clear(&rig.log);
    rig_start(&rig);
    rig_has(&rig.log, "ask a 2, begun, end\n"); /* the attempt */
    rig_has(&rig.log, "ask a 2, end\n");        /* what the task names */
    assert_int_equal(engine_session_count(rig.engine), 0);
    rig.filter = NULL;
    rig_wait(&rig, 5 * SECOND_NS);
    rig_begin(&rig, "a");
    rig_end(&rig, "a", 0, NULL);
    rig_state(&rig, "a", "done");
    rig_release(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_without_its_texts_is_named),
        cmocka_unit_test(a_missing_plan_is_noticed_with_any_row),
        cmocka_unit_test(a_row_that_contradicts_its_plan_is_named),
        cmocka_unit_test(rows_of_no_run_are_ignored),
        cmocka_unit_test(an_answered_request_is_not_carried_out),
        cmocka_unit_test(a_stored_request_can_add_tasks),
        cmocka_unit_test(a_state_of_another_version_needs_an_operator),
        cmocka_unit_test(odd_settings_are_ignored),
        cmocka_unit_test(means_of_an_earlier_version_are_taken),
        cmocka_unit_test(half_a_reading_is_no_reading),
        cmocka_unit_test(a_stopped_provider_that_no_plan_has_does_no_harm),
        cmocka_unit_test(a_batch_without_its_attempt_is_lost),
        cmocka_unit_test(an_attempt_of_another_token_is_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
