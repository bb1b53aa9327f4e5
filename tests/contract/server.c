/* SPDX-License-Identifier: MIT */
/*
 * The wire is a thread that copies bytes between pairs of sockets. It looks for
 * the message that runs the prepared statement `commit`.
 */
#include "tests/contract/server.h"

#include "base/macros.h"
#include "base/mem.h"
#include "base/strbuf.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct server {
    pid_t pid;
    FILE *to;
    FILE *from;
    char address[512];
    char dir[128];
};

static void read_line(struct server *server, char *line, int size)
{
    if (fgets(line, size, server->from) == NULL) {
        fail_msg("tests/support/postgres has failed");
    }
    line[strcspn(line, "\n")] = '\0';
}

struct server *server_start(const char *const *words)
{
    char *argv[16] = {mem_strdup("postgres")};
    size_t count = 1;
    for (; words != NULL && words[count - 1] != NULL; count++) {
        assert_true(count + 1 < ARRAY_COUNT(argv));
        argv[count] = mem_strdup(words[count - 1]);
    }
    struct server *server = mem_zalloc(1, sizeof(*server));
    int in[2];
    int out[2];
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    server->pid = fork();
    assert_true(server->pid >= 0);
    if (server->pid == 0) {
        (void)dup2(in[0], STDIN_FILENO);
        (void)dup2(out[1], STDOUT_FILENO);
        (void)execv("tests/support/postgres", argv);
        _exit(127);
    }
    while (count > 0) {
        mem_free(argv[--count]);
    }
    (void)close(in[0]);
    (void)close(out[1]);
    server->to = fdopen(in[1], "w");
    server->from = fdopen(out[0], "r");
    assert_true(server->to != NULL && server->from != NULL);
    read_line(server, server->address, sizeof(server->address));
    read_line(server, server->dir, sizeof(server->dir));
    return server;
}

void server_stop(struct server *server)
{
    int status = 0;
    (void)fclose(server->to);
    assert_int_equal(waitpid(server->pid, &status, 0), server->pid);
    assert_int_equal(status, 0);
    (void)fclose(server->from);
    mem_free(server);
}

const char *server_address(const struct server *server)
{
    return server->address;
}

const char *server_dir(const struct server *server)
{
    return server->dir;
}

void server_do(struct server *server, const char *command)
{
    char line[256];
    assert_true(fprintf(server->to, "%s\n", command) > 0);
    assert_int_equal(fflush(server->to), 0);
    read_line(server, line, sizeof(line));
    assert_string_equal(line, "ok");
}

/* --- a wire ------------------------------------------------------------- */

enum { PAIRS_MAX = 32, PIECE = 65536 };

struct pair {
    int client;   /* -1: cut */
    int server;   /* -1: not used */
    bool swallow; /* the reply of the server */
};

struct wire {
    pthread_t thread;
    int listener;
    int stop[2];
    uint16_t port; /* of the server */
    char address[128];
    struct pair pairs[PAIRS_MAX];
    char late[PIECE]; /* a COMMIT or a batch that is kept back */
    size_t late_len;
    int late_to;
    bool late_batch;
    atomic_int fault;
    atomic_uint pieces;
    atomic_bool failed;
};

static void shut(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

static void cut(struct pair *pair)
{
    shut(&pair->client);
    shut(&pair->server);
    pair->swallow = false;
}

static void cut_all(struct wire *wire)
{
    for (int ix = 0; ix < PAIRS_MAX; ix++) {
        cut(&wire->pairs[ix]);
    }
}

static void has_failed(struct wire *wire)
{
    atomic_store(&wire->fault, WIRE_PASS);
    atomic_store(&wire->failed, true);
}

/* Send all; false: the other side is gone. */
static bool send_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        bytes += sent;
        len -= (size_t)sent;
    }
    return true;
}

