/* SPDX-License-Identifier: MIT */
/* Tasks that come last, in a run and in parts of it. */
#include "tests/unit/sched_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void begin(struct fixture *f)
{
    fixture_init(f);
    fixture_cap(f, 4);
    f->failure.retry_max = 0;
}

/* Add a last task of a scope. */
static void add_last(struct fixture *f, const char *name, uint32_t scope)
{
    uint32_t before = f->spec.scope;
    f->spec.scope = scope;
    f->spec.last = true;
    fixture_task(f, name, "");
    f->spec.scope = before;
    f->spec.last = false;
}

static void it_starts_when_all_others_are_done(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    add_last(&f, "end", 0);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    assert_int_equal(fixture_why(&f, "end").code, WHY_REST);
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_done(&f, "b");
    assert_string_equal(fixture_run_pass(&f), "end");
    assert_int_equal(f.quiet, 0);
    fixture_done(&f, "end");
    (void)fixture_run_pass(&f);
    assert_int_equal(f.quiet, 1);
    fixture_release(&f);
}

static void it_starts_behind_a_failure(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    add_last(&f, "end", 0);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "a");
    fixture_task(&f, "c", "b:any");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_end(&f, "a", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "end");
    fixture_release(&f);
}

static void it_waits_for_an_answer(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    add_last(&f, "end", 0);
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_end(&f, "a", OUTCOME_BLOCKED);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(f.quiet, 1);
    fixture_order(&f, EVENT_SKIP, "a");
    assert_string_equal(fixture_run_pass(&f), "end");
    fixture_release(&f);
}

static void it_runs_again_after_a_retry(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    add_last(&f, "end", 0);
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_end(&f, "a", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "end");
    fixture_done(&f, "end");
    (void)fixture_run_pass(&f);
    fixture_order(&f, EVENT_RETRY, "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    assert_int_equal(fixture_state(&f, "end"), TASK_DONE);
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "end");
    fixture_release(&f);
}

static void it_runs_in_a_cancelled_run(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    add_last(&f, "end", 0);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_order_run(&f, EVENT_CANCEL_RUN);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_state(&f, "b"), TASK_CANCELLED);
    fixture_end(&f, "a", OUTCOME_STOPPED);
    assert_string_equal(fixture_run_pass(&f), "end");
    fixture_order_run(&f, EVENT_CANCEL_RUN);
    (void)fixture_run_pass(&f);
    assert_string_equal(strbuf_text(&f.ended), "end");
    fixture_release(&f);
}

static void it_runs_after_an_abort(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    add_last(&f, "end", 0);
    f.failure.on_failure = SCHED_ABORT;
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_end(&f, "a", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "end");
    assert_int_equal(fixture_state(&f, "b"), TASK_CANCELLED);
    fixture_release(&f);
}

static void it_runs_in_a_stopped_run(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    add_last(&f, "end", 0);
    f.failure.on_failure = SCHED_STOP;
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    f.spec.not_before_ns = 10 * MINUTE;
    fixture_task(&f, "c", "");
    assert_string_equal(fixture_run_pass(&f), "a b");
    fixture_end(&f, "a", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(f.stops, 1);
    fixture_done(&f, "b");
    assert_string_equal(fixture_run_pass(&f), "end");
    fixture_done(&f, "end");
    (void)fixture_run_pass(&f);
    assert_int_equal(f.quiet, 1);
    fixture_release(&f);
}

static void an_inner_scope_ends_before_the_outer_one(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    uint32_t outer = fixture_scope(&f, 0);
    uint32_t inner = fixture_scope(&f, outer);
    add_last(&f, "end", 0);
    add_last(&f, "o", outer);
    add_last(&f, "i", inner);
    f.spec.scope = inner;
    fixture_task(&f, "a", "");
    f.spec.scope = outer;
    fixture_task(&f, "b", "");
    f.spec.scope = 0;
    fixture_task(&f, "c", "");
    assert_string_equal(fixture_run_pass(&f), "a b c");
    fixture_done(&f, "c b");
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "i");
    fixture_done(&f, "i");
    assert_string_equal(fixture_run_pass(&f), "o");
    fixture_end(&f, "o", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "end");
    fixture_release(&f);
}

static void a_group_that_never_began_has_no_end(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    uint32_t scope = fixture_scope(&f, 0);
    fixture_task(&f, "a", "");
    f.spec.scope = scope;
    fixture_task(&f, "b", "a");
    add_last(&f, "i", scope);
    add_last(&f, "end", 0);
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_end(&f, "a", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "end");
    assert_int_equal(fixture_state(&f, "i"), TASK_WAITING);
    fixture_release(&f);
}

static void needing_what_comes_last_is_refused(void **state)
{
    (void)state;
    struct fixture f;
    struct sched_rejection rejection;
    begin(&f);
    uint32_t scope = fixture_scope(&f, 0);
    add_last(&f, "i", scope);
    add_last(&f, "end", 0);
    fixture_task(&f, "outside", "i:any");
    assert_int_equal(fixture_try_task(&f, "a", "end", &rejection), ERR_INVALID);
    assert_int_equal(rejection.code, REJECTION_LAST);
    sched_rejection_release(&rejection);
    f.spec.scope = scope;
    assert_int_equal(fixture_try_task(&f, "a", "i:any", &rejection),
                     ERR_INVALID);
    assert_int_equal(rejection.code, REJECTION_LAST);
    sched_rejection_release(&rejection);
    f.spec.last = true;
    assert_int_equal(fixture_try_task(&f, "a", "end", &rejection), ERR_INVALID);
    assert_int_equal(rejection.code, REJECTION_LAST);
    sched_rejection_release(&rejection);
    fixture_task(&f, "i2", "i");
    fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_starts_when_all_others_are_done),
        cmocka_unit_test(it_starts_behind_a_failure),
        cmocka_unit_test(it_waits_for_an_answer),
        cmocka_unit_test(it_runs_again_after_a_retry),
        cmocka_unit_test(it_runs_in_a_cancelled_run),
        cmocka_unit_test(it_runs_after_an_abort),
        cmocka_unit_test(it_runs_in_a_stopped_run),
        cmocka_unit_test(an_inner_scope_ends_before_the_outer_one),
        cmocka_unit_test(a_group_that_never_began_has_no_end),
        cmocka_unit_test(needing_what_comes_last_is_refused),
    };
    return cmocka_run_group_tests_name("sched_last", tests, NULL, NULL);
}
