/* SPDX-License-Identifier: MIT */
/*
 * chronicle: what happened in a run, as plain data, from the store alone.
 *
 * Nothing is sampled and nothing is guessed: tasks change their state by
 * events, sessions are the attempts of the store, and orders are what an
 * operator did. The plan is read again from the text that is stored, so a
 * store that was moved, or whose plan file is gone, gives the same chronicle.
 *
 * Times are nanoseconds since the run was submitted. The log is in order, but
 * the clock on the wall may have been set back: then time stands still until
 * it has caught up, so that no time is counted twice.
 *
 * Reading: chronicle_read(). By hand (tests): chronicle_init(), then
 * chronicle_add_event() and chronicle_add_session() in their order, then
 * chronicle_finish().
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
#define CHRONICLE_NONE UINT32_MAX

enum chronicle_kind {
    CHRONICLE_TASK,  /* task came to a state */
    CHRONICLE_END,   /* the scheduler has seen the end of a session of task */
    CHRONICLE_LIMIT, /* limit `part` was set to `max`; 0 is the cap */
    CHRONICLE_USAGE, /* usage monitor `part` lowers its limit to `max` */
    CHRONICLE_OVERRIDE, /* usage monitors count for nothing, or do again */
    CHRONICLE_PAUSE,    /* by an order */
    CHRONICLE_RESUME,   /* by an order */
    CHRONICLE_HOLD,     /* task, by an order */
    CHRONICLE_RELEASE,  /* task, by an order */
};

/* Something that happened. A plain value. */
struct chronicle_event {
    int64_t at_ns;
    enum chronicle_kind kind;
    uint32_t task;
    enum task_state to;
    uint32_t number;  /* of the attempt that the event names, or 0 */
    uint32_t part;    /* index in the plan: of a limit, of a usage monitor */
    int64_t max;      /* PLAN_UNLIMITED: none; of an override: 1 or 0 */
    uint32_t before;  /* the event before it of the same task */
    uint32_t session; /* TASK to claimed, END: the session, if known */
};

/* As exec/outcome.h has them, and one more. */
enum chronicle_outcome {
    CHRONICLE_DONE = OUTCOME_DONE,
    CHRONICLE_FAILED = OUTCOME_FAILED,
    CHRONICLE_REFUSED = OUTCOME_REFUSED,
    CHRONICLE_CHANGES = OUTCOME_CHANGES,
    CHRONICLE_BLOCKED = OUTCOME_BLOCKED,
    CHRONICLE_CHECKPOINT = OUTCOME_CHECKPOINT,
    CHRONICLE_LOST = OUTCOME_LOST,
    CHRONICLE_STOPPED = OUTCOME_STOPPED,
    CHRONICLE_OPEN = OUTCOME_COUNT, /* it has not ended */
    CHRONICLE_OUTCOMES,
};

/* One session. Texts belong to the chronicle. */
struct chronicle_session {
    uint64_t token;
    uint32_t task; /* its first one */
    uint32_t number;
    uint32_t task_count; /* more than 1: a batch */
    int64_t claimed_ns;
    int64_t begun_ns; /* of its command; at least claimed_ns */
    int64_t ended_ns; /* while it is open: the end of the chronicle */
    enum chronicle_outcome outcome;
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
struct chronicle_task {
    enum task_state state;
    const char *reason;    /* of that state, or NULL */
    uint32_t last_event;   /* of kind CHRONICLE_TASK */
    uint32_t last_session; /* as its first task */
    bool seen;             /* it has an event */
};

/* Everything. Open, but only to be read; starts as {0}. */
struct chronicle {
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
    bool live;                    /* sessions are in flight: it ends now */
    struct chronicle_task *tasks; /* one for each task of the plan */
    struct chronicle_event *events;
    uint32_t event_count;
    uint32_t event_capacity;
    struct chronicle_session *sessions; /* by token */
    uint32_t session_count;
    uint32_t session_capacity;
    /* The plan as text, to be read again. */
    char *text;
    size_t text_bytes;
    struct chronicle_fragment *fragments;
    uint32_t fragment_count;
    char *expected; /* what a session of each class was expected to take when
                       the run was submitted, as stored; NULL: nothing */
};

/* What was added to the plan later. */
struct chronicle_fragment {
    char *file;
    char *text;
    size_t text_bytes;
};

/*
 * Read the chronicle of the run of this id; NULL: the newest one. `wall_ns` is
 * now. ERR_NOT_FOUND: there is no such run, and *diag names those there are.
 * Release *out in any case.
 */
MUST_USE enum err chronicle_read(struct chronicle *out,
                                 struct store *store,
                                 const char *run,
                                 int64_t wall_ns,
                                 struct diag *diag);
void chronicle_release(struct chronicle *chronicle);

/* A plan like that of the chronicle, for whoever wants to change it. */
MUST_USE enum err chronicle_read_plan(const struct chronicle *chronicle,
                                      struct plan **out,
                                      struct diag *diag);

/* Begin an empty chronicle of a plan, which it takes. */
void chronicle_init(struct chronicle *chronicle, struct plan *plan_take);

/* Add what comes next; `before` and `session` are set here. Texts are copied,
 * times are since the submission. An open session has no end. */
void chronicle_add_event(struct chronicle *chronicle,
                         const struct chronicle_event *event);
void chronicle_add_session(struct chronicle *chronicle,
                           const struct chronicle_session *session);

/* Everything is there. `now_ns`: where open sessions end. */
void chronicle_finish(struct chronicle *chronicle, int64_t now_ns);

/* Stable name: "done", "failed", ..., "running" of an open one. */
const char *chronicle_outcome_name(enum chronicle_outcome outcome);

/* Whether a session ended otherwise than it should. */
bool chronicle_is_bad(enum chronicle_outcome outcome);

/* The group of a task, or a number of its own behind those of the plan. */
uint32_t chronicle_group(const struct chronicle *chronicle, uint32_t task);

/* Whether a task is optional and has failed: nobody need act on it. */
bool chronicle_is_loose(const struct chronicle *chronicle, uint32_t task);

#endif /* VIEW_RUN_HISTORY_H */
