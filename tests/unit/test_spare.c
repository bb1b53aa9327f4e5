/* SPDX-License-Identifier: MIT */
/*
 * An engine that is loaded with a spare one shows the same as an engine that
 * has read everything itself; the plan of the same run is not read again.
 */
#include "view/model.h"

#include "base/duration.h"
#include "base/macros.h"
#include "base/mem.h"
#include "sim/store/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define WALL_NS (INT64_C(1772600767) * SECOND_NS)

#define HEAD                                                                   \
    "sluice: 1\nname: wave\nlimits: {sessions: 1}\n"                           \
    "classes: {small: {}}\n"

static const char plan[] =
    HEAD "tasks:\n"
         "  - {id: a, class: small, run: x}\n"
         "  - {id: b, class: small, run: x, needs: [a]}\n";

static const char changed[] =
    HEAD "tasks:\n"
         "  - {id: a, class: small, run: y}\n"
         "  - {id: b, class: small, run: x, needs: [ ]}\n";

static const char fragment[] =
    "sluice: 1\ntasks:\n  - {id: c, class: small, run: x, needs: [a]}\n";

/* A store with one run. */
struct world {
    uint32_t number;      /* of the run; 0: 1 */
    const char *text;     /* of its plan; NULL: `plan` */
    const char *file;     /* NULL: "plan.yaml" */
    const char *expected; /* what is expected of its sessions, or NULL */
    int64_t later_ns;     /* it was created so much later */
    uint32_t processors;  /* 0: 1 */
    bool added;           /* with a fragment */
    const char *state;    /* of the first task; NULL: "ready" */
};

static void add_run(struct store_batch *batch, const struct world *world)
{
    const char *text = world->text != NULL ? world->text : plan;
    struct store_change change = {
        .type = STORE_RUN_NEW,
        .as.run =
            {
                .number = world->number > 0 ? world->number : 1,
                .id = "wave",
                .name = "wave",
                .file = world->file != NULL ? world->file : "plan.yaml",
                .folder = "/",
                .text = text,
                .text_bytes = strlen(text),
                .processors = world->processors > 0 ? world->processors : 1,
                .created_ns = WALL_NS + world->later_ns,
            },
    };
    store_batch_add(batch, &change);
}

static void add_rows(struct store_batch *batch, const struct world *world)
{
    static const char *const ids[] = {"a", "b", "c"};
    uint32_t run = world->number > 0 ? world->number : 1;
    struct store_change change;
    add_run(batch, world);
    if (world->added) {
        change = (struct store_change){
            .type = STORE_FRAGMENT,
            .as.fragment =
                {
                    .run = run,
                    .number = 1,
                    .file = "more.yaml",
                    .text = fragment,
                    .text_bytes = strlen(fragment),
                },
        };
        store_batch_add(batch, &change);
    }
    for (uint32_t ix = 0; ix < (world->added ? 3U : 2U); ix++) {
        const char *first = world->state != NULL ? world->state : "ready";
        change = (struct store_change){
            .type = STORE_TASK_SET,
            .as.task =
                {
                    .run = run,
                    .ix = ix,
                    .id = ids[ix],
                    .state = ix == 0 ? first : "waiting",
                    .version = ix + 1,
                    .leader = STORE_NONE,
                    .cause = STORE_NONE,
                },
        };
        store_batch_add(batch, &change);
    }
    if (world->expected != NULL) {
        change = (struct store_change){
            .type = STORE_SETTING,
            .as.setting =
                {
                    .name = run == 1 ? "expected/1" : "expected/2",
                    .value = world->expected,
                },
        };
        store_batch_add(batch, &change);
    }
}

