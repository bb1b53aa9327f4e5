/* SPDX-License-Identifier: MIT */
/* Runs and providers that go on from records, and records that cannot be. */
#include "tests/unit/sched_crew.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* What is handed out and not accepted is an answer to come. */
static void a_restored_start_can_still_be_refused(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 9);
    struct crew crew = {0};
    (void)crew_member(&f, &crew, TASK_STARTING);
    (void)crew_member(&f, &crew, TASK_STARTING);
    (void)crew_member(&f, &crew, TASK_RUNNING);
    crew_add(&f, &crew);
    struct sched_provider_record steps = {
        .steps = 1,
        .shut_until_ns = INT64_MIN,
        .probe_at_ns = INT64_MIN,
    };
    sched_restore_provider(f.sched, f.provider, &steps);
    (void)fixture_run_pass(&f);
    struct sched_provider_record now =
        sched_provider_record(f.sched, f.provider);
    assert_int_equal(now.sent, 2);
    int64_t until_ns = 0;
    assert_int_equal(sched_provider_state(f.sched, f.provider, &until_ns),
                     PROVIDER_OPEN);
    assert_int_equal(until_ns, SCHED_NEVER);
    fixture_refuse(&f, "a", SCHED_NEVER);
    fixture_refuse(&f, "b", SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(sched_provider_state(f.sched, f.provider, &until_ns),
                     PROVIDER_BACKOFF);
    assert_int_equal(until_ns, 120 * SECOND); /* the second step */
    fixture_release(&f);
}

static void a_batch_that_was_answered_in_part_goes_on(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 9);
    struct sched_provider_record record = {
        .sent = 3,
        .refused = 1,
        .shut_until_ns = INT64_MIN,
        .probe_at_ns = INT64_MIN,
    };
    sched_restore_provider(f.sched, f.provider, &record);
    struct crew crew = {0};
    (void)crew_member(&f, &crew, TASK_STARTING);
    (void)crew_member(&f, &crew, TASK_STARTING);
    (void)crew_member(&f, &crew, TASK_READY);
    crew_add(&f, &crew);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_why(&f, "c").code, WHY_BACKOFF);
    fixture_accept(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "c");
    fixture_release(&f);
}

/* Their sessions are not there any more: nobody will answer. */
static void a_provider_waits_for_nobody_who_is_gone(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 9);
    struct provider_spec spec = {
        .backoff_ns = SECOND,
        .backoff_ns_max = SECOND,
        .circuit_failures = 2,
        .probe_ns = SECOND,
        .probe_ns_max = SECOND,
    };
    struct provider_id probed = sched_add_provider(f.sched, &spec);
    struct sched_provider_record probe = {
        .sent = 1,
        .shut_until_ns = INT64_MIN,
        .circuit_open = true,
        .failures = 2,
        .probe_token = 40,
        .probe_at_ns = INT64_MIN,
    };
    struct sched_provider_record refused = {
        .sent = 2,
        .refused = 1,
        .shut_until_ns = INT64_MIN,
        .circuit_open = true, /* it has no circuit any more */
        .probe_token = 41,
        .probe_at_ns = INT64_MAX,
    };
    sched_restore_provider(f.sched, probed, &probe);
    sched_restore_provider(f.sched, f.provider, &refused);
    struct crew crew = {0};
    (void)crew_member(&f, &crew, TASK_READY);
    (void)crew_member(&f, &crew, TASK_READY);
    f.spec.provider = probed;
    (void)crew_member(&f, &crew, TASK_READY);
    (void)crew_member(&f, &crew, TASK_READY);
    crew_add(&f, &crew);
    assert_string_equal(fixture_run_pass(&f), "a b c");
    assert_int_equal(fixture_why(&f, "d").code, WHY_CIRCUIT);
    fixture_release(&f);
}

