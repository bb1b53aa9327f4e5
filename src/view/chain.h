/* SPDX-License-Identifier: MIT */
/*
 * chain: the reasons from one task to the root of what it waits for.
 *
 * The chain follows the task that each reason names: from "needs b" to b, from
 * "limit sessions, held by c" to c. Its last link is the root: something that
 * runs, that time or an operator will change.
 */
#ifndef VIEW_CHAIN_H
#define VIEW_CHAIN_H

#include "view/glance.h"

enum { CHAIN_MAX = 64 }; /* links at most */

/* A task: index of its run, index in the plan. */
struct chain_link {
    uint32_t run;
    uint32_t task;
};

/* Starts as {0}. */
struct chain {
    struct glance glance;
    struct chain_link links[CHAIN_MAX]; /* the task itself comes first */
    uint32_t count;
    bool cut; /* the chain is longer */
};

/*
 * Find the task of that name, or of a group of that name the task that says
 * what the group waits for, among unfinished runs, then among all, and follow
 * its reasons. ERR_NOT_FOUND, ERR_INVALID (several): *diag says so. Release
 * *out in any case.
 */
MUST_USE enum err chain_find(struct chain *out,
                             const struct glance_options *options,
                             const char *name,
                             struct diag *diag);
void chain_release(struct chain *chain);

/* The reason of a link, and the id of its task. */
struct reason chain_reason(const struct chain *chain, uint32_t ix);
const char *chain_id(const struct chain *chain, uint32_t ix);

/* The run of a link, for a command line; NULL: it need not be named. */
const char *chain_run(const struct chain *chain, uint32_t ix);

/* The session that the task of a link is in; false: it is in none. */
bool chain_session(const struct chain *chain,
                   uint32_t ix,
                   struct engine_session_view *out);

/* Append where the log of its last attempt is; false: it has had none. */
bool chain_add_log(struct strbuf *out, const struct chain *chain, uint32_t ix);

/* Append one JSON object and a new line; see sluice-why(1). */
void chain_add_json(struct strbuf *out, const struct chain *chain);

#endif /* VIEW_CHAIN_H */
