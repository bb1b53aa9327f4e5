/* SPDX-License-Identifier: MIT */
/*
 * Signals: the shim sends SIGTERM to the whole tree and SIGUSR1, for a
 * checkpoint, to its leader, which is this process. Neither may kill it while a
 * program runs: the steps after the session (see session.c) must happen. So
 * both are blocked. A termination signal stays pending, and proc_is_ending()
 * checks for it; it kills this process only during a wait for a lock. SIGUSR1
 * is read while a session runs, and forwarded to it if it handles the signal.
 *
 * For checkpoint.c, a process that blocks SIGUSR1 handles it. While this
 * process is busy, the shim may signal the session itself; the effect is the
 * same.
 */
#include "git/proc.h"

#include "exec/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    OUTPUT_BYTES_MAX = 64 << 20,
    PIPE_BYTES = 16 << 10,
};

/* Set the termination signals. */
static void set_ends(sigset_t *set)
{
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGHUP);
    (void)sigaddset(set, SIGINT);
    (void)sigaddset(set, SIGTERM);
}

static void set_checkpoint(sigset_t *set)
{
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGUSR1);
}

void proc_pass_signals(void)
{
    sigset_t blocked;
    set_ends(&blocked);
    (void)sigaddset(&blocked, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, &blocked, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
}

bool proc_is_ending(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 && (sigismember(&pending, SIGHUP) == 1 ||
                                         sigismember(&pending, SIGINT) == 1 ||
                                         sigismember(&pending, SIGTERM) == 1);
}

bool proc_lock(int fd, int how)
{
    sigset_t ends;
    sigset_t before;
    set_ends(&ends);
    (void)sigprocmask(SIG_UNBLOCK, &ends, &before);
    int result;
    do {
        result = flock(fd, how);
    } while (result != 0 && errno == EINTR);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return result == 0;
}

/* Pipes to and from the program; -1: none. */
struct pipes {
    int in[2];
    int out[2];
    int err[2];
};

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

static void close_pipes(struct pipes *pipes)
{
    for (int ix = 0; ix < 2; ix++) {
        close_fd(&pipes->in[ix]);
        close_fd(&pipes->out[ix]);
        close_fd(&pipes->err[ix]);
    }
}

static enum err
make_pipes(const struct proc *proc, struct pipes *pipes, struct diag *diag)
{
    *pipes = (struct pipes){{-1, -1}, {-1, -1}, {-1, -1}};
    if ((proc->input != NULL && pipe2(pipes->in, O_CLOEXEC) != 0) ||
        (proc->output != NULL && pipe2(pipes->out, O_CLOEXEC) != 0) ||
        (proc->errors != NULL && pipe2(pipes->err, O_CLOEXEC) != 0)) {
        int error = errno;
        close_pipes(pipes);
        return diag_set(diag, ERR_IO, "create a pipe: %s", strerror(error));
    }
    return ERR_OK;
}

/* Add the actions for its descriptors; return 0 or an errno. */
static int add_actions(posix_spawn_file_actions_t *actions,
                       const struct proc *proc,
                       const struct pipes *pipes)
{
    int error = posix_spawn_file_actions_addchdir_np(actions, proc->folder);
    if (error == 0) {
        error = proc->input != NULL
                    ? posix_spawn_file_actions_adddup2(actions, pipes->in[0], 0)
                    : posix_spawn_file_actions_addopen(actions,
                                                       0,
                                                       "/dev/null",
                                                       O_RDONLY,
                                                       0);
    }
    if (error == 0 && proc->output != NULL) {
        error = posix_spawn_file_actions_adddup2(actions, pipes->out[1], 1);
    }
    if (error == 0 && proc->errors != NULL) {
        error = posix_spawn_file_actions_adddup2(actions, pipes->err[1], 2);
    }
    return error;
}

/* Start the program; return 0 or an errno. */
static int
spawn(const struct proc *proc, const struct pipes *pipes, pid_t *pid_out)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    if (posix_spawn_file_actions_init(&actions) != 0) {
        return ENOMEM;
    }
    if (posix_spawnattr_init(&attr) != 0) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return ENOMEM;
    }
    sigset_t all;
    sigset_t none;
    (void)sigfillset(&all);
    (void)sigemptyset(&none);
    (void)posix_spawnattr_setsigdefault(&attr, &all);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setflags(&attr,
                                   POSIX_SPAWN_SETSIGDEF |
                                       POSIX_SPAWN_SETSIGMASK);
    int error = add_actions(&actions, proc, pipes);
    if (error == 0) {
        /* posix_spawn() does not change them. */
        char *const *argv;
        char *const *env;
        memcpy(&argv, &proc->argv, sizeof(argv));
        memcpy(&env, &proc->env, sizeof(env));
        error = posix_spawnp(pid_out, argv[0], &actions, &attr, argv, env);
    }
    (void)posix_spawnattr_destroy(&attr);
    (void)posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Write more of the input; close the pipe after the last byte. */
