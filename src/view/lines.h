/* SPDX-License-Identifier: MIT */
/*
 * lines: events as lines, for `sluice run` in a pipe.
 */
#ifndef VIEW_LINES_H
#define VIEW_LINES_H

#include "base/strbuf.h"
#include "core/sched.h"
#include "store/batch.h"

#include <stdbool.h>

/*
 * Append one line for people: local time, what happened, to which task, why.
 * Returns false and appends nothing for an event that is not worth a line.
 */
bool lines_add(struct strbuf *out, const struct store_event *event);

/*
 * Append the date of a moment and a blank, unless it is of the same day as
 * `day_ns`, in local time. Both are wall-clock times; returns whether it did.
 */
bool lines_add_date(struct strbuf *out, int64_t wall_ns, int64_t day_ns);

/*
 * Append one line of JSON: event (its number), time, run (the id given here,
 * or null), kind, and the members of the event's data.
 */
void lines_add_json(struct strbuf *out,
                    const struct store_event *event,
                    const char *run);

/* Append how many tasks are in some states, without those that have none: "10
 * done, 2 parked". `before` stands before the first, a comma before others. */
void lines_add_counts(struct strbuf *out,
                      const char *before,
                      const uint32_t *counts,
                      const enum task_state *order,
                      uint32_t order_count);

#endif /* VIEW_LINES_H */
