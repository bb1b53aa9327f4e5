/* SPDX-License-Identifier: MIT */
/*
 * agent: the branches of one run in one repository.
 *
 * The agent branch is made from `base` when the first session of the run in
 * this repository starts. refs/sluice/RUN/owner tells whose run it is, so that
 * what an earlier run of the same name has left is not taken for this one's.
 */
#ifndef GIT_AGENT_H
#define GIT_AGENT_H

#include "git/git.h"
#include "git/names.h"

#include <stdint.h>

/* Who works, and on what. All texts are borrowed. */
struct agent_options {
    const char *repo;  /* absolute path */
    const char *base;  /* branch or commit */
    const char *run;   /* id */
    const char *owner; /* differs for every run of every store */
    const char *group; /* id; NULL: none */
    uint64_t token;    /* of the attempt */
};

/* A task of a session, or one whose branch is merged. */
struct agent_member {
    const char *task;  /* id */
    const char *group; /* id */
    const char *title; /* or NULL */
};

struct agent {
    struct git *git;
    struct names names;
    const struct agent_options *options;
    struct git_id tip; /* of the agent branch, when it was last read */
};

/*
 * Open the repository and see to it that the run has its agent branch.
 * ERR_DENIED: the branch is someone else's; ERR_INVALID: the repository or the
 * base cannot be used.
 */
MUST_USE enum err agent_open(struct agent *agent,
                             const struct agent_options *options,
                             struct diag *diag);
void agent_close(struct agent *agent);

/*
 * Keep all attempts with a smaller token from moving the agent branch, from
 * now on. ERR_DENIED: this one is itself superseded.
 */
MUST_USE enum err agent_fence(struct agent *agent, struct diag *diag);

/*
 * Move the agent branch from `from` to `to`, unless it has moved or this
 * attempt is superseded: ERR_CONFLICT, ERR_DENIED.
 */
MUST_USE enum err agent_move(struct agent *agent,
                             const struct git_id *from,
                             const struct git_id *to,
                             struct diag *diag);

/*
 * For those who only look: the tip of the agent branch of a run; "" when there
 * is none, or it is another owner's.
 */
MUST_USE enum err agent_find(struct git *git,
                             const struct names *names,
                             const char *owner,
                             struct git_id *tip_out,
                             struct diag *diag);

#endif /* GIT_AGENT_H */
