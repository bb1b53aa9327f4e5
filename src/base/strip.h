/* SPDX-License-Identifier: MIT */
/*
 * strip: what a session has written, made safe to show on a terminal.
 *
 * Escape sequences, control characters and characters that turn the direction
 * of writing are removed, line breaks and tabs kept; bytes that are not UTF-8
 * become question marks. What comes out is UTF-8 that moves the cursor to the
 * start of a line and nowhere else, sets no title and changes no colour.
 */
#ifndef BASE_STRIP_H
#define BASE_STRIP_H

#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

/* A text that comes in pieces, cut anywhere. Starts as {0}. */
struct strip {
    uint8_t state;
    uint8_t held_count;
    uint8_t held_needed;
    char held[4]; /* the beginning of a character */
};

/* Append what can be shown of the next piece. */
void strip_add(struct strip *strip,
               struct strbuf *out,
               const char *bytes,
               size_t len);

/* The text has ended: half a character is a question mark. */
void strip_end(struct strip *strip, struct strbuf *out);

/* Append what can be shown of a whole text. */
void strip_text(struct strbuf *out, const char *text, size_t len);

#endif /* BASE_STRIP_H */
