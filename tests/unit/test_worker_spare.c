/* SPDX-License-Identifier: MIT */
/*
 * Which directories a worker has used again: those of short first attempts that
 * are done, left nothing, and are recorded, and of no task that has another
 * attempt.
 */
#include "base/duration.h"
#include "work/worker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define BOOT "11111111-2222-3333-4444-555555555555"
#define NONCE "0123456789abcdef0123456789abcdef"

struct fixture {
    struct worker *worker;
    struct attempt_found found; /* in every directory */
    char spare[256];            /* of the last request; "": none */
    uint32_t unknown;           /* reports */
};

static int64_t fake_now_ns(void *ctx)
{
    (void)ctx;
    return SECOND_NS;
}

static enum err
fake_start(void *ctx, const struct exec_request *request, struct diag *diag)
{
    struct fixture *fixture = ctx;
    (void)diag;
    (void)snprintf(fixture->spare,
                   sizeof(fixture->spare),
                   "%s",
                   request->spare != NULL ? request->spare : "");
    return ERR_OK;
}

static enum err fake_inspect(void *ctx,
                             const char *dir,
                             const char *boot_id,
                             struct attempt_found *out,
                             struct diag *diag)
{
    struct fixture *fixture = ctx;
    (void)dir;
    (void)boot_id;
    (void)diag;
    *out = fixture->found;
    return ERR_OK;
}

static enum err fake_result(void *ctx,
                            const char *dir,
                            struct attempt_result *out,
                            struct diag *diag)
{
    (void)ctx;
    (void)dir;
    (void)diag;
    *out = (struct attempt_result){0};
    return ERR_OK;
}

static void
fake_log_tail(void *ctx, const char *dir, size_t bytes, struct strbuf *out)
{
    (void)ctx;
    (void)dir;
    (void)bytes;
    (void)out;
}

static enum err fake_put(void *ctx,
                         const char *dir,
                         const char *name,
                         const struct strbuf *text,
                         struct diag *diag)
{
    (void)ctx;
    (void)dir;
    (void)name;
    (void)text;
    (void)diag;
    return ERR_OK;
}

static void take_report(void *link, const struct work_report *report)
{
    struct fixture *fixture = link;
    fixture->unknown += report->type == WORK_UNKNOWN ? 1 : 0;
}

static struct attempt_found quiet(void)
{
    return (struct attempt_found){
        .state = ATTEMPT_ENDED,
        .exit = {.cause = ATTEMPT_EXIT,
                 .begun_ns = SECOND_NS,
                 .ended_ns = SECOND_NS + MS_NS,
                 .sealed = true,
                 .result_bytes = -1},
    };
}

static int set_up(void **state)
{
    static const struct work_machine machine = {
        .now_ns = fake_now_ns,
        .start = fake_start,
        .inspect = fake_inspect,
        .result = fake_result,
        .log_tail = fake_log_tail,
        .put = fake_put,
    };
    static char text[] = "/place";
    static const struct store_place place = {
        .address = text,
        .shown = text,
        .id = text,
        .home = text,
    };
    static struct fixture fixture;
    fixture = (struct fixture){.found = quiet()};
    fixture.worker = worker_new(&(struct worker_options){
        .machine = &machine,
        .ctx = &fixture,
        .place = &place,
        .git = "/git",
        .agent = "/agent",
        .sandbox = "/sandbox",
        .program = "/sluice",
        .boot_id = BOOT,
        .report = take_report,
        .link = &fixture,
    });
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    worker_free(fixture->worker);
    return 0;
}

static struct work_order
order(uint64_t token, const char *task, const char *name)
{
    return (struct work_order){
        .id = {.token = token,
               .nonce = NONCE,
               .run = "run",
               .task = task,
               .name = name},
        .folder = "/folder",
        .shell = "true",
    };
}

static void start(struct fixture *fixture, const struct work_order *what)
{
    (void)snprintf(fixture->spare, sizeof(fixture->spare), "not started");
    worker_assign(fixture->worker, what);
}

static void end(struct fixture *fixture, uint64_t token)
{
    struct exec_report report = {
        .type = EXEC_STARTED,
        .id = token,
        .pid = 100,
        .start_ticks = 5,
    };
    worker_reported(fixture->worker, &report);
    report.type = EXEC_ENDED;
    worker_reported(fixture->worker, &report);
}

/* Run the first attempt of a task to its end. */
static void run(struct fixture *fixture, uint64_t token, const char *task)
{
    struct work_order what = order(token, task, "1");
    start(fixture, &what);
    end(fixture, token);
}

