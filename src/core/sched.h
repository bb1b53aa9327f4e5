/* SPDX-License-Identifier: MIT */
/*
 * sched: the scheduler as a state machine. Events in, effects out.
 *
 * It decides which tasks start, in which order, and why others do not. It has
 * no clock (each event carries the time), does no I/O and draws no random
 * numbers; equal sequences of calls give equal effects, bit for bit. The
 * simulator and the live engine run the same code.
 *
 * A pass:
 *  1. sched_apply() for each new event, in order; sched_add() for new work.
 *     Nothing starts in these calls.
 *  2. sched_plan(), if a run uses lookahead, and sched_next_effect() until it
 *     returns false. It decides starts, best first, until no ready task fits.
 *  3. sched_next_timer() returns when to call sched_apply() with EVENT_TICK if
 *     nothing happens before.
 *
 * Setting up: sched_new(), sched_add_provider(), sched_add_class(),
 * sched_add_run() with its limits, then sched_add() for the tasks.
 *
 * Recovery: sched_record(), sched_run_record() and sched_provider_record()
 * return all state that cannot be derived. A record changes only in a pass that
 * reports its task (EFFECT_TASK), so a store that keeps the newest record of
 * each task has all of them. A second scheduler with the same setup,
 * sched_restore*() and the records in sched_add() continues like the first.
 *
 * Memory: everything is reserved by sched_add*(); sched_apply() and
 * sched_next_effect() never allocate. The number of pending effects is
 * bounded by the number of tasks: no burst of events can lose one.
 * Threads: none. The caller serialises access.
 */
#ifndef CORE_SCHED_H
#define CORE_SCHED_H

#include "base/err.h"
#include "core/ids.h"
#include "core/limits.h"
#include "core/provider.h"

#include <stddef.h>

/* Maximum number of tasks of a scheduler. */
#define SCHED_TASKS_MAX (UINT32_C(1) << 24)

/* Worst tier a class can have; 0 is the best. */
#define SCHED_TIER_MAX UINT32_C(99)

/* Priorities: 0 is the most urgent. */
#define SCHED_PRIORITY_MAX UINT32_C(9)

/* Maximum number of limits and resources of a run. */
#define SCHED_LIMITS_MAX UINT32_C(1024)

/* "No time" and "no bound". */
#define SCHED_NEVER INT64_MAX

enum task_state {
    TASK_WAITING,   /* for its needs, or until its back-off expires */
    TASK_READY,     /* could start */
    TASK_STARTING,  /* committed, not yet running */
    TASK_RUNNING,   /* its session was accepted */
    TASK_DONE,      /* final */
    TASK_FAILED,    /* until an operator acts */
    TASK_PARKED,    /* until an operator acts */
    TASK_SKIPPED,   /* final */
    TASK_CANCELLED, /* final */
};

enum { TASK_STATE_COUNT = TASK_CANCELLED + 1 };

/* Stable name of a state ("waiting", "ready" ...). */
const char *sched_state_name(enum task_state state);

/* Why a task is parked. */
enum sched_parked {
    SCHED_PARKED_FAILED,      /* retries used up */
    SCHED_PARKED_BLOCKED,     /* reported by its session */
    SCHED_PARKED_CHANGES,     /* changes requested, rework limit reached */
    SCHED_PARKED_CHECKPOINTS, /* too many without progress */
};

enum sched_policy { SCHED_RANK, SCHED_FAIR, SCHED_FIFO, SCHED_LOOKAHEAD };

/* What a run prefers; see docs/scheduling.md. */
enum sched_goal {
    SCHED_FINISH_ALL,  /* an early end of the run */
    SCHED_FINISH_MANY, /* early ends of its groups */
};

enum sched_on_failure {
    SCHED_PARK,  /* dependents wait, the rest continues */
    SCHED_ABORT, /* cancel the run */
    SCHED_SKIP,  /* dependents are skipped, transitively */
    SCHED_ASK,   /* the run pauses until an operator decides */
    SCHED_STOP,  /* park it, and stop the run */
};

/* Why a run is stopped: it starts nothing but what is to run in the end, until
 * an operator resumes it. */