static void feed(struct pipes *pipes, const char **input)
{
    size_t len = strlen(*input);
    ssize_t count = len > 0 ? write(pipes->in[1], *input, len) : 0;
    if (count > 0) {
        *input += count;
    }
    bool over = count < 0 && errno != EINTR && errno != EAGAIN;
    if (over || **input == '\0') {
        close_fd(&pipes->in[1]);
    }
}

/* Read some output; close the pipe at end of file. False: too much output. */
static bool take(int *fd, struct strbuf *output)
{
    char bytes[PIPE_BYTES];
    ssize_t count = read(*fd, bytes, sizeof(bytes));
    if (count > 0) {
        strbuf_add(output, bytes, (size_t)count);
    } else if (count == 0 || errno != EINTR) {
        close_fd(fd);
    }
    return output->len <= OUTPUT_BYTES_MAX;
}

/* Write the input and read the output. False: too much output. */
static bool talk(const struct proc *proc, struct pipes *pipes)
{
    const char *input = proc->input;
    if (pipes->in[1] >= 0) {
        (void)fcntl(pipes->in[1], F_SETFL, O_NONBLOCK);
    }
    while (pipes->in[1] >= 0 || pipes->out[0] >= 0 || pipes->err[0] >= 0) {
        struct pollfd fds[] = {
            {.fd = pipes->in[1], .events = POLLOUT},
            {.fd = pipes->out[0], .events = POLLIN},
            {.fd = pipes->err[0], .events = POLLIN},
        };
        if (poll(fds, ARRAY_COUNT(fds), -1) < 0) {
            continue; /* a signal */
        }
        if (fds[0].revents != 0) {
            feed(pipes, &input);
        }
        if ((fds[1].revents != 0 && !take(&pipes->out[0], proc->output)) ||
            (fds[2].revents != 0 && !take(&pipes->err[0], proc->errors))) {
            return false;
        }
    }
    return true;
}

/* Discard checkpoint signals that arrived before the session started. */
static void drop_checkpoint(void)
{
    sigset_t set;
    set_checkpoint(&set);
    static const struct timespec now = {0};
    (void)sigtimedwait(&set, NULL, &now);
}

/* Forward checkpoint signals until the session exits. If no descriptors are
 * available, it runs without them, and its checkpoint is only in the file. */
static void pass_on(pid_t pid)
{
    sigset_t set;
    set_checkpoint(&set);
    struct pollfd fds[] = {
        {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN},
        {.fd = signalfd(-1, &set, SFD_CLOEXEC), .events = POLLIN},
    };
    bool over = fds[0].fd < 0;
    while (!over) {
        if (poll(fds, ARRAY_COUNT(fds), -1) < 0) {
            continue;
        }
        struct signalfd_siginfo info;
        over = fds[0].revents != 0;
        if (fds[1].revents != 0 &&
            read(fds[1].fd, &info, sizeof(info)) == (ssize_t)sizeof(info) &&
            !over) {
            (void)checkpoint_ask(pid);
        }
    }
    close_fd(&fds[0].fd);
    close_fd(&fds[1].fd);
}

/* Wait for the program to exit. */
static void reap(pid_t pid, struct proc_end *end_out)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    end_out->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    end_out->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

enum err
proc_run(const struct proc *proc, struct proc_end *end_out, struct diag *diag)
{
    *end_out = (struct proc_end){.code = -1};
    struct pipes pipes;
    enum err err = make_pipes(proc, &pipes, diag);
    if (err != ERR_OK) {
        return err;
    }
    pid_t pid = 0;
    if (proc->is_session) {
        drop_checkpoint();
    }
    int error = spawn(proc, &pipes, &pid);
    close_fd(&pipes.in[0]);
    close_fd(&pipes.out[1]);
    close_fd(&pipes.err[1]);
    if (error != 0) {
        close_pipes(&pipes);
        return diag_set(diag,
                        error == ENOENT ? ERR_NOT_FOUND : ERR_UNAVAILABLE,
                        "run %s in %s: %s",
                        proc->argv[0],
                        proc->folder,
                        strerror(error));
    }
    bool fits = talk(proc, &pipes);
    close_pipes(&pipes);
    if (!fits) {
        (void)kill(pid, SIGKILL);
    }
    if (proc->is_session) {
        pass_on(pid);
    }
    reap(pid, end_out);
    return fits ? ERR_OK
                : diag_set(diag,
                           ERR_LIMIT,
                           "%s printed more than %d bytes",
                           proc->argv[0],
                           OUTPUT_BYTES_MAX);
}
