/* SPDX-License-Identifier: MIT */
/*
 * needs_internal: state of the resolution of needs, for needs.c and
 * needs_read.c only.
 */
#ifndef PLAN_NEEDS_INTERNAL_H
#define PLAN_NEEDS_INTERNAL_H

#include "plan/plan_internal.h"

/* Which tasks of a group stand for all of it. */
enum side {
    SIDE_FIRST, /* tasks that need no other */
    SIDE_LAST,  /* tasks that no other needs, without those that only a failure
                   of another one starts */
    SIDE_ENDS,  /* tasks that no other needs */
    SIDES,
};

/* The tasks on one side of a group; see step 3. */
struct ends {
    uint32_t *tasks;
    uint32_t count;
    bool known;
};

/* State of the resolution. */
struct resolver {
    struct reader *reader;
    struct plan *plan;
    struct graph *graph;
    uint32_t *seen; /* per target: the last list or walk that visited it */
    uint32_t serial;
    struct ends *ends[SIDES]; /* per group, or NULL if not needed yet */
    struct arena arena;       /* memory of `ends` */
    uint32_t *first_part;     /* per group, PLAN_NONE: no parts... */
    uint32_t *next_part;      /* ...NULL: no group has any */
    uint32_t *stack;          /* for walks, one entry per task */
    uint32_t steps_left;
    bool too_many;
};

/* Whether it is a group with other tasks than those of a pipeline. */
bool needs_is_loose(const struct resolver *resolver, uint32_t target);

/* Resolve all entries of this reading, with `extra` (may be NULL), into the
 * needs of the reader. */
void needs_read(struct resolver *resolver, const struct node *extra);

/* Report a name that is no task or group, unless an unreadable part may have
 * it. */
void needs_report_unknown(struct reader *reader,
                          const struct node *name,
                          const char *what);

#endif /* PLAN_NEEDS_INTERNAL_H */
