/* SPDX-License-Identifier: MIT */
/*
 * Declarations that the engine's files share, private to them.
 *
 * The life of a session:
 *
 *   STARTING  the core handed it out; its row is in a batch
 *   ASSIGNED  the batch is written and the worker has the order
 *   RUNNING   the worker has reported its start
 *
 * When its result is known it leaves the list at once: the outcome goes to the
 * core and its row into the batch. Calls to the world (assign, want, answer)
 * wait in lists until the batch that records them is written.
 */
#ifndef ENGINE_ENGINE_INTERNAL_H
#define ENGINE_ENGINE_INTERNAL_H

#include "base/rng.h"
#include "base/strmap.h"
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
    uint32_t task; /* first task, index in the plan */
    uint32_t number;
    uint32_t task_count;
    uint32_t slot; /* from 1; 0: unknown */
    enum session_phase phase;
    bool begun;   /* the store has it as running */
    bool offered; /* the batch that is written gives it to a worker */
    bool asked;   /* our worker has it */
    bool told;    /* ... and its `want` */
    bool broke;   /* the budget of its task does not suffice */
    enum work_want want;
    int64_t held_ns; /* since when it waits for its slot, see ahead.c; 0: it
                        does not */
    char *refusal;   /* why it is not started, or NULL */
    struct work_mark mark; /* the worker's */
    int64_t tell_ns;       /* when to log its start; SCHED_NEVER: do not */
    int64_t claimed_ns;
    int64_t begun_ns;
    uint64_t epoch;
    uint64_t note_sum;   /* of its last note */
    uint32_t note_count; /* that were logged */
    char nonce[ATTEMPT_NONCE_BYTES];
};

/* What the attempts of a task, and operators, have left. */
struct engine_past {
    char *reason;
    char *feedback;
    char *carry;   /* see carry.h; NULL: none yet */
    char *outputs; /* for its dependents, a JSON object; NULL: none */
    double usd;    /* cost of all its attempts */
    int64_t tokens;
};

/* The engine's data about a task, besides the core's. */
struct engine_task {
    uint32_t number;      /* of its last attempt */
    uint32_t told_number; /* ... in its last event */
    uint64_t version;     /* of its row */
    uint8_t told; /* state in its last event; TASK_STATE_COUNT: none yet */
    bool known;   /* its row is in the store, or in a batch */
    struct engine_past *past; /* see runs_past(); NULL: nothing */
};

/* A limit that an operator changed. */
struct engine_limit {
    uint32_t limit; /* in the plan */
    int64_t max;
    uint32_t percent;
};

/* How to run a program of the plan. Strings are borrowed. */
struct program_call {
    const char *shell; /* this or `argv`, or ... */
    const char **argv;
    bool agent; /* ... sluice-agent, with `argv` as arguments */
    const char *const *env;
    uint32_t env_count;
    const char *folder;
    const char *run;      /* id */
    const char *file;     /* its output file ... */
    const char *input;    /* ... or, if set, the content of its input file */
    const char *variable; /* names the file in its environment */
    int64_t timeout_ns;
};

struct program;

/* Operations of one kind of program. */
struct program_ops {
    const char *task; /* names its directories: begins with a dot */
    void (*add_name)(struct strbuf *out,
                     const struct engine *engine,
                     const struct program *program);
    struct program_call (*call)(const struct engine *engine,
                                const struct program *program);
    bool (*is_wanted)(const struct engine *engine,
                      const struct program *program);
    /* It has exited; `error` NULL: it succeeded, and `report` has its output.
     * May free the program. */
    void (*ended)(struct engine *engine,
                  struct program *program,
                  const struct work_id *id,
                  const struct work_report *report,
                  const char *error);
};

