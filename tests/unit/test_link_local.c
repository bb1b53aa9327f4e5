/* SPDX-License-Identifier: MIT */
/*
 * A worker on this machine, with a real spawn server. Sessions end when a file
 * is made, so no case depends on how long they take.
 */
#include "work/link_local.h"

#include "base/macros.h"
#include "base/mem.h"
#include "tests/support/calls.h"
#include "tests/unit/exec_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NONCE "0123456789abcdef0123456789abcdef"

enum { TOKEN = 7, PATIENCE_MS = 60000 };

static const char *const variables[] = {"SLUICE_GIT",
                                        "SLUICE_AGENT",
                                        "SLUICE_SANDBOX",
                                        "SLUICE_MAIN"};

struct fixture {
    uv_loop_t loop;
    uv_timer_t timer; /* so that no wait is endless */
    uv_check_t check;
    struct link_local *link;
    struct store_place place;
    char folder[64];
    struct strbuf reports; /* "STARTED;" */
    enum err failed;
    /* Called after each wait of the loop. */
    void (*between)(struct fixture *fixture);
};

static void on_report(void *ctx, const struct work_report *report)
{
    static const char *const words[] = {
        [WORK_STARTED] = "STARTED",
        [WORK_ENDED] = "ENDED",
        [WORK_REFUSED] = "REFUSED",
        [WORK_LOST] = "LOST",
        [WORK_UNKNOWN] = "UNKNOWN",
    };
    struct fixture *fixture = ctx;
    assert_int_equal(report->token, TOKEN);
    strbuf_addf(&fixture->reports, "%s;", words[report->type]);
}

static void on_failed(void *ctx, enum err err, const char *text)
{
    struct fixture *fixture = ctx;
    assert_string_not_equal(text, "");
    fixture->failed = err;
}

static void on_late(uv_timer_t *timer)
{
    (void)timer;
    fail_msg("nothing has happened for a minute");
}

static void on_check(uv_check_t *check)
{
    struct fixture *fixture = check->data;
    if (fixture->between != NULL) {
        fixture->between(fixture);
    }
}

static enum err
open_link(struct fixture *fixture, struct link_local **out, struct diag *diag)
{
    return link_local_open(out,
                           &(struct link_local_options){
                               .uv = &fixture->loop,
                               .place = &fixture->place,
                               .report = on_report,
                               .failed = on_failed,
                               .ctx = fixture,
                           },
                           diag);
}

static void close_link(struct fixture *fixture, struct link_local *link)
{
    link_local_close(link);
    (void)uv_run(&fixture->loop, UV_RUN_NOWAIT);
    link_local_free(link);
}

static int set_up(void **state)
{
    struct fixture *fixture = mem_zalloc(1, sizeof(*fixture));
    struct diag diag = {0};
    (void)snprintf(fixture->folder,
                   sizeof(fixture->folder),
                   "/tmp/sluice-link-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    fixture->place = (struct store_place){
        .address = fixture->folder,
        .shown = fixture->folder,
        .id = fixture->folder,
        .home = fixture->folder,
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(variables); ix++) {
        assert_int_equal(setenv(variables[ix], "/bin/true", 1), 0);
    }
    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    assert_int_equal(uv_timer_init(&fixture->loop, &fixture->timer), 0);
    assert_int_equal(uv_check_init(&fixture->loop, &fixture->check), 0);
    fixture->check.data = fixture;
    assert_int_equal(uv_check_start(&fixture->check, on_check), 0);
    assert_int_equal(open_link(fixture, &fixture->link, &diag), ERR_OK);
    *state = fixture;
    return 0;
}

static int
remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
    (void)stat;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    link_local_close(NULL);
    link_local_free(NULL);
    close_link(fixture, fixture->link);
    uv_close((uv_handle_t *)&fixture->timer, NULL);
    uv_close((uv_handle_t *)&fixture->check, NULL);
    (void)uv_run(&fixture->loop, UV_RUN_NOWAIT);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    (void)nftw(fixture->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    strbuf_release(&fixture->reports);
    mem_free(fixture);
    return 0;
}

/* --- a session ---------------------------------------------------------- */

