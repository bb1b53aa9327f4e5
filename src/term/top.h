/* SPDX-License-Identifier: MIT */
/*
 * top: the interactive state of `sluice top`: selection, input, and requests
 * to the scheduler.
 *
 * It depends on neither a terminal nor a store: a key goes in, and an action
 * for the caller comes out, if any. A task is selected by its id, so the
 * selection stays with the task when the lists change; when the task is no
 * longer shown, none is selected until the user moves. The same applies to an
 * issue, which is a group of tasks: commands take its id like a task id.
 *
 * How to use it:
 *  1. top_init(), then top_update() whenever the model has changed.
 *  2. top_key() for each key; carry out the action that it returns.
 *  3. top_draw().
 */
#ifndef TERM_TOP_H
#define TERM_TOP_H

#include "term/pager.h"
#include "view/model.h"

/* Keys that are not characters. */
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
    TOP_KEY_OTHER, /* unknown */
};

enum top_mode {
    TOP_MAIN,
    TOP_HELP,
    TOP_PAGER,
    TOP_FILTER,  /* typing a filter */
    TOP_CONFIRM, /* waiting for y or n */
    TOP_ANSWER,  /* typing the answer to a task's question */
};

/* Lists that keys move in. */
enum top_panel { TOP_RUNS, TOP_SLOTS, TOP_TASKS };

/* Actions for the caller. */
enum top_deed {
    TOP_NOTHING,
    TOP_QUIT,
    TOP_SEND,  /* send the request */
    TOP_SHOW,  /* show the output of a command in the pager */
    TOP_CLOSE, /* the pager was closed */
    TOP_RUN,   /* show another run: top->run */
};

/* A sluice command. A plain value; it owns its strings. */
struct top_request {
    enum top_deed deed;
    const char *verb;   /* "hold"; not owned */
    const char *option; /* "--up", or NULL; not owned */
    char *run;
    char *task; /* or issue; NULL: the whole run */
    bool issue; /* `task` is an issue */
    char *text; /* of an answer, or NULL */
};

/* No place in the lists. */
#define TOP_GONE UINT32_MAX

enum { TOP_FILTER_MAX = 60, TOP_ANSWER_MAX = 1000 };

/* Embeddable; only commented members are public. */
struct top {
    bool read_only;
    enum top_mode mode;
    enum top_panel panel;
    char *run;    /* id of the shown run, or NULL */
    char *task;   /* id of the selected task or issue, or NULL */
    bool issue;   /* the selection is an issue */
    bool moved;   /* the user, or the first update, selected */
    bool chosen;  /* the user selected */
    bool all;     /* list finished tasks, too */
    bool by_task; /* list tasks, not issues */
    char filter[TOP_FILTER_MAX + 1];
    char filter_before[TOP_FILTER_MAX + 1];

    uint32_t *slots; /* indices of the model's slots that match the filter */
    uint32_t slot_count;
    uint32_t *rows; /* the same for its rows or issues */
    uint32_t row_count;
    uint32_t id_columns; /* of the longest listed issue id, indented */
    uint32_t selected;   /* position in slots, then rows; TOP_GONE: none */
    uint32_t near;       /* last selected position */

    /* Of the last drawing: first position shown, and rows per page. */
    uint32_t first_run;
    uint32_t first_slot;
    uint32_t first_row;
    uint32_t page;

    struct strbuf message;
    bool bad; /* the message is an error */
    struct top_request asked;
    struct strbuf answer; /* as typed so far */

    struct pager pager;
    struct strbuf title; /* of the pager */
    bool running;        /* its command is still running */
    bool shut;           /* a q just closed something, or opening failed */
};

void top_init(struct top *top, bool read_only);
void top_release(struct top *top);

/* Rebuild the lists after a change of the model, and restore the selection. */
void top_update(struct top *top, const struct model *model);

/* Handle a key. Release *out. */
void top_key(struct top *top,
             const struct model *model,
             uint32_t key,
             struct top_request *out);
void top_request_release(struct top_request *request);

/* Show a message, in plain text. */
void top_say(struct top *top, bool bad, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Whether finished tasks are listed: on demand, and in a run that has no
 * others. */
bool top_lists_ended(const struct top *top, const struct model *model);

/* Whether issues are listed: if any exist, unless the user chose tasks. */
bool top_lists_issues(const struct top *top, const struct model *model);

/* Columns by which an issue is indented below its parents; deep ones are not
 * indented further. */
enum { TOP_DEPTH_MAX = 4 };
uint32_t top_issue_indent(const struct model_issue *issue);

/* Return the id of the task or issue at a list position. */
const char *
top_id_at(const struct top *top, const struct model *model, uint32_t place);

/* Smallest usable terminal; a smaller one shows only a message. */
enum { TOP_DRAW_COLUMNS_MIN = 30, TOP_DRAW_ROWS_MIN = 8 };

/*
 * Draw into the whole grid, which is blank. `unicode`: lines and bars may be
 * non-ASCII. Stores scroll positions in *top. The same model, state and options
 * give the same cells; the cost depends on the visible rows, not on the number
 * of tasks.
 */
void top_draw(struct grid *grid,
              struct top *top,
              const struct model *model,
              bool unicode);

#endif /* TERM_TOP_H */
