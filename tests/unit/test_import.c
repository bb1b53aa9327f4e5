/* SPDX-License-Identifier: MIT */
/*
 * What bodies refer to, what is made of texts, and what an import makes of
 * issues. The corpus, and all that needs files, is in the scenario
 * import-github.
 */
#include "plan/import.h"

#include "base/macros.h"
#include "base/mem.h"
#include "plan/import_internal.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* A body, and the references in it. */
struct sample {
    const char *body;
    const char *references; /* with a space behind each */
};

static void add_reference(void *ctx, const struct import_reference *reference)
{
    struct strbuf *out = ctx;
    strbuf_add(out, reference->owner.text, reference->owner.len);
    strbuf_adds(out, reference->owner.len > 0 ? "/" : "");
    strbuf_add(out, reference->name.text, reference->name.len);
    strbuf_addf(out,
                "#%" PRId64 "%s ",
                reference->number,
                reference->range ? "!" : "");
}

static void check_samples(const struct sample *samples, size_t count)
{
    for (size_t ix = 0; ix < count; ix++) {
        struct strbuf got = {0};
        import_scan(import_span(samples[ix].body), add_reference, &got);
        if (strcmp(strbuf_text(&got), samples[ix].references) != 0) {
            fail_msg("\"%s\" gives \"%s\", expected \"%s\"",
                     samples[ix].body,
                     strbuf_text(&got),
                     samples[ix].references);
        }
        strbuf_release(&got);
    }
}

static void finds_references_in_every_form(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {"depends on #1", "#1 "},
        {"depends on gh-12", "#12 "},
        {"depends on a/b#3", "a/b#3 "},
        {"depends on A-1/b.c_d#3.", "A-1/b.c_d#3 "},
        {"depends on b#3", "b#3 "},
        {"depends on issue#3", "#3 "},
        {"depends on issue #3", "#3 "},
        {"depends on https://github.com/a/b/issues/7", "a/b#7 "},
        {"depends on http://github.com/a/b/pull/7/files, #2", "a/b#7 #2 "},
        {"depends on github.com/a/b/issues/7", "a/b#7 "},
        {"depends on https://git.acme.org/a/b/issues/7?x=1#y", "a/b#7 "},
        {"depends on <https://github.com/a/b/issues/7>", "a/b#7 "},
        {"depends on [the form](https://github.com/a/b/issues/7)", "a/b#7 "},
        {"depends on [#7](https://github.com/a/b/issues/7), #8", "a/b#7 #8 "},
        {"depends on #1000000001", "#0 "},
        {"depends on #1a", ""},
        {"depends on #", ""},
        {"depends on # 1", ""},
        {"depends on example.com/a/b/issues/7", ""},
        {"depends on https://github.com/a/b/wiki/7", ""},
        {"depends on https://github.com/a/b/issues/", ""},
        {"depends on [x](https://github.com/a/b/issues/7", ""},
        {"depends on <https://github.com/a/b/issues/7", ""},
        {"depends on [", ""},
        {"depends on <", ""},
        {"depends on", ""},
        {"", ""},
    };
    check_samples(samples, ARRAY_COUNT(samples));
}

static void reads_lists_up_to_what_is_not_one(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {"depends on #1, #2 and #3; #4 & #5 + #6 / #7",
         "#1 #2 #3 #4 #5 #6 #7 "},
        {"depends on #1 #2", "#1 #2 "},
        {"depends on both #1 and on a/b#2", "#1 a/b#2 "},
        {"depends on #1. See #2", "#1 "},
        {"depends on #1, see #2", "#1 "},
        {"depends on #1 (see #9), #2", "#1 #2 "},
        {"depends on #1 (and #2), #3", "#1 #2 #3 "},
        {"depends on **#1**, _#2_", "#1 #2 "},
        {"(depends on #1) blocked by #2", "#1 #2 "},
        {"depends on #1 and needs #2", "#1 #2 "},
        {"depends on #1-#3", "#1 #3! "},
        {"depends on #1 to #3", "#1 #3! "},
        {"depends on #1 \xe2\x80\x93 #3", "#1 #3! "},
        {"depends on #1 - the form", "#1 "},
        {"depends on #1,\n#2 and\n#3\n#4", "#1 #2 #3 "},
        {"depends on #1_a, #2", ""},
        {"depends on #1,\n\n#2", "#1 "},
        {"depends on #1\n#2", "#1 "},
        {"depends on\n#1\n#2\n\n#3", "#1 #2 "},
        {"depends on:\n\n\n* #1\n\n* #2\nText #3", "#1 #2 "},
        {"## depends on\n1. #1\n2) #2\n# Next\n- #3", "#1 #2 "},
        {"- depends on:\n  - #1\n- #2", "#1 "},
        {"depends on:\n- a #1 and #2\n  more of it #3\n- #4", "#1 #4 "},
        {"requires:\n- a #1\n- #2", "#2 "},
        {"depends on:\n- [x] #1\n- [ ] #2\n- [X] #3", "#2 "},
    };
    check_samples(samples, ARRAY_COUNT(samples));
}

