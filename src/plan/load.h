/* SPDX-License-Identifier: MIT */
/*
 * load: loader of checked plans into a scheduler.
 *
 * A loader belongs to one scheduler and can load several plans into it, each as
 * a run. It maps strings (attributes, names of shared limits) to the numbers
 * that the core uses, and records for each run the core id of each task, group
 * and limit of the plan.
 */
#ifndef PLAN_LOAD_H
#define PLAN_LOAD_H

#include "base/diag.h"
#include "core/sched.h"
#include "plan/plan.h"

struct load;

/* Create a loader for this scheduler, which must outlive the loader. */
struct load *load_new(struct sched *sched);

/* Free the loader, not the scheduler. NULL is allowed. */
void load_free(struct load *load);

/* A plan in the scheduler. Both are borrowed and outlive it. */
struct load_run;

struct load_options {
    const char *folder; /* absolute directory of the plan file, for relative
                           repo paths; NULL: use them as written */
    /* One per task of the plan; `leader` and `cause` are task indices of the
     * plan. NULL: the plan is new. */
    const struct sched_record *records;
    const struct sched_run_record *run; /* NULL: the run is new */
    bool no_budgets; /* ignore budgets: the run spends nothing */
    /* For `not_before` and `deadline`: when the run started or will start, as
     * wall clock time; the offset from the clock of `now_ns` to it; and an
     * earliest start for all its tasks, INT64_MIN: none. */
    int64_t start_ns;
    int64_t clock_offset_ns;
    int64_t not_before_ns;
    const char *worker; /* whose machine has the files of the plan; NULL or "":
                           there are no workers, or none has */
};

/*
 * Add the plan as a run, with all fragments that plan_add() has added so far.
 * ERR_LIMIT: too many tasks; ERR_CORRUPT: an impossible record. `options` may
 * be NULL. On success store the run in *out; the loader owns it.
 */
MUST_USE enum err load_plan(struct load *load,
                            int64_t now_ns,
                            const struct plan *plan,
                            const struct load_options *options,
                            struct load_run **out,
                            struct diag *diag);

/*
 * Add the fragments that plan_add() has added since. If the core rejects them,
 * set *diag to the reason, in names of the plan, and change nothing; the caller
 * must then undo the change of the plan with plan_undo_add().
 */
MUST_USE enum err
load_more(struct load_run *run, int64_t now_ns, struct diag *diag);

/* The wall clock was set: move the times of the run, and of tasks that will be
 * added. See struct load_options. */
void load_set_clock(struct load_run *run, int64_t clock_offset_ns);

/* Return the core id of the run. */
struct run_id load_run_id(const struct load_run *run);

/* Return the core id of the task or limit with this plan index. */
struct task_id load_task(const struct load_run *run, uint32_t task);
struct limit_id load_limit(const struct load_run *run, uint32_t limit);

/*
 * Limits of the store: each run has, beside those of its plan, one for all
 * sessions and one for the sessions of each provider except "local". The runs
 * of a scheduler share the counters, and none has a maximum at first: to limit
 * the store, set the same one in each run with EVENT_LIMIT. They have names of
 * their own, "sessions" or that of the provider, and no index in the plan.
 * load_more() may add some.
 */
uint32_t load_store_limit_count(const struct load_run *run);
struct limit_id load_store_limit_at(const struct load_run *run, uint32_t ix);
/* Return the limit of that name, or ID_NONE; the name of a limit, or NULL if it
 * is not of the store. */
struct limit_id load_store_limit(const struct load_run *run, const char *name);
const char *load_store_limit_name(const struct load_run *run,
                                  struct limit_id limit);

/*
 * Labels of workers that tasks need: each is a limit of the store of its own,
 * whose name is "worker " and the label. Return the number of labels of a run;
 * one of them; and the label that a task needs, or NULL.
 */
uint32_t load_label_count(const struct load_run *run);
struct limit_id
load_label(const struct load_run *run, uint32_t ix, const char **label_out);
const char *load_label_of(const struct load_run *run, uint32_t task);

/*
 * Providers belong to the loader: all its runs share providers of equal name.
 * The first plan that names a provider gives its settings; later plans do not
 * change them. Tasks without a provider get one for each class, "local:CLASS":
 * a limit reported by one kind of session must not affect gates, merges and
 * other commands.
 */
bool load_uses_provider(const struct load_run *run, struct provider_id id);
const char *load_provider_name(const struct load *load, struct provider_id id);
uint32_t load_provider_count(const struct load *load);
/* Return the provider of that name, or ID_NONE. */
struct provider_id load_find_provider(const struct load *load,
                                      const char *name);

/* Restore the provider of this name once a plan names it. */
void load_restore_provider(struct load *load,
                           const char *name,
                           const struct sched_provider_record *record);

/*
 * Return the window of a merge queue after the outcome of one of its merges: it
 * halves when a merge fails, and grows by one when one lands, up to `whole`.
 */
int64_t
load_next_window(int64_t now, int64_t whole, enum sched_outcome outcome);

/* Return the plan index of a core id, or PLAN_NONE if it is not of this run. */
uint32_t load_plan_task(const struct load_run *run, struct task_id task);
uint32_t load_plan_limit(const struct load_run *run, struct limit_id limit);

#endif /* PLAN_LOAD_H */
