/* SPDX-License-Identifier: MIT */
/*
 * Rendering by rows: a row is an array of cells, one per column, which is then
 * written with one colour sequence per group of equal cells. A cell holds one
 * glyph of one column, so a row cannot get wider than its array.
 */
#include "sim/gantt.h"

#include "base/duration.h"
#include "base/macros.h"
#include "base/mem.h"
#include "sim/chart.h"

#include <stdio.h>
#include <string.h>

enum { GLYPH_BYTES = 4 };

/* Style of a cell; a class has STYLE_CLASS + its index. */
enum style { STYLE_PLAIN, STYLE_DIM, STYLE_ALARM, STYLE_CLASS };

struct cell {
    char glyph[GLYPH_BYTES]; /* UTF-8, without a NUL if it is full */
    uint32_t style;
};

struct gantt {
    struct strbuf *out;
    struct chart chart;
    struct gantt_options options;
    uint32_t label_width;           /* width of the labels */
    uint32_t columns;               /* width of the chart */
    struct cell *row;               /* label_width + columns cells */
    uint32_t *cells;                /* scratch: a bar per column */
    char (*marks)[GLYPH_BYTES + 1]; /* for each class: glyph of its bars */
    bool shaded;                    /* marks are shades, not letters */
    bool has_bad_end;               /* a session did not succeed */
};

static void put_glyph(struct gantt *gantt,
                      uint32_t column,
                      const char *glyph,
                      uint32_t style)
{
    struct cell *cell = &gantt->row[column];
    size_t len = strnlen(glyph, GLYPH_BYTES);
    memset(cell->glyph, 0, GLYPH_BYTES);
    memcpy(cell->glyph, glyph, len);
    cell->style = style;
}

/* Write the part of a string that fits before column `end`; return its end. */
static uint32_t put_text(struct gantt *gantt,
                         uint32_t column,
                         uint32_t end,
                         const char *text,
                         uint32_t style)
{
    for (; *text != '\0' && column < end; text++) {
        char glyph[2] = {*text >= ' ' && *text <= '~' ? *text : '?', '\0'};
        put_glyph(gantt, column++, glyph, style);
    }
    return column;
}

static const char *
glyph_of(const struct gantt *gantt, const char *unicode, const char *ascii)
{
    return gantt->options.unicode ? unicode : ascii;
}

static void clear_row(struct gantt *gantt)
{
    for (uint32_t ix = 0; ix < gantt->label_width + gantt->columns; ix++) {
        put_glyph(gantt, ix, " ", STYLE_PLAIN);
    }
}

static void add_style(struct gantt *gantt, uint32_t style)
{
    /* Blue, cyan, green, orange: distinct for colour-blind readers. */
    static const uint8_t colours[CHART_COLOURS] = {
        75,  /* blue */
        123, /* cyan */
        42,  /* green */
        214, /* orange */
        175, /* pink */
        228, /* yellow */
        250, /* grey */
        137, /* brown */
    };
    if (!gantt->options.colour) {
        return;
    }
    switch (style) {
    case STYLE_PLAIN:
        strbuf_adds(gantt->out, "\x1b[0m");
        break;
    case STYLE_DIM:
        strbuf_adds(gantt->out, "\x1b[0;2m");
        break;
    case STYLE_ALARM:
        strbuf_adds(gantt->out, "\x1b[0;1;31m");
        break;
    default:
        strbuf_addf(gantt->out,
                    "\x1b[0;38;5;16;48;5;%um",
                    (unsigned)colours[(style - STYLE_CLASS) % CHART_COLOURS]);
    }
}

/* Write the row without trailing blanks, and clear it. */
static void end_row(struct gantt *gantt)
{
    uint32_t count = gantt->label_width + gantt->columns;
    while (count > 0 && gantt->row[count - 1].glyph[0] == ' ' &&
           gantt->row[count - 1].style < STYLE_CLASS) {
        count--;
    }
    uint32_t style = STYLE_PLAIN;
    for (uint32_t ix = 0; ix < count; ix++) {
        const struct cell *cell = &gantt->row[ix];
        if (cell->style != style) {
            style = cell->style;
            add_style(gantt, style);
        }
        strbuf_add(gantt->out, cell->glyph, strnlen(cell->glyph, GLYPH_BYTES));
    }
    if (style != STYLE_PLAIN) {
        add_style(gantt, STYLE_PLAIN);
    }
    strbuf_adds(gantt->out, "\n");
    clear_row(gantt);
}

