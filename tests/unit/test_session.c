/* SPDX-License-Identifier: MIT */
/*
 * How the engine takes rare reports about sessions, and what it tells of them.
 */
#include "base/mem.h"
#include "tests/unit/engine_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

/* A session runs, and exits with this code and log. */
static void
end_with_log(struct rig *rig, const char *task, int code, const char *log)
{
    rig_begin(rig, task);
    rig_report(rig,
               task,
               &(struct work_report){
                   .type = WORK_ENDED,
                   .exit = {.cause = ATTEMPT_EXIT, .code = code},
                   .log = log,
               });
}

/* --- logs --------------------------------------------------------------- */

static const char gate_plan[] =
    HEAD "pipelines:\n"
         "  p:\n"
         "    - {stage: implement, run: x}\n"
         "    - {stage: gate, run: y, rework: {to: implement, max: 9}}\n"
         "    - {stage: lint, class: gate, run: y, rework: {to: implement}}\n"
         "groups: [{id: g, pipeline: p}]\n";

static void the_log_of_a_gate_is_feedback_without_events(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, gate_plan);
    end_with_log(&rig, "g/implement", 0, "");
    end_with_log(&rig,
                 "g/gate",
                 1,
                 "{\"type\":\"turn\"}\n{\n{\"x\":1}\n{1: 2}\ntest_a failed");
    rig_ordered(&rig, "g/implement", "{'x':1}\n{1: 2}\ntest_a failed");
    rig_lacks(&rig_order(&rig, "g/implement")->text, "turn");
    rig_release(&rig);
}

/* A gate that was killed says nothing about the work. */
static void a_gate_without_a_verdict_blames_nobody(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, gate_plan);
    end_with_log(&rig, "g/implement", 0, "");
    end_with_log(&rig, "g/gate", 127, "sh: 1: mak: not found\n");
    rig_state(&rig, "g/implement", "done");
    assert_int_equal(rig_orders(&rig, "g/implement"), 1);
    rig_release(&rig);
}

/* So it is tried again, whether it was killed or could not run. */
static void a_gate_without_a_verdict_is_retried(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig,
              HEAD "pipelines:\n"
                   "  p:\n"
                   "    - {stage: implement, run: x}\n"
                   "    - {stage: gate, run: y, rework: {to: implement},"
                   " retry: {max: 2}}\n"
                   "groups: [{id: g, pipeline: p}]\n");
    end_with_log(&rig, "g/implement", 0, "");
    rig_begin(&rig, "g/gate");
    rig_report(&rig,
               "g/gate",
               &(struct work_report){
                   .type = WORK_ENDED,
                   .exit = {.cause = ATTEMPT_EXIT, .code = -1, .signal = 9},
               });
    rig_wait(&rig, 5 * MINUTE_NS);
    assert_int_equal(rig_orders(&rig, "g/gate"), 2);
    end_with_log(&rig, "g/gate", 127, "sh: 1: mak: not found\n");
    rig_wait(&rig, 5 * MINUTE_NS);
    assert_int_equal(rig_orders(&rig, "g/gate"), 3);
    assert_int_equal(rig_orders(&rig, "g/implement"), 1);
    rig_release(&rig);
}

static void a_missing_command_is_named_from_the_log(void **state)
{
    enum { LONG = 3000 };
    static const struct {
        const char *log;
        const char *part;
    } logs[] = {
        {"", "cannot run its command"},
        {"\n\n", "cannot run its command"},
        {"one\ntwo\n", ": two"},
        {"one\nmak: not found\ntwo\n", ": mak: not found"},
        {"x: Permission denied\ny: No such file\n", ": y: No such file"},
    };
    (void)state;
    for (size_t ix = 0; ix < ARRAY_COUNT(logs); ix++) {
        struct rig rig = {0};
        open_plan(&rig, HEAD "tasks: [{id: a, run: x}]\n");
        end_with_log(&rig, "a", 127, logs[ix].log);
        rig_state(&rig, "a", "parked");
        rig_reason(&rig, "a", logs[ix].part);
        rig_release(&rig);
    }
    /* Only the end of a long log is searched. */
    struct rig rig = {0};
    struct strbuf log = {0};
    strbuf_adds(&log, "early: not found\n");
    strbuf_pad(&log, '.', LONG);
    strbuf_adds(&log, "\nlate: not found\n");
    open_plan(&rig, HEAD "tasks: [{id: a, run: x}]\n");
    end_with_log(&rig, "a", 127, strbuf_text(&log));
    rig_reason(&rig, "a", ": late: not found");
    strbuf_release(&log);
    rig_release(&rig);
}