enum sched_stop {
    SCHED_NOT_STOPPED,
    SCHED_STOPPED_FAILURE, /* of a task with SCHED_STOP */
    SCHED_STOPPED_DEADLINE,
};

/* How a need must end. "Given up" is failed, or parked for any reason but
 * SCHED_PARKED_BLOCKED. */
enum sched_on {
    SCHED_ON_DONE,
    SCHED_ON_FAILED, /* given up */
    SCHED_ON_ANY,    /* done, given up, skipped or cancelled */
};

struct sched_class_spec {
    uint32_t tier;       /* 0 is best, SCHED_TIER_MAX worst */
    bool defer;          /* comes last while it blocks nothing */
    bool queue;          /* oldest first, before others of its tier */
    uint32_t batch;      /* maximum tasks per session; at least 1 */
    uint32_t marginal;   /* percent of its estimate that each but the longest
                            takes in a batch; for lookahead */
    int64_t max_wait_ns; /* then it goes first; SCHED_NEVER: no bound */
};

struct sched_run_spec {
    enum sched_policy policy;
    enum sched_goal goal;
    const struct limit_spec *limits; /* `base` is an index into this array */
    uint32_t limit_count;
    uint32_t sync_every; /* completions between barriers; 0: none */
    bool sync_drain;     /* a barrier waits until nothing is in flight */
    uint32_t schedules;  /* SCHED_LOOKAHEAD: candidates per search */
    int64_t deadline_ns; /* when the run is stopped; 0: never */
};

/* Rules for a failed attempt. */
struct sched_failure_spec {
    uint32_t retry_max;
    int64_t backoff_ns;
    int64_t backoff_ns_max;
    uint32_t checkpoint_max; /* more without progress: parked */
    uint32_t rework_max;
    enum sched_on_failure on_failure;
    bool optional; /* failed or skipped, its dependents still proceed */
    bool rework_on_failure; /* a failure counts as "changes requested" */
};

struct sched_use {
    struct limit_id limit;
    uint32_t units;
};

struct sched_group_spec {
    const struct attribute *attributes;
    uint32_t attribute_count;
};

struct sched_task_spec {
    struct class_id class_id;
    struct provider_id provider;
    /* Index of an existing group, or the old count plus an index into the
     * groups of the same addition; ID_NONE: the task gets its own. */
    uint32_t group;
    int64_t estimate_ns;
    uint32_t batch_key; /* only tasks with equal keys share a session */
    const struct attribute *attributes;
    uint32_t attribute_count;
    const struct sched_use *uses; /* resources, and units other than 1 */
    uint32_t use_count;
    struct sched_failure_spec failure;
    uint32_t rework_to; /* task to repeat from, or ID_NONE; needed by this task,
                           directly or not, through tasks of its group */
    uint32_t priority;  /* 0, the most urgent, to SCHED_PRIORITY_MAX */
    uint32_t guard; /* 1 + a task of its run, old or new: while that is parked,
                       this task does not start; 0: none */
    int64_t not_before_ns; /* does not start before; 0: any time */
    /* 1 + index of an existing scope, or of one of the same addition after
     * those; 0: the run. */
    uint32_t scope;
    bool last;    /* starts when all others of its scope have come to rest */
    bool approve; /* starts when an operator has approved it */
};

/*
 * A part of a run with tasks that come last. The run itself is the outermost
 * scope. The tasks of a scope, the last ones included, belong to its parent,
 * too.
 */
struct sched_scope_spec {
    uint32_t parent; /* like sched_task_spec.scope */
};

/* Flags of a record. Stable: they are stored. */
enum sched_record_flag {
    SCHED_RECORD_HELD = 1 << 0,
    SCHED_RECORD_BACKING_OFF = 1 << 1,
    SCHED_RECORD_BACKGROUND = 1 << 2, /* in flight or backing off after that,
                                         without units for its group */
    SCHED_RECORD_REVOKED = 1 << 3,
    SCHED_RECORD_ENDING = 1 << 4, /* to be stopped while in flight */
    SCHED_RECORD_TO_SKIP = 1 << 5,
    SCHED_RECORD_ASKING = 1 << 6,
    SCHED_RECORD_CASCADED = 1 << 7,
    SCHED_RECORD_STALE = 1 << 8,
    SCHED_RECORD_GROUP_OPEN = 1 << 9,  /* its group is open */
    SCHED_RECORD_SNOOZED = 1 << 10,    /* backing off, by its own wish */
    SCHED_RECORD_EARLY = 1 << 11,      /* backing off until its not_before_ns */
    SCHED_RECORD_UNAPPROVED = 1 << 12, /* held until it is approved */
    SCHED_RECORD_FIRST = 1 << 13,      /* goes before all others */
};

