/* SPDX-License-Identifier: MIT */
/*
 * Screen layout of `sluice top`. A narrow terminal stacks all panels; a wide
 * terminal has limits, usage and events in a second column. Heights are
 * assigned in two rounds: first the minimum of each panel, in order of
 * importance, as long as it fits; then the rows that each could use. So a small
 * terminal loses whole panels, the least important first.
 */
#include "term/top_draw_internal.h"

#include "base/duration.h"
#include "base/macros.h"
#include "base/plain.h"
#include "view/lines.h"

#include <stdio.h>
#include <string.h>

enum {
    WIDE_COLUMNS = 120,  /* minimum for two columns */
    TWO_LINES_ROWS = 14, /* minimum for a separate message line */
    RUNS_MAX = 5,
    GAUGES_MAX = 6,
    EVENTS_MIN = 2,
    ROWS_SMALL = 30, /* below, limits and events give way to tasks */
};

/* Panels, by importance to the user. */
enum panel {
    PANEL_SLOTS,
    PANEL_TASKS,
    PANEL_RUNS,
    PANEL_USAGE,
    PANEL_LIMITS,
    PANEL_EVENTS,
    PANEL_COUNT,
};

/* --- text and bars ------------------------------------------------------ */

uint32_t top_draw_put(struct top_canvas *canvas,
                      const struct grid_area *area,
                      struct grid_text text)
{
    (void)grid_put(canvas->grid, area, &text);
    return text.column + text.columns;
}

void top_draw_cell(struct top_canvas *canvas,
                   const struct grid_area *area,
                   struct grid_text *cell,
                   const char *text)
{
    cell->text = text;
    cell->column = top_draw_put(canvas, area, *cell) + 1;
}

uint32_t top_draw_add(struct top_canvas *canvas,
                      const struct grid_area *area,
                      struct grid_text text)
{
    text.columns = area->columns;
    return text.column + grid_put(canvas->grid, area, &text);
}

uint32_t top_draw_line(struct top_canvas *canvas,
                       const struct grid_area *row,
                       uint32_t column,
                       unsigned style,
                       const char *text)
{
    return top_draw_add(
        canvas,
        row,
        (struct grid_text){.column = column, .style = style, .text = text});
}

void top_draw_bar(struct top_canvas *canvas,
                  const struct grid_area *area,
                  struct grid_text place,
                  double part)
{
    part = part < 0 ? 0 : part > 1 ? 1 : part;
    uint32_t columns = place.columns;
    uint32_t full = (uint32_t)(part * columns + 0.5);
    full = part > 0 && full == 0 ? 1 : full;
    place.columns = full;
    grid_fill(canvas->grid, area, &place, canvas->unicode ? 0x2501 : '#');
    place.column += full;
    place.columns = columns - full;
    place.style = GRID_DIM;
    grid_fill(canvas->grid, area, &place, canvas->unicode ? 0x2500 : '-');
}

void top_draw_title(struct top_canvas *canvas,
                    struct grid_area *area,
                    const char *title,
                    bool focus)
{
    struct grid_area row = grid_take_rows(area, 1);
    struct grid_text line = {.columns = row.columns, .style = GRID_DIM};
    grid_fill(canvas->grid, &row, &line, canvas->unicode ? 0x2500 : '-');
    struct strbuf text = {0};
    strbuf_addf(&text, " %s ", title);
    (void)top_draw_put(canvas,
                       &row,
                       (struct grid_text){
                           .column = 1,
                           .columns = row.columns > 2 ? row.columns - 2 : 0,
                           .style = focus ? GRID_CYAN | GRID_BOLD : GRID_BOLD,
                           .text = strbuf_text(&text),
                       });
    strbuf_release(&text);
}

void top_draw_mark(struct top_canvas *canvas,
                   const struct grid_area *area,
                   uint32_t row,
                   bool focus)
{
    (void)top_draw_add(
        canvas,
        area,
        (struct grid_text){.row = row, .text = ">", .style = GRID_BOLD});
    grid_mark(canvas->grid, area, row, focus ? GRID_REVERSE : GRID_BOLD);
}

