/* SPDX-License-Identifier: MIT */
/*
 * lines: one-line descriptions of events, for `sluice run` in a pipe.
 */
#ifndef VIEW_LINES_H
#define VIEW_LINES_H

#include "base/strbuf.h"
#include "core/sched.h"
#include "store/batch.h"

#include <stdbool.h>

/*
 * Append one line for the user: local time, event, task, reason. Return false
 * and append nothing if the event is not worth a line.
 */
bool lines_add(struct strbuf *out, const struct store_event *event);

/*
 * Append the date and a blank unless `wall_ns` and `day_ns`, both wall-clock
 * times, are on the same local day. Return whether it did.
 */
bool lines_add_date(struct strbuf *out, int64_t wall_ns, int64_t day_ns);

/*
 * Append one line of JSON: event (its number), time, run (`run`, or null),
 * kind, and the members of the event data.
 */
void lines_add_json(struct strbuf *out,
                    const struct store_event *event,
                    const char *run);

/* Append the task count of each state that has tasks: "10 done, 2 parked".
 * `before` precedes the first, a comma the others. */
void lines_add_counts(struct strbuf *out,
                      const char *before,
                      const uint32_t *counts,
                      const enum task_state *order,
                      uint32_t order_count);

#endif /* VIEW_LINES_H */
