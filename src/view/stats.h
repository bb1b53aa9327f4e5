/* SPDX-License-Identifier: MIT */
/*
 * stats: what a history amounts to, in numbers. docs/report.md says what each
 * one means; the comments here are the short form.
 *
 * Slot time is counted by sessions: a session has its slot from the claim to
 * its end. Waiting is counted by tasks: two tasks that wait for a minute have
 * waited two. These always hold:
 *
 *   working_ns + idle_ns == offered_ns + over_ns
 *   the segments of the critical path follow one another from 0 to the end
 */
#ifndef VIEW_STATS_H
#define VIEW_STATS_H

#include "sim/sim.h"
#include "view/run_history.h"

/* Why a task that had not ended was not in a session. */
enum stats_reason {
    STATS_NEEDS,    /* something it needs was not done */
    STATS_BACKOFF,  /* pause before its next try */
    STATS_PERSON,   /* parked or failed */
    STATS_HELD,     /* ready, held by a request */
    STATS_PAUSED,   /* ready, and the run was paused by a request */
    STATS_SLOT,     /* ready, and every slot was taken (or the cap was 0) */
    STATS_LIMIT,    /* ready, a slot was free, another limit was full */
    STATS_DEFERRED, /* as the two before, of background work */
    STATS_PROVIDER, /* ready and it fits; its provider refused last */
    STATS_OTHER,    /* ready and it fits: nothing in the run explains it */
    STATS_REASONS,
};

/* What a slot without a session was idle for. */
enum stats_idle {
    STATS_IDLE_KEPT, /* tasks were ready, and kept back */
    STATS_IDLE_NONE, /* none was ready */
    STATS_IDLE_REST, /* nothing could go on without a person */
    STATS_IDLES,
};

/* Sessions of a class, or of a group, added up. */
struct stats_sum {
    uint32_t sessions;
    uint32_t outcomes[HISTORY_OUTCOMES];
    int64_t working_ns;
    int64_t longest_ns;
    int64_t input_tokens;
    int64_t output_tokens;
    double usd;
};

struct stats_class {
    struct stats_sum sum;
    uint32_t tasks;
    uint32_t done;
    int64_t starved_ns;
    int64_t waits_ns[STATS_REASONS]; /* time of tasks */
    uint32_t starts;                 /* of tasks, batches counted one by one */
    int64_t ready_mean_ns;           /* from being ready to being claimed */
    int64_t ready_p99_ns;
    int64_t ready_max_ns;
};

/* A group, or a task that is in none. */
struct stats_group {
    struct stats_sum sum;
    uint32_t first_task;
    uint32_t tasks;
    uint32_t done;
    int64_t begun_ns; /* -1: nothing of it has begun */
    int64_t ended_ns; /* of its last session */
};

struct stats_task {
    struct stats_sum sum; /* of sessions of which it is the first task */
    int64_t ready_ns;     /* time it was ready and did not run, all in all */
    int64_t begun_ns;     /* first claim; -1: never */
    int64_t ended_ns;     /* of its last session; -1: never */
};

/* Sessions that did not end well, of one class and one cause. */
struct stats_failure {
    uint32_t class_ix;
    enum run_history_outcome outcome;
    const char *cause;
    uint32_t count;
    int64_t lost_ns; /* slot time of them */
    uint32_t last;   /* the newest session of them */
};

/* What happened in a stretch of the critical path. */
enum stats_step {
    STATS_STEP_WORK,     /* a session of the task */
    STATS_STEP_PASS,     /* from one end to the next claim: the scheduler */
    STATS_STEP_BACKOFF,  /* pause before its next try */
    STATS_STEP_PERSON,   /* parked or failed, until somebody acted */
    STATS_STEP_PROVIDER, /* refused, until it was tried again */
    STATS_STEP_KEPT,     /* ready, and kept back by a request or a limit */
    STATS_STEP_ABSENT,   /* it was not part of the run yet */
    STATS_STEP_TAIL,     /* after the last session */
    STATS_STEPS,
};

/* How a step of the path hangs on the one before. */
enum stats_link {
    STATS_LINK_NONE,
    STATS_LINK_NEED,   /* the need that ended last */
    STATS_LINK_SLOT,   /* the session that made room */
    STATS_LINK_SELF,   /* its own session before */
    STATS_LINK_REWORK, /* the session that sent it back */
};

struct stats_segment {
    enum stats_step step;
    enum stats_link link; /* of this WORK with the WORK before it */
    uint32_t task;
    uint32_t session; /* of WORK */
    int64_t start_ns;
    int64_t end_ns;
};

/* The cap from a moment on, whoever set it. */
struct stats_cap {
    int64_t at_ns;
    int64_t max; /* PLAN_UNLIMITED: none */
};

/* Only to be read. Starts as {0}. */
struct stats {
    const struct run_history *history;
    int64_t offered_ns; /* the cap over time; without a cap: what was used */
    int64_t working_ns;
    int64_t over_ns; /* sessions beyond a cap that was lowered */
    int64_t idle_ns[STATS_IDLES];
    double slot_use;   /* working / (offered + over); 0 without slots */
    int64_t review_ns; /* working time of reviews */
    uint32_t lane_count;
    uint32_t *lanes;        /* of each session: lowest slot that was free */
    struct stats_cap *caps; /* over time; the first one is from 0 on */
    uint32_t cap_count;
    uint32_t states[TASK_STATE_COUNT];
    struct stats_sum sum;
    int64_t waits_ns[STATS_REASONS];
    int64_t starved_ns;      /* sum over the classes */
    int64_t *limit_waits_ns; /* per limit of the plan, of STATS_LIMIT */
    struct stats_class *classes;
    struct stats_group *groups; /* those with a task, in order of the plan */
    uint32_t group_count;
    struct stats_task *tasks;
    struct stats_failure *failures; /* most frequent first */
    uint32_t failure_count;
    uint32_t retries;           /* sessions after one that failed or was lost */
    struct stats_segment *path; /* first to last */
    uint32_t path_count;
    int64_t path_ns[STATS_STEPS];
    struct sim_result *chart; /* for sim/svg.h and sim/gantt.h */
};

/* Work everything out. The history must outlive the stats. */
void stats_init(struct stats *stats, const struct run_history *history);
void stats_release(struct stats *stats);

/* Stable names: "needs", "backoff" ...; "nothing-ready" ...; "work" ... */
const char *stats_reason_name(enum stats_reason reason);
const char *stats_idle_name(enum stats_idle idle);
const char *stats_step_name(enum stats_step step);
const char *stats_link_name(enum stats_link link);

/* All that sessions of a sum ended with, but for done and checkpoints. */
uint32_t stats_bad(const struct stats_sum *sum);

/* All slot time: what was offered, and what was used beyond it. */
int64_t stats_slots_ns(const struct stats *stats);

/* The cap at the end; PLAN_UNLIMITED: none. */
int64_t stats_last_cap(const struct stats *stats);

/* What a group is called: its id, or that of its only task. */
const char *stats_group_id(const struct stats *stats, uint32_t group);

#endif /* VIEW_STATS_H */
