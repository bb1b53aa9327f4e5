/* SPDX-License-Identifier: MIT */
/*
 * Following a plan. There are two units of a resource. a (5 min) needs one, b
 * (10 min) comes after it and needs both, d (10 min) comes after b and needs
 * one; c (8 min) needs one and nothing else. Whoever starts c at once, because
 * it fits, ends after 28 minutes: b waits for it. Whoever waits ends after 25.
 */
#include "tests/unit/sched_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void add(struct fixture *f,
                const char *name,
                const char *needs,
                int64_t minutes,
                uint32_t units)
{
    struct sched_use use = {f->limits[1], units};
    f->spec.estimate_ns = minutes * MINUTE;
    f->spec.uses = &use;
    f->spec.use_count = units > 0 ? 1 : 0;
    fixture_task(f, name, needs);
    f->spec.uses = NULL;
    f->spec.use_count = 0;
}

static void setup(struct fixture *f)
{
    fixture_init(f);
    struct limit_spec limits[] = {fixture_max(9), fixture_max(2)};
    limits[1].resource = true;
    fixture_run(f, SCHED_LOOKAHEAD, limits, 2);
}

static void add_all(struct fixture *f)
{
    add(f, "a", "", 5, 1);
    add(f, "b", "a", 10, 2);
    add(f, "c", "", 8, 1);
    add(f, "d", "b", 10, 1);
}

/* Think to the end, then take a pass. */
static const char *planned_pass(struct fixture *f)
{
    while (sched_plan(f->sched, UINT32_MAX)) {
    }
    return fixture_run_pass(f);
}

static void assert_held(struct fixture *f, const char *name, const char *by)
{
    struct why why = fixture_why(f, name);
    assert_string_equal(why_code_name(why.code), "planned");
    assert_int_equal(why.task.v, fixture_id(f, by).v);
}

static void a_slot_is_left_idle_when_that_ends_sooner(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    add_all(&f);
    assert_string_equal(planned_pass(&f), "a");
    assert_held(&f, "c", "b");
    assert_int_equal(fixture_why(&f, "c").until_ns, 5 * MINUTE);
    fixture_pass(&f, 5 * MINUTE);
    fixture_done(&f, "a");
    assert_string_equal(planned_pass(&f), "b");
    assert_string_equal(why_code_name(fixture_why(&f, "c").code), "limit");
    fixture_pass(&f, 10 * MINUTE);
    fixture_done(&f, "b");
    const char *last = planned_pass(&f);
    assert_int_equal(last[1], ' '); /* both, in whichever order */
    fixture_release(&f);
}

static void without_a_plan_rank_decides(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    add_all(&f);
    assert_string_equal(fixture_run_pass(&f), "a c");
    fixture_release(&f);
}

/* Tasks of a class with a queue precede the first place of a schedule. */
static void a_queue_goes_before_the_schedule(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    add_all(&f);
    while (sched_plan(f.sched, UINT32_MAX)) {
    }
    struct sched_class_spec merge = {
        .batch = 1,
        .queue = true,
        .max_wait_ns = SCHED_NEVER,
    };
    f.spec.class_id = sched_add_class(f.sched, &merge);
    add(&f, "merge", "", 1, 0);
    assert_string_equal(fixture_run_pass(&f), "merge a c");
    fixture_release(&f);
}

static void other_runs_are_not_planned(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(9), fixture_max(2)};
    limits[1].resource = true;
    fixture_run(&f, SCHED_RANK, limits, 2);
    add_all(&f);
    assert_false(sched_plan(f.sched, UINT32_MAX));
    assert_string_equal(fixture_run_pass(&f), "a c");
    fixture_release(&f);
}

static void small_efforts_come_to_the_same_in_the_end(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    add_all(&f);
    uint32_t calls = 1;
    while (sched_plan(f.sched, 1)) {
        calls++;
        assert_true(calls < 100000);
    }
    assert_string_equal(fixture_run_pass(&f), "a");
    assert_held(&f, "c", "b");
    assert_false(sched_plan(f.sched, 1)); /* it is at rest */
    fixture_release(&f);
}

