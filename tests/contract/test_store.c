/* SPDX-License-Identifier: MIT */
/*
 * What store.h promises, on every back end.
 */
#include "store/store.h"

#include "base/macros.h"
#include "base/mem.h"
#include "base/rng.h"
#include "store/event.h"
#include "tests/contract/fixture.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { SEED = 20260101 };

static void what_was_written_is_read_back_column_by_column(void **state)
{
    uint64_t epoch = 0;
    struct store *store = fixture_take_filled(*state, &epoch);
    struct strbuf text = fixture_contents(store);
    static const char *const lines[] = {
        "run 1 wave \"A wave\" plan.yaml /somewhere 2 "
        "1700000000000000001 1 1700000000000000099 0000 0 0 00\n",
        "fragment 1.0 plan.yaml (null) [tasks:\n- id: a\n]\n",
        "fragment 1.1 more.yaml issue 7 [a",
        "limit 1.sessions 4 50\n",
        "executor claude 1 2 1 3 1 4 1 5 6 7 1 no credit\n",
        "setting usage {\"percent\":50}\n",
        "task 1.0 group/stage claimed 5 2 100 18446744073709551615 -1 "
        "9223372036854775807 7 8 0 4294967295 1 2 3 4 5 6 0 because (null) "
        "1.25 77 (null) (null)\n",
        "attempt 1 1.0.1 1 7 claimed 1 11111111-2222-3333-4444-555555555555 0 "
        "0 "
        "1700000000000000002 0 0 (null) (null) (null) -1 0 0 0 0 0\n",
        "order 1 1700000000000000006 someone cap {\"n\":2} made up "
        "(null)\n",
        "event 1 1700000000000000005 1 0 task ",
        "last token 1 event 2 order 1 run 1\n",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(lines); ix++) {
        fixture_assert_contains(&text, lines[ix]);
    }
    struct store_info info = fixture_info(store);
    assert_int_equal(info.epoch, epoch);
    assert_int_equal(info.engine_ns, 1000);
    assert_int_equal(info.wall_ns, 2000);
    strbuf_release(&text);
    store_close(store);
}

static enum err keep_bytes(void *ctx, const struct store_fragment *fragment)
{
    if (fragment->number == 1) {
        strbuf_add(ctx, fragment->text, fragment->text_bytes);
    }
    return ERR_OK;
}

static void the_text_of_a_plan_may_have_any_bytes(void **state)
{
    uint64_t epoch = 0;
    struct store *store = fixture_take_filled(*state, &epoch);
    const struct store_query query = {0};
    const struct store_visitor visitor = {.fragment = keep_bytes};
    struct strbuf bytes = {0};
    assert_int_equal(store_read(store, &query, &visitor, &bytes, NULL, NULL),
                     ERR_OK);
    assert_int_equal(bytes.len, 3);
    assert_memory_equal(bytes.text, "a\0b", 3);
    strbuf_release(&bytes);
    store_close(store);
}

static void what_was_acknowledged_is_there_after_opening_again(void **state)
{
    uint64_t epoch = 0;
    struct store *store = fixture_take_filled(*state, &epoch);
    struct strbuf before = fixture_contents(store);
    store_close(store);
    store = fixture_open(*state, STORE_READ);
    struct strbuf after = fixture_contents(store);
    assert_string_equal(strbuf_text(&before), strbuf_text(&after));
    store_close(store);
    strbuf_release(&before);
    strbuf_release(&after);
}

/* All columns of a run that can change, and one that cannot. */
static struct store_change later_run(void)
{
    return (struct store_change){
        .type = STORE_RUN_SET,
        .as.run =
            {
                .number = 1,
                .not_before_ns = 5,
                .finished = true,
                .paused = true,
                .cancelled = true,
                .barrier = 7,
                .completions = 9,
                .owed = 2,
                .stopped = 2,
                .deadline_over = true,
            },
    };
}

