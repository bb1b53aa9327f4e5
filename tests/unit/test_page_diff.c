/* SPDX-License-Identifier: MIT */
#include "http/page_diff.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* A page and what it was made of. Strings are literals, which nobody changes.
 */
struct made {
    struct diff_view view;
    struct strbuf page;
    char texts[12][64];
    uint32_t text_count;
    struct diff_file files[4];
};

static char *text_of(struct made *made, const char *text)
{
    char *copy = made->texts[made->text_count++];
    assert_true(made->text_count <= ARRAY_COUNT(made->texts));
    (void)strncat(copy, text, sizeof(made->texts[0]) - 1);
    return copy;
}

static void begin(struct made *made)
{
    *made = (struct made){0};
    made->view.run = text_of(made, "run");
    made->view.group = text_of(made, "api-1");
    made->view.repo = text_of(made, "api");
    made->view.from = text_of(made, "0123456789abcdef");
    made->view.to = text_of(made, "fedcba9876543210");
    made->view.files = made->files;
}

static struct diff_file *add_file(struct made *made, const char *path)
{
    struct diff_file *file = &made->files[made->view.file_count++];
    file->path = text_of(made, path);
    return file;
}

static const char *draw(struct made *made, const char *text, bool looks_only)
{
    strbuf_clear(&made->page);
    strbuf_clear(&made->view.text);
    strbuf_adds(&made->view.text, text);
    page_diff_add(&made->page, &made->view, "api-1/review", looks_only);
    return strbuf_text(&made->page);
}

static void end(struct made *made)
{
    strbuf_release(&made->page);
    strbuf_release(&made->view.text);
}

static uint32_t count(const char *page, const char *part)
{
    uint32_t found = 0;
    for (const char *at = strstr(page, part); at != NULL;
         at = strstr(at + 1, part)) {
        found++;
    }
    return found;
}

static void expect(const char *page, const char *part)
{
    if (strstr(page, part) == NULL) {
        fail_msg("\"%s\" is missing:\n%s", part, page);
    }
}

static void expect_none(const char *page, const char *part)
{
    if (strstr(page, part) != NULL) {
        fail_msg("\"%s\" is there:\n%s", part, page);
    }
}

/* A row of the table, as a reader without orders sees it. */
#define ROW(class_name, old_no, new_no, text)                                  \
    "<tr class=\"" class_name "\"><td class=\"no\">" old_no                    \
    "</td><td class=\"no\">" new_no "</td><td>" text "</td></tr>\n"

/* --- tests -------------------------------------------------------------- */

static void lines_have_their_numbers(void **state)
{
    struct made made;
    (void)state;
    begin(&made);
    struct diff_file *file = add_file(&made, "x.c");
    file->added = 2;
    file->removed = 1;
    const char *page = draw(&made,
                            "diff --git a/x.c b/x.c\n"
                            "index 1111111..2222222 100644\n"
                            "--- a/x.c\n"
                            "+++ b/x.c\n"
                            "@@ -10,2 +20,3 @@ int main(void)\n"
                            " same\n"
                            "-old\n"
                            "+new\n"
                            "+more\n"
                            "@@ -40 +51 @@\n"
                            "-last\n"
                            "+end\n",
                            true);
    expect(page,
           ROW("", "10", "20", " same") ROW("del", "11", "", "-old")
               ROW("add", "", "21", "+new") ROW("add", "", "22", "+more"));
    expect(page, ROW("del", "40", "", "-last") ROW("add", "", "51", "+end"));
    expect(page, "@@ -10,2 +20,3 @@ int main(void)</td>");
    expect(page, "0123456789ab to fedcba987654: 1 file, ");
    expect(page, "+2</span>");
    expect(page, "&minus;1</span>");
    expect_none(page, "index 1111111");
    expect_none(page, "+++ b/x.c");
    assert_int_equal(count(page, "<tr class=\"hunk\">"), 2);
    assert_int_equal(count(page, "<details"), 1);
    assert_int_equal(count(page, "</details>"), 1);
    end(&made);
}

