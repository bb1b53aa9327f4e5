/* SPDX-License-Identifier: MIT */
/*
 * Creation of merge results. `git merge-tree` merges each candidate into the
 * tree so far, without a checkout; intermediate commits only serve as parents
 * of the next step. The final commit has the agent branch as its first parent
 * and every branch as a further parent: the first-parent line contains only
 * results that were tested.
 */
#include "git/merge_internal.h"

#include "base/crash.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "git/log.h"
#include "git/private.h"
#include "git/receipt.h"
#include "git/result.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    ARGS_MAX = 40,
    CONFLICT = 1,
    LINE_BYTES = 1024,
    MARK_BYTES_MIN = 7,
    NAMES_BYTES_MAX = 2048, /* rough limit of a list in messages */
};

/* Merge two commits. If they conflict, *tree is "" and *text has details. */
static enum err merge_trees(struct queue *queue,
                            const struct git_id *ours,
                            const struct git_id *theirs,
                            struct git_id *tree,
                            struct strbuf *text,
                            struct diag *diag)
{
    int code = 0;
    struct git_call call = {.args = PROC_ARGS("merge-tree",
                                              "--write-tree",
                                              "--name-only",
                                              "--messages",
                                              ours->text,
                                              theirs->text),
                            .output = text,
                            .codes = CONFLICT};
    *tree = (struct git_id){0};
    enum err err = git_call(queue->agent.git, &call, &code, diag);
    if (err == ERR_OK && code == 0) {
        err = git_first_id(text, tree, diag);
    }
    return err;
}

/* Create a commit of a tree. */
static enum err commit_tree(struct queue *queue,
                            const char *tree,
                            const char *const *parents,
                            size_t count,
                            const char *message,
                            struct git_id *out,
                            struct diag *diag)
{
    const char *args[ARGS_MAX] = {"commit-tree", tree};
    size_t at = 2;
    INVARIANT(2 * count + at < ARGS_MAX - 1);
    for (size_t ix = 0; ix < count; ix++) {
        args[at++] = "-p";
        args[at++] = parents[ix];
    }
    struct strbuf line = {0};
    struct git_call call = {.args = args, .input = message, .output = &line};
    enum err err = git_call(queue->agent.git, &call, NULL, diag);
    if (err == ERR_OK) {
        err = git_first_id(&line, out, diag);
    }
    strbuf_release(&line);
    return err;
}

/* Append the names of the files in conflict: the lines after the first, up to
 * an empty line. */
static void add_conflicts(struct strbuf *out, const struct strbuf *text)
{
    const char *line = strchr(strbuf_text(text), '\n');
    const char *comma = "";
    while (line != NULL && line[1] != '\n' && line[1] != '\0') {
        size_t len = strcspn(line + 1, "\n");
        strbuf_adds(out, comma);
        if (out->len + len > NAMES_BYTES_MAX) {
            strbuf_adds(out, "and more");
            return;
        }
        strbuf_add(out, line + 1, len);
        comma = ", ";
        line = line[1 + len] == '\n' ? line + 1 + len : NULL;
    }
}

/* Report a conflict with the agent branch. */
static void blame(struct queue *queue,
                  struct candidate *candidate,
                  const struct strbuf *text)
{
    struct strbuf reason = {0};
    strbuf_addf(&reason,
                "%s conflicts with %s in ",
                merge_name(queue, candidate),
                git_short_name(queue->agent.names.agent));
    add_conflicts(&reason, text);
    strbuf_addf(&reason,
                ": merge %s into its branch and resolve them",
                git_short_name(queue->agent.names.agent));
    log_text(strbuf_text(text));
    merge_decide(candidate, OUTCOME_EXIT_CHANGES, strbuf_text(&reason));
    strbuf_release(&reason);
}

/* Return whether a file of the repaired tree still has a conflict marker. An
 * attribute can make markers longer. */
static bool has_marks(const char *folder, const char *name)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/%s", folder, name);
    FILE *file = fopen(strbuf_text(&path), "re");
    strbuf_release(&path);
    bool found = false;
    char line[LINE_BYTES];
    while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL) {
        size_t len = strspn(line, "<");
        found = len >= MARK_BYTES_MIN && line[len] == ' ';
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return found;
}

