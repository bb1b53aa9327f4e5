/* SPDX-License-Identifier: MIT */
/*
 * Real sessions through the spawn server: what they are given, that they run
 * once, and what is left when somebody dies. Their limits are in
 * test_exec_limits.c, those that resist in test_exec_hostile.c.
 */
#include "exec/exec.h"

#include "base/clock.h"
#include "base/duration.h"
#include "base/macros.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "exec/lease.h"
#include "exec/record.h"
#include "tests/unit/exec_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { RACES = 50, MANY = 200, PATIENCE_MS = 30000 };

/* Run a shell command to its end; its directory is FOLDER/NAME. */
static struct attempt_exit
run(struct exec_fixture *fixture, const char *name, const char *command)
{
    const char *argv[4];
    char *dir = mem_strndup(name, strlen(name));
    struct exec_request request =
        exec_fixture_request(fixture,
                             exec_fixture_path(fixture, dir),
                             argv,
                             command);
    struct attempt_exit exit = exec_fixture_run(fixture, &request);
    mem_free(dir);
    return exit;
}

static void
expect_log(struct exec_fixture *fixture, const char *name, const char *wanted)
{
    char *log = exec_fixture_slurp(exec_fixture_path(fixture, name), "log");
    assert_non_null(log);
    assert_string_equal(log, wanted);
    mem_free(log);
}

static void an_end_is_recorded(void **state)
{
    struct exec_fixture *fixture = *state;
    struct attempt_exit exit =
        run(fixture, "a/b/c/1", "echo out; echo err >&2; exit 7");
    assert_int_equal(exit.cause, ATTEMPT_EXIT);
    assert_int_equal(exit.code, 7);
    assert_int_equal(exit.signal, 0);
    assert_int_equal(exit.log_bytes, 8);
    assert_true(exit.ended_ns >= exit.begun_ns);
    assert_true(exit.cpu_ns > 0);
    expect_log(fixture, "a/b/c/1", "out\nerr\n");
    struct stat stat_now;
    assert_int_equal(stat(exec_fixture_path(fixture, "a/b"), &stat_now), 0);
    assert_int_equal(stat_now.st_mode & 0777, 0700);
    exit = run(fixture, "2", "kill -9 $$");
    assert_int_equal(exit.cause, ATTEMPT_EXIT);
    assert_int_equal(exit.code, -1);
    assert_int_equal(exit.signal, SIGKILL);
}

static void a_session_gets_its_folder_and_environment(void **state)
{
    struct exec_fixture *fixture = *state;
    const char *argv[4];
    const char *env[] = {"ADDED=1 2", "PATH=/bin:/usr/bin", "EMPTY="};
    char dir[128];
    assert_int_equal(setenv("INHERITED", "no", 1), 0); /* after the server */
    (void)snprintf(dir, sizeof(dir), "%s", exec_fixture_path(fixture, "1"));
    struct exec_request request = exec_fixture_request(
        fixture,
        dir,
        argv,
        "pwd; echo \"$ADDED|$PATH|${EMPTY-unset}|$INHERITED|$SLUICE_RESULT\";"
        " env | grep -c ^PATH=; cat");
    request.env = env;
    request.env_count = ARRAY_COUNT(env);
    struct attempt_exit exit = exec_fixture_run(fixture, &request);
    assert_int_equal(exit.code, 0);
    struct strbuf wanted = {0};
    strbuf_addf(&wanted,
                "%s\n1 2|/bin:/usr/bin|||%s/result\n1\n",
                fixture->folder,
                dir);
    expect_log(fixture, "1", strbuf_text(&wanted));
    strbuf_release(&wanted);
}

static void a_session_starts_as_a_clean_process(void **state)
{
    struct exec_fixture *fixture = *state;
    int open_fd = open("/dev/null", O_RDONLY); /* not close-on-exec */
    assert_true(open_fd >= 0);
    (void)signal(SIGPIPE, SIG_IGN);
    struct exec *second = exec_fixture_server();
    struct exec *first = fixture->exec;
    fixture->exec = second;
    (void)run(fixture,
              "1",
              "grep -E 'Sig(Ign|Blk)' /proc/self/status | cut -f2;"
              "for fd in /proc/$$/fd/*; do echo ${fd##*/}; done | sort -n |"
              " head -3 | tr '\\n' ' '; readlink /proc/$$/fd/0;"
              "cut -d' ' -f1,5,6 /proc/$$/stat | tr ' ' '\\n' | uniq | wc -l");
    expect_log(fixture,
               "1",
               "0000000000000000\n0000000000000000\n0 1 2 /dev/null\n1\n");
    (void)run(fixture, "2", "exec ls /proc/self/fd");
    expect_log(fixture, "2", "0\n1\n2\n3\n"); /* 3 is the folder itself */
    fixture->exec = first;
    exec_close(second);
    (void)signal(SIGPIPE, SIG_DFL);
    assert_int_equal(close(open_fd), 0);
}