/* A program of the plan other than a session, called repeatedly. */
struct program {
    const struct program_ops *ops;
    uint32_t run;  /* index */
    uint32_t part; /* of the run, if it has several */
    uint64_t id;   /* of the current call, for the worker; 0: none */
    bool due;      /* assign it when the batch is written */
    bool stopped;  /* it was told to stop */
    bool ours;     /* it ran during this process */
    bool stored;   /* an earlier process may have assigned it */
    char nonce[ATTEMPT_NONCE_BYTES]; /* of the current call */
};

/* The sync hook of a run, while it runs. */
struct engine_sync {
    struct program *program; /* NULL: no barrier yet */
    uint32_t number; /* names its directory, also in the store; 0: none */
    uint32_t next;   /* of the hook that became due meanwhile; 0: none */
};

/* The last reading of a usage monitor, and the resulting cap. */
struct engine_usage {
    struct program *program;
    const char *words[3]; /* sluice-agent's arguments to print meters */
    uint32_t readings;    /* of this process */
    uint32_t kept;        /* failed reading, whose directory is kept */
    struct meter *meters;
    uint32_t meter_count;
    uint32_t governs; /* the meter closest to its limit */
    int64_t read_ns;  /* wall clock, of the last valid reading; 0: none */
    bool known;       /* it has a valid reading: else nothing starts */
    int64_t cap;      /* LIMIT_NONE: it lowers nothing; 0: a pause */
    int64_t until_ns; /* wall clock: end of the pause; 0: not known */
    int64_t next_ns;  /* of the next reading, unless until_ns is set */
    uint32_t probes;  /* readings since a pause of unknown end began */
    char *error;      /* why the last reading failed; NULL: it did not */
};

/* A budget of one task that an operator has set. */
struct engine_raise {
    uint32_t task;
    struct plan_cost budget;
};

/* A limit of the store: maxima or PLAN_UNLIMITED. */
struct engine_ceiling {
    char *name;     /* "sessions", or that of a provider */
    bool ordered;   /* an operator has set `order`, which counts */
    bool from_file; /* settings.yaml has set `file` */
    int64_t order;
    int64_t file;
};

/* A worker, as a copy of a struct engine_worker. */
struct engine_post {
    char *labels;
    uint32_t slots;
};

/* A base that cannot be merged into the agent branch. */
struct engine_base {
    char *repo;
    char *commit;
    char *reason; /* or NULL */
};

/* The state of a provider as last stored and logged. */
struct engine_provider {
    struct sched_provider_record stored;
    bool paused;  /* logged that it has named a time */
    char *reason; /* why it is stopped; NULL: it is in use */
};

/* One addition to the plan, with the task whose session added it, if any; or a
 * new version of the plan. */
struct engine_fragment {
    uint32_t first_task;
    uint32_t adder; /* task, or PLAN_NONE */
    bool update;    /* a version: the run has its text */
    char *file;
    char *key;  /* the sender's name for it, or NULL */
    char *text; /* NULL for an update */
    size_t text_bytes;
};

/* The sessions of one level: see plan_level_name(). */
struct engine_history {
    char *name;
    struct learned learned;
    bool changed; /* since it was stored */
};

/* A verdict of a gate that merges may rely on. */
enum { ENGINE_GATES_MAX = 1000 };
struct engine_gate {
    uint64_t token; /* of the attempt that ran it */
    enum attempt_gate_verdict verdict;
    char *repo; /* absolute path */
    char *tree;
    char *command;
    char *tested_by;
    char *output; /* of a failure, or NULL */
};

/* Failures of a repository up to this attempt do not count. */
struct engine_forgot {
    char *repo;
    uint64_t token;
};

