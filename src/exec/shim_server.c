/* SPDX-License-Identifier: MIT */
/*
 * The spawn server. It is small so that forking it is cheap: a shim is this
 * process forked, without an exec.
 *
 * One loop. All signals are blocked except inside ppoll(), which lets SIGCHLD
 * through; its handler does nothing but end the wait. So a forked shim begins
 * with every signal blocked, and nothing can kill it early but SIGKILL.
 *
 * Every turn reaps, whether or not a signal was seen: ppoll() does not deliver
 * one while the socket is ready. Reports are collected in a turn and sent at
 * its end; what the socket does not take waits for POLLOUT. While that is
 * more than OUT_BYTES_MAX, no requests are read, so memory is bounded and
 * nothing is lost: it is the client that has to read first. Nobody waits for
 * the report of a start, so it is kept back for a moment: more often than not
 * it can go with another one, and the client is woken once for both.
 *
 * A shim that is stopped is told to go on, because a stopped shim enforces no
 * timeouts.
 */
#include "base/crash.h"
#include "exec/shim_internal.h"
#include "exec/shim_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    IN_BYTES_MIN = 16 << 10,
    IN_BYTES_KEPT = 256 << 10, /* a larger buffer is given back */
    OUT_BYTES_MAX = 1 << 20,
    EXIT_LOST = 3, /* the server cannot go on; the client will see it */
};

/* How long the report of a start may be kept back. */
#define KEEP_BACK_NS (INT64_C(5) * 1000000)
#define NEVER INT64_MAX

/* A shim that was forked and not yet reaped. */
struct live {
    pid_t pid;
    uint64_t id;
    uint64_t start_ticks;
};

struct server {
    int fd;
    bool closed; /* the client is gone */
    char boot_id[37];
    char *in; /* bytes of requests */
    size_t in_len;
    size_t in_capacity;
    char *out; /* reports that are not sent yet */
    size_t out_len;
    size_t out_capacity;
    int64_t send_ns; /* when they are to be sent; NEVER: there are none */
    struct live *live;
    size_t live_count;
    size_t live_capacity;
};

static void on_child(int signal)
{
    (void)signal; /* it is enough that ppoll() returns */
}

/* Grow a block to hold `wanted` elements; false: no memory. */
static bool grow(void **block, size_t *capacity, size_t wanted, size_t bytes)
{
    if (wanted <= *capacity) {
        return true;
    }
    size_t larger = *capacity * 2 > wanted ? *capacity * 2 : wanted;
    void *moved = realloc(*block, larger * bytes);
    if (moved == NULL) {
        return false;
    }
    *block = moved;
    *capacity = larger;
    return true;
}

/* Keep a report for the end of the turn. Without memory for it the server
 * must not go on: the client sees its end, and looks for itself. */
static void report(struct server *server, const struct shim_wire_report *report)
{
    void *out = server->out;
    size_t wanted = server->out_len + sizeof(*report);
    if (!grow(&out, &server->out_capacity, wanted, 1)) {
        _exit(EXIT_LOST);
    }
    server->out = out;
    memcpy(server->out + server->out_len, report, sizeof(*report));
    server->out_len = wanted;
    if (report->type != SHIM_WIRE_STARTED) {
        server->send_ns = 0;
    } else if (server->send_ns == NEVER) {
        server->send_ns = shim_clock(CLOCK_MONOTONIC) + KEEP_BACK_NS;
    }
}

/* How long they may be kept back from now on; 0: they are due, or none. */
static int64_t kept_back_ns(const struct server *server)
{
    if (server->send_ns == 0 || server->send_ns == NEVER) {
        return 0;
    }
    int64_t left_ns = server->send_ns - shim_clock(CLOCK_MONOTONIC);
    return left_ns > 0 ? left_ns : 0;
}

static void flush(struct server *server)
{
    if (server->out_len == 0 || kept_back_ns(server) > 0) {
        return;
    }
    crash_point("server-before-report");
    ssize_t sent = send(server->fd,
                        server->out,
                        server->out_len,
                        MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
        server->out_len -= (size_t)sent;
        memmove(server->out, server->out + sent, server->out_len);
        server->send_ns = server->out_len > 0 ? 0 : NEVER;
        crash_point("server-after-report");
    } else if (errno != EAGAIN && errno != EINTR) {
        server->closed = true;
    }
}