/* --- feedback ----------------------------------------------------------- */

static const char review_plan[] =
    HEAD "groups: [{id: g}]\n"
         "tasks:\n"
         "  - {id: a, group: g, run: x}\n"
         "  - {id: b, group: g, class: review, run: x, needs: [a],"
         " rework: {to: a}}\n"
         "  - {id: c, group: g, class: review, run: x, needs: [a],"
         " rework: {to: a}}\n";

/* Of two reviews that run at the same time, both are heard. */
static void feedback_of_two_reviews_is_joined(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, review_plan);
    end_with_log(&rig, "a", 0, "");
    rig_begin(&rig, "b");
    rig_begin(&rig, "c");
    rig_end(&rig, "b", 20, "{'reason':'names'}");
    rig_end(&rig, "c", 20, "{}");
    rig_end(&rig, "a", 0, NULL);
    rig_ordered(&rig, "a", "b: names");
    rig_release(&rig);
}

static void a_stale_review_adds_its_words(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, review_plan);
    end_with_log(&rig, "a", 0, "");
    rig_begin(&rig, "b");
    rig_begin(&rig, "c");
    rig_expect(&rig, "{'verb':'cap','max':1}", "1"); /* a must wait for c */
    rig_end(&rig, "b", 20, "{'feedback':'better names'}");
    rig_end(&rig, "c", 20, "{'feedback':'more tests'}");
    rig_ordered(&rig, "a", "[feedback] b: better names");
    rig_ordered(&rig, "a", "c: more tests");
    rig_release(&rig);
}

/* A review that says why it wants changes needs no log; others do. */
static void the_log_of_a_review_stands_in_for_a_reason(void **state)
{
    static char reason[] = "names";
    static const struct {
        int code;
        struct attempt_result result;
        bool log;
    } ends[] = {
        {20, {.reason = reason}, false},
        {20, {.reason = NULL}, true},
    };
    (void)state;
    for (size_t ix = 0; ix < ARRAY_COUNT(ends); ix++) {
        struct rig rig = {0};
        open_plan(&rig,
                  HEAD "groups: [{id: g}]\n"
                       "tasks:\n"
                       "  - {id: a, group: g, run: x}\n"
                       "  - {id: b, group: g, class: review, run: x,"
                       " needs: [a], rework: {to: a}}\n");
        end_with_log(&rig, "a", 0, "");
        rig_begin(&rig, "b");
        rig_report(&rig,
                   "b",
                   &(struct work_report){
                       .type = WORK_ENDED,
                       .exit = {.cause = ATTEMPT_EXIT, .code = ends[ix].code},
                       .result = &ends[ix].result,
                       .log = "a long story",
                   });
        assert_int_equal(rig_orders(&rig, "a"), 2);
        const struct strbuf *text = &rig_order(&rig, "a")->text;
        (ends[ix].log ? rig_has : rig_lacks)(text, "a long story");
        rig_release(&rig);
    }
}

/* The first of two failures is told once. */
static void what_a_failed_attempt_learned_is_kept(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig,
              HEAD "repos: {r: {path: r, base: main}}\n"
                   "tasks:\n"
                   "  - {id: a, repo: r, run: x, retry: {max: 3}}\n");
    rig_begin(&rig, "a");
    rig_end(&rig, "a", 1, "{'feedback':'try b'}");
    rig_wait(&rig, MINUTE_NS);
    rig_ordered(&rig, "a", "[feedback] try b\n");
    rig_begin(&rig, "a");
    rig_end(&rig, "a", 1, "{'feedback':'try b'}");
    rig_wait(&rig, MINUTE_NS);
    rig_ordered(&rig, "a", "[feedback] try b\n");
    rig_begin(&rig, "a");
    rig_end(&rig, "a", 1, "{'feedback':'try c'}");
    rig_wait(&rig, 5 * MINUTE_NS);
    rig_ordered(&rig, "a", "[feedback] try b\ntry c\n");
    rig_release(&rig);
}

/* --- batches ------------------------------------------------------------ */

