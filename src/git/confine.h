/* SPDX-License-Identifier: MIT */
/*
 * confine: programs of a plan that run in the sandbox of their session.
 */
#ifndef GIT_CONFINE_H
#define GIT_CONFINE_H

#include "git/agent.h"

/*
 * Confine a program that works in a checkout of the agent's repository, if its
 * session is confined: `prepare`, a gate. The command of the session is
 * confined already; it only gets the variables.
 */
void confine(const struct agent *agent, struct proc *proc);

#endif /* GIT_CONFINE_H */
