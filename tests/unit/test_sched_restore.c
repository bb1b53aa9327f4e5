/* SPDX-License-Identifier: MIT */
/* Tasks, sessions and groups that go on from records. */
#include "tests/unit/sched_crew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void assert_same_record(const struct sched_record *a,
                               const struct sched_record *b)
{
    assert_int_equal(a->state, b->state);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->parked, b->parked);
    assert_int_equal(a->ready_ns, b->ready_ns);
    assert_int_equal(a->ready_seq, b->ready_seq);
    assert_int_equal(a->until_ns, b->until_ns);
    assert_int_equal(a->started_ns, b->started_ns);
    assert_int_equal(a->service_ns, b->service_ns);
    assert_int_equal(a->token, b->token);
    assert_int_equal(a->leader, b->leader);
    assert_int_equal(a->place, b->place);
    assert_int_equal(a->attempts, b->attempts);
    assert_int_equal(a->tries, b->tries);
    assert_int_equal(a->reworks, b->reworks);
    assert_int_equal(a->checkpoints, b->checkpoints);
    assert_int_equal(a->cause, b->cause);
}

static void every_state_goes_on_as_it_was(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 3);
    struct crew crew = {0};
    for (int kind = TASK_READY; kind <= TASK_SKIPPED; kind++) {
        struct sched_record *record =
            crew_member(&f, &crew, (enum task_state)kind);
        record->attempts = 3;
        record->tries = 2;
        record->reworks = 1;
        record->checkpoints = UINT16_MAX; /* the greatest */
        record->parked = SCHED_PARKED_BLOCKED;
        record->started_ns = 95 * SECOND;
        record->cause = 0;
    }
    (void)crew_member(&f, &crew, TASK_WAITING);
    crew_needs(&crew, 7, 0);
    crew.records[1].flags = SCHED_RECORD_GROUP_OPEN;
    crew.records[2].flags = SCHED_RECORD_GROUP_OPEN;
    fixture_set_limit(&f, 0, 2, 0); /* as many as there are */
    crew_add(&f, &crew);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_string_equal(strbuf_text(&f.changed), "");
    for (uint32_t ix = 0; ix < crew.count; ix++) {
        struct sched_record now = sched_record(f.sched, (struct task_id){ix});
        assert_same_record(&now, &crew.records[ix]);
    }
    struct sched_run run = sched_run(f.sched, f.run);
    for (int kind = TASK_WAITING; kind <= TASK_SKIPPED; kind++) {
        assert_int_equal(run.counts[kind], 1);
    }
    assert_int_equal(run.in_flight, 2);
    assert_int_equal(run.sessions, 2);
    assert_int_equal(fixture_used(&f, 0), 2);
    fixture_release(&f);
}

static void a_held_task_stays_held(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 1);
    struct crew crew = {0};
    crew_member(&f, &crew, TASK_READY)->flags = SCHED_RECORD_HELD;
    crew_add(&f, &crew);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(f.quiet, 1);
    fixture_order(&f, EVENT_RELEASE, "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_release(&f);
}

static void a_back_off_ends_when_it_was_to_end(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 1);
    struct crew crew = {0};
    struct sched_record *record = crew_member(&f, &crew, TASK_WAITING);
    record->flags = SCHED_RECORD_BACKING_OFF | SCHED_RECORD_GROUP_OPEN;
    record->until_ns = 107 * SECOND;
    crew_add(&f, &crew);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(f.quiet, 0);
    assert_int_equal(sched_next_timer(f.sched), 107 * SECOND);
    assert_int_equal(fixture_why(&f, "a").until_ns, 107 * SECOND);
    assert_true(fixture_get(&f, "a").group_open);
    fixture_pass(&f, 7 * SECOND);
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_release(&f);
}

