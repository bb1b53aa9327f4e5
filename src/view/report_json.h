/* SPDX-License-Identifier: MIT */
/*
 * report_json: the input of a report, and the report as JSON.
 */
#ifndef VIEW_REPORT_JSON_H
#define VIEW_REPORT_JSON_H

#include "base/strbuf.h"
#include "view/forecast.h"
#include "view/stats.h"

/* Input of a report. All members are borrowed. */
struct report {
    const struct run_history *history;
    const struct stats *stats;
    const struct forecast *forecast;
    int64_t wall_ns; /* now */
};

/* Append one JSON object and a newline; see sluice-report(1). */
void report_json(struct strbuf *out, const struct report *report);

/* Return the state of the run in a word or two: "finished", "cancelled",
 * "running", "paused", "at rest", "not begun". */
const char *report_state(const struct report *report);

#endif /* VIEW_REPORT_JSON_H */
