/* SPDX-License-Identifier: MIT */
/* Tables of the page. Long tables are truncated, with a note. */
#include "base/duration.h"
#include "base/mem.h"
#include "base/xml.h"
#include "report/html.h"
#include "report/words.h"

#include <stdlib.h>
#include <string.h>

enum {
    GROUPS_MAX = 30,
    TREE_MAX = 300,
    LONGEST_MAX = 15,
    DIFFERENCES_MAX = 15,
};

static void add_left_out(struct strbuf *out, uint32_t count, const char *what)
{
    if (count > 0) {
        strbuf_addf(out,
                    "<p class=\"note\">%u more %s are not shown here; "
                    "<code>sluice report --json</code> has them.</p>\n",
                    count,
                    what);
    }
}

/* --- classes ------------------------------------------------------------ */

static void
add_class(struct strbuf *out, const struct report *report, uint32_t ix)
{
    const struct stats_class *class = &report->stats->classes[ix];
    const struct stats_sum *sum = &class->sum;
    strbuf_adds(out, "<tr>");
    html_cell_class(out, report, ix);
    strbuf_addf(out,
                "<td class=\"n\">%u of %u</td>",
                class->done,
                class->tasks);
    html_cell(out, sum->sessions);
    html_cell(out, stats_bad(sum));
    html_cell_time(out, sum->working_ns);
    html_cell_time(out,
                   sum->sessions > 0 ? sum->working_ns / sum->sessions : 0);
    html_cell_time(out, sum->longest_ns);
    html_cell_time(out, class->ready_mean_ns);
    html_cell_time(out, class->ready_p99_ns);
    html_cell_time(out, class->ready_max_ns);
    strbuf_adds(out,
                class->starved_ns > 0 ? "<td class=\"n bad\">"
                                      : "<td class=\"n\">");
    words_add_time(out, class->starved_ns);
    strbuf_adds(out, "</td></tr>\n");
}

void html_classes(struct strbuf *out, const struct report *report)
{
    const struct plan *plan = report->history->plan;
    strbuf_adds(out, "<section id=\"classes\"><h2>Classes</h2>\n");
    html_begin_table(
        out,
        "Sessions by class; waits are from ready to start",
        "Class|#Done|#Sessions|#Unsuccessful|#Working|#Mean|#Longest|"
        "#Wait, mean|#Wait, p99|#Wait, max|#Starved");
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        if (report->stats->classes[ix].tasks > 0) {
            add_class(out, report, ix);
        }
    }
    html_end_table(out);
    strbuf_adds(out, "</section>\n");
}

/* --- failures ----------------------------------------------------------- */

static void add_failure(struct strbuf *out,
                        const struct report *report,
                        const struct stats_failure *failure)
{
    const struct run_history_session *last =
        &report->history->sessions[failure->last];
    strbuf_adds(out, "<tr>");
    html_cell_class(out, report, failure->class_ix);
    strbuf_addf(out,
                "<td class=\"bad\">%s</td><td>",
                words_outcome(failure->outcome));
    xml_add(out, failure->cause);
    strbuf_adds(out, "</td>");
    html_cell(out, failure->count);
    html_cell_time(out, failure->lost_ns);
    html_cell_task(out, report, last->task);
    strbuf_adds(out, "<td class=\"text\">");
    if (last->reason != NULL) {
        xml_add(out, last->reason);
    }
    strbuf_adds(out, "</td></tr>\n");
}

/* "21 sessions: 17 done, 1 failed ...; 1 retry." */
static void add_outcomes(struct strbuf *out, const struct stats *stats)
{
    strbuf_addf(out,
                "<p>%u session%s",
                stats->sum.sessions,
                stats->sum.sessions == 1 ? "" : "s");
    const char *before = ": ";
    for (enum run_history_outcome ix = 0; ix < HISTORY_OUTCOMES; ix++) {
        if (stats->sum.outcomes[ix] > 0) {
            strbuf_addf(out,
                        "%s%u %s",
                        before,
                        stats->sum.outcomes[ix],
                        words_outcome(ix));
            before = ", ";
        }
    }
    strbuf_addf(out,
                "; %u retr%s after a failure.",
                stats->retries,
                stats->retries == 1 ? "y" : "ies");
    if (stats->sum.confined > 0) {
        strbuf_addf(out, " %u ran in a sandbox.", stats->sum.confined);
    }
    strbuf_adds(out, "</p>\n");
}

