/* SPDX-License-Identifier: MIT */
/*
 * Marks: whether a store was written to. The files of a database get the times
 * that a test needs, so that no test waits for a clock.
 */
#include "base/macros.h"
#include "base/mem.h"
#include "store/store.h"
#include "tests/contract/fixture.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

/* Seconds of the wall clock that have passed and have not. */
#define PAST INT64_C(1000000000)
#define FUTURE INT64_C(7000000000)

static struct store_mark mark_of(struct store *store)
{
    struct store_mark mark;
    struct diag diag = {0};
    if (store_mark(store, &mark, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
    return mark;
}

static bool is_equal(const struct store_mark *a, const struct store_mark *b)
{
    return memcmp(a->state, b->state, sizeof(a->state)) == 0 &&
           memcmp(a->place, b->place, sizeof(a->place)) == 0;
}

/* Have the files of a database changed at a second, by the wall clock. */
static void set_time(const struct fixture *fixture, int64_t second)
{
    static const char *const names[] = {"sluice.db", "sluice.db-wal"};
    struct timespec times[2] = {{.tv_sec = second}, {.tv_sec = second}};
    for (size_t ix = 0;
         fixture->backend == BACKEND_SQLITE && ix < ARRAY_COUNT(names);
         ix++) {
        char *path = fixture_path(fixture, names[ix]);
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
        mem_free(path);
    }
}

/* Write something, long ago. */
static struct store *begin(struct fixture *fixture, uint64_t *epoch_out)
{
    struct store *store = fixture_take(fixture, epoch_out);
    struct store_change run = fixture_run(1, "made");
    fixture_write_ok(store, *epoch_out, &run, 1);
    set_time(fixture, PAST);
    return store;
}

/* --- tests -------------------------------------------------------------- */

static void a_mark_stays_while_nothing_is_written(void **state)
{
    struct fixture *fixture = *state;
    uint64_t epoch;
    struct store *writer = begin(fixture, &epoch);
    struct store *reader = fixture_open(fixture, STORE_READ);
    struct store_mark first = mark_of(reader);
    struct store_mark again = mark_of(reader);
    assert_true(first.settled);
    assert_true(is_equal(&first, &again));
    struct strbuf contents = fixture_contents(reader);
    strbuf_release(&contents);
    again = mark_of(reader);
    assert_true(is_equal(&first, &again)); /* reading is no write */
    fixture_write_ok(writer, epoch, NULL, 0);
    again = mark_of(reader);
    assert_true(is_equal(&first, &again)); /* nor is a heartbeat */
    again = mark_of(writer);
    assert_true(is_equal(&first, &again)); /* it is of the store */
    store_close(reader);
    store_close(writer);
}

static void every_batch_changes_a_settled_mark(void **state)
{
    struct fixture *fixture = *state;
    uint64_t epoch;
    struct store *writer = begin(fixture, &epoch);
    struct store *reader = fixture_open(fixture, STORE_READ);
    for (uint32_t ix = 0; ix < 20; ix++) {
        struct store_mark before = mark_of(reader);
        struct store_change task = fixture_task(1, ix % 3, "ready");
        assert_true(before.settled);
        fixture_write_ok(writer, epoch, &task, 1);
        struct store_mark after = mark_of(reader);
        assert_false(is_equal(&before, &after));
        assert_memory_equal(before.place, after.place, sizeof(before.place));
        set_time(fixture, PAST + 1 + ix);
    }
    store_close(reader);
    store_close(writer);
}

/* Whoever opens the store finds the same mark. */
static void a_mark_does_not_depend_on_the_reader(void **state)
{
    struct fixture *fixture = *state;
    uint64_t epoch;
    struct store *writer = begin(fixture, &epoch);
    struct store *first = fixture_open(fixture, STORE_READ);
    struct store *second = fixture_open(fixture, STORE_READ);
    struct store_mark a = mark_of(first);
    struct store_mark b = mark_of(second);
    assert_true(is_equal(&a, &b));
    store_close(second);
    b = mark_of(first);
    assert_true(is_equal(&a, &b));
    store_close(first);
    store_close(writer);
}

/* A change within the same tick of the file system's clock could have the same
 * time: only an old time is settled. */
static void a_time_that_has_not_passed_is_not_settled(void **state)
{
    struct fixture *fixture = *state;
    uint64_t epoch;
    struct store *store = begin(fixture, &epoch);
    set_time(fixture, PAST);
    assert_true(mark_of(store).settled);
    set_time(fixture, FUTURE); /* the clock was set back */
    assert_false(mark_of(store).settled);
    /* Times that nanoseconds cannot count. */
    set_time(fixture, INT64_C(12000000000));
    assert_false(mark_of(store).settled);
    set_time(fixture, 0);
    assert_true(mark_of(store).settled);
    set_time(fixture, -1000000000);
    assert_true(mark_of(store).settled);
    store_close(store);
}

static char *dir_beside(const struct fixture *fixture, const char *end)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s%s", fixture->dir, end);
    char *copy = mem_strdup(strbuf_text(&path));
    strbuf_release(&path);
    return copy;
}

static void a_database_that_vanishes_has_no_mark(void **state)
{
    struct fixture *fixture = *state;
    uint64_t epoch;
    struct store *writer = begin(fixture, &epoch);
    struct store *reader = fixture_open(fixture, STORE_READ);
    struct store_mark before = mark_of(reader);
    struct store_mark gone;
    struct diag diag = {0};
    char *away = dir_beside(fixture, "-away");
    assert_int_equal(rename(fixture->dir, away), 0);
    enum err err = store_mark(reader, &gone, &diag);
    assert_int_equal(rename(away, fixture->dir), 0);
    assert_int_equal(err, ERR_NOT_FOUND);
    assert_non_null(strstr(diag.text, "sluice.db"));
    struct store_mark after = mark_of(reader);
    assert_true(is_equal(&before, &after));
    store_close(reader);
    store_close(writer);
    mem_free(away);
}

static void another_database_at_the_address_has_another_place(void **state)
{
    struct fixture *fixture = *state;
    struct fixture *other = fixture_new(BACKEND_SQLITE);
    uint64_t epoch;
    struct store *writer = begin(fixture, &epoch);
    struct store *reader = fixture_open(fixture, STORE_READ);
    struct store *second = begin(other, &epoch);
    struct store_mark before = mark_of(reader);
    char *away = dir_beside(fixture, "-away");
    assert_int_equal(rename(fixture->dir, away), 0);
    assert_int_equal(rename(other->dir, fixture->dir), 0);
    struct store_mark between = mark_of(reader);
    assert_int_equal(rename(fixture->dir, other->dir), 0);
    assert_int_equal(rename(away, fixture->dir), 0);
    assert_memory_not_equal(before.place, between.place, sizeof(before.place));
    struct store_mark after = mark_of(reader);
    assert_true(is_equal(&before, &after));
    store_close(second);
    store_close(reader);
    store_close(writer);
    mem_free(away);
    fixture_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_EACH(a_mark_stays_while_nothing_is_written),
        FIXTURE_EACH(every_batch_changes_a_settled_mark),
        FIXTURE_EACH(a_mark_does_not_depend_on_the_reader),
        FIXTURE_SQLITE(a_time_that_has_not_passed_is_not_settled),
        FIXTURE_SQLITE(a_database_that_vanishes_has_no_mark),
        FIXTURE_SQLITE(another_database_at_the_address_has_another_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
