/* SPDX-License-Identifier: MIT */
#include "core/graph.h"

#include "base/mem.h"
#include "base/rng.h"
#include "tests/support/death.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { CHAIN_NODES = 1000000, RANDOM_NODES = 12, RANDOM_GRAPHS = 3000 };

/* The needs of a node, newest first, must be these. */
static void assert_needs(const struct graph *graph,
                         uint32_t node,
                         const uint32_t *expected,
                         uint32_t count)
{
    uint32_t ix = 0;
    for (uint32_t edge = graph_first_need(graph, node); edge != ID_NONE;
         edge = graph_next_need(graph, edge)) {
        assert_true(ix < count);
        assert_int_equal(graph_need(graph, edge), expected[ix++]);
        assert_int_equal(graph_dependent(graph, edge), node);
    }
    assert_int_equal(ix, count);
}

/* The dependents of a node, newest first, must be these. */
static void assert_dependents(const struct graph *graph,
                              uint32_t node,
                              const uint32_t *expected,
                              uint32_t count)
{
    uint32_t ix = 0;
    for (uint32_t edge = graph_first_dependent(graph, node); edge != ID_NONE;
         edge = graph_next_dependent(graph, edge)) {
        assert_true(ix < count);
        assert_int_equal(graph_dependent(graph, edge), expected[ix++]);
        assert_int_equal(graph_need(graph, edge), node);
    }
    assert_int_equal(ix, count);
}

/* The cycle found from `first` on must be exactly this one; 0 for none. */
static void assert_cycle(const struct graph *graph,
                         uint32_t first,
                         const uint32_t *expected,
                         uint32_t count)
{
    uint32_t found_count = 99;
    uint32_t *found = graph_find_cycle(graph, first, &found_count);
    assert_int_equal(found_count, count);
    if (count == 0) {
        assert_null(found);
    } else {
        assert_non_null(found);
        assert_memory_equal(found, expected, count * sizeof(found[0]));
    }
    mem_free(found);
}

static bool has_need(const struct graph *graph, uint32_t node, uint32_t need)
{
    uint32_t edge = graph_first_need(graph, node);
    while (edge != ID_NONE && graph_need(graph, edge) != need) {
        edge = graph_next_need(graph, edge);
    }
    return edge != ID_NONE;
}

static void an_empty_graph_has_nothing(void **state)
{
    (void)state;
    struct graph graph = {0};
    assert_cycle(&graph, 0, NULL, 0);
    assert_int_equal(graph_bytes(&graph), 0);
    graph_truncate(&graph, 0, 0);
    graph_add_nodes(&graph, 0);
    assert_int_equal(graph.node_count, 0);
    graph_release(&graph);
    graph_release(&graph);
}

static void new_nodes_have_no_edges(void **state)
{
    (void)state;
    struct graph graph = {0};
    graph_add_nodes(&graph, 3);
    graph_add_nodes(&graph, 2);
    assert_int_equal(graph.node_count, 5);
    for (uint32_t node = 0; node < 5; node++) {
        assert_int_equal(graph_first_need(&graph, node), ID_NONE);
        assert_int_equal(graph_first_dependent(&graph, node), ID_NONE);
    }
    assert_cycle(&graph, 0, NULL, 0);
    graph_release(&graph);
}

static void both_lists_are_newest_first(void **state)
{
    (void)state;
    struct graph graph = {0};
    graph_add_nodes(&graph, 4);
    graph_add_need(&graph, 3, 0);
    graph_add_need(&graph, 3, 1);
    graph_add_need(&graph, 2, 0);
    graph_add_need(&graph, 3, 2);
    assert_needs(&graph, 3, (uint32_t[]){2, 1, 0}, 3);
    assert_needs(&graph, 2, (uint32_t[]){0}, 1);
    assert_needs(&graph, 0, NULL, 0);
    assert_dependents(&graph, 0, (uint32_t[]){2, 3}, 2);
    assert_dependents(&graph, 1, (uint32_t[]){3}, 1);
    assert_dependents(&graph, 3, NULL, 0);
    graph_release(&graph);
}

static void the_same_need_twice_is_two_edges(void **state)
{
    (void)state;
    struct graph graph = {0};
    graph_add_nodes(&graph, 2);
    graph_add_need(&graph, 1, 0);
    graph_add_need(&graph, 1, 0);
    assert_int_equal(graph.edge_count, 2);
    assert_needs(&graph, 1, (uint32_t[]){0, 0}, 2);
    assert_dependents(&graph, 0, (uint32_t[]){1, 1}, 2);
    assert_cycle(&graph, 0, NULL, 0);
    graph_release(&graph);
}