static void a_probe_under_way_is_waited_for(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 9);
    struct provider_spec spec = {
        .backoff_ns = SECOND,
        .backoff_ns_max = SECOND,
        .circuit_failures = 2,
        .probe_ns = SECOND,
        .probe_ns_max = SECOND,
    };
    f.spec.provider = sched_add_provider(f.sched, &spec);
    struct sched_provider_record probe = {
        .shut_until_ns = INT64_MIN,
        .circuit_open = true,
        .failures = 2,
        .probe_token = 1,
        .probe_at_ns = INT64_MIN,
    };
    sched_restore_provider(f.sched, f.spec.provider, &probe);
    struct crew crew = {0};
    (void)crew_member(&f, &crew, TASK_RUNNING);
    (void)crew_member(&f, &crew, TASK_READY);
    crew_add(&f, &crew);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_why(&f, "b").code, WHY_CIRCUIT);
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_release(&f);
}

static void a_provider_record_that_cannot_be_does_no_harm(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 9);
    struct sched_provider_record odd = {
        .sent = 3,
        .refused = UINT32_MAX,
        .steps = UINT32_MAX,
        .probe_steps = UINT32_MAX,
        .shut_until_ns = INT64_MIN,
        .probe_at_ns = INT64_MIN,
    };
    sched_restore_provider(f.sched, f.provider, &odd);
    struct crew crew = {0};
    (void)crew_member(&f, &crew, TASK_STARTING);
    crew_add(&f, &crew);
    (void)fixture_run_pass(&f);
    fixture_refuse(&f, "a", SCHED_NEVER);
    assert_string_equal(fixture_run_pass(&f), "");
    int64_t until_ns = 0;
    assert_int_equal(sched_provider_state(f.sched, f.provider, &until_ns),
                     PROVIDER_BACKOFF);
    assert_int_equal(until_ns, 160 * SECOND); /* the longest step */
    fixture_release(&f);
}

static void a_provider_record_with_too_many_starts_does_no_harm(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 9);
    struct sched_provider_record odd = {
        .sent = SCHED_TASKS_MAX + 1,
        .refused = 1,
        .shut_until_ns = INT64_MIN,
        .probe_at_ns = INT64_MIN,
    };
    sched_restore_provider(f.sched, f.provider, &odd);
    struct sched_provider_record now =
        sched_provider_record(f.sched, f.provider);
    assert_int_equal(now.sent, 0);
    assert_int_equal(now.refused, 0);
    struct crew crew = {0};
    (void)crew_member(&f, &crew, TASK_READY);
    crew_add(&f, &crew);
    assert_string_equal(fixture_run_pass(&f), "a"); /* no answer is awaited */
    fixture_release(&f);
}

/* The session with the token of the probe is of another provider. */
static void a_probe_elsewhere_is_not_waited_for(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 9);
    struct provider_spec spec = {
        .backoff_ns = SECOND,
        .backoff_ns_max = SECOND,
        .circuit_failures = 2,
        .probe_ns = SECOND,
        .probe_ns_max = SECOND,
    };
    struct provider_id probed = sched_add_provider(f.sched, &spec);
    struct sched_provider_record probe = {
        .shut_until_ns = INT64_MIN,
        .circuit_open = true,
        .failures = 2,
        .probe_token = 1,
        .probe_at_ns = INT64_MIN,
    };
    sched_restore_provider(f.sched, probed, &probe);
    struct crew crew = {0};
    (void)crew_member(&f, &crew, TASK_RUNNING);
    f.spec.provider = probed;
    (void)crew_member(&f, &crew, TASK_READY);
    crew_add(&f, &crew);
    assert_string_equal(fixture_run_pass(&f), "b"); /* the next probe */
    fixture_release(&f);
}

