/* SPDX-License-Identifier: MIT */
/*
 * What a simulation measures, and how long sessions last. What a script does
 * to it is in test_sim_script.c.
 */
#include "sim/sim.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "tests/unit/sim_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void assert_seconds(int64_t got_ns, double wanted_s)
{
    assert_true((double)got_ns / 1e9 >= wanted_s - 1e-6);
    assert_true((double)got_ns / 1e9 <= wanted_s + 1e-6);
}

/* Tasks of one class and length, without needs. */
static void
many(struct strbuf *out, const char *class, uint32_t count, uint32_t seconds)
{
    for (uint32_t ix = 0; ix < count; ix++) {
        strbuf_addf(out,
                    "  - {id: %s%u, class: %s, run: x, estimate: %us}\n",
                    class,
                    ix,
                    class,
                    seconds);
    }
}

/* ---- makespan and use ---- */

/* Two slots: a and b 0-10, c 10-20. */
static void the_makespan_is_the_end_of_the_last_session(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f,
                     "limits: {sessions: 2}\n"
                     "tasks:\n"
                     "  - {id: a, run: x, estimate: 10m}\n"
                     "  - {id: b, run: x, estimate: 10m}\n"
                     "  - {id: c, run: x, estimate: 10m}\n");
    sim_fixture_run(&f);
    assert_int_equal(f.result->makespan_ns, 20 * MINUTE_NS);
    assert_int_equal(f.result->task_count, 3);
    assert_int_equal(f.result->session_count, 3);
    assert_int_equal(f.result->lane_count, 2);
    assert_int_equal(f.result->counts[TASK_DONE], 3);
    assert_int_equal(f.result->left_count, 0);
    assert_true(f.result->slot_use > 0.7499 && f.result->slot_use < 0.7501);
    sim_fixture_expect(&f, "a", (struct sim_expected){1, 0, 600, SIM_END_DONE});
    sim_fixture_expect(&f, "b", (struct sim_expected){1, 0, 600, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "c",
                       (struct sim_expected){1, 600, 1200, SIM_END_DONE});
    assert_int_equal(sim_fixture_span(&f, "a", 1)->lane, 0);
    assert_int_equal(sim_fixture_span(&f, "b", 1)->lane, 1);
    assert_int_equal(sim_fixture_span(&f, "c", 1)->lane, 0);
    sim_fixture_release(&f);
}

static void needs_are_waited_for(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f,
                     "limits: {sessions: 4}\n"
                     "tasks:\n"
                     "  - {id: d, run: x, estimate: 1m, needs: [b, c]}\n"
                     "  - {id: a, run: x, estimate: 2m}\n"
                     "  - {id: b, run: x, estimate: 3m, needs: [a]}\n"
                     "  - {id: c, run: x, estimate: 5m, needs: [a]}\n");
    sim_fixture_run(&f);
    sim_fixture_expect(&f, "a", (struct sim_expected){1, 0, 120, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "b",
                       (struct sim_expected){1, 120, 300, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "c",
                       (struct sim_expected){1, 120, 420, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "d",
                       (struct sim_expected){1, 420, 480, SIM_END_DONE});
    assert_int_equal(f.result->makespan_ns, 480 * SECOND_NS);
    assert_int_equal(sim_fixture_span(&f, "d", 1)->ready_ns, 420 * SECOND_NS);
    sim_fixture_release(&f);
}

static void without_an_estimate_a_session_lasts_ten_minutes(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, "tasks: [{id: a, run: x}]\n");
    sim_fixture_run(&f);
    assert_int_equal(f.result->makespan_ns, 10 * MINUTE_NS);
    sim_fixture_release(&f);
}

static void sessions_of_no_length_end_at_once(void **state)
{
    (void)state;
    struct sim_fixture f;
    struct strbuf text = {0};
    strbuf_adds(&text, "limits: {sessions: 1}\ntasks:\n");
    many(&text, "implement", 100, 0);
    sim_fixture_init(&f, strbuf_text(&text));
    sim_fixture_run(&f);
    assert_int_equal(f.result->makespan_ns, 0);
    assert_int_equal(f.result->counts[TASK_DONE], 100);
    assert_int_equal(f.result->session_count, 100);
    assert_int_equal(f.result->lane_count, 1);
    sim_fixture_release(&f);
    strbuf_release(&text);
}

/* A session takes the smallest free slot: b's, when b has ended. */
static void lanes_are_the_smallest_free_ones(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f,
                     "limits: {sessions: 4}\n"
                     "tasks:\n"
                     "  - {id: a, run: x, estimate: 9m}\n"
                     "  - {id: b, run: x, estimate: 2m}\n"
                     "  - {id: c, run: x, estimate: 9m}\n"
                     "  - {id: d, run: x, estimate: 1m}\n"
                     "  - {id: e, run: x, estimate: 9m, needs: [b]}\n"
                     "  - {id: f, run: x, estimate: 9m, needs: [b]}\n");
    sim_fixture_run(&f);
    assert_int_equal(sim_fixture_span(&f, "d", 1)->lane, 3);
    assert_int_equal(sim_fixture_span(&f, "e", 1)->lane, 1);
    assert_int_equal(sim_fixture_span(&f, "f", 1)->lane, 3);
    assert_int_equal(f.result->lane_count, 4);
    sim_fixture_release(&f);
}

