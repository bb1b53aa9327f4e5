/* SPDX-License-Identifier: MIT */
/* Who goes first among those that are ready. */
#include "tests/unit/sched_fixture.h"

#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* With cap 1 and everything done at once, the order is the whole schedule. */
static void assert_schedule(struct fixture *f, const char *expected)
{
    struct strbuf seen = {0};
    for (;;) {
        const char *started = fixture_run_pass(f);
        if (*started == '\0') {
            break;
        }
        assert_null(strchr(started, ' ')); /* one at a time */
        strbuf_adds(&seen, seen.len > 0 ? " " : "");
        strbuf_adds(&seen, started);
        char name[FIXTURE_NAME_BYTES] = "";
        memcpy(name, started, strcspn(started, "+"));
        fixture_end(f, name, OUTCOME_DONE);
    }
    assert_string_equal(strbuf_text(&seen), expected);
    strbuf_release(&seen);
}

static void a_better_tier_goes_first(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    static const uint32_t tiers[] = {5, 99, 0, 1};
    static const char *const names[] = {"five", "worst", "best", "one"};
    for (uint32_t ix = 0; ix < 4; ix++) {
        f.spec.class_id = fixture_class(&f, tiers[ix], false, 1, SCHED_NEVER);
        fixture_task(&f, names[ix], "");
    }
    assert_schedule(&f, "best one five worst");
    fixture_release(&f);
}

static void tier_beats_rank(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.spec.class_id = f.review;
    f.spec.estimate_ns = 500 * MINUTE;
    fixture_task(&f, "long", "");
    f.spec.class_id = f.work;
    f.spec.estimate_ns = 0;
    fixture_task(&f, "short", "");
    assert_schedule(&f, "short long");
    fixture_release(&f);
}

static void tier_is_inherited_from_all_that_need_it(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.spec.class_id = f.review;
    f.spec.estimate_ns = 90 * MINUTE;
    fixture_task(&f, "idle", "");
    f.spec.estimate_ns = MINUTE;
    fixture_task(&f, "gate", "");
    fixture_task(&f, "between", "gate");
    assert_int_equal(fixture_get(&f, "gate").tier, 1);
    f.spec.class_id = f.work;
    fixture_task(&f, "work", "between"); /* two steps behind the gate */
    assert_int_equal(fixture_get(&f, "gate").tier, 0);
    assert_int_equal(fixture_get(&f, "between").tier, 0);
    assert_int_equal(fixture_get(&f, "idle").tier, 1);
    assert_schedule(&f, "gate between work idle");
    fixture_release(&f);
}

static void an_inherited_tier_goes_when_the_heir_ends(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.spec.class_id = f.review;
    fixture_task(&f, "gate", "");
    fixture_task(&f, "other", "");
    f.spec.class_id = f.work;
    fixture_task(&f, "work", "gate");
    assert_int_equal(fixture_get(&f, "gate").tier, 0);
    fixture_order(&f, EVENT_CANCEL, "work");
    assert_int_equal(fixture_get(&f, "gate").tier, 1);
    assert_true(fixture_get(&f, "gate").rank_ns == MINUTE);
    assert_schedule(&f, "gate other");
    fixture_release(&f);
}

static void the_longest_path_goes_first(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.spec.estimate_ns = 2 * MINUTE;
    fixture_task(&f, "a", "");
    f.spec.estimate_ns = MINUTE;
    fixture_task(&f, "b", "");
    f.spec.estimate_ns = 5 * MINUTE;
    fixture_task(&f, "c", "b");
    f.spec.estimate_ns = 3 * MINUTE;
    fixture_task(&f, "d", "");
    assert_true(fixture_get(&f, "a").rank_ns == 2 * MINUTE);
    assert_true(fixture_get(&f, "b").rank_ns == 6 * MINUTE);
    assert_schedule(&f, "b c d a");
    fixture_release(&f);
}

static void rank_follows_what_is_added_behind(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    fixture_task(&f, "c", "b");
    fixture_task(&f, "d", "a");
    fixture_task(&f, "e", "d"); /* now a is longer, though b was */
    assert_true(fixture_get(&f, "a").rank_ns == 3 * MINUTE);
    assert_true(fixture_get(&f, "b").rank_ns == 2 * MINUTE);
    assert_schedule(&f, "a b d c e");
    fixture_release(&f);
}

