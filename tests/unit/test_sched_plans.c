/* SPDX-License-Identifier: MIT */
/*
 * Plans of whole runs: several runs at once, with goals, barriers and bad
 * estimates, and runs that are too large to be planned. Each is run to its end.
 */
#include "tests/unit/sched_fixture.h"

#include "base/rng.h"
#include "core/idmap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { SESSIONS_MAX = 256 };

struct session {
    struct task_id task;
    uint64_t token;
    int64_t end_ns;
};

/* A scheduler in virtual time. */
struct world {
    struct fixture f;
    struct rng rng;
    struct session sessions[SESSIONS_MAX];
    uint32_t session_count;
    uint32_t effort;  /* of each call of sched_plan() */
    bool hasty;       /* one call before each pass, more when idle */
    uint32_t percent; /* of their estimates that sessions take; 0: 50 to 150 */
    uint64_t starts;  /* a number that stands for all starts and their times */
};

static void plan_run(struct fixture *f,
                     struct sched_run_spec spec,
                     const struct limit_spec *limits,
                     uint32_t count)
{
    spec.limits = limits;
    spec.limit_count = count;
    f->run = sched_add_run(f->sched, &spec, &f->first_limit);
    for (uint32_t ix = 0; ix < count; ix++) {
        f->limits[f->limit_count++].v = f->first_limit.v + ix;
    }
}

static void cap_run(struct fixture *f, struct sched_run_spec spec, int64_t cap)
{
    struct limit_spec limit = fixture_max(cap);
    plan_run(f, spec, &limit, 1);
}

/* Add tasks in groups of up to three, one after the other; some need tasks of
 * other groups. */
static void draw_tasks(struct world *w, uint32_t count)
{
    struct fixture *f = &w->f;
    uint32_t before = sched_task_count(f->sched);
    for (uint32_t ix = 0; ix < count; ix++) {
        struct sched_need needs[2];
        uint32_t need_count = 0;
        uint32_t task = before + ix;
        if (ix % 3 == 0) {
            f->spec.group = fixture_group(f, 0, 0);
        } else {
            needs[need_count++] = (struct sched_need){task, task - 1, 0};
        }
        if (ix > 3 && rng_below(&w->rng, 4) == 0) {
            uint32_t need = before + rng_below(&w->rng, ix - 3);
            needs[need_count++] = (struct sched_need){task, need, 0};
        }
        f->spec.estimate_ns = (1 + rng_below(&w->rng, 60)) * MINUTE;
        struct sched_addition addition = {
            .run = f->run,
            .tasks = &f->spec,
            .task_count = 1,
            .needs = needs,
            .need_count = need_count,
        };
        struct sched_rejection rejection;
        assert_int_equal(sched_add(f->sched, f->now_ns, &addition, &rejection),
                         ERR_OK);
    }
    f->spec.group = ID_NONE;
}

static void begin_session(struct world *w, const struct sched_effect *start)
{
    int64_t estimate_ns = sched_task(w->f.sched, start->task).estimate_ns;
    uint32_t percent =
        w->percent > 0 ? w->percent : 50 + rng_below(&w->rng, 101);
    assert_true(w->session_count < SESSIONS_MAX);
    w->sessions[w->session_count++] = (struct session){
        .task = start->task,
        .token = start->token,
        .end_ns = w->f.now_ns + estimate_ns / 100 * percent,
    };
    w->starts = idmap_hash(w->starts, start->task.v);
    w->starts = idmap_hash(w->starts, (uint64_t)w->f.now_ns);
    struct sched_event event = {
        .type = EVENT_STARTED,
        .now_ns = w->f.now_ns,
        .task = start->task,
        .token = start->token,
    };
    assert_int_equal(sched_apply(w->f.sched, &event), ERR_OK);
}

static void plan(struct world *w)
{
    if (w->hasty) {
        (void)sched_plan(w->f.sched, w->effort);
        return;
    }
    while (sched_plan(w->f.sched, w->effort)) {
    }
}

