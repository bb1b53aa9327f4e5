/* SPDX-License-Identifier: MIT */
/*
 * SVG writer. The body is written first, from top to bottom, with `y` as the
 * cursor; then its height is known and the document is put around it.
 *
 * Lengths are integers in tenths of a pixel: exact, and printed the same in
 * every locale. The width of text cannot be measured here; it is estimated
 * generously, and text that might not fit is left out or moved.
 */
#include "sim/svg.h"

#include "base/invariant.h"
#include "base/mem.h"
#include "base/xml.h"
#include "sim/chart.h"

#include <stdbool.h>
#include <string.h>

/* One pixel; 64 bits wide, so that products are, too. */
#define PX INT64_C(10)

/* Lengths, in tenths of a pixel. */
enum {
    MARGIN = 24 * PX,
    CHAR_WIDTH = 58,  /* of names in bars */
    LABEL_WIDTH = 65, /* of labels left of the bars */
    TEXT_WIDTH = 63,  /* of other text */
    BAND = 14 * PX,   /* row height of a waiting class */
};

enum {
    TOOLTIP_TASKS_MAX = 12,
    LABEL_CHARS_MIN = 8, /* left of the bars */
    LABEL_CHARS_MAX = 22,
};

struct svg {
    struct strbuf *out;
    const struct svg_options *options;
    const struct svg_panel *panels;
    struct chart *charts; /* one for each panel */
    uint32_t panel_count;
    int64_t end_ns; /* of the time scale */
    int64_t width;  /* of the picture */
    int64_t plot_x; /* of the bars */
    int64_t plot_width;
    int64_t lane_height;
    int64_t lane_gap;
    int64_t step_ns; /* from tick to tick */
    int64_t y;
};

struct box {
    int64_t x;
    int64_t y;
    int64_t width;
    int64_t height;
};

/* Position and style of a text. */
struct spot {
    int64_t x;
    int64_t y;
    const char *class_name;
};

/* Append an attribute whose value is a length. */
static void add_length(struct svg *svg, const char *name, int64_t length)
{
    const char *sign = length < 0 ? "-" : "";
    int64_t size = length < 0 ? -length : length;
    strbuf_addf(svg->out, " %s=\"%s%lld", name, sign, (long long)(size / PX));
    if (size % PX != 0) {
        strbuf_addf(svg->out, ".%lld", (long long)(size % PX));
    }
    strbuf_adds(svg->out, "\"");
}

/* Begin a rectangle; the caller closes the element. */
static void begin_rect(struct svg *svg, struct box box, int64_t radius)
{
    strbuf_adds(svg->out, "<rect");
    add_length(svg, "x", box.x);
    add_length(svg, "y", box.y);
    add_length(svg, "width", box.width);
    add_length(svg, "height", box.height);
    if (radius > 0) {
        add_length(svg, "rx", radius);
    }
}

static void add_rect(struct svg *svg, struct box box, const char *class_name)
{
    begin_rect(svg, box, 0);
    strbuf_addf(svg->out, " class=\"%s\"/>\n", class_name);
}

/* Begin a text; the caller appends it and closes the element. */
static void begin_text(struct svg *svg, struct spot spot)
{
    strbuf_adds(svg->out, "<text");
    add_length(svg, "x", spot.x);
    add_length(svg, "y", spot.y);
    strbuf_addf(svg->out, " class=\"%s\">", spot.class_name);
}

static void end_text(struct svg *svg)
{
    strbuf_adds(svg->out, "</text>\n");
}

static void add_text(struct svg *svg, struct spot spot, const char *text)
{
    begin_text(svg, spot);
    xml_add(svg->out, text);
    end_text(svg);
}

static int64_t x_of(const struct svg *svg, int64_t time_ns)
{
    double share = (double)time_ns / (double)svg->end_ns;
    return svg->plot_x + (int64_t)(share * (double)svg->plot_width + 0.5);
}

static const char *class_name_of(const struct svg *svg, uint32_t class_ix)
{
    return svg->charts[0].plan->classes[class_ix].name;
}

