/* SPDX-License-Identifier: MIT */
#include "git/base.h"

#include "base/crash.h"
#include "git/merge_internal.h"
#include "git/result.h"
#include "git/worktree.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_same(const struct git_id *a, const struct git_id *b)
{
    return strcmp(a->text, b->text) == 0;
}

/* Move the agent branch to the base, as merges do: under their lock. */
static enum err
move(struct queue *queue, const struct git_id *base, struct diag *diag)
{
    struct agent *agent = &queue->agent;
    int lock = merge_lock_repo(queue, diag);
    if (lock < 0) {
        return ERR_IO;
    }
    git_unlock_ref(agent->git, agent->names.agent);
    enum err err =
        worktree_check_elsewhere(agent->git, agent->names.agent, diag);
    if (err == ERR_OK) {
        err = agent_move(agent, NULL, 0, &agent->tip, base, diag);
        /* A merge has moved it: try again, from there. Only a hub refuses for
         * good. */
        bool moved = err == ERR_CONFLICT ||
                     (err == ERR_DENIED && agent->options->url == NULL);
        err = moved ? ERR_UNAVAILABLE : err;
    }
    if (err == ERR_OK) {
        agent->tip = *base;
    }
    (void)close(lock);
    return err;
}

/*
 * Let the agent branch begin at the newest commit of the base, unless it has
 * commits of its own: it is still at the commit that was gated last, or an
 * ancestor of the base.
 */
static enum err begin(struct queue *queue, bool *at_base, struct diag *diag)
{
    struct agent *agent = &queue->agent;
    struct git_id base;
    struct git_ref gated = {.name = agent->names.gated};
    enum err err = agent_update_base(agent, &base, diag);
    if (err == ERR_OK) {
        err = git_read_refs(agent->git, &gated, 1, diag);
    }
    bool behind = err == ERR_OK && is_same(&gated.id, &agent->tip);
    if (err == ERR_OK && !behind) {
        err = git_is_ancestor(agent->git,
                              agent->tip.text,
                              base.text,
                              &behind,
                              diag);
    }
    if (err == ERR_OK && behind && !is_same(&base, &agent->tip)) {
        err = move(queue, &base, diag);
    }
    crash_point("base-moved");
    struct git_ref_change change = {
        .ref = agent->names.gated,
        .to = agent->tip.text,
    };
    if (err == ERR_OK) {
        err = git_change_refs(agent->git, &change, 1, "sluice: base", diag);
    }
    *at_base = err == ERR_OK && is_same(&base, &agent->tip);
    return err == ERR_NOT_FOUND ? ERR_INVALID : err;
}

/* Park the task: the base is bad. */
static int
blame(const struct base_options *options, const struct agent *agent, bool base)
{
    char reason[DIAG_BYTES];
    const char *branch =
        base ? agent->options->base : git_short_name(agent->names.agent);
    (void)snprintf(
        reason,
        sizeof(reason),
        "the gate \"%.200s\" fails on %s%.200s at %.12s: fix %.200s, "
        "then retry %.200s",
        options->gate,
        base ? "base " : "",
        branch,
        agent->tip.text,
        branch,
        options->task);
    result_blame_base(reason);
    return OUTCOME_EXIT_BLOCKED;
}

int base_run(const struct base_options *options)
{
    const struct merge_options merge = {
        .agent = options->agent,
        .worktree = options->worktree,
        .dir = options->dir,
        .gate = options->gate,
        .gate_retry = options->gate_retry,
    };
    struct gate_memory memory = {0};
    struct queue queue = {.options = &merge, .memory = &memory, .lock = -1};
    enum merge_verdict verdict = MERGE_UNKNOWN;
    bool at_base = false;
    struct diag diag = {0};
    gate_memory_read(&memory, options->dir);
    enum err err = agent_open(&queue.agent, &merge.agent, &diag);
    if (err == ERR_OK) {
        err = begin(&queue, &at_base, &diag);
    }
    crash_point("base-begun");
    if (err == ERR_OK) {
        err = merge_test(&queue, &queue.agent.tip, &verdict, &diag);
    }
    merge_tell_gates(&queue);
    crash_point("base-tested");
    int code = result_code(err);
    if (err != ERR_OK) {
        result_refuse(code, diag.text);
    } else if (verdict == MERGE_BAD) {
        code = blame(options, &queue.agent, at_base);
    } else {
        result_say(code, "");
    }
    worktree_leave(&queue.lock);
    agent_close(&queue.agent);
    gate_memory_release(&memory);
    return code;
}
