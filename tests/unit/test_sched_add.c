/* SPDX-License-Identifier: MIT */
/* Adding work while others run, and what is refused. */
#include "tests/unit/sched_fixture.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The addition must be refused, and nothing may have changed. */
static void assert_refused(struct fixture *f,
                           const struct sched_addition *addition,
                           enum err err,
                           enum sched_rejection_code code,
                           uint32_t task)
{
    char *before = fixture_picture(f);
    struct sched_rejection rejection;
    assert_int_equal(sched_add(f->sched, f->now_ns, addition, &rejection), err);
    assert_int_equal(rejection.code, code);
    assert_int_equal(rejection.task.v, task);
    sched_rejection_release(&rejection);
    assert_int_equal(rejection.code, REJECTION_NONE);
    sched_verify(f->sched);
    char *after = fixture_picture(f);
    assert_string_equal(after, before);
    mem_free(before);
    mem_free(after);
}

/* Two tasks "a" and "b" that needs it, in a run of cap 2; a runs. */
static void start_two(struct fixture *f)
{
    fixture_init(f);
    fixture_cap(f, 2);
    fixture_task(f, "a", "");
    fixture_task(f, "b", "a");
    assert_string_equal(fixture_run_pass(f), "a");
}

static void new_tasks_get_the_next_numbers(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    assert_int_equal(fixture_task(&f, "a", "").v, 0);
    assert_int_equal(fixture_tasks(&f, 3).v, 1);
    assert_int_equal(fixture_task(&f, "b", "a").v, 4);
    assert_int_equal(sched_task_count(f.sched), 5);
    assert_int_equal(sched_group_count(f.sched), 0); /* each alone */
    struct sched_task b = fixture_get(&f, "b");
    assert_int_equal(b.run.v, f.run.v);
    assert_int_equal(b.class_id.v, f.work.v);
    assert_int_equal(b.provider.v, f.provider.v);
    assert_true(b.estimate_ns == MINUTE);
    assert_int_equal(b.unmet, 1);
    fixture_release(&f);
}

static void an_addition_may_be_empty(void **state)
{
    (void)state;
    struct fixture f;
    start_two(&f);
    struct sched_addition nothing = {.run = f.run};
    struct sched_rejection rejection;
    assert_int_equal(sched_add(f.sched, 0, &nothing, &rejection), ERR_OK);
    sched_rejection_release(&rejection);
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_release(&f);
}

static void tasks_of_one_addition_may_need_each_other(void **state)
{
    (void)state;
    struct fixture f;
    start_two(&f);
    /* Numbers 2, 3 and 4; groups: a new one, the first that is declared. */
    struct sched_group_spec group = {NULL, 0};
    struct sched_task_spec tasks[] = {f.spec, f.spec, f.spec};
    tasks[0].group = 0;
    tasks[1].group = 0;
    struct sched_need needs[] = {{2, 3, SCHED_ON_DONE},
                                 {3, 4, SCHED_ON_DONE},
                                 {1, 2, SCHED_ON_DONE}};
    struct sched_addition addition = {
        .run = f.run,
        .groups = &group,
        .group_count = 1,
        .tasks = tasks,
        .task_count = 3,
        .needs = needs,
        .need_count = 3,
    };
    struct sched_rejection rejection;
    assert_int_equal(sched_add(f.sched, 0, &addition, &rejection), ERR_OK);
    assert_string_equal(fixture_run_pass(&f), "#4");
    assert_int_equal(sched_task(f.sched, (struct task_id){2}).group.v, 0);
    assert_int_equal(sched_task(f.sched, (struct task_id){3}).group.v, 0);
    assert_int_equal(sched_task(f.sched, (struct task_id){4}).group.v, ID_NONE);
    assert_int_equal(fixture_get(&f, "b").unmet, 2); /* an old one waits */
    fixture_release(&f);
}

