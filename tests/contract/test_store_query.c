/* SPDX-License-Identifier: MIT */
/*
 * What a reader asks for is what it gets, on every back end.
 */
#include "base/macros.h"
#include "store/store.h"
#include "tests/contract/fixture.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct strbuf ask(struct store *store, struct store_query query)
{
    struct strbuf out = {0};
    assert_int_equal(fixture_add_rows(store, &query, &out, NULL), ERR_OK);
    return out;
}

/* A store with a run, and another one that has finished. */
static struct store *take_two(struct fixture *fixture)
{
    uint64_t epoch = 0;
    struct store *store = fixture_take_filled(fixture, &epoch);
    struct store_change changes[] = {
        fixture_run(2, "second"),
        fixture_task(2, 0, "done"),
        fixture_claim(2, 2, 0, 1),
        fixture_end(2),
        fixture_claim(3, 2, 0, 2),
        fixture_order("pause"),
        {
            .type = STORE_COMMAND,
            .as.command = {.number = 1, .answer = "{}"},
        },
        {
            .type = STORE_LIMIT_SET,
            .as.limit = {.run = 2, .name = "sessions", .max = 9},
        },
        {.type = STORE_RUN_SET, .as.run = {.number = 2, .finished = true}},
    };
    fixture_write_ok(store, epoch, changes, ARRAY_COUNT(changes));
    return store;
}

static void a_query_gives_what_it_asks_for(void **state)
{
    struct store *store = take_two(*state);
    struct strbuf text = ask(store, (struct store_query){0});
    fixture_assert_contains(&text, "run 1 wave");
    fixture_assert_contains(&text, "fragment 1.0 ");
    fixture_assert_lacks(&text, "fragment 2.");
    fixture_assert_contains(&text, "limit 1.sessions 4");
    fixture_assert_contains(&text, "task 1.0");
    fixture_assert_contains(&text, "attempt 1 ");
    fixture_assert_contains(&text, "order 2 ");
    fixture_assert_lacks(&text, "order 1 "); /* it has been answered */
    fixture_assert_lacks(&text, "run 2 second");
    fixture_assert_lacks(&text, "limit 2.");
    fixture_assert_lacks(&text, "task 2.");
    fixture_assert_lacks(&text, "attempt 2 ");
    fixture_assert_lacks(&text, "attempt 3 ");
    strbuf_release(&text);

    text = ask(store, (struct store_query){.finished = true});
    fixture_assert_contains(&text, "run 1 wave");
    fixture_assert_contains(&text, "run 2 second");
    fixture_assert_contains(&text, "limit 2.sessions 9");
    fixture_assert_contains(&text, "task 2.0");
    fixture_assert_contains(&text, "attempt 1 ");
    fixture_assert_contains(&text, "attempt 3 ");
    fixture_assert_lacks(&text, "attempt 2 ");
    strbuf_release(&text);

    text = ask(store,
               (struct store_query){
                   .run = "second",
                   .ended = true,
               });
    fixture_assert_contains(&text, "[tasks:");
    fixture_assert_lacks(&text, "run 1 ");
    fixture_assert_lacks(&text, "fragment 1.");
    fixture_assert_lacks(&text, "task 1.");
    fixture_assert_lacks(&text, "attempt 1 ");
    fixture_assert_contains(&text, "attempt 2 ");
    fixture_assert_contains(&text, "attempt 3 ");
    fixture_assert_contains(&text, "executor claude");
    strbuf_release(&text);

    text =
        ask(store, (struct store_query){.run = "no such run", .ended = true});
    fixture_assert_lacks(&text, "run 1 ");
    fixture_assert_lacks(&text, "task ");
    fixture_assert_lacks(&text, "attempt ");
    strbuf_release(&text);
    store_close(store);
}

static enum err add_id(void *ctx, const char *id)
{
    strbuf_addf(ctx, "%s;", id);
    return ERR_OK;
}

