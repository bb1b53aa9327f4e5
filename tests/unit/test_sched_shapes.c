/* SPDX-License-Identifier: MIT */
/*
 * Which pools tasks need, when many are added at once; and what is told apart
 * although its hash is the same, which needs a look at the internals.
 */
#include "core/sched_internal.h"

#include "base/macros.h"
#include "core/lookahead/ctx.h"
#include "tests/unit/sched_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Add tasks at once, called a, b, c ... */
static void
add_together(struct fixture *f, const struct sched_task_spec *specs, uint32_t n)
{
    struct sched_addition addition = {
        .run = f->run,
        .tasks = specs,
        .task_count = n,
    };
    struct sched_rejection rejection;
    assert_int_equal(sched_add(f->sched, f->now_ns, &addition, &rejection),
                     ERR_OK);
    for (uint32_t ix = 0; ix < n; ix++) {
        f->names[ix][0] = (char)('a' + ix);
    }
}

static void neighbours_can_have_other_attributes(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(9), fixture_per(1, FIXTURE_REPO)};
    fixture_run(&f, SCHED_RANK, limits, 2);
    fixture_attribute(&f, FIXTURE_REPO, 7);
    struct sched_task_spec specs[] = {f.spec, f.spec, f.spec};
    specs[2].attribute_count = 0; /* of the same array */
    add_together(&f, specs, 3);
    assert_string_equal(fixture_run_pass(&f), "a c");
    assert_int_equal(fixture_why(&f, "b").code, WHY_LIMIT);
    assert_int_equal(fixture_used(&f, 1), 1);
    fixture_release(&f);
}

static void neighbours_can_use_other_resources(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(9),
                                  fixture_max(1),
                                  fixture_max(1)};
    limits[1].resource = true;
    limits[2].resource = true;
    fixture_run(&f, SCHED_RANK, limits, 3);
    struct sched_use one = {f.limits[1], 1};
    struct sched_use two = {f.limits[2], 1};
    struct sched_task_spec specs[] = {f.spec, f.spec, f.spec, f.spec};
    specs[0].uses = &one;
    specs[0].use_count = 1;
    specs[1].uses = &one; /* none of them */
    specs[2].uses = &two;
    specs[2].use_count = 1;
    specs[3] = specs[2];
    add_together(&f, specs, 4);
    assert_string_equal(fixture_run_pass(&f), "a b c");
    assert_int_equal(fixture_why(&f, "d").limit.v, f.limits[2].v);
    fixture_release(&f);
}

/* What comes last may start in a stopped run, its neighbour may not. */
static void the_neighbour_can_be_one_that_comes_last(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    struct sched_task_spec specs[] = {f.spec, f.spec, f.spec};
    specs[0].failure.on_failure = SCHED_STOP;
    specs[2].last = true;
    add_together(&f, specs, 3);
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_end(&f, "a", OUTCOME_FAILED);
    assert_string_equal(fixture_run_pass(&f), "c");
    assert_int_equal(fixture_why(&f, "b").code, WHY_HALTED);
    fixture_release(&f);
}

static void the_neighbour_can_be_in_a_group_of_another_kind(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec limits[] = {fixture_max(9), fixture_per(1, FIXTURE_REPO)};
    limits[1].hold_group = true;
    fixture_run(&f, SCHED_FIFO, limits, 2);
    struct sched_task_spec specs[] = {f.spec, f.spec, f.spec};
    specs[0].group = fixture_group(&f, FIXTURE_REPO, 1);
    specs[1].group = fixture_group(&f, FIXTURE_REPO, 2);
    specs[2].group = fixture_group(&f, FIXTURE_REPO, 2);
    add_together(&f, specs, 3);
    assert_string_equal(fixture_run_pass(&f), "a b");
    assert_int_equal(fixture_why(&f, "c").code, WHY_LIMIT);
    fixture_release(&f);
}

/* ---- equal hashes ---- */

/* A run whose groups have kinds of their own, with one task. */
static struct sched *open(struct fixture *f)
{
    fixture_init(f);
    struct limit_spec limits[] = {fixture_max(9), fixture_per(1, FIXTURE_REPO)};
    limits[1].hold_group = true;
    fixture_run(f, SCHED_RANK, limits, 2);
    fixture_task(f, "a", "");
    return f->sched;
}

/* A field of the shape of the first task. */
static uint32_t *field_of(struct shape *shape, uint32_t which)
{
    uint32_t *fields[] = {
        &shape->class_ix,
        &shape->provider,
        &shape->run,
        &shape->batch_key,
        &shape->needs,
        &shape->group_needs,
        &shape->background_needs,
    };
    return which < ARRAY_COUNT(fields) ? fields[which] : NULL;
}

