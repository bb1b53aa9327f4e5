/* SPDX-License-Identifier: MIT */
/*
 * forecast: the simulated plan of a run, to compare with the actual run.
 *
 * The simulator runs the stored plan, with its fragments, under its own policy
 * and cap. Every session succeeds and takes the time expected when the run was
 * submitted (its estimate, else the mean of its class in the store, else ten
 * minutes). No operator sends a request.
 */
#ifndef VIEW_FORECAST_H
#define VIEW_FORECAST_H

#include "view/hindsight.h"
#include "view/stats.h"

/* A done task: expected and actual time. */
struct forecast_task {
    uint32_t task;
    int64_t estimate_ns;
    int64_t took_ns; /* all its sessions except refused ones */
    bool guessed;    /* the plan has no estimate */
};

/* Read only. Starts as {0}. */
struct forecast {
    struct plan *plan;
    struct sim_result *result;   /* NULL: the simulation failed */
    struct diag diag;            /* reason of the failure */
    uint32_t guessed;            /* tasks of the plan without an estimate */
    struct forecast_task *tasks; /* largest difference first; no batches */
    uint32_t task_count;
    struct eta_end end; /* with drawn durations and outcomes; see eta.h */
};

void forecast_init(struct forecast *forecast, const struct stats *stats);
void forecast_release(struct forecast *forecast);

/* Whether the simulation completed every task. */
bool forecast_is_whole(const struct forecast *forecast);

#endif /* VIEW_FORECAST_H */