static void a_ready_task_that_gains_a_need_waits(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    fixture_task(&f, "held", "");
    fixture_order(&f, EVENT_HOLD, "held");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_task(&f, "c", "");
    struct sched_rejection rejection;
    assert_int_equal(fixture_try_need(&f, "b", "c", &rejection), ERR_OK);
    assert_int_equal(fixture_try_need(&f, "held", "c", &rejection), ERR_OK);
    assert_int_equal(fixture_try_need(&f, "b", "a", &rejection), ERR_OK);
    assert_int_equal(fixture_state(&f, "b"), TASK_WAITING);
    assert_int_equal(fixture_get(&f, "b").unmet, 2);
    assert_int_equal(fixture_state(&f, "held"), TASK_WAITING);
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "c");
    fixture_done(&f, "c");
    assert_string_equal(fixture_run_pass(&f), "b");
    /* A need that is met already is no hindrance. */
    assert_int_equal(fixture_try_need(&f, "held", "a", &rejection), ERR_OK);
    assert_int_equal(fixture_state(&f, "held"), TASK_READY);
    fixture_release(&f);
}

static void the_same_need_twice_is_harmless(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "a a");
    assert_int_equal(fixture_get(&f, "b").unmet, 2);
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_release(&f);
}

static void behind_a_done_task_it_is_ready(void **state)
{
    (void)state;
    struct fixture f;
    start_two(&f);
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_task(&f, "c", "a");
    assert_string_equal(fixture_run_pass(&f), "c");
    fixture_release(&f);
}

static void behind_a_revoked_task_it_waits(void **state)
{
    (void)state;
    struct fixture f;
    start_two(&f);
    fixture_done(&f, "a");
    fixture_order(&f, EVENT_REVOKE, "a");
    fixture_task(&f, "c", "a");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_state(&f, "c"), TASK_WAITING);
    fixture_order(&f, EVENT_RELEASE, "a");
    assert_string_equal(fixture_run_pass(&f), "b c");
    fixture_release(&f);
}

static void behind_a_running_task_it_waits(void **state)
{
    (void)state;
    struct fixture f;
    start_two(&f);
    fixture_accept(&f, "a");
    fixture_task(&f, "c", "a");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_why(&f, "c").code, WHY_NEEDS);
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "b c");
    fixture_release(&f);
}

static void behind_a_parked_task_it_waits(void **state)
{
    (void)state;
    struct fixture f;
    start_two(&f);
    fixture_end(&f, "a", OUTCOME_FAILED);
    fixture_task(&f, "c", "a");
    assert_string_equal(fixture_run_pass(&f), "");
    assert_int_equal(fixture_state(&f, "c"), TASK_WAITING);
    assert_int_equal(fixture_why(&f, "c").code, WHY_BLOCKED);
    fixture_order(&f, EVENT_RETRY, "a");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_release(&f);
}

static void behind_what_was_given_up_it_is_skipped(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 3);
    f.failure.on_failure = SCHED_SKIP;
    fixture_task(&f, "failed", "");
    fixture_task(&f, "skipped", "");
    fixture_task(&f, "cancelled", "");
    fixture_order(&f, EVENT_SKIP, "skipped");
    fixture_order(&f, EVENT_CANCEL, "cancelled");
    assert_string_equal(fixture_run_pass(&f), "failed");
    fixture_end(&f, "failed", OUTCOME_FAILED);
    static const char *const needs[] = {"failed", "skipped", "cancelled"};
    static const char *const names[] = {"x", "y", "z"};
    for (uint32_t ix = 0; ix < 3; ix++) {
        fixture_task(&f, names[ix], needs[ix]);
        assert_int_equal(fixture_state(&f, names[ix]), TASK_SKIPPED);
        assert_int_equal(fixture_why(&f, names[ix]).task.v,
                         fixture_id(&f, needs[ix]).v);
    }
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_order(&f, EVENT_RETRY, "failed"); /* and back again */
    assert_int_equal(fixture_state(&f, "x"), TASK_WAITING);
    fixture_release(&f);
}

