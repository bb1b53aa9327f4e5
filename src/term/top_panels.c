/* SPDX-License-Identifier: MIT */
/*
 * Panels of `sluice top`. Each draws into its area as much as fits.
 */
#include "term/top_draw_internal.h"

#include "base/duration.h"
#include "base/macros.h"
#include "base/plain.h"
#include "view/labels.h"
#include "view/lines.h"
#include "view/usage.h"

#include <string.h>

enum {
    LIMIT_COLUMNS = 38, /* of a limit in a row of limits */
    STATE_COLUMNS = 9,  /* "starting" and a blank */
};

/* Return the first position to show, so that `chosen` is visible. */
static uint32_t
scroll(uint32_t first, uint32_t count, uint32_t room, uint32_t chosen)
{
    if (room == 0 || count <= room) {
        return 0;
    }
    if (chosen < count && chosen < first) {
        first = chosen;
    }
    if (chosen < count && chosen >= first + room) {
        first = chosen - room + 1;
    }
    return top_draw_min(first, count - room);
}

/* --- panels ------------------------------------------------------------- */

void top_draw_runs(struct top_canvas *canvas, struct grid_area area)
{
    const struct model *model = canvas->model;
    struct top *top = canvas->top;
    bool focus = top->panel == TOP_RUNS;
    struct strbuf text = {0};
    strbuf_addf(&text, "runs: %u", model->run_count);
    top_draw_title(canvas, &area, strbuf_text(&text), focus);
    top->first_run =
        scroll(top->first_run, model->run_count, area.rows, model->run);
    for (uint32_t row = 0; row < area.rows; row++) {
        uint32_t ix = top->first_run + row;
        if (ix >= model->run_count) {
            break;
        }
        const struct model_run *run = &model->runs[ix];
        strbuf_clear(&text);
        plain_add(&text, run->id);
        struct grid_text cell = {
            .row = row,
            .column = 1,
            .columns = area.columns / 3,
        };
        top_draw_cell(canvas, &area, &cell, strbuf_text(&text));
        strbuf_clear(&text);
        strbuf_addf(&text, "%s", top_draw_flag(run));
        top_draw_cap(&text, run);
        strbuf_adds(&text, "; ");
        top_draw_counts(&text, run);
        cell.text = strbuf_text(&text);
        (void)top_draw_add(canvas, &area, cell);
        if (ix == model->run) {
            top_draw_mark(canvas, &area, row, focus);
        }
    }
    strbuf_release(&text);
}

/* Append "12s of 2m"; return whether it takes longer than expected. */
static bool add_time(struct strbuf *out,
                     const struct model *model,
                     const struct model_slot *slot)
{
    int64_t gone_ns = model->wall_ns - slot->since_ns;
    gone_ns = gone_ns > 0 ? gone_ns : 0;
    if (!slot->begun) {
        strbuf_adds(out, "starting ");
    }
    duration_add(out, gone_ns);
    strbuf_adds(out, " of ");
    duration_add(out, slot->expected_ns);
    bool late = slot->begun && gone_ns > slot->expected_ns;
    strbuf_adds(out, late ? " LATE" : "");
    return late;
}

static void draw_slot(struct top_canvas *canvas,
                      const struct grid_area *area,
                      uint32_t row,
                      const struct model_slot *slot)
{
    uint32_t width = area->columns;
    struct strbuf text = {0};
    struct grid_text cell = {
        .row = row,
        .column = 1,
        .columns = top_draw_max(width / 3, 12),
        .style = GRID_CYAN,
    };
    plain_add(&text, slot->task);
    top_draw_cell(canvas, area, &cell, strbuf_text(&text));
    cell.style = GRID_PLAIN;
    if (width >= 56) {
        cell.columns = 10;
        strbuf_clear(&text);
        strbuf_adds(&text, slot->class_name);
        if (slot->queue.place > 0) {
            strbuf_addf(&text, " %u/%u", slot->queue.place, slot->queue.count);
        }
        top_draw_cell(canvas, area, &cell, strbuf_text(&text));
    }
    if (width >= 76) {
        cell.columns = 8;
        top_draw_cell(canvas,
                      area,
                      &cell,
                      slot->repo != NULL ? slot->repo : "");
    }
    strbuf_clear(&text);
    strbuf_addf(&text, "#%u", slot->attempt);
    if (slot->more > 0) {
        strbuf_addf(&text, "+%u", slot->more);
    }
    cell.columns = 4;
    cell.style = slot->attempt > 1 ? GRID_YELLOW : GRID_PLAIN;
    top_draw_cell(canvas, area, &cell, strbuf_text(&text));
    strbuf_clear(&text);
    bool late = add_time(&text, canvas->model, slot);
    cell.columns = 20;
    cell.style = late ? GRID_RED | GRID_BOLD : GRID_PLAIN;
    top_draw_cell(canvas, area, &cell, strbuf_text(&text));
    strbuf_release(&text);
    if (cell.column + 5 <= width && slot->expected_ns > 0) {
        double gone = (double)(canvas->model->wall_ns - slot->since_ns);
        cell.columns = top_draw_min(width - cell.column - 1, 30);
        cell.style = late ? GRID_RED : GRID_GREEN;
        top_draw_bar(canvas, area, cell, gone / (double)slot->expected_ns);
    }
}

