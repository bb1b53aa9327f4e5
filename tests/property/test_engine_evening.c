/* SPDX-License-Identifier: MIT */
/*
 * Evenings and weeks under virtual time, with the real engine: usage meters
 * that climb, resets, restarts in each phase, and a provider that refuses.
 */
#include "base/macros.h"
#include "base/mem.h"
#include "sim/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

enum { STARTS_MAX = 4000 };

/* What is seen of a world. Times are since its beginning. */
struct seen {
    int64_t starts[STARTS_MAX];
    uint32_t start_count;
    int64_t takes_ns; /* of every session */
    int64_t reset_ns; /* of the meter; 0: it does not tell */
    int64_t fall_ns;  /* when the meter is at 5 % again */
    double begins_at; /* percent */
    int64_t fail_ns;  /* from then on the program of the meters fails; 0: no */
    int64_t mend_ns;  /* from then on it works again; 0: it does not */
    uint32_t readings;
    int64_t last_reading_ns;
    uint32_t paused; /* hooks that were told */
    uint32_t resumed;
    uint32_t failed;
    uint32_t circuits;
    int64_t resumed_ns;
};

static const char evening_plan[] =
    "sluice: 1\n"
    "name: evening\n"
    "limits: {sessions: 3}\n"
    "usage: {run: m, every: 5m, steps: {60: 2, 70: 1, 80: 0}}\n"
    "hooks: {usage-paused: h, usage-resumed: h, usage-failed: h}\n"
    "tasks:\n";

/* The plan, with so many tasks. The caller frees it. */
static char *plan_of(const char *head, uint32_t tasks)
{
    struct strbuf text = {0};
    strbuf_adds(&text, head);
    for (uint32_t ix = 0; ix < tasks; ix++) {
        strbuf_addf(&text, "  - {id: t%u, run: x}\n", ix);
    }
    char *copy = mem_strndup(text.text, text.len);
    strbuf_release(&text);
    return copy;
}

static void on_session(void *ctx,
                       int64_t wall_ns,
                       const char *task,
                       struct world_scripted *out)
{
    struct seen *seen = ctx;
    (void)task;
    assert_true(seen->start_count < STARTS_MAX);
    seen->starts[seen->start_count++] = wall_ns - WORLD_WALL_NS;
    out->takes_ns = seen->takes_ns;
}

/* 50 % at first, 85 % after three hours, until it falls. */
static double percent_at(const struct seen *seen, int64_t now_ns)
{
    if (now_ns >= seen->fall_ns) {
        return 5;
    }
    double gone = (double)now_ns / (double)(3 * HOUR);
    return seen->begins_at + 35 * (gone < 1 ? gone : 1);
}

static bool on_meters(void *ctx, int64_t wall_ns, struct strbuf *out)
{
    struct seen *seen = ctx;
    int64_t now_ns = wall_ns - WORLD_WALL_NS;
    seen->readings++;
    seen->last_reading_ns = now_ns;
    strbuf_addf(out,
                "[{\"name\":\"week\",\"percent\":41},"
                "{\"name\":\"5h\",\"percent\":%.3f",
                percent_at(seen, now_ns));
    if (seen->reset_ns > 0) {
        strbuf_addf(out,
                    ",\"resets_at\":%lld",
                    (long long)((seen->reset_ns + WORLD_WALL_NS) / SECOND));
    }
    strbuf_adds(out, "}]");
    return seen->fail_ns == 0 || now_ns < seen->fail_ns ||
           (seen->mend_ns > 0 && now_ns >= seen->mend_ns);
}

static void on_told(void *ctx, int64_t wall_ns, const char *event)
{
    struct seen *seen = ctx;
    seen->paused += strstr(event, "\"hook\":\"usage-paused\"") != NULL;
    seen->failed += strstr(event, "\"hook\":\"usage-failed\"") != NULL;
    seen->circuits += strstr(event, "\"hook\":\"circuit-open\"") != NULL;
    if (strstr(event, "\"hook\":\"usage-resumed\"") != NULL) {
        seen->resumed++;
        seen->resumed_ns = wall_ns - WORLD_WALL_NS;
    }
}

