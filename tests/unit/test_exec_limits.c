/* SPDX-License-Identifier: MIT */
/*
 * What a shim enforces: timeouts, silence, checkpoints and the size of the
 * log. And what happens when a step fails, or the shim or the server is killed
 * at a named point; that needs a build with crash points.
 */
#include "base/macros.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "exec/exec.h"
#include "tests/unit/exec_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* A request in FOLDER/1 of this fixture. */
static struct exec_request *
make(struct exec_made *made, struct exec_fixture *fixture, const char *command)
{
    return exec_fixture_make(fixture, made, "1", command);
}

/* Run it to its end, which may not come earlier than this. The record does not
 * tell: what counts begins a little before begun_ns. */
static struct attempt_exit run_for(struct exec_fixture *fixture,
                                   const struct exec_request *request,
                                   int64_t least_ns)
{
    struct timespec begin;
    struct timespec end;
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &begin), 0);
    struct attempt_exit exit = exec_fixture_run(fixture, request);
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &end), 0);
    int64_t took_ns = (end.tv_sec - begin.tv_sec) * EXEC_FIXTURE_SECOND +
                      end.tv_nsec - begin.tv_nsec;
    assert_true(took_ns >= least_ns);
    return exit;
}

/* Run it to its end, with an order when it has made a file `ready`. */
static struct attempt_found run_and_order(struct exec_fixture *fixture,
                                          const struct exec_request *request,
                                          enum exec_end how)
{
    exec_fixture_start(fixture, request);
    struct exec_report report =
        exec_fixture_wait(fixture, request->id, EXEC_STARTED);
    assert_true(exec_fixture_appears(request->dir, "ready"));
    assert_int_equal(
        exec_signal(report.pid, report.start_ticks, request->id, how, NULL),
        ERR_OK);
    return exec_fixture_end(fixture, request);
}

static void the_hard_timeout_ends_a_busy_session(void **state)
{
    struct exec_made made;
    struct exec_request *request =
        make(&made, *state, "while :; do echo x; done");
    request->timeout_ns = 100 * EXEC_FIXTURE_MS;
    struct attempt_exit exit = run_for(*state, request, request->timeout_ns);
    assert_int_equal(exit.cause, ATTEMPT_TIMEOUT);
    assert_int_equal(exit.signal, SIGTERM);
}

static void prepare_counts_in_the_timeout(void **state)
{
    struct exec_made made;
    struct exec_request *request = make(&made, *state, "echo >>witness");
    request->prepare = "sleep 1000";
    request->timeout_ns = 100 * EXEC_FIXTURE_MS;
    struct attempt_exit exit = exec_fixture_run(*state, request);
    assert_int_equal(exit.cause, ATTEMPT_TIMEOUT);
    struct exec_fixture *fixture = *state;
    assert_null(exec_fixture_slurp(fixture->folder, "witness"));
}

static void the_grace_period_is_for_cleaning_up(void **state)
{
    struct exec_made made;
    struct exec_fixture *fixture = *state;
    struct exec_request *request =
        make(&made,
             fixture,
             "exec 2>/dev/null; trap 'sleep 0.1; echo clean; exit 9' TERM;"
             " touch ${SLUICE_RESULT%/*}/ready; while :; do sleep 0.02; done");
    request->grace_ns = 1000 * EXEC_FIXTURE_SECOND; /* not waited for */
    struct attempt_found found = run_and_order(fixture, request, EXEC_CANCEL);
    assert_int_equal(found.exit.cause, ATTEMPT_CANCELLED);
    assert_int_equal(found.exit.code, 9);
    char *log = exec_fixture_slurp(request->dir, "log");
    assert_string_equal(log, "clean\n");
    mem_free(log);
}

static void silence_ends_a_session(void **state)
{
    struct exec_made made;
    struct exec_request *request = make(&made, *state, "echo one; sleep 1000");
    request->idle_ns = 300 * EXEC_FIXTURE_MS;
    struct attempt_exit exit = run_for(*state, request, request->idle_ns);
    assert_int_equal(exit.cause, ATTEMPT_IDLE);
}