/* ---- waits ---- */

/* One slot, four tasks of 10 min: they wait 0, 10, 20 and 30 min. */
static void waits_are_from_ready_to_start(void **state)
{
    (void)state;
    struct sim_fixture f;
    struct strbuf text = {0};
    strbuf_adds(&text, "limits: {sessions: 1}\ntasks:\n");
    many(&text, "implement", 4, 600);
    sim_fixture_init(&f, strbuf_text(&text));
    sim_fixture_run(&f);
    const struct sim_class *class = sim_fixture_class(&f, "implement");
    assert_int_equal(class->count, 4);
    assert_int_equal(class->wait_mean_ns, 15 * MINUTE_NS);
    assert_int_equal(class->wait_p99_ns, 30 * MINUTE_NS);
    assert_int_equal(class->wait_max_ns, 30 * MINUTE_NS);
    assert_int_equal(class->busy_ns, 40 * MINUTE_NS);
    assert_int_equal(sim_fixture_class(&f, "review")->count, 0);
    assert_int_equal(sim_fixture_class(&f, "review")->wait_max_ns, 0);
    sim_fixture_release(&f);
    strbuf_release(&text);
}

/*
 * One slot, n tasks of 1 s wait 0, 1, ... n - 1 s. Of 99, 100, 101 and 200,
 * the 99th percentile is the 99th, 99th, 100th and 198th smallest.
 */
static void p99_is_exceeded_by_one_in_a_hundred(void **state)
{
    (void)state;
    static const struct {
        uint32_t count;
        int64_t p99_s;
    } cases[] = {{1, 0}, {2, 1}, {99, 98}, {100, 98}, {101, 99}, {200, 197}};
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        struct sim_fixture f;
        struct strbuf text = {0};
        strbuf_adds(&text, "limits: {sessions: 1}\ntasks:\n");
        many(&text, "implement", cases[ix].count, 1);
        sim_fixture_init(&f, strbuf_text(&text));
        sim_fixture_run(&f);
        const struct sim_class *class = sim_fixture_class(&f, "implement");
        assert_int_equal(class->wait_p99_ns, cases[ix].p99_s * SECOND_NS);
        assert_int_equal(class->wait_max_ns, (cases[ix].count - 1) * SECOND_NS);
        sim_fixture_release(&f);
        strbuf_release(&text);
    }
}

static void waits_are_kept_apart_by_class(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f,
                     "limits: {sessions: 1}\n"
                     "tasks:\n"
                     "  - {id: r, class: review, run: x, estimate: 4m}\n"
                     "  - {id: a, run: x, estimate: 3m}\n"
                     "  - {id: g, class: gate, run: x, estimate: 2m}\n");
    sim_fixture_run(&f); /* a 0-3, g 3-5, r 5-9 */
    assert_int_equal(sim_fixture_class(&f, "implement")->wait_max_ns, 0);
    assert_int_equal(sim_fixture_class(&f, "gate")->wait_mean_ns,
                     3 * MINUTE_NS);
    assert_int_equal(sim_fixture_class(&f, "review")->wait_mean_ns,
                     5 * MINUTE_NS);
    sim_fixture_release(&f);
}

/* ---- starved time ---- */

#define REVIEW_THEN_IMPLEMENT                                                  \
    "limits: {sessions: 1}\n"                                                  \
    "tasks:\n"                                                                 \
    "  - {id: r, class: review, run: x, estimate: 10m}\n"                      \
    "  - {id: a, run: x, estimate: 5m}\n"

