/* SPDX-License-Identifier: MIT */
#include "http/page_diff.h"

#include "base/xml.h"
#include "http/page.h"

#include <string.h>

enum {
    OPEN_LINES_MAX = 400, /* a file with more lines is folded */
    COMMIT_CHARS = 12,
    NUMBER_MAX = 100000000, /* of lines; git has less */
};

/* A diff being read. */
struct reader {
    const struct diff_view *view;
    bool looks_only;
    uint32_t file;     /* index of the file; UINT32_MAX: none yet */
    uint32_t old_no;   /* number of the next line, before ... */
    uint32_t new_no;   /* ... and after the change */
    uint32_t old_left; /* lines of the hunk that follow */
    uint32_t new_left;
    bool open; /* a file is */
};

static bool begins(const char *line, size_t len, const char *word)
{
    return len >= strlen(word) && strncmp(line, word, strlen(word)) == 0;
}

static const char *path_of(const struct reader *reader)
{
    const struct diff_view *view = reader->view;
    return reader->file < view->file_count ? view->files[reader->file].path
                                           : "?";
}

/* Append one line of a text, which is not terminated. */
static void add_text(struct strbuf *out, const char *text, size_t len)
{
    struct strbuf line = {0};
    strbuf_add(&line, text, len);
    xml_add(out, strbuf_text(&line));
    strbuf_release(&line);
}

/* --- files -------------------------------------------------------------- */

static void close_file(struct strbuf *out, struct reader *reader)
{
    strbuf_adds(out, reader->open ? "</tbody></table></details>\n" : "");
    reader->open = false;
}

static void open_file(struct strbuf *out, struct reader *reader)
{
    close_file(out, reader);
    reader->file = reader->file == UINT32_MAX ? 0 : reader->file + 1;
    reader->open = true;
    reader->old_left = 0;
    reader->new_left = 0;
    const struct diff_view *view = reader->view;
    bool known = reader->file < view->file_count;
    const struct diff_file *file = known ? &view->files[reader->file] : NULL;
    bool large = known && file->added + file->removed > OPEN_LINES_MAX;
    strbuf_addf(out, "<details%s><summary class=\"id\">", large ? "" : " open");
    if (known && file->old_path != NULL) {
        xml_add(out, file->old_path);
        strbuf_adds(out, " → ");
    }
    xml_add(out, path_of(reader));
    if (known && file->binary) {
        strbuf_adds(out, " <span class=\"soft\">binary</span>");
    } else if (known) {
        strbuf_addf(out,
                    " <span class=\"good\">+%lld</span> <span class=\"bad\">"
                    "&minus;%lld</span>",
                    (long long)file->added,
                    (long long)file->removed);
    }
    strbuf_adds(
        out,
        "</summary><table class=\"diff\"><colgroup><col class=\"no\"><col "
        "class=\"no\"><col></colgroup><thead class=\"gone\"><tr>"
        "<th>old</th><th>new</th><th>line</th></tr></thead><tbody>");
}

/* --- hunks -------------------------------------------------------------- */

/* Read a number of at most NUMBER_MAX; return what follows it. */
static const char *read_number(const char *text, uint32_t *out)
{
    uint32_t number = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        number = number * 10 + (uint32_t)(*text - '0');
        number = number < NUMBER_MAX ? number : NUMBER_MAX;
    }
    *out = number;
    return text;
}

/* Read "12,3" or "12", which is one line. */
static const char *read_range(const char *text, uint32_t *no, uint32_t *count)
{
    text = read_number(text, no);
    *count = 1;
    return *text == ',' ? read_number(text + 1, count) : text;
}

/* Append a box for a comment on a hunk, which works without a script. */
static void add_box(struct strbuf *out, const struct reader *reader)
{
    if (reader->looks_only) {
        return;
    }
    strbuf_adds(out, "<details><summary>comment</summary>");
    strbuf_adds(out, "<input type=\"hidden\" name=\"at\" value=\"");
    xml_add(out, path_of(reader));
    strbuf_addf(out,
                ":%u\"><textarea name=\"note\" rows=\"2\" "
                "aria-label=\"Comment on ",
                reader->new_no);
    xml_add(out, path_of(reader));
    strbuf_addf(out, ":%u\"></textarea></details>", reader->new_no);
}

/* Read "@@ -1,2 +3,4 @@ heading". */
static void open_hunk(struct strbuf *out,
                      struct reader *reader,
                      const char *line,
                      size_t len)
{
    const char *at = line + strlen("@@ -");
    at = read_range(at, &reader->old_no, &reader->old_left);
    at = strncmp(at, " +", 2) == 0 ? at + 2 : at;
    (void)read_range(at, &reader->new_no, &reader->new_left);
    strbuf_adds(out, "<tr class=\"hunk\"><td colspan=\"3\">");
    add_text(out, line, len);
    add_box(out, reader);
    strbuf_adds(out, "</td></tr>\n");
}

/* Append a number of a line, with a link that makes a box for a comment on it;
 * `gone`: the line was removed. */