/* Also in the flags of a record: refusals in a row, and 1 + its priority if an
 * operator has set it. */
enum {
    SCHED_RECORD_REFUSALS_SHIFT = 16,
    SCHED_RECORD_REFUSALS_MAX = 255,
    SCHED_RECORD_PRIORITY_SHIFT = 24,
    SCHED_RECORD_PRIORITY_MASK = 15,
};

/*
 * Task state that cannot be derived: a store must keep it so that another
 * scheduler can continue. A plain value.
 */
struct sched_record {
    enum task_state state;
    uint32_t flags; /* of enum sched_record_flag */
    enum sched_parked parked;
    int64_t ready_ns;
    uint64_t ready_seq; /* order of becoming ready; equal: of declaration */
    int64_t until_ns;   /* when its back-off expires */
    int64_t started_ns; /* of its last attempt; only kept for SCHED_FAIR,
                           SCHED_LOOKAHEAD and beside tasks that need several
                           units of a limit */
    int64_t service_ns; /* of its group */
    uint64_t version;   /* set by the caller; of the records of a group's tasks,
                           the greatest version decides whether the group is
                           open, and its service */
    uint64_t token;
    uint32_t leader; /* first task of its session, while it is in flight: index
                        into the same addition; in sched_record(): in the
                        scheduler */
    uint32_t place;  /* in its session, from 0 */
    uint32_t attempts;
    uint32_t tries;
    uint32_t reworks;
    uint32_t checkpoints;
    uint32_t cause; /* like leader; ID_NONE: none */
};

/* The same for a run. */
struct sched_run_record {
    bool paused;
    bool cancelled;
    bool barrier; /* its hook is due or running; restored as due */
    uint32_t completions;
    uint32_t owed; /* foreground tasks to start before an aged background one
                      may go first */
    enum sched_stop stopped;
    bool deadline_over; /* its deadline has passed, and counts no more */
};

/* "dependent needs need": indices of tasks, old or new. */
struct sched_need {
    uint32_t dependent;
    uint32_t need;
    enum sched_on on;
};

/* Work added at once. New tasks get the indices from the old count on. */
struct sched_addition {
    struct run_id run;
    const struct sched_group_spec *groups;
    uint32_t group_count;
    const struct sched_task_spec *tasks;
    uint32_t task_count;
    const struct sched_need *needs;
    uint32_t need_count;
    const struct sched_scope_spec *scopes;
    uint32_t scope_count;
    const struct sched_record *records; /* NULL: new work; else one for each
                                           task: restored work */
};

enum sched_rejection_code {
    REJECTION_NONE,
    REJECTION_TOO_MANY,  /* more than SCHED_TASKS_MAX tasks */
    REJECTION_UNKNOWN,   /* `task` needs a task that does not exist */
    REJECTION_CYCLE,     /* see `cycle` */
    REJECTION_STARTED,   /* `task` is in flight and cannot gain a need */
    REJECTION_ENDED,     /* `task` is finished or parked: no new needs */
    REJECTION_OTHER_RUN, /* `task` belongs to another run */
    REJECTION_REWORK,    /* `task` does not need its rework_to in its group */
    REJECTION_CANCELLED, /* the run was cancelled */
    REJECTION_RECORD,    /* the record of `task` is impossible */
    REJECTION_LAST,      /* `task` needs a last task of a scope that it is in */
};

/* Why sched_add() rejected the work. Release with sched_rejection_release(). */
struct sched_rejection {
    enum sched_rejection_code code;
    struct task_id task;
    uint32_t *cycle; /* each needs the next, the last the first */
    uint32_t cycle_count;
};

