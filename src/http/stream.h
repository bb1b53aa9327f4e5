/* SPDX-License-Identifier: MIT */
/*
 * stream: the events of a store as server-sent events.
 *
 * An event's id is its number, so a client that comes back with the last one it
 * has seen misses none. Older events come from the store, then new ones as they
 * happen. A client that falls behind the kept events is dropped; it comes back
 * by number. `event: reset` says that numbers begin anew: another store has
 * taken the place of this one.
 */
#ifndef HTTP_STREAM_H
#define HTTP_STREAM_H

#include "http/httpd.h"
#include "http/source.h"

/* Make *response a stream of the events after `after`; UINT64_MAX: new ones. */
void stream_begin(struct http_response *response,
                  struct source *source,
                  uint64_t after);

#endif /* HTTP_STREAM_H */