static void an_edge_may_join_old_and_new_nodes(void **state)
{
    (void)state;
    struct graph graph = {0};
    graph_add_nodes(&graph, 1);
    for (uint32_t node = 1; node < 100; node++) {
        graph_add_nodes(&graph, 1);
        graph_add_need(&graph, node, 0);
    }
    for (uint32_t node = 1; node < 100; node++) {
        assert_needs(&graph, node, (uint32_t[]){0}, 1);
    }
    uint32_t edge = graph_first_dependent(&graph, 0);
    for (uint32_t node = 99; node >= 1; node--) {
        assert_int_equal(graph_dependent(&graph, edge), node);
        edge = graph_next_dependent(&graph, edge);
    }
    assert_int_equal(edge, ID_NONE);
    graph_release(&graph);
}

static void what_was_reserved_is_not_allocated_again(void **state)
{
    (void)state;
    struct graph graph = {0};
    graph_reserve(&graph, 100, 300);
    size_t bytes = graph_bytes(&graph);
    assert_int_equal(bytes,
                     100 * sizeof(struct graph_node) +
                         300 * sizeof(struct graph_edge));
    const struct graph_node *nodes = graph.nodes;
    const struct graph_edge *edges = graph.edges;
    graph_add_nodes(&graph, 100);
    for (uint32_t ix = 0; ix < 300; ix++) {
        graph_add_need(&graph, 1 + ix % 99, 0);
    }
    assert_ptr_equal(graph.nodes, nodes);
    assert_ptr_equal(graph.edges, edges);
    assert_int_equal(graph_bytes(&graph), bytes);
    graph_reserve(&graph, 1, 1); /* never less than before */
    assert_int_equal(graph_bytes(&graph), bytes);
    graph_release(&graph);
    assert_int_equal(graph_bytes(&graph), 0);
}

static void truncate_leaves_no_trace(void **state)
{
    (void)state;
    struct graph graph = {0};
    graph_add_nodes(&graph, 3);
    graph_add_need(&graph, 1, 0);
    graph_add_need(&graph, 2, 1);

    /* New nodes, and new edges in every direction, also between old ones. */
    graph_add_nodes(&graph, 2);
    graph_add_need(&graph, 3, 0);
    graph_add_need(&graph, 4, 3);
    graph_add_need(&graph, 0, 4);
    graph_add_need(&graph, 2, 0);
    assert_cycle(&graph, 3, (uint32_t[]){0, 4, 3}, 3);

    graph_truncate(&graph, 3, 2);
    assert_int_equal(graph.node_count, 3);
    assert_int_equal(graph.edge_count, 2);
    assert_needs(&graph, 0, NULL, 0);
    assert_needs(&graph, 1, (uint32_t[]){0}, 1);
    assert_needs(&graph, 2, (uint32_t[]){1}, 1);
    assert_dependents(&graph, 0, (uint32_t[]){1}, 1);
    assert_dependents(&graph, 1, (uint32_t[]){2}, 1);
    assert_dependents(&graph, 2, NULL, 0);
    assert_cycle(&graph, 0, NULL, 0);

    /* The next node gets the same number, and nothing of the old one. */
    graph_add_nodes(&graph, 1);
    assert_needs(&graph, 3, NULL, 0);
    assert_dependents(&graph, 3, NULL, 0);
    graph_truncate(&graph, 0, 0);
    assert_int_equal(graph.node_count, 0);
    graph_release(&graph);
}

static void truncate_to_the_present_changes_nothing(void **state)
{
    (void)state;
    struct graph graph = {0};
    graph_add_nodes(&graph, 2);
    graph_add_need(&graph, 1, 0);
    graph_truncate(&graph, 2, 1);
    assert_needs(&graph, 1, (uint32_t[]){0}, 1);
    graph_truncate(&graph, 2, 0);
    assert_needs(&graph, 1, NULL, 0);
    assert_dependents(&graph, 0, NULL, 0);
    graph_release(&graph);
}

static void a_node_that_needs_itself_is_a_cycle_of_one(void **state)
{
    (void)state;
    struct graph graph = {0};
    graph_add_nodes(&graph, 3);
    graph_add_need(&graph, 1, 1);
    assert_cycle(&graph, 0, (uint32_t[]){1}, 1);
    graph_release(&graph);
}

