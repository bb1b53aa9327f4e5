/* SPDX-License-Identifier: MIT */
/*
 * Turns at a function that returns what it is given, or does what the table
 * `mode` says. A case waits for turns, never for a time.
 */
#include "work/turns.h"

#include "base/duration.h"
#include "base/macros.h"
#include "base/mem.h"
#include "tests/contract/fixture.h"
#include "tests/contract/server.h"
#include "tests/support/calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PATIENCE_MS = 120000, LONG_BYTES = 12 << 20 };

/* A table of what a turn does, and functions for turns, also brief ones. */
static const char tables[] =
    "CREATE TABLE mode (what text);"
    "INSERT INTO mode VALUES ('');"
    "CREATE FUNCTION take(said jsonb) RETURNS SETOF jsonb LANGUAGE plpgsql AS "
    "$$"
    " BEGIN"
    "  IF (SELECT what FROM mode) = 'raise' THEN"
    "   RAISE 'refused' USING ERRCODE = '42501';"
    "  ELSIF (SELECT what FROM mode) <> 'nothing' THEN"
    "   RETURN NEXT said;"
    "  END IF;"
    " END $$;"
    "CREATE FUNCTION take_brief(said jsonb) RETURNS jsonb LANGUAGE sql AS"
    " $$ SELECT '\"brief\"'::jsonb $$";

struct circle {
    struct fixture *fixture;
    uv_loop_t loop;
    uv_timer_t timer; /* so that no wait is endless */
    struct turns *turns;
    const char *function;
    bool brief; /* it has a function for brief turns */
    const char *says;
    uint32_t heard;
    uint32_t failed;
    uint32_t briefs;
    enum err last;
    size_t len;  /* of the last result */
    bool closes; /* with the next turn */
};

static void on_say(void *ctx, bool brief, struct strbuf *out)
{
    struct circle *circle = ctx;
    circle->briefs += brief ? 1 : 0;
    strbuf_adds(out, circle->says);
}

static void on_hear(void *ctx,
                    const char *text,
                    int64_t since_ns,
                    enum err err,
                    const struct diag *why)
{
    struct circle *circle = ctx;
    assert_true(since_ns > 0);
    assert_true((err == ERR_OK) == (text != NULL));
    assert_true((err == ERR_OK) == (why->text[0] == '\0'));
    circle->heard++;
    circle->failed += err != ERR_OK ? 1 : 0;
    circle->last = err;
    circle->len = text != NULL ? strlen(text) : 0;
    if (circle->closes) {
        turns_close(circle->turns);
    }
}

static void on_late(uv_timer_t *timer)
{
    (void)timer;
    fail_msg("no turn was made for two minutes");
}

static void begin(struct circle *circle, struct fixture *fixture)
{
    uint64_t epoch = 0;
    *circle = (struct circle){
        .fixture = fixture,
        .function = "take",
        .says = "{}",
    };
    store_close(fixture_take(fixture, &epoch)); /* which makes its schema */
    fixture_sql(fixture, tables);
    assert_int_equal(uv_loop_init(&circle->loop), 0);
    assert_int_equal(uv_timer_init(&circle->loop, &circle->timer), 0);
}

static void open_turns(struct circle *circle, int64_t pause_ns)
{
    struct diag diag = {0};
    enum err err = turns_open(&circle->turns,
                              &(struct turns_options){
                                  .uv = &circle->loop,
                                  .address = circle->fixture->address,
                                  .function = circle->function,
                                  .brief = circle->brief ? "take_brief" : NULL,
                                  .channel = "circle",
                                  .name = circle->brief ? NULL : "me",
                                  .pause_ns = pause_ns,
                                  .say = on_say,
                                  .hear = on_hear,
                                  .ctx = circle,
                              },
                              &diag);
    assert_int_equal(err, ERR_OK);
}

static void close_turns(struct circle *circle)
{
    turns_close(circle->turns);
    (void)uv_run(&circle->loop, UV_RUN_DEFAULT);
    turns_free(circle->turns);
    circle->turns = NULL;
}

static void end(struct circle *circle)
{
    turns_close(NULL);
    turns_free(NULL);
    close_turns(circle);
    uv_close((uv_handle_t *)&circle->timer, NULL);
    (void)uv_run(&circle->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&circle->loop), 0);
}

/* Run until so many turns have been heard since the case began. */
static void await(struct circle *circle, uint32_t count)
{
    assert_int_equal(uv_timer_start(&circle->timer, on_late, PATIENCE_MS, 0),
                     0);
    while (circle->heard < count) {
        (void)uv_run(&circle->loop, UV_RUN_ONCE);
    }
    assert_int_equal(uv_timer_stop(&circle->timer), 0);
}