/* Return the column of a time. */
static uint32_t column_of(const struct gantt *gantt, int64_t time_ns)
{
    return gantt->label_width +
           chart_cell_of(time_ns, gantt->chart.end_ns, gantt->columns);
}

/* Return the column whose left edge is nearest to a time. */
static uint32_t edge_of(const struct gantt *gantt, int64_t time_ns)
{
    int64_t end_ns = gantt->chart.end_ns;
    uint32_t half = chart_cell_of(time_ns, end_ns, 2 * gantt->columns);
    uint32_t edge = time_ns >= end_ns ? gantt->columns : (half + 1) / 2;
    return gantt->label_width + edge;
}

/* Fill the columns of a period; return the next column. */
static uint32_t put_period(struct gantt *gantt,
                           struct chart_period period,
                           const char *glyph,
                           uint32_t style)
{
    uint32_t end = edge_of(gantt, period.end_ns);
    for (uint32_t ix = edge_of(gantt, period.start_ns); ix < end; ix++) {
        put_glyph(gantt, ix, glyph, style);
    }
    return end;
}

/* Append the time axis: labels, and below them a line with ticks. */
static void add_axis(struct gantt *gantt)
{
    enum { LABEL_COLUMNS = 7 };
    const struct chart *chart = &gantt->chart;
    int64_t least_ns = chart->end_ns / gantt->columns * LABEL_COLUMNS;
    int64_t step_ns = chart_tick_ns(least_ns);
    uint32_t end = gantt->label_width + gantt->columns;
    struct strbuf text = {0};
    for (int64_t at_ns = 0; at_ns < chart->end_ns; at_ns += step_ns) {
        strbuf_clear(&text);
        chart_add_time(&text, at_ns);
        uint32_t column = column_of(gantt, at_ns);
        if (column + text.len <= end) {
            put_text(gantt, column, end, strbuf_text(&text), STYLE_DIM);
        }
    }
    strbuf_release(&text);
    end_row(gantt);
    for (uint32_t ix = gantt->label_width; ix < end; ix++) {
        put_glyph(gantt, ix, glyph_of(gantt, "─", "-"), STYLE_DIM);
    }
    for (int64_t at_ns = 0; at_ns < chart->end_ns; at_ns += step_ns) {
        put_glyph(gantt,
                  column_of(gantt, at_ns),
                  glyph_of(gantt, at_ns == 0 ? "├" : "┼", "+"),
                  STYLE_DIM);
    }
    end_row(gantt);
}

/* Return the glyph of a bar. In colour, the background is the bar. */
static const char *fill_of(const struct gantt *gantt, uint32_t class_ix)
{
    return gantt->options.colour ? " " : gantt->marks[class_ix];
}

/* Position and kind of a bar. */
struct stroke {
    uint32_t first; /* columns */
    uint32_t end;   /* after the last column */
    uint32_t class_ix;
    bool bad;
};

static void draw_stroke(struct gantt *gantt, const struct stroke *stroke)
{
    uint32_t style = STYLE_CLASS + stroke->class_ix;
    for (uint32_t ix = stroke->first; ix < stroke->end; ix++) {
        put_glyph(gantt, ix, fill_of(gantt, stroke->class_ix), style);
    }
    if (stroke->bad) {
        gantt->has_bad_end = true;
        put_glyph(gantt, stroke->end - 1, "!", style);
    }
}

/* Write the name of a bar, if it fits. */
static void put_name(struct gantt *gantt,
                     const struct chart_bar *bar,
                     const struct stroke *stroke)
{
    /* An edge, and without colour a class mark; a letter needs a gap so that it
     * does not read as part of the name. */
    uint32_t taken = gantt->options.colour ? 1 : gantt->shaded ? 2 : 3;
    taken += stroke->bad ? 1 : 0;
    uint32_t width = stroke->end - stroke->first;
    struct strbuf name = {0};
    if (width > taken &&
        chart_add_name(&name, &gantt->chart, bar, width - taken)) {
        uint32_t style = STYLE_CLASS + stroke->class_ix;
        uint32_t at = put_text(gantt,
                               stroke->first + 1,
                               stroke->end,
                               strbuf_text(&name),
                               style);
        if (at + 1 + (stroke->bad ? 1 : 0) < stroke->end) {
            put_glyph(gantt, at, " ", style);
        }
    }
    strbuf_release(&name);
}