/* It was over while nobody was there: the first tick ends it. */
static void a_back_off_may_have_ended_before(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 2);
    struct crew crew = {0};
    crew_member(&f, &crew, TASK_READY)->ready_seq = 7;
    struct sched_record *late = crew_member(&f, &crew, TASK_WAITING);
    late->flags = SCHED_RECORD_BACKING_OFF;
    late->until_ns = 60 * SECOND;
    crew_add(&f, &crew);
    fixture_pass(&f, 0);
    assert_string_equal(fixture_run_pass(&f), "a b");
    fixture_release(&f);
}

static void a_session_in_the_background_holds_no_place(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(9), fixture_max(1)};
    limits[1].hold_group = true;
    f.spec.class_id = fixture_class(&f, 1, true, 1, SCHED_NEVER);
    fixture_run(&f, SCHED_RANK, limits, 2);
    struct crew crew = {0};
    crew_member(&f, &crew, TASK_RUNNING)->flags = SCHED_RECORD_BACKGROUND;
    f.spec.class_id = f.work;
    (void)crew_member(&f, &crew, TASK_RUNNING);
    f.spec.class_id = fixture_class(&f, 1, true, 1, SCHED_NEVER);
    struct sched_record *record = crew_member(&f, &crew, TASK_WAITING);
    record->flags = SCHED_RECORD_BACKING_OFF | SCHED_RECORD_BACKGROUND;
    record->until_ns = SECOND;
    crew_add(&f, &crew);
    (void)fixture_run_pass(&f);
    assert_false(fixture_get(&f, "a").group_open);
    assert_true(fixture_get(&f, "b").group_open); /* though none said so */
    assert_int_equal(fixture_used(&f, 0), 2);
    assert_int_equal(fixture_used(&f, 1), 1);
    fixture_done(&f, "b");
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_used(&f, 1), 0);
    fixture_release(&f);
}

static void a_revoked_result_still_lets_nobody_pass(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 1);
    struct crew crew = {0};
    crew_member(&f, &crew, TASK_DONE)->flags = SCHED_RECORD_REVOKED;
    (void)crew_member(&f, &crew, TASK_WAITING);
    crew_needs(&crew, 1, 0);
    crew_add(&f, &crew);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_why(&f, "b").code, WHY_BLOCKED);
    fixture_order(&f, EVENT_RELEASE, "a");
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_release(&f);
}

static void an_order_to_end_is_given_again(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 9);
    f.spec.class_id = fixture_class(&f, 0, false, 2, SCHED_NEVER);
    struct crew crew = {0};
    crew_member(&f, &crew, TASK_RUNNING)->flags = SCHED_RECORD_ENDING;
    crew_member(&f, &crew, TASK_STARTING)->flags =
        SCHED_RECORD_ENDING | SCHED_RECORD_TO_SKIP;
    /* Of the batch only one is to end: it goes on. */
    crew_member(&f, &crew, TASK_RUNNING)->flags = SCHED_RECORD_ENDING;
    struct sched_record *rider = crew_member(&f, &crew, TASK_RUNNING);
    rider->leader = 2;
    rider->place = 1;
    rider->token = crew.records[2].token;
    crew_add(&f, &crew);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_string_equal(strbuf_text(&f.ended), "a b");
    fixture_pass(&f, SECOND);
    (void)fixture_run_pass(&f);
    assert_string_equal(strbuf_text(&f.ended), "");
    fixture_done(&f, "a b c");
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_state(&f, "a"), TASK_CANCELLED);
    assert_int_equal(fixture_state(&f, "b"), TASK_SKIPPED);
    assert_int_equal(fixture_state(&f, "c"), TASK_CANCELLED);
    assert_int_equal(fixture_state(&f, "d"), TASK_DONE);
    fixture_release(&f);
}