static void accept_client(struct wire *wire)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET,
        .sin_port = htons(wire->port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    const int on = 1;
    struct pair pair = {
        .client = accept4(wire->listener, NULL, NULL, SOCK_CLOEXEC),
        .server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
    };
    bool down = atomic_load(&wire->fault) == WIRE_DOWN;
    if (down || pair.client < 0 || pair.server < 0 ||
        connect(pair.server, (struct sockaddr *)&to, sizeof(to)) != 0) {
        cut(&pair);
        return;
    }
    (void)setsockopt(pair.client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(pair.server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    for (int ix = 0; ix < PAIRS_MAX; ix++) {
        if (wire->pairs[ix].server < 0) {
            wire->pairs[ix] = pair;
            return;
        }
    }
    cut(&pair);
}

/* Count a piece; whether it is the one to cut at. */
static bool is_last_piece(struct wire *wire)
{
    return atomic_load(&wire->fault) == WIRE_CUT_LATER &&
           atomic_fetch_sub(&wire->pieces, 1) <= 1;
}

/* Find where the message begins that binds the statement `commit`, after its
 * type, its length, and an empty name; NULL: it is not there. */
static const char *find_commit(const char *bytes, size_t len)
{
    static const char names[] = "\0commit";
    const char *found = memmem(bytes, len, names, sizeof(names));
    return found != NULL && found - bytes >= 5 ? found - 5 : NULL;
}

/* Keep bytes back, and cut the connection for the client. */
static void
keep_late(struct wire *wire, struct pair *pair, const char *bytes, size_t len)
{
    memcpy(wire->late, bytes, len);
    wire->late_len = len;
    wire->late_to = pair->server;
    wire->late_batch = atomic_load(&wire->fault) == WIRE_LATE_BATCH;
    shut(&pair->client);
    has_failed(wire);
}

/* Send a batch that was kept back, and wait until the server is done with it
 * and with its connection. */
static void send_late_batch(struct wire *wire)
{
    char bytes[256];
    (void)send_all(wire->late_to, wire->late, wire->late_len);
    (void)shutdown(wire->late_to, SHUT_WR);
    while (recv(wire->late_to, bytes, sizeof(bytes), 0) > 0) {
    }
    wire->late_len = 0;
}

/* Do with a COMMIT what is to be done; whether it was dealt with. */
static bool
take_commit(struct wire *wire, struct pair *pair, const char *bytes, size_t len)
{
    switch ((enum wire_fault)atomic_load(&wire->fault)) {
    case WIRE_CUT_BEFORE_COMMIT:
        cut(pair);
        has_failed(wire);
        return true;
    case WIRE_CUT_AFTER_COMMIT:
        pair->swallow = true;
        return !send_all(pair->server, bytes, len);
    case WIRE_LATE_COMMIT:
        keep_late(wire, pair, bytes, len);
        return true;
    case WIRE_LATE_BATCH:
    case WIRE_PASS:
    case WIRE_CUT_LATER:
    case WIRE_DOWN:
        break;
    }
    return false;
}

static void from_client(struct wire *wire, struct pair *pair)
{
    char bytes[PIECE];
    ssize_t len = recv(pair->client, bytes, sizeof(bytes), 0);
    if (len <= 0 || is_last_piece(wire)) {
        if (len > 0) {
            has_failed(wire);
        }
        cut(pair);
        return;
    }
    const char *commit = find_commit(bytes, (size_t)len);
    if (commit != NULL && atomic_load(&wire->fault) == WIRE_LATE_BATCH) {
        keep_late(wire, pair, bytes, (size_t)len);
        return;
    }
    if (commit != NULL && wire->late_len > 0 && wire->late_batch) {
        send_late_batch(wire);
    }
    size_t before = commit != NULL ? (size_t)(commit - bytes) : (size_t)len;
    if (!send_all(pair->server, bytes, before)) {
        cut(pair);
        return;
    }
    size_t left = (size_t)len - before;
    if (commit != NULL &&
        (take_commit(wire, pair, commit, left) || pair->swallow)) {
        return;
    }
    if (left > 0 && !send_all(pair->server, commit, left)) {
        cut(pair);
    } else if (wire->late_len > 0 && !wire->late_batch &&
               memmem(bytes, (size_t)len, "UPDATE scheduler", 16) != NULL) {
        /* The new connection waits for the lock of the old one. */
        (void)send_all(wire->late_to, wire->late, wire->late_len);
        wire->late_len = 0;
    }
}

static void from_server(struct wire *wire, struct pair *pair)
{
    char bytes[PIECE];
    ssize_t len = recv(pair->server, bytes, sizeof(bytes), 0);
    if (pair->swallow && len > 0) {
        has_failed(wire);
        cut(pair);
        return;
    }
    if (len <= 0 || pair->client < 0 || is_last_piece(wire)) {
        if (len > 0 && pair->client >= 0) {
            has_failed(wire);
        }
        cut(pair);
        return;
    }
    if (!send_all(pair->client, bytes, (size_t)len)) {
        cut(pair);
    }
}

static void *copy(void *ctx)
{
    struct wire *wire = ctx;
    for (;;) {
        struct pollfd polls[2 + 2 * PAIRS_MAX];
        polls[0] = (struct pollfd){.fd = wire->stop[0], .events = POLLIN};
        polls[1] = (struct pollfd){.fd = wire->listener, .events = POLLIN};
        for (int ix = 0; ix < PAIRS_MAX; ix++) {
            const struct pair *pair = &wire->pairs[ix];
            polls[2 + 2 * ix] =
                (struct pollfd){.fd = pair->client, .events = POLLIN};
            polls[3 + 2 * ix] =
                (struct pollfd){.fd = pair->server, .events = POLLIN};
        }
        if (poll(polls, ARRAY_COUNT(polls), -1) < 0) {
            continue;
        }
        char word = 0;
        if (polls[0].revents != 0 && read(wire->stop[0], &word, 1) == 1) {
            cut_all(wire);
            if (word == 'q') {
                return NULL;
            }
            continue;
        }
        for (int ix = 0; ix < PAIRS_MAX; ix++) {
            struct pair *pair = &wire->pairs[ix];
            if (polls[2 + 2 * ix].revents != 0 && pair->client >= 0) {
                from_client(wire, pair);
            }
            if (polls[3 + 2 * ix].revents != 0 && pair->server >= 0) {
                from_server(wire, pair);
            }
        }
        if (polls[1].revents != 0) {
            accept_client(wire);
        }
    }
}

struct wire *wire_open(const struct server *server)
{
    struct wire *wire = mem_zalloc(1, sizeof(*wire));
    for (int ix = 0; ix < PAIRS_MAX; ix++) {
        wire->pairs[ix] = (struct pair){.client = -1, .server = -1};
    }
    const char *port = strrchr(server->address, ':');
    assert_non_null(port);
    wire->port = (uint16_t)strtoul(port + 1, NULL, 10);
    struct sockaddr_in at = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t len = sizeof(at);
    wire->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(wire->listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(wire->listener, 16), 0);
    assert_int_equal(getsockname(wire->listener, (struct sockaddr *)&at, &len),
                     0);
    (void)snprintf(wire->address,
                   sizeof(wire->address),
                   "postgresql://sluice@127.0.0.1:%u/postgres",
                   ntohs(at.sin_port));
    assert_int_equal(pipe2(wire->stop, O_CLOEXEC), 0);
    assert_int_equal(pthread_create(&wire->thread, NULL, copy, wire), 0);
    return wire;
}

void wire_close(struct wire *wire)
{
    assert_int_equal(write(wire->stop[1], "q", 1), 1);
    assert_int_equal(pthread_join(wire->thread, NULL), 0);
    (void)close(wire->listener);
    (void)close(wire->stop[0]);
    (void)close(wire->stop[1]);
    mem_free(wire);
}

const char *wire_address(const struct wire *wire)
{
    return wire->address;
}

void wire_set(struct wire *wire, enum wire_fault fault, unsigned pieces)
{
    atomic_store(&wire->failed, false);
    atomic_store(&wire->pieces, pieces);
    atomic_store(&wire->fault, (int)fault);
    if (fault == WIRE_DOWN) {
        assert_int_equal(write(wire->stop[1], "c", 1), 1);
    }
}

bool wire_has_failed(const struct wire *wire)
{
    return atomic_load(&wire->failed);
}
