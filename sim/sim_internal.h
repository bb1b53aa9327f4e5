/* SPDX-License-Identifier: MIT */
/* Declarations shared by the simulator's files. */
#ifndef SIM_SIM_INTERNAL_H
#define SIM_SIM_INTERNAL_H

#include "base/rng.h"
#include "plan/load.h"
#include "sim/future.h"
#include "sim/sim.h"

/* A running session. */
struct sim_session {
    uint64_t token; /* 0: the entry is free */
    struct task_id leader;
    uint32_t first_span; /* its spans are consecutive */
    uint32_t span_count;
    uint32_t lane;
    int64_t length_ns;
    uint32_t queue;   /* repository whose merge queue it is in, or PLAN_NONE */
    uint32_t round;   /* in the queue: how often it restarted */
    bool gated;       /* its gate has ended; it waits for those before it */
    bool decided;     /* in a queue: `end` is set */
    enum sim_end end; /* of its gate */
    int64_t later_ns; /* of SIM_END_LATER: the longest; 0: not given */
};

/* A line of the script about outcomes, with its name resolved. */
struct sim_planned {
    enum script_outcome outcome;
    uint32_t ix; /* of the task, or of the provider */
    uint32_t left;
    int64_t later_ns; /* of SCRIPT_LATER; 0: not given */
};

struct sim {
    struct plan *plan;
    const struct sim_options *options;
    struct sched *sched;
    struct load *load;
    struct load_run *run;
    struct sim_result *result;
    int64_t now_ns;

    /* Ends of sessions, requests of the script (item PLAN_NONE), and in a
     * replay what an operator does with a task (item). */
    struct futures futures;
    struct sim_session *sessions;
    uint32_t session_capacity;
    uint32_t *free_sessions; /* stack */
    uint32_t free_session_count;
    uint32_t *free_lanes; /* heap, smallest first */
    uint32_t free_lane_count;
    uint32_t lanes_used;
    uint32_t *attempts; /* per task of the plan */
    bool approvals;     /* a task needs an approval */
    uint32_t next_request;
    struct sim_planned *planned;
    uint32_t planned_count;

    /* Measures. */
    bool *deferred; /* per class: `defer`, before rules were off */
    uint32_t deferred_count;
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
/* Use up a planned outcome of a task, or of a provider; NULL: there is none. */
const struct sim_planned *
script_take(struct sim *sim, enum script_outcome outcome, uint32_t ix);
/* Whether the script approves a task; all others are approved at once. */
bool script_approves(const struct sim *sim, const char *task);

/* sim.c: allocate space for tasks that were added to the plan. */
void sim_reserve(struct sim *sim);
/* A session ends now; or its length from now on. */
void sim_finish(struct sim *sim, uint32_t session, bool cancelled);
void sim_push_end(struct sim *sim, uint32_t session);
/* In a replay: an operator acts on a task then, see replay_act(). */
void sim_push_act(struct sim *sim, uint32_t task, int64_t after_ns);
/* Return the outcome of a task in its session, by the script or the replay. */
enum sim_end
sim_end_of(struct sim *sim, struct sim_session *session, uint32_t task);

/* replay.c, if the options have one: the start; length and outcome of the
 * current attempt of a task, and after which time it runs again; its end; an
 * operator retries or skips it. */
void replay_begin(struct sim *sim);
int64_t replay_length_ns(const struct sim *sim, uint32_t task);
enum sim_end replay_end(const struct sim *sim, uint32_t task);
int64_t replay_later_ns(const struct sim *sim, uint32_t task);
void replay_ended(struct sim *sim, const struct sim_span *span);
void replay_act(struct sim *sim, uint32_t task);

/* queue.c: a session begins; its gate has ended, and it waits for others; it
 * has ended, and others may end now. */
void queue_join(struct sim *sim, struct sim_session *session);
bool queue_waits(struct sim *sim, uint32_t session);
void queue_left(struct sim *sim, const struct sim_session *session);

#endif /* SIM_SIM_INTERNAL_H */
