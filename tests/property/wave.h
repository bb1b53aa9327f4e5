/* SPDX-License-Identifier: MIT */
/*
 * wave: a random plan with classes, tiers, lanes, deferral and resources, run
 * to its end by the scheduler under a virtual clock, with a look at everything
 * after each pass.
 *
 * A wave whose rules are broken says so, with its seed, and ends the process.
 */
#ifndef TESTS_PROPERTY_WAVE_H
#define TESTS_PROPERTY_WAVE_H

#include "plan/load.h"

enum wave_trouble {
    WAVE_EXACT,  /* every session takes its estimate and ends well */
    WAVE_JITTER, /* they take more or less */
    WAVE_ROUGH,  /* some fail, and an operator gives orders too */
};

struct wave_options {
    uint64_t seed; /* of the plan, and of what happens */
    bool issues;   /* only issues of some repositories, one at a time in each */
    bool more;     /* sched_plan_more() in place of sched_plan() */
    enum plan_policy policy;
    enum wave_trouble trouble;
    uint32_t restore_at; /* end of a session after which it goes on from
                            records; 0: never */
    uint32_t effort;     /* of each call of sched_plan() */
};

struct wave_result {
    int64_t makespan_ns;
    uint64_t starts;  /* a number that stands for all starts and their times */
    uint32_t planned; /* times that a task was held by a plan */
};

struct wave_result wave_run(struct wave_options options);

#endif /* TESTS_PROPERTY_WAVE_H */
