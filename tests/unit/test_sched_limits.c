/* SPDX-License-Identifier: MIT */
/* Who fits: limits of every kind, and what is kept for whom. */
#include "tests/unit/sched_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Add a task that takes `units` of limit `ix`. */
static void wide_task(struct fixture *f,
                      const char *name,
                      const char *needs,
                      uint32_t ix,
                      uint32_t units)
{
    struct sched_use use = {f->limits[ix], units};
    f->spec.uses = &use;
    f->spec.use_count = 1;
    fixture_task(f, name, needs);
    f->spec.uses = NULL;
    f->spec.use_count = 0;
}

static void the_cap_is_filled_in_one_pass(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 3);
    static const char *const names[] = {"a", "b", "c", "d"};
    for (uint32_t ix = 0; ix < 4; ix++) {
        fixture_task(&f, names[ix], "");
    }
    assert_string_equal(fixture_run_pass(&f), "a b c");
    assert_int_equal(fixture_used(&f, 0), 3);
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_done(&f, "b");
    assert_int_equal(fixture_used(&f, 0), 2);
    assert_string_equal(fixture_run_pass(&f), "d");
    fixture_release(&f);
}

static void without_limits_everything_starts(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_run(&f, SCHED_RANK, NULL, 0);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "a b");
    fixture_release(&f);
}

static void a_task_takes_the_units_it_asked_for(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 5);
    wide_task(&f, "a", "", 0, 3);
    wide_task(&f, "b", "", 0, 2);
    fixture_task(&f, "c", "");
    assert_string_equal(fixture_run_pass(&f), "a b");
    assert_int_equal(fixture_used(&f, 0), 5);
    fixture_done(&f, "a");
    assert_int_equal(fixture_used(&f, 0), 2);
    assert_string_equal(fixture_run_pass(&f), "c");
    fixture_release(&f);
}

static void a_percentage_follows_the_cap_while_it_runs(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(2), fixture_percent(34)};
    static const struct attribute reviews[] = {{FIXTURE_CLASS, 1}};
    limits[1].where = reviews;
    limits[1].where_count = 1;
    fixture_run(&f, SCHED_RANK, limits, 2);
    fixture_attribute(&f, FIXTURE_CLASS, 1);
    static const char *const names[] = {"a", "b", "c", "d"};
    for (uint32_t ix = 0; ix < 4; ix++) {
        fixture_task(&f, names[ix], "");
    }
    assert_string_equal(fixture_run_pass(&f), "a");
    static const struct {
        int64_t cap;
        int64_t share;
    } steps[] = {{4, 1}, {8, 2}, {5, 1}, {0, 1}, {9, 3}, {2, 1}};
    for (uint32_t ix = 0; ix < 6; ix++) {
        fixture_set_limit(&f, 0, steps[ix].cap, 0);
        assert_true(fixture_max_now(&f, 1) == steps[ix].share);
    }
    fixture_set_limit(&f, 0, 8, 0);
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_set_limit(&f, 0, LIMIT_NONE, 0);
    assert_true(fixture_max_now(&f, 1) == LIMIT_NONE);
    assert_string_equal(fixture_run_pass(&f), "c d");
    fixture_release(&f);
}

static void a_limit_can_become_a_percentage_and_back(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(4), fixture_max(9)};
    fixture_run(&f, SCHED_RANK, limits, 2);
    fixture_set_limit(&f, 1, 0, 50);
    assert_int_equal(fixture_max_now(&f, 1), 2);
    fixture_set_limit(&f, 0, 6, 0);
    assert_int_equal(fixture_max_now(&f, 1), 3);
    fixture_set_limit(&f, 1, 7, 0);
    fixture_set_limit(&f, 0, 2, 0);
    assert_int_equal(fixture_max_now(&f, 1), 7);
    fixture_release(&f);
}

static void a_wrong_change_of_a_limit_is_refused(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 4);
    const struct sched_event wrong[] = {
        {.limit = {9999}, .max = 1},
        {.limit = f.limits[0], .max = -1},
        {.limit = f.limits[0], .percent = 101},
        {.limit = f.limits[0], .percent = 50},    /* of itself */
        {.limit = {f.limits[0].v + 1}, .max = 0}, /* the run's own gate */
    };
    for (uint32_t ix = 0; ix < sizeof(wrong) / sizeof(wrong[0]); ix++) {
        struct sched_event event = wrong[ix];
        event.type = EVENT_LIMIT;
        assert_int_equal(sched_apply(f.sched, &event), ERR_INVALID);
        assert_int_equal(fixture_max_now(&f, 0), 4);
    }
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_release(&f);
}

