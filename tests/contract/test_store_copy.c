/* SPDX-License-Identifier: MIT */
/* A store that is copied to another back end goes on there. */
#include "store/copy.h"

#include "base/macros.h"
#include "base/mem.h"
#include "tests/contract/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TASKS = 30, LARGE = 25000 };

/* A store with some of everything, of which nothing is in flight. */
static struct store *fill(struct fixture *fixture, uint64_t *epoch)
{
    for (int ix = 0; ix < 5; ix++) { /* epochs */
        store_close(fixture_take(fixture, epoch));
    }
    struct store *store = fixture_take(fixture, epoch);
    fixture_write_ok(
        store,
        *epoch,
        (struct store_change[]){
            fixture_run(1, "wave"),
            fixture_order("cap"),
            {
                .type = STORE_FRAGMENT,
                .as.fragment = {.run = 1,
                                .number = 1,
                                .file = "more.yaml",
                                .text = "a\0b",
                                .text_bytes = 3},
            },
            {
                .type = STORE_LIMIT_SET,
                .as.limit =
                    {.run = 1, .name = "sessions", .max = 4, .percent = 50},
            },
            {
                .type = STORE_PROVIDER,
                .as.provider = {.name = "claude",
                                .steps = 1,
                                .usage = true,
                                .stopped = true,
                                .reason = "no credit"},
            },
            {
                .type = STORE_SETTING,
                .as.setting = {.name = "usage", .value = "{\"percent\":50}"},
            },
        },
        6);
    for (uint32_t ix = 0; ix < TASKS; ix++) {
        struct store_change changes[] = {
            fixture_task(1, ix, "done"),
            fixture_claim(ix + 1, 1, ix, 1),
            fixture_event(1, ix, "claimed"),
            fixture_gate(ix + 1,
                         0,
                         1,
                         "api",
                         ix % 2 == 0 ? "passed" : "failed"),
            fixture_event(1, ix, "done"),
        };
        fixture_write_ok(store, *epoch, changes, ARRAY_COUNT(changes));
        struct store_change end = fixture_end(ix + 1);
        fixture_write_ok(store, *epoch, &end, 1);
    }
    return store;
}

/* Copy from one fixture to another. */
static enum err copy(struct fixture *from,
                     struct fixture *to,
                     struct store_copied *copied,
                     struct diag *diag)
{
    uint64_t epochs[2] = {0};
    struct store *source = fixture_take(from, &epochs[0]);
    struct store *target = fixture_take(to, &epochs[1]);
    enum err err = store_copy(source, target, copied, diag);
    store_close(source);
    store_close(target);
    return err;
}