static void add_style(struct svg *svg)
{
    /* Colours of Okabe and Ito, by class index. Their vermilion is reserved for
     * errors. */
    strbuf_adds(svg->out,
                "<style>\n"
                ".sluice text{font:12px system-ui,-apple-system,'Segoe UI',"
                "Helvetica,Arial,sans-serif;fill:#1f2328}\n"
                ".sluice .title{font-size:19px;font-weight:600}\n"
                ".sluice .caption{font-size:13px}\n"
                ".sluice .strong{font-weight:600}\n"
                ".sluice .soft,.sluice .label,.sluice .tick{fill:#59636e}\n"
                ".sluice .label{text-anchor:end}\n"
                ".sluice .tick{font-size:11px;text-anchor:middle}\n"
                ".sluice .end{font-size:11px;font-weight:600;text-anchor:end}\n"
                ".sluice .dark{font-size:10.5px;fill:#111}\n"
                ".sluice .bright{font-size:10.5px;fill:#fff}\n"
                ".sluice .wrong{fill:#b84300;font-weight:600}\n"
                ".sluice .ground{fill:#fff;stroke:#d1d9e0}\n"
                ".sluice .lane{fill:#eff2f5}\n"
                ".sluice .grid{stroke:#818b98;stroke-opacity:.3}\n"
                ".sluice .finish{stroke:#1f2328;stroke-width:1.5;"
                "stroke-dasharray:4 3}\n"
                ".sluice .wait{fill-opacity:.4}\n"
                ".sluice .starved{fill:#d55e00}\n"
                ".sluice .bad{fill:#1f2328}\n"
                ".sluice .c0{fill:#0072b2}.sluice .c1{fill:#56b4e9}\n"
                ".sluice .c2{fill:#009e73}.sluice .c3{fill:#e69f00}\n"
                ".sluice .c4{fill:#cc79a7}.sluice .c5{fill:#f0e442}\n"
                ".sluice .c6{fill:#8c959f}.sluice .c7{fill:#a6761d}\n"
                "@media (prefers-color-scheme:dark){\n"
                ".sluice text{fill:#e6edf3}\n"
                ".sluice .soft,.sluice .label,.sluice .tick{fill:#9198a1}\n"
                ".sluice .dark{fill:#111}\n"
                ".sluice .bright{fill:#fff}\n"
                ".sluice .wrong{fill:#ff8c42}\n"
                ".sluice .ground{fill:#0d1117;stroke:#3d444d}\n"
                ".sluice .lane{fill:#1a212b}\n"
                ".sluice .finish{stroke:#e6edf3}\n"
                ".sluice .wait{fill-opacity:.6}\n"
                ".sluice .bad{fill:#fff}\n"
                "}\n"
                "</style>\n");
}

static bool has_bad_end(const struct svg *svg)
{
    for (uint32_t panel = 0; panel < svg->panel_count; panel++) {
        const struct sim_result *result = svg->panels[panel].result;
        for (uint32_t ix = 0; ix < result->span_count; ix++) {
            if (chart_is_bad(result->spans[ix].end)) {
                return true;
            }
        }
    }
    return false;
}

static bool has_starved(const struct chart *chart)
{
    for (uint32_t ix = 0; ix < chart->plan->class_count; ix++) {
        if (chart_starved_ns(chart, ix) > 0) {
            return true;
        }
    }
    return false;
}

/* Append a sample and its name; return the position of the next sample. */
static int64_t
add_entry(struct svg *svg, int64_t x, const char *class_name, const char *text)
{
    int64_t width = 36 * PX + (int64_t)strlen(text) * TEXT_WIDTH;
    if (x > MARGIN && x + width > svg->width - MARGIN) {
        svg->y += 20 * PX;
        x = MARGIN;
    }
    struct box box = {x, svg->y + 3 * PX, 12 * PX, 12 * PX};
    begin_rect(svg, box, 3 * PX);
    strbuf_addf(svg->out, " class=\"%s\"/>\n", class_name);
    struct spot spot = {x + 18 * PX, svg->y + 13 * PX, "soft"};
    add_text(svg, spot, text);
    return x + width;
}