/* A line of a file that looks like a header stays a line of its hunk. */
static void lines_that_look_like_headers_are_lines(void **state)
{
    struct made made;
    (void)state;
    begin(&made);
    (void)add_file(&made, "x");
    (void)add_file(&made, "y");
    const char *page = draw(&made,
                            "diff --git a/x b/x\n"
                            "--- a/x\n"
                            "+++ b/x\n"
                            "@@ -1,3 +1,4 @@\n"
                            "--- a/x\n"
                            "+++ b/x\n"
                            " diff --git a/y b/y\n"
                            "+@@ -1 +1 @@\n"
                            " @@ -7,7 +7,7 @@\n"
                            "diff --git a/y b/y\n"
                            "@@ -1 +1 @@\n"
                            "-a\n"
                            "+b\n",
                            true);
    expect(page,
           ROW("del", "1", "", "--- a/x") ROW("add", "", "1", "+++ b/x")
               ROW("", "2", "2", " diff --git a/y b/y")
                   ROW("add", "", "3", "+@@ -1 +1 @@")
                       ROW("", "3", "4", " @@ -7,7 +7,7 @@"));
    assert_int_equal(count(page, "<details"), 2);
    assert_int_equal(count(page, "<tr class=\"hunk\">"), 2);
    end(&made);
}

static void files_are_named_as_the_list_has_them(void **state)
{
    struct made made;
    (void)state;
    begin(&made);
    struct diff_file *moved = add_file(&made, "new.c");
    moved->old_path = text_of(&made, "old.c");
    struct diff_file *image = add_file(&made, "image.png");
    image->binary = true;
    struct diff_file *large = add_file(&made, "large");
    large->added = 401;
    made.view.truncated = true;
    const char *page = draw(&made,
                            "diff --git a/old.c b/new.c\n"
                            "similarity index 100%\n"
                            "rename from old.c\n"
                            "rename to new.c\n"
                            "diff --git a/image.png b/image.png\n"
                            "Binary files a/image.png and b/image.png differ\n"
                            "diff --git a/large b/large\n"
                            "@@ -0,0 +1,401 @@\n"
                            "+one\n"
                            "diff --git a/unlisted b/unlisted\n",
                            true);
    expect(page, "old.c → new.c <span");
    expect(page, "image.png <span class=\"soft\">binary</span>");
    expect(page, "<details><summary class=\"id\">large"); /* it is folded */
    assert_int_equal(count(page, "<details open>"), 2);
    expect(page, "The diff is too long");
    expect_none(page, "rename from");
    expect_none(page, "Binary files");
    end(&made);
    /* A file that the list does not have. */
    begin(&made);
    expect(draw(&made, "diff --git a/x b/x\n", true),
           "<summary class=\"id\">?</summary>");
    end(&made);
}

static void a_file_without_a_newline_at_its_end(void **state)
{
    struct made made;
    (void)state;
    begin(&made);
    (void)add_file(&made, "x");
    const char *page = draw(&made,
                            "diff --git a/x b/x\n"
                            "@@ -1 +1 @@\n"
                            "-a\n"
                            "\\ No newline at end of file\n"
                            "+b\n"
                            "\\ No newline at end of file\n",
                            true);
    expect(page, ROW("del", "1", "", "-a") ROW("add", "", "1", "+b"));
    expect_none(page, "No newline");
    end(&made);
}

/* Any text gives a page whose elements are closed. */
static void texts_that_are_no_diff_do_no_harm(void **state)
{
    static const char *const texts[] = {
        "",
        "\n\n\n",
        "garbage",
        "@@ -1 +1 @@\n-a\n+b\n", /* of no file */
        "diff --git ",
        "diff --git a b\n@@ -",
        "diff --git a b\n@@ -\n5,6\n",
        "diff --git a b\n@@ -1,2 +1,2 @@\n",  /* it is cut */
        "diff --git a b\n@@ -1,2 +1,2 @@\n ", /* in a line */
        "diff --git a b\n@@ -1,2 +1,2 @@\n x",
        "diff --git a b\n@@ -x,y +z,w @@\n x\n",
        "diff --git a b\n@@ --5,-6 +-7,-8 @@\n x\n",
        "diff --git a b\n@@ -99999999999999999999,9 +1,4294967296 @@\n+x\n z\n",
        "diff --git a b\n@@ -1,9 +18446744073709551616,9 @@\n+x\n-y\n z\n",
        "diff --git a b\n@@ -1,2 +1,2 @@\ndiff --git a b\n@@ -1 +1 @@\n",
        "diff --git a b\n@@ -0,0 +0,0 @@\n+x\n",
    };
    (void)state;
    for (size_t ix = 0; ix < ARRAY_COUNT(texts); ix++) {
        struct made made;
        begin(&made);
        const char *page = draw(&made, texts[ix], ix % 2 == 0);
        assert_int_equal(count(page, "<details"), count(page, "</details>"));
        assert_int_equal(count(page, "<table"), count(page, "</table>"));
        assert_int_equal(count(page, "<tr"), count(page, "</tr>"));
        assert_int_equal(count(page, "<td"), count(page, "</td>"));
        assert_int_equal(count(page, "<form"), count(page, "</form>"));
        expect(page, "</html>");
        end(&made);
    }
}

