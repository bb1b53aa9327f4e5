/* SPDX-License-Identifier: MIT */
/*
 * range: the commit at which an issue began, for reviewers of its changes.
 *
 * refs/sluice/RUN/groups/GROUP/start is the newest commit of the agent branch
 * that the group's branch contains: `git diff START...TIP` shows the work of
 * this issue only, even after a merge of the agent branch into it. An
 * implementing stage sets it whenever it leaves a commit; after the branch is
 * merged, it stays.
 */
#ifndef GIT_RANGE_H
#define GIT_RANGE_H

#include "git/agent.h"

/*
 * Write the file `ranges` of the attempt directory, a line for each member:
 * task, branch, first and last commit, separated by tabs; and set SLUICE_START.
 * The first member is at `start`, which is checked out.
 */
MUST_USE enum err range_put(struct agent *agent,
                            const char *dir,
                            const struct agent_member *members,
                            size_t count,
                            const struct git_id *start,
                            struct diag *diag);

/* Find the first commit of the issue with branch tip `tip`; "": unchanged. */
MUST_USE enum err range_find(struct agent *agent,
                             const struct git_id *tip,
                             struct git_id *out,
                             struct diag *diag);

#endif /* GIT_RANGE_H */