static void a_rank_beyond_all_time_stays_there(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.spec.estimate_ns = INT64_MAX - 5;
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "a");
    assert_true(fixture_get(&f, "a").rank_ns == SCHED_NEVER);
    assert_schedule(&f, "a b");
    fixture_release(&f);
}

static void priority_comes_after_tier_and_before_rank(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.spec.priority = 9;
    f.spec.estimate_ns = 50 * MINUTE;
    fixture_task(&f, "later", "");
    f.spec.estimate_ns = MINUTE;
    f.spec.priority = 5;
    fixture_task(&f, "usual", "");
    f.spec.priority = 0;
    f.spec.class_id = f.review;
    fixture_task(&f, "worse", "");
    f.spec.class_id = f.work;
    fixture_task(&f, "urgent", "");
    assert_schedule(&f, "urgent usual later worse");
    fixture_release(&f);
}

static void priority_beats_an_open_group(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.spec.priority = 5;
    f.spec.group = fixture_group(&f, 0, 0);
    fixture_task(&f, "a1", "");
    fixture_task(&f, "a2", "");
    assert_string_equal(fixture_run_pass(&f), "a1");
    f.spec.group = ID_NONE;
    fixture_task(&f, "b", "");
    f.spec.priority = 4;
    fixture_task(&f, "urgent", "");
    fixture_done(&f, "a1");
    assert_schedule(&f, "urgent a2 b");
    fixture_release(&f);
}

static void age_beats_priority(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    struct class_id patient = fixture_class(&f, 0, false, 1, 10 * MINUTE);
    f.spec.class_id = patient;
    f.spec.priority = 9;
    fixture_task(&f, "old", "");
    f.spec.class_id = f.work;
    f.spec.priority = 0;
    fixture_task(&f, "urgent", "");
    fixture_task(&f, "urgent2", "");
    assert_string_equal(fixture_run_pass(&f), "urgent");
    fixture_pass(&f, 10 * MINUTE);
    fixture_done(&f, "urgent");
    assert_schedule(&f, "old urgent2");
    fixture_release(&f);
}

static void priority_is_inherited_from_all_that_need_it(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 0);
    f.spec.priority = 9;
    fixture_task(&f, "far", "");
    fixture_task(&f, "near", "far");
    fixture_task(&f, "lost", "");
    f.spec.priority = 5;
    fixture_task(&f, "usual", "");
    f.spec.priority = 1;
    fixture_task(&f, "heir", "near");
    fixture_task(&f, "gone", "lost");
    (void)fixture_run_pass(&f);
    fixture_order(&f, EVENT_CANCEL, "gone");
    fixture_set_limit(&f, 0, 1, 0);
    assert_schedule(&f, "far near heir usual lost");
    fixture_release(&f);
}

static void priority_sorts_the_background_too(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.spec.priority = 9;
    fixture_task(&f, "work", "");
    f.spec.class_id = fixture_class(&f, 0, true, 1, SCHED_NEVER);
    fixture_task(&f, "b9", "");
    f.spec.priority = 0;
    fixture_task(&f, "b0", "");
    assert_schedule(&f, "work b0 b9");
    fixture_release(&f);
}

static void fair_goes_before_open_groups(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec cap = fixture_max(1);
    fixture_run(&f, SCHED_FAIR, &cap, 1);
    static const char *const names[][3] = {
        {"a1", "a2", "a3"},
        {"b1", "b2", "b3"},
        {"c1", "c2", "c3"},
    };
    for (uint32_t group = 0; group < 3; group++) {
        f.spec.group = fixture_group(&f, 0, 0);
        for (uint32_t ix = 0; ix < 3; ix++) {
            fixture_task(&f, names[group][ix], "");
        }
    }
    struct strbuf seen = {0};
    for (uint32_t ix = 0; ix < 9; ix++) {
        strbuf_adds(&seen, fixture_run_pass(&f));
        fixture_pass(&f, MINUTE);
        fixture_done(&f, strbuf_text(&f.started));
    }
    assert_string_equal(strbuf_text(&seen), "a1b1c1a2b2c2a3b3c3");
    strbuf_release(&seen);
    fixture_release(&f);
}

