/* SPDX-License-Identifier: MIT */
#include "sim/chart.h"

#include "base/duration.h"
#include "tests/support/made.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void assert_time(int64_t time_ns, const char *time, const char *duration)
{
    struct strbuf buf = {0};
    chart_add_time(&buf, time_ns);
    assert_string_equal(strbuf_text(&buf), time);
    strbuf_clear(&buf);
    chart_add_duration(&buf, time_ns);
    assert_string_equal(strbuf_text(&buf), duration);
    strbuf_release(&buf);
}

static void writes_times_with_two_units_at_most(void **state)
{
    (void)state;
    assert_time(0, "0", "0 s");
    assert_time(SECOND_NS / 3, "0", "0 s");
    assert_time(45 * SECOND_NS, "45s", "45 s");
    assert_time(90 * SECOND_NS, "1m30s", "1 min 30 s");
    assert_time(1560 * SECOND_NS, "26m", "26 min");
    assert_time(5400 * SECOND_NS, "1h30m", "1 h 30 min");
    assert_time(86400 * SECOND_NS, "1d", "24 h");
    assert_time(200000 * SECOND_NS, "2d7h", "2 d 7 h");
}

static void rounds_to_the_second_and_drops_the_rest(void **state)
{
    (void)state;
    assert_time(60 * SECOND_NS - 1, "1m", "1 min");
    assert_time(3600 * SECOND_NS - 1, "1h", "1 h");
    assert_time(86400 * SECOND_NS - 1, "1d", "24 h");
    assert_time(7199 * SECOND_NS, "1h59m", "1 h 59 min");
    assert_time(3659 * SECOND_NS, "1h", "1 h");
    assert_time(INT64_MAX, "106751d23h", "106751 d 23 h");
}

static void ticks_are_round(void **state)
{
    (void)state;
    assert_int_equal(chart_tick_ns(0), SECOND_NS);
    assert_int_equal(chart_tick_ns(61 * SECOND_NS), 120 * SECOND_NS);
    assert_int_equal(chart_tick_ns(600 * SECOND_NS), 600 * SECOND_NS);
    assert_int_equal(chart_tick_ns(601 * SECOND_NS), 900 * SECOND_NS);
    assert_int_equal(chart_tick_ns(86400 * SECOND_NS), 86400 * SECOND_NS);
    assert_int_equal(chart_tick_ns(86401 * SECOND_NS), 172800 * SECOND_NS);
    assert_true(chart_tick_ns(INT64_MAX) > 0);
}

static void every_time_has_one_cell(void **state)
{
    (void)state;
    uint32_t cell = 0;
    for (int64_t time = -1; time <= 101; time++) {
        while (cell < 6 && time >= (int64_t)(cell + 1) * 100 / 7) {
            cell++;
        }
        assert_int_equal(chart_cell_of(time, 100, 7), cell);
    }
    assert_int_equal(chart_cell_of(INT64_MAX - 1, INT64_MAX, 80), 79);
    assert_int_equal(chart_cell_of(INT64_MAX / 2 - 1, INT64_MAX, 80), 39);
}

static void bars_are_sorted_by_lane_then_start(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    made_add(&made, "a", MADE_REVIEW, (struct made_when){2, 0, 0, 5});
    made_add(&made, "b", MADE_REVIEW, (struct made_when){0, 0, 5, 9});
    made_add(&made, "c", MADE_GATE, (struct made_when){0, 0, 0, 5});
    made_settle(&made);
    struct chart chart;
    chart_init(&chart, &made.plan, &made.result);
    assert_int_equal(chart.bar_count, 3);
    assert_int_equal(chart.lane_count, 3);
    assert_int_equal(chart.bars[0].span, 2);
    assert_int_equal(chart.bars[1].span, 1);
    assert_int_equal(chart.bars[2].span, 0);
    assert_int_equal(chart_lane_first(&chart, 0), 0);
    assert_int_equal(chart_lane_first(&chart, 1), 2);
    assert_int_equal(chart_lane_first(&chart, 2), 2);
    assert_int_equal(chart_lane_first(&chart, 3), 3);
    assert_int_equal(chart.class_spans[MADE_REVIEW], 2);
    chart_release(&chart);
    made_release(&made);
}

static void tasks_of_a_batch_are_one_bar(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    struct made_when when = {0, 0, 0, 5};
    made_add(&made, "a", MADE_REVIEW, when)->session = 7;
    made_add(&made, "other", MADE_GATE, (struct made_when){1, 0, 0, 5});
    made_add(&made, "b", MADE_REVIEW, when)->session = 7;
    made_settle(&made);
    struct chart chart;
    chart_init(&chart, &made.plan, &made.result);
    assert_int_equal(chart.bar_count, 2);
    assert_int_equal(chart.bars[0].task_count, 2);
    struct strbuf name = {0};
    assert_false(chart_add_name(&name, &chart, &chart.bars[0], 2));
    assert_true(chart_add_name(&name, &chart, &chart.bars[0], 3));
    assert_string_equal(strbuf_text(&name), "a+1");
    strbuf_release(&name);
    chart_release(&chart);
    made_release(&made);
}

