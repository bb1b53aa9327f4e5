/* SPDX-License-Identifier: MIT */
/*
 * load_spec: what the core is told about a task, as far as the plan alone says
 * it. Used by load.c only.
 */
#ifndef PLAN_LOAD_SPEC_H
#define PLAN_LOAD_SPEC_H

#include "base/strbuf.h"
#include "core/sched.h"
#include "plan/plan.h"

/* What happens when it fails. */
struct sched_failure_spec load_failure(const struct plan *plan,
                                       const struct plan_task *task);

/* Append a text that tasks share if one command serves all of them. */
void load_add_alike(struct strbuf *out, const struct plan_task *task);

/*
 * The label that its worker must have; NULL: any worker will do. `worker` has
 * the files of the machine on which the plan was submitted, and so has all
 * tasks that may use them; NULL: there is none.
 */
const char *load_place(const struct plan *plan,
                       const struct plan_task *task,
                       const char *worker);

#endif /* PLAN_LOAD_SPEC_H */
