/* SPDX-License-Identifier: MIT */
/* What the files of the world share. */
#ifndef SIM_WORLD_INTERNAL_H
#define SIM_WORLD_INTERNAL_H

#include "base/arena.h"
#include "base/rng.h"
#include "base/strmap.h"
#include "engine/engine.h"
#include "sim/store/memory.h"
#include "sim/world.h"
#include "work/worker.h"

#define WORLD_NONE UINT32_MAX
#define WORLD_MS INT64_C(1000000)
#define WORLD_SECOND (1000 * WORLD_MS)

enum {
    WORLD_PLANS_MAX = 3,
    WORLD_LIMITS_MAX = 16,
};

/* Something that will happen. */
enum world_event_type {
    WORLD_PASS,     /* process: it wakes up */
    WORLD_APPLY,    /* process: its batch reaches the disk */
    WORLD_WRITTEN,  /* process: it is told so */
    WORLD_REPORT,   /* server: a report of it reaches its worker */
    WORLD_GONE,     /* worker: a shim that it watches has ended */
    WORLD_RESPAWN,  /* worker: it has a new spawn server */
    WORLD_LOOK,     /* worker: it wakes up */
    WORLD_MESSAGE,  /* message: it reaches a worker or a scheduler */
    WORLD_LINKED,   /* worker and scheduler can reach each other again */
    WORLD_EXIT,     /* process: it ends by itself */
    WORLD_REQUEST,  /* server: a request reaches it */
    WORLD_STEP,     /* shim: its next step */
    WORLD_SIGNAL,   /* shim: it is told to end */
    WORLD_BOOT,     /* a scheduler is started, if there is none */
    WORLD_SUBMIT,   /* plan: it is handed in, if it is not there */
    WORLD_OPERATOR, /* the operator does something */
    WORLD_FAULT,    /* something breaks */
    WORLD_ACT,      /* act of the script */
};

struct world_event {
    int64_t at_ns;
    uint64_t seq; /* order of having been planned; breaks ties */
    enum world_event_type type;
    uint32_t who;
    uint64_t value; /* token, request, or how to end */
    struct exec_report report;
};

/* How a session ends, when nobody ends it. */
enum world_ending {
    WORLD_END_DONE,
    WORLD_END_FAILED,
    WORLD_END_CHANGES,
    WORLD_END_BLOCKED,
    WORLD_END_REFUSED,
    WORLD_END_REFUSED_UNTIL,
    WORLD_END_SIGNAL,
    WORLD_END_HANGS,
    WORLD_END_IDLE,
    WORLD_END_CHECKPOINT,
    WORLD_END_INVALID,
    WORLD_END_EMPTY,
    WORLD_END_SPAWN_AGAIN,
    WORLD_END_SPAWN_NEVER,
    WORLD_END_PREPARE,
};

/* What a program that is no session is for. */
enum world_program { WORLD_SYNC_HOOK, WORLD_METERS, WORLD_HOOK };

/* A request as the server got it. */
struct world_request {
    uint64_t id;
    char nonce[ATTEMPT_NONCE_BYTES];
    uint32_t dir;
    uint32_t server;
    char *run;
    char *task; /* NULL: a program */
    enum world_program program;
    uint32_t number;
    int64_t timeout_ns;
    int64_t idle_ns;
    int64_t checkpoint_ns;
    bool prepare;
};

/* The directory of an attempt, as in exec/attempt.c. */
struct world_dir {
    const char *path;
    uint32_t holder; /* shim that has its lock, or WORLD_NONE */
    bool started;
    int64_t started_pid; /* 0: a fence */
    uint64_t started_ticks;
    char nonce[ATTEMPT_NONCE_BYTES];
    bool has_exit;
    struct attempt_exit exit;
    char *result; /* texts, or NULL */
    char *batch;
    char *fragment;     /* or meters: what a program has printed */
    char *event;        /* that a hook shall be told of */
    int64_t touched_ns; /* last change, which a power cut may undo */
    uint32_t executions;
    uint32_t session; /* what ran there, or WORLD_NONE */
};

enum world_shim_phase {
    SHIM_FORKED,
    SHIM_LOCKED,
    SHIM_RUNNING,
    SHIM_ENDING, /* the session has ended, the record is not yet there */
    SHIM_GONE,
};

struct world_shim {
    int64_t pid;
    uint64_t start_ticks;
    uint32_t request;
    uint32_t server;
    enum world_shim_phase phase;
    bool told; /* to end, before it could */
    enum exec_end how;
    uint64_t step; /* seq of the event of its next step */
    uint32_t session;
    struct attempt_exit exit;
};