/* Run until a turn has succeeded after those so far. */
static void await_good(struct circle *circle)
{
    do {
        turns_wake(circle->turns, 0);
        await(circle, circle->heard + 1);
    } while (circle->last != ERR_OK);
}

static void set_mode(const struct circle *circle, const char *mode)
{
    struct strbuf sql = {0};
    strbuf_addf(&sql, "UPDATE mode SET what = '%s'", mode);
    fixture_sql(circle->fixture, strbuf_text(&sql));
    strbuf_release(&sql);
}

/* --- cases -------------------------------------------------------------- */

static void turns_follow_each_other(void **state)
{
    struct circle circle;
    begin(&circle, *state);
    open_turns(&circle, MS_NS);
    await(&circle, 5);
    assert_int_equal(circle.failed, 0);
    assert_int_equal(circle.len, strlen("{}"));
    turns_set_pause(circle.turns, HOUR_NS);
    await(&circle, 6);
    turns_wake(circle.turns, HOUR_NS);
    turns_wake(circle.turns, HOUR_NS / 2); /* it is wanted already */
    turns_wake(circle.turns, 0);
    await(&circle, 7);
    assert_int_equal(circle.failed, 0);
    turns_close(circle.turns);
    turns_wake(circle.turns, 0); /* no effect */
    (void)uv_run(&circle.loop, UV_RUN_NOWAIT);
    assert_int_equal(circle.heard, 7);
    end(&circle);
}

static void only_its_notifications_wake_it(void **state)
{
    struct circle circle;
    begin(&circle, *state);
    open_turns(&circle, HOUR_NS);
    await(&circle, 1);
    fixture_sql(circle.fixture, "NOTIFY circle, 'other'");
    fixture_sql(circle.fixture, "NOTIFY circle, 'me'");
    await(&circle, 2);
    fixture_sql(circle.fixture, "NOTIFY circle");
    await(&circle, 3);
    /* One that comes with the result of a turn is not lost. */
    fixture_sql(circle.fixture, "NOTIFY circle, 'me'");
    turns_wake(circle.turns, 0);
    await(&circle, 4);
    end(&circle);
}

static void requests_only_need_a_brief_turn(void **state)
{
    struct circle circle;
    begin(&circle, *state);
    circle.brief = true;
    open_turns(&circle, HOUR_NS);
    await(&circle, 1);
    fixture_sql(circle.fixture, "NOTIFY circle, 'ask'");
    await(&circle, 2);
    assert_int_equal(circle.briefs, 1);
    assert_int_equal(circle.len, strlen("\"brief\""));
    fixture_sql(circle.fixture, "NOTIFY circle, 'report'");
    await(&circle, 3);
    assert_int_equal(circle.briefs, 1);
    turns_wake(circle.turns, HOUR_NS); /* a whole one is wanted anyway */
    fixture_sql(circle.fixture, "NOTIFY circle, 'ask'");
    await(&circle, 4);
    assert_int_equal(circle.briefs, 1);
    end(&circle);
}

static void a_long_turn_is_sent_in_parts(void **state)
{
    struct circle circle;
    begin(&circle, *state);
    open_turns(&circle, HOUR_NS);
    await(&circle, 1);
    char *text = mem_zalloc(LONG_BYTES + 1, 1);
    memset(text, 'x', LONG_BYTES);
    text[0] = text[LONG_BYTES - 1] = '"';
    circle.says = text;
    turns_wake(circle.turns, 0);
    await(&circle, 2);
    assert_int_equal(circle.failed, 0);
    assert_int_equal(circle.len, LONG_BYTES);
    end(&circle);
    mem_free(text);
}

static void a_refused_turn_is_made_again(void **state)
{
    struct circle circle;
    begin(&circle, *state);
    set_mode(&circle, "raise");
    open_turns(&circle, HOUR_NS);
    await(&circle, 1); /* in the thread */
    assert_int_equal(circle.last, ERR_DENIED);
    await(&circle, 2); /* in the loop */
    assert_int_equal(circle.last, ERR_DENIED);
    turns_wake(circle.turns, 0); /* not before the pause after a failure */
    set_mode(&circle, "");
    await_good(&circle);
    end(&circle);
}

static void a_turn_without_a_result_is_an_error(void **state)
{
    struct circle circle;
    begin(&circle, *state);
    set_mode(&circle, "nothing");
    open_turns(&circle, HOUR_NS);
    await(&circle, 1);
    assert_int_equal(circle.last, ERR_CORRUPT);
    await(&circle, 2);
    assert_int_not_equal(circle.last, ERR_OK);
    set_mode(&circle, "");
    await_good(&circle);
    end(&circle);
}

