/* SPDX-License-Identifier: MIT */
/* Declarations shared by the world's files. */
#ifndef SIM_WORLD_INTERNAL_H
#define SIM_WORLD_INTERNAL_H

#include "base/arena.h"
#include "base/rng.h"
#include "base/strmap.h"
#include "engine/engine.h"
#include "sim/store/memory.h"
#include "sim/world.h"
#include "work/crew.h"
#include "work/roster.h"
#include "work/worker.h"

#define WORLD_NONE UINT32_MAX
#define WORLD_MS INT64_C(1000000)
#define WORLD_SECOND (1000 * WORLD_MS)

enum {
    WORLD_PLANS_MAX = 3,
    WORLD_LIMITS_MAX = 16,
    WORLD_HOSTS_MAX = 5,
    WORLD_LEASE_BYTES = 32,
};

/* Types of future events. */
enum world_event_type {
    WORLD_PASS,     /* process: it wakes up */
    WORLD_APPLY,    /* process: its batch reaches the disk */
    WORLD_WRITTEN,  /* process: it learns that */
    WORLD_REPORT,   /* server: its report reaches its worker */
    WORLD_GONE,     /* worker: a watched shim has exited */
    WORLD_RESPAWN,  /* worker: it gets a new spawn server */
    WORLD_LOOK,     /* worker: it wakes up */
    WORLD_HIRE,     /* host: its worker starts, unless it runs */
    WORLD_LEASE,    /* shim: it looks at its lease */
    WORLD_TURN,     /* scheduler or worker: it begins a turn */
    WORLD_COMMIT,   /* turn: it happens */
    WORLD_HEARD,    /* turn: its sender learns that, or gives up */
    WORLD_EXIT,     /* process: it exits by itself */
    WORLD_REQUEST,  /* server: a request reaches it */
    WORLD_STEP,     /* shim: its next step */
    WORLD_SIGNAL,   /* shim: it gets a stop signal */
    WORLD_BOOT,     /* a scheduler starts, unless one runs */
    WORLD_SUBMIT,   /* plan: it is submitted, unless it was */
    WORLD_OPERATOR, /* the operator sends a request */
    WORLD_FAULT,    /* something breaks */
    WORLD_ACT,      /* act of the script */
};

struct world_event {
    int64_t at_ns;
    uint64_t seq; /* creation order; breaks ties */
    enum world_event_type type;
    uint32_t who;
    uint64_t value; /* token, request, or kind of stop */
    struct exec_report report;
};

/* Ending of a session that is not stopped. */
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
    WORLD_END_LATER,
    WORLD_END_LATER_AT,
    WORLD_END_FATAL,
    WORLD_END_FINAL,
};

/* Purpose of a program that is not a session. */
enum world_program { WORLD_SYNC_HOOK, WORLD_METERS, WORLD_HOOK };

/* A request as received by the server. */
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
    char lease[WORLD_LEASE_BYTES]; /* file; "": it needs none */
};

/* An attempt directory, as in exec/attempt.c. */
struct world_dir {
    const char *path;
    uint32_t host;
    uint32_t holder; /* shim that holds its lock, or WORLD_NONE */
    bool started;
    int64_t started_pid; /* 0: a fence */
    uint64_t started_ticks;
    char nonce[ATTEMPT_NONCE_BYTES];
    bool has_exit;
    struct attempt_exit exit;
    char *result; /* strings, or NULL */
    char *batch;
    char *fragment;     /* or meters: output of a program */
    char *event;        /* event for a hook */
    int64_t touched_ns; /* last change, which a power failure may undo */
    uint32_t executions;
    uint32_t session; /* session that ran there, or WORLD_NONE */
};

enum world_shim_phase {
    SHIM_FORKED,
    SHIM_LOCKED,
    SHIM_RUNNING,
    SHIM_ENDING, /* the session has exited, without a record yet */
    SHIM_GONE,
};

struct world_shim {
    int64_t pid;
    uint64_t start_ticks;
    uint32_t request;
    uint32_t server;
    enum world_shim_phase phase;
    bool told; /* it was signalled to stop ... */
    enum exec_end how;
    bool unleased; /* ... or its lease had ended */
    uint64_t step; /* seq of the event of its next step */
    uint32_t session;
    struct attempt_exit exit;
};

