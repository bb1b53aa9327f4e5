/* SPDX-License-Identifier: MIT */
/*
 * The form is for programs and stays: members are added, never renamed or
 * removed. Times are seconds since the run was submitted.
 */
#include "view/report_json.h"

#include "base/jsonw.h"

#include <math.h>
#include <string.h>

static void add_key(struct strbuf *out, const char *key)
{
    strbuf_addf(out, ", \"%s\": ", key);
}

static void add_text(struct strbuf *out, const char *key, const char *text)
{
    add_key(out, key);
    jsonw_string(out, text);
}

static void add_seconds(struct strbuf *out, const char *key, int64_t ns)
{
    add_key(out, key);
    if (ns < 0) {
        strbuf_adds(out, "-");
        ns = -ns;
    }
    jsonw_seconds(out, ns);
}

/* A time that may not be there: below 0 it is null. */
static void add_time(struct strbuf *out, const char *key, int64_t ns)
{
    if (ns < 0) {
        add_key(out, key);
        strbuf_adds(out, "null");
    } else {
        add_seconds(out, key, ns);
    }
}

static void add_count(struct strbuf *out, const char *key, int64_t count)
{
    add_key(out, key);
    strbuf_addf(out, "%lld", (long long)count);
}

static void add_double(struct strbuf *out, const char *key, double value)
{
    add_key(out, key);
    if (isfinite(value)) {
        strbuf_addf(out, "%.12g", value);
    } else {
        strbuf_adds(out, "null");
    }
}

static void add_sum(struct strbuf *out, const struct facts_sum *sum)
{
    add_count(out, "sessions", sum->sessions);
    add_seconds(out, "working_s", sum->working_ns);
    add_seconds(out, "longest_s", sum->longest_ns);
    add_count(out, "input_tokens", sum->input_tokens);
    add_count(out, "output_tokens", sum->output_tokens);
    add_double(out, "usd", sum->usd);
    add_key(out, "outcomes");
    strbuf_adds(out, "{");
    const char *comma = "";
    for (enum chronicle_outcome ix = 0; ix < CHRONICLE_OUTCOMES; ix++) {
        if (sum->outcomes[ix] > 0) {
            strbuf_addf(out,
                        "%s\"%s\": %u",
                        comma,
                        chronicle_outcome_name(ix),
                        sum->outcomes[ix]);
            comma = ", ";
        }
    }
    strbuf_adds(out, "}");
}

static void add_waits(struct strbuf *out, const int64_t *waits_ns)
{
    add_key(out, "waiting_s");
    strbuf_adds(out, "{");
    for (enum facts_reason ix = 0; ix < FACTS_REASONS; ix++) {
        strbuf_addf(out,
                    "%s\"%s\": ",
                    ix > 0 ? ", " : "",
                    facts_reason_name(ix));
        jsonw_seconds(out, waits_ns[ix]);
    }
    strbuf_adds(out, "}");
}

static void add_head(struct strbuf *out, const struct report *report)
{
    const struct chronicle *chronicle = report->chronicle;
    const struct facts *facts = report->facts;
    strbuf_adds(out, "{\"run\": ");
    jsonw_string(out, chronicle->id);
    add_text(out, "name", chronicle->name);
    add_text(out, "file", chronicle->file);
    add_text(out, "state", report_state(report));
    strbuf_addf(out,
                ", \"finished\": %s",
                chronicle->finished ? "true" : "false");
    add_key(out, "submitted");
    jsonw_time(out, chronicle->created_ns);
    add_seconds(out, "makespan_s", chronicle->end_ns);
    add_key(out, "cap");
    int64_t cap = facts_last_cap(facts);
    if (cap == PLAN_UNLIMITED) {
        strbuf_adds(out, "null");
    } else {
        strbuf_addf(out, "%lld", (long long)cap);
    }
    add_key(out, "tasks_by_state");
    strbuf_adds(out, "{");
    const char *comma = "";
    for (uint32_t ix = 0; ix < TASK_STATE_COUNT; ix++) {
        if (facts->states[ix] > 0) {
            strbuf_addf(out,
                        "%s\"%s\": %u",
                        comma,
                        sched_state_name((enum task_state)ix),
                        facts->states[ix]);
            comma = ", ";
        }
    }
    strbuf_adds(out, "}");
    add_sum(out, &facts->sum);
    add_count(out, "retries", facts->retries);
    add_seconds(out, "starved_s", facts->starved_ns);
    add_seconds(out, "review_s", facts->review_ns);
    add_waits(out, facts->waits_ns);
    strbuf_adds(out, ",\n \"slots\": {\"lanes\": ");
    strbuf_addf(out, "%u", facts->lane_count);
    add_seconds(out, "offered_s", facts->offered_ns);
    add_seconds(out, "working_s", facts->working_ns);
    add_seconds(out, "over_cap_s", facts->over_ns);
    add_double(out, "use", facts->slot_use);
    strbuf_adds(out, ", \"idle_s\": {");
    for (enum facts_idle ix = 0; ix < FACTS_IDLES; ix++) {
        strbuf_addf(out, "%s\"%s\": ", ix > 0 ? ", " : "", facts_idle_name(ix));
        jsonw_seconds(out, facts->idle_ns[ix]);
    }
    strbuf_adds(out, "}}");
}

