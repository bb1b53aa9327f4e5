/* SPDX-License-Identifier: MIT */
#include "tests/unit/sched_fixture.h"

#include "tests/support/death.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The reason must be this one, and name this task ("": none). */
static struct why assert_why(struct fixture *f,
                             const char *name,
                             enum why_code code,
                             const char *because)
{
    struct why why = fixture_why(f, name);
    assert_string_equal(why_code_name(why.code), why_code_name(code));
    uint32_t task = *because != '\0' ? fixture_id(f, because).v : ID_NONE;
    assert_int_equal(why.task.v, task);
    return why;
}

static void every_code_has_a_name_of_its_own(void **state)
{
    (void)state;
    static const char *const names[] = {
        "ended",  "running",  "needs",    "blocked",   "failed",  "parked",
        "held",   "backoff",  "usage",    "circuit",   "stopped", "paused",
        "asked",  "barrier",  "draining", "limit",     "budget",  "reserved",
        "behind", "deferred", "planned",  "startable",
    };
    for (uint32_t code = 0; code <= WHY_STARTABLE; code++) {
        assert_string_equal(why_code_name((enum why_code)code), names[code]);
    }
}

static void name_of_nothing(void *ctx)
{
    (void)ctx;
    (void)why_code_name((enum why_code)(WHY_REST + 1));
}

static void a_code_that_is_none_is_a_bug(void **state)
{
    (void)state;
    death_expect(name_of_nothing, NULL, "ARRAY_COUNT(names)");
}

static void ended_names_the_cause_if_there_is_one(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 3);
    fixture_task(&f, "done", "");
    fixture_task(&f, "gone", "");
    fixture_task(&f, "behind", "gone");
    fixture_order(&f, EVENT_CANCEL, "gone");
    assert_string_equal(fixture_run_pass(&f), "done");
    fixture_done(&f, "done");
    (void)fixture_run_pass(&f);
    assert_why(&f, "done", WHY_ENDED, "");
    assert_why(&f, "gone", WHY_ENDED, "");
    struct why why = assert_why(&f, "behind", WHY_ENDED, "gone");
    assert_int_equal(why.limit.v, ID_NONE);
    assert_int_equal(why.group.v, ID_NONE);
    assert_int_equal(why.provider.v, ID_NONE);
    assert_true(why.until_ns == SCHED_NEVER);
    fixture_release(&f);
}

static void running_from_the_claim_on(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "a", "");
    assert_why(&f, "a", WHY_STARTABLE, ""); /* the pass is yet to come */
    assert_string_equal(fixture_run_pass(&f), "a");
    assert_why(&f, "a", WHY_RUNNING, "");
    fixture_accept(&f, "a");
    assert_why(&f, "a", WHY_RUNNING, "");
    fixture_release(&f);
}

static void needs_names_the_first_that_is_missing(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    fixture_task(&f, "c", "b a");
    fixture_task(&f, "d", "c b");
    fixture_task(&f, "e", "d b c"); /* several ways to the same tasks */
    fixture_task(&f, "g", "a b");
    (void)fixture_run_pass(&f);
    assert_why(&f, "c", WHY_NEEDS, "a");
    assert_why(&f, "g", WHY_NEEDS, "a");
    assert_why(&f, "d", WHY_NEEDS, "b");
    assert_why(&f, "e", WHY_NEEDS, "b");
    fixture_done(&f, "a");
    (void)fixture_run_pass(&f);
    assert_why(&f, "c", WHY_NEEDS, "b");
    fixture_release(&f);
}

static void blocked_names_what_will_not_move_by_itself(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 9);
    fixture_task(&f, "stuck", "");
    fixture_task(&f, "runs", "");
    fixture_task(&f, "c", "stuck");
    fixture_task(&f, "d", "runs c");
    fixture_task(&f, "e", "d");
    (void)fixture_run_pass(&f);
    fixture_end(&f, "stuck", OUTCOME_BLOCKED);
    (void)fixture_run_pass(&f);
    assert_why(&f, "stuck", WHY_PARKED, "");
    assert_why(&f, "c", WHY_BLOCKED, "stuck");
    assert_why(&f, "d", WHY_BLOCKED, "stuck"); /* even if runs is missing */
    assert_why(&f, "e", WHY_BLOCKED, "stuck");
    fixture_order(&f, EVENT_RETRY, "stuck");
    (void)fixture_run_pass(&f);
    fixture_done(&f, "stuck runs");
    fixture_order(&f, EVENT_REVOKE, "stuck");
    (void)fixture_run_pass(&f);
    assert_why(&f, "e", WHY_BLOCKED, "stuck");
    fixture_release(&f);
}

