/* SPDX-License-Identifier: MIT */
/*
 * The failures to survive that are the core's, one test each, under the
 * numbers of the list of scenarios: set-up, event, required outcome. Here:
 * claims, slots and order; the rest is in test_scenarios_core_failure.c.
 */
#include "tests/unit/sched_fixture.h"

#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void scenario_10_same_number_in_two_repos_is_two_tasks(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {
        fixture_max(3),
        fixture_per(1, FIXTURE_REPO),
    };
    limits[1].hold_group = true;
    fixture_run(&f, SCHED_RANK, limits, 2);
    fixture_attribute(&f, FIXTURE_REPO, 1);
    struct task_id a = fixture_task(&f, "A#7", "");
    fixture_attribute(&f, FIXTURE_REPO, 2);
    struct task_id b = fixture_task(&f, "B#7", "");
    fixture_task(&f, "B#8", "B#7");

    assert_int_not_equal(a.v, b.v);
    assert_string_equal(fixture_run_pass(&f), "B#7 A#7");
    uint64_t token_b = fixture_get(&f, "B#7").token;
    assert_true(fixture_get(&f, "A#7").token != token_b);
    assert_int_equal(fixture_try_end(&f, "A#7", token_b, OUTCOME_DONE),
                     ERR_CONFLICT);
    fixture_done(&f, "A#7");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_state(&f, "B#7"), TASK_STARTING);
    fixture_done(&f, "B#7");
    assert_string_equal(fixture_run_pass(&f), "B#8");
    fixture_release(&f);
}

static void
scenario_33_lowered_cap_starts_nothing_until_there_is_room(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 3);
    static const char *const names[] = {"a", "b", "c", "d", "e", "g", "h"};
    for (uint32_t ix = 0; ix < 7; ix++) {
        fixture_task(&f, names[ix], "");
    }
    assert_string_equal(fixture_run_pass(&f), "a b c");

    fixture_set_limit(&f, 0, 1, 0);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_string_equal(strbuf_text(&f.ended), ""); /* nobody is killed */
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_done(&f, "b");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_used(&f, 0), 1);
    fixture_done(&f, "c");
    assert_string_equal(fixture_run_pass(&f), "d"); /* exactly one */
    fixture_set_limit(&f, 0, 3, 0);
    assert_string_equal(fixture_run_pass(&f), "e g"); /* refilled at once */
    fixture_set_limit(&f, 0, 0, 0);
    fixture_done(&f, "d e g");
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_set_limit(&f, 0, 3, 0);
    assert_string_equal(fixture_run_pass(&f), "h");
    fixture_release(&f);
}

static void scenario_34_paused_starts_nothing_and_resumes_in_order(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    static const char *const names[] = {"a", "b", "c", "d", "e", "g", "h"};
    for (uint32_t ix = 0; ix < 7; ix++) {
        fixture_task(&f, names[ix], "");
    }
    assert_string_equal(fixture_run_pass(&f), "a b");
    fixture_order_run(&f, EVENT_PAUSE);
    fixture_done(&f, "a b");
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_pass(&f, 60 * MINUTE);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_used(&f, 0), 0);
    fixture_order_run(&f, EVENT_RESUME);
    assert_string_equal(fixture_run_pass(&f), "c d");
    fixture_done(&f, "c d");
    assert_string_equal(fixture_run_pass(&f), "e g");
    fixture_done(&f, "g");
    assert_string_equal(fixture_run_pass(&f), "h");
    fixture_release(&f);
}

static void scenario_35_three_lanes_start_together(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {
        fixture_max(3),
        fixture_per(1, FIXTURE_REPO),
    };
    limits[1].hold_group = true;
    fixture_run(&f, SCHED_RANK, limits, 2);
    fixture_attribute(&f, FIXTURE_REPO, 1);
    static const char *const names[] = {"A1", "A2", "A3", "A4", "A5", "A6"};
    for (uint32_t ix = 0; ix < 6; ix++) {
        fixture_task(&f, names[ix], "");
    }
    fixture_attribute(&f, FIXTURE_REPO, 2);
    fixture_task(&f, "B1", "");
    fixture_attribute(&f, FIXTURE_REPO, 3);
    fixture_task(&f, "C1", "");

    assert_string_equal(fixture_run_pass(&f), "A1 B1 C1");
    assert_int_equal(fixture_used(&f, 0), 3);
    /* Those of A wait for A and hold nothing meanwhile. */
    fixture_done(&f, "B1 C1");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_used(&f, 0), 1);
    for (uint32_t ix = 0; ix + 1 < 6; ix++) {
        fixture_done(&f, names[ix]);
        assert_string_equal(fixture_run_pass(&f), names[ix + 1]);
    }
    fixture_release(&f);
}