/* --- head --------------------------------------------------------------- */

static void draw_bar_of_title(struct top_canvas *canvas, struct grid_area row)
{
    const struct model *model = canvas->model;
    struct strbuf clock = {0};
    struct strbuf name = {0};
    plain_add_clock(&clock, model->wall_ns, PLAIN_SECONDS);
    strbuf_adds(&name, " sluice top  ");
    plain_add(&name, model->store);
    strbuf_adds(&name, canvas->top->read_only ? "  read-only" : "");
    uint32_t room = row.columns > clock.len + 2
                        ? row.columns - (uint32_t)clock.len - 2
                        : row.columns;
    (void)top_draw_put(
        canvas,
        &row,
        (struct grid_text){.columns = room, .text = strbuf_text(&name)});
    if (room < row.columns) {
        (void)top_draw_put(canvas,
                           &row,
                           (struct grid_text){.column = room + 1,
                                              .columns = (uint32_t)clock.len,
                                              .text = strbuf_text(&clock)});
    }
    grid_mark(canvas->grid, &row, 0, GRID_REVERSE);
    strbuf_release(&clock);
    strbuf_release(&name);
}

static void draw_scheduler(struct top_canvas *canvas,
                           const struct grid_area *row)
{
    const struct model *model = canvas->model;
    struct strbuf text = {0};
    bool well = model->well && model->trouble == NULL;
    if (model->trouble != NULL) {
        strbuf_adds(&text, "cannot read the store: ");
        plain_add(&text, model->trouble);
    } else {
        plain_add(&text, model->scheduler);
    }
    unsigned style = well ? GRID_GREEN : GRID_RED | GRID_BOLD;
    uint32_t column = top_draw_line(canvas, row, 1, style, strbuf_text(&text));
    if (model->draining) {
        (void)top_draw_line(canvas,
                            row,
                            column + 2,
                            GRID_YELLOW | GRID_BOLD,
                            "DRAINING: no session starts");
    }
    strbuf_release(&text);
}

void top_draw_cap(struct strbuf *out, const struct model_run *run)
{
    strbuf_addf(out, "%u in flight, ", run->sessions);
    if (run->cap == LIMIT_NONE) {
        strbuf_adds(out, "no cap");
    } else {
        strbuf_addf(out, "cap %lld", (long long)run->cap);
    }
}

void top_draw_counts(struct strbuf *out, const struct model_run *run)
{
    static const enum task_state order[] = {
        TASK_PARKED,
        TASK_FAILED,
        TASK_READY,
        TASK_WAITING,
        TASK_SKIPPED,
        TASK_CANCELLED,
    };
    strbuf_addf(out, "%u of %u done", run->counts[TASK_DONE], run->task_count);
    lines_add_counts(out, ", ", run->counts, order, ARRAY_COUNT(order));
}

const char *top_draw_flag(const struct model_run *run)
{
    return run->finished    ? "FINISHED  "
           : run->cancelled ? "CANCELLED  "
           : run->paused    ? "PAUSED  "
           : run->stopped == SCHED_STOPPED_DEADLINE
               ? "STOPPED by its deadline  "
           : run->stopped == SCHED_STOPPED_FAILURE ? "STOPPED by a failure  "
                                                   : "";
}

/* Append "2h 10m to 2h 43m left; ": by the forecast, half of the runs like this
 * one end within the first time, 90 % within the second. */
static void
add_end(struct strbuf *out, const struct model_run *run, int64_t wall_ns)
{
    const struct eta_end *end = &run->forecast;
    int64_t gone_ns = wall_ns - run->forecast_ns;
    if (end->runs > 0) {
        duration_add(out, end->p50_ns > gone_ns ? end->p50_ns - gone_ns : 0);
        strbuf_adds(out, " to ");
        duration_add(out, end->p90_ns > gone_ns ? end->p90_ns - gone_ns : 0);
    } else {
        strbuf_adds(out, "about ");
        duration_add(out, run->left_ns);
    }
    strbuf_adds(out, " left; ");
}

