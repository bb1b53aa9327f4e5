/* SPDX-License-Identifier: MIT */
#include "http/httpd.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "http/route.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MEMORY_BYTES = 32 << 10, /* per connection: the header has half of it */
    BLOCK_BYTES = 16 << 10,  /* of a stream */
    IDLE_S = 30,             /* libmicrohttpd's own time-out */
    SWEEP_MS = 500,
};

#define READ_NS (10 * SECOND_NS)  /* for header and body */
#define WRITE_NS (60 * SECOND_NS) /* for a response that is no stream */

enum phase { PHASE_READ, PHASE_THINK, PHASE_WRITE, PHASE_STREAM };

/* A connection, from its acceptance to its end. */
struct peer {
    struct peer *next;
    struct peer **place; /* that points to it */
    int fd;
    enum phase phase;
    int64_t since_ns;
};

struct http_exchange {
    struct httpd *httpd;
    struct MHD_Connection *connection;
    struct peer *peer;
    char *path;
    char *method;
    struct strbuf body;
    struct arena arena; /* of decoded parameters */
    size_t body_max;
    int refused;   /* status; 0: none */
    bool deferred; /* the handler answers later ... */
    bool answered; /* ... and has */
    struct http_response response;
    struct http_exchange *next_answered;
    /* Of a stream: */
    struct http_exchange *next_stream;
    struct strbuf pending;
    size_t sent; /* of `pending` */
    bool suspended;
    bool over;
};

struct httpd {
    struct MHD_Daemon *daemon;
    struct httpd_options options;
    struct peer *peers;
    struct http_exchange *streams;
    uint32_t stream_count;
    int epoll; /* libmicrohttpd's, and `bell` */
    int bell;  /* an eventfd: an answer has come */
    int64_t swept_ns;
    pthread_mutex_t lock;           /* guards the list of answers */
    struct http_exchange *answered; /* by other threads */
    bool closing;
};

/* --- requests ----------------------------------------------------------- */

const char *http_header(const struct http_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->exchange->connection,
                                       MHD_HEADER_KIND,
                                       name);
}

const char *http_query(const struct http_request *request, const char *name)
{
    struct http_exchange *exchange = request->exchange;
    const char *raw = MHD_lookup_connection_value(exchange->connection,
                                                  MHD_GET_ARGUMENT_KIND,
                                                  name);
    struct strbuf text = {0};
    const char *value = NULL;
    if (raw != NULL && route_decode(&text, raw, strlen(raw), true)) {
        value = arena_strndup(&exchange->arena, strbuf_text(&text), text.len);
    }
    strbuf_release(&text);
    return value;
}

static void set_phase(struct peer *peer, enum phase phase)
{
    peer->phase = phase;
    peer->since_ns = clock_boot_ns();
}

/* --- responses ---------------------------------------------------------- */

void http_response_release(struct http_response *response)
{
    strbuf_release(&response->body);
    strbuf_release(&response->cookie);
    strbuf_release(&response->location);
    if (response->drop != NULL) {
        response->drop(response->stream);
    }
    *response = (struct http_response){0};
}

void http_fail(struct http_response *response,
               int status,
               enum err err,
               const char *text)
{
    strbuf_clear(&response->body);
    struct jsonw json = {.out = &response->body};
    jsonw_object(&json, NULL);
    jsonw_bool(&json, "ok", false);
    jsonw_text(&json, "error", err_name(err));
    jsonw_text(&json, "text", text);
    jsonw_finish(&json);
    response->status = status;
    response->type = NULL;
}

int http_status(enum err err)
{
    switch (err) {
    case ERR_OK:
        return MHD_HTTP_OK;
    case ERR_INVALID:
        return MHD_HTTP_BAD_REQUEST;
    case ERR_DENIED:
        return MHD_HTTP_FORBIDDEN;
    case ERR_NOT_FOUND:
        return MHD_HTTP_NOT_FOUND;
    case ERR_CONFLICT:
    case ERR_CANCELLED:
        return MHD_HTTP_CONFLICT;
    case ERR_LIMIT:
        return MHD_HTTP_UNPROCESSABLE_CONTENT;
    case ERR_TIMEOUT:
        return MHD_HTTP_GATEWAY_TIMEOUT;
    case ERR_BUSY:
    case ERR_UNAVAILABLE:
    case ERR_IO:
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    case ERR_CORRUPT:
    case ERR_COUNT:
        break;
    }
    return MHD_HTTP_INTERNAL_SERVER_ERROR;
}

