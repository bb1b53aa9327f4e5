/* SPDX-License-Identifier: MIT */
/*
 * Schedules of small models against all that there are: every list is tried,
 * and what the schemes, justification and the search come to is compared.
 */
#include "base/mem.h"
#include "base/rng.h"
#include "core/lookahead/search.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { TASKS = 7, LANES = 3, CASES = 150, BUSY = 2 };

struct work {
    struct lookahead_model model;
    struct lookahead_search search;
    uint64_t units[TASKS][LANES];
    uint64_t pool[LANES];
    uint64_t busy[BUSY][LANES];
    int64_t start_ns[TASKS];
};

static uint64_t packed(const uint64_t *units)
{
    return units[0] | units[1] << 16 | units[2] << 32;
}

static void draw(struct work *w, struct rng *rng)
{
    struct lookahead_model *model = &w->model;
    lookahead_model_reserve(model, TASKS, TASKS * TASKS, BUSY);
    lookahead_search_reserve(&w->search, TASKS, BUSY);
    model->count = 3 + rng_below(rng, TASKS - 2);
    model->words = 1;
    for (uint32_t lane = 0; lane < LANES; lane++) {
        w->pool[lane] = 2 + rng_below(rng, 5);
    }
    model->pool[0] = packed(w->pool);
    uint32_t edges = 0;
    for (uint32_t ix = 0; ix < model->count; ix++) {
        model->task[ix] = ix;
        model->group[ix] = ix / 2;
        model->length_ns[ix] = 1 + rng_below(rng, 9);
        model->release_ns[ix] = rng_below(rng, 4) == 0 ? rng_below(rng, 6) : 0;
        for (uint32_t lane = 0; lane < LANES; lane++) {
            w->units[ix][lane] = rng_below(rng, (uint32_t)w->pool[lane] + 1);
        }
        model->units[ix] = packed(w->units[ix]);
        model->first_need[ix] = edges;
        for (uint32_t need = 0; need < ix; need++) {
            if (rng_below(rng, 4) == 0) {
                model->needs[edges++] = need;
            }
        }
    }
    model->first_need[model->count] = edges;
    model->group_count = (model->count + 1) / 2;
    model->busy_count = rng_below(rng, BUSY + 1);
    for (uint32_t ix = 0; ix < model->busy_count; ix++) {
        for (uint32_t lane = 0; lane < LANES; lane++) {
            w->busy[ix][lane] = rng_below(rng, (uint32_t)w->pool[lane] / 2 + 1);
        }
        model->busy[ix] = (struct lookahead_busy){
            .until_ns = 1 + rng_below(rng, 6),
            .units = {packed(w->busy[ix])},
        };
    }
    lookahead_model_finish(model);
    w->search.sgs.model = model;
}

static void release(struct work *w)
{
    lookahead_model_release(&w->model);
    lookahead_search_release(&w->search);
}

/* Units of a thing in use at a time, by the schedule and what is in flight. */
static uint64_t used(const struct work *w, uint32_t lane, int64_t at_ns)
{
    const struct lookahead_model *model = &w->model;
    uint64_t units = 0;
    for (uint32_t ix = 0; ix < model->count; ix++) {
        if (w->start_ns[ix] <= at_ns &&
            at_ns < w->start_ns[ix] + model->length_ns[ix]) {
            units += w->units[ix][lane];
        }
    }
    for (uint32_t ix = 0; ix < model->busy_count; ix++) {
        units += at_ns < model->busy[ix].until_ns ? w->busy[ix][lane] : 0;
    }
    return units;
}

/* Check a schedule second by second; return when it ends. */
static int64_t checked(const struct work *w)
{
    const struct lookahead_model *model = &w->model;
    int64_t end_ns = 0;
    for (uint32_t ix = 0; ix < model->count; ix++) {
        assert_true(w->start_ns[ix] >= model->release_ns[ix]);
        for (uint32_t edge = model->first_need[ix];
             edge < model->first_need[ix + 1];
             edge++) {
            uint32_t need = model->needs[edge];
            assert_true(w->start_ns[ix] >=
                        w->start_ns[need] + model->length_ns[need]);
        }
        int64_t until_ns = w->start_ns[ix] + model->length_ns[ix];
        end_ns = until_ns > end_ns ? until_ns : end_ns;
    }
    for (int64_t at_ns = 0; at_ns < end_ns; at_ns++) {
        for (uint32_t lane = 0; lane < LANES; lane++) {
            assert_true(used(w, lane, at_ns) <= w->pool[lane]);
        }
    }
    return end_ns;
}

/* Whether each task comes after what it needs. */
static bool is_list(const struct work *w, const uint32_t *list)
{
    uint32_t place[TASKS];
    for (uint32_t ix = 0; ix < w->model.count; ix++) {
        place[list[ix]] = ix;
    }
    bool ok = true;
    for (uint32_t ix = 0; ix < w->model.count; ix++) {
        for (uint32_t edge = w->model.first_need[ix];
             edge < w->model.first_need[ix + 1];
             edge++) {
            ok = ok && place[w->model.needs[edge]] < place[ix];
        }
    }
    return ok;
}