/* Run a command by its name, and expect that it cannot be started. */
static void expect_spawn_error(struct exec_fixture *fixture,
                               struct exec_request *request,
                               int error,
                               const char *text)
{
    struct attempt_exit exit = exec_fixture_run(fixture, request);
    assert_int_equal(exit.cause, ATTEMPT_SPAWN);
    assert_int_equal(exit.error, error);
    assert_int_equal(exit.code, -1);
    char *log = exec_fixture_slurp(request->dir, "log");
    assert_non_null(strstr(log, text));
    mem_free(log);
}

static void what_cannot_be_started_says_why(void **state)
{
    struct exec_fixture *fixture = *state;
    const char *argv[4];
    char dir[128];
    (void)snprintf(dir, sizeof(dir), "%s", exec_fixture_path(fixture, "1"));
    struct exec_request request =
        exec_fixture_request(fixture, dir, argv, NULL);
    request.argc = 1;
    argv[0] = "/no/such/program";
    expect_spawn_error(fixture,
                       &request,
                       ENOENT,
                       "cannot run /no/such/program: No such");
    request.id = ++fixture->last_id;
    argv[0] = "no-such-program";
    dir[strlen(dir) - 1] = '2';
    expect_spawn_error(fixture, &request, ENOENT, "cannot run no-such");
    request.id = ++fixture->last_id;
    argv[0] = "/etc/passwd";
    dir[strlen(dir) - 1] = '3';
    expect_spawn_error(fixture, &request, EACCES, "cannot run /etc/passwd");
    request.id = ++fixture->last_id;
    argv[0] = "true";
    dir[strlen(dir) - 1] = '4';
    request.folder = "/no/such/folder";
    expect_spawn_error(fixture, &request, ENOENT, "cannot enter /no/such/f");
    request.id = ++fixture->last_id;
    dir[strlen(dir) - 1] = '5';
    request.folder = "/";
    assert_int_equal(exec_fixture_run(fixture, &request).code, 0);
}

static void a_program_is_searched_in_the_path_of_the_session(void **state)
{
    struct exec_fixture *fixture = *state;
    const char *argv[4];
    struct strbuf path = {0};
    char dir[128];
    strbuf_addf(&path, "PATH=/nonexistent:%s::/bin", fixture->folder);
    const char *env[] = {path.text};
    (void)snprintf(dir, sizeof(dir), "%s", exec_fixture_path(fixture, "1"));
    struct exec_request request =
        exec_fixture_request(fixture, dir, argv, NULL);
    int fd = open(exec_fixture_path(fixture, "prog"),
                  O_WRONLY | O_CREAT | O_CLOEXEC,
                  0700);
    assert_true(dprintf(fd, "#!/bin/sh\necho found $1\n") > 0);
    assert_int_equal(close(fd), 0);
    argv[0] = "prog";
    argv[1] = "it";
    request.argc = 2;
    request.env = env;
    request.env_count = 1;
    assert_int_equal(exec_fixture_run(fixture, &request).code, 0);
    expect_log(fixture, "1", "found it\n");
    strbuf_release(&path);
}

static void prepare_runs_first_and_its_failure_is_the_end(void **state)
{
    struct exec_fixture *fixture = *state;
    const char *argv[4];
    char dir[128];
    (void)snprintf(dir, sizeof(dir), "%s", exec_fixture_path(fixture, "1"));
    struct exec_request request =
        exec_fixture_request(fixture, dir, argv, "echo session; exit 4");
    request.prepare = "echo prepare; sleep 1000 & exit 0";
    struct attempt_exit exit = exec_fixture_run(fixture, &request);
    assert_int_equal(exit.cause, ATTEMPT_EXIT);
    assert_int_equal(exit.code, 4);
    expect_log(fixture, "1", "prepare\nsession\n");
    request.id = ++fixture->last_id;
    dir[strlen(dir) - 1] = '2';
    request.prepare = "sleep 1000 & exit 3";
    exit = exec_fixture_run(fixture, &request);
    assert_int_equal(exit.cause, ATTEMPT_PREPARE);
    assert_int_equal(exit.code, 3);
    expect_log(fixture, "2", "");
    request.id = ++fixture->last_id;
    dir[strlen(dir) - 1] = '3';
    request.prepare = "true";
    request.argc = 1;
    argv[0] = "/no/such/program";
    expect_spawn_error(fixture, &request, ENOENT, "cannot run");
}

