/* SPDX-License-Identifier: MIT */
#include "cli/results.h"

#include "base/duration.h"
#include "base/jsonw.h"
#include "base/macros.h"
#include "view/reasons.h"

#include <stdio.h>
#include <string.h>

enum { LEFT_MAX = 20 };

struct results_label results_rules(uint32_t rules)
{
    static const char *const names[] = {"priority", "cap", "defer", "batch"};
    struct results_label label = {{0}};
    if (rules == 0 || rules == SIM_RULES_ALL) {
        (void)snprintf(label.text,
                       sizeof(label.text),
                       "%s",
                       rules == 0 ? "none" : "all");
        return label;
    }
    size_t len = 0;
    for (uint32_t ix = 0; ix < ARRAY_COUNT(names); ix++) {
        if ((rules & (1U << ix)) != 0) {
            int added = snprintf(label.text + len,
                                 sizeof(label.text) - len,
                                 "%s%s",
                                 len > 0 ? "+" : "",
                                 names[ix]);
            len += added > 0 ? (size_t)added : 0;
        }
    }
    return label;
}

struct results_label results_label(const struct sim_result *result)
{
    struct results_label label = {{0}};
    if (result->policy == PLAN_POLICY_FIFO && result->rules == 0) {
        (void)snprintf(label.text, sizeof(label.text), "first come");
    } else if (result->rules == SIM_RULES_ALL) {
        (void)snprintf(label.text,
                       sizeof(label.text),
                       "policy %s",
                       sim_policy_name(result->policy));
    } else {
        (void)snprintf(label.text,
                       sizeof(label.text),
                       "policy %s, rules %.30s",
                       sim_policy_name(result->policy),
                       results_rules(result->rules).text);
    }
    return label;
}

/* A duration, right-aligned in a column. */
static void add_column(struct strbuf *out, int width, int64_t duration_ns)
{
    struct strbuf text = {0};
    duration_add(&text, duration_ns);
    strbuf_addf(out, "%*s", width, strbuf_text(&text));
    strbuf_release(&text);
}

void results_reason(struct strbuf *out,
                    const struct plan *plan,
                    const struct sim_left *left)
{
    const struct why *why = &left->why;
    struct reason reason = {
        .code = why->code,
        .left_ns = SCHED_NEVER,
        .max = -1,
        .parked = why->parked,
        .state = left->state,
        .revoked = left->revoked,
    };
    if (why->task.v != ID_NONE) {
        reason.task = plan->tasks[why->task.v].id;
    }
    if (why->limit.v != ID_NONE) {
        reason.limit = plan->limits[why->limit.v].name;
    }
    if (why->provider.v != ID_NONE) {
        uint32_t provider = plan->tasks[left->task].provider;
        reason.provider = plan->providers[provider].name;
    }
    reasons_add(out, &reason);
}

static void add_left(struct strbuf *out,
                     const struct plan *plan,
                     const struct sim_result *result)
{
    if (result->left_count == 0) {
        return;
    }
    strbuf_addf(out,
                "\nnot done: %u of %u tasks\n",
                result->left_count,
                result->task_count);
    for (uint32_t ix = 0; ix < result->left_count && ix < LEFT_MAX; ix++) {
        const struct sim_left *left = &result->left[ix];
        strbuf_addf(out,
                    "  %-28s %-10s ",
                    plan->tasks[left->task].id,
                    sched_state_name(left->state));
        results_reason(out, plan, left);
        strbuf_adds(out, "\n");
    }
    if (result->left_count > LEFT_MAX) {
        strbuf_addf(out, "  ... and %u more\n", result->left_count - LEFT_MAX);
    }
}

static void add_classes(struct strbuf *out,
                        const struct plan *plan,
                        const struct sim_result *result)
{
    strbuf_addf(out,
                "\n  %-14s %8s %10s %10s %10s %10s\n",
                "class",
                "starts",
                "wait mean",
                "wait p99",
                "wait max",
                "starved");
    for (uint32_t ix = 0; ix < result->class_count; ix++) {
        const struct sim_class *class = &result->classes[ix];
        if (class->count == 0) {
            continue;
        }
        strbuf_addf(out, "  %-14s %8u ", plan->classes[ix].name, class->count);
        add_column(out, 10, class->wait_mean_ns);
        add_column(out, 11, class->wait_p99_ns);
        add_column(out, 11, class->wait_max_ns);
        add_column(out, 11, class->starved_ns);
        strbuf_adds(out, "\n");
    }
}

