/* SPDX-License-Identifier: MIT */
/*
 * past: the finished run that a plan has had already.
 *
 * `sluice run` of a plan that has finished starts nothing: a shell loop, cron
 * or a service that starts it again must not pay for the work twice.
 */
#ifndef VIEW_PAST_H
#define VIEW_PAST_H

#include "base/diag.h"
#include "base/strbuf.h"
#include "store/store.h"

#include <stdint.h>

/* The plan that is about to be submitted; all borrowed. */
struct past_plan {
    const char *name; /* of the plan */
    const char *file;
    const char *folder; /* of its file, absolute */
    const char *text;
};

/* The run that was found. */
struct past_run {
    char *id; /* the caller frees it */
    uint32_t number;
    bool removed;   /* `gc --rows` has left nothing but this of it */
    bool cancelled; /* of a removed one: it, or a task of it */
};

/*
 * Find the last run of that plan: of the same name and folder, and of the same
 * file or text. ERR_OK: it has finished, and the text is the same; *out has it.
 * ERR_NOT_FOUND: there is none, or an unfinished one of that name, so that the
 * plan is to be submitted. ERR_CONFLICT: it has finished, and its plan was
 * another text; *diag says where they differ, as far as that is known.
 * Otherwise the store cannot be read.
 */
MUST_USE enum err past_find(struct store *store,
                            const struct past_plan *plan,
                            struct past_run *out,
                            struct diag *diag);

/* Append the event that a run has finished, as `sluice run --json` prints it.
 */
void past_add_event(struct strbuf *out,
                    struct store *store,
                    const char *id,
                    uint32_t number);

#endif /* VIEW_PAST_H */
