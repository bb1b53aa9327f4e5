/* SPDX-License-Identifier: MIT */
/* Graphs of plans made by hand: tasks with ids and needs. */
#include "report/task_graph.h"

#include "base/mem.h"
#include "tests/support/death.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TASKS_MAX = 8, NEEDS_MAX = 3 };

struct made {
    struct plan plan;
    struct plan_task tasks[TASKS_MAX];
    uint32_t needs[TASKS_MAX][NEEDS_MAX];
};

/* Add a task that needs up to two others; PLAN_NONE: none. */
static void
add(struct made *made, const char *id, uint32_t first, uint32_t second)
{
    uint32_t ix = made->plan.task_count++;
    struct plan_task *task = &made->tasks[ix];
    assert_true(ix < TASKS_MAX);
    made->plan.tasks = made->tasks;
    task->id = id;
    task->needs = made->needs[ix];
    if (first != PLAN_NONE) {
        task->needs[task->need_count++] = first;
    }
    if (second != PLAN_NONE) {
        task->needs[task->need_count++] = second;
    }
}

/* A chain a - b - c - d - e, and beside it x, which nobody needs. */
static void make_chain(struct made *made)
{
    *made = (struct made){0};
    add(made, "a", PLAN_NONE, PLAN_NONE);
    add(made, "b", 0, PLAN_NONE);
    add(made, "c", 1, PLAN_NONE);
    add(made, "d", 2, PLAN_NONE);
    add(made, "e", 3, PLAN_NONE);
    add(made, "x", PLAN_NONE, PLAN_NONE);
}

/* A graph of all tasks. */
static void make_graph(struct task_graph *graph, const struct made *made)
{
    task_graph_init(graph, &made->plan, made->plan.task_count);
    for (uint32_t ix = 0; ix < made->plan.task_count; ix++) {
        assert_true(task_graph_add(graph, ix));
    }
}

static uint32_t layer_of(const struct task_graph *graph, uint32_t task)
{
    const struct task_graph_node *node = task_graph_find(graph, task);
    assert_non_null(node);
    assert_int_equal(node->task, task);
    return node->layer;
}

static int32_t y_of(const struct task_graph *graph, uint32_t task)
{
    const struct task_graph_node *node = task_graph_find(graph, task);
    assert_non_null(node);
    return node->y;
}

/* The near tasks, as a string of their ids. */
static void expect_near(const struct made *made,
                        uint32_t task,
                        uint32_t steps,
                        const char *wanted)
{
    struct strbuf text = {0};
    bool *near = task_graph_near(&made->plan, task, steps);
    for (uint32_t ix = 0; ix < made->plan.task_count; ix++) {
        strbuf_adds(&text, near[ix] ? made->tasks[ix].id : "");
    }
    assert_string_equal(strbuf_text(&text), wanted);
    strbuf_release(&text);
    mem_free(near);
}

static uint32_t count(const char *text, const char *part)
{
    uint32_t found = 0;
    for (const char *at = strstr(text, part); at != NULL;
         at = strstr(at + 1, part)) {
        found++;
    }
    return found;
}

/* --- tests -------------------------------------------------------------- */

static void near_goes_in_both_directions(void **state)
{
    struct made made;
    (void)state;
    make_chain(&made);
    expect_near(&made, 2, 0, "c");
    expect_near(&made, 2, 1, "bcd");
    expect_near(&made, 2, 2, "abcde");
    expect_near(&made, 0, 2, "abc");
    expect_near(&made, 4, 1, "de");
    expect_near(&made, 5, 10, "x");
    expect_near(&made, 1, 1000, "abcde");
}

/* A step takes neighbours only of the tasks before it, in whatever order the
 * plan has them. */
static void a_step_is_one_need(void **state)
{
    struct made made = {0};
    (void)state;
    add(&made, "a", 1, PLAN_NONE);
    add(&made, "b", 2, PLAN_NONE);
    add(&made, "c", 3, PLAN_NONE);
    add(&made, "d", PLAN_NONE, PLAN_NONE);
    expect_near(&made, 3, 1, "cd");
    expect_near(&made, 0, 1, "ab");
    expect_near(&made, 0, 2, "abc");
}