void results_text(struct strbuf *out,
                  const struct plan *plan,
                  const struct sim_result *result)
{
    strbuf_addf(out,
                "%s: %u task%s, policy %s",
                plan->name,
                result->task_count,
                result->task_count == 1 ? "" : "s",
                sim_policy_name(result->policy));
    if (result->rules != SIM_RULES_ALL) {
        strbuf_addf(out, ", rules %s", results_rules(result->rules).text);
    }
    strbuf_adds(out, "\n  makespan ");
    duration_add(out, result->makespan_ns);
    strbuf_addf(out,
                ", %u session%s, at most %u at once, slots used %.0f %%",
                result->session_count,
                result->session_count == 1 ? "" : "s",
                result->lane_count,
                result->slot_use * 100);
    if (result->rejections > 0) {
        strbuf_addf(out, ", %u starts refused", result->rejections);
    }
    strbuf_adds(out, "\n");
    add_classes(out, plan, result);
    add_left(out, plan, result);
}

static void json_waits(struct strbuf *out,
                       const struct plan *plan,
                       const struct sim_result *result)
{
    strbuf_adds(out, " \"waits\": [");
    const char *comma = "";
    for (uint32_t ix = 0; ix < result->class_count; ix++) {
        const struct sim_class *class = &result->classes[ix];
        if (class->count == 0) {
            continue;
        }
        strbuf_addf(out, "%s{\"class\": ", comma);
        jsonw_string(out, plan->classes[ix].name);
        strbuf_addf(out, ", \"count\": %u, \"mean_s\": ", class->count);
        jsonw_seconds(out, class->wait_mean_ns);
        strbuf_adds(out, ", \"p99_s\": ");
        jsonw_seconds(out, class->wait_p99_ns);
        strbuf_adds(out, ", \"max_s\": ");
        jsonw_seconds(out, class->wait_max_ns);
        strbuf_adds(out, "}");
        comma = ", ";
    }
    strbuf_adds(out, "],\n");
}

static void json_timeline(struct strbuf *out,
                          const struct plan *plan,
                          const struct sim_result *result)
{
    strbuf_adds(out, " \"timeline\": [");
    for (uint32_t ix = 0; ix < result->span_count; ix++) {
        const struct sim_span *span = &result->spans[ix];
        const struct plan_task *task = &plan->tasks[span->task];
        strbuf_adds(out, ix > 0 ? ",\n  {\"task\": " : "\n  {\"task\": ");
        jsonw_string(out, task->id);
        strbuf_adds(out, ", \"class\": ");
        jsonw_string(out, plan->classes[task->class_ix].name);
        strbuf_adds(out, ", \"start_s\": ");
        jsonw_seconds(out, span->start_ns);
        strbuf_adds(out, ", \"end_s\": ");
        jsonw_seconds(out, span->end_ns);
        strbuf_adds(out, ", \"ready_s\": ");
        jsonw_seconds(out, span->ready_ns);
        strbuf_addf(out,
                    ", \"attempt\": %u, \"slot\": %u, \"session\": %u, "
                    "\"end\": \"%s\"}",
                    span->attempt,
                    span->lane,
                    span->session,
                    sim_end_name(span->end));
    }
    strbuf_adds(out, "]");
}

static void json_left(struct strbuf *out,
                      const struct plan *plan,
                      const struct sim_result *result)
{
    strbuf_adds(out, " \"not_done\": [");
    for (uint32_t ix = 0; ix < result->left_count; ix++) {
        const struct sim_left *left = &result->left[ix];
        strbuf_adds(out, ix > 0 ? ",\n  {\"task\": " : "\n  {\"task\": ");
        jsonw_string(out, plan->tasks[left->task].id);
        strbuf_addf(out,
                    ", \"state\": \"%s\", \"why\": \"%s\", \"text\": ",
                    sched_state_name(left->state),
                    left->revoked ? "revoked" : why_code_name(left->why.code));
        struct strbuf text = {0};
        results_reason(&text, plan, left);
        jsonw_string(out, strbuf_text(&text));
        strbuf_release(&text);
        strbuf_adds(out, ", \"by\": ");
        jsonw_string(out,
                     left->why.task.v == ID_NONE
                         ? NULL
                         : plan->tasks[left->why.task.v].id);
        strbuf_adds(out, ", \"limit\": ");
        jsonw_string(out,
                     left->why.limit.v == ID_NONE
                         ? NULL
                         : plan->limits[left->why.limit.v].name);
        strbuf_adds(out, "}");
    }
    strbuf_adds(out, "],\n");
}

