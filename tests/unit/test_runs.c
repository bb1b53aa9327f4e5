/* SPDX-License-Identifier: MIT */
/*
 * Runs: their ids, which submission continues which run, and plans that were
 * read before.
 */
#include "base/mem.h"
#include "tests/unit/engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define TASKS "tasks: [{id: a, run: x}]\n"
#define PLAN "sluice: 1\nname: wave\n" TASKS

static void assert_part(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("no \"%s\" is in: %s", part, text);
    }
}

/* Submit a plan from this file and folder; return the answer. */
static const char *submit(struct rig *rig,
                          const char *file,
                          const char *folder,
                          const char *text,
                          uint32_t processors)
{
    struct strbuf request = {0};
    strbuf_addf(&request,
                "{'verb':'submit','file':'%s','folder':'%s','processors':%u,"
                "'text':'",
                file,
                folder,
                processors);
    for (const char *at = text; *at != '\0'; at++) {
        strbuf_add(&request, *at == '\n' ? "\\n" : at, *at == '\n' ? 2 : 1);
    }
    strbuf_adds(&request, "'}");
    const char *answer = rig_ask(rig, strbuf_text(&request));
    strbuf_release(&request);
    return answer;
}

/* Run the task of the last run to its end. */
static void finish(struct rig *rig)
{
    rig_begin(rig, "a");
    rig_end(rig, "a", 0, NULL);
}

static void an_id_is_made_of_the_name(void **state)
{
    static const struct {
        const char *name;
        const char *id;
    } names[] = {
        {"Booking  Wave (3)!", "\"booking-wave-3\""},
        {"~~ two", "\"two\""},
        {"!?", "\"run\""},
        {"{}~", "\"run-2\""},
        {"a2345678901234567890123456789012345678901234567890123456789 bcd",
         "\"a2345678901234567890123456789012345678901234567890123456789\""},
    };
    (void)state;
    struct rig rig = {0};
    rig_start(&rig);
    for (size_t ix = 0; ix < ARRAY_COUNT(names); ix++) {
        struct strbuf text = {0};
        strbuf_addf(&text, "sluice: 1\nname: \"%s\"\n" TASKS, names[ix].name);
        assert_part(rig_offer(&rig, strbuf_text(&text), ""), names[ix].id);
        strbuf_release(&text);
    }
    rig_release(&rig);
}

static void the_same_plan_elsewhere_is_another_run(void **state)
{
    (void)state;
    struct rig rig = {0};
    rig_start(&rig);
    assert_part(submit(&rig, "p.yaml", "/w", PLAN, 2), "wave is submitted");
    assert_part(submit(&rig, "p.yaml", "/v", PLAN, 2), "wave-2 is submitted");
    assert_part(submit(&rig, "q.yaml", "/v", PLAN, 2), "wave-2 is resumed");
    rig_release(&rig);
}

/* A finished run is continued by its file or its text; the last one counts. */
static void another_plan_may_use_the_name_of_a_finished_run(void **state)
{
    static const char other[] = "sluice: 1\nname: wave\n"
                                "tasks: [{id: a, run: y}]\n";
    (void)state;
    struct rig rig = {0};
    rig_start(&rig);
    assert_part(submit(&rig, "d/p.yaml", "/w", PLAN, 2), "wave is submitted");
    finish(&rig);
    assert_part(submit(&rig, "q.yaml", "/w", PLAN, 2), "wave has finished");
    assert_part(submit(&rig, "e/p.yaml", "/w", other, 2), "has finished, and");
    assert_part(submit(&rig, "q.yaml", "/w", other, 2), "wave-2 is submitted");
    finish(&rig);
    assert_part(submit(&rig, "q.yaml", "/w", other, 2), "wave-2 has finished");
    assert_part(rig_offer(&rig, PLAN, ",'new':true"), "wave-3");
    finish(&rig);
    assert_part(submit(&rig, "r.yaml", "/w", PLAN, 2), "wave-3 has finished");
    rig_release(&rig);
}

static void a_merge_needs_a_repository(void **state)
{
    (void)state;
    struct rig rig = {0};
    rig_start(&rig);
    assert_part(rig_offer(&rig,
                          "sluice: 1\nname: wave\nrepos: {r: {}}\n"
                          "tasks: [{id: m, repo: r, merge: true}]\n",
                          ""),
                "its repo \\\"r\\\" has no \\\"path\\\"");
    rig_release(&rig);
}

static void a_plan_of_the_past_is_refused(void **state)
{
    (void)state;
    struct rig rig = {0};
    rig_start(&rig);
    assert_part(rig_offer(&rig,
                          "sluice: 1\nname: wave\n"
                          "not_before: 2020-01-31T22:00:00Z\n" TASKS,
                          ""),
                "plan.yaml:3:");
    assert_int_equal(engine_run_count(rig.engine), 0);
    rig_release(&rig);
}

/* --- plans that were read before ---------------------------------------- */

