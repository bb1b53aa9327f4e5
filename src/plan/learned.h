/* SPDX-License-Identifier: MIT */
/*
 * learned: statistics of sessions of one kind, from which later ones are
 * estimated.
 *
 * The weight of all observations together is at most LEARNED_WINDOW: then older
 * ones fade. Starts as {0}.
 */
#ifndef PLAN_LEARNED_H
#define PLAN_LEARNED_H

#include "base/jsonw.h"
#include "base/macros.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { LEARNED_WINDOW = 200 };

/* Variance of the logarithm of a duration, as long as little is known. */
#define LEARNED_VARIANCE 0.25

/* Observations of one quantity, by weight. */
struct learned_sums {
    double weight;
    double mean;
    double square; /* sum of weighted squares of differences to the mean */
};

struct learned {
    struct learned_sums durations; /* ln(seconds) of a task alone in its
                                      session */
    struct learned_sums ratios;    /* ln(duration / the plan's own estimate) */
    /* Sessions with an outcome, by weight. */
    double ended;
    double failed;  /* failed, or lost */
    double changes; /* asked for changes; failed, for a gate with rework */
    /* Sessions with a known cost, by weight; means for one task. */
    double paid;
    double usd;
    double tokens;
};

/* Add an observation. One that is far off counts as a nearer one, so that a
 * session that exits at once does not spoil the mean. */
void learned_add(struct learned_sums *sums, double value, double weight);

/* Add the outcome of a task. */
void learned_add_outcome(struct learned *learned, bool failed, bool changes);

/* Add a session of `tasks` tasks that has cost this much. */
void learned_add_cost(struct learned *learned,
                      uint32_t tasks,
                      double usd,
                      double tokens);

/* Make statistics of the means of `count` observations, which is all that
 * earlier versions kept. */
struct learned
learned_of_means(double count, double seconds, double usd, double tokens);

/* Write an object without its unknown parts. */
void learned_write(const struct learned *learned, struct jsonw *json);

/* The reverse; false: invalid. */
MUST_USE bool learned_read(struct learned *out, const json_t *json);

#endif /* PLAN_LEARNED_H */