/* A session runs while its lease does, and ends with it, however long its grace
 * is; and without a lease at once. */
static void a_session_ends_with_the_lease_of_its_worker(void **state)
{
    struct exec_fixture *fixture = *state;
    const char *argv[4];
    char dir[128];
    char path[128];
    (void)snprintf(dir, sizeof(dir), "%s", exec_fixture_path(fixture, "1"));
    (void)snprintf(path, sizeof(path), "%s", exec_fixture_path(fixture, "l"));
    struct exec_request request =
        exec_fixture_request(fixture, dir, argv, "echo on; exit 4");
    struct lease lease = {.until_ns = INT64_MAX};
    assert_int_equal(lease_write(path, &lease), 0);
    request.lease = path;
    assert_int_equal(exec_fixture_run(fixture, &request).code, 4);
    request.id = ++fixture->last_id;
    dir[strlen(dir) - 1] = '2';
    argv[2] = "trap '' TERM; echo on; while :; do sleep 0.01; done";
    request.grace_ns = 1000 * SECOND_NS;
    lease.until_ns = clock_boot_ns() + 100 * MS_NS;
    assert_int_equal(lease_write(path, &lease), 0);
    struct attempt_exit exit = exec_fixture_run(fixture, &request);
    assert_int_equal(exit.cause, ATTEMPT_LEASE);
    assert_int_equal(exit.signal, SIGKILL);
    request.id = ++fixture->last_id;
    dir[strlen(dir) - 1] = '3';
    assert_int_equal(unlink(path), 0);
    assert_int_equal(exec_fixture_run(fixture, &request).cause, ATTEMPT_LEASE);
}

/* How many times the sessions have run: each adds a line to `witness`. */
static int count_runs(struct exec_fixture *fixture)
{
    char *text = exec_fixture_slurp(fixture->folder, "witness");
    int count = 0;
    for (const char *at = text; at != NULL && *at != '\0'; at++) {
        count += *at == '\n' ? 1 : 0;
    }
    mem_free(text);
    return count;
}

static void started_twice_it_runs_once(void **state)
{
    struct exec_fixture *fixture = *state;
    const char *argv[4];
    char dir[128];
    (void)snprintf(dir, sizeof(dir), "%s", exec_fixture_path(fixture, "1"));
    struct exec_request request =
        exec_fixture_request(fixture, dir, argv, "echo >>witness; sleep 0.1");
    struct exec_request again = request;
    again.id = ++fixture->last_id;
    exec_fixture_start(fixture, &request);
    exec_fixture_start(fixture, &again);
    (void)exec_fixture_end(fixture, &request);
    (void)exec_fixture_end(fixture, &again);
    again.id = ++fixture->last_id;
    exec_fixture_start(fixture, &again);
    struct attempt_found found = exec_fixture_end(fixture, &again);
    assert_int_equal(found.state, ATTEMPT_ENDED);
    assert_int_equal(found.exit.code, 0);
    struct exec_report report =
        exec_fixture_wait(fixture, again.id, EXEC_ENDED);
    assert_int_equal(report.error, EEXIST);
    assert_int_equal(count_runs(fixture), 1);
}

static void raced_by_two_servers_each_attempt_runs_once(void **state)
{
    struct exec_fixture *fixture = *state;
    const char *argv[4];
    char dir[128];
    struct exec *servers[2] = {fixture->exec, exec_fixture_server()};
    uint64_t first_id = fixture->last_id + 1;
    for (int ix = 0; ix < RACES; ix++) {
        (void)snprintf(dir, sizeof(dir), "%s/r%d/1", fixture->folder, ix);
        struct exec_request request =
            exec_fixture_request(fixture, dir, argv, "echo >>witness");
        for (int server = 0; server < 2; server++) {
            fixture->exec = servers[(server + ix) % 2];
            exec_fixture_start(fixture, &request);
        }
    }
    for (int server = 0; server < 2; server++) {
        fixture->exec = servers[server];
        fixture->count = 0;
        for (uint64_t id = first_id; id <= fixture->last_id; id++) {
            (void)exec_fixture_wait(fixture, id, EXEC_ENDED);
        }
    }
    assert_int_equal(count_runs(fixture), RACES);
    fixture->exec = servers[0];
    exec_close(servers[1]);
}