/* r 0-10 holds the slot that a wants. */
static void implementation_behind_a_review_is_starved(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, REVIEW_THEN_IMPLEMENT);
    f.options.rules = 0;
    sim_fixture_run(&f);
    sim_fixture_expect(&f, "r", (struct sim_expected){1, 0, 600, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "a",
                       (struct sim_expected){1, 600, 900, SIM_END_DONE});
    assert_int_equal(sim_fixture_class(&f, "implement")->starved_ns,
                     10 * MINUTE_NS);
    assert_int_equal(sim_fixture_class(&f, "review")->starved_ns, 0);
    sim_fixture_release(&f);
}

static void a_review_behind_implementation_is_not_starved(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, REVIEW_THEN_IMPLEMENT);
    sim_fixture_run(&f);
    sim_fixture_expect(&f, "a", (struct sim_expected){1, 0, 300, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "r",
                       (struct sim_expected){1, 300, 900, SIM_END_DONE});
    assert_int_equal(sim_fixture_class(&f, "implement")->starved_ns, 0);
    assert_int_equal(sim_fixture_class(&f, "review")->starved_ns, 0);
    sim_fixture_release(&f);
}

/* Two slots: r1 0-10, r2 0-4, a 4-9, b 9-14 (fifo, a and b ready at 0). Until
 * 4 both wait behind reviews; until 9 b does, behind r1. */
static void starved_time_counts_once_per_class(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f,
                     "limits: {sessions: 2}\n"
                     "tasks:\n"
                     "  - {id: r1, class: review, run: x, estimate: 10m}\n"
                     "  - {id: r2, class: review, run: x, estimate: 4m}\n"
                     "  - {id: a, run: x, estimate: 5m}\n"
                     "  - {id: b, run: x, estimate: 5m}\n"
                     "  - {id: g, class: gate, run: x, estimate: 1m}\n");
    f.options.rules = 0;
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "a",
                       (struct sim_expected){1, 240, 540, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "b",
                       (struct sim_expected){1, 540, 840, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "g",
                       (struct sim_expected){1, 600, 660, SIM_END_DONE});
    assert_int_equal(sim_fixture_class(&f, "implement")->starved_ns,
                     9 * MINUTE_NS);
    assert_int_equal(sim_fixture_class(&f, "gate")->starved_ns, 10 * MINUTE_NS);
    sim_fixture_release(&f);
}

/* b waits for gpu, which a holds; the reviews are not in its way. */
static void waiting_for_something_else_is_not_starving(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f,
                     "limits: {sessions: 3, review: none}\n"
                     "resources: {gpu: 1}\n"
                     "tasks:\n"
                     "  - {id: a, run: x, estimate: 10m, uses: {gpu: 1}}\n"
                     "  - {id: r1, class: review, run: x, estimate: 20m}\n"
                     "  - {id: r2, class: review, run: x, estimate: 20m}\n"
                     "  - {id: b, run: x, estimate: 5m, uses: {gpu: 1}}\n");
    f.options.rules = 0;
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "b",
                       (struct sim_expected){1, 600, 900, SIM_END_DONE});
    assert_int_equal(sim_fixture_class(&f, "implement")->starved_ns, 0);
    sim_fixture_release(&f);
}

/* The review holds gpu, and the slot is free: it starves all the same. */
static void a_review_that_holds_a_resource_starves(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(
        &f,
        "limits: {sessions: 3}\n"
        "resources: {gpu: 1}\n"
        "tasks:\n"
        "  - {id: r, class: review, run: x, estimate: 7m, uses: {gpu: 1}}\n"
        "  - {id: s, run: x, estimate: 2m}\n"
        "  - {id: a, run: x, estimate: 5m, uses: {gpu: 1}, needs: [s]}\n");
    sim_fixture_run(&f);
    sim_fixture_expect(&f, "r", (struct sim_expected){1, 0, 420, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "a",
                       (struct sim_expected){1, 420, 720, SIM_END_DONE});
    assert_int_equal(sim_fixture_class(&f, "implement")->starved_ns,
                     5 * MINUTE_NS);
    sim_fixture_release(&f);
}

#define GATING                                                                 \
    "limits: {sessions: 1}\n"                                                  \
    "tasks:\n"                                                                 \
    "  - {id: r, class: review, run: x, estimate: 10m}\n"                      \
    "  - {id: gating, class: review, run: x, estimate: 4m}\n"                  \
    "  - {id: a, run: x, estimate: 5m, needs: [gating]}\n"

/* r 0-10, gating 10-14, a 14-19: the gating review is worth what it gates. */
static void a_gating_review_behind_another_is_starved(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, GATING);
    f.options.rules = 0;
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "gating",
                       (struct sim_expected){1, 600, 840, SIM_END_DONE});
    assert_int_equal(sim_fixture_class(&f, "review")->starved_ns,
                     10 * MINUTE_NS);
    assert_int_equal(sim_fixture_class(&f, "implement")->starved_ns, 0);
    sim_fixture_release(&f);
}

