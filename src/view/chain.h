/* SPDX-License-Identifier: MIT */
/*
 * chain: the reasons from a task to the root cause of its waiting.
 *
 * The chain follows the task that each reason names: from "needs b" to b, from
 * "limit sessions, in use by c" to c. Its last link is the root: a running
 * task, or a task that only time or an operator can change.
 */
#ifndef VIEW_CHAIN_H
#define VIEW_CHAIN_H

#include "view/glance.h"

enum { CHAIN_MAX = 64 }; /* maximum number of links */

/* A task: index of its run, index in the plan. */
struct chain_link {
    uint32_t run;
    uint32_t task;
    bool confined; /* its last attempt, by a sandbox */
};

/* Starts as {0}. */
struct chain {
    struct glance glance;
    struct chain_link links[CHAIN_MAX]; /* starts with the task itself */
    uint32_t count;
    bool cut; /* longer than CHAIN_MAX */
};

/*
 * Find a task by name, first in unfinished runs, then in all, and follow its
 * reasons. A group name selects the task that explains why the group waits. On
 * ERR_NOT_FOUND and ERR_INVALID (ambiguous) *diag has the message. Release *out
 * in any case.
 */
MUST_USE enum err chain_find(struct chain *out,
                             const struct glance_options *options,
                             const char *name,
                             struct diag *diag);
void chain_release(struct chain *chain);

/* The same in a glance, which the chain borrows: do not release the chain. */
MUST_USE enum err chain_in(struct chain *out,
                           const struct glance *glance,
                           const char *run,
                           const char *name,
                           struct diag *diag);

/* The same in the engine of a scheduler, between two passes, for the run with
 * this id. The caller frees only the snapshot of its glance. */
MUST_USE enum err chain_look(struct chain *out,
                             struct engine *engine,
                             int64_t wall_ns,
                             const char *run,
                             const char *name,
                             struct diag *diag);

/* Read the attempts of its tasks, for `confined`. */
MUST_USE enum err chain_read_attempts(struct chain *chain, struct diag *diag);

/* Reason of a link, and id of its task. */
struct reason chain_reason(const struct chain *chain, uint32_t ix);
const char *chain_id(const struct chain *chain, uint32_t ix);

/* Return the first link, not the last, whose run is stopped because of the next
 * link; CHAIN_MAX: none. */
uint32_t chain_halted(const struct chain *chain);

/* Run of a link, for a command line; NULL if it can be omitted. */
const char *chain_run(const struct chain *chain, uint32_t ix);

/* Get the session that runs the task of a link; false if it has none. */
bool chain_session(const struct chain *chain,
                   uint32_t ix,
                   struct engine_session_view *out);

/* Append the log path of its last attempt; false if it has no attempt. */
bool chain_add_log(struct strbuf *out, const struct chain *chain, uint32_t ix);

/* Append a line for each link: "api-12/gate is waiting: needs api-12/code". */
void chain_add_links(struct strbuf *out, const struct chain *chain);

/* Append one JSON object and a newline; see sluice-why(1). */
void chain_add_json(struct strbuf *out, const struct chain *chain);

#endif /* VIEW_CHAIN_H */
