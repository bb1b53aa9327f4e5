/* SPDX-License-Identifier: MIT */
/*
 * history: what happened in a run, as plain data, from the store alone.
 *
 * Nothing is sampled and nothing is guessed: tasks change their state by
 * events, sessions are the attempts of the store, and orders are what an
 * operator did. The plan is read again from the text that is stored, so a
 * store that was moved, or whose plan file is gone, gives the same history.
 *
 * Times are nanoseconds since the run was submitted. The log is in order, but
 * the clock on the wall may have been set back: then time stands still until
 * it has caught up, so that no time is counted twice.
 *
 * Reading: history_read(). By hand (tests): history_init(), then
 * history_add_event() and history_add_session() in their order, then
 * history_finish().
 */
#ifndef CLI_HISTORY_H
#define CLI_HISTORY_H

#include "base/arena.h"
#include "base/diag.h"
#include "core/sched.h"
#include "plan/plan.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

/* "No event", "no session", "no attempt". */
#define HISTORY_NONE UINT32_MAX

enum history_kind {
    HISTORY_TASK,    /* task came to a state */
    HISTORY_END,     /* the scheduler has seen the end of a session of task */
    HISTORY_CAP,     /* the cap is now `max` */
    HISTORY_PAUSE,   /* by an order */
    HISTORY_RESUME,  /* by an order */
    HISTORY_HOLD,    /* task, by an order */
    HISTORY_RELEASE, /* task, by an order */
};

/* Something that happened. A plain value. */
struct history_event {
    int64_t at_ns;
    enum history_kind kind;
    uint32_t task;
    enum task_state to;
    uint32_t number;  /* of the attempt that the event names, or 0 */
    int64_t max;      /* PLAN_UNLIMITED: none */
    uint32_t before;  /* the event before it of the same task */
    uint32_t session; /* TASK to claimed, END: the session, if known */
};

enum history_outcome {
    HISTORY_DONE,
    HISTORY_FAILED,
    HISTORY_REFUSED,
    HISTORY_CHANGES,
    HISTORY_BLOCKED,
    HISTORY_CHECKPOINT,
    HISTORY_LOST,
    HISTORY_STOPPED,
    HISTORY_OPEN, /* it has not ended */
    HISTORY_OUTCOMES,
};

/* One session. Texts belong to the history. */
struct history_session {
    uint64_t token;
    uint32_t task; /* its first one */
    uint32_t number;
    uint32_t task_count; /* more than 1: a batch */
    int64_t claimed_ns;
    int64_t begun_ns; /* of its command; at least claimed_ns */
    int64_t ended_ns; /* while it is open: the end of the history */
    enum history_outcome outcome;
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
struct history_task {
    enum task_state state;
    const char *reason;    /* of that state, or NULL */
    uint32_t last_event;   /* of kind HISTORY_TASK */
    uint32_t last_session; /* as its first task */
    bool seen;             /* it has an event */
};

/* Everything. Open, but only to be read; starts as {0}. */
struct history {
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
    bool live;                  /* sessions are in flight: it ends now */
    struct history_task *tasks; /* one for each task of the plan */
    struct history_event *events;
    uint32_t event_count;
    uint32_t event_capacity;
    struct history_session *sessions; /* by token */
    uint32_t session_count;
    uint32_t session_capacity;
    /* The plan as text, to be read again. */
    char *text;
    size_t text_bytes;
    struct history_fragment *fragments;
    uint32_t fragment_count;
};

/* What was added to the plan later. */
struct history_fragment {
    char *file;
    char *text;
    size_t text_bytes;
};

/*
 * Read the history of the run of this id; NULL: the newest one. `wall_ns` is
 * now. ERR_NOT_FOUND: there is no such run, and *diag names those there are.
 * Release *out in any case.
 */
MUST_USE enum err history_read(struct history *out,
                               struct store *store,
                               const char *run,
                               int64_t wall_ns,
                               struct diag *diag);
void history_release(struct history *history);

/* A plan like that of the history, for whoever wants to change it. */
MUST_USE enum err history_read_plan(const struct history *history,
                                    struct plan **out,
                                    struct diag *diag);

/* Begin an empty history of a plan, which it takes. */
void history_init(struct history *history, struct plan *plan_take);

/* Add what comes next; `before` and `session` are set here. Texts are copied,
 * times are since the submission. An open session has no end. */
void history_add_event(struct history *history,
                       const struct history_event *event);
void history_add_session(struct history *history,
                         const struct history_session *session);

/* Everything is there. `now_ns`: where open sessions end. */
void history_finish(struct history *history, int64_t now_ns);

/* Stable name: "done", "failed", ..., "running" of an open one. */
const char *history_outcome_name(enum history_outcome outcome);

/* Whether a session ended otherwise than it should. */
bool history_is_bad(enum history_outcome outcome);

/* The group of a task, or a number of its own behind those of the plan. */
uint32_t history_group(const struct history *history, uint32_t task);

#endif /* CLI_HISTORY_H */
