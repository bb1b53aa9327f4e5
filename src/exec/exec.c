/* SPDX-License-Identifier: MIT */
/*
 * Client of the spawn server. It sends as much of each request as the socket
 * takes and keeps the rest in `out`; it collects the bytes of reports in `in`
 * until a report is complete. shim_wire.h describes the messages.
 */
#include "exec/exec.h"

#include "base/crash.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "exec/attempt.h"
#include "exec/shim_wire.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    HELLO_MS_MAX = 10000, /* the machine may be very busy */
    CLOSE_MS_MAX = 1000,
    SERVER_FD = 3,
    QUEUE_TRIES = 50,
    QUEUE_PAUSE_NS = 2000000,
};

struct exec {
    int fd;
    pid_t server;
    struct strbuf out; /* requests not sent yet */
    size_t out_sent;   /* bytes of it already sent */
    char in[64 * sizeof(struct shim_wire_report)];
    size_t in_len;
};

/* Whether a program exists at DIR/NAME; its path is in `out`. */
static bool is_program(struct strbuf *out,
                       const char *dir,
                       size_t dir_len,
                       const char *place,
                       const char *name)
{
    strbuf_clear(out);
    strbuf_add(out, dir, dir_len);
    strbuf_adds(out, place);
    strbuf_adds(out, name);
    return access(out->text, X_OK) == 0;
}

enum err exec_find_program(const char *name,
                           const char *variable,
                           struct strbuf *out,
                           struct diag *diag)
{
    static const char *const places[] = {
        "",
        "../libexec/sluice/", /* installed */
        "../agent/",          /* in a build directory */
        "../cli/",
        "../exec/",
        "../exec/sandbox/",
        "../git/",
    };
    const char *chosen = getenv(variable);
    if (chosen != NULL && chosen[0] != '\0') {
        if (is_program(out, chosen, strlen(chosen), "", "")) {
            return ERR_OK;
        }
        return diag_set(diag,
                        ERR_NOT_FOUND,
                        "%s is %s: %s",
                        variable,
                        chosen,
                        strerror(errno));
    }
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self));
    if (len <= 0 || len == (ssize_t)sizeof(self)) {
        return diag_set(diag, ERR_NOT_FOUND, "cannot find %s", name);
    }
    const char *slash = memrchr(self, '/', (size_t)len);
    size_t dir_len = slash != NULL ? (size_t)(slash - self) + 1 : 0;
    for (size_t ix = 0; ix < ARRAY_COUNT(places); ix++) {
        if (is_program(out, self, dir_len, places[ix], name)) {
            return ERR_OK;
        }
    }
    return diag_set(diag,
                    ERR_NOT_FOUND,
                    "%s is neither next to %.*s nor in its ../libexec/sluice: "
                    "incomplete installation",
                    name,
                    (int)len,
                    self);
}

