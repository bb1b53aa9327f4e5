/* SPDX-License-Identifier: MIT */
/* Trailers of merge commits, walks over them, and the memory of gates. */
#include "git/receipt.h"

#include "base/mem.h"
#include "git/gate_memory.h"

#include <ftw.h>
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
    strbuf_clear(&out);
    gate_memory_clean(&out, "\x1b[1@a\x1b[@b", 10, false); /* not letters */
    gate_memory_clean(&out, "cde", 1, false); /* and nothing behind it */
    assert_string_equal(strbuf_text(&out), "abc");
    strbuf_release(&out);
}

/* --- walks over a repository --- */

static int remove_one(const char *path,
                      const struct stat *status,
                      int type,
                      struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

/* Call git; return the id that it prints, if any. */
static struct git_id
id_of(struct git *git, const char *const *args, const char *input)
{
    struct diag diag = {0};
    struct strbuf output = {0};
    struct git_id id = {0};
    struct git_call call = {.args = args, .input = input, .output = &output};
    enum err err = git_call(git, &call, NULL, &diag);
    if (err == ERR_OK && output.len > 0) {
        err = git_first_id(&output, &id, &diag);
    }
    strbuf_release(&output);
    if (err != ERR_OK) {
        fail_msg("%s", diag.text);
    }
    return id;
}

/* Make a commit; `parent`: NULL or its parent. */
static struct git_id
commit(struct git *git, const struct git_id *parent, const char *message)
{
    struct git_id tree = id_of(git, PROC_ARGS("mktree"), "");
    return id_of(git,
                 PROC_ARGS("commit-tree",
                           tree.text,
                           parent != NULL ? "-p" : NULL,
                           parent != NULL ? parent->text : NULL),
                 message);
}

/* Append the subject of a commit, after a check of the rest. */
static void on_commit(void *ctx, const struct receipt_commit *commit)
{
    struct strbuf *seen = ctx;
    static const char empty[] = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
    assert_int_equal(strlen(commit->commit), 40);
    assert_string_equal(commit->tree, empty);
    strbuf_add(seen, commit->message, strcspn(commit->message, "\n"));
    strbuf_adds(seen, " ");
}

/* Require the commits of a walk, newest first. */
static void walks(struct git *git,
                  const struct git_id *tip,
                  const char *base,
                  const char *run,
                  const char *expected)
{
    struct diag diag = {0};
    struct strbuf seen = {0};
    if (receipt_walk(git, tip->text, base, run, on_commit, &seen, &diag) !=
        ERR_OK) {
        fail_msg("%s", diag.text);
    }
    assert_string_equal(strbuf_text(&seen), expected);
    strbuf_release(&seen);
}

static void a_walk_ends_at_the_base_or_the_first_receipt(void **state)
{
    (void)state;
    char folder[] = "/tmp/sluice-walk-XXXXXX";
    struct diag diag = {0};
    struct git *git = NULL;
    assert_non_null(mkdtemp(folder));
    struct git *maker = git_prepare(folder);
    (void)id_of(maker, PROC_ARGS("init", "--quiet", "--bare", "."), NULL);
    git_close(maker);
    assert_int_equal(git_open(&git, folder, &diag), ERR_OK);

    struct git_id one = commit(git, NULL, "one\n");
    struct git_id two = commit(git, &one, "two\n\nSluice-Run: r\n");
    struct git_id three = commit(git, &two, "three\n\nSluice-Run: r\n");
    struct git_id four = commit(git, &three, "four\n");
    walks(git, &four, one.text, "r", "four three two ");
    walks(git, &four, four.text, "r", "four three two "); /* merged since */
    walks(git, &four, "", "r", "four three two ");
    walks(git, &four, one.text, "x", "four three two ");
    walks(git, &four, three.text, "x", "four "); /* no receipt */
    walks(git, &four, "", "x", "");
    struct git_id root = commit(git, NULL, "root\n\nSluice-Run: r\n");
    struct git_id next = commit(git, &root, "next\n");
    walks(git, &next, next.text, "r", "next root "); /* it has no parent */

    git_close(git);
    assert_int_equal(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* --- gates --- */

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
        cmocka_unit_test(a_walk_ends_at_the_base_or_the_first_receipt),
        cmocka_unit_test(failures_have_a_limit),
        cmocka_unit_test(output_is_cleaned),
        cmocka_unit_test(the_newest_verdict_counts_and_nonsense_does_not),
        cmocka_unit_test(trailers_are_in_the_last_paragraph_only),
    };
    return cmocka_run_group_tests_name("receipt", tests, NULL, NULL);
}