/* Take passes until nothing starts; return the number of barriers. */
static uint32_t take_passes(struct world *w)
{
    uint32_t barriers = 0;
    struct sched_effect effects[SESSIONS_MAX];
    uint32_t count = 1;
    while (count > 0) {
        count = 0;
        plan(w);
        while (sched_next_effect(w->f.sched, &effects[count])) {
            enum sched_effect_type type = effects[count].type;
            count += type == EFFECT_START || type == EFFECT_BARRIER ? 1 : 0;
            assert_true(count < SESSIONS_MAX);
        }
        for (uint32_t ix = 0; ix < count; ix++) {
            if (effects[ix].type == EFFECT_START) {
                begin_session(w, &effects[ix]);
                continue;
            }
            struct sched_event done = {
                .type = EVENT_BARRIER_DONE,
                .now_ns = w->f.now_ns,
                .run = effects[ix].run,
            };
            assert_int_equal(sched_apply(w->f.sched, &done), ERR_OK);
            barriers++;
        }
    }
    sched_verify(w->f.sched);
    return barriers;
}

/* Go to the next end or timer; return false if there is none. */
static bool go_on(struct world *w)
{
    int64_t at_ns = sched_next_timer(w->f.sched);
    for (uint32_t ix = 0; ix < w->session_count; ix++) {
        int64_t end_ns = w->sessions[ix].end_ns;
        at_ns = end_ns < at_ns ? end_ns : at_ns;
    }
    if (at_ns == SCHED_NEVER) {
        return false;
    }
    if (w->hasty && w->f.now_ns / MINUTE % 3 == 0) {
        (void)sched_plan_more(w->f.sched, w->effort);
    }
    fixture_pass(&w->f, at_ns > w->f.now_ns ? at_ns - w->f.now_ns : 0);
    for (uint32_t ix = w->session_count; ix-- > 0;) {
        struct session session = w->sessions[ix];
        if (session.end_ns <= at_ns) {
            w->sessions[ix] = w->sessions[--w->session_count];
            fixture_end_id(&w->f, session.task, OUTCOME_DONE);
        }
    }
    return true;
}

/* Run all to its end: every task is done. Return the number of barriers. */
static uint32_t finish(struct world *w)
{
    uint32_t barriers = 0;
    do {
        barriers += take_passes(w);
    } while (go_on(w));
    for (uint32_t ix = 0; ix < sched_task_count(w->f.sched); ix++) {
        struct sched_task task = sched_task(w->f.sched, (struct task_id){ix});
        assert_int_equal(task.state, TASK_DONE);
    }
    return barriers;
}

static const struct sched_run_spec planned = {
    .policy = SCHED_LOOKAHEAD,
    .schedules = 300,
};
static const struct sched_run_spec by_rank = {.policy = SCHED_RANK};
static const struct sched_run_spec for_many = {
    .policy = SCHED_LOOKAHEAD,
    .goal = SCHED_FINISH_MANY,
    .schedules = 300,
};

static void begin(struct world *w, uint64_t seed)
{
    *w = (struct world){.effort = UINT32_MAX, .percent = 100};
    rng_init(&w->rng, seed);
    fixture_init(&w->f);
}

/* ---- runs to the end ---- */

static uint64_t run_three(uint64_t seed, uint32_t effort, uint32_t percent)
{
    struct world w;
    begin(&w, seed);
    w.effort = effort;
    w.hasty = effort < UINT32_MAX;
    w.percent = percent;
    cap_run(&w.f, for_many, 2);
    draw_tasks(&w, 30);
    cap_run(&w.f, by_rank, 2);
    draw_tasks(&w, 9);
    cap_run(&w.f, planned, 3);
    draw_tasks(&w, 30);
    (void)finish(&w);
    while (sched_plan_more(w.f.sched, effort)) {
    }
    assert_false(sched_can_plan_more(w.f.sched));
    uint64_t starts = w.starts;
    fixture_release(&w.f);
    return starts;
}

static void runs_beside_others_come_to_their_end(void **state)
{
    (void)state;
    static const uint32_t percents[] = {100, 0, 190, 300};
    for (uint64_t seed = 1; seed <= 12; seed++) {
        uint32_t effort = seed % 3 == 0 ? UINT32_MAX : 500 * (uint32_t)seed;
        uint32_t percent = percents[seed % 4];
        uint64_t starts = run_three(seed, effort, percent);
        assert_int_equal(starts, run_three(seed, effort, percent));
    }
}

