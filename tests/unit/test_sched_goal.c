/* SPDX-License-Identifier: MIT */
/* What is critical goes first; what can wait, shortest group first. */
#include "tests/unit/sched_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Add a run by rank with these limits; the first one is its cap. */
static void goal_run(struct fixture *f,
                     enum sched_goal goal,
                     const struct limit_spec *limits,
                     uint32_t count)
{
    fixture_init(f);
    struct sched_run_spec spec = {
        .policy = SCHED_RANK,
        .goal = goal,
        .limits = limits,
        .limit_count = count,
    };
    struct limit_id first;
    f->run = sched_add_run(f->sched, &spec, &first);
    for (uint32_t ix = 0; ix < count; ix++) {
        f->limits[f->limit_count++].v = first.v + ix;
    }
}

static void capped(struct fixture *f, enum sched_goal goal, int64_t cap)
{
    struct limit_spec limit = fixture_max(cap);
    goal_run(f, goal, &limit, 1);
}

static void
add(struct fixture *f, const char *name, const char *needs, int64_t minutes)
{
    f->spec.estimate_ns = minutes * MINUTE;
    fixture_task(f, name, needs);
}

/* The first starts with cap 1, everything being done at once. */
static void assert_begins(struct fixture *f, const char *expected)
{
    struct strbuf seen = {0};
    while (seen.len < strlen(expected)) {
        const char *started = fixture_run_pass(f);
        assert_string_not_equal(started, "");
        strbuf_adds(&seen, seen.len > 0 ? " " : "");
        strbuf_adds(&seen, started);
        fixture_end(f, started, OUTCOME_DONE);
    }
    assert_string_equal(strbuf_text(&seen), expected);
    strbuf_release(&seen);
}

/* Ten tasks of 10, 9 ... 1 minutes, named by their length. */
static void of_ten(enum sched_goal goal, const char *expected)
{
    struct fixture f;
    capped(&f, goal, 1);
    for (uint32_t minutes = 10; minutes > 0; minutes--) {
        char name[FIXTURE_NAME_BYTES];
        (void)snprintf(name, sizeof(name), "%u", minutes);
        add(&f, name, "", minutes);
    }
    assert_begins(&f, expected);
    fixture_release(&f);
}

static void what_can_wait_goes_shortest_first(void **state)
{
    (void)state;
    /* Of 45 minutes left, 10 are nearly a quarter. */
    of_ten(SCHED_FINISH_ALL, "1 2 3 4 10 9 8 7 6 5");
    of_ten(SCHED_FINISH_MANY, "1 2 3 4 5 6 7 8 9 10");
}

static void a_long_path_goes_first(void **state)
{
    (void)state;
    struct fixture f;
    capped(&f, SCHED_FINISH_ALL, 2);
    add(&f, "s1", "", 3);
    add(&f, "s2", "", 2);
    add(&f, "s3", "", 4);
    add(&f, "s4", "", 4);
    add(&f, "c1", "", 1);
    add(&f, "c2", "c1", 9);
    add(&f, "c3", "c2", 13);
    /* 36 minutes in two sessions: a path of 4.5 is critical. */
    assert_string_equal(fixture_run_pass(&f), "c1 s2");
    fixture_done(&f, "c1");
    assert_string_equal(fixture_run_pass(&f), "c2");
    fixture_release(&f);
}

static void the_group_with_least_left_goes_first(void **state)
{
    (void)state;
    struct fixture f;
    capped(&f, SCHED_FINISH_MANY, 1);
    f.spec.group = fixture_group(&f, 0, 0);
    add(&f, "z1", "", 4);
    add(&f, "z2", "", 4);
    add(&f, "z3", "z2", 4); /* waiting, and left to do */
    f.spec.group = fixture_group(&f, 0, 0);
    add(&f, "a1", "", 2);
    add(&f, "a2", "", 2);
    f.spec.group = ID_NONE;
    add(&f, "b", "", 3);
    add(&f, "c", "", 5);
    assert_begins(&f, "b a1 a2 c");
    fixture_release(&f);
}

static void of_equal_tasks_of_a_group_the_longest_goes_first(void **state)
{
    (void)state;
    struct fixture f;
    capped(&f, SCHED_FINISH_MANY, 1);
    add(&f, "o1", "", 20);
    add(&f, "o2", "", 20);
    f.spec.group = fixture_group(&f, 0, 0);
    add(&f, "x", "", 1);
    add(&f, "y", "", 3);
    assert_begins(&f, "y x o1 o2");
    fixture_release(&f);
}

