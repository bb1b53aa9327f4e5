/* SPDX-License-Identifier: MIT */
/*
 * completion: scripts that let a shell complete the command line of sluice,
 * made from the tables of the commands, so that both always agree.
 */
#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

#include "cli/cli.h"

/*
 * Print the script for "bash", "zsh" or "fish" (NULL: none was named) to
 * standard output. `commands` is sorted by name. The exit code.
 */
int completion_print(const char *shell,
                     const struct cli_command *const *commands,
                     size_t count);

#endif /* CLI_COMPLETION_H */