/* A request for a session of tests/support/hostile.c, in FOLDER/1. */
static struct exec_request *make_hostile(struct exec_made *made,
                                         struct exec_fixture *fixture,
                                         const char *kind)
{
    struct exec_request *request = make(made, fixture, NULL);
    const char *program = getenv("SLUICE_HOSTILE");
    assert_non_null(program);
    made->argv[0] = program;
    made->argv[1] = kind;
    made->argv[2] = exec_fixture_path(fixture, "witness");
    return request;
}

/* It uses CPU time between any two samples, but next to none. */
static void a_timer_that_ticks_is_silence(void **state)
{
    struct exec_made made;
    struct exec_request *request = make_hostile(&made, *state, "tick");
    request->idle_ns = EXEC_FIXTURE_SECOND;
    request->timeout_ns = 60 * EXEC_FIXTURE_SECOND;
    struct attempt_exit exit = run_for(*state, request, request->idle_ns);
    assert_int_equal(exit.cause, ATTEMPT_IDLE);
}

static void a_session_may_not_live_by_cpu_time(void **state)
{
    struct exec_made made;
    struct exec_request *request =
        make(&made, *state, "while :; do :; done & while :; do :; done");
    request->idle_ns = 500 * EXEC_FIXTURE_MS;
    request->idle_ignores_cpu = true;
    request->timeout_ns = 60 * EXEC_FIXTURE_SECOND;
    struct attempt_exit exit = run_for(*state, request, request->idle_ns);
    assert_int_equal(exit.cause, ATTEMPT_IDLE);
}

/* They run at once, so that they can be silent for longer: a disk may make a
 * session wait. */
static void a_sign_of_life_is_not_silence(void **state)
{
    static const struct {
        const char *command;
        int64_t idle_ms;
        enum attempt_cause cause;
        bool ignores_cpu;
    } sessions[] = {
        /* output */
        {"for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do"
         " echo; sleep 0.2; done; echo over",
         2000,
         ATTEMPT_EXIT,
         false},
        {"for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do"
         " echo; sleep 0.2; done; echo over",
         2000,
         ATTEMPT_EXIT,
         true},
        /* progress */
        {"for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do"
         " touch ${SLUICE_RESULT%/*}/progress; sleep 0.2; done; echo over",
         2000,
         ATTEMPT_EXIT,
         false},
        {"for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do"
         " touch ${SLUICE_RESULT%/*}/progress; sleep 0.2; done; echo over",
         2000,
         ATTEMPT_EXIT,
         true},
        /* CPU time of a descendant that nobody waits for yet: it ends in
         * silence, but later */
        {"sh -c 'end=$(($(date +%s) + 2));"
         " while [ $(date +%s) -lt $end ]; do :; done; echo over' &"
         " sleep 1000",
         500,
         ATTEMPT_IDLE,
         false},
    };
    struct exec_fixture *fixture = *state;
    struct exec_made made[ARRAY_COUNT(sessions)];
    for (size_t ix = 0; ix < ARRAY_COUNT(sessions); ix++) {
        struct exec_request *request =
            make(&made[ix], fixture, sessions[ix].command);
        made[ix].dir[strlen(made[ix].dir) - 1] = (char)('1' + (char)ix);
        request->idle_ns = sessions[ix].idle_ms * EXEC_FIXTURE_MS;
        request->idle_ignores_cpu = sessions[ix].ignores_cpu;
        exec_fixture_start(fixture, request);
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(sessions); ix++) {
        struct attempt_found found =
            exec_fixture_end(fixture, &made[ix].request);
        assert_int_equal(found.exit.cause, sessions[ix].cause);
        char *log = exec_fixture_slurp(made[ix].dir, "log");
        assert_non_null(strstr(log, "over\n"));
        mem_free(log);
    }
}

/*
 * The time in which a shim could not look does not count: the machine may have
 * stood still, and the session with it. The server is stopped, too, since it
 * wakes a shim that is stopped.
 *
 * The session is on its way to its end, and in silence, before the shim can
 * look again: it cannot be silent for longer, whoever has to wait for a CPU.
 */