static void add_limits(struct strbuf *out, const struct report *report)
{
    const struct plan *plan = report->chronicle->plan;
    strbuf_adds(out, ",\n \"limits\": [");
    const char *comma = "";
    for (uint32_t ix = 0; ix < plan->limit_count; ix++) {
        int64_t waited_ns = report->facts->limit_waits_ns[ix];
        if (waited_ns > 0) {
            strbuf_addf(out, "%s{\"limit\": ", comma);
            jsonw_string(out, plan->limits[ix].name);
            add_seconds(out, "waited_s", waited_ns);
            strbuf_adds(out, "}");
            comma = ", ";
        }
    }
    strbuf_adds(out, "]");
}

static void add_classes(struct strbuf *out, const struct report *report)
{
    const struct plan *plan = report->chronicle->plan;
    strbuf_adds(out, ",\n \"classes\": [");
    const char *comma = "\n  ";
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        const struct facts_class *class = &report->facts->classes[ix];
        if (class->tasks == 0) {
            continue;
        }
        strbuf_addf(out, "%s{\"class\": ", comma);
        comma = ",\n  ";
        jsonw_string(out, plan->classes[ix].name);
        add_count(out, "tasks", class->tasks);
        add_count(out, "done", class->done);
        add_sum(out, &class->sum);
        add_seconds(out, "starved_s", class->starved_ns);
        add_count(out, "starts", class->starts);
        add_seconds(out, "ready_mean_s", class->ready_mean_ns);
        add_seconds(out, "ready_p99_s", class->ready_p99_ns);
        add_seconds(out, "ready_max_s", class->ready_max_ns);
        add_waits(out, class->waits_ns);
        strbuf_adds(out, "}");
    }
    strbuf_adds(out, "]");
}

static void add_groups(struct strbuf *out, const struct report *report)
{
    const struct facts *facts = report->facts;
    const struct plan *plan = report->chronicle->plan;
    strbuf_adds(out, ",\n \"groups\": [");
    for (uint32_t ix = 0; ix < facts->group_count; ix++) {
        const struct facts_group *group = &facts->groups[ix];
        uint32_t of = plan->tasks[group->first_task].group;
        strbuf_addf(out, "%s{\"group\": ", ix > 0 ? ",\n  " : "\n  ");
        jsonw_string(out, facts_group_id(facts, ix));
        add_text(out,
                 "title",
                 of != PLAN_NONE ? plan->groups[of].title
                                 : plan->tasks[group->first_task].title);
        add_count(out, "tasks", group->tasks);
        add_count(out, "done", group->done);
        add_time(out, "begun_s", group->begun_ns);
        add_time(out, "ended_s", group->begun_ns < 0 ? -1 : group->ended_ns);
        add_sum(out, &group->sum);
        strbuf_adds(out, "}");
    }
    strbuf_adds(out, "]");
}

static void add_failures(struct strbuf *out, const struct report *report)
{
    const struct chronicle *chronicle = report->chronicle;
    strbuf_adds(out, ",\n \"failures\": [");
    for (uint32_t ix = 0; ix < report->facts->failure_count; ix++) {
        const struct facts_failure *failure = &report->facts->failures[ix];
        const struct chronicle_session *last =
            &chronicle->sessions[failure->last];
        strbuf_addf(out, "%s{\"class\": ", ix > 0 ? ",\n  " : "\n  ");
        jsonw_string(out, chronicle->plan->classes[failure->class_ix].name);
        add_text(out, "outcome", chronicle_outcome_name(failure->outcome));
        add_text(out, "cause", failure->cause);
        add_count(out, "count", failure->count);
        add_seconds(out, "lost_s", failure->lost_ns);
        add_text(out, "last_task", chronicle->plan->tasks[last->task].id);
        add_text(out, "last_reason", last->reason);
        strbuf_adds(out, "}");
    }
    strbuf_adds(out, "]");
}

static void add_path(struct strbuf *out, const struct report *report)
{
    const struct chronicle *chronicle = report->chronicle;
    const struct facts *facts = report->facts;
    strbuf_adds(out, ",\n \"critical_path\": [");
    for (uint32_t ix = 0; ix < facts->path_count; ix++) {
        const struct facts_segment *segment = &facts->path[ix];
        strbuf_addf(out, "%s{\"step\": ", ix > 0 ? ",\n  " : "\n  ");
        jsonw_string(out, facts_step_name(segment->step));
        add_text(out, "task", chronicle->plan->tasks[segment->task].id);
        if (segment->session != CHRONICLE_NONE) {
            add_count(out,
                      "attempt",
                      chronicle->sessions[segment->session].number);
            add_text(out, "after", facts_link_name(segment->link));
        }
        add_seconds(out, "start_s", segment->start_ns);
        add_seconds(out, "end_s", segment->end_ns);
        strbuf_adds(out, "}");
    }
    strbuf_adds(out, "]");
}

