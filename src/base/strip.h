/* SPDX-License-Identifier: MIT */
/*
 * strip: session output, made safe to show on a terminal.
 *
 * Removes escape sequences, control characters and characters that change the
 * writing direction; keeps line breaks and tabs; replaces bytes that are not
 * UTF-8 by question marks. The output is UTF-8 that moves the cursor only to
 * the start of a line, sets no title and changes no colour.
 */
#ifndef BASE_STRIP_H
#define BASE_STRIP_H

#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

/* State of a stream that comes in arbitrary pieces. Starts as {0}. */
struct strip {
    uint8_t state;
    uint8_t held_count;
    uint8_t held_needed;
    char held[4]; /* an incomplete character */
};

/* Append the printable part of the next piece. */
void strip_add(struct strip *strip,
               struct strbuf *out,
               const char *bytes,
               size_t len);

/* Finish the stream: an incomplete character becomes a question mark. */
void strip_end(struct strip *strip, struct strbuf *out);

/* Append the printable part of a whole string. */
void strip_text(struct strbuf *out, const char *text, size_t len);

#endif /* BASE_STRIP_H */
