/* SPDX-License-Identifier: MIT */
/*
 * screen: a grid on the terminal, and keyboard input. The only module that uses
 * ncurses.
 *
 * Between screen_open() and screen_close() the terminal is in another mode, so
 * every exit path must call screen_close(). The caller handles signals: it
 * reads the size before each drawing, and closes the screen when it has to
 * exit.
 */
#ifndef TERM_SCREEN_H
#define TERM_SCREEN_H

#include "base/diag.h"
#include "term/grid.h"

#include <stdbool.h>

/* Returned by screen_key() if no key is available. */
enum { SCREEN_NO_KEY = -1 };

struct screen;

/*
 * Take over the terminal, which standard input and output must be.
 * ERR_UNAVAILABLE: it cannot show a picture, or this program was built without
 * ncurses; *diag has the reason, and nothing was changed.
 */
MUST_USE enum err
screen_open(struct screen **out, bool colours, struct diag *diag);

/* Restore the terminal. NULL is allowed. */
void screen_close(struct screen *screen);

/* Current columns and rows of the terminal. */
void screen_size(struct screen *screen, uint32_t *columns, uint32_t *rows);

/* Show a grid; sends only the changes. */
void screen_show(struct screen *screen, const struct grid *grid);

/* Return the next key: a character, an enum top_key, or SCREEN_NO_KEY. Does not
 * block. */
int32_t screen_key(struct screen *screen);

#endif /* TERM_SCREEN_H */