static void a_fenced_attempt_never_runs(void **state)
{
    struct exec_fixture *fixture = *state;
    const char *argv[4];
    char dir[128];
    bool fenced = false;
    (void)snprintf(dir, sizeof(dir), "%s", exec_fixture_path(fixture, "1"));
    struct exec_request request =
        exec_fixture_request(fixture, dir, argv, "echo >>witness");
    assert_int_equal(attempt_fence(dir, "", &fenced, NULL), ERR_OK);
    assert_true(fenced);
    exec_fixture_start(fixture, &request);
    assert_int_equal(exec_fixture_end(fixture, &request).state, ATTEMPT_LOST);
    assert_int_equal(count_runs(fixture), 0);
}

/* Start a session that says "ready" and waits; wait for that. */
static struct exec_report start_waiting(struct exec_fixture *fixture,
                                        const struct exec_request *request)
{
    exec_fixture_start(fixture, request);
    struct exec_report report =
        exec_fixture_wait(fixture, request->id, EXEC_STARTED);
    assert_true(exec_fixture_appears(request->dir, "ready"));
    return report;
}

static const char waiting[] = "echo >>witness; touch ${SLUICE_RESULT%/*}/ready;"
                              " sleep 1000";

static void a_live_session_can_be_watched_and_ended(void **state)
{
    static const struct {
        enum exec_end how;
        enum attempt_cause cause;
    } ends[] = {
        {EXEC_CANCEL, ATTEMPT_CANCELLED},
        {EXEC_STOP, ATTEMPT_STOPPED},
    };
    struct exec_fixture *fixture = *state;
    for (size_t ix = 0; ix < ARRAY_COUNT(ends); ix++) {
        const char *argv[4];
        struct attempt_found found;
        struct diag diag = {0};
        char dir[128];
        int fd = -1;
        (void)snprintf(dir, sizeof(dir), "%s/%zu", fixture->folder, ix);
        struct exec_request request =
            exec_fixture_request(fixture, dir, argv, waiting);
        struct exec_report report = start_waiting(fixture, &request);
        assert_int_equal(attempt_inspect(dir, fixture->boot_id, &found, NULL),
                         ERR_OK);
        assert_int_equal(found.state, ATTEMPT_LIVE);
        assert_int_equal(found.pid, report.pid);
        assert_true(found.start_ticks == report.start_ticks);
        assert_int_equal(
            exec_watch(found.pid, found.start_ticks + 1, &fd, &diag),
            ERR_NOT_FOUND);
        assert_int_equal(fd, -1);
        assert_int_equal(exec_signal(found.pid,
                                     found.start_ticks - 1,
                                     request.id,
                                     EXEC_CANCEL,
                                     &diag),
                         ERR_NOT_FOUND);
        assert_int_equal(exec_watch(found.pid, found.start_ticks, &fd, NULL),
                         ERR_OK);
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        assert_int_equal(poll(&poll_fd, 1, 0), 0);
        assert_int_equal(exec_signal(found.pid,
                                     found.start_ticks,
                                     request.id,
                                     ends[ix].how,
                                     NULL),
                         ERR_OK);
        assert_int_equal(poll(&poll_fd, 1, PATIENCE_MS), 1);
        assert_int_equal(close(fd), 0);
        found = exec_fixture_end(fixture, &request);
        assert_int_equal(found.state, ATTEMPT_ENDED);
        assert_int_equal(found.exit.cause, ends[ix].cause);
        assert_int_equal(found.exit.signal, SIGTERM);
        assert_int_equal(exec_signal(report.pid,
                                     report.start_ticks,
                                     request.id,
                                     EXEC_STOP,
                                     NULL),
                         ERR_NOT_FOUND);
    }
}