static void a_task_is_after_all_that_it_needs(void **state)
{
    struct made made = {0};
    struct task_graph graph;
    (void)state;
    add(&made, "late", 2, 3); /* before its needs, in the plan */
    add(&made, "first", PLAN_NONE, PLAN_NONE);
    add(&made, "second", 1, PLAN_NONE);
    add(&made, "third", 1, 2);
    make_graph(&graph, &made);
    task_graph_lay(&graph);
    assert_int_equal(layer_of(&graph, 1), 0);
    assert_int_equal(layer_of(&graph, 2), 1);
    assert_int_equal(layer_of(&graph, 3), 2);
    assert_int_equal(layer_of(&graph, 0), 3);
    assert_int_equal(graph.layers, 4);
    task_graph_release(&graph);
}

/* What is not in the graph does not count. */
static void layers_are_of_the_tasks_in_it(void **state)
{
    struct made made;
    struct task_graph graph;
    (void)state;
    make_chain(&made);
    task_graph_init(&graph, &made.plan, 3);
    assert_true(task_graph_add(&graph, 4));
    assert_true(task_graph_add(&graph, 0));
    assert_true(task_graph_add(&graph, 3));
    task_graph_lay(&graph);
    assert_null(task_graph_find(&graph, 1));
    assert_int_equal(layer_of(&graph, 0), 0);
    assert_int_equal(layer_of(&graph, 3), 0);
    assert_int_equal(layer_of(&graph, 4), 1);
    assert_int_not_equal(y_of(&graph, 0), y_of(&graph, 3));
    assert_int_equal(y_of(&graph, 3), y_of(&graph, 4)); /* beside its need */
    task_graph_release(&graph);
}

static void tasks_of_a_column_do_not_overlap(void **state)
{
    struct made made = {0};
    struct task_graph graph;
    (void)state;
    add(&made, "a", PLAN_NONE, PLAN_NONE);
    add(&made, "b", PLAN_NONE, PLAN_NONE);
    for (uint32_t ix = 0; ix < 6; ix++) {
        add(&made, "n", ix % 2, ix % 3 == 0 ? 1 : PLAN_NONE);
    }
    make_graph(&graph, &made);
    task_graph_lay(&graph);
    for (uint32_t a = 0; a < graph.count; a++) {
        for (uint32_t b = 0; b < a; b++) {
            int32_t apart = graph.nodes[a].y - graph.nodes[b].y;
            assert_true(graph.nodes[a].layer != graph.nodes[b].layer ||
                        abs(apart) >= 38);
        }
        assert_true(graph.nodes[a].y < graph.height);
    }
    task_graph_release(&graph);
}

static void a_full_graph_keeps_what_it_has(void **state)
{
    struct made made;
    struct task_graph graph;
    (void)state;
    make_chain(&made);
    task_graph_init(&graph, &made.plan, 2);
    assert_true(task_graph_add(&graph, 3));
    assert_true(task_graph_add(&graph, 3)); /* once */
    assert_int_equal(graph.count, 1);
    assert_true(task_graph_add(&graph, 1));
    assert_false(task_graph_add(&graph, 0));
    assert_true(task_graph_add(&graph, 3));
    assert_int_equal(graph.count, 2);
    assert_null(task_graph_find(&graph, 0));
    task_graph_release(&graph);
    task_graph_init(&graph, &made.plan, 0);
    assert_false(task_graph_add(&graph, 0));
    task_graph_lay(&graph);
    assert_int_equal(graph.layers, 0);
    task_graph_release(&graph);
}

static void rows_have_the_given_order(void **state)
{
    static const uint32_t order[] = {4, 2, 4, 5, 0, 1};
    struct made made;
    struct task_graph graph;
    (void)state;
    make_chain(&made);
    task_graph_init(&graph, &made.plan, 5);
    for (uint32_t ix = 0; ix < 5; ix++) {
        assert_true(task_graph_add(&graph, ix)); /* not x */
    }
    task_graph_lay_rows(&graph, order, 6, 2);
    assert_int_equal(layer_of(&graph, 4), 0);
    assert_int_equal(layer_of(&graph, 2), 1);
    assert_int_equal(layer_of(&graph, 0), 0);
    assert_int_equal(layer_of(&graph, 1), 1);
    assert_int_equal(y_of(&graph, 4), y_of(&graph, 2));
    assert_int_equal(y_of(&graph, 0), y_of(&graph, 1));
    assert_true(y_of(&graph, 0) > y_of(&graph, 4));
    assert_int_equal(graph.layers, 2);
    task_graph_release(&graph);
}

