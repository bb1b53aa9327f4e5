/* SPDX-License-Identifier: MIT */
/*
 * whatif: replays of a run, with its own settings and with others.
 *
 * The simulator does the work of the run again: sim/replay.h has the rules for
 * sessions. Of what else happened, the replay has the operator's changes of the
 * cap, holds and pauses, and the caps of usage monitors, each at its time; the
 * tasks that were added by an operator from that time on. It does not have the
 * refusals of providers and the pauses after them, sessions that were stopped
 * or have not ended, budgets, the time of sync hooks, and time without a
 * scheduler.
 *
 * A setting that is given as a number replaces what the run had all the time; a
 * step is added to it at any time, but 0, which is a pause.
 */
#ifndef VIEW_WHATIF_H
#define VIEW_WHATIF_H

#include "sim/replay.h"
#include "view/stats.h"

/* Another maximum of a limit. */
struct whatif_limit {
    uint32_t limit;   /* index in the plan */
    int64_t max;      /* PLAN_UNLIMITED: none */
    int64_t step;     /* if not 0: added to what it was; instead of `max` */
    uint32_t percent; /* if not 0: of sessions; instead of `max` */
};

/* Settings; {0} are those of the run. All pointers are borrowed. */
struct whatif_settings {
    const struct whatif_limit *limits; /* of different limits */
    uint32_t limit_count;
    const enum plan_policy *policy; /* NULL: as it was */
    const enum plan_goal *goal;     /* NULL: as it was */
};

/* Read only. Starts as {0}. */
struct whatif {
    const struct stats *stats;
    struct replay replay;
    uint32_t replayed; /* sessions */
    uint32_t refused;  /* sessions that are left out, by outcome */
    uint32_t stopped;
    uint32_t running;
    struct sim_result run; /* the run itself, up to its last replayed session;
                              its arrays belong to `stats` */
};

/* Prepare. The statistics and their history must outlive it. */
void whatif_init(struct whatif *whatif, const struct stats *stats);
void whatif_release(struct whatif *whatif);

/* Change the settings of a plan before a simulation. ERR_INVALID: a step of a
 * limit that has no number, or to less than 1. */
MUST_USE enum err whatif_set(struct plan *plan,
                             const struct whatif_settings *settings,
                             struct diag *diag);

/* Replay with these settings. The caller frees *plan_out and *result_out, which
 * are NULL on failure. */
MUST_USE enum err whatif_run(const struct whatif *whatif,
                             const struct whatif_settings *settings,
                             struct plan **plan_out,
                             struct sim_result **result_out,
                             struct diag *diag);

/* Return how many tasks were done in the run, and are not in a replay. */
uint32_t whatif_lost(const struct whatif *whatif,
                     const struct sim_result *result);

#endif /* VIEW_WHATIF_H */
