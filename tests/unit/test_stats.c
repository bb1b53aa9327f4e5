/* SPDX-License-Identifier: MIT */
#include "base/rng.h"
#include "base/strbuf.h"
#include "tests/unit/past_fixture.h"
#include "tests/unit/sim_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define TASK(id) "  - {id: " id ", run: x}\n"

static void assert_ns(int64_t got_ns, double wanted_s)
{
    assert_int_equal(got_ns, past_ns(wanted_s));
}

/* A stretch of the path: what, of which task, from when to when. */
static void assert_segment(const struct past *past,
                           uint32_t ix,
                           enum stats_step step,
                           const char *id,
                           double end_s)
{
    assert_true(ix < past->stats.path_count);
    const struct stats_segment *segment = &past->stats.path[ix];
    assert_string_equal(stats_step_name(segment->step), stats_step_name(step));
    assert_string_equal(past->history.plan->tasks[segment->task].id, id);
    assert_ns(segment->end_ns, end_s);
}

/* Two tasks one after the other under a cap of one. */
static void one_slot_is_shared(void **state)
{
    (void)state;
    struct past past;
    past_init(&past, "limits: {sessions: 1}\ntasks:\n" TASK("a") TASK("b"));
    past_claim(&past, 0, "a");
    past_move(&past, 0, "b", TASK_READY);
    past_end(&past, 10, "a", HISTORY_DONE, TASK_DONE);
    past_claim(&past, 10, "b");
    past_end(&past, 14, "b", HISTORY_DONE, TASK_DONE);
    past_settle(&past, 99);
    const struct stats *stats = &past.stats;
    assert_ns(past.history.end_ns, 14);
    assert_ns(stats->offered_ns, 14);
    assert_ns(stats->working_ns, 14);
    assert_ns(stats->waits_ns[STATS_SLOT], 10);
    assert_ns(stats->tasks[1].ready_ns, 10);
    assert_int_equal(stats->lane_count, 1);
    assert_int_equal(stats->path_count, 2);
    assert_segment(&past, 0, STATS_STEP_WORK, "a", 10);
    assert_segment(&past, 1, STATS_STEP_WORK, "b", 14);
    assert_int_equal(stats->path[1].link, STATS_LINK_SLOT);
    past_release(&past);
}

static void what_is_needed_is_waited_for(void **state)
{
    (void)state;
    struct past past;
    past_init(&past,
              "limits: {sessions: 3}\ntasks:\n" TASK("a")
                  TASK("b") "  - {id: c, run: x, needs: [a, b]}\n");
    past_claim(&past, 0, "a");
    past_claim(&past, 0, "b");
    past_move(&past, 0, "c", TASK_WAITING);
    past_end(&past, 3, "a", HISTORY_DONE, TASK_DONE);
    past_end(&past, 8, "b", HISTORY_DONE, TASK_DONE);
    past_claim(&past, 8, "c");
    past_end(&past, 9, "c", HISTORY_DONE, TASK_DONE);
    past_settle(&past, 99);
    assert_ns(past.stats.waits_ns[STATS_NEEDS], 8);
    assert_ns(past.stats.idle_ns[STATS_IDLE_NONE], 27 - 12);
    assert_int_equal(past.stats.path_count, 2);
    assert_segment(&past, 0, STATS_STEP_WORK, "b", 8);
    assert_segment(&past, 1, STATS_STEP_WORK, "c", 9);
    assert_int_equal(past.stats.path[1].link, STATS_LINK_NEED);
    past_release(&past);
}

static void a_retry_waits_for_its_pause(void **state)
{
    (void)state;
    struct past past;
    past_init(&past, "limits: {sessions: 1}\ntasks:\n" TASK("a"));
    past_claim(&past, 0, "a");
    past_end(&past, 2, "a", HISTORY_FAILED, TASK_WAITING);
    past_claim(&past, 7, "a");
    past_end(&past, 8, "a", HISTORY_DONE, TASK_DONE);
    past_settle(&past, 99);
    const struct stats *stats = &past.stats;
    assert_ns(stats->waits_ns[STATS_BACKOFF], 5);
    assert_ns(stats->idle_ns[STATS_IDLE_NONE], 5);
    assert_int_equal(stats->retries, 1);
    assert_int_equal(stats->failure_count, 1);
    assert_int_equal(stats->failures[0].count, 1);
    assert_ns(stats->failures[0].lost_ns, 2);
    assert_int_equal(stats->path_count, 3);
    assert_segment(&past, 1, STATS_STEP_BACKOFF, "a", 7);
    assert_int_equal(stats->path[2].link, STATS_LINK_SELF);
    past_release(&past);
}

