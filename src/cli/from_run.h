/* SPDX-License-Identifier: MIT */
/* from_run: `simulate --from-run`, replays of a run with other settings. */
#ifndef CLI_FROM_RUN_H
#define CLI_FROM_RUN_H

#include "cli/changes.h"
#include "cli/cli.h"

/* All pointers are borrowed. */
struct from_run {
    const struct cli_line *line;
    const char *run;
    const struct changes *changes;
    bool compare; /* all policies and goals */
    bool gantt;
    const char *svg_path; /* or NULL */
};

/* Replay the run and print what comes of it; return the exit code. */
int from_run(const struct from_run *options);

#endif /* CLI_FROM_RUN_H */
