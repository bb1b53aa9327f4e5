/* SPDX-License-Identifier: MIT */
#include "work/workers.h"

#include "base/macros.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "tests/contract/fixture.h"
#include "tests/support/calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char bad_address[] = "postgresql://[";

/* Rows of all states; the lease of `b` is over. */
static const char rows[] =
    "INSERT INTO worker SELECT x.name, 'i', 'home', 'host', 'boot', x.labels,"
    " 4, x.proto, '1.0', x.state, '', clock_timestamp(), clock_timestamp(),"
    " clock_timestamp() + x.lease * interval '1 hour', 1, x.trouble"
    " FROM (VALUES ('a', 'a,any,gpu', 4, 'up', 1, ''),"
    " ('b', 'b,any', 4, 'up', -1, ''), ('c', 'c,any,x,y', 3, 'up', 1, ''),"
    " ('d', 'gpu', 4, 'up', 1, 'no space'), ('e', 'e,gpu', 4, 'lost', -1, '')"
    ") AS x(name, labels, proto, state, lease, trouble);"
    "INSERT INTO work (token, nonce, worker, instance, body, want, state)"
    " VALUES (1, 'n', 'a', 'i', '', 'run', 'accepted'),"
    " (2, 'n', 'a', 'i', '', 'run', 'ended')";

static void make_rows(struct fixture *fixture)
{
    uint64_t epoch = 0;
    store_close(fixture_take(fixture, &epoch)); /* its tables are made */
    fixture_sql(fixture, rows);
    struct strbuf sql = {0};
    strbuf_addf(&sql,
                "UPDATE worker SET proto = %lld WHERE proto = 4",
                (long long)workers_proto());
    fixture_sql(fixture, strbuf_text(&sql));
    strbuf_release(&sql);
}

static void add_worker(void *ctx, const struct workers_row *row)
{
    strbuf_addf(ctx,
                "%s %u/%u %s [%s] %.10s;",
                row->name,
                row->used,
                row->slots,
                row->state,
                row->labels,
                row->why);
    assert_string_equal(row->host, "host");
    assert_true(row->silent_ns >= 0 && row->since_ns >= 0);
}

static void workers_are_listed_with_their_state(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf list = {0};
    struct diag diag = {0};
    make_rows(fixture);
    assert_int_equal(workers_list(fixture->address, add_worker, &list, &diag),
                     ERR_OK);
    assert_string_equal(strbuf_text(&list),
                        "a 1/4 up [gpu] ;b 0/4 late [] ;"
                        "c 0/4 other version [x,y] it speaks ;"
                        "d 0/4 trouble [gpu] no space;e 0/4 lost [e,gpu] ;");
    strbuf_release(&list);
}

static void a_worker_is_drained_or_lost(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf list = {0};
    struct diag diag = {0};
    make_rows(fixture);
    assert_int_equal(workers_drain(fixture->address, "a", &diag), ERR_OK);
    assert_int_equal(workers_lose(fixture->address, "b", &diag), ERR_OK);
    fixture_sql(fixture,
                "UPDATE worker SET state = 'seen'"
                " WHERE name = 'a' AND wanted = 'drain'");
    assert_int_equal(workers_list(fixture->address, add_worker, &list, &diag),
                     ERR_OK);
    assert_non_null(strstr(strbuf_text(&list), "a 1/4 seen "));
    assert_non_null(strstr(strbuf_text(&list), "b 0/4 lost "));
    assert_int_equal(workers_drain(fixture->address, "x", &diag),
                     ERR_NOT_FOUND);
    assert_int_equal(workers_lose(fixture->address, "x", &diag), ERR_NOT_FOUND);
    assert_non_null(strstr(diag.text, "worker x"));
    strbuf_release(&list);
}

static void a_directory_has_no_workers(void **state)
{
    (void)state;
    struct diag diag = {0};
    assert_int_equal(workers_list("/tmp", NULL, NULL, &diag), ERR_OK);
    assert_int_equal(workers_drain("/tmp", "a", &diag), ERR_INVALID);
    assert_non_null(strstr(diag.text, "--store postgresql://"));
    assert_int_equal(workers_list(bad_address, NULL, NULL, &diag), ERR_INVALID);
    assert_int_equal(workers_lose(bad_address, "a", &diag), ERR_INVALID);
}

/* A failure is reported, and the next try works. */
static void any_call_can_fail(void **state)
{
    struct fixture *fixture = *state;
    unsigned failed = 0;
    make_rows(fixture);
    for (unsigned n = 1; calls_more(); n++) {
        struct strbuf list = {0};
        struct diag diag = {0};
        calls_fail(&(struct calls_fault){.only = "PQ", .first = n});
        enum err err = workers_list(fixture->address, add_worker, &list, &diag);
        if (err == ERR_OK) {
            err = workers_drain(fixture->address, "a", &diag);
        }
        assert_true(!calls_end() == (err == ERR_OK));
        assert_true((err == ERR_OK) == (diag.text[0] == '\0'));
        failed += err != ERR_OK ? 1 : 0;
        assert_int_equal(workers_drain(fixture->address, "a", &diag), ERR_OK);
        strbuf_release(&list);
    }
    assert_true(failed >= 5);
}

static void names_have_few_characters(void **state)
{
    (void)state;
    char text[66];
    memset(text, 'x', sizeof(text));
    text[64] = '\0';
    assert_true(workers_is_name(text));
    text[64] = 'x';
    text[65] = '\0';
    assert_false(workers_is_name(text));
    assert_true(workers_is_name("gpu-1.host_A"));
    assert_false(workers_is_name(""));
    assert_false(workers_is_name("a b"));
    assert_false(workers_is_name("a,b"));
}

static void the_own_name_is_given_or_that_of_the_host(void **state)
{
    (void)state;
    char name[65];
    char other[65];
    assert_int_equal(setenv("SLUICE_WORKER", "my worker/1", 1), 0);
    workers_own_name(name);
    assert_string_equal(name, "my-worker-1");
    assert_int_equal(setenv("SLUICE_WORKER", "", 1), 0);
    workers_own_name(name);
    assert_int_equal(unsetenv("SLUICE_WORKER"), 0);
    workers_own_name(other);
    assert_string_equal(name, other);
    assert_true(workers_is_name(name));
    calls_fail(&(struct calls_fault){.only = "gethostname", .first = 1});
    workers_own_name(name);
    assert_true(calls_end());
    assert_string_equal(name, "worker");
}

static void tests_may_speak_another_protocol(void **state)
{
    (void)state;
    int64_t own = workers_proto();
    assert_int_equal(setenv("SLUICE_TEST_PROTO", "99", 1), 0);
    assert_int_equal(workers_proto(), 99);
    assert_int_equal(unsetenv("SLUICE_TEST_PROTO"), 0);
    assert_int_equal(workers_proto(), own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_POSTGRES(workers_are_listed_with_their_state),
        FIXTURE_POSTGRES(a_worker_is_drained_or_lost),
        cmocka_unit_test(a_directory_has_no_workers),
        FIXTURE_POSTGRES(any_call_can_fail),
        cmocka_unit_test(names_have_few_characters),
        cmocka_unit_test(the_own_name_is_given_or_that_of_the_host),
        cmocka_unit_test(tests_may_speak_another_protocol),
    };
    return cmocka_run_group_tests_name("workers", tests, NULL, NULL);
}
