/* SPDX-License-Identifier: MIT */
#include "http/serve.h"

#include "base/clock.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "http/address.h"
#include "http/api.h"
#include "http/seen.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 64, HOST_BYTES = ADDRESS_HOST_BYTES };

/* How often streams are asked for a sign of life. */
#define STREAM_NS (1 * SECOND_NS)

/* How long a server beside a run outlives it, if a page is open. */
#define LINGER_NS (SECOND_NS * 7 / 10)

static const struct desk_options slow_reading = {.threads = 2};

/* Names under which a server on the loopback is known. */
static const char *const loopback[] = {"127.0.0.1", "[::1]", "localhost"};

struct serving {
    const struct serve_options *options;
    struct gate gate;
    struct desk *desk;
    struct source *source;
    struct orders *orders;
    struct httpd *httpd;
    struct api api;
    int socket;
    int signals;
    char host[HOST_BYTES]; /* as given */
    char port[8];
    struct address address;
    char names[GATE_HOSTS_MAX][HOST_BYTES];
};

/* --- listening ---------------------------------------------------------- */

static enum err fail_socket(const char *what, struct diag *diag)
{
    return diag_set(diag,
                    ERR_UNAVAILABLE,
                    "cannot listen on %s: %s",
                    what,
                    strerror(errno));
}

/* Listen on the unix socket of the home, and replace one that is dead. */
static enum err listen_unix(struct serving *serving, struct diag *diag)
{
    const char *home = serving->options->place->home;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int dir = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* By a descriptor: the path of a socket may have 107 bytes only. */
    (void)snprintf(address.sun_path,
                   sizeof(address.sun_path),
                   "/proc/self/fd/%d/" SERVE_SOCKET,
                   dir);
    const struct sockaddr *at = (const struct sockaddr *)&address;
    bool live = fd >= 0 && (connect(fd, at, sizeof(address)) == 0 ||
                            errno == EAGAIN); /* it is busy */
    if (live) {
        errno = EADDRINUSE;
    }
    mode_t mask = umask(077);
    bool good = dir >= 0 && fd >= 0 && !live &&
                (unlinkat(dir, SERVE_SOCKET, 0) == 0 || errno == ENOENT) &&
                bind(fd, at, sizeof(address)) == 0 &&
                fchmodat(dir, SERVE_SOCKET, 0600, 0) == 0 &&
                listen(fd, BACKLOG) == 0;
    (void)umask(mask);
    enum err err = ERR_OK;
    if (!good) {
        struct strbuf path = {0};
        strbuf_addf(&path, "%s/" SERVE_SOCKET, home);
        err = fail_socket(strbuf_text(&path), diag);
        strbuf_release(&path);
    }
    if (!good && fd >= 0) {
        (void)close(fd);
    }
    if (dir >= 0) {
        (void)close(dir);
    }
    serving->socket = good ? fd : -1;
    serving->gate.open = true;
    return err;
}

/* Open a TCP socket; -1 with an errno, or with a message of the resolver. */
static int open_tcp(struct serving *serving, const char **why)
{
    char name[HOST_BYTES];
    size_t len = strlen(serving->host);
    bool six = serving->host[0] == '[' && serving->host[len - 1] == ']';
    (void)snprintf(name,
                   sizeof(name),
                   "%.*s",
                   (int)(six ? len - 2 : len),
                   serving->host + (six ? 1 : 0));
    struct addrinfo hints = {
        .ai_socktype = SOCK_STREAM,
        .ai_flags = AI_PASSIVE | AI_NUMERICSERV,
    };
    struct addrinfo *found = NULL;
    int error = getaddrinfo(name, serving->port, &hints, &found);
    if (error != 0) {
        *why = gai_strerror(error);
        return -1;
    }
    static const int on = 1;
    int fd =
        socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 &&
        (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
         bind(fd, found->ai_addr, found->ai_addrlen) != 0 ||
         listen(fd, BACKLOG) != 0)) {
        int failed = errno;
        (void)close(fd);
        errno = failed;
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

/* Add a name of this server, as in the header Host: clients leave out the
 * default port. */
static void add_host(struct serving *serving, const char *name, bool port)
{
    struct gate *gate = &serving->gate;
    port = port && strcmp(serving->port, "80") != 0;
    if (gate->host_count == GATE_HOSTS_MAX) {
        return;
    }
    char *place = serving->names[gate->host_count];
    (void)snprintf(place,
                   HOST_BYTES,
                   "%.200s%s%s",
                   name,
                   port ? ":" : "",
                   port ? serving->port : "");
    gate->hosts[gate->host_count++] = place;
}

/* Learn the port that the kernel has chosen for port 0. */
static void learn_port(struct serving *serving)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof(address);
    char port[8];
    if (getsockname(serving->socket, (struct sockaddr *)&address, &len) == 0 &&
        getnameinfo((const struct sockaddr *)&address,
                    len,
                    NULL,
                    0,
                    port,
                    sizeof(port),
                    NI_NUMERICSERV) == 0) {
        memcpy(serving->port, port, sizeof(port));
    }
}

