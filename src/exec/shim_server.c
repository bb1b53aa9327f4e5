/* SPDX-License-Identifier: MIT */
/*
 * The spawn server. It is small so that forking it is cheap: a shim is this
 * process forked, without an exec. A shim that has finished an attempt reports
 * that through a pipe and waits for a moment: then the server sends it the next
 * request, through a socket of its own. If that fails, it forks another shim.
 *
 * One loop. All signals are blocked except inside ppoll(), which lets SIGCHLD
 * through; its handler only interrupts the wait. So a forked shim begins with
 * every signal blocked, and only SIGKILL can kill it early.
 *
 * Every iteration reaps, whether or not a signal arrived: ppoll() does not
 * deliver a signal while the socket is ready. Reports are collected during an
 * iteration and sent at its end; the bytes that the socket does not take wait
 * for POLLOUT. While these exceed OUT_BYTES_MAX, no requests are read, so
 * memory is bounded and nothing is lost: the client has to read first. No
 * client waits for the report of a start, so it is delayed for a moment:
 * usually it can go with another report, and the client is woken once for both.
 *
 * The server continues stopped shims: a stopped shim enforces no timeouts.
 */
#include "base/crash.h"
#include "base/duration.h"
#include "exec/cgroup.h"
#include "exec/proctree.h"
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
    IN_BYTES_KEPT = 256 << 10, /* a larger buffer is freed */
    OUT_BYTES_MAX = 1 << 20,
    EXIT_LOST = 3, /* the server cannot continue; the client notices */
    /* Shims that can take another request. Reuse pays for short sessions, and
     * there are never this many of them at once. */
    SOCKETS_MAX = 64,
};

/* Longest delay for the report of a start. */
#define KEEP_BACK_NS (5 * MS_NS)
#define NEVER INT64_MAX

/* A forked shim, not yet reaped. */
struct live {
    pid_t pid;
    uint64_t start_ticks;
    int next_fd; /* for another request; -1: none */
    bool busy;   /* with the request `id` */
    uint64_t id;
    char group[SHIM_CGROUP_BYTES]; /* "": none */
};

struct server {
    int fd;
    bool closed; /* the client is gone */
    char boot_id[37];
    char *in; /* bytes of requests */
    size_t in_len;
    size_t in_capacity;
    char *out; /* reports not sent yet */
    size_t out_len;
    size_t out_capacity;
    int64_t send_ns; /* when to send them; NEVER: no reports */
    struct live *live;
    size_t live_count;
    size_t live_capacity;
    size_t socket_count; /* shims with a next_fd */
    int done_in;         /* the pipe for shim_done; -1: none */
    int done_out;
    int group_fd;         /* parent of new groups; -1: none */
    uint32_t group_count; /* created so far */
};

static void on_child(int signal)
{
    (void)signal; /* interrupting ppoll() is enough */
}

/* Grow a block to hold `wanted` elements; return false if out of memory. */
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

/* Reserve room for `bytes` bytes. Without memory the server must not continue:
 * the client notices its exit, and reads the directories itself. */
static void reserve(char **block, size_t *capacity, size_t bytes)
{
    void *grown = *block;
    if (!grow(&grown, capacity, bytes, 1)) {
        _exit(EXIT_LOST);
    }
    *block = grown;
}

/* Queue a report for the end of the iteration. */
static void report(struct server *server, const struct shim_wire_report *report)
{
    size_t wanted = server->out_len + sizeof(*report);
    reserve(&server->out, &server->out_capacity, wanted);
    memcpy(server->out + server->out_len, report, sizeof(*report));
    server->out_len = wanted;
    if (report->type != SHIM_WIRE_STARTED) {
        server->send_ns = 0;
    } else if (server->send_ns == NEVER) {
        server->send_ns = shim_clock(CLOCK_MONOTONIC) + KEEP_BACK_NS;
    }
}

/* Return the remaining delay of the reports; 0: due, or no reports. */
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

static struct live *find(struct server *server, pid_t pid)
{
    for (size_t ix = 0; ix < server->live_count; ix++) {
        if (server->live[ix].pid == pid) {
            return &server->live[ix];
        }
    }
    return NULL;
}

/* Report that a shim has finished its request. */
static void report_end(struct server *server, struct live *live, int error)
{
    live->busy = false;
    report(server,
           &(struct shim_wire_report){
               .type = SHIM_WIRE_ENDED,
               .error = error,
               .id = live->id,
               .pid = live->pid,
               .start_ticks = live->start_ticks,
           });
}