static void a_later_row_replaces_the_earlier_one(void **state)
{
    uint64_t epoch = 0;
    struct store *store = fixture_take_filled(*state, &epoch);
    struct store_change changes[] = {
        fixture_task(1, 1, "ready"),
        later_run(),
        {
            .type = STORE_LIMIT_SET,
            .as.limit = {.run = 1, .name = "sessions", .max = 2},
        },
        {.type = STORE_PROVIDER, .as.provider = {.name = "claude"}},
        {.type = STORE_PROVIDER, .as.provider = {.name = "aider"}},
        {.type = STORE_SETTING, .as.setting = {.name = "usage", .value = "b"}},
        {.type = STORE_SETTING, .as.setting = {.name = "a", .value = "c"}},
        {.type = STORE_SETTING, .as.setting = {.name = "z", .value = "d"}},
        {.type = STORE_SETTING, .as.setting = {.name = "z"}},
        {.type = STORE_SETTING, .as.setting = {.name = "never there"}},
        {
            .type = STORE_COMMAND,
            .as.command = {.number = 1, .answer = "{\"ok\":true}"},
        },
        fixture_end(1),
    };
    changes[0].as.task.leader = 0;
    changes[0].as.task.cause = STORE_NONE;
    changes[0].as.task.reason = NULL;
    changes[0].as.task.feedback = "do it again";
    changes[0].as.task.carry = "{\"after\":\"changes\"}";
    changes[0].as.task.outputs = "{\"url\":\"here\"}";
    fixture_write_ok(store, epoch, changes, ARRAY_COUNT(changes));
    struct strbuf text = fixture_contents(store);
    fixture_assert_contains(&text, " 1700000000000000099 1117 9 2 21\n");
    fixture_assert_contains(&text, "limit 1.sessions 2 0\n");
    fixture_assert_contains(&text,
                            "executor aider 0 0 0 0 0 0 0 0 0 0 0 (null)\n"
                            "executor claude 0 0 0 0 0 0 0 0 0 0 0 (null)\n"
                            "setting a c\n"
                            "setting usage b\n"
                            "task ");
    fixture_assert_contains(&text, "task 1.1 group/stage ready ");
    fixture_assert_contains(
        &text,
        " 0 1 2 3 4 5 6 4294967295 (null) do it again 1.25 77 "
        "{\"after\":\"changes\"} {\"url\":\"here\"}\n");
    fixture_assert_contains(&text, "{\"ok\":true}\n");
    fixture_assert_contains(
        &text,
        "attempt 1 1.0.1 1 7 ended 1 "
        "11111111-2222-3333-4444-555555555555 1234 99 "
        "1700000000000000002 1700000000000000003 "
        "1700000000000000004 failed exit exit code 3 3 0 10 5 20 "
        "0.25\n");
    fixture_assert_lacks(&text,
                         "waiting 5 2"); /* the row that was there before */
    strbuf_release(&text);
    store_close(store);
}

/* A batch of all kinds of changes that fit what fixture_take_filled() makes. */
static struct store_batch good_batch(uint64_t epoch)
{
    const struct store_change changes[] = {
        fixture_run(3, "next"),
        fixture_task(1, 0, "done"),
        fixture_task(1, 2, "done"),
        fixture_task(3, 0, "ready"),
        fixture_end(1),
        fixture_claim(5, 1, 1, 1),
        fixture_claim(6, 3, 0, 1),
        fixture_event(1, 0, "done"),
        fixture_order("pause"),
        {
            .type = STORE_COMMAND,
            .as.command = {.number = 1, .answer = "{}"},
        },
        {.type = STORE_RUN_SET, .as.run = {.number = 1, .paused = true}},
        {
            .type = STORE_FRAGMENT,
            .as.fragment = {.run = 1, .number = 2, .file = "f", .text = ""},
        },
        {
            .type = STORE_LIMIT_SET,
            .as.limit = {.run = 1, .name = "sessions", .max = 1},
        },
        {
            .type = STORE_LIMIT_SET,
            .as.limit = {.run = 1, .name = "builds", .max = 1},
        },
        {.type = STORE_PROVIDER, .as.provider = {.name = "aider"}},
        {.type = STORE_PROVIDER, .as.provider = {.name = "claude"}},
        {.type = STORE_SETTING, .as.setting = {.name = "new", .value = "1"}},
        {.type = STORE_SETTING, .as.setting = {.name = "usage", .value = "2"}},
        {.type = STORE_SETTING, .as.setting = {.name = "usage"}},
        {.type = STORE_SETTING, .as.setting = {.name = "none"}},
    };
    struct store_batch batch = {.epoch = epoch};
    for (size_t ix = 0; ix < ARRAY_COUNT(changes); ix++) {
        store_batch_add(&batch, &changes[ix]);
    }
    return batch;
}

