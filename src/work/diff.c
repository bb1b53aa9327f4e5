/* SPDX-License-Identifier: MIT */
/*
 * The child leads a process group of its own, so that one signal also reaches
 * the git that it has called. It ends by itself when this process ends.
 */
#include "work/diff.h"

#include "base/clock.h"
#include "base/invariant.h"
#include "exec/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WORDS_MAX = 20,
    PIPE_BYTES = 64 << 10,
    ANSWER_BYTES_MAX = 32 << 20, /* both limits of git/diff.h, escaped */
};

/* Fill in the arguments. */
static void set_words(const char *words[WORDS_MAX],
                      const char *program,
                      const struct diff_wanted *wanted)
{
    const char *const fixed[] = {
        program,
        "diff",
        "--run",
        wanted->run,
        "--owner",
        wanted->owner,
        "--repo",
        wanted->repo,
        wanted->url != NULL ? "--url" : "--path",
        wanted->url != NULL ? wanted->url : wanted->path,
        "--store",
        wanted->home,
        "--task",
        wanted->group,
        "--group",
        wanted->group,
    };
    size_t count = ARRAY_COUNT(fixed);
    INVARIANT(count + 2 < WORDS_MAX);
    memset(words, 0, WORDS_MAX * sizeof(words[0]));
    memcpy(words, fixed, sizeof(fixed));
    if (wanted->shared) {
        words[count++] = "--shared";
    }
    if (wanted->begun) {
        words[count] = "--begun";
    }
}

/* Set how a child begins: with signals as by default, in a new group. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t all;
    sigset_t none;
    (void)sigfillset(&all);
    (void)sigemptyset(&none);
    int error = posix_spawnattr_setsigdefault(attributes, &all);
    if (error == 0) {
        error = posix_spawnattr_setsigmask(attributes, &none);
    }
    if (error == 0) {
        error = posix_spawnattr_setpgroup(attributes, 0);
    }
    return error == 0 ? posix_spawnattr_setflags(attributes,
                                                 POSIX_SPAWN_SETSIGDEF |
                                                     POSIX_SPAWN_SETSIGMASK |
                                                     POSIX_SPAWN_SETPGROUP)
                      : error;
}

/* Start a program that writes to `output`; return 0 or an error number. */
static int spawn(const char *const *words, int output, pid_t *pid_out)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) {
        return error;
    }
    error = posix_spawnattr_init(&attributes);
    if (error != 0) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    error = set_attributes(&attributes);
    if (error == 0) {
        error = posix_spawn_file_actions_addopen(&actions,
                                                 STDIN_FILENO,
                                                 "/dev/null",
                                                 O_RDONLY,
                                                 0);
    }
    if (error == 0) {
        error =
            posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    }
    if (error == 0) {
        char *const *argv; /* posix_spawn() does not change them */
        memcpy(&argv, &words, sizeof(argv));
        error = posix_spawn(pid_out,
                            words[0],
                            &actions,
                            &attributes,
                            argv,
                            environ);
    }
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Read the output until its end. ERR_TIMEOUT, ERR_LIMIT: there is more. */
static enum err read_all(int fd, struct strbuf *out)
{
    char bytes[PIPE_BYTES];
    int64_t until_ns = clock_boot_ns() + INT64_C(1000000) * DIFF_MS_MAX;
    while (out->len <= ANSWER_BYTES_MAX) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int64_t left_ms = (until_ns - clock_boot_ns()) / 1000000;
        int count = left_ms > 0 ? poll(&ready, 1, (int)left_ms) : 0;
        if (count == 0) {
            return ERR_TIMEOUT;
        }
        ssize_t len = count > 0 ? read(fd, bytes, sizeof(bytes)) : -1;
        if (len < 0 && errno != EINTR) {
            return ERR_IO;
        }
        if (len == 0) {
            return ERR_OK;
        }
        if (len > 0) {
            strbuf_add(out, bytes, (size_t)len);
        }
    }
    return ERR_LIMIT;
}

/* Wait for the child; false: it has failed. */
static bool reap(pid_t child)
{
    int status = 0;
    pid_t got;
    do {
        got = waitpid(child, &status, 0);
    } while (got < 0 && errno == EINTR);
    return got == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static enum err
run(const char *const *words, struct strbuf *out, struct diag *diag)
{
    int fds[2];
    pid_t child = 0;
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return diag_set(diag, ERR_UNAVAILABLE, "pipe: %s", strerror(errno));
    }
    int error = spawn(words, fds[1], &child);
    (void)close(fds[1]);
    if (error != 0) {
        (void)close(fds[0]);
        return diag_set(diag,
                        ERR_UNAVAILABLE,
                        "run %s: %s",
                        words[0],
                        strerror(error));
    }
    enum err err = read_all(fds[0], out);
    (void)close(fds[0]);
    if (err != ERR_OK) {
        (void)kill(-child, SIGKILL);
    }
    bool good = reap(child);
    if (err == ERR_TIMEOUT) {
        return diag_set(diag,
                        err,
                        "git took longer than %d seconds",
                        DIFF_MS_MAX / 1000);
    }
    if (err != ERR_OK || !good) {
        err = err != ERR_OK ? err : ERR_UNAVAILABLE;
        return diag_set(diag, err, "%s has failed", words[0]);
    }
    return ERR_OK;
}

enum err diff_ask(struct strbuf *out,
                  const struct diff_wanted *wanted,
                  struct diag *diag)
{
    struct strbuf program = {0};
    enum err err = ERR_UNAVAILABLE;
    if (exec_find_program("sluice-git", "SLUICE_GIT", &program, diag) ==
        ERR_OK) {
        const char *words[WORDS_MAX];
        set_words(words, strbuf_text(&program), wanted);
        err = run(words, out, diag);
    }
    strbuf_release(&program);
    return err;
}