/* The plan was updated, and the tasks have other needs than they had. */
static void what_has_become_a_dead_end_is_skipped(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 9);
    struct crew other = {0};
    (void)crew_member(&f, &other, TASK_RUNNING);
    (void)crew_member(&f, &other, TASK_WAITING);
    crew_needs(&other, 1, 0);
    crew_add(&f, &other);
    fixture_cap(&f, 9);
    struct crew crew = {0};
    (void)crew_member(&f, &crew, TASK_CANCELLED);
    (void)crew_member(&f, &crew, TASK_WAITING);
    (void)crew_member(&f, &crew, TASK_WAITING);
    (void)crew_member(&f, &crew, TASK_RUNNING);
    crew_needs(&crew, 3, 2);
    crew_needs(&crew, 4, 5);
    crew_needs(&crew, 5, 2);
    crew.records[3].token = 9;
    struct sched_rejection rejection;
    assert_int_equal(crew_try_add(&f, &crew, &rejection), ERR_OK);
    sched_restore_cut(f.sched, f.run);
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_state(&f, "b"), TASK_WAITING); /* another run */
    assert_int_equal(fixture_state(&f, "d"), TASK_SKIPPED);
    assert_int_equal(fixture_why(&f, "d").task.v, fixture_id(&f, "c").v);
    assert_int_equal(fixture_state(&f, "e"), TASK_SKIPPED);
    assert_int_equal(fixture_state(&f, "f"), TASK_RUNNING);
    fixture_release(&f);
}

static void the_refusals_of_a_task_stop_counting(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 9);
    struct crew crew = {0};
    crew_member(&f, &crew, TASK_STARTING)->flags =
        (uint32_t)SCHED_RECORD_REFUSALS_MAX << SCHED_RECORD_REFUSALS_SHIFT;
    crew_add(&f, &crew);
    (void)fixture_run_pass(&f);
    fixture_refuse(&f, "a", SCHED_NEVER);
    (void)fixture_run_pass(&f);
    struct sched_record now = sched_record(f.sched, fixture_id(&f, "a"));
    assert_int_equal(now.flags >> SCHED_RECORD_REFUSALS_SHIFT,
                     SCHED_RECORD_REFUSALS_MAX);
    assert_int_equal(now.until_ns, 160 * SECOND); /* the longest step */
    fixture_release(&f);
}

static void a_back_off_after_a_very_late_time_does_not_wrap(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 9);
    struct sched_provider_record record = {
        .sent = 1,
        .shut_until_ns = SCHED_NEVER - 10 * SECOND,
        .probe_at_ns = INT64_MIN,
    };
    sched_restore_provider(f.sched, f.provider, &record);
    struct crew crew = {0};
    crew_member(&f, &crew, TASK_STARTING)->flags =
        1U << SCHED_RECORD_REFUSALS_SHIFT;
    crew_add(&f, &crew);
    (void)fixture_run_pass(&f);
    fixture_refuse(&f, "a", SCHED_NEVER);
    (void)fixture_run_pass(&f);
    struct sched_record now = sched_record(f.sched, fixture_id(&f, "a"));
    assert_int_equal(now.until_ns, SCHED_NEVER - 10 * SECOND);
    fixture_release(&f);
}

/* The plan asks for no approval any more. */
static void nobody_is_asked_to_approve_what_needs_no_approval(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 9);
    struct crew crew = {0};
    for (uint32_t ix = 0; ix < 3; ix++) {
        crew_member(&f, &crew, TASK_READY)->flags =
            SCHED_RECORD_UNAPPROVED | SCHED_RECORD_HELD;
        crew.tasks[ix].approve = ix == 1;
    }
    crew.records[2].flags = SCHED_RECORD_HELD; /* by an operator */
    crew_add(&f, &crew);
    assert_string_equal(fixture_run_pass(&f), "a");
    assert_int_equal(fixture_why(&f, "b").code, WHY_APPROVAL);
    assert_int_equal(fixture_why(&f, "c").code, WHY_HELD);
    fixture_release(&f);
}

static void a_paused_run_stays_paused(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 1);
    struct sched_run_record record = {.paused = true, .completions = 7};
    sched_restore_run(f.sched, f.run, &record);
    struct crew crew = {0};
    (void)crew_member(&f, &crew, TASK_READY);
    crew_add(&f, &crew);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(f.quiet, 1);
    assert_int_equal(fixture_why(&f, "a").code, WHY_PAUSED);
    struct sched_run_record now = sched_run_record(f.sched, f.run);
    assert_true(now.paused);
    assert_int_equal(now.completions, 7);
    fixture_order_run(&f, EVENT_RESUME);
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_release(&f);
}