static void a_batch_with_a_change_that_does_not_fit_leaves_nothing(void **state)
{
    uint64_t epoch = 0;
    struct store *store = fixture_take_filled(*state, &epoch);
    struct strbuf before = fixture_contents(store);
    const struct store_change bad[] = {
        fixture_run(1, "other"),    /* the number is taken */
        fixture_run(4, "wave"),     /* the id is taken */
        fixture_task(7, 0, "done"), /* no such run */
        fixture_claim(1, 1, 5, 1),  /* the token is not new */
        fixture_claim(9, 1, 0, 1),  /* the attempt is taken */
        fixture_claim(9, 7, 0, 1),  /* no such run */
        fixture_end(77),            /* no such attempt */
        {.type = STORE_RUN_SET, .as.run = {.number = 7}},
        {.type = STORE_LIMIT_SET, .as.limit = {.run = 7, .name = "x"}},
        {
            .type = STORE_FRAGMENT,
            .as.fragment = {.run = 1, .number = 4, .file = "f", .text = ""},
        },
        {
            .type = STORE_FRAGMENT,
            .as.fragment = {.run = 1, .number = 1, .file = "f", .text = ""},
        },
        {
            .type = STORE_FRAGMENT,
            .as.fragment = {.run = 7, .number = 1, .file = "f", .text = ""},
        },
        {
            .type = STORE_COMMAND,
            .as.command = {.number = 5, .answer = "{}"},
        },
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(bad); ix++) {
        struct store_batch batch = good_batch(epoch);
        struct diag diag = {0};
        store_batch_add(&batch, &bad[ix]);
        assert_int_equal(store_write(store, &batch, &diag), ERR_CONFLICT);
        assert_string_not_equal(diag.text, "");
        store_batch_release(&batch);
        struct strbuf after = fixture_contents(store);
        assert_string_equal(strbuf_text(&before), strbuf_text(&after));
        strbuf_release(&after);
    }
    /* Without the last one it fits. */
    struct store_batch batch = good_batch(epoch);
    assert_int_equal(store_write(store, &batch, NULL), ERR_OK);
    store_batch_release(&batch);
    strbuf_release(&before);
    store_close(store);
}

static void one_attempt_is_claimed_once(void **state)
{
    uint64_t epoch = 0;
    struct store *store = fixture_take_filled(*state, &epoch);
    assert_int_equal(fixture_write_one(store, epoch, fixture_claim(2, 1, 0, 1)),
                     ERR_CONFLICT);
    assert_int_equal(fixture_write_one(store, epoch, fixture_claim(2, 1, 0, 2)),
                     ERR_OK);
    assert_int_equal(fixture_write_one(store, epoch, fixture_claim(3, 1, 0, 2)),
                     ERR_CONFLICT);
    /* Numbers may come in any order; tokens may not. */
    assert_int_equal(fixture_write_one(store, epoch, fixture_claim(8, 1, 1, 5)),
                     ERR_OK);
    assert_int_equal(fixture_write_one(store, epoch, fixture_claim(7, 1, 1, 6)),
                     ERR_CONFLICT);
    assert_int_equal(fixture_write_one(store, epoch, fixture_claim(9, 1, 1, 3)),
                     ERR_OK);
    assert_int_equal(
        fixture_write_one(store, epoch, fixture_claim(10, 1, 1, 5)),
        ERR_CONFLICT);
    assert_int_equal(fixture_info(store).last_token, 9);
    store_close(store);
}

static void an_attempt_that_has_ended_never_changes(void **state)
{
    uint64_t epoch = 0;
    struct store *store = fixture_take_filled(*state, &epoch);
    struct store_change running = fixture_end(1);
    running.as.attempt.state = "running";
    running.as.attempt.outcome = NULL;
    assert_int_equal(fixture_write_one(store, epoch, running), ERR_OK);
    assert_int_equal(fixture_write_one(store, epoch, fixture_end(1)), ERR_OK);
    struct strbuf before = fixture_contents(store);
    assert_int_equal(fixture_write_one(store, epoch, fixture_end(1)),
                     ERR_CONFLICT);
    assert_int_equal(fixture_write_one(store, epoch, running), ERR_CONFLICT);
    struct strbuf after = fixture_contents(store);
    assert_string_equal(strbuf_text(&before), strbuf_text(&after));
    strbuf_release(&before);
    strbuf_release(&after);
    store_close(store);
}

