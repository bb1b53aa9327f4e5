/* SPDX-License-Identifier: MIT */
/*
 * import_out: output files of `sluice import`: a plan, and next to it a
 * directory of issue bodies.
 *
 * Each file is written atomically, the plan last. Existing files are replaced
 * only by force; an existing body with the same content is kept.
 */
#ifndef CLI_IMPORT_OUT_H
#define CLI_IMPORT_OUT_H

#include "cli/cli.h"
#include "import/import.h"

#include <stdbool.h>

/* A plain value. */
struct import_out {
    const struct cli_command *command; /* for messages */
    const char *path;                  /* plan */
    bool force;                        /* replace files */
};

/* Write the plan and the issue bodies. Return CLI_OK, or print a message and
 * return the exit code. */
int import_out_write(const struct import_out *out,
                     const struct import *import,
                     const struct strbuf *plan);

/*
 * An import_branch_fn: append the branch checked out in the clone at `path`,
 * relative to the plan. `ctx` points to the path of the plan, a const char *;
 * NULL: the plan is in the working directory.
 */
void import_out_branch(void *ctx, const char *path, struct strbuf *out);

/*
 * Find the clone that has the file in its directory `inside` (".beads"),
 * relative to the directory of the plan (`output`; NULL: here). The caller
 * frees path and name. Return false if the file is in no such directory.
 */
bool import_out_clone(const char *file,
                      const char *inside,
                      const char *output,
                      char **path_out,
                      char **name_out);

#endif /* CLI_IMPORT_OUT_H */