/* What stopped it may have been withdrawn since: then nobody is named. */
static void a_stopped_run_names_who_stopped_it_if_it_is_there(void **state)
{
    (void)state;
    for (uint32_t parked = 0; parked < 2; parked++) {
        struct fixture f;
        crew_fixture(&f, 1);
        struct sched_run_record record = {.stopped = SCHED_STOPPED_FAILURE};
        sched_restore_run(f.sched, f.run, &record);
        f.failure.on_failure = SCHED_STOP;
        struct crew crew = {0};
        (void)crew_member(&f, &crew, TASK_READY);
        (void)crew_member(&f, &crew, parked > 0 ? TASK_PARKED : TASK_CANCELLED);
        crew_add(&f, &crew);
        assert_string_equal(fixture_run_pass(&f), "");
        assert_int_equal(fixture_why(&f, "a").code, WHY_HALTED);
        assert_int_equal(fixture_why(&f, "a").task.v, parked > 0 ? 1 : ID_NONE);
        fixture_release(&f);
    }
}

static void a_cancelled_run_takes_records_and_nothing_new(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 1);
    struct sched_run_record record = {.cancelled = true};
    sched_restore_run(f.sched, f.run, &record);
    struct crew crew = {0};
    (void)crew_member(&f, &crew, TASK_CANCELLED);
    crew_add(&f, &crew);
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_state(&f, "a"), TASK_CANCELLED);
    struct sched_rejection rejection;
    assert_int_equal(fixture_try_task(&f, "new", "", &rejection), ERR_CONFLICT);
    assert_int_equal(rejection.code, REJECTION_CANCELLED);
    fixture_release(&f);
}

static void a_sync_hook_is_run_again(void **state)
{
    (void)state;
    for (uint32_t hook = 0; hook < 2; hook++) {
        struct fixture f;
        fixture_init(&f);
        fixture_sync_run(&f, hook * 5, true);
        struct sched_run_record record = {.barrier = true, .completions = 5};
        sched_restore_run(f.sched, f.run, &record);
        struct crew crew = {0};
        (void)crew_member(&f, &crew, TASK_READY);
        crew_add(&f, &crew);
        /* A run without a hook owes none, whatever is stored. */
        assert_string_equal(fixture_run_pass(&f), hook == 1 ? "" : "a");
        assert_int_equal(f.barriers, hook);
        fixture_release(&f);
    }
}

typedef void (*spoil_fn)(struct sched_record *record);

#define SPOIL(name, change)                                                    \
    static void spoil_##name(struct sched_record *r)                           \
    {                                                                          \
        change;                                                                \
    }

SPOIL(state, r->state = (enum task_state)TASK_STATE_COUNT)
SPOIL(parked, r->parked = (enum sched_parked)(SCHED_PARKED_CHECKPOINTS + 1))
SPOIL(unknown_flag, r->flags |= 1U << 14)
SPOIL(snoozed, r->flags |= SCHED_RECORD_SNOOZED)
SPOIL(priority, r->flags |= 11U << SCHED_RECORD_PRIORITY_SHIFT)
SPOIL(attempts, r->attempts = 1U << 26)
SPOIL(backing_off, r->flags |= SCHED_RECORD_BACKING_OFF)
SPOIL(revoked, r->flags |= SCHED_RECORD_REVOKED)
SPOIL(asking, r->flags |= SCHED_RECORD_ASKING)
SPOIL(cascaded, r->flags |= SCHED_RECORD_CASCADED)
SPOIL(skip_alone, r->flags |= SCHED_RECORD_TO_SKIP)
SPOIL(ready_ns, r->ready_ns = -1)
SPOIL(until_ns, r->until_ns = -1)
SPOIL(started_ns, r->started_ns = -1)
SPOIL(service_ns, r->service_ns = -1)
SPOIL(much_service, r->service_ns = INT64_MAX)
SPOIL(ready_seq, r->ready_seq = UINT64_MAX >> 24)
SPOIL(reworks, r->reworks = 65536)
SPOIL(checkpoints, r->checkpoints = 65536)
SPOIL(cause, r->cause = 3)
SPOIL(no_token, r->token = 0)
SPOIL(no_attempt, r->attempts = 0)
SPOIL(no_leader, r->leader = ID_NONE)
SPOIL(far_leader, r->leader = 3)
SPOIL(idle_leader, r->leader = 2)
SPOIL(own_leader, r->leader = 1)
SPOIL(other_token, r->token = 8)
SPOIL(other_state, r->state = TASK_STARTING)
SPOIL(same_place, r->place = 0)
SPOIL(gap, r->place = 2)

