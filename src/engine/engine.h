/* SPDX-License-Identifier: MIT */
/*
 * engine: connects the core with the store and with sessions.
 *
 * One pass = what has happened -> core -> one batch for the store -> when that
 * is durable, what follows from it. Nothing is started, ended or answered
 * before the batch that says so is written; so whatever instant the process
 * dies at, the next one finds out from the store and from the directories of
 * the attempts what was done and what was not.
 *
 * The engine does nothing by itself and never blocks. The world (clock, store,
 * processes) is a table of functions that it calls; what happens there is told
 * to it by calls of engine_*(). The live loop (engine/loop.h) is one world, the
 * simulator another one, with faults.
 *
 * How to use it:
 *  1. engine_new(), engine_load() from a store that was taken.
 *  2. engine_recover(): adopt, collect or start again what was in flight.
 *  3. Tell it what happens, then call engine_pass(); and again after
 *     engine_wait_ns() at the latest.
 *
 * A reader (`status`, `why`) does step 1 only, without a world: it sees the
 * state that the scheduler would see, and gives the same reasons.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "base/diag.h"
#include "core/why.h"
#include "plan/load.h"
#include "store/store.h"
#include "work/order.h"
#include "work/report.h"

/* What the engine calls. `ctx` is the world's own. */
struct engine_world {
    /* A clock that goes on while the machine sleeps, from any origin, and the
     * one on the wall. When the first goes back, the engine waits for it. */
    int64_t (*now_ns)(void *ctx);
    int64_t (*wall_ns)(void *ctx);
    /* Begin to write; engine_written() is called later, not from within. */
    void (*write)(void *ctx, const struct store_batch *batch);
    /* Hand an order to the worker: engine_reported() tells what comes of it,
     * maybe from within. */
    void (*assign)(void *ctx, const struct work_order *order);
    /* Tell the worker what is wanted of work that was assigned. */
    void (*want)(void *ctx, uint64_t token, enum work_want want);
    /* Ask the worker for a report about work that was assigned before. */
    void (*ask)(void *ctx,
                const struct work_id *id,
                const struct work_mark *mark,
                bool begun,
                enum work_want want);
    /* The end of this program's call is recorded. */
    void (*forget)(void *ctx, const struct work_id *id);
    /* A request is carried out and durable: its answer, a JSON object. */
    void (*answer)(void *ctx, uint64_t request, const char *json);
    /* An event is durable. */
    void (*event)(void *ctx, const struct store_event *event);
};

/* Another version of the plan of an unfinished run, which has its name. */
struct engine_update {
    const char *file;
    const char *folder;
    const char *text;
    uint32_t processors;
    struct strbuf diff; /* out: a line for each difference; none: no change */
};

struct engine_options {
    const struct engine_world *world; /* NULL: only to look at */
    void *ctx;
    struct work_mark mark; /* of the worker's present work */
    uint64_t epoch;        /* from store_take() */
    uint64_t seed;         /* of the nonces of attempts: random */
    int64_t wall_ns;       /* without a world: what the time is */
    /*
     * NULL, or an update that engine_load() makes; with a world it is durable
     * with the first batch. ERR_NOT_FOUND: there is no such run. ERR_CONFLICT:
     * it touches work that is done or in flight. Borrowed while loading.
     */
    struct engine_update *update;
};

struct engine;

/* Create an engine without runs; end it with engine_free(). */
struct engine *engine_new(const struct engine_options *options);

/*
 * Give the engine a plan that was read from `source`, whose texts are borrowed
 * as long as the engine lives: submitting the same source takes it instead of
 * reading it again.
 */
void engine_offer_plan(struct engine *engine,
                       struct plan *plan_take,
                       const struct plan_source *source);

/*
 * Refuse what can be simulated, but not run: a merge in something that is no
 * repository. ERR_INVALID: *diag says which task, *mark_out is its place.
 */
MUST_USE enum err engine_check(const struct plan *plan,
                               struct plan_mark *mark_out,
                               struct diag *diag);

/* Free it; sessions are not touched. NULL is allowed. */
void engine_free(struct engine *engine);

/*
 * Load every run of the store that `query` asks for; NULL: those that have not
 * finished. ERR_CORRUPT: what is stored cannot be, and *diag says where.
 */
MUST_USE enum err engine_load(struct engine *engine,
                              struct store *store,
                              const struct store_query *query,
                              struct diag *diag);

/*
 * Look at every attempt in flight: take its result, adopt it, start it again
 * or give it up as lost.
 */
void engine_recover(struct engine *engine);

/* Decide, and begin to write what was decided. Nothing while a batch is being
 * written: its end brings the next pass. */
void engine_pass(struct engine *engine);

/* How long engine_pass() may wait, if nothing happens; SCHED_NEVER: until
 * something does. */
int64_t engine_wait_ns(struct engine *engine);

