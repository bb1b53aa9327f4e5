/* SPDX-License-Identifier: MIT */
/*
 * status: the state of a store as JSON: who schedules, and for each run its
 * limits, its sessions and its tasks. See sluice-status(1).
 */
#ifndef VIEW_STATUS_H
#define VIEW_STATUS_H

#include "view/glance.h"

/* The order in which states of tasks are counted and listed. */
extern const enum task_state status_order[TASK_STATE_COUNT];

/* Append one JSON object and a new line; the runs are those asked for. */
void status_add_json(struct strbuf *out,
                     const struct glance *glance,
                     const struct glance_options *options);

#endif /* VIEW_STATUS_H */
