/* SPDX-License-Identifier: MIT */
/* Limits that count the background: what they admit, lend and whose turn it
 * is. */
#include "tests/unit/sched_crew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { CAP, SHARE, ACTIVE, LIMITS };

/* A run with a cap, a share (a percentage, or 1 if that is 0) and one open
 * group per repo; reviews are deferred. To be restored into, or used. */
static void
share_run(struct fixture *f, int64_t cap, uint32_t percent, int64_t max_wait_ns)
{
    fixture_init(f);
    sched_restore(f->sched, 0, 50);
    struct limit_spec limits[LIMITS] = {
        fixture_max(cap),
        fixture_max(1),
        fixture_per(1, FIXTURE_REPO),
    };
    static const struct attribute reviews[] = {{FIXTURE_CLASS, 1}};
    limits[SHARE].percent = percent;
    limits[SHARE].background = true;
    limits[SHARE].where = reviews;
    limits[SHARE].where_count = 1;
    limits[ACTIVE].hold_group = true;
    fixture_run(f, SCHED_FIFO, limits, LIMITS);
    f->review = fixture_class(f, 1, true, 1, max_wait_ns);
}

static void add_review(struct fixture *f, const char *name, const char *needs)
{
    f->spec.class_id = f->review;
    fixture_attribute(f, FIXTURE_CLASS, 1);
    fixture_task(f, name, needs);
    fixture_attribute(f, 0, 0);
    f->spec.class_id = f->work;
}

static void add_work(struct fixture *f, const char *name, const char *needs)
{
    f->spec.class_id = f->work;
    fixture_task(f, name, needs);
}

/* With cap 1 and everything done at once, the order is the whole schedule. */
static void assert_schedule(struct fixture *f, const char *expected)
{
    struct strbuf seen = {0};
    const char *started = fixture_run_pass(f);
    while (*started != '\0') {
        assert_null(strchr(started, ' ')); /* one at a time */
        strbuf_adds(&seen, seen.len > 0 ? " " : "");
        strbuf_adds(&seen, started);
        char name[FIXTURE_NAME_BYTES] = "";
        memcpy(name, started, strcspn(started, "+"));
        fixture_end(f, name, OUTCOME_DONE);
        started = fixture_run_pass(f);
    }
    assert_string_equal(strbuf_text(&seen), expected);
    strbuf_release(&seen);
}

/* ---- what counts ---- */

static void a_review_that_gates_needs_no_share(void **state)
{
    (void)state;
    struct fixture f;
    share_run(&f, 4, 0, SCHED_NEVER);
    add_review(&f, "r1", "");
    add_review(&f, "r2", "");
    add_review(&f, "g1", "");
    add_review(&f, "g2", "");
    add_work(&f, "w1", "g1");
    add_work(&f, "w2", "g2");
    assert_string_equal(fixture_run_pass(&f), "g1 g2 r1");
    assert_int_equal(fixture_used(&f, CAP), 3);
    assert_int_equal(fixture_used(&f, SHARE), 1);
    assert_int_equal(fixture_why(&f, "r2").limit.v, f.limits[SHARE].v);
    fixture_done(&f, "r1");
    assert_int_equal(fixture_used(&f, SHARE), 0);
    assert_string_equal(fixture_run_pass(&f), "r2");
    fixture_release(&f);
}

static void a_session_keeps_the_units_it_started_with(void **state)
{
    (void)state;
    struct fixture f;
    share_run(&f, 4, 0, SCHED_NEVER);
    add_review(&f, "gate", "");
    add_work(&f, "w", "gate");
    add_review(&f, "back", "");
    assert_string_equal(fixture_run_pass(&f), "gate back");
    /* Now the one gates nothing, and the other does. */
    fixture_order(&f, EVENT_CANCEL, "w");
    add_work(&f, "late", "back");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_used(&f, SHARE), 1);
    fixture_done(&f, "gate");
    assert_int_equal(fixture_used(&f, SHARE), 1);
    fixture_done(&f, "back");
    assert_int_equal(fixture_used(&f, SHARE), 0);
    fixture_release(&f);
}