static void what_a_claim_has_fixed_stays(void **state)
{
    uint64_t epoch = 0;
    struct store *store = fixture_take_filled(*state, &epoch);
    struct store_change change = fixture_end(1);
    change.as.attempt.state = "running";
    change.as.attempt.run = 8;
    change.as.attempt.task = 9;
    change.as.attempt.number = 10;
    change.as.attempt.task_count = 11;
    change.as.attempt.epoch = 12;
    change.as.attempt.claimed_ns = 13;
    assert_int_equal(fixture_write_one(store, epoch, change), ERR_OK);
    struct strbuf text = fixture_contents(store);
    fixture_assert_contains(&text,
                            "attempt 1 1.0.1 1 7 running 1 "
                            "11111111-2222-3333-4444-555555555555 1234 99 "
                            "1700000000000000002 ");
    strbuf_release(&text);
    store_close(store);
}

static void an_order_is_answered_once(void **state)
{
    uint64_t epoch = 0;
    struct store *store = fixture_take_filled(*state, &epoch);
    struct store_change answer = {
        .type = STORE_COMMAND,
        .as.command = {.number = 1, .answer = "{}"},
    };
    assert_int_equal(fixture_write_one(store, epoch, answer), ERR_OK);
    assert_int_equal(fixture_write_one(store, epoch, answer), ERR_CONFLICT);
    /* One that comes with its answer. */
    struct store_change whole = fixture_order("pause");
    whole.as.command.answer = "{\"n\":1}";
    assert_int_equal(fixture_write_one(store, epoch, whole), ERR_OK);
    assert_int_equal(fixture_info(store).last_command, 2);
    answer.as.command.number = 2;
    assert_int_equal(fixture_write_one(store, epoch, answer), ERR_CONFLICT);
    store_close(store);
}

static enum err
show_life(struct store *store, uint64_t epoch, const char *trouble)
{
    struct store_batch sign = {.epoch = epoch, .trouble = trouble};
    return store_write(store, &sign, NULL);
}

static void only_the_scheduler_writes(void **state)
{
    uint64_t epoch = 0;
    struct store *owner = fixture_take_filled(*state, &epoch);
    struct store *other = fixture_open(*state, STORE_WRITE);
    struct store_change event = fixture_event(1, 0, "claimed");
    assert_int_equal(fixture_write_one(other, epoch, event), ERR_CONFLICT);
    assert_int_equal(show_life(other, epoch, NULL), ERR_CONFLICT);
    assert_int_equal(show_life(owner, epoch + 1, NULL), ERR_CONFLICT);
    /* Not even the scheduler with another epoch than its own. */
    assert_int_equal(fixture_write_one(owner, epoch + 1, event), ERR_CONFLICT);
    assert_int_equal(fixture_write_one(owner, epoch, event), ERR_OK);
    store_close(other);
    store_close(owner);
}

static void the_lock_has_one_holder_and_names_it(void **state)
{
    const struct fixture *fixture = *state;
    struct store *first = fixture_open(*state, STORE_WRITE);
    struct store_owner owner;
    assert_int_equal(store_owner(first, &owner, NULL), ERR_NOT_FOUND);
    assert_int_equal(owner.pid, 0);

    struct store_owner self = fixture_self();
    uint64_t epoch = 0;
    assert_int_equal(store_take(first, &self, &epoch, NULL), ERR_OK);
    assert_int_equal(epoch, 1);
    struct store *second = fixture_open(*state, STORE_WRITE);
    struct diag diag = {0};
    uint64_t none = 0;
    assert_int_equal(store_take(second, &self, &none, &diag), ERR_BUSY);
    assert_non_null(strstr(diag.text, "testhost"));
    assert_int_equal(none, 0);

    uint64_t writes = fixture_info(first).writes;
    assert_int_equal(show_life(first, epoch, "the disk\nis full"), ERR_OK);
    assert_int_equal(fixture_info(first).writes, writes);
    struct store *stores[] = {first, second};
    for (size_t ix = 0; ix < ARRAY_COUNT(stores); ix++) {
        assert_int_equal(store_owner(stores[ix], &owner, NULL), ERR_OK);
        assert_int_equal(owner.pid, self.pid);
        assert_int_equal(owner.start_ticks, self.start_ticks);
        assert_string_equal(owner.host, self.host);
        assert_string_equal(owner.boot_id, self.boot_id);
        bool clock = fixture->backend != BACKEND_MEMORY;
        assert_int_equal(owner.silent_ns >= 0, clock);
        assert_int_equal(owner.age_ns >= 0, clock);
        assert_int_equal(owner.epoch, 1);
        assert_non_null(strstr(owner.trouble, "is full"));
    }
    assert_int_equal(show_life(first, epoch, NULL), ERR_OK);
    assert_int_equal(store_owner(second, &owner, NULL), ERR_OK);
    assert_string_equal(owner.trouble, "");

    store_close(first);
    assert_int_equal(store_owner(second, &owner, NULL), ERR_NOT_FOUND);
    assert_int_equal(owner.pid, self.pid); /* the last one who did */
    assert_int_equal(owner.silent_ns, -1);
    assert_int_equal(store_take(second, &self, &epoch, NULL), ERR_OK);
    assert_int_equal(epoch, 2);
    store_close(second);
}

