/* SPDX-License-Identifier: MIT */
/*
 * why: the reason why a task is not running, as data.
 *
 * Query it after a pass. The same pools and counters decide and explain: a task
 * shown as startable would start.
 */
#ifndef CORE_WHY_H
#define CORE_WHY_H

#include "core/sched.h"

enum why_code {
    WHY_ENDED,     /* done, skipped or cancelled: `task` is the cause, if any */
    WHY_RUNNING,   /* starting or running */
    WHY_NEEDS,     /* `task` is not done yet */
    WHY_BLOCKED,   /* by `task`, which failed, was parked or revoked */
    WHY_FAILED,    /* it failed */
    WHY_PARKED,    /* it is parked */
    WHY_HELD,      /* by an operator */
    WHY_BACKOFF,   /* until `until_ns`; `provider` is set if it backs off */
    WHY_USAGE,     /* `provider` is refused until `until_ns` */
    WHY_CIRCUIT,   /* `provider` failed too often; probe at `until_ns` */
    WHY_STOPPED,   /* `provider` is stopped until an operator resumes it */
    WHY_PAUSED,    /* the run is paused */
    WHY_ASKED,     /* the run waits for a decision about `task` */
    WHY_BARRIER,   /* the run waits for its sync hook */
    WHY_DRAINING,  /* nothing is started in any run */
    WHY_LIMIT,     /* `limit` is in use; `task` uses some, if known */
    WHY_BUDGET,    /* `limit`, a budget, has too little left */
    WHY_RESERVED,  /* free units of `limit` are reserved for `task` */
    WHY_BEHIND,    /* `task` goes first at `limit` */
    WHY_DEFERRED,  /* waits for an idle slot; `limit` has none */
    WHY_PLANNED,   /* held back for `task` by the schedule until `until_ns` */
    WHY_STARTABLE, /* will start in this pass */
    WHY_SNOOZED,   /* by its own wish, until `until_ns` */
    WHY_EARLY,     /* does not start before `until_ns` */
    WHY_APPROVAL,  /* waits for an operator's approval */
    WHY_HALTED,    /* the run is stopped, because of `task` if known */
    WHY_REST,      /* comes last: `task` of its scope has not come to rest */
};

struct why {
    enum why_code code;
    struct task_id task;         /* ID_NONE: none */
    struct group_id group;       /* uses `limit`; ID_NONE: none */
    struct limit_id limit;       /* ID_NONE: none */
    struct provider_id provider; /* ID_NONE: none */
    int64_t until_ns;            /* SCHED_NEVER: unknown */
    enum sched_parked parked;    /* of WHY_PARKED */
};

/* Return why this task is not running. Uses the scheduler's scratch memory. */
struct why why_task(struct sched *sched, struct task_id task);

/*
 * The same for a task that is ready and not held, without the tasks in its way:
 * costs the number of its pools. Ignores lookahead.
 */
struct why why_limited(const struct sched *sched, struct task_id task);

/*
 * The same for every task, in order. `fn` must not change the scheduler. Costs
 * the size of the graph in total, not per task.
 */
typedef void (*why_fn)(void *ctx, struct task_id task, const struct why *why);
void why_all(struct sched *sched, why_fn fn, void *ctx);

/* Stable name of a code ("needs", "limit", ...), for JSON. */
const char *why_code_name(enum why_code code);

#endif /* CORE_WHY_H */
