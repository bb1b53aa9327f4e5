/* SPDX-License-Identifier: MIT */
/*
 * labels: a selection of tasks by the labels of the plan, as `--label` makes
 * it, and the fields that tasks and groups have for people.
 */
#ifndef VIEW_LABELS_H
#define VIEW_LABELS_H

#include "base/jsonw.h"
#include "plan/plan.h"

enum { LABELS_WANTED_MAX = 16 };

/* Labels that a task must have, all of them. Starts as {0}: every task. The
 * strings are borrowed. */
struct labels {
    const char *names[LABELS_WANTED_MAX];
    uint32_t count;
};

/* Whether a task has all labels: its own, or of its group or a parent. */
bool labels_match(const struct labels *labels, const struct plan_task *task);

/* Append the labels of a selection: "urgent, backend". */
void labels_add(struct strbuf *out, const struct labels *labels);

/* Append the labels of a task or group: " [backend, urgent]", as plain text;
 * nothing if it has none. */
void labels_add_own(struct strbuf *out, const struct plan_labels *labels);

/* Add the members labels, url and description of a task. */
void labels_json_task(struct jsonw *json,
                      const struct plan *plan,
                      const struct plan_task *task);

/* Add the members labels, url, description and parent of a group. */
void labels_json_group(struct jsonw *json,
                       const struct plan *plan,
                       const struct plan_group *group);

#endif /* VIEW_LABELS_H */
