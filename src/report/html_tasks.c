/* SPDX-License-Identifier: MIT */
/*
 * Task list, and the data from which the script draws the timeline and a list
 * of any length. Without the script, a table shows the tasks that need
 * attention first.
 *
 * The format of the data keeps a run of 10,000 tasks small:
 *
 *   end      ms, like all times, since the submission
 *   classes  [name, ...]
 *   groups   [id, ...]
 *   states   [name, ...]      outcomes  [words, ...]
 *   caps     [[time, cap], ...], -1: none
 *   lanes    number of lanes
 *   only     [index of a task, ...], the tasks to list; null: all
 *   tasks    [[id, class, group or -1, state, ready ms, working ms, sessions,
 *              not succeeded, title or 0, reason or 0, labels or 0], ...]
 *   sessions [[task, attempt, lane, start, length, outcome, tasks, on the
 *              path 0/1, reason or 0], ...]
 */
#include "base/mem.h"
#include "base/xml.h"
#include "report/html.h"
#include "report/words.h"

#include <stdlib.h>
#include <string.h>

enum {
    STATIC_MAX = 300,  /* rows of the table without the script */
    TITLE_BYTES = 160, /* of a title or reason in the data */
    BUSY_TASKS = 3000, /* from here on, BUSY_BYTES applies */
    BUSY_BYTES = 60,
};

/* --- without the script ------------------------------------------------- */

/* Sort key, smallest first: tasks that need an operator, then bad outcomes. */
static uint32_t attention(const struct report *report, uint32_t task)
{
    if (report->history->tasks[task].unapproved) {
        return 0;
    }
    switch (report->history->tasks[task].state) {
    case TASK_FAILED:
        return run_history_is_loose(report->history, task) ? 1 : 0;
    case TASK_PARKED:
        return 0;
    case TASK_CANCELLED:
    case TASK_SKIPPED:
        return 1;
    case TASK_STARTING:
    case TASK_RUNNING:
        return 2;
    case TASK_READY:
    case TASK_WAITING:
        return 3;
    case TASK_DONE:
        break;
    }
    return stats_bad(&report->stats->tasks[task].sum) > 0 ? 4 : 5;
}

static int compare_attention(const void *left, const void *right, void *ctx)
{
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    uint32_t rank_a = attention(ctx, a);
    uint32_t rank_b = attention(ctx, b);
    if (rank_a != rank_b) {
        return rank_a < rank_b ? -1 : 1;
    }
    return (a > b) - (a < b);
}

static void
add_row(struct strbuf *out, const struct report *report, uint32_t ix)
{
    const struct run_history *history = report->history;
    const struct stats_task *task = &report->stats->tasks[ix];
    strbuf_adds(out, "<tr>");
    html_cell_task(out, report, ix);
    html_cell_class(out, report, history->plan->tasks[ix].class_ix);
    html_cell_word(out,
                   history->tasks[ix].unapproved
                       ? "waits for approval"
                       : sched_state_name(history->tasks[ix].state),
                   attention(report, ix) < 2);
    html_cell(out, task->sum.sessions);
    html_cell(out, stats_bad(&task->sum));
    html_cell_time(out, task->ready_ns);
    html_cell_time(out, task->sum.working_ns);
    strbuf_adds(out, "<td class=\"text\">");
    if (history->tasks[ix].reason != NULL) {
        xml_add(out, history->tasks[ix].reason);
    }
    strbuf_adds(out, "</td></tr>\n");
}

static void add_static(struct strbuf *out, const struct report *report)
{
    uint32_t all = report->history->plan->task_count;
    struct report copy = *report;
    uint32_t *order =
        words_order(all, all > STATIC_MAX ? compare_attention : NULL, &copy);
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < all; ix++) {
        order[count] = order[ix];
        count += report_lists(report, order[ix]) ? 1 : 0;
    }
    uint32_t shown = count < STATIC_MAX ? count : STATIC_MAX;
    strbuf_adds(out, "<div class=\"static wide\">");
    html_table(out,
               "Tasks",
               "Task|Class|State|#Sessions|#Unsuccessful|#Ready|#Working|"
               "Reason");
    strbuf_adds(out, "\n");
    for (uint32_t ix = 0; ix < shown; ix++) {
        add_row(out, report, order[ix]);
    }
    strbuf_adds(out, "</tbody></table>\n");
    if (shown < count) {
        strbuf_addf(
            out,
            "<p class=\"note\">%u of %u tasks: first tasks that need "
            "attention, then unsuccessful ones. All tasks are listed if "
            "scripts may run, and by <code>sluice report --json</code>.</p>\n",
            shown,
            count);
    }
    strbuf_adds(out, "</div>\n");
    mem_free(order);
}

