/* SPDX-License-Identifier: MIT */
/*
 * Where the work of an issue began.
 *
 * The newest commit that the agent branch and the group's branch have in common
 * is the start as long as the issue is not merged. Afterwards the agent branch
 * has the work itself. So the commits of the agent branch that are not part of
 * the group's branch are searched for the first one that has merged the issue,
 * by its receipt; what the agent branch was before it has in common with the
 * group's branch all but the work. A session that merges the agent branch into
 * its own moves the start up to what it has merged: what others did is not part
 * of the diff. If an earlier round of the issue was in there, neither is that.
 */
#include "git/diff.h"

#include "base/jsonw.h"
#include "base/utf8.h"
#include "git/agent.h"
#include "git/hub.h"
#include "git/receipt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIST_BYTES_MAX = 1 << 20 };

/* One diff on its way. */
struct diff {
    const struct diff_options *options;
    struct git *git;
    struct names names;
    struct git_id agent;
    struct git_id from;
    struct git_id to;
};

/* --- the first commit --------------------------------------------------- */

/* Return whether a merge commit is one of the issue. */
static bool is_own(const struct diff *diff, const char *message)
{
    return receipt_has(message, "Sluice-Run", diff->options->run) &&
           receipt_has(message, "Sluice-Issue", diff->options->group);
}

/* Find the agent branch as it was before it had any work of the issue that the
 * group's branch did not get from there. */
static enum err
find_without(struct diff *diff, struct git_id *out, struct diag *diag)
{
    struct strbuf list = {0};
    struct strbuf below = {0};
    strbuf_addf(&below, "^%s", diff->to.text);
    enum err err = git_output(diff->git,
                              PROC_ARGS("log",
                                        "--first-parent",
                                        "--encoding=UTF-8",
                                        "--format=tformat:%P%x00%B%x00",
                                        diff->agent.text,
                                        strbuf_text(&below),
                                        "--"),
                              &list,
                              diag);
    *out = diff->agent;
    size_t at = 0;
    while (err == ERR_OK && at < list.len) { /* newest first */
        const char *parents = list.text + at;
        at += strlen(parents) + 1;
        const char *message = at < list.len ? list.text + at : "";
        at += strlen(message) + 1;
        at += at < list.len && list.text[at] == '\n' ? 1 : 0;
        size_t len = strcspn(parents, " ");
        if (len > 0 && len < sizeof(out->text) && is_own(diff, message)) {
            *out = (struct git_id){0};
            memcpy(out->text, parents, len);
        }
    }
    strbuf_release(&list);
    strbuf_release(&below);
    return err;
}

/* Find the newest commit that both have; "": none. */
static enum err find_common(struct diff *diff,
                            const struct git_id *other,
                            struct git_id *out,
                            struct diag *diag)
{
    struct strbuf text = {0};
    int code = 0;
    struct git_call call = {
        .args = PROC_ARGS("merge-base", other->text, diff->to.text),
        .output = &text,
        .quiet = true,
        .codes = 1,
    };
    *out = (struct git_id){0};
    enum err err = git_call(diff->git, &call, &code, diag);
    if (err == ERR_OK && code == 0) {
        err = git_first_id(&text, out, diag);
    }
    strbuf_release(&text);
    return err;
}

/* Find where the work began. `start`: the recorded start, or "". */
static enum err
find_from(struct diff *diff, const struct git_id *start, struct diag *diag)
{
    struct git_id without;
    enum err err = find_without(diff, &without, diag);
    if (err == ERR_OK) {
        err = find_common(diff, &without, &diff->from, diag);
    }
    /* The record is for a branch that was merged without a receipt, by hand. */
    if (err == ERR_OK && git_is_set(start) &&
        (!git_is_set(&diff->from) ||
         strcmp(diff->from.text, diff->to.text) == 0)) {
        err = find_common(diff, start, &diff->from, diag);
    }
    if (err == ERR_OK && !git_is_set(&diff->from)) {
        err = diag_set(diag,
                       ERR_CONFLICT,
                       "%s and the agent branch in %s have no commit in common",
                       git_short_name(diff->names.branch),
                       diff->options->path);
    }
    return err;
}

