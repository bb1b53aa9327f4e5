/* SPDX-License-Identifier: MIT */
/*
 * The life of a shim: one attempt after the other.
 *
 * A fork costs more than all else that a shim does for a short session. So when
 * the session has ended by itself and nothing is left of it, the shim tells the
 * server that it is done and waits a moment for another request. After any
 * other end, and when the server is gone, it ends.
 *
 * Between two attempts it holds no lock and has no children. What it was told
 * about the one cannot harm the other: an order names its request, and one
 * that comes while it waits is left for the next attempt to take, which is the
 * one that it is about or ignores it. A SIGTERM or SIGINT, which is no order,
 * ends it.
 *
 * Nor can a request be lost to a shim that has waited long enough: it shuts
 * its end of the socket, so that no more can be sent, and looks once more.
 */
#include "base/crash.h"
#include "exec/shim_internal.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* How long to wait for another request. */
enum { WAIT_SECONDS = 1 };

/* Forget the signals that were meant for what is over. */
static void forget_signals(void)
{
    sigset_t all;
    const struct timespec now = {0};
    (void)sigfillset(&all);
    while (sigtimedwait(&all, NULL, &now) > 0) {
    }
}

static bool tell(int done_fd)
{
    struct shim_done done = {.pid = getpid()};
    return write(done_fd, &done, sizeof(done)) == (ssize_t)sizeof(done);
}

/* Wait for the next request; its length, or 0: there will be none. */
static size_t receive(int fd, char *bytes, size_t size)
{
    sigset_t mask;
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    const struct timespec longest = {.tv_sec = WAIT_SECONDS};
    (void)sigprocmask(SIG_SETMASK, NULL, &mask);
    (void)sigdelset(&mask, SIGTERM);
    (void)sigdelset(&mask, SIGINT);
    if (ppoll(&poll_fd, 1, &longest, &mask) <= 0) {
        (void)shutdown(fd, SHUT_RD);
    }
    ssize_t len = recv(fd, bytes, size, MSG_DONTWAIT);
    return len > 0 ? (size_t)len : 0;
}

/* Carry out one request after the other; the exit code. */
static int live(struct shim_birth *birth)
{
    char bytes[SHIM_NEXT_BYTES_MAX];
    struct shim_message message = birth->message;
    struct record_started self = {
        .pid = getpid(),
        .start_ticks = shim_start_ticks(getpid(), birth->forked_ns),
    };
    memcpy(self.boot_id, birth->boot_id, sizeof(self.boot_id));
    /* A group of its own, so that a signal to our group finds us alone. */
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    for (;;) {
        bool clean;
        int error = shim_run(&message, &self, &birth->group, &clean);
        if (!clean || birth->next_fd < 0) {
            return error;
        }
        forget_signals();
        crash_point("shim-done");
        if (!tell(birth->done_fd)) {
            return 0;
        }
        message.bytes = bytes;
        message.len = receive(birth->next_fd, bytes, sizeof(bytes));
        if (message.len < sizeof(struct shim_wire_request)) {
            return 0;
        }
        crash_point("shim-next");
    }
}

/* Whether the server has closed its ends. One that dies closes them one by one,
 * so both are looked at. */
static bool server_is_gone(const struct shim_birth *birth)
{
    struct pollfd fds[] = {{.fd = birth->done_fd}, {.fd = birth->next_fd}};
    return poll(fds, ARRAY_COUNT(fds), 0) > 0;
}

int shim_live(struct shim_birth *birth)
{
    int error = live(birth);
    if (server_is_gone(birth)) {
        shim_cgroup_remove(&birth->group);
    }
    return error;
}