void html_tasks(struct strbuf *out, const struct report *report)
{
    strbuf_adds(out, "<section id=\"tasks\"><h2>Tasks</h2>\n");
    if (report->labels.count > 0) {
        struct strbuf labels = {0};
        labels_add(&labels, &report->labels);
        strbuf_adds(out, "<p class=\"note\">Only tasks with label ");
        xml_add(out, strbuf_text(&labels));
        strbuf_adds(out, " are listed.</p>\n");
        strbuf_release(&labels);
    }
    strbuf_adds(out, "<div class=\"live\" id=\"list\"></div>\n");
    add_static(out, report);
    strbuf_adds(out, "</section>\n");
}

/* --- data for the script ------------------------------------------------ */

/* Append a JSON string that can neither close the script nor break the JSON, of
 * at most `bytes_max` bytes; 0 for NULL. */
static void add_string(struct strbuf *out, const char *text, size_t bytes_max)
{
    if (text == NULL) {
        strbuf_adds(out, "0");
        return;
    }
    const char *begin = text;
    strbuf_adds(out, "\"");
    while (*text != '\0') {
        size_t len = xml_character_len((const unsigned char *)text);
        if ((size_t)(text - begin) + len > bytes_max) {
            strbuf_adds(out, "…");
            break;
        }
        if (xml_is_turn(text, len)) {
            strbuf_adds(out, "\xef\xbf\xbd");
        } else if (len == 0) {
            bool is_space = *text == '\t' || *text == '\n' || *text == '\r';
            strbuf_adds(out, is_space ? " " : "\xef\xbf\xbd");
            len = 1;
        } else if (len == 1 && strchr("\"\\<>&'", *text) != NULL) {
            strbuf_addf(out, "\\u%04x", (unsigned char)*text);
        } else {
            strbuf_add(out, text, len);
        }
        text += len;
    }
    strbuf_adds(out, "\"");
}

/* Append milliseconds with one decimal, omitted if it is 0. */
static void add_ms(struct strbuf *out, int64_t ns)
{
    int64_t tenths = (ns + 50000) / 100000;
    strbuf_addf(out, "%lld", (long long)(tenths / 10));
    if (tenths % 10 != 0) {
        strbuf_addf(out, ".%lld", (long long)(tenths % 10));
    }
}

static size_t text_bytes(const struct report *report)
{
    return report->history->plan->task_count >= BUSY_TASKS ? BUSY_BYTES
                                                           : TITLE_BYTES;
}

static void add_names(struct strbuf *out, const struct report *report)
{
    const struct plan *plan = report->history->plan;
    strbuf_adds(out, ",\"classes\":[");
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        strbuf_adds(out, ix > 0 ? "," : "");
        add_string(out, plan->classes[ix].name, SIZE_MAX);
    }
    strbuf_adds(out, "],\"groups\":[");
    for (uint32_t ix = 0; ix < plan->group_count; ix++) {
        strbuf_adds(out, ix > 0 ? "," : "");
        add_string(out, plan->groups[ix].id, SIZE_MAX);
    }
    strbuf_adds(out, "],\"states\":[");
    for (uint32_t ix = 0; ix < TASK_STATE_COUNT; ix++) {
        strbuf_adds(out, ix > 0 ? "," : "");
        add_string(out, sched_state_name((enum task_state)ix), SIZE_MAX);
    }
    strbuf_adds(out, "],\"outcomes\":[");
    for (enum run_history_outcome ix = 0; ix < HISTORY_OUTCOMES; ix++) {
        strbuf_adds(out, ix > 0 ? "," : "");
        add_string(out, words_outcome(ix), SIZE_MAX);
    }
    strbuf_adds(out, "],\"bad\":[");
    for (enum run_history_outcome ix = 0; ix < HISTORY_OUTCOMES; ix++) {
        strbuf_addf(out, "%s%d", ix > 0 ? "," : "", run_history_is_bad(ix));
    }
    strbuf_adds(out, "]");
}