/* Headers that every response has. Nothing may be framed, sniffed or loaded
 * from elsewhere; only constant files may be cached. */
static void add_headers(struct MHD_Response *made,
                        const struct http_response *response)
{
    const struct http_file *file = response->file;
    const char *const list[][2] = {
        {"Cache-Control",
         file != NULL ? "private, max-age=31536000, immutable" : "no-store"},
        {"Content-Security-Policy",
         response->policy != NULL
             ? response->policy
             : "default-src 'none'; frame-ancestors 'none'"},
        {"Content-Type",
         file != NULL                 ? file->type
         : response->location.len > 0 ? "" /* and no body */
         : response->type != NULL     ? response->type
                                      : "application/json"},
        {"ETag", file != NULL ? file->etag : ""},
        {"Vary", file != NULL ? "Accept-Encoding" : ""},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Referrer-Policy", "same-origin"} /* forms need an Origin */,
        {"X-Content-Type-Options", "nosniff"},
        {"Allow", response->allow != NULL ? response->allow : ""},
        {"Location", strbuf_text(&response->location)},
        {"Set-Cookie", strbuf_text(&response->cookie)},
        {"WWW-Authenticate",
         response->status == MHD_HTTP_UNAUTHORIZED ? "Bearer" : ""},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(list); ix++) {
        if (list[ix][1][0] != '\0') {
            (void)MHD_add_response_header(made, list[ix][0], list[ix][1]);
        }
    }
}

/* Give libmicrohttpd the next bytes of a stream. */
static ssize_t read_stream(void *ctx, uint64_t at, char *out, size_t max)
{
    struct http_exchange *exchange = ctx;
    struct http_response *response = &exchange->response;
    (void)at;
    if (exchange->sent == exchange->pending.len && !exchange->over) {
        strbuf_clear(&exchange->pending);
        exchange->sent = 0;
        exchange->over = exchange->httpd->closing ||
                         !response->more(response->stream, &exchange->pending);
    }
    size_t left = exchange->pending.len - exchange->sent;
    if (left == 0 && exchange->over) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    if (left == 0) {
        exchange->suspended = true;
        MHD_suspend_connection(exchange->connection);
        return 0;
    }
    size_t part = left < max ? left : max;
    memcpy(out, exchange->pending.text + exchange->sent, part);
    exchange->sent += part;
    return (ssize_t)part;
}

static enum MHD_Result begin_stream(struct http_exchange *exchange)
{
    struct httpd *httpd = exchange->httpd;
    struct MHD_Response *made =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN,
                                          BLOCK_BYTES,
                                          read_stream,
                                          exchange,
                                          NULL);
    if (made == NULL) {
        return MHD_NO;
    }
    add_headers(made, &exchange->response);
    set_phase(exchange->peer, PHASE_STREAM);
    exchange->next_stream = httpd->streams;
    httpd->streams = exchange;
    httpd->stream_count++;
    enum MHD_Result result =
        MHD_queue_response(exchange->connection, MHD_HTTP_OK, made);
    MHD_destroy_response(made);
    return result;
}

/* Whether the client sent a header that contains a word. */
static bool
has_word(struct http_exchange *exchange, const char *name, const char *word)
{
    const char *value = MHD_lookup_connection_value(exchange->connection,
                                                    MHD_HEADER_KIND,
                                                    name);
    return value != NULL && strstr(value, word) != NULL;
}

/* Make the response of a constant file; the client may have it already. */
static struct MHD_Response *make_file(struct http_exchange *exchange)
{
    struct http_response *response = &exchange->response;
    const struct http_file *file = response->file;
    bool known = has_word(exchange, "If-None-Match", file->etag);
    /* Some coding has a weight of 0: it may be this one. */
    bool packed = has_word(exchange, "Accept-Encoding", "gzip") &&
                  !has_word(exchange, "Accept-Encoding", "q=0");
    const void *bytes = packed ? file->gzip : file->plain;
    size_t len = packed ? file->gzip_len : file->plain_len;
    response->status = known ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK;
    void *copied; /* libmicrohttpd does not write to it */
    memcpy(&copied, &bytes, sizeof(copied));
    struct MHD_Response *made =
        MHD_create_response_from_buffer(known ? 0 : len,
                                        copied,
                                        MHD_RESPMEM_PERSISTENT);
    if (made != NULL && packed && !known) {
        (void)MHD_add_response_header(made, "Content-Encoding", "gzip");
    }
    return made;
}