static void a_person_is_waited_for(void **state)
{
    (void)state;
    struct past past;
    past_init(&past,
              "limits: {sessions: 1}\ntasks:\n" TASK(
                  "a") "  - {id: b, run: x, needs: [a]}\n");
    past_claim(&past, 0, "a");
    past_move(&past, 0, "b", TASK_WAITING);
    past_end(&past, 2, "a", HISTORY_BLOCKED, TASK_PARKED);
    past_claim(&past, 62, "a");
    past_end(&past, 63, "a", HISTORY_DONE, TASK_DONE);
    past_claim(&past, 63, "b");
    past_end(&past, 64, "b", HISTORY_DONE, TASK_DONE);
    past_settle(&past, 99);
    assert_ns(past.stats.waits_ns[STATS_PERSON], 60);
    assert_ns(past.stats.waits_ns[STATS_NEEDS], 63);
    assert_ns(past.stats.idle_ns[STATS_IDLE_REST], 60);
    assert_segment(&past, 1, STATS_STEP_PERSON, "a", 62);
    past_release(&past);
}

static void a_refusal_waits_for_the_provider(void **state)
{
    (void)state;
    struct past past;
    past_init(&past, "limits: {sessions: 2}\ntasks:\n" TASK("a") TASK("b"));
    past_claim(&past, 0, "b");
    past_claim(&past, 0, "a");
    past_end(&past, 1, "a", HISTORY_REFUSED, TASK_READY);
    past_end(&past, 2, "b", HISTORY_DONE, TASK_DONE);
    past_claim(&past, 5, "a");
    past_end(&past, 9, "a", HISTORY_DONE, TASK_DONE);
    past_settle(&past, 99);
    assert_ns(past.stats.waits_ns[STATS_PROVIDER], 4);
    assert_ns(past.stats.waits_ns[STATS_OTHER], 0);
    assert_int_equal(past.stats.retries, 0);
    assert_segment(&past, 1, STATS_STEP_PROVIDER, "a", 5);
    past_release(&past);
}

static void orders_keep_tasks_back(void **state)
{
    (void)state;
    struct past past;
    past_init(&past,
              "limits: {sessions: 3}\ntasks:\n" TASK("a") TASK("b") TASK("c"));
    past_claim(&past, 0, "a");
    past_move(&past, 0, "b", TASK_READY);
    past_order(&past, 0, HISTORY_HOLD, "b", 0);
    past_order(&past, 4, HISTORY_RELEASE, "b", 0);
    past_order(&past, 4, HISTORY_PAUSE, NULL, 0);
    past_order(&past, 7, HISTORY_RESUME, NULL, 0);
    past_order(&past, 7, HISTORY_LIMIT, NULL, 0);
    past_order(&past, 9, HISTORY_LIMIT, NULL, 2);
    past_claim(&past, 9, "b");
    past_end(&past, 10, "a", HISTORY_DONE, TASK_DONE);
    past_end(&past, 11, "b", HISTORY_DONE, TASK_DONE);
    past_settle(&past, 99);
    const struct stats *stats = &past.stats;
    assert_ns(stats->waits_ns[STATS_HELD], 4);
    assert_ns(stats->waits_ns[STATS_PAUSED], 3);
    assert_ns(stats->waits_ns[STATS_SLOT], 2);
    /* Three slots for 7 s, none for 2 s, two for 2 s. */
    assert_ns(stats->offered_ns, 25);
    assert_ns(stats->over_ns, 2);
    assert_int_equal(stats_last_cap(stats), 2);
    assert_int_equal(stats->cap_count, 3);
    assert_segment(&past, 0, STATS_STEP_KEPT, "b", 9);
    past_release(&past);
}