static enum err listen_tcp(struct serving *serving, struct diag *diag)
{
    const struct serve_options *options = serving->options;
    const char *why = NULL;
    struct address_listen at;
    if (!address_read_listen(&at, options->listen)) {
        return diag_set(diag,
                        ERR_INVALID,
                        "\"%s\" is not HOST:PORT, such as 127.0.0.1:8900",
                        options->listen);
    }
    memcpy(serving->host, at.host, sizeof(serving->host));
    for (int port = at.first; port <= at.last; port++) {
        (void)snprintf(serving->port, sizeof(serving->port), "%d", port);
        serving->socket = open_tcp(serving, &why);
        if (serving->socket >= 0 || why != NULL || errno != EADDRINUSE) {
            break;
        }
    }
    if (serving->socket < 0) {
        return why != NULL ? diag_set(diag,
                                      ERR_INVALID,
                                      "cannot listen on %s: %s",
                                      options->listen,
                                      why)
                           : fail_socket(options->listen, diag);
    }
    learn_port(serving);
    add_host(serving, serving->host, true);
    for (size_t ix = 0; ix < ARRAY_COUNT(loopback); ix++) {
        add_host(serving, loopback[ix], true);
    }
    for (uint32_t ix = 0; ix < options->host_count; ix++) {
        add_host(serving, options->hosts[ix], false);
    }
    if (options->url != NULL) {
        struct strbuf host = {0};
        address_add_host(&host, options->url);
        add_host(serving, strbuf_text(&host), false);
        strbuf_release(&host);
    }
    return gate_load(&serving->gate, options->place->home, diag);
}

/* --- serving ------------------------------------------------------------ */

static enum err open_signals(struct serving *serving, struct diag *diag)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)signal(SIGPIPE, SIG_IGN);
    serving->signals = -1;
    if (sigprocmask(SIG_BLOCK, &set, NULL) == 0) {
        serving->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    }
    return serving->signals >= 0
               ? ERR_OK
               : diag_set(diag, ERR_IO, "signals: %s", strerror(errno));
}

static enum err open_all(struct serving *serving, struct diag *diag)
{
    const struct serve_options *options = serving->options;
    enum err err = open_signals(serving, diag); /* before other threads */
    if (err == ERR_OK) {
        err = options->listen != NULL ? listen_tcp(serving, diag)
                                      : listen_unix(serving, diag);
    }
    if (err == ERR_OK) {
        err = desk_open(&serving->desk, &slow_reading, diag);
    }
    if (err == ERR_OK) {
        err =
            source_open(&serving->source, options->place, serving->desk, diag);
    }
    if (err == ERR_OK) {
        err = orders_open(&serving->orders, serving->source, diag);
    }
    if (err == ERR_OK) {
        serving->api = (struct api){
            .desk = serving->desk,
            .seen_ns = seen_read(options->place->home),
            .source = serving->source,
            .gate = &serving->gate,
            .orders = serving->orders,
        };
        struct httpd_options made = {
            .socket = serving->socket,
            .admit = api_admit,
            .handler = api_handle,
            .limit = api_limit,
            .ctx = &serving->api,
        };
        err = httpd_open(&serving->httpd, &made, diag);
        serving->socket = -1; /* taken */
        serving->api.httpd = serving->httpd;
    }
    return err;
}