static void behind_an_optional_one_given_up_it_is_ready(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 3);
    f.failure.on_failure = SCHED_SKIP;
    f.failure.optional = true;
    fixture_task(&f, "failed", "");
    fixture_task(&f, "skipped", "");
    fixture_order(&f, EVENT_SKIP, "skipped");
    assert_string_equal(fixture_run_pass(&f), "failed");
    fixture_end(&f, "failed", OUTCOME_FAILED);
    fixture_task(&f, "x", "failed skipped");
    assert_string_equal(fixture_run_pass(&f), "x");
    fixture_release(&f);
}

static void an_old_task_that_gains_a_dead_need_is_skipped(void **state)
{
    (void)state;
    struct fixture f;
    start_two(&f);
    fixture_task(&f, "dead", "");
    fixture_order(&f, EVENT_CANCEL, "dead");
    struct sched_rejection rejection;
    assert_int_equal(fixture_try_need(&f, "b", "dead", &rejection), ERR_OK);
    assert_int_equal(fixture_state(&f, "b"), TASK_SKIPPED);
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_release(&f);
}

static void too_many_tasks_are_refused(void **state)
{
    (void)state;
    struct fixture f;
    start_two(&f);
    struct sched_addition addition = {
        .run = f.run,
        .tasks = &f.spec, /* is not looked at */
        .task_count = SCHED_TASKS_MAX - 1,
    };
    assert_refused(&f, &addition, ERR_LIMIT, REJECTION_TOO_MANY, ID_NONE);
    fixture_release(&f);
}

static void a_need_that_is_not_there_is_refused(void **state)
{
    (void)state;
    struct fixture f;
    start_two(&f);
    struct sched_need need = {2, 3, SCHED_ON_DONE};
    struct sched_addition addition = {
        .run = f.run,
        .tasks = &f.spec,
        .task_count = 1,
        .needs = &need,
        .need_count = 1,
    };
    assert_refused(&f, &addition, ERR_INVALID, REJECTION_UNKNOWN, 2);
    need = (struct sched_need){7, 0, SCHED_ON_DONE};
    assert_refused(&f, &addition, ERR_INVALID, REJECTION_UNKNOWN, 7);
    fixture_release(&f);
}

static void a_cycle_is_refused_and_named(void **state)
{
    (void)state;
    struct fixture f;
    start_two(&f);
    fixture_task(&f, "c", "b");
    (void)fixture_run_pass(&f);
    /* b needs the new one (3), which needs c, which needs b. */
    struct sched_need needs[] = {{3, 2, SCHED_ON_DONE}, {1, 3, SCHED_ON_DONE}};
    struct sched_addition addition = {
        .run = f.run,
        .tasks = &f.spec,
        .task_count = 1,
        .needs = needs,
        .need_count = 2,
    };
    struct sched_rejection rejection;
    assert_int_equal(sched_add(f.sched, 0, &addition, &rejection), ERR_INVALID);
    assert_int_equal(rejection.code, REJECTION_CYCLE);
    static const uint32_t cycle[] = {1, 3, 2}; /* b, the new one, c */
    assert_int_equal(rejection.cycle_count, 3);
    assert_memory_equal(rejection.cycle, cycle, sizeof(cycle));
    sched_rejection_release(&rejection);
    assert_null(rejection.cycle);
    assert_refused(&f, &addition, ERR_INVALID, REJECTION_CYCLE, 1);
    /* Among old tasks only, and among new tasks only. */
    struct sched_need old = {1, 2, SCHED_ON_DONE};
    struct sched_addition edge = {
        .run = f.run,
        .needs = &old,
        .need_count = 1,
    };
    assert_refused(&f, &edge, ERR_INVALID, REJECTION_CYCLE, 1);
    needs[0] = (struct sched_need){3, 3, SCHED_ON_DONE};
    addition.need_count = 1;
    assert_refused(&f, &addition, ERR_INVALID, REJECTION_CYCLE, 3);
    /* The scheduler goes on as if nothing had happened. */
    fixture_done(&f, "a");
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_task(&f, "d", "c");
    fixture_done(&f, "b");
    assert_string_equal(fixture_run_pass(&f), "c");
    fixture_release(&f);
}

