/* SPDX-License-Identifier: MIT */
/* The log of a session on another machine, by rows of a store. */
#include "work/far_log.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "tests/contract/fixture.h"
#include "tests/support/calls.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { TOKEN = 7 };

struct far {
    struct fixture *fixture;
    char home[32];
    struct store_place place;
    struct far_log *log;
};

static void begin(struct far *far, struct fixture *fixture)
{
    uint64_t epoch = 0;
    *far = (struct far){.fixture = fixture};
    store_close(fixture_take(fixture, &epoch)); /* its tables are made */
    (void)snprintf(far->home, sizeof(far->home), "/tmp/sluice-far-XXXXXX");
    assert_non_null(mkdtemp(far->home));
    far->place = (struct store_place){
        .address = fixture->address,
        .home = far->home,
    };
    struct diag diag = {0};
    assert_int_equal(far_log_open(&far->log, &far->place, TOKEN, &diag),
                     ERR_OK);
}

static void remove_in(const char *dir, const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s%s", dir, name);
    assert_int_equal(remove(path), 0);
}

static void end(struct far *far)
{
    far_log_close(far->log);
    remove_in(far->home, "/far/7/log");
    remove_in(far->home, "/far/7");
    remove_in(far->home, "/far");
    remove_in(far->home, "");
}

static void assert_log(const struct far *far, const char *expected)
{
    char path[128];
    char text[256] = {0};
    (void)snprintf(path, sizeof(path), "%s/log", far_log_dir(far->log));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(read(fd, text, sizeof(text) - 1) >= 0);
    assert_int_equal(close(fd), 0);
    assert_string_equal(text, expected);
}

