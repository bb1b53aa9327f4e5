/* SPDX-License-Identifier: MIT */
/*
 * client: access of a command to a store and its scheduler.
 *
 * A request goes to the scheduler. If none is alive, this process takes its
 * place for a moment: it carries out the request in the same way, starts
 * nothing, and releases the lock. So requests work the same with and without a
 * scheduler.
 */
#ifndef VIEW_CLIENT_H
#define VIEW_CLIENT_H

#include "engine/engine.h"
#include "store/place.h"

/*
 * Send a request (see engine/request.h) and wait for the answer, a JSON object
 * that the caller frees. On error the request was not sent or its answer is
 * unknown; *diag reports which.
 */
MUST_USE enum err client_ask(const struct store_place *place,
                             const char *json,
                             char **answer_out,
                             struct diag *diag);

/* The same with a key of the caller's choice: a request of this key that was
 * answered before gets that answer again. NULL: a new key. */
MUST_USE enum err client_ask_once(const struct store_place *place,
                                  const char *json,
                                  const struct store_key *key,
                                  char **answer_out,
                                  struct diag *diag);

/*
 * Have the scheduler answer a question (see "show" in engine/request.h); free
 * the text. An error, if it does not: there is none, or it is on another
 * machine, stopped or in trouble. Nothing is changed in any case.
 */
MUST_USE enum err client_show(const struct store_place *place,
                              const char *json,
                              char **text_out,
                              struct diag *diag);

/* State of a store at one moment, read only. */
struct client_view {
    struct store *store;
    struct engine *engine;
    struct store_owner owner; /* of the scheduler lock */
    bool owned;               /* a scheduler holds the lock */
    int64_t silent_ns;        /* since its last heartbeat; 0: healthy */
    bool stopped;             /* process is stopped (SIGSTOP, debugger) */
};

/* Load it; query NULL: the unfinished runs. Release it in any case. */
MUST_USE enum err client_look(struct client_view *out,
                              const struct store_place *place,
                              const struct store_query *query,
                              struct diag *diag);

/* The same with an engine of an earlier view, which is not used any more, or
 * NULL; see struct engine_options. */
MUST_USE enum err client_look_again(struct client_view *out,
                                    const struct store_place *place,
                                    const struct store_query *query,
                                    struct engine *spare,
                                    struct diag *diag);

/* The state of a store as the engine of its scheduler has it, which stays the
 * caller's: set its pointer to NULL before client_view_release(). */
MUST_USE enum err client_look_inside(struct client_view *out,
                                     const struct store_place *place,
                                     struct engine *engine,
                                     struct diag *diag);

/* Load the unfinished runs as an update would change them, and fill in the
 * differences. On error the update is impossible, see engine/engine.h. */
MUST_USE enum err client_look_ahead(const struct store_place *place,
                                    struct engine_update *update,
                                    struct diag *diag);

/* Read only the scheduler state and the store info, which changes with every
 * transaction, for a view whose store is open and which has no engine. Cheap
 * for a store of any size. */
MUST_USE enum err client_peek(struct client_view *view,
                              struct store_info *info_out,
                              struct diag *diag);
void client_view_release(struct client_view *view);

/* State of the scheduler in one word, stable, for JSON: "none", "stopped",
 * "silent", "trouble" or "alive". */
const char *client_state_name(const struct client_view *view);

/*
 * Fill in missing estimates and costs of a plan from past sessions of its
 * classes in a store. `option`: as for store_place_find().
 */
MUST_USE enum err
client_expect(struct plan *plan, const char *option, struct diag *diag);

#endif /* VIEW_CLIENT_H */