static void blocked_by_a_task_that_failed(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 9);
    f.failure.on_failure = SCHED_SKIP;
    f.failure.optional = true;
    fixture_task(&f, "first", "");
    fixture_task(&f, "lint", "first");
    f.failure = (struct sched_failure_spec){0};
    fixture_task(&f, "merge", "lint");
    assert_string_equal(fixture_run_pass(&f), "first");
    fixture_done(&f, "first");
    assert_string_equal(fixture_run_pass(&f), "lint");
    fixture_order(&f, EVENT_REVOKE, "first");
    fixture_end(&f, "lint", OUTCOME_FAILED);
    (void)fixture_run_pass(&f);
    assert_why(&f, "lint", WHY_FAILED, "");
    /* lint is optional and does not block, but what it needs does. */
    assert_why(&f, "merge", WHY_BLOCKED, "first");
    fixture_release(&f);
}

static void held_and_backoff(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    f.failure.retry_max = 1;
    f.failure.backoff_ns = MINUTE;
    f.failure.backoff_ns_max = MINUTE;
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    fixture_order(&f, EVENT_HOLD, "b");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_end(&f, "a", OUTCOME_FAILED);
    (void)fixture_run_pass(&f);
    struct why why = assert_why(&f, "a", WHY_BACKOFF, "");
    assert_true(why.until_ns == MINUTE);
    assert_int_equal(why.provider.v, ID_NONE); /* its own, not the other's */
    assert_why(&f, "b", WHY_HELD, "");
    fixture_release(&f);
}

static void usage_and_circuit_name_the_provider(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    static const struct provider_spec spec = {
        .backoff_ns = SECOND,
        .backoff_ns_max = SECOND,
        .circuit_failures = 1,
        .probe_ns = MINUTE,
        .probe_ns_max = MINUTE,
    };
    fixture_cap(&f, 2);
    fixture_task(&f, "limited", "");
    f.spec.provider = sched_add_provider(f.sched, &spec);
    fixture_task(&f, "fails", "");
    fixture_task(&f, "other", "");
    assert_string_equal(fixture_run_pass(&f), "limited fails");
    fixture_refuse(&f, "limited", 5 * MINUTE);
    fixture_end(&f, "fails", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "");
    struct why why = assert_why(&f, "limited", WHY_USAGE, "");
    assert_int_equal(why.provider.v, f.provider.v);
    assert_true(why.until_ns == 5 * MINUTE);
    why = assert_why(&f, "other", WHY_CIRCUIT, "");
    assert_int_equal(why.provider.v, f.spec.provider.v);
    assert_true(why.until_ns == MINUTE);
    /* By order, the time that was named is forgotten; a circuit is not. */
    struct sched_event open = {.type = EVENT_OPEN, .now_ns = f.now_ns};
    assert_int_equal(sched_apply(f.sched, &open), ERR_OK);
    assert_string_equal(fixture_run_pass(&f), "limited");
    (void)assert_why(&f, "other", WHY_CIRCUIT, "");
    fixture_release(&f);
}

static void paused_asked_and_barrier(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    f.failure.on_failure = SCHED_ASK;
    fixture_task(&f, "elsewhere", ""); /* asks too, but in another run */
    (void)fixture_run_pass(&f);
    fixture_end(&f, "elsewhere", OUTCOME_FAILED);
    fixture_sync_run(&f, 1, true);
    fixture_task(&f, "a", "");
    fixture_task(&f, "asks", "");
    fixture_task(&f, "c", "");
    fixture_task(&f, "d", "");
    assert_string_equal(fixture_run_pass(&f), "a asks c");
    fixture_end(&f, "asks", OUTCOME_FAILED);
    (void)fixture_run_pass(&f);
    assert_why(&f, "d", WHY_ASKED, "asks");
    fixture_order_run(&f, EVENT_PAUSE); /* the operator's word comes first */
    (void)fixture_run_pass(&f);
    assert_why(&f, "d", WHY_PAUSED, "");
    fixture_order_run(&f, EVENT_RESUME);
    fixture_order(&f, EVENT_CANCEL, "asks");
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_why(&f, "d", WHY_BARRIER, "");
    fixture_release(&f);
}