static void a_session_is_restored_with_its_share(void **state)
{
    (void)state;
    struct fixture f;
    share_run(&f, 4, 0, SCHED_NEVER);
    static const struct attribute attributes[] = {{FIXTURE_CLASS, 1}};
    struct crew crew = {0};
    f.spec.class_id = f.review;
    f.spec.attributes = attributes;
    f.spec.attribute_count = 1;
    struct sched_record *record = crew_member(&f, &crew, TASK_RUNNING);
    record->flags |= SCHED_RECORD_BACKGROUND;
    record->ready_ns = 0;
    record = crew_member(&f, &crew, TASK_RUNNING); /* it gated then */
    record->ready_ns = 0;
    record = crew_member(&f, &crew, TASK_READY);
    record->ready_ns = 0;
    crew_add(&f, &crew);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_used(&f, CAP), 2);
    assert_int_equal(fixture_used(&f, SHARE), 1);
    fixture_release(&f);
}

static void without_defer_it_is_an_ordinary_limit(void **state)
{
    (void)state;
    struct fixture f;
    share_run(&f, 4, 0, SCHED_NEVER);
    f.review = fixture_class(&f, 1, false, 1, SCHED_NEVER);
    add_review(&f, "a", "");
    add_review(&f, "b", "");
    add_work(&f, "w", "b");
    assert_string_equal(fixture_run_pass(&f), "b");
    assert_int_equal(fixture_used(&f, SHARE), 1);
    fixture_release(&f);
}

static void a_batch_takes_the_units_of_its_first(void **state)
{
    (void)state;
    struct fixture f;
    share_run(&f, 4, 0, SCHED_NEVER);
    f.review = fixture_class(&f, 1, true, 3, SCHED_NEVER);
    add_review(&f, "r1", "");
    add_review(&f, "r2", "");
    add_review(&f, "gate", "");
    add_work(&f, "w", "gate");
    assert_string_equal(fixture_run_pass(&f), "gate+r1+r2");
    assert_int_equal(fixture_used(&f, SHARE), 0);
    fixture_release(&f);
}

/* ---- what is lent ---- */

static void a_share_lends_what_the_foreground_cannot_use(void **state)
{
    (void)state;
    struct fixture f;
    share_run(&f, 8, 34, SCHED_NEVER);
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_max_now(&f, SHARE), 8);
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};
    static const int64_t shares[] = {7, 6, 5, 4, 3, 2, 2};
    for (uint32_t ix = 0; ix < 7; ix++) {
        add_work(&f, names[ix], "");
        (void)fixture_run_pass(&f);
        assert_int_equal(fixture_max_now(&f, SHARE), shares[ix]);
    }
    fixture_done(&f, "a b c d e f");
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_max_now(&f, SHARE), 7);
    fixture_set_limit(&f, CAP, 3, 0);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_max_now(&f, SHARE), 2);
    fixture_set_limit(&f, CAP, 0, 0);
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_max_now(&f, SHARE), 1); /* as without lending */
    fixture_set_limit(&f, CAP, LIMIT_NONE, 0);
    (void)fixture_run_pass(&f);
    assert_true(fixture_max_now(&f, SHARE) == LIMIT_NONE);
    fixture_release(&f);
}

static void a_number_lends_nothing(void **state)
{
    (void)state;
    struct fixture f;
    share_run(&f, 8, 0, SCHED_NEVER);
    add_review(&f, "a", "");
    add_review(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    assert_int_equal(fixture_max_now(&f, SHARE), 1);
    fixture_set_limit(&f, SHARE, 0, 20); /* now it lends */
    assert_string_equal(fixture_run_pass(&f), "b");
    assert_int_equal(fixture_max_now(&f, SHARE), 8);
    fixture_set_limit(&f, SHARE, 2, 0);
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_max_now(&f, SHARE), 2);
    fixture_release(&f);
}

static void a_run_lends_beside_one_that_does_not(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "old", "");
    fixture_task(&f, "older", "");
    assert_string_equal(fixture_run_pass(&f), "old");
    size_t before = sched_bytes(f.sched);
    struct limit_spec limits[] = {fixture_max(8), fixture_percent(20)};
    limits[1].background = true;
    fixture_run(&f, SCHED_FIFO, limits, 2);
    assert_true(sched_bytes(f.sched) > before);
    f.review = fixture_class(&f, 1, true, 1, SCHED_NEVER);
    add_review(&f, "a", "");
    add_review(&f, "b", "");
    add_review(&f, "c", "");
    assert_string_equal(fixture_run_pass(&f), "a b c");
    fixture_order(&f, EVENT_HOLD, "older"); /* the other run lends nothing */
    fixture_done(&f, "old");
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_order(&f, EVENT_RELEASE, "older");
    assert_string_equal(fixture_run_pass(&f), "older");
    sched_verify(f.sched);
    fixture_release(&f);
}

static void a_limit_on_the_foreground_lends_nothing(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(8), fixture_percent(34)};
    fixture_run(&f, SCHED_RANK, limits, 2);
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_max_now(&f, 1), 2);
    fixture_release(&f);
}

