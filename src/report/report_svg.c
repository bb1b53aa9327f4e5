/* SPDX-License-Identifier: MIT */
#include "report/report.h"
#include "report/words.h"
#include "sim/svg.h"

void report_svg(struct strbuf *out, const struct report *report)
{
    const struct chronicle *chronicle = report->chronicle;
    struct strbuf subtitle = {0};
    strbuf_addf(&subtitle,
                "run %s, %s; submitted ",
                chronicle->id,
                report_state(report));
    words_add_moment(&subtitle, chronicle->created_ns);
    struct svg_options options = {
        .title = chronicle->name,
        .subtitle = strbuf_text(&subtitle),
    };
    struct svg_panel panel = {
        .plan = chronicle->plan,
        .result = report->facts->chart,
        .lead = chronicle->finished ? "took" : "so far",
    };
    svg_compare(out, &panel, 1, &options);
    strbuf_release(&subtitle);
}
