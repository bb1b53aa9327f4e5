/* SPDX-License-Identifier: MIT */
/*
 * A shim that is done with an attempt and takes another one: what the second
 * one may not notice, and what becomes of it when the shim, the server or an
 * order comes in between.
 *
 * A shim waits for a second. On a busy machine it may be gone by then, so a
 * test that needs one to be used again tries a few times.
 */
#include "base/macros.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "exec/exec.h"
#include "tests/unit/exec_fixture.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { TRIES = 20, ROUNDS = 200 };

/* A request in a new directory. */
static struct exec_request *
make(struct exec_made *made, struct exec_fixture *fixture, const char *command)
{
    char name[32];
    (void)snprintf(name,
                   sizeof(name),
                   "%llu",
                   (unsigned long long)fixture->last_id + 1);
    return exec_fixture_make(fixture, made, name, command);
}

/* Order the end of the session that was reported to have started. */
static void cancel(const struct exec_report *report)
{
    assert_int_equal(exec_signal(report->pid,
                                 report->start_ticks,
                                 report->id,
                                 EXEC_CANCEL,
                                 NULL),
                     ERR_OK);
}

/* Run a short session; its shim is waiting afterwards. */
static struct exec_report run_first(struct exec_fixture *fixture)
{
    struct exec_made made;
    struct exec_request *request = make(&made, fixture, "echo first");
    assert_int_equal(exec_fixture_run(fixture, request).code, 0);
    return exec_fixture_wait(fixture, request->id, EXEC_ENDED);
}

/* Run one, and start this one with the same shim. */
static struct exec_report start_second(struct exec_fixture *fixture,
                                       struct exec_made *made,
                                       const char *command)
{
    for (int ix = 0; ix < TRIES; ix++) {
        struct exec_report first = run_first(fixture);
        struct exec_request *request = make(made, fixture, command);
        exec_fixture_start(fixture, request);
        struct exec_report second =
            exec_fixture_wait(fixture, request->id, EXEC_STARTED);
        if (second.pid == first.pid) {
            assert_true(second.start_ticks == first.start_ticks);
            return second;
        }
        (void)!exec_signal(second.pid, /* it may have ended */
                           second.start_ticks,
                           second.id,
                           EXEC_CANCEL,
                           NULL);
        (void)exec_fixture_end(fixture, request);
    }
    fail_msg("no shim was used again");
    return (struct exec_report){0};
}

static const char gated[] =
    "touch ${SLUICE_RESULT%/*}/ready;"
    " until [ -e ${SLUICE_RESULT%/*}/go ]; do sleep 0.02; done; exit 3";
static const char waiting[] =
    "touch ${SLUICE_RESULT%/*}/ready; sleep 1000 & wait";

static void the_second_session_has_nothing_of_the_first(void **state)
{
    struct exec_fixture *fixture = *state;
    struct exec_made made;
    (void)start_second(fixture,
                       &made,
                       "echo $A; echo $SLUICE_RESULT; trap; ls /proc/$$/fd;"
                       " grep SigBlk /proc/self/status; exit 7");
    struct attempt_found found = exec_fixture_end(fixture, &made.request);
    assert_int_equal(found.state, ATTEMPT_ENDED);
    assert_int_equal(found.exit.code, 7);
    assert_true(found.exit.log_bytes > 0);
    char *log = exec_fixture_slurp(made.dir, "log");
    char wanted[512];
    (void)snprintf(wanted,
                   sizeof(wanted),
                   "\n%s/result\n0\n1\n2\nSigBlk:\t0000000000000000\n",
                   made.dir);
    assert_string_equal(log, wanted);
    mem_free(log);
}

static void a_live_second_session_is_found_as_any_other(void **state)
{
    struct exec_fixture *fixture = *state;
    struct exec_made made;
    struct attempt_found found;
    struct exec_report report = start_second(fixture, &made, waiting);
    assert_true(exec_fixture_appears(made.dir, "ready"));
    assert_int_equal(attempt_inspect(made.dir, fixture->boot_id, &found, NULL),
                     ERR_OK);
    assert_int_equal(found.state, ATTEMPT_LIVE);
    assert_int_equal(found.pid, report.pid);
    assert_true(found.start_ticks == report.start_ticks);
    cancel(&report);
    found = exec_fixture_end(fixture, &made.request);
    assert_int_equal(found.exit.cause, ATTEMPT_CANCELLED);
}