static void shapes_with_one_hash_are_told_apart(void **state)
{
    (void)state;
    bool more = true;
    for (uint32_t which = 0; more; which++) {
        struct fixture f;
        struct sched *sched = open(&f);
        uint32_t *field = field_of(&sched->shapes[0], which);
        more = field != NULL;
        if (more) {
            (*field)++;
            fixture_task(&f, "b", "");
            (*field_of(&sched->shapes[0], which))--;
            assert_int_equal(sched->shape_count, 2);
            assert_ptr_equal(sched_shape_of(sched, 1), &sched->shapes[1]);
            fixture_task(&f, "c", ""); /* the newer of the two */
            assert_int_equal(sched->shape_count, 2);
            assert_string_equal(fixture_run_pass(&f), "a b c");
        }
        fixture_release(&f);
    }
}

static void sets_with_one_hash_are_told_apart(void **state)
{
    (void)state;
    struct fixture f;
    struct sched *sched = open(&f);
    uint32_t set = sched_shape_of(sched, 0)->needs;
    assert_true(sched->sets[set].count > 0);
    uint32_t sets = sched->set_count;
    sched->needs[sched->sets[set].first].units++;
    fixture_task(&f, "b", "");
    sched->needs[sched->sets[set].first].units--;
    assert_int_equal(sched->set_count, sets + 1);
    assert_int_equal(sched_shape_of(sched, 1)->needs, sets);
    sched->sets[sets].count--; /* the newer one is found first */
    fixture_task(&f, "c", "");
    sched->sets[sets].count++;
    assert_int_equal(sched->set_count, sets + 1);
    assert_int_equal(sched_shape_of(sched, 2)->needs, set);
    assert_string_equal(fixture_run_pass(&f), "a b c");
    fixture_release(&f);
}

static void kinds_with_one_hash_are_told_apart(void **state)
{
    (void)state;
    for (uint32_t which = 0; which < 2; which++) {
        struct fixture f;
        struct sched *sched = open(&f);
        uint32_t kind = sched->tasks[0].solo.group.kind;
        uint32_t kinds = sched->kind_count;
        uint32_t *run = &sched->kinds[kind].run;
        uint32_t *needs = &sched->kinds[kind].needs;
        (*(which == 0 ? run : needs))++;
        fixture_task(&f, "b", "");
        run = &sched->kinds[kind].run;
        needs = &sched->kinds[kind].needs;
        (*(which == 0 ? run : needs))--;
        assert_int_equal(sched->kind_count, kinds + 1);
        assert_int_equal(sched->tasks[1].solo.group.kind, kinds);
        assert_string_equal(fixture_run_pass(&f), "a b");
        fixture_release(&f);
    }
}

static void marks_start_again_when_all_are_used(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "a", "");
    fixture_task(&f, "b", "a");
    fixture_task(&f, "c", "b");
    assert_string_equal(fixture_run_pass(&f), "a");
    fixture_end(&f, "a", OUTCOME_BLOCKED);
    f.sched->mark = UINT16_MAX;
    for (uint32_t task = 0; task < 3; task++) {
        f.sched->marks[task] = 1; /* of long ago */
    }
    struct why why = fixture_why(&f, "c");
    assert_int_equal(f.sched->mark, 1);
    assert_int_equal(why.code, WHY_BLOCKED);
    assert_int_equal(why.task.v, fixture_id(&f, "a").v);
    fixture_release(&f);
}

/* One place more in an array, and it is counted. */
static void all_memory_is_counted(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_cap(&f, 1);
    fixture_task(&f, "a", "");
    struct sched *sched = f.sched;
    const size_t slot = sizeof(sched->bins_by_key.slots[0]);
    const struct {
        uint32_t *capacity;
        size_t bytes;
    } parts[] = {
        {&sched->group_capacity,
         sizeof(struct group) + sizeof(struct group_more)},
        {&sched->kind_capacity, sizeof(struct group_kind)},
        {&sched->scope_capacity, sizeof(struct scope)},
        {&sched->bin_capacity, sizeof(struct bin)},
        {&sched->shape_capacity, sizeof(struct shape)},
        {&sched->queue_capacity,
         sizeof(struct queue) + sizeof(struct pheap_link)},
        {&sched->set_capacity, sizeof(struct need_set)},
        {&sched->need_capacity, sizeof(struct pool_need)},
        {&sched->failure_capacity, sizeof(struct sched_failure_spec)},
        {&sched->guard_count, sizeof(struct guard)},
        {&sched->limits.limit_capacity, sizeof(struct limit)},
        {&sched->limits.pool_capacity,
         sizeof(struct pool) + sizeof(struct pheap_link)},
        {&sched->limits.counter_capacity, sizeof(struct counter)},
        {&sched->limits.pools_by_key.slot_count, slot},
        {&sched->limits.counters_by_key.slot_count, slot},
        {&sched->bins_by_key.slot_count, slot},
        {&sched->shapes_by_hash.slot_count, slot},
        {&sched->sets_by_hash.slot_count, slot},
        {&sched->kinds_by_hash.slot_count, slot},
        {&sched->graph.node_capacity, sizeof(struct graph_node)},
        {&sched->graph.edge_capacity, sizeof(struct graph_edge)},
    };
    size_t before = sched_bytes(sched);
    assert_true(before > sizeof(*sched));
    for (size_t ix = 0; ix < ARRAY_COUNT(parts); ix++) {
        (*parts[ix].capacity)++;
        assert_int_equal(sched_bytes(sched) - before, parts[ix].bytes);
        (*parts[ix].capacity)--;
    }
    fixture_release(&f);
}

