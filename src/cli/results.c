/* SPDX-License-Identifier: MIT */
#include "cli/results.h"

#include "base/duration.h"
#include "base/jsonw.h"
#include "base/macros.h"
#include "base/mem.h"
#include "sim/gantt.h"
#include "sim/svg.h"
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
    bool plain = result->goal == PLAN_GOAL_FINISH_ALL;
    if (result->policy == PLAN_POLICY_FIFO && result->rules == 0) {
        (void)snprintf(label.text, sizeof(label.text), "first come");
        return label;
    }
    int len = snprintf(label.text,
                       sizeof(label.text),
                       "policy %s%s%s",
                       sim_policy_name(result->policy),
                       plain ? "" : ", goal ",
                       plain ? "" : sim_goal_name(result->goal));
    if (result->rules != SIM_RULES_ALL) {
        (void)snprintf(label.text + len,
                       sizeof(label.text) - (size_t)len,
                       ", rules %.30s",
                       name_rules(result->rules).text);
    }
    return label;
}

/* Append a duration, right-aligned in a column; a dash for none. */
static void add_column(struct strbuf *out, int width, int64_t duration_ns)
{
    struct strbuf text = {0};
    if (duration_ns >= 0) {
        duration_add(&text, duration_ns);
    } else {
        strbuf_adds(&text, "-");
    }
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

/* List tasks with their states and reasons, below a heading. */
static void add_tasks(struct strbuf *out,
                      const struct plan *plan,
                      const struct sim_left *tasks,
                      uint32_t count)
{
    for (uint32_t ix = 0; ix < count && ix < LEFT_MAX; ix++) {
        const struct sim_left *left = &tasks[ix];
        strbuf_addf(out,
                    "  %-28s %-10s ",
                    plan->tasks[left->task].id,
                    sched_state_name(left->state));
        results_reason(out, plan, left);
        strbuf_adds(out, "\n");
    }
    if (count > LEFT_MAX) {
        strbuf_addf(out, "  ... and %u more\n", count - LEFT_MAX);
    }
}

void results_left(struct strbuf *out,
                  const struct plan *plan,
                  const struct sim_result *result)
{
    const struct {
        const char *heading;
        uint32_t first;
        uint32_t count;
    } parts[] = {
        {"not done", 0, result->left_count},
        {"not needed", result->left_count, result->spared_count},
    };
    for (uint32_t ix = 0; ix < ARRAY_COUNT(parts); ix++) {
        if (parts[ix].count > 0) {
            strbuf_addf(out,
                        "\n%s: %u of %u task%s\n",
                        parts[ix].heading,
                        parts[ix].count,
                        result->task_count,
                        result->task_count == 1 ? "" : "s");
            add_tasks(out,
                      plan,
                      &result->left[parts[ix].first],
                      parts[ix].count);
        }
    }
}

/* Whether the run finishes well without the task, as in `sluice run`: it was
 * skipped, failed and is optional, or comes last. */
static bool is_allowed(const struct plan *plan, const struct sim_left *left)
{
    return left->last || left->state == TASK_SKIPPED ||
           (left->state == TASK_FAILED &&
            plan->tasks[left->task].settings->optional);
}

bool results_finished(const struct plan *plan, const struct sim_result *result)
{
    for (uint32_t ix = 0; ix < result->left_count; ix++) {
        if (!is_allowed(plan, &result->left[ix])) {
            return false;
        }
    }
    return true;
}

/* Return how the run ended: a word for JSON, by the same rules as
 * $SLUICE_OUTCOME. */
static const char *outcome_of(const struct plan *plan,
                              const struct sim_result *result)
{
    bool cancelled = true;
    for (uint32_t ix = 0; ix < result->left_count; ix++) {
        const struct sim_left *left = &result->left[ix];
        cancelled = cancelled &&
                    (is_allowed(plan, left) || left->state == TASK_CANCELLED);
    }
    return results_finished(plan, result)         ? "done"
           : result->cancelled || cancelled       ? "cancelled"
           : result->stopped != SCHED_NOT_STOPPED ? "stopped"
                                                  : "failed";
}

/* Append how the run ended, unless by itself. */
static void add_outcome(struct strbuf *out,
                        const struct plan *plan,
                        const struct sim_result *result)
{
    if (result->cancelled) {
        strbuf_adds(out, "  cancelled\n");
        return;
    }
    if (result->stopped == SCHED_NOT_STOPPED) {
        return;
    }
    strbuf_adds(out, "  stopped at ");
    duration_add(out, result->stopped_ns);
    if (result->stopped == SCHED_STOPPED_DEADLINE) {
        strbuf_adds(out, ": its deadline has passed\n");
    } else if (result->stop_task != PLAN_NONE) {
        strbuf_addf(out,
                    ": %s has failed\n",
                    plan->tasks[result->stop_task].id);
    } else {
        strbuf_adds(out, ": a task has failed\n");
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

/* Append a line about the completion of issues, unless all are complete at the
 * same time as the only one. */
static void add_issues(struct strbuf *out, const struct sim_result *result)
{
    const struct issues *issues = &result->issues;
    if (issues->count < 2 || issues->done == 0) {
        return;
    }
    strbuf_addf(out,
                "  issues %u of %u complete, in the mean at ",
                issues->done,
                issues->count);
    duration_add(out, issues->mean_ns);
    if (issues->half_ns >= 0) {
        strbuf_adds(out, ", half of them at ");
        duration_add(out, issues->half_ns);
    }
    strbuf_adds(out, "\n");
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
    if (result->restarts > 0) {
        strbuf_addf(out, ", %u gates restarted", result->restarts);
    }
    strbuf_adds(out, "\n");
    add_outcome(out, plan, result);
    if (result->last_count > 0) {
        strbuf_addf(out,
                    "  last tasks %u of %u done\n",
                    result->last_done,
                    result->last_count);
    }
    add_issues(out, result);
    add_classes(out, plan, result);
    results_left(out, plan, result);
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
                      const char *name,
                      const struct sim_left *tasks,
                      uint32_t count)
{
    jsonw_list(json, 1, name);
    for (uint32_t ix = 0; ix < count; ix++) {
        const struct sim_left *left = &tasks[ix];
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
        jsonw_bool(json, "last", left->last);
        jsonw_object_end(json);
        strbuf_release(&text);
    }
    jsonw_array_end(json);
}

static void json_outcome(struct jsonw *json,
                         const struct plan *plan,
                         const struct sim_result *result)
{
    bool stopped = result->stopped != SCHED_NOT_STOPPED;
    jsonw_line(json, 1);
    jsonw_text(json, "outcome", outcome_of(plan, result));
    jsonw_text(json,
               "stopped",
               !stopped                                    ? NULL
               : result->stopped == SCHED_STOPPED_DEADLINE ? "deadline"
                                                           : "failure");
    jsonw_text(json,
               "stopped_by",
               result->stop_task != PLAN_NONE
                   ? plan->tasks[result->stop_task].id
                   : NULL);
    jsonw_duration_if(json, "stopped_s", stopped, result->stopped_ns);
    jsonw_int(json, "last_tasks", result->last_count);
    jsonw_int(json, "last_done", result->last_done);
}

void results_json(struct strbuf *out,
                  const struct plan *plan,
                  const struct sim_result *result)
{
    struct jsonw json = {.out = out, .spaced = true};
    const struct issues *issues = &result->issues;
    jsonw_object(&json, NULL);
    jsonw_text(&json, "policy", sim_policy_name(result->policy));
    jsonw_text(&json, "goal", sim_goal_name(result->goal));
    jsonw_text(&json, "rules", name_rules(result->rules).text);
    jsonw_int(&json, "tasks", result->task_count);
    jsonw_duration(&json, "makespan_s", result->makespan_ns);
    jsonw_line(&json, 1);
    jsonw_int(&json, "issues", issues->count);
    jsonw_int(&json, "issues_done", issues->done);
    jsonw_duration_if(&json,
                      "mean_completion_s",
                      issues->mean_ns >= 0,
                      issues->mean_ns);
    jsonw_duration_if(&json,
                      "half_done_s",
                      issues->half_ns >= 0,
                      issues->half_ns);
    jsonw_line(&json, 1);
    jsonw_int(&json, "sessions", result->session_count);
    jsonw_int(&json, "peak_sessions", result->lane_count);
    jsonw_name(&json, "slot_use");
    strbuf_addf(out, "%.4f", result->slot_use);
    jsonw_int(&json, "rejections", result->refusals);
    jsonw_int(&json, "restarts", result->restarts);
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
    json_outcome(&json, plan, result);
    json_left(&json, plan, "not_done", result->left, result->left_count);
    json_left(&json,
              plan,
              "not_needed",
              result->left + result->left_count,
              result->spared_count);
    json_timeline(&json, plan, result);
    jsonw_object_end(&json);
}

/* The columns that name the rows of a table; 0: without this column. */
struct columns {
    int label;
    int goal;
    int rules;
};

static int wider(int width, const char *text)
{
    int len = (int)strlen(text);
    return len > width ? len : width;
}

/* A column is as wide as its longest entry. Goals are shown if one is not the
 * default; labels replace policies, goals and rules. */
static struct columns measure_columns(const struct results_row *rows,
                                      uint32_t count)
{
    struct columns columns = {0};
    bool goals = false;
    for (uint32_t ix = 0; ix < count; ix++) {
        const struct sim_result *result = rows[ix].result;
        if (rows[ix].label != NULL) {
            columns.label = wider(columns.label, rows[ix].label);
            continue;
        }
        columns.label = wider(columns.label, sim_policy_name(result->policy));
        columns.goal = wider(columns.goal, sim_goal_name(result->goal));
        columns.rules = wider(columns.rules, name_rules(result->rules).text);
        goals = goals || result->goal != PLAN_GOAL_FINISH_ALL;
    }
    columns.label = wider(columns.label, "policy");
    columns.rules = columns.rules > 0 ? wider(columns.rules, "rules") : 0;
    columns.goal = goals ? columns.goal : 0;
    return columns;
}

static void add_cell(struct strbuf *out, int width, const char *text)
{
    if (width > 0) {
        strbuf_addf(out, "%-*s  ", width, text);
    }
}

/* Append what names a row, or the headings of that for NULL. */
static void add_names(struct strbuf *out,
                      const struct columns *columns,
                      const struct results_row *row)
{
    if (row == NULL) {
        add_cell(out, columns->label, columns->rules > 0 ? "policy" : "");
        add_cell(out, columns->goal, "goal");
        add_cell(out, columns->rules, "rules");
        return;
    }
    const struct sim_result *result = row->result;
    const char *label = row->label;
    label = label != NULL ? label : sim_policy_name(result->policy);
    add_cell(out, columns->label, label);
    /* The other policies have no goals. */
    bool plain = result->policy == PLAN_POLICY_FAIR ||
                 result->policy == PLAN_POLICY_FIFO;
    add_cell(out, columns->goal, plain ? "-" : sim_goal_name(result->goal));
    add_cell(out, columns->rules, name_rules(result->rules).text);
}

/* Append the table of what the results have as a whole, one per line. */
static void add_totals(struct strbuf *out,
                       const struct columns *columns,
                       const struct results_row *rows,
                       uint32_t count)
{
    add_names(out, columns, NULL);
    strbuf_addf(out,
                "%9s %10s %10s %6s\n",
                "makespan",
                "mean done",
                "half done",
                "slots");
    for (uint32_t ix = 0; ix < count; ix++) {
        const struct sim_result *result = rows[ix].result;
        add_names(out, columns, &rows[ix]);
        add_column(out, 9, result->makespan_ns);
        add_column(out, 11, result->issues.mean_ns);
        add_column(out, 11, result->issues.half_ns);
        strbuf_addf(out, " %4.0f %%\n", result->slot_use * 100);
    }
}

/* Append the lines of one result, one per class that ran. */
static void add_waits(struct strbuf *out,
                      const struct columns *columns,
                      const struct plan *plan,
                      const struct results_row *row)
{
    bool first = true;
    struct strbuf names = {0};
    add_names(&names, columns, row);
    for (uint32_t ix = 0; ix < row->result->class_count; ix++) {
        const struct sim_class *class = &row->result->classes[ix];
        if (class->count == 0) {
            continue;
        }
        if (first) {
            strbuf_adds(out, strbuf_text(&names));
        } else {
            strbuf_pad(out, ' ', names.len);
        }
        strbuf_addf(out, "%-10s", plan->classes[ix].name);
        add_column(out, 8, class->starved_ns);
        add_column(out, 10, class->wait_mean_ns);
        add_column(out, 10, class->wait_max_ns);
        strbuf_adds(out, "\n");
        first = false;
    }
    strbuf_release(&names);
}

void results_table(struct strbuf *out,
                   const struct plan *plan,
                   const struct results_row *rows,
                   uint32_t count)
{
    struct columns columns = measure_columns(rows, count);
    add_totals(out, &columns, rows, count);
    strbuf_adds(out, "\n");
    add_names(out, &columns, NULL);
    strbuf_addf(out,
                "%-10s%8s%10s%10s\n",
                "class",
                "starved",
                "wait mean",
                "wait max");
    for (uint32_t ix = 0; ix < count; ix++) {
        add_waits(out, &columns, plan, &rows[ix]);
    }
}

void results_gantt(struct strbuf *out,
                   const struct plan *plan,
                   const struct sim_result *result)
{
    struct gantt_options options = {
        .width = cli_columns(),
        .colour = cli_colours(),
        .unicode = cli_unicode(),
    };
    strbuf_adds(out, "\n");
    gantt_text(out, plan, result, &options);
}

int results_svg(const struct cli_command *command,
                const char *path,
                const struct plan *plan,
                const struct results_row *rows,
                uint32_t count)
{
    struct strbuf out = {0};
    struct svg_options options = {.title = plan->name};
    struct svg_panel *panels = mem_zalloc(count, sizeof(panels[0]));
    for (uint32_t ix = 0; ix < count; ix++) {
        panels[ix] = (struct svg_panel){
            .plan = plan,
            .result = rows[ix].result,
            .caption = rows[ix].label,
        };
    }
    svg_compare(&out, panels, count, &options);
    int error = cli_write_file(path, &out);
    mem_free(panels);
    strbuf_release(&out);
    return error == 0 ? CLI_OK
                      : cli_fail(command, "%s: %s", path, strerror(error));
}