/* Send the response of an exchange. */
static enum MHD_Result respond(struct http_exchange *exchange)
{
    struct http_response *response = &exchange->response;
    if (response->more != NULL) {
        return begin_stream(exchange);
    }
    struct MHD_Response *made =
        response->file != NULL
            ? make_file(exchange)
            : MHD_create_response_from_buffer(response->body.len,
                                              response->body.text,
                                              MHD_RESPMEM_MUST_FREE);
    if (made == NULL) {
        return MHD_NO;
    }
    INVARIANT(response->file == NULL || response->body.text == NULL);
    response->body = (struct strbuf){0}; /* libmicrohttpd frees it */
    add_headers(made, response);
    /* Requests that libmicrohttpd reads in another way than a proxy before us,
     * such as folded headers, would let a client hide one request in another:
     * no second one is read. */
    (void)MHD_add_response_header(made, "Connection", "close");
    set_phase(exchange->peer, PHASE_WRITE);
    enum MHD_Result result = MHD_queue_response(exchange->connection,
                                                (unsigned)response->status,
                                                made);
    MHD_destroy_response(made);
    return result;
}

static enum MHD_Result refuse(struct http_exchange *exchange)
{
    bool large = exchange->refused == MHD_HTTP_CONTENT_TOO_LARGE;
    bool closing = exchange->refused == MHD_HTTP_SERVICE_UNAVAILABLE;
    http_fail(&exchange->response,
              exchange->refused,
              large     ? ERR_LIMIT
              : closing ? ERR_UNAVAILABLE
                        : ERR_INVALID,
              large     ? "the body is too long"
              : closing ? "the server is closing"
                        : "the request is malformed");
    return respond(exchange);
}

/* --- exchanges ---------------------------------------------------------- */

struct headers {
    uint32_t lengths;
    uint32_t hosts;
    bool encoded;   /* the body */
    bool malformed; /* a name, or a parameter */
};

static enum MHD_Result count_header(void *ctx,
                                    enum MHD_ValueKind kind,
                                    const char *name,
                                    const char *value)
{
    static const char token[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "abcdefghijklmnopqrstuvwxyz0123456789"
                                "!#$%&'*+-.^_`|~";
    struct headers *headers = ctx;
    (void)kind;
    (void)value;
    headers->malformed = headers->malformed || name[0] == '\0' ||
                         strspn(name, token) != strlen(name);
    headers->hosts += strcasecmp(name, "Host") == 0 ? 1 : 0;
    headers->lengths += strcasecmp(name, "Content-Length") == 0 ? 1 : 0;
    headers->encoded =
        headers->encoded || strcasecmp(name, "Transfer-Encoding") == 0;
    return MHD_YES;
}

/* Note a parameter with an invalid escape. */
static enum MHD_Result check_query(void *ctx,
                                   enum MHD_ValueKind kind,
                                   const char *name,
                                   const char *value)
{
    struct headers *headers = ctx;
    struct strbuf ignored = {0};
    (void)kind;
    (void)name;
    headers->malformed =
        headers->malformed ||
        (value != NULL && !route_decode(&ignored, value, strlen(value), true));
    strbuf_release(&ignored);
    return MHD_YES;
}

/* Reject what a proxy before us could read in another way. */
static int check_head(struct MHD_Connection *connection, const char *path)
{
    struct headers headers = {0};
    (void)MHD_get_connection_values(connection,
                                    MHD_HEADER_KIND,
                                    count_header,
                                    &headers);
    (void)MHD_get_connection_values(connection,
                                    MHD_GET_ARGUMENT_KIND,
                                    check_query,
                                    &headers);
    bool bad = headers.encoded || headers.malformed || headers.lengths > 1 ||
               headers.hosts > 1 || path[0] != '/' ||
               strstr(path, "%00") != NULL;
    return bad ? MHD_HTTP_BAD_REQUEST : 0;
}

static struct http_exchange *begin_exchange(struct httpd *httpd,
                                            struct MHD_Connection *connection,
                                            const char *path,
                                            const char *method)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct http_exchange *exchange = mem_zalloc(1, sizeof(*exchange));
    exchange->httpd = httpd;
    exchange->connection = connection;
    exchange->peer = info->socket_context;
    exchange->path = mem_strdup(path);
    exchange->method = mem_strdup(method);
    exchange->body_max = httpd->options.limit(method, path);
    exchange->refused = check_head(connection, path);
    const char *length = MHD_lookup_connection_value(connection,
                                                     MHD_HEADER_KIND,
                                                     "Content-Length");
    if (exchange->refused == 0 && length != NULL &&
        (strlen(length) > 12 ||
         strtoull(length, NULL, 10) > exchange->body_max)) {
        exchange->refused = MHD_HTTP_CONTENT_TOO_LARGE;
    }
    return exchange;
}