/* What really ran: the witness. */
struct world_session {
    uint64_t token;
    uint32_t dir;
    uint32_t run; /* index, WORLD_NONE: a hook */
    uint32_t number;
    uint32_t *tasks; /* of the plan */
    uint32_t task_count;
    bool live;  /* its processes are there */
    bool stray; /* ... without their shim */
    enum world_ending ending;
    const char *outcome;  /* as it should be recorded; NULL: not known yet */
    const char *reported; /* ... or so, if that was reported before a power cut
                             took the record; NULL: no */
};

struct world_server {
    uint32_t worker;
    bool alive;         /* it answers */
    bool orphan;        /* its client is gone; it does what it was asked */
    int64_t request_ns; /* of the last request on its way, and report */
    int64_t report_ns;
};

/* A shim that a worker watches. */
struct world_watch {
    uint32_t shim;
    uint64_t token;
};

/* Arrays that grow: elements, how many there are, and room for how many. */
#define WORLD_LIST(type, name)                                                 \
    type *name##s;                                                             \
    uint32_t name##_count;                                                     \
    uint32_t name##_capacity

/* A scheduler. It is the ctx of its engine. */
struct world_process {
    struct world *world;
    uint32_t ix;
    struct engine *engine;
    struct store *store;
    uint64_t epoch;
    uint32_t worker;
    bool remote;   /* the worker is another process ... */
    uint32_t link; /* ... at the end of this connection */
    bool alive;
    bool died; /* within the present call: no call has an effect any more */
    bool superseded;
    bool broken;  /* its disk has failed */
    bool durable; /* ... after it had taken the batch */
    bool failed;  /* and knows why it cannot go on */
    bool leaving;
    bool visitor;    /* it has come for one request, and starts nothing */
    bool publishing; /* in engine_written() of a batch that is durable */
    const struct store_batch *batch;
    bool applied; /* `batch` was tried */
    enum err apply_err;
    struct diag apply_diag;
    int64_t wake_ns; /* of its next WORLD_PASS */
    int64_t stalled_ns;
    uint32_t commits;
    uint64_t event_number; /* of the last event that it has told */
};

/* A worker. It is the ctx of its machine. */
struct world_worker {
    struct world *world;
    uint32_t ix;
    struct worker *worker;
    struct world_process *process; /* that it is part of; NULL: of its own */
    uint32_t server;
    bool alive;
    bool died;       /* within the present call */
    int64_t wake_ns; /* of its next WORLD_LOOK */
    WORLD_LIST(struct world_watch, watched_shim);
};

/* Something on its way between a scheduler and a worker. */
struct world_message;

/* A task, by what was made durable and by what the machine saw. */
struct world_task {
    char state[16];
    uint32_t flags;
    uint32_t number;
    uint32_t done_count;    /* sessions that did it */
    uint64_t done_seq;      /* when it was recorded as done */
    uint64_t sent_back_seq; /* when it last asked for rework */
    uint32_t live;
    uint64_t live_token;
    int64_t ending_ns; /* since when its session is to be ended; 0: not */
};

struct world_run {
    uint32_t number;
    uint32_t plan_ix; /* of the world's plans */
    char *id;
    struct plan *plan;
    struct world_task *tasks;
    uint32_t task_count;
    bool finished;
    bool cancelled;
    int64_t usage_cap;                /* by its monitor; LIMIT_NONE: none */
    int64_t limits[WORLD_LIMITS_MAX]; /* present maxima; percentages: none */
};

/* A claim that is durable. */
struct world_claim {
    uint32_t run;
    uint32_t task;
    uint32_t number;
    bool ended;
    uint32_t session;                 /* or WORLD_NONE */
    int64_t limits[WORLD_LIMITS_MAX]; /* as they were then */
};

/* A notification that is stored: a hook must be told before it goes. */
struct world_notification {
    uint32_t run; /* number */
    uint64_t event;
    bool told;
    bool given_up;
    bool settled; /* and removed */
};

struct world_plan {
    char *text;
    uint32_t run; /* or WORLD_NONE */
};