/* Append the gates that passed after a failure, the most often flaky first. */
static void add_flaky(struct strbuf *out, const struct run_history *history)
{
    if (history->gate_count == 0 || history->gates[0].flaky == 0) {
        return;
    }
    html_begin_table(out,
                     "Flaky gates",
                     "Repository|Gate|#Flaky|#Failed|#Passed");
    for (uint32_t ix = 0; ix < history->gate_count; ix++) {
        const struct run_history_gate *gate = &history->gates[ix];
        if (gate->flaky == 0) {
            break;
        }
        strbuf_adds(out, "<tr><td>");
        xml_add(out, gate->repo);
        strbuf_adds(out, "</td><td class=\"text\"><code>");
        xml_add(out, gate->command);
        strbuf_adds(out, "</code></td>");
        html_cell(out, gate->flaky);
        html_cell(out, gate->failed);
        html_cell(out, gate->passed);
        strbuf_adds(out, "</tr>\n");
    }
    html_end_table(out);
}

void html_failures(struct strbuf *out, const struct report *report)
{
    const struct stats *stats = report->stats;
    strbuf_adds(out,
                "<section id=\"failures\"><h2>Attempts and failures</h2>\n");
    add_outcomes(out, stats);
    if (stats->failure_count > 0) {
        html_begin_table(
            out,
            "Unsuccessful sessions by class and cause",
            "Class|Ended|Cause|#Times|#Slot time|Last task|Reason");
        for (uint32_t ix = 0; ix < stats->failure_count; ix++) {
            add_failure(out, report, &stats->failures[ix]);
        }
        html_end_table(out);
    }
    add_flaky(out, report->history);
    strbuf_adds(out, "</section>\n");
}

/* --- cost and tokens ---------------------------------------------------- */

static void add_money(struct strbuf *out, const struct stats_sum *sum)
{
    html_cell(out, sum->sessions);
    html_cell_time(out, sum->working_ns);
    html_cell(out, sum->input_tokens);
    html_cell(out, sum->output_tokens);
    strbuf_adds(out, "<td class=\"n\">");
    html_usd(out, sum->usd);
    strbuf_adds(out, "</td></tr>\n");
}

/* Compare groups, most expensive first. */
static int compare_groups(const void *left, const void *right, void *ctx)
{
    const struct stats_group *groups = ctx;
    uint32_t ix_a = *(const uint32_t *)left;
    uint32_t ix_b = *(const uint32_t *)right;
    const struct stats_sum *a = &groups[ix_a].sum;
    const struct stats_sum *b = &groups[ix_b].sum;
    if (a->usd < b->usd || a->usd > b->usd) {
        return a->usd > b->usd ? -1 : 1;
    }
    int64_t a_tokens = duration_sum(a->input_tokens, a->output_tokens);
    int64_t b_tokens = duration_sum(b->input_tokens, b->output_tokens);
    if (a_tokens != b_tokens) {
        return a_tokens > b_tokens ? -1 : 1;
    }
    if (a->working_ns != b->working_ns) {
        return a->working_ns > b->working_ns ? -1 : 1;
    }
    return (ix_a > ix_b) - (ix_a < ix_b);
}

/* Append an id with its labels; a link if it has an address of the web. */
static void add_link(struct strbuf *out,
                     const char *id,
                     const char *url,
                     const struct plan_labels *labels)
{
    bool safe = url != NULL && (strncmp(url, "https://", 8) == 0 ||
                                strncmp(url, "http://", 7) == 0);
    if (safe) {
        strbuf_adds(out, "<a href=\"");
        xml_add(out, url);
        strbuf_adds(out, "\">");
    }
    xml_add(out, id);
    strbuf_adds(out, safe ? "</a>" : "");
    struct strbuf text = {0};
    labels_add_own(&text, labels);
    if (text.len > 0) {
        strbuf_adds(out, "<small>");
        xml_add(out, strbuf_text(&text));
        strbuf_adds(out, "</small>");
    }
    strbuf_release(&text);
}

/* The same for the group of a task, or the task if it has none. */
static void add_issue(struct strbuf *out,
                      const struct plan *plan,
                      const struct plan_task *task)
{
    if (task->group != PLAN_NONE) {
        const struct plan_group *group = &plan->groups[task->group];
        add_link(out, group->id, group->url, &group->labels);
    } else {
        add_link(out, task->id, task->words->url, &task->labels);
    }
}

