/* SPDX-License-Identifier: MIT */
/*
 * engine: connects the core with the store and with sessions.
 *
 * One pass = events -> core -> one batch for the store -> when that is durable,
 * its effects. The engine starts, stops and answers nothing before the batch
 * that records it is written; so at whatever instant the process dies, the next
 * process learns from the store and the attempt directories which effects were
 * carried out.
 *
 * The engine does nothing by itself and never blocks. The world (clock, store,
 * processes) is a table of functions that it calls; the world reports events by
 * calling engine_*(). The live loop (engine/loop.h) is one world, the simulator
 * is another, with faults.
 *
 * How to use it: 1. engine_new(), engine_load() from a store that was taken. 2.
 * engine_recover(): adopt, collect or restart attempts in flight. 3. Report
 * events, then call engine_pass(); and again after
 *     engine_wait_ns() at the latest.
 *
 * A reader (`status`, `why`) does step 1 only, without a world: it gets the
 * scheduler's state and gives the same reasons.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "base/diag.h"
#include "core/why.h"
#include "plan/load.h"
#include "store/store.h"
#include "work/key.h"
#include "work/order.h"
#include "work/report.h"

/* The file of a fragment that a session has added: this and its task's id. */
#define ENGINE_ADDED_BY "added by "

/* A question of a session, about its own run, or of an operator. Strings may be
 * NULL. */
struct engine_look {
    uint64_t token; /* of the session; 0: an operator asks */
    const char
        *verb; /* "log", "plan", "task" or "why"; "show": an operator's */
    const char *task;
    const char *filter;
    /* Of an operator: the command whose output is wanted, and its options. */
    const char *command;
    const char *run;
    const char *const *labels;
    uint32_t label_count;
};

/* The functions that the engine calls. `ctx` is the world's own. */
struct engine_world {
    /* A clock that advances while the machine sleeps, from any origin, and the
     * wall clock. If the first goes back, the engine waits for it. */
    int64_t (*now_ns)(void *ctx);
    int64_t (*wall_ns)(void *ctx);
    /* Begin to write; engine_written() is called later, not from within. */
    void (*write)(void *ctx, const struct store_batch *batch);
    /* Append the order to a batch that is about to be written, and gives it to
     * a worker; or append nothing: it is assigned after that. Such an order is
     * not reported on before the batch is written. NULL: nothing is appended.*/
    void (*offer)(void *ctx,
                  const struct work_order *order,
                  struct strbuf *out);
    /* Hand an order to the worker, which replies by engine_reported(), possibly
     * from within this call. */
    void (*assign)(void *ctx, const struct work_order *order);
    /* Change what the worker does with assigned work. */
    void (*want)(void *ctx, uint64_t token, enum work_want want);
    /* Have the worker replace the messages of a running session. */
    void (*tell)(void *ctx, uint64_t token, const char *text);
    /* Ask the worker for a report about work that was assigned earlier. */
    void (*ask)(void *ctx,
                const struct work_id *id,
                const struct work_mark *mark,
                bool begun,
                enum work_want want);
    /* The result of this program call is recorded. */
    void (*recorded)(void *ctx, uint64_t token);
    void (*forget)(void *ctx, const struct work_id *id);
    /* A request is applied and durable: its answer, a JSON object. */
    void (*answer)(void *ctx, uint64_t request, const char *json);
    /* Append the answer to a question, between two passes. NULL: nobody can
     * ask. */
    enum err (*look)(void *ctx,
                     const struct engine_look *look,
                     struct strbuf *out,
                     struct diag *diag);
    /* An event is durable. */
    void (*event)(void *ctx, const struct store_event *event);
};

/* A new version of the plan of the unfinished run that has its name. */
struct engine_update {
    const char *file;
    const char *folder;
    const char *text;
    uint32_t processors;
    struct strbuf diff; /* out: a line for each difference; none: no change */
};

struct engine_options {
    const struct engine_world *world; /* NULL: read only */
    void *ctx;
    struct work_mark mark;           /* of the worker's current work */
    uint64_t epoch;                  /* from store_take() */
    const struct key_secret *secret; /* of sessions; NULL: they cannot ask */
    uint64_t seed;                   /* for the nonces of attempts: random */
    int64_t wall_ns;                 /* without a world: the time */
    /*
     * NULL, or an update that engine_load() applies; with a world it is durable
     * with the first batch. ERR_NOT_FOUND: no such run exists. ERR_CONFLICT: it
     * changes work that is done or in flight. Borrowed while loading.
     */
    struct engine_update *update;
    /*
     * NULL, or an engine that was loaded from the same store before and is not
     * used any more: engine_load() takes its plans instead of reading equal
     * texts again. Free it before the new engine.
     */
    struct engine *spare;
    /*
     * NULL, or a plan that was read from `offered_source`: loading a run with
     * this text, or submitting it, takes the plan instead of reading the text
     * again. The strings are borrowed until a run was submitted or continued.
     */
    struct plan *offered_take;
    struct plan_source offered_source;
};

struct engine;