static const struct work_id session = {
    .token = TOKEN,
    .nonce = NONCE,
    .run = "run",
    .task = "task",
    .name = "1",
};

/* Start one that makes the file `begun`, and waits for the file `go`. */
static void assign(struct fixture *fixture)
{
    worker_assign(
        link_local_worker(fixture->link),
        &(struct work_order){
            .id = session,
            .folder = fixture->folder,
            .shell = "touch begun; until test -e go; do sleep 0.01; done",
            .timeout_ns = EXEC_NEVER,
            .idle_ns = EXEC_NEVER,
            .checkpoint_ns = EXEC_NEVER,
            .grace_ns = 0,
        });
}

static void let_it_end(struct fixture *fixture)
{
    exec_fixture_touch(fixture->folder, "go");
}

static bool has(const struct fixture *fixture, const char *report)
{
    return strstr(strbuf_text(&fixture->reports), report) != NULL;
}

/* Run the loop until there is a report. */
static void await(struct fixture *fixture, const char *report)
{
    assert_int_equal(uv_timer_start(&fixture->timer, on_late, PATIENCE_MS, 0),
                     0);
    while (!has(fixture, report)) {
        struct worker *worker = link_local_worker(fixture->link);
        bool waits = worker_next_ns(worker) == INT64_MAX;
        (void)uv_run(&fixture->loop, waits ? UV_RUN_ONCE : UV_RUN_NOWAIT);
        worker_tick(worker);
    }
    assert_int_equal(uv_timer_stop(&fixture->timer), 0);
    strbuf_clear(&fixture->reports);
}

