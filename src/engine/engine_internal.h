/* SPDX-License-Identifier: MIT */
/*
 * What the files of the engine share, and nobody else may see.
 *
 * The life of a session:
 *
 *   STARTING  the core handed it out; its row is in a batch
 *   ASSIGNED  the batch is written and the worker has the order
 *   RUNNING   the worker has reported its start
 *
 * When its end is known it leaves the list at once: the outcome goes to the
 * core and its row into the batch. What is asked of the world (assign, want,
 * answer) waits in lists until the batch that tells of it is written.
 */
#ifndef ENGINE_ENGINE_INTERNAL_H
#define ENGINE_ENGINE_INTERNAL_H

#include "base/rng.h"
#include "engine/engine.h"
#include "exec/meters.h"
#include "plan/revise.h"
#include "store/event.h"
#include "work/order.h"
#include "work/report.h"

enum session_phase { SESSION_STARTING, SESSION_ASSIGNED, SESSION_RUNNING };

struct session {
    uint64_t token;
    uint32_t run;  /* index */
    uint32_t task; /* first one, index in the plan */
    uint32_t number;
    uint32_t task_count;
    uint32_t slot; /* from 1; 0: not known */
    enum session_phase phase;
    bool begun; /* it was stored that it runs */
    bool asked; /* our worker knows it */
    bool told;  /* ... and what is wanted of it */
    bool broke; /* the budget of its task does not suffice */
    enum work_want want;
    char *refusal;         /* why it is not started, or NULL */
    struct work_mark mark; /* the worker's */
    int64_t tell_ns;       /* tell that it runs; SCHED_NEVER: not to be told */
    int64_t claimed_ns;
    int64_t begun_ns;
    uint64_t epoch;
    char nonce[ATTEMPT_NONCE_BYTES];
};

/* What the engine knows about a task beside the core. */
struct engine_task {
    uint32_t number;      /* of its last attempt */
    uint32_t told_number; /* ... in its last event */
    uint8_t told;     /* state in its last event; TASK_STATE_COUNT: none yet */
    bool known;       /* its row is in the store, or in a batch */
    uint64_t version; /* of its row */
    char *reason;
    char *feedback;
    char *carry; /* see carry.h; NULL: nothing yet */
    double usd;  /* what all its attempts have cost */
    int64_t tokens;
};

/* A limit that an operator changed. */
struct engine_limit {
    uint32_t limit; /* in the plan */
    int64_t max;
    uint32_t percent;
};

/* What a program of the plan is run with. Strings are borrowed. */
struct program_call {
    const char *shell; /* one of the two, or ... */
    const char **argv;
    bool agent; /* ... sluice-agent, with `argv` as arguments */
    const char *const *env;
    uint32_t env_count;
    const char *folder;
    const char *run;      /* id */
    const char *file;     /* that it prints to ... */
    const char *input;    /* ... or, with this text in it, reads from */
    const char *variable; /* that names the file in its environment */
    int64_t timeout_ns;
};

struct program;

/* What is particular to one kind of program. */
struct program_ops {
    const char *task; /* that names its directories: begins with a dot */
    void (*add_name)(struct strbuf *out,
                     const struct engine *engine,
                     const struct program *program);
    struct program_call (*call)(const struct engine *engine,
                                const struct program *program);
    bool (*is_wanted)(const struct engine *engine,
                      const struct program *program);
    /* It is over; `error` NULL: well, and this is what it has printed. The
     * program may be freed here. */
    void (*ended)(struct engine *engine,
                  struct program *program,
                  const struct work_id *id,
                  const struct work_report *report,
                  const char *error);
};

/* A program of the plan that is no session, called again and again. */
struct program {
    const struct program_ops *ops;
    uint32_t run;  /* index */
    uint32_t part; /* of the run, for those that have several */
    uint64_t id;   /* of the call under way, for the worker; 0: none */
    bool due;      /* to be assigned when the batch is written */
    bool stopped;  /* it was told to end */
    bool ours;     /* it ran in the time of this process */
    bool stored;   /* a process before this one may have had it assigned */
    char nonce[ATTEMPT_NONCE_BYTES]; /* of the call under way */
};

