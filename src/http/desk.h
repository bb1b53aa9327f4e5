/* SPDX-License-Identifier: MIT */
/*
 * desk: work that takes its time, in threads of its own: orders, which a
 * scheduler may be slow to answer, and reading that must not keep other clients
 * waiting.
 *
 * A desk has one queue. Its threads share nothing with the loop but the queue;
 * an answer goes back by httpd_answer().
 */
#ifndef HTTP_DESK_H
#define HTTP_DESK_H

#include "http/httpd.h"

struct desk;

/* A piece of work. */
struct desk_work {
    struct http_exchange *exchange; /* to answer; NULL: nobody waits */
    /* Fill in the response. `refused`: why it cannot be done any more, or NULL;
     * then the response must only say so. */
    void (*run)(void *ctx, const char *refused, struct http_response *response);
    void (*drop)(void *ctx); /* frees the context; or NULL */
    void *ctx;
};

struct desk_options {
    uint32_t threads;
    int64_t late_ns; /* work that waited so long is refused; 0: never */
    const char *late_text;
};

MUST_USE enum err desk_open(struct desk **out,
                            const struct desk_options *options,
                            struct diag *diag);

/* Wait for the work in progress, refuse the rest, and free it. NULL is
 * allowed. */
void desk_close(struct desk *desk);

/* Hand work over. ERR_BUSY: too much waits, or the desk is being closed; the
 * caller keeps the context. */
MUST_USE enum err desk_send(struct desk *desk, const struct desk_work *work);

/* Whether work was done since the last call. */
bool desk_news(struct desk *desk);

#endif /* HTTP_DESK_H */