static void a_late_look_is_not_silence(void **state)
{
    struct exec_made made;
    struct exec_fixture *fixture = *state;
    struct exec_request *request =
        make(&made,
             fixture,
             "read pid name state server rest </proc/$PPID/stat;"
             " echo $PPID $server >pids; kill -STOP $server $PPID;"
             " touch stopped; read line <gate; sleep 0.5");
    request->idle_ns = 1500 * EXEC_FIXTURE_MS;
    const char *gate = exec_fixture_path(fixture, "gate");
    assert_int_equal(mkfifo(gate, 0600), 0);
    exec_fixture_start(fixture, request);
    assert_true(exec_fixture_appears(fixture->folder, "stopped"));
    const struct timespec longer = {1, 500 * EXEC_FIXTURE_MS};
    (void)nanosleep(&longer, NULL);
    int fd = open(gate, O_WRONLY | O_CLOEXEC); /* waits for the reader */
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    const struct timespec moment = {.tv_nsec = 200 * EXEC_FIXTURE_MS};
    (void)nanosleep(&moment, NULL);
    char *pids = exec_fixture_slurp(fixture->folder, "pids");
    assert_non_null(pids);
    char *rest;
    int shim = kill((pid_t)strtol(pids, &rest, 10), SIGCONT);
    int server = kill((pid_t)strtol(rest, NULL, 10), SIGCONT);
    mem_free(pids);
    assert_int_equal(shim, 0);
    assert_int_equal(server, 0);
    struct attempt_found found = exec_fixture_end(fixture, request);
    assert_int_equal(found.state, ATTEMPT_ENDED);
    assert_int_equal(found.exit.cause, ATTEMPT_EXIT);
}

/* Looks come more often than the kernel's ticks of CPU time, so its state alone
 * tells that it runs, or would. A disk may make it wait for once. */
static void one_that_could_run_is_not_silent(void **state)
{
    enum { TRIES = 6 };
    struct exec_made made;
    struct exec_fixture *fixture = *state;
    struct attempt_exit exit = {.cause = ATTEMPT_IDLE};
    for (int ix = 0; exit.cause == ATTEMPT_IDLE && ix < TRIES; ix++) {
        struct exec_request *request =
            make(&made,
                 fixture,
                 "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done");
        made.dir[strlen(made.dir) - 1] = (char)('a' + (char)ix);
        request->idle_ns = 5 * EXEC_FIXTURE_MS;
        exit = exec_fixture_run(fixture, request);
    }
    assert_int_equal(exit.cause, ATTEMPT_EXIT);
}

/* The same, when its first thread waits for the one that computes. */
static void one_with_a_thread_that_could_run_is_not_silent(void **state)
{
    enum { TRIES = 6 };
    struct exec_made made;
    struct exec_fixture *fixture = *state;
    struct attempt_exit exit = {.cause = ATTEMPT_IDLE};
    for (int ix = 0; exit.cause == ATTEMPT_IDLE && ix < TRIES; ix++) {
        struct exec_request *request = make_hostile(&made, fixture, "work");
        made.dir[strlen(made.dir) - 1] = (char)('a' + (char)ix);
        request->idle_ns = 5 * EXEC_FIXTURE_MS;
        exit = exec_fixture_run(fixture, request);
    }
    assert_int_equal(exit.cause, ATTEMPT_EXIT);
    assert_int_equal(exit.code, 0);
}

static void a_checkpoint_is_asked_for_once(void **state)
{
    enum { TRIES = 6 };
    struct exec_made made;
    struct exec_fixture *fixture = *state;
    struct attempt_exit exit = {.code = 7};
    /* Asked before it listens, it learns of it from the file alone. */
    for (int ix = 0; exit.code == 7 && ix < TRIES; ix++) {
        struct exec_request *request =
            make(&made,
                 fixture,
                 "file=${SLUICE_RESULT%/*}/checkpoint;"
                 " trap 'echo asked; test -e $file && exit 5' USR1;"
                 " test ! -e $file || exit 7; while :; do sleep 0.02; done");
        made.dir[strlen(made.dir) - 1] = (char)('a' + (char)ix);
        request->checkpoint_ns = 200 * EXEC_FIXTURE_MS << ix;
        exit = exec_fixture_run(fixture, request);
    }
    assert_int_equal(exit.cause, ATTEMPT_EXIT);
    assert_int_equal(exit.code, 5);
    char *log = exec_fixture_slurp(made.dir, "log");
    assert_string_equal(log, "asked\n");
    mem_free(log);
}

