/* SPDX-License-Identifier: MIT */
#include "http/api.h"

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "http/form.h"
#include "http/page.h"
#include "http/route.h"
#include "http/stream.h"
#include "view/chain.h"
#include "view/metrics.h"
#include "view/task_log.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TASKS_DEFAULT = 100,
    TASKS_MAX = 1000,
    EVENTS_DEFAULT = 100,
    EVENTS_MAX = 1000,
    LOG_BYTES_MAX = 256 << 10, /* of one answer */
    KEY_BYTES_MAX = 200,
};

/* A request being answered. */
struct call {
    struct api *api;
    const struct http_request *request;
    struct http_response *response;
    struct route_parts parts;
    struct diag diag;
    enum gate_role role;
};

static const char *part(const struct call *call, uint32_t ix)
{
    return strbuf_text(&call->parts.items[ix]);
}

/* --- answers ------------------------------------------------------------ */

/* Answer with an error: {"ok": false, "error": NAME, "text": TEXT}. */
static void
fail(struct call *call, int status, const char *name, const char *text)
{
    strbuf_clear(&call->response->body);
    struct jsonw json = {.out = &call->response->body};
    jsonw_object(&json, NULL);
    jsonw_bool(&json, "ok", false);
    jsonw_text(&json, "error", name);
    jsonw_text(&json, "text", text);
    jsonw_finish(&json);
    call->response->status = status;
}

static void fail_err(struct call *call, enum err err)
{
    fail(call, orders_status(err), err_name(err), call->diag.text);
}

/* Read a number of the query; false after an error. */
static bool
read_number(struct call *call, const char *name, uint64_t max, uint64_t *out)
{
    const char *text = http_query(call->request, name);
    char *end = NULL;
    if (text == NULL) {
        return true;
    }
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (strspn(text, "0123456789") != strlen(text) || text[0] == '\0' ||
        errno != 0 || value > max) {
        (void)diag_set(&call->diag,
                       ERR_INVALID,
                       "\"%s\" must be a number from 0 to %llu",
                       name,
                       (unsigned long long)max);
        fail_err(call, ERR_INVALID);
        return false;
    }
    *out = value;
    return true;
}

/* The shared state; NULL after an error. */
static const struct glance *glance_of_call(struct call *call)
{
    const struct glance *glance = source_glance(call->api->source, &call->diag);
    if (glance == NULL) {
        fail_err(call, ERR_UNAVAILABLE);
    }
    return glance;
}

/* --- reading ------------------------------------------------------------ */

static void add_status(struct call *call, const char *run)
{
    const struct glance *glance = glance_of_call(call);
    struct glance_options options = {.run = run};
    if (glance == NULL) {
        return;
    }
    if (run == NULL ||
        engine_find_run(glance->view.engine, run) != STORE_NONE) {
        model_add_json(&call->response->body, glance, &options);
        return;
    }
    struct glance own; /* it has finished, or does not exist */
    options.store = source_place(call->api->source)->address;
    options.alone = true;
    enum err err = glance_take(&own, &options, &call->diag);
    if (err == ERR_OK) {
        model_add_json(&call->response->body, &own, &options);
    } else {
        fail_err(call, err);
    }
    glance_release(&own);
}

static enum http_done get_status(struct call *call)
{
    add_status(call, NULL);
    return HTTP_ANSWERED;
}

static enum http_done get_run(struct call *call)
{
    add_status(call, part(call, 0));
    return HTTP_ANSWERED;
}

static void add_task(struct jsonw *json,
                     const struct glance *glance,
                     uint32_t run,
                     uint32_t task)
{
    const struct plan *plan = engine_run(glance->view.engine, run).plan;
    struct reason reason = snapshot_reason(glance->snapshot, run, task);
    jsonw_item(json, 1);
    jsonw_text(json, "task", plan->tasks[task].id);
    jsonw_int(json, "number", task);
    jsonw_text(json,
               "state",
               sched_state_name(snapshot_state(glance->snapshot, run, task)));
    jsonw_text(json, "title", plan_issue_of(plan, &plan->tasks[task]).title);
    jsonw_int(json,
              "attempt",
              engine_attempt_number(glance->view.engine, run, task));
    jsonw_name(json, "why");
    reasons_add_json(json->out, &reason);
    jsonw_object_end(json);
}

