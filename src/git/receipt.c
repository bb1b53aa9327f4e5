/* SPDX-License-Identifier: MIT */
#include "git/receipt.h"

#include <string.h>

void receipt_add_line(struct strbuf *out, const char *text)
{
    bool space = false; /* due before the next character */
    bool any = false;
    for (const char *at = text; *at != '\0'; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte <= 0x20 || byte == 0x7f) {
            space = any;
            continue;
        }
        strbuf_adds(out, space ? " " : "");
        strbuf_add(out, at, 1);
        space = false;
        any = true;
    }
}

void receipt_add(struct strbuf *out, const char *name, const char *value)
{
    strbuf_addf(out, "%s: ", name);
    receipt_add_line(out, value);
    strbuf_adds(out, "\n");
}

/* Return the last paragraph of a message; *end_out is its end. */
static const char *last_paragraph(const char *message, const char **end_out)
{
    const char *end = message + strlen(message);
    while (end > message && end[-1] == '\n') {
        end--;
    }
    const char *at = end;
    while (at > message && !(at[-1] == '\n' && at[0] == '\n')) {
        at--;
    }
    *end_out = end;
    return at > message ? at + 1 : end; /* the subject is no trailer */
}

bool receipt_find(struct strbuf *out, const char *message, const char *name)
{
    const char *end;
    size_t len = strlen(name);
    for (const char *at = last_paragraph(message, &end); at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline != NULL ? newline : end;
        if ((size_t)(stop - at) > len && strncmp(at, name, len) == 0 &&
            at[len] == ':') {
            at += len + 1;
            while (at < stop && *at == ' ') {
                at++;
            }
            strbuf_add(out, at, (size_t)(stop - at));
            return true;
        }
        at = newline != NULL ? newline + 1 : end;
    }
    return false;
}

bool receipt_has(const char *message, const char *name, const char *value)
{
    struct strbuf line = {0};
    bool found = false;
    const char *end;
    receipt_add(&line, name, value);
    for (const char *at = last_paragraph(message, &end); at < end && !found;) {
        size_t len = strcspn(at, "\n");
        found = len + 1 == line.len && memcmp(at, line.text, len) == 0;
        at += len + 1;
    }
    strbuf_release(&line);
    return found;
}

/* List commits of the first-parent line: id, tree and message, each with a NUL.
 */
static enum err list(struct git *git,
                     const char *tip,
                     const char *not_below,
                     struct strbuf *out,
                     struct diag *diag)
{
    struct strbuf without = {0};
    strbuf_addf(&without, "^%s", not_below != NULL ? not_below : "");
    const char *const args[] = {"log",
                                "--first-parent",
                                "--encoding=UTF-8",
                                "--format=tformat:%H%x00%T%x00%B%x00",
                                tip,
                                not_below != NULL ? strbuf_text(&without)
                                                  : "--",
                                not_below != NULL ? "--" : NULL,
                                NULL};
    enum err err = git_output(git, args, out, diag);
    strbuf_release(&without);
    return err;
}

/* Find the oldest commit of the line with a receipt of the run; *out is its
 * first parent: "" if there is no such commit, or it has no parent. */
static enum err find_start(struct git *git,
                           const char *tip,
                           const char *run,
                           struct git_id *out,
                           bool *found_out,
                           struct diag *diag)
{
    struct strbuf line = {0};
    struct strbuf lines = {0};
    receipt_add(&line, "Sluice-Run", run);
    line.text[--line.len] = '\0'; /* the newline */
    struct strbuf grep = {0};
    strbuf_addf(&grep, "--grep=%s", strbuf_text(&line));
    enum err err = git_output(git,
                              PROC_ARGS("log",
                                        "--first-parent",
                                        "--fixed-strings",
                                        strbuf_text(&grep),
                                        "--format=%H %P",
                                        tip,
                                        "--"),
                              &lines,
                              diag);
    size_t cursor = 0;
    const char *next;
    *out = (struct git_id){0};
    *found_out = false;
    while (err == ERR_OK && (next = git_next_line(&lines, &cursor)) != NULL) {
        const char *space = strchr(next, ' ');
        size_t len = space != NULL ? strcspn(space + 1, " ") : 0;
        *found_out = true;
        *out = (struct git_id){0};
        if (len > 0 && len < sizeof(out->text)) {
            memcpy(out->text, space + 1, len);
        }
    }
    strbuf_release(&grep);
    strbuf_release(&line);
    strbuf_release(&lines);
    return err;
}

static void give(const struct strbuf *text, receipt_fn fn, void *ctx)
{
    size_t at = 0;
    while (at < text->len) {
        struct receipt_commit commit = {0};
        const char **places[] = {
            &commit.commit,
            &commit.tree,
            &commit.message,
        };
        for (size_t ix = 0; ix < ARRAY_COUNT(places); ix++) {
            if (at >= text->len) {
                return;
            }
            *places[ix] = text->text + at;
            at += strlen(text->text + at) + 1;
        }
        at += at < text->len && text->text[at] == '\n' ? 1 : 0;
        fn(ctx, &commit);
    }
}

enum err receipt_walk(struct git *git,
                      const char *tip,
                      const char *base,
                      const char *run,
                      receipt_fn fn,
                      void *ctx,
                      struct diag *diag)
{
    struct strbuf since_base = {0};
    struct strbuf since_start = {0};
    struct git_id start;
    bool found = false;
    enum err err = find_start(git, tip, run, &start, &found, diag);
    if (err == ERR_OK && base[0] != '\0') {
        err = list(git, tip, base, &since_base, diag);
    }
    if (err == ERR_OK && found) {
        err = list(git,
                   tip,
                   start.text[0] != '\0' ? start.text : NULL,
                   &since_start,
                   diag);
    }
    if (err == ERR_OK) { /* both begin at the tip: the longer has all */
        give(since_start.len > since_base.len ? &since_start : &since_base,
             fn,
             ctx);
    }
    strbuf_release(&since_base);
    strbuf_release(&since_start);
    return err;
}
