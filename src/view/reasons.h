/* SPDX-License-Identifier: MIT */
/*
 * reasons: why a task is not running, in words, and the commands that help;
 * shared by all commands that print reasons.
 */
#ifndef VIEW_REASONS_H
#define VIEW_REASONS_H

#include "base/strbuf.h"
#include "core/why.h"
#include "engine/engine.h"
#include "plan/plan.h"

/*
 * A reason with its names resolved. A plain value; strings are borrowed. A name
 * is NULL if it does not apply or is unknown.
 */
struct reason {
    enum why_code code;
    const char *task;
    const char *run; /* run of `task`, if it is another run */
    const char *group;
    const char *limit;
    const char *limit_class; /* class that the limit applies to, or NULL */
    bool limit_store;        /* it holds for all runs of the store */
    bool limit_slots;        /* it is the number of slots of workers ... */
    const char *limit_label; /* ... that have this label; NULL: of all */
    bool limit_usd;          /* a budget in dollars */
    bool limit_unpriced;     /* it counts sessions with unknown cost */
    const char *provider;
    int64_t left_ns;  /* until it may continue; SCHED_NEVER: unknown */
    int64_t until_ns; /* the same moment, wall clock; 0: unknown */
    int64_t max;      /* of the limit; -1: unknown */
    enum sched_parked parked;
    enum task_state state; /* of the task itself, not of `task` */
    enum plan_on on;       /* how it needs `task` to end */
    enum task_state of;    /* state of `task` */
    enum sched_stop stop;  /* why its run is stopped */
    bool held;             /* by an operator, in addition to the reason */
    bool revoked;          /* done, but its result was revoked */
    bool broke;            /* parked because its own budget is exhausted */
    bool unread;           /* a usage monitor has no reading yet */
    const char *stopped;   /* why `provider` is stopped or the reading failed;
                              NULL: unknown */
    bool unready;          /* parked because its session could not start */
    bool base;             /* it gates a base ... */
    bool bad_base;         /* ... which fails */
};

/* Append the reason: "blocked by api-12/merge". A moment that is not within a
 * day of `until_ns` - `left_ns` has its date. */
void reasons_add(struct strbuf *out, const struct reason *reason);

/* Append "base dev of api at 1234567 is not merged: REASON". */
void reasons_add_base(struct strbuf *out, const struct engine_bad_base *bad);

/* Append why a task is parked: "failed, no retries left". */
void reasons_add_parked(struct strbuf *out, const struct reason *reason);

/* A command that helps. */
struct reasons_remedy {
    unsigned kinds;      /* of reasons; private to reasons.c */
    const char *command; /* "answer TASK TEXT" */
    const char *effect;  /* "retry it" */
};

/* Return the remedy for a reason that follows `after`, or the first if `after`
 * is NULL; NULL at the end. */
const struct reasons_remedy *reasons_remedy(const struct reason *reason,
                                            const struct reasons_remedy *after);

/* Append the command line of a remedy: "sluice retry api-12/gate --run wave".
 * The run may be NULL if only one exists. */
void reasons_add_command(struct strbuf *out,
                         const struct reason *reason,
                         const struct reasons_remedy *remedy,
                         const char *task,
                         const char *run);

/* Stable name of why a run is stopped, for JSON; NULL: it is not. */
const char *reasons_stop_name(enum sched_stop stop);

/*
 * Append why a run is stopped: "stopped: b has failed", and the commands that
 * help. `task`: the task that stopped it, or NULL; `run`: NULL if only one run
 * exists.
 */
void reasons_add_halt(struct strbuf *out,
                      enum sched_stop stop,
                      const char *task,
                      const char *run);

/* Append a line for each remedy: command and effect. */
struct reasons_layout {
    const char *head; /* before the first line */
    int indent;
    int width; /* columns of the command */
};
void reasons_add_remedies(struct strbuf *out,
                          const struct reason *reason,
                          const char *task,
                          const char *run,
                          struct reasons_layout layout);

/*
 * Append the reason as a JSON object: code, text, task, run, group, limit,
 * provider (each may be null), seconds left, the moment until which a task is
 * snoozed or early, and the kind of parking.
 */
void reasons_add_json(struct strbuf *out, const struct reason *reason);

#endif /* VIEW_REASONS_H */