/* The sync hook of a run, while it is under way. */
struct engine_sync {
    struct program *program; /* NULL: there was no barrier yet */
    uint32_t number; /* names its directory, also in the store; 0: none */
    uint32_t next;   /* of the one that was due once more; 0: none */
};

/* What a usage monitor has seen, and what follows from it. */
struct engine_usage {
    struct program *program;
    const char *words[3]; /* that ask sluice-agent for an agent's meters */
    uint32_t readings;    /* of this process */
    uint32_t kept;        /* reading that failed, whose directory is left */
    struct meter *meters;
    uint32_t meter_count;
    uint32_t governs; /* the meter that is closest to its limit */
    int64_t read_ns;  /* wall clock, of the last good reading; 0: none */
    bool known;       /* it was read well: else nothing is started */
    int64_t cap;      /* LIMIT_NONE: it lowers nothing; 0: a pause */
    int64_t until_ns; /* wall clock: end of the pause; 0: not known */
    int64_t next_ns;  /* of the next reading, unless until_ns says it */
    uint32_t probes;  /* readings since a pause of unknown end began */
    char *error;      /* why the last reading failed; NULL: it did not */
};

/* A budget of one task that an operator has set. */
struct engine_raise {
    uint32_t task;
    struct plan_cost budget;
};

/* What was last stored and told of a provider. */
struct engine_provider {
    struct sched_provider_record stored;
    bool paused;  /* told that it has named a time */
    char *reason; /* why it is stopped; NULL: it is not */
};

/* What was added to the plan at once, and by whose session, if by one; or
 * another version of the plan. */
struct engine_fragment {
    uint32_t first_task;
    uint32_t adder; /* task, or PLAN_NONE */
    bool update;    /* a version: its text is that of the run */
    char *file;
    char *text; /* NULL for an update */
    size_t text_bytes;
};

/* Sums over the sessions of a class that ended well. */
struct engine_history {
    char *name;
    uint64_t count; /* of tasks */
    double seconds;
    double usd;
    double tokens;
    bool changed; /* since it was stored */
};

struct engine_run {
    uint32_t number;
    char *id;
    char *name;
    char *file;
    char *folder;
    char *text;
    size_t text_bytes;
    uint32_t processors;
    int64_t created_ns;
    struct plan *plan;
    struct load_run *loaded;
    struct engine_fragment *fragments;
    uint32_t fragment_count;
    struct engine_task *tasks;
    uint32_t task_count;
    struct engine_limit *limits;
    uint32_t limit_count;
    struct sched_run_record stored;
    struct engine_sync sync;
    struct engine_usage *usages; /* one for each of the plan */
    struct engine_raise *raises;
    uint32_t raise_count;
    bool spent; /* money, since its limits were last derived */
    bool broke; /* told that it only waits for a budget */
    bool finished;
};

/* An answer that waits for its batch. */
struct engine_answer {
    uint64_t request;
    char *json;
};

/* The call of a program whose directory is not needed any more. */
struct engine_drop {
    char *run;
    const char *task;
    char *name;
};

/* What is to be done when a batch is written. */
struct engine_todo {
    uint64_t *starts; /* tokens */
    uint32_t start_count;
    uint32_t start_capacity;
    struct engine_answer *answers;
    uint32_t answer_count;
    uint32_t answer_capacity;
    struct engine_drop *drops;
    uint32_t drop_count;
    uint32_t drop_capacity;
};

struct notification;

struct engine {
    const struct engine_world *world;
    void *ctx;
    struct work_mark mark; /* of what is assigned now */
    uint64_t epoch;
    struct rng nonces;
    int64_t now_ns;
    int64_t offset_ns; /* from the world's clock to the engine's */
    int64_t wall_ns;   /* of a reader */
    struct store_info info;
    struct plan *offered; /* see engine_offer_plan(); NULL: none */
    struct plan_source offered_source;
    uint64_t version; /* of the last task row */

