/* SPDX-License-Identifier: MIT */
/* next: the command line that resumes a run, ready to copy. */
#ifndef CLI_NEXT_H
#define CLI_NEXT_H

#include "base/strbuf.h"
#include "store/place.h"

#include <stdbool.h>

/* The parts of a `sluice run` command line; all borrowed. */
struct next_command {
    const char *option; /* such as "--new", or NULL */
    const char *store;  /* value of --store, or NULL */
    const char *plan;   /* path of the plan, or "-" */
};

/* Append the command line, with words quoted where a shell needs it. */
void next_add(struct strbuf *out, const struct next_command *command);

/*
 * Append a line that reports that the store has no scheduler, and the command
 * that resumes its unfinished run `run`. Return false and append nothing if a
 * scheduler is running or no such run exists. `store` is the value of --store,
 * or NULL.
 */
bool next_add_idle(struct strbuf *out,
                   const struct store_place *place,
                   const char *store,
                   const char *run);

#endif /* CLI_NEXT_H */