static void a_directory_is_used_again_once_it_is_recorded(void **state)
{
    struct fixture *fixture = *state;
    run(fixture, 1, "a");
    assert_string_equal(fixture->spare, "");
    run(fixture, 2, "b");
    assert_string_equal(fixture->spare, "");
    worker_recorded(fixture->worker, 99); /* nothing that is known here */
    worker_recorded(fixture->worker, 2);
    run(fixture, 3, "c");
    assert_string_equal(fixture->spare, "/place/runs/run/b/1");
    run(fixture, 4, "d");
    assert_string_equal(fixture->spare, "");
    worker_recorded(fixture->worker, 1);
    worker_recorded(fixture->worker, 3);
    run(fixture, 5, "e");
    assert_string_equal(fixture->spare, "/place/runs/run/a/1");
}

static void what_is_not_plain_stays(void **state)
{
    struct fixture *fixture = *state;
    struct attempt_exit exits[7];
    for (size_t ix = 0; ix < 7; ix++) {
        exits[ix] = quiet().exit;
    }
    exits[0].log_bytes = 1;
    exits[1].result_bytes = 0;
    exits[2].sealed = false;
    exits[3].code = 1;
    exits[4].cause = ATTEMPT_TIMEOUT;
    exits[5].ended_ns = 3 * SECOND_NS;
    for (uint64_t ix = 0; ix < 6; ix++) {
        char task[8];
        (void)snprintf(task, sizeof(task), "t%u", (unsigned)ix);
        fixture->found.exit = exits[ix];
        run(fixture, ix + 1, task);
        worker_recorded(fixture->worker, ix + 1);
    }
    fixture->found = quiet();
    struct work_order what = order(10, "second", "2");
    start(fixture, &what);
    end(fixture, 10);
    worker_recorded(fixture->worker, 10);
    what = order(11, "confined", "1");
    what.sandbox.on = true;
    static const char *const none[] = {NULL};
    what.sandbox.write = none;
    what.sandbox.read = none;
    what.sandbox.env = none;
    start(fixture, &what);
    end(fixture, 11);
    worker_recorded(fixture->worker, 11);
    run(fixture, 12, "z");
    assert_string_equal(fixture->spare, "");
}

static void what_has_files_or_came_before_gets_a_new_one(void **state)
{
    struct fixture *fixture = *state;
    run(fixture, 1, "a");
    worker_recorded(fixture->worker, 1);
    struct work_file file = {.name = "feedback", .text = "x", .len = 1};
    struct work_order what = order(2, "b", "1");
    what.files = &file;
    what.file_count = 1;
    start(fixture, &what);
    assert_string_equal(fixture->spare, "");
    what = order(3, "c", "2");
    start(fixture, &what);
    assert_string_equal(fixture->spare, "");
    run(fixture, 4, "d");
    assert_string_equal(fixture->spare, "/place/runs/run/a/1");
}

static void a_task_with_another_attempt_keeps_its_directories(void **state)
{
    struct fixture *fixture = *state;
    run(fixture, 1, "a");
    run(fixture, 2, "ab");
    worker_recorded(fixture->worker, 1);
    worker_recorded(fixture->worker, 2);
    struct work_order again = order(3, "a", "2");
    start(fixture, &again);
    run(fixture, 4, "c");
    assert_string_equal(fixture->spare, "/place/runs/run/ab/1");
    run(fixture, 5, "d");
    assert_string_equal(fixture->spare, "");
}

static void another_attempt_waits_for_a_directory_that_moves(void **state)
{
    struct fixture *fixture = *state;
    run(fixture, 1, "a");
    worker_recorded(fixture->worker, 1);
    struct work_order next = order(2, "b", "1");
    start(fixture, &next);
    assert_string_equal(fixture->spare, "/place/runs/run/a/1");
    fixture->found = (struct attempt_found){.state = ATTEMPT_NEVER};
    struct work_order again = order(3, "a", "2");
    start(fixture, &again);
    assert_string_equal(fixture->spare, "not started");
    assert_int_equal(fixture->unknown, 1);
    fixture->found = (struct attempt_found){.state = ATTEMPT_LIVE, .pid = 100};
    start(fixture, &again);
    assert_string_equal(fixture->spare, "");
    assert_int_equal(fixture->unknown, 1);
}

static void only_so_many_are_kept(void **state)
{
    struct fixture *fixture = *state;
    enum { MORE = 70 };
    char task[8];
    for (uint64_t ix = 1; ix <= MORE; ix++) {
        (void)snprintf(task, sizeof(task), "t%u", (unsigned)ix);
        run(fixture, ix, task);
    }
    for (uint64_t ix = 1; ix <= MORE; ix++) {
        worker_recorded(fixture->worker, ix);
    }
    run(fixture, MORE + 1, "z");
    assert_string_equal(fixture->spare, "/place/runs/run/t7/1");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_directory_is_used_again_once_it_is_recorded),
        CASE(what_is_not_plain_stays),
        CASE(what_has_files_or_came_before_gets_a_new_one),
        CASE(a_task_with_another_attempt_keeps_its_directories),
        CASE(another_attempt_waits_for_a_directory_that_moves),
        CASE(only_so_many_are_kept),
    };
    return cmocka_run_group_tests_name("worker_spare", tests, NULL, NULL);
}
