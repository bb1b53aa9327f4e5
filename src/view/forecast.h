/* SPDX-License-Identifier: MIT */
/*
 * forecast: what the simulator says about the plan of a run, beside what came
 * of it.
 *
 * The plan is simulated as it stands in the store, with what was added to it,
 * under its own policy and cap: every session lasts as long as it was expected
 * to when the run was submitted (its estimate, else the mean of its class in
 * the store, else ten minutes) and ends well, and nobody gives a request.
 */
#ifndef VIEW_FORECAST_H
#define VIEW_FORECAST_H

#include "view/stats.h"

/* A task that is done: what was expected of it, and what it took. */
struct forecast_task {
    uint32_t task;
    int64_t estimate_ns;
    int64_t took_ns; /* all its sessions but refused ones */
    bool guessed;    /* the plan has no estimate */
};

/* Only to be read. Starts as {0}. */
struct forecast {
    struct plan *plan;
    struct sim_result *result;   /* NULL: it cannot be simulated */
    struct diag diag;            /* why */
    uint32_t guessed;            /* tasks of the plan without an estimate */
    struct forecast_task *tasks; /* greatest difference first; no batches */
    uint32_t task_count;
};

void forecast_init(struct forecast *forecast, const struct stats *stats);
void forecast_release(struct forecast *forecast);

/* Whether every task would have been done. */
bool forecast_is_whole(const struct forecast *forecast);

#endif /* VIEW_FORECAST_H */