static void scenario_36_cancel_of_one_who_waits_is_immediate(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec lock = fixture_per(1, FIXTURE_REPO);
    fixture_run(&f, SCHED_RANK, &lock, 1);
    fixture_attribute(&f, FIXTURE_REPO, 1);
    fixture_task(&f, "holder", "");
    fixture_task(&f, "second", "");
    fixture_task(&f, "third", "");
    assert_string_equal(fixture_run_pass(&f), "holder");
    assert_int_equal(fixture_why(&f, "second").code, WHY_LIMIT);

    fixture_order(&f, EVENT_CANCEL, "second");
    assert_int_equal(fixture_state(&f, "second"), TASK_CANCELLED);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_string_equal(strbuf_text(&f.ended), ""); /* no session to end */
    assert_string_equal(strbuf_text(&f.changed), "second");
    fixture_done(&f, "holder");
    assert_string_equal(fixture_run_pass(&f), "third");
    fixture_release(&f);
}

/* A run that has every kind of limit, for tasks that use all of them. */
static void add_every_limit(struct fixture *f)
{
    static const struct attribute reviews[] = {{FIXTURE_CLASS, 1}};
    struct limit_spec limits[] = {
        fixture_max(6),
        fixture_per(1, FIXTURE_REPO),
        fixture_per(2, FIXTURE_REPO),
        fixture_percent(34),
        fixture_max(10),
    };
    limits[1].hold_group = true;
    limits[3].where = reviews;
    limits[3].where_count = 1;
    limits[4].resource = true;
    fixture_run(f, SCHED_RANK, limits, 5);
}

/* Add a random task: any repo, class, width, budget and failure rule. */
static void add_random(struct fixture *f, struct rng *rng)
{
    struct sched_use uses[] = {
        {f->limits[4], 1 + rng_below(rng, 4)},
        {f->limits[0], 1 + rng_below(rng, 2)},
    };
    f->attributes[0] = (struct attribute){FIXTURE_REPO, rng_below(rng, 4)};
    f->attributes[1] = (struct attribute){FIXTURE_CLASS, rng_below(rng, 2)};
    f->spec.attributes = f->attributes;
    f->spec.attribute_count = 2;
    f->spec.uses = uses;
    f->spec.use_count = 2;
    f->failure = (struct sched_failure_spec){
        .retry_max = rng_below(rng, 3),
        .backoff_ns = rng_below(rng, 2) * SECOND,
        .backoff_ns_max = MINUTE,
        .checkpoint_max = rng_below(rng, 3),
        .on_failure = rng_below(rng, 2) == 0 ? SCHED_PARK : SCHED_SKIP,
        .optional = rng_below(rng, 2) == 0,
    };
    (void)fixture_tasks(f, 1);
}

/* End a random session in any way; false when none is in flight. */
static bool end_random(struct fixture *f, struct rng *rng)
{
    uint32_t count = 0;
    const uint32_t *in_flight = sched_in_flight(f->sched, &count);
    if (count == 0) {
        return false;
    }
    struct task_id task = {in_flight[rng_below(rng, count)]};
    struct sched_event event = {
        .now_ns = f->now_ns,
        .task = task,
        .token = sched_task(f->sched, task).token,
    };
    static const enum sched_event_type before[] = {
        EVENT_STARTED,
        EVENT_CANCEL,
        EVENT_SKIP,
    };
    uint32_t first = rng_below(rng, 8);
    if (first < 5) { /* mostly accepted before it ends */
        event.type = before[first < 3 ? 0 : first - 2];
        (void)!sched_apply(f->sched, &event);
    }
    static const enum sched_outcome outcomes[] = {
        OUTCOME_DONE,
        OUTCOME_FAILED,
        OUTCOME_REFUSED,
        OUTCOME_CHANGES,
        OUTCOME_BLOCKED,
        OUTCOME_CHECKPOINT,
    };
    fixture_end_id(f, task, outcomes[rng_below(rng, 6)]);
    return true;
}