/* Report the shims that have ended, and wake those that were stopped. */
static void reap(struct server *server)
{
    while (server->live_count > 0) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED);
        if (pid <= 0) {
            return;
        }
        if (WIFSTOPPED(status)) {
            (void)kill(pid, SIGCONT);
            continue;
        }
        size_t ix = 0;
        while (ix < server->live_count && server->live[ix].pid != pid) {
            ix++;
        }
        if (ix == server->live_count) {
            continue;
        }
        struct live *live = &server->live[ix];
        crash_point("server-reaped");
        report(server,
               &(struct shim_wire_report){
                   .type = SHIM_WIRE_ENDED,
                   .error = WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                   .id = live->id,
                   .pid = pid,
                   .start_ticks = live->start_ticks,
               });
        *live = server->live[--server->live_count];
    }
}

/* Fork a shim for one request. Returns twice, as fork() does; true: this is
 * the shim. */
static bool
start(struct server *server, char *message, struct shim_birth *birth)
{
    struct shim_wire_request request;
    memcpy(&request, message, sizeof(request));
    struct shim_wire_report answer = {
        .type = SHIM_WIRE_FAILED,
        .error = ENOMEM,
        .id = request.id,
    };
    void *live = server->live;
    crash_point("server-request-read");
    if (grow(&live,
             &server->live_capacity,
             server->live_count + 1,
             sizeof(server->live[0]))) {
        server->live = live;
        int64_t before_ns = shim_clock(CLOCK_BOOTTIME);
        int fault = crash_fault("fork");
        pid_t pid = fault != 0 ? -1 : fork();
        if (pid == 0) {
            *birth = (struct shim_birth){
                .message = message,
                .message_len = request.bytes,
                .boot_id = server->boot_id,
                .forked_ns = before_ns,
            };
            return true;
        }
        answer.error = fault != 0 ? fault : errno;
        if (pid > 0) {
            crash_point("server-forked");
            answer.type = SHIM_WIRE_STARTED;
            answer.error = 0;
            answer.pid = pid;
            answer.start_ticks = shim_start_ticks(pid, before_ns);
            server->live[server->live_count++] = (struct live){
                .pid = pid,
                .id = request.id,
                .start_ticks = answer.start_ticks,
            };
        }
    }
    report(server, &answer);
    return false;
}

/* Make room for the rest of a request of this size. */
static void reserve(struct server *server, size_t bytes)
{
    void *in = server->in;
    if (!grow(&in, &server->in_capacity, bytes, 1)) {
        _exit(EXIT_LOST);
    }
    server->in = in;
}

/* Carry out the requests that are whole. True: this is a shim. */
static bool handle(struct server *server, struct shim_birth *birth)
{
    size_t at = 0;
    while (server->in_len - at >= sizeof(struct shim_wire_request)) {
        uint32_t bytes;
        memcpy(&bytes, server->in + at, sizeof(bytes));
        if (bytes < sizeof(struct shim_wire_request) ||
            bytes > SHIM_WIRE_REQUEST_MAX) {
            _exit(EXIT_LOST); /* we have lost step; nothing can be read on */
        }
        if (server->in_len - at < bytes) {
            reserve(server, bytes + IN_BYTES_MIN);
            break;
        }
        if (start(server, server->in + at, birth)) {
            return true;
        }
        at += bytes;
    }
    if (at > 0) {
        server->in_len -= at;
        memmove(server->in, server->in + at, server->in_len);
    }
    if (server->in_len == 0 && server->in_capacity > IN_BYTES_KEPT) {
        free(server->in);
        server->in = NULL;
        server->in_capacity = 0;
    }
    return false;
}