static void the_groups_of_a_lane_count_as_many_as_it_admits(void **state)
{
    (void)state;
    struct fixture f;
    share_run(&f, 10, 10, SCHED_NEVER);
    static const char *const names[] = {"a1", "a2", "a3", "b1", "b2"};
    for (uint32_t ix = 0; ix < 5; ix++) {
        f.spec.group = fixture_group(&f, FIXTURE_REPO, ix / 3);
        add_work(&f, names[ix], "");
    }
    assert_string_equal(fixture_run_pass(&f), "a1 b1");
    assert_int_equal(fixture_max_now(&f, SHARE), 8);
    fixture_set_limit(&f, ACTIVE, 2, 0);
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_max_now(&f, SHARE), 6);
    fixture_set_limit(&f, ACTIVE, LIMIT_NONE, 0);
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_max_now(&f, SHARE), 5);
    fixture_set_limit(&f, ACTIVE, 1, 0);
    fixture_done(&f, "b1 b2");
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_max_now(&f, SHARE), 9);
    fixture_release(&f);
}

static void a_group_counts_as_many_as_run_side_by_side(void **state)
{
    (void)state;
    struct fixture f;
    share_run(&f, 10, 10, SCHED_NEVER);
    f.spec.group = fixture_group(&f, 0, 0);
    add_work(&f, "a", "");
    add_work(&f, "b", "a"); /* goes on where a ends */
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_max_now(&f, SHARE), 9);
    add_work(&f, "c", "a"); /* runs beside b */
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_max_now(&f, SHARE), 8);
    add_work(&f, "d", "b c"); /* goes on after b */
    add_work(&f, "e", "c d"); /* goes on after c, the first of them */
    add_work(&f, "f", "d");
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_max_now(&f, SHARE), 8);
    f.spec.group = ID_NONE;
    add_work(&f, "g", "f"); /* a group of its own */
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_max_now(&f, SHARE), 7);
    fixture_release(&f);
}

static void a_lane_is_as_wide_as_its_widest_group_ever(void **state)
{
    (void)state;
    struct fixture f;
    share_run(&f, 10, 10, SCHED_NEVER);
    f.spec.group = fixture_group(&f, FIXTURE_REPO, 1);
    add_work(&f, "a", "");
    add_work(&f, "b", "");
    static const char *const names[] = {"c", "d", "e"};
    for (uint32_t ix = 0; ix < 3; ix++) {
        f.spec.group = fixture_group(&f, FIXTURE_REPO, 1);
        add_work(&f, names[ix], "");
    }
    assert_string_equal(fixture_run_pass(&f), "a b");
    assert_int_equal(fixture_max_now(&f, SHARE), 8);
    fixture_done(&f, "a b");
    assert_string_equal(fixture_run_pass(&f), "c");
    assert_int_equal(fixture_max_now(&f, SHARE), 8);
    fixture_done(&f, "c");
    assert_string_equal(fixture_run_pass(&f), "d");
    fixture_done(&f, "d");
    assert_string_equal(fixture_run_pass(&f), "e");
    assert_int_equal(fixture_max_now(&f, SHARE), 9);
    fixture_release(&f);
}

static void what_is_stuck_leaves_its_sessions(void **state)
{
    (void)state;
    struct fixture f;
    share_run(&f, 10, 10, SCHED_NEVER);
    add_work(&f, "a", "");
    add_work(&f, "b", "a");
    add_work(&f, "c", "b");
    assert_string_equal(fixture_run_pass(&f), "a");
    assert_int_equal(fixture_max_now(&f, SHARE), 7);
    fixture_order(&f, EVENT_HOLD, "b"); /* and c is behind it */
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_max_now(&f, SHARE), 9);
    fixture_order(&f, EVENT_RELEASE, "b");
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_max_now(&f, SHARE), 7);
    fixture_end(&f, "a", OUTCOME_BLOCKED); /* parked */
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_max_now(&f, SHARE), 10);
    fixture_order(&f, EVENT_RETRY, "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    assert_int_equal(fixture_max_now(&f, SHARE), 7);
    fixture_order(&f, EVENT_HOLD, "a"); /* in flight: it counts */
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_max_now(&f, SHARE), 7);
    fixture_release(&f);
}