static void add_groups(struct strbuf *out, const struct report *report)
{
    const struct stats *stats = report->stats;
    const struct plan *plan = report->history->plan;
    uint32_t *order =
        words_order(stats->group_count, compare_groups, stats->groups);
    bool *listed = report_groups(report);
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < stats->group_count; ix++) {
        order[count] = order[ix];
        count += report_lists_group(report, listed, order[ix]) ? 1 : 0;
    }
    mem_free(listed);
    html_begin_table(
        out,
        "By issue: groups, and tasks without a group; most expensive first",
        "Issue|#Done|#Sessions|#Working|#Tokens in|#Tokens out|#Cost");
    uint32_t shown = count < GROUPS_MAX ? count : GROUPS_MAX;
    for (uint32_t ix = 0; ix < shown; ix++) {
        const struct stats_group *group = &stats->groups[order[ix]];
        const struct plan_task *task = &plan->tasks[group->first_task];
        strbuf_adds(out, "<tr><td class=\"id\">");
        add_issue(out, plan, task);
        strbuf_addf(out,
                    "</td><td class=\"n\">%u of %u</td>",
                    group->done,
                    group->tasks);
        add_money(out, &group->sum);
    }
    html_end_table(out);
    mem_free(order);
    add_left_out(out, count - shown, "issues");
}

/* Groups with parts, each part below its parent. */
static void add_tree(struct strbuf *out, const struct report *report)
{
    const struct plan *plan = report->history->plan;
    uint32_t count;
    uint32_t *tree = report_tree(report, &count);
    if (count > 0) {
        html_begin_table(out, "Groups and their parts", "Group|#Done|Title");
        for (uint32_t ix = 0; ix < count && ix < TREE_MAX; ix++) {
            const struct stats_whole *whole = &report->stats->wholes[tree[ix]];
            const struct plan_group *group = &plan->groups[tree[ix]];
            strbuf_addf(out,
                        "<tr><td class=\"id\" style=\"padding-left:%.1fem\">",
                        0.5 + 1.5 * stats_depth(plan, tree[ix]));
            add_link(out, group->id, group->url, &group->labels);
            strbuf_addf(out,
                        "</td><td class=\"n\">%u of %u</td><td "
                        "class=\"text\">",
                        whole->done,
                        whole->tasks);
            xml_add(out, group->title != NULL ? group->title : "");
            strbuf_adds(out, "</td></tr>\n");
        }
        html_end_table(out);
        add_left_out(out, count > TREE_MAX ? count - TREE_MAX : 0, "groups");
    }
    mem_free(tree);
}

void html_cost(struct strbuf *out, const struct report *report)
{
    const struct plan *plan = report->history->plan;
    strbuf_adds(out, "<section id=\"cost\"><h2>Cost and tokens</h2>\n");
    html_begin_table(out,
                     "By class, as reported by the sessions",
                     "Class|#Sessions|#Working|#Tokens in|#Tokens out|#Cost");
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        if (report->stats->classes[ix].sum.sessions > 0) {
            strbuf_adds(out, "<tr>");
            html_cell_class(out, report, ix);
            add_money(out, &report->stats->classes[ix].sum);
        }
    }
    strbuf_adds(out, "<tr class=\"sum\"><td>all</td>");
    add_money(out, &report->stats->sum);
    html_end_table(out);
    add_groups(out, report);
    add_tree(out, report);
    strbuf_adds(out, "</section>\n");
}

/* --- forecast ----------------------------------------------------------- */

/* Append the expected time, the actual time and the signed difference. */
static void add_pair(struct strbuf *out, int64_t expected_ns, int64_t was_ns)
{
    html_cell_time(out, expected_ns);
    html_cell_time(out, was_ns);
    strbuf_adds(out, "<td class=\"n\">");
    strbuf_adds(out, was_ns > expected_ns ? "+" : "");
    words_add_time(out, was_ns - expected_ns);
    strbuf_adds(out, "</td>");
}

static void add_forecast_classes(struct strbuf *out,
                                 const struct report *report)
{
    const struct sim_result *result = report->forecast->result;
    html_begin_table(
        out,
        "Makespan, and mean duration and waiting time of sessions by class",
        "|#Simulated|#Real|#Difference|#Wait, simulated|#Wait, "
        "real|#Difference");
    strbuf_adds(out, "<tr><td>the whole run</td>");
    add_pair(out, result->makespan_ns, report->history->end_ns);
    strbuf_adds(out, "<td></td><td></td><td></td></tr>\n");
    for (uint32_t ix = 0; ix < result->class_count; ix++) {
        const struct sim_class *expected = &result->classes[ix];
        const struct stats_class *was = &report->stats->classes[ix];
        if (expected->count == 0 || was->sum.sessions == 0) {
            continue;
        }
        strbuf_adds(out, "<tr>");
        html_cell_class(out, report, ix);
        add_pair(out,
                 expected->busy_ns / expected->count,
                 was->sum.working_ns / was->sum.sessions);
        add_pair(out, expected->wait_mean_ns, was->ready_mean_ns);
        strbuf_adds(out, "</tr>\n");
    }
    html_end_table(out);
}