/* Append the classes of all panels, and the other colours. */
static void add_legend(struct svg *svg)
{
    int64_t x = MARGIN;
    for (uint32_t ix = 0; ix < svg->charts[0].plan->class_count; ix++) {
        bool is_used = false;
        for (uint32_t panel = 0; panel < svg->panel_count; panel++) {
            is_used |= svg->charts[panel].class_spans[ix] > 0;
        }
        char name[8] = {'c', (char)('0' + ix % CHART_COLOURS)};
        if (is_used) {
            x = add_entry(svg, x, name, class_name_of(svg, ix));
        }
    }
    for (uint32_t panel = 0; panel < svg->panel_count; panel++) {
        if (has_starved(&svg->charts[panel])) {
            x = add_entry(
                svg,
                x,
                "starved",
                "starved: ready, but less urgent work was in its place");
            break;
        }
    }
    if (has_bad_end(svg)) {
        add_entry(svg, x, "bad", "did not succeed");
    }
    svg->y += 20 * PX;
}

static void add_heading(struct svg *svg)
{
    svg->y = MARGIN - 4 * PX;
    if (svg->options->title != NULL) {
        struct spot spot = {MARGIN, svg->y + 18 * PX, "title"};
        add_text(svg, spot, svg->options->title);
        svg->y += 28 * PX;
    }
    if (svg->options->subtitle != NULL) {
        struct spot spot = {MARGIN, svg->y + 12 * PX, "soft"};
        add_text(svg, spot, svg->options->subtitle);
        svg->y += 24 * PX;
    }
    add_legend(svg);
}

/* Append which classes were starved for how long, or that none was. */
static void add_starved_facts(struct strbuf *out, const struct chart *chart)
{
    for (uint32_t ix = 0; ix < chart->plan->class_count; ix++) {
        int64_t starved_ns = chart_starved_ns(chart, ix);
        if (starved_ns > 0) {
            strbuf_adds(out, " · <tspan class=\"wrong\">");
            xml_add(out, chart->plan->classes[ix].name);
            strbuf_adds(out, " starved ");
            chart_add_duration(out, starved_ns);
            strbuf_adds(out, "</tspan>");
        }
    }
    if (!has_starved(chart)) {
        strbuf_adds(out, " · <tspan class=\"strong\">starved 0</tspan>");
    }
}

/* "first come  done in 1 h 38 min · 64 % of 3 slots used · starved ..." */
static void add_caption(struct svg *svg, uint32_t panel)
{
    const struct chart *chart = &svg->charts[panel];
    const char *caption = svg->panels[panel].caption;
    svg->y += 14 * PX;
    begin_text(svg, (struct spot){MARGIN, svg->y + 13 * PX, "caption"});
    if (caption != NULL) {
        strbuf_adds(svg->out, "<tspan class=\"strong\">");
        xml_add(svg->out, caption);
        strbuf_adds(svg->out, "</tspan> · ");
    }
    const char *lead = svg->panels[panel].lead;
    strbuf_addf(svg->out,
                "<tspan class=\"soft\">%s ",
                lead != NULL ? lead : "done in");
    chart_add_duration(svg->out, chart->result->makespan_ns);
    strbuf_addf(svg->out,
                " · %u %% of %u slot%s used</tspan>",
                (unsigned)(chart->result->slot_use * 100 + 0.5),
                chart->lane_count,
                chart->lane_count == 1 ? "" : "s");
    add_starved_facts(svg->out, chart);
    end_text(svg);
    svg->y += 24 * PX;
}

/* Append the task ids of a session; a long list is cut, with a count. */
static void
add_ids(struct svg *svg, const struct chart *chart, const struct chart_bar *bar)
{
    const struct sim_result *result = chart->result;
    uint32_t session = result->spans[bar->span].session;
    uint32_t added = 0;
    for (uint32_t ix = bar->span;
         ix < result->span_count && added < bar->task_count;
         ix++) {
        if (added == TOOLTIP_TASKS_MAX) {
            strbuf_addf(svg->out, " and %u more", bar->task_count - added);
            break;
        }
        if (result->spans[ix].session == session) {
            strbuf_adds(svg->out, added > 0 ? ", " : "");
            xml_add(svg->out, chart->plan->tasks[result->spans[ix].task].id);
            added++;
        }
    }
}