static void a_gating_review_goes_first_by_the_rules(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, GATING);
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "gating",
                       (struct sim_expected){1, 0, 240, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "a",
                       (struct sim_expected){1, 240, 540, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "r",
                       (struct sim_expected){1, 540, 1140, SIM_END_DONE});
    assert_int_equal(sim_fixture_class(&f, "review")->starved_ns, 0);
    sim_fixture_release(&f);
}

/* b waits behind the gating review, which is worth as much: not starved. */
static void a_gating_review_starves_nobody(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f,
                     "limits: {sessions: 1}\n"
                     "tasks:\n"
                     "  - {id: gating, class: review, run: x, estimate: 4m}\n"
                     "  - {id: b, run: x, estimate: 3m}\n"
                     "  - {id: a, run: x, estimate: 5m, needs: [gating]}\n");
    f.options.rules = 0;
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "gating",
                       (struct sim_expected){1, 0, 240, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "b",
                       (struct sim_expected){1, 240, 420, SIM_END_DONE});
    assert_int_equal(sim_fixture_class(&f, "implement")->starved_ns, 0);
    sim_fixture_release(&f);
}

/* Tiers of the plan's own classes: low is worse than high. */
static void own_classes_starve_by_their_tiers(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f,
                     "limits: {sessions: 1}\n"
                     "classes: {low: {tier: 5}, high: {tier: 2}}\n"
                     "tasks:\n"
                     "  - {id: s, class: low, run: x, estimate: 1m}\n"
                     "  - {id: l, class: low, run: x, estimate: 6m}\n"
                     "  - {id: h, class: high, run: x, estimate: 2m}\n");
    f.options.rules = 0;
    sim_fixture_run(&f);
    assert_int_equal(sim_fixture_class(&f, "high")->starved_ns, 7 * MINUTE_NS);
    assert_int_equal(sim_fixture_class(&f, "low")->starved_ns, 0);
    sim_fixture_release(&f);
}