/* Four groups of two minutes in a lane, and a task of three minutes. */
static void beside_lane(int64_t active, const char *expected)
{
    struct fixture f;
    struct limit_spec limits[] = {
        fixture_max(1),
        fixture_per(active, FIXTURE_REPO),
    };
    limits[1].hold_group = true;
    goal_run(&f, SCHED_FINISH_ALL, limits, 2);
    add(&f, "b", "", 3);
    static const char *const names[] = {"a1", "a2", "a3", "a4"};
    for (uint32_t ix = 0; ix < 4; ix++) {
        f.spec.group = fixture_group(&f, FIXTURE_REPO, 7);
        add(&f, names[ix], "", 2);
    }
    assert_begins(&f, expected);
    fixture_release(&f);
}

static void a_lane_with_much_left_goes_first(void **state)
{
    (void)state;
    beside_lane(1, "a1 a2 a3 b a4"); /* 8, 6, 4 minutes, then 2 */
    beside_lane(2, "a1 b a2 a3 a4"); /* at two at once, 4 and 3 minutes */
    beside_lane(LIMIT_NONE, "b a1 a2 a3 a4");
}

static void a_lane_becomes_critical_while_it_waits(void **state)
{
    (void)state;
    struct fixture f;
    struct limit_spec limits[] = {
        fixture_max(1),
        fixture_per(1, FIXTURE_REPO),
    };
    limits[1].hold_group = true;
    goal_run(&f, SCHED_FINISH_ALL, limits, 2);
    fixture_order_run(&f, EVENT_PAUSE);
    f.spec.group = fixture_group(&f, FIXTURE_REPO, 7);
    add(&f, "a1", "", 2);
    f.spec.group = fixture_group(&f, FIXTURE_REPO, 7);
    add(&f, "a2", "", 2);
    f.spec.group = ID_NONE;
    add(&f, "b", "", 1);
    add(&f, "long", "", 20); /* 25 minutes: 6 are critical */
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_order(&f, EVENT_CANCEL, "long"); /* 5 minutes: all are */
    fixture_order_run(&f, EVENT_RESUME);
    assert_begins(&f, "a1 a2 b");
    fixture_release(&f);
}

static void without_a_cap_everything_is_critical(void **state)
{
    (void)state;
    struct fixture f;
    capped(&f, SCHED_FINISH_MANY, LIMIT_NONE);
    add(&f, "1", "", 1);
    add(&f, "2", "", 2);
    add(&f, "3", "", 3);
    assert_string_equal(fixture_run_pass(&f), "3 2 1");
    fixture_release(&f);
}

static void a_changed_cap_changes_what_is_critical(void **state)
{
    (void)state;
    struct fixture f;
    capped(&f, SCHED_FINISH_ALL, 0);
    for (uint32_t ix = 0; ix < 5; ix++) {
        char name[FIXTURE_NAME_BYTES];
        (void)snprintf(name, sizeof(name), "s%u", ix);
        add(&f, name, "", 5);
    }
    add(&f, "long", "", 6);
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_set_limit(&f, 0, 1, 0); /* 31 minutes: 7 are critical */
    assert_string_equal(fixture_run_pass(&f), "s0");
    fixture_set_limit(&f, 0, 2, 0); /* 13 minutes: all are */
    assert_string_equal(fixture_run_pass(&f), "long");
    fixture_release(&f);
}

static void a_queue_goes_before_what_is_critical(void **state)
{
    (void)state;
    struct fixture f;
    capped(&f, SCHED_FINISH_ALL, 1);
    add(&f, "long", "", 60);
    struct sched_class_spec spec = {
        .batch = 1,
        .queue = true,
        .max_wait_ns = SCHED_NEVER,
    };
    f.spec.class_id = sched_add_class(f.sched, &spec);
    add(&f, "m1", "", 1);
    add(&f, "m2", "", 9);
    assert_begins(&f, "m1 m2 long");
    fixture_release(&f);
}

