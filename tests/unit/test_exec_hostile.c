/* SPDX-License-Identifier: MIT */
/*
 * Sessions that do not want to end (tests/support/hostile.c). Each is given
 * 150 ms, then 300 ms of grace. All of its processes must be gone when its end
 * is reported, and that within the grace period and one second.
 *
 * On a busy machine a session may be ended before its processes are there, or
 * its end may take longer. That shows nothing, so it is tried again, with twice
 * the time.
 */
#include "base/mem.h"
#include "base/strbuf.h"
#include "exec/record.h"
#include "tests/unit/exec_fixture.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define TIMEOUT_NS (150 * EXEC_FIXTURE_MS)
/* A loaded machine may be slow; the promise itself is one second. */
#define SLACK_NS (2 * EXEC_FIXTURE_SECOND)
/* So long a shim waits for the death of what it has killed. */
#define DEATH_NS (900 * EXEC_FIXTURE_MS)

enum { TRIES = 6, LOOKS = 3000 };

/* Whether the process of this line of the witness file still runs. */
static bool is_alive(const char *line, size_t len)
{
    uint64_t then[RECORD_STAT_COUNT];
    uint64_t now[RECORD_STAT_COUNT];
    assert_true(record_read_stat(line, len, then));
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%ld", strtol(line, NULL, 10));
    char *text = exec_fixture_slurp(path, "stat");
    bool same = text != NULL && record_read_stat(text, strlen(text), now) &&
                now[RECORD_STAT_START_TICKS] == then[RECORD_STAT_START_TICKS];
    /* A zombie is dead; whoever has inherited it will notice. */
    const char *state = text != NULL ? strrchr(text, ')') : NULL;
    bool dead = state != NULL && (state[2] == 'Z' || state[2] == 'X');
    mem_free(text);
    return same && !dead;
}

/* Processes that marked themselves in the witness file, and still run. */
static int
count_alive(struct exec_fixture *fixture, const char *name, int *marked_out)
{
    int alive = 0;
    int marked = 0;
    char *text = exec_fixture_slurp(fixture->folder, name);
    for (char *line = text; line != NULL && *line != '\0'; marked++) {
        char *end = strchr(line, '\n');
        assert_non_null(end);
        alive += is_alive(line, (size_t)(end - line)) ? 1 : 0;
        line = end + 1;
    }
    mem_free(text);
    *marked_out = marked;
    return alive;
}

/* A request for a hostile session; argv has room for four. */
static struct exec_request
hostile(struct exec_fixture *fixture, const char *dir, const char **argv)
{
    struct exec_request request =
        exec_fixture_request(fixture, dir, argv, NULL);
    argv[0] = getenv("SLUICE_HOSTILE");
    assert_non_null(argv[0]);
    argv[1] = strrchr(dir, '/') + 1;
    argv[2] = exec_fixture_path(fixture, "witness");
    request.log_bytes_max = 1 << 20;
    return request;
}

/*
 * None of its processes is left; how many there were. When its end has taken
 * so long that the shim may have given up, those that it has killed may not
 * have had a CPU to die on yet.
 */
static int expect_none_left(struct exec_fixture *fixture,
                            const char *kind,
                            int64_t took_ns)
{
    int marked = 0;
    int alive = count_alive(fixture, "witness", &marked);
    for (int ix = 0; alive > 0 && took_ns >= DEATH_NS && ix < LOOKS; ix++) {
        struct timespec pause = {.tv_nsec = 10 * EXEC_FIXTURE_MS};
        (void)nanosleep(&pause, NULL);
        alive = count_alive(fixture, "witness", &marked);
    }
    if (alive > 0) {
        fail_msg("%s: %d of %d processes are alive", kind, alive, marked);
    }
    (void)unlink(exec_fixture_path(fixture, "witness"));
    return marked;
}