void top_draw_slots(struct top_canvas *canvas, struct grid_area area)
{
    const struct model *model = canvas->model;
    struct top *top = canvas->top;
    struct strbuf title = {0};
    strbuf_addf(&title, "slots: %u in use", model->slot_count);
    if (model->run != MODEL_NONE && model->runs[model->run].cap != LIMIT_NONE) {
        strbuf_addf(&title, " of %lld", (long long)model->runs[model->run].cap);
    }
    top_draw_title(canvas, &area, strbuf_text(&title), top->panel == TOP_SLOTS);
    strbuf_release(&title);
    top->first_slot =
        scroll(top->first_slot, top->slot_count, area.rows, top->selected);
    for (uint32_t row = 0; row < area.rows; row++) {
        uint32_t place = top->first_slot + row;
        if (place >= top->slot_count) {
            break;
        }
        draw_slot(canvas, &area, row, &model->slots[top->slots[place]]);
        if (place == top->selected) {
            top_draw_mark(canvas, &area, row, top->panel != TOP_RUNS);
        }
    }
}

unsigned top_draw_style(const struct model_task *task)
{
    static const unsigned styles[TASK_STATE_COUNT] = {
        [TASK_WAITING] = GRID_DIM,
        [TASK_READY] = GRID_YELLOW,
        [TASK_STARTING] = GRID_CYAN,
        [TASK_RUNNING] = GRID_CYAN,
        [TASK_DONE] = GRID_GREEN,
        [TASK_FAILED] = GRID_RED | GRID_BOLD,
        [TASK_PARKED] = GRID_RED | GRID_BOLD,
        [TASK_SKIPPED] = GRID_DIM,
        [TASK_CANCELLED] = GRID_DIM,
    };
    return task->revoked      ? GRID_RED | GRID_BOLD
           : task->unapproved ? GRID_YELLOW | GRID_BOLD
                              : styles[task->state];
}

bool top_draw_is_ended(const struct model_task *task)
{
    return task->state == TASK_DONE || task->state == TASK_FAILED ||
           task->state == TASK_SKIPPED || task->state == TASK_CANCELLED;
}

static void draw_task(struct top_canvas *canvas,
                      const struct grid_area *area,
                      uint32_t row,
                      uint32_t task)
{
    const struct model *model = canvas->model;
    struct model_task about;
    struct strbuf reason = {0};
    struct strbuf id = {0};
    model->describe(model, task, &about, &reason);
    plain_add(&id, about.id);
    struct grid_text cell = {
        .row = row,
        .column = 1,
        .columns = STATE_COLUMNS,
        .style = top_draw_style(&about),
    };
    top_draw_cell(canvas,
                  area,
                  &cell,
                  about.revoked      ? "revoked"
                  : about.unapproved ? "approve"
                                     : sched_state_name(about.state));
    cell.columns = top_draw_max(area->columns / 3, 12);
    cell.style = GRID_PLAIN;
    top_draw_cell(canvas, area, &cell, strbuf_text(&id));
    if (top_draw_is_ended(&about) && about.ran_ns > 0) {
        strbuf_adds(&reason, " after ");
        duration_add(&reason, about.ran_ns);
    }
    cell.text = strbuf_text(&reason);
    (void)top_draw_add(canvas, area, cell);
    strbuf_release(&reason);
    strbuf_release(&id);
}

/* Append "tasks: 1 needs attention, 4 ready, 6 waiting"; the same for issues,
 * some of which are running. */
