/* SPDX-License-Identifier: MIT */
/*
 * agent: the branches of one run in one repository.
 *
 * The first session of the run in this repository creates the agent branch from
 * `base`. refs/sluice/RUN/owner identifies the run, so that refs left by an
 * earlier run of the same name are not mistaken for its own.
 */
#ifndef GIT_AGENT_H
#define GIT_AGENT_H

#include "git/git.h"
#include "git/names.h"

#include <stdint.h>

/* Run, repository and attempt. All strings are borrowed. */
struct agent_options {
    const char *repo;  /* absolute path */
    const char *base;  /* branch or commit */
    const char *run;   /* id */
    const char *owner; /* differs for every run of every store */
    const char *group; /* id; NULL: none */
    uint64_t token;    /* fencing token of the attempt */
};

/* A task of a session, or a task whose branch is merged. */
struct agent_member {
    const char *task;  /* id */
    const char *group; /* id */
    const char *title; /* or NULL */
};

struct agent {
    struct git *git;
    struct names names;
    const struct agent_options *options;
    struct git_id tip; /* of the agent branch, at its last read */
};

/*
 * Open the repository and find or create the agent branch of the run.
 * ERR_DENIED: the branch belongs to another owner; ERR_INVALID: the repository
 * or the base is unusable.
 */
MUST_USE enum err agent_open(struct agent *agent,
                             const struct agent_options *options,
                             struct diag *diag);
void agent_close(struct agent *agent);

/* Keep all attempts with a smaller token from moving the agent branch from now
 * on. ERR_DENIED: this attempt is itself superseded. */
MUST_USE enum err agent_fence(struct agent *agent, struct diag *diag);

/* Move the agent branch from `from` to `to`. ERR_CONFLICT: it has moved;
 * ERR_DENIED: this attempt is superseded. */
MUST_USE enum err agent_move(struct agent *agent,
                             const struct git_id *from,
                             const struct git_id *to,
                             struct diag *diag);

/* Read the tip of a run's agent branch, without an attempt; "" if it does not
 * exist or has another owner. */
MUST_USE enum err agent_find(struct git *git,
                             const struct names *names,
                             const char *owner,
                             struct git_id *tip_out,
                             struct diag *diag);

#endif /* GIT_AGENT_H */
