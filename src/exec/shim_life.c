/* SPDX-License-Identifier: MIT */
/*
 * Loop of a shim: one attempt after another.
 *
 * A fork costs more than all other work of a shim for a short session. So if
 * the session exited by itself and left no process, the shim reports to the
 * server that it has finished, and waits a moment for another request. In any
 * other case, and if the server is gone, it exits.
 *
 * Between two attempts it holds no lock and has no children. Orders for one
 * attempt cannot harm another: an order names its request, and an order that
 * arrives while the shim waits stays pending for the next attempt, which
 * ignores it if it names another request. A SIGTERM or SIGINT, which is not an
 * order, stops the shim.
 *
 * Nor can a request be lost to a shim that has waited long enough: it shuts its
 * end of the socket, so that no more can be sent, and reads once more.
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

/* Discard the signals for the finished attempt. */
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

/* Wait for the next request; return its length, or 0 if none comes. */
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

/* Execute one request after another; return the exit code. */
static int live(struct shim_birth *birth)
{
    char bytes[SHIM_NEXT_BYTES_MAX];
    struct shim_message message = birth->message;
    struct record_started self = {
        .pid = getpid(),
        .start_ticks = shim_start_ticks(getpid(), birth->forked_ns),
    };
    memcpy(self.boot_id, birth->boot_id, sizeof(self.boot_id));
    /* Own process group, so that signals to it hit only this process. */
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

/* Whether the server has closed its ends. A dying server closes them one by
 * one, so check both. */
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
