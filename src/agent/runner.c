/* SPDX-License-Identifier: MIT */
/*
 * Signals are always blocked and read from a signalfd while a program runs, so
 * a signal that arrives before the program has started is not lost: it stops
 * the program at once. The program gets an empty mask and default handlers. A
 * process that asks for a checkpoint checks that SIGUSR1 would not kill its
 * target; a blocked signal counts as handled.
 */
#include "agent/runner.h"

#include "base/clock.h"
#include "base/mem.h"
#include "exec/proctree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LINE_BYTES_MAX = 16 << 20,
    EVENTS_BYTES_MAX = 64 << 20,
    DRAIN_MS = 2000,     /* for output that a descendant keeps open */
    LOOK_MS = 10000,     /* between checks of the checkpoint file */
    FINISH_MS = 30000,   /* to exit by itself after it has finished */
    REAP_MS = 1000,      /* from SIGTERM to SIGKILL for descendants */
    REAP_MS_MAX = 30000, /* then give up on an unkillable descendant */
    OUTPUT_BYTES = 65536,
};

/* Set the signals that the signalfd reads. */
static void set_signals(sigset_t *set)
{
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGCHLD);
    (void)sigaddset(set, SIGHUP);
    (void)sigaddset(set, SIGINT);
    (void)sigaddset(set, SIGTERM);
    (void)sigaddset(set, SIGUSR1);
}

enum err runner_prepare(struct diag *diag)
{
    sigset_t set;
    set_signals(&set);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0 ||
        signal(SIGCHLD, SIG_DFL) == SIG_ERR || /* else no exit status */
        signal(SIGPIPE, SIG_IGN) == SIG_ERR) {
        return diag_set(diag, ERR_IO, "signals: %s", strerror(errno));
    }
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
        return diag_set(diag, ERR_IO, "prctl: %s", strerror(errno));
    }
    return ERR_OK;
}

static int64_t now_ms(void)
{
    return clock_boot_ns() / 1000000;
}

/* One of the program's two output streams. */
struct stream {
    int fd; /* -1: at end of file */
    bool error;
    bool skipping; /* discard the rest of an overlong line */
    struct strbuf line;
};

struct run {
    const struct runner *runner;
    pid_t pid;
    bool exited;
    int status;
    int signals; /* signalfd */
    enum runner_stop stop;
    int64_t kill_at_ms;  /* 0: do not kill */
    int64_t stop_at_ms;  /* it has finished: stop it then; 0: it has not */
    int64_t drain_at_ms; /* 0: it runs; else when to give up on its output */
    int events;          /* file descriptor */
    size_t events_bytes;
    struct stream streams[2];
};

/* Store the program's output, up to a size limit. */
static void keep_raw(struct run *run, const char *bytes, size_t len)
{
    while (run->events >= 0 && len > 0 &&
           run->events_bytes < EVENTS_BYTES_MAX) {
        ssize_t written = write(run->events, bytes, len);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            (void)close(run->events); /* a full disk only loses this copy */
            run->events = -1;
            return;
        }
        run->events_bytes += (size_t)written;
        bytes += written;
        len -= (size_t)written;
    }
}

static void end_line(struct run *run, struct stream *stream)
{
    if (!stream->skipping && stream->line.len > 0) {
        run->runner->line(run->runner->ctx,
                          strbuf_text(&stream->line),
                          stream->line.len,
                          stream->error);
    }
    stream->skipping = false;
    strbuf_clear(&stream->line);
}

/* Split a piece into lines. */
static void
take_piece(struct run *run, struct stream *stream, const char *at, size_t len)
{
    while (len > 0) {
        const char *newline = memchr(at, '\n', len);
        size_t part = newline != NULL ? (size_t)(newline - at) : len;
        if (!stream->skipping && stream->line.len + part > LINE_BYTES_MAX) {
            stream->skipping = true;
            strbuf_release(&stream->line);
            run->runner->line(run->runner->ctx, NULL, 0, stream->error);
        } else if (!stream->skipping) {
            strbuf_add(&stream->line, at, part);
        }
        if (newline != NULL) {
            end_line(run, stream);
            part++;
        }
        at += part;
        len -= part;
    }
}