/*
 * The batch is written, or not. ERR_LIMIT, ERR_BUSY: it is tried again
 * later. Other errors end the engine: see engine_failed().
 */
void engine_written(struct engine *engine, enum err err, const char *text);

/* A report of the worker. Reports about work that has ended are ignored. */
void engine_reported(struct engine *engine, const struct work_report *report);

/* There is another worker in place of one that is gone, or that could not be
 * reached: ask it about all that is in flight. `mark` is its present one. */
void engine_worker_came(struct engine *engine, const struct work_mark *mark);

/*
 * A request, as a JSON object (see engine/request.h for the verbs). The answer
 * comes under `request`, a number of the caller's, when it is durable.
 */
void engine_request(struct engine *engine,
                    uint64_t request,
                    const char *who,
                    const char *json);

/* Start nothing more; or go on after all. Not stored. */
void engine_drain(struct engine *engine, bool drain);

/* End all sessions now (the second Ctrl-C). Their tasks are ready again. */
void engine_stop(struct engine *engine);

/* Why the engine cannot go on (ERR_OK: it can), and the text. */
enum err engine_failed(const struct engine *engine, const char **text_out);

/* Trouble that it waits to go away by itself (a full disk); "": none. */
const char *engine_trouble(const struct engine *engine);

/* Whether nothing is waiting to be written, or being written. */
bool engine_is_settled(const struct engine *engine);

/* Whether nothing more is started. */
bool engine_is_draining(const struct engine *engine);

/* Sessions that have not ended. */
uint32_t engine_session_count(const struct engine *engine);

/* Calls of hooks of a run that are due and not given up. */
uint32_t engine_notification_count(const struct engine *engine, uint32_t run);

/* --- looking at it ------------------------------------------------------ */

/* One run. Borrowed from the engine until it is freed. */
struct engine_run_view {
    uint32_t number;
    const char *id;
    const char *name;
    const char *file;
    const char *folder;
    const char *text;
    size_t text_bytes;
    int64_t created_ns; /* wall clock: when it was submitted */
    const struct plan *plan;
    const struct load_run *loaded;
    struct sched_run sched;
    bool finished; /* nothing is left to do in it, ever */
    bool quiet;    /* nothing will happen in it by itself */
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
struct engine_session_view engine_session(const struct engine *engine,
                                          uint32_t ix);
/* The session of this token; false: it is not in flight. */
bool engine_find_session(const struct engine *engine,
                         uint64_t token,
                         struct engine_session_view *out);

/* A meter, as its program showed it last. */
struct engine_meter {
    const char *name;
    double percent;
    int64_t resets_ns; /* wall clock; 0: not known */
};

/* A usage monitor of a run, by its index in the plan. */
struct engine_usage_view {
    const char *provider; /* whose sessions it caps; NULL: all */
    uint32_t limit;       /* of the plan, that it lowers */
    uint32_t meter_count; /* see engine_usage_meter() */
    uint32_t governs;     /* index of the meter that is closest to its limit */
    int64_t read_ns;      /* wall clock, of the last good reading; 0: none */
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

/* Why a provider is stopped; NULL: it is not. */
const char *engine_stop_reason(const struct engine *engine,
                               struct provider_id provider);

/* Whether usage monitors are overridden: they lower nothing. */
bool engine_is_overridden(const struct engine *engine);

/* What a limit would be without usage monitors and spending; LIMIT_NONE. */
int64_t
engine_limit_set(const struct engine *engine, uint32_t run, uint32_t limit);

/* What was spent of a budget, in its units (see PLAN_USD). */
int64_t
engine_limit_spent(const struct engine *engine, uint32_t run, uint32_t limit);

/* What all attempts of a task have cost. */
void engine_task_cost(const struct engine *engine,
                      uint32_t run,
                      uint32_t task,
                      double *usd_out,
                      int64_t *tokens_out);

/* Set what a plan expects of a class from a setting of the store, if it is
 * one of its history ("history/CLASS"). */
void engine_expect(struct plan *plan, const char *setting, const char *value);

/* Time on the engine's clock, and on the wall, of the last pass or load. */
int64_t engine_time_ns(const struct engine *engine);

int64_t engine_wall_ns(const struct engine *engine);

/* Index of the run of that id (slug), or STORE_NONE. */
uint32_t engine_find_run(const struct engine *engine, const char *id);

/* Why it is parked or failed, in words, or NULL; what it lacks when it is
 * parked; number of its last attempt. */
enum outcome_lack
engine_lack(const struct engine *engine, uint32_t run, uint32_t task);
const char *
engine_reason(const struct engine *engine, uint32_t run, uint32_t task);
uint32_t
engine_attempt_number(const struct engine *engine, uint32_t run, uint32_t task);

/* A path of a plan that stands in `folder`: relative to that, or absolute. */
void engine_add_path(struct strbuf *out, const char *folder, const char *path);

#endif /* ENGINE_ENGINE_H */
