/* SPDX-License-Identifier: MIT */
/* Trailers of merge commits, and the memory of gates. */
#include "git/receipt.h"

#include "base/mem.h"
#include "git/gate_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void a_trailer_is_one_line(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        const char *line;
    } cases[] = {
        {"make test", "X: make test\n"},
        {"make\n  test\r\n", "X: make test\n"},
        {"", "X: \n"},
        {" \t\n", "X: \n"},
        {"a\n\nX: forged\n", "X: a X: forged\n"},
        {"bell\a and \x7f", "X: bell and\n"},
        {"\xc3\xa9", "X: \xc3\xa9\n"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        struct strbuf out = {0};
        receipt_add(&out, "X", cases[ix].value);
        assert_string_equal(strbuf_text(&out), cases[ix].line);
        strbuf_release(&out);
    }
}

static void trailers_are_in_the_last_paragraph_only(void **state)
{
    (void)state;
    static const struct {
        const char *message;
        const char *value; /* NULL: none */
    } cases[] = {
        {"s\n\nTree: 1\n", "1"},
        {"s\n\nTree: 1", "1"},
        {"s\n\nTree: 1\n\n\n", "1"},
        {"s\n\nb: Tree: 2\n\nRun: x\nTree:  1\nTree: 3\n", "1"},
        {"s\n\nTree: 1\n\nlast words\n", NULL},
        {"Tree: 1\n", NULL}, /* the subject */
        {"Tree: 1\nTree: 2\n", NULL},
        {"s\n\nTreeless: 1\n", NULL},
        {"s\n\nTree\n", NULL},
        {"s\n\nTree:\n", ""},
        {"", NULL},
        {"\n\n", NULL},
        {"\n\nTree: 1\n", "1"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        struct strbuf out = {0};
        bool found = receipt_find(&out, cases[ix].message, "Tree");
        if (found != (cases[ix].value != NULL)) {
            fail_msg("\"%s\": %d", cases[ix].message, found);
        }
        if (found) {
            assert_string_equal(strbuf_text(&out), cases[ix].value);
        }
        strbuf_release(&out);
    }
}

static void a_value_is_found_in_any_trailer_of_the_name(void **state)
{
    (void)state;
    static const char message[] = "s\n\nIssue: c\n\nRun: a b\nIssue: a\n"
                                  "Issue: b\n";
    static const struct {
        const char *name;
        const char *value;
        bool found;
    } cases[] = {
        {"Issue", "a", true},
        {"Issue", "b", true},
        {"Run", "a\n b", true}, /* as it was written */
        {"Issue", "c", false},  /* not in the last paragraph */
        {"Issue", "", false},
        {"Issue", "a\nIssue: b", false},
        {"Run", "a", false},
        {"Is", "sue: a", false},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        if (receipt_has(message, cases[ix].name, cases[ix].value) !=
            cases[ix].found) {
            fail_msg("\"%s\": \"%s\"", cases[ix].name, cases[ix].value);
        }
    }
    assert_true(receipt_has("s\n\nIssue: a", "Issue", "a"));
    assert_false(receipt_has("Issue: a", "Issue", "a")); /* the subject */
    assert_false(receipt_has("", "Issue", ""));
}

static void output_is_cleaned(void **state)
{
    (void)state;
    static const char text[] = "half\n\x1b[31mred\x1b[0m\r\n\x1b"
                               "c\0\xff\t!\x1b[";
    struct strbuf out = {0};
    gate_memory_clean(&out, text, sizeof(text) - 1, true);
    assert_string_equal(strbuf_text(&out), "red\nc?\t!");
    strbuf_clear(&out);
    gate_memory_clean(&out, text, sizeof(text) - 1, false);
    assert_string_equal(strbuf_text(&out), "half\nred\nc?\t!");
    strbuf_clear(&out);
    gate_memory_clean(&out, "no line", 7, true); /* nothing whole: all of it */
    gate_memory_clean(&out, "", 0, true);
    assert_string_equal(strbuf_text(&out), "no line");
    strbuf_release(&out);
}

/* Write the file `gates` of a new directory; the caller removes both. */
static void put_gates(char *dir, const char *text)
{
    assert_non_null(mkdtemp(dir));
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/gates", dir);
    FILE *file = fopen(strbuf_text(&path), "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    strbuf_release(&path);
}

static void drop_gates(const char *dir)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/gates", dir);
    assert_int_equal(unlink(strbuf_text(&path)), 0);
    assert_int_equal(rmdir(dir), 0);
    strbuf_release(&path);
}

static void the_newest_verdict_counts_and_nonsense_does_not(void **state)
{
    (void)state;
    char dir[] = "/tmp/sluice-gates-XXXXXX";
    put_gates(
        dir,
        "{\"tree\":\"t1\",\"verdict\":\"passed\",\"tested_by\":\"r, a\"}\n"
        "{\"tree\":\"t1\",\"verdict\":\"failed\"}\n"
        "{\"tree\":\"t2\",\"verdict\":\"failed\",\"output\":\"no\"}\n"
        "{\"tree\":\"t3\",\"verdict\":\"good\"}\n"
        "{\"tree\":4,\"verdict\":\"passed\"}\n"
        "[]\nnot JSON\n"
        "{\"tree\":\"t5\",\"verdict\":\"flaky\"}");
    struct gate_memory memory = {0};
    gate_memory_read(&memory, dir);
    assert_int_equal(memory.count, 4);
    const struct gate_verdict *found =
        gate_memory_find(&memory, &(struct git_id){"t1"});
    assert_non_null(found);
    assert_int_equal(found->verdict, ATTEMPT_GATE_PASSED);
    assert_string_equal(found->tested_by, "r, a");
    assert_null(found->output);
    found = gate_memory_find(&memory, &(struct git_id){"t2"});
    assert_non_null(found);
    assert_int_equal(found->verdict, ATTEMPT_GATE_FAILED);
    assert_string_equal(found->output, "no");
    assert_null(gate_memory_find(&memory, &(struct git_id){"t3"}));
    found = gate_memory_find(&memory, &(struct git_id){"t5"});
    assert_non_null(found);
    assert_int_equal(found->verdict, ATTEMPT_GATE_FLAKY);
    gate_memory_release(&memory);
    drop_gates(dir);
    gate_memory_read(&memory, dir); /* no such file */
    assert_int_equal(memory.count, 0);
}

static void failures_have_a_limit(void **state)
{
    (void)state;
    struct gate_memory memory = {0};
    struct gate_verdict verdict = {
        .commit = {"c"},
        .verdict = ATTEMPT_GATE_FAILED,
        .tries = 1,
        .output = mem_zalloc(100001, 1),
    };
    memset(verdict.output, 'x', 100000);
    uint32_t kept = 0;
    for (int ix = 0; ix < 5; ix++) {
        (void)snprintf(verdict.tree.text, sizeof(verdict.tree.text), "%d", ix);
        kept += gate_memory_add(&memory, &verdict) ? 1 : 0;
    }
    assert_int_equal(kept, 2);
    mem_free(verdict.output);
    verdict.output = NULL;
    verdict.verdict = ATTEMPT_GATE_PASSED;
    assert_true(gate_memory_add(&memory, &verdict)); /* it is known anyway */
    gate_memory_release(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trailer_is_one_line),
        cmocka_unit_test(a_value_is_found_in_any_trailer_of_the_name),
        cmocka_unit_test(failures_have_a_limit),
        cmocka_unit_test(output_is_cleaned),
        cmocka_unit_test(the_newest_verdict_counts_and_nonsense_does_not),
        cmocka_unit_test(trailers_are_in_the_last_paragraph_only),
    };
    return cmocka_run_group_tests_name("receipt", tests, NULL, NULL);
}