/* An old order can have a task before one that it has come to need. */
static void new_needs_of_old_tasks_are_planned_for(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct world w;
        begin(&w, seed);
        cap_run(&w.f, seed % 2 == 0 ? planned : for_many, 2);
        draw_tasks(&w, 15);
        plan(&w);
        draw_tasks(&w, 6);
        for (uint32_t ix = 0; ix < 5; ix++) {
            struct sched_need need = {3 * ix, 15 + ix, SCHED_ON_DONE};
            struct sched_addition addition = {
                .run = w.f.run,
                .needs = &need,
                .need_count = 1,
            };
            struct sched_rejection rejection;
            enum err err = sched_add(w.f.sched, 0, &addition, &rejection);
            assert_true(err == ERR_OK || rejection.code == REJECTION_CYCLE);
            sched_rejection_release(&rejection);
        }
        (void)finish(&w);
        fixture_release(&w.f);
    }
}

static uint64_t run_sliced(uint64_t seed, uint32_t effort)
{
    struct world w;
    begin(&w, seed);
    w.effort = effort;
    cap_run(&w.f, planned, 3);
    draw_tasks(&w, 40);
    (void)finish(&w);
    uint64_t starts = w.starts;
    fixture_release(&w.f);
    return starts;
}

static void a_search_in_slices_finds_the_same(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        assert_int_equal(run_sliced(seed, 500), run_sliced(seed, UINT32_MAX));
    }
}

/* Mean time in which the groups of a run are done, with its goal. */
static int64_t mean_group(uint64_t seed, struct sched_run_spec spec)
{
    struct world w;
    begin(&w, seed);
    cap_run(&w.f, spec, 3);
    draw_tasks(&w, 60);
    int64_t sum_ns = 0;
    int64_t ends_ns[20] = {0};
    do {
        (void)take_passes(&w);
        for (uint32_t ix = 0; ix < w.session_count; ix++) {
            uint32_t group = w.sessions[ix].task.v / 3;
            int64_t end_ns = w.sessions[ix].end_ns;
            ends_ns[group] = end_ns > ends_ns[group] ? end_ns : ends_ns[group];
        }
    } while (go_on(&w));
    for (uint32_t ix = 0; ix < 20; ix++) {
        sum_ns += ends_ns[ix];
    }
    fixture_release(&w.f);
    return sum_ns / 20;
}

static void the_goal_decides_what_is_better(void **state)
{
    (void)state;
    int64_t all_ns = 0;
    int64_t many_ns = 0;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        all_ns += mean_group(seed, planned);
        many_ns += mean_group(seed, for_many);
    }
    assert_true(many_ns < all_ns);
}

static void a_run_with_barriers_is_planned(void **state)
{
    (void)state;
    for (uint32_t drain = 0; drain < 2; drain++) {
        struct world w;
        begin(&w, 7);
        struct sched_run_spec spec = planned;
        spec.sync_every = 4;
        spec.sync_drain = drain > 0;
        cap_run(&w.f, spec, 3);
        draw_tasks(&w, 21);
        assert_int_equal(finish(&w), 5);
        fixture_release(&w.f);
    }
}

/* More tasks than a search draws from, and than it tries all candidates of. */
static void a_large_run_is_planned_with_less_effort(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 3);
    w.percent = 120;
    cap_run(&w.f, planned, 8);
    draw_tasks(&w, 60);
    (void)fixture_tasks(&w.f, 120);
    (void)finish(&w);
    fixture_release(&w.f);
}

/* ---- sizes ---- */

static void hold_and_release(struct fixture *f, uint32_t times)
{
    for (uint32_t ix = 0; ix < times; ix++) {
        struct sched_event event = {
            .type = ix % 2 == 0 ? EVENT_HOLD : EVENT_RELEASE,
            .now_ns = f->now_ns,
            .task = {0},
        };
        assert_int_equal(sched_apply(f->sched, &event), ERR_OK);
    }
}