/* A group has had a session of so many nanoseconds: who is next? */
static void assert_fair_after(int64_t ns, const char *expected)
{
    struct fixture f;
    fixture_init(&f);
    struct limit_spec cap = fixture_max(1);
    fixture_run(&f, SCHED_FAIR, &cap, 1);
    f.spec.group = fixture_group(&f, 0, 0);
    fixture_task(&f, "a1", "");
    fixture_task(&f, "a2", "");
    assert_string_equal(fixture_run_pass(&f), "a1");
    f.spec.group = fixture_group(&f, 0, 0);
    fixture_task(&f, "b", "");
    fixture_pass(&f, ns);
    fixture_done(&f, "a1");
    assert_string_equal(fixture_run_pass(&f), expected);
    fixture_release(&f);
}

static void fair_ignores_less_than_a_microsecond(void **state)
{
    (void)state;
    assert_fair_after(1023, "a2"); /* equal: what is begun goes first */
    assert_fair_after(1024, "b");
}

static void fifo_is_the_order_of_becoming_ready(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec cap = fixture_max(1);
    fixture_run(&f, SCHED_FIFO, &cap, 1);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    f.spec.estimate_ns = 99 * MINUTE;
    fixture_task(&f, "c", "a");
    fixture_task(&f, "d", "");
    assert_schedule(&f, "a b d c");
    fixture_release(&f);
}

static void fair_serves_the_group_that_had_least(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec cap = fixture_max(1);
    fixture_run(&f, SCHED_FAIR, &cap, 1);
    uint32_t groups[] = {fixture_group(&f, 0, 0), fixture_group(&f, 0, 0)};
    static const char *const names[] = {"a1", "a2", "a3", "b1", "b2", "b3"};
    /* The second group's tasks are longer: they would win by rank. */
    for (uint32_t ix = 0; ix < 6; ix++) {
        f.spec.group = groups[ix / 3];
        f.spec.estimate_ns = ix < 3 ? MINUTE : 3 * MINUTE;
        fixture_task(&f, names[ix], "");
    }
    /* Both had nothing: the longer path. What was really used counts. */
    assert_string_equal(fixture_run_pass(&f), "b1");
    fixture_pass(&f, 10 * MINUTE);
    fixture_done(&f, "b1");
    /* b is open, but a has had nothing. */
    assert_string_equal(fixture_run_pass(&f), "a1");
    fixture_pass(&f, 2 * MINUTE);
    fixture_done(&f, "a1");
    assert_string_equal(fixture_run_pass(&f), "a2"); /* two against ten */
    fixture_pass(&f, 9 * MINUTE);
    fixture_done(&f, "a2");
    assert_string_equal(fixture_run_pass(&f), "b2"); /* ten against eleven */
    fixture_release(&f);
}

static void fair_charges_nothing_for_a_refusal(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec cap = fixture_max(1);
    fixture_run(&f, SCHED_FAIR, &cap, 1);
    f.spec.estimate_ns = 9 * MINUTE;
    fixture_task(&f, "a", "");
    f.spec.estimate_ns = MINUTE;
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_pass(&f, 5 * MINUTE);
    fixture_refuse(&f, "a", SCHED_NEVER);
    fixture_pass(&f, 10 * SECOND);
    assert_string_equal(fixture_run_pass(&f), "a"); /* still least service */
    fixture_release(&f);
}

static void what_is_begun_is_finished_first(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    uint32_t first = fixture_group(&f, 0, 0);
    uint32_t second = fixture_group(&f, 0, 0);
    f.spec.group = first;
    f.spec.estimate_ns = 9 * MINUTE;
    fixture_task(&f, "a1", "");
    f.spec.estimate_ns = MINUTE;
    fixture_task(&f, "a2", "");
    fixture_task(&f, "a3", "a1");
    f.spec.group = second;
    f.spec.estimate_ns = 5 * MINUTE; /* longer than the rest of the first */
    fixture_task(&f, "b1", "");
    fixture_task(&f, "b2", "b1");
    assert_schedule(&f, "a1 a2 a3 b1 b2");
    fixture_release(&f);
}

static void tier_beats_open_first(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.spec.group = fixture_group(&f, 0, 0);
    fixture_task(&f, "a1", "");
    f.spec.class_id = f.review;
    fixture_task(&f, "a2", "");
    f.spec.group = ID_NONE;
    f.spec.class_id = f.work;
    f.spec.estimate_ns = 0;
    fixture_task(&f, "b", "");
    assert_schedule(&f, "a1 b a2");
    fixture_release(&f);
}

