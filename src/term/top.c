/* SPDX-License-Identifier: MIT */
#include "term/top.h"

#include "base/invariant.h"
#include "base/macros.h"
#include "base/mem.h"
#include "base/plain.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE_BYTES = 1024 };

static char *copy_text(const char *text)
{
    return text != NULL ? mem_strndup(text, strlen(text)) : NULL;
}

static void set_text(char **place, const char *text)
{
    char *copy = copy_text(text); /* it may be the old string */
    mem_free(*place);
    *place = copy;
}

void top_init(struct top *top, bool read_only)
{
    *top = (struct top){
        .read_only = read_only,
        .panel = TOP_TASKS,
        .selected = TOP_GONE,
    };
}

void top_request_release(struct top_request *request)
{
    mem_free(request->run);
    mem_free(request->task);
    mem_free(request->text);
    *request = (struct top_request){0};
}

void top_release(struct top *top)
{
    mem_free(top->run);
    mem_free(top->task);
    mem_free(top->slots);
    mem_free(top->rows);
    strbuf_release(&top->message);
    strbuf_release(&top->title);
    top_request_release(&top->asked);
    strbuf_release(&top->answer);
    pager_release(&top->pager);
    top_init(top, top->read_only);
}

void top_say(struct top *top, bool bad, const char *format, ...)
{
    char text[MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    strbuf_clear(&top->message);
    plain_add(&top->message, len < 0 ? "" : text);
    top->bad = bad;
}

/* --- lists -------------------------------------------------------------- */

const char *
top_id_at(const struct top *top, const struct model *model, uint32_t place)
{
    INVARIANT(place < top->slot_count + top->row_count);
    if (place < top->slot_count) {
        return model->slots[top->slots[place]].task;
    }
    uint32_t row = top->rows[place - top->slot_count];
    return top_lists_issues(top, model)
               ? model->issues[row].id
               : model->id(model, model->rows[row].task);
}

/* Whether a list position is an issue. */
static bool
is_issue_at(const struct top *top, const struct model *model, uint32_t place)
{
    return place >= top->slot_count && top_lists_issues(top, model) &&
           model->issues[top->rows[place - top->slot_count]].group;
}

static bool passes(const struct top *top, const char *id)
{
    return top->filter[0] == '\0' || strcasestr(id, top->filter) != NULL;
}

/* Whether an issue matches the filter, by its id, an id of its tasks, or one of
 * its parts. */
static bool
issue_passes(const struct top *top, const struct model *model, uint32_t at)
{
    uint32_t depth = model->issues[at].depth;
    bool found = top->filter[0] == '\0';
    do {
        const struct model_issue *issue = &model->issues[at++];
        found = found || passes(top, issue->id);
        for (uint32_t ix = 0; ix < issue->count && !found; ix++) {
            found =
                passes(top, model->id(model, model->stages[issue->first + ix]));
        }
    } while (!found && at < model->issue_count &&
             model->issues[at].depth > depth);
    return found;
}

uint32_t top_issue_indent(const struct model_issue *issue)
{
    return 2 * (issue->depth < TOP_DEPTH_MAX ? issue->depth : TOP_DEPTH_MAX);
}

bool top_lists_issues(const struct top *top, const struct model *model)
{
    return !top->by_task && model->issue_count > 0;
}

bool top_lists_ended(const struct top *top, const struct model *model)
{
    return top->all ||
           (model->run != MODEL_NONE && model->runs[model->run].finished);
}

/* List the issues, as make_lists() lists the tasks. */
static void list_issues(struct top *top, const struct model *model, bool all)
{
    top->id_columns = 0;
    for (uint32_t ix = 0; ix < model->issue_count; ix++) {
        const struct model_issue *issue = &model->issues[ix];
        if ((issue->whole != MODEL_ENDED || all) &&
            issue_passes(top, model, ix)) {
            uint32_t columns =
                plain_columns(issue->id) + top_issue_indent(issue);
            top->id_columns =
                columns > top->id_columns ? columns : top->id_columns;
            top->rows[top->row_count++] = ix;
        }
    }
}

static void make_lists(struct top *top, const struct model *model)
{
    bool all = top_lists_ended(top, model);
    bool issues = top_lists_issues(top, model);
    uint32_t most = issues ? model->issue_count : model->row_count;
    top->slots =
        mem_resize(top->slots, model->slot_count + 1, sizeof(top->slots[0]));
    top->rows = mem_resize(top->rows, most + 1, sizeof(top->rows[0]));
    top->slot_count = 0;
    top->row_count = 0;
    for (uint32_t ix = 0; ix < model->slot_count; ix++) {
        if (passes(top, model->slots[ix].task)) {
            top->slots[top->slot_count++] = ix;
        }
    }
    if (issues) {
        list_issues(top, model, all);
        return;
    }
    for (uint32_t ix = 0; ix < model->row_count; ix++) {
        const struct model_row *row = &model->rows[ix];
        if ((row->part != MODEL_ENDED || all) &&
            (top->filter[0] == '\0' ||
             passes(top, model->id(model, row->task)))) {
            top->rows[top->row_count++] = ix;
        }
    }
}

/* Return the list position of a task or issue, or TOP_GONE. The ids of tasks
 * and issues in a plan are unique. */
static uint32_t
find_id(const struct top *top, const struct model *model, const char *id)
{
    uint32_t count = top->slot_count + top->row_count;
    for (uint32_t ix = 0; id != NULL && ix < count; ix++) {
        if (strcmp(top_id_at(top, model, ix), id) == 0) {
            return ix;
        }
    }
    return TOP_GONE;
}

static void
select_place(struct top *top, const struct model *model, uint32_t place)
{
    set_text(&top->task, top_id_at(top, model, place));
    top->issue = is_issue_at(top, model, place);
    top->selected = place;
    top->near = place;
    top->moved = true;
    top->chosen = true;
    top->panel = place < top->slot_count ? TOP_SLOTS : TOP_TASKS;
}

void top_update(struct top *top, const struct model *model)
{
    const char *run =
        model->run != MODEL_NONE ? model->runs[model->run].id : NULL;
    bool same = run == NULL ? top->run == NULL
                            : top->run != NULL && strcmp(run, top->run) == 0;
    if (!same) {
        if (top->run != NULL) {
            top_say(top, false, "run %s has finished", top->run);
        }
        set_text(&top->run, run);
        set_text(&top->task, NULL);
        top->moved = false;
    }
    make_lists(top, model);
    top->selected = find_id(top, model, top->task);
    if (top->selected != TOP_GONE) {
        top->near = top->selected;
        top->issue = is_issue_at(top, model, top->selected);
        if (top->panel != TOP_RUNS) {
            top->panel =
                top->selected < top->slot_count ? TOP_SLOTS : TOP_TASKS;
        }
    } else if (top->task != NULL) {
        if (top->chosen && top->filter[0] == '\0' && top->message.len == 0) {
            top_say(top,
                    false,
                    "%s has finished ('a' lists finished tasks)",
                    top->task);
        }
        set_text(&top->task, NULL);
    } else if (!top->moved && top->slot_count + top->row_count > 0) {
        enum top_panel panel = top->panel;
        select_place(top, model, 0);
        top->chosen = false;
        top->panel = panel == TOP_RUNS ? panel : top->panel;
    }
}

/* --- moving ------------------------------------------------------------- */

static void move(struct top *top, const struct model *model, int64_t by)
{
    int64_t count = (int64_t)top->slot_count + top->row_count;
    if (count == 0) {
        return;
    }
    /* Without a selection, a step selects its last position. */
    bool leaps = by < -count || by > count;
    int64_t place = top->selected != TOP_GONE ? top->selected : top->near;
    place += top->selected != TOP_GONE || leaps ? by : 0;
    place = place < 0 ? 0 : place < count ? place : count - 1;
    select_place(top, model, (uint32_t)place);
}

/* Show the run `by` positions further. */
static void move_run(struct top *top,
                     const struct model *model,
                     int64_t by,
                     struct top_request *out)
{
    if (model->run == MODEL_NONE) {
        return;
    }
    int64_t place = (int64_t)model->run + by;
    int64_t last = (int64_t)model->run_count - 1;
    place = place < 0 ? 0 : place < last ? place : last;
    if (place != model->run) {
        set_text(&top->run, model->runs[place].id);
        set_text(&top->task, NULL);
        top->moved = false;
        top->near = 0;
        out->deed = TOP_RUN;
    }
}

/* Select the next panel that is not empty. */
static void switch_panel(struct top *top, const struct model *model, bool back)
{
    const bool there[] = {
        [TOP_RUNS] = model->run_count > 1,
        [TOP_SLOTS] = top->slot_count > 0,
        [TOP_TASKS] = top->row_count > 0,
    };
    uint32_t count = ARRAY_COUNT(there);
    uint32_t panel = top->panel;
    for (uint32_t tries = 0; tries < count; tries++) {
        panel = (panel + (back ? count - 1 : 1)) % count;
        if (there[panel]) {
            break;
        }
    }
    if (!there[panel]) {
        return;
    }
    if (panel != TOP_RUNS) {
        select_place(top, model, panel == TOP_SLOTS ? 0 : top->slot_count);
    }
    top->panel = (enum top_panel)panel;
}

/* Return the distance that a key moves in a list or text; 0: none. The first
 * and the last position are INT32_MIN and INT32_MAX away. */
static int64_t steps_of(uint32_t key, uint32_t rows)
{
    int64_t page = rows > 1 ? rows - 1 : 1;
    switch (key) {
    case TOP_KEY_UP:
    case 'k':
        return -1;
    case TOP_KEY_DOWN:
    case 'j':
        return 1;
    case TOP_KEY_PAGE_UP:
        return -page;
    case TOP_KEY_PAGE_DOWN:
        return page;
    case TOP_KEY_HOME:
    case 'g':
        return INT32_MIN;
    case TOP_KEY_END:
    case 'G':
        return INT32_MAX;
    default:
        return 0;
    }
}

static bool take_move(struct top *top,
                      const struct model *model,
                      uint32_t key,
                      struct top_request *out)
{
    int64_t by = steps_of(key, top->page);
    if (key == TOP_KEY_TAB || key == TOP_KEY_BACK_TAB) {
        switch_panel(top, model, key == TOP_KEY_BACK_TAB);
        return true;
    }
    if (by != 0 && top->panel == TOP_RUNS && model->run_count > 1) {
        move_run(top, model, by, out);
    } else if (by != 0) {
        move(top, model, by);
    }
    return by != 0;
}

/* --- requests ----------------------------------------------------------- */

static bool is_task_held(const struct model *model, uint32_t ix)
{
    struct model_task task;
    struct strbuf ignored = {0};
    model->describe(model, ix, &task, &ignored);
    strbuf_release(&ignored);
    return task.held || task.revoked;
}

/* Whether the selected task, or a task of the selected issue, is held or
 * revoked. */
static bool is_held(const struct top *top, const struct model *model)
{
    if (top->selected < top->slot_count) {
        return model->slots[top->slots[top->selected]].held;
    }
    uint32_t row = top->rows[top->selected - top->slot_count];
    if (!top_lists_issues(top, model)) {
        return is_task_held(model, model->rows[row].task);
    }
    const struct model_issue *issue = &model->issues[row];
    bool held = false; /* of its own tasks, not those of its parts */
    for (uint32_t ix = 0; ix < issue->count && !held; ix++) {
        held = is_task_held(model, model->stages[issue->first + ix]);
    }
    return held;
}

/* Request a command for the selected task; false if none is selected. */
static bool ask_task(struct top *top,
                     enum top_deed deed,
                     const char *verb,
                     struct top_request *out)
{
    if (top->selected == TOP_GONE || top->run == NULL) {
        top_say(top, true, "%s: no task is selected", verb);
        return false;
    }
    *out = (struct top_request){
        .deed = deed,
        .verb = verb,
        .run = copy_text(top->run),
        .task = copy_text(top->task),
        .issue = top->issue,
    };
    return true;
}

static void ask_run(struct top *top,
                    const char *verb,
                    const char *option,
                    struct top_request *out)
{
    if (top->run == NULL) {
        top_say(top, true, "%s: no run", verb);
        return;
    }
    *out = (struct top_request){
        .deed = TOP_SEND,
        .verb = verb,
        .option = option,
        .run = copy_text(top->run),
    };
}

/* Ask for confirmation. The answer applies to this task even if the selection
 * changes. */
static void confirm(struct top *top, const char *verb)
{
    struct top_request request = {0};
    if (ask_task(top, TOP_SEND, verb, &request)) {
        top_request_release(&top->asked);
        top->asked = request;
        top->mode = TOP_CONFIRM;
    }
}

/* Start typing the answer to a task's question. */
static void begin_answer(struct top *top)
{
    confirm(top, "answer");
    if (top->mode == TOP_CONFIRM) {
        strbuf_clear(&top->answer);
        top->mode = TOP_ANSWER;
    }
}

/* Handle request keys; false if the key is for none. */
static bool take_request(struct top *top,
                         const struct model *model,
                         uint32_t key,
                         struct top_request *out)
{
    if (key == '\0' || key > 0x7f || strchr("p+=-hrscAo", (int)key) == NULL) {
        return false;
    }
    if (top->read_only) {
        top_say(top, true, "read-only: '%c' is disabled", (int)key);
        return true;
    }
    bool paused = model->run != MODEL_NONE &&
                  (model->runs[model->run].paused ||
                   model->runs[model->run].stopped != SCHED_NOT_STOPPED);
    switch (key) {
    case 'p':
        ask_run(top, paused ? "resume" : "pause", NULL, out);
        break;
    case '+':
    case '=':
        ask_run(top, "cap", "--up", out);
        break;
    case '-':
        ask_run(top, "cap", "--down", out);
        break;
    case 'h':
        (void)ask_task(top,
                       TOP_SEND,
                       top->selected != TOP_GONE && is_held(top, model)
                           ? "release"
                           : "hold",
                       out);
        break;
    case 'r':
        (void)ask_task(top, TOP_SEND, "retry", out);
        break;
    case 'o':
        (void)ask_task(top, TOP_SEND, "approve", out);
        break;
    case 's':
        confirm(top, "skip");
        break;
    case 'A':
        begin_answer(top);
        break;
    default:
        confirm(top, "cancel");
        break;
    }
    return true;
}

/* Show the output of a command about the task. */
static void show(struct top *top, const char *verb, struct top_request *out)
{
    if (ask_task(top, TOP_SHOW, verb, out)) {
        bool log = strcmp(verb, "log") == 0;
        top->mode = TOP_PAGER;
        top->running = true;
        pager_open(&top->pager, log);
        strbuf_clear(&top->title);
        strbuf_addf(&top->title, "%s %s", verb, out->task);
    } else {
        top->shut = true; /* a q meant to close the pager must not quit */
    }
}

/* Return the issue of a task, or NULL. */
static const struct model_issue *issue_of(const struct model *model,
                                          uint32_t task)
{
    for (uint32_t ix = 0; ix < model->issue_count; ix++) {
        const struct model_issue *issue = &model->issues[ix];
        for (uint32_t n = 0; n < issue->count; n++) {
            if (model->stages[issue->first + n] == task) {
                return issue;
            }
        }
    }
    return NULL;
}

/* Select the current stage of the issue at a row, or the issue of the task. A
 * group without tasks has none. */
static void
select_other(struct top *top, const struct model *model, uint32_t row)
{
    if (!top_lists_issues(top, model)) {
        uint32_t task = model->rows[row].task;
        const struct model_issue *issue = issue_of(model, task);
        set_text(&top->task,
                 issue != NULL ? issue->id : model->id(model, task));
    } else if (model->issues[row].count > 0) {
        uint32_t task = model_current(model, &model->issues[row]);
        set_text(&top->task, model->id(model, task));
    }
}

/* Switch between tasks and issues. The selection moves from an issue to its
 * current stage, and back. */
static void switch_list(struct top *top, const struct model *model)
{
    if (model->issue_count == 0) {
        top_say(top, false, "no task of this run belongs to an issue");
        return;
    }
    bool issues = top_lists_issues(top, model);
    if (top->selected != TOP_GONE && top->selected >= top->slot_count) {
        uint32_t row = top->rows[top->selected - top->slot_count];
        select_other(top, model, row);
    }
    top->by_task = issues;
    top_say(top, false, issues ? "a line for each task" : "a line per issue");
    top_update(top, model);
}

static void take_main(struct top *top,
                      const struct model *model,
                      uint32_t key,
                      struct top_request *out)
{
    bool shut = top->shut;
    top->shut = false;
    if (take_move(top, model, key, out) || take_request(top, model, key, out)) {
        return;
    }
    switch (key) {
    case 'q':
        if (shut) {
            top_say(top, false, "press q again to quit");
        } else {
            out->deed = TOP_QUIT;
        }
        break;
    case '?':
        top->mode = TOP_HELP;
        break;
    case 'l':
    case TOP_KEY_ENTER:
        show(top, "log", out);
        break;
    case 'w':
        show(top, "why", out);
        break;
    case 'a':
        top->all = !top->all;
        top_say(top,
                false,
                top->all ? "finished tasks are listed"
                         : "finished tasks are hidden");
        top_update(top, model);
        break;
    case 'i':
        switch_list(top, model);
        break;
    case '/':
        memcpy(top->filter_before, top->filter, sizeof(top->filter));
        top->filter[0] = '\0';
        top->mode = TOP_FILTER;
        top_update(top, model);
        break;
    case TOP_KEY_ESCAPE:
        top->filter[0] = '\0';
        top_update(top, model);
        break;
    default:
        break;
    }
}

/* --- other modes -------------------------------------------------------- */

static void
take_filter(struct top *top, const struct model *model, uint32_t key)
{
    size_t len = strlen(top->filter);
    if (key == TOP_KEY_ENTER) {
        top->mode = TOP_MAIN;
        if (top->selected == TOP_GONE && top->slot_count + top->row_count > 0) {
            select_place(top, model, 0);
        }
        return;
    }
    if (key == TOP_KEY_ESCAPE) {
        memcpy(top->filter, top->filter_before, sizeof(top->filter));
        top->mode = TOP_MAIN;
    } else if (key == TOP_KEY_BACKSPACE && len > 0) {
        top->filter[len - 1] = '\0';
    } else if (key > ' ' && key < 0x7f && len < TOP_FILTER_MAX) {
        top->filter[len] = (char)key;
        top->filter[len + 1] = '\0';
    }
    top_update(top, model);
}

static void take_confirm(struct top *top, uint32_t key, struct top_request *out)
{
    top->mode = TOP_MAIN;
    if (key == 'y' || key == 'Y') {
        *out = top->asked;
        top->asked = (struct top_request){0};
    } else {
        top_say(top,
                false,
                "%s %s: not done",
                top->asked.verb,
                top->asked.task);
        top_request_release(&top->asked);
    }
}

static void take_answer(struct top *top, uint32_t key, struct top_request *out)
{
    size_t len = top->answer.len;
    if (key == TOP_KEY_ESCAPE || (key == TOP_KEY_ENTER && len == 0)) {
        take_confirm(top, key, out);
    } else if (key == TOP_KEY_ENTER) {
        top->mode = TOP_MAIN;
        *out = top->asked;
        out->text = copy_text(strbuf_text(&top->answer));
        top->asked = (struct top_request){0};
    } else if (key == TOP_KEY_BACKSPACE && len > 0) {
        top->answer.text[--top->answer.len] = '\0';
    } else if (key >= ' ' && key < 0x7f && len < TOP_ANSWER_MAX) {
        strbuf_pad(&top->answer, (char)key, 1);
    }
}

static void take_pager(struct top *top, uint32_t key, struct top_request *out)
{
    struct pager *pager = &top->pager;
    if (key == 'q' || key == TOP_KEY_ESCAPE) {
        top->mode = TOP_MAIN;
        top->shut = key == 'q';
        pager_release(pager);
        out->deed = TOP_CLOSE;
        return;
    }
    key = key == TOP_KEY_ENTER ? TOP_KEY_DOWN
          : key == 'b'         ? TOP_KEY_PAGE_UP
          : key == ' '         ? TOP_KEY_PAGE_DOWN
                               : key;
    int64_t by = steps_of(key, pager->rows);
    if (by == INT32_MIN) {
        pager_home(pager);
    } else if (by == INT32_MAX) {
        pager_end(pager);
    } else if (by != 0) {
        pager_move(pager, by);
    }
}

void top_key(struct top *top,
             const struct model *model,
             uint32_t key,
             struct top_request *out)
{
    *out = (struct top_request){0};
    enum top_mode mode = top->mode;
    if (mode != TOP_PAGER) {
        strbuf_clear(&top->message);
        top->bad = false;
    }
    switch (mode) {
    case TOP_MAIN:
        take_main(top, model, key, out);
        break;
    case TOP_HELP:
        top->mode = TOP_MAIN;
        top->shut = key == 'q';
        break;
    case TOP_PAGER:
        take_pager(top, key, out);
        break;
    case TOP_FILTER:
        take_filter(top, model, key);
        break;
    case TOP_CONFIRM:
        take_confirm(top, key, out);
        break;
    case TOP_ANSWER:
        take_answer(top, key, out);
        break;
    }
}
