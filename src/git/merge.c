/* SPDX-License-Identifier: MIT */
/*
 * The merge queue. Each round merges the oldest undecided branches and runs the
 * gate once on the result. If that fails for more than one branch, the next
 * round takes half as many, until a bad branch is alone; then the number grows
 * again. So a branch is only blamed for its own effect on the agent branch, and
 * the result equals that of merging one by one.
 *
 * An inconclusive gate blames no branch: the session fails as a whole, and the
 * plan's retries apply. Branches merged before that stay merged.
 */
#include "git/merge.h"

#include "base/crash.h"
#include "base/mem.h"
#include "git/log.h"
#include "git/merge_internal.h"
#include "git/result.h"
#include "git/worktree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum {
    MOVES_MAX = 20, /* rounds lost to another mover of the branch */
    PARTS_MAX = 16, /* branches in one commit */
};

void merge_decide(struct candidate *candidate, int code, const char *reason)
{
    candidate->decided = true;
    candidate->code = code;
    strbuf_clear(&candidate->reason);
    strbuf_adds(&candidate->reason, reason);
}

const char *merge_name(const struct queue *queue,
                       const struct candidate *candidate)
{
    return candidate->member != NULL ? candidate->member->group
                                     : queue->options->agent.base;
}

/* Take the lock that protects the agent branches of a repository, for runs of
 * all stores. Return -1 on failure. */
static int lock_repo(struct queue *queue, struct diag *diag)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/sluice.lock", git_common_dir(queue->agent.git));
    int fd = open(strbuf_text(&path),
                  O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                  0600);
    if (fd < 0) {
        (void)diag_set(diag,
                       ERR_IO,
                       "open %s: %s",
                       strbuf_text(&path),
                       strerror(errno));
    } else if (!proc_lock(fd, LOCK_EX)) {
        (void)diag_set(diag,
                       ERR_IO,
                       "lock %s: %s",
                       strbuf_text(&path),
                       strerror(errno));
        (void)close(fd);
        fd = -1;
    }
    strbuf_release(&path);
    return fd;
}

/* Find the commit of a group to merge: the commit that its stages have seen. */
static enum err
find_tip(struct queue *queue, struct candidate *candidate, struct diag *diag)
{
    struct git_ref refs[] = {
        {.name = candidate->names.passed},
        {.name = candidate->names.branch},
    };
    enum err err =
        git_read_refs(queue->agent.git, refs, ARRAY_COUNT(refs), diag);
    const struct git_id *passed = &refs[0].id;
    const struct git_id *branch = &refs[1].id;
    if (err != ERR_OK) {
        return err;
    }
    candidate->tip = *branch;
    if (branch->text[0] == '\0') {
        merge_decide(candidate,
                     OUTCOME_EXIT_BLOCKED,
                     "no branch to merge: no stage of its group has worked in "
                     "this repository");
    } else if (passed->text[0] != '\0' &&
               strcmp(passed->text, branch->text) != 0) {
        merge_decide(candidate,
                     OUTCOME_EXIT_CHANGES,
                     "its branch was changed by another process: it is not at "
                     "the commit of its last stage");
    }
    return ERR_OK;
}

/* A branch that the agent branch contains is done: git is authoritative. */
static enum err check_merged(struct queue *queue,
                             struct candidate *candidate,
                             struct diag *diag)
{
    bool merged = false;
    enum err err = candidate->decided ? ERR_OK
                                      : git_is_ancestor(queue->agent.git,
                                                        candidate->tip.text,
                                                        queue->agent.tip.text,
                                                        &merged,
                                                        diag);
    if (err == ERR_OK && merged) {
        merge_decide(candidate, OUTCOME_EXIT_DONE, "");
    }
    return err;
}

/* Read the tip of the agent branch. */
static enum err read_tip(struct queue *queue, struct diag *diag)
{
    struct git_ref ref = {.name = queue->agent.names.agent};
    enum err err = git_read_refs(queue->agent.git, &ref, 1, diag);
    if (err == ERR_OK && ref.id.text[0] == '\0') {
        err = diag_set(diag,
                       ERR_INVALID,
                       "the branch %s is gone",
                       git_short_name(ref.name));
    }
    queue->agent.tip = ref.id;
    return err;
}

/* Run the gate on a result. */
static enum err test(struct queue *queue,
                     const struct merged *merged,
                     enum merge_verdict *out,
                     struct diag *diag)
{
    *out = MERGE_GOOD;
    if (queue->options->gate == NULL) {
        return ERR_OK;
    }
    enum err err = merge_checkout(queue, &merged->commit, diag);
    crash_point("merge-checked-out");
    if (err == ERR_OK) {
        err = merge_command(queue, queue->options->gate, out, diag);
    }
    if (err == ERR_OK && *out == MERGE_UNKNOWN) {
        err = diag_set(diag,
                       ERR_IO,
                       "the gate \"%.200s\" gave no verdict",
                       queue->options->gate);
    }
    return err;
}

static void decide_all(const struct merged *merged, int code, const char *text)
{
    for (size_t ix = 0; ix < merged->count; ix++) {
        merge_decide(merged->parts[ix], code, text);
    }
}