/* Create an engine without runs; free it with engine_free(). */
struct engine *engine_new(const struct engine_options *options);

/*
 * Reject a plan that can be simulated, but not run: a merge outside a
 * repository. ERR_INVALID: *diag names the task, *mark_out is its place.
 */
MUST_USE enum err engine_check(const struct plan *plan,
                               struct plan_mark *mark_out,
                               struct diag *diag);

/* Free it; sessions keep running. NULL is allowed. */
void engine_free(struct engine *engine);

/*
 * Load every run of the store that `query` selects; NULL: unfinished runs.
 * ERR_CORRUPT: a stored row is invalid, and *diag names it.
 */
MUST_USE enum err engine_load(struct engine *engine,
                              struct store *store,
                              const struct store_query *query,
                              struct diag *diag);

/* Take over the settings of the store; durable with the next batch. */
struct site;
void engine_take_site(struct engine *engine, const struct site *site);

/*
 * Check every attempt in flight: take its result, adopt it, start it again or
 * record it as lost.
 */
void engine_recover(struct engine *engine);

/* Decide, and begin to write the decisions. Does nothing while a batch is being
 * written: engine_written() causes the next pass. */
void engine_pass(struct engine *engine);

/* How long engine_pass() may wait if no event comes; SCHED_NEVER: until an
 * event. */
int64_t engine_wait_ns(struct engine *engine);

/*
 * The batch is written, or failed. ERR_LIMIT, ERR_BUSY: the engine retries it
 * later. Other errors stop the engine: see engine_failed().
 */
void engine_written(struct engine *engine, enum err err, const char *text);

/* A report of the worker. Reports about finished work are ignored. */
void engine_reported(struct engine *engine, const struct work_report *report);

/* A worker, and how many sessions it can have. */
struct engine_worker {
    const char *labels; /* separated by commas; its name is one */
    uint32_t slots;
};

/* Only these workers run sessions. Without a call, the world runs them, and
 * labels do not matter. */
void engine_workers(struct engine *engine,
                    const struct engine_worker *workers,
                    uint32_t count);

/* How many sessions all of them can have; LIMIT_NONE: there was no call. */
int64_t engine_worker_slots(const struct engine *engine);

/*
 * A request, as a JSON object (see engine/request.h for the verbs). The answer
 * comes under `request`, a number of the caller's, when it is durable.
 */
void engine_request(struct engine *engine,
                    uint64_t request,
                    const char *who,
                    const char *json);

/* The same for a request that only a session may make: it needs a key. */
void engine_session_request(struct engine *engine,
                            uint64_t request,
                            const char *who,
                            const char *json);

/* Stop starting tasks, or resume. Not stored. */
void engine_drain(struct engine *engine, bool drain);

/* Stop all sessions now (the second Ctrl-C). Their tasks are ready again. */
void engine_stop(struct engine *engine);

/* Return the error that stopped the engine, or ERR_OK, and its message. */
enum err engine_failed(const struct engine *engine, const char **text_out);

/* Return a problem that may resolve itself (a full disk); "": none. */
const char *engine_trouble(const struct engine *engine);

/* Whether no write is pending or in progress. */
bool engine_is_settled(const struct engine *engine);

/* Whether it starts no more tasks. */
bool engine_is_draining(const struct engine *engine);

/* Sessions in flight. */
uint32_t engine_session_count(const struct engine *engine);

/* Deliveries to hooks of a run that are due and not given up. */
uint32_t engine_notification_count(const struct engine *engine, uint32_t run);

/* --- reading its state -------------------------------------------------- */

/* One run. Borrowed from the engine until it is freed. */
struct engine_run_view {
    uint32_t number;
    const char *id;
    const char *name;
    const char *file;
    const char *folder;
    const char *text;
    size_t text_bytes;
    int64_t created_ns;    /* wall clock: when it was submitted */
    int64_t not_before_ns; /* wall clock: it starts nothing before; 0: none */
    const struct plan *plan;
    const struct load_run *loaded;
    struct sched_run sched;
    bool finished; /* for good */
    bool quiet;    /* no event will come by itself */
};

/* One session in flight. */
struct engine_session_view {
    uint64_t token;
    uint32_t run;  /* index for engine_run() */
    uint32_t task; /* in the plan */
    uint32_t number;
    uint32_t task_count;
    struct work_mark mark;
    int64_t claimed_ns; /* wall clock */
    int64_t begun_ns;
};

struct sched *engine_sched(const struct engine *engine);
const struct load *engine_loader(const struct engine *engine);
const struct store_info *engine_info(const struct engine *engine);
uint32_t engine_run_count(const struct engine *engine);
struct engine_run_view engine_run(const struct engine *engine, uint32_t ix);
/* Parts of it, much cheaper. */
const struct plan *engine_plan(const struct engine *engine, uint32_t ix);
const struct load_run *engine_loaded(const struct engine *engine, uint32_t ix);
struct engine_session_view engine_session(const struct engine *engine,
                                          uint32_t ix);
/* Find the session of this token; false: it is not in flight. */
bool engine_find_session(const struct engine *engine,
                         uint64_t token,
                         struct engine_session_view *out);

