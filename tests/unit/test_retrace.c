/* SPDX-License-Identifier: MIT */
/*
 * A scheduler decides, another one is led through what it has decided: both
 * give the same reasons after each pass.
 */
#include "core/retrace.h"

#include "base/duration.h"
#include "base/macros.h"
#include "base/mem.h"
#include "base/rng.h"
#include "plan/load.h"
#include "tests/unit/sched_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char plan_text[] =
    "sluice: 1\n"
    "name: test\n"
    "repos: {r0: {}, r1: {}}\n"
    "limits:\n"
    "  sessions: 3\n"
    "  wide: {max: 2, where: {class: gate}}\n"
    "  places: {max: 2, hold: group}\n"
    "classes: {review: {tier: 1, defer: true, batch: 2}}\n"
    "defaults: {retry: {max: 2, backoff: 2s}}\n"
    "pipelines:\n"
    "  issue:\n"
    "    - {stage: implement, run: x}\n"
    "    - {stage: gate, run: x, rework: {to: implement, max: 2}}\n"
    "    - {stage: review, run: x, rework: {to: implement, max: 2}}\n"
    "groups:\n"
    "  - {id: a, repo: r0, pipeline: issue}\n"
    "  - {id: b, repo: r0, pipeline: issue}\n"
    "  - {id: c, repo: r1, pipeline: issue, needs: [a]}\n"
    "  - {id: d, repo: r1, pipeline: issue}\n"
    "tasks:\n"
    "  - {id: alone, run: x}\n"
    "  - {id: last, run: x, needs: [c, alone]}\n"
    "  - {id: idle, run: x, class: review}\n";

/* A plan in a scheduler. */
struct side {
    struct sched *sched;
    struct load *load;
    struct load_run *run;
};

struct twins {
    struct plan *plan;
    struct side decides;
    struct side follows;
    struct retrace retrace;
    uint32_t told;
    bool *leads; /* of each task: its start is the newest effect */
    int64_t now_ns;
};

static void on_changed(void *ctx, struct task_id task)
{
    struct twins *twins = ctx;
    assert_in_range(task.v, 0, twins->plan->task_count - 1);
    twins->told++;
}

static void open_side(struct side *side, const struct plan *plan)
{
    struct diag diag = {0};
    side->sched = sched_new();
    side->load = load_new(side->sched);
    assert_int_equal(load_plan(side->load, 0, plan, NULL, &side->run, &diag),
                     ERR_OK);
}

static void open_twins(struct twins *twins)
{
    struct plan_source source = {
        .file = "plan.yaml",
        .text = plan_text,
        .len = strlen(plan_text),
        .processors = 4,
    };
    struct plan_errors errors = {0};
    *twins = (struct twins){0};
    if (!plan_read(&twins->plan, &source, &errors)) {
        fail_msg("%u: %s", errors.items[0].mark.line, errors.items[0].text);
    }
    open_side(&twins->decides, twins->plan);
    open_side(&twins->follows, twins->plan);
    twins->leads = mem_zalloc(twins->plan->task_count, sizeof(bool));
    twins->retrace = (struct retrace){twins->follows.sched, on_changed, twins};
    retrace_begin(&twins->retrace);
}

static void close_twins(struct twins *twins)
{
    load_free(twins->decides.load);
    sched_free(twins->decides.sched);
    load_free(twins->follows.load);
    sched_free(twins->follows.sched);
    plan_free(twins->plan);
    mem_free(twins->leads);
}

/* A pass of the one that decides, recorded for the other one. */
static void take_pass(struct twins *twins)
{
    struct sched *sched = twins->decides.sched;
    struct sched_effect effect;
    while (sched_next_effect(sched, &effect)) {
        if (effect.type == EFFECT_START) {
            twins->leads[effect.task.v] = true;
        } else if (effect.type == EFFECT_TASK) {
            twins->told = 0;
            retrace_task(&twins->retrace,
                         twins->now_ns,
                         effect.task,
                         sched_task(sched, effect.task).state,
                         twins->leads[effect.task.v]);
            assert_true(twins->told > 0);
            twins->leads[effect.task.v] = false;
        }
    }
    retrace_settle(&twins->retrace);
}

/* Whether a limit keeps a task, whoever is before it there. */
static bool is_limited(enum why_code code)
{
    return code == WHY_LIMIT || code == WHY_BEHIND || code == WHY_DEFERRED;
}