/* low is worse than mid, but it gates implementation: low, a, mid. */
static void what_blocks_is_as_urgent_as_what_it_blocks(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f,
                     "limits: {sessions: 1}\n"
                     "classes: {low: {tier: 5}, mid: {tier: 2}}\n"
                     "tasks:\n"
                     "  - {id: m, class: mid, run: x, estimate: 6m}\n"
                     "  - {id: l, class: low, run: x, estimate: 1m}\n"
                     "  - {id: a, run: x, estimate: 2m, needs: [l]}\n");
    sim_fixture_run(&f);
    sim_fixture_expect(&f, "l", (struct sim_expected){1, 0, 60, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "a",
                       (struct sim_expected){1, 60, 180, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "m",
                       (struct sim_expected){1, 180, 540, SIM_END_DONE});
    sim_fixture_release(&f);
}

/* ---- batches ---- */

/* The longest in full, of each other one half: 6 + (4 + 2) / 2 = 9 min. */
static void a_batch_takes_the_longest_and_half_of_the_others(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f,
                     "limits: {sessions: 1}\n"
                     "classes: {review: {batch: 3}}\n"
                     "tasks:\n"
                     "  - {id: r1, class: review, run: x, estimate: 4m}\n"
                     "  - {id: r2, class: review, run: x, estimate: 6m}\n"
                     "  - {id: r3, class: review, run: x, estimate: 2m}\n"
                     "  - {id: r4, class: review, run: x, estimate: 5m}\n");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "r1",
                       (struct sim_expected){1, 0, 540, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "r2",
                       (struct sim_expected){1, 0, 540, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "r3",
                       (struct sim_expected){1, 0, 540, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "r4",
                       (struct sim_expected){1, 540, 840, SIM_END_DONE});
    assert_int_equal(f.result->session_count, 2);
    assert_int_equal(f.result->span_count, 4);
    const struct sim_span *first = sim_fixture_span(&f, "r1", 1);
    for (int ix = 2; ix <= 3; ix++) {
        const char id[] = {'r', (char)('0' + ix), '\0'};
        const struct sim_span *span = sim_fixture_span(&f, id, 1);
        assert_int_equal(span->session, first->session);
        assert_int_equal(span->lane, first->lane);
    }
    assert_int_not_equal(sim_fixture_span(&f, "r4", 1)->session,
                         first->session);
    sim_fixture_release(&f);
}

static void the_part_of_the_others_can_be_set(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f,
                     "limits: {sessions: 1}\n"
                     "classes: {review: {batch: {max: 5, marginal: 10%}}}\n"
                     "tasks:\n"
                     "  - {id: r1, class: review, run: x, estimate: 10m}\n"
                     "  - {id: r2, class: review, run: x, estimate: 10m}\n"
                     "  - {id: r3, class: review, run: x, estimate: 10m}\n");
    sim_fixture_run(&f);
    assert_int_equal(f.result->makespan_ns, 12 * MINUTE_NS);
    assert_int_equal(f.result->session_count, 1);
    sim_fixture_release(&f);
}

static void without_the_rule_nothing_is_batched(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f,
                     "limits: {sessions: 1}\n"
                     "classes: {review: {batch: 3}}\n"
                     "tasks:\n"
                     "  - {id: r1, class: review, run: x, estimate: 4m}\n"
                     "  - {id: r2, class: review, run: x, estimate: 6m}\n");
    f.options.rules = SIM_RULES_ALL & ~(uint32_t)SIM_RULE_BATCH;
    sim_fixture_run(&f);
    assert_int_equal(f.result->session_count, 2);
    assert_int_equal(f.result->makespan_ns, 10 * MINUTE_NS);
    assert_int_equal(f.result->rules, f.options.rules);
    sim_fixture_release(&f);
}

static void only_tasks_of_one_repo_share_a_session(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(
        &f,
        "repos: {p: {path: ../p}, q: {path: ../q}}\n"
        "limits: {sessions: 1, active: none}\n"
        "classes: {review: {batch: 9}}\n"
        "tasks:\n"
        "  - {id: r1, repo: p, class: review, run: x, estimate: 4m}\n"
        "  - {id: r2, repo: q, class: review, run: x, estimate: 4m}\n"
        "  - {id: r3, repo: p, class: review, run: x, estimate: 4m}\n"
        "  - {id: r4, class: review, run: x, estimate: 4m}\n");
    sim_fixture_run(&f);
    assert_int_equal(f.result->session_count, 3);
    assert_int_equal(sim_fixture_span(&f, "r1", 1)->session,
                     sim_fixture_span(&f, "r3", 1)->session);
    sim_fixture_release(&f);
}