static void limit_names_who_holds_some(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {
        fixture_max(9),
        fixture_per(1, FIXTURE_REPO),
    };
    fixture_run(&f, SCHED_RANK, limits, 2);
    fixture_task(&f, "other", ""); /* uses the cap, but no repo */
    fixture_attribute(&f, FIXTURE_REPO, 1);
    fixture_task(&f, "holder", "");
    fixture_task(&f, "waits", "");
    (void)fixture_run_pass(&f);
    struct why why = assert_why(&f, "waits", WHY_LIMIT, "holder");
    assert_int_equal(why.limit.v, f.limits[1].v);
    assert_int_equal(why.group.v, ID_NONE);
    fixture_release(&f);
}

static void a_budget_is_named_and_nobody_holds_it(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(9), fixture_max(10)};
    limits[1].resource = true;
    limits[1].budget = true;
    fixture_run(&f, SCHED_RANK, limits, 2);
    struct sched_use use = {.limit = f.limits[1], .units = 4};
    f.spec.uses = &use;
    f.spec.use_count = 1;
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    fixture_task(&f, "waits", "");
    use.units = 3;
    fixture_task(&f, "behind", "");
    assert_string_equal(fixture_run_pass(&f), "a b");
    struct why why = assert_why(&f, "waits", WHY_BUDGET, "");
    assert_int_equal(why.limit.v, f.limits[1].v);
    (void)assert_why(&f, "behind", WHY_RESERVED, "waits");
    /* Both have cost what was expected: two units are left for ever. */
    struct sched_event event = {
        .type = EVENT_LIMIT,
        .now_ns = f.now_ns,
        .limit = f.limits[1],
        .max = 2,
    };
    assert_int_equal(sched_apply(f.sched, &event), ERR_OK);
    fixture_end(&f, "a", OUTCOME_DONE);
    fixture_end(&f, "b", OUTCOME_DONE);
    assert_string_equal(fixture_run_pass(&f), "");
    (void)assert_why(&f, "waits", WHY_BUDGET, "");
    (void)assert_why(&f, "behind", WHY_BUDGET, ""); /* nothing is kept */
    event.max = 3;
    assert_int_equal(sched_apply(f.sched, &event), ERR_OK);
    assert_string_equal(fixture_run_pass(&f), "behind");
    fixture_release(&f);
}

static void a_limit_of_0_is_held_by_nobody(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 0);
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "");
    struct why why = assert_why(&f, "a", WHY_LIMIT, "");
    assert_int_equal(why.limit.v, f.limits[0].v);
    fixture_release(&f);
}

static void a_group_limit_names_the_group_that_holds_it(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(9), fixture_max(1)};
    limits[1].hold_group = true;
    fixture_run(&f, SCHED_RANK, limits, 2);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    struct why why = fixture_why(&f, "b");
    assert_int_equal(why.code, WHY_LIMIT);
    assert_int_equal(why.limit.v, f.limits[1].v);
    assert_int_equal(why.group.v, fixture_get(&f, "a").group.v);
    /* It was the last to hold it, but is closed now: not named. */
    fixture_set_limit(&f, 1, 0, 0);
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "");
    why = fixture_why(&f, "b");
    assert_int_equal(why.code, WHY_LIMIT);
    assert_int_equal(why.group.v, ID_NONE);
    fixture_release(&f);
}