static void a_store_that_nobody_took_has_nothing_to_read(void **state)
{
    struct store *store = fixture_open(*state, STORE_WRITE);
    const struct store_query query = {0};
    const struct store_visitor visitor = {0};
    assert_int_equal(store_read(store, &query, &visitor, NULL, NULL, NULL),
                     ERR_NOT_FOUND);
    /* It can be read as soon as another one has made it. */
    uint64_t epoch = 0;
    struct store *owner = fixture_take_filled(*state, &epoch);
    struct strbuf text = fixture_contents(store);
    fixture_assert_contains(&text, "run 1 wave");
    strbuf_release(&text);
    store_close(owner);
    store_close(store);
}

/* One handle of the interleavings. */
struct writer {
    struct store *store;
    uint64_t epoch; /* 0: has not taken */
};

static void reopen(struct fixture *fixture, struct writer *writer)
{
    store_close(writer->store);
    *writer = (struct writer){.store = fixture_open(fixture, STORE_WRITE)};
}

/*
 * Two schedulers take the store from each other, without the first noticing,
 * and write. Accepted is what the newest epoch writes, and nothing else.
 */
static void a_superseded_scheduler_writes_nothing(void **state)
{
    enum { STEPS = 1000 };
    struct fixture *fixture = *state;
    struct rng rng;
    rng_init(&rng, fixture_seed(SEED));
    struct writer writers[2] = {{0}, {0}};
    writers[0].store = fixture_take(fixture, &writers[0].epoch);
    writers[1].store = fixture_open(fixture, STORE_WRITE);
    assert_int_equal(fixture_write_one(writers[0].store,
                                       writers[0].epoch,
                                       fixture_run(1, "wave")),
                     ERR_OK);
    uint64_t newest = writers[0].epoch;
    uint64_t accepted = 0;
    uint32_t refused = 0;
    for (int step = 0; step < STEPS; step++) {
        struct writer *writer = &writers[rng_below(&rng, 2)];
        if (rng_below(&rng, 4) == 0) {
            /* The lock is lost, and this one takes it. */
            if (writer->epoch != 0) {
                reopen(fixture, writer);
            }
            fixture_lose_lock(fixture);
            struct store_owner self = fixture_self();
            assert_int_equal(
                store_take(writer->store, &self, &writer->epoch, NULL),
                ERR_OK);
            assert_true(writer->epoch > newest);
            newest = writer->epoch;
            continue;
        }
        if (writer->epoch == 0) {
            continue;
        }
        enum err err = fixture_write_one(writer->store,
                                         writer->epoch,
                                         fixture_event(1, 0, "ready"));
        if (writer->epoch == newest) {
            assert_int_equal(err, ERR_OK);
            accepted++;
        } else if (err != ERR_CONFLICT) {
            fail_msg("step %d: a superseded write gave %s",
                     step,
                     err_name(err));
        } else {
            refused++;
        }
    }
    assert_true(refused > 100);
    struct store *reader = fixture_open(fixture, STORE_READ);
    assert_int_equal(fixture_info(reader).last_event, accepted);
    store_close(reader);
    store_close(writers[0].store);
    store_close(writers[1].store);
}

/* A reader that is in the middle of reading while the writer commits. */
struct half_way {
    struct store *writer;
    uint64_t epoch;
    uint32_t tasks;
    uint32_t attempts;
};

