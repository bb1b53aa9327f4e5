/* SPDX-License-Identifier: MIT */
/*
 * ahead: the real scheduler, run ahead of a state to its end, with drawn
 * durations and outcomes of sessions. For forecasts.
 *
 * The state is new plans, or records of runs in progress. A session takes a
 * log-normal time around the median of its task, fails or asks for changes
 * with the task's probabilities (see plan_outlook_of()), and the rules of the
 * plan decide the rest: retries, rework, merge queues. A session in flight
 * takes a remaining time under the condition that it has lasted this long. The
 * estimates themselves are uncertain, so their errors are drawn for all tasks
 * of a class together: the fewer sessions they were learned from, the larger.
 *
 * No operator acts: tasks that are parked or held in the state stay so. But a
 * task whose outcome would park it succeeds instead, and is counted: a course
 * that stops half-way says nothing about the end. For the same reason a task
 * that waits for approval is approved at once, and deadlines are ignored; a run
 * that is stopped in the state stays so. Budgets are ignored, hooks take no
 * time, lookahead orders like rank.
 *
 * Equal inputs and seeds give equal results, on every machine with equal
 * mathematical functions.
 */
#ifndef SIM_AHEAD_H
#define SIM_AHEAD_H

#include "base/diag.h"
#include "core/sched.h"
#include "plan/plan.h"

/* A limit whose maximum is not the plan's, now or later. */
struct ahead_limit {
    uint32_t limit; /* of the plan */
    int64_t at_ns;  /* when it takes effect; at most the time of the state:
                       now */
    int64_t max;
};

/* A run of the state. Everything is borrowed. */
struct ahead_run {
    const struct plan *plan;
    /* See struct load_options. */
    const char *folder;
    int64_t start_ns;
    int64_t clock_offset_ns;
    int64_t not_before_ns; /* INT64_MIN: none */
    /* One per task, by plan index, as in struct load_options. NULL: new. */
    const struct sched_record *records;
    const struct sched_run_record *record; /* NULL: new */
    const int64_t *elapsed_ns; /* per task: how long its session has lasted, if
                                  it is in flight; NULL: nothing is */
    const struct plan_outlook *outlooks; /* per task; NULL: of the plan */
    const struct ahead_limit *limits;    /* in order of the plan */
    uint32_t limit_count;
};

struct ahead_provider {
    const char *name;
    struct sched_provider_record record;
};

/* The state. Borrowed while the object exists. */
struct ahead_state {
    int64_t now_ns; /* 0 for new plans */
    const struct ahead_run *runs;
    uint32_t run_count;
    const struct ahead_provider *providers;
    uint32_t provider_count;
};

/* The end of a run in one draw. */
struct ahead_end {
    int64_t end_ns;    /* of its last session, from now; 0: none */
    uint32_t sessions; /* that started or were in flight */
    uint32_t parked;   /* outcomes that would have parked a task */
    uint32_t left;     /* tasks that are neither done, skipped nor cancelled,
                          nor failed and optional */
};

struct ahead;

/* Prepare draws from a state; free it with ahead_free(). */
struct ahead *ahead_new(const struct ahead_state *state);

/* Free it. NULL is allowed. */
void ahead_free(struct ahead *ahead);

/*
 * Draw one course of events; fill in `ends`, one per run of the state. Add the
 * work that this took to *work, in tasks loaded and sessions simulated: some
 * microseconds each. ERR_CORRUPT: an impossible record.
 */
MUST_USE enum err ahead_draw(struct ahead *ahead,
                             uint64_t seed,
                             struct ahead_end *ends,
                             uint64_t *work,
                             struct diag *diag);

/*
 * Return the remaining time of a session of log-normal length that has lasted
 * `elapsed_ns`. `unit` is drawn evenly from [0, 1).
 */
int64_t ahead_remaining_ns(int64_t median_ns,
                           double sigma,
                           int64_t elapsed_ns,
                           double unit);

#endif /* SIM_AHEAD_H */
