/* SPDX-License-Identifier: MIT */
/*
 * Claims ahead of free slots: how many there are, that never more sessions run
 * than there may be, each slot with one at a time, and what gives them back.
 */
#include "base/mem.h"
#include "tests/unit/engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define US INT64_C(1000)

enum { TASKS = 200, TOKENS = 400, SESSIONS = 2, WARM = 80, SLOTS_MAX = 32 };

/* Sessions that run in a rig. */
struct play {
    struct rig rig;
    uint32_t seen;               /* orders looked at */
    uint64_t running[SLOTS_MAX]; /* token of each slot; 0: none */
    uint32_t count;
    uint32_t most; /* that ran at once */
    uint32_t began;
    uint32_t refused;
    bool ended[TOKENS]; /* by token */
};

static void submit(struct play *play, const char *head)
{
    struct strbuf plan = {0};
    strbuf_adds(&plan, head);
    strbuf_adds(&plan, "tasks:\n");
    for (int ix = 0; ix < TASKS; ix++) {
        strbuf_addf(&plan, "  - {id: t%d, run: x}\n", ix);
    }
    rig_start(&play->rig);
    rig_submit(&play->rig, strbuf_text(&plan));
    strbuf_release(&plan);
}

static uint32_t slot_of(const struct rig_order *order)
{
    static const char name[] = "SLUICE_SLOT=";
    const char *found = strstr(strbuf_text(&order->text), name);
    assert_non_null(found);
    uint32_t slot = 0;
    for (found += sizeof(name) - 1; *found >= '0' && *found <= '9'; found++) {
        slot = slot * 10 + (uint32_t)(*found - '0');
    }
    assert_true(slot > 0 && slot < SLOTS_MAX);
    return slot;
}

static void report(struct play *play, uint64_t token, struct work_report report)
{
    static const struct attempt_result nothing = {0};
    report.token = token;
    report.mark = play->rig.mark;
    report.result = &nothing;
    report.log = "";
    engine_reported(play->rig.engine, &report);
}

/* Begin what was ordered, and refuse what shall not run. */
static void obey(struct play *play)
{
    rig_settle(&play->rig);
    while (play->seen < play->rig.order_count) {
        const struct rig_order *order = &play->rig.orders[play->seen++];
        if (order->want != WORK_RUN) {
            play->refused++;
            report(
                play,
                order->token,
                (struct work_report){.type = WORK_REFUSED, .withdrawn = true});
        } else {
            uint32_t slot = slot_of(order);
            assert_true(play->running[slot] == 0);
            play->running[slot] = order->token;
            play->began++;
            play->count++;
            play->most = play->count > play->most ? play->count : play->most;
        }
        rig_settle(&play->rig);
    }
}

static struct work_report exit_of(const struct play *play, int code)
{
    int64_t now_ns = RIG_WALL_NS + play->rig.now_ns;
    return (struct work_report){
        .type = WORK_ENDED,
        .exit = {.cause = ATTEMPT_EXIT,
                 .code = code,
                 .begun_ns = now_ns,
                 .ended_ns = now_ns},
    };
}

/* End the session that began first; return false if none is known to run. */
static bool end_first(struct play *play, int code)
{
    uint32_t first = 0;
    for (uint32_t slot = 1; slot < SLOTS_MAX; slot++) {
        if (play->running[slot] != 0 &&
            (first == 0 || play->running[slot] < play->running[first])) {
            first = slot;
        }
    }
    if (first == 0) {
        return false;
    }
    uint64_t token = play->running[first];
    play->running[first] = 0;
    play->count--;
    assert_true(token < TOKENS);
    play->ended[token] = true;
    report(play, token, exit_of(play, code));
    return true;
}

/* The same, with what follows from it. */
static bool end_one(struct play *play, int code)
{
    bool ends = end_first(play, code);
    obey(play);
    return ends;
}

/* End sessions, one each 300 microseconds. */
static void run(struct play *play, uint32_t count)
{
    for (uint32_t ix = 0; ix < count; ix++) {
        play->rig.now_ns += 300 * US;
        (void)end_one(play, 0);
    }
}

/* Sessions that are claimed, and do not run. */
static uint32_t held(const struct play *play)
{
    uint32_t count;
    (void)sched_in_flight(engine_sched(play->rig.engine), &count);
    assert_true(count >= play->count);
    return count - play->count;
}