/* A session that really ran, as evidence. */
struct world_session {
    uint64_t token;
    uint32_t dir;
    uint32_t run; /* index, WORLD_NONE: a hook */
    uint32_t number;
    uint32_t *tasks; /* of the plan */
    uint32_t task_count;
    bool live;  /* its processes are alive */
    bool stray; /* ... without their shim */
    enum world_ending ending;
    const char *outcome;  /* expected record; NULL: not known yet */
    const char *reported; /* ... or this, if it was reported before a power
                             failure took the record; NULL: no */
};

struct world_server {
    uint32_t worker;
    bool alive;         /* it answers */
    bool orphan;        /* its client is gone; it finishes its requests */
    int64_t request_ns; /* of the last request in transit, and report */
    int64_t report_ns;
};

/* A shim that a worker watches. */
struct world_watch {
    uint32_t shim;
    uint64_t token;
};

/* Growing arrays: elements, count and capacity. */
#define WORLD_LIST(type, name)                                                 \
    type *name##s;                                                             \
    uint32_t name##_count;                                                     \
    uint32_t name##_capacity

/* The turns of a scheduler or worker at the board, as of work/turns.h. */
struct world_client {
    bool busy;
    bool wanted;
    bool failed;     /* the last one has */
    uint32_t turn;   /* the present one */
    int64_t next_ns; /* of the next one; SCHED_NEVER: none is planned */
};

/* A turn under way. */
struct world_turn {
    bool scheduler; /* else a worker */
    uint32_t who;
    bool lost;        /* before it happens; or ... */
    bool unheard;     /* ... its result is */
    bool quiet;       /* nothing was going on */
    int64_t since_ns; /* clock of the sender */
    char *said;
    char *result; /* NULL: it has not happened */
};

/* A lease file of a worker. */
struct world_lease {
    char path[WORLD_LEASE_BYTES];
    int64_t until_ns; /* clock of the host */
    int64_t grace_ns;
};

/* A machine. The first has the schedulers, and no worker of its own. */
struct world_host {
    char home[4];
    char boot_id[37];
    int64_t next_pid;
    int64_t boot_ns; /* from now_ns to the clock of this boot, which ... */
    int64_t ppm;     /* ... is this fast */
    uint32_t slots;
    uint32_t worker; /* its worker process, or WORLD_NONE */
    int64_t cut_ns;  /* until then the database cannot be reached */
    int64_t full_ns; /* until then its disk is full */
    WORLD_LIST(struct world_lease, lease);
};

/* A scheduler. It is the ctx of its engine. */
struct world_process {
    struct world *world;
    uint32_t ix;
    struct engine *engine;
    struct store *store;
    uint64_t epoch;
    uint32_t worker;
    bool elsewhere;        /* sessions run on other machines ... */
    struct roster *roster; /* ... of this list; NULL: for a visitor */
    struct world_client client;
    int64_t cut_ns; /* until then the database cannot be reached */
    bool alive;
    bool died; /* in this call: later calls have no effect */
    bool superseded;
    bool broken;  /* its disk has failed */
    bool durable; /* ... after it had accepted the batch */
    bool failed;  /* and knows why it must stop */
    bool leaving;
    bool visitor;    /* runs for one request, and starts nothing */
    bool publishing; /* in engine_written() of a durable batch */
    const struct store_batch *batch;
    bool applied; /* `batch` was tried */
    enum err apply_err;
    struct diag apply_diag;
    int64_t wake_ns; /* of its next WORLD_PASS */
    int64_t stalled_ns;
    uint32_t commits;
    uint64_t event_number; /* last event that it has reported */
};

/* A worker. It is the ctx of its machine. */
struct world_worker {
    uint32_t host;
    char name[4];
    struct store_place place;
    struct world *world;
    uint32_t ix;
    struct worker *worker;
    struct world_process *process; /* its process; NULL: a separate process */
    struct crew *crew;             /* which has this */
    struct world_client client;
    uint64_t generation; /* of its lease */
    int64_t proto;
    int64_t stalled_ns;
    uint32_t server;
    bool alive;
    bool died;       /* in this call */
    int64_t wake_ns; /* of its next WORLD_LOOK */
    WORLD_LIST(struct world_watch, watched_shim);
};