static enum MHD_Result handle(struct http_exchange *exchange)
{
    struct httpd *httpd = exchange->httpd;
    struct http_request request = {
        .exchange = exchange,
        .method = exchange->method,
        .path = exchange->path,
        .body = strbuf_text(&exchange->body),
        .body_len = exchange->body.len,
    };
    set_phase(exchange->peer, PHASE_THINK);
    if (httpd->options.handler(httpd->options.ctx,
                               &request,
                               &exchange->response) == HTTP_ANSWERED) {
        return respond(exchange);
    }
    /* Another thread may have answered by now: only this one resumes. */
    exchange->deferred = true;
    MHD_suspend_connection(exchange->connection);
    return MHD_YES;
}

/* Let a request go on, or answer it before its body is read. */
static enum MHD_Result admit(struct http_exchange *exchange)
{
    struct httpd *httpd = exchange->httpd;
    struct http_request request = {
        .exchange = exchange,
        .method = exchange->method,
        .path = exchange->path,
        .body = "",
    };
    if (httpd->options.admit(httpd->options.ctx,
                             &request,
                             &exchange->response)) {
        return MHD_YES;
    }
    exchange->refused = exchange->response.status;
    return respond(exchange);
}

static enum MHD_Result on_request(void *ctx,
                                  struct MHD_Connection *connection,
                                  const char *path,
                                  const char *method,
                                  const char *version,
                                  const char *data,
                                  size_t *data_len,
                                  void **own)
{
    struct http_exchange *exchange = *own;
    (void)version;
    if (exchange == NULL) {
        exchange = begin_exchange(ctx, connection, path, method);
        *own = exchange;
        return exchange->refused != 0 ? refuse(exchange) : admit(exchange);
    }
    if (*data_len > 0) {
        if (exchange->body.len + *data_len <= exchange->body_max) {
            strbuf_add(&exchange->body, data, *data_len);
        } else {
            exchange->refused = MHD_HTTP_CONTENT_TOO_LARGE;
        }
        *data_len = 0;
        return MHD_YES;
    }
    if (exchange->answered) {
        return respond(exchange);
    }
    if (exchange->refused == 0 && exchange->httpd->closing) {
        exchange->refused = MHD_HTTP_SERVICE_UNAVAILABLE;
    }
    return exchange->refused != 0 ? refuse(exchange) : handle(exchange);
}

static void leave_streams(struct http_exchange *exchange)
{
    struct http_exchange **place = &exchange->httpd->streams;
    while (*place != NULL && *place != exchange) {
        place = &(*place)->next_stream;
    }
    if (*place == exchange) {
        *place = exchange->next_stream;
        exchange->httpd->stream_count--;
    }
}

static void on_completed(void *ctx,
                         struct MHD_Connection *connection,
                         void **own,
                         enum MHD_RequestTerminationCode why)
{
    struct http_exchange *exchange = *own;
    (void)ctx;
    (void)connection;
    (void)why;
    if (exchange == NULL) {
        return;
    }
    INVARIANT(!exchange->deferred); /* it was suspended until its answer */
    set_phase(exchange->peer, PHASE_READ);
    leave_streams(exchange);
    http_response_release(&exchange->response);
    strbuf_release(&exchange->body);
    arena_release(&exchange->arena);
    strbuf_release(&exchange->pending);
    mem_free(exchange->path);
    mem_free(exchange->method);
    mem_free(exchange);
    *own = NULL;
}

