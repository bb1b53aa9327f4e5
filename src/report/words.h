/* SPDX-License-Identifier: MIT */
/*
 * words: how reports put things, whatever their form.
 */
#ifndef REPORT_WORDS_H
#define REPORT_WORDS_H

#include "report/report.h"

/* Append a length of time with two units at most: "1 h 38 min", "2.4 s",
 * "35 ms", "0". */
void words_add_time(struct strbuf *out, int64_t duration_ns);

/* Append a moment of the wall clock, in local time: "2026-03-04 05:06:07
 * +0100". */
void words_add_moment(struct strbuf *out, int64_t wall_ns);

/* What a reason, an idle slot, a step means, in a few words. */
const char *words_reason(enum stats_reason reason);
const char *words_idle(enum stats_idle idle);
const char *words_step(enum stats_step step);

/* How a session ended: "failed", "sent back". */
const char *words_outcome(enum run_history_outcome outcome);

/* Append what the cause of an end means: "timed out", "exit code 3". */
void words_add_cause(struct strbuf *out,
                     const struct run_history_session *session);

/* Append a whole number in groups of three: "12 345". */
void words_add_number(struct strbuf *out, int64_t number);

/* The numbers below `count` as `compare` sorts them (NULL: in their order);
 * the caller frees them. */
uint32_t *words_order(uint32_t count,
                      int (*compare)(const void *, const void *, void *),
                      void *ctx);

/* Whether a session is on the critical path; the caller frees the list. */
bool *words_on_path(const struct report *report);

/* The numbers of sessions, longest first; the caller frees them. */
uint32_t *words_longest(const struct run_history *history);

#endif /* REPORT_WORDS_H */
