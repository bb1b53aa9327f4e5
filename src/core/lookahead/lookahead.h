/* SPDX-License-Identifier: MIT */
/*
 * lookahead: runs that plan ahead. Shared by the files of the scheduler.
 *
 * A plan is an order of the tasks that have not started, with the times at
 * which they are expected to. The dispatcher follows it in two ways:
 *
 * - Order: among tasks that the rules treat alike (age, deferral, tier, open
 *   group) the one that comes first in the plan goes first, in place of rank.
 * - Holding: a task is not started before one that comes before it in the plan
 *   and that the rules would not put behind it, even if that one is not ready
 *   or does not fit yet. So a slot can be left idle on purpose.
 *
 * Starting in the order of a plan, each as soon as it fits, ends no later than
 * the plan as long as nothing takes longer than estimated: the order is all
 * that is needed, and a task that ends a little early or late upsets nothing
 * (Moehring and Stork call it an activity-based policy). The times say when to
 * stop waiting: a task that is overdue holds nothing back, nor does any while
 * nothing is in flight, and one that has waited for its max_wait is not held.
 *
 * When reality differs from the plan (a session ended early or late by more
 * than a margin, or not well; work or orders came; a planned start is overdue),
 * the plan is stale: it holds nothing any more, and sched_plan() makes another.
 *
 * Making one: model.h is what is left, search.h looks for
 * short schedules of it, rollout.h runs the scheduler itself ahead with
 * what was found, and with rank alone. What ends first in that is followed.
 */
#ifndef CORE_LOOKAHEAD_LOOKAHEAD_H
#define CORE_LOOKAHEAD_LOOKAHEAD_H

#include "core/sched_internal.h"

struct lookahead_ctx;

/* The plan of one run. */
struct lookahead_plan {
    uint32_t pool;      /* closed while it holds tasks; ID_NONE: no plan */
    uint32_t schedules; /* to look at for a plan from scratch */
    uint32_t *order;    /* tasks, first one first */
    uint32_t *draft;    /* memory for the next one */
    uint32_t count;     /* of tasks in the order; 0: rank decides */
    uint32_t next;      /* the first in the order that has not started */
    uint32_t awaited;   /* task for which others are held, or ID_NONE */
    uint32_t capacity;
    bool stale;      /* it is not to be relied on: nothing is held */
    bool wanted;     /* another one is to be made */
    bool thinking;   /* it is being made */
    bool judging;    /* by running ahead: the model has not told the truth */
    bool scratch;    /* there has been none yet */
    uint32_t missed; /* wishes since the last one, for which there was no
                        effort left */
    uint64_t made;   /* number of those made; chance depends on it */
    int64_t end_ns;  /* when the run ends by it, or by rank */
    int64_t rank_end_ns; /* when it would have ended by rank */
};

struct lookahead {
    struct lookahead_plan *plans; /* one per run */
    uint32_t plan_count;
    uint32_t *place;   /* per task: in the order; ID_NONE: not planned */
    int64_t *start_ns; /* per task: when it is expected to start */
    uint32_t capacity; /* tasks */
    int64_t wake_ns;   /* when the first of the present holds ends */
    struct lookahead_ctx *ctx; /* NULL: it follows, and does not think */
};

/* ---- lookahead.c: thinking ---- */

/* A run was added; tasks were. Allocate what they need. */
void lookahead_add_run(struct sched *sched, uint32_t schedules);
void lookahead_reserve(struct sched *sched);
void lookahead_free(struct lookahead *lookahead);
size_t lookahead_bytes(const struct lookahead *lookahead);

/* Something has happened that the plan of this run does not know of. */
void lookahead_upset(struct sched *sched, uint32_t run);
void lookahead_upset_all(struct sched *sched);

/* ---- follow.c ---- */

/* The plan of a run, or NULL if it does not plan ahead. */
struct lookahead_plan *lookahead_plan_of(const struct sched *sched,
                                         uint32_t run);

/* Have this order followed in the place of the one there was. */
void lookahead_follow(struct sched *sched,
                      uint32_t run,
                      const uint32_t *order,
                      uint32_t count);

/* The place of a task in the plan of its run; ID_NONE: it has none. */
uint32_t lookahead_place(const struct sched *sched, uint32_t task);

/* The task for which a ready one is held back now, or ID_NONE. */
uint32_t lookahead_held_for(const struct sched *sched, uint32_t task);

/* The head of a queue is held back for `first`: so is all in it. */
void lookahead_hold(struct sched *sched, uint32_t queue, uint32_t first);

/* What was held is looked at again. */
void lookahead_look_again(struct sched *sched);

/* When a hold of a task that is waited for ends. */
int64_t lookahead_until(const struct sched *sched, uint32_t first);

/* When something is to be looked at again because of plans. */
int64_t lookahead_timer(const struct sched *sched);

/* A session has ended well: was it when it had been expected? */
void lookahead_note_end(struct sched *sched, uint32_t leader);

/* Estimated length of the session of a first task. */
int64_t lookahead_session_ns(const struct sched *sched, uint32_t leader);

#endif /* CORE_LOOKAHEAD_LOOKAHEAD_H */