static void ending(struct sched_record *r)
{
    r->state = TASK_DONE;
    r->flags |= SCHED_RECORD_ENDING;
}

static void stale(struct sched_record *r)
{
    r->state = TASK_DONE;
    r->flags |= SCHED_RECORD_STALE;
}

static void background(struct sched_record *r)
{
    r->state = TASK_WAITING;
    r->flags |= SCHED_RECORD_BACKGROUND;
}

/* It waits for its time, but does not back off. */
static void early(struct sched_record *r)
{
    r->state = TASK_WAITING;
    r->flags |= SCHED_RECORD_EARLY;
}

/* A session of a and b, and c that is ready; the record of b is spoilt. */
static void a_record_that_cannot_be_is_refused(void **state)
{
    (void)state;
    static const spoil_fn spoils[] = {
        spoil_state,
        spoil_parked,
        spoil_unknown_flag,
        spoil_snoozed,
        spoil_priority,
        spoil_attempts,
        spoil_backing_off,
        spoil_revoked,
        spoil_asking,
        spoil_cascaded,
        spoil_skip_alone,
        spoil_ready_ns,
        spoil_until_ns,
        spoil_started_ns,
        spoil_service_ns,
        spoil_much_service,
        spoil_ready_seq,
        spoil_reworks,
        spoil_checkpoints,
        spoil_cause,
        spoil_no_token,
        spoil_no_attempt,
        spoil_no_leader,
        spoil_far_leader,
        spoil_idle_leader,
        spoil_own_leader,
        spoil_other_token,
        spoil_other_state,
        spoil_same_place,
        spoil_gap,
        ending,
        stale,
        background,
        early,
    };
    struct fixture f;
    crew_fixture(&f, 9);
    f.spec.class_id = fixture_class(&f, 0, false, 2, SCHED_NEVER);
    char *before = fixture_picture(&f);
    struct crew crew = {0};
    (void)crew_member(&f, &crew, TASK_RUNNING);
    (void)crew_member(&f, &crew, TASK_RUNNING);
    (void)crew_member(&f, &crew, TASK_READY);
    crew.records[1].leader = 0;
    crew.records[1].place = 1;
    crew.records[1].token = crew.records[0].token;
    for (uint32_t ix = 0; ix < sizeof(spoils) / sizeof(spoils[0]); ix++) {
        struct crew spoilt = crew;
        spoils[ix](&spoilt.records[1]);
        struct sched_rejection rejection;
        if (crew_try_add(&f, &spoilt, &rejection) != ERR_CORRUPT) {
            fail_msg("spoilt record %u is not refused", ix);
        }
        assert_int_equal(rejection.code, REJECTION_RECORD);
        assert_int_equal(rejection.task.v, 1);
        sched_rejection_release(&rejection);
        char *after = fixture_picture(&f);
        assert_string_equal(after, before);
        mem_free(after);
    }
    mem_free(before);
    crew_add(&f, &crew);
    fixture_release(&f);
}

static void a_session_is_of_one_class_and_provider(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 9);
    struct crew crew = {0};
    (void)crew_member(&f, &crew, TASK_RUNNING);
    struct sched_record *rider = crew_member(&f, &crew, TASK_RUNNING);
    *rider = crew.records[0];
    rider->place = 1;
    crew.tasks[1].class_id = f.review;
    struct sched_rejection rejection;
    assert_int_equal(crew_try_add(&f, &crew, &rejection), ERR_CORRUPT);
    assert_int_equal(rejection.task.v, 1);
    crew.tasks[1].class_id = crew.tasks[0].class_id;
    crew.tasks[1].provider.v = f.provider.v + 1;
    assert_int_equal(crew_try_add(&f, &crew, &rejection), ERR_CORRUPT);
    assert_int_equal(rejection.task.v, 1);
    fixture_release(&f);
}

