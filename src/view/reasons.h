/* SPDX-License-Identifier: MIT */
/*
 * reasons: why a task is not running, in words, for every command that says
 * so; and what a person can do about it.
 */
#ifndef VIEW_REASONS_H
#define VIEW_REASONS_H

#include "base/strbuf.h"
#include "core/why.h"

/*
 * A reason with its names resolved. A plain value; texts are borrowed. Names
 * that are NULL do not belong to the reason, or are not known.
 */
struct reason {
    enum why_code code;
    const char *task;
    const char *run; /* of `task`, when it is another one */
    const char *group;
    const char *limit;
    const char *limit_class; /* of what is counted for one class; else NULL */
    bool limit_usd;          /* it is a budget in dollars */
    bool limit_unpriced;     /* it counts sessions whose cost is not known */
    const char *provider;
    int64_t left_ns; /* until it may go on; SCHED_NEVER: not known */
    int64_t max;     /* of the limit; -1: not known */
    enum sched_parked parked;
    enum task_state state; /* of the task that the reason is about */
    bool held;             /* by an operator, whatever else it waits for */
    bool revoked;          /* done, but its result is in doubt */
    bool broke;            /* parked, because its own budget is used up */
    bool unread;           /* a usage monitor has had no reading yet */
    const char *stopped;   /* why `provider` is stopped, or there is no reading;
                              NULL: not known */
    bool unready; /* parked, because its session could not be started */
};

/* Append it: "blocked by api-12/merge". */
void reasons_add(struct strbuf *out, const struct reason *reason);

/* Append why a task is parked: "it failed, and no tries are left". */
void reasons_add_parked(struct strbuf *out, const struct reason *reason);

/* A command that helps. */
struct reasons_remedy {
    unsigned kinds;      /* of reasons; for reasons.c */
    const char *command; /* "answer TASK TEXT" */
    const char *effect;  /* "retry it" */
};

/* The command that helps with a reason behind `after`, or the first one; NULL:
 * no more. */
const struct reasons_remedy *reasons_remedy(const struct reason *reason,
                                            const struct reasons_remedy *after);

/* Append a remedy for a reason as one types it: "sluice retry api-12/gate --run
 * wave". The run may be NULL: there is only one. */
void reasons_add_command(struct strbuf *out,
                         const struct reason *reason,
                         const struct reasons_remedy *remedy,
                         const char *task,
                         const char *run);

/* Append a line for each remedy: the command, and its effect. */
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
 * The reason as a JSON object: code, text, and what it names: task, run,
 * group, limit, provider (each null without one), seconds left, and the kind
 * of parking.
 */
void reasons_add_json(struct strbuf *out, const struct reason *reason);

#endif /* VIEW_REASONS_H */