/* What a search costs is saved up, event by event. */
static void a_search_of_many_tasks_waits_for_its_turn(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 4);
    struct sched_run_spec spec = for_many;
    spec.schedules = 500;
    cap_run(&w.f, spec, 4);
    w.f.spec.estimate_ns = 3 * MINUTE;
    fixture_task(&w.f, "a", "");
    draw_tasks(&w, 3);
    plan(&w);
    hold_and_release(&w.f, 20); /* more than a whole search costs */
    assert_true(sched_plan(w.f.sched, 1));
    plan(&w);
    (void)fixture_tasks(&w.f, 590);
    assert_false(sched_plan(w.f.sched, 1)); /* too dear after one event */
    hold_and_release(&w.f, 8);
    assert_false(sched_plan(w.f.sched, 1));
    hold_and_release(&w.f, 2);
    (void)sched_plan(w.f.sched, 1);
    hold_and_release(&w.f, 2);
    assert_false(sched_plan(w.f.sched, 1)); /* it has been spent */
    fixture_release(&w.f);
}

/* Add what is described in test_sched_lookahead.c: c is held for b. All but c
 * are of this provider. */
static void
add_held_by(struct fixture *f, uint32_t resource, struct provider_id provider)
{
    static const struct {
        const char *name;
        const char *needs;
        int64_t minutes;
        uint32_t units;
    } tasks[] = {{"a", "", 5, 1},
                 {"b", "a", 10, 2},
                 {"c", "", 8, 1},
                 {"d", "b", 10, 1}};
    for (uint32_t ix = 0; ix < 4; ix++) {
        struct sched_use use = {f->limits[resource], tasks[ix].units};
        f->spec.uses = &use;
        f->spec.use_count = 1;
        f->spec.estimate_ns = tasks[ix].minutes * MINUTE;
        f->spec.provider = ix == 2 ? f->provider : provider;
        fixture_task(f, tasks[ix].name, tasks[ix].needs);
    }
    f->spec.provider = f->provider;
    f->spec.uses = NULL;
    f->spec.use_count = 0;
}

static void add_held(struct fixture *f, uint32_t resource)
{
    add_held_by(f, resource, f->provider);
}

static void resource_run(struct fixture *f)
{
    struct limit_spec limits[] = {fixture_max(9), fixture_max(2)};
    limits[1].resource = true;
    plan_run(f, planned, limits, 2);
}

static void a_run_that_has_grown_too_large_goes_by_rank(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 5);
    resource_run(&w.f);
    add_held(&w.f, 1);
    plan(&w);
    assert_string_equal(fixture_run_pass(&w.f), "a");
    assert_int_equal(fixture_why(&w.f, "c").code, WHY_PLANNED);
    w.f.spec.estimate_ns = SECOND;
    (void)fixture_tasks(&w.f, 2050);
    assert_false(sched_plan(w.f.sched, UINT32_MAX));
    (void)fixture_run_pass(&w.f);
    assert_int_equal(fixture_state(&w.f, "c"), TASK_STARTING);
    assert_false(sched_plan(w.f.sched, UINT32_MAX));
    fixture_release(&w.f);
}

/* Add a task that others need, and so many that need it. */
static void add_behind(struct fixture *f, uint32_t count)
{
    uint32_t first = fixture_tasks(f, 1).v;
    for (uint32_t ix = 0; ix < count; ix++) {
        struct sched_need need = {first + 1 + ix, first, SCHED_ON_DONE};
        struct sched_addition addition = {
            .run = f->run,
            .tasks = &f->spec,
            .task_count = 1,
            .needs = &need,
            .need_count = 1,
        };
        struct sched_rejection rejection;
        assert_int_equal(sched_add(f->sched, 0, &addition, &rejection), ERR_OK);
    }
}

