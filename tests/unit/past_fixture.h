/* SPDX-License-Identifier: MIT */
/*
 * past_fixture: a history made by hand, or out of a simulation, for the tests
 * of what is worked out from histories. Times are given in seconds.
 *
 * 1. past_init() with the text of a plan.
 * 2. Say what happened, in order.
 * 3. past_settle(), then look at `stats`.
 */
#ifndef TESTS_UNIT_PAST_FIXTURE_H
#define TESTS_UNIT_PAST_FIXTURE_H

#include "view/stats.h"

struct past {
    struct run_history history;
    struct stats stats;
};

/* Read "sluice: 1, name: test" and this text. */
void past_init(struct past *past, const char *text);

/* The same with a plan that is there, which it takes. */
void past_init_take(struct past *past, struct plan *plan_take);
void past_release(struct past *past);

/* Index of a task. */
uint32_t past_task(const struct past *past, const char *id);

/* A task comes to a state. */
void past_move(struct past *past,
               double at_s,
               const char *id,
               enum task_state to);

/* A session of a task is claimed; it has the next number. */
void past_claim(struct past *past, double at_s, const char *id);

/* The session of a task ends, and the task comes to a state. */
void past_end(struct past *past,
              double at_s,
              const char *id,
              enum run_history_outcome outcome,
              enum task_state to);

/* An order: HISTORY_LIMIT of the cap, HISTORY_PAUSE ...; `id` of a task, or
 * NULL. */
void past_order(struct past *past,
                double at_s,
                enum run_history_kind kind,
                const char *id,
                int64_t max);

/* Work the stats out, and require what always holds. Sessions that have not
 * ended go on until then. */
void past_settle(struct past *past, double now_s);

/* Tell the history that a simulation went through. */
void past_replay(struct past *past, const struct sim_result *result);

/* Seconds in nanoseconds. */
int64_t past_ns(double seconds);

#endif /* TESTS_UNIT_PAST_FIXTURE_H */