static void draw_run(struct top_canvas *canvas, const struct grid_area *row)
{
    const struct model *model = canvas->model;
    if (model->run == MODEL_NONE) {
        (void)top_draw_line(
            canvas,
            row,
            1,
            GRID_PLAIN,
            "no unfinished run; 'sluice status --all' lists finished ones");
        return;
    }
    const struct model_run *run = &model->runs[model->run];
    struct strbuf text = {0};
    strbuf_adds(&text, "run ");
    plain_add(&text, run->id);
    strbuf_adds(&text, "  ");
    uint32_t column =
        top_draw_line(canvas, row, 1, GRID_BOLD, strbuf_text(&text));
    column = top_draw_line(canvas,
                           row,
                           column,
                           GRID_YELLOW | GRID_BOLD,
                           top_draw_flag(run));
    strbuf_clear(&text);
    top_draw_cap(&text, run);
    strbuf_adds(&text, "; ");
    if (run->left_ns == SCHED_NEVER) {
        strbuf_adds(&text, "the cap is 0: no session starts; ");
    } else if (run->left_ns > 0 && !run->finished) {
        add_end(&text, run, model->wall_ns);
    }
    top_draw_counts(&text, run);
    if (run->snoozed > 0) {
        strbuf_addf(&text, ", %u snoozed", run->snoozed);
    }
    (void)top_draw_line(canvas, row, column, GRID_PLAIN, strbuf_text(&text));
    strbuf_release(&text);
}

/* Draw the progress bar: done, in flight, in trouble, left. */
static void draw_progress(struct top_canvas *canvas,
                          const struct grid_area *row)
{
    const struct model *model = canvas->model;
    if (model->run == MODEL_NONE) {
        return;
    }
    static const struct {
        unsigned style;
        char ascii;
    } parts[MODEL_BAR_PARTS] = {
        {GRID_GREEN, '#'},
        {GRID_CYAN, '>'},
        {GRID_RED, '!'},
    };
    uint32_t width = row->columns > 2 ? row->columns - 2 : 0;
    uint32_t ends[MODEL_BAR_PARTS];
    struct grid_text place = {
        .column = 1,
        .columns = width,
        .style = GRID_DIM,
    };
    grid_fill(canvas->grid, row, &place, canvas->unicode ? 0x2500 : '-');
    model_bar(&model->runs[model->run], width, ends);
    for (uint32_t ix = 0; ix < MODEL_BAR_PARTS; ix++) {
        place.columns = 1 + ends[ix] - place.column;
        place.style = parts[ix].style;
        grid_fill(canvas->grid,
                  row,
                  &place,
                  canvas->unicode ? 0x2501 : (uint32_t)parts[ix].ascii);
        place.column += place.columns;
    }
}

/* --- sharing the rows --------------------------------------------------- */

/* Return the rows that a panel could use, with its title; 0: no panel. */
static uint32_t
wanted_rows(const struct top_canvas *canvas, enum panel panel, uint32_t columns)
{
    const struct model *model = canvas->model;
    const struct top *top = canvas->top;
    uint32_t in_row = top_draw_limits_in_row(columns);
    bool usage = model->gauge_count > 0 || model->usage != NULL;
    switch (panel) {
    case PANEL_SLOTS:
        return 1 + top_draw_max(top->slot_count, 1);
    case PANEL_TASKS:
        return 1 + top_draw_max(top->row_count, 1);
    case PANEL_RUNS:
        return model->run_count > 1
                   ? 1 + top_draw_min(model->run_count, RUNS_MAX)
                   : 0;
    case PANEL_USAGE:
        return usage ? 1U + (model->usage != NULL ? 1 : 0) +
                           top_draw_min(model->gauge_count, GAUGES_MAX)
                     : 0;
    case PANEL_LIMITS:
        return model->limit_count > 0
                   ? 1 + (model->limit_count + in_row - 1) / in_row
                   : 0;
    case PANEL_EVENTS:
        return model->event_count > 0 ? 1 + model->event_count : 0;
    case PANEL_COUNT:
        return 0;
    }
    return 0;
}