static void set_ahead(struct fixture *f, uint32_t limit, uint32_t ahead)
{
    struct sched_event event = {
        .type = EVENT_AHEAD,
        .now_ns = f->now_ns,
        .limit = f->limits[limit],
        .ahead = ahead,
    };
    assert_int_equal(sched_apply(f->sched, &event), ERR_OK);
}

static void tasks_start_ahead_of_a_limit(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    for (const char *name = "abcdef"; *name != '\0'; name++) {
        fixture_task(&f, (const char[]){*name, '\0'}, "");
    }
    assert_string_equal(fixture_run_pass(&f), "a");
    set_ahead(&f, 0, 2);
    assert_int_equal(fixture_max_now(&f, 0), 1);
    assert_string_equal(fixture_run_pass(&f), "b c");
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "d");
    set_ahead(&f, 0, 0);
    fixture_done(&f, "b c");
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_done(&f, "d");
    assert_string_equal(fixture_run_pass(&f), "e");
    fixture_set_limit(&f, 0, LIMIT_NONE, 0);
    set_ahead(&f, 0, UINT32_MAX);
    assert_true(fixture_max_now(&f, 0) == LIMIT_NONE);
    assert_string_equal(fixture_run_pass(&f), "f");
    fixture_release(&f);
}

static void a_share_does_not_grow_with_what_starts_ahead(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(4), fixture_percent(50)};
    fixture_run(&f, SCHED_RANK, limits, 2);
    set_ahead(&f, 0, 4);
    assert_int_equal(fixture_max_now(&f, 1), 2);
    for (const char *name = "abcd"; *name != '\0'; name++) {
        fixture_task(&f, (const char[]){*name, '\0'}, "");
    }
    assert_string_equal(fixture_run_pass(&f), "a b");
    set_ahead(&f, 1, 1);
    assert_int_equal(fixture_max_now(&f, 1), 2);
    assert_string_equal(fixture_run_pass(&f), "c");
    fixture_release(&f);
}

static void only_limits_of_plans_have_units_ahead(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 4);
    const struct limit_id wrong[] = {{9999}, {f.limits[0].v + 1}};
    for (uint32_t ix = 0; ix < 2; ix++) {
        struct sched_event event = {
            .type = EVENT_AHEAD,
            .limit = wrong[ix],
            .ahead = 1,
        };
        assert_int_equal(sched_apply(f.sched, &event), ERR_INVALID);
    }
    fixture_release(&f);
}

static void per_counts_each_value_apart(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec per = fixture_per(1, FIXTURE_REPO);
    fixture_run(&f, SCHED_RANK, &per, 1);
    static const char *const names[] = {"a1", "a2", "b1", "b2"};
    for (uint32_t ix = 0; ix < 4; ix++) {
        fixture_attribute(&f, FIXTURE_REPO, ix / 2);
        fixture_task(&f, names[ix], "");
    }
    fixture_attribute(&f, FIXTURE_CLASS, 1); /* has no repo: not limited */
    fixture_task(&f, "x", "");
    fixture_task(&f, "y", "");
    assert_string_equal(fixture_run_pass(&f), "a1 b1 x y");
    assert_int_equal(fixture_used(&f, 0), 2); /* over all values */
    fixture_done(&f, "b1");
    assert_string_equal(fixture_run_pass(&f), "b2");
    fixture_release(&f);
}

static void where_and_per_work_together(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    static const struct attribute merges[] = {{FIXTURE_CLASS, 4}};
    struct limit_spec merge = fixture_per(1, FIXTURE_REPO);
    merge.where = merges;
    merge.where_count = 1;
    fixture_run(&f, SCHED_RANK, &merge, 1);
    f.spec.attributes = f.attributes;
    f.spec.attribute_count = 2;
    f.attributes[0] = (struct attribute){FIXTURE_CLASS, 4};
    f.attributes[1] = (struct attribute){FIXTURE_REPO, 1};
    fixture_task(&f, "m1", "");
    fixture_task(&f, "m2", "");
    f.attributes[0].value = 5;
    fixture_task(&f, "w1", "");
    f.attributes[0].value = 4;
    f.attributes[1].value = 2;
    fixture_task(&f, "n1", "");
    assert_string_equal(fixture_run_pass(&f), "m1 w1 n1");
    fixture_release(&f);
}

