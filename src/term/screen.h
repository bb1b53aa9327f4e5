/* SPDX-License-Identifier: MIT */
/*
 * screen: a grid on the terminal, and its keys. All that knows ncurses.
 *
 * Between screen_open() and screen_close() the terminal is in another mode,
 * so every way out must lead through screen_close(). Signals are the caller's:
 * it looks at the size before each drawing, and closes the screen when it has
 * to end.
 */
#ifndef TERM_SCREEN_H
#define TERM_SCREEN_H

#include "base/diag.h"
#include "term/grid.h"

#include <stdbool.h>

/* Returned by screen_key(): there is no key to be read. */
enum { SCREEN_NO_KEY = -1 };

struct screen;

/*
 * Take over the terminal, which standard input and output must be.
 * ERR_UNAVAILABLE: it cannot show a picture, or this program was built without
 * ncurses, and *diag says so; nothing was changed then.
 */
MUST_USE enum err
screen_open(struct screen **out, bool colours, struct diag *diag);

/* Give the terminal back as it was. NULL is allowed. */
void screen_close(struct screen *screen);

/* Columns and rows of the terminal as it is now. */
void screen_size(struct screen *screen, uint32_t *columns, uint32_t *rows);

/* Show a grid; only what has changed is sent. */
void screen_show(struct screen *screen, const struct grid *grid);

/* The next key: a character, one of enum top_key, or SCREEN_NO_KEY. It does
 * not wait. */
int32_t screen_key(struct screen *screen);

#endif /* TERM_SCREEN_H */