static void a_deferred_task_comes_after_everything_else(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    struct class_id deferred = fixture_class(&f, 0, true, 1, SCHED_NEVER);
    f.spec.class_id = deferred;
    f.spec.estimate_ns = 100 * MINUTE;
    fixture_task(&f, "back", "");
    f.spec.class_id = f.review; /* of a worse tier */
    f.spec.estimate_ns = MINUTE;
    fixture_task(&f, "front", "");
    assert_true(fixture_get(&f, "back").background);
    assert_false(fixture_get(&f, "front").background);
    assert_schedule(&f, "front back");
    fixture_release(&f);
}

static void a_deferred_task_that_blocks_is_not_in_the_background(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    struct class_id deferred = fixture_class(&f, 1, true, 1, SCHED_NEVER);
    f.spec.class_id = deferred;
    fixture_task(&f, "gate", "");
    fixture_task(&f, "chained", "gate"); /* deferred too: no reason */
    assert_true(fixture_get(&f, "gate").background);
    f.spec.class_id = f.review; /* equal tier and not deferred: a reason */
    fixture_task(&f, "behind", "chained");
    assert_false(fixture_get(&f, "gate").background);
    assert_false(fixture_get(&f, "chained").background);
    fixture_task(&f, "other", "");
    assert_schedule(&f, "gate chained other behind");

    /* What it gates is of a worse tier: it stays in the background. */
    f.spec.class_id = deferred;
    fixture_task(&f, "low", "");
    f.spec.class_id = fixture_class(&f, 7, false, 1, SCHED_NEVER);
    fixture_task(&f, "worse", "low");
    assert_true(fixture_get(&f, "low").background);
    fixture_release(&f);
}

static void a_background_task_moves_when_it_begins_to_block(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 0);
    f.spec.class_id = fixture_class(&f, 1, true, 1, SCHED_NEVER);
    fixture_task(&f, "gate", "");
    f.spec.class_id = f.review;
    fixture_task(&f, "other", "");
    assert_string_equal(fixture_run_pass(&f), ""); /* ready, in their queues */
    f.spec.class_id = f.work;
    fixture_task(&f, "urgent", "gate");
    fixture_set_limit(&f, 0, 1, 0);
    assert_schedule(&f, "gate urgent other");
    fixture_release(&f);
}

static void a_task_that_waited_too_long_goes_first(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.spec.class_id = fixture_class(&f, 9, true, 1, 30 * MINUTE);
    fixture_task(&f, "old", "");
    fixture_pass(&f, MINUTE);
    fixture_task(&f, "old2", "");
    f.spec.class_id = f.work;
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_task(&f, "b", "");
    fixture_task(&f, "c", "");
    assert_true(sched_next_timer(f.sched) == 30 * MINUTE);
    fixture_pass(&f, 28 * MINUTE);
    assert_false(fixture_get(&f, "old").aged); /* a minute is missing */
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_pass(&f, 2 * MINUTE);
    assert_true(fixture_get(&f, "old").aged);
    assert_true(fixture_get(&f, "old2").aged);
    fixture_done(&f, "b");
    /* The oldest first, then it is the turn of the others. */
    assert_schedule(&f, "old c old2");
    fixture_release(&f);
}

static void held_time_counts_as_waiting(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.spec.class_id = fixture_class(&f, 9, false, 1, 30 * MINUTE);
    fixture_task(&f, "old", "");
    fixture_order(&f, EVENT_HOLD, "old");
    f.spec.class_id = f.work;
    fixture_task(&f, "a", "");
    fixture_pass(&f, 30 * MINUTE);
    assert_true(fixture_get(&f, "old").aged);
    fixture_order(&f, EVENT_RELEASE, "old");
    assert_schedule(&f, "old a");
    fixture_release(&f);
}

static void a_refused_task_keeps_its_age(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.spec.class_id = fixture_class(&f, 9, false, 1, 30 * MINUTE);
    fixture_task(&f, "old", "");
    assert_string_equal(fixture_run_pass(&f), "old");
    fixture_pass(&f, 31 * MINUTE);
    f.spec.class_id = f.work;
    fixture_task(&f, "new", "");
    fixture_refuse(&f, "old", f.now_ns + MINUTE);
    assert_true(fixture_get(&f, "old").aged);
    fixture_pass(&f, MINUTE);
    assert_schedule(&f, "old new");
    fixture_release(&f);
}

