/* SPDX-License-Identifier: MIT */
/*
 * usage: meters, their effects, and budgets, in words and as JSON, shared by
 * all commands that show them.
 */
#ifndef VIEW_USAGE_H
#define VIEW_USAGE_H

#include "base/strbuf.h"
#include "engine/engine.h"
#include "view/glance.h"

/* Append a line if usage is overridden. */
void usage_add_override(struct strbuf *out, const struct engine *engine);

/* Append two lines for each stopped provider: reason and remedy. */
void usage_add_stopped(struct strbuf *out, const struct engine *engine);

/*
 * Append one line for each monitor of a run, indented by `indent`, followed by
 * a line for each of its meters.
 */
void usage_add_monitors(struct strbuf *out,
                        const struct engine *engine,
                        uint32_t run,
                        int64_t wall_ns,
                        const char *indent);

/* Append the state of a monitor: "paused until 22:01:30 by 5h at 85 %". */
void usage_add_state(struct strbuf *out,
                     const struct engine *engine,
                     uint32_t run,
                     uint32_t ix,
                     int64_t wall_ns);

/* Append a line for each budget of a run: spent, total, expected costs. */
void usage_add_budgets(struct strbuf *out,
                       const struct glance *glance,
                       uint32_t run,
                       const char *indent);

/* Append a budget amount with its unit: "4.50 USD", "20000 tokens". */
void usage_add_amount(struct strbuf *out,
                      enum plan_limit_kind kind,
                      int64_t units);

/* The same as JSON arrays. */
void usage_json_monitors(struct strbuf *out,
                         const struct glance *glance,
                         uint32_t run);
void usage_json_budgets(struct strbuf *out,
                        const struct glance *glance,
                        uint32_t run);

/* Append a wall-clock time for display: "22:01:30", with the date if it is not
 * within a day of `wall_ns`. */
void usage_add_time(struct strbuf *out, int64_t at_ns, int64_t wall_ns);

#endif /* VIEW_USAGE_H */