static void a_cycle_is_named_in_order_smallest_first(void **state)
{
    (void)state;
    struct graph graph = {0};
    graph_add_nodes(&graph, 8);
    graph_add_need(&graph, 0, 6); /* the way in is not part of it */
    graph_add_need(&graph, 6, 2);
    graph_add_need(&graph, 2, 7);
    graph_add_need(&graph, 7, 4);
    graph_add_need(&graph, 4, 6);
    graph_add_need(&graph, 7, 1); /* a way out neither */
    assert_cycle(&graph, 0, (uint32_t[]){2, 7, 4, 6}, 4);
    graph_release(&graph);
}

static void a_diamond_is_no_cycle(void **state)
{
    (void)state;
    struct graph graph = {0};
    graph_add_nodes(&graph, 4);
    graph_add_need(&graph, 3, 1);
    graph_add_need(&graph, 3, 2);
    graph_add_need(&graph, 1, 0);
    graph_add_need(&graph, 2, 0);
    assert_cycle(&graph, 0, NULL, 0);
    graph_release(&graph);
}

static void the_search_sees_what_new_nodes_need(void **state)
{
    (void)state;
    struct graph graph = {0};
    graph_add_nodes(&graph, 6);
    graph_add_need(&graph, 0, 1); /* a cycle of old nodes */
    graph_add_need(&graph, 1, 0);
    graph_add_need(&graph, 4, 3);
    assert_cycle(&graph, 3, NULL, 0); /* not reached from 3 on */
    assert_cycle(&graph, 6, NULL, 0); /* no node at all */
    assert_cycle(&graph, 0, (uint32_t[]){0, 1}, 2);
    graph_add_need(&graph, 5, 1); /* reached through a need */
    assert_cycle(&graph, 3, (uint32_t[]){0, 1}, 2);
    graph_release(&graph);
}

/* Each node of a long chain needs the one before it. */
static struct graph make_chain(void)
{
    struct graph graph = {0};
    graph_reserve(&graph, CHAIN_NODES, CHAIN_NODES);
    graph_add_nodes(&graph, CHAIN_NODES);
    for (uint32_t node = 1; node < CHAIN_NODES; node++) {
        graph_add_need(&graph, node, node - 1);
    }
    return graph;
}

static void a_chain_of_a_million_is_walked_without_recursion(void **state)
{
    (void)state;
    struct graph graph = make_chain();
    assert_cycle(&graph, 0, NULL, 0);
    assert_cycle(&graph, CHAIN_NODES - 1, NULL, 0); /* all of it in one go */
    graph_release(&graph);
}

static void a_cycle_of_a_million_is_named_whole(void **state)
{
    (void)state;
    struct graph graph = make_chain();
    graph_add_need(&graph, 0, CHAIN_NODES - 1);
    uint32_t count = 0;
    uint32_t *cycle = graph_find_cycle(&graph, 0, &count);
    assert_int_equal(count, CHAIN_NODES);
    assert_non_null(cycle);
    for (uint32_t ix = 0; ix < count; ix++) {
        assert_int_equal(cycle[ix], (CHAIN_NODES - ix) % CHAIN_NODES);
    }
    mem_free(cycle);
    graph_release(&graph);
}

/* Whether taking nodes without open needs away, again and again, ends early:
 * slow and obvious. */
static bool is_cyclic(const struct graph *graph)
{
    bool gone[RANDOM_NODES] = {false};
    uint32_t left = graph->node_count;
    for (uint32_t round = 0; round < graph->node_count; round++) {
        for (uint32_t node = 0; node < graph->node_count; node++) {
            uint32_t edge = graph_first_need(graph, node);
            while (edge != ID_NONE && gone[graph_need(graph, edge)]) {
                edge = graph_next_need(graph, edge);
            }
            if (edge == ID_NONE && !gone[node]) {
                gone[node] = true;
                left--;
            }
        }
    }
    return left > 0;
}

static void assert_is_cycle(const struct graph *graph,
                            const uint32_t *cycle,
                            uint32_t count)
{
    assert_true(count > 0);
    bool seen[RANDOM_NODES] = {false};
    for (uint32_t ix = 0; ix < count; ix++) {
        assert_true(cycle[ix] >= cycle[0]);
        assert_false(seen[cycle[ix]]);
        seen[cycle[ix]] = true;
        assert_true(has_need(graph, cycle[ix], cycle[(ix + 1) % count]));
    }
}

