/* SPDX-License-Identifier: MIT */
/*
 * A directory that becomes that of another attempt: when it may, what the next
 * session finds in it, and that nothing of the earlier attempt counts for it.
 */
#include "base/macros.h"
#include "base/mem.h"
#include "exec/exec.h"
#include "tests/unit/exec_fixture.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char first_nonce[] = "0123456789abcdef0123456789abcdef";
static const char second_nonce[] = "fedcba9876543210fedcba9876543210";

/* A request for the first attempt of a task. */
static struct exec_request *make(struct exec_fixture *fixture,
                                 struct exec_made *made,
                                 const char *task,
                                 const char *nonce,
                                 const char *command)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "%s/1", task);
    struct exec_request *request =
        exec_fixture_make(fixture, made, name, command);
    request->nonce = nonce;
    return request;
}

/* Run the attempt whose directory is to become another one. */
static void run_first(struct exec_fixture *fixture,
                      struct exec_made *made,
                      const char *task)
{
    struct attempt_exit exit =
        exec_fixture_run(fixture,
                         make(fixture, made, task, first_nonce, "true"));
    assert_int_equal(exit.code, 0);
    assert_string_equal(exit.nonce, first_nonce);
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static ino_t inode(const char *dir, const char *name)
{
    char path[256];
    struct stat stat;
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    assert_int_equal(lstat(path, &stat), 0);
    return stat.st_ino;
}

static void a_directory_becomes_that_of_the_next_attempt(void **state)
{
    struct exec_fixture *fixture = *state;
    struct exec_made a;
    struct exec_made b;
    run_first(fixture, &a, "a");
    ino_t log = inode(a.dir, "log");
    struct exec_request *request =
        make(fixture,
             &b,
             "b",
             second_nonce,
             "ls $(dirname $SLUICE_RESULT); until [ -e go ]; do :; done");
    request->spare = a.dir;
    exec_fixture_start(fixture, request);
    struct exec_report report =
        exec_fixture_wait(fixture, request->id, EXEC_STARTED);
    struct attempt_found found = {.state = ATTEMPT_NEVER};
    while (found.state == ATTEMPT_NEVER) { /* the shim may be about to begin */
        assert_int_equal(attempt_inspect(b.dir, fixture->boot_id, &found, NULL),
                         ERR_OK);
    }
    assert_int_equal(found.state, ATTEMPT_LIVE);
    assert_int_equal(found.pid, report.pid);
    assert_string_equal(found.nonce, second_nonce);
    assert_false(exists(a.dir));
    assert_false(exists(exec_fixture_path(fixture, "a")));
    bool fenced = true;
    assert_int_equal(attempt_fence(b.dir, second_nonce, &fenced, NULL), ERR_OK);
    assert_false(fenced);
    exec_fixture_touch(fixture->folder, "go");
    found = exec_fixture_end(fixture, request);
    assert_int_equal(found.state, ATTEMPT_ENDED);
    assert_string_equal(found.nonce, second_nonce);
    assert_string_equal(found.exit.nonce, second_nonce);
    assert_true(inode(b.dir, "log") == log);
    char *text = exec_fixture_slurp(b.dir, "log");
    assert_string_equal(text, "exit\nlog\nstarted\n");
    mem_free(text);
}

/* What must keep a directory from being used again. */
static void print(const char *dir)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/log", dir);
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    assert_true(fputs("text\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void leave_a_file(const char *dir)
{
    exec_fixture_touch(dir, "progress");
}

static void open_the_directory(const char *dir)
{
    assert_int_equal(chmod(dir, 0755), 0);
}

static void open_the_log(const char *dir)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/log", dir);
    assert_int_equal(chmod(path, 0644), 0);
}

static void link_the_log(const char *dir)
{
    char path[256];
    char link_path[256];
    (void)snprintf(path, sizeof(path), "%s/log", dir);
    (void)snprintf(link_path, sizeof(link_path), "%s.link", dir);
    assert_int_equal(link(path, link_path), 0);
}

static void link_the_records(const char *dir)
{
    char path[256];
    char link_path[256];
    (void)snprintf(path, sizeof(path), "%s/exit", dir);
    (void)snprintf(link_path, sizeof(link_path), "%s.link", dir);
    assert_int_equal(link(path, link_path), 0);
}

static void replace_the_log(const char *dir)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/log", dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/etc/passwd", path), 0);
}

static void remove_the_log(const char *dir)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/log", dir);
    assert_int_equal(unlink(path), 0);
}

static void add_an_attempt(const char *dir)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s.stale-1", dir);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void lock_the_records(const char *dir)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/exit", dir);
    int fd = open(path, O_RDWR | O_CLOEXEC); /* until this program ends */
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    assert_true(fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock) == 0);
}

