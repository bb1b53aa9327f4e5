/* SPDX-License-Identifier: MIT */
/*
 * handoff: what a run has left in one repository, read from git alone, and
 * the push of its agent branch.
 */
#ifndef GIT_HANDOFF_H
#define GIT_HANDOFF_H

#include "git/git.h"

/* The branch of one group. */
struct handoff_group {
    const char *group;    /* id; set by the caller */
    struct git_id tip;    /* "": it has no branch */
    struct git_id merged; /* the merge that brought it in; "": none */
};

/* What is there. Starts as {0}. */
struct handoff {
    struct git_id agent; /* tip of the agent branch; "": there is none */
    struct git_id base;  /* "": the base is gone */
    struct handoff_group *groups;
    size_t group_count;
};

/*
 * Read it; `groups` is filled in. What belongs to another owner (see names.h)
 * is not there.
 */
MUST_USE enum err handoff_read(struct handoff *handoff,
                               struct git *git,
                               const char *run,
                               const char *owner,
                               const char *base,
                               struct diag *diag);

/*
 * Push the agent branch, and nothing else, to the remote: "origin", or the
 * only one there is. Never forced. *remote_out gets its name.
 */
MUST_USE enum err handoff_push(struct git *git,
                               const char *run,
                               struct strbuf *remote_out,
                               struct diag *diag);

#endif /* GIT_HANDOFF_H */