static void each_task_of_a_batch_has_its_own_outcome(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig,
              HEAD "classes: {audit: {batch: 9}}\n"
                   "tasks:\n"
                   "  - {id: a, class: audit, run: x}\n"
                   "  - {id: b, class: audit, run: x}\n"
                   "  - {id: c, class: audit, run: x}\n"
                   "  - {id: d, class: audit, run: x}\n"
                   "  - {id: e, class: audit, run: x}\n");
    rig_begin(&rig, "a");
    rig_end(&rig,
            "a",
            0,
            "{'tasks':[{'task':'a','outcome':'done'},"
            "{'task':'b','outcome':'blocked','reason':'which?'},"
            "{'task':'c','outcome':'later'},"
            "{'task':'d','outcome':'failed','final':true}]}");
    rig_state(&rig, "a", "done");
    rig_state(&rig, "b", "parked");
    rig_reason(&rig, "b", "which?");
    rig_state(&rig, "c", "waiting"); /* it snoozes */
    rig_state(&rig, "d", "parked");
    rig_reason(&rig, "d", "(final)");
    rig_state(&rig, "e", "parked"); /* it was not named */
    rig_wait(&rig, 6 * MINUTE_NS);
    assert_int_equal(rig_orders(&rig, "c"), 1);
    rig_release(&rig);
}

/* Each that is not done is told, with its own words; the leader only if it
 * differs from the session. */
static void tasks_of_a_batch_are_told_apart(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig,
              HEAD "classes: {audit: {batch: 9}}\n"
                   "tasks:\n"
                   "  - {id: a, class: audit, run: x}\n"
                   "  - {id: b, class: audit, run: x}\n"
                   "  - {id: c, class: audit, run: x}\n"
                   "  - {id: d, class: audit, run: x}\n"
                   "  - {id: e, class: audit, run: x}\n"
                   "  - {id: f, run: x}\n");
    rig_begin(&rig, "a");
    rig_end(&rig,
            "a",
            0,
            "{'tasks':[{'task':'a','outcome':'done'},"
            "{'task':'b','outcome':'blocked','reason':'which?'},"
            "{'task':'c','outcome':'checkpoint'},"
            "{'task':'d','outcome':'failed','reason':'no d','final':true},"
            "{'task':'e','outcome':'failed','reason':'no e','final':true}]}");
    rig_begin(&rig, "f");
    rig_end(&rig, "f", 1, NULL);
    rig_lacks(&rig.events, "member {'task':'a'");
    rig_lacks(&rig.events, "member {'task':'f'");
    rig_has(&rig.events, "member {'task':'b','leader':'a'");
    rig_has(&rig.events, "'outcome':'blocked','reason':'which?'}");
    rig_has(&rig.events, "member {'task':'c','leader':'a'");
    rig_has(&rig.events, "'outcome':'checkpoint'");
    rig_has(&rig.events, "'outcome':'failed','reason':'no d (final)'}");
    rig_has(&rig.events, "'outcome':'failed','reason':'no e (final)'}");
    rig_release(&rig);
}

/* --- added tasks -------------------------------------------------------- */

static void tasks_are_added_by_sessions_that_did_not_fail(void **state)
{
    static const struct {
        int code;
        const char *result;
        bool added;
    } ends[] = {
        {0, "{'outcome':'done',%s}", true},
        {30, "{'outcome':'blocked','reason':'y?',%s}", true},
        {40, "{'outcome':'later',%s}", true},
        {0, "{'outcome':'checkpoint',%s}", true},
        {1, "{'outcome':'failed',%s}", false},
        {75, "{'outcome':'refused',%s}", false},
    };
    (void)state;
    for (size_t ix = 0; ix < ARRAY_COUNT(ends); ix++) {
        struct rig rig = {0};
        struct strbuf result = {0};
        const char *at = strstr(ends[ix].result, "%s");
        strbuf_add(&result, ends[ix].result, (size_t)(at - ends[ix].result));
        strbuf_adds(&result, "'add':{'tasks':[{'id':'m','run':'x'}]}}");
        open_plan(&rig, HEAD "tasks: [{id: a, run: x}]\n");
        rig_begin(&rig, "a");
        rig_end(&rig, "a", ends[ix].code, strbuf_text(&result));
        assert_int_equal(rig_orders(&rig, "m"), ends[ix].added ? 1 : 0);
        if (!ends[ix].added) {
            rig_has(&rig.events, "a fragment is ignored if its session has");
        }
        strbuf_release(&result);
        rig_release(&rig);
    }
}

