/* SPDX-License-Identifier: MIT */
/* Declarations shared by the merge queue's files. */
#ifndef GIT_MERGE_INTERNAL_H
#define GIT_MERGE_INTERNAL_H

#include "git/gate_memory.h"
#include "git/merge.h"

/* A branch in the queue. */
struct candidate {
    const struct agent_member *member; /* NULL: the base */
    struct names names;
    struct git_id tip;
    bool decided;
    int code; /* RESULT_...; valid when decided */
    struct strbuf reason;
};

struct turn;

struct queue {
    const struct merge_options *options;
    struct agent agent;
    struct candidate *candidates;
    size_t count;
    struct gate_memory *memory;
    int lock;                /* of the worktree; -1: not entered */
    struct turn *turn;       /* its place among other sessions */
    bool (*is_over)(void *); /* whether to stop the command that runs now; its
                                argument is this structure; NULL: never */
};

/* A merge result that no ref points to yet. */
struct merged {
    struct git_id from; /* the agent branch below it */
    struct git_id commit;
    struct candidate **parts;
    size_t count;
    bool late; /* another process has moved the agent branch */
};

/* Set the outcome of a candidate. */
void merge_decide(struct candidate *candidate, int code, const char *reason);

/* Return a name for messages: "api-12", or the name of the base. */
const char *merge_name(const struct queue *queue,
                       const struct candidate *candidate);

/* merge.c: read the tip of the agent branch. */
MUST_USE enum err merge_read_tip(struct queue *queue, struct diag *diag);

/* Take the lock that protects the agent branches of a repository, for runs of
 * all stores; repos of a plan that are one repository have a lock each. Return
 * -1 on failure. */
int merge_lock_repo(const struct queue *queue, struct diag *diag);

/* Set the outcome of the branches of a result that fails its gate. */
void merge_blame_gate(struct queue *queue, const struct merged *merged);

/* Move the agent branch to a result. ERR_CONFLICT: it has moved. */
MUST_USE enum err
merge_land(struct queue *queue, const struct merged *merged, struct diag *diag);

/* Merge new commits of the base. */
MUST_USE enum err merge_sync(struct queue *queue, struct diag *diag);

/*
 * merge_queue.c: the place of this session among those that merge into the same
 * agent branch. It is published from merge_turn_new() on; merge_turn_free()
 * ends that.
 */
struct turn *merge_turn_new(struct queue *queue);
void merge_turn_free(struct turn *turn);

/* Choose a checkout that no other session of the queue uses; its path is that
 * of the first one or a longer one. It is ours until merge_turn_free(). */
MUST_USE enum err merge_turn_choose_checkout(struct turn *turn,
                                             struct strbuf *path,
                                             struct diag *diag);

/* Wait until no session is before this one. */
MUST_USE enum err merge_turn_wait(struct turn *turn, struct diag *diag);

/* Merge the only candidate in its turn: on top of the results of the sessions
 * before it, and after them. */
MUST_USE enum err merge_turn_take(struct turn *turn, struct diag *diag);

/* Put into the result how the session went through the queue. */
void merge_turn_tell(const struct turn *turn);

/*
 * merge_make.c: merge the first undecided candidates, at most `max`, on top of
 * the agent branch. A candidate that conflicts with the agent branch itself is
 * decided, or repaired; a candidate that conflicts with others of this result
 * is left for later.
 */
MUST_USE enum err merge_make(struct queue *queue,
                             size_t max,
                             struct merged *out,
                             struct diag *diag);

/* merge_gate.c: check out a commit in the worktree of the queue. */
MUST_USE enum err merge_checkout(struct queue *queue,
                                 const struct git_id *commit,
                                 struct diag *diag);

/* Run a command of the plan in that worktree. MERGE_UNKNOWN: inconclusive. */
enum merge_verdict { MERGE_GOOD, MERGE_BAD, MERGE_UNKNOWN };
MUST_USE enum err merge_command(struct queue *queue,
                                const char *command,
                                enum merge_verdict *out,
                                struct diag *diag);

/*
 * Run the repository's gate on a commit, unless its tree has passed or failed
 * it before: good without a gate, and never MERGE_UNKNOWN. An error: no
 * verdict, which blames no branch, and is not remembered.
 */
MUST_USE enum err merge_test(struct queue *queue,
                             const struct git_id *commit,
                             enum merge_verdict *out,
                             struct diag *diag);

/* Write all verdicts of this merge to the result, in place of what a gate may
 * have written there. */
void merge_tell_gates(const struct queue *queue);

#endif /* GIT_MERGE_INTERNAL_H */