/* Of a batch each task has its own end. */
static void one_of_a_batch_can_fail(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f,
                     "limits: {sessions: 1}\n"
                     "classes: {review: {batch: 3}}\n"
                     "tasks:\n"
                     "  - {id: r1, class: review, run: x, estimate: 4m}\n"
                     "  - {id: r2, class: review, run: x, estimate: 4m}\n"
                     "  - {id: r3, class: review, run: x, estimate: 4m}\n");
    sim_fixture_line(&f, "fail r2:1");
    sim_fixture_run(&f);
    sim_fixture_expect(&f,
                       "r1",
                       (struct sim_expected){1, 0, 480, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "r2",
                       (struct sim_expected){1, 0, 480, SIM_END_FAILED});
    sim_fixture_expect(&f,
                       "r3",
                       (struct sim_expected){1, 0, 480, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "r2",
                       (struct sim_expected){2, 490, 730, SIM_END_DONE});
    assert_int_equal(sim_fixture_count(&f, "r1"), 1);
    assert_int_equal(sim_fixture_count(&f, "r3"), 1);
    assert_int_equal(f.result->counts[TASK_DONE], 3);
    sim_fixture_release(&f);
}

/* ---- chance ---- */

/* Simulate many tasks with jitter. */
static void jittered(struct sim_fixture *f,
                     uint32_t count,
                     uint64_t seed,
                     uint32_t percent,
                     enum plan_policy policy)
{
    struct strbuf text = {0};
    strbuf_adds(&text, "limits: {sessions: 7}\ntasks:\n");
    many(&text, "implement", count / 2, 600);
    many(&text, "review", count - count / 2, 600);
    sim_fixture_init(f, strbuf_text(&text));
    f->options.seed = seed;
    f->options.jitter_percent = percent;
    f->options.policy = policy;
    sim_fixture_run(f);
    strbuf_release(&text);
}

/* The duration of each task, by its index in the plan. */
static int64_t *durations(const struct sim_fixture *f)
{
    int64_t *list = mem_zalloc(f->plan->task_count, sizeof(list[0]));
    for (uint32_t ix = 0; ix < f->result->span_count; ix++) {
        const struct sim_span *span = &f->result->spans[ix];
        list[span->task] = span->end_ns - span->start_ns;
    }
    return list;
}

static void equal_seeds_give_equal_results(void **state)
{
    (void)state;
    struct sim_fixture a;
    struct sim_fixture b;
    jittered(&a, 200, 42, 40, PLAN_POLICY_RANK);
    jittered(&b, 200, 42, 40, PLAN_POLICY_RANK);
    assert_int_equal(a.result->span_count, b.result->span_count);
    for (uint32_t ix = 0; ix < a.result->span_count; ix++) {
        const struct sim_span *left = &a.result->spans[ix];
        const struct sim_span *right = &b.result->spans[ix];
        assert_int_equal(left->task, right->task);
        assert_int_equal(left->start_ns, right->start_ns);
        assert_int_equal(left->end_ns, right->end_ns);
        assert_int_equal(left->lane, right->lane);
    }
    assert_int_equal(a.result->makespan_ns, b.result->makespan_ns);
    sim_fixture_release(&a);
    sim_fixture_release(&b);
}

static void different_seeds_give_different_durations(void **state)
{
    (void)state;
    struct sim_fixture a;
    struct sim_fixture b;
    jittered(&a, 200, 1, 40, PLAN_POLICY_RANK);
    jittered(&b, 200, 2, 40, PLAN_POLICY_RANK);
    int64_t *left = durations(&a);
    int64_t *right = durations(&b);
    uint32_t equal = 0;
    for (uint32_t ix = 0; ix < 200; ix++) {
        equal += left[ix] == right[ix] ? 1 : 0;
    }
    assert_true(equal <= 2);
    mem_free(left);
    mem_free(right);
    sim_fixture_release(&a);
    sim_fixture_release(&b);
}

static void policies_are_compared_on_the_same_durations(void **state)
{
    (void)state;
    static const enum plan_policy policies[] = {PLAN_POLICY_FIFO,
                                                PLAN_POLICY_FAIR};
    struct sim_fixture a;
    jittered(&a, 300, 7, 80, PLAN_POLICY_RANK);
    int64_t *left = durations(&a);
    for (size_t n = 0; n < ARRAY_COUNT(policies); n++) {
        struct sim_fixture b;
        jittered(&b, 300, 7, 80, policies[n]);
        int64_t *right = durations(&b);
        for (uint32_t ix = 0; ix < 300; ix++) {
            assert_int_equal(left[ix], right[ix]);
        }
        mem_free(right);
        sim_fixture_release(&b);
    }
    mem_free(left);
    sim_fixture_release(&a);
}

/*
 * 4,000 draws: the mean strays from the estimate by less than 4 standard
 * errors (0.5 / sqrt(4000) is 0.8 %), and so does the spread.
 */
static void the_mean_of_the_durations_is_the_estimate(void **state)
{
    (void)state;
    enum { COUNT = 4000 };
    struct sim_fixture f;
    jittered(&f, COUNT, 3, 50, PLAN_POLICY_FIFO);
    int64_t *list = durations(&f);
    double sum = 0;
    double squares = 0;
    for (uint32_t ix = 0; ix < COUNT; ix++) {
        double factor = (double)list[ix] / (600e9);
        assert_true(factor > 0);
        sum += factor;
        squares += factor * factor;
    }
    double mean = sum / COUNT;
    double variance = squares / COUNT - mean * mean;
    assert_true(mean > 0.968 && mean < 1.032);
    assert_true(variance > 0.18 && variance < 0.34); /* 0.25 is meant */
    mem_free(list);
    sim_fixture_release(&f);
}

static void without_jitter_the_seed_does_not_matter(void **state)
{
    (void)state;
    struct sim_fixture f;
    jittered(&f, 100, 99, 0, PLAN_POLICY_RANK);
    int64_t *list = durations(&f);
    for (uint32_t ix = 0; ix < 100; ix++) {
        assert_int_equal(list[ix], 600 * SECOND_NS);
    }
    mem_free(list);
    sim_fixture_release(&f);
}

static void a_new_attempt_draws_a_new_duration(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, "tasks: [{id: a, run: x, estimate: 10m}]\n");
    f.options.jitter_percent = 50;
    sim_fixture_line(&f, "fail a:1");
    sim_fixture_run(&f);
    const struct sim_span *first = sim_fixture_span(&f, "a", 1);
    const struct sim_span *second = sim_fixture_span(&f, "a", 2);
    assert_non_null(first);
    assert_non_null(second);
    assert_int_not_equal(first->end_ns - first->start_ns,
                         second->end_ns - second->start_ns);
    sim_fixture_release(&f);
}