    struct sched *sched;
    struct load *load;
    struct engine_run *runs; /* by index of the run in the core */
    uint32_t run_count;
    char **finished_ids; /* of runs that are not loaded */
    uint32_t finished_count;
    struct engine_provider *providers;
    uint32_t provider_count;
    bool override;                  /* usage monitors lower nothing */
    struct engine_history *history; /* by class */
    uint32_t history_count;
    struct notification *notifications; /* by number of their events */
    uint32_t notification_count;
    uint32_t notification_capacity;
    uint64_t event_number; /* of the last event, written or not */

    struct store_attempt *strays; /* in flight, but of no task in flight */
    uint32_t stray_count;
    struct session *sessions; /* in no particular order */
    uint32_t session_count;
    uint32_t session_capacity;
    struct program **programs;
    uint32_t program_count;

    struct store_batch batch; /* being filled */
    struct engine_todo todo;  /* for when it is written */
    struct store_batch written;
    struct engine_todo written_todo;
    bool writing;
    int64_t retry_ns; /* write again then; SCHED_NEVER: no */
    bool changed;     /* something happened since the last pass */
    bool thinking;    /* a plan ahead is not made to its end yet */
    int64_t burst_ns; /* take a pass then, for ends that share a batch */
    bool draining;
    bool stopping;
    enum err failed;
    char failed_text[256];
    char trouble[128];
    struct engine_update *update; /* to be made while loading, or NULL */
};

/* engine.c: the clock, which never goes back here; an event for the core. */
int64_t engine_now(struct engine *engine);
enum err engine_apply(struct engine *engine, struct sched_event event);
void engine_fail(struct engine *engine, enum err err, const char *text);
/* Have the worker forget a program's call when the present batch is written. */
void engine_drop_later(struct engine *engine, const struct work_id *id);

/* rows.c: what is written. */
void rows_add_run(struct engine *engine, const struct engine_run *run);
void rows_set_run(struct engine *engine, uint32_t run);
void rows_set_task(struct engine *engine, uint32_t run, uint32_t task);
void rows_claim(struct engine *engine, const struct session *session);
void rows_set_session(struct engine *engine, const struct session *session);
void rows_providers(struct engine *engine);
/* The provider is stopped, for this reason; NULL: it is not any more. */
void rows_stop_reason(struct engine *engine,
                      struct provider_id provider,
                      const char *reason);
/* Set, or with NULL remove, a setting. */
void rows_setting(struct engine *engine, const char *name, const char *value);
/* The same for one that is named KIND/NUMBER, or KIND/NUMBER/PART. */
enum { ROWS_NO_PART = -1 };
void rows_numbered(struct engine *engine,
                   const char *kind,
                   uint32_t number,
                   int64_t part,
                   const char *value);
/* Append an event, and have the hook called that is told of it. */
void rows_event(struct engine *engine,
                uint32_t run,
                uint32_t task,
                const struct event *event);
/* The same for one that is about all unfinished runs that use the provider. */
void rows_provider_event(struct engine *engine,
                         struct provider_id provider,
                         const struct event *event);

/* How a session ended, for its row. */
struct rows_end {
    const struct session *session;
    enum sched_outcome outcome;
    const struct attempt_found *found;
    const struct attempt_result *result;
    const char *reason; /* or NULL */
};
void rows_end_session(struct engine *engine, const struct rows_end *end);

/* session.c: from a claim to an end. */
void session_new(struct engine *engine, const struct sched_effect *effect);
struct session *session_add(struct engine *engine);
struct session *session_find(struct engine *engine, uint64_t token);
/* How many tasks it has: its own and those that the core has batched with it.
 */
