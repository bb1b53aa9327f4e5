/* SPDX-License-Identifier: MIT */
/*
 * reading: reads the plan for `sluice run`, which may continue a run that reads
 * it by older rules.
 */
#ifndef CLI_READING_H
#define CLI_READING_H

#include "cli/cli.h"

/* All strings are borrowed. */
struct reading {
    const struct cli_file *file;
    const char *folder; /* directory of the plan; NULL: not found */
    const char *store;  /* option, or NULL */
    bool json;
    bool fresh; /* the plan continues no run unchanged */
    /* Set by reading_plan(): the plan is valid only if it continues a run with
     * old rules, which the scheduler decides. */
    bool doubtful;
};

/*
 * Read the plan; on failure print its errors and return NULL. Different paths
 * to one repository are an error, too: see plan/twin.h.
 */
struct plan *reading_plan(struct reading *reading);

#endif /* CLI_READING_H */