static void read_stream(struct run *run, struct stream *stream)
{
    char piece[65536];
    ssize_t len = read(stream->fd, piece, sizeof(piece));
    if (len > 0) {
        if (!stream->error) {
            keep_raw(run, piece, (size_t)len);
        }
        take_piece(run, stream, piece, (size_t)len);
    } else if (len == 0 || (errno != EINTR && errno != EAGAIN)) {
        end_line(run, stream);
        (void)close(stream->fd);
        stream->fd = -1;
    }
}

/* Ask the program to exit; in a sandbox, all processes below us. */
static void ask_to_exit(const struct run *run)
{
    (void)kill(-run->pid, SIGTERM);
    if (!run->runner->confined) {
        return;
    }
    struct proctree tree = {0};
    proctree_add_all(&tree);
    for (uint32_t ix = 0; ix < tree.count; ix++) {
        int fd;
        if (tree.items[ix].stat[RECORD_STAT_GROUP] != (uint64_t)run->pid &&
            proctree_open(&tree.items[ix], &fd) == 0) {
            (void)syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0U);
            (void)close(fd);
        }
    }
    proctree_release(&tree);
}

/* Stop the program: SIGTERM to its group now, SIGKILL later. A program that has
 * already exited by itself does not count as stopped. */
static void stop_program(struct run *run, enum runner_stop why)
{
    if (run->exited) {
        return;
    }
    if (run->stop != RUNNER_TERMINATED) {
        run->stop = why;
    }
    if (run->kill_at_ms == 0) {
        ask_to_exit(run);
        run->kill_at_ms = now_ms() + RUNNER_GRACE_MS;
    }
}

/* Reap the program for its exit status, and adopted orphans. */
static void reap(struct run *run)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == run->pid) {
            run->exited = true;
            run->status = status;
            run->drain_at_ms = now_ms() + DRAIN_MS;
        }
    }
}

static void take_signals(struct run *run)
{
    struct signalfd_siginfo info;
    while (read(run->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGUSR1) {
            stop_program(run, RUNNER_CHECKPOINT);
        } else if (info.ssi_signo != SIGCHLD) {
            stop_program(run, RUNNER_TERMINATED);
        }
    }
}

static bool is_wanted(const struct run *run)
{
    return run->runner->checkpoint != NULL && run->stop == RUNNER_RAN &&
           access(run->runner->checkpoint, F_OK) == 0;
}

bool runner_has_message(const struct runner *runner)
{
    struct stat stat;
    return runner->messages != NULL && lstat(runner->messages, &stat) == 0 &&
           S_ISREG(stat.st_mode) &&
           (size_t)stat.st_size > runner->messages_bytes;
}

/* Stop a program that has finished its session and does not exit. */
static void check_finish(struct run *run)
{
    const char *file = run->runner->finish;
    if (run->stop_at_ms == 0 && file != NULL && access(file, F_OK) == 0) {
        run->stop_at_ms = now_ms() + FINISH_MS;
    }
    if (run->stop_at_ms > 0 && run->stop == RUNNER_RAN &&
        now_ms() >= run->stop_at_ms) {
        stop_program(run, RUNNER_FINISHED);
    }
}

static int timeout_ms(const struct run *run)
{
    int64_t now = now_ms();
    int64_t until = now + LOOK_MS;
    if (run->kill_at_ms > 0 && !run->exited && run->kill_at_ms < until) {
        until = run->kill_at_ms;
    }
    if (run->stop_at_ms > 0 && run->stop == RUNNER_RAN &&
        run->stop_at_ms < until) {
        until = run->stop_at_ms;
    }
    if (run->drain_at_ms > 0 && run->drain_at_ms < until) {
        until = run->drain_at_ms;
    }
    return until > now ? (int)(until - now) : 0;
}