/* ---- the rest ---- */

/* a holds the only session 0-10: b waits for `sessions` and for nothing else;
 * with lanes, c waits for `active`. */
static void limits_that_bind_are_measured(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f,
                     "repos: {p: {path: ../p}}\n"
                     "limits: {sessions: 3}\n"
                     "resources: {gpu: 1}\n"
                     "tasks:\n"
                     "  - {id: a, repo: p, run: x, estimate: 10m}\n"
                     "  - {id: b, repo: p, run: x, estimate: 4m}\n"
                     "  - {id: c, run: x, estimate: 3m, uses: {gpu: 1}}\n"
                     "  - {id: d, run: x, estimate: 3m, uses: {gpu: 1}}\n");
    sim_fixture_run(&f);
    const struct plan *plan = f.plan;
    assert_int_equal(f.result->limit_count, plan->limit_count);
    assert_seconds(f.result->limit_wait_ns[plan_find_limit(plan, "active")],
                   600);
    assert_seconds(f.result->limit_wait_ns[plan_find_limit(plan, "gpu")], 180);
    assert_seconds(f.result->limit_wait_ns[plan_find_limit(plan, "sessions")],
                   0);
    sim_fixture_release(&f);
}

static void names_are_stable(void **state)
{
    (void)state;
    assert_string_equal(sim_policy_name(PLAN_POLICY_RANK), "rank");
    assert_string_equal(sim_policy_name(PLAN_POLICY_FAIR), "fair");
    assert_string_equal(sim_policy_name(PLAN_POLICY_FIFO), "fifo");
    assert_string_equal(sim_end_name(SIM_END_DONE), "done");
    assert_string_equal(sim_end_name(SIM_END_FAILED), "failed");
    assert_string_equal(sim_end_name(SIM_END_CHANGES), "changes");
    assert_string_equal(sim_end_name(SIM_END_BLOCKED), "blocked");
    assert_string_equal(sim_end_name(SIM_END_CHECKPOINT), "checkpoint");
    assert_string_equal(sim_end_name(SIM_END_CANCELLED), "cancelled");
    assert_string_equal(sim_end_name(SIM_END_RUNNING), "running");
    sim_result_free(NULL);
}

/* ---- merge queues ---- */

/* Four merges of 10 s, ready at once, that nobody sends back. */
#define QUEUE(sessions)                                                        \
    "limits: {sessions: " sessions ", active: 4}\n"                            \
    "repos: {r: {path: r, base: dev, gate: make, base_gate: none}}\n"          \
    "tasks:\n"                                                                 \
    "  - {id: a, repo: r, merge: true, estimate: 10s}\n"                       \
    "  - {id: b, repo: r, merge: true, estimate: 10s}\n"                       \
    "  - {id: c, repo: r, merge: true, estimate: 10s}\n"                       \
    "  - {id: d, repo: r, merge: true, estimate: 10s}\n"

static void merges_run_at_once_and_end_in_order(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, QUEUE("4"));
    sim_fixture_run(&f);
    assert_int_equal(f.result->makespan_ns, 10 * SECOND_NS);
    assert_int_equal(f.result->restarts, 0);
    sim_fixture_release(&f);
    sim_fixture_init(&f, QUEUE("2"));
    sim_fixture_run(&f);
    assert_int_equal(f.result->makespan_ns, 20 * SECOND_NS);
    sim_fixture_release(&f);
}

