/* SPDX-License-Identifier: MIT */
#include "git/merge_internal.h"

#include "base/crash.h"
#include "git/confine.h"
#include "git/log.h"
#include "git/result.h"
#include "git/worktree.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OUTPUT_BYTES_MAX = 8 << 10 }; /* remembered of a gate that fails */

enum err merge_checkout(struct queue *queue,
                        const struct git_id *commit,
                        struct diag *diag)
{
    struct worktree worktree = {
        .path = queue->options->worktree,
        .repo = {.start = *commit, .agent = queue->agent.names.agent},
        .alone = true,
        .pristine = true,
        .checkout = &queue->options->agent.checkout,
    };
    worktree_leave(&queue->lock);
    return worktree_enter(queue->agent.git, &worktree, &queue->lock, diag);
}

enum err merge_command(struct queue *queue,
                       const char *command,
                       enum merge_verdict *out,
                       struct diag *diag)
{
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    struct proc proc = {
        .argv = argv,
        .env = (const char *const *)environ,
        .folder = queue->options->worktree,
        .is_over = queue->is_over,
        .ctx = queue,
    };
    struct proc_end end;
    confine(&queue->agent, &proc);
    crash_point("merge-before-command");
    enum err err = proc_run(&proc, &end, diag);
    git_distrust(queue->agent.git);
    crash_point("merge-command-ended");
    if (err != ERR_OK) {
        return err;
    }
    if (end.over || end.signal != 0 || proc_is_ending() ||
        outcome_is_missing(end.code) ||
        outcome_of_code(end.code) == OUTCOME_REFUSED) {
        *out = MERGE_UNKNOWN;
    } else {
        *out = end.code == 0 ? MERGE_GOOD : MERGE_BAD;
    }
    log_line("\"%s\" %s",
             command,
             *out == MERGE_GOOD  ? "passed"
             : *out == MERGE_BAD ? "failed"
                                 : "gave no verdict");
    return ERR_OK;
}

/* Return the size of the log so far; -1: standard error is not a file. */
static off_t log_size(void)
{
    struct stat status;
    return fstat(STDERR_FILENO, &status) == 0 && S_ISREG(status.st_mode)
               ? status.st_size
               : -1;
}

/* Append the last output of a gate, which began at this size of the log. */
static void
add_output(struct strbuf *out, const struct queue *queue, off_t begin)
{
    char bytes[OUTPUT_BYTES_MAX];
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/log", queue->options->dir);
    int fd = open(strbuf_text(&path), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    strbuf_release(&path);
    off_t end = log_size();
    if (fd < 0 || begin < 0 || end <= begin) {
        goto out;
    }
    bool cut = end - begin > OUTPUT_BYTES_MAX;
    off_t from = cut ? end - OUTPUT_BYTES_MAX : begin;
    ssize_t len = pread(fd, bytes, (size_t)(end - from), from);
    if (len > 0) {
        gate_memory_clean(out, bytes, (size_t)len, cut);
    }
out:
    if (fd >= 0) {
        (void)close(fd);
    }
}

/* Read the tree of a commit. */
static enum err find_tree(const struct queue *queue,
                          const struct git_id *commit,
                          struct git_id *out,
                          struct diag *diag)
{
    struct strbuf name = {0};
    struct strbuf line = {0};
    strbuf_addf(&name, "%s^{tree}", commit->text);
    enum err err =
        git_output(queue->agent.git,
                   PROC_ARGS("rev-parse", "--verify", strbuf_text(&name)),
                   &line,
                   diag);
    if (err == ERR_OK) {
        err = git_first_id(&line, out, diag);
    }
    strbuf_release(&name);
    strbuf_release(&line);
    return err;
}

/* Tell a verdict that is known, as if the gate had run. */
static enum merge_verdict recall(const struct gate_verdict *known)
{
    bool failed = known->verdict == ATTEMPT_GATE_FAILED;
    log_line("tree %.12s %s this gate before (%s)%s",
             known->tree.text,
             failed ? "failed" : "passed",
             known->tested_by,
             known->output != NULL ? "; its output was:" : "");
    if (known->output != NULL) {
        log_text(known->output);
        log_text("\n");
    }
    return failed ? MERGE_BAD : MERGE_GOOD;
}

/* Remember a verdict, and report it: also if this process dies now. */
static void note(struct queue *queue, const struct gate_verdict *verdict)
{
    (void)gate_memory_add(queue->memory, verdict);
    merge_tell_gates(queue);
    crash_point("merge-gate-told");
}

void merge_tell_gates(const struct queue *queue)
{
    if (queue->options->gate != NULL) {
        result_say_gates(queue->memory, queue->options->gate);
    }
}

/* Run the gate until it passes, or has failed too often. Each run begins with a
 * clean checkout. *begin_out is the size of the log before the last run. */
static enum err run_gate(struct queue *queue,
                         struct gate_verdict *verdict,
                         enum merge_verdict *out,
                         off_t *begin_out,
                         struct diag *diag)
{
    const struct merge_options *options = queue->options;
    enum err err = ERR_OK;
    do {
        if (verdict->tries > 0) {
            log_line("the gate failed: trying again (%u of %u)",
                     verdict->tries,
                     options->gate_retry);
        }
        err = merge_checkout(queue, &verdict->commit, diag);
        crash_point("merge-checked-out");
        *begin_out = log_size();
        if (err == ERR_OK) {
            err = merge_command(queue, options->gate, out, diag);
        }
        verdict->tries++;
    } while (err == ERR_OK && *out == MERGE_BAD &&
             verdict->tries <= options->gate_retry);
    if (err == ERR_OK && *out == MERGE_UNKNOWN) {
        err = diag_set(diag,
                       ERR_IO,
                       "the gate \"%.200s\" gave no verdict",
                       options->gate);
    }
    if (err == ERR_OK && *out == MERGE_GOOD && verdict->tries > 1) {
        log_line("the gate is flaky: it failed, and passed at try %u",
                 verdict->tries);
    }
    return err;
}

enum err merge_test(struct queue *queue,
                    const struct git_id *commit,
                    enum merge_verdict *out,
                    struct diag *diag)
{
    *out = MERGE_GOOD;
    if (queue->options->gate == NULL) {
        return ERR_OK;
    }
    char itself[] = "this merge";
    struct gate_verdict verdict = {.commit = *commit, .tested_by = itself};
    enum err err = find_tree(queue, commit, &verdict.tree, diag);
    const struct gate_verdict *known =
        err == ERR_OK ? gate_memory_find(queue->memory, &verdict.tree) : NULL;
    if (known != NULL) {
        *out = recall(known);
        return ERR_OK;
    }
    off_t begin = -1;
    if (err == ERR_OK) {
        err = run_gate(queue, &verdict, out, &begin, diag);
    }
    if (err != ERR_OK) {
        return err;
    }
    struct strbuf output = {0};
    verdict.verdict = *out == MERGE_BAD   ? ATTEMPT_GATE_FAILED
                      : verdict.tries > 1 ? ATTEMPT_GATE_FLAKY
                                          : ATTEMPT_GATE_PASSED;
    if (*out == MERGE_BAD) {
        add_output(&output, queue, begin);
        verdict.output = output.text;
    }
    note(queue, &verdict);
    strbuf_release(&output);
    return ERR_OK;
}
