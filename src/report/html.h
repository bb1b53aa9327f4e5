/* SPDX-License-Identifier: MIT */
/*
 * html: the pieces of the report's page.
 */
#ifndef REPORT_HTML_H
#define REPORT_HTML_H

#include "report/report.h"

/* The parts of the page, each a section of its own. */
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

/* What the script draws from: one JSON object, safe inside of <script>. */
void html_data(struct strbuf *out, const struct report *report);

/* --- helpers ------------------------------------------------------------ */

/* The colour of a class: "c0" to "c7". A plain value. */
struct html_colour {
    char name[4];
};
struct html_colour html_colour(uint32_t class_ix);

/* Begin a table, up to its first row. The names of columns are separated by
 * "|"; "#" stands before those of columns with numbers. */
void html_table(struct strbuf *out, const char *caption, const char *columns);

/* The same for one that may be wider than the page, and its end. */
void html_begin_table(struct strbuf *out,
                      const char *caption,
                      const char *columns);
void html_end_table(struct strbuf *out);

/* A cell of a table: a number, a time, a share of something. */
void html_cell(struct strbuf *out, int64_t number);
void html_cell_time(struct strbuf *out, int64_t duration_ns);
void html_cell_share(struct strbuf *out, int64_t part, int64_t whole);

/* A cell with a word of our own, which may be a bad one. */
void html_cell_word(struct strbuf *out, const char *word, bool bad);

/* A cell with the mark of a class and its name. */
void html_cell_class(struct strbuf *out,
                     const struct report *report,
                     uint32_t class_ix);

/* A cell with the id of a task, with its title on hovering. */
void html_cell_task(struct strbuf *out,
                    const struct report *report,
                    uint32_t task);

/* A share in percent, with one digit behind the point if it is small. */
void html_percent(struct strbuf *out, int64_t part, int64_t whole);

/* One part of a bar; parts without length are left out. */
struct html_part {
    int64_t length;
    const char *colour; /* class in the style sheet */
    const char *name;   /* text of others */
};
void html_bar(struct strbuf *out,
              const struct html_part *parts,
              uint32_t count,
              int64_t whole);

/* Less than that is not worth a row or a word; the sums have it. */
#define HTML_LENGTH_NS_MIN INT64_C(1000000)

/* "$1.23", "$0.0042"; a dash when no session told its cost. */
void html_usd(struct strbuf *out, double usd);

#endif /* REPORT_HTML_H */
