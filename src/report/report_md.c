/* SPDX-License-Identifier: MIT */
/*
 * Markdown summary that fits an issue or a pull request. Untrusted strings
 * become one plain line each and cannot contain markup.
 */
#include "base/mem.h"
#include "base/plain.h"
#include "report/html.h"
#include "report/report.h"
#include "report/words.h"

#include <string.h>

enum { ROWS_MAX = 10 };

/* Append an untrusted string: one line, no markup. */
static void add_plain(struct strbuf *out, const char *text)
{
    struct strbuf line = {0};
    plain_add(&line, text);
    for (size_t ix = 0; ix < line.len; ix++) {
        if (strchr("\\`*_<>[]|#~&!", line.text[ix]) != NULL) {
            strbuf_adds(out, "\\");
        }
        strbuf_add(out, &line.text[ix], 1);
    }
    strbuf_release(&line);
}

static void
add_task(struct strbuf *out, const struct report *report, uint32_t ix)
{
    add_plain(out, report->history->plan->tasks[ix].id);
}

static void add_time(struct strbuf *out, const char *before, int64_t ns)
{
    strbuf_adds(out, before);
    words_add_time(out, ns);
}

/* Append the forecast for the start of the run, and how good earlier ones
 * were. */
static void add_range(struct strbuf *out, const struct report *report)
{
    const struct eta_end *end = &report->forecast->end;
    if (end->runs > 0) {
        add_time(out, " |\n| forecast | ", end->p50_ns);
        add_time(out, ", 90 % within ", end->p90_ns);
    }
    if (report->hindsight->runs > 0) {
        strbuf_adds(out, " |\n| earlier forecasts | ");
        hindsight_add_text(out, report->hindsight);
    }
}

/* Append why the run is stopped, how it ended, and which tasks are listed. */
static void add_stop(struct strbuf *out, const struct report *report)
{
    const struct run_history *history = report->history;
    const char *outcome = run_history_outcome(history);
    if (history->stopped == SCHED_STOPPED_DEADLINE) {
        strbuf_adds(out, " It was stopped: its deadline has passed.");
    } else if (history->stopped == SCHED_STOPPED_FAILURE) {
        strbuf_adds(out, " It was stopped: a task has failed.");
    }
    if (outcome != NULL) {
        strbuf_addf(out, " Outcome: %s.", outcome);
    }
    if (report->labels.count > 0) {
        struct strbuf labels = {0};
        labels_add(&labels, &report->labels);
        strbuf_adds(out, " Only issues and tasks with label ");
        add_plain(out, strbuf_text(&labels));
        strbuf_adds(out, " are listed.");
        strbuf_release(&labels);
    }
}

static void add_head(struct strbuf *out, const struct report *report)
{
    const struct run_history *history = report->history;
    const struct stats *stats = report->stats;
    strbuf_adds(out, "# ");
    add_plain(out, history->name);
    strbuf_addf(out,
                "\n\nRun `%s` is %s: %u of %u tasks done",
                history->id,
                report_state(report),
                stats->states[TASK_DONE],
                history->plan->task_count);
    for (uint32_t ix = 0; ix < TASK_STATE_COUNT; ix++) {
        if (ix != TASK_DONE && stats->states[ix] > 0) {
            strbuf_addf(out,
                        ", %u %s",
                        stats->states[ix],
                        sched_state_name((enum task_state)ix));
        }
    }
    strbuf_adds(out, ".");
    add_stop(out, report);
    strbuf_adds(out, "\n\n| | |\n|---|---:|\n");
    add_time(out,
             history->finished ? "| took | " : "| so far | ",
             history->end_ns);
    if (forecast_is_whole(report->forecast)) {
        add_time(out,
                 " |\n| simulated | ",
                 report->forecast->result->makespan_ns);
    }
    add_range(out, report);
    strbuf_addf(out,
                " |\n| sessions | %u, %u unsuccessful |\n",
                stats->sum.sessions,
                stats_bad(&stats->sum));
    if (stats->sum.confined > 0) {
        strbuf_addf(out,
                    "| sessions in a sandbox | %u |\n",
                    stats->sum.confined);
    }
    strbuf_adds(out, "| slots used | ");
    html_percent(out, stats->working_ns, stats_slots_ns(stats));
    add_time(out, " |\n| starved | ", stats->starved_ns);
    if (stats->restarts > 0) {
        strbuf_addf(out,
                    " |\n| gates restarted in merge queues | %u",
                    stats->restarts);
    }
    strbuf_adds(out, " |\n| reviews, of the working time | ");
    html_percent(out, stats->review_ns, stats->working_ns);
    strbuf_adds(out, " |\n| tokens in, out | ");
    words_add_number(out, stats->sum.input_tokens);
    strbuf_adds(out, ", ");
    words_add_number(out, stats->sum.output_tokens);
    strbuf_adds(out, " |\n| cost | ");
    html_usd(out, stats->sum.usd);
    strbuf_adds(out, " |\n");
}

