/* SPDX-License-Identifier: MIT */
/* Figures at the top of the page, and the breakdown of time. */
#include "base/duration.h"
#include "base/mem.h"
#include "base/xml.h"
#include "report/html.h"
#include "report/words.h"

/* Open a figure with its name; append the value, then call end_tile(). */
static void begin_tile(struct strbuf *out, const char *name)
{
    strbuf_addf(out, "<div class=\"tile\"><dt>%s</dt><dd>", name);
}

static void begin_note(struct strbuf *out)
{
    strbuf_adds(out, "<small>");
}

static void end_tile(struct strbuf *out)
{
    strbuf_adds(out, "</small></dd></div>\n");
}

static void add_states(struct strbuf *out, const struct stats *stats)
{
    const char *comma = "";
    for (uint32_t ix = 0; ix < TASK_STATE_COUNT; ix++) {
        if (ix != TASK_DONE && stats->states[ix] > 0) {
            strbuf_addf(out,
                        "%s%u %s",
                        comma,
                        stats->states[ix],
                        sched_state_name((enum task_state)ix));
            comma = ", ";
        }
    }
    strbuf_adds(out, comma[0] == '\0' ? "nothing is left" : "");
}

static void add_time_tile(struct strbuf *out, const struct report *report)
{
    begin_tile(out, report->history->finished ? "Took" : "So far");
    words_add_time(out, report->history->end_ns);
    begin_note(out);
    if (forecast_is_whole(report->forecast)) {
        strbuf_adds(out, "simulated: ");
        words_add_time(out, report->forecast->result->makespan_ns);
    }
    if (report->forecast->end.runs > 0) {
        bool more = forecast_is_whole(report->forecast);
        strbuf_adds(out, more ? ", forecast: " : "forecast: ");
        words_add_time(out, report->forecast->end.p50_ns);
    }
    end_tile(out);
}

static void add_slot_tiles(struct strbuf *out, const struct stats *stats)
{
    begin_tile(out, "Slots used");
    html_percent(out, stats->working_ns, stats_slots_ns(stats));
    begin_note(out);
    strbuf_addf(out, "%u at most at once", stats->lane_count);
    end_tile(out);
    begin_tile(out, "Starved");
    words_add_time(out, stats->starved_ns);
    begin_note(out);
    strbuf_adds(out, "better work after worse");
    end_tile(out);
    if (stats->restarts > 0) {
        begin_tile(out, "Gates restarted");
        strbuf_addf(out, "%u", stats->restarts);
        begin_note(out);
        strbuf_adds(out, "in merge queues");
        end_tile(out);
    }
    begin_tile(out, "Reviews");
    html_percent(out, stats->review_ns, stats->working_ns);
    begin_note(out);
    strbuf_adds(out, "of the working time");
    end_tile(out);
}

static void add_money_tiles(struct strbuf *out, const struct stats_sum *sum)
{
    if (sum->input_tokens > 0 || sum->output_tokens > 0) {
        begin_tile(out, "Tokens");
        words_add_number(out,
                         duration_sum(sum->input_tokens, sum->output_tokens));
        begin_note(out);
        words_add_number(out, sum->input_tokens);
        strbuf_adds(out, " in, ");
        words_add_number(out, sum->output_tokens);
        strbuf_adds(out, " out");
        end_tile(out);
    }
    if (sum->usd > 0) {
        begin_tile(out, "Cost");
        html_usd(out, sum->usd);
        begin_note(out);
        strbuf_adds(out, "as reported by the sessions");
        end_tile(out);
    }
}

void html_numbers(struct strbuf *out, const struct report *report)
{
    const struct stats *stats = report->stats;
    strbuf_adds(out, "<dl class=\"tiles\">\n");
    add_time_tile(out, report);
    begin_tile(out, "Tasks done");
    words_add_number(out, stats->states[TASK_DONE]);
    strbuf_adds(out, " <em>of ");
    words_add_number(out, report->history->plan->task_count);
    strbuf_adds(out, "</em>");
    begin_note(out);
    add_states(out, stats);
    end_tile(out);
    begin_tile(out, "Sessions");
    words_add_number(out, stats->sum.sessions);
    begin_note(out);
    strbuf_addf(out,
                "%u unsuccessful, %u retr%s",
                stats_bad(&stats->sum),
                stats->retries,
                stats->retries == 1 ? "y" : "ies");
    end_tile(out);
    add_slot_tiles(out, stats);
    add_money_tiles(out, &stats->sum);
    strbuf_adds(out, "</dl>\n");
}

/* --- breakdown of time -------------------------------------------------- */

