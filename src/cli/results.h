/* SPDX-License-Identifier: MIT */
/*
 * results: the result of a simulation, for people and for programs.
 */
#ifndef CLI_RESULTS_H
#define CLI_RESULTS_H

#include "base/strbuf.h"
#include "sim/sim.h"

/* Why a task was left, in words: "blocked by api-12/merge". */
void results_reason(struct strbuf *out,
                    const struct plan *plan,
                    const struct sim_left *left);

/* One result, as text. */
void results_text(struct strbuf *out,
                  const struct plan *plan,
                  const struct sim_result *result);

/* One result as a JSON object, without a new line behind it. */
void results_json(struct strbuf *out,
                  const struct plan *plan,
                  const struct sim_result *result);

/* Several results side by side, a line each. */
void results_table(struct strbuf *out,
                   const struct plan *plan,
                   const struct sim_result *const *results,
                   uint32_t count);

/* The names of rules, by bit. */
enum { RESULTS_RULES = 4 };
extern const char *const results_rules[RESULTS_RULES];

/* A short text, as a plain value. */
struct results_label {
    char text[48];
};

/* What a result is called beside others: "rank", "fifo, rules none". */
struct results_label results_label(const struct sim_result *result);

#endif /* CLI_RESULTS_H */