/* --- ends that are not the session's ------------------------------------ */

static void a_result_that_cannot_be_read_keeps_the_work(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, HEAD "tasks: [{id: a, run: x}, {id: b, run: x}]\n");
    rig_begin(&rig, "a");
    rig_report(&rig,
               "a",
               &(struct work_report){
                   .type = WORK_ENDED,
                   .exit = {.cause = ATTEMPT_EXIT},
                   .result_err = ERR_UNAVAILABLE,
                   .text = "too many open files",
               });
    rig_state(&rig, "a", "parked");
    rig_reason(&rig, "a", "too many open files: sluice could not read");
    rig_begin(&rig, "b");
    rig_report(&rig,
               "b",
               &(struct work_report){
                   .type = WORK_ENDED,
                   .exit = {.cause = ATTEMPT_EXIT},
                   .result_err = ERR_INVALID,
                   .text = "not JSON",
               });
    rig_state(&rig, "b", "parked");
    rig_reason(&rig, "b", "not JSON");
    rig_release(&rig);
}

/* sluice-git speaks for a merge by its exit, whatever a result says. */
static void a_merge_that_fails_is_not_done(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig,
              HEAD "repos: {r: {path: r, base: main, gate: x,"
                   " base_gate: none}}\n"
                   "tasks: [{id: m, repo: r, merge: true}]\n");
    rig_begin(&rig, "m");
    rig_end(&rig, "m", 1, "{'outcome':'done'}");
    rig_state(&rig, "m", "parked");
    rig_release(&rig);
}

static void a_start_that_is_refused_is_no_attempt_elsewhere(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, HEAD "tasks: [{id: a, run: x}]\n");
    /* Another machine can run it, or this one later. */
    rig_report(&rig,
               "a",
               &(struct work_report){
                   .type = WORK_REFUSED,
                   .elsewhere = true,
                   .error = ENOSPC,
               });
    rig_has(&rig.events, "its worker could not start it: No space left");
    rig_report(&rig,
               "a",
               &(struct work_report){
                   .type = WORK_REFUSED,
                   .elsewhere = true,
                   .text = "no disk",
               });
    rig_has(&rig.events, "its worker could not start it: no disk");
    rig_state(&rig, "a", "starting");
    assert_int_equal(rig_orders(&rig, "a"), 3);
    /* With a text and an error it backs off; with a text only it is parked. */
    rig_report(&rig,
               "a",
               &(struct work_report){
                   .type = WORK_REFUSED,
                   .error = EAGAIN,
                   .text = "no process",
               });
    rig_reason(&rig, "a", "no process");
    rig_state(&rig, "a", "ready");
    rig_wait(&rig, MINUTE_NS);
    rig_report(&rig,
               "a",
               &(struct work_report){
                   .type = WORK_REFUSED,
                   .text = "no bwrap",
               });
    rig_state(&rig, "a", "parked");
    rig_reason(&rig, "a", "no bwrap");
    rig_expect(&rig, "{'verb':'retry','task':'a'}", "a will be retried");
    rig_report(&rig,
               "a",
               &(struct work_report){.type = WORK_REFUSED, .error = ENOENT});
    rig_state(&rig, "a", "parked");
    rig_release(&rig);
}

/* It is cancelled while its worker refuses it. */
static void a_cancelled_start_stays_cancelled(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, HEAD "tasks: [{id: a, run: x}, {id: b, run: x}]\n");
    rig_expect(&rig, "{'verb':'cancel','task':'a'}", "a is cancelled");
    rig_has(&rig.log, "want a cancel\n");
    rig_report(&rig,
               "a",
               &(struct work_report){.type = WORK_REFUSED, .elsewhere = true});
    rig_state(&rig, "a", "cancelled");
    assert_int_equal(rig_orders(&rig, "a"), 1);
    rig_release(&rig);
}