/* How fast the sessions of a run end. */
struct engine_pace {
    int64_t ended_ns;    /* when one ended last; 0: none has */
    int64_t interval_ns; /* average time between two */
    bool ahead;          /* the run may claim ahead */
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
    uint32_t rules; /* PLAN_RULES when it was submitted */
    int64_t created_ns;
    int64_t not_before_ns; /* wall clock: it starts nothing before; 0: none */
    char *worker;          /* whose machine has its files; "": any */
    bool base_gates;       /* false: submitted to an earlier version */
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
    struct engine_usage *usages; /* one per usage monitor of the plan */
    struct engine_raise *raises;
    uint32_t raise_count;
    struct engine_limit *windows; /* of merge queues, where they are smaller */
    uint32_t window_count;
    struct engine_base *bases;
    uint32_t base_count;
    struct engine_pace pace;
    bool spent; /* money, since its limits were last derived */
    bool broke; /* logged that it only waits for a budget */
    bool finished;
};

/* An answer that waits for its batch. */
struct engine_answer {
    uint64_t request;
    char *json;
};

/* The answer to a request, in case it is sent again: whoever sent it may have
 * lost patience before the answer came. */
enum { ENGINE_RECENT = 64 };
struct engine_recent {
    char *key;
    char *answer;
};

/* A program call whose directory is not needed any more. */
struct engine_drop {
    char *run;
    const char *task;
    char *name;
};

/* Actions to take when a batch is written. */
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
    uint64_t *ends; /* tokens */
    uint32_t end_count;
    uint32_t end_capacity;
    uint64_t *tells; /* tokens: sessions with a new message */
    uint32_t tell_count;
    uint32_t tell_capacity;
};

struct notification;

struct engine {
    const struct engine_world *world;
    void *ctx;
    struct work_mark mark; /* of the work being assigned */
    uint64_t epoch;
    struct key_secret secret; /* of the keys of sessions */
    bool secret_known;
    int64_t refused_ns;     /* since when these requests of sessions ... */
    uint32_t refused_count; /* ... were refused, and logged */
    struct engine_recent *recent; /* the last answers, by number modulo */
    uint64_t recent_count;
    struct rng nonces;
    int64_t now_ns;
    int64_t offset_ns;       /* from the world's clock to the engine's */
    int64_t wall_ns;         /* of a reader */
    int64_t clock_offset_ns; /* from the engine's clock to the wall clock, as
                                the times of plans were loaded */
    struct store_info info;
    struct engine *spare; /* see struct engine_options; NULL: none */
    struct plan *offered; /* see struct engine_options; NULL: none */
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
    bool override; /* usage monitors lower nothing */
    struct engine_ceiling *ceilings;
    uint32_t ceiling_count;
    struct engine_post *workers; /* see engine_workers() */
    uint32_t worker_count;
    bool has_workers; /* only they run sessions */
    struct engine_history *history;
    uint32_t history_count;
    uint32_t history_capacity;
    struct strmap history_names;
    bool history_changed;      /* some of it, since it was stored */
    struct engine_gate *gates; /* by token */
    uint32_t gate_count;
    uint32_t gate_capacity;
    struct engine_forgot *forgot;
    uint32_t forgot_count;
    struct notification *notifications; /* by number of their events */
    uint32_t notification_count;
    uint32_t notification_capacity;
    uint64_t event_number; /* of the last event, written or not */

    struct store_attempt *strays; /* in flight, but their tasks are not */
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
    bool changed;     /* events came since the last pass */
    bool thinking;    /* the lookahead search is incomplete */
    int64_t burst_ns; /* time of a pass for exits that share a batch */
    bool ahead_over;  /* what is held must be given back */
    bool draining;
    bool stopping;
    enum err failed;
    char failed_text[256];
    char trouble[128];
    struct engine_update *update; /* to apply while loading, or NULL */
};

/* engine.c: the clock, which never goes back; apply an event to the core. */
int64_t engine_now(struct engine *engine);
enum err engine_apply(struct engine *engine, struct sched_event event);
void engine_fail(struct engine *engine, enum err err, const char *text);
/* Write soon, and not at once: more changes are expected. */
void engine_wait_for_more(struct engine *engine);
/* Have the worker forget a program's call when this batch is written. */
void engine_drop_later(struct engine *engine, const struct work_id *id);

