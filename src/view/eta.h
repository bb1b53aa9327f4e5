/* SPDX-License-Identifier: MIT */
/*
 * eta: a forecast of the end of runs, with a range.
 *
 * The scheduler runs ahead on copies of the state (sim/ahead.h), up to ETA_RUNS
 * times with drawn durations, failures and rework. Half of these simulations
 * end by p50, 90 % of them by p90.
 *
 * The work is bounded: a larger plan is simulated fewer times, from some size
 * on not at all. The bound counts tasks and sessions instead of time, so the
 * result is the same on a slow machine. Only readers of a store use this, never
 * the scheduler.
 */
#ifndef VIEW_ETA_H
#define VIEW_ETA_H

#include "base/jsonw.h"
#include "engine/engine.h"

enum {
    ETA_RUNS = 200,        /* simulations */
    ETA_RUNS_MIN = 20,     /* of a large plan */
    ETA_WORK = 150000,     /* tasks loaded and sessions simulated; then no
                              more than ETA_RUNS_MIN: some 150 ms */
    ETA_TASKS_MAX = 20000, /* of all runs: no forecast beyond */
};

/* The forecast for a run. Times are from now, or from the start of a plan. */
struct eta_end {
    uint32_t runs; /* simulations; 0: no forecast */
    int64_t p50_ns;
    int64_t p90_ns;
    double sessions; /* mean number of sessions left, with those in flight */
    uint32_t left;   /* tasks that no simulation finished: parked, held or
                        blocked */
    double finishes; /* share of the simulations that parked no task */
};

/* Forecast a plan that starts at that wall clock time. No forecast: it is too
 * large or cannot be loaded. */
struct eta_end eta_of_plan(const struct plan *plan, int64_t start_ns);

struct eta;

/*
 * Forecast the unfinished runs of a reader's engine, at `wall_ns`. The result
 * does not refer to the engine. Free it with eta_free().
 */
struct eta *eta_new(const struct engine *engine, int64_t wall_ns);
/* Free it. NULL is allowed. */
void eta_free(struct eta *eta);

/* Return a copy, or NULL of NULL. */
struct eta *eta_copy(const struct eta *eta);

/* Return the forecast for the run with this number in the store; `runs` is 0 if
 * there is none. NULL is allowed. */
struct eta_end eta_find(const struct eta *eta, uint32_t number);

/* Return the time of the forecast, by the wall clock. */
int64_t eta_wall_ns(const struct eta *eta);

/* Append "about 14:32 (in 2h 10m), 90 % by 15:05", of a forecast at `wall_ns`;
 * and eta_add_left(). */
void eta_add_text(struct strbuf *out,
                  const struct eta_end *end,
                  int64_t wall_ns);

/* Append "2h 10m, 90 % within 2h 43m", of a plan; and eta_add_left(). */
void eta_add_range(struct strbuf *out, const struct eta_end *end);

/* Append the number of tasks left out, the share of simulations that
 * park a task and the number of simulations, unless they are as usual. */
void eta_add_left(struct strbuf *out, const struct eta_end *end);

/* Append a member of this name: an object, or null. */
void eta_add_json(struct jsonw *json,
                  const char *name,
                  const struct eta_end *end);

#endif /* VIEW_ETA_H */