/* List tasks of an unfinished run, page by page. */
static enum http_done get_tasks(struct call *call)
{
    const char *wanted = http_query(call->request, "state");
    uint64_t after = UINT32_MAX;
    uint64_t limit = TASKS_DEFAULT;
    const struct glance *glance = glance_of_call(call);
    if (glance == NULL || !read_number(call, "after", UINT32_MAX - 1, &after) ||
        !read_number(call, "limit", TASKS_MAX, &limit)) {
        return HTTP_ANSWERED;
    }
    uint32_t run = engine_find_run(glance->view.engine, part(call, 0));
    if (run == STORE_NONE) {
        (void)diag_set(&call->diag,
                       ERR_NOT_FOUND,
                       "no unfinished run \"%s\"",
                       part(call, 0));
        fail_err(call, ERR_NOT_FOUND);
        return HTTP_ANSWERED;
    }
    uint32_t count = engine_run(glance->view.engine, run).plan->task_count;
    uint32_t first = after == UINT32_MAX ? 0 : (uint32_t)after + 1;
    uint32_t given = 0;
    struct jsonw json = {.out = &call->response->body, .spaced = true};
    jsonw_object(&json, NULL);
    jsonw_text(&json, "run", part(call, 0));
    jsonw_list(&json, 1, "tasks");
    uint32_t ix = first;
    for (; ix < count && given < limit; ix++) {
        const char *state =
            sched_state_name(snapshot_state(glance->snapshot, run, ix));
        if (wanted == NULL || strcmp(wanted, state) == 0) {
            add_task(&json, glance, run, ix);
            given++;
        }
    }
    jsonw_array_end(&json);
    if (ix < count && ix > 0) {
        jsonw_int(&json, "next", ix - 1);
    } else {
        jsonw_text(&json, "next", NULL);
    }
    jsonw_finish(&json);
    return HTTP_ANSWERED;
}

/* One task, as `sluice why --json` prints it. */
static enum http_done get_task(struct call *call)
{
    struct chain chain;
    const struct glance *glance = glance_of_call(call);
    if (glance == NULL) {
        return HTTP_ANSWERED;
    }
    const char *address = source_place(call->api->source)->address;
    enum err err =
        chain_in(&chain, glance, part(call, 0), part(call, 1), &call->diag);
    if (err == ERR_OK) {
        err = store_open(&chain.glance.view.store,
                         address,
                         STORE_READ,
                         &call->diag);
    }
    if (err == ERR_OK) {
        err = chain_read_attempts(&chain, &call->diag);
    }
    if (err == ERR_OK) {
        chain_add_json(&call->response->body, &chain);
    } else {
        fail_err(call, err);
    }
    store_close(chain.glance.view.store);
    return HTTP_ANSWERED;
}

/* Add a piece of a log file. */
static enum err add_log(struct call *call, const char *dir, uint64_t from)
{
    struct strbuf path = {0};
    struct stat stat;
    strbuf_addf(&path, "%s/log", dir);
    int fd = open(strbuf_text(&path),
                  O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    strbuf_release(&path);
    if (fd < 0 || fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode)) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return diag_set(&call->diag, ERR_NOT_FOUND, "no log exists");
    }
    uint64_t size = (uint64_t)stat.st_size;
    if (from == UINT64_MAX) {
        from = size > LOG_BYTES_MAX ? size - LOG_BYTES_MAX : 0;
    }
    from = from < size ? from : size;
    char *bytes = mem_resize(NULL, LOG_BYTES_MAX + 1, 1);
    ssize_t len = pread(fd, bytes, LOG_BYTES_MAX, (off_t)from);
    (void)close(fd);
    len = len > 0 ? len : 0;
    for (ssize_t ix = 0; ix < len; ix++) {
        bytes[ix] = (char)(bytes[ix] == '\0' ? ' ' : bytes[ix]);
    }
    bytes[len] = '\0';
    utf8_repair(bytes, (size_t)len);
    struct jsonw json = {.out = &call->response->body};
    jsonw_object(&json, NULL);
    jsonw_int(&json, "from", (int64_t)from);
    jsonw_int(&json, "next", (int64_t)from + len);
    jsonw_int(&json, "size", (int64_t)size);
    jsonw_text(&json, "text", bytes);
    jsonw_finish(&json);
    mem_free(bytes);
    return ERR_OK;
}

static enum http_done get_log(struct call *call)
{
    uint64_t from = UINT64_MAX;
    struct store *store = NULL;
    struct target target = {0};
    struct task_log log = {0};
    struct strbuf dir = {0};
    const struct store_place *place = source_place(call->api->source);
    char *end;
    unsigned long number = strtoul(part(call, 2), &end, 10);
    if (glance_of_call(call) == NULL ||
        !read_number(call, "from", INT64_MAX, &from)) {
        return HTTP_ANSWERED;
    }
    enum err err = ERR_OK;
    if (*end != '\0' || number == 0 || number > UINT32_MAX) {
        err = diag_set(&call->diag, ERR_NOT_FOUND, "no such attempt");
    }
    if (err == ERR_OK) {
        err = store_open(&store, place->address, STORE_READ, &call->diag);
    }
    if (err == ERR_OK) {
        err = target_find(&target,
                          store,
                          part(call, 1),
                          part(call, 0),
                          TARGET_TASK_OR_GROUP,
                          &call->diag);
    }
    if (err == ERR_OK) {
        err =
            task_log_find(&log, store, &target, (uint32_t)number, &call->diag);
    }
    if (err == ERR_OK && log.token == 0) {
        err = diag_set(&call->diag, ERR_NOT_FOUND, "no such attempt");
    }
    if (err == ERR_OK) {
        err = task_log_add_dir(&dir,
                               store,
                               place->home,
                               &target,
                               &log,
                               &call->diag);
    }
    if (err == ERR_OK) {
        err = add_log(call, strbuf_text(&dir), from);
    }
    if (err != ERR_OK) {
        fail_err(call, err);
    }
    strbuf_release(&dir);
    target_release(&target);
    store_close(store);
    return HTTP_ANSWERED;
}

