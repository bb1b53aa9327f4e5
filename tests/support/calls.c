/* SPDX-License-Identifier: MIT */
/*
 * The linker's option --wrap=NAME resolves a call of NAME to __wrap_NAME, which
 * is here, and __real_NAME to NAME. Threads may call at the same time.
 */
#include "tests/support/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <poll.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

static struct {
    struct calls_fault fault;
    atomic_uint calls; /* since calls_fail() */
    atomic_bool armed;
    atomic_bool struck;
    _Atomic(const char *) name;
    bool more;
} state = {.name = "", .more = true};

void calls_fail(const struct calls_fault *fault)
{
    state.fault = *fault;
    state.calls = 0;
    state.struck = false;
    state.name = "";
    state.armed = true;
}

void calls_pause(void)
{
    state.armed = false;
}

void calls_resume(void)
{
    state.armed = true;
}

bool calls_end(void)
{
    state.armed = false;
    state.more = state.struck;
    return state.struck;
}

const char *calls_failed(void)
{
    return state.name;
}

bool calls_more(void)
{
    bool more = state.more;
    state.more = true;
    return more;
}

/* Return the error of this call; 0: it does not fail. */
static int strike(const char *name, int usual)
{
    const struct calls_fault *fault = &state.fault;
    if (!state.armed ||
        (fault->only != NULL &&
         strncmp(name, fault->only, strlen(fault->only)) != 0)) {
        return 0;
    }
    unsigned last = fault->first + (fault->count > 0 ? fault->count - 1 : 0);
    unsigned number = atomic_fetch_add(&state.calls, 1) + 1;
    if (number < fault->first || number > last) {
        return 0;
    }
    state.name = name;
    state.struck = true;
    return fault->error != 0 ? fault->error : usual;
}

/* The result of a system call that fails. */
static int by_errno(int error)
{
    if (error == CALLS_NOTHING) {
        return 0;
    }
    errno = error;
    return -1;
}

/* The same for a function that returns an error number, and for libuv. */
static int by_number(int error)
{
    return error == CALLS_NOTHING ? 0 : error;
}

static int by_minus(int error)
{
    return -by_number(error);
}

/* A function that fails with the error `usual`, or as it is told. */
#define WRAP(type, name, usual, failure, params, args)                         \
    type real_##name params __asm__("__real_" #name);                          \
    type wrap_##name params __asm__("__wrap_" #name);                          \
    type wrap_##name params                                                    \
    {                                                                          \
        int error = strike(#name, usual);                                      \
        return error == 0 ? real_##name args : (failure);                      \
    }

/* --- the system --------------------------------------------------------- */

#define SYSTEM(type, name, usual, params, args)                                \
    WRAP(type, name, usual, by_errno(error), params, args)

SYSTEM(int,
       bind,
       EADDRINUSE,
       (int fd, const struct sockaddr *at, socklen_t len),
       (fd, at, len))
SYSTEM(int, fchmod, EPERM, (int fd, mode_t mode), (fd, mode))
SYSTEM(int, flock, ENOLCK, (int fd, int how), (fd, how))
SYSTEM(int, fstat64, EIO, (int fd, struct stat *out), (fd, out))
SYSTEM(int, gethostname, ENAMETOOLONG, (char *out, size_t len), (out, len))
SYSTEM(ssize_t,
       getrandom,
       ENOSYS,
       (void *out, size_t len, unsigned flags),
       (out, len, flags))
SYSTEM(int, getrlimit64, EPERM, (int what, struct rlimit *out), (what, out))
SYSTEM(int,
       getsockopt,
       ENOTCONN,
       (int fd, int level, int name, void *out, socklen_t *len),
       (fd, level, name, out, len))
SYSTEM(off_t, lseek64, ESPIPE, (int fd, off_t at, int from), (fd, at, from))
SYSTEM(int, pipe2, EMFILE, (int fds[2], int flags), (fds, flags))
SYSTEM(int,
       poll,
       ENOMEM,
       (struct pollfd * fds, nfds_t count, int ms),
       (fds, count, ms))
SYSTEM(ssize_t,
       pread64,
       EIO,
       (int fd, void *out, size_t len, off_t at),
       (fd, out, len, at))
SYSTEM(ssize_t,
       pwrite64,
       ENOSPC,
       (int fd, const void *from, size_t len, off_t at),
       (fd, from, len, at))
SYSTEM(ssize_t, read, EIO, (int fd, void *out, size_t len), (fd, out, len))
SYSTEM(ssize_t,
       recv,
       ECONNRESET,
       (int fd, void *out, size_t len, int flags),
       (fd, out, len, flags))
SYSTEM(int,
       renameat,
       EIO,
       (int from_dir, const char *from, int dir, const char *name),
       (from_dir, from, dir, name))
SYSTEM(ssize_t,
       send,
       EPIPE,
       (int fd, const void *from, size_t len, int flags),
       (fd, from, len, flags))
SYSTEM(int,
       socket,
       EMFILE,
       (int domain, int type, int kind),
       (domain, type, kind))
SYSTEM(int,
       socketpair,
       EMFILE,
       (int domain, int type, int kind, int fds[2]),
       (domain, type, kind, fds))
SYSTEM(int,
       unlinkat,
       EIO,
       (int dir, const char *name, int flags),
       (dir, name, flags))
SYSTEM(pid_t,
       waitpid,
       ECHILD,
       (pid_t pid, int *out, int flags),
       (pid, out, flags))
SYSTEM(ssize_t,
       write,
       ENOSPC,
       (int fd, const void *from, size_t len),
       (fd, from, len))

/* A descriptor whose closing fails is closed all the same. */
int real_close(int fd) __asm__("__real_close");
int wrap_close(int fd) __asm__("__wrap_close");
int wrap_close(int fd)
{
    int error = strike("close", EIO);
    int status = real_close(fd);
    return error == 0 ? status : by_errno(error);
}

/* The mode of a file that open() may create. */
static mode_t mode_of(int flags, va_list args)
{
    return (flags & O_CREAT) != 0 ? va_arg(args, mode_t) : 0;
}

int real_open(const char *path, int flags, ...) __asm__("__real_open64");
int wrap_open(const char *path, int flags, ...) __asm__("__wrap_open64");
int wrap_open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = mode_of(flags, args);
    va_end(args);
    int error = strike("open", EMFILE);
    return error == 0 ? real_open(path, flags, mode) : by_errno(error);
}