static void estimates_beyond_all_time_are_counted(void **state)
{
    (void)state;
    struct fixture f;
    capped(&f, SCHED_FINISH_MANY, 1);
    f.spec.group = fixture_group(&f, 0, 0);
    f.spec.estimate_ns = INT64_MAX;
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    f.spec.group = ID_NONE;
    f.spec.estimate_ns = INT64_MAX / 2;
    fixture_task(&f, "c", "");
    assert_begins(&f, "a b c");
    fixture_release(&f);
}

/* The work of a lane is more than keys have room for. */
static void a_lane_with_endless_work_goes_first(void **state)
{
    (void)state;
    struct fixture f;
    struct limit_spec limits[] = {fixture_max(1), fixture_per(1, FIXTURE_REPO)};
    limits[1].hold_group = true;
    goal_run(&f, SCHED_FINISH_ALL, limits, 2);
    f.spec.estimate_ns = MINUTE;
    f.spec.group = fixture_group(&f, FIXTURE_REPO, 1);
    fixture_task(&f, "short", "");
    f.spec.group = fixture_group(&f, FIXTURE_REPO, 2);
    f.spec.estimate_ns = INT64_MAX / 2;
    (void)fixture_tasks(&f, 200);
    assert_string_equal(fixture_run_pass(&f), "#1");
    fixture_release(&f);
}

/* One after the other they would take longest; side by side they do not. */
static void a_lane_that_gets_wider_is_less_urgent(void **state)
{
    (void)state;
    for (int64_t max = 1; max <= 10; max += 9) {
        struct fixture f;
        struct limit_spec limits[] = {fixture_max(1),
                                      fixture_per(1, FIXTURE_REPO)};
        limits[1].hold_group = true;
        goal_run(&f, SCHED_FINISH_ALL, limits, 2);
        add(&f, "runs", "", 1);
        assert_string_equal(fixture_run_pass(&f), "runs");
        add(&f, "path", "", 15);
        add(&f, "end", "path", 15);
        for (uint32_t ix = 0; ix < 5; ix++) {
            char name[FIXTURE_NAME_BYTES];
            (void)snprintf(name, sizeof(name), "lane%u", ix);
            f.spec.group = fixture_group(&f, FIXTURE_REPO, 1);
            add(&f, name, "", 10);
        }
        assert_string_equal(fixture_run_pass(&f), "");
        fixture_set_limit(&f, 1, max, 0);
        fixture_done(&f, "runs");
        assert_string_equal(fixture_run_pass(&f), max == 1 ? "lane0" : "path");
        fixture_release(&f);
    }
}

/* The keys of very many tasks are not looked at again and again. */
static void of_very_many_tasks_the_longest_goes_first(void **state)
{
    (void)state;
    for (uint32_t more = 0; more < 2; more++) {
        struct fixture f;
        capped(&f, SCHED_FINISH_ALL, 1);
        add(&f, "long", "", 10);
        f.spec.estimate_ns = SECOND;
        fixture_task(&f, "short", "");
        f.spec.estimate_ns = MINUTE;
        (void)fixture_tasks(&f, 65534 + more);
        struct sched_effect effect;
        do {
            assert_true(sched_next_effect(f.sched, &effect));
        } while (effect.type != EFFECT_START);
        const char *first = more > 0 ? "long" : "short";
        assert_int_equal(effect.task.v, fixture_id(&f, first).v);
        fixture_release(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_can_wait_goes_shortest_first),
        cmocka_unit_test(a_long_path_goes_first),
        cmocka_unit_test(the_group_with_least_left_goes_first),
        cmocka_unit_test(of_equal_tasks_of_a_group_the_longest_goes_first),
        cmocka_unit_test(a_lane_with_much_left_goes_first),
        cmocka_unit_test(a_lane_becomes_critical_while_it_waits),
        cmocka_unit_test(without_a_cap_everything_is_critical),
        cmocka_unit_test(a_changed_cap_changes_what_is_critical),
        cmocka_unit_test(a_queue_goes_before_what_is_critical),
        cmocka_unit_test(estimates_beyond_all_time_are_counted),
        cmocka_unit_test(a_lane_with_endless_work_goes_first),
        cmocka_unit_test(a_lane_that_gets_wider_is_less_urgent),
        cmocka_unit_test(of_very_many_tasks_the_longest_goes_first),
    };
    return cmocka_run_group_tests_name("sched: goals", tests, NULL, NULL);
}
