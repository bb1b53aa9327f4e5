/* SPDX-License-Identifier: MIT */
/*
 * The list of issues of `sluice top`: from a store to lines and requests.
 */
#include "term/top.h"

#include "base/duration.h"
#include "base/macros.h"
#include "base/mem.h"
#include "sim/store/memory.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define WALL_NS (INT64_C(1772600767) * SECOND_NS) /* 05:06:07 UTC */

static const char plan[] =
    "sluice: 1\nname: wave\nlimits: {sessions: 2}\n"
    "pipelines:\n  issue:\n"
    "    - {stage: implement, class: implement, run: x}\n"
    "    - {stage: review, class: review, run: x}\n"
    "    - {stage: merge, class: merge, run: x}\n"
    "groups:\n"
    "  - {id: api-1, pipeline: issue}\n"
    "  - {id: api-2, pipeline: issue}\n"
    "  - {id: api-3, pipeline: issue}\n"
    "  - {id: api-4, pipeline: issue}\n"
    "  - {id: loose}\n"
    "tasks:\n"
    "  - {id: notes, run: x}\n"
    "  - {id: guide, run: x, needs: [api-3]}\n"
    "  - {id: first, run: x, group: loose}\n"
    "  - {id: loose.more, run: x, group: loose}\n";

/* The tasks of the plan, in its order. */
static const struct {
    const char *id;
    const char *state;
    int64_t begun_ns[2]; /* of its attempts, ended a minute and two later; 0 */
    bool held;
} rows[] = {
    {"api-1/implement", "done", {WALL_NS - 9 * MINUTE_NS}, false},
    {"api-1/review", "done", {WALL_NS - 7 * MINUTE_NS}, false},
    {"api-1/merge", "done", {WALL_NS - 6 * MINUTE_NS}, false},
    {"api-2/implement",
     "done",
     {WALL_NS - 9 * MINUTE_NS, WALL_NS - 5 * MINUTE_NS},
     false},
    {"api-2/review", "running", {0}, false},
    {"api-2/merge", "waiting", {0}, false},
    {"api-3/implement", "parked", {WALL_NS - 3 * MINUTE_NS}, false},
    {"api-3/review", "waiting", {0}, false},
    {"api-3/merge", "waiting", {0}, false},
    {"api-4/implement", "ready", {0}, false},
    {"api-4/review", "waiting", {0}, true},
    {"api-4/merge", "waiting", {0}, false},
    {"notes", "ready", {0}, false},
    {"guide", "waiting", {0}, false},
    {"first", "running", {0}, false},
    {"loose.more", "ready", {0}, false},
};

/* A store, a look at it, and what is drawn of it. */
struct scene {
    struct store_memory_db *db;
    struct glance glance;
    struct model model;
    struct top top;
    struct grid grid;
};

/* Add an attempt; `ended_ns` 0: it runs. *token is that of the last one. */
static void add_attempt(struct store_batch *batch,
                        uint64_t *token,
                        uint32_t task,
                        uint32_t number,
                        int64_t begun_ns,
                        int64_t ended_ns)
{
    struct store_change change = {
        .type = STORE_CLAIM,
        .as.attempt =
            {
                .token = ++*token,
                .run = 1,
                .task = task,
                .number = number,
                .task_count = 1,
                .state = "running",
                .epoch = batch->epoch,
                .pid = 4711,
                .claimed_ns = begun_ns,
                .begun_ns = begun_ns,
                .code = -1,
            },
    };
    store_batch_add(batch, &change);
    if (ended_ns > 0) {
        change.type = STORE_ATTEMPT_SET;
        change.as.attempt.state = "ended";
        change.as.attempt.outcome = "done";
        change.as.attempt.cause = "exit";
        change.as.attempt.ended_ns = ended_ns;
        store_batch_add(batch, &change);
    }
}

static void add_task(struct store_batch *batch, uint64_t *token, uint32_t ix)
{
    bool runs = strcmp(rows[ix].state, "running") == 0;
    uint32_t number = 0;
    for (; number < 2 && rows[ix].begun_ns[number] > 0; number++) {
        int64_t begun_ns = rows[ix].begun_ns[number];
        int64_t ended_ns = begun_ns + (number + 1) * MINUTE_NS;
        add_attempt(batch, token, ix, number + 1, begun_ns, ended_ns);
    }
    if (runs) {
        add_attempt(batch, token, ix, ++number, WALL_NS, 0);
    }
    struct store_change change = {
        .type = STORE_TASK_SET,
        .as.task =
            {
                .run = 1,
                .ix = ix,
                .id = rows[ix].id,
                .state = rows[ix].state,
                .flags = rows[ix].held ? SCHED_RECORD_HELD : 0,
                .version = ix + 1,
                .token = number > 0 ? *token : 0,
                .leader = runs ? ix : STORE_NONE,
                .attempts = number,
                .number = number,
                .cause = STORE_NONE,
                .reason =
                    strcmp(rows[ix].state, "parked") == 0 ? "which?" : NULL,
            },
    };
    store_batch_add(batch, &change);
}

