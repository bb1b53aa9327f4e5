/* SPDX-License-Identifier: MIT */
/*
 * metrics: the runs of a store as Prometheus text: those that are unfinished,
 * and those that have finished within the last day, so that a collector sees
 * the last numbers of each run.
 *
 * Everything is read from the store, so it is the same with a scheduler and
 * without one.
 */
#ifndef VIEW_METRICS_H
#define VIEW_METRICS_H

#include "view/glance.h"

/* Append it. Fails like glance_take(). */
MUST_USE enum err metrics_add(struct strbuf *out,
                              const struct glance_options *options,
                              struct diag *diag);

#endif /* VIEW_METRICS_H */
