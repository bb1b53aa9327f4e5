/* SPDX-License-Identifier: MIT */
/*
 * model: the rules of the scheduler, written down the slow and obvious way.
 *
 * Nothing is kept that can be worked out: satisfied needs, units in use and the
 * best task are computed from everything, each time. Only small
 * cases: at most MODEL_TASKS tasks. Providers are the core's own, which has
 * unit tests of its own.
 *
 * model.c has the events, model_end.c how sessions end, model_needs.c what
 * follows for those that need a task, model_rest.c who comes last, model_add.c
 * what is added, model_share.c what is left to do and what follows from that,
 * model_order.c who goes first, model_pass.c who starts.
 */
#ifndef TESTS_PROPERTY_MODEL_H
#define TESTS_PROPERTY_MODEL_H

#include "base/strbuf.h"
#include "core/sched.h"

enum {
    MODEL_TASKS = 100,
    MODEL_GROUPS = 400,
    MODEL_NEEDS = 400,
    MODEL_LIMITS = 27,
    MODEL_RUNS = 3,
    MODEL_LANES = 64,
    MODEL_CLASSES = 8,
    MODEL_PROVIDERS = 4,
    MODEL_ATTRIBUTES = 4,
    MODEL_USES = 4,
    MODEL_POOLS = 16,
    MODEL_SCOPES = 64,
};

struct model_limit {
    struct limit_spec spec;
    struct attribute where[MODEL_ATTRIBUTES];
    uint32_t run;
    uint32_t ahead; /* units beyond its maximum */
};

/* One thing a task or an open group takes units of. */
struct model_pool {
    uint32_t limit;
    uint32_t share; /* limits of equal share and key count together */
    uint32_t key;
    uint32_t units;
    uint32_t background; /* 1: only a session in the background takes them */
};

/* The groups that take units of one pool of a limit with `per`. */
struct model_lane {
    uint32_t run;
    uint32_t limit;
    uint32_t key;
    int64_t width; /* of its widest group */
    /* Worked out by model_count(). */
    int64_t left;
    int64_t work;
};

struct model_group {
    uint32_t run;
    bool open;
    bool counted; /* open, and an issue: it has units of limits without `per` */
    int64_t service_ns;
    struct model_pool pools[MODEL_POOLS];
    uint32_t pool_count;
    int64_t width;
    uint32_t lane; /* ID_NONE: it has none */
    /* Worked out by model_count(). */
    bool left;
    int64_t work;
};

/* A scope: what belongs to it, and whether that had come to rest in the last
 * pass. */
struct model_scope {
    uint32_t run;
    uint32_t parent; /* 1 + its index; 0: the run */
    bool rested;
};

struct model_task {
    enum task_state state;
    enum sched_parked parked;
    uint32_t run;
    uint32_t group;
    uint32_t class_ix;
    uint32_t provider;
    uint32_t batch_key;
    uint32_t rework_to;
    uint32_t guard; /* 1 + its index; 0: none */
    uint32_t priority;
    uint32_t shape; /* tasks of equal shape may share a session */
    struct sched_failure_spec failure;
    struct model_pool pools[MODEL_POOLS];
    uint32_t pool_count;
    uint32_t scope; /* 1 + its index; 0: the run */
    bool last;
    bool approve;
    int64_t not_before_ns; /* 0: it counts no more */
    int64_t estimate_ns;
    int64_t ready_ns;
    uint64_t ready_seq;
    int64_t until_ns;
    int64_t started_ns;
    uint64_t token;
    uint32_t leader;
    uint32_t tries;
    uint32_t reworks;
    uint32_t checkpoints;
    uint32_t refusals; /* in a row */
    bool held;
    bool revoked;
    bool backing_off;
    bool background; /* as it was when it was ready last */
    bool ending;
    bool to_skip;
    bool end_due;
    bool asking;
    bool cascaded;
    bool stale;
    bool snoozed;
    bool early;
    bool unapproved;
    bool first;
    /* Worked out by model_look(). */
    bool satisfied;
    int64_t rank_ns;
    uint32_t tier;
    uint32_t blocked_tier;
    uint32_t urgency; /* the best priority of it and of what needs it */
};

struct model_run {
    enum sched_policy policy;
    enum sched_goal goal;
    uint32_t first_limit;
    uint32_t owed;
    uint32_t sync_every;
    bool sync_drain;
    bool paused;
    bool barrier_due;
    bool barrier_running;
    bool cancelled;
    bool rested; /* the run as a scope: see struct model_scope */
    enum sched_stop stopped;
    bool stop_due;       /* it is to be reported */
    int64_t deadline_ns; /* 0: none, or it has passed */
    uint32_t completions;
    int64_t width;    /* what the foreground could use: by model_count() */
    int64_t critical; /* length that is: by model_set_goals() */
};

struct model {
    int64_t now_ns;
    bool draining;
    uint64_t event_seq;
    uint64_t last_token;
    struct model_task tasks[MODEL_TASKS];
    uint32_t task_count;
    struct model_group groups[MODEL_GROUPS];
    uint32_t group_count;
    struct sched_need needs[MODEL_NEEDS];
    uint32_t need_count;
    struct model_limit limits[MODEL_LIMITS];
    uint32_t limit_count;
    struct sched_class_spec classes[MODEL_CLASSES];
    uint32_t class_count;
    struct provider providers[MODEL_PROVIDERS];
    uint32_t provider_count;
    struct model_run runs[MODEL_RUNS];
    uint32_t run_count;
    struct model_lane lanes[MODEL_LANES];
    uint32_t lane_count;
    struct model_scope scopes[MODEL_SCOPES];
    uint32_t scope_count;
};

