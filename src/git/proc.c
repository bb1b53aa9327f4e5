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

#include "base/mem.h"
#include "exec/checkpoint.h"
#include "exec/proctree.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    OUTPUT_BYTES_MAX = 64 << 20,
    PIPE_BYTES = 16 << 10,
    LOOK_MS = 100,      /* between two calls of is_over */
    GRACE_MS = 5000,    /* between SIGTERM and SIGKILL */
    GIVE_UP_MS = 60000, /* a process that SIGKILL does not end */
    PAUSE_MS = 10,
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
    int input = proc->input != NULL ? pipes->in[0] : proc->input_fd;
    int output = proc->output != NULL ? pipes->out[1] : proc->output_fd;
    if (error == 0) {
        error = input > 0 ? posix_spawn_file_actions_adddup2(actions, input, 0)
                          : posix_spawn_file_actions_addopen(actions,
                                                             0,
                                                             "/dev/null",
                                                             O_RDONLY,
                                                             0);
    }
    if (error == 0 && output > 0) {
        error = posix_spawn_file_actions_adddup2(actions, output, 1);
    }
    if (error == 0 && proc->errors != NULL) {
        error = posix_spawn_file_actions_adddup2(actions, pipes->err[1], 2);
    }
    return error;
}

/* Return a new list: the prefix, "--" and the arguments. */
static const char **join_words(const char *const *prefix,
                               const char *const *argv)
{
    size_t before = 0;
    size_t count = 0;
    while (prefix[before] != NULL) {
        before++;
    }
    while (argv[count] != NULL) {
        count++;
    }
    const char **words = mem_zalloc(before + count + 2, sizeof(words[0]));
    memcpy(words, prefix, before * sizeof(words[0]));
    words[before] = "--";
    memcpy(words + before + 1, argv, count * sizeof(words[0]));
    return words;
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
        const char **joined =
            proc->prefix != NULL ? join_words(proc->prefix, proc->argv) : NULL;
        const char *const *words = joined != NULL ? joined : proc->argv;
        char *const *argv;
        char *const *env;
        memcpy(&argv, &words, sizeof(argv));
        memcpy(&env, &proc->env, sizeof(env));
        error = posix_spawnp(pid_out, argv[0], &actions, &attr, argv, env);
        mem_free(joined);
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
static bool take(int *fd, struct strbuf *output, size_t max)
{
    char bytes[PIPE_BYTES];
    ssize_t count = read(*fd, bytes, sizeof(bytes));
    if (count > 0) {
        strbuf_add(output, bytes, (size_t)count);
    } else if (count == 0 || errno != EINTR) {
        close_fd(fd);
    }
    return output->len <= max;
}

/* Write the input and read the output. False: too much output. */
static bool talk(const struct proc *proc, struct pipes *pipes)
{
    const char *input = proc->input;
    const size_t max =
        proc->output_max > 0 ? proc->output_max : OUTPUT_BYTES_MAX;
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
        if ((fds[1].revents != 0 && !take(&pipes->out[0], proc->output, max)) ||
            (fds[2].revents != 0 &&
             !take(&pipes->err[0], proc->errors, OUTPUT_BYTES_MAX))) {
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

/* Signal (0: only count) all processes below this one that have not exited;
 * return their number. */
static uint32_t signal_all(int signal)
{
    struct proctree tree = {0};
    uint32_t count = 0;
    proctree_add_all(&tree);
    for (uint32_t ix = 0; ix < tree.count; ix++) {
        int fd = -1;
        int error = tree.items[ix].stat[RECORD_STAT_STATE] == 'Z'
                        ? ESRCH
                        : proctree_open(&tree.items[ix], &fd);
        if (error == 0) {
            (void)syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0U);
            (void)close(fd);
        } else if (error != ESRCH) {
            (void)kill(tree.items[ix].pid, signal);
        }
        count += error != ESRCH ? 1 : 0;
    }
    proctree_release(&tree);
    return count;
}

/* Wait for the program to exit, but not longer; it is left to be reaped. */
static bool has_exited(pid_t pid, int wait_ms)
{
    siginfo_t info = {0};
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd exits = {.fd = fd, .events = POLLIN};
    (void)poll(&exits, 1, wait_ms); /* without a descriptor, a pause */
    close_fd(&fd);
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid != 0;
}

/* Stop all processes below this one: first by SIGTERM, later by SIGKILL. */
static void stop_all(pid_t pid)
{
    static const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    for (int ms = 0; ms < GIVE_UP_MS; ms += PAUSE_MS) {
        uint32_t left = signal_all(ms == 0          ? SIGTERM
                                   : ms >= GRACE_MS ? SIGKILL
                                                    : 0);
        if (left == 0 && has_exited(pid, 0)) {
            return;
        }
        (void)nanosleep(&pause, NULL);
    }
}

/* Wait until the program exits; return whether it was over and stopped. */
static bool watch(const struct proc *proc, pid_t pid)
{
    bool over = false;
    while (!has_exited(pid, LOOK_MS)) {
        if (!proc_is_ending() && proc->is_over(proc->ctx)) {
            over = true;
            stop_all(pid);
        }
    }
    return over;
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
    if (proc->is_over != NULL) {
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
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
    if (proc->is_over != NULL) {
        end_out->over = watch(proc, pid);
    }
    reap(pid, end_out);
    while (proc->is_over != NULL && waitpid(-1, NULL, WNOHANG) > 0) {
        /* an orphan that came to this process */
    }
    end_out->cut =
        !fits && proc->output_max > 0 && proc->output->len > proc->output_max;
    return fits || end_out->cut ? ERR_OK
                                : diag_set(diag,
                                           ERR_LIMIT,
                                           "%s printed more than %d bytes",
                                           proc->argv[0],
                                           OUTPUT_BYTES_MAX);
}