int real_openat(int dir,
                const char *path,
                int flags,
                ...) __asm__("__real_openat64");
int wrap_openat(int dir,
                const char *path,
                int flags,
                ...) __asm__("__wrap_openat64");
int wrap_openat(int dir, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = mode_of(flags, args);
    va_end(args);
    int error = strike("openat", EMFILE);
    return error == 0 ? real_openat(dir, path, flags, mode) : by_errno(error);
}

/* --- starting programs -------------------------------------------------- */

#define SPAWN(name, params, args)                                              \
    WRAP(int, posix_spawn##name, ENOMEM, by_number(error), params, args)

SPAWN(,
      (pid_t * pid,
       const char *path,
       const posix_spawn_file_actions_t *actions,
       const posix_spawnattr_t *attributes,
       char *const argv[],
       char *const env[]),
      (pid, path, actions, attributes, argv, env))
SPAWN(_file_actions_adddup2,
      (posix_spawn_file_actions_t * actions, int fd, int new_fd),
      (actions, fd, new_fd))
SPAWN(_file_actions_addopen,
      (posix_spawn_file_actions_t * actions,
       int fd,
       const char *path,
       int flags,
       mode_t mode),
      (actions, fd, path, flags, mode))
SPAWN(_file_actions_init, (posix_spawn_file_actions_t * actions), (actions))
SPAWN(attr_init, (posix_spawnattr_t * attributes), (attributes))
SPAWN(attr_setflags,
      (posix_spawnattr_t * attributes, short flags),
      (attributes, flags))
SPAWN(attr_setpgroup,
      (posix_spawnattr_t * attributes, pid_t group),
      (attributes, group))
SPAWN(attr_setsigdefault,
      (posix_spawnattr_t * attributes, const sigset_t *set),
      (attributes, set))
SPAWN(attr_setsigmask,
      (posix_spawnattr_t * attributes, const sigset_t *set),
      (attributes, set))

/* --- libuv -------------------------------------------------------------- */

#define LIBUV(name, usual, params, args)                                       \
    WRAP(int, uv_##name, usual, by_minus(error), params, args)

/* libuv does not keep a connection that could not be accepted: here the client
 * has it, and closes it. */
int real_uv_accept(uv_stream_t *from,
                   uv_stream_t *to) __asm__("__real_uv_accept");
int wrap_uv_accept(uv_stream_t *from,
                   uv_stream_t *to) __asm__("__wrap_uv_accept");
int wrap_uv_accept(uv_stream_t *from, uv_stream_t *to)
{
    int error = strike("uv_accept", EMFILE);
    int status = real_uv_accept(from, to);
    return error == 0 ? status : by_minus(error);
}

LIBUV(fileno,
      EBADF,
      (const uv_handle_t *handle, uv_os_fd_t *out),
      (handle, out))
LIBUV(listen,
      EADDRINUSE,
      (uv_stream_t * stream, int backlog, uv_connection_cb fn),
      (stream, backlog, fn))
LIBUV(loop_init, EMFILE, (uv_loop_t * loop), (loop))
LIBUV(pipe_open, EINVAL, (uv_pipe_t * pipe, uv_file fd), (pipe, fd))
LIBUV(poll_init,
      EPERM,
      (uv_loop_t * loop, uv_poll_t *poll, int fd),
      (loop, poll, fd))
LIBUV(read_start,
      EINVAL,
      (uv_stream_t * stream, uv_alloc_cb alloc, uv_read_cb fn),
      (stream, alloc, fn))
LIBUV(signal_init,
      EMFILE,
      (uv_loop_t * loop, uv_signal_t *signal),
      (loop, signal))
LIBUV(signal_start,
      EINVAL,
      (uv_signal_t * signal, uv_signal_cb fn, int number),
      (signal, fn, number))
LIBUV(write,
      EPIPE,
      (uv_write_t * write,
       uv_stream_t *stream,
       const uv_buf_t bufs[],
       unsigned count,
       uv_write_cb fn),
      (write, stream, bufs, count, fn))

/* --- libpq -------------------------------------------------------------- */

WRAP(int, PQconsumeInput, EIO, 0, (PGconn * conn), (conn))
WRAP(int, PQflush, EIO, -1, (PGconn * conn), (conn))
WRAP(int,
     PQsendQueryPrepared,
     EIO,
     0,
     (PGconn * conn,
      const char *name,
      int count,
      const char *const *values,
      const int *lengths,
      const int *formats,
      int format),
     (conn, name, count, values, lengths, formats, format))
WRAP(int, PQsocket, EIO, -1, (const PGconn *conn), (conn))
WRAP(unsigned char *,
     PQunescapeBytea,
     ENOMEM,
     NULL,
     (const unsigned char *text, size_t *len),
     (text, len))