static void add_tooltip(struct svg *svg,
                        const struct chart *chart,
                        const struct chart_bar *bar)
{
    const struct sim_span *span = &chart->result->spans[bar->span];
    strbuf_adds(svg->out, "<title>");
    add_ids(svg, chart, bar);
    strbuf_adds(svg->out, " (");
    xml_add(svg->out, chart->plan->classes[bar->class_ix].name);
    strbuf_adds(svg->out, ")\nwaited ");
    chart_add_duration(svg->out, span->start_ns - span->ready_ns);
    strbuf_adds(svg->out, ", started at ");
    chart_add_duration(svg->out, span->start_ns);
    strbuf_adds(svg->out, ", took ");
    chart_add_duration(svg->out, span->end_ns - span->start_ns);
    if (span->attempt > 1) {
        strbuf_addf(svg->out, ", attempt %u", span->attempt);
    }
    if (span->end != SIM_END_DONE) {
        strbuf_addf(svg->out, ", %s", sim_end_name(span->end));
    }
    strbuf_adds(svg->out, "</title>");
}

/* Return the box of a bar: a little narrower, to separate neighbours. */
static struct box
box_of(const struct svg *svg, const struct chart_bar *bar, int64_t y)
{
    int64_t x = x_of(svg, bar->start_ns);
    int64_t width = x_of(svg, bar->end_ns) - x;
    int64_t gap = width > 6 * PX ? PX : width > 2 * PX ? PX / 2 : 0;
    width = width - gap > PX / 2 ? width - gap : PX / 2;
    return (struct box){x, y, width, svg->lane_height};
}

static void add_name(struct svg *svg,
                     const struct chart *chart,
                     const struct chart_bar *bar,
                     struct box box)
{
    enum { INSET = 4 * PX };
    int64_t room = (box.width - INSET - INSET / 2) / CHAR_WIDTH;
    struct strbuf name = {0};
    if (box.height >= 14 * PX && room > 0 &&
        chart_add_name(&name, chart, bar, (size_t)room)) {
        struct spot spot = {
            box.x + INSET,
            box.y + box.height / 2 + 4 * PX,
            bar->class_ix % CHART_COLOURS == 0 ? "bright" : "dark",
        };
        add_text(svg, spot, strbuf_text(&name));
    }
    strbuf_release(&name);
}

static void
add_bar(struct svg *svg, const struct chart *chart, const struct chart_bar *bar)
{
    struct box box = box_of(svg, bar, svg->y);
    strbuf_adds(svg->out, "<g>");
    add_tooltip(svg, chart, bar);
    begin_rect(svg, box, box.width > 8 * PX ? 3 * PX : 0);
    strbuf_addf(svg->out, " class=\"c%u\"/>", bar->class_ix % CHART_COLOURS);
    if (chart_is_bad(chart->result->spans[bar->span].end)) {
        int64_t width = box.width < 6 * PX ? box.width / 2 : 3 * PX;
        struct box edge = {
            box.x + box.width - width,
            box.y,
            width,
            box.height,
        };
        add_rect(svg, edge, "bad");
    }
    add_name(svg, chart, bar, box);
    strbuf_adds(svg->out, "</g>\n");
}

/* Append one bar for many sessions of one class, too small to separate. */
static void add_merged(struct svg *svg,
                       const struct chart *chart,
                       const struct chart_bar *merged)
{
    int64_t x = x_of(svg, merged->start_ns);
    struct box box = {
        x,
        svg->y,
        x_of(svg, merged->end_ns) - x,
        svg->lane_height,
    };
    begin_rect(svg, box, 0);
    strbuf_addf(svg->out,
                " class=\"c%u\"><title>",
                merged->class_ix % CHART_COLOURS);
    xml_add(svg->out, chart->plan->classes[merged->class_ix].name);
    strbuf_adds(svg->out, ", ");
    chart_add_duration(svg->out, merged->start_ns);
    strbuf_adds(svg->out, " to ");
    chart_add_duration(svg->out, merged->end_ns);
    strbuf_adds(svg->out, "</title></rect>\n");
}

