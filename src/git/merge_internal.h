/* SPDX-License-Identifier: MIT */
/* Declarations shared by the merge queue's files. */
#ifndef GIT_MERGE_INTERNAL_H
#define GIT_MERGE_INTERNAL_H

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

struct queue {
    const struct merge_options *options;
    struct agent agent;
    struct candidate *candidates;
    size_t count;
    int lock; /* of the worktree; -1: not entered */
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

/* Result of a gate. */
enum merge_verdict { MERGE_GOOD, MERGE_BAD, MERGE_UNKNOWN };

/* Run a command of the plan in that worktree. MERGE_UNKNOWN: inconclusive. */
MUST_USE enum err merge_command(struct queue *queue,
                                const char *command,
                                enum merge_verdict *out,
                                struct diag *diag);

#endif /* GIT_MERGE_INTERNAL_H */
