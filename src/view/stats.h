/* SPDX-License-Identifier: MIT */
/*
 * stats: numbers computed from a history. docs/report.md defines each of them;
 * the comments here are the short form.
 *
 * Slot time is counted per session: a session has its slot from the claim to
 * its exit. Waiting is counted per task: two tasks that wait for a minute have
 * waited two. Invariants:
 *
 *   working_ns + idle_ns == offered_ns + over_ns
 *   the segments of the critical path are contiguous from 0 to the end
 */
#ifndef VIEW_STATS_H
#define VIEW_STATS_H

#include "sim/sim.h"
#include "view/run_history.h"

/* Why an unfinished task was not in a session. */
enum stats_reason {
    STATS_NEEDS,    /* a need was not done */
    STATS_BACKOFF,  /* pause before its next attempt */
    STATS_PERSON,   /* parked, failed or not approved */
    STATS_HELD,     /* ready, held by a request */
    STATS_PAUSED,   /* ready, run paused by a request */
    STATS_SLOT,     /* ready, all slots in use (or the cap was 0) */
    STATS_LIMIT,    /* ready, slot free, another limit exhausted */
    STATS_DEFERRED, /* slot or limit, for background work */
    STATS_PROVIDER, /* ready and fits; its provider refused last */
    STATS_OTHER,    /* ready and fits: no cause in the run */
    STATS_REASONS,
};

/* Why a slot was idle. */
enum stats_idle {
    STATS_IDLE_KEPT, /* tasks were ready, but kept back */
    STATS_IDLE_NONE, /* no task was ready */
    STATS_IDLE_REST, /* all progress needed an operator */
    STATS_IDLES,
};

/* Totals of the sessions of a class or a group. */
struct stats_sum {
    uint32_t sessions;
    uint32_t confined; /* of them, by a sandbox */
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
    int64_t waits_ns[STATS_REASONS]; /* summed over tasks */
    uint32_t starts;                 /* of tasks; each task of a batch counts */
    int64_t ready_mean_ns;           /* from ready to claim */
    int64_t ready_p99_ns;
    int64_t ready_max_ns;
};

/* A group, or a task without a group. */
struct stats_group {
    struct stats_sum sum;
    uint32_t first_task;
    uint32_t tasks;
    uint32_t done;
    int64_t begun_ns; /* -1: no session has begun */
    int64_t ended_ns; /* of its last session */
};

/* A group of the plan with all its parts. */
struct stats_whole {
    uint32_t tasks;
    uint32_t done;
    bool has_parts;
};

struct stats_task {
    struct stats_sum sum; /* of sessions that have it as first task */
    int64_t ready_ns;     /* total time ready but not running */
    int64_t begun_ns;     /* first claim; -1: never */
    int64_t ended_ns;     /* of its last session; -1: never */
};

/* Failed sessions of one class and one cause. */
struct stats_failure {
    uint32_t class_ix;
    enum run_history_outcome outcome;
    const char *cause;
    uint32_t count;
    int64_t lost_ns; /* their slot time */
    uint32_t last;   /* the newest of these sessions */
};

/* Kinds of segments of the critical path. */
enum stats_step {
    STATS_STEP_WORK,     /* a session of the task */
    STATS_STEP_PASS,     /* from an exit to the next claim: the scheduler */
    STATS_STEP_BACKOFF,  /* pause before its next attempt */
    STATS_STEP_PERSON,   /* parked or failed, until an operator acted */
    STATS_STEP_PROVIDER, /* refused, until the next attempt */
    STATS_STEP_KEPT,     /* ready, kept back by a request or a limit */
    STATS_STEP_ABSENT,   /* not yet part of the run */
    STATS_STEP_TAIL,     /* after the last session */
    STATS_STEPS,
};

/* How a path segment depends on the segment before. */
enum stats_link {
    STATS_LINK_NONE,
    STATS_LINK_NEED,   /* the need that finished last */
    STATS_LINK_SLOT,   /* the session that freed capacity */
    STATS_LINK_SELF,   /* its own previous session */
    STATS_LINK_REWORK, /* the session that requested changes */
};

struct stats_segment {
    enum stats_step step;
    enum stats_link link; /* of this WORK to the previous WORK */
    uint32_t task;
    uint32_t session; /* only for WORK */
    int64_t start_ns;
    int64_t end_ns;
};

/* The cap from a moment on, from any source. */
struct stats_cap {
    int64_t at_ns;
    int64_t max; /* PLAN_UNLIMITED: none */
};

/* Read only. Starts as {0}. */
struct stats {
    const struct run_history *history;
    int64_t offered_ns; /* the cap over time; without a cap: time used */
    int64_t working_ns;
    int64_t over_ns; /* sessions above a lowered cap */
    int64_t idle_ns[STATS_IDLES];
    double slot_use;   /* working / (offered + over); 0 without slots */
    int64_t review_ns; /* working time of reviews */
    uint32_t lane_count;
    uint32_t *lanes;        /* per session: lowest slot that was free */
    struct stats_cap *caps; /* over time; the first starts at 0 */
    uint32_t cap_count;
    uint32_t states[TASK_STATE_COUNT];
    struct stats_sum sum;
    int64_t waits_ns[STATS_REASONS];
    int64_t starved_ns;      /* sum over the classes */
    int64_t *limit_waits_ns; /* per limit of the plan, for STATS_LIMIT */
    struct stats_class *classes;
    struct stats_group *groups; /* groups with tasks, in plan order */
    uint32_t group_count;
    struct stats_whole *wholes; /* per group of the plan */
    struct stats_task *tasks;
    struct stats_failure *failures; /* most frequent first */
    uint32_t failure_count;
    uint32_t retries;           /* sessions after a failed or lost session */
    uint32_t restarts;          /* of merges, in their queues */
    struct stats_segment *path; /* first to last */
    uint32_t path_count;
    int64_t path_ns[STATS_STEPS];
    struct sim_result *chart; /* for sim/svg.h and sim/gantt.h */
};

/* Compute all statistics. The history must outlive them. */
void stats_init(struct stats *stats, const struct run_history *history);
void stats_release(struct stats *stats);

/*
 * Return the groups that have parts or are parts, each after its parent, in
 * plan order, and their number. The caller frees the list.
 */
uint32_t *stats_tree(const struct stats *stats, uint32_t *count_out);

/* Number of the parents of a group. */
uint32_t stats_depth(const struct plan *plan, uint32_t group);

/* Stable names: "needs", "backoff" ...; "nothing-ready" ...; "work" ... */
const char *stats_reason_name(enum stats_reason reason);
const char *stats_idle_name(enum stats_idle idle);
const char *stats_step_name(enum stats_step step);
const char *stats_link_name(enum stats_link link);

/* Number of sessions of a sum without outcome done, checkpoint or later. */
uint32_t stats_bad(const struct stats_sum *sum);

/* All slot time: offered, and used beyond that. */
int64_t stats_slots_ns(const struct stats *stats);

/* The cap at the end; PLAN_UNLIMITED: none. */
int64_t stats_last_cap(const struct stats *stats);

/* Name of a group: its id, or the id of its only task. */
const char *stats_group_id(const struct stats *stats, uint32_t group);

#endif /* VIEW_STATS_H */