static void a_retried_task_starts_to_wait_anew(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.spec.class_id = fixture_class(&f, 9, false, 1, 30 * MINUTE);
    f.failure.retry_max = 1;
    fixture_task(&f, "old", "");
    assert_string_equal(fixture_run_pass(&f), "old");
    fixture_pass(&f, 31 * MINUTE);
    fixture_end(&f, "old", OUTCOME_FAILED);
    assert_false(fixture_get(&f, "old").aged);
    assert_true(fixture_get(&f, "old").ready_ns == f.now_ns);
    assert_true(sched_next_timer(f.sched) == f.now_ns + 30 * MINUTE);
    fixture_release(&f);
}

/* With cap 1 and a stream of 10 minute sessions of one tier, one task of
 * another tier comes. Return how long it waits for its start. */
static int64_t wait_behind_stream(uint32_t tier, uint32_t tier_of_stream)
{
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    struct sched_task_spec waits = f.spec;
    waits.class_id = fixture_class(&f, tier, false, 1, 60 * MINUTE);
    waits.estimate_ns = 0;
    struct sched_task_spec streams = f.spec;
    streams.class_id = fixture_class(&f, tier_of_stream, false, 1, 60 * MINUTE);
    f.spec = streams;
    (void)fixture_tasks(&f, 1);
    (void)fixture_run_pass(&f);
    f.spec = waits;
    struct task_id waiter = fixture_tasks(&f, 1);
    f.spec = streams;
    while (sched_task(f.sched, waiter).state == TASK_READY &&
           f.now_ns < 600 * MINUTE) {
        (void)fixture_tasks(&f, 1);
        fixture_pass(&f, 10 * MINUTE);
        uint32_t count = 0;
        struct task_id runs = {sched_in_flight(f.sched, &count)[0]};
        fixture_end_id(&f, runs, OUTCOME_DONE);
        (void)fixture_run_pass(&f);
    }
    int64_t waited_ns = f.now_ns;
    fixture_release(&f);
    return waited_ns;
}

static void waiting_is_bounded_in_both_directions(void **state)
{
    (void)state;
    /* Better: one session. Worse: max_wait, and at most one session. */
    assert_true(wait_behind_stream(0, 1) == 10 * MINUTE);
    assert_true(wait_behind_stream(1, 0) == 60 * MINUTE);
    assert_true(wait_behind_stream(0, 0) == 60 * MINUTE);
}

static void equal_tasks_go_in_the_order_of_declaration(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "root", "");
    fixture_task(&f, "c", "root");
    fixture_task(&f, "a", "root");
    fixture_task(&f, "b", "root");
    assert_schedule(&f, "root c a b"); /* ready at the same instant */
    fixture_release(&f);
}

/* Run the same random story twice; return what happened as a text. */
static void tell(struct strbuf *story, uint64_t seed)
{
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 3);
    struct rng rng;
    rng_init(&rng, seed);
    f.failure.retry_max = 2;
    for (uint32_t round = 0; round < 200; round++) {
        f.spec.estimate_ns = rng_below(&rng, 3) * MINUTE;
        f.spec.class_id = rng_below(&rng, 2) == 0 ? f.work : f.review;
        (void)fixture_tasks(&f, rng_below(&rng, 3));
        strbuf_addf(story, "%s|", fixture_run_pass(&f));
        strbuf_addf(story, "%s\n", strbuf_text(&f.changed));
        uint32_t count = 0;
        const uint32_t *in_flight = sched_in_flight(f.sched, &count);
        if (count > 0) {
            struct task_id task = {in_flight[rng_below(&rng, count)]};
            fixture_end_id(&f,
                           task,
                           rng_below(&rng, 4) == 0 ? OUTCOME_FAILED
                                                   : OUTCOME_DONE);
        }
        fixture_pass(&f, rng_below(&rng, 2) * SECOND);
    }
    fixture_release(&f);
}

static void equal_inputs_give_equal_schedules(void **state)
{
    (void)state;
    struct strbuf first = {0};
    struct strbuf second = {0};
    tell(&first, 4);
    tell(&second, 4);
    assert_string_equal(strbuf_text(&first), strbuf_text(&second));
    strbuf_release(&first);
    strbuf_release(&second);
}

static void note_head(void *ctx, struct task_id head)
{
    uint32_t *heads = ctx;
    heads[head.v]++;
}