static void one_in_flight_cannot_gain_a_need(void **state)
{
    (void)state;
    struct fixture f;
    start_two(&f);
    struct sched_need need = {0, 2, SCHED_ON_DONE};
    struct sched_addition addition = {
        .run = f.run,
        .tasks = &f.spec,
        .task_count = 1,
        .needs = &need,
        .need_count = 1,
    };
    assert_refused(&f, &addition, ERR_CONFLICT, REJECTION_STARTED, 0);
    fixture_accept(&f, "a");
    (void)fixture_run_pass(&f);
    assert_refused(&f, &addition, ERR_CONFLICT, REJECTION_STARTED, 0);
    fixture_release(&f);
}

static void one_that_ended_cannot_gain_a_need(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 5);
    fixture_task(&f, "done", "");
    fixture_task(&f, "parked", "");
    f.failure.on_failure = SCHED_SKIP;
    fixture_task(&f, "failed", "");
    fixture_task(&f, "skipped", "");
    fixture_task(&f, "cancelled", "");
    fixture_order(&f, EVENT_SKIP, "skipped");
    fixture_order(&f, EVENT_CANCEL, "cancelled");
    (void)fixture_run_pass(&f);
    fixture_done(&f, "done");
    fixture_end(&f, "parked", OUTCOME_BLOCKED);
    fixture_end(&f, "failed", OUTCOME_FAILED);
    (void)fixture_run_pass(&f);
    for (uint32_t task = 0; task < 5; task++) {
        struct sched_need need = {task, 5, SCHED_ON_DONE};
        struct sched_addition addition = {
            .run = f.run,
            .tasks = &f.spec,
            .task_count = 1,
            .needs = &need,
            .need_count = 1,
        };
        assert_refused(&f, &addition, ERR_CONFLICT, REJECTION_ENDED, task);
    }
    fixture_release(&f);
}

static void another_run_is_out_of_bounds(void **state)
{
    (void)state;
    struct fixture f;
    start_two(&f);
    uint32_t group = fixture_group(&f, 0, 0);
    fixture_cap(&f, 2); /* a second run: additions go there now */
    (void)fixture_run_pass(&f);
    struct sched_need need = {2, 0, SCHED_ON_DONE};
    struct sched_addition addition = {
        .run = f.run,
        .tasks = &f.spec,
        .task_count = 1,
        .needs = &need,
        .need_count = 1,
    };
    assert_refused(&f, &addition, ERR_INVALID, REJECTION_OTHER_RUN, 0);
    need = (struct sched_need){1, 2, SCHED_ON_DONE};
    assert_refused(&f, &addition, ERR_INVALID, REJECTION_OTHER_RUN, 1);
    addition.need_count = 0;
    struct sched_task_spec specs[] = {f.spec, f.spec};
    specs[1].group = group;
    addition.tasks = specs;
    addition.task_count = 2;
    assert_refused(&f, &addition, ERR_INVALID, REJECTION_OTHER_RUN, 3);
    fixture_release(&f);
}

