/* SPDX-License-Identifier: MIT */
/*
 * import_out: the files of `sluice import`, a plan and the bodies of its issues
 * in a directory beside it.
 *
 * Each file appears whole or not at all, the plan last. A file that exists is
 * replaced by force only; a body that exists with the same text stays.
 */
#ifndef CLI_IMPORT_OUT_H
#define CLI_IMPORT_OUT_H

#include "cli/cli.h"
#include "import/import.h"

#include <stdbool.h>

/* A plain value. */
struct import_out {
    const struct cli_command *command; /* for messages */
    const char *path;                  /* of the plan */
    bool force;                        /* replace files */
};

/* Write the plan and the bodies of its issues; the exit code, after a message
 * if it is not CLI_OK. */
int import_out_write(const struct import_out *out,
                     const struct import *import,
                     const struct strbuf *plan);

/*
 * An import_branch_fn: append the branch that is checked out in the clone at
 * `path`, relative to the plan. `ctx` points to the path of the plan, a const
 * char *; NULL: the plan is in the working directory.
 */
void import_out_branch(void *ctx, const char *path, struct strbuf *out);

/*
 * The clone that has the file in its directory `inside` (".beads"), relative
 * to where the plan is written (`output`; NULL: here). Its path and name are
 * the caller's to free. False: the file is in no such directory.
 */
bool import_out_clone(const char *file,
                      const char *inside,
                      const char *output,
                      char **path_out,
                      char **name_out);

#endif /* CLI_IMPORT_OUT_H */