static void heads_are_the_best_of_each_kind_that_is_left(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "runs", "");
    fixture_task(&f, "a", "");
    f.spec.estimate_ns = 2 * MINUTE;
    fixture_task(&f, "b", "runs");
    f.spec.estimate_ns = MINUTE;
    f.spec.class_id = f.review;
    fixture_task(&f, "r", "");
    fixture_task(&f, "r2", "");
    assert_string_equal(fixture_run_pass(&f), "runs");
    uint32_t heads[5] = {0};
    sched_heads(f.sched, note_head, heads);
    static const uint32_t expected[5] = {0, 1, 0, 1, 0};
    assert_memory_equal(heads, expected, sizeof(heads));
    assert_true(sched_fits_without(f.sched,
                                   fixture_id(&f, "a"),
                                   fixture_id(&f, "runs")));
    fixture_release(&f);
}

static void losing_the_only_urgent_heir_changes_the_tier_alone(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 0);
    f.spec.class_id = f.review;
    fixture_task(&f, "gate", "");
    fixture_task(&f, "other", "");
    f.spec.estimate_ns = 9 * MINUTE;
    fixture_task(&f, "long", "gate");
    fixture_task(&f, "long2", "other");
    f.spec.class_id = f.work;
    f.spec.estimate_ns = 0;
    fixture_task(&f, "urgent", "other");
    (void)fixture_run_pass(&f);
    fixture_order(&f, EVENT_CANCEL, "urgent");
    assert_int_equal(fixture_get(&f, "other").tier, 1);
    assert_true(fixture_get(&f, "other").rank_ns == 10 * MINUTE);
    fixture_set_limit(&f, 0, 1, 0);
    assert_string_equal(fixture_run_pass(&f), "gate"); /* as declared again */
    fixture_release(&f);
}

static void a_task_that_blocks_no_more_goes_to_the_background(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 0);
    struct class_id deferred = fixture_class(&f, 1, true, 1, SCHED_NEVER);
    f.spec.class_id = deferred;
    fixture_task(&f, "gate", "");
    f.spec.estimate_ns = 9 * MINUTE;
    fixture_task(&f, "long", "gate"); /* keeps its rank */
    f.spec.class_id = f.review;       /* of the same tier */
    f.spec.estimate_ns = 0;
    fixture_task(&f, "gated", "gate");
    fixture_task(&f, "other", "");
    (void)fixture_run_pass(&f);
    assert_false(fixture_get(&f, "gate").background);
    fixture_order(&f, EVENT_CANCEL, "gated");
    assert_true(fixture_get(&f, "gate").background);
    fixture_set_limit(&f, 0, 1, 0);
    assert_schedule(&f, "other gate long");
    fixture_release(&f);
}

static void a_group_that_opens_does_not_pull_its_background_up(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.spec.group = fixture_group(&f, 0, 0);
    f.spec.estimate_ns = 1; /* too short to matter */
    fixture_task(&f, "a", "");
    f.spec.class_id = fixture_class(&f, 0, true, 1, SCHED_NEVER);
    fixture_task(&f, "back", "");
    f.spec.class_id = f.work;
    f.spec.group = ID_NONE;
    fixture_task(&f, "other", "");
    assert_schedule(&f, "a other back");
    fixture_release(&f);
}

static void count_head(void *ctx, struct task_id head)
{
    (void)head;
    uint32_t *count = ctx;
    (*count)++;
}

static void heads_include_those_set_aside(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(3), fixture_max(3)};
    limits[1].resource = true;
    fixture_run(&f, SCHED_RANK, limits, 2);
    struct sched_use uses[] = {{f.limits[0], 2}, {f.limits[1], 2}};
    f.spec.uses = uses;
    f.spec.use_count = 2;
    fixture_task(&f, "a", "");
    fixture_task(&f, "aside", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    uint32_t heads = 0;
    sched_heads(f.sched, count_head, &heads);
    assert_int_equal(heads, 1);
    fixture_release(&f);
}

