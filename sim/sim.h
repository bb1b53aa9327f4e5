/* SPDX-License-Identifier: MIT */
/*
 * sim: simulation of a plan under a virtual clock, with the real scheduler.
 *
 * A session lasts as long as its estimate (or a draw around it, with jitter),
 * its outcome is that of the script (default: done), and the operator sends the
 * script's requests at their times. A task that waits for approval is approved
 * at once, unless the script approves it. Equal inputs give equal results.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "base/diag.h"
#include "core/why.h"
#include "plan/plan.h"
#include "sim/issues.h"
#include "sim/script.h"

/* The four measures against a flood of reviews; each can be turned off. */
enum sim_rule {
    SIM_RULE_PRIORITY = 1 << 0, /* tiers */
    SIM_RULE_CAP = 1 << 1,      /* the limit on reviews */
    SIM_RULE_DEFER = 1 << 2,    /* background work takes idle slots only */
    SIM_RULE_BATCH = 1 << 3,    /* similar tasks share a session */
    SIM_RULES_ALL = (1 << 4) - 1,
};

struct replay;

struct sim_options {
    enum plan_policy policy;
    uint32_t rules; /* enum sim_rule, or-ed */
    uint64_t seed;
    int64_t start_ns;         /* wall clock time at which the run starts */
    uint32_t jitter_percent;  /* spread of durations around the estimate */
    uint32_t outlier_percent; /* sessions that take five times their estimate */
    const struct sim_script *script; /* NULL: only the plan */
    /* Durations and outcomes; NULL: as above. A request of the script that the
     * state forbids is then ignored. See sim/replay.h. */
    const struct replay *replay;
};

enum sim_end {
    SIM_END_DONE,
    SIM_END_FAILED,
    SIM_END_CHANGES,
    SIM_END_BLOCKED,
    SIM_END_CHECKPOINT,
    SIM_END_LATER, /* it asked to be run again */
    SIM_END_FATAL, /* failed for good */
    SIM_END_CANCELLED,
    SIM_END_REFUSED, /* real runs only: a simulation counts them */
    SIM_END_RUNNING, /* still running when the simulation stopped */
};

/* One task in one session. Tasks of a batch have equal times and lanes. */
struct sim_span {
    uint32_t task; /* index in the plan */
    uint32_t attempt;
    int64_t ready_ns;
    int64_t start_ns;
    int64_t end_ns;
    uint32_t lane;    /* smallest slot number that was free at the start */
    uint32_t session; /* equal for the tasks of one batch */
    enum sim_end end;
    uint32_t restarts; /* of a merge: how often it restarted in its queue */
};

/* Measurements of one class. */
struct sim_class {
    uint32_t count; /* starts */
    int64_t wait_mean_ns;
    int64_t wait_p99_ns;
    int64_t wait_max_ns;
    int64_t starved_ns; /* time in which a task was ready and would have fitted
                           without a session of a worse tier */
    int64_t busy_ns;    /* total time of its sessions */
};

/* A task that is not done when no event is left, and the reason. It is spared
 * if it was skipped because of the outcome of a done task: it needs that the
 * other fails, or needs a task that is spared. */
struct sim_left {
    uint32_t task;
    enum task_state state;
    bool revoked;   /* done, but its result is in doubt */
    bool last;      /* it comes last: see `finally` */
    struct why why; /* `task` and `limit` are indices of the plan */
};

struct sim_result {
    enum plan_policy policy;
    enum plan_goal goal;
    uint32_t rules;
    uint32_t task_count;
    int64_t makespan_ns;
    uint32_t session_count;
    uint32_t lane_count;  /* most sessions at once */
    double slot_use;      /* used share of the slots, 0 to 1 */
    struct issues issues; /* when they were complete */
    uint32_t refusals;
    uint32_t restarts; /* how often merges restarted in their queues */
    uint32_t counts[TASK_STATE_COUNT]; /* tasks by their final state */
    enum sched_stop stopped;           /* why the run is stopped at the end */
    uint32_t stop_task;                /* task because of which, or PLAN_NONE */
    int64_t stopped_ns;  /* when it was stopped for the last time */
    bool cancelled;      /* the run */
    uint32_t last_count; /* tasks that come last */
    uint32_t last_done;
    struct sim_class *classes; /* one for each class of the plan */
    uint32_t class_count;
    struct sim_span *spans; /* in order of start */
    uint32_t span_count;
    uint32_t span_capacity;
    int64_t *limit_wait_ns; /* per limit of the plan: time in which it kept a
                               task waiting */
    uint32_t limit_count;
    struct sim_left *left; /* the spared ones come after `left_count` */
    uint32_t left_count;
    uint32_t spared_count;
};

/*
 * Simulate. This changes the plan: it turns rules off and adds the fragments of
 * the script. ERR_INVALID: the script names an unknown object, or one of its
 * requests is rejected; *out is then NULL.
 */
MUST_USE enum err sim_run(struct sim_result **out,
                          struct plan *plan,
                          const struct sim_options *options,
                          struct diag *diag);

/* Free a result. NULL is allowed. */
void sim_result_free(struct sim_result *result);

/* Compute the tier by which starvation is measured, per task of a plan: the
 * best of its class and of all dependents, regardless of the plan's rules. */
void sim_find_worth(const struct plan *plan, uint32_t *worth);

/* Return stable names: "rank", "fair" ...; "finish-all", "finish-many"; "done",
 * "failed" ... */
const char *sim_policy_name(enum plan_policy policy);
const char *sim_goal_name(enum plan_goal goal);
const char *sim_end_name(enum sim_end end);

#endif /* SIM_SIM_H */