/* A limit of all issues, and one of each repo. */
static void a_group_with_several_tasks_is_named(void **state)
{
    (void)state;
    for (uint32_t full = 1; full < 3; full++) {
        struct fixture f;
        fixture_init(&f);
        struct limit_spec limits[] = {
            fixture_max(9),
            fixture_max(full == 1 ? 1 : 9),
            fixture_per(1, FIXTURE_REPO),
        };
        limits[1].hold_group = true;
        limits[2].hold_group = true;
        fixture_run(&f, SCHED_RANK, limits, 3);
        f.spec.group = fixture_group(&f, FIXTURE_REPO, 1);
        fixture_task(&f, "a1", "");
        fixture_task(&f, "a2", "a1");
        f.spec.group = fixture_group(&f, FIXTURE_REPO, full == 1 ? 2 : 1);
        fixture_task(&f, "b1", "");
        fixture_task(&f, "b2", "b1");
        assert_string_equal(fixture_run_pass(&f), "a1");
        struct why why = assert_why(&f, "b1", WHY_LIMIT, "");
        assert_int_equal(why.limit.v, f.limits[full].v);
        assert_int_not_equal(why.group.v, ID_NONE);
        assert_int_equal(why.group.v, fixture_get(&f, "a1").group.v);
        fixture_release(&f);
    }
}

static void behind_names_who_goes_first_there(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "runs", "");
    fixture_task(&f, "first", "");
    fixture_task(&f, "second", "");
    assert_string_equal(fixture_run_pass(&f), "runs");
    assert_why(&f, "first", WHY_LIMIT, "runs");
    struct why why = assert_why(&f, "second", WHY_BEHIND, "first");
    assert_int_equal(why.limit.v, f.limits[0].v);
    fixture_release(&f);
}

static void reserved_names_whom_it_is_kept_for(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    fixture_task(&f, "runs", "");
    assert_string_equal(fixture_run_pass(&f), "runs");
    fixture_pass(&f, 1); /* from now on, nothing ends before it */
    struct sched_use use = {f.limits[0], 2};
    f.spec.uses = &use;
    f.spec.use_count = 1;
    fixture_task(&f, "wide", "");
    f.spec.use_count = 0;
    fixture_task(&f, "narrow", "");
    assert_string_equal(fixture_run_pass(&f), "");
    struct why why = assert_why(&f, "narrow", WHY_RESERVED, "wide");
    assert_int_equal(why.limit.v, f.limits[0].v);
    why = assert_why(&f, "wide", WHY_LIMIT, "runs");
    assert_int_equal(why.limit.v, f.limits[0].v);
    fixture_release(&f);
}

static void deferred_until_it_has_waited_too_long(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "runs", "");
    f.spec.class_id = fixture_class(&f, 1, true, 1, 60 * MINUTE);
    fixture_task(&f, "back", "");
    assert_string_equal(fixture_run_pass(&f), "runs");
    struct why why = assert_why(&f, "back", WHY_DEFERRED, "");
    assert_int_equal(why.limit.v, f.limits[0].v);
    fixture_pass(&f, 60 * MINUTE);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_why(&f, "back", WHY_LIMIT, "runs");
    fixture_release(&f);
}

/* What is shown as startable is what would start. */
static void startable_is_what_will_start(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "a b");
    fixture_task(&f, "c", "");
    assert_why(&f, "c", WHY_LIMIT, "a");
    fixture_done(&f, "a");
    assert_why(&f, "c", WHY_STARTABLE, "");
    assert_string_equal(fixture_run_pass(&f), "c");
    fixture_release(&f);
}

static void a_set_aside_task_names_a_limit_it_lacks(void **state)
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
    fixture_task(&f, "b", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    struct why why = assert_why(&f, "b", WHY_LIMIT, "a");
    assert_true(why.limit.v == f.limits[0].v || why.limit.v == f.limits[1].v);
    fixture_release(&f);
}

static void a_group_limit_of_0_is_held_by_no_group(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limit = fixture_max(0);
    limit.hold_group = true;
    fixture_run(&f, SCHED_RANK, &limit, 1);
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "");
    struct why why = assert_why(&f, "a", WHY_LIMIT, "");
    assert_int_equal(why.group.v, ID_NONE);
    fixture_release(&f);
}

static void what_was_reserved_and_fits_now_is_startable(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    fixture_task(&f, "runs", "");
    assert_string_equal(fixture_run_pass(&f), "runs");
    struct sched_use use = {f.limits[0], 2};
    f.spec.uses = &use;
    f.spec.use_count = 1;
    fixture_task(&f, "wide", "");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_why(&f, "wide", WHY_LIMIT, "runs");
    fixture_set_limit(&f, 0, 3, 0);
    assert_why(&f, "wide", WHY_STARTABLE, "");
    assert_string_equal(fixture_run_pass(&f), "wide");
    fixture_release(&f);
}