/* Report the requests that shims have finished. */
static void hear(struct server *server)
{
    struct shim_done done[SOCKETS_MAX];
    ssize_t len = read(server->done_in, done, sizeof(done));
    for (size_t ix = 0; len > 0 && ix < (size_t)len / sizeof(done[0]); ix++) {
        struct live *live = find(server, done[ix].pid);
        if (live != NULL && live->busy) {
            crash_point("server-heard");
            report_end(server, live, 0);
        }
    }
}

/* Close the socket of a shim: it gets no more requests. */
static void drop_socket(struct server *server, struct live *live)
{
    if (live->next_fd >= 0) {
        (void)close(live->next_fd);
        live->next_fd = -1;
        server->socket_count--;
    }
}

/* Report the shims that have exited, and continue stopped shims. */
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
        struct live *live = find(server, pid);
        if (live == NULL) {
            continue;
        }
        crash_point("server-reaped");
        if (live->busy) {
            report_end(server,
                       live,
                       WIFEXITED(status) ? WEXITSTATUS(status) : 0);
        }
        drop_socket(server, live);
        if (live->group[0] != '\0') { /* processes of a killed shim stay */
            cgroup_remove(server->group_fd, live->group);
        }
        *live = server->live[--server->live_count];
    }
}

/* Report that a shim has a request now. */
static void report_start(struct server *server, struct live *live, uint64_t id)
{
    live->busy = true;
    live->id = id;
    report(server,
           &(struct shim_wire_report){
               .type = SHIM_WIRE_STARTED,
               .id = id,
               .pid = live->pid,
               .start_ticks = live->start_ticks,
           });
}

/*
 * Send a request to a shim that has finished another; return false if no shim
 * takes it. If the client is gone, none may: another client may by now have
 * found the shim with its previous attempt, and wait for its exit.
 */
static bool hand_over(struct server *server,
                      const struct shim_message *message,
                      uint64_t id)
{
    struct pollfd client = {.fd = server->fd};
    if (message->len > SHIM_NEXT_BYTES_MAX || poll(&client, 1, 0) != 0) {
        return false;
    }
    for (size_t ix = 0; ix < server->live_count; ix++) {
        struct live *live = &server->live[ix];
        if (live->busy || live->next_fd < 0) {
            continue;
        }
        if (send(live->next_fd,
                 message->bytes,
                 message->len,
                 MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)message->len) {
            crash_point("server-handed");
            report_start(server, live, id);
            return true;
        }
        drop_socket(server, live); /* it is about to exit */
    }
    return false;
}

/* Close the server's descriptors in a new shim. */
static void forget_server(const struct server *server)
{
    (void)close(server->fd);
    if (server->done_in >= 0) {
        (void)close(server->done_in);
    }
    for (size_t ix = 0; ix < server->live_count; ix++) {
        if (server->live[ix].next_fd >= 0) {
            (void)close(server->live[ix].next_fd);
        }
    }
}

/* Create the socket of a new shim; both ends are -1 if it gets none. A shim
 * that begins with a long request would keep the memory for it. */
static void make_socket(const struct server *server, size_t bytes, int ends[2])
{
    if (bytes > SHIM_NEXT_BYTES_MAX || server->done_in < 0 ||
        server->socket_count == SOCKETS_MAX ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        ends[0] = -1;
        ends[1] = -1;
    }
}

/* Fork a shim for one request; return 0 or an errno. Returns twice, as fork()
 * does; *is_shim_out: this is the shim. */