/* ahead.c: a session of the run has ended, and is done; what is held is to be
 * given back, and the run shows anew whether its sessions are short. */
void ahead_note_end(struct engine *engine, uint32_t run);
void ahead_over(struct engine *engine);

/* Decide which runs may claim ahead. */
void ahead_set_limits(struct engine *engine);

/* Return the slot of another session for a new one; 0: there are free slots. */
uint32_t ahead_slot(const struct engine *engine, uint32_t run);

/* Start a session whose claim is written, as soon as it has its slot. */
void ahead_start(struct engine *engine, struct session *session);

/* Start the held sessions whose slots are free, or give them back; return when
 * that is due at the latest. */
void ahead_pass(struct engine *engine);
int64_t ahead_next_ns(const struct engine *engine);

/* Whether enough sessions are held for a write to wait. */
bool ahead_is_enough(const struct engine *engine);

/* rows.c: writing rows. */
void rows_add_run(struct engine *engine, const struct engine_run *run);
void rows_set_run(struct engine *engine, uint32_t run);
void rows_set_task(struct engine *engine, uint32_t run, uint32_t task);
void rows_claim(struct engine *engine, const struct session *session);
void rows_set_session(struct engine *engine, const struct session *session);
void rows_providers(struct engine *engine);
/* The provider is stopped, for this reason; NULL: it is back in use. */
void rows_stop_reason(struct engine *engine,
                      struct provider_id provider,
                      const char *reason);
/* Set, or with NULL remove, a setting. */
void rows_setting(struct engine *engine, const char *name, const char *value);
/* The same for a setting named KIND/NUMBER, or KIND/NUMBER/PART. */
enum { ROWS_NO_PART = -1 };
void rows_numbered(struct engine *engine,
                   const char *kind,
                   uint32_t number,
                   int64_t part,
                   const char *value);
/* Append an event, and notify its hook. */
void rows_event(struct engine *engine,
                uint32_t run,
                uint32_t task,
                const struct event *event);
/* The same for an event about all unfinished runs that use the provider. */
void rows_provider_event(struct engine *engine,
                         struct provider_id provider,
                         const struct event *event);

/* bases.c: note what a merge reports about the base; restore a setting. */
void bases_note(struct engine *engine,
                uint32_t run,
                uint32_t task,
                const struct attempt_result *result);
void bases_restore(struct engine_run *run, const char *value);
void bases_release(struct engine_run *run);

/* The outcome of a session, for its row. */
struct rows_end {
    const struct session *session;
    enum sched_outcome outcome;
    const struct attempt_found *found;
    const struct attempt_result *result;
    const char *reason;                 /* or NULL */
    int64_t retry_at_ns;                /* of a snooze, wall clock; 0: none */
    const enum sched_outcome *outcomes; /* one for each task */
};
void rows_end_session(struct engine *engine, const struct rows_end *end);

/* session.c: sessions, from claim to outcome. */
void session_new(struct engine *engine, const struct sched_effect *effect);
struct session *session_add(struct engine *engine);
struct session *session_find(struct engine *engine, uint64_t token);
/* Count its tasks: its own and the tasks that the core batched with it. */
void session_count_tasks(const struct engine *engine, struct session *session);
/* Check the invariants of a listed session and of its task in the core. */
void session_check(const struct engine *engine, const struct session *session);
/* Ask the worker for its state. */
void session_ask(struct engine *engine, struct session *session);
/* Append its order to the batch that is about to be written, if that can be. */
void session_offer(struct engine *engine,
                   struct session *session,
                   struct strbuf *out);
/* The batch is written: hand it to the worker, unless the batch did. */
void session_assign(struct engine *engine, struct session *session);
/* Send `want` to the worker. */
void session_want(struct engine *engine, struct session *session);
/* Store that it is running. */
void session_tell(struct engine *engine, struct session *session);