static void limits_are_told_apart(void **state)
{
    (void)state;
    struct past past;
    past_init(&past,
              "repos: {r: {}}\n"
              "limits: {sessions: 4, issues: {max: none, count: groups}}\n"
              "resources: {gpu: 1}\ntasks:\n"
              "  - {id: a, run: x, repo: r}\n"
              "  - {id: b, run: x, repo: r}\n"
              "  - {id: c, run: x, uses: {gpu: 1}}\n"
              "  - {id: d, run: x, uses: {gpu: 1}}\n");
    past_claim(&past, 0, "a");
    past_move(&past, 0, "b", TASK_READY); /* one issue per repository */
    past_claim(&past, 0, "c");
    past_move(&past, 0, "d", TASK_READY);
    past_end(&past, 3, "a", HISTORY_DONE, TASK_DONE);
    past_claim(&past, 3, "b");
    past_end(&past, 5, "c", HISTORY_DONE, TASK_DONE);
    past_claim(&past, 5, "d");
    past_end(&past, 6, "d", HISTORY_DONE, TASK_DONE);
    past_end(&past, 6, "b", HISTORY_DONE, TASK_DONE);
    past_settle(&past, 99);
    const struct plan *plan = past.history.plan;
    assert_ns(past.stats.waits_ns[STATS_LIMIT], 8);
    assert_ns(past.stats.limit_waits_ns[plan_find_limit(plan, "active")], 3);
    assert_ns(past.stats.limit_waits_ns[plan_find_limit(plan, "gpu")], 5);
    past_release(&past);
}

static void usage_monitors_lower_the_cap(void **state)
{
    (void)state;
    struct past past;
    past_init(&past,
              "usage: {run: x, every: 5m, steps: {50: 1, 90: 0}}\n"
              "limits: {sessions: 2}\ntasks:\n" TASK("a") TASK("b"));
    past_claim(&past, 0, "a");
    past_order(&past, 0, HISTORY_USAGE, NULL, 1);
    past_move(&past, 0, "b", TASK_READY);
    past_order(&past, 4, HISTORY_OVERRIDE, NULL, 1);
    past_claim(&past, 4, "b");
    past_order(&past, 6, HISTORY_OVERRIDE, NULL, 0);
    past_order(&past, 7, HISTORY_USAGE, NULL, PLAN_UNLIMITED);
    past_end(&past, 8, "a", HISTORY_DONE, TASK_DONE);
    past_end(&past, 9, "b", HISTORY_DONE, TASK_DONE);
    past_settle(&past, 99);
    assert_ns(past.stats.waits_ns[STATS_SLOT], 4);
    /* One slot for 4 s, two for 2 s, one for 1 s, two for 2 s. */
    assert_ns(past.stats.offered_ns, 13);
    assert_ns(past.stats.over_ns, 1);
    assert_int_equal(stats_last_cap(&past.stats), 2);
    past_release(&past);
}

static void money_that_is_spent_is_waited_for(void **state)
{
    (void)state;
    struct past past;
    past_init(&past,
              "budget: {usd: 1}\nlimits: {sessions: 2}\ntasks:\n" TASK("a")
                  TASK("b"));
    past_claim(&past, 0, "a");
    past.history.sessions[0].usd = 1.0;
    past_move(&past, 0, "b", TASK_WAITING);
    past_end(&past, 2, "a", HISTORY_DONE, TASK_DONE);
    past_move(&past, 2, "b", TASK_READY);
    uint32_t budget = plan_find_limit(past.history.plan, "usd budget");
    run_history_add_event(&past.history,
                          &(struct run_history_event){
                              .at_ns = past_ns(7),
                              .kind = HISTORY_LIMIT,
                              .part = budget,
                              .max = INT64_C(2) * PLAN_USD,
                          });
    past_claim(&past, 7, "b");
    past_end(&past, 8, "b", HISTORY_DONE, TASK_DONE);
    past_settle(&past, 99);
    assert_ns(past.stats.limit_waits_ns[budget], 5);
    assert_ns(past.stats.waits_ns[STATS_OTHER], 0);
    past_release(&past);
}

static void background_work_is_deferred(void **state)
{
    (void)state;
    struct past past;
    past_init(&past,
              "limits: {sessions: 1}\ntasks:\n" TASK(
                  "a") "  - {id: r, class: review, run: x}\n");
    past_claim(&past, 0, "a");
    past_move(&past, 0, "r", TASK_READY);
    past_end(&past, 6, "a", HISTORY_DONE, TASK_DONE);
    past_claim(&past, 6, "r");
    past_end(&past, 8, "r", HISTORY_DONE, TASK_DONE);
    past_settle(&past, 99);
    assert_ns(past.stats.waits_ns[STATS_DEFERRED], 6);
    assert_ns(past.stats.review_ns, 2);
    assert_ns(past.stats.starved_ns, 0);
    past_release(&past);
}