/* x runs on what z gave before; z was to be repeated, and is cancelled. */
static void blocked_by_what_was_cancelled_behind_a_session(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "other", "");
    fixture_task(&f, "z", "");
    fixture_task(&f, "x", "z");
    fixture_task(&f, "t", "x:any");
    fixture_order(&f, EVENT_HOLD, "other");
    assert_string_equal(fixture_run_pass(&f), "z");
    fixture_done(&f, "z");
    assert_string_equal(fixture_run_pass(&f), "x");
    fixture_order(&f, EVENT_RERUN, "z");
    fixture_order(&f, EVENT_CANCEL, "z");
    (void)fixture_run_pass(&f);
    assert_int_equal(fixture_state(&f, "x"), TASK_STARTING);
    assert_why(&f, "t", WHY_BLOCKED, "z");
    fixture_release(&f);
}

struct reasons {
    struct why of[FIXTURE_NAMES];
    uint32_t count;
};

static void note_reason(void *ctx, struct task_id task, const struct why *why)
{
    struct reasons *reasons = ctx;
    assert_int_equal(task.v, reasons->count); /* in order, each once */
    reasons->of[reasons->count++] = *why;
}

/* Walks share what they have found. */
static void all_reasons_are_those_of_each_task(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    fixture_task(&f, "z", "");
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "a");
    fixture_task(&f, "c", "b");
    fixture_task(&f, "d", "b c");
    struct sched_rejection rejection;
    assert_int_equal(fixture_try_need(&f, "z", "c", &rejection), ERR_OK);
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_end(&f, "a", OUTCOME_BLOCKED);
    (void)fixture_run_pass(&f);
    struct reasons all = {.count = 0};
    why_all(f.sched, note_reason, &all);
    assert_int_equal(all.count, 5);
    for (uint32_t ix = 0; ix < all.count; ix++) {
        struct why one = why_task(f.sched, (struct task_id){ix});
        assert_int_equal(all.of[ix].code, one.code);
        assert_int_equal(all.of[ix].task.v, one.task.v);
    }
    assert_int_equal(all.of[4].code, WHY_BLOCKED);
    assert_int_equal(all.of[4].task.v, fixture_id(&f, "a").v);
    fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_a_name_of_its_own),
        cmocka_unit_test(a_code_that_is_none_is_a_bug),
        cmocka_unit_test(ended_names_the_cause_if_there_is_one),
        cmocka_unit_test(running_from_the_claim_on),
        cmocka_unit_test(needs_names_the_first_that_is_missing),
        cmocka_unit_test(blocked_names_what_will_not_move_by_itself),
        cmocka_unit_test(blocked_by_a_task_that_failed),
        cmocka_unit_test(blocked_by_what_was_cancelled_behind_a_session),
        cmocka_unit_test(all_reasons_are_those_of_each_task),
        cmocka_unit_test(held_and_backoff),
        cmocka_unit_test(usage_and_circuit_name_the_provider),
        cmocka_unit_test(paused_asked_and_barrier),
        cmocka_unit_test(limit_names_who_holds_some),
        cmocka_unit_test(a_budget_is_named_and_nobody_holds_it),
        cmocka_unit_test(a_limit_of_0_is_held_by_nobody),
        cmocka_unit_test(a_group_limit_names_the_group_that_holds_it),
        cmocka_unit_test(a_group_with_several_tasks_is_named),
        cmocka_unit_test(behind_names_who_goes_first_there),
        cmocka_unit_test(reserved_names_whom_it_is_kept_for),
        cmocka_unit_test(deferred_until_it_has_waited_too_long),
        cmocka_unit_test(startable_is_what_will_start),
        cmocka_unit_test(a_set_aside_task_names_a_limit_it_lacks),
        cmocka_unit_test(a_group_limit_of_0_is_held_by_no_group),
        cmocka_unit_test(what_was_reserved_and_fits_now_is_startable),
    };
    return cmocka_run_group_tests_name("why", tests, NULL, NULL);
}
