/* SPDX-License-Identifier: MIT */
/* waiting: the tasks of a run that wait, by their reasons. */
#ifndef VIEW_WAITING_H
#define VIEW_WAITING_H

#include "view/model.h"

enum {
    WAITING_GROUPS = 12, /* listed reasons */
    WAITING_NAMES = 3,   /* tasks named per reason */
};

/* Tasks that wait for the same reason. */
struct waiting_group {
    char *text;
    struct reason reason; /* of the first of them */
    uint32_t count;
    uint32_t first[WAITING_NAMES]; /* indices in the plan */
};

struct waiting {
    struct waiting_group groups[WAITING_GROUPS];
    uint32_t count;
    uint32_t left; /* tasks with other reasons */
};

/* Group the tasks of a model. Ready tasks come first: they wait only for
 * capacity. */
void waiting_fill(struct waiting *out, const struct model *model);
void waiting_release(struct waiting *waiting);

#endif /* VIEW_WAITING_H */