/* Check whether all conflicts were resolved. Names are not quoted. */
static enum err is_resolved(struct queue *queue,
                            const struct candidate *candidate,
                            bool *out,
                            struct diag *diag)
{
    struct strbuf list = {0};
    struct git_call call = {.args = PROC_ARGS("merge-tree",
                                              "--write-tree",
                                              "--name-only",
                                              "--no-messages",
                                              "-z",
                                              queue->agent.tip.text,
                                              candidate->tip.text),
                            .output = &list,
                            .codes = CONFLICT};
    enum err err = git_call(queue->agent.git, &call, NULL, diag);
    *out = err == ERR_OK;
    for (size_t at = strlen(strbuf_text(&list)) + 1; *out && at < list.len;
         at += strlen(list.text + at) + 1) {
        *out = !has_marks(queue->options->worktree, list.text + at);
    }
    strbuf_release(&list);
    return err;
}

static enum err call_there(struct queue *queue,
                           const char *const *args,
                           struct strbuf *out,
                           int codes,
                           struct diag *diag)
{
    struct git_call call = {
        .args = args,
        .folder = queue->options->worktree,
        .output = out,
        .codes = codes,
    };
    return git_call(queue->agent.git, &call, NULL, diag);
}

/* Run the plan's command to resolve a conflict in the worktree of the queue,
 * while the merge limit is held. *tree stays "" if it fails. */
static enum err repair(struct queue *queue,
                       const struct candidate *candidate,
                       struct git_id *tree,
                       struct diag *diag)
{
    const char *const merge[] = {"merge",
                                 "--quiet",
                                 "--no-commit",
                                 "--no-ff",
                                 candidate->tip.text,
                                 NULL};
    enum merge_verdict verdict = MERGE_BAD;
    enum err err = merge_checkout(queue, &queue->agent.tip, diag);
    if (err == ERR_OK) {
        err = call_there(queue, merge, NULL, CONFLICT, diag);
    }
    if (err == ERR_OK) {
        crash_point("merge-before-repair");
        err = merge_command(queue, queue->options->repair, &verdict, diag);
    }
    if (err == ERR_OK && verdict == MERGE_UNKNOWN) {
        return diag_set(diag, ERR_IO, "cannot run the repair command");
    }
    bool resolved = false;
    if (err == ERR_OK && verdict == MERGE_GOOD) {
        err = is_resolved(queue, candidate, &resolved, diag);
    }
    if (err != ERR_OK || !resolved) {
        return err;
    }
    struct strbuf line = {0};
    struct git_call there = {.folder = queue->options->worktree};
    bool changed = false;
    err = private_stage(queue->agent.git, &there, &changed, diag);
    crash_point("merge-repaired");
    if (err == ERR_OK) {
        err = call_there(queue, PROC_ARGS("write-tree"), &line, 0, diag);
    }
    if (err == ERR_OK) {
        err = git_first_id(&line, tree, diag);
    }
    if (err == ERR_OK) {
        err = private_import(
            queue->agent.git,
            queue->options->worktree,
            tree,
            PROC_ARGS(queue->agent.tip.text, candidate->tip.text),
            diag);
    }
    strbuf_release(&line);
    return err;
}

/* Append the trailers, which say how the commit was made. */
static void add_receipt(struct strbuf *out,
                        const struct queue *queue,
                        const struct merged *merged,
                        const struct git_id *tree)
{
    const struct merge_options *options = queue->options;
    char token[24];
    (void)snprintf(token, sizeof(token), "%" PRIu64, options->agent.token);
    receipt_add(out, "Sluice-Run", options->agent.run);
    for (size_t ix = 0; ix < merged->count; ix++) {
        const struct agent_member *member = merged->parts[ix]->member;
        receipt_add(out,
                    member != NULL ? "Sluice-Issue" : "Sluice-Base",
                    merge_name(queue, merged->parts[ix]));
        if (member != NULL && member->agent != NULL) {
            receipt_add(out, "Sluice-Agent", member->agent);
        }
    }
    receipt_add(out, "Sluice-Attempt", token);
    receipt_add(out,
                "Sluice-Gate",
                options->gate != NULL ? options->gate : RECEIPT_NO_GATE);
    receipt_add(out, "Sluice-Tree", tree->text);
}