static void a_review_in_its_place_starves_work(void **state)
{
    (void)state;
    struct past past;
    past_init(&past,
              "limits: {sessions: 1}\ntasks:\n" TASK(
                  "a") "  - {id: r, class: review, run: x}\n");
    past_claim(&past, 0, "r");
    past_move(&past, 1, "a", TASK_READY);
    past_end(&past, 6, "r", HISTORY_DONE, TASK_DONE);
    past_claim(&past, 6, "a");
    past_end(&past, 8, "a", HISTORY_DONE, TASK_DONE);
    past_settle(&past, 99);
    assert_ns(past.stats.starved_ns, 5);
    past_release(&past);
}

static void a_rework_hangs_on_what_sent_it_back(void **state)
{
    (void)state;
    struct past past;
    past_init(&past,
              "limits: {sessions: 2}\n"
              "pipelines:\n  p:\n"
              "    - {stage: implement, run: x}\n"
              "    - {stage: review, run: x, rework: {to: implement, max: 2}}\n"
              "groups:\n  - {id: g, pipeline: p}\n");
    past_claim(&past, 0, "g/implement");
    past_move(&past, 0, "g/review", TASK_WAITING);
    past_end(&past, 5, "g/implement", HISTORY_DONE, TASK_DONE);
    past_claim(&past, 5, "g/review");
    past_end(&past, 7, "g/review", HISTORY_CHANGES, TASK_WAITING);
    past_claim(&past, 7, "g/implement");
    past_end(&past, 9, "g/implement", HISTORY_DONE, TASK_DONE);
    past_claim(&past, 9, "g/review");
    past_end(&past, 10, "g/review", HISTORY_DONE, TASK_DONE);
    past_settle(&past, 99);
    assert_int_equal(past.stats.path_count, 4);
    assert_int_equal(past.stats.path[2].link, STATS_LINK_REWORK);
    assert_int_equal(past.stats.path[3].link, STATS_LINK_NEED);
    assert_int_equal(past.stats.group_count, 1);
    assert_int_equal(past.stats.groups[0].sum.sessions, 4);
    past_release(&past);
}

static void nothing_has_happened_yet(void **state)
{
    (void)state;
    struct past past;
    past_init(&past, "tasks:\n" TASK("a"));
    past_settle(&past, 99);
    assert_ns(past.history.end_ns, 0);
    assert_int_equal(past.stats.path_count, 0);
    assert_int_equal(past.stats.states[TASK_WAITING], 1);
    past_release(&past);
}

static void an_open_session_lasts_until_now(void **state)
{
    (void)state;
    struct past past;
    past_init(&past, "limits: {sessions: none}\ntasks:\n" TASK("a"));
    past_claim(&past, 1, "a");
    past_settle(&past, 12);
    assert_true(past.history.live);
    assert_ns(past.history.end_ns, 12);
    assert_ns(past.stats.working_ns, 11);
    assert_ns(past.stats.offered_ns, 11); /* no cap: what was used */
    past_release(&past);
}

static void a_clock_set_back_counts_no_time_twice(void **state)
{
    (void)state;
    struct past past;
    past_init(&past, "limits: {sessions: 1}\ntasks:\n" TASK("a") TASK("b"));
    past_claim(&past, 100, "a");
    past_end(&past, 40, "a", HISTORY_DONE, TASK_DONE);
    past_claim(&past, 50, "b");
    past_end(&past, 120, "b", HISTORY_DONE, TASK_DONE);
    past_settle(&past, 200);
    assert_ns(past.history.end_ns, 120);
    past_release(&past);
}

static void what_is_added_later_was_not_there(void **state)
{
    (void)state;
    struct past past;
    past_init(&past, "limits: {sessions: 2}\ntasks:\n" TASK("a") TASK("b"));
    past_claim(&past, 0, "a");
    past_end(&past, 2, "a", HISTORY_DONE, TASK_DONE);
    past_claim(&past, 30, "b"); /* its first event */
    past_end(&past, 40, "b", HISTORY_DONE, TASK_DONE);
    past_settle(&past, 99);
    assert_int_equal(past.stats.path_count, 2);
    assert_segment(&past, 0, STATS_STEP_ABSENT, "b", 30);
    past_release(&past);
}

/* --- against the simulator ---------------------------------------------- */