static void lay_without_columns(void *ctx)
{
    struct task_graph *graph = ctx;
    static const uint32_t order[] = {0};
    task_graph_lay_rows(graph, order, 1, 0);
}

static void rows_need_a_column(void **state)
{
    struct made made;
    struct task_graph graph;
    (void)state;
    make_chain(&made);
    make_graph(&graph, &made);
    death_expect(lay_without_columns, &graph, "columns > 0");
    task_graph_release(&graph);
}

static void each_need_is_an_edge(void **state)
{
    struct made made;
    struct task_graph graph;
    struct strbuf out = {0};
    (void)state;
    make_chain(&made);
    task_graph_init(&graph, &made.plan, 4);
    for (uint32_t ix = 0; ix < 6; ix++) {
        if (ix != 2 && ix != 5) {
            assert_true(task_graph_add(&graph, ix)); /* c is missing */
        }
    }
    task_graph_lay(&graph);
    task_graph_open(&out, &graph, "Tasks");
    task_graph_add_needs(&out, &graph);
    task_graph_close(&out);
    assert_int_equal(count(strbuf_text(&out), "<path class=\"e\""), 2);
    assert_int_equal(count(strbuf_text(&out), "<svg"), 1);
    assert_int_equal(count(strbuf_text(&out), "</svg>"), 1);
    assert_non_null(strstr(strbuf_text(&out), "aria-label=\"Tasks\""));
    strbuf_release(&out);
    task_graph_release(&graph);
}

/* Draw the only task of a plan. */
static void draw(struct strbuf *out, const char *id, const char *href)
{
    struct made made = {0};
    struct task_graph graph;
    struct task_graph_look look = {
        .class_name = " s-done",
        .mark = "mark",
        .state = "done",
        .note = "in 5m",
        .href = href,
    };
    add(&made, id, PLAN_NONE, PLAN_NONE);
    make_graph(&graph, &made);
    task_graph_lay(&graph);
    strbuf_clear(out);
    task_graph_add_task(out, &graph, &graph.nodes[0], &look);
    task_graph_release(&graph);
}

static void tasks_are_links_if_they_have_an_address(void **state)
{
    struct strbuf out = {0};
    (void)state;
    draw(&out, "a", "/?run=r&amp;task=a#task");
    assert_non_null(
        strstr(strbuf_text(&out), "<a href=\"/?run=r&amp;task=a#task\"><g "));
    assert_non_null(strstr(strbuf_text(&out), "</g></a>\n"));
    assert_non_null(strstr(strbuf_text(&out), "<title>a, done</title>"));
    assert_non_null(strstr(strbuf_text(&out), "class=\"t s-done\""));
    assert_non_null(strstr(strbuf_text(&out), ">in 5m</text>"));
    draw(&out, "a", NULL);
    assert_null(strstr(strbuf_text(&out), "<a "));
    assert_null(strstr(strbuf_text(&out), "</a>"));
    strbuf_release(&out);
}

static void ids_are_escaped_and_cut(void **state)
{
    struct strbuf out = {0};
    (void)state;
    draw(&out, "<b>\"'&", NULL);
    assert_int_equal(count(strbuf_text(&out), "&lt;b&gt;&quot;&#39;&amp;"),
                     2); /* the tooltip and the name */
    assert_null(strstr(strbuf_text(&out), "<b>"));
    draw(&out, "12345678901234567", NULL);
    assert_non_null(strstr(strbuf_text(&out), ">12345678901234567</text>"));
    draw(&out, "123456789012345678", NULL);
    assert_non_null(strstr(strbuf_text(&out), ">1234567890123456…</text>"));
    assert_non_null(strstr(strbuf_text(&out), ">123456789012345678, done"));
    strbuf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_goes_in_both_directions),
        cmocka_unit_test(a_step_is_one_need),
        cmocka_unit_test(a_task_is_after_all_that_it_needs),
        cmocka_unit_test(layers_are_of_the_tasks_in_it),
        cmocka_unit_test(tasks_of_a_column_do_not_overlap),
        cmocka_unit_test(a_full_graph_keeps_what_it_has),
        cmocka_unit_test(rows_have_the_given_order),
        cmocka_unit_test(rows_need_a_column),
        cmocka_unit_test(each_need_is_an_edge),
        cmocka_unit_test(tasks_are_links_if_they_have_an_address),
        cmocka_unit_test(ids_are_escaped_and_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
