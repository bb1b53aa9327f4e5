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
    strbuf_adds(out, ".\n\n| | |\n|---|---:|\n");
    add_time(out,
             history->finished ? "| took | " : "| so far | ",
             history->end_ns);
    if (forecast_is_whole(report->forecast)) {
        add_time(out,
                 " |\n| simulated | ",
                 report->forecast->result->makespan_ns);
    }
    strbuf_addf(out,
                " |\n| sessions | %u, %u unsuccessful |\n| slots used | ",
                stats->sum.sessions,
                stats_bad(&stats->sum));
    html_percent(out, stats->working_ns, stats_slots_ns(stats));
    add_time(out, " |\n| starved | ", stats->starved_ns);
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

/* List parked and failed tasks: either the optional tasks that failed, or the
 * others, which need an operator. */
static void
add_left(struct strbuf *out, const struct report *report, bool optional)
{
    const struct run_history *history = report->history;
    uint32_t found = 0;
    for (uint32_t ix = 0; ix < history->plan->task_count; ix++) {
        enum task_state state = history->tasks[ix].state;
        if ((state != TASK_PARKED && state != TASK_FAILED) ||
            run_history_is_loose(history, ix) != optional) {
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
        if (history->tasks[ix].reason != NULL) {
            strbuf_adds(out, ": ");
            add_plain(out, history->tasks[ix].reason);
        }
        strbuf_adds(out, "\n");
    }
    if (found > ROWS_MAX) {
        strbuf_addf(out, "- and %u more\n", found - ROWS_MAX);
    }
}

void report_md(struct strbuf *out, const struct report *report)
{
    add_head(out, report);
    add_left(out, report, false);
    add_left(out, report, true);
    add_waits(out, report);
    add_classes(out, report);
    if (report->stats->path_count > 0) {
        add_path(out, report);
    }
    add_failures(out, report);
}