static void only_the_first_cause_is_recorded(void **state)
{
    struct exec_fixture *fixture = *state;
    const char *argv[4];
    char dir[128];
    (void)snprintf(dir, sizeof(dir), "%s", exec_fixture_path(fixture, "1"));
    struct exec_request request = exec_fixture_request(
        fixture,
        dir,
        argv,
        "cd ${SLUICE_RESULT%/*}; trap 'touch asked' TERM; touch ready;"
        " until [ -e go ]; do sleep 0.02; done");
    request.grace_ns = 1000 * EXEC_FIXTURE_SECOND; /* there for all orders */
    struct exec_report report = start_waiting(fixture, &request);
    for (int ix = 0; ix < 5; ix++) {
        enum exec_end how = ix == 0 ? EXEC_STOP : EXEC_CANCEL;
        assert_int_equal(
            exec_signal(report.pid, report.start_ticks, request.id, how, NULL),
            ERR_OK);
    }
    assert_true(exec_fixture_appears(dir, "asked"));
    exec_fixture_touch(dir, "go");
    struct attempt_found found = exec_fixture_end(fixture, &request);
    assert_int_equal(found.exit.cause, ATTEMPT_STOPPED);
}

static void sessions_outlive_their_server(void **state)
{
    struct exec_fixture *fixture = *state;
    const char *argv[4];
    struct attempt_found found;
    char dir[128];
    (void)snprintf(dir, sizeof(dir), "%s", exec_fixture_path(fixture, "1"));
    struct exec_request request =
        exec_fixture_request(fixture, dir, argv, waiting);
    struct exec_report report = start_waiting(fixture, &request);
    /* The server is killed, which the client must see. */
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%lld", (long long)report.pid);
    char *text = exec_fixture_slurp(path, "stat");
    uint64_t stat[RECORD_STAT_COUNT];
    assert_true(record_read_stat(text, strlen(text), stat));
    mem_free(text);
    assert_int_equal(kill((pid_t)stat[RECORD_STAT_PARENT], SIGKILL), 0);
    struct pollfd poll_fd = {.fd = exec_fd(fixture->exec), .events = POLLIN};
    assert_int_equal(poll(&poll_fd, 1, PATIENCE_MS), 1);
    struct diag diag = {0};
    assert_int_equal(exec_read(fixture->exec, NULL, NULL, &diag),
                     ERR_UNAVAILABLE);
    /* The next one is asked again, and nothing runs twice. */
    exec_close(fixture->exec);
    fixture->exec = exec_fixture_server();
    request.id = ++fixture->last_id;
    exec_fixture_start(fixture, &request);
    found = exec_fixture_end(fixture, &request);
    assert_int_equal(found.state, ATTEMPT_LIVE);
    assert_int_equal(found.pid, report.pid);
    assert_int_equal(count_runs(fixture), 1);
    /* Nor does closing the server end it. */
    exec_close(fixture->exec);
    fixture->exec = exec_fixture_server();
    int fd = -1;
    assert_int_equal(exec_watch(found.pid, found.start_ticks, &fd, NULL),
                     ERR_OK);
    assert_int_equal(
        exec_signal(found.pid, found.start_ticks, report.id, EXEC_CANCEL, NULL),
        ERR_OK);
    poll_fd.fd = fd;
    assert_int_equal(poll(&poll_fd, 1, PATIENCE_MS), 1);
    assert_int_equal(close(fd), 0);
    assert_int_equal(attempt_inspect(dir, fixture->boot_id, &found, NULL),
                     ERR_OK);
    assert_int_equal(found.state, ATTEMPT_ENDED);
}

static void a_program_that_is_no_server_is_refused(void **state)
{
    (void)state;
    struct exec *exec = NULL;
    struct diag diag = {0};
    assert_int_equal(exec_open(&exec, "/no/such/shim", &diag), ERR_NOT_FOUND);
    assert_non_null(strstr(diag.text, "/no/such/shim"));
    assert_int_equal(exec_open(&exec, "/bin/true", &diag), ERR_UNAVAILABLE);
    assert_null(exec);
    assert_non_null(strstr(diag.text, "/bin/true"));
    const char *chosen = getenv("SLUICE_SHIM");
    assert_non_null(chosen);
    char *shim = mem_strndup(chosen, chosen != NULL ? strlen(chosen) : 0);
    assert_int_equal(setenv("SLUICE_SHIM", "/no/such/shim", 1), 0);
    assert_int_equal(exec_open(&exec, NULL, &diag), ERR_NOT_FOUND);
    assert_int_equal(unsetenv("SLUICE_SHIM"), 0);
    assert_int_equal(exec_open(&exec, NULL, &diag), ERR_NOT_FOUND);
    assert_int_equal(setenv("SLUICE_SHIM", shim, 1), 0);
    mem_free(shim);
    exec_close(NULL);
}