static bool is_over(const struct run *run)
{
    bool drained = run->streams[0].fd < 0 && run->streams[1].fd < 0;
    return run->exited && (drained || now_ms() >= run->drain_at_ms);
}

/* Loop until the program has exited and its output is read. */
static void watch(struct run *run)
{
    while (!is_over(run)) {
        struct pollfd fds[] = {
            {.fd = run->signals, .events = POLLIN},
            {.fd = run->streams[0].fd, .events = POLLIN},
            {.fd = run->streams[1].fd, .events = POLLIN},
        };
        int ready = poll(fds, ARRAY_COUNT(fds), timeout_ms(run));
        if (ready < 0 && errno != EINTR) {
            stop_program(run, RUNNER_TERMINATED); /* should not happen */
        }
        for (size_t ix = 0; ready > 0 && ix < ARRAY_COUNT(run->streams); ix++) {
            if (fds[ix + 1].revents != 0) {
                read_stream(run, &run->streams[ix]);
            }
        }
        reap(run);
        take_signals(run);
        if (is_wanted(run)) {
            stop_program(run, RUNNER_CHECKPOINT);
        }
        if (run->stop == RUNNER_RAN && runner_has_message(run->runner)) {
            stop_program(run, RUNNER_MESSAGE);
        }
        check_finish(run);
        if (!run->exited && run->kill_at_ms > 0 &&
            now_ms() >= run->kill_at_ms) {
            (void)kill(-run->pid, SIGKILL);
            run->kill_at_ms = now_ms() + RUNNER_GRACE_MS;
        }
    }
}

/* Return whether the process of a directory in /proc is a child of ours. */
static bool is_child(const char *name)
{
    char path[64];
    char text[512];
    int len = snprintf(path, sizeof(path), "/proc/%.20s/stat", name);
    int fd = len > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) {
        return false;
    }
    ssize_t got = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    text[got > 0 ? got : 0] = '\0';
    const char *at = strrchr(text, ')'); /* a name may contain anything */
    return at != NULL && strlen(at) > 4 &&
           strtol(at + 4, NULL, 10) == (long)getpid();
}

static void signal_children(int number)
{
    DIR *proc = opendir("/proc");
    if (proc == NULL) {
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(proc)) != NULL) {
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            is_child(entry->d_name)) {
            (void)kill((pid_t)strtol(entry->d_name, NULL, 10), number);
        }
    }
    (void)closedir(proc);
}

/*
 * Stop the descendants that the program has left. Its orphans are our children,
 * and their children become ours when they die, so the loop terminates. A child
 * that we have not waited for keeps its pid, so no other process is ever
 * signalled.
 */
static void end_children(void)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    int64_t start_ms = now_ms();
    signal_children(SIGTERM);
    while (now_ms() < start_ms + REAP_MS_MAX) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid < 0 && errno == ECHILD) {
            return;
        }
        if (pid > 0) {
            continue;
        }
        if (now_ms() >= start_ms + REAP_MS) {
            signal_children(SIGKILL);
        }
        (void)nanosleep(&pause, NULL);
    }
}

/* Start the program with these as its descriptors 0, 1 and 2; return its pid,
 * or minus an errno. */
static pid_t
spawn(const char *const *argv, const char *const *env, const int fds[3])
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t all;
    sigset_t none;
    pid_t pid = 0;
    short flags =
        POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) {
        return -error;
    }
    error = posix_spawnattr_init(&attributes);
    if (error != 0) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return -error;
    }
    (void)sigfillset(&all);
    (void)sigemptyset(&none);
    (void)posix_spawnattr_setsigdefault(&attributes, &all);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setflags(&attributes, flags);
    for (int ix = 0; ix < 3 && error == 0; ix++) {
        error = posix_spawn_file_actions_adddup2(&actions, fds[ix], ix);
    }
    if (error == 0) {
        /* posix_spawn() does not change them. */
        char *const *words;
        char *const *variables;
        memcpy(&words, &argv, sizeof(words));
        memcpy(&variables, &env, sizeof(variables));
        error = posix_spawnp(&pid,
                             argv[0],
                             &actions,
                             &attributes,
                             words,
                             variables);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return error == 0 ? pid : -error;
}

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

