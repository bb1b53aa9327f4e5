/* SPDX-License-Identifier: MIT */
/*
 * judge: the outcome of an agent's session.
 *
 * The first rule that applies decides:
 *
 * 1. The session has finished explicitly (`sluice session finish`, or the tool
 *    of that name), and no other process stopped it: its own words count.
 * 2. The runner stopped the program: checkpoint, or failed. So that an operator
 *    is heard, a message that comes too late for that makes a checkpoint of an
 *    answer.
 * 3. A limit: refused, its work is kept.
 * 4. A bad key or an empty account: refused, and the provider is stopped.
 * 5. No final event that reports success: failed, whatever the exit code. 3 and
 *    4 apply to such sessions, too.
 * 6. Tools were denied and nothing was committed: blocked.
 * 7. The program's answer. A review without a verdict has failed, and so has
 *    each task of a batch that the answer does not name.
 *
 * The event counts only if the program exited by itself. Its exit code then
 * does not matter: a program may fail in its own clean-up after it has reported
 * success. After a signal, from the runner or any other process, the event does
 * not count: the signal may have caused it, and resuming a session costs less
 * than merging half a change.
 *
 * Pure, except for the time zone (TZ).
 */
#ifndef AGENT_JUDGE_H
#define AGENT_JUDGE_H

#include "agent/brief.h"
#include "agent/runner.h"
#include "exec/attempt_result.h"

/* All data known after the program has exited. */
struct judge_input {
    const struct brief *brief;
    const struct adapter_seen *seen;
    const struct runner_end *end;
    const char *errors;                  /* tail of its standard error */
    bool committed;                      /* the session has left a new commit */
    bool unheard;                        /* an operator has a message for it */
    const struct attempt_result *finish; /* how it finished; NULL: it did not */
    int64_t now; /* seconds since 1970; 0: do not parse times of day */
};

/* The verdict on one task of a batch, in the order of the brief. */
struct judge_task {
    enum sched_outcome outcome;
    char *reason;
    bool final;    /* of a failure: no retry helps */
    char *outputs; /* for dependents, a JSON object; or NULL */
};

/* Release with judge_release(). */
struct judgement {
    enum sched_outcome outcome;
    struct strbuf reason;    /* for messages */
    struct strbuf feedback;  /* for the stage that works again; may be empty */
    int64_t retry_at;        /* of a refusal; seconds since 1970, 0: unknown */
    enum outcome_lack lacks; /* of a blocked session */
    bool finish;             /* the session has said so explicitly */
    bool final;              /* of a failure: no retry helps */
    char *outputs;           /* for dependents, a JSON object; or NULL */
    bool stop;     /* an operator must act before the provider is used */
    bool again;    /* the conversation is gone: start without it */
    bool progress; /* of a checkpoint: earlier ones do not count */
    struct judge_task *tasks;
    uint32_t task_count;
};

struct judgement judge_session(const struct judge_input *input);
void judge_release(struct judgement *judgement);

#endif /* AGENT_JUDGE_H */
