/* SPDX-License-Identifier: MIT */
#include "plan/node.h"

#include "base/mem.h"
#include "base/strbuf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What a test works with. */
struct fixture {
    struct node_tree tree;
    struct plan_errors errors;
    struct strbuf text;
};

static int set_up(void **state)
{
    *state = mem_zalloc(1, sizeof(struct fixture));
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    node_tree_release(&fixture->tree);
    plan_errors_release(&fixture->errors);
    strbuf_release(&fixture->text);
    mem_free(fixture);
    return 0;
}

static bool read_bytes(struct fixture *fixture, const char *text, size_t len)
{
    node_tree_release(&fixture->tree);
    plan_errors_release(&fixture->errors);
    return node_tree_read(&fixture->tree, text, len, &fixture->errors);
}

static bool read_text(struct fixture *fixture, const char *text)
{
    return read_bytes(fixture, text, strlen(text));
}

/* A node that is there. */
static const struct node *must(const struct node *node)
{
    if (node == NULL) {
        fail();
        abort();
    }
    return node;
}

/* The text must be refused with one error, at that place, that says `what`. */
static void
expect_stop(struct fixture *fixture, struct plan_mark mark, const char *what)
{
    const struct strbuf *text = &fixture->text;
    assert_false(read_bytes(fixture, strbuf_text(text), text->len));
    assert_int_equal(fixture->errors.count, 1);
    assert_non_null(strstr(fixture->errors.items[0].text, what));
    assert_int_equal(fixture->errors.items[0].mark.line, mark.line);
    assert_int_equal(fixture->errors.items[0].mark.column, mark.column);
}

static void a_node_is_small(void **state)
{
    (void)state;
    assert_true(sizeof(struct node) <= 40);
}

static void nothing_is_an_empty_tree(void **state)
{
    struct fixture *fixture = *state;
    static const char *const texts[] = {"", "\n\n", "# comment\n", "---\n"};
    for (size_t ix = 0; ix < ARRAY_COUNT(texts); ix++) {
        assert_true(read_text(fixture, texts[ix]));
        assert_int_equal(fixture->tree.count, 0);
    }
}

static void knows_children_and_siblings(void **state)
{
    struct fixture *fixture = *state;
    assert_true(read_text(fixture, "a: [1, {b: 2}, 3]\nc:\n  - d\n"));
    const struct node *root = fixture->tree.nodes;
    assert_int_equal(root->kind, NODE_MAPPING);
    assert_int_equal(root->count, 2);
    const struct node *key = must(node_first(root));
    assert_string_equal(key->text, "a");
    const struct node *list = node_value(key);
    assert_int_equal(list->count, 3);
    const struct node *item = must(node_first(list));
    assert_string_equal(item->text, "1");
    item = must(node_next(item));
    assert_int_equal(item->kind, NODE_MAPPING);
    assert_string_equal(node_value(must(node_first(item)))->text, "2");
    assert_null(node_next_key(must(node_first(item))));
    item = must(node_next(item));
    assert_string_equal(item->text, "3");
    assert_null(node_next(item));
    assert_null(node_first(item));
    key = must(node_next_key(key));
    assert_string_equal(key->text, "c");
    assert_string_equal(must(node_first(node_value(key)))->text, "d");
    assert_null(node_next_key(key));
}

static void places_count_characters_from_one(void **state)
{
    struct fixture *fixture = *state;
    assert_true(read_text(fixture, "é: \"日本\"\nb:   c\n"));
    const struct node *key = must(node_first(fixture->tree.nodes));
    assert_int_equal(key->line, 1);
    assert_int_equal(key->column, 1);
    assert_int_equal(node_value(key)->column, 4);
    key = must(node_next_key(key));
    assert_int_equal(key->line, 2);
    assert_int_equal(node_value(key)->column, 6);
}

