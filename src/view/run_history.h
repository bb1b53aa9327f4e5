/* SPDX-License-Identifier: MIT */
/*
 * run_history: the events and sessions of a run as plain data, from the store
 * alone.
 *
 * Nothing is sampled or guessed: tasks change their state by events, sessions
 * are the stored attempts, and requests are operator actions. The plan is read
 * again from the stored text, so a store that was moved, or whose plan file was
 * deleted, gives the same history.
 *
 * Times are nanoseconds since the run was submitted. The event log is in order,
 * but the wall clock may have been set back: then time stands still until the
 * clock has caught up, so that no time counts twice.
 *
 * To read a history: run_history_read(). To build one (tests):
 * run_history_init(), then run_history_add_event() and
 * run_history_add_session() in order, then run_history_finish().
 */
#ifndef VIEW_RUN_HISTORY_H
#define VIEW_RUN_HISTORY_H

#include "base/arena.h"
#include "base/diag.h"
#include "exec/outcome.h"
#include "plan/plan.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

/* No event, no session, no attempt. */
#define HISTORY_NONE UINT32_MAX

enum run_history_kind {
    HISTORY_TASK,     /* task changed its state */
    HISTORY_END,      /* the scheduler saw the session of task exit */
    HISTORY_LIMIT,    /* limit `part` was set to `max`; 0 is the cap */
    HISTORY_USAGE,    /* usage monitor `part` lowers its limit to `max` */
    HISTORY_OVERRIDE, /* usage monitors are overridden, or no longer */
    HISTORY_PAUSE,    /* by a request */
    HISTORY_RESUME,   /* by a request */
    HISTORY_HOLD,     /* task, by a request */
    HISTORY_RELEASE,  /* task, by a request; it may be an approval */
};

/* An event. A plain value. */
struct run_history_event {
    int64_t at_ns;
    enum run_history_kind kind;
    uint32_t task;
    enum task_state to;
    uint32_t number;   /* attempt that the event names, or 0 */
    uint32_t part;     /* plan index of a limit or a usage monitor */
    int64_t max;       /* PLAN_UNLIMITED: none; for an override: 1 or 0 */
    uint32_t before;   /* previous event of the same task */
    uint32_t session;  /* TASK to starting, END: the session, if known */
    uint32_t restarts; /* END of a merge: in its queue */
};

/* The outcomes of exec/outcome.h, and HISTORY_OPEN. */
enum run_history_outcome {
    HISTORY_DONE = OUTCOME_DONE,
    HISTORY_FAILED = OUTCOME_FAILED,
    HISTORY_REFUSED = OUTCOME_REFUSED,
    HISTORY_CHANGES = OUTCOME_CHANGES,
    HISTORY_BLOCKED = OUTCOME_BLOCKED,
    HISTORY_CHECKPOINT = OUTCOME_CHECKPOINT,
    HISTORY_LOST = OUTCOME_LOST,
    HISTORY_STOPPED = OUTCOME_STOPPED,
    HISTORY_LATER = OUTCOME_LATER,
    HISTORY_FATAL = OUTCOME_FATAL, /* stored as failed: never read */
    HISTORY_OPEN = OUTCOME_COUNT,  /* it is not finished */
    HISTORY_OUTCOMES,
};

/* A session. The history owns the strings. */
struct run_history_session {
    uint64_t token;
    uint32_t task; /* its first task */
    uint32_t number;
    uint32_t task_count; /* more than 1: a batch */
    bool confined;       /* by a sandbox */
    int64_t claimed_ns;
    int64_t begun_ns; /* start of its command; at least claimed_ns */
    int64_t ended_ns; /* if open: the end of the history */
    enum run_history_outcome outcome;
    const char *cause;  /* "exit", "timeout" ..., or NULL */
    const char *reason; /* or NULL */
    int32_t code;
    int32_t signal;
    int64_t input_tokens;
    int64_t output_tokens;
    double usd;
    uint32_t before;      /* previous session of the same task */
    uint32_t claim_event; /* claim of its first task */
    uint32_t end_event;   /* the scheduler saw it exit */
    uint32_t restarts;    /* of a merge, in its queue */
};

