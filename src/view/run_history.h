/* SPDX-License-Identifier: MIT */
/*
 * history: what happened in a run, as plain data, from the store alone.
 *
 * Nothing is sampled and nothing is guessed: tasks change their state by
 * events, sessions are the attempts of the store, and requests are what an
 * operator did. The plan is read again from the text that is stored, so a
 * store that was moved, or whose plan file is gone, gives the same history.
 *
 * Times are nanoseconds since the run was submitted. The log is in order, but
 * the clock on the wall may have been set back: then time stands still until
 * it has caught up, so that no time is counted twice.
 *
 * Reading: run_history_read(). By hand (tests): run_history_init(), then
 * run_history_add_event() and run_history_add_session() in their order, then
 * run_history_finish().
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

/* "No event", "no session", "no attempt". */
#define HISTORY_NONE UINT32_MAX

enum run_history_kind {
    HISTORY_TASK,     /* task came to a state */
    HISTORY_END,      /* the scheduler has seen the end of a session of task */
    HISTORY_LIMIT,    /* limit `part` was set to `max`; 0 is the cap */
    HISTORY_USAGE,    /* usage monitor `part` lowers its limit to `max` */
    HISTORY_OVERRIDE, /* usage monitors count for nothing, or do again */
    HISTORY_PAUSE,    /* by a request */
    HISTORY_RESUME,   /* by a request */
    HISTORY_HOLD,     /* task, by a request */
    HISTORY_RELEASE,  /* task, by a request */
};

/* Something that happened. A plain value. */
struct run_history_event {
    int64_t at_ns;
    enum run_history_kind kind;
    uint32_t task;
    enum task_state to;
    uint32_t number;  /* of the attempt that the event names, or 0 */
    uint32_t part;    /* index in the plan: of a limit, of a usage monitor */
    int64_t max;      /* PLAN_UNLIMITED: none; of an override: 1 or 0 */
    uint32_t before;  /* the event before it of the same task */
    uint32_t session; /* TASK to claimed, END: the session, if known */
};

/* As exec/outcome.h has them, and one more. */
enum run_history_outcome {
    HISTORY_DONE = OUTCOME_DONE,
    HISTORY_FAILED = OUTCOME_FAILED,
    HISTORY_REFUSED = OUTCOME_REFUSED,
    HISTORY_CHANGES = OUTCOME_CHANGES,
    HISTORY_BLOCKED = OUTCOME_BLOCKED,
    HISTORY_CHECKPOINT = OUTCOME_CHECKPOINT,
    HISTORY_LOST = OUTCOME_LOST,
    HISTORY_STOPPED = OUTCOME_STOPPED,
    HISTORY_OPEN = OUTCOME_COUNT, /* it has not ended */
    HISTORY_OUTCOMES,
};

/* One session. Texts belong to the history. */
struct run_history_session {
    uint64_t token;
    uint32_t task; /* its first one */
    uint32_t number;
    uint32_t task_count; /* more than 1: a batch */
    int64_t claimed_ns;
    int64_t begun_ns; /* of its command; at least claimed_ns */
    int64_t ended_ns; /* while it is open: the end of the history */
    enum run_history_outcome outcome;
    const char *cause;  /* "exit", "timeout" ..., or NULL */
    const char *reason; /* or NULL */
    int32_t code;
    int32_t signal;
    int64_t input_tokens;
    int64_t output_tokens;
    double usd;
    uint32_t before;      /* session of the same task before it */
    uint32_t claim_event; /* its first task was claimed */
    uint32_t end_event;   /* its end was seen */
};

/* One task of the plan. */
struct run_history_task {
    enum task_state state;
    const char *reason;    /* of that state, or NULL */
    uint32_t last_event;   /* of kind HISTORY_TASK */
    uint32_t last_session; /* as its first task */
    bool seen;             /* it has an event */
};

/* Everything. Open, but only to be read; starts as {0}. */
struct run_history {
    struct arena arena;
    struct plan *plan;
    const char *id;
    const char *name;
    const char *file;
    uint32_t number;
    uint32_t processors;
    int64_t created_ns; /* wall clock */
    int64_t end_ns;     /* when the last thing happened, or now */
    bool finished;
    bool paused;
    bool cancelled;
    bool live;                      /* sessions are in flight: it ends now */
    struct run_history_task *tasks; /* one for each task of the plan */
    struct run_history_event *events;
    uint32_t event_count;
    uint32_t event_capacity;
    struct run_history_session *sessions; /* by token */
    uint32_t session_count;
    uint32_t session_capacity;
    /* The plan as text, and what was added later, to be read again. */
    struct plan_source *sources;
    uint32_t source_count;
    const char *expected; /* what a session of each class was expected to take
                       when the run was submitted, as stored; NULL: nothing */
};

/*
 * Read the history of the run of this id; NULL: the newest one. `wall_ns` is
 * now. ERR_NOT_FOUND: there is no such run, and *diag names those there are.
 * Release *out in any case.
 */
MUST_USE enum err run_history_read(struct run_history *out,
                                   struct store *store,
                                   const char *run,
                                   int64_t wall_ns,
                                   struct diag *diag);
void run_history_release(struct run_history *history);

/* A plan like that of the history, for whoever wants to change it. */
MUST_USE enum err run_history_read_plan(const struct run_history *history,
                                        struct plan **out,
                                        struct diag *diag);

/* Begin an empty history of a plan, which it takes. */
void run_history_init(struct run_history *history, struct plan *plan_take);

/* Add what comes next; `before` and `session` are set here. Texts are copied,
 * times are since the submission. An open session has no end. */
void run_history_add_event(struct run_history *history,
                           const struct run_history_event *event);
void run_history_add_session(struct run_history *history,
                             const struct run_history_session *session);

/* Everything is there. `now_ns`: where open sessions end. */
void run_history_finish(struct run_history *history, int64_t now_ns);

/* Stable name: "done", "failed", ..., "running" of an open one. */
const char *run_history_outcome_name(enum run_history_outcome outcome);

/* Whether a session ended otherwise than it should. */
bool run_history_is_bad(enum run_history_outcome outcome);

/* The group of a task, or a number of its own behind those of the plan. */
uint32_t run_history_group(const struct run_history *history, uint32_t task);

/* Whether a task is optional and has failed: nobody need act on it. */
bool run_history_is_loose(const struct run_history *history, uint32_t task);

#endif /* VIEW_RUN_HISTORY_H */