/* The next list in the order of a dictionary; false after the last. */
static bool next_list(uint32_t *list, uint32_t count)
{
    uint32_t at = count - 1;
    while (at > 0 && list[at - 1] > list[at]) {
        at--;
    }
    if (at == 0) {
        return false;
    }
    uint32_t with = count - 1;
    while (list[with] < list[at - 1]) {
        with--;
    }
    uint32_t kept = list[at - 1];
    list[at - 1] = list[with];
    list[with] = kept;
    for (uint32_t a = at, b = count - 1; a < b; a++, b--) {
        kept = list[a];
        list[a] = list[b];
        list[b] = kept;
    }
    return true;
}

typedef void (*list_fn)(struct work *w, const uint32_t *list, int64_t *best_ns);

/* Call `fn` with every list; the shortest schedule of them all. */
static int64_t each_list(struct work *w, list_fn fn)
{
    uint32_t list[TASKS];
    for (uint32_t ix = 0; ix < w->model.count; ix++) {
        list[ix] = ix;
    }
    int64_t best_ns = INT64_MAX;
    do {
        if (is_list(w, list)) {
            fn(w, list, &best_ns);
        }
    } while (next_list(list, w->model.count));
    return best_ns;
}

static void try_serial(struct work *w, const uint32_t *list, int64_t *best_ns)
{
    struct lookahead_sgs *sgs = &w->search.sgs;
    int64_t end_ns = lookahead_sgs_serial(sgs, list, w->start_ns);
    assert_int_equal(end_ns, checked(w));
    assert_true(end_ns >= w->model.bound_ns);
    *best_ns = end_ns < *best_ns ? end_ns : *best_ns;
}

/* Whether a task could start then, beside those before it in number. */
static bool could_start(const struct work *w, uint32_t ix, int64_t at_ns)
{
    const struct lookahead_model *model = &w->model;
    bool fits = at_ns >= model->release_ns[ix];
    for (uint32_t edge = model->first_need[ix];
         edge < model->first_need[ix + 1];
         edge++) {
        uint32_t need = model->needs[edge];
        fits = fits && at_ns >= w->start_ns[need] + model->length_ns[need];
    }
    for (int64_t t = at_ns; t < at_ns + model->length_ns[ix]; t++) {
        for (uint32_t lane = 0; lane < LANES; lane++) {
            uint64_t units = used(w, lane, t) + w->units[ix][lane];
            fits = fits && units <= w->pool[lane];
        }
    }
    return fits;
}

static void serial_starts_each_as_early_as_it_can(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 1);
    for (uint32_t n = 0; n < CASES; n++) {
        struct work w = {0};
        draw(&w, &rng);
        uint32_t list[TASKS];
        for (uint32_t ix = 0; ix < w.model.count; ix++) {
            list[ix] = ix;
        }
        (void)lookahead_sgs_serial(&w.search.sgs, list, w.start_ns);
        (void)checked(&w);
        while (w.model.count > 0) {
            /* The last one: those that came before it are all there is. */
            uint32_t ix = --w.model.count;
            for (int64_t at_ns = 0; at_ns < w.start_ns[ix]; at_ns++) {
                assert_false(could_start(&w, ix, at_ns));
            }
            assert_true(could_start(&w, ix, w.start_ns[ix]));
        }
        release(&w);
    }
}

static void
try_justified(struct work *w, const uint32_t *list, int64_t *best_ns)
{
    struct lookahead_sgs *sgs = &w->search.sgs;
    int64_t before_ns = lookahead_sgs_serial(sgs, list, w->start_ns);
    int64_t end_ns = lookahead_sgs_justify(sgs, w->start_ns, before_ns);
    assert_int_equal(end_ns, checked(w));
    assert_true(end_ns <= before_ns);
    *best_ns = end_ns < *best_ns ? end_ns : *best_ns;
}

static void justification_never_ends_later(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 2);
    for (uint32_t n = 0; n < CASES; n++) {
        struct work w = {0};
        draw(&w, &rng);
        int64_t shortest_ns = each_list(&w, try_serial);
        assert_int_equal(each_list(&w, try_justified), shortest_ns);
        release(&w);
    }
}

static void try_parallel(struct work *w, const uint32_t *list, int64_t *best_ns)
{
    struct lookahead_sgs *sgs = &w->search.sgs;
    int64_t end_ns = lookahead_sgs_parallel(sgs, list, w->start_ns);
    assert_int_equal(end_ns, checked(w));
    *best_ns = end_ns < *best_ns ? end_ns : *best_ns;
}

/* Kolisch 1996: what wastes nothing at any moment may miss the shortest. */
static void parallel_schedules_are_serial_ones_too(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 3);
    uint32_t missed = 0;
    for (uint32_t n = 0; n < CASES; n++) {
        struct work w = {0};
        draw(&w, &rng);
        int64_t shortest_ns = each_list(&w, try_serial);
        int64_t parallel_ns = each_list(&w, try_parallel);
        assert_true(parallel_ns >= shortest_ns);
        missed += parallel_ns > shortest_ns ? 1 : 0;
        release(&w);
    }
    assert_true(missed > 0);
}