static enum http_done get_events(struct call *call)
{
    uint64_t after = 0;
    uint64_t limit = EVENTS_DEFAULT;
    uint64_t last = 0;
    if (glance_of_call(call) == NULL ||
        !read_number(call, "after", INT64_MAX, &after) ||
        !read_number(call, "limit", EVENTS_MAX, &limit)) {
        return HTTP_ANSWERED;
    }
    struct strbuf list = {0};
    enum err err = limit == 0 ? ERR_OK
                              : source_add_events(call->api->source,
                                                  &list,
                                                  SOURCE_LIST,
                                                  after,
                                                  (uint32_t)limit,
                                                  &last,
                                                  &call->diag);
    if (err != ERR_OK) {
        fail_err(call, err);
    } else {
        struct strbuf *out = &call->response->body;
        struct jsonw json = {.out = out};
        jsonw_object(&json, NULL);
        jsonw_name(&json, "events");
        strbuf_addf(out, "[%s]", strbuf_text(&list));
        jsonw_int(&json, "next", (int64_t)(last > after ? last : after));
        jsonw_finish(&json);
    }
    strbuf_release(&list);
    return HTTP_ANSWERED;
}

static enum http_done get_stream(struct call *call)
{
    const char *seen = http_header(call->request, "Last-Event-ID");
    uint64_t after = UINT64_MAX;
    if (httpd_stream_count(call->api->httpd) >= HTTPD_STREAMS_MAX) {
        fail(call, 503, err_name(ERR_BUSY), "too many streams are open");
        return HTTP_ANSWERED;
    }
    if (seen != NULL && seen[0] != '\0' &&
        strspn(seen, "0123456789") == strlen(seen) && strlen(seen) < 19) {
        after = strtoull(seen, NULL, 10);
    } else if (!read_number(call, "after", INT64_MAX, &after)) {
        return HTTP_ANSWERED;
    }
    if (glance_of_call(call) == NULL) {
        return HTTP_ANSWERED;
    }
    if (strcmp(call->request->method, "HEAD") == 0) {
        call->response->type = "text/event-stream";
    } else {
        stream_begin(call->response, call->api->source, after);
    }
    return HTTP_ANSWERED;
}

static enum http_done get_metrics(struct call *call)
{
    struct glance_options options = {
        .store = source_place(call->api->source)->address,
        .forecast = true,
    };
    if (glance_of_call(call) == NULL) {
        return HTTP_ANSWERED;
    }
    enum err err = metrics_add(&call->response->body, &options, &call->diag);
    call->response->type = "text/plain; version=0.0.4; charset=utf-8";
    if (err != ERR_OK) {
        call->response->type = NULL;
        fail_err(call, err);
    }
    return HTTP_ANSWERED;
}

/* --- orders ------------------------------------------------------------- */

/* Return the request without members that are not the client's to set; NULL
 * after an error. The caller frees it. */