/* Count the open files of a process, by what they are. */
struct files {
    uint32_t sockets;
    uint32_t own;   /* below this directory */
    uint32_t other; /* below the folder, and not */
};

static struct files
files_of(const struct exec_fixture *fixture, int64_t pid, const char *dir)
{
    struct files files = {0};
    for (int fd = 0; fd < 64; fd++) {
        char path[64];
        char target[256] = {0};
        (void)snprintf(path,
                       sizeof(path),
                       "/proc/%lld/fd/%d",
                       (long long)pid,
                       fd);
        if (readlink(path, target, sizeof(target) - 1) < 0) {
            continue;
        }
        bool own = strncmp(target, dir, strlen(dir)) == 0;
        size_t len = strlen(fixture->folder);
        files.sockets += strncmp(target, "socket:", 7) == 0 ? 1 : 0;
        files.own += own ? 1 : 0;
        files.other += !own && strncmp(target, fixture->folder, len) == 0;
    }
    return files;
}

static void a_shim_has_nothing_open_of_other_attempts(void **state)
{
    struct exec_fixture *fixture = *state;
    struct exec_made made[2];
    for (int ix = 0; ix < 2; ix++) { /* the second has never had another */
        struct exec_report report;
        if (ix == 0) {
            report = start_second(fixture, &made[0], waiting);
        } else {
            struct exec_request *request = make(&made[1], fixture, waiting);
            exec_fixture_start(fixture, request);
            report = exec_fixture_wait(fixture, request->id, EXEC_STARTED);
        }
        assert_true(exec_fixture_appears(made[ix].dir, "ready"));
        struct files files = files_of(fixture, report.pid, made[ix].dir);
        assert_int_equal(files.sockets, 1);
        assert_int_equal(files.own, 3); /* the directory, lock, log */
        assert_int_equal(files.other, 0);
    }
    for (int ix = 0; ix < 2; ix++) {
        struct exec_report report =
            exec_fixture_wait(fixture, made[ix].request.id, EXEC_STARTED);
        cancel(&report);
        (void)exec_fixture_end(fixture, &made[ix].request);
    }
}

static void an_order_about_the_first_does_not_reach_the_second(void **state)
{
    static const enum exec_end ends[] = {EXEC_CANCEL,
                                         EXEC_STOP,
                                         EXEC_CHECKPOINT};
    struct exec_fixture *fixture = *state;
    struct exec_made made;
    struct exec_report report = start_second(fixture, &made, gated);
    assert_true(exec_fixture_appears(made.dir, "ready"));
    for (size_t ix = 0; ix < ARRAY_COUNT(ends); ix++) {
        assert_int_equal(exec_signal(report.pid,
                                     report.start_ticks,
                                     report.id - 1,
                                     ends[ix],
                                     NULL),
                         ERR_OK);
    }
    struct timespec pause = {.tv_nsec = 50 * EXEC_FIXTURE_MS};
    (void)nanosleep(&pause, NULL); /* the orders are taken before the end */
    exec_fixture_touch(made.dir, "go");
    struct attempt_found found = exec_fixture_end(fixture, &made.request);
    assert_int_equal(found.exit.cause, ATTEMPT_EXIT);
    assert_int_equal(found.exit.code, 3);
}

/* A signal that is not a real-time one is dropped while another one like it is
 * pending. */
static void of_two_orders_at_once_none_is_dropped(void **state)
{
    static const enum exec_end ends[] = {EXEC_CANCEL, EXEC_STOP};
    static const enum attempt_cause causes[] = {ATTEMPT_CANCELLED,
                                                ATTEMPT_STOPPED};
    struct exec_fixture *fixture = *state;
    for (int round = 0; round < TRIES; round++) {
        struct exec_made made;
        struct exec_report report = start_second(fixture, &made, waiting);
        for (uint64_t id = report.id - 1; id <= report.id; id++) {
            assert_int_equal(exec_signal(report.pid,
                                         report.start_ticks,
                                         id,
                                         ends[round % 2],
                                         NULL),
                             ERR_OK);
        }
        struct attempt_found found = exec_fixture_end(fixture, &made.request);
        assert_int_equal(found.state, ATTEMPT_ENDED);
        assert_int_equal(found.exit.cause, causes[round % 2]);
        fixture->count = 0;
    }
}

