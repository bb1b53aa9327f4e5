/* SPDX-License-Identifier: MIT */
/*
 * Misuse of the scheduler's interface: each call that breaks a promise of the
 * caller stops the program and prints the broken condition.
 */
#include "tests/support/death.h"
#include "tests/unit/sched_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Add one task with the fixture's `spec`. */
static void add_task(void *ctx)
{
    struct fixture *f = ctx;
    const struct sched_addition addition = {
        .run = f->run,
        .tasks = &f->spec,
        .task_count = 1,
    };
    struct sched_rejection rejection;
    enum err err = sched_add(f->sched, f->now_ns, &addition, &rejection);
    (void)err;
}

static void add_class(struct fixture *f, struct sched_class_spec spec)
{
    (void)sched_add_class(f->sched, &spec);
}

static void add_provider(struct fixture *f, struct provider_spec spec)
{
    (void)sched_add_provider(f->sched, &spec);
}

static void tick_in_the_past(void *ctx)
{
    struct fixture *f = ctx;
    const struct sched_event event = {.now_ns = f->now_ns - 1};
    enum err err = sched_apply(f->sched, &event);
    (void)err;
}

static void provider_without_backoff(void *ctx)
{
    add_provider(ctx, (struct provider_spec){.probe_ns = 1});
}

static void circuit_without_probes(void *ctx)
{
    struct provider_spec spec = {.backoff_ns = 1, .circuit_failures = 1};
    add_provider(ctx, spec);
}

static void class_of_empty_batches(void *ctx)
{
    add_class(ctx, (struct sched_class_spec){.max_wait_ns = SCHED_NEVER});
}

static void class_of_negative_wait(void *ctx)
{
    struct sched_class_spec spec = {.batch = 1, .max_wait_ns = -1};
    add_class(ctx, spec);
}

static void run_of_unknown_policy(void *ctx)
{
    struct fixture *f = ctx;
    struct sched_run_spec spec = {
        .policy = (enum sched_policy)(SCHED_LOOKAHEAD + 1),
    };
    struct limit_id first;
    (void)sched_add_run(f->sched, &spec, &first);
}

static void resource_for_each_repository(void *ctx)
{
    struct fixture *f = ctx;
    struct limit_spec spec = fixture_per(1, FIXTURE_REPO);
    spec.resource = true;
    (void)sched_add_limit(f->sched, f->run, &spec);
}

static void restore_after_work(void *ctx)
{
    struct fixture *f = ctx;
    sched_restore(f->sched, f->now_ns, 100);
}

static void restore_a_run_in_flight(void *ctx)
{
    struct fixture *f = ctx;
    struct sched_run_record record = sched_run_record(f->sched, f->run);
    sched_restore_run(f->sched, f->run, &record);
}

static void cut_an_unknown_run(void *ctx)
{
    struct fixture *f = ctx;
    sched_restore_cut(f->sched, (struct run_id){f->run_count});
}

static void look_at_an_unknown_task(void *ctx)
{
    struct fixture *f = ctx;
    struct task_id task = {sched_task_count(f->sched)};
    (void)sched_task(f->sched, task);
}

static void tasks_must_name_what_exists(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    const struct sched_task_spec good = f.spec;
    f.spec.class_id.v = 99;
    death_expect(add_task, &f, "spec->class_id.v < sched->class_count");
    f.spec = good;
    f.spec.provider.v = 99;
    death_expect(add_task, &f, "spec->provider.v < sched->provider_count");
    f.spec = good;
    f.spec.group = 99;
    death_expect(add_task, &f, "group < sched->group_count");
    f.spec = good;
    const struct sched_use use = {.limit = {99}, .units = 1};
    f.spec.uses = &use;
    f.spec.use_count = 1;
    death_expect(add_task, &f, "limit < sched->limits.limit_count");
    f.spec = good;
    f.spec.estimate_ns = -1;
    death_expect(add_task, &f, "spec->estimate_ns >= 0");
    f.spec = good;
    f.spec.failure.backoff_ns = -1;
    death_expect(add_task, &f, "spec->backoff_ns >= 0");
    f.spec = good;
    f.run.v = 99;
    death_expect(add_task, &f, "addition->run.v < sched->run_count");
    fixture_release(&f);
}

static void settings_must_be_possible(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    death_expect(provider_without_backoff, &f, "spec->backoff_ns > 0");
    death_expect(circuit_without_probes, &f, "spec->probe_ns > 0");
    death_expect(class_of_empty_batches, &f, "spec->batch > 0");
    death_expect(class_of_negative_wait, &f, "spec->max_wait_ns >= 0");
    death_expect(run_of_unknown_policy, &f, "spec->policy <=");
    death_expect(resource_for_each_repository, &f, "spec->per == ID_NONE");
    fixture_release(&f);
}

static void calls_must_come_in_order(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_pass(&f, SECOND);
    fixture_task(&f, "a", "");
    assert_string_equal(fixture_run_pass(&f), "a");
    death_expect(tick_in_the_past, &f, "now_ns >= sched->now_ns");
    death_expect(restore_after_work, &f, "sched->task_count == 0");
    death_expect(restore_a_run_in_flight, &f, "r->sessions == 0");
    death_expect(cut_an_unknown_run, &f, "run.v < sched->run_count");
    death_expect(look_at_an_unknown_task, &f, "task.v < sched->task_count");
    fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_must_name_what_exists),
        cmocka_unit_test(settings_must_be_possible),
        cmocka_unit_test(calls_must_come_in_order),
    };
    return cmocka_run_group_tests_name("sched: misuse", tests, NULL, NULL);
}
