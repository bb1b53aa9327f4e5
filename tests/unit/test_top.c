/* SPDX-License-Identifier: MIT */
/*
 * What `sluice top` shows, and what its keys ask for.
 *
 * Pictures are compared with files in tests/data/top. When one has changed on
 * purpose, SLUICE_PICTURES=write writes them anew; check the difference.
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

enum { TASKS_MAX = 10000 };

/* A task of the made-up model. */
struct fake {
    const char *id;
    enum task_state state;
    const char *reason;
    bool held;
};

/* A model, and what its texts are borrowed from. */
struct scene {
    struct model model;
    struct top top;
    struct grid grid;
    struct fake *tasks;
    struct model_row rows[TASKS_MAX];
    uint32_t described, *counter; /* how often a task was */
};

static const struct fake evening[] = {
    {"api-4", TASK_PARKED, "its session is blocked: which?", 0},
    {"api-2", TASK_READY, "limit sessions, in use by api-1/implement", 0},
    {"api-3", TASK_READY, "held", true},
    {"api-1/gate", TASK_WAITING, "needs api-1/implement", 0},
    {"api-5", TASK_WAITING, "blocked by api-4", 0},
    {"guide", TASK_DONE, "done", 0},
};

static const struct model_slot slots[] = {
    {
        .task = "api-1/implement",
        .class_name = "implement",
        .repo = "api",
        .attempt = 1,
        .since_ns = WALL_NS - 30 * SECOND_NS,
        .expected_ns = MINUTE_NS,
        .begun = true,
    },
    {
        .task = "web-2/review",
        .class_name = "review",
        .repo = "web",
        .attempt = 2,
        .more = 3,
        .since_ns = WALL_NS - 3 * MINUTE_NS,
        .expected_ns = MINUTE_NS,
        .begun = true,
    },
    {
        .task = "notes",
        .class_name = "docs",
        .attempt = 1,
        .since_ns = WALL_NS,
        .expected_ns = 10 * MINUTE_NS,
    },
};

static const struct model_limit limits[] = {
    {.name = "sessions", .used = 3, .max = 3},
    {.name = "issues", .used = 2, .max = 3},
    {.name = "active", .per = "repo", .used = 2, .max = 1},
    {.name = "review", .used = 1, .max = 1},
    {.name = "gpu", .used = 0, .max = 0},
};

static const struct model_gauge gauges[] = {
    {"5h", 85.4, WALL_NS + 61 * MINUTE_NS, true, ""},
    {"weekly", 40, 0, false, ""},
    {"usd", 22.5, 0, false, "4.50 USD of 20.00 USD"},
};

static const char *fake_id(const struct model *model, uint32_t task)
{
    const struct scene *scene = model->ctx;
    return scene->tasks[task].id;
}

static void fake_describe(const struct model *model,
                          uint32_t task,
                          struct model_task *out,
                          struct strbuf *reason)
{
    const struct scene *scene = model->ctx;
    const struct fake *fake = &scene->tasks[task];
    ++*scene->counter;
    *out = (struct model_task){
        .id = fake->id,
        .state = fake->state,
        .held = fake->held,
    };
    strbuf_adds(reason, fake->reason);
}

static enum model_part part_of(enum task_state state)
{
    return state == TASK_PARKED    ? MODEL_PEOPLE
           : state == TASK_READY   ? MODEL_READY
           : state == TASK_WAITING ? MODEL_WAITING
                                   : MODEL_ENDED;
}

/* The tasks of a scene, which are in the order of their parts. */
static void set_tasks(struct scene *scene, struct fake *tasks, uint32_t count)
{
    struct model *model = &scene->model;
    memset(model->part_counts, 0, sizeof(model->part_counts));
    scene->tasks = tasks;
    for (uint32_t ix = 0; ix < count; ix++) {
        enum model_part part = part_of(tasks[ix].state);
        scene->rows[ix] = (struct model_row){.task = ix, .part = part};
        model->part_counts[part]++;
    }
    model->rows = scene->rows;
    model->row_count = count;
    top_update(&scene->top, model);
}

static struct model_run *new_run(const char *id, uint32_t number)
{
    struct model_run *run = mem_zalloc(1, sizeof(*run));
    *run = (struct model_run){
        .id = id,
        .number = number,
        .task_count = 12,
        .sessions = 3,
        .cap = 3,
        .left_ns = 2 * MINUTE_NS,
    };
    run->counts[TASK_DONE] = 4;
    run->counts[TASK_RUNNING] = 3;
    run->counts[TASK_READY] = 2;
    run->counts[TASK_WAITING] = 2;
    run->counts[TASK_PARKED] = 1;
    return run;
}