/* Cancel every task that has not ended; the run itself stays open. */
static void cancel_all(struct fixture *f)
{
    for (uint32_t ix = 0; ix < sched_task_count(f->sched); ix++) {
        struct sched_event event = {
            .type = EVENT_CANCEL,
            .now_ns = f->now_ns,
            .task = {ix},
        };
        enum err err = sched_apply(f->sched, &event);
        assert_true(err == ERR_OK || err == ERR_CONFLICT);
    }
}

static void scenario_37_ten_thousand_random_ends_leave_no_drift(void **state)
{
    (void)state;
    enum { ENDS = 10000 };
    struct fixture f;
    fixture_init(&f);
    add_every_limit(&f);
    struct rng rng;
    rng_init(&rng, 37);
    uint32_t ends = 0;
    while (ends < ENDS) {
        for (uint32_t n = rng_below(&rng, 8); n > 0; n--) {
            add_random(&f, &rng);
        }
        (void)fixture_run_pass(&f); /* checks every count against the facts */
        for (uint32_t n = 1 + rng_below(&rng, 5); n > 0; n--) {
            ends += end_random(&f, &rng) ? 1 : 0;
        }
        fixture_pass(&f, rng_below(&rng, 20) * SECOND);
    }
    cancel_all(&f);
    while (end_random(&f, &rng)) {
        sched_verify(f.sched);
    }
    assert_string_equal(fixture_run_pass(&f), "");
    for (uint32_t ix = 0; ix < f.limit_count; ix++) {
        assert_int_equal(fixture_used(&f, ix), 0);
    }
    struct sched_run run = sched_run(f.sched, f.run);
    assert_int_equal(run.in_flight, 0);
    assert_int_equal(run.sessions, 0);

    /* And the whole of every limit can be used again. */
    f.spec.attribute_count = 0;
    f.spec.use_count = 0;
    (void)fixture_tasks(&f, 10);
    fixture_pass(&f, 60 * MINUTE); /* providers back off no longer */
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_used(&f, 0), 6);
    fixture_release(&f);
}

static void scenario_40_a_parent_waits_for_its_child_with_cap_1(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "parent", "");
    assert_string_equal(fixture_run_pass(&f), "parent");
    fixture_accept(&f, "parent");

    /* While it holds the slot it cannot come to need anything: refused. */
    fixture_task(&f, "child", "");
    struct sched_rejection rejection;
    assert_int_equal(fixture_try_need(&f, "parent", "child", &rejection),
                     ERR_CONFLICT);
    assert_int_equal(rejection.code, REJECTION_STARTED);
    assert_int_equal(rejection.task.v, fixture_id(&f, "parent").v);

    /* It gives the slot back, and goes on when the child is done. */
    f.failure.checkpoint_max = 3;
    fixture_task(&f, "mother", "");
    fixture_end(&f, "parent", OUTCOME_DONE);
    fixture_order(&f, EVENT_HOLD, "child");
    assert_string_equal(fixture_run_pass(&f), "mother");
    fixture_end(&f, "mother", OUTCOME_CHECKPOINT);
    assert_int_equal(fixture_try_need(&f, "mother", "child", &rejection),
                     ERR_OK);
    fixture_order(&f, EVENT_RELEASE, "child");
    assert_string_equal(fixture_run_pass(&f), "child");
    fixture_done(&f, "child");
    assert_string_equal(fixture_run_pass(&f), "mother");
    fixture_done(&f, "mother");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(f.quiet, 1);
    fixture_release(&f);
}

/* A stream that never ends keeps a cap of 3 full with 10 minute sessions;
 * five other tasks come after 5 minutes. Return how long the last of them
 * waited for its start. */