/* Load an engine from a new store. */
static struct engine *load(const struct world *world, struct engine *spare)
{
    struct store_memory_db *db = store_memory_db_new();
    struct store *store = store_memory_open(db, STORE_WRITE);
    struct store_owner self = {.pid = 1, .host = "here"};
    struct store_batch batch = {.wall_ns = WALL_NS};
    struct diag diag = {0};
    assert_int_equal(store_take(store, &self, &batch.epoch, &diag), ERR_OK);
    add_rows(&batch, world);
    if (store_write(store, &batch, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
    store_batch_release(&batch);
    struct engine *engine = engine_new(&(struct engine_options){
        .wall_ns = WALL_NS,
        .spare = spare,
    });
    if (engine_load(engine, store, NULL, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
    store_close(store);
    store_memory_db_free(db);
    return engine;
}

/* Append all that can be seen of an engine: states, reasons, estimates. */
static void add_text(struct strbuf *out, struct engine *engine)
{
    struct glance glance = {
        .view = {.engine = engine},
        .wall_ns = WALL_NS,
        .snapshot = snapshot_new(engine, true),
    };
    const struct plan *read = engine_plan(engine, 0);
    model_add_json(out, &glance, &(struct glance_options){0});
    for (uint32_t ix = 0; ix < read->task_count; ix++) {
        strbuf_addf(
            out,
            "%s %s %lld\n",
            read->tasks[ix].id,
            read->tasks[ix].run.shell != NULL ? read->tasks[ix].run.shell : "",
            (long long)plan_estimate_ns(read, &read->tasks[ix]));
    }
    glance.view.engine = NULL; /* the caller's */
    glance_release(&glance);
}

/* Load a world with a spare engine of another one, and compare it with one that
 * has read everything itself. */
static void
expect_same(const struct world *before, const struct world *now, bool taken)
{
    struct strbuf wanted = {0};
    struct strbuf found = {0};
    struct engine *alone = load(now, NULL);
    add_text(&wanted, alone);
    engine_free(alone);
    struct engine *spare = load(before, NULL);
    const struct plan *known = engine_plan(spare, 0);
    struct engine *engine = load(now, spare);
    assert_int_equal(engine_plan(engine, 0) == known, taken);
    assert_int_equal(engine_plan(spare, 0) == NULL, taken);
    engine_free(spare);
    add_text(&found, engine);
    assert_string_equal(strbuf_text(&found), strbuf_text(&wanted));
    engine_free(engine);
    strbuf_release(&wanted);
    strbuf_release(&found);
}

/* --- tests -------------------------------------------------------------- */

static void the_plan_of_the_same_run_is_taken(void **state)
{
    static const char expected[] = "{\"small\": [60000000000, 0, 100]}";
    static const struct world first = {.expected = expected};
    static const struct world later = {.expected = expected, .state = "done"};
    static const struct world more = {.expected = expected, .added = true};
    (void)state;
    expect_same(&(struct world){0}, &(struct world){0}, true);
    expect_same(&first, &first, true);
    expect_same(&first, &later, true);
    expect_same(&later, &more, true); /* the fragment is added to it */
}

static void another_run_is_read(void **state)
{
    static const struct world others[] = {
        {.text = changed},
        {.number = 2},
        {.file = "other.yaml"},
        {.later_ns = 1},
        {.processors = 2},
        {.added = true}, /* its plan has more than the text */
    };
    static const struct world now = {0};
    (void)state;
    for (size_t ix = 0; ix < ARRAY_COUNT(others); ix++) {
        expect_same(&others[ix], &now, false);
    }
    expect_same(&others[5], &others[5], false);
}

/* What another store has learned about its sessions does not count here. */
static void a_run_of_another_store_is_read(void **state)
{
    static const struct world other = {
        .later_ns = -1,
        .expected = "{\"small\": [60000000000, 0, 100]}",
    };
    static const struct world now = {0};
    struct strbuf texts[2] = {0};
    (void)state;
    expect_same(&other, &now, false);
    /* Else this test shows nothing. */
    struct engine *engines[] = {load(&other, NULL), load(&now, NULL)};
    for (size_t ix = 0; ix < ARRAY_COUNT(engines); ix++) {
        add_text(&texts[ix], engines[ix]);
        engine_free(engines[ix]);
    }
    assert_string_not_equal(strbuf_text(&texts[0]), strbuf_text(&texts[1]));
    strbuf_release(&texts[0]);
    strbuf_release(&texts[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plan_of_the_same_run_is_taken),
        cmocka_unit_test(another_run_is_read),
        cmocka_unit_test(a_run_of_another_store_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
