/* SPDX-License-Identifier: MIT */
/*
 * client: how a command reaches a store, and the scheduler of it.
 *
 * An order goes to the scheduler over its socket. When none is alive, this
 * process takes its place for a moment: it carries the order out in the same
 * way, starts nothing, and leaves. So orders work the same with a scheduler
 * and without one.
 */
#ifndef VIEW_CLIENT_H
#define VIEW_CLIENT_H

#include "engine/engine.h"

/*
 * The absolute path of the store's directory: `option`, $SLUICE_STORE, or the
 * nearest directory .sluice from here upward. With `make` it need not be there
 * (then .sluice here). The caller frees it. NULL: *diag says what to do.
 */
char *client_find_store(const char *option, bool make, struct diag *diag);

/* Who this process is, for store_take(). */
struct store_owner client_self(void);

/*
 * Have an order carried out (see engine/orders.h) and wait for the answer, a
 * JSON object, which the caller frees. An error: it could not be given, or its
 * answer is not known, which *diag says.
 */
MUST_USE enum err client_order(const char *dir,
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
                              const char *dir,
                              const struct store_query *query,
                              struct diag *diag);

/* Load the unfinished runs as an update would change them, and fill in the
 * differences. An error: why it cannot be made, see engine/engine.h. */
MUST_USE enum err client_look_ahead(const char *dir,
                                    struct engine_update *update,
                                    struct diag *diag);

/* The same without an engine: only who schedules, and what the store says of
 * itself, which changes with every batch. Cheap, however large the store is. */
MUST_USE enum err client_peek(struct client_view *out,
                              const char *dir,
                              struct store_info *info_out,
                              struct diag *diag);
void client_view_release(struct client_view *view);

/* What is the matter with the scheduler, in one word; stable, for JSON: "none",
 * "stopped", "silent", "trouble" or "alive". */
const char *client_state_name(const struct client_view *view);

/*
 * Let a plan expect what sessions of its classes have taken in the store in
 * `dir`, where it has no estimate or cost of its own.
 */
MUST_USE enum err
client_expect(struct plan *plan, const char *dir, struct diag *diag);

#endif /* VIEW_CLIENT_H */