static void after_an_end_that_is_not_plain_another_shim_is_taken(void **state)
{
    static const char *const commands[] = {
        "setsid sleep 1000 & exit 0", /* something is left behind */
        "sleep 1000",                 /* ended by its timeout */
    };
    struct exec_fixture *fixture = *state;
    for (size_t ix = 0; ix < ARRAY_COUNT(commands); ix++) {
        struct exec_made made;
        struct exec_request *request = make(&made, fixture, commands[ix]);
        request->timeout_ns = 200 * EXEC_FIXTURE_MS;
        request->grace_ns = 20 * EXEC_FIXTURE_MS;
        (void)exec_fixture_run(fixture, request);
        struct exec_report first =
            exec_fixture_wait(fixture, request->id, EXEC_ENDED);
        assert_true(run_first(fixture).pid != first.pid);
    }
}

static void a_request_too_long_to_be_sent_on_is_carried_out(void **state)
{
    struct exec_fixture *fixture = *state;
    struct exec_made made;
    struct strbuf text = {0};
    strbuf_adds(&text, "LONG=");
    strbuf_pad(&text, 'x', 40000);
    const char *env[] = {strbuf_text(&text)};
    struct exec_report first = run_first(fixture);
    struct exec_request *request =
        make(&made, fixture, "[ ${#LONG} = 40000 ] && exit 9");
    request->env = env;
    request->env_count = 1;
    assert_int_equal(exec_fixture_run(fixture, request).code, 9);
    struct exec_report second =
        exec_fixture_wait(fixture, request->id, EXEC_STARTED);
    assert_true(second.pid != first.pid);
    strbuf_release(&text);
}

static void a_waiting_shim_may_be_killed(void **state)
{
    static const int signals[] = {SIGKILL, SIGTERM, SIGINT, SIGSTOP};
    struct exec_fixture *fixture = *state;
    for (int round = 0; round < ROUNDS; round++) {
        struct exec_report first = run_first(fixture);
        int number = signals[round % (int)ARRAY_COUNT(signals)];
        (void)kill((pid_t)first.pid, number);
        /* Whoever gets it, and whenever the other one dies: it has run, or
         * it has not begun and may be asked for again. */
        struct exec_made made;
        struct exec_request *request =
            make(&made, fixture, "echo >>${SLUICE_RESULT%/*}/witness");
        enum attempt_state found = ATTEMPT_NEVER;
        for (int ix = 0; ix < TRIES && found == ATTEMPT_NEVER; ix++) {
            exec_fixture_start(fixture, request);
            found = exec_fixture_end(fixture, request).state;
            request->id = ++fixture->last_id;
        }
        /* Killed when it had just begun, it is lost; stopped it is not. */
        char *witness = exec_fixture_slurp(made.dir, "witness");
        if (found != ATTEMPT_ENDED && number != SIGKILL) {
            fail_msg("signal %d: state %d", number, (int)found);
        }
        /* Stopped between the opening and the writing, it is empty. */
        assert_true(witness == NULL || witness[0] == '\0' ||
                    strcmp(witness, "\n") == 0);
        mem_free(witness);
        fixture->count = 0;
    }
}

/* Wait until a process is gone. */
static void expect_gone(const struct exec_report *report)
{
    int fd = -1;
    if (exec_watch(report->pid, report->start_ticks, &fd, NULL) != ERR_OK) {
        return;
    }
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&poll_fd, 1, 30000), 1);
    assert_int_equal(close(fd), 0);
}

static void a_waiting_shim_does_not_wait_for_long(void **state)
{
    struct exec_report first = run_first(*state);
    expect_gone(&first);
    struct exec_report second = run_first(*state);
    assert_true(second.pid != first.pid);
}

static void a_waiting_shim_ends_with_its_server(void **state)
{
    struct exec_fixture *fixture = *state;
    struct exec_report first = run_first(fixture);
    exec_close(fixture->exec);
    expect_gone(&first);
    fixture->exec = exec_fixture_server();
}

/* The pid of the parent of a process. */
static pid_t parent_of(int64_t pid)
{
    char path[64];
    char text[512] = {0};
    (void)snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
    assert_int_equal(fclose(file), 0);
    const char *end = strrchr(text, ')');
    assert_non_null(end);
    return (pid_t)strtol(end + 4, NULL, 10); /* ") S PARENT" */
}

/*
 * Whoever has adopted a shim waits for its end. So a server whose client has
 * died must not give it another session, even when the request came before.
 */
