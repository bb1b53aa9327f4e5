/* SPDX-License-Identifier: MIT */
/* Declarations shared by the simulator's files. */
#ifndef SIM_SIM_INTERNAL_H
#define SIM_SIM_INTERNAL_H

#include "base/rng.h"
#include "plan/load.h"
#include "sim/sim.h"

/* A future event: the end of a session, or a request. */
struct sim_future {
    int64_t at_ns;
    uint64_t seq;     /* creation order; breaks ties */
    uint32_t session; /* ID_NONE: the next request of the script */
    uint64_t token;   /* of the session; differs if it was cancelled */
};

/* A running session. */
struct sim_session {
    uint64_t token; /* 0: the entry is free */
    struct task_id leader;
    uint32_t first_span; /* its spans are consecutive */
    uint32_t span_count;
    uint32_t lane;
};

/* A line of the script about outcomes, with its name resolved. */
struct sim_planned {
    enum script_outcome outcome;
    uint32_t ix; /* of the task, or of the provider */
    uint32_t left;
};

struct sim {
    struct plan *plan;
    const struct sim_options *options;
    struct sched *sched;
    struct load *load;
    struct load_run *run;
    struct sim_result *result;
    int64_t now_ns;
    uint64_t planned_seq;

    struct sim_future *futures; /* heap */
    uint32_t future_count;
    uint32_t future_capacity;
    struct sim_session *sessions;
    uint32_t session_capacity;
    uint32_t *free_sessions; /* stack */
    uint32_t free_session_count;
    uint32_t *free_lanes; /* heap, smallest first */
    uint32_t free_lane_count;
    uint32_t lanes_used;
    uint32_t *attempts; /* per task of the plan */
    uint32_t next_request;
    struct sim_planned *planned;
    uint32_t planned_count;

    /* Measures. */
    uint32_t *worth;       /* tier per task by which starvation is measured */
    uint32_t worth_kinds;  /* number of different tiers among the classes */
    uint32_t worth_best;   /* the best tier */
    double slot_ns;        /* integral of slots offered over time */
    double busy_ns;        /* integral of slots used over time */
    double slot_ns_at_end; /* slot_ns when the last session ended */
};

/* measure.c */
void measure_prepare(struct sim *sim);
void measure_interval(struct sim *sim, int64_t length_ns);
void measure_finish(struct sim *sim);

/* script_run.c */
enum err script_resolve(struct sim *sim, struct diag *diag);
enum err script_next(struct sim *sim, struct diag *diag);
bool script_take(struct sim *sim, enum script_outcome outcome, uint32_t ix);

/* sim.c: allocate space for tasks that were added to the plan. */
void sim_reserve(struct sim *sim);

#endif /* SIM_SIM_INTERNAL_H */