static void serve(struct fixture *fixture)
{
    struct diag diag = {0};
    if (link_local_serve(fixture->link, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
}

/* Start a session, and wait until it is certain that it runs: a start that is
 * reported may still be under way. */
static void begin_session(struct fixture *fixture)
{
    serve(fixture);
    assign(fixture);
    await(fixture, "STARTED");
    assert_true(exec_fixture_appears(fixture->folder, "begun"));
}

/* The pid of the spawn server, the only child. */
static pid_t server_of(void)
{
    char text[64] = "";
    int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(read(fd, text, sizeof(text) - 1) > 0);
    (void)close(fd);
    pid_t pid = (pid_t)strtol(text, NULL, 10);
    assert_true(pid > 1);
    return pid;
}

/* Kill the spawn server, and wait for its end without reaping it. */
static void kill_server(void)
{
    pid_t pid = server_of();
    siginfo_t info;
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

static void a_session_starts_and_ends(void **state)
{
    struct fixture *fixture = *state;
    serve(fixture);
    assign(fixture);
    await(fixture, "STARTED");
    let_it_end(fixture);
    await(fixture, "ENDED");
}

/* The order is longer than the system allows. */
static void what_can_never_start_is_refused(void **state)
{
    struct fixture *fixture = *state;
    serve(fixture);
    worker_assign(link_local_worker(fixture->link),
                  &(struct work_order){
                      .id = session,
                      .folder = "not absolute",
                      .shell = "true",
                  });
    assert_true(has(fixture, "REFUSED"));
}

/* --- set-up ------------------------------------------------------------- */

static void a_missing_program_is_named(void **state)
{
    struct fixture *fixture = *state;
    for (size_t ix = 0; ix < ARRAY_COUNT(variables); ix++) {
        struct link_local *link = NULL;
        struct diag diag = {0};
        assert_int_equal(setenv(variables[ix], "/none", 1), 0);
        assert_int_equal(open_link(fixture, &link, &diag), ERR_NOT_FOUND);
        assert_null(link);
        assert_non_null(strstr(diag.text, variables[ix]));
        assert_int_equal(setenv(variables[ix], "/bin/true", 1), 0);
    }
}

static void a_server_that_cannot_be_started_is_an_error(void **state)
{
    struct fixture *fixture = *state;
    unsigned failed = 0;
    for (unsigned n = 1; calls_more(); n++) {
        struct link_local *link = NULL;
        struct diag diag = {0};
        assert_int_equal(open_link(fixture, &link, &diag), ERR_OK);
        calls_fail(&(struct calls_fault){.first = n});
        enum err err = link_local_serve(link, &diag);
        if (!calls_end()) {
            assert_int_equal(err, ERR_OK);
        }
        assert_true((err == ERR_OK) == (diag.text[0] == '\0'));
        failed += err != ERR_OK ? 1 : 0;
        close_link(fixture, link);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
    }
    assert_true(failed >= 5);
    serve(fixture);
}

/* --- a server that dies ------------------------------------------------- */

static void a_dead_server_is_replaced(void **state)
{
    struct fixture *fixture = *state;
    begin_session(fixture);
    pid_t first = server_of();
    kill_server();
    assign(fixture); /* it is known */
    await(fixture, "STARTED");
    (void)uv_run(&fixture->loop, UV_RUN_NOWAIT);
    assert_int_not_equal(server_of(), first);
    let_it_end(fixture);
    await(fixture, "ENDED"); /* of the same session, which was adopted */
}

static void assign_once(struct fixture *fixture)
{
    fixture->between = NULL;
    assign(fixture);
}

/* The server has died in the same wait, and has no successor yet. */
static void an_order_without_a_server_is_asked_for_again(void **state)
{
    struct fixture *fixture = *state;
    serve(fixture);
    kill_server();
    fixture->between = assign_once;
    await(fixture, "UNKNOWN");
    assign(fixture);
    await(fixture, "STARTED");
    let_it_end(fixture);
    await(fixture, "ENDED");
}

/* Requests that it has not read are an error of its socket. */
static void a_server_may_die_with_requests(void **state)
{
    struct fixture *fixture = *state;
    serve(fixture);
    assert_int_equal(kill(server_of(), SIGSTOP), 0);
    assign(fixture);
    kill_server();
    await(fixture, "UNKNOWN");
}

static void a_full_socket_is_written_later(void **state)
{
    struct fixture *fixture = *state;
    serve(fixture);
    calls_fail(&(struct calls_fault){
        .only = "send",
        .first = 1,
        .error = EAGAIN,
    });
    assign(fixture);
    assert_true(calls_end());
    await(fixture, "STARTED");
    let_it_end(fixture);
    await(fixture, "ENDED");
}

static void a_server_that_takes_no_more_is_replaced(void **state)
{
    struct fixture *fixture = *state;
    serve(fixture);
    calls_fail(&(struct calls_fault){
        .only = "send",
        .first = 1,
        .error = EAGAIN,
    });
    assign(fixture);
    assert_true(calls_end());
    calls_fail(&(struct calls_fault){.only = "send", .first = 1});
    await(fixture, "UNKNOWN");
    assert_true(calls_end());
    assign(fixture);
    await(fixture, "STARTED");
    let_it_end(fixture);
    await(fixture, "ENDED");
}

static void a_server_that_cannot_be_replaced_is_told(void **state)
{
    struct fixture *fixture = *state;
    serve(fixture);
    kill_server();
    calls_fail(&(struct calls_fault){
        .only = "recv",
        .first = 1,
        .count = 1000,
        .error = CALLS_NOTHING,
    });
    while (fixture->failed == ERR_OK) {
        (void)uv_run(&fixture->loop, UV_RUN_ONCE);
    }
    assert_true(calls_end());
    assert_int_equal(fixture->failed, ERR_UNAVAILABLE);
}

static void a_successor_that_dies_at_once_is_replaced(void **state)
{
    struct fixture *fixture = *state;
    begin_session(fixture);
    kill_server();
    calls_fail(&(struct calls_fault){.only = "uv_poll_init", .first = 1});
    while (!calls_end()) {
        calls_fail(&(struct calls_fault){.only = "uv_poll_init", .first = 1});
        (void)uv_run(&fixture->loop, UV_RUN_ONCE);
    }
    assert_int_equal(fixture->failed, ERR_OK);
    let_it_end(fixture);
    await(fixture, "ENDED");
}

static void close_once(struct fixture *fixture)
{
    fixture->between = NULL;
    link_local_close(fixture->link);
}

static void a_link_may_be_closed_without_a_server(void **state)
{
    struct fixture *fixture = *state;
    struct diag diag = {0};
    serve(fixture);
    kill_server();
    fixture->between = close_once;
    (void)uv_run(&fixture->loop, UV_RUN_ONCE);
    assert_null(fixture->between);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no other one came */
    link_local_free(fixture->link);
    assert_int_equal(open_link(fixture, &fixture->link, &diag), ERR_OK);
}

/* --- sessions of another process ---------------------------------------- */

/* Another worker, without a server of its own. */
static struct link_local *open_another(struct fixture *fixture)
{
    struct link_local *link = NULL;
    struct diag diag = {0};
    assert_int_equal(open_link(fixture, &link, &diag), ERR_OK);
    return link;
}

static void ask(struct link_local *link)
{
    struct worker *worker = link_local_worker(link);
    struct work_mark mark = worker_mark(worker);
    worker_ask(worker, &session, &mark, true, WORK_RUN);
}

static void an_adopted_session_is_watched(void **state)
{
    struct fixture *fixture = *state;
    begin_session(fixture);
    struct link_local *link = open_another(fixture);
    ask(link);
    await(fixture, "STARTED");
    assert_true(worker_next_ns(link_local_worker(link)) == INT64_MAX);
    close_link(fixture, link); /* with its watch */
    link = open_another(fixture);
    ask(link);
    let_it_end(fixture);
    await(fixture, "ENDED");
    close_link(fixture, link);
}

/* Whatever fails, it is neither lost nor forgotten. */
static void what_cannot_be_watched_is_looked_at_again(void **state)
{
    struct fixture *fixture = *state;
    begin_session(fixture);
    for (unsigned n = 1; calls_more(); n++) {
        struct link_local *link = open_another(fixture);
        struct worker *worker = link_local_worker(link);
        calls_fail(&(struct calls_fault){.first = n});
        ask(link);
        (void)calls_end();
        if (!has(fixture, "STARTED") && worker_next_ns(worker) == INT64_MAX) {
            fail_msg("%s: %s", calls_failed(), strbuf_text(&fixture->reports));
        }
        strbuf_clear(&fixture->reports);
        worker_respawn(worker); /* it looks again */
        ask(link);
        assert_true(has(fixture, "STARTED"));
        assert_false(has(fixture, "LOST"));
        strbuf_clear(&fixture->reports);
        close_link(fixture, link);
    }
    let_it_end(fixture);
    await(fixture, "ENDED");
}

static void few_descriptors_are_kept_for_the_rest(void **state)
{
    struct fixture *fixture = *state;
    struct rlimit files;
    begin_session(fixture);
    struct link_local *link = open_another(fixture);
    int free_fd = dup(0);
    (void)close(free_fd);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    struct rlimit few = {.rlim_cur = (rlim_t)free_fd + 10,
                         .rlim_max = files.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    ask(link);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_true(has(fixture, "STARTED"));
    assert_true(worker_next_ns(link_local_worker(link)) != INT64_MAX);
    int fd = dup(0);
    assert_int_equal(fd, free_fd); /* nothing stays open */
    (void)close(fd);
    close_link(fixture, link);
    let_it_end(fixture);
    await(fixture, "ENDED");
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_session_starts_and_ends),
        CASE(what_can_never_start_is_refused),
        CASE(a_missing_program_is_named),
        CASE(a_server_that_cannot_be_started_is_an_error),
        CASE(a_dead_server_is_replaced),
        CASE(an_order_without_a_server_is_asked_for_again),
        CASE(a_server_may_die_with_requests),
        CASE(a_full_socket_is_written_later),
        CASE(a_server_that_takes_no_more_is_replaced),
        CASE(a_server_that_cannot_be_replaced_is_told),
        CASE(a_successor_that_dies_at_once_is_replaced),
        CASE(a_link_may_be_closed_without_a_server),
        CASE(an_adopted_session_is_watched),
        CASE(what_cannot_be_watched_is_looked_at_again),
        CASE(few_descriptors_are_kept_for_the_rest),
    };
    return cmocka_run_group_tests_name("link_local", tests, NULL, NULL);
}
