/* SPDX-License-Identifier: MIT */
#include "tests/unit/exec_fixture.h"

#include "base/mem.h"
#include "base/strbuf.h"

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE_MS = 30000, LOOK_MS = 5 };

struct exec *exec_fixture_server(void)
{
    struct exec *exec = NULL;
    struct diag diag = {0};
    if (exec_open(&exec, NULL, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
    return exec;
}

int exec_fixture_set_up(void **state)
{
    struct exec_fixture *fixture = mem_zalloc(1, sizeof(*fixture));
    (void)snprintf(fixture->folder,
                   sizeof(fixture->folder),
                   "/tmp/sluice-exec-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    attempt_boot_id(fixture->boot_id);
    fixture->exec = exec_fixture_server();
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

int exec_fixture_tear_down(void **state)
{
    struct exec_fixture *fixture = *state;
    exec_close(fixture->exec);
    (void)nftw(fixture->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    mem_free(fixture);
    return 0;
}

const char *exec_fixture_path(struct exec_fixture *fixture, const char *name)
{
    (void)snprintf(fixture->path,
                   sizeof(fixture->path),
                   "%s/%s",
                   fixture->folder,
                   name);
    return fixture->path;
}

struct exec_request exec_fixture_request(struct exec_fixture *fixture,
                                         const char *dir,
                                         const char **argv,
                                         const char *command)
{
    argv[0] = "/bin/sh";
    argv[1] = "-c";
    argv[2] = command;
    argv[3] = NULL;
    return (struct exec_request){
        .id = ++fixture->last_id,
        .dir = dir,
        .folder = fixture->folder,
        .argv = argv,
        .argc = 3,
        .timeout_ns = EXEC_NEVER,
        .idle_ns = EXEC_NEVER,
        .checkpoint_ns = EXEC_NEVER,
        .grace_ns = 300 * EXEC_FIXTURE_MS,
    };
}

struct exec_request *exec_fixture_make(struct exec_fixture *fixture,
                                       struct exec_made *made,
                                       const char *name,
                                       const char *command)
{
    (void)snprintf(made->dir,
                   sizeof(made->dir),
                   "%s",
                   exec_fixture_path(fixture, name));
    made->request =
        exec_fixture_request(fixture, made->dir, made->argv, command);
    return &made->request;
}

void exec_fixture_start(struct exec_fixture *fixture,
                        const struct exec_request *request)
{
    struct diag diag = {0};
    if (exec_start(fixture->exec, request, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
}

static void keep(void *ctx, const struct exec_report *report)
{
    struct exec_fixture *fixture = ctx;
    assert_true(fixture->count < EXEC_FIXTURE_REPORTS_MAX);
    fixture->reports[fixture->count++] = *report;
}

bool exec_fixture_read(struct exec_fixture *fixture)
{
    struct diag diag = {0};
    struct pollfd poll_fd = {.fd = exec_fd(fixture->exec), .events = POLLIN};
    if (exec_wants_write(fixture->exec)) {
        poll_fd.events |= POLLOUT;
    }
    if (poll(&poll_fd, 1, PATIENCE_MS) <= 0) {
        return false;
    }
    if (exec_read(fixture->exec, keep, fixture, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
    return true;
}

static const struct exec_report *find(const struct exec_fixture *fixture,
                                      uint64_t id,
                                      enum exec_report_type type)
{
    for (uint32_t ix = 0; ix < fixture->count; ix++) {
        const struct exec_report *report = &fixture->reports[ix];
        if (report->id == id && report->type == type) {
            return report;
        }
    }
    return NULL;
}

struct exec_report exec_fixture_wait(struct exec_fixture *fixture,
                                     uint64_t id,
                                     enum exec_report_type type)
{
    const struct exec_report *report = find(fixture, id, type);
    while (report == NULL) {
        if (!exec_fixture_read(fixture)) {
            fail_msg("no report of type %d came", (int)type);
        }
        report = find(fixture, id, type);
    }
    return *report;
}

struct attempt_found exec_fixture_end(struct exec_fixture *fixture,
                                      const struct exec_request *request)
{
    struct attempt_found found;
    (void)exec_fixture_wait(fixture, request->id, EXEC_ENDED);
    assert_int_equal(
        attempt_inspect(request->dir, fixture->boot_id, &found, NULL),
        ERR_OK);
    return found;
}

struct attempt_exit exec_fixture_run(struct exec_fixture *fixture,
                                     const struct exec_request *request)
{
    exec_fixture_start(fixture, request);
    struct attempt_found found = exec_fixture_end(fixture, request);
    assert_int_equal(found.state, ATTEMPT_ENDED);
    return found.exit;
}

bool exec_fixture_appears(const char *dir, const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    for (int ms = 0; ms < PATIENCE_MS; ms += LOOK_MS) {
        if (access(path, F_OK) == 0) {
            return true;
        }
        struct timespec pause = {.tv_nsec = LOOK_MS * EXEC_FIXTURE_MS};
        (void)nanosleep(&pause, NULL);
    }
    return false;
}

void exec_fixture_touch(const char *dir, const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
}

char *exec_fixture_slurp(const char *dir, const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return NULL;
    }
    struct strbuf text = {0};
    char piece[4096];
    ssize_t len;
    while ((len = read(fd, piece, sizeof(piece))) > 0) {
        strbuf_add(&text, piece, (size_t)len);
    }
    (void)close(fd);
    char *copy = mem_strndup(strbuf_text(&text), text.len);
    strbuf_release(&text);
    return copy;
}