static enum err write_meanwhile(void *ctx, const struct store_task *task)
{
    struct half_way *half = ctx;
    half->tasks++;
    if (task->ix == 0) {
        struct store_change changes[] = {
            fixture_task(1, 2, "ready"),
            fixture_claim(2, 1, 2, 1),
        };
        fixture_write_ok(half->writer,
                         half->epoch,
                         changes,
                         ARRAY_COUNT(changes));
    }
    return ERR_OK;
}

static enum err count_attempt(void *ctx, const struct store_attempt *attempt)
{
    (void)attempt;
    ((struct half_way *)ctx)->attempts++;
    return ERR_OK;
}

static void a_reader_sees_one_state_and_keeps_nobody_waiting(void **state)
{
    struct half_way half = {0};
    half.writer = fixture_take_filled(*state, &half.epoch);
    struct store *reader = fixture_open(*state, STORE_READ);
    const struct store_query query = {.ended = true};
    const struct store_visitor visitor = {
        .task = write_meanwhile,
        .attempt = count_attempt,
    };
    struct store_info info;
    assert_int_equal(store_read(reader, &query, &visitor, &half, &info, NULL),
                     ERR_OK);
    assert_int_equal(half.tasks, 2);
    assert_int_equal(half.attempts, 1);
    assert_int_equal(info.last_token, 1);
    /* And the next time all of the batch. */
    half.tasks = 0;
    half.attempts = 0;
    const struct store_visitor counting = {.attempt = count_attempt};
    assert_int_equal(store_read(reader, &query, &counting, &half, &info, NULL),
                     ERR_OK);
    assert_int_equal(half.attempts, 2);
    assert_int_equal(info.last_token, 2);
    store_close(reader);
    store_close(half.writer);
}

static enum err refuse_task(void *ctx, const struct store_task *task)
{
    (void)task;
    ++*(uint32_t *)ctx;
    return ERR_CANCELLED;
}

static enum err refuse_event(void *ctx, const struct store_event *event)
{
    (void)event;
    ++*(uint32_t *)ctx;
    return ERR_CANCELLED;
}

static void a_store_has_an_id_that_it_keeps(void **state)
{
    struct fixture *fixture = *state;
    struct fixture *other = fixture_new(fixture->backend);
    uint64_t epoch = 0;
    struct store *store = fixture_take_filled(fixture, &epoch);
    struct store_info before = fixture_info(store);
    assert_true(before.id[0] != '\0');
    store_close(store);
    store = fixture_take(fixture, &epoch);
    assert_string_equal(fixture_info(store).id, before.id);
    store_close(store);
    store = fixture_take(other, &epoch);
    assert_string_not_equal(fixture_info(store).id, before.id);
    store_close(store);
    fixture_free(other);
}

/* A session's log can have any bytes, and its tail becomes feedback. */
static void texts_are_stored_as_valid_utf_8(void **state)
{
    uint64_t epoch = 0;
    struct store *store = fixture_take_filled(*state, &epoch);
    struct store_change task = fixture_task(1, 0, "ready");
    task.as.task.feedback = "caf\xc3\xa9 \xff\xc3 \xed\xa0\x80.";
    struct store_change event = fixture_event(1, 0, "ready");
    event.as.event.data = "{\"to\":\"ready\",\"text\":\"\x80\"}";
    struct store_change setting = {
        .type = STORE_SETTING,
        .as.setting = {.name = "bad", .value = "\xfe"},
    };
    struct store_change changes[] = {task, event, setting};
    fixture_write_ok(store, epoch, changes, ARRAY_COUNT(changes));
    struct strbuf text = fixture_contents(store);
    fixture_assert_contains(&text, "caf\xc3\xa9 ?? ???.");
    fixture_assert_contains(&text, "\"text\":\"?\"}");
    fixture_assert_contains(&text, "setting bad ?\n");
    strbuf_release(&text);
    struct strbuf faults = {0};
    assert_int_equal(fixture_verify(store, &faults, NULL), ERR_OK);
    assert_string_equal(strbuf_text(&faults), "");
    strbuf_release(&faults);
    store_close(store);
}

