/* SPDX-License-Identifier: MIT */
/*
 * receipts: check of a run's merge commits in one repository against the
 * verdicts of gates in the store.
 */
#ifndef VIEW_RECEIPTS_H
#define VIEW_RECEIPTS_H

#include "engine/engine.h"
#include "store/place.h"
#include "store/store.h"

/* A commit that is not verified. */
struct receipts_fault {
    char *commit;
    char *subject;
    char *reason;
};

/* Result for one agent branch. Starts as {0}. */
struct receipts {
    const char *run;               /* id; borrowed from the engine, as `repo` */
    const char *repo;              /* name */
    struct strbuf branch;          /* "sluice/RUN/main" */
    bool found;                    /* the branch exists */
    uint32_t commits;              /* on its first-parent line since the base */
    struct receipts_fault *faults; /* newest first */
    uint32_t fault_count;
};

/* Check the agent branch of a run in one repository of its plan. The caller
 * releases *out also after an error. */
MUST_USE enum err receipts_check(struct receipts *out,
                                 const struct store_place *place,
                                 struct store *store,
                                 const struct engine *engine,
                                 uint32_t run,
                                 uint32_t repo,
                                 struct diag *diag);
void receipts_release(struct receipts *receipts);

/* Append a line for each fault and one for the branch; or a JSON object. */
void receipts_add_lines(struct strbuf *out, const struct receipts *receipts);
void receipts_add_json(struct strbuf *out, const struct receipts *receipts);

#endif /* VIEW_RECEIPTS_H */