static void add_rows(struct store_batch *batch)
{
    uint64_t token = 0;
    struct store_change change = {
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
    };
    store_batch_add(batch, &change);
    for (uint32_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        add_task(batch, &token, ix);
    }
}

static struct scene *new_scene(void)
{
    struct scene *scene = mem_zalloc(1, sizeof(*scene));
    struct glance *glance = &scene->glance;
    struct diag diag = {0};
    struct store_owner self = {.pid = 1, .host = "here"};
    struct store_batch batch = {.wall_ns = WALL_NS};
    scene->db = store_memory_db_new();
    glance->view.store = store_memory_open(scene->db, STORE_WRITE);
    glance->wall_ns = WALL_NS + 30 * SECOND_NS;
    enum err err = store_take(glance->view.store, &self, &batch.epoch, &diag);
    assert_int_equal(err, ERR_OK);
    add_rows(&batch);
    err = store_write(glance->view.store, &batch, &diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(err, ERR_OK);
    store_batch_release(&batch);
    glance->view.engine = engine_new(&(struct engine_options){
        .wall_ns = glance->wall_ns,
    });
    err = engine_load(glance->view.engine, glance->view.store, NULL, &diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(err, ERR_OK);
    glance->snapshot = snapshot_new(glance->view.engine, true);
    assert_int_equal(glance_read_times(glance, NULL, &diag), ERR_OK);
    scene->model.store = "/nowhere";
    scene->model.scheduler = "";
    scene->model.wall_ns = glance->wall_ns;
    model_fill(&scene->model, glance, NULL, false);
    top_init(&scene->top, false);
    top_update(&scene->top, &scene->model);
    return scene;
}

static void free_scene(struct scene *scene)
{
    model_release(&scene->model);
    top_release(&scene->top);
    grid_release(&scene->grid);
    glance_release(&scene->glance);
    store_memory_db_free(scene->db);
    mem_free(scene);
}

static void
draw(struct scene *scene, uint32_t columns, uint32_t lines, bool unicode)
{
    grid_resize(&scene->grid, columns, lines);
    top_draw(&scene->grid, &scene->top, &scene->model, unicode);
}

static void press(struct scene *scene, const char *keys)
{
    for (; *keys != '\0'; keys++) {
        struct top_request request;
        uint32_t key = *keys == '\n' ? TOP_KEY_ENTER : (unsigned char)*keys;
        top_key(&scene->top, &scene->model, key, &request);
        top_request_release(&request);
    }
}

/* Require that a key asks for a command about this task or issue. */
static void
assert_asks(struct scene *scene, uint32_t key, const char *verb, const char *id)
{
    struct top_request request;
    top_key(&scene->top, &scene->model, key, &request);
    assert_non_null(request.verb);
    assert_string_equal(request.verb, verb);
    assert_string_equal(request.task, id);
    top_request_release(&request);
}

static bool shows(const struct scene *scene, const char *text)
{
    struct strbuf got = {0};
    grid_add_text(&got, &scene->grid);
    bool found = strstr(strbuf_text(&got), text) != NULL;
    strbuf_release(&got);
    return found;
}

static void assert_shows(const struct scene *scene, const char *text)
{
    if (!shows(scene, text)) {
        struct strbuf got = {0};
        grid_add_text(&got, &scene->grid);
        print_error("no \"%s\" in\n%s", text, strbuf_text(&got));
        strbuf_release(&got);
        fail();
    }
}

/* --- tests -------------------------------------------------------------- */

static void an_issue_is_a_line_with_its_stages(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    draw(scene, 80, 30, true);
    assert_shows(scene,
                 " issues: 1 needs attention, 2 running, 2 ready, 1 waiting ");
    assert_shows(scene, "\n api-3  implement !  review \u00b7  merge \u00b7  ");
    assert_shows(scene,
                 "\n api-2  implement \u2713 3m  review \u25b6 30s  merge "
                 "\u00b7\n");
    assert_shows(scene, "\n loose  first \u25b6 30s  more \u25cb\n");
    assert_shows(scene, "\n api-4  implement \u25cb  review =  merge \u00b7  ");
    assert_shows(scene, "\n notes  ready \u25cb  ");
    assert_shows(scene, "\n guide  waiting \u00b7  ");
    assert_false(shows(scene, "api-1"));
    draw(scene, 80, 30, false);
    assert_shows(scene, "\n api-2  implement + 3m  review > 30s  merge .\n");
    assert_shows(scene, "\n api-4  implement o  review =  merge .  ");
    free_scene(scene);
}

static void ended_issues_and_tasks_have_their_time(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    press(scene, "a");
    draw(scene, 80, 40, true);
    assert_shows(scene, ", 1 waiting, 1 finished ");
    assert_shows(scene,
                 "\n api-1  implement \u2713 1m  review \u2713 1m  merge "
                 "\u2713 1m\n");
    press(scene, "i");
    draw(scene, 80, 40, true);
    assert_shows(scene,
                 " tasks: 1 needs attention, 3 ready, 6 waiting, 4 finished");
    assert_shows(scene,
                 " done      api-1/review               done after 1m\n");
    assert_shows(scene,
                 " done      api-2/implement            done after 3m\n");
    free_scene(scene);
}

static void a_key_switches_and_keeps_the_selection(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    press(scene, "jj"); /* behind the two slots */
    assert_string_equal(scene->top.task, "api-3");
    press(scene, "i");
    assert_string_equal(scene->top.task, "api-3/implement");
    assert_int_not_equal(scene->top.selected, TOP_GONE);
    draw(scene, 80, 30, true);
    assert_shows(scene, "\n>parked    api-3/implement ");
    press(scene, "i");
    assert_string_equal(scene->top.task, "api-3");
    assert_int_not_equal(scene->top.selected, TOP_GONE);
    press(scene, "j"); /* api-2, whose current stage is in a slot */
    press(scene, "i");
    assert_string_equal(scene->top.task, "api-2/review");
    assert_true(scene->top.selected < scene->top.slot_count);
    scene->model.issue_count = 0;
    press(scene, "ii");
    draw(scene, 80, 30, true);
    assert_shows(scene, "no task of this run belongs to an issue");
    free_scene(scene);
}

static void keys_are_about_the_issue(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    press(scene, "jj");
    assert_asks(scene, 'h', "hold", "api-3");
    assert_asks(scene, 'r', "retry", "api-3");
    press(scene, "s");
    draw(scene, 80, 30, true);
    assert_shows(scene, "skip all that is left of api-3? y/n");
    assert_asks(scene, 'y', "skip", "api-3");
    press(scene, "A!");
    assert_asks(scene, TOP_KEY_ENTER, "answer", "api-3");
    assert_asks(scene, 'w', "why", "api-3");
    press(scene, "q");
    assert_asks(scene, 'l', "log", "api-3");
    press(scene, "q");
    press(scene, "/4/rev\n"); /* found by a stage; one of them is held */
    assert_string_equal(scene->top.task, "api-4");
    assert_asks(scene, 'h', "release", "api-4");
    press(scene, "/notes\nc");
    draw(scene, 80, 30, true);
    assert_shows(scene, "cancel notes? y/n");
    free_scene(scene);
}

static void every_line_can_be_selected(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    uint32_t slots = scene->top.slot_count;
    for (uint32_t ix = 0; ix < slots + scene->top.row_count; ix++) {
        assert_int_equal(scene->top.selected, ix);
        top_update(&scene->top, &scene->model);
        assert_int_equal(scene->top.selected, ix);
        press(scene, "j");
    }
    free_scene(scene);
}

static void the_current_stage_is_in_sight(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    draw(scene, 36, 30, true);
    assert_shows(scene, "\n api-2  < review \u25b6 30s  merge \u00b7\n");
    for (uint32_t columns = 1; columns < 130; columns++) {
        draw(scene, columns, 24, columns % 2 == 0);
    }
    free_scene(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_issue_is_a_line_with_its_stages),
        cmocka_unit_test(ended_issues_and_tasks_have_their_time),
        cmocka_unit_test(a_key_switches_and_keeps_the_selection),
        cmocka_unit_test(keys_are_about_the_issue),
        cmocka_unit_test(every_line_can_be_selected),
        cmocka_unit_test(the_current_stage_is_in_sight),
    };
    if (setlocale(LC_ALL, "C.UTF-8") == NULL || setenv("TZ", "UTC", 1) != 0) {
        return EXIT_FAILURE;
    }
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