static void the_run_still_waits_for_a_decision(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 1);
    struct crew crew = {0};
    (void)crew_member(&f, &crew, TASK_READY);
    crew_member(&f, &crew, TASK_PARKED)->flags = SCHED_RECORD_ASKING;
    crew_member(&f, &crew, TASK_PARKED)->flags = SCHED_RECORD_ASKING;
    crew_add(&f, &crew);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_why(&f, "a").code, WHY_ASKED);
    assert_int_equal(fixture_why(&f, "a").task.v, fixture_id(&f, "b").v);
    fixture_order(&f, EVENT_SKIP, "b");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_why(&f, "a").task.v, fixture_id(&f, "c").v);
    fixture_order(&f, EVENT_SKIP, "c");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_release(&f);
}

static void what_was_skipped_with_it_comes_back_with_it(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 1);
    f.failure.on_failure = SCHED_SKIP;
    struct crew crew = {0};
    (void)crew_member(&f, &crew, TASK_FAILED);
    struct sched_record *behind = crew_member(&f, &crew, TASK_SKIPPED);
    behind->flags = SCHED_RECORD_CASCADED;
    behind->cause = 0;
    crew_needs(&crew, 1, 0);
    crew_add(&f, &crew);
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_why(&f, "b").task.v, fixture_id(&f, "a").v);
    fixture_order(&f, EVENT_RETRY, "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_release(&f);
}

static void a_stale_session_is_done_again(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 1);
    struct crew crew = {0};
    crew_member(&f, &crew, TASK_RUNNING)->flags = SCHED_RECORD_STALE;
    crew_add(&f, &crew);
    (void)fixture_run_pass(&f);
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_done(&f, "a");
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_state(&f, "a"), TASK_DONE);
    fixture_release(&f);
}

/* A declared group with a task in flight and one that was ready. */
static void group_of_two(struct fixture *f, struct crew *crew)
{
    crew->group_count = 1;
    f->spec.group = sched_group_count(f->sched);
    (void)crew_member(f, crew, TASK_READY);
    (void)crew_member(f, crew, TASK_DONE);
}

static void the_newest_record_says_whether_a_group_is_open(void **state)
{
    (void)state;
    for (uint32_t open = 0; open < 2; open++) {
        struct fixture f;
        fixture_init(&f);
        struct limit_spec limits[] = {fixture_max(0), fixture_max(5)};
        limits[1].hold_group = true;
        fixture_run(&f, SCHED_FAIR, limits, 2);
        struct crew crew = {0};
        group_of_two(&f, &crew);
        uint32_t old = open == 0 ? SCHED_RECORD_GROUP_OPEN : 0;
        crew.records[0].version = 3;
        crew.records[0].flags = old;
        crew.records[0].service_ns = 5;
        crew.records[1].version = 4;
        crew.records[1].flags = SCHED_RECORD_GROUP_OPEN - old;
        crew.records[1].service_ns = 6;
        crew_add(&f, &crew);
        assert_string_equal(fixture_run_pass(&f), "");
        assert_int_equal(fixture_get(&f, "a").group_open, open == 1);
        assert_int_equal(fixture_used(&f, 1), open);
        struct sched_record now = sched_record(f.sched, fixture_id(&f, "a"));
        assert_int_equal(now.service_ns, 6);
        fixture_release(&f);
    }
}

/* Times are kept once a record has one: memory for each task. */
static void times_need_memory_only_if_there_are_some(void **state)
{
    (void)state;
    size_t bytes[3];
    for (uint32_t ix = 0; ix < 3; ix++) {
        struct fixture f;
        crew_fixture(&f, 3);
        struct crew crew = {0};
        (void)crew_member(&f, &crew, TASK_READY);
        crew.records[0].service_ns = ix == 1 ? 5 : 0;
        crew.records[0].started_ns = ix == 2 ? 5 : 0;
        crew_add(&f, &crew);
        bytes[ix] = sched_bytes(f.sched);
        fixture_release(&f);
    }
    assert_true(bytes[1] > bytes[0]);
    assert_int_equal(bytes[2], bytes[1]);
}