/* Append the commit message: branches and their titles, each on one line, and
 * the receipt, which is the last paragraph. */
static void add_message(struct strbuf *out,
                        const struct queue *queue,
                        const struct merged *merged,
                        const struct git_id *tree)
{
    strbuf_adds(out, "Merge ");
    for (size_t ix = 0; ix < merged->count; ix++) {
        strbuf_adds(out, ix > 0 ? ", " : "");
        receipt_add_line(out, merge_name(queue, merged->parts[ix]));
    }
    strbuf_adds(out, "\n\n");
    bool titled = false;
    for (size_t ix = 0; ix < merged->count; ix++) {
        const struct agent_member *member = merged->parts[ix]->member;
        if (member != NULL && member->title != NULL) {
            receipt_add(out, member->group, member->title);
            titled = true;
        }
    }
    strbuf_adds(out, titled ? "\n" : "");
    add_receipt(out, queue, merged, tree);
}

/* Merge one candidate into the result so far, which is `*tree` at `*at`. They
 * stay unchanged if it must wait, or is decided. */
static enum err add_one(struct queue *queue,
                        struct candidate *candidate,
                        struct merged *merged,
                        struct git_id *at,
                        struct git_id *tree,
                        struct diag *diag)
{
    struct strbuf text = {0};
    struct git_id next;
    enum err err = merge_trees(queue, at, &candidate->tip, &next, &text, diag);
    bool alone = merged->count == 0;
    if (err == ERR_CONFLICT) { /* git is unable to merge it */
        log_text(strbuf_text(&text));
        merge_decide(candidate, OUTCOME_EXIT_FAILED, diag->text);
        err = ERR_OK;
        alone = false;
    }
    if (err == ERR_OK && next.text[0] == '\0' && alone &&
        candidate->member != NULL && queue->options->repair != NULL) {
        err = repair(queue, candidate, &next, diag);
    }
    if (err == ERR_OK && next.text[0] == '\0' && alone) {
        blame(queue, candidate, &text);
    }
    strbuf_release(&text);
    if (err != ERR_OK || next.text[0] == '\0') {
        return err;
    }
    *tree = next;
    merged->parts[merged->count++] = candidate;
    const char *const parents[] = {at->text, candidate->tip.text};
    struct git_id step;
    err = commit_tree(queue, tree->text, parents, 2, "step\n", &step, diag);
    *at = step;
    return err;
}

/* Create the commit with all branches as parents. */
static enum err seal(struct queue *queue,
                     struct merged *merged,
                     const struct git_id *tree,
                     struct diag *diag)
{
    const char **parents = mem_zalloc(merged->count + 1, sizeof(parents[0]));
    parents[0] = merged->from.text;
    for (size_t ix = 0; ix < merged->count; ix++) {
        parents[ix + 1] = merged->parts[ix]->tip.text;
    }
    struct strbuf message = {0};
    add_message(&message, queue, merged, tree);
    enum err err = commit_tree(queue,
                               tree->text,
                               parents,
                               merged->count + 1,
                               strbuf_text(&message),
                               &merged->commit,
                               diag);
    crash_point("merge-made");
    strbuf_release(&message);
    mem_free(parents);
    return err;
}

enum err merge_make(struct queue *queue,
                    size_t max,
                    struct merged *out,
                    struct diag *diag)
{
    struct git_id at = queue->agent.tip;
    struct git_id tree = {0};
    enum err err = ERR_OK;
    out->from = at;
    out->count = 0;
    for (size_t ix = 0; ix < queue->count && out->count < max && err == ERR_OK;
         ix++) {
        if (!queue->candidates[ix].decided) {
            err = add_one(queue, &queue->candidates[ix], out, &at, &tree, diag);
        }
    }
    if (err == ERR_OK && out->count > 0) {
        err = seal(queue, out, &tree, diag);
    }
    return err;
}