/* What one pass did. */
struct model_pass {
    struct strbuf starts; /* a line for each start: token and tasks */
    bool ends[MODEL_TASKS];
    bool circuits[MODEL_PROVIDERS];
    bool barriers[MODEL_RUNS];
    bool stopped[MODEL_RUNS];
    const char *broken; /* a property that does not hold; NULL: none */
};

static inline bool model_in_flight(const struct model_task *task)
{
    return task->state == TASK_STARTING || task->state == TASK_RUNNING;
}

static inline bool model_is_pending(const struct model_task *task)
{
    return task->state == TASK_WAITING || task->state == TASK_READY;
}

static inline bool model_is_final(const struct model_task *task)
{
    return task->state == TASK_DONE || task->state == TASK_SKIPPED ||
           task->state == TASK_CANCELLED;
}

void model_add_provider(struct model *model, const struct provider_spec *spec);
void model_add_class(struct model *model, const struct sched_class_spec *spec);
void model_add_run(struct model *model, const struct sched_run_spec *spec);

/* As the functions of the scheduler of the same name. */
MUST_USE enum err model_add(struct model *model,
                            int64_t now_ns,
                            const struct sched_addition *addition);
MUST_USE enum err model_apply(struct model *model,
                              const struct sched_event *event);
void model_take_pass(struct model *model, struct model_pass *pass);

/* Whether nothing will happen in the run by itself. */
bool model_is_quiet(const struct model *model, uint32_t run);

/* Whether its guard keeps a task from starting. */
bool model_is_closed(const struct model *model, const struct model_task *task);

/* ---- model.c ---- */

/* After every event: who became ready, who stopped being it. */
void model_settle(struct model *model);

/* Cancel a run: all of it, or what is not to run in the end. */
void model_cancel_run(struct model *model, uint32_t run, bool all);

/* Let nothing but last tasks start. */
void model_stop(struct model *model, uint32_t run, enum sched_stop why);

/* Whether nothing of a run is pending or in flight. */
bool model_is_over(const struct model *model, uint32_t run);

/* ---- model_end.c ---- */

/* A session has ended. */
enum err model_end_session(struct model *model,
                           const struct sched_event *event);

/* ---- model_needs.c ---- */

/* Work out who is satisfied, and tier and rank. */
void model_look(struct model *model);

/* Whether a task that is done, or optional and given up, lets others go. */
bool model_is_complete(const struct model_task *task);

/* Whether a need is neither satisfied nor met, for a dependent that waits. */
bool model_is_open(const struct model *model, struct sched_need need);

/* Which tasks lack a need, or the rest of their scope; whether one does. */
void model_find_lacking(const struct model *model, bool *lacks);
bool model_lacks(const struct model *model, uint32_t task);

/* Which tasks nobody can ever pass: those that ended badly, and those that
 * have started or ended and need such a one. */
void model_find_dead(const struct model *model, bool *dead);

/* A task ends in this state. */
void model_put(struct model_task *task, enum task_state state);

/* Skip what is pending behind what nobody can ever pass. */
void model_cut(struct model *model);

/* Bring back what was skipped that way, as far as it can be passed again. */
void model_revive(struct model *model);

/* A task must be approved anew, if it must be approved at all. */
void model_disapprove(struct model_task *task);

/* A task that is over, or that has never been, begins from scratch. */
void model_restart(struct model_task *task);

/* ---- model_rest.c ---- */

/* Whether the scope of a last task had come to rest in the last pass. */
bool model_has_rested(const struct model *model, const struct model_task *task);

/* Look which scopes have come to rest: at the beginning of a pass. */
void model_rest(struct model *model);

/* Whether a need, old or of an addition, is on a last task of a scope by one
 * that this task waits for. */
bool model_needs_last(const struct model *model,
                      const struct sched_addition *addition,
                      struct sched_need need);

/* ---- the rest ---- */

/* Whether a task is in the background now: deferred, and it blocks nothing. */
bool model_is_background(const struct model *model,
                         const struct model_task *task);

/* Note the chains and the lane of every group, after an addition. */
void model_measure(struct model *model);

/* Work out what is left to do: before model_max() and model_sort(). */
void model_count(struct model *model);

/* Work out what is critical: once in a pass, at its beginning. */
void model_set_goals(struct model *model);

/* Units in use of what the pool counts. */
int64_t model_used(const struct model *model, const struct model_pool *pool);

/* Present maximum of a limit. */
int64_t model_max(const struct model *model, uint32_t limit);

/* Count the tasks of a session that has started. */
void model_take_turn(struct model *model, uint32_t leader, uint32_t count);

/* Whether a task has been ready for too long. */
bool model_is_aged(const struct model *model, const struct model_task *task);

/* The best task of each queue, best first; with a shape other than ID_NONE,
 * only of this one. Return their number. */
uint32_t model_sort(const struct model *model, uint32_t shape, uint32_t *out);

#endif /* TESTS_PROPERTY_MODEL_H */
