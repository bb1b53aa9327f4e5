/* SPDX-License-Identifier: MIT */
/*
 * issues: when the issues of a plan were complete.
 *
 * An issue is a group, or a task without a group. It is complete when the last
 * of its foreground tasks is done. Background tasks (of a class with `defer`,
 * blocking no task of another class that is as urgent) do not count, nor do
 * the gate of a base, tasks that come last and tasks that only a failure
 * starts; an issue with no other task is none.
 */
#ifndef SIM_ISSUES_H
#define SIM_ISSUES_H

#include "plan/plan.h"

struct sim_span;

/* A plain value. */
struct issues {
    uint32_t count;
    uint32_t done;   /* that are complete */
    int64_t mean_ns; /* mean completion of the complete ones; -1: none is */
    int64_t half_ns; /* when half of all issues were complete; -1: never */
};

/* Return for each class whether the plan defers it: `deferred` with its first
 * `count` entries, and the classes of the plan beyond. The caller frees it. */
bool *issues_deferred(const struct plan *plan, bool *deferred, uint32_t count);

/* Measure the spans of a run or a simulation. `deferred` is of
 * issues_deferred(); `done`: per task, whether it is done. */
struct issues issues_of(const struct plan *plan,
                        const bool *deferred,
                        const bool *done,
                        const struct sim_span *spans,
                        uint32_t span_count);

/* Return the tasks of a plan so that dependents precede their needs. The caller
 * frees the array. */
uint32_t *issues_order(const struct plan *plan);

#endif /* SIM_ISSUES_H */