/* Pull, which must succeed; return whether to ask again. */
static bool pull(struct far *far)
{
    bool more = false;
    struct diag diag = {0};
    if (far_log_pull(far->log, &more, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
    return more;
}

/* A worker has the session. */
static void start_session(const struct far *far, const char *state)
{
    struct strbuf sql = {0};
    strbuf_addf(&sql,
                "INSERT INTO work (token, nonce, worker, instance, body, want,"
                " state) VALUES (7, 'n', 'a', 'i', '', 'run', '%s')",
                state);
    fixture_sql(far->fixture, strbuf_text(&sql));
    strbuf_release(&sql);
}

/* Its worker has sent a piece that was asked for. */
static void send_piece(const struct far *far, int start, const char *text)
{
    struct strbuf sql = {0};
    strbuf_addf(&sql,
                "UPDATE peek SET start = %d, text = '%s' WHERE token = 7",
                start,
                text);
    fixture_sql(far->fixture, strbuf_text(&sql));
    strbuf_release(&sql);
}

static void a_directory_has_no_other_machines(void **state)
{
    (void)state;
    struct far_log *log = NULL;
    char dir[] = "/tmp";
    struct store_place place = {.address = dir, .home = dir};
    assert_int_equal(far_log_open(&log, &place, TOKEN, NULL), ERR_NOT_FOUND);
    assert_null(log);
    far_log_close(NULL);
}

static void a_home_that_cannot_be_written_is_an_error(void **state)
{
    struct fixture *fixture = *state;
    struct far_log *log = NULL;
    struct diag diag = {0};
    char home[] = "/dev/null";
    struct store_place place = {.address = fixture->address, .home = home};
    assert_int_not_equal(far_log_open(&log, &place, TOKEN, &diag), ERR_OK);
    assert_null(log);
    assert_string_not_equal(diag.text, "");
}

static void a_log_that_nobody_has_is_not_found(void **state)
{
    struct far far;
    struct diag diag = {0};
    bool more = true;
    begin(&far, *state);
    assert_int_equal(far_log_pull(far.log, &more, &diag), ERR_NOT_FOUND);
    assert_string_equal(diag.text, "its log is on no machine any more");
    assert_false(more);
    start_session(&far, "assigned"); /* no worker has accepted it */
    assert_int_equal(far_log_pull(far.log, &more, &diag), ERR_NOT_FOUND);
    assert_log(&far, "");
    end(&far);
}

static void pieces_of_a_running_session_are_put_together(void **state)
{
    struct far far;
    begin(&far, *state);
    start_session(&far, "started");
    assert_true(pull(&far)); /* nothing was sent yet */
    send_piece(&far, 0, "one ");
    assert_true(pull(&far));
    assert_log(&far, "one ");
    assert_false(pull(&far)); /* nothing new */
    send_piece(&far, 2, "e two ");
    assert_true(pull(&far)); /* it has more than the file */
    assert_log(&far, "one two ");
    send_piece(&far, 20, "far");
    assert_true(pull(&far)); /* a piece is missing before it: ask again */
    assert_log(&far, "one two ");
    end(&far);
}

static void the_copy_of_a_log_that_ended_is_taken(void **state)
{
    struct far far;
    begin(&far, *state);
    start_session(&far, "started");
    (void)pull(&far);
    send_piece(&far, 0, "one ");
    (void)pull(&far);
    fixture_sql(far.fixture,
                "INSERT INTO log (token, worker, bytes, start, text)"
                " VALUES (7, 'a', 9, 0, 'one two\\012')");
    assert_false(pull(&far));
    assert_log(&far, "one two\n");
    assert_false(pull(&far)); /* once */
    assert_log(&far, "one two\n");
    end(&far);
}

static void a_capped_log_says_what_is_missing(void **state)
{
    struct far far;
    begin(&far, *state);
    fixture_sql(far.fixture,
                "INSERT INTO log (token, worker, bytes, start, text)"
                " VALUES (7, 'a', 105, 100, 'end')");
    assert_false(pull(&far));
    assert_log(&far,
               "[sluice: 100 bytes are on the worker's machine only]\nend");
    assert_false(pull(&far));
    assert_log(&far,
               "[sluice: 100 bytes are on the worker's machine only]\nend");
    end(&far);
}

static void a_later_cut_adds_nothing(void **state)
{
    struct far far;
    begin(&far, *state);
    fixture_sql(far.fixture,
                "INSERT INTO log (token, worker, bytes, start, text)"
                " VALUES (7, 'a', 105, 100, 'end')");
    assert_false(pull(&far));
    fixture_sql(far.fixture, "UPDATE log SET start = 200, text = 'more'");
    assert_false(pull(&far));
    assert_log(&far,
               "[sluice: 100 bytes are on the worker's machine only]\nend");
    end(&far);
}

/* The connection, the memory and the disk: a later pull gets all of it. */
static void a_failed_pull_loses_nothing(struct far *far, const char *expected)
{
    unsigned failed = 0;
    for (unsigned n = 1; calls_more(); n++) {
        struct diag diag = {0};
        bool more = false;
        far_log_close(far->log);
        assert_int_equal(far_log_open(&far->log, &far->place, TOKEN, &diag),
                         ERR_OK);
        calls_fail(&(struct calls_fault){.first = n});
        enum err err = far_log_pull(far->log, &more, &diag);
        (void)calls_end();
        assert_true((err == ERR_OK) == (diag.text[0] == '\0'));
        failed += err != ERR_OK ? 1 : 0;
        (void)pull(far);
        assert_log(far, expected);
    }
    assert_true(failed >= 5);
}

static void a_copy_comes_whole_after_a_failure(void **state)
{
    struct far far;
    begin(&far, *state);
    fixture_sql(far.fixture,
                "INSERT INTO log (token, worker, bytes, start, text)"
                " VALUES (7, 'a', 105, 100, 'end')");
    a_failed_pull_loses_nothing(
        &far,
        "[sluice: 100 bytes are on the worker's machine only]\nend");
    end(&far);
}

static void pieces_come_whole_after_a_failure(void **state)
{
    struct far far;
    begin(&far, *state);
    start_session(&far, "started");
    (void)pull(&far);
    send_piece(&far, 0, "piece");
    a_failed_pull_loses_nothing(&far, "piece");
    end(&far);
}

static void a_log_that_cannot_be_opened_is_an_error(void **state)
{
    struct far far;
    unsigned failed = 0;
    begin(&far, *state);
    for (unsigned n = 1; calls_more(); n++) {
        struct diag diag = {0};
        struct far_log *log = NULL;
        calls_fail(&(struct calls_fault){.first = n});
        enum err err = far_log_open(&log, &far.place, TOKEN, &diag);
        (void)calls_end();
        assert_true((err == ERR_OK) == (log != NULL));
        assert_true((err == ERR_OK) == (diag.text[0] == '\0'));
        failed += err != ERR_OK ? 1 : 0;
        far_log_close(log);
    }
    assert_true(failed >= 1);
    end(&far);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_directory_has_no_other_machines),
        FIXTURE_POSTGRES(a_home_that_cannot_be_written_is_an_error),
        FIXTURE_POSTGRES(a_log_that_nobody_has_is_not_found),
        FIXTURE_POSTGRES(pieces_of_a_running_session_are_put_together),
        FIXTURE_POSTGRES(the_copy_of_a_log_that_ended_is_taken),
        FIXTURE_POSTGRES(a_capped_log_says_what_is_missing),
        FIXTURE_POSTGRES(a_later_cut_adds_nothing),
        FIXTURE_POSTGRES(a_copy_comes_whole_after_a_failure),
        FIXTURE_POSTGRES(pieces_come_whole_after_a_failure),
        FIXTURE_POSTGRES(a_log_that_cannot_be_opened_is_an_error),
    };
    return cmocka_run_group_tests_name("far_log", tests, NULL, NULL);
}
