/* SPDX-License-Identifier: MIT */
/*
 * JSON form of a report, for programs, and stable: members are added, never
 * renamed or removed. Times are seconds since submission.
 */
#include "view/report_json.h"

#include "base/jsonw.h"
#include "base/mem.h"
#include "view/reasons.h"

#include <math.h>
#include <string.h>

static void add_double(struct jsonw *json, const char *key, double value)
{
    if (isfinite(value)) {
        jsonw_number(json, key, 12, value);
    } else {
        jsonw_null(json, key);
    }
}

static void add_sum(struct jsonw *json, const struct stats_sum *sum)
{
    jsonw_int(json, "sessions", sum->sessions);
    jsonw_duration(json, "working_s", sum->working_ns);
    jsonw_duration(json, "longest_s", sum->longest_ns);
    jsonw_int(json, "input_tokens", sum->input_tokens);
    jsonw_int(json, "output_tokens", sum->output_tokens);
    add_double(json, "usd", sum->usd);
    jsonw_object(json, "outcomes");
    for (enum run_history_outcome ix = 0; ix < HISTORY_OUTCOMES; ix++) {
        if (sum->outcomes[ix] > 0) {
            jsonw_int(json, run_history_outcome_name(ix), sum->outcomes[ix]);
        }
    }
    jsonw_object_end(json);
}

static void add_waits(struct jsonw *json, const int64_t *waits_ns)
{
    jsonw_object(json, "waiting_s");
    for (enum stats_reason ix = 0; ix < STATS_REASONS; ix++) {
        jsonw_duration(json, stats_reason_name(ix), waits_ns[ix]);
    }
    jsonw_object_end(json);
}

static void add_head(struct jsonw *json, const struct report *report)
{
    const struct run_history *history = report->history;
    const struct stats *stats = report->stats;
    jsonw_text(json, "run", history->id);
    jsonw_text(json, "name", history->name);
    jsonw_text(json, "file", history->file);
    jsonw_text(json, "state", report_state(report));
    jsonw_bool(json, "finished", history->finished);
    jsonw_text(json, "outcome", run_history_outcome(history));
    jsonw_text(json, "stopped", reasons_stop_name(history->stopped));
    jsonw_moment(json, "submitted", history->created_ns);
    jsonw_duration(json, "makespan_s", history->end_ns);
    int64_t cap = stats_last_cap(stats);
    jsonw_int_if(json, "cap", cap != PLAN_UNLIMITED, cap);
    jsonw_object(json, "tasks_by_state");
    for (uint32_t ix = 0; ix < TASK_STATE_COUNT; ix++) {
        if (stats->states[ix] > 0) {
            jsonw_int(json,
                      sched_state_name((enum task_state)ix),
                      stats->states[ix]);
        }
    }
    jsonw_object_end(json);
    add_sum(json, &stats->sum);
    jsonw_int(json, "retries", stats->retries);
    jsonw_int(json, "merge_restarts", stats->restarts);
    jsonw_duration(json, "starved_s", stats->starved_ns);
    jsonw_duration(json, "review_s", stats->review_ns);
    add_waits(json, stats->waits_ns);
    jsonw_line(json, 1);
    jsonw_object(json, "slots");
    jsonw_int(json, "lanes", stats->lane_count);
    jsonw_duration(json, "offered_s", stats->offered_ns);
    jsonw_duration(json, "working_s", stats->working_ns);
    jsonw_duration(json, "over_cap_s", stats->over_ns);
    add_double(json, "use", stats->slot_use);
    jsonw_object(json, "idle_s");
    for (enum stats_idle ix = 0; ix < STATS_IDLES; ix++) {
        jsonw_duration(json, stats_idle_name(ix), stats->idle_ns[ix]);
    }
    jsonw_object_end(json);
    jsonw_object_end(json);
}

static void add_limits(struct jsonw *json, const struct report *report)
{
    const struct plan *plan = report->history->plan;
    jsonw_list(json, 1, "limits");
    for (uint32_t ix = 0; ix < plan->limit_count; ix++) {
        int64_t waited_ns = report->stats->limit_waits_ns[ix];
        if (waited_ns > 0) {
            jsonw_object(json, NULL);
            jsonw_text(json, "limit", plan->limits[ix].name);
            jsonw_duration(json, "waited_s", waited_ns);
            jsonw_object_end(json);
        }
    }
    jsonw_array_end(json);
}

