/* SPDX-License-Identifier: MIT */
#include "base/macros.h"
#include "base/mem.h"
#include "base/rng.h"
#include "tests/unit/past_fixture.h"
#include "tests/unit/sim_fixture.h"
#include "view/whatif.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* A history whose plan can be read again, and its replays. */
struct again {
    struct past past;
    struct whatif whatif;
    struct plan *plan;
    struct sim_result *result;
};

static void add_source(struct run_history *history,
                       const char *file,
                       const char *text,
                       uint32_t tasks)
{
    uint32_t count = history->source_count + 1;
    history->sources =
        mem_resize(history->sources, count, sizeof(history->sources[0]));
    uint32_t *counts = arena_alloc(&history->arena, count, sizeof(counts[0]));
    if (count > 1) {
        memcpy(counts, history->source_tasks, (count - 1) * sizeof(counts[0]));
    }
    counts[count - 1] = tasks;
    history->source_tasks = counts;
    size_t len = strlen(text);
    history->sources[history->source_count++] = (struct plan_source){
        .file = file,
        .text = arena_strndup(&history->arena, text, len),
        .len = len,
        .processors = 4,
    };
}

static void begin(struct again *again, const char *text)
{
    struct strbuf whole = {0};
    strbuf_addf(&whole, "sluice: 1\nname: test\n%s", text);
    *again = (struct again){0};
    past_init(&again->past, text);
    add_source(&again->past.history,
               "plan.yaml",
               whole.text,
               again->past.history.plan->task_count);
    strbuf_release(&whole);
}

static void settle(struct again *again, double now_s)
{
    past_settle(&again->past, now_s);
    whatif_init(&again->whatif, &again->past.stats);
}

static enum err try_replay(struct again *again,
                           const struct whatif_settings *settings,
                           struct diag *diag)
{
    sim_result_free(again->result);
    plan_free(again->plan);
    return whatif_run(&again->whatif,
                      settings,
                      &again->plan,
                      &again->result,
                      diag);
}