static int64_t wait_beside_stream(struct class_id stream,
                                  struct class_id other,
                                  struct fixture *f)
{
    enum { OTHERS = 5, MINUTES_MAX = 600 };
    fixture_cap(f, 3);
    f->spec.class_id = stream;
    (void)fixture_tasks(f, 6);
    uint32_t first_other = ID_NONE;
    uint32_t waiting = OTHERS;
    int64_t waited_ns = 0;
    int64_t ends_ns[3] = {0, 0, 0};
    uint32_t running[3] = {ID_NONE, ID_NONE, ID_NONE};
    for (int minute = 0; minute < MINUTES_MAX && waiting > 0; minute++) {
        fixture_pass(f, MINUTE);
        if (minute == 5) {
            f->spec.class_id = other;
            first_other = fixture_tasks(f, OTHERS).v;
        }
        for (uint32_t slot = 0; slot < 3; slot++) {
            if (running[slot] != ID_NONE && ends_ns[slot] <= f->now_ns) {
                fixture_end_id(f,
                               (struct task_id){running[slot]},
                               OUTCOME_DONE);
                running[slot] = ID_NONE;
                f->spec.class_id = stream;
                (void)fixture_tasks(f, 1);
            }
        }
        struct sched_effect effect;
        while (sched_next_effect(f->sched, &effect)) {
            if (effect.type != EFFECT_START) {
                continue;
            }
            uint32_t task = effect.task.v;
            uint32_t slot = 0;
            while (running[slot] != ID_NONE) {
                slot++;
            }
            running[slot] = task;
            ends_ns[slot] = f->now_ns + (10 + slot) * MINUTE;
            if (first_other != ID_NONE && task >= first_other &&
                task < first_other + OTHERS) {
                waiting--;
                struct sched_task t = sched_task(f->sched, effect.task);
                waited_ns = f->now_ns - t.ready_ns;
            }
        }
    }
    assert_int_equal(waiting, 0);
    return waited_ns;
}

static void scenario_43_no_class_starves_the_other(void **state)
{
    (void)state;
    /* Endless reviews: an implementation waits for free slots only. Five of
     * them in three slots: the last one starts in the second round. */
    struct fixture f;
    fixture_init(&f);
    struct class_id review = fixture_class(&f, 1, true, 1, 60 * MINUTE);
    int64_t waited_ns = wait_beside_stream(review, f.work, &f);
    assert_true(waited_ns <= 24 * MINUTE);
    fixture_release(&f);

    /* Endless implementation: a review waits for max_wait, then it takes turns:
     * one start in three. The last of five is the fifteenth start at most, in
     * the fifth round of three slots. */
    fixture_init(&f);
    review = fixture_class(&f, 1, true, 1, 60 * MINUTE);
    waited_ns = wait_beside_stream(f.work, review, &f);
    assert_true(waited_ns >= 60 * MINUTE);
    assert_true(waited_ns <= (60 + 12 + 5 * 12) * MINUTE);
    fixture_release(&f);
}

static void scenario_44_a_full_class_does_not_hide_an_empty_one(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    static const struct attribute full[] = {{FIXTURE_CLASS, 1}};
    struct limit_spec limits[] = {fixture_max(500), fixture_max(2)};
    limits[1].where = full;
    limits[1].where_count = 1;
    fixture_run(&f, SCHED_RANK, limits, 2);
    fixture_attribute(&f, FIXTURE_CLASS, 1);
    f.spec.estimate_ns = 100 * MINUTE; /* better, so in front of the others */
    (void)fixture_tasks(&f, 1000);
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_used(&f, 0), 2);

    fixture_attribute(&f, FIXTURE_CLASS, 2);
    f.spec.estimate_ns = MINUTE;
    struct task_id first = fixture_tasks(&f, 100);
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_used(&f, 0), 102);
    for (uint32_t ix = 0; ix < 100; ix++) {
        struct task_id task = {first.v + ix};
        assert_int_equal(sched_task(f.sched, task).state, TASK_STARTING);
    }
    fixture_release(&f);
}

