/* SPDX-License-Identifier: MIT */
/*
 * client: how a command reaches a store, and the scheduler of it.
 *
 * A request goes to the scheduler. When none is alive, this process takes its
 * place for a moment: it carries the request out in the same way, starts
 * nothing, and leaves. So requests work the same with a scheduler and without
 * one.
 */
#ifndef VIEW_CLIENT_H
#define VIEW_CLIENT_H

#include "engine/engine.h"
#include "store/place.h"

/*
 * Have a request carried out (see engine/request.h) and wait for the answer, a
 * JSON object, which the caller frees. An error: it could not be given, or its
 * answer is not known, which *diag says.
 */
MUST_USE enum err client_ask(const struct store_place *place,
                             const char *json,
                             char **answer_out,
                             struct diag *diag);

/* The state of a store at one moment, to look at. */
struct client_view {
    struct store *store;
    struct engine *engine;
    struct store_owner owner; /* of the scheduler's lock */
    bool owned;               /* a scheduler holds it */
    int64_t silent_ns; /* since its last sign of life; 0 when it is well */
    bool stopped;      /* that process is stopped (SIGSTOP, debugger) */
};

/* Load it; NULL as query: the unfinished runs. Release it in any case. */
MUST_USE enum err client_look(struct client_view *out,
                              const struct store_place *place,
                              const struct store_query *query,
                              struct diag *diag);

/* Load the unfinished runs as an update would change them, and fill in the
 * differences. An error: why it cannot be made, see engine/engine.h. */
MUST_USE enum err client_look_ahead(const struct store_place *place,
                                    struct engine_update *update,
                                    struct diag *diag);

/* The same without an engine: only who schedules, and what the store says of
 * itself, which changes with every batch. Cheap, however large the store is. */
MUST_USE enum err client_peek(struct client_view *out,
                              const struct store_place *place,
                              struct store_info *info_out,
                              struct diag *diag);
void client_view_release(struct client_view *view);

/* What is the matter with the scheduler, in one word; stable, for JSON: "none",
 * "stopped", "silent", "trouble" or "alive". */
const char *client_state_name(const struct client_view *view);

/*
 * Let a plan expect what sessions of its classes have taken in a store, where
 * it has no estimate or cost of its own. `option`: as for store_place_find().
 */
MUST_USE enum err
client_expect(struct plan *plan, const char *option, struct diag *diag);

#endif /* VIEW_CLIENT_H */