static void a_task_starts_when_every_limit_has_room(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {
        fixture_max(2),
        fixture_per(1, FIXTURE_REPO),
    };
    fixture_run(&f, SCHED_RANK, limits, 2);
    fixture_attribute(&f, FIXTURE_REPO, 1);
    fixture_task(&f, "a1", "");
    fixture_task(&f, "a2", "");
    fixture_attribute(&f, FIXTURE_REPO, 2);
    f.spec.estimate_ns = 0;
    fixture_task(&f, "b1", "");
    fixture_task(&f, "b2", "");
    assert_string_equal(fixture_run_pass(&f), "a1 b1");
    fixture_done(&f, "b1"); /* a2 holds nothing while it waits for a1 */
    assert_string_equal(fixture_run_pass(&f), "b2");
    fixture_done(&f, "a1 b2");
    assert_string_equal(fixture_run_pass(&f), "a2");
    fixture_release(&f);
}

static void groups_hold_their_place_until_nothing_keeps_them(void **state)
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
    uint32_t first = fixture_group(&f, FIXTURE_REPO, 1);
    uint32_t second = fixture_group(&f, FIXTURE_REPO, 1);
    f.spec.group = first;
    fixture_task(&f, "a1", "");
    fixture_task(&f, "a2", "a1");
    f.spec.group = second;
    f.spec.estimate_ns = 0;
    fixture_task(&f, "b1", "");
    assert_string_equal(fixture_run_pass(&f), "a1");
    assert_true(fixture_get(&f, "a1").group_open);
    assert_int_equal(fixture_used(&f, 1), 1);
    fixture_done(&f, "a1");
    assert_string_equal(fixture_run_pass(&f),
                        "a2"); /* the same issue goes on */
    assert_int_equal(fixture_used(&f, 1), 1);
    fixture_done(&f, "a2");
    assert_string_equal(fixture_run_pass(&f), "b1");
    assert_false(fixture_get(&f, "a1").group_open);
    fixture_done(&f, "b1");
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_used(&f, 1), 0);
    fixture_release(&f);
}

static void several_tasks_of_an_open_group_need_one_place(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(3), fixture_max(1)};
    limits[1].hold_group = true;
    fixture_run(&f, SCHED_RANK, limits, 2);
    f.spec.group = fixture_group(&f, 0, 0);
    fixture_task(&f, "a1", "");
    fixture_task(&f, "a2", "");
    f.spec.group = ID_NONE; /* a group of its own */
    f.spec.estimate_ns = 9 * MINUTE;
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_done(&f, "b");
    assert_string_equal(fixture_run_pass(&f), "a1 a2");
    assert_int_equal(fixture_used(&f, 1), 1);
    fixture_release(&f);
}

static void a_group_that_waits_outside_or_is_parked_blocks_nobody(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec active = fixture_per(1, FIXTURE_REPO);
    active.hold_group = true;
    fixture_run(&f, SCHED_RANK, &active, 1);
    fixture_attribute(&f, 0, 0);
    fixture_task(&f, "outside", "");
    uint32_t first = fixture_group(&f, FIXTURE_REPO, 1);
    uint32_t second = fixture_group(&f, FIXTURE_REPO, 1);
    f.spec.group = first;
    fixture_task(&f, "a1", "");
    fixture_task(&f, "a2", "a1 outside");
    f.spec.group = second;
    f.spec.estimate_ns = 0;
    fixture_task(&f, "b1", "");
    fixture_task(&f, "b2", "b1");
    assert_string_equal(fixture_run_pass(&f), "outside a1");
    fixture_done(&f, "a1");
    assert_string_equal(fixture_run_pass(&f), "b1"); /* a waits for outside */
    fixture_done(&f, "outside");
    assert_string_equal(fixture_run_pass(&f), ""); /* now b is open */
    fixture_end(&f, "b1", OUTCOME_BLOCKED);
    assert_string_equal(fixture_run_pass(&f), "a2"); /* b is parked */
    fixture_order(&f, EVENT_RETRY, "b1");
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_done(&f, "a2");
    assert_string_equal(fixture_run_pass(&f), "b1");
    fixture_release(&f);
}