static void a_checkpoint_can_be_ordered(void **state)
{
    struct exec_made made;
    struct exec_fixture *fixture = *state;
    struct exec_request *request =
        make(&made,
             fixture,
             "trap 'exit 6' USR1; touch ${SLUICE_RESULT%/*}/ready;"
             " while :; do sleep 0.02; done");
    struct attempt_found found =
        run_and_order(fixture, request, EXEC_CHECKPOINT);
    assert_int_equal(found.exit.code, 6);
    assert_true(exec_fixture_appears(made.dir, "checkpoint"));
}

/* The signal goes to the program that handles it, not to the shell that runs
 * it; the shell goes on. */
static void a_checkpoint_reaches_a_program_of_a_shell(void **state)
{
    struct exec_made made;
    struct exec_fixture *fixture = *state;
    struct exec_request *request =
        make(&made,
             fixture,
             "true && sh -c 'trap \"exit 6\" USR1;"
             " touch ${SLUICE_RESULT%/*}/ready; while :; do sleep 0.02; done';"
             " code=$?; echo ended $code; exit $code");
    struct attempt_found found =
        run_and_order(fixture, request, EXEC_CHECKPOINT);
    assert_int_equal(found.exit.code, 6);
    char *log = exec_fixture_slurp(made.dir, "log");
    assert_string_equal(log, "ended 6\n");
    mem_free(log);
}

/* It is not killed, and finds the file. It stays for a moment, so that a signal
 * would still find it. */
static void a_checkpoint_kills_no_one(void **state)
{
    struct exec_made made;
    struct exec_fixture *fixture = *state;
    struct exec_request *request =
        make(&made,
             fixture,
             "dir=${SLUICE_RESULT%/*}; sleep 1000 & touch $dir/ready;"
             " until [ -e $dir/checkpoint ]; do sleep 0.02; done; sleep 0.5;"
             " kill $! && echo alive; exit 3");
    struct attempt_found found =
        run_and_order(fixture, request, EXEC_CHECKPOINT);
    assert_int_equal(found.exit.cause, ATTEMPT_EXIT);
    assert_int_equal(found.exit.code, 3);
    char *log = exec_fixture_slurp(made.dir, "log");
    assert_string_equal(log, "alive\n");
    mem_free(log);
}

/* Numbered lines, about 7 MB of them. */
static const char lines[] = "seq 1 1000000; sleep 0.2; seq 1000001 1000002";

/* Without holes a cut takes all that was written last, so the end must come
 * after the last cut. */
static const char lines_after_cut[] =
    "seq 1 1000000;"
    " until [ $(wc -c <${SLUICE_RESULT%/*}/log) -le $((256 * 1024 - 16)) ]; do"
    " sleep 0.02; done; seq 1000001 1000002";

/* Run it with a limit of 256 KiB. */
static void expect_cut(struct exec_fixture *fixture, bool has_holes)
{
    enum { KIB = 1024, MAX = 256 * KIB };
    struct exec_made made;
    struct exec_request *request =
        make(&made, fixture, has_holes ? lines : lines_after_cut);
    struct stat stat_now;
    request->log_bytes_max = MAX;
    struct attempt_exit exit = exec_fixture_run(fixture, request);
    assert_int_equal(exit.code, 0);
    assert_true(exit.log_cut_bytes > 0);
    assert_int_equal(stat(exec_fixture_path(fixture, "1/log"), &stat_now), 0);
    assert_true(stat_now.st_blocks * 512 <= MAX + 64 * KIB);
    if (has_holes) { /* otherwise what is lost in a cut cannot be counted */
        assert_int_equal(exit.log_bytes, 6888896 + 16);
        assert_true(exit.log_cut_bytes > MAX);
        assert_true(exit.log_bytes - exit.log_cut_bytes <= MAX);
    }
    char *log = exec_fixture_slurp(made.dir, "log");
    assert_int_equal(strncmp(log, "1\n2\n3\n", 6), 0);
    char mark[64];
    (void)snprintf(mark,
                   sizeof(mark),
                   "\n[sluice: %20llu bytes were cut here]\n",
                   (unsigned long long)exit.log_cut_bytes);
    assert_non_null(strstr(log, mark));
    mem_free(log);
    struct strbuf tail = {0};
    attempt_add_log_tail(made.dir, 20, &tail);
    assert_string_equal(strbuf_text(&tail), "1000001\n1000002\n");
    strbuf_release(&tail);
}

