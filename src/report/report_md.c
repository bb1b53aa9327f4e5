/* SPDX-License-Identifier: MIT */
/*
 * A summary that fits an issue or a pull request. Texts of others become one
 * plain line each and cannot be markup.
 */
#include "base/mem.h"
#include "base/plain.h"
#include "report/html.h"
#include "report/report.h"
#include "report/words.h"

#include <string.h>

enum { ROWS_MAX = 10 };

/* Append a text of others: one line, and no markup. */
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
    add_plain(out, report->chronicle->plan->tasks[ix].id);
}

static void add_time(struct strbuf *out, const char *before, int64_t ns)
{
    strbuf_adds(out, before);
    words_add_time(out, ns);
}

static void add_head(struct strbuf *out, const struct report *report)
{
    const struct chronicle *chronicle = report->chronicle;
    const struct facts *facts = report->facts;
    strbuf_adds(out, "# ");
    add_plain(out, chronicle->name);
    strbuf_addf(out,
                "\n\nRun `%s` is %s: %u of %u tasks done",
                chronicle->id,
                report_state(report),
                facts->states[TASK_DONE],
                chronicle->plan->task_count);
    for (uint32_t ix = 0; ix < TASK_STATE_COUNT; ix++) {
        if (ix != TASK_DONE && facts->states[ix] > 0) {
            strbuf_addf(out,
                        ", %u %s",
                        facts->states[ix],
                        sched_state_name((enum task_state)ix));
        }
    }
    strbuf_adds(out, ".\n\n| | |\n|---|---:|\n");
    add_time(out,
             chronicle->finished ? "| took | " : "| so far | ",
             chronicle->end_ns);
    if (forecast_is_whole(report->forecast)) {
        add_time(out,
                 " |\n| simulated | ",
                 report->forecast->result->makespan_ns);
    }
    strbuf_addf(out,
                " |\n| sessions | %u, %u not well |\n| slots used | ",
                facts->sum.sessions,
                facts_bad(&facts->sum));
    html_percent(out, facts->working_ns, facts_slots_ns(facts));
    add_time(out, " |\n| starved | ", facts->starved_ns);
    strbuf_adds(out, " |\n| reviews, of the working time | ");
    html_percent(out, facts->review_ns, facts->working_ns);
    strbuf_adds(out, " |\n| tokens in, out | ");
    words_add_number(out, facts->sum.input_tokens);
    strbuf_adds(out, ", ");
    words_add_number(out, facts->sum.output_tokens);
    strbuf_adds(out, " |\n| cost | ");
    html_usd(out, facts->sum.usd);
    strbuf_adds(out, " |\n");
}

static void add_waits(struct strbuf *out, const struct report *report)
{
    const struct facts *facts = report->facts;
    strbuf_adds(out, "\n## Where the time went\n\n| slots | |\n|---|---:|\n");
    add_time(out, "| working | ", facts->working_ns);
    strbuf_adds(out, " |\n");
    for (enum facts_idle ix = 0; ix < FACTS_IDLES; ix++) {
        if (facts->idle_ns[ix] > 0) {
            strbuf_addf(out, "| %s | ", words_idle(ix));
            add_time(out, "", facts->idle_ns[ix]);
            strbuf_adds(out, " |\n");
        }
    }
    strbuf_adds(out, "\n| tasks waited | |\n|---|---:|\n");
    for (enum facts_reason ix = 0; ix < FACTS_REASONS; ix++) {
        if (facts->waits_ns[ix] > 0) {
            strbuf_addf(out, "| %s | ", words_reason(ix));
            add_time(out, "", facts->waits_ns[ix]);
            strbuf_adds(out, " |\n");
        }
    }
}