static void compare(struct twins *twins)
{
    uint32_t count = twins->plan->task_count;
    for (uint32_t ix = 0; ix < count; ix++) {
        struct task_id id = {ix};
        struct sched_task a = sched_task(twins->decides.sched, id);
        struct sched_task b = sched_task(twins->follows.sched, id);
        assert_int_equal(a.state, b.state);
        assert_int_equal(a.unmet, b.unmet);
        assert_int_equal(a.held, b.held);
        assert_int_equal(a.group_open, b.group_open);
        if (a.state != TASK_READY || a.held) {
            continue;
        }
        struct why decided = why_task(twins->decides.sched, id);
        struct why found = why_limited(twins->follows.sched, id);
        assert_in_range(retrace_kind(twins->follows.sched, id),
                        0,
                        retrace_kind_count(twins->follows.sched) - 1);
        assert_int_equal(is_limited(found.code), is_limited(decided.code));
        assert_int_equal(found.code == WHY_DEFERRED,
                         decided.code == WHY_DEFERRED);
        assert_int_equal(found.limit.v, decided.limit.v);
        assert_int_equal(found.code == WHY_PAUSED, decided.code == WHY_PAUSED);
    }
    for (uint32_t ix = 0; ix < twins->plan->limit_count; ix++) {
        assert_int_equal(sched_limit_used(twins->decides.sched,
                                          load_limit(twins->decides.run, ix)),
                         sched_limit_used(twins->follows.sched,
                                          load_limit(twins->follows.run, ix)));
    }
}

/* End a session at random, or start it first. */
static void move_session(struct twins *twins, struct rng *rng)
{
    static const enum sched_outcome outcomes[] = {
        OUTCOME_DONE,
        OUTCOME_DONE,
        OUTCOME_DONE,
        OUTCOME_FAILED,
        OUTCOME_CHANGES,
        OUTCOME_CHECKPOINT,
    };
    uint32_t count;
    const uint32_t *in_flight = sched_in_flight(twins->decides.sched, &count);
    struct sched_event event = {.now_ns = twins->now_ns};
    if (count > 0) {
        struct task_id task = {in_flight[rng_below(rng, count)]};
        struct sched_task view = sched_task(twins->decides.sched, task);
        event.type = view.state == TASK_STARTING ? EVENT_STARTED : EVENT_ENDED;
        event.task = task;
        event.token = view.token;
        event.outcomes = &outcomes[rng_below(rng, ARRAY_COUNT(outcomes))];
        event.outcome_count = 1;
        event.retry_at_ns = SCHED_NEVER;
    }
    assert_int_equal(sched_apply(twins->decides.sched, &event), ERR_OK);
}

/* An order, given to both. */
static void give_order(struct twins *twins, struct rng *rng)
{
    struct task_id task = {rng_below(rng, twins->plan->task_count)};
    bool held = sched_task(twins->decides.sched, task).held;
    bool paused =
        sched_run(twins->decides.sched, load_run_id(twins->decides.run)).paused;
    struct sched_event event = {
        .type = held ? EVENT_RELEASE : EVENT_HOLD,
        .now_ns = twins->now_ns,
        .task = task,
    };
    if (rng_below(rng, 3) == 0) {
        event.type = paused ? EVENT_RESUME : EVENT_PAUSE;
        event.run = load_run_id(twins->decides.run);
        assert_int_equal(sched_apply(twins->decides.sched, &event), ERR_OK);
        assert_int_equal(sched_apply(twins->follows.sched, &event), ERR_OK);
    } else if (sched_apply(twins->decides.sched, &event) == ERR_OK) {
        retrace_hold(&twins->retrace, task, !held);
    }
}

static void reasons_are_those_of_the_scheduler(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct rng rng;
        struct twins twins;
        rng_init(&rng, seed);
        open_twins(&twins);
        take_pass(&twins);
        compare(&twins);
        for (uint32_t step = 0; step < 80; step++) {
            twins.now_ns += SECOND_NS;
            if (rng_below(&rng, 8) == 0) {
                give_order(&twins, &rng);
            } else {
                move_session(&twins, &rng);
            }
            take_pass(&twins);
            compare(&twins);
        }
        close_twins(&twins);
    }
}

