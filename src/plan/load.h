/* SPDX-License-Identifier: MIT */
/*
 * load: from a checked plan into a scheduler.
 *
 * One loader belongs to one scheduler and can load several plans into it, each
 * as a run. It turns texts (attributes, names of shared limits) into the
 * numbers the core wants, and keeps for each run which task, group and limit
 * of the plan has which id in the core.
 */
#ifndef PLAN_LOAD_H
#define PLAN_LOAD_H

#include "base/diag.h"
#include "core/sched.h"
#include "plan/plan.h"

struct load;

/* A loader for this scheduler, which must outlive it. */
struct load *load_new(struct sched *sched);

/* Free the loader, not the scheduler. NULL is allowed. */
void load_free(struct load *load);

/* A plan in the scheduler. Both are borrowed: they outlive it. */
struct load_run;

struct load_options {
    const char *folder; /* absolute folder of the plan file: a relative repo is
                           meant from there; NULL: repos are as written */
    /* One per task of the plan, `leader` and `cause` as indices of tasks of
     * the plan; NULL: the plan is new. */
    const struct sched_record *records;
    const struct sched_run_record *run; /* NULL: the run is new */
    bool no_budgets; /* nothing is spent: budgets do not bind */
};

/*
 * Add the plan as a run. What plan_add() has added to the plan before is part
 * of it. ERR_LIMIT: there are too many tasks; ERR_CORRUPT: a record cannot be.
 * `options` may be NULL. On success the run is stored in *out; the loader owns
 * it.
 */
MUST_USE enum err load_plan(struct load *load,
                            int64_t now_ns,
                            const struct plan *plan,
                            const struct load_options *options,
                            struct load_run **out,
                            struct diag *diag);

/*
 * Add what plan_add() has added to the plan since. When the core refuses it,
 * *diag says why, in the plan's names, and nothing has changed: undo the
 * plan's change with plan_undo_add().
 */
MUST_USE enum err
load_more(struct load_run *run, int64_t now_ns, struct diag *diag);

/* The run's id in the core. */
struct run_id load_run_id(const struct load_run *run);

/* Ids in the core of what has this index in the plan. */
struct task_id load_task(const struct load_run *run, uint32_t task);
struct limit_id load_limit(const struct load_run *run, uint32_t limit);

/*
 * Providers belong to the loader: all its runs share those of equal name. The
 * first plan that names a provider gives its settings; those in later plans
 * change nothing. Tasks without one have a provider for each class,
 * "local:CLASS": a limit that one kind of session reports says nothing about
 * gates, merges and other commands.
 */
bool load_uses_provider(const struct load_run *run, struct provider_id id);
const char *load_provider_name(const struct load *load, struct provider_id id);
uint32_t load_provider_count(const struct load *load);
/* The provider of that name, or ID_NONE. */
struct provider_id load_find_provider(const struct load *load,
                                      const char *name);

/* Restore the provider of this name when a plan names it. */
void load_restore_provider(struct load *load,
                           const char *name,
                           const struct sched_provider_record *record);

/* The way back: index in the plan, or PLAN_NONE if it is not of this run. */
uint32_t load_plan_task(const struct load_run *run, struct task_id task);
uint32_t load_plan_limit(const struct load_run *run, struct limit_id limit);

#endif /* PLAN_LOAD_H */
