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
#include "git/hub.h"
#include "git/log.h"
#include "git/merge_internal.h"
#include "git/person.h"
#include "git/result.h"
#include "git/sweep.h"
#include "git/worktree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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

int merge_lock_repo(const struct queue *queue, struct diag *diag)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/sluice", git_common_dir(queue->agent.git));
    if (queue->options->agent.entry != NULL) {
        strbuf_adds(&path, "+");
        names_add(&path, queue->options->agent.entry);
    }
    strbuf_adds(&path, ".lock");
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

/* Append the path of a group's checkout, beside those of the queue. */
static void add_checkout(struct strbuf *out,
                         const struct queue *queue,
                         const struct candidate *candidate)
{
    const char *own = queue->options->worktree;
    strbuf_add(out, own, (size_t)(strrchr(own, '/') - own) + 1);
    names_add(out, candidate->member->group);
}

/* Take what a person has committed for a group: it is merged, too. */
static enum err take_person(struct queue *queue,
                            const struct candidate *candidate,
                            struct diag *diag)
{
    struct strbuf path = {0};
    add_checkout(&path, queue, candidate);
    struct person person = {
        .names = &candidate->names,
        .path = strbuf_text(&path),
        .fence = {.ref = candidate->names.group_fence,
                  .task = candidate->member->task,
                  .token = queue->options->agent.token,
                  .alone = true},
        .passed = true,
    };
    enum err err = person_take(&queue->agent, &person, diag);
    strbuf_release(&path);
    return err;
}

/* Remove the checkouts of groups that have landed. */
static void remove_landed(struct queue *queue)
{
    for (size_t ix = 0; ix < queue->count; ix++) {
        const struct candidate *candidate = &queue->candidates[ix];
        if (candidate->decided && candidate->code == OUTCOME_EXIT_DONE) {
            struct strbuf path = {0};
            add_checkout(&path, queue, candidate);
            sweep_landed(&queue->agent, strbuf_text(&path));
            strbuf_release(&path);
        }
    }
}