static void ready_and_waiting_tasks_count_alike(void **state)
{
    (void)state;
    for (uint32_t ix = 0; ix < 2; ix++) {
        struct world w;
        begin(&w, 22);
        struct sched_run_spec spec = for_many;
        spec.schedules = 4000; /* enough to pay for a search */
        cap_run(&w.f, spec, 1);
        add_behind(&w.f, ix == 0 ? 2000 : 48);
        (void)fixture_tasks(&w.f, ix == 0 ? 48 : 2000);
        assert_false(sched_plan(w.f.sched, 1)); /* 2,049 */
        fixture_release(&w.f);
    }
}

static void beside_very_many_tasks_nothing_is_planned(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 6);
    resource_run(&w.f);
    add_held(&w.f, 1);
    cap_run(&w.f, by_rank, 0);
    (void)fixture_tasks(&w.f, 1 << 16);
    assert_false(sched_plan(w.f.sched, UINT32_MAX));
    struct sched_effect effect;
    uint32_t starts = 0;
    while (sched_next_effect(w.f.sched, &effect)) {
        starts += effect.type == EFFECT_START ? 1 : 0;
    }
    assert_int_equal(starts, 2); /* a, and c at once */
    fixture_release(&w.f);
}

static void the_memory_of_plans_is_counted(void **state)
{
    (void)state;
    size_t bytes[2];
    for (uint32_t ix = 0; ix < 2; ix++) {
        struct world w;
        begin(&w, 8);
        cap_run(&w.f, ix == 0 ? by_rank : planned, 2);
        (void)fixture_tasks(&w.f, 600);
        bytes[ix] = sched_bytes(w.f.sched);
        fixture_release(&w.f);
    }
    /* At least the copies of 600 tasks that rollouts work on. */
    assert_true(bytes[1] > bytes[0] + 600 * sizeof(struct sched_record));
}

/* ---- what is waited for ---- */

/* A task far behind in the schedule is held for none of the first 64. */
static void only_the_next_of_a_schedule_are_waited_for(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 9);
    struct limit_spec limits[] = {fixture_max(2), fixture_max(1)};
    limits[1].resource = true;
    plan_run(&w.f, planned, limits, 2);
    struct sched_use use = {w.f.limits[1], 1};
    w.f.spec.uses = &use;
    w.f.spec.use_count = 1;
    w.f.spec.estimate_ns = 10 * MINUTE;
    for (uint32_t ix = 0; ix < 80; ix++) {
        struct sched_need need = {ix, ix - 1, SCHED_ON_DONE};
        struct sched_addition addition = {
            .run = w.f.run,
            .tasks = &w.f.spec,
            .task_count = 1,
            .needs = &need,
            .need_count = ix > 0 ? 1 : 0,
        };
        struct sched_rejection rejection;
        assert_int_equal(sched_add(w.f.sched, 0, &addition, &rejection),
                         ERR_OK);
    }
    w.f.spec.use_count = 0;
    w.f.spec.estimate_ns = SECOND;
    (void)fixture_tasks(&w.f, 40);
    (void)finish(&w);
    assert_int_equal(w.f.now_ns, 800 * MINUTE);
    fixture_release(&w.f);
}

static void nothing_waits_for_a_provider_that_is_shut(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 10);
    struct fixture *f = &w.f;
    struct provider_spec spec = {
        .backoff_ns = SECOND,
        .backoff_ns_max = SECOND,
        .probe_ns = SECOND,
        .probe_ns_max = SECOND,
    };
    resource_run(f);
    struct provider_id shut = sched_add_provider(f->sched, &spec);
    add_held_by(f, 1, shut);
    cap_run(f, by_rank, 1);
    f->spec.provider = shut;
    fixture_task(f, "other", "");
    plan(&w);
    assert_string_equal(fixture_run_pass(f), "a other");
    assert_int_equal(fixture_why(f, "c").code, WHY_PLANNED);
    fixture_accept(f, "a");
    fixture_refuse(f, "other", 60 * MINUTE);
    assert_string_equal(fixture_run_pass(f), "c");
    fixture_release(f);
}

/* ---- what the model has ---- */