static void add_differences(struct strbuf *out, const struct report *report)
{
    const struct forecast *forecast = report->forecast;
    uint32_t shown = forecast->task_count < DIFFERENCES_MAX
                         ? forecast->task_count
                         : DIFFERENCES_MAX;
    if (shown == 0) {
        return;
    }
    html_begin_table(out,
                     "Done tasks, largest difference first",
                     "Task|#Estimate|#Took|#Difference|");
    for (uint32_t ix = 0; ix < shown; ix++) {
        const struct forecast_task *task = &forecast->tasks[ix];
        strbuf_adds(out, "<tr>");
        html_cell_task(out, report, task->task);
        add_pair(out, task->estimate_ns, task->took_ns);
        strbuf_addf(out,
                    "<td>%s</td></tr>\n",
                    task->guessed ? "not in the plan" : "");
    }
    html_end_table(out);
}

/* Append the forecast with its range, and how good earlier ones were. */
static void add_range(struct strbuf *out, const struct report *report)
{
    const struct eta_end *end = &report->forecast->end;
    if (end->runs > 0) {
        strbuf_adds(out,
                    "<p>Forecast with drawn durations, failures and "
                    "rework, from what was known at the start: ");
        words_add_time(out, end->p50_ns);
        strbuf_adds(out, ", 90 % within ");
        words_add_time(out, end->p90_ns);
        strbuf_adds(out, ".</p>\n");
    }
    if (report->hindsight->runs > 0) {
        strbuf_adds(out, "<p>Earlier forecasts: ");
        hindsight_add_text(out, report->hindsight);
        strbuf_adds(out, ".</p>\n");
    }
}

void html_forecast(struct strbuf *out, const struct report *report)
{
    const struct forecast *forecast = report->forecast;
    strbuf_adds(
        out,
        "<section id=\"forecast\"><h2>Comparison with the simulation</h2>\n");
    if (forecast->result == NULL) {
        strbuf_adds(out, "<p>The plan could not be simulated: ");
        xml_add(out, forecast->diag.text);
        strbuf_adds(out, ".</p></section>\n");
        return;
    }
    strbuf_adds(out,
                "<p>A simulation of the same plan under its own policy and "
                "cap: every session takes its expected time and succeeds, and "
                "no operator intervenes.");
    if (forecast->guessed > 0) {
        strbuf_addf(
            out,
            " %u of %u tasks have no estimate: the simulation uses the mean of "
            "their class when the run was submitted, or 10 min.",
            forecast->guessed,
            report->history->plan->task_count);
    }
    if (!forecast_is_whole(forecast)) {
        strbuf_addf(out,
                    " <strong>The simulation leaves %u tasks undone</strong>, "
                    "so its makespan means little.",
                    forecast->result->left_count);
    }
    strbuf_adds(out, "</p>\n");
    add_range(out, report);
    add_forecast_classes(out, report);
    add_differences(out, report);
    strbuf_adds(out, "</section>\n");
}

/* --- longest sessions --------------------------------------------------- */

void html_longest(struct strbuf *out, const struct report *report)
{
    const struct run_history *history = report->history;
    uint32_t shown = history->session_count < LONGEST_MAX
                         ? history->session_count
                         : LONGEST_MAX;
    if (shown == 0) {
        return;
    }
    strbuf_adds(out, "<section id=\"longest\"><h2>Longest sessions</h2>\n");
    html_begin_table(out,
                     "Started is since the run was submitted",
                     "Task|Class|#Attempt|#Started|#Took|Ended|Cause");
    uint32_t *order = words_longest(history);
    for (uint32_t ix = 0; ix < shown; ix++) {
        const struct run_history_session *session =
            &history->sessions[order[ix]];
        strbuf_adds(out, "<tr>");
        html_cell_task(out, report, session->task);
        html_cell_class(out,
                        report,
                        history->plan->tasks[session->task].class_ix);
        html_cell(out, session->number);
        html_cell_time(out, session->claimed_ns);
        html_cell_time(out, session->ended_ns - session->claimed_ns);
        html_cell_word(out,
                       words_outcome(session->outcome),
                       run_history_is_bad(session->outcome));
        strbuf_adds(out, "<td>");
        struct strbuf cause = {0};
        words_add_cause(&cause, session);
        xml_add(out, strbuf_text(&cause));
        strbuf_release(&cause);
        strbuf_adds(out, "</td></tr>\n");
    }
    mem_free(order);
    html_end_table(out);
    strbuf_adds(out, "</section>\n");
}