void results_json(struct strbuf *out,
                  const struct plan *plan,
                  const struct sim_result *result)
{
    strbuf_adds(out, "{\"policy\": ");
    jsonw_string(out, sim_policy_name(result->policy));
    strbuf_addf(out,
                ", \"rules\": \"%s\", \"tasks\": %u, \"makespan_s\": ",
                results_rules(result->rules).text,
                result->task_count);
    jsonw_seconds(out, result->makespan_ns);
    strbuf_addf(out,
                ",\n \"sessions\": %u, \"peak_sessions\": %u, "
                "\"slot_use\": %.4f, \"rejections\": %u,\n \"starved_s\": {",
                result->session_count,
                result->lane_count,
                result->slot_use,
                result->rejections);
    const char *comma = "";
    for (uint32_t ix = 0; ix < result->class_count; ix++) {
        if (result->classes[ix].count > 0) {
            strbuf_adds(out, comma);
            jsonw_string(out, plan->classes[ix].name);
            strbuf_adds(out, ": ");
            jsonw_seconds(out, result->classes[ix].starved_ns);
            comma = ", ";
        }
    }
    strbuf_adds(out, "},\n \"states\": {");
    for (uint32_t ix = 0; ix < TASK_STATE_COUNT; ix++) {
        strbuf_addf(out,
                    "%s\"%s\": %u",
                    ix > 0 ? ", " : "",
                    sched_state_name((enum task_state)ix),
                    result->counts[ix]);
    }
    strbuf_adds(out, "},\n");
    json_waits(out, plan, result);
    json_left(out, plan, result);
    json_timeline(out, plan, result);
    strbuf_adds(out, "}");
}

/* Width of the column of rules: that of the longest, or of its heading. */
static int rules_width(const struct sim_result *const *results, uint32_t count)
{
    size_t width = strlen("rules");
    for (uint32_t ix = 0; ix < count; ix++) {
        size_t len = strlen(results_rules(results[ix]->rules).text);
        width = len > width ? len : width;
    }
    return (int)width;
}

/* The lines of one result: a line for each class that ran. */
static void add_row(struct strbuf *out,
                    const struct plan *plan,
                    const struct sim_result *result,
                    int width)
{
    bool first = true;
    for (uint32_t ix = 0; ix < result->class_count; ix++) {
        const struct sim_class *class = &result->classes[ix];
        if (class->count == 0) {
            continue;
        }
        if (first) {
            strbuf_addf(out,
                        "%-9s  %-*s ",
                        sim_policy_name(result->policy),
                        width,
                        results_rules(result->rules).text);
            add_column(out, 9, result->makespan_ns);
            strbuf_addf(out, " %4.0f %%", result->slot_use * 100);
        } else {
            strbuf_pad(out, ' ', (size_t)width + 28);
        }
        strbuf_addf(out, "  %-10s", plan->classes[ix].name);
        add_column(out, 8, class->starved_ns);
        add_column(out, 10, class->wait_mean_ns);
        add_column(out, 10, class->wait_max_ns);
        strbuf_adds(out, "\n");
        first = false;
    }
}

void results_table(struct strbuf *out,
                   const struct plan *plan,
                   const struct sim_result *const *results,
                   uint32_t count)
{
    int width = rules_width(results, count);
    strbuf_addf(out,
                "%s: %u task%s\n\n",
                plan->name,
                results[0]->task_count,
                results[0]->task_count == 1 ? "" : "s");
    strbuf_addf(out,
                "%-9s  %-*s %9s %6s  %-10s%8s%10s%10s\n",
                "policy",
                width,
                "rules",
                "makespan",
                "slots",
                "class",
                "starved",
                "wait mean",
                "wait max");
    for (uint32_t ix = 0; ix < count; ix++) {
        add_row(out, plan, results[ix], width);
    }
}
