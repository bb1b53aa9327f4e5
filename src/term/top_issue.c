/* SPDX-License-Identifier: MIT */
/*
 * Lines of the issue list: the id, then each stage with a sign for its state
 * and, if it runs or is finished, its duration; then the reason of the current
 * stage, as far as it fits. A group with parts has its totals before its own
 * stages, and its parts are indented below it.
 *
 * If not all stages fit, stages before the current stage are omitted, so that
 * it is visible. Only stages near it are processed in a long issue.
 */
#include "term/top_draw_internal.h"

#include "base/duration.h"
#include "base/plain.h"

#include <string.h>

enum {
    ID_COLUMNS_MIN = 12, /* minimum for a long id in a narrow terminal */
    STAGES_BEFORE = 16,  /* maximum of stages up to the current */
    GAP = 2,             /* columns between stages */
};

/* Return a sign for the state of a task. */
static const char *sign_of(const struct model_task *task, bool unicode)
{
    static const struct {
        const char *unicode;
        const char *ascii;
    } signs[TASK_STATE_COUNT] = {
        [TASK_WAITING] = {"\u00b7", "."},
        [TASK_READY] = {"\u25cb", "o"},
        [TASK_STARTING] = {"\u25b6", ">"},
        [TASK_RUNNING] = {"\u25b6", ">"},
        [TASK_DONE] = {"\u2713", "+"},
        [TASK_FAILED] = {"\u2717", "x"},
        [TASK_PARKED] = {"!", "!"},
        [TASK_SKIPPED] = {"-", "-"},
        [TASK_CANCELLED] = {"\u2717", "x"},
    };
    if (task->revoked) {
        return "?";
    }
    if (task->unapproved) {
        return "!";
    }
    if (task->held &&
        (task->state == TASK_WAITING || task->state == TASK_READY)) {
        return "=";
    }
    return unicode ? signs[task->state].unicode : signs[task->state].ascii;
}

/* Return the name of a stage in its issue's line: its pipeline name, or its id
 * without the issue id. A single task has its state instead. */
static const char *name_of(const struct model_issue *issue,
                           const struct model_task *task)
{
    if (!issue->group) {
        return sched_state_name(task->state);
    }
    if (task->stage != NULL) {
        return task->stage;
    }
    size_t len = strlen(issue->id);
    bool prefixed = strncmp(task->id, issue->id, len) == 0 &&
                    task->id[len] != '\0' && task->id[len + 1] != '\0';
    return prefixed ? task->id + len + 1 : task->id;
}

/* Append "implement + 12m"; return its style. */
static unsigned add_stage(struct strbuf *out,
                          const struct top_canvas *canvas,
                          const struct model_issue *issue,
                          uint32_t ix)
{
    const struct model *model = canvas->model;
    struct model_task about;
    struct strbuf ignored = {0};
    model->describe(model, model->stages[issue->first + ix], &about, &ignored);
    strbuf_release(&ignored);
    plain_add(out, name_of(issue, &about));
    strbuf_addf(out, " %s", sign_of(&about, canvas->unicode));
    if (top_draw_is_ended(&about) && about.ran_ns > 0) {
        strbuf_adds(out, " ");
        duration_add(out, about.ran_ns);
    }
    for (uint32_t slot = 0; slot < model->slot_count; slot++) {
        if (strcmp(model->slots[slot].task, about.id) == 0) {
            int64_t gone_ns = model->wall_ns - model->slots[slot].since_ns;
            strbuf_adds(out, " ");
            duration_add(out, gone_ns > 0 ? gone_ns : 0);
        }
    }
    return top_draw_style(&about);
}

/* Return the first stage to show, so that the current stage fits. */
static uint32_t first_stage(const struct top_canvas *canvas,
                            const struct model_issue *issue,
                            uint32_t columns)
{
    struct strbuf text = {0};
    uint32_t first = issue->current + 1;
    uint32_t used = 0;
    while (first > 0 && issue->current + 1 - first < STAGES_BEFORE) {
        strbuf_clear(&text);
        (void)add_stage(&text, canvas, issue, first - 1);
        used += plain_columns(strbuf_text(&text)) + GAP;
        if (used > columns + GAP && first <= issue->current) {
            break;
        }
        first--;
    }
    strbuf_release(&text);
    return first;
}

static void draw_reason(struct top_canvas *canvas,
                        const struct grid_area *area,
                        struct grid_text cell,
                        const struct model_issue *issue)
{
    struct model_task about;
    struct strbuf reason = {0};
    canvas->model->describe(canvas->model,
                            model_current(canvas->model, issue),
                            &about,
                            &reason);
    cell.style = GRID_PLAIN;
    cell.text = strbuf_text(&reason);
    (void)top_draw_add(canvas, area, cell);
    strbuf_release(&reason);
}

void top_draw_issue(struct top_canvas *canvas,
                    const struct grid_area *area,
                    uint32_t row,
                    const struct model_issue *issue)
{
    struct strbuf text = {0};
    uint32_t most = top_draw_max(area->columns / 4, ID_COLUMNS_MIN);
    strbuf_pad(&text, ' ', top_issue_indent(issue));
    plain_add(&text, issue->id);
    struct grid_text cell = {
        .row = row,
        .column = 1,
        .columns = top_draw_min(canvas->top->id_columns, most),
        .text = strbuf_text(&text),
    };
    cell.column = top_draw_put(canvas, area, cell) + GAP;
    if (issue->has_parts) {
        strbuf_clear(&text);
        strbuf_addf(&text, "%u of %u done", issue->done, issue->total);
        cell.style = issue->done == issue->total ? GRID_GREEN : GRID_PLAIN;
        cell.text = strbuf_text(&text);
        cell.column = top_draw_add(canvas, area, cell) + GAP;
    }
    if (issue->count == 0) {
        strbuf_release(&text);
        return;
    }
    uint32_t left =
        area->columns > cell.column ? area->columns - cell.column : 0;
    uint32_t first = first_stage(canvas, issue, left > GAP ? left - GAP : 0);
    if (first > 0) {
        cell.text = "<";
        cell.column = top_draw_add(canvas, area, cell) + 1;
    }
    for (uint32_t ix = first; ix < issue->count; ix++) {
        strbuf_clear(&text);
        cell.style = add_stage(&text, canvas, issue, ix);
        cell.text = strbuf_text(&text);
        cell.column = top_draw_add(canvas, area, cell) + GAP;
        if (cell.column >= area->columns) {
            break;
        }
    }
    strbuf_release(&text);
    if (issue->part != MODEL_FLIGHT && issue->part != MODEL_ENDED) {
        draw_reason(canvas, area, cell, issue);
    }
}