static void add_caps(struct strbuf *out, const struct report *report)
{
    const struct stats *stats = report->stats;
    strbuf_adds(out, ",\"caps\":[");
    for (uint32_t ix = 0; ix < stats->cap_count; ix++) {
        int64_t max = stats->caps[ix].max;
        strbuf_adds(out, ix > 0 ? ",[" : "[");
        add_ms(out, stats->caps[ix].at_ns);
        strbuf_addf(out,
                    ",%lld]",
                    max == PLAN_UNLIMITED ? -1LL : (long long)max);
    }
    strbuf_adds(out, "]");
}

static void add_tasks(struct strbuf *out, const struct report *report)
{
    const struct run_history *history = report->history;
    const struct plan *plan = history->plan;
    size_t bytes = text_bytes(report);
    strbuf_adds(out, ",\"tasks\":[");
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        const struct stats_task *task = &report->stats->tasks[ix];
        uint32_t group = plan->tasks[ix].group;
        strbuf_adds(out, ix > 0 ? ",\n[" : "\n[");
        add_string(out, plan->tasks[ix].id, SIZE_MAX);
        strbuf_addf(out,
                    ",%u,%lld,%d,",
                    plan->tasks[ix].class_ix,
                    group == PLAN_NONE ? -1LL : (long long)group,
                    (int)history->tasks[ix].state);
        add_ms(out, task->ready_ns);
        strbuf_adds(out, ",");
        add_ms(out, task->sum.working_ns);
        strbuf_addf(out, ",%u,%u,", task->sum.sessions, stats_bad(&task->sum));
        add_string(out, plan->tasks[ix].words->title, bytes);
        strbuf_adds(out, ",");
        add_string(out, history->tasks[ix].reason, bytes);
        strbuf_adds(out, ",");
        struct strbuf labels = {0};
        labels_add_own(&labels, &plan->tasks[ix].labels);
        add_string(out, labels.len > 0 ? strbuf_text(&labels) : NULL, bytes);
        strbuf_release(&labels);
        strbuf_adds(out, "]");
    }
    strbuf_adds(out, "]");
}

static void add_only(struct strbuf *out, const struct report *report)
{
    const char *comma = "";
    strbuf_adds(out, ",\"only\":");
    if (report->labels.count == 0) {
        strbuf_adds(out, "null");
        return;
    }
    strbuf_adds(out, "[");
    for (uint32_t ix = 0; ix < report->history->plan->task_count; ix++) {
        if (report_lists(report, ix)) {
            strbuf_addf(out, "%s%u", comma, ix);
            comma = ",";
        }
    }
    strbuf_adds(out, "]");
}

static void add_sessions(struct strbuf *out, const struct report *report)
{
    const struct run_history *history = report->history;
    const struct stats *stats = report->stats;
    size_t bytes = text_bytes(report);
    bool *on_path = words_on_path(report);
    strbuf_adds(out, ",\"sessions\":[");
    for (uint32_t ix = 0; ix < history->session_count; ix++) {
        const struct run_history_session *session = &history->sessions[ix];
        strbuf_addf(out,
                    "%s[%u,%u,%u,",
                    ix > 0 ? ",\n" : "\n",
                    session->task,
                    session->number,
                    stats->lanes[ix]);
        add_ms(out, session->claimed_ns);
        strbuf_adds(out, ",");
        add_ms(out, session->ended_ns - session->claimed_ns);
        strbuf_addf(out,
                    ",%d,%u,%d,",
                    (int)session->outcome,
                    session->task_count,
                    on_path[ix]);
        add_string(out, session->reason, bytes);
        strbuf_adds(out, "]");
    }
    strbuf_adds(out, "]");
    mem_free(on_path);
}

void html_data(struct strbuf *out, const struct report *report)
{
    strbuf_adds(out, "{\"end\":");
    add_ms(out, report->history->end_ns);
    strbuf_addf(out, ",\"lanes\":%u", report->stats->lane_count);
    add_names(out, report);
    add_caps(out, report);
    add_only(out, report);
    add_tasks(out, report);
    add_sessions(out, report);
    strbuf_adds(out, "}");
}
