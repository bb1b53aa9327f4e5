/* SPDX-License-Identifier: MIT */
/* results: output of simulation results, as text and as JSON. */
#ifndef CLI_RESULTS_H
#define CLI_RESULTS_H

#include "base/strbuf.h"
#include "sim/sim.h"

/* Append why a task was left: "blocked by api-12/merge". */
void results_reason(struct strbuf *out,
                    const struct plan *plan,
                    const struct sim_left *left);

/* Append one result as text. */
void results_text(struct strbuf *out,
                  const struct plan *plan,
                  const struct sim_result *result);

/* Append one result as a JSON object, without a newline. */
void results_json(struct strbuf *out,
                  const struct plan *plan,
                  const struct sim_result *result);

/* Append a table that compares results, one per line. */
void results_table(struct strbuf *out,
                   const struct plan *plan,
                   const struct sim_result *const *results,
                   uint32_t count);

/* The names of rules, by bit. */
enum { RESULTS_RULES = 4 };
extern const char *const results_rules[RESULTS_RULES];

/* A short string, passed by value. */
struct results_label {
    char text[48];
};

/* Return the label of a result in comparisons: "rank", "fifo, rules none". */
struct results_label results_label(const struct sim_result *result);

#endif /* CLI_RESULTS_H */
