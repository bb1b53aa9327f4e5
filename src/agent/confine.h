/* SPDX-License-Identifier: MIT */
/*
 * confine: the command line of an agent's program in a sandbox.
 *
 * sluice-agent itself is not confined: it reads the brief and writes the
 * result. What the program needs of the home directory is in its adapter.
 */
#ifndef AGENT_CONFINE_H
#define AGENT_CONFINE_H

#include "agent/brief.h"

/* Words of sluice-sandbox, without "--"; `count` is 0: not confined. */
struct confine_prefix {
    const char *const *words;
    uint32_t count;
};

/*
 * Rewrite a command so that it runs confined; no effect if the prefix is empty.
 * As root, a program that requires a variable to accept full permissions gets
 * it: this is a sandbox.
 */
void confine_command(struct adapter_command *command,
                     const struct brief *brief,
                     const struct confine_prefix *prefix);

/* Return why sluice-sandbox has not run a program with this exit code and
 * standard error, or NULL: it has. */
const char *confine_refusal(const struct confine_prefix *prefix,
                            int code,
                            const char *errors);

#endif /* AGENT_CONFINE_H */