static void a_query_finds_one_thing(void **state)
{
    uint64_t epoch = 0;
    struct store *store = fixture_take_filled(*state, &epoch);
    struct store_change named = fixture_task(1, 2, "waiting");
    named.as.task.id = "other/stage";
    struct store_change keyed = fixture_order("pause");
    keyed.as.command.key = "k2";
    keyed.as.command.answer = "{}";
    struct store_change changes[] = {
        named,
        keyed,
        fixture_run(2, "second"),
        {.type = STORE_RUN_SET, .as.run = {.number = 2, .finished = true}},
        fixture_run(3, "third"),
    };
    fixture_write_ok(store, epoch, changes, ARRAY_COUNT(changes));

    struct strbuf text =
        ask(store, (struct store_query){.task = "other/stage"});
    fixture_assert_contains(&text, "task 1.2 other/stage");
    fixture_assert_lacks(&text, "task 1.0");
    strbuf_release(&text);

    text = ask(store, (struct store_query){.key = "k2"});
    fixture_assert_contains(&text, "order 2 ");
    fixture_assert_lacks(&text, "order 1 ");
    strbuf_release(&text);
    text = ask(store, (struct store_query){.key = "k3"});
    fixture_assert_lacks(&text, "order 1 ");
    strbuf_release(&text);

    const struct store_visitor visitor = {.other = add_id};
    static const struct {
        struct store_query query;
        const char *others;
    } cases[] = {
        {{0}, "second;"},
        {{.finished = true}, ""},
        {{.run = "second"}, "wave;third;"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        text = (struct strbuf){0};
        assert_int_equal(
            store_read(store, &cases[ix].query, &visitor, &text, NULL, NULL),
            ERR_OK);
        assert_string_equal(strbuf_text(&text), cases[ix].others);
        strbuf_release(&text);
    }
    store_close(store);
}

static enum err add_number(void *ctx, const struct store_event *event)
{
    strbuf_addf(ctx, "%" PRIu64 " ", event->number);
    return ERR_OK;
}

static void a_range_gives_its_events_in_order(void **state)
{
    uint64_t epoch = 0;
    struct store *store = fixture_take_filled(*state, &epoch);
    struct store_change changes[] = {
        fixture_run(2, "second"),
        fixture_task(2, 0, "ready"),
        fixture_event(2, 0, "ready"),                     /* 3 */
        fixture_event(1, 0, "claimed"),                   /* 4 */
        fixture_event(STORE_NONE, STORE_NONE, "claimed"), /* 5 */
        fixture_event(2, 0, "ready"),                     /* 6 */
    };
    fixture_write_ok(store, epoch, changes, ARRAY_COUNT(changes));
    static const struct {
        struct store_range range;
        const char *numbers;
    } cases[] = {
        {{0}, "1 2 3 4 5 6 "},
        {{.after = 4}, "5 6 "},
        {{.after = 6}, ""},
        {{.after = UINT64_MAX}, ""},
        {{.max = 2}, "1 2 "},
        {{.after = 2, .max = 3}, "3 4 5 "},
        {{.run = 1}, "1 2 4 5 "},
        {{.run = 2}, "3 5 6 "},
        {{.run = 2, .after = 3}, "5 6 "},
        {{.run = 2, .after = 3, .max = 1}, "5 "},
        {{.run = 1, .max = 3}, "1 2 4 "},
        {{.run = 9}, "5 "},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        struct strbuf text = {0};
        assert_int_equal(
            store_events(store, &cases[ix].range, add_number, &text, NULL),
            ERR_OK);
        assert_string_equal(strbuf_text(&text), cases[ix].numbers);
        strbuf_release(&text);
    }
    store_close(store);
}

static void gates_are_found_by_repository_by_run_and_the_last_ones(void **state)
{
    struct store *store = take_two(*state);
    uint64_t epoch = 1;
    struct store_change changes[] = {
        fixture_gate(2, 0, 2, "/api", "failed"),
        fixture_gate(2, 1, 2, "/api", "passed"),
        fixture_gate(1, 0, 1, "/ui", "flaky"),
        fixture_gate(3, 0, 2, "/ui", "passed"),
    };
    fixture_write_ok(store, epoch, changes, ARRAY_COUNT(changes));
    struct strbuf text = ask(store, (struct store_query){.repo = "/api"});
    fixture_assert_contains(&text,
                            "gate 2.0 2.0 /api t1 c1 \"make test\" failed 2 "
                            "1700000000000000009 wave, api-1/merge no\n"
                            "gate 2.1 2.0 /api t1 c1 \"make test\" passed 2 "
                            "1700000000000000009 wave, api-1/merge (null)\n");
    fixture_assert_lacks(&text, "gate 1.");
    fixture_assert_lacks(&text, "gate 3.");
    strbuf_release(&text);
    text = ask(store, (struct store_query){.gates = 2});
    fixture_assert_lacks(&text, "gate 1.");
    fixture_assert_lacks(&text, "gate 2.0");
    fixture_assert_contains(&text, "gate 2.1");
    fixture_assert_contains(&text, "gate 3.0");
    strbuf_release(&text);
    text = ask(store, (struct store_query){0});
    fixture_assert_contains(&text, "gate 1.0");
    fixture_assert_lacks(&text, "gate 2.");
    strbuf_release(&text);
    text = ask(store, (struct store_query){.run = "second"});
    fixture_assert_lacks(&text, "gate 1.");
    fixture_assert_contains(&text, "gate 3.0");
    strbuf_release(&text);
    struct strbuf faults = {0};
    assert_int_equal(fixture_verify(store, &faults, NULL), ERR_OK);
    fixture_assert_lacks(&faults, "table gate");
    strbuf_clear(&faults);
    changes[0] = fixture_gate(99, 0, 1, "/api", "passed");
    fixture_write_ok(store, epoch, changes, 1);
    assert_int_equal(fixture_verify(store, &faults, NULL), ERR_OK);
    fixture_assert_contains(&faults,
                            "table gate, row 99.0: the token was never given "
                            "out");
    strbuf_release(&faults);
    store_close(store);
}

static void a_verdict_is_stored_once(void **state)
{
    struct store *store = take_two(*state);
    struct store_change changes[] = {fixture_gate(1, 0, 1, "/ui", "passed")};
    struct diag diag = {0};
    fixture_write_ok(store, 1, changes, 1);
    struct strbuf before = fixture_contents(store);
    assert_int_equal(fixture_write(store, 1, changes, 1, &diag), ERR_CONFLICT);
    changes[0] = fixture_gate(1, 1, 7, "/ui", "passed"); /* no such run */
    assert_int_equal(fixture_write(store, 1, changes, 1, &diag), ERR_CONFLICT);
    struct strbuf after = fixture_contents(store);
    assert_string_equal(strbuf_text(&before), strbuf_text(&after));
    strbuf_release(&before);
    strbuf_release(&after);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_EACH(a_query_finds_one_thing),
        FIXTURE_EACH(a_query_gives_what_it_asks_for),
        FIXTURE_EACH(a_range_gives_its_events_in_order),
        FIXTURE_EACH(a_verdict_is_stored_once),
        FIXTURE_EACH(gates_are_found_by_repository_by_run_and_the_last_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