static void add_number(struct strbuf *out,
                       const struct reader *reader,
                       uint32_t number,
                       bool linked,
                       bool gone)
{
    strbuf_adds(out, "<td class=\"no\">");
    if (number > 0 && linked && !reader->looks_only) {
        strbuf_adds(out, "<a href=\"#send\" data-at=\"");
        xml_add(out, path_of(reader));
        strbuf_addf(out,
                    ":%u%s\" aria-label=\"Comment on line %u\">%u</a>",
                    number,
                    gone ? " (removed)" : "",
                    number,
                    number);
    } else if (number > 0) {
        strbuf_addf(out, "%u", number);
    }
    strbuf_adds(out, "</td>");
}

/* Append a line of a hunk. */
static void add_line(struct strbuf *out,
                     struct reader *reader,
                     const char *line,
                     size_t len)
{
    char kind = len > 0 ? line[0] : ' ';
    bool added = kind == '+';
    bool removed = kind == '-';
    if (kind == '\\') {
        return; /* no newline at the end of the file */
    }
    strbuf_addf(out, "<tr class=\"%s\">", added ? "add" : removed ? "del" : "");
    add_number(out, reader, added ? 0 : reader->old_no, removed, true);
    add_number(out, reader, removed ? 0 : reader->new_no, true, false);
    strbuf_adds(out, "<td>");
    add_text(out, line, len);
    strbuf_adds(out, "</td></tr>\n");
    reader->old_no += added ? 0 : 1;
    reader->new_no += removed ? 0 : 1;
    reader->old_left -= !added && reader->old_left > 0 ? 1 : 0;
    reader->new_left -= !removed && reader->new_left > 0 ? 1 : 0;
}

static void add_diff(struct strbuf *out, struct reader *reader)
{
    const char *at = strbuf_text(&reader->view->text);
    while (*at != '\0') {
        size_t len = strcspn(at, "\n");
        bool inside = reader->old_left > 0 || reader->new_left > 0;
        if (inside) {
            add_line(out, reader, at, len);
        } else if (begins(at, len, "diff --git ")) {
            open_file(out, reader);
        } else if (begins(at, len, "@@ -") && reader->open) {
            open_hunk(out, reader, at, len);
        } /* else: names and modes, which the summary has */
        at += at[len] == '\n' ? len + 1 : len;
    }
    close_file(out, reader);
}

/* --- the page ----------------------------------------------------------- */

static void
add_head(struct strbuf *out, const struct diff_view *view, const char *task)
{
    int64_t added = 0;
    int64_t removed = 0;
    for (uint32_t ix = 0; ix < view->file_count; ix++) {
        added += view->files[ix].added;
        removed += view->files[ix].removed;
    }
    strbuf_adds(out, "<header><h1 class=\"id\"><a href=\"/?run=");
    page_add_escaped(out, view->run);
    strbuf_adds(out, "&amp;task=");
    page_add_escaped(out, task);
    strbuf_adds(out, "#task\">");
    xml_add(out, view->group);
    strbuf_adds(out, "</a></h1><p class=\"soft\">");
    xml_add(out, view->repo);
    strbuf_adds(out, ", ");
    add_text(out, view->from, strnlen(view->from, COMMIT_CHARS));
    strbuf_adds(out, " to ");
    add_text(out, view->to, strnlen(view->to, COMMIT_CHARS));
    strbuf_addf(out,
                ": %u file%s, <span class=\"good\">+%lld</span> "
                "<span class=\"bad\">&minus;%lld</span></p></header>",
                view->file_count,
                view->file_count == 1 ? "" : "s",
                (long long)added,
                (long long)removed);
}

/* Open the form that sends the issue back. */
static void
open_form(struct strbuf *out, const struct diff_view *view, const char *task)
{
    struct strbuf back = {0};
    strbuf_adds(&back, "/?run=");
    page_add_escaped(&back, view->run);
    strbuf_adds(&back, "&task=");
    page_add_escaped(&back, task);
    strbuf_adds(&back, "#task");
    strbuf_adds(out,
                "<form method=\"post\" action=\"/do\" class=\"comments\" "
                "data-then=\"");
    xml_add(out, strbuf_text(&back));
    strbuf_adds(out, "\">");
    page_add_field(out, "run", view->run);
    page_add_field(out, "task", view->group);
    page_add_field(out, "back", strbuf_text(&back));
    page_add_field(out, "commit", view->to);
    strbuf_release(&back);
}

static void close_form(struct strbuf *out)
{
    strbuf_adds(out,
                "<p id=\"send\"><label>Comment on the whole: <textarea "
                "name=\"text\" rows=\"3\"></textarea></label></p><p>");
    page_add_button(out, "rework", "Send back with these comments");
    strbuf_adds(out, "</p></form>");
}

void page_diff_add(struct strbuf *out,
                   const struct diff_view *view,
                   const char *task,
                   bool looks_only)
{
    struct reader reader = {
        .view = view,
        .looks_only = looks_only,
        .file = UINT32_MAX,
    };
    page_open(out, view->group, 0);
    add_head(out, view, task);
    if (view->truncated) {
        strbuf_adds(out,
                    "<p class=\"bad\">The diff is too long; this is its "
                    "beginning. 'git diff' shows all of it.</p>");
    }
    if (!looks_only) {
        open_form(out, view, task);
    }
    add_diff(out, &reader);
    if (view->text.len == 0) {
        strbuf_adds(out, "<p>No changes.</p>");
    }
    if (!looks_only) {
        close_form(out);
    }
    page_close(out);
}