/* Explain why a branch does not exist. */
static enum err
refuse(const struct diff *diff, const char *ref, struct diag *diag)
{
    if (!diff->options->begun) {
        return diag_set(diag,
                        ERR_NOT_FOUND,
                        "%s has not begun: no session of it has started in %s",
                        diff->options->group,
                        diff->options->path);
    }
    return diag_set(diag,
                    ERR_NOT_FOUND,
                    "%s has no branch %s in %s: 'sluice gc' removes branches "
                    "that are merged",
                    diff->options->group,
                    git_short_name(ref),
                    diff->options->path);
}

/* Find both commits. */
static enum err find_ends(struct diff *diff, struct diag *diag)
{
    const struct names *names = &diff->names;
    struct git_ref refs[] = {{.name = names->branch}, {.name = names->start}};
    enum err err = git_read_refs(diff->git, refs, ARRAY_COUNT(refs), diag);
    if (err == ERR_OK) {
        err = agent_find(diff->git,
                         names,
                         diff->options->owner,
                         &diff->agent,
                         diag);
    }
    if (err != ERR_OK) {
        return err;
    }
    if (!git_is_set(&diff->agent) || !git_is_set(&refs[0].id)) {
        return refuse(diff,
                      git_is_set(&diff->agent) ? names->branch : names->agent,
                      diag);
    }
    diff->to = refs[0].id;
    return find_from(diff, &refs[1].id, diag);
}

/* --- the changes -------------------------------------------------------- */

bool diff_clean(struct strbuf *text, bool cut)
{
    size_t len = 0;
    for (size_t ix = 0; ix < text->len; ix++) {
        if (text->text[ix] != '\0') {
            text->text[len++] = text->text[ix];
        }
    }
    if (len > DIFF_TEXT_BYTES_MAX) {
        len = DIFF_TEXT_BYTES_MAX;
        cut = true;
    }
    while (cut && len > 0 && text->text[len - 1] != '\n') {
        len--;
    }
    if (text->len > 0) {
        text->text[len] = '\0';
        text->len = len;
        utf8_repair(text->text, len);
    }
    return cut;
}

/* Return the string that begins at *at, and move there behind it; NULL: it has
 * no end, and neither has the list. */
static const char *next(const struct strbuf *list, size_t *at)
{
    const char *text = list->text + *at;
    const char *end =
        *at < list->len ? memchr(text, '\0', list->len - *at) : NULL;
    if (end == NULL) {
        *at = list->len;
        return NULL;
    }
    *at += (size_t)(end - text) + 1;
    return text;
}

/* Append the object of one file: "ADDED\tREMOVED\tPATH", with "-" for both
 * numbers of a binary file; without a path, the old and the new one follow. */
static bool add_file(struct strbuf *out, const struct strbuf *list, size_t *at)
{
    const char *line = next(list, at);
    const char *second = line != NULL ? strchr(line, '\t') : NULL;
    const char *path = second != NULL ? strchr(second + 1, '\t') : NULL;
    const char *old = NULL;
    if (path == NULL) {
        return false;
    }
    path++;
    if (path[0] == '\0') {
        old = next(list, at);
        path = old != NULL ? next(list, at) : NULL;
    }
    if (path == NULL) {
        return false;
    }
    struct jsonw json = {.out = out};
    bool binary = line[0] == '-';
    jsonw_object(&json, NULL);
    jsonw_text(&json, "path", path);
    jsonw_text(&json, "old_path", old);
    jsonw_int_if(&json, "added", !binary, strtoll(line, NULL, 10));
    jsonw_int_if(&json, "removed", !binary, strtoll(second + 1, NULL, 10));
    jsonw_bool(&json, "binary", binary);
    jsonw_object_end(&json);
    return true;
}

bool diff_add_files(struct strbuf *out, const struct strbuf *list, bool cut)
{
    size_t at = 0;
    uint32_t count = 0;
    while (count < DIFF_FILES_MAX && at < list->len &&
           add_file(out, list, &at)) {
        count++;
    }
    return cut || at < list->len;
}

