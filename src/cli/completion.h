/* SPDX-License-Identifier: MIT */
/*
 * completion: shell completion scripts, generated from the command tables so
 * that both always agree.
 */
#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

#include "cli/cli.h"

/*
 * Print the script for "bash", "zsh" or "fish" (NULL: missing) to standard
 * output. `commands` is sorted by name. Return the exit code.
 */
int completion_print(const char *shell,
                     const struct cli_command *const *commands,
                     size_t count);

#endif /* CLI_COMPLETION_H */
