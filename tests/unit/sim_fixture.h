/* SPDX-License-Identifier: MIT */
/*
 * sim_fixture: one simulation, for the tests of the simulator.
 *
 * 1. sim_fixture_init() with the text of a plan.
 * 2. sim_fixture_line() for each line of the script, sim_fixture_add() for
 *    fragments; change `options` at will.
 * 3. sim_fixture_run(), or sim_fixture_refused() when it must fail.
 * 4. Look at `result`, and at spans by the id of their task.
 *
 * Times in checks are in seconds.
 */
#ifndef TESTS_UNIT_SIM_FIXTURE_H
#define TESTS_UNIT_SIM_FIXTURE_H

#include "base/duration.h"
#include "sim/sim.h"

struct sim_fixture {
    struct plan *plan;
    struct sim_script script;
    struct sim_options options;
    struct sim_result *result;
};

/* Read "sluice: 1, name: test" and this text; all rules, policy fifo. */
void sim_fixture_init(struct sim_fixture *fixture, const char *text);

/* Give everything back. */
void sim_fixture_release(struct sim_fixture *fixture);

/* Add a line to the script. */
void sim_fixture_line(struct sim_fixture *fixture, const char *line);

/* Add "at TIME add more.yaml", where that file has this text. */
void sim_fixture_add(struct sim_fixture *fixture,
                     const char *time,
                     const char *text);

/* Simulate; it must succeed. */
void sim_fixture_run(struct sim_fixture *fixture);

/* Simulate; it must fail with exactly this text. */
void sim_fixture_refused(struct sim_fixture *fixture, const char *text);

/* The span of that attempt of a task (1 is the first); NULL if none. */
const struct sim_span *
sim_fixture_span(const struct sim_fixture *fixture, const char *id, uint32_t n);

/* How often a task was started. */
uint32_t sim_fixture_count(const struct sim_fixture *fixture, const char *id);

/* An attempt of a task (1 is the first), when it ran and how it ended. */
struct sim_expected {
    uint32_t n;
    double start_s;
    double end_s;
    enum sim_end end;
};

/* Require that this attempt of a task went so. */
void sim_fixture_expect(const struct sim_fixture *fixture,
                        const char *id,
                        struct sim_expected expected);

/* Require that a task is left in this state for this reason. */
void sim_fixture_left(const struct sim_fixture *fixture,
                      const char *id,
                      enum task_state state,
                      enum why_code code);

/* What the tasks of a class went through. */
const struct sim_class *sim_fixture_class(const struct sim_fixture *fixture,
                                          const char *name);

#endif /* TESTS_UNIT_SIM_FIXTURE_H */
