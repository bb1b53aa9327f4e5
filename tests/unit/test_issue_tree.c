/* SPDX-License-Identifier: MIT */
/*
 * Groups with parts, labels, snoozes and approvals: from a store to the list of
 * issues, to reasons and to JSON.
 */
#include "view/model.h"

#include "base/duration.h"
#include "base/macros.h"
#include "base/mem.h"
#include "sim/store/memory.h"
#include "term/top.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define WALL_NS (INT64_C(1772600767) * SECOND_NS) /* 05:06:07 UTC */

static const char plan[] =
    "sluice: 1\nname: wave\n"
    "groups:\n"
    "  - {id: deep, parent: web}\n"
    "  - {id: web, parent: epic, labels: [frontend]}\n"
    "  - {id: epic, labels: [big], url: 'https://example.org/7',"
    " description: all of it}\n"
    "  - {id: old, parent: epic}\n"
    "  - {id: solo}\n"
    "tasks:\n"
    "  - {id: solo/a, group: solo, run: x}\n"
    "  - {id: old/a, group: old, run: x}\n"
    "  - {id: web/ci, group: web, run: x}\n"
    "  - {id: web/go, group: web, run: x, approve: true}\n"
    "  - {id: deep/a, group: deep, run: x, labels: [urgent],"
    " needs: [{task: old/a, on: failed}]}\n"
    "  - {id: deep/b, group: deep, run: x, needs: [web/ci]}\n"
    "finally:\n"
    "  - {id: last, run: x}\n";

static const struct {
    const char *id;
    const char *state;
    uint32_t flags;
    int64_t left_ns; /* until it may start */
    uint32_t cause;
} rows[] = {
    {"solo/a", "ready", 0, 0, STORE_NONE},
    {"old/a", "done", 0, 0, STORE_NONE},
    {"web/ci",
     "waiting",
     SCHED_RECORD_BACKING_OFF | SCHED_RECORD_SNOOZED,
     12 * MINUTE_NS,
     STORE_NONE},
    {"web/go",
     "ready",
     SCHED_RECORD_HELD | SCHED_RECORD_UNAPPROVED,
     0,
     STORE_NONE},
    {"deep/a", "skipped", SCHED_RECORD_CASCADED, 0, 1},
    {"deep/b", "waiting", 0, 0, STORE_NONE},
    {"last", "waiting", 0, 0, STORE_NONE},
};

struct scene {
    struct store_memory_db *db;
    struct glance glance;
    struct model model;
    struct top top;
    struct grid grid;
};

static void add_rows(struct store_batch *batch)
{
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
        change = (struct store_change){
            .type = STORE_TASK_SET,
            .as.task =
                {
                    .run = 1,
                    .ix = ix,
                    .id = rows[ix].id,
                    .state = rows[ix].state,
                    .flags = rows[ix].flags,
                    .until_ns = rows[ix].left_ns, /* the clock is at 0 */
                    .version = ix + 1,
                    .leader = STORE_NONE,
                    .cause = rows[ix].cause,
                },
        };
        store_batch_add(batch, &change);
    }
}