static void rework_must_go_back_inside_the_group(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    uint32_t group = fixture_group(&f, 0, 0);
    f.spec.group = group;
    fixture_task(&f, "code", "");
    fixture_task(&f, "beside", "");
    f.spec.group = ID_NONE;
    fixture_task(&f, "outside", "code");
    (void)fixture_run_pass(&f);
    struct sched_need need = {3, 0, SCHED_ON_DONE};
    struct sched_addition addition = {
        .run = f.run,
        .tasks = &f.spec,
        .task_count = 1,
        .needs = &need,
        .need_count = 1,
    };
    f.spec.group = group;
    f.spec.rework_to = 3; /* itself */
    assert_refused(&f, &addition, ERR_INVALID, REJECTION_REWORK, 3);
    f.spec.rework_to = 77; /* is not there */
    assert_refused(&f, &addition, ERR_INVALID, REJECTION_REWORK, 3);
    f.spec.rework_to = 1; /* is not needed */
    assert_refused(&f, &addition, ERR_INVALID, REJECTION_REWORK, 3);
    f.spec.rework_to = 0;
    need.need = 2; /* needed, but through a task outside */
    assert_refused(&f, &addition, ERR_INVALID, REJECTION_REWORK, 3);
    need.need = 0;
    f.spec.group = ID_NONE; /* alone */
    assert_refused(&f, &addition, ERR_INVALID, REJECTION_REWORK, 3);
    f.spec.group = group;
    struct sched_rejection rejection;
    assert_int_equal(sched_add(f.sched, 0, &addition, &rejection), ERR_OK);
    fixture_release(&f);
}

static void rework_may_go_back_over_several_ways(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 2);
    struct sched_task_spec tasks[] = {f.spec, f.spec, f.spec, f.spec};
    for (uint32_t ix = 0; ix < 4; ix++) {
        tasks[ix].group = 0;
    }
    tasks[3].rework_to = 0;
    struct sched_group_spec group = {NULL, 0};
    struct sched_need needs[] = {{1, 0, SCHED_ON_DONE},
                                 {2, 0, SCHED_ON_DONE},
                                 {3, 1, SCHED_ON_DONE},
                                 {3, 2, SCHED_ON_DONE}};
    struct sched_addition addition = {
        .run = f.run,
        .groups = &group,
        .group_count = 1,
        .tasks = tasks,
        .task_count = 4,
        .needs = needs,
        .need_count = 4,
    };
    struct sched_rejection rejection;
    assert_int_equal(sched_add(f.sched, 0, &addition, &rejection), ERR_OK);
    assert_string_equal(fixture_run_pass(&f), "#0");
    fixture_release(&f);
}

static void a_task_may_join_a_group_that_is_open(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(3), fixture_max(1)};
    limits[1].hold_group = true;
    fixture_run(&f, SCHED_RANK, limits, 2);
    f.spec.group = fixture_group(&f, 0, 0);
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_task(&f, "b", "");
    f.spec.group = ID_NONE;
    fixture_task(&f, "c", "");
    assert_string_equal(fixture_run_pass(&f), "b");
    fixture_done(&f, "a b");
    assert_string_equal(fixture_run_pass(&f), "c");
    fixture_release(&f);
}

static void work_added_to_a_quiet_run_wakes_it(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    (void)fixture_run_pass(&f);
    assert_int_equal(f.quiet, 1);
    fixture_pass(&f, MINUTE);
    fixture_task(&f, "a", "");
    assert_true(fixture_get(&f, "a").ready_ns == MINUTE);
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_release(&f);
}

static void a_hundred_thousand_needs_deep_is_no_recursion(void **state)
{
    (void)state;
    enum { DEEP = 100000 };
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    struct sched_task_spec *tasks = mem_zalloc(DEEP, sizeof(tasks[0]));
    struct sched_need *needs = mem_zalloc(DEEP, sizeof(needs[0]));
    f.spec.failure.on_failure = SCHED_SKIP;
    for (uint32_t ix = 0; ix < DEEP; ix++) {
        tasks[ix] = f.spec;
        needs[ix] = (struct sched_need){ix + 1, ix, SCHED_ON_DONE};
    }
    struct sched_addition addition = {
        .run = f.run,
        .tasks = tasks,
        .task_count = DEEP,
        .needs = needs,
        .need_count = DEEP - 1,
    };
    struct sched_rejection rejection;
    assert_int_equal(sched_add(f.sched, 0, &addition, &rejection), ERR_OK);
    mem_free(tasks);
    mem_free(needs);
    assert_string_equal(fixture_run_pass(&f), "#0");
    assert_true(sched_task(f.sched, (struct task_id){0}).rank_ns ==
                DEEP * MINUTE);
    fixture_end_id(&f, (struct task_id){0}, OUTCOME_FAILED);
    (void)fixture_run_pass(&f);
    assert_int_equal(sched_run(f.sched, f.run).counts[TASK_SKIPPED], DEEP - 1);
    fixture_release(&f);
}

