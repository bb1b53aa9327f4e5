/* SPDX-License-Identifier: MIT */
/*
 * References in bodies, texts and ids made safe, priorities of labels, and the
 * readers of all sources. The corpus, and everything with files, is in the
 * scenarios import-beads, import-github and import-taskmaster.
 */
#include "import/import.h"

#include "base/macros.h"
#include "base/mem.h"
#include "import/import_internal.h"

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

static void keeps_the_lines_of_a_body(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {"a\n\tb\n\nc", "a\n\tb\n\nc"},
        {"\n\n  a \n b \t\n\n", "  a \n b"},
        {"a\r\nb\x1b[31mc\x07", "a\nbc"},
        {"a\xe2\x80\xa8"
         "b\xef\xbb\xbf"
         "c",
         "abc"},
        {" \n\t", ""},
        {"", ""},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(samples); ix++) {
        struct strbuf out = {0};
        strbuf_adds(&out, "=");
        import_add_lines(&out, import_span(samples[ix].body));
        assert_string_equal(strbuf_text(&out) + 1, samples[ix].references);
        strbuf_release(&out);
    }
}

static void knows_priorities_of_labels(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        uint32_t priority;
    } samples[] = {
        {"P0", 0},
        {"p4", 4},
        {"P1 - high", 1},
        {"priority: high", 1},
        {"Priority/Critical", 0},
        {"priority-low", 3},
        {"priority/critical-urgent", 0},
        {"priority/important-soon", 1},
        {"priority/important-longterm", 2},
        {"priority/backlog", 4},
        {"priority/awaiting-more-evidence", 4},
        {"P-high", 1},
        {"Pri-0", 0},
        {"P0-Critical", 0},
        {"Priority: Moderate", 2},
        {"p", IMPORT_PRIORITY_UNSET},
        {"help-p-high", IMPORT_PRIORITY_UNSET},
        {"prio:2", 2},
        {"priority::P3", 3},
        {"type/priority/lowest", 4},
        {"high priority", 1},
        {"urgent", 0},
        {"critical", 0},
        {"critical path", IMPORT_PRIORITY_UNSET},
        {"high", IMPORT_PRIORITY_UNSET},
        {"P9", IMPORT_PRIORITY_UNSET},
        {"p2p", IMPORT_PRIORITY_UNSET},
        {"priority", IMPORT_PRIORITY_UNSET},
        {"priority: purple", IMPORT_PRIORITY_UNSET},
        {"--", IMPORT_PRIORITY_UNSET},
        {"", IMPORT_PRIORITY_UNSET},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(samples); ix++) {
        uint32_t got = import_label_priority(import_span(samples[ix].label));
        if (got != samples[ix].priority) {
            fail_msg("\"%s\" gives %u", samples[ix].label, got);
        }
    }
}

static void compares_keys_as_people_do(void **state)
{
    (void)state;
    static const char *const sorted[] =
        {"", "10", "a", "a-1", "a-01", "a-2", "a-2.1", "a-2.10", "a-10", "b"};
    for (size_t a = 0; a < ARRAY_COUNT(sorted); a++) {
        for (size_t b = 0; b < ARRAY_COUNT(sorted); b++) {
            int order = import_compare_keys(sorted[a], sorted[b]);
            int turned = import_compare_keys(sorted[b], sorted[a]);
            assert_true((order == 0) == (a == b));
            assert_true((order < 0) == (turned > 0));
        }
    }
    assert_true(import_compare_keys(NULL, "") == 0);
    assert_true(import_compare_keys("a-2", "a-10") < 0);
    assert_true(import_compare_keys("a-2.1", "a-10") < 0);
}