/*
 * messages.c: messages of operators to running sessions. messages_tell() stores
 * one, which is delivered when the batch is written. ERR_CONFLICT: the task is
 * not running; ERR_INVALID, ERR_LIMIT: the text is no message.
 */
enum err messages_tell(struct engine *engine,
                       uint32_t run,
                       uint32_t task,
                       const char *text,
                       struct diag *diag);
/* Append the messages for a session, as its file; return how many of them came
 * after its start. */
uint32_t messages_add(struct strbuf *out,
                      const struct engine *engine,
                      const struct session *session);
/* Deliver the durable messages of a running session, if there are any. */
void messages_deliver(struct engine *engine, const struct session *session);
/* Deliver those of the written batch. */
void messages_written(struct engine *engine);

/* assign.c: orders for the worker. */
enum { ASSIGN_NAME_BYTES = 16 };
struct work_id assign_id(const struct engine *engine,
                         const struct session *session,
                         char name[ASSIGN_NAME_BYTES]);
/* Offer it, if `offer_out` is not NULL: see struct engine_world. ERR_INVALID:
 * no order can ever be created for it. */
enum err assign_session(struct engine *engine,
                        const struct session *session,
                        struct strbuf *offer_out,
                        struct diag *diag);
void assign_program(struct engine *engine,
                    const struct program *program,
                    const struct work_id *id);
bool assign_is_git(const struct engine *engine, const struct session *session);

/* assign_agent.c: append the brief for sluice-agent; `outputs` is a JSON object
 * or "". */
enum err assign_add_brief(const struct engine *engine,
                          const struct session *session,
                          const char *outputs,
                          struct strbuf *out,
                          struct diag *diag);

/*
 * assign_results.c: results of the tasks that a session needs, as variables,
 * and as a JSON object by task and name; empty: none. Starts as {0}.
 */
struct assign_outputs {
    struct arena arena;
    const char **env; /* "NAME=value" */
    uint32_t env_count;
    uint32_t env_capacity;
    struct strbuf json;
};
void assign_outputs(struct assign_outputs *out,
                    const struct engine *engine,
                    const struct session *session);
void assign_outputs_release(struct assign_outputs *outputs);
/* Of a session that comes last: append the tasks of its scope that have given
 * up, one per line, and return the scope's outcome. */
const char *assign_add_failed(struct strbuf *failed,
                              const struct engine *engine,
                              const struct session *session);
/* Append a name in upper case, with '_' for all but letters and digits. */
void assign_add_upper(struct strbuf *out, const char *name);

/* gates.c: verdicts of gates. Store those that a merge reports; append those
 * that it may rely on, newest first, as the file for sluice-git. */
void gates_end(struct engine *engine,
               const struct session *session,
               const struct attempt_result *result);
void gates_add(struct strbuf *out,
               const struct engine *engine,
               const struct session *session);
/* An operator retries the task: if it merges, forget the repository's failures.
 */
void gates_forget(struct engine *engine, uint32_t run, uint32_t task);
/* The same for all repositories of a run. */
void gates_forget_run(struct engine *engine, uint32_t run);
void gates_restore(struct engine *engine, const struct store_gate *row);
void gates_restore_forgot(struct engine *engine,
                          const char *setting,
                          const char *value);
void gates_release(struct engine *engine);

/* runs.c: add a run, or tasks to a run. */
struct engine_run *runs_add(struct engine *engine);
/* What is known of a task's attempts: to read; to change. Never NULL. */
const struct engine_past *runs_past(const struct engine_task *task);
struct engine_past *runs_own_past(struct engine_task *task);
enum err runs_read_plan(struct engine_run *run, struct diag *diag);
/* Take the offered plan if it is that of the run; else false. */
bool runs_take_offered(struct engine *engine, struct engine_run *run);
/* Add the file, text and key of a fragment. */
enum err runs_add_fragment(struct engine_run *run,
                           const struct store_fragment *fragment,
                           struct diag *diag);