struct world_board;

/* A task: its durable state and the machine's observations. */
struct world_task {
    char state[16];
    uint32_t flags;
    uint32_t parked;  /* enum sched_parked */
    int64_t until_ns; /* engine's clock: it backs off until then */
    int64_t until_wall_ns;
    bool given_up; /* cancelled while it was parked */
    uint32_t number;
    uint32_t output;        /* attempt whose outputs it has; 0: none */
    bool ordered;           /* an operator has named it, or its group or run */
    int64_t later_ns;       /* its last session asked to be run then; 0: no */
    uint32_t done_count;    /* sessions that did it */
    uint64_t done_seq;      /* when it was recorded as done */
    uint64_t ended_seq;     /* when its last session ended */
    uint64_t sent_back_seq; /* when it last asked for rework */
    uint32_t live;
    uint64_t live_token;
    int64_t ending_ns; /* time of the request to stop its session; 0: none */
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
    uint32_t stopped;                 /* enum sched_stop */
    uint32_t cancels;                 /* requests to cancel it */
    bool reran;                       /* a rerun or rework was requested */
    int64_t usage_cap;                /* set by its monitor; LIMIT_NONE: none */
    int64_t limits[WORLD_LIMITS_MAX]; /* current maxima; percentages: none */
};

/* A durable claim. */
struct world_claim {
    uint32_t run;
    uint32_t task;
    uint32_t number;
    bool ended;
    bool lost;                        /* with its worker */
    uint32_t session;                 /* or WORLD_NONE */
    int64_t limits[WORLD_LIMITS_MAX]; /* at that time */
};

/* A stored notification: its hook must get it before it is removed. */
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
    int64_t wall_ns; /* from now_ns to the wall clock */
    /* What the wall clock was before it was set, since the last batch and since
     * the one before: what a batch has was decided before the last one was
     * applied. */
    int64_t wall_was_ns[2];
    uint64_t seq;
    int64_t calm_ns; /* when the faults stopped */
    bool chaos;      /* faults happen */
    int64_t full_ns; /* end of the period with a full disk */
    uint32_t boots;
    struct world_host hosts[WORLD_HOSTS_MAX];
    uint32_t host_count;
    struct world_board *board; /* or NULL */
    int64_t lease_ns;          /* of workers */
    int64_t away_ns;           /* end of an outage of the database */
    uint64_t epoch;            /* of the store */
    uint32_t current;          /* process that holds the store, or WORLD_NONE */
    uint32_t streak;           /* schedulers that died without a commit */
    uint64_t last_request;
    uint64_t event_number; /* of the last durable event */
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
    WORLD_LIST(struct world_turn, turn);
    WORLD_LIST(struct world_server, server);
    WORLD_LIST(struct world_request, request);
    WORLD_LIST(struct world_shim, shim);
    WORLD_LIST(struct world_dir, dir);
    WORLD_LIST(struct world_session, session);
    WORLD_LIST(struct world_run, run);
    WORLD_LIST(struct world_claim, claim); /* by token - 1 */
    WORLD_LIST(struct world_notification, notification);
};

/* world.c: record the first fault, which stops the world. */
void world_fault(struct world *world, const char *format, ...)
    PRINTF_LIKE(2, 3);
/* Report an event to the listener, if any. */
void world_say(const struct world *world, const char *format, ...)
    PRINTF_LIKE(2, 3);
bool world_has(const struct world *world, enum world_feature feature);
/* Return true once in `odds` calls, while faults of this kind are on. */
bool world_strikes(struct world *world,
                   enum world_feature feature,
                   uint32_t odds);
/* Draw a delay: mostly up to about `scale_ns`, occasionally much longer. */
int64_t world_delay(struct world *world, int64_t scale_ns);
/* Add an event; the caller may change the result until the next call. */
struct world_event *world_plan_event(struct world *world,
                                     enum world_event_type type,
                                     int64_t at_ns,
                                     uint32_t who,
                                     uint64_t value);

/* world_process.c: start a scheduler, unless one runs; with a request, as a
 * process for that request only. */
