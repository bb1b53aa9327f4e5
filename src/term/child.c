/* SPDX-License-Identifier: MIT */
#include "term/child.h"

#include "base/invariant.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS_MAX = 16, PIECE_BYTES = 64 << 10, SIGNALLED = 128 };

extern char **environ;

/* Redirect stdin to /dev/null, stdout to the pipe, stderr to either. */
static int set_files(posix_spawn_file_actions_t *files, int out, bool errors)
{
    int bad = posix_spawn_file_actions_addopen(files,
                                               STDIN_FILENO,
                                               "/dev/null",
                                               O_RDONLY,
                                               0);
    if (bad == 0) {
        bad = posix_spawn_file_actions_adddup2(files, out, STDOUT_FILENO);
    }
    if (bad == 0 && errors) {
        bad = posix_spawn_file_actions_adddup2(files, out, STDERR_FILENO);
    } else if (bad == 0) {
        bad = posix_spawn_file_actions_addopen(files,
                                               STDERR_FILENO,
                                               "/dev/null",
                                               O_WRONLY,
                                               0);
    }
    return bad;
}

/* Create a process group, so that Ctrl-C reaches only this process, and reset
 * the signals. */
static int set_signals(posix_spawnattr_t *attributes)
{
    sigset_t none;
    sigset_t all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    int bad = posix_spawnattr_setflags(
        attributes,
        POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (bad == 0) {
        bad = posix_spawnattr_setpgroup(attributes, 0);
    }
    if (bad == 0) {
        bad = posix_spawnattr_setsigmask(attributes, &none);
    }
    return bad != 0 ? bad : posix_spawnattr_setsigdefault(attributes, &all);
}

/* Return 0 or an error number. */
static int spawn(pid_t *pid_out, const char *const *words, int out, bool errors)
{
    char *argv[WORDS_MAX + 2] = {(char[]){"sluice"}};
    size_t count = 0;
    for (; words[count] != NULL; count++) {
        INVARIANT(count < WORDS_MAX);
        /* Copy the words: an argv is not const. */
        argv[count + 1] = mem_strndup(words[count], strlen(words[count]));
    }
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int bad = posix_spawn_file_actions_init(&files);
    INVARIANT(bad == 0);
    bad = posix_spawnattr_init(&attributes);
    INVARIANT(bad == 0);
    bad = set_files(&files, out, errors);
    if (bad == 0) {
        bad = set_signals(&attributes);
    }
    if (bad == 0) {
        bad = posix_spawn(pid_out,
                          "/proc/self/exe",
                          &files,
                          &attributes,
                          argv,
                          environ);
    }
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attributes);
    for (size_t ix = 0; ix < count; ix++) {
        mem_free(argv[ix + 1]);
    }
    return bad;
}

enum err child_start(struct child *child,
                     const char *const *words,
                     bool errors,
                     struct diag *diag)
{
    INVARIANT(child->process == 0);
    int ends[2];
    *child = (struct child){.fd = -1};
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return diag_set(diag, ERR_IO, "pipe: %s", strerror(errno));
    }
    int bad = spawn(&child->process, words, ends[1], errors);
    (void)close(ends[1]);
    if (bad == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0) {
        child->fd = ends[0];
        return ERR_OK;
    }
    if (bad == 0) {
        bad = errno;
        child_drop(child, true);
    }
    (void)close(ends[0]);
    *child = (struct child){.fd = -1};
    return diag_set(diag,
                    ERR_IO,
                    "cannot start sluice %s: %s",
                    words[0],
                    strerror(bad));
}

bool child_read(struct child *child, struct strbuf *out)
{
    char bytes[PIECE_BYTES];
    if (child->fd < 0) {
        return false;
    }
    ssize_t got = read(child->fd, bytes, sizeof(bytes));
    if (got > 0) {
        strbuf_add(out, bytes, (size_t)got);
        return true;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return true;
    }
    (void)close(child->fd);
    child->fd = -1;
    return false;
}

int child_wait(struct child *child)
{
    int status = 0;
    pid_t got = -1;
    if (child->fd >= 0) {
        (void)close(child->fd);
    }
    do {
        got = waitpid(child->process, &status, 0);
    } while (got < 0 && errno == EINTR);
    *child = (struct child){.fd = -1};
    if (got < 0) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status)
                             : SIGNALLED + WTERMSIG(status);
}

void child_drop(struct child *child, bool kill_it)
{
    if (child->process == 0) {
        return;
    }
    if (kill_it) {
        (void)kill(child->process, SIGKILL);
        (void)child_wait(child);
        return;
    }
    if (child->fd >= 0) {
        (void)close(child->fd);
    }
    *child = (struct child){.fd = -1};
}