static void begin(struct play *play, const char *head)
{
    submit(play, head);
    obey(play);
}

static const char plain[] = "sluice: 1\nname: wave\nlimits: {sessions: 2}\n";

/* Begin, until sessions are held; return how many. */
static uint32_t warm_up(struct play *play)
{
    begin(play, plain);
    run(play, WARM);
    uint32_t count = held(play);
    assert_true(count > 0);
    return count;
}

/* End all, of which no more than one may begin at a time from here on. */
static void run_out_alone(struct play *play)
{
    while (play->began < TASKS) {
        play->rig.now_ns += 300 * US;
        assert_true(end_one(play, 0));
        rig_wait(&play->rig, MS_NS);
        obey(play);
        assert_true(play->count <= 1);
    }
}

static void short_sessions_are_claimed_ahead(void **state)
{
    (void)state;
    struct play play = {0};
    begin(&play, plain);
    assert_int_equal(held(&play), 0);
    run(&play, 20); /* too few to tell */
    assert_int_equal(held(&play), 0);
    run(&play, WARM - 20);
    assert_true(held(&play) > SESSIONS && held(&play) <= 16);
    uint32_t writes = play.rig.writes;
    run(&play, 64);
    assert_true(play.rig.writes - writes <= 16);
    run(&play, TASKS);
    assert_int_equal(play.most, SESSIONS);
    assert_int_equal(play.began, TASKS);
    assert_int_equal(play.refused, 0);
    rig_wait(&play.rig, 10 * MS_NS);
    rig_state(&play.rig, "t0", "done");
    rig_state(&play.rig, "t199", "done");
    rig_release(&play.rig);
}

static void longer_sessions_are_not(void **state)
{
    (void)state;
    struct play play = {0};
    begin(&play, plain);
    for (int ix = 0; ix < WARM; ix++) {
        play.rig.now_ns += 3 * MS_NS;
        assert_true(end_one(&play, 0));
        rig_wait(&play.rig, MS_NS);
        obey(&play);
        assert_int_equal(held(&play), 0);
    }
    rig_release(&play.rig);
}

/* All that is held is given back, and its tasks run later. */
static void expect_given_back(struct play *play, uint32_t count)
{
    assert_true(count > 0);
    obey(play);
    assert_int_equal(play->refused, count);
    assert_int_equal(held(play), 0);
}

static void a_lower_cap_holds_from_its_answer_on(void **state)
{
    (void)state;
    struct play play = {0};
    uint32_t count = warm_up(&play);
    uint32_t began = play.began;
    rig_expect(&play.rig, "{'verb':'cap','max':1}", "cap of run wave: 1");
    expect_given_back(&play, count);
    assert_int_equal(play.began, began);
    run_out_alone(&play);
    rig_release(&play.rig);
}

/* The claims are not held yet: their batch is being written. */
static void a_cap_counts_for_claims_that_are_being_written(void **state)
{
    (void)state;
    struct play play = {0};
    begin(&play, plain);
    while (play.rig.batch == NULL || held(&play) <= SESSIONS) {
        obey(&play);
        play.rig.now_ns += 300 * US;
        assert_true(end_first(&play, 0));
        engine_pass(play.rig.engine);
    }
    engine_request(play.rig.engine,
                   ++play.rig.last_request,
                   "operator",
                   "{\"verb\":\"cap\",\"max\":1}");
    obey(&play);
    assert_int_equal(held(&play), 0);
    run_out_alone(&play);
    rig_release(&play.rig);
}

static void a_pause_starts_nothing_that_is_held(void **state)
{
    (void)state;
    struct play play = {0};
    uint32_t count = warm_up(&play);
    uint32_t began = play.began;
    rig_expect(&play.rig, "{'verb':'pause'}", "paused");
    expect_given_back(&play, count);
    while (end_one(&play, 0)) {
        rig_wait(&play.rig, 10 * MS_NS);
        obey(&play);
    }
    assert_int_equal(play.began, began);
    rig_release(&play.rig);
}

static void a_failure_gives_all_back(void **state)
{
    (void)state;
    struct play play = {0};
    uint32_t count = warm_up(&play);
    assert_true(end_one(&play, 1));
    rig_wait(&play.rig, MS_NS);
    obey(&play);
    assert_int_equal(play.refused, count);
    assert_int_equal(held(&play), 0);
    rig_release(&play.rig);
}