static void a_group_is_kept_open_by_back_off_but_not_by_a_hold(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec active = fixture_max(1);
    active.hold_group = true;
    fixture_run(&f, SCHED_RANK, &active, 1);
    f.failure.retry_max = 3;
    f.failure.backoff_ns = MINUTE;
    f.failure.backoff_ns_max = MINUTE;
    fixture_task(&f, "a", "");
    f.spec.estimate_ns = 0;
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_end(&f, "a", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), ""); /* a keeps its place */
    assert_true(fixture_get(&f, "a").group_open);
    fixture_order(&f, EVENT_HOLD, "a");
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_order(&f, EVENT_RELEASE, "a"); /* backing off: counts again */
    fixture_done(&f, "b");
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_pass(&f, MINUTE);
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_release(&f);
}

static void a_background_task_needs_no_place_for_its_group(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(3), fixture_max(1)};
    limits[1].hold_group = true;
    fixture_run(&f, SCHED_RANK, limits, 2);
    struct class_id deferred = fixture_class(&f, 1, true, 1, SCHED_NEVER);
    uint32_t first = fixture_group(&f, 0, 0);
    f.spec.group = first;
    fixture_task(&f, "a1", "");
    f.spec.class_id = deferred;
    fixture_task(&f, "a2", "a1");
    f.spec.group = ID_NONE;
    f.spec.class_id = f.work;
    f.spec.estimate_ns = 0;
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "a1");
    fixture_done(&f, "a1");
    assert_string_equal(fixture_run_pass(&f), "b a2"); /* a is closed */
    assert_false(fixture_get(&f, "a2").group_open);
    assert_int_equal(fixture_used(&f, 1), 1);
    fixture_done(&f, "a2");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_used(&f, 1), 1);
    fixture_release(&f);
}

static void limits_shared_by_runs_count_together(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {
        fixture_max(9),
        fixture_per(1, FIXTURE_REPO),
    };
    limits[1].hold_group = true;
    limits[1].share = 1;
    fixture_attribute(&f, FIXTURE_REPO, 1);
    fixture_run(&f, SCHED_RANK, limits, 2);
    fixture_task(&f, "one", "");
    limits[1].max = 2; /* the second run allows more */
    fixture_run(&f, SCHED_RANK, limits, 2);
    f.spec.estimate_ns = 0;
    fixture_task(&f, "two", "");
    fixture_task(&f, "three", "");
    assert_string_equal(fixture_run_pass(&f), "one two");
    assert_int_equal(fixture_used(&f, 0), 1); /* each run has a cap */
    assert_int_equal(fixture_used(&f, 1), 2); /* but one count for the repo */
    assert_int_equal(fixture_used(&f, 3), 2);
    fixture_done(&f, "one");
    assert_string_equal(fixture_run_pass(&f), "three");
    fixture_release(&f);
}

static void a_resource_is_only_for_those_who_ask(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(9), fixture_max(4)};
    limits[1].resource = true;
    fixture_run(&f, SCHED_RANK, limits, 2);
    wide_task(&f, "a", "", 1, 3);
    wide_task(&f, "b", "", 1, 2);
    fixture_task(&f, "c", "");
    assert_string_equal(fixture_run_pass(&f), "a c");
    assert_int_equal(fixture_used(&f, 1), 3);
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_release(&f);
}

static void a_resource_can_be_added_to_a_run(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 9);
    fixture_task(&f, "old", "");
    struct limit_spec spec = fixture_max(1);
    spec.resource = true;
    struct limit_id added = sched_add_limit(f.sched, f.run, &spec);
    f.limits[f.limit_count++] = added;
    wide_task(&f, "a", "", 1, 1);
    wide_task(&f, "b", "", 1, 1);
    assert_string_equal(fixture_run_pass(&f), "old a");
    assert_int_equal(fixture_used(&f, 1), 1);
    fixture_set_limit(&f, 1, 2, 0);
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_release(&f);
}

