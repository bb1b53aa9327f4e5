/* SPDX-License-Identifier: MIT */
#include "http/api.h"

#include "base/clock.h"
#include "http/call.h"
#include "http/page.h"
#include "http/stream.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_BYTES_MAX = 200 };

/* --- orders ------------------------------------------------------------- */

/* Return the request without members that are not the client's to set; NULL
 * after an error. The caller frees it. */
static char *read_order(struct call *call)
{
    const char *type = http_header(call->request, "Content-Type");
    if (type == NULL || strncasecmp(type, "application/json", 16) != 0 ||
        (type[16] != '\0' && type[16] != ';' && type[16] != ' ')) {
        (void)call_fail(call, 415, ERR_INVALID, "send application/json");
        return NULL;
    }
    json_error_t error;
    json_t *json = json_loadb(call->request->body,
                              call->request->body_len,
                              JSON_REJECT_DUPLICATES,
                              &error);
    if (!json_is_object(json)) {
        (void)diag_set(&call->diag,
                       ERR_INVALID,
                       "the body is not a JSON object: %s",
                       json == NULL ? error.text : "it is something else");
        (void)call_fail_err(call, ERR_INVALID);
        json_decref(json);
        return NULL;
    }
    (void)json_object_del(json, "key");
    (void)json_object_del(json, "session");
    char *text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return text;
}

static enum http_done post_order(struct call *call)
{
    const char *key = http_header(call->request, "Idempotency-Key");
    if (key != NULL && (key[0] == '\0' || strlen(key) > KEY_BYTES_MAX)) {
        (void)call_fail(call,
                        400,
                        ERR_INVALID,
                        "Idempotency-Key must have 1 to 200 bytes");
        return HTTP_ANSWERED;
    }
    char *text = read_order(call);
    if (text == NULL) {
        return HTTP_ANSWERED;
    }
    enum err err = orders_send(call->api->orders,
                               call->request->exchange,
                               text,
                               key,
                               NULL);
    free(text);
    if (err != ERR_OK) {
        (void)call_fail(call, 503, err, "too many orders wait");
        return HTTP_ANSWERED;
    }
    return HTTP_LATER;
}

/* --- login -------------------------------------------------------------- */

/* Set the cookie for who has a one-time link. */
static enum http_done get_login(struct call *call)
{
    const char *code = http_query(call->request, "code");
    struct gate *gate = call->api->gate;
    enum gate_role role = GATE_NOBODY;
    if (code != NULL && strcmp(call->request->method, "GET") == 0) {
        role = gate_use_link(gate, code, clock_boot_ns());
    }
    if (role == GATE_NOBODY) {
        (void)
            call_fail(call, 403, ERR_DENIED, "the link was used or is too old");
        return HTTP_ANSWERED;
    }
    strbuf_addf(&call->response->cookie,
                GATE_COOKIE "=%s; Path=/; HttpOnly; SameSite=Strict; "
                            "Max-Age=31536000",
                gate->cookies[role]);
    call->response->status = 303;
    strbuf_adds(&call->response->location, "/");
    return HTTP_ANSWERED;
}

/* --- constant files ----------------------------------------------------- */

static enum http_done get_style(struct call *call)
{
    call->response->file = page_style();
    return HTTP_ANSWERED;
}

static enum http_done get_script(struct call *call)
{
    call->response->file = page_script();
    return HTTP_ANSWERED;
}

/* --- routes ------------------------------------------------------------- */

static const struct route {
    const char *method;
    const char *pattern;
    bool open; /* without a token: it checks its own */
    enum http_done (*run)(struct call *call);
} routes[] = {
    {"GET", "/api/v1/status", false, api_status},
    {"GET", "/api/v1/workers", false, api_workers},
    {"GET", "/api/v1/runs", false, api_runs},
    {"GET", "/api/v1/runs/{run}", false, api_run},
    {"GET", "/api/v1/runs/{run}/graph", false, api_graph},
    {"GET", "/api/v1/runs/{run}/report", false, api_report},
    {"GET", "/api/v1/runs/{run}/tasks", false, api_tasks},
    {"GET",
     "/api/v1/runs/{run}/tasks/{task*}/attempts/{number}/log",
     false,
     api_log},
    {"GET", "/api/v1/runs/{run}/tasks/{task*}/diff", false, api_diff},
    {"GET", "/api/v1/runs/{run}/tasks/{task*}", false, api_task},
    {"GET", "/api/v1/events", false, api_events},
    {"GET", "/api/v1/events/stream", false, api_stream},
    {"POST", "/api/v1/orders", false, post_order},
    {"GET", "/metrics", false, api_metrics},
    {"GET", "/", false, pages_main},
    {"GET", "/parts", false, pages_parts},
    {"GET", "/live", false, stream_versions},
    {"GET", "/live.css", false, get_style},
    {"GET", "/live.js", false, get_script},
    {"GET", "/runs", false, pages_runs},
    {"GET", "/log", false, pages_log},
    {"GET", "/lines", false, pages_lines},
    {"GET", "/diff", false, pages_diff},
    {"GET", "/graph", false, pages_graph},
    {"GET", "/report", false, pages_report},
    {"POST", "/do", false, pages_order},
    {"GET", "/login", true, get_login},
};