static void knows_keys(void **state)
{
    (void)state;
    static const char *const good[] = {"a", "bd-a1.2", "HAM_7", "0", "A."};
    static const char *const bad[] =
        {"", "-a", ".a", "a..b", "a b", "a/b", "a#b", "\xc3\xa9"};
    for (size_t ix = 0; ix < ARRAY_COUNT(good); ix++) {
        assert_true(import_is_key(import_span(good[ix])));
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(bad); ix++) {
        assert_false(import_is_key(import_span(bad[ix])));
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
    import_read(import,
                &(struct import_file){
                    .name = file,
                    .text = text,
                    .len = strlen(text),
                });
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

/* Import a text of a source, and require the lines in the plan. */
static void check_plan(enum import_source source,
                       const char *file,
                       const char *text,
                       const char *const *lines)
{
    struct import_options options = {.source = source};
    struct import *import = import_new(&options);
    struct strbuf out = import_one(import, file, text);
    if (import_errors(import)->count > 0) {
        fail_msg("%s", import_errors(import)->items[0].text);
    }
    const char *at = strbuf_text(&out);
    for (; *lines != NULL; lines++) {
        const char *found = strstr(at, *lines);
        if (found == NULL) {
            fail_msg("no \"%s\" in \"%s\"", *lines, at);
        }
        at = found == NULL ? at : found + strlen(*lines);
    }
    strbuf_release(&out);
    import_free(import);
}

/* Import a text of a source, and require one error about an issue. */
static void check_error(enum import_source source,
                        const char *text,
                        const char *key,
                        const char *wanted)
{
    struct import_options options = {.source = source};
    struct import *import = import_new(&options);
    struct strbuf out = import_one(import, "a.jsonl", text);
    const struct import_errors *errors = import_errors(import);
    assert_int_equal(errors->count, 1);
    assert_string_equal(errors->items[0].file, "a.jsonl");
    if (key != NULL) {
        assert_string_equal(errors->items[0].key, key);
    }
    assert_non_null(strstr(errors->items[0].text, wanted));
    strbuf_release(&out);
    import_free(import);
}

static void reads_relations_of_github(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "- id: a#1\n",
        "needs: [a#2]\n",
        "- id: a#2\n",
        "- id: a#4\n",
        "needs: [a#1]\n",
        "- id: a#6\n",
        "needs: [a#4]\n",
        NULL,
    };
    check_plan(
        IMPORT_GITHUB,
        "a.json",
        "[{\"number\": 1, \"title\": \"\", \"body\": \"\","
        "  \"blockedBy\": {\"nodes\": [{\"number\": 2}, {\"number\": 9,"
        "  \"state\": \"CLOSED\"}], \"totalCount\": 2}},"
        " {\"number\": 2, \"title\": \"\", \"body\": \"\"},"
        " {\"number\": 3, \"title\": \"\", \"body\": \"\","
        "  \"blockedBy\": [{\"number\": 1}]},"
        " {\"number\": 4, \"title\": \"\", \"body\": \"\", \"parent\":"
        "  {\"number\": 3}},"
        " {\"number\": 5, \"title\": \"\", \"body\": \"\", \"closed\":"
        "  true, \"parent_issue_url\":"
        "  \"https://api.github.com/repos/x/a/issues/3\"},"
        " {\"number\": 6, \"title\": \"\", \"body\": \"depends on #3\"}]",
        lines);
    check_error(IMPORT_GITHUB,
                "{\"number\": 1, \"title\": \"\", \"body\": \"\","
                " \"subIssues\": [{\"number\": \"2\"}]}",
                NULL,
                "\"subIssues\" must name issues, each by its \"number\"");
}

static void reads_issues_of_beads(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "Created by \"sluice import beads\": 3 issues of 1 repo, 2 needs.",
        "- id: shop#s-2\n",
        "priority: 1 # P0\n",
        "- id: shop#s-1\n",
        "      Text\n\n      ## Notes\n\n      More\n",
        "needs: [shop#s-2]\n",
        "- id: shop#s-10\n",
        "needs: [shop#s-1]\n",
        NULL,
    };
    check_plan(IMPORT_BEADS,
               "x/shop/.beads/issues.jsonl",
               "{\"id\": \"s-10\", \"title\": \"c\", \"priority\": 3,"
               " \"dependencies\": [{\"depends_on_id\": \"s-3\","
               " \"type\": \"blocks\"}]}\n"
               "{\"id\": \"s-1\", \"title\": \"a\", \"priority\": 2,"
               " \"description\": \"Text\", \"notes\": \"More\","
               " \"dependencies\": [{\"depends_on_id\": \"s-2\"},"
               " {\"depends_on_id\": \"s-3\", \"type\":"
               " \"parent-child\"}]}\n"
               "{\"id\": \"s-2\", \"title\": \"b\"}\n"
               "{\"id\": \"s-3\", \"title\": \"epic\", \"priority\": 1}\n",
               lines);
    check_error(IMPORT_BEADS,
                "{\"id\": \"b-1\", \"title\": \"a\", \"dependencies\":"
                " [{\"depends_on_id\": \"b-2\"}]}",
                "b-1",
                "depends on b-2, but the export has no such issue");
}

static void reads_tasks_of_task_master(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "Created by \"sluice import taskmaster\": 2 issues of 1 repo, 1 need.",
        "- id: shop#2\n",
        "      - [x] 1. s\n",
        "- id: shop#1\n",
        "priority: 7 # P3\n",
        "needs: [shop#2]\n",
        NULL,
    };
    check_plan(IMPORT_TASKMASTER,
               "shop/.taskmaster/tasks/tasks.json",
               "{\"master\": {\"tasks\": [{\"id\": 1, \"title\": \"a\","
               " \"priority\": \"low\", \"dependencies\": [\"2.1\", 3]},"
               " {\"id\": \"2\", \"title\": \"b\", \"subtasks\":"
               " [{\"id\": 1, \"title\": \"s\", \"status\": \"done\","
               " \"dependencies\": [\"9.1\"]}]},"
               " {\"id\": 3, \"title\": \"c\", \"status\": \"done\"}]}}",
               lines);
    check_error(IMPORT_TASKMASTER,
                "{\"tasks\": [{\"id\": \"T-1\", \"title\": \"a\","
                " \"dependencies\": [\"T-1\"]}]}",
                "T-1",
                "depends on itself (T-1)");
}

static void gives_bodies_as_files(void **state)
{
    (void)state;
    struct import_options options = {.bodies = "texts", .repo = "x/a"};
    struct import *import = import_new(&options);
    struct strbuf out =
        import_one(import,
                   "-",
                   "[{\"number\": 1, \"title\": \"\", \"body\": \"b \"},"
                   " {\"number\": 2, \"title\": \"\", \"body\": null}]");
    uint32_t ix = 0;
    struct import_body body;
    assert_true(import_next_body(import, &ix, &body));
    assert_string_equal(body.path, "texts/a#1.md");
    assert_string_equal(body.text, "b\n");
    assert_int_equal(body.len, 2);
    assert_false(import_next_body(import, &ix, &body));
    assert_non_null(strstr(out.text, "body_file: \"texts/a#1.md\"\n"));
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
        cmocka_unit_test(keeps_the_lines_of_a_body),
        cmocka_unit_test(knows_priorities_of_labels),
        cmocka_unit_test(compares_keys_as_people_do),
        cmocka_unit_test(knows_keys),
        cmocka_unit_test(knows_names),
        cmocka_unit_test(counts_what_it_leaves_out),
        cmocka_unit_test(tells_where_json_is_wrong),
        cmocka_unit_test(reads_relations_of_github),
        cmocka_unit_test(reads_issues_of_beads),
        cmocka_unit_test(reads_tasks_of_task_master),
        cmocka_unit_test(gives_bodies_as_files),
        cmocka_unit_test(import_free_takes_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
