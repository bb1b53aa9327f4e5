/* SPDX-License-Identifier: MIT */
/*
 * plant: a settings file for a program that learns of MCP servers only by a
 * file in its working directory.
 *
 * Only in a checkout that sluice has made, whose repository is its own: the
 * file is excluded there, so that no commit gets it. A file that exists already
 * stays as it is.
 */
#ifndef AGENT_PLANT_H
#define AGENT_PLANT_H

#include "adapter/adapter.h"

/* Create the file of a command, and set its variable there; `common_dir` is the
 * git directory, or NULL. Return its name for plant_drop(), or NULL: it was not
 * created. */
const char *plant_put(struct adapter_command *command, const char *common_dir);

/* Remove the file, and its directory if that is empty. NULL is allowed. */
void plant_drop(const char *file);

#endif /* AGENT_PLANT_H */
