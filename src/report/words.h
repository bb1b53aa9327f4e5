/* SPDX-License-Identifier: MIT */
/*
 * words: wording shared by all report formats.
 */
#ifndef REPORT_WORDS_H
#define REPORT_WORDS_H

#include "report/report.h"

/* Append a duration with at most two units: "1 h 38 min", "2.4 s", "35 ms",
 * "0". */
void words_add_time(struct strbuf *out, int64_t duration_ns);

/* Append a wall-clock time, in local time: "2026-03-04 05:06:07 +0100". */
void words_add_moment(struct strbuf *out, int64_t wall_ns);

/* Describe a reason, an idle slot, a step in a few words. */
const char *words_reason(enum stats_reason reason);
const char *words_idle(enum stats_idle idle);
const char *words_step(enum stats_step step);

/* Describe the outcome of a session: "failed", "sent back". */
const char *words_outcome(enum run_history_outcome outcome);

/* Append the cause of a session's outcome: "timed out", "exit code 3". */
void words_add_cause(struct strbuf *out,
                     const struct run_history_session *session);

/* Append an integer in groups of three digits: "12 345". */
void words_add_number(struct strbuf *out, int64_t number);

/* Return the numbers below `count`, sorted by `compare` (NULL: ascending); the
 * caller frees them. */
uint32_t *words_order(uint32_t count,
                      int (*compare)(const void *, const void *, void *),
                      void *ctx);

/* Return a flag per session: on the critical path; the caller frees it. */
bool *words_on_path(const struct report *report);

/* Return the session numbers, longest first; the caller frees them. */
uint32_t *words_longest(const struct run_history *history);

#endif /* REPORT_WORDS_H */