static void a_visitor_that_fails_ends_the_reading(void **state)
{
    uint64_t epoch = 0;
    struct store *store = fixture_take_filled(*state, &epoch);
    const struct store_query query = {0};
    const struct store_visitor visitor = {.task = refuse_task};
    uint32_t count = 0;
    assert_int_equal(store_read(store, &query, &visitor, &count, NULL, NULL),
                     ERR_CANCELLED);
    assert_int_equal(count, 1);
    const struct store_range range = {0};
    assert_int_equal(store_events(store, &range, refuse_event, &count, NULL),
                     ERR_CANCELLED);
    assert_int_equal(count, 2);
    /* The store can be used as before. */
    assert_int_equal(
        fixture_write_one(store, epoch, fixture_event(1, 0, "claimed")),
        ERR_OK);
    store_close(store);
}

static enum err check_event(void *ctx, const struct store_event *event)
{
    struct store_event *before = ctx;
    assert_int_equal(event->number, before->number + 1);
    assert_true(event->sum == event_sum(before->sum, event));
    before->number = event->number;
    before->sum = event->sum;
    return ERR_OK;
}

static void events_come_in_order_without_gaps(void **state)
{
    uint64_t epoch = 0;
    struct store *store = fixture_take_filled(*state, &epoch);
    for (int ix = 0; ix < 20; ix++) {
        struct store_change changes[] = {
            fixture_event(1, 0, "claimed"),
            fixture_event(1, STORE_NONE, "claimed"),
            fixture_event(STORE_NONE, STORE_NONE, "claimed"),
        };
        changes[1].as.event.kind = "run";
        changes[2].as.event.kind = "scheduler";
        fixture_write_ok(store, epoch, changes, ARRAY_COUNT(changes));
    }
    struct store_event before = {0};
    const struct store_range range = {0};
    assert_int_equal(store_events(store, &range, check_event, &before, NULL),
                     ERR_OK);
    assert_int_equal(before.number, 62);
    struct strbuf text = {0};
    assert_int_equal(fixture_add_events(store, 61, &text, NULL), ERR_OK);
    fixture_assert_contains(&text, "event 62 ");
    fixture_assert_contains(&text, " 4294967295 4294967295 scheduler ");
    fixture_assert_lacks(&text, "event 61 ");
    strbuf_release(&text);
    assert_int_equal(fixture_add_events(store, 62, &text, NULL), ERR_OK);
    assert_int_equal(fixture_add_events(store, UINT64_MAX, &text, NULL),
                     ERR_OK);
    assert_int_equal(text.len, 0);
    strbuf_release(&text);
    store_close(store);
}

static void an_unknown_state_is_handed_out_as_it_is(void **state)
{
    uint64_t epoch = 0;
    struct store *store = fixture_take_filled(*state, &epoch);
    struct store_change odd = fixture_task(1, 1, "from the future");
    assert_int_equal(fixture_write_one(store, epoch, odd), ERR_OK);
    struct strbuf text = fixture_contents(store);
    fixture_assert_contains(&text, "group/stage from the future 5");
    strbuf_release(&text);
    assert_int_equal(fixture_verify(store, &text, NULL), ERR_OK);
    fixture_assert_contains(&text, "unknown state");
    strbuf_release(&text);
    store_close(store);
}

static void a_sound_store_has_no_faults(void **state)
{
    uint64_t epoch = 0;
    struct store *store = fixture_take_filled(*state, &epoch);
    struct store_change changes[] = {
        fixture_task(1, 0, "waiting"),
        fixture_event(1, 0, "waiting"),
        fixture_end(1),
        fixture_claim(2, 1, 0, 2),
        fixture_task(1, 0, "running"),
        fixture_event(1, 0, "running"),
    };
    fixture_write_ok(store, epoch, changes, ARRAY_COUNT(changes));
    struct strbuf faults = {0};
    assert_int_equal(fixture_verify(store, &faults, NULL), ERR_OK);
    assert_string_equal(strbuf_text(&faults), "");
    store_close(store);
    store = fixture_open(*state, STORE_READ);
    assert_int_equal(fixture_verify(store, &faults, NULL), ERR_OK);
    assert_string_equal(strbuf_text(&faults), "");
    strbuf_release(&faults);
    store_close(store);
}

static void a_state_that_differs_from_the_log_is_a_fault(void **state)
{
    uint64_t epoch = 0;
    struct store *store = fixture_take_filled(*state, &epoch);
    /* Written without its event. */
    struct store_change silent = fixture_task(1, 1, "done");
    assert_int_equal(fixture_write_one(store, epoch, silent), ERR_OK);
    struct strbuf faults = {0};
    assert_int_equal(fixture_verify(store, &faults, NULL), ERR_OK);
    fixture_assert_contains(&faults, "run 1");
    fixture_assert_contains(&faults,
                            "the state is done, but by its last event");
    strbuf_release(&faults);
    store_close(store);
}