/* Draw the bar of the cells from `first` to before `end`. */
static void draw_bar(struct gantt *gantt, uint32_t first, uint32_t end)
{
    const struct chart *chart = &gantt->chart;
    const struct chart_bar *bar = &chart->bars[gantt->cells[first]];
    struct stroke stroke = {
        .first = gantt->label_width + first,
        .end = gantt->label_width + end,
        .class_ix = bar->class_ix,
        .bad = chart_is_bad(chart->result->spans[bar->span].end),
    };
    draw_stroke(gantt, &stroke);
    if (end - first > 1) {
        put_glyph(gantt,
                  stroke.first,
                  glyph_of(gantt, "▏", "|"),
                  STYLE_CLASS + bar->class_ix);
        put_name(gantt, bar, &stroke);
    }
}

static void add_lane(struct gantt *gantt, uint32_t lane)
{
    char label[24];
    snprintf(label, sizeof(label), "slot %u", lane + 1);
    put_text(gantt, 0, gantt->label_width, label, STYLE_PLAIN);
    chart_cells(&gantt->chart,
                lane,
                gantt->chart.end_ns,
                gantt->cells,
                gantt->columns);
    uint32_t first = 0;
    for (uint32_t ix = 1; ix <= gantt->columns; ix++) {
        if (ix < gantt->columns && gantt->cells[ix] == gantt->cells[first]) {
            continue;
        }
        if (gantt->cells[first] != CHART_NONE) {
            draw_bar(gantt, first, ix);
        }
        first = ix;
    }
    end_row(gantt);
}

/* Append one line, cut to the width. */
static void add_line(struct gantt *gantt, const char *text, uint32_t style)
{
    put_text(gantt, 0, gantt->label_width + gantt->columns, text, style);
    end_row(gantt);
}

static void add_more(struct gantt *gantt, uint32_t count, const char *what)
{
    char text[64];
    snprintf(text, sizeof(text), "... and %u more %s", count, what);
    add_line(gantt, text, STYLE_DIM);
}

static void add_lanes(struct gantt *gantt)
{
    uint32_t shown = gantt->chart.lane_count;
    if (shown > gantt->options.rows_max) {
        shown = gantt->options.rows_max;
    }
    for (uint32_t lane = 0; lane < shown; lane++) {
        add_lane(gantt, lane);
    }
    if (shown < gantt->chart.lane_count) {
        add_more(gantt, gantt->chart.lane_count - shown, "slots");
    }
}

/* Append the row of a class's starved periods, with its name and total. */
static void add_starved(struct gantt *gantt, uint32_t class_ix)
{
    const struct chart *chart = &gantt->chart;
    int64_t starved_ns = chart_starved_ns(chart, class_ix);
    if (starved_ns <= 0) {
        return;
    }
    uint32_t last = gantt->label_width;
    uint32_t end = gantt->label_width + gantt->columns;
    put_text(gantt, 0, gantt->label_width, "starved", STYLE_ALARM);
    for (uint32_t ix = 0; ix < chart->period_count; ix++) {
        const struct chart_period *period = &chart->periods[ix];
        if (!period->starved || period->class_ix != class_ix) {
            continue;
        }
        last =
            put_period(gantt, *period, glyph_of(gantt, "▀", "^"), STYLE_ALARM);
    }
    struct strbuf text = {0};
    strbuf_addf(&text, "%s ", chart->plan->classes[class_ix].name);
    duration_add(&text, starved_ns);
    if (last + 1 + text.len > end) { /* no space: use a new line */
        end_row(gantt);
        last = gantt->label_width - 1;
    }
    put_text(gantt, last + 1, end, strbuf_text(&text), STYLE_ALARM);
    strbuf_release(&text);
    end_row(gantt);
}