/* Open the descriptors of both sides. */
static enum err
open_fds(struct run *run, int fds[3], sigset_t *set, struct diag *diag)
{
    const struct runner *runner = run->runner;
    fds[0] = open(runner->input, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fds[0] < 0) {
        return diag_set(diag, ERR_IO, "%s: %s", runner->input, strerror(errno));
    }
    run->signals = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (run->signals < 0) {
        return diag_set(diag, ERR_IO, "signalfd: %s", strerror(errno));
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(run->streams); ix++) {
        int pipe_fds[2];
        if (pipe2(pipe_fds, O_CLOEXEC) != 0) {
            return diag_set(diag, ERR_IO, "pipe: %s", strerror(errno));
        }
        run->streams[ix].fd = pipe_fds[0];
        fds[1 + ix] = pipe_fds[1];
    }
    run->events = open(runner->events,
                       O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
                       0600);
    return ERR_OK;
}

static enum err start(struct run *run, struct diag *diag)
{
    const char *const *argv = run->runner->argv;
    int fds[3] = {-1, -1, -1};
    sigset_t set;
    set_signals(&set);
    enum err err = open_fds(run, fds, &set, diag);
    if (err == ERR_OK) {
        run->pid = spawn(argv, run->runner->env, fds);
        int error = -run->pid;
        if (run->pid < 0) {
            bool missing = error == ENOENT || error == EACCES;
            err = diag_set(diag,
                           missing ? ERR_NOT_FOUND : ERR_IO,
                           "%s: %s",
                           argv[0],
                           strerror(error));
        }
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(fds); ix++) {
        close_fd(&fds[ix]);
    }
    return err;
}

enum err runner_run(const struct runner *runner,
                    struct runner_end *end_out,
                    struct diag *diag)
{
    struct run run = {
        .runner = runner,
        .signals = -1,
        .events = -1,
        .streams = {{.fd = -1}, {.fd = -1, .error = true}},
    };
    enum err err = start(&run, diag);
    if (err == ERR_OK) {
        watch(&run);
        end_children();
        for (size_t ix = 0; ix < ARRAY_COUNT(run.streams); ix++) {
            end_line(&run, &run.streams[ix]);
        }
        bool exited = WIFEXITED(run.status);
        *end_out = (struct runner_end){
            .code = exited ? WEXITSTATUS(run.status) : -1,
            .signal = exited ? 0 : WTERMSIG(run.status),
            .stop = run.stop,
        };
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(run.streams); ix++) {
        close_fd(&run.streams[ix].fd);
        strbuf_release(&run.streams[ix].line);
    }
    close_fd(&run.signals);
    close_fd(&run.events);
    return err;
}

int runner_output(struct strbuf *out, const char *const *argv)
{
    char piece[4096];
    int pipe_fds[2];
    int status = 0;
    ssize_t len;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || pipe2(pipe_fds, O_CLOEXEC) != 0) {
        close_fd(&null);
        return -1;
    }
    pid_t pid = spawn(argv,
                      (const char *const *)environ,
                      (const int[]){null, pipe_fds[1], null});
    (void)close(pipe_fds[1]);
    (void)close(null);
    while (pid > 0 && ((len = read(pipe_fds[0], piece, sizeof(piece))) > 0 ||
                       (len < 0 && errno == EINTR))) {
        if (len > 0 && out->len < OUTPUT_BYTES) {
            strbuf_add(out, piece, (size_t)len);
        }
    }
    (void)close(pipe_fds[0]);
    if (pid <= 0) {
        return -1;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
