/* SPDX-License-Identifier: MIT */
/*
 * pager: a text that arrives in pieces, shown in a part of a grid.
 *
 * It removes control characters and escape sequences and wraps lines. Only the
 * end of a long text is kept. The view follows the text until the user moves
 * up, and again after a move to the end.
 */
#ifndef TERM_PAGER_H
#define TERM_PAGER_H

#include "base/strip.h"
#include "term/grid.h"

#include <stdbool.h>

/* Maximum bytes kept; when exceeded, the older half is dropped. */
enum { PAGER_BYTES_MAX = 4 << 20 };

/* Start of a row: a line, and the number of its rows to skip. */
struct pager_place {
    uint32_t line;
    uint32_t row;
};

/* Starts as {0}, then pager_open(). */
struct pager {
    struct strip strip;
    struct strbuf text;    /* lines, each NUL-terminated */
    size_t *lines;         /* offset of each; the last may grow */
    uint32_t line_count;   /* at least 1 */
    uint32_t column;       /* of the last line, for tabs */
    bool returned;         /* a carriage return came last */
    bool cut;              /* the beginning was dropped */
    bool follow;           /* show the end */
    struct pager_place at; /* the first row, unless `follow` */
    uint32_t columns;      /* of the last drawing */
    uint32_t rows;
};

/* Start with an empty text. */
void pager_open(struct pager *pager, bool follow);
void pager_release(struct pager *pager);

/* Append to the text. */
void pager_add(struct pager *pager, const char *bytes, size_t len);

/* Move by `rows` rows, up if negative. */
void pager_move(struct pager *pager, int64_t rows);

/* Go to the first row, or to the end and follow it. */
void pager_home(struct pager *pager);
void pager_end(struct pager *pager);

/* Whether no text has arrived. */
bool pager_is_empty(const struct pager *pager);

void pager_draw(struct pager *pager,
                struct grid *grid,
                const struct grid_area *area);

#endif /* TERM_PAGER_H */
