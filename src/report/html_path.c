/* SPDX-License-Identifier: MIT */
/* The critical path as a bar and a table. */
#include "base/mem.h"
#include "base/xml.h"
#include "report/html.h"
#include "report/words.h"

#include <stdlib.h>

enum { STEPS_MAX = 40 };

static const char *const colours[STATS_STEPS] = {
    [STATS_STEP_WORK] = "s-work",
    [STATS_STEP_PASS] = "s-turn",
    [STATS_STEP_BACKOFF] = "w1",
    [STATS_STEP_PERSON] = "w2",
    [STATS_STEP_PROVIDER] = "w8",
    [STATS_STEP_KEPT] = "w6",
    [STATS_STEP_ABSENT] = "idle-none",
    [STATS_STEP_TAIL] = "idle-rest",
};

static void add_summary(struct strbuf *out, const struct report *report)
{
    struct html_part parts[STATS_STEPS];
    for (enum stats_step ix = 0; ix < STATS_STEPS; ix++) {
        parts[ix] = (struct html_part){
            .length = report->stats->path_ns[ix],
            .colour = colours[ix],
            .name = words_step(ix),
        };
    }
    html_bar(out, parts, STATS_STEPS, report->history->end_ns);
    strbuf_adds(out, "<ul class=\"legend\">");
    for (enum stats_step ix = 0; ix < STATS_STEPS; ix++) {
        if (parts[ix].length >= HTML_LENGTH_NS_MIN) {
            strbuf_addf(out, "<li><i class=\"mark %s\"></i>", colours[ix]);
            strbuf_addf(out, "%s ", parts[ix].name);
            words_add_time(out, parts[ix].length);
            strbuf_adds(out, " (");
            html_percent(out, parts[ix].length, report->history->end_ns);
            strbuf_adds(out, ")</li>");
        }
    }
    strbuf_adds(out, "</ul>\n");
}

static const char *words_link(enum stats_link link)
{
    switch (link) {
    case STATS_LINK_NONE:
        return "nothing: it could start";
    case STATS_LINK_NEED:
        return "the need that finished last";
    case STATS_LINK_SLOT:
        return "the session that freed a slot";
    case STATS_LINK_SELF:
        return "its own previous session";
    case STATS_LINK_REWORK:
        return "the session that sent it back";
    }
    return "";
}

/* Append the wait before a session: the last step other than a pass. */
static void add_wait(struct strbuf *out,
                     const struct stats *stats,
                     uint32_t ix,
                     int64_t *waited_ns)
{
    const char *why = NULL;
    *waited_ns = 0;
    while (ix > 0 && stats->path[ix - 1].step != STATS_STEP_WORK) {
        const struct stats_segment *wait = &stats->path[--ix];
        *waited_ns += wait->end_ns - wait->start_ns;
        if (wait->step != STATS_STEP_PASS) {
            why = words_step(wait->step);
        }
    }
    if (why != NULL) {
        strbuf_addf(out, ", then %s", why);
    }
}

static void
add_step(struct strbuf *out, const struct report *report, uint32_t ix)
{
    const struct run_history *history = report->history;
    const struct stats_segment *segment = &report->stats->path[ix];
    const struct run_history_session *session =
        &history->sessions[segment->session];
    int64_t took_ns = segment->end_ns - segment->start_ns;
    int64_t waited_ns;
    strbuf_adds(out, "<tr>");
    html_cell_task(out, report, segment->task);
    html_cell_class(out, report, history->plan->tasks[segment->task].class_ix);
    html_cell(out, session->number);
    strbuf_addf(out, "<td>%s", words_link(segment->link));
    add_wait(out, report->stats, ix, &waited_ns);
    strbuf_adds(out, "</td>");
    html_cell_time(out, waited_ns);
    html_cell_time(out, segment->start_ns);
    html_cell_time(out, took_ns);
    html_cell_share(out, took_ns, history->end_ns);
    html_cell_word(out,
                   words_outcome(session->outcome),
                   run_history_is_bad(session->outcome));
    strbuf_adds(out, "</tr>\n");
}

/* Return the time of a step including the waits before it. */
static int64_t weight_of(const struct stats *stats, uint32_t ix)
{
    int64_t weight_ns = stats->path[ix].end_ns - stats->path[ix].start_ns;
    while (ix > 0 && stats->path[ix - 1].step != STATS_STEP_WORK) {
        ix--;
        weight_ns += stats->path[ix].end_ns - stats->path[ix].start_ns;
    }
    return weight_ns;
}

static int compare_down(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return (a < b) - (a > b);
}

/* Return the minimum weight of the steps to show. */
static int64_t least_weight(const struct stats *stats, uint32_t *work_out)
{
    int64_t *weights = mem_zalloc(stats->path_count, sizeof(weights[0]));
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < stats->path_count; ix++) {
        if (stats->path[ix].step == STATS_STEP_WORK) {
            weights[count++] = weight_of(stats, ix);
        }
    }
    int64_t least = 0;
    if (count > STEPS_MAX) {
        qsort(weights, count, sizeof(weights[0]), compare_down);
        least = weights[STEPS_MAX - 1];
    }
    mem_free(weights);
    *work_out = count;
    return least;
}

static void add_table(struct strbuf *out, const struct report *report)
{
    const struct stats *stats = report->stats;
    uint32_t work;
    int64_t least_ns = least_weight(stats, &work);
    html_begin_table(out,
                     "Its sessions in order, and what each start waited for",
                     "Task|Class|#Attempt|Waited for|#Between|#Started|#Took|"
                     "#Share|Ended");
    uint32_t shown = 0;
    for (uint32_t ix = 0; ix < stats->path_count && shown < STEPS_MAX; ix++) {
        if (stats->path[ix].step == STATS_STEP_WORK &&
            weight_of(stats, ix) >= least_ns) {
            add_step(out, report, ix);
            shown++;
        }
    }
    html_end_table(out);
    if (shown < work) {
        strbuf_addf(
            out,
            "<p class=\"note\">The path has %u sessions; the longest %u are "
            "shown. <code>sluice report --json</code> has all.</p>\n",
            work,
            shown);
    }
}

void html_path(struct strbuf *out, const struct report *report)
{
    strbuf_adds(out, "<section id=\"path\"><h2>Critical path</h2>\n");
    if (report->stats->path_count == 0) {
        strbuf_adds(out, "<p>No session has been started.</p></section>\n");
        return;
    }
    strbuf_adds(out,
                "<p>Backwards from the session that finished last: what each "
                "start waited for. The run only finishes sooner if a step of "
                "this path takes less time.</p>\n");
    add_summary(out, report);
    html_graph(out, report);
    add_table(out, report);
    strbuf_adds(out, "</section>\n");
}