/* Return the minimum rows of a panel. */
static uint32_t least_rows(enum panel panel, uint32_t wanted)
{
    static const uint32_t least[] = {
        [PANEL_SLOTS] = 3,
        [PANEL_TASKS] = 3,
        [PANEL_RUNS] = 3,
        [PANEL_USAGE] = 3,
        [PANEL_LIMITS] = 2,
        [PANEL_EVENTS] = 1 + EVENTS_MIN,
    };
    return top_draw_min(least[panel], wanted);
}

/* Give a panel more rows, at most `up_to` in total. */
static void
grow(uint32_t *rows, const uint32_t *wanted, uint32_t up_to, uint32_t *left)
{
    uint32_t goal = top_draw_min(*wanted, up_to);
    uint32_t more = goal > *rows ? top_draw_min(goal - *rows, *left) : 0;
    *rows += more;
    *left -= more;
}

/* Divide the rows of an area among the panels that are `there`. */
static void share(const struct top_canvas *canvas,
                  const struct grid_area *area,
                  const bool *there,
                  uint32_t *rows)
{
    uint32_t wanted[PANEL_COUNT] = {0};
    uint32_t left = area->rows;
    bool narrow = there[PANEL_TASKS] && there[PANEL_EVENTS];
    bool small = area->rows < ROWS_SMALL;
    for (uint32_t ix = 0; ix < PANEL_COUNT; ix++) {
        wanted[ix] =
            there[ix] ? wanted_rows(canvas, (enum panel)ix, area->columns) : 0;
        uint32_t least = least_rows((enum panel)ix, wanted[ix]);
        rows[ix] = least <= left ? least : 0;
        left -= rows[ix];
    }
    static const enum panel order[] = {
        PANEL_RUNS,
        PANEL_USAGE,
        PANEL_SLOTS,
        PANEL_LIMITS,
        PANEL_EVENTS,
        PANEL_TASKS,
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(order); ix++) {
        enum panel panel = order[ix];
        uint32_t most = UINT32_MAX;
        if (panel == PANEL_SLOTS) {
            most = rows[panel] + left / 2;
        } else if (narrow && panel == PANEL_LIMITS) {
            most = small ? 3 : 5;
        } else if (narrow && panel == PANEL_EVENTS) {
            most = small ? rows[panel] : rows[panel] + left / 4;
        }
        if (rows[panel] > 0) {
            grow(&rows[panel], &wanted[panel], most, &left);
        }
    }
    for (uint32_t ix = 0; ix < PANEL_COUNT; ix++) {
        if (rows[ix] > 0) {
            grow(&rows[ix], &wanted[ix], UINT32_MAX, &left);
        }
    }
}

/* Draw the panels that are `there`, stacked. */
static void
draw_panels(struct top_canvas *canvas, struct grid_area area, const bool *there)
{
    typedef void (*draw_fn)(struct top_canvas * canvas, struct grid_area area);
    static const struct {
        enum panel panel;
        draw_fn draw;
    } panels[] = {
        {PANEL_RUNS, top_draw_runs},
        {PANEL_SLOTS, top_draw_slots},
        {PANEL_TASKS, top_draw_tasks},
        {PANEL_LIMITS, top_draw_limits},
        {PANEL_USAGE, top_draw_usage},
        {PANEL_EVENTS, top_draw_events},
    };
    uint32_t rows[PANEL_COUNT] = {0};
    share(canvas, &area, there, rows);
    for (size_t ix = 0; ix < ARRAY_COUNT(panels); ix++) {
        uint32_t height = rows[panels[ix].panel];
        if (height > 0) {
            panels[ix].draw(canvas, grid_take_rows(&area, height));
        }
    }
}

/* --- foot and other pictures -------------------------------------------- */

