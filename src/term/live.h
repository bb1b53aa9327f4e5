/* SPDX-License-Identifier: MIT */
/*
 * live: the progress of a run on a terminal, drawn in place.
 *
 * live_draw() may be called as often as one likes: it draws when something
 * has changed, some ten times a second at most (less often for a plan so large
 * that looking at it takes long). live_clear() takes the picture away, so that
 * something else can be printed; the next live_draw() brings it back. The
 * cursor is never hidden, so nothing is to be restored whenever the process
 * dies.
 */
#ifndef TERM_LIVE_H
#define TERM_LIVE_H

#include "base/strbuf.h"
#include "view/model.h"

#include <sys/ioctl.h>

struct live;

/* Columns and rows of the terminal; 80 and 24 if they are not known. */
struct winsize live_terminal_size(void);

/* A picture on standard output, which is a terminal. */
struct live *live_new(bool colours, bool unicode);

/* Free it; what was drawn stays. NULL is allowed. */
void live_free(struct live *live);

/* Draw the run, if it is time to. The engine is one that schedules. */
void live_draw(struct live *live,
               struct engine *engine,
               uint32_t run,
               int64_t wall_ns);

/* Remove what was drawn. */
void live_clear(struct live *live);

/* How live_text() shall look. A plain value. */
struct live_options {
    uint32_t columns; /* of the terminal */
    uint32_t rows;
    bool colours;
    bool unicode;
    int64_t wall_ns;       /* present time */
    int64_t began_ns;      /* wall clock; since when time is counted */
    const uint64_t *slots; /* tokens of sessions by number of their slot */
    uint32_t slot_count;
};

/*
 * Append the picture of the run that is shown: lines of less than `columns`
 * columns, fewer than `rows` of them, each with a new line behind it.
 */
void live_text(struct strbuf *out,
               const struct model *model,
               const struct live_options *options);

#endif /* TERM_LIVE_H */