/* A meter, as of the last reading. */
struct engine_meter {
    const char *name;
    double percent;
    int64_t resets_ns; /* wall clock; 0: not known */
};

/* A usage monitor of a run, by its index in the plan. */
struct engine_usage_view {
    const char *provider; /* whose sessions it caps; NULL: all */
    uint32_t limit;       /* of the plan, which it lowers */
    uint32_t meter_count; /* see engine_usage_meter() */
    uint32_t governs;     /* index of the meter closest to its limit */
    int64_t read_ns;      /* wall clock, of the last valid reading; 0: none */
    int64_t cap;          /* LIMIT_NONE: it lowers nothing; 0: a pause */
    int64_t until_ns;     /* wall clock: end of the pause; 0: not known */
    int64_t next_ns;      /* wall clock: next reading, about */
    const char *error;    /* why the last reading failed; NULL: it did not */
};
struct engine_usage_view
engine_usage(const struct engine *engine, uint32_t run, uint32_t ix);
struct engine_meter engine_usage_meter(const struct engine *engine,
                                       uint32_t run,
                                       uint32_t ix,
                                       uint32_t meter);

/* Why a provider is stopped; NULL: it is in use. */
const char *engine_stop_reason(const struct engine *engine,
                               struct provider_id provider);

/* A base whose newest commit could not be merged into the agent branch. */
struct engine_bad_base {
    const char *repo;
    const char *base;
    const char *commit;
    const char *reason; /* or NULL */
};
/* Whether the base of a repository (an index, or PLAN_NONE) is one. */
bool engine_bad_base(const struct engine *engine,
                     uint32_t run,
                     uint32_t repo,
                     struct engine_bad_base *out);

/* Return the task whose failure stopped a run, or PLAN_NONE. */
uint32_t engine_stop_cause(const struct engine *engine, uint32_t run);

/* Append why a run is stopped: "b has failed". */
void engine_add_stop(struct strbuf *out,
                     const struct engine *engine,
                     uint32_t run);

/* Whether usage monitors are overridden: they lower nothing. */
bool engine_is_overridden(const struct engine *engine);

/* Return a limit without usage monitors and spending, or LIMIT_NONE. */
int64_t
engine_limit_set(const struct engine *engine, uint32_t run, uint32_t limit);

/* Return which percentage of `sessions` a limit is; 0: it is a number. */
uint32_t
engine_limit_percent(const struct engine *engine, uint32_t run, uint32_t limit);

/* A limit of the store, which holds for all its runs together. */
struct engine_ceiling_view {
    const char *name; /* "sessions", or that of a provider */
    int64_t max;      /* or LIMIT_NONE */
    int64_t used;     /* by the runs that are loaded */
    bool ordered;     /* set by an operator */
    bool from_file;   /* the settings have one, too */
};
uint32_t engine_ceiling_count(const struct engine *engine);
struct engine_ceiling_view engine_ceiling(const struct engine *engine,
                                          uint32_t ix);

/* Return the spent part of a budget, in its units (see PLAN_USD). */
int64_t
engine_limit_spent(const struct engine *engine, uint32_t run, uint32_t limit);

/* Return the cost of all attempts of a task. */
void engine_task_cost(const struct engine *engine,
                      uint32_t run,
                      uint32_t task,
                      double *usd_out,
                      int64_t *tokens_out);

/* Take what a setting of the store says about sessions into the plan, if the
 * setting is a history ("history/LEVEL"). */
void engine_expect(struct plan *plan, const char *setting, const char *value);

/* Take what a run knew when it was submitted: the value of its setting
 * "expected/RUN". */
void engine_expect_run(struct plan *plan, const char *value);

/* The engine's clock, and the wall clock, at the last pass or load. */
int64_t engine_time_ns(const struct engine *engine);

int64_t engine_wall_ns(const struct engine *engine);

/* Index of the run with that id (slug), or STORE_NONE. */
uint32_t engine_find_run(const struct engine *engine, const char *id);

/* Of a parked task, what it lacks; the reason why it is parked or failed, or
 * NULL; number of its last attempt. */
enum outcome_lack
engine_lack(const struct engine *engine, uint32_t run, uint32_t task);
const char *
engine_reason(const struct engine *engine, uint32_t run, uint32_t task);
/* The feedback that the next or current attempt of a task has, or NULL; the
 * dollars that it may still spend, in units of PLAN_USD, or PLAN_UNSET. */
const char *
engine_feedback(const struct engine *engine, uint32_t run, uint32_t task);
int64_t
engine_usd_left(const struct engine *engine, uint32_t run, uint32_t task);
uint32_t
engine_attempt_number(const struct engine *engine, uint32_t run, uint32_t task);

/* Append a path of a plan: relative to directory `folder`, or absolute. */
void engine_add_path(struct strbuf *out, const char *folder, const char *path);

/* Append the path of a repo of a plan, as above, or its URL. */
void engine_add_repo(struct strbuf *out,
                     const char *folder,
                     const struct plan_repo *repo);

#endif /* ENGINE_ENGINE_H */