static void a_directory_that_is_not_as_it_was_stays(void **state)
{
    struct exec_fixture *fixture = *state;
    void (*const changes[])(const char *dir) = {
        print,
        leave_a_file,
        open_the_directory,
        open_the_log,
        link_the_log,
        link_the_records,
        replace_the_log,
        remove_the_log,
        add_an_attempt,
        lock_the_records,
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(changes); ix++) {
        struct exec_made a;
        struct exec_made b;
        char name[16];
        (void)snprintf(name, sizeof(name), "a%zu", ix);
        run_first(fixture, &a, name);
        changes[ix](a.dir);
        (void)snprintf(name, sizeof(name), "b%zu", ix);
        struct exec_request *request =
            make(fixture, &b, name, second_nonce, "echo text");
        request->spare = a.dir;
        struct attempt_exit exit = exec_fixture_run(fixture, request);
        assert_int_equal(exit.code, 0);
        assert_string_equal(exit.nonce, second_nonce);
        struct attempt_found found;
        assert_int_equal(attempt_inspect(a.dir, fixture->boot_id, &found, NULL),
                         ERR_OK);
        assert_int_equal(found.state, ATTEMPT_ENDED);
        assert_string_equal(found.nonce, first_nonce);
    }
}

static void a_directory_that_exists_is_not_replaced(void **state)
{
    struct exec_fixture *fixture = *state;
    struct exec_made a;
    struct exec_made b;
    run_first(fixture, &a, "a");
    struct exec_request *request =
        make(fixture,
             &b,
             "b",
             second_nonce,
             "cat $(dirname $SLUICE_RESULT)/feedback");
    request->spare = a.dir;
    assert_int_equal(mkdir(exec_fixture_path(fixture, "b"), 0700), 0);
    assert_int_equal(mkdir(b.dir, 0700), 0);
    exec_fixture_touch(b.dir, "feedback");
    assert_int_equal(exec_fixture_run(fixture, request).code, 0);
    assert_true(exists(a.dir));
}

static void only_first_attempts_with_a_nonce_take_part(void **state)
{
    struct exec_fixture *fixture = *state;
    static const struct {
        const char *from;
        const char *to;
        const char *nonce;
    } cases[] = {
        {"a/1", "b/2", second_nonce},
        {"c/2", "d/1", second_nonce},
        {"e/1", "f/1", NULL},
        {"g/1", "h/11", second_nonce},
        {"missing/1", "i/1", second_nonce},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        struct exec_made a;
        struct exec_made b;
        struct exec_request *request =
            exec_fixture_make(fixture, &a, cases[ix].from, "true");
        request->nonce = first_nonce;
        bool runs = strncmp(cases[ix].from, "missing", 7) != 0;
        if (runs) {
            assert_int_equal(exec_fixture_run(fixture, request).code, 0);
        }
        request = exec_fixture_make(fixture, &b, cases[ix].to, "true");
        request->nonce = cases[ix].nonce;
        request->spare = a.dir;
        assert_int_equal(exec_fixture_run(fixture, request).code, 0);
        assert_int_equal(exists(a.dir), runs);
    }
}

static void an_attempt_that_comes_twice_runs_once(void **state)
{
    struct exec_fixture *fixture = *state;
    struct exec_made a[2];
    struct exec_made b[2];
    run_first(fixture, &a[0], "a0");
    run_first(fixture, &a[1], "a1");
    for (int ix = 0; ix < 2; ix++) {
        struct exec_request *request =
            make(fixture, &b[ix], "b", second_nonce, "echo ran >>ran");
        request->spare = a[ix].dir;
        exec_fixture_start(fixture, request);
    }
    for (int ix = 0; ix < 2; ix++) {
        (void)exec_fixture_wait(fixture, b[ix].request.id, EXEC_ENDED);
    }
    char *text = exec_fixture_slurp(fixture->folder, "ran");
    assert_string_equal(text, "ran\n");
    mem_free(text);
}

int main(void)
{
#define CASE(name)                                                             \
    cmocka_unit_test_setup_teardown(name,                                      \
                                    exec_fixture_set_up,                       \
                                    exec_fixture_tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_directory_becomes_that_of_the_next_attempt),
        CASE(a_directory_that_is_not_as_it_was_stays),
        CASE(a_directory_that_exists_is_not_replaced),
        CASE(only_first_attempts_with_a_nonce_take_part),
        CASE(an_attempt_that_comes_twice_runs_once),
    };
    return cmocka_run_group_tests_name("exec_spare", tests, NULL, NULL);
}