/* Live through it; every task must be done in the end. */
static void live(struct seen *seen,
                 const char *plan,
                 const struct world_act *acts,
                 uint32_t act_count)
{
    struct world_script script = {
        .plan = plan,
        .acts = acts,
        .act_count = act_count,
        .ctx = seen,
        .session = on_session,
        .meters = on_meters,
        .told = on_told,
    };
    struct world_options options = {.seed = 1, .script = &script};
    struct world_report report = {0};
    if (!world_run(&options, &report)) {
        fail_msg("%s", strbuf_text(&report.fault));
    }
    assert_null(strstr(strbuf_text(&report.states), "parked"));
    assert_null(strstr(strbuf_text(&report.states), "ready"));
    world_report_release(&report);
}

/* Sessions that live at a time. */
static uint32_t live_at(const struct seen *seen, int64_t at_ns)
{
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < seen->start_count; ix++) {
        count += seen->starts[ix] <= at_ns &&
                 at_ns < seen->starts[ix] + seen->takes_ns;
    }
    return count;
}

/* Sessions that were started between two times. */
static uint32_t
started(const struct seen *seen, int64_t from_ns, int64_t until_ns)
{
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < seen->start_count; ix++) {
        count += seen->starts[ix] >= from_ns && seen->starts[ix] < until_ns;
    }
    return count;
}

/*
 * 60 % is reached after 51 minutes, 70 % after 103, 80 % after 154; a reading
 * comes up to 5 minutes later, and a session takes 10.
 */
static void assert_evening(const struct seen *seen)
{
    assert_int_equal(live_at(seen, 45 * MINUTE), 3);
    assert_int_equal(live_at(seen, 70 * MINUTE), 2);
    assert_int_equal(live_at(seen, 98 * MINUTE), 2);
    assert_int_equal(live_at(seen, 122 * MINUTE), 1);
    assert_int_equal(live_at(seen, 150 * MINUTE), 1);
    assert_int_equal(started(seen, 161 * MINUTE, 4 * HOUR + MINUTE), 0);
    assert_int_equal(live_at(seen, 172 * MINUTE), 0);
    /* One minute after the reset, at the cap that it had. */
    assert_int_equal(
        started(seen, 4 * HOUR + MINUTE, 4 * HOUR + MINUTE + 30 * SECOND),
        3);
    assert_int_equal(live_at(seen, 4 * HOUR + 30 * MINUTE), 3);
    assert_int_equal(seen->paused, 1);
    assert_int_equal(seen->resumed, 1);
    assert_int_equal(seen->failed, 0);
}

static struct seen evening(void)
{
    return (struct seen){
        .takes_ns = 10 * MINUTE,
        .reset_ns = 4 * HOUR,
        .fall_ns = 4 * HOUR,
        .begins_at = 50,
    };
}

static void the_cap_glides_down_and_comes_back(void **state)
{
    (void)state;
    char *plan = plan_of(evening_plan, 60);
    struct seen seen = evening();
    live(&seen, plan, NULL, 0);
    assert_evening(&seen);
    assert_int_equal(seen.start_count, 60); /* nothing was killed */
    mem_free(plan);
}

static void a_restart_in_each_phase_changes_nothing(void **state)
{
    (void)state;
    static const int64_t times_ns[] = {
        MINUTE,
        40 * MINUTE,       /* before any step */
        80 * MINUTE,       /* at 2 */
        130 * MINUTE,      /* at 1 */
        158 * MINUTE,      /* the pause begins */
        200 * MINUTE,      /* in it */
        4 * HOUR + SECOND, /* the reset has passed */
        4 * HOUR + MINUTE + SECOND,
        5 * HOUR, /* it is over */
    };
    char *plan = plan_of(evening_plan, 60);
    for (size_t ix = 0; ix < ARRAY_COUNT(times_ns); ix++) {
        struct world_act act = {.at_ns = times_ns[ix]};
        struct seen seen = evening();
        live(&seen, plan, &act, 1);
        assert_evening(&seen);
        assert_int_equal(seen.start_count, 60);
    }
    mem_free(plan);
}