/* Read requests and carry them out. True: this is a shim. */
static bool receive(struct server *server, struct shim_birth *birth)
{
    reserve(server, IN_BYTES_MIN);
    ssize_t len = recv(server->fd,
                       server->in + server->in_len,
                       server->in_capacity - server->in_len,
                       MSG_DONTWAIT);
    if (len > 0) {
        server->in_len += (size_t)len;
        return handle(server, birth);
    }
    if (len == 0 || (errno != EAGAIN && errno != EINTR)) {
        server->closed = true;
    }
    return false;
}

static void read_boot_id(char out[37])
{
    memset(out, '0', 36);
    out[36] = '\0';
    int fd = openat(AT_FDCWD,
                    "/proc/sys/kernel/random/boot_id",
                    O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        char text[36];
        if (read(fd, text, sizeof(text)) == (ssize_t)sizeof(text)) {
            memcpy(out, text, sizeof(text));
        }
        (void)close(fd);
    }
}

/* Leave everything behind that belongs to whoever started us. */
static void detach(struct server *server)
{
    unsigned fd = (unsigned)server->fd;
    if (fd > 3) {
        (void)syscall(SYS_close_range, 3U, fd - 1, 0U);
    }
    (void)syscall(SYS_close_range, fd + 1, ~0U, 0U);
    int null = openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
    for (int ix = 0; ix < 3 && null >= 0; ix++) {
        (void)dup2(null, ix);
    }
    if (null > 2) {
        (void)close(null);
    }
    (void)fcntl(server->fd, F_SETFD, FD_CLOEXEC);
    (void)setsid();
    (void)!chdir("/");
    read_boot_id(server->boot_id);
}

/* Block all signals that do not come from a fault, and set their actions as
 * a new program expects them. */
static void reset_signals(void)
{
    static const int faults[] =
        {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
    /* The C library hides two of them, which a parent may have ignored. The
     * kernel's struct, all zero, is the default action without flags. */
    const char zeros[64] = {0};
    for (int number = 1; number < 65; number++) {
        (void)syscall(SYS_rt_sigaction, number, zeros, NULL, 8UL);
    }
    (void)signal(SIGCHLD, on_child);
    sigset_t blocked;
    (void)sigfillset(&blocked);
    for (size_t ix = 0; ix < ARRAY_COUNT(faults); ix++) {
        (void)sigdelset(&blocked, faults[ix]);
    }
    (void)sigprocmask(SIG_SETMASK, &blocked, NULL);
}

static void say_hello(const struct server *server)
{
    struct shim_wire_hello hello = {
        .magic = SHIM_WIRE_MAGIC,
        .version = SHIM_WIRE_VERSION,
        .program = SLUICE_VERSION,
    };
    /* The first bytes in an empty socket always fit. */
    (void)send(server->fd, &hello, sizeof(hello), MSG_NOSIGNAL);
}

/* Wait for a request, for room in the socket, for the end of a shim, or until
 * reports are due. True: there may be a request. */
static bool wait_for_work(const struct server *server, const sigset_t *mask)
{
    int64_t left_ns = kept_back_ns(server);
    struct timespec left = {.tv_nsec = (long)left_ns};
    struct pollfd poll_fd = {.fd = server->fd};
    poll_fd.events |= server->out_len > 0 && left_ns == 0 ? POLLOUT : 0;
    poll_fd.events |= server->out_len < OUT_BYTES_MAX ? POLLIN : 0;
    int ready = ppoll(&poll_fd, 1, left_ns > 0 ? &left : NULL, mask);
    return ready > 0 && (poll_fd.revents & (POLLIN | POLLHUP | POLLERR)) != 0;
}

int shim_serve(int fd)
{
    struct server server = {.fd = fd, .send_ns = NEVER};
    struct shim_birth birth;
    detach(&server);
    reset_signals();
    say_hello(&server);
    crash_point("server-hello");
    sigset_t waiting;
    (void)sigprocmask(SIG_SETMASK, NULL, &waiting);
    (void)sigdelset(&waiting, SIGCHLD);
    while (!server.closed) {
        if (wait_for_work(&server, &waiting) && receive(&server, &birth)) {
            (void)close(fd);
            _exit(shim_run(&birth));
        }
        reap(&server);
        flush(&server);
    }
    free(server.in);
    free(server.out);
    free(server.live);
    return 0;
}