size_t api_limit(const char *method, const char *path)
{
    return strcmp(method, "POST") == 0 && strcmp(path, "/api/v1/orders") == 0
               ? HTTPD_PLAN_BYTES_MAX
               : HTTPD_BODY_BYTES_MAX;
}

/* Find the route; *known: another method fits the path. */
static const struct route *find_route(struct call *call, bool *known)
{
    const char *method = call->request->method;
    if (strcmp(method, "HEAD") == 0) {
        method = "GET";
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(routes); ix++) {
        if (!route_match(routes[ix].pattern,
                         call->request->path,
                         &call->parts)) {
            continue;
        }
        if (strcmp(routes[ix].method, method) == 0) {
            return &routes[ix];
        }
        *known = true;
        route_release(&call->parts);
    }
    return NULL;
}

/* Check who asks; false after an error. The host and the origin are checked
 * before the path, so that nothing can be learned about it. */
static bool is_let_in(struct call *call, bool open)
{
    const struct http_request *request = call->request;
    const char *method = request->method;
    const char *text;
    struct gate_facts facts = {
        .changes = strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0,
        .host = http_header(request, "Host"),
        .origin = http_header(request, "Origin"),
        .site = http_header(request, "Sec-Fetch-Site"),
        .authorization = http_header(request, "Authorization"),
        .cookie = http_header(request, "Cookie"),
    };
    int status = gate_check(call->api->gate, &facts, &call->role, &text);
    if (status == 0 || (status == 401 && open)) {
        return true;
    }
    (void)
        call_fail(call, status, status == 421 ? ERR_INVALID : ERR_DENIED, text);
    return false;
}

/* Make a page of an error, if a person will see it. */
static void make_readable(struct call *call)
{
    struct http_response *response = call->response;
    const char *accept = http_header(call->request, "Accept");
    if (response->status < 400 || response->type != NULL || accept == NULL ||
        strstr(accept, "text/html") == NULL ||
        strncmp(call->request->path, "/api/", 5) == 0) {
        return;
    }
    json_t *json = json_loads(strbuf_text(&response->body), 0, NULL);
    const char *said = json_string_value(json_object_get(json, "text"));
    struct strbuf text = {0};
    strbuf_adds(&text, said != NULL ? said : "");
    if (response->status == 401) {
        strbuf_adds(&text, "; 'sluice serve --link' prints a link to log in");
    }
    json_decref(json);
    strbuf_clear(&response->body);
    page_add_error(&response->body, strbuf_text(&text), "/");
    strbuf_release(&text);
    (void)call_page(call);
}

bool api_admit(void *ctx,
               const struct http_request *request,
               struct http_response *response)
{
    struct call call = {
        .api = ctx,
        .request = request,
        .response = response,
    };
    bool known = false;
    const struct route *route = find_route(&call, &known);
    bool admitted = is_let_in(&call, route != NULL && route->open);
    if (!admitted) {
        make_readable(&call);
    }
    route_release(&call.parts);
    return admitted;
}

enum http_done api_handle(void *ctx,
                          const struct http_request *request,
                          struct http_response *response)
{
    struct call call = {
        .api = ctx,
        .request = request,
        .response = response,
    };
    bool known = false;
    enum http_done done = HTTP_ANSWERED;
    response->status = 200;
    const struct route *route = find_route(&call, &known);
    if (is_let_in(&call, route != NULL && route->open)) {
        if (route != NULL) {
            done = route->run(&call);
        } else {
            (void)call_fail(&call,
                            known ? 405 : 404,
                            known ? ERR_INVALID : ERR_NOT_FOUND,
                            known ? "the path does not take this method"
                                  : "no such path");
            response->allow = !known ? NULL
                              : strcmp(request->method, "POST") == 0
                                  ? "GET, HEAD"
                                  : "GET, HEAD, POST";
        }
    }
    if (done == HTTP_ANSWERED) {
        make_readable(&call);
    }
    route_release(&call.parts);
    return done;
}