/* Run one kind to its end; false: the machine was too slow. */
static bool ends_in_time(struct exec_fixture *fixture,
                         struct exec_request *request,
                         enum attempt_cause cause,
                         int least)
{
    const char *kind = request->argv[1];
    struct attempt_exit exit = exec_fixture_run(fixture, request);
    if (exit.cause != cause) {
        fail_msg("%s: cause %s", kind, record_cause_name(exit.cause));
    }
    int64_t took_ns = exit.ended_ns - exit.begun_ns;
    int marked = expect_none_left(fixture, kind, took_ns);
    int64_t timeout_ns = cause == ATTEMPT_TIMEOUT ? request->timeout_ns : 0;
    int64_t longest_ns = timeout_ns + request->grace_ns + EXEC_FIXTURE_SECOND +
                         2 * EXEC_FIXTURE_SECOND + SLACK_NS;
    if (marked < least || took_ns > longest_ns) {
        print_message("# %s: %d processes, took %lld ms\n",
                      kind,
                      marked,
                      (long long)(took_ns / EXEC_FIXTURE_MS));
        return false;
    }
    return true;
}

/* Run one kind to its end, with more time if need be. */
static void expect_end(struct exec_fixture *fixture,
                       const char *kind,
                       enum attempt_cause cause,
                       int least)
{
    struct strbuf dir = {0};
    struct strbuf other = {0};
    const char *argv[4];
    strbuf_adds(&dir, exec_fixture_path(fixture, kind));
    strbuf_addf(&other, "%s-again-", dir.text);
    bool good = false;
    for (int ix = 0; !good && ix < TRIES; ix++) {
        if (ix > 0) { /* out of the way */
            strbuf_adds(&other, "x");
            assert_int_equal(rename(dir.text, other.text), 0);
        }
        struct exec_request request = hostile(fixture, dir.text, argv);
        if (cause == ATTEMPT_TIMEOUT) { /* the others end by themselves */
            request.timeout_ns = TIMEOUT_NS << ix;
        }
        good = ends_in_time(fixture, &request, cause, least);
    }
    if (!good) {
        fail_msg("%s: not all of it was there, or it took too long", kind);
    }
    strbuf_release(&other);
    strbuf_release(&dir);
}

static void those_that_run_on_are_ended_at_the_timeout(void **state)
{
    static const struct {
        const char *kind;
        int processes;
    } kinds[] = {
        {"clear-environment", 2},
        {"close-fds", 1},
        {"double-fork", 2},
        {"exec-other", 1},
        {"ignore-term", 1},
        {"kill-parent", 1},
        {"leave-folder", 1},
        {"make-zombies", 2},
        {"own-group", 3},
        {"own-session", 2},
        {"rename-self", 2},
        {"stop-child", 2},
        {"stop-parent", 1},
        {"stop-self", 1},
        {"trap-all", 2},
        {"use-threads", 2},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(kinds); ix++) {
        expect_end(*state,
                   kinds[ix].kind,
                   ATTEMPT_TIMEOUT,
                   kinds[ix].processes);
    }
}

static void those_that_leave_something_behind_are_cleaned_up(void **state)
{
    static const char *const kinds[] = {
        "daemon",
        "hard-daemon",
        "keep-stdout",
        "no-hangup",
        "vanish-group",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(kinds); ix++) {
        expect_end(*state, kinds[ix], ATTEMPT_EXIT, 2);
    }
}

static void storms_of_forks_are_ended(void **state)
{
    expect_end(*state, "fork-storm", ATTEMPT_TIMEOUT, 50);
    expect_end(*state, "fork-hop", ATTEMPT_EXIT, 1);
}

static void a_flood_keeps_to_the_limit_of_the_log(void **state)
{
    struct exec_fixture *fixture = *state;
    struct stat stat_now;
    expect_end(fixture, "flood", ATTEMPT_TIMEOUT, 1);
    assert_int_equal(stat(exec_fixture_path(fixture, "flood/log"), &stat_now),
                     0);
    /* 1 MiB, in blocks of 512 bytes, and what the file system adds. */
    assert_true(stat_now.st_blocks <= 2048 + 256);
}