static struct scene *new_scene(const char *label)
{
    struct scene *scene = mem_zalloc(1, sizeof(*scene));
    struct glance *glance = &scene->glance;
    struct diag diag = {0};
    struct store_owner self = {.pid = 1, .host = "here"};
    struct store_batch batch = {.wall_ns = WALL_NS};
    scene->db = store_memory_db_new();
    glance->view.store = store_memory_open(scene->db, STORE_WRITE);
    glance->wall_ns = WALL_NS;
    glance->labels.names[0] = label;
    glance->labels.count = label != NULL ? 1 : 0;
    assert_int_equal(store_take(glance->view.store, &self, &batch.epoch, &diag),
                     ERR_OK);
    add_rows(&batch);
    assert_int_equal(store_write(glance->view.store, &batch, &diag), ERR_OK);
    store_batch_release(&batch);
    glance->view.engine =
        engine_new(&(struct engine_options){.wall_ns = WALL_NS});
    enum err err =
        engine_load(glance->view.engine, glance->view.store, NULL, &diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(err, ERR_OK);
    glance->snapshot = snapshot_new(glance->view.engine, true);
    scene->model.store = "/nowhere";
    scene->model.scheduler = "";
    scene->model.wall_ns = WALL_NS;
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

static void assert_shows(struct scene *scene, const char *text)
{
    struct strbuf got = {0};
    grid_resize(&scene->grid, 90, 30);
    top_draw(&scene->grid, &scene->top, &scene->model, true);
    grid_add_text(&got, &scene->grid);
    if (strstr(strbuf_text(&got), text) == NULL) {
        print_error("no \"%s\" in\n%s", text, strbuf_text(&got));
        fail();
    }
    strbuf_release(&got);
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

/* Require the issues, in order: "id depth done/total". */
static void assert_issues(const struct scene *scene, const char *wanted)
{
    struct strbuf got = {0};
    for (uint32_t ix = 0; ix < scene->model.issue_count; ix++) {
        const struct model_issue *issue = &scene->model.issues[ix];
        strbuf_addf(&got,
                    "%s %u %u/%u\n",
                    issue->id,
                    issue->depth,
                    issue->done,
                    issue->total);
    }
    assert_string_equal(strbuf_text(&got), wanted);
    strbuf_release(&got);
}

static uint32_t find(const struct scene *scene, const char *id)
{
    uint32_t task =
        plan_find_task(engine_run(scene->glance.view.engine, 0).plan, id);
    assert_int_not_equal(task, PLAN_NONE);
    return task;
}

static void
assert_reason(const struct scene *scene, const char *id, const char *wanted)
{
    struct model_task about;
    struct strbuf text = {0};
    scene->model.describe(&scene->model, find(scene, id), &about, &text);
    assert_string_equal(strbuf_text(&text), wanted);
    strbuf_release(&text);
}

/* --- tests -------------------------------------------------------------- */

static void parts_follow_their_parent(void **state)
{
    (void)state;
    struct scene *scene = new_scene(NULL);
    assert_issues(scene,
                  "epic 0 1/5\n"
                  "web 1 0/4\n"
                  "deep 2 0/2\n"
                  "old 1 1/1\n"
                  "solo 0 0/1\n"
                  "last 0 0/1\n");
    /* A group without tasks of its own is no issue that waits. */
    assert_int_equal(scene->model.issue_counts[MODEL_PEOPLE], 1);
    assert_int_equal(scene->model.issue_counts[MODEL_READY], 1);
    assert_int_equal(scene->model.issue_counts[MODEL_WAITING], 2);
    assert_int_equal(scene->model.issue_counts[MODEL_ENDED], 1);
    free_scene(scene);
}

static void parts_are_indented(void **state)
{
    (void)state;
    struct scene *scene = new_scene(NULL);
    assert_shows(scene, "\n>epic      1 of 5 done\n");
    assert_shows(scene,
                 "\n   web     0 of 4 done  ci \u00b7  go !  waits for your "
                 "approval\n");
    assert_shows(scene, "\n     deep  a -  b \u00b7  needs web/ci\n");
    assert_shows(scene, "\n solo      a \u25cb  can start now\n");
    press(scene, "/eep\n");
    assert_shows(scene, "\n     deep  a -");
    assert_string_equal(scene->top.task, "epic"); /* of which it is a part */
    free_scene(scene);
}

static void keys_act_on_a_group_without_tasks(void **state)
{
    (void)state;
    struct scene *scene = new_scene(NULL);
    struct top_request request;
    top_key(&scene->top, &scene->model, 'h', &request);
    assert_string_equal(request.verb, "hold");
    assert_string_equal(request.task, "epic");
    top_request_release(&request);
    press(scene, "i"); /* it has no current stage */
    assert_int_equal(scene->top.selected, TOP_GONE);
    assert_shows(scene, "\n approve   web/go ");
    press(scene, "ij");
    free_scene(scene);
}

static void keys_approve_and_resume(void **state)
{
    (void)state;
    struct scene *scene = new_scene(NULL);
    struct top_request request;
    press(scene, "ig");
    assert_string_equal(scene->top.task, "web/go");
    top_key(&scene->top, &scene->model, 'o', &request);
    assert_string_equal(request.verb, "approve");
    assert_string_equal(request.task, "web/go");
    top_request_release(&request);
    top_key(&scene->top, &scene->model, 'h', &request);
    assert_string_equal(request.verb, "hold"); /* it is not held by anybody */
    top_request_release(&request);
    scene->model.runs[0].stopped = SCHED_STOPPED_DEADLINE;
    assert_shows(scene, "STOPPED by its deadline");
    top_key(&scene->top, &scene->model, 'p', &request);
    assert_string_equal(request.verb, "resume");
    top_request_release(&request);
    free_scene(scene);
}

static void reasons_are_those_of_the_core(void **state)
{
    (void)state;
    struct scene *scene = new_scene(NULL);
    assert_reason(scene, "web/ci", "it asked to be run again at 05:18:07");
    assert_reason(scene, "web/go", "waits for your approval");
    assert_reason(scene,
                  "deep/a",
                  "it needs that old/a fails, and old/a is done");
    assert_reason(scene, "deep/b", "needs web/ci");
    struct reason last =
        snapshot_reason(scene->glance.snapshot, 0, find(scene, "last"));
    assert_int_equal(last.code, WHY_REST);
    assert_non_null(last.task);
    assert_null(last.group); /* it comes after the run, not after a group */
    const struct model_run *run = &scene->model.runs[0];
    assert_int_equal(run->snoozed, 1);
    assert_int_equal(run->unapproved, 1);
    assert_int_equal(run->early, 0);
    assert_null(run->outcome);
    free_scene(scene);
}

static void a_label_selects_tasks_and_their_parents(void **state)
{
    (void)state;
    struct scene *scene = new_scene("frontend"); /* deep has it from web */
    assert_issues(scene, "epic 0 0/4\nweb 1 0/4\ndeep 2 0/2\n");
    assert_shows(scene, "issues: 1 needs attention, 0 running, 0 ready, 1 ");
    assert_shows(scene, "; label frontend ");
    assert_int_equal(scene->model.row_count, 4);
    free_scene(scene);
    scene = new_scene("urgent");
    assert_issues(scene, "epic 0 0/1\nweb 1 0/1\ndeep 2 0/1\n");
    free_scene(scene);
    scene = new_scene("front");
    assert_issues(scene, "");
    assert_int_equal(scene->model.row_count, 0);
    free_scene(scene);
}

static void json_has_the_fields_of_issues(void **state)
{
    (void)state;
    struct scene *scene = new_scene("urgent");
    struct strbuf out = {0};
    struct glance_options options = {0};
    scene->glance.place.address = mem_strndup("/nowhere", 8);
    model_add_json(&out, &scene->glance, &options);
    const char *text = strbuf_text(&out);
    assert_non_null(strstr(text,
                           "{\"id\": \"epic\", \"title\": null, \"parent\": "
                           "null, \"labels\": [\"big\"], \"url\": "
                           "\"https://example.org/7\", \"description\": \"all "
                           "of it\", \"done\": 0, \"tasks\": 1}"));
    assert_non_null(strstr(text,
                           "{\"id\": \"deep\", \"title\": null, "
                           "\"parent\": \"web\", "));
    assert_non_null(
        strstr(text,
               "\"group\": \"deep\", \"labels\": [\"big\", \"frontend\", "
               "\"urgent\"]"));
    assert_null(strstr(text, "\"id\": \"web/ci\""));
    assert_non_null(strstr(text, "\"stopped\": null"));
    strbuf_release(&out);
    free_scene(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_follow_their_parent),
        cmocka_unit_test(parts_are_indented),
        cmocka_unit_test(keys_act_on_a_group_without_tasks),
        cmocka_unit_test(keys_approve_and_resume),
        cmocka_unit_test(reasons_are_those_of_the_core),
        cmocka_unit_test(a_label_selects_tasks_and_their_parents),
        cmocka_unit_test(json_has_the_fields_of_issues),
    };
    if (setlocale(LC_ALL, "C.UTF-8") == NULL || setenv("TZ", "UTC", 1) != 0) {
        return EXIT_FAILURE;
    }
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