/* Spawn the server with `fd` as its socket; return 0 or an errno. */
static int spawn_server(const char *path, int fd, pid_t *pid_out)
{
    char name[] = "sluice-shim";
    char option[] = "--serve";
    char number[] = "3";
    char *argv[] = {name, option, number, NULL};
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) {
        return error;
    }
    error = posix_spawn_file_actions_adddup2(&actions, fd, SERVER_FD);
    if (error == 0) {
        error = posix_spawn(pid_out, path, &actions, NULL, argv, environ);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Read the hello of the server; return the number of bytes read in time. */
static size_t read_hello(int fd, struct shim_wire_hello *hello)
{
    size_t len = 0;
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    while (len < sizeof(*hello)) {
        int ready = poll(&poll_fd, 1, HELLO_MS_MAX);
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        ssize_t got = ready <= 0 ? 0
                                 : recv(fd,
                                        (char *)hello + len,
                                        sizeof(*hello) - len,
                                        MSG_DONTWAIT);
        if (got <= 0) {
            break;
        }
        len += (size_t)got;
    }
    return len;
}

/* Check that the program is a spawn server of our protocol version. */
static enum err
check_hello(const struct exec *exec, const char *path, struct diag *diag)
{
    struct shim_wire_hello hello = {0};
    size_t len = read_hello(exec->fd, &hello);
    if (len != sizeof(hello) ||
        memcmp(hello.magic, SHIM_WIRE_MAGIC, sizeof(hello.magic)) != 0) {
        return diag_set(diag,
                        ERR_UNAVAILABLE,
                        "%s does not respond like sluice-shim",
                        path);
    }
    if (hello.version != SHIM_WIRE_VERSION) {
        return diag_set(diag,
                        ERR_CONFLICT,
                        "%s has version %.15s (protocol %u), but sluice has %s "
                        "(protocol %d): install both together",
                        path,
                        hello.program,
                        hello.version,
                        SLUICE_VERSION,
                        SHIM_WIRE_VERSION);
    }
    return ERR_OK;
}

enum err exec_open(struct exec **out, const char *shim, struct diag *diag)
{
    struct strbuf path = {0};
    struct exec *exec = NULL;
    int fds[2] = {-1, -1};
    enum err err = ERR_OK;
    *out = NULL;
    if (shim == NULL) {
        err = exec_find_program("sluice-shim", "SLUICE_SHIM", &path, diag);
    } else if (!is_program(&path, shim, strlen(shim), "", "")) {
        err = diag_set(diag, ERR_NOT_FOUND, "%s: %s", shim, strerror(errno));
    }
    if (err != ERR_OK) {
        goto out;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
        err = diag_set(diag, ERR_IO, "socketpair: %s", strerror(errno));
        goto out;
    }
    exec = mem_zalloc(1, sizeof(*exec));
    exec->fd = fds[0];
    crash_point("exec-before-server");
    int error = spawn_server(strbuf_text(&path), fds[1], &exec->server);
    crash_point("exec-after-server");
    (void)close(fds[1]);
    if (error != 0) {
        exec->server = 0;
        err = diag_set(diag, ERR_IO, "run %s: %s", path.text, strerror(error));
        goto out;
    }
    err = check_hello(exec, path.text, diag);
    if (err == ERR_OK) {
        *out = exec;
        exec = NULL;
    }
out:
    exec_close(exec);
    strbuf_release(&path);
    return err;
}

void exec_limit_files(const struct exec *exec, const struct rlimit *files)
{
    /* On failure, sessions may open more files than before. */
    (void)prlimit(exec->server, RLIMIT_NOFILE, files, NULL);
}

/* Wait for the server, which exits when its socket is closed. Kill a server
 * that hangs; that does not affect shims. */
static void end_server(pid_t server)
{
    int fd = (int)syscall(SYS_pidfd_open, server, 0U);
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    if (fd < 0 || poll(&poll_fd, 1, CLOSE_MS_MAX) <= 0) {
        (void)kill(server, SIGKILL); /* not reaped yet, so the pid is its own */
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    while (waitpid(server, NULL, 0) < 0 && errno == EINTR) {
    }
}

void exec_close(struct exec *exec)
{
    if (exec == NULL) {
        return;
    }
    (void)close(exec->fd);
    if (exec->server > 0) {
        end_server(exec->server);
    }
    strbuf_release(&exec->out);
    mem_free(exec);
}

int exec_fd(const struct exec *exec)
{
    return exec->fd;
}

/* Append strings with their NULs; return false if a string is too long. */
static bool
add_texts(struct strbuf *out, const char *const *texts, uint32_t count)
{
    for (uint32_t ix = 0; ix < count; ix++) {
        size_t bytes = strlen(texts[ix]) + 1;
        if (bytes > SHIM_WIRE_TEXT_MAX) {
            return false;
        }
        strbuf_add(out, texts[ix], bytes);
    }
    return true;
}

/* Whether the request has the variable that marks the session's processes. */
static bool has_marker(const struct exec_request *request)
{
    static const char marker[] = "SLUICE_RESULT=";
    for (uint32_t ix = 0; ix < request->env_count; ix++) {
        if (strncmp(request->env[ix], marker, sizeof(marker) - 1) == 0) {
            return true;
        }
    }
    return false;
}

/* Append the message of a request; return false if it is too long. */
static bool encode(struct strbuf *out, const struct exec_request *request)
{
    size_t begin = out->len;
    bool marked = has_marker(request);
    struct shim_wire_request head = {
        .argc = request->argc,
        .env_count = request->env_count + (marked ? 0 : 1),
        .has_prepare = request->prepare != NULL ? 1 : 0,
        .has_lease = request->lease != NULL ? 1 : 0,
        .has_spare = request->spare != NULL ? 1 : 0,
        .idle_ignores_cpu = request->idle_ignores_cpu ? 1 : 0,
        .id = request->id,
        .timeout_ns = request->timeout_ns,
        .idle_ns = request->idle_ns,
        .checkpoint_ns = request->checkpoint_ns,
        .grace_ns = request->grace_ns,
        .log_bytes_max = request->log_bytes_max,
    };
    (void)snprintf(head.nonce,
                   sizeof(head.nonce),
                   "%s",
                   request->nonce != NULL ? request->nonce : "");
    strbuf_add(out, (const char *)&head, sizeof(head));
    bool fits = add_texts(out, &request->dir, 1) &&
                add_texts(out, &request->folder, 1) &&
                add_texts(out, &request->prepare, head.has_prepare) &&
                add_texts(out, &request->lease, head.has_lease) &&
                add_texts(out, &request->spare, head.has_spare) &&
                add_texts(out, request->argv, request->argc) &&
                add_texts(out, request->env, request->env_count);
    if (!marked) {
        strbuf_addf(out, "SLUICE_RESULT=%s/result", request->dir);
        strbuf_add(out, "", 1);
    }
    size_t bytes = out->len - begin;
    if (!fits || bytes > SHIM_WIRE_REQUEST_MAX) {
        out->len = begin;
        return false;
    }
    head.bytes = (uint32_t)bytes;
    memcpy(out->text + begin, &head, sizeof(head));
    return true;
}

enum err exec_start(struct exec *exec,
                    const struct exec_request *request,
                    struct diag *diag)
{
    INVARIANT(request->argc > 0);
    INVARIANT(request->timeout_ns >= 0 && request->idle_ns >= 0);
    INVARIANT(request->checkpoint_ns >= 0 && request->grace_ns >= 0);
    if (request->dir[0] != '/' || request->folder[0] != '/') {
        return diag_set(diag,
                        ERR_INVALID,
                        "%s: not an absolute path",
                        request->dir[0] != '/' ? request->dir
                                               : request->folder);
    }
    if (!encode(&exec->out, request)) {
        return diag_set(diag,
                        ERR_LIMIT,
                        "the command with its environment is too long: at most "
                        "%d KiB per string, %d MiB in total",
                        SHIM_WIRE_TEXT_MAX >> 10,
                        SHIM_WIRE_REQUEST_MAX >> 20);
    }
    /* exec_read() reports that the server has died. */
    (void)!exec_flush(exec, NULL);
    return ERR_OK;
}

bool exec_wants_write(const struct exec *exec)
{
    return exec->out.len > exec->out_sent;
}

enum err exec_flush(struct exec *exec, struct diag *diag)
{
    while (exec_wants_write(exec)) {
        ssize_t sent = send(exec->fd,
                            exec->out.text + exec->out_sent,
                            exec->out.len - exec->out_sent,
                            MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0 && errno == EAGAIN) {
            return ERR_OK;
        }
        if (sent < 0) {
            return diag_set(diag,
                            ERR_UNAVAILABLE,
                            "the spawn server has died: %s",
                            strerror(errno));
        }
        exec->out_sent += (size_t)sent;
    }
    strbuf_clear(&exec->out);
    exec->out_sent = 0;
    return ERR_OK;
}

/* Deliver the complete reports in `in`, and keep the rest. */
static void deliver(struct exec *exec, exec_report_fn fn, void *ctx)
{
    struct shim_wire_report wire;
    size_t at = 0;
    for (; exec->in_len - at >= sizeof(wire); at += sizeof(wire)) {
        memcpy(&wire, exec->in + at, sizeof(wire));
        struct exec_report report = {
            .type = wire.type == SHIM_WIRE_STARTED  ? EXEC_STARTED
                    : wire.type == SHIM_WIRE_FAILED ? EXEC_FAILED
                                                    : EXEC_ENDED,
            .id = wire.id,
            .pid = wire.pid,
            .start_ticks = wire.start_ticks,
            .error = wire.error,
        };
        fn(ctx, &report);
    }
    exec->in_len -= at;
    memmove(exec->in, exec->in + at, exec->in_len);
}

enum err
exec_read(struct exec *exec, exec_report_fn fn, void *ctx, struct diag *diag)
{
    for (;;) {
        size_t room = sizeof(exec->in) - exec->in_len;
        ssize_t len =
            recv(exec->fd, exec->in + exec->in_len, room, MSG_DONTWAIT);
        if (len < 0 && errno == EINTR) {
            continue;
        }
        if (len < 0 && errno == EAGAIN) {
            break;
        }
        if (len <= 0) {
            return diag_set(diag,
                            ERR_UNAVAILABLE,
                            "the spawn server has died: %s",
                            len < 0 ? strerror(errno) : "end of file");
        }
        exec->in_len += (size_t)len;
        deliver(exec, fn, ctx);
        if ((size_t)len < room) {
            break; /* all read; saves a system call */
        }
    }
    return exec_wants_write(exec) ? exec_flush(exec, diag) : ERR_OK;
}

enum err
exec_watch(int64_t pid, uint64_t start_ticks, int *pidfd_out, struct diag *diag)
{
    *pidfd_out = -1;
    int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, (pid_t)pid, 0U) : -1;
    int error = pid > 0 ? errno : ESRCH;
    if (fd < 0 && error != ESRCH && error != EINVAL) {
        return diag_set(diag, ERR_IO, "pidfd_open: %s", strerror(error));
    }
    /* Check after the open: the descriptor prevents reuse of the pid. */
    if (fd < 0 || attempt_start_ticks(pid) != start_ticks) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return diag_set(diag,
                        ERR_NOT_FOUND,
                        "process %lld is gone",
                        (long long)pid);
    }
    *pidfd_out = fd;
    return ERR_OK;
}

