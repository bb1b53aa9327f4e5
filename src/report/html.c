/* SPDX-License-Identifier: MIT */
#include "report/html.h"

#include "base/xml.h"
#include "report/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { COLOURS = 8 };

struct html_colour html_colour(uint32_t class_ix)
{
    struct html_colour colour;
    (void)snprintf(colour.name, sizeof(colour.name), "c%u", class_ix % COLOURS);
    return colour;
}

void html_table(struct strbuf *out, const char *caption, const char *columns)
{
    strbuf_addf(out, "<table><caption>%s</caption><thead><tr>", caption);
    for (const char *at = columns, *end = NULL; end == NULL || *end != '\0';
         at = end + 1) {
        bool number = *at == '#';
        at += number ? 1 : 0;
        end = at + strcspn(at, "|");
        strbuf_addf(out,
                    "<th scope=\"col\"%s>%.*s</th>",
                    number ? " class=\"n\"" : "",
                    (int)(end - at),
                    at);
    }
    strbuf_adds(out, "</tr></thead><tbody>");
}

void html_begin_table(struct strbuf *out,
                      const char *caption,
                      const char *columns)
{
    strbuf_adds(out, "<div class=\"wide\">");
    html_table(out, caption, columns);
    strbuf_adds(out, "\n");
}

void html_end_table(struct strbuf *out)
{
    strbuf_adds(out, "</tbody></table></div>\n");
}

void html_cell_word(struct strbuf *out, const char *word, bool bad)
{
    strbuf_addf(out, "<td%s>%s</td>", bad ? " class=\"bad\"" : "", word);
}

void html_cell(struct strbuf *out, int64_t number)
{
    strbuf_adds(out, "<td class=\"n\">");
    words_add_number(out, number);
    strbuf_adds(out, "</td>");
}

void html_cell_time(struct strbuf *out, int64_t duration_ns)
{
    strbuf_adds(out, "<td class=\"n\">");
    words_add_time(out, duration_ns);
    strbuf_adds(out, "</td>");
}

void html_percent(struct strbuf *out, int64_t part, int64_t whole)
{
    double percent = whole > 0 ? 100.0 * (double)part / (double)whole : 0;
    bool small = percent > 0 && percent < 9.95;
    strbuf_addf(out, small ? "%.1f %%" : "%.0f %%", percent);
}

void html_cell_share(struct strbuf *out, int64_t part, int64_t whole)
{
    strbuf_adds(out, "<td class=\"n\">");
    html_percent(out, part, whole);
    strbuf_adds(out, "</td>");
}

void html_cell_class(struct strbuf *out,
                     const struct report *report,
                     uint32_t class_ix)
{
    strbuf_addf(out,
                "<td class=\"k\"><i class=\"mark %s\"></i>",
                html_colour(class_ix).name);
    xml_add(out, report->history->plan->classes[class_ix].name);
    strbuf_adds(out, "</td>");
}

void html_cell_task(struct strbuf *out,
                    const struct report *report,
                    uint32_t task)
{
    const struct plan *plan = report->history->plan;
    uint32_t group = plan->tasks[task].group;
    const char *title = plan->tasks[task].words->title;
    if (title == NULL && group != PLAN_NONE) {
        title = plan->groups[group].title;
    }
    strbuf_adds(out, "<td class=\"id\"");
    if (title != NULL) {
        strbuf_adds(out, " title=\"");
        xml_add(out, title);
        strbuf_adds(out, "\"");
    }
    strbuf_adds(out, ">");
    xml_add(out, plan->tasks[task].id);
    strbuf_adds(out, "</td>");
}

void html_bar(struct strbuf *out,
              const struct html_part *parts,
              uint32_t count,
              int64_t whole)
{
    strbuf_adds(out, "<div class=\"bar\" aria-hidden=\"true\">");
    for (uint32_t ix = 0; ix < count; ix++) {
        if (parts[ix].length <= 0 || whole <= 0) {
            continue;
        }
        strbuf_addf(out,
                    "<span class=\"%s\" style=\"width:%.3f%%\" title=\"",
                    parts[ix].colour,
                    100.0 * (double)parts[ix].length / (double)whole);
        xml_add(out, parts[ix].name);
        strbuf_adds(out, ": ");
        words_add_time(out, parts[ix].length);
        strbuf_adds(out, "\"></span>");
    }
    strbuf_adds(out, "</div>\n");
}

void html_usd(struct strbuf *out, double usd)
{
    if (!isfinite(usd)) {
        strbuf_adds(out, "?");
    } else if (usd <= 0) {
        strbuf_adds(out, "–"); /* no session reported a cost */
    } else if (usd > 0 && usd < 0.1) {
        strbuf_addf(out, "$%.4f", usd);
    } else {
        strbuf_addf(out, "$%.2f", usd);
    }
}
