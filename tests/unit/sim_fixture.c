/* SPDX-License-Identifier: MIT */
#include "tests/unit/sim_fixture.h"

#include "base/mem.h"
#include "base/strbuf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

void sim_fixture_init(struct sim_fixture *fixture, const char *text)
{
    *fixture = (struct sim_fixture){
        .options = {.policy = PLAN_POLICY_FIFO, .rules = SIM_RULES_ALL},
    };
    struct strbuf whole = {0};
    strbuf_addf(&whole, "sluice: 1\nname: test\n%s", text);
    struct plan_source source = {
        .file = "plan.yaml",
        .text = whole.text,
        .len = whole.len,
        .processors = 4,
    };
    struct plan_errors errors = {0};
    if (!plan_read(&fixture->plan, &source, &errors)) {
        fail_msg("%u:%u: %s",
                 errors.items[0].mark.line,
                 errors.items[0].mark.column,
                 errors.items[0].text);
    }
    strbuf_release(&whole);
}

void sim_fixture_release(struct sim_fixture *fixture)
{
    sim_result_free(fixture->result);
    sim_script_release(&fixture->script);
    plan_free(fixture->plan);
}

void sim_fixture_line(struct sim_fixture *fixture, const char *line)
{
    struct diag diag = {0};
    if (sim_script_add(&fixture->script, line, NULL, &diag) != ERR_OK) {
        fail_msg("%s: %s", line, diag.text);
    }
}

void sim_fixture_add(struct sim_fixture *fixture,
                     const char *time,
                     const char *text)
{
    struct strbuf line = {0};
    strbuf_addf(&line, "at %s add more.yaml", time);
    sim_fixture_line(fixture, line.text);
    strbuf_release(&line);
    for (uint32_t ix = 0; ix < fixture->script.request_count; ix++) {
        struct script_at *at = &fixture->script.requests[ix];
        if (at->request == SCRIPT_ADD && at->text == NULL) {
            at->text = mem_strndup(text, strlen(text));
            at->text_bytes = strlen(text);
        }
    }
}

void sim_fixture_run(struct sim_fixture *fixture)
{
    struct diag diag = {0};
    sim_result_free(fixture->result);
    fixture->options.script = &fixture->script;
    if (sim_run(&fixture->result, fixture->plan, &fixture->options, &diag) !=
        ERR_OK) {
        fail_msg("%s", diag.text);
    }
    assert_non_null(fixture->result);
}

void sim_fixture_refused(struct sim_fixture *fixture, const char *text)
{
    struct diag diag = {0};
    fixture->options.script = &fixture->script;
    enum err err =
        sim_run(&fixture->result, fixture->plan, &fixture->options, &diag);
    assert_int_not_equal(err, ERR_OK);
    assert_null(fixture->result);
    assert_string_equal(diag.text, text);
}

static uint32_t find_task(const struct sim_fixture *fixture, const char *id)
{
    uint32_t task = plan_find_task(fixture->plan, id);
    assert_int_not_equal(task, PLAN_NONE);
    return task;
}

const struct sim_span *
sim_fixture_span(const struct sim_fixture *fixture, const char *id, uint32_t n)
{
    uint32_t task = find_task(fixture, id);
    for (uint32_t ix = 0; ix < fixture->result->span_count; ix++) {
        const struct sim_span *span = &fixture->result->spans[ix];
        if (span->task == task && --n == 0) {
            return span;
        }
    }
    return NULL;
}

uint32_t sim_fixture_count(const struct sim_fixture *fixture, const char *id)
{
    uint32_t count = 0;
    while (sim_fixture_span(fixture, id, count + 1) != NULL) {
        count++;
    }
    return count;
}

void sim_fixture_expect(const struct sim_fixture *fixture,
                        const char *id,
                        struct sim_expected expected)
{
    const struct sim_span *span = sim_fixture_span(fixture, id, expected.n);
    if (span == NULL) {
        fail_msg("%s has no attempt %u", id, expected.n);
        return;
    }
    struct strbuf got = {0};
    struct strbuf wanted = {0};
    strbuf_addf(&got,
                "%s, attempt %u: %g to %g, %s",
                id,
                expected.n,
                (double)span->start_ns / 1e9,
                (double)span->end_ns / 1e9,
                sim_end_name(span->end));
    strbuf_addf(&wanted,
                "%s, attempt %u: %g to %g, %s",
                id,
                expected.n,
                expected.start_s,
                expected.end_s,
                sim_end_name(expected.end));
    assert_string_equal(strbuf_text(&got), strbuf_text(&wanted));
    strbuf_release(&got);
    strbuf_release(&wanted);
}

void sim_fixture_left(const struct sim_fixture *fixture,
                      const char *id,
                      enum task_state state,
                      enum why_code code)
{
    uint32_t task = find_task(fixture, id);
    for (uint32_t ix = 0; ix < fixture->result->left_count; ix++) {
        const struct sim_left *left = &fixture->result->left[ix];
        if (left->task == task) {
            assert_int_equal(left->state, state);
            assert_string_equal(why_code_name(left->why.code),
                                why_code_name(code));
            return;
        }
    }
    fail_msg("%s is not left", id);
}

const struct sim_class *sim_fixture_class(const struct sim_fixture *fixture,
                                          const char *name)
{
    for (uint32_t ix = 0; ix < fixture->plan->class_count; ix++) {
        if (strcmp(fixture->plan->classes[ix].name, name) == 0) {
            return &fixture->result->classes[ix];
        }
    }
    fail_msg("no class %s", name);
    return NULL;
}