static void nothing_is_held_past_its_max_wait(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    add(&f, "a", "", 5, 1);
    add(&f, "b", "a", 10, 2);
    f.spec.class_id = fixture_class(&f, 0, false, 1, 2 * MINUTE);
    add(&f, "c", "", 8, 1);
    f.spec.class_id = f.work;
    add(&f, "d", "b", 10, 1);
    assert_string_equal(planned_pass(&f), "a c"); /* it would be too late */
    fixture_release(&f);

    int64_t max_wait_ns = 5 * MINUTE + 10 * SECOND;
    setup(&f);
    add(&f, "a", "", 5, 1);
    add(&f, "b", "a", 10, 2);
    add(&f, "d", "b", 10, 1);
    f.spec.class_id = fixture_class(&f, 0, false, 1, max_wait_ns);
    add(&f, "c", "", 8, 1);
    assert_string_equal(planned_pass(&f), "a");
    fixture_pass(&f, max_wait_ns - 1);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_held(&f, "c", "b"); /* a is late, but not by more than a margin */
    fixture_pass(&f, 1);
    assert_string_equal(fixture_run_pass(&f), "c");
    fixture_release(&f);
}

static void what_is_overdue_holds_nothing(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    add_all(&f);
    assert_string_equal(planned_pass(&f), "a");
    int64_t timer_ns = sched_next_timer(f.sched);
    assert_true(timer_ns > 5 * MINUTE && timer_ns < 6 * MINUTE);
    fixture_pass(&f, timer_ns - 1);
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_pass(&f, 1);
    assert_string_equal(fixture_run_pass(&f),
                        "c"); /* nobody has thought again */
    fixture_release(&f);
}

static void an_end_at_another_time_makes_a_plan_stale(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    add_all(&f);
    add(&f, "long", "", 9, 0);
    assert_string_equal(planned_pass(&f), "a long");
    fixture_pass(&f, MINUTE);
    fixture_done(&f, "long"); /* eight minutes early */
    assert_string_equal(fixture_run_pass(&f), "c");
    fixture_release(&f);
}

/* A 32nd of the estimate, and a nanosecond. */
static void an_end_within_the_margin_upsets_nothing(void **state)
{
    (void)state;
    const int64_t margin_ns = 2 * MINUTE / 32 + 1;
    const struct {
        int64_t late_ns;
        const char *started;
    } cases[] = {
        {margin_ns, ""},
        {margin_ns + 1, "c"},
        {-margin_ns, ""},
        {-margin_ns - 1, "c"},
    };
    for (size_t ix = 0; ix < sizeof(cases) / sizeof(cases[0]); ix++) {
        struct fixture f;
        setup(&f);
        add_all(&f);
        add(&f, "other", "", 2, 0);
        assert_string_equal(planned_pass(&f), "a other");
        fixture_pass(&f, 2 * MINUTE + cases[ix].late_ns);
        fixture_done(&f, "other");
        assert_string_equal(fixture_run_pass(&f), cases[ix].started);
        fixture_release(&f);
    }
}

static void orders_and_new_work_are_planned_for(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    add_all(&f);
    assert_string_equal(planned_pass(&f), "a");
    fixture_order(&f, EVENT_HOLD, "b");
    assert_string_equal(planned_pass(&f), "c"); /* b will not come now */
    fixture_release(&f);

    setup(&f);
    add_all(&f);
    assert_string_equal(planned_pass(&f), "a");
    add(&f, "e", "", 30, 0);
    assert_string_equal(planned_pass(&f), "e c"); /* that ends last anyway */
    fixture_release(&f);
}

static void a_plan_waits_for_nothing_when_nothing_is_in_flight(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    add_all(&f);
    assert_string_equal(planned_pass(&f), "a");
    assert_held(&f, "c", "b");
    fixture_end(&f, "a", OUTCOME_BLOCKED); /* b cannot come any more */
    assert_string_equal(planned_pass(&f), "c");
    fixture_release(&f);
}

static void a_better_tier_is_never_held_for_a_worse_one(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    f.spec.class_id = fixture_class(&f, 1, false, 1, SCHED_NEVER);
    add(&f, "a", "", 5, 1);
    add(&f, "b", "a", 10, 2);
    add(&f, "d", "b", 10, 1);
    f.spec.class_id = f.work;
    add(&f, "c", "", 8, 1);
    assert_string_equal(planned_pass(&f), "c a");
    fixture_release(&f);
}

static void a_paused_run_is_not_woken_by_its_plan(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    add_all(&f);
    assert_string_equal(planned_pass(&f), "a");
    fixture_order_run(&f, EVENT_PAUSE);
    assert_string_equal(planned_pass(&f), "");
    assert_int_equal(sched_next_timer(f.sched), SCHED_NEVER);
    fixture_order_run(&f, EVENT_RESUME);
    assert_string_equal(planned_pass(&f), "");
    assert_held(&f, "c", "b");
    fixture_release(&f);
}

