/* SPDX-License-Identifier: MIT */
/*
 * run_end: what `sluice run` prints at the end of a run, and warnings about it
 * that need nothing but the engine.
 */
#ifndef CLI_RUN_END_H
#define CLI_RUN_END_H

#include "base/strbuf.h"
#include "cli/next.h"
#include "engine/engine.h"
#include "store/place.h"
#include "view/client.h"

#include <stdbool.h>

/* Print a text on standard output, at once. */
void run_end_print(const struct strbuf *text);

/* Look at a run that is over; if the server of the store is away, wait for it.
 * Release the view in any case. */
MUST_USE enum err run_end_look(struct client_view *view,
                               const struct store_place *place,
                               const char *id,
                               struct diag *diag);

/* Append a warning if a scheduler could not watch as many sessions as the cap
 * of a run allows. It still works, but notices late that they have exited. */
void run_end_check_files(struct strbuf *out,
                         const struct engine *engine,
                         const char *id);

/* Hand over the branches in the repositories of the only run that is loaded,
 * and print what became of it; return the exit code, which was `code`. */
int run_end_hand_off(const struct store_place *place,
                     const struct engine *engine,
                     bool json,
                     int code);

/* Report a finished run of which only the result is known; return the exit
 * code. `command` starts another run. */
int run_end_removed(const char *id,
                    const struct next_command *command,
                    bool json,
                    bool cancelled);

#endif /* CLI_RUN_END_H */
