/* SPDX-License-Identifier: MIT */
/*
 * prompt: the initial prompt of an agent's session.
 *
 * It has a role (from the plan, or built in), the issue, the place of work, why
 * the session runs (feedback, an answer, an interruption), and last the answer
 * format. Untrusted text is enclosed in markers with a random number that its
 * authors cannot know, and is called material. A resumed conversation does not
 * get again the sections that it already has.
 */
#ifndef AGENT_PROMPT_H
#define AGENT_PROMPT_H

#include "agent/brief.h"

/* Branch and commits of one task's issue; "" without a repository. */
struct prompt_range {
    const char *branch;
    const char *start; /* commit at which the issue began */
    const char *tip;   /* its newest commit */
};

/* Place of work. Strings are borrowed. */
struct prompt_checkout {
    const char *folder; /* working directory */
    bool repository;
    const struct prompt_range *ranges; /* one per task of the brief */
    uint64_t nonce;                    /* random, for the markers */
};

/* Append the prompt. `resumed`: the program continues a conversation that has
 * the issue. ERR_INVALID: a file or a name in the plan's prompt is invalid. */
MUST_USE enum err prompt_add(struct strbuf *out,
                             const struct brief *brief,
                             const struct prompt_checkout *checkout,
                             bool resumed,
                             struct diag *diag);

/* Return the JSON schema of the answer for a kind of brief. */
const char *prompt_schema(enum brief_kind kind);

#endif /* AGENT_PROMPT_H */