/* Make a link, and let others make further ones. */
static enum err add_link(struct serving *serving,
                         struct strbuf *link,
                         const char *where,
                         struct diag *diag)
{
    const struct serve_options *options = serving->options;
    const char *url = options->url != NULL ? options->url : where;
    struct gate_key *key = &serving->gate.key;
    char code[GATE_LINK_BYTES];
    struct diag problem = {0};
    enum err err = gate_make_key(key, diag);
    if (err == ERR_OK) {
        err = gate_make_link(code, key, options->role, clock_boot_ns(), diag);
    }
    if (err != ERR_OK) {
        return err;
    }
    strbuf_addf(link, "%slogin?code=%s", url, code);
    if (address_publish(&serving->address,
                        options->place->home,
                        serving->port,
                        url,
                        key,
                        &problem) != ERR_OK) {
        options->warn(options->ctx, problem.text);
    }
    return ERR_OK;
}

static enum err announce(struct serving *serving, struct diag *diag)
{
    const struct serve_options *options = serving->options;
    struct strbuf where = {0};
    struct strbuf link = {0};
    enum err err = ERR_OK;
    if (options->listen == NULL) {
        strbuf_addf(&where, "%s/" SERVE_SOCKET, options->place->home);
    } else {
        strbuf_addf(&where, "http://%s:%s/", serving->host, serving->port);
        err = add_link(serving, &link, strbuf_text(&where), diag);
    }
    if (err == ERR_OK) {
        options->ready(options->ctx,
                       strbuf_text(&where),
                       link.len > 0 ? strbuf_text(&link) : NULL);
    }
    strbuf_release(&where);
    strbuf_release(&link);
    return err;
}

/* Wait for something to do, and do it; false: a signal has come. */
static bool take_turn(struct serving *serving, int64_t *woken_ns)
{
    struct pollfd fds[] = {
        {.fd = httpd_fd(serving->httpd), .events = POLLIN},
        {.fd = serving->signals, .events = POLLIN},
        {.fd = source_fd(serving->source), .events = POLLIN},
    };
    int ready = poll(fds, ARRAY_COUNT(fds), httpd_wait_ms(serving->httpd));
    if (ready > 0 && fds[1].revents != 0) {
        return false;
    }
    if (orders_news(serving->orders)) {
        source_soon(serving->source); /* who ordered wants to see it */
    }
    bool changed = source_take(serving->source);
    int64_t now_ns = clock_boot_ns();
    if (changed || now_ns - *woken_ns > STREAM_NS) {
        httpd_wake(serving->httpd);
        *woken_ns = now_ns;
    }
    httpd_run(serving->httpd);
    return true;
}

/* Let open pages see the end of the run beside which this server was. */
static void linger(struct serving *serving)
{
    struct signalfd_siginfo ignored;
    int64_t woken_ns = 0;
    int64_t until_ns = clock_boot_ns() + LINGER_NS;
    ssize_t got = read(serving->signals, &ignored, sizeof(ignored));
    (void)got; /* the next signal ends it at once */
    source_soon(serving->source);
    while (httpd_stream_count(serving->httpd) > 0 &&
           clock_boot_ns() < until_ns && take_turn(serving, &woken_ns)) {
    }
}

/* Serve until a signal comes. */
static void loop(struct serving *serving)
{
    int64_t woken_ns = 0;
    while (take_turn(serving, &woken_ns)) {
    }
    if (serving->options->beside) {
        linger(serving);
    }
}

enum err serve_run(const struct serve_options *options, struct diag *diag)
{
    struct serving *serving = mem_zalloc(1, sizeof(*serving));
    serving->options = options;
    serving->socket = -1;
    serving->signals = -1;
    serving->address.fd = -1;
    enum err err = open_all(serving, diag);
    if (err == ERR_OK) {
        err = announce(serving, diag);
    }
    if (err == ERR_OK) {
        loop(serving);
    }
    address_withdraw(&serving->address); /* while the port is taken */
    source_stop(serving->source);        /* it sends work to the desk */
    orders_close(serving->orders);       /* its last answer goes to httpd */
    desk_close(serving->desk);
    httpd_close(serving->httpd);
    source_close(serving->source);
    if (serving->socket >= 0) {
        (void)close(serving->socket);
    }
    if (serving->signals >= 0) {
        (void)close(serving->signals);
    }
    mem_free(serving);
    return err;
}