static void add_tasks_title(struct strbuf *out, const struct top_canvas *canvas)
{
    bool issues = top_lists_issues(canvas->top, canvas->model);
    const uint32_t *counts =
        issues ? canvas->model->issue_counts : canvas->model->part_counts;
    uint32_t people = counts[MODEL_PEOPLE];
    strbuf_adds(out, issues ? "issues: " : "tasks: ");
    if (people > 0) {
        strbuf_addf(out,
                    "%u need%s attention, ",
                    people,
                    people == 1 ? "s" : "");
    }
    if (issues) {
        strbuf_addf(out, "%u running, ", counts[MODEL_FLIGHT]);
    }
    strbuf_addf(out,
                "%u ready, %u waiting",
                counts[MODEL_READY],
                counts[MODEL_WAITING]);
    if (top_lists_ended(canvas->top, canvas->model)) {
        strbuf_addf(out, ", %u finished", counts[MODEL_ENDED]);
    }
    if (canvas->model->labels != NULL) {
        strbuf_adds(out, "; label ");
        labels_add(out, canvas->model->labels);
    }
    if (canvas->top->filter[0] != '\0') {
        strbuf_addf(out, "; with \"%s\"", canvas->top->filter);
    }
}

void top_draw_tasks(struct top_canvas *canvas, struct grid_area area)
{
    const struct model *model = canvas->model;
    struct top *top = canvas->top;
    struct strbuf title = {0};
    add_tasks_title(&title, canvas);
    top_draw_title(canvas, &area, strbuf_text(&title), top->panel == TOP_TASKS);
    strbuf_release(&title);
    uint32_t chosen = top->selected != TOP_GONE && //
                              top->selected >= top->slot_count
                          ? top->selected - top->slot_count
                          : TOP_GONE;
    top->page = area.rows;
    top->first_row = scroll(top->first_row, top->row_count, area.rows, chosen);
    for (uint32_t row = 0; row < area.rows; row++) {
        uint32_t place = top->first_row + row;
        if (place >= top->row_count) {
            break;
        }
        if (top_lists_issues(top, model)) {
            top_draw_issue(canvas,
                           &area,
                           row,
                           &model->issues[top->rows[place]]);
        } else {
            draw_task(canvas, &area, row, model->rows[top->rows[place]].task);
        }
        if (place == chosen) {
            top_draw_mark(canvas, &area, row, top->panel != TOP_RUNS);
        }
    }
}

static void draw_limit(struct top_canvas *canvas,
                       const struct grid_area *area,
                       struct grid_text cell,
                       const struct model_limit *limit)
{
    uint32_t end = cell.column + cell.columns;
    struct strbuf text = {0};
    plain_add(&text, limit->name);
    cell.columns = top_draw_min(14, cell.columns);
    top_draw_cell(canvas, area, &cell, strbuf_text(&text));
    strbuf_clear(&text);
    strbuf_addf(&text,
                limit->per != NULL ? "%lld, %lld per " : "%lld/%lld",
                (long long)limit->used,
                (long long)limit->max);
    strbuf_adds(&text, limit->per != NULL ? limit->per : "");
    bool full = limit->per == NULL && limit->used >= limit->max;
    cell.style = full ? GRID_YELLOW : GRID_PLAIN;
    cell.columns =
        limit->per != NULL ? end - top_draw_min(end, cell.column) : 8;
    top_draw_cell(canvas, area, &cell, strbuf_text(&text));
    strbuf_release(&text);
    if (limit->per == NULL && cell.column + 4 <= end) {
        double all = limit->max > 0 ? (double)limit->max : 1;
        cell.columns = end - cell.column - 1;
        cell.style = full ? GRID_YELLOW : GRID_GREEN;
        top_draw_bar(canvas, area, cell, (double)limit->used / all);
    }
}

uint32_t top_draw_limits_in_row(uint32_t columns)
{
    return top_draw_max(columns / LIMIT_COLUMNS, 1);
}

void top_draw_limits(struct top_canvas *canvas, struct grid_area area)
{
    const struct model *model = canvas->model;
    top_draw_title(canvas, &area, "limits", false);
    uint32_t in_row = top_draw_limits_in_row(area.columns);
    uint32_t wide = (area.columns - top_draw_min(area.columns, 1)) / in_row;
    const struct model_limit *limit = model->limits;
    for (uint32_t ix = 0; ix < model->limit_count; ix++, limit++) {
        if (ix / in_row >= area.rows) {
            break;
        }
        struct grid_text cell = {
            .row = ix / in_row,
            .column = 1 + ix % in_row * wide,
            .columns = wide > 1 ? wide - 1 : wide,
        };
        while (limit->max == LIMIT_NONE) {
            limit++; /* no maximum */
        }
        draw_limit(canvas, &area, cell, limit);
    }
}

