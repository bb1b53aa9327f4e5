/* SPDX-License-Identifier: MIT */
#include "cli/partner.h"

#include "base/clock.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Between two starts: one that dies at once must not be a busy loop. */
#define PAUSE_NS (2 * SECOND_NS)

enum { WAIT_STEP_US = 5000 };

void partner_add(struct partner *partner, const char *word)
{
    int count = 0;
    while (partner->words[count] != NULL) {
        count++;
    }
    INVARIANT(count + 1 < PARTNER_WORDS_MAX);
    partner->words[count] = word;
}

/* Return 0 or an error number. */
static int spawn(struct partner *partner, int in)
{
    char *argv[PARTNER_WORDS_MAX + 1] = {(char[]){"sluice"}};
    int count = 1;
    for (int ix = 0; partner->words[ix] != NULL; ix++) {
        argv[count++] = mem_strdup(partner->words[ix]); /* argv is not const */
    }
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigset_t all;
    int bad = posix_spawn_file_actions_init(&files);
    INVARIANT(bad == 0);
    bad = posix_spawnattr_init(&attributes);
    INVARIANT(bad == 0);
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    bad = posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
    if (bad == 0) {
        bad = posix_spawnattr_setsigmask(&attributes, &none);
    }
    if (bad == 0) {
        bad = posix_spawnattr_setsigdefault(&attributes, &all);
    }
    if (bad == 0) {
        bad = posix_spawnattr_setflags(&attributes,
                                       (short)(POSIX_SPAWN_SETSIGMASK |
                                               POSIX_SPAWN_SETSIGDEF |
                                               POSIX_SPAWN_SETPGROUP));
    }
    if (bad == 0) {
        bad = posix_spawn(&partner->process,
                          "/proc/self/exe",
                          &files,
                          &attributes,
                          argv,
                          environ);
    }
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attributes);
    while (count > 1) {
        mem_free(argv[--count]);
    }
    return bad;
}

static void start(struct partner *partner)
{
    int ends[2];
    partner->begun_ns = clock_boot_ns();
    int bad = pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno;
    if (bad == 0) {
        bad = spawn(partner, ends[0]);
        (void)close(ends[0]);
        if (bad == 0) {
            partner->fd = ends[1];
        } else {
            (void)close(ends[1]);
            partner->process = 0;
        }
    }
    if (bad != 0) {
        (void)fprintf(stderr,
                      "sluice: cannot start 'sluice %s': %s; trying again\n",
                      partner->words[0],
                      strerror(bad));
    }
}

/* Whether it has exited. */
static bool is_over(struct partner *partner)
{
    int status;
    pid_t pid = waitpid(partner->process, &status, WNOHANG);
    if (pid == 0 || (pid < 0 && errno == EINTR)) {
        return false;
    }
    partner->process = 0;
    return true;
}

static void close_pipe(struct partner *partner)
{
    if (partner->fd >= 0) {
        (void)close(partner->fd);
        partner->fd = -1;
    }
}

void partner_tend(struct partner *partner)
{
    if (partner->words[0] == NULL) {
        return;
    }
    if (partner->process != 0 && !is_over(partner)) {
        return;
    }
    close_pipe(partner);
    if (partner->begun_ns == 0 ||
        clock_boot_ns() - partner->begun_ns >= PAUSE_NS) {
        start(partner);
    }
}

void partner_end(struct partner *partner, int wait_ms)
{
    close_pipe(partner);
    int64_t until_ns = clock_boot_ns() + (int64_t)wait_ms * MS_NS;
    while (partner->process != 0 && !is_over(partner) &&
           clock_boot_ns() < until_ns) {
        (void)usleep(WAIT_STEP_US);
    }
    partner->process = 0;
}
