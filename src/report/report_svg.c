/* SPDX-License-Identifier: MIT */
#include "report/report.h"
#include "report/words.h"
#include "sim/svg.h"

void report_svg(struct strbuf *out, const struct report *report)
{
    const struct run_history *history = report->history;
    struct strbuf subtitle = {0};
    strbuf_addf(&subtitle,
                "run %s, %s; submitted ",
                history->id,
                report_state(report));
    words_add_moment(&subtitle, history->created_ns);
    struct svg_options options = {
        .title = history->name,
        .subtitle = strbuf_text(&subtitle),
    };
    struct svg_panel panel = {
        .plan = history->plan,
        .result = report->stats->chart,
        .lead = history->finished ? "took" : "so far",
    };
    svg_compare(out, &panel, 1, &options);
    strbuf_release(&subtitle);
}