static void put_hints(struct top_canvas *canvas, const struct grid_area *row)
{
    const char *hints =
        canvas->top->read_only
            ? "?:help q:quit i:view l:log w:why /:find a:all Tab:panel  "
              "read-only"
            : "?:help q:quit i:view l:log w:why /:find p:pause +-:cap h:hold "
              "r:retry A:answer";
    (void)top_draw_line(canvas, row, 0, GRID_DIM, hints);
}

/* Draw the current question or message; false if none. */
static bool put_message(struct top_canvas *canvas, const struct grid_area *row)
{
    const struct top *top = canvas->top;
    struct strbuf text = {0};
    unsigned style = top->bad ? GRID_RED | GRID_BOLD : GRID_BOLD;
    if (top->mode == TOP_CONFIRM) {
        strbuf_addf(&text,
                    "%s %s%s? y/n",
                    top->asked.verb,
                    top->asked.issue ? "all that is left of " : "",
                    top->asked.task);
        style = GRID_YELLOW | GRID_BOLD;
    } else if (top->mode == TOP_ANSWER) {
        /* Show the end of a long answer. */
        size_t room = row->columns > 40 ? row->columns - 40 : 1;
        size_t hidden = top->answer.len > room ? top->answer.len - room : 0;
        strbuf_addf(&text,
                    "answer %s: %s%s_",
                    top->asked.task,
                    hidden > 0 ? "..." : "",
                    strbuf_text(&top->answer) + hidden);
    } else if (top->mode == TOP_FILTER) {
        strbuf_addf(&text, "find: %s_", top->filter);
    } else {
        strbuf_adds(&text, strbuf_text(&top->message));
    }
    (void)top_draw_line(canvas, row, 1, style, strbuf_text(&text));
    bool any = text.len > 0;
    strbuf_release(&text);
    return any;
}

static void draw_foot(struct top_canvas *canvas, struct grid_area area)
{
    struct grid_area first = grid_take_rows(&area, 1);
    if (area.rows > 0) {
        (void)put_message(canvas, &first);
        put_hints(canvas, &area);
    } else if (!put_message(canvas, &first)) {
        put_hints(canvas, &first);
    }
}

static void draw_main(struct top_canvas *canvas, struct grid_area area)
{
    static const bool all[] = {true, true, true, true, true, true};
    static const bool left[] = {true, true, true, false, false, false};
    static const bool right[] = {false, false, false, true, true, true};
    bool roomy = area.rows >= TWO_LINES_ROWS;
    struct grid_area row = grid_take_rows(&area, 1);
    draw_bar_of_title(canvas, row);
    row = grid_take_rows(&area, 1);
    draw_scheduler(canvas, &row);
    row = grid_take_rows(&area, 1);
    draw_run(canvas, &row);
    if (roomy) {
        row = grid_take_rows(&area, 1);
        draw_progress(canvas, &row);
    }
    struct grid_area body =
        grid_take_rows(&area,
                       area.rows - top_draw_min(area.rows, roomy ? 2 : 1));
    draw_foot(canvas, area);
    if (body.columns < WIDE_COLUMNS) {
        draw_panels(canvas, body, all);
    } else {
        struct grid_area half = grid_take_columns(&body, body.columns * 3 / 5);
        (void)grid_take_columns(&body, 1);
        draw_panels(canvas, half, left);
        draw_panels(canvas, body, right);
    }
}

/* Draw a title bar and remove its row from the area. */
static void
draw_bar(struct top_canvas *canvas, struct grid_area *area, const char *text)
{
    struct grid_area title = grid_take_rows(area, 1);
    (void)top_draw_line(canvas, &title, 0, GRID_PLAIN, text);
    grid_mark(canvas->grid, &title, 0, GRID_REVERSE);
}