static void replay(struct again *again, const struct whatif_settings *settings)
{
    struct diag diag = {0};
    if (try_replay(again, settings, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
}

static void replay_same(struct again *again)
{
    replay(again, &(struct whatif_settings){0});
}

static void replay_cap(struct again *again, int64_t max, int64_t step)
{
    struct whatif_limit cap = {.limit = 0, .max = max, .step = step};
    replay(again, &(struct whatif_settings){.limits = &cap, .limit_count = 1});
}

static void finish(struct again *again)
{
    sim_result_free(again->result);
    plan_free(again->plan);
    whatif_release(&again->whatif);
    past_release(&again->past);
}

/* The n-th session of a task (1 is the first); NULL: it had fewer. */
static const struct sim_span *
span_of(const struct again *again, const char *id, uint32_t n)
{
    uint32_t task = plan_find_task(again->plan, id);
    for (uint32_t ix = 0; ix < again->result->span_count; ix++) {
        const struct sim_span *span = &again->result->spans[ix];
        if (span->task == task && --n == 0) {
            return span;
        }
    }
    return NULL;
}

static void assert_span(const struct again *again,
                        const char *id,
                        uint32_t n,
                        double start_s,
                        double end_s)
{
    const struct sim_span *span = span_of(again, id, n);
    assert_non_null(span);
    assert_int_equal(span->start_ns, past_ns(start_s));
    assert_int_equal(span->end_ns, past_ns(end_s));
}

static void assert_makespan(const struct again *again, double seconds)
{
    assert_int_equal(again->result->makespan_ns, past_ns(seconds));
}

/* A session of a task that is done. */
static void
work(struct again *again, const char *id, double start_s, double end_s)
{
    past_claim(&again->past, start_s, id);
    past_end(&again->past, end_s, id, HISTORY_DONE, TASK_DONE);
}

#define TASK(id) "  - {id: " id ", run: x}\n"

/* The estimates are 10 minutes each; the sessions decide. */
static void sessions_take_as_long_as_they_did(void **state)
{
    (void)state;
    struct again again;
    begin(&again,
          "limits: {sessions: 2}\npolicy: fifo\ntasks:\n" TASK("a") TASK("b")
              TASK("c"));
    past_claim(&again.past, 0, "a");
    past_claim(&again.past, 0, "b");
    past_end(&again.past, 10, "a", HISTORY_DONE, TASK_DONE);
    past_claim(&again.past, 10, "c");
    past_end(&again.past, 20, "b", HISTORY_DONE, TASK_DONE);
    past_end(&again.past, 40, "c", HISTORY_DONE, TASK_DONE);
    settle(&again, 99);
    assert_int_equal(again.whatif.replayed, 3);
    assert_int_equal(again.whatif.run.makespan_ns, past_ns(40));
    assert_int_equal(again.whatif.run.issues.half_ns, past_ns(20));
    replay_same(&again);
    assert_span(&again, "a", 1, 0, 10);
    assert_span(&again, "b", 1, 0, 20);
    assert_span(&again, "c", 1, 10, 40);
    assert_int_equal(again.result->issues.half_ns, past_ns(20));
    replay_cap(&again, 1, 0);
    assert_makespan(&again, 60);
    replay_cap(&again, 0, 1);
    assert_makespan(&again, 30);
    replay_cap(&again, 0, -1);
    assert_makespan(&again, 60);
    enum plan_policy policy = PLAN_POLICY_LOOKAHEAD;
    enum plan_goal goal = PLAN_GOAL_FINISH_MANY;
    replay(&again, &(struct whatif_settings){.policy = &policy, .goal = &goal});
    assert_int_equal(again.result->policy, PLAN_POLICY_LOOKAHEAD);
    assert_int_equal(again.result->goal, PLAN_GOAL_FINISH_MANY);
    assert_int_equal(whatif_lost(&again.whatif, again.result), 0);
    finish(&again);
}

static void attempts_come_in_order(void **state)
{
    (void)state;
    struct again again;
    begin(&again,
          "limits: {sessions: 1}\n"
          "tasks: [{id: a, run: x, retry: {max: 3, backoff: 5s}}]\n");
    past_claim(&again.past, 0, "a");
    past_end(&again.past, 10, "a", HISTORY_FAILED, TASK_WAITING);
    past_claim(&again.past, 15, "a");
    past_end(&again.past, 35, "a", HISTORY_LOST, TASK_WAITING);
    past_claim(&again.past, 45, "a");
    past_end(&again.past, 46, "a", HISTORY_CHECKPOINT, TASK_READY);
    work(&again, "a", 46, 50);
    settle(&again, 99);
    replay_same(&again);
    assert_span(&again, "a", 1, 0, 10);
    assert_span(&again, "a", 2, 15, 35);
    assert_int_equal(span_of(&again, "a", 2)->end, SIM_END_FAILED);
    assert_span(&again, "a", 3, 45, 46);
    assert_span(&again, "a", 4, 46, 50);
    assert_null(span_of(&again, "a", 5));
    finish(&again);
}

/* An operator needs as long to retry as it was; the slot is free for others. */
static void a_parked_task_is_retried_as_late(void **state)
{
    (void)state;
    struct again again;
    begin(&again, "limits: {sessions: 1}\ntasks:\n" TASK("a") TASK("b"));
    past_claim(&again.past, 0, "a");
    past_end(&again.past, 10, "a", HISTORY_BLOCKED, TASK_PARKED);
    work(&again, "b", 10, 20);
    past_move(&again.past, 110, "a", TASK_READY);
    work(&again, "a", 110, 130);
    settle(&again, 999);
    replay_same(&again);
    assert_span(&again, "a", 1, 0, 10);
    assert_span(&again, "b", 1, 10, 20);
    assert_span(&again, "a", 2, 110, 130);
    replay_cap(&again, 2, 0);
    assert_span(&again, "a", 2, 110, 130);
    finish(&again);
}

static const char reworked[] =
    "limits: {sessions: 1}\n"
    "pipelines:\n"
    "  p:\n"
    "    - {stage: implement, run: x}\n"
    "    - {stage: gate, run: x, rework: {to: implement, max: 3}}\n"
    "groups: [{id: g, pipeline: p}]\n";

static void rework_is_done_again(void **state)
{
    (void)state;
    struct again again;
    begin(&again, reworked);
    work(&again, "g/implement", 0, 10);
    past_claim(&again.past, 10, "g/gate");
    past_end(&again.past, 12, "g/gate", HISTORY_CHANGES, TASK_WAITING);
    work(&again, "g/implement", 12, 16);
    work(&again, "g/gate", 16, 19);
    settle(&again, 99);
    replay_same(&again);
    assert_span(&again, "g/implement", 2, 12, 16);
    assert_span(&again, "g/gate", 2, 16, 19);
    assert_makespan(&again, 19);
    finish(&again);
}

/* A done task that must run again, but did not, is done in its last length. */
static void attempts_beyond_the_last_are_done(void **state)
{
    (void)state;
    struct again again;
    begin(&again, reworked);
    work(&again, "g/implement", 0, 10);
    past_claim(&again.past, 10, "g/gate");
    past_end(&again.past, 12, "g/gate", HISTORY_CHANGES, TASK_WAITING);
    work(&again, "g/gate", 16, 19);
    settle(&again, 99);
    replay_same(&again);
    assert_span(&again, "g/implement", 2, 12, 22);
    assert_span(&again, "g/gate", 2, 22, 25);
    assert_null(span_of(&again, "g/gate", 3));
    finish(&again);
}

/* What the run has not done so far is not done again, nor started. */
static void a_running_run_is_replayed_so_far(void **state)
{
    (void)state;
    struct again again;
    begin(&again, reworked);
    work(&again, "g/implement", 0, 10);
    past_claim(&again.past, 10, "g/gate");
    past_end(&again.past, 12, "g/gate", HISTORY_CHANGES, TASK_WAITING);
    past_claim(&again.past, 12, "g/implement");
    settle(&again, 60);
    assert_int_equal(again.whatif.replayed, 2);
    assert_int_equal(again.whatif.running, 1);
    assert_int_equal(again.whatif.run.makespan_ns, past_ns(12));
    replay_same(&again);
    assert_int_equal(again.result->span_count, 2);
    assert_makespan(&again, 12);
    assert_int_equal(whatif_lost(&again.whatif, again.result), 0);
    finish(&again);
}

static void refused_and_stopped_sessions_are_left_out(void **state)
{
    (void)state;
    struct again again;
    begin(&again,
          "limits: {sessions: 1}\ntasks:\n" TASK("a") TASK("b") TASK("c"));
    past_claim(&again.past, 0, "a");
    past_end(&again.past, 2, "a", HISTORY_REFUSED, TASK_READY);
    past_claim(&again.past, 30, "a");
    past_end(&again.past, 40, "a", HISTORY_STOPPED, TASK_READY);
    work(&again, "a", 50, 60);
    past_claim(&again.past, 60, "b");
    past_end(&again.past, 65, "b", HISTORY_STOPPED, TASK_CANCELLED);
    settle(&again, 99);
    assert_int_equal(again.whatif.replayed, 1);
    assert_int_equal(again.whatif.refused, 1);
    assert_int_equal(again.whatif.stopped, 2);
    replay_same(&again);
    assert_int_equal(again.result->span_count, 1);
    assert_span(&again, "a", 1, 0, 10);
    finish(&again);
}

/* A task that failed for good, with what needs it. */
static void what_failed_fails_again(void **state)
{
    (void)state;
    struct again again;
    begin(&again,
          "limits: {sessions: 2}\n"
          "tasks:\n" TASK("a") "  - {id: b, run: x, needs: [a]}\n" TASK("c"));
    past_claim(&again.past, 0, "a");
    past_claim(&again.past, 0, "c");
    past_end(&again.past, 5, "a", HISTORY_BLOCKED, TASK_PARKED);
    past_end(&again.past, 7, "c", HISTORY_DONE, TASK_DONE);
    settle(&again, 99);
    replay_same(&again);
    assert_int_equal(again.result->span_count, 2);
    assert_int_equal(again.result->counts[TASK_PARKED], 1);
    assert_int_equal(whatif_lost(&again.whatif, again.result), 0);
    finish(&again);
}

/* An operator skipped an optional task; its dependent could start then. */
static void what_was_skipped_is_skipped(void **state)
{
    (void)state;
    struct again again;
    begin(&again,
          "limits: {sessions: 2}\n"
          "tasks:\n"
          "  - {id: a, run: x, optional: true}\n"
          "  - {id: b, run: x, needs: [a]}\n"
          "  - {id: c, run: x, optional: true}\n"
          "  - {id: d, run: x, needs: [c]}\n");
    past_move(&again.past, 0, "a", TASK_READY);
    past_claim(&again.past, 0, "c");
    past_end(&again.past, 5, "c", HISTORY_BLOCKED, TASK_PARKED);
    past_move(&again.past, 20, "a", TASK_SKIPPED);
    work(&again, "b", 20, 25);
    past_move(&again.past, 30, "c", TASK_SKIPPED);
    work(&again, "d", 30, 36);
    settle(&again, 99);
    replay_same(&again);
    assert_int_equal(again.result->span_count, 3);
    assert_span(&again, "b", 1, 20, 25);
    assert_span(&again, "d", 1, 30, 36);
    assert_int_equal(again.result->counts[TASK_SKIPPED], 2);
    finish(&again);
}

/* The cap went down to 1, and up again; and it was 0 for a while. */
static void changes_of_the_cap_are_replayed(void **state)
{
    (void)state;
    struct again again;
    begin(&again,
          "limits: {sessions: 2}\npolicy: fifo\n"
          "tasks:\n" TASK("a") TASK("b") TASK("c") TASK("d"));
    past_claim(&again.past, 0, "a");
    past_claim(&again.past, 0, "b");
    past_order(&again.past, 5, HISTORY_LIMIT, NULL, 1);
    past_end(&again.past, 10, "a", HISTORY_DONE, TASK_DONE);
    past_end(&again.past, 20, "b", HISTORY_DONE, TASK_DONE);
    past_order(&again.past, 20, HISTORY_LIMIT, NULL, 0);
    past_order(&again.past, 100, HISTORY_LIMIT, NULL, 1);
    work(&again, "c", 100, 110);
    work(&again, "d", 110, 120);
    settle(&again, 999);
    replay_same(&again);
    assert_span(&again, "c", 1, 100, 110);
    assert_span(&again, "d", 1, 110, 120);
    replay_cap(&again, 2, 0); /* all the time */
    assert_span(&again, "c", 1, 10, 20);
    assert_makespan(&again, 30);
    replay_cap(&again, 0, 1); /* one more than it was, but 0 */
    assert_span(&again, "c", 1, 0, 10);
    assert_span(&again, "d", 1, 10, 20);
    replay_cap(&again, 0, -1); /* never less than 1, but 0 */
    assert_span(&again, "b", 1, 10, 30);
    assert_span(&again, "c", 1, 100, 110);
    finish(&again);
}

static void pauses_and_holds_are_replayed(void **state)
{
    (void)state;
    struct again again;
    begin(&again,
          "limits: {sessions: 1}\npolicy: fifo\n"
          "tasks:\n" TASK("a") TASK("b") TASK("c") TASK("d"));
    past_claim(&again.past, 0, "a");
    past_order(&again.past, 1, HISTORY_HOLD, "b", 0);
    past_order(&again.past, 1, HISTORY_HOLD, "d", 0);
    past_end(&again.past, 10, "a", HISTORY_DONE, TASK_DONE);
    past_claim(&again.past, 10, "c");
    past_order(&again.past, 12, HISTORY_PAUSE, NULL, 0);
    past_order(&again.past, 13, HISTORY_RELEASE, "b", 0);
    past_end(&again.past, 15, "c", HISTORY_DONE, TASK_DONE);
    past_order(&again.past, 30, HISTORY_RESUME, NULL, 0);
    work(&again, "b", 30, 34);
    past_order(&again.past, 40, HISTORY_RELEASE, "d", 0);
    settle(&again, 50);
    replay_same(&again);
    assert_span(&again, "c", 1, 10, 15);
    assert_span(&again, "b", 1, 30, 34);
    assert_int_equal(again.result->span_count, 3); /* d had no session */
    finish(&again);
}

/* A usage monitor lowered the cap of a provider; it was overridden later. */
static void usage_caps_are_replayed(void **state)
{
    (void)state;
    struct again again;
    begin(&again,
          "limits: {sessions: 4}\npolicy: fifo\n"
          "providers: {p: {}}\n"
          "usage: {run: x, provider: p}\n"
          "defaults: {provider: p}\n"
          "tasks:\n" TASK("a") TASK("b") TASK("c"));
    assert_int_equal(again.past.history.plan->usage_count, 1);
    past_order(&again.past, 0, HISTORY_USAGE, NULL, 1);
    work(&again, "a", 0, 10);
    past_claim(&again.past, 10, "b");
    past_order(&again.past, 12, HISTORY_OVERRIDE, NULL, 1);
    past_claim(&again.past, 12, "c");
    past_end(&again.past, 20, "b", HISTORY_DONE, TASK_DONE);
    past_end(&again.past, 22, "c", HISTORY_DONE, TASK_DONE);
    settle(&again, 50);
    replay_same(&again);
    assert_span(&again, "b", 1, 10, 20);
    assert_span(&again, "c", 1, 12, 22);
    replay_cap(&again, 0, 4);
    assert_span(&again, "c", 1, 12, 22);
    finish(&again);
}

/* Three reviews shared a session of 20 s; each further one takes half. */
static void a_batch_takes_as_long_again(void **state)
{
    (void)state;
    static const char text[] =
        "limits: {sessions: 1, review: none}\n"
        "classes: {review: {batch: {max: 3, marginal: 50%}}}\n"
        "tasks:\n"
        "  - {id: a, run: x, class: review, estimate: 10s}\n"
        "  - {id: b, run: x, class: review, estimate: 10s}\n"
        "  - {id: c, run: x, class: review, estimate: 10s}\n";
    struct sim_fixture sim;
    sim_fixture_init(&sim, text);
    sim_fixture_run(&sim);
    assert_int_equal(sim.result->session_count, 1);
    struct again again;
    begin(&again, text);
    past_replay(&again.past, sim.result);
    settle(&again, 99);
    for (uint32_t ix = 0; ix < 3; ix++) {
        assert_int_equal(again.whatif.replay.tasks[ix].count, 1);
        assert_int_equal(again.whatif.replay.attempts[ix].length_ns,
                         past_ns(10));
    }
    assert_int_equal(again.whatif.replayed, 1);
    replay_same(&again);
    assert_int_equal(again.result->session_count, 1);
    assert_span(&again, "a", 1, 0, 20);
    assert_span(&again, "c", 1, 0, 20);
    finish(&again);
    sim_fixture_release(&sim);
}

/* A task of a batch that must run again, though the session succeeded. */
static void tasks_of_a_batch_have_their_own_outcomes(void **state)
{
    (void)state;
    struct again again;
    begin(&again,
          "limits: {sessions: 1, review: none}\n"
          "classes: {review: {batch: 2}}\n"
          "tasks:\n"
          "  - {id: a, run: x, class: review}\n"
          "  - {id: b, run: x, class: review, retry: {max: 1, backoff: 1s}}\n");
    past_claim(&again.past, 0, "a");
    again.past.history.sessions[0].task_count = 2;
    past_move(&again.past, 0, "b", TASK_STARTING);
    past_end(&again.past, 15, "a", HISTORY_DONE, TASK_DONE);
    past_move(&again.past, 15, "b", TASK_WAITING);
    work(&again, "b", 16, 20);
    settle(&again, 99);
    replay_same(&again);
    assert_span(&again, "a", 1, 0, 15);
    assert_span(&again, "b", 1, 0, 15);
    assert_int_equal(span_of(&again, "b", 1)->end, SIM_END_FAILED);
    assert_span(&again, "b", 2, 16, 20);
    finish(&again);
}

/* Add a fragment to the plan and to its sources. */
static void
add_fragment(struct again *again, const char *file, const char *text)
{
    struct run_history *history = &again->past.history;
    struct plan_source source = {
        .file = file,
        .text = text,
        .len = strlen(text),
        .processors = 4,
    };
    struct plan_errors errors = {0};
    assert_true(plan_add(history->plan, &source, &errors));
    uint32_t count = history->plan->task_count;
    history->tasks =
        mem_resize(history->tasks, count, sizeof(history->tasks[0]));
    for (uint32_t ix = history->source_tasks[history->source_count - 1];
         ix < count;
         ix++) {
        history->tasks[ix] = (struct run_history_task){
            .last_event = HISTORY_NONE,
            .last_session = HISTORY_NONE,
        };
    }
    add_source(history, file, text, count);
}

static void added_tasks_come_later(void **state)
{
    (void)state;
    struct again again;
    begin(&again,
          "limits: {sessions: 2}\npolicy: fifo\ntasks:\n" TASK("a") TASK("b"));
    add_fragment(&again, "more.yaml", "tasks:\n" TASK("c"));
    add_fragment(&again, "added by b", "tasks:\n" TASK("d"));
    add_fragment(&again, "other.yaml", "tasks:\n" TASK("e"));
    past_claim(&again.past, 0, "a");
    past_end(&again.past, 10, "a", HISTORY_DONE, TASK_DONE);
    past_claim(&again.past, 10, "b");
    past_move(&again.past, 12, "c", TASK_READY);
    past_claim(&again.past, 12, "c");
    past_end(&again.past, 20, "b", HISTORY_DONE, TASK_DONE);
    past_move(&again.past, 20, "d", TASK_READY);
    past_claim(&again.past, 20, "d");
    past_end(&again.past, 24, "c", HISTORY_DONE, TASK_DONE);
    past_end(&again.past, 26, "d", HISTORY_DONE, TASK_DONE);
    past_move(&again.past, 40, "e", TASK_READY);
    settle(&again, 99);
    replay_same(&again);
    /* b could have started at once: then d is added earlier, too. */
    assert_span(&again, "b", 1, 0, 10);
    assert_span(&again, "d", 1, 10, 16);
    assert_span(&again, "c", 1, 12, 24);
    assert_int_equal(again.result->span_count, 4); /* e had no session */
    replay_cap(&again, 1, 0);
    assert_span(&again, "b", 1, 10, 20);
    assert_null(span_of(&again, "d", 2));
    assert_makespan(&again, 38);
    finish(&again);
}

static void other_limits_can_be_set(void **state)
{
    (void)state;
    struct again again;
    struct diag diag = {0};
    begin(&again,
          "limits: {sessions: 4}\npolicy: fifo\nresources: {db: 1}\n"
          "tasks:\n"
          "  - {id: a, run: x, uses: {db: 1}}\n"
          "  - {id: b, run: x, uses: {db: 1}}\n");
    work(&again, "a", 0, 10);
    work(&again, "b", 10, 30);
    settle(&again, 99);
    uint32_t db = plan_find_limit(again.past.history.plan, "db");
    struct whatif_limit limit = {.limit = db, .step = 1};
    struct whatif_settings settings = {.limits = &limit, .limit_count = 1};
    replay_same(&again);
    assert_makespan(&again, 30);
    replay(&again, &settings);
    assert_makespan(&again, 20);
    limit = (struct whatif_limit){.limit = db, .percent = 25};
    replay(&again, &settings);
    assert_makespan(&again, 30);
    limit = (struct whatif_limit){.limit = db, .max = PLAN_UNLIMITED};
    replay(&again, &settings);
    assert_makespan(&again, 20);
    limit = (struct whatif_limit){.limit = db, .step = -1};
    assert_int_equal(try_replay(&again, &settings, &diag), ERR_INVALID);
    assert_null(again.result);
    assert_string_equal(diag.text,
                        "limit db has only 1: at least 1 must be left");
    limit = (struct whatif_limit){
        .limit = plan_find_limit(again.past.history.plan, "review"),
        .step = 1,
    };
    assert_int_equal(try_replay(&again, &settings, &diag), ERR_INVALID);
    assert_string_equal(
        diag.text,
        "limit review has a percentage: give a number, not a step");
    finish(&again);
}

/* A random plan of issues and tasks, without batches. */
static void add_random_plan(struct strbuf *out, struct rng *rng)
{
    static const char *const policies[] = {
        "rank",
        "fair",
        "fifo",
        "lookahead",
    };
    strbuf_addf(out,
                "policy: %s\n"
                "limits: {sessions: %u}\n"
                "defaults: {retry: {max: 3, backoff: 3s}}\n"
                "pipelines:\n"
                "  p:\n"
                "    - {stage: implement, run: x, estimate: 30s}\n"
                "    - {stage: gate, run: x, estimate: 5s,\n"
                "       rework: {to: implement, max: 3}}\n"
                "repos: {r: {}, s: {}}\n"
                "groups:\n",
                policies[rng_below(rng, 4)],
                1 + rng_below(rng, 4));
    for (uint32_t ix = 0; ix < 6; ix++) {
        strbuf_addf(out,
                    "  - {id: g%u, pipeline: p, repo: %s}\n",
                    ix,
                    rng_below(rng, 2) == 0 ? "r" : "s");
    }
    strbuf_adds(out, "tasks:\n");
    for (uint32_t ix = 0; ix < 8; ix++) {
        strbuf_addf(out,
                    "  - {id: t%u, run: x, class: %s, estimate: %us",
                    ix,
                    rng_below(rng, 3) == 0 ? "review" : "implement",
                    1 + rng_below(rng, 20));
        if (rng_below(rng, 2) == 0) {
            strbuf_addf(out, ", needs: [g%u]", rng_below(rng, 6));
        }
        strbuf_adds(out, "}\n");
    }
}

/* Add outcomes that need no operator. */
static void add_random_ends(struct sim_fixture *sim, struct rng *rng)
{
    static const char *const ends[] = {"fail", "changes", "checkpoint"};
    for (uint32_t ix = 0; ix < 6; ix++) {
        struct strbuf line = {0};
        strbuf_addf(&line,
                    "%s g%u/gate:%u",
                    ends[rng_below(rng, ARRAY_COUNT(ends))],
                    ix,
                    1 + rng_below(rng, 2));
        sim_fixture_line(sim, line.text);
        strbuf_release(&line);
    }
}

static void check_same(const struct sim_result *one,
                       const struct sim_result *other)
{
    assert_int_equal(one->span_count, other->span_count);
    assert_int_equal(one->makespan_ns, other->makespan_ns);
    assert_int_equal(one->issues.mean_ns, other->issues.mean_ns);
    assert_int_equal(one->issues.half_ns, other->issues.half_ns);
    for (uint32_t ix = 0; ix < one->span_count; ix++) {
        assert_int_equal(one->spans[ix].task, other->spans[ix].task);
        assert_int_equal(one->spans[ix].start_ns, other->spans[ix].start_ns);
        assert_int_equal(one->spans[ix].end_ns, other->spans[ix].end_ns);
        assert_int_equal(one->spans[ix].end, other->spans[ix].end);
    }
}

/* The replay of a simulated run with its settings is that simulation. */
static void simulations_are_replayed_exactly(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct rng rng;
        rng_init(&rng, seed);
        struct strbuf text = {0};
        add_random_plan(&text, &rng);
        struct sim_fixture sim;
        sim_fixture_init(&sim, text.text);
        sim.options.policy = sim.plan->policy;
        sim.options.jitter_percent = 60;
        sim.options.seed = seed;
        add_random_ends(&sim, &rng);
        sim_fixture_run(&sim);
        assert_int_equal(sim.result->left_count, 0);
        struct again again;
        begin(&again, text.text);
        past_replay(&again.past, sim.result);
        settle(&again, 0);
        replay_same(&again);
        check_same(again.result, sim.result);
        finish(&again);
        sim_fixture_release(&sim);
        strbuf_release(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_take_as_long_as_they_did),
        cmocka_unit_test(attempts_come_in_order),
        cmocka_unit_test(a_parked_task_is_retried_as_late),
        cmocka_unit_test(rework_is_done_again),
        cmocka_unit_test(attempts_beyond_the_last_are_done),
        cmocka_unit_test(a_running_run_is_replayed_so_far),
        cmocka_unit_test(refused_and_stopped_sessions_are_left_out),
        cmocka_unit_test(what_failed_fails_again),
        cmocka_unit_test(what_was_skipped_is_skipped),
        cmocka_unit_test(changes_of_the_cap_are_replayed),
        cmocka_unit_test(pauses_and_holds_are_replayed),
        cmocka_unit_test(usage_caps_are_replayed),
        cmocka_unit_test(a_batch_takes_as_long_again),
        cmocka_unit_test(tasks_of_a_batch_have_their_own_outcomes),
        cmocka_unit_test(added_tasks_come_later),
        cmocka_unit_test(other_limits_can_be_set),
        cmocka_unit_test(simulations_are_replayed_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