static void what_backs_off_or_has_no_provider_counts(void **state)
{
    (void)state;
    struct fixture f;
    share_run(&f, 10, 10, SCHED_NEVER);
    f.failure.retry_max = 1;
    f.failure.backoff_ns = MINUTE;
    f.failure.backoff_ns_max = MINUTE;
    add_work(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_end(&f, "a", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_max_now(&f, SHARE), 9);
    fixture_pass(&f, MINUTE);
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_refuse(&f, "a", f.now_ns + MINUTE);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_max_now(&f, SHARE), 9);
    fixture_release(&f);
}

static void the_background_is_not_foreground(void **state)
{
    (void)state;
    struct fixture f;
    share_run(&f, 3, 34, SCHED_NEVER);
    add_review(&f, "r1", "");
    add_review(&f, "r2", "");
    add_review(&f, "r3", "r1");
    assert_string_equal(fixture_run_pass(&f), "r1 r2");
    assert_int_equal(fixture_max_now(&f, SHARE), 3);
    add_work(&f, "w", "r3"); /* now r3 gates, and counts */
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_max_now(&f, SHARE), 1);
    fixture_release(&f);
}

static void what_is_lent_is_used_in_the_same_pass(void **state)
{
    (void)state;
    struct fixture f;
    share_run(&f, 3, 34, SCHED_NEVER);
    add_work(&f, "a", "");
    add_work(&f, "b", "a");
    add_work(&f, "c", "b");
    add_review(&f, "r1", "");
    add_review(&f, "r2", "");
    add_review(&f, "r3", "");
    assert_string_equal(fixture_run_pass(&f), "a r1");
    fixture_order(&f, EVENT_CANCEL, "b");
    assert_string_equal(fixture_run_pass(&f), "r2");
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "r3");
    fixture_release(&f);
}

/* ---- whose turn it is ---- */

static const char *const works[] = {"w1", "w2", "w3", "w4", "w5", "w6"};
static const char *const back[] = {"r1", "r2", "r3"};

/* Three aged reviews in the background and six tasks in the foreground. */
static void
turns(struct fixture *f, uint32_t percent, uint32_t batch, const char *expected)
{
    share_run(f, 1, percent, 10 * MINUTE);
    f->review = fixture_class(f, 1, true, batch, 10 * MINUTE);
    for (uint32_t ix = 0; ix < 3; ix++) {
        add_review(f, back[ix], "");
    }
    for (uint32_t ix = 0; ix < 6; ix++) {
        add_work(f, works[ix], "");
    }
    fixture_pass(f, 10 * MINUTE);
    assert_schedule(f, expected);
    fixture_release(f);
}

static void aged_background_tasks_take_turns(void **state)
{
    (void)state;
    struct fixture f;
    turns(&f, 34, 1, "r1 w1 w2 r2 w3 w4 r3 w5 w6");
    turns(&f, 50, 1, "r1 w1 r2 w2 r3 w3 w4 w5 w6");
    turns(&f, 40, 1, "r1 w1 w2 r2 w3 w4 r3 w5 w6"); /* rounded up */
    turns(&f, 100, 1, "r1 r2 r3 w1 w2 w3 w4 w5 w6");
    turns(&f, 0, 1, "r1 w1 w2 r2 w3 w4 r3 w5 w6"); /* a number: as with 34 % */
}

static void a_batch_owes_a_turn_for_each_of_its_tasks(void **state)
{
    (void)state;
    struct fixture f;
    turns(&f, 34, 2, "r1+r2 w1 w2 w3 w4 r3 w5 w6");
    turns(&f, 25, 3, "r1+r2+r3 w1 w2 w3 w4 w5 w6");
}

static void a_foreground_batch_pays_for_each_of_its_tasks(void **state)
{
    (void)state;
    struct fixture f;
    share_run(&f, 1, 25, 10 * MINUTE);
    f.work = fixture_class(&f, 0, false, 2, SCHED_NEVER);
    add_review(&f, "r1", "");
    add_review(&f, "r2", "");
    for (uint32_t ix = 0; ix < 6; ix++) {
        add_work(&f, works[ix], "");
    }
    fixture_pass(&f, 10 * MINUTE);
    assert_schedule(&f, "r1 w1+w2 w3+w4 r2 w5+w6");
    fixture_release(&f);
}

static void without_foreground_the_aged_go_on(void **state)
{
    (void)state;
    struct fixture f;
    share_run(&f, 1, 34, 10 * MINUTE);
    add_review(&f, "r1", "");
    fixture_pass(&f, MINUTE);
    add_review(&f, "r2", "");
    add_review(&f, "r3", "");
    fixture_pass(&f, 9 * MINUTE);
    add_review(&f, "new", "");
    assert_schedule(&f, "r1 r2 r3 new");
    assert_int_equal(sched_run_record(f.sched, f.run).owed, 2);
    fixture_release(&f);
}

