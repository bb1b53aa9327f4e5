/* SPDX-License-Identifier: MIT */
/* Clients are sockets of this process. What they have sent is there before the
 * loop looks for it, so nothing has to be waited for. */
#include "work/control_socket.h"

#include "base/macros.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "tests/support/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include <cmocka.h>

enum { READ_BYTES = 64 << 10, CLIENTS_MAX = 1000 };

struct fixture {
    uv_loop_t loop;
    struct control_socket *control;
    struct strbuf requests; /* "ID JSON;" */
    char dir[64];
    char path[96];
};

static void
on_request(void *ctx, uint64_t id, const char *who, const char *json)
{
    struct fixture *fixture = ctx;
    assert_non_null(strstr(who, "pid"));
    strbuf_addf(&fixture->requests, "%llu %s;", (unsigned long long)id, json);
}

static enum err open_socket(struct fixture *fixture, struct diag *diag)
{
    return control_socket_open(&fixture->control,
                               &fixture->loop,
                               fixture->dir,
                               on_request,
                               fixture,
                               diag);
}

/* Do all that can be done now. */
static void run(struct fixture *fixture)
{
    for (int turn = 0; turn < 8; turn++) {
        (void)uv_run(&fixture->loop, UV_RUN_NOWAIT);
    }
}

static int set_up(void **state)
{
    struct fixture *fixture = mem_zalloc(1, sizeof(*fixture));
    struct diag diag = {0};
    (void)snprintf(fixture->dir, sizeof(fixture->dir), "/tmp/sluice-cs-XXXXXX");
    assert_non_null(mkdtemp(fixture->dir));
    (void)snprintf(fixture->path,
                   sizeof(fixture->path),
                   "%s/socket",
                   fixture->dir);
    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    assert_int_equal(open_socket(fixture, &diag), ERR_OK);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    control_socket_close(NULL);
    control_socket_close(fixture->control);
    run(fixture);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    assert_int_equal(unlink(fixture->path), 0);
    assert_int_equal(rmdir(fixture->dir), 0);
    strbuf_release(&fixture->requests);
    mem_free(fixture);
    return 0;
}

static int connect_client(const struct fixture *fixture)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    (void)snprintf(address.sun_path,
                   sizeof(address.sun_path),
                   "%s",
                   fixture->path);
    assert_int_equal(
        connect(fd, (const struct sockaddr *)&address, sizeof(address)),
        0);
    return fd;
}

static void put(int fd, const char *text)
{
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* What has come; "": the connection is closed; "-": nothing. */
static const char *take(int fd)
{
    static char text[64];
    ssize_t len = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);
    if (len < 0 && errno == EAGAIN) {
        return "-";
    }
    text[len > 0 ? len : 0] = '\0';
    return text;
}

#define REQUESTED(fixture, expected)                                           \
    do {                                                                       \
        run(fixture);                                                          \
        assert_string_equal(strbuf_text(&(fixture)->requests), expected);      \
        strbuf_clear(&(fixture)->requests);                                    \
    } while (0)

/* A new client gets an answer to its request `id`. */
static void assert_serves(struct fixture *fixture, uint64_t id)
{
    char expected[32];
    int fd = connect_client(fixture);
    put(fd, "hello\n");
    (void)snprintf(expected,
                   sizeof(expected),
                   "%llu hello;",
                   (unsigned long long)id);
    REQUESTED(fixture, expected);
    control_socket_answer(fixture->control, id, "yes");
    run(fixture);
    assert_string_equal(take(fd), "yes\n");
    (void)close(fd);
    run(fixture);
}

static void requests_of_a_client_come_one_by_one(void **state)
{
    struct fixture *fixture = *state;
    int fd = connect_client(fixture);
    put(fd, "one\ntwo\nth");
    REQUESTED(fixture, "1 one;");
    control_socket_answer(fixture->control, 1, "first");
    REQUESTED(fixture, "2 two;");
    assert_string_equal(take(fd), "first\n");
    control_socket_answer(fixture->control, 2, "second");
    put(fd, "ree\n");
    REQUESTED(fixture, "3 three;");
    assert_string_equal(take(fd), "second\n");
    (void)close(fd);
}

static void answers_may_come_in_any_order(void **state)
{
    struct fixture *fixture = *state;
    int fds[3];
    for (size_t ix = 0; ix < ARRAY_COUNT(fds); ix++) {
        fds[ix] = connect_client(fixture);
        put(fds[ix], "x\n");
        run(fixture);
    }
    control_socket_answer(fixture->control, 2, "second");
    control_socket_answer(fixture->control, 2, "once");
    control_socket_answer(fixture->control, 9, "nobody");
    run(fixture);
    assert_string_equal(take(fds[1]), "second\n");
    (void)close(fds[0]);
    (void)close(fds[1]);
    run(fixture);
    control_socket_answer(fixture->control, 3, "third");
    run(fixture);
    assert_string_equal(take(fds[2]), "third\n");
    (void)close(fds[2]);
}

