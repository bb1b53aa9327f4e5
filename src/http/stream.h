/* SPDX-License-Identifier: MIT */
/*
 * stream: the events of a store as server-sent events.
 *
 * An event's id is its number, so a client that comes back with the last one it
 * has seen misses none. Older events come from the store, then new ones as they
 * happen. A client that falls behind the kept events is dropped; it comes back
 * by number. `event: reset` says that numbers begin anew: another store has
 * taken the place of this one.
 *
 * The page has a stream of its own, of versions: it fetches what has changed.
 */
#ifndef HTTP_STREAM_H
#define HTTP_STREAM_H

#include "http/call.h"

/* Answer with a stream of the events after `after`; UINT64_MAX: new ones. */
enum http_done stream_answer(struct call *call, uint64_t after);

/* Answer with a stream of versions: `news` when there is something new, `ping`
 * now and then. */
enum http_done stream_versions(struct call *call);

#endif /* HTTP_STREAM_H */