static int fork_shim(struct server *server,
                     struct shim_birth *birth,
                     uint64_t id,
                     bool *is_shim_out)
{
    void *grown = server->live;
    if (!grow(&grown,
              &server->live_capacity,
              server->live_count + 1,
              sizeof(server->live[0]))) {
        return ENOMEM;
    }
    server->live = grown;
    int ends[2];
    make_socket(server, birth->message.len, ends);
    birth->boot_id = server->boot_id;
    birth->done_fd = server->done_out;
    birth->next_fd = ends[1];
    birth->forked_ns = shim_clock(CLOCK_BOOTTIME);
    int fault = crash_fault("fork");
    pid_t pid = fault != 0 ? -1
                           : shim_cgroup_fork(&birth->group,
                                              server->group_fd,
                                              ++server->group_count);
    int error = fault != 0 ? fault : errno;
    *is_shim_out = pid == 0;
    if (ends[0] >= 0) {
        (void)close(ends[pid == 0 ? 0 : 1]);
    }
    if (pid == 0) {
        forget_server(server);
        return 0;
    }
    if (pid < 0) {
        if (ends[0] >= 0) {
            (void)close(ends[0]);
        }
        return error;
    }
    crash_point("server-forked");
    struct live *live = &server->live[server->live_count++];
    *live = (struct live){
        .pid = pid,
        .start_ticks = shim_start_ticks(pid, birth->forked_ns),
        .next_fd = ends[0],
    };
    memcpy(live->group, birth->group.name, sizeof(live->group));
    server->socket_count += ends[0] >= 0 ? 1 : 0;
    report_start(server, live, id);
    return 0;
}

/* Reuse or fork a shim for one request. Return true in the shim. */
static bool start(struct server *server, struct shim_birth *birth)
{
    struct shim_wire_request request;
    memcpy(&request, birth->message.bytes, sizeof(request));
    crash_point("server-request-read");
    bool is_shim = false;
    if (!hand_over(server, &birth->message, request.id)) {
        int error = fork_shim(server, birth, request.id, &is_shim);
        if (error != 0) {
            report(server,
                   &(struct shim_wire_report){
                       .type = SHIM_WIRE_FAILED,
                       .error = error,
                       .id = request.id,
                   });
        }
    }
    return is_shim;
}

/* Execute the complete requests. Return true in a shim. */
static bool handle(struct server *server, struct shim_birth *birth)
{
    size_t at = 0;
    while (server->in_len - at >= sizeof(struct shim_wire_request)) {
        uint32_t bytes;
        memcpy(&bytes, server->in + at, sizeof(bytes));
        if (bytes < sizeof(struct shim_wire_request) ||
            bytes > SHIM_WIRE_REQUEST_MAX) {
            _exit(EXIT_LOST); /* framing lost: the rest is unreadable */
        }
        if (server->in_len - at < bytes) {
            reserve(&server->in, &server->in_capacity, bytes + IN_BYTES_MIN);
            break;
        }
        birth->message.bytes = server->in + at;
        birth->message.len = bytes;
        if (start(server, birth)) {
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

/* Read requests and execute them. Return true in a shim. */
static bool receive(struct server *server, struct shim_birth *birth)
{
    reserve(&server->in, &server->in_capacity, IN_BYTES_MIN);
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

/* Detach from the parent: descriptors, session, working directory. */
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
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) == 0 &&
        fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0) {
        server->done_in = ends[0];
        server->done_out = ends[1];
    }
    (void)setsid();
    (void)!chdir("/");
    proctree_boot_id(server->boot_id);
    server->group_fd = shim_cgroup_open();
}

/* Block all signals except faults, and set all actions to their defaults. */
static void reset_signals(void)
{
    static const int faults[] =
        {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
    /* The C library hides two signals, which a parent may have ignored. The
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

/* Wait for a request, room in the socket, a finished attempt, an exited shim,
 * or due reports. Return true if a request may be pending. */
static bool wait_for_work(struct server *server, const sigset_t *mask)
{
    int64_t left_ns = kept_back_ns(server);
    struct timespec left = {.tv_nsec = (long)left_ns};
    struct pollfd fds[] = {
        {.fd = server->fd},
        {.fd = server->done_in, .events = POLLIN}, /* ppoll() ignores -1 */
    };
    fds[0].events |= server->out_len > 0 && left_ns == 0 ? POLLOUT : 0;
    fds[0].events |= server->out_len < OUT_BYTES_MAX ? POLLIN : 0;
    int ready = ppoll(fds, ARRAY_COUNT(fds), left_ns > 0 ? &left : NULL, mask);
    if (ready > 0 && fds[1].revents != 0) {
        hear(server);
    }
    return ready > 0 && (fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
}

int shim_serve(int fd)
{
    struct server server = {
        .fd = fd,
        .send_ns = NEVER,
        .done_in = -1,
        .done_out = -1,
        .group_fd = -1,
    };
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
            _exit(shim_live(&birth));
        }
        reap(&server);
        flush(&server);
    }
    free(server.in);
    free(server.out);
    free(server.live);
    return 0;
}