/* The leader comes after the others, and the second place is empty. */
static void a_gap_is_found_in_the_first_record(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 9);
    f.spec.class_id = fixture_class(&f, 0, false, 3, SCHED_NEVER);
    struct crew crew = {0};
    (void)crew_member(&f, &crew, TASK_RUNNING);
    (void)crew_member(&f, &crew, TASK_RUNNING);
    crew.records[0].leader = 1;
    crew.records[0].token = crew.records[1].token;
    crew.records[0].place = 2;
    struct sched_rejection rejection;
    assert_int_equal(crew_try_add(&f, &crew, &rejection), ERR_CORRUPT);
    assert_int_equal(rejection.task.v, 0);
    crew.records[0].place = 1;
    crew_add(&f, &crew);
    fixture_release(&f);
}

static void two_sessions_of_one_token_are_refused(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 9);
    struct crew crew = {0};
    crew_member(&f, &crew, TASK_RUNNING)->token = 5;
    crew_member(&f, &crew, TASK_STARTING)->token = 5;
    struct sched_rejection rejection;
    assert_int_equal(crew_try_add(&f, &crew, &rejection), ERR_CORRUPT);
    assert_int_equal(rejection.code, REJECTION_RECORD);
    assert_int_equal(rejection.task.v, 1);
    fixture_release(&f);
}

static void work_that_goes_on_needs_nothing_from_elsewhere(void **state)
{
    (void)state;
    struct fixture f;
    crew_fixture(&f, 9);
    fixture_task(&f, "a", "");
    struct crew crew = {0};
    (void)crew_member(&f, &crew, TASK_READY);
    crew_needs(&crew, 1, 0);
    struct sched_rejection rejection;
    assert_int_equal(crew_try_add(&f, &crew, &rejection), ERR_INVALID);
    assert_int_equal(rejection.code, REJECTION_UNKNOWN);
    assert_int_equal(rejection.task.v, 1);
    crew.needs[0] = (struct sched_need){0, 1, SCHED_ON_DONE};
    assert_int_equal(crew_try_add(&f, &crew, &rejection), ERR_INVALID);
    assert_int_equal(rejection.task.v, 0);
    fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restored_start_can_still_be_refused),
        cmocka_unit_test(a_batch_that_was_answered_in_part_goes_on),
        cmocka_unit_test(a_provider_waits_for_nobody_who_is_gone),
        cmocka_unit_test(a_probe_under_way_is_waited_for),
        cmocka_unit_test(a_provider_record_that_cannot_be_does_no_harm),
        cmocka_unit_test(a_provider_record_with_too_many_starts_does_no_harm),
        cmocka_unit_test(a_probe_elsewhere_is_not_waited_for),
        cmocka_unit_test(what_has_become_a_dead_end_is_skipped),
        cmocka_unit_test(the_refusals_of_a_task_stop_counting),
        cmocka_unit_test(a_back_off_after_a_very_late_time_does_not_wrap),
        cmocka_unit_test(nobody_is_asked_to_approve_what_needs_no_approval),
        cmocka_unit_test(a_paused_run_stays_paused),
        cmocka_unit_test(a_stopped_run_names_who_stopped_it_if_it_is_there),
        cmocka_unit_test(a_cancelled_run_takes_records_and_nothing_new),
        cmocka_unit_test(a_sync_hook_is_run_again),
        cmocka_unit_test(a_record_that_cannot_be_is_refused),
        cmocka_unit_test(a_session_is_of_one_class_and_provider),
        cmocka_unit_test(a_gap_is_found_in_the_first_record),
        cmocka_unit_test(two_sessions_of_one_token_are_refused),
        cmocka_unit_test(work_that_goes_on_needs_nothing_from_elsewhere),
    };
    return cmocka_run_group_tests_name("sched: records", tests, NULL, NULL);
}
