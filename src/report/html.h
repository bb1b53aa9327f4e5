/* SPDX-License-Identifier: MIT */
/*
 * html: sections and helpers of the HTML report.
 */
#ifndef REPORT_HTML_H
#define REPORT_HTML_H

#include "report/report.h"

/* Append the sections of the page. */
void html_numbers(struct strbuf *out, const struct report *report);
void html_time(struct strbuf *out, const struct report *report);
void html_path(struct strbuf *out, const struct report *report);
void html_graph(struct strbuf *out, const struct report *report);
void html_classes(struct strbuf *out, const struct report *report);
void html_failures(struct strbuf *out, const struct report *report);
void html_cost(struct strbuf *out, const struct report *report);
void html_forecast(struct strbuf *out, const struct report *report);
void html_longest(struct strbuf *out, const struct report *report);
void html_tasks(struct strbuf *out, const struct report *report);

/* Append the data for the script: one JSON object, safe inside <script>. */
void html_data(struct strbuf *out, const struct report *report);

/* --- helpers ------------------------------------------------------------ */

/* The colour of a class: "c0" to "c7". A plain value. */
struct html_colour {
    char name[4];
};
struct html_colour html_colour(uint32_t class_ix);

/* Open a table, up to its first row. "|" separates the names of columns; "#"
 * precedes names of columns with numbers. */
void html_table(struct strbuf *out, const char *caption, const char *columns);

/* Open and close a table that may be wider than the page. */
void html_begin_table(struct strbuf *out,
                      const char *caption,
                      const char *columns);
void html_end_table(struct strbuf *out);

/* Append a table cell: a number, a time, a share. */
void html_cell(struct strbuf *out, int64_t number);
void html_cell_time(struct strbuf *out, int64_t duration_ns);
void html_cell_share(struct strbuf *out, int64_t part, int64_t whole);

/* Append a cell with a trusted word; `bad` highlights it. */
void html_cell_word(struct strbuf *out, const char *word, bool bad);

/* Append a cell with the colour mark and name of a class. */
void html_cell_class(struct strbuf *out,
                     const struct report *report,
                     uint32_t class_ix);

/* Append a cell with the id of a task, and its title as tooltip. */
void html_cell_task(struct strbuf *out,
                    const struct report *report,
                    uint32_t task);

/* Append a share in percent, with one decimal if it is small. */
void html_percent(struct strbuf *out, int64_t part, int64_t whole);

/* One part of a bar; html_bar() omits parts without length. */
struct html_part {
    int64_t length;
    const char *colour; /* class in the style sheet */
    const char *name;   /* untrusted */
};
void html_bar(struct strbuf *out,
              const struct html_part *parts,
              uint32_t count,
              int64_t whole);

/* Shorter times get no row or word of their own; the sums include them. */
#define HTML_LENGTH_NS_MIN INT64_C(1000000)

/* Append "$1.23", "$0.0042"; a dash if no session reported its cost. */
void html_usd(struct strbuf *out, double usd);

#endif /* REPORT_HTML_H */