static void what_is_held_for_long_is_given_back(void **state)
{
    (void)state;
    struct play play = {0};
    (void)warm_up(&play);
    rig_wait(&play.rig, 90 * MS_NS); /* what was last claimed is held, too */
    obey(&play);
    assert_int_equal(play.refused, 0);
    uint32_t count = held(&play);
    rig_wait(&play.rig, 20 * MS_NS);
    expect_given_back(&play, count);
    rig_release(&play.rig);
}

static void a_cancelled_task_that_is_held_never_starts(void **state)
{
    (void)state;
    struct play play = {0};
    (void)warm_up(&play);
    char request[64];
    uint32_t last = play.began + held(&play) - 1;
    (void)snprintf(request,
                   sizeof(request),
                   "{'verb':'cancel','task':'t%u'}",
                   last);
    (void)rig_ask(&play.rig, request);
    obey(&play);
    run(&play, TASKS);
    for (int ix = 0; ix < TASKS; ix++) {
        rig_wait(&play.rig, 10 * MS_NS);
        (void)end_one(&play, 0);
    }
    assert_int_equal(play.began, TASKS - 1);
    (void)snprintf(request, sizeof(request), "t%u", last);
    rig_state(&play.rig, request, "cancelled");
    rig_release(&play.rig);
}

static void a_stopping_engine_starts_nothing_that_is_held(void **state)
{
    (void)state;
    struct play play = {0};
    (void)warm_up(&play);
    uint32_t began = play.began;
    engine_stop(play.rig.engine);
    obey(&play);
    assert_int_equal(play.began, began);
    assert_int_equal(held(&play), 0);
    rig_release(&play.rig);
}

/* The next engine finds sessions of one slot: one runs, the others do not. */
static void the_next_engine_gives_back_what_was_held(void **state)
{
    (void)state;
    struct play play = {0};
    uint32_t count = warm_up(&play);
    uint32_t began = play.began;
    rig_restart(&play.rig);
    for (uint64_t token = 1; token <= began + count; token++) {
        bool runs = false;
        for (uint32_t slot = 1; slot < SLOTS_MAX; slot++) {
            runs = runs || play.running[slot] == token;
        }
        struct work_report found = {
            .type = runs ? WORK_STARTED : WORK_UNKNOWN,
        };
        report(&play, token, play.ended[token] ? exit_of(&play, 0) : found);
    }
    obey(&play);
    assert_int_equal(play.began, began);
    assert_int_equal(play.refused, count);
    assert_int_equal(held(&play), 0);
    while (play.began < TASKS) {
        rig_wait(&play.rig, 10 * MS_NS);
        obey(&play);
        assert_true(end_one(&play, 0));
    }
    assert_int_equal(play.most, SESSIONS);
    rig_release(&play.rig);
}

static void other_runs_claim_nothing_ahead(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "sluice: 1\nname: wave\nlimits: {sessions: 2}\n"
        "sync: {every: 500, run: y}\n",
        "sluice: 1\nname: wave\nlimits: {sessions: 2}\n"
        "agents: {a: {program: claude}}\n",
        "sluice: 1\nname: wave\nlimits: {sessions: 2, issues: 1}\n",
    };
    for (size_t ix = 0; ix < sizeof(heads) / sizeof(heads[0]); ix++) {
        struct play play = {0};
        begin(&play, heads[ix]);
        run(&play, WARM);
        assert_int_equal(held(&play), 0);
        rig_release(&play.rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_sessions_are_claimed_ahead),
        cmocka_unit_test(longer_sessions_are_not),
        cmocka_unit_test(a_lower_cap_holds_from_its_answer_on),
        cmocka_unit_test(a_cap_counts_for_claims_that_are_being_written),
        cmocka_unit_test(a_pause_starts_nothing_that_is_held),
        cmocka_unit_test(a_failure_gives_all_back),
        cmocka_unit_test(what_is_held_for_long_is_given_back),
        cmocka_unit_test(a_cancelled_task_that_is_held_never_starts),
        cmocka_unit_test(a_stopping_engine_starts_nothing_that_is_held),
        cmocka_unit_test(the_next_engine_gives_back_what_was_held),
        cmocka_unit_test(other_runs_claim_nothing_ahead),
    };
    return cmocka_run_group_tests_name("claims_ahead", tests, NULL, NULL);
}