enum sched_outcome {
    OUTCOME_DONE,
    OUTCOME_FAILED,
    OUTCOME_REFUSED,    /* refused: ready again or, from the second time in a
                           row on, after a back-off; costs no retry */
    OUTCOME_CHANGES,    /* changes requested: rework */
    OUTCOME_BLOCKED,    /* park */
    OUTCOME_CHECKPOINT, /* continues in a fresh session */
    OUTCOME_LOST,       /* the session vanished: counts as failed */
    OUTCOME_STOPPED,    /* stopped on request: ready again, no cost */
    OUTCOME_LATER,      /* snooze until `retry_at_ns`: no slot, no try */
    OUTCOME_FATAL,      /* failed, and no retry helps */
};

enum sched_event_type {
    EVENT_TICK,         /* time passed */
    EVENT_STARTED,      /* task, token: the session was accepted */
    EVENT_ENDED,        /* task, token, outcomes: the session exited */
    EVENT_LIMIT,        /* limit, max, percent */
    EVENT_AHEAD,        /* limit, ahead */
    EVENT_PAUSE,        /* run */
    EVENT_RESUME,       /* run */
    EVENT_BARRIER_DONE, /* run */
    EVENT_CANCEL_RUN,   /* run */
    EVENT_RETRY_RUN,    /* run: retry all failed and parked tasks */
    EVENT_HOLD,         /* task: do not start it */
    EVENT_RELEASE,      /* task: undo a hold, or accept a revoked result */
    EVENT_RETRY,        /* task: failed, parked, revoked or backing off */
    EVENT_SKIP,         /* task */
    EVENT_CANCEL,       /* task */
    EVENT_REVOKE,       /* task: done, but its result is in doubt */
    EVENT_DRAIN,        /* start nothing in any run; not part of a record */
    EVENT_FILL,         /* undo EVENT_DRAIN */
    EVENT_OPEN,         /* all providers: forget the times they named */
    EVENT_REOPEN,       /* provider: clear all reasons to be shut */
    EVENT_APPROVE,      /* task: ready, and waits for approval */
    EVENT_RERUN,        /* task: done; with all that depends on it */
    EVENT_PRIORITY,     /* task, max: 0 to SCHED_PRIORITY_MAX */
    EVENT_FIRST,        /* task: goes before all others */
};

struct sched_event {
    enum sched_event_type type;
    int64_t now_ns;      /* never less than in the event before */
    struct task_id task; /* of a session: any of its tasks */
    struct run_id run;
    struct limit_id limit;
    struct provider_id provider;
    uint64_t token;
    int64_t max;
    uint32_t percent;
    uint32_t ahead; /* units that tasks may take beyond the maximum: the caller
                       starts these when others have ended */
    int64_t retry_at_ns; /* of a refusal or snooze; SCHED_NEVER: no time was
                            given */
    bool stop;           /* of a refusal: the provider is stopped */
    bool progress;       /* of a checkpoint: earlier checkpoints do not count */
    /* EVENT_ENDED: one for all tasks of the session, or one each, in the order
     * of sched_session_next(). REFUSED and STOPPED apply to all. */
    const enum sched_outcome *outcomes;
    uint32_t outcome_count;
};

enum sched_effect_type {
    EFFECT_END,     /* task, token: stop this whole session */
    EFFECT_START,   /* task (the first of the session), token, provider */
    EFFECT_CIRCUIT, /* provider: too many failures or refusals in a row;
                       notify operators */
    EFFECT_BARRIER, /* run: start its sync hook, then EVENT_BARRIER_DONE */
    EFFECT_TASK,    /* task: its state changed since it was last reported */
    EFFECT_STOPPED, /* run: it was stopped, see struct sched_run */
    EFFECT_RUN,     /* run: nothing more will happen in it by itself */
};

struct sched_effect {
    enum sched_effect_type type;
    struct task_id task;
    struct run_id run;
    struct provider_id provider;
    uint64_t token;
};