static char *read_order(struct call *call)
{
    const char *type = http_header(call->request, "Content-Type");
    if (type == NULL || strncasecmp(type, "application/json", 16) != 0 ||
        (type[16] != '\0' && type[16] != ';' && type[16] != ' ')) {
        fail(call, 415, err_name(ERR_INVALID), "send application/json");
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
        fail_err(call, ERR_INVALID);
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
        fail(call,
             400,
             err_name(ERR_INVALID),
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
        fail(call, 503, err_name(err), "too many orders wait");
        return HTTP_ANSWERED;
    }
    return HTTP_LATER;
}

/* --- the page ------------------------------------------------------------ */

/* Append "&name=value" of the request's query, escaped. */
static void
add_parameter(struct call *call, struct strbuf *out, const char *name)
{
    const char *text = http_query(call->request, name);
    if (text == NULL || text[0] == '\0') {
        return;
    }
    strbuf_addf(out, "%c%s=", strchr(strbuf_text(out), '?') ? '&' : '?', name);
    for (const char *at = text; *at != '\0'; at++) {
        strbuf_addf(out, "%%%02X", (unsigned)(unsigned char)*at);
    }
}

static enum http_done get_page(struct call *call)
{
    static const char *const names[] = {"run",
                                        "task",
                                        "state",
                                        "find",
                                        "after"};
    uint64_t after = UINT32_MAX;
    struct strbuf path = {0};
    const struct glance *glance = glance_of_call(call);
    if (glance == NULL || !read_number(call, "after", UINT32_MAX - 1, &after)) {
        return HTTP_ANSWERED;
    }
    strbuf_adds(&path, "/");
    for (size_t ix = 0; ix < ARRAY_COUNT(names); ix++) {
        add_parameter(call, &path, names[ix]);
    }
    struct page_query query = {
        .run = http_query(call->request, "run"),
        .task = http_query(call->request, "task"),
        .state = http_query(call->request, "state"),
        .find = http_query(call->request, "find"),
        .after = (uint32_t)after,
        .path = strbuf_text(&path),
        .looks_only = call->role != GATE_OPERATOR,
    };
    page_add(&call->response->body, call->api->source, glance, &query);
    call->response->type = "text/html; charset=utf-8";
    call->response->policy = page_policy();
    strbuf_release(&path);
    return HTTP_ANSWERED;
}

/* An order of the page, without a script. */
static enum http_done post_form(struct call *call)
{
    static const char form[] = "application/x-www-form-urlencoded";
    const char *type = http_header(call->request, "Content-Type");
    struct form_order order = {0};
    if (type == NULL || strncasecmp(type, form, strlen(form)) != 0) {
        fail(call, 415, err_name(ERR_INVALID), "send a form");
        return HTTP_ANSWERED;
    }
    enum err err = form_read(&order,
                             call->request->body,
                             call->request->body_len,
                             &call->diag);
    if (err == ERR_OK) {
        err = orders_send(call->api->orders,
                          call->request->exchange,
                          strbuf_text(&order.json),
                          NULL,
                          strbuf_text(&order.back));
    }
    if (err != ERR_OK) {
        page_add_error(&call->response->body,
                       err == ERR_BUSY ? "too many orders wait"
                                       : call->diag.text,
                       strbuf_text(&order.back));
        call->response->type = "text/html; charset=utf-8";
        call->response->status = orders_status(err);
    }
    form_release(&order);
    return err == ERR_OK ? HTTP_LATER : HTTP_ANSWERED;
}

/* --- login -------------------------------------------------------------- */

/* Set the cookie for who has a one-time link. */
static enum http_done get_login(struct call *call)
{
    const char *code = http_query(call->request, "code");
    struct gate *gate = call->api->gate;
    if (code == NULL || strcmp(call->request->method, "GET") != 0 ||
        !gate_use_link(gate, code, clock_boot_ns())) {
        fail(call,
             403,
             err_name(ERR_DENIED),
             "the link was used or is too old");
        return HTTP_ANSWERED;
    }
    strbuf_addf(&call->response->cookie,
                GATE_COOKIE "=%s; Path=/; HttpOnly; SameSite=Strict; "
                            "Max-Age=31536000",
                gate->cookies[GATE_OPERATOR]);
    call->response->status = 303;
    strbuf_adds(&call->response->location, "/");
    return HTTP_ANSWERED;
}

/* --- routes ------------------------------------------------------------- */

static const struct route {
    const char *method;
    const char *pattern;
    bool open; /* without a token: it checks its own */
    enum http_done (*run)(struct call *call);
} routes[] = {
    {"GET", "/api/v1/status", false, get_status},
    {"GET", "/api/v1/runs/{run}", false, get_run},
    {"GET", "/api/v1/runs/{run}/tasks", false, get_tasks},
    {"GET",
     "/api/v1/runs/{run}/tasks/{task*}/attempts/{number}/log",
     false,
     get_log},
    {"GET", "/api/v1/runs/{run}/tasks/{task*}", false, get_task},
    {"GET", "/api/v1/events", false, get_events},
    {"GET", "/api/v1/events/stream", false, get_stream},
    {"POST", "/api/v1/orders", false, post_order},
    {"GET", "/", false, get_page},
    {"POST", "/do", false, post_form},
    {"GET", "/login", true, get_login},
    {"GET", "/metrics", false, get_metrics},
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
    fail(call,
         status,
         err_name(status == 421 ? ERR_INVALID : ERR_DENIED),
         text);
    return false;
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
            (void)diag_set(&call.diag, ERR_NOT_FOUND, "no such path");
            fail(&call,
                 known ? 405 : 404,
                 err_name(known ? ERR_INVALID : ERR_NOT_FOUND),
                 known ? "the path does not take this method" : "no such path");
            response->allow = !known ? NULL
                              : strcmp(request->method, "POST") == 0
                                  ? "GET, HEAD"
                                  : "GET, HEAD, POST";
        }
    }
    route_release(&call.parts);
    return done;
}
