/* SPDX-License-Identifier: MIT */
/*
 * prompt: the text that a session of an agent begins with.
 *
 * It has a role (from the plan, or built in), the issue, where to work, why
 * the session runs (feedback, an answer, an interruption), and last how to
 * answer. Text that others wrote stands between markers with a number that
 * they cannot know, and is called material. A conversation that goes on is not
 * told again what it knows.
 */
#ifndef AGENT_PROMPT_H
#define AGENT_PROMPT_H

#include "agent/brief.h"

/* Branch and commits of one task's issue; "" where there is no repository. */
struct prompt_range {
    const char *branch;
    const char *start; /* commit at which the issue began */
    const char *tip;   /* its newest commit */
};

/* Where the session works. Strings are borrowed. */
struct prompt_place {
    const char *folder; /* working directory */
    bool repository;
    const struct prompt_range *ranges; /* one per task of the brief */
    uint64_t nonce;                    /* random, for the markers */
};

/*
 * Append the prompt. `resumed`: the program continues a conversation that has
 * the issue. ERR_INVALID: a file or a name in the plan's prompt is
 * wrong.
 */
MUST_USE enum err prompt_add(struct strbuf *out,
                             const struct brief *brief,
                             const struct prompt_place *place,
                             bool resumed,
                             struct diag *diag);

/* JSON schema of the answer, for each kind of brief. */
const char *prompt_schema(enum brief_kind kind);

#endif /* AGENT_PROMPT_H */