static void a_missing_function_is_an_error(void **state)
{
    struct circle circle;
    begin(&circle, *state);
    circle.function = "missing";
    open_turns(&circle, HOUR_NS);
    await(&circle, 1);
    assert_int_not_equal(circle.last, ERR_OK);
    fixture_sql(circle.fixture, "ALTER FUNCTION take(jsonb) RENAME TO missing");
    await_good(&circle);
    end(&circle);
}

static void a_bad_address_is_an_error(void **state)
{
    struct turns *turns = NULL;
    struct diag diag = {0};
    (void)state;
    assert_int_equal(turns_open(&turns,
                                &(struct turns_options){
                                    .address = "postgresql://[",
                                    .function = "take",
                                    .channel = "circle",
                                },
                                &diag),
                     ERR_INVALID);
    assert_null(turns);
}

static void closing_does_not_wait_for_the_thread(void **state)
{
    struct circle circle;
    begin(&circle, *state);
    open_turns(&circle, HOUR_NS);
    (void)uv_run(&circle.loop, UV_RUN_NOWAIT); /* the thread has the turn */
    close_turns(&circle);
    assert_int_equal(circle.heard, 0);
    open_turns(&circle, HOUR_NS);
    await(&circle, 1);
    circle.closes = true; /* while it is heard */
    turns_wake(circle.turns, 0);
    await(&circle, 2);
    close_turns(&circle);
    open_turns(&circle, HOUR_NS);
    circle.closes = false;
    await(&circle, 3);
    char *text = mem_zalloc(LONG_BYTES + 1, 1);
    memset(text, 'x', LONG_BYTES);
    text[0] = text[LONG_BYTES - 1] = '"';
    circle.says = text;
    turns_wake(circle.turns, 0);
    (void)uv_run(&circle.loop, UV_RUN_ONCE); /* it is being sent */
    assert_int_equal(circle.heard, 3);
    end(&circle);
    mem_free(text);
}

/* A result that does not come, or a connection that is gone. */
static void a_connection_may_end_at_any_time(void **state)
{
    struct circle circle;
    begin(&circle, *state);
    open_turns(&circle, HOUR_NS);
    await(&circle, 1);
    fixture_sql(circle.fixture,
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
                " WHERE query LIKE '%LISTEN circle%'"
                " AND pid <> pg_backend_pid()");
    await(&circle, 2); /* it is noticed without a notification */
    assert_int_equal(circle.failed, 1);
    await_good(&circle);
    end(&circle);
}

/* Whichever call fails, the turn is heard as failed, or has succeeded, and a
 * later one succeeds. */
static void any_call_of_a_turn_can_fail(void **state)
{
    static const char *const kinds[] = {"PQ", "uv_", "poll"};
    struct circle circle;
    begin(&circle, *state);
    for (size_t ix = 0; ix < ARRAY_COUNT(kinds); ix++) {
        for (unsigned n = 1; calls_more(); n++) {
            circle.failed = 0;
            calls_fail(&(struct calls_fault){.only = kinds[ix], .first = n});
            open_turns(&circle, HOUR_NS);
            await(&circle, circle.heard + 1); /* in the thread */
            await_good(&circle);              /* in the loop */
            calls_pause();
            fixture_sql(circle.fixture, "NOTIFY circle");
            calls_resume();
            await(&circle, circle.heard + 1);
            bool struck = calls_end();
            assert_true(circle.failed <= (struck ? 1 : 0));
            await_good(&circle);
            close_turns(&circle);
        }
    }
    /* A connection that cannot be polled is used by the thread. */
    circle.failed = 0;
    calls_fail(&(struct calls_fault){
        .only = "uv_poll_init",
        .first = 1,
        .count = 3,
    });
    open_turns(&circle, HOUR_NS);
    await(&circle, circle.heard + 1);
    await_good(&circle);
    await_good(&circle);
    await_good(&circle);
    assert_true(calls_end());
    assert_int_equal(circle.failed, 0);
    end(&circle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_POSTGRES(turns_follow_each_other),
        FIXTURE_POSTGRES(only_its_notifications_wake_it),
        FIXTURE_POSTGRES(requests_only_need_a_brief_turn),
        FIXTURE_POSTGRES(a_long_turn_is_sent_in_parts),
        FIXTURE_POSTGRES(a_refused_turn_is_made_again),
        FIXTURE_POSTGRES(a_turn_without_a_result_is_an_error),
        FIXTURE_POSTGRES(a_missing_function_is_an_error),
        cmocka_unit_test(a_bad_address_is_an_error),
        FIXTURE_POSTGRES(closing_does_not_wait_for_the_thread),
        FIXTURE_POSTGRES(a_connection_may_end_at_any_time),
        FIXTURE_POSTGRES(any_call_of_a_turn_can_fail),
    };
    return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}