/* Every third task is a review; with `gating`, others may need it. */
static void add_random_plan(struct strbuf *out, struct rng *rng, bool gating)
{
    static const char *const classes[] = {"implement", "gate"};
    uint32_t count = 5 + rng_below(rng, 30);
    strbuf_addf(out,
                "repos: {r0: {}, r1: {}}\n"
                "limits: {sessions: %u%s}\n"
                "classes: {review: {tier: 1, defer: true, batch: %u}}\n"
                "tasks:\n",
                1 + rng_below(rng, 5),
                rng_below(rng, 2) == 0 ? ", issues: {max: none, count: groups}"
                                       : "",
                gating ? 1 : 1 + rng_below(rng, 3));
    for (uint32_t ix = 0; ix < count; ix++) {
        strbuf_addf(out,
                    "  - {id: t%u, run: x, class: %s, estimate: %us",
                    ix,
                    ix % 3 == 2 ? "review" : classes[rng_below(rng, 2)],
                    1 + rng_below(rng, 20));
        if (rng_below(rng, 2) == 0) {
            strbuf_addf(out, ", repo: r%u", rng_below(rng, 2));
        }
        if (ix > 0 && rng_below(rng, 2) == 0) {
            uint32_t need = rng_below(rng, ix);
            need -= need % 3 == 2 && !gating ? 1 : 0;
            strbuf_addf(out, ", needs: [t%u]", need);
        }
        strbuf_adds(out, "}\n");
    }
}

/*
 * The stats about a simulated run are those of the simulator. Starvation is
 * at least as long: the simulator looks only at the best ready task of each
 * kind, and where reviews gate work, one that is worth more may be behind it.
 * (Batches are left out there: the simulator also counts tasks that ride along
 * in a session, which hold nothing.)
 */
static void simulations_are_measured_alike(void **state)
{
    (void)state;
    int64_t starved_ns = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        struct rng rng;
        rng_init(&rng, seed);
        struct strbuf text = {0};
        bool gating = seed % 3 == 0;
        add_random_plan(&text, &rng, gating);
        struct sim_fixture sim;
        sim_fixture_init(&sim, text.text);
        sim.options.rules = rng_below(&rng, SIM_RULES_ALL + 1);
        sim_fixture_run(&sim);
        struct past past;
        past_init_take(&past, sim.plan);
        sim.plan = NULL;
        past_replay(&past, sim.result);
        past_settle(&past, 0);
        assert_int_equal(past.history.end_ns, sim.result->makespan_ns);
        assert_int_equal(past.stats.lane_count, sim.result->lane_count);
        double use = past.stats.slot_use - sim.result->slot_use;
        assert_true(use > -1e-9 && use < 1e-9);
        for (uint32_t ix = 0; ix < sim.result->class_count; ix++) {
            const struct sim_class *wanted = &sim.result->classes[ix];
            const struct stats_class *got = &past.stats.classes[ix];
            if (got->starved_ns < wanted->starved_ns ||
                (!gating && got->starved_ns != wanted->starved_ns)) {
                fail_msg("seed %llu, rules %u, class %u: starved %lld, not "
                         "%lld:\n%s",
                         (unsigned long long)seed,
                         sim.options.rules,
                         ix,
                         (long long)got->starved_ns,
                         (long long)wanted->starved_ns,
                         text.text);
            }
            assert_int_equal(got->starts, wanted->count);
            assert_int_equal(got->ready_mean_ns, wanted->wait_mean_ns);
            assert_int_equal(got->ready_p99_ns, wanted->wait_p99_ns);
            assert_int_equal(got->ready_max_ns, wanted->wait_max_ns);
            starved_ns += got->starved_ns;
        }
        assert_int_equal(past.stats.waits_ns[STATS_OTHER], 0);
        past_release(&past);
        sim_fixture_release(&sim);
        strbuf_release(&text);
    }
    assert_true(starved_ns > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_slot_is_shared),
        cmocka_unit_test(what_is_needed_is_waited_for),
        cmocka_unit_test(a_retry_waits_for_its_pause),
        cmocka_unit_test(a_person_is_waited_for),
        cmocka_unit_test(a_refusal_waits_for_the_provider),
        cmocka_unit_test(orders_keep_tasks_back),
        cmocka_unit_test(limits_are_told_apart),
        cmocka_unit_test(usage_monitors_lower_the_cap),
        cmocka_unit_test(money_that_is_spent_is_waited_for),
        cmocka_unit_test(background_work_is_deferred),
        cmocka_unit_test(a_review_in_its_place_starves_work),
        cmocka_unit_test(a_rework_hangs_on_what_sent_it_back),
        cmocka_unit_test(nothing_has_happened_yet),
        cmocka_unit_test(an_open_session_lasts_until_now),
        cmocka_unit_test(a_clock_set_back_counts_no_time_twice),
        cmocka_unit_test(what_is_added_later_was_not_there),
        cmocka_unit_test(simulations_are_measured_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