static void needs_with_other_outcomes_are_not_planned_for(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 11);
    cap_run(&w.f, for_many, 1);
    fixture_task(&w.f, "a", "");
    fixture_task(&w.f, "b", "");
    fixture_task(&w.f, "c", "a:any");
    fixture_task(&w.f, "d", "b:any");
    assert_string_equal(fixture_run_pass(&w.f), "a");
    plan(&w);
    fixture_done(&w.f, "a");
    plan(&w);
    (void)fixture_run_pass(&w.f);
    fixture_order(&w.f, EVENT_HOLD, "d");
    plan(&w);
    fixture_order(&w.f, EVENT_RELEASE, "d");
    for (uint32_t ix = 1; ix < 4; ix++) {
        uint32_t count = 0;
        const uint32_t *flies = sched_in_flight(w.f.sched, &count);
        assert_int_equal(count, 1);
        fixture_end_id(&w.f, (struct task_id){flies[0]}, OUTCOME_DONE);
        plan(&w);
        (void)fixture_run_pass(&w.f);
    }
    assert_int_equal(fixture_state(&w.f, "d"), TASK_DONE);
    fixture_release(&w.f);
}

/* b backs off for ten seconds, and then needs a, which takes a minute. */
static void the_later_of_back_off_and_need_counts(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 12);
    cap_run(&w.f, for_many, 2);
    w.f.failure = (struct sched_failure_spec){
        .retry_max = 3,
        .backoff_ns = 10 * SECOND,
        .backoff_ns_max = 10 * SECOND,
    };
    fixture_task(&w.f, "a", "");
    fixture_task(&w.f, "b", "");
    fixture_task(&w.f, "c", "");
    assert_string_equal(fixture_run_pass(&w.f), "a b");
    fixture_end(&w.f, "b", OUTCOME_FAILED);
    struct sched_rejection rejection;
    assert_int_equal(fixture_try_need(&w.f, "b", "a", &rejection), ERR_OK);
    plan(&w);
    assert_string_equal(fixture_run_pass(&w.f), "c");
    fixture_pass(&w.f, MINUTE);
    fixture_done(&w.f, "a c");
    plan(&w);
    assert_string_equal(fixture_run_pass(&w.f), "b");
    fixture_release(&w.f);
}

/* Two tasks of a group hold one place: it is not counted twice. */
static void a_group_holds_its_place_once(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 13);
    struct limit_spec limits[] = {fixture_max(4), fixture_max(2)};
    limits[1].hold_group = true;
    plan_run(&w.f, for_many, limits, 2);
    w.f.spec.group = fixture_group(&w.f, 0, 0);
    w.f.spec.estimate_ns = SECOND;
    (void)fixture_tasks(&w.f, 2);
    w.f.spec.group = ID_NONE;
    w.f.spec.estimate_ns = MINUTE;
    (void)fixture_tasks(&w.f, 6);
    assert_string_equal(fixture_run_pass(&w.f), "#0 #1 #2");
    plan(&w);
    assert_int_equal(fixture_used(&w.f, 1), 2);
    fixture_end_id(&w.f, (struct task_id){0}, OUTCOME_DONE);
    fixture_end_id(&w.f, (struct task_id){1}, OUTCOME_DONE);
    plan(&w);
    assert_string_equal(fixture_run_pass(&w.f), "#3");
    fixture_release(&w.f);
}

/* More scarce resources than the model has room for, with many units. */
static void many_large_resources_are_planned_for(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 14);
    enum { RESOURCES = 20, UNITS = 100000 };
    struct limit_spec limits[RESOURCES + 1];
    limits[0] = fixture_max(99);
    for (uint32_t ix = 1; ix <= RESOURCES; ix++) {
        limits[ix] = fixture_max(UNITS);
        limits[ix].resource = true;
    }
    plan_run(&w.f, planned, limits, RESOURCES + 1);
    struct sched_use uses[RESOURCES];
    for (uint32_t ix = 0; ix < RESOURCES; ix++) {
        uses[ix] = (struct sched_use){w.f.limits[ix + 1], UNITS / 2};
    }
    w.f.spec.uses = uses;
    w.f.spec.use_count = RESOURCES;
    (void)fixture_tasks(&w.f, 8);
    (void)finish(&w);
    assert_int_equal(w.f.now_ns, 4 * MINUTE); /* two at a time */
    fixture_release(&w.f);
}