static void scenario_46_recovered_and_new_work_share_one_slot(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.failure.retry_max = 5;
    f.failure.backoff_ns = SECOND;
    f.failure.backoff_ns_max = SECOND;
    fixture_task(&f, "old", "");
    assert_string_equal(fixture_run_pass(&f), "old");
    static const char *const fresh[] = {"n1", "n2", "n3", "n4", "n5"};
    for (uint32_t ix = 0; ix < 5; ix++) {
        fixture_task(&f, fresh[ix], ""); /* there is always new work */
    }
    for (uint32_t ix = 0; ix < 5; ix++) {
        fixture_end(&f, "old", OUTCOME_FAILED);
        assert_string_equal(fixture_run_pass(&f), fresh[ix]);
        fixture_pass(&f, MINUTE);
        fixture_end(&f, fresh[ix], OUTCOME_DONE);
        assert_string_equal(fixture_run_pass(&f), "old");
    }
    fixture_done(&f, "old");
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_release(&f);

    /* Without back-off, what is begun goes on, but not beyond its budget. */
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.failure.retry_max = 2;
    fixture_task(&f, "old", "");
    fixture_task(&f, "new", "");
    for (uint32_t ix = 0; ix < 3; ix++) {
        assert_string_equal(fixture_run_pass(&f), "old");
        fixture_end(&f, "old", OUTCOME_FAILED);
    }
    assert_string_equal(fixture_run_pass(&f), "new");
    fixture_release(&f);
}

static void scenario_47_share_of_34_percent_for_caps_2_4_8(void **state)
{
    (void)state;
    static const struct {
        int64_t cap;
        uint32_t reviews;
    } cases[] = {{2, 1}, {4, 1}, {8, 2}, {1, 1}, {3, 1}, {6, 2}, {9, 3}};
    for (uint32_t ix = 0; ix < sizeof(cases) / sizeof(cases[0]); ix++) {
        struct fixture f;
        fixture_init(&f);
        static const struct attribute reviews[] = {{FIXTURE_CLASS, 1}};
        struct limit_spec limits[] = {
            fixture_max(cases[ix].cap),
            fixture_percent(34),
        };
        limits[1].where = reviews;
        limits[1].where_count = 1;
        fixture_run(&f, SCHED_RANK, limits, 2);
        fixture_attribute(&f, FIXTURE_CLASS, 1);
        (void)fixture_tasks(&f, 20); /* reviews are first in line */
        fixture_attribute(&f, FIXTURE_CLASS, 2);
        (void)fixture_tasks(&f, 20);
        (void)fixture_run_pass(&f);
        assert_int_equal(fixture_max_now(&f, 1), cases[ix].reviews);
        assert_int_equal(fixture_used(&f, 1), cases[ix].reviews);
        assert_int_equal(fixture_used(&f, 0), cases[ix].cap);
        fixture_release(&f);
    }
}

static void scenario_48_what_becomes_ready_competes_at_once(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "before", "");
    assert_string_equal(fixture_run_pass(&f), "before");
    f.spec.class_id = f.review;
    fixture_task(&f, "low", ""); /* has been ready for long */
    fixture_pass(&f, 30 * MINUTE);
    f.spec.class_id = f.work;
    fixture_task(&f, "high", "before");
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_done(&f, "before");
    assert_string_equal(fixture_run_pass(&f), "high");
    fixture_done(&f, "high");
    assert_string_equal(fixture_run_pass(&f), "low");
    fixture_release(&f);
}

static void scenario_49_waiters_on_one_lock_are_served_in_order(void **state)
{
    (void)state;
    static const enum sched_policy policies[] = {SCHED_RANK, SCHED_FIFO};
    for (uint32_t ix = 0; ix < 2; ix++) {
        struct fixture f;
        fixture_init(&f);
        struct limit_spec lock = fixture_max(1);
        lock.resource = true;
        fixture_run(&f, policies[ix], &lock, 1);
        struct sched_use use = {f.limits[0], 1};
        f.spec.uses = &use;
        f.spec.use_count = 1;
        f.spec.estimate_ns = 75 * MINUTE;
        /* Four lanes come to the lock at four times, not in their order. */
        static const char *const lanes[] = {"l3", "l1", "l4", "l2"};
        for (uint32_t lane = 0; lane < 4; lane++) {
            fixture_task(&f, lanes[lane], "");
            assert_string_equal(fixture_run_pass(&f), lane == 0 ? "l3" : "");
            fixture_pass(&f, MINUTE);
        }
        for (uint32_t lane = 0; lane < 4; lane++) {
            fixture_pass(&f, 75 * MINUTE);
            fixture_done(&f, lanes[lane]);
            const char *next = lane < 3 ? lanes[lane + 1] : "";
            assert_string_equal(fixture_run_pass(&f), next);
        }
        fixture_release(&f);
    }
}