static void a_server_without_a_client_uses_no_shim_again(void **state)
{
    struct exec_fixture *fixture = *state;
    struct exec_made made[2];
    struct exec_report report;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    exec_close(fixture->exec);
    fixture->exec = NULL;
    for (int ix = 0; ix < 2; ix++) {
        (void)make(&made[ix], fixture, gated);
    }
    pid_t client = fork();
    if (client == 0) {
        fixture->exec = exec_fixture_server();
        exec_fixture_start(fixture, &made[0].request);
        report = exec_fixture_wait(fixture, made[0].request.id, EXEC_STARTED);
        (void)kill(parent_of(report.pid), SIGSTOP);
        exec_fixture_start(fixture, &made[1].request);
        (void)!write(ends[1], &report, sizeof(report));
        for (;;) {
            (void)pause();
        }
    }
    assert_true(client > 0);
    assert_int_equal(read(ends[0], &report, sizeof(report)), sizeof(report));
    pid_t server = parent_of(report.pid);
    assert_int_equal(kill(client, SIGKILL), 0);
    assert_int_equal(waitpid(client, NULL, 0), client);
    exec_fixture_touch(made[0].dir, "go");
    assert_true(exec_fixture_appears(made[0].dir, "exit"));
    struct timespec pause = {.tv_nsec = 50 * EXEC_FIXTURE_MS};
    (void)nanosleep(&pause, NULL); /* it waits for another request now */
    (void)kill(server, SIGCONT);
    assert_true(exec_fixture_appears(made[1].dir, "log"));
    struct attempt_found found;
    assert_int_equal(
        attempt_inspect(made[1].dir, fixture->boot_id, &found, NULL),
        ERR_OK);
    assert_int_equal(found.state, ATTEMPT_LIVE);
    assert_true(found.pid != report.pid);
    expect_gone(&report);
    exec_fixture_touch(made[1].dir, "go");
    assert_true(exec_fixture_appears(made[1].dir, "exit"));
    assert_int_equal(close(ends[0]) + close(ends[1]), 0);
    fixture->exec = exec_fixture_server();
}

/* Many at once, again and again: none is lost, none runs twice. */
static void many_short_ones_share_few_shims(void **state)
{
    enum { COUNT = 400, AT_ONCE = 20 };
    struct exec_fixture *fixture = *state;
    static struct exec_made made[COUNT];
    for (uint32_t ix = 0; ix < COUNT; ix++) {
        exec_fixture_start(
            fixture,
            make(&made[ix], fixture, "echo $$ >>${SLUICE_RESULT%/*}/witness"));
        if (ix >= AT_ONCE) {
            (void)exec_fixture_end(fixture, &made[ix - AT_ONCE].request);
        }
    }
    for (uint32_t ix = 0; ix < COUNT; ix++) {
        struct attempt_found found =
            exec_fixture_end(fixture, &made[ix].request);
        assert_int_equal(found.state, ATTEMPT_ENDED);
        assert_int_equal(found.exit.code, 0);
        char *witness = exec_fixture_slurp(made[ix].dir, "witness");
        assert_non_null(witness);
        assert_ptr_equal(strchr(witness, '\n') + 1, witness + strlen(witness));
        mem_free(witness);
    }
    uint32_t ends = 0;
    for (uint32_t ix = 0; ix < fixture->count; ix++) {
        ends += fixture->reports[ix].type == EXEC_ENDED ? 1 : 0;
    }
    assert_int_equal(ends, COUNT);
}

int main(void)
{
#define CASE(name)                                                             \
    cmocka_unit_test_setup_teardown(name,                                      \
                                    exec_fixture_set_up,                       \
                                    exec_fixture_tear_down)
    const struct CMUnitTest tests[] = {
        CASE(the_second_session_has_nothing_of_the_first),
        CASE(a_live_second_session_is_found_as_any_other),
        CASE(a_shim_has_nothing_open_of_other_attempts),
        CASE(an_order_about_the_first_does_not_reach_the_second),
        CASE(of_two_orders_at_once_none_is_dropped),
        CASE(after_an_end_that_is_not_plain_another_shim_is_taken),
        CASE(a_request_too_long_to_be_sent_on_is_carried_out),
        CASE(a_waiting_shim_may_be_killed),
        CASE(a_waiting_shim_does_not_wait_for_long),
        CASE(a_waiting_shim_ends_with_its_server),
        CASE(a_server_without_a_client_uses_no_shim_again),
        CASE(many_short_ones_share_few_shims),
    };
    return cmocka_run_group_tests_name("exec_reuse", tests, NULL, NULL);
}