static const enum shim_wire_order orders[] = {
    [EXEC_CANCEL] = SHIM_WIRE_CANCEL,
    [EXEC_STOP] = SHIM_WIRE_STOP,
    [EXEC_CHECKPOINT] = SHIM_WIRE_CHECKPOINT,
};

/* Queue a signal; return 0 or an errno. The kernel limits the queued signals
 * per user: wait for a moment if the queue is full. */
static int queue(int pidfd, siginfo_t *info)
{
    const struct timespec pause = {.tv_nsec = QUEUE_PAUSE_NS};
    int fault = crash_fault("order");
    if (fault != 0) {
        return fault;
    }
    for (int ix = 0;; ix++) {
        long rc =
            syscall(SYS_pidfd_send_signal, pidfd, info->si_signo, info, 0U);
        if (rc == 0 || errno != EAGAIN || ix == QUEUE_TRIES) {
            return rc == 0 ? 0 : errno;
        }
        (void)nanosleep(&pause, NULL);
    }
}

enum err exec_signal(int64_t pid,
                     uint64_t start_ticks,
                     uint64_t id,
                     enum exec_end how,
                     struct diag *diag)
{
    int fd;
    enum err err = exec_watch(pid, start_ticks, &fd, diag);
    if (err != ERR_OK) {
        return err;
    }
    siginfo_t info = {
        .si_signo = SHIM_WIRE_SIGNAL,
        .si_code = SI_QUEUE,
    };
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_int = shim_wire_value(id, orders[how]);
    crash_point("exec-before-signal");
    int error = queue(fd, &info);
    if (error != 0) {
        err = error == ESRCH
                  ? diag_set(diag, ERR_NOT_FOUND, "the shim has exited")
                  : diag_set(diag,
                             ERR_IO,
                             "signal process %lld: %s",
                             (long long)pid,
                             strerror(error));
    }
    crash_point("exec-after-signal");
    /* The shim may have been stopped. */
    (void)syscall(SYS_pidfd_send_signal, fd, SIGCONT, NULL, 0U);
    (void)close(fd);
    return err;
}