static void free_units_are_kept_for_the_wide_task_in_front(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 4);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    f.spec.estimate_ns = 9 * MINUTE;
    fixture_task(&f, "c", "");
    assert_string_equal(fixture_run_pass(&f), "c a b");
    f.spec.estimate_ns = MINUTE;
    fixture_pass(&f, 1); /* from now on, nothing ends before a and b */
    wide_task(&f, "wide", "", 0, 3);
    fixture_task(&f, "d", "");
    assert_string_equal(fixture_run_pass(&f), ""); /* one is free, and kept */
    assert_int_equal(fixture_why(&f, "d").code, WHY_RESERVED);
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_done(&f, "b");
    assert_string_equal(fixture_run_pass(&f), "wide");
    fixture_done(&f, "c");
    assert_string_equal(fixture_run_pass(&f), "d");
    fixture_release(&f);
}

static void a_better_task_may_take_what_was_kept(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    f.spec.class_id = f.review;
    wide_task(&f, "wide", "", 0, 2);
    assert_string_equal(fixture_run_pass(&f), "");
    f.spec.class_id = f.work;
    fixture_task(&f, "better", "");
    assert_string_equal(fixture_run_pass(&f), "better");
    fixture_release(&f);
}

static void nothing_is_kept_while_another_limit_is_full(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {
        fixture_max(2),
        fixture_per(1, FIXTURE_REPO),
    };
    fixture_run(&f, SCHED_RANK, limits, 2);
    fixture_attribute(&f, FIXTURE_REPO, 1);
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    wide_task(&f, "wide", "", 0, 2); /* its repo is taken, too */
    fixture_attribute(&f, FIXTURE_REPO, 2);
    f.spec.estimate_ns = 0;
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_release(&f);
}

static void one_that_lacks_two_limits_keeps_neither(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(3), fixture_max(3)};
    limits[1].resource = true;
    fixture_run(&f, SCHED_RANK, limits, 2);
    wide_task(&f, "a", "", 1, 2);
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "a b"); /* leaves one of each */
    struct sched_use uses[] = {{f.limits[0], 2}, {f.limits[1], 2}};
    f.spec.uses = uses;
    f.spec.use_count = 2;
    fixture_task(&f, "aside", "");
    f.spec.use_count = 0;
    f.spec.estimate_ns = 1;
    fixture_task(&f, "c", "");
    fixture_task(&f, "d", "");
    assert_string_equal(fixture_run_pass(&f), "c"); /* not held up by aside */
    fixture_pass(&f, 1);
    uint32_t count = 0;
    (void)sched_in_flight(f.sched, &count);
    assert_int_equal(count, 3);
    /* Now it lacks one only, if it is looked at again: it is. */
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_why(&f, "d").code, WHY_RESERVED);
    assert_int_equal(fixture_why(&f, "d").task.v, fixture_id(&f, "aside").v);
    fixture_done(&f, "b");
    assert_string_equal(fixture_run_pass(&f), "aside");
    fixture_done(&f, "c");
    assert_string_equal(fixture_run_pass(&f), "d");
    fixture_release(&f);
}

static void one_set_aside_can_leave_or_lose_its_place(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(3), fixture_max(3)};
    limits[1].resource = true;
    fixture_run(&f, SCHED_RANK, limits, 2);
    wide_task(&f, "a", "", 1, 2);
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "a b");
    struct sched_use uses[] = {{f.limits[0], 2}, {f.limits[1], 2}};
    f.spec.uses = uses;
    f.spec.use_count = 2;
    fixture_task(&f, "aside", "");
    fixture_task(&f, "aside2", "");
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_order(&f, EVENT_CANCEL, "aside2");
    fixture_order(&f, EVENT_HOLD, "aside");
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_order(&f, EVENT_RELEASE, "aside");
    fixture_done(&f, "a b");
    assert_string_equal(fixture_run_pass(&f), "aside");
    fixture_release(&f);
}

static void wider_than_the_limit_waits_and_says_so(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(9), fixture_max(2)};
    limits[1].resource = true;
    fixture_run(&f, SCHED_RANK, limits, 2);
    wide_task(&f, "wide", "", 1, 3);
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    assert_int_equal(fixture_why(&f, "wide").code, WHY_LIMIT);
    assert_int_equal(fixture_why(&f, "wide").limit.v, f.limits[1].v);
    fixture_set_limit(&f, 1, 3, 0);
    assert_string_equal(fixture_run_pass(&f), "wide");
    fixture_release(&f);
}