void session_count_tasks(const struct engine *engine, struct session *session);
/* What holds for a session that is in the list, and of its task in the core. */
void session_check(const struct engine *engine, const struct session *session);
/* Ask the worker what became of it. */
void session_ask(struct engine *engine, struct session *session);
/* Hand it to the worker. */
void session_assign(struct engine *engine, struct session *session);
/* Tell the worker what is wanted of it. */
void session_want(struct engine *engine, struct session *session);
/* Store that it runs. */
void session_tell(struct engine *engine, struct session *session);

/* assign.c: orders for the worker. */
enum { ASSIGN_NAME_BYTES = 16 };
struct work_id assign_id(const struct engine *engine,
                         const struct session *session,
                         char name[ASSIGN_NAME_BYTES]);
/* ERR_INVALID: it can never be ordered. */
enum err assign_session(struct engine *engine,
                        const struct session *session,
                        struct diag *diag);
void assign_program(struct engine *engine,
                    const struct program *program,
                    const struct work_id *id);
bool assign_is_git(const struct engine *engine, const struct session *session);

/* assign_agent.c: append what sluice-agent must know. */
enum err assign_add_brief(const struct engine *engine,
                          const struct session *session,
                          struct strbuf *out,
                          struct diag *diag);

/* runs.c: adding a run, and work to one. */
struct engine_run *runs_add(struct engine *engine);
enum err runs_read_plan(struct engine_run *run, struct diag *diag);
enum err runs_add_fragment(struct engine_run *run,
                           const char *file,
                           const char *text,
                           size_t len,
                           struct diag *diag);
enum err runs_hot_load(struct engine *engine,
                       uint32_t run,
                       const char *file,
                       const char *text,
                       size_t len,
                       struct diag *diag);
/* Read another version of the plan of a run into *out. */
enum err runs_read_version(const struct engine_run *run,
                           const struct plan_source *source,
                           struct plan **out,
                           struct diag *diag);
/* Take it as the plan of the run; the caller frees the one before, which is
 * returned. `file` is that of the stored fragment. */
struct plan *runs_take_version(struct engine *engine,
                               uint32_t run,
                               struct plan *plan,
                               const char *file,
                               const char *text,
                               size_t len);
/* The same with what a session of the task wants to add. */
enum err runs_add_by_session(struct engine *engine,
                             uint32_t run,
                             uint32_t task,
                             const char *text,
                             struct diag *diag);
void runs_tell(struct engine *engine, uint32_t run, enum event_word to);
void runs_grow_tasks(struct engine_run *run);
void runs_release(struct engine_run *run);

/* A plan that was handed in. */
struct runs_submission {
    const char *file;
    const char *folder;
    const char *text;
    uint32_t processors;
    bool anew; /* another run beside one of that name, or after it */
};
/* Make a run of it, or find the one that it continues, which may have finished:
 * *out is its index. */
enum err runs_submit(struct engine *engine,
                     const struct runs_submission *submission,
                     uint32_t *out,
                     bool *continued_out,
                     struct diag *diag);

/*
 * update.c: another version of a plan that is under way, while its store is
 * being loaded. It is found and read when all fragments are known; judged when
 * all tasks are; and written with the first batch.
 */
struct updating {
    uint32_t run;     /* index; STORE_NONE: no run is updated */
    struct plan *old; /* the version before */
    bool changed;
};
enum err
update_begin(struct engine *engine, struct updating *out, struct diag *diag);
/* `records` has one for each task, the new ones included. */
enum err update_judge(struct engine *engine,
                      struct updating *updating,
                      struct sched_record *records,
                      struct diag *diag);
/* The tasks are restored: skip what cannot be reached any more. */
void update_restored(struct engine *engine, const struct updating *updating);
void update_write(struct engine *engine, const struct updating *updating);
/* Whether a plan means the same as that of the run. */
bool update_is_same(const struct engine_run *run,
                    const struct engine_run *made);

/* program.c: programs of a plan that are no sessions. To the worker they are:
 * their ids are those of no session and of no other call. */
struct program *program_new(struct engine *engine,
                            const struct program_ops *ops,
                            uint32_t run,
                            uint32_t part);