/* Append a row of a name and a time, unless the time is 0. */
static void add_row(struct strbuf *out, const char *name, int64_t ns)
{
    if (ns > 0) {
        strbuf_addf(out, "| %s | ", name);
        words_add_time(out, ns);
        strbuf_adds(out, " |\n");
    }
}

static void add_waits(struct strbuf *out, const struct report *report)
{
    const struct stats *stats = report->stats;
    strbuf_adds(out, "\n## Where the time went\n\n| slots | |\n|---|---:|\n");
    add_time(out, "| working | ", stats->working_ns);
    strbuf_adds(out, " |\n");
    for (enum stats_idle ix = 0; ix < STATS_IDLES; ix++) {
        add_row(out, words_idle(ix), stats->idle_ns[ix]);
    }
    strbuf_adds(out, "\n| tasks waited | |\n|---|---:|\n");
    for (enum stats_reason ix = 0; ix < STATS_REASONS; ix++) {
        add_row(out, words_reason(ix), stats->waits_ns[ix]);
    }
}

static void add_classes(struct strbuf *out, const struct report *report)
{
    const struct plan *plan = report->history->plan;
    strbuf_adds(out,
                "\n## Classes\n\n| class | done | sessions | unsuccessful | "
                "working | mean | wait, mean | starved | cost "
                "|\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        const struct stats_class *class = &report->stats->classes[ix];
        const struct stats_sum *sum = &class->sum;
        if (class->tasks == 0) {
            continue;
        }
        strbuf_adds(out, "| ");
        add_plain(out, plan->classes[ix].name);
        strbuf_addf(out,
                    " | %u of %u | %u | %u",
                    class->done,
                    class->tasks,
                    sum->sessions,
                    stats_bad(sum));
        add_time(out, " | ", sum->working_ns);
        add_time(out,
                 " | ",
                 sum->sessions > 0 ? sum->working_ns / sum->sessions : 0);
        add_time(out, " | ", class->ready_mean_ns);
        add_time(out, " | ", class->starved_ns);
        strbuf_adds(out, " | ");
        html_usd(out, sum->usd);
        strbuf_adds(out, " |\n");
    }
}

/* Append the longest sessions of the path, in path order. */
static void add_path(struct strbuf *out, const struct report *report)
{
    const struct stats *stats = report->stats;
    uint32_t *order = words_longest(report->history);
    bool *shown = mem_zalloc(report->history->session_count, sizeof(bool));
    bool *on_path = words_on_path(report);
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < stats->path_count; ix++) {
        count += stats->path[ix].session != HISTORY_NONE ? 1 : 0;
    }
    uint32_t left = ROWS_MAX;
    for (uint32_t ix = 0; ix < report->history->session_count; ix++) {
        if (left > 0 && on_path[order[ix]]) {
            shown[order[ix]] = true;
            left--;
        }
    }
    strbuf_addf(out,
                "\n## Critical path\n\n%u session%s",
                count,
                count == 1 ? "" : "s");
    add_time(out, " took ", stats->path_ns[STATS_STEP_WORK]);
    for (enum stats_step ix = STATS_STEP_PASS; ix < STATS_STEPS; ix++) {
        if (stats->path_ns[ix] > 0) {
            strbuf_addf(out, ", %s ", words_step(ix));
            words_add_time(out, stats->path_ns[ix]);
        }
    }
    strbuf_addf(out, ".%s\n\n", count > ROWS_MAX ? " The longest:" : "");
    for (uint32_t ix = 0; ix < stats->path_count; ix++) {
        const struct stats_segment *segment = &stats->path[ix];
        if (segment->session != HISTORY_NONE && shown[segment->session]) {
            strbuf_adds(out, "1. ");
            add_task(out, report, segment->task);
            add_time(out, ": ", segment->end_ns - segment->start_ns);
            strbuf_addf(out, " (after: %s)\n", stats_link_name(segment->link));
        }
    }
    mem_free(order);
    mem_free(shown);
    mem_free(on_path);
}

