/* SPDX-License-Identifier: MIT */
/*
 * revise: another version of a plan that is under way.
 *
 * Everything that is stored of a task names it by its index, so a version of a
 * plan keeps the indices of the version before it: tasks of the same id have
 * the same index, new ones stand behind the old ones, and for one that was
 * removed a stand-in is left, which needs nothing and is needed by nobody.
 * Fragments that were added before are added again. The same texts always give
 * the same plan.
 *
 * In a store, a version is a fragment whose file begins with REVISE_MARK.
 */
#ifndef PLAN_REVISE_H
#define PLAN_REVISE_H

#include "base/strbuf.h"
#include "plan/plan.h"

#define REVISE_MARK "update: "

/* Whether a stored fragment of that file is a version of the whole plan. */
bool revise_is_update(const char *file);

/*
 * Read `source` as the next version of `old`, with the fragments that were
 * added to it. On success return true and store it in *out; `old` stays as it
 * is. Otherwise return false with at least one error in *errors.
 */
MUST_USE bool revise_plan(struct plan **out,
                          const struct plan *old,
                          const struct plan_source *source,
                          const struct plan_source *added,
                          uint32_t added_count,
                          struct plan_errors *errors);

/* Whether a task is a stand-in for one that was removed. */
bool revise_is_removed(const struct plan *plan, uint32_t task);

/* What differs between two versions of a task. */
enum {
    REVISE_COMMAND = 1,  /* run, agent, merge, prepare */
    REVISE_SETTINGS = 2, /* estimate, timeouts, retry and so on */
    REVISE_NEEDS = 4,
    REVISE_TEXT = 8, /* title, body, also of its group */
    REVISE_PROMPT = 16,
    REVISE_PLACE = 32, /* class, group, repo, provider, uses, rework ... */
};

/* The differences of a task that both versions have, or that is a stand-in in
 * one of them: all of them. */
uint32_t
revise_compare(const struct plan *old, const struct plan *new, uint32_t task);

/* Append a line for each task that differs; how many there are. */
uint32_t revise_add_tasks(struct strbuf *out,
                          const struct plan *old,
                          const struct plan *new);

/*
 * Append a line for each difference between the other parts of two plans, such
 * as limits, by their texts, which can be read; how many there are. Comments,
 * quotes and the order of keys make none.
 */
uint32_t revise_add_parts(struct strbuf *out, const char *old, const char *new);

#endif /* PLAN_REVISE_H */