void program_free(struct engine *engine, struct program *program);
/* Have it run when the present batch is written; it must not be under way. */
void program_call(struct engine *engine, struct program *program);
void program_stop(struct engine *engine, struct program *program);
bool program_is_due(const struct engine *engine);
void program_start_due(struct engine *engine);
bool program_is_id(uint64_t id);
void program_reported(struct engine *engine, const struct work_report *report);
/* There is another worker: assign what is under way once more. */
void program_ask_all(struct engine *engine);

/* usage.c: monitors. */
void usage_init(struct engine *engine, uint32_t run);
void usage_release(struct engine_run *run);
void usage_restore(struct engine_run *run, uint32_t part, const char *value);
int64_t usage_next_ns(const struct engine *engine);
/* The cap as it is now: a run waits for the first reading. */
int64_t usage_cap(const struct engine_usage *usage);
void usage_pass(struct engine *engine);

/* notify.c: hooks that are to be told of an event. */
void notify_add(struct engine *engine,
                uint32_t run,
                const char *hook,
                const struct store_event *event);
void notify_restore(struct engine *engine, const char *value);
void notify_release(struct engine *engine);
int64_t notify_next_ns(const struct engine *engine);
void notify_pass(struct engine *engine);

/* caps.c: limits that are not what the plan says. */
int64_t
caps_configured(const struct engine *engine, uint32_t run, uint32_t limit);
int64_t caps_spent(const struct engine *engine, uint32_t run, uint32_t limit);
void caps_set(struct engine *engine, uint32_t run, uint32_t limit, int64_t max);
/* Hand what holds to the core. */
void caps_apply(struct engine *engine, uint32_t run);
/* A session of the task has cost this. */
void caps_spend(struct engine *engine,
                uint32_t run,
                uint32_t task,
                double usd,
                int64_t tokens);
/* Derive limits after spending; find runs that only wait for money. */
void caps_pass(struct engine *engine);
void caps_check_money(struct engine *engine);
/* Whether another session would exceed the budget of the task itself; the
 * reason is appended. */
bool caps_is_broke(const struct engine *engine,
                   uint32_t run,
                   uint32_t task,
                   struct strbuf *reason);
/* What a session of the task may spend by all budgets that cover it, PLAN_USD
 * to the dollar; PLAN_UNSET: no limit. */
int64_t caps_usd_left(const struct engine *engine, uint32_t run, uint32_t task);
struct plan_cost
caps_task_budget(const struct engine *engine, uint32_t run, uint32_t task);
void caps_raise(struct engine *engine,
                uint32_t run,
                uint32_t task,
                const struct plan_cost *budget);
void caps_restore_raise(struct engine_run *run,
                        uint32_t task,
                        const char *value);

/* history.c: what sessions have taken, by class. */
void history_note(struct engine *engine,
                  const char *class_name,
                  const struct store_attempt *row);
void history_pass(struct engine *engine);
void history_restore(struct engine *engine,
                     const char *setting,
                     const char *value);
void history_release(struct engine *engine);
/* What a new run expects for good; the same from the store. */
void history_expect(struct engine *engine, struct engine_run *run);
void history_restore_run(struct engine_run *run, const char *value);

/* sync.c: the hook of a barrier. */
void sync_restore(struct engine_run *run, uint32_t barrier);
void sync_due(struct engine *engine, uint32_t run);

/* request.c */
void request_apply(struct engine *engine,
                   uint64_t request,
                   uint64_t number,
                   const char *who,
                   const char *json);

/* Whether nothing will happen in the run by itself. */
static inline bool engine_is_quiet(const struct engine *engine, uint32_t run)
{
    return engine->runs[run].broke ||
           sched_run(engine->sched, (struct run_id){run}).quiet;
}

/* The core's number of a task of the plan, and back. */
static inline struct task_id
engine_core_task(const struct engine *engine, uint32_t run, uint32_t task)
{
    return load_task(engine->runs[run].loaded, task);
}

#endif /* ENGINE_ENGINE_INTERNAL_H */
