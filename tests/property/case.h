/* SPDX-License-Identifier: MIT */
/*
 * case: one random case through the scheduler and through the model, side by
 * side.
 *
 * A case is a seed, a number of tasks and events, and a mask of features. Its
 * plan, its sessions' ends and an operator's orders are drawn from the seed.
 * After every pass: the same starts in the same order, the same state of every
 * task, the scheduler's own books in order (sched_verify), a second scheduler
 * fed with the same events gives the same effects, and every task that is not
 * running has a reason that holds. Now and then the second one dies, and one
 * that is made from records takes its place. In the end the chaos stops and
 * the run must come to rest.
 */
#ifndef TESTS_PROPERTY_CASE_H
#define TESTS_PROPERTY_CASE_H

#include <stdbool.h>
#include <stdint.h>

enum case_feature {
    WITH_LIMITS = 1 << 0,
    WITH_GROUPS = 1 << 1,
    WITH_CLASSES = 1 << 2,
    WITH_BATCH = 1 << 3,
    WITH_FAILURES = 1 << 4,
    WITH_REWORK = 1 << 5,
    WITH_ORDERS = 1 << 6,
    WITH_ADDS = 1 << 7,
    WITH_SYNC = 1 << 8,
    WITH_RUNS = 1 << 9,
    WITH_REFUSALS = 1 << 10,
    WITH_UNITS = 1 << 11,
    WITH_CRASHES = 1 << 12,
    WITH_GUARDS = 1 << 13,
    WITH_SHARE = 1 << 14,
    WITH_PRIORITY = 1 << 15,
    WITH_GOAL = 1 << 16,
    WITH_KINDS = 1 << 17, /* of needs */
    WITH_LAST = 1 << 18,
    WITH_APPROVAL = 1 << 19,
    WITH_TIMES = 1 << 20,  /* before which nothing starts, and of snoozes */
    WITH_STOPS = 1 << 21,  /* of runs: by failures and deadlines */
    WITH_WISHES = 1 << 22, /* of operators: rerun, priority, first */
    WITH_ALL = (1 << 23) - 1,
};

struct case_recipe {
    uint64_t seed;
    uint32_t tasks;
    uint32_t events;
    uint32_t features;
};

/* Run a case. One that fails says why and ends the process; with `verbose`
 * everything is said at once, because the end may be a crash. */
void case_run(struct case_recipe recipe, bool verbose);

#endif /* TESTS_PROPERTY_CASE_H */
