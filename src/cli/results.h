/* SPDX-License-Identifier: MIT */
/* results: output of simulation results, as text and as JSON. */
#ifndef CLI_RESULTS_H
#define CLI_RESULTS_H

#include "base/strbuf.h"
#include "cli/cli.h"
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

/* A row of a table. */
struct results_row {
    const char *label; /* NULL: its policy, goal and rules; of all rows, or of
                          none */
    const struct sim_result *result;
};

/* Append tables that compare results: as a whole, and their classes. */
void results_table(struct strbuf *out,
                   const struct plan *plan,
                   const struct results_row *rows,
                   uint32_t count);

/* Whether the run finished well: every task is done, or was skipped, or failed
 * and is optional, or comes last. */
bool results_finished(const struct plan *plan, const struct sim_result *result);

/* Append the tasks that are not done, if any, and those that were spared. */
void results_left(struct strbuf *out,
                  const struct plan *plan,
                  const struct sim_result *result);

/* Append a timeline for the terminal, after an empty line. */
void results_gantt(struct strbuf *out,
                   const struct plan *plan,
                   const struct sim_result *result);

/* Write the timelines of results as SVG; return the exit code. The labels of
 * rows are captions. */
int results_svg(const struct cli_command *command,
                const char *path,
                const struct plan *plan,
                const struct results_row *rows,
                uint32_t count);

/* The names of rules, by bit. */
enum { RESULTS_RULES = 4 };
extern const char *const results_rules[RESULTS_RULES];

/* A short string, passed by value. */
struct results_label {
    char text[80];
};

/* Return the label of a result in comparisons: "rank", "fifo, rules none". */
struct results_label results_label(const struct sim_result *result);

#endif /* CLI_RESULTS_H */