static void two_runs_plan_side_by_side(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    add_all(&f);
    struct limit_spec limits[] = {fixture_max(9), fixture_max(2)};
    limits[1].resource = true;
    fixture_run(&f, SCHED_LOOKAHEAD, limits, 2);
    struct sched_use use = {f.limits[3], 1};
    struct sched_use both = {f.limits[3], 2};
    f.spec.use_count = 1;
    f.spec.uses = &use;
    f.spec.estimate_ns = 5 * MINUTE;
    fixture_task(&f, "a2", "");
    f.spec.uses = &both;
    f.spec.estimate_ns = 10 * MINUTE;
    fixture_task(&f, "b2", "a2");
    f.spec.uses = &use;
    f.spec.estimate_ns = 8 * MINUTE;
    fixture_task(&f, "c2", "");
    f.spec.estimate_ns = 10 * MINUTE;
    fixture_task(&f, "d2", "b2");
    uint32_t calls = 0;
    while (sched_plan(f.sched, 100)) {
        assert_true(calls++ < 100000);
    }
    const char *started = fixture_run_pass(&f);
    assert_string_equal(started, "a a2");
    assert_held(&f, "c", "b");
    assert_held(&f, "c2", "b2");
    fixture_release(&f);
}

/* Four sessions of ten minutes take this many. */
static void run_four(struct fixture *f, int64_t minutes)
{
    static const char *const names[] = {"w1", "w2", "w3", "w4"};
    for (uint32_t ix = 0; ix < 4; ix++) {
        add(f, names[ix], "", 10, 0);
    }
    assert_string_equal(planned_pass(f), "w1 w2 w3 w4");
    fixture_pass(f, minutes * MINUTE);
    for (uint32_t ix = 0; ix < 4; ix++) {
        fixture_done(f, names[ix]);
    }
    assert_string_equal(planned_pass(f), "");
}

static void bad_estimates_hold_nothing_back(void **state)
{
    (void)state;
    const struct {
        int64_t minutes;
        const char *started;
    } cases[] = {
        {10, "a"},
        {15, "a"},   /* ln 0.4 */
        {19, "a c"}, /* ln 0.64 */
        {6, "a"},
        {5, "a c"},  /* ln 0.69 */
        {30, "a c"}, /* ln 1.1: by rank */
    };
    for (size_t ix = 0; ix < sizeof(cases) / sizeof(cases[0]); ix++) {
        struct fixture f;
        setup(&f);
        run_four(&f, cases[ix].minutes);
        add_all(&f);
        assert_string_equal(planned_pass(&f), cases[ix].started);
        fixture_release(&f);
    }
}

static void a_search_goes_on_when_time_permits(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    assert_false(sched_can_plan_more(f.sched));
    add_all(&f);
    add(&f, "e", "", 7, 2);
    add(&f, "g", "a", 9, 2);
    uint32_t calls = 0;
    while (sched_plan(f.sched, 100)) {
        assert_true(calls++ < 100000);
    }
    assert_true(sched_can_plan_more(f.sched));
    while (sched_plan_more(f.sched, 100)) {
        assert_true(calls++ < 1000000);
    }
    assert_false(sched_can_plan_more(f.sched));
    assert_false(sched_plan_more(f.sched, 100));
    fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_is_left_idle_when_that_ends_sooner),
        cmocka_unit_test(without_a_plan_rank_decides),
        cmocka_unit_test(a_queue_goes_before_the_schedule),
        cmocka_unit_test(other_runs_are_not_planned),
        cmocka_unit_test(small_efforts_come_to_the_same_in_the_end),
        cmocka_unit_test(nothing_is_held_past_its_max_wait),
        cmocka_unit_test(what_is_overdue_holds_nothing),
        cmocka_unit_test(an_end_at_another_time_makes_a_plan_stale),
        cmocka_unit_test(an_end_within_the_margin_upsets_nothing),
        cmocka_unit_test(orders_and_new_work_are_planned_for),
        cmocka_unit_test(a_plan_waits_for_nothing_when_nothing_is_in_flight),
        cmocka_unit_test(a_better_tier_is_never_held_for_a_worse_one),
        cmocka_unit_test(a_paused_run_is_not_woken_by_its_plan),
        cmocka_unit_test(two_runs_plan_side_by_side),
        cmocka_unit_test(bad_estimates_hold_nothing_back),
        cmocka_unit_test(a_search_goes_on_when_time_permits),
    };
    return cmocka_run_group_tests_name("sched_lookahead", tests, NULL, NULL);
}
