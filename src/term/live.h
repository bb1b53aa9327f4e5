/* SPDX-License-Identifier: MIT */
/*
 * live: the progress of a run on a terminal, drawn in place.
 *
 * live_draw() may be called at any rate: it draws if something has changed, at
 * most about ten times a second (less often if the plan is so large that
 * reading its state takes long). live_clear() removes the display, so that
 * other text can be printed; the next live_draw() restores it. The cursor is
 * never hidden, so nothing needs restoring if the process dies.
 */
#ifndef TERM_LIVE_H
#define TERM_LIVE_H

#include "base/strbuf.h"
#include "view/model.h"

#include <sys/ioctl.h>

struct live;

/* Columns and rows of the terminal; 80 and 24 if unknown. */
struct winsize live_terminal_size(void);

/* Create a display on standard output, which must be a terminal. */
struct live *live_new(bool colours, bool unicode);

/* Free it; the display stays on the terminal. NULL is allowed. */
void live_free(struct live *live);

/* Draw the run if it is time to. The engine is the scheduler's. */
void live_draw(struct live *live,
               struct engine *engine,
               uint32_t run,
               int64_t wall_ns);

/* Remove the display. */
void live_clear(struct live *live);

/* Options of live_text(). A plain value. */
struct live_options {
    uint32_t columns; /* of the terminal */
    uint32_t rows;
    bool colours;
    bool unicode;
    int64_t wall_ns;       /* current time */
    int64_t began_ns;      /* wall clock; start of the elapsed time */
    const uint64_t *slots; /* session token of each slot */
    uint32_t slot_count;
};

/*
 * Append the display of the shown run: lines of less than `columns` columns,
 * fewer than `rows` of them, each with a newline.
 */
void live_text(struct strbuf *out,
               const struct model *model,
               const struct live_options *options);

#endif /* TERM_LIVE_H */
