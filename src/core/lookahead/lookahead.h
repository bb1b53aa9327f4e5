/* SPDX-License-Identifier: MIT */
/*
 * lookahead: runs that follow a schedule. Shared by the files of the scheduler.
 *
 * A schedule is an order of the tasks that have not started, with their
 * expected start times. The dispatcher follows it in two ways:
 *
 * - Order: among tasks that the rules treat alike (age, deferral, tier, open
 *   group) the earlier in the schedule starts first, in place of rank.
 * - Holding back: a task does not start before an earlier task of the schedule
 *   unless the rules put it first, even if the earlier task is not ready or
 *   does not fit yet. So a slot can stay idle on purpose.
 *
 * Starting in schedule order, each task as soon as it fits, finishes no later
 * than the schedule as long as nothing takes longer than estimated: the order
 * is all that is needed, and a task that is a little early or late upsets
 * nothing (Moehring and Stork call it an activity-based policy). The times
 * limit the waiting: an overdue task holds nothing back, no task does while
 * nothing is in flight, and a task that has waited for its max_wait is not held
 * back.
 *
 * A schedule becomes stale when reality differs (a session was early or late by
 * more than a margin, or did not succeed; work or requests came; a start is
 * overdue): it holds nothing back any more, and sched_plan() searches another.
 *
 * The search: model.h describes the remaining work, search.h finds short
 * schedules of it, rollout.h runs the scheduler itself ahead with a candidate,
 * with rank alone and with fifo alone. The first to finish is followed; of
 * several, the one whose groups finish earlier in the mean.
 */
#ifndef CORE_LOOKAHEAD_LOOKAHEAD_H
#define CORE_LOOKAHEAD_LOOKAHEAD_H

#include "core/sched_internal.h"

struct lookahead_ctx;

/* Sessions whose estimates are compared with their durations. */
enum { LOOKAHEAD_ERRORS = 16 };

/* How a run finishes. */
struct lookahead_finish {
    int64_t end_ns; /* when its last session exits */
    int64_t sum;    /* of the times in which its groups finish, in 2^20 ns */
};

/* What starts first in a run. */
struct lookahead_order {
    const uint32_t *tasks; /* in schedule order */
    uint32_t count;        /* 0: no schedule... */
    bool fifo;             /* ...in order of becoming ready, not by rank */
};

/* The schedule of one run. */
struct lookahead_plan {
    uint32_t pool;      /* closed to hold tasks back; ID_NONE: no lookahead */
    uint32_t schedules; /* candidates of a search from scratch */
    uint32_t *order;    /* tasks in schedule order */
    uint32_t *draft;    /* memory for the next order */
    uint32_t count;     /* tasks in the order; 0: rank or fifo decides */
    uint32_t next;      /* the first task in the order that has not started */
    uint32_t awaited;   /* task for which others are held back, or ID_NONE */
    uint32_t capacity;
    bool fifo;       /* without an order: tasks start as they became ready */
    bool stale;      /* unreliable: nothing is held back */
    bool wanted;     /* a new search is due */
    bool thinking;   /* a search is running */
    bool judging;    /* by rollouts: the model was not exact */
    bool scratch;    /* no search yet */
    uint32_t missed; /* upsets since the last search */
    uint64_t made;   /* number of searches; their random seed */
    uint32_t spare;  /* candidates beyond the budget, if time permits */
    bool extended;   /* the search uses them */
    bool orders;     /* estimates are good enough for a schedule... */
    bool holds;      /* ...that holds tasks back... */
    uint16_t errors[LOOKAHEAD_ERRORS]; /* ...of the last sessions: |log2| of
                                          actual by estimate, in 1/256 */
    uint32_t error_count;              /* sessions that were compared */
    struct lookahead_finish finish;    /* of the run by what is followed now */
    int64_t shortest_ns;               /* the earliest end that was found */
};

struct lookahead {
    struct lookahead_plan *plans; /* one per run */
    uint32_t plan_count;
    uint32_t *place;   /* per task: in the order; ID_NONE: not scheduled */
    int64_t *start_ns; /* per task: expected start */
    uint32_t capacity; /* tasks */
    int64_t wake_ns;   /* when the first of the current holds expires */
    struct lookahead_ctx *ctx; /* NULL: it follows without searching */
};

/* ---- lookahead.c: search ---- */

/* Allocate memory for a new run, for new tasks. */
void lookahead_add_run(struct sched *sched, uint32_t schedules);
void lookahead_reserve(struct sched *sched);
void lookahead_free(struct lookahead *lookahead);
size_t lookahead_bytes(const struct lookahead *lookahead);

/* Invalidate the schedule of a run (of all runs) after an unforeseen event. */
void lookahead_upset(struct sched *sched, uint32_t run);
void lookahead_upset_all(struct sched *sched);

/* ---- follow.c ---- */

/* Return the schedule of a run, or NULL if it does not use lookahead. */
struct lookahead_plan *lookahead_plan_of(const struct sched *sched,
                                         uint32_t run);

/* Follow this order instead of the old one. */
void lookahead_follow(struct sched *sched,
                      uint32_t run,
                      struct lookahead_order order);

/*
 * Return the place of a ready task in its run's schedule; ID_NONE: rank
 * decides. Equal places: the order of becoming ready decides.
 */
uint32_t lookahead_place(const struct sched *sched, uint32_t task);

/* Return the task for which a ready task is held back now, or ID_NONE. */
uint32_t lookahead_held_for(const struct sched *sched, uint32_t task);

/* Hold back a queue for `first`, because its head is held back. */
void lookahead_hold(struct sched *sched, uint32_t queue, uint32_t first);

/* Let the dispatcher examine held back tasks again. */
void lookahead_look_again(struct sched *sched);

/* Return when tasks are no longer held back for `first`. */
int64_t lookahead_until(const struct sched *sched, uint32_t first);

/* Return when held back tasks must be examined again. */
int64_t lookahead_timer(const struct sched *sched);

/* A session succeeded: upset the schedule if it was early or late. */
void lookahead_note_end(struct sched *sched, uint32_t leader);

/* Return the estimated length of the session of a leader. */
int64_t lookahead_session_ns(const struct sched *sched, uint32_t leader);

#endif /* CORE_LOOKAHEAD_LOOKAHEAD_H */
