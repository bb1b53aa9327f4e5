/* SPDX-License-Identifier: MIT */
/*
 * judge: the outcome of an agent's session.
 *
 * The first rule that applies decides:
 *
 * 1. The runner stopped the program: checkpoint, or failed.
 * 2. A limit: refused, its work is kept.
 * 3. A bad key or an empty account: refused, and the provider is stopped.
 * 4. No event that ends a session with success: failed, whatever the exit
 *    code. 2 and 3 are about such sessions, too.
 * 5. Tools were denied and nothing was committed: blocked.
 * 6. The program's answer. A review without a verdict has failed, and so has
 *    each task of a batch that the answer does not name.
 *
 * The event counts only if the program exited by itself. Its exit code then
 * does not matter: a program that has reported success may stumble over its
 * own clean-up. After a signal, from the runner or anybody else, the event
 * does not count: it may be due to the signal, and a session that is resumed
 * costs less than half a change that is merged.
 *
 * Pure, but for the time zone (TZ).
 */
#ifndef AGENT_JUDGE_H
#define AGENT_JUDGE_H

#include "agent/brief.h"
#include "agent/runner.h"
#include "exec/outcome.h"

/* All that is known when the program has exited. */
struct judge_input {
    const struct brief *brief;
    const struct adapter_seen *seen;
    const struct runner_end *end;
    const char *errors; /* end of its standard error */
    bool committed;     /* the session has left a new commit */
    int64_t now;        /* seconds since 1970; 0: read no time of day */
};

/* The verdict on one task of a batch, in the order of the brief. */
struct judge_task {
    enum sched_outcome outcome;
    char *reason;
};

/* Release with judge_release(). */
struct judgement {
    enum sched_outcome outcome;
    struct strbuf reason;    /* for people */
    struct strbuf feedback;  /* for the stage that works again; may be empty */
    int64_t retry_at;        /* of a refusal; seconds since 1970, 0: unknown */
    enum outcome_lack lacks; /* of a blocked one */
    bool stop;               /* a person must act before the provider is used */
    bool again;              /* the conversation is gone: start without it */
    struct judge_task *tasks;
    uint32_t task_count;
};

struct judgement judge_session(const struct judge_input *input);
void judge_release(struct judgement *judgement);

#endif /* AGENT_JUDGE_H */
