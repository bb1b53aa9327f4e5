/* SPDX-License-Identifier: MIT */
/* What is shown of a run: the live picture, the reasons, the summary. */
#include "term/live.h"

#include "base/duration.h"
#include "base/macros.h"
#include "base/mem.h"
#include "base/plain.h"
#include "sim/store/memory.h"
#include "view/snapshot.h"
#include "view/summary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define WALL_NS (INT64_C(1772600767) * SECOND_NS)

/* A task as it is stored. */
struct row {
    const char *id;
    const char *state;
    uint32_t parked;
    uint32_t flags;
    uint64_t token; /* of its session; 0: it is in none */
    const char *reason;
};

/* A store in memory, and an engine that looks at it. */
struct sight {
    struct store_memory_db *db;
    struct store *store;
    struct engine *engine;
};

static void add(struct store_batch *batch, struct store_change change)
{
    store_batch_add(batch, &change);
}

static void add_rows(struct store_batch *batch,
                     const char *plan,
                     const struct row *rows,
                     uint32_t count)
{
    add(batch,
        (struct store_change){
            .type = STORE_RUN_NEW,
            .as.run =
                {
                    .number = 1,
                    .id = "wave",
                    .name = "wave",
                    .file = "plan.yaml",
                    .folder = "/",
                    .text = plan,
                    .text_bytes = strlen(plan),
                    .processors = 1,
                    .created_ns = WALL_NS,
                },
        });
    for (uint32_t ix = 0; ix < count; ix++) {
        const struct row *row = &rows[ix];
        add(batch,
            (struct store_change){
                .type = STORE_TASK_SET,
                .as.task =
                    {
                        .run = 1,
                        .ix = ix,
                        .id = row->id,
                        .state = row->state,
                        .flags = row->flags,
                        .parked = row->parked,
                        .version = ix + 1,
                        .token = row->token,
                        .leader = row->token > 0 ? ix : STORE_NONE,
                        .attempts = row->token > 0 ? 1 : 0,
                        .number = row->token > 0 ? 1 : 0,
                        .cause = STORE_NONE,
                        .reason = row->reason,
                    },
            });
        if (row->token > 0) {
            add(batch,
                (struct store_change){
                    .type = STORE_CLAIM,
                    .as.attempt =
                        {
                            .token = row->token,
                            .run = 1,
                            .task = ix,
                            .number = 1,
                            .task_count = 1,
                            .state = "running",
                            .epoch = batch->epoch,
                            .pid = 4711,
                            .claimed_ns = WALL_NS,
                            .begun_ns = WALL_NS,
                            .code = -1,
                        },
                });
        }
    }
}