static void a_server_of_another_version_is_refused(void **state)
{
    struct exec_fixture *fixture = *state;
    struct exec *exec = NULL;
    struct diag diag = {0};
    const char *path = exec_fixture_path(fixture, "other");
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
    assert_true(dprintf(fd,
                        "#!/bin/sh\nprintf 'sluice-shim\\000\\377\\000\\000"
                        "\\0009.9.9\\000\\000\\000\\000\\000\\000\\000\\000"
                        "\\000\\000\\000' >&3\nsleep 5\n") > 0);
    assert_int_equal(close(fd), 0);
    assert_int_equal(exec_open(&exec, path, &diag), ERR_CONFLICT);
    assert_non_null(strstr(diag.text, "9.9.9"));
}

static void impossible_requests_are_refused_at_once(void **state)
{
    struct exec_fixture *fixture = *state;
    const char *argv[4];
    struct diag diag = {0};
    struct strbuf large = {0};
    struct exec_request request =
        exec_fixture_request(fixture, "relative", argv, "true");
    assert_int_equal(exec_start(fixture->exec, &request, &diag), ERR_INVALID);
    request.dir = exec_fixture_path(fixture, "1");
    request.folder = "relative";
    assert_int_equal(exec_start(fixture->exec, &request, &diag), ERR_INVALID);
    request.folder = "/";
    strbuf_pad(&large, 'x', 128 << 10);
    argv[2] = large.text;
    assert_int_equal(exec_start(fixture->exec, &request, &diag), ERR_LIMIT);
    const char *env[40];
    large.text[large.len - 1] = '\0';
    argv[2] = "true";
    for (size_t ix = 0; ix < ARRAY_COUNT(env); ix++) {
        env[ix] = large.text;
    }
    request.env = env;
    request.env_count = ARRAY_COUNT(env);
    assert_int_equal(exec_start(fixture->exec, &request, &diag), ERR_LIMIT);
    /* Whatever was refused has left nothing behind. */
    request.env_count = 8;
    assert_int_equal(exec_fixture_run(fixture, &request).code, 0);
    strbuf_release(&large);
}

static void a_burst_of_requests_loses_none(void **state)
{
    struct exec_fixture *fixture = *state;
    const char *argv[4];
    const char *env[1];
    struct strbuf large = {0};
    char dir[128];
    strbuf_adds(&large, "LARGE=");
    strbuf_pad(&large, 'x', 8000);
    env[0] = large.text;
    uint64_t first_id = fixture->last_id + 1;
    for (int ix = 0; ix < MANY; ix++) {
        (void)snprintf(dir, sizeof(dir), "%s/m%d", fixture->folder, ix);
        struct exec_request request =
            exec_fixture_request(fixture, dir, argv, "");
        argv[0] = "/bin/true";
        request.argc = 1;
        request.env = env;
        request.env_count = 1;
        exec_fixture_start(fixture, &request);
    }
    for (uint64_t id = first_id; id <= fixture->last_id; id++) {
        (void)exec_fixture_wait(fixture, id, EXEC_STARTED);
        struct exec_report report = exec_fixture_wait(fixture, id, EXEC_ENDED);
        assert_int_equal(report.error, 0);
    }
    assert_int_equal(fixture->count, 2 * MANY);
    strbuf_release(&large);
}

int main(void)
{
#define CASE(name)                                                             \
    cmocka_unit_test_setup_teardown(name,                                      \
                                    exec_fixture_set_up,                       \
                                    exec_fixture_tear_down)
    const struct CMUnitTest tests[] = {
        CASE(an_end_is_recorded),
        CASE(a_session_gets_its_folder_and_environment),
        CASE(a_session_starts_as_a_clean_process),
        CASE(what_cannot_be_started_says_why),
        CASE(a_program_is_searched_in_the_path_of_the_session),
        CASE(prepare_runs_first_and_its_failure_is_the_end),
        CASE(a_session_ends_with_the_lease_of_its_worker),
        CASE(started_twice_it_runs_once),
        CASE(raced_by_two_servers_each_attempt_runs_once),
        CASE(a_fenced_attempt_never_runs),
        CASE(a_live_session_can_be_watched_and_ended),
        CASE(only_the_first_cause_is_recorded),
        CASE(sessions_outlive_their_server),
        CASE(a_program_that_is_no_server_is_refused),
        CASE(a_server_of_another_version_is_refused),
        CASE(impossible_requests_are_refused_at_once),
        CASE(a_burst_of_requests_loses_none),
    };
    return cmocka_run_group_tests_name("exec", tests, NULL, NULL);
}