static void an_aged_foreground_task_goes_before_an_older_one(void **state)
{
    (void)state;
    struct fixture f;
    share_run(&f, 1, 34, 10 * MINUTE);
    add_review(&f, "back", "");
    fixture_pass(&f, MINUTE);
    f.work = fixture_class(&f, 5, false, 1, 9 * MINUTE);
    add_work(&f, "aged", "");
    fixture_pass(&f, 9 * MINUTE);
    f.work = fixture_class(&f, 0, false, 1, SCHED_NEVER);
    add_work(&f, "new", "");
    assert_schedule(&f, "aged back new");
    fixture_release(&f);
}

/* A wide review that has aged, and a task in the foreground; one session of two
 * is free, the other one paid for one of the turns. Which one starts? */
static const char *beside_wide(struct fixture *f, uint32_t owed)
{
    share_run(f, 2, 34, 10 * MINUTE);
    struct sched_run_record record = {.owed = owed};
    sched_restore_run(f->sched, f->run, &record);
    add_work(f, "runs", "");
    (void)fixture_run_pass(f);
    struct sched_use use = {f->limits[CAP], 2};
    f->spec.uses = &use;
    f->spec.use_count = 1;
    add_review(f, "wide", "");
    f->spec.use_count = 0;
    fixture_pass(f, 10 * MINUTE);
    add_work(f, "w", "");
    return fixture_run_pass(f);
}

static void one_whose_turn_it_is_not_keeps_nothing(void **state)
{
    (void)state;
    struct fixture f;
    assert_string_equal(beside_wide(&f, 2), "w");
    fixture_release(&f);
    assert_string_equal(beside_wide(&f, 1), ""); /* kept for the wide one */
    fixture_release(&f);
}

static void turns_are_in_the_record_of_the_run(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 1);
    struct sched_run_record record = {.owed = 2};
    sched_restore_run(f.sched, f.run, &record);
    struct crew crew = {0};
    struct class_id review = fixture_class(&f, 1, true, 1, 10 * SECOND);
    static const uint32_t kinds[] = {1, 1, 0, 0, 0};
    for (uint32_t ix = 0; ix < 5; ix++) {
        f.spec.class_id = kinds[ix] == 1 ? review : f.work;
        struct sched_record *task = crew_member(&f, &crew, TASK_READY);
        task->ready_ns = 0;
        task->ready_seq = ix + 1;
    }
    crew_add(&f, &crew);
    assert_int_equal(sched_run_record(f.sched, f.run).owed, 2);
    assert_schedule(&f, "c d a e b");
    assert_int_equal(sched_run_record(f.sched, f.run).owed, 2);
    fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_review_that_gates_needs_no_share),
        cmocka_unit_test(a_session_keeps_the_units_it_started_with),
        cmocka_unit_test(a_session_is_restored_with_its_share),
        cmocka_unit_test(without_defer_it_is_an_ordinary_limit),
        cmocka_unit_test(a_batch_takes_the_units_of_its_first),
        cmocka_unit_test(a_share_lends_what_the_foreground_cannot_use),
        cmocka_unit_test(a_number_lends_nothing),
        cmocka_unit_test(a_run_lends_beside_one_that_does_not),
        cmocka_unit_test(a_limit_on_the_foreground_lends_nothing),
        cmocka_unit_test(the_groups_of_a_lane_count_as_many_as_it_admits),
        cmocka_unit_test(a_group_counts_as_many_as_run_side_by_side),
        cmocka_unit_test(a_lane_is_as_wide_as_its_widest_group_ever),
        cmocka_unit_test(what_is_stuck_leaves_its_sessions),
        cmocka_unit_test(what_backs_off_or_has_no_provider_counts),
        cmocka_unit_test(the_background_is_not_foreground),
        cmocka_unit_test(what_is_lent_is_used_in_the_same_pass),
        cmocka_unit_test(aged_background_tasks_take_turns),
        cmocka_unit_test(a_batch_owes_a_turn_for_each_of_its_tasks),
        cmocka_unit_test(a_foreground_batch_pays_for_each_of_its_tasks),
        cmocka_unit_test(without_foreground_the_aged_go_on),
        cmocka_unit_test(an_aged_foreground_task_goes_before_an_older_one),
        cmocka_unit_test(one_whose_turn_it_is_not_keeps_nothing),
        cmocka_unit_test(turns_are_in_the_record_of_the_run),
    };
    return cmocka_run_group_tests_name("sched: shares", tests, NULL, NULL);
}