/* Append the cells of a lane as bars, joining equal neighbours. */
static void add_merged_lane(struct svg *svg,
                            const struct chart *chart,
                            uint32_t lane,
                            uint32_t cell_count)
{
    uint32_t *cells = mem_zalloc(cell_count, sizeof(*cells));
    chart_cells(chart, lane, chart->end_ns, cells, cell_count);
    double cell_ns = (double)chart->end_ns / cell_count;
    uint32_t first = 0;
    for (uint32_t ix = 0; ix < cell_count; ix++) {
        uint32_t bar = cells[ix];
        uint32_t next = ix + 1 < cell_count ? cells[ix + 1] : CHART_NONE;
        bool goes_on = bar != CHART_NONE && next != CHART_NONE &&
                       chart->bars[bar].class_ix == chart->bars[next].class_ix;
        if (goes_on) {
            continue;
        }
        if (bar != CHART_NONE) {
            struct chart_bar merged = chart->bars[bar];
            merged.start_ns = (int64_t)(cell_ns * first);
            merged.end_ns = (int64_t)(cell_ns * (ix + 1));
            add_merged(svg, chart, &merged);
        }
        first = ix + 1;
    }
    mem_free(cells);
}

static void add_lane_label(struct svg *svg, uint32_t lane)
{
    bool is_low = svg->lane_height < 12 * PX;
    if (is_low && lane > 0 && (lane + 1) % 10 != 0) {
        return;
    }
    begin_text(svg,
               (struct spot){
                   svg->plot_x - 10 * PX,
                   svg->y + svg->lane_height / 2 + 4 * PX,
                   "label",
               });
    strbuf_addf(svg->out, "slot %u", lane + 1);
    end_text(svg);
}

static void add_lane(struct svg *svg, const struct chart *chart, uint32_t lane)
{
    enum { CELLS_MIN = 100, CELLS_MAX = 1600 };
    add_lane_label(svg, lane);
    if (chart->bar_count > SVG_BARS_MAX) {
        uint32_t cells = SVG_BARS_MAX / chart->lane_count;
        cells = cells < CELLS_MIN ? CELLS_MIN : cells;
        cells = cells > CELLS_MAX ? CELLS_MAX : cells;
        add_merged_lane(svg, chart, lane, cells);
    } else {
        uint32_t behind = chart_lane_first(chart, lane + 1);
        for (uint32_t ix = chart_lane_first(chart, lane); ix < behind; ix++) {
            add_bar(svg, chart, &chart->bars[ix]);
        }
    }
    svg->y += svg->lane_height + svg->lane_gap;
}

static uint32_t lanes_shown(const struct chart *chart)
{
    uint32_t count = chart->lane_count;
    return count < SVG_LANES_MAX ? count : SVG_LANES_MAX;
}

static void add_lanes(struct svg *svg, const struct chart *chart)
{
    uint32_t shown = lanes_shown(chart);
    for (uint32_t lane = 0; lane < shown; lane++) {
        add_lane(svg, chart, lane);
    }
    if (shown < chart->lane_count) {
        begin_text(svg, (struct spot){svg->plot_x, svg->y + 12 * PX, "soft"});
        strbuf_addf(svg->out, "and %u more slots", chart->lane_count - shown);
        end_text(svg);
        svg->y += 20 * PX;
    }
}

/* Append "review waits", with the name cut if it is too long. */
static void add_band_label(struct svg *svg, uint32_t class_ix, int64_t y)
{
    static const char waits[] = " waits";
    const char *name = class_name_of(svg, class_ix);
    size_t room = LABEL_CHARS_MAX - strlen(waits);
    struct strbuf label = {0};
    if (strlen(name) <= room) {
        strbuf_adds(&label, name);
    } else {
        strbuf_add(&label, name, room - 1);
        strbuf_adds(&label, "…");
    }
    strbuf_adds(&label, waits);
    struct spot spot = {svg->plot_x - 10 * PX, y, "label"};
    add_text(svg, spot, strbuf_text(&label));
    strbuf_release(&label);
}

/* Append one class: thin while its tasks waited, thick while starved. */
static void add_band(struct svg *svg,
                     const struct chart *chart,
                     uint32_t first,
                     uint32_t end)
{
    enum { THIN = 5 * PX, THICK = 10 * PX };
    uint32_t class_ix = chart->periods[first].class_ix;
    int64_t middle = svg->y + BAND / 2;
    add_band_label(svg, class_ix, middle + 4 * PX);
    for (uint32_t ix = first; ix < end; ix++) {
        const struct chart_period *period = &chart->periods[ix];
        int64_t height = period->starved ? THICK : THIN;
        int64_t x = x_of(svg, period->start_ns);
        int64_t width = x_of(svg, period->end_ns) - x;
        struct box box = {
            x,
            middle - height / 2,
            width > PX ? width : PX,
            height,
        };
        char name[] = "wait c0";
        name[6] = (char)('0' + class_ix % CHART_COLOURS);
        add_rect(svg, box, period->starved ? "starved" : name);
    }
    svg->y += BAND + 2 * PX;
}

