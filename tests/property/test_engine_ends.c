/* SPDX-License-Identifier: MIT */
/*
 * How sessions end, under virtual time, with the real engine: which failures
 * are final, and which work that sessions add is taken.
 */
#include "base/macros.h"
#include "sim/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MINUTE (60 * SECOND_NS)

/* The course of a world whose first task is `t`, and what was seen of it. */
struct course {
    uint32_t failures;  /* of t, before it is done */
    const char *result; /* of t */
    uint32_t starts;    /* of t */
    uint32_t others;    /* starts of other tasks */
    struct strbuf told; /* events that hooks have received */
};

static void on_session(void *ctx,
                       int64_t wall_ns,
                       const char *task,
                       struct world_scripted *out)
{
    struct course *course = ctx;
    (void)wall_ns;
    if (strcmp(task, "t") != 0) {
        course->others++;
        return;
    }
    out->code = course->starts++ < course->failures ? 1 : 0;
    out->result = course->result;
}

static void on_told(void *ctx, int64_t wall_ns, const char *event)
{
    struct course *course = ctx;
    (void)wall_ns;
    strbuf_addf(&course->told, "%s\n", event);
}

/* Live through it. An operator retries t after an hour. */
static void live(struct course *course, const char *settings)
{
    struct strbuf plan = {0};
    strbuf_addf(&plan,
                "sluice: 1\n"
                "name: ends\n"
                "hooks: {parked: h, add-refused: h}\n"
                "tasks:\n"
                "  - {id: t, run: x%s}\n",
                settings);
    const struct world_act act = {60 * MINUTE,
                                  "{\"verb\":\"retry\",\"tasks\":[\"t\"]}"};
    struct world_script script = {
        .plan = strbuf_text(&plan),
        .acts = &act,
        .act_count = 1,
        .ctx = course,
        .session = on_session,
        .told = on_told,
    };
    struct world_options options = {.seed = 1, .script = &script};
    struct world_report report = {0};
    if (!world_run(&options, &report)) {
        fail_msg("%s", strbuf_text(&report.fault));
    }
    assert_null(strstr(strbuf_text(&report.states), "parked"));
    world_report_release(&report);
    strbuf_release(&plan);
}

static void assert_told(const struct course *course, const char *part)
{
    if (strstr(strbuf_text(&course->told), part) == NULL) {
        fail_msg("no \"%s\" in: %s", part, strbuf_text(&course->told));
    }
}

static void a_failure_is_retried_if_its_cause_is_named(void **state)
{
    (void)state;
    struct course course = {.failures = 2};
    live(&course, ", retry: {max: 3, backoff: 1s, on: [exit]}");
    assert_int_equal(course.starts, 3);
    assert_string_equal(strbuf_text(&course.told), "");
    strbuf_release(&course.told);
}

static void a_failure_is_final_if_its_cause_is_not_named(void **state)
{
    (void)state;
    struct course course = {.failures = 1};
    live(&course, ", retry: {max: 3, backoff: 1s, on: [timeout, lost]}");
    assert_int_equal(course.starts, 2); /* by the operator */
    assert_told(&course, "(final: its retry is not on exit)");
    strbuf_release(&course.told);
}

static void a_fragment_of_a_session_is_added(void **state)
{
    (void)state;
    struct course course = {
        .result =
            "{\"add\": {\"tasks\": [{\"id\": \"more\", \"run\": \"x\"}]}}",
    };
    live(&course, "");
    assert_int_equal(course.starts, 1);
    assert_int_equal(course.others, 1);
    assert_string_equal(strbuf_text(&course.told), "");
    strbuf_release(&course.told);
}

static void a_fragment_that_cannot_be_is_refused_with_a_reason(void **state)
{
    (void)state;
    struct course course = {
        .result = "{\"add\": {\"tasks\": [{\"id\": \"more\", \"run\": \"x\","
                  " \"needs\": [\"nothing\"]}]}}",
    };
    live(&course, "");
    assert_int_equal(course.others, 0);
    assert_told(&course, "\"hook\":\"add-refused\"");
    assert_told(&course, "nothing");
    strbuf_release(&course.told);
}

static void a_fragment_of_a_failed_session_is_ignored(void **state)
{
    (void)state;
    struct course course = {
        .failures = 1,
        .result =
            "{\"add\": {\"tasks\": [{\"id\": \"more\", \"run\": \"x\"}]}}",
    };
    live(&course, ", retry: {max: 1, backoff: 1s}");
    assert_int_equal(course.starts, 2);
    assert_int_equal(course.others, 1); /* of the second one */
    assert_told(&course, "a fragment is ignored if its session has failed");
    strbuf_release(&course.told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_is_retried_if_its_cause_is_named),
        cmocka_unit_test(a_failure_is_final_if_its_cause_is_not_named),
        cmocka_unit_test(a_fragment_of_a_session_is_added),
        cmocka_unit_test(a_fragment_that_cannot_be_is_refused_with_a_reason),
        cmocka_unit_test(a_fragment_of_a_failed_session_is_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