/* The provider is shut now, so a ready task keeps nothing open. */
static void
an_open_group_that_nothing_holds_is_closed_and_reported(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 5);
    struct crew crew = {0};
    group_of_two(&f, &crew);
    crew.records[0].flags = SCHED_RECORD_GROUP_OPEN;
    crew.records[1].flags = SCHED_RECORD_GROUP_OPEN;
    crew_add(&f, &crew);
    struct sched_provider_record shut = {
        .shut_until_ns = 130 * SECOND,
        .usage = true,
        .probe_at_ns = INT64_MIN,
    };
    sched_restore_provider(f.sched, f.provider, &shut);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_false(fixture_get(&f, "a").group_open);
    assert_string_equal(strbuf_text(&f.changed), "a");
    assert_int_equal(fixture_why(&f, "a").code, WHY_USAGE);
    fixture_release(&f);
}

static void more_may_be_in_flight_than_a_limit_has(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 1);
    struct crew crew = {0};
    (void)crew_member(&f, &crew, TASK_RUNNING);
    (void)crew_member(&f, &crew, TASK_RUNNING);
    (void)crew_member(&f, &crew, TASK_READY);
    crew_add(&f, &crew);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_used(&f, 0), 2);
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_done(&f, "b");
    assert_string_equal(fixture_run_pass(&f), "c");
    fixture_release(&f);
}

static void a_batch_keeps_its_order(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 1);
    f.spec.class_id = fixture_class(&f, 0, false, 3, SCHED_NEVER);
    struct crew crew = {0};
    static const uint32_t places[] = {2, 0, 1};
    for (uint32_t ix = 0; ix < 3; ix++) {
        struct sched_record *record = crew_member(&f, &crew, TASK_STARTING);
        record->token = 9;
        record->leader = 1;
        record->place = places[ix];
        record->flags = SCHED_RECORD_BACKGROUND;
    }
    crew.records[1].flags = SCHED_RECORD_GROUP_OPEN;
    crew_add(&f, &crew);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_string_equal(strbuf_text(&f.changed), "");
    for (uint32_t ix = 0; ix < 3; ix++) {
        struct sched_record now = sched_record(f.sched, (struct task_id){ix});
        assert_same_record(&now, &crew.records[ix]);
    }
    assert_int_equal(sched_run(f.sched, f.run).sessions, 1);
    static const enum sched_outcome outcomes[] = {
        OUTCOME_DONE,
        OUTCOME_BLOCKED,
        OUTCOME_CHANGES,
    };
    struct sched_event event = {
        .type = EVENT_ENDED,
        .now_ns = f.now_ns,
        .task = fixture_id(&f, "c"),
        .token = 9,
        .outcomes = outcomes,
        .outcome_count = 3,
    };
    assert_int_equal(sched_apply(f.sched, &event), ERR_OK);
    assert_int_equal(fixture_state(&f, "b"), TASK_DONE);
    assert_int_equal(fixture_get(&f, "c").parked, SCHED_PARKED_BLOCKED);
    assert_int_equal(fixture_get(&f, "a").parked, SCHED_PARKED_CHANGES);
    fixture_release(&f);
}

static void new_tokens_are_greater_than_all_before(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 2);
    struct crew crew = {0};
    (void)crew_member(&f, &crew, TASK_READY);
    crew_add(&f, &crew);
    assert_string_equal(fixture_run_pass(&f), "a");
    assert_int_equal(fixture_get(&f, "a").token, 51);
    fixture_release(&f);

    crew_fixture(&f, 2);
    crew_member(&f, &crew, TASK_DONE)->token = 70; /* more than was said */
    crew_add(&f, &crew);
    assert_string_equal(fixture_run_pass(&f), "a");
    assert_int_equal(fixture_get(&f, "a").token, 71);
    fixture_release(&f);
}

