/* SPDX-License-Identifier: MIT */
/*
 * How many no-op sessions are started and ended in a second?
 *
 *   bench_spawn shim|bare COUNT IN_FLIGHT FOLDER
 *
 * `shim` goes through exec.h: a spawn server, a shim for each, its directory
 * below FOLDER with all its files. `bare` is a loop of vfork() and waitpid()
 * that keeps no record of anything, as the limit of the machine.
 */
#include "base/diag.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "exec/exec.h"

#include <poll.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct bench {
    struct exec *exec;
    const char *folder;
    uint64_t count;
    uint64_t in_flight;
    uint64_t started;
    uint64_t ended;
};

static int64_t now_ns(void)
{
    struct timespec now;
    INVARIANT(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

/* Start as many as may be in flight. */
static void start(struct bench *bench)
{
    static const char *const argv[] = {"/bin/true"};
    while (bench->started < bench->count &&
           bench->started - bench->ended < bench->in_flight) {
        char dir[512];
        (void)snprintf(dir,
                       sizeof(dir),
                       "%s/t%llu/1",
                       bench->folder,
                       (unsigned long long)bench->started);
        struct exec_request request = {
            .id = bench->started++,
            .dir = dir,
            .folder = "/",
            .argv = argv,
            .argc = 1,
            .timeout_ns = INT64_C(60000000000),
            .idle_ns = INT64_C(60000000000),
            .checkpoint_ns = EXEC_NEVER,
            .grace_ns = INT64_C(1000000000),
            .log_bytes_max = 1 << 20,
        };
        INVARIANT(exec_start(bench->exec, &request, NULL) == ERR_OK);
    }
}

static void on_report(void *ctx, const struct exec_report *report)
{
    struct bench *bench = ctx;
    INVARIANT(report->type != EXEC_FAILED);
    INVARIANT(report->error == 0);
    bench->ended += report->type == EXEC_ENDED ? 1 : 0;
}

static void run_shims(struct bench *bench)
{
    struct diag diag = {0};
    INVARIANT(exec_open(&bench->exec, NULL, &diag) == ERR_OK);
    struct pollfd poll_fd = {.fd = exec_fd(bench->exec)};
    start(bench);
    while (bench->ended < bench->count) {
        poll_fd.events = POLLIN;
        if (exec_wants_write(bench->exec)) {
            poll_fd.events |= POLLOUT;
        }
        INVARIANT(poll(&poll_fd, 1, -1) == 1);
        INVARIANT(exec_read(bench->exec, on_report, bench, &diag) == ERR_OK);
        start(bench);
    }
    exec_close(bench->exec);
}

static void run_bare(struct bench *bench)
{
    char name[] = "/bin/true";
    char *argv[] = {name, NULL};
    while (bench->ended < bench->count) {
        while (bench->started < bench->count &&
               bench->started - bench->ended < bench->in_flight) {
            pid_t pid;
            INVARIANT(posix_spawn(&pid, name, NULL, NULL, argv, environ) == 0);
            bench->started++;
        }
        INVARIANT(waitpid(-1, NULL, 0) > 0);
        bench->ended++;
    }
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        (void)fprintf(stderr,
                      "usage: bench_spawn shim|bare COUNT IN_FLIGHT FOLDER\n");
        return 2;
    }
    struct bench bench = {
        .folder = argv[4],
        .count = strtoull(argv[2], NULL, 10),
        .in_flight = strtoull(argv[3], NULL, 10),
    };
    INVARIANT(bench.in_flight > 0);
    int64_t begin_ns = now_ns();
    if (strcmp(argv[1], "shim") == 0) {
        run_shims(&bench);
    } else {
        run_bare(&bench);
    }
    double seconds = (double)(now_ns() - begin_ns) / 1e9;
    (void)printf("%s: %llu sessions, %.0f per second\n",
                 argv[1],
                 (unsigned long long)bench.count,
                 (double)bench.count / seconds);
    return 0;
}
