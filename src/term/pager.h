/* SPDX-License-Identifier: MIT */
/*
 * pager: a text that comes in pieces, shown in a part of a grid.
 *
 * Control characters and escape sequences are taken out, lines are wrapped.
 * Only the end of a long text is kept. The picture follows the text until
 * someone moves up, and again when someone moves to the end.
 */
#ifndef TERM_PAGER_H
#define TERM_PAGER_H

#include "base/strip.h"
#include "term/grid.h"

#include <stdbool.h>

/* Bytes kept of a text, at least half of it; what is older is forgotten. */
enum { PAGER_BYTES_MAX = 4 << 20 };

/* Where a row begins: a line, and rows of it that are left out before. */
struct pager_place {
    uint32_t line;
    uint32_t row;
};

/* Starts as {0}, then pager_open(). */
struct pager {
    struct strip strip;
    struct strbuf text;    /* lines, each with a NUL behind it */
    size_t *lines;         /* where each begins; the last one may grow */
    uint32_t line_count;   /* at least 1 */
    uint32_t column;       /* of the last line, for tabs */
    bool returned;         /* a carriage return came last */
    bool cut;              /* the beginning is forgotten */
    bool follow;           /* show the end */
    struct pager_place at; /* the first row, unless it follows */
    uint32_t columns;      /* of the last drawing */
    uint32_t rows;
};

/* Begin with an empty text. */
void pager_open(struct pager *pager, bool follow);
void pager_release(struct pager *pager);

/* More of the text. */
void pager_add(struct pager *pager, const char *bytes, size_t len);

/* Move by so many rows, up when it is negative. */
void pager_move(struct pager *pager, int64_t rows);

/* Go to the first row, or to the end, which is followed then. */
void pager_home(struct pager *pager);
void pager_end(struct pager *pager);

/* Whether nothing has come yet. */
bool pager_is_empty(const struct pager *pager);

/* Draw it into an area. */
void pager_draw(struct pager *pager,
                struct grid *grid,
                const struct grid_area *area);

#endif /* TERM_PAGER_H */