static void random_graphs_agree_with_taking_nodes_away(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 2024);
    uint32_t cyclic_count = 0;
    for (int round = 0; round < RANDOM_GRAPHS; round++) {
        struct graph graph = {0};
        uint32_t nodes = 1 + rng_below(&rng, RANDOM_NODES);
        graph_add_nodes(&graph, nodes);
        uint32_t edges = rng_below(&rng, nodes + nodes / 2 + 1);
        for (uint32_t ix = 0; ix < edges; ix++) {
            uint32_t dependent = rng_below(&rng, nodes);
            graph_add_need(&graph, dependent, rng_below(&rng, nodes));
        }
        uint32_t count = 0;
        uint32_t *cycle = graph_find_cycle(&graph, 0, &count);
        assert_int_equal(cycle != NULL, is_cyclic(&graph));
        if (cycle != NULL) {
            cyclic_count++;
            assert_is_cycle(&graph, cycle, count);
        }
        mem_free(cycle);
        graph_release(&graph);
    }
    /* Both kinds must have been met often for this to mean something. */
    assert_in_range(cyclic_count, RANDOM_GRAPHS / 5, RANDOM_GRAPHS / 5 * 4);
}

static void random_truncations_restore_the_lists(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 7);
    for (int round = 0; round < RANDOM_GRAPHS; round++) {
        struct graph before = {0};
        struct graph after = {0};
        uint32_t nodes = 1 + rng_below(&rng, RANDOM_NODES);
        uint32_t edges = rng_below(&rng, 30);
        graph_add_nodes(&before, nodes);
        graph_add_nodes(&after, nodes);
        for (uint32_t ix = 0; ix < edges; ix++) {
            uint32_t dependent = rng_below(&rng, nodes);
            uint32_t need = rng_below(&rng, nodes);
            graph_add_need(&before, dependent, need);
            graph_add_need(&after, dependent, need);
        }
        graph_add_nodes(&after, 5);
        for (uint32_t ix = rng_below(&rng, 30); ix > 0; ix--) {
            uint32_t dependent = rng_below(&rng, nodes + 5);
            graph_add_need(&after, dependent, rng_below(&rng, nodes + 5));
        }
        graph_truncate(&after, nodes, edges);
        assert_int_equal(after.node_count, before.node_count);
        assert_int_equal(after.edge_count, before.edge_count);
        assert_memory_equal(after.nodes,
                            before.nodes,
                            nodes * sizeof(before.nodes[0]));
        if (edges > 0) {
            assert_memory_equal(after.edges,
                                before.edges,
                                edges * sizeof(before.edges[0]));
        }
        graph_release(&before);
        graph_release(&after);
    }
}

static void add_edge_to_nowhere(void *ctx)
{
    graph_add_need(ctx, 0, 1);
}

static void truncate_upwards(void *ctx)
{
    graph_truncate(ctx, 2, 0);
}

static void add_too_many_nodes(void *ctx)
{
    graph_add_nodes(ctx, UINT32_MAX - 1);
}

static void misuse_stops_the_program(void **state)
{
    (void)state;
    struct graph graph = {0};
    graph_add_nodes(&graph, 1);
    death_expect(add_edge_to_nowhere, &graph, "need < graph->node_count");
    death_expect(truncate_upwards, &graph, "nodes <= graph->node_count");
    death_expect(add_too_many_nodes, &graph, "GRAPH_NODE_BITS");
    graph_release(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_graph_has_nothing),
        cmocka_unit_test(new_nodes_have_no_edges),
        cmocka_unit_test(both_lists_are_newest_first),
        cmocka_unit_test(the_same_need_twice_is_two_edges),
        cmocka_unit_test(an_edge_may_join_old_and_new_nodes),
        cmocka_unit_test(what_was_reserved_is_not_allocated_again),
        cmocka_unit_test(truncate_leaves_no_trace),
        cmocka_unit_test(truncate_to_the_present_changes_nothing),
        cmocka_unit_test(a_node_that_needs_itself_is_a_cycle_of_one),
        cmocka_unit_test(a_cycle_is_named_in_order_smallest_first),
        cmocka_unit_test(a_diamond_is_no_cycle),
        cmocka_unit_test(the_search_sees_what_new_nodes_need),
        cmocka_unit_test(a_chain_of_a_million_is_walked_without_recursion),
        cmocka_unit_test(a_cycle_of_a_million_is_named_whole),
        cmocka_unit_test(random_graphs_agree_with_taking_nodes_away),
        cmocka_unit_test(random_truncations_restore_the_lists),
        cmocka_unit_test(misuse_stops_the_program),
    };
    return cmocka_run_group_tests_name("graph", tests, NULL, NULL);
}
