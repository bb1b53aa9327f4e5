/* SPDX-License-Identifier: MIT */
/* What the files of the merge queue share. */
#ifndef GIT_MERGE_INTERNAL_H
#define GIT_MERGE_INTERNAL_H

#include "git/merge.h"

/* A branch in the queue. */
struct candidate {
    const struct agent_member *member; /* NULL: the base, taken in */
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

/* A result that is made, but not yet seen by anyone. */
struct merged {
    struct git_id from; /* the agent branch it stands on */
    struct git_id commit;
    struct candidate **parts;
    size_t count;
    bool late; /* someone else has moved the agent branch meanwhile */
};

/* Decide about a candidate. */
void merge_decide(struct candidate *candidate, int code, const char *reason);

/* A text for people: "api-12", or the name of the base. */
const char *merge_name(const struct queue *queue,
                       const struct candidate *candidate);

/*
 * merge_make.c: merge candidates on top of the agent branch, the first that
 * are undecided, at most `max`. One that conflicts with the agent branch
 * itself is decided, or repaired; one that conflicts with others of this
 * result is left for later.
 */
MUST_USE enum err merge_make(struct queue *queue,
                             size_t max,
                             struct merged *out,
                             struct diag *diag);

/* merge_gate.c: a checkout of a commit in the worktree of the queue. */
MUST_USE enum err merge_checkout(struct queue *queue,
                                 const struct git_id *commit,
                                 struct diag *diag);

/* How a gate ended. */
enum merge_verdict { MERGE_GOOD, MERGE_BAD, MERGE_UNKNOWN };

/* Run a command of the plan's there. MERGE_UNKNOWN: it could not tell. */
MUST_USE enum err merge_command(struct queue *queue,
                                const char *command,
                                enum merge_verdict *out,
                                struct diag *diag);

#endif /* GIT_MERGE_INTERNAL_H */
