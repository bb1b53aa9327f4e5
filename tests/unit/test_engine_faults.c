/* SPDX-License-Identifier: MIT */
/*
 * Every call of the store fails once, in a run that has all that is stored:
 * the engine reports it, and a retry or the next scheduler loses nothing.
 */
#include "base/mem.h"
#include "tests/unit/engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/*
 * a fails once. b adds a task and is refused once. c waits for approval, and
 * the sync hook adds another task.
 */
static const char plan[] =
    "sluice: 1\n"
    "name: wave\n"
    "budget: {tokens: 1000}\n"
    "sync: {every: 2, run: sync}\n"
    "usage: {run: meters, steps: {50: 1}}\n"
    "hooks: {approval: h, done: h}\n"
    "tasks:\n"
    "  - {id: a, run: x, retry: {max: 1, backoff: 1s}}\n"
    "  - {id: b, run: x, provider: max}\n"
    "  - {id: c, run: x, approve: true, needs: [a, b]}\n";

/* What the machine knows of an order. */
struct job {
    uint64_t token;
    bool ended;
    int code;
};

/* A run under faults. */
struct trial {
    struct rig rig;
    struct job jobs[64];
    uint32_t job_count;
    uint32_t seen;     /* orders */
    uint32_t crashes;  /* schedulers that gave up */
    uint32_t troubles; /* writes that were repeated */
};

static struct job *find_job(struct trial *trial, uint64_t token)
{
    for (uint32_t ix = 0; ix < trial->job_count; ix++) {
        if (trial->jobs[ix].token == token) {
            return &trial->jobs[ix];
        }
    }
    return NULL;
}

/* Report the end of an order. */
static void report_end(struct trial *trial, const struct rig_order *order)
{
    struct rig *rig = &trial->rig;
    struct job *job = find_job(trial, order->token);
    const char *task = order->task;
    if (strcmp(task, ".sync") == 0) {
        rig_print(rig, task, 0, "tasks: [{id: s, run: x}]");
    } else if (strcmp(task, ".usage") == 0) {
        rig_print(rig, task, 0, "[{'name':'m','percent':10}]");
    } else if (task[0] == '.') {
        rig_print(rig, task, 0, NULL);
    } else if (strcmp(task, "b") == 0) {
        rig_end(rig,
                task,
                job->code,
                job->code == 0 ? "{'add':{'tasks':[{'id':'m','run':'x'}]},"
                                 "'usage':{'input_tokens':5}}"
                               : NULL);
    } else {
        rig_end(rig, task, job->code, NULL);
    }
}

/* Run the next order that has not run, unless it is for a session that has. */
static bool do_order(struct trial *trial)
{
    const struct rig *rig = &trial->rig;
    if (trial->seen == rig->order_count) {
        return false;
    }
    const struct rig_order order = rig->orders[trial->seen++];
    struct job *job = find_job(trial, order.token);
    if (job == NULL) {
        job = &trial->jobs[trial->job_count++];
        assert_true(trial->job_count < ARRAY_COUNT(trial->jobs));
        *job = (struct job){.token = order.token};
        bool first = strcmp(order.name, "1") == 0;
        job->code = first && strcmp(order.task, "a") == 0   ? 1
                    : first && strcmp(order.task, "b") == 0 ? 75
                                                            : 0;
    }
    if (order.want == WORK_RUN) {
        job->ended = true;
        report_end(trial, &order);
    }
    return true;
}

/* Answer what the engine asks after a start: for programs it does so by
 * ordering them again. */
static void answer(struct trial *trial)
{
    struct rig *rig = &trial->rig;
    struct engine_session_view session;
    uint64_t tokens[8];
    uint32_t count = engine_session_count(rig->engine);
    assert_true(count <= ARRAY_COUNT(tokens));
    for (uint32_t ix = 0; ix < count; ix++) {
        tokens[ix] = engine_session(rig->engine, ix).token;
    }
    for (uint32_t ix = 0; ix < count; ix++) {
        const struct job *job = find_job(trial, tokens[ix]);
        uint32_t at = rig->order_count;
        while (job != NULL && rig->orders[at - 1].token != tokens[ix]) {
            at--;
        }
        if (!engine_find_session(rig->engine, tokens[ix], &session)) {
            continue; /* a failed scheduler has none */
        }
        if (job != NULL && job->ended) {
            report_end(trial, &rig->orders[at - 1]);
        } else {
            engine_reported(rig->engine,
                            &(struct work_report){
                                .token = tokens[ix],
                                .type = WORK_UNKNOWN,
                            });
            rig_settle(rig);
        }
    }
}

/* Start a scheduler; it may fail once, with the fault. */
static void start(struct trial *trial)
{
    struct rig *rig = &trial->rig;
    struct diag diag = {0};
    trial->seen = rig->order_count;
    enum err err = rig_try_start(rig, NULL, &diag);
    if (err != ERR_OK) {
        assert_int_equal(err, rig->fault);
        assert_non_null(strstr(diag.text, "store call"));
        trial->crashes++;
        rig_start(rig);
    }
    answer(trial);
}