/* Append a band for each class that waited; the thinnest rows. */
static void add_bands(struct svg *svg, const struct chart *chart)
{
    svg->y += 4 * PX;
    uint32_t first = 0;
    for (uint32_t ix = 1; ix <= chart->period_count; ix++) {
        if (ix == chart->period_count ||
            chart->periods[ix].class_ix != chart->periods[first].class_ix) {
            add_band(svg, chart, first, ix);
            first = ix;
        }
    }
}

/* Append a line from the top to the bottom of a box. */
static void
add_line(struct svg *svg, int64_t x, struct box span, const char *class_name)
{
    strbuf_adds(svg->out, "<line");
    add_length(svg, "x1", x);
    add_length(svg, "x2", x);
    add_length(svg, "y1", span.y);
    add_length(svg, "y2", span.y + span.height);
    strbuf_addf(svg->out, " class=\"%s\"/>\n", class_name);
}

/* Append the background of the lanes, and the lines of the time scale. */
static void add_grid(struct svg *svg, const struct chart *chart, int64_t top)
{
    uint32_t shown = lanes_shown(chart);
    for (uint32_t lane = 0; lane < shown; lane++) {
        struct box box = {
            svg->plot_x,
            top + lane * (svg->lane_height + svg->lane_gap),
            svg->plot_width,
            svg->lane_height,
        };
        add_rect(svg, box, "lane");
    }
    struct box span = {.y = top, .height = svg->y - top};
    for (int64_t at_ns = 0; at_ns <= svg->end_ns; at_ns += svg->step_ns) {
        add_line(svg, x_of(svg, at_ns), span, "grid");
    }
}

/* Append the labels of the time scale, and the end of this result. */
static void add_axis(struct svg *svg, const struct chart *chart, int64_t top)
{
    enum { END_WIDTH = 68 * PX };
    int64_t end_x = x_of(svg, chart->result->makespan_ns);
    int64_t least_x = svg->plot_x + END_WIDTH;
    int64_t text_x = end_x > least_x ? end_x : least_x;
    int64_t text_y = svg->y + 15 * PX;
    for (int64_t at_ns = 0; at_ns <= svg->end_ns; at_ns += svg->step_ns) {
        int64_t x = x_of(svg, at_ns);
        if (x < text_x - END_WIDTH - 16 * PX || x > text_x + 20 * PX) {
            begin_text(svg, (struct spot){x, text_y, "tick"});
            chart_add_time(svg->out, at_ns);
            end_text(svg);
        }
    }
    struct box span = {.y = top, .height = svg->y - top + 4 * PX};
    add_line(svg, end_x, span, "finish");
    begin_text(svg, (struct spot){text_x, text_y, "end"});
    chart_add_duration(svg->out, chart->result->makespan_ns);
    end_text(svg);
    svg->y += 20 * PX;
}

static void add_panel(struct svg *svg, uint32_t panel)
{
    const struct chart *chart = &svg->charts[panel];
    add_caption(svg, panel);
    int64_t top = svg->y;
    /* The grid is drawn first, but its height depends on the bars. */
    struct strbuf *out = svg->out;
    struct strbuf bars = {0};
    svg->out = &bars;
    if (chart->bar_count == 0) {
        struct spot spot = {svg->plot_x + 8 * PX, top + 16 * PX, "soft"};
        add_text(svg, spot, "nothing ran");
        svg->y += 24 * PX;
    } else {
        add_lanes(svg, chart);
        add_bands(svg, chart);
    }
    svg->out = out;
    add_grid(svg, chart, top);
    strbuf_add(out, bars.text, bars.len);
    strbuf_release(&bars);
    add_axis(svg, chart, top);
}

