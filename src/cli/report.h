/* SPDX-License-Identifier: MIT */
/*
 * report: the facts about a run, as a page, a picture, a summary or JSON.
 *
 * Ids, titles and reasons are texts of others and may contain anything: each
 * form escapes them for itself, and none lets markup through.
 */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "base/strbuf.h"
#include "cli/facts.h"
#include "cli/forecast.h"

/* What there is to tell. Borrowed. */
struct report {
    const struct chronicle *chronicle;
    const struct facts *facts;
    const struct forecast *forecast;
    int64_t wall_ns; /* now */
};

/* One HTML file that needs no other and reaches for none. */
void report_html(struct strbuf *out, const struct report *report);

/* One JSON object and a new line; see sluice-report(1). */
void report_json(struct strbuf *out, const struct report *report);

/* A summary in Markdown. */
void report_md(struct strbuf *out, const struct report *report);

/* The timeline as a picture of its own. */
void report_svg(struct strbuf *out, const struct report *report);

#endif /* CLI_REPORT_H */