static int64_t searched(struct work *w, uint64_t seed, uint32_t *list)
{
    const struct lookahead_search_spec spec = {.seed = seed, .budget = 400};
    lookahead_search_begin(&w->search, &w->model, &spec);
    while (lookahead_search_step(&w->search)) {
    }
    int64_t end_ns;
    const uint32_t *best = lookahead_search_list(&w->search, &end_ns);
    memcpy(list, best, w->model.count * sizeof(list[0]));
    return end_ns;
}

static void search_finds_the_shortest(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 4);
    uint32_t found = 0;
    for (uint32_t n = 0; n < CASES; n++) {
        struct work w = {0};
        draw(&w, &rng);
        uint32_t list[TASKS];
        int64_t shortest_ns = each_list(&w, try_serial);
        int64_t end_ns = searched(&w, 1, list);
        assert_true(end_ns >= shortest_ns);
        assert_true(is_list(&w, list));
        found += end_ns == shortest_ns ? 1 : 0;
        /* The list gives the schedule again. */
        struct lookahead_sgs *sgs = &w.search.sgs;
        assert_true(lookahead_sgs_serial(sgs, list, w.start_ns) <= end_ns);
        release(&w);
    }
    assert_true(found + 3 >= CASES); /* it is chance, after all */
}

static void equal_seeds_give_equal_lists(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 5);
    for (uint32_t n = 0; n < CASES; n++) {
        struct work w = {0};
        draw(&w, &rng);
        uint32_t one[TASKS];
        uint32_t two[TASKS];
        int64_t end_ns = searched(&w, n, one);
        assert_int_equal(searched(&w, n, two), end_ns);
        assert_memory_equal(one, two, w.model.count * sizeof(one[0]));
        release(&w);
    }
}

static void sorting_is_stable(void **state)
{
    (void)state;
    enum { COUNT = 300 };
    struct lookahead_model model = {.count = COUNT};
    struct lookahead_sgs sgs = {.model = &model};
    lookahead_sgs_reserve(&sgs, COUNT, 0);
    int64_t keys[COUNT];
    uint32_t list[COUNT];
    struct rng rng;
    rng_init(&rng, 6);
    for (uint32_t ix = 0; ix < COUNT; ix++) {
        keys[ix] = rng_below(&rng, 20);
    }
    lookahead_sgs_list(&sgs, keys, list);
    for (uint32_t ix = 1; ix < COUNT; ix++) {
        int64_t before = keys[list[ix - 1]];
        assert_true(before < keys[list[ix]] ||
                    (before == keys[list[ix]] && list[ix - 1] < list[ix]));
    }
    lookahead_sgs_release(&sgs);
}

/* Four tasks of ten units of time; two can run at once, or follow each other.
 */
static void the_bound_is_the_longest_of_path_and_work(void **state)
{
    (void)state;
    for (uint32_t chained = 0; chained < 2; chained++) {
        struct work w = {0};
        struct lookahead_model *model = &w.model;
        lookahead_model_reserve(model, 4, 3, 1);
        model->count = 4;
        model->words = 1;
        model->pool[0] = 2;
        uint32_t edges = 0;
        for (uint32_t ix = 0; ix < 4; ix++) {
            model->task[ix] = ix;
            model->group[ix] = 0;
            model->length_ns[ix] = 10;
            model->release_ns[ix] = ix == 0 ? 3 : 0;
            model->units[ix] = ix == 0 ? 2 : 1;
            model->first_need[ix] = edges;
            if (chained > 0 && ix > 0) {
                model->needs[edges++] = ix - 1;
            }
        }
        model->first_need[4] = edges;
        model->group_count = 1;
        model->busy_count = 1;
        model->busy[0] = (struct lookahead_busy){.until_ns = 6, .units = {1}};
        lookahead_model_finish(model);
        assert_int_equal(model->least[0], 1);
        assert_int_equal(model->bound_ns, chained > 0 ? 43 : 28);
        for (uint32_t ix = 0; ix < 4; ix++) {
            int64_t tail_ns = chained > 0 ? 40 - 10 * ix : 10;
            assert_int_equal(model->tail_ns[ix], tail_ns);
            uint32_t dependents = chained > 0 && ix < 3 ? 1 : 0;
            assert_int_equal(model->first_dependent[ix + 1],
                             model->first_dependent[ix] + dependents);
        }
        lookahead_model_release(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bound_is_the_longest_of_path_and_work),
        cmocka_unit_test(serial_starts_each_as_early_as_it_can),
        cmocka_unit_test(justification_never_ends_later),
        cmocka_unit_test(parallel_schedules_are_serial_ones_too),
        cmocka_unit_test(search_finds_the_shortest),
        cmocka_unit_test(equal_seeds_give_equal_lists),
        cmocka_unit_test(sorting_is_stable),
    };
    return cmocka_run_group_tests_name("lookahead_sgs", tests, NULL, NULL);
}
