/* SPDX-License-Identifier: MIT */
/*
 * orders: requests of operators by HTTP, one after the other in a thread of
 * their own, because a scheduler may take its time to answer.
 *
 * A request with a key that was answered before gets that answer again.
 */
#ifndef HTTP_ORDERS_H
#define HTTP_ORDERS_H

#include "http/source.h"

struct orders;

/* The source must outlive it. */
MUST_USE enum err
orders_open(struct orders **out, struct source *source, struct diag *diag);

/* Wait for the request in progress, and free it. NULL is allowed. */
void orders_close(struct orders *orders);

/*
 * Send a request, a JSON object (see engine/request.h), and answer the exchange
 * with the reply. `key` may be NULL. With `back`, a path of ours, the reply is
 * for a person: a redirection to it, when the shared state shows the effect, or
 * a page with the error. ERR_BUSY: too many wait.
 */
MUST_USE enum err orders_send(struct orders *orders,
                              struct http_exchange *exchange,
                              const char *json,
                              const char *key,
                              const char *back);

/* Whether a request was answered since the last call. */
bool orders_news(struct orders *orders);

#endif /* HTTP_ORDERS_H */
