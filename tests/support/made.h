/* SPDX-License-Identifier: MIT */
/*
 * made: a plan and the result of its simulation, made by hand, for the tests
 * of charts. There are the classes implement, gate, merge (tier 0) and review
 * (tier 1). Times are given in seconds.
 */
#ifndef TESTS_SUPPORT_MADE_H
#define TESTS_SUPPORT_MADE_H

#include "sim/sim.h"

#include <stdbool.h>
#include <stdint.h>

enum made_class {
    MADE_IMPLEMENT,
    MADE_GATE,
    MADE_MERGE,
    MADE_REVIEW,
    MADE_CLASS_COUNT,
};

struct made {
    struct plan plan;
    struct sim_result result;
    struct plan_class classes[MADE_CLASS_COUNT];
    struct sim_class class_results[MADE_CLASS_COUNT];
    uint32_t task_capacity;
};

/* Where and when a task runs. */
struct made_when {
    uint32_t lane;
    int64_t ready_s;
    int64_t start_s;
    int64_t end_s;
};

void made_init(struct made *made);
void made_release(struct made *made);

/* Add a task that runs once, in a session of its own; return its span. */
struct sim_span *made_add(struct made *made,
                          const char *id,
                          enum made_class class_ix,
                          struct made_when when);

/* Set makespan and use from the spans. */
void made_settle(struct made *made);

/* The flood of reviews: first come, or as sluice runs it. */
void made_flood(struct made *made, bool first_come);

#endif /* TESTS_SUPPORT_MADE_H */
