/* SPDX-License-Identifier: MIT */
/*
 * metrics: the runs of a store in Prometheus text format: unfinished runs, and
 * runs that finished within the last day, so that a collector sees the final
 * numbers of each run.
 *
 * All values come from the store, so they are the same with and without a
 * scheduler.
 */
#ifndef VIEW_METRICS_H
#define VIEW_METRICS_H

#include "view/glance.h"

/* Append the metrics. Fails like glance_take(). */
MUST_USE enum err metrics_add(struct strbuf *out,
                              const struct glance_options *options,
                              struct diag *diag);

#endif /* VIEW_METRICS_H */