/*
 * Call git with options of its own, up to a limit on its output. Attributes and
 * configuration can name programs that convert or compare files: none of them
 * runs. Names are not quoted just because they are not ASCII.
 */
static enum err call_diff(struct diff *diff,
                          const char *form,
                          const char *more,
                          struct strbuf *out,
                          bool *cut_out,
                          struct diag *diag)
{
    struct strbuf big = {0};
    strbuf_addf(&big, "core.bigFileThreshold=%dm", DIFF_FILE_MIB_MAX);
    struct git_call call = {
        .args = PROC_ARGS("-c",
                          strbuf_text(&big),
                          "-c",
                          "core.quotePath=false",
                          "diff-tree",
                          "-r",
                          "--no-color",
                          "--no-ext-diff",
                          "--no-textconv",
                          "--no-relative",
                          "--find-renames",
                          "--submodule=short",
                          "--ignore-submodules=none",
                          "--src-prefix=a/",
                          "--dst-prefix=b/",
                          form,
                          more,
                          diff->from.text,
                          diff->to.text,
                          "--"),
        .output = out,
        .output_max = form[1] == '-' ? LIST_BYTES_MAX : DIFF_TEXT_BYTES_MAX,
        .cut_out = cut_out,
        .quiet = true,
    };
    enum err err = git_call(diff->git, &call, NULL, diag);
    strbuf_release(&big);
    return err;
}

static enum err
add_changes(struct strbuf *out, struct diff *diff, struct diag *diag)
{
    struct strbuf list = {0};
    struct strbuf files = {0};
    struct strbuf text = {0};
    bool list_cut = false;
    bool text_cut = false;
    bool same = strcmp(diff->from.text, diff->to.text) == 0;
    enum err err = ERR_OK;
    if (!same) {
        err = call_diff(diff, "--numstat", "-z", &list, &list_cut, diag);
    }
    if (err == ERR_OK && !same) {
        err = call_diff(diff, "-p", "-U3", &text, &text_cut, diag);
    }
    if (err == ERR_OK) {
        struct jsonw json = {.out = out};
        bool missing = diff_add_files(&files, &list, list_cut);
        bool shorter = diff_clean(&text, text_cut);
        jsonw_object(&json, NULL);
        jsonw_text(&json, "from", diff->from.text);
        jsonw_text(&json, "to", diff->to.text);
        jsonw_bool(&json, "truncated", missing || shorter);
        jsonw_array(&json, "files");
        strbuf_adds(out, strbuf_text(&files));
        jsonw_array_end(&json);
        jsonw_text(&json, "text", strbuf_text(&text));
        jsonw_finish(&json);
    }
    strbuf_release(&list);
    strbuf_release(&files);
    strbuf_release(&text);
    return err;
}

void diff_answer(struct strbuf *out, const struct diff_options *options)
{
    struct diag diag = {0};
    struct diff diff = {.options = options};
    names_init(&diff.names, options->run, options->entry, options->group);
    enum err err = ERR_OK;
    if (options->url == NULL && access(options->path, X_OK) != 0) {
        err = diag_set(&diag,
                       ERR_NOT_FOUND,
                       "cannot read the repository %s: %s",
                       options->path,
                       strerror(errno));
    }
    if (err == ERR_OK) {
        err = hub_open_either(&diff.git,
                              options->home,
                              options->path,
                              options->url,
                              &diag);
    }
    if (err == ERR_OK) {
        err = find_ends(&diff, &diag);
    }
    if (err == ERR_OK) {
        err = add_changes(out, &diff, &diag);
    }
    if (err != ERR_OK) {
        struct jsonw json = {.out = out};
        jsonw_object(&json, NULL);
        jsonw_text(&json, "error", err_name(err));
        jsonw_text(&json, "text", diag.text);
        jsonw_finish(&json);
    }
    git_close(diff.git);
    names_release(&diff.names);
}