/* ---- rollouts ---- */

static void a_paused_run_can_be_planned(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 15);
    cap_run(&w.f, for_many, 1);
    w.f.spec.estimate_ns = 9 * MINUTE;
    fixture_task(&w.f, "long", "");
    w.f.spec.estimate_ns = MINUTE;
    fixture_task(&w.f, "short", "");
    fixture_order_run(&w.f, EVENT_PAUSE);
    plan(&w);
    assert_string_equal(fixture_run_pass(&w.f), "");
    fixture_order_run(&w.f, EVENT_RESUME);
    plan(&w);
    assert_string_equal(fixture_run_pass(&w.f), "short");
    fixture_release(&w.f);
}

static void a_task_may_be_aged_at_once(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 16);
    cap_run(&w.f, planned, 1);
    w.f.spec.class_id = fixture_class(&w.f, 0, false, 1, 0);
    (void)fixture_tasks(&w.f, 3);
    (void)finish(&w);
    assert_int_equal(w.f.now_ns, 3 * MINUTE);
    fixture_release(&w.f);
}

/* Each provider that is shut has a timer: a rollout of two tasks gives up
 * before them all. */
static void a_rollout_does_not_wait_for_all_timers(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 17);
    cap_run(&w.f, for_many, 1);
    w.f.spec.estimate_ns = 300 * MINUTE;
    (void)fixture_tasks(&w.f, 2);
    for (uint32_t ix = 0; ix < 140; ix++) {
        struct provider_spec spec = {
            .backoff_ns = SECOND,
            .backoff_ns_max = SECOND,
            .probe_ns = SECOND,
            .probe_ns_max = SECOND,
        };
        struct sched_provider_record record = {
            .shut_until_ns = (ix + 1) * MINUTE,
            .probe_at_ns = INT64_MIN,
        };
        struct provider_id provider = sched_add_provider(w.f.sched, &spec);
        sched_restore_provider(w.f.sched, provider, &record);
    }
    (void)finish(&w);
    assert_int_equal(w.f.now_ns, 600 * MINUTE);
    fixture_release(&w.f);
}

/* The clock was set forward, and nothing has happened since. */
static void a_rollout_begins_with_times_that_have_passed(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 20);
    cap_run(&w.f, for_many, 1);
    fixture_task(&w.f, "a", "");
    w.f.spec.not_before_ns = 10 * MINUTE;
    fixture_task(&w.f, "b", "");
    fixture_pass(&w.f, 5 * MINUTE);
    (void)fixture_run_pass(&w.f);
    sched_move_times(w.f.sched, w.f.run, -8 * MINUTE, true);
    plan(&w);
    fixture_pass(&w.f, 0);
    fixture_done(&w.f, "a");
    assert_string_equal(fixture_run_pass(&w.f), "b");
    fixture_release(&w.f);
}

static void a_search_that_was_begun_can_go_on(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 21);
    cap_run(&w.f, by_rank, 1);
    (void)fixture_tasks(&w.f, 2);
    assert_false(sched_can_plan_more(w.f.sched)); /* nothing is planned */
    cap_run(&w.f, for_many, 1);
    draw_tasks(&w, 9);
    cap_run(&w.f, for_many, 1);
    draw_tasks(&w, 9);
    assert_false(sched_can_plan_more(w.f.sched)); /* nothing is begun */
    assert_true(sched_plan(w.f.sched, 1));
    assert_true(sched_can_plan_more(w.f.sched));
    (void)finish(&w);
    fixture_release(&w.f);
}

/* What is left of its budget does not pay for a new beginning. */
static void a_search_that_a_start_ends_can_be_extended(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 23);
    struct sched_run_spec spec = for_many;
    spec.schedules = 100;
    cap_run(&w.f, spec, 1);
    draw_tasks(&w, 9);
    assert_true(sched_plan(w.f.sched, 1));
    (void)fixture_run_pass(&w.f);
    assert_false(sched_plan(w.f.sched, 1));
    assert_true(sched_can_plan_more(w.f.sched));
    while (sched_plan_more(w.f.sched, 100)) {
    }
    assert_false(sched_can_plan_more(w.f.sched));
    fixture_release(&w.f);
}