/* Find the commit of a group to merge: the commit that its stages have seen. */
static enum err
find_tip(struct queue *queue, struct candidate *candidate, struct diag *diag)
{
    struct git_ref refs[] = {
        {.name = candidate->names.passed},
        {.name = candidate->names.branch},
    };
    enum err err = take_person(queue, candidate, diag);
    if (err == ERR_OK) {
        err = git_read_refs(queue->agent.git, refs, ARRAY_COUNT(refs), diag);
    }
    const struct git_id *passed = &refs[0].id;
    const struct git_id *branch = &refs[1].id;
    if (err != ERR_OK) {
        return err;
    }
    candidate->tip = *passed;
    if (passed->text[0] == '\0') {
        merge_decide(candidate,
                     OUTCOME_EXIT_BLOCKED,
                     "no branch to merge: no stage of its group has succeeded "
                     "in this repository");
    } else if (strcmp(passed->text, branch->text) != 0) {
        merge_decide(candidate,
                     OUTCOME_EXIT_CHANGES,
                     "its branch lacks commits of its last stage: another "
                     "process has moved it back");
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

enum err merge_read_tip(struct queue *queue, struct diag *diag)
{
    struct git_ref ref = {.name = queue->agent.names.agent};
    enum err err = hub_fetch(queue->agent.git, diag);
    if (err == ERR_OK) {
        err = git_read_refs(queue->agent.git, &ref, 1, diag);
    }
    if (err == ERR_OK && ref.id.text[0] == '\0') {
        err = diag_set(diag,
                       ERR_INVALID,
                       "the branch %s is gone",
                       git_short_name(ref.name));
    }
    queue->agent.tip = ref.id;
    return err;
}

static void decide_all(const struct merged *merged, int code, const char *text)
{
    for (size_t ix = 0; ix < merged->count; ix++) {
        merge_decide(merged->parts[ix], code, text);
    }
}

/* Move the agent branch to a tested result. */
static enum err
move(struct queue *queue, const struct merged *merged, struct diag *diag)
{
    const struct agent_member **members =
        mem_zalloc(merged->count, sizeof(void *));
    size_t count = 0;
    for (size_t ix = 0; ix < merged->count; ix++) {
        if (merged->parts[ix]->member != NULL) { /* not the base */
            members[count++] = merged->parts[ix]->member;
        }
    }
    enum err err = agent_move(&queue->agent,
                              members,
                              count,
                              &merged->from,
                              &merged->commit,
                              diag);
    mem_free(members);
    return err;
}

/* Take the fences of all groups of the session. */
static enum err fence(struct queue *queue, struct diag *diag)
{
    const struct agent_member **members =
        mem_zalloc(queue->count, sizeof(void *));
    for (size_t ix = 0; ix < queue->count; ix++) {
        members[ix] = queue->candidates[ix].member;
    }
    enum err err = agent_fence(&queue->agent, members, queue->count, diag);
    mem_free(members);
    return err;
}

void merge_blame_gate(struct queue *queue, const struct merged *merged)
{
    char reason[DIAG_BYTES];
    (void)snprintf(reason,
                   sizeof(reason),
                   "the gate \"%.200s\" fails after the merge into %s",
                   queue->options->gate,
                   git_short_name(queue->agent.names.agent));
    decide_all(merged, OUTCOME_EXIT_CHANGES, reason);
}

/* Do not move the branch under a worktree that has it checked out. */
static enum err check_free(struct queue *queue, struct diag *diag)
{
    return worktree_check_elsewhere(queue->agent.git,
                                    queue->agent.names.agent,
                                    diag);
}

enum err
merge_land(struct queue *queue, const struct merged *merged, struct diag *diag)
{
    int lock = merge_lock_repo(queue, diag);
    if (lock < 0) {
        return ERR_IO;
    }
    git_unlock_ref(queue->agent.git, queue->agent.names.agent);
    git_set_patience(queue->agent.git, HUB_PATIENCE_NS);
    enum err err = check_free(queue, diag);
    if (err == ERR_OK) {
        err = move(queue, merged, diag);
    }
    if (err == ERR_OK) {
        decide_all(merged, OUTCOME_EXIT_DONE, "");
    }
    (void)close(lock);
    return err;
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
    err = merge_test(queue, &merged->commit, &verdict, diag);
    if (err != ERR_OK) {
        return err;
    }
    if (verdict == MERGE_BAD && merged->count > 1) {
        *max = merged->count / 2;
        return ERR_OK;
    }
    if (verdict == MERGE_BAD) {
        merge_blame_gate(queue, merged);
        *max = PARTS_MAX;
        return ERR_OK;
    }
    err = merge_land(queue, merged, diag);
    merged->late = err == ERR_CONFLICT;
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
    enum err err = merge_read_tip(queue, diag);
    for (size_t ix = 0; ix < queue->count && err == ERR_OK; ix++) {
        err = check_merged(queue, &queue->candidates[ix], diag);
    }
    while (err == ERR_OK && is_undecided(queue)) {
        err = round_of(queue, &merged, &max, diag);
        if (merged.late && ++moves < MOVES_MAX) {
            err = ERR_OK; /* start over on the new tip */
        }
        if (err == ERR_OK) {
            err = merge_read_tip(queue, diag);
        }
    }
    mem_free(merged.parts);
    return err;
}

/* A failure is not the groups' fault; they continue without it. */
enum err merge_sync(struct queue *queue, struct diag *diag)
{
    struct candidate base = {0};
    struct queue alone = *queue;
    alone.candidates = &base;
    alone.count = 1;
    enum err err = agent_update_base(&queue->agent, &base.tip, diag);
    if (err == ERR_OK) {
        err = work_off(&alone, diag);
    }
    queue->lock = alone.lock;
    if (err == ERR_OK) {
        result_say_base(base.code == OUTCOME_EXIT_DONE,
                        base.tip.text,
                        strbuf_text(&base.reason));
    }
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
    enum err err = check_free(queue, diag);
    if (err == ERR_OK) {
        err = fence(queue, diag);
    }
    for (size_t ix = 0; ix < queue->count && err == ERR_OK; ix++) {
        err = find_tip(queue, &queue->candidates[ix], diag);
    }
    if (err == ERR_OK && queue->count == 1) {
        return queue->candidates[0].decided
                   ? ERR_OK
                   : merge_turn_take(queue->turn, diag);
    }
    if (err == ERR_OK) {
        err = merge_turn_wait(queue->turn,
                              diag); /* a batch is built on nothing */
    }
    if (err == ERR_OK && queue->options->sync) {
        err = merge_sync(queue, diag);
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

/* Open the repository, choose a checkout and merge. */
static enum err open_and_work(struct queue *queue,
                              struct merge_options *options,
                              struct strbuf *path,
                              struct diag *diag)
{
    enum err err = agent_open(&queue->agent, &options->agent, diag);
    if (err == ERR_OK && options->gate != NULL) {
        err = merge_turn_choose_checkout(queue->turn, path, diag);
        options->worktree = strbuf_text(path);
        if (err == ERR_OK && setenv("SLUICE_WORKTREE", path->text, 1) != 0) {
            err = diag_set(diag, ERR_IO, "set a variable: %s", strerror(errno));
        }
    }
    return err == ERR_OK ? work(queue, diag) : err;
}

int merge_run(const struct merge_options *options)
{
    struct merge_options own = *options;
    struct gate_memory memory = {0};
    struct strbuf path = {0};
    struct queue queue = {
        .options = &own,
        .memory = &memory,
        .candidates =
            mem_zalloc(options->member_count, sizeof(queue.candidates[0])),
        .count = options->member_count,
        .lock = -1,
    };
    for (size_t ix = 0; ix < queue.count; ix++) {
        queue.candidates[ix].member = &options->members[ix];
        names_init(&queue.candidates[ix].names,
                   options->agent.run,
                   options->agent.entry,
                   options->members[ix].group);
    }
    struct diag diag = {0};
    gate_memory_read(&memory, options->dir);
    queue.turn = merge_turn_new(&queue);
    enum err err = open_and_work(&queue, &own, &path, &diag);
    merge_tell_gates(&queue);
    crash_point("merge-decided");
    merge_turn_tell(queue.turn);
    int code = err == ERR_OK ? tell(&queue) : result_code(err);
    if (err != ERR_OK) {
        result_refuse(code, diag.text);
    }
    merge_turn_free(queue.turn);
    if (err == ERR_OK) {
        remove_landed(&queue);
    }
    worktree_leave(&queue.lock);
    agent_close(&queue.agent);
    gate_memory_release(&memory);
    for (size_t ix = 0; ix < queue.count; ix++) {
        names_release(&queue.candidates[ix].names);
        strbuf_release(&queue.candidates[ix].reason);
    }
    mem_free(queue.candidates);
    strbuf_release(&path);
    return code;
}