static void an_attempt_without_its_task_is_a_fault(void **state)
{
    uint64_t epoch = 0;
    struct store *store = fixture_take_filled(*state, &epoch);
    assert_int_equal(fixture_write_one(store, epoch, fixture_claim(2, 1, 5, 1)),
                     ERR_OK);
    struct strbuf faults = {0};
    assert_int_equal(fixture_verify(store, &faults, NULL), ERR_OK);
    fixture_assert_contains(&faults, "no task 5 in run 1");
    strbuf_release(&faults);
    store_close(store);
}

static void the_same_changes_give_the_same_contents(void **state)
{
    (void)state;
    struct fixture *fixtures[] = {
        fixture_new(BACKEND_MEMORY),
        fixture_new(BACKEND_SQLITE),
    };
    struct strbuf texts[2];
    for (size_t ix = 0; ix < ARRAY_COUNT(fixtures); ix++) {
        uint64_t epoch = 0;
        struct store *store = fixture_take_filled(fixtures[ix], &epoch);
        struct rng rng;
        rng_init(&rng, fixture_seed(SEED));
        uint64_t token = 1;
        for (int step = 0; step < 300; step++) {
            uint32_t task = rng_below(&rng, 20);
            struct store_change changes[] = {
                fixture_task(1, task, "ready"),
                fixture_event(1, task, "ready"),
                fixture_claim(token + rng_below(&rng, 3),
                              1,
                              rng_below(&rng, 20),
                              rng_below(&rng, 5)),
                fixture_end(1 + rng_below(&rng, 20)),
            };
            uint32_t from = rng_below(&rng, 4);
            /* Some fit and some do not; the answers must be the same. */
            enum err err = fixture_write(store,
                                         epoch,
                                         &changes[from],
                                         1 + rng_below(&rng, 4 - from),
                                         NULL);
            token = fixture_info(store).last_token;
            assert_true(err == ERR_OK || err == ERR_CONFLICT);
        }
        texts[ix] = fixture_contents(store);
        store_close(store);
    }
    assert_string_equal(strbuf_text(&texts[0]), strbuf_text(&texts[1]));
    fixture_assert_contains(&texts[0], "ended");
    for (size_t ix = 0; ix < ARRAY_COUNT(fixtures); ix++) {
        strbuf_release(&texts[ix]);
        fixture_free(fixtures[ix]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_EACH(what_was_written_is_read_back_column_by_column),
        FIXTURE_EACH(the_text_of_a_plan_may_have_any_bytes),
        FIXTURE_EACH(what_was_acknowledged_is_there_after_opening_again),
        FIXTURE_EACH(a_later_row_replaces_the_earlier_one),
        FIXTURE_EACH(a_batch_with_a_change_that_does_not_fit_leaves_nothing),
        FIXTURE_EACH(one_attempt_is_claimed_once),
        FIXTURE_EACH(an_attempt_that_has_ended_never_changes),
        FIXTURE_EACH(what_a_claim_has_fixed_stays),
        FIXTURE_EACH(an_order_is_answered_once),
        FIXTURE_EACH(only_the_scheduler_writes),
        FIXTURE_EACH(the_lock_has_one_holder_and_names_it),
        FIXTURE_EACH(a_store_that_nobody_took_has_nothing_to_read),
        FIXTURE_EACH(a_superseded_scheduler_writes_nothing),
        FIXTURE_SQLITE(a_reader_sees_one_state_and_keeps_nobody_waiting),
        FIXTURE_EACH(a_visitor_that_fails_ends_the_reading),
        FIXTURE_EACH(a_store_has_an_id_that_it_keeps),
        FIXTURE_EACH(texts_are_stored_as_valid_utf_8),
        FIXTURE_EACH(events_come_in_order_without_gaps),
        FIXTURE_EACH(an_unknown_state_is_handed_out_as_it_is),
        FIXTURE_EACH(a_sound_store_has_no_faults),
        FIXTURE_EACH(a_state_that_differs_from_the_log_is_a_fault),
        FIXTURE_EACH(an_attempt_without_its_task_is_a_fault),
        cmocka_unit_test(the_same_changes_give_the_same_contents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