static void who_was_ready_first_goes_first(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 9);
    struct crew crew = {0};
    crew_member(&f, &crew, TASK_READY)->ready_seq = 800;
    crew_member(&f, &crew, TASK_READY)->ready_seq = 700;
    crew_member(&f, &crew, TASK_READY)->ready_seq = 700;
    crew_add(&f, &crew);
    fixture_task(&f, "new", "");
    assert_string_equal(fixture_run_pass(&f), "b c a new");
    fixture_release(&f);
}

static void waiting_counts_from_before(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 1);
    struct crew crew = {0};
    (void)crew_member(&f, &crew, TASK_READY);
    f.spec.class_id = fixture_class(&f, 5, false, 1, 30 * SECOND);
    crew_member(&f, &crew, TASK_READY)->ready_ns = 70 * SECOND;
    crew_member(&f, &crew, TASK_READY)->ready_ns = 71 * SECOND;
    crew_add(&f, &crew);
    assert_true(fixture_get(&f, "b").aged);
    assert_false(fixture_get(&f, "c").aged);
    assert_int_equal(sched_next_timer(f.sched), 101 * SECOND);
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_release(&f);
}

static void what_does_not_fit_the_needs_is_put_right(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 9);
    struct crew crew = {0};
    (void)crew_member(&f, &crew, TASK_RUNNING);
    (void)crew_member(&f, &crew, TASK_READY); /* but a is not done */
    crew_needs(&crew, 1, 0);
    (void)crew_member(&f, &crew, TASK_DONE);
    (void)crew_member(&f, &crew, TASK_WAITING); /* but c is done */
    crew_needs(&crew, 3, 2);
    (void)crew_member(&f, &crew, TASK_WAITING); /* but needs nothing */
    (void)crew_member(&f,
                      &crew,
                      TASK_RUNNING); /* that can be: b is done again */
    crew_needs(&crew, 5, 1);
    crew_add(&f, &crew);
    assert_string_equal(fixture_run_pass(&f), "d e");
    assert_string_equal(strbuf_text(&f.changed), "d b e");
    assert_int_equal(fixture_state(&f, "b"), TASK_WAITING);
    fixture_release(&f);
}

/* More was charged for sessions in flight than the record says. */
static void service_never_falls_below_nothing(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec cap = fixture_max(1);
    fixture_run(&f, SCHED_FAIR, &cap, 1);
    struct crew crew = {0};
    crew_member(&f, &crew, TASK_RUNNING)->started_ns = 5 * SECOND; /* later */
    crew_add(&f, &crew);
    (void)fixture_run_pass(&f);
    fixture_done(&f, "a");
    (void)fixture_run_pass(&f);
    struct sched_record now = sched_record(f.sched, fixture_id(&f, "a"));
    assert_int_equal(now.service_ns, 0);
    fixture_release(&f);
}

static void the_greatest_service_comes_last(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec cap = fixture_max(2);
    fixture_run(&f, SCHED_FAIR, &cap, 1);
    struct crew crew = {0};
    for (uint32_t ix = 0; ix < 3; ix++) {
        struct sched_record *record = crew_member(&f, &crew, TASK_READY);
        record->version = 1;
        record->service_ns = SCHED_NEVER / 2 - ix;
    }
    crew.records[2].service_ns = SECOND;
    crew_add(&f, &crew);
    /* More than keys have room for counts as equal: declared first. */
    assert_string_equal(fixture_run_pass(&f), "c a");
    fixture_release(&f);
}