static const struct model_event events[] = {
    {1, (char[]){"05:05:01 start      api-1/implement"}, 0},
    {1, (char[]){"05:05:02 done       guide after 3s"}, 0},
    {2, (char[]){"05:05:03 start      of another run"}, 0},
    {1, (char[]){"05:05:04 parked     api-4: which?"}, 0},
    {STORE_NONE, (char[]){"05:05:05 request    cap by uid 0: cap: 3"}, 0},
};

static struct scene *new_scene(bool read_only)
{
    struct scene *scene = mem_zalloc(1, sizeof(*scene));
    scene->counter = &scene->described;
    scene->model = (struct model){
        .store = "/srv/wave/.sluice",
        .scheduler = "scheduler pid 4242 on build1, alive for 12m",
        .well = true,
        .wall_ns = WALL_NS,
        .runs = new_run("evening-wave", 1),
        .run_count = 1,
        .slots = mem_zalloc(ARRAY_COUNT(slots), sizeof(slots[0])),
        .slot_count = ARRAY_COUNT(slots),
        .limits = mem_zalloc(ARRAY_COUNT(limits), sizeof(limits[0])),
        .limit_count = ARRAY_COUNT(limits),
        .events = events,
        .event_count = ARRAY_COUNT(events),
        .ctx = scene,
        .id = fake_id,
        .describe = fake_describe,
    };
    memcpy(scene->model.slots, slots, sizeof(slots));
    memcpy(scene->model.limits, limits, sizeof(limits));
    struct fake *tasks = mem_zalloc(ARRAY_COUNT(evening), sizeof(tasks[0]));
    memcpy(tasks, evening, sizeof(evening));
    top_init(&scene->top, read_only);
    set_tasks(scene, tasks, ARRAY_COUNT(evening));
    return scene;
}

static void free_scene(struct scene *scene)
{
    scene->model.rows = NULL;
    model_release(&scene->model);
    mem_free(scene->tasks);
    top_release(&scene->top);
    grid_release(&scene->grid);
    mem_free(scene);
}

/* --- pictures ----------------------------------------------------------- */

static void draw(struct scene *scene, uint32_t columns, uint32_t rows)
{
    grid_resize(&scene->grid, columns, rows);
    scene->described = 0;
    top_draw(&scene->grid, &scene->top, &scene->model, true);
}

static char *read_picture(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return NULL;
    }
    char *text = mem_zalloc(1, 65536);
    size_t len = fread(text, 1, 65535, file);
    text[len] = '\0';
    (void)fclose(file);
    return text;
}

