/* SPDX-License-Identifier: MIT */
/*
 * show: commands whose output the scheduler makes of its own state, if it is
 * alive. Otherwise, and always for --json and --all, the command reads the
 * store. Both give the same output.
 */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

#include "engine/engine.h"
#include "store/place.h"
#include "view/glance.h"

/* What `sluice status` prints (cmd_status.c). */
void cmd_status_add(struct strbuf *out,
                    const struct glance *glance,
                    const struct glance_options *options);

/* Answer a question of an operator or a session: see loop_options.look. */
MUST_USE enum err show_look(struct engine *engine,
                            const struct store_place *place,
                            const struct engine_look *look,
                            struct strbuf *out,
                            struct diag *diag);

#endif /* CLI_SHOW_H */
