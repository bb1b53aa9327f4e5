/* SPDX-License-Identifier: MIT */
#include "git/merge_internal.h"

#include "base/crash.h"
#include "git/log.h"
#include "git/result.h"
#include "git/worktree.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum err merge_checkout(struct queue *queue,
                        const struct git_id *commit,
                        struct diag *diag)
{
    struct worktree worktree = {
        .path = queue->options->worktree,
        .start = *commit,
        .alone = true,
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
    };
    struct proc_end end;
    crash_point("merge-before-command");
    enum err err = proc_run(&proc, &end, diag);
    git_distrust(queue->agent.git);
    crash_point("merge-command-ended");
    if (err != ERR_OK) {
        return err;
    }
    if (end.signal != 0 || proc_is_ending() || outcome_is_missing(end.code) ||
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
