/* SPDX-License-Identifier: MIT */
#include "cli/preview.h"

#include "base/clock.h"
#include "base/duration.h"
#include "base/jsonw.h"
#include "cli/cli.h"
#include "cli/results.h"
#include "sim/sim.h"
#include "view/eta.h"

#include <stdio.h>
#include <string.h>

enum {
    STARTS_MAX = 40, /* listed starts */
    LEFT_MAX = 10,   /* listed tasks that would not finish */
};

/* Return the width of the name column. */
static int name_columns(const struct plan *plan,
                        const struct sim_result *result)
{
    size_t width = strlen("task");
    for (uint32_t ix = 0; ix < result->span_count && ix < STARTS_MAX; ix++) {
        size_t len = strlen(plan->tasks[result->spans[ix].task].id);
        width = len > width ? len : width;
    }
    return (int)width;
}

static void add_start(struct strbuf *out,
                      const struct plan *plan,
                      const struct sim_span *span,
                      int width)
{
    const struct plan_task *task = &plan->tasks[span->task];
    struct strbuf at = {0};
    struct strbuf length = {0};
    duration_add(&at, span->start_ns);
    duration_add(&length, span->end_ns - span->start_ns);
    strbuf_addf(out,
                "  %9s  %4u  %-*s  %9s  %s\n",
                span->start_ns == 0 ? "at once" : strbuf_text(&at),
                span->lane + 1,
                width,
                task->id,
                strbuf_text(&length),
                plan->classes[task->class_ix].name);
    strbuf_release(&at);
    strbuf_release(&length);
}

static void add_left(struct strbuf *out,
                     const struct plan *plan,
                     const struct sim_result *result)
{
    for (uint32_t ix = 0; ix < result->left_count && ix < LEFT_MAX; ix++) {
        const struct sim_left *left = &result->left[ix];
        strbuf_addf(out,
                    "%s  %s: ",
                    ix == 0 ? "\nwould not finish:\n" : "",
                    plan->tasks[left->task].id);
        results_reason(out, plan, left);
        strbuf_adds(out, "\n");
    }
    if (result->left_count > LEFT_MAX) {
        strbuf_addf(out, "  ... and %u more\n", result->left_count - LEFT_MAX);
    }
}

static void add_text(struct strbuf *out,
                     const struct plan *plan,
                     const struct sim_result *result,
                     const struct eta_end *forecast)
{
    strbuf_addf(out,
                "%s: %u task%s, about ",
                plan->name,
                plan->task_count,
                plan->task_count == 1 ? "" : "s");
    duration_add(out, result->makespan_ns);
    strbuf_addf(out,
                " by estimates, at most %u session%s at once; nothing was "
                "started\n",
                result->lane_count,
                result->lane_count == 1 ? "" : "s");
    if (forecast->runs > 0) {
        strbuf_adds(out, "forecast: ");
        eta_add_range(out, forecast);
        strbuf_adds(out, "\n");
    }
    int width = name_columns(plan, result);
    strbuf_addf(out,
                "\n  %9s  %4s  %-*s  %9s  %s\n",
                "start",
                "slot",
                width,
                "task",
                "length",
                "class");
    for (uint32_t ix = 0; ix < result->span_count && ix < STARTS_MAX; ix++) {
        add_start(out, plan, &result->spans[ix], width);
    }
    if (result->span_count > STARTS_MAX) {
        strbuf_addf(out,
                    "  ... and %u more starts (--json lists all)\n",
                    result->span_count - STARTS_MAX);
    }
    add_left(out, plan, result);
}

static void add_json(struct strbuf *out,
                     const struct plan *plan,
                     const struct sim_result *result,
                     const struct eta_end *forecast)
{
    struct jsonw json = {.out = out, .spaced = true};
    jsonw_object(&json, NULL);
    jsonw_text(&json, "name", plan->name);
    jsonw_int(&json, "tasks", plan->task_count);
    jsonw_duration(&json, "makespan_s", result->makespan_ns);
    jsonw_int(&json, "peak_sessions", result->lane_count);
    eta_add_json(&json, "forecast", forecast);
    jsonw_list(&json, 1, "at_once");
    for (uint32_t ix = 0;
         ix < result->span_count && result->spans[ix].start_ns == 0;
         ix++) {
        jsonw_text(&json, NULL, plan->tasks[result->spans[ix].task].id);
    }
    jsonw_array_end(&json);
    jsonw_list(&json, 1, "starts");
    for (uint32_t ix = 0; ix < result->span_count; ix++) {
        const struct sim_span *span = &result->spans[ix];
        jsonw_item(&json, 2);
        jsonw_text(&json, "task", plan->tasks[span->task].id);
        jsonw_duration(&json, "start_s", span->start_ns);
        jsonw_duration(&json, "end_s", span->end_ns);
        jsonw_int(&json, "slot", (int64_t)span->lane + 1);
        jsonw_object_end(&json);
    }
    jsonw_array_end(&json);
    jsonw_list(&json, 1, "not_done");
    for (uint32_t ix = 0; ix < result->left_count; ix++) {
        struct strbuf text = {0};
        results_reason(&text, plan, &result->left[ix]);
        jsonw_item(&json, 2);
        jsonw_text(&json, "task", plan->tasks[result->left[ix].task].id);
        jsonw_text(&json, "text", strbuf_text(&text));
        jsonw_object_end(&json);
        strbuf_release(&text);
    }
    jsonw_array_end(&json);
    jsonw_finish(&json);
}

int preview_print(struct plan *plan, bool json)
{
    struct diag diag = {0};
    struct sim_result *result = NULL;
    struct sim_options options = {
        .policy = plan->policy,
        .rules = SIM_RULES_ALL,
        .seed = 1,
        .start_ns = clock_wall_ns(),
    };
    if (sim_run(&result, plan, &options, &diag) != ERR_OK) {
        (void)fprintf(stderr, "sluice run: %s: %s\n", plan->file, diag.text);
        return CLI_USAGE;
    }
    struct strbuf out = {0};
    struct eta_end forecast = eta_of_plan(plan, options.start_ns);
    if (json) {
        add_json(&out, plan, result, &forecast);
    } else {
        add_text(&out, plan, result, &forecast);
    }
    int code = cli_print(&out);
    if (code == CLI_OK && !results_finished(plan, result)) {
        code = CLI_NOT_ALL_DONE;
    }
    sim_result_free(result);
    return code;
}