static void behind_two_given_up_it_is_skipped_once(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 3);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "");
    fixture_order(&f, EVENT_CANCEL, "a");
    fixture_order(&f, EVENT_SKIP, "b");
    fixture_task(&f, "x", "a b");
    assert_int_equal(fixture_state(&f, "x"), TASK_SKIPPED);
    assert_string_equal(fixture_run_pass(&f), "");
    fixture_release(&f);
}

static void rework_may_meet_a_task_on_two_ways(void **state)
{
    (void)state;
    static const char *const orders[] = {"p q", "q p"};
    for (uint32_t ix = 0; ix < 2; ix++) {
        struct fixture f;
        fixture_init(&f);
        fixture_cap(&f, 2);
        f.spec.group = fixture_group(&f, 0, 0);
        struct task_id to = fixture_task(&f, "to", "");
        fixture_task(&f, "q", "to");
        fixture_task(&f, "p", "q");
        f.spec.rework_to = to.v;
        f.failure.rework_max = 1;
        fixture_task(&f, "end", orders[ix]);
        assert_string_equal(fixture_run_pass(&f), "to");
        fixture_done(&f, "to");
        assert_string_equal(fixture_run_pass(&f), "q");
        fixture_done(&f, "q");
        assert_string_equal(fixture_run_pass(&f), "p");
        fixture_done(&f, "p");
        assert_string_equal(fixture_run_pass(&f), "end");
        fixture_end(&f, "end", OUTCOME_CHANGES);
        assert_string_equal(fixture_run_pass(&f), "to");
        assert_int_equal(fixture_state(&f, "p"), TASK_WAITING);
        assert_int_equal(fixture_state(&f, "q"), TASK_WAITING);
        fixture_release(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_tasks_get_the_next_numbers),
        cmocka_unit_test(an_addition_may_be_empty),
        cmocka_unit_test(tasks_of_one_addition_may_need_each_other),
        cmocka_unit_test(a_ready_task_that_gains_a_need_waits),
        cmocka_unit_test(the_same_need_twice_is_harmless),
        cmocka_unit_test(behind_a_done_task_it_is_ready),
        cmocka_unit_test(behind_a_revoked_task_it_waits),
        cmocka_unit_test(behind_a_running_task_it_waits),
        cmocka_unit_test(behind_a_parked_task_it_waits),
        cmocka_unit_test(behind_what_was_given_up_it_is_skipped),
        cmocka_unit_test(behind_an_optional_one_given_up_it_is_ready),
        cmocka_unit_test(an_old_task_that_gains_a_dead_need_is_skipped),
        cmocka_unit_test(too_many_tasks_are_refused),
        cmocka_unit_test(a_need_that_is_not_there_is_refused),
        cmocka_unit_test(a_cycle_is_refused_and_named),
        cmocka_unit_test(one_in_flight_cannot_gain_a_need),
        cmocka_unit_test(one_that_ended_cannot_gain_a_need),
        cmocka_unit_test(another_run_is_out_of_bounds),
        cmocka_unit_test(rework_must_go_back_inside_the_group),
        cmocka_unit_test(rework_may_go_back_over_several_ways),
        cmocka_unit_test(a_task_may_join_a_group_that_is_open),
        cmocka_unit_test(work_added_to_a_quiet_run_wakes_it),
        cmocka_unit_test(a_hundred_thousand_needs_deep_is_no_recursion),
        cmocka_unit_test(behind_two_given_up_it_is_skipped_once),
        cmocka_unit_test(rework_may_meet_a_task_on_two_ways),
    };
    return cmocka_run_group_tests_name("sched: add", tests, NULL, NULL);
}
