/* SPDX-License-Identifier: MIT */
/*
 * next: the command line that goes on with a run, for people to copy.
 */
#ifndef CLI_NEXT_H
#define CLI_NEXT_H

#include "base/strbuf.h"
#include "store/place.h"

#include <stdbool.h>

/* The parts of a `sluice run` command line; all borrowed. */
struct next_command {
    const char *option; /* as "--new", or NULL */
    const char *store;  /* of --store, or NULL */
    const char *plan;   /* path of the plan, or "-" */
};

/* Append the command line. Words that a shell would change are quoted. */
void next_add(struct strbuf *out, const struct next_command *command);

/*
 * Append a line that says that no scheduler runs on the store, and which
 * command goes on with its unfinished run of that id. False, and nothing
 * is appended: a scheduler runs, or there is no such run. `store` is the value
 * of --store, or NULL.
 */
bool next_add_idle(struct strbuf *out,
                   const struct store_place *place,
                   const char *store,
                   const char *run);

#endif /* CLI_NEXT_H */