static void a_task_without_money_is_withdrawn(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig,
              HEAD "tasks:\n"
                   "  - {id: a, run: x, budget: {tokens: 10},"
                   " retry: {max: 5, backoff: 1s}, cost: {tokens: 3}}\n"
                   "  - {id: b, run: x}\n");
    rig_begin(&rig, "a");
    rig_end(&rig,
            "a",
            1,
            "{'usage':{'input_tokens':8,'output_tokens':0,'usd':0.5}}");
    rig_wait(&rig, 2 * SECOND_NS);
    assert_int_equal(rig_order(&rig, "a")->want, WORK_WITHDRAW);
    rig_report(&rig, "a", &(struct work_report){.type = WORK_REFUSED});
    rig_state(&rig, "a", "parked");
    rig_reason(&rig, "a", "budget: 8 of 10 tokens spent");
    rig_expect(&rig, "{'verb':'budget','task':'a','tokens':9}", "is set");
    rig_state(&rig, "a", "parked"); /* that is not enough */
    rig_restart(&rig);
    rig_expect(&rig, "{'verb':'budget','task':'a','tokens':90}", "is set");
    rig_expect(&rig, "{'verb':'budget','task':'b','tokens':90}", "is set");
    rig_state(&rig, "a", "starting");
    /* A machine that cannot run it now leaves it withdrawn. */
    rig_begin(&rig, "a");
    rig_end(&rig, "a", 1, "{'usage':{'input_tokens':85,'output_tokens':0}}");
    rig_wait(&rig, 5 * SECOND_NS);
    assert_int_equal(rig_order(&rig, "a")->want, WORK_WITHDRAW);
    rig_report(&rig,
               "a",
               &(struct work_report){.type = WORK_REFUSED, .elsewhere = true});
    rig_state(&rig, "a", "parked");
    rig_release(&rig);
}

/* The same, if the batch could have given it to a worker. */
static void a_task_without_money_is_not_offered(void **state)
{
    (void)state;
    struct rig rig = {.offers = true};
    open_plan(&rig,
              HEAD "tasks:\n"
                   "  - {id: a, run: x, budget: {usd: 1},"
                   " retry: {max: 5, backoff: 1s}}\n");
    assert_true(rig_order(&rig, "a")->offered);
    rig_begin(&rig, "a");
    rig_end(&rig,
            "a",
            1,
            "{'usage':{'input_tokens':1,'output_tokens':1,'usd':2}}");
    rig_wait(&rig, 2 * SECOND_NS);
    assert_false(rig_order(&rig, "a")->offered);
    assert_int_equal(rig_order(&rig, "a")->want, WORK_WITHDRAW);
    rig_release(&rig);
}

/* --- boots and unknown work --------------------------------------------- */

/* A claim of an earlier boot cannot have begun, and must not. */
static void a_claim_of_an_earlier_boot_is_claimed_again(void **state)
{
    (void)state;
    struct rig rig = {.offers = true, .mark = {.boot_id = "first"}};
    open_plan(&rig, HEAD "tasks: [{id: a, run: x}]\n");
    uint64_t token = rig_order(&rig, "a")->token;
    rig_stop(&rig);
    memcpy(rig.mark.boot_id, "other", sizeof("other"));
    rig_start(&rig);
    rig_has(&rig.log, "ask a 1\n");
    rig_report(&rig, "a", &(struct work_report){.type = WORK_UNKNOWN});
    assert_int_not_equal(rig_order(&rig, "a")->token, token);
    rig_has(&rig.events, "stopped before it started");
    rig_state(&rig, "a", "starting");
    rig_release(&rig);
}

static void unknown_work_is_assigned_again_once(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, HEAD "tasks: [{id: a, run: x}, {id: b, run: x}]\n");
    const struct work_report unknown = {
        .token = rig_order(&rig, "a")->token,
        .type = WORK_UNKNOWN,
    };
    engine_reported(rig.engine, &unknown);
    engine_reported(rig.engine, &unknown); /* it is due already */
    rig_settle(&rig);
    assert_int_equal(rig_orders(&rig, "a"), 2);
    rig_begin(&rig, "a");
    rig_end(&rig, "a", 0, NULL);
    engine_reported(rig.engine, &unknown); /* it is over */
    rig_settle(&rig);
    assert_int_equal(rig_orders(&rig, "a"), 2);
    rig_release(&rig);
}

