/* SPDX-License-Identifier: MIT */
/*
 * conversation: state that one session of an agent leaves for the next session.
 *
 * The scheduler stores it as an opaque string with the task (`resume` in
 * results) and passes it back:
 *
 *   {"id": ID, "input": N, "cached": N, "output": N}
 *
 * The token counts cover the whole conversation so far, for programs that
 * report totals of the conversation each time.
 */
#ifndef AGENT_CONVERSATION_H
#define AGENT_CONVERSATION_H

#include "adapter/adapter.h"

struct conversation {
    char *id; /* NULL: none; owned */
    struct adapter_usage used;
};

/* Parse the string; NULL or an invalid string yields no conversation. */
struct conversation conversation_read(const char *text);
void conversation_release(struct conversation *conversation);

/* Append the string. Tokens are left out unless they cover the whole
 * conversation. */
void conversation_add(struct strbuf *out,
                      const char *id,
                      const struct adapter_usage *used);

/* Return the part of the reported usage that belongs to this session. */
struct adapter_usage conversation_part(const struct conversation *before,
                                       const struct adapter_usage *reported);

#endif /* AGENT_CONVERSATION_H */
