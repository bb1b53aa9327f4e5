/* SPDX-License-Identifier: MIT */
/*
 * door: the way from a session to its scheduler.
 *
 * A request goes to the socket $SLUICE_DOOR with the key $SLUICE_KEY. If no
 * scheduler listens there, this process takes its place for a moment, as for
 * requests of operators (view/client.h), if it can reach the store.
 */
#ifndef MCP_DOOR_H
#define MCP_DOOR_H

#include "base/strbuf.h"
#include "store/place.h"

#include <jansson.h>

/* Whether this process belongs to a session. */
bool door_is_inside(void);

/* The same for a session of this store. */
bool door_is_of(const struct store_place *place);

/*
 * Make a request: an object with "verb" (see engine/request.h), to which the
 * key is added. Append the text of the answer. On error *diag has the reason:
 * that of the scheduler, or why it is not known.
 */
MUST_USE enum err
door_ask(json_t *request, struct strbuf *out, struct diag *diag);

#endif /* MCP_DOOR_H */
