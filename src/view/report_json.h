/* SPDX-License-Identifier: MIT */
/*
 * report_json: the input of a report, and the report as JSON.
 */
#ifndef VIEW_REPORT_JSON_H
#define VIEW_REPORT_JSON_H

#include "base/strbuf.h"
#include "view/forecast.h"
#include "view/labels.h"
#include "view/stats.h"

/* Input of a report. All members are borrowed. */
struct report {
    const struct run_history *history;
    const struct stats *stats;
    const struct forecast *forecast;
    const struct hindsight *hindsight; /* of earlier runs */
    int64_t wall_ns;                   /* now */
    struct labels labels;              /* of the tasks and groups to list */
};

/* Whether a task is listed. */
bool report_lists(const struct report *report, uint32_t task);

/* Whether a group of the statistics (an index) is listed: one of its tasks is.
 * `listed`: from report_groups(), per group of the plan; the caller frees it.
 */
bool *report_groups(const struct report *report);
bool report_lists_group(const struct report *report,
                        const bool *listed,
                        uint32_t group);

/* Return the groups of the plan to list as a tree; see stats_tree(). */
uint32_t *report_tree(const struct report *report, uint32_t *count_out);

/* Append one JSON object and a newline; see sluice-report(1). */
void report_json(struct strbuf *out, const struct report *report);

/* Return the state of the run in a word or two: "finished", "cancelled",
 * "running", "paused", "stopped", "at rest", "not begun". */
const char *report_state(const struct report *report);

#endif /* VIEW_REPORT_JSON_H */