/* Current state of a task. A plain value. */
struct sched_task {
    enum task_state state;
    struct run_id run;
    struct group_id group; /* ID_NONE: it has none */
    struct class_id class_id;
    struct provider_id provider;
    uint32_t tier; /* includes the tasks that it blocks */
    int64_t rank_ns;
    int64_t estimate_ns;
    int64_t ready_ns;  /* when it became ready last */
    uint64_t token;    /* of its last attempt; 0: none yet */
    uint32_t attempts; /* started and not refused */
    uint32_t tries;    /* failures counted against its retries */
    uint32_t reworks;
    uint32_t checkpoints;
    uint32_t unmet; /* needs that are not satisfied */
    bool held;
    bool revoked;
    bool backing_off;
    bool background; /* deferred class, blocks nothing better */
    bool aged;       /* waited longer than its class's max_wait */
    bool group_open;
    bool asking;
    bool snoozed;             /* backing off, by its own wish */
    bool early;               /* backing off until its not_before_ns */
    bool unapproved;          /* held until it is approved */
    bool first;               /* goes before all others */
    bool last;                /* starts when its scope has come to rest */
    uint32_t priority;        /* its own */
    enum sched_parked parked; /* while its state is TASK_PARKED */
};

struct sched_run {
    uint32_t counts[TASK_STATE_COUNT];
    uint32_t in_flight; /* starting or running */
    uint32_t sessions;  /* sessions in flight; batches count once */
    uint32_t completions;
    bool paused;
    bool cancelled;
    bool barrier; /* its hook is due or running */
    bool quiet;   /* EFFECT_RUN was given, and nothing changed since */
    enum sched_stop stopped;
    int64_t deadline_ns; /* when it will be stopped; 0: never */
};

struct sched;

/* Create an empty scheduler; free it with sched_free(). */
struct sched *sched_new(void);

/* Free it. NULL is allowed. */
void sched_free(struct sched *sched);

/* Add a provider. */
struct provider_id sched_add_provider(struct sched *sched,
                                      const struct provider_spec *spec);

/* Add a class. */
struct class_id sched_add_class(struct sched *sched,
                                const struct sched_class_spec *spec);

/*
 * Add a run without tasks. The indices of its limits are consecutive from
 * *first_limit_out on, in the order of the spec.
 */
struct run_id sched_add_run(struct sched *sched,
                            const struct sched_run_spec *spec,
                            struct limit_id *first_limit_out);

/* Add one more limit to a run (a resource of a fragment). */
struct limit_id sched_add_limit(struct sched *sched,
                                struct run_id run,
                                const struct limit_spec *spec);

/*
 * Add work to a run, all or nothing. Fails with ERR_INVALID, ERR_CONFLICT or
 * ERR_LIMIT; the reason is then in *rejection and nothing changed. A new task
 * is skipped if a need has failed for good, was skipped or was cancelled.
 *
 * With records, each task enters the state of its record, in a cancelled run
 * too, and is reported (EFFECT_TASK) only if its state differs from the record.
 * An impossible record is rejected with ERR_CORRUPT.
 */
MUST_USE enum err sched_add(struct sched *sched,
                            int64_t now_ns,
                            const struct sched_addition *addition,
                            struct sched_rejection *rejection);

/*
 * Restore from records, before the first pass. sched_restore() comes first, in
 * an empty scheduler: `last_token` is the greatest token ever given out, so
 * that new tokens are greater. The record of a run comes after sched_add_run()
 * and before the run's sched_add(), the record of a provider any time after
 * sched_add_provider(). A task with a record must have all its needs in the
 * same addition.
 *
 * The first pass repeats EFFECT_END and EFFECT_BARRIER for actions that may not
 * have been carried out. Maxima set by EVENT_LIMIT are not part of a record.
 */
void sched_restore(struct sched *sched, int64_t now_ns, uint64_t last_token);
void sched_restore_run(struct sched *sched,
                       struct run_id run,
                       const struct sched_run_record *record);
void sched_restore_provider(struct sched *sched,
                            struct provider_id provider,
                            const struct sched_provider_record *record);

/*
 * After restoring the tasks of a run with other needs than they had: skip the
 * tasks after a failed, skipped or cancelled task.
 */
void sched_restore_cut(struct sched *sched, struct run_id run);

/* Free the memory of a rejection. */
void sched_rejection_release(struct sched_rejection *rejection);