static void override_stops_both_and_off_brings_them_back(void **state)
{
    (void)state;
    static const struct world_act acts[] = {
        {80 * MINUTE, "{\"verb\":\"usage\",\"override\":true}"},
        {110 * MINUTE, NULL}, /* it survives a restart */
        {140 * MINUTE, "{\"verb\":\"usage\",\"override\":false}"},
        {190 * MINUTE, "{\"verb\":\"usage\",\"override\":true}"},
        {210 * MINUTE, "{\"verb\":\"usage\",\"override\":false}"},
    };
    char *plan = plan_of(evening_plan, 80);
    struct seen seen = evening();
    live(&seen, plan, acts, ARRAY_COUNT(acts));
    assert_int_equal(live_at(&seen, 78 * MINUTE), 2);
    assert_int_equal(live_at(&seen, 82 * MINUTE), 3);
    assert_int_equal(live_at(&seen, 130 * MINUTE), 3);
    assert_int_equal(live_at(&seen, 152 * MINUTE), 1);
    assert_int_equal(live_at(&seen, 185 * MINUTE), 0);
    assert_int_equal(live_at(&seen, 195 * MINUTE), 3);
    assert_int_equal(live_at(&seen, 225 * MINUTE), 0);
    assert_int_equal(live_at(&seen, 4 * HOUR + 5 * MINUTE), 3);
    assert_int_equal(seen.start_count, 80);
    mem_free(plan);
}

static void
a_cap_that_is_set_meanwhile_is_the_one_it_comes_back_to(void **state)
{
    (void)state;
    static const struct world_act acts[] = {
        {200 * MINUTE, "{\"verb\":\"cap\",\"max\":2}"},
    };
    char *plan = plan_of(evening_plan, 60);
    struct seen seen = evening();
    live(&seen, plan, acts, ARRAY_COUNT(acts));
    assert_int_equal(live_at(&seen, 230 * MINUTE), 0);
    assert_int_equal(live_at(&seen, 4 * HOUR + 5 * MINUTE), 2);
    mem_free(plan);
}

static void without_a_reset_it_looks_again_at_growing_intervals(void **state)
{
    (void)state;
    char *plan = plan_of(evening_plan, 60);
    struct seen seen = evening();
    seen.reset_ns = 0;
    seen.fall_ns = 10 * HOUR;
    live(&seen, plan, NULL, 0);
    /* The pause begins before 160 minutes: 5, 10, 20, then 30 minutes each;
     * the last look before the fall was at most 30 minutes before it. */
    assert_int_equal(started(&seen, 161 * MINUTE, 10 * HOUR), 0);
    assert_true(seen.resumed_ns < 10 * HOUR + 31 * MINUTE);
    uint32_t in_pause = 4 + (600 - 160 - 35) / 30;
    assert_in_range(seen.readings, 31 + in_pause - 2, 31 + in_pause + 70);
    assert_int_equal(seen.paused, 1);
    assert_int_equal(seen.resumed, 1);
    mem_free(plan);
}

static void nothing_is_started_before_the_first_reading(void **state)
{
    (void)state;
    char *plan = plan_of(evening_plan, 6);
    struct seen seen = evening();
    seen.begins_at = 95;
    live(&seen, plan, NULL, 0);
    assert_int_equal(started(&seen, 0, 4 * HOUR + MINUTE), 0);
    assert_int_equal(seen.start_count, 6);
    /* A program that fails from the first time on lets nothing start. */
    struct seen failing = evening();
    failing.begins_at = 95;
    failing.fail_ns = 1;
    failing.mend_ns = 5 * HOUR;
    live(&failing, plan, NULL, 0);
    assert_int_equal(started(&failing, 0, 5 * HOUR), 0);
    assert_int_equal(failing.start_count, 6);
    assert_int_equal(failing.failed, 1);
    mem_free(plan);
}

static void meters_that_fail_change_nothing(void **state)
{
    (void)state;
    char *plan = plan_of(evening_plan, 60);
    struct seen seen = evening();
    seen.fail_ns = 80 * MINUTE; /* at a cap of 2 */
    live(&seen, plan, NULL, 0);
    assert_int_equal(live_at(&seen, 200 * MINUTE), 2);
    assert_int_equal(live_at(&seen, 4 * HOUR + 10 * MINUTE), 2);
    assert_int_equal(seen.failed, 1); /* told once */
    assert_int_equal(seen.paused, 0);
    mem_free(plan);
}

static void a_known_reset_ends_a_pause_also_without_a_reading(void **state)
{
    (void)state;
    char *plan = plan_of(evening_plan, 60);
    struct seen seen = evening();
    seen.fail_ns = 200 * MINUTE; /* in the pause */
    live(&seen, plan, NULL, 0);
    assert_int_equal(
        started(&seen, 4 * HOUR + MINUTE, 4 * HOUR + MINUTE + 30 * SECOND),
        3);
    assert_int_equal(seen.failed, 1);
    mem_free(plan);
}