/* --- connections -------------------------------------------------------- */

static void on_connection(void *ctx,
                          struct MHD_Connection *connection,
                          void **own,
                          enum MHD_ConnectionNotificationCode what)
{
    struct httpd *httpd = ctx;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection,
                                    MHD_CONNECTION_INFO_CONNECTION_FD);
        struct peer *peer = mem_zalloc(1, sizeof(*peer));
        peer->fd = info->connect_fd;
        set_phase(peer, PHASE_READ);
        peer->next = httpd->peers;
        peer->place = &httpd->peers;
        if (peer->next != NULL) {
            peer->next->place = &peer->next;
        }
        httpd->peers = peer;
        *own = peer;
    } else {
        struct peer *peer = *own;
        *peer->place = peer->next;
        if (peer->next != NULL) {
            peer->next->place = peer->place;
        }
        mem_free(peer);
        *own = NULL;
    }
}

/* End streams whose clients have gone: libmicrohttpd does not look at a
 * connection that is suspended. */
static void end_gone(struct httpd *httpd)
{
    for (struct http_exchange *exchange = httpd->streams; exchange != NULL;
         exchange = exchange->next_stream) {
        struct pollfd poll_fd = {
            .fd = exchange->peer->fd,
            .events = POLLRDHUP,
        };
        if (poll(&poll_fd, 1, 0) <= 0) {
            continue;
        }
        exchange->over = true;
        if (exchange->suspended) {
            exchange->suspended = false;
            MHD_resume_connection(exchange->connection);
        }
    }
}

/* Whether a client has closed its side and everything it sent was read. */
static bool has_gone(const struct peer *peer)
{
    struct pollfd poll_fd = {.fd = peer->fd, .events = POLLRDHUP};
    int unread = 0;
    return poll(&poll_fd, 1, 0) > 0 &&
           ioctl(peer->fd, FIONREAD, &unread) == 0 && unread == 0;
}

/* Shut down connections that are past their deadlines. */
static void sweep(struct httpd *httpd)
{
    int64_t now_ns = clock_boot_ns();
    if (now_ns - httpd->swept_ns < INT64_C(1000000) * SWEEP_MS) {
        return;
    }
    httpd->swept_ns = now_ns;
    end_gone(httpd);
    for (struct peer *peer = httpd->peers; peer != NULL; peer = peer->next) {
        int64_t age_ns = now_ns - peer->since_ns;
        if ((peer->phase == PHASE_READ &&
             (age_ns > READ_NS || has_gone(peer))) ||
            (peer->phase == PHASE_WRITE && age_ns > WRITE_NS)) {
            (void)shutdown(peer->fd, SHUT_RDWR);
        }
    }
}

/* --- the interface ------------------------------------------------------ */

/* Leave escapes as they are: the handler decodes parts of a path. */
static size_t
keep_escapes(void *ctx, struct MHD_Connection *connection, char *text)
{
    (void)ctx;
    (void)connection;
    return strlen(text);
}

static void say_nothing(void *ctx, const char *format, va_list list)
{
    (void)ctx;
    (void)format;
    (void)list;
}

static struct MHD_Daemon *start(struct httpd *httpd)
{
    const struct MHD_OptionItem options[] = {
        {MHD_OPTION_EXTERNAL_LOGGER, (intptr_t)say_nothing, NULL},
        {MHD_OPTION_LISTEN_SOCKET, httpd->options.socket, NULL},
        {MHD_OPTION_CONNECTION_LIMIT, HTTPD_CONNECTIONS_MAX, NULL},
        {MHD_OPTION_PER_IP_CONNECTION_LIMIT,
         HTTPD_CONNECTIONS_PER_ADDRESS,
         NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, MEMORY_BYTES, NULL},
        {MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, NULL},
        {MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t)keep_escapes, NULL},
        {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)on_completed, httpd},
        {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)on_connection, httpd},
        {MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    return MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME |
                                MHD_USE_ERROR_LOG,
                            0,
                            NULL,
                            NULL,
                            on_request,
                            httpd,
                            MHD_OPTION_ARRAY,
                            options,
                            MHD_OPTION_END);
}