/* Append the row of a task: light while it waits, then a bar, per attempt. */
static void add_task(struct gantt *gantt, uint32_t task)
{
    const struct sim_result *result = gantt->chart.result;
    const struct plan_task *about = &gantt->chart.plan->tasks[task];
    uint32_t room = gantt->label_width - 1;
    uint32_t end = put_text(gantt, 0, room, about->id, STYLE_PLAIN);
    if (strlen(about->id) > room) {
        put_glyph(gantt, end - 1, glyph_of(gantt, "…", "~"), STYLE_PLAIN);
    }
    for (uint32_t ix = 0; ix < result->span_count; ix++) {
        const struct sim_span *span = &result->spans[ix];
        if (span->task != task) {
            continue;
        }
        struct chart_period wait = {
            .start_ns = span->ready_ns,
            .end_ns = span->start_ns,
        };
        put_period(gantt, wait, glyph_of(gantt, "·", "."), STYLE_DIM);
        struct stroke stroke = {
            .first = edge_of(gantt, span->start_ns),
            .end = edge_of(gantt, span->end_ns),
            .class_ix = about->class_ix,
            .bad = chart_is_bad(span->end),
        };
        if (stroke.end <= stroke.first) { /* too short to show */
            stroke.first = column_of(gantt, span->start_ns);
            stroke.end = stroke.first + 1;
        }
        draw_stroke(gantt, &stroke);
    }
    end_row(gantt);
}

/* Append tasks in order of their first start, up to the row limit. */
static void add_tasks(struct gantt *gantt)
{
    const struct sim_result *result = gantt->chart.result;
    uint32_t task_count = gantt->chart.plan->task_count;
    bool *seen = mem_zalloc(task_count, sizeof(*seen));
    uint32_t shown = 0;
    uint32_t more = 0;
    for (uint32_t ix = 0; ix < result->span_count; ix++) {
        uint32_t task = result->spans[ix].task;
        if (seen[task]) {
            continue;
        }
        seen[task] = true;
        if (shown < gantt->options.rows_max) {
            shown++;
            add_task(gantt, task);
        } else {
            more++;
        }
    }
    if (more > 0) {
        add_more(gantt, more, "tasks");
    }
    mem_free(seen);
}

/* Return a letter that no other class has: from its name, if possible. */
static char letter_of(const char *name, bool used[256])
{
    static const char others[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "abcdefghijklmnopqrstuvwxyz0123456789";
    for (; *name != '\0'; name++) {
        bool is_lower = *name >= 'a' && *name <= 'z';
        char letter = is_lower ? (char)(*name - 'a' + 'A') : *name;
        if (letter >= 'A' && letter <= 'Z' && !used[(unsigned char)letter]) {
            return letter;
        }
    }
    for (const char *next = others; *next != '\0'; next++) {
        if (!used[(unsigned char)*next]) {
            return *next;
        }
    }
    return '#';
}

/* Choose glyphs for the classes that ran: shades if enough, else letters. */
static void choose_marks(struct gantt *gantt)
{
    static const char *const shades[] = {"█", "▒", "▓", "░"};
    const struct plan *plan = gantt->chart.plan;
    bool used[256] = {false};
    uint32_t used_count = 0;
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        used_count += gantt->chart.class_spans[ix] > 0 ? 1 : 0;
    }
    gantt->shaded = gantt->options.unicode && used_count <= ARRAY_COUNT(shades);
    uint32_t next = 0;
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        if (gantt->chart.class_spans[ix] == 0) {
            continue;
        }
        if (gantt->shaded) {
            memcpy(gantt->marks[ix], shades[next], strlen(shades[next]) + 1);
            next++;
            continue;
        }
        char letter = letter_of(plan->classes[ix].name, used);
        used[(unsigned char)letter] = true;
        gantt->marks[ix][0] = letter;
    }
}

/* Position of the next legend entry. */
struct legend {
    struct gantt *gantt;
    uint32_t column;
};

/* Append a sample and its meaning; on a new line if this line is full. */
static void add_entry(struct legend *legend,
                      const char *glyph,
                      uint32_t style,
                      const char *text)
{
    enum { GAP = 3 };
    struct gantt *gantt = legend->gantt;
    uint32_t end = gantt->label_width + gantt->columns;
    uint32_t sample = style >= STYLE_CLASS ? 2 : 1;
    if (legend->column > 0 &&
        legend->column + GAP + sample + 1 + strlen(text) > end) {
        end_row(gantt);
        legend->column = 0;
    }
    uint32_t at = legend->column + (legend->column > 0 ? GAP : 0);
    for (uint32_t ix = 0; ix < sample; ix++) {
        put_glyph(gantt, at + ix, glyph, style);
    }
    at += sample + 1;
    legend->column = put_text(gantt, at, end, text, STYLE_PLAIN);
}

