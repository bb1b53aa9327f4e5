/* SPDX-License-Identifier: MIT */
/*
 * lookahead_sgs: schedule generation from a list of tasks, and improvement of a
 * schedule.
 *
 * A list names every task of a model once, each after all its needs. The serial
 * scheme takes the tasks in this order and starts each as early as the tasks
 * before it allow; some list gives the shortest possible schedule. The parallel
 * scheme advances in time and starts every task that fits, best first; its
 * schedules waste nothing at any moment, and may all be longer than the
 * shortest. (Kolisch 1996.)
 *
 * Justification moves every task as late as possible, then all back as early as
 * possible; the result is no longer than before (Valls, Ballestin and
 * Quintanilla 2005). It is the forward-backward improvement of Li and Willis
 * and of Tormos and Lova.
 *
 * Schedules are start times relative to now, one per task.
 */
#ifndef CORE_LOOKAHEAD_SGS_H
#define CORE_LOOKAHEAD_SGS_H

#include "core/lookahead/model.h"

/* Scratch memory; starts as {0}. */
struct lookahead_sgs {
    const struct lookahead_model *model;
    /* Free units over time: from at_ns[ix] to the next point, or for ever. */
    int64_t *at_ns;
    uint64_t *free;
    uint32_t point_count;
    int64_t open_ns;        /* before it, no task can run */
    int64_t close_ns;       /* nor after it */
    int64_t *key_ns;        /* of sorting; ends in the parallel scheme */
    uint32_t *list;         /* of sorting and of the parallel scheme */
    uint32_t *other;        /* of sorting */
    uint32_t *missing;      /* unfinished needs, per task */
    uint32_t *running;      /* of the parallel scheme; tasks, then sessions */
    uint32_t *place;        /* of the parallel scheme: in the given list */
    uint32_t item_capacity; /* tasks and sessions */
    uint32_t capacity;
    uint32_t point_capacity;
};

void lookahead_sgs_reserve(struct lookahead_sgs *sgs,
                           uint32_t tasks,
                           uint32_t busy);
void lookahead_sgs_release(struct lookahead_sgs *sgs);

/* Schedule by a list; return the length. */
int64_t lookahead_sgs_serial(struct lookahead_sgs *sgs,
                             const uint32_t *list,
                             int64_t *start_ns);
int64_t lookahead_sgs_parallel(struct lookahead_sgs *sgs,
                               const uint32_t *list,
                               int64_t *start_ns);

/* Justify to the right, then to the left; return the new length. */
int64_t lookahead_sgs_justify(struct lookahead_sgs *sgs,
                              int64_t *start_ns,
                              int64_t end_ns);

/* List a schedule: by start time, equal ones by number. */
void lookahead_sgs_list(struct lookahead_sgs *sgs,
                        const int64_t *start_ns,
                        uint32_t *list);

/* Sort a list of all tasks by their keys, smallest first, stable. */
void lookahead_sgs_sort(struct lookahead_sgs *sgs,
                        const int64_t *key_ns,
                        uint32_t *list);

#endif /* CORE_LOOKAHEAD_SGS_H */