/* A task of the plan. */
struct run_history_task {
    enum task_state state;
    const char *reason;    /* of that state, or NULL */
    uint32_t last_event;   /* of kind HISTORY_TASK */
    uint32_t last_session; /* that has it as first task */
    bool seen;             /* it has an event */
    bool unapproved;       /* ready, and waits for approval */
};

/* A gate of a repository, and its verdicts. */
struct run_history_gate {
    const char *repo; /* name */
    const char *command;
    uint32_t passed;
    uint32_t failed;
    uint32_t flaky; /* it failed, and passed when it was tried again */
};

/* A run's history. Public, but read only; starts as {0}. */
struct run_history {
    struct arena arena;
    struct plan *plan;
    const char *id;
    const char *name;
    const char *file;
    uint32_t number;
    uint32_t processors;
    bool old_rules;     /* see struct plan_source */
    bool base_gates;    /* false: submitted to an earlier version */
    int64_t created_ns; /* wall clock */
    int64_t end_ns;     /* time of the last event, or now */
    bool finished;
    bool paused;
    bool cancelled;
    enum sched_stop stopped;
    bool live;                      /* sessions are in flight: end_ns is now */
    struct run_history_task *tasks; /* one per task of the plan */
    struct run_history_event *events;
    uint32_t event_count;
    uint32_t event_capacity;
    struct run_history_session *sessions; /* by token */
    uint32_t session_count;
    uint32_t session_capacity;
    struct run_history_gate *gates; /* the most often flaky first */
    uint32_t gate_count;
    /* Plan text and the fragments added later, to read again. */
    struct plan_source *sources;
    uint32_t source_count;
    uint32_t *source_tasks; /* per source: tasks of the plan with it; NULL in a
                               history that was built */
    const char *expected;   /* see engine_expect_run(); NULL: none */
};

/*
 * Read the history of run `run`; NULL: the newest. `wall_ns` is now.
 * ERR_NOT_FOUND: no such run; *diag lists the existing runs. Release *out in
 * any case.
 */
MUST_USE enum err run_history_read(struct run_history *out,
                                   struct store *store,
                                   const char *run,
                                   int64_t wall_ns,
                                   struct diag *diag);
void run_history_release(struct run_history *history);

/* Read another copy of the plan, which the caller may modify. */
MUST_USE enum err run_history_read_plan(const struct run_history *history,
                                        struct plan **out,
                                        struct diag *diag);

/* Start an empty history of a plan and take ownership of the plan. */
void run_history_init(struct run_history *history, struct plan *plan_take);

/* Add the next item and set its `before` and `session`. Strings are copied,
 * times are relative to the submission. An open session has no end time. */
void run_history_add_event(struct run_history *history,
                           const struct run_history_event *event);
void run_history_add_session(struct run_history *history,
                             const struct run_history_session *session);

/* Complete the history. `now_ns`: end time of open sessions. */
void run_history_finish(struct run_history *history, int64_t now_ns);

/* Stable name: "done", "failed", ...; "running" if open. */
const char *run_history_outcome_name(enum run_history_outcome outcome);

/* Whether the outcome is a failure. */
bool run_history_is_bad(enum run_history_outcome outcome);

/* Group of a task, or a unique number after all groups of the plan. */
uint32_t run_history_group(const struct run_history *history, uint32_t task);

/* Whether the run is over, or cannot go on by itself, and how it ended without
 * the tasks of `finally`: "done", "failed", "cancelled" or "stopped"; NULL: it
 * goes on. */
const char *run_history_outcome(const struct run_history *history);

/* Whether a task is optional and failed: it needs no operator. */
bool run_history_is_loose(const struct run_history *history, uint32_t task);

#endif /* VIEW_RUN_HISTORY_H */