static void huge_numbers_stay_numbers(void **state)
{
    struct made made;
    (void)state;
    begin(&made);
    const char *page = draw(&made,
                            "diff --git a b\n@@ -4294967296,1 "
                            "+18446744073709551617,1 @@\n-x\n+y\n",
                            true);
    expect(page,
           ROW("del", "100000000", "", "-x") ROW("add", "", "100000000", "+y"));
    end(&made);
    /* Numbers are of this line, not of the next one. */
    begin(&made);
    page = draw(&made, "diff --git a b\n@@ -\n3,9 +4,9\n x\n", true);
    assert_int_equal(count(page, "<td class=\"no\">"), 2);
    end(&made);
}

static void nothing_is_markup(void **state)
{
    static const char hostile[] = "\"><script>'&";
    static const char escaped[] = "&quot;&gt;&lt;script&gt;&#39;&amp;";
    struct made made;
    (void)state;
    begin(&made);
    made.view.group = text_of(&made, hostile);
    made.view.to = text_of(&made, "<script>");
    struct diff_file *file = add_file(&made, hostile);
    file->old_path = made.view.group;
    for (int pass = 0; pass < 2; pass++) {
        const char *page = draw(&made,
                                "diff --git a b\n"
                                "@@ -1,2 +1,2 @@ \"><script>'&\n"
                                " \"><script>'&\n"
                                "-\"><script>'&\n"
                                "+\"><script>'&\n",
                                pass == 0);
        expect_none(page, "<script>");
        assert_int_equal(count(page, escaped), pass == 0 ? 8 : 14);
    }
    end(&made);
}

static void who_looks_only_has_no_form(void **state)
{
    static const char text[] = "diff --git a/x b/x\n"
                               "@@ -1 +7 @@\n"
                               "-a\n"
                               "+b\n";
    struct made made;
    (void)state;
    begin(&made);
    (void)add_file(&made, "x");
    const char *page = draw(&made, text, true);
    expect_none(page, "<form");
    expect_none(page, "<textarea");
    expect_none(page, "<input");
    expect_none(page, "<button");
    expect_none(page, "data-at");
    page = draw(&made, text, false);
    expect(page, "<form method=\"post\" action=\"/do\" class=\"comments\"");
    expect(page, "name=\"at\" value=\"x:7\"");
    expect(page, "data-at=\"x:7\"");
    expect(page, "name=\"commit\" value=\"fedcba9876543210\"");
    expect(page, "name=\"task\" value=\"api-1\"");
    expect(page, "value=\"/?run=run&amp;task=api-1/review#task\"");
    expect(page, "value=\"rework\"");
    expect(page, "data-at=\"x:1 (removed)\"");
    assert_int_equal(count(page, "data-at"), 2);
    end(&made);
}

static void no_text_is_no_change(void **state)
{
    struct made made;
    (void)state;
    begin(&made);
    expect(draw(&made, "", true), "<p>No changes.</p>");
    end(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_have_their_numbers),
        cmocka_unit_test(lines_that_look_like_headers_are_lines),
        cmocka_unit_test(files_are_named_as_the_list_has_them),
        cmocka_unit_test(a_file_without_a_newline_at_its_end),
        cmocka_unit_test(texts_that_are_no_diff_do_no_harm),
        cmocka_unit_test(huge_numbers_stay_numbers),
        cmocka_unit_test(nothing_is_markup),
        cmocka_unit_test(who_looks_only_has_no_form),
        cmocka_unit_test(no_text_is_no_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