static void what_outlives_its_shim_is_found_by_its_marker(void **state)
{
    struct exec_fixture *fixture = *state;
    const char *argv[4];
    struct strbuf dir = {0};
    int marked = 0;
    strbuf_adds(&dir, exec_fixture_path(fixture, "murder-parent"));
    struct exec_request request = hostile(fixture, dir.text, argv);
    exec_fixture_start(fixture, &request);
    struct attempt_found found = exec_fixture_end(fixture, &request);
    assert_int_equal(found.state, ATTEMPT_LOST);
    assert_int_equal(count_alive(fixture, "witness", &marked), 2);
    /* One that is almost named so is not touched. */
    struct strbuf other = {0};
    strbuf_addf(&other, "%s/x", dir.text);
    assert_int_equal(attempt_kill_strays(other.text), 0);
    other.text[other.len - 3] = '\0';
    assert_int_equal(attempt_kill_strays(other.text), 0);
    assert_int_equal(count_alive(fixture, "witness", &marked), 2);
    /* Those that die late are not counted. */
    assert_true(attempt_kill_strays(dir.text) <= 2);
    (void)expect_none_left(fixture, "murder-parent", DEATH_NS);
    assert_int_equal(attempt_kill_strays(dir.text), 0);
    strbuf_release(&other);
    strbuf_release(&dir);
}

/* A stray that is executing a program has no environment for a moment, and is
 * busy. Here that takes long; it may take too long for once. */
static void a_stray_that_executes_a_program_is_waited_for(void **state)
{
    struct exec_fixture *fixture = *state;
    struct strbuf script = {0};
    const char *dir = exec_fixture_path(fixture, "lost");
    strbuf_addf(&script,
                "touch %s/busy; i=0; while [ $i -lt 50000 ]; do i=$((i + 1));"
                " done; SLUICE_RESULT=%s/result exec sleep 1000",
                fixture->folder,
                dir);
    const char *environment[] = {NULL};
    uint32_t ended = 0;
    for (int ix = 0; ended == 0 && ix < TRIES; ix++) {
        (void)unlink(exec_fixture_path(fixture, "busy"));
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            (void)execle("/bin/sh", "sh", "-c", script.text, NULL, environment);
            _exit(127);
        }
        assert_true(exec_fixture_appears(fixture->folder, "busy"));
        ended = attempt_kill_strays(exec_fixture_path(fixture, "lost"));
        (void)kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    }
    assert_int_equal(ended, 1);
    strbuf_release(&script);
}

/* A session of root can change its user: what it leaves is still its own. */
static void a_stray_of_another_user_is_killed_by_root(void **state)
{
    struct exec_fixture *fixture = *state;
    struct strbuf marker = {0};
    const char *dir = exec_fixture_path(fixture, "lost");
    strbuf_addf(&marker, "SLUICE_RESULT=%s/result", dir);
    const char *environment[] = {marker.text, NULL};
    if (geteuid() != 0) {
        strbuf_release(&marker);
        skip();
    }
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (setuid(65534) == 0) {
            (void)execle("/bin/sleep", "sleep", "1000", NULL, environment);
        }
        _exit(127);
    }
    dir = exec_fixture_path(fixture, "lost");
    while (!attempt_has_strays(dir) && waitpid(pid, NULL, WNOHANG) == 0) {
    }
    assert_true(attempt_has_strays(dir));
    (void)attempt_kill_strays(dir); /* counts what dies at once */
    (void)kill(pid, SIGTERM);       /* too late, unless it was not found */
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_false(attempt_has_strays(dir));
    strbuf_release(&marker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name)                                                             \
    cmocka_unit_test_setup_teardown(name,                                      \
                                    exec_fixture_set_up,                       \
                                    exec_fixture_tear_down)
        CASE(those_that_run_on_are_ended_at_the_timeout),
        CASE(those_that_leave_something_behind_are_cleaned_up),
        CASE(storms_of_forks_are_ended),
        CASE(a_flood_keeps_to_the_limit_of_the_log),
        CASE(what_outlives_its_shim_is_found_by_its_marker),
        CASE(a_stray_that_executes_a_program_is_waited_for),
        CASE(a_stray_of_another_user_is_killed_by_root),
    };
    return cmocka_run_group_tests_name("exec_hostile", tests, NULL, NULL);
}