/* --- a provider that refuses -------------------------------------------- */

static const char refusing_plan[] =
    "sluice: 1\n"
    "name: week\n"
    "limits: {sessions: 10}\n"
    "hooks: {circuit-open: h}\n"
    "tasks:\n"
    "  - {id: good0, run: x, provider: other}\n"
    "  - {id: good1, run: x, provider: other, needs: [good0]}\n"
    "  - {id: good2, run: x, provider: other, needs: [good1]}\n";

struct refusing {
    struct seen seen; /* of the provider that refuses */
    bool accepts;     /* the session begins, and then says so */
    bool names_time;
    int64_t until_ns;
    int64_t good_ns; /* last end of the other provider */
    char result[128];
};

static void on_refusing_session(void *ctx,
                                int64_t wall_ns,
                                const char *task,
                                struct world_scripted *out)
{
    struct refusing *refusing = ctx;
    int64_t now_ns = wall_ns - WORLD_WALL_NS;
    if (strncmp(task, "good", 4) == 0) {
        out->takes_ns = 10 * MINUTE;
        refusing->good_ns = now_ns + out->takes_ns;
        return;
    }
    struct seen *seen = &refusing->seen;
    assert_true(seen->start_count < STARTS_MAX);
    seen->starts[seen->start_count++] = now_ns;
    if (now_ns < refusing->until_ns) {
        out->takes_ns = refusing->accepts ? 5 * SECOND : SECOND / 100;
        out->code = 75;
        (void)snprintf(refusing->result,
                       sizeof(refusing->result),
                       "{\"outcome\":\"refused\",\"retry_at\":%lld}",
                       (long long)(wall_ns / SECOND) + 300);
        out->result = refusing->names_time ? refusing->result : NULL;
    }
}

static void refuse(bool accepts, bool names_time)
{
    struct strbuf text = {0};
    strbuf_adds(&text, refusing_plan);
    for (uint32_t ix = 0; ix < 20; ix++) {
        strbuf_addf(&text, "  - {id: t%u, run: x, provider: bad}\n", ix);
    }
    struct refusing refusing = {
        .accepts = accepts,
        .names_time = names_time,
        .until_ns = 6 * DAY,
    };
    struct world_script script = {
        .plan = strbuf_text(&text),
        .ctx = &refusing,
        .session = on_refusing_session,
        .told = on_told, /* struct seen comes first */
    };
    struct world_options options = {.seed = 1, .script = &script};
    struct world_report report = {0};
    if (!world_run(&options, &report)) {
        fail_msg("%s", strbuf_text(&report.fault));
    }
    uint32_t refused = started(&refusing.seen, 0, 6 * DAY);
    print_message("# %u starts in six days, %u notice\n",
                  refused,
                  refusing.seen.circuits);
    assert_true(refused < 1000);
    assert_int_equal(refusing.seen.circuits, 1);
    assert_int_equal(refusing.seen.start_count, refused + 20); /* all done */
    assert_true(refusing.good_ns < 31 * MINUTE); /* nobody else waits */
    world_report_release(&report);
    strbuf_release(&text);
}

static void scenario_53_refusals_of_six_days_cost_few_starts(void **state)
{
    (void)state;
    refuse(false, false);
}

static void the_same_after_each_session_has_begun(void **state)
{
    (void)state;
    refuse(true, false);
}

static void the_same_with_a_time_that_is_never_kept(void **state)
{
    (void)state;
    refuse(false, true);
    refuse(true, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cap_glides_down_and_comes_back),
        cmocka_unit_test(a_restart_in_each_phase_changes_nothing),
        cmocka_unit_test(override_stops_both_and_off_brings_them_back),
        cmocka_unit_test(
            a_cap_that_is_set_meanwhile_is_the_one_it_comes_back_to),
        cmocka_unit_test(without_a_reset_it_looks_again_at_growing_intervals),
        cmocka_unit_test(nothing_is_started_before_the_first_reading),
        cmocka_unit_test(meters_that_fail_change_nothing),
        cmocka_unit_test(a_known_reset_ends_a_pause_also_without_a_reading),
        cmocka_unit_test(scenario_53_refusals_of_six_days_cost_few_starts),
        cmocka_unit_test(the_same_after_each_session_has_begun),
        cmocka_unit_test(the_same_with_a_time_that_is_never_kept),
    };
    return cmocka_run_group_tests_name("engine_evening", tests, NULL, NULL);
}