static void add_classes(struct strbuf *out, const struct report *report)
{
    const struct plan *plan = report->chronicle->plan;
    strbuf_adds(out,
                "\n## Classes\n\n"
                "| class | done | sessions | not well | working | mean | "
                "wait, mean | starved | cost |\n"
                "|---|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        const struct facts_class *class = &report->facts->classes[ix];
        const struct facts_sum *sum = &class->sum;
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
                    facts_bad(sum));
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

/* The sessions of the path that took longest, in their order. */
static void add_path(struct strbuf *out, const struct report *report)
{
    const struct facts *facts = report->facts;
    uint32_t *order = words_longest(report->chronicle);
    bool *shown = mem_zalloc(report->chronicle->session_count, sizeof(bool));
    bool *on_path = mem_zalloc(report->chronicle->session_count, sizeof(bool));
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < facts->path_count; ix++) {
        if (facts->path[ix].session != CHRONICLE_NONE) {
            on_path[facts->path[ix].session] = true;
            count++;
        }
    }
    uint32_t left = ROWS_MAX;
    for (uint32_t ix = 0; ix < report->chronicle->session_count; ix++) {
        if (left > 0 && on_path[order[ix]]) {
            shown[order[ix]] = true;
            left--;
        }
    }
    strbuf_addf(out,
                "\n## Critical path\n\n%u session%s",
                count,
                count == 1 ? "" : "s");
    add_time(out, " took ", facts->path_ns[FACTS_STEP_WORK]);
    for (enum facts_step ix = FACTS_STEP_PASS; ix < FACTS_STEPS; ix++) {
        if (facts->path_ns[ix] > 0) {
            strbuf_addf(out, ", %s ", words_step(ix));
            words_add_time(out, facts->path_ns[ix]);
        }
    }
    strbuf_addf(out, ".%s\n\n", count > ROWS_MAX ? " The longest:" : "");
    for (uint32_t ix = 0; ix < facts->path_count; ix++) {
        const struct facts_segment *segment = &facts->path[ix];
        if (segment->session != CHRONICLE_NONE && shown[segment->session]) {
            strbuf_adds(out, "1. ");
            add_task(out, report, segment->task);
            add_time(out, ": ", segment->end_ns - segment->start_ns);
            strbuf_addf(out, " (after: %s)\n", facts_link_name(segment->link));
        }
    }
    mem_free(order);
    mem_free(shown);
    mem_free(on_path);
}

static void add_failures(struct strbuf *out, const struct report *report)
{
    const struct facts *facts = report->facts;
    const struct chronicle *chronicle = report->chronicle;
    if (facts->failure_count == 0) {
        return;
    }
    strbuf_adds(out, "\n## What did not end well\n\n");
    for (uint32_t ix = 0; ix < facts->failure_count && ix < ROWS_MAX; ix++) {
        const struct facts_failure *failure = &facts->failures[ix];
        const struct chronicle_session *last =
            &chronicle->sessions[failure->last];
        strbuf_addf(out, "- %u × ", failure->count);
        add_plain(out, chronicle->plan->classes[failure->class_ix].name);
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

/* List the tasks that are parked or failed: those that are optional and failed,
 * or the others, for which a person is needed. */
static void
add_left(struct strbuf *out, const struct report *report, bool optional)
{
    const struct chronicle *chronicle = report->chronicle;
    uint32_t found = 0;
    for (uint32_t ix = 0; ix < chronicle->plan->task_count; ix++) {
        enum task_state state = chronicle->tasks[ix].state;
        if ((state != TASK_PARKED && state != TASK_FAILED) ||
            chronicle_is_loose(chronicle, ix) != optional) {
            continue;
        }
        if (found++ == 0) {
            strbuf_adds(out,
                        optional ? "\n## Optional tasks that failed\n\n"
                                 : "\n## A person is needed\n\n");
        }
        if (found > ROWS_MAX) {
            continue;
        }
        strbuf_adds(out, "- ");
        add_task(out, report, ix);
        strbuf_addf(out, " is %s", sched_state_name(state));
        if (chronicle->tasks[ix].reason != NULL) {
            strbuf_adds(out, ": ");
            add_plain(out, chronicle->tasks[ix].reason);
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
    if (report->facts->path_count > 0) {
        add_path(out, report);
    }
    add_failures(out, report);
}