/* The same of a live run; its key must be new. */
enum err runs_hot_load(struct engine *engine,
                       uint32_t run,
                       const struct store_fragment *fragment,
                       struct diag *diag);
/* Reject tasks of a plan, from `first` on, as engine_check() does; `file` is in
 * the message. */
enum err runs_check(const struct plan *plan,
                    uint32_t first,
                    const char *file,
                    struct diag *diag);
/* Find out whether a run has a fragment of this key, `shown` in messages.
 * ERR_CONFLICT: it has one with another text. */
enum err runs_find_key(const struct engine_run *run,
                       const char *shown,
                       const char *key,
                       const char *text,
                       bool *out,
                       struct diag *diag);
/* Read a new version of a run's plan into *out. */
enum err runs_read_version(const struct engine_run *run,
                           const struct plan_source *source,
                           struct plan **out,
                           struct diag *diag);
/* Use it as the run's plan, and return the previous plan, which the caller
 * frees. `file` is that of the stored fragment. */
struct plan *runs_take_version(struct engine *engine,
                               uint32_t run,
                               struct plan *plan,
                               const char *file,
                               const char *text,
                               size_t len);
/* The same with the fragment of a session of the task; `key` may be NULL. */
enum err runs_add_by_session(struct engine *engine,
                             uint32_t run,
                             uint32_t task,
                             const char *text,
                             const char *key,
                             struct diag *diag);
void runs_tell(struct engine *engine, uint32_t run, enum event_word to);
void runs_tell_stop(struct engine *engine, uint32_t run);
/* How to load the plan of a run, without records. */
struct load_options runs_load_options(const struct engine *engine,
                                      const struct engine_run *run);
void runs_grow_tasks(struct engine_run *run);
void runs_release(struct engine_run *run);

/* A submitted plan. */
struct runs_submission {
    const char *file;
    const char *folder;
    const char *text;
    uint32_t processors;
    bool anew;             /* create a run even if the plan has one */
    int64_t not_before_ns; /* wall clock: it starts nothing before; 0: none */
    const char *worker;    /* whose machine has its files; "": any */
};
/* Create a run, or find the run that it continues, which may have finished:
 * *out is its index. */
enum err runs_submit(struct engine *engine,
                     const struct runs_submission *submission,
                     uint32_t *out,
                     bool *continued_out,
                     struct diag *diag);

/*
 * update.c: a new version of a plan under way, applied while its store is
 * loaded. It is found and read when all fragments are known; checked when all
 * tasks are; and written with the first batch.
 */
struct updating {
    uint32_t run;     /* index; STORE_NONE: no run is updated */
    struct plan *old; /* the previous version */
    bool changed;
};
enum err
update_begin(struct engine *engine, struct updating *out, struct diag *diag);
/* `records` has one entry per task, new tasks included. */
enum err update_judge(struct engine *engine,
                      struct updating *updating,
                      struct sched_record *records,
                      struct diag *diag);
/* The tasks are restored: skip tasks that are no longer reachable. */
void update_restored(struct engine *engine, const struct updating *updating);
void update_write(struct engine *engine, const struct updating *updating);
/* Whether a plan is equivalent to the run's. */
bool update_is_same(const struct engine_run *run,
                    const struct engine_run *made);

/* program.c: programs of a plan other than sessions. The worker treats them as
 * sessions: their ids are unique among sessions and calls. */
struct program *program_new(struct engine *engine,
                            const struct program_ops *ops,
                            uint32_t run,
                            uint32_t part);
void program_free(struct engine *engine, struct program *program);
/* Run it when this batch is written; it must not be running. */
void program_call(struct engine *engine, struct program *program);
void program_stop(struct engine *engine, struct program *program);
bool program_is_due(const struct engine *engine);
void program_start_due(struct engine *engine);
bool program_is_id(uint64_t id);
void program_reported(struct engine *engine, const struct work_report *report);

