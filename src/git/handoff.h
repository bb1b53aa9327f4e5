/* SPDX-License-Identifier: MIT */
/*
 * handoff: the result of a run in one repository, read from git alone, and the
 * push of its agent branch.
 */
#ifndef GIT_HANDOFF_H
#define GIT_HANDOFF_H

#include "git/git.h"

/* The branch of one group. */
struct handoff_group {
    const char *group;    /* id; set by the caller */
    struct git_id tip;    /* "": no branch */
    struct git_id merged; /* commit that merged it; "": none */
};

/* The branches of a run. Starts as {0}. */
struct handoff {
    const char *entry;   /* see names_add_branch(); set by the caller */
    struct git_id agent; /* tip of the agent branch; "": none */
    struct git_id base;  /* "": the base does not exist */
    struct handoff_group *groups;
    size_t group_count;
    struct strbuf tried; /* lines "TASK: WHAT" of what sessions did to their
                            own repositories, which was not taken */
};

/* Read the branches; fill in `groups`. Refs of another owner (see names.h)
 * count as missing. */
MUST_USE enum err handoff_read(struct handoff *handoff,
                               struct git *git,
                               const char *run,
                               const char *owner,
                               const char *base,
                               struct diag *diag);

/* Push the agent branch alone to the remote: "origin", or the only remote.
 * Never force. *remote_out gets the name of the remote. */
MUST_USE enum err handoff_push(struct git *git,
                               const char *run,
                               const char *entry,
                               struct strbuf *remote_out,
                               struct diag *diag);

#endif /* GIT_HANDOFF_H */
