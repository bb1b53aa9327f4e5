/* SPDX-License-Identifier: MIT */
/*
 * report: the statistics of a run, as a page, a picture or a summary.
 *
 * Ids, titles and reasons are texts of others and may contain anything: each
 * form escapes them for itself, and none lets markup through.
 */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "view/report_json.h"

/* One HTML file that needs no other and reaches for none. */
void report_html(struct strbuf *out, const struct report *report);

/* A summary in Markdown. */
void report_md(struct strbuf *out, const struct report *report);

/* The timeline as a picture of its own. */
void report_svg(struct strbuf *out, const struct report *report);

#endif /* REPORT_REPORT_H */
