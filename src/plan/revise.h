/* SPDX-License-Identifier: MIT */
/*
 * revise: a new version of the plan of an existing run.
 *
 * The store names tasks by index, so a new version keeps the indices of the
 * previous one: tasks with equal ids have equal indices, new tasks follow the
 * old ones, and a removed task leaves a stand-in, without needs or dependents.
 * Fragments that were added before are added again. Equal sources always give
 * equal plans.
 *
 * In a store, a version is a fragment whose file name begins with REVISE_MARK.
 */
#ifndef PLAN_REVISE_H
#define PLAN_REVISE_H

#include "base/strbuf.h"
#include "plan/plan.h"

#define REVISE_MARK "update: "

/* Whether a stored fragment with that file name is a whole plan. */
bool revise_is_update(const char *file);

/*
 * Read `source` as the next version of `old`, with the fragments that were
 * added to it. On success return true and store it in *out; `old` is unchanged.
 * Otherwise return false with at least one error in *errors.
 */
MUST_USE bool revise_plan(struct plan **out,
                          const struct plan *old,
                          const struct plan_source *source,
                          const struct plan_source *added,
                          uint32_t added_count,
                          struct plan_errors *errors);

/* Whether a task is the stand-in of a removed task. */
bool revise_is_removed(const struct plan *plan, uint32_t task);

/* Differences between two versions of a task. */
enum {
    REVISE_COMMAND = 1,  /* run, agent, merge, prepare */
    REVISE_SETTINGS = 2, /* estimate, timeouts, retry and so on */
    REVISE_NEEDS = 4,
    REVISE_TEXT = 8, /* title, body, its group's included */
    REVISE_PROMPT = 16,
    REVISE_PLACE = 32,  /* class, group, repo, provider, uses, rework ... */
    REVISE_START = 64,  /* approve, not_before, its group's included */
    REVISE_ISSUE = 128, /* labels, url, description, parent of its group */
};

/* Return the differences of a task that both versions have; all bits if it is a
 * stand-in in one of them. */
uint32_t
revise_compare(const struct plan *old, const struct plan *new, uint32_t task);

/* Append a line for each task that differs; return their number. */
uint32_t revise_add_tasks(struct strbuf *out,
                          const struct plan *old,
                          const struct plan *new);

/*
 * Append a line for each difference between the other parts of two plans, such
 * as limits, and return their number. Both arguments are sources of valid
 * plans. Comments, quotes and key order make no difference.
 */
uint32_t revise_add_parts(struct strbuf *out, const char *old, const char *new);

#endif /* PLAN_REVISE_H */