void world_process_boot(struct world *world, const char *request);
/* Calls into the engine of a process. It may be gone after each of them. */
void world_process_pass(struct world_process *process);
void world_process_apply(struct world_process *process);
void world_process_written(struct world_process *process);
/* The result of a turn; NULL: it has failed. */
void world_process_hear(struct world_process *process, const char *text);
void world_process_request(struct world_process *process,
                           uint64_t request,
                           const char *json);
void world_process_stop(struct world_process *process);
/* Call after a call into the worker of the process. */
void world_process_after(struct world_process *process);
/* Return whether it is dead, possibly since this call. */
bool world_process_dies(struct world_process *process);
/* Kill it between two calls. */
void world_process_bury(struct world_process *process);

/* world_worker.c: start a worker in a process, or as a separate process on a
 * machine, with the name and the protocol. */
uint32_t world_worker_begin(struct world *world, struct world_process *process);
uint32_t world_worker_hire(struct world *world,
                           uint32_t host,
                           const char *name,
                           int64_t proto);
struct work_mark world_worker_mark(const struct world *world, uint32_t ix);
/* Kill it between two calls. */
void world_worker_end(struct world_worker *worker);
void world_worker_free(struct world_worker *worker);
/* Return the time until it wants to wake up; SCHED_NEVER. */
int64_t world_worker_wait_ns(const struct world_worker *worker);
/* Call after each call into a worker. */
void world_worker_after(struct world_worker *worker);
/* Calls into a worker. It may be gone after each of them. */
void world_worker_look(struct world_worker *worker);
void world_worker_report(struct world_worker *worker,
                         const struct exec_report *report);
void world_worker_gone(struct world_worker *worker, uint32_t shim);
void world_worker_respawn(struct world_worker *worker);
/* The result of a turn; NULL: it has failed. */
void world_worker_hear(struct world_worker *worker,
                       const char *text,
                       int64_t since_ns);

/* world_hosts.c: create the machines; free their data. */
void world_hosts_begin(struct world *world);
void world_hosts_release(struct world *world);
/* Return the clock of a machine; the time in which it advances so much. */
int64_t world_hosts_clock(const struct world *world, uint32_t host);
int64_t
world_hosts_span(const struct world *world, uint32_t host, int64_t clock_ns);
/* Return how long a lease still holds, by that clock. */
int64_t world_hosts_lease(const struct world *world,
                          uint32_t host,
                          const char *path,
                          int64_t *grace_out_ns);
bool world_hosts_set_lease(struct world *world,
                           uint32_t host,
                           const struct world_lease *lease);
bool world_hosts_is_full(const struct world *world, uint32_t host);
/* Begin another boot. */
void world_hosts_boot(struct world *world, uint32_t host);
/* Start the worker process of a machine, unless it runs. */
void world_hosts_hire(struct world *world, uint32_t host);
/* Inject a fault; end all. */
void world_hosts_strike(struct world *world);
void world_hosts_calm(struct world *world);

/* world_board.c: the rows of workers and their work. */
void world_board_begin(struct world *world);
void world_board_release(struct world *world);
/* Make a turn; the caller frees the result. */
char *world_board_turn(struct world *world, bool scheduler, const char *text);
/* The end of an attempt was recorded. */
void world_board_end(struct world *world, uint64_t token);
/* A batch has orders: objects of JSON, separated by commas. */
void world_board_assign(struct world *world, const char *orders);
/* An operator wants a worker to drain. */
void world_board_drain(struct world *world, const char *name);
/* A worker without work makes no turns until it is notified, so that the world
 * can come to rest; its lease holds. False: it must go on. */
bool world_board_rest(struct world *world, const char *name);
/* Whether no work is on the board, and all workers rest. */
bool world_board_is_quiet(const struct world *world);

/* world_turns.c: begin a turn soon. */
void world_turns_wake(struct world *world, bool scheduler, uint32_t who);
/* Notify the scheduler, or all workers. */
void world_turns_notify(struct world *world, bool scheduler);
void world_turns_event(struct world *world, const struct world_event *event);
void world_turns_release(struct world *world);

