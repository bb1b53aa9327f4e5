/* SPDX-License-Identifier: MIT */
#include "cli/results.h"

#include "base/duration.h"
#include "base/jsonw.h"
#include "base/macros.h"
#include "view/reasons.h"

#include <stdio.h>
#include <string.h>

enum { LEFT_MAX = 20 };

const char *const results_rules[RESULTS_RULES] = {
    "priority",
    "cap",
    "defer",
    "batch",
};

/* Return the names of active rules: "priority+cap", "none", "all". */
static struct results_label name_rules(uint32_t rules)
{
    struct results_label label = {{0}};
    if (rules == 0 || rules == SIM_RULES_ALL) {
        (void)snprintf(label.text,
                       sizeof(label.text),
                       "%s",
                       rules == 0 ? "none" : "all");
        return label;
    }
    size_t len = 0;
    for (uint32_t ix = 0; ix < RESULTS_RULES; ix++) {
        if ((rules & (1U << ix)) != 0) {
            int added = snprintf(label.text + len,
                                 sizeof(label.text) - len,
                                 "%s%s",
                                 len > 0 ? "+" : "",
                                 results_rules[ix]);
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
                       name_rules(result->rules).text);
    }
    return label;
}

/* Append a duration, right-aligned in a column. */
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
        strbuf_addf(out, ", rules %s", name_rules(result->rules).text);
    }
    strbuf_adds(out, "\n  makespan ");
    duration_add(out, result->makespan_ns);
    strbuf_addf(out,
                ", %u session%s, at most %u at once, slots used %.0f %%",
                result->session_count,
                result->session_count == 1 ? "" : "s",
                result->lane_count,
                result->slot_use * 100);
    if (result->refusals > 0) {
        strbuf_addf(out, ", %u starts refused", result->refusals);
    }
    strbuf_adds(out, "\n");
    add_classes(out, plan, result);
    add_left(out, plan, result);
}

static void json_waits(struct jsonw *json,
                       const struct plan *plan,
                       const struct sim_result *result)
{
    jsonw_list(json, 1, "waits");
    for (uint32_t ix = 0; ix < result->class_count; ix++) {
        const struct sim_class *class = &result->classes[ix];
        if (class->count == 0) {
            continue;
        }
        jsonw_object(json, NULL);
        jsonw_text(json, "class", plan->classes[ix].name);
        jsonw_int(json, "count", class->count);
        jsonw_duration(json, "mean_s", class->wait_mean_ns);
        jsonw_duration(json, "p99_s", class->wait_p99_ns);
        jsonw_duration(json, "max_s", class->wait_max_ns);
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

static void json_timeline(struct jsonw *json,
                          const struct plan *plan,
                          const struct sim_result *result)
{
    jsonw_list(json, 1, "timeline");
    for (uint32_t ix = 0; ix < result->span_count; ix++) {
        const struct sim_span *span = &result->spans[ix];
        const struct plan_task *task = &plan->tasks[span->task];
        jsonw_item(json, 2);
        jsonw_text(json, "task", task->id);
        jsonw_text(json, "class", plan->classes[task->class_ix].name);
        jsonw_duration(json, "start_s", span->start_ns);
        jsonw_duration(json, "end_s", span->end_ns);
        jsonw_duration(json, "ready_s", span->ready_ns);
        jsonw_int(json, "attempt", span->attempt);
        jsonw_int(json, "slot", span->lane);
        jsonw_int(json, "session", span->session);
        jsonw_text(json, "end", sim_end_name(span->end));
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

static void json_left(struct jsonw *json,
                      const struct plan *plan,
                      const struct sim_result *result)
{
    jsonw_list(json, 1, "not_done");
    for (uint32_t ix = 0; ix < result->left_count; ix++) {
        const struct sim_left *left = &result->left[ix];
        struct strbuf text = {0};
        results_reason(&text, plan, left);
        jsonw_item(json, 2);
        jsonw_text(json, "task", plan->tasks[left->task].id);
        jsonw_text(json, "state", sched_state_name(left->state));
        jsonw_text(json,
                   "why",
                   left->revoked ? "revoked" : why_code_name(left->why.code));
        jsonw_text(json, "text", strbuf_text(&text));
        jsonw_text(json,
                   "by",
                   left->why.task.v == ID_NONE
                       ? NULL
                       : plan->tasks[left->why.task.v].id);
        jsonw_text(json,
                   "limit",
                   left->why.limit.v == ID_NONE
                       ? NULL
                       : plan->limits[left->why.limit.v].name);
        jsonw_object_end(json);
        strbuf_release(&text);
    }
    jsonw_array_end(json);
}

void results_json(struct strbuf *out,
                  const struct plan *plan,
                  const struct sim_result *result)
{
    struct jsonw json = {.out = out, .spaced = true};
    jsonw_object(&json, NULL);
    jsonw_text(&json, "policy", sim_policy_name(result->policy));
    jsonw_text(&json, "rules", name_rules(result->rules).text);
    jsonw_int(&json, "tasks", result->task_count);
    jsonw_duration(&json, "makespan_s", result->makespan_ns);
    jsonw_line(&json, 1);
    jsonw_int(&json, "sessions", result->session_count);
    jsonw_int(&json, "peak_sessions", result->lane_count);
    jsonw_name(&json, "slot_use");
    strbuf_addf(out, "%.4f", result->slot_use);
    jsonw_int(&json, "rejections", result->refusals);
    jsonw_line(&json, 1);
    jsonw_object(&json, "starved_s");
    for (uint32_t ix = 0; ix < result->class_count; ix++) {
        if (result->classes[ix].count > 0) {
            jsonw_name(&json, plan->classes[ix].name);
            jsonw_duration(&json, NULL, result->classes[ix].starved_ns);
        }
    }
    jsonw_object_end(&json);
    jsonw_line(&json, 1);
    jsonw_object(&json, "states");
    for (uint32_t ix = 0; ix < TASK_STATE_COUNT; ix++) {
        jsonw_int(&json,
                  sched_state_name((enum task_state)ix),
                  result->counts[ix]);
    }
    jsonw_object_end(&json);
    json_waits(&json, plan, result);
    json_left(&json, plan, result);
    json_timeline(&json, plan, result);
    jsonw_object_end(&json);
}

/* Return the width of the rules column: the longest entry or the heading. */
static int rules_width(const struct sim_result *const *results, uint32_t count)
{
    size_t width = strlen("rules");
    for (uint32_t ix = 0; ix < count; ix++) {
        size_t len = strlen(name_rules(results[ix]->rules).text);
        width = len > width ? len : width;
    }
    return (int)width;
}

/* Append the lines of one result, one per class that ran. */
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
                        name_rules(result->rules).text);
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