/* Offer a plan to a new engine, submit another source; whether it was taken. */
static bool takes(struct plan_source source)
{
    struct rig rig = {.source = source};
    struct plan *plan = NULL;
    struct plan_errors errors = {0};
    rig.source.len = strlen(source.text);
    assert_true(plan_read(&plan, &rig.source, &errors));
    rig.plan_take = plan;
    rig_start(&rig);
    assert_part(submit(&rig, "p.yaml", "/w", PLAN, 2), "wave is submitted");
    bool taken = engine_plan(rig.engine, 0) == plan;
    rig_state(&rig, "a", "starting");
    plan_errors_release(&errors);
    rig_release(&rig);
    return taken;
}

static void only_the_plan_of_the_same_source_is_taken(void **state)
{
    static const struct plan_source others[] = {
        {.file = "q.yaml", .text = PLAN, .processors = 2},
        {.file = "p.yaml", .text = PLAN, .processors = 3},
        {.file = "p.yaml", .text = PLAN "\n", .processors = 2},
        {.file = "p.yaml",
         .text = "sluice: 1\nname: wove\n" TASKS,
         .processors = 2},
    };
    (void)state;
    assert_true(takes((struct plan_source){
        .file = "p.yaml",
        .text = PLAN,
        .processors = 2,
    }));
    for (size_t ix = 0; ix < ARRAY_COUNT(others); ix++) {
        assert_false(takes(others[ix]));
    }
}

static bool age_rules(enum store_kind kind, union store_row *row)
{
    if (kind == STORE_KIND_RUN) {
        row->run.rules = 0;
    }
    return true;
}

static bool drop_base_gates(enum store_kind kind, union store_row *row)
{
    if (kind == STORE_KIND_RUN) {
        row->run.base_gates = false;
    }
    return true;
}

static bool cut_text(enum store_kind kind, union store_row *row)
{
    if (kind == STORE_KIND_FRAGMENT) {
        row->fragment.text_bytes--; /* the final line break */
    }
    return true;
}

static bool break_text(enum store_kind kind, union store_row *row)
{
    if (kind == STORE_KIND_TASK) {
        row->task.id = "z";
    }
    return true;
}

/* Whether a reader takes the plan of one that has read the store before. */
static struct engine *read_store(struct rig *rig, struct engine *spare)
{
    struct diag diag = {0};
    struct engine *engine = engine_new(&(struct engine_options){
        .wall_ns = RIG_WALL_NS,
        .spare = spare,
    });
    if (engine_load(engine, rig->store, NULL, &diag) != ERR_OK) {
        engine_free(engine);
        return NULL;
    }
    return engine;
}

static void a_reader_takes_only_an_equal_plan(void **state)
{
    static bool (*const filters[])(enum store_kind, union store_row *) = {
        age_rules,
        drop_base_gates,
        cut_text,
    };
    (void)state;
    struct rig rig = {0};
    rig_start(&rig);
    rig_submit(&rig, PLAN);
    for (size_t ix = 0; ix < ARRAY_COUNT(filters); ix++) {
        struct engine *spare = read_store(&rig, NULL);
        const struct plan *known = engine_plan(spare, 0);
        rig.filter = filters[ix];
        struct engine *engine = read_store(&rig, spare);
        rig.filter = NULL;
        assert_ptr_not_equal(engine_plan(engine, 0), known);
        assert_ptr_equal(engine_plan(spare, 0), known);
        engine_free(engine);
        engine_free(spare);
    }
    /* After a reader that failed, the plan is read again. */
    struct engine *spare = read_store(&rig, NULL);
    rig.filter = break_text;
    assert_null(read_store(&rig, spare));
    rig.filter = NULL;
    assert_null(engine_plan(spare, 0)); /* it had been taken */
    struct engine *engine = read_store(&rig, spare);
    assert_int_equal(engine_plan(engine, 0)->task_count, 1);
    engine_free(engine);
    engine_free(spare);
    rig_release(&rig);
}

/* A run of an earlier version continues with its rules, in its folder only. */
static void an_older_run_keeps_its_rules(void **state)
{
    (void)state;
    struct rig rig = {0};
    rig_start(&rig);
    assert_part(submit(&rig, "p.yaml", "/w", PLAN, 2), "wave is submitted");
    rig_stop(&rig);
    rig.filter = age_rules;
    rig_start(&rig);
    assert_part(submit(&rig, "p.yaml", "/v", PLAN, 2), "wave-2 is submitted");
    assert_part(submit(&rig, "p.yaml", "/w", PLAN, 2), "wave is resumed");
    assert_part(rig_offer(&rig, PLAN, ",'new':true"), "wave-3 is submitted");
    rig_release(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_is_made_of_the_name),
        cmocka_unit_test(the_same_plan_elsewhere_is_another_run),
        cmocka_unit_test(another_plan_may_use_the_name_of_a_finished_run),
        cmocka_unit_test(a_merge_needs_a_repository),
        cmocka_unit_test(a_plan_of_the_past_is_refused),
        cmocka_unit_test(only_the_plan_of_the_same_source_is_taken),
        cmocka_unit_test(a_reader_takes_only_an_equal_plan),
        cmocka_unit_test(an_older_run_keeps_its_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