static void add_tasks(struct strbuf *out, const struct report *report)
{
    const struct chronicle *chronicle = report->chronicle;
    const struct plan *plan = chronicle->plan;
    strbuf_adds(out, ",\n \"tasks\": [");
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        const struct facts_task *task = &report->facts->tasks[ix];
        strbuf_addf(out, "%s{\"task\": ", ix > 0 ? ",\n  " : "\n  ");
        jsonw_string(out, plan->tasks[ix].id);
        add_text(out, "class", plan->classes[plan->tasks[ix].class_ix].name);
        add_text(out, "state", sched_state_name(chronicle->tasks[ix].state));
        add_text(out, "reason", chronicle->tasks[ix].reason);
        add_time(out, "begun_s", task->begun_ns);
        add_time(out, "ended_s", task->ended_ns);
        add_seconds(out, "ready_s", task->ready_ns);
        add_sum(out, &task->sum);
        strbuf_adds(out, "}");
    }
    strbuf_adds(out, "]");
}

static void add_sessions(struct strbuf *out, const struct report *report)
{
    const struct chronicle *chronicle = report->chronicle;
    strbuf_adds(out, ",\n \"sessions_list\": [");
    for (uint32_t ix = 0; ix < chronicle->session_count; ix++) {
        const struct chronicle_session *session = &chronicle->sessions[ix];
        strbuf_addf(out, "%s{\"task\": ", ix > 0 ? ",\n  " : "\n  ");
        jsonw_string(out, chronicle->plan->tasks[session->task].id);
        add_count(out, "attempt", session->number);
        add_count(out, "task_count", session->task_count);
        add_count(out, "lane", report->facts->lanes[ix] + 1);
        add_seconds(out, "start_s", session->claimed_ns);
        add_seconds(out, "end_s", session->ended_ns);
        add_text(out, "outcome", chronicle_outcome_name(session->outcome));
        add_text(out, "cause", session->cause);
        add_text(out, "reason", session->reason);
        strbuf_adds(out, "}");
    }
    strbuf_adds(out, "]");
}

static void add_forecast_classes(struct strbuf *out,
                                 const struct report *report)
{
    const struct sim_result *result = report->forecast->result;
    const struct plan *plan = report->chronicle->plan;
    strbuf_adds(out, ", \"classes\": [");
    const char *comma = "\n  ";
    for (uint32_t ix = 0; ix < result->class_count; ix++) {
        const struct sim_class *class = &result->classes[ix];
        if (class->count == 0) {
            continue;
        }
        strbuf_addf(out, "%s{\"class\": ", comma);
        comma = ",\n  ";
        jsonw_string(out, plan->classes[ix].name);
        add_count(out, "starts", class->count);
        add_seconds(out, "mean_s", class->busy_ns / class->count);
        add_seconds(out, "ready_mean_s", class->wait_mean_ns);
        add_seconds(out, "starved_s", class->starved_ns);
        strbuf_adds(out, "}");
    }
    strbuf_adds(out, "]");
}

static void add_forecast(struct strbuf *out, const struct report *report)
{
    const struct forecast *forecast = report->forecast;
    strbuf_adds(out, ",\n \"forecast\": ");
    if (forecast->result == NULL) {
        strbuf_adds(out, "null");
        return;
    }
    strbuf_addf(out,
                "{\"whole\": %s",
                forecast_is_whole(forecast) ? "true" : "false");
    add_seconds(out, "makespan_s", forecast->result->makespan_ns);
    add_count(out, "sessions", forecast->result->session_count);
    add_double(out, "use", forecast->result->slot_use);
    add_count(out, "without_estimate", forecast->guessed);
    add_forecast_classes(out, report);
    strbuf_adds(out, ", \"differences\": [");
    enum { DIFFERENCES_MAX = 20 };
    for (uint32_t ix = 0; ix < forecast->task_count && ix < DIFFERENCES_MAX;
         ix++) {
        const struct forecast_task *task = &forecast->tasks[ix];
        strbuf_addf(out, "%s{\"task\": ", ix > 0 ? ",\n  " : "\n  ");
        jsonw_string(out, report->chronicle->plan->tasks[task->task].id);
        add_seconds(out, "estimate_s", task->estimate_ns);
        add_seconds(out, "took_s", task->took_ns);
        strbuf_addf(out,
                    ", \"guessed\": %s}",
                    task->guessed ? "true" : "false");
    }
    strbuf_adds(out, "]}");
}

const char *report_state(const struct report *report)
{
    const struct chronicle *chronicle = report->chronicle;
    if (chronicle->cancelled) {
        return "cancelled";
    }
    if (chronicle->finished) {
        return "finished";
    }
    if (chronicle->paused) {
        return "paused";
    }
    if (chronicle->live) {
        return "running";
    }
    return chronicle->session_count > 0 ? "at rest" : "not begun";
}

void report_json(struct strbuf *out, const struct report *report)
{
    add_head(out, report);
    add_limits(out, report);
    add_classes(out, report);
    add_groups(out, report);
    add_failures(out, report);
    add_path(out, report);
    add_forecast(out, report);
    add_tasks(out, report);
    add_sessions(out, report);
    strbuf_adds(out, "}\n");
}