static void takes_no_example_for_a_statement(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {"`depends on #1` depends on `#2`", ""},
        {"a ` depends on #1", "#1 "},
        {"``a ` depends on #1`` depends on #2", "#2 "},
        {"```\ndepends on #1\n```\ndepends on #2", "#2 "},
        {"~~~\n```\ndepends on #1\n~~~\ndepends on #2", "#2 "},
        {"- ```\n  depends on #1\n  ```\ndepends on #2", "#2 "},
        {"````\n```\ndepends on #1\n````", ""},
        {"```a`b\ndepends on #1", "#1 "},
        {"> depends on #1\ndepends on #2", "#2 "},
        {"- > depends on #1", ""},
        {"<!-- depends on #1 -->depends on #2", "#2 "},
        {"<!-- a\ndepends on #1\n--> depends on #2", "#2 "},
        {"<!--> depends on #1", "#1 "},
        {"<PRE class=x>depends on #1</pre>depends on #2", "#2 "},
        {"<prefix> depends on #1", "#1 "},
        {"~~depends on #1~~ depends on #2", "#2 "},
        {"~~ depends on #1", "#1 "},
        {"\n    depends on #1\ndepends on #2", "#2 "},
        {"- item\n\n    depends on #1", "#1 "},
        {"not blocked by #1, never depends on #2", ""},
        {"isn't blocked by #1; isn\xe2\x80\x99t blocked by #2", ""},
        {"it is not small. depends on #1", "#1 "},
        {"unblocked by #1, dependson #2, depends onto #3", ""},
    };
    check_samples(samples, ARRAY_COUNT(samples));
}

static void reads_more_phrases(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {"Blocked until #1 is merged", "#1 "},
        {"blocked-until: #1, #2", "#1 #2 "},
        {"## Blocked until\n- the form (#1)", "#1 "},
        {"Prerequisite: #1", "#1 "},
        {"Pre-requisites: #1", "#1 "},
        {"### Prerequisites\n- #1\n- node 18, see #2", "#1 "},
        {"a prerequisite for #1", ""},
        {"#1 is a prerequisite", ""},
        {"Start after #1", "#1 "},
        {"after issue #1 and a/b#2", "#1 a/b#2 "},
        {"After: #1", "#1 "},
        {"## After\n- #1", ""},
        {"not after #1; hereafter #2; after a while, #3", ""},
    };
    check_samples(samples, ARRAY_COUNT(samples));
}

static void reads_tables_under_a_phrase(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {"## Depends on\n| A | B |\n|---|---|\n| #1 | x |\n| #2 |", "#1 #2 "},
        {"Dependencies:\n\n|Issue|\n|:-:|\n|#1|\n\ntext\n|#2|", "#1 "},
        {"depends on\n| x | #1, #2 | #3 |", "#1 #2 "},
        {"depends on\n| see #1 | #2 |", "#2 "},
        {"depends on\n| A | Blocked by |\n|-|-|\n| #1 | #2 |\n| #3 |", "#2 "},
        {"depends on\n| [x] | #1 |\n| [ ] | #2 |", "#2 "},
        {"depends on\n| a \\| #1 | #2 |", "#2 "},
        {"depends on\n|", ""},
        {"depends on\n||||", ""},
        {"## Status\n| #1 | open |", ""},
        {"~~depends on~~\n| #1 |", ""},
        {"```\ndepends on\n| #1 |\n```", ""},
    };
    check_samples(samples, ARRAY_COUNT(samples));
}

static void count_pull(void *ctx, const struct import_reference *reference)
{
    uint32_t *pulls = ctx;
    *pulls += reference->pull ? 1 : 0;
}

static void knows_pull_requests_by_address(void **state)
{
    (void)state;
    uint32_t pulls = 0;
    import_scan(import_span("depends on https://github.com/a/pull/issues/1, "
                            "https://github.com/a/b/pull/2, #3"),
                count_pull,
                &pulls);
    assert_int_equal(pulls, 1);
}

static void takes_any_bytes(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "depends on", "#1",       "`",     "~~",  "<!--", "\n",    "[",
        "](",         "https://", "a/b",   "```", "- ",   "[x] ",  "(",
        " ",          "</pre>",   "<pre>", "\t",  "\xc2", ">",     "and",
        ",",          "#",        "GH-",   "|",   "\n|",  "after", "\\",
    };
    uint64_t seed = 1;
    for (uint32_t round = 0; round < 3000; round++) {
        struct strbuf body = {0};
        for (uint32_t ix = 0; ix < 24; ix++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            strbuf_adds(&body, pieces[(seed >> 33) % ARRAY_COUNT(pieces)]);
        }
        struct strbuf got = {0};
        /* Exactly as long as the body: an overrun is seen. */
        char *copy = mem_zalloc(body.len, 1);
        memcpy(copy, body.text, body.len);
        import_scan((struct import_span){copy, body.len}, add_reference, &got);
        mem_free(copy);
        strbuf_release(&got);
        strbuf_release(&body);
    }
}

