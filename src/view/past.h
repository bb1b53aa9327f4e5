/* SPDX-License-Identifier: MIT */
/*
 * past: the finished run of a plan that is about to be submitted.
 *
 * `sluice run` of a finished plan starts nothing: a shell loop, cron or a
 * service that starts it again must not pay for the work twice.
 */
#ifndef VIEW_PAST_H
#define VIEW_PAST_H

#include "base/diag.h"
#include "base/strbuf.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

/* The plan to submit; all members are borrowed. */
struct past_plan {
    const char *name; /* of the plan */
    const char *file;
    const char *folder; /* directory of its file, absolute */
    const char *text;
};

/* The run found. */
struct past_run {
    char *id; /* the caller frees it */
    uint32_t number;
    bool removed;   /* only its `gc --rows` record is left */
    bool cancelled; /* if removed: it or one of its tasks */
};

/*
 * Find the last run of a plan: same name and directory, and same file or text.
 * ERR_OK: it finished with the same text; *out has it. ERR_NOT_FOUND: no such
 * run, or an unfinished run of that name: submit the plan. ERR_CONFLICT: it
 * finished with a different text; *diag has the first difference, if known.
 * Other errors: the store is not readable.
 */
MUST_USE enum err past_find(struct store *store,
                            const struct past_plan *plan,
                            struct past_run *out,
                            struct diag *diag);

/*
 * Whether the plan may continue a run that reads it by old rules (struct
 * plan_source): such a run has its name and directory, or the store of `option`
 * has an old version and must be upgraded to know.
 */
bool past_may_have_old_rules(const char *option, const struct past_plan *plan);

/* Append the event of a finished run in the format of `sluice run --json`. */
void past_add_event(struct strbuf *out,
                    struct store *store,
                    const char *id,
                    uint32_t number);

#endif /* VIEW_PAST_H */
