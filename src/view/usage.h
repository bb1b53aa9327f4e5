/* SPDX-License-Identifier: MIT */
/*
 * usage: meters, what follows from them, and budgets, in words and as JSON,
 * for every command that shows them.
 */
#ifndef VIEW_USAGE_H
#define VIEW_USAGE_H

#include "base/strbuf.h"
#include "engine/engine.h"
#include "view/glance.h"

/* A line when usage is overridden. */
void usage_add_override(struct strbuf *out, const struct engine *engine);

/* Two lines for each provider that is stopped: why, and what helps. */
void usage_add_stopped(struct strbuf *out, const struct engine *engine);

/*
 * One line for each monitor of a run, indented by `indent`, with a line for
 * each of its meters below it.
 */
void usage_add_monitors(struct strbuf *out,
                        const struct engine *engine,
                        uint32_t run,
                        int64_t wall_ns,
                        const char *indent);

/* The state of a monitor: "paused until 22:01 by 5h at 85 %". */
void usage_add_state(struct strbuf *out,
                     const struct engine *engine,
                     uint32_t run,
                     uint32_t ix,
                     int64_t wall_ns);

/* A line for each budget of a run: what is spent, in use and left. */
void usage_add_budgets(struct strbuf *out,
                       const struct glance *glance,
                       uint32_t run,
                       const char *indent);

/* An amount of a budget in its unit: "4.50 USD", "20000 tokens". */
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

/* A time of the wall clock for people: "22:01:30", with the date when it is
 * not within a day of `wall_ns`. */
void usage_add_time(struct strbuf *out, int64_t at_ns, int64_t wall_ns);

#endif /* VIEW_USAGE_H */