/* Run one round: merge, test, move. *max is the number of branches to take. */
static enum err round_of(struct queue *queue,
                         struct merged *merged,
                         size_t *max,
                         struct diag *diag)
{
    merged->late = false;
    enum err err = merge_make(queue, *max, merged, diag);
    if (err != ERR_OK || merged->count == 0) {
        return err;
    }
    enum merge_verdict verdict = MERGE_GOOD;
    err = test(queue, merged, &verdict, diag);
    if (err != ERR_OK) {
        return err;
    }
    if (verdict == MERGE_BAD && merged->count > 1) {
        *max = merged->count / 2;
        return ERR_OK;
    }
    if (verdict == MERGE_BAD) {
        char reason[DIAG_BYTES];
        (void)snprintf(reason,
                       sizeof(reason),
                       "the gate \"%.200s\" fails after the merge into %s",
                       queue->options->gate,
                       git_short_name(queue->agent.names.agent));
        decide_all(merged, OUTCOME_EXIT_CHANGES, reason);
        *max = PARTS_MAX;
        return ERR_OK;
    }
    err = agent_move(&queue->agent, &merged->from, &merged->commit, diag);
    merged->late = err == ERR_CONFLICT;
    if (err == ERR_OK) {
        decide_all(merged, OUTCOME_EXIT_DONE, "");
    }
    return err;
}

static bool is_undecided(const struct queue *queue)
{
    for (size_t ix = 0; ix < queue->count; ix++) {
        if (!queue->candidates[ix].decided) {
            return true;
        }
    }
    return false;
}

/* Run rounds until all branches are decided. */
static enum err work_off(struct queue *queue, struct diag *diag)
{
    size_t max = PARTS_MAX;
    int moves = 0;
    struct merged merged = {
        .parts = mem_zalloc(queue->count, sizeof(void *)),
    };
    enum err err = read_tip(queue, diag);
    for (size_t ix = 0; ix < queue->count && err == ERR_OK; ix++) {
        err = check_merged(queue, &queue->candidates[ix], diag);
    }
    while (err == ERR_OK && is_undecided(queue)) {
        err = round_of(queue, &merged, &max, diag);
        if (merged.late && ++moves < MOVES_MAX) {
            err = ERR_OK; /* start over on the new tip */
        }
        if (err == ERR_OK) {
            err = read_tip(queue, diag);
        }
    }
    mem_free(merged.parts);
    return err;
}

/* Merge new commits of the base. A failure is not the groups' fault; they
 * continue without it. */
static enum err sync_base(struct queue *queue, struct diag *diag)
{
    struct candidate base = {0};
    struct queue alone = *queue;
    alone.candidates = &base;
    alone.count = 1;
    enum err err = git_resolve(queue->agent.git,
                               queue->options->agent.base,
                               &base.tip,
                               diag);
    if (err == ERR_OK) {
        err = work_off(&alone, diag);
    }
    queue->lock = alone.lock;
    if (err == ERR_OK && base.code != OUTCOME_EXIT_DONE) {
        log_line("cannot merge %s into the agent branch: %s",
                 queue->options->agent.base,
                 strbuf_text(&base.reason));
    }
    strbuf_release(&base.reason);
    return err;
}

static enum err work(struct queue *queue, struct diag *diag)
{
    git_unlock_ref(queue->agent.git, queue->agent.names.agent);
    /* Do not move the branch under a worktree that has it checked out. */
    struct worktree nowhere = {.path = "", .branch = queue->agent.names.agent};
    enum err err = worktree_check_elsewhere(queue->agent.git, &nowhere, diag);
    if (err == ERR_OK) {
        err = agent_fence(&queue->agent, diag);
    }
    for (size_t ix = 0; ix < queue->count && err == ERR_OK; ix++) {
        err = find_tip(queue, &queue->candidates[ix], diag);
    }
    if (err == ERR_OK && queue->options->sync) {
        err = sync_base(queue, diag);
    }
    return err == ERR_OK ? work_off(queue, diag) : err;
}

/* Report the outcomes; return the exit code. */
static int tell(const struct queue *queue)
{
    if (queue->count == 1) {
        const struct candidate *only = &queue->candidates[0];
        result_say(only->code, strbuf_text(&only->reason));
        return only->code;
    }
    bool told = true;
    for (size_t ix = 0; ix < queue->count; ix++) {
        const struct candidate *candidate = &queue->candidates[ix];
        told = result_say_task(candidate->member->task,
                               candidate->code,
                               strbuf_text(&candidate->reason)) &&
               told;
    }
    return told ? OUTCOME_EXIT_DONE
                : OUTCOME_EXIT_REFUSED; /* no result would mean done */
}

int merge_run(const struct merge_options *options)
{
    struct queue queue = {
        .options = options,
        .candidates =
            mem_zalloc(options->member_count, sizeof(queue.candidates[0])),
        .count = options->member_count,
        .lock = -1,
    };
    for (size_t ix = 0; ix < queue.count; ix++) {
        queue.candidates[ix].member = &options->members[ix];
        names_init(&queue.candidates[ix].names,
                   options->agent.run,
                   options->members[ix].group);
    }
    struct diag diag = {0};
    enum err err = agent_open(&queue.agent, &options->agent, &diag);
    int lock = -1;
    if (err == ERR_OK) {
        lock = lock_repo(&queue, &diag);
        err = lock >= 0 ? work(&queue, &diag) : ERR_IO;
    }
    crash_point("merge-decided");
    int code = err == ERR_OK ? tell(&queue) : result_code(err);
    if (err != ERR_OK) {
        result_refuse(code, diag.text);
    }
    worktree_leave(&queue.lock);
    if (lock >= 0) {
        (void)close(lock);
    }
    agent_close(&queue.agent);
    for (size_t ix = 0; ix < queue.count; ix++) {
        names_release(&queue.candidates[ix].names);
        strbuf_release(&queue.candidates[ix].reason);
    }
    mem_free(queue.candidates);
    return code;
}