/* The long task that follows a failure is done: nothing waits for the retry. */
static void what_nobody_waits_for_any_more_is_less_urgent(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec cap = fixture_max(1);
    fixture_run(&f, SCHED_RANK, &cap, 1);
    f.spec.estimate_ns = MINUTE;
    fixture_task(&f, "first", "");
    f.spec.estimate_ns = 100 * MINUTE;
    fixture_task(&f, "clean", "first:failed");
    f.spec.estimate_ns = 50 * MINUTE;
    fixture_task(&f, "other", "");
    assert_string_equal(fixture_run_pass(&f), "first");
    fixture_end(&f, "first", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "clean");
    fixture_done(&f, "clean");
    fixture_order(&f, EVENT_RETRY, "first");
    assert_string_equal(fixture_run_pass(&f), "other");
    fixture_release(&f);
}

/* The long task behind a need that runs again is done: only the rest counts. */
static void a_need_that_runs_again_is_less_urgent(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 3);
    f.spec.group = fixture_group(&f, 0, 0);
    f.spec.estimate_ns = MINUTE;
    struct task_id code = fixture_task(&f, "code", "");
    f.spec.rework_to = code.v;
    f.failure.rework_max = 1;
    fixture_task(&f, "gate", "code");
    f.spec.group = ID_NONE;
    f.spec.rework_to = ID_NONE;
    f.failure.rework_max = 0;
    f.spec.estimate_ns = 100 * MINUTE;
    fixture_task(&f, "long", "code");
    assert_string_equal(fixture_run_pass(&f), "code");
    fixture_done(&f, "code");
    assert_string_equal(fixture_run_pass(&f), "gate long");
    fixture_end(&f, "gate", OUTCOME_CHANGES);
    assert_string_equal(fixture_run_pass(&f), "code");
    assert_true(fixture_get(&f, "code").rank_ns == 101 * MINUTE);
    fixture_done(&f, "long");
    assert_true(fixture_get(&f, "code").rank_ns == 2 * MINUTE);
    fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_nobody_waits_for_any_more_is_less_urgent),
        cmocka_unit_test(a_need_that_runs_again_is_less_urgent),
        cmocka_unit_test(a_better_tier_goes_first),
        cmocka_unit_test(tier_beats_rank),
        cmocka_unit_test(tier_is_inherited_from_all_that_need_it),
        cmocka_unit_test(an_inherited_tier_goes_when_the_heir_ends),
        cmocka_unit_test(the_longest_path_goes_first),
        cmocka_unit_test(rank_follows_what_is_added_behind),
        cmocka_unit_test(a_rank_beyond_all_time_stays_there),
        cmocka_unit_test(priority_comes_after_tier_and_before_rank),
        cmocka_unit_test(priority_beats_an_open_group),
        cmocka_unit_test(age_beats_priority),
        cmocka_unit_test(priority_is_inherited_from_all_that_need_it),
        cmocka_unit_test(priority_sorts_the_background_too),
        cmocka_unit_test(fair_goes_before_open_groups),
        cmocka_unit_test(fair_ignores_less_than_a_microsecond),
        cmocka_unit_test(fifo_is_the_order_of_becoming_ready),
        cmocka_unit_test(fair_serves_the_group_that_had_least),
        cmocka_unit_test(fair_charges_nothing_for_a_refusal),
        cmocka_unit_test(what_is_begun_is_finished_first),
        cmocka_unit_test(tier_beats_open_first),
        cmocka_unit_test(a_deferred_task_comes_after_everything_else),
        cmocka_unit_test(a_deferred_task_that_blocks_is_not_in_the_background),
        cmocka_unit_test(a_background_task_moves_when_it_begins_to_block),
        cmocka_unit_test(a_task_that_waited_too_long_goes_first),
        cmocka_unit_test(held_time_counts_as_waiting),
        cmocka_unit_test(a_refused_task_keeps_its_age),
        cmocka_unit_test(a_retried_task_starts_to_wait_anew),
        cmocka_unit_test(waiting_is_bounded_in_both_directions),
        cmocka_unit_test(equal_tasks_go_in_the_order_of_declaration),
        cmocka_unit_test(equal_inputs_give_equal_schedules),
        cmocka_unit_test(heads_are_the_best_of_each_kind_that_is_left),
        cmocka_unit_test(losing_the_only_urgent_heir_changes_the_tier_alone),
        cmocka_unit_test(a_task_that_blocks_no_more_goes_to_the_background),
        cmocka_unit_test(a_group_that_opens_does_not_pull_its_background_up),
        cmocka_unit_test(heads_include_those_set_aside),
    };
    return cmocka_run_group_tests_name("sched: order", tests, NULL, NULL);
}