static void add_classes(struct jsonw *json, const struct report *report)
{
    const struct plan *plan = report->history->plan;
    jsonw_list(json, 1, "classes");
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        const struct stats_class *class = &report->stats->classes[ix];
        if (class->tasks == 0) {
            continue;
        }
        jsonw_item(json, 2);
        jsonw_text(json, "class", plan->classes[ix].name);
        jsonw_int(json, "tasks", class->tasks);
        jsonw_int(json, "done", class->done);
        add_sum(json, &class->sum);
        jsonw_duration(json, "starved_s", class->starved_ns);
        jsonw_int(json, "starts", class->starts);
        jsonw_duration(json, "ready_mean_s", class->ready_mean_ns);
        jsonw_duration(json, "ready_p99_s", class->ready_p99_ns);
        jsonw_duration(json, "ready_max_s", class->ready_max_ns);
        add_waits(json, class->waits_ns);
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

static void add_groups(struct jsonw *json, const struct report *report)
{
    const struct stats *stats = report->stats;
    const struct plan *plan = report->history->plan;
    bool *listed = report_groups(report);
    jsonw_list(json, 1, "groups");
    for (uint32_t ix = 0; ix < stats->group_count; ix++) {
        const struct stats_group *group = &stats->groups[ix];
        if (!report_lists_group(report, listed, ix)) {
            continue;
        }
        jsonw_item(json, 2);
        jsonw_text(json, "group", stats_group_id(stats, ix));
        jsonw_text(json,
                   "title",
                   plan_issue_of(plan, &plan->tasks[group->first_task]).title);
        jsonw_int(json, "tasks", group->tasks);
        jsonw_int(json, "done", group->done);
        bool begun = group->begun_ns >= 0;
        jsonw_duration_if(json, "begun_s", begun, group->begun_ns);
        jsonw_duration_if(json,
                          "ended_s",
                          begun && group->ended_ns >= 0,
                          group->ended_ns);
        add_sum(json, &group->sum);
        uint32_t of = plan->tasks[group->first_task].group;
        if (of != PLAN_NONE) {
            labels_json_group(json, plan, &plan->groups[of]);
        } else {
            jsonw_null(json, "parent");
            labels_json_task(json, plan, &plan->tasks[group->first_task]);
        }
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
    mem_free(listed);
}

/* Groups that have parts, with the totals of all their parts. */
static void add_parents(struct jsonw *json, const struct report *report)
{
    const struct plan *plan = report->history->plan;
    uint32_t count;
    uint32_t *tree = report_tree(report, &count);
    jsonw_list(json, 1, "parents");
    for (uint32_t ix = 0; ix < count; ix++) {
        const struct stats_whole *whole = &report->stats->wholes[tree[ix]];
        const struct plan_group *group = &plan->groups[tree[ix]];
        if (whole->has_parts) {
            jsonw_item(json, 2);
            jsonw_text(json, "group", group->id);
            jsonw_text(json, "title", group->title);
            jsonw_int(json, "tasks", whole->tasks);
            jsonw_int(json, "done", whole->done);
            labels_json_group(json, plan, group);
            jsonw_object_end(json);
        }
    }
    jsonw_array_end(json);
    mem_free(tree);
}

static void add_failures(struct jsonw *json, const struct report *report)
{
    const struct run_history *history = report->history;
    jsonw_list(json, 1, "failures");
    for (uint32_t ix = 0; ix < report->stats->failure_count; ix++) {
        const struct stats_failure *failure = &report->stats->failures[ix];
        const struct run_history_session *last =
            &history->sessions[failure->last];
        jsonw_item(json, 2);
        jsonw_text(json,
                   "class",
                   history->plan->classes[failure->class_ix].name);
        jsonw_text(json, "outcome", run_history_outcome_name(failure->outcome));
        jsonw_text(json, "cause", failure->cause);
        jsonw_int(json, "count", failure->count);
        jsonw_duration(json, "lost_s", failure->lost_ns);
        jsonw_text(json, "last_task", history->plan->tasks[last->task].id);
        jsonw_text(json, "last_reason", last->reason);
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

static void add_path(struct jsonw *json, const struct report *report)
{
    const struct run_history *history = report->history;
    const struct stats *stats = report->stats;
    jsonw_list(json, 1, "critical_path");
    for (uint32_t ix = 0; ix < stats->path_count; ix++) {
        const struct stats_segment *segment = &stats->path[ix];
        jsonw_item(json, 2);
        jsonw_text(json, "step", stats_step_name(segment->step));
        jsonw_text(json, "task", history->plan->tasks[segment->task].id);
        if (segment->session != HISTORY_NONE) {
            jsonw_int(json,
                      "attempt",
                      history->sessions[segment->session].number);
            jsonw_text(json, "after", stats_link_name(segment->link));
        }
        jsonw_duration(json, "start_s", segment->start_ns);
        jsonw_duration(json, "end_s", segment->end_ns);
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

static void add_tasks(struct jsonw *json, const struct report *report)
{
    const struct run_history *history = report->history;
    const struct plan *plan = history->plan;
    jsonw_list(json, 1, "tasks");
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        const struct stats_task *task = &report->stats->tasks[ix];
        if (!report_lists(report, ix)) {
            continue;
        }
        jsonw_item(json, 2);
        jsonw_text(json, "task", plan->tasks[ix].id);
        jsonw_text(json, "class", plan->classes[plan->tasks[ix].class_ix].name);
        jsonw_text(json, "state", sched_state_name(history->tasks[ix].state));
        jsonw_text(json, "reason", history->tasks[ix].reason);
        jsonw_duration_if(json, "begun_s", task->begun_ns >= 0, task->begun_ns);
        jsonw_duration_if(json, "ended_s", task->ended_ns >= 0, task->ended_ns);
        jsonw_duration(json, "ready_s", task->ready_ns);
        add_sum(json, &task->sum);
        uint32_t group = plan->tasks[ix].group;
        jsonw_text(json,
                   "group",
                   group != PLAN_NONE ? plan->groups[group].id : NULL);
        labels_json_task(json, plan, &plan->tasks[ix]);
        jsonw_int(json, "priority", plan->tasks[ix].settings->priority);
        jsonw_bool(json, "finally", plan->tasks[ix].last);
        jsonw_bool(json, "unapproved", history->tasks[ix].unapproved);
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

static void add_sessions(struct jsonw *json, const struct report *report)
{
    const struct run_history *history = report->history;
    jsonw_list(json, 1, "sessions_list");
    for (uint32_t ix = 0; ix < history->session_count; ix++) {
        const struct run_history_session *session = &history->sessions[ix];
        if (!report_lists(report, session->task)) {
            continue;
        }
        jsonw_item(json, 2);
        jsonw_text(json, "task", history->plan->tasks[session->task].id);
        jsonw_int(json, "attempt", session->number);
        jsonw_int(json, "task_count", session->task_count);
        jsonw_bool(json, "confined", session->confined);
        jsonw_int(json, "lane", report->stats->lanes[ix] + 1);
        jsonw_duration(json, "start_s", session->claimed_ns);
        jsonw_duration(json, "end_s", session->ended_ns);
        jsonw_text(json, "outcome", run_history_outcome_name(session->outcome));
        jsonw_text(json, "cause", session->cause);
        jsonw_text(json, "reason", session->reason);
        if (session->restarts > 0) {
            jsonw_int(json, "restarts", session->restarts);
        }
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

static void add_gates(struct jsonw *json, const struct report *report)
{
    const struct run_history *history = report->history;
    jsonw_list(json, 1, "gates");
    for (uint32_t ix = 0; ix < history->gate_count; ix++) {
        const struct run_history_gate *gate = &history->gates[ix];
        jsonw_item(json, 2);
        jsonw_text(json, "repo", gate->repo);
        jsonw_text(json, "command", gate->command);
        jsonw_int(json, "passed", gate->passed);
        jsonw_int(json, "failed", gate->failed);
        jsonw_int(json, "flaky", gate->flaky);
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

static void add_forecast_classes(struct jsonw *json,
                                 const struct report *report)
{
    const struct sim_result *result = report->forecast->result;
    const struct plan *plan = report->history->plan;
    jsonw_array(json, "classes");
    for (uint32_t ix = 0; ix < result->class_count; ix++) {
        const struct sim_class *class = &result->classes[ix];
        if (class->count == 0) {
            continue;
        }
        jsonw_item(json, 2);
        jsonw_text(json, "class", plan->classes[ix].name);
        jsonw_int(json, "starts", class->count);
        jsonw_duration(json, "mean_s", class->busy_ns / class->count);
        jsonw_duration(json, "ready_mean_s", class->wait_mean_ns);
        jsonw_duration(json, "starved_s", class->starved_ns);
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

static void add_earlier(struct jsonw *json, const struct hindsight *hindsight)
{
    jsonw_object(json, "earlier");
    jsonw_int(json, "runs", hindsight->runs);
    jsonw_int(json, "within_p90", hindsight->within);
    add_double(json, "log_error", hindsight->error);
    jsonw_object_end(json);
}

static void add_forecast(struct jsonw *json, const struct report *report)
{
    const struct forecast *forecast = report->forecast;
    jsonw_line(json, 1);
    if (forecast->result == NULL) {
        jsonw_null(json, "forecast");
        return;
    }
    jsonw_object(json, "forecast");
    jsonw_bool(json, "whole", forecast_is_whole(forecast));
    jsonw_duration(json, "makespan_s", forecast->result->makespan_ns);
    jsonw_int(json, "sessions", forecast->result->session_count);
    add_double(json, "use", forecast->result->slot_use);
    jsonw_int(json, "without_estimate", forecast->guessed);
    eta_add_json(json, "end", &forecast->end);
    add_earlier(json, report->hindsight);
    add_forecast_classes(json, report);
    jsonw_array(json, "differences");
    enum { DIFFERENCES_MAX = 20 };
    for (uint32_t ix = 0; ix < forecast->task_count && ix < DIFFERENCES_MAX;
         ix++) {
        const struct forecast_task *task = &forecast->tasks[ix];
        jsonw_item(json, 2);
        jsonw_text(json, "task", report->history->plan->tasks[task->task].id);
        jsonw_duration(json, "estimate_s", task->estimate_ns);
        jsonw_duration(json, "took_s", task->took_ns);
        jsonw_bool(json, "guessed", task->guessed);
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
    jsonw_object_end(json);
}

bool report_lists(const struct report *report, uint32_t task)
{
    return labels_match(&report->labels, &report->history->plan->tasks[task]);
}

bool *report_groups(const struct report *report)
{
    const struct plan *plan = report->history->plan;
    bool *listed = mem_zalloc(plan->group_count, sizeof(listed[0]));
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        uint32_t group = plan->tasks[ix].group;
        if (group != PLAN_NONE && report_lists(report, ix)) {
            listed[group] = true;
        }
    }
    return listed;
}

bool report_lists_group(const struct report *report,
                        const bool *listed,
                        uint32_t group)
{
    uint32_t first = report->stats->groups[group].first_task;
    uint32_t of = report->history->plan->tasks[first].group;
    return of != PLAN_NONE ? listed[of] : report_lists(report, first);
}

uint32_t *report_tree(const struct report *report, uint32_t *count_out)
{
    const struct plan *plan = report->history->plan;
    uint32_t *tree = stats_tree(report->stats, count_out);
    bool *listed = report_groups(report);
    for (uint32_t ix = plan->group_count; ix-- > 0;) {
        if (listed[ix] && plan->groups[ix].parent != PLAN_NONE) {
            listed[plan->groups[ix].parent] = true;
        }
    }
    uint32_t kept = 0;
    for (uint32_t ix = 0; ix < *count_out; ix++) {
        tree[kept] = tree[ix];
        kept += listed[tree[ix]] ? 1 : 0;
    }
    *count_out = kept;
    mem_free(listed);
    return tree;
}

const char *report_state(const struct report *report)
{
    const struct run_history *history = report->history;
    if (history->cancelled) {
        return "cancelled";
    }
    if (history->finished) {
        return "finished";
    }
    if (history->paused) {
        return "paused";
    }
    if (history->stopped != SCHED_NOT_STOPPED && !history->live) {
        return "stopped";
    }
    if (history->live) {
        return "running";
    }
    return history->session_count > 0 ? "at rest" : "not begun";
}

void report_json(struct strbuf *out, const struct report *report)
{
    struct jsonw json = {.out = out, .spaced = true};
    jsonw_object(&json, NULL);
    add_head(&json, report);
    add_limits(&json, report);
    add_classes(&json, report);
    add_groups(&json, report);
    add_parents(&json, report);
    add_failures(&json, report);
    add_gates(&json, report);
    add_path(&json, report);
    add_forecast(&json, report);
    add_tasks(&json, report);
    add_sessions(&json, report);
    jsonw_finish(&json);
}