static void makes_one_harmless_line_of_a_text(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {"a", "a"},
        {" a \n\t b ", "a b"},
        {"a\x1b[31mb\x1b]0;title\x07"
         "c",
         "abc"},
        {"a\xe2\x80\xa8"
         "b\xe2\x80\xa9"
         "c",
         "a b c"},
        {"a\xef\xbb\xbf"
         "b\xc2\x85"
         "c\xe2\x80\xae"
         "d\xe2\x80\xac",
         "a bcd"},
        {"\xff", "?"},
        {"\n", ""},
        {"12345678\xc3\xa9", "12345678\xc3\xa9"},
        {"123456789\xc3\xa9", "123456789"},
        {"123456789 1", "123456789"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(samples); ix++) {
        struct strbuf out = {0};
        strbuf_adds(&out, "=");
        import_add_line(&out, import_span(samples[ix].body), 10);
        assert_string_equal(strbuf_text(&out) + 1, samples[ix].references);
        strbuf_release(&out);
    }
}

static void knows_names(void **state)
{
    (void)state;
    static const char *const good[] = {"a", "a/b", ".github", "a.b/c-d_e", "1"};
    static const char *const bad[] =
        {"", "/", "a/", "/a", "a/b/c", "a b", ".."};
    struct import_span owner;
    struct import_span name;
    for (size_t ix = 0; ix < ARRAY_COUNT(good); ix++) {
        assert_true(import_split(import_span(good[ix]), &owner, &name));
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(bad); ix++) {
        assert_false(import_split(import_span(bad[ix]), &owner, &name));
    }
    assert_true(import_compare(import_span("aB"), import_span("Ab")) == 0);
    assert_true(import_compare(import_span("a"), import_span("b")) < 0);
    assert_true(import_compare(import_span("ab"), import_span("a")) > 0);
}

/* Import one file; the plan, or "" after an error. */
static struct strbuf
import_one(struct import *import, const char *file, const char *text)
{
    struct strbuf out = {0};
    import_read(import, file, text, strlen(text));
    bool made = import_plan(import, &out);
    assert_true(made == (import_errors(import)->count == 0));
    assert_true(made == (out.len > 0));
    return out;
}

static void counts_what_it_leaves_out(void **state)
{
    (void)state;
    static const char text[] =
        "[{\"number\": 1, \"title\": \"a\", \"body\": \"depends on #9, #2\","
        "  \"milestone\": {\"title\": \"m\"}},"
        " {\"number\": 2, \"title\": \"b\", \"body\": null, \"milestone\": "
        "\"m\", \"state\": \"closed\"},"
        " {\"number\": 3, \"title\": \"c\", \"body\": \"\", \"milestone\": "
        "null}]";
    struct import_options options = {.milestone = "m", .ignore_unknown = true};
    struct import *import = import_new(&options);
    struct strbuf out = import_one(import, "dir/a.json", text);
    struct import_counts counts = import_counts(import);
    assert_int_equal(counts.issues, 1);
    assert_int_equal(counts.repos, 1);
    assert_int_equal(counts.needs, 0);
    assert_int_equal(counts.closed, 1);
    assert_int_equal(counts.others, 1);
    assert_int_equal(counts.dropped, 1);
    assert_non_null(strstr(strbuf_text(&out), "  - id: a#1\n"));
    assert_non_null(strstr(strbuf_text(&out), "# not awaited: #9\n"));
    strbuf_release(&out);
    import_free(import);
}

static void tells_where_json_is_wrong(void **state)
{
    (void)state;
    struct import_options options = {0};
    struct import *import = import_new(&options);
    struct strbuf out = import_one(import, "a.json", "[]\n  [\n 1,]");
    const struct import_errors *errors = import_errors(import);
    assert_int_equal(errors->count, 1);
    assert_string_equal(errors->items[0].file, "a.json");
    assert_int_equal(errors->items[0].line, 3);
    assert_int_equal(errors->items[0].column, 4);
    strbuf_release(&out);
    import_free(import);
}

static void import_free_takes_null(void **state)
{
    (void)state;
    import_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_references_in_every_form),
        cmocka_unit_test(reads_lists_up_to_what_is_not_one),
        cmocka_unit_test(takes_no_example_for_a_statement),
        cmocka_unit_test(reads_more_phrases),
        cmocka_unit_test(reads_tables_under_a_phrase),
        cmocka_unit_test(knows_pull_requests_by_address),
        cmocka_unit_test(takes_any_bytes),
        cmocka_unit_test(makes_one_harmless_line_of_a_text),
        cmocka_unit_test(knows_names),
        cmocka_unit_test(counts_what_it_leaves_out),
        cmocka_unit_test(tells_where_json_is_wrong),
        cmocka_unit_test(import_free_takes_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
