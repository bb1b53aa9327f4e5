/* SPDX-License-Identifier: MIT */
/*
 * HTML report: one file with style, script and data. Its policy forbids the
 * browser to load anything, and to run anything but that script, which it names
 * by hash. Everything but the list of all tasks works without the script.
 */
#include "base/xml.h"
#include "report/html.h"
#include "report/page/assets.h"
#include "report/words.h"
#include "sim/svg.h"

enum { TIMELINE_WIDTH = 1184 };

const char *report_html_policy(void)
{
    return "default-src 'none'; style-src 'unsafe-inline'; script-src "
           "'sha256-" PAGE_JS_SHA256
           "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
}

static void add_head(struct strbuf *out, const struct report *report)
{
    strbuf_adds(out,
                "<!DOCTYPE html>\n<html lang=\"en\"><head>\n"
                "<meta charset=\"utf-8\">\n"
                "<meta http-equiv=\"Content-Security-Policy\" "
                "content=\"default-src 'none'; style-src 'unsafe-inline'; "
                "script-src 'sha256-");
    strbuf_adds(out, PAGE_JS_SHA256);
    strbuf_adds(out,
                "'; base-uri 'none'; form-action 'none'\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, "
                "initial-scale=1\">\n"
                "<meta name=\"color-scheme\" content=\"light dark\">\n"
                "<meta name=\"referrer\" content=\"no-referrer\">\n"
                "<meta name=\"generator\" content=\"sluice " SLUICE_VERSION
                "\">\n<title>");
    xml_add(out, report->history->name);
    strbuf_adds(out, " – sluice report</title>\n<style>\n");
    strbuf_adds(out, page_css);
    strbuf_adds(out, "</style>\n</head>\n<body>\n");
}

static void add_heading(struct strbuf *out, const struct report *report)
{
    const struct run_history *history = report->history;
    strbuf_adds(out, "<header><h1>");
    xml_add(out, history->name);
    strbuf_addf(out,
                "</h1>\n<p><span class=\"badge %s\">%s</span> run <code>",
                history->finished && !history->cancelled ? "good"
                : history->live                          ? "going"
                                                         : "open",
                report_state(report));
    xml_add(out, history->id);
    strbuf_adds(out, "</code>, plan <code>");
    xml_add(out, history->file != NULL ? history->file : "");
    strbuf_adds(out, "</code>, submitted ");
    words_add_moment(out, history->created_ns);
    if (history->live) {
        strbuf_adds(out, "; as of ");
        words_add_moment(out, report->wall_ns);
    }
    if (history->stopped != SCHED_NOT_STOPPED) {
        strbuf_adds(out,
                    history->stopped == SCHED_STOPPED_DEADLINE
                        ? "; stopped: its deadline has passed"
                        : "; stopped: a task has failed");
    }
    const char *outcome = run_history_outcome(history);
    if (outcome != NULL) {
        strbuf_addf(out, "; outcome: %s", outcome);
    }
    strbuf_adds(out,
                "</p>\n<nav aria-label=\"Sections\"><a "
                "href=\"#timeline\">Timeline</a> <a href=\"#time\">Time"
                "</a> <a href=\"#path\">Critical path</a> <a "
                "href=\"#classes\">Classes</a> <a href=\"#failures\">"
                "Failures</a> <a href=\"#cost\">Cost</a> <a "
                "href=\"#forecast\">Simulation</a> <a href=\"#longest\">"
                "Longest</a> <a href=\"#tasks\">Tasks</a></nav>"
                "</header>\n<main>\n");
}

/* Append the static timeline, which the script replaces by a live one. */
static void add_timeline(struct strbuf *out, const struct report *report)
{
    const struct plan *plan = report->history->plan;
    strbuf_adds(out,
                "<section id=\"timeline\"><h2>Timeline</h2>\n"
                "<ul class=\"legend\" id=\"legend\">");
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        if (report->stats->classes[ix].sum.sessions > 0) {
            strbuf_addf(out,
                        "<li><i class=\"mark %s\"></i>",
                        html_colour(ix).name);
            xml_add(out, plan->classes[ix].name);
            strbuf_adds(out, "</li>");
        }
    }
    strbuf_adds(
        out,
        "<li><i class=\"mark bad-end\"></i>did not succeed</li></ul>\n<div "
        "class=\"live\" id=\"chart\"></div>\n<div class=\"static\">\n");
    struct svg_options options = {.width = TIMELINE_WIDTH};
    struct svg_panel panel = {
        .plan = plan,
        .result = report->stats->chart,
        .lead = report->history->finished ? "took" : "so far",
    };
    svg_compare(out, &panel, 1, &options);
    strbuf_adds(out, "</div></section>\n");
}

void report_html(struct strbuf *out, const struct report *report)
{
    add_head(out, report);
    add_heading(out, report);
    html_numbers(out, report);
    add_timeline(out, report);
    html_time(out, report);
    html_path(out, report);
    html_classes(out, report);
    html_failures(out, report);
    html_cost(out, report);
    html_forecast(out, report);
    html_longest(out, report);
    html_tasks(out, report);
    strbuf_adds(
        out,
        "</main>\n<footer><p>Created by sluice " SLUICE_VERSION
        ". Times are wall-clock times; sluice-report(1) and docs/report.md "
        "explain the figures.</p></footer>\n<div id=\"tip\" role=\"tooltip\" "
        "hidden></div>\n<script type=\"application/json\" id=\"data\">");
    html_data(out, report);
    strbuf_adds(out, "</script>\n<script>");
    strbuf_adds(out, page_js);
    strbuf_adds(out, "</script>\n</body></html>\n");
}
