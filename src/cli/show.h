/* SPDX-License-Identifier: MIT */
/*
 * show: print what a command makes of a store.
 */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

#include "cli/cli.h"
#include "view/glance.h"

/* Look, print what `fn` makes of it, or why there is nothing; the exit code. */
typedef void (*show_fn)(struct strbuf *out,
                        const struct glance *glance,
                        const struct glance_options *options);
int show_glance(const struct cli_command *command,
                const struct glance_options *options,
                show_fn fn);

#endif /* CLI_SHOW_H */