struct world {
    struct world_options options;
    struct world_report *report;
    struct rng rng;
    int64_t now_ns;  /* time awake, which orders the events */
    int64_t boot_ns; /* from that to the clock of this boot */
    int64_t wall_ns; /* from that to the wall clock */
    uint64_t seq;
    int64_t calm_ns; /* when the faults stopped */
    bool chaos;      /* faults happen */
    int64_t full_ns; /* the disk is full until then */
    uint32_t boots;
    char boot_id[37];
    int64_t next_pid;
    uint32_t current; /* process that holds the store, or WORLD_NONE */
    uint32_t streak;  /* schedulers that died without a commit */
    uint64_t last_request;
    uint64_t event_number; /* of the last event that is durable */
    bool break_next;       /* the next write finds a failed disk */
    bool override;         /* of usage, as stored */
    struct store_memory_db *db;
    struct world_plan plans[WORLD_PLANS_MAX];
    uint32_t plan_count;
    struct arena arena; /* paths of directories */
    struct strmap dir_map;
    WORLD_LIST(struct world_event, event); /* a heap */
    struct world_process **processes;
    uint32_t process_count;
    uint32_t process_capacity;
    struct world_worker **workers;
    uint32_t worker_count;
    uint32_t worker_capacity;
    uint32_t remote; /* worker that is a process of its own, or WORLD_NONE */
    uint32_t link;   /* counts connections of a scheduler and a worker */
    uint32_t link_process; /* scheduler at its end */
    bool linked;           /* they can reach each other */
    int64_t orders_ns;     /* arrival of the last message, each way */
    int64_t reports_ns;
    WORLD_LIST(struct world_message *, message);
    WORLD_LIST(struct world_server, server);
    WORLD_LIST(struct world_request, request);
    WORLD_LIST(struct world_shim, shim);
    WORLD_LIST(struct world_dir, dir);
    WORLD_LIST(struct world_session, session);
    WORLD_LIST(struct world_run, run);
    WORLD_LIST(struct world_claim, claim); /* by token - 1 */
    WORLD_LIST(struct world_notification, notification);
};

/* world.c: note the first thing that is wrong, which ends the world. */
void world_fault(struct world *world, const char *format, ...)
    PRINTF_LIKE(2, 3);
/* Tell whoever listens what happens. */
void world_say(const struct world *world, const char *format, ...)
    PRINTF_LIKE(2, 3);
bool world_has(const struct world *world, enum world_feature feature);
/* One in `odds`, as long as there are faults of this kind. */
bool world_strikes(struct world *world,
                   enum world_feature feature,
                   uint32_t odds);
/* Mostly short times up to about `scale_ns`, now and then much longer ones. */
int64_t world_delay(struct world *world, int64_t scale_ns);
/* Have something happen; the result may be changed until the next call. */
struct world_event *world_plan_event(struct world *world,
                                     enum world_event_type type,
                                     int64_t at_ns,
                                     uint32_t who,
                                     uint64_t value);

/* world_process.c: start a scheduler, unless there is one; with a request a
 * process that is it for that request only. */
void world_process_boot(struct world *world, const char *request);
/* Calls into the engine of a process. It may be gone after each of them. */
void world_process_pass(struct world_process *process);
void world_process_apply(struct world_process *process);
void world_process_written(struct world_process *process);
void world_process_report(struct world_process *process,
                          const struct work_report *report);
void world_process_linked(struct world_process *process);
void world_process_request(struct world_process *process,
                           uint64_t request,
                           const char *json);
void world_process_stop(struct world_process *process);
/* After a call into the worker of the process. */
void world_process_after(struct world_process *process);
/* Whether it is dead, perhaps only now. */
bool world_process_dies(struct world_process *process);
/* It dies between two calls. */
void world_process_bury(struct world_process *process);

/* world_worker.c: a worker begins, in a process or as one of its own. */
uint32_t world_worker_begin(struct world *world, struct world_process *process);
struct work_mark world_worker_mark(const struct world *world, uint32_t ix);
/* It dies between two calls. */
void world_worker_end(struct world_worker *worker);
void world_worker_free(struct world_worker *worker);
/* Until it wants to look again; SCHED_NEVER. */
int64_t world_worker_wait_ns(const struct world_worker *worker);
/* After each call into a worker. */
void world_worker_after(struct world_worker *worker);
/* Calls into a worker. It may be gone after each of them. */
void world_worker_look(struct world_worker *worker);
void world_worker_report(struct world_worker *worker,
                         const struct exec_report *report);
void world_worker_gone(struct world_worker *worker, uint32_t shim);
void world_worker_respawn(struct world_worker *worker);