/* Rollouts copy all of them. */
static void what_was_added_without_tasks_is_planned_for(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 19);
    cap_run(&w.f, planned, 1);
    (void)fixture_tasks(&w.f, 3);
    struct provider_spec provider = {
        .backoff_ns = SECOND,
        .backoff_ns_max = SECOND,
        .probe_ns = SECOND,
        .probe_ns_max = SECOND,
    };
    for (uint32_t ix = 0; ix < 40; ix++) {
        struct limit_spec resource = fixture_max(1);
        resource.resource = true;
        (void)sched_add_limit(w.f.sched, w.f.run, &resource);
        (void)sched_add_provider(w.f.sched, &provider);
        assert_false(sched_plan(w.f.sched, UINT32_MAX));
    }
    (void)finish(&w);
    fixture_release(&w.f);
}

/* The sum of their estimates is more than time has. */
static void a_session_of_endless_estimates_is_outlasted(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 18);
    cap_run(&w.f, planned, 2);
    struct sched_class_spec batch = {
        .batch = 3,
        .marginal = 100,
        .max_wait_ns = SCHED_NEVER,
    };
    struct sched_use wide = {w.f.limits[0], 2};
    w.f.spec.class_id = sched_add_class(w.f.sched, &batch);
    w.f.spec.estimate_ns = SCHED_NEVER / 2;
    fixture_task(&w.f, "a", "");
    fixture_task(&w.f, "b", "");
    fixture_task(&w.f, "c", "");
    assert_string_equal(fixture_run_pass(&w.f), "a+b+c");
    w.f.spec.class_id = w.f.work;
    w.f.spec.estimate_ns = MINUTE;
    w.f.spec.uses = &wide;
    w.f.spec.use_count = 1;
    fixture_task(&w.f, "wide", "");
    w.f.spec.use_count = 0;
    w.f.spec.class_id = w.f.review;
    fixture_task(&w.f, "short", ""); /* it is done long before that ends */
    plan(&w);
    assert_string_equal(fixture_run_pass(&w.f), "short");
    fixture_release(&w.f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_beside_others_come_to_their_end),
        cmocka_unit_test(new_needs_of_old_tasks_are_planned_for),
        cmocka_unit_test(a_search_in_slices_finds_the_same),
        cmocka_unit_test(the_goal_decides_what_is_better),
        cmocka_unit_test(a_run_with_barriers_is_planned),
        cmocka_unit_test(a_large_run_is_planned_with_less_effort),
        cmocka_unit_test(a_search_of_many_tasks_waits_for_its_turn),
        cmocka_unit_test(a_run_that_has_grown_too_large_goes_by_rank),
        cmocka_unit_test(ready_and_waiting_tasks_count_alike),
        cmocka_unit_test(beside_very_many_tasks_nothing_is_planned),
        cmocka_unit_test(the_memory_of_plans_is_counted),
        cmocka_unit_test(only_the_next_of_a_schedule_are_waited_for),
        cmocka_unit_test(nothing_waits_for_a_provider_that_is_shut),
        cmocka_unit_test(needs_with_other_outcomes_are_not_planned_for),
        cmocka_unit_test(the_later_of_back_off_and_need_counts),
        cmocka_unit_test(a_group_holds_its_place_once),
        cmocka_unit_test(many_large_resources_are_planned_for),
        cmocka_unit_test(a_paused_run_can_be_planned),
        cmocka_unit_test(a_task_may_be_aged_at_once),
        cmocka_unit_test(a_rollout_does_not_wait_for_all_timers),
        cmocka_unit_test(a_rollout_begins_with_times_that_have_passed),
        cmocka_unit_test(a_search_that_was_begun_can_go_on),
        cmocka_unit_test(a_search_that_a_start_ends_can_be_extended),
        cmocka_unit_test(what_was_added_without_tasks_is_planned_for),
        cmocka_unit_test(a_session_of_endless_estimates_is_outlasted),
    };
    return cmocka_run_group_tests_name("sched: plans", tests, NULL, NULL);
}
