/* SPDX-License-Identifier: MIT */
/*
 * Removing finished runs: they go, all else stays, and what is left of the log
 * can still be verified, at every step on the way (13.27).
 */
#include "store/store.h"

#include "base/macros.h"
#include "base/mem.h"
#include "store/event.h"
#include "tests/contract/fixture.h"

#include <inttypes.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct store_change
prune(uint32_t run, enum store_prune_part part, uint64_t first, uint64_t last)
{
    return (struct store_change){
        .type = STORE_PRUNE,
        .as.prune = {.run = run, .part = part, .first = first, .last = last},
    };
}

static struct store_change finish(uint32_t run)
{
    return (struct store_change){
        .type = STORE_RUN_SET,
        .as.run = {.number = run, .finished = true},
    };
}

static struct store_change setting(const char *name, const char *value)
{
    return (struct store_change){
        .type = STORE_SETTING,
        .as.setting = {.name = name, .value = value},
    };
}

static void write_all(struct store *store,
                      uint64_t epoch,
                      const struct store_change *changes,
                      uint32_t count)
{
    struct diag diag = {0};
    if (fixture_write(store, epoch, changes, count, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
}

/* Two runs whose events are interleaved; the first has finished. */
static void fill(struct store *store, uint64_t epoch)
{
    struct store_change changes[] = {
        fixture_run(1, "old"),
        fixture_run(2, "young"),
        fixture_task(1, 0, "done"),
        fixture_task(1, 1, "done"),
        fixture_task(2, 0, "running"),
        fixture_claim(1, 1, 0, 1),
        fixture_end(1),
        fixture_claim(2, 2, 0, 1),
        fixture_claim(3, 1, 1, 1),
        fixture_end(3),
        fixture_gate(1, 0, 1, "/api", "passed"),
        fixture_gate(2, 0, 2, "/api", "failed"),
        fixture_event(1, 0, "ready"), /* 1 */
        fixture_event(1, 0, "running"),
        fixture_event(2, 0, "ready"), /* 3 */
        fixture_event(1, 0, "done"),
        fixture_event(2, 0, "running"), /* 5 */
        fixture_event(1, 1, "ready"),
        fixture_event(1, 1, "done"), /* 7 */
        setting("base/1/0", "4"),
        setting("budget/1/0", "5"),
        setting("budget/12/0", "6"),
        setting("expected/1", "[]"),
        setting("history/implement", "{\"count\":2}"),
        finish(1),
    };
    write_all(store, epoch, changes, ARRAY_COUNT(changes));
}

static void expect_sound(struct store *store)
{
    struct strbuf faults = {0};
    assert_int_equal(fixture_verify(store, &faults, NULL), ERR_OK);
    assert_string_equal(strbuf_text(&faults), "");
    strbuf_release(&faults);
}

/* Remove a run in small steps, and look after each. */
static void remove_run(struct store *store, uint64_t epoch, uint32_t run)
{
    struct store_change steps[] = {
        prune(run, STORE_PRUNE_EVENTS, 0, 2),
        prune(run, STORE_PRUNE_EVENTS, 3, 6),
        prune(run, STORE_PRUNE_EVENTS, 0, 100),
        prune(run, STORE_PRUNE_TASKS, 1, 1),
        prune(run, STORE_PRUNE_RUN, 0, 0), /* too early: nothing happens */
        prune(run, STORE_PRUNE_TASKS, 0, 100),
        prune(run, STORE_PRUNE_RUN, 0, 0),
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(steps); ix++) {
        write_all(store, epoch, &steps[ix], 1);
        expect_sound(store);
    }
}

/* Only what is not of run 1 may be in the store. */
static void expect_only_young(struct store *store)
{
    struct strbuf all = fixture_contents(store);
    static const char *const gone[] = {
        "run 1 ",
        "task 1.",
        "gate 1.",
        "budget/1/",
        "expected/1",
    };
    static const char *const kept[] = {
        "run 2 young",
        "task 2.0",
        "gate 2.0 2.0",
        "setting budget/12/0 6",
        "setting history/implement {\"count\":2}",
        "setting pruned/old {\"number\":1,\"name\":",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(gone); ix++) {
        if (strstr(strbuf_text(&all), gone[ix]) != NULL) {
            fail_msg("\"%s\" in:\n%s", gone[ix], strbuf_text(&all));
        }
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(kept); ix++) {
        if (strstr(strbuf_text(&all), kept[ix]) == NULL) {
            fail_msg("no \"%s\" in:\n%s", kept[ix], strbuf_text(&all));
        }
    }
    strbuf_release(&all);
}

struct numbers {
    uint64_t seen[16];
    uint32_t count;
};

static enum err on_event(void *ctx, const struct store_event *event)
{
    struct numbers *numbers = ctx;
    assert_true(numbers->count < ARRAY_COUNT(numbers->seen));
    numbers->seen[numbers->count++] = event->number;
    return ERR_OK;
}

static void expect_events(struct store *store,
                          uint64_t after,
                          const uint64_t *wanted,
                          uint32_t count)
{
    struct numbers numbers = {0};
    const struct store_range range = {.after = after};
    assert_int_equal(store_events(store, &range, on_event, &numbers, NULL),
                     ERR_OK);
    assert_int_equal(numbers.count, count);
    assert_memory_equal(numbers.seen, wanted, count * sizeof(wanted[0]));
}

static void a_finished_run_goes_and_the_rest_stays_sound(void **state)
{
    struct fixture *fixture = *state;
    uint64_t epoch = 0;
    struct store *store = fixture_take(fixture, &epoch);
    fill(store, epoch);
    expect_sound(store);
    remove_run(store, epoch, 1);
    expect_only_young(store);
    expect_events(store, 0, (uint64_t[]){3, 5}, 2);
    expect_events(store, 3, (uint64_t[]){5}, 1);
    expect_events(store, 4, (uint64_t[]){5}, 1);
    expect_events(store, 7, NULL, 0);
    store_close(store);
}

/* How a plan has ended is known after its tasks have gone. */
static void a_removed_run_with_a_cancelled_task_counts_as_such(void **state)
{
    struct fixture *fixture = *state;
    uint64_t epoch = 0;
    struct store *store = fixture_take(fixture, &epoch);
    struct store_change changes[] = {
        fixture_run(1, "old"),
        fixture_task(1, 0, "done"),
        fixture_task(1, 1, "cancelled"),
        finish(1),
        fixture_run(2, "well"),
        fixture_task(2, 0, "done"),
        finish(2),
        prune(1, STORE_PRUNE_TASKS, 0, 0),
        prune(1, STORE_PRUNE_TASKS, 1, 1),
        prune(1, STORE_PRUNE_RUN, 0, 0),
        prune(2, STORE_PRUNE_TASKS, 0, 1),
        prune(2, STORE_PRUNE_RUN, 0, 0),
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(changes); ix++) {
        write_all(store, epoch, &changes[ix], 1);
    }
    struct strbuf all = fixture_contents(store);
    const char *old = strstr(strbuf_text(&all), "setting pruned/old ");
    const char *well = strstr(strbuf_text(&all), "setting pruned/well ");
    assert_non_null(old);
    assert_non_null(well);
    assert_true(old < well);
    const char *cancelled = strstr(old, "\"cancelled\":true}");
    assert_true(cancelled != NULL && cancelled < well);
    assert_non_null(strstr(well, "\"cancelled\":false}"));
    strbuf_release(&all);
    store_close(store);
}

/* The log ends with events that are gone: it is opened, and goes on. */
static void the_log_goes_on_after_a_gap_at_its_end(void **state)
{
    struct fixture *fixture = *state;
    uint64_t epoch = 0;
    struct store *store = fixture_take(fixture, &epoch);
    fill(store, epoch);
    remove_run(store, epoch, 1);
    store_close(store);
    store = fixture_take(fixture, &epoch);
    expect_sound(store);
    struct store_change event = fixture_event(2, 0, "running");
    write_all(store, epoch, &event, 1);
    expect_events(store, 0, (uint64_t[]){3, 5, 8}, 3);
    expect_sound(store);
    /* The second run goes, too: one gap is left of all. */
    struct store_change end[] = {fixture_end(2), finish(2)};
    write_all(store, epoch, end, ARRAY_COUNT(end));
    remove_run(store, epoch, 2);
    expect_events(store, 0, NULL, 0);
    struct strbuf all = fixture_contents(store);
    const char *first = strstr(strbuf_text(&all), "setting events/");
    assert_non_null(first);
    assert_null(strstr(first + 1, "setting events/"));
    assert_non_null(strstr(first, "00000001 {\"last\":8,"));
    strbuf_release(&all);
    store_close(store);
}

static void what_has_not_finished_is_left_alone(void **state)
{
    struct fixture *fixture = *state;
    uint64_t epoch = 0;
    struct store *store = fixture_take(fixture, &epoch);
    fill(store, epoch);
    struct strbuf before = fixture_contents(store);
    remove_run(store, epoch, 2); /* runs */
    remove_run(store, epoch, 7); /* was never there */
    struct strbuf after = fixture_contents(store);
    assert_string_equal(strbuf_text(&before), strbuf_text(&after));
    strbuf_release(&after);
    strbuf_release(&before);
    /* An attempt that has not ended keeps its task, and that its run. */
    struct store_change done = finish(2);
    write_all(store, epoch, &done, 1);
    remove_run(store, epoch, 2);
    after = fixture_contents(store);
    assert_non_null(strstr(strbuf_text(&after), "run 2 young"));
    assert_non_null(strstr(strbuf_text(&after), "task 2.0"));
    strbuf_release(&after);
    store_close(store);
}

static void an_id_is_never_given_out_again(void **state)
{
    struct fixture *fixture = *state;
    uint64_t epoch = 0;
    struct store *store = fixture_take(fixture, &epoch);
    fill(store, epoch);
    remove_run(store, epoch, 1);
    assert_int_equal(fixture_write_one(store, epoch, fixture_run(3, "old")),
                     ERR_CONFLICT);
    assert_int_equal(fixture_write_one(store, epoch, fixture_run(1, "new")),
                     ERR_CONFLICT);
    assert_int_equal(fixture_write_one(store, epoch, fixture_run(3, "new")),
                     ERR_OK);
    expect_sound(store);
    store_close(store);
}

/* A batch that fails removes nothing. */
static void a_batch_that_does_not_fit_removes_nothing(void **state)
{
    struct fixture *fixture = *state;
    uint64_t epoch = 0;
    struct store *store = fixture_take(fixture, &epoch);
    fill(store, epoch);
    struct strbuf before = fixture_contents(store);
    struct store_change changes[] = {
        prune(1, STORE_PRUNE_EVENTS, 0, 100),
        prune(1, STORE_PRUNE_TASKS, 0, 100),
        fixture_end(1), /* has ended */
    };
    assert_int_equal(
        fixture_write(store, epoch, changes, ARRAY_COUNT(changes), NULL),
        ERR_CONFLICT);
    struct strbuf after = fixture_contents(store);
    assert_string_equal(strbuf_text(&before), strbuf_text(&after));
    strbuf_release(&after);
    strbuf_release(&before);
    store_close(store);
}

static void both_back_ends_keep_the_same(void **state)
{
    (void)state;
    struct strbuf texts[2] = {{0}};
    for (int ix = 0; ix < 2; ix++) {
        struct fixture *fixture =
            fixture_new(ix == 0 ? BACKEND_MEMORY : BACKEND_SQLITE);
        uint64_t epoch = 0;
        struct store *store = fixture_take(fixture, &epoch);
        fill(store, epoch);
        remove_run(store, epoch, 1);
        texts[ix] = fixture_contents(store);
        store_close(store);
        fixture_free(fixture);
    }
    assert_string_equal(strbuf_text(&texts[0]), strbuf_text(&texts[1]));
    strbuf_release(&texts[0]);
    strbuf_release(&texts[1]);
}

/* Damage beside a gap, and of a gap, is found as ever. */
static void damage_is_still_found(void **state)
{
    static const struct {
        const char *sql;
        const char *part;
    } cases[] = {
        {"UPDATE event SET data = '{\"to\":\"ready\" }' WHERE number = 3",
         "row 3: wrong checksum"},
        {"DELETE FROM event WHERE number = 5", "table event ends at row 4"},
        {"UPDATE setting SET value = '{\"last\":2,\"sum\":7}'"
         " WHERE name LIKE 'events/%1'",
         "table event, row 3"},
        {"DELETE FROM setting WHERE name LIKE 'events/%4'",
         "row 5: the events before it are missing"},
    };
    (void)state;
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        struct fixture *fixture = fixture_new(BACKEND_SQLITE);
        uint64_t epoch = 0;
        struct store *store = fixture_take(fixture, &epoch);
        fill(store, epoch);
        remove_run(store, epoch, 1);
        store_close(store);
        char *path = fixture_path(fixture, "sluice.db");
        sqlite3 *db = NULL;
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, cases[ix].sql, NULL, NULL, NULL),
                         SQLITE_OK);
        assert_int_equal(sqlite3_changes(db), 1);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        mem_free(path);
        store = fixture_open(fixture, STORE_READ);
        struct strbuf faults = {0};
        assert_int_equal(fixture_verify(store, &faults, NULL), ERR_OK);
        if (strstr(strbuf_text(&faults), cases[ix].part) == NULL) {
            fail_msg("no \"%s\" in: %s", cases[ix].part, strbuf_text(&faults));
        }
        strbuf_release(&faults);
        store_close(store);
        fixture_free(fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_EACH(a_finished_run_goes_and_the_rest_stays_sound),
        FIXTURE_EACH(a_removed_run_with_a_cancelled_task_counts_as_such),
        FIXTURE_EACH(the_log_goes_on_after_a_gap_at_its_end),
        FIXTURE_EACH(what_has_not_finished_is_left_alone),
        FIXTURE_EACH(an_id_is_never_given_out_again),
        FIXTURE_EACH(a_batch_that_does_not_fit_removes_nothing),
        cmocka_unit_test(both_back_ends_keep_the_same),
        cmocka_unit_test(damage_is_still_found),
    };
    return cmocka_run_group_tests_name("store_prune", tests, NULL, NULL);
}