static void draw_gauge(struct top_canvas *canvas,
                       const struct grid_area *area,
                       uint32_t row,
                       const struct model_gauge *gauge)
{
    struct strbuf text = {0};
    plain_add(&text, gauge->name);
    unsigned style = gauge->percent >= 90   ? GRID_RED
                     : gauge->percent >= 70 ? GRID_YELLOW
                                            : GRID_GREEN;
    struct grid_text cell = {
        .row = row,
        .column = 1,
        .columns = 14,
        .style = gauge->governs ? GRID_BOLD : GRID_PLAIN,
    };
    top_draw_cell(canvas, area, &cell, strbuf_text(&text));
    cell.columns = area->columns > 70 ? 20 : 10;
    cell.style = style;
    top_draw_bar(canvas, area, cell, gauge->percent / 100);
    cell.column += cell.columns + 1;
    strbuf_clear(&text);
    if (gauge->text[0] != '\0') {
        strbuf_addf(&text, "%s, ", gauge->text);
    }
    strbuf_addf(&text, "%.0f %%", gauge->percent);
    if (gauge->resets_ns > 0) {
        int64_t now_ns = canvas->model->wall_ns;
        strbuf_adds(&text, ", resets ");
        if (gauge->resets_ns - now_ns < DAY_NS) {
            plain_add_clock(&text, gauge->resets_ns, PLAIN_MINUTES);
        } else {
            usage_add_time(&text, gauge->resets_ns, now_ns); /* with its date */
        }
    }
    strbuf_adds(&text, gauge->governs ? ", governs the cap" : "");
    cell.style = GRID_PLAIN;
    cell.text = strbuf_text(&text);
    (void)top_draw_add(canvas, area, cell);
    strbuf_release(&text);
}

void top_draw_usage(struct top_canvas *canvas, struct grid_area area)
{
    const struct model *model = canvas->model;
    top_draw_title(canvas, &area, "usage", false);
    uint32_t row = 0;
    if (model->usage != NULL) {
        struct strbuf text = {0};
        plain_add(&text, model->usage);
        (void)top_draw_line(canvas,
                            &area,
                            1,
                            GRID_YELLOW | GRID_BOLD,
                            strbuf_text(&text));
        strbuf_release(&text);
        row++;
    }
    for (uint32_t ix = 0; ix < model->gauge_count && row < area.rows; ix++) {
        draw_gauge(canvas, &area, row++, &model->gauges[ix]);
    }
}

/* Return the colour of an event, by the word after its time of day. */
static unsigned style_of_event(const char *text)
{
    static const struct {
        const char *word;
        unsigned style;
    } words[] = {
        {"done", GRID_GREEN},
        {"failed", GRID_RED},
        {"finished", GRID_GREEN},
        {"request", GRID_BOLD},
        {"parked", GRID_RED},
        {"start", GRID_CYAN},
    };
    const char *word = strchr(text, ' ');
    for (size_t ix = 0; word != NULL && ix < ARRAY_COUNT(words); ix++) {
        if (strncmp(word + 1, words[ix].word, strlen(words[ix].word)) == 0) {
            return words[ix].style;
        }
    }
    return GRID_PLAIN;
}

/* Whether an event is about the shown run, or about the store. */
static bool is_shown(const struct model *model, uint32_t ix)
{
    uint32_t run = model->events[ix].run;
    return model->run == MODEL_NONE || run == STORE_NONE ||
           run == model->runs[model->run].number;
}

void top_draw_events(struct top_canvas *canvas, struct grid_area area)
{
    const struct model *model = canvas->model;
    top_draw_title(canvas, &area, "events", false);
    uint32_t first = model->event_count;
    for (uint32_t count = 0; first > 0 && count < area.rows; first--) {
        count += is_shown(model, first - 1) ? 1 : 0;
    }
    for (uint32_t ix = first; ix < model->event_count; ix++) {
        const struct model_event *event = &model->events[ix];
        if (is_shown(model, ix)) {
            struct grid_area row = grid_take_rows(&area, 1);
            struct strbuf text = {0};
            if (event->wall_ns != 0) {
                (void)lines_add_date(&text, event->wall_ns, model->wall_ns);
            }
            strbuf_adds(&text, event->text);
            (void)top_draw_line(canvas,
                                &row,
                                1,
                                style_of_event(event->text),
                                strbuf_text(&text));
            strbuf_release(&text);
        }
    }
}
