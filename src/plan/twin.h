/* SPDX-License-Identifier: MIT */
/*
 * twin: repos of a plan that have the same path or URL, and so one git
 * repository.
 *
 * Each of them has its own base and agent branch: names of their branches and
 * refs contain the name of the repo. This follows from the plan alone, so every
 * process and machine comes to the same names. `sluice check` and `sluice run`
 * reject different paths to one repository.
 */
#ifndef PLAN_TWIN_H
#define PLAN_TWIN_H

#include "base/strbuf.h"
#include "plan/plan.h"

/*
 * Return the first other repo with a base and the same place as repo `ix`, or
 * PLAN_NONE. Relative paths begin at `folder`. A plan with old rules has none.
 */
uint32_t twin_find(const struct plan *plan, const char *folder, uint32_t ix);

/* Return the name of a repo if names of its branches contain it; else NULL. */
const char *twin_name(const struct plan *plan, const char *folder, uint32_t ix);

/* Append an absolute path without ".", ".." and repeated slashes. Links are not
 * followed. */
void twin_add_path(struct strbuf *out, const char *folder, const char *path);

/* Append the URL of a repo, or its path as above. It must have one of them. */
void twin_add_place(struct strbuf *out,
                    const char *folder,
                    const struct plan_repo *repo);

#endif /* PLAN_TWIN_H */