/*
 * Apply one event. ERR_CONFLICT: the state forbids the request, or the report
 * is stale (its token is not the current one); nothing changed but the time.
 * ERR_INVALID: the event does not fit (wrong number of outcomes).
 */
MUST_USE enum err sched_apply(struct sched *sched,
                              const struct sched_event *event);

/*
 * The wall clock was set: by the scheduler's clock, the times before which
 * tasks of a run must not start come `by_ns` later (negative: sooner), and so
 * does its deadline if `deadline`.
 */
void sched_move_times(struct sched *sched,
                      struct run_id run,
                      int64_t by_ns,
                      bool deadline);

/*
 * SCHED_LOOKAHEAD: search an order for the remaining tasks, before the effects
 * of a pass are requested and whenever time permits. `effort` bounds the time:
 * it is the number of tasks placed in schedules, each some tens of nanoseconds.
 * Returns true if the search is not finished. The best order found is followed
 * from then on; until then, rank decides.
 *
 * A schedule is not part of the records: a restored scheduler finds its own,
 * and schedulers restored from equal records find the same.
 */
bool sched_plan(struct sched *sched, uint32_t effort);

/*
 * The same when nothing else is to be done: a search goes on, up to 16 times
 * the number of schedules, while that finds better ones.
 */
bool sched_plan_more(struct sched *sched, uint32_t effort);

/* Return whether sched_plan_more() has something to go on with. */
bool sched_can_plan_more(const struct sched *sched);

/* Return the next effect of this pass, or false if none is left. */
MUST_USE bool sched_next_effect(struct sched *sched, struct sched_effect *out);

/* Return when the state will change by time alone, or SCHED_NEVER. */
int64_t sched_next_timer(const struct sched *sched);

/* Return the next task in the session of `task`; ID_NONE after the last. */
struct task_id sched_session_next(const struct sched *sched,
                                  struct task_id task);

/* Current state of a task, a run. */
struct sched_task sched_task(const struct sched *sched, struct task_id task);
struct sched_run sched_run(const struct sched *sched, struct run_id run);

/* Return the record of a task, a run, a provider, between two passes. The
 * version of a task's record is 0. */
struct sched_record sched_record(const struct sched *sched,
                                 struct task_id task);
struct sched_run_record sched_run_record(const struct sched *sched,
                                         struct run_id run);
struct sched_provider_record sched_provider_record(const struct sched *sched,
                                                   struct provider_id provider);

/* Return whether a provider accepts sessions; if not, why and in *until_ns_out
 * until when (SCHED_NEVER: unknown). */
enum provider_shut sched_provider_state(const struct sched *sched,
                                        struct provider_id provider,
                                        int64_t *until_ns_out);

/* Number of objects added so far. */
uint32_t sched_task_count(const struct sched *sched);
uint32_t sched_group_count(const struct sched *sched);
uint32_t sched_scope_count(const struct sched *sched);

/*
 * Return the tasks in flight, in no particular order: borrowed until the next
 * call that changes the scheduler.
 */
const uint32_t *sched_in_flight(const struct sched *sched, uint32_t *count_out);

/* Current maximum of a limit, and units in use summed over its pools. */
int64_t sched_limit_max(const struct sched *sched, struct limit_id limit);
int64_t sched_limit_used(const struct sched *sched, struct limit_id limit);

/* Return whether a ready task waits for a unit of this limit. */
bool sched_limit_binds(const struct sched *sched, struct limit_id limit);

/*
 * For each kind of remaining ready task (same needs, same class), call `fn`
 * with the best of them. For measuring, not for deciding.
 */
typedef void (*sched_head_fn)(void *ctx, struct task_id head);
void sched_heads(const struct sched *sched, sched_head_fn fn, void *ctx);

/* Return whether ready task `task` would fit without `other`, in flight. */
bool sched_fits_without(const struct sched *sched,
                        struct task_id task,
                        struct task_id other);

/* Memory of the scheduler in bytes. */
size_t sched_bytes(const struct sched *sched);

/* Check all derived state against its sources; a difference is a bug and stops
 * the program. Slow: for tests. */
void sched_verify(const struct sched *sched);

#endif /* CORE_SCHED_H */
