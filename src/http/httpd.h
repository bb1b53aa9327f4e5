/* SPDX-License-Identifier: MIT */
/*
 * httpd: HTTP/1.1 on one listening socket, by libmicrohttpd, in one thread.
 *
 * libmicrohttpd parses requests and sends responses. What it does not do is
 * here: absolute deadlines for requests and responses (its own time-outs are
 * for inactivity, so a client that sends a byte a second would stay for ever),
 * limits on bodies, and the rejection of requests that a proxy could read
 * differently (Transfer-Encoding, two lengths, an encoded NUL in the path).
 *
 * A handler answers at once, later (httpd_answer(), from any thread), or with a
 * stream of pieces that come as they are made.
 */
#ifndef HTTP_HTTPD_H
#define HTTP_HTTPD_H

#include "base/diag.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    HTTPD_BODY_BYTES_MAX = 64 << 10,
    HTTPD_PLAN_BYTES_MAX = 64 << 20, /* of a request that may have a plan */
    HTTPD_CONNECTIONS_MAX = 256,
    HTTPD_CONNECTIONS_PER_ADDRESS = 32,
    HTTPD_STREAMS_MAX = 64,
};

struct httpd;
struct http_exchange; /* a request that waits for its response */

/* A request. Strings are borrowed for the call. */
struct http_request {
    struct http_exchange *exchange;
    const char *method;
    const char *path; /* as sent, with escapes, without the query */
    const char *body;
    size_t body_len;
};

/* Return a header, or a parameter of the query with its escapes decoded; NULL:
 * absent. */
const char *http_header(const struct http_request *request, const char *name);
const char *http_query(const struct http_request *request, const char *name);

/* A constant body, which browsers may keep: its address changes with it. */
struct http_file {
    const char *type;
    const char *etag; /* with its quotes */
    const char *gzip; /* compressed by gzip */
    size_t gzip_len;
    const char *plain; /* for clients that cannot decompress */
    size_t plain_len;
};

/* A response; starts as {0}. The strings are copied. */
struct http_response {
    int status;
    const char *type;             /* of the body; NULL: JSON */
    struct strbuf body;           /* taken */
    const struct http_file *file; /* the body instead, or NULL */
    struct strbuf cookie;         /* value of Set-Cookie, if not empty; taken */
    struct strbuf location;       /* of a redirection, if not empty; taken */
    const char *allow;            /* methods, of status 405; or NULL */
    const char *policy; /* Content-Security-Policy; NULL: nothing at all */
    /* A stream, if set: append what comes next, at most about 64 KiB, and
     * return true; nothing appended: call again after httpd_wake(). False: end
     * the stream. `drop` frees the context. */
    bool (*more)(void *stream, struct strbuf *out);
    void (*drop)(void *stream);
    void *stream;
};

/* Free what it holds. */
void http_response_release(struct http_response *response);

/* Make it an error: {"ok": false, "error": NAME, "text": TEXT}. */
void http_fail(struct http_response *response,
               int status,
               enum err err,
               const char *text);

/* HTTP status for an error. */
int http_status(enum err err);

/* What a handler has done. */
enum http_done {
    HTTP_ANSWERED, /* *response is the answer */
    HTTP_LATER,    /* httpd_answer() will be called */
};

typedef enum http_done (*http_handler_fn)(void *ctx,
                                          const struct http_request *request,
                                          struct http_response *response);

/* Whether a request may go on, before its body is read; else *response is the
 * answer, and the connection is closed. */
typedef bool (*http_admit_fn)(void *ctx,
                              const struct http_request *request,
                              struct http_response *response);

/* Return the longest body of a request, by method and path. */
typedef size_t (*http_limit_fn)(const char *method, const char *path);

struct httpd_options {
    int socket; /* listening; taken */
    http_admit_fn admit;
    http_handler_fn handler;
    http_limit_fn limit;
    void *ctx;
};

MUST_USE enum err httpd_open(struct httpd **out,
                             const struct httpd_options *options,
                             struct diag *diag);

/* Close all connections and free it. NULL is allowed. */
void httpd_close(struct httpd *httpd);

/* A descriptor that is readable when httpd_run() has something to do, and how
 * long to wait for it at most, in milliseconds. */
int httpd_fd(const struct httpd *httpd);
int httpd_wait_ms(const struct httpd *httpd);

/* Read, answer, send and enforce deadlines; never blocks. */
void httpd_run(struct httpd *httpd);

/* Have all streams asked for more. */
void httpd_wake(struct httpd *httpd);

/* Number of open streams. */
uint32_t httpd_stream_count(const struct httpd *httpd);

/* Answer a request that was deferred. From any thread; httpd_fd() wakes. */
void httpd_answer(struct http_exchange *exchange,
                  struct http_response *response_take);

#endif /* HTTP_HTTPD_H */