static void draw_help(struct top_canvas *canvas, struct grid_area area)
{
    static const struct {
        const char *keys;
        const char *text;
    } lines[] = {
        {"Up Down j k", "select a task or issue"},
        {"PgUp PgDn", "a page further"},
        {"Home End g G", "the first, the last"},
        {"Tab", "next panel: runs, slots, tasks"},
        {"i", "a line per issue with its stages, or one for each task"},
        {"l  Enter", "the task's log; it follows while it grows"},
        {"w", "why the task is not running, and what to do"},
        {"/", "find tasks by id; Esc: list all"},
        {"a", "list finished tasks, too"},
        {"p", "pause or resume the run; resume a stopped run"},
        {"+  -", "raise or lower the cap"},
        {"h", "hold or release the task"},
        {"r", "retry the task"},
        {"s", "skip the task (asks)"},
        {"c", "cancel the task (asks)"},
        {"A", "answer the task's question: type it, then Enter"},
        {"o", "approve the task, which waits for it"},
        {"q", "quit; sessions are not affected"},
    };
    draw_bar(canvas, &area, " sluice top: keys");
    for (uint32_t ix = 0; ix < ARRAY_COUNT(lines); ix++) {
        struct grid_area row = grid_take_rows(&area, 1);
        struct grid_text cell = {
            .column = 1,
            .columns = 13,
            .style = GRID_BOLD,
        };
        top_draw_cell(canvas, &row, &cell, lines[ix].keys);
        (void)top_draw_line(canvas,
                            &row,
                            cell.column,
                            GRID_PLAIN,
                            lines[ix].text);
    }
    (void)top_draw_line(
        canvas,
        &area,
        1,
        GRID_PLAIN,
        canvas->unicode
            ? "stages: \u2713 done \u25b6 running \u25cb ready \u00b7 waiting "
              "= held ! needs you ? in doubt \u2717 failed - skipped"
            : "stages: + done > running o ready . waiting = held ! needs you "
              "? in doubt x failed - skipped");
    (void)grid_take_rows(&area, 2);
    (void)top_draw_line(canvas,
                        &area,
                        1,
                        GRID_DIM,
                        canvas->top->read_only
                            ? "read-only: keys that change something are "
                              "disabled. Any key: back"
                            : "Any key: back");
}

static void draw_pager(struct top_canvas *canvas, struct grid_area area)
{
    struct top *top = canvas->top;
    struct strbuf text = {0};
    strbuf_addf(&text, " %s", strbuf_text(&top->title));
    strbuf_adds(&text, top->running ? "" : "  (end)");
    strbuf_adds(&text, top->pager.cut ? "  (the start is omitted)" : "");
    draw_bar(canvas, &area, strbuf_text(&text));
    strbuf_release(&text);
    struct grid_area body =
        grid_take_rows(&area, area.rows > 0 ? area.rows - 1 : 0);
    pager_draw(&top->pager, canvas->grid, &body);
    if (pager_is_empty(&top->pager)) {
        (void)top_draw_line(canvas,
                            &body,
                            1,
                            GRID_DIM,
                            top->running ? "(nothing yet)" : "(nothing)");
    }
    (void)top_draw_line(
        canvas,
        &area,
        0,
        GRID_DIM,
        top->pager.follow
            ? "q:back  Up Down PgUp PgDn Home End  follows"
            : "q:back  Up Down PgUp PgDn Home End  End follows again");
}

void top_draw(struct grid *grid,
              struct top *top,
              const struct model *model,
              bool unicode)
{
    struct top_canvas canvas = {
        .grid = grid,
        .top = top,
        .model = model,
        .unicode = unicode,
    };
    struct grid_area area = grid_whole(grid);
    if (area.columns < TOP_DRAW_COLUMNS_MIN || area.rows < TOP_DRAW_ROWS_MIN) {
        (void)top_draw_line(&canvas, &area, 0, GRID_PLAIN, "too small");
        return;
    }
    switch (top->mode) {
    case TOP_HELP:
        draw_help(&canvas, area);
        break;
    case TOP_PAGER:
        draw_pager(&canvas, area);
        break;
    case TOP_MAIN:
    case TOP_FILTER:
    case TOP_CONFIRM:
    case TOP_ANSWER:
        draw_main(&canvas, area);
        break;
    }
}