/* Notice a fault: of a lasting one this scheduler dies. */
static bool notice(struct trial *trial)
{
    struct rig *rig = &trial->rig;
    const char *text;
    if (engine_failed(rig->engine, &text) != ERR_OK) {
        assert_int_equal(engine_failed(rig->engine, &text), rig->fault);
        assert_non_null(strstr(text, "store call"));
        assert_int_equal(engine_wait_ns(rig->engine), SCHED_NEVER);
        trial->crashes++;
        rig_stop(rig);
        start(trial);
        return true;
    }
    if (engine_trouble(rig->engine)[0] != '\0') {
        assert_non_null(strstr(engine_trouble(rig->engine), "store call"));
        assert_false(engine_is_settled(rig->engine));
        trial->troubles++;
        rig_wait(rig, SECOND_NS);
        assert_string_equal(engine_trouble(rig->engine), "");
        return true;
    }
    return false;
}

static enum task_state state_of(const struct rig *rig, const char *task)
{
    uint32_t ix = plan_find_task(engine_plan(rig->engine, 0), task);
    return ix == PLAN_NONE
               ? TASK_WAITING
               : sched_task(engine_sched(rig->engine),
                            load_task(engine_loaded(rig->engine, 0), ix))
                     .state;
}

static bool is_over(const struct rig *rig)
{
    return engine_run_count(rig->engine) > 0 &&
           engine_run(rig->engine, 0).finished &&
           engine_notification_count(rig->engine, 0) == 0;
}

/* Play the run to its end. */
static void play(struct trial *trial)
{
    enum { STEPS_MAX = 300 };
    struct rig *rig = &trial->rig;
    start(trial);
    for (uint32_t step = 0; notice(trial) || !is_over(rig); step++) {
        assert_true(step < STEPS_MAX);
        if (engine_run_count(rig->engine) == 0) {
            (void)rig_offer(rig, plan, ",'key':'submit'");
        } else if (state_of(rig, "c") == TASK_READY) {
            (void)rig_ask(rig, "{'verb':'approve','task':'c'}");
        } else if (!do_order(trial)) {
            rig_wait(rig, SECOND_NS);
        }
    }
}

/* Require the end of a run without faults. */
static void check(const struct trial *trial)
{
    static const char *const tasks[] = {"a", "b", "c", "m", "s"};
    const struct rig *rig = &trial->rig;
    const struct plan *read = engine_plan(rig->engine, 0);
    for (size_t ix = 0; ix < ARRAY_COUNT(tasks); ix++) {
        uint32_t task = plan_find_task(read, tasks[ix]);
        assert_int_equal(state_of(rig, tasks[ix]), TASK_DONE);
        /* No fault costs an attempt, and none runs twice. */
        assert_int_equal(engine_attempt_number(rig->engine, 0, task),
                         ix < 2 ? 2 : 1);
    }
    assert_int_equal(engine_session_count(rig->engine), 0);
    assert_int_equal(engine_run_count(rig->engine), 1);
    assert_int_equal(engine_limit_spent(rig->engine,
                                        0,
                                        plan_find_limit(read, "tokens budget")),
                     5);
}

/* Let each call fail, until there are no more. */
static void fail_each(enum err fault, bool unnoticed)
{
    bool reached = true;
    uint32_t crashes = 0;
    uint32_t troubles = 0;
    for (uint32_t n = 1; reached; n++) {
        struct trial trial = {
            .rig = {.fail_at = n, .fault = fault, .unnoticed = unnoticed},
        };
        play(&trial);
        check(&trial);
        reached = trial.rig.calls >= n;
        crashes += trial.crashes;
        troubles += trial.troubles;
        assert_true(!reached || trial.crashes + trial.troubles == 1);
        assert_true(reached || n > 50);
        rig_release(&trial.rig);
    }
    assert_true(crashes > 0); /* while loading */
    assert_true(fault == ERR_IO ? troubles == 0 : troubles > 10);
}

static void a_failed_disk_ends_the_scheduler_and_loses_nothing(void **state)
{
    (void)state;
    fail_each(ERR_IO, false);
}

static void a_commit_that_went_unnoticed_is_found(void **state)
{
    (void)state;
    fail_each(ERR_IO, true);
}

static void a_full_disk_is_waited_for(void **state)
{
    (void)state;
    fail_each(ERR_LIMIT, false);
}

static void a_busy_store_is_waited_for(void **state)
{
    (void)state;
    fail_each(ERR_BUSY, false);
}

/* Whoever was replaced writes nothing, and says why it ends. */
static void a_replaced_scheduler_stops(void **state)
{
    (void)state;
    struct rig rig = {0};
    rig_start(&rig);
    rig_submit(&rig, plan);
    struct rig next = {.db = rig.db};
    store_memory_release_lock(rig.db);
    rig_start(&next);
    (void)rig_ask(&rig, "{'verb':'pause'}");
    const char *text;
    assert_int_equal(engine_failed(rig.engine, &text), ERR_CONFLICT);
    assert_non_null(strstr(text, "another process has become the scheduler"));
    assert_null(rig.answer);
    rig_print(&rig, ".usage", 0, "[]"); /* ignored */
    engine_pass(rig.engine);
    assert_null(rig.batch);
    assert_int_equal(engine_failed(rig.engine, &text), ERR_CONFLICT);
    rig_expect(&next, "{'verb':'pause'}", "run wave is paused");
    rig_stop(&rig);
    rig.db = NULL; /* the other one's */
    rig_release(&rig);
    rig_release(&next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_disk_ends_the_scheduler_and_loses_nothing),
        cmocka_unit_test(a_commit_that_went_unnoticed_is_found),
        cmocka_unit_test(a_full_disk_is_waited_for),
        cmocka_unit_test(a_busy_store_is_waited_for),
        cmocka_unit_test(a_replaced_scheduler_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