/* world_link.c: what schedulers and a worker of its own send each other. */
void world_link_assign(struct world_process *process,
                       const struct work_order *order);
void world_link_want(struct world_process *process,
                     uint64_t token,
                     enum work_want want);
void world_link_ask(struct world_process *process,
                    const struct work_id *id,
                    const struct work_mark *mark,
                    bool begun,
                    enum work_want want);
void world_link_forget(struct world_process *process, const struct work_id *id);
void world_link_report(struct world_worker *worker,
                       const struct work_report *report);
/* A message arrives. */
void world_link_deliver(struct world *world, uint32_t message);
/* A scheduler connects; nothing that was on its way arrives any more. */
void world_link_up(struct world_process *process);
/* They cannot reach each other for a while; they can again. */
void world_link_cut(struct world *world, int64_t for_ns);
void world_link_again(struct world *world);
void world_link_release(struct world *world);

/* world_notify.c: what hooks are told, against what is stored. */
void world_notify_stored(struct world *world, const struct store_setting *row);
void world_notify_event(struct world *world, const struct store_event *row);
/* A hook has begun; it has been told. */
void world_notify_begun(struct world *world, const char *dir);
void world_notify_told(struct world *world, const char *dir);
/* Nothing may be left in the end. */
void world_notify_check_rest(struct world *world);

/* world_machine.c: a request is on its way; it is there. */
enum err world_machine_request(struct world *world,
                               uint32_t server,
                               const struct exec_request *request);
void world_machine_serve(struct world *world, uint32_t request);
/* A shim does its next step, is told to end, is killed. */
void world_machine_step(struct world *world, uint32_t shim);
void world_machine_signal(struct world *world,
                          uint32_t shim,
                          enum exec_end how);
void world_machine_kill(struct world *world, uint32_t shim);
/* Everything that runs is gone; the schedulers must be so already. */
void world_machine_reboot(struct world *world);
/* The directory is removed, unless a shim has it. */
void world_machine_drop(struct world *world, const char *path);
/* Index of the directory of that path, which is made if need be. */
uint32_t world_machine_dir(struct world *world, const char *path);
/* The directory itself; borrowed until another one is made. */
struct world_dir *world_machine_at(struct world *world, const char *path);
/* The live shim of that identity, or WORLD_NONE. */
uint32_t
world_machine_find(const struct world *world, int64_t pid, uint64_t ticks);
/* As attempt_inspect() and attempt_kill_strays(). */
void world_machine_inspect(const struct world *world,
                           const struct world_dir *dir,
                           const char *boot_id,
                           struct attempt_found *out);
void world_machine_kill_strays(struct world *world, uint32_t dir);

/* world_plan.c: texts; the caller frees them. */
char *world_plan_text(struct world *world, uint32_t ix);
char *world_plan_meters(struct world *world);
char *world_plan_fragment(struct world *world, const struct world_run *run);
/* How an attempt ends, and when, if nobody ends it. */
enum world_ending world_plan_ending(const struct world *world,
                                    const char *run,
                                    const char *task,
                                    uint32_t number,
                                    int64_t *duration_ns_out);
/* What a session that is done says about its n-th task, n > 0. */
const char *world_plan_rider(const struct world *world,
                             const struct world_session *session,
                             uint32_t n);

/* world_operator.c: hand in a plan, and again until it has come in. */
void world_operator_submit(struct world *world, uint32_t plan);
/* Some request. */
void world_operator_act(struct world *world);
/* The end of all chaos: let everything go on that was stopped. */
void world_operator_calm(struct world *world);
/* Give up on what needs a person; false: there is nothing like that. */
bool world_operator_give_up(struct world *world);

/* world_check.c: the store has taken the batch of this process. */
void world_check_applied(struct world *world, struct world_process *process);
/* A start is asked for; a session begins; it has ended by itself although
 * nobody may have told it to; nothing of it is left. */
void world_check_claimed(struct world *world,
                         const struct exec_request *request);
void world_check_run(struct world *world, struct world_session *session);
void world_check_untold(struct world *world,
                        const struct world_session *session);
void world_check_ended(struct world *world, struct world_session *session);
/* Nothing will happen any more by itself; nor by an operator. */
void world_check_rest(struct world *world);
void world_check_end(struct world *world);
/* Index of the run of that id, or WORLD_NONE. */
uint32_t world_check_find_run(const struct world *world, const char *id);
/* Give the books back. */
void world_check_release(struct world *world);

#endif /* SIM_WORLD_INTERNAL_H */