/* It is gone before or while it is answered, and others go on. */
static void a_client_may_leave(void **state)
{
    struct fixture *fixture = *state;
    int fd = connect_client(fixture);
    put(fd, "one\n");
    REQUESTED(fixture, "1 one;");
    (void)close(fd);
    control_socket_answer(fixture->control, 1, "late");
    run(fixture);
    fd = connect_client(fixture);
    put(fd, "two\n");
    REQUESTED(fixture, "2 two;");
    calls_fail(&(struct calls_fault){.only = "uv_write", .first = 1});
    control_socket_answer(fixture->control, 2, "lost");
    assert_true(calls_end());
    run(fixture);
    assert_string_equal(take(fd), "");
    (void)close(fd);
    fd = connect_client(fixture);
    put(fd, "three\n");
    REQUESTED(fixture, "3 three;");
    calls_fail(&(struct calls_fault){.only = "uv_read_start", .first = 1});
    control_socket_answer(fixture->control, 3, "yes");
    run(fixture);
    assert_true(calls_end());
    control_socket_answer(fixture->control, 3, "again");
    assert_string_equal(take(fd), "yes\n");
    assert_string_equal(take(fd), "");
    (void)close(fd);
    assert_serves(fixture, 4);
}

static void a_client_that_is_gone_is_not_answered(void **state)
{
    struct fixture *fixture = *state;
    int fd = connect_client(fixture);
    put(fd, "one\ntwo\n");
    REQUESTED(fixture, "1 one;");
    calls_fail(&(struct calls_fault){.only = "uv_write", .first = 1});
    control_socket_answer(fixture->control, 1, "lost");
    assert_true(calls_end());
    REQUESTED(fixture, ""); /* its second request does not count */
    (void)close(fd);
    fd = connect_client(fixture);
    put(fd, "three\n");
    REQUESTED(fixture, "2 three;");
    assert_string_equal(take(fd), "-");
    control_socket_close(fixture->control); /* with a client that waits */
    control_socket_answer(fixture->control, 2, "too late");
    run(fixture);
    assert_string_equal(take(fd), "");
    (void)close(fd);
    struct diag diag = {0};
    assert_int_equal(open_socket(fixture, &diag), ERR_OK);
    assert_serves(fixture, 1);
}

static void an_answer_may_be_under_way_at_the_end(void **state)
{
    struct fixture *fixture = *state;
    struct diag diag = {0};
    char *text = mem_zalloc(8 << 20, 1);
    memset(text, 'x', (8 << 20) - 1);
    int fd = connect_client(fixture);
    put(fd, "one\n");
    REQUESTED(fixture, "1 one;");
    control_socket_answer(fixture->control, 1, text); /* more than fits */
    run(fixture);
    control_socket_close(fixture->control);
    run(fixture);
    assert_int_equal(open_socket(fixture, &diag), ERR_OK);
    assert_serves(fixture, 1);
    mem_free(text);
    (void)close(fd);
}

static void a_request_may_fill_a_whole_buffer(void **state)
{
    struct fixture *fixture = *state;
    char *text = mem_zalloc(READ_BYTES + 1, 1);
    memset(text, 'x', READ_BYTES);
    int fd = connect_client(fixture);
    put(fd, text);
    REQUESTED(fixture, "");
    put(fd, "\n");
    run(fixture);
    assert_int_equal(strbuf_text(&fixture->requests)[READ_BYTES + 1], 'x');
    assert_int_equal(strbuf_text(&fixture->requests)[READ_BYTES + 2], ';');
    mem_free(text);
    (void)close(fd);
}

static void an_endless_request_is_cut(void **state)
{
    struct fixture *fixture = *state;
    char bytes[READ_BYTES];
    size_t sent = 0;
    int fd = connect_client(fixture);
    memset(bytes, 'x', sizeof(bytes));
    while (sent <= REQUEST_BYTES_MAX) {
        ssize_t len =
            send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL);
        assert_true(len > 0 || (len < 0 && errno == EAGAIN));
        sent += len > 0 ? (size_t)len : 0;
        (void)uv_run(&fixture->loop, UV_RUN_NOWAIT);
    }
    REQUESTED(fixture, "");
    assert_string_equal(take(fd), "");
    (void)close(fd);
    assert_serves(fixture, 1);
}

