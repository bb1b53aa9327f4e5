/* SPDX-License-Identifier: MIT */
/*
 * call: a request being answered by one of the handlers of a route, and what
 * they share.
 */
#ifndef HTTP_CALL_H
#define HTTP_CALL_H

#include "http/api.h"
#include "http/gate.h"
#include "http/route.h"
#include "report/report.h"

struct call {
    struct api *api;
    const struct http_request *request;
    struct http_response *response;
    struct route_parts parts;
    struct diag diag;
    enum gate_role role;
};

/* Return a part of the path. */
const char *call_part(const struct call *call, uint32_t ix);

/* Return a parameter of the query; NULL: absent or empty. */
const char *call_query(const struct call *call, const char *name);

/* Answer with an error; of call_fail_err(), the text is in the call's diag. */
enum http_done
call_fail(struct call *call, int status, enum err err, const char *text);
enum http_done call_fail_err(struct call *call, enum err err);

/* Read a number of the query, which is unchanged without it; false after an
 * error. */
bool call_number(struct call *call,
                 const char *name,
                 uint64_t max,
                 uint64_t *out);

/* Return the shared state; NULL after an error. */
const struct glance *call_glance(struct call *call);

/* Answer with a page; the body is HTML. */
enum http_done call_page(struct call *call);

/* What slow reading is about; see call_slowly(). The strings are copies, or
 * NULL. */
struct slow {
    struct store_place place;
    char *run;
    char *task;
    char *find;
    uint64_t number; /* of an attempt; 0: the last */
    uint64_t from;   /* an offset */
    bool looks_only; /* the client may give no orders */
};

typedef void (*slow_fn)(const struct slow *slow,
                        struct http_response *response);

/* Have a function fill in the response, in another thread. `run` and `task` may
 * be NULL; *more has the other members. */
enum http_done call_slowly(struct call *call,
                           slow_fn run,
                           const char *run_id,
                           const char *task,
                           const struct slow *more);

/* --- handlers, by file -------------------------------------------------- */

/* api_read.c */
enum http_done api_status(struct call *call);
enum http_done api_runs(struct call *call);
enum http_done api_run(struct call *call);
enum http_done api_tasks(struct call *call);
enum http_done api_task(struct call *call);
enum http_done api_events(struct call *call);
enum http_done api_stream(struct call *call);
enum http_done api_workers(struct call *call);
enum http_done api_graph(struct call *call);
enum http_done api_log(struct call *call);

/* api_slow.c */
enum http_done api_diff(struct call *call);
enum http_done api_metrics(struct call *call);
enum http_done api_report(struct call *call);

/* Append the report of a run, or the text of the error. */
typedef void (*report_fn)(struct strbuf *out, const struct report *report);
enum err
api_make_report(const struct slow *slow, struct strbuf *out, report_fn fn);

/* pages.c */
enum http_done pages_main(struct call *call);
enum http_done pages_parts(struct call *call);
enum http_done pages_runs(struct call *call);
enum http_done pages_log(struct call *call);
enum http_done pages_lines(struct call *call);
enum http_done pages_diff(struct call *call);
enum http_done pages_graph(struct call *call);
enum http_done pages_report(struct call *call);
enum http_done pages_order(struct call *call);

#endif /* HTTP_CALL_H */