static void a_long_id_gives_way_to_that_of_the_group(void **state)
{
    (void)state;
    struct plan_group group = {.id = "api-12"};
    struct made made;
    made_init(&made);
    struct made_when when = {0, 0, 0, 5};
    made_add(&made, "api-12/implement", MADE_IMPLEMENT, when);
    made.plan.groups = &group;
    made.plan.group_count = 1;
    made.plan.tasks[0].group = 0;
    made.plan.tasks[0].stage = "implement";
    made_settle(&made);
    struct chart chart;
    chart_init(&chart, &made.plan, &made.result);
    struct strbuf name = {0};
    assert_false(chart_add_name(&name, &chart, &chart.bars[0], 5));
    assert_true(chart_add_name(&name, &chart, &chart.bars[0], 15));
    assert_true(chart_add_name(&name, &chart, &chart.bars[0], 16));
    assert_string_equal(strbuf_text(&name), "api-12api-12/implement");
    strbuf_release(&name);
    chart_release(&chart);
    made_release(&made);
}

static void a_cell_belongs_to_the_bar_that_has_most_of_it(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    made_add(&made, "a", MADE_GATE, (struct made_when){0, 0, 0, 14});
    made_add(&made, "b", MADE_GATE, (struct made_when){0, 0, 14, 33});
    made_add(&made, "c", MADE_GATE, (struct made_when){0, 0, 41, 42});
    made_add(&made, "d", MADE_GATE, (struct made_when){0, 0, 42, 45});
    made_add(&made, "e", MADE_GATE, (struct made_when){0, 0, 55, 55});
    made_settle(&made);
    struct chart chart;
    chart_init(&chart, &made.plan, &made.result);
    const uint32_t none = CHART_NONE;
    const uint32_t expected[7] = {0, 1, 1, none, 3, 4, none};
    uint32_t cells[7];
    chart_cells(&chart, 0, 70 * SECOND_NS, cells, 7);
    for (size_t ix = 0; ix < 7; ix++) {
        assert_int_equal(cells[ix], expected[ix]);
    }
    chart_release(&chart);
    made_release(&made);
}

static void finds_when_the_work_was_starved(void **state)
{
    (void)state;
    struct made made;
    made_flood(&made, true);
    struct chart chart;
    chart_init(&chart, &made.plan, &made.result);
    assert_int_equal(chart.period_count, 3);
    assert_false(chart.periods[0].starved);
    assert_int_equal(chart.periods[0].class_ix, MADE_IMPLEMENT);
    assert_true(chart.periods[1].starved);
    assert_int_equal(chart.periods[1].class_ix, MADE_IMPLEMENT);
    assert_int_equal(chart.periods[1].start_ns, 0);
    assert_int_equal(chart.periods[1].end_ns, 1560 * SECOND_NS);
    assert_int_equal(chart.periods[2].class_ix, MADE_REVIEW);
    assert_false(chart.periods[2].starved);
    chart_release(&chart);
    made_release(&made);
}

static void sees_no_starvation_where_the_simulator_saw_none(void **state)
{
    (void)state;
    struct made made;
    made_flood(&made, true);
    made.class_results[MADE_IMPLEMENT].starved_ns = 0;
    struct chart chart;
    chart_init(&chart, &made.plan, &made.result);
    for (uint32_t ix = 0; ix < chart.period_count; ix++) {
        assert_false(chart.periods[ix].starved);
    }
    chart_release(&chart);
    made_release(&made);
}

static void
a_review_that_gates_work_starves_behind_one_that_does_not(void **state)
{
    (void)state;
    struct made made;
    made_init(&made);
    made_add(&made, "idle", MADE_REVIEW, (struct made_when){0, 0, 0, 60});
    made_add(&made, "other", MADE_GATE, (struct made_when){1, 0, 0, 5});
    made_add(&made, "gate", MADE_REVIEW, (struct made_when){0, 20, 60, 90});
    made_add(&made, "work", MADE_GATE, (struct made_when){0, 90, 90, 99});
    uint32_t needs[] = {2};
    made.plan.tasks[3].needs = needs;
    made.plan.tasks[3].need_count = 1;
    made_settle(&made);
    made.class_results[MADE_REVIEW].starved_ns = 40 * SECOND_NS;
    struct chart chart;
    chart_init(&chart, &made.plan, &made.result);
    assert_int_equal(chart.period_count, 2);
    assert_true(chart.periods[1].starved);
    assert_int_equal(chart.periods[1].class_ix, MADE_REVIEW);
    assert_int_equal(chart.periods[1].start_ns, 20 * SECOND_NS);
    assert_int_equal(chart.periods[1].end_ns, 60 * SECOND_NS);
    chart_release(&chart);
    made_release(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_times_with_two_units_at_most),
        cmocka_unit_test(rounds_to_the_second_and_drops_the_rest),
        cmocka_unit_test(ticks_are_round),
        cmocka_unit_test(every_time_has_one_cell),
        cmocka_unit_test(bars_are_sorted_by_lane_then_start),
        cmocka_unit_test(tasks_of_a_batch_are_one_bar),
        cmocka_unit_test(a_long_id_gives_way_to_that_of_the_group),
        cmocka_unit_test(a_cell_belongs_to_the_bar_that_has_most_of_it),
        cmocka_unit_test(finds_when_the_work_was_starved),
        cmocka_unit_test(sees_no_starvation_where_the_simulator_saw_none),
        cmocka_unit_test(
            a_review_that_gates_work_starves_behind_one_that_does_not),
    };
    return cmocka_run_group_tests_name("chart", tests, NULL, NULL);
}