/* The worker's report can be faster than the batch of an order. */
static void an_end_before_the_batch_is_written_counts(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, HEAD "tasks: [{id: a, run: x}, {id: b, run: x}]\n");
    struct work_report report = {
        .token = rig_order(&rig, "a")->token,
        .type = WORK_UNKNOWN,
    };
    engine_reported(rig.engine, &report);
    engine_request(rig.engine,
                   ++rig.last_request,
                   "operator",
                   "{\"verb\":\"pause\"}");
    engine_pass(rig.engine); /* the batch that assigns it again */
    assert_non_null(rig.batch);
    static const struct attempt_result nothing = {0};
    report.type = WORK_ENDED;
    report.result = &nothing;
    report.log = "";
    report.exit = (struct attempt_exit){.cause = ATTEMPT_EXIT};
    engine_reported(rig.engine, &report);
    rig_settle(&rig);
    rig_state(&rig, "a", "done");
    assert_int_equal(rig_orders(&rig, "a"), 1);
    rig_release(&rig);
}

/* A stop of all sessions also stops the one that an operator has cancelled. */
static void a_stop_reaches_every_session(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, HEAD "tasks: [{id: a, run: x}, {id: b, run: x}]\n");
    rig_begin(&rig, "a");
    rig_begin(&rig, "b");
    rig_expect(&rig, "{'verb':'cancel','task':'a'}", "a is cancelled");
    engine_stop(rig.engine);
    rig_settle(&rig);
    rig_has(&rig.log, "want a cancel\n");
    rig_lacks(&rig.log, "want a stop\n");
    rig_has(&rig.log, "want b stop\n");
    rig_report(&rig,
               "b",
               &(struct work_report){
                   .type = WORK_ENDED,
                   .exit = {.cause = ATTEMPT_STOPPED, .code = -1},
               });
    rig_state(&rig, "b", "ready");
    rig_release(&rig);
}

/* Also one that runs since before a restart. */
static void what_a_session_is_asked_for_reaches_it(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, HEAD "tasks: [{id: a, run: x}, {id: b, run: x}]\n");
    rig_begin(&rig, "a");
    rig_begin(&rig, "b");
    rig_wait(&rig, SECOND_NS);
    rig_restart(&rig);
    rig_has(&rig.log, "ask a");
    rig_begin(&rig, "a");
    rig_expect(&rig, "{'verb':'cancel','task':'a'}", "a is cancelled");
    rig_has(&rig.log, "want a cancel\n");
    rig_release(&rig);
}

/* --- snoozes ------------------------------------------------------------ */

static void a_time_to_come_is_named(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig, HEAD "tasks: [{id: a, run: x}, {id: b, run: x}]\n");
    rig_begin(&rig, "a");
    rig_end(&rig, "a", 40, "{'retry_after':600}");
    rig_has(&rig.events, "; again at 2026");
    rig_wait(&rig, 9 * MINUTE_NS);
    assert_int_equal(rig_orders(&rig, "a"), 1);
    rig_wait(&rig, 2 * MINUTE_NS);
    assert_int_equal(rig_orders(&rig, "a"), 2);
    rig_release(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_log_of_a_gate_is_feedback_without_events),
        cmocka_unit_test(a_gate_without_a_verdict_blames_nobody),
        cmocka_unit_test(a_gate_without_a_verdict_is_retried),
        cmocka_unit_test(a_missing_command_is_named_from_the_log),
        cmocka_unit_test(feedback_of_two_reviews_is_joined),
        cmocka_unit_test(a_stale_review_adds_its_words),
        cmocka_unit_test(the_log_of_a_review_stands_in_for_a_reason),
        cmocka_unit_test(what_a_failed_attempt_learned_is_kept),
        cmocka_unit_test(each_task_of_a_batch_has_its_own_outcome),
        cmocka_unit_test(tasks_of_a_batch_are_told_apart),
        cmocka_unit_test(tasks_are_added_by_sessions_that_did_not_fail),
        cmocka_unit_test(a_result_that_cannot_be_read_keeps_the_work),
        cmocka_unit_test(a_merge_that_fails_is_not_done),
        cmocka_unit_test(a_start_that_is_refused_is_no_attempt_elsewhere),
        cmocka_unit_test(a_cancelled_start_stays_cancelled),
        cmocka_unit_test(a_task_without_money_is_withdrawn),
        cmocka_unit_test(a_task_without_money_is_not_offered),
        cmocka_unit_test(a_claim_of_an_earlier_boot_is_claimed_again),
        cmocka_unit_test(unknown_work_is_assigned_again_once),
        cmocka_unit_test(an_end_before_the_batch_is_written_counts),
        cmocka_unit_test(a_stop_reaches_every_session),
        cmocka_unit_test(what_a_session_is_asked_for_reaches_it),
        cmocka_unit_test(a_time_to_come_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