static void keeps_apart_plain_and_quoted(void **state)
{
    struct fixture *fixture = *state;
    assert_true(
        read_text(fixture, "- 3\n- \"3\"\n- '3'\n- |\n  3\n- >-\n  3\n"));
    const struct node *item = must(node_first(fixture->tree.nodes));
    assert_int_equal(item->kind, NODE_PLAIN);
    for (item = node_next(item); item != NULL; item = node_next(item)) {
        assert_int_equal(item->kind, NODE_QUOTED);
        assert_int_equal(item->text[0], '3');
    }
}

/* As Python writes them; what follows keeps its place (13.14). */
static void json_may_have_surrogate_pairs(void **state)
{
    struct fixture *fixture = *state;
    assert_true(read_text(fixture,
                          " {\"a\": \"\\ud83d\\uDE00|\\\\ud83d\\\\ude00\","
                          " \"\\uD83D\\uDE80\": 7}"));
    const struct node *key = must(node_first(fixture->tree.nodes));
    const struct node *value = must(node_value(key));
    assert_true(key->json && value->json);
    /* What follows an escaped backslash is no escape. */
    assert_string_equal(value->text, "\xf0\x9f\x98\x80|\\ud83d\\ude00");
    key = must(node_next_key(key));
    assert_string_equal(key->text, "\xf0\x9f\x9a\x80");
    assert_int_equal(key->count, 4);
    assert_int_equal(key->column, 39);
    assert_false(must(node_value(key))->json);
    assert_int_equal(node_value(key)->column, 55);
}

/* In YAML quotes stay quotes, and pairs are an error, as ever. */
static void a_flow_mapping_without_quotes_is_no_json(void **state)
{
    struct fixture *fixture = *state;
    assert_true(read_text(fixture, "{a: \"none\"}"));
    assert_false(node_value(must(node_first(fixture->tree.nodes)))->json);
    assert_false(read_text(fixture, "a: \"\\ud83d\\ude00\""));
    assert_false(read_text(fixture, "{\"a\": \"\\ud83d\"}"));
    assert_true(read_text(fixture, "{\"a\": \"\\a x\"}"));
    assert_int_equal(fixture->errors.count, 1); /* a control character */
}

static void goes_on_after_what_can_be_passed_over(void **state)
{
    struct fixture *fixture = *state;
    assert_true(read_text(fixture,
                          "a: &x 1\nb: *x\n<<: {c: 1}\nd: !t 2\na: 3\n"
                          "[e]: 4\n\"\": 5\nf: \"\\0\"\n"));
    assert_int_equal(fixture->errors.count, 8);
    const struct node *key = must(node_first(fixture->tree.nodes));
    assert_int_equal(key->kind, NODE_PLAIN);
    assert_int_equal(node_value(key)->kind, NODE_PLAIN);
    key = must(node_next_key(key));
    assert_int_equal(node_value(key)->kind, NODE_BAD);
    key = must(node_next_key(key));
    assert_int_equal(key->kind, NODE_BAD);
}

static void finds_duplicates_among_many_keys(void **state)
{
    struct fixture *fixture = *state;
    for (int ix = 0; ix < 100000; ix++) {
        strbuf_addf(&fixture->text, "key%d: %d\n", ix, ix);
    }
    strbuf_adds(&fixture->text, "key5: again\n");
    const struct strbuf *text = &fixture->text;
    assert_true(read_bytes(fixture, strbuf_text(text), text->len));
    assert_int_equal(fixture->errors.count, 1);
    assert_string_equal(fixture->errors.items[0].text,
                        "duplicate key \"key5\" (first at 6:1)");
    assert_int_equal(fixture->errors.items[0].mark.line, 100001);
}

static void refuses_depth_at_once(void **state)
{
    struct fixture *fixture = *state;
    strbuf_pad(&fixture->text, '[', 200000);
    expect_stop(fixture, (struct plan_mark){1, 65}, "nested deeper");
    strbuf_clear(&fixture->text);
    for (int ix = 0; ix < 200000; ix++) {
        strbuf_adds(&fixture->text, "- ");
    }
    expect_stop(fixture, (struct plan_mark){1, 129}, "nested deeper");
}

