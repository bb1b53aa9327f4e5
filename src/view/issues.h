/* SPDX-License-Identifier: MIT */
/*
 * issues: the groups of a run as a tree, with the tasks outside of groups.
 */
#ifndef VIEW_ISSUES_H
#define VIEW_ISSUES_H

#include "view/model.h"

/* Fill in the issues, stages and issue counts of a model, whose run is
 * chosen. */
void issues_fill(struct model *model, const struct glance *glance);

#endif /* VIEW_ISSUES_H */