/* Whatever a damaged store says. */
static void any_record_does_no_harm(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct rng rng;
        struct twins twins;
        rng_init(&rng, seed);
        open_twins(&twins);
        for (uint32_t step = 0; step < 200; step++) {
            struct task_id task = {rng_below(&rng, twins.plan->task_count)};
            twins.now_ns += rng_below(&rng, 2);
            if (rng_below(&rng, 8) == 0) {
                retrace_hold(&twins.retrace, task, rng_below(&rng, 2) == 0);
            } else {
                retrace_task(&twins.retrace,
                             twins.now_ns,
                             task,
                             (enum task_state)rng_below(&rng, TASK_STATE_COUNT),
                             rng_below(&rng, 2) == 0);
            }
            retrace_settle(&twins.retrace);
            struct sched_task view = sched_task(twins.follows.sched, task);
            if (view.state == TASK_READY && !view.held) {
                (void)why_limited(twins.follows.sched, task);
            }
        }
        for (uint32_t ix = 0; ix < twins.plan->task_count; ix++) {
            retrace_task(&twins.retrace,
                         twins.now_ns,
                         (struct task_id){ix},
                         TASK_CANCELLED,
                         false);
        }
        retrace_settle(&twins.retrace);
        for (uint32_t ix = 0; ix < twins.plan->limit_count; ix++) {
            assert_int_equal(
                sched_limit_used(twins.follows.sched,
                                 load_limit(twins.follows.run, ix)),
                0);
        }
        close_twins(&twins);
    }
}

static void ignore(void *ctx, struct task_id task)
{
    (void)ctx;
    (void)task;
}

/* Whatever state the tasks of the scheduler are in when it begins. */
static void nothing_is_left_of_what_was_before(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    struct task_id a = fixture_task(&f, "a", "");
    f.spec.not_before_ns = 10 * MINUTE;
    struct task_id early = fixture_task(&f, "early", "");
    assert_int_equal(sched_next_timer(f.sched), 10 * MINUTE);
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_end(&f, "a", OUTCOME_BLOCKED);
    struct retrace retrace = {f.sched, ignore, NULL};
    retrace_begin(&retrace);
    assert_int_equal(sched_next_timer(f.sched), SCHED_NEVER);
    /* What was not told of is not there. */
    assert_int_equal(fixture_state(&f, "a"), TASK_SKIPPED);
    assert_int_equal(fixture_state(&f, "early"), TASK_SKIPPED);
    retrace_task(&retrace, SECOND, early, TASK_READY, false);
    retrace_task(&retrace, SECOND, a, TASK_READY, false);
    retrace_settle(&retrace);
    assert_int_equal(fixture_why(&f, "a").code, WHY_STARTABLE);
    assert_int_equal(fixture_why(&f, "early").code, WHY_STARTABLE);
    fixture_release(&f);
}

static void note_task(void *ctx, struct task_id task)
{
    uint64_t *told = ctx;
    *told |= UINT64_C(1) << task.v;
}

/* Those that a task releases, or keeps waiting, may have another reason. */
static void dependents_are_told_of_what_they_need(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    struct task_id need = fixture_task(&f, "need", "");
    struct task_id after = fixture_task(&f, "after", "need");
    fixture_task(&f, "other", "");
    uint64_t told = 0;
    struct retrace retrace = {f.sched, note_task, &told};
    retrace_begin(&retrace);
    retrace_task(&retrace, SECOND, after, TASK_WAITING, false);
    told = 0;
    retrace_task(&retrace, SECOND, need, TASK_READY, false);
    assert_int_equal(told, 1);
    retrace_task(&retrace, SECOND, need, TASK_DONE, false);
    assert_int_equal(told, 3);
    told = 0;
    retrace_task(&retrace, SECOND, need, TASK_READY, false);
    assert_int_equal(told, 3);
    fixture_release(&f);
}

static void who_leads_a_session_is_known(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    struct task_id first = fixture_task(&f, "a", "");
    struct task_id second = fixture_task(&f, "b", "");
    struct retrace retrace = {f.sched, ignore, NULL};
    retrace_begin(&retrace);
    assert_false(retrace_leads(f.sched, first));
    retrace_task(&retrace, SECOND, first, TASK_STARTING, true);
    retrace_task(&retrace, SECOND, second, TASK_STARTING, false);
    assert_true(retrace_leads(f.sched, first));
    assert_false(retrace_leads(f.sched, second)); /* it shares the session */
    assert_int_equal(fixture_used(&f, 0), 1);
    retrace_task(&retrace, 2 * SECOND, first, TASK_DONE, false);
    assert_false(retrace_leads(f.sched, first));
    assert_int_equal(fixture_used(&f, 0), 0);
    fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reasons_are_those_of_the_scheduler),
        cmocka_unit_test(any_record_does_no_harm),
        cmocka_unit_test(nothing_is_left_of_what_was_before),
        cmocka_unit_test(dependents_are_told_of_what_they_need),
        cmocka_unit_test(who_leads_a_session_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
