/* SPDX-License-Identifier: MIT */
/*
 * top: what a person does in `sluice top`: what is selected, what is typed,
 * what is asked of the scheduler.
 *
 * It knows neither a terminal nor a store. Keys go in, and out comes what is
 * to be done, if anything. A task is selected by its id: whatever moves in the
 * lists, the selection stays with that task, and when the task is no longer
 * shown, none is selected until a person moves. The same goes for an issue,
 * which is a group of tasks: commands take its id like that of a task.
 *
 * How to use it:
 *  1. top_init(), then top_update() whenever the model has changed.
 *  2. top_key() for each key; do what it asks for.
 *  3. top_draw().
 */
#ifndef TERM_TOP_H
#define TERM_TOP_H

#include "term/pager.h"
#include "view/model.h"

/* Keys that are no characters. */
enum top_key {
    TOP_KEY_UP = 0x110000,
    TOP_KEY_DOWN,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
    TOP_KEY_ENTER,
    TOP_KEY_ESCAPE,
    TOP_KEY_BACKSPACE,
    TOP_KEY_TAB,
    TOP_KEY_BACK_TAB,
    TOP_KEY_OTHER, /* not known here */
};

enum top_mode {
    TOP_MAIN,
    TOP_HELP,
    TOP_PAGER,
    TOP_FILTER,  /* a filter is being typed */
    TOP_CONFIRM, /* a question is to be answered with y or n */
    TOP_ANSWER,  /* the answer to a task's question is being typed */
};

/* The lists that keys move in. */
enum top_panel { TOP_RUNS, TOP_SLOTS, TOP_TASKS };

/* What is to be done. */
enum top_deed {
    TOP_NOTHING,
    TOP_QUIT,
    TOP_SEND,  /* give the request */
    TOP_SHOW,  /* show what a command prints, in the pager */
    TOP_CLOSE, /* the pager was closed */
    TOP_RUN,   /* another run is to be shown: top->run */
};

/* A command of sluice. A plain value; the texts are owned. */
struct top_request {
    enum top_deed deed;
    const char *verb;   /* "hold"; not owned */
    const char *option; /* "--up", or NULL; not owned */
    char *run;
    char *task; /* or issue, or NULL: the whole run */
    bool issue; /* it is one */
    char *text; /* of an answer, or NULL */
};

/* No place in the lists. */
#define TOP_GONE UINT32_MAX

enum { TOP_FILTER_MAX = 60, TOP_ANSWER_MAX = 1000 };

/* Made to be embedded; only what is commented is for others. */
struct top {
    bool read_only;
    enum top_mode mode;
    enum top_panel panel;
    char *run;    /* id of the run that is shown, or NULL */
    char *task;   /* id of the task or issue that is selected, or NULL */
    bool issue;   /* it is an issue */
    bool moved;   /* a person, or the first look, has selected */
    bool chosen;  /* it was a person */
    bool all;     /* ended tasks, too */
    bool by_task; /* tasks are listed, not issues */
    char filter[TOP_FILTER_MAX + 1];
    char filter_before[TOP_FILTER_MAX + 1];

    uint32_t *slots; /* of the model, those that pass the filter */
    uint32_t slot_count;
    uint32_t *rows; /* the same of its rows, or of its issues */
    uint32_t row_count;
    uint32_t id_columns; /* of the longest id of an issue that is listed */
    uint32_t selected;   /* place in slots, then rows; TOP_GONE: none */
    uint32_t near;       /* where the last selection was */

    /* Of the last drawing: the first place shown, and how many. */
    uint32_t first_run;
    uint32_t first_slot;
    uint32_t first_row;
    uint32_t page;

    struct strbuf message;
    bool bad; /* the message is an error */
    struct top_request asked;
    struct strbuf answer; /* as far as it was typed */

    struct pager pager;
    struct strbuf title; /* of the pager */
    bool running;        /* what it shows has not ended */
    bool shut;           /* a q just closed something, or nothing opened */
};

void top_init(struct top *top, bool read_only);
void top_release(struct top *top);

/* The model has changed: make the lists anew, and find the selection again. */
void top_update(struct top *top, const struct model *model);

/* A key was pressed. Release *out. */
void top_key(struct top *top,
             const struct model *model,
             uint32_t key,
             struct top_request *out);
void top_request_release(struct top_request *request);

/* Say something in the line for it; plain text. */
void top_say(struct top *top, bool bad, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Whether tasks that have ended are listed: on demand, and in a run that has
 * nothing else. */
bool top_lists_ended(const struct top *top, const struct model *model);

/* Whether issues are listed: unless tasks were asked for, in a run with any. */
bool top_lists_issues(const struct top *top, const struct model *model);

/* The id of the task or issue at a place of the lists. */
const char *
top_id_at(const struct top *top, const struct model *model, uint32_t place);

/* The smallest terminal that shows more than that it is too small. */
enum { TOP_DRAW_COLUMNS_MIN = 30, TOP_DRAW_ROWS_MIN = 8 };

/*
 * Draw into the whole grid, which is blank. `unicode`: lines and bars may be
 * other than ASCII. What scrolls is remembered in *top. The same model, state
 * and options give the same cells; the cost is that of the rows in sight,
 * however many tasks there are.
 */
void top_draw(struct grid *grid,
              struct top *top,
              const struct model *model,
              bool unicode);

#endif /* TERM_TOP_H */