enum err httpd_open(struct httpd **out,
                    const struct httpd_options *options,
                    struct diag *diag)
{
    *out = NULL;
    struct httpd *httpd = mem_zalloc(1, sizeof(*httpd));
    httpd->options = *options;
    httpd->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    httpd->epoll = epoll_create1(EPOLL_CLOEXEC);
    int failed = pthread_mutex_init(&httpd->lock, NULL);
    INVARIANT(failed == 0);
    httpd->daemon = start(httpd);
    const union MHD_DaemonInfo *info =
        httpd->daemon != NULL
            ? MHD_get_daemon_info(httpd->daemon, MHD_DAEMON_INFO_EPOLL_FD)
            : NULL;
    struct epoll_event event = {.events = EPOLLIN};
    if (info == NULL || httpd->bell < 0 || httpd->epoll < 0 ||
        epoll_ctl(httpd->epoll, EPOLL_CTL_ADD, info->epoll_fd, &event) != 0 ||
        epoll_ctl(httpd->epoll, EPOLL_CTL_ADD, httpd->bell, &event) != 0) {
        (void)diag_set(diag,
                       ERR_UNAVAILABLE,
                       "cannot serve HTTP: %s",
                       strerror(errno)); /* before closing changes it */
        httpd_close(httpd);
        return ERR_UNAVAILABLE;
    }
    *out = httpd;
    return ERR_OK;
}

int httpd_fd(const struct httpd *httpd)
{
    return httpd->epoll;
}

int httpd_wait_ms(const struct httpd *httpd)
{
    MHD_UNSIGNED_LONG_LONG wait = SWEEP_MS;
    if (MHD_get_timeout(httpd->daemon, &wait) != MHD_YES || wait > SWEEP_MS) {
        wait = SWEEP_MS;
    }
    return (int)wait;
}

/* Resume the connections that other threads have answered. */
static void take_answers(struct httpd *httpd)
{
    uint64_t count;
    if (read(httpd->bell, &count, sizeof(count)) < 0 && errno != EAGAIN) {
        return; /* the next one wakes us */
    }
    (void)pthread_mutex_lock(&httpd->lock);
    struct http_exchange *list = httpd->answered;
    httpd->answered = NULL;
    (void)pthread_mutex_unlock(&httpd->lock);
    while (list != NULL) {
        struct http_exchange *exchange = list;
        list = exchange->next_answered;
        exchange->deferred = false;
        exchange->answered = true;
        MHD_resume_connection(exchange->connection);
    }
}

void httpd_run(struct httpd *httpd)
{
    take_answers(httpd);
    (void)MHD_run(httpd->daemon);
    sweep(httpd);
}

void httpd_wake(struct httpd *httpd)
{
    for (struct http_exchange *exchange = httpd->streams; exchange != NULL;
         exchange = exchange->next_stream) {
        if (exchange->suspended) {
            exchange->suspended = false;
            MHD_resume_connection(exchange->connection);
        }
    }
}

uint32_t httpd_stream_count(const struct httpd *httpd)
{
    return httpd->stream_count;
}

void httpd_answer(struct http_exchange *exchange,
                  struct http_response *response_take)
{
    struct httpd *httpd = exchange->httpd;
    static const uint64_t one = 1;
    exchange->response = *response_take;
    (void)pthread_mutex_lock(&httpd->lock);
    exchange->next_answered = httpd->answered;
    httpd->answered = exchange;
    (void)pthread_mutex_unlock(&httpd->lock);
    ssize_t written = write(httpd->bell, &one, sizeof(one));
    (void)written; /* fails only if the bell rings already */
}

void httpd_close(struct httpd *httpd)
{
    if (httpd == NULL) {
        return;
    }
    httpd->closing = true;
    if (httpd->daemon != NULL) {
        take_answers(httpd);
        httpd_wake(httpd);
        (void)MHD_run(httpd->daemon);
        MHD_stop_daemon(httpd->daemon);
    } else {
        (void)close(httpd->options.socket);
    }
    if (httpd->bell >= 0) {
        (void)close(httpd->bell);
    }
    if (httpd->epoll >= 0) {
        (void)close(httpd->epoll);
    }
    (void)pthread_mutex_destroy(&httpd->lock);
    mem_free(httpd);
}