static void a_long_log_keeps_its_head_and_tail(void **state)
{
    expect_cut(*state, true);
}

/* The same in a file system of 1 MiB, which the log fills. */
static int run_on_full_disk(struct exec_fixture *fixture)
{
    struct exec_made made;
    const char *disk = exec_fixture_path(fixture, "disk");
    if (mkdir(disk, 0700) != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", disk, "tmpfs", 0, "size=1m") != 0) {
        return 77;
    }
    exec_close(fixture->exec);
    fixture->exec = exec_fixture_server(); /* it must see the same disk */
    struct exec_request *request =
        make(&made, fixture, "seq 1 1000000 2>/dev/null; exit 3");
    (void)snprintf(made.dir, sizeof(made.dir), "%s/disk/1", fixture->folder);
    struct attempt_exit exit = exec_fixture_run(fixture, request);
    assert_int_equal(exit.cause, ATTEMPT_EXIT);
    assert_int_equal(exit.code, 3);
    assert_true(exit.log_bytes > 900000);
    /* And what cannot begin says so, and has not begun. */
    (void)snprintf(made.dir, sizeof(made.dir), "%s/disk/2", fixture->folder);
    request->id = ++fixture->last_id;
    exec_fixture_start(fixture, request);
    struct attempt_found found = exec_fixture_end(fixture, request);
    struct exec_report report =
        exec_fixture_wait(fixture, request->id, EXEC_ENDED);
    assert_int_equal(report.error, ENOSPC);
    assert_int_equal(found.state, ATTEMPT_NEVER);
    return 0;
}