static struct sight
look(const char *plan, const struct row *rows, uint32_t count)
{
    struct sight sight = {.db = store_memory_db_new()};
    struct diag diag = {0};
    struct store_owner self = {.pid = 1, .host = "here"};
    struct store_batch batch = {.wall_ns = WALL_NS};
    sight.store = store_memory_open(sight.db, STORE_WRITE);
    assert_int_equal(store_take(sight.store, &self, &batch.epoch, &diag),
                     ERR_OK);
    add_rows(&batch, plan, rows, count);
    enum err err = store_write(sight.store, &batch, &diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(err, ERR_OK);
    store_batch_release(&batch);
    sight.engine = engine_new(&(struct engine_options){
        .wall_ns = WALL_NS + MINUTE_NS,
    });
    err = engine_load(sight.engine, sight.store, NULL, &diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(err, ERR_OK);
    return sight;
}

static void sight_release(struct sight *sight)
{
    engine_free(sight->engine);
    store_close(sight->store);
    store_memory_db_free(sight->db);
}

static void assert_reason(const struct snapshot *snapshot,
                          uint32_t task,
                          enum task_state state,
                          const char *text)
{
    struct reason reason = snapshot_reason(snapshot, 0, task);
    struct strbuf out = {0};
    reasons_add(&out, &reason);
    assert_string_equal(strbuf_text(&out), text);
    assert_int_equal(reason.state, state);
    assert_int_equal(snapshot_state(snapshot, 0, task), state);
    strbuf_release(&out);
}

/* --- reasons ------------------------------------------------------------ */

#define HEAD "sluice: 1\nname: wave\n"

static const char chain_plan[] = HEAD "limits: {sessions: 1}\n"
                                      "defaults: {estimate: 10m}\n"
                                      "tasks:\n"
                                      "  - {id: a, run: x}\n"
                                      "  - {id: b, run: x}\n"
                                      "  - {id: c, run: x}\n"
                                      "  - {id: d, run: x, needs: [a]}\n"
                                      "  - {id: e, run: x, needs: [d]}\n";

/* A reader has taken no pass: b must wait at the limit, c behind it. */
static void a_reader_gives_the_reasons_of_a_scheduler(void **state)
{
    (void)state;
    const struct row rows[] = {
        {.id = "a", .state = "running", .token = 1},
        {.id = "b", .state = "ready"},
        {.id = "c", .state = "ready"},
        {.id = "d", .state = "waiting"},
        {.id = "e", .state = "waiting"},
    };
    struct sight sight = look(chain_plan, rows, ARRAY_COUNT(rows));
    struct snapshot *snapshot = snapshot_new(sight.engine, true);
    assert_reason(snapshot, 0, TASK_RUNNING, "running");
    assert_reason(snapshot, 1, TASK_READY, "limit sessions, in use by a");
    assert_reason(snapshot, 2, TASK_READY, "behind b at limit sessions");
    assert_reason(snapshot, 3, TASK_WAITING, "needs a");
    assert_reason(snapshot, 4, TASK_WAITING, "needs d");
    uint32_t run;
    uint32_t task;
    assert_true(snapshot_cause(snapshot, 0, 4, &run, &task));
    assert_int_equal(run, 0);
    assert_int_equal(task, 3);
    assert_false(snapshot_cause(snapshot, 0, 0, &run, &task));
    snapshot_free(snapshot);
    sight_release(&sight);
}

static void what_would_start_is_ready_and_startable(void **state)
{
    (void)state;
    const struct row rows[] = {
        {.id = "a", .state = "ready"},
        {.id = "b", .state = "ready"},
        {.id = "c", .state = "done"},
        {.id = "d", .state = "waiting"},
        {.id = "e", .state = "waiting"},
    };
    struct sight sight = look(chain_plan, rows, ARRAY_COUNT(rows));
    struct snapshot *snapshot = snapshot_new(sight.engine, true);
    assert_reason(snapshot, 0, TASK_READY, "can start now");
    assert_reason(snapshot, 1, TASK_READY, "limit sessions, in use by a");
    assert_int_equal(snapshot_count(snapshot, 0, TASK_READY), 2);
    assert_int_equal(snapshot_count(snapshot, 0, TASK_STARTING), 0);
    assert_int_equal(snapshot_count(snapshot, 0, TASK_DONE), 1);
    assert_int_equal(snapshot_used(snapshot, 0, 0), 0);
    snapshot_free(snapshot);
    sight_release(&sight);
}

static void what_is_blocked_names_what_needs_a_person(void **state)
{
    (void)state;
    const struct row rows[] = {
        {.id = "a",
         .state = "parked",
         .parked = SCHED_PARKED_BLOCKED,
         .reason = "no key"},
        {.id = "b", .state = "done"},
        {.id = "c", .state = "done"},
        {.id = "d", .state = "waiting"},
        {.id = "e", .state = "waiting"},
    };
    struct sight sight = look(chain_plan, rows, ARRAY_COUNT(rows));
    struct snapshot *snapshot = snapshot_new(sight.engine, true);
    assert_reason(snapshot, 0, TASK_PARKED, "parked: its session is blocked");
    assert_reason(snapshot, 3, TASK_WAITING, "blocked by a");
    assert_reason(snapshot, 4, TASK_WAITING, "blocked by a");
    assert_true(snapshot_needs_person(snapshot, 0, 0));
    assert_false(snapshot_needs_person(snapshot, 0, 3));
    /* Nothing will come to run: there is no time left to tell. */
    assert_int_equal(snapshot_left_ns(snapshot, 0, WALL_NS), 0);
    snapshot_free(snapshot);
    sight_release(&sight);
}

static void time_left_is_the_path_or_the_work_over_the_cap(void **state)
{
    (void)state;
    const struct row rows[] = {
        {.id = "a", .state = "running", .token = 1},
        {.id = "b", .state = "ready"},
        {.id = "c", .state = "ready"},
        {.id = "d", .state = "waiting"},
        {.id = "e", .state = "waiting"},
    };
    struct sight sight = look(chain_plan, rows, ARRAY_COUNT(rows));
    struct snapshot *snapshot = snapshot_new(sight.engine, true);
    /* Five tasks of 10 minutes, one after the other; a has done 4 minutes. */
    int64_t left_ns = snapshot_left_ns(snapshot, 0, WALL_NS + 4 * MINUTE_NS);
    assert_int_equal(left_ns, 46 * MINUTE_NS);
    /* What is late takes no time, rather than less than none. */
    left_ns = snapshot_left_ns(snapshot, 0, WALL_NS + 50 * MINUTE_NS);
    assert_int_equal(left_ns, 40 * MINUTE_NS);
    snapshot_free(snapshot);
    sight_release(&sight);
    /* With slots for all, the path a, d, e decides. */
    struct strbuf wide = {0};
    strbuf_addf(&wide, "%s", chain_plan);
    char *cap = strstr(wide.text, "sessions: 1");
    assert_non_null(cap);
    cap[10] = '9';
    sight = look(wide.text, rows, ARRAY_COUNT(rows));
    snapshot = snapshot_new(sight.engine, true);
    left_ns = snapshot_left_ns(snapshot, 0, WALL_NS + 4 * MINUTE_NS);
    assert_int_equal(left_ns, 26 * MINUTE_NS);
    snapshot_free(snapshot);
    sight_release(&sight);
    strbuf_release(&wide);
}

/* --- the picture -------------------------------------------------------- */

/* A run with more of everything than fits on a small terminal. */
enum { CROWD_RUNNING = 20, CROWD_PARKED = 10, CROWD_READY = 30 };

static struct sight look_at_crowd(void)
{
    enum { COUNT = CROWD_RUNNING + CROWD_PARKED + CROWD_READY };
    static const char evil[] = "no \x1b[31mkey\r\n\x07 here, and so on and so "
                               "on and so on and so on and so on";
    struct row rows[COUNT] = {{0}};
    char ids[COUNT][40];
    struct strbuf plan = {0};
    strbuf_addf(&plan, HEAD "limits: {sessions: %d}\ntasks:\n", CROWD_RUNNING);
    for (uint32_t ix = 0; ix < COUNT; ix++) {
        (void)
            snprintf(ids[ix], sizeof(ids[ix]), "task-%u/of-the-long-names", ix);
        strbuf_addf(&plan, "  - {id: %s, run: x}\n", ids[ix]);
        bool runs = ix < CROWD_RUNNING;
        bool parked = !runs && ix < CROWD_RUNNING + CROWD_PARKED;
        rows[ix] = (struct row){
            .id = ids[ix],
            .state = runs     ? "running"
                     : parked ? "parked"
                              : "ready",
            .token = runs ? ix + 1 : 0,
            .reason = parked ? evil : NULL,
        };
    }
    struct sight sight = look(plan.text, rows, COUNT);
    strbuf_release(&plan);
    return sight;
}

/* The picture, checked for what holds for every picture. */
static void
draw(struct strbuf *out, struct sight *sight, struct live_options options)
{
    uint64_t slots[CROWD_RUNNING];
    for (uint32_t ix = 0; ix < CROWD_RUNNING; ix++) {
        slots[ix] = ix + 1;
    }
    options.wall_ns = WALL_NS + 90 * SECOND_NS;
    options.began_ns = WALL_NS;
    options.slots = slots;
    options.slot_count = CROWD_RUNNING;
    struct glance glance;
    struct model model = {0};
    glance_of(&glance, sight->engine, options.wall_ns);
    model_fill(&model, &glance, NULL, true);
    live_text(out, &model, &options);
    model_release(&model);
    snapshot_free(glance.snapshot);
    uint32_t rows = 0;
    uint32_t columns = 0;
    bool coloured = false;
    for (size_t ix = 0; ix < out->len; ix++) {
        unsigned char byte = (unsigned char)out->text[ix];
        if (byte == '\x1b') {
            assert_true(options.colours);
            const char *end = strchr(out->text + ix, 'm');
            assert_non_null(end);
            coloured = end - (out->text + ix) != 3 || end[-1] != '0';
            ix = (size_t)(end - out->text);
        } else if (byte == '\n') {
            assert_false(coloured); /* every colour ends in its line */
            rows++;
            columns = 0;
        } else {
            assert_true(byte >= ' ' && byte != 0x7f);
            assert_true(options.unicode || byte < 0x7f);
            columns += (byte & 0xc0) == 0x80 ? 0 : 1;
            assert_true(columns < options.columns);
        }
    }
    assert_int_equal(columns, 0);
    assert_true(rows < options.rows);
}

static void assert_has(const struct strbuf *text, const char *part)
{
    if (strstr(strbuf_text(text), part) == NULL) {
        fail_msg("\"%s\" is not in:\n%s", part, strbuf_text(text));
    }
}

static void a_picture_fits_every_terminal(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {
        {80, 24},
        {200, 50},
        {20, 4},
        {21, 5},
        {40, 6},
        {80, 7},
        {1000, 200},
    };
    struct sight sight = look_at_crowd();
    for (size_t ix = 0; ix < ARRAY_COUNT(sizes); ix++) {
        for (int kind = 0; kind < 4; kind++) {
            struct strbuf out = {0};
            struct live_options options = {
                .columns = sizes[ix][0],
                .rows = sizes[ix][1],
                .colours = (kind & 1) != 0,
                .unicode = (kind & 2) != 0,
            };
            draw(&out, &sight, options);
            assert_has(&out, "wave");
            strbuf_release(&out);
        }
    }
    sight_release(&sight);
}

static void a_picture_shows_some_of_everything(void **state)
{
    (void)state;
    struct sight sight = look_at_crowd();
    struct strbuf out = {0};
    draw(&out, &sight, (struct live_options){.columns = 120, .rows = 24});
    assert_has(&out, "wave  1m 30s  cap 20\n");
    assert_has(&out, "0 of 60 done, 20 running, 30 ready, 10 parked\n");
    assert_has(&out, "  slot 1   task-0/of-the-long-names   implement  1m 30s");
    assert_has(&out, " 1m 30s of 10m\n");
    assert_has(&out, "... and 14 more in flight\n");
    assert_has(&out, "  parked   task-20/of-the-long-names  failed, no retr");
    assert_has(&out, ": no key here, and so");
    assert_has(&out, "  ready    task-30/of-the-long-names  ");
    assert_has(&out, " left by estimates, until ");
    strbuf_release(&out);
    sight_release(&sight);
}

/* --- the summary -------------------------------------------------------- */

static bool is_done(const struct row *rows, uint32_t count)
{
    struct sight sight = look(chain_plan, rows, count);
    bool done = summary_is_done(sight.engine, 0);
    sight_release(&sight);
    return done;
}

static void all_done_or_skipped_is_success(void **state)
{
    (void)state;
    struct row rows[] = {
        {.id = "a", .state = "done"},
        {.id = "b", .state = "done"},
        {.id = "c", .state = "done"},
        {.id = "d", .state = "done"},
        {.id = "e", .state = "done"},
    };
    assert_true(is_done(rows, ARRAY_COUNT(rows)));
    rows[4].state = "skipped";
    assert_true(is_done(rows, ARRAY_COUNT(rows)));
    rows[4].state = "cancelled";
    assert_false(is_done(rows, ARRAY_COUNT(rows)));
    rows[4].state = "parked";
    assert_false(is_done(rows, ARRAY_COUNT(rows)));
    rows[4].state = "failed";
    assert_false(is_done(rows, ARRAY_COUNT(rows)));
    rows[4].state = "ready";
    assert_false(is_done(rows, ARRAY_COUNT(rows)));
    rows[4] = (struct row){
        .id = "e",
        .state = "done",
        .flags = SCHED_RECORD_REVOKED,
    };
    assert_false(is_done(rows, ARRAY_COUNT(rows)));
}

static void a_summary_says_what_to_type(void **state)
{
    (void)state;
    const struct row rows[] = {
        {.id = "a",
         .state = "parked",
         .parked = SCHED_PARKED_BLOCKED,
         .reason = "which\x1b[2J region?\n"},
        {.id = "b", .state = "done"},
        {.id = "c", .state = "skipped"},
        {.id = "d", .state = "waiting"},
        {.id = "e", .state = "waiting"},
    };
    struct sight sight = look(chain_plan, rows, ARRAY_COUNT(rows));
    struct strbuf out = {0};
    summary_add(&out, sight.engine, 0);
    assert_has(&out, "wave: 1 of 5 tasks done, 1 parked, 1 skipped, 2 waiting");
    assert_has(&out, "a parked: its session is blocked: which region?");
    assert_has(&out, "    sluice answer a TEXT ");
    assert_has(&out, "    sluice retry a ");
    assert_has(&out, "    sluice log a ");
    assert_has(&out, "waiting    blocked by a\n");
    assert_has(&out, "skipped    by an operator\n");
    assert_null(strchr(strbuf_text(&out), '\x1b'));
    strbuf_release(&out);
    sight_release(&sight);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_gives_the_reasons_of_a_scheduler),
        cmocka_unit_test(what_would_start_is_ready_and_startable),
        cmocka_unit_test(what_is_blocked_names_what_needs_a_person),
        cmocka_unit_test(time_left_is_the_path_or_the_work_over_the_cap),
        cmocka_unit_test(a_picture_fits_every_terminal),
        cmocka_unit_test(a_picture_shows_some_of_everything),
        cmocka_unit_test(all_done_or_skipped_is_success),
        cmocka_unit_test(a_summary_says_what_to_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