static void assert_picture(const struct scene *scene, const char *name)
{
    struct strbuf got = {0};
    struct strbuf path = {0};
    grid_add_text(&got, &scene->grid);
    strbuf_addf(&path, "tests/data/top/%s.txt", name);
    const char *wish = getenv("SLUICE_PICTURES");
    if (wish != NULL && strcmp(wish, "write") == 0) {
        FILE *file = fopen(strbuf_text(&path), "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(got.text, 1, got.len, file), got.len);
        assert_int_equal(fclose(file), 0);
    }
    char *wanted = read_picture(strbuf_text(&path));
    if (wanted == NULL || strcmp(strbuf_text(&got), wanted) != 0) {
        print_error("%s: the picture is\n%s", path.text, got.text);
    }
    assert_non_null(wanted);
    assert_string_equal(strbuf_text(&got), wanted);
    mem_free(wanted);
    strbuf_release(&got);
    strbuf_release(&path);
}

static void assert_shows(const struct scene *scene, const char *wanted)
{
    struct strbuf got = {0};
    grid_add_text(&got, &scene->grid);
    if (strstr(strbuf_text(&got), wanted) == NULL) {
        print_error("no \"%s\" in\n%s", wanted, got.text);
        fail();
    }
    strbuf_release(&got);
}

static void assert_hides(const struct scene *scene, const char *unwanted)
{
    struct strbuf got = {0};
    grid_add_text(&got, &scene->grid);
    assert_null(strstr(strbuf_text(&got), unwanted));
    strbuf_release(&got);
}

static void draws_everything_at_80_by_24(void **state)
{
    (void)state;
    struct scene *scene = new_scene(false);
    draw(scene, 80, 24);
    assert_picture(scene, "80x24");
    free_scene(scene);
}

static void draws_two_columns_at_200_by_50(void **state)
{
    (void)state;
    struct scene *scene = new_scene(false);
    scene->model.gauges = gauges;
    scene->model.gauge_count = ARRAY_COUNT(gauges);
    scene->model.usage = "usage: paused until 22:01 by 5h at 85 %";
    draw(scene, 200, 50);
    assert_picture(scene, "200x50");
    free_scene(scene);
}

static void draws_what_matters_at_40_by_10(void **state)
{
    (void)state;
    struct scene *scene = new_scene(false);
    draw(scene, 40, 10);
    assert_picture(scene, "40x10");
    top_say(&scene->top, true, "a message");
    draw(scene, 40, 10);
    assert_shows(scene, "a message");
    free_scene(scene);
}

static void draws_ascii_where_there_is_nothing_else(void **state)
{
    (void)state;
    struct scene *scene = new_scene(true);
    scene->model.well = false;
    scene->model.scheduler = "no scheduler";
    scene->model.runs[0].paused = true;
    grid_resize(&scene->grid, 80, 24);
    top_draw(&scene->grid, &scene->top, &scene->model, false);
    assert_picture(scene, "80x24-ascii");
    free_scene(scene);
}

static void draws_usage_when_there_is_some(void **state)
{
    (void)state;
    struct scene *scene = new_scene(false);
    draw(scene, 80, 30);
    assert_hides(scene, "usage");
    scene->model.usage = "usage override is on";
    draw(scene, 80, 30);
    assert_shows(scene, " usage override is on\n");
    scene->model.gauges = gauges;
    scene->model.gauge_count = ARRAY_COUNT(gauges);
    draw(scene, 80, 30);
    assert_shows(scene, "85 %, resets 06:07, governs the cap\n");
    assert_shows(scene, " weekly         ");
    assert_shows(scene, "40 %\n");
    assert_shows(scene, "4.50 USD of 20.00 USD, 22 %\n");
    free_scene(scene);
}

static void any_size_is_drawn_without_harm(void **state)
{
    (void)state;
    struct scene *scene = new_scene(false);
    scene->model.gauges = gauges;
    scene->model.gauge_count = ARRAY_COUNT(gauges);
    for (uint32_t columns = 0; columns < 140; columns += 3) {
        for (uint32_t rows = 0; rows < 60; rows += 3) {
            for (uint32_t mode = TOP_MAIN; mode <= TOP_FILTER; mode++) {
                scene->top.mode = (enum top_mode)mode;
                if (mode == TOP_PAGER) {
                    pager_open(&scene->top.pager, true);
                }
                draw(scene, columns, rows);
            }
        }
    }
    scene->top.mode = TOP_MAIN;
    draw(scene, 1, 1);
    assert_picture(scene, "1x1");
    draw(scene, 29, 8);
    assert_shows(scene, "too small");
    draw(scene, 100000, 100000);
    assert_shows(scene, "sluice top");
    free_scene(scene);
}

static void nothing_hostile_reaches_a_cell(void **state)
{
    (void)state;
    static const char hostile[] =
        "\x1b[2J\x1b]0;x\a\r\n\t\xc2\x9b"
        "31m\xe2\x80\xae\u6f22\u5b57\xe2\x80\xac\xff end";
    struct scene *scene = new_scene(false);
    struct model *model = &scene->model;
    char text[3000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    struct model_event bad = {.run = STORE_NONE, .text = text};
    struct model_gauge gauge = {.name = hostile, .percent = 1e9};
    memcpy(text, hostile, sizeof(hostile) - 1);
    model->store = text;
    model->scheduler = hostile;
    model->trouble = text;
    model->runs[0].id = text;
    model->slots[0].task = text;
    model->slots[1].class_name = hostile;
    model->slots[2].repo = hostile;
    model->limits[0].name = hostile;
    model->limits[1].per = text;
    model->limits[2].used = INT64_MAX;
    model->gauges = &gauge;
    model->gauge_count = 1;
    model->usage = text;
    model->events = &bad;
    model->event_count = 1;
    scene->tasks[0].id = hostile;
    scene->tasks[1].reason = text;
    scene->tasks[2].reason = hostile;
    top_update(&scene->top, model);
    top_say(&scene->top, true, "%s", text);
    for (uint32_t columns = 30; columns < 220; columns += 7) {
        draw(scene, columns, 40);
        for (uint32_t ix = 0; ix < columns * 40; ix++) {
            const struct grid_cell *cell =
                grid_at(&scene->grid, ix % columns, ix / columns);
            uint32_t code = cell->code;
            assert_true(cell->columns == 0 ||
                        (code >= 0x20 && (code < 0x7f || code >= 0xa0)));
            assert_true(code != 0x202e);
        }
    }
    model->events = NULL;
    model->event_count = 0;
    free_scene(scene);
}

static void ten_thousand_tasks_cost_what_is_shown(void **state)
{
    (void)state;
    struct scene *scene = new_scene(false);
    mem_free(scene->tasks);
    struct fake *tasks = mem_zalloc(TASKS_MAX, sizeof(tasks[0]));
    for (uint32_t ix = 0; ix < TASKS_MAX; ix++) {
        tasks[ix] = (struct fake){"task", TASK_WAITING, "needs task", false};
    }
    tasks[TASKS_MAX - 1].id = "the-last";
    set_tasks(scene, tasks, TASKS_MAX);
    draw(scene, 80, 24);
    assert_in_range(scene->described, 1, 24);
    struct top_request request;
    top_key(&scene->top, &scene->model, TOP_KEY_END, &request);
    draw(scene, 80, 24);
    assert_in_range(scene->described, 1, 24);
    assert_shows(scene, ">waiting   the-last ");
    top_key(&scene->top, &scene->model, '/', &request);
    top_key(&scene->top, &scene->model, 'T', &request);
    top_key(&scene->top, &scene->model, 'H', &request);
    draw(scene, 80, 24);
    assert_int_equal(scene->described, 1);
    free_scene(scene);
}

static void no_run_is_said(void **state)
{
    (void)state;
    struct scene *scene = new_scene(false);
    scene->model.run = MODEL_NONE;
    scene->model.run_count = 0;
    scene->model.slot_count = 0;
    scene->model.row_count = 0;
    scene->model.limit_count = 0;
    top_update(&scene->top, &scene->model);
    draw(scene, 80, 24);
    assert_shows(scene, "no unfinished run");
    assert_shows(scene, "run evening-wave has finished");
    static const char keys[] = "p+-hrsclwjkgGa/?";
    for (size_t ix = 0; keys[ix] != '\0'; ix++) {
        struct top_request request;
        top_key(&scene->top, &scene->model, (unsigned char)keys[ix], &request);
        assert_int_equal(request.deed, TOP_NOTHING);
        draw(scene, 80, 24);
    }
    free_scene(scene);
}

static void many_runs_scroll_and_can_be_chosen(void **state)
{
    (void)state;
    struct scene *scene = new_scene(false);
    struct model *model = &scene->model;
    char names[30][16];
    mem_free(model->runs);
    model->runs = mem_zalloc(30, sizeof(model->runs[0]));
    model->run_count = 30;
    for (uint32_t ix = 0; ix < 30; ix++) {
        (void)snprintf(names[ix], sizeof(names[ix]), "wave-%u", ix + 1);
        struct model_run *run = new_run(names[ix], ix + 1);
        model->runs[ix] = *run;
        mem_free(run);
    }
    top_update(&scene->top, model);
    draw(scene, 80, 24);
    assert_shows(scene, "runs: 30");
    assert_shows(scene, ">wave-1 ");
    struct top_request request;
    scene->top.panel = TOP_TASKS;
    top_key(&scene->top, model, TOP_KEY_TAB, &request);
    assert_int_equal(scene->top.panel, TOP_RUNS);
    top_key(&scene->top, model, TOP_KEY_END, &request);
    assert_int_equal(request.deed, TOP_RUN);
    assert_string_equal(scene->top.run, "wave-30");
    model->run = 29;
    top_update(&scene->top, model);
    draw(scene, 80, 24);
    assert_shows(scene, ">wave-30 ");
    assert_shows(scene, "run wave-30 ");
    assert_hides(scene, "start      api-1"); /* of another run */
    top_key(&scene->top, model, '+', &request);
    assert_string_equal(request.run, "wave-30");
    top_request_release(&request);
    free_scene(scene);
}

/* --- keys --------------------------------------------------------------- */

static void press(struct scene *scene, uint32_t key)
{
    struct top_request request;
    top_key(&scene->top, &scene->model, key, &request);
    assert_int_equal(request.deed, TOP_NOTHING);
}

static void assert_asks(struct scene *scene,
                        uint32_t key,
                        const char *verb,
                        const char *option,
                        const char *task)
{
    struct top_request request;
    top_key(&scene->top, &scene->model, key, &request);
    assert_int_equal(request.deed, TOP_SEND);
    assert_string_equal(request.verb, verb);
    assert_string_equal(request.run, "evening-wave");
    assert_string_equal(request.option != NULL ? request.option : "",
                        option != NULL ? option : "");
    assert_string_equal(request.task != NULL ? request.task : "",
                        task != NULL ? task : "");
    top_request_release(&request);
}

static void events_of_another_day_have_a_date(void **state)
{
    (void)state;
    struct scene *scene = new_scene(false);
    char text[] = "05:06:07 done       b";
    struct model_event both[] = {
        {.run = STORE_NONE,
         .text = text,
         .wall_ns = WALL_NS - 2880 * MINUTE_NS},
        {.run = STORE_NONE, .text = text, .wall_ns = WALL_NS},
    };
    scene->model.events = both;
    scene->model.event_count = 2;
    draw(scene, 100, 40);
    assert_shows(scene, "\n 2026-03-02 05:06:07 done");
    assert_shows(scene, "\n 05:06:07 done       b");
    free_scene(scene);
}

static void an_answer_is_typed_and_one_q_too_many_is_harmless(void **state)
{
    (void)state;
    struct scene *scene = new_scene(false);
    press(scene, 'A');
    press(scene, 'q');
    press(scene, '!');
    press(scene, TOP_KEY_BACKSPACE);
    draw(scene, 100, 40);
    assert_shows(scene, "answer api-1/implement: q_");
    struct top_request request;
    top_key(&scene->top, &scene->model, TOP_KEY_ENTER, &request);
    assert_int_equal(request.deed, TOP_SEND);
    assert_string_equal(request.verb, "answer");
    assert_string_equal(request.task, "api-1/implement");
    assert_string_equal(request.text, "q");
    top_request_release(&request);
    press(scene, 'A');
    press(scene, TOP_KEY_ENTER); /* without a text: nothing is asked for */
    press(scene, '?');
    press(scene, 'q');
    press(scene, 'q');
    assert_string_equal(strbuf_text(&scene->top.message),
                        "press q again to quit");
    free_scene(scene);
}

static void keys_ask_for_commands(void **state)
{
    (void)state;
    struct scene *scene = new_scene(false);
    assert_asks(scene, '+', "cap", "--up", NULL);
    assert_asks(scene, '-', "cap", "--down", NULL);
    assert_asks(scene, 'p', "pause", NULL, NULL);
    scene->model.runs[0].paused = true;
    assert_asks(scene, 'p', "resume", NULL, NULL);
    assert_asks(scene, 'h', "hold", NULL, "api-1/implement");
    press(scene, TOP_KEY_TAB);
    assert_asks(scene, 'r', "retry", NULL, "api-4");
    press(scene, 'j');
    press(scene, TOP_KEY_DOWN);
    assert_asks(scene, 'h', "release", NULL, "api-3");
    press(scene, 'k');
    press(scene, 's');
    draw(scene, 80, 24);
    assert_shows(scene, "skip api-2? y/n");
    assert_asks(scene, 'y', "skip", NULL, "api-2");
    press(scene, 'c');
    press(scene, TOP_KEY_ENTER);
    draw(scene, 80, 24);
    assert_shows(scene, "cancel api-2: not done");
    press(scene, 'y');
    free_scene(scene);
}

static void read_only_refuses_every_key_that_acts(void **state)
{
    (void)state;
    static const char keys[] = "p+=-hrsc";
    struct scene *scene = new_scene(true);
    for (size_t ix = 0; keys[ix] != '\0'; ix++) {
        press(scene, (unsigned char)keys[ix]);
        assert_int_equal(scene->top.mode, TOP_MAIN);
        draw(scene, 80, 24);
        assert_shows(scene, "read-only: '");
        press(scene, 'y');
    }
    free_scene(scene);
}

static void selection_stays_with_its_task(void **state)
{
    (void)state;
    struct scene *scene = new_scene(false);
    press(scene, TOP_KEY_TAB);
    press(scene, 'j'); /* api-2 */
    scene->model.slots[0].task = "api-2";
    scene->tasks[1].id = "api-1/implement";
    top_update(&scene->top, &scene->model);
    assert_asks(scene, 'r', "retry", NULL, "api-2");
    assert_int_equal(scene->top.panel, TOP_SLOTS);
    free_scene(scene);
}

static void what_is_gone_is_not_acted_on(void **state)
{
    (void)state;
    struct scene *scene = new_scene(false);
    press(scene, 'j'); /* web-2/review, in a slot */
    scene->model.slot_count = 1;
    top_update(&scene->top, &scene->model);
    draw(scene, 80, 24);
    assert_shows(scene, "web-2/review has finished");
    assert_hides(scene, "\n>");
    static const char keys[] = "hrsclw";
    for (size_t ix = 0; keys[ix] != '\0'; ix++) {
        press(scene, (unsigned char)keys[ix]);
        assert_int_equal(scene->top.mode, TOP_MAIN);
        draw(scene, 80, 24);
        assert_shows(scene, ": no task is selected");
    }
    press(scene, 'j'); /* to where it was */
    assert_asks(scene, 'r', "retry", NULL, "api-4");
    scene->tasks[0].id = "renamed";
    top_update(&scene->top, &scene->model);
    press(scene, TOP_KEY_HOME);
    assert_asks(scene, 'r', "retry", NULL, "api-1/implement");
    free_scene(scene);
}

static void the_answer_is_for_the_task_of_the_question(void **state)
{
    (void)state;
    struct scene *scene = new_scene(false);
    press(scene, 'c'); /* api-1/implement */
    scene->model.slots[0].task = "other";
    top_update(&scene->top, &scene->model);
    top_say(&scene->top, false, "an answer to something else");
    draw(scene, 80, 24);
    assert_shows(scene, "cancel api-1/implement? y/n");
    assert_asks(scene, 'Y', "cancel", NULL, "api-1/implement");
    free_scene(scene);
}

static void filter_hides_what_does_not_match(void **state)
{
    (void)state;
    struct scene *scene = new_scene(false);
    press(scene, '/');
    press(scene, 'x');
    press(scene, TOP_KEY_BACKSPACE);
    press(scene, TOP_KEY_BACKSPACE);
    press(scene, '5');
    press(scene, TOP_KEY_OTHER);
    draw(scene, 80, 24);
    assert_shows(scene, "find: 5_");
    press(scene, TOP_KEY_ENTER);
    draw(scene, 80, 24);
    assert_shows(scene, "with \"5\"");
    assert_hides(scene, " api-2 ");
    assert_asks(scene, 'h', "hold", NULL, "api-5");
    press(scene, TOP_KEY_ESCAPE);
    draw(scene, 80, 24);
    assert_shows(scene, " api-2 ");
    press(scene, '/');
    for (uint32_t ix = 0; ix < 300; ix++) {
        press(scene, 'q');
    }
    press(scene, TOP_KEY_ESCAPE);
    assert_string_equal(scene->top.filter, "");
    free_scene(scene);
}

static void ended_tasks_are_listed_on_demand(void **state)
{
    (void)state;
    struct scene *scene = new_scene(false);
    draw(scene, 80, 30);
    assert_hides(scene, " done      guide");
    press(scene, 'a');
    draw(scene, 80, 30);
    assert_shows(scene, " done      guide");
    assert_shows(scene, "1 finished");
    press(scene, 'a');
    draw(scene, 80, 30);
    assert_hides(scene, " done      guide");
    scene->model.runs[0].finished = true;
    top_update(&scene->top, &scene->model);
    draw(scene, 80, 30);
    assert_shows(scene, "FINISHED");
    assert_shows(scene, " done      guide");
    free_scene(scene);
}

static void log_and_why_open_the_pager(void **state)
{
    (void)state;
    struct scene *scene = new_scene(false);
    struct top_request request;
    top_key(&scene->top, &scene->model, TOP_KEY_ENTER, &request);
    assert_int_equal(request.deed, TOP_SHOW);
    assert_string_equal(request.verb, "log");
    assert_string_equal(request.task, "api-1/implement");
    top_request_release(&request);
    draw(scene, 80, 24);
    assert_shows(scene, "(nothing yet)");
    pager_add(&scene->top.pager, "hello\n", 6);
    for (uint32_t key = 'a'; key <= 'p'; key++) {
        press(scene, key); /* none of them acts from here */
    }
    draw(scene, 80, 24);
    assert_shows(scene, " log api-1/implement\nhello\n");
    top_key(&scene->top, &scene->model, TOP_KEY_ESCAPE, &request);
    assert_int_equal(request.deed, TOP_CLOSE);
    top_key(&scene->top, &scene->model, 'w', &request);
    assert_string_equal(request.verb, "why");
    top_request_release(&request);
    top_key(&scene->top, &scene->model, TOP_KEY_ESCAPE, &request);
    assert_int_equal(request.deed, TOP_CLOSE);
    top_key(&scene->top, &scene->model, 'q', &request);
    assert_int_equal(request.deed, TOP_QUIT);
    free_scene(scene);
}

static void any_key_in_any_mode_does_no_harm(void **state)
{
    (void)state;
    struct scene *scene = new_scene(false);
    uint32_t random = 1;
    for (uint32_t ix = 0; ix < 20000; ix++) {
        random = random * 1103515245 + 12345;
        uint32_t key = random >> 16 & 0x7f;
        if (key < ' ') {
            key = TOP_KEY_UP + key % (TOP_KEY_OTHER - TOP_KEY_UP + 1);
        }
        struct top_request request;
        top_key(&scene->top, &scene->model, key, &request);
        if (request.task != NULL && request.deed == TOP_SEND) {
            assert_true(strlen(request.task) > 0);
        }
        top_request_release(&request);
        if (ix % 16 == 0) {
            draw(scene, 30 + random % 200, random % 60);
        }
    }
    free_scene(scene);
}

/* --- the model of a store ----------------------------------------------- */

static const char plan[] = "sluice: 1\nname: wave\n"
                           "repos: {api: {}}\n"
                           "limits: {sessions: 1}\n"
                           "tasks:\n"
                           "  - {id: a, run: x, repo: api, estimate: 5m}\n"
                           "  - {id: b, run: x, needs: [a]}\n"
                           "  - {id: c, run: x}\n"
                           "  - {id: d, run: x}\n"
                           "  - {id: e, run: x}\n";

static void add(struct store_batch *batch, struct store_change change)
{
    store_batch_add(batch, &change);
}

static void add_task(struct store_batch *batch,
                     uint32_t ix,
                     const char *id,
                     const char *state)
{
    bool runs = strcmp(state, "running") == 0;
    add(batch,
        (struct store_change){
            .type = STORE_TASK_SET,
            .as.task =
                {
                    .run = 1,
                    .ix = ix,
                    .id = id,
                    .state = state,
                    .version = ix + 1,
                    .token = runs ? 7 : 0,
                    .leader = runs ? ix : STORE_NONE,
                    .attempts = runs ? 2 : 0,
                    .number = runs ? 2 : 0,
                    .cause = STORE_NONE,
                    .reason =
                        strcmp(state, "parked") == 0 ? "why\x1b[1m?" : NULL,
                },
        });
}

static void add_rows(struct store_batch *batch)
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
    add_task(batch, 0, "a", "running");
    add_task(batch, 1, "b", "waiting");
    add_task(batch, 2, "c", "ready");
    add_task(batch, 3, "d", "parked");
    add_task(batch, 4, "e", "done");
    add(batch,
        (struct store_change){
            .type = STORE_CLAIM,
            .as.attempt =
                {
                    .token = 7,
                    .run = 1,
                    .task = 0,
                    .number = 2,
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

/* A look at a store in memory that has these rows. */
static struct glance look(struct store_memory_db *db)
{
    struct glance glance = {.wall_ns = WALL_NS + MINUTE_NS};
    struct diag diag = {0};
    struct store_owner self = {.pid = 1, .host = "here"};
    struct store_batch batch = {.wall_ns = WALL_NS};
    glance.view.store = store_memory_open(db, STORE_WRITE);
    enum err err = store_take(glance.view.store, &self, &batch.epoch, &diag);
    assert_int_equal(err, ERR_OK);
    add_rows(&batch);
    err = store_write(glance.view.store, &batch, &diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(err, ERR_OK);
    store_batch_release(&batch);
    glance.view.engine = engine_new(&(struct engine_options){
        .wall_ns = glance.wall_ns,
    });
    err = engine_load(glance.view.engine, glance.view.store, NULL, &diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(err, ERR_OK);
    glance.snapshot = snapshot_new(glance.view.engine, true);
    return glance;
}

static void a_store_becomes_a_model(void **state)
{
    (void)state;
    struct store_memory_db *db = store_memory_db_new();
    struct glance glance = look(db);
    struct scene *scene = mem_zalloc(1, sizeof(*scene));
    struct model *model = &scene->model;
    model->store = "/nowhere";
    model->scheduler = "";
    model->wall_ns = glance.wall_ns;
    model_fill(model, &glance, "no-such-run", false);
    assert_int_equal(model->run, 0);
    assert_int_equal(model->slot_count, 1);
    assert_string_equal(model->slots[0].task, "a");
    assert_string_equal(model->slots[0].repo, "api");
    assert_int_equal(model->slots[0].attempt, 2);
    assert_int_equal(model->slots[0].expected_ns, 5 * MINUTE_NS);
    assert_int_equal(model->row_count, 4);
    static const char *const wanted[] = {"d", "c", "b", "e"};
    static const enum model_part parts[] = {MODEL_PEOPLE,
                                            MODEL_READY,
                                            MODEL_WAITING,
                                            MODEL_ENDED};
    for (uint32_t ix = 0; ix < model->row_count; ix++) {
        assert_string_equal(model->id(model, model->rows[ix].task), wanted[ix]);
        assert_int_equal(model->rows[ix].part, parts[ix]);
    }
    top_init(&scene->top, false);
    top_update(&scene->top, model);
    draw(scene, 80, 24);
    assert_shows(scene, ">a ");
    assert_shows(scene, "#2   1m of 5m");
    assert_shows(scene, "failed, no retries left: why?");
    assert_shows(scene, " waiting   b                          needs a\n");
    assert_shows(scene, "limit sessions, in use by a\n");
    assert_shows(scene, " sessions       1/1 ");
    scene->tasks = NULL;
    model_release(model);
    top_release(&scene->top);
    grid_release(&scene->grid);
    mem_free(scene);
    glance_release(&glance);
    store_memory_db_free(db);
}

static void the_scheduler_is_told_in_one_line(void **state)
{
    (void)state;
    struct client_view view = {0};
    struct strbuf text = {0};
    assert_false(model_add_scheduler(&text, &view, true));
    assert_non_null(strstr(text.text, "no scheduler"));
    view.owned = true;
    view.owner.pid = 42;
    (void)snprintf(view.owner.host, sizeof(view.owner.host), "here");
    view.owner.age_ns = -1;
    strbuf_clear(&text);
    assert_true(model_add_scheduler(&text, &view, true));
    assert_string_equal(text.text, "scheduler pid 42 on here, alive");
    (void)snprintf(view.owner.trouble, sizeof(view.owner.trouble), "full");
    strbuf_clear(&text);
    assert_false(model_add_scheduler(&text, &view, true));
    assert_string_equal(text.text, "scheduler pid 42 is in TROUBLE: full");
    view.silent_ns = MINUTE_NS;
    strbuf_clear(&text);
    assert_false(model_add_scheduler(&text, &view, true));
    assert_string_equal(text.text, "scheduler pid 42 has been SILENT for 1m");
    view.stopped = true;
    strbuf_clear(&text);
    assert_false(model_add_scheduler(&text, &view, true));
    assert_non_null(strstr(text.text, "is STOPPED: 'kill -CONT 42'"));
    strbuf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_everything_at_80_by_24),
        cmocka_unit_test(draws_two_columns_at_200_by_50),
        cmocka_unit_test(draws_what_matters_at_40_by_10),
        cmocka_unit_test(draws_ascii_where_there_is_nothing_else),
        cmocka_unit_test(draws_usage_when_there_is_some),
        cmocka_unit_test(any_size_is_drawn_without_harm),
        cmocka_unit_test(nothing_hostile_reaches_a_cell),
        cmocka_unit_test(ten_thousand_tasks_cost_what_is_shown),
        cmocka_unit_test(no_run_is_said),
        cmocka_unit_test(many_runs_scroll_and_can_be_chosen),
        cmocka_unit_test(events_of_another_day_have_a_date),
        cmocka_unit_test(an_answer_is_typed_and_one_q_too_many_is_harmless),
        cmocka_unit_test(keys_ask_for_commands),
        cmocka_unit_test(read_only_refuses_every_key_that_acts),
        cmocka_unit_test(selection_stays_with_its_task),
        cmocka_unit_test(what_is_gone_is_not_acted_on),
        cmocka_unit_test(the_answer_is_for_the_task_of_the_question),
        cmocka_unit_test(filter_hides_what_does_not_match),
        cmocka_unit_test(ended_tasks_are_listed_on_demand),
        cmocka_unit_test(log_and_why_open_the_pager),
        cmocka_unit_test(any_key_in_any_mode_does_no_harm),
        cmocka_unit_test(a_store_becomes_a_model),
        cmocka_unit_test(the_scheduler_is_told_in_one_line),
    };
    if (setlocale(LC_ALL, "C.UTF-8") == NULL || setenv("TZ", "UTC", 1) != 0) {
        return EXIT_FAILURE;
    }
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