/* usage.c: monitors. */
void usage_init(struct engine *engine, uint32_t run);
void usage_release(struct engine_run *run);
void usage_restore(struct engine_run *run, uint32_t part, const char *value);
int64_t usage_next_ns(const struct engine *engine);
/* The current cap: a run waits for the first reading. */
int64_t usage_cap(const struct engine_usage *usage);
void usage_pass(struct engine *engine);

/* notify.c: notifications of events. */
void notify_add(struct engine *engine,
                uint32_t run,
                const char *hook,
                const struct store_event *event);
void notify_restore(struct engine *engine, const char *value);
void notify_release(struct engine *engine);
int64_t notify_next_ns(const struct engine *engine);
void notify_pass(struct engine *engine);

/* caps.c: limits changed at run time. */
int64_t
caps_configured(const struct engine *engine, uint32_t run, uint32_t limit);
int64_t caps_spent(const struct engine *engine, uint32_t run, uint32_t limit);
/* Return the percentage of `sessions` that a limit is; 0: it is a number. */
uint32_t
caps_percent(const struct engine *engine, uint32_t run, uint32_t limit);
/* A maximum that an operator sets: a number, LIMIT_NONE, or a percentage if
 * that is not 0. */
struct caps_max {
    int64_t max;
    uint32_t percent;
};
void caps_set(struct engine *engine,
              uint32_t run,
              uint32_t limit,
              struct caps_max max);
/* Pass the effective limits to the core. */
void caps_apply(struct engine *engine, uint32_t run);
/* Add the cost of a session of the task. */
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
/* Return what a session of the task may spend under all its budgets, PLAN_USD
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
/* A merge has ended: adapt the window of its queue. */
void caps_merged(struct engine *engine,
                 const struct session *session,
                 enum sched_outcome outcome);
void caps_restore_window(struct engine_run *run,
                         uint32_t limit,
                         const char *value);

/* ceilings.c: limits of the store. Pass them to the core, for a run. */
void ceilings_apply(struct engine *engine, uint32_t run);
/* An operator sets a limit to a number or PLAN_UNLIMITED, or leaves it to the
 * settings. */
void ceilings_set(struct engine *engine, const char *name, int64_t max);
void ceilings_unset(struct engine *engine, const char *name);
/* Return the limit of that name, or NULL if nothing sets it; the maximum that
 * counts, or LIMIT_NONE. */
const struct engine_ceiling *ceilings_find(const struct engine *engine,
                                           const char *name);
int64_t ceilings_max(const struct engine_ceiling *ceiling);
/* Restore a limit from a setting; false: it is another setting. */
bool ceilings_restore(struct engine *engine,
                      const char *setting,
                      const char *value);
void ceilings_release(struct engine *engine);

/* history.c: sessions, for the estimates of later runs. */
struct history_end {
    const struct session *session;
    const struct store_attempt *row;
    const struct attempt_result *result;
    enum sched_outcome outcome;         /* of the session */
    const enum sched_outcome *outcomes; /* one for each task */
};
/* Add a session that has exited or is lost, before the core knows. */
void history_note(struct engine *engine, const struct history_end *end);
void history_pass(struct engine *engine);
void history_restore(struct engine *engine,
                     const char *setting,
                     const char *value);
void history_release(struct engine *engine);
/* Fix a new run's estimates. */
void history_expect(struct engine *engine, struct engine_run *run);

/* sync.c: the hook of a barrier. */
void sync_restore(struct engine_run *run, uint32_t barrier);
void sync_due(struct engine *engine, uint32_t run);

/* request.c: apply a request. */
struct request_call {
    uint64_t id;     /* for its answer; 0: of this process */
    uint64_t number; /* of its row in the store; 0: it has none yet */
    const char *who; /* sent it */
    bool door;       /* only sessions may ask there */
};
void request_apply(struct engine *engine,
                   const struct request_call *call,
                   const char *json);
void request_release_recent(struct engine *engine);

/* Whether no event in the run will come by itself. */
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