static void merges_behind_a_failure_restart(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(&f, QUEUE("4") "defaults: {retry: 0}\n");
    sim_fixture_line(&f, "fail b:1");
    sim_fixture_run(&f);
    sim_fixture_expect(&f, "a", (struct sim_expected){1, 0, 10, SIM_END_DONE});
    sim_fixture_expect(&f,
                       "b",
                       (struct sim_expected){1, 0, 10, SIM_END_FAILED});
    sim_fixture_expect(&f, "c", (struct sim_expected){1, 0, 20, SIM_END_DONE});
    sim_fixture_expect(&f, "d", (struct sim_expected){1, 0, 20, SIM_END_DONE});
    assert_int_equal(f.result->restarts, 2);
    assert_int_equal(sim_fixture_span(&f, "a", 1)->restarts, 0);
    assert_int_equal(sim_fixture_span(&f, "d", 1)->restarts, 1);
    sim_fixture_release(&f);
}

/* c ends last, but before d: d waits for it. */
static void a_merge_waits_for_those_before_it(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_fixture_init(
        &f,
        "limits: {sessions: 4, active: 4}\n"
        "repos: {r: {path: r, base: dev, gate: make, base_gate: none}}\n"
        "tasks:\n"
        "  - {id: c, repo: r, merge: true, estimate: 30s}\n"
        "  - {id: d, repo: r, merge: true, estimate: 10s}\n");
    sim_fixture_run(&f);
    sim_fixture_expect(&f, "c", (struct sim_expected){1, 0, 30, SIM_END_DONE});
    sim_fixture_expect(&f, "d", (struct sim_expected){1, 0, 30, SIM_END_DONE});
    sim_fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_makespan_is_the_end_of_the_last_session),
        cmocka_unit_test(needs_are_waited_for),
        cmocka_unit_test(without_an_estimate_a_session_lasts_ten_minutes),
        cmocka_unit_test(sessions_of_no_length_end_at_once),
        cmocka_unit_test(lanes_are_the_smallest_free_ones),
        cmocka_unit_test(waits_are_from_ready_to_start),
        cmocka_unit_test(p99_is_exceeded_by_one_in_a_hundred),
        cmocka_unit_test(waits_are_kept_apart_by_class),
        cmocka_unit_test(implementation_behind_a_review_is_starved),
        cmocka_unit_test(a_review_behind_implementation_is_not_starved),
        cmocka_unit_test(starved_time_counts_once_per_class),
        cmocka_unit_test(waiting_for_something_else_is_not_starving),
        cmocka_unit_test(a_review_that_holds_a_resource_starves),
        cmocka_unit_test(a_gating_review_behind_another_is_starved),
        cmocka_unit_test(a_gating_review_goes_first_by_the_rules),
        cmocka_unit_test(a_gating_review_starves_nobody),
        cmocka_unit_test(own_classes_starve_by_their_tiers),
        cmocka_unit_test(what_blocks_is_as_urgent_as_what_it_blocks),
        cmocka_unit_test(a_batch_takes_the_longest_and_half_of_the_others),
        cmocka_unit_test(the_part_of_the_others_can_be_set),
        cmocka_unit_test(without_the_rule_nothing_is_batched),
        cmocka_unit_test(only_tasks_of_one_repo_share_a_session),
        cmocka_unit_test(one_of_a_batch_can_fail),
        cmocka_unit_test(equal_seeds_give_equal_results),
        cmocka_unit_test(different_seeds_give_different_durations),
        cmocka_unit_test(policies_are_compared_on_the_same_durations),
        cmocka_unit_test(the_mean_of_the_durations_is_the_estimate),
        cmocka_unit_test(without_jitter_the_seed_does_not_matter),
        cmocka_unit_test(a_new_attempt_draws_a_new_duration),
        cmocka_unit_test(limits_that_bind_are_measured),
        cmocka_unit_test(merges_run_at_once_and_end_in_order),
        cmocka_unit_test(merges_behind_a_failure_restart),
        cmocka_unit_test(a_merge_waits_for_those_before_it),
        cmocka_unit_test(names_are_stable),
    };
    return cmocka_run_group_tests_name("sim", tests, NULL, NULL);
}