/* Append a table row: mark, name, time, share. */
static void
add_row(struct strbuf *out, const struct html_part *part, int64_t of)
{
    strbuf_addf(out, "<tr><td><i class=\"mark %s\"></i>", part->colour);
    xml_add(out, part->name);
    strbuf_adds(out, "</td>");
    html_cell_time(out, part->length);
    html_cell_share(out, part->length, of);
    strbuf_adds(out, "</tr>\n");
}

static void add_table(struct strbuf *out,
                      const char *caption,
                      const struct html_part *parts,
                      uint32_t count,
                      int64_t whole)
{
    html_table(out, caption, "Kind|#Time|#Share");
    for (uint32_t ix = 0; ix < count; ix++) {
        if (parts[ix].length >= HTML_LENGTH_NS_MIN) {
            add_row(out, &parts[ix], whole);
        }
    }
    strbuf_adds(out, "<tr class=\"sum\"><td>all</td>");
    html_cell_time(out, whole);
    strbuf_adds(out, "<td></td></tr></tbody></table>\n");
}

static void add_slots(struct strbuf *out, const struct report *report)
{
    static const char *const idle_colours[STATS_IDLES] = {
        [STATS_IDLE_KEPT] = "idle-kept",
        [STATS_IDLE_NONE] = "idle-none",
        [STATS_IDLE_REST] = "idle-rest",
    };
    const struct stats *stats = report->stats;
    const struct plan *plan = report->history->plan;
    struct html_part *parts =
        mem_zalloc((size_t)plan->class_count + STATS_IDLES, sizeof(parts[0]));
    struct html_colour *colours =
        mem_zalloc(plan->class_count, sizeof(colours[0]));
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        colours[ix] = html_colour(ix);
        parts[count++] = (struct html_part){
            .length = stats->classes[ix].sum.working_ns,
            .colour = colours[ix].name,
            .name = plan->classes[ix].name,
        };
    }
    for (enum stats_idle ix = 0; ix < STATS_IDLES; ix++) {
        parts[count++] = (struct html_part){
            .length = stats->idle_ns[ix],
            .colour = idle_colours[ix],
            .name = words_idle(ix),
        };
    }
    int64_t whole_ns = stats_slots_ns(stats);
    strbuf_adds(out, "<div class=\"half\"><h3>Slots</h3>\n");
    html_bar(out, parts, count, whole_ns);
    add_table(out,
              "Slot time: sessions of each class, and idle slots under the "
              "cap",
              parts,
              count,
              whole_ns);
    if (stats->over_ns > 0) {
        strbuf_adds(out,
                    "<p class=\"note\">Sessions ran over a lowered cap for ");
        words_add_time(out, stats->over_ns);
        strbuf_adds(out, " of that time.</p>\n");
    }
    strbuf_adds(out, "</div>\n");
    mem_free(parts);
    mem_free(colours);
}

static void add_limits(struct strbuf *out, const struct report *report)
{
    const struct plan *plan = report->history->plan;
    const int64_t *waits_ns = report->stats->limit_waits_ns;
    bool any = false;
    for (uint32_t ix = 0; ix < plan->limit_count; ix++) {
        if (waits_ns[ix] == 0) {
            continue;
        }
        strbuf_adds(out, any ? ", " : "<p class=\"note\">Other limits: ");
        any = true;
        xml_add(out, plan->limits[ix].name);
        strbuf_adds(out, " ");
        words_add_time(out, waits_ns[ix]);
    }
    strbuf_adds(out, any ? ".</p>\n" : "");
}

static void add_waits(struct strbuf *out, const struct report *report)
{
    static const char *const colours[STATS_REASONS] = {
        "w0",
        "w1",
        "w2",
        "w3",
        "w4",
        "w5",
        "w6",
        "w7",
        "w8",
        "w9",
    };
    struct html_part parts[STATS_REASONS];
    int64_t whole_ns = 0;
    for (enum stats_reason ix = 0; ix < STATS_REASONS; ix++) {
        parts[ix] = (struct html_part){
            .length = report->stats->waits_ns[ix],
            .colour = colours[ix],
            .name = words_reason(ix),
        };
        whole_ns = duration_sum(whole_ns, parts[ix].length);
    }
    strbuf_adds(out, "<div class=\"half\"><h3>Waiting tasks</h3>\n");
    html_bar(out, parts, STATS_REASONS, whole_ns);
    add_table(out,
              "Waiting time of tasks by reason",
              parts,
              STATS_REASONS,
              whole_ns);
    add_limits(out, report);
    strbuf_adds(out, "</div>\n");
}

void html_time(struct strbuf *out, const struct report *report)
{
    strbuf_adds(out,
                "<section id=\"time\"><h2>Where the time went</h2>\n"
                "<div class=\"halves\">\n");
    add_slots(out, report);
    add_waits(out, report);
    strbuf_adds(out, "</div></section>\n");
}
