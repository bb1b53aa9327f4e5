/* SPDX-License-Identifier: MIT */
/*
 * sim: a plan run to its end under a virtual clock, with the very scheduler
 * that runs it for real.
 *
 * Sessions last as long as their estimate (or the draw around it, with
 * jitter), end as the script says (well, if it says nothing), and an operator
 * gives the requests of the script at their times. Equal inputs give equal
 * results.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "base/diag.h"
#include "core/why.h"
#include "plan/plan.h"
#include "sim/script.h"

/* The four measures against a flood of reviews; each can be switched off. */
enum sim_rule {
    SIM_RULE_PRIORITY = 1 << 0, /* tiers */
    SIM_RULE_CAP = 1 << 1,      /* the limit on reviews */
    SIM_RULE_DEFER = 1 << 2,    /* background work takes idle slots only */
    SIM_RULE_BATCH = 1 << 3,    /* several of a kind in one session */
    SIM_RULES_ALL = (1 << 4) - 1,
};

struct sim_options {
    enum plan_policy policy;
    uint32_t rules; /* enum sim_rule, or-ed */
    uint64_t seed;
    uint32_t jitter_percent; /* spread of durations around the estimate */
    const struct sim_script *script; /* NULL: nothing but the plan */
};

enum sim_end {
    SIM_END_DONE,
    SIM_END_FAILED,
    SIM_END_CHANGES,
    SIM_END_BLOCKED,
    SIM_END_CHECKPOINT,
    SIM_END_CANCELLED,
    SIM_END_REFUSED, /* only of real runs: a simulation counts them */
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
};

/* What tasks of one class went through. */
struct sim_class {
    uint32_t count; /* starts */
    int64_t wait_mean_ns;
    int64_t wait_p99_ns;
    int64_t wait_max_ns;
    int64_t starved_ns; /* time in which one was ready and could have run, had
                           not something of a worse tier held its place */
    int64_t busy_ns;    /* time of its sessions */
};

/* A task left over when nothing moves any more, and why. */
struct sim_left {
    uint32_t task;
    enum task_state state;
    bool revoked;   /* done, but its result is in doubt */
    struct why why; /* `task` and `limit` are indices of the plan */
};

struct sim_result {
    enum plan_policy policy;
    uint32_t rules;
    uint32_t task_count;
    int64_t makespan_ns;
    uint32_t session_count;
    uint32_t lane_count; /* most sessions at once */
    double slot_use;     /* share of the slots that worked, 0 to 1 */
    uint32_t refusals;
    uint32_t counts[TASK_STATE_COUNT]; /* tasks by their last state */
    struct sim_class *classes;         /* one for each class of the plan */
    uint32_t class_count;
    struct sim_span *spans; /* in order of start */
    uint32_t span_count;
    uint32_t span_capacity;
    int64_t *limit_wait_ns; /* per limit of the plan: time in which a task was
                               kept waiting by it */
    uint32_t limit_count;
    struct sim_left *left;
    uint32_t left_count;
};

/*
 * Simulate. The plan is changed by it: rules are switched off in it, and what
 * the script adds is added to it. Fails with ERR_INVALID when the script names
 * what is not there, or an order of it is refused; *out is then NULL.
 */
MUST_USE enum err sim_run(struct sim_result **out,
                          struct plan *plan,
                          const struct sim_options *options,
                          struct diag *diag);

/* Free a result. NULL is allowed. */
void sim_result_free(struct sim_result *result);

/* The tier by which starvation is measured, for each task of a plan: the best
 * of its own class and of all that need it, whatever the plan's rules. */
void sim_find_worth(const struct plan *plan, uint32_t *worth);

/* Stable names: "rank", "fair", "fifo"; "done", "failed" ... */
const char *sim_policy_name(enum plan_policy policy);
const char *sim_end_name(enum sim_end end);

#endif /* SIM_SIM_H */