static void copy_ok(struct fixture *from, struct fixture *to)
{
    struct store_copied copied;
    struct diag diag = {0};
    if (copy(from, to, &copied, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
    assert_int_equal(copied.runs, 1);
    assert_int_equal(copied.events, 2 * TASKS);
}

/* Everything but the head, which counts epochs and writes. */
static struct strbuf rows_of(struct fixture *fixture)
{
    struct store *store = fixture_open(fixture, STORE_READ);
    struct strbuf text = {0};
    const struct store_query query = {
        .finished = true,
        .ended = true,
        .answered = true,
        .gates = UINT32_MAX,
    };
    assert_int_equal(fixture_add_rows(store, &query, &text, NULL), ERR_OK);
    assert_int_equal(fixture_add_events(store, 0, &text, NULL), ERR_OK);
    store_close(store);
    return text;
}

static void round_trip(enum backend first, enum backend second)
{
    struct fixture *a = fixture_new(first);
    struct fixture *b = fixture_new(second);
    struct fixture *c = fixture_new(BACKEND_SQLITE);
    uint64_t before = 0;
    uint64_t epoch = 0;
    store_close(fill(a, &before));
    copy_ok(a, b);
    struct strbuf texts[] = {rows_of(a), rows_of(b), {0}};
    assert_string_equal(strbuf_text(&texts[0]), strbuf_text(&texts[1]));
    /* It goes on: with greater epochs, and the next token and event. */
    struct store *store = fixture_take(b, &epoch);
    assert_true(epoch > before + 1);
    struct store_change late = fixture_claim(TASKS, 1, 0, 2);
    assert_int_equal(fixture_write_one(store, epoch, late), ERR_CONFLICT);
    struct store_change changes[] = {
        fixture_claim(TASKS + 1, 1, 0, 2),
        fixture_event(1, 0, "running"),
        fixture_event(1, 0, "done"),
    };
    fixture_write_ok(store, epoch, changes, ARRAY_COUNT(changes));
    assert_int_equal(fixture_info(store).last_event, 2 * TASKS + 2);
    struct store_change end = fixture_end(TASKS + 1);
    fixture_write_ok(store, epoch, &end, 1);
    store_close(store);
    struct store_copied copied;
    assert_int_equal(copy(b, c, &copied, NULL), ERR_OK);
    strbuf_release(&texts[1]);
    texts[1] = rows_of(b);
    texts[2] = rows_of(c);
    assert_string_equal(strbuf_text(&texts[1]), strbuf_text(&texts[2]));
    for (size_t ix = 0; ix < ARRAY_COUNT(texts); ix++) {
        strbuf_release(&texts[ix]);
    }
    fixture_free(a);
    fixture_free(b);
    fixture_free(c);
}

static void from_sqlite_to_postgres_and_back(void **state)
{
    (void)state;
    round_trip(BACKEND_SQLITE, BACKEND_POSTGRES);
}

static void from_postgres_to_sqlite_and_on(void **state)
{
    (void)state;
    round_trip(BACKEND_POSTGRES, BACKEND_SQLITE);
}

static void an_attempt_in_flight_is_refused(void **state)
{
    struct fixture *to = fixture_new(BACKEND_POSTGRES);
    struct store_copied copied;
    struct diag diag = {0};
    uint64_t epoch = 0;
    struct store *store = fill(*state, &epoch);
    struct store_change claim[] = {
        fixture_task(1, 0, "running"),
        fixture_claim(TASKS + 1, 1, 0, 2),
        fixture_event(1, 0, "running"),
    };
    fixture_write_ok(store, epoch, claim, ARRAY_COUNT(claim));
    store_close(store);
    assert_int_equal(copy(*state, to, &copied, &diag), ERR_CONFLICT);
    assert_non_null(strstr(diag.text, "in flight"));
    assert_non_null(strstr(diag.text, "sluice drain"));
    store = fixture_open(to, STORE_READ);
    assert_int_equal(fixture_info(store).last_event, 0);
    store_close(store);
    fixture_free(to);
}

static void a_store_that_is_not_empty_is_refused(void **state)
{
    struct fixture *to = fixture_new(BACKEND_POSTGRES);
    struct store_copied copied;
    struct diag diag = {0};
    uint64_t epoch = 0;
    store_close(fill(*state, &epoch));
    copy_ok(*state, to);
    struct strbuf before = rows_of(to);
    assert_int_equal(copy(*state, to, &copied, &diag), ERR_CONFLICT);
    assert_non_null(strstr(diag.text, "not empty"));
    struct strbuf after = rows_of(to);
    assert_string_equal(strbuf_text(&before), strbuf_text(&after));
    strbuf_release(&before);
    strbuf_release(&after);
    fixture_free(to);
}

/* More rows than go to a server at once. */
static void a_large_store_is_copied(void **state)
{
    struct fixture *to = fixture_new(BACKEND_POSTGRES);
    struct store_copied copied;
    struct diag diag = {0};
    uint64_t epoch = 0;
    struct store *store = fill(*state, &epoch);
    struct store_batch batch = {.epoch = epoch, .engine_ns = 1, .wall_ns = 1};
    struct store_change event = fixture_event(1, 0, "done");
    for (uint32_t ix = 0; ix < LARGE; ix++) {
        store_batch_add(&batch, &event);
    }
    assert_int_equal(store_write(store, &batch, &diag), ERR_OK);
    store_batch_release(&batch);
    store_close(store);
    assert_int_equal(copy(*state, to, &copied, &diag), ERR_OK);
    assert_int_equal(copied.events, 2 * TASKS + LARGE);
    fixture_free(to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_sqlite_to_postgres_and_back),
        cmocka_unit_test(from_postgres_to_sqlite_and_on),
        FIXTURE_SQLITE(an_attempt_in_flight_is_refused),
        FIXTURE_SQLITE(a_store_that_is_not_empty_is_refused),
        FIXTURE_SQLITE(a_large_store_is_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
