/* SPDX-License-Identifier: MIT */
/*
 * report: the statistics of a run as HTML page, SVG picture or summary.
 *
 * Ids, titles and reasons are untrusted and may contain anything: each format
 * escapes them itself, and none lets markup through.
 */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "view/report_json.h"

/* Append one self-contained HTML file, which loads nothing. */
void report_html(struct strbuf *out, const struct report *report);

/* The policy that the page states for itself, for a server to state, too. */
const char *report_html_policy(void);

/* Append a summary in Markdown. */
void report_md(struct strbuf *out, const struct report *report);

/* Append the timeline as an SVG picture. */
void report_svg(struct strbuf *out, const struct report *report);

#endif /* REPORT_REPORT_H */