/* world_notify.c: events that hooks get, against stored notifications. */
void world_notify_stored(struct world *world, const struct store_setting *row);
void world_notify_event(struct world *world, const struct store_event *row);
/* A hook has started; it has received the event. */
void world_notify_begun(struct world *world, const char *dir);
void world_notify_told(struct world *world, const char *dir);
/* Check that no notification is left. */
void world_notify_check_rest(struct world *world);

/* world_machine.c: send a request; receive it. */
enum err world_machine_request(struct world *world,
                               uint32_t server,
                               const struct exec_request *request);
void world_machine_serve(struct world *world, uint32_t request);
/* Run the next step of a shim; signal it to stop; kill it. */
void world_machine_step(struct world *world, uint32_t shim);
void world_machine_signal(struct world *world,
                          uint32_t shim,
                          enum exec_end how);
void world_machine_kill(struct world *world, uint32_t shim);
/* Stop the session if its lease has ended. */
void world_machine_lease(struct world *world, uint32_t shim);
/* Kill everything that runs there; its schedulers and its worker must be dead
 * already. */
void world_machine_reboot(struct world *world, uint32_t host);
/* Remove the directory, unless a shim holds it. */
void world_machine_drop(struct world *world, const char *path);
/* Return the index of the directory of that path; create it if needed. */
uint32_t world_machine_dir(struct world *world, const char *path);
/* Return the directory; borrowed until another directory is created. */
struct world_dir *world_machine_at(struct world *world, const char *path);
/* Return the live shim of that identity, or WORLD_NONE. */
uint32_t world_machine_find(const struct world *world,
                            uint32_t host,
                            int64_t pid,
                            uint64_t ticks);
/* As attempt_inspect() and attempt_kill_strays(). */
void world_machine_inspect(const struct world *world,
                           const struct world_dir *dir,
                           const char *boot_id,
                           struct attempt_found *out);
void world_machine_kill_strays(struct world *world, uint32_t dir);

/* world_plan.c: return strings; the caller frees them. */
char *world_plan_text(struct world *world, uint32_t ix);
char *world_plan_meters(struct world *world);
char *world_plan_fragment(struct world *world, const struct world_run *run);
/* Return how an attempt ends, and when, if it is not stopped. */
enum world_ending world_plan_ending(const struct world *world,
                                    const char *run,
                                    const char *task,
                                    uint32_t number,
                                    int64_t *duration_ns_out);
/* Return the report of a done session on its n-th task, n > 0. */
const char *world_plan_rider(const struct world *world,
                             const struct world_session *session,
                             uint32_t n);

/* world_last.c: a claimed task that comes last; all of a run at its end. */
void world_last_check_claim(struct world *world, uint32_t run, uint32_t task);
void world_last_check_end(struct world *world, const struct world_run *run);
/* Whether a run has a task that aborts it. */
bool world_last_aborts(const struct world_run *run);

/* world_operator.c: submit a plan, repeatedly until it is stored. */
void world_operator_submit(struct world *world, uint32_t plan);
/* Send a random request. */
void world_operator_act(struct world *world);
/* At the end of the chaos, release everything that was held or paused. */
void world_operator_calm(struct world *world);
/* Skip tasks that need an operator; false: none does. */
bool world_operator_give_up(struct world *world);

/* world_check.c: the store has accepted the batch of this process. */
void world_check_applied(struct world *world, struct world_process *process);
/* A start is requested; a session begins; it exits by itself, maybe because a
 * stop request got lost; none of its processes is left. */
void world_check_claimed(struct world *world,
                         const struct exec_request *request);
void world_check_run(struct world *world, struct world_session *session);
void world_check_untold(struct world *world,
                        const struct world_session *session);
void world_check_ended(struct world *world, struct world_session *session);
/* An attempt is declared lost, with its worker. */
void world_check_lost(struct world *world, uint64_t token);
/* No event is left; nor will an operator add any. */
void world_check_rest(struct world *world);
void world_check_end(struct world *world);
/* Return the index of the run of that id, or WORLD_NONE. */
uint32_t world_check_find_run(const struct world *world, const char *id);
/* Free the records. */
void world_check_release(struct world *world);

#endif /* SIM_WORLD_INTERNAL_H */