/* Tasks are listed by their scopes once one of them comes last. */
static void the_memory_of_scopes_is_counted(void **state)
{
    (void)state;
    size_t bytes[2];
    for (uint32_t ix = 0; ix < 2; ix++) {
        struct fixture f;
        fixture_init(&f);
        fixture_cap(&f, 1);
        struct sched_task_spec specs[] = {f.spec, f.spec};
        specs[1].last = ix == 1;
        add_together(&f, specs, 2);
        bytes[ix] = sched_bytes(f.sched);
        if (ix == 1) {
            assert_true(bytes[1] >=
                        bytes[0] + f.sched->task_capacity *
                                       sizeof(f.sched->scope_links[0]));
        }
        fixture_release(&f);
    }
}

static void all_memory_of_schedules_is_counted(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec cap = fixture_max(1);
    fixture_run(&f, SCHED_LOOKAHEAD, &cap, 1);
    fixture_task(&f, "a", "");
    struct lookahead *look = f.sched->lookahead;
    struct lookahead_rollout *rollout = &look->ctx->rollout;
    const struct {
        uint32_t *capacity;
        size_t bytes;
    } parts[] = {
        {&look->capacity, 3 * sizeof(uint32_t) + sizeof(int64_t)},
        {&rollout->group_capacity, sizeof(int64_t)},
        {&rollout->sched.bin_capacity, sizeof(struct bin)},
    };
    size_t before = sched_bytes(f.sched);
    for (size_t ix = 0; ix < ARRAY_COUNT(parts); ix++) {
        (*parts[ix].capacity)++;
        assert_int_equal(sched_bytes(f.sched) - before, parts[ix].bytes);
        (*parts[ix].capacity)--;
    }
    fixture_release(&f);
}

static void a_model_has_the_sessions_of_its_run(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct limit_spec cap = fixture_max(1);
    for (uint32_t run = 0; run < 2; run++) {
        static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
        fixture_run(&f, SCHED_LOOKAHEAD, &cap, 1);
        for (uint32_t ix = 0; ix < 3; ix++) {
            f.spec.estimate_ns = (1 + run) * MINUTE;
            fixture_task(&f, names[3 * run + ix], "");
        }
    }
    assert_string_equal(fixture_run_pass(&f), "d a");
    fixture_pass(&f, 10 * SECOND);
    struct lookahead_ctx *ctx = f.sched->lookahead->ctx;
    struct lookahead_model *model = &ctx->model;
    for (uint32_t run = 0; run < 2; run++) {
        assert_true(lookahead_outline(&ctx->outline, model, f.sched, run));
        assert_int_equal(model->count, 2);
        assert_int_equal(model->task[0], 3 * run + 1);
        assert_int_equal(model->task[1], 3 * run + 2);
        assert_int_equal(model->busy_count, 1);
        assert_int_equal(model->busy[0].until_ns,
                         (1 + run) * MINUTE - 10 * SECOND);
        assert_int_equal(model->busy[0].units[0], 1); /* of the cap */
        assert_int_equal(model->units[0], 1);
        assert_int_equal(model->pool[0], 1);
        assert_int_equal(model->length_ns[0], (1 + run) * MINUTE);
    }
    fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_can_have_other_attributes),
        cmocka_unit_test(neighbours_can_use_other_resources),
        cmocka_unit_test(the_neighbour_can_be_one_that_comes_last),
        cmocka_unit_test(the_neighbour_can_be_in_a_group_of_another_kind),
        cmocka_unit_test(shapes_with_one_hash_are_told_apart),
        cmocka_unit_test(sets_with_one_hash_are_told_apart),
        cmocka_unit_test(kinds_with_one_hash_are_told_apart),
        cmocka_unit_test(marks_start_again_when_all_are_used),
        cmocka_unit_test(all_memory_is_counted),
        cmocka_unit_test(the_memory_of_scopes_is_counted),
        cmocka_unit_test(all_memory_of_schedules_is_counted),
        cmocka_unit_test(a_model_has_the_sessions_of_its_run),
    };
    return cmocka_run_group_tests_name("sched: shapes", tests, NULL, NULL);
}
