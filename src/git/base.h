/* SPDX-License-Identifier: MIT */
/*
 * base: the gate of a base, before the first merge of a run.
 *
 * Run the gate on the tip of the agent branch, in a checkout of its own, unless
 * that tree has passed it before. As long as nothing was merged, the agent
 * branch first moves to the newest commit of the base; the ref `gated` keeps
 * that commit.
 */
#ifndef GIT_BASE_H
#define GIT_BASE_H

#include "git/agent.h"

struct base_options {
    struct agent_options agent;
    const char *task;     /* its id, for messages */
    const char *worktree; /* its own, absolute path */
    const char *dir;      /* attempt directory of this session */
    const char *gate;     /* shell command */
    uint32_t gate_retry;  /* how often it runs again after a failure */
};

/* Run the gate; return the exit code of this process. A base that fails is
 * blocked, with the reason in $SLUICE_RESULT. */
int base_run(const struct base_options *options);

#endif /* GIT_BASE_H */