static void the_deepest_allowed_is_read(void **state)
{
    struct fixture *fixture = *state;
    strbuf_pad(&fixture->text, '[', NODE_DEPTH_MAX);
    strbuf_pad(&fixture->text, ']', NODE_DEPTH_MAX);
    const struct strbuf *text = &fixture->text;
    assert_true(read_bytes(fixture, strbuf_text(text), text->len));
    assert_int_equal(fixture->tree.count, NODE_DEPTH_MAX);
}

static void refuses_a_text_that_is_too_long(void **state)
{
    struct fixture *fixture = *state;
    strbuf_adds(&fixture->text, "a: ");
    strbuf_pad(&fixture->text, 'x', NODE_SCALAR_BYTES_MAX + 1);
    expect_stop(fixture, (struct plan_mark){1, 4}, "at most 1048576 bytes");
    fixture->text.text[fixture->text.len - 1] = ' ';
    const struct strbuf *text = &fixture->text;
    assert_true(read_bytes(fixture, strbuf_text(text), text->len));
}

static void does_not_read_a_huge_text_to_its_end(void **state)
{
    struct fixture *fixture = *state;
    strbuf_adds(&fixture->text, "a: \"");
    strbuf_pad(&fixture->text, 'x', (size_t)64 << 20);
    expect_stop(fixture, (struct plan_mark){1, 2}, "more than 4 MiB");
}

static void refuses_a_file_that_is_too_large(void **state)
{
    struct fixture *fixture = *state;
    /* The size alone decides: the text is not looked at. */
    assert_false(read_bytes(fixture, "", (size_t)NODE_FILE_BYTES_MAX + 1));
    assert_string_equal(fixture->errors.items[0].text,
                        "the file is larger than 256 MiB");
}

static void every_single_bad_byte_is_found(void **state)
{
    struct fixture *fixture = *state;
    for (int byte = 0; byte < 256; byte++) {
        for (size_t at = 0; at < 20; at++) {
            char text[] = "\"aaaaaaaaaaaaaaaaaaaa\"";
            text[at + 1] = (char)byte;
            bool control =
                byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r';
            bool good = !control && byte != '"' && byte != '\\' && byte < 0x7f;
            if (byte == '"' || byte == '\\') {
                continue; /* these end or escape the text */
            }
            assert_int_equal(read_bytes(fixture, text, sizeof(text) - 1), good);
            if (!good) {
                assert_int_equal(fixture->errors.items[0].mark.column, at + 2);
            }
        }
    }
}

static void all_text_cut_short_is_refused_or_read(void **state)
{
    struct fixture *fixture = *state;
    static const char text[] = "a: {b: [\"c\\u00e9\", 'd'], e: |\n  f\n}\n"
                               "g:\n  - h: é\n    i: >\n      j\n  - &k l\n"
                               "# m\n? n\n: *k\n";
    for (size_t len = 0; len <= sizeof(text) - 1; len++) {
        /* A copy of that size, so that a sanitizer sees every step outside. */
        char *copy = mem_strndup(text, len);
        if (!read_bytes(fixture, copy, len)) {
            assert_true(fixture->errors.count > 0);
        }
        mem_free(copy);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_node_is_small),
        TEST(nothing_is_an_empty_tree),
        TEST(knows_children_and_siblings),
        TEST(places_count_characters_from_one),
        TEST(keeps_apart_plain_and_quoted),
        TEST(json_may_have_surrogate_pairs),
        TEST(a_flow_mapping_without_quotes_is_no_json),
        TEST(goes_on_after_what_can_be_passed_over),
        TEST(finds_duplicates_among_many_keys),
        TEST(refuses_depth_at_once),
        TEST(the_deepest_allowed_is_read),
        TEST(refuses_a_text_that_is_too_long),
        TEST(does_not_read_a_huge_text_to_its_end),
        TEST(refuses_a_file_that_is_too_large),
        TEST(every_single_bad_byte_is_found),
        TEST(all_text_cut_short_is_refused_or_read),
    };
#undef TEST
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("node", tests, NULL, NULL);
}