static void add_failures(struct strbuf *out, const struct report *report)
{
    const struct stats *stats = report->stats;
    const struct run_history *history = report->history;
    if (stats->failure_count == 0) {
        return;
    }
    strbuf_adds(out, "\n## Unsuccessful sessions\n\n");
    for (uint32_t ix = 0; ix < stats->failure_count && ix < ROWS_MAX; ix++) {
        const struct stats_failure *failure = &stats->failures[ix];
        const struct run_history_session *last =
            &history->sessions[failure->last];
        strbuf_addf(out, "- %u × ", failure->count);
        add_plain(out, history->plan->classes[failure->class_ix].name);
        strbuf_addf(out, " %s (", words_outcome(failure->outcome));
        add_plain(out, failure->cause);
        strbuf_adds(out, "), last ");
        add_task(out, report, last->task);
        if (last->reason != NULL) {
            strbuf_adds(out, ": ");
            add_plain(out, last->reason);
        }
        strbuf_adds(out, "\n");
    }
}

/* List the gates that passed after a failure, the most often flaky first. */
static void add_flaky(struct strbuf *out, const struct report *report)
{
    const struct run_history *history = report->history;
    for (uint32_t ix = 0; ix < history->gate_count && ix < ROWS_MAX; ix++) {
        const struct run_history_gate *gate = &history->gates[ix];
        if (gate->flaky == 0) {
            return; /* nor are those after it */
        }
        strbuf_adds(out, ix == 0 ? "\n## Flaky gates\n\n- " : "- ");
        add_plain(out, gate->repo);
        strbuf_addf(out,
                    ": flaky %u of %u times: ",
                    gate->flaky,
                    gate->flaky + gate->failed + gate->passed);
        add_plain(out, gate->command);
        strbuf_adds(out, "\n");
    }
}

/* List parked and failed tasks: either the optional tasks that failed, or the
 * others, which need an operator. */
static void
add_left(struct strbuf *out, const struct report *report, bool optional)
{
    const struct run_history *history = report->history;
    uint32_t found = 0;
    for (uint32_t ix = 0; ix < history->plan->task_count; ix++) {
        enum task_state state = history->tasks[ix].state;
        bool waits = history->tasks[ix].unapproved;
        if ((state != TASK_PARKED && state != TASK_FAILED && !waits) ||
            run_history_is_loose(history, ix) != optional ||
            !report_lists(report, ix)) {
            continue;
        }
        if (found++ == 0) {
            strbuf_adds(out,
                        optional ? "\n## Optional tasks that failed\n\n"
                                 : "\n## Needs attention\n\n");
        }
        if (found > ROWS_MAX) {
            continue;
        }
        strbuf_adds(out, "- ");
        add_task(out, report, ix);
        strbuf_addf(out, " is %s", sched_state_name(state));
        if (waits) {
            strbuf_adds(out, " and waits for approval");
        } else if (history->tasks[ix].reason != NULL) {
            strbuf_adds(out, ": ");
            add_plain(out, history->tasks[ix].reason);
        }
        strbuf_adds(out, "\n");
    }
    if (found > ROWS_MAX) {
        strbuf_addf(out, "- and %u more\n", found - ROWS_MAX);
    }
}

/* List the groups with parts, each part below its parent. */
static void add_tree(struct strbuf *out, const struct report *report)
{
    const struct plan *plan = report->history->plan;
    uint32_t count;
    uint32_t *tree = report_tree(report, &count);
    strbuf_adds(out, count > 0 ? "\n## Groups\n\n" : "");
    for (uint32_t ix = 0; ix < count; ix++) {
        const struct plan_group *group = &plan->groups[tree[ix]];
        const struct stats_whole *whole = &report->stats->wholes[tree[ix]];
        strbuf_pad(out, ' ', (size_t)2 * stats_depth(plan, tree[ix]));
        strbuf_adds(out, "- ");
        add_plain(out, group->id);
        strbuf_addf(out, ": %u of %u done", whole->done, whole->tasks);
        struct strbuf labels = {0};
        labels_add_own(&labels, &group->labels);
        strbuf_adds(out, labels.len > 0 ? " " : "");
        add_plain(out, strbuf_text(&labels));
        strbuf_release(&labels);
        strbuf_adds(out, "\n");
    }
    mem_free(tree);
}

void report_md(struct strbuf *out, const struct report *report)
{
    add_head(out, report);
    add_left(out, report, false);
    add_left(out, report, true);
    add_tree(out, report);
    add_waits(out, report);
    add_classes(out, report);
    if (report->stats->path_count > 0) {
        add_path(out, report);
    }
    add_failures(out, report);
    add_flaky(out, report);
}
