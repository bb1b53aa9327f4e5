/* SPDX-License-Identifier: MIT */
/*
 * conversation: what one session of an agent leaves for the next one.
 *
 * The scheduler keeps it as a text with the task (`resume` in results) and
 * hands it back without looking into it:
 *
 *   {"id": ID, "input": N, "cached": N, "output": N}
 *
 * The tokens are those of the whole conversation so far, for programs that
 * report it as a whole each time.
 */
#ifndef AGENT_CONVERSATION_H
#define AGENT_CONVERSATION_H

#include "adapter/adapter.h"

struct conversation {
    char *id; /* NULL: none; owned */
    struct adapter_usage used;
};

/* Read the text; NULL or nonsense is none. */
struct conversation conversation_read(const char *text);
void conversation_release(struct conversation *conversation);

/* Append the text. Tokens that are not of the whole conversation are left
 * out. */
void conversation_add(struct strbuf *out,
                      const char *id,
                      const struct adapter_usage *used);

/* What a session has used, of what was reported. */
struct adapter_usage conversation_part(const struct conversation *before,
                                       const struct adapter_usage *reported);

#endif /* AGENT_CONVERSATION_H */