static void scenario_50_a_wide_task_gets_its_reservation(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    static const struct attribute other[] = {{FIXTURE_PROVIDER, 9}};
    static const struct attribute main_provider[] = {{FIXTURE_PROVIDER, 1}};
    struct limit_spec limits[] = {fixture_max(3), fixture_max(3)};
    limits[0].where = main_provider;
    limits[0].where_count = 1;
    limits[1].where = other;
    limits[1].where_count = 1;
    fixture_run(&f, SCHED_RANK, limits, 2);
    fixture_attribute(&f, FIXTURE_PROVIDER, 1);
    fixture_task(&f, "n1", "");
    fixture_task(&f, "n2", "");
    f.spec.estimate_ns = 9 * MINUTE;
    fixture_task(&f, "n3", "");
    assert_string_equal(fixture_run_pass(&f), "n3 n1 n2");
    f.spec.estimate_ns = MINUTE;
    fixture_pass(&f, 1); /* from now on, nothing ends before n1 and n2 */

    struct sched_use two = {f.limits[0], 2};
    f.spec.uses = &two;
    f.spec.use_count = 1;
    fixture_task(&f, "wide", "");
    f.spec.use_count = 0;
    fixture_task(&f, "n4", "");
    fixture_task(&f, "n5", "");
    fixture_attribute(&f, FIXTURE_PROVIDER, 9);
    fixture_task(&f, "other", ""); /* uses nothing that wide waits for */
    assert_string_equal(fixture_run_pass(&f), "other");

    fixture_done(&f, "n1");
    assert_string_equal(fixture_run_pass(&f), ""); /* one unit is kept for it */
    assert_int_equal(fixture_why(&f, "n4").code, WHY_RESERVED);
    assert_int_equal(fixture_why(&f, "n4").task.v, fixture_id(&f, "wide").v);
    fixture_done(&f, "n2");
    assert_string_equal(fixture_run_pass(&f), "wide");
    fixture_done(&f, "n3");
    assert_string_equal(fixture_run_pass(&f), "n4");
    fixture_done(&f, "wide");
    assert_string_equal(fixture_run_pass(&f), "n5");
    fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scenario_10_same_number_in_two_repos_is_two_tasks),
        cmocka_unit_test(
            scenario_33_lowered_cap_starts_nothing_until_there_is_room),
        cmocka_unit_test(
            scenario_34_paused_starts_nothing_and_resumes_in_order),
        cmocka_unit_test(scenario_35_three_lanes_start_together),
        cmocka_unit_test(scenario_36_cancel_of_one_who_waits_is_immediate),
        cmocka_unit_test(scenario_37_ten_thousand_random_ends_leave_no_drift),
        cmocka_unit_test(scenario_40_a_parent_waits_for_its_child_with_cap_1),
        cmocka_unit_test(scenario_43_no_class_starves_the_other),
        cmocka_unit_test(scenario_44_a_full_class_does_not_hide_an_empty_one),
        cmocka_unit_test(scenario_46_recovered_and_new_work_share_one_slot),
        cmocka_unit_test(scenario_47_share_of_34_percent_for_caps_2_4_8),
        cmocka_unit_test(scenario_48_what_becomes_ready_competes_at_once),
        cmocka_unit_test(scenario_49_waiters_on_one_lock_are_served_in_order),
        cmocka_unit_test(scenario_50_a_wide_task_gets_its_reservation),
    };
    return cmocka_run_group_tests_name("scenarios of the core",
                                       tests,
                                       NULL,
                                       NULL);
}