static void a_client_that_cannot_be_served_is_dropped(void **state)
{
    struct fixture *fixture = *state;
    unsigned failed = 0;
    for (unsigned n = 1; calls_more(); n++) {
        int fd = connect_client(fixture);
        calls_fail(&(struct calls_fault){.first = n});
        run(fixture);
        if (calls_end()) {
            failed++;
            assert_string_equal(take(fd), "");
        } else {
            assert_string_equal(take(fd), "-");
        }
        (void)close(fd);
        run(fixture);
    }
    assert_int_equal(failed, 4); /* accept, its descriptor, its user, read */
    assert_serves(fixture, 1);
}

static void without_descriptors_clients_are_dropped(void **state)
{
    struct fixture *fixture = *state;
    struct rlimit files;
    int fd = connect_client(fixture);
    int free_fd = dup(0);
    (void)close(free_fd);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    struct rlimit none = {.rlim_cur = (rlim_t)free_fd,
                          .rlim_max = files.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    run(fixture);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_string_equal(take(fd), "");
    (void)close(fd);
    assert_serves(fixture, 1);
}

static void there_are_not_too_many_clients(void **state)
{
    struct fixture *fixture = *state;
    static int fds[CLIENTS_MAX + 1];
    struct rlimit files;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    struct rlimit more = {.rlim_cur = (rlim_t)3 * CLIENTS_MAX,
                          .rlim_max = files.rlim_max};
    if (more.rlim_cur > more.rlim_max) {
        skip();
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &more), 0);
    for (size_t ix = 0; ix < ARRAY_COUNT(fds); ix++) {
        fds[ix] = connect_client(fixture);
        run(fixture);
    }
    assert_string_equal(take(fds[CLIENTS_MAX - 1]), "-");
    assert_string_equal(take(fds[CLIENTS_MAX]), "");
    for (size_t ix = 0; ix < ARRAY_COUNT(fds); ix++) {
        (void)close(fds[ix]);
    }
    run(fixture);
    assert_serves(fixture, 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
}

static void a_socket_that_cannot_be_made_is_an_error(void **state)
{
    struct fixture *fixture = *state;
    struct diag diag = {0};
    unsigned failed = 0;
    control_socket_close(fixture->control);
    run(fixture);
    int free_fd = dup(0); /* of the socket */
    (void)close(free_fd);
    for (unsigned n = 1; calls_more(); n++) {
        calls_fail(&(struct calls_fault){.first = n});
        enum err err = open_socket(fixture, &diag);
        bool struck = calls_end() && strcmp(calls_failed(), "close") != 0;
        assert_int_equal(err, struck ? ERR_IO : ERR_OK);
        assert_true((fixture->control == NULL) == struck);
        failed += struck ? 1 : 0;
        if (struck) {
            assert_non_null(strstr(diag.text, fixture->path));
        } else {
            control_socket_close(fixture->control);
        }
        run(fixture);
        int fd = dup(0);
        assert_int_equal(fd, free_fd); /* no descriptor is left open */
        (void)close(fd);
    }
    assert_int_equal(failed, 6);
    assert_int_equal(open_socket(fixture, &diag), ERR_OK);
    assert_serves(fixture, 1);
}

/* Nobody else can connect, and what a process before has left is replaced. */
static void the_socket_is_private_and_new(void **state)
{
    struct fixture *fixture = *state;
    struct diag diag = {0};
    struct stat stat;
    assert_int_equal(lstat(fixture->path, &stat), 0);
    assert_int_equal(stat.st_mode & 07777, 0700);
    control_socket_close(fixture->control);
    run(fixture);
    assert_int_equal(open_socket(fixture, &diag), ERR_OK);
    assert_serves(fixture, 1);
    control_socket_close(fixture->control);
    run(fixture);
    assert_int_equal(unlink(fixture->path), 0); /* or there is none */
    assert_int_equal(open_socket(fixture, &diag), ERR_OK);
    assert_serves(fixture, 1);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(requests_of_a_client_come_one_by_one),
        CASE(answers_may_come_in_any_order),
        CASE(a_client_may_leave),
        CASE(a_client_that_is_gone_is_not_answered),
        CASE(an_answer_may_be_under_way_at_the_end),
        CASE(a_request_may_fill_a_whole_buffer),
        CASE(an_endless_request_is_cut),
        CASE(a_client_that_cannot_be_served_is_dropped),
        CASE(without_descriptors_clients_are_dropped),
        CASE(there_are_not_too_many_clients),
        CASE(a_socket_that_cannot_be_made_is_an_error),
        CASE(the_socket_is_private_and_new),
    };
    (void)signal(SIGPIPE, SIG_IGN); /* as all programs with a loop */
    return cmocka_run_group_tests_name("control_socket", tests, NULL, NULL);
}