static void lowering_a_group_limit_closes_nothing(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(9), fixture_max(2)};
    limits[1].hold_group = true;
    fixture_run(&f, SCHED_RANK, limits, 2);
    uint32_t groups[] = {
        fixture_group(&f, 0, 0),
        fixture_group(&f, 0, 0),
        fixture_group(&f, 0, 0),
    };
    static const char *const names[] = {"a1", "a2", "b1", "b2", "c1", "c2"};
    for (uint32_t ix = 0; ix < 6; ix++) {
        f.spec.group = groups[ix / 2];
        f.spec.estimate_ns = (10 - ix) * MINUTE;
        fixture_task(&f, names[ix], ix % 2 == 0 ? "" : names[ix - 1]);
    }
    assert_string_equal(fixture_run_pass(&f), "a1 b1");
    fixture_set_limit(&f, 1, 0, 0);
    fixture_done(&f, "a1 b1");
    assert_string_equal(fixture_run_pass(&f), "a2 b2"); /* they were open */
    fixture_done(&f, "a2 b2");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_used(&f, 1), 0);
    fixture_set_limit(&f, 1, 1, 0);
    assert_string_equal(fixture_run_pass(&f), "c1");
    fixture_release(&f);
}

static void fits_without_counts_what_the_other_uses(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(3), fixture_max(2)};
    limits[1].hold_group = true;
    fixture_run(&f, SCHED_RANK, limits, 2);
    fixture_task(&f, "a", "");
    f.spec.group = fixture_group(&f, 0, 0);
    fixture_task(&f, "b", "");
    fixture_task(&f, "c", "");
    f.spec.group = ID_NONE;
    f.spec.estimate_ns = 0;
    fixture_task(&f, "d", "");
    wide_task(&f, "wide", "", 0, 2);
    assert_string_equal(fixture_run_pass(&f), "a b c");
    struct task_id a = fixture_id(&f, "a");
    struct task_id b = fixture_id(&f, "b");
    struct task_id d = fixture_id(&f, "d");
    assert_true(sched_fits_without(f.sched, d, a));
    assert_false(sched_fits_without(f.sched, d, b)); /* c keeps its group */
    assert_false(sched_fits_without(f.sched, fixture_id(&f, "wide"), a));
    fixture_set_limit(&f, 1, 3, 0);
    assert_true(sched_fits_without(f.sched, d, b));
    fixture_set_limit(&f, 0, 2, 0);
    assert_false(sched_fits_without(f.sched, d, b));
    fixture_release(&f);

    /* In the background neither holds a place for its group. */
    fixture_init(&f);
    fixture_run(&f, SCHED_RANK, limits, 2);
    fixture_set_limit(&f, 0, 1, 0);
    f.spec.class_id = fixture_class(&f, 1, true, 1, SCHED_NEVER);
    fixture_task(&f, "back", "");
    fixture_task(&f, "back2", "");
    assert_string_equal(fixture_run_pass(&f), "back");
    f.spec.class_id = f.work;
    fixture_task(&f, "e", "");
    struct task_id back = fixture_id(&f, "back");
    struct task_id e = fixture_id(&f, "e");
    assert_true(sched_fits_without(f.sched, e, back));
    fixture_set_limit(&f, 1, 0, 0);
    assert_false(sched_fits_without(f.sched, e, back));
    assert_true(sched_fits_without(f.sched, fixture_id(&f, "back2"), back));
    fixture_release(&f);

    /* One whose group is open needs no further place. */
    fixture_init(&f);
    fixture_run(&f, SCHED_RANK, limits, 2);
    fixture_set_limit(&f, 0, 1, 0);
    f.spec.group = fixture_group(&f, 0, 0);
    fixture_task(&f, "g", "");
    fixture_task(&f, "h", "");
    assert_string_equal(fixture_run_pass(&f), "g");
    fixture_set_limit(&f, 1, 0, 0);
    assert_true(
        sched_fits_without(f.sched, fixture_id(&f, "h"), fixture_id(&f, "g")));
    fixture_release(&f);
}