static void a_full_disk_does_not_lose_the_end(void **state)
{
    int status = 0;
    pid_t pid = fork(); /* the new disk is for this child only */
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(run_on_full_disk(*state));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

#ifdef SLUICE_CRASH_POINTS

/* For half a minute, with a moment in between. */
enum { LOOKS = 30000 };

static void wait_a_moment(void)
{
    struct timespec pause = {.tv_nsec = EXEC_FIXTURE_MS};
    (void)nanosleep(&pause, NULL);
}

/* Replace the server by one with this fault or crash set. */
static void
serve_with(struct exec_fixture *fixture, const char *name, const char *value)
{
    exec_close(fixture->exec);
    if (name != NULL) {
        assert_int_equal(setenv(name, value, 1), 0);
    }
    fixture->exec = exec_fixture_server();
    fixture->count = 0;
    assert_int_equal(unsetenv("SLUICE_FAULT"), 0);
    assert_int_equal(unsetenv("SLUICE_CRASH"), 0);
}

static void a_log_without_holes_keeps_its_head(void **state)
{
    serve_with(*state, "SLUICE_FAULT", "punch");
    expect_cut(*state, false);
}

static void without_notices_the_log_is_looked_at_all_the_same(void **state)
{
    serve_with(*state, "SLUICE_FAULT", "notify");
    expect_cut(*state, true);
}

static void without_lists_of_children_the_tree_is_found(void **state)
{
    struct exec_made made;
    struct exec_fixture *fixture = *state;
    serve_with(fixture, "SLUICE_FAULT", "children");
    struct exec_request *request =
        make(&made, fixture, "setsid sleep 1000 & echo $!; exit 0");
    struct attempt_exit exit = exec_fixture_run(fixture, request);
    assert_int_equal(exit.cause, ATTEMPT_EXIT);
    char *log = exec_fixture_slurp(made.dir, "log");
    pid_t pid = (pid_t)strtol(log, NULL, 10);
    mem_free(log);
    /* It was killed; without a CPU it dies later. */
    for (int ix = 0; kill(pid, 0) == 0 && ix < LOOKS; ix++) {
        wait_a_moment();
    }
    assert_int_equal(kill(pid, 0), -1);
}

static void no_process_to_be_had_is_reported(void **state)
{
    struct exec_made made;
    struct exec_fixture *fixture = *state;
    serve_with(fixture, "SLUICE_FAULT", "fork:1:EAGAIN");
    struct exec_request *request = make(&made, fixture, "true");
    exec_fixture_start(fixture, request);
    struct exec_report report =
        exec_fixture_wait(fixture, request->id, EXEC_FAILED);
    assert_int_equal(report.error, EAGAIN);
    request->id = ++fixture->last_id;
    assert_int_equal(exec_fixture_run(fixture, request).code, 0);
    serve_with(fixture, "SLUICE_FAULT", "clone:1:EAGAIN");
    made.dir[strlen(made.dir) - 1] = '2';
    struct attempt_exit exit = exec_fixture_run(fixture, request);
    assert_int_equal(exit.cause, ATTEMPT_SPAWN);
    assert_int_equal(exit.error, EAGAIN);
}

static void a_failed_step_before_the_start_leaves_it_unstarted(void **state)
{
    static const struct {
        const char *fault;
        int error;
    } faults[] = {
        {"open:1:EMFILE", EMFILE},
        {"write:1:ENOSPC", ENOSPC},
    };
    struct exec_fixture *fixture = *state;
    for (size_t ix = 0; ix < ARRAY_COUNT(faults); ix++) {
        struct exec_made made;
        struct exec_request *request = make(&made, fixture, "echo x");
        made.dir[strlen(made.dir) - 1] = (char)('a' + (char)ix);
        serve_with(fixture, "SLUICE_FAULT", faults[ix].fault);
        exec_fixture_start(fixture, request);
        struct attempt_found found = exec_fixture_end(fixture, request);
        assert_int_equal(found.state, ATTEMPT_NEVER);
        struct exec_report report =
            exec_fixture_wait(fixture, request->id, EXEC_ENDED);
        assert_int_equal(report.error, faults[ix].error);
        /* So it can be started again, and then it runs. */
        serve_with(fixture, NULL, NULL);
        assert_int_equal(exec_fixture_run(fixture, request).code, 0);
    }
}

static void without_links_an_attempt_runs_once_all_the_same(void **state)
{
    struct exec_made made;
    struct exec_fixture *fixture = *state;
    struct exec_request *request = make(&made, fixture, "echo x");
    serve_with(fixture, "SLUICE_FAULT", "link:1:EPERM");
    assert_int_equal(exec_fixture_run(fixture, request).code, 0);
    serve_with(fixture, "SLUICE_FAULT", "link:1:EPERM");
    exec_fixture_start(fixture, request);
    struct exec_report report =
        exec_fixture_wait(fixture, request->id, EXEC_ENDED);
    assert_int_equal(report.error, EEXIST);
}

static void a_failed_step_at_the_end_is_tried_again(void **state)
{
    static const char *const faults[] = {"write:2:EIO", "rename:1:EIO"};
    struct exec_fixture *fixture = *state;
    for (size_t ix = 0; ix < ARRAY_COUNT(faults); ix++) {
        struct exec_made made;
        struct exec_request *request = make(&made, fixture, "exit 8");
        made.dir[strlen(made.dir) - 1] = (char)('a' + (char)ix);
        serve_with(fixture, "SLUICE_FAULT", faults[ix]);
        assert_int_equal(exec_fixture_run(fixture, request).code, 8);
    }
}

static void note_end(void *ctx, const struct exec_report *report)
{
    bool *ended = ctx;
    *ended = *ended || report->type == EXEC_ENDED;
}

/* Start it with a crash set, and wait until the crash has happened. */
static void crash_at(struct exec_fixture *fixture,
                     const char *point,
                     const struct exec_request *request)
{
    serve_with(fixture, "SLUICE_CRASH", point);
    exec_fixture_start(fixture, request);
    if (strncmp(point, "server-", 7) != 0) {
        (void)exec_fixture_wait(fixture, request->id, EXEC_ENDED);
        return;
    }
    enum err err = ERR_OK;
    while (err == ERR_OK) {
        bool ended = false;
        err = exec_read(fixture->exec, note_end, &ended, NULL);
        if (ended) { /* two reports may have gone as one: have another */
            exec_fixture_start(fixture, request);
        }
        wait_a_moment();
    }
    assert_int_equal(err, ERR_UNAVAILABLE);
}

/* Go on as the scheduler does: look, and start what never ran. */
static enum attempt_state settle(struct exec_fixture *fixture,
                                 struct exec_request *request)
{
    struct attempt_found found;
    serve_with(fixture, NULL, NULL);
    for (int ix = 0; ix < LOOKS; ix++) {
        assert_int_equal(
            attempt_inspect(request->dir, fixture->boot_id, &found, NULL),
            ERR_OK);
        if (found.state == ATTEMPT_NEVER) {
            request->id = ++fixture->last_id;
            exec_fixture_start(fixture, request);
            (void)exec_fixture_wait(fixture, request->id, EXEC_ENDED);
        } else if (found.state == ATTEMPT_LOST ||
                   found.state == ATTEMPT_ENDED) {
            break;
        }
        wait_a_moment();
    }
    return found.state;
}

static void killed_at_any_point_it_has_run_at_most_once(void **state)
{
    static const struct {
        const char *point;
        bool lost; /* it is; otherwise it must end well */
    } points[] = {
        {"server-request-read", false},  {"server-forked", false},
        {"server-before-report", false}, {"server-before-report:2", false},
        {"server-after-report", false},  {"server-reaped", false},
        {"shim-before-mkdir", false},    {"shim-after-mkdir", false},
        {"shim-locked", false},          {"shim-started-empty", true},
        {"shim-started", true},          {"shim-before-spawn", true},
        {"shim-after-spawn", true},      {"shim-before-term", true},
        {"shim-after-term", true},       {"shim-before-kill", true},
        {"shim-after-kill", true},       {"shim-before-exit", true},
        {"shim-exit-written", true},     {"shim-exit-renamed", false},
    };
    struct exec_fixture *fixture = *state;
    for (size_t ix = 0; ix < ARRAY_COUNT(points); ix++) {
        struct exec_made made;
        struct exec_request *request =
            make(&made,
                 fixture,
                 "trap '' TERM; echo >>${SLUICE_RESULT%/*}/witness;"
                 " sleep 1000 & exit 0");
        made.dir[strlen(made.dir) - 1] = (char)('a' + (char)ix);
        request->grace_ns = 20 * EXEC_FIXTURE_MS;
        crash_at(fixture, points[ix].point, request);
        enum attempt_state after = settle(fixture, request);
        enum attempt_state wanted =
            points[ix].lost ? ATTEMPT_LOST : ATTEMPT_ENDED;
        char *witness = exec_fixture_slurp(made.dir, "witness");
        size_t runs = witness != NULL ? strlen(witness) : 0;
        if (after != wanted || runs > 1 || (!points[ix].lost && runs != 1)) {
            fail_msg("%s: state %d, %zu runs",
                     points[ix].point,
                     (int)after,
                     runs);
        }
        mem_free(witness);
        while (attempt_kill_strays(made.dir) > 0) {
        } /* one that is starting a program may be found later */
    }
}

#endif

int main(void)
{
#define CASE(name)                                                             \
    cmocka_unit_test_setup_teardown(name,                                      \
                                    exec_fixture_set_up,                       \
                                    exec_fixture_tear_down)
    const struct CMUnitTest tests[] = {
        CASE(the_hard_timeout_ends_a_busy_session),
        CASE(prepare_counts_in_the_timeout),
        CASE(the_grace_period_is_for_cleaning_up),
        CASE(silence_ends_a_session),
        CASE(a_timer_that_ticks_is_silence),
        CASE(a_session_may_not_live_by_cpu_time),
        CASE(a_sign_of_life_is_not_silence),
        CASE(a_late_look_is_not_silence),
        CASE(one_that_could_run_is_not_silent),
        CASE(one_with_a_thread_that_could_run_is_not_silent),
        CASE(a_checkpoint_is_asked_for_once),
        CASE(a_checkpoint_can_be_ordered),
        CASE(a_checkpoint_reaches_a_program_of_a_shell),
        CASE(a_checkpoint_kills_no_one),
        CASE(a_long_log_keeps_its_head_and_tail),
        CASE(a_full_disk_does_not_lose_the_end),
#ifdef SLUICE_CRASH_POINTS
        CASE(a_log_without_holes_keeps_its_head),
        CASE(without_notices_the_log_is_looked_at_all_the_same),
        CASE(without_lists_of_children_the_tree_is_found),
        CASE(no_process_to_be_had_is_reported),
        CASE(a_failed_step_before_the_start_leaves_it_unstarted),
        CASE(without_links_an_attempt_runs_once_all_the_same),
        CASE(a_failed_step_at_the_end_is_tried_again),
        CASE(killed_at_any_point_it_has_run_at_most_once),
#endif
    };
    return cmocka_run_group_tests_name("exec_limits", tests, NULL, NULL);
}
