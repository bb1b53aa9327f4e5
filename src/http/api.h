/* SPDX-License-Identifier: MIT */
/*
 * api: the HTTP interface: routes, and their answers as JSON. docs/api.md
 * describes it for clients.
 *
 * Only POST /api/v1/orders changes anything. The rest is what commands print
 * with --json, from one state that all clients share.
 */
#ifndef HTTP_API_H
#define HTTP_API_H

#include "http/desk.h"
#include "http/gate.h"
#include "http/httpd.h"
#include "http/orders.h"
#include "http/source.h"

/* All of it is borrowed. */
struct api {
    struct desk *desk; /* for slow reading */
    struct source *source;
    struct gate *gate;
    struct orders *orders;
    struct httpd *httpd; /* NULL until it is open */
    int64_t seen_ns;     /* see http/seen.h */
};

/* Answer a request: a handler for httpd, whose context is a struct api. */
enum http_done api_handle(void *ctx,
                          const struct http_request *request,
                          struct http_response *response);

/* Whether a request may go on, before its body is read; else *response says why
 * not. */
bool api_admit(void *ctx,
               const struct http_request *request,
               struct http_response *response);

/* The longest body of a request. */
size_t api_limit(const char *method, const char *path);

#endif /* HTTP_API_H */
