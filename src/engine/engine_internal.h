/* SPDX-License-Identifier: MIT */
/*
 * What the files of the engine share, and nobody else may see.
 *
 * The life of a session:
 *
 *   CLAIMED   the core handed it out; its row is in a batch
 *   STARTING  the batch is written and the start was asked for
 *   RUNNING   its shim was reported, or found alive
 *
 * When its end is known it leaves the list at once: the outcome goes to the
 * core and its row into the batch. What is asked of the world (start, end,
 * answer) waits in lists until the batch that tells of it is written.
 */
#ifndef ENGINE_ENGINE_INTERNAL_H
#define ENGINE_ENGINE_INTERNAL_H

#include "engine/engine.h"

enum session_phase { SESSION_CLAIMED, SESSION_STARTING, SESSION_RUNNING };

struct session {
    uint64_t token;
    uint32_t run;  /* index */
    uint32_t task; /* first one, index in the plan */
    uint32_t number;
    uint32_t task_count;
    enum session_phase phase;
    bool foreign; /* its shim was not started through our server */
    bool end_due; /* to be ended, as soon as it can be */
    bool ended;   /* was told to end */
    enum exec_end how;
    int64_t pid;
    uint64_t start_ticks;
    int64_t recheck_ns; /* look at its directory again; SCHED_NEVER: no */
    int64_t tell_ns;    /* tell that it runs; SCHED_NEVER: not to be told */
    int64_t claimed_ns;
    int64_t begun_ns;
    uint64_t epoch;
    char boot_id[37];
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
};

/* A limit that an operator changed. */
struct engine_limit {
    uint32_t limit; /* in the plan */
    int64_t max;
    uint32_t percent;
};

/* The sync hook of a run, while it is under way. */
struct engine_sync {
    bool due; /* to be started when the batch is written */
    bool running;
    uint32_t count;  /* hooks of this process */
    uint32_t number; /* names its directory, also in the store; 0: none */
    uint32_t next;   /* of the one that was due once more; 0: none */
    int64_t pid;
    uint64_t start_ticks;
    bool stopped; /* it was told to end */
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
    uint32_t fragment_count;
    struct engine_task *tasks;
    uint32_t task_count;
    struct engine_limit *limits;
    uint32_t limit_count;
    struct sched_run_record stored;
    struct engine_sync sync;
    bool finished;
    bool quiet;
};

/* An answer that waits for its batch. */
struct engine_answer {
    uint64_t order;
    char *json;
};

/* What is to be done when a batch is written. */
struct engine_todo {
    uint64_t *starts; /* tokens */
    uint32_t start_count;
    uint32_t start_capacity;
    struct engine_answer *answers;
    uint32_t answer_count;
    uint32_t answer_capacity;
};

struct engine {
    const struct engine_world *world;
    void *ctx;
    char *store;
    char *git; /* path of sluice-git */
    char boot_id[37];
    uint64_t epoch;
    int64_t now_ns;
    int64_t offset_ns; /* from the world's clock to the engine's */
    int64_t wall_ns;   /* of a reader */
    struct store_info info;
    uint64_t version; /* of the last task row */

    struct sched *sched;
    struct load *load;
    struct engine_run *runs; /* by index of the run in the core */
    uint32_t run_count;
    char **finished_ids; /* of runs that are not loaded */
    uint32_t finished_count;
    struct sched_executor_record *executors; /* as stored */
    uint32_t executor_count;

    struct store_attempt *strays; /* in flight, but of no task in flight */
    uint32_t stray_count;
    struct session *sessions; /* in no particular order */
    uint32_t session_count;
    uint32_t session_capacity;

    struct store_batch batch; /* being filled */
    struct engine_todo todo;  /* for when it is written */
    struct store_batch written;
    struct engine_todo written_todo;
    bool writing;
    int64_t retry_ns; /* write again then; SCHED_NEVER: no */
    bool changed;     /* something happened since the last turn */
    int64_t burst_ns; /* take a turn then, for ends that share a batch */
    bool draining;
    bool stopping;
    enum err failed;
    char failed_text[256];
    char trouble[128];
};

/* engine.c: the clock, which never goes back here; an event for the core. */
int64_t engine_now(struct engine *engine);
enum err engine_apply(struct engine *engine, struct sched_event event);
void engine_fail(struct engine *engine, enum err err, const char *text);

/* rows.c: what is written. */
void rows_add_run(struct engine *engine, const struct engine_run *run);
void rows_set_run(struct engine *engine, uint32_t run);
void rows_set_task(struct engine *engine, uint32_t run, uint32_t task);
void rows_claim(struct engine *engine, const struct session *session);
void rows_set_session(struct engine *engine, const struct session *session);
void rows_executors(struct engine *engine);
void rows_event(struct engine *engine,
                uint32_t run,
                uint32_t task,
                const char *kind,
                const struct strbuf *data);
const char *rows_outcome_name(enum sched_outcome outcome);

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
void session_start(struct engine *engine, struct session *session);
void session_end(struct engine *engine,
                 struct session *session,
                 enum exec_end how);
void session_look(struct engine *engine, struct session *session);
void session_tell(struct engine *engine, struct session *session);
void session_adopt(struct engine *engine, struct session *session);

/* request_git.c: a session in a git repository is run by sluice-git. */
bool request_is_git(const struct engine *engine, const struct session *session);
void request_wrap(const struct engine *engine,
                  const struct session *session,
                  const char *dir,
                  const char *path,
                  struct arena *arena,
                  struct exec_request *request);

/* request.c: what a session is told. */
enum err request_start(struct engine *engine,
                       const struct session *session,
                       struct diag *diag);
enum err
request_start_sync(struct engine *engine, uint32_t run, struct diag *diag);
void request_add_dir(struct strbuf *out,
                     const struct engine *engine,
                     const struct session *session);
void request_add_sync_dir(struct strbuf *out,
                          const struct engine *engine,
                          uint32_t run);

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
void runs_tell(struct engine *engine, uint32_t run, const char *state);
void runs_grow_tasks(struct engine_run *run);
void runs_release(struct engine_run *run);

/* A plan that was handed in. */
struct runs_submission {
    const char *file;
    const char *folder;
    const char *text;
    uint32_t processors;
    bool anew; /* another run beside one of that name */
};
/* Make a run of it, or find the one that it continues: *out is its index. */
enum err runs_submit(struct engine *engine,
                     const struct runs_submission *submission,
                     uint32_t *out,
                     bool *continued_out,
                     struct diag *diag);

/* sync.c: the hook of a barrier. To the world it is a session, whose id no
 * token and no other hook of this process has. */
uint64_t sync_id(const struct engine *engine, uint32_t run);
void sync_restore(struct engine_run *run, uint32_t barrier);
void sync_due(struct engine *engine, uint32_t run);
void sync_stop(struct engine *engine, uint32_t run);
void sync_start(struct engine *engine, uint32_t run);
void sync_reported(struct engine *engine, const struct exec_report *report);
bool sync_is_id(uint64_t id);
/* The process that starts sessions has died; the shim of the hook has. */
void sync_respawn(struct engine *engine, uint32_t run);
void sync_gone(struct engine *engine, uint64_t id);

/* orders.c */
void orders_apply(struct engine *engine,
                  uint64_t order,
                  uint64_t number,
                  const char *who,
                  const char *json);

/* The core's number of a task of the plan, and back. */
static inline struct task_id
engine_core_task(const struct engine *engine, uint32_t run, uint32_t task)
{
    return load_task(engine->runs[run].loaded, task);
}

#endif /* ENGINE_ENGINE_INTERNAL_H */