/* Return the width of "slot 12", or of the longest name of a waiting class. */
static int64_t label_width(const struct svg *svg)
{
    size_t chars = LABEL_CHARS_MIN;
    for (uint32_t panel = 0; panel < svg->panel_count; panel++) {
        const struct chart *chart = &svg->charts[panel];
        for (uint32_t ix = 0; ix < chart->period_count; ix++) {
            uint32_t class_ix = chart->periods[ix].class_ix;
            size_t len = strlen(class_name_of(svg, class_ix)) + 6;
            chars = len > chars ? len : chars;
        }
    }
    chars = chars < LABEL_CHARS_MAX ? chars : LABEL_CHARS_MAX;
    return (int64_t)chars * LABEL_WIDTH + 8 * PX;
}

/* Choose sizes: the more lanes, the smaller their height. */
static void choose_sizes(struct svg *svg, uint32_t lanes)
{
    enum { TICK_WIDTH = 64 * PX };
    uint32_t width = svg->options->width;
    width = width == 0 ? SVG_WIDTH : width;
    width = width < SVG_WIDTH_MIN ? SVG_WIDTH_MIN : width;
    width = width > SVG_WIDTH_MAX ? SVG_WIDTH_MAX : width;
    svg->width = (int64_t)width * PX;
    svg->plot_x = MARGIN + label_width(svg);
    svg->plot_width = svg->width - svg->plot_x - MARGIN;
    svg->lane_height = lanes <= 8    ? 26 * PX
                       : lanes <= 24 ? 16 * PX
                       : lanes <= 60 ? 10 * PX
                                     : 5 * PX;
    svg->lane_gap = lanes <= 8 ? 4 * PX : lanes <= 24 ? 2 * PX : PX;
    int64_t tick_count = svg->plot_width / TICK_WIDTH + 1;
    svg->step_ns = chart_tick_ns(svg->end_ns / tick_count);
}

/* Open the root element. Screen readers read the title. */
static void begin_document(struct svg *svg)
{
    strbuf_addf(svg->out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"sluice\""
                " role=\"img\" viewBox=\"0 0 %lld %lld\"",
                (long long)(svg->width / PX),
                (long long)(svg->y / PX));
    add_length(svg, "width", svg->width / PX * PX);
    add_length(svg, "height", svg->y / PX * PX);
    strbuf_adds(svg->out, ">\n<title>");
    const char *title = svg->options->title;
    xml_add(svg->out, title != NULL ? title : "Timeline");
    strbuf_adds(svg->out, "</title>\n");
    add_style(svg);
    struct box ground = {
        PX / 2,
        PX / 2,
        svg->width - PX,
        svg->y / PX * PX - PX,
    };
    begin_rect(svg, ground, 6 * PX);
    strbuf_adds(svg->out, " class=\"ground\"/>\n");
}

static void add_document(struct svg *svg)
{
    struct strbuf *out = svg->out;
    struct strbuf body = {0};
    svg->out = &body;
    add_heading(svg);
    for (uint32_t panel = 0; panel < svg->panel_count; panel++) {
        add_panel(svg, panel);
    }
    svg->y += 10 * PX;
    svg->out = out;
    begin_document(svg);
    strbuf_add(out, body.text, body.len);
    strbuf_adds(out, "</svg>\n");
    strbuf_release(&body);
}

void svg_compare(struct strbuf *out,
                 const struct svg_panel *panels,
                 uint32_t panel_count,
                 const struct svg_options *options)
{
    INVARIANT(panel_count > 0);
    struct svg svg = {
        .out = out,
        .options = options,
        .panels = panels,
        .charts = mem_zalloc(panel_count, sizeof(*svg.charts)),
        .panel_count = panel_count,
    };
    uint32_t lanes = 0;
    for (uint32_t ix = 0; ix < panel_count; ix++) {
        struct chart *chart = &svg.charts[ix];
        INVARIANT(panels[ix].plan->class_count == panels[0].plan->class_count);
        chart_init(chart, panels[ix].plan, panels[ix].result);
        svg.end_ns = chart->end_ns > svg.end_ns ? chart->end_ns : svg.end_ns;
        lanes = chart->lane_count > lanes ? chart->lane_count : lanes;
    }
    choose_sizes(&svg, lanes);
    add_document(&svg);
    for (uint32_t ix = 0; ix < panel_count; ix++) {
        chart_release(&svg.charts[ix]);
    }
    mem_free(svg.charts);
}