/* The class of its record was deferred; that of the plan is not. */
static void a_session_stays_in_the_background_without_limits_there(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    enum { CAP, PLACES, PORTS, LIMITS };
    struct limit_spec limits[LIMITS] = {fixture_max(4),
                                        fixture_max(1),
                                        fixture_max(1)};
    limits[PLACES].hold_group = true;
    limits[PORTS].resource = true;
    fixture_run(&f, SCHED_LOOKAHEAD, limits, LIMITS);
    struct sched_use port = {f.limits[PORTS], 1};
    struct sched_use wide = {f.limits[CAP], 4};
    struct crew crew = {0};
    crew_member(&f, &crew, TASK_RUNNING)->flags = SCHED_RECORD_BACKGROUND;
    f.spec.uses = &port;
    f.spec.use_count = 1;
    (void)crew_member(&f, &crew, TASK_RUNNING);
    f.spec.uses = &wide;
    (void)crew_member(&f, &crew, TASK_READY);
    crew_add(&f, &crew);
    assert_false(fixture_get(&f, "a").group_open);
    (void)sched_plan(f.sched, UINT32_MAX);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_used(&f, CAP), 2);
    assert_int_equal(fixture_used(&f, PLACES), 1); /* by b */
    f.spec.uses = &port;
    fixture_task(&f, "d", "");
    (void)fixture_run_pass(&f);
    struct why why = fixture_why(&f, "d");
    assert_int_equal(why.code, WHY_LIMIT);
    assert_int_equal(why.task.v, fixture_id(&f, "b").v);
    fixture_done(&f, "b a");
    (void)fixture_run_pass(&f);
    fixture_release(&f);
}

/* Its class is deferred no more; the wide task waits for its end. */
static void a_session_in_the_background_is_waited_for(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 2);
    f.spec.estimate_ns = 10 * MINUTE;
    struct crew crew = {0};
    struct sched_record *record = crew_member(&f, &crew, TASK_RUNNING);
    record->flags = SCHED_RECORD_BACKGROUND;
    record->started_ns = 100 * SECOND;
    crew_add(&f, &crew);
    struct sched_use wide = {f.limits[0], 2};
    f.spec.uses = &wide;
    f.spec.use_count = 1;
    fixture_task(&f, "wide", "");
    f.spec.use_count = 0;
    f.spec.class_id = f.review;
    f.spec.estimate_ns = 11 * MINUTE;
    fixture_task(&f, "long", "");
    f.spec.class_id = fixture_class(&f, 1, false, 1, SCHED_NEVER);
    f.spec.estimate_ns = 10 * MINUTE;
    fixture_task(&f, "short", "");
    assert_string_equal(fixture_run_pass(&f), "short");
    assert_int_equal(fixture_state(&f, "long"), TASK_READY);
    fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_state_goes_on_as_it_was),
        cmocka_unit_test(a_held_task_stays_held),
        cmocka_unit_test(a_back_off_ends_when_it_was_to_end),
        cmocka_unit_test(a_back_off_may_have_ended_before),
        cmocka_unit_test(a_session_in_the_background_holds_no_place),
        cmocka_unit_test(a_revoked_result_still_lets_nobody_pass),
        cmocka_unit_test(an_order_to_end_is_given_again),
        cmocka_unit_test(the_run_still_waits_for_a_decision),
        cmocka_unit_test(what_was_skipped_with_it_comes_back_with_it),
        cmocka_unit_test(a_stale_session_is_done_again),
        cmocka_unit_test(the_newest_record_says_whether_a_group_is_open),
        cmocka_unit_test(times_need_memory_only_if_there_are_some),
        cmocka_unit_test(
            an_open_group_that_nothing_holds_is_closed_and_reported),
        cmocka_unit_test(more_may_be_in_flight_than_a_limit_has),
        cmocka_unit_test(a_batch_keeps_its_order),
        cmocka_unit_test(new_tokens_are_greater_than_all_before),
        cmocka_unit_test(who_was_ready_first_goes_first),
        cmocka_unit_test(waiting_counts_from_before),
        cmocka_unit_test(what_does_not_fit_the_needs_is_put_right),
        cmocka_unit_test(service_never_falls_below_nothing),
        cmocka_unit_test(the_greatest_service_comes_last),
        cmocka_unit_test(a_session_in_the_background_is_waited_for),
        cmocka_unit_test(
            a_session_stays_in_the_background_without_limits_there),
    };
    return cmocka_run_group_tests_name("sched: restore", tests, NULL, NULL);
}