static void memory_grows_with_the_tasks_only(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 3);
    size_t empty = sched_bytes(f.sched);
    struct task_id first = fixture_tasks(&f, 1000);
    size_t full = sched_bytes(f.sched);
    assert_true(full >= empty + 100000);
    for (uint32_t ix = 0; ix < 1000; ix++) {
        (void)fixture_run_pass(&f);
        fixture_end_id(&f, (struct task_id){first.v + ix}, OUTCOME_DONE);
    }
    assert_int_equal(sched_bytes(f.sched), full); /* a pass allocates nothing */
    fixture_release(&f);
}

static void a_thousand_different_limits_sets_and_rules_are_kept(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {
        fixture_max(LIMIT_NONE),
        fixture_per(1, FIXTURE_REPO),
    };
    fixture_run(&f, SCHED_RANK, limits, 2);
    uint32_t group = fixture_group(&f, 0, 0);
    struct task_id first = {0};
    for (uint32_t ix = 0; ix < 1000; ix++) {
        struct sched_use use = {f.limits[0], 1 + ix % 7};
        fixture_attribute(&f, FIXTURE_REPO, ix);
        f.spec.uses = &use;
        f.spec.use_count = 1;
        f.spec.group = group; /* many kinds of tasks in one group */
        f.failure.retry_max = ix;
        (void)fixture_tasks(&f, 1);
    }
    (void)fixture_run_pass(&f);
    assert_int_equal(sched_run(f.sched, f.run).in_flight, 1000);
    assert_int_equal(fixture_used(&f, 1), 1000);
    for (uint32_t ix = 0; ix < 1000; ix++) {
        fixture_end_id(&f, (struct task_id){first.v + ix}, OUTCOME_DONE);
    }
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_used(&f, 0), 0);
    assert_int_equal(fixture_used(&f, 1), 0);
    fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cap_is_filled_in_one_pass),
        cmocka_unit_test(without_limits_everything_starts),
        cmocka_unit_test(a_task_takes_the_units_it_asked_for),
        cmocka_unit_test(a_percentage_follows_the_cap_while_it_runs),
        cmocka_unit_test(a_limit_can_become_a_percentage_and_back),
        cmocka_unit_test(a_wrong_change_of_a_limit_is_refused),
        cmocka_unit_test(tasks_start_ahead_of_a_limit),
        cmocka_unit_test(a_share_does_not_grow_with_what_starts_ahead),
        cmocka_unit_test(only_limits_of_plans_have_units_ahead),
        cmocka_unit_test(per_counts_each_value_apart),
        cmocka_unit_test(where_and_per_work_together),
        cmocka_unit_test(a_task_starts_when_every_limit_has_room),
        cmocka_unit_test(groups_hold_their_place_until_nothing_keeps_them),
        cmocka_unit_test(several_tasks_of_an_open_group_need_one_place),
        cmocka_unit_test(a_group_that_waits_outside_or_is_parked_blocks_nobody),
        cmocka_unit_test(a_group_is_kept_open_by_back_off_but_not_by_a_hold),
        cmocka_unit_test(a_background_task_needs_no_place_for_its_group),
        cmocka_unit_test(limits_shared_by_runs_count_together),
        cmocka_unit_test(a_resource_is_only_for_those_who_ask),
        cmocka_unit_test(a_resource_can_be_added_to_a_run),
        cmocka_unit_test(free_units_are_kept_for_the_wide_task_in_front),
        cmocka_unit_test(a_better_task_may_take_what_was_kept),
        cmocka_unit_test(nothing_is_kept_while_another_limit_is_full),
        cmocka_unit_test(one_that_lacks_two_limits_keeps_neither),
        cmocka_unit_test(one_set_aside_can_leave_or_lose_its_place),
        cmocka_unit_test(wider_than_the_limit_waits_and_says_so),
        cmocka_unit_test(lowering_a_group_limit_closes_nothing),
        cmocka_unit_test(fits_without_counts_what_the_other_uses),
        cmocka_unit_test(memory_grows_with_the_tasks_only),
        cmocka_unit_test(a_thousand_different_limits_sets_and_rules_are_kept),
    };
    return cmocka_run_group_tests_name("sched: limits", tests, NULL, NULL);
}