static void add_legend(struct gantt *gantt)
{
    const struct plan *plan = gantt->chart.plan;
    struct legend legend = {gantt, 0};
    struct strbuf text = {0};
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        uint32_t count = gantt->chart.class_spans[ix];
        if (count > 0) {
            strbuf_clear(&text);
            strbuf_addf(&text, "%s %u", plan->classes[ix].name, count);
            add_entry(&legend,
                      fill_of(gantt, ix),
                      STYLE_CLASS + ix,
                      strbuf_text(&text));
        }
    }
    if (gantt->options.by_task) {
        add_entry(&legend, glyph_of(gantt, "·", "."), STYLE_DIM, "waiting");
    }
    if (gantt->has_bad_end) {
        add_entry(&legend, "!", STYLE_ALARM, "did not succeed");
    }
    if (legend.column > 0) {
        end_row(gantt);
    }
    strbuf_release(&text);
}

static void add_summary(struct gantt *gantt)
{
    const struct sim_result *result = gantt->chart.result;
    uint32_t lanes = gantt->chart.lane_count;
    struct strbuf text = {0};
    strbuf_adds(&text, "makespan ");
    duration_add(&text, result->makespan_ns);
    strbuf_addf(&text,
                ", %u slot%s %u %% busy",
                lanes,
                lanes == 1 ? "" : "s",
                (unsigned)(result->slot_use * 100 + 0.5));
    add_line(gantt, strbuf_text(&text), STYLE_PLAIN);
    strbuf_release(&text);
}

/* Return the width of "slot 12 " and "starved ", or for ids up to a third. */
static uint32_t label_width_of(const struct gantt *gantt)
{
    char label[24];
    const struct chart *chart = &gantt->chart;
    int len = snprintf(label, sizeof(label), "slot %u ", chart->lane_count);
    uint32_t width = len < 8 ? 8 : (uint32_t)len;
    if (!gantt->options.by_task) {
        return width;
    }
    for (uint32_t ix = 0; ix < chart->result->span_count; ix++) {
        uint32_t task = chart->result->spans[ix].task;
        size_t id_len = strlen(chart->plan->tasks[task].id) + 1;
        width = id_len > width ? (uint32_t)id_len : width;
    }
    uint32_t third = gantt->options.width / 3;
    return width < third ? width : third;
}

static void begin(struct gantt *gantt)
{
    struct gantt_options *options = &gantt->options;
    options->width = options->width == 0 ? GANTT_WIDTH : options->width;
    if (options->width < GANTT_WIDTH_MIN) {
        options->width = GANTT_WIDTH_MIN;
    }
    if (options->width > GANTT_WIDTH_MAX) {
        options->width = GANTT_WIDTH_MAX;
    }
    options->rows_max = options->rows_max == 0 ? GANTT_ROWS : options->rows_max;
    gantt->label_width = label_width_of(gantt);
    gantt->columns = options->width - gantt->label_width;
    gantt->row = mem_zalloc(options->width, sizeof(*gantt->row));
    gantt->cells = mem_zalloc(gantt->columns, sizeof(*gantt->cells));
    gantt->marks =
        mem_zalloc(gantt->chart.plan->class_count, sizeof(*gantt->marks));
    choose_marks(gantt);
    clear_row(gantt);
}

void gantt_text(struct strbuf *out,
                const struct plan *plan,
                const struct sim_result *result,
                const struct gantt_options *options)
{
    struct gantt gantt = {.out = out, .options = *options};
    chart_init(&gantt.chart, plan, result);
    begin(&gantt);
    if (gantt.chart.bar_count == 0) {
        add_line(&gantt, "nothing ran", STYLE_PLAIN);
    } else {
        add_axis(&gantt);
        add_lanes(&gantt);
        for (uint32_t ix = 0; ix < plan->class_count; ix++) {
            add_starved(&gantt, ix);
        }
        if (options->by_task) {
            strbuf_adds(out, "\n");
            add_axis(&gantt);
            add_tasks(&gantt);
        }
        strbuf_adds(out, "\n");
        add_legend(&gantt);
    }
    add_summary(&gantt);
    mem_free(gantt.row);
    mem_free(gantt.cells);
    mem_free(gantt.marks);
    chart_release(&gantt.chart);
}
